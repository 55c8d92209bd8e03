//! The phase of periodic packets.

use airpath_core::{RandomStream, Span};

/// The offset of periodic packets from the multiples of their interval. Packets that started at a
/// multiple of every TTI would always have the longest wait for the next one: RFC 3432 §3 thus
/// requires a random start of periodic streams.
#[derive(Clone, Debug)]
pub enum Phase {
    /// This offset.
    Fixed(Span),
    /// A random offset, uniform below the interval or below [`Self::LIMIT`] if that is shorter.
    Random(RandomStream),
}

impl Phase {
    /// Limit of random offsets. A multiple of every TTI (1, 2, 10, 20, 40 and 80 ms) and of the
    /// multiframes of GSM (120 and 240 ms), so that an offset is uniform within each of them.
    pub const LIMIT: Span = Span::from_millis(240);

    /// No offset.
    pub const ZERO: Self = Self::Fixed(Span::ZERO);

    /// `fixed`, or random offsets from `stream`.
    pub fn new(fixed: Option<Span>, stream: impl FnOnce() -> RandomStream) -> Self {
        fixed.map_or_else(|| Self::Random(stream()), Self::Fixed)
    }

    /// The next offset of packets that have this `interval`.
    pub fn draw(&mut self, interval: Span) -> Span {
        match self {
            Self::Fixed(offset) => *offset,
            Self::Random(stream) => {
                let limit = interval.min(Self::LIMIT).as_nanos();
                Span::from_nanos(stream.below(limit.max(1)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Seed;

    use super::*;

    #[test]
    fn random_offsets_are_uniform_below_the_interval_or_the_limit() {
        for (interval, limit) in [(1_000, 240), (240, 240), (20, 20)] {
            let mut phase = Phase::new(None, || Seed::new(1).stream("phase"));
            let mut quarters = [0; 4];
            for _ in 0..4_000 {
                let offset = phase.draw(Span::from_millis(interval));
                assert!(offset < Span::from_millis(limit), "{offset:?}");
                quarters[(offset.as_nanos() * 4 / Span::from_millis(limit).as_nanos()) as usize] += 1;
            }
            // Standard deviation √(4000·¼·¾) ≈ 27: the interval is five on either side.
            assert!(quarters.iter().all(|count| (865..=1_135).contains(count)), "{quarters:?}");
        }
    }

    #[test]
    fn a_fixed_offset_may_exceed_the_interval() {
        let mut phase = Phase::new(Some(Span::from_millis(30)), || unreachable!("it is not drawn"));
        assert_eq!(phase.draw(Span::from_millis(20)), Span::from_millis(30));
    }
}
