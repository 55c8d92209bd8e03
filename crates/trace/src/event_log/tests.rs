//! A small log, read as captures at both ends.

use airpath_core::Span;
use proptest::prelude::*;

use super::*;
use crate::two_point::{CaptureDigest, Clock, Fate, JoinOptions, join};
use airpath_observe::flows::Flows;

const MILLISECOND: Span = Span::from_millis(1);
const ACK: u8 = Flags::ACK.0;
const SYN: u8 = Flags::SYN.0;
const FIN: u8 = Flags::FIN.0;

/// Writes a log: each packet a millisecond after the one before, and 20 ms in transit.
#[derive(Default)]
struct Writer {
    segments: Vec<Logged>,
    row: u64,
    agreed: Option<Agreed>,
}

impl Writer {
    fn add(&mut self, direction: Direction, offset: i64, length: u32, ack: Option<i64>, flags: u8) -> &mut Logged {
        let packet = self.segments.len() as u64;
        let sent = Instant::ZERO + MILLISECOND * (packet + 1);
        self.row += 2;
        let event = |time, row| Event { time, row, ecn: Ecn::NotEct };
        self.segments.push(Logged {
            packet,
            flow: 0,
            direction,
            size: 40 + length,
            header: SegmentInfo { offset, length, ack: ack.into(), window: 65_536 * 4, flags, retransmission: false },
            sent: event(sent, self.row),
            received: Some(event(sent + MILLISECOND * 20, self.row + 1)),
        });
        self.segments.last_mut().expect("one was just added")
    }

    fn down(&mut self, offset: i64, length: u32) -> &mut Logged {
        self.add(Direction::Down, offset, length, Some(0), ACK)
    }

    fn acknowledge(&mut self, ack: i64) -> &mut Logged {
        self.add(Direction::Up, 0, 0, Some(ack), ACK)
    }

    fn handshake(&mut self) {
        self.add(Direction::Up, -1, 0, None, SYN).header.window = 65_535;
        self.add(Direction::Down, -1, 0, Some(0), SYN | ACK).header.window = 65_535;
        self.acknowledge(0);
    }

    fn log(&self) -> EventLog {
        let end = |text: &str, port| Endpoint { address: text.parse().expect("an address"), port };
        let flow = LoggedFlow { mobile: end("10.0.0.2", 49_152), server: end("192.0.2.1", 80), agreed: self.agreed };
        EventLog::new("a log".into(), &[flow], self.segments.clone())
    }
}

fn captured(log: &EventLog, point: CapturePoint) -> Vec<Segment<'static>> {
    let mut all = Vec::new();
    log.segments(point, |segment| {
        all.push(segment);
        true
    });
    all
}

#[test]
fn each_end_sees_what_it_sends_and_what_arrives() {
    let mut writer = Writer::default();
    writer.handshake();
    writer.down(0, 1000);
    writer.down(1000, 1000).received = None;
    let log = writer.log();
    let [near, far] = [CapturePoint::Sender, CapturePoint::Receiver].map(|point| captured(&log, point));
    // The data goes down: the server sees it as it is sent, and of the mobile what arrives.
    let seen = |all: &[Segment<'_>]| {
        all.iter().map(|segment| (segment.frame, segment.time.as_nanos() / 1_000_000)).collect::<Vec<_>>()
    };
    assert_eq!(seen(&near), [(1, 2), (3, 4), (4, 5), (0, 21), (2, 23)]);
    assert_eq!(seen(&far), [(0, 1), (2, 3), (1, 22), (3, 24)]);
    assert_eq!(near[1].sequence, 1, "the first byte follows the SYN");
    assert_eq!((near[1].window, near[0].window, near[0].options.window_scale), (32_768, 65_535, Some(3)));
}

#[test]
fn a_handshake_has_the_options_that_were_agreed_on() {
    let agreed = Some(Agreed { selective: true, shifts: [7, 4] });
    let mut writer = Writer { agreed, ..Writer::default() };
    writer.handshake();
    writer.down(0, 1000);
    let seen = captured(&writer.log(), CapturePoint::Sender);
    let options = |at: usize| (seen[at].options.window_scale, seen[at].options.sack_permitted);
    assert_eq!((options(0), options(1), options(2)), ((Some(7), true), (None, false), (Some(4), true)));
    assert_eq!(seen[1].window, (65_536 * 4 / 128) as u16);
}

#[test]
fn both_ends_join_and_show_losses() {
    let mut writer = Writer::default();
    writer.handshake();
    for number in 0..10 {
        let lost = number == 4;
        let logged = writer.down(1000 * number, 1000);
        logged.received = logged.received.filter(|_| !lost);
    }
    let log = writer.log();
    let [near, far] = [CapturePoint::Sender, CapturePoint::Receiver].map(|point| {
        let (mut flows, mut tap) = (Flows::default(), CaptureDigest::default());
        log.segments(point, |segment| {
            flows.segment(&segment, &mut tap);
            true
        });
        tap
    });
    let options = JoinOptions { clock: Some(Clock::SAME), ..JoinOptions::default() };
    let joined = join(near, far, &options).expect("they share a connection");
    let transits: Vec<_> = joined
        .connections
        .iter()
        .flat_map(|joined| &joined.directions)
        .flat_map(|direction| &direction.transits)
        .collect();
    let lost: Vec<_> = transits.iter().filter(|transit| transit.fate == Fate::Lost).collect();
    assert_eq!(transits.len(), 13);
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].packet.offset, 4000);
}

#[test]
fn blocks_are_those_for_which_a_segment_is_long_enough() {
    let mut writer = Writer::default();
    writer.handshake();
    writer.down(0, 1000).received = None;
    writer.down(1000, 1000);
    writer.down(2000, 1000);
    writer.down(3000, 1000).received = None;
    writer.down(4000, 1000);
    writer.down(1000, 1000);
    for _ in 0..30 {
        writer.down(5000, 0);
    }
    writer.acknowledge(0).size = 40 + 4 + 3 * 8;
    writer.acknowledge(0).size = 40 + 4 + 2 * 8;
    writer.acknowledge(0);
    let log = writer.log();
    let blocks: Vec<Vec<_>> = captured(&log, CapturePoint::Receiver)
        .iter()
        .filter(|segment| !segment.options.sack.is_empty())
        .map(|segment| segment.options.sack.as_slice().to_vec())
        .collect();
    // The duplicate, the block that it lies in, and the other; then the remaining blocks.
    assert_eq!(blocks, [vec![(1001, 2001), (1001, 3001), (4001, 5001)], vec![(1001, 3001), (4001, 5001)]]);
    assert!(captured(&log, CapturePoint::Receiver)[0].options.sack_permitted);
}

#[test]
fn a_closing_connection_is_not_the_one_that_opens() {
    let mut writer = Writer::default();
    writer.handshake();
    writer.add(Direction::Up, 0, 300, Some(0), ACK);
    writer.add(Direction::Down, 0, 900, Some(300), ACK | FIN);
    // The next opens, its SYN is sent again, and only then the first is closed from this side, too.
    writer.add(Direction::Up, -1, 0, None, SYN);
    writer.add(Direction::Up, -1, 0, None, SYN);
    writer.add(Direction::Up, 300, 0, Some(901), ACK | FIN);
    writer.add(Direction::Down, -1, 0, Some(0), SYN | ACK);
    writer.add(Direction::Down, 901, 0, Some(301), ACK);
    writer.acknowledge(0);
    let ports: Vec<_> = captured(&writer.log(), CapturePoint::Receiver)
        .iter()
        .map(|segment| segment.route.source.port.max(segment.route.destination.port))
        .collect();
    let first = ports.iter().filter(|port| **port == 49_152).count();
    assert_eq!((first, ports.len() - first), (7, 4));
}

/// Packets that no run sends: anything at all.
fn anything() -> impl Strategy<Value = Logged> {
    let header = (any::<i64>(), 0..70_000_u32, any::<Option<i64>>(), any::<u32>(), any::<u8>());
    let header = header.prop_map(|(offset, length, ack, window, flags)| SegmentInfo {
        offset,
        length,
        ack: ack.into(),
        window,
        flags,
        retransmission: false,
    });
    let near = (-3_i64..9, 0..3_u32, prop::option::of(-1_i64..9), 0..90_000_u32, any::<u8>());
    let near = near.prop_map(|(offset, length, ack, window, flags)| SegmentInfo {
        offset,
        length,
        ack: ack.into(),
        window,
        flags,
        retransmission: false,
    });
    let event = (0..50_u64, 0..50_u64).prop_map(|(time, row)| Event {
        time: Instant::ZERO + MILLISECOND * time,
        row,
        ecn: Ecn::NotEct,
    });
    let packet = (0..50_u64, 0..2_u32, any::<bool>(), 0..200_u32, prop_oneof![header, near]);
    (packet, event.clone(), prop::option::of(event)).prop_map(|((packet, flow, up, size, header), sent, received)| {
        Logged {
            packet,
            flow,
            direction: if up { Direction::Up } else { Direction::Down },
            size,
            header,
            sent,
            received,
        }
    })
}

proptest! {
    #[test]
    fn every_segment_appears_once_at_each_end(segments in prop::collection::vec(anything(), 0..60)) {
        let end = |port| Endpoint { address: [10, 0, 0, 2].into(), port };
        let flows = [80, 60_000].map(|port| LoggedFlow { mobile: end(port), server: end(80), agreed: None });
        let events = segments.len() + segments.iter().filter(|segment| segment.received.is_some()).count();
        let log = EventLog::new("a log".into(), &flows, segments);
        let [near, far] = [CapturePoint::Sender, CapturePoint::Receiver].map(|point| {
            let all = captured(&log, point);
            prop_assert!(all.is_sorted_by_key(|segment| segment.time));
            let mut flows = Flows::default();
            let mut tap = CaptureDigest::default();
            all.iter().for_each(|segment| flows.segment(segment, &mut tap));
            Ok((all.len(), tap))
        });
        let ((near, first), (far, second)) = (near?, far?);
        prop_assert_eq!(near + far, events);
        // They may share no connection: an error.
        let _ = join(first, second, &JoinOptions { clock: Some(Clock::SAME), ..JoinOptions::default() });
    }
}
