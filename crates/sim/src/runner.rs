//! Runs all repetitions of a scenario on several cores and writes the result folder meanwhile.
//!
//! A result folder holds `scenario.toml` (resolved), `summary.json`, and `events/` and `captures/`
//! if requested. A run that is killed leaves a summary of the finished repetitions, marked as not
//! complete, and the events and captures up to then.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use airpath_capture::headers::HeaderRecorder;
use airpath_core::{Seed, Sink};
use airpath_eventlog::Spare;
use airpath_result::summary::Ended;
use airpath_result::{Folder, FolderError, INPUTS, Rows, Summary};
use airpath_scenario::{Scenario, ScenarioError};

use crate::capture::Captures;
use crate::rows;
use crate::simulation::Setup;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of the first repetition; repetitions can be run in several parts.
    pub first: u64,
    /// Number of repetitions, each with its own random streams.
    pub repeat: u64,
    /// The result folder; none to return the summary only.
    pub out: Option<PathBuf>,
    /// Whether to capture packets at both ends.
    pub capture: bool,
    /// Whether to write the event log.
    pub log: bool,
    /// Number of repetitions that run at the same time.
    pub threads: usize,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The result could not be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// Runs `scenario`. `stop` ends the run early, with the results up to then. `progress` is called
/// with the number of finished repetitions, from any thread.
///
/// # Errors
/// If the scenario cannot be run, or the result not be written.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Summary, RunError> {
    let components = Setup::names_for(scenario)?;
    let folder = options.out.as_deref().map(|out| begin_folder(scenario, out)).transpose()?;
    let shared = Shared { scenario, options, stop, components: &components, folder: folder.as_ref() };
    shared.save_so_far(&[])?;
    let (next, over) = (AtomicU64::new(0), AtomicU64::new(0));
    let results: Mutex<Vec<(u64, Rows)>> = Mutex::default();
    let failure: Mutex<Option<RunError>> = Mutex::default();
    let abandon = AtomicBool::new(false);
    let work = || {
        let mut spare = None;
        while !stop.load(Ordering::Relaxed) && !abandon.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= options.repeat {
                return;
            }
            let number = options.first + index;
            let (rows, outcome) = shared.repetition(number, &mut spare);
            let saved = {
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.extend(rows.map(|rows| (number, rows)));
                match outcome {
                    // At powers of two, so that the total written grows linearly with the
                    // repetitions; under the lock, so that no thread overwrites a newer summary.
                    Ok(()) if results.len().is_power_of_two() => shared.save_so_far(&results),
                    outcome => outcome,
                }
            };
            if let Err(error) = saved {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                abandon.store(true, Ordering::Relaxed);
            }
            progress(over.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let threads = (options.threads as u64).clamp(1, options.repeat.max(1));
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut summary = shared.summary(results.into_inner().unwrap_or_else(PoisonError::into_inner));
    let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = &failure {
        summary.unfinished(&error.to_string());
    } else if (summary.repetitions.len() as u64) < options.repeat
        || summary.repetitions.iter().any(|repetition| repetition.ended == Ended::Interrupted)
    {
        summary.unfinished("interrupted");
    }
    let saved = shared.folder.map_or(Ok(()), |folder| folder.save(&summary));
    match failure {
        Some(error) => Err(error),
        None => Ok(saved.map(|()| summary)?),
    }
}

/// Begins a result of `scenario` in the folder `out`.
pub(crate) fn begin_folder(scenario: &Scenario, out: &Path) -> Result<Folder, FolderError> {
    let kept = scenario.archive(out, INPUTS);
    Folder::create(out, &kept.toml, &kept.files)
}

/// What all repetitions share.
struct Shared<'a> {
    scenario: &'a Scenario,
    options: &'a Options,
    stop: &'a AtomicBool,
    components: &'a [String],
    folder: Option<&'a Folder>,
}

impl Shared<'_> {
    /// Runs one repetition. Returns its rows if it began, and the outcome of writing. `spare` holds
    /// buffers that the next repetition on the same thread reuses.
    fn repetition(&self, number: u64, spare: &mut Option<Spare>) -> (Option<Rows>, Result<(), RunError>) {
        let setup = match Setup::new(self.scenario, Seed { seed: self.scenario.seed, repetition: number }) {
            Ok(setup) => setup,
            Err(error) => return (None, Err(error.into())),
        };
        let mobiles = self.scenario.user_names();
        let opened = (|| {
            let Some(folder) = self.folder else { return Ok((None, None, None)) };
            let log = match self.options.log {
                true => Some(match spare.take() {
                    Some(spare) => spare.log(number as u32),
                    None => folder.event_log(number, self.components, self.scenario.log.classes())?,
                }),
                false => None,
            };
            let captures = match self.options.capture {
                true => Some(
                    Captures::create(&folder.captures(), number).map_err(|source| folder.error("captures", source))?,
                ),
                false => None,
            };
            let headers = match self.options.log && (self.scenario.proxy.is_some() || setup.inspects_headers()) {
                true => Some(
                    HeaderRecorder::create(&folder.headers(), number)
                        .map_err(|source| folder.error("headers", source))?,
                ),
                false => None,
            };
            Ok((log, captures, headers))
        })();
        let (mut log, captures, headers) = match opened {
            Ok(opened) => opened,
            Err(error) => return (None, Err(FolderError::into(error))),
        };
        let sink = log.as_mut().map(|log| log as &mut dyn Sink);
        let mut simulation = setup.start(sink, captures);
        simulation.record_headers(headers);
        let ended = simulation.run(self.stop);
        let rows = rows::of(&simulation, number, ended, &mobiles);
        let captured = simulation.finish_captures();
        drop(simulation);
        let logged = log.map_or(Ok(()), |log| log.complete().map(|(_, left)| *spare = Some(left)));
        let written = captured.and(logged).map_err(|source| {
            let folder = self.folder.expect("without a folder nothing is written that could fail");
            folder.error("", source).into()
        });
        (Some(rows), written)
    }

    /// Writes the summary that remains if the run is killed from here on; not after the last
    /// repetition.
    fn save_so_far(&self, results: &[(u64, Rows)]) -> Result<(), RunError> {
        let Some(folder) = self.folder.filter(|_| (results.len() as u64) < self.options.repeat) else {
            return Ok(());
        };
        let mut summary = self.summary(results.to_vec());
        summary.unfinished("ended from outside before all repetitions were done");
        Ok(folder.save(&summary)?)
    }

    fn summary(&self, mut results: Vec<(u64, Rows)>) -> Summary {
        results.sort_by_key(|(number, _)| *number);
        let mut summary = Summary::new(&self.scenario.name, self.scenario.seed, self.components);
        results.into_iter().for_each(|(_, rows)| summary.add(rows));
        summary
    }
}
