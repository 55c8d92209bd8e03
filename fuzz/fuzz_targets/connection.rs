//! Arbitrary segments as one connection: no panic, offsets near the sent data, consistent sums of
//! partial counts and of causes.

#![no_main]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use airpath_capture::read::LATEST;
use airpath_core::{Ecn, Instant};
use airpath_observe::columns::COLUMNS;
use airpath_observe::flows::{Ending, FlowNumber, Flows, Listener};
use airpath_observe::{Connection, End, Events, Observation};
use airpath_trace::causes::{Causes, Piece};
use airpath_wire::segment::{Endpoint, Route, Segment, Tunnel};
use airpath_wire::tcp::{Flags, Options, Timestamps};
use libfuzzer_sys::fuzz_target;

/// Bytes of input per segment.
const RECORD: usize = 16;

#[derive(Default)]
struct Check {
    segments: u64,
    causes: BTreeMap<FlowNumber, (Causes, Option<Instant>)>,
}

impl Listener for Check {
    fn observed(&mut self, flow: FlowNumber, observation: &Observation, _: &Segment<'_>, _: &Connection) {
        let (causes, last_end) = self.causes.entry(flow).or_insert_with(|| (Causes::new(None), None));
        causes.observe(observation, &mut |piece| follows(last_end, piece));
    }

    fn ended(&mut self, flow: FlowNumber, connection: &Connection, _: Ending) {
        if let Some((causes, mut last_end)) = self.causes.remove(&flow) {
            let account = causes.finish(&mut |piece| follows(&mut last_end, piece));
            assert!(account.total() <= connection.elapsed());
        }
        let mut segments = 0;
        for end in End::BOTH {
            let figures = connection.figures(end);
            segments += figures.segments;
            assert_eq!(figures.retransmissions, figures.triggers.iter().sum::<u64>());
            assert_eq!(figures.retransmissions, u64::from(figures.event(Events::RETRANSMISSION)));
            assert!(figures.spurious_retransmissions() <= figures.retransmissions);
            assert!(figures.unique_bytes <= figures.data_bytes);
            for column in COLUMNS {
                let value = (column.value)(connection, end);
                assert!(value.number().is_none_or(f64::is_finite), "{}: {value:?}", column.name);
            }
        }
        assert_eq!(connection.segments(), segments);
        self.segments += segments;
    }
}

/// Checks that each piece begins where the previous one ended.
fn follows(last_end: &mut Option<Instant>, piece: &Piece) {
    assert!(
        piece.begin < piece.end && last_end.is_none_or(|last_end| last_end == piece.begin),
        "{last_end:?} {piece:?}"
    );
    *last_end = Some(piece.end);
}

fuzz_target!(|input: &[u8]| {
    let end = |last| Endpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port: 80 };
    let route = Route { source: end(1), destination: end(2), tunnel: Tunnel::None };
    let (mut flows, mut check) = (Flows::default(), Check::default());
    let (mut time, mut count) = (0_u64, 0);
    // Small steps from the current offset of each end, so that exchanges form; sometimes a large
    // jump.
    let mut at = [0_u32; 2];
    for (record, frame) in input.chunks_exact(RECORD).zip(1..) {
        let short = |index: usize| u16::from_le_bytes([record[index], record[index + 1]]);
        let from = usize::from(record[0] & 1);
        let leap = if record[0] & 0x0e == 0x0e { 20 } else { 0 };
        let sequence = at[from].wrapping_add((i32::from(short(2) as i16) << leap) as u32);
        let length = u32::from(short(4) % 3000);
        at[from] = sequence.wrapping_add(length);
        // Sometimes time goes back, or far ahead, as in damaged captures.
        time = match record[1] {
            0xff => time.wrapping_sub(u64::from(short(6)) << 48),
            0xfe => time.wrapping_sub(u64::from(short(6)) << 16),
            _ => time.wrapping_add(u64::from(short(6)) << (record[0] >> 4)),
        };
        let mut options = Options::default();
        let acknowledgment = at[1 - from].wrapping_sub(u32::from(record[8]) << 4);
        if record[9] & 1 != 0 {
            options.timestamps = Some(Timestamps { value: short(6).into(), echo: record[8].into() });
        }
        if record[9] & 2 != 0 {
            let left = acknowledgment.wrapping_add(short(10).into());
            options.sack.push(left, left.wrapping_add(u32::from(record[12]) << 4));
            options.sack.push(left.wrapping_sub(u32::from(record[13])), left.wrapping_add(short(14).into()));
        }
        if record[9] & 4 != 0 {
            options.window_scale = Some(record[13]);
            options.sack_permitted = true;
        }
        flows.segment(
            &Segment {
                frame,
                time: Instant::from_nanos(time % LATEST.as_nanos()),
                route: if from == 0 { route } else { route.reversed() },
                identification: (record[9] & 8 != 0).then_some(short(14)),
                time_to_live: 64,
                ecn: Ecn::NotEct,
                sequence,
                acknowledgment,
                flags: Flags(record[1]),
                window: short(14),
                urgent: short(10),
                options,
                options_cut: false,
                length,
                captured: 0,
                payload: &[],
                checksum: None,
            },
            &mut check,
        );
        count += 1;
    }
    flows.finish(&mut check);
    assert_eq!(check.segments, count);
});
