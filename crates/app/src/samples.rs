//! Measured delays and their statistics.

use airpath_core::Span;

/// Delays in the order of their measurement.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Span>);

impl Samples {
    /// Adds a sample.
    pub fn add(&mut self, delay: Span) {
        self.0.push(delay);
    }

    /// The samples, in the order of their measurement.
    pub fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        self.0.iter().copied()
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The arithmetic mean, in seconds.
    pub fn mean_s(&self) -> Option<f64> {
        let sum: u128 = self.0.iter().map(|delay| u128::from(delay.as_nanos())).sum();
        (!self.0.is_empty()).then(|| sum as f64 / self.0.len() as f64 / 1e9)
    }

    /// The smallest delay that at least the share `quantile` (0 to 1) of the samples does not
    /// exceed (nearest rank): 0 gives the least, 1 the greatest.
    pub fn quantile(&self, quantile: f64) -> Option<Span> {
        self.quantiles([quantile])[0]
    }

    /// Several of them, with the samples sorted once.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [Option<Span>; N] {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        quantiles.map(|quantile| {
            let rank = (quantile * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.saturating_sub(1)).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_nearest_rank() {
        let mut samples = Samples::default();
        assert_eq!((samples.quantile(0.5), samples.mean_s()), (None, None));
        (1..=10).rev().for_each(|ms| samples.add(Span::from_millis(ms)));
        let ms = |q| samples.quantile(q).map(|span| span.as_nanos() / 1_000_000);
        assert_eq!([ms(0.0), ms(0.5), ms(0.95), ms(1.0)], [Some(1), Some(5), Some(10), Some(10)]);
        assert_eq!(samples.mean_s(), Some(0.0055));
    }
}
