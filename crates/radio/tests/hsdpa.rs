//! The HSDPA cell: the contracts, whatever its parameters; goodput and combining against what can
//! be calculated.

use crate::common;
use crate::common::contracts::{keeps_contracts_of_hsdpa, keeps_contracts_with_commands};
use crate::common::{packet, resets_and_losses, saturate, saturate_with};
use airpath_core::{ComponentId, Context, Direction, Instant, Memory, Probability, Seed, Span, UserId};
use airpath_link::command::Change;
use airpath_link::{Bearer, BearerCommand};
use airpath_radio::common::shared_channel::scheduler::least_attained_service::LeastAttainedService;
use airpath_radio::common::shared_channel::scheduler::maximum_ci::MaximumCi;
use airpath_radio::common::shared_channel::scheduler::proportional_fair::ProportionalFair;
use airpath_radio::common::shared_channel::scheduler::round_robin::RoundRobin;
use airpath_radio::common::shared_channel::scheduler::run2c::Run2c;
use airpath_radio::common::shared_channel::scheduler::{Candidate, Scheduler};
use airpath_radio::umts::hsdpa::{Config, Hsdpa};
use proptest::prelude::*;

const HORIZON: Instant = Instant::from_nanos(20_000_000_000_000);

/// The preset of category 10 with PDUs of 40 B, and what differs from it, as TOML.
fn config(more: &str) -> Config {
    let mut small: toml::Table = "downlink = { pdu = \"40 B\", rlc.window = 2047 }".parse().expect("TOML");
    overlay(&mut small, &more.parse().expect("TOML"));
    preset(&small)
}

/// The preset of category 10 with what differs from it.
fn preset(more: &toml::Table) -> Config {
    let mut preset: toml::Table = include_str!("../../../presets/hsdpa-cat10.toml").parse().expect("the preset");
    let mut bearer = preset.remove("bearer").and_then(|it| it.as_table().cloned()).expect("a table");
    bearer.remove("model");
    overlay(&mut bearer, more);
    airpath_radio::model::read(bearer.into()).expect("parameters")
}

fn overlay(base: &mut toml::Table, more: &toml::Table) {
    for (key, value) in more {
        match (base.get_mut(key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(more)) => overlay(base, more),
            _ => drop(base.insert(key.clone(), value.clone())),
        }
    }
}

fn cell(config: &Config, users: u16) -> Hsdpa {
    Hsdpa::new(config, usize::from(users), Seed::new(5), "cell").expect("sound parameters")
}

fn any_config() -> impl Strategy<Value = Config> {
    (
        (-25.0..25.0f64, 1u8..13, 5u8..16, 1u8..5, prop::sample::select(vec![None, Some(0.0), Some(0.3), Some(0.9)])),
        (1u8..9, 5u8..10, 1u8..9, prop::sample::select(vec!["none", "chase", "incremental-redundancy"])),
        (0u32..40, 1u32..50, 1u32..20, 8u32..100, prop::option::of(1u8..31)),
        prop::sample::select(vec![
            "round-robin",
            "maximum-ci",
            "proportional-fair",
            "least-attained-service",
            "run2c",
        ]),
        (1u8..33, 1u32..100, 1u32..80, 0u32..30, 2u32..12),
    )
        .prop_map(|((ci, category, codes, users, bler), (processes, trip, max, combining), iub, scheduler, rest)| {
            let (delay, interval, room, pdu, cqi) = iub;
            let (window, timer, cycle, cqi_delay, max_dat) = rest;
            let pdu = if cqi.is_some() || category > 10 { pdu.min(60) } else { pdu };
            let (buffer, cycle) = (room * pdu, 2 * cycle);
            let discard = match max_dat % 4 {
                0 => ", discard = { timer_mrw = \"90 ms\", max_mrw = 3, timer_discard = \"700 ms\" }",
                2 => ", discard = { timer_mrw = \"90 ms\", max_mrw = 3 }",
                _ => "",
            };
            let mut config = config(&format!(
                r#"
                cell = {{ codes = {codes}, users_per_tti = {users}, scheduler = "{scheduler}" }}
                mobile = {{ category = {category}, cqi_cycle = "{cycle} ms", cqi_delay = "{cqi_delay} ms",
                            reordering_window = {window}, reordering_timer = "{timer} ms" }}
                conditions.ci = "{ci} dB"
                [downlink]
                pdu = "{pdu} B"
                harq = {{ processes = {processes}, round_trip = {trip}, max_transmissions = {max}, combining = "{combining}" }}
                iub = {{ delay = "{delay} ms", interval = "{interval} ms", buffer = "{buffer} B" }}
                rlc = {{ max_dat = {max_dat}, max_rst = 3{discard} }}
                "#
            ));
            config.downlink.bler = bler.map(|bler| Probability::new(bler).expect("a share"));
            config.downlink.cqi = cqi;
            config
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(8)))]

    #[test]
    fn cells_keep_the_contracts(config in any_config(), users in 1u16..6, gap in 1u64..100, seed: u64) {
        keeps_contracts_of_hsdpa(|| cell(&config, users), users, Span::from_millis(gap), seed, HORIZON);
    }

    #[test]
    fn so_they_do_when_conditions_change(config in any_config(), users in 1u16..4, seed: u64) {
        keeps_contracts_with_commands(|| cell(&config, users), users, seed, HORIZON);
    }
}

/// What one mobile gets, in bytes a second, with full buffers.
fn goodput(more: &str) -> f64 {
    let time = Span::from_secs(20);
    let result = saturate(&mut cell(&config(more), 1), 1, time);
    assert!(result.dropped.is_empty(), "{more}");
    result.bytes[0] as f64 / time.as_secs_f64()
}

#[test]
fn goodput_falls_with_the_share_of_errors() {
    // A fixed CQI 16 holds 10 PDUs of 40 B, each TTI. One of a packet's 38 PDUs has length
    // indicators and is shared, so that 1500 B take 1501. Without combining, a share p of the TTIs
    // is in vain, and blocks beyond the eighth attempt are rare.
    let full = 10.0 * 40.0 / 0.002 * 1500.0 / 1501.0;
    for bler in [0.0, 0.1, 0.3] {
        let more = format!(
            "conditions.ci = \"20 dB\"\n[downlink]\ncqi = 16\nbler = {bler:.1}\nqueue.packets = 400\niub.buffer = \"40 kB\"\nharq = {{ max_transmissions = 8, combining = \"none\" }}"
        );
        let share = goodput(&more) / full;
        assert!((share - (1.0 - bler)).abs() < 0.03, "{bler}: {share}");
    }
}

#[test]
fn category_10_carries_what_its_title_states() {
    // 38 PDUs of 640 bits in the block of CQI 30, 25558 bits: 12.16 Mbit/s. One of a packet's PDUs
    // has a length indicator, so that 1500 B take 1501.
    let rate = |more: &str| {
        let time = Span::from_secs(20);
        let mut cell = cell(&preset(&format!("downlink.bler = 0.0\n{more}").parse().expect("TOML")), 1);
        saturate_with(&mut cell, 1, 350, time).bytes[0] as f64 * 8.0 / time.as_secs_f64()
    };
    let full = 38.0 * 640.0 / 0.002 * 1500.0 / 1501.0;
    assert!((rate("") / full - 1.0).abs() < 0.02, "{} of {full}", rate(""));
    // With the window of the capture it is the window that limits.
    let small = rate("downlink.rlc.window = 2047");
    assert!((7.0e6..9.0e6).contains(&small), "{small}");
}

#[test]
fn a_mobile_is_served_at_most_as_often_as_its_category_allows() {
    // TS 25.306 Table 5.1a, minimum inter-TTI interval: 3, 2 and 1 TTIs of 2 ms.
    for (category, interval) in [(1, 6), (3, 4), (5, 2)] {
        let result = saturate(&mut cell(&config(&format!("mobile.category = {category}")), 1), 1, Span::from_secs(2));
        let times: Vec<_> = result
            .radio
            .iter()
            .filter(|(_, event)| event.direction == Direction::Down)
            .map(|(time, _)| *time)
            .collect();
        let least = times.windows(2).map(|pair| pair[1].since(pair[0])).min();
        assert_eq!(least, Some(Span::from_millis(interval)), "category {category}");
    }
}

#[test]
fn a_window_that_limits_stalls_the_link() {
    // The rate of 12.16 Mbit/s is interrupted for the share that is missing in the goodput: by
    // stalls, and after each until new PDUs have come over the Iub.
    let time = Span::from_secs(10);
    let saturated = |more: &str| {
        let config = preset(&format!("downlink.bler = 0.0\n{more}").parse().expect("TOML"));
        saturate_with(&mut cell(&config, 1), 1, 350, time)
    };
    let limited = saturated("downlink.rlc.window = 2047");
    let goodput = limited.bytes[0] as f64 * 8.0 / time.as_secs_f64();
    let missing = 1.0 - goodput / (38.0 * 640.0 / 0.002);
    let stalled = limited.stalled(time);
    assert!(stalled > 0.2 && (0.0..0.15).contains(&(missing - stalled)), "{stalled} of {missing}");
    assert_eq!(saturated("").stalled(time), 0.0);
}

#[test]
fn combining_saves_attempts() {
    // The mean number of transmissions of a block by the error rates of its attempts: first 0.5,
    // then those of the curve.
    let transmissions = |combining: &str| {
        let more = format!(
            "conditions.ci = \"20 dB\"\n[downlink]\ncqi = 16\nbler = 0.5\nharq = {{ max_transmissions = 8, combining = \"{combining}\" }}"
        );
        let radio = saturate(&mut cell(&config(&more), 1), 1, Span::from_secs(10)).radio;
        let first = radio.iter().filter(|(_, event)| event.direction == Direction::Down && event.repeated == 0).count();
        let all = radio.iter().filter(|(_, event)| event.direction == Direction::Down).count();
        all as f64 / first as f64
    };
    // Without: 1 + 1/2 + … + 1/2⁷. With Chase the second attempt, 3 dB better, fails once in some
    // ten thousand times: at CQI 16 x grows by 3.01 · 2 / (√3 − 1.204) = 11.4 from −0.2, so BLER₂ =
    // 10^(−11.2 / 0.7).
    assert!((transmissions("none") - (2.0 - 1.0 / 128.0)).abs() < 0.05);
    assert!((transmissions("chase") - 1.5).abs() < 0.03);
    assert!((transmissions("incremental-redundancy") - 1.5).abs() < 0.03);
}

#[test]
fn who_has_enough_waiting_takes_a_tti_whole() {
    let more = "cell = { codes = 10, users_per_tti = 3 }\nconditions.ci = \"3 dB\"";
    let radio = saturate(&mut cell(&config(more), 6), 6, Span::from_secs(5)).radio;
    // At 3 dB the CQI is 19, of 5 codes: there are codes for two, but the first takes all the power
    // that its CQI needs.
    let down: Vec<_> = radio.iter().filter(|(_, event)| event.direction == Direction::Down).collect();
    assert!(down.len() > 2000 && down.chunk_by(|a, b| a.0 == b.0).all(|tti| tti.len() == 1));
}

#[test]
fn the_best_channel_comes_first_whatever_waits_for_it() {
    // For the mobile at 20 dB a packet waits, for that at 0 dB seconds of TTIs.
    let more = "cell = { users_per_tti = 1, scheduler = \"maximum-ci\" }\nconditions.ci = \"20 dB\"\n\
                downlink = { bler = 0.0, queue.packets = 2000, iub.buffer = \"40 kB\" }";
    let mut cell = cell(&config(more), 2);
    let mut lost = Vec::new();
    let mut cx = Context::new(None, &mut lost, ComponentId(0));
    let far = Change::CarrierToInterference("0 dB".parse().expect("a ratio"));
    let command = BearerCommand { user: Some(UserId::new(1)), ..BearerCommand::from(far) };
    cell.command(Instant::ZERO, &command, &mut cx).expect("it can");
    for id in 0..1000 {
        cell.push(Instant::ZERO, Direction::Down, packet(id, 1, 1500), &mut cx);
    }
    let pushed = Instant::ZERO + Span::from_secs(1);
    while cell.pop(pushed, &mut cx).is_some() {}
    cell.push(pushed, Direction::Down, packet(1000, 0, 30), &mut cx);
    let mut left = std::iter::from_fn(|| cell.pop(Instant::ZERO + Span::from_secs(60), &mut cx));
    let (_, departure) = left.find(|(_, departure)| departure.packet.id == 1000).expect("it leaves");
    assert!(departure.due.since(pushed) < Span::from_millis(70), "{}", departure.due);
}

/// A scheduler without its ranks, for which the cell lists all candidates.
#[derive(Debug)]
struct Listed<S>(S);

impl<S: Scheduler> Scheduler for Listed<S> {
    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        self.0.choose(candidates)
    }

    fn backlogged(&mut self, tti: u64, user: u32) {
        self.0.backlogged(tti, user);
    }

    fn served(&mut self, tti: u64, user: u32, pdus: u32) {
        self.0.served(tti, user, pdus);
    }
}

#[test]
fn ranks_choose_as_the_scheduler_does() {
    let tti = Span::from_millis(2);
    for ci in ["ci = \"8 dB\"", "ci = \"6 dB\"\nshadowing = { deviation = \"6 dB\", correlation_time = \"1 s\" }"] {
        let config = config(&format!("[conditions]\n{ci}"));
        let same = |ranked: Box<dyn Scheduler>, listed: Box<dyn Scheduler>| {
            let [ranked, listed] = [ranked, listed].map(|scheduler| {
                let seed = Seed::new(5);
                let mut cell = Hsdpa::with_scheduler(&config, 7, seed, "cell", scheduler).expect("sound parameters");
                let result = saturate(&mut cell, 7, Span::from_secs(5));
                (result.bytes, result.radio)
            });
            assert!(ranked == listed, "{ci}");
        };
        same(Box::new(RoundRobin), Box::new(Listed(RoundRobin)));
        same(Box::new(MaximumCi), Box::new(Listed(MaximumCi)));
        let least = LeastAttainedService::new(7, tti, Span::from_millis(40));
        same(Box::new(least.clone()), Box::new(Listed(least)));
        // The short time scales all averages down again and again.
        for time in [Span::from_millis(20), Span::from_secs(1)] {
            let fair = ProportionalFair::new(7, tti, time);
            let run2c = Run2c::new(7, tti, Span::from_millis(40), 2000, fair.clone());
            same(Box::new(fair.clone()), Box::new(Listed(fair)));
            same(Box::new(run2c.clone()), Box::new(Listed(run2c)));
        }
    }
}

#[test]
fn small_blocks_share_a_tti() {
    // One PDU waits for each mobile: the power of one block of CQI 30 is that of many of CQI 4.
    let config = config("conditions.ci = \"20 dB\"\ndownlink.bler = 0.0\ndownlink.queue.packets = 400");
    let mut bearer = cell(&config, 8);
    let (mut log, mut lost) = (airpath_core::Memory::default(), Vec::new());
    let mut cx = airpath_core::Context::new(Some(&mut log), &mut lost, airpath_core::ComponentId(0));
    for user in 0..8 {
        bearer.push(Instant::ZERO, Direction::Down, common::packet(u64::from(user), user, 30), &mut cx);
    }
    while bearer.pop(Instant::from_nanos(1_000_000_000), &mut cx).is_some() {}
    let mut ttis = std::collections::BTreeMap::new();
    for (time, _, event) in &log.events {
        if let airpath_core::Event::Radio(event) = event
            && event.direction == Direction::Down
            && event.repeated == 0
        {
            *ttis.entry(*time).or_insert(0) += 1;
        }
    }
    assert_eq!(ttis.values().take(2).copied().collect::<Vec<_>>(), [4, 4], "four HS-SCCHs");
}

#[test]
fn what_hybrid_arq_gives_up_the_rlc_repairs() {
    let more = "conditions.ci = \"20 dB\"\n[downlink]\ncqi = 16\nbler = 0.4\nharq = { max_transmissions = 2, combining = \"none\" }";
    let result = saturate(&mut cell(&config(more), 1), 1, Span::from_secs(20));
    assert!(result.dropped.is_empty());
    let ids: Vec<u64> = result.departures.iter().map(|departure| departure.packet.id).collect();
    assert!(ids.len() > 500 && ids.iter().copied().eq(0..ids.len() as u64), "in sequence, without a gap");
}

#[test]
fn a_repeated_reset_is_answered_and_destroys_nothing() {
    // Many RESETs upwards and their answers are lost, so that RESETs are repeated.
    let more = "conditions.ci = \"20 dB\"\ndownlink = { bler = 0.3, rlc.max_dat = 2, harq.max_transmissions = 1 }\n\
                uplink = { bler = 0.6, rlc.max_dat = 40 }";
    let mut cell = cell(&config(more), 1);
    let (mut log, mut lost) = (Memory::default(), Vec::new());
    let mut cx = Context::new(Some(&mut log), &mut lost, ComponentId(0));
    for id in 0..1000 {
        let now = Instant::ZERO + Span::from_millis(90) * id;
        while cell.pop(now, &mut cx).is_some() {}
        let direction = if id % 3 == 0 { Direction::Up } else { Direction::Down };
        cell.push(now, direction, packet(id, 0, 472), &mut cx);
    }
    while cell.pop(Instant::ZERO + Span::from_secs(200), &mut cx).is_some() {}
    let (resets, losses) = resets_and_losses(log.events.iter().map(|(at, _, event)| (*at, event)));
    assert!(resets > 20 && losses <= resets, "{losses} times of losses by {resets} resets");
}

#[test]
fn iub_credits_bound_what_a_round_trip_can_carry() {
    // 100 PDUs of 40 B fill the buffer of the base station, which hears with them that there is
    // more; 10 ms later there is room, and after another 10 ms the RNC has the credits, whose PDUs
    // take 10 ms. A TTI could carry 1.3 MB/s.
    let more = "conditions.ci = \"20 dB\"\ndownlink.bler = 0.0\ndownlink.queue.packets = 400\ndownlink.iub = { delay = \"10 ms\", interval = \"10 ms\", buffer = \"4000 B\" }";
    let rate = goodput(more);
    assert!((rate / (4000.0 / 0.030) - 1.0).abs() < 0.01, "{rate}");
}

/// When packets leave that were pushed at these times, in seconds, to a mobile that moves along
/// cells.
fn departures_along(cells: u8, movement: &str, seconds: &[f64]) -> Vec<f64> {
    let mut config = preset(&"downlink = { bler = 0.0, rlc.max_dat = 100 }\nuplink.bler = 0.0".parse().expect("TOML"));
    let conditions = format!(
        r#"
        network = {{ frequency = "2.1 GHz", reuse = 1, load = 0.0, power_over_noise = "157 dB", lowest = "-5 dB", period = "200 ms", hysteresis = "3 dB", time_to_trigger = "640 ms", change = "hard-handover", gap = "100 ms" }}
        cells = {{ count = {cells}, spacing = "1 km", setback = "100 m", antenna = "30 m", penetration = "0 dB" }}
        shadowing = {{ deviation = "0 dB", correlation_distance = "20 m" }}
        movement = {{ from = "0 m", {movement} }}
        "#
    );
    config.conditions = toml::from_str(&conditions).expect("conditions");
    let mut cell = cell(&config, 1);
    let mut lost = Vec::new();
    let mut cx = Context::new(None, &mut lost, ComponentId(0));
    let mut left = Vec::new();
    let mut advance = |cell: &mut Hsdpa, until: Instant, cx: &mut Context<'_>| {
        while let Some((_, departure)) = cell.pop(until, cx) {
            left.push(departure.due.as_secs_f64());
        }
    };
    for (id, second) in seconds.iter().enumerate() {
        let now = Instant::ZERO + Span::from_secs_f64(*second);
        advance(&mut cell, now, &mut cx);
        cell.push(now, Direction::Down, packet(id as u64, 0, 500), &mut cx);
    }
    advance(&mut cell, Instant::ZERO + Span::from_secs(700), &mut cx);
    left
}

#[test]
fn coverage_is_known_at_the_beginning_and_after_a_long_silence() {
    let to_and_fro = |speed: u32, to: &str, start: &str| {
        format!("speed = \"{speed} km/h\", to = \"{to}\", start = \"{start}\", path = \"to-and-fro\"")
    };
    // Without coverage from 168 s to 368 s: what comes then is lost, and the next one is not.
    let left = departures_along(1, &to_and_fro(100, "7 km", "0 m"), &[1.0, 250.0, 480.0]);
    assert!(left.len() == 2 && (480.0..480.1).contains(&left[1]), "{left:?}");
    // It begins 1.2 km out of coverage.
    let left = departures_along(1, &to_and_fro(400, "5 km", "5 km"), &[0.0]);
    assert!(left.len() == 1 && (10.0..13.0).contains(&left[0]), "{left:?}");
}

#[test]
fn a_handover_of_the_past_empties_no_buffer() {
    // A packet alone comes 39 ms later. At the handover, after some 20 s, nothing is inside; what
    // comes later is not repeated after Timer_Poll, 200 ms.
    let once = "speed = \"100 km/h\", to = \"1 km\", start = \"0 m\", path = \"once\"";
    for second in [22.0, 30.0, 60.0] {
        let left = departures_along(2, once, &[1.0, second]);
        assert!(left.len() == 2 && (0.03..0.05).contains(&(left[1] - second)), "{left:?}");
    }
    // With something inside, a gap of 100 ms and the loss of the buffer.
    let stream: Vec<f64> = (0..4000).map(|packet| f64::from(packet) * 0.01).collect();
    let left = departures_along(2, once, &stream);
    let gap = left.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    assert!(left.len() == stream.len() && (0.1..0.4).contains(&gap), "{gap}");
}
