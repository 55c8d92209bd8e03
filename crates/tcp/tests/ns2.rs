//! The profile `ns2-newreno` against ns-2 2.35 itself: transfers over 10 Mbit/s, 110 ms, then 384 kbit/s, 20 ms; 64 kbit/s
//! back.

use airpath_core::{Bitrate, Instant, Span};
use airpath_tcp::testing::{Hop, Pair, Pipe, Side};
use airpath_tcp::{Config, Profile};

/// The study's path without its radio. In ns-2 a queue of 100 packets counts the one in transmission.
fn path() -> (Pipe, Pipe) {
    let kbit = |rate: u64| Some(Bitrate::from_bps(rate * 1000));
    let down = vec![
        Hop::new(kbit(10_000), Span::from_millis(110), usize::MAX),
        Hop::new(kbit(384), Span::from_millis(20), 99),
    ];
    let up =
        vec![Hop::new(kbit(64), Span::from_millis(20), 99), Hop::new(kbit(10_000), Span::from_millis(110), usize::MAX)];
    (Pipe::of(up), Pipe::of(down))
}

fn transfer(config: &Config, bytes: u64) -> f64 {
    let (up, down) = path();
    let mut pair = Pair::new(config, up, down);
    pair.verifies = true;
    pair.connection(Side::Server).write(bytes);
    let end = Instant::ZERO + Span::from_secs(1000);
    assert!(pair.run_until(end, |pair| pair.look(Side::Server).acknowledged() >= bytes));
    println!("{:?}", pair.look(Side::Server).statistics());
    pair.now().as_secs_f64()
}

#[test]
fn times() {
    let config = Config { opening_segment: true, ..Profile::Ns2NewReno.config() };
    println!("{}", transfer(&config, 16_000_000));
    println!("{}", transfer(&config, 50_000));
    let mut quick = config.clone();
    quick.delayed_ack.every = 1;
    println!("{}", transfer(&quick, 50_000));
    println!("{}", transfer(&Profile::Ns2NewReno.config(), 50_000));
}
