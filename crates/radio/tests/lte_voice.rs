//! A voice bearer beside that of other data: delays of a call beside a bulk transfer.

use crate::common;
use crate::common::cells::{at_millis, config, statistics};
use airpath_core::{
    ComponentId, Context, Direction, DropCause, Dropped, Event, Instant, Memory, Packet, PacketStep, Seed, SegmentInfo,
    SegmentLookup, Slot, Span,
};
use airpath_link::command::Change;
use airpath_link::{Bearer, BearerCommand};
use airpath_radio::ModelError;
use airpath_radio::lte::{Config, Lte};
use airpath_radio::model::Model;

/// IPv4 and UDP headers: packets of up to 200 bytes have the port of a call.
struct Calls;

impl SegmentLookup for Calls {
    fn segment(&self, _: Slot) -> Option<SegmentInfo> {
        None
    }

    fn headers(&self, _: Direction, packet: &Packet, out: &mut Vec<u8>) -> bool {
        let mut bytes = [0; 28];
        (bytes[0], bytes[9]) = (0x45, 17);
        let port: u16 = if packet.size <= 200 { 5004 } else { 5001 };
        bytes[20..22].copy_from_slice(&port.to_be_bytes());
        out.extend_from_slice(&bytes);
        true
    }
}

/// The voice bearer of the preset.
const VOICE: &str = "voice = { ports = [[5004, 5004]], discard = \"100 ms\", t_reordering = \"50 ms\" }";

/// A packet of 60 bytes every 20 ms for 10 s to user 0, beside so much data for each user that its
/// queue never empties. Returns the delays of the call in ms, the bytes of the data, and drops.
fn call(more: &str, direction: Direction, users: u16) -> (Vec<f64>, u64, Vec<Dropped>) {
    let config: Config = config("lte-10mhz", &format!("conditions.ci = \"20 dB\"\n{more}"), &["rrc", "drx", "pdcp"]);
    let classes = vec![None; usize::from(users)];
    let mut bearer = config.build(&classes, Seed::new(3), "cell").expect("sound parameters");
    assert_eq!(bearer.inspects_headers(), config.voice.is_some() || config.header_compression.is_some());
    let mut dropped = Vec::new();
    let mut cx = Context::new(None, &mut dropped, ComponentId(0));
    cx.with_segments(&Calls);
    let mut id = 1000;
    let mut push = |bearer: &mut dyn Bearer, now, user, size, cx: &mut Context<'_>| {
        id += 1;
        bearer.push(now, direction, common::packet(id, user, size), cx);
    };
    for user in 0..users {
        (0..100).for_each(|_| push(&mut *bearer, Instant::ZERO, user, 1500, &mut cx));
    }
    let (mut delays, mut bytes) = (vec![f64::NAN; 500], 0);
    for number in 0..500u64 {
        let at = at_millis(100.3 + 20.0 * number as f64);
        let mut take = |bearer: &mut dyn Bearer, now: Instant, cx: &mut Context<'_>| {
            while let Some((_, out)) = bearer.pop(now, cx) {
                if out.packet.size == 60 {
                    let sent = at_millis(100.3 + 20.0 * out.packet.id as f64);
                    delays[out.packet.id as usize] = out.due.since(sent).as_secs_f64() * 1e3;
                } else {
                    bytes += u64::from(out.packet.size);
                    push(bearer, now, out.packet.user.number() as u16, 1500, cx);
                }
            }
        };
        while let Some(now) = bearer.next_wakeup().filter(|now| *now < at) {
            take(&mut *bearer, now, &mut cx);
        }
        take(&mut *bearer, at, &mut cx);
        bearer.push(at, direction, common::packet(number, 0, 60), &mut cx);
    }
    while let Some((_, out)) = bearer.pop(at_millis(10_400.0), &mut cx) {
        if out.packet.size == 60 {
            let sent = at_millis(100.3 + 20.0 * out.packet.id as f64);
            delays[out.packet.id as usize] = out.due.since(sent).as_secs_f64() * 1e3;
        }
    }
    (delays.into_iter().filter(|delay| !delay.is_nan()).collect(), bytes, dropped)
}

#[test]
fn a_call_beside_a_download_has_a_much_lower_delay_on_the_voice_bearer() {
    let errors = "downlink.bler = 0.1\nuplink.bler = 0.1\n";
    for direction in Direction::BOTH {
        let (shared, without, _) = call(errors, direction, 1);
        let (own, with, dropped) = call(&format!("{errors}{VOICE}"), direction, 1);
        let ([_, shared, _], [_, own_mean, longest]) = (statistics(&shared), statistics(&own));
        // 100 packets wait before it otherwise: 20 ms and more down, 40 ms and more up.
        assert!(shared > 4.0 * own_mean && own_mean < 12.0, "{direction:?}: {shared} {own_mean}");
        assert!(longest < 60.0, "{direction:?}: {longest}");
        assert!(own.len() >= 499 && dropped.is_empty(), "{direction:?}: {} {dropped:?}", own.len());
        assert!((with as f64 / without as f64 - 1.0).abs() < 0.1, "{direction:?}: {with} {without}");
    }
}

#[test]
fn voice_comes_before_the_data_of_other_mobiles() {
    // Eight mobiles with data. A subframe serves one of them.
    let crowded = "cell.users_per_tti = 1\ncell.scheduler = \"round-robin\"\ndownlink.bler = 0.0\nuplink.bler = 0.0\n";
    let voice_of_all = format!("{crowded}{VOICE}");
    let (own, ..) = call(&voice_of_all, Direction::Down, 8);
    let (shared, ..) = call(crowded, Direction::Down, 8);
    let ([_, own, longest], [_, shared, _]) = (statistics(&own), statistics(&shared));
    assert!(own < 2.5 && longest < 4.0 && shared > 100.0, "{own} {longest} {shared}");
}

/// Headers are compressed apart for each bearer, and the packets keep theirs.
#[test]
fn a_call_with_header_compression_keeps_its_bearer() {
    let errors = "downlink.bler = 0.1\nuplink.bler = 0.1\n";
    let with_both = format!("{errors}{VOICE}\nheader_compression = {{ mode = \"optimistic\" }}");
    for direction in Direction::BOTH {
        let (delays, _, dropped) = call(&with_both, direction, 1);
        let [_, mean, longest] = statistics(&delays);
        assert!(mean < 12.0 && longest < 60.0, "{direction:?}: {mean} {longest}");
        assert!(delays.len() >= 499 && dropped.is_empty(), "{direction:?}: {} {dropped:?}", delays.len());
    }
}

#[test]
fn voice_that_waits_too_long_is_dropped_and_nothing_else() {
    let config: Config = config("lte-10mhz", &format!("conditions.ci = \"20 dB\"\n{VOICE}"), &["rrc", "drx", "pdcp"]);
    let mut bearer = Lte::new(&config, 1, Seed::new(3), "cell").expect("sound parameters");
    let mut dropped = Vec::new();
    let mut cx = Context::new(None, &mut dropped, ComponentId(0));
    cx.with_segments(&Calls);
    let mut delivered = 0;
    for number in 0..200u64 {
        let now = at_millis(20.0 * number as f64);
        while bearer.pop(now, &mut cx).is_some() {
            delivered += 1;
        }
        if number == 100 {
            let outage = BearerCommand::from(Change::Outage(Span::from_secs(1)));
            bearer.command(now, &outage, &mut cx).expect("a cell has outages");
        }
        bearer.push(now, Direction::Down, common::packet(2 * number, 0, 60), &mut cx);
        bearer.push(now, Direction::Down, common::packet(2 * number + 1, 0, 400), &mut cx);
    }
    while bearer.pop(at_millis(9000.0), &mut cx).is_some() {
        delivered += 1;
    }
    // Those of the first 0.9 s of the outage.
    assert!((44..=46).contains(&dropped.len()) && delivered + dropped.len() == 400, "{} {delivered}", dropped.len());
    assert!(dropped.iter().all(|lost| lost.packet.size == 60 && lost.cause == DropCause::Discarded));
}

#[test]
fn a_voice_bearer_that_no_packet_uses_is_refused() {
    let cases = [
        ("voice = { discard = \"100 ms\", t_reordering = \"50 ms\" }", "voice.dscp", "voice.ports"),
        ("voice = { dscp = [64], discard = \"100 ms\", t_reordering = \"50 ms\" }", "voice.dscp", "0 to 63"),
        ("voice = { ports = [[9, 8]], discard = \"100 ms\", t_reordering = \"50 ms\" }", "voice.ports", "first"),
        ("voice = { dscp = [46], discard = \"30 ms\", t_reordering = \"50 ms\" }", "voice.discard", "discardTimer"),
        (
            "drx.long = \"80 ms\"\nvoice = { dscp = [46], discard = \"50 ms\", t_reordering = \"50 ms\" }",
            "voice.discard",
            "drx.long",
        ),
        ("voice = { dscp = [46], discard = \"100 ms\", t_reordering = \"5 s\" }", "voice.t_reordering", "1600 ms"),
    ];
    for (more, key, text) in cases {
        let error = Lte::new(&config::<Config>("lte-10mhz", more, &[]), 1, Seed::new(1), "cell").expect_err(more);
        assert_eq!(error.field(), key);
        assert!(error.to_string().contains(text), "{more}: {error}");
    }
}

#[test]
fn the_backlog_is_that_of_voice_and_data() {
    let config: Config = config("lte-10mhz", &format!("conditions.ci = \"20 dB\"\n{VOICE}"), &["rrc", "drx", "pdcp"]);
    let mut bearer = config.build(&[None], Seed::new(3), "cell").expect("sound parameters");
    let (mut log, mut dropped) = (Memory::default(), Vec::new());
    let mut cx = Context::new(Some(&mut log), &mut dropped, ComponentId(0));
    cx.with_segments(&Calls);
    for (id, size) in [1500, 1500, 60, 1500].into_iter().enumerate() {
        bearer.push(Instant::ZERO, Direction::Down, common::packet(id as u64, 0, size), &mut cx);
    }
    let backlogs: Vec<_> = log
        .events
        .iter()
        .filter_map(|(_, _, event)| match event {
            Event::Packet(packet) => match packet.step {
                PacketStep::Queued { backlog_packets, backlog_bytes } => Some((backlog_packets, backlog_bytes)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(backlogs, [(1, 1500), (2, 3000), (3, 3060), (4, 4560)]);
}
