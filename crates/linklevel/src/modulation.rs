//! From bits to soft values: symbols on fading bursts, interference as Gaussian noise, exact
//! log-likelihood ratios.

use crate::noise::Noise;
use crate::schemes::{Modulation, Part};

/// One part of a received block, for any C/I: bits, fading and noise are drawn once, and only the
/// amplitude changes.
#[derive(Clone, Debug)]
pub struct Reception {
    modulation: Modulation,
    symbols: Vec<Symbol>,
    /// For each bit, its symbol and its position in the symbol.
    bits: Vec<(u16, u8)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Symbol {
    /// Amplitude relative to the noise's standard deviation in one dimension, at a C/I of 0 dB.
    amplitude: f32,
    sent: [bool; 3],
    noise: (f32, f32),
}

impl Reception {
    /// The bits `sent` at the places of `part`. `gains` has the deviation of each burst's C/I from
    /// the mean, as a factor.
    pub fn new(modulation: Modulation, part: &Part, sent: &[bool], gains: &[f64], noise: &mut Noise) -> Self {
        let highest = part.places.iter().map(|place| place.symbol).max().map_or(0, usize::from);
        let mut here = vec![u16::MAX; highest + 1];
        let mut symbols = Vec::new();
        let mut bits = Vec::with_capacity(sent.len());
        for (place, bit) in part.places.iter().zip(sent) {
            let index = &mut here[usize::from(place.symbol)];
            if *index == u16::MAX {
                *index = symbols.len() as u16;
                // The energy per symbol over the noise density is the C/I; a dimension has half of
                // that density.
                let amplitude = (2.0 * gains[usize::from(place.burst)]).sqrt() as f32;
                symbols.push(Symbol { amplitude, ..Symbol::default() });
            }
            bits.push((*index, place.bit));
            symbols[usize::from(*index)].sent[usize::from(place.bit)] = *bit;
        }
        if modulation == Modulation::Psk8 {
            fill(&mut symbols, &bits, noise);
            let values = noise.values(2 * symbols.len());
            symbols.iter_mut().zip(values.chunks_exact(2)).for_each(|(symbol, n)| symbol.noise = (n[0], n[1]));
        } else {
            let values = noise.values(symbols.len());
            symbols.iter_mut().zip(values).for_each(|(symbol, n)| symbol.noise.0 = n);
        }
        Self { modulation, symbols, bits }
    }

    /// Adds the log-likelihood ratio ln(P(0)/P(1)) of each bit, at the mean C/I `ratio` (a factor,
    /// not dB), to `soft` at the index in `numbers`.
    pub fn add_to(&self, ratio: f64, numbers: &[usize], soft: &mut [f32]) {
        let scale = ratio.sqrt() as f32;
        match self.modulation {
            Modulation::Gmsk => {
                for ((symbol, _), number) in self.bits.iter().zip(numbers) {
                    let Symbol { amplitude, sent, noise } = &self.symbols[usize::from(*symbol)];
                    let amplitude = amplitude * scale;
                    let received = if sent[0] { -amplitude } else { amplitude } + noise.0;
                    soft[*number] += 2.0 * amplitude * received;
                }
            }
            Modulation::Psk8 => {
                let values: Vec<[f32; 3]> = self.symbols.iter().map(|symbol| symbol.soft(scale)).collect();
                for ((symbol, bit), number) in self.bits.iter().zip(numbers) {
                    soft[*number] += values[usize::from(*symbol)][usize::from(*bit)];
                }
            }
        }
    }
}

/// Bits of a symbol that belong to another part are random.
fn fill(symbols: &mut [Symbol], bits: &[(u16, u8)], noise: &mut Noise) {
    let mut ours = vec![[false; 3]; symbols.len()];
    bits.iter().for_each(|(symbol, bit)| ours[usize::from(*symbol)][usize::from(*bit)] = true);
    let random = noise.bits(3 * symbols.len());
    for (i, (symbol, ours)) in symbols.iter_mut().zip(&ours).enumerate() {
        for bit in 0..3 {
            if !ours[bit] {
                symbol.sent[bit] = random[3 * i + bit];
            }
        }
    }
}

/// The three bits of each of the eight phases, in steps of 45° (TS 45.004 §3.2).
const GRAY: [[bool; 3]; 8] = {
    const O: bool = false;
    const I: bool = true;
    [[I, I, I], [O, I, I], [O, I, O], [O, O, O], [O, O, I], [I, O, I], [I, O, O], [I, I, O]]
};

/// The eight phases, of length 1.
const POINTS: [(f32, f32); 8] = {
    const H: f32 = std::f32::consts::FRAC_1_SQRT_2;
    [(1.0, 0.0), (H, H), (0.0, 1.0), (-H, H), (-1.0, 0.0), (-H, -H), (0.0, -1.0), (H, -H)]
};

impl Symbol {
    fn soft(&self, scale: f32) -> [f32; 3] {
        let amplitude = self.amplitude * scale;
        let phase = GRAY.iter().position(|bits| *bits == self.sent).expect("each three bits have a phase");
        let (x, y) = POINTS[phase];
        let (re, im) = (amplitude * x + self.noise.0, amplitude * y + self.noise.1);
        // All points have the same energy, so that the likelihood is the exponential of the
        // correlation.
        let correlations = POINTS.map(|(x, y)| amplitude * (re * x + im * y));
        let most = correlations.iter().fold(f32::MIN, |most, c| most.max(*c));
        let likelihoods = correlations.map(|c| libm::expf(c - most));
        std::array::from_fn(|bit| {
            let sum = |value| {
                let of = GRAY.iter().zip(&likelihoods).filter(|(bits, _)| bits[bit] == value);
                of.map(|(_, likelihood)| *likelihood).sum::<f32>().max(f32::MIN_POSITIVE)
            };
            libm::logf(sum(false)) - libm::logf(sum(true))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fading::Fading;
    use crate::profile::Profile;
    use crate::schemes::named;

    /// The Gaussian tail probability.
    fn q(x: f64) -> f64 {
        libm::erfc(x / std::f64::consts::SQRT_2) / 2.0
    }

    /// Number of data bits of `scheme` with a wrong sign, for each of the three bits of a symbol,
    /// and number of bits sent.
    fn errors(scheme: &str, decibels: f64, blocks: usize, profile: Profile) -> [(f64, f64); 3] {
        let scheme = named(scheme).expect("a scheme");
        let part = &scheme.data[0];
        let fading = Fading::new(profile, &scheme.frames);
        let mut noise = Noise::new(1, "errors");
        let numbers: Vec<usize> = (0..part.places.len()).collect();
        let mut counts = [(0.0, 0.0); 3];
        for _ in 0..blocks {
            let sent = noise.bits(numbers.len());
            let gains = fading.powers(&mut noise);
            let mut soft = vec![0.0; sent.len()];
            Reception::new(scheme.modulation, part, &sent, &gains, &mut noise).add_to(
                libm::pow(10.0, decibels / 10.0),
                &numbers,
                &mut soft,
            );
            for ((place, soft), bit) in part.places.iter().zip(&soft).zip(&sent) {
                let (wrong, of) = &mut counts[usize::from(place.bit)];
                *wrong += f64::from(u8::from((*soft < 0.0) != *bit));
                *of += 1.0;
            }
        }
        counts
    }

    /// Asserts five standard deviations of a count with this expectation, and `slack` of the
    /// expectation for simplifications of the formula.
    fn assert_near((wrong, of): (f64, f64), probability: f64, slack: f64) {
        let expected = of * probability;
        let deviation = 5.0 * expected.sqrt() + slack * expected;
        assert!((wrong - expected).abs() < deviation, "{wrong} of {of}, expected {expected} ± {deviation}");
    }

    #[test]
    fn antipodal_bit_errors_match_the_gaussian_tail() {
        for decibels in [0.0, 3.0, 6.0] {
            let ratio = libm::pow(10.0, decibels / 10.0);
            assert_near(errors("cs-4", decibels, 400, Profile::Static)[0], q((2.0 * ratio).sqrt()), 0.0);
        }
    }

    #[test]
    fn over_rayleigh_fading_errors_fall_only_with_the_ratio() {
        // (1 − √(γ/(1+γ)))/2, Proakis §14.3. The 456 bits of a block share four fades: 4000 blocks
        // for 2 %.
        let ratio: f64 = 10.0;
        let (wrong, of) = errors("cs-4", 10.0, 4000, Profile::Tu3Hopping)[0];
        let expected = (1.0 - (ratio / (1.0 + ratio)).sqrt()) / 2.0;
        assert!((wrong / of / expected - 1.0).abs() < 0.08, "{} {expected}", wrong / of);
    }

    #[test]
    fn the_bits_of_a_phase_fail_as_often_as_their_neighbours_differ() {
        // A phase is mistaken for its neighbour on one side with probability Q(√(2γ) sin 22.5°).
        // The third bit differs from one of the two neighbours of each phase, the others from one
        // of half of the phases.
        let tail = q((2.0 * 10.0f64).sqrt() * libm::sin(std::f64::consts::PI / 8.0));
        let [first, second, third] = errors("mcs-5", 10.0, 100, Profile::Static);
        assert_near(first, tail / 2.0, 0.02);
        assert_near(second, tail / 2.0, 0.02);
        assert_near(third, tail, 0.02);
    }
}
