//! Errors in scenarios, and their messages.

use std::path::Path;

use crate::support::{error_in, read};
use airpath_scenario::error::NAMES_ELSEWHERE;
use airpath_scenario::{Hop, Scenario};

const GOOD: &str = r#"format = 1
name = "good"

[fixed]
rate = "10 Mbit/s"
delay = "110 ms"

[bearer]
preset = "umts-dch-384"

[[mobile]]
name = "near"
count = 2

[[flow]]
kind = "download"
mobile = "near"
bytes = "100 kB"
"#;

/// The error after `from` was replaced by `to` in the good scenario.
fn error(from: &str, to: &str) -> String {
    error_in(GOOD, from, to)
}

#[test]
fn times_are_at_most_a_year() {
    for (path, value) in [
        ("flow.0.stagger", "8760.1 h"),
        ("flow.0.start", "9000000000 s"),
        ("flow.0.tcp.retransmission_timeout.minimum", "18000000000 s"),
        ("flow.0.tcp.retransmission_timeout.maximum", "18000000000 s"),
        ("flow.0.tcp.retransmission_timeout.granularity", "18000000000 s"),
    ] {
        let key = path.strip_prefix("flow.0.").expect("it is a key of the flow");
        let text = error("bytes = \"100 kB\"", &format!("bytes = \"100 kB\"\n{key} = \"{value}\""));
        let problem = format!("{path}: `{value}` is out of range: a length of time is at most 8760 h, a year");
        assert!(text.contains(&problem), "{text}");
    }
    let fixed = "delay = \"110 ms\"\nqueue = { discipline = \"cake\", target = \"18000000000 s\" }";
    let text = error("delay = \"110 ms\"", fixed);
    assert!(text.contains("`18000000000 s` is out of range: a length of time is at most 8760 h"), "{text}");
    // Two mobiles with three flows each: the last starts after five times `stagger`.
    let keys = |stagger: &str| format!("bytes = \"100 kB\"\ncount = 3\nstart = \"10 h\"\nstagger = \"{stagger}\"");
    let text = error("bytes = \"100 kB\"", &keys("1750.1 h"));
    assert!(text.starts_with("s.toml:21: flow.stagger: the last of these flows starts after more"), "{text}");
    assert!(read(&GOOD.replace("bytes = \"100 kB\"", &keys("1750 h"))).is_ok());
}

#[test]
fn a_name_that_is_no_text_has_the_names_of_the_key() {
    let disciplines = "one of drop-tail, codel, fq-codel, pie, dualpi2, cake";
    for (value, kind) in [("4", "integer `4`"), ("true", "boolean `true`"), ("[1]", "sequence"), ("{}", "map")] {
        let text = error("delay = \"110 ms\"", &format!("queue.discipline = {value}"));
        let problem = format!("fixed.queue.discipline: invalid type: {kind}, expected a name; {disciplines}");
        assert!(text.ends_with(&problem), "{text}");
        assert!(text.starts_with("s.toml:6: "), "{text}");
    }
    let change = "[[change]]\nat = \"1 s\"\noutage = \"1 s\"\nto = 3\n\n[[mobile]]";
    let text = error("[[mobile]]", change);
    assert!(text.ends_with("expected a name; one of bearer, second-bearer, fixed"), "{text}");
    let text = error("bytes = \"100 kB\"", "bytes = \"100 kB\"\nbearer = 2");
    assert!(text.contains("flow.0.bearer: invalid type: integer `2`, expected a name; one of first, second"), "{text}");
}

#[test]
fn a_stream_of_datagrams_is_bounded() {
    let stream = |keys: &str| {
        let flow = format!("kind = \"datagrams\"\ndirection = \"down\"\nmobile = \"near\"\n{keys}");
        error("kind = \"download\"\nmobile = \"near\"\nbytes = \"100 kB\"", &flow)
    };
    let text = stream("duration = \"60 s\"\nspacing = { from = \"10 us\", to = \"10 us\", burst = 10000 }");
    assert!(text.contains("flow.0.spacing") && text.contains("10 us for each datagram"), "{text}");
    let text = stream("duration = \"3 h\"\nspacing = { from = \"10 us\", to = \"10 us\" }");
    assert!(text.contains("flow.0.duration") && text.contains("1,000,000,000 datagrams"), "{text}");
    let text = stream("duration = \"3 h\"\nrate = \"1 Mbit/s\"\nsize = 65508");
    assert!(text.contains("flow.0.size: an IPv4 packet has at most 65507 bytes of data"), "{text}");
    let text = stream("duration = \"3 h\"\nrate = \"1 Gbit/s\"\nsize = 72");
    assert!(text.contains("flow.0.duration") && text.contains("1,000,000,000 datagrams"), "{text}");
}

#[test]
fn a_key_of_a_bearer_is_suggested_only_if_its_model_has_it() {
    let meant = |preset: &str, key: &str| {
        let bearer = format!("preset = \"{preset}\"\n{key} = 1");
        let text = error("preset = \"umts-dch-384\"", &bearer);
        text.split_once("did you mean `").map(|(_, rest)| rest.split_once('`').expect("it ends").0.to_owned())
    };
    for (preset, key, path) in [
        ("lte-10mhz", "queue", "bearer.pdcp.queue"),
        ("lte-10mhz", "bandwidth", "bearer.cell.bandwidth"),
        ("lte-10mhz", "scheduler", "bearer.cell.scheduler"),
        ("lte-10mhz", "cell.inactivity", "bearer.drx.inactivity"),
        ("lte-10mhz", "inactivty", "bearer.drx.inactivity"),
        ("lte-10mhz", "conditions.preset", "bearer.conditions.environment"),
        ("lte-10mhz", "rrc.inactivty", "inactivity"),
        ("nr-n78-100mhz-sa", "carriers", "bearer.cell.carriers"),
        ("hs-dsch-384", "downlink.scheduller", "scheduler"),
        ("lte-10mhz", "mss", "tcp.maximum_segment_size"),
    ] {
        assert_eq!(meant(preset, key).as_deref(), Some(path), "{preset} {key}");
    }
    for (preset, key) in [("lte-10mhz", "tbf"), ("nr-n78-100mhz-sa", "e_dch"), ("lte-10mhz", "cell.codes")] {
        assert_eq!(meant(preset, key), None, "{preset} {key}");
    }
}

#[test]
fn a_flow_of_no_transactions_is_refused() {
    let flow = "kind = \"transactions\"\nmobile = \"near\"\nresponse = \"1 kB\"\ntransactions = 0";
    let text = error("kind = \"download\"\nmobile = \"near\"\nbytes = \"100 kB\"", flow);
    assert!(text.contains("flow.0.transactions") && text.contains("there must be at least one"), "{text}");
}

#[test]
fn the_good_one_is_good() {
    let scenario = read(GOOD).expect("nothing is wrong with it");
    let names: Vec<_> = scenario.mobiles().into_iter().map(|mobile| mobile.name).collect();
    assert_eq!(names, ["near-0", "near-1"]);
    let flows: Vec<_> = scenario.flows().into_iter().map(|flow| (flow.name, flow.user.number())).collect();
    assert_eq!(flows, [("download-0".to_owned(), 0), ("download-1".to_owned(), 1)]);
}

#[test]
fn an_unknown_key_names_its_line_and_the_nearest_right_key() {
    assert!(error("delay =", "delai =").starts_with("s.toml:6: fixed.delai: unknown key; did you mean `delay`?"));
    assert!(error("[fixed]", "[fxied]").starts_with("s.toml:4: fxied: unknown key; did you mean `fixed`?"));
    assert!(error("bytes =", "byte =").starts_with("s.toml:18: flow.0.byte: unknown key; did you mean `bytes`?"));
    assert!(error("count =", "cuont =").contains("s.toml:13: mobile.0.cuont: unknown key; did you mean `count`?"));
    assert!(
        error("preset = \"umts-dch-384\"", "preset = \"umts-dch-384\"\nblre = 0.1")
            .starts_with("s.toml:10: bearer.blre: unknown key; did you mean `bler`?")
    );
}

#[test]
fn a_wrong_value_names_its_line_and_what_would_do() {
    assert!(error("10 Mbit/s", "10 ms").starts_with("s.toml:5: fixed.rate: `ms` is not a unit of a bit rate"));
    assert!(error("10 Mbit/s", "-1 Mbit/s").starts_with("s.toml:5: fixed.rate: `-1 Mbit/s` is negative"));
    assert!(
        error("\"10 Mbit/s\"", "10").starts_with("s.toml:5: fixed.rate: invalid type: integer `10`, expected a bit")
    );
    assert!(
        error("\"download\"", "\"downlaod\"")
            .contains("s.toml:16: flow.0.kind: there is no workload `downlaod`; did you")
    );
    assert!(
        error("umts-dch-384", "umts-dch-348")
            .contains("s.toml:9: bearer.preset: there is no preset `umts-dch-348`; did")
    );
    assert!(
        error("mobile = \"near\"", "mobile = \"far\"").contains("s.toml:17: flow.mobile: there is no mobile `far`")
    );
    assert!(error("100 kB", "0 B").starts_with("s.toml:18: flow.0.bytes: there is nothing to move"));
    assert!(error("count = 2", "count = 0").contains("mobile: there is no mobile"));
    let freeze = |times: &str| error("\"100 kB\"", &format!("\"100 kB\"\nfreeze = [{times}]"));
    assert!(
        freeze("{ from = \"9 s\", until = \"8 s\" }")
            .starts_with("s.toml:19: flow.0.freeze: each must end after its start")
    );
    let overlap = "{ from = \"1 s\", until = \"3 s\" }, { from = \"2 s\", until = \"4 s\" }";
    assert!(freeze(overlap).contains("the next one start later"));
    assert!(freeze("{ form = \"1 s\", until = \"3 s\" }").contains("did you mean `from`?"));
}

#[test]
fn a_value_of_another_type_gives_what_to_write() {
    let wrong = error("\"10 Mbit/s\"", "10");
    assert!(wrong.ends_with("expected a bit rate such as \"384 kbit/s\"; add a unit, as in \"10 kbit/s\""), "{wrong}");
    let duration = |value: &str| error("name = \"good\"", &format!("duration = {value}"));
    assert!(duration("60").ends_with("add a unit, as in \"60 s\" or \"60 ms\""), "{}", duration("60"));
    assert!(duration("0.5").ends_with("add a unit, as in \"0.5 s\" or \"0.5 ms\""), "{}", duration("0.5"));
    let size = error("\"100 kB\"", "1000000");
    assert!(size.ends_with("add a unit, as in \"1000000 B\""), "{size}");
    let log = |value: &str| error("[fixed]", &format!("[log]\npackets = {value}\n[fixed]"));
    assert!(
        log("\"no\"").contains("log.packets: invalid type: string \"no\", expected `true` or `false`; write `false`")
    );
    assert!(log("3").ends_with("expected `true` or `false`; write `true` or `false`"));
    let seed = |value: &str| error("name = \"good\"", &format!("seed = {value}"));
    assert!(seed("-1").ends_with("expected a whole number, 0 or more"), "{}", seed("-1"));
    assert!(seed("\"x\"").ends_with("expected a whole number, 0 or more"));
    let queue = error("delay = \"110 ms\"", "delay = \"110 ms\"\nqueue = 100");
    let keys = "set its keys, as in `fixed.queue.KEY = VALUE`: discipline, packets, bytes,";
    assert!(queue.contains("fixed.queue: ") && queue.contains(keys), "{queue}");
    let log = error("[fixed]", "log = false\n[fixed]");
    assert!(log.ends_with("`log.KEY = VALUE`: packets, tcp, radio, app"), "{log}");
}

#[test]
fn a_text_in_place_of_a_table_is_its_preset_or_profile() {
    let sets = |sets: &[(&str, &str)]| {
        let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Scenario::read(GOOD, "s.toml", Path::new(""), &sets).map(|scenario| scenario.to_toml())
    };
    assert_eq!(sets(&[("bearer", "gprs")]), sets(&[("bearer.preset", "gprs")]));
    let several = [("proxy", "adaptive"), ("proxy.buffer", "9 kB"), ("tcp", "linux-2.4"), ("tcp.nagle", "false")];
    let written = sets(&several).expect("all are known");
    for part in ["buffer = \"9 kB\"", "profile = \"linux-2.4\"", "nagle = \"off\""] {
        assert!(written.contains(part), "{part} in {written}");
    }
    let text = GOOD.replace("[bearer]\npreset = \"umts-dch-384\"", "").replace("[fixed]", "bearer = \"gprs\"\n[fixed]");
    assert_eq!(read(&text).expect("a preset").to_toml(), sets(&[("bearer", "gprs")]).expect("a preset"));
    let error = sets(&[("bearer", "gpsr")]).expect_err("no such preset").to_string();
    assert!(
        error.starts_with("override bearer=gpsr: bearer.preset: there is no preset `gpsr`; did you mean"),
        "{error}"
    );
}

#[test]
fn an_override_is_the_place_of_its_error() {
    let set = |key: &str, value: &str| {
        let sets = [(key.to_owned(), value.to_owned())];
        Scenario::read(GOOD, "s.toml", Path::new(""), &sets).expect_err("it is wrong").to_string()
    };
    assert!(set("format", "2").starts_with("override format=2: format: format 2 is not known"));
    let change = set("change.0.at", "5 s");
    assert!(
        change.starts_with("override change.0.at=5 s: change: the scenario has no `[[change]]`; add one"),
        "{change}"
    );
    let case = set("tcp.congestion", "BBR");
    assert!(case.contains("did you mean `bbr`?"), "{case}");
}

#[test]
fn an_unknown_table_of_a_bearer_is_not_moved() {
    let error = |to: &str| error("preset = \"umts-dch-384\"", to);
    let wrong = error("preset = \"umts-dch-384\"\nharq.processes = 3");
    assert!(wrong.starts_with("s.toml:10: bearer.harq: unknown key; known here: preset, model, "), "{wrong}");
    let wrong = error("preset = \"gprs-3+1\"\nblc.window = 3");
    assert!(wrong.starts_with("s.toml:10: bearer.blc: unknown key; did you mean `rlc`?"), "{wrong}");
    let right = GOOD.replace("preset = \"umts-dch-384\"", "preset = \"umts-dch-384\"\nqueue.packets = 7");
    assert!(read(&right).expect("a table of the downlink").to_toml().contains("packets = 7"));
}

#[test]
fn a_former_name_of_a_model_gives_the_new_one() {
    for (former, now) in [("umts-dch", "dch-simple"), ("hsdpa-cell", "hsdpa")] {
        let wrong = error("preset = \"umts-dch-384\"", &format!("model = \"{former}\""));
        let expected = format!("s.toml:9: bearer.model: there is no bearer model `{former}`; it is called `{now}` now");
        assert_eq!(wrong, expected);
    }
    let wrong = error("preset = \"umts-dch-384\"", "model = \"gpsr\"");
    assert!(wrong.contains("there is no bearer model `gpsr`; did you mean `gprs`?"), "{wrong}");
}

#[test]
fn errors_of_the_model_are_located_too() {
    let error = error("umts-dch-384\"", "hs-dsch-classes-abc\"\ntti = \"0 s\"");
    assert!(error.starts_with("s.toml:10: bearer.downlink.tti: "), "{error}");
}

#[test]
fn what_is_missing_is_named() {
    assert!(error("format = 1\n", "").starts_with("s.toml: format: this key is missing; begin the scenario with"));
    assert!(error("format = 1", "format = 2").contains("format: format 2 is not known"));
    assert!(error("bytes = \"100 kB\"\n", "").starts_with("s.toml:15: flow.0.bytes: this key is missing"));
    assert!(error("preset = \"umts-dch-384\"\n", "").starts_with("s.toml:8: bearer.preset: this key is missing"));
    assert!(error("[[flow]]", "[flow]").starts_with("s.toml:15: flow: this is a list of tables; write `[[flow]]`"));
    let text = GOOD.split("[[flow]]").next().expect("there is a first part");
    let without_flows = read(text).expect("a link needs none");
    let error = without_flows.require_flows().expect_err("a run does").to_string();
    assert!(error.starts_with("flow: this table is missing: there is nothing to run; for a start, add"), "{error}");
}

#[test]
fn a_change_that_makes_no_sense_names_its_line() {
    let error = |change: &str| read(&format!("{GOOD}[[change]]\n{change}")).expect_err(change).to_string();
    let tests = [
        ("outage = \"3 s\"", "s.toml:19: change.0.at: this key is missing; give its time, as in"),
        ("at = \"1 s\"", "s.toml:19: change.0: no change given: use one of `outage`, `handover`"),
        ("at = \"1 s\"\noutrage = \"3 s\"", "s.toml:21: change.0.outrage: unknown key; did you mean `outage`?"),
        ("at = \"1 s\"\noutage = \"3 m\"", "s.toml:21: change.0.outage: `m` is not a unit of a length of time"),
        ("at = \"1 s\"\noutage = \"3 s\"\nrate = \"1 kbit/s\"", "s.toml:19: change.0: `outage` and `rate` are two"),
        ("at = \"1 s\"\noutage = \"3 s\"\nbuffer = \"keep\"", "s.toml:19: change.0: `buffer` belongs to `handover`"),
        ("at = \"1 s\"\noutage = \"25 h\"", "s.toml:19: change.0: `outage` must be at most 24 hours"),
        ("at = \"9999 h\"\noutage = \"3 s\"", "s.toml:20: change.0.at: `9999 h` is out of range"),
        (
            "at = \"1 s\"\nto = \"fxied\"\noutage = \"3 s\"",
            "s.toml:21: change.0.to: `fxied` is not known; did you mean `fixed`?",
        ),
        (
            "at = \"1 s\"\nloss = 0.1",
            "s.toml:21: change.0.loss: a radio channel has no `loss` to change: it has a `bler`",
        ),
        ("at = \"1 s\"\nlevel = 3", "s.toml:21: change.0.level: a radio channel without C/I levels has no `level`"),
        ("at = \"1 s\"\nto = \"fixed\"\nbler = 0.1", "s.toml:22: change.0.bler: a plain link has no `bler` to change"),
        ("at = \"1 s\"\nchannels = 70000", "s.toml:21: change.0.channels: `channels` must give 1 to 65535 PDUs"),
        ("at = \"1 s\"\nmobile = \"far\"\noutage = \"3 s\"", "s.toml:21: change.0.mobile: there is no mobile `far`"),
        (
            "at = \"1 s\"\nmobile = \"near\"\nto = \"fixed\"\noutage = \"3 s\"",
            "s.toml:21: change.0.mobile: the fixed network is not one mobile's; remove `mobile`",
        ),
    ];
    for (change, expected) in tests {
        let error = error(change);
        assert!(error.starts_with(expected), "{change}: {error}");
    }
    let text = format!("{GOOD}[change]\nat = \"1 s\"");
    assert!(read(&text).expect_err("one table").to_string().starts_with("s.toml:19: change: this is a list of tables"));
}

#[test]
fn two_changes_of_the_same_key_at_the_same_time_are_refused() {
    let over = |second: &str| {
        let text = format!("{GOOD}\n[[change]]\nat = \"1 s\"\nrate = \"64 kbit/s\"\n");
        read(&format!("{text}[[change]]\n{second}\n")).map(drop).map_err(|error| error.to_string())
    };
    let expected = "s.toml:25: change.1.rate: change.0 changes `rate` at the same time, 1 s; remove one of the two";
    for same in ["at = \"1 s\"\nrate = \"64 kbit/s\"", "at = \"1000 ms\"\nrate = \"32 kbit/s\"\nto = \"bearer\""] {
        let error = over(same).expect_err(same);
        assert!(error.starts_with(expected), "{error}");
    }
    for other in ["mobile = \"near\"", "direction = \"up\"", "to = \"fixed\""] {
        over(&format!("at = \"1 s\"\nrate = \"32 kbit/s\"\n{other}"))
            .unwrap_or_else(|error| panic!("{other}: {error}"));
    }
    for other in ["at = \"2 s\"\nrate = \"64 kbit/s\"", "at = \"1 s\"\nbler = 0.5"] {
        over(other).unwrap_or_else(|error| panic!("{other}: {error}"));
    }
}

#[test]
fn a_preset_in_place_of_a_scenario_is_refused() {
    let presets = [
        ("gprs-3+1", "`airpath run lte --set bearer.preset=s.toml` uses it"),
        ("environments/driving", "`airpath run lte --set bearer.conditions.environment=s.toml` uses it"),
        ("proxy/adaptive", "`airpath run lte --proxy s.toml` uses it"),
    ];
    for (preset, expected) in presets {
        let file = format!("{}/../../presets/{preset}.toml", env!("CARGO_MANIFEST_DIR"));
        let error = read(&std::fs::read_to_string(file).expect("a preset")).expect_err(preset).to_string();
        assert_eq!(error, format!("s.toml: this is a preset, not a scenario; {expected}"));
    }
}

#[test]
fn a_class_that_the_bearer_does_not_have_is_refused() {
    let error = |preset: &str, class: &str| {
        let class = format!("[[mobile]]\nname = \"m\"\n[[mobile]]\n{class}\n");
        read(&format!("format = 1\nbearer.preset = \"{preset}\"\n{class}")).expect_err(preset).to_string()
    };
    for preset in ["lte-10mhz", "wired", "hs-dsch-384", "gprs-3+1"] {
        let error = error(preset, "class = \"a\"");
        let expected = "s.toml:6: mobile.1.class: the bearer has no classes; remove it, or use a bearer with \
                        `downlink.levels`, such as the preset `hs-dsch-classes-abc`";
        assert_eq!(error, expected, "{preset}");
    }
    let classes = "hs-dsch-classes-abc";
    let text = format!("format = 1\nbearer.preset = \"{classes}\"\n[[mobile]]\nclass = \"A\"\n");
    let unknown = read(&text).expect_err("no such class").to_string();
    let expected = "s.toml:4: mobile.0.class: the bearer has no class `A`; did you mean `a`? known here: a, b, c";
    assert_eq!(unknown, expected);
}

#[test]
fn changes_are_resolved_set_and_carried_out_in_the_order_of_time() {
    let text = format!(
        "{GOOD}[[change]]\nat = \"9 s\"\nhandover = \"350 ms\"\nmobile = \"near\"\n\
         [[change]]\nat = \"2 s\"\nto = \"fixed\"\nloss = \"2 %\"\ndirection = \"up\"\n"
    );
    let scenario = read(&text).expect("both can be done");
    let orders = scenario.timed_orders();
    let seen: Vec<_> = orders
        .iter()
        .map(|timed| (timed.at.as_nanos(), timed.order.hop, timed.order.command.user.map(|user| user.number())))
        .collect();
    assert_eq!(
        seen,
        [
            (2_000_000_000, Hop::Fixed, None),
            (9_000_000_000, Hop::Cell(0), Some(0)),
            (9_000_000_000, Hop::Cell(0), Some(1))
        ]
    );
    let resolved = scenario.to_toml();
    assert_eq!(read(&resolved).expect("it was written by us").to_toml(), resolved);
    assert!(resolved.contains("buffer = \"keep\"") && resolved.contains("loss = 0.02"), "{resolved}");
    let sets = [("change.1.at".to_owned(), "12 s".to_owned())];
    let set = Scenario::read(&text, "s.toml", Path::new("."), &sets).expect("it can be set");
    assert_eq!(set.timed_orders()[2].at.as_nanos(), 12_000_000_000);
}

#[test]
fn a_command_from_outside_is_read_and_refused_alike() {
    let scenario = read(GOOD).expect("good");
    let orders = scenario.read_orders(r#" {"bler": 0.3, "mobile": "near-1"} "#).expect("a change");
    assert_eq!(
        (orders.len(), orders[0].hop, orders[0].command.user.map(|user| user.number())),
        (1, Hop::Cell(0), Some(1))
    );
    let error = |json: &str| scenario.read_orders(json).expect_err(json).to_string();
    assert!(error(r#"{"outage": "3 m"}"#).starts_with(r#"{"outage": "3 m"}: outage: `m` is not a unit"#));
    assert!(error(r#"{"outage": "3 s", "at": "1 s"}"#).contains("at: unknown key"));
    assert!(error(r#"{"outage": "3 s""#).contains("this is not a change: EOF while parsing"));
    assert!(error("[]").contains("this is not a change; write a JSON object"));
    assert!(error(r#"{"outage": null}"#).contains("this is not a change"));
    assert!(error(r#"{"outage": "3 s", "mobile": "nera"}"#).contains("there is no mobile `nera`; did you mean"));
}

#[test]
fn a_file_that_is_not_there_or_cut_short_is_named() {
    let recorded = |file: &str| error("rate = \"10 Mbit/s\"", &format!("recorded = \"{file}\""));
    let missing = recorded("no-such-file.down");
    assert!(missing.starts_with("s.toml:5: fixed.recorded: ") && missing.contains("no-such-file.down"), "{missing}");
    let folder = std::env::temp_dir().join(format!("airpath-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let file = folder.join("cut.down");
    std::fs::write(&file, "1\n2\n3x").expect("a file for the test");
    let cut = recorded(file.to_str().expect("a plain path"));
    std::fs::remove_dir_all(&folder).expect("it was made above");
    assert!(cut.starts_with("s.toml:5: fixed.recorded: ") && cut.contains("cut.down:3"), "{cut}");
}

#[test]
fn a_setting_from_the_command_line_is_named_as_such() {
    let set = |key: &str, value: &str| {
        let sets = [(key.to_owned(), value.to_owned())];
        Scenario::read(GOOD, "s.toml", Path::new("."), &sets).map(|scenario| scenario.to_toml())
    };
    assert!(set("bearer.bler", "0.25").expect("it can be set").contains("bler = 0.25"));
    assert!(set("flow.bytes", "5 MB").expect("it can be set").contains("bytes = \"5 MB\""));
    assert!(set("flow.0.tcp", "windows-xp").expect("it can be set").contains("windows-xp"));
    let error = set("bearer.bler", "2").expect_err("no probability").to_string();
    assert!(error.starts_with("override bearer.bler=2: bearer.downlink.bler: `2` is not a probability"), "{error}");
    let error = set("bearer.rtae", "2").expect_err("no such key").to_string();
    assert!(error.starts_with("override bearer.rtae=2: bearer.rtae: unknown key"), "{error}");
    for (key, value) in [
        ("tcp.congestion.algorithm", "reno"),
        ("tcp.congestion", "reno"),
        ("flow.tcp.congestion", "reno"),
        ("tcp.cc", "reno"),
    ] {
        assert!(set(key, value).expect("a name of the kernel").contains("algorithm = \"new-reno\""), "{key}");
    }
    assert!(set("tcp", "windows-xp").expect("a profile").contains("profile = \"windows-xp\""));
    assert!(set("tcp.congestion", "cubic").expect("an algorithm").contains("algorithm = \"cubic\""));
    let error = set("tcp.recovery", "rack").expect_err("a table").to_string();
    assert!(error.contains("expected a table") && !error.contains("struct"), "{error}");
    assert!(set("fixed.rate", "10 Mbps").expect("a common name").contains("rate = \"10 Mbit/s\""));
    let error = set("fixed.rate", "10 mbps").expect_err("no unit here").to_string();
    assert!(error.contains("did you mean `Mbit/s`?"), "{error}");
    assert!(set("bearer.preset", "gprs").expect("a common name").contains("model = \"gprs\""));
    let error = set("tcp.profile", "linux-7").expect_err("no such profile").to_string();
    assert!(error.contains("there is no TCP profile `linux-7`; did you mean `linux-6`?"), "{error}");
}

/// Reads the good scenario, without its table of mobiles, with another bearer and the value of one
/// key.
fn with_key(key: &str, value: &str) -> Result<Scenario, String> {
    let mobile = "[[mobile]]\nname = \"near\"\ncount = 2\n";
    let bearer = if key.starts_with("bearer.conditions") {
        "preset = \"gprs-3+1\"\nconditions.environment = \"walking\""
    } else {
        "preset = \"hs-dsch-384\""
    };
    let text = GOOD.replace(mobile, "").replace("mobile = \"near\"\n", "");
    let text = text.replace("preset = \"umts-dch-384\"", bearer);
    let sets = [(key.to_owned(), value.to_owned())];
    Scenario::read(&text, "s.toml", Path::new("."), &sets).map_err(|error| error.to_string())
}

#[test]
fn a_name_of_another_tool_gives_the_key_and_its_table() {
    let suggests = |key: &str, path: &str| {
        let error = with_key(key, "1").expect_err("no such key");
        assert!(error.contains(&format!("{key}: unknown key; did you mean `{path}`? known here: ")), "{error}");
    };
    for (key, path) in [
        ("congestion", "tcp.congestion"),
        ("cc", "tcp.congestion"),
        ("bearer.cc", "tcp.congestion"),
        ("flow.0.cc", "flow.0.tcp.congestion"),
        ("flow.0.tcp.mss", "maximum_segment_size"),
        ("fixed.mss", "tcp.maximum_segment_size"),
        ("bearer.rate", "fixed.rate"),
        ("tcp.rate", "fixed.rate"),
        ("fixed.bandwidth", "rate"),
        ("fixed.down.latency", "delay"),
        ("access.rtt", "delay"),
        ("bearer.loss", "bler"),
        ("bearer.packet_loss", "fixed.loss"),
        ("fixed.buffer", "fixed.queue.bytes"),
        ("bearer.limit", "bearer.queue.packets"),
        ("tcp.queue", "fixed.queue.packets"),
        ("flow.0.size", "bytes"),
        ("fixed.size", "flow.bytes"),
        ("flow.0.seed", "seed"),
        ("flow.0.duration", "duration"),
        ("bearer.count", "mobile.count"),
        ("flow.0.cuont", "count"),
        ("mobile.0.preset", "bearer.preset"),
    ] {
        suggests(key, path);
    }
    let ping = error("kind = \"download\"", "kind = \"ping\"");
    assert!(ping.contains("flow.0.bytes: unknown key; known here: "), "{ping}");
    let change = error("[[flow]]", "[[change]]\nat = \"1 s\"\nlatency = \"3 s\"\n[[flow]]");
    assert!(change.contains("change.0.latency: unknown key; did you mean `delay`?"), "{change}");
    for (index, (name, path)) in NAMES_ELSEWHERE.iter().enumerate() {
        let is_first = !NAMES_ELSEWHERE[..index].iter().any(|(other, _)| other == name);
        // A key of the top is suggested in the tables below it only.
        if is_first && path.contains('.') {
            suggests(name, path);
        }
    }
}

#[test]
fn each_suggested_key_of_another_table_is_accepted() {
    for (name, path) in NAMES_ELSEWHERE {
        let value = VALUES.iter().find(|(key, _)| key == path).map(|(_, value)| *value);
        let value = value.unwrap_or_else(|| panic!("{name}: {path} has no value in this test"));
        if let Err(error) = with_key(path, value) {
            panic!("{name}: {path} = {value}: {error}");
        }
    }
}

/// A value of each key that a name of another tool suggests.
const VALUES: &[(&str, &str)] = &[
    ("tcp.congestion", "cubic"),
    ("tcp.profile", "linux-2.4"),
    ("tcp.maximum_segment_size", "1200"),
    ("tcp.selective_acknowledgement", "false"),
    ("tcp.timestamps", "false"),
    ("tcp.ecn", "true"),
    ("tcp.nagle", "off"),
    ("tcp.pacing", "true"),
    ("tcp.handshake", "true"),
    ("tcp.initial_window", "4"),
    ("tcp.receive_buffer.maximum", "1 MB"),
    ("tcp.retransmission_timeout.initial", "3 s"),
    ("tcp.retransmission_timeout.minimum", "300 ms"),
    ("tcp.delayed_ack.timeout", "100 ms"),
    ("tcp.congestion.hystart", "off"),
    ("tcp.recovery.rack", "false"),
    ("tcp.recovery.tail_loss_probe", "false"),
    ("fixed.rate", "1 Mbit/s"),
    ("fixed.loss", "0.01"),
    ("fixed.delay", "10 ms"),
    ("fixed.queue.packets", "20"),
    ("fixed.queue.bytes", "64 kB"),
    ("fixed.queue.discipline", "codel"),
    ("bearer.bler", "0.1"),
    ("bearer.model", "hs-dsch-simple"),
    ("bearer.preset", "hs-dsch-360"),
    ("bearer.scheduler", "round-robin"),
    ("bearer.conditions", "{ environment = \"driving\" }"),
    ("bearer.conditions.environment", "driving"),
    ("bearer.conditions.movement.speed", "5 km/h"),
    ("flow.bytes", "1 MB"),
    ("flow.kind", "upload"),
    ("flow.start", "1 s"),
    ("flow.transport", "quic-quinn"),
    ("flow.count", "2"),
    ("mobile.count", "2"),
    ("seed", "7"),
    ("duration", "20 s"),
];

#[test]
fn a_preset_of_another_model_is_not_laid_over_a_resolved_scenario() {
    let resolved = read(GOOD).expect("good").to_toml();
    let set = |preset: &str| {
        Scenario::read(&resolved, "s.toml", Path::new("."), &[("bearer.preset".to_owned(), preset.to_owned())])
    };
    let error = set("gprs-4+1").expect_err("another model").to_string();
    assert!(
        error.starts_with("override bearer.preset=gprs-4+1: bearer.preset: preset `gprs-4+1` has the model `gprs`")
    );
    assert!(error.contains("run the original scenario with this preset"), "{error}");
    assert!(set("umts-dch-64").is_ok(), "a preset of the same model");
}

#[test]
fn a_setting_for_both_ways_holds_in_a_resolved_scenario_too() {
    let resolved = read(GOOD).expect("good").to_toml();
    let set = |sets: &[(&str, &str)]| {
        let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let scenario = Scenario::read(&resolved, "s.toml", Path::new("."), &sets).expect("it can be set");
        [scenario.fixed.down, scenario.fixed.up].map(|link| link.config().loss.mean().get())
    };
    assert_eq!(set(&[("fixed.loss", "0.1")]), [0.1, 0.1]);
    assert_eq!(set(&[("fixed.up.loss", "0.2"), ("fixed.loss", "0.1")]), [0.1, 0.2]);
    let sets = [("fixed.queue.packets".to_owned(), "7".to_owned())];
    let queued = Scenario::read(&resolved, "s.toml", Path::new("."), &sets).expect("it can be set").to_toml();
    assert_eq!(queued.matches("packets = 7").count(), 2, "{queued}");
}

#[test]
fn what_is_resolved_reads_back_to_itself() {
    let resolved = read(GOOD).expect("good").to_toml();
    assert_eq!(read(&resolved).expect("it was written by us").to_toml(), resolved);
    assert!(resolved.contains("profile = \"linux-6\""), "the settings that were on are written out");
}

#[test]
fn environments_of_bearer_and_mobiles_read_back() {
    let text = "format = 1\n[bearer]\npreset = \"gprs-3+1\"\nconditions.environment = \"driving\"\n[[mobile]]\nname = \"car\"\n\
                [[mobile]]\nname = \"home\"\nenvironment = \"indoor\"\nconditions.cells.penetration = \"20 dB\"";
    let resolved = read(text).expect("good").to_toml();
    assert_eq!(read(&resolved).expect("it was written by us").to_toml(), resolved);
    for part in ["speed = \"50 km/h\"", "speed = \"0 km/h\"", "penetration = \"20 dB\""] {
        assert_eq!(resolved.matches(part).count(), 1, "{part}: {resolved}");
    }
    assert_eq!(resolved.matches("power_over_noise").count(), 2, "the network is that of the bearer");
    let both_cells = read(&text.replace("gprs-3+1", "nsa")).expect("good").to_toml();
    assert_eq!(read(&both_cells).expect("it was written by us").to_toml(), both_cells);
    assert_eq!(both_cells.matches("power_over_noise").count(), 2, "each cell of EN-DC has its network");
    let error = read(&text.replace("indoor", "indor")).expect_err("no such environment").to_string();
    assert!(
        error.contains(
            "s.toml:9: mobile.1.conditions.environment: there is no environment `indor`; did you mean `indoor`?"
        ),
        "{error}"
    );
    let error = read(&text.replace("gprs-3+1", "wired")).expect_err("no radio").to_string();
    assert!(error.contains("bearer.conditions: unknown key"), "{error}");
    let wired = "format = 1\nbearer.preset = \"wired\"\n[[mobile]]\nenvironment = \"indoor\"";
    assert!(read(wired).expect_err("no radio").to_string().contains("the bearer has no radio conditions"));
}

#[test]
fn a_scenario_reports_whether_a_queue_distinguishes_flows() {
    let text = "format = 1\nbearer.preset = \"lte-10mhz\"\nfixed.down.rate = \"1 Gbit/s\"\nfixed.up.rate = \"1 Gbit/s\"\n\
                [[flow]]\nkind = \"download\"\nbytes = \"1 MB\"";
    let resolved = read(text).expect("good").to_toml();
    let distinguishes = |key: &str, value: &str| {
        let sets = [(key.to_owned(), value.to_owned())];
        Scenario::read(&resolved, "s.toml", Path::new("."), &sets).expect("it can be set").distinguishes_flows()
    };
    for (discipline, is_by_flow) in
        [("fq-codel", true), ("cake", true), ("codel", false), ("pie", false), ("dualpi2", false)]
    {
        let queue = format!("{{ discipline = \"{discipline}\" }}");
        for key in ["fixed.down.queue", "fixed.up.queue", "bearer.pdcp.queue"] {
            assert_eq!(distinguishes(key, &queue), is_by_flow, "{key} = {queue}");
        }
    }
}

#[test]
fn a_setting_of_the_command_line_that_no_flow_has_is_refused() {
    let flow = "format = 1\n[bearer]\npreset = \"gprs-3+1\"\n[[flow]]\nkind = \"download\"\nbytes = \"1 kB\"\n";
    let own = format!("{flow}tcp = \"windows-xp\"\n");
    let sets = [("tcp.congestion.algorithm".to_owned(), "vegas".to_owned())];
    let read = |text: &str| Scenario::read(text, "s.toml", Path::new("."), &sets).map(drop);
    let error = read(&own).expect_err("no effect").to_string();
    assert_eq!(
        error,
        "override tcp.congestion.algorithm=vegas: tcp.congestion.algorithm: no flow has this setting, because each \
         flow has a profile of its own; write `flow.tcp.congestion.algorithm`, which sets it for all flows, or \
         `flow.NAME.tcp.congestion.algorithm`"
    );
    read(&format!("{own}[[flow]]\nkind = \"upload\"\nbytes = \"1 kB\"\n")).expect("the second flow has it");
    read(flow).expect("the flow has it");
    for text in [
        format!("{flow}transport = \"quic-quinn\"\n"),
        flow.replace("download\"\nbytes = \"1 kB", "ping\"\ninterval = \"1 s"),
    ] {
        let error = read(&text).expect_err("no effect").to_string();
        assert!(error.contains("algorithm: no flow uses TCP"), "{error}");
    }
    let sets = [("quic.congestion".to_owned(), "new-reno".to_owned())];
    let error = Scenario::read(flow, "s.toml", Path::new("."), &sets).map(drop).expect_err("no effect").to_string();
    assert!(error.contains("quic.congestion: no flow uses QUIC; remove it"), "{error}");
}

/// A download over a preset, with more keys of `[bearer]`.
fn over(preset: &str, keys: &str) -> String {
    format!("format = 1\n[bearer]\npreset = \"{preset}\"\n{keys}\n[[flow]]\nkind = \"download\"\nbytes = \"100 kB\"\n")
}

/// The error of a preset with these keys, in the scenario or on the command line.
fn error_over(preset: &str, keys: &str) -> String {
    read(&over(preset, keys)).expect_err(keys).to_string()
}

#[test]
fn a_table_of_a_preset_can_be_left_out() {
    let toml = |keys: &str| read(&over("lte-20mhz", keys)).expect(keys).to_toml();
    assert!(toml("").contains("[bearer.drx]") && toml("").contains("[bearer.rrc]"));
    let awake = toml("drx = false");
    assert!(!awake.contains("[bearer.drx]") && awake.contains("[bearer.rrc]"), "{awake}");
    assert!(!toml("pdcp.queue = false").contains("[bearer.pdcp.queue]"));
    // A preset without the table has nothing to leave out.
    read(&over("nr-n78-low-latency", "drx = false")).expect("no DRX");
    let error = error_over("lte-20mhz", "cell = false");
    assert!(error.contains("bearer.cell: this key is missing"), "{error}");
    let error = error_over("lte-20mhz", "drx.on = false");
    assert!(error.contains("bearer.drx.on: invalid type: boolean `false`"), "{error}");
}

#[test]
fn the_mode_of_the_rlc_can_be_changed_over_a_preset() {
    let toml = read(&over("lte-20mhz", "rlc.mode = \"unacknowledged\"")).expect("its t_reordering remains").to_toml();
    assert!(toml.contains("mode = \"unacknowledged\"") && !toml.contains("max_retx"), "{toml}");
    read(&over("nr-n28-fdd-20mhz", "rlc = { mode = \"unacknowledged\", sequence_bits = 12 }")).expect("a mode of NR");
    let error = error_over("nr-n28-fdd-20mhz", "rlc.mode = \"unacknowledged\"");
    let expected = "s.toml:4: bearer.rlc.sequence_bits: this must be 6 or 12 with `rlc.mode = \"unacknowledged\"`";
    assert!(error.starts_with(expected), "{error}");
    let error = error_over("lte-20mhz", "rlc = { mode = \"unacknowledged\", max_retx = 4 }");
    assert!(error.contains("s.toml:4: bearer.rlc.max_retx: unknown key"), "{error}");
}

#[test]
fn a_key_of_the_rlc_is_named_with_its_line() {
    let cases = [
        ("lte-20mhz", "rlc.max_retx = \"x\"", "max_retx: invalid type: string \"x\", expected a whole number"),
        ("lte-20mhz", "rlc.max_retx = 1000", "max_retx: invalid value: integer `1000`, expected a whole number"),
        ("lte-cat-m1", "rlc.t_reordering = 5", "t_reordering: "),
        ("nr-n78-100mhz-sa", "rlc.sequence_bits = \"x\"", "sequence_bits: invalid type: string \"x\""),
        ("nr-n78-100mhz-sa", "rlc.poll_byte = true", "poll_byte: "),
        ("nr-n78-100mhz-nsa", "master.rlc.max_retx = \"x\"", "max_retx: invalid type: string \"x\""),
        ("lte-20mhz", "rlc.mode = \"transparent\"", "mode: `transparent` is not known"),
        ("lte-20mhz", "rlc.max_retries = 4", "max_retries: unknown key; did you mean `max_retx`?"),
        ("lte-20mhz", "rlc = { mode = \"unacknowledged\", poll_pdu = 4 }", "poll_pdu: unknown key"),
    ];
    for (preset, keys, expected) in cases {
        let error = error_over(preset, keys);
        let (at, message) = error.split_once("rlc.").unwrap_or_default();
        assert!(at.starts_with("s.toml:4: bearer.") && message.starts_with(expected), "{keys}: {error}");
    }
    let text = GOOD.replace("preset = \"umts-dch-384\"", "preset = \"lte-20mhz\"\nrlc = 4");
    let error = read(&text).expect_err("no table").to_string();
    assert!(error.starts_with("s.toml:10: bearer.rlc: invalid type: integer `4`, expected a table"), "{error}");
    assert!(error.contains("mode, t_poll_retransmit"), "{error}");
}

#[test]
fn a_key_of_an_adaptation_is_named_with_its_line() {
    let cases = [
        ("{ algorithm = \"rate\", samples = \"x\" }", ".samples: invalid type: string \"x\", expected a whole number"),
        ("{ algorithm = \"rate\", sample = 3 }", ".sample: unknown key; did you mean `samples`?"),
        ("{ algorithm = \"bba\", gamma_p = 3 }", ".gamma_p: unknown key; known here: algorithm, reservoir, cushion"),
        ("{ algorithm = \"bba\", cushion = 3 }", ".cushion: invalid type: integer `3`, expected a length of time"),
        ("{ algorithm = \"bola\", gamma_p = 0 }", ".gamma_p: it is above 0"),
        ("{ algorithm = \"bole\" }", ".algorithm: `bole` is not known; did you mean `bola`?"),
        ("{ samples = 3 }", ".algorithm: this key is missing"),
        ("\"bola\"", ": invalid type: string \"bola\", expected a table; set its keys, as in"),
    ];
    let text = "format = 1\n[bearer]\npreset = \"gprs-3+1\"\n[[flow]]\nkind = \"adaptive\"\nadaptation = ";
    for (adaptation, expected) in cases {
        let error = read(&format!("{text}{adaptation}")).expect_err(adaptation).to_string();
        assert!(error.starts_with(&format!("s.toml:6: flow.0.adaptation{expected}")), "{adaptation}: {error}");
    }
}

/// Each key of the presets of these models, with a value that has the type of none.
#[test]
fn each_key_of_a_wrong_type_is_named_with_its_line() {
    let presets =
        ["lte-10mhz-volte", "lte-cat-m1-psm", "nr-n41-100mhz", "nr-n78-100mhz-nsa", "nb-iot-psm", "hspa-plus-42"];
    for preset in presets {
        let file = format!("{}/../../presets/{preset}.toml", env!("CARGO_MANIFEST_DIR"));
        let table: toml::Table = std::fs::read_to_string(file).expect("a preset").parse().expect("TOML");
        let mut keys = Vec::new();
        leaves(&table["bearer"], String::new(), &mut keys);
        assert!(keys.len() > 30, "{preset}");
        for key in keys.iter().filter(|key| !["model", "preset"].contains(&key.rsplit('.').next().unwrap_or_default()))
        {
            let error = error_over(preset, &format!("{key} = [[{{ a = 1 }}]]"));
            assert!(error.starts_with(&format!("s.toml:4: bearer.{key}")), "{preset}: {error}");
        }
    }
}

/// Each key of the resolved examples: of flows, mobiles, changes and of the hops of the path.
#[test]
fn each_key_of_an_example_of_a_wrong_type_is_named_with_its_line() {
    let folder = format!("{}/../../examples", env!("CARGO_MANIFEST_DIR"));
    let read = |text: &str| Scenario::read(text, "s.toml", Path::new(&folder), &[]);
    let mut examples = 0;
    for entry in std::fs::read_dir(&folder).expect("examples") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        examples += 1;
        let text = std::fs::read_to_string(&path).expect("an example");
        let resolved: toml::Value = toml::from_str(&read(&text).expect("good").to_toml()).expect("TOML");
        let mut keys = Vec::new();
        leaves(&resolved, String::new(), &mut keys);
        for key in keys {
            let mut wrong = resolved.clone();
            *at(&mut wrong, &key) = toml::Value::Array(vec![toml::Value::Array(vec![toml::Table::new().into()])]);
            let error = read(&toml::to_string(&wrong).expect("TOML")).map(drop).expect_err(&key).to_string();
            let (place, rest) = error.split_once(": ").unwrap_or_default();
            assert!(place.starts_with("s.toml:") && rest.starts_with(&key), "{}: {key}: {error}", path.display());
        }
    }
    assert!(examples > 15, "{examples}");
}

/// The value at a dotted path of keys and numbers of elements.
fn at<'a>(value: &'a mut toml::Value, path: &str) -> &'a mut toml::Value {
    path.split('.').fold(value, |value, key| match value {
        toml::Value::Array(elements) => &mut elements[key.parse::<usize>().expect("a number")],
        table => &mut table[key],
    })
}

/// The dotted keys of a table that are no tables, also in lists of tables.
fn leaves(value: &toml::Value, path: String, keys: &mut Vec<String>) {
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        toml::Value::Table(table) => table.iter().for_each(|(key, value)| leaves(value, join(key), keys)),
        toml::Value::Array(elements) if elements.iter().any(toml::Value::is_table) => {
            elements.iter().enumerate().for_each(|(index, value)| leaves(value, join(&index.to_string()), keys));
        }
        _ => keys.push(path),
    }
}

#[test]
fn a_key_of_another_cell_is_not_a_key_of_the_fixed_network() {
    let error = error_over("lte-cat-m1", "cell.bandwidth = \"20 MHz\"");
    let expected = "s.toml:4: bearer.cell.bandwidth: unknown key; known here: control_symbols, control_blocks";
    assert!(error.starts_with(expected), "{error}");
    let error = error_over("nr-n78-100mhz-nsa", "master.conditions.environment = \"walking\"");
    assert!(error.contains("did you mean `bearer.conditions.environment`?"), "{error}");
}

#[test]
fn an_error_of_two_keys_is_reported_at_that_of_the_user() {
    let cases = [
        (
            "lte-tdd-20mhz",
            "cell.tdd.configuration = 0",
            "s.toml:4: bearer.harq.processes: this must be 1 to 4 (with `cell.tdd.configuration = 0`, TS 36.213 Table 7-1)",
        ),
        (
            "nr-n78-100mhz-sa",
            "cell.bandwidth = \"20 MHz\"\ncell.spacing = \"15 kHz\"",
            "s.toml:5: bearer.cell.processing: this must be whole slots of 1 ms with `cell.spacing = \"15 kHz\"`",
        ),
        (
            "nr-n41-100mhz",
            "cell.tdd.pattern = \"DDDDD\"",
            "s.toml:4: bearer.cell.tdd.pattern: this must be a pattern with a U slot",
        ),
        (
            "lte-20mhz",
            "rrc.inactivity = \"150 ms\"",
            "s.toml:4: bearer.drx.inactivity: this must be shorter than `rrc.inactivity`",
        ),
        (
            "nr-n78-100mhz-nsa",
            "master.rrc.inactivity = \"150 ms\"",
            "s.toml:4: bearer.master.drx.inactivity: this must be shorter than `rrc.inactivity`",
        ),
        (
            "lte-20mhz",
            "rlc.t_poll_retransmit = \"45 ms\"",
            "s.toml:4: bearer.rlc.t_status_prohibit: this must be at most `rlc.t_poll_retransmit`",
        ),
    ];
    for (preset, keys, expected) in cases {
        let error = error_over(preset, keys);
        assert!(error.starts_with(expected), "{error}");
    }
    let set = [("bearer.cell.tdd.configuration".to_owned(), "0".to_owned())];
    let error = Scenario::read(&over("lte-tdd-20mhz", ""), "s.toml", Path::new(""), &set).expect_err("8 processes");
    assert!(
        error.to_string().starts_with("override bearer.cell.tdd.configuration=0: bearer.harq.processes"),
        "{error}"
    );
}

#[test]
fn keys_that_the_congestion_control_does_not_have_are_refused() {
    let tcp = |keys: &str| {
        let text = format!("{}[tcp]\n{keys}", over("wired", ""));
        read(&text).map(|scenario| scenario.to_toml()).map_err(|error| error.to_string())
    };
    for (key, having) in [
        ("congestion.hystart = \"off\"", "\"cubic\""),
        ("congestion.fixed_window = 7", "\"fixed\""),
        ("congestion.update_interval = \"7 ms\"", "\"cubic\""),
        ("congestion.bbr3_constants = \"draft-06\"", "\"bbr3\""),
        ("congestion.least_window = 1", "\"new-reno\", \"westwood+\", \"vegas\""),
    ] {
        let error = tcp(&format!("congestion.algorithm = \"bbr\"\n{key}")).expect_err(key);
        let path = key.split(' ').next().expect("a key");
        assert!(error.contains(&format!("tcp.{path}: the algorithm \"bbr\"")) && error.contains(having), "{error}");
    }
    // The profile has the same value, which is no error in a file.
    tcp("congestion.algorithm = \"bbr\"\npacing = false").expect("the value of the profile");
    let set = ["congestion.algorithm=bbr", "pacing=false", "congestion.hystart=linux"];
    let set = set.map(|text| text.split_once('=').expect("a value"));
    for (key, value) in &set[1..] {
        let sets = [set[0], (key, value)].map(|(key, value)| (format!("tcp.{key}"), value.to_owned()));
        let error = Scenario::read(&over("wired", ""), "s.toml", Path::new(""), &sets).map(drop).expect_err(key);
        assert!(error.to_string().contains(&format!("tcp.{key}: the algorithm \"bbr\"")), "{error}");
    }
    let error = tcp("congestion.fixed_window = 7").expect_err("the profile has CUBIC");
    assert!(error.contains("the algorithm \"cubic\" does not have this key"), "{error}");
    tcp("congestion.algorithm = \"reno\"\ncongestion.least_window = 1").expect("a key of NewReno");
    // Values of the profile are in each resolved scenario.
    let resolved = tcp("congestion = \"bbr\"").expect("an algorithm");
    assert_eq!(read(&resolved).expect("it was resolved").to_toml(), resolved);
}

#[test]
fn a_file_with_keys_of_one_congestion_control_can_be_run_with_another() {
    let text = format!("{}[tcp]\ncongestion.hystart = \"off\"\npacing = false\n", over("wired", ""));
    let read = |set: &[(&str, &str)]| {
        let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Scenario::read(&text, "s.toml", Path::new(""), &set).map(|scenario| scenario.to_toml())
    };
    let resolved = read(&[("tcp.congestion.algorithm", "bbr")]).expect("keys of the file");
    let again = Scenario::read(&resolved, "s.toml", Path::new(""), &[]).expect("it was resolved").to_toml();
    assert_eq!(again, resolved);
    let error = read(&[("tcp.congestion.algorithm", "bbr"), ("tcp.congestion.hystart", "linux")]);
    let error = error.expect_err("both were set").to_string();
    assert!(error.starts_with("override tcp.congestion.hystart=linux: tcp.congestion.hystart"), "{error}");
    let own = text.replace("bytes = \"100 kB\"\n", "bytes = \"100 kB\"\ntcp.congestion = \"bbr\"\n");
    Scenario::read(&own, "s.toml", Path::new(""), &[]).expect("other flows may use the keys of all");
}
