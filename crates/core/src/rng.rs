//! Named generator streams. A component draws from its own stream, identified by its path name.
//! Adding or removing a component thus changes no other's draws.
//!
//! A stream is ChaCha with 8 rounds, keyed by the seed, the repetition and a 128-bit FNV-1a hash of
//! the path: named algorithms, the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::units::Probability;

/// The seed of a run and the number of its repetition: the root of all streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed {
    /// Chosen by the user.
    pub seed: u64,
    /// Number of the repetition of a scenario, from zero.
    pub repetition: u64,
}

impl Seed {
    /// The seed `seed`, first repetition.
    pub const fn new(seed: u64) -> Self {
        Self { seed, repetition: 0 }
    }

    /// The stream of the component `path`, such as `fixed/down/loss` or `cell/user-3/channel`.
    pub fn stream(self, path: &str) -> RandomStream {
        RandomStream { seed: self, path: fnv1a_128(path.as_bytes()), generator: None }
    }
}

fn fnv1a_128(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

/// The generator of one component. Its state, some 300 bytes, is allocated at the first draw: most
/// links of a large run never draw.
#[derive(Clone, Debug)]
pub struct RandomStream {
    seed: Seed,
    path: u128,
    generator: Option<Box<ChaCha8Rng>>,
}

impl RandomStream {
    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let Self { seed, path, generator } = self;
        generator.get_or_insert_with(|| begin(*seed, *path)).next_u64()
    }

    /// Whether an event of probability `p` happens. Always takes one draw, so that another
    /// probability does not shift later draws.
    #[inline]
    pub fn chance(&mut self, p: Probability) -> bool {
        self.uniform() < p.get()
    }

    /// A number in [0, 1) of 53 random bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A whole number below `bound`, by multiply-and-shift; the bias is below `bound`/2⁶⁴.
    ///
    /// # Panics
    /// If `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

#[cold]
fn begin(Seed { seed, repetition }: Seed, path: u128) -> Box<ChaCha8Rng> {
    let mut key = [0u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&repetition.to_le_bytes());
    key[16..].copy_from_slice(&path.to_le_bytes());
    Box::new(ChaCha8Rng::from_seed(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: u64, repetition: u64, path: &str) -> u64 {
        Seed { seed, repetition }.stream(path).bits()
    }

    #[test]
    fn streams_are_the_same_on_every_machine() {
        // Golden values: a change here changes every saved result.
        assert_eq!(fnv1a_128(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv1a_128(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(first(7, 0, "cell/user-0"), 4_823_335_762_975_098_517);
    }

    #[test]
    fn a_stream_depends_on_all_of_its_name() {
        let base = first(7, 0, "a/b");
        assert_eq!(base, first(7, 0, "a/b"));
        for other in [first(8, 0, "a/b"), first(7, 1, "a/b"), first(7, 0, "a/c"), first(0, 7, "a/b")] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn chance_keeps_to_its_probability() {
        let mut stream = Seed::new(1).stream("chance");
        let p = Probability::new(0.1).expect("within range");
        let hits = (0..100_000).filter(|_| stream.chance(p)).count();
        // Standard deviation √(n·p·(1−p)) ≈ 95: the interval is five on either side.
        assert!((9_525..=10_475).contains(&hits), "{hits}");
        assert!(!(0..1000).any(|_| stream.chance(Probability::NEVER)));
        assert!((0..1000).all(|_| stream.chance(Probability::ALWAYS)));
    }

    #[test]
    fn below_covers_its_range() {
        let mut stream = Seed::new(1).stream("below");
        let mut seen = [0; 5];
        (0..5000).for_each(|_| seen[stream.below(5) as usize] += 1);
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    }
}
