//! One end of a connection: the state machine of RFC 9293 around a sending and a receiving half.

mod close;
mod icmp;
mod info;
mod input;
mod opening;
mod output;
mod timeout;

use std::sync::{Arc, LazyLock};

use airpath_core::{Bitrate, Context, Direction, Ecn, FlowId, Instant, SegmentInfo, Span, TcpEvent, TcpTrigger};
use airpath_wire::tcp::TcpHeader;
use serde::{Deserialize, Serialize};

use crate::accurate_ecn::option::{ByteCounters, EcnOption};
use crate::accurate_ecn::{EcnMode, MarkCounter};
use crate::config::Config;
use crate::congestion::{CongestionControl, Controller};
use crate::profile::Profile;
use crate::receiver::{AcceptedPayload, Receiver};
use crate::segment::Segment;
use crate::sender::{Sender, Shared};
use crate::sequence::to_offset;
use crate::state::{Outcome, State};
use crate::statistics::Statistics;
use crate::timers::Timers;

pub use info::{CongestionState, ConnectionInfo};
use opening::Opening;

/// Identity of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The flow, for the log.
    pub flow: FlowId,
    /// Direction of the data that this end sends, for the log.
    pub direction: Direction,
    /// Port of this end.
    pub local_port: u16,
    /// Port of the peer.
    pub remote_port: u16,
    /// Sequence number of the SYN.
    pub initial_sequence: u32,
}

/// One end of a TCP connection, without I/O or a clock.
///
/// The owner passes in the segments that arrive ([`handle_segment`](Self::handle_segment)) and
/// calls [`handle_timeout`](Self::handle_timeout) at [`next_wakeup`](Self::next_wakeup). After
/// either, and after [`write`](Self::write), [`read`](Self::read), [`close`](Self::close) or
/// [`abort`](Self::abort), it sends every segment that [`poll_transmit`](Self::poll_transmit)
/// returns. Streams are counted, not carried: a segment has stream offsets instead of payload.
///
/// The serialised form has the whole state, to continue the connection in another process. It lacks
/// what connections share: the settings and a congestion control of the caller, which
/// [`Self::restore`] and [`Self::set_congestion_control`] set again.
///
/// Fields are ordered by use, and the struct is aligned to a cache line: thousands of connections
/// exceed the cache, and the cost of a packet is the number of lines that it touches.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Connection {
    /// The latest time passed in by the caller.
    now: Instant,
    #[serde(skip, default = "unrestored")]
    config: Arc<Config>,
    outcome: Option<Outcome>,
    state: State,
    /// The application has closed the receive window ([`Connection::close_window`]).
    window_closed: bool,
    /// Acknowledgements that announce the open window, still to be sent.
    announcements: u8,
    options: Options,
    id: Identity,
    timers: Timers,
    opening: Opening,
    receiver: Receiver,
    statistics: Statistics,
    sender: Sender,
    /// A reset to send.
    reset: Option<Reset>,
    /// Earliest time of the next challenge ACK (RFC 5961).
    next_challenge: Instant,
    /// The seed of the random choices of the congestion control.
    seed: u64,
}

/// A reset (RFC 9293 §3.5.2).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Reset {
    sequence: u32,
    acknowledgment: Option<u32>,
    /// Whether it ends a connection, and has its timestamps.
    ends: bool,
}

/// Options that both ends agreed on, with their state.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Options {
    timestamps: bool,
    /// The timestamp to echo (TS.Recent, RFC 7323 §4.3).
    recent: u32,
    /// When it was last set.
    recent_at: Instant,
    /// The shifts of this end and of the peer, with window scaling.
    scaling: Option<(u8, u8)>,
    /// The receiver has seen a CE mark, and echoes it until the sender reacts (RFC 3168 §6.1.3).
    echo_marks: bool,
    /// The packets with marks that arrived, with accurate feedback.
    marks: MarkCounter,
    /// The ECN field of the peer's SYN or SYN-ACK, until it is reported.
    handshake_field: Option<Ecn>,
    /// The bytes that arrived, for the AccECN option.
    bytes: ByteCounters,
    /// Header bytes that full segments leave for the AccECN option.
    reserved: u8,
    /// No segment of the peer but its SYN-ACK has arrived: the first must have a field that is not
    /// zero.
    awaits_feedback: bool,
}

/// Settings in force after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Negotiated {
    /// Payload bytes of a full segment.
    pub segment_size: u32,
    /// Whether acknowledgements are selective.
    pub selective_acknowledgement: bool,
    /// Whether segments carry timestamps.
    pub timestamps: bool,
    /// Shift of the window that this end offers.
    pub window_scale: u8,
    /// Shift of the window that the peer offers.
    pub peer_window_scale: u8,
    /// Whether both ends use ECN.
    pub ecn: bool,
    /// Whether its feedback is accurate (RFC 9768).
    pub accurate_ecn: bool,
    /// The congestion control of this end.
    pub congestion_control: &'static str,
}

impl Connection {
    /// Opens a connection: the first [`poll_transmit`](Self::poll_transmit) returns the SYN. Many
    /// connections can share one `config`, which saves memory and cache.
    ///
    /// # Panics
    /// If `config` does not pass [`Config::check`].
    pub fn connect(config: impl Into<Arc<Config>>, id: Identity, now: Instant) -> Self {
        let mut connection = Self::new(config.into(), id, State::SynSent);
        connection.now = now;
        if connection.config.handshake {
            connection.opening.begin();
        }
        connection
    }

    /// Waits for a peer to open a connection.
    ///
    /// # Panics
    /// If `config` does not pass [`Config::check`].
    pub fn listen(config: impl Into<Arc<Config>>, id: Identity) -> Self {
        Self::new(config.into(), id, State::Listen)
    }

    fn new(config: Arc<Config>, id: Identity, state: State) -> Self {
        if let Err(error) = config.check() {
            panic!("{error}");
        }
        let mut connection = Self {
            id,
            state,
            outcome: None,
            opening: Opening::new(),
            sender: Sender::new(&config, u32::from(config.maximum_segment_size)),
            receiver: Receiver::new(&config),
            timers: Timers::default(),
            statistics: Statistics::default(),
            options: Options::default(),
            reset: None,
            window_closed: false,
            announcements: 0,
            now: Instant::ZERO,
            next_challenge: Instant::ZERO,
            seed: u64::from(id.flow.0) << 32 | u64::from(id.local_port) << 16 | u64::from(id.remote_port),
            config,
        };
        if !connection.config.handshake {
            connection.open_without_handshake();
        }
        connection
    }

    /// Completes a deserialised connection: `config` has the settings of the original, and `flow`
    /// is its number from now on.
    pub fn restore(&mut self, config: Arc<Config>, flow: FlowId) {
        self.config = config;
        self.id.flow = flow;
    }

    /// Seeds the random choices of the congestion control, before the connection opens. By default
    /// they depend on the flow's number and the ports.
    pub const fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// The delivery rate as Linux reports it (`tcpi_delivery_rate`): that of the last sample that
    /// was not application-limited, or of a later one that was higher. `None` if the congestion
    /// control does not use it.
    pub fn delivery_rate(&self) -> Option<Bitrate> {
        self.sender.scoreboard.rate.as_ref()?.rate(self.sender.segment_size)
    }

    /// The pacing rate of the congestion control, if it has one.
    pub fn pacing_rate(&self) -> Option<Bitrate> {
        self.sender.controller.pacing_rate()
    }

    /// Time of the next call of [`handle_timeout`](Self::handle_timeout).
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Appends `bytes` to the stream that this end sends.
    ///
    /// # Panics
    /// If the stream was closed before.
    pub fn write(&mut self, bytes: u64) {
        assert!(!self.sender.is_closing(), "nothing can be written after the end of the stream");
        let size = u64::from(self.sender.segment_size);
        let rounds = self.config.whole_segments && bytes >= size;
        self.sender.write(if rounds { bytes.next_multiple_of(size) } else { bytes });
    }

    /// Bounds the window that this end offers from now on. Before the handshake, the first offer is
    /// bounded, too.
    pub fn bound_receive_window(&mut self, bytes: u64) {
        if self.state.is_synchronised() {
            self.receiver.window.set_bound(bytes);
        } else {
            self.receiver.window.set_first_bound(bytes);
        }
    }

    /// From now on this end offers a window of zero, or again its own: Freeze-TCP (Goff et al.,
    /// INFOCOM 2000). What arrives in the window offered before is accepted. Three acknowledgements
    /// announce that the window is open again, as in public summaries of the paper.
    pub const fn close_window(&mut self, closed: bool) {
        self.announcements = if self.window_closed && !closed { 3 } else { 0 };
        self.window_closed = closed;
    }

    /// Bytes that arrived in order and are unread.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// Reads `bytes` of the readable bytes, which frees space in the receive window.
    #[inline]
    pub fn read(&mut self, bytes: u64) {
        // Before the handshake there are no data and no window.
        if bytes == 0 {
            return;
        }
        let update = self.receiver.read(self.now, bytes, self.sender.segment_size);
        if update && self.state.is_synchronised() {
            self.receiver.acks.demand();
        }
    }

    /// Bytes of the peer's stream that arrived in order so far, read or not.
    #[inline]
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Bytes of this end's stream that the peer has acknowledged.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged_bytes()
    }

    /// The part of the payload of the last segment that the receiver accepted, in order or not: the
    /// owner of the payload stores it by its offset.
    pub fn accepted_payload(&self) -> Option<AcceptedPayload> {
        self.receiver.accepted_payload()
    }

    /// Bytes of this end's stream that were sent and acknowledged neither cumulatively nor
    /// selectively; SYN and FIN count.
    pub const fn unacknowledged(&self) -> u64 {
        self.sender.outstanding() - self.sender.scoreboard.sacked_bytes()
    }

    /// Bytes of this end's stream that were written and not sent.
    pub const fn unsent(&self) -> u64 {
        self.sender.unsent()
    }

    /// Bytes beyond those sent that the peer's window allows.
    pub const fn usable_window(&self) -> u64 {
        self.sender.peer_window().saturating_sub(self.sender.outstanding())
    }

    /// Payload bytes of a full segment.
    pub const fn segment_size(&self) -> u32 {
        self.sender.segment_size
    }

    /// The smoothed round trip; `None` before the first measurement.
    pub fn smoothed_round_trip(&self) -> Option<Span> {
        self.sender.rtt.smoothed()
    }

    /// Whether all of the peer's stream and its FIN have arrived.
    #[inline]
    pub fn peer_closed(&self) -> bool {
        self.receiver.is_complete()
    }

    /// The state.
    #[inline]
    pub const fn state(&self) -> State {
        self.state
    }

    /// How the connection ended, if it has.
    #[inline]
    pub const fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// The counters of this end.
    #[inline]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The settings of this end.
    pub const fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The settings in force; before the handshake is complete, those of this end without options.
    pub fn negotiated(&self) -> Negotiated {
        let (window_scale, peer_window_scale) = self.options.scaling.unwrap_or((0, 0));
        Negotiated {
            segment_size: self.sender.segment_size,
            selective_acknowledgement: self.sender.selective,
            timestamps: self.options.timestamps,
            window_scale,
            peer_window_scale,
            ecn: self.sender.marks.mode != EcnMode::Off,
            accurate_ecn: self.sender.marks.mode == EcnMode::Accurate,
            congestion_control: self.sender.controller.name(),
        }
    }

    /// Replaces the configured congestion control by the caller's. The new controller does not
    /// receive the negotiated segment size. If the connection is open,
    /// [`CongestionControl::on_established`] is called at once.
    pub fn set_congestion_control(&mut self, controller: Box<dyn CongestionControl>) {
        self.sender.controller = Controller::Custom(controller);
        self.sender.serve_controller(self.now, &self.config);
        if self.opening.is_over() {
            self.sender.controller.on_established(self.now, self.sender.rtt.smoothed(), self.seed);
        }
    }

    /// The [state](CongestionControl::state) of the caller's congestion control; `None` if there is
    /// none.
    pub fn congestion_control_state(&self) -> Option<u64> {
        match &self.sender.controller {
            Controller::Custom(controller) => controller.state(),
            _ => None,
        }
    }

    /// Whether this end uses the AccECN option: it sends it when it is due.
    #[inline]
    fn has_ecn_option(&self) -> bool {
        self.sender.marks.mode == EcnMode::Accurate
            && self.config.ecn_option != EcnOption::Never
            && self.sender.marks.peer_bytes.is_seen()
    }

    /// The sending half, with the state that it shares.
    #[inline]
    fn sending(&mut self) -> (&mut Sender, Shared<'_>) {
        let shared = Shared { config: &self.config, timers: &mut self.timers, statistics: &mut self.statistics };
        (&mut self.sender, shared)
    }

    /// Reports a change of the sending half.
    #[inline]
    fn report(&self, now: Instant, trigger: TcpTrigger, round_trip: Option<Span>, cx: &mut Context<'_>) {
        cx.tcp(now, || TcpEvent {
            flow: self.id.flow,
            direction: self.id.direction,
            trigger,
            congestion_window: self.sender.congestion_window(),
            slow_start_threshold: self.sender.controller.slow_start_threshold(),
            in_flight: self.sender.in_flight(&self.config),
            outstanding: self.sender.outstanding(),
            peer_window: self.sender.peer_window(),
            acknowledged: to_offset(self.sender.acknowledged),
            round_trip,
            smoothed_round_trip: self.sender.rtt.smoothed(),
            retransmission_timeout: self.sender.rtt.timeout(&self.config.retransmission_timeout),
            pacing_rate: self.sender.controller.pacing_rate().map(Bitrate::as_bps),
            pacing_gain: self.sender.controller.pacing_gain(),
        });
    }

    /// Recomputes every count, and compares it with the stored one.
    ///
    /// # Panics
    /// If a count is wrong.
    #[cfg(any(test, feature = "testing"))]
    pub fn verify(&self) {
        self.sender.scoreboard.verify(self.sender.acknowledged);
    }
}

/// The settings of a deserialised connection until [`Connection::restore`].
fn unrestored() -> Arc<Config> {
    static CONFIG: LazyLock<Arc<Config>> = LazyLock::new(|| Arc::new(Profile::Linux6.config()));
    Arc::clone(&CONFIG)
}

/// A segment with only its ports set.
fn bare(id: &Identity) -> Segment {
    let header = TcpHeader { source_port: id.local_port, destination_port: id.remote_port, ..TcpHeader::default() };
    Segment { header, length: 0, ecn: Ecn::NotEct, info: SegmentInfo::default() }
}
