//! Writes a capture of a given number of packets, for benchmarks of trace analysers:
//!
//! ```text
//! cargo run --release -p airpath-benches --bin airpath-synthetic -- [--flows N] [--packets N] [--open N] [--loss P]
//!     [--snap-length N] [--seed N] FILE.pcap
//! ```
//!
//! Each flow is a download over airpath's own TCP with the settings of Linux 6 (selective
//! acknowledgements, timestamps, delayed acknowledgements, a FIN from either end), over a path of
//! its own of 24 Mbit/s, with a round trip of 20 to 120 ms and random loss of downlink packets; it
//! is captured at the server's end. `--open` flows are open simultaneously, and when one has ended
//! the next begins. The same arguments give the same file on every machine.
//!
//! The defaults make 9.6 million packets of 1,000 flows, captured as by `tcpdump -s 96`; `--flows
//! 100000` makes the same number of short flows, with 2,000 open simultaneously.

mod file;
mod flow;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use airpath_core::{Instant, Probability, Seed, Span};
use airpath_tcp::{Config, Profile};
use file::File;
use flow::Flow;

struct Arguments {
    flows: u32,
    packets: u64,
    open: u32,
    loss: Probability,
    snap_length: u32,
    seed: u64,
    path: PathBuf,
}

fn main() -> ExitCode {
    let result = arguments().and_then(|arguments| {
        let file = std::fs::File::create(&arguments.path).map_err(|e| format!("{}: {e}", arguments.path.display()))?;
        generate(&arguments, io::BufWriter::with_capacity(1 << 20, file)).map_err(|e| e.to_string())
    });
    match result {
        Ok(packets) => {
            println!("packets={packets}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let (mut flows, mut packets, mut open, mut snap_length, mut seed) = (1000, 9_600_000, 2000, 96, 1);
    let mut loss = Probability::new(0.01).expect("a hundredth is a probability");
    let mut path = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let wrong = |error: &dyn std::fmt::Display| format!("{word}: {error}");
        match word.as_str() {
            "--flows" => flows = value()?.parse().map_err(|e| wrong(&e))?,
            "--packets" => packets = value()?.parse().map_err(|e| wrong(&e))?,
            "--open" => open = value()?.parse().map_err(|e| wrong(&e))?,
            "--loss" => loss = value()?.parse().map_err(|e| wrong(&e))?,
            "--snap-length" => snap_length = value()?.parse().map_err(|e| wrong(&e))?,
            "--seed" => seed = value()?.parse().map_err(|e| wrong(&e))?,
            _ => path = Some(word.into()),
        }
    }
    if flows == 0 || open == 0 {
        return Err("at least one flow is needed".into());
    }
    let path = path.ok_or("no output file given")?;
    Ok(Arguments { flows, packets, open, loss, snap_length, seed, path })
}

/// Runs the flows, and returns how many packets were captured.
fn generate(arguments: &Arguments, out: impl Write) -> io::Result<u64> {
    /// Payload of a segment beside timestamps.
    const SEGMENT: u64 = 1448;
    let config: Arc<Config> = Arc::new(Profile::Linux6.config());
    let mut file = File::create(out, arguments.snap_length)?;
    // Some ten packets open and close a flow. Of the others 8 in 15 are data: most acknowledgements
    // cover two segments, but those of a slow start and of a recovery cover one.
    let packets = (arguments.packets / u64::from(arguments.flows)).saturating_sub(10);
    let size = packets * 8 / 15 * SEGMENT + 1;
    let seed = Seed::new(arguments.seed);
    let begin = |number: u32, at: Instant| Flow::begin(number, size, &config, arguments.loss, seed, at);

    // Flows start at different times.
    let spread = Span::from_millis(7);
    let at_once = arguments.open.min(arguments.flows);
    let mut flows: Vec<Flow> =
        (0..at_once).map(|number| begin(number, Instant::ZERO + spread.saturating_mul(number.into()))).collect();
    let mut begun = at_once;
    let mut events: BinaryHeap<Reverse<(Instant, usize)>> =
        flows.iter().enumerate().filter_map(|(slot, flow)| Some(Reverse((flow.next_time()?, slot)))).collect();
    while let Some(Reverse((now, slot))) = events.pop() {
        let flow = &mut flows[slot];
        flow.advance(now, &mut file)?;
        if flow.next_time().is_none() && begun < arguments.flows {
            *flow = begin(begun, now + spread);
            begun += 1;
        }
        events.extend(flow.next_time().map(|time| Reverse((time, slot))));
    }
    file.finish()
}
