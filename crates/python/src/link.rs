//! `airpath._native.link`.

use std::path::PathBuf;

use airpath_core::Span;
use airpath_emu::session::Waiting;
use airpath_emu::supervisor::{Exit, Program};
use airpath_emu::testbed::Device;
use airpath_emu::{LinkError as CoreLinkError, Options};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;

use crate::{LinkError, ResultError, read, scenario_error};

/// Runs a command on an emulated link and returns its outcome as JSON.
#[pyfunction]
#[pyo3(signature = (text, name, sets, seed, command, *, serve, out, log, capture, record, precise, budget, device, offload,
                    mtu, parameters, hosts, host_ports, host_relay, mptcp, status, watched))]
#[expect(clippy::too_many_arguments, reason = "Python's side gives them names and defaults")]
pub fn link(
    py: Python<'_>,
    text: &str,
    name: &str,
    sets: Vec<(String, String)>,
    seed: Option<u64>,
    command: Vec<std::ffi::OsString>,
    serve: Option<&str>,
    out: Option<PathBuf>,
    log: bool,
    capture: bool,
    record: Option<PathBuf>,
    precise: Option<bool>,
    budget: Option<&str>,
    device: Option<&str>,
    offload: bool,
    mtu: u32,
    parameters: Vec<(String, String)>,
    hosts: Vec<String>,
    host_ports: Vec<u16>,
    host_relay: i32,
    mptcp: bool,
    status: bool,
    watched: bool,
) -> PyResult<String> {
    let mut scenario = read(py, text, name, &sets)?;
    scenario.seed = seed.unwrap_or(scenario.seed);
    let options = Options {
        command: Program::new(&command)?,
        server: serve.map(Program::of_shell).transpose()?,
        out,
        log,
        capture,
        record,
        waiting: match precise {
            None => Waiting::of_host(),
            Some(true) => Waiting::Precise,
            Some(false) => Waiting::Sleeping,
        },
        budget: budget
            .map(|budget| budget.parse::<Span>())
            .transpose()
            .map_err(|error| LinkError::new_err(format!("--budget: {error}")))?,
        device: match device {
            None => None,
            Some("tun") => Some(Device::Tun),
            Some("veth") => Some(Device::Ethernet),
            Some(other) => return Err(PyValueError::new_err(format!("there is no device `{other}`"))),
        },
        offload,
        mtu,
        parameters,
        hosts,
        host_ports,
        host_relay,
        mptcp,
        status,
        watched,
    };
    let outcome = py.detach(|| airpath_emu::run(&scenario, &options)).map_err(|error| python_error(py, error))?;
    let (how, number) = match outcome.exit {
        Exit::Code(code) => ("code", code),
        Exit::Signal(signal) => ("signal", signal),
        Exit::NotExecuted(error) => ("not-executed", error),
    };
    let answer = json!({
        "exit": how,
        "number": number,
        "lateness": outcome.lateness,
        "transmission_period_s": outcome.transmission_period.map(Span::as_secs_f64),
        "overruns": outcome.overruns,
        "summary": outcome.summary,
    });
    Ok(answer.to_string())
}

/// An error of a link or a live proxy.
pub fn python_error(py: Python<'_>, error: CoreLinkError) -> PyErr {
    match error {
        CoreLinkError::Scenario(error) => scenario_error(py, &error),
        CoreLinkError::Folder(error) => ResultError::new_err(error.to_string()),
        other => LinkError::new_err(other.to_string()),
    }
}

/// The checks of this host, as JSON.
#[pyfunction]
pub fn doctor() -> String {
    json!(airpath_emu::doctor::examine()).to_string()
}
