//! The sending half: what is outstanding, how much may be, and what to send next.

mod acknowledge;
mod losses;
mod transmit;

use airpath_core::{Instant, Span};

use crate::config::Config;
use crate::congestion::{CongestionControl, Controller};
use crate::frto::ForwardRto;
use crate::prr::ProportionalReduction;
use crate::rack::Rack;
use crate::rtt::RoundTrip;
use crate::scoreboard::Scoreboard;
use crate::sequence::{FIRST_BYTE, Sequence};
use crate::statistics::Statistics;
use crate::timers::{Timer, Timers, after};
use crate::undo::Episode;

pub use acknowledge::{Acknowledgment, Changes};
pub use transmit::{Cause, Transmission};

/// What the halves of a connection share.
#[derive(Debug)]
pub struct Shared<'a> {
    pub config: &'a Config,
    pub timers: &'a mut Timers,
    pub statistics: &'a mut Statistics,
}

/// Where the sender is in repairing losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// Repairs losses that acknowledgements told of (RFC 6582, RFC 6675).
    FastRecovery,
    /// Repairs losses after a time-out, in slow start.
    Loss,
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender {
    /// The oldest sequence number that is not acknowledged.
    pub acknowledged: Sequence,
    /// The next sequence number to send for the first time.
    pub next: Sequence,
    /// One past the last byte that the application has written.
    written: Sequence,
    /// A FIN follows what was written.
    closing: bool,
    /// One past the highest sequence number that the peer has room for.
    edge: Sequence,
    /// The largest it has ever been (RFC 9293 §3.8.6.2.1).
    largest_window: u64,
    /// Sequence number of the segment that the window was taken from (SND.WL1).
    window_from: Sequence,
    /// Payload of a full segment.
    pub segment_size: u32,
    /// Whether the peer acknowledges selectively.
    pub selective: bool,

    pub scoreboard: Scoreboard,
    pub rtt: RoundTrip,
    pub controller: Controller,
    pub phase: Phase,
    /// The recovery is over when everything below is acknowledged; also, no new one begins below.
    recover: Sequence,
    duplicate_acks: u32,
    /// Bytes that duplicate acknowledgements have let out of the network, where they are not
    /// selective.
    inflation: u64,
    /// The next retransmission goes out whatever the window says.
    urgent: bool,
    /// A partial acknowledgement has come in this recovery.
    partial: bool,
    /// Segments that may still go out before the next acknowledgement.
    burst: u32,
    /// The one retransmission of the last segment that a recovery may make (RFC 6675 §4, rule 4)
    /// was made.
    rescued: bool,
    /// Duplicate acknowledgements that tell of a loss.
    threshold: u32,
    /// Whether losses are told by distance.
    forward: bool,
    prr: Option<ProportionalReduction>,
    rack: Option<Rack>,
    frto: ForwardRto,
    episode: Option<Episode>,
    probe: TailProbe,

    /// The segment whose round trip is being measured, where only one is at a time: its end, and
    /// when it was sent.
    timed: Option<(Sequence, Instant)>,
    /// When data was sent last.
    last_sent: Instant,
    /// When something was acknowledged last.
    pub last_progress: Instant,
    /// Times that the timer went off since.
    pub retries: u32,
    /// Whether the congestion window was what limited the sender lately.
    limited: bool,
    /// Times that a closed window was probed without an answer.
    probes: u32,
    /// Send a probe of the closed window.
    probe_window: bool,
    /// One past the last sequence number of the newest segment that was not full.
    small_end: Sequence,
    /// Send less than a full segment: it has waited long enough (RFC 9293 §3.8.6.2.1).
    override_silly: bool,
    /// When the next segment may go out, with pacing.
    release: Instant,
    pub marks: Marks,
}

/// Tail loss probes (RFC 8985 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TailProbe {
    Idle,
    /// Send one.
    Due,
    /// One was sent; it is over when everything below this is acknowledged.
    Sent {
        end: Sequence,
        repeated: bool,
    },
}

/// The sender's side of ECN (RFC 3168 §6.1.2).
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// Whether both ends understand ECN.
    pub enabled: bool,
    /// Tell the receiver, with the next new data, that the window was reduced.
    pub reduced: bool,
    /// Marks that are echoed before this is acknowledged are of a window that was reduced.
    until: Sequence,
}

impl Sender {
    /// A sender that has not sent its SYN, and knows nothing of its peer.
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
            rack: None,
            frto: ForwardRto::Off,
            episode: None,
            probe: TailProbe::Idle,
            timed: None,
            last_sent: Instant::ZERO,
            last_progress: Instant::ZERO,
            retries: 0,
            limited: false,
            probes: 0,
            probe_window: false,
            small_end: 0,
            override_silly: false,
            release: Instant::ZERO,
            marks: Marks { enabled: false, reduced: false, until: 0 },
        }
    }

    /// The handshake is over: from now on data may be sent. What was agreed is in `segment_size`
    /// and `selective`.
    pub fn open(&mut self, now: Instant, config: &Config, segment_size: u32, selective: bool, ecn: bool) {
        self.acknowledged = FIRST_BYTE;
        self.next = self.next.max(FIRST_BYTE);
        self.segment_size = segment_size;
        self.selective = selective;
        self.marks.enabled = ecn;
        self.rack = (selective && config.recovery.rack).then(Rack::new);
        self.last_progress = now;
        self.last_sent = now;
        if !matches!(self.controller, Controller::Custom(_)) {
            self.controller = Controller::new(config, segment_size);
        }
    }

    /// The application writes `bytes`.
    pub const fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Whether anything was ever written.
    pub const fn has_written(&self) -> bool {
        self.written > FIRST_BYTE
    }

    /// The peer offers this window from the start.
    pub const fn learn_window(&mut self, window: u64) {
        self.edge = FIRST_BYTE + window;
        self.largest_window = window;
    }

    /// A FIN is to follow what was written.
    pub const fn close(&mut self) {
        self.closing = true;
    }

    /// Whether a FIN was asked for.
    pub const fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether the peer has acknowledged everything and the FIN after it.
    #[inline]
    pub const fn is_complete(&self) -> bool {
        self.closing && self.acknowledged > self.written
    }

    /// Whether the peer has acknowledged all but perhaps the FIN.
    pub const fn has_delivered_all(&self) -> bool {
        self.closing && self.acknowledged >= self.written
    }

    /// Bytes of the stream that are acknowledged.
    #[inline]
    pub fn acknowledged_bytes(&self) -> u64 {
        self.acknowledged.min(self.written).saturating_sub(FIRST_BYTE)
    }

    /// Whether something is outstanding or waits to be sent.
    pub const fn has_work(&self) -> bool {
        self.acknowledged < self.written + self.closing as u64
    }

    /// Bytes that are sent and not cumulatively acknowledged.
    #[inline]
    pub const fn outstanding(&self) -> u64 {
        self.next - self.acknowledged
    }

    /// The congestion window in force.
    #[inline]
    pub fn congestion_window(&self) -> u64 {
        self.prr.as_ref().map_or_else(|| self.controller.congestion_window(), ProportionalReduction::window)
    }

    /// Bytes in the network, as far as is known.
    #[inline]
    pub fn in_flight(&self, config: &Config) -> u64 {
        let pipe = self.scoreboard.pipe();
        if self.selective {
            // Without limited transmit, what arrived out of order lets nothing new out (RFC 5681
            // §3.2 step 1).
            let withheld = self.phase == Phase::Open && !config.recovery.limited_transmit;
            return if withheld { pipe + self.scoreboard.sacked_bytes() } else { pipe };
        }
        let inflation = match self.phase {
            Phase::FastRecovery => self.inflation,
            // RFC 3042: the first duplicate acknowledgements let out one segment each.
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

    /// What bounds the window besides congestion.
    fn window_limit(&self, config: &Config) -> u64 {
        self.peer_window().min(config.window_limit.bytes(self.segment_size))
    }

    /// Starts the retransmission timer anew, or stops it where nothing is outstanding (RFC 6298
    /// §5).
    #[inline]
    fn restart_timer(&self, now: Instant, shared: &mut Shared<'_>) {
        if self.scoreboard.is_empty() {
            shared.timers.stop(Timer::Retransmission);
            shared.timers.stop(Timer::TailProbe);
        } else {
            shared.timers.set(Timer::Retransmission, self.rtt.deadline(now, &shared.config.retransmission_timeout));
        }
    }

    /// How long to wait for a segment that is due before it is probed for (RFC 8985 §7.2).
    fn probe_timeout(&self) -> Span {
        /// How long a receiver may keep the acknowledgement of a single segment back.
        const DELAYED_ACK: Span = Span::from_millis(200);
        /// Without a measured round trip.
        const UNKNOWN: Span = Span::from_secs(1);
        self.rtt.smoothed().map_or(UNKNOWN, |smoothed| {
            let single = self.outstanding() <= u64::from(self.segment_size);
            smoothed * 2 + if single { DELAYED_ACK } else { Span::ZERO }
        })
    }

    /// Starts the timer for a tail loss probe where one makes sense: nothing is known to be lost,
    /// and none is under way.
    #[inline]
    fn schedule_probe(&self, now: Instant, shared: &mut Shared<'_>) {
        if !shared.config.recovery.tail_loss_probe || !self.selective {
            return;
        }
        let sensible = self.phase == Phase::Open
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
