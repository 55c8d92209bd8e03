//! When the parties of a call talk: the generator of ITU-T P.59 (03/93).
//!
//! A conversation is one of four states: one party talks, the other talks, both talk, or neither.
//! P.59 gives their durations as exponential with these means, and the probabilities with which
//! single talk ends in double talk. The values are recalled; the shares that result agree with the
//! temporal parameters that P.59 publishes (double talk 6.59 %, mutual silence 22.48 %).

use airpath_core::{Direction, RandomStream, Span};

/// Mean duration in which one party talks alone.
const SINGLE_TALK_S: f64 = 0.854;
/// Mean duration in which both talk.
const DOUBLE_TALK_S: f64 = 0.226;
/// Mean duration in which neither talks.
const MUTUAL_SILENCE_S: f64 = 0.456;
/// Probability that the other party begins to talk before a single talk ends.
const INTERRUPTION: f64 = 0.4;

/// Who talks: the party that sends downlink, that which sends uplink.
type Talking = [bool; 2];

/// A conversation, from its start on.
#[derive(Clone, Debug)]
pub struct Conversation {
    random: RandomStream,
    talking: Talking,
    /// End of the present state, from the start.
    until: Span,
}

impl Conversation {
    /// A conversation that begins with mutual silence.
    pub fn new(random: RandomStream) -> Self {
        Self { random, talking: [false; 2], until: Span::ZERO }
    }

    /// Whether the party that sends in `direction` talks at `time`, which never decreases.
    pub fn talks(&mut self, direction: Direction, time: Span) -> bool {
        while self.until <= time {
            self.advance();
        }
        self.talking[direction as usize]
    }

    fn advance(&mut self) {
        let draw = self.random.uniform();
        self.talking = match self.talking {
            // Either party begins, or goes on, with the same probability.
            [false, false] | [true, true] => [draw < 0.5, draw >= 0.5],
            _ if draw < INTERRUPTION => [true, true],
            _ => [false, false],
        };
        let mean = match self.talking {
            [false, false] => MUTUAL_SILENCE_S,
            [true, true] => DOUBLE_TALK_S,
            _ => SINGLE_TALK_S,
        };
        // 1 − u is above zero.
        self.until += Span::from_secs_f64(-mean * libm::log(1.0 - self.random.uniform()));
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Seed;

    use super::*;

    #[test]
    fn shares_and_durations_are_those_of_p59() {
        let mut conversation = Conversation::new(Seed::new(1).stream("speech"));
        let step = Span::from_millis(5);
        let hours = 4;
        let samples = hours * 3600 * 200_u64;
        let (mut both, mut neither, mut talk, mut spurts, mut before) = (0, 0, 0_u64, 0_u64, false);
        for index in 0..samples {
            let time = step * index;
            let down = conversation.talks(Direction::Down, time);
            let up = conversation.talks(Direction::Up, time);
            both += u64::from(down && up);
            neither += u64::from(!down && !up);
            talk += u64::from(up);
            spurts += u64::from(up && !before);
            before = up;
        }
        let share = |count: u64| count as f64 / samples as f64;
        // Table 1 of P.59: double talk 6.59 %, mutual silence 22.48 %, talk spurt 1.004 s, pause
        // 1.587 s. The generator of P.59 §4 reaches these within its own rounding.
        assert!((share(both) - 0.0659).abs() < 0.012, "{}", share(both));
        assert!((share(neither) - 0.2248).abs() < 0.012, "{}", share(neither));
        let spurt = talk as f64 * 0.005 / spurts as f64;
        let pause = (samples - talk) as f64 * 0.005 / spurts as f64;
        assert!((spurt - 1.004).abs() < 0.1, "{spurt}");
        assert!((pause - 1.587).abs() < 0.25, "{pause}");
    }

    #[test]
    fn both_ends_see_the_same_conversation() {
        let mut one = Conversation::new(Seed::new(3).stream("speech"));
        let mut other = one.clone();
        for index in 0..10_000 {
            let time = Span::from_millis(20) * index;
            // The other end polls less often.
            let expected = one.talks(Direction::Down, time);
            if index % 7 == 0 {
                assert_eq!(other.talks(Direction::Down, time), expected);
            }
        }
    }
}
