//! What acknowledgements tell of the path: its round trip when empty, and how long it takes for a segment.

use airpath_core::{Instant, Span};

use super::link::Measure;

/// Times between segments that tell what the link takes for one.
const SERVED: usize = 15;

/// What takes longer tells nothing of a path: a capture is damaged, or somebody was asleep.
const LONGEST: Span = Span::from_secs(3600);

/// The path as its acknowledgements show it.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// The shortest round trip of anything, and of a full segment.
    shortest: Option<Span>,
    shortest_full: Option<Span>,
    pub(super) latest: Option<Span>,
    /// When news last came, and the usual time between two.
    news: Option<Instant>,
    gap: Option<Span>,
    /// The time that the link took for a segment, the last times; how often that was measured; its median and its mean.
    served: [Span; SERVED],
    count: usize,
    service: Option<Span>,
    mean: Option<Span>,
}

impl Path {
    /// A round trip was measured, at the end of which so many full segments were acknowledged, or less than one.
    pub(super) fn round_trip(&mut self, sample: Span, segments: u64) {
        let sample = sample.min(LONGEST);
        let base = self.shortest.map_or(sample, |shortest| shortest.min(sample));
        self.shortest = Some(base);
        self.latest = Some(sample);
        if segments > 0 {
            // They were in transmission one after the other.
            let alone = base + sample.saturating_sub(base) / segments;
            self.shortest_full = Some(self.shortest_full.map_or(alone, |shortest| shortest.min(alone)));
        }
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

    /// An acknowledgement told news.
    pub(super) fn delivered(&mut self, now: Instant) {
        if let Some(before) = self.news.replace(now) {
            self.gap = Some(usual(self.gap, now.since(before).min(LONGEST)));
        }
    }

    /// Nothing was outstanding: the time until news come next tells nothing.
    pub(super) fn pause(&mut self) {
        self.news = None;
    }

    /// The link was busy all the time, and done with two segments so long one after the other.
    pub(super) fn served(&mut self, spacing: Span) {
        self.served[self.count % SERVED] = spacing.min(LONGEST);
        self.count += 1;
        let mut sorted = self.served;
        let known = &mut sorted[..self.count.min(SERVED)];
        known.sort_unstable();
        self.service = Some(known[known.len() / 2]);
        // The longest may be an outage.
        let usual = &known[..known.len().saturating_sub(1).max(1)];
        self.mean = Some(usual.iter().fold(Span::ZERO, |sum, &spacing| sum + spacing) / usual.len() as u64);
    }

    /// The time that the link takes for a segment, unevenly as it may.
    pub(super) fn mean(&self) -> Span {
        let usual = self.measure().service;
        self.mean.map_or(usual, |mean| mean.max(usual))
    }

    /// What is known of the link. Before two segments have followed on one another, a full one's round trip above that of the handshake is taken for its
    /// transmission.
    pub(super) fn measure(&self) -> Measure {
        let base = self.base().unwrap_or(Span::ZERO);
        let full = self.base_full().unwrap_or(Span::ZERO);
        // No more than the round trip of a full segment can be its transmission.
        Measure { base, service: self.service.unwrap_or(full.saturating_sub(base)).min(full) }
    }
}

/// A mean of the last eight or so. One that stands out shall not make the next look usual.
fn usual(mean: Option<Span>, sample: Span) -> Span {
    let Some(mean) = mean else { return sample };
    let counted = sample.min(mean * 3).max(Span::from_nanos(1));
    (mean * 7 + counted) / 8
}
