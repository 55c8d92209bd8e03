//! The observer of a link, against TCP end points and against the captures of the link.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::Reader;
use airpath_core::{Bitrate, Direction, Ecn, FlowId, Instant, Packet, Slot, Span, UserId};
use airpath_emu::observe::{Observer, Passage};
use airpath_emu::offload::{Frame, VirtioHeader};
use airpath_emu::taps::{Captures, Taps, View};
use airpath_observe::columns::{COLUMNS, CONNECTION_COLUMNS};
use airpath_observe::flows::{Ending, FlowNumber, Flows, Listener};
use airpath_observe::{Connection, End, Observation};
use airpath_tcp::testing::{Hop, Pair, Pipe, Side};
use airpath_tcp::{Profile, Segment};
use airpath_wire::checksum::Sum;
use airpath_wire::ip::Protocol;
use airpath_wire::ipv4::Ipv4Header;
use proptest::prelude::*;

const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The client is the mobile.
const fn direction(side: Side) -> Direction {
    match side {
        Side::Client => Direction::Up,
        Side::Server => Direction::Down,
    }
}

/// The segment as a packet with this identification, its payload zeros.
fn packet(side: Side, segment: &Segment, identification: u16) -> Vec<u8> {
    let header_bytes = Ipv4Header::LENGTH + segment.header.wire_length();
    let length = header_bytes + segment.length as usize;
    let (source, destination) = match side {
        Side::Client => (MOBILE, SERVER),
        Side::Server => (SERVER, MOBILE),
    };
    let mut bytes = vec![0; length];
    Ipv4Header {
        dscp: 0,
        ecn: Ecn::NotEct,
        total_length: length as u16,
        identification,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        time_to_live: 64,
        protocol: Protocol::TCP,
        source,
        destination,
    }
    .emit(&mut bytes);
    let pseudo = Sum::pseudo_v4(source, destination, Protocol::TCP, (length - Ipv4Header::LENGTH) as u32);
    segment.header.emit(&mut bytes[Ipv4Header::LENGTH..], pseudo);
    bytes
}

/// All segments of two transfers, with time and sender; `None` where the profile has no handshake.
fn exchange(
    profile: Profile,
    initial: [u32; 2],
    seed: u64,
    chances: (f64, f64),
    bytes: [u64; 2],
    flips: [bool; 2],
) -> Option<Exchange> {
    let mut config = profile.config();
    if !config.handshake {
        return None;
    }
    config.window_scaling ^= flips[0];
    config.timestamps ^= flips[1];
    let pipe = |which| {
        let rate = Some(Bitrate::from_bps(2_000_000));
        let hops = vec![Hop::new(rate, Span::from_millis(20), 30)];
        Pipe::of(hops).chance(seed ^ which, chances.0, 0.02, chances.1, Span::from_millis(50))
    };
    let mut pair = Pair::with([&config, &config], initial, pipe(1), pipe(2));
    pair.sent = Some(Vec::new());
    for (side, bytes) in [Side::Client, Side::Server].into_iter().zip(bytes) {
        // The old simulators only send whole segments.
        if bytes > 0 && !config.whole_segments {
            pair.connection(side).write(bytes);
        }
        pair.connection(side).close();
    }
    pair.run(Span::from_secs(60));
    let sent = pair.sent.take().expect("it is kept");
    Some(Exchange { pair, sent })
}

struct Exchange {
    pair: Pair,
    sent: Vec<(Instant, Side, Segment)>,
}

/// A link that loses and delays each packet as the test requests, with captures at both ends.
struct Link {
    taps: Taps,
    /// Packets in flight: due time, number, direction, bytes and flow.
    under_way: BTreeMap<(Instant, u64), (Direction, Vec<u8>, Packet)>,
    packets: u64,
}

impl Link {
    fn new(folder: &Path) -> Self {
        let captures = Captures::create(folder, Span::ZERO).expect("the folder can be written");
        let taps = Taps { observer: Some(Observer::new()), captures: Some(captures), ..Taps::default() };
        Self { taps, under_way: BTreeMap::new(), packets: 0 }
    }

    /// Adds a packet that enters at `now`, and leaves after `delay`; `None` if it is lost.
    fn enters(&mut self, now: Instant, direction: Direction, bytes: Vec<u8>, delay: Option<Span>) {
        self.leave_until(now);
        let frame = Frame::inspect(&VirtioHeader::default(), &bytes).expect("it is a packet");
        let mut packet = Packet {
            id: self.packets,
            size: frame.bytes(),
            flow: FlowId(0),
            user: UserId::new(0),
            ecn: frame.ecn(),
            slot: Slot(0),
        };
        self.taps.enters(now, direction, &mut packet, View { frame: &frame, bytes: &bytes, segment: 0 });
        match delay {
            Some(delay) => drop(self.under_way.insert((now + delay, self.packets), (direction, bytes, packet))),
            None => self.taps.lost(direction, &packet),
        }
        self.packets += 1;
    }

    fn leave_until(&mut self, now: Instant) {
        while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((due, _), (direction, bytes, packet)) = entry.remove_entry();
            let frame = Frame::inspect(&VirtioHeader::default(), &bytes).expect("it is a packet");
            // It is handed over slightly after it was due, but before the next packet.
            let passage = Passage { entered: due, number: None, due, now: due + Span::from_nanos(1) };
            self.taps.leaves(passage, direction, &packet, View { frame: &frame, bytes: &bytes, segment: 0 });
        }
    }
}

/// The connections of a capture, in the order of their numbers.
#[derive(Default)]
struct Kept(BTreeMap<FlowNumber, Connection>);

impl Listener for Kept {
    fn observed(
        &mut self,
        flow: FlowNumber,
        _: &Observation,
        _: &airpath_wire::segment::Segment<'_>,
        seen: &Connection,
    ) {
        self.0.insert(flow, seen.clone());
    }

    fn ended(&mut self, flow: FlowNumber, connection: &Connection, _: Ending) {
        self.0.insert(flow, connection.clone());
    }
}

/// The connections that `airpath trace` finds in a capture.
fn traced(path: &Path) -> Vec<Connection> {
    let mut reader = Reader::new(File::open(path).expect("it was written")).expect("it is a capture");
    let (mut decoder, mut flows, mut kept) = (Decoder::default(), Flows::default(), Kept::default());
    while let Some(record) = reader.next_record() {
        if let Decoded::Segment(segment) = decoder.decode(&record) {
            assert_eq!(segment.checksum, Some(true));
            flows.segment(&segment, &mut kept);
        }
    }
    flows.finish(&mut kept);
    kept.0.into_values().collect()
}

/// Every figure of a connection, with its name.
fn figures(connection: &Connection) -> Vec<String> {
    let whole = CONNECTION_COLUMNS.iter().map(|column| format!("{} {:?}", column.name, (column.value)(connection)));
    let each = COLUMNS.iter().flat_map(|column| {
        End::BOTH.map(|end| format!("{} {end:?} {:?}", column.name, (column.value)(connection, end)))
    });
    whole.chain(each).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn headers_are_read_as_their_sender_means_them(
        profile in prop::sample::select(Profile::ALL.to_vec()),
        initial in any::<[u32; 2]>(),
        (seed, loss, reordering) in (any::<u64>(), 0.0..0.2, 0.0..0.2),
        bytes in [0u64..200_000, 0u64..200_000],
        flips in any::<[bool; 2]>(),
    ) {
        let Some(exchange) = exchange(profile, initial, seed, (loss, reordering), bytes, flips) else { return Ok(()) };
        let mut observer = Observer::new();
        for ((now, side, segment), number) in exchange.sent.iter().zip(1..) {
            let bytes = packet(*side, segment, number);
            let frame = Frame::inspect(&VirtioHeader::default(), &bytes).expect("it is a packet");
            let seen = observer.enters(*now, direction(*side), &frame, &bytes, 0);
            let passage = Passage { entered: *now, number: Some(seen.number), due: *now, now: *now };
            observer.leaves(passage, direction(*side), (seen.flow, Ecn::NotEct), &frame, &bytes, 0);
            prop_assert_eq!(seen.flow, FlowId(0));
            prop_assert_eq!(seen.segment, Some(segment.info));
        }
        let rows = observer.rows(0, "mobile");
        let transfer = rows[0].transfer.as_ref().expect("it is TCP");
        let sender = if rows[0].observed.as_ref().map(|row| row.direction) == Some("up") { Side::Client } else { Side::Server };
        let statistics = *exchange.pair.look(sender).statistics();
        prop_assert_eq!(transfer.data_packets, Some(statistics.data_segments));
        prop_assert_eq!(transfer.data_bytes, Some(statistics.data_bytes));
        prop_assert_eq!(transfer.unique_bytes, Some(statistics.unique_bytes));
        // The observer also counts SYN and FIN, and their sequence numbers.
        let again = exchange.sent.iter().filter(|(_, side, segment)| *side == sender && segment.info.retransmission);
        prop_assert_eq!(transfer.retransmitted_packets, Some(again.count() as u64));
        prop_assert!(transfer.retransmitted_bytes >= Some(statistics.retransmitted_bytes));
    }

    #[test]
    fn a_row_equals_the_analysis_of_the_captures_to_the_last_figure(
        profile in prop::sample::select(Profile::ALL.to_vec()),
        initial in any::<[u32; 2]>(),
        (seed, loss, reordering) in (any::<u64>(), 0.0..0.2, 0.0..0.2),
        bytes in [0u64..200_000, 0u64..200_000],
        flips in any::<[bool; 2]>(),
        delays in prop::collection::vec(prop::option::weighted(0.95, 0u64..60_000), 1..200),
    ) {
        let Some(exchange) = exchange(profile, initial, seed, (loss, reordering), bytes, flips) else { return Ok(()) };
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("observe");
        let mut link = Link::new(&folder);
        let delays = delays.iter().cycle().map(|delay| delay.map(Span::from_micros));
        for (((now, side, segment), delay), number) in exchange.sent.iter().zip(delays).zip(1..) {
            // Packets pass an end at different times, so that their order is that of the capture.
            let now = Instant::from_nanos(now.as_nanos().next_multiple_of(1000) + 1_000_000 * number);
            link.enters(now, direction(*side), packet(*side, segment, number as u16), delay);
        }
        link.leave_until(Instant::from_nanos(u64::MAX));
        let Taps { observer, captures, .. } = link.taps;
        let (observer, captures) = (observer.expect("it was there"), captures.expect("they were there"));
        captures.finish().expect("the disk has room");
        for (direction, name) in [(Direction::Down, "server"), (Direction::Up, "mobile")] {
            let traced = traced(&folder.join(format!("0000-{name}.pcapng")));
            let ours = (0..).map_while(|flow| observer.connection(FlowId(flow), direction));
            for (ours, theirs) in ours.clone().zip(&traced) {
                prop_assert_eq!(figures(ours), figures(theirs));
            }
            prop_assert_eq!(ours.count(), traced.len());
        }
    }
}
