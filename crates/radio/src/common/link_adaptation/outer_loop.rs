//! The outer loop: a correction of the reported signal-to-noise ratio, from acknowledgements.

use airpath_core::{Decibel, Probability};

/// A correction that rises with each block that was decoded and falls with each that was not, so
/// that in the long run the share of errors is the target.
///
/// Only first transmissions count. The correction rises by `step` on ACK and falls by `step · (1 −
/// target) / target` on NACK (K. I. Pedersen et al., "Frequency domain scheduling for OFDMA with
/// limited and noisy channel feedback", IEEE VTC Fall 2007, recalled).
#[derive(Clone, Debug, PartialEq)]
pub struct OuterLoop {
    offset: f64,
    rise: f64,
    fall: f64,
    limit: f64,
}

impl OuterLoop {
    /// A loop without correction yet; it stays within ± `limit`. `None` if the target is 0 or 1,
    /// the step is not above zero, or the limit is below zero.
    pub fn new(target: Probability, step: Decibel, limit: Decibel) -> Option<Self> {
        let inner = target > Probability::NEVER && target < Probability::ALWAYS;
        let valid = inner && step.get() > 0.0 && limit.get() >= 0.0;
        let fall = step.get() * target.complement().get() / target.get();
        valid.then_some(Self { offset: 0.0, rise: step.get(), fall, limit: limit.get() })
    }

    /// A first transmission was decoded, or not.
    pub fn record(&mut self, decoded: bool) {
        let change = if decoded { self.rise } else { -self.fall };
        self.offset = (self.offset + change).clamp(-self.limit, self.limit);
    }

    /// The correction, to be added to the reported ratio.
    pub fn offset(&self) -> Decibel {
        Decibel::new(self.offset).expect("within a finite limit")
    }

    /// The reported ratio with the correction.
    pub fn corrected(&self, reported: Decibel) -> Decibel {
        Decibel::new(reported.get() + self.offset).expect("sums of finite ratios")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn db(db: f64) -> Decibel {
        Decibel::new(db).expect("finite")
    }

    #[test]
    fn one_nack_takes_back_what_nine_acks_gave() {
        let target = Probability::new(0.1).expect("a share");
        let mut outer = OuterLoop::new(target, db(0.01), db(5.0)).expect("sound");
        (0..9).for_each(|_| outer.record(true));
        assert!((outer.offset().get() - 0.09).abs() < 1e-12);
        outer.record(false);
        assert!(outer.offset().get().abs() < 1e-12);
        (0..1000).for_each(|_| outer.record(false));
        assert_eq!((outer.offset(), outer.corrected(db(7.0))), (db(-5.0), db(2.0)));
        (0..2000).for_each(|_| outer.record(true));
        assert_eq!(outer.offset(), db(5.0));
    }

    #[test]
    fn targets_without_errors_or_without_blocks_are_refused() {
        for (target, step, limit) in
            [(0.0, 0.1, 5.0), (1.0, 0.1, 5.0), (0.1, 0.0, 5.0), (0.1, -0.1, 5.0), (0.1, 0.1, -1.0)]
        {
            let target = Probability::new(target).expect("within range");
            assert_eq!(OuterLoop::new(target, db(step), db(limit)), None);
        }
    }
}
