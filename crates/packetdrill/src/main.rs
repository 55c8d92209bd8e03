//! Runs packetdrill scripts against the TCP of airpath, and lists the results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use airpath_packetdrill::{Outcome, run_file};

const USAGE: &str = "usage: packetdrill [--failures] PATH…
         PATH       a script, or a folder: all files *.pkt below it
         --failures list only scripts that fail or are invalid";

fn main() -> ExitCode {
    let mut failures_only = false;
    let mut paths = Vec::new();
    for word in std::env::args().skip(1) {
        match word.as_str() {
            "--failures" => failures_only = true,
            option if option.starts_with('-') => return refuse(&format!("unknown option {option}")),
            path => paths.push(PathBuf::from(path)),
        }
    }
    let mut scripts = Vec::new();
    for path in &paths {
        if let Err(error) = find(path, &mut scripts) {
            return refuse(&format!("{}: {error}", path.display()));
        }
    }
    if scripts.is_empty() {
        return refuse("no script: give files, or folders with files *.pkt");
    }
    list(&scripts, failures_only)
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("packetdrill: {message}\n{USAGE}");
    ExitCode::from(2)
}

/// Adds `path`, or all scripts below it, in the order of their names.
fn find(path: &Path, scripts: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        std::fs::metadata(path)?;
        scripts.push(path.to_owned());
        return Ok(());
    }
    let mut entries = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            find(&entry, scripts)?;
        } else if entry.extension().is_some_and(|extension| extension == "pkt") {
            scripts.push(entry);
        }
    }
    Ok(())
}

fn list(scripts: &[PathBuf], failures_only: bool) -> ExitCode {
    let mut counts = [0_usize; 4];
    for path in scripts {
        let name = path.display();
        // One script must not end the run of a folder. The panic itself is printed to stderr.
        let outcome = match std::panic::catch_unwind(|| run_file(path)) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => return refuse(&format!("{name}: {error}")),
            Err(_) => {
                counts[1] += 1;
                println!("{:<15}{name}: internal error of this program, see above; please report it", "fail");
                continue;
            }
        };
        let index = match &outcome {
            Outcome::Passed => 0,
            Outcome::Failed(_) => 1,
            Outcome::NotApplicable(_) => 2,
            Outcome::Invalid(_) => 3,
        };
        counts[index] += 1;
        if failures_only && matches!(index, 0 | 2) {
            continue;
        }
        let word = outcome.word();
        match outcome {
            Outcome::Passed => println!("{word:<15}{name}"),
            Outcome::Failed(finding) | Outcome::NotApplicable(finding) => {
                println!("{word:<15}{name}:{}: {}", finding.line, finding.what);
            }
            Outcome::Invalid(error) => println!("{word:<15}{name}:{error}"),
        }
    }
    let [passed, failed, not_applicable, invalid] = counts;
    println!("{passed} pass, {failed} fail, {not_applicable} not applicable, {invalid} invalid");
    if failed + invalid == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
