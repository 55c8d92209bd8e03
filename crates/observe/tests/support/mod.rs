//! Shared helpers of the capture tests.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::Reader;
use airpath_observe::flows::{Ending, FlowNumber, Flows, Listener};
use airpath_observe::{Connection, Observation};
use airpath_wire::segment::Segment;

/// A connection of a capture with its observations.
pub struct Seen {
    pub connection: Connection,
    pub observations: Vec<Observation>,
}

impl Seen {
    /// The port of the client, which identifies a connection in messages.
    pub fn port(&self) -> u16 {
        self.connection.route().source.port
    }
}

/// Collects the connections of a capture.
#[derive(Default)]
struct Kept {
    observations: BTreeMap<FlowNumber, Vec<Observation>>,
    ended: Vec<(FlowNumber, Connection)>,
}

impl Listener for Kept {
    fn observed(&mut self, flow: FlowNumber, observation: &Observation, _: &Segment<'_>, _: &Connection) {
        self.observations.entry(flow).or_default().push(observation.clone());
    }

    fn ended(&mut self, flow: FlowNumber, connection: &Connection, _why: Ending) {
        self.ended.push((flow, connection.clone()));
    }
}

/// The connections of a capture with their segments, in the order of their beginning; none if the
/// file is no capture.
pub fn seen(path: &Path) -> Vec<Seen> {
    let Ok(mut reader) = Reader::new(File::open(path).expect("the capture can be read")) else { return Vec::new() };
    let (mut decoder, mut flows, mut kept) = (Decoder::default(), Flows::default(), Kept::default());
    while let Some(record) = reader.next_record() {
        if let Decoded::Segment(segment) = decoder.decode(&record) {
            flows.segment(&segment, &mut kept);
        }
    }
    flows.finish(&mut kept);
    let Kept { mut observations, mut ended } = kept;
    ended.sort_by_key(|(number, _)| *number);
    let seen =
        |(number, connection)| Seen { connection, observations: observations.remove(&number).unwrap_or_default() };
    ended.into_iter().map(seen).collect()
}

/// The connections of a capture, in the order of their beginning; none if the file is no capture.
pub fn connections(path: &Path) -> Vec<Connection> {
    seen(path).into_iter().map(|seen| seen.connection).collect()
}

/// The number of frames of a capture; none if the file is no capture.
pub fn frames(path: &Path) -> u64 {
    let Some(mut reader) = File::open(path).ok().and_then(|file| Reader::new(file).ok()) else { return 0 };
    while reader.next_record().is_some() {}
    reader.frames()
}

/// The captures of the repository.
pub fn captures() -> Vec<PathBuf> {
    captures_in(&airpath_testing::captures())
}

/// The shared captures, or `None` with a report if they are missing.
#[track_caller]
pub fn shared_captures() -> Option<Vec<PathBuf>> {
    let folder = airpath_testing::shared_captures()?;
    let mut found = captures_in(&folder);
    found.extend(captures_in(&folder.join("own")));
    found.sort();
    Some(found)
}

fn captures_in(folder: &Path) -> Vec<PathBuf> {
    let known = ["pcap", "pcapng", "dmp", "dump", "snoop"];
    let is_capture = |path: &PathBuf| path.extension().is_some_and(|end| known.iter().any(|known| end == *known));
    listed(folder).into_iter().filter(is_capture).collect()
}

/// The files in a folder, by name.
pub fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder can be listed").path()).collect();
    found.sort();
    found
}
