//! tcptrace's figures equal ours where it is right; where it is not, `parity/differences.toml` says why, and names a packet that shows it.
//!
//! The captures are those of `data/captures` below `AIRPATH_SHARED`, or of `shared` beside the repository. Without them, or without tcptrace,
//! the test says so and passes.

mod support;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use airpath_trace::connection::{Connection, End};
use airpath_trace::decode::Endpoint;
use airpath_trace::statistics::{COLUMNS, Value};
use serde::Deserialize;
use support::{collection, connections};

/// A way in which tcptrace's figures differ from ours.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    /// tcptrace's names, without the direction.
    columns: Vec<String>,
    /// Which captures; every one where it is left out.
    #[serde(default)]
    captures: Vec<String>,
    /// How the figures are related.
    relation: Relation,
    /// Why tcptrace is not right.
    reason: String,
    /// The packet that shows it: a capture and a frame.
    proof: (String, u64),
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Relation {
    /// Theirs is one more.
    OneMore,
    /// Theirs is less by one or two.
    LittleLess,
    /// Theirs is more.
    More,
    /// Theirs is less.
    Less,
    /// Theirs is less by a thousandth at most.
    Nearly,
    /// Theirs is nothing.
    Nothing,
    /// Neither can be said.
    Other,
}

impl Relation {
    fn holds(self, ours: f64, theirs: f64) -> bool {
        match self {
            // Means are cut to whole numbers.
            Self::OneMore => (theirs - 1.0 - ours).abs() < 1.0,
            Self::LittleLess => theirs < ours && ours - theirs < 3.0,
            Self::More => theirs > ours,
            Self::Less => theirs < ours,
            Self::Nearly => theirs <= ours && ours - theirs <= ours * 1e-3 + 0.1,
            Self::Nothing => theirs == 0.0,
            Self::Other => true,
        }
    }
}

/// A capture in which one of the two finds connections that the other does not.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unmatched {
    capture: String,
    #[expect(dead_code, reason = "for who reads the file")]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Differences {
    unmatched: Vec<Unmatched>,
    difference: Vec<Difference>,
}

/// A line of tcptrace's table: by column and direction (`_a2b`, `_b2a`).
type Row = BTreeMap<String, String>;

fn theirs(path: &Path) -> Vec<Row> {
    let out = Command::new("tcptrace")
        .args(["--csv", "-l", "-r", "-n", "-W"])
        .arg(path)
        .output()
        .expect("it ran a moment ago");
    let text = String::from_utf8_lossy(&out.stdout);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("conn_#"));
    let Some(header) = lines.next() else { return Vec::new() };
    let names: Vec<String> = header.split(',').map(|name| name.trim().replace(' ', "_")).collect();
    let row = |line: &str| names.iter().cloned().zip(line.split(',').map(|cell| cell.trim().to_owned())).collect();
    lines.filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).map(row).collect()
}

/// Takes the line for `connection` out of theirs, and says whether it goes from the client.
fn take(connection: &Connection, theirs: &mut Vec<Row>) -> Option<(Row, bool)> {
    let [client, server] = [connection.route().source, connection.route().destination];
    let end = |row: &Row, end: char| {
        let address: Option<IpAddr> = row[&format!("host_{end}")].parse().ok();
        let port: Option<u16> = row[&format!("port_{end}")].parse().ok();
        Some(Endpoint { address: address?, port: port? })
    };
    let index = theirs.iter().position(|row| {
        let ends = [end(row, 'a'), end(row, 'b')];
        ends == [Some(client), Some(server)] || ends == [Some(server), Some(client)]
    })?;
    let row = theirs.remove(index);
    let from_client = end(&row, 'a') == Some(client);
    Some((row, from_client))
}

/// Their cell as a number, and the places after its point.
fn number(cell: &str) -> (f64, u32) {
    match cell {
        "NA" | "" | "N" => (0.0, 0),
        "Y" => (1.0, 0),
        _ => (cell.parse().unwrap_or(f64::NAN), cell.split_once('.').map_or(0, |(_, places)| places.len() as u32)),
    }
}

fn our_number(value: &Value, unit: &str, name: &str) -> f64 {
    let number = value.number().unwrap_or(0.0);
    // They print milliseconds, except of the time that data took.
    if unit == "s" && name != "data_time" { number * 1e3 } else { number }
}

fn equal(ours: f64, value: &Value, theirs: f64, places: u32) -> bool {
    // Ours are exact where theirs are cut to whole numbers, and to microseconds before that.
    let tolerance = if places == 0 && matches!(value, Value::Number(_)) {
        1.0
    } else {
        0.5001 / [1.0, 10.0, 100.0, 1000.0][places as usize] + 0.001
    };
    (ours - theirs).abs() < tolerance
}

fn captures(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be listed").path();
        let known = path
            .extension()
            .is_some_and(|end| ["pcap", "pcapng", "dmp", "dump", "snoop"].iter().any(|known| end == *known));
        if path.is_dir() {
            found.extend(captures(&path));
        } else if known {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn tcptrace_agrees_where_it_is_right() {
    let Some(folder) = collection() else { return };
    if Command::new("tcptrace").arg("-v").output().is_err() {
        println!("skipped: tcptrace is not installed");
        return;
    }
    let text = include_str!("parity/differences.toml");
    let known: Differences = toml::from_str(text).unwrap();
    let mut used = vec![0_u32; known.difference.len()];
    let (mut compared, mut unexplained) = (0, Vec::new());
    for path in captures(&folder) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (ours, mut theirs) = (connections(&path), theirs(&path));
        let unmatched = known.unmatched.iter().any(|unmatched| unmatched.capture == name);
        for connection in &ours {
            let Some((row, from_client)) = take(connection, &mut theirs) else {
                if !unmatched {
                    unexplained.push(format!("{name}: tcptrace does not have {}", connection.route().source.port));
                }
                continue;
            };
            for (end, direction) in [(End::Client, from_client), (End::Server, !from_client)] {
                let suffix = if direction { "_a2b" } else { "_b2a" };
                let pairs = COLUMNS
                    .iter()
                    .flat_map(|column| column.tcptrace.split_whitespace().map(move |theirs| (column, theirs)));
                for (column, their_name) in pairs {
                    let (their_name, part) = their_name.split_once(':').unwrap_or((their_name, "1"));
                    let cell = row.get(&format!("{their_name}{suffix}")).unwrap_or_else(|| panic!("no {their_name}"));
                    let cell = cell.split('/').nth(part.parse::<usize>().unwrap() - 1).unwrap();
                    let cell = if cell == "NA" { cell } else { cell.trim() };
                    let (theirs, places) = number(cell);
                    let value = (column.value)(connection, end);
                    let ours = our_number(&value, column.unit, column.name);
                    compared += 1;
                    if equal(ours, &value, theirs, places) {
                        continue;
                    }
                    let explained = known.difference.iter().position(|known| {
                        known.columns.iter().any(|known| known == their_name)
                            && (known.captures.is_empty() || known.captures.contains(&name))
                            && known.relation.holds(ours, theirs)
                    });
                    match explained {
                        Some(index) => used[index] += 1,
                        None => unexplained.push(format!(
                            "{name}: {} {their_name}{suffix} of {} ({}): ours {ours}, theirs {cell}",
                            row["conn_#"],
                            connection.route().source.port,
                            column.name
                        )),
                    }
                }
            }
        }
        let theirs = if unmatched { Vec::new() } else { theirs };
        unexplained.extend(theirs.iter().map(|row| format!("{name}: only tcptrace has {}", row["conn_#"])));
    }
    for (difference, used) in known.difference.iter().zip(&used) {
        assert!(!difference.reason.is_empty() && difference.proof.1 > 0);
        if *used == 0 {
            unexplained.push(format!("a difference that does not occur any more: {:?}", difference.columns));
        }
        println!("{used:6} {:?} {}", difference.columns, difference.reason);
    }
    assert!(unexplained.is_empty(), "{} of {compared} figures differ:\n{}", unexplained.len(), unexplained.join("\n"));
    println!("{compared} figures compared, {} of them explained differences", used.iter().sum::<u32>());
}
