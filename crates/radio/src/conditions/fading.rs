//! Rayleigh fading: the fast part of a radio signal's variation, by waves that come from all
//! around.
//!
//! R. H. Clarke's model ("A statistical theory of mobile-radio reception", Bell System Technical
//! Journal 47, 1968): waves of equal strength from equally spaced directions, each with a random
//! phase; the speed of the mobile shifts the frequency of each by the cosine of its direction. The
//! whole pattern is turned by a random angle. It is a function of time: each point is computed on
//! demand.

use airpath_core::{Frequency, Instant, Seed, Speed};

use super::Sample;

/// Waves. From eight on, the envelope is close to a Rayleigh envelope.
const WAVES: usize = 16;

/// The speed of light in metres a second.
const LIGHT: f64 = 299_792_458.0;

/// Deeper fades count as 40 dB.
const DEEPEST: f64 = 1e-4;

/// Fast fading of C/I: the signal fades, and independently of it the interference, as that of one
/// interferer (3GPP TS 45.005 §6.3 lets both have the same profile). The noise does not.
#[derive(Clone, Debug)]
pub struct Fading {
    signal: Rayleigh,
    interference: Rayleigh,
}

impl Fading {
    /// At `speed`, for a carrier of `frequency`, drawn from the streams `path` and
    /// `path/interference`.
    pub fn new(speed: Speed, frequency: Frequency, seed: Seed, path: &str) -> Self {
        let of = |path: &str| Rayleigh::new(speed, frequency, seed, path);
        Self { signal: of(path), interference: of(&format!("{path}/interference")) }
    }

    /// Lets a sample fade, in which there is no fast fading yet.
    pub fn apply(&self, now: Instant, sample: &mut Sample) {
        let fade = self.signal.at(now);
        // Without a level there is no noise; C/(I + N) is at most C/N.
        let noise = sample.level.map_or(0.0, |level| ratio(sample.carrier_to_interference - level).min(1.0));
        let disturbance = noise + (1.0 - noise) * ratio(self.interference.at(now));
        sample.carrier_to_interference += fade - 10.0 * libm::log10(disturbance);
        sample.level = sample.level.map(|level| level + fade);
    }
}

/// Decibels as a ratio of powers.
fn ratio(decibels: f64) -> f64 {
    libm::pow(10.0, decibels / 10.0)
}

/// A fading signal of unit mean power.
#[derive(Clone, Debug)]
pub struct Rayleigh {
    /// Of each wave: its shift of frequency in hertz, and its phase at the origin, in turns.
    waves: [(f64, f64); WAVES],
}

impl Rayleigh {
    /// At `speed`, for a carrier of `frequency`, drawn from the stream `path`.
    pub fn new(speed: Speed, frequency: Frequency, seed: Seed, path: &str) -> Self {
        let largest = speed.as_metres_per_second() * frequency.as_megahertz() * 1e6 / LIGHT;
        let mut stream = seed.stream(path);
        let turn = stream.uniform();
        let mut waves = [(0.0, 0.0); WAVES];
        for (wave, (shift, phase)) in waves.iter_mut().enumerate() {
            let direction = (wave as f64 + turn) / WAVES as f64;
            *shift = largest * libm::cos(std::f64::consts::TAU * direction);
            *phase = stream.uniform();
        }
        Self { waves }
    }

    /// Its strength at `now`, in decibels over the mean power.
    pub fn at(&self, now: Instant) -> f64 {
        let seconds = now.as_secs_f64();
        let (mut real, mut imaginary) = (0.0, 0.0);
        for (shift, phase) in self.waves {
            let turns = shift * seconds + phase;
            let angle = std::f64::consts::TAU * (turns - turns.floor());
            real += libm::cos(angle);
            imaginary += libm::sin(angle);
        }
        let power = (real * real + imaginary * imaginary) / WAVES as f64;
        10.0 * libm::log10(power.max(DEEPEST))
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Span;

    use super::*;
    use crate::conditions::Profile;
    use crate::gsm::block_errors::Curve;

    fn fading(speed: &str, path: &str) -> Rayleigh {
        let frequency = "900 MHz".parse().expect("a frequency");
        Rayleigh::new(speed.parse().expect("a speed"), frequency, Seed::new(1), path)
    }

    #[test]
    fn power_is_exponential() {
        // 500 mobiles at a time each: independent draws.
        let powers: Vec<f64> = (0..4000)
            .map(|user| ratio(fading("50 km/h", &user.to_string()).at(Instant::ZERO + Span::from_secs(user % 7))))
            .collect();
        let mean = powers.iter().sum::<f64>() / 4000.0;
        // The deviation of an exponential mean is 1/√4000 ≈ 0.016: five of them.
        assert!((mean - 1.0).abs() < 0.08, "{mean}");
        for level in [0.1, 0.5, 1.0, 2.0] {
            let below = powers.iter().filter(|power| **power < level).count() as f64 / 4000.0;
            let expected = 1.0 - libm::exp(-level);
            // √(p(1 − p)/4000) is at most 0.0079: five of them, and what sixteen waves are short of
            // many.
            assert!((below - expected).abs() < 0.05, "below {level}: {below}, not {expected}");
        }
    }

    #[test]
    fn it_changes_with_speed() {
        let (slow, fast, still) = (fading("3 km/h", "a"), fading("50 km/h", "a"), fading("0 km/h", "a"));
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        let crossings = |fading: &Rayleigh| {
            let over = |millis: u64| fading.at(at(millis)) > -3.0;
            (0..20_000).filter(|millis| over(*millis) != over(millis + 1)).count()
        };
        let (slow, fast) = (crossings(&slow), crossings(&fast));
        assert!(fast > 8 * slow && slow > 10, "{slow} and {fast}");
        assert_eq!(still.at(at(0)), still.at(at(100_000)));
    }

    #[test]
    fn a_block_fails_as_often_as_by_the_curve_that_has_the_fading() {
        let frequency = "900 MHz".parse().expect("a frequency");
        let slow = "3 km/h".parse().expect("a speed");
        let [still, fades] = [Profile::Static, Profile::Tu3].map(|profile| Curve::of("cs-2", profile, 1));
        for mean in [10.0, 15.0, 20.0] {
            let sum: f64 = (0..8000)
                .map(|user: u64| {
                    let fading = Fading::new(slow, frequency, Seed::new(1), &user.to_string());
                    let mut sample = Sample::in_one_cell(mean);
                    fading.apply(Instant::ZERO + Span::from_secs(user % 7), &mut sample);
                    still.at(sample.carrier_to_interference).get()
                })
                .sum();
            let (ours, theirs) = (sum / 8000.0, fades.at(mean).get());
            // √(p(1 − p)/8000) is at most 0.0056, and the curve's own points scatter, too.
            assert!((ours - theirs).abs() < 0.025, "{ours}, not {theirs}, at {mean} dB");
        }
    }

    #[test]
    fn noise_does_not_fade() {
        let frequency = "900 MHz".parse().expect("a frequency");
        let fading = Fading::new("3 km/h".parse().expect("a speed"), frequency, Seed::new(1), "a");
        let mut sample = Sample { level: Some(12.0), ..Sample::in_one_cell(12.0) };
        fading.apply(Instant::ZERO, &mut sample);
        assert_eq!(Some(sample.carrier_to_interference), sample.level, "there is nothing but noise");
    }

    #[test]
    fn interference_fades_by_itself_and_noise_does_not() {
        let frequency = "900 MHz".parse().expect("a frequency");
        let fading = Fading::new("3 km/h".parse().expect("a speed"), frequency, Seed::new(1), "a");
        for now in [0, 700, 1400].map(|millis| Instant::ZERO + Span::from_millis(millis)) {
            let (signal, interference) = (fading.signal.at(now), fading.interference.at(now));
            let faded = |level| {
                let mut sample = Sample { level, ..Sample::in_one_cell(12.0) };
                fading.apply(now, &mut sample);
                assert_eq!(sample.level, level.map(|level: f64| level + signal));
                sample.carrier_to_interference
            };
            let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
            // Without a level there is no noise: both fade, in decibels.
            close(faded(None), 12.0 + signal - interference);
            // At a level of C/I + 10 dB a tenth of what disturbs is noise.
            close(faded(Some(22.0)), 12.0 + signal - 10.0 * libm::log10(0.1 + 0.9 * ratio(interference)));
        }
    }
}
