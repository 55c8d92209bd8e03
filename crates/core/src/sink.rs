//! Event output: a [`Sink`] records the events of a run, and each call into a component has a
//! [`Context`] through which the component reports events and returns packets that it drops.

use crate::event::{
    AppEvent, ChangeEvent, ComponentId, DropCause, Event, PacketEvent, PacketStep, QuicEvent, RadioEvent, SegmentInfo,
    StateEvent, TcpEvent,
};
use crate::packet::{Direction, Packet, Slot};
use crate::time::Instant;

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
    /// [`Event::Change`].
    pub const CHANGE: Self = Self(16);
    /// [`Event::State`].
    pub const STATE: Self = Self(32);
    /// [`Event::Quic`].
    pub const QUIC: Self = Self(64);
    /// All events.
    pub const ALL: Self = Self(127);

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
    /// Whether it can take no more, so that there is no point in going on: the disk is full, for
    /// instance.
    fn has_failed(&self) -> bool {
        false
    }
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
        self.events.push((time, at, event.clone()));
    }
}

/// A packet that was dropped: the owner of its slot releases what it carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropped {
    /// Time of the drop.
    pub time: Instant,
    /// The packet.
    pub packet: Packet,
    /// The cause.
    pub cause: DropCause,
}

/// Read access to the headers of the packets in a network, by slot. The owner of the slots
/// implements it.
pub trait SegmentLookup {
    /// The TCP header of the packet at `slot`; `None` if it is not TCP or its headers were not
    /// read.
    fn segment(&self, slot: Slot) -> Option<SegmentInfo>;
    /// Appends the first bytes of `packet`, which goes in `direction`, to `out`: all headers, up to
    /// RTP. Returns `false` if they are not available.
    fn headers(&self, direction: Direction, packet: &Packet, out: &mut Vec<u8>) -> bool {
        let _ = (direction, packet, out);
        false
    }
}

/// The event sink of a run and the packets that were dropped in it: creates the [`Context`] of each
/// call.
#[derive(Default)]
pub struct Reporter<'a> {
    sink: Option<&'a mut (dyn Sink + 'a)>,
    /// Classes that the sink records: constant, so that no call has to query the sink.
    wants: Classes,
    /// Dropped packets that the owner of their slots has not taken back yet.
    pub dropped: Vec<Dropped>,
}

impl<'a> Reporter<'a> {
    /// Reports to `sink`, if there is one.
    pub fn new(sink: Option<&'a mut (dyn Sink + 'a)>) -> Self {
        Self { wants: sink.as_ref().map_or(Classes::NONE, |sink| sink.wants()), sink, dropped: Vec::new() }
    }

    /// A context for a call into `component`.
    #[inline]
    pub fn context(&mut self, component: ComponentId) -> Context<'_> {
        // The explicit match shortens the lifetime of the sink to that of the borrow.
        let sink: Option<&mut dyn Sink> = match &mut self.sink {
            Some(sink) => Some(&mut **sink),
            None => None,
        };
        Context {
            sink,
            wants: self.wants,
            dropped: &mut self.dropped,
            segments: None,
            at: component,
            direction: Direction::Down,
        }
    }

    /// Whether the sink records events of `class`.
    #[inline]
    pub const fn wants(&self, class: Classes) -> bool {
        self.wants.intersects(class)
    }

    /// Whether the sink can record no more.
    pub fn has_failed(&self) -> bool {
        self.sink.as_ref().is_some_and(|sink| sink.has_failed())
    }
}

/// The environment of a call into a component: where it reports events and dropped packets, and
/// looks up TCP headers.
pub struct Context<'a> {
    sink: Option<&'a mut dyn Sink>,
    wants: Classes,
    dropped: &'a mut Vec<Dropped>,
    segments: Option<&'a dyn SegmentLookup>,
    /// The component that is called.
    pub at: ComponentId,
    /// The direction of the packets that the call handles; bearers set it for the links inside
    /// them.
    pub direction: Direction,
}

impl<'a> Context<'a> {
    /// A context that reports to `sink`, if any, and collects dropped packets in `dropped`.
    #[inline]
    pub fn new(sink: Option<&'a mut dyn Sink>, dropped: &'a mut Vec<Dropped>, at: ComponentId) -> Self {
        let wants = sink.as_ref().map_or(Classes::NONE, |sink| sink.wants());
        Self { sink, wants, dropped, segments: None, at, direction: Direction::Down }
    }

    /// The same context with access to TCP headers.
    #[inline]
    pub fn with_segments(&mut self, segments: &'a dyn SegmentLookup) -> &mut Self {
        self.segments = Some(segments);
        self
    }

    /// A context for a component inside the one that is called: it reports no events and collects
    /// in `dropped`.
    pub fn without_events<'b>(&self, dropped: &'b mut Vec<Dropped>) -> Context<'b>
    where
        'a: 'b,
    {
        let Self { segments, at, direction, .. } = *self;
        Context { sink: None, wants: Classes::NONE, dropped, segments, at, direction }
    }

    /// The TCP header of the packet at `slot`; `None` if it is not TCP or its headers were not
    /// read.
    #[inline]
    pub fn segment(&self, slot: Slot) -> Option<SegmentInfo> {
        self.segments?.segment(slot)
    }

    /// Appends the first bytes of `packet` to `out`, as [`SegmentLookup::headers`] does.
    #[inline]
    pub fn headers(&self, direction: Direction, packet: &Packet, out: &mut Vec<u8>) -> bool {
        self.segments.is_some_and(|segments| segments.headers(direction, packet, out))
    }

    /// All classes that the sink records.
    pub const fn wanted(&self) -> Classes {
        self.wants
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

    /// Reports that conditions were changed.
    #[inline]
    pub fn change(&mut self, time: Instant, event: impl FnOnce() -> ChangeEvent) {
        self.emit(Classes::CHANGE, time, || Event::Change(event()));
    }

    /// Reports that the state of a radio connection changed.
    #[inline]
    pub fn state(&mut self, time: Instant, event: impl FnOnce() -> StateEvent) {
        self.emit(Classes::STATE, time, || Event::State(event()));
    }

    /// Reports that an end sent a packet of QUIC or declared it lost.
    #[inline]
    pub fn quic(&mut self, time: Instant, event: impl FnOnce() -> QuicEvent) {
        self.emit(Classes::QUIC, time, || Event::Quic(event()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::AppStep;
    use crate::packet::{Ecn, FlowId, Slot, UserId};
    use crate::units::Bytes;

    fn packet(id: u64, size: u32) -> Packet {
        Packet { id, size, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) }
    }

    #[test]
    fn no_event_is_built_without_a_sink() {
        let mut dropped = Vec::new();
        let mut cx = Context::new(None, &mut dropped, ComponentId(0));
        cx.packet(Instant::ZERO, packet(1, 1500), || panic!("built without a sink"));
        cx.drop_packet(Instant::ZERO, packet(1, 1500), DropCause::Loss);
        assert_eq!(dropped.len(), 1, "a dropped packet is returned without a sink as well");
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
        let mut cx = Context::new(Some(&mut sink), &mut dropped, ComponentId(0));
        cx.packet(Instant::ZERO, packet(1, 40), || PacketStep::Received);
        cx.app(Instant::ZERO, || AppEvent { flow: FlowId(0), step: AppStep::Started, delivered: Bytes::ZERO });
        assert_eq!(sink.0, 1);
    }
}
