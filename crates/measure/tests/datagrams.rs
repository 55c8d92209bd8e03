//! Streams between a client and a responder on the loopback interface, also with a responder that
//! ends during the measurement.

use std::sync::atomic::{AtomicBool, Ordering};

use airpath_app::datagrams::LATE;
use airpath_app::{Datagrams, streaming, voice};
use airpath_core::{Bitrate, Direction, Span};
use airpath_measure::work::{Call, VideoStream, Work};
use airpath_measure::{Family, Hooks, Request, Responder, measure};
use serde_json::Value;

/// Runs `work` against a responder of its own at `listen`, which ends when `lost_after` datagrams
/// were counted. Returns the summary as JSON.
fn summary_of(listen: &str, work: Work, lost_after: Option<u64>) -> Value {
    let responder = Responder::bind(Some(listen)).expect("a free port");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| responder.run(&stop));
        let host = responder.addresses()[0].to_string();
        let request = Request { host, family: Family::Any, work, icmp: false, limit: Span::from_secs(60) };
        let progress = |done, _| {
            if lost_after.is_some_and(|count| done >= count) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let hooks = Hooks { stop: &AtomicBool::new(false), progress: &progress, ready: &|_| () };
        let summary = measure(&request, None, &hooks);
        stop.store(true, Ordering::Relaxed);
        serde_json::to_value(summary.expect("a measurement")).expect("JSON")
    })
}

/// A stream of 1000 packets a second over IPv6, and 1250 over IPv4.
fn datagrams(direction: Direction, duration: Span) -> Work {
    let (rate, timeout) = (Bitrate::from_bps(800_000), Span::from_millis(500));
    Work::Datagrams(Datagrams { direction, rate, size: 52, duration, timeout, late: LATE })
}

/// The only flow of a measurement that has lost its responder.
fn lost(work: Work) -> Value {
    let summary = summary_of("127.0.0.1:0", work, Some(50));
    assert_eq!(summary["complete"], false);
    let stopped = summary["stopped"].as_str().expect("a reason");
    assert!(stopped.starts_with("lost the responder at 127.0.0.1:"), "{stopped}");
    summary["flows"][0].clone()
}

#[test]
fn the_rate_includes_the_headers_of_the_version_of_ip() {
    for direction in Direction::BOTH {
        for (listen, sent) in [("127.0.0.1:0", 125), ("[::1]:0", 100)] {
            let summary = summary_of(listen, datagrams(direction, Span::from_millis(100)), None);
            let flow = &summary["flows"][0];
            assert_eq!(
                (&flow["outcome"], &flow["sent"]),
                (&"finished".into(), &sent.into()),
                "{direction:?}, {listen}"
            );
        }
    }
}

#[test]
fn a_download_without_its_responder_has_what_arrived() {
    let flow = lost(datagrams(Direction::Down, Span::from_secs(2)));
    let count = |name: &str| flow[name].as_u64().expect("a count");
    assert_eq!(flow["outcome"], "unfinished");
    assert!(count("received") >= 50 && count("received") < 2500, "{flow}");
    // The last one that arrived; a busy host may have lost some before.
    assert!(count("sent") >= count("received") && count("sent") < 2500, "{flow}");
    assert!(flow["delay_max_s"].is_f64() && flow["gaps"].is_u64(), "{flow}");
}

#[test]
fn an_upload_without_its_responder_has_no_figures_of_arrivals() {
    let flow = lost(datagrams(Direction::Up, Span::from_secs(1)));
    assert_eq!(flow["outcome"], "unfinished");
    assert!(flow["received"].is_null() && flow["lost"].is_null() && flow["gaps"].is_null(), "{flow}");
}

#[test]
fn a_call_without_its_responder_has_the_downlink() {
    let duration = Span::from_secs(8);
    let (jitter_buffer, timeout) = (voice::Playout::Fixed, Span::from_millis(500));
    let settings = voice::Settings { duration, dtx: false, jitter_buffer, timeout, ..Default::default() };
    let flow = lost(Work::Voice(Call { settings, seed: 0 }));
    assert_eq!(flow["outcome"], "unfinished");
    let down = &flow["down"];
    assert!(down["received"].as_u64() >= Some(50) && down["sent"].as_u64() < Some(400), "{flow}");
    assert!(down["mos"].is_f64(), "{flow}");
    assert_eq!(flow["up"], serde_json::json!({}));
    assert!(flow["mos"].is_null(), "{flow}");
}

#[test]
fn a_video_without_its_responder_has_what_arrived() {
    let settings = streaming::Settings { timeout: Span::from_secs(1), ..Default::default() };
    let flow = lost(Work::Stream(VideoStream { video: Default::default(), settings, seed: 0 }));
    assert_eq!(flow["outcome"], "aborted");
    assert!(flow["received"].as_u64() >= Some(50) && flow["sent"].as_u64() >= flow["received"].as_u64(), "{flow}");
}
