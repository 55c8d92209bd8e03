//! The round trip and the retransmission time-out (RFC 6298).

use airpath_core::Span;

use crate::Config;

/// Smoothed round trip, its variation, and the time-out that follows.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    smoothed: Option<Span>,
    variation: Span,
    /// Time-out before back-off.
    base: Span,
    /// Number of times that it was doubled.
    backoff: u32,
    latest: Span,
    minimum: Option<Span>,
}

impl RoundTrip {
    /// Nothing measured yet.
    pub const fn new(config: &Config) -> Self {
        Self {
            smoothed: None,
            variation: Span::ZERO,
            base: config.initial_rto,
            backoff: 0,
            latest: Span::ZERO,
            minimum: None,
        }
    }

    /// Takes a measured round trip.
    pub fn sample(&mut self, measured: Span, config: &Config) {
        self.latest = measured;
        self.minimum = Some(self.minimum.map_or(measured, |least| least.min(measured)));
        let granularity = config.rto_granularity.max(Span::from_nanos(1));
        // A clock of coarse ticks sees whole ticks.
        let seen = if config.coarse_clock { measured.round_up_to(granularity) } else { measured };
        let smoothed = match self.smoothed {
            // RFC 6298 §2.2
            None => {
                self.variation = seen / 2;
                seen
            }
            // RFC 6298 §2.3: β = 1/4, α = 1/8
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(seen)) / 4;
                (smoothed * 7 + seen) / 8
            }
        };
        self.smoothed = Some(smoothed);
        let timeout = smoothed + granularity.max(self.variation * 4);
        let timeout = if config.coarse_clock { timeout.round_up_to(granularity) } else { timeout };
        self.base = timeout.max(config.min_rto).min(config.max_rto);
        self.backoff = 0;
    }

    /// The time-out in force.
    pub fn timeout(&self, config: &Config) -> Span {
        self.base.saturating_mul(1 << self.backoff.min(16)).min(config.max_rto)
    }

    /// Doubles it (RFC 6298 §5.5).
    pub const fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Takes back all doubling.
    pub const fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// The smoothed round trip.
    pub const fn smoothed(&self) -> Option<Span> {
        self.smoothed
    }

    /// The latest measurement.
    pub const fn latest(&self) -> Span {
        self.latest
    }

    /// The least.
    pub const fn minimum(&self) -> Option<Span> {
        self.minimum
    }
}
