//! Reads captures and computes the full statistics of every connection. `benches/traces.py`
//! measures it.
//!
//! ```text
//! cargo run --release -p airpath-trace --example statistics -- FILE…
//! ```

use std::process::ExitCode;

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::Reader;
use airpath_observe::columns::COLUMNS;
use airpath_observe::flows::{Ending, FlowNumber, Flows, Listener};
use airpath_observe::{Connection, End};

/// Sums over all connections, so that every figure is computed.
#[derive(Default)]
struct Sums {
    connections: u64,
    retransmissions: u64,
    cells: u64,
}

impl Listener for Sums {
    fn ended(&mut self, _: FlowNumber, connection: &Connection, _: Ending) {
        self.connections += 1;
        for end in End::BOTH {
            self.retransmissions += connection.figures(end).retransmissions;
            self.cells +=
                COLUMNS.iter().filter(|column| (column.value)(connection, end).number().is_some()).count() as u64;
        }
    }
}

fn main() -> ExitCode {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        if let Err(error) = count(&path) {
            eprintln!("{path}: {error}");
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn count(path: &str) -> Result<(), String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut reader = Reader::new(file).map_err(|error| error.to_string())?;
    let (mut decoder, mut flows, mut sums) = (Decoder::default(), Flows::default(), Sums::default());
    let mut most_open = 0;
    while let Some(record) = reader.next_record() {
        if let Decoded::Segment(segment) = &decoder.decode(&record) {
            flows.segment(segment, &mut sums);
            most_open = most_open.max(flows.open());
        }
    }
    flows.finish(&mut sums);
    println!(
        "packets={} connections={} held={most_open} retransmissions={} cells={}",
        reader.frames(),
        sums.connections,
        sums.retransmissions,
        sums.cells
    );
    Ok(())
}
