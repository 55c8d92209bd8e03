//! Segmentation, retransmission and reordering, to the byte.

use airpath_core::{ComponentId, Ecn, FlowId, Slot, UserId};
use airpath_link::queue::Queue;

use super::*;
use crate::common::arq::rlc_queue::RlcQueue;
use crate::{lte, nr};

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn acknowledged() -> Parameters {
    let text = r#"
        t_poll_retransmit = "120 ms"
        poll_pdu = 4
        max_retx = 2
        t_reordering = "50 ms"
        t_status_prohibit = "30 ms"
    "#;
    (&lte::Rlc::Acknowledged(toml::from_str(text).expect("a configuration"))).into()
}

fn unacknowledged() -> Parameters {
    (&lte::Rlc::Unacknowledged(lte::Unacknowledged { t_reordering: Span::from_millis(50) })).into()
}

/// Both directions of a bearer.
struct Bearer {
    down: Rlc,
    up: Rlc,
    dropped: Vec<airpath_core::Dropped>,
}

impl Bearer {
    fn new(config: &Parameters) -> Self {
        let pdcp =
            super::super::pdcp::Parameters { header: 2, discard: None, queue: Queue::default(), reordering: None };
        let rlc = |direction| Rlc::new(config, Pdcp::new(&pdcp, RlcQueue::unlimited()), direction, Span::ZERO);
        Self { down: rlc(Direction::Down), up: rlc(Direction::Up), dropped: Vec::new() }
    }

    fn push(&mut self, count: u64, size: u32) {
        for id in 0..count {
            let packet = Packet { id, size, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) };
            self.down.counters.offer(&packet);
            let mut cx = Context::new(None, &mut self.dropped, ComponentId(0));
            assert_eq!(self.down.enqueue(at(0), packet, &mut cx), Ok(()));
        }
    }

    /// A block of the downlink of `room` bytes, and the bytes used.
    fn fill(&mut self, now: Instant, room: u32) -> (Block, u32) {
        let mut cx = Context::new(None, &mut self.dropped, ComponentId(0));
        let mut block = Block::default();
        let used = self.down.fill(now, room, &mut self.up, &mut block, &mut cx);
        (block, used)
    }

    /// What the mobile sends back.
    fn answer(&mut self, now: Instant, room: u32) -> Option<Status> {
        let mut cx = Context::new(None, &mut self.dropped, ComponentId(0));
        let mut block = Block::default();
        self.up.fill(now, room, &mut self.down, &mut block, &mut cx);
        block.status
    }

    fn receive(&mut self, now: Instant, pdus: &[Pdu]) -> usize {
        let mut cx = Context::new(None, &mut self.dropped, ComponentId(0));
        self.down.receive(now, pdus, &mut cx);
        self.down.departures.len()
    }

    fn expire(&mut self, now: Instant) -> Result<(), MaxRetransmissions> {
        let mut cx = Context::new(None, &mut self.dropped, ComponentId(0));
        self.down.expire(now, &mut cx)
    }
}

fn acknowledged_bearer() -> Bearer {
    Bearer::new(&acknowledged())
}

#[test]
fn packets_are_cut_and_concatenated_with_their_headers() {
    let mut bearer = acknowledged_bearer();
    bearer.push(2, 100);
    // PDCP PDUs of 102 bytes. MAC 1, RLC 2, data 57.
    let (block, used) = bearer.fill(at(0), 60);
    assert_eq!((block.pdus[0].range, used), (Range::new(0, 57), 60));
    // MAC 1, RLC 2, one length indicator of 12 bits in 2 bytes, data 45 and 102.
    let (block, used) = bearer.fill(at(1), 400);
    assert_eq!((block.pdus[0].range, block.pdus[0].sequence, used), (Range::new(57, 204), 1, 152));
    assert!(block.pdus[0].polls, "nothing more waits");
    assert_eq!(bearer.fill(at(2), 400).1, 0);
}

#[test]
fn a_segment_has_only_the_length_indicators_of_its_own_packets() {
    // TS 36.322 §6.2.1.5. 200 packets of 40 bytes have 299 bytes of indicators in one PDU.
    let mut bearer = acknowledged_bearer();
    bearer.push(200, 40);
    let (block, used) = bearer.fill(at(0), 9000);
    assert_eq!((block.pdus.len(), used), (1, 200 * 42 + 299 + 3));
    bearer.push(1, 40);
    let (next, _) = bearer.fill(at(1), 100);
    bearer.receive(at(2), &next.pdus);
    bearer.expire(at(52)).expect("no retransmission yet");
    let status = bearer.answer(at(52), 100).expect("t-Reordering triggers a report");
    assert_eq!(status.missing, [(0, Range::new(0, 8400))]);
    bearer.down.acknowledge(&status).expect("once");
    assert!(bearer.down.waiting() >= u64::from(used) && bearer.down.waiting() <= u64::from(used) + 12);
    // Blocks of 19 bytes (1.4 MHz, I_TBS 0): MAC 3, segment header 4, data 12, or 10 with an
    // indicator.
    let (mut sent, mut blocks) = (RangeSet::default(), 0);
    while bearer.down.waiting() > 0 {
        let (block, used) = bearer.fill(at(60), 19);
        assert!(!block.pdus.is_empty() && used <= 19, "each block carries something");
        for pdu in &block.pdus {
            sent.insert(pdu.range, |_| {});
        }
        bearer.receive(at(60), &block.pdus);
        blocks += 1;
    }
    assert_eq!(sent.first(), Some(Range::new(0, 8400)));
    assert!((8400 / 12..8400 / 10).contains(&blocks), "{blocks}");
    assert_eq!(bearer.down.departures.len(), 201);
}

#[test]
fn a_status_report_is_cut_to_its_room() {
    let mut bearer = acknowledged_bearer();
    bearer.push(8, 100);
    let blocks: Vec<Block> = (0..8).map(|_| bearer.fill(at(0), 105).0).collect();
    for index in [0, 2, 4, 6, 7] {
        bearer.receive(at(1), &blocks[index].pdus);
    }
    bearer.expire(at(51)).expect("no retransmission yet");
    bearer.expire(at(101)).expect("no retransmission yet");
    // 15 bits and 12 for each PDU that is missing: 27 bits fit into 4 bytes, 39 do not. MAC 3.
    let status = bearer.answer(at(101), 7).expect("a report");
    assert_eq!((status.acknowledged, &status.missing[..]), (3, &[(1, blocks[1].pdus[0].range)][..]));
}

#[test]
fn a_poll_beyond_a_gap_is_answered_when_reordering_has_ended() {
    // TS 36.322 §5.2.3.
    let mut bearer = acknowledged_bearer();
    bearer.push(4, 100);
    let blocks: Vec<Block> = (0..4).map(|_| bearer.fill(at(0), 105).0).collect();
    assert!(blocks[3].pdus[0].polls);
    bearer.receive(at(1), &blocks[3].pdus);
    assert_eq!((bearer.answer(at(2), 100), bearer.down.next_timer()), (None, Some(at(51))));
    let mut late = Bearer { down: bearer.down.clone(), up: bearer.up.clone(), dropped: Vec::new() };
    // HARQ brings the rest: the report is due at once.
    for block in &blocks[..3] {
        bearer.receive(at(9), &block.pdus);
    }
    assert_eq!(bearer.answer(at(9), 100), Some(Status { acknowledged: 4, missing: Vec::new() }));
    // It does not: the report is due when t-Reordering expires.
    late.expire(at(51)).expect("no retransmission yet");
    assert_eq!(late.answer(at(51), 100).map(|status| status.missing.len()), Some(3));
}

#[test]
fn t_status_prohibit_holds_back_a_report() {
    let mut bearer = acknowledged_bearer();
    bearer.push(8, 100);
    let blocks: Vec<Block> = (0..8).map(|_| bearer.fill(at(0), 105).0).collect();
    for block in &blocks[..4] {
        bearer.receive(at(1), &block.pdus);
    }
    assert!(bearer.answer(at(1), 100).is_some());
    for block in &blocks[4..] {
        bearer.receive(at(2), &block.pdus);
    }
    assert_eq!((bearer.down.status_bytes(at(30)), bearer.answer(at(30), 100)), (0, None));
    assert_eq!(bearer.answer(at(31), 100).map(|status| status.acknowledged), Some(8));
}

#[test]
fn a_pdu_that_is_missing_too_often_fails_the_link() {
    // maxRetxThreshold 2: RETX_COUNT is 0, 1, 2 (TS 36.322 §5.2.1).
    let mut bearer = acknowledged_bearer();
    bearer.push(1, 100);
    let (block, _) = bearer.fill(at(0), 200);
    let status = Status { acknowledged: 1, missing: vec![(0, block.pdus[0].range)] };
    for count in 0..3 {
        let expected = if count < 2 { Ok(()) } else { Err(MaxRetransmissions) };
        assert_eq!(bearer.down.acknowledge(&status), expected);
        assert!(bearer.fill(at(10 + count), 200).0.pdus[0].again);
    }
}

#[test]
fn nothing_remains_of_a_released_connection() {
    let mut bearer = acknowledged_bearer();
    bearer.push(1, 100);
    let (block, _) = bearer.fill(at(0), 200);
    bearer.receive(at(1), &block.pdus);
    assert!(bearer.down.is_empty() && bearer.down.next_timer().is_some(), "its poll is not answered");
    bearer.down.release_connection();
    assert_eq!((bearer.down.next_timer(), bearer.down.waiting()), (None, 0));
    let mut bearer = Bearer::new(&unacknowledged());
    bearer.push(1, 100);
    let (block, _) = bearer.fill(at(0), 50);
    let mut cx = Context::new(None, &mut bearer.dropped, ComponentId(0));
    bearer.down.give_up(at(1), &block.pdus, &mut cx);
    assert!(bearer.down.is_empty() && bearer.down.waiting() > 0, "the rest of a lost packet");
    bearer.down.release_connection();
    assert_eq!(bearer.down.waiting(), 0);
}

#[test]
fn a_packet_that_is_given_up_before_its_last_segment_is_sent_is_lost_alone() {
    // NR: the third segment is sent after t-Reassembly has expired for a gap in the packet.
    let config = nr::Unacknowledged { sequence_bits: 6, t_reassembly: Span::from_millis(50) };
    let mut bearer = Bearer::new(&(&nr::Rlc::Unacknowledged(config)).into());
    bearer.push(2, 300);
    let blocks: Vec<Block> = (0..2).map(|_| bearer.fill(at(0), 100).0).collect();
    assert_eq!(bearer.receive(at(1), &blocks[1].pdus), 0, "its first segment is missing");
    assert_eq!(bearer.down.next_timer(), Some(at(51)));
    bearer.expire(at(51)).expect("without retransmissions");
    assert_eq!(bearer.dropped.len(), 1);
    while bearer.down.waiting() > 0 {
        let (block, _) = bearer.fill(at(60), 100);
        bearer.receive(at(61), &block.pdus);
    }
    assert_eq!((bearer.down.departures.len(), bearer.dropped.len()), (1, 1));
    assert!(bearer.down.departures[0].packet.id == 1 && bearer.down.next_timer().is_none());
}

#[test]
fn the_unacknowledged_mode_waits_for_t_reordering_and_within_its_window() {
    let mut bearer = Bearer::new(&unacknowledged());
    bearer.push(600, 10);
    let blocks: Vec<Block> = (0..600).map(|_| bearer.fill(at(0), 15).0).collect();
    assert_eq!(bearer.receive(at(1), &blocks[0].pdus), 1);
    assert_eq!(bearer.receive(at(2), &blocks[2].pdus), 1, "it waits for PDU 1");
    bearer.expire(at(52)).expect("without retransmissions");
    assert_eq!((bearer.down.departures.len(), bearer.dropped.len()), (2, 1));
    assert_eq!(bearer.receive(at(53), &blocks[1].pdus), 2, "PDU 1 is too late");
    // PDU 599 moves the window of 512 to PDU 88: PDUs 3 to 87 are lost.
    assert_eq!(bearer.receive(at(54), &blocks[599].pdus), 2);
    assert_eq!((bearer.dropped.len(), bearer.receive(at(54), &blocks[88].pdus)), (1 + 85, 3));
}
