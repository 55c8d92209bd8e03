//! The phases of BBR.

use super::testing::{Driver, SIZE};
use super::*;
use crate::Profile;

/// One segment per millisecond, less the margin, in bytes per second.
const PATH_RATE: u64 = SIZE * 990;

fn driver() -> Driver<Bbr> {
    Driver::new(Bbr::new(&Profile::Linux6.config(), SIZE as u32))
}

impl Driver<Bbr> {
    /// Rounds of 100 ms at the path's rate, until ProbeBW.
    fn reach_probe_bandwidth(&mut self) {
        self.in_flight = 60;
        for _ in 0..8 {
            self.acknowledge(100, 100, 1000);
        }
        assert_eq!(self.bbr.mode, Mode::ProbeBandwidth);
    }
}

#[test]
fn the_first_rate_is_the_initial_window_per_round_trip_times_the_gain() {
    let bbr = driver().bbr;
    // 10 segments per 100 ms, 739/256, and a margin of 1 %.
    let expected = 10 * SIZE * 10 * 739 / 256 * 99 / 100;
    assert!(bbr.pacing.rate.abs_diff(expected) < expected / 1000, "{} {expected}", bbr.pacing.rate);
    assert_eq!(bbr.congestion_window(), 10 * SIZE);
}

#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let mut driver = driver();
    driver.in_flight = 400;
    for (bandwidth, mode) in [
        (200, Mode::Startup),
        (400, Mode::Startup),
        (800, Mode::Startup),
        (1000, Mode::Startup),
        (1000, Mode::Startup),
        (1000, Mode::Startup),
        (1000, Mode::Drain),
    ] {
        driver.acknowledge(100, bandwidth / 10, bandwidth);
        assert_eq!(driver.bbr.mode, mode, "{bandwidth}");
    }
    assert_eq!(driver.bbr.pacing.rate, driver.bbr.pacing.rate_of(driver.bbr.bandwidth.get(), DRAIN_GAIN));
    // 100 segments of the product, three aggregates of two.
    assert_eq!(driver.bbr.slow_start_threshold(), Some(106 * SIZE));
    driver.in_flight = 106;
    driver.acknowledge(10, 10, 1000);
    assert_eq!(driver.bbr.mode, Mode::ProbeBandwidth);
}

#[test]
fn samples_that_the_application_limits_do_not_end_startup_nor_lower_the_estimate() {
    let mut driver = driver();
    driver.acknowledge(100, 100, 1000);
    for _ in 0..12 {
        let sample = RateSample { app_limited: true, ..driver.sample(100, 10, 100) };
        driver.bbr.on_rate_sample(&sample);
    }
    assert_eq!(driver.bbr.mode, Mode::Startup);
    assert_eq!(driver.bbr.bandwidth.get(), 100 * BANDWIDTH_UNIT / 100_000);
}

#[test]
fn the_cycle_probes_drains_and_cruises() {
    let mut driver = driver();
    driver.reach_probe_bandwidth();
    driver.bbr.phase = 7;
    driver.bbr.phase_at = driver.now;
    let gains: Vec<u64> = (0..18)
        .map(|_| {
            // In flight what the gain needs, so that each phase lasts a round trip.
            driver.in_flight = if driver.bbr.pacing_gain > UNIT { 140 } else { 120 };
            driver.acknowledge(101, 100, 1000);
            driver.bbr.pacing_gain
        })
        .collect();
    assert_eq!(gains[..10], [320, 192, 256, 256, 256, 256, 256, 256, 320, 192]);
    // Twice the product, three aggregates of two, and the product again, as each acknowledgement
    // covers a whole round.
    let window = driver.bbr.congestion_window() / SIZE;
    assert!((306..=310).contains(&window), "{window}");
}

#[test]
fn a_probe_lasts_until_the_data_is_in_flight_or_lost() {
    let mut driver = driver();
    driver.reach_probe_bandwidth();
    (driver.bbr.phase, driver.bbr.phase_at, driver.bbr.pacing_gain) = (0, driver.now, CYCLE[0]);
    driver.in_flight = 20;
    driver.acknowledge(150, 100, 1000);
    assert_eq!(driver.bbr.phase, 0, "too little is in flight");
    let sample = RateSample { losses: 1, ..driver.sample(10, 10, 1000) };
    driver.bbr.on_rate_sample(&sample);
    assert_eq!(driver.bbr.phase, 1);
    // Draining ends as soon as the queue is empty.
    driver.in_flight = 90;
    driver.acknowledge(10, 10, 1000);
    assert_eq!(driver.bbr.phase, 2);
}

#[test]
fn the_first_phase_is_random_and_never_the_draining_one() {
    let phases = |seed| {
        let mut bbr = driver().bbr;
        bbr.random = seed;
        (0..200)
            .map(|_| {
                bbr.begin_probe_bandwidth();
                bbr.phase
            })
            .collect::<Vec<_>>()
    };
    let drawn = phases(1);
    assert_eq!(drawn, phases(1));
    assert_ne!(drawn, phases(2));
    let all: std::collections::BTreeSet<_> = drawn.into_iter().collect();
    assert_eq!(all, [0, 2, 3, 4, 5, 6, 7].into());
}

#[test]
fn the_least_round_trip_is_measured_again_after_ten_seconds() {
    let mut driver = driver();
    driver.reach_probe_bandwidth();
    driver.in_flight = 100;
    let start = driver.now;
    let longer = |driver: &mut Driver<Bbr>, millis| {
        let round_trip = Some(Span::from_millis(120));
        let sample = RateSample { round_trip, ..driver.sample(millis, millis, 1000) };
        driver.bbr.on_rate_sample(&sample);
    };
    while driver.bbr.mode != Mode::ProbeRoundTrip {
        longer(&mut driver, 10);
    }
    let waited = driver.now.since(start);
    assert!(waited > Span::from_millis(9_200) && waited < Span::from_millis(10_020), "{waited}");
    assert_eq!(driver.bbr.congestion_window(), LEAST_WINDOW * SIZE);
    assert!(driver.bbr.limits_itself());
    // 200 ms count from when four segments are in flight.
    longer(&mut driver, 50);
    driver.in_flight = 4;
    longer(&mut driver, 50);
    let start = driver.now;
    while driver.bbr.mode == Mode::ProbeRoundTrip {
        longer(&mut driver, 1);
    }
    let lasted = driver.now.since(start);
    assert!(lasted >= Span::from_millis(200) && lasted <= Span::from_millis(208), "{lasted}");
    assert_eq!(driver.bbr.least_round_trip, Some(120_000));
    assert!(driver.bbr.congestion_window() > 100 * SIZE, "the window is restored");
}

#[test]
fn the_first_round_of_a_recovery_conserves_packets() {
    let mut driver = driver();
    driver.reach_probe_bandwidth();
    let before = driver.bbr.window;
    driver.bbr.on_congestion(&Congested {
        now: driver.now,
        signal: Signal::Loss,
        again: false,
        flight_size: 0,
        window_limit: u64::MAX,
    });
    driver.in_flight = 50;
    let sample = RateSample { recovery: true, losses: 20, prior_delivered: 0, ..driver.sample(1, 2, 1000) };
    driver.bbr.on_rate_sample(&sample);
    assert_eq!(driver.bbr.window, 52, "what is in flight, and what was delivered");
    let sample = RateSample { recovery: true, prior_delivered: 0, ..driver.sample(1, 3, 1000) };
    driver.bbr.on_rate_sample(&sample);
    assert_eq!(driver.bbr.window, 53);
    // The next round grows again, and the end restores.
    let sample = RateSample { recovery: true, ..driver.sample(200, 3, 10) };
    driver.bbr.on_rate_sample(&sample);
    assert_eq!(driver.bbr.window, 56);
    driver.acknowledge(1, 1, 1000);
    assert!(driver.bbr.window >= before, "{} {before}", driver.bbr.window);
}

#[test]
fn a_timeout_leaves_one_segment_and_keeps_the_rate() {
    let mut driver = driver();
    driver.reach_probe_bandwidth();
    let rate = driver.bbr.pacing.rate;
    let (now, signal) = (driver.now, Signal::Timeout);
    let window_limit = u64::MAX;
    driver.bbr.on_congestion(&Congested { now, signal, again: false, flight_size: 0, window_limit });
    driver.bbr.on_timeout_losses(60);
    assert_eq!((driver.bbr.congestion_window(), driver.bbr.pacing.rate), (SIZE, rate));
    driver.in_flight = 0;
    let sample = RateSample { timed_out: true, ..driver.sample(300, 1, 10) };
    driver.bbr.on_rate_sample(&sample);
    assert_eq!(driver.bbr.congestion_window(), LEAST_WINDOW * SIZE);
}

#[test]
fn after_idle_times_it_continues_at_the_bandwidth() {
    let mut driver = driver();
    driver.reach_probe_bandwidth();
    driver.bbr.phase = 0;
    driver.bbr.update_gains();
    driver.bbr.on_transmission_start(driver.now, Span::from_secs(1), true);
    assert!(driver.bbr.pacing.rate.abs_diff(PATH_RATE) < 100, "{}", driver.bbr.pacing.rate);
    // The estimate of the round trip has expired, but a restart does not begin with ProbeRTT.
    let sample = driver.sample(11_000, 1, 10);
    driver.bbr.on_rate_sample(&RateSample { delivered: Some(0), ..sample });
    assert_ne!(driver.bbr.mode, Mode::ProbeRoundTrip);
}

#[test]
fn a_policed_rate_is_used_for_48_rounds() {
    let mut driver = driver();
    driver.reach_probe_bandwidth();
    driver.in_flight = 200;
    let policed = |driver: &mut Driver<Bbr>| {
        driver.lost += 30;
        let sample = RateSample { losses: 30, ..driver.sample(100, 50, 500) };
        driver.bbr.on_rate_sample(&sample);
    };
    let mut rounds = 0;
    while driver.bbr.policer.rate().is_none() {
        policed(&mut driver);
        rounds += 1;
        assert!(rounds < 20);
    }
    assert_eq!(rounds, 8, "two intervals of four");
    let rate = driver.bbr.pacing.rate_of(500 * BANDWIDTH_UNIT / 1_000_000, UNIT);
    assert!(driver.bbr.pacing.rate.abs_diff(rate) < rate / 50, "{} {rate}", driver.bbr.pacing.rate);
    let mut used = 0;
    while driver.bbr.policer.rate().is_some() {
        driver.acknowledge(100, 50, 500);
        used += 1;
    }
    assert_eq!(used, 48);
}

/// `bbr_lt_loss_thresh` (50 of 256), `bbr_lt_bw_ratio` (an eighth) and `bbr_lt_intvl_min_rtts` (4).
#[test]
fn a_policer_loses_a_fifth_in_two_intervals_of_the_same_rate() {
    // Segments delivered and lost in each round of 100 ms of the first four rounds, and of the
    // second four.
    let policed = |intervals: [(u64, u64); 2]| {
        let mut policer = Policer::new();
        let (mut delivered, mut lost) = (1000, 0);
        for round in 0..8_u64 {
            let (more, fewer) = intervals[round as usize / 4];
            (delivered, lost) = (delivered + more, lost + fewer);
            let delivered_at = Instant::ZERO + Span::from_millis(100 * (round + 1));
            let (losses, segment_size) = (fewer > 0, SIZE);
            let sample = policer::Sample {
                losses,
                app_limited: false,
                round_start: true,
                delivered_at,
                delivered,
                lost,
                segment_size,
            };
            policer.sample(&sample);
        }
        policer.rate()
    };
    let rate = |segments: u64| segments * BANDWIDTH_UNIT / 100_000;
    assert_eq!(policed([(50, 10), (50, 10)]), Some(rate(50)));
    assert_eq!(policed([(50, 9), (50, 9)]), None, "18 %");
    assert_eq!(policed([(48, 12), (54, 12)]), Some(u64::midpoint(rate(48), rate(54))), "an eighth more");
    assert_eq!(policed([(48, 12), (55, 12)]), None);
}

#[test]
fn bursts_of_acknowledgements_enlarge_the_window() {
    let mut driver = driver();
    driver.reach_probe_bandwidth();
    let before = driver.bbr.aggregation.extra(driver.bbr.bandwidth());
    // 50 segments are acknowledged at once after silence of 50 ms.
    for _ in 0..6 {
        driver.acknowledge(50, 1, 1000);
        driver.acknowledge(0, 49, 1000);
    }
    let after = driver.bbr.aggregation.extra(driver.bbr.bandwidth());
    assert!((49..=100).contains(&after), "{before} {after}");
}

#[test]
fn below_a_rate_segments_leave_one_by_one() {
    let bbr = driver().bbr;
    assert_eq!(bbr.pacing_aggregate(0, 1_199_999), 1);
    assert_eq!(bbr.pacing_aggregate(0, 1_200_000), 2);
    assert_eq!(bbr.pacing_aggregate(5, 1_200_000), 5);
}
