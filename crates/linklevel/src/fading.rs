//! Rayleigh fading: one complex Gaussian factor per burst, correlated over time by the mobile's
//! speed.

use crate::noise::Noise;
use crate::profile::Profile;

/// Generator of the factors of a block's bursts.
#[derive(Clone, Debug)]
pub struct Fading {
    /// The lower triangle of the covariance's Cholesky factor, row by row. Empty without fading.
    factor: Vec<Vec<f64>>,
    bursts: usize,
}

/// Length of a TDMA frame: 120 ms / 26 (TS 45.002 §4.3.1), in seconds.
const FRAME: f64 = 0.120 / 26.0;
/// Carrier frequency of the profiles, in Hz.
const CARRIER: f64 = 900e6;
/// Speed of light, in metres per second.
const LIGHT: f64 = 299_792_458.0;

impl Fading {
    /// The fading of bursts in the TDMA frames `frames`.
    pub fn new(profile: Profile, frames: &[u32]) -> Self {
        let factor = match profile {
            Profile::Static => Vec::new(),
            _ => cholesky(frames.len(), |i, j| match profile.speed() {
                // Ideal frequency hopping: bursts are independent.
                None => f64::from(u8::from(i == j)),
                // Clarke and Jakes: isotropic waves give J₀(2π f_D τ).
                Some(speed) => {
                    let apart = f64::from(frames[i].abs_diff(frames[j])) * FRAME;
                    libm::j0(2.0 * std::f64::consts::PI * speed / LIGHT * CARRIER * apart)
                }
            }),
        };
        Self { factor, bursts: frames.len() }
    }

    /// The power of each burst; the mean over all blocks is 1.
    pub fn powers(&self, noise: &mut Noise) -> Vec<f64> {
        if self.factor.is_empty() {
            return vec![1.0; self.bursts];
        }
        let white: Vec<(f64, f64)> = (0..self.bursts).map(|_| noise.pair()).collect();
        let power = |row: &Vec<f64>| {
            let sum = row.iter().zip(&white).fold((0.0, 0.0), |(re, im), (l, (x, y))| (re + l * x, im + l * y));
            (sum.0 * sum.0 + sum.1 * sum.1) / 2.0
        };
        self.factor.iter().map(power).collect()
    }
}

/// The lower triangle L with L·Lᵀ = `covariance`, whose diagonal is 1.
fn cholesky(size: usize, covariance: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(size);
    for i in 0..size {
        let mut row: Vec<f64> = Vec::with_capacity(i + 1);
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for (j, earlier) in rows.iter().enumerate() {
            // The bursts of a slow mobile are so similar that the matrix is singular but for
            // rounding.
            let regular = earlier[j] > 1e-5;
            row.push(if regular { (covariance(i, j) - product(&row, earlier)) / earlier[j] } else { 0.0 });
        }
        let rest = covariance(i, i) - product(&row, &row);
        row.push(rest.max(1e-12).sqrt());
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The correlation of the powers of two bursts is the square of that of their factors.
    fn correlation(profile: Profile, apart: u32) -> f64 {
        let fading = Fading::new(profile, &[0, apart]);
        let mut noise = Noise::new(1, "test");
        let draws: Vec<Vec<f64>> = (0..40_000).map(|_| fading.powers(&mut noise)).collect();
        let n = draws.len() as f64;
        draws.iter().map(|p| p[0] * p[1]).sum::<f64>() / n - 1.0
    }

    #[test]
    fn powers_have_mean_one_and_the_tail_of_rayleigh_fading() {
        let fading = Fading::new(Profile::Tu3, &[0, 1, 2, 3]);
        let mut noise = Noise::new(1, "test");
        let draws: Vec<f64> = (0..40_000).flat_map(|_| fading.powers(&mut noise).pop()).collect();
        let n = draws.len() as f64;
        // The standard deviation of the mean is 1/200, that of the share √(p(1−p)/n) ≈ 0.0015.
        assert!((draws.iter().sum::<f64>() / n - 1.0).abs() < 0.02);
        let deep = draws.iter().filter(|power| **power < 0.1).count() as f64 / n;
        assert!((deep - (1.0 - libm::exp(-0.1))).abs() < 0.006, "{deep}");
    }

    #[test]
    fn correlation_of_bursts_follows_the_speed() {
        assert!(correlation(Profile::Tu3, 1) > 0.95);
        assert!(correlation(Profile::Tu3Hopping, 1).abs() < 0.05);
        // 50 km/h at 900 MHz: f_D = 41.7 Hz; J₀(1.209)² = 0.44, J₀(2.417)² = 0.000.
        assert!((correlation(Profile::Tu50, 1) - 0.44).abs() < 0.05);
        assert!(correlation(Profile::Tu50, 2).abs() < 0.05);
    }
}
