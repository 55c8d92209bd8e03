//! Quantiles of lengths of time.

use airpath_core::Span;

/// Quantiles of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Samples.
    pub count: u64,
    /// The shortest.
    pub minimum: Span,
    /// The mean.
    pub mean: Span,
    /// Median.
    pub median: Span,
    /// 95th percentile.
    pub percentile_95: Span,
    /// The longest.
    pub maximum: Span,
}

impl Quantiles {
    /// From samples in any order; `None` without samples.
    pub fn of(mut samples: Vec<Span>) -> Option<Self> {
        samples.sort_unstable();
        let sum: u128 = samples.iter().map(|sample| u128::from(sample.as_nanos())).sum();
        let count = samples.len();
        // The mean of 64-bit numbers fits into 64 bits.
        let mean = u64::try_from(sum / (count.max(1) as u128)).unwrap_or(u64::MAX);
        // Nearest-rank percentile.
        let at = |percent: usize| samples.get((count * percent).div_ceil(100).max(1) - 1).copied();
        Some(Self {
            count: count as u64,
            minimum: *samples.first()?,
            mean: Span::from_nanos(mean),
            median: at(50)?,
            percentile_95: at(95)?,
            maximum: *samples.last()?,
        })
    }
}
