//! Blockage: what steps into the path of a signal and out again, as people and vehicles do in front
//! of the narrow beams of millimetre waves (TR 38.901 §7.6.4, without its geometry).
//!
//! Blockages begin at random, as a Poisson process, and last for exponentially distributed times.
//! Where two overlap, the signal is weakened once. It is a function of time: time is divided into
//! frames of the mean interval, and the blockages of a frame follow from its number.

use airpath_core::{Decibel, Instant, Seed, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::indexed_random::IndexedRandom;
use super::{ConfigError, Sample};
use crate::error::ValueError;

/// Signals that something blocks at times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Blockage {
    /// By how much the signal is weaker then: 0 to 60 dB. Interference is not.
    pub attenuation: Decibel,
    /// The mean time from the beginning of one to that of the next: 10 ms to an hour.
    pub every: Span,
    /// How long one lasts in the mean: at most a tenth of `every`.
    pub lasting: Span,
}

/// The least and the largest `every`.
const EVERY: [Span; 2] = [Span::from_millis(10), Span::from_secs(3600)];

impl Blockage {
    /// The blockages of one mobile, drawn from the stream `path`.
    pub(super) fn process(&self, seed: Seed, path: &str) -> Result<Process, ConfigError> {
        let refused =
            |key: &str, expected| Err(ValueError::Range { key: format!("conditions.blockage.{key}"), expected }.into());
        if !(0.0..=60.0).contains(&self.attenuation.get()) {
            return refused("attenuation", "0 dB to 60 dB");
        }
        if !(EVERY[0]..=EVERY[1]).contains(&self.every) {
            return refused("every", "10 ms to 1 h");
        }
        if self.lasting.is_zero() || self.lasting * SHARE > self.every {
            return refused("lasting", "above zero, and at most a tenth of `every`");
        }
        Ok(Process {
            attenuation: self.attenuation.get(),
            every: self.every.as_nanos(),
            lasting: self.lasting.as_nanos() as f64,
            random: IndexedRandom::new(seed, path),
            frame: None,
            blocked: Vec::new(),
        })
    }
}

/// `lasting` is at most `every` by this number, so that a blockage reaches into the next frame at
/// most: of those that would be longer (one in 22,000) the end is cut off.
const SHARE: u64 = 10;

/// Random numbers of a frame: half of them for how many blockages begin in it, and two for each of
/// these. In one of 10⁸ frames more than ten begin; the others are left out.
const NUMBERS: u64 = 40;

/// The blockages of one mobile.
#[derive(Clone, Debug)]
pub struct Process {
    attenuation: f64,
    /// Nanoseconds of a frame.
    every: u64,
    lasting: f64,
    random: IndexedRandom,
    /// The frame that was looked at last.
    frame: Option<u64>,
    /// From when to when the path is blocked, by what began in that frame or the one before.
    blocked: Vec<(u64, u64)>,
}

impl Process {
    /// Weakens the signal of a sample if something is in the way at `now`.
    pub fn apply(&mut self, now: Instant, sample: &mut Sample) {
        let now = now.as_nanos();
        let frame = now / self.every;
        if self.frame != Some(frame) {
            self.blocked.clear();
            frame.checked_sub(1).into_iter().chain([frame]).for_each(|frame| self.draw(frame));
            self.frame = Some(frame);
        }
        if self.blocked.iter().any(|(from, to)| (*from..*to).contains(&now)) {
            sample.carrier_to_interference -= self.attenuation;
            sample.level = sample.level.map(|level| level - self.attenuation);
        }
    }

    /// The blockages that begin in a frame.
    fn draw(&mut self, frame: u64) {
        let first = frame.wrapping_mul(NUMBERS);
        // The number of events in a unit of time, from exponential times between them (D. E. Knuth,
        // The Art of Computer Programming, volume 2, §3.4.1).
        let mut product = 1.0;
        let mut number = 0;
        while number < NUMBERS / 2 {
            product *= 1.0 - self.random.uniform(first.wrapping_add(number));
            if product <= EXP_MINUS_1 {
                break;
            }
            number += 1;
        }
        // The numbers of this frame that are not used yet.
        let mut index = first.wrapping_add(NUMBERS / 2);
        for _ in 0..number.min(NUMBERS / 4) {
            let from = frame * self.every + (self.random.uniform(index) * self.every as f64) as u64;
            let lasting = -libm::log(1.0 - self.random.uniform(index.wrapping_add(1))) * self.lasting;
            self.blocked.push((from, from + (lasting as u64).min(self.every)));
            index = index.wrapping_add(2);
        }
    }
}

/// 1/e.
const EXP_MINUS_1: f64 = 0.367_879_441_171_442_33;

#[cfg(test)]
mod tests {
    use super::*;

    fn process(text: &str) -> Result<Process, ConfigError> {
        toml::from_str::<Blockage>(text).expect("keys").process(Seed::new(1), "cell/user-0/blockage")
    }

    const OFTEN: &str = "attenuation = \"20 dB\"\nevery = \"1 s\"\nlasting = \"100 ms\"";

    fn at(process: &mut Process, millis: u64) -> f64 {
        let mut sample = Sample { level: Some(30.0), ..Sample::in_one_cell(15.0) };
        process.apply(Instant::ZERO + Span::from_millis(millis), &mut sample);
        assert_eq!(sample.level, Some(sample.carrier_to_interference + 15.0));
        sample.carrier_to_interference
    }

    #[test]
    fn blockages_have_their_rate_and_their_duration() {
        let mut process = process(OFTEN).expect("sound");
        let values: Vec<f64> = (0..10_000_000).step_by(2).map(|millis| at(&mut process, millis)).collect();
        assert!(values.iter().all(|value| [15.0, -5.0].contains(value)));
        let blocked = values.iter().filter(|value| **value < 0.0).count() as f64 / values.len() as f64;
        // Of an M/G/∞ system with a load of 0.1: 1 − exp(−0.1) of the time, and a busy period
        // begins exp(−0.1) times a second. Five standard errors of 10,000 seconds.
        assert!((blocked - 0.0952).abs() < 0.008, "{blocked}");
        let begins = values.windows(2).filter(|pair| pair[0] > 0.0 && pair[1] < 0.0).count();
        // Those of less than 2 ms can be missed: 2 %.
        assert!((8400..9400).contains(&begins), "{begins}");
    }

    #[test]
    fn a_sample_does_not_depend_on_those_before() {
        let (mut often, mut seldom) = (process(OFTEN).expect("sound"), process(OFTEN).expect("sound"));
        let all: Vec<f64> = (0..100_000).map(|millis| at(&mut often, millis)).collect();
        for millis in (0..100_000).step_by(777) {
            assert_eq!(at(&mut seldom, millis), all[millis as usize], "at {millis} ms");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (from, to, key) in [
            ("20 dB", "-1 dB", "attenuation"),
            ("20 dB", "61 dB", "attenuation"),
            ("1 s", "9 ms", "every"),
            ("1 s", "2 h", "every"),
            ("100 ms", "101 ms", "lasting"),
            ("100 ms", "0 s", "lasting"),
        ] {
            let error = process(&OFTEN.replace(from, to)).expect_err(to);
            assert_eq!(crate::error::ModelError::field(&error), format!("conditions.blockage.{key}"));
        }
    }
}
