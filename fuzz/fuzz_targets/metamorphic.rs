//! Changes to arbitrary segments that leave their connections as they are: the same causes with
//! other addresses, and no panic after the other changes.

#![no_main]

#[path = "../../crates/trace/tests/metamorphic/judge.rs"]
mod judge;
#[path = "../../crates/trace/tests/metamorphic/transform.rs"]
mod transform;

use std::net::{IpAddr, Ipv4Addr};

use airpath_capture::decode::Decoded;
use airpath_core::rng::Seed;
use airpath_core::{Ecn, Instant, Span};
use airpath_wire::segment::{Endpoint, Route, Segment, Tunnel};
use airpath_wire::tcp::{Flags, Options};
use judge::{Moved, judge};
use libfuzzer_sys::fuzz_target;
use transform::{Change, Packets};

/// Bytes of input per segment.
const RECORD: usize = 8;

/// The segments of two clients and a server: each continues its stream, or repeats a part of it.
fn packets(input: &[u8]) -> Packets {
    let end = |last, port| Endpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port };
    let mut next = [[0_u32; 2]; 2];
    let mut time = Instant::from_nanos(1 << 60);
    let mut packets = Vec::new();
    for (record, frame) in input.chunks_exact(RECORD).zip(1..) {
        let (client, from) = (usize::from(record[0] & 1), usize::from(record[0] >> 1 & 1));
        let route = Route { source: end(1 + client as u8, 4000), destination: end(9, 80), tunnel: Tunnel::None };
        time += Span::from_micros(u64::from(u16::from_le_bytes([record[1], record[2]])) << (record[0] >> 5));
        let length = u32::from(record[3]) * 12;
        let repeated = if record[0] & 4 != 0 { u32::from(record[4]) * 100 } else { 0 };
        let sequence = next[client][from].saturating_sub(repeated);
        next[client][from] = next[client][from].max(sequence + length);
        let acknowledgment = next[client][1 - from].saturating_sub(u32::from(record[5]) * 50);
        packets.push(Decoded::Segment(Segment {
            frame,
            time,
            route: if from == 0 { route } else { route.reversed() },
            identification: None,
            time_to_live: 64,
            ecn: Ecn::NotEct,
            sequence,
            acknowledgment,
            flags: Flags(record[6] & 0x1f | Flags::ACK.0),
            window: u16::from(record[7]) << 8,
            urgent: 0,
            options: Options::default(),
            options_cut: false,
            length,
            captured: 0,
            payload: &[],
            checksum: None,
        }));
    }
    packets
}

fuzz_target!(|input: &[u8]| {
    let packets = packets(input);
    let before = judge(&packets);
    for change in Change::ALL {
        let after = judge(&change.apply(&packets, &mut Seed::new(1).stream("metamorphic")));
        if change != Change::RewriteAddresses {
            continue;
        }
        assert_eq!(before.len(), after.len());
        for (one, other) in before.iter().zip(&after) {
            assert_eq!(one.route, change.original(&other.route));
            assert_eq!(Moved::between(&one.pieces, &other.pieces, change.shift()).changed, Span::ZERO);
        }
    }
});
