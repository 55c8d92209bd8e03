//! Header compression above a bearer: the contracts, and voice over a dedicated channel.

use airpath_core::{
    ComponentId, Context, Direction, DropCause, Ecn, FlowId, Instant, Packet, Seed, SegmentInfo, SegmentLookup, Slot,
    Span, UserId,
};
use airpath_link::Bearer;
use airpath_link::testing::{Commands, Script, Traffic, contracts, idle_sleeps, order_kept};
use airpath_radio::Models;
use airpath_radio::model::AnyModel;
use proptest::prelude::*;

const HORIZON: Instant = Instant::from_nanos(20_000_000_000_000);

/// A preset of a model with header compression, and more keys.
fn preset(name: &str, more: &str) -> Box<dyn AnyModel> {
    let file = format!("{}/../../presets/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let preset: toml::Table = std::fs::read_to_string(file).expect("a preset").parse().expect("a table");
    let mut bearer = preset["bearer"].as_table().expect("a table").clone();
    let model = bearer.remove("model").expect("a model");
    let more: toml::Table = more.parse().expect("a table");
    overlay(&mut bearer, more);
    let models = Models::shipped();
    let entry = models.get(model.as_str().expect("a name")).expect("a model");
    entry.read(bearer.into()).expect("parameters")
}

fn overlay(table: &mut toml::Table, more: toml::Table) {
    for (key, value) in more {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => overlay(old, new),
            (_, value) => drop(table.insert(key, value)),
        }
    }
}

fn build(model: &dyn AnyModel, users: u16) -> Box<dyn Bearer> {
    model.build(&vec![None; usize::from(users)], Seed::new(5), "cell").expect("sound parameters")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 32))]

    #[test]
    fn bearers_with_header_compression_keep_the_contracts(
        name in prop::sample::select(vec!["umts-r99-64", "hsdpa-cat6", "hspa-plus-42", "lte-10mhz-volte"]),
        mode in prop::sample::select(vec![
            "\"unidirectional\"",
            "\"optimistic\"",
            "\"reliable\"",
            "\"unidirectional\", version = \"v2\"",
            "\"optimistic\", version = \"v2\", reorder_ratio = \"half\"",
        ]),
        contexts in 1u16..20,
        queue in 2u32..40,
        users in 1u16..4,
        gap in 1u64..200,
        seed: u64,
    ) {
        // A mobile of LTE that gets nothing through repeats each 8 ms.
        let (queue, horizon) = match name {
            "lte-10mhz-volte" => {
                (format!("pdcp.queue.bytes = \"{} B\"", 1500 * queue), Instant::ZERO + Span::from_secs(100))
            }
            _ => (format!("downlink.queue.packets = {queue}"), HORIZON),
        };
        let more = format!("header_compression = {{ mode = {mode}, contexts = {contexts} }}\n{queue}");
        let model = preset(name, &more);
        let make = || build(&*model, users);
        let traffic = Traffic {
            packets: 120, gap: Span::from_millis(gap), users, directions: &Direction::BOTH, ..Traffic::default()
        };
        let arrivals = traffic.arrivals(seed);
        let middle = arrivals[80].at;
        let commands = Commands { commands: 12, until: middle, users, classes: &[], reorder: false }.draw(seed);
        for commands in [&[][..], &commands] {
            let script = Script { arrivals: &arrivals, commands };
            contracts(make, script, horizon);
            order_kept(make, script, horizon);
        }
        idle_sleeps(make, &arrivals[..], horizon);
    }
}

/// RTP, UDP and IPv6 headers of a voice flow: 20 ms of AMR 12.2 in 32 bytes (RFC 4867 §4.3).
struct Voice;

const PAYLOAD: u32 = 32;
const HEADERS: u32 = 60;

impl SegmentLookup for Voice {
    fn segment(&self, _: Slot) -> Option<SegmentInfo> {
        None
    }

    fn headers(&self, _: Direction, packet: &Packet, out: &mut Vec<u8>) -> bool {
        let length = [0, (packet.size - 40) as u8];
        out.extend_from_slice(&[0x60, 0, 0, 0, length[0], length[1], 17, 64]);
        out.extend_from_slice(&[7; 32]);
        out.extend_from_slice(&[0x0f, 0xa0, 0x0f, 0xa2, length[0], length[1], 0x12, packet.slot.0 as u8]);
        out.extend_from_slice(&[0x80, 96]);
        out.extend_from_slice(&(packet.slot.0 as u16).to_be_bytes());
        out.extend_from_slice(&(packet.slot.0 * 160).to_be_bytes());
        out.extend_from_slice(&[1, 2, 3, 4]);
        true
    }
}

/// What voice in one direction is like over a bearer.
#[derive(Debug, Default)]
struct Outcome {
    delivered: u32,
    decompression: u32,
    other: u32,
    /// RLC bytes on the air, in the direction of the voice and in the opposite one.
    air: [u64; 2],
    statistics: Vec<(&'static str, u64)>,
}

fn voice(bearer: &mut dyn Bearer, packets: u32) -> Outcome {
    let (mut outcome, mut dropped) = (Outcome::default(), Vec::new());
    let end = Span::from_millis(20) * u64::from(packets) + Span::from_secs(5);
    let (mut next, mut id) = (Instant::ZERO, 0);
    loop {
        let wakeup = bearer.next_wakeup().filter(|wakeup| *wakeup <= Instant::ZERO + end);
        let now = match wakeup {
            Some(wakeup) if id == packets || wakeup <= next => wakeup,
            _ if id < packets => next,
            _ => break,
        };
        let mut cx = Context::new(None, &mut dropped, ComponentId(0));
        cx.with_segments(&Voice);
        if now == next && id < packets {
            let size = PAYLOAD + HEADERS;
            let packet =
                Packet { id: id.into(), size, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(id) };
            bearer.push(now, Direction::Down, packet, &mut cx);
            id += 1;
            next += Span::from_millis(20);
        }
        while bearer.pop(now, &mut cx).is_some() {
            outcome.delivered += 1;
        }
    }
    for dropped in dropped {
        match dropped.cause {
            DropCause::Decompression => outcome.decompression += 1,
            _ => outcome.other += 1,
        }
    }
    outcome.air = Direction::BOTH
        .map(|direction| bearer.radio_totals(direction, UserId::new(0)).map_or(0, |totals| totals.bytes));
    outcome.statistics = bearer.statistics();
    outcome
}

fn statistic(outcome: &Outcome, name: &str) -> u64 {
    outcome.statistics.iter().find(|(key, _)| *key == name).map_or(0, |(_, value)| *value)
}

#[test]
fn a_voice_header_has_three_bytes_of_sixty() {
    let cases = ["umts-r99-64", "hsdpa-cat6"].map(|name| [(name, "v1"), (name, "v2")]);
    for (name, version) in cases.into_iter().flatten() {
        let plain = voice(&mut *build(&*preset(name, ""), 1), 3000);
        let with = preset(name, &format!("header_compression = {{ mode = \"optimistic\", version = \"{version}\" }}"));
        let compressed = voice(&mut *build(&*with, 1), 3000);
        println!("{name} {version}\n  without {plain:?}\n  with    {compressed:?}");
        assert_eq!((compressed.delivered, compressed.decompression), (plain.delivered, 0), "{name}");
        assert_eq!(statistic(&compressed, "rohc_down_header_bytes"), 60 * 3000);
        // One octet and the checksum of UDP, but for IR packets at the beginning.
        let bytes = statistic(&compressed, "rohc_down_compressed_header_bytes");
        assert!((9_000..10_000).contains(&bytes), "{name}: {bytes}");
        assert!(statistic(&compressed, "rohc_up_feedback_bytes") == 0);
        assert!(statistic(&compressed, "rohc_down_feedback_bytes") > 0);
        assert_eq!(statistic(&compressed, "rohc_down_contexts"), 1);
    }
}

/// RLC discards a packet after one error, so that the decompressor misses one in ten.
#[test]
fn losses_of_the_radio_damage_no_context() {
    let lossy = "downlink.bler = 0.1\ndownlink.burst = 2.0\ndownlink.rlc = { max_dat = 2, discard = { timer_mrw = \"100 ms\", max_mrw = 20 } }";
    let plain = voice(&mut *build(&*preset("umts-r99-64", lossy), 1), 3000);
    let run = |mode| {
        let more = format!("{lossy}\nheader_compression = {{ mode = {mode} }}");
        voice(&mut *build(&*preset("umts-r99-64", &more), 1), 3000)
    };
    println!("plain {plain:?}");
    let modes = ["\"optimistic\"", "\"unidirectional\"", "\"reliable\""];
    for mode in modes.into_iter().chain([V2_OPTIMISTIC, V2_UNIDIRECTIONAL]) {
        let outcome = run(mode);
        println!("{mode} {outcome:?}");
        assert!(outcome.other > 50, "{outcome:?}");
        assert_eq!((outcome.decompression, outcome.delivered), (0, plain.delivered), "{outcome:?}");
    }
}

const V2_OPTIMISTIC: &str = "\"optimistic\", version = \"v2\"";
const V2_UNIDIRECTIONAL: &str = "\"unidirectional\", version = \"v2\", reorder_ratio = \"quarter\"";

#[test]
fn keys_that_exclude_each_other_are_refused() {
    let refused = [
        ("mode = \"reliable\", version = \"v2\"", "mode"),
        ("mode = \"optimistic\", reorder_ratio = \"half\"", "reorder_ratio"),
    ];
    for (keys, key) in refused {
        let model = preset("umts-r99-64", &format!("header_compression = {{ {keys} }}"));
        let Err(error) = model.build(&[None], Seed::new(1), "cell") else { panic!("{keys}") };
        assert_eq!(error.field(), format!("header_compression.{key}"));
    }
}

#[test]
fn reliable_mode_is_refused_for_tcp() {
    let more = "header_compression = { mode = \"reliable\", profiles = [\"rtp\", \"tcp\"] }";
    let Err(error) = preset("umts-r99-64", more).build(&[None], Seed::new(1), "cell") else { panic!("built") };
    assert_eq!(error.field(), "header_compression.mode");
    assert_eq!(
        error.to_string(),
        "this must be `unidirectional` or `optimistic` with the profile `tcp`, for which RFC 6846 has no reliable mode"
    );
}

#[test]
fn a_number_of_contexts_without_identifiers_is_refused() {
    for contexts in [0, 20_000] {
        let model =
            preset("umts-r99-64", &format!("header_compression = {{ mode = \"optimistic\", contexts = {contexts} }}"));
        let Err(error) = model.build(&[None], Seed::new(1), "cell") else { panic!("{contexts} contexts") };
        assert_eq!(error.field(), "header_compression.contexts");
        assert_eq!(error.to_string(), "this must be 1 to 16384");
    }
}
