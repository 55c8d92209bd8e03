//! Our tables compared with the standard's reference points, and the implementation loss that
//! follows.

use std::fmt::Write;

use crate::reference::{self, Point};
use crate::schemes::{self, Modulation};

/// A point of the standard, and the C/I at which our ideal receiver reaches it.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// The required point.
    pub point: Point,
    /// Modulation of the scheme.
    pub modulation: Modulation,
    /// C/I in dB at which the table has the point's rate.
    pub ours_db: f64,
}

impl Compared {
    /// The margin that the standard leaves to a receiver, in dB.
    pub fn offset(&self) -> f64 {
        self.point.ci_db - self.ours_db
    }
}

/// Compares tables with the reference points. `read` gives a scheme's table as CSV.
///
/// # Errors
/// Errors of `read`; a table that does not resolve a rate.
pub fn compare(read: impl Fn(&str) -> Result<String, String>) -> Result<Vec<Compared>, String> {
    let of = |point: Point| {
        let csv = read(point.scheme)?;
        let column = format!("{}/1", point.profile.name());
        let ours_db = crossing(&csv, &column, point.rate).ok_or_else(|| {
            format!("{}: column {column} does not cross {}; make the table again", point.scheme, point.rate)
        })?;
        let modulation =
            schemes::named(point.scheme).ok_or_else(|| format!("no scheme is called '{}'", point.scheme))?.modulation;
        Ok(Compared { point, modulation, ours_db })
    };
    reference::points().map(of).collect()
}

/// The C/I at which a column falls below `rate`, interpolated linearly between two rows.
fn crossing(csv: &str, column: &str, rate: f64) -> Option<f64> {
    let mut lines = csv.lines().filter(|line| !line.starts_with('#'));
    let column = lines.next()?.split(',').position(|name| name == column)?;
    let rows = lines.filter_map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        Some((fields[0].parse::<f64>().ok()?, fields.get(column)?.parse::<f64>().ok()?))
    });
    let rows: Vec<(f64, f64)> = rows.collect();
    let pair = rows.windows(2).find(|pair| pair[0].1 >= rate && pair[1].1 < rate)?;
    let [(low, above), (high, below)] = [pair[0], pair[1]];
    Some(low + (high - low) * (above - rate) / (above - below))
}

/// The comparison as a table in Markdown.
pub fn markdown(compared: &[Compared]) -> String {
    let mut text = String::from(
        "| scheme | profile | rate | required C/I | ideal receiver | offset |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for each in compared {
        let Point { scheme, profile, rate, ci_db } = each.point;
        let (ours, offset) = (each.ours_db, each.offset());
        let _ = writeln!(
            text,
            "| {scheme} | {} | {:.0} % | {ci_db:.1} dB | {ours:.1} dB | {offset:.1} dB |",
            profile.name(),
            100.0 * rate
        );
    }
    text
}

/// The implementation loss of each modulation, the mean of its offsets, as CSV.
pub fn losses(compared: &[Compared]) -> String {
    let mut csv = String::from(
        "# What a receiver loses against the ideal one of the tables: mean offset to the reference points of TS 45.005 (recalled).\n\
         # Made by linklevel compare.\n\
         modulation,loss_db,points,standard_deviation_db\n",
    );
    for (name, modulation) in [("gmsk", Modulation::Gmsk), ("8-psk", Modulation::Psk8)] {
        let offsets: Vec<f64> =
            compared.iter().filter(|each| each.modulation == modulation).map(Compared::offset).collect();
        let count = offsets.len() as f64;
        let mean = offsets.iter().sum::<f64>() / count;
        let variance = offsets.iter().map(|offset| (offset - mean) * (offset - mean)).sum::<f64>() / (count - 1.0);
        let _ = writeln!(csv, "{name},{mean:.1},{count},{:.1}", variance.sqrt());
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_lies_on_the_line_between_two_rows() {
        let csv = "# note\nci_db,static/1,tu3/1\n0,,0.5\n1,,0.3\n2,,0.1\n3,,\n";
        let near = |found: Option<f64>, expected: f64| found.is_some_and(|value| (value - expected).abs() < 1e-9);
        assert!(near(crossing(csv, "tu3/1", 0.2), 1.5));
        assert!(near(crossing(csv, "tu3/1", 0.4), 0.5));
        assert_eq!(crossing(csv, "tu3/1", 0.05), None);
        assert_eq!(crossing(csv, "tu50/1", 0.2), None);
    }
}
