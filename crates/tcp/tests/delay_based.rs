//! BBR version 3, Copa and LEDBAT++ over a path with one bottleneck.

use airpath_core::{Bitrate, Instant, Span};
use airpath_tcp::testing::{Pair, Pipe, Side};
use airpath_tcp::{Algorithm, Bbr3Constants, Config, Profile};

/// Payload of 1448 bytes in packets of 1500.
const SHARE: f64 = 1448.0 / 1500.0;
const ALGORITHMS: [Algorithm; 3] = [Algorithm::Bbr3, Algorithm::Copa, Algorithm::Ledbat];

fn config(algorithm: Algorithm) -> Config {
    let mut config = Profile::Linux6.config();
    config.congestion.algorithm = algorithm;
    config
}

/// BBR, version 3, with these constants.
fn bbr3(constants: Bbr3Constants) -> Config {
    let mut config = config(Algorithm::Bbr3);
    config.congestion.bbr3_constants = constants;
    config
}

/// The client sends through a bottleneck with a queue of `queue` packets.
fn pair(algorithm: Algorithm, rate: u64, round_trip: u64, queue: usize) -> Pair {
    pair_with(&config(algorithm), rate, round_trip, queue)
}

fn pair_with(config: &Config, rate: u64, round_trip: u64, queue: usize) -> Pair {
    let delay = Span::from_millis(round_trip) / 2;
    let up = Pipe::new(delay).rate(Bitrate::from_bps(rate)).queue(queue);
    let mut pair = Pair::new(config, up, Pipe::new(delay));
    pair.verifies = true;
    pair.connection(Side::Client).write(1 << 40);
    pair
}

fn second(seconds: u64) -> Instant {
    Instant::ZERO + Span::from_secs(seconds)
}

/// The used part of the link, and the mean queueing delay in seconds, from one time to another.
fn used_and_queued(pair: &mut Pair, rate: u64, round_trip: f64, from: u64, until: u64) -> (f64, f64) {
    pair.run_until(second(from), |_| false);
    let (begun, before) = (pair.look(Side::Server).received(), *pair.look(Side::Client).statistics());
    pair.run_until(second(until), |_| false);
    let bits = (pair.look(Side::Server).received() - begun) as f64 * 8.0;
    let after = pair.look(Side::Client).statistics();
    let mean =
        (after.rtt_sum.as_secs_f64() - before.rtt_sum.as_secs_f64()) / (after.rtt_samples - before.rtt_samples) as f64;
    (bits / (until - from) as f64 / (rate as f64 * SHARE), mean - round_trip)
}

#[test]
fn the_link_is_used_after_three_seconds_and_the_queue_is_bounded() {
    // LEDBAT++ keeps up to 60 ms in the queue, Copa a few segments, BBR a part of the product.
    for (rate, round_trip) in [(2_000_000, 100), (10_000_000, 40), (50_000_000, 20)] {
        for config in ALGORITHMS.map(config).into_iter().chain([bbr3(Bbr3Constants::Draft06)]) {
            let algorithm = config.congestion.algorithm;
            let mut pair = pair_with(&config, rate, round_trip, 2000);
            let product = round_trip as f64 / 1000.0;
            let (used, queued) = used_and_queued(&mut pair, rate, product, 3, 23);
            let draft = if config.congestion.bbr3_constants == Bbr3Constants::Draft06 { " of the draft" } else { "" };
            print!("{algorithm:?}{draft}, {rate} bit/s, {round_trip} ms: {used:.3} used, ");
            println!("{:.1} ms queued", queued * 1e3);
            // A slowdown of LEDBAT++ costs a tenth of the time at most, ProbeRTT 200 ms in 5 s.
            let least = if algorithm == Algorithm::Ledbat { 0.87 } else { 0.95 };
            assert!(used > least, "{algorithm:?}, {rate} bit/s: {used}");
            let segment = 1500.0 * 8.0 / rate as f64;
            let most = match algorithm {
                Algorithm::Ledbat => 0.065,
                Algorithm::Copa => 8.0 * segment + 0.001,
                _ => 0.35 * product + 4.0 * segment,
            };
            assert!(queued < most, "{algorithm:?}, {rate} bit/s: {queued}");
            assert_eq!(pair.look(Side::Client).statistics().timeouts, 0);
        }
    }
}

#[test]
fn the_rate_of_bbr_while_cruising_is_that_of_the_link() {
    let rate = 10_000_000;
    for (constants, down) in [(Bbr3Constants::Linux, 0.91), (Bbr3Constants::Draft06, 0.90)] {
        let mut pair = pair_with(&bbr3(constants), rate, 40, 1000);
        pair.run_until(second(3), |_| false);
        let expected = rate as f64 * SHARE * 0.99;
        let mut cruising = 0;
        for tick in 0..4000 {
            pair.run_until(second(3) + Span::from_millis(5 * tick), |_| false);
            let ratio = pair.look(Side::Client).pacing_rate().expect("BBR paces").as_bps() as f64 / expected;
            let gain = [1.0, 1.25, down].into_iter().find(|gain| (ratio / gain - 1.0).abs() < 0.02);
            assert!(gain.is_some(), "{constants:?}: {ratio} at {}", pair.now());
            cruising += u32::from(gain == Some(1.0));
        }
        // A cycle takes two to three seconds. The probe and its queue take some ten rounds of it.
        assert!((2400..4000).contains(&cruising), "{constants:?}: {cruising} of 4000");
    }
}

#[test]
fn random_losses_hardly_slow_down_copa_and_bbr() {
    for (algorithm, loss, least) in [(Algorithm::Copa, 0.02, 0.9), (Algorithm::Bbr3, 0.01, 0.8)] {
        let up = Pipe::new(Span::from_millis(20)).rate(Bitrate::from_bps(10_000_000)).queue(200);
        let up = up.chance(7, loss, 0.0, 0.0, Span::ZERO);
        let mut pair = Pair::new(&config(algorithm), up, Pipe::new(Span::from_millis(20)));
        pair.verifies = true;
        pair.connection(Side::Client).write(1 << 40);
        pair.run_until(second(15), |_| false);
        let used = pair.look(Side::Server).received() as f64 * 8.0 / 15.0 / (10_000_000.0 * SHARE);
        println!("{algorithm:?}, {loss}: {used:.3}");
        assert!(used > least, "{algorithm:?}: {used}");
    }
}

#[test]
fn a_loss_does_not_end_the_slow_start_of_copa() {
    // 10 segments double in each round trip of 100 ms, whatever the loss of the twentieth is: 0.4 s
    // later 160 are sent in one.
    let path = |lost: &[u64]| Pipe::new(Span::from_millis(50)).rate(Bitrate::from_bps(100_000_000)).lose(lost);
    let received = |lost: &[u64]| {
        let mut pair = Pair::new(&config(Algorithm::Copa), path(lost), Pipe::new(Span::from_millis(50)));
        pair.connection(Side::Client).write(1 << 40);
        pair.run_until(second(1), |_| false);
        pair.look(Side::Server).received()
    };
    let (whole, with_loss) = (received(&[]), received(&[20]));
    assert!(with_loss as f64 > 0.8 * whole as f64, "{with_loss} of {whole}");
}

#[test]
fn a_shallow_queue_bounds_what_bbr_has_in_flight() {
    // A queue of a quarter of the product of 33 segments: the probe overflows it.
    let mut pair = pair(Algorithm::Bbr3, 10_000_000, 40, 8);
    let (used, _) = used_and_queued(&mut pair, 10_000_000, 0.04, 3, 33);
    let statistics = pair.look(Side::Client).statistics();
    let lost = statistics.retransmitted_segments as f64 / statistics.data_segments as f64;
    println!("{used:.3} used, {lost:.4} sent again");
    assert!(used > 0.9, "{used}");
    // Version 1 keeps two products in flight, and a shallow queue always drops a part.
    assert!(lost < 0.02, "{lost}");
}

#[test]
fn an_outage_is_survived() {
    for algorithm in ALGORITHMS {
        let up = Pipe::new(Span::from_millis(20)).rate(Bitrate::from_bps(10_000_000)).queue(200);
        let up = up.outage(second(5), second(8));
        let mut pair = Pair::new(&config(algorithm), up, Pipe::new(Span::from_millis(20)));
        pair.verifies = true;
        pair.connection(Side::Client).write(1 << 40);
        let (used, _) = used_and_queued(&mut pair, 10_000_000, 0.04, 14, 24);
        assert!(used > 0.85, "{algorithm:?}: {used}");
    }
}

#[test]
fn equal_runs_are_equal_and_copa_refuses_marks() {
    for algorithm in ALGORITHMS {
        let run = || {
            let mut pair = pair(algorithm, 10_000_000, 40, 30);
            pair.run_until(second(10), |_| false);
            pair.look(Side::Server).received()
        };
        assert_eq!(run(), run());
    }
    let mut config = config(Algorithm::Copa);
    config.ecn = true;
    let error = config.check().expect_err("Copa does not react to marks").to_string();
    assert!(error.contains("`ecn`") && error.contains("copa"), "{error}");
}
