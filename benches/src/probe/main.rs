//! The end points of `benches/emulators.py`: small, so that what they cost themselves stays out of
//! the figures.
//!
//! ```text
//! airpath-probe answer PORT                             answers each datagram, with the times at which it came
//! airpath-probe ask HOST PORT COUNT                     sends datagrams and prints the times of each round trip
//! airpath-probe blast PORT MBIT_PER_S BYTES SECONDS     sends at a rate to each who asks for it
//! airpath-probe count HOST PORT SECONDS                 asks for that, and prints when each datagram came
//! airpath-probe wake PER_SECOND SECONDS                 sleeps until a time again and again, and prints what that costs
//! ```
//!
//! All times are nanoseconds of the host's clock, which both ends share. There are two for each
//! arrival: when the kernel had the datagram (`SO_TIMESTAMPNS`), and when the program read it,
//! after the scheduler woke it up.

mod rate;
mod round_trips;
mod socket;
mod wake;

use std::process::ExitCode;

const USAGE: &str = "airpath-probe answer PORT | ask HOST PORT COUNT | blast PORT MBIT_PER_S BYTES SECONDS \
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
        ["ask", host, port, count] => round_trips::ask((host, port.parse()?), count.parse()?)?,
        ["blast", port, rate, bytes, seconds] => {
            rate::blast(port.parse()?, rate.parse()?, bytes.parse()?, seconds.parse()?)?;
        }
        ["count", host, port, seconds] => rate::count((host, port.parse()?), seconds.parse()?)?,
        ["wake", per_second, seconds] => wake::wake(per_second.parse()?, seconds.parse()?)?,
        _ => return Err(USAGE.into()),
    }
    Ok(())
}
