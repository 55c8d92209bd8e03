//! What acknowledgements tell of the path: its round trip when empty, and its rate.

use airpath_core::{Instant, Span};

/// Acknowledgements whose spacing makes an estimate of the rate.
const TRAIN: usize = 4;

/// Round trips for which the fastest train counts.
const ROUNDS: usize = 10;

/// The path as its acknowledgements show it.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// The shortest round trip of anything, and of a full segment.
    shortest: Option<Span>,
    shortest_full: Option<Span>,
    pub(super) latest: Option<Span>,
    /// The usual time between two acknowledgements that tell news.
    gap: Option<Span>,
    /// The last acknowledgements that told news: when, and how much had been delivered by then.
    train: [(Instant, u64); TRAIN + 1],
    length: usize,
    /// The fastest train of each of the last rounds, in bytes per second.
    fastest: [f64; ROUNDS],
    round: usize,
    /// The rate of the last rounds in which a queue stood before the link, which is the link's.
    carried: Option<f64>,
    /// The rate is at least this: so fast went what one acknowledgement covered, had there been no queue.
    least: Option<f64>,
}

impl Path {
    /// A round trip was measured, of a full segment or of another.
    pub(super) fn round_trip(&mut self, sample: Span, full: bool) {
        self.shortest = Some(self.shortest.map_or(sample, |shortest| shortest.min(sample)));
        if full {
            self.shortest_full = Some(self.shortest_full.map_or(sample, |shortest| shortest.min(sample)));
        }
        self.latest = Some(sample);
    }

    /// The round trip of an empty path.
    pub(super) fn base(&self) -> Option<Span> {
        self.shortest
    }

    /// The same for a full segment.
    pub(super) fn base_full(&self) -> Option<Span> {
        self.shortest_full.or(self.shortest)
    }

    /// The usual time between two acknowledgements that tell news; zero before it is known.
    pub(super) fn gap(&self) -> Span {
        self.gap.unwrap_or(Span::ZERO)
    }

    /// An acknowledgement told that `delivered` bytes have arrived.
    pub(super) fn delivered(&mut self, now: Instant, delivered: u64) {
        if self.length > 0 {
            let last = now.since(self.train[self.length - 1].0);
            // One silence shall not make the next look usual.
            let counted = self.gap.map_or(last, |gap| last.min(gap * 3).max(Span::from_nanos(1)));
            self.gap = Some(self.gap.map_or(last, |gap| (gap * 7 + counted) / 8));
        }
        if self.length == TRAIN + 1 {
            self.train.copy_within(1.., 0);
            self.length = TRAIN;
        }
        self.train[self.length] = (now, delivered);
        self.length += 1;
        if self.length < TRAIN + 1 {
            return;
        }
        let (begin, had) = self.train[0];
        let span = now.since(begin);
        // A train that takes half a round trip or longer may have been spaced by the window, not by the path.
        if span.is_zero() || self.latest.is_none_or(|latest| span.saturating_mul(2) > latest) {
            return;
        }
        let rate = (delivered - had) as f64 / span.as_secs_f64();
        let fastest = &mut self.fastest[self.round % ROUNDS];
        *fastest = fastest.max(rate);
    }

    /// Nothing was outstanding: what comes next makes no train with what was before.
    pub(super) fn pause(&mut self) {
        self.length = 0;
    }

    /// A round trip has passed.
    pub(super) fn next_round(&mut self) {
        self.round += 1;
        self.fastest[self.round % ROUNDS] = 0.0;
    }

    /// A link before which a queue stood has carried data at this rate.
    pub(super) fn carried(&mut self, rate: f64) {
        self.carried = Some(self.carried.map_or(rate, |before| rate.max(before + (rate - before) / 4.0)));
    }

    /// One acknowledgement covered `news` bytes, a round trip after they were sent. On a slow link, the time above that of an empty
    /// path is what their transmission took.
    pub(super) fn at_least(&mut self, news: u64, sample: Span) {
        let Some(base) = self.shortest else { return };
        let above = sample.saturating_sub(base).max(base / 10).max(Span::from_nanos(1));
        let rate = news as f64 / above.as_secs_f64();
        // An acknowledgement that was delayed makes the rate look low; where transmission takes longer than all the rest, it can be seen.
        if self.least.is_some() || above > base {
            self.least = Some(self.least.map_or(rate, |least| least.max(rate)));
        }
    }

    /// The rate of the path, bytes per second, if it has shown.
    pub(super) fn rate(&self) -> Option<f64> {
        if self.carried.is_some() {
            return self.carried;
        }
        let rate = self.fastest.iter().fold(0.0, |fastest: f64, &rate| fastest.max(rate));
        if rate > 0.0 { Some(rate) } else { self.least }
    }
}
