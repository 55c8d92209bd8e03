//! Circuit-switched data against arithmetic.

use crate::common::{csd_9600, overlay, paced, saturate};
use airpath_core::{
    Aspect, ComponentId, Context, Direction, DropCause, Event, Instant, Memory, Span, StateValue, UserId,
};
use airpath_link::Bearer;
use airpath_link::command::{BearerCommand, Buffer, Change};
use airpath_link::testing::{Commanded, Polling, Script, drive};
use airpath_radio::gsm::csd::GsmCsd;

const HORIZON: Instant = Instant::from_nanos(10_000_000_000_000);

/// The preset gsm-csd-9600 with the keys of `more`, without errors unless those add some.
fn call(more: &str) -> GsmCsd {
    let config = csd_9600(&more.parse().expect("toml")).try_into().expect("sound parameters");
    GsmCsd::new(&config, 1, airpath_core::Seed::new(1), "cell").expect("sound parameters")
}

/// The same without the fixed link, and without the overhead of PPP.
fn radio_link(more: &str) -> GsmCsd {
    let mut table = csd_9600(&more.parse().expect("toml"));
    table.remove("modem");
    table.insert("ppp".to_owned(), toml::from_str::<toml::Value>("overhead = \"0 B\"").expect("toml"));
    GsmCsd::new(&table.try_into().expect("sound parameters"), 1, airpath_core::Seed::new(1), "cell").expect("sound")
}

fn goodput(mut bearer: GsmCsd, time: Span) -> f64 {
    saturate(&mut bearer, 1, time).bytes[0] as f64 / time.as_secs_f64()
}

#[test]
fn the_radio_link_carries_24_octets_in_20_ms() {
    let time = Span::from_secs(10_000);
    let bytes = goodput(radio_link(""), time);
    assert!((bytes - 1200.0).abs() < 1.0, "{bytes}");
    let fast = "radio.channel = \"tch-f14.4\"\nradio.acknowledgement_timer = \"520 ms\"";
    let bytes = goodput(radio_link(fast), time);
    // (576 − 16 − 24)/8 − 1 octets in 40 ms.
    assert!((bytes - 66.0 / 0.040).abs() < 1.0, "{bytes}");
    // Three channels, with a longer header.
    let bytes = goodput(radio_link(&format!("{fast}\nradio.slots = 3\nradio.window = 240")), time);
    assert!((bytes - 3.0 * 65.0 / 0.040).abs() < 3.0, "{bytes}");
}

#[test]
fn selective_repetition_loses_what_is_in_error_and_no_more() {
    let time = Span::from_secs(20_000);
    for p in [0.01, 0.03, 0.05] {
        let bytes = goodput(radio_link(&format!("radio.frame_errors = {p}")), time);
        // A million frames. A frame that was sent again in vain is requested after T1, and the
        // window is full if that happens twice: too rarely to be seen here, but a twentieth of the
        // throughput at 10 %.
        let expected = 1200.0 * (1.0 - p);
        assert!((bytes / expected - 1.0).abs() < 0.01, "{p}: {bytes} instead of {expected}");
    }
}

#[test]
fn going_back_costs_a_round_trip_for_each_error() {
    let time = Span::from_secs(20_000);
    for p in [0.002, 0.01, 0.02] {
        let more = format!("radio.frame_errors = {p}\nradio.recovery = \"reject\"");
        let bytes = goodput(radio_link(&more), time);
        // A frame that begins at 0 is lost. The next is there at 20 + 150 ms, REJ begins at 180 and
        // is there at 330, and at 340 the lost one goes again: 17 frames. If REJ is lost it comes
        // again after T1: 24 frames more, 480 ms.
        let cost = 17.0 + 24.0 * p;
        let expected = 1200.0 * (1.0 - p) / (1.0 - p + p * cost);
        assert!((bytes / expected - 1.0).abs() < 0.02, "{p}: {bytes} instead of {expected}");
    }
}

#[test]
fn throughput_is_what_headers_leave() {
    let time = Span::from_secs(10_000);
    // V.42 is the slower link: 128 of 134 octets, and a zero in 62 bits. PPP adds 8 octets, and
    // sends 34 of 256 as two.
    let v42 = 9600.0 / 8.0 * 128.0 / 134.0 / 1.016129;
    let expected = v42 * 1500.0 / (1508.0 * (1.0 + 34.0 / 256.0));
    let bytes = goodput(call(""), time);
    assert!((bytes / expected - 1.0).abs() < 0.003, "{bytes} instead of {expected}");
    // Start and stop bits are a fifth.
    let plain = "modem = { rate = \"9600 bit/s\", error_control = \"none\", delay = \"20 ms\" }";
    let mut table = csd_9600(&toml::Table::new());
    table.remove("modem");
    table.extend(plain.parse::<toml::Table>().expect("toml"));
    let config = table.try_into().expect("sound parameters");
    let bearer = GsmCsd::new(&config, 1, airpath_core::Seed::new(1), "cell").expect("sound parameters");
    let (bytes, expected) = (goodput(bearer, time), 960.0 * 1500.0 / (1508.0 * (1.0 + 34.0 / 256.0)));
    assert!((bytes / expected - 1.0).abs() < 0.003, "{bytes} instead of {expected}");
}

#[test]
fn a_serial_interface_sends_ten_bits_for_eight() {
    let bytes = goodput(call("serial.rate = \"9600 bit/s\"\nmodem.assembly = \"20 ms\""), Span::from_secs(10_000));
    // Slower than the modems and the radio: 960 characters a second.
    let expected = 960.0 * 1500.0 / (1508.0 * (1.0 + 34.0 / 256.0));
    assert!((bytes / expected - 1.0).abs() < 0.003, "{bytes} instead of {expected}");
}

#[test]
fn compression_multiplies_the_rate_of_a_link() {
    let time = Span::from_secs(10_000);
    let plain = goodput(radio_link(""), time);
    for ratio in [1.0, 1.5, 4.0] {
        let bytes = goodput(radio_link(&format!("radio.compression = {ratio}")), time);
        assert!((bytes / plain / ratio - 1.0).abs() < 0.002, "{ratio}: {bytes} instead of {plain} times that");
    }
    // The line is the slower link, as without compression.
    let frame = 128.0 / 134.0 / 1.016129;
    let expected = 1200.0 * frame * 2.0 * 1500.0 / (1508.0 * (1.0 + 34.0 / 256.0));
    let bytes = goodput(call("modem.compression = 2.0\nradio.compression = 2.0"), time);
    assert!((bytes / expected - 1.0).abs() < 0.003, "{bytes} instead of {expected}");
    // With errors, what is lost on one link is lost in full: nothing stays behind.
    let arrivals = paced(50, Span::from_millis(1), Span::from_secs(2), 500);
    let lossy = "modem.compression = 2.5\nradio.compression = 3.5\nradio.frame_errors = 0.1";
    let run = drive(&mut call(lossy), &arrivals, Polling::OnTime, HORIZON);
    assert_eq!(run.departures.len(), 50);
}

#[test]
fn compression_needs_a_ratio_of_at_least_one_and_error_control() {
    let error = |more: &str| {
        let mut table = csd_9600(&toml::Table::new());
        let more: toml::Table = more.parse().expect("toml");
        if more["modem"].get("rate").is_some() {
            table.remove("modem");
        }
        overlay(&mut table, &more);
        let config = table.try_into().expect("a config");
        GsmCsd::new(&config, 1, airpath_core::Seed::new(1), "cell").expect_err("it makes no sense").to_string()
    };
    assert!(error("modem = {}\nradio.compression = 0.5").contains("1 to 100"));
    assert!(error("modem.compression = nan").contains("1 to 100"));
    let plain = "modem = { rate = \"9600 bit/s\", error_control = \"none\", delay = \"20 ms\", compression = 2.0 }";
    assert!(error(plain).contains("error_control = \"v42\""), "{}", error(plain));
}

#[test]
fn a_modem_waits_for_what_may_fill_a_frame() {
    let due = |more: &str| {
        let mut table = csd_9600(&more.parse().expect("toml"));
        table.remove("radio");
        let config = table.try_into().expect("sound parameters");
        let mut line = GsmCsd::new(&config, 1, airpath_core::Seed::new(1), "cell").expect("sound parameters");
        let arrivals = paced(1, Span::ZERO, Span::ZERO, 84);
        drive(&mut line, &arrivals, Polling::OnTime, HORIZON).departures[0].1.due.as_secs_f64()
    };
    // 92 octets; byte stuffing makes 104 of them; six more and inserted zeros on the line; 20 ms
    // in the modems.
    let (serial, line) = (104.0 / 960.0, 110.0 / 1200.0 * 1.016129 + 0.020);
    assert!((due("") - line).abs() < 1e-6);
    assert!((due("modem.assembly = \"20 ms\"") - line - 0.020).abs() < 1e-6);
    // One after the other: the first wire, the wait, the line, the second wire.
    let all = due("serial.rate = \"9600 bit/s\"\nmodem.assembly = \"20 ms\"");
    assert!((all - 2.0 * serial - line - 0.020).abs() < 1e-6, "{all}");
}

#[test]
fn a_link_that_is_gone_for_long_is_lost_with_all_that_is_inside() {
    let outage =
        |span| Commanded { at: Instant::ZERO + Span::from_secs(5), command: BearerCommand::from(Change::Outage(span)) };
    let arrivals = paced(20, Span::from_millis(1), Span::from_secs(1), 500);
    let run = |more: &str, span| {
        let commands = [outage(span)];
        drive(&mut call(more), Script { arrivals: &arrivals, commands: &commands }, Polling::OnTime, HORIZON)
    };
    // Within 6 polls of 480 ms the link recovers, and nothing is lost.
    let short = run("", Span::from_secs(2));
    assert_eq!(short.departures.len(), 20);
    // With 6 polls and 6 SABM behind them it has given up after 6 s, and there is no other call.
    let long = run("", Span::from_secs(10));
    let lost = long.lost(DropCause::AttemptsExhausted).packets;
    assert!((10..20).contains(&lost) && long.departures.len() as u64 + lost == 20, "{lost}");
    // With the first packet that comes then there is.
    let again = run("call.dial = \"first-packet\"\ncall.set_up = \"3 s\"", Span::from_secs(10));
    let last = again.departures.last().expect("packets arrive");
    assert_eq!((last.1.packet.id, again.counters[Direction::Down as usize].queued.packets), (19, 0));
    assert!(again.departures.len() < 20);
}

#[test]
fn a_call_is_there_when_it_is_set_up() {
    let arrivals = paced(1, Span::from_millis(3), Span::ZERO, 100);
    let due = |more: &str| {
        drive(&mut call(more), &arrivals, Polling::OnTime, HORIZON).departures[0].1.due.since(Instant::ZERO)
    };
    let waited = due("call.dial = \"first-packet\"\ncall.set_up = \"20 s\"").saturating_sub(due(""));
    // As long as setting up, to within an RLP frame.
    assert!(waited.abs_diff(Span::from_secs(20)) <= Span::from_millis(20), "{waited}");
}

#[test]
fn a_link_that_is_slower_than_the_one_before_holds_it() {
    // Down the traffic channel is slower than the modems, up the modems are. Packets wait in the
    // queue, and the slower link is always busy.
    for (direction, rate, octets) in [
        (Direction::Down, "14.4 kbit/s", 1200.0),
        (Direction::Up, "4800 bit/s", 4800.0 / 8.0 * 128.0 / 134.0 / 1.016129),
    ] {
        let queue = if direction == Direction::Down { "downlink" } else { "uplink" };
        let mut bearer = call(&format!("modem.rate = \"{rate}\"\n{queue}.queue.packets = 5"));
        let mut arrivals = paced(1500, Span::from_secs(1), Span::from_millis(200), 472);
        arrivals.iter_mut().for_each(|arrival| arrival.direction = direction);
        let run = drive(&mut bearer, &arrivals, Polling::OnTime, HORIZON);
        let due = |index: usize| run.departures[index].1.due;
        let last = run.departures.len() - 1;
        // 480 octets of PPP; 34 in 256 are sent as two.
        let packet = 480.0 * (1.0 + 34.0 / 256.0) / octets;
        let time = due(last).since(due(0)).as_secs_f64() / last as f64;
        assert!((time / packet - 1.0).abs() < 0.005, "{direction:?}: {time} s instead of {packet} s");
        let delay = |index: usize| {
            let departure = run.departures[index].1;
            departure.due.since(arrivals[departure.packet.id as usize].at).as_secs_f64()
        };
        let longest = (0..=last).map(delay).fold(0.0, f64::max);
        // Five packets in the queue, and at most 1.5 kB in the links.
        assert!((5.0 * packet..5.0 * packet + 1500.0 / octets).contains(&longest), "{direction:?}: {longest} s");
    }
}

/// The modes and their times in seconds, and the handovers that were counted, with packets each
/// second and this change.
fn modes(
    mut bearer: GsmCsd,
    packets: std::ops::Range<u64>,
    change: Option<(u64, Change)>,
) -> (Vec<(f64, StateValue)>, u32) {
    let (mut log, mut lost) = (Memory::default(), Vec::new());
    let mut cx = Context::new(Some(&mut log), &mut lost, ComponentId(0));
    let at = |second| Instant::ZERO + Span::from_secs(second);
    for second in 0..100 {
        while bearer.pop(at(second), &mut cx).is_some() {}
        if packets.contains(&second) {
            bearer.push(at(second), Direction::Up, crate::common::packet(second, 0, 100), &mut cx);
        }
        if let Some((_, change)) = change.as_ref().filter(|(when, _)| *when == second) {
            bearer.command(at(second), &BearerCommand::from(change.clone()), &mut cx).expect("it can");
        }
    }
    while bearer.pop(at(100), &mut cx).is_some() {}
    bearer.end(at(100), &mut cx);
    let modes = log.events.iter().filter_map(|(time, _, event)| match event {
        Event::State(state) if state.aspect == Aspect::Mode => Some((time.as_secs_f64(), state.value)),
        _ => None,
    });
    (modes.collect(), bearer.connection_totals(UserId::new(0)).expect("a call").handovers)
}

#[test]
fn a_handover_by_command_is_counted_and_ends_with_and_without_traffic() {
    let handover = Change::Handover { gap: Span::from_millis(500), buffer: Buffer::Keep };
    for packets in [0..3, 0..20] {
        let (modes, handovers) = modes(radio_link(""), packets.clone(), Some((5, handover.clone())));
        let names = [(5.0, "handover"), (5.5, "call")].map(|(at, name)| (at, StateValue::Name(name)));
        assert_eq!((&modes[1..], handovers), (&names[..], 1), "{packets:?}");
    }
    let (_, outages) = modes(radio_link(""), 0..20, Some((5, Change::Outage(Span::from_millis(500)))));
    assert_eq!(outages, 0);
}

#[test]
fn before_its_call_a_mobile_is_not_handed_over() {
    // From one cell to the next, once, after some 20 s.
    let bearer = |dial: &str| {
        let mut table = csd_9600(&format!("call = {{ dial = \"{dial}\", set_up = \"5 s\" }}").parse().expect("toml"));
        let radio = table["radio"].as_table_mut().expect("a table");
        radio.remove("frame_errors");
        let conditions = r#"
            network = { frequency = "900 MHz", reuse = 12, load = 0.5, power_over_noise = "165 dB", lowest = "9 dB", period = "480 ms", hysteresis = "4 dB", time_to_trigger = "1 s", change = "hard-handover", gap = "200 ms" }
            cells = { count = 2, spacing = "1 km", setback = "100 m", antenna = "30 m", penetration = "0 dB" }
            shadowing = { deviation = "0 dB", correlation_distance = "20 m" }
            movement = { speed = "100 km/h", from = "0 m", to = "1 km", start = "0 m", path = "once" }
        "#;
        table.insert("conditions".into(), conditions.parse::<toml::Table>().expect("a table").into());
        GsmCsd::new(&table.try_into().expect("sound parameters"), 1, airpath_core::Seed::new(1), "cell").expect("sound")
    };
    let (found, handovers) = modes(bearer("before"), 1..100, None);
    assert_eq!((found.len(), handovers), (3, 1), "{found:?}");
    for packets in [40..41, 40..100] {
        let (found, handovers) = modes(bearer("first-packet"), packets, None);
        assert_eq!((found.len(), handovers), (1, 0), "{found:?}");
    }
}
