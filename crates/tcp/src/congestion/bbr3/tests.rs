//! The phases of BBR, version 3.

use super::*;
use crate::Profile;
use crate::congestion::bbr::testing::{Driver, SIZE};

const SETS: [Bbr3Constants; 2] = [Bbr3Constants::Linux, Bbr3Constants::Draft06];

fn driver() -> Driver<Bbr3> {
    driver_with(Bbr3Constants::Linux)
}

fn driver_with(constants: Bbr3Constants) -> Driver<Bbr3> {
    let mut config = Profile::Linux6.config();
    config.congestion.bbr3_constants = constants;
    Driver::new(Bbr3::new(&config, SIZE as u32))
}

impl Driver<Bbr3> {
    /// Acknowledgements every 10 ms with a round trip's samples until `mode`; returns the time.
    fn run_until(&mut self, mode: Mode) -> Span {
        let start = self.now;
        while self.bbr.mode != mode {
            self.acknowledge(10, 10, 1000);
            assert!(self.now.since(start) < Span::from_secs(8), "{:?}", self.bbr);
        }
        self.now.since(start)
    }

    fn reach_cruise(&mut self) {
        self.in_flight = 90;
        self.run_until(Mode::ProbeBandwidth(Phase::Cruise));
    }
}

#[test]
fn startup_ends_after_three_rounds_without_growth_and_drains_to_the_product() {
    let mut driver = driver();
    let expected = 10 * SIZE * 10 * 710 / 256 * 99 / 100;
    assert!(driver.bbr.pacing.rate.abs_diff(expected) < expected / 1000, "{}", driver.bbr.pacing.rate);
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
    // The product of 100 segments, rounded up twice.
    assert_eq!(driver.bbr.slow_start_threshold(), Some(101 * SIZE));
    driver.in_flight = 101;
    driver.acknowledge(10, 10, 1000);
    assert_eq!(driver.bbr.mode, Mode::ProbeBandwidth(Phase::Down));
    assert_eq!(driver.bbr.pacing.rate, driver.bbr.pacing.rate_of(driver.bbr.bandwidth(), 232));
}

/// The gains of each state: draft-ietf-ccwg-bbr-06 §5.6.1, and Linux. Windows of an estimated
/// product of 100 segments follow them.
#[test]
fn each_phase_has_the_gains_of_its_source() {
    for (set, drain, down) in [(SETS[0], 0.347, 0.91), (SETS[1], 0.5, 0.90)] {
        let mut driver = driver_with(set);
        let gains =
            |driver: &Driver<Bbr3>| (driver.bbr.pacing_gain as f64 / 256.0, driver.bbr.window_gain as f64 / 256.0);
        let check = |driver: &Driver<Bbr3>, pacing: f64, window: f64| {
            let (ours, of_window) = gains(driver);
            assert!((ours - pacing).abs() < 1.0 / 256.0, "{set:?}, {:?}: {ours}", driver.bbr.mode);
            assert!((of_window - window).abs() < f64::EPSILON, "{set:?}, {:?}: {of_window}", driver.bbr.mode);
            let rate = driver.bbr.pacing.rate_of(driver.bbr.bandwidth(), (pacing * 256.0) as u64);
            assert!(driver.bbr.pacing.rate.abs_diff(rate) <= rate / 100, "{:?}", driver.bbr.mode);
        };
        driver.in_flight = 400;
        driver.acknowledge(10, 10, 1000);
        check(&driver, 2.773, 2.0);
        driver.run_until(Mode::Drain);
        check(&driver, drain, 2.0);
        driver.in_flight = 105;
        driver.acknowledge(10, 10, 1000);
        driver.in_flight = 101;
        driver.run_until(Mode::ProbeBandwidth(Phase::Down));
        check(&driver, down, 2.0);
        driver.in_flight = 90;
        driver.run_until(Mode::ProbeBandwidth(Phase::Cruise));
        check(&driver, 1.0, 2.0);
        driver.run_until(Mode::ProbeBandwidth(Phase::Refill));
        check(&driver, 1.0, 2.0);
        for _ in 0..3 {
            driver.acknowledge(10, 10, 1000);
        }
        // Windows have room for an acknowledgement of 10 segments (`extra_acked`), too.
        assert!((202..=213).contains(&driver.bbr.window), "two products: {}", driver.bbr.window);
        driver.run_until(Mode::ProbeBandwidth(Phase::Up));
        check(&driver, 1.25, 2.25);
        for _ in 0..10 {
            driver.acknowledge(10, 10, 1000);
        }
        // 2.25 products, and two segments.
        assert!((227..=240).contains(&driver.bbr.window), "{}", driver.bbr.window);
    }
}

/// draft-ietf-ccwg-bbr-06 §5.3.2 and §10.4: with more in flight than the product, the drain ends
/// after three rounds. In Linux it does not.
#[test]
fn the_drain_of_the_draft_ends_after_three_rounds() {
    for set in SETS {
        let mut driver = driver_with(set);
        driver.in_flight = 400;
        driver.run_until(Mode::Drain);
        let mut rounds = 0;
        while driver.bbr.mode == Mode::Drain && rounds < 10 {
            driver.acknowledge(100, 100, 1000);
            rounds += 1;
        }
        let is_draft = set == Bbr3Constants::Draft06;
        assert_eq!((driver.bbr.mode == Mode::Drain, rounds), if is_draft { (false, 4) } else { (true, 10) });
    }
}

/// The part that remains: 1 - `bbr_beta` in Linux, BBR.Beta of draft-ietf-ccwg-bbr-06 §2.8. Both
/// are 0.7, rounded to 256ths.
#[test]
fn losses_cut_to_seven_tenths() {
    for (set, part) in [(SETS[0], 180), (SETS[1], 179)] {
        let mut driver = driver_with(set);
        driver.reach_cruise();
        // A tenth is delivered. In the first round the deliveries before it hold the bound.
        let (mut bound, mut cuts) = (driver.bbr.most_bandwidth(), 0);
        for _ in 0..40 {
            let sample = RateSample { losses: 1, ..driver.sample(10, 1, 100) };
            driver.bbr.on_rate_sample(&sample);
            let now = driver.bbr.short_term.bandwidth.min(bound);
            if now < bound {
                assert_eq!(now, bound * part / 256, "{set:?}");
                (bound, cuts) = (now, cuts + 1);
            }
        }
        assert!(cuts > 0);
    }
}

#[test]
fn probes_are_two_to_three_seconds_or_63_rounds_apart() {
    let mut driver = driver();
    driver.reach_cruise();
    let wait = driver.run_until(Mode::ProbeBandwidth(Phase::Refill));
    assert!((Span::from_millis(1900)..Span::from_millis(3020)).contains(&wait), "{wait}");
    let refill = driver.run_until(Mode::ProbeBandwidth(Phase::Up));
    assert!((Span::from_millis(90)..Span::from_millis(120)).contains(&refill), "one round: {refill}");
    // Three rounds without growth end the probe.
    driver.in_flight = 125;
    let up = driver.run_until(Mode::ProbeBandwidth(Phase::Down));
    assert!((Span::from_millis(300)..Span::from_millis(430)).contains(&up), "{up}");
    assert_eq!(driver.bbr.long_term, NONE, "without a loss there is no bound");
}

#[test]
fn losses_outside_of_probes_cut_the_short_term_bounds_until_the_next_probe() {
    let mut driver = driver();
    driver.reach_cruise();
    let bandwidth = driver.bbr.most_bandwidth();
    // Half as much is delivered as before, with losses. In the first round the deliveries before it
    // hold the bounds; the second cuts them to 0.7.
    driver.bbr.on_segment_lost(
        driver.now,
        &LostSegment { in_flight: 90, lost: 1, delivered: driver.delivered, app_limited: false },
    );
    for _ in 0..22 {
        let sample = RateSample { losses: 1, ..driver.sample(10, 5, 500) };
        driver.bbr.on_rate_sample(&sample);
    }
    let bound = driver.bbr.short_term.bandwidth;
    assert!(bound < bandwidth && bound >= bandwidth * LOSS_SHARE / 100, "{bound} of {bandwidth}");
    assert_eq!(driver.bbr.bandwidth(), bound);
    assert_eq!(driver.bbr.long_term, NONE, "one loss is no overshoot of a probe");
    driver.run_until(Mode::ProbeBandwidth(Phase::Refill));
    assert_eq!(driver.bbr.short_term, Bounds::NONE);
}

/// 1 - beta, in per cent, less the rounding of 256ths.
const LOSS_SHARE: u64 = 69;

#[test]
fn a_probe_with_too_many_losses_sets_the_long_term_bound_with_headroom() {
    let mut driver = driver();
    driver.reach_cruise();
    driver.run_until(Mode::ProbeBandwidth(Phase::Up));
    driver.in_flight = 120;
    let mut lost = LostSegment { in_flight: 120, lost: 2, delivered: driver.delivered, app_limited: false };
    driver.bbr.on_segment_lost(driver.now, &lost);
    assert_eq!(driver.bbr.mode, Mode::ProbeBandwidth(Phase::Up), "2 of 120 are below 2 %");
    lost.lost = 3;
    driver.bbr.on_segment_lost(driver.now, &lost);
    assert_eq!(driver.bbr.mode, Mode::ProbeBandwidth(Phase::Down));
    // The segment with which the losses exceed 2 % (5 of 256) of 119.
    let bound = driver.bbr.long_term;
    assert!((119..=121).contains(&bound), "{bound}");
    driver.in_flight = 90;
    driver.run_until(Mode::ProbeBandwidth(Phase::Cruise));
    driver.acknowledge(10, 10, 1000);
    let headroom = bound * (UNIT * 15 / 100) / UNIT;
    assert!(driver.bbr.window <= bound - headroom, "{} of {bound}", driver.bbr.window);
}

#[test]
fn many_losses_in_a_round_end_startup() {
    let mut driver = driver();
    driver.in_flight = 200;
    driver.acknowledge(100, 80, 800);
    for _ in 0..30 {
        let sample = RateSample { losses: 2, lost: 20, recovery: true, ..driver.sample(10, 10, 1000) };
        driver.bbr.on_rate_sample(&sample);
    }
    assert!(driver.bbr.signals.is_full && driver.bbr.long_term != NONE, "{:?}", driver.bbr);
}

#[test]
fn the_round_trip_is_probed_with_half_a_product() {
    let mut driver = driver();
    driver.in_flight = 90;
    driver.reach_cruise();
    while driver.bbr.mode != Mode::ProbeRoundTrip {
        // Round trips with a queue never lower the least.
        let sample = RateSample { round_trip: Some(Span::from_millis(110)), ..driver.sample(10, 10, 1000) };
        driver.bbr.on_rate_sample(&sample);
        assert!(driver.now < Instant::ZERO + Span::from_secs(7), "{:?}", driver.bbr.mode);
    }
    assert!(driver.now > Instant::ZERO + Span::from_secs(5), "{}", driver.now);
    assert_eq!(driver.bbr.window, 51);
    assert!(driver.bbr.limits_itself());
    driver.in_flight = 50;
    let took = driver.run_until(Mode::ProbeBandwidth(Phase::Cruise));
    assert!((Span::from_millis(200)..Span::from_millis(330)).contains(&took), "{took}");
    driver.acknowledge(10, 10, 1000);
    assert!(driver.bbr.window > 90, "the window is restored: {}", driver.bbr.window);
}

#[test]
fn spurious_losses_restore_the_bounds() {
    let mut driver = driver();
    driver.reach_cruise();
    let congested = Congested {
        now: driver.now,
        signal: Signal::Loss,
        again: false,
        flight_size: 90 * SIZE,
        window_limit: u64::MAX,
    };
    driver.bbr.on_congestion(&congested);
    for _ in 0..12 {
        let sample = RateSample { losses: 1, recovery: true, ..driver.sample(10, 5, 500) };
        driver.bbr.on_rate_sample(&sample);
    }
    assert!(driver.bbr.short_term != Bounds::NONE);
    driver.bbr.undo(driver.now);
    assert_eq!(driver.bbr.short_term, Bounds::NONE);
}
