//! One end of a connection: the state machine of RFC 9293 around a sending and a receiving half.

mod close;
mod input;
mod opening;
mod output;
mod timeout;

use std::sync::Arc;

use airpath_core::{Context, Direction, Ecn, FlowId, Instant, SegmentInfo, Span, TcpEvent, TcpTrigger};
use airpath_wire::tcp::TcpHeader;
use serde::Serialize;

use crate::config::Config;
use crate::congestion::{CongestionControl, Controller};
use crate::receiver::Receiver;
use crate::segment::Segment;
use crate::sender::{Sender, Shared};
use crate::sequence::to_offset;
use crate::state::{Outcome, State};
use crate::statistics::Statistics;
use crate::timers::Timers;

use opening::Opening;

/// Who a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The flow, for the log.
    pub flow: FlowId,
    /// Which way the data goes that this end sends, for the log.
    pub direction: Direction,
    /// Port of this end.
    pub local_port: u16,
    /// Port of the peer.
    pub remote_port: u16,
    /// Sequence number of the SYN.
    pub initial_sequence: u32,
}

/// One end of a TCP connection, without input, output or a clock.
///
/// The owner gives it the segments that arrive ([`handle_segment`](Self::handle_segment)), calls it
/// when [`next_wakeup`](Self::next_wakeup) has come ([`handle_timeout`](Self::handle_timeout)), and
/// after either, and after [`write`](Self::write), [`read`](Self::read), [`close`](Self::close) or
/// [`abort`](Self::abort), sends all that [`poll_transmit`](Self::poll_transmit) has. Streams are
/// counted, not carried: a segment says which offsets it has.
#[derive(Debug)]
pub struct Connection {
    config: Arc<Config>,
    id: Identity,
    state: State,
    outcome: Option<Outcome>,
    opening: Opening,
    sender: Sender,
    receiver: Receiver,
    timers: Timers,
    statistics: Statistics,
    options: Options,
    /// A reset that is to be sent.
    reset: Option<Reset>,
    /// The latest time that was heard of.
    now: Instant,
    /// When a segment that lies outside of the window may be answered again.
    next_challenge: Instant,
}

/// A reset (RFC 9293 §3.5.2).
#[derive(Clone, Copy, Debug)]
struct Reset {
    sequence: u32,
    acknowledgment: Option<u32>,
}

/// What the two ends agreed on, and what they say with it.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    timestamps: bool,
    /// The timestamp to echo (TS.Recent, RFC 7323 §4.3).
    recent: u32,
    /// Whether windows are scaled, and how: shifts of ours and of the peer's.
    scaling: Option<(u8, u8)>,
    /// The receiver has seen a mark, and tells the sender until that has reacted (RFC 3168 §6.1.3).
    echo_marks: bool,
}

/// What is in force after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Negotiated {
    /// Payload bytes of a full segment.
    pub segment_size: u32,
    /// Whether acknowledgements are selective.
    pub selective_acknowledgement: bool,
    /// Whether segments carry timestamps.
    pub timestamps: bool,
    /// By how many bits the window that this end offers is shifted.
    pub window_scale: u8,
    /// By how many bits the window that the peer offers is shifted.
    pub peer_window_scale: u8,
    /// Whether both ends understand ECN.
    pub ecn: bool,
    /// The congestion control of this end.
    pub congestion_control: &'static str,
}

impl Connection {
    /// Opens a connection: the first [`poll_transmit`](Self::poll_transmit) has the SYN. Many
    /// connections can share one `config`, which then takes the memory and the cache of one.
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
            now: Instant::ZERO,
            next_challenge: Instant::ZERO,
            config,
        };
        if !connection.config.handshake {
            connection.open_without_handshake();
        }
        connection
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
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

    /// Bytes that arrived in order and wait to be read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// Takes `bytes` of those that wait, which makes room in the receive window.
    #[inline]
    pub fn read(&mut self, bytes: u64) {
        // Before the handshake there is nothing to read, and no window to move.
        if bytes == 0 {
            return;
        }
        let announced = u32::from(self.config.maximum_segment_size);
        let update = self.receiver.read(self.now, bytes, announced, self.sender.segment_size);
        if update && self.state.is_synchronised() {
            self.receiver.acks.demand();
        }
    }

    /// Bytes of the peer's stream that arrived in order so far, read or not.
    #[inline]
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Bytes of our stream that the peer has acknowledged.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged_bytes()
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
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What is in force: until the handshake is over, what this end would have without options.
    pub fn negotiated(&self) -> Negotiated {
        let (window_scale, peer_window_scale) = self.options.scaling.unwrap_or((0, 0));
        Negotiated {
            segment_size: self.sender.segment_size,
            selective_acknowledgement: self.sender.selective,
            timestamps: self.options.timestamps,
            window_scale,
            peer_window_scale,
            ecn: self.sender.marks.enabled,
            congestion_control: self.sender.controller.name(),
        }
    }

    /// Puts a congestion control of the caller's in place of the one configured. It keeps to its
    /// own idea of a segment.
    pub fn set_congestion_control(&mut self, controller: Box<dyn CongestionControl>) {
        self.sender.controller = Controller::Custom(controller);
    }

    /// The sending half, with what it shares.
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
        });
    }

    /// Counts everything anew, and compares with what is kept.
    ///
    /// # Panics
    /// If a count is wrong.
    #[cfg(any(test, feature = "testing"))]
    pub fn verify(&self) {
        self.sender.scoreboard.verify(self.sender.acknowledged);
    }
}

/// A segment with nothing but its ports.
fn bare(id: &Identity) -> Segment {
    let header = TcpHeader { source_port: id.local_port, destination_port: id.remote_port, ..TcpHeader::default() };
    Segment { header, length: 0, ecn: Ecn::NotEct, info: SegmentInfo::default() }
}
