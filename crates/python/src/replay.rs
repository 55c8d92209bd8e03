//! `airpath._native.replay`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_core::{Direction, Ecn, FlowId, Instant, SegmentInfo, UserId};
use airpath_sim::replay::{Arrival, Command, Options, RecordedHeaders, Recording, ReplayError, unplanned_commands};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::{ResultError, SIGNAL_CHECK, read, scenario_error};

/// A packet that entered: time, whether it goes up, number, size, ECN field, flow, user, number of
/// packets received before it at the same time.
type ArrivalRow = (u64, bool, u64, u32, u8, u32, u32, u32);

/// Its TCP header: offset, length, acknowledged offset, window, flags, retransmission flag.
type HeaderRow = Option<(i64, u32, Option<i64>, u32, u8, bool)>;

/// A change of conditions: time, component, mobile, JSON text.
type ChangeRow = (u64, String, Option<u32>, String);

/// Number and end of a repetition, its packets, TCP headers and changes, and the file of headers.
type RecordingRows = (u64, u64, Vec<ArrivalRow>, Vec<HeaderRow>, Vec<ChangeRow>, Option<PathBuf>);

/// Sends recorded packets through a network again, and returns the summary as JSON.
#[pyfunction]
#[pyo3(signature = (text, name, sets, recordings, out, log))]
pub fn replay(
    py: Python<'_>,
    text: &str,
    name: &str,
    sets: Vec<(String, String)>,
    recordings: Vec<RecordingRows>,
    out: Option<PathBuf>,
    log: bool,
) -> PyResult<String> {
    let refuse = |error: ReplayError| match error {
        ReplayError::Scenario(error) => scenario_error(py, &error),
        ReplayError::Folder(error) => ResultError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    };
    let original = read(py, text, name, &[])?;
    let scenario = read(py, text, name, &sets)?;
    let recordings = recordings
        .into_iter()
        .map(|(repetition, end, arrivals, segments, changes, headers)| {
            let logged = changes.into_iter().map(command).collect::<PyResult<_>>()?;
            let read = |file: PathBuf| {
                RecordedHeaders::read(&file)
                    .map_err(|error| PyValueError::new_err(format!("{}: {error}", file.display())))
            };
            Ok(Recording {
                repetition,
                end: Instant::from_nanos(end),
                arrivals: arrivals.into_iter().zip(segments).map(arrival).collect(),
                commands: unplanned_commands(&original, logged).map_err(|error| scenario_error(py, &error))?,
                headers: headers.map(read).transpose()?,
            })
        })
        .collect::<PyResult<Vec<_>>>()?;
    let options = Options { out, log };
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let waiting = std::thread::current();
    let summary = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let summary = airpath_sim::replay(&scenario, &recordings, &options, &stop);
            done.store(true, Ordering::Release);
            waiting.unpark();
            summary
        });
        while !done.load(Ordering::Acquire) {
            py.detach(|| std::thread::park_timeout(SIGNAL_CHECK));
            if py.check_signals().is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        worker.join().expect("a replay does not panic")
    });
    summary.map(|summary| summary.to_json()).map_err(refuse)
}

fn arrival(((time, up, id, size, ecn, flow, user, after), header): (ArrivalRow, HeaderRow)) -> Arrival {
    let header = header.map(|(offset, length, ack, window, flags, retransmission)| SegmentInfo {
        offset,
        length,
        ack: ack.into(),
        window,
        flags,
        retransmission,
    });
    Arrival {
        time: Instant::from_nanos(time),
        direction: if up { Direction::Up } else { Direction::Down },
        id,
        size,
        ecn: Ecn::from_bits(ecn),
        flow: FlowId(flow),
        user: mobile(user),
        header,
        after,
    }
}

/// The mobile with this number. A replay rejects those that its scenario does not have, and no
/// scenario has the largest.
fn mobile(number: u32) -> UserId {
    UserId::new(number.min(UserId::LIMIT - 1))
}

fn command((at, component, user, text): ChangeRow) -> PyResult<Command> {
    let mut command: airpath_link::BearerCommand = serde_json::from_str(&text)
        .map_err(|error| PyValueError::new_err(format!("`{text}` is no change: {error}")))?;
    command.user = user.map(mobile);
    Ok(Command { at: Instant::from_nanos(at), component, command })
}
