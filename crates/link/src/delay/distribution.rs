//! Distributions of a delay, their keys in a scenario, and their sampling.

use std::f64::consts::TAU;

use airpath_core::{RandomStream, Span};
use serde::{Deserialize, Serialize};

use super::Delay;

/// The distribution of a delay. In a scenario, the names below are the value of `distribution`, the
/// others its keys. The default of `minimum` is zero, except for `pareto`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// The same for every packet. Written as a time, `"110 ms"`, not as a table.
    Fixed(Span),
    /// `uniform`: between `minimum` and `maximum`.
    Uniform {
        /// The shortest delay.
        minimum: Span,
        /// The longest delay.
        maximum: Span,
    },
    /// `normal`, truncated: values below `minimum` are drawn again. The mean is thus somewhat
    /// larger than `mean` if `minimum` lies within about two deviations of it.
    Normal {
        /// The mean before truncation; not below `minimum`.
        mean: Span,
        /// The standard deviation before truncation.
        deviation: Span,
        /// The shortest delay.
        minimum: Span,
    },
    /// `exponential`: `minimum` plus an exponentially distributed time; the mean of both is `mean`.
    Exponential {
        /// The mean of the sum; not below `minimum`.
        mean: Span,
        /// The shortest delay.
        minimum: Span,
    },
    /// `pareto`: longer than x with probability (`minimum`/x)^`shape`: heavy-tailed, with infinite
    /// variance up to a shape of 2.
    Pareto {
        /// The mean, `minimum`·`shape`/(`shape`−1), which determines the shape, above 1. Must
        /// exceed `minimum`.
        mean: Span,
        /// The shortest delay, the distribution's scale; above zero.
        minimum: Span,
    },
}

/// An invalid delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DistributionError {
    /// The minimum exceeds another parameter.
    #[error("the `minimum` of {minimum} is longer than the `{key}` of {bound}: swap them")]
    Minimum {
        /// The minimum.
        minimum: Span,
        /// `mean` or `maximum`.
        key: &'static str,
        /// Its value.
        bound: Span,
    },
    /// A Pareto distribution with a minimum of zero, or a mean equal to it.
    #[error("a pareto delay needs a `minimum` above zero and a `mean` above that, not {minimum} and {mean}")]
    Pareto {
        /// The minimum.
        minimum: Span,
        /// The mean.
        mean: Span,
    },
    /// A key that the distribution needs.
    #[error("missing field `{key}`: a delay with `distribution = \"{distribution}\"` needs it")]
    Missing {
        /// The key.
        key: &'static str,
        /// The distribution.
        distribution: &'static str,
    },
    /// A key of another distribution.
    #[error("a delay with `distribution = \"{distribution}\"` has no `{key}`: remove it, or choose another")]
    Foreign {
        /// The key.
        key: &'static str,
        /// The distribution.
        distribution: &'static str,
    },
}

impl Distribution {
    /// Checks the parameters together.
    pub fn check(self) -> Result<(), DistributionError> {
        let not_above = |minimum: Span, key, bound: Span| match minimum <= bound {
            true => Ok(()),
            false => Err(DistributionError::Minimum { minimum, key, bound }),
        };
        match self {
            Self::Fixed(_) => Ok(()),
            Self::Uniform { minimum, maximum } => not_above(minimum, "maximum", maximum),
            Self::Normal { mean, minimum, .. } | Self::Exponential { mean, minimum } => {
                not_above(minimum, "mean", mean)
            }
            Self::Pareto { mean, minimum } if minimum.is_zero() || mean <= minimum => {
                Err(DistributionError::Pareto { minimum, mean })
            }
            Self::Pareto { .. } => Ok(()),
        }
    }

    /// The delay of the next packet.
    #[inline]
    pub fn draw(&self, stream: &mut RandomStream) -> Span {
        match self {
            Self::Fixed(delay) => *delay,
            _ => self.draw_random(stream),
        }
    }

    fn draw_random(self, stream: &mut RandomStream) -> Span {
        match self {
            Self::Fixed(delay) => delay,
            Self::Uniform { minimum, maximum } => {
                minimum + Span::from_secs_f64((maximum - minimum).as_secs_f64() * stream.uniform())
            }
            Self::Normal { mean, deviation, minimum } => loop {
                let seconds = mean.as_secs_f64() + deviation.as_secs_f64() * standard_normal(stream);
                let delay = Span::from_secs_f64(seconds);
                // The mean is not below the minimum: at least every other draw is accepted.
                if seconds >= 0.0 && delay >= minimum {
                    break delay;
                }
            },
            Self::Exponential { mean, minimum } => {
                minimum + Span::from_secs_f64((mean - minimum).as_secs_f64() * standard_exponential(stream))
            }
            Self::Pareto { mean, minimum } => {
                // From mean = minimum·shape/(shape − 1); the logarithm of a Pareto variable is
                // exponential.
                let shape = mean.as_secs_f64() / (mean - minimum).as_secs_f64();
                Span::from_secs_f64(minimum.as_secs_f64() * libm::exp(standard_exponential(stream) / shape))
            }
        }
    }
}

/// Mean 0, standard deviation 1 (Box and Muller 1958).
fn standard_normal(stream: &mut RandomStream) -> f64 {
    let radius = (2.0 * standard_exponential(stream)).sqrt();
    radius * libm::cos(TAU * stream.uniform())
}

/// Mean 1, by inversion.
fn standard_exponential(stream: &mut RandomStream) -> f64 {
    -libm::log(1.0 - stream.uniform())
}

/// The written form of a delay as a table.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    distribution: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deviation: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum: Option<Span>,
    #[serde(default)]
    reorder: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Name {
    Uniform,
    Normal,
    Exponential,
    Pareto,
}

impl Name {
    const fn text(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
            Self::Exponential => "exponential",
            Self::Pareto => "pareto",
        }
    }
}

impl TryFrom<Table> for Delay {
    type Error = DistributionError;

    fn try_from(table: Table) -> Result<Self, DistributionError> {
        let Table { distribution: name, mean, deviation, minimum, maximum, reorder } = table;
        let distribution = name.text();
        let needed = |key, value: Option<Span>| value.ok_or(DistributionError::Missing { key, distribution });
        let foreign = |key, value: Option<Span>| match value {
            Some(_) => Err(DistributionError::Foreign { key, distribution }),
            None => Ok(()),
        };
        if name != Name::Uniform {
            foreign("maximum", maximum)?;
        }
        if name != Name::Normal {
            foreign("deviation", deviation)?;
        }
        let distribution = match name {
            Name::Uniform => {
                foreign("mean", mean)?;
                Distribution::Uniform { minimum: minimum.unwrap_or_default(), maximum: needed("maximum", maximum)? }
            }
            Name::Normal => Distribution::Normal {
                mean: needed("mean", mean)?,
                deviation: needed("deviation", deviation)?,
                minimum: minimum.unwrap_or_default(),
            },
            Name::Exponential => {
                Distribution::Exponential { mean: needed("mean", mean)?, minimum: minimum.unwrap_or_default() }
            }
            Name::Pareto => Distribution::Pareto { mean: needed("mean", mean)?, minimum: needed("minimum", minimum)? },
        };
        distribution.check()?;
        Ok(Self { distribution, reorder })
    }
}

impl Table {
    /// The table of a delay; a constant one has none, and is returned as the error.
    pub(super) fn new(delay: Delay) -> Result<Self, Span> {
        let (distribution, mean, deviation, minimum, maximum) = match delay.distribution {
            Distribution::Fixed(delay) => return Err(delay),
            Distribution::Uniform { minimum, maximum } => (Name::Uniform, None, None, minimum, Some(maximum)),
            Distribution::Normal { mean, deviation, minimum } => {
                (Name::Normal, Some(mean), Some(deviation), minimum, None)
            }
            Distribution::Exponential { mean, minimum } => (Name::Exponential, Some(mean), None, minimum, None),
            Distribution::Pareto { mean, minimum } => (Name::Pareto, Some(mean), None, minimum, None),
        };
        Ok(Self { distribution, mean, deviation, minimum: Some(minimum), maximum, reorder: delay.reorder })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::Seed;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn moments(distribution: Distribution) -> (f64, f64, Span) {
        const DRAWS: u32 = 100_000;
        let mut stream = Seed::new(1).stream("delay");
        let draws: Vec<Span> = (0..DRAWS).map(|_| distribution.draw(&mut stream)).collect();
        let mean = draws.iter().map(|draw| draw.as_secs_f64()).sum::<f64>() / f64::from(DRAWS);
        let square = |draw: &Span| (draw.as_secs_f64() - mean) * (draw.as_secs_f64() - mean);
        let variance = draws.iter().map(square).sum::<f64>() / f64::from(DRAWS);
        (mean * 1e3, variance.sqrt() * 1e3, draws.into_iter().min().expect("not empty"))
    }

    #[test]
    fn draws_have_the_configured_moments() {
        // Means of 100,000 draws: their standard error is deviation/316, below 0.1 ms throughout;
        // that of the deviation has the same order where the fourth moment exists. Bounds are five
        // of them.
        let cases = [
            (Distribution::Uniform { minimum: MS(20), maximum: MS(80) }, 50.0, 60.0 / 12f64.sqrt()),
            (Distribution::Normal { mean: MS(50), deviation: MS(5), minimum: MS(0) }, 50.0, 5.0),
            (Distribution::Exponential { mean: MS(50), minimum: MS(30) }, 50.0, 20.0),
            // Shape 5: variance = minimum²·shape / ((shape − 1)²·(shape − 2)).
            (Distribution::Pareto { mean: MS(50), minimum: MS(40) }, 50.0, 40.0 * (5f64 / 48.0).sqrt()),
        ];
        for (distribution, mean, deviation) in cases {
            let (ours, spread, _) = moments(distribution);
            assert!((ours - mean).abs() < 0.5 && (spread - deviation).abs() < 1.0, "{distribution:?}: {ours} {spread}");
        }
    }

    #[test]
    fn a_truncated_normal_keeps_to_its_minimum() {
        let (mean, _, least) = moments(Distribution::Normal { mean: MS(50), deviation: MS(10), minimum: MS(50) });
        // Half of the bell: its mean lies √(2/π) deviations above the minimum.
        assert!(least >= MS(50) && (mean - 57.98).abs() < 0.2, "{mean}");
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        for wrong in [
            Distribution::Uniform { minimum: MS(2), maximum: MS(1) },
            Distribution::Normal { mean: MS(1), deviation: MS(1), minimum: MS(2) },
            Distribution::Exponential { mean: MS(1), minimum: MS(2) },
            Distribution::Pareto { mean: MS(1), minimum: MS(0) },
            Distribution::Pareto { mean: MS(1), minimum: MS(1) },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
