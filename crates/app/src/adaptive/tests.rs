//! A client and its server over a link of constant rate, without losses.

use super::adaptation::{Bba, Bola, Rate};
use super::*;
use crate::exchanges::{Application, Server};
use crate::transport::StreamEnd;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// Runs a session over a link that carries `rate` to the client, in steps of 10 ms.
fn run(settings: Settings, rate: impl Fn(Instant) -> u64) -> (Client, Instant) {
    settings.check().expect("valid settings");
    let settings = Arc::new(settings);
    let script = Arc::new(settings.script());
    let mut client = Client::new(Arc::clone(&settings), Arc::clone(&script), at(0));
    let mut server = Server::new(script);
    let (mut near, mut far) = (StreamEnd::opened(0), StreamEnd::opened(0));
    for step in 0.. {
        let now = at(step * 10);
        while client.step(now, &mut near) != ClientStep::Nothing {}
        if client.is_complete() {
            return (client, now);
        }
        server.follow(client.exchanges().script());
        let up = near.unsent();
        near.take(up);
        far.receive(up);
        server.step(now, &mut far);
        let down = far.unsent().min(rate(now) / 8 / 100);
        far.take(down);
        near.receive(down);
    }
    unreachable!("the session ends")
}

fn of(algorithm: Algorithm) -> Settings {
    let qualities = [200, 400, 800, 1600, 3200].map(|kbps| Bitrate::from_bps(kbps * 1000)).to_vec();
    Settings {
        qualities,
        duration: Span::from_secs(600),
        buffer: Span::from_secs(60),
        adaptation: algorithm,
        ..Settings::default()
    }
}

fn algorithms() -> [Algorithm; 3] {
    [Algorithm::Rate(Rate::default()), Algorithm::Bba(Bba::default()), Algorithm::Bola(Bola::default())]
}

#[test]
fn a_constant_rate_has_its_sustainable_quality_without_stalls() {
    for algorithm in algorithms() {
        let (client, _) = run(of(algorithm), |_| 1_000_000);
        let name = algorithm.name();
        assert_eq!(client.segments().len(), 150, "{name}");
        assert_eq!(client.player().stalls().count(), 0, "{name}");
        // 800 kbit/s are sustainable, 1,600 are not. The algorithms of the buffer alternate between
        // these two, with a mean that the link can carry.
        let late = &client.segments()[75..];
        let mean = late.iter().map(|segment| client.settings().qualities[segment.quality].as_bps()).sum::<u64>() / 75;
        match algorithm {
            Algorithm::Rate(_) => assert!(late.iter().all(|segment| segment.quality == 2)),
            _ => assert!((800_000..=1_010_000).contains(&mean), "{name}: {mean}"),
        }
        assert!(late.iter().all(|segment| (2..=3).contains(&segment.quality)), "{name}");
    }
}

#[test]
fn a_fast_link_fills_the_buffer_and_stays_at_the_highest_quality() {
    for algorithm in algorithms() {
        let (client, end) = run(of(algorithm), |_| 50_000_000);
        let name = algorithm.name();
        let limit = client.settings().buffer;
        assert!(client.player().levels().iter().all(|level| level.media <= limit), "{name}");
        let latest = &client.segments()[100..];
        assert!(latest.iter().all(|segment| segment.quality == 4), "{name}");
        // Playback begins with the first segment, at once, and lasts for the video.
        let first = client.player().first_frame().expect("playback began");
        let finished = client.player().finished().expect("playback ended");
        assert_eq!(finished.since(first), Span::from_secs(600), "{name}");
        assert!(first < at(500) && end.since(finished) <= Span::from_millis(10), "{name}");
    }
}

/// A request is made at the latest with the buffer less a segment: 26 s of 30 s.
#[test]
fn all_algorithms_reach_the_highest_quality_with_the_default_settings() {
    for adaptation in algorithms() {
        let settings = Settings { adaptation, duration: Span::from_secs(600), ..Settings::default() };
        let (client, _) = run(settings, |_| 50_000_000);
        let last = client.segments().last().map(|segment| segment.quality);
        assert_eq!(last, Some(client.settings().qualities.len() - 1), "{}", adaptation.name());
        let late = &client.segments()[100..149];
        assert!(late.iter().all(|segment| Some(segment.quality) == last), "{}", adaptation.name());
    }
}

#[test]
fn an_outage_longer_than_the_buffer_stalls_once() {
    for algorithm in algorithms() {
        let outage = at(100_000)..at(200_000);
        let (client, _) = run(of(algorithm), |now| if outage.contains(&now) { 0 } else { 2_000_000 });
        let name = algorithm.name();
        let stalls: Vec<Span> = client.player().stalls().iter().collect();
        assert_eq!(stalls.len(), 1, "{name}");
        // The buffer had at most 60 s of the 100 s.
        assert!(stalls[0] >= Span::from_secs(40) && stalls[0] < Span::from_secs(100), "{name}: {stalls:?}");
    }
}

#[test]
fn the_last_segment_has_the_rest_of_the_video() {
    let settings = Settings { duration: Span::from_secs(10), ..Settings::default() };
    assert_eq!((settings.segments(), settings.media(2)), (3, Span::from_secs(2)));
    let (client, _) = run(settings, |_| 1_000_000);
    let bytes: Vec<u64> = client.segments().iter().map(|segment| segment.bytes).collect();
    assert_eq!(bytes[0], 235_000 / 8 * 4);
    assert!(client.segments().iter().all(|segment| segment.arrived.is_some()));
    assert_eq!(client.exchanges().latencies().iter().map(crate::Samples::count).collect::<Vec<_>>(), [1, 3]);
}
