//! `airpath._native.proxy_run` and `proxy_check`.

use std::path::PathBuf;

use airpath_emu::live::{self, Options};
use pyo3::prelude::*;
use serde_json::json;

use crate::link::python_error;

/// Runs a live proxy until it is ended by a signal, and returns its outcome as JSON.
#[pyfunction]
#[pyo3(signature = (file, *, out, log, capture, take_over))]
pub fn proxy_run(
    py: Python<'_>,
    file: PathBuf,
    out: Option<PathBuf>,
    log: bool,
    capture: bool,
    take_over: bool,
) -> PyResult<String> {
    let options = Options { file, out, log, capture, take_over };
    let ran = py.detach(|| live::read(&options.file).and_then(|config| live::run(config, &options)));
    let outcome = ran.map_err(|error| python_error(py, error))?;
    Ok(json!({ "summary": outcome.summary, "lateness": outcome.lateness }).to_string())
}

/// The configuration of a live proxy with all keys: `scenario.toml` of its result.
#[pyfunction]
pub fn proxy_configuration(py: Python<'_>, file: PathBuf) -> PyResult<String> {
    let config = live::read(&file).map_err(|error| python_error(py, error))?;
    Ok(config.to_toml())
}

/// The checks of this host for a live proxy, as JSON.
#[pyfunction]
pub fn proxy_check(py: Python<'_>, file: PathBuf) -> PyResult<String> {
    let config = live::read(&file).map_err(|error| python_error(py, error))?;
    Ok(json!(airpath_emu::doctor::examine_router(&config)).to_string())
}
