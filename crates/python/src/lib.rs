//! Python bindings of airpath, the module `airpath._native`. They have no logic: types and
//! documentation for users are in `python/airpath`.

mod link;
mod measure;
mod proxy;
mod replay;
mod trace;

/// Runs with thousands of flows are a tenth faster with it than with that of glibc: it stores
/// values of a size side by side, in large pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use airpath_core::state::{self, Effect};
use airpath_radio::lte::tables as lte;
use airpath_radio::nr::tables as nr;
use airpath_scenario::preset::COMMON_NAMES;
use airpath_scenario::{Preset, ReadPage, Scenario, ScenarioError as CoreScenarioError};
use airpath_sim::{Options, RunError};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{create_exception, intern};
use serde_json::json;

create_exception!(_native, ScenarioError, PyException, "A scenario, preset or setting is wrong.");
create_exception!(_native, LinkError, PyException, "A link could not be made or kept.");
create_exception!(_native, MeasureError, PyException, "A measurement could not be made.");
create_exception!(_native, TraceError, PyException, "A capture could not be analysed.");
create_exception!(_native, ResultError, PyOSError, "A result could not be written.");

/// Interval between checks for Python's signals during a run.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ScenarioError", py.get_type::<ScenarioError>())?;
    module.add("ResultError", py.get_type::<ResultError>())?;
    module.add("LinkError", py.get_type::<LinkError>())?;
    module.add("MeasureError", py.get_type::<MeasureError>())?;
    module.add("TraceError", py.get_type::<TraceError>())?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(run_rows, module)?)?;
    module.add_function(wrap_pyfunction!(link::link, module)?)?;
    module.add_function(wrap_pyfunction!(link::doctor, module)?)?;
    module.add_function(wrap_pyfunction!(proxy::proxy_run, module)?)?;
    module.add_function(wrap_pyfunction!(proxy::proxy_check, module)?)?;
    module.add_function(wrap_pyfunction!(proxy::proxy_configuration, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(resolve, module)?)?;
    module.add_function(wrap_pyfunction!(files, module)?)?;
    module.add_function(wrap_pyfunction!(measure::measure, module)?)?;
    module.add_function(wrap_pyfunction!(measure::measurement, module)?)?;
    module.add_function(wrap_pyfunction!(measure::serve, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_causes, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_figures, module)?)?;
    module.add_function(wrap_pyfunction!(states_with_effect, module)?)?;
    module.add_function(wrap_pyfunction!(resource_blocks, module)?)?;
    module.add_function(wrap_pyfunction!(event_columns, module)?)?;
    module.add_function(wrap_pyfunction!(common_names, module)?)?;
    module.add_function(wrap_pyfunction!(presets, module)?)?;
    module.add_function(wrap_pyfunction!(preset, module)?)?;
    module.add_function(wrap_pyfunction!(pages, module)?)?;
    module.add_function(wrap_pyfunction!(page, module)?)
}

/// Returns the states of radio connections that carry nothing, or delay data: aspects and names.
#[pyfunction]
fn states_with_effect() -> Vec<(&'static str, &'static str)> {
    let with_effect = state::all().filter(|(_, _, effect)| *effect != Effect::Carries);
    with_effect.map(|(aspect, name, _)| (aspect.name(), name)).collect()
}

/// Returns the resource blocks of a carrier: of LTE by its bandwidth, of NR by its subcarrier
/// spacing as well.
#[pyfunction]
fn resource_blocks(bandwidth: &str, spacing: Option<&str>) -> Option<u32> {
    let bandwidth = bandwidth.parse().ok()?;
    let Some(spacing) = spacing else { return lte::channel(bandwidth).map(|channel| channel.resource_blocks) };
    let spacing = spacing.parse().ok()?;
    [nr::Range::Fr1, nr::Range::Fr2].into_iter().find_map(|range| nr::resource_blocks(range, bandwidth, spacing))
}

/// Runs a scenario and returns its summary as JSON, and the outcomes in it alone.
#[pyfunction]
#[pyo3(signature = (text, name, sets, seed, first, repeat, out, capture, log, threads, progress))]
#[expect(clippy::too_many_arguments, reason = "Python's side gives them names and defaults")]
fn run(
    py: Python<'_>,
    text: &str,
    name: &str,
    sets: Vec<(String, String)>,
    seed: Option<u64>,
    first: u64,
    repeat: u64,
    out: Option<PathBuf>,
    capture: bool,
    log: bool,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Py<PyBytes>, String)> {
    let mut scenario = read(py, text, name, &sets)?;
    scenario.seed = seed.unwrap_or(scenario.seed);
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let options = Options { first, repeat, out, capture, log, threads: threads.unwrap_or_else(cores) };
    let over = AtomicU64::new(0);
    let summary = interruptible(
        py,
        |stop| airpath_sim::run(&scenario, &options, stop, &|count| over.store(count, Ordering::Relaxed)),
        progress.as_ref(),
        || (over.load(Ordering::Relaxed), repeat),
    )?;
    let summary = summary.map_err(|error| run_error(py, &error))?;
    let (json, outcomes) = py.detach(|| (summary.to_json(), summary.outcomes_to_json()));
    Ok((PyBytes::new(py, json.as_bytes()).unbind(), outcomes))
}

/// Runs repetitions of a scenario on this thread. Returns the rows of their flows without TCP
/// settings, of their views of pages and of the objects of these, as JSON lines; and the end of
/// each repetition in seconds. With `check`, signals and the exceptions of this function, which is
/// called all the time, end the run.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python's side gives them names")]
fn run_rows(
    py: Python<'_>,
    text: &str,
    name: &str,
    sets: Vec<(String, String)>,
    seed: Option<u64>,
    first: u64,
    repeat: u64,
    check: Option<Py<PyAny>>,
) -> PyResult<([String; 3], Vec<f64>)> {
    let mut scenario = read(py, text, name, &sets)?;
    scenario.seed = seed.unwrap_or(scenario.seed);
    let options = Options { first, repeat, out: None, capture: false, log: false, threads: 1 };
    let run = |stop: &AtomicBool| airpath_sim::run(&scenario, &options, stop, &|_| {});
    let calls = AtomicU64::new(0);
    let summary = match &check {
        None => py.detach(|| run(&AtomicBool::new(false))),
        Some(_) => interruptible(py, run, check.as_ref(), || (calls.fetch_add(1, Ordering::Relaxed) + 1, 0))?,
    };
    let summary = summary.map_err(|error| run_error(py, &error))?;
    if !summary.complete {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    let ends = summary.ends_s();
    Ok((summary.lines(), ends))
}

fn run_error(py: Python<'_>, error: &RunError) -> PyErr {
    match error {
        RunError::Scenario(error) => scenario_error(py, error),
        RunError::Folder(_) => ResultError::new_err(error.to_string()),
    }
}

/// Runs `work` in a new thread while Python handles signals. A signal that raises an error, as
/// Ctrl-C, sets the flag that stops the work. `progress` gets `state` when its count has grown.
fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
    progress: Option<&Py<PyAny>>,
    state: impl Fn() -> (u64, u64),
) -> PyResult<T> {
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let waiting = std::thread::current();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = work(&stop);
            done.store(true, Ordering::Release);
            waiting.unpark();
            result
        });
        let mut reported = 0;
        let mut failure = None;
        while !done.load(Ordering::Acquire) && !worker.is_finished() {
            py.detach(|| std::thread::park_timeout(SIGNAL_CHECK));
            let (count, all) = state();
            if let Some(progress) = progress.filter(|_| count > reported) {
                reported = count;
                failure = failure.or(progress.call1(py, (count, all)).err());
            }
            if py.check_signals().is_err() || failure.is_some() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        let result = worker.join().expect("the work does not panic");
        failure.map_or(Ok(result), Err)
    })
}

/// The resolved scenario as TOML.
#[pyfunction]
fn resolve(py: Python<'_>, text: &str, name: &str, sets: Vec<(String, String)>) -> PyResult<String> {
    Ok(read(py, text, name, &sets)?.to_toml())
}

/// The files that a scenario names; they must exist during the run.
#[pyfunction]
fn files(py: Python<'_>, text: &str, name: &str, sets: Vec<(String, String)>) -> PyResult<Vec<PathBuf>> {
    Ok(read(py, text, name, &sets)?.files())
}

/// All presets, as JSON.
#[pyfunction]
fn presets() -> String {
    json!(Preset::shipped().iter().map(describe).collect::<Vec<_>>()).to_string()
}

/// Name, unit and description of a column of the event log.
type Column = (&'static str, Option<&'static str>, &'static str);

/// The columns of each table of the event log.
#[pyfunction]
fn event_columns() -> Vec<(&'static str, Vec<Column>)> {
    let plain = |field: &airpath_eventlog::Field| (field.name, field.unit, field.description);
    airpath_eventlog::TABLES.map(|(table, fields)| (table, fields.iter().map(plain).collect())).to_vec()
}

/// Common names of radio technologies, each with the preset that it selects.
#[pyfunction]
fn common_names() -> Vec<(&'static str, &'static str)> {
    COMMON_NAMES.to_vec()
}

/// One preset, by name or path, as JSON.
#[pyfunction]
fn preset(py: Python<'_>, name: &str) -> PyResult<String> {
    let preset = Preset::load(name, Path::new(""), &Default::default()).map_err(|error| scenario_error(py, &error))?;
    Ok(describe(&preset).to_string())
}

/// The names of the web pages that are shipped.
#[pyfunction]
fn pages() -> Vec<String> {
    airpath_scenario::page::names()
}

/// One web page, by name or path, as JSON.
#[pyfunction]
fn page(py: Python<'_>, name: &str) -> PyResult<String> {
    let read = ReadPage::load(name, Path::new(""), &Default::default()).map_err(|error| scenario_error(py, &error))?;
    let mut page = serde_json::to_value(&read.file).expect("a page is text and numbers");
    page["bytes"] = read.page.bytes(false).into();
    page["compressed_bytes"] = read.page.bytes(true).into();
    Ok(page.to_string())
}

fn describe(preset: &Preset) -> serde_json::Value {
    let parameters = preset.parameters.iter();
    let parameters = parameters.map(|p| json!({ "key": p.key, "value": p.value, "source": p.source }));
    json!({
        "name": preset.name,
        "title": preset.title,
        "kind": preset.kind.name(),
        "parameters": parameters.collect::<Vec<_>>(),
        "text": preset.text,
    })
}

fn read(py: Python<'_>, text: &str, name: &str, sets: &[(String, String)]) -> PyResult<Scenario> {
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    Scenario::read(text, name, folder, sets).map_err(|error| scenario_error(py, &error))
}

/// The error of a class that `make` makes from its text, with `message` and `next_step`.
fn with_next_step(
    py: Python<'_>,
    make: impl FnOnce(String) -> PyErr,
    message: &str,
    next_step: Option<String>,
) -> PyErr {
    let error = make(next_step.as_ref().map_or_else(|| message.to_owned(), |step| format!("{message}; {step}")));
    let value = error.value(py);
    let set = || -> PyResult<()> {
        value.setattr(intern!(py, "message"), message)?;
        value.setattr(intern!(py, "next_step"), next_step)
    };
    match set() {
        Ok(()) => error,
        Err(other) => other,
    }
}

fn scenario_error(py: Python<'_>, error: &CoreScenarioError) -> PyErr {
    let python = ScenarioError::new_err(error.to_string());
    let value = python.value(py);
    let set = || -> PyResult<()> {
        value.setattr(intern!(py, "message"), &error.message)?;
        value.setattr(intern!(py, "help"), error.help.as_deref())?;
        value.setattr(intern!(py, "file"), error.file())?;
        value.setattr(intern!(py, "line"), error.line())?;
        value.setattr(intern!(py, "field"), error.field.as_deref())
    };
    match set() {
        Ok(()) => python,
        Err(other) => other,
    }
}
