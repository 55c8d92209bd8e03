//! Middleboxes keep their contracts: a dummy that uses every ability, the filter for
//! acknowledgements, and the proposals.

use std::collections::VecDeque;

use airpath_core::{Bytes, Direction, DropCause, Ecn, FlowId, Instant, Packet, Seed, SegmentInfo, Slot, Span, UserId};
use airpath_link::Departure;
use airpath_path::testing::{Arrival, contracts};
use airpath_path::{
    AckFilter, ClearEcn, Contents, DelayedDupAcks, Eln, MTcp, Middlebox, MiddleboxContext, NewPacket, Snoop,
};
use airpath_tcp::Segment;
use airpath_wire::tcp::{Flags, TcpHeader, Timestamps};
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
            user: UserId::new(0),
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
    fn the_ecn_field_is_cleared_and_all_packets_pass(packets in 0usize..200, seed: u64) {
        let mut arrivals = arrivals(packets, seed);
        for (index, arrival) in arrivals.iter_mut().enumerate() {
            arrival.packet.ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][index % 4];
        }
        let outcome = contracts(ClearEcn::default, &arrivals, HORIZON);
        let left = outcome.departures.iter().map(|(_, departure)| departure.packet);
        prop_assert!(left.clone().all(|packet| packet.ecn == Ecn::NotEct));
        prop_assert!(left.map(|packet| packet.id).eq(arrivals.iter().map(|arrival| arrival.packet.id)));
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

/// Data are not absorbed, and neither are acknowledgements of new data.
fn assert_passes_new(arrivals: &[Arrival], outcome: &airpath_path::testing::Outcome) {
    for id in outcome.absorbed.iter().filter(|id| **id < arrivals.len() as u64) {
        let absorbed = &arrivals[*id as usize];
        let info = absorbed.segment.expect("only TCP is absorbed").info;
        assert_eq!((absorbed.direction, info.length), (Direction::Up, 0));
        let same = |earlier: &&Arrival| {
            let earlier_info = earlier.segment.map(|segment| segment.info);
            earlier.packet.flow == absorbed.packet.flow
                && earlier.direction == Direction::Up
                && earlier_info.is_some_and(|earlier| earlier.ack >= info.ack)
        };
        assert!(arrivals[..*id as usize].iter().any(|earlier| same(&earlier)), "{absorbed:?} is new");
    }
}

proptest! {
    #[test]
    fn snoop_keeps_the_contracts(packets in 0usize..300, seed: u64, cache in 0u64..5000) {
        let arrivals = arrivals(packets, seed);
        let w_tcp = contracts(|| Snoop::w_tcp(Bytes::new(cache)), &arrivals, HORIZON);
        assert_passes_new(&arrivals, &w_tcp);
        let outcome = contracts(|| Snoop::new(Bytes::new(cache)), &arrivals, HORIZON);
        assert_passes_new(&arrivals, &outcome);
    }

    #[test]
    fn m_tcp_keeps_the_contracts(packets in 0usize..300, seed: u64, freeze_after in 1u64..20) {
        let arrivals = arrivals(packets, seed);
        let until = Instant::ZERO + Span::from_secs(5);
        let outcome = contracts(|| MTcp::new(Span::from_millis(freeze_after)), &arrivals, until);
        let [down, up] = &outcome.counters;
        prop_assert_eq!(down.absorbed.packets, 0);
        // Each absorbed acknowledgement is replaced by one with another number.
        prop_assert!(up.created.packets >= up.absorbed.packets);
    }

    #[test]
    fn eln_keeps_the_contracts(packets in 0usize..300, seed: u64) {
        let arrivals = arrivals(packets, seed);
        let outcome = contracts(Eln::default, &arrivals, HORIZON);
        prop_assert_eq!(outcome.departures.len(), packets);
        // Each absorbed acknowledgement is replaced by one with the bit.
        let up = outcome.counters[Direction::Up as usize];
        prop_assert_eq!(up.created.packets, up.absorbed.packets);
    }

    #[test]
    fn delayed_dup_acks_keep_the_contracts(packets in 0usize..300, seed: u64, hold in 0u64..20) {
        let arrivals = arrivals(packets, seed);
        let outcome = contracts(|| DelayedDupAcks::new(Span::from_millis(hold)), &arrivals, HORIZON);
        prop_assert_eq!(outcome.departures.len() + outcome.absorbed.len(), packets);
        assert_passes_new(&arrivals, &outcome);
    }
}

/// A segment of `length` bytes that acknowledges up to `ack`.
fn segment(length: u32, ack: i64) -> Segment {
    let info = SegmentInfo { length, ack: ack.into(), flags: ACK, ..SegmentInfo::default() };
    let header = TcpHeader { flags: Flags(ACK), ..TcpHeader::default() };
    Segment { header, length, ecn: Ecn::NotEct, info }
}

/// A pure acknowledgement that enters at `millis`.
fn ack(id: u64, millis: u64, ack: i64) -> Arrival {
    let (at, flow) = (Instant::ZERO + Span::from_millis(millis), FlowId(0));
    let packet = Packet { id, size: 40, flow, user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) };
    Arrival { at, direction: Direction::Up, packet, segment: Some(segment(0, ack)) }
}

/// A data segment of 1,000 bytes from `offset` on that enters at `millis`.
fn data(id: u64, millis: u64, offset: i64) -> Arrival {
    let mut segment = segment(1000, 0);
    segment.info.offset = offset;
    let mut arrival = ack(id, millis, 0);
    arrival.packet.size = 1040;
    Arrival { direction: Direction::Down, segment: Some(segment), ..arrival }
}

/// What left in a direction: milliseconds, and the packet's number; copies have none.
fn left(outcome: &airpath_path::testing::Outcome, direction: Direction) -> Vec<(u64, Option<u64>)> {
    let of = outcome.departures.iter().filter(|(each, _)| *each == direction);
    of.map(|(_, left)| (left.due.as_nanos() / 1_000_000, Some(left.packet.id).filter(|id| *id < 1000))).collect()
}

/// Four segments. The second is lost behind the middlebox, which causes two duplicates.
fn lost_segment() -> Vec<Arrival> {
    let mut arrivals: Vec<_> = (0..4).map(|n| data(n, n, 1000 * n as i64)).collect();
    arrivals.extend((0..3).map(|n| ack(4 + n, 20 + n, 1000)));
    arrivals
}

#[test]
fn snoop_repairs_a_loss_behind_it_and_hides_it() {
    let mut arrivals = lost_segment();
    arrivals.extend([ack(7, 40, 4000)]);
    let outcome = contracts(|| Snoop::new(Bytes::new(100_000)), &arrivals, HORIZON);
    // The first acknowledgement is new; the first duplicate after it causes the retransmission.
    assert_eq!(left(&outcome, Direction::Down), [(0, Some(0)), (1, Some(1)), (2, Some(2)), (3, Some(3)), (21, None)]);
    assert_eq!(left(&outcome, Direction::Up), [(20, Some(4)), (40, Some(7))]);
    assert_eq!(outcome.counters[Direction::Down as usize].queued.packets, 0, "no copy is left");
}

#[test]
fn snoop_leaves_losses_before_it_to_the_sender() {
    // The second segment never arrives; then the sender retransmits it, and it is lost.
    let mut arrivals = lost_segment();
    arrivals.remove(1);
    arrivals.extend([data(1, 30, 1000), ack(7, 40, 1000)]);
    let outcome = contracts(|| Snoop::new(Bytes::new(100_000)), &arrivals, Instant::ZERO + Span::from_millis(50));
    assert_eq!(left(&outcome, Direction::Up), [(20, Some(4)), (21, Some(5)), (22, Some(6)), (40, Some(7))]);
    assert_eq!(left(&outcome, Direction::Down).len(), 4, "nothing is retransmitted");
}

#[test]
fn snoop_repairs_by_its_timer_what_no_duplicate_reports() {
    // Round trip 20 ms: the timer is at its floor of 100 ms, and doubles.
    let mut arrivals = Vec::new();
    for n in 0..20 {
        arrivals.extend([data(2 * n, 30 * n, 1000 * n as i64), ack(2 * n + 1, 30 * n + 20, 1000 * (n as i64 + 1))]);
    }
    arrivals.push(data(40, 600, 20_000));
    let outcome = contracts(|| Snoop::new(Bytes::new(100_000)), &arrivals, Instant::ZERO + Span::from_millis(950));
    let copies: Vec<_> = left(&outcome, Direction::Down).into_iter().filter(|(_, id)| id.is_none()).collect();
    assert_eq!(copies, [(700, None), (900, None)]);
}

#[test]
fn a_full_cache_only_forwards() {
    let outcome = contracts(|| Snoop::new(Bytes::new(1500)), &lost_segment(), Instant::ZERO + Span::from_millis(50));
    assert_eq!(left(&outcome, Direction::Down).len(), 4);
    assert_eq!(left(&outcome, Direction::Up).len(), 3, "the sender repairs the loss");
}

#[test]
fn snoop_leaves_to_the_sender_what_it_repeats_after_a_full_cache() {
    // The third segment finds a full cache and is lost; so is its repetition by the sender.
    let mut arrivals: Vec<_> = (0..3).map(|n| data(n, n, 1000 * n as i64)).collect();
    arrivals.extend([ack(3, 20, 2000), data(4, 30, 2000), ack(5, 40, 2000)]);
    let outcome = contracts(|| Snoop::new(Bytes::new(2100)), &arrivals, Instant::ZERO + Span::from_millis(50));
    assert_eq!(left(&outcome, Direction::Up), [(20, Some(3)), (40, Some(5))]);
    assert_eq!(left(&outcome, Direction::Down).len(), 4, "nothing is retransmitted");
}

/// `arrival` with the timestamp of a sender whose clock has ticks of 1 ms and is at 1,000.
fn stamped(mut arrival: Arrival) -> Arrival {
    let value = 1000 + (arrival.at.as_nanos() / 1_000_000) as u32;
    if let Some(segment) = arrival.segment.as_mut() {
        segment.header.options.timestamps = Some(Timestamps { value, echo: 0 });
    }
    arrival
}

#[test]
fn w_tcp_sends_one_segment_at_a_time_after_a_timeout() {
    // The first segment is lost; the timer expires after 1 s. Two more arrive meanwhile.
    let mut arrivals: Vec<_> = [data(0, 0, 0), data(1, 1, 1000)].map(stamped).to_vec();
    arrivals.extend([data(2, 1100, 2000), data(3, 1200, 3000)].map(stamped));
    arrivals.extend([ack(4, 1300, 1000), ack(5, 1400, 4000)]);
    let cache = Bytes::new(100_000);
    let outcome = contracts(|| Snoop::w_tcp(cache), &arrivals, Instant::ZERO + Span::from_secs(2));
    // The retransmission; then those that waited, when the mobile has answered.
    assert_eq!(left(&outcome, Direction::Down), [(0, Some(0)), (1, Some(1)), (1000, None), (1300, None), (1300, None)]);
    assert_eq!(left(&outcome, Direction::Up), [(1300, Some(4)), (1400, Some(5))]);
    assert_eq!(outcome.counters[Direction::Down as usize].queued.packets, 0, "nothing is left");
    // Snoop lets them pass.
    let snoop = contracts(|| Snoop::new(cache), &arrivals, Instant::ZERO + Span::from_secs(2));
    assert_eq!(left(&snoop, Direction::Down).iter().filter(|(_, id)| id.is_some()).count(), 4);
}

#[test]
fn eln_marks_duplicates_for_what_it_has_seen() {
    let mut arrivals = lost_segment();
    arrivals.extend([ack(7, 40, 4000)]);
    let outcome = contracts(Eln::default, &arrivals, HORIZON);
    // The first acknowledgement is new; both duplicates are replaced.
    assert_eq!(left(&outcome, Direction::Up), [(20, Some(4)), (21, None), (22, None), (40, Some(7))]);
    assert_eq!(outcome.absorbed, [5, 6]);
}

#[test]
fn eln_does_not_mark_losses_before_it() {
    // The second segment arrives late: its loss before the agent is still reported.
    let mut arrivals = lost_segment();
    let late = Arrival { at: arrivals[4].at, ..arrivals.remove(1) };
    arrivals.insert(4, late);
    // The fourth is lost behind the agent.
    arrivals.extend([data(7, 30, 4000), ack(8, 40, 3000), ack(9, 41, 3000)]);
    let outcome = contracts(Eln::default, &arrivals, HORIZON);
    let passed = [(20, Some(4)), (21, Some(5)), (22, Some(6)), (40, Some(8)), (41, None)];
    assert_eq!(left(&outcome, Direction::Up), passed);
}

#[test]
fn eln_marks_nothing_where_too_much_is_missing() {
    // Every second segment has not been seen; the mobile lacks the third, which has.
    let marked = |segments: u64| {
        let mut arrivals: Vec<_> = (0..segments).map(|n| data(n, n, 2000 * n as i64)).collect();
        arrivals.extend([ack(997, 900, 4000), ack(998, 901, 4000)]);
        contracts(Eln::default, &arrivals, HORIZON).absorbed
    };
    assert_eq!(marked(257), [998]);
    assert!(marked(258).is_empty());
}

#[test]
fn m_tcp_stops_the_sender_of_a_silent_mobile() {
    // Two segments; the mobile has the first and is then away until 3.5 s.
    let arrivals = [data(0, 0, 0), data(1, 1, 1000), ack(2, 20, 1000), ack(3, 3500, 1000), ack(4, 3600, 2000)];
    let until = Instant::ZERO + Span::from_secs(4);
    let outcome = contracts(|| MTcp::new(Span::from_millis(500)), &arrivals, until);
    assert_eq!(
        left(&outcome, Direction::Up),
        // Without the last byte; the last byte with a window of zero; the mobile is back.
        [(20, None), (520, None), (3500, Some(3)), (3600, Some(4))]
    );
    // The data, and probes once per second until the mobile answers.
    assert_eq!(left(&outcome, Direction::Down), [(0, Some(0)), (1, Some(1)), (1520, None), (2520, None)]);
    assert_eq!(outcome.absorbed, [2]);
}

#[test]
fn duplicates_wait_for_a_repair() {
    let hold = Span::from_millis(50);
    let mut arrivals = lost_segment();
    arrivals.extend([ack(7, 23, 1000), ack(8, 24, 1000)]);
    let late = contracts(|| DelayedDupAcks::new(hold), &arrivals, HORIZON);
    // The first is new, two duplicates pass, and two are released after 50 ms.
    let passed = [(20, Some(4)), (21, Some(5)), (22, Some(6))];
    assert_eq!(left(&late, Direction::Up), [&passed[..], &[(73, Some(7)), (74, Some(8))]].concat());
    arrivals.push(ack(9, 60, 4000));
    let repaired = contracts(|| DelayedDupAcks::new(hold), &arrivals, HORIZON);
    assert_eq!(left(&repaired, Direction::Up), [&passed[..], &[(60, Some(9))]].concat());
    assert_eq!(repaired.absorbed, [7, 8]);
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
