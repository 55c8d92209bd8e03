//! The radio of a mobile: its conditions now, and whether a block is received.

use airpath_core::{Direction, Instant, Probability, RandomStream, Seed};
use airpath_link::{Change, CommandError};

use super::coding_scheme::CodingScheme;
use crate::conditions::Profile;
use crate::conditions::{Conditions, Sample, Transition};
use crate::gsm::block_errors::Curve;

/// Transmissions of a block with error rates of their own: a receiver with incremental redundancy
/// combines up to four.
const ATTEMPTS: usize = 4;

/// The radio of a mobile.
#[derive(Debug)]
pub struct Air {
    conditions: Conditions,
    pub sample: Sample,
    /// The schemes in use.
    schemes: Vec<CodingScheme>,
    /// Error rates by scheme and attempt.
    curves: Vec<[&'static Curve; ATTEMPTS]>,
    /// Error rates set by a command, which replace the curves; down, up.
    forced: [Option<Probability>; 2],
    errors: [RandomStream; 2],
}

impl Air {
    /// The radio of a mobile with streams `path/down/errors` and `path/up/errors`.
    pub fn new(conditions: Conditions, schemes: Vec<CodingScheme>, seed: Seed, path: &str) -> Self {
        let errors = Direction::BOTH.map(|direction| seed.stream(&format!("{path}/{}/errors", direction.name())));
        let sample = Sample::in_one_cell(0.0);
        let curves = curves(&schemes, conditions.profile());
        Self { conditions, sample, schemes, curves, forced: [None; 2], errors }
    }

    /// Samples the radio conditions at the beginning of a block.
    #[inline]
    pub fn sample(&mut self, at: Instant) {
        self.sample = self.conditions.at(at);
    }

    /// The next change of cell by `now`.
    #[inline]
    pub fn next_transition(&mut self, now: Instant) -> Option<(Instant, Transition)> {
        self.conditions.next_transition(now)
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

    /// Whether the radio conditions can change as commanded.
    pub fn check(&self, change: &Change) -> Result<(), CommandError> {
        self.conditions.check(change)
    }

    /// Changes the radio conditions, which was checked before.
    pub fn command(&mut self, now: Instant, change: &Change) {
        self.conditions.command(now, change).expect("it was checked before");
        self.curves = curves(&self.schemes, self.conditions.profile());
        // A commanded C/I takes effect only without a commanded error rate.
        self.forced = [None; 2];
    }

    /// Sets the error rate of all blocks, whatever the C/I.
    pub const fn force(&mut self, direction: Direction, rate: Probability) {
        self.forced[direction as usize] = Some(rate);
    }
}

/// The curves of all schemes; schemes that are not in use have the curve of CS-1.
fn curves(schemes: &[CodingScheme], profile: Profile) -> Vec<[&'static Curve; ATTEMPTS]> {
    let of = |scheme: CodingScheme| {
        let name = if schemes.contains(&scheme) { scheme.name() } else { CodingScheme::Cs1.name() };
        std::array::from_fn(|attempt| Curve::of(name, profile, attempt as u32 + 1))
    };
    CodingScheme::ALL.map(of).into()
}
