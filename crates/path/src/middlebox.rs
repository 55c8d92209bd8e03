//! Middleboxes: hops that may absorb, hold, rewrite and create packets.
//!
//! A middlebox keeps the contracts of every bearer (see [`airpath_link`]): time is a parameter,
//! calls are monotone in it, all that happens inside up to `now` is done before the call's own
//! work, and polling late changes nothing. Its packets are conserved, in packets and bytes:
//!
//! ```text
//! offered + created = delivered + dropped + absorbed + queued
//! ```
//!
//! The hop around the middlebox counts and reports: a middlebox calls the methods of its
//! [`MiddleboxContext`] and returns departures, and has no counters of its own.

use std::any::Any;
use std::net::SocketAddr;
use std::ops::Range;

use airpath_core::{
    ComponentId, Context, Direction, DropCause, Ecn, FlowId, Instant, Packet, PacketCounters, PacketStep, SegmentInfo,
    Slot, UserId,
};
use airpath_link::{BearerCommand, CommandError, Departure};
use airpath_tcp::Segment;
use airpath_wire::icmp::IcmpError;
use airpath_wire::tcp::Flags;

use crate::payload::Payload;
use crate::store::{Contents, NewSegment, PacketStore};

/// A hop that may absorb, hold, rewrite and create packets.
pub trait Middlebox: Any {
    /// Gives a packet to the middlebox. It is delivered by [`Self::pop`], or dropped or absorbed
    /// through `cx`, at once or later.
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut MiddleboxContext<'_>);

    /// The next packet that left at or before `now`. The caller repeats the call until it returns
    /// `None`. Departures come in the order of their `due`.
    fn pop(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) -> Option<(Direction, Departure)>;

    /// When to call [`Self::pop`] next: never later than the next event inside; `None` if there
    /// will be none.
    fn next_wakeup(&self) -> Option<Instant>;

    /// Whether it can carry out this command.
    ///
    /// # Errors
    /// If it cannot; by default it can carry out none.
    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        Err(CommandError::Foreign {
            key: command.change.kind().name(),
            what: "this middlebox",
            help: "give the command to a bearer",
        })
    }

    /// Changes its conditions.
    ///
    /// # Errors
    /// Those of [`Self::check`]; then nothing has changed.
    fn command(
        &mut self,
        now: Instant,
        command: &BearerCommand,
        cx: &mut MiddleboxContext<'_>,
    ) -> Result<(), CommandError> {
        let _ = (now, cx);
        self.check(command)
    }

    /// Counters of its own for the summary of a link, by name.
    fn statistics(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether it calls [`MiddleboxContext::segment`]: real packets are parsed only if some hop
    /// does.
    fn inspects_segments(&self) -> bool {
        true
    }
}

/// Identifiers of created packets have this bit, so that they do not depend on how many packets the
/// ends have sent. Below it are the component in 16 bits and a counter in 40.
const CREATED: u64 = 1 << 62;

/// A middlebox with its counters.
pub struct MiddleboxHop {
    middlebox: Box<dyn Middlebox>,
    account: Account,
}

/// What a middlebox did with packets.
#[derive(Debug, Default)]
struct Account {
    /// By direction.
    counters: [PacketCounters; 2],
    /// Packets created.
    created: u64,
}

/// The environment of a call into a middlebox: packets, their contents, and events.
pub struct MiddleboxContext<'a> {
    context: Context<'a>,
    store: &'a mut dyn PacketStore,
    account: &'a mut Account,
}

/// A packet that a middlebox creates.
#[derive(Clone, Copy, Debug)]
pub struct NewPacket<'a> {
    /// Size of the IP packet in bytes.
    pub size: u32,
    /// Its flow.
    pub flow: FlowId,
    /// Its mobile.
    pub user: UserId,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Headers and payload.
    pub contents: Contents<'a>,
}

impl<'a> MiddleboxContext<'a> {
    /// The context for calls into components of the middlebox, such as TCP connections.
    pub const fn context(&mut self) -> &mut Context<'a> {
        &mut self.context
    }

    /// The component number of the middlebox.
    pub const fn component(&self) -> ComponentId {
        self.context.at
    }

    /// The TCP header of the packet at `slot`; `None` if it is not TCP.
    pub fn segment(&self, slot: Slot) -> Option<SegmentInfo> {
        self.store.segment(slot)
    }

    /// The acknowledged stream offset of a pure acknowledgement at `slot`; `None` if the packet is
    /// anything else. ACK and PSH may be set; SYN, FIN, RST, URG and the ECN flags carry
    /// information of their own (RFC 9293 §3.1).
    pub fn pure_ack(&self, slot: Slot) -> Option<i64> {
        let segment = self.segment(slot)?;
        let pure = segment.length == 0 && segment.flags & !Flags::PSH.0 == Flags::ACK.0;
        segment.ack.get().filter(|_| pure)
    }

    /// The TCP segment of `packet` with its whole header; `None` if it is not TCP, or the packet
    /// buffer does not have its header.
    pub fn tcp_segment(&self, packet: &Packet) -> Option<Segment> {
        let segment = self.store.tcp_segment(packet.slot)?;
        // A queue may have marked the packet as CE (RFC 3168 §5).
        Some(Segment { ecn: packet.ecn, ..segment })
    }

    /// The ICMP error at `slot` about a TCP segment of a flow; `None` if the packet is anything
    /// else.
    pub fn icmp_error(&self, slot: Slot) -> Option<(FlowId, IcmpError)> {
        self.store.icmp_error(slot)
    }

    /// Number of packets on the wire for which `packet` stands.
    pub fn packets(&self, packet: &Packet) -> u32 {
        self.store.packets(packet.slot)
    }

    /// Most payload bytes of a created segment that stands for several; `None` where each segment
    /// is a packet.
    pub fn most_payload(&self) -> Option<u32> {
        self.store.most_payload()
    }

    /// The payload of the TCP segment at `slot`.
    pub fn tcp_payload(&self, slot: Slot) -> Payload<'_> {
        self.store.tcp_payload(slot)
    }

    /// Takes out the memory with the payload of the TCP segment at `slot`, and where it is, if the
    /// memory belongs to this segment alone. The segment is then without payload.
    pub fn take_tcp_payload(&mut self, slot: Slot) -> Option<(Vec<u8>, Range<usize>)> {
        self.store.take_tcp_payload(slot)
    }

    /// Gives back memory that [`Self::take_tcp_payload`] returned.
    pub fn give_back(&mut self, memory: Vec<u8>) {
        self.store.give_back(memory);
    }

    /// Takes a packet out of the network at `now`: the middlebox has consumed it.
    pub fn absorb(&mut self, now: Instant, direction: Direction, packet: Packet) {
        self.account.counters[direction as usize].absorb(&packet);
        self.report(now, direction, packet, PacketStep::Absorbed);
        self.store.take_absorbed(&packet);
    }

    /// Drops a packet at `now`.
    pub fn drop_packet(&mut self, now: Instant, direction: Direction, packet: Packet, cause: DropCause) {
        self.account.counters[direction as usize].lose(&packet, cause);
        self.context.direction = direction;
        self.context.drop_packet(now, packet, cause);
    }

    /// Creates a packet at `now` that goes in `direction`. It is inside the middlebox until
    /// [`Middlebox::pop`] returns it. `None` where packets cannot have these contents.
    pub fn create(&mut self, now: Instant, direction: Direction, packet: NewPacket<'_>) -> Option<Packet> {
        let NewPacket { size, flow, user, ecn, contents } = packet;
        let slot = self.store.create(now, direction, contents)?;
        Some(self.count_created(now, direction, Packet { id: 0, size, flow, user, ecn, slot }))
    }

    /// Creates a copy of `packet` with the same headers and payload at `now`, as [`Self::create`]
    /// does.
    pub fn copy(&mut self, now: Instant, direction: Direction, packet: Packet) -> Option<Packet> {
        let Packet { size, flow, user, ecn, slot, .. } = packet;
        self.create(now, direction, NewPacket { size, flow, user, ecn, contents: Contents::CopyOf(slot) })
    }

    /// Creates the packet of a TCP segment of mobile `user` at `now`, as [`Self::create`] does.
    /// `None` where the packet buffer does not have the addresses of its flow.
    pub fn create_segment(
        &mut self,
        now: Instant,
        direction: Direction,
        user: UserId,
        new: NewSegment<'_>,
    ) -> Option<Packet> {
        let (flow, ecn) = (new.flow, new.segment.ecn);
        let (slot, size) = self.store.create_segment(now, direction, new)?;
        Some(self.count_created(now, direction, Packet { id: 0, size, flow, user, ecn, slot }))
    }

    /// Begins a TCP flow from the mobile's address and `port` to the server of `flow`. `None` where
    /// packets have no addresses, or the mobile has used the port with this server.
    pub fn open_flow(&mut self, now: Instant, flow: FlowId, port: u16) -> Option<FlowId> {
        self.store.open_flow(now, flow, port)
    }

    /// Begins a TCP flow from the mobile's address of `flow` and `port` to `server`. `None` where
    /// packets have no addresses, or the mobile has used the port with this server.
    pub fn open_flow_to(&mut self, now: Instant, flow: FlowId, port: u16, server: SocketAddr) -> Option<FlowId> {
        self.store.open_flow_to(now, flow, port, server)
    }

    /// The address and port of the server of a TCP flow. `None` where packets have no addresses.
    pub fn server_address(&self, flow: FlowId) -> Option<SocketAddr> {
        self.store.server_address(flow)
    }

    /// Counts and reports a packet that was created, and gives it its identifier.
    fn count_created(&mut self, now: Instant, direction: Direction, packet: Packet) -> Packet {
        let id = CREATED | u64::from(self.context.at.0) << 40 | self.account.created;
        self.account.created += 1;
        let packet = Packet { id, ..packet };
        self.account.counters[direction as usize].create(&packet);
        let segment = self.store.segment(packet.slot);
        self.report(now, direction, packet, PacketStep::Created(segment));
        packet
    }

    /// Gives a packet that is inside another size and other contents at `now`. Its identifier
    /// stays. `None`, and no change, where packets cannot have these contents.
    pub fn rewrite(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: Packet,
        size: u32,
        contents: Contents<'_>,
    ) -> Option<Packet> {
        let slot = self.store.create(now, direction, contents)?;
        self.store.take_absorbed(&packet);
        self.account.counters[direction as usize].resize(packet.size, size);
        Some(Packet { size, slot, ..packet })
    }

    /// The connection `flow` has ended at the middlebox; its number may be used again.
    pub fn end_flow(&mut self, flow: FlowId) {
        self.store.end_flow(flow);
    }

    fn report(&mut self, now: Instant, direction: Direction, packet: Packet, step: PacketStep) {
        self.context.direction = direction;
        self.context.packet(now, packet, || step);
    }
}

impl MiddleboxHop {
    /// A middlebox that no packet has entered.
    pub fn new(middlebox: Box<dyn Middlebox>) -> Self {
        Self { middlebox, account: Account::default() }
    }

    /// The middlebox, if it is a `T`.
    pub fn downcast_ref<T: Middlebox>(&self) -> Option<&T> {
        let middlebox: &dyn Any = self.middlebox.as_ref();
        middlebox.downcast_ref()
    }

    /// The middlebox, if it is a `T`.
    pub fn downcast_mut<T: Middlebox>(&mut self) -> Option<&mut T> {
        let middlebox: &mut dyn Any = self.middlebox.as_mut();
        middlebox.downcast_mut()
    }

    /// Continues the counters of another process, by direction.
    pub const fn restore_counters(&mut self, counters: [PacketCounters; 2]) {
        self.account.counters = counters;
    }

    pub(crate) fn push<'c>(
        &'c mut self,
        now: Instant,
        direction: Direction,
        packet: Packet,
        context: Context<'c>,
        store: &'c mut dyn PacketStore,
    ) {
        let counters = &mut self.account.counters[direction as usize];
        counters.offer(&packet);
        let (backlog_packets, backlog_bytes) = (counters.queued.packets as u32, counters.queued.bytes);
        let mut cx = MiddleboxContext { context, store, account: &mut self.account };
        cx.report(now, direction, packet, PacketStep::Queued { backlog_packets, backlog_bytes });
        self.middlebox.push(now, direction, packet, &mut cx);
    }

    pub(crate) fn pop<'c>(
        &'c mut self,
        now: Instant,
        context: Context<'c>,
        store: &'c mut dyn PacketStore,
    ) -> Option<(Direction, Departure)> {
        let mut cx = MiddleboxContext { context, store, account: &mut self.account };
        let (direction, departure) = self.middlebox.pop(now, &mut cx)?;
        cx.account.counters[direction as usize].deliver(&departure.packet);
        cx.report(departure.due, direction, departure.packet, PacketStep::Delivered);
        Some((direction, departure))
    }

    pub(crate) fn command<'c>(
        &'c mut self,
        now: Instant,
        command: &BearerCommand,
        context: Context<'c>,
        store: &'c mut dyn PacketStore,
    ) -> Result<(), CommandError> {
        let mut cx = MiddleboxContext { context, store, account: &mut self.account };
        self.middlebox.command(now, command, &mut cx)?;
        command.report(now, &mut cx.context);
        Ok(())
    }

    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        self.middlebox.next_wakeup()
    }

    pub(crate) const fn counters(&self, direction: Direction) -> PacketCounters {
        self.account.counters[direction as usize]
    }

    pub(crate) fn statistics(&self) -> Vec<(&'static str, u64)> {
        self.middlebox.statistics()
    }

    pub(crate) fn inspects_segments(&self) -> bool {
        self.middlebox.inspects_segments()
    }
}
