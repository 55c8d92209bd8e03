//! Windows under loss, compared with formulas.

use airpath_core::{Bitrate, Bytes, Instant, Span};
use airpath_tcp::testing::{Hop, Pair, Pipe, Side};
use airpath_tcp::{
    Algorithm, Config, Congestion, Counting, CubicGrowth, HyStartVariant, InitialWindow, Limit, Profile, Recovery,
};

/// Half of the round trip: the path only delays.
const DELAY: Span = Span::from_millis(50);
const ROUND_TRIP: f64 = 0.1;

/// Selective acknowledgements, and no setting but the algorithm affects the window.
fn config(algorithm: Algorithm) -> Config {
    let base = Profile::Linux6.config();
    let mut config = Config {
        timestamps: false,
        window_validation: false,
        congestion: Congestion { algorithm, hystart: HyStartVariant::Off, fast_convergence: false, ..base.congestion },
        recovery: Recovery { proportional_reduction: false, ..base.recovery },
        ..base
    };
    // The formulas allow fractions of a segment.
    config.congestion.halve_to_whole_segments = false;
    config.receive_buffer.initial = Bytes::new(100 << 20);
    config.receive_buffer.maximum = Bytes::new(100 << 20);
    config.delayed_ack.every = 1;
    config
}

/// Mean segments in flight over `losses` losses after the first `ignored`, with one loss per
/// `period` segments.
fn mean_window(config: &Config, path: Pipe, period: f64, ignored: u32, losses: u32) -> f64 {
    let mut pair = Pair::new(config, path, Pipe::new(DELAY));
    let size = 1460;
    let bytes = |count: f64| (count * period) as u64 * size;
    pair.connection(Side::Client).write(bytes(f64::from(ignored + losses) + 20.0));
    let end = Instant::ZERO + Span::from_secs(100_000);
    assert!(pair.run_until(end, |pair| pair.look(Side::Server).received() >= bytes(f64::from(ignored))));
    let begin = (pair.now(), pair.look(Side::Server).received());
    assert!(pair.run_until(end, |pair| pair.look(Side::Server).received() >= bytes(f64::from(ignored + losses))));
    let segments = (pair.look(Side::Server).received() - begin.1) as f64 / size as f64;
    let statistics = pair.look(Side::Client).statistics();
    // The formulas exclude timeouts. A retransmission that is lost as well may need one.
    assert!(statistics.timeouts * 50 <= statistics.fast_retransmits, "{statistics:?}");
    segments * ROUND_TRIP / pair.now().since(begin.0).as_secs_f64()
}

/// One of every `period` segments is lost.
fn periodic(period: u32, losses: u32) -> Pipe {
    let numbers: Vec<u64> = (1..=losses).map(|n| u64::from(n * period)).collect();
    Pipe::new(DELAY).lose(&numbers)
}

fn assert_near(found: f64, expected: f64, tolerance: f64, what: &str) {
    let ratio = found / expected;
    println!("{what}: {found:.2} {expected:.2} {ratio:.4}");
    assert!((ratio - 1.0).abs() <= tolerance, "{what}: {found:.2} segments, expected {expected:.2}, ratio {ratio:.3}");
}

/// The mean window of a sawtooth that loses one of `period` segments, grows by one segment in each
/// `slowness` round trips, and is constant for one round trip after each loss. With 2h the window
/// at the loss, h + (h + 1) + … + 2h segments are sent while it grows, each `slowness` times, and h
/// more in the recovery; for large windows that is Mathis' law.
fn sawtooth(period: f64, slowness: f64) -> f64 {
    let (a, b) = (1.5 * slowness, 1.5 * slowness + 1.0);
    let half = ((b * b + 4.0 * a * period).sqrt() - b) / (2.0 * a);
    period / ((half + 1.0) * slowness + 1.0)
}

#[test]
fn mathis_law_with_periodic_loss() {
    // Mathis et al. 1997, equation 3: W = sqrt(3/2) / sqrt(p). It differs from the sawtooth by the
    // recovery, up to 1 / (h + 2) of the time.
    for (period, validity) in [(500, 0.07), (2000, 0.04), (10_000, 0.02)] {
        let law = (1.5 * f64::from(period)).sqrt();
        let found = mean_window(&config(Algorithm::NewReno), periodic(period, 60), f64::from(period), 10, 40);
        assert_near(found, law, validity, &format!("one of {period}"));
        assert_near(found, sawtooth(f64::from(period), 1.0), 0.015, &format!("one of {period}"));
    }
}

#[test]
fn a_fixed_window_stays_through_losses() {
    // One round trip in which nothing new is acknowledged for each loss at most: 20 of 1000
    // segments.
    let mut config = config(Algorithm::Fixed);
    config.congestion.fixed_window = 20;
    let found = mean_window(&config, periodic(1000, 60), 1000.0, 10, 40);
    assert_near(found, 20.0, 0.021, "a window of 20 segments");
}

#[test]
fn mathis_law_with_delayed_acknowledgements() {
    // Counting acknowledgements, half of them mean half the growth: sqrt(3/4). Counting bytes,
    // nothing changes.
    let mut delayed = config(Algorithm::NewReno);
    delayed.delayed_ack.every = 2;
    delayed.delayed_ack.quick = 0;
    delayed.delayed_ack.quick_growth = false;
    let bytes = mean_window(&delayed, periodic(2000, 60), 2000.0, 10, 40);
    assert_near(bytes, sawtooth(2000.0, 1.0), 0.02, "bytes");
    delayed.congestion.counting = Counting::Acknowledgements;
    let counted = mean_window(&delayed, periodic(2000, 60), 2000.0, 10, 40);
    assert_near(counted, sawtooth(2000.0, 2.0), 0.03, "acknowledgements");
}

#[test]
fn mathis_law_with_random_loss() {
    // Between sqrt(3/2) of periodic loss and sqrt(2), which holds where the intervals between
    // losses are independent (Altman, Avrachenkov and Barakat 2000). The mean of eight runs of 100
    // losses has a standard error of 2 %.
    let loss = 0.001_f64;
    let windows = (0..8).map(|seed| {
        let path = Pipe::new(DELAY).chance(seed, loss, 0.0, 0.0, Span::ZERO);
        mean_window(&config(Algorithm::NewReno), path, 1.0 / loss, 10, 100)
    });
    let mean = windows.sum::<f64>() / 8.0;
    let (low, high) = ((1.5 / loss).sqrt(), (2.0 / loss).sqrt());
    assert!((0.96 * low..1.04 * high).contains(&mean), "{mean}, expected {low} to {high}");
}

#[test]
fn the_response_of_cubic() {
    // RFC 9438 §5.1: W = (C (3 + b) / (4 (1 - b)))^(1/4) (RTT / p)^(3/4) = 1.054 (RTT / p)^(3/4),
    // for the cubic curve alone, which is (3 + b) / 4 of the window at the loss. The first loss is
    // placed at that window: the curve is so flat there that any other start converges too slowly.
    // The window is constant in a recovery, and leads by a round trip.
    let mut cubic = config(Algorithm::Cubic);
    cubic.congestion.reno_friendly = false;
    for (period, tolerance) in [(1000, 0.03), (3000, 0.02), (10_000, 0.02), (30_000, 0.02)] {
        let expected = 1.054 * libm::pow(ROUND_TRIP * f64::from(period), 0.75);
        let peak = (expected / 0.925) as u32;
        cubic.initial_window = InitialWindow::Segments(peak);
        cubic.initial_slow_start_threshold = Limit::at_most(peak);
        let numbers: Vec<u64> = (0..60).map(|n| u64::from(peak / 2 + n * period)).collect();
        let found = mean_window(&cubic, Pipe::new(DELAY).lose(&numbers), f64::from(period), 5, 30);
        assert_near(found, expected, tolerance, &format!("one of {period}"));
    }
}

#[test]
fn cubic_is_friendly_to_reno() {
    // RFC 9438 §4.3: where the curve is slower than Reno, as at short round trips and small
    // windows, it uses the window of additive increase of 0.53 and decrease to 0.7, which is Reno's
    // on average: sqrt(3/2) / sqrt(p).
    let expected = 300.0_f64.sqrt();
    let of_linux = mean_window(&config(Algorithm::Cubic), periodic(200, 90), 200.0, 30, 40);
    assert_near(of_linux, expected, 0.15, "of Linux");
    let mut rfc = config(Algorithm::Cubic);
    rfc.congestion.cubic_growth = CubicGrowth::Rfc9438;
    let friendly = mean_window(&rfc, periodic(200, 90), 200.0, 30, 40);
    assert_near(friendly, expected, 0.15, "friendly");
    let mut alone = rfc;
    alone.congestion.reno_friendly = false;
    let alone = mean_window(&alone, periodic(200, 90), 200.0, 30, 40);
    assert!(alone < 0.8 * friendly, "the curve alone gives {alone}, with Reno {friendly}");
}

#[test]
fn westwood_keeps_the_window_that_the_link_needs() {
    // Grieco and Mascolo 2004: losses that are not congestion do not halve the rate. A link of 500
    // segments per second and 100 ms needs 50 segments; NewReno with one loss in 500 has 27
    // (Mathis).
    let window = |algorithm| {
        let size = 1460 + 40;
        let link = Hop::new(Some(Bitrate::from_bps(500 * size * 8)), DELAY, 100);
        let numbers: Vec<u64> = (1..=90).map(|n| n * 500).collect();
        mean_window(&config(algorithm), Pipe::of(vec![link]).lose(&numbers), 500.0, 10, 40)
    };
    let (reno, westwood) = (window(Algorithm::NewReno), window(Algorithm::Westwood));
    println!("new-reno {reno:.1}, westwood+ {westwood:.1}");
    assert!(reno < 32.0, "{reno}");
    assert!(westwood > 1.3 * reno, "{westwood}, and {reno} with NewReno");
}
