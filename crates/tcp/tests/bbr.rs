//! BBR over a path with one bottleneck.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use airpath_core::{Bitrate, Event, Instant, Memory, Span, TcpTrigger};
use airpath_tcp::testing::{Pair, Pipe, Side};
use airpath_tcp::{Acknowledged, Algorithm, Config, Congested, CongestionControl, Limit, Profile, Segment};

/// Payload of 1448 bytes in packets of 1500.
const SHARE: f64 = 1448.0 / 1500.0;

fn bbr() -> Config {
    let mut config = Profile::Linux6.config();
    config.congestion.algorithm = Algorithm::Bbr;
    config
}

/// The client sends through a bottleneck with a queue of `queue` packets.
fn pair(rate: u64, round_trip: Span, queue: usize) -> Pair {
    let up = Pipe::new(round_trip / 2).rate(Bitrate::from_bps(rate)).queue(queue);
    let down = Pipe::new(round_trip / 2).rate(Bitrate::from_bps(rate));
    let mut pair = Pair::new(&bbr(), up, down);
    pair.verifies = true;
    pair
}

fn second(seconds: u64) -> Instant {
    Instant::ZERO + Span::from_secs(seconds)
}

#[test]
fn the_delivery_rate_is_that_of_the_bottleneck() {
    for (rate, millis) in [(1_000_000, 100), (10_000_000, 40), (50_000_000, 200)] {
        let mut pair = pair(rate, Span::from_millis(millis), 1000);
        pair.connection(Side::Client).write(1 << 40);
        pair.run_until(second(4), |_| false);
        let measured = pair.look(Side::Client).delivery_rate().expect("there are samples").as_bps() as f64;
        let expected = rate as f64 * SHARE;
        assert!((measured / expected - 1.0).abs() < 0.02, "{measured} of {expected}");
    }
}

#[test]
fn the_link_is_used_and_the_queue_stays_short() {
    let mut pair = pair(10_000_000, Span::from_millis(40), 1000);
    pair.connection(Side::Client).write(1 << 40);
    pair.run_until(second(2), |_| false);
    let begun = pair.look(Side::Server).received();
    let before = *pair.look(Side::Client).statistics();
    pair.run_until(second(9), |_| false);
    let used = (pair.look(Side::Server).received() - begun) as f64 * 8.0 / 7.0 / (10_000_000.0 * SHARE);
    assert!(used > 0.97, "{used}");
    let after = pair.look(Side::Client).statistics();
    let samples = after.rtt_samples - before.rtt_samples;
    let mean = (after.rtt_sum.as_secs_f64() - before.rtt_sum.as_secs_f64()) / samples as f64;
    // A window of two products bounds the round trip to 80 ms; CUBIC fills the queue of 1.2 s.
    assert!((0.040..0.055).contains(&mean), "{mean}");
    assert_eq!(after.retransmitted_segments, 0);
}

#[test]
fn the_round_trip_is_probed_with_four_segments() {
    let mut pair = pair(10_000_000, Span::from_millis(40), 1000);
    pair.connection(Side::Client).write(1 << 40);
    let mut least = Vec::new();
    while pair.now() < second(25) {
        let until = pair.now() + Span::from_millis(1);
        pair.run_until(until, |_| false);
        let in_flight = pair.look(Side::Client).unacknowledged() / 1448;
        if pair.now() > second(1) && in_flight <= 4 {
            least.push(pair.now());
        }
    }
    let gaps = least.windows(2).filter(|pair| pair[1].since(pair[0]) > Span::from_secs(1)).count();
    assert_eq!(gaps, 1, "probed twice in 25 s: {least:?}");
    let first = least.iter().take_while(|at| **at < least[0] + Span::from_secs(1)).count();
    assert!((200..=260).contains(&first), "{first} ms");
}

#[test]
fn random_losses_hardly_slow_it_down() {
    let up = Pipe::new(Span::from_millis(20)).rate(Bitrate::from_bps(10_000_000)).queue(200);
    let up = up.chance(7, 0.02, 0.0, 0.0, Span::ZERO);
    let mut pair = Pair::new(&bbr(), up, Pipe::new(Span::from_millis(20)));
    pair.verifies = true;
    pair.connection(Side::Client).write(1 << 40);
    pair.run_until(second(10), |_| false);
    let used = pair.look(Side::Server).received() as f64 * 8.0 / 10.0 / (10_000_000.0 * SHARE);
    assert!(used > 0.85, "{used}");
}

/// In Linux, the window of BBR bounds all retransmissions but those of the timer. Start-up loses
/// some hundred segments, and a recovery without SACK repairs one per round trip. After ten, the
/// maximum of the rate is forgotten, and the window is smaller than what is in flight.
#[test]
fn retransmissions_wait_for_the_window() {
    let up = Pipe::new(Span::from_millis(50)).rate(Bitrate::from_bps(10_000_000)).queue(100);
    let config = Config { selective_acknowledgement: false, timestamps: false, ..bbr() };
    let mut pair = Pair::new(&config, up, Pipe::new(Span::from_millis(50)));
    pair.verifies = true;
    pair.connection(Side::Client).write(1 << 40);
    let timeouts = |pair: &mut Pair, seconds| {
        pair.run_until(second(seconds), |_| false);
        pair.look(Side::Client).statistics().timeouts
    };
    assert_eq!((timeouts(&mut pair, 3), timeouts(&mut pair, 4)), (0, 1));
}

#[test]
fn after_an_idle_time_there_is_no_burst() {
    let mut pair = pair(10_000_000, Span::from_millis(40), 1000);
    pair.connection(Side::Client).write(5_000_000);
    pair.run_until(second(10), |_| false);
    assert_eq!(pair.look(Side::Server).received(), 5_000_000);
    pair.sent = Some(Vec::new());
    pair.with_connection(Side::Client, |connection, _, _| connection.write(1_000_000));
    pair.run_until(second(11), |_| false);
    let sent = pair.sent.take().expect("it was recorded");
    let data: Vec<&(Instant, Side, Segment)> = sent.iter().filter(|(.., segment)| segment.length > 0).collect();
    // 20 segments at 10 Mbit/s take 24 ms.
    let took = data[20].0.since(data[0].0);
    assert!((Span::from_millis(20)..Span::from_millis(28)).contains(&took), "{took}");
}

#[test]
fn late_calls_cost_little_and_equal_runs_are_equal() {
    let run = |lateness: Span| {
        let mut pair = pair(10_000_000, Span::from_millis(40), 100);
        pair.lateness = lateness;
        pair.connection(Side::Client).write(1 << 40);
        pair.run_until(second(10), |_| false);
        pair.look(Side::Server).received()
    };
    let exact = run(Span::ZERO);
    assert_eq!(run(Span::ZERO), exact);
    // A late departure shortens the next gap: 300 µs of each 2.4 ms cost nothing.
    let late = run(Span::from_micros(300));
    assert!(late as f64 > 0.99 * exact as f64, "{late} {exact}");
}

#[test]
fn smaller_segments_are_paced_at_the_rate_of_the_bottleneck() {
    let mut pair = pair(10_000_000, Span::from_millis(40), 1000);
    pair.connection(Side::Client).write(1 << 40);
    pair.run_until(second(3), |_| false);
    let sequence = pair.look(Side::Client).acknowledged() as u32 + 1;
    pair.with_connection(Side::Client, |connection, now, _| {
        // 20 bytes of TCP header, 12 of timestamps, and 500 of payload.
        assert!(connection.handle_packet_too_big(now, sequence, 532));
    });
    assert_eq!(pair.look(Side::Client).segment_size(), 500);
    // Until the bandwidth of ten round trips is that of the smaller segments.
    let mut most = 0;
    while pair.now() < second(8) {
        let until = pair.now() + Span::from_millis(5);
        pair.run_until(until, |_| false);
        most = most.max(pair.look(Side::Client).pacing_rate().expect("BBR paces").as_bps());
    }
    assert!(most as f64 <= 10_000_000.0 * 1.25, "{most}");
    let measured = pair.look(Side::Client).delivery_rate().expect("there are samples").as_bps() as f64;
    // Packets of 552 bytes.
    let expected = 10_000_000.0 * 500.0 / 552.0;
    assert!((measured / expected - 1.0).abs() < 0.02, "{measured} of {expected}");
}

/// Takes over with a constant window and rate, and counts its openings.
#[derive(Debug)]
struct Steady(Arc<AtomicU32>);

impl CongestionControl for Steady {
    fn name(&self) -> &'static str {
        "steady"
    }
    fn takes_over(&self) -> bool {
        true
    }
    fn on_established(&mut self, now: Instant, round_trip: Option<Span>, _: u64) {
        assert!(now > Instant::ZERO && round_trip.is_some());
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn on_ack(&mut self, _: &Acknowledged) {}
    fn on_congestion(&mut self, _: &Congested) {}
    fn undo(&mut self, _: Instant) {}
    fn on_idle(&mut self, _: Instant, _: u64, _: u64) {}
    fn congestion_window(&self) -> u64 {
        150_000
    }
    fn pacing_rate(&self) -> Option<Bitrate> {
        Some(Bitrate::from_bps(800_000))
    }
    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }
}

#[test]
fn a_controller_learns_of_the_opening_once_however_late_it_is_installed() {
    for open in [false, true] {
        let mut pair = pair(10_000_000, Span::from_millis(40), 1000);
        let count = Arc::new(AtomicU32::new(0));
        if open {
            pair.run_until(second(1), |_| false);
        }
        pair.connection(Side::Client).set_congestion_control(Box::new(Steady(Arc::clone(&count))));
        assert_eq!(count.load(Ordering::Relaxed), u32::from(open));
        pair.connection(Side::Client).write(100_000);
        pair.run_until(second(3), |_| false);
        assert_eq!(pair.look(Side::Server).received(), 100_000);
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn the_retransmission_of_the_timer_does_not_wait_for_the_pacer() {
    // The window allows 1.5 s at the pacing rate, so a segment waits when the timer expires.
    let up = Pipe::new(Span::from_millis(50)).rate(Bitrate::from_bps(1_000_000)).queue(100);
    let mut config = bbr();
    // The receive window does not make it wait.
    config.receive_buffer.initial = config.receive_buffer.maximum;
    config.receive_buffer.first_offer = Limit::UNLIMITED;
    let mut pair = Pair::new(&config, up.outage(second(5), second(60)), Pipe::new(Span::from_millis(50)));
    pair.connection(Side::Client).set_congestion_control(Box::new(Steady(Arc::default())));
    pair.connection(Side::Client).write(1 << 40);
    pair.run_until(second(5), |_| false);
    pair.events = Some(Memory::default());
    pair.sent = Some(Vec::new());
    pair.run_until(second(6), |_| false);
    let events = pair.events.take().expect("they were kept").events;
    let is_timeout = |event: &Event| matches!(event, Event::Tcp(tcp) if tcp.trigger == TcpTrigger::Timeout);
    let expiry = events.iter().find(|(.., event)| is_timeout(event)).expect("the timer expires").0;
    let sent = pair.sent.take().expect("it was recorded");
    let times = |until: Instant| sent.iter().map(|(at, ..)| *at).filter(move |at| *at < until);
    let before = times(expiry).max().expect("it was sending");
    assert!(expiry.since(before) < Span::from_millis(14), "a segment per 14.5 ms: {before} {expiry}");
    assert!(sent.iter().any(|(at, ..)| *at == expiry), "nothing was sent at {expiry}");
}
