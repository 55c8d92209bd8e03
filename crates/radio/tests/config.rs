//! Parameters that make no sense are refused, with the key that is to blame and what to do.

use crate::common::{cell_abc, csd_9600, dch_384, hs_dsch_384};
use airpath_core::Seed;
use airpath_radio::ModelError;
use airpath_radio::gsm::csd::{self, GsmCsd};
use airpath_radio::study::dch_simple::{self, DchSimple};
use airpath_radio::study::hs_dsch_simple::{self, HsDschSimple};

fn refused<T>(result: Result<T, impl ModelError>) -> (String, String) {
    let error = result.err().expect("it makes no sense");
    (error.field(), error.to_string())
}

fn refused_cell(config: &hs_dsch_simple::Config, classes: &[Option<&str>]) -> (String, String) {
    let classes: Vec<_> = classes.iter().map(|class| class.map(str::to_owned)).collect();
    refused(HsDschSimple::new(config, &classes, Seed::new(1), "cell"))
}

#[test]
fn dedicated_channels() {
    for (more, field, text) in [
        ("tti = \"0 s\"", "downlink.tti", "above zero"),
        ("tti = \"2 h\"", "downlink.tti", "an hour"),
        ("retransmission_delay = \"5000 h\"", "downlink.retransmission_delay", "an hour"),
        ("delay = \"61 min\"", "downlink.delay", "an hour"),
        ("pdu = \"0 B\"", "downlink.pdu", "above zero"),
        ("pdu = \"1 MB\"", "downlink.pdu", "at most 65535"),
        ("channels = 0", "downlink.channels", "above zero"),
        ("channels = 70000", "downlink.channels", "at most 65535"),
        ("max_attempts = 0", "downlink.max_attempts", "above zero"),
    ] {
        let (at, message) = refused(DchSimple::new(&dch_384(more), 1, Seed::new(1), "cell"));
        assert_eq!(at, field, "{more}: {message}");
        assert!(message.contains(text), "{more}: {message}");
    }
}

#[test]
fn uplinks() {
    let mut config = dch_384("");
    config.uplink = toml::from_str("link.queue.discipline = \"codel\"").expect("reads");
    assert_eq!(refused(DchSimple::new(&config, 1, Seed::new(1), "cell")).0, "uplink.link.queue");
    let mut config = dch_384("");
    let mut dch = config.downlink.clone();
    dch.channels = 0;
    config.uplink = airpath_radio::study::uplink::Uplink::Dch(dch);
    assert_eq!(refused(DchSimple::new(&config, 1, Seed::new(1), "cell")).0, "uplink.dch.channels");
}

#[test]
fn cells() {
    for (more, field, text) in [
        ("pdus_per_tti = 0", "downlink.pdus_per_tti", "above zero"),
        ("pdus_per_tti = 70000", "downlink.pdus_per_tti", "at most 65535"),
        ("combining = \"chase\"\ncqi = 31", "downlink.cqi", "at most 30"),
        ("combining = \"chase\"\ncqi = 0", "downlink.cqi", "above zero"),
        ("cqi = 8", "downlink.cqi", "combining = \"chase\""),
        ("averaging_time = \"1 s\"", "downlink.averaging_time", "proportional-fair"),
        (
            "scheduler = \"proportional-fair\"\naveraging_time = \"2 ms\"",
            "downlink.averaging_time",
            "longer than a TTI",
        ),
        ("averaging_time = \"1 s\"", "downlink.averaging_time", "run2c"),
        ("scheduler = \"run2c\"\naveraging_time = \"2 ms\"", "downlink.averaging_time", "longer than a TTI"),
        ("flow_timeout = \"1 s\"", "downlink.flow_timeout", "\"least-attained-service\" or \"run2c\""),
        (
            "scheduler = \"least-attained-service\"\nflow_timeout = \"2 ms\"",
            "downlink.flow_timeout",
            "longer than a TTI",
        ),
        ("scheduler = \"least-attained-service\"\nshort_flow = \"1 kB\"", "downlink.short_flow", "run2c"),
        ("scheduler = \"run2c\"\nshort_flow = \"0 B\"", "downlink.short_flow", "above zero"),
        (
            "levels = { rates = [\"1 Mbit/s\"], rate_share = \"cell\", classes = {} }",
            "downlink.pdus_per_tti",
            "give one of the two",
        ),
    ] {
        let (at, message) = refused_cell(&hs_dsch_384(more), &[None]);
        assert_eq!(at, field, "{more}: {message}");
        assert!(message.contains(text), "{more}: {message}");
    }
}

#[test]
fn levels_and_classes() {
    let levels = |more: &str| {
        let levels = "rates = [\"120 kbit/s\", \"240 kbit/s\"], rate_share = \"cell\"";
        cell_abc(&format!("levels = {{ {levels}, {more} }}"))
    };
    for weights in ["[1]", "[1, 2, 3]", "[0, 0]", "[-1, 2]", "[nan, 1]", "[inf, 1]"] {
        let (at, message) = refused_cell(&levels(&format!("classes.a = {weights}")), &[Some("a")]);
        assert_eq!(at, "downlink.levels.classes.a", "{weights}: {message}");
        assert!(message.contains("2 numbers"), "{weights}: {message}");
    }
    let slow = cell_abc("levels = { rates = [\"1 kbit/s\"], rate_share = \"cell\", classes.a = [1] }");
    let (at, message) = refused_cell(&slow, &[Some("a")]);
    assert_eq!(
        (at.as_str(), message.contains("less than a PDU of 30 B")),
        ("downlink.levels.rates", true),
        "{message}"
    );
    let fast = cell_abc("levels = { rates = [\"1000 Gbit/s\"], rate_share = \"cell\", classes.a = [1] }");
    assert!(refused_cell(&fast, &[Some("a")]).1.contains("more than 65535 PDUs"));
    let none = cell_abc("levels = { rates = [], rate_share = \"cell\", classes = {} }");
    assert_eq!(refused_cell(&none, &[Some("a")]).0, "downlink.levels.rates");

    let (at, message) = refused_cell(&cell_abc(""), &[Some("a"), Some("d")]);
    assert_eq!((at.as_str(), message.as_str()), ("", "there is no class `d` in this cell: its classes are a, b, c"));
    assert!(refused_cell(&cell_abc(""), &[None]).1.contains("one of a, b, c"));
    assert!(refused_cell(&hs_dsch_384(""), &[Some("a")]).1.contains("no classes in this cell"));
}

#[test]
fn parameters_survive_being_written() {
    let more = "bler = 0.1\nmax_attempts = 4\nqueue = { discipline = \"codel\" }";
    let dch = dch_384(more);
    assert_eq!(toml::from_str::<dch_simple::Config>(&toml::to_string(&dch).expect("writes")).expect("reads"), dch);
    for cell in [hs_dsch_384("combining = \"chase\"\ncqi = 8"), cell_abc(more)] {
        assert_eq!(
            toml::from_str::<hs_dsch_simple::Config>(&toml::to_string(&cell).expect("writes")).expect("reads"),
            cell
        );
    }
    let unknown = toml::from_str::<dch_simple::Config>("downlink.blur = 1").expect_err("an unknown key");
    assert!(unknown.to_string().contains("blur"), "{unknown}");
}

#[test]
fn calls() {
    for (more, field, text) in [
        ("radio.slots = 0", "radio.slots", "above zero"),
        ("radio.slots = 9", "radio.slots", "at most 8"),
        ("radio.window = 0", "radio.window", "above zero"),
        ("radio.window = 62", "radio.window", "at most 61"),
        ("radio.slots = 2\nradio.window = 497", "radio.window", "at most 496"),
        ("radio.attempts = 0", "radio.attempts", "above zero"),
        ("radio.delay = \"2 h\"", "radio.delay", "an hour"),
        ("radio.interleaving = \"2 h\"", "radio.interleaving", "an hour"),
        ("radio.acknowledgement_timer = \"320 ms\"", "radio.acknowledgement_timer", "longer than 320 ms"),
        ("modem.frame = \"0 B\"", "modem.frame", "above zero"),
        ("modem.window = 128", "modem.window", "at most 127"),
        ("modem.attempts = 0", "modem.attempts", "above zero"),
        ("modem.delay = \"2 h\"", "modem.delay", "an hour"),
        ("modem.acknowledgement_timer = \"300 ms\"", "modem.acknowledgement_timer", "longer than"),
        ("modem.error_control = \"none\"", "modem.frame", "error_control = \"v42\""),
        ("call.set_up = \"2 h\"", "call.set_up", "an hour"),
        ("ppp.overhead = \"65 B\"", "ppp.overhead", "at most 64"),
        ("ppp.compressed_header = \"41 B\"", "ppp.compressed_header", "at most 40"),
        ("conditions.ci = \"9 dB\"", "radio.frame_errors", "one of the two"),
    ] {
        let config = csd_9600(&more.parse().expect("toml")).try_into().expect("reads");
        let (at, message) = refused(GsmCsd::new(&config, 1, Seed::new(1), "cell"));
        assert_eq!(at, field, "{more}: {message}");
        assert!(message.contains(text), "{more}: {message}");
    }
    for more in [
        "radio.slots = 8\nradio.window = 496",
        "radio.window = 61",
        "radio.acknowledgement_timer = \"320001 us\"",
        "radio.acknowledgement_timer = \"1 h\"",
        "modem.window = 127",
        "modem.frame = \"8192 B\"\nmodem.acknowledgement_timer = \"1 h\"",
        "call.set_up = \"1 h\"",
        "ppp.overhead = \"64 B\"",
        "ppp.compressed_header = \"40 B\"",
    ] {
        let config = csd_9600(&more.parse().expect("toml")).try_into().expect("reads");
        assert!(GsmCsd::new(&config, 1, Seed::new(1), "cell").is_ok(), "{more}");
    }
    let mut config: csd::Config = csd_9600(&toml::Table::new()).try_into().expect("sound parameters");
    (config.radio, config.modem) = (None, None);
    assert_eq!(refused(GsmCsd::new(&config, 1, Seed::new(1), "cell")).0, "radio");
}
