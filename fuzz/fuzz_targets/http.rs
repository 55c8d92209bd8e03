//! The application data of a connection in segments that overlap, come late or are missing; and
//! the same bytes as datagrams of QUIC flows, with the causes of the first one.
//!
//! The input is a list of segments: sender, flags, offset, length, captured length, captured bytes.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use airpath_core::{Instant, Span};
use airpath_observe::End;
use airpath_observe::flows::FlowNumber;
use airpath_trace::causes::QuicCauses;
use airpath_web::{Exchanges, Har, Mark, Piece, QuicFlows, Watch};
use airpath_wire::segment::Endpoint;
use airpath_wire::tcp::Flags;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let endpoint = |last, port| Endpoint { address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), port };
    let (client, server) = (endpoint(1, 40_000), endpoint(2, 80));
    let mark = |frame: u64| Mark { time: Instant::from_nanos(frame * 1_000_000), frame };
    let mut watch = Watch::new(client, server, mark(0), true);
    let (mut quic, mut causes) = (QuicFlows::default(), QuicCauses::new());
    let mut time = Span::ZERO;
    let (mut rest, mut frame) = (input, 0);
    // Next offset of each stream when its segments are in order.
    let mut ahead = [0_i64; 2];
    while let [kind, flags, back, length, cut, content @ ..] = rest {
        frame += 1;
        let from = if kind & 1 == 0 { End::Client } else { End::Server };
        let (captured, left) = content.split_at(content.len().min(usize::from(*length)));
        rest = left;
        let captured = &captured[..captured.len().min(usize::from(255 - cut))];
        // Most segments go on where the last ended; some go back, some leave a hole, some lie far
        // away.
        let offset = match kind >> 1 & 7 {
            1 => ahead[from as usize] - i64::from(*back),
            2 => ahead[from as usize] + i64::from(*back),
            3 => i64::from(*back) << 54,
            4 => -i64::from(*back) << 54,
            _ => ahead[from as usize],
        };
        let piece = Piece {
            mark: mark(frame),
            offset,
            acknowledged: (kind & 16 != 0).then_some(ahead[from.other() as usize]),
            length: u32::from(*length),
            captured,
        };
        ahead[from as usize] = offset.saturating_add(i64::from(*length));
        watch.segment(from, Flags(*flags), piece);
        let (source, destination) = if from == End::Client { (client, server) } else { (server, client) };
        let seen = quic.datagram(mark(frame), source, destination, u32::from(*length) * 8, captured);
        if let Some(datagram) = seen.filter(|datagram| datagram.flow == 1) {
            causes.observe(&datagram, &mut |piece| time = time + piece.end.since(piece.begin));
        }
    }
    let account = causes.finish(&mut |piece| time = time + piece.end.since(piece.begin));
    assert_eq!(account.total(), time);
    if let Some(first) = quic.finish().first() {
        assert!(time <= first.last.time.since(first.first.time));
    }
    let timeline = watch.finish();
    if let Some(pipelining) = timeline.pipelining() {
        assert!(pipelining.factor() >= 1.0 && pipelining.factor() <= pipelining.maximum());
    }
    for exchange in timeline.exchanges() {
        assert!(exchange.request.is_some() || exchange.response.is_some());
    }
    let exchanges = Exchanges { timelines: vec![(FlowNumber(1), timeline)], pages: Vec::new() };
    let _ = Har::new(&exchanges);
});
