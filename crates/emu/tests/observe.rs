//! What is seen of TCP from outside, against what its end points say themselves.

use std::net::Ipv4Addr;

use airpath_core::{Bitrate, Direction, Ecn, FlowId, Span};
use airpath_emu::observe::Observer;
use airpath_emu::offload::{Frame, VirtioHeader};
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

/// The segment as a packet, its payload zeros.
fn packet(side: Side, segment: &Segment) -> Vec<u8> {
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
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        time_to_live: 64,
        protocol: Protocol::TCP,
        source,
        destination,
    }
    .emit(&mut bytes);
    segment.header.emit(&mut bytes[Ipv4Header::LENGTH..], Sum::default());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn headers_are_read_as_their_sender_means_them(
        profile in prop::sample::select(Profile::ALL.to_vec()),
        initial in any::<[u32; 2]>(),
        (seed, loss, reordering) in (any::<u64>(), 0.0..0.2, 0.0..0.2),
        (up, down) in (0u64..200_000, 0u64..200_000),
        flips in any::<[bool; 2]>(),
    ) {
        let mut config = profile.config();
        if !config.handshake {
            return Ok(());
        }
        config.window_scaling ^= flips[0];
        config.timestamps ^= flips[1];
        let pipe = |which| {
            let rate = Some(Bitrate::from_bps(2_000_000));
            let hops = vec![Hop::new(rate, Span::from_millis(20), 30)];
            Pipe::of(hops).chance(seed ^ which, loss, 0.02, reordering, Span::from_millis(50))
        };
        let mut pair = Pair::with([&config, &config], initial, pipe(1), pipe(2));
        pair.sent = Some(Vec::new());
        for (side, bytes) in [(Side::Client, up), (Side::Server, down)] {
            // Those of the old simulators send whole segments only.
            if bytes > 0 && !config.whole_segments {
                pair.connection(side).write(bytes);
            }
            pair.connection(side).close();
        }
        pair.run(Span::from_secs(60));

        let mut observer = Observer::new();
        let sent = pair.sent.take().expect("it is kept");
        for (now, side, segment) in &sent {
            let bytes = packet(*side, segment);
            let frame = Frame::inspect(&VirtioHeader::default(), &bytes).expect("it is a packet");
            let seen = observer.enters(*now, direction(*side), &frame, &bytes, 0);
            prop_assert_eq!(seen.flow, FlowId(0));
            prop_assert_eq!(seen.segment, Some(segment.info));
        }
        let rows = observer.rows(0, "mobile");
        let transfer = rows[0].transfer.as_ref().expect("it is TCP");
        let sender = if rows[0].observed.as_ref().map(|row| row.direction) == Some("up") { Side::Client } else { Side::Server };
        let statistics = *pair.look(sender).statistics();
        prop_assert_eq!(transfer.data_packets, Some(statistics.data_segments));
        prop_assert_eq!(transfer.data_bytes, Some(statistics.data_bytes));
        prop_assert_eq!(transfer.unique_bytes, Some(statistics.unique_bytes));
        prop_assert_eq!(transfer.retransmitted_packets, Some(statistics.retransmitted_segments));
        prop_assert_eq!(transfer.retransmitted_bytes, Some(statistics.retransmitted_bytes));
    }
}
