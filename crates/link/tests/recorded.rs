//! Recorded links of real networks: they read, write and deliver at their rate.

use std::path::PathBuf;
use std::sync::Arc;

use crate::common::arrival;
use airpath_core::{ComponentId, Context, Instant, Seed, Span};
use airpath_link::queue::Queue;
use airpath_link::{Config, Link, Recording};

/// The recorded links of others; none where they are missing, which the run reports.
fn files() -> Vec<PathBuf> {
    let Some(folder) = airpath_testing::shared_links() else { return Vec::new() };
    let entries = std::fs::read_dir(folder.join("mahimahi")).expect("the folder has those of mahimahi");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "down" || extension == "up"));
    files.sort();
    files
}

#[test]
fn recordings_write_back_to_the_same_file() {
    for file in files() {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let recording = Recording::read(&file).expect("a sound recording");
        assert!(recording.to_string() == text, "{} does not write back", file.display());
        assert_eq!(recording.opportunities(), text.lines().count());
    }
}

/// A saturated link delivers 1500 bytes at each opportunity, pass after pass.
#[test]
fn recordings_deliver_at_their_rate() {
    for file in files() {
        let recording = Arc::new(Recording::read(&file).expect("a sound recording"));
        let unlimited = Config { queue: Some(Queue::default()), ..Config::default() };
        let mut link = unlimited.prepare_with(recording.clone()).expect("sound").pipe(Seed::new(1), "link");
        let (mut lost, mut delivered) = (Vec::new(), 0);
        let mut cx = Context::new(None, &mut lost, ComponentId(0));
        let opportunities = 2 * recording.opportunities();
        // No packet has arrived at the origin itself: an opportunity there is lost.
        let missed = recording.millis().iter().filter(|millis| **millis == 0).count();
        // Packets of 1000 bytes, so that most are cut by the end of an opportunity.
        for id in 0..opportunities * 3 / 2 + 10 {
            link.push(Instant::ZERO, arrival(id, Instant::ZERO, 1000).packet, &mut cx);
        }
        let end = Instant::ZERO + recording.period() * 2 - Span::from_nanos(1);
        while let Some(departure) = link.pop(end, &mut cx) {
            delivered += u64::from(departure.packet.size);
        }
        // The opportunities of the very last millisecond are still ahead.
        let last = recording.period();
        let at_end = recording.millis().iter().rev().take_while(|millis| Span::from_millis(**millis) == last).count();
        let expected = 1500 * (opportunities - missed - at_end) as u64;
        assert!(delivered <= expected && expected - delivered < 1000, "{}: {delivered}, {expected}", file.display());
        let rate = delivered as f64 * 8.0 / (2.0 * last.as_secs_f64());
        assert!((rate / recording.rate_bps() - 1.0).abs() < 1e-3, "{}: {rate} bit/s", file.display());
    }
}

/// The first opportunities of a file, as they are in it.
#[test]
fn recordings_deliver_at_their_times() {
    for file in files() {
        let recording = Arc::new(Recording::read(&file).expect("a sound recording"));
        let unlimited = Config { queue: Some(Queue::default()), ..Config::default() };
        let mut link = unlimited.prepare_with(recording.clone()).expect("sound").pipe(Seed::new(1), "link");
        let mut lost = Vec::new();
        let mut cx = Context::new(None, &mut lost, ComponentId(0));
        let times: Vec<_> = recording.millis().iter().filter(|millis| **millis > 0).take(1000).collect();
        (0..times.len()).for_each(|id| {
            link.push(Instant::ZERO, arrival(id, Instant::ZERO, 1500).packet, &mut cx);
        });
        for millis in times {
            let due = link.next_wakeup().expect("more are inside");
            assert_eq!(due, Instant::ZERO + Span::from_millis(*millis), "{}", file.display());
            link.pop(due, &mut cx).expect("it is due");
        }
    }
}
