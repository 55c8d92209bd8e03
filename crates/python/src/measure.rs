//! Measurements and their responder.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use airpath_measure::{Hooks, Request, Responder};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::{MeasureError, ResultError, interruptible, with_next_step};

/// Measures, and returns the summary as JSON. `ready` gets a note when another program can start.
#[pyfunction]
pub fn measure(
    py: Python<'_>,
    request: &str,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    ready: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = Request::from_json(request).map_err(|error| failure(py, &error))?;
    let (over, all) = (AtomicU64::new(0), AtomicU64::new(0));
    let summary = interruptible(
        py,
        |stop| {
            let progress = |done, of| {
                all.store(of, Ordering::Relaxed);
                over.store(done, Ordering::Relaxed);
            };
            // A note that cannot be written does not end the measurement.
            let ready = |note: &str| drop(ready.as_ref().map(|ready| Python::attach(|py| ready.call1(py, (note,)))));
            airpath_measure::measure(&request, out, &Hooks { stop, progress: &progress, ready: &ready })
        },
        progress.as_ref(),
        || (over.load(Ordering::Relaxed), all.load(Ordering::Relaxed)),
    )?;
    summary.map(|summary| summary.to_json()).map_err(|error| failure(py, &error))
}

/// The `scenario.toml` of the result of a measurement.
#[pyfunction]
pub fn measurement(py: Python<'_>, request: &str) -> PyResult<String> {
    let request = Request::from_json(request).map_err(|error| failure(py, &error))?;
    Ok(request.to_toml())
}

/// Runs a responder until a signal ends it; `started` gets the addresses on which it listens.
#[pyfunction]
pub fn serve(py: Python<'_>, listen: Option<&str>, started: &Bound<'_, PyAny>) -> PyResult<()> {
    let responder = Responder::bind(listen).map_err(|error| failure(py, &error))?;
    let addresses: Vec<String> = responder.addresses().iter().map(ToString::to_string).collect();
    started.call1((addresses,))?;
    interruptible(py, |stop| responder.run(stop), None, || (0, 0))
}

fn failure(py: Python<'_>, error: &airpath_measure::MeasureError) -> PyErr {
    match error {
        airpath_measure::MeasureError::InvalidRequest(_) => PyValueError::new_err(error.to_string()),
        airpath_measure::MeasureError::Folder(_) => ResultError::new_err(error.to_string()),
        _ => with_next_step(py, MeasureError::new_err::<String>, &error.to_string(), error.next_step()),
    }
}
