//! Scripted exchanges of segments, for tests.
#![allow(clippy::unwrap_used, reason = "an exchange that cannot be parsed is a mistake in the test")]

use std::net::{IpAddr, Ipv4Addr};

use airpath_core::{Ecn, Instant, Span};
use airpath_wire::segment::{Endpoint, Route, Segment, Tunnel};
use airpath_wire::tcp::{Flags, Options, Timestamps};

use crate::connection::Connection;
use crate::observation::{End, Observation};

/// Sequence numbers of the two SYNs: the client's wraps after 1000 bytes.
const INITIAL: [u32; 2] = [u32::MAX - 1000, 7_000_000];

/// Plays an exchange with one segment per line: milliseconds, `>` from the client or `<` from the
/// server, and its fields: `syn`, `fin`, `rst`, `psh`, `data FROM..TO`, `ack N`, `win N`,
/// `sack FROM..TO`, `ts VALUE,ECHO`, `id N`, `ttl N`, `scale N`, `mss N`, `permitted`. Byte numbers
/// are stream offsets.
pub fn play(exchange: &str) -> (Connection, Vec<Observation>) {
    let segments: Vec<(Segment<'static>, End)> = exchange
        .lines()
        .filter(|line| !line.trim().is_empty())
        .zip(1..)
        .map(|(line, frame)| segment(line, frame))
        .collect();
    let mut connection = Connection::new(&segments[0].0, false);
    let observations = segments.iter().map(|(segment, from)| connection.segment(segment, *from)).collect();
    (connection, observations)
}

/// One line of an exchange.
pub fn segment(line: &str, frame: u64) -> (Segment<'static>, End) {
    let mut words = line.split_whitespace();
    let millis: u64 = words.next().unwrap().parse().unwrap();
    let from = if words.next().unwrap() == ">" { End::Client } else { End::Server };
    let end = |last: u8, port: u16| Endpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port };
    let route = Route { source: end(1, 4000), destination: end(2, 80), tunnel: Tunnel::None };
    let mut made = Segment {
        frame,
        time: Instant::from_nanos(1_700_000_000_000_000_000) + Span::from_millis(millis),
        route: if from == End::Client { route } else { route.reversed() },
        identification: None,
        time_to_live: 64,
        ecn: Ecn::NotEct,
        sequence: 0,
        acknowledgment: 0,
        flags: Flags::default(),
        window: 60_000,
        urgent: 0,
        options: Options::default(),
        options_cut: false,
        length: 0,
        captured: 0,
        payload: &[],
        checksum: None,
    };
    let (own, other) = (INITIAL[from as usize], INITIAL[from.other() as usize]);
    let number = |base: u32, offset: &str| base.wrapping_add(1).wrapping_add(offset.parse::<i64>().unwrap() as u32);
    let mut offset = None;
    while let Some(word) = words.next() {
        match word {
            "syn" => {
                made.flags |= Flags::SYN;
                offset = Some(own);
            }
            "fin" => made.flags |= Flags::FIN,
            "rst" => made.flags |= Flags::RST,
            "psh" => made.flags |= Flags::PSH,
            "permitted" => made.options.sack_permitted = true,
            _ => {
                let value = words.next().unwrap();
                let pair = |separator| value.split_once(separator).unwrap();
                match word {
                    "data" => {
                        let (start, end) = pair("..");
                        let start_number = number(own, start);
                        offset = offset.or(Some(start_number));
                        made.length = number(own, end).wrapping_sub(start_number);
                    }
                    "at" => offset = Some(number(own, value)),
                    "ack" => {
                        made.flags |= Flags::ACK;
                        made.acknowledgment = number(other, value);
                    }
                    "mss" => made.options.maximum_segment_size = Some(value.parse().unwrap()),
                    "win" => made.window = value.parse().unwrap(),
                    "scale" => made.options.window_scale = Some(value.parse().unwrap()),
                    "id" => made.identification = Some(value.parse().unwrap()),
                    "ttl" => made.time_to_live = value.parse().unwrap(),
                    "sack" => {
                        let (left, right) = pair("..");
                        assert!(made.options.sack.push(number(other, left), number(other, right)));
                    }
                    "ts" => {
                        let (value, echo) = pair(",");
                        let (value, echo) = (value.parse().unwrap(), echo.parse().unwrap());
                        made.options.timestamps = Some(Timestamps { value, echo });
                    }
                    other => panic!("an exchange has no {other:?}"),
                }
            }
        }
    }
    made.sequence = offset.unwrap_or_else(|| number(own, "0"));
    (made, from)
}
