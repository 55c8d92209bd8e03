//! The events of a run: one vocabulary for simulator, emulator, proxy and captures.
//!
//! Components report through a [`Context`](crate::Context), which the caller hands to them with
//! each call. Building an event costs nothing when no [`Sink`](crate::Sink) wants its class: the
//! closure given to [`Context::emit`](crate::Context::emit) is then not run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::packet::{Direction, FlowId, Packet, UserId};
use crate::time::Span;
use crate::units::Bytes;

/// A component of the run, counted from zero; the owner of the run has the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u32);

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A packet was sent, queued, delivered, dropped or received.
    Packet(PacketEvent),
    /// The state of a TCP sender after a change.
    Tcp(TcpEvent),
    /// A transmission on the air interface.
    Radio(RadioEvent),
    /// Progress of an application.
    App(AppEvent),
    /// A commanded change of conditions.
    Change(ChangeEvent),
    /// A change in the state of a mobile's radio connection.
    State(StateEvent),
    /// A packet of QUIC that an end sent or declared lost.
    Quic(QuicEvent),
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

/// A packet's steps through the run. Each packet is `Sent` once by an end point; every link on
/// its path reports `Queued`, then `Delivered` or `Dropped`; the other end point reports
/// `Received`.
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
    /// A middlebox created it, with these transport headers: it was not `Sent`.
    Created(Option<SegmentInfo>),
    /// A middlebox took it out of the network: it will not be `Received`.
    Absorbed,
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
            Self::Created(_) => "created",
            Self::Absorbed => "absorbed",
        }
    }
}

/// The TCP header of a packet, in stream offsets: the first data byte is 0 either way; the SYN lies
/// at -1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentInfo {
    /// Stream offset of the first payload byte.
    pub offset: i64,
    /// Payload bytes.
    pub length: u32,
    /// Stream offset that is acknowledged, of the other direction; none without the ACK flag.
    pub ack: OptionalOffset,
    /// Receive window in bytes, after scaling: less than 2³⁰ (RFC 7323 §2.3).
    pub window: u32,
    /// The flag byte of the TCP header (RFC 9293 §3.1): FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32,
    /// ECE 64, CWR 128.
    pub flags: u8,
    /// Whether any of its payload was sent before.
    pub retransmission: bool,
}

/// A stream offset, or none, which is less than all. It has half the size of an `Option`, and each
/// segment has one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Option<i64>", into = "Option<i64>")]
pub struct OptionalOffset(i64);

impl OptionalOffset {
    /// No offset.
    pub const NONE: Self = Self(i64::MIN);

    /// The offset, if there is one.
    #[inline]
    pub const fn get(self) -> Option<i64> {
        if self.0 == Self::NONE.0 { None } else { Some(self.0) }
    }
}

impl Default for OptionalOffset {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Debug for OptionalOffset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(formatter)
    }
}

impl From<i64> for OptionalOffset {
    #[inline]
    fn from(offset: i64) -> Self {
        Self(offset)
    }
}

impl From<Option<i64>> for OptionalOffset {
    #[inline]
    fn from(offset: Option<i64>) -> Self {
        offset.map_or(Self::NONE, Self)
    }
}

impl From<OptionalOffset> for Option<i64> {
    #[inline]
    fn from(offset: OptionalOffset) -> Self {
        offset.get()
    }
}

/// Why a link or bearer lost a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCause {
    /// The queue was full.
    QueueFull,
    /// Active queue management dropped it to signal congestion.
    QueueManagement,
    /// A policer dropped it: it exceeded the rate and the burst.
    Policer,
    /// Lost in transmission: the loss model of a link.
    Loss,
    /// The radio gave up: all attempts that the link layer allows have failed.
    AttemptsExhausted,
    /// Too large for the link.
    TooBig,
    /// It was in a buffer that a handover discarded.
    Handover,
    /// Header compression had lost step: the headers came out wrong (RFC 1144 §4).
    Decompression,
    /// Its discard timer expired before it was sent (PDCP, TS 36.323 §5.4) or delivered (RLC, TS
    /// 25.322 §9.7.3.1).
    Discarded,
}

impl DropCause {
    /// All causes, in the order of [`PacketCounters::dropped`](crate::PacketCounters::dropped).
    pub const ALL: [Self; 9] = [
        Self::QueueFull,
        Self::QueueManagement,
        Self::Policer,
        Self::Loss,
        Self::AttemptsExhausted,
        Self::TooBig,
        Self::Handover,
        Self::Decompression,
        Self::Discarded,
    ];

    /// The name under which it is logged.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::QueueManagement => "queue-management",
            Self::Policer => "policer",
            Self::Loss => "loss",
            Self::AttemptsExhausted => "attempts-exhausted",
            Self::TooBig => "too-big",
            Self::Handover => "handover",
            Self::Decompression => "decompression",
            Self::Discarded => "discarded",
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
    /// Pacing rate in bit/s; `None` unless the congestion control has one.
    pub pacing_rate: Option<u64>,
    /// Factor of the pacing rate on the bandwidth of the model, in 256ths; `None` unless the
    /// congestion control has one (BBR).
    pub pacing_gain: Option<u32>,
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
    /// The last reduction was found to be spurious and taken back.
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

/// A packet of QUIC that an end sent, or declared lost (RFC 9002 §6). Several may share a datagram
/// (RFC 9000 §12.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicEvent {
    /// The flow.
    pub flow: FlowId,
    /// Number of the connection in its flow.
    pub connection: u32,
    /// The direction in which the packet goes.
    pub direction: Direction,
    /// The step.
    pub step: QuicStep,
    /// The type, which selects the space of its number.
    pub packet_type: QuicPacketType,
    /// Its packet number.
    pub number: u64,
}

/// A step of a packet of QUIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuicStep {
    /// An end sent it.
    Sent {
        /// [`Packet::id`] of its datagram.
        packet: u64,
        /// Bytes of the packet.
        size: u32,
        /// Its frames; `None` if they are encrypted.
        frames: Option<String>,
    },
    /// The end that had sent it declared it lost.
    Lost,
}

impl QuicStep {
    /// The name under which it is logged.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Sent { .. } => "sent",
            Self::Lost => "lost",
        }
    }
}

/// The types of numbered packets of QUIC (RFC 9000 §17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum QuicPacketType {
    /// Initial.
    #[serde(rename = "initial")]
    Initial,
    /// Handshake.
    #[serde(rename = "handshake")]
    Handshake,
    /// 0-RTT.
    #[serde(rename = "0RTT")]
    ZeroRtt,
    /// 1-RTT.
    #[serde(rename = "1RTT")]
    OneRtt,
}

impl QuicPacketType {
    /// All types, in the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Initial, Self::Handshake, Self::ZeroRtt, Self::OneRtt];

    /// The name under which it is logged: that of qlog.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Handshake => "handshake",
            Self::ZeroRtt => "0RTT",
            Self::OneRtt => "1RTT",
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
    /// Blocks with control messages in it and since the user's last event of this direction (GPRS).
    pub control: u16,
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
    /// The last byte is acknowledged at the sender.
    Acknowledged,
    /// A ping came back, or a datagram arrived: its number and how long it took.
    Arrived {
        /// Counted from zero.
        sequence: u32,
        /// Round trip of a ping, one-way delay of a datagram.
        delay: Span,
    },
    /// A talk spurt of a call begins to be played out: the number of its first frame, and the time
    /// from mouth to ear.
    Playout {
        /// Counted from zero.
        sequence: u32,
        /// From the begin of a frame at the talker to that at the listener.
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
            Self::Playout { .. } => "playout",
            Self::Aborted => "aborted",
        }
    }
}

/// A command that changed the conditions of a bearer while it ran.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeEvent {
    /// What kind of change it is.
    pub kind: ChangeKind,
    /// The direction that was named.
    pub direction: Option<Direction>,
    /// The mobile that was named.
    pub user: Option<UserId>,
    /// How long nothing is sent because of it; `None` if it is no interruption.
    pub duration: Option<Span>,
    /// The whole command in its written form, a JSON object from which it can be read again.
    pub change: String,
}

/// What a command changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// Nothing is sent for a time.
    Outage,
    /// Nothing is sent while the mobile moves to another cell.
    Handover,
    /// The rate of a link.
    Rate,
    /// The loss process of a link.
    Loss,
    /// The delay of a link.
    Delay,
    /// The error probability of a radio channel's blocks.
    Bler,
    /// What a TTI of a radio channel carries.
    Channels,
    /// The C/I level of a mobile.
    Level,
    /// The class of C/I levels of a mobile.
    Class,
    /// The carrier-to-interference ratio of a mobile.
    CarrierToInterference,
    /// Where a mobile is and how it moves.
    Environment,
}

impl ChangeKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 11] = [
        Self::Outage,
        Self::Handover,
        Self::Rate,
        Self::Loss,
        Self::Delay,
        Self::Bler,
        Self::Channels,
        Self::Level,
        Self::Class,
        Self::CarrierToInterference,
        Self::Environment,
    ];

    /// The name under which it is written and logged.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outage => "outage",
            Self::Handover => "handover",
            Self::Rate => "rate",
            Self::Loss => "loss",
            Self::Delay => "delay",
            Self::Bler => "bler",
            Self::Channels => "channels",
            Self::Level => "level",
            Self::Class => "class",
            Self::CarrierToInterference => "ci",
            Self::Environment => "environment",
        }
    }
}

/// One aspect of a mobile's radio connection has a new value, which holds until the next event of
/// the same user, direction and aspect. Bearers report each aspect that they have at the first
/// activity of a mobile, and then only changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StateEvent {
    /// The mobile.
    pub user: UserId,
    /// The direction that it concerns; `None` if it is the mobile's as a whole.
    pub direction: Option<Direction>,
    /// What has a new value.
    pub aspect: Aspect,
    /// The value.
    pub value: StateValue,
}

/// What of a mobile has a state: of its radio connection, or of its proxy. Each is a track.
/// [`state`](crate::state) has the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Aspect {
    /// What the mobile does as a whole: a [`ModeState`](crate::ModeState).
    Mode,
    /// The serving cell: its number.
    Cell,
    /// Carrier-to-interference or signal-to-noise ratio: a number, in decibels.
    CarrierToInterference,
    /// Level of the serving cell over the noise of the receiver: a number, in decibels.
    Level,
    /// Coding scheme, or transport format: its name.
    Scheme,
    /// Timeslots, codes, channels or resource blocks that are assigned: their number.
    Slots,
    /// The temporary block flow of GPRS: a [`TbfState`](crate::TbfState).
    Tbf,
    /// The RRC state of UMTS or LTE: an [`RrcState`](crate::RrcState) or an
    /// [`LteRrcState`](crate::LteRrcState).
    Rrc,
    /// The cell group that carries the downlink in EN-DC: a
    /// [`CellGroupState`](crate::CellGroupState).
    CellGroup,
    /// Discontinuous reception of LTE: a [`DrxState`](crate::DrxState).
    Drx,
    /// Why data of a direction waits in LTE and NR: a [`WaitState`](crate::WaitState).
    Wait,
    /// Hybrid ARQ of a direction in LTE, NR and NB-IoT: a [`HarqState`](crate::HarqState).
    Harq,
    /// The acknowledged link of data link control (RLP, RLC): a [`LinkState`](crate::LinkState).
    Link,
    /// Bytes that may be unacknowledged towards the mobile behind a proxy: a number.
    Budget,
    /// Bytes that are unacknowledged there: a number.
    Outstanding,
    /// Bytes that wait there: a number.
    Queue,
}

impl Aspect {
    /// All aspects, in the order of their declaration.
    pub const ALL: [Self; 16] = [
        Self::Mode,
        Self::Cell,
        Self::CarrierToInterference,
        Self::Level,
        Self::Scheme,
        Self::Slots,
        Self::Tbf,
        Self::Rrc,
        Self::CellGroup,
        Self::Drx,
        Self::Wait,
        Self::Harq,
        Self::Link,
        Self::Budget,
        Self::Outstanding,
        Self::Queue,
    ];

    /// The name under which it is logged.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Cell => "cell",
            Self::CarrierToInterference => "carrier-to-interference",
            Self::Level => "level",
            Self::Scheme => "scheme",
            Self::Slots => "slots",
            Self::Tbf => "tbf",
            Self::Rrc => "rrc",
            Self::CellGroup => "cell-group",
            Self::Drx => "drx",
            Self::Wait => "wait",
            Self::Harq => "harq",
            Self::Link => "link",
            Self::Budget => "budget",
            Self::Outstanding => "outstanding",
            Self::Queue => "queue",
        }
    }
}

/// The value of an [`Aspect`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StateValue {
    /// One of a few names.
    Name(&'static str),
    /// A number, in the unit of the aspect.
    Number(f64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_are_in_order() {
        for (index, trigger) in TcpTrigger::ALL.into_iter().enumerate() {
            assert_eq!(index, trigger as usize, "the order of ALL is that of the declaration");
        }
        for (index, aspect) in Aspect::ALL.into_iter().enumerate() {
            assert_eq!(index, aspect as usize, "the order of ALL is that of the declaration");
        }
        for (index, kind) in ChangeKind::ALL.into_iter().enumerate() {
            assert_eq!(index, kind as usize, "the order of ALL is that of the declaration");
        }
    }
}
