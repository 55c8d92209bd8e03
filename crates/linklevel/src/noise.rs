//! Gaussian noise and random bits, the same on every machine.

use airpath_core::Seed;
use airpath_core::rng::RandomStream;

/// A generator of one purpose.
#[derive(Clone, Debug)]
pub struct Noise {
    stream: RandomStream,
}

impl Noise {
    /// The stream `path` of a seed.
    pub fn new(seed: u64, path: &str) -> Self {
        Self { stream: Seed::new(seed).stream(path) }
    }

    /// Two independent values of mean 0 and variance 1 (Box and Muller).
    pub fn pair(&mut self) -> (f64, f64) {
        // 1 − u is in (0, 1].
        let radius = (-2.0 * libm::log(1.0 - self.stream.uniform())).sqrt();
        let (sine, cosine) = libm::sincos(2.0 * std::f64::consts::PI * self.stream.uniform());
        (radius * cosine, radius * sine)
    }

    /// `count` values of mean 0 and variance 1.
    pub fn values(&mut self, count: usize) -> Vec<f32> {
        let mut values: Vec<f32> =
            (0..count.div_ceil(2)).flat_map(|_| <[f64; 2]>::from(self.pair())).map(|v| v as f32).collect();
        values.truncate(count);
        values
    }

    /// `count` random bits.
    pub fn bits(&mut self, count: usize) -> Vec<bool> {
        let words: Vec<u64> = (0..count.div_ceil(64)).map(|_| self.stream.bits()).collect();
        (0..count).map(|i| words[i / 64] >> (i % 64) & 1 == 1).collect()
    }
}
