//! The acknowledged mode: by hand, and every packet once and in order whatever is lost.

use std::collections::VecDeque;

use airpath_core::{Ecn, FlowId, Instant, Packet, Seed, Slot, UserId};
use airpath_radio::common::arq::acknowledged::{Pdu, Receiver, Reception, Sender, Settings, Status};
use airpath_radio::common::arq::rlc_queue::RlcQueue;
use proptest::prelude::*;

const NOW: Instant = Instant::ZERO;

fn packet(id: u64, size: u32) -> Packet {
    Packet { id, size, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) }
}

fn sender(window: u64, end_overhead: u32, sizes: &[u32]) -> Sender {
    let mut sender = Sender::new(Settings { window, packet_overhead: 0, end_overhead }, RlcQueue::unlimited());
    for (id, size) in sizes.iter().enumerate() {
        assert_eq!(sender.enqueue(NOW, packet(id as u64, *size), |_| {}), Ok(()));
    }
    sender
}

fn all_new(sender: &mut Sender, payload: u32) -> Vec<Pdu> {
    std::iter::from_fn(|| sender.next_new(NOW, payload, 0, |_| {})).collect()
}

fn status(receiver: &Receiver) -> Status {
    let mut status = Status::default();
    receiver.report(&mut status);
    status
}

fn handed_over(sender: &mut Sender, receiver: &Receiver) -> Vec<u64> {
    let mut ids = Vec::new();
    sender.hand_over(receiver.complete(), |packet| ids.push(packet.id));
    ids
}

#[test]
fn a_pdu_carries_the_end_of_one_packet_and_the_beginning_of_the_next() {
    let lengths =
        |end, sizes: &[u32]| all_new(&mut sender(64, end, sizes), 50).iter().map(|pdu| pdu.length).collect::<Vec<_>>();
    assert_eq!(lengths(1, &[100]), [50, 50]);
    // The indicator of the first packet's end moves into the third PDU.
    assert_eq!(lengths(1, &[100, 100]), [50, 50, 49, 50, 1]);
    assert_eq!(lengths(1, &[30, 30, 30]), [30 + 19, 11 + 30]);
    assert_eq!(lengths(0, &[30, 30, 30]), [50, 40]);
    // Room for one byte when two are needed: as if the packet had filled the PDU.
    assert_eq!(lengths(2, &[49, 60]), [49, 48, 12]);
    assert_eq!(lengths(1, &[0, 0]), [2], "a packet of no bytes has an end, too");
}

#[test]
fn without_concatenation_each_packet_begins_a_pdu() {
    let lengths = |sizes: &[u32]| {
        let mut sender = sender(64, 1, sizes).without_concatenation();
        all_new(&mut sender, 50).iter().map(|pdu| pdu.length).collect::<Vec<_>>()
    };
    assert_eq!(lengths(&[30, 130, 20]), [30, 50, 50, 30, 20]);
    // The indicator of a packet that fills its last PDU still is in the next one.
    assert_eq!(lengths(&[100, 60]), [50, 50, 49, 11]);
}

#[test]
fn the_window_stops_the_sender() {
    let (mut sender, mut receiver) = (sender(4, 0, &[1000]), Receiver::new(4));
    let sent = all_new(&mut sender, 100);
    assert_eq!((sent.len(), sender.is_stalled(), sender.is_open()), (4, true, false));
    sent[1..].iter().for_each(|pdu| {
        receiver.receive(pdu);
    });
    sender.handle(&status(&receiver), u64::MAX);
    assert!(sender.is_stalled(), "the oldest one is still missing");
    let again = sender.next_repeat().expect("it was reported");
    assert_eq!((again.sequence, again.attempt, again.length), (0, 2, 100));
    assert!(sender.next_repeat().is_none());
    receiver.receive(&again);
    sender.handle(&status(&receiver), u64::MAX);
    assert_eq!((sender.first_unacknowledged(), sender.is_stalled()), (4, false));
    assert_eq!(all_new(&mut sender, 100).len(), 4);
    sender.grow(6);
    assert_eq!(all_new(&mut sender, 100).len(), 2, "a wider window lets the last two go");
    assert!(!sender.has_new() && sender.has_unacknowledged());
}

#[test]
fn receivers_distinguish_new_gap_and_useless() {
    let mut sender = sender(4, 0, &[600]);
    let pdus = all_new(&mut sender, 100);
    let mut receiver = Receiver::new(4);
    assert_eq!(receiver.receive(&pdus[0]), Reception::New);
    assert_eq!(receiver.receive(&pdus[0]), Reception::Useless);
    assert_eq!(receiver.receive(&pdus[2]), Reception::Gap);
    assert_eq!(receiver.receive(&pdus[2]), Reception::Useless);
    assert_eq!(receiver.receive(&pdus[3]), Reception::New, "that 1 is missing is known");
    assert_eq!(receiver.receive(&Pdu { sequence: 5, ..pdus[3] }), Reception::Useless, "outside the window");
    assert_eq!((receiver.next_expected(), receiver.highest(), receiver.complete()), (1, 4, 100));
    assert_eq!(receiver.receive(&pdus[1]), Reception::New);
    assert_eq!((receiver.next_expected(), receiver.complete(), receiver.has_gap()), (4, 400, false));
}

#[test]
fn a_report_does_not_judge_pdus_sent_after_it() {
    let (mut sender, mut receiver) = (sender(64, 0, &[300]), Receiver::new(64));
    let pdus = all_new(&mut sender, 100);
    receiver.receive(&pdus[2]);
    let early = status(&receiver);
    assert_eq!((early.from, early.to, early.missing(), early.has(0), early.has(2)), (0, 3, 2, false, true));
    sender.handle(&early, u64::MAX);
    assert_eq!(sender.peek_repeat().map(|pdu| (pdu.sequence, pdu.attempt)), Some((0, 2)));
    let polled = sender.transmissions();
    assert_eq!(sender.next_repeat().map(|pdu| pdu.sequence), Some(0));
    sender.handle(&early, polled);
    assert_eq!(sender.next_repeat().map(|pdu| pdu.sequence), Some(1), "0 is in flight again, 1 is still to be sent");
    sender.handle(&early, polled);
    assert!(!sender.has_repeats());
    sender.handle(&early, u64::MAX);
    assert_eq!(sender.next_repeat().map(|pdu| (pdu.sequence, pdu.attempt)), Some((0, 3)), "taken at its word");
}

#[test]
fn a_part_of_a_bitmap_judges_a_part() {
    let (mut sender, mut receiver) = (sender(200, 0, &[15_000]), Receiver::new(200));
    let pdus = all_new(&mut sender, 100);
    pdus.iter().filter(|pdu| pdu.sequence % 2 == 1).for_each(|pdu| {
        receiver.receive(pdu);
    });
    let mut part = Status::default();
    receiver.report_from(70, &mut part);
    part.shorten(10);
    assert_eq!((part.next_expected, part.from, part.to, part.missing()), (0, 70, 80, 5));
    sender.handle(&part, u64::MAX);
    let repeated: Vec<_> = std::iter::from_fn(|| sender.next_repeat()).map(|pdu| pdu.sequence).collect();
    assert_eq!(repeated, [70, 72, 74, 76, 78]);
    assert_eq!(sender.first_unacknowledged(), 0);
}

#[test]
fn unrequested_repeats_cycle_through_the_unacknowledged() {
    let (mut sender, mut receiver) = (sender(64, 0, &[300]), Receiver::new(64));
    let pdus = all_new(&mut sender, 100);
    receiver.receive(&pdus[1]);
    let mut report = status(&receiver);
    sender.handle(&report, 0);
    assert!(!sender.has_repeats());
    assert_eq!(sender.repeat_from(0).map(|pdu| pdu.sequence), Some(0));
    assert_eq!(sender.repeat_from(1).map(|pdu| pdu.sequence), Some(2));
    assert_eq!(sender.repeat_from(3), None);
    report.next_expected = 3;
    sender.handle(&report, 0);
    assert_eq!(sender.repeat_from(0), None, "all is acknowledged");
}

#[test]
fn a_reset_loses_what_was_sent_and_a_restart_sends_it_again() {
    for keeps in [false, true] {
        let (mut sender, mut receiver) = (sender(64, 1, &[120, 120, 120]), Receiver::new(64));
        let first = sender.next_new(NOW, 150, 0, |_| {}).expect("the first packet and a part of the second");
        receiver.receive(&first);
        assert_eq!(handed_over(&mut sender, &receiver), [0]);
        let late = sender.next_new(NOW, 50, 0, |_| {}).expect("some more of the second");
        assert_eq!(sender.backlog(), (2, 240));
        let mut lost = Vec::new();
        if keeps {
            sender.restart()
        } else {
            sender.reset(|packet| lost.push(packet.id))
        }
        receiver.restart(sender.next_sequence(), sender.cut());
        assert_eq!(lost, if keeps { vec![] } else { vec![1] });
        assert_eq!(sender.backlog().0, if keeps { 2 } else { 1 });
        assert_eq!(receiver.receive(&late), Reception::Useless, "it was sent before the reset");
        all_new(&mut sender, 50).iter().for_each(|pdu| {
            assert_eq!(receiver.receive(pdu), Reception::New);
        });
        assert_eq!(handed_over(&mut sender, &receiver), if keeps { vec![1, 2] } else { vec![2] });
        sender.clear_queue(Instant::ZERO, |_| panic!("nothing is left"));
    }
}

/// One run over a channel that loses PDUs and reports, with delays of a few transmissions both
/// ways.
fn transfer(settings: Settings, payload: u32, sizes: &[u32], loss: (f64, f64), delays: (usize, usize), seed: u64) {
    let mut draws = Seed::new(seed).stream("channel");
    let mut sender = Sender::new(settings, RlcQueue::unlimited());
    let mut receiver = Receiver::new(settings.window);
    let (mut pdus, mut statuses) = (VecDeque::from(vec![None; delays.0]), VecDeque::from(vec![None; delays.1]));
    let (mut offered, mut delivered, mut idle, mut steps) = (0, Vec::new(), 0, 0);
    while delivered.len() < sizes.len() {
        steps += 1;
        assert!(steps < 2_000_000, "it comes to an end: {sender:?} {receiver:?}");
        if offered < sizes.len() && draws.uniform() < 0.3 {
            assert_eq!(sender.enqueue(NOW, packet(offered as u64, sizes[offered]), |_| {}), Ok(()));
            offered += 1;
        }
        let pdu = match sender.next_repeat() {
            Some(pdu) => Some(pdu),
            None => sender.next_new(NOW, payload, 0, |_| panic!("it drops nothing")),
        };
        // With nothing to send, no answer comes: after some time something is repeated
        // without a request.
        idle = if pdu.is_some() { 0 } else { idle + 1 };
        let pdu = if idle > 3 * (delays.0 + delays.1) { sender.repeat_from(0) } else { pdu };
        assert!(sender.next_sequence() - sender.first_unacknowledged() <= settings.window);
        pdus.push_back(pdu.filter(|_| draws.uniform() >= loss.0));
        if let Some(pdu) = pdus.pop_front().flatten() {
            assert!(pdu.length <= payload);
            receiver.receive(&pdu);
            sender.hand_over(receiver.complete(), |packet| delivered.push(packet.id));
            let mut report = Status::default();
            receiver.report(&mut report);
            if draws.uniform() < 0.2 {
                report.shorten(7);
            }
            statuses.push_back(Some(report).filter(|_| draws.uniform() >= loss.1));
        } else {
            statuses.push_back(None);
        }
        if let Some(report) = statuses.pop_front().flatten() {
            let judged = if draws.uniform() < 0.5 { u64::MAX } else { sender.transmissions().saturating_sub(9) };
            sender.handle(&report, judged);
        }
        assert!(sender.first_unacknowledged() <= receiver.next_expected(), "nothing is acknowledged that is not there");
    }
    assert!(delivered.iter().copied().eq(0..sizes.len() as u64), "in order: {delivered:?}");
}

proptest! {
    #[test]
    fn every_packet_arrives_once_and_in_order(
        window in prop::sample::select(vec![1u64, 2, 16, 64, 65, 300, 2047]),
        (packet_overhead, end_overhead) in (0u32..12, 0u32..3),
        payload in 4u32..200,
        sizes in prop::collection::vec(0u32..1500, 1..40),
        losses in (0.0f64..0.7, 0.0f64..0.7),
        delays in (0usize..20, 0usize..20),
        seed: u64,
    ) {
        transfer(Settings { window, packet_overhead, end_overhead }, payload, &sizes, losses, delays, seed);
    }
}

#[test]
fn what_is_given_up_is_skipped_and_what_shares_its_pdus_is_not() {
    let mut sender = sender(64, 1, &[30, 30, 30, 30, 100]);
    let pdus: Vec<Pdu> = (0..4).map_while(|_| sender.next_new(NOW, 50, 0, |_| {})).collect();
    assert_eq!(pdus.iter().map(|pdu| pdu.length).collect::<Vec<_>>(), [49, 48, 23 + 26, 50]);
    let mut receiver = Receiver::new(64);
    for pdu in &pdus[1..3] {
        receiver.receive(pdu);
    }
    // The first PDU has the first packet and the beginning of the second; the other one has its
    // end, and more.
    let mut lost = Vec::new();
    assert_eq!(sender.give_up(0, |packet| lost.push(packet.id)), (1, 60));
    assert_eq!(lost, [0, 1]);
    sender.handle(&status(&receiver), u64::MAX);
    assert_eq!((sender.first_unacknowledged(), sender.has_repeats()), (0, false), "the window waits for the receiver");
    receiver.skip(1, 60);
    assert_eq!((receiver.next_expected(), handed_over(&mut sender, &receiver)), (3, vec![2, 3]));
    sender.skipped();
    assert_eq!((sender.first_unacknowledged(), sender.has_unacknowledged()), (3, true));
    // Of the last packet a part was never sent: it never will be. The next one follows right
    // behind.
    assert_eq!(sender.give_up(3, |packet| lost.push(packet.id)), (4, 196));
    assert!(lost == [0, 1, 4] && !sender.has_new() && !sender.has_unacknowledged());
    receiver.skip(4, 196);
    sender.skipped();
    assert_eq!(sender.enqueue(NOW, packet(5, 40), |_| {}), Ok(()));
    let next = sender.next_new(NOW, 50, 0, |_| {}).expect("a new one");
    assert_eq!((next.sequence, next.offset, next.length), (4, 196, 40));
    assert_eq!((receiver.receive(&next), handed_over(&mut sender, &receiver)), (Reception::New, vec![5]));
    receiver.skip(2, 60);
    assert_eq!(receiver.next_expected(), 5, "what comes late changes nothing");
}
