//! The saturated goodput of each preset against its arithmetic, from the preset's own parameters;
//! and what each reports as waiting.

use std::path::PathBuf;

use airpath_core::{
    ComponentId, Context, Direction, Ecn, Event, FlowId, Instant, Memory, Packet, PacketEvent, PacketStep, Seed, Slot,
    Span, UserId,
};
use airpath_link::Bearer;
use airpath_radio::Models;
use toml::{Table, Value};

/// The size of the packets.
const PACKET: f64 = 1500.0;

/// Each preset with its goodput in kbit/s, to the mobile and from it. Those of radio whose errors
/// follow from C/I are without errors; the others have the block error rate of the preset.
const RATES: &[(&str, Option<[f64; 2]>)] = &[
    ("egprs-4+1", Some([235.1, 17.5])),
    ("gprs-3+1", Some([35.7, 11.9])),
    ("gprs-4+1", Some([47.7, 11.9])),
    ("gprs-4+2-cs4", Some([79.4, 39.7])),
    ("gsm-csd-14400", Some([11.6, 11.6])),
    ("gsm-csd-9600", Some([7.9, 7.9])),
    ("hs-dsch-1152-shared", Some([1137.4, 64.0])),
    ("hs-dsch-360", Some([356.4, 64.0])),
    ("hs-dsch-384", Some([379.1, 64.0])),
    ("hs-dsch-classes-abc", Some([274.4, 64.0])),
    ("hscsd-43200", Some([34.2, 34.2])),
    ("hsdpa-cat10", Some([12_152.0, 63.3])),
    ("hspa-cat10-eul", Some([12_152.0, 5436.4])),
    ("hspa-cat10-eul-2m", Some([12_152.0, 1918.7])),
    ("hspa-plus-21", Some([19_224.7, 5436.4])),
    ("hspa-plus-42", Some([38_449.5, 5436.4])),
    ("hsdpa-cat6", Some([3357.8, 63.3])),
    // Their rates follow from the SINR: `lte.rs`, `ltem.rs`, `nr.rs`, `endc.rs` and `nbiot.rs` have
    // them.
    ("lte-10mhz", None),
    ("lte-10mhz-volte", None),
    ("lte-20mhz", None),
    ("lte-2x20mhz", None),
    ("lte-20mhz-prescheduled", None),
    ("lte-cat-m1", None),
    ("lte-cat-m1-psm", None),
    ("lte-tdd-20mhz", None),
    ("nb-iot", None),
    ("nb-iot-psm", None),
    ("nr-n261-400mhz", None),
    ("nr-n28-fdd-20mhz", None),
    ("nr-n41-100mhz", None),
    ("nr-n71-fdd-20mhz-nsa", None),
    ("nr-n78-100mhz-nsa", None),
    ("nr-n78-100mhz-sa", None),
    ("nr-n78-low-latency", None),
    ("nr-redcap", None),
    ("pstn-9600", Some([7.9, 7.9])),
    // It has the rate of the user's files.
    ("recorded", None),
    ("umts-dch-128", Some([125.1, 64.0])),
    ("umts-dch-384", Some([375.2, 64.0])),
    ("umts-dch-64", Some([62.5, 64.0])),
    ("umts-r99-128", Some([126.6, 63.3])),
    ("umts-r99-384", Some([379.9, 63.3])),
    ("umts-r99-64", Some([63.3, 63.3])),
    ("umts-r99-states", Some([379.9, 63.3])),
    // Their rates follow from the times of exchanges: `wifi.rs` has them.
    ("wifi-ac", None),
    ("wifi-n", None),
    ("wifi-n-busy", None),
    ("wired", Some([100_000.0, 100_000.0])),
];

#[test]
fn every_preset_carries_what_its_parameters_give() {
    let mut presets = presets();
    let mut wrong = Vec::new();
    for (name, stated) in RATES {
        let place = presets.iter().position(|(preset, _)| preset == name).expect("a preset of this name");
        let (_, bearer) = presets.remove(place);
        for direction in Direction::BOTH {
            let Some(stated) = stated.map(|stated| stated[direction as usize] * 1000.0) else { continue };
            let expected = arithmetic(&bearer, direction);
            assert!((expected / stated - 1.0).abs() < 0.005, "{name}, {direction:?}: {expected}, stated {stated}");
            let measured = goodput(&bearer, direction, expected);
            let share = measured / expected;
            if !(0.98..1.02).contains(&share) {
                wrong.push(format!("{name}, {direction:?}: {measured:.0} of {expected:.0} bit/s"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(presets.is_empty(), "give these presets an entry: {presets:?}");
}

#[test]
fn what_waits_is_reported_with_the_packets_that_wait() {
    for (name, bearer) in presets().into_iter().filter(|(name, _)| name != "recorded") {
        for direction in Direction::BOTH {
            let (mut log, mut lost) = (Memory::default(), Vec::new());
            let mut built = build(&bearer);
            for id in 0..5 {
                let mut cx = Context::new(Some(&mut log), &mut lost, ComponentId(0));
                built.push(Instant::ZERO, direction, packet(id), &mut cx);
            }
            let backlogs = log.events.iter().filter_map(|(_, _, event)| match event {
                Event::Packet(PacketEvent { step: PacketStep::Queued { backlog_packets, backlog_bytes }, .. }) => {
                    Some((*backlog_packets, *backlog_bytes))
                }
                _ => None,
            });
            // The modem of a data call takes the first packet at once.
            let is_call = text(&bearer, "model") == "gsm-csd";
            let waiting = if is_call { [1, 1, 2, 3, 4] } else { [1, 2, 3, 4, 5] };
            let expected = waiting.map(|packets| (packets, u64::from(packets) * PACKET as u64));
            assert_eq!(backlogs.collect::<Vec<_>>(), expected, "{name}, {direction:?}");
        }
    }
}

/// The shipped presets: name and `[bearer]`.
fn presets() -> Vec<(String, Table)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../presets");
    let files = std::fs::read_dir(folder).expect("the presets").map(|entry| entry.expect("an entry").path());
    let read = |path: PathBuf| {
        let preset: Table = std::fs::read_to_string(&path).expect("a text").parse().expect("TOML");
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        (name, without_errors_of_ci(preset["bearer"].as_table().expect("a table").clone()))
    };
    files.filter(|path| path.is_file()).map(read).collect()
}

/// Errors that follow from C/I are switched off.
fn without_errors_of_ci(mut bearer: Table) -> Table {
    let set: &[(&str, &str, Value)] = match text(&bearer, "model") {
        "gprs" => {
            bearer.insert("conditions".to_owned(), toml::from_str::<Table>("ci = \"90 dB\"").expect("TOML").into());
            &[]
        }
        "gsm-csd" if bearer.contains_key("radio") => {
            bearer.remove("conditions");
            &[("radio", "frame_errors", Value::Float(0.0))]
        }
        "hsdpa" if bearer.contains_key("e_dch") => {
            &[("downlink", "bler", Value::Float(0.0)), ("e_dch", "bler", Value::Float(0.0))]
        }
        "hsdpa" => &[("downlink", "bler", Value::Float(0.0))],
        _ => &[],
    };
    for (table, key, value) in set {
        bearer[*table].as_table_mut().expect("a table").insert((*key).to_owned(), value.clone());
    }
    bearer
}

/// The goodput of IP packets of 1500 bytes, in bit/s.
fn arithmetic(bearer: &Table, direction: Direction) -> f64 {
    let up = if bearer.contains_key("e_dch") { "e_dch" } else { "uplink" };
    let way = table(bearer, if direction == Direction::Down { "downlink" } else { up });
    match (text(bearer, "model"), direction) {
        ("wired", _) => rate(way, "rate"),
        // A plain link.
        ("dch-simple" | "hs-dsch-simple", Direction::Up) => rate(table(way, "link"), "rate"),
        // PDUs of a TTI, each lost alone; the rest of a packet's last PDU is padding.
        ("dch-simple", _) => dedicated(way, number(way, "channels")) * whole_pdus(way),
        ("hs-dsch-simple", _) => dedicated(way, pdus_per_tti(way)) * whole_pdus(way),
        // The largest block of the category (TS 25.306 Table 5.1g): 36 bits of MAC-e, and PDUs with
        // a header of 16 bits each.
        ("hsdpa", Direction::Up) if bearer.contains_key("e_dch") => {
            let block = match number(way, "category") as u32 {
                5 => 20_000.0,
                6 => 11_484.0,
                other => panic!("category {other}: its block is needed here"),
            };
            let pdu = size(way, "pdu") * 8.0;
            f64::floor((block - 36.0) / (pdu + 16.0)) * pdu / seconds(way, "tti") * PACKET / (PACKET + 1.0)
        }
        // PDUs of a TTI, lost together. A packet has a length indicator of one octet.
        ("umts", _) | ("hsdpa", Direction::Up) => {
            let format = way["formats"].as_array().and_then(|all| all.last()?.as_table()).expect("formats");
            let bits = number(format, "pdus") * size(way, "pdu") * 8.0;
            bits / seconds(format, "tti") * (1.0 - number(way, "bler")) * PACKET / (PACKET + 1.0)
        }
        // The block of the highest CQI of the category in 2 ms (TS 25.214 Table 7G), on each
        // carrier: one octet of MAC-ehs, two of each part, and packets with two octets of the RLC.
        // A block has a part of one packet more than it has whole ones.
        ("hsdpa", _) if way.contains_key("mac") => {
            let (octets, carriers) = match number(table(bearer, "mobile"), "category") as u32 {
                14 => (4822.0, 1.0),
                24 => (4822.0, 2.0),
                other => panic!("category {other}: its block is needed here"),
            };
            (octets - 3.0) * 8.0 * carriers / 0.002 * PACKET / (PACKET + 4.0)
        }
        // The block of the highest CQI of the category in 2 ms: 21 bits of MAC-hs, and PDUs with a
        // header of 16 bits each (TS 25.214 Table 7D).
        ("hsdpa", _) => {
            let block = match number(table(bearer, "mobile"), "category") as u32 {
                6 => 7168.0,
                10 => 25_558.0,
                other => panic!("category {other}: its block is needed here"),
            };
            let pdu = size(way, "pdu") * 8.0;
            f64::floor((block - 21.0) / (pdu + 16.0)) * pdu / 0.002 * PACKET / (PACKET + 1.0)
        }
        // A block of the best scheme each 20 ms on each timeslot (twelve in 240 ms), without
        // RLC/MAC headers; a packet has 10 octets of SNDCP and LLC, and a length indicator.
        ("gprs", _) => {
            let octets = match way["adaptation"]["schemes"].as_array().and_then(|all| all.last()?.as_str()) {
                Some("cs-2") => 30.0,
                Some("cs-4") => 50.0,
                Some("mcs-4") => 44.0,
                Some("mcs-9") => 148.0,
                other => panic!("{other:?}: its octets are needed here"),
            };
            // Multislot class 10 has two timeslots upwards if it has none downwards.
            let slots = match (direction, number(table(bearer, "mobile"), "multislot_class") as u32) {
                (Direction::Down, _) => number(table(bearer, "cell"), "slots"),
                (Direction::Up, 10) => 2.0,
                (Direction::Up, _) => 1.0,
            };
            slots * octets * 8.0 / 0.020 * PACKET / (PACKET + 11.0)
        }
        // PPP adds 8 octets and its escapes. The slower of two carries that: RLP with its payload
        // of 24 octets in 20 ms, of 66 in 40 ms, or of 65 with several channels; and V.42 with 6
        // octets on 128, and inserted zeros.
        ("gsm-csd", _) => {
            let ppp = table(bearer, "ppp");
            let framed = (PACKET + size(ppp, "overhead")) * (1.0 + number(ppp, "escaped"));
            let rlp = bearer.get("radio").and_then(Value::as_table).map(|radio| {
                let slots = number(radio, "slots");
                match (text(radio, "channel"), slots > 1.0) {
                    ("tch-f9.6", false) => 24.0 * 8.0 / 0.020,
                    ("tch-f14.4", false) => 66.0 * 8.0 / 0.040,
                    ("tch-f14.4", true) => slots * 65.0 * 8.0 / 0.040,
                    other => panic!("{other:?}: its payload is needed here"),
                }
            });
            let v42 = bearer.get("modem").and_then(Value::as_table).map(|modem| {
                let frame = size(modem, "frame");
                rate(modem, "rate") * frame / (frame + 6.0) / (1.0 + number(modem, "zero_insertion"))
            });
            [rlp, v42].into_iter().flatten().fold(f64::MAX, f64::min) * PACKET / framed
        }
        (model, _) => panic!("{model}: write its arithmetic here"),
    }
}

/// Bits a second of a TTI with this number of PDUs, less those in error.
fn dedicated(way: &Table, pdus: f64) -> f64 {
    pdus * size(way, "pdu") * 8.0 / seconds(way, "tti") * (1.0 - number(way, "bler"))
}

/// What a packet has of its PDUs.
fn whole_pdus(way: &Table) -> f64 {
    let pdu = size(way, "pdu");
    PACKET / (f64::ceil(PACKET / pdu) * pdu)
}

/// PDUs of a TTI; with levels, their mean for the first class.
fn pdus_per_tti(way: &Table) -> f64 {
    let Some(levels) = way.get("levels").and_then(Value::as_table) else { return number(way, "pdus_per_tti") };
    let weights = table(levels, "classes").values().next().and_then(Value::as_array).expect("a class");
    let weights = weights.iter().map(|weight| weight.as_integer().expect("a percentage") as f64 / 100.0);
    let rates = levels["rates"].as_array().expect("rates").iter();
    let pdus =
        rates.map(|rate| f64::floor(parse(rate.as_str(), "bit/s") * seconds(way, "tti") / 8.0 / size(way, "pdu")));
    weights.zip(pdus).map(|(weight, pdus)| weight * pdus).sum()
}

fn table<'a>(table: &'a Table, key: &str) -> &'a Table {
    table[key].as_table().unwrap_or_else(|| panic!("{key} is a table"))
}

fn text<'a>(table: &'a Table, key: &str) -> &'a str {
    table[key].as_str().unwrap_or_else(|| panic!("{key} is a text"))
}

fn number(table: &Table, key: &str) -> f64 {
    let value = &table[key];
    value.as_float().or(value.as_integer().map(|value| value as f64)).unwrap_or_else(|| panic!("{key} is a number"))
}

fn size(table: &Table, key: &str) -> f64 {
    parse(table[key].as_str(), "B")
}

fn seconds(table: &Table, key: &str) -> f64 {
    parse(table[key].as_str(), "s")
}

fn rate(table: &Table, key: &str) -> f64 {
    parse(table[key].as_str(), "bit/s")
}

/// A value with its unit.
fn parse(value: Option<&str>, unit: &str) -> f64 {
    let value = value.expect("a value with a unit");
    let (number, prefix) = value.strip_suffix(unit).and_then(|value| value.split_once(' ')).expect("a unit");
    let factor = match prefix {
        "" => 1.0,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        other => panic!("{other}: an unknown prefix"),
    };
    number.parse::<f64>().expect("a number") * factor
}

/// What one mobile gets, or sends, with full buffers: bits a second.
fn goodput(bearer: &Table, direction: Direction, expected: f64) -> f64 {
    // 30 s to fill queues and windows, to set connections up and to adapt; then the longer, the
    // slower. A TTI of errors counts little in 4,000 packets.
    let begin = Instant::ZERO + Span::from_secs(30);
    let time = Span::from_secs_f64((4000.0 * PACKET * 8.0 / expected).clamp(10.0, 400.0));
    // 4 s at the least, within the buffers of all.
    let inside_at_most = (expected * 4.0 / 8.0 / PACKET).clamp(30.0, 350.0) as usize;
    flood(&mut *build(bearer), direction, inside_at_most, begin, time)
}

/// The bearer of a preset, with one mobile.
fn build(bearer: &Table) -> Box<dyn Bearer> {
    let mut parameters = bearer.clone();
    let Some(Value::String(model)) = parameters.remove("model") else { panic!("a model") };
    let models = Models::shipped();
    let entry = models.iter().find(|entry| entry.name == model).expect("a model");
    let classes = parameters.get("downlink").and_then(|downlink| downlink.get("levels")?.get("classes")?.as_table());
    let class = classes.and_then(|classes| classes.keys().next());
    let class = class.cloned();
    let model = entry.read(parameters.into()).expect("parameters");
    model.build(&[class], Seed::new(1), "cell").expect("a bearer")
}

fn packet(id: u64) -> Packet {
    Packet { id, size: PACKET as u32, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) }
}

fn flood(bearer: &mut dyn Bearer, direction: Direction, packets: usize, begin: Instant, time: Span) -> f64 {
    let (mut lost, mut inside, mut id) = (Vec::new(), 0, 0);
    let (mut bytes, mut first, mut last) = (0.0, None, begin);
    let mut now = Instant::ZERO;
    while now <= begin + time {
        let mut cx = Context::new(None, &mut lost, ComponentId(0));
        while let Some((_, departure)) = bearer.pop(now, &mut cx) {
            inside -= 1;
            if departure.due >= begin {
                // What leaves at the beginning was sent before.
                bytes += if first.is_some() { f64::from(departure.packet.size) } else { 0.0 };
                first.get_or_insert(departure.due);
                last = departure.due;
            }
        }
        inside -= lost.drain(..).count();
        while inside < packets {
            let mut cx = Context::new(None, &mut lost, ComponentId(0));
            bearer.push(now, direction, packet(id), &mut cx);
            inside += 1;
            id += 1;
            let refused = lost.drain(..).count();
            inside -= refused;
            if refused > 0 {
                break;
            }
        }
        now = bearer.next_wakeup().expect("it is saturated");
    }
    bytes * 8.0 / last.since(first.expect("packets left")).as_secs_f64()
}
