//! Analysis of captures and event logs in a new thread; tables are returned as arrays.

mod log;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use airpath_core::Span;
use airpath_observe::columns::Kind;
use airpath_trace::analysis::table::{Column, Table, Values};
use airpath_trace::analysis::{
    Options, Peer, Reading, Report, Selection, SelectorError, Shortcomings, Source, Step, analyse, figures,
};
use airpath_trace::causes::Cause;
use airpath_trace::event_log::CapturePoint;
use airpath_trace::radio::{Columns, RadioLog};
use airpath_trace::two_point::JoinedCaptures;
use airpath_web::Har;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use serde_json::{Value, json};

use crate::{TraceError, interruptible, with_next_step};

/// Analyses captures. Returns how they were read, as JSON, the tables, as a dictionary of columns
/// by name, and an HTTP Archive. `line` gets a line of JSON for each connection when it ends; there
/// are no tables then. `log` is analysed instead of files, from both ends with `log_ends`.
#[pyfunction]
#[pyo3(signature = (files, *, peer, one_clock, log, log_ends, radio, flow, causes, exchanges, observations, line))]
#[expect(clippy::too_many_arguments, reason = "Python's side gives them names and defaults")]
pub fn trace<'py>(
    py: Python<'py>,
    files: Vec<PathBuf>,
    peer: Option<PathBuf>,
    one_clock: bool,
    log: Option<log::Columns<'py>>,
    log_ends: bool,
    radio: Vec<(Option<IpAddr>, String, BTreeMap<String, String>)>,
    flow: Vec<String>,
    causes: bool,
    exchanges: bool,
    observations: bool,
    line: Option<Py<PyAny>>,
) -> PyResult<(String, Bound<'py, PyDict>, Option<String>)> {
    let select = Selection::parse(&flow);
    let select = select.map_err(|error| failure(&error.to_string(), Some(SelectorError::NEXT_STEP)))?;
    let (source, peer) = match log {
        Some(log) => {
            let log = Arc::new(log::read(&log)?);
            let other = Peer { source: Source::Log(Arc::clone(&log), CapturePoint::Receiver), one_clock: true };
            (Source::Log(log, CapturePoint::Sender), log_ends.then_some(other))
        }
        None => (Source::Captures(files), peer.map(|file| Peer { source: Source::Captures(vec![file]), one_clock })),
    };
    let radio = radio.iter().map(|(mobile, log, columns)| Ok((*mobile, Arc::new(read_log(log, columns)?))));
    let radio = radio.collect::<PyResult<_>>()?;
    let stream = line.is_some();
    let options =
        Options { source, select, peer, radio, causes, exchanges, observations, stream, ..Options::default() };
    let mut refused = None;
    let mut write = |text: &str| {
        let Some(line) = &line else { return true };
        Python::attach(|py| line.call1(py, (text,))).map_err(|error| refused = Some(error)).is_ok()
    };
    let report = interruptible(py, |stop| analyse(&options, stop, &mut write), None, || (0, 0))?;
    if let Some(error) = refused {
        return Err(error);
    }
    let Report { reading, shortcomings, stopped, tables, exchanges, ends } =
        report.map_err(|error| failure(&error.to_string(), error.next_step().as_deref()))?;
    let frames = PyDict::new(py);
    for (name, table) in tables {
        frames.set_item(name, columns(py, &table)?)?;
    }
    let archive = exchanges.as_ref().map(|exchanges| json!(Har::new(exchanges)).to_string());
    Ok((describe(&reading, shortcomings, stopped, ends.as_ref()).to_string(), frames, archive))
}

/// The causes of elapsed time, in the order of their columns: names, and whether their time is
/// avoidable.
#[pyfunction]
pub fn trace_causes() -> Vec<(&'static str, bool)> {
    Cause::ALL.into_iter().map(|cause| (cause.name(), cause.is_avoidable())).collect()
}

/// The figures of a connection's direction, in the order of their columns: names and kinds.
#[pyfunction]
pub fn trace_figures() -> Vec<(&'static str, &'static str)> {
    let kind = |kind| match kind {
        Kind::Whole => "whole",
        Kind::Real => "real",
        Kind::Truth => "flag",
        Kind::Text => "text",
    };
    figures().map(|(name, of)| (name, kind(of))).collect()
}

/// The forms of the columns of a radio log, as `--radio-columns` takes them.
const COLUMN_FORMS: &str = "write begin=COLUMN,name=COLUMN, and where needed end=COLUMN, direction=COLUMN, \
                            silent=STATE|STATE, wanted=STATE|STATE, delays=STATE|STATE, unit=SECONDS, \
                            offset=SECONDS";

/// A radio log from the text of a CSV file; `map` has its columns by the names of [`Columns`].
/// An empty map is that of airpath's own logs.
fn read_log(text: &str, map: &BTreeMap<String, String>) -> PyResult<RadioLog> {
    let wrong = |what: String| failure(&format!("radio columns: {what}"), Some(COLUMN_FORMS));
    let mut columns = match (map.get("begin"), map.get("name")) {
        (Some(begin), Some(name)) => Columns::states(begin, name),
        _ if map.is_empty() => Columns::intervals(),
        _ => return Err(wrong("`begin` and `name` are needed".into())),
    };
    for (key, value) in map {
        if value.is_empty() {
            return Err(wrong(format!("'{key}' has no value")));
        }
        let number = || value.parse().map_err(|_| wrong(format!("{key}={value}: `{value}` is no number")));
        let names = || value.split('|').map(str::to_owned).collect();
        match key.as_str() {
            "begin" | "name" => {}
            "end" => columns.end = Some(value.clone()),
            "direction" => columns.direction = Some(value.clone()),
            "silent" => columns.silent = names(),
            "wanted" => columns.wanted = names(),
            "delays" => columns.delays = names(),
            "unit" => columns.unit = number()?,
            "offset" => columns.offset = number()?,
            other => return Err(wrong(format!("no such entry '{other}'"))),
        }
    }
    RadioLog::read(text, &columns).map_err(|error| failure(&error.to_string(), error.next_step()))
}

fn failure(message: &str, next_step: Option<&str>) -> PyErr {
    Python::attach(|py| with_next_step(py, TraceError::new_err::<String>, message, next_step.map(str::to_owned)))
}

/// How captures were read.
fn describe(reading: &Reading, shortcomings: Shortcomings, interrupted: bool, ends: Option<&JoinedCaptures>) -> Value {
    let files = reading.files.iter().map(|file| {
        json!({
            "name": file.name,
            "frames": file.frames,
            "link_type": file.link_type.map(|link_type| link_type.0),
            "first": file.times.map(|(first, _)| first.as_nanos()),
            "last": file.times.map(|(_, last)| last.as_nanos()),
            "ahead": step(&file.ahead),
            "back": step(&file.back),
            "dropped": file.dropped,
            "ending": file.ending,
        })
    });
    let skipped = reading.skipped.iter().map(|(cause, count)| (cause.name().to_owned(), count.into()));
    json!({
        "files": files.collect::<Vec<_>>(),
        "interrupted": interrupted,
        "clock": ends.map(|ends| json!({
            "offset_s": ends.clock.offset as f64 / 1e9,
            "skew": ends.clock.skew,
            "uncertainty_s": ends.fit.map(|fit| fit.uncertainty.as_secs_f64()),
        })),
        "segments": reading.segments,
        "datagrams": reading.datagrams,
        "skipped": Value::Object(skipped.collect()),
        "shortcomings": {
            "options_cut": shortcomings.options_cut,
            "super_segments": shortcomings.super_segments,
            "unseen_bytes": shortcomings.unseen_bytes,
        },
    })
}

/// A step in the times of a file; `None` if there is none.
fn step(step: &Step) -> Option<Value> {
    (step.length != Span::ZERO).then(|| json!({ "s": step.length.as_secs_f64(), "frame": step.frame }))
}

/// The columns of a table: name, kind, values, and a mask if values are missing.
fn columns<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyList>> {
    let columns = PyList::empty(py);
    for Column { name, values } in table.columns() {
        let (kind, values, mask): (_, Bound<'_, PyAny>, _) = match values {
            Values::Whole(values) => ("whole", array(py, values, |value| value.to_ne_bytes())?, present(py, values)),
            Values::Real(values) => ("real", array(py, values, |value| value.to_ne_bytes())?, present(py, values)),
            Values::Flag(values) => ("flag", array(py, values, |value| [u8::from(value)])?, present(py, values)),
            Values::Text(values) => ("text", PyList::new(py, values)?.into_any(), None),
        };
        columns.append((*name, kind, values, mask))?;
    }
    Ok(columns)
}

/// The bytes of the values; missing values are zeros.
fn array<'py, T: Copy + Default, const N: usize>(
    py: Python<'py>,
    values: &[Option<T>],
    bytes: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyAny>> {
    let array = PyBytes::new_with(py, values.len() * N, |room| {
        for (room, value) in room.chunks_exact_mut(N).zip(values) {
            room.copy_from_slice(&bytes(value.unwrap_or_default()));
        }
        Ok(())
    })?;
    Ok(array.into_any())
}

/// A byte per value, 1 if it is present; `None` if all are.
fn present<'py, T>(py: Python<'py>, values: &[Option<T>]) -> Option<Bound<'py, PyBytes>> {
    values.iter().any(Option::is_none).then(|| {
        let mask: Vec<u8> = values.iter().map(|value| u8::from(value.is_some())).collect();
        PyBytes::new(py, &mask)
    })
}
