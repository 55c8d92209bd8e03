//! From bits to soft values: symbols on fading bursts, interference as Gaussian noise, exact log-likelihood ratios.

use crate::noise::Noise;
use crate::schemes::{Modulation, Part};

/// One part of a block as it was received, for any C/I: bits, fading and noise are drawn once, only the amplitude changes.
#[derive(Clone, Debug)]
pub struct Reception {
    modulation: Modulation,
    symbols: Vec<Symbol>,
    /// For each bit its symbol here and which bit of it.
    bits: Vec<(u16, u8)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Symbol {
    /// Amplitude over the noise's standard deviation in one dimension, at a C/I of 0 dB.
    amplitude: f32,
    sent: [bool; 3],
    noise: (f32, f32),
}

impl Reception {
    /// The bits `sent` on the places of `part`. `gains` has the factor by which each burst's C/I differs from the mean.
    pub fn new(modulation: Modulation, part: &Part, sent: &[bool], gains: &[f64], noise: &mut Noise) -> Self {
        let highest = part.places.iter().map(|place| place.symbol).max().map_or(0, usize::from);
        let mut here = vec![u16::MAX; highest + 1];
        let mut symbols = Vec::new();
        let mut bits = Vec::with_capacity(sent.len());
        for (place, bit) in part.places.iter().zip(sent) {
            let index = &mut here[usize::from(place.symbol)];
            if *index == u16::MAX {
                *index = symbols.len() as u16;
                // Energy a symbol over noise density is the C/I; a dimension has half of that density.
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

    /// Adds the log-likelihood ratio ln(P(0)/P(1)) of each bit, at the mean C/I `ratio` (a factor, not dB), to
    /// `soft` at the number that `numbers` has for it.
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

/// Bits of the symbols that belong to another part are random.
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
        // All points have the same energy, so that the likelihood is the exponential of the correlation.
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
