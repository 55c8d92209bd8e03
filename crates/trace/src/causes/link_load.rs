//! The load of the bottleneck link: when it was full, and when more than a round trip of data
//! queued.
//!
//! The input is when each packet entered and left the link, in order. The link is busy while it
//! holds a packet. A busy period, short pauses included, is full if it lasts for a window. The
//! waiting time at a moment is the time that the link needs for the packets that entered before.
//! Its mean over a round trip around each moment decides between full and queueing.

use std::collections::VecDeque;

use airpath_core::{Instant, Span};

use super::{Cause, Confidence};

/// Pauses of up to this fraction of the window do not end a busy period.
const PAUSE: u64 = 10;

/// Samples in a window: the resolution of the begin and end of queueing.
const SAMPLES: u64 = 16;

/// Samples of a time without arrivals, at most.
const STEPS: u64 = 64;

/// The load of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// The link could carry more.
    Free,
    /// The link is busy all the time.
    Full,
    /// So it is with packets of other connections, while none of this one is in it.
    FullOfOthers,
    /// The link is full, and packets wait for longer than a round trip of the empty path.
    Queueing,
}

impl Load {
    /// The cause of the time where the link is full; `shared` with other connections.
    pub(super) const fn cause(self, shared: bool) -> Option<(Cause, Confidence)> {
        match self {
            Self::Free => None,
            _ if shared => Some((Cause::Sharing, Confidence::Medium)),
            Self::Full | Self::FullOfOthers => Some((Cause::PathRate, Confidence::Medium)),
            Self::Queueing => Some((Cause::Queueing, Confidence::Medium)),
        }
    }
}

/// The estimate of the link and its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkEstimate {
    /// The round trip of the empty path.
    pub base: Span,
    /// The service time of a full segment.
    pub service: Span,
}

impl LinkEstimate {
    /// How long a link must be busy to count as full.
    pub(super) fn window(&self) -> Span {
        self.base.max(self.service * 2).max(Span::from_nanos(1))
    }
}

/// A period in which the link is busy.
#[derive(Clone, Debug)]
struct BusyPeriod {
    begin: Instant,
    /// When the last packet leaves.
    end: Instant,
    /// When the last packet of all connections leaves, as far as those are known.
    drained: Instant,
    /// When the last known packet of other connections leaves.
    others: Instant,
    /// Until when others filled the link after the last packet.
    filled: Instant,
    /// The pauses that others filled, as far as they are not reported.
    pauses: VecDeque<(Instant, Instant)>,
    /// When the last packet entered.
    entered: Instant,
    /// The integral of the waiting time up to `entered`, in square nanoseconds.
    waited: f64,
    /// Samples of the integral that are still needed.
    samples: VecDeque<(Instant, f64)>,
    /// The load is reported up to this sample.
    next: usize,
}

/// Measures the load of a link.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadMeter {
    busy: Option<BusyPeriod>,
    /// How long packets waited in front of the link: an exponential mean.
    wait: Span,
    /// The memory of the samples of the last busy period.
    spare: VecDeque<(Instant, f64)>,
}

impl LoadMeter {
    /// When the last known packet left the link; `None` if the link has run empty since.
    pub(super) fn busy_until(&self) -> Option<Instant> {
        self.busy.as_ref().map(|busy| busy.end)
    }

    /// Adds a packet that entered the link at `entered` and left it at `left`. `report` receives
    /// the load up to an instant, from the instant of the report before.
    pub(super) fn carry(
        &mut self,
        entered: Instant,
        left: Instant,
        estimate: LinkEstimate,
        report: &mut impl FnMut(Instant, Load),
    ) {
        self.wait = self.wait - self.wait / 8 + left.since(entered).saturating_sub(estimate.service) / 8;
        match &mut self.busy {
            Some(busy) if busy.continues(entered, estimate) => {
                if entered > busy.end + estimate.window() / PAUSE {
                    busy.pauses.push_back((busy.end, entered));
                }
                busy.advance(entered, estimate, report);
                busy.end = busy.end.max(left);
            }
            _ => {
                self.run_empty(estimate, report);
                report(entered, Load::Free);
                let mut samples = std::mem::take(&mut self.spare);
                samples.push_back((entered, 0.0));
                self.busy = Some(BusyPeriod {
                    begin: entered,
                    end: left,
                    drained: left,
                    others: left,
                    filled: left,
                    pauses: VecDeque::new(),
                    entered,
                    waited: 0.0,
                    samples,
                    next: 0,
                });
            }
        }
    }

    /// Packets of other connections entered the link at `entered`; the last of them leaves at
    /// `left`. They lengthen the queue while packets of this connection are in the link.
    pub(super) fn others(
        &mut self,
        entered: Instant,
        left: Instant,
        estimate: LinkEstimate,
        report: &mut impl FnMut(Instant, Load),
    ) {
        let Some(busy) = &mut self.busy else { return };
        busy.others = busy.others.max(left);
        if entered <= busy.end {
            busy.advance(entered, estimate, report);
            busy.drained = busy.drained.max(left);
        }
    }

    /// The begin of the pause that a packet ends which enters the link then; `None` without one.
    pub(super) fn pause_until(&self, entered: Instant, estimate: LinkEstimate) -> Option<Instant> {
        self.busy.as_ref().filter(|busy| !busy.continues(entered, estimate)).map(|busy| busy.end)
    }

    /// How long the last packets waited in front of the link.
    pub(super) const fn wait(&self) -> Span {
        self.wait
    }

    /// The time up to `entered` in which packets of other connections are in the link, and none of
    /// this one is.
    pub(super) fn others_until(&self, entered: Instant) -> Option<(Instant, Instant)> {
        let times = self.busy.as_ref().map(|busy| (busy.end, busy.others.min(entered)));
        times.filter(|(begin, end)| begin < end)
    }

    /// Other connections filled the link until then, since the last packet left it.
    pub(super) fn filled_by_others(&mut self, until: Instant) {
        if let Some(busy) = &mut self.busy {
            busy.filled = until;
        }
    }

    /// No packet follows for now: the link runs empty.
    pub(super) fn run_empty(&mut self, estimate: LinkEstimate, report: &mut impl FnMut(Instant, Load)) {
        let Some(mut busy) = self.busy.take() else { return };
        let end = busy.end;
        busy.advance(end, estimate, report);
        if busy.lasts(estimate) {
            busy.sample();
            busy.sample_others(estimate);
            while busy.samples.get(busy.next + 1).is_some_and(|(time, _)| *time <= end) {
                busy.report_next(estimate, report);
            }
        }
        busy.samples.clear();
        self.spare = busy.samples;
        report(end, Load::Free);
    }
}

impl BusyPeriod {
    fn lasts(&self, estimate: LinkEstimate) -> bool {
        self.end.since(self.begin) >= estimate.window()
    }

    /// Whether a packet that enters the link then belongs to this period.
    fn continues(&self, entered: Instant, estimate: LinkEstimate) -> bool {
        entered <= self.end.max(self.filled) + estimate.window() / PAUSE
    }

    /// Advances to the next packet: the waiting time falls.
    fn advance(&mut self, to: Instant, estimate: LinkEstimate, report: &mut impl FnMut(Instant, Load)) {
        // The last packet does not wait while it is in transmission.
        let drained = self.drained.max(self.end);
        let empty = drained - estimate.service.min(drained.since(self.begin));
        let least = estimate.window() / SAMPLES;
        while self.entered < to {
            let step = least.max(to.since(self.entered) / STEPS).max(Span::from_nanos(1));
            let next = (self.entered + step).min(to);
            let [before, after] = [self.entered, next].map(|time| empty.since(time).as_nanos() as f64);
            self.waited += (before * before - after * after) / 2.0;
            self.entered = next;
            if self.samples.back().is_none_or(|(last, _)| next.since(*last) >= least) {
                self.sample();
                self.report_final(estimate, report);
            }
        }
    }

    /// Samples the queue of the other connections in the half of a window after the end.
    fn sample_others(&mut self, estimate: LinkEstimate) {
        let half = estimate.window() / 2;
        let empty = self.drained - estimate.service.min(self.drained.since(self.begin));
        let [before, after] = [self.end, self.end + half].map(|time| empty.since(time.min(empty)).as_nanos() as f64);
        if before > 0.0 {
            self.samples.push_back((self.end + half, self.waited + (before * before - after * after) / 2.0));
        }
    }

    fn sample(&mut self) {
        if self.samples.back().is_none_or(|(last, _)| *last < self.entered) {
            self.samples.push_back((self.entered, self.waited));
        }
    }

    /// Reports the load up to the last sample that no later packet can change.
    fn report_final(&mut self, estimate: LinkEstimate, report: &mut impl FnMut(Instant, Load)) {
        if !self.lasts(estimate) {
            return;
        }
        while self.next + 1 < self.samples.len()
            && middle(self.samples[self.next].0, self.samples[self.next + 1].0) + estimate.window() / 2 <= self.entered
        {
            self.report_next(estimate, report);
        }
        // The next report needs the sample before its window, and none before that.
        let needed =
            self.samples[self.next].0 - (estimate.window() / 2).min(self.samples[self.next].0.since(Instant::ZERO));
        while self.next > 0 && self.samples[1].0 <= needed {
            self.samples.pop_front();
            self.next -= 1;
        }
    }

    fn report_next(&mut self, estimate: LinkEstimate, report: &mut impl FnMut(Instant, Load)) {
        let (begin, end) = (self.samples[self.next].0, self.samples[self.next + 1].0);
        let (at, window) = (middle(begin, end), estimate.window());
        let half = window / 2;
        let before = at - half.min(at.since(Instant::ZERO));
        let waiting = self.integral(at + half) - self.integral(before);
        let long = waiting > estimate.base.as_nanos() as f64 * window.as_nanos() as f64;
        while self.pauses.front().is_some_and(|(_, until)| *until <= at) {
            self.pauses.pop_front();
        }
        let is_pause = self.pauses.front().is_some_and(|(since, _)| *since <= at);
        let load = match () {
            () if is_pause => Load::FullOfOthers,
            () if long => Load::Queueing,
            () => Load::Full,
        };
        report(end, load);
        self.next += 1;
    }

    /// The integral at an instant, interpolated between samples.
    fn integral(&self, at: Instant) -> f64 {
        let above = self.samples.partition_point(|(time, _)| *time < at);
        match (above.checked_sub(1).and_then(|below| self.samples.get(below)), self.samples.get(above)) {
            (Some((_, value)), None) | (None, Some((_, value))) => *value,
            (Some((one, low)), Some((other, high))) => {
                let fraction = at.since(*one).as_nanos() as f64 / other.since(*one).as_nanos() as f64;
                low + (high - low) * fraction
            }
            (None, None) => 0.0,
        }
    }
}

fn middle(one: Instant, other: Instant) -> Instant {
    one + other.since(one) / 2
}
