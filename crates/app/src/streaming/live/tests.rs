use airpath_core::Seed;
use proptest::prelude::*;

use super::*;
use crate::streaming::video::FrameKind::{B, I, P};

const INTERVAL: Span = Span::from_millis(40);
const SSRC: u32 = 7;
const SEQUENCE: u16 = 65_530;
const TIMESTAMP: u32 = 4_294_960_000;

/// A packet of a stream: its frame, in the order of sending, and its bytes.
struct Sending {
    frame: usize,
    bytes: Vec<u8>,
}

/// The first payload of a frame: first macroblock 0, type of the slice, picture parameters 0.
fn slice(kind: FrameKind, last: bool) -> Vec<u8> {
    let (unit, header) = match kind {
        I => (0x65, [0b1000_1000, 0x80]),
        P => (0x41, [0b1110_0000, 0]),
        B => (0x01, [0b1010_1000, 0]),
    };
    match last {
        true => [&[unit], &header[..], &[9; 30]].concat(),
        false => [&[0x7C, 0x80 | unit & 0x1F], &header[..], &[9; 30]].concat(),
    }
}

/// Packets of frames with their types, and their times of display in frames; `counts` are the
/// packets of each.
fn packets(frames: &[(FrameKind, u32)], counts: &[usize]) -> Vec<Sending> {
    let mut packets = Vec::new();
    for (frame, (kind, display)) in frames.iter().enumerate() {
        let count = counts[frame % counts.len()];
        for part in 0..count {
            let header = RtpHeader {
                marker: part + 1 == count,
                payload_type: 96,
                sequence: SEQUENCE.wrapping_add(packets.len() as u16),
                timestamp: TIMESTAMP.wrapping_add(display * 3600),
                ssrc: SSRC,
            };
            let payload = match part {
                0 => slice(*kind, count == 1),
                _ => [&[0x7C, u8::from(part + 1 == count) << 6 | 1][..], &[9; 30]].concat(),
            };
            packets.push(Sending { frame, bytes: [&header.to_bytes()[..], &payload].concat() });
        }
    }
    packets
}

fn receiver() -> Receiver {
    let timeout = Span::from_secs(2);
    Receiver::new(None, timeout, Span::from_secs(5), Instant::ZERO, Seed::new(1).stream("receiver"))
}

/// Receives the packets for which `arrives` is true, each frame at its time, to the end.
fn received(packets: &[Sending], arrives: impl Fn(usize) -> bool) -> Receiver {
    let mut receiver = receiver();
    for (number, packet) in packets.iter().enumerate().filter(|(number, _)| arrives(*number)) {
        let now = Instant::ZERO + Span::from_secs(1) + INTERVAL * packet.frame as u64;
        while receiver.poll(now).is_some() {}
        assert!(receiver.receive(now, &packet.bytes).is_some(), "packet {number}");
    }
    while let Some(due) = receiver.next_wakeup() {
        while receiver.poll(due).is_some() {}
    }
    assert!(receiver.is_over() && receiver.ended() == Some(Ended::Silence));
    receiver
}

fn watched(receiver: &Receiver) -> Watched {
    receiver.watch(Span::from_millis(200), None).expect("two frames")
}

/// Types of 25 frames: every tenth is an I frame.
fn predicted() -> Vec<(FrameKind, u32)> {
    (0..25).map(|frame| (if frame % 10 == 0 { I } else { P }, frame)).collect()
}

/// Complete and decodable frames, and their number.
fn frames(watched: &Watched) -> [usize; 3] {
    let complete = watched.client.player().displayed();
    let count = |frames: &[bool]| frames.iter().filter(|frame| **frame).count();
    [count(complete), count(&watched.session.video.decodable(complete)), watched.session.video.frames().len()]
}

#[test]
fn a_whole_stream_has_all_frames() {
    let packets = packets(&predicted(), &[3, 1, 2]);
    let watched = watched(&received(&packets, |_| true));
    assert_eq!(frames(&watched), [25; 3]);
    assert_eq!(watched.sent.packets, packets.len() as u64);
    assert_eq!(watched.client.received().packets, packets.len() as u64);
    assert_eq!(watched.client.received().late, 0);
    let player = watched.client.player();
    // The sixth frame completes 200 ms of media.
    assert_eq!(player.first_frame(), Some(Instant::ZERO + Span::from_millis(1200)));
    assert_eq!(player.finished(), Some(Instant::ZERO + Span::from_millis(2200)));
    assert_eq!(watched.start, Instant::ZERO + Span::from_secs(1));
    assert!(watched.arrivals.iter().all(|arrival| arrival.delay.is_zero()));
    let kinds: Vec<_> = watched.session.video.frames().iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, predicted().iter().map(|(kind, _)| *kind).collect::<Vec<_>>());
}

#[test]
fn b_frames_are_displayed_in_their_order() {
    let order = [(I, 0), (P, 3), (B, 1), (B, 2), (P, 6), (B, 4), (B, 5), (P, 7)];
    let packets = packets(&order, &[2]);
    let watched = watched(&received(&packets, |_| true));
    assert_eq!(frames(&watched), [8; 3]);
    assert_eq!(watched.session.video.sending_order(), [0, 3, 1, 2, 6, 4, 5, 7]);
    // Without the first P frame.
    let watched = self::watched(&received(&packets, |number| !(2..4).contains(&number)));
    assert_eq!(frames(&watched), [7, 1, 8]);
}

#[test]
fn lost_packets_and_frames_are_counted() {
    let packets = packets(&predicted(), &[3]);
    // The middle, the first, and the last packet of a frame.
    for (lost, decodable) in [(13, 19), (12, 19), (14, 19), (60, 20)] {
        let watched = watched(&received(&packets, |number| number != lost));
        assert_eq!(frames(&watched), [24, decodable, 25], "packet {lost}");
        assert_eq!(watched.sent.packets - watched.client.received().packets, 1);
    }
    // Three frames in a row, and the ends of those beside them.
    let watched = watched(&received(&packets, |number| !(14..25).contains(&number)));
    assert_eq!(frames(&watched), [20, 4 + 10 + 5, 25]);
    let [before, after] = [4, 8].map(|place| watched.session.first_packets[place + 1]);
    assert_eq!((before, after), (15, 27));
}

#[test]
fn a_stream_ends_with_bye_and_its_reports_have_the_loss() {
    let packets = packets(&predicted(), &[2]);
    let mut receiver = receiver();
    for (number, packet) in packets.iter().enumerate().filter(|(number, _)| number % 10 != 4) {
        let now = Instant::ZERO + Span::from_millis(20 * number as u64);
        assert!(receiver.receive(now, &packet.bytes).is_some());
    }
    let end = Instant::ZERO + Span::from_secs(1);
    let mut bye = Vec::new();
    let mut compound = Compound::new(&mut bye);
    compound.sender_report(SSRC, &rtcp::SenderInfo::default());
    compound.bye(SSRC);
    receiver.receive_report(end, &bye);
    assert_eq!((receiver.ended(), receiver.is_over()), (Some(Ended::Bye), false));
    let due = end + AFTER_BYE;
    let report = receiver.poll(due).expect("the last report").to_vec();
    assert!(receiver.is_over() && receiver.poll(due).is_none());
    let packets: Vec<_> = rtcp::packets(&report).map(|packet| packet.expect("valid")).collect();
    let Packet::Block(block) = packets[0] else { panic!("no report: {packets:?}") };
    assert_eq!((block.ssrc, block.lost, block.highest), (SSRC, 5, u32::from(SEQUENCE) + 49));
    assert_eq!(packets.last(), Some(&Packet::Bye));
    assert_eq!(receiver.counts().reports_received, 1);
}

#[test]
fn a_closed_connection_ends_a_stream_and_reports_reply_to_reports() {
    let packets = packets(&predicted(), &[1]);
    for has_reports in [false, true] {
        let mut receiver = receiver().replying();
        let mut now = Instant::ZERO;
        for packet in &packets {
            now += INTERVAL * 10;
            assert!(receiver.receive(now, &packet.bytes).is_some());
            assert_eq!(receiver.poll(now), None, "the sender has sent no report");
            assert!(receiver.next_wakeup().is_some_and(|due| due > now));
        }
        if has_reports {
            let mut report = Vec::new();
            Compound::new(&mut report).sender_report(SSRC, &rtcp::SenderInfo::default());
            receiver.receive_report(now, &report);
            assert!(receiver.poll(now).is_some(), "it was due before");
        }
        receiver.close(now);
        assert_eq!((receiver.next_wakeup(), receiver.is_over()), (Some(now), false));
        assert_eq!(receiver.poll(now).is_some(), has_reports, "the last report");
        assert_eq!((receiver.ended(), receiver.is_over()), (Some(Ended::Closed), true));
        assert_eq!(frames(&watched(&receiver)), [25; 3]);
    }
}

#[test]
fn other_packets_are_no_packets_of_the_stream() {
    let packets = packets(&predicted(), &[1]);
    let now = Instant::ZERO;
    let mut receiver = receiver();
    let mut transport = packets[0].bytes.clone();
    transport[1] = 33;
    assert_eq!(receiver.receive(now, &transport), None);
    assert_eq!((receiver.has_begun(), receiver.counts().foreign_type), (false, Some(33)));
    assert_eq!(receiver.receive(now, &packets[0].bytes), Some(1));
    for (byte, value) in [(0, 0x40), (1, 97), (4, 0x80), (11, 8), (12, 0x7F)] {
        let mut other = packets[1].bytes.clone();
        other[byte] = value;
        assert_eq!(receiver.receive(now, &other), None, "byte {byte}");
    }
    assert_eq!(receiver.receive(now, &packets[1].bytes), Some(2));
    assert_eq!(receiver.counts().foreign, 6);
}

#[test]
fn a_receiver_without_packets_ends_after_the_timeout() {
    let mut receiver = receiver();
    assert_eq!(receiver.next_wakeup(), Some(Instant::ZERO + Span::from_secs(2)));
    assert_eq!(receiver.poll(Instant::ZERO + Span::from_secs(2)), None, "there is no receiver of a report");
    assert!(receiver.is_over() && receiver.watch(Span::ZERO, None).is_err());
}

proptest! {
    /// Whatever is lost, delayed or repeated, each packet counts once.
    #[test]
    fn any_loss_and_order_keeps_the_counts(
        counts in proptest::collection::vec(1..5_usize, 1..6),
        losses in proptest::collection::vec(any::<bool>(), 1..40),
        shifts in proptest::collection::vec(0..60_usize, 1..30),
        b_frames in 0..3_u32,
    ) {
        let step = b_frames + 1;
        let mut order = vec![(I, 0)];
        for group in 0..8 {
            order.push((P, (group + 1) * step));
            order.extend((1..step).map(|b| (B, group * step + b)));
        }
        let packets = packets(&order, &counts);
        let mut arriving: Vec<(usize, usize)> =
            (0..packets.len()).filter(|number| *number == 0 || losses[number % losses.len()]).map(|number| {
                (if number == 0 { 0 } else { number + shifts[number % shifts.len()] }, number)
            }).collect();
        arriving.sort_unstable();
        let mut receiver = receiver();
        for (at, number) in &arriving {
            let now = Instant::ZERO + Span::from_millis(10 * *at as u64);
            prop_assert!(receiver.receive(now, &packets[*number].bytes).is_some());
        }
        let last = arriving.iter().map(|(_, number)| *number).max().unwrap_or_default();
        if packets[last].frame > 0 {
            let watched = receiver.watch(INTERVAL, None).expect("two frames");
            prop_assert_eq!(watched.sent.packets, last as u64 + 1);
            prop_assert_eq!(watched.client.received().packets, arriving.len() as u64);
            prop_assert_eq!(watched.client.received().foreign, 0);
            let [complete, decodable, all] = frames(&watched);
            prop_assert!(decodable <= complete && complete <= all && all <= order.len());
            prop_assert!(watched.client.player().finished().is_some());
        }
    }

    #[test]
    fn no_datagrams_make_it_panic(
        datagrams in proptest::collection::vec((any::<bool>(), any::<bool>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..30),
        buffer in 0..3_u64,
    ) {
        let mut receiver = receiver();
        let mut now = Instant::ZERO;
        for (is_report, is_rtp, mut bytes) in datagrams {
            now += Span::from_millis(50);
            if let ([first, kind, ..], true) = (&mut bytes[..], is_rtp) {
                (*first, *kind) = (0x80, if is_report { 203 } else { 96 | *kind & 0x80 });
                let likely = [0, 0, 0, 0, 0, 0, 7];
                bytes.iter_mut().skip(5).zip(likely).for_each(|(byte, value)| *byte = value);
            }
            match is_report {
                true => receiver.receive_report(now, &bytes),
                false => drop(receiver.receive(now, &bytes)),
            }
            while receiver.poll(now).is_some() {}
        }
        let _ = receiver.watch(Span::from_secs(buffer), Some(now));
        let _ = receiver.watch(Span::from_secs(buffer), None);
    }
}
