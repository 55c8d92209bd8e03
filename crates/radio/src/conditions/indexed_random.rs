//! Random numbers by index (counter-based), independent of the order of calls.

use airpath_core::Seed;

/// Independent random numbers, one for each index.
///
/// A generator's stream gives the key; the numbers are SplitMix64's (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014), whose state after n steps is a
/// multiple of n.
#[derive(Clone, Copy, Debug)]
pub struct IndexedRandom {
    key: u64,
}

/// SplitMix64's step: 2⁶⁴ over the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl IndexedRandom {
    /// The numbers of the stream `path`.
    pub fn new(seed: Seed, path: &str) -> Self {
        Self { key: seed.stream(path).bits() }
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(self, index: u64) -> u64 {
        let mut mixed = self.key.wrapping_add(index.wrapping_add(1).wrapping_mul(STEP));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in [0, 1) of 53 random bits.
    #[inline]
    pub fn uniform(self, index: u64) -> f64 {
        (self.bits(index) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number of the standard Gaussian distribution (Box and Muller, 1958).
    #[inline]
    pub fn gaussian(self, index: u64) -> f64 {
        let (radius, angle) =
            (self.uniform(index.wrapping_mul(2)), self.uniform(index.wrapping_mul(2).wrapping_add(1)));
        (-2.0 * libm::log(1.0 - radius)).sqrt() * libm::cos(std::f64::consts::TAU * angle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_splitmix64() {
        // The first outputs of the generator seeded with 0, as its authors' C code prints them.
        let draws = IndexedRandom { key: 0 };
        assert_eq!([draws.bits(0), draws.bits(1)], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn they_are_uniform_and_differ_by_name() {
        let draws = IndexedRandom::new(Seed::new(1), "a");
        let mean = (0..100_000).map(|index| draws.uniform(index)).sum::<f64>() / 100_000.0;
        // Standard deviation of the mean 1/√(12·100000) ≈ 0.0009: five of them.
        assert!((mean - 0.5).abs() < 0.0046, "{mean}");
        assert_ne!(draws.bits(0), IndexedRandom::new(Seed::new(1), "b").bits(0));
    }
}
