//! tcptrace's figures as rows: those of the installed program, and the expected outputs of its own
//! regression tests.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;

use airpath_observe::Connection;
use airpath_wire::segment::Endpoint;

/// tcptrace's row of a connection.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Its number, from 1.
    pub number: String,
    /// The two ends, `a` and `b`.
    ends: [Option<Endpoint>; 2],
    /// Its figures, by column and direction (`_a2b`, `_b2a`).
    cells: BTreeMap<String, String>,
}

impl Row {
    /// The cell of a figure; empty if there is none.
    pub fn cell(&self, column: &str, direction: &str) -> &str {
        self.cells.get(&format!("{column}_{direction}")).map_or("", String::as_str)
    }
}

/// Whether tcptrace is installed; the run reports if not.
pub fn is_installed() -> bool {
    let installed = Command::new("tcptrace").arg("-v").output().is_ok();
    if !installed {
        airpath_testing::skip("program", "tcptrace is not installed (as root: apt-get install tcptrace)");
    }
    installed
}

/// The installed tcptrace's rows of a capture, from its table (`--csv`).
pub fn installed(capture: &Path) -> Vec<Row> {
    let out = Command::new("tcptrace")
        .args(["--csv", "-l", "-r", "-n", "-W"])
        .arg(capture)
        .output()
        .expect("it ran a moment ago");
    let text = String::from_utf8_lossy(&out.stdout);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("conn_#"));
    let Some(header) = lines.next() else { return Vec::new() };
    let names: Vec<String> = header.split(',').map(|name| name.trim().replace(' ', "_")).collect();
    let row = |line: &str| {
        let cells: BTreeMap<String, String> =
            names.iter().cloned().zip(line.split(',').map(|cell| cell.trim().to_owned())).collect();
        let end = |end: char| {
            let address: Option<IpAddr> = cells[&format!("host_{end}")].parse().ok();
            let port: Option<u16> = cells[&format!("port_{end}")].parse().ok();
            Some(Endpoint { address: address?, port: port? })
        };
        Row { number: cells["conn_#"].clone(), ends: [end('a'), end('b')], cells }
    };
    lines.filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).map(row).collect()
}

/// The expected rows of a capture, from tcptrace's own tests: its plain text output (`-l -r -n
/// -W`), with two directions side by side.
pub fn expected(text: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines() {
        let Some((label, rest)) = line.trim().split_once(':') else { continue };
        if let Some(number) = label.strip_prefix("TCP connection ").filter(|number| number.parse::<u32>().is_ok()) {
            rows.push(Row { number: number.to_owned(), ..Row::default() });
        }
        let Some(row) = rows.last_mut() else { continue };
        if label.starts_with("host ") {
            let end: Option<SocketAddr> = rest.trim().parse().ok();
            let place = usize::from(row.ends[0].is_some());
            row.ends[place] = end.map(|end| Endpoint { address: end.ip(), port: end.port() });
        } else if let Some((there, back)) = rest.split_once(&format!("{label}:")) {
            for (half, direction) in [(there, "a2b"), (back, "b2a")] {
                let mut words = half.split_whitespace();
                let value = words.next().expect("every figure has a value");
                // Only the unit distinguishes bytes and segments of the initial window.
                let unit = if label == "initial window" { words.next() } else { None };
                let name = [Some(label), unit].map(|part| part.map(|part| part.replace(' ', "_")));
                let name = name.into_iter().flatten().collect::<Vec<_>>().join("_");
                row.cells.insert(format!("{name}_{direction}"), value.to_owned());
            }
        }
    }
    rows
}

/// Removes the row of `connection` from theirs; returns it with whether its `a` is the client.
pub fn take(connection: &Connection, theirs: &mut Vec<Row>) -> Option<(Row, bool)> {
    let [client, server] = [connection.route().source, connection.route().destination].map(Some);
    let index = theirs.iter().position(|row| row.ends == [client, server] || row.ends == [server, client])?;
    let row = theirs.remove(index);
    let from_client = row.ends[0] == client;
    Some((row, from_client))
}
