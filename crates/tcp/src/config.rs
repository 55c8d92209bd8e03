//! Every configurable detail of an end point. A [`Profile`](crate::Profile) sets all of them.

mod choice;
mod limit;

use std::sync::Arc;

use airpath_core::{Bytes, Span};
use serde::{Deserialize, Serialize};

use crate::accurate_ecn::EcnMode;
use crate::accurate_ecn::option::EcnOption;

pub use choice::{CubicGrowth, HyStartVariant, IdleRestart, Nagle};
pub use limit::{InitialWindow, Limit, WindowClamp};

/// The settings of an end point. Serialises as a table with every detail, so that a result records
/// which settings were in force.
///
/// ```
/// use airpath_tcp::{Limit, Profile};
/// let mut config = Profile::Linux6.config();
/// config.timestamps = false;
/// config.window_limit = Limit::at_most(42);
/// assert!(config.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Whether connections open and close with SYN and FIN (RFC 9293 §3.5, §3.6). Without it, both
    /// ends start established. They must then have equal settings and equal initial sequence
    /// numbers, and closing sends nothing.
    pub handshake: bool,
    /// Without a handshake: whether an end sends one segment without payload and waits for its
    /// acknowledgement before its first data, as the one-way agents of ns-2 do (`syn_`).
    pub opening_segment: bool,
    /// Retransmissions of a SYN before the attempt is abandoned, in addition to
    /// `opening_linear_timeouts`.
    pub opening_retries: u32,
    /// Retransmissions of a SYN by the end that opens the connection before its timeout doubles
    /// each time, as `tcp_syn_linear_timeouts` of Linux 6.5.
    pub opening_linear_timeouts: u32,
    /// Duration of TIME-WAIT (RFC 9293 §3.6.1: twice the maximum segment lifetime).
    pub time_wait: Span,

    /// Largest payload of a segment without options, in bytes, as announced in the SYN (RFC 9293
    /// §3.7.1). The options of a segment reduce its payload.
    pub maximum_segment_size: u16,
    /// Whether writes are rounded up to whole segments, as by a sender that counts packets. A
    /// single write of less than one segment is not, so that a short request in the other direction
    /// stays short.
    pub whole_segments: bool,
    /// Whether to offer window scaling (RFC 7323 §2).
    pub window_scaling: bool,
    /// Whether to offer timestamps (RFC 7323 §3).
    pub timestamps: bool,
    /// The tick of the timestamp clock.
    pub timestamp_tick: Span,
    /// Whether to offer selective acknowledgement (RFC 2018).
    pub selective_acknowledgement: bool,
    /// Whether the receiver reports duplicates in its selective acknowledgements (RFC 2883).
    pub duplicate_reports: bool,
    /// Whether to offer explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Whether to offer its accurate feedback (AccECN, RFC 9768): the number of marked packets
    /// instead of one signal per round trip. Needs `ecn`.
    pub accurate_ecn: bool,
    /// When the receiver sends the AccECN option, with accurate feedback: marked bytes (RFC 9768
    /// §3.2.3).
    #[serde(default)]
    pub ecn_option: EcnOption,
    /// Least number of these options in a round trip, with `ecn_option = "minimum"`: as
    /// `tcp_ecn_option_beacon` of Linux. RFC 9768 §3.2.3.3 leaves the frequency open.
    #[serde(default = "three")]
    pub ecn_option_beacon: u32,

    /// The window that the receiver offers.
    pub receive_buffer: ReceiveBuffer,
    /// When the receiver acknowledges.
    pub delayed_ack: DelayedAck,

    /// Upper bound of outstanding data, in segments, whatever the windows allow.
    pub window_limit: Limit,
    /// Whether a sub-MSS segment waits until outstanding data is acknowledged.
    pub nagle: Nagle,
    /// Whether segments are paced instead of sent in bursts: at twice the congestion window per
    /// smoothed round trip in slow start and 1.2 times in congestion avoidance, as Linux does,
    /// unless the congestion control has a pacing rate.
    pub pacing: bool,

    /// The initial congestion window.
    pub initial_window: InitialWindow,
    /// Retransmissions of a SYN or SYN-ACK that leave the initial window as it is; after more, it
    /// is one segment. RFC 5681 §3.1 permits none.
    #[serde(default)]
    pub initial_window_retries: u32,
    /// The initial slow-start threshold, in segments.
    pub initial_slow_start_threshold: Limit,
    /// What becomes of the congestion window while it is not used.
    pub idle_restart: IdleRestart,
    /// Whether the congestion window grows only while it limits the sender (RFC 7661 §4.2).
    pub window_validation: bool,
    /// How the congestion window changes.
    pub congestion: Congestion,

    /// Loss detection and repair.
    pub recovery: Recovery,
    /// The retransmission timer.
    pub retransmission_timeout: RetransmissionTimeout,
}

/// The default of `ecn_option_beacon`.
const fn three() -> u32 {
    3
}

/// The window that the receiver offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveBuffer {
    /// The window offered first.
    pub initial: Bytes,
    /// Upper bound of the first offers, in segments. Each segment that arrives in order then adds
    /// two, up to the buffer's size, as in Linux.
    #[serde(default)]
    pub first_offer: Limit,
    /// The largest window that is offered, whatever the buffer is: a window clamp, as
    /// `TCP_WINDOW_CLAMP` of Linux. In contrast to a smaller buffer it leaves the shift of the
    /// window as it is.
    #[serde(default)]
    pub clamp: WindowClamp,
    /// The largest window that is ever offered. The window grows when the application reads more
    /// than half of it in a round trip (dynamic right-sizing, as Linux does). It is constant where
    /// this equals `initial`.
    pub maximum: Bytes,
}

/// When the receiver acknowledges (RFC 9293 §3.8.6.3, RFC 5681 §4.2). Segments that are out of
/// order or fill a gap are always acknowledged immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayedAck {
    /// Upper bound of the delay of an acknowledgement.
    pub timeout: Span,
    /// Lower bound of the delay. Where it is less than `timeout`, the delay is that of Linux: it
    /// follows the inter-arrival times within these bounds, doubles when it expires, and is at most
    /// a round trip. Sub-MSS segments are acknowledged once they are read, except where the two
    /// ends send alternately. A FIN waits for that of this end.
    pub minimum: Span,
    /// Number of segments that one acknowledgement covers at most; 1 turns delaying off.
    pub every: u32,
    /// Whether only full-sized segments count for `every` (RFC 5681 §4.2).
    pub full_sized: bool,
    /// Number of segments at the start that are acknowledged immediately, for a sender in slow
    /// start.
    pub quick: u32,
    /// Whether segments are acknowledged immediately while the offered window grows, so that the
    /// sender learns the new window, as in Linux.
    pub quick_growth: bool,
}

impl DelayedAck {
    /// Whether the delay follows the inter-arrival times.
    pub(crate) const fn is_adaptive(&self) -> bool {
        self.minimum.as_nanos() < self.timeout.as_nanos()
    }
}

/// Congestion-control algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Slow start and congestion avoidance (RFC 5681), with the recovery of RFC 6582 or RFC 6675.
    /// The kernel and iperf3 call it `reno`.
    #[serde(alias = "reno")]
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// TCP Westwood+ (Grieco and Mascolo 2004): NewReno that falls back to the estimated bandwidth
    /// instead of half the window. The kernel calls it `westwood`.
    #[serde(rename = "westwood+", alias = "westwood")]
    Westwood,
    /// WTCP (Sinha et al. 1999): a rate that follows the separation of packets at the receiver. It
    /// needs `pacing` and timestamps.
    Wtcp,
    /// Prague (draft-briscoe-iccrg-prague-congestion-control): a rate that follows the share of
    /// marked segments, for queues of L4S. It needs `accurate_ecn`, and always paces. With a peer
    /// without accurate ECN the connection uses NewReno.
    Prague,
    /// TCP Vegas (Brakmo and Peterson 1995): the window keeps two to four segments in queues.
    Vegas,
    /// BBR, version 1, as in Linux. It always paces, whatever `pacing` is.
    Bbr,
    /// BBR, version 3, as in Google's branch of Linux. It always paces.
    Bbr3,
    /// Copa (Arun and Balakrishnan 2018): a rate that depends on the queueing delay. It always
    /// paces.
    Copa,
    /// LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): background traffic with a queueing delay of
    /// 60 ms at most.
    #[serde(rename = "ledbat++", alias = "ledbatpp")]
    Ledbat,
    /// A constant window: `fixed_window`.
    Fixed,
}

impl Algorithm {
    /// Whether it makes random choices ([`Connection::set_seed`](crate::Connection::set_seed)).
    pub const fn is_random(self) -> bool {
        matches!(self, Self::Bbr | Self::Bbr3)
    }

    /// Whether it sends at a rate of its own, whatever [`Config::pacing`] is.
    pub const fn always_paces(self) -> bool {
        matches!(self, Self::Bbr | Self::Bbr3 | Self::Copa | Self::Prague)
    }

    /// The keys of [`Congestion`] that not all algorithms have, each with those that have it.
    /// Prague has those of NewReno, which it is without accurate ECN.
    pub const KEYS: [(&'static str, &'static [Self]); 14] = {
        const NEW_RENO: &[Algorithm] =
            &[Algorithm::NewReno, Algorithm::Westwood, Algorithm::Vegas, Algorithm::Ledbat, Algorithm::Prague];
        const WINDOW: &[Algorithm] = &[
            Algorithm::NewReno,
            Algorithm::Cubic,
            Algorithm::Westwood,
            Algorithm::Vegas,
            Algorithm::Ledbat,
            Algorithm::Prague,
        ];
        // LEDBAT++ has its own growth.
        const GROWTH: &[Algorithm] =
            &[Algorithm::NewReno, Algorithm::Cubic, Algorithm::Westwood, Algorithm::Vegas, Algorithm::Prague];
        const CUBIC: &[Algorithm] = &[Algorithm::Cubic];
        [
            ("fixed_window", &[Self::Fixed]),
            ("counting", GROWTH),
            ("slow_start_limit", GROWTH),
            ("halving", WINDOW),
            ("halve_to_whole_segments", WINDOW),
            ("least_window", NEW_RENO),
            ("fast_convergence", CUBIC),
            ("reno_friendly", CUBIC),
            ("reno_catch_up", CUBIC),
            ("cubic_growth", CUBIC),
            ("update_interval", CUBIC),
            ("growth_before_loss", CUBIC),
            ("hystart", CUBIC),
            ("bbr3_constants", &[Self::Bbr3]),
        ]
    };
}

/// How the congestion window changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Congestion {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The window of [`Algorithm::Fixed`], in segments.
    pub fixed_window: u32,
    /// Unit in which window growth is counted.
    pub counting: Counting,
    /// Number of segments by which one acknowledgement may open the window in slow start, when
    /// bytes are counted (`L` of RFC 3465 §2.2).
    pub slow_start_limit: Limit,
    /// Quantity that NewReno halves, and CUBIC multiplies by 0.7, on congestion. Westwood+ halves
    /// it until its first sample of the bandwidth.
    pub halving: Halving,
    /// Whether the reduced window is rounded down to whole segments.
    pub halve_to_whole_segments: bool,
    /// The least window, in segments, for a fast recovery of NewReno: 2 as the slow-start threshold
    /// (RFC 5681 §3.1), 1 in ns-2.
    pub least_window: u32,
    /// Whether CUBIC lowers its target after two reductions in a row, to release bandwidth to new
    /// flows (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// Whether CUBIC grows at least as NewReno would (RFC 9438 §4.3).
    pub reno_friendly: bool,
    /// Whether CUBIC, once back at the window before the reduction, grows there as fast as NewReno
    /// and not as NewReno with CUBIC's factor (RFC 9438 §4.3).
    pub reno_catch_up: bool,
    /// How CUBIC follows its curve.
    #[serde(default)]
    pub cubic_growth: CubicGrowth,
    /// Interval for which CUBIC reuses its computed growth rate while the window stays at the same
    /// number of whole segments. Zero computes it for each acknowledgement.
    pub update_interval: Span,
    /// Upper bound of the acknowledged segments per segment of window growth in congestion
    /// avoidance, before CUBIC's first loss.
    pub growth_before_loss: Limit,
    /// Condition that ends CUBIC's slow start before a loss.
    pub hystart: HyStartVariant,
    /// The constants of [`Algorithm::Bbr3`].
    #[serde(default)]
    pub bbr3_constants: Bbr3Constants,
}

/// The source of the constants of BBR, version 3, where its sources differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bbr3Constants {
    /// Google's branch of Linux (`v3` of google/bbr).
    #[default]
    Linux,
    /// draft-ietf-ccwg-bbr-06.
    #[serde(rename = "draft-06")]
    Draft06,
}

/// Unit in which window growth is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Bytes acknowledged (RFC 3465).
    Bytes,
    /// Acknowledgements, whatever they cover: one segment each in slow start, as before RFC 3465.
    Acknowledgements,
}

/// Quantity that is reduced on congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halving {
    /// The outstanding data (RFC 5681 §3.1).
    FlightSize,
    /// The congestion window, or its limit where that is less.
    Window,
}

/// Loss detection and repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// Duplicate acknowledgements, or selectively acknowledged segments, that indicate a loss
    /// (`DupThresh`, RFC 6675 §2).
    pub duplicate_threshold: u32,
    /// Whether the threshold grows when reordering is observed, up to 127 segments, and forward
    /// acknowledgement is then turned off, as in Linux.
    pub adaptive_threshold: bool,
    /// Whether everything further than the threshold below the highest selective acknowledgement is
    /// lost (FACK, Mathis and Mahdavi 1996). Otherwise that much must be acknowledged above a lost
    /// segment.
    pub forward_acknowledgement: bool,
    /// Whether each of the first duplicate acknowledgements releases new data (RFC 3042).
    pub limited_transmit: bool,
    /// When a recovery without selective acknowledgements restarts the retransmission timer.
    pub partial_acks: PartialAcks,
    /// Upper bound of the segments that one acknowledgement releases in a recovery without
    /// selective acknowledgements.
    pub burst: Limit,
    /// Whether a timeout during a recovery lowers the slow-start threshold again, as in ns-2.
    pub timeouts_add_up: bool,
    /// Whether a closed window stops the retransmission timer while data are outstanding, and an
    /// open one retransmits them without a reduction, as in BSD (`tcp_output`). In Linux the timer
    /// expires as usual.
    pub zero_window_freezes: bool,
    /// Whether a loss that an acknowledgement reports with an explicit loss notification leaves the
    /// congestion window as it is (ELN, Balakrishnan and Katz 1998).
    pub loss_notification: bool,
    /// Whether losses are detected by time instead of counts: RACK (RFC 8985 §6). Needs selective
    /// acknowledgements.
    pub rack: bool,
    /// Whether the tail of a flight is probed before the timer expires (TLP, RFC 8985 §7). Needs
    /// selective acknowledgements.
    pub tail_loss_probe: bool,
    /// Whether the window shrinks in proportion to the delivered data (PRR, RFC 6937) instead of in
    /// one step. After a loss, this needs selective acknowledgements; after an ECN echo, it does
    /// not.
    pub proportional_reduction: bool,
    /// Whether spurious timeouts are detected by the next acknowledgements (F-RTO, RFC 5682).
    pub forward_rto: bool,
    /// Whether spurious retransmissions are detected by timestamps (Eifel detection, RFC 3522) and
    /// undone (RFC 4015).
    pub eifel: bool,
    /// Whether spurious retransmissions are detected by DSACK (RFC 3708) and undone.
    pub duplicate_undo: bool,
}

/// When a recovery without selective acknowledgements restarts the retransmission timer (RFC 6582
/// §3.2, §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAcks {
    /// On the first partial acknowledgement only: many losses end in a timeout.
    Impatient,
    /// On each: one loss is repaired per round trip, whatever their number.
    SlowButSteady,
}

/// The retransmission timer (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetransmissionTimeout {
    /// Before the first round-trip measurement.
    pub initial: Span,
    /// Lower bound.
    pub minimum: Span,
    /// Quantity to which `minimum` applies.
    pub floor: Floor,
    /// Upper bound, including back-off.
    pub maximum: Span,
    /// Tick of the clock that measures round trips.
    pub granularity: Span,
    /// Retransmissions of the same data by the timer before the connection is aborted.
    pub retries: u32,
    /// Which round trips are measured.
    pub samples: Samples,
}

/// Quantity to which the lower bound applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Floor {
    /// The timeout (RFC 6298 §2.4).
    Timeout,
    /// Four times the variation, which is added to the smoothed round trip, as in Linux: of the
    /// variations of a round trip the largest counts, and it falls by a quarter of the difference
    /// per round trip (Sarolahti and Kuznetsov, Usenix 2002).
    Variation,
}

/// Which round trips are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Samples {
    /// One for each acknowledgement.
    EveryAck,
    /// The same, and one for selectively acknowledged data where nothing else is acknowledged, as
    /// in Linux. The timer then restarts if the data that arrived was sent before the oldest
    /// outstanding segment.
    EverySack,
    /// One segment at a time, as without timestamps (RFC 6298 §3).
    OneAtATime,
}

/// Settings that contradict each other or are out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tcp settings: `{field}` {problem}")]
pub struct ConfigError {
    /// The setting, with the tables that contain it.
    pub field: &'static str,
    /// What is wrong with it, and what is valid.
    pub problem: &'static str,
}

impl From<&Config> for Arc<Config> {
    fn from(config: &Config) -> Self {
        Self::new(config.clone())
    }
}

impl Config {
    /// The feedback of ECN that it offers.
    pub(crate) const fn ecn_mode(&self) -> EcnMode {
        match (self.ecn, self.accurate_ecn) {
            (false, _) => EcnMode::Off,
            (true, false) => EcnMode::Classic,
            (true, true) => EcnMode::Accurate,
        }
    }

    /// Checks that the settings are valid and consistent.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        let timeout = &self.retransmission_timeout;
        let rules = [
            (self.maximum_segment_size < 64, "maximum_segment_size", "is too small: at least 64 bytes are needed"),
            (self.timestamp_tick.is_zero(), "timestamp_tick", "is zero: a clock needs a tick, such as \"1 ms\""),
            (self.delayed_ack.every == 0, "delayed_ack.every", "is zero: 1 acknowledges each segment immediately"),
            (
                self.delayed_ack.minimum > self.delayed_ack.timeout,
                "delayed_ack.minimum",
                "is longer than `timeout`: make it shorter, or equal for a fixed wait",
            ),
            (
                self.receive_buffer.maximum < self.receive_buffer.initial,
                "receive_buffer.maximum",
                "is less than `initial`: make it larger, or equal for a fixed window",
            ),
            (
                self.receive_buffer.clamp.get().is_some_and(|clamp| clamp.get() < u64::from(self.maximum_segment_size)),
                "receive_buffer.clamp",
                "is less than a segment: make it at least `maximum_segment_size`, or \"unlimited\"",
            ),
            (self.receive_buffer.initial.get() == 0, "receive_buffer.initial", "is zero: nothing could be received"),
            (self.congestion.least_window == 0, "congestion.least_window", "is zero: nothing could be sent"),
            (self.congestion.fixed_window == 0, "congestion.fixed_window", "is zero: nothing could be sent"),
            (
                self.congestion.algorithm == Algorithm::Wtcp && !(self.pacing && self.timestamps),
                "congestion.algorithm",
                "needs `pacing` and `timestamps` for wtcp: set both to true",
            ),
            (
                self.congestion.algorithm == Algorithm::Copa && self.ecn,
                "ecn",
                "has no effect on copa, which does not react to marks: set it to false",
            ),
            (self.accurate_ecn && !self.ecn, "accurate_ecn", "needs `ecn`: set both to true"),
            (
                self.congestion.algorithm == Algorithm::Prague && !self.accurate_ecn,
                "congestion.algorithm",
                "needs `ecn` and `accurate_ecn` for prague: set both to true",
            ),
            (
                self.accurate_ecn && !self.handshake,
                "accurate_ecn",
                "needs `handshake`, which negotiates it: set it to true",
            ),
            (
                !self.accurate_ecn && self.ecn_option != EcnOption::Full,
                "ecn_option",
                "needs `accurate_ecn`: set it to true, or leave out the option",
            ),
            (
                self.ecn_option != EcnOption::Minimum && self.ecn_option_beacon != three(),
                "ecn_option_beacon",
                "needs `ecn_option` = \"minimum\"",
            ),
            (self.recovery.duplicate_threshold == 0, "recovery.duplicate_threshold", "is zero: 3 is usual"),
            (timeout.initial.is_zero(), "retransmission_timeout.initial", "is zero: \"1 s\" is usual"),
            (
                timeout.granularity.is_zero(),
                "retransmission_timeout.granularity",
                "is zero: a clock needs a tick, such as \"1 ms\"",
            ),
            (
                timeout.maximum < timeout.minimum || timeout.maximum < timeout.initial,
                "retransmission_timeout.maximum",
                "is less than `minimum` or `initial`: make it larger",
            ),
        ];
        match rules.into_iter().find(|(broken, ..)| *broken) {
            Some((_, field, problem)) => Err(ConfigError { field, problem }),
            None => Ok(()),
        }
    }
}
