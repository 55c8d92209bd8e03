//! Runs scenarios in sequence in one process and prints the cost of each, one line per scenario:
//!
//! ```text
//! cargo run --release -p airpath-benches -- [--repeat N] [--log DIR] [--set K=V]… SCENARIO.toml…
//! ```
//!
//! `setup_s` and `cpu_s` are processor time (user and system) of building the objects and of
//! running them, without reading the scenario and starting the process. `wall_s` is the time of the
//! run until the log, if any, is written. `peak_kb` is the peak memory of the process so far.
//! `benches/compare.py` compares these lines with those of other simulators.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use airpath_core::{Direction, Seed, Sink};
use airpath_eventlog::{EventLog, Spare};
use airpath_scenario::Scenario;
use airpath_sim::Setup;
use rustix::time::{ClockId, clock_gettime};

#[derive(Default)]
struct Arguments {
    repeat: u64,
    log: Option<PathBuf>,
    sets: Vec<(String, String)>,
    scenarios: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let result = arguments().and_then(|arguments| {
        arguments.scenarios.iter().try_for_each(|path| measure(path, &arguments).map(|line| println!("{line}")))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let mut arguments = Arguments { repeat: 1, ..Arguments::default() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--repeat" => arguments.repeat = value()?.parse().map_err(|error| format!("--repeat: {error}"))?,
            "--log" => arguments.log = Some(value()?.into()),
            "--set" => {
                let set = value()?;
                let (key, value) = set.split_once('=').ok_or_else(|| format!("--set {set}: expected KEY=VALUE"))?;
                arguments.sets.push((key.to_owned(), value.to_owned()));
            }
            path => arguments.scenarios.push(path.into()),
        }
    }
    Ok(arguments)
}

/// Runs all repetitions of one scenario on this thread.
fn measure(path: &Path, arguments: &Arguments) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let scenario =
        Scenario::read(&text, &path.to_string_lossy(), folder, &arguments.sets).map_err(|e| e.to_string())?;
    let stop = AtomicBool::new(false);
    let (mut setup, mut run, mut wall) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let (mut simulated, mut packets, mut events, mut data, mut users) = (0.0, 0, 0, 0, 0);
    let mut spare = None;
    for repetition in 0..arguments.repeat {
        let began = cpu();
        let objects = Setup::new(&scenario, Seed { seed: scenario.seed, repetition }).map_err(|e| e.to_string())?;
        let mut log = match &arguments.log {
            Some(folder) => {
                let (number, names) = (repetition as u32, objects.names().to_vec());
                let log = match spare.take() {
                    Some(spare) => Ok(Spare::log(spare, number)),
                    None => EventLog::create(folder, number, names, scenario.log.classes()),
                };
                Some(log.map_err(|error| error.to_string())?)
            }
            None => None,
        };
        let mut simulation = objects.start(log.as_mut().map(|log| log as &mut dyn Sink), None);
        let (ready, started) = (cpu(), clock(ClockId::Monotonic));
        simulation.run(&stop);
        setup += ready - began;
        simulated += simulation.now().as_secs_f64();
        packets += simulation.packets();
        events += simulation.events();
        users = simulation.route().users();
        data += simulation.hops().next().map_or(0, |(_, fixed)| fixed.counters(Direction::Down).offered.packets);
        drop(simulation);
        if let Some(log) = log {
            spare = Some(log.complete().map_err(|error| error.to_string())?.1);
        }
        run += cpu() - ready;
        wall += clock(ClockId::Monotonic) - started;
    }
    let seconds = run.as_secs_f64();
    Ok(format!(
        "sim=airpath case={} users={users} repeat={} sim_s={simulated:.3} setup_s={:.6} cpu_s={seconds:.6} wall_s={:.6} \
         packets={packets} data_pkts={data} events={events} pkts_per_s={:.0} rtf={:.0} peak_kb={}",
        scenario.name,
        arguments.repeat,
        setup.as_secs_f64(),
        wall.as_secs_f64(),
        data as f64 / seconds,
        simulated / seconds,
        peak_kb(),
    ))
}

/// Processor time of this process, all threads.
fn cpu() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

fn clock(which: ClockId) -> Duration {
    let time = clock_gettime(which);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}
