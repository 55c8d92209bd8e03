//! Cells at positions, and how strong each is at a place: path loss, shadowing, and the
//! interference of the cells that use the same frequency.
//!
//! The sites form a hexagonal lattice. Those that may serve the mobile stand in a row, along a line
//! on which it moves; the nearest six sites that use the same frequency as the serving one
//! interfere with it, wherever they stand. Levels are decibels over the noise of the receiver.

use airpath_core::{Decibel, Frequency, Length, Probability, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::path_loss::PathLoss;
use super::shadowing::Shadowing;
use crate::conditions::ConfigError;
use crate::error::ValueError;

/// The cells around a mobile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cells {
    /// How many stand along the way, the first at 0: those that may serve the mobile.
    pub count: u16,
    /// From one site to the next.
    pub spacing: Length,
    /// From the sites to the line on which the mobile moves.
    pub setback: Length,
    /// Height of the base stations' antennas over ground.
    pub antenna: Length,
    /// Loss by walls or the body of a car, of all cells. Default: 0 dB.
    #[serde(default)]
    pub penetration: Decibel,
    /// Which cells with the same frequency interfere. Default: those of the whole lattice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interferers: Option<Interferers>,
}

/// Which cells with the frequency of the serving one interfere with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interferers {
    /// The six nearest of a network that goes on in all directions.
    Lattice,
    /// Of these, the cells of the row: there are no others.
    Row,
}

/// Most cells in a row.
const MOST_CELLS: u16 = 32;

/// What a [`Sites`] is made of, beside the cells.
#[derive(Clone, Copy, Debug)]
pub struct Radio {
    pub frequency: Frequency,
    /// The reuse factor: cells in a cluster.
    pub reuse: u32,
    /// The share of time in which an interfering cell sends.
    pub load: Probability,
    /// The power of a cell over the noise of the receiver.
    pub power_over_noise: Decibel,
    /// The deviation of the shadowing in decibels.
    pub deviation: f64,
    /// The correlation of the shadowing of two sites.
    pub site_correlation: Probability,
}

/// The cells of one mobile.
#[derive(Clone, Debug)]
pub struct Sites {
    /// Those that may serve come first.
    sites: Vec<Site>,
    /// The sites that interfere with each that may serve.
    interferers: Vec<Vec<usize>>,
    cells: usize,
    /// The level at a kilometre.
    level: f64,
    path_loss: PathLoss,
    load: f64,
    /// What all sites have in common of the shadowing.
    common: Shadowing,
    /// How much of that, and of its own, a site has.
    shares: (f64, f64),
}

#[derive(Clone, Debug)]
struct Site {
    /// Along the line and away from it, in kilometres.
    position: (f64, f64),
    shadowing: Shadowing,
}

impl Sites {
    pub fn new(cells: &Cells, radio: &Radio, seed: Seed, path: &str) -> Result<Self, ConfigError> {
        let key = |key: &str| format!("conditions.{key}");
        let range = |key: String, expected| Err(ValueError::Range { key, expected }.into());
        if !(1..=MOST_CELLS).contains(&cells.count) {
            return range(key("cells.count"), "1 to 32");
        }
        if cells.spacing.is_zero() {
            return Err(ValueError::Zero { key: key("cells.spacing") }.into());
        }
        if cells.antenna.is_zero() {
            return Err(ValueError::Zero { key: key("cells.antenna") }.into());
        }
        if !(PathLoss::LOWEST..=PathLoss::HIGHEST).contains(&radio.frequency.as_megahertz()) {
            return range(key("network.frequency"), "150 MHz to 7.125 GHz, where the models of path loss hold");
        }
        let Some(shift) = reuse_shift(radio.reuse) else {
            return range(key("network.reuse"), "1, 3, 4, 7, 9 or 12, a cluster of hexagons");
        };
        let (spacing, setback) = (cells.spacing.as_metres() / 1e3, cells.setback.as_metres() / 1e3);
        let count = usize::from(cells.count);
        // Places in the lattice: along the line, and along a line at 60 degrees to it.
        let mut lattice: Vec<(i64, i64)> = (0..count as i64).map(|along| (along, 0)).collect();
        let mut interferers = Vec::new();
        for cell in 0..count {
            let (along, across) = lattice[cell];
            let mut number = |(a, b): (i64, i64)| {
                let site = (along + a, across + b);
                let known = lattice.iter().position(|other| *other == site);
                if known.is_none() && cells.interferers == Some(Interferers::Row) {
                    return None;
                }
                Some(known.unwrap_or_else(|| {
                    lattice.push(site);
                    lattice.len() - 1
                }))
            };
            interferers.push(around(shift).into_iter().filter_map(&mut number).collect());
        }
        let site = |(along, across): &(i64, i64)| {
            let (x, y) = (*along as f64 + *across as f64 / 2.0, *across as f64 * 0.75_f64.sqrt());
            Site {
                position: (x * spacing, y * spacing + setback),
                shadowing: Shadowing::new(seed, &format!("{path}/site-{along}-{across}")),
            }
        };
        let path_loss = PathLoss::new(radio.frequency, cells.antenna);
        let shared = radio.site_correlation.get();
        Ok(Self {
            sites: lattice.iter().map(site).collect(),
            interferers,
            cells: count,
            level: radio.power_over_noise.get() - cells.penetration.get() - path_loss.at_a_kilometre,
            path_loss,
            load: radio.load.get(),
            common: Shadowing::new(seed, &format!("{path}/shadowing")),
            shares: (radio.deviation * shared.sqrt(), radio.deviation * (1.0 - shared).sqrt()),
        })
    }

    /// How many cells may serve.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// The level of a site at `position` metres, where the shadowing is that of `shadow`
    /// correlation distances.
    pub fn level(&mut self, site: usize, position: f64, shadow: f64) -> f64 {
        let (of_all, of_one) = self.shares;
        let Site { position: (along, away), shadowing } = &mut self.sites[site];
        let loss = self.path_loss.beyond_a_kilometre(*along - position / 1e3, *away);
        let shadowing = of_all * self.common.at(shadow) + of_one * shadowing.at(shadow);
        self.level - loss + shadowing
    }

    /// The levels of the cells that may serve.
    pub fn levels(&mut self, position: f64, shadow: f64, levels: &mut Vec<f64>) {
        levels.clear();
        levels.extend((0..self.cells).map(|cell| self.level(cell, position, shadow)));
    }

    /// C/(I + N) of `cell` as a ratio of powers.
    pub fn ratio(&mut self, cell: usize, position: f64, shadow: f64) -> f64 {
        let carrier = power(self.level(cell, position, shadow));
        // The levels need `self`, too: the list is put back after.
        let interferers = std::mem::take(&mut self.interferers[cell]);
        let interference: f64 = interferers.iter().map(|site| power(self.level(*site, position, shadow))).sum();
        self.interferers[cell] = interferers;
        carrier / (self.load * interference + 1.0)
    }
}

/// Decibels as a ratio of powers.
fn power(decibels: f64) -> f64 {
    libm::pow(10.0, decibels / 10.0)
}

/// Co-channel shift vector (i, j) of a reuse cluster, N = i² + ij + j²: i cells along the line, and
/// j at 60 degrees to it. For a cluster of `reuse` = a² + ab + b² cells that is (a, b) (V. H. Mac
/// Donald, "The cellular concept", Bell System Technical Journal 58, 1979).
fn reuse_shift(reuse: u32) -> Option<(i64, i64)> {
    [(1, (1, 0)), (3, (1, 1)), (4, (2, 0)), (7, (2, 1)), (9, (3, 0)), (12, (2, 2))]
        .into_iter()
        .find(|(cluster, _)| *cluster == reuse)
        .map(|(_, shift)| shift)
}

/// A shift, turned by 0, 60, … degrees.
fn around((a, b): (i64, i64)) -> [(i64, i64); 6] {
    [(a, b), (-b, a + b), (-a - b, a), (-a, -b), (b, -a - b), (a + b, -a)]
}

#[cfg(test)]
mod sectors;

#[cfg(test)]
mod tests {
    use super::*;

    fn place(reuse: u32, deviation: f64) -> Sites {
        let text = "count = 3\nspacing = \"3 km\"\nsetback = \"100 m\"\nantenna = \"30 m\"";
        let cells: Cells = toml::from_str(text).expect("cells");
        let radio = Radio {
            frequency: "900 MHz".parse().expect("a frequency"),
            reuse,
            load: Probability::ALWAYS,
            power_over_noise: Decibel::new(300.0).expect("finite"),
            deviation,
            site_correlation: Probability::new(0.5).expect("within range"),
        };
        Sites::new(&cells, &radio, Seed::new(1), "a").expect("sound")
    }

    #[test]
    fn the_interferers_stand_at_the_reuse_distance() {
        for reuse in [1, 3, 4, 7, 9, 12] {
            let place = place(reuse, 0.0);
            for cell in 0..place.cells() {
                let (x, y) = place.sites[cell].position;
                for site in place.interferers[cell].clone() {
                    let (other_x, other_y) = place.sites[site].position;
                    let square = (x - other_x) * (x - other_x) + (y - other_y) * (y - other_y);
                    // D = spacing·√K.
                    assert!((square - 9.0 * f64::from(reuse)).abs() < 1e-9, "reuse {reuse}: {square}");
                }
            }
        }
    }

    #[test]
    fn cells_of_a_row_alone_have_only_their_neighbours_in_it() {
        let text = "count = 3\nspacing = \"1 km\"\nsetback = \"100 m\"\nantenna = \"30 m\"\ninterferers = \"row\"";
        let cells: Cells = toml::from_str(text).expect("cells");
        let radio = Radio {
            frequency: "2.1 GHz".parse().expect("a frequency"),
            reuse: 1,
            load: Probability::ALWAYS,
            power_over_noise: Decibel::new(300.0).expect("finite"),
            deviation: 0.0,
            site_correlation: Probability::new(0.5).expect("within range"),
        };
        let mut row = Sites::new(&cells, &radio, Seed::new(1), "a").expect("sound");
        assert_eq!(row.interferers, [vec![1], vec![2, 0], vec![1]]);
        // At the border of the first two, without noise, the neighbour is as strong as the carrier.
        assert!((row.ratio(0, 500.0, 0.0) - 1.0).abs() < 1e-9);
        let mut lattice = Sites::new(&Cells { interferers: None, ..cells }, &radio, Seed::new(1), "a").expect("sound");
        assert_eq!(lattice.interferers[0].len(), 6);
        assert!(lattice.ratio(0, 300.0, 0.0) < row.ratio(0, 300.0, 0.0));
    }

    #[test]
    fn without_noise_and_shadowing_only_the_geometry_counts() {
        // At the border of two cells with reuse 1, the neighbour alone is as strong as the carrier.
        let ratio = place(1, 0.0).ratio(0, 1500.0, 0.0);
        assert!((0.3..1.0).contains(&ratio), "{ratio}");
        // The textbook's first tier, C/I = (√(3K))^n / 6 at the edge of a cell: 18.7 dB for K = 7
        // and n = 4. Here the exponent is 3.52, the edge is half the spacing (R = spacing/√3 at a
        // corner), and the tier lies on one side.
        let mut seven = place(7, 0.0);
        let decibels = 10.0 * libm::log10(seven.ratio(1, 4500.0, 0.0));
        assert!((15.0..20.0).contains(&decibels), "{decibels}");
        assert!(place(12, 0.0).ratio(1, 4500.0, 0.0) > seven.ratio(1, 4500.0, 0.0));
    }

    #[test]
    fn shadowing_has_its_deviation_and_correlation_between_sites() {
        let mut place = place(7, 8.0);
        let mut clear = self::place(7, 0.0);
        let places = 3000;
        let mut sums = [0.0; 2];
        for index in 0..places {
            let shadow = f64::from(index) * 20.0;
            let mut dark = |site| place.level(site, 1000.0, shadow) - clear.level(site, 1000.0, shadow);
            let (first, second) = (dark(0), dark(1));
            sums[0] += first * first;
            sums[1] += first * second;
        }
        let (variance, covariance) = (sums[0] / f64::from(places), sums[1] / f64::from(places));
        // Deviations of both are below 64·√2/√3000 ≈ 1.65: five of them.
        assert!((variance - 64.0).abs() < 8.3, "{variance}");
        assert!((covariance - 32.0).abs() < 8.3, "{covariance}");
    }
}
