//! Timing of this host.

use std::fmt;
use std::time::Duration;

use airpath_core::{Instant, Span};
use nix::poll::ppoll;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_getres};

use super::Check;
use super::attempt::{Place, in_child};
use crate::clock::Clock;
use crate::lateness::Lateness;
use crate::session::{self, Waiting};
use crate::sys;

/// Whether a core is free for polling the clock.
pub fn cores() -> Check {
    let cores = session::cores();
    if Waiting::of_host() == Waiting::Precise {
        return Check::ok("cores", cores.to_string(), "by default links poll the clock (--precise)");
    }
    Check::limited(
        "cores",
        cores.to_string(),
        "by default links sleep until a packet is due: the programs at both ends need the other cores",
        "add --precise if the programs need little processor time, or use a host with three cores",
    )
}

/// Number and length of the waits of a measurement.
const WAITS: u32 = 100;
const WAIT: Span = Span::from_millis(1);
/// Limit of a good result.
const GOOD: Measured = Measured { median: Span::from_micros(120), most: Span::from_millis(1) };

/// How late this process wakes up, in both modes of a link: sleeping and polling the clock.
pub fn wakeups() -> Check {
    let name = "timers";
    let sleep = || {
        let _ = nix::sys::prctl::set_timerslack(1);
        sys::raise_to_realtime();
        |_: Clock, _: Instant| {
            let _ = ppoll(&mut [], Some(TimeSpec::from_duration(Duration::from_nanos(WAIT.as_nanos()))), None);
        }
    };
    let watch = || {
        sys::raise_nice_priority();
        |clock: Clock, due: Instant| while clock.now() < due {}
    };
    let (asleep, watching) = match (measure(sleep), measure(watch)) {
        (Ok(asleep), Ok(watching)) => (asleep, watching),
        (Err(error), _) | (_, Err(error)) => {
            return Check::limited(name, error, "nothing is known of how late packets will leave", "try again");
        }
    };
    let resolution = clock_getres(ClockId::CLOCK_MONOTONIC).map_or(Duration::MAX, Duration::from);
    let finding = format!(
        "late by {asleep} after sleep, by {watching} watching the clock, which counts in {} ns",
        resolution.as_nanos()
    );
    let (usual, other, option) = match Waiting::of_host() {
        Waiting::Precise => (watching, asleep, "give --no-precise"),
        Waiting::Sleeping => (asleep, watching, "give --precise"),
    };
    if usual.is_good() {
        return Check::ok(name, finding, "packets leave on time");
    }
    let meaning = "packets may leave late; a link is invalid if 1 % of them leave later than its --budget";
    let next_step = if other.is_good() { option } else { "try again when this host has less to do" };
    Check::limited(name, finding, meaning, next_step)
}

/// Median and 99th percentile of the lateness.
#[derive(Clone, Copy, Debug)]
struct Measured {
    median: Span,
    most: Span,
}

impl Measured {
    fn is_good(self) -> bool {
        self.median <= GOOD.median && self.most <= GOOD.most
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, most] = [self.median, self.most].map(|late| 1e3 * late.as_secs_f64());
        write!(f, "{median:.3} ms (p99 {most:.3} ms)")
    }
}

/// Measures in a child process, after `prepare` has set its priority.
fn measure<W: Fn(Clock, Instant)>(prepare: impl FnOnce() -> W) -> Result<Measured, String> {
    let text = in_child(Place::Here, || {
        let (wait, clock, mut late) = (prepare(), Clock::start(), Lateness::new());
        for _ in 0..WAITS {
            let due = clock.now() + WAIT;
            wait(clock, due);
            let now = clock.now();
            late.record(now.since(due.min(now)));
        }
        Ok([50.0, 99.0].map(|per_cent| late.percentile(per_cent).as_nanos().to_string()).join(" "))
    })?;
    let mut numbers = text.split(' ').map(|number| number.parse().map(Span::from_nanos));
    match (numbers.next(), numbers.next()) {
        (Some(Ok(median)), Some(Ok(most))) => Ok(Measured { median, most }),
        _ => Err("it could not be measured".to_owned()),
    }
}
