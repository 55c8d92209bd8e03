//! Which changes of conditions a bearer supports, and their effects on the channels of the study.

use crate::common::{cell, cell_abc, dch, dch_384, hs_dsch_384, paced};
use airpath_core::{Direction, DropCause, Instant, Seed, Span, UserId};
use airpath_link::command::{BearerCommand, CommandError};
use airpath_link::testing::{Commanded, Outcome, Polling, Script, drive};
use airpath_link::{Bearer, Change};
use airpath_radio::Models;

const HORIZON: Instant = Instant::from_nanos(100_000_000_000);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

fn command(text: &str) -> BearerCommand {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The bearer of a preset with two mobiles.
fn preset(name: &str) -> Box<dyn Bearer> {
    let file = format!("{}/../../presets/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut bearer = text.parse::<toml::Table>().expect("toml").remove("bearer").expect("a bearer");
    let parameters = bearer.as_table_mut().expect("a table");
    let model = parameters.remove("model").expect("a model");
    if matches!(model.as_str(), Some("gprs" | "gsm-csd")) {
        parameters.insert("conditions".to_owned(), toml::from_str("ci = \"40 dB\"").expect("toml"));
    }
    if let Some(call) = parameters.get_mut("call").and_then(toml::Value::as_table_mut) {
        call.insert("set_up".to_owned(), "0 s".into());
    }
    let classes = if name.ends_with("abc") { [Some("a".to_owned()), Some("b".to_owned())] } else { [None, None] };
    let models = Models::shipped();
    let entry = models.get(model.as_str().expect("a name")).expect(name);
    entry.read(bearer).expect(name).build(&classes, Seed::new(1), "cell").expect(name)
}

const BEARERS: [&str; 8] = [
    "umts-dch-384",
    "hs-dsch-384",
    "hs-dsch-classes-abc",
    "gsm-csd-9600",
    "gprs-3+1",
    "umts-r99-384",
    "hsdpa-cat6",
    "hspa-plus-42",
];

#[test]
fn each_bearer_supports_its_changes_and_no_others() {
    let bearers = BEARERS.map(preset);
    for (text, supported) in [
        ("outage = \"1 s\"", "yyyyyyyy"),
        ("handover = \"1 s\"", "yyyyyyyy"),
        ("handover = \"1 s\"\nbuffer = \"discard\"", "yyynyyyy"),
        ("bler = 0.5", "yyyyyyyy"),
        ("loss = 0.5", "nnnnnnnn"),
        ("delay = \"50 ms\"", "yyynyyyy"),
        ("delay = { distribution = \"exponential\", mean = \"50 ms\" }\ndirection = \"down\"", "nnnnnnnn"),
        ("rate = \"200 kbit/s\"\ndirection = \"down\"", "yynnnynn"),
        ("rate = \"100 bit/s\"\ndirection = \"down\"", "nnnnnnnn"),
        ("channels = 1", "yynynynn"),
        ("level = 1", "nnynnnnn"),
        ("level = 6", "nnnnnnnn"),
        ("class = \"b\"", "nnynnnnn"),
        ("class = \"z\"", "nnnnnnnn"),
        ("ci = \"3 dB\"", "nnnyyyyy"),
        ("environment = \"nowhere\"", "nnnnnnnn"),
    ] {
        let command = command(text);
        for ((name, bearer), supported) in BEARERS.iter().zip(&bearers).zip(supported.chars()) {
            let checked = bearer.check(&command);
            assert_eq!(checked.is_ok(), supported == 'y', "{name}: {text}: {checked:?}");
            if let Err(error) = checked {
                assert_eq!(error.field(), command.change.kind().name(), "{name}: {error}");
            }
            let of = |user| bearer.check(&BearerCommand { user: Some(UserId::new(user)), ..command.clone() });
            assert_eq!(of(1).is_ok(), supported == 'y', "{name}: {text}");
            assert_eq!(of(2), Err(CommandError::NoSuchUser { user: 2, users: 2 }), "{name}: {text}");
        }
    }
}

/// A packet of 100 bytes in each 200 ms and direction, for 20 s, under a command at 10 s.
fn both_directions(name: &str, command: Option<BearerCommand>) -> Outcome {
    let mut arrivals = paced(200, Span::from_millis(500), Span::from_millis(100), 100);
    arrivals.iter_mut().skip(1).step_by(2).for_each(|arrival| arrival.direction = Direction::Up);
    let commands: Vec<_> = command.into_iter().map(|command| Commanded { at: at(10_000), command }).collect();
    let script = Script { arrivals: &arrivals, commands: &commands };
    let outcome = drive(&mut preset(name), script, Polling::OnTime, HORIZON);
    assert!(outcome.answers.iter().all(Result::is_ok), "{name}: {:?}", outcome.answers);
    outcome
}

/// Packets that left in a direction between two times in milliseconds.
fn departures(outcome: &Outcome, direction: Direction, from: u64, to: u64) -> usize {
    let within = |due: Instant| at(from) < due && due <= at(to);
    outcome.departures.iter().filter(|(of, departure)| *of == direction && within(departure.due)).count()
}

#[test]
fn an_interruption_delays_packets_and_loses_none() {
    for name in BEARERS {
        let plain = both_directions(name, None);
        for change in ["outage = \"1 s\"", "handover = \"1 s\""] {
            let outcome = both_directions(name, Some(command(change)));
            assert_eq!(outcome.departures.len(), 200, "{name}: {change}");
            for direction in Direction::BOTH {
                let found = |outcome, from, to| departures(outcome, direction, from, to);
                assert_eq!(found(&outcome, 0, 9_999), found(&plain, 0, 9_999), "{name}: {change}, {direction:?}");
                // What was sent before arrives within half a second.
                assert_eq!(found(&outcome, 10_500, 11_000), 0, "{name}: {change}, {direction:?}");
                assert!(found(&plain, 10_500, 11_000) > 0, "{name}: {direction:?}");
                assert!(found(&outcome, 11_000, 13_000) > 9, "{name}: {change}, {direction:?}");
            }
        }
    }
}

#[test]
fn an_interruption_of_one_direction_leaves_the_other() {
    // In GPRS, blocks of one direction are assigned and acknowledged in the other.
    for name in BEARERS.into_iter().filter(|name| *name != "gprs-3+1") {
        for direction in Direction::BOTH {
            let outage = BearerCommand { direction: Some(direction), ..command("outage = \"1 s\"") };
            if preset(name).check(&outage).is_err() {
                continue;
            }
            let outcome = both_directions(name, Some(outage));
            assert_eq!(departures(&outcome, direction, 10_500, 11_000), 0, "{name}: {direction:?}");
            let other = if direction == Direction::Down { Direction::Up } else { Direction::Down };
            assert!(departures(&outcome, other, 10_500, 11_000) > 0, "{name}: {direction:?}");
        }
    }
}

#[test]
fn a_hopeless_channel_delivers_nothing() {
    for name in BEARERS {
        for direction in Direction::BOTH {
            let hopeless = BearerCommand { direction: Some(direction), ..command("bler = 1.0") };
            if preset(name).check(&hopeless).is_err() {
                continue;
            }
            let outcome = both_directions(name, Some(hopeless));
            assert!(departures(&outcome, direction, 0, 10_000) >= 30, "{name}: {direction:?}");
            assert_eq!(departures(&outcome, direction, 10_500, 100_000), 0, "{name}: {direction:?}");
        }
    }
}

#[test]
fn a_new_delay_shifts_the_packets_of_its_direction() {
    for name in BEARERS {
        for direction in Direction::BOTH {
            let longer = BearerCommand { direction: Some(direction), ..command("delay = \"1 s\"") };
            if preset(name).check(&longer).is_err() {
                continue;
            }
            let outcome = both_directions(name, Some(longer));
            let late = |direction| departures(&outcome, direction, 10_500, 11_000) == 0;
            assert!(late(direction), "{name}: {direction:?}");
            assert!(departures(&outcome, direction, 11_000, 13_000) > 5, "{name}: {direction:?}");
        }
    }
}

/// A packet of 960 bytes in each 100 ms, down to user 0 from 10 ms on, under these commands.
fn run(mut bearer: impl Bearer, commands: &[(u64, BearerCommand)]) -> Outcome {
    let arrivals = paced(20, Span::from_millis(10), Span::from_millis(100), 960);
    let commands: Vec<_> =
        commands.iter().map(|(time, command)| Commanded { at: at(*time), command: command.clone() }).collect();
    let script = Script { arrivals: &arrivals, commands: &commands };
    let outcome = drive(&mut bearer, script, Polling::OnTime, HORIZON);
    assert!(outcome.answers.iter().all(Result::is_ok), "{:?}", outcome.answers);
    outcome
}

/// The time inside of each packet that left, in milliseconds.
fn delays(outcome: &Outcome) -> Vec<u64> {
    let inside = |id: u64, due: Instant| due.since(at(10 + 100 * id)).as_nanos() / 1_000_000;
    outcome.departures.iter().map(|(_, departure)| inside(departure.packet.id, departure.due)).collect()
}

#[test]
fn a_new_rate_delay_or_error_rate_holds_from_the_next_tti() {
    let down = |text: &str| command(&format!("{text}\ndirection = \"down\""));
    // 960 bytes are 24 PDUs of 40 bytes: two TTIs of 12, from the next one on, and 20 ms.
    let plain = delays(&run(dch(&dch_384(""), 1), &[]));
    assert_eq!(plain, [50; 20]);
    let changed = |change: &str| {
        let delays = delays(&run(dch(&dch_384(""), 1), &[(1005, down(change))]));
        assert_eq!(delays[..10], [50; 10]);
        assert!(delays[10..].iter().all(|delay| *delay == delays[10]), "{delays:?}");
        delays[10]
    };
    assert_eq!(changed("delay = \"55 ms\""), 50 + 35);
    assert_eq!(changed("channels = 6"), 50 + 20);
    assert_eq!(changed("rate = \"192 kbit/s\""), 50 + 20);
    assert_eq!(changed("rate = \"223 kbit/s\""), 50 + 20, "rounded down to whole PDUs");
    assert_eq!(changed("rate = \"768 kbit/s\""), 50 - 10);
    let outcome = run(dch(&dch_384(""), 1), &[(1005, down("bler = 1.0"))]);
    assert_eq!(delays(&outcome), [50; 10]);
}

#[test]
fn a_level_or_class_sets_the_rate_of_its_users() {
    // 960 bytes are 32 PDUs of 30 bytes; the five levels carry 3, 6, 9, 12 and 16 for each of three
    // users.
    const LEVELS: &str = r#"
        levels.rates = ["120 kbit/s", "240 kbit/s", "360 kbit/s", "480 kbit/s", "640 kbit/s"]
        levels.rate_share = "per-user"
        levels.classes = { steady = [0, 0, 0, 0, 1], a = [9, 60, 24, 5, 2] }
    "#;
    let delay = |text: &str, user: Option<u16>| {
        let command = BearerCommand { user: user.map(|user: u16| UserId::new(user.into())), ..command(text) };
        let bearer = cell(&cell_abc(LEVELS), &[Some("steady"); 3]);
        let delays = delays(&run(bearer, &[(1005, command)]));
        assert_eq!(delays[..10], [2 + 2 * 2 + 20; 10], "two TTIs of 16, of 2 ms");
        delays[10]
    };
    for (level, ttis) in [(1, 11), (2, 6), (3, 4), (4, 3), (5, 2)] {
        assert_eq!(delay(&format!("level = {level}"), None), 2 + 2 * ttis + 20);
        assert_eq!(delay(&format!("level = {level}"), Some(0)), 2 + 2 * ttis + 20);
        assert_eq!(delay(&format!("level = {level}"), Some(1)), 2 + 2 * 2 + 20, "another user's");
    }
    assert!(delay("class = \"a\"", None) > 26);
}

#[test]
fn an_interruption_holds_back_its_user_and_no_other() {
    let make = || cell(&hs_dsch_384(""), &[None; 2]);
    let plain = delays(&run(make(), &[]));
    let with = |change: &str, user: Option<u16>| {
        let command = BearerCommand { user: user.map(|user: u16| UserId::new(user.into())), ..command(change) };
        run(make(), &[(1005, command)])
    };
    assert_eq!(delays(&with("outage = \"1 s\"", Some(1))), plain, "another user's");
    for change in ["outage = \"250 ms\"", "handover = \"250 ms\""] {
        for user in [None, Some(0)] {
            let found = delays(&with(change, user));
            assert_eq!((found.len(), &found[..10]), (20, &plain[..10]));
            // Until 1255 ms; the packets of 1010, 1110 and 1210 ms follow each other from then on.
            let (first, transmission) = (1256 - 1010, plain[0] - 2);
            assert_eq!(found[10], first + transmission, "{change}, {user:?}");
            assert_eq!(found[14..], plain[14..], "{change}, {user:?}");
        }
    }
    // An interruption within another ends with the later of the two.
    let twice = |second: &str| {
        let of_user = |text: &str| BearerCommand { user: Some(UserId::new(0)), ..command(text) };
        delays(&run(make(), &[(1005, of_user("outage = \"250 ms\"")), (1105, of_user(second))]))
    };
    assert_eq!(twice("outage = \"50 ms\""), delays(&with("outage = \"250 ms\"", Some(0))));
    assert_eq!(twice("outage = \"250 ms\"")[10], 1356 - 1010 + plain[0] - 2);
}

#[test]
fn a_handover_may_discard_what_its_user_has_not_sent() {
    let lost = |text: &str, user: Option<u16>| {
        // At 1015 ms the packet of 1010 ms is sent in part.
        let command = BearerCommand { user: user.map(|user: u16| UserId::new(user.into())), ..command(text) };
        let outcome = run(cell(&hs_dsch_384(""), &[None; 2]), &[(1015, command)]);
        assert!(outcome.drops.iter().all(|lost| (lost.time, lost.cause) == (at(1015), DropCause::Handover)));
        outcome.drops.iter().map(|lost| lost.packet.id).collect::<Vec<_>>()
    };
    let discard = "handover = \"10 ms\"\nbuffer = \"discard\"";
    assert_eq!(lost(discard, None), [10]);
    assert_eq!(lost(discard, Some(0)), [10]);
    assert_eq!(lost(discard, Some(1)), [0; 0]);
    assert_eq!(lost("handover = \"10 ms\"", None), [0; 0]);
    assert_eq!(lost(&format!("{discard}\ndirection = \"up\""), None), [0; 0]);
}

#[test]
fn a_refused_command_changes_nothing() {
    let mut bearer = dch(&dch_384(""), 1);
    let arrivals = paced(20, Span::from_millis(10), Span::from_millis(100), 960);
    let refused = ["rate = \"1 bit/s\"", "channels = 70000", "level = 1", "loss = 0.5"];
    let commands: Vec<_> = refused
        .iter()
        .map(|text| {
            let direction = Some(Direction::Down);
            Commanded { at: at(5), command: BearerCommand { direction, ..command(text) } }
        })
        .chain([Commanded { at: at(5), command: Change::Outage(Span::from_secs(90_000)).into() }])
        .collect();
    let script = Script { arrivals: &arrivals, commands: &commands };
    let outcome = drive(&mut bearer, script, Polling::OnTime, HORIZON);
    assert!(outcome.answers.iter().all(Result::is_err), "{:?}", outcome.answers);
    assert_eq!(delays(&outcome), [50; 20]);
}
