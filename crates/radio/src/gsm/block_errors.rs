//! Block error rates of GSM's coding schemes over C/I, from tables that the program `linklevel`
//! computes (`docs/block-errors.md`).
//!
//! The tables are those of an ideal receiver. What a real one loses is a number of decibels for
//! each modulation, by which all curves are shifted: the mean distance to the points that TS 45.005
//! requires.
//!
//! ```
//! use airpath_radio::conditions::Profile;
//! use airpath_radio::gsm::block_errors::Curve;
//!
//! let first = Curve::of("cs-2", Profile::Tu3, 1);
//! assert!(first.at(6.0) > first.at(20.0), "more C/I, fewer errors");
//! ```

use std::sync::LazyLock;

use airpath_core::Probability;

use crate::conditions::Profile;

/// The error rate of one scheme, profile and attempt over C/I: points half a decibel apart,
/// straight lines between their log-odds.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// ln(p/(1−p)) at each point, falling.
    log_odds: Vec<f32>,
    /// C/I of the first point, in dB.
    first_db: f64,
}

/// C/I of the tables' first row, in dB.
const LOWEST: f64 = -10.0;
/// Rows for each dB.
const PER_DECIBEL: f64 = 2.0;
/// Log-odds at which an error rate is 0 or 1 for any purpose: beyond one in 10¹³.
const CERTAIN: f64 = 30.0;

impl Curve {
    /// The probability that transmission `attempt`, counted from 1, leaves a block undecoded which
    /// was not decoded before, all transmissions at the same C/I.
    ///
    /// A receiver of `mcs-1` … `mcs-9` combines transmissions (incremental redundancy); the tables
    /// go up to four, later ones are like the fourth. One of `cs-1` … `cs-4`, `tch-f9.6` and
    /// `tch-f14.4` does not: each attempt is as the first. What fails is a block with its header;
    /// of `mcs-7` … `mcs-9`, one of the two; of `tch-f9.6` and `tch-f14.4`, a frame of the radio
    /// link protocol (240 bits in one block of 20 ms, 576 bits in two). Three more names belong to
    /// the uplink state flag, which has errors of its own: `usf-cs-1`, `usf-gmsk` (in blocks of
    /// `cs-2` … `cs-4` and `mcs-1` … `mcs-4`) and `usf-8-psk`.
    ///
    /// Found once and kept: a search over a few names, no allocation.
    ///
    /// # Panics
    /// If there is no such scheme; check a name from outside with [`is_scheme`].
    pub fn of(scheme: &str, profile: Profile, attempt: u32) -> &'static Self {
        let (_, curves) = TABLES.iter().find(|(name, _)| *name == scheme).expect("a scheme that has a table");
        let attempts = &curves[profile as usize];
        let last = attempts.len() as u32 - 1;
        &attempts[attempt.saturating_sub(1).min(last) as usize]
    }

    /// The error rate at a C/I in dB, averaged over the fading of the profile. Monotone.
    #[inline]
    pub fn at(&self, ci_db: f64) -> Probability {
        let place = (ci_db - self.first_db) * PER_DECIBEL;
        // Beyond the ends the first and last line go on.
        let segment = (place.max(0.0) as usize).min(self.log_odds.len() - 2);
        let (from, to) = (f64::from(self.log_odds[segment]), f64::from(self.log_odds[segment + 1]));
        let log_odds = from + (to - from) * (place - segment as f64);
        let clamped = log_odds.clamp(-CERTAIN, CERTAIN);
        Probability::new(1.0 / (1.0 + libm::exp(-clamped))).expect("between 0 and 1 by its form")
    }
}

/// Whether there are curves for a scheme of this name.
pub fn is_scheme(name: &str) -> bool {
    FILES.iter().any(|(known, _)| *known == name)
}

/// The schemes, as TS 45.003 names them.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("block_errors/", $name, ".csv")))),*]
    };
}

static FILES: [(&str, &str); 18] = files![
    "cs-1",
    "cs-2",
    "cs-3",
    "cs-4",
    "tch-f9.6",
    "tch-f14.4",
    "mcs-1",
    "mcs-2",
    "mcs-3",
    "mcs-4",
    "mcs-5",
    "mcs-6",
    "mcs-7",
    "mcs-8",
    "mcs-9",
    "usf-cs-1",
    "usf-gmsk",
    "usf-8-psk",
];

/// What a receiver loses against the ideal one, by modulation.
const LOSSES: &str = include_str!("block_errors/implementation-loss.csv");

/// The modulation of a scheme, as [`LOSSES`] has it (TS 45.003 §5.1).
fn modulation(scheme: &str) -> &'static str {
    match scheme {
        "mcs-5" | "mcs-6" | "mcs-7" | "mcs-8" | "mcs-9" | "usf-8-psk" => "8-psk",
        _ => "gmsk",
    }
}

/// The loss in dB.
fn loss(modulation: &str) -> f64 {
    let row = LOSSES.lines().find_map(|line| line.strip_prefix(modulation)?.strip_prefix(','));
    row.and_then(|row| row.split(',').next()?.parse().ok()).expect("a loss for each modulation")
}

/// The curves of one scheme by profile and attempt.
type Curves = Vec<Vec<Curve>>;

static TABLES: LazyLock<Vec<(&'static str, Curves)>> =
    LazyLock::new(|| FILES.iter().map(|(name, csv)| (*name, parse(csv, LOWEST + loss(modulation(name))))).collect());

fn parse(csv: &str, first_db: f64) -> Curves {
    let mut lines = csv.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("the tables have a head");
    let rows: Vec<Vec<Option<f64>>> =
        lines.map(|fields| fields.iter().map(|field| field.parse().ok()).collect()).collect();
    let first = rows.first().and_then(|row| row[0]).expect("the tables have rows");
    assert!(
        first == LOWEST && rows[1][0] == Some(LOWEST + 1.0 / PER_DECIBEL),
        "the tables have the axis of the lookup"
    );
    let column = |name: String| names.iter().position(|each| **each == name);
    let curves = |profile: Profile| {
        // Blocks that failed so far, of all: at first, each.
        let mut before: Vec<Option<f64>> = vec![Some(1.0); rows.len()];
        let mut curves: Vec<Curve> = Vec::new();
        while let Some(column) = column(format!("{}/{}", profile.name(), curves.len() + 1)) {
            let after: Vec<Option<f64>> = rows.iter().map(|row| row[column]).collect();
            let mut log_odds = log_odds(&before, &after);
            // Beyond what the tables resolve, a further transmission is not worse than the one
            // before it.
            if let Some(Curve { log_odds: earlier, .. }) = curves.last() {
                log_odds.iter_mut().zip(earlier).for_each(|(later, earlier)| *later = later.min(*earlier));
            }
            curves.push(Curve { log_odds, first_db });
            before = after;
        }
        curves
    };
    Profile::ALL.map(curves).into()
}

/// The log-odds of `after`/`before`, with straight lines on where the tables do not resolve them,
/// and not rising.
fn log_odds(before: &[Option<f64>], after: &[Option<f64>]) -> Vec<f32> {
    let first = after.iter().position(Option::is_some).expect("a resolved rate");
    let mut known: Vec<f64> = Vec::new();
    for i in first..after.len() {
        // Above the place where a rate is resolved, nearly all blocks fail.
        let before = before[i].or_else(|| before[..i].iter().all(Option::is_none).then_some(1.0));
        let (Some(before), Some(after)) = (before, after[i]) else { break };
        let p = (after / before).min(0.999_99);
        known.push(libm::log(p / (1.0 - p)));
    }
    for i in 1..known.len() {
        known[i] = known[i].min(known[i - 1]);
    }
    let (head, tail) = (slope(&known, false), slope(&known, true));
    let last = known.len() - 1;
    let value = |i: usize| match i.checked_sub(first) {
        None => known[0] - head * (first - i) as f64,
        Some(i) if i > last => known[last] + tail * (i - last) as f64,
        Some(i) => known[i],
    };
    (0..after.len()).map(|i| value(i) as f32).collect()
}

/// The mean slope of the first or last rows, by row: over 3 dB, less where the curve is shorter.
fn slope(known: &[f64], at_end: bool) -> f64 {
    let span = (known.len() - 1).min(6);
    let (from, to) = if at_end { (known.len() - 1 - span, known.len() - 1) } else { (0, span) };
    ((known[to] - known[from]) / span.max(1) as f64).min(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILES: [Profile; 4] = Profile::ALL;

    #[test]
    fn every_curve_falls_with_ci_and_stays_a_probability() {
        for scheme in schemes() {
            for profile in PROFILES {
                for attempt in 1..=5 {
                    let curve = Curve::of(scheme, profile, attempt);
                    let rates: Vec<f64> = (-300..1000).map(|tenth| curve.at(f64::from(tenth) / 10.0).get()).collect();
                    let name = format!("{scheme} {profile:?} {attempt}");
                    assert!(rates.windows(2).all(|pair| pair[1] <= pair[0]), "{name}");
                    assert!(rates[0] > 0.9 && rates[rates.len() - 1] < 1e-3, "{name}: {} {}", rates[0], rates[1299]);
                }
            }
        }
    }

    #[test]
    fn rates_that_are_not_resolved_lie_on_straight_lines() {
        let after = [None, Some(0.5), Some(0.25), Some(0.125), None, None];
        let found = log_odds(&[Some(1.0); 6], &after);
        // ln 1, ln 1/3 and ln 1/7: on average -ln 7 / 2 a row.
        let step = libm::log(7.0) / 2.0;
        let expected = [step, 0.0, -libm::log(3.0), -2.0 * step, -3.0 * step, -4.0 * step];
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn at_the_rows_of_a_table_the_lookup_gives_the_table() {
        let row = FILES[1].1.lines().find_map(|line| line.strip_prefix("6,")).expect("a row at 6 dB");
        let tu3: f64 = row.split(',').nth(1).and_then(|field| field.parse().ok()).expect("a rate");
        let at = Curve::of("cs-2", Profile::Tu3, 1).at(6.0 + loss("gmsk")).get();
        assert!((at - tu3).abs() < 1e-6, "{at} {tu3}");
    }

    #[test]
    fn more_protection_makes_fewer_errors() {
        for profile in PROFILES {
            for (more, less) in [("cs-1", "cs-2"), ("cs-2", "cs-3"), ("cs-3", "cs-4")] {
                assert!(
                    Curve::of(more, profile, 1).at(8.0) <= Curve::of(less, profile, 1).at(8.0),
                    "{more} {profile:?}"
                );
            }
        }
    }

    #[test]
    fn transmissions_that_are_combined_get_better() {
        for scheme in schemes().filter(|scheme| scheme.starts_with("mcs")) {
            for profile in PROFILES {
                for attempt in 2..=4 {
                    for ci_db in [0.0, 5.0, 10.0, 15.0, 20.0, 25.0] {
                        let rate = |attempt| Curve::of(scheme, profile, attempt).at(ci_db);
                        assert!(rate(attempt) <= rate(1), "{scheme} {profile:?} {attempt} {ci_db}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_does_not_combine_has_one_curve_for_all_attempts() {
        assert_eq!(Curve::of("cs-3", Profile::Tu50, 7), Curve::of("cs-3", Profile::Tu50, 1));
        assert_eq!(Curve::of("mcs-9", Profile::Tu50, 9), Curve::of("mcs-9", Profile::Tu50, 4));
    }

    /// Each scheme is off its points by what is left when the mean loss is taken: two standard
    /// deviations, 2.5 dB.
    #[test]
    fn the_standards_points_are_met_on_average() {
        let met = |scheme, profile, ci_db: f64| {
            let curve = Curve::of(scheme, profile, 1);
            curve.at(ci_db - 2.5).get() > 0.1 && curve.at(ci_db + 2.5).get() < 0.1
        };
        assert!(met("cs-1", Profile::Tu3, 13.0) && met("cs-2", Profile::Tu3, 15.0) && met("cs-3", Profile::Tu50, 16.0));
        assert!(met("mcs-5", Profile::Tu3, 19.5) && met("mcs-6", Profile::Tu3Hopping, 17.0));
    }
}
