//! What the tests of captures share.

use std::fs::File;
use std::path::{Path, PathBuf};

use airpath_trace::capture::Reader;
use airpath_trace::connection::Connection;
use airpath_trace::decode::{Decoded, Decoder};
use airpath_trace::flows::{Ending, FlowNumber, Flows, Listener};

/// Where the captures are.
pub fn collection() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("AIRPATH_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    let folder = shared.join("data/captures");
    if !folder.is_dir() {
        println!(
            "skipped: no captures in {}; set AIRPATH_SHARED to the folder that holds data/captures",
            folder.display()
        );
        return None;
    }
    Some(folder)
}

/// Keeps the connections of a capture.
#[derive(Default)]
struct Kept(Vec<(FlowNumber, Connection)>);

impl Listener for Kept {
    fn ended(&mut self, flow: FlowNumber, connection: &Connection, _why: Ending) {
        self.0.push((flow, connection.clone()));
    }
}

/// The connections of a capture, in the order in which they began; none of what is no capture.
pub fn connections(path: &Path) -> Vec<Connection> {
    let Ok(mut reader) = Reader::new(File::open(path).expect("the capture can be read")) else { return Vec::new() };
    let (mut decoder, mut flows, mut kept) = (Decoder::default(), Flows::default(), Kept::default());
    while let Some(record) = reader.next_record() {
        if let Decoded::Segment(segment) = decoder.decode(&record) {
            flows.segment(&segment, &mut kept);
        }
    }
    flows.finish(&mut kept);
    kept.0.sort_by_key(|(number, _)| *number);
    kept.0.into_iter().map(|(_, connection)| connection).collect()
}
