//! How lengths of time are distributed.

use airpath_core::Span;

/// A distribution by some of its quantiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Samples.
    pub count: u64,
    /// The shortest.
    pub minimum: Span,
    /// The mean.
    pub mean: Span,
    /// Half are no longer.
    pub median: Span,
    /// 95 of 100 are no longer.
    pub percentile_95: Span,
    /// The longest.
    pub maximum: Span,
}

impl Quantiles {
    /// Of these samples, in any order; `None` without any.
    pub fn of(mut samples: Vec<Span>) -> Option<Self> {
        samples.sort_unstable();
        let sum: u128 = samples.iter().map(|sample| u128::from(sample.as_nanos())).sum();
        let count = samples.len();
        // The mean of numbers of 64 bits is one.
        let mean = u64::try_from(sum / (count.max(1) as u128)).unwrap_or(u64::MAX);
        // The smallest sample that so many of a hundred do not exceed.
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
