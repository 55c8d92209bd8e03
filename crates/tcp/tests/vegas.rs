//! Vegas over a path with one bottleneck.

use airpath_core::{Bitrate, Instant, Span};
use airpath_tcp::testing::{Pair, Pipe, Side};
use airpath_tcp::{Algorithm, Profile};

#[test]
fn the_link_is_used_with_a_few_segments_in_the_queue() {
    let mut config = Profile::Linux6.config();
    config.congestion.algorithm = Algorithm::Vegas;
    let rate = 10_000_000;
    let up = Pipe::new(Span::from_millis(20)).rate(Bitrate::from_bps(rate)).queue(1000);
    let mut pair = Pair::new(&config, up, Pipe::new(Span::from_millis(20)));
    pair.verifies = true;
    pair.connection(Side::Client).write(1 << 40);
    let second = |seconds| Instant::ZERO + Span::from_secs(seconds);
    pair.run_until(second(10), |_| false);
    let (begun, before) = (pair.look(Side::Server).received(), *pair.look(Side::Client).statistics());
    pair.run_until(second(20), |_| false);
    let used = (pair.look(Side::Server).received() - begun) as f64 * 8.0 / 10.0 / (rate as f64 * 1448.0 / 1500.0);
    assert!(used > 0.98, "{used}");
    let after = pair.look(Side::Client).statistics();
    let queue = (after.rtt_sum.as_secs_f64() - before.rtt_sum.as_secs_f64())
        / (after.rtt_samples - before.rtt_samples) as f64
        - 0.040;
    // A segment takes 1.2 ms. Two to four wait, beside the one in transmission and the one that
    // waits for a delayed acknowledgement.
    assert!((0.002..0.008).contains(&queue), "{queue}");
    assert_eq!(after.retransmitted_segments, 0);
}
