//! Packets per second of processor time: a download of 256 MiB at 50 Mbit/s, with both ends and the
//! link.
//!
//! `cargo bench -p airpath-quic --bench link`

#[path = "../tests/support/mod.rs"]
mod support;

use airpath_quic::{Config, Controller};
use support::{Run, download};

fn main() {
    for congestion in [Controller::Cubic, Controller::NewReno] {
        let base = Run::default();
        let run = Run { bytes: 256 << 20, config: Config { congestion, ..base.config.clone() }, ..base };
        let before = processor_time();
        let done = download(&run);
        let seconds = (processor_time() - before) as f64 / 1e9;
        let per_second = done.packets as f64 / seconds;
        println!("{}: {} packets in {seconds:.2} s: {per_second:.0} packets/s", congestion.name(), done.packets);
    }
}

/// Nanoseconds of processor time of this thread, by the kernel's scheduler (proc(5)).
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux has this file");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("it begins with a number")
}
