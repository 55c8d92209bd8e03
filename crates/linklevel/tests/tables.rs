//! The tables in the repository match those that the program generates.

use std::path::PathBuf;

use airpath_linklevel::{compare, profile::Profile, schemes, simulate::Axis, table};

fn stored(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../radio/src/gsm/block_errors/{name}.csv"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The columns of a table after the first one, with their names; `None` where a rate is not
/// resolved.
fn columns(csv: &str) -> Vec<(String, Vec<Option<f64>>)> {
    let mut lines = csv.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let rows: Vec<Vec<Option<f64>>> =
        lines.map(|line| line.split(',').map(|field| field.parse().ok()).collect()).collect();
    assert_eq!(rows.len(), Axis::POINTS);
    let column = |i: usize| rows.iter().map(|row| row[i]).collect();
    (1..names.len()).map(|i| (names[i].to_owned(), column(i))).collect()
}

/// Uses other blocks than the tables do, so that the rate is checked and not the generator.
#[test]
fn a_point_simulated_again_has_the_rate_of_the_table() {
    let cases = [
        ("cs-2", Profile::Tu3, 9.0, 1000),
        ("tch-f9.6", Profile::Tu50, 2.0, 400),
        ("mcs-4", Profile::Tu3Hopping, 12.0, 150),
    ];
    for (name, profile, ci_db, blocks) in cases {
        let scheme = schemes::named(name).expect("a scheme");
        let point = (0..Axis::POINTS).find(|i| Axis::decibels(*i) == ci_db).expect("a point of the axis");
        let failed = table::count(&scheme, profile, 2, blocks).failed[0][point];
        let column = format!("{}/1", profile.name());
        let columns = columns(&stored(name));
        let rate =
            columns.iter().find(|(each, _)| *each == column).and_then(|(_, rates)| rates[point]).expect("resolved");
        let expected = rate * f64::from(blocks);
        let deviation = 4.0 * (expected * (1.0 - rate)).sqrt();
        assert!(
            (f64::from(failed) - expected).abs() < deviation,
            "{name}: {failed}, expected {expected} ± {deviation}"
        );
    }
}

#[test]
fn every_table_is_there_and_was_made_by_the_documented_command() {
    for scheme in schemes::all() {
        let csv = stored(scheme.name);
        let blocks = if scheme.attempts > 1 { 5_000 } else { 20_000 };
        let command = format!("linklevel table {} --seed 1 --blocks {blocks}", scheme.name);
        assert!(csv.contains(&command), "{}: generate it again with {command}", scheme.name);
        assert_eq!(columns(&csv).len(), Profile::ALL.len() * scheme.attempts, "{}", scheme.name);
    }
}

#[test]
fn rates_fall_with_ci_and_with_each_further_transmission() {
    for scheme in schemes::all() {
        let columns = columns(&stored(scheme.name));
        for (name, rates) in &columns {
            let known: Vec<f64> = rates.iter().flatten().copied().collect();
            assert!(known.len() >= 3 && known.windows(2).all(|pair| pair[1] <= pair[0]), "{} {name}", scheme.name);
            // Unresolved rates are at the ends.
            let first = rates.iter().position(Option::is_some).expect("a resolved rate");
            assert!(rates[first..first + known.len()].iter().all(Option::is_some), "{} {name}", scheme.name);
        }
        for attempts in columns.chunks(scheme.attempts) {
            for pair in attempts.windows(2) {
                let both =
                    pair[0].1.iter().zip(&pair[1].1).filter_map(|(one, more)| Some((one.as_ref()?, more.as_ref()?)));
                for (one, more) in both {
                    assert!(more <= one, "{} {}", scheme.name, pair[1].0);
                }
            }
        }
    }
}

#[test]
fn the_implementation_losses_and_the_document_are_those_of_the_tables() {
    let compared = compare::compare(|name| Ok(stored(name))).expect("tables");
    let document = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/block-errors.md");
    let document = std::fs::read_to_string(document).expect("the document");
    assert!(document.contains(&compare::markdown(&compared)), "enter what linklevel compare prints");
    assert_eq!(compare::losses(&compared), stored("implementation-loss"), "generate them again with linklevel compare");
}
