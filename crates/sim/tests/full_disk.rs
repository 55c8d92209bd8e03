//! A run ends early when its events can no longer be recorded.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::{Classes, ComponentId, Event, Instant, Seed, Sink};
use airpath_scenario::Scenario;
use airpath_sim::{Ended, Setup};

/// A sink that fails when it has taken a number of events.
struct Full(u64);

impl Sink for Full {
    fn wants(&self) -> Classes {
        Classes::ALL
    }

    fn record(&mut self, _: Instant, _: ComponentId, _: &Event) {
        self.0 = self.0.saturating_sub(1);
    }

    fn has_failed(&self) -> bool {
        self.0 == 0
    }
}

const DOWNLOAD: &str = r#"
format = 1
duration = "1000 s"

[fixed]
rate = "10 Mbit/s"
delay = "20 ms"

[bearer]
preset = "hs-dsch-384"

[[flow]]
kind = "download"
bytes = "4 MB"
"#;

fn run(events: u64) -> (Ended, f64) {
    let scenario = Scenario::read(DOWNLOAD, "test", Path::new(""), &[]).expect("a valid scenario");
    let setup = Setup::new(&scenario, Seed { seed: 1, repetition: 0 }).expect("a scenario that can be built");
    let mut sink = Full(events);
    let mut simulation = setup.start(Some(&mut sink), None);
    let ended = simulation.run(&AtomicBool::new(false));
    (ended, simulation.now().as_secs_f64())
}

#[test]
fn a_sink_that_has_failed_ends_the_run() {
    let (ended, seconds) = run(u64::MAX);
    assert_eq!(ended, Ended::Finished);
    let (ended, earlier) = run(1000);
    assert_eq!(ended, Ended::Interrupted);
    assert!(earlier < seconds / 2.0, "{earlier} s of {seconds} s");
}
