//! Who gets what of a shared cell.

use crate::common::{cell, cell_abc, hs_dsch_384, packet, saturate};
use airpath_core::{ComponentId, Context, Direction, Instant, Seed, Span};
use airpath_link::Bearer;
use airpath_radio::ofdma::{CellBearer, Technology};
use airpath_radio::umts::hsdpa;
use airpath_radio::{lte, nr};

const ABC: [Option<&str>; 3] = [Some("a"), Some("b"), Some("c")];

/// The throughput of each user of a saturated cell, in kbit/s.
fn rates(more: &str, classes: &[Option<&str>]) -> Vec<f64> {
    let time = Span::from_secs(400);
    let config = cell_abc(more);
    let bytes = saturate(&mut cell(&config, classes), classes.len() as u16, time).bytes;
    bytes.iter().map(|bytes| *bytes as f64 * 8.0 / time.as_secs_f64() / 1000.0).collect()
}

/// The mean rate over the levels of each class, in kbit/s.
fn means() -> [f64; 3] {
    [[9.0, 60.0, 24.0, 5.0, 2.0], [4.0, 32.0, 43.0, 9.0, 12.0], [2.0, 16.0, 23.0, 20.0, 37.0]].map(|weights| {
        let sum: f64 = weights.iter().sum();
        weights.iter().zip([120.0, 240.0, 360.0, 480.0, 640.0]).map(|(weight, rate)| weight * rate / sum).sum()
    })
}

/// A 200,000th part of the time has a standard error of about 0.2 % in any of these rates, as the
/// standard deviation over the levels is about half of the mean and a user has a third of the TTIs;
/// 1 % is five of these.
const CLOSE: f64 = 0.01;

fn assert_close(measured: f64, expected: f64) {
    assert!((measured / expected - 1.0).abs() < CLOSE, "{measured} instead of {expected}");
}

#[test]
fn round_robin_gives_equal_turns() {
    let config = hs_dsch_384("");
    let radio = saturate(&mut cell(&config, &[None; 3]), 3, Span::from_secs(10)).radio;
    for (index, (_, event)) in radio.iter().enumerate() {
        assert_eq!(event.user.index(), index % 3);
    }
    // Equal time is each user's own mean rate, at every number of users: 278, 356 and 456 kbit/s.
    for classes in [&ABC[..], &[Some("a"), Some("b"), Some("c"), Some("a"), Some("b"), Some("c")]] {
        for (user, rate) in rates("", classes).into_iter().enumerate() {
            assert_close(rate, means()[user % 3]);
        }
    }
}

#[test]
fn maximum_ci_gets_the_most_out_of_the_cell() {
    // P(best level ≤ k) is the product of the three users' P(level ≤ k).
    let [a, b, c] = [[0.09, 0.69, 0.93, 0.98, 1.0], [0.04, 0.36, 0.79, 0.88, 1.0], [2.0, 18.0, 41.0, 61.0, 98.0]];
    let mut below = 0.0;
    let best: f64 = [120.0, 240.0, 360.0, 480.0, 640.0]
        .iter()
        .enumerate()
        .map(|(level, rate)| {
            let up_to = a[level] * b[level] * (c[level] / 98.0);
            let share = up_to - below;
            below = up_to;
            rate * share
        })
        .sum();
    let rates = rates("scheduler = \"maximum-ci\"", &ABC);
    assert_close(rates.iter().sum(), 3.0 * best);
    assert!(rates.is_sorted(), "the better the channel the more: {rates:?}");
    assert!(rates[0] < 0.6 * means()[0], "the far user gets less than by turns: {rates:?}");
}

#[test]
fn proportional_fair_serves_users_when_they_are_good() {
    let fair = rates("scheduler = \"proportional-fair\"", &ABC);
    let round_robin = rates("", &ABC);
    let maximum = rates("scheduler = \"maximum-ci\"", &ABC);
    for user in 0..3 {
        assert!(fair[user] > 1.1 * round_robin[user], "each gains over equal turns: {fair:?}");
    }
    assert!(fair.iter().sum::<f64>() < maximum.iter().sum());
    // What the rule maximises (Kelly): the sum of the logarithms of the rates.
    let utility = |rates: &[f64]| rates.iter().map(|rate| libm::log(*rate)).sum::<f64>();
    assert!(utility(&fair) > utility(&round_robin) && utility(&fair) > utility(&maximum));
}

#[test]
fn proportional_fair_is_round_robin_where_channels_do_not_change() {
    // Rates of 1 : 5, but no moment better than another: half of the time each, whatever the
    // averaging time.
    for time in ["20 ms", "1 s", "1000 s"] {
        let more = format!(
            r#"scheduler = "proportional-fair"
               averaging_time = "{time}"
               levels.rates = ["120 kbit/s", "600 kbit/s"]
               levels.rate_share = "cell"
               levels.classes = {{ a = [1, 0], b = [0, 1] }}"#
        );
        let rates = rates(&more, &[Some("a"), Some("b")]);
        assert_close(rates[0], 60.0);
        assert_close(rates[1], 300.0);
    }
}

#[test]
fn a_short_memory_forgets_who_was_served() {
    // With an average over a few TTIs a user that was not served in the last TTI counts like a new
    // one: nearly equal turns.
    let turns = rates("scheduler = \"proportional-fair\"\naveraging_time = \"4 ms\"", &ABC);
    let fair = rates("scheduler = \"proportional-fair\"\naveraging_time = \"1 s\"", &ABC);
    assert!(turns.iter().sum::<f64>() < 0.95 * fair.iter().sum::<f64>(), "{turns:?} {fair:?}");
}

const NAMES: [&str; 5] = ["round-robin", "maximum-ci", "proportional-fair", "least-attained-service", "run2c"];

/// A cell of `hsdpa` whose blocks have no errors.
fn hsdpa_cell(scheduler: &str, users: usize) -> hsdpa::Hsdpa {
    let mut bearer = crate::common::cells::parameters("hsdpa-cat10");
    let more = format!(
        "conditions.ci = \"15 dB\"\ndownlink.bler = 0.0\ndownlink.queue.packets = 40000\n[cell]\nusers_per_tti = 1\nscheduler = \"{scheduler}\""
    );
    crate::common::overlay(&mut bearer, &more.parse().expect("TOML"));
    bearer["cell"].as_table_mut().expect("a table").remove("averaging_time");
    let config: hsdpa::Config = bearer.try_into().expect("parameters of the right types");
    hsdpa::Hsdpa::new(&config, users, Seed::new(1), "cell").expect("sound parameters")
}

#[test]
fn one_mobile_gets_the_same_from_every_scheduler() {
    let time = Span::from_secs(5);
    let alone = |scheduler: &str| {
        let config = cell_abc(&format!("scheduler = \"{scheduler}\""));
        saturate(&mut cell(&config, &[Some("a")]), 1, time).radio
    };
    let in_hsdpa = |scheduler: &str| saturate(&mut hsdpa_cell(scheduler, 1), 1, time).radio;
    for name in &NAMES[1..] {
        assert!(alone(name) == alone("round-robin") && in_hsdpa(name) == in_hsdpa("round-robin"), "{name}");
    }
}

#[test]
fn least_attained_service_is_round_robin_on_equal_channels() {
    let radio = |more: &str| saturate(&mut cell(&hs_dsch_384(more), &[None; 3]), 3, Span::from_secs(10)).radio;
    assert!(radio("scheduler = \"least-attained-service\"") == radio(""));
}

#[test]
fn least_attained_service_gives_equal_bytes() {
    // Rates of 1 : 5 with equal bytes: 1 / (1/120 + 1/600) = 100 kbit/s each.
    let more = r#"scheduler = "least-attained-service"
        levels.rates = ["120 kbit/s", "600 kbit/s"]
        levels.rate_share = "cell"
        levels.classes = { a = [1, 0], b = [0, 1] }"#;
    for rate in rates(more, &[Some("a"), Some("b")]) {
        assert_close(rate, 100.0);
    }
}

#[test]
fn run2c_is_proportional_fair_within_a_class() {
    let radio = |more: &str| saturate(&mut cell(&cell_abc(more), &ABC), 3, Span::from_secs(20)).radio;
    let fair = radio("scheduler = \"proportional-fair\"");
    for short_flow in ["1 B", "1 GB"] {
        assert!(radio(&format!("scheduler = \"run2c\"\nshort_flow = \"{short_flow}\"")) == fair, "{short_flow}");
    }
}

/// How long `short` packets for mobile 1 take that come after 2 s, and as many that come later,
/// while `long` packets wait for mobile 0 from the begin.
fn two_transfers(bearer: &mut dyn Bearer, short: u64, long: u64) -> [Span; 2] {
    let starts = [2, 20].map(|seconds| Instant::ZERO + Span::from_secs(seconds));
    let mut lost = Vec::new();
    let mut cx = Context::new(None, &mut lost, ComponentId(0));
    let mut ends = [Instant::ZERO; 2];
    let mut pop = |bearer: &mut dyn Bearer, until, cx: &mut Context<'_>| {
        while let Some((_, departure)) = bearer.pop(until, cx) {
            if departure.packet.user.index() == 1 {
                ends[usize::from(departure.due > starts[1])] = departure.due;
            }
        }
    };
    for id in 0..long {
        bearer.push(Instant::ZERO, Direction::Down, packet(id, 0, 1500), &mut cx);
    }
    for (number, start) in (0..).zip(starts) {
        pop(bearer, start, &mut cx);
        for id in 0..short {
            bearer.push(start, Direction::Down, packet(1_000_000 + short * number + id, 1, 1500), &mut cx);
        }
    }
    pop(bearer, Instant::ZERO + Span::from_secs(40), &mut cx);
    [0, 1].map(|number| ends[number].since(starts[number]))
}

#[test]
fn a_short_flow_passes_a_long_one() {
    let simple = |more: &str, long| {
        let more = format!("bler = 0.0\nqueue.packets = 2000\n{more}");
        two_transfers(&mut cell(&hs_dsch_384(&more), &[None; 2]), 10, long)
    };
    let alone = simple("", 0);
    for more in ["scheduler = \"least-attained-service\"", "scheduler = \"run2c\"\nshort_flow = \"30 kB\""] {
        assert_eq!(simple(more, 1500), alone, "{more}: as if there were no other");
    }
    // Mobile 0 takes every other TTI, and its rate falls from all to half.
    let [turns, _] = simple("", 1500);
    assert!(turns > alone[0] + alone[0] / 2, "{turns} {}", alone[0]);
    // Half of the transfer comes first, and the rest in turns, as proportional fair forgets soon.
    let half = "scheduler = \"run2c\"\nshort_flow = \"7520 B\"\naveraging_time = \"3 ms\"";
    let [half, _] = simple(half, 1500);
    assert!(half > alone[0] + alone[0] / 4 && half + alone[0] / 4 < turns, "{half} {turns}");
}

#[test]
fn a_short_flow_passes_a_long_one_in_hsdpa() {
    let transfers = |name, long| two_transfers(&mut hsdpa_cell(name, 2), 10, long);
    let (alone, turns) = (transfers("round-robin", 0), transfers("round-robin", 30_000));
    for name in ["least-attained-service", "run2c"] {
        let first = transfers(name, 30_000);
        for number in [0, 1] {
            let [alone, turns, first] = [alone, turns, first].map(|times| times[number]);
            // A block of the long one may be on the air.
            assert!(first < turns && first <= alone + Span::from_millis(2), "{name}: {first} {alone} {turns}");
        }
    }
}

/// Two mobiles of a cell of LTE or NR, always connected and awake, one at a time.
fn ofdma_cell<T: Technology + serde::de::DeserializeOwned>(name: &str, limit: &str, more: &str) -> CellBearer<T> {
    let more = format!("conditions.ci = \"15 dB\"\ndownlink.bler = 0.0\n[cell]\n{limit} = 1\n{more}");
    let config: T = crate::common::cells::config(name, &more, &["rrc", "drx", "pdcp.queue", "pdcp.discard"]);
    CellBearer::new(&config, 2, Seed::new(1), "cell").expect("sound parameters")
}

#[test]
fn a_short_flow_passes_a_long_one_in_lte_and_nr() {
    let lte =
        |more: &str| two_transfers(&mut ofdma_cell::<lte::Config>("lte-20mhz", "users_per_tti", more), 200, 30_000)[0];
    let nr = |more: &str| {
        two_transfers(&mut ofdma_cell::<nr::Config>("nr-n78-100mhz-sa", "users_per_slot", more), 200, 200_000)[0]
    };
    for transfer in [&lte as &dyn Fn(&str) -> Span, &nr] {
        let turns = transfer("scheduler = \"round-robin\"");
        let short = transfer("scheduler = \"least-attained-service\"");
        assert!(short < turns - turns / 4, "{short} {turns}");
        let run2c = |short_flow| {
            let more = "scheduler = \"run2c\"\naveraging_time = \"2 ms\"";
            transfer(&format!("{more}\nshort_flow = \"{short_flow}\""))
        };
        let (short, long) = (run2c("1 MB"), run2c("100 B"));
        assert!(short < long, "{short} {long}: this flow is long from the first block");
    }
}
