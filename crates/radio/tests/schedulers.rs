//! Who gets what of a shared cell.

use crate::common::{cell, cell_abc, hs_dsch_384, saturate};
use airpath_core::Span;

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
