//! Effects of commands on packets inside, calculated by hand.

use crate::common::arrival;
use airpath_core::{Bitrate, ComponentId, Context, DropCause, Instant, Probability, Seed, Span};
use airpath_link::command::Buffer;
use airpath_link::delay::Distribution;
use airpath_link::loss::{GilbertElliott, Loss};
use airpath_link::testing::{Commanded, OneWay, Outcome, Polling, Script, drive};
use airpath_link::{Bearer, BearerCommand, Chain, Change, CommandError, Config, Link, Pipe, duplex};

const HORIZON: Instant = Instant::from_nanos(60_000_000_000);

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// A link with 10 ms of transmission for 1250 bytes, and 5 ms of propagation; `more` adds settings.
fn link(more: &str) -> Pipe {
    let config: Config = toml::from_str(&format!("rate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n{more}")).expect("sound");
    Pipe::new(&config, Seed::new(1), "link").expect("sound")
}

/// Departure times of ten packets of 1250 bytes that arrive at 0 ms, with commands at these times.
fn run(link: Pipe, commands: &[(u64, &str)]) -> (Vec<u64>, Outcome) {
    let arrivals: Vec<_> = (0..10).map(|id| arrival(id, Instant::ZERO, 1250)).collect();
    let commands: Vec<_> = commands
        .iter()
        .map(|(at, text)| Commanded { at: ms(*at), command: toml::from_str(text).expect("a command") })
        .collect();
    let outcome =
        drive(&mut OneWay(link), Script { arrivals: &arrivals, commands: &commands }, Polling::OnTime, HORIZON);
    assert!(outcome.answers.iter().all(Result::is_ok), "{:?}", outcome.answers);
    (outcome.departures.iter().map(|(_, departure)| departure.due.as_nanos() / 1_000_000).collect(), outcome)
}

#[test]
fn an_outage_stops_the_transmission_and_lets_it_go_on() {
    // At 24 ms the third packet has 6 ms to go: it is out at 24 + 100 + 6 ms.
    let (left, _) = run(link(""), &[(24, "outage = \"100 ms\"")]);
    assert_eq!(left, [15, 25, 135, 145, 155, 165, 175, 185, 195, 205]);
    // An outage within another: the later end counts.
    let (left, _) =
        run(link(""), &[(24, "outage = \"100 ms\""), (30, "outage = \"50 ms\""), (90, "outage = \"60 ms\"")]);
    assert_eq!(left[..4], [15, 25, 161, 171]);
}

#[test]
fn an_outage_keeps_the_limits_of_the_queue() {
    let arrivals: Vec<_> = (0..6).map(|id| arrival(id, ms(10), 1250)).collect();
    let commands = [Commanded { at: ms(5), command: Change::Outage(Span::from_millis(100)).into() }];
    let mut bearer = OneWay(link("queue = { packets = 4 }"));
    let outcome = drive(&mut bearer, Script { arrivals: &arrivals, commands: &commands }, Polling::OnTime, HORIZON);
    // Nothing is in transmission, so four wait and two do not fit.
    assert_eq!(outcome.lost(DropCause::QueueFull).packets, 2);
    assert_eq!(outcome.departures.first().map(|(_, departure)| departure.due), Some(ms(120)));
}

#[test]
fn a_handover_keeps_the_buffer_or_discards_it() {
    let (kept, _) = run(link(""), &[(24, "handover = \"100 ms\"")]);
    assert_eq!(kept, run(link(""), &[(24, "outage = \"100 ms\"")]).0);
    let (left, outcome) = run(link(""), &[(24, "handover = \"100 ms\"\nbuffer = \"discard\"")]);
    assert_eq!(left, [15, 25], "the second is in flight by then");
    assert_eq!(outcome.lost(DropCause::Handover).packets, 8);
    assert!(outcome.drops.iter().all(|lost| lost.time == ms(24)));
    let codel = "queue = { discipline = \"codel\", target = \"10 s\" }";
    let (left, outcome) = run(link(codel), &[(24, "handover = \"100 ms\"\nbuffer = \"discard\"")]);
    assert_eq!((left, outcome.lost(DropCause::Handover).packets), (vec![15, 25], 8));
}

#[test]
fn a_new_rate_holds_for_the_rest_of_a_packet() {
    // At 24 ms 6 of 10 ms are left, which take 12 ms at half the rate, and the others 20 ms each.
    let (left, _) = run(link(""), &[(24, "rate = \"500 kbit/s\"")]);
    assert_eq!(left, [15, 25, 41, 61, 81, 101, 121, 141, 161, 181]);
}

#[test]
fn a_new_delay_and_loss_hold_for_what_is_not_completely_sent() {
    let (left, _) = run(link(""), &[(24, "delay = \"50 ms\"")]);
    assert_eq!(left, [15, 25, 80, 90, 100, 110, 120, 130, 140, 150]);
    // Nothing overtakes: what is out at 30 ms, with the longer delay, arrives at 80.
    let (left, _) = run(link(""), &[(24, "delay = \"50 ms\""), (34, "delay = \"1 ms\"")]);
    assert_eq!(left, [15, 25, 80, 80, 80, 80, 80, 81, 91, 101]);
    let (left, outcome) = run(link(""), &[(24, "loss = 1.0")]);
    assert_eq!((left, outcome.lost(DropCause::Loss).packets), (vec![15, 25], 8));
    assert_eq!(outcome.drops[0].time, ms(30), "a packet is lost when its last bit is out");
}

#[test]
fn what_cannot_be_done_is_refused_and_changes_nothing() {
    let config = Config::default();
    let bearer = duplex(&config, &config, Seed::new(1), "fixed").expect("sound");
    let command = |text: &str| toml::from_str::<BearerCommand>(text).expect("a command");
    let error = bearer.check(&command("bler = 0.1")).expect_err("no radio");
    assert_eq!(error.field(), "bler");
    assert_eq!(error.to_string(), "a plain link has no `bler` to change: it has a `loss`");
    let chain = OneWay(Chain::new(vec![link(""), link("")]));
    assert!(matches!(chain.check(&command("rate = \"1 kbit/s\"")), Err(CommandError::Foreign { key: "rate", .. })));
    assert_eq!(chain.check(&command("outage = \"1 s\"")), Ok(()));
}

#[test]
fn a_command_to_one_link_of_a_chain_leaves_the_others() {
    let arrives = |index: usize, change: Change| {
        let mut chain = Chain::new(vec![link(""), link("")]);
        let mut lost = Vec::new();
        let mut cx = Context::new(None, &mut lost, ComponentId(0));
        chain.push(Instant::ZERO, arrival(0, Instant::ZERO, 1250).packet, &mut cx);
        let answer = chain.command_link(index, ms(1), &change, &mut cx);
        let departure = chain.pop(HORIZON, &mut cx).expect("it is inside");
        (answer.map_err(|error| error.field()), departure.due)
    };
    // 10 ms of transmission and 5 of propagation, twice. The first link has 9 ms left to send.
    let half = || Change::Rate(Bitrate::from_bps(500_000));
    assert_eq!(arrives(0, half()), (Ok(()), ms(1 + 18 + 5 + 10 + 5)));
    assert_eq!(arrives(1, half()), (Ok(()), ms(10 + 5 + 20 + 5)));
    assert_eq!(arrives(1, Change::Bler(Probability::ALWAYS)), (Err("bler"), ms(30)));
}

#[test]
fn a_change_is_checked_by_itself() {
    let p = |p| Probability::new(p).expect("a probability");
    let burst = |leave| {
        Change::Loss(Loss::GilbertElliott(GilbertElliott {
            good_to_bad: p(0.1),
            bad_to_good: p(leave),
            loss_in_bad: p(1.0),
            loss_in_good: p(0.0),
        }))
    };
    let pareto = |mean| {
        let minimum = Span::from_millis(5);
        Change::Delay(Distribution::Pareto { mean: Span::from_millis(mean), minimum }.into())
    };
    let day = Span::from_secs(24 * 3600);
    let nanosecond = Span::from_nanos(1);
    let handover = |gap| Change::Handover { gap, buffer: Buffer::Keep };
    for (accepted, refused, key) in [
        (burst(0.2), burst(0.0), "loss"),
        (pareto(6), pareto(5), "delay"),
        (Change::Channels(1), Change::Channels(0), "channels"),
        (Change::Outage(day), Change::Outage(day + nanosecond), "outage"),
        (handover(day), handover(day + nanosecond), "handover"),
    ] {
        assert_eq!(accepted.check(), Ok(()));
        assert_eq!(refused.check().expect_err(key).field(), key);
    }
}

#[test]
fn the_written_form_reads_back() {
    for text in [
        r#"{"outage":"3 s"}"#,
        r#"{"handover":"350 ms","buffer":"discard","direction":"down"}"#,
        r#"{"rate":"128 kbit/s","direction":"up"}"#,
        r#"{"loss":0.02}"#,
        r#"{"delay":"80 ms"}"#,
        r#"{"bler":0.3}"#,
        r#"{"channels":4}"#,
        r#"{"level":2}"#,
        r#"{"class":"far"}"#,
        r#"{"ci":"-1.5 dB"}"#,
        r#"{"environment":"driving"}"#,
    ] {
        let command: BearerCommand = serde_json::from_str(text).expect(text);
        assert_eq!(command.to_json(), text);
    }
}
