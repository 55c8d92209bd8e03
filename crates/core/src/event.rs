//! What happens, in one vocabulary, whatever made it: simulator, emulator, proxy or capture.
//!
//! Components report through a [`Cx`], which the caller hands to them with each call. Building an
//! event costs nothing when no [`Sink`] wants its class: the closure given to [`Cx::emit`] is then
//! not run.

use crate::packet::{Direction, FlowId, Packet, UserId};
use crate::time::{Instant, Span};
use crate::units::Bytes;

/// A component of the run, counted from zero; the run's maker keeps the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u16);

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A packet was sent, queued, delivered, dropped or received.
    Packet(PacketEvent),
    /// The state of a TCP sender after something changed it.
    Tcp(TcpEvent),
    /// A transmission on the air interface.
    Radio(RadioEvent),
    /// Progress of an application.
    App(AppEvent),
}

/// What happened to a packet at a component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketEvent {
    /// The step.
    pub step: PacketStep,
    /// Which way the packet was going.
    pub direction: Direction,
    /// The packet.
    pub packet: Packet,
}

/// A packet's steps through the run. Each packet is `Sent` once by an end point; every link on its
/// way reports `Queued`, then `Delivered` or `Dropped`; the other end point reports `Received`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PacketStep {
    /// An end point sent it, with these transport headers.
    Sent(Option<SegmentInfo>),
    /// A link or bearer took it; what waits there now, this packet included.
    Queued {
        /// Packets waiting.
        backlog_packets: u32,
        /// Bytes waiting.
        backlog_bytes: u64,
    },
    /// It left the link or bearer.
    Delivered,
    /// It was lost there.
    Dropped(DropCause),
    /// An end point received it.
    Received,
}

impl PacketStep {
    /// The name under which it is logged.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent(_) => "sent",
            Self::Queued { .. } => "queued",
            Self::Delivered => "delivered",
            Self::Dropped(_) => "dropped",
            Self::Received => "received",
        }
    }
}

/// The TCP header of a packet, in stream offsets: the first data byte is 0 either way; the SYN lies at -1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Stream offset of the first payload byte.
    pub offset: i64,
    /// Payload bytes.
    pub length: u32,
    /// Stream offset that is acknowledged, of the other direction; `None` without the ACK flag.
    pub ack: Option<i64>,
    /// Receive window in bytes, after scaling.
    pub window: u64,
    /// The flag byte of the TCP header (RFC 9293 §3.1): FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
    pub flags: u8,
    /// Whether any of its payload was sent before.
    pub retransmission: bool,
}

/// Why a link or bearer lost a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCause {
    /// The queue was full.
    QueueFull,
    /// Active queue management dropped it to signal congestion.
    QueueManagement,
    /// Lost in transmission: the loss model of a link.
    Loss,
    /// The radio gave up: all attempts that the link layer allows have failed.
    AttemptsExhausted,
    /// Too large for the link.
    TooBig,
}

impl DropCause {
    /// All causes, in the order of [`Tally::dropped`].
    pub const ALL: [Self; 5] =
        [Self::QueueFull, Self::QueueManagement, Self::Loss, Self::AttemptsExhausted, Self::TooBig];

    /// The name under which it is logged.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::QueueManagement => "queue-management",
            Self::Loss => "loss",
            Self::AttemptsExhausted => "attempts-exhausted",
            Self::TooBig => "too-big",
        }
    }
}

/// State of a TCP sender, reported after each change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpEvent {
    /// The flow.
    pub flow: FlowId,
    /// The direction in which this sender's data goes.
    pub direction: Direction,
    /// What brought the change.
    pub trigger: TcpTrigger,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Slow-start threshold in bytes; `None` while it is unlimited.
    pub slow_start_threshold: Option<u64>,
    /// Bytes sent and not yet known to have left the network (the pipe of RFC 6675).
    pub in_flight: u64,
    /// Bytes sent and not cumulatively acknowledged.
    pub outstanding: u64,
    /// The window that the receiver offers, in bytes.
    pub peer_window: u64,
    /// Stream offset of the oldest byte that is not acknowledged.
    pub acknowledged: i64,
    /// The round trip that this event measured, if it did.
    pub round_trip: Option<Span>,
    /// Smoothed round trip; `None` before the first sample.
    pub smoothed_round_trip: Option<Span>,
    /// Retransmission time-out in force, back-off included.
    pub retransmission_timeout: Span,
}

/// What changed a TCP sender's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TcpTrigger {
    /// The handshake is over.
    Established,
    /// An acknowledgement came in.
    Ack,
    /// Loss was detected from acknowledgements; recovery begins.
    FastRetransmit,
    /// Recovery is over.
    RecoveryEnd,
    /// The retransmission timer went off.
    Timeout,
    /// A tail loss probe was sent (RFC 8985 §7).
    TailProbe,
    /// The last reduction was found to be needless and taken back.
    Undo,
    /// The receiver's window is closed and was probed.
    WindowProbe,
    /// The network signalled congestion by ECN.
    CongestionExperienced,
    /// The connection ended.
    Closed,
}

impl TcpTrigger {
    /// All triggers, in the order of their declaration.
    pub const ALL: [Self; 10] = [
        Self::Established,
        Self::Ack,
        Self::FastRetransmit,
        Self::RecoveryEnd,
        Self::Timeout,
        Self::TailProbe,
        Self::Undo,
        Self::WindowProbe,
        Self::CongestionExperienced,
        Self::Closed,
    ];

    /// The name under which it is logged.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Established => "established",
            Self::Ack => "ack",
            Self::FastRetransmit => "fast-retransmit",
            Self::RecoveryEnd => "recovery-end",
            Self::Timeout => "timeout",
            Self::TailProbe => "tail-probe",
            Self::Undo => "undo",
            Self::WindowProbe => "window-probe",
            Self::CongestionExperienced => "congestion-experienced",
            Self::Closed => "closed",
        }
    }
}

/// One transmission on the air interface: what one user sends or gets in one TTI. Its time is the
/// beginning of the TTI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioEvent {
    /// Which way.
    pub direction: Direction,
    /// Whose.
    pub user: UserId,
    /// Length of the TTI.
    pub duration: Span,
    /// PDUs sent in it.
    pub pdus: u16,
    /// Of these, sent for the second or a later time.
    pub repeated: u16,
    /// Of all PDUs, not decoded by the receiver.
    pub errored: u16,
    /// RLC bytes sent, padding included.
    pub bytes: u32,
    /// C/I level, CQI or coding scheme that was in force; 0 where the bearer has none.
    pub level: u8,
}

/// All transmissions on the air of one user in one direction: the sum of its [`RadioEvent`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioTotals {
    /// TTIs in which the user sent or was sent to.
    pub ttis: u64,
    /// PDUs in them.
    pub pdus: u64,
    /// Of these, sent for the second or a later time.
    pub repeated: u64,
    /// Of all PDUs, not decoded by the receiver.
    pub errored: u64,
    /// RLC bytes sent, padding included.
    pub bytes: u64,
}

impl RadioTotals {
    /// Counts one transmission.
    #[inline]
    pub fn add(&mut self, event: &RadioEvent) {
        self.ttis += 1;
        self.pdus += u64::from(event.pdus);
        self.repeated += u64::from(event.repeated);
        self.errored += u64::from(event.errored);
        self.bytes += u64::from(event.bytes);
    }
}

/// Progress of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppEvent {
    /// The flow.
    pub flow: FlowId,
    /// The step.
    pub step: AppStep,
    /// Bytes delivered to the receiving application so far.
    pub delivered: Bytes,
}

/// Steps of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppStep {
    /// The flow started.
    Started,
    /// Its connection is open.
    Connected,
    /// The server has got the whole request.
    Requested,
    /// The first byte reached the receiving application.
    FirstByte,
    /// The last byte reached the receiving application.
    Finished,
    /// The sender knows that the last byte arrived.
    Acknowledged,
    /// A ping came back, or a datagram arrived: its number and how long it took.
    Arrived {
        /// Counted from zero.
        sequence: u32,
        /// Round trip of a ping, one-way delay of a datagram.
        delay: Span,
    },
    /// The flow ended without success.
    Aborted,
}

impl AppStep {
    /// The name under which it is logged.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Connected => "connected",
            Self::Requested => "requested",
            Self::FirstByte => "first-byte",
            Self::Finished => "finished",
            Self::Acknowledged => "acknowledged",
            Self::Arrived { .. } => "arrived",
            Self::Aborted => "aborted",
        }
    }
}

/// A set of event classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes(u8);

impl Classes {
    /// No events.
    pub const NONE: Self = Self(0);
    /// [`Event::Packet`].
    pub const PACKET: Self = Self(1);
    /// [`Event::Tcp`].
    pub const TCP: Self = Self(2);
    /// [`Event::Radio`].
    pub const RADIO: Self = Self(4);
    /// [`Event::App`].
    pub const APP: Self = Self(8);
    /// All events.
    pub const ALL: Self = Self(15);

    /// The classes of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any class of `other` is in this set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Takes the events of a run as they happen.
///
/// The events of one kind, for one user and direction at one component, come in the order of their
/// times. Others need not, because what sleeps reports late, with the exact times.
pub trait Sink {
    /// The classes that this sink takes; constant for its life.
    fn wants(&self) -> Classes;
    /// Takes one event of a wanted class.
    fn record(&mut self, time: Instant, at: ComponentId, event: &Event);
}

/// Keeps all events in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// What happened: when, where, what.
    pub events: Vec<(Instant, ComponentId, Event)>,
}

impl Sink for Memory {
    fn wants(&self) -> Classes {
        Classes::ALL
    }
    fn record(&mut self, time: Instant, at: ComponentId, event: &Event) {
        self.events.push((time, at, *event));
    }
}

/// A packet that was lost: its maker takes back what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropped {
    /// When it was lost.
    pub time: Instant,
    /// The packet.
    pub packet: Packet,
    /// Why.
    pub cause: DropCause,
}

/// The surroundings of a call into a component: where its events and lost packets go.
pub struct Cx<'a> {
    sink: Option<&'a mut dyn Sink>,
    wants: Classes,
    dropped: &'a mut Vec<Dropped>,
    /// The component that is being called.
    pub at: ComponentId,
    /// The direction on whose behalf it is called; set by bearers for the links inside them.
    pub direction: Direction,
}

impl<'a> Cx<'a> {
    /// A context that reports to `sink`, if any, and collects lost packets in `dropped`.
    #[inline]
    pub fn new(sink: Option<&'a mut dyn Sink>, dropped: &'a mut Vec<Dropped>, at: ComponentId) -> Self {
        let wants = sink.as_ref().map_or(Classes::NONE, |sink| sink.wants());
        Self { sink, wants, dropped, at, direction: Direction::Down }
    }

    /// Whether anyone wants events of `class`.
    #[inline]
    pub fn wants(&self, class: Classes) -> bool {
        self.wants.intersects(class)
    }

    /// Reports that a TCP sender changed.
    #[inline]
    pub fn tcp(&mut self, time: Instant, event: impl FnOnce() -> TcpEvent) {
        self.emit(Classes::TCP, time, || Event::Tcp(event()));
    }

    /// Reports a transmission on the air.
    #[inline]
    pub fn radio(&mut self, time: Instant, event: impl FnOnce() -> RadioEvent) {
        self.emit(Classes::RADIO, time, || Event::Radio(event()));
    }

    /// Reports progress of an application.
    #[inline]
    pub fn app(&mut self, time: Instant, event: impl FnOnce() -> AppEvent) {
        self.emit(Classes::APP, time, || Event::App(event()));
    }

    /// Reports a packet's step.
    #[inline]
    pub fn packet(&mut self, time: Instant, packet: Packet, step: impl FnOnce() -> PacketStep) {
        let direction = self.direction;
        self.emit(Classes::PACKET, time, || Event::Packet(PacketEvent { step: step(), direction, packet }));
    }

    /// Reports that `packet` was lost, and hands it back to its maker.
    #[inline]
    pub fn drop_packet(&mut self, time: Instant, packet: Packet, cause: DropCause) {
        self.packet(time, packet, || PacketStep::Dropped(cause));
        self.dropped.push(Dropped { time, packet, cause });
    }

    /// Reports an event of `class`; `event` is run only if someone listens.
    #[inline]
    pub fn emit(&mut self, class: Classes, time: Instant, event: impl FnOnce() -> Event) {
        if self.wants.intersects(class)
            && let Some(sink) = self.sink.as_mut()
        {
            sink.record(time, self.at, &event());
        }
    }
}

/// Packets and bytes through one direction of a link or bearer. At any time
/// `offered = delivered + dropped + queued`, in packets and in bytes: see [`Tally::is_conserved`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pushed.
    pub offered: Count,
    /// Popped.
    pub delivered: Count,
    /// Lost, by cause, in the order of [`DropCause::ALL`].
    pub dropped: [Count; DropCause::ALL.len()],
    /// Still inside: waiting, in transmission or on the way.
    pub queued: Count,
}

impl Tally {
    /// What was lost for whatever cause.
    pub fn dropped_total(&self) -> Count {
        self.dropped.iter().fold(Count::default(), |sum, count| Count {
            packets: sum.packets + count.packets,
            bytes: sum.bytes + count.bytes,
        })
    }

    /// The conservation law.
    pub fn is_conserved(&self) -> bool {
        let lost = self.dropped_total();
        self.offered.packets == self.delivered.packets + lost.packets + self.queued.packets
            && self.offered.bytes == self.delivered.bytes + lost.bytes + self.queued.bytes
    }

    /// Counts a packet in.
    #[inline]
    pub fn offer(&mut self, packet: &Packet) {
        self.offered.add(packet);
        self.queued.add(packet);
    }

    /// Counts a packet out at the far end.
    #[inline]
    pub fn deliver(&mut self, packet: &Packet) {
        self.queued.take(packet);
        self.delivered.add(packet);
    }

    /// Takes back a delivery: the packet is still inside after all.
    #[inline]
    pub fn recall(&mut self, packet: &Packet) {
        self.delivered.take(packet);
        self.queued.add(packet);
    }

    /// Counts a packet out as lost.
    #[inline]
    pub fn lose(&mut self, packet: &Packet, cause: DropCause) {
        self.queued.take(packet);
        self.dropped[cause as usize].add(packet);
    }
}

/// The tally of several paths together.
impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        let sum = |a: &mut Count, b: Count| {
            a.packets += b.packets;
            a.bytes += b.bytes;
        };
        sum(&mut self.offered, other.offered);
        sum(&mut self.delivered, other.delivered);
        sum(&mut self.queued, other.queued);
        for (mine, others) in self.dropped.iter_mut().zip(other.dropped) {
            sum(mine, others);
        }
    }
}

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, IP headers included.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }

    fn take(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, Slot};

    fn packet(id: u64, size: u32) -> Packet {
        Packet { id, size, flow: FlowId(0), user: UserId(0), ecn: Ecn::NotEct, slot: Slot(0) }
    }

    #[test]
    fn nothing_is_built_when_nobody_listens() {
        let mut dropped = Vec::new();
        let mut cx = Cx::new(None, &mut dropped, ComponentId(0));
        cx.packet(Instant::ZERO, packet(1, 1500), || panic!("built for nobody"));
        cx.drop_packet(Instant::ZERO, packet(1, 1500), DropCause::Loss);
        assert_eq!(dropped.len(), 1, "a lost packet goes back to its maker all the same");
    }

    #[test]
    fn a_sink_gets_only_what_it_wants() {
        struct OnlyApp(u32);
        impl Sink for OnlyApp {
            fn wants(&self) -> Classes {
                Classes::APP
            }
            fn record(&mut self, _: Instant, _: ComponentId, event: &Event) {
                assert!(matches!(event, Event::App(_)));
                self.0 += 1;
            }
        }
        let (mut sink, mut dropped) = (OnlyApp(0), Vec::new());
        let mut cx = Cx::new(Some(&mut sink), &mut dropped, ComponentId(0));
        cx.packet(Instant::ZERO, packet(1, 40), || PacketStep::Received);
        cx.app(Instant::ZERO, || AppEvent { flow: FlowId(0), step: AppStep::Started, delivered: Bytes::ZERO });
        assert_eq!(sink.0, 1);
    }

    #[test]
    fn the_tally_conserves() {
        let mut tally = Tally::default();
        for id in 0..3 {
            tally.offer(&packet(id, 100));
        }
        tally.deliver(&packet(0, 100));
        tally.lose(&packet(1, 100), DropCause::Loss);
        assert!(tally.is_conserved());
        assert_eq!((tally.queued.packets, tally.dropped_total().bytes), (1, 100));
        let mut both = tally;
        both += tally;
        assert!(both.is_conserved());
        assert_eq!((both.offered.packets, both.dropped_total().bytes), (6, 200));
        for (index, cause) in DropCause::ALL.into_iter().enumerate() {
            assert_eq!(index, cause as usize, "the order of ALL is that of the counters");
        }
    }

    #[test]
    fn all_triggers_are_in_order() {
        for (index, trigger) in TcpTrigger::ALL.into_iter().enumerate() {
            assert_eq!(index, trigger as usize, "the order of ALL is that of the declaration");
        }
    }
}
