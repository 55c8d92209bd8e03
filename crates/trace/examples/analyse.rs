//! The analysis of `airpath trace` in two threads or in one. Counts the lines of the connections.
//!
//! ```text
//! cargo run --release -p airpath-trace --example analyse -- [--causes] [--threads=1|2] FILE…
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use airpath_trace::analysis::{Options, Source, analyse};

/// The allocator of the Python module.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (flags, files): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    if let Some(unknown) =
        flags.iter().find(|flag| !["--causes", "--threads=1", "--threads=2"].contains(&flag.as_str()))
    {
        eprintln!("{unknown} is none of --causes, --threads=1 and --threads=2");
        return ExitCode::FAILURE;
    }
    let options = Options {
        one_thread: flags.iter().any(|flag| flag == "--threads=1"),
        source: Source::Captures(files.into_iter().map(PathBuf::from).collect()),
        causes: flags.iter().any(|flag| flag == "--causes"),
        stream: true,
        ..Options::default()
    };
    let (mut connections, mut bytes) = (0_u64, 0);
    let report = analyse(&options, &AtomicBool::new(false), &mut |line| {
        (connections, bytes) = (connections + 1, bytes + line.len());
        true
    });
    match report {
        Ok(report) => {
            println!("segments={} connections={connections} bytes={bytes}", report.reading.segments);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
