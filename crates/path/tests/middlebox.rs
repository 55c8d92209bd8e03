//! Middleboxes keep their contracts: a dummy that uses every ability, and the filter for
//! acknowledgements.

use std::collections::VecDeque;

use airpath_core::{Direction, DropCause, Ecn, FlowId, Instant, Packet, Seed, SegmentInfo, Slot, Span, UserId};
use airpath_link::Departure;
use airpath_path::testing::{Arrival, contracts};
use airpath_path::{AckFilter, Contents, Middlebox, MiddleboxContext, NewPacket};
use airpath_tcp::Segment;
use airpath_wire::tcp::{Flags, TcpHeader};
use proptest::prelude::*;

const ACK: u8 = 0x10;

/// Absorbs, drops, rewrites, copies and creates packets by their number, and holds the others for a
/// while.
#[derive(Default)]
struct Dummy {
    count: u64,
    /// Packets inside, in the order of their times.
    held: VecDeque<(Direction, Departure)>,
}

const HOLD: Span = Span::from_millis(7);

impl Dummy {
    fn hold(&mut self, due: Instant, direction: Direction, packet: Packet) {
        self.held.push_back((direction, Departure { due, packet }));
    }
}

impl Middlebox for Dummy {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut MiddleboxContext<'_>) {
        self.count += 1;
        let due = now + HOLD;
        match self.count % 6 {
            0 => cx.absorb(now, direction, packet),
            1 => cx.drop_packet(now, direction, packet, DropCause::TooBig),
            2 => {
                let half = cx.rewrite(now, direction, packet, packet.size / 2, Contents::CopyOf(packet.slot));
                self.hold(due, direction, half.expect("copies can be created"));
            }
            3 => {
                let Packet { size, flow, user, ecn, slot, .. } = packet;
                let copy = NewPacket { size, flow, user, ecn, contents: Contents::CopyOf(slot) };
                let copy = cx.create(now, direction, copy).expect("copies can be created");
                self.hold(due, direction, packet);
                self.hold(due, direction, copy);
            }
            4 => {
                // Answers in the other direction.
                let back = if direction == Direction::Down { Direction::Up } else { Direction::Down };
                let Packet { flow, user, ecn, .. } = packet;
                let answer = NewPacket { size: 40, flow, user, ecn, contents: Contents::Bytes(&[0x45; 40]) };
                let answer = cx.create(now, back, answer).expect("the store of the test takes bytes");
                self.hold(due, direction, packet);
                self.hold(due, back, answer);
            }
            _ => self.hold(due, direction, packet),
        }
    }

    fn pop(&mut self, now: Instant, _: &mut MiddleboxContext<'_>) -> Option<(Direction, Departure)> {
        let due = self.held.front()?.1.due;
        if due <= now { self.held.pop_front() } else { None }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.held.front().map(|(_, departure)| departure.due)
    }
}

/// Random arrivals: data down, acknowledgements up with duplicates and some data.
fn arrivals(packets: usize, seed: u64) -> Vec<Arrival> {
    let mut stream = Seed::new(seed).stream("arrivals");
    let mut at = Instant::ZERO;
    let mut acks = [0i64; 3];
    let arrival = |index: usize| {
        at += Span::from_micros(if stream.below(3) == 0 { 0 } else { stream.below(6_000) });
        let flow = stream.below(3) as usize;
        let direction = if stream.below(2) == 0 { Direction::Down } else { Direction::Up };
        let length = if direction == Direction::Down || stream.below(8) == 0 { 100 } else { 0 };
        acks[flow] += if stream.below(4) == 0 { 0 } else { 1460 };
        let segment = segment(length, acks[flow]);
        let packet = Packet {
            id: index as u64,
            size: 40 + length,
            flow: FlowId(flow as u32),
            user: UserId(0),
            ecn: Ecn::NotEct,
            slot: Slot(0),
        };
        Arrival { at, direction, packet, segment: (stream.below(10) > 0).then_some(segment) }
    };
    (0..packets).map(arrival).collect()
}

const HORIZON: Instant = Instant::from_nanos(60_000_000_000);

proptest! {
    #[test]
    fn a_middlebox_may_absorb_hold_rewrite_and_create(packets in 0usize..200, seed: u64) {
        let outcome = contracts(Dummy::default, &arrivals(packets, seed), HORIZON);
        let sum = |count: fn(&airpath_core::PacketCounters) -> u64| outcome.counters.iter().map(count).sum::<u64>();
        prop_assert_eq!(sum(|counters| counters.offered.packets), packets as u64);
        prop_assert_eq!(sum(|counters| counters.queued.packets), 0);
        prop_assert_eq!(sum(|counters| counters.delivered.packets), outcome.departures.len() as u64);
        prop_assert_eq!(sum(|counters| counters.absorbed.packets), packets as u64 / 6);
        prop_assert!(packets < 6 || sum(|counters| counters.created.packets) > 0);
    }

    #[test]
    fn the_ack_filter_keeps_the_contracts(packets in 0usize..300, seed: u64, hold in 0u64..20) {
        let arrivals = arrivals(packets, seed);
        let outcome = contracts(|| AckFilter::new(Span::from_millis(hold)), &arrivals, HORIZON);
        prop_assert_eq!(outcome.departures.len() + outcome.absorbed.len(), packets);
        for flow in 0..3 {
            let ids = outcome.departures.iter().filter(|(direction, departure)| {
                *direction == Direction::Up && departure.packet.flow == FlowId(flow)
            });
            prop_assert!(ids.map(|(_, departure)| departure.packet.id).is_sorted(), "the order of a flow is kept");
        }
        // The latest acknowledgement of a flow is never absorbed, and neither is data.
        for id in &outcome.absorbed {
            let absorbed = &arrivals[*id as usize];
            let segment = absorbed.segment.expect("only TCP is absorbed");
            prop_assert_eq!((absorbed.direction, segment.length), (Direction::Up, 0));
            let supersedes = |later: &Arrival| {
                later.packet.flow == absorbed.packet.flow
                    && later.direction == Direction::Up
                    && later.segment.is_some_and(|later| later.info.ack > segment.info.ack)
            };
            prop_assert!(arrivals[*id as usize + 1..].iter().any(supersedes));
        }
    }
}

/// A segment of `length` bytes that acknowledges up to `ack`.
fn segment(length: u32, ack: i64) -> Segment {
    let info = SegmentInfo { length, ack: Some(ack), flags: ACK, ..SegmentInfo::default() };
    let header = TcpHeader { flags: Flags(ACK), ..TcpHeader::default() };
    Segment { header, length, ecn: Ecn::NotEct, info }
}

/// A pure acknowledgement that enters at `millis`.
fn ack(id: u64, millis: u64, ack: i64) -> Arrival {
    let (at, flow) = (Instant::ZERO + Span::from_millis(millis), FlowId(0));
    let packet = Packet { id, size: 40, flow, user: UserId(0), ecn: Ecn::NotEct, slot: Slot(0) };
    Arrival { at, direction: Direction::Up, packet, segment: Some(segment(0, ack)) }
}

#[test]
fn superseded_acknowledgements_are_absorbed() {
    let arrivals = [ack(0, 0, 1000), ack(1, 4, 2000), ack(2, 9, 3000), ack(3, 12, 4000), ack(4, 15, 4000)];
    let outcome = contracts(|| AckFilter::new(Span::from_millis(10)), &arrivals, HORIZON);
    assert_eq!(outcome.absorbed, [0, 1]);
    let left: Vec<_> = outcome.departures.iter().map(|(_, left)| (left.packet.id, left.due.as_nanos())).collect();
    // The last two are a duplicate: both pass when the second comes.
    assert_eq!(left, [(2, 10_000_000), (3, 15_000_000), (4, 15_000_000)]);
}
