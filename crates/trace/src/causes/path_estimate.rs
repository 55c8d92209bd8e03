//! Estimates from acknowledgements: the round trip of the empty path, and the service time of a
//! segment.

use airpath_core::{Instant, Span};

use super::link_load::LinkEstimate;

/// Samples of the service time that are kept.
const SERVICE_SAMPLES: usize = 15;

/// Longer samples are cut to this: the capture is damaged, or a host was suspended.
const LONGEST: Span = Span::from_secs(3600);

/// The estimates of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct PathEstimate {
    /// The shortest round trip of any segment, and of a full one.
    shortest: Option<Span>,
    shortest_full: Option<Span>,
    /// The last round trip.
    pub(super) latest_round_trip: Option<Span>,
    /// The last progress, and the usual interval between two.
    last_progress: Option<Instant>,
    interval: Option<Span>,
    /// The last service times of a segment, the number of all measured, their median and their
    /// mean.
    samples: [Span; SERVICE_SAMPLES],
    count: usize,
    service: Option<Span>,
    mean: Option<Span>,
}

impl PathEstimate {
    /// Adds a round trip sample. Its acknowledgement covered `segments` full segments; 0 for less
    /// than one.
    pub(super) fn round_trip(&mut self, sample: Span, segments: u64) {
        let sample = sample.min(LONGEST);
        let base = self.shortest.map_or(sample, |shortest| shortest.min(sample));
        self.shortest = Some(base);
        self.latest_round_trip = Some(sample);
        if segments > 0 {
            // The link transmitted the segments one after the other.
            let alone = base + sample.saturating_sub(base) / segments;
            self.shortest_full = Some(self.shortest_full.map_or(alone, |shortest| shortest.min(alone)));
        }
    }

    /// The round trip of the empty path is at most this, by other connections.
    pub(super) fn shorten(&mut self, round_trip: Span) {
        self.shortest = Some(self.shortest.map_or(round_trip, |shortest| shortest.min(round_trip)).min(LONGEST));
    }

    /// Whether no service time was measured: the estimate is only a bound.
    pub(super) const fn is_service_unknown(&self) -> bool {
        self.service.is_none()
    }

    /// The round trip of an empty path.
    pub(super) fn base(&self) -> Option<Span> {
        self.shortest
    }

    /// The same for a full segment.
    pub(super) fn base_full(&self) -> Option<Span> {
        self.shortest_full.or(self.shortest)
    }

    /// The usual interval between two deliveries of new data; zero before it is measured.
    pub(super) fn interval(&self) -> Span {
        self.interval.unwrap_or(Span::ZERO)
    }

    /// New data was delivered.
    pub(super) fn progress(&mut self, now: Instant) {
        if let Some(before) = self.last_progress.replace(now) {
            self.interval = Some(usual(self.interval, now.since(before).min(LONGEST)));
        }
    }

    /// Nothing is outstanding: the time until the next delivery is no sample of the interval.
    pub(super) fn pause(&mut self) {
        self.last_progress = None;
    }

    /// Adds a service time: two segments left the busy link with this spacing.
    pub(super) fn service_sample(&mut self, spacing: Span) {
        self.samples[self.count % SERVICE_SAMPLES] = spacing.min(LONGEST);
        self.count += 1;
        let mut sorted = self.samples;
        let known = &mut sorted[..self.count.min(SERVICE_SAMPLES)];
        known.sort_unstable();
        self.service = Some(known[known.len() / 2]);
        // The longest may contain an outage.
        let usual = &known[..known.len().saturating_sub(1).max(1)];
        self.mean = Some(usual.iter().fold(Span::ZERO, |sum, &spacing| sum + spacing) / usual.len() as u64);
    }

    /// The mean service time of a segment, at least the median.
    pub(super) fn mean_service(&self) -> Span {
        let usual = self.link_estimate().service;
        self.mean.map_or(usual, |mean| mean.max(usual))
    }

    /// The estimate of the link. Before the first service time is measured, the round trip of a
    /// full segment less that of the handshake stands for it.
    pub(super) fn link_estimate(&self) -> LinkEstimate {
        let base = self.base().unwrap_or(Span::ZERO);
        let service = match (self.service, self.shortest_full) {
            // It is at most the round trip of a full segment.
            (Some(service), Some(full)) => service.min(full),
            // At the receiver no round trip of data is known.
            (Some(service), None) => service,
            (None, full) => full.map_or(Span::ZERO, |full| full.saturating_sub(base)),
        };
        LinkEstimate { base, service }
    }
}

/// An exponential mean with weight 1/8. An outlier counts as three times the mean at most.
fn usual(mean: Option<Span>, sample: Span) -> Span {
    let Some(mean) = mean else { return sample };
    let counted = sample.min(mean * 3).max(Span::from_nanos(1));
    (mean * 7 + counted) / 8
}
