//! One mobile on the link of the measurements with kernel ends: 400 kbit/s, 150 ms each way, a
//! buffer of 256 kB.

use crate::support::{End, Line, Network, Script, Talk};
use airpath_core::{Bitrate, Bytes, Direction, Event, Instant, Memory, Seed, Span};
use airpath_path::Middlebox;
use airpath_proxy::{BudgetSource, Config, Discipline, Proxy};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

fn radio(lose_every: u64) -> [Line; 2] {
    let line = |lose_every| {
        let mut line = Line::new(Span::from_millis(150));
        line.rate = Some(Bitrate::from_bps(400_000));
        line.queue = 256_000;
        line.lose_every = lose_every;
        line
    };
    [line(lose_every), line(0)]
}

#[derive(Debug)]
struct Measured {
    bulk: f64,
    short: Vec<f64>,
    /// Greatest smoothed round trip towards the mobile, and the least round trip.
    smoothed: f64,
    least: f64,
}

/// A bulk download of 300 kB, and four of 8 kB by new connections from 2.5 s on, one in each
/// `stagger` milliseconds.
fn measure(config: Option<Config>, lose_every: u64, stagger: Option<u64>) -> Measured {
    let mut talks = vec![Talk::download(at(0), 300_000)];
    let shorts = stagger.map(|stagger| (0..4).map(move |index| Talk::download(at(2500 + index * stagger), 8000)));
    talks.extend(shorts.into_iter().flatten());
    let count = talks.len();
    let proxy = config.map(|config| Box::new(Proxy::new(config, Seed::new(1).stream("proxy"))) as Box<dyn Middlebox>);
    let wired = [Line::new(Span::from_millis(1)), Line::new(Span::from_millis(1))];
    let mut log = Memory::default();
    let mut network = Network::new(proxy, talks, wired, radio(lose_every), Some(&mut log));
    network.run(at(600_000));
    network.check_bytes();
    let (bulk, short) = (network.download_time(0), (1..count).map(|flow| network.download_time(flow)).collect());
    drop(network);
    let (mut smoothed, mut least) = (0.0_f64, f64::INFINITY);
    for (.., event) in &log.events {
        let Event::Tcp(event) = event else { continue };
        if event.direction == Direction::Down {
            smoothed = event.smoothed_round_trip.map_or(smoothed, |each| smoothed.max(each.as_secs_f64()));
            least = event.round_trip.map_or(least, |each| least.min(each.as_secs_f64()));
        }
    }
    Measured { bulk, short, smoothed, least }
}

/// 400 kbit/s × 330 ms × 1.15, and the time of a delayed acknowledgement.
const BUDGET: Bytes = Bytes::new(20_000);

/// The bulk download over kernel ends without a proxy, beside the same short ones (CUBIC), in
/// seconds.
const KERNEL_BULK: f64 = 7.26;

#[test]
fn short_transfers_pass_a_bulk_download() {
    println!("without a proxy: {:.3?}", measure(None, 0, Some(500)));
    for stagger in [0, 1200] {
        println!("one every {stagger} ms: {:.3?}", measure(Some(Config::new(BUDGET)), 0, Some(stagger)));
    }
    let with = measure(Some(Config::new(BUDGET)), 0, Some(500));
    println!("one every 500 ms: {with:.3?}");
    assert!(with.short.iter().all(|time| *time <= 1.2), "{with:?}");
    assert!(with.smoothed <= 2.0 * with.least, "{with:?}");
    assert!(with.bulk <= 1.05 * KERNEL_BULK, "{with:?}");
    let alone = [None, Some(Config::new(BUDGET))].map(|config| measure(config, 0, None).bulk);
    println!("bulk alone, without and with: {alone:.3?}");
    assert!(alone[1] <= 1.05 * alone[0], "{alone:?}");
}

#[test]
fn short_transfers_pass_a_bulk_download_that_loses_packets() {
    println!("every 40th lost, without a proxy: {:.3?}", measure(None, 40, Some(500)));
    let with = measure(Some(Config::new(BUDGET)), 40, Some(500));
    println!("every 40th lost: {with:.3?}");
    assert!(with.short.iter().all(|time| *time <= 1.3), "{with:?}");
}

/// Greatest round trip of uploads of 300 kB, and when the last was complete, in seconds.
fn upload(config: Option<Config>, count: u64) -> (f64, f64) {
    let talks = (0..count).map(|index| {
        let talk = Talk::download(at(index * 500), 100);
        let script = |sends, after, closes_last| Script { closes_last, ..Script::sends(sends, after) };
        Talk { mobile: script(300_000, 0, false), server: script(0, 300_000, true), ..talk }
    });
    let proxy = config.map(|config| Box::new(Proxy::new(config, Seed::new(1).stream("proxy"))) as Box<dyn Middlebox>);
    let wired = [Line::new(Span::from_millis(20)), Line::new(Span::from_millis(20))];
    let mut network = Network::new(proxy, talks.collect(), wired, radio(0), None);
    network.run(at(600_000));
    network.check_bytes();
    let greatest = |end: &End| end.connection.statistics().rtt_max.map_or(0.0, Span::as_secs_f64);
    let round_trip = network.ends.iter().map(|ends| greatest(&ends[1])).fold(0.0, f64::max);
    let complete = network.ends.iter().map(|ends| ends[0].complete.expect("it is complete").as_secs_f64());
    (round_trip, complete.fold(0.0, f64::max))
}

#[test]
fn uploads_share_a_budget() {
    for count in [1, 3] {
        let without = upload(None, count);
        let with = upload(Some(Config { upload_budget: Some(Bytes::new(20_000)), ..Config::new(BUDGET) }), count);
        println!("{count} uploads: greatest round trip and end {without:.3?}, with a budget {with:.3?}");
        assert!(without.0 > 1.5, "{without:?}");
        assert!(with.0 < 1.2, "{with:?}");
        assert!(with.1 < 1.05 * without.1, "{with:?}, without: {without:?}");
    }
}

/// When a download of `bytes` over a link of `rate` and `delay` each way is complete, in seconds.
/// The link may have another rate from 20 s on.
fn download(config: Config, rate: u64, later: Option<u64>, delay: u64, bytes: u64) -> f64 {
    let mut radio = [Line::new(Span::from_millis(delay)), Line::new(Span::from_millis(delay))];
    radio[0].rate = Some(Bitrate::from_bps(rate));
    radio[0].later_rate = later.map(|rate| (at(20_000), Bitrate::from_bps(rate)));
    let proxy = Box::new(Proxy::new(config, Seed::new(1).stream("proxy")));
    let wired = [Line::new(Span::from_millis(10)), Line::new(Span::from_millis(10))];
    let mut network = Network::new(Some(proxy), vec![Talk::download(at(0), bytes)], wired, radio, None);
    network.run(at(1_000_000));
    network.check_bytes();
    network.download_time(0)
}

#[test]
fn an_adaptive_budget_is_as_fast_as_the_best_constant_one() {
    let adaptive = Config { budget: BudgetSource::Adaptive, ..Config::new(BUDGET) };
    for (rate, later, delay, bytes) in [
        (33_200, None, 300, 300_000),
        (200_000, None, 200, 1_000_000),
        (400_000, None, 150, 2_000_000),
        (7_200_000, None, 50, 12_000_000),
        (400_000, Some(100_000), 150, 2_000_000),
        (100_000, Some(400_000), 150, 2_000_000),
    ] {
        let fastest = later.map_or(rate, |later| rate.max(later));
        let product = fastest * (2 * delay + 12_000_000 / fastest) / 8000;
        let constant = [115, 150, 200].map(|percent| {
            download(Config::new(Bytes::new(product * percent / 100 + 3000)), rate, later, delay, bytes)
        });
        let best = constant.into_iter().fold(f64::INFINITY, f64::min);
        let time = download(adaptive.clone(), rate, later, delay, bytes);
        println!("{rate} bit/s, then {later:?}, {delay} ms: adaptive {time:.2}, best constant {best:.2}");
        assert!(
            time <= 1.05 * best,
            "{rate} bit/s, then {later:?}, {delay} ms: adaptive {time}, constant {constant:?}"
        );
    }
    let with = measure(Some(adaptive), 0, Some(500));
    println!("adaptive beside short transfers: {with:.3?}");
    assert!(with.short.iter().all(|time| *time <= 1.2), "{with:?}");
    assert!(with.smoothed <= 2.0 * with.least, "{with:?}");
}

#[test]
fn each_discipline_serves_the_short_transfers() {
    for (scheduler, most) in [
        (Discipline::DeficitRoundRobin, 1.0),
        (Discipline::RoundRobin, 1.2),
        (Discipline::ShortestRemaining, 1.0),
        (Discipline::Fifo, 10.0),
    ] {
        let with = measure(Some(Config { scheduler, ..Config::new(BUDGET) }), 0, Some(500));
        println!("{scheduler:?}: {with:.3?}");
        assert!(with.short.iter().all(|time| *time <= most), "{scheduler:?}: {with:?}");
    }
}
