//! Attributes the time of each connection of a capture to causes; a line of JSON for each piece.
//!
//! `causes FILE [PEER] [RADIO]`: PEER is a capture of the other end, RADIO a CSV file with the gaps
//! of the client's radio (`begin`, `end`, `direction`, `name`; nanoseconds).

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::Arc;

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::Reader;
use airpath_observe::flows::{Ending, FlowNumber, Flows, Listener};
use airpath_observe::{Connection, End, Observation};
use airpath_trace::causes::{Causes, Piece};
use airpath_trace::radio::{Columns, RadioLog};
use airpath_trace::shared_path::{Recorder, SharedPaths};
use airpath_trace::two_point::{CaptureDigest, JoinOptions, JoinedCaptures, join};
use airpath_wire::segment::{Route, Segment};

struct Print {
    open: BTreeMap<FlowNumber, Causes>,
    radio: Option<Arc<RadioLog>>,
    ends: Option<JoinedCaptures>,
    paths: Arc<SharedPaths>,
}

fn piece(flow: FlowNumber, route: &Route, piece: &Piece) {
    let line = format!(
        r#"{{"flow": {}, "client_port": {}, "server_port": {}, "cause": "{}", "confidence": "{}", "begin": {}, "end": {}, "first_frame": {}, "last_frame": {}}}"#,
        flow.0,
        route.source.port,
        route.destination.port,
        piece.cause.name(),
        piece.confidence.name(),
        piece.begin.as_nanos(),
        piece.end.as_nanos(),
        piece.first_frame,
        piece.last_frame
    );
    // The reader may have closed the pipe.
    let _ = writeln!(io::stdout(), "{line}");
}

impl Listener for Print {
    fn observed(&mut self, flow: FlowNumber, observation: &Observation, _: &Segment<'_>, connection: &Connection) {
        let causes = self.open.entry(flow).or_insert_with(|| {
            let route = connection.route();
            let causes = Causes::new(None);
            let causes = match self.paths.host(route.source.address) {
                Some(host) => {
                    let round_trip = host.round_trip(route.destination.address, observation.time);
                    causes.with_host(host, round_trip)
                }
                None => causes,
            };
            let causes = match &self.radio {
                Some(log) => causes.with_radio(Arc::clone(log), End::Client),
                None => causes,
            };
            match self.ends.as_ref().and_then(|ends| ends.connection(flow)) {
                Some(joined) => causes.with_both_ends(joined, End::Client),
                None => causes,
            }
        });
        causes.observe(observation, &mut |settled| piece(flow, connection.route(), settled));
    }

    fn ended(&mut self, flow: FlowNumber, connection: &Connection, _: Ending) {
        let Some(causes) = self.open.remove(&flow) else { return };
        let account = causes.finish(&mut |settled| piece(flow, connection.route(), settled));
        let _ = writeln!(io::stderr(), "{}: {account}", flow.0);
        for stall in &account.stalls {
            let _ = writeln!(io::stderr(), "  {stall}");
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = env::args().nth(1).ok_or("usage: causes FILE [PEER] [RADIO]")?;
    let mut print = Print { open: BTreeMap::new(), radio: None, ends: None, paths: Arc::default() };
    for other in env::args().skip(2) {
        if other.ends_with(".csv") {
            let log = RadioLog::read(&fs::read_to_string(other)?, &Columns::intervals())?;
            print.radio = Some(Arc::new(log));
        } else {
            let (mut here, mut there) = (CaptureDigest::default(), CaptureDigest::default());
            read(&path, &Arc::default(), &mut here)?;
            read(&other, &Arc::default(), &mut there)?;
            print.ends = Some(join(here, there, &JoinOptions::default())?);
        }
    }
    let paths = Arc::clone(&print.paths);
    read(&path, &paths, &mut print)
}

fn read(path: &str, paths: &Arc<SharedPaths>, listener: &mut impl Listener) -> Result<(), Box<dyn std::error::Error>> {
    let mut recorder = Recorder::new(Arc::clone(paths));
    let mut reader = Reader::new(File::open(path)?)?;
    let mut decoder = Decoder::default();
    let mut flows = Flows::default();
    while let Some(record) = reader.next_record() {
        let packet = decoder.decode(&record);
        recorder.packet(&packet);
        if let Decoded::Segment(segment) = packet {
            flows.segment(&segment, listener);
        }
    }
    flows.finish(listener);
    Ok(())
}
