//! Every detail of an end point that can be set. A [`Profile`](crate::Profile) fills them all in.

mod choice;
mod limit;

use std::sync::Arc;

use airpath_core::{Bytes, Span};
use serde::{Deserialize, Serialize};

pub use choice::{EarlyExit, Nagle};
pub use limit::{InitialWindow, Limit};

/// The settings of an end point. Serialises as a table with every detail, so that a result can say
/// what was on.
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
    /// Whether connections are opened and closed by an exchange of SYN and FIN (RFC 9293 §3.5,
    /// §3.6). Without it, both ends are established from the start and know each other's settings;
    /// they must then be given equal settings and equal initial sequence numbers, and closing sends
    /// nothing.
    pub handshake: bool,
    /// Without a handshake: whether an end sends one segment without payload, and waits for its
    /// acknowledgement, before its first data, as the one-way agents of ns-2 do (`syn_`).
    pub opening_segment: bool,
    /// How often a SYN is sent again before the attempt is given up.
    pub opening_retries: u32,
    /// How long TIME-WAIT lasts (RFC 9293 §3.6.1: twice the maximum segment lifetime).
    pub time_wait: Span,

    /// Largest payload of a segment without options, in bytes, as announced in the SYN (RFC 9293
    /// §3.7.1). Options that a segment carries are taken from it.
    pub maximum_segment_size: u16,
    /// Whether what is written is rounded up to whole segments, as by a sender that counts packets.
    /// A single write of less than one segment stays as it is, so that a short request in the other
    /// direction stays short.
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

    /// How the receiver offers its window.
    pub receive_buffer: ReceiveBuffer,
    /// When the receiver acknowledges.
    pub delayed_ack: DelayedAck,

    /// The most that may be outstanding, in segments, whatever the windows say.
    pub window_limit: Limit,
    /// Whether a segment that is not full waits for outstanding data to be acknowledged.
    pub nagle: Nagle,
    /// Whether segments are spread over the round trip instead of sent in bursts: at twice the
    /// congestion window per smoothed round trip in slow start and 1.2 times in congestion
    /// avoidance, as Linux does, unless the congestion control names a rate.
    pub pacing: bool,

    /// The congestion window at the start.
    pub initial_window: InitialWindow,
    /// The slow-start threshold at the start, in segments.
    pub initial_slow_start_threshold: Limit,
    /// Whether the congestion window falls back to the initial window after an idle time of one
    /// retransmission time-out (RFC 5681 §4.1).
    pub idle_restart: bool,
    /// Whether the congestion window grows only while it is what limits the sender (RFC 7661 §4.2).
    pub window_validation: bool,
    /// How the congestion window moves.
    pub congestion: Congestion,

    /// How losses are found and repaired.
    pub recovery: Recovery,
    /// When the retransmission timer goes off.
    pub retransmission_timeout: RetransmissionTimeout,
}

/// How the receiver offers its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveBuffer {
    /// The window offered at the start.
    pub initial: Bytes,
    /// The most that is offered at first, in segments; each segment that arrives in order then adds
    /// two, up to the buffer's size, as in Linux.
    #[serde(default)]
    pub first_offer: Limit,
    /// The largest window that is ever offered. The window grows when the application reads more
    /// than half of it in a round trip (dynamic right-sizing, as Linux does); where this equals
    /// `initial`, it does not.
    pub maximum: Bytes,
}

/// When the receiver acknowledges (RFC 9293 §3.8.6.3, RFC 5681 §4.2). Segments out of order, or
/// that fill a gap, are acknowledged at once in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayedAck {
    /// The longest that an acknowledgement waits.
    pub timeout: Span,
    /// The shortest that it waits: where this is less than `timeout`, the wait follows the gaps
    /// between arrivals within these bounds, as in Linux.
    pub minimum: Span,
    /// An acknowledgement is sent at the latest with every so many segments; 1 turns delaying off.
    pub every: u32,
    /// Whether only full-sized segments count for `every` (RFC 5681 §4.2), not each.
    pub full_sized: bool,
    /// How many segments at the start are acknowledged at once, while the sender is in slow start.
    pub quick: u32,
    /// Whether segments are acknowledged at once while the window that is offered grows, so that
    /// the sender hears of it, as in Linux.
    pub quick_growth: bool,
}

/// Congestion-control algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Slow start and congestion avoidance (RFC 5681), with the recovery of RFC 6582 or RFC 6675.
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// A window that does not move: `fixed_window`.
    Fixed,
}

/// How the congestion window moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Congestion {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The window of [`Algorithm::Fixed`], in segments.
    pub fixed_window: u32,
    /// What the growth of the window counts.
    pub counting: Counting,
    /// By how many segments one acknowledgement may open the window in slow start, when bytes are
    /// counted (`L` of RFC 3465 §2.2).
    pub slow_start_limit: Limit,
    /// What NewReno halves, and CUBIC reduces to 0.7 times, on congestion.
    pub halving: Halving,
    /// Whether the reduced window is rounded down to whole segments.
    pub halve_to_whole_segments: bool,
    /// The least window, in segments, with which NewReno goes through a fast recovery: 2 as the
    /// slow-start threshold (RFC 5681 §3.1), 1 in ns-2.
    pub least_window: u32,
    /// Whether CUBIC gives way to new flows by lowering its target after two reductions in a row
    /// (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// Whether CUBIC grows at least as NewReno would (RFC 9438 §4.3).
    pub reno_friendly: bool,
    /// Whether CUBIC, once it is back at the window before the reduction, grows as fast there as
    /// NewReno itself and not as NewReno with CUBIC's factor would (RFC 9438 §4.3).
    pub reno_catch_up: bool,
    /// For so long CUBIC keeps the pace of growth that it has computed, while the window stays at
    /// the same whole segments; with zero it computes it with each acknowledgement.
    pub update_interval: Span,
    /// Before a loss has shown CUBIC what the path holds, the window grows in congestion avoidance
    /// by at least a segment for each so many that are acknowledged.
    pub growth_before_loss: Limit,
    /// What ends CUBIC's slow start before a loss does.
    pub hystart: EarlyExit,
}

/// What the growth of the window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Bytes acknowledged (RFC 3465).
    Bytes,
    /// Acknowledgements, whatever they cover: one segment each in slow start, as before RFC 3465.
    Acknowledgements,
}

/// What is halved on congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halving {
    /// The outstanding data (RFC 5681 §3.1).
    FlightSize,
    /// The congestion window, or the limit on it where that is less.
    Window,
}

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// Duplicate acknowledgements, or segments acknowledged selectively, that tell of a loss
    /// (`DupThresh`, RFC 6675 §2).
    pub duplicate_threshold: u32,
    /// Whether the threshold grows when the path is seen to reorder, up to 127 segments, and
    /// forward acknowledgement is then turned off, as in Linux.
    pub adaptive_threshold: bool,
    /// Whether all that lies the threshold below the highest selective acknowledgement is taken for
    /// lost (FACK, Mathis and Mahdavi 1996), and not only what has that much acknowledged above it.
    pub forward_acknowledgement: bool,
    /// Whether the first duplicate acknowledgements let new data out (RFC 3042).
    pub limited_transmit: bool,
    /// When the retransmission timer is restarted in a recovery without selective acknowledgements.
    pub partial_acks: PartialAcks,
    /// The most segments that one acknowledgement lets out in a recovery without selective
    /// acknowledgements.
    pub burst: Limit,
    /// Whether a time-out in a recovery that is not over lowers the slow-start threshold again, as
    /// in ns-2.
    pub timeouts_add_up: bool,
    /// Whether losses are told by time instead of counts: RACK (RFC 8985 §6). Needs selective
    /// acknowledgements.
    pub rack: bool,
    /// Whether the last segments of a flight are probed before the timer (TLP, RFC 8985 §7). Needs
    /// selective acknowledgements.
    pub tail_loss_probe: bool,
    /// Whether the window shrinks in proportion to what is delivered (PRR, RFC 6937), not at once.
    /// Needs selective acknowledgements.
    pub proportional_reduction: bool,
    /// Whether spurious time-outs are told by what is acknowledged next (F-RTO, RFC 5682).
    pub forward_rto: bool,
    /// Whether spurious retransmissions are told by timestamps (Eifel detection, RFC 3522), and
    /// taken back (RFC 4015).
    pub eifel: bool,
    /// Whether spurious retransmissions are told by reports of duplicates (RFC 3708), and taken
    /// back.
    pub duplicate_undo: bool,
}

/// When a recovery without selective acknowledgements restarts the retransmission timer (RFC 6582
/// §3.2, §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAcks {
    /// With the first partial acknowledgement only: many losses end in a time-out.
    Impatient,
    /// With each: one loss is repaired a round trip, however many there are.
    SlowButSteady,
}

/// When the retransmission timer goes off (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetransmissionTimeout {
    /// Before the first round trip is measured.
    pub initial: Span,
    /// The least.
    pub minimum: Span,
    /// What the minimum bounds.
    pub floor: Floor,
    /// The most, back-off included.
    pub maximum: Span,
    /// The clock that measures round trips: a measurement counts its ticks.
    pub granularity: Span,
    /// How often the same data is sent again by the timer before the connection is given up.
    pub retries: u32,
    /// Which round trips are measured.
    pub samples: Samples,
}

/// What the least retransmission time-out bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Floor {
    /// The time-out (RFC 6298 §2.4).
    Timeout,
    /// What is added to the smoothed round trip, four times the variation, as in Linux.
    Variation,
}

/// Which round trips are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Samples {
    /// That of each acknowledgement.
    EveryAck,
    /// The same, and that of what is acknowledged selectively where nothing else is, as in Linux;
    /// the timer then starts anew if what arrived was sent before the oldest segment that did not.
    EverySack,
    /// One segment at a time, as without timestamps (RFC 6298 §3).
    OneAtATime,
}

/// Settings that contradict each other or make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tcp settings: `{field}` {problem}")]
pub struct ConfigError {
    /// The setting, with the tables it is in.
    pub field: &'static str,
    /// What is wrong with it, and what would do.
    pub problem: &'static str,
}

impl From<&Config> for Arc<Config> {
    fn from(config: &Config) -> Self {
        Self::new(config.clone())
    }
}

impl Config {
    /// Whether a connection can be made with these settings.
    ///
    /// # Errors
    /// The first setting that cannot be.
    pub fn check(&self) -> Result<(), ConfigError> {
        let timeout = &self.retransmission_timeout;
        let rules = [
            (self.maximum_segment_size < 64, "maximum_segment_size", "is too small: at least 64 bytes are needed"),
            (self.timestamp_tick.is_zero(), "timestamp_tick", "is no time: a clock needs a tick, such as \"1 ms\""),
            (self.delayed_ack.every == 0, "delayed_ack.every", "is zero: 1 acknowledges each segment at once"),
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
            (self.receive_buffer.initial.get() == 0, "receive_buffer.initial", "is zero: nothing could be received"),
            (self.congestion.least_window == 0, "congestion.least_window", "is zero: nothing could be sent"),
            (self.congestion.fixed_window == 0, "congestion.fixed_window", "is zero: nothing could be sent"),
            (self.recovery.duplicate_threshold == 0, "recovery.duplicate_threshold", "is zero: 3 is usual"),
            (timeout.initial.is_zero(), "retransmission_timeout.initial", "is no time: \"1 s\" is usual"),
            (
                timeout.granularity.is_zero(),
                "retransmission_timeout.granularity",
                "is no time: a clock needs a tick, such as \"1 ms\"",
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
