//! The end points of `benches/emulators.py`: small, so that their own cost does not affect the
//! figures.
//!
//! ```text
//! airpath-probe answer PORT                           answers datagrams with their arrival times
//! airpath-probe ping HOST PORT COUNT                  sends datagrams, prints round-trip times
//! airpath-probe blast PORT MBIT_PER_S BYTES SECONDS   sends at a rate to each client
//! airpath-probe count HOST PORT SECONDS               receives that, prints arrival times
//! airpath-probe wake PER_SECOND SECONDS               sleeps repeatedly, prints the cost
//! ```
//! All times are nanoseconds of the host's clock, which both ends share. There are two for each
//! arrival: when the kernel had the datagram (`SO_TIMESTAMPNS`), and when the program read it,
//! after the scheduler woke it up.

mod rate;
mod round_trips;
mod socket;
mod wake;

use std::process::ExitCode;

const USAGE: &str = "airpath-probe answer PORT | ping HOST PORT COUNT | blast PORT MBIT_PER_S BYTES SECONDS \
                     | count HOST PORT SECONDS | wake PER_SECOND SECONDS";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("airpath-probe: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["answer", port] => round_trips::answer(port.parse()?)?,
        ["ping", host, port, count] => round_trips::ping((host, port.parse()?), count.parse()?)?,
        ["blast", port, rate, bytes, seconds] => {
            rate::blast(port.parse()?, rate.parse()?, bytes.parse()?, seconds.parse()?)?;
        }
        ["count", host, port, seconds] => rate::count((host, port.parse()?), seconds.parse()?)?,
        ["wake", per_second, seconds] => wake::wake(per_second.parse()?, seconds.parse()?)?,
        _ => return Err(USAGE.into()),
    }
    Ok(())
}
