//! The link in front of which data waits: when it was full, and when more than a round trip of data waited there.
//!
//! It is told of each packet when it came to the link and when the link was done with it, in that order. The link is busy while any packet is
//! there; a stretch in which it is busy, but for short pauses, is full if it lasts. How long what comes at a moment would wait is what is left to do for those
//! that came before; the mean of that, over a round trip around each moment, tells queueing.

use std::collections::VecDeque;

use airpath_core::{Instant, Span};

/// Pauses of up to this share of the window do not end a stretch.
const PAUSE: u64 = 10;

/// Marks in a window: the finer they are, the more exactly the beginning and the end of queueing are found.
const MARKS: u64 = 16;

/// Marks that a time without arrivals is divided into at most.
const STEPS: u64 = 64;

/// What a link does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// It could carry more.
    Free,
    /// It is busy all the time.
    Full,
    /// It is, and what comes to it waits for longer than a round trip of the empty path.
    Queueing,
}

/// What the path is like, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measure {
    /// The round trip of the empty path.
    pub base: Span,
    /// The time that the link takes for a full segment.
    pub service: Span,
}

impl Measure {
    /// For how long a link must be busy to be full.
    fn window(&self) -> Span {
        self.base.max(self.service * 2).max(Span::from_nanos(1))
    }
}

/// A stretch of time in which the link is busy.
#[derive(Clone, Debug)]
struct Stretch {
    begin: Instant,
    /// When the last of the packets is done with.
    end: Instant,
    /// When the last of them came.
    entered: Instant,
    /// The integral over time of how long one would have waited, up to `entered`, in square nanoseconds.
    waited: f64,
    /// The integral at some moments, so far as they are still needed.
    marks: VecDeque<(Instant, f64)>,
    /// What was told of begins with this mark.
    next: usize,
}

/// A link.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    stretch: Option<Stretch>,
}

impl Link {
    /// When the link was done with the last packet that it is known to have carried.
    pub(super) fn done(&self) -> Option<Instant> {
        self.stretch.as_ref().map(|stretch| stretch.end)
    }

    /// A packet came to the link at `entered`, and was done with at `left`; `tell` hears until when the link did what, from where it was told of last.
    pub(super) fn carried(
        &mut self,
        entered: Instant,
        left: Instant,
        measure: Measure,
        tell: &mut impl FnMut(Instant, Load),
    ) {
        match &mut self.stretch {
            Some(stretch) if entered <= stretch.end + measure.window() / PAUSE => {
                stretch.advance(entered, measure, tell);
                stretch.end = stretch.end.max(left);
            }
            _ => {
                self.rest(measure, tell);
                tell(entered, Load::Free);
                let marks = VecDeque::from([(entered, 0.0)]);
                self.stretch = Some(Stretch { begin: entered, end: left, entered, waited: 0.0, marks, next: 0 });
            }
        }
    }

    /// Nothing more comes for now: the link runs empty.
    pub(super) fn rest(&mut self, measure: Measure, tell: &mut impl FnMut(Instant, Load)) {
        let Some(mut stretch) = self.stretch.take() else { return };
        let end = stretch.end;
        stretch.advance(end, measure, tell);
        if stretch.lasts(measure) {
            stretch.mark();
            while stretch.next + 1 < stretch.marks.len() {
                stretch.tell_next(measure, tell);
            }
        }
        tell(end, Load::Free);
    }
}

impl Stretch {
    fn lasts(&self, measure: Measure) -> bool {
        self.end.since(self.begin) >= measure.window()
    }

    /// Time passes until another packet comes: what waits grows less.
    fn advance(&mut self, to: Instant, measure: Measure, tell: &mut impl FnMut(Instant, Load)) {
        // The last packet waits no more once it is in transmission.
        let empty = self.end - measure.service.min(self.end.since(self.begin));
        let least = measure.window() / MARKS;
        while self.entered < to {
            let step = least.max(to.since(self.entered) / STEPS).max(Span::from_nanos(1));
            let next = (self.entered + step).min(to);
            let [before, after] = [self.entered, next].map(|time| empty.since(time).as_nanos() as f64);
            self.waited += (before * before - after * after) / 2.0;
            self.entered = next;
            if self.marks.back().is_none_or(|(last, _)| next.since(*last) >= least) {
                self.mark();
                self.tell_ripe(measure, tell);
            }
        }
    }

    fn mark(&mut self) {
        if self.marks.back().is_none_or(|(last, _)| *last < self.entered) {
            self.marks.push_back((self.entered, self.waited));
        }
    }

    /// Tells of all that nothing can change any more.
    fn tell_ripe(&mut self, measure: Measure, tell: &mut impl FnMut(Instant, Load)) {
        if !self.lasts(measure) {
            return;
        }
        while self.next + 1 < self.marks.len()
            && middle(self.marks[self.next].0, self.marks[self.next + 1].0) + measure.window() / 2 <= self.entered
        {
            self.tell_next(measure, tell);
        }
        // The mark before half a window before what comes next is needed, and none before that.
        let needed = self.marks[self.next].0 - (measure.window() / 2).min(self.marks[self.next].0.since(Instant::ZERO));
        while self.next > 0 && self.marks[1].0 <= needed {
            self.marks.pop_front();
            self.next -= 1;
        }
    }

    fn tell_next(&mut self, measure: Measure, tell: &mut impl FnMut(Instant, Load)) {
        let (begin, end) = (self.marks[self.next].0, self.marks[self.next + 1].0);
        let (at, window) = (middle(begin, end), measure.window());
        let half = window / 2;
        let before = at - half.min(at.since(Instant::ZERO));
        let waiting = self.integral(at + half) - self.integral(before);
        let long = waiting > measure.base.as_nanos() as f64 * window.as_nanos() as f64;
        tell(end, if long { Load::Queueing } else { Load::Full });
        self.next += 1;
    }

    /// The integral of waiting at a moment, by the marks next to it.
    fn integral(&self, at: Instant) -> f64 {
        let above = self.marks.partition_point(|(time, _)| *time < at);
        match (above.checked_sub(1).and_then(|below| self.marks.get(below)), self.marks.get(above)) {
            (Some((_, value)), None) | (None, Some((_, value))) => *value,
            (Some((one, low)), Some((other, high))) => {
                let share = at.since(*one).as_nanos() as f64 / other.since(*one).as_nanos() as f64;
                low + (high - low) * share
            }
            (None, None) => 0.0,
        }
    }
}

fn middle(one: Instant, other: Instant) -> Instant {
    one + other.since(one) / 2
}
