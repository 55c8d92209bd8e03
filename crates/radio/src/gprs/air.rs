//! The radio of a mobile: what it is like now, and whether a block gets through.

use airpath_core::{Direction, Instant, Probability, Seed, Stream};

use super::coding_scheme::CodingScheme;
use crate::block_errors::{Curve, Profile};
use crate::conditions::{Conditions, Sample};

/// Transmissions of a block that have error rates of their own: a receiver with incremental redundancy combines as many.
const ATTEMPTS: usize = 4;

/// The radio of a mobile.
#[derive(Debug)]
pub struct Air {
    pub conditions: Conditions,
    pub sample: Sample,
    /// By scheme and attempt.
    curves: Vec<[&'static Curve; ATTEMPTS]>,
    /// What a command set instead; down, up.
    forced: [Option<Probability>; 2],
    errors: [Stream; 2],
}

impl Air {
    /// The radio of a mobile with streams `path/down/errors` and `path/up/errors`.
    pub fn new(conditions: Conditions, schemes: &[CodingScheme], profile: Profile, seed: Seed, path: &str) -> Self {
        let curves = CodingScheme::ALL.map(|scheme| {
            // Those that are never used need no table.
            let name = if schemes.contains(&scheme) { scheme.name() } else { CodingScheme::Cs1.name() };
            std::array::from_fn(|attempt| Curve::of(name, profile, attempt as u32 + 1))
        });
        let errors = Direction::BOTH.map(|direction| seed.stream(&format!("{path}/{}/errors", direction.name())));
        let sample = Sample { carrier_to_interference: 0.0, cell: 0, covered: true };
        Self { conditions, sample, curves: curves.into(), forced: [None; 2], errors }
    }

    /// Finds out what the radio is like at the beginning of a block.
    #[inline]
    pub fn sample(&mut self, at: Instant) {
        self.sample = self.conditions.at(at);
    }

    /// Whether a block is received, sent for the `attempt`th time.
    #[inline]
    pub fn receives(&mut self, direction: Direction, scheme: CodingScheme, attempt: u32) -> bool {
        let lost = match self.forced[direction as usize] {
            Some(forced) => forced,
            None => {
                let attempt = (attempt as usize).clamp(1, ATTEMPTS) - 1;
                self.curves[scheme as usize][attempt].at(self.sample.carrier_to_interference)
            }
        };
        !self.errors[direction as usize].chance(lost) && self.sample.covered
    }

    /// Whether a control block is received: it has the coding of CS-1 (3GPP TS 45.003 §5.1.1.4).
    #[inline]
    pub fn receives_control(&mut self, direction: Direction) -> bool {
        self.receives(direction, CodingScheme::Cs1, 1)
    }

    /// Sets the error rate of all blocks, whatever the C/I.
    pub const fn force(&mut self, direction: Direction, rate: Probability) {
        self.forced[direction as usize] = Some(rate);
    }
}
