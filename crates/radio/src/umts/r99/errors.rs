//! Which TTIs of a dedicated channel are in error.
//!
//! Power control keeps the share of errors at its target as long as its power reaches (outer loop,
//! TS 25.214 §5.1.2). Where C/I is below what the format needs, it does not: the odds of an error
//! then grow by a factor of ten for each `ci_per_decade`. Errors come in bursts, by a
//! Markov chain with two states. The bad state loses everything. The chain has the configured share
//! of errors and mean burst length. Over a pause it advances at once.

use airpath_core::{Instant, Probability, RandomStream, Span};

/// The errors of one direction.
#[derive(Clone, Debug)]
pub struct TtiErrors {
    target: f64,
    burst: Option<f64>,
    ci_per_decade: f64,
    stream: RandomStream,
    /// The last TTI that was sent, and whether it was in error.
    last: Option<(Instant, bool)>,
}

impl TtiErrors {
    /// Errors in this share of TTIs, `burst` in a row on average, or each by itself.
    pub const fn new(target: Probability, burst: Option<f64>, ci_per_decade: f64, stream: RandomStream) -> Self {
        Self { target: target.get(), burst, ci_per_decade, stream, last: None }
    }

    /// From now on errors in this share of TTIs.
    pub const fn set_target(&mut self, target: Probability) {
        self.target = target.get();
    }

    /// From now on so much C/I too little makes the odds of an error ten times as high.
    pub const fn set_ci_per_decade(&mut self, ci_per_decade: f64) {
        self.ci_per_decade = ci_per_decade;
    }

    /// Whether the TTI that begins at `start` is in error, at a C/I, and what is needed of it.
    pub fn is_errored(&mut self, start: Instant, tti: Span, ci: f64, needs: Option<f64>) -> bool {
        let share = self.share(ci, needs);
        let chance = match self.last {
            None => share,
            Some((last, errored)) => {
                let ttis = start.since(last).as_nanos() / tti.as_nanos();
                share + (f64::from(u8::from(errored)) - share) * self.memory(share, ttis)
            }
        };
        let errored = self.stream.uniform() < chance;
        self.last = Some((start, errored));
        errored
    }

    /// The share of errors at a C/I.
    fn share(&self, ci: f64, needs: Option<f64>) -> f64 {
        match needs {
            Some(needs) if ci < needs && self.target > 0.0 && self.target < 1.0 => {
                let odds = self.target / (1.0 - self.target) * libm::exp10((needs - ci) / self.ci_per_decade);
                if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 }
            }
            _ => self.target,
        }
    }

    /// Correlation of the error state over a number of TTIs: the second eigenvalue of the chain, to
    /// that power. With b the mean length of a burst and p the share of errors, an error ends with
    /// 1/b and begins with p / (b · (1 − p)); one minus both is 1 − 1 / (b · (1 − p)).
    fn memory(&self, share: f64, ttis: u64) -> f64 {
        let Some(burst) = self.burst else { return 0.0 };
        let stays = 1.0 - 1.0 / (burst * (1.0 - share));
        if stays > 0.0 { libm::pow(stays, ttis as f64) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Seed;

    use super::*;

    const TTI: Span = Span::from_millis(10);

    fn errors(target: f64, burst: Option<f64>) -> TtiErrors {
        TtiErrors::new(Probability::new(target).expect("a share"), burst, 2.0, Seed::new(3).stream("errors"))
    }

    fn draws(errors: &mut TtiErrors, count: u64, ci: f64, needs: Option<f64>) -> Vec<bool> {
        (0..count).map(|n| errors.is_errored(Instant::ZERO + TTI * n, TTI, ci, needs)).collect()
    }

    fn share(draws: &[bool]) -> f64 {
        draws.iter().filter(|errored| **errored).count() as f64 / draws.len() as f64
    }

    #[test]
    fn share_and_burst_length_are_as_configured() {
        for (target, burst) in [(0.01, None), (0.01, Some(4.0)), (0.1, None), (0.1, Some(3.0))] {
            let draws = draws(&mut errors(target, burst), 400_000, 0.0, None);
            let runs = draws.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
            let burst = burst.unwrap_or(1.0 / (1.0 - target));
            let length = share(&draws) * draws.len() as f64 / runs;
            // Some 4000 · (2 · burst) independent errors or more: five standard deviations are
            // below a tenth.
            assert!((share(&draws) / target - 1.0).abs() < 0.12, "{target} {burst}: {}", share(&draws));
            assert!((length / burst - 1.0).abs() < 0.08, "{target} {burst}: {length}");
        }
    }

    #[test]
    fn a_pause_forgets() {
        let mut errors = errors(0.5, Some(1000.0));
        let spread: Vec<_> =
            (0..10_000).map(|n| errors.is_errored(Instant::ZERO + Span::from_secs(1000) * n, TTI, 0.0, None)).collect();
        let changes = spread.windows(2).filter(|pair| pair[0] != pair[1]).count();
        // As coins do: five standard deviations of √10000 / 2.
        assert!((4750..5250).contains(&changes), "{changes}");
    }

    #[test]
    fn below_the_limit_of_power_errors_grow_tenfold_a_step() {
        let mut errors = errors(0.01, None);
        let mut at = |ci| share(&draws(&mut errors, 100_000, ci, Some(5.0)));
        // Odds of 1/99, ten times that and a thousand times that.
        assert!((at(9.0) - 0.01).abs() < 0.002 && (at(5.0) - 0.01).abs() < 0.002);
        assert!((at(3.0) - 10.0 / 109.0).abs() < 0.006);
        assert!((at(-1.0) - 1000.0 / 1099.0).abs() < 0.006);
        assert!(at(-700.0) > 0.999);
    }
}
