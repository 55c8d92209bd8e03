//! The sending half: outstanding data, its limits, and what to send next.

mod acknowledge;
mod losses;
mod pacing;
mod transmit;

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use crate::accurate_ecn::option::PeerBytes;
use crate::accurate_ecn::{EcnMode, PeerMarks};
use crate::config::Config;
use crate::congestion::{CongestionControl, Controller};
use crate::frto::ForwardRto;
use crate::prr::ProportionalReduction;
use crate::rack::Rack;
use crate::rate::RateEstimator;
use crate::rtt::RoundTrip;
use crate::scoreboard::Scoreboard;
use crate::sequence::{FIRST_BYTE, Sequence};
use crate::statistics::Statistics;
use crate::timers::{Timer, Timers, after};
use crate::undo::Episode;

use pacing::Pacer;

pub use acknowledge::{Acknowledgment, Changes};
pub use transmit::{Cause, Transmission};

/// State shared by the halves of a connection.
#[derive(Debug)]
pub struct Shared<'a> {
    pub config: &'a Config,
    pub timers: &'a mut Timers,
    pub statistics: &'a mut Statistics,
}

/// Phase of loss repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// No losses detected.
    Open,
    /// Repairs losses detected from acknowledgements (RFC 6582, RFC 6675).
    FastRecovery,
    /// Repairs losses after a timeout, in slow start.
    Loss,
}

/// The sending half of a connection. Fields are ordered by use, as those of the connection: an
/// acknowledgement that arrives while nothing is outstanding touches two cache lines.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Sender {
    /// The oldest unacknowledged sequence number.
    pub acknowledged: Sequence,
    /// The next sequence number to send for the first time.
    pub next: Sequence,
    /// One past the last byte that the application has written.
    written: Sequence,
    /// One past the highest sequence number that the peer's window allows.
    edge: Sequence,
    /// The largest peer window so far (RFC 9293 §3.8.6.2.1).
    largest_window: u64,
    /// Sequence number of the segment that set the window (SND.WL1).
    window_from: Sequence,
    /// Payload of a full segment.
    pub segment_size: u32,
    /// Segments that may still be sent before the next acknowledgement.
    burst: u32,
    /// Unanswered probes of a closed window.
    probes: u32,
    /// Expiries of the timer since `last_progress`.
    pub retries: u32,

    pub phase: Phase,
    /// Nothing is outstanding, and the last acknowledgement left nothing to do but to take the
    /// peer's window from the next.
    settled: bool,
    /// A FIN follows the written data.
    closing: bool,
    /// Whether the peer acknowledges selectively.
    pub selective: bool,
    /// The next retransmission ignores the window.
    urgent: bool,
    /// A partial acknowledgement has arrived in this recovery.
    partial: bool,
    /// The rescue retransmission of a recovery (RFC 6675 §4, rule 4) was sent.
    rescued: bool,
    /// Whether losses are detected by distance (FACK).
    forward: bool,
    /// The last acknowledgement reports a loss that was not congestion (ELN).
    notified: bool,
    /// This recovery has not reduced the window: its losses were not congestion.
    unreduced: bool,
    /// Whether an undo restores the window: no mark required the last reduction.
    restorable: bool,
    /// How much of the congestion window was used recently.
    usage: WindowUsage,
    /// That the application does not use it.
    underuse: Underuse,
    /// New data was sent since the last time that nothing more could be sent.
    sent_new: bool,
    /// The peer closed its window while data were outstanding, and the timer is stopped.
    frozen: bool,
    /// A probe of the closed window is due.
    probe_window: bool,
    /// A sub-MSS segment may be sent: it has waited long enough (RFC 9293 §3.8.6.2.1).
    override_silly: bool,
    /// Whether segments are paced.
    paces: bool,
    /// Probes of the window since it was closed, answered or not.
    probed: u8,
    duplicate_acks: u32,
    /// Duplicate acknowledgements that indicate a loss.
    threshold: u32,
    pub marks: EcnState,
    /// Time of the last acknowledgement of new data.
    pub last_progress: Instant,
    /// Time of the first retransmission since none was outstanding (`retrans_stamp` of Linux).
    first_repeat: Option<Instant>,

    pub scoreboard: Scoreboard,
    /// The recovery ends when everything below is acknowledged; no new one begins below it.
    recover: Sequence,
    /// Bytes that have left the network by duplicate acknowledgements, without SACK.
    inflation: u64,
    /// The segment whose round trip is being measured, where only one is at a time: its end and its
    /// send time.
    timed: Option<(Sequence, Instant)>,

    pub rtt: RoundTrip,
    /// Time of the last data transmission.
    last_sent: Instant,
    rack: Option<Rack>,
    /// The reduction in progress: in a fast recovery, or after a mark.
    prr: Option<ProportionalReduction>,
    probe: TailProbe,
    episode: Option<Episode>,
    /// One past the last sequence number of the newest sub-MSS segment.
    small_end: Sequence,
    pacer: Pacer,
    frto: ForwardRto,
    pub controller: Controller,
}

/// Tail loss probes (RFC 8985 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum TailProbe {
    Idle,
    /// A probe is due.
    Due,
    /// A probe was sent; the episode ends when everything below this is acknowledged.
    Sent {
        end: Sequence,
        repeated: bool,
    },
}

/// How much of the congestion window is used, as Linux tracks it (`tcp_cwnd_validate`): the
/// strongest signal of the last window of data.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct WindowUsage {
    /// Whether the window limited the sender (`is_cwnd_limited`).
    limited: bool,
    /// The most segments outstanding (`max_packets_out`).
    most: u64,
    /// The signal holds until everything below is acknowledged (`cwnd_usage_seq`).
    end: Sequence,
}

/// A time in which the application does not use the whole congestion window.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Underuse {
    /// The most segments outstanding (`snd_cwnd_used`).
    most: u64,
    /// Since when, or since when the window was last reduced (`snd_cwnd_stamp`).
    since: Instant,
}

/// ECN state of the sender (RFC 3168 §6.1.2).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EcnState {
    /// The feedback that both ends use.
    pub mode: EcnMode,
    /// Whether segments are ECN-capable; the path may not pass the feedback.
    pub capable: bool,
    /// The marks that the peer has reported, with accurate feedback.
    pub peer: PeerMarks,
    /// The bytes that the peer has reported in AccECN options.
    pub peer_bytes: PeerBytes,
    /// Set CWR on the next new data: the window was reduced.
    pub reduced: bool,
    /// The window was reduced because of a mark, and nothing above `until` is acknowledged yet (the
    /// state CWR of Linux).
    reducing: bool,
    /// ECN echoes up to the acknowledgement of this number belong to a window that was already
    /// reduced.
    until: Sequence,
}

impl Sender {
    /// A sender before its SYN, without information on its peer.
    pub fn new(config: &Config, segment_size: u32) -> Self {
        Self {
            acknowledged: 0,
            next: 0,
            written: FIRST_BYTE,
            closing: false,
            edge: FIRST_BYTE,
            largest_window: 0,
            window_from: 0,
            segment_size,
            selective: false,
            scoreboard: Scoreboard::default(),
            rtt: RoundTrip::new(),
            controller: Controller::new(config, segment_size),
            phase: Phase::Open,
            settled: false,
            recover: 0,
            duplicate_acks: 0,
            inflation: 0,
            urgent: false,
            partial: false,
            burst: 0,
            rescued: false,
            threshold: config.recovery.duplicate_threshold,
            forward: config.recovery.forward_acknowledgement,
            prr: None,
            notified: false,
            unreduced: false,
            rack: None,
            frto: ForwardRto::Off,
            episode: None,
            first_repeat: None,
            restorable: false,
            probe: TailProbe::Idle,
            timed: None,
            last_sent: Instant::ZERO,
            last_progress: Instant::ZERO,
            retries: 0,
            usage: WindowUsage::default(),
            underuse: Underuse::default(),
            sent_new: false,
            probes: 0,
            probed: 0,
            frozen: false,
            probe_window: false,
            small_end: 0,
            override_silly: false,
            paces: config.pacing,
            pacer: Pacer::new(),
            marks: EcnState {
                mode: EcnMode::Off,
                capable: false,
                peer: PeerMarks::default(),
                peer_bytes: PeerBytes::default(),
                reduced: false,
                reducing: false,
                until: 0,
            },
        }
    }

    /// The handshake is complete: data may be sent. `segment_size`, `selective` and `ecn` are the
    /// negotiated values.
    pub fn open(&mut self, now: Instant, config: &Config, segment_size: u32, selective: bool, ecn: EcnMode) {
        self.acknowledged = FIRST_BYTE;
        self.next = self.next.max(FIRST_BYTE);
        self.segment_size = segment_size;
        self.selective = selective;
        self.marks.mode = ecn;
        self.marks.capable = ecn != EcnMode::Off;
        self.rack = (selective && config.recovery.rack).then(Rack::new);
        self.last_progress = now;
        self.last_sent = now;
        if !matches!(self.controller, Controller::Custom(_)) {
            self.controller = Controller::for_feedback(config, segment_size, ecn);
        }
        self.serve_controller(now, config);
    }

    /// The controller was replaced: a controller that takes over needs rate samples and pacing.
    pub fn serve_controller(&mut self, now: Instant, config: &Config) {
        let takes_over = self.controller.takes_over();
        self.paces = config.pacing || takes_over;
        let outstanding = self.scoreboard.len();
        self.scoreboard.rate = takes_over.then(|| Box::new(RateEstimator::new(now, outstanding)));
    }

    /// The application writes `bytes`.
    pub fn write(&mut self, bytes: u64) {
        let size = u64::from(self.segment_size);
        let pipe = self.scoreboard.pipe();
        let unused = self.unsent() < size && !self.scoreboard.needs_repair();
        if let Some(rate) = &mut self.scoreboard.rate
            && unused
            && pipe < self.controller.congestion_window()
        {
            rate.limit_by_application(pipe.div_ceil(size));
        }
        self.written += bytes;
    }

    /// Bytes that are written and not sent.
    pub const fn unsent(&self) -> u64 {
        self.written.saturating_sub(if self.next > FIRST_BYTE { self.next } else { FIRST_BYTE })
    }

    /// Whether anything was ever written.
    pub const fn has_written(&self) -> bool {
        self.written > FIRST_BYTE
    }

    /// Sets the peer's initial window.
    pub const fn set_initial_peer_window(&mut self, window: u64) {
        self.edge = FIRST_BYTE + window;
        self.largest_window = window;
    }

    /// A FIN follows the written data.
    pub const fn close(&mut self) {
        self.closing = true;
    }

    /// Whether the stream is closed.
    pub const fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether the peer has acknowledged all data and the FIN.
    #[inline]
    pub const fn is_complete(&self) -> bool {
        self.closing && self.acknowledged > self.written
    }

    /// Whether the peer has acknowledged all data; the FIN may be outstanding.
    pub const fn has_delivered_all(&self) -> bool {
        self.closing && self.acknowledged >= self.written
    }

    /// Bytes of the stream that are acknowledged.
    #[inline]
    pub fn acknowledged_bytes(&self) -> u64 {
        self.acknowledged.min(self.written).saturating_sub(FIRST_BYTE)
    }

    /// Whether data is outstanding or unsent.
    #[inline]
    pub const fn has_work(&self) -> bool {
        self.acknowledged < self.written + self.closing as u64
    }

    /// Bytes that are sent and not cumulatively acknowledged.
    #[inline]
    pub const fn outstanding(&self) -> u64 {
        self.next - self.acknowledged
    }

    /// Duplicate acknowledgements since the last progress.
    pub fn duplicates(&self) -> u64 {
        u64::from(self.duplicate_acks)
    }

    /// Duplicate acknowledgements that indicate a loss.
    pub const fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Whether the window shrinks because of an ECN echo.
    pub const fn is_reducing(&self) -> bool {
        self.marks.reducing
    }

    /// Whether reordering was observed.
    pub fn has_seen_reordering(&self) -> bool {
        self.rack.as_ref().is_some_and(Rack::has_seen_reordering)
    }

    /// The congestion window in force.
    #[inline]
    pub fn congestion_window(&self) -> u64 {
        self.prr.as_ref().map_or_else(|| self.controller.congestion_window(), ProportionalReduction::window)
    }

    /// Bytes in flight, as estimated from the acknowledgements.
    #[inline]
    pub fn in_flight(&self, config: &Config) -> u64 {
        let pipe = self.scoreboard.pipe();
        if self.selective {
            // Without limited transmit, data that arrived out of order releases no new data (RFC
            // 5681 §3.2 step 1).
            let withheld = self.phase == Phase::Open && !config.recovery.limited_transmit;
            return if withheld { pipe + self.scoreboard.sacked_bytes() } else { pipe };
        }
        let inflation = match self.phase {
            Phase::FastRecovery => self.inflation,
            // RFC 3042: each of the first duplicate acknowledgements releases one segment.
            _ if config.recovery.limited_transmit => {
                u64::from(self.duplicate_acks.min(self.threshold.saturating_sub(1))) * u64::from(self.segment_size)
            }
            _ => 0,
        };
        pipe.saturating_sub(inflation)
    }

    /// The window that the peer offers.
    #[inline]
    pub const fn peer_window(&self) -> u64 {
        self.edge.saturating_sub(self.acknowledged)
    }

    /// Upper bound of the window besides congestion.
    fn window_limit(&self, config: &Config) -> u64 {
        self.peer_window().min(config.window_limit.bytes(self.segment_size))
    }

    /// Restarts the retransmission timer, or stops it where nothing is outstanding (RFC 6298 §5).
    #[inline]
    fn restart_timer(&self, now: Instant, shared: &mut Shared<'_>) {
        if self.scoreboard.is_empty() || self.frozen {
            shared.timers.stop(Timer::Retransmission);
            shared.timers.stop(Timer::TailProbe);
        } else {
            shared.timers.set(Timer::Retransmission, self.rtt.deadline(now, &shared.config.retransmission_timeout));
        }
    }

    /// The probe timeout, PTO (RFC 8985 §7.2).
    fn probe_timeout(&self) -> Span {
        /// Longest delay of an acknowledgement by the receiver (WCDelAckT).
        const DELAYED_ACK: Span = Span::from_millis(200);
        /// Before the first measured round trip.
        const UNKNOWN: Span = Span::from_secs(1);
        self.rtt.smoothed().map_or(UNKNOWN, |smoothed| {
            let single = self.outstanding() <= u64::from(self.segment_size);
            smoothed * 2 + if single { DELAYED_ACK } else { Span::ZERO }
        })
    }

    /// Starts the timer for a tail loss probe, unless losses are being repaired or a probe is in
    /// flight.
    #[inline]
    fn schedule_probe(&self, now: Instant, shared: &mut Shared<'_>) {
        if !shared.config.recovery.tail_loss_probe || !self.selective {
            return;
        }
        let sensible = self.phase == Phase::Open
            && !self.frozen
            && self.probe == TailProbe::Idle
            && self.scoreboard.sacked_bytes() == 0
            && !self.scoreboard.is_empty();
        if sensible {
            let due = after(now, self.probe_timeout()).min(shared.timers.at(Timer::Retransmission));
            shared.timers.set(Timer::TailProbe, due);
        } else {
            shared.timers.stop(Timer::TailProbe);
        }
    }
}
