//! What a receiver learns about the coded bits of one symbol: mean and variance of the information
//! density of bit-interleaved coded modulation over additive white Gaussian noise.
//!
//! The mean is the capacity of the channel from coded bits to their reliabilities, the variance its
//! dispersion (Y. Polyanskiy, H. V. Poor, S. Verdú, "Channel coding rate in the finite blocklength
//! regime", IEEE Trans. Inf. Theory 56(5), 2010; for bit-interleaved coded modulation: G. Caire, G.
//! Taricco, E. Biglieri, IEEE Trans. Inf. Theory 44(3), 1998; both recalled).

use std::sync::LazyLock;

use super::Modulation;

/// The information of a symbol about its coded bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Information {
    /// The mean, in bits.
    pub mean: f64,
    /// The variance, in bits².
    pub variance: f64,
}

impl Information {
    /// The information of a symbol of `modulation` at a signal-to-noise ratio in decibels, E_s/N_0.
    ///
    /// Interpolated between points half a decibel apart, from −25 to 45 dB. Outside, it is that of
    /// the nearest end: below, no block of LTE or NR is decoded; above, all bits are certain.
    #[inline]
    pub fn of(modulation: Modulation, snr_db: f64) -> Self {
        let points = &TABLES[modulation as usize];
        let place = ((snr_db - LOWEST) * PER_DECIBEL).clamp(0.0, (POINTS - 1) as f64);
        let segment = (place as usize).min(POINTS - 2);
        let (from, to) = (points[segment], points[segment + 1]);
        let fraction = place - segment as f64;
        Self {
            mean: from.mean + (to.mean - from.mean) * fraction,
            variance: from.variance + (to.variance - from.variance) * fraction,
        }
    }

    /// The same by integration over the noise.
    ///
    /// A square constellation with Gray mapping is two independent amplitude modulations, of half
    /// of the bits each.
    fn integrated(modulation: Modulation, snr_db: f64) -> Self {
        let bits = modulation.bits() / 2;
        let levels = 1 << bits;
        let sigma = libm::exp10(-snr_db / 20.0);
        // Amplitudes are ±1, ±3, … by the root of their mean square.
        let scale = libm::sqrt(f64::from(levels * levels - 1) / 3.0);
        let spacing = 2.0 / scale / sigma;
        let label = |level: i32| level ^ (level >> 1);
        // The likelihood of an amplitude `steps` away is exp(-(steps · spacing)² / 2 - steps ·
        // spacing · noise), by that of the one sent. Its first factor does not depend on the noise.
        let factors: [f64; MOST_LEVELS] = std::array::from_fn(|steps| {
            let distance = steps as f64 * spacing;
            libm::exp(-distance * distance / 2.0)
        });
        let (mut weights, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for step in -NOISE_STEPS..=NOISE_STEPS {
            let noise = f64::from(step) * NOISE_STEP;
            let weight = libm::exp(-noise * noise / 2.0);
            let for_one = libm::exp(-spacing * noise);
            let likelihood = |steps: i32| {
                let distance = f64::from(steps) * spacing;
                let is_negligible = -distance * (distance / 2.0 + noise) < NEGLIGIBLE;
                if is_negligible { 0.0 } else { factors[steps.unsigned_abs() as usize] * powi(for_one, steps) }
            };
            // By the distance in steps, from -(levels - 1) on.
            let likelihoods: [f64; 2 * MOST_LEVELS - 1] = std::array::from_fn(|place| {
                let steps = place as i32 - (levels - 1);
                if steps < levels { likelihood(steps) } else { 0.0 }
            });
            // The other half mirrors this one: only the bit of the sign differs.
            for sent in 0..levels / 2 {
                let mut same_bit = [0.0; 4];
                let mut all = 0.0;
                for other in 0..levels {
                    let likelihood = likelihoods[(sent - other + levels - 1) as usize];
                    all += likelihood;
                    let differing = label(sent) ^ label(other);
                    for (bit, same) in same_bit.iter_mut().enumerate().take(bits as usize) {
                        *same += if differing >> bit & 1 == 0 { likelihood } else { 0.0 };
                    }
                }
                let unknown: f64 = same_bit.iter().take(bits as usize).map(|same| all / same).product();
                let density = f64::from(bits) - libm::log2(unknown);
                weights += weight;
                sum += weight * density;
                squares += weight * density * density;
            }
        }
        let mean = sum / weights;
        Self { mean: 2.0 * mean, variance: 2.0 * (squares / weights - mean * mean).max(0.0) }
    }
}

/// The noise is integrated to six standard deviations, by the trapezoidal rule with 49 points.
const NOISE_STEPS: i32 = 24;
const NOISE_STEP: f64 = 0.25;

/// Amplitudes of one of the two modulations of 256QAM.
const MOST_LEVELS: usize = 16;

/// Amplitudes that are less likely than the one sent by this exponent do not change the sums.
const NEGLIGIBLE: f64 = -40.0;

/// A whole power, the same on all machines.
fn powi(base: f64, exponent: i32) -> f64 {
    let factor = if exponent < 0 { 1.0 / base } else { base };
    (0..exponent.unsigned_abs()).fold(1.0, |power, _| power * factor)
}

/// The first point of the tables, in dB.
const LOWEST: f64 = -25.0;
/// Points a decibel.
const PER_DECIBEL: f64 = 2.0;
/// Points of a table: up to 45 dB.
const POINTS: usize = 141;

type Table = [Information; POINTS];

static TABLES: [LazyLock<Table>; 4] = [
    LazyLock::new(|| table(Modulation::Qpsk)),
    LazyLock::new(|| table(Modulation::Qam16)),
    LazyLock::new(|| table(Modulation::Qam64)),
    LazyLock::new(|| table(Modulation::Qam256)),
];

fn table(modulation: Modulation) -> Table {
    std::array::from_fn(|point| Information::integrated(modulation, LOWEST + point as f64 / PER_DECIBEL))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The capacity of two antipodal amplitudes at 0 dB for each: 0.4859 bits (recalled from tables
    /// of the binary-input Gaussian channel). QPSK at 3.0103 dB is two of them at 3.0103 dB.
    #[test]
    fn qpsk_is_two_binary_channels() {
        let at = |db| Information::integrated(Modulation::Qpsk, db).mean / 2.0;
        assert!((at(0.0) - 0.4859).abs() < 1e-4, "{}", at(0.0));
        // Shannon's bound holds, and is tight at low ratios: C = log2(1 + snr).
        for db in [-20.0, -10.0, 0.0, 10.0] {
            let shannon = libm::log2(1.0 + libm::exp10(db / 10.0));
            assert!(2.0 * at(db) < shannon, "{db}");
            assert!(db > -15.0 || 2.0 * at(db) > 0.99 * shannon, "{db}");
        }
    }

    #[test]
    fn the_mean_rises_to_the_bits_and_the_variance_vanishes() {
        for modulation in Modulation::ALL {
            let table = &TABLES[modulation as usize];
            // Twice 10⁻¹² for the rounding of sums once all bits are certain.
            assert!(table.windows(2).all(|pair| pair[0].mean <= pair[1].mean + 2e-12), "{modulation:?}");
            let (first, last) = (table[0], table[POINTS - 1]);
            assert!(first.mean > 0.0 && first.mean < 0.0046, "{first:?}");
            assert!((last.mean - f64::from(modulation.bits())).abs() < 1e-6 && last.variance < 1e-6, "{last:?}");
            assert_eq!(Information::of(modulation, 99.0), last);
            assert_eq!(Information::of(modulation, -99.0), first);
        }
    }

    /// Between points, too, the table is as good as the integral: 0.002 bits are 0.01 dB.
    #[test]
    fn interpolation_is_close_to_the_integral() {
        for modulation in Modulation::ALL {
            for step in 0..30 {
                let db = -9.75 + f64::from(step);
                let (fast, slow) = (Information::of(modulation, db), Information::integrated(modulation, db));
                assert!((fast.mean - slow.mean).abs() < 0.002, "{modulation:?} {db} {fast:?} {slow:?}");
                let spread = libm::sqrt(fast.variance) - libm::sqrt(slow.variance);
                assert!(spread.abs() < 0.03, "{modulation:?} {db} {fast:?} {slow:?}");
            }
        }
    }
}
