//! How a signal weakens with the distance, by the carrier.

use airpath_core::{Frequency, Length};

/// The height of the mobile's antenna over ground in metres, Hata's usual one.
const MOBILE_HEIGHT: f64 = 1.5;

/// Sites are never nearer than that, in kilometres: the models of path loss are none of the near
/// field.
const NEAREST: f64 = 0.02;

/// How a signal weakens with the distance to the site.
#[derive(Clone, Copy, Debug)]
pub struct PathLoss {
    /// The loss in decibels at a kilometre.
    pub at_a_kilometre: f64,
    /// The loss in decibels by each decade of distance.
    pub by_decade: f64,
    /// The height in kilometres that counts as a part of the distance.
    rise: f64,
}

impl PathLoss {
    /// The models hold from here to [`Self::HIGHEST`]; in megahertz.
    pub const LOWEST: f64 = 150.0;
    /// The end of FR1 (TS 38.101-1 §5.1). Above it, a mobile at a position needs the direction of
    /// beams, which is not modelled.
    pub const HIGHEST: f64 = 7125.0;

    /// That of a town, for a mobile [`MOBILE_HEIGHT`] above ground.
    ///
    /// - Up to 1.5 GHz: M. Hata, "Empirical formula for propagation loss in land mobile radio
    ///   services", IEEE Trans. Vehicular Technology 29(3), 1980, for a town of medium size.
    /// - Up to 2.2 GHz: its extension by COST 231 (Final report, 1999, §4.4.1), which was measured
    ///   up to 2 GHz.
    /// - Above: 3GPP TR 38.901 Table 7.4.1-1, urban macro without line of sight. The loss with line
    ///   of sight, which is its lower bound, is less from 10 m on.
    pub fn new(frequency: Frequency, antenna: Length) -> Self {
        let megahertz = frequency.as_megahertz();
        let logarithm = libm::log10(megahertz);
        let height = libm::log10(antenna.as_metres());
        let (fixed, by_frequency) = match megahertz {
            ..1500.0 => (69.55, 26.16),
            ..=2200.0 => (46.3, 33.9),
            _ => {
                return Self {
                    at_a_kilometre: 13.54 + 39.08 * 3.0 + 20.0 * (logarithm - 3.0),
                    by_decade: 39.08,
                    rise: (antenna.as_metres() - MOBILE_HEIGHT) / 1e3,
                };
            }
        };
        let mobile = (1.1 * logarithm - 0.7) * MOBILE_HEIGHT - (1.56 * logarithm - 0.8);
        Self {
            at_a_kilometre: fixed + by_frequency * logarithm - 13.82 * height - mobile,
            by_decade: 44.9 - 6.55 * height,
            rise: 0.0,
        }
    }

    /// How much more is lost than at a kilometre, so far along a line and away from it on the
    /// ground, in kilometres.
    pub fn beyond_a_kilometre(&self, along: f64, away: f64) -> f64 {
        let distance = (along * along + away * away + self.rise * self.rise).sqrt().max(NEAREST);
        self.by_decade * libm::log10(distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_loss_is_that_of_the_formulas() {
        let of = |frequency: &str, antenna: &str| {
            PathLoss::new(frequency.parse().expect(frequency), antenna.parse().expect(antenna))
        };
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 0.01, "{value}, not {expected}");
        // By hand: 69.55 + 26.16·log 900 − 13.82·log 30 − 0.0159, and 44.9 − 6.55·log 30.
        let hata = of("900 MHz", "30 m");
        near(hata.at_a_kilometre, 126.41);
        near(hata.by_decade, 35.22);
        // 46.3 + 33.9·log 2000 − 13.82·log 30 − 0.0473.
        near(of("2 GHz", "30 m").at_a_kilometre, 137.74);
        // 13.54 + 39.08·log d + 20·log 3.5, where d has 23.5 m of height: 80 m on the ground are
        // 83.38 m.
        let macro_cell = of("3.5 GHz", "25 m");
        near(macro_cell.at_a_kilometre, 141.66);
        near(macro_cell.beyond_a_kilometre(0.0, 0.08), 39.08 * libm::log10(0.083_38));
        // Where one model takes over from another, both have about the same loss.
        for antenna in ["25 m", "30 m"] {
            let loss = |model: PathLoss| model.at_a_kilometre + model.beyond_a_kilometre(0.5, 0.1);
            let (below, above) = (loss(of("2.2 GHz", antenna)), loss(of("2.201 GHz", antenna)));
            assert!((below - above).abs() < 4.0, "{antenna}: {below} and {above}");
        }
    }
}
