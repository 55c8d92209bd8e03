//! The model of interference against a network of sectors, calculated site by site.
//!
//! [`Sites`] has six interferers that send for a `load` of the time. Networks of GSM have three
//! sectors a site, in patterns of 3 sites and 9 groups of frequencies (3/9) or 4 and 12; of the six
//! nearest sites with the same frequency two sectors face the mobile, so that `load = "33 %"`
//! stands for sectors that send all the time. Here each sector of some two hundred sites counts by
//! its antenna, and adjacent carriers, too:
//!
//! ```text
//! cargo test -p airpath-radio sectors -- --nocapture
//! ```

use airpath_core::{Decibel, Probability, Seed};

use super::{Cells, Radio, Sites, power};
use crate::conditions::indexed_random::IndexedRandom;
use crate::conditions::path_loss::PathLoss;

const PLACES: usize = 3000;
const SPACING: f64 = 1.5;
const SETBACK: f64 = 0.2;
const DEVIATION: f64 = 8.0;
const POWER_OVER_NOISE: f64 = 165.0;
/// Rings of sites around the mobile.
const RINGS: i64 = 8;

/// Beam width and front-to-back ratio of a sector's antenna: those of 3GPP TR 25.996 §4.5.1 for
/// three sectors.
const BEAM: f64 = 70.0;
const FRONT_TO_BACK: f64 = 20.0;

/// How much less a carrier 200 kHz away counts: 9 dB for the same carrier and −9 dB for that one,
/// TS 45.005 §6.3.
const ADJACENT: f64 = 18.0;

fn cells() -> (Cells, f64, f64) {
    let text = "count = 4\nspacing = \"1.5 km\"\nsetback = \"200 m\"\nantenna = \"30 m\"";
    let cells: Cells = toml::from_str(text).expect("cells");
    let loss = PathLoss::new("900 MHz".parse().expect("a frequency"), cells.antenna);
    (cells, POWER_OVER_NOISE - loss.at_a_kilometre, loss.by_decade)
}

/// Where on the line the mobile is, between the second and the third site, and where in the
/// shadows.
fn places() -> impl Iterator<Item = (f64, f64)> {
    (0..PLACES).map(|index| (1500.0 + 1500.0 * (index as f64 + 0.5) / PLACES as f64, index as f64 * 20.0))
}

/// C/I of the strongest cell in decibels at each place.
fn ours(sites: u32, load: f64) -> Vec<f64> {
    let (cells, ..) = cells();
    let radio = Radio {
        frequency: "900 MHz".parse().expect("a frequency"),
        reuse: sites,
        load: Probability::new(load).expect("within range"),
        power_over_noise: Decibel::new(POWER_OVER_NOISE).expect("finite"),
        deviation: DEVIATION,
        site_correlation: Probability::new(0.5).expect("within range"),
    };
    let mut place = Sites::new(&cells, &radio, Seed::new(1), "a").expect("sound");
    let mut levels = Vec::new();
    let at = |(position, shadow)| {
        place.levels(position, shadow, &mut levels);
        let serving = (0..levels.len()).max_by(|a, b| levels[*a].total_cmp(&levels[*b])).expect("cells");
        10.0 * libm::log10(place.ratio(serving, position, shadow))
    };
    places().map(at).collect()
}

/// The same with all sectors of all sites, each sending all the time: of the strongest sector,
/// whatever its site. How the sectors are turned against the line is drawn for each place. A group
/// of frequencies has the number of its site in the cluster, and `sites` more for each next sector.
fn sectors(sites: i64, adjacent: bool) -> Vec<f64> {
    let (_, level, slope) = cells();
    let lattice: Vec<(i64, i64)> = (-RINGS..=RINGS).flat_map(|a| (-RINGS..=RINGS).map(move |b| (a, b))).collect();
    let group = |(a, b): (i64, i64), sector: i64| {
        let site = if sites == 3 { (a - b).rem_euclid(3) } else { a.rem_euclid(2) * 2 + b.rem_euclid(2) };
        site + sites * sector
    };
    let (common, own) = (IndexedRandom::new(Seed::new(2), "common"), IndexedRandom::new(Seed::new(2), "own"));
    let turns = IndexedRandom::new(Seed::new(2), "turn");
    let share = 0.5_f64.sqrt() * DEVIATION;
    let at = |(index, (position, _)): (usize, (f64, f64))| {
        let mut carriers = Vec::new();
        let turned = 120.0 * turns.uniform(index as u64);
        for (number, site) in lattice.iter().enumerate() {
            let (a, b) = (site.0 as f64, site.1 as f64);
            let to_mobile = (position / 1e3 - (a + b / 2.0) * SPACING, -b * 0.75_f64.sqrt() * SPACING - SETBACK);
            let distance = (to_mobile.0 * to_mobile.0 + to_mobile.1 * to_mobile.1).sqrt();
            let shadow =
                share * (common.gaussian(index as u64) + own.gaussian((index * lattice.len() + number) as u64));
            let bearing = libm::atan2(to_mobile.1, to_mobile.0).to_degrees();
            for sector in 0..3 {
                let off = (bearing - turned - 120.0 * sector as f64 + 180.0).rem_euclid(360.0) - 180.0;
                let antenna = (12.0 * (off / BEAM) * (off / BEAM)).min(FRONT_TO_BACK);
                carriers.push((power(level - slope * libm::log10(distance) + shadow - antenna), group(*site, sector)));
            }
        }
        let serving = (0..carriers.len()).max_by(|a, b| carriers[*a].0.total_cmp(&carriers[*b].0)).expect("sectors");
        let (carrier, own_group) = carriers[serving];
        let groups = 3 * sites;
        let interference =
            carriers.iter().enumerate().filter(|(other, _)| *other != serving).map(|(_, (level, group))| match (group
                - own_group)
                .rem_euclid(groups)
            {
                0 => *level,
                apart if adjacent && (apart == 1 || apart == groups - 1) => level * power(-ADJACENT),
                _ => 0.0,
            });
        10.0 * libm::log10(carrier / (interference.sum::<f64>() + 1.0))
    };
    places().enumerate().map(at).collect()
}

/// The values that 10 % and 50 % lie below.
fn percentiles(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 10], values[values.len() / 2])
}

#[test]
fn six_sites_at_a_third_of_the_load_are_like_a_network_of_sectors() {
    for sites in [3_u32, 4] {
        let (low, median) = percentiles(ours(sites, 1.0 / 3.0));
        let (sector_low, sector_median) = percentiles(sectors(i64::from(sites), false));
        let (adjacent_low, adjacent_median) = percentiles(sectors(i64::from(sites), true));
        println!(
            "{sites}/{}: C/I at 10 % and 50 % of the places: {low:.1} and {median:.1} dB; of sectors {sector_low:.1} and \
             {sector_median:.1} dB, with adjacent carriers {adjacent_low:.1} and {adjacent_median:.1} dB",
            3 * sites
        );
        // The median of this number of places with a deviation of 10 dB is accurate to a fifth of a
        // decibel, the 10 % point to a third.
        assert!((low - sector_low).abs() < 1.5 && (median - sector_median).abs() < 1.5, "{sites}");
        assert!(adjacent_median < sector_median && adjacent_median > sector_median - 2.0, "{sites}");
    }
}
