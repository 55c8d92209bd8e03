//! Datagrams at a constant rate, and their arrival times.

use std::io;
use std::time::Duration;

use crate::socket::{Arrival, now, open, receive, sleep_until};

/// Headers of UDP and IPv4, in bytes: sizes and rates here are those of IP packets.
const HEADERS: usize = 28;

/// Time without datagrams that ends a test.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends packets of `bytes` at `rate`, in Mbit/s, for `seconds` to each client, one after the
/// other, forever.
pub fn blast(port: u16, rate: f64, bytes: usize, seconds: f64) -> io::Result<()> {
    let socket = open(port)?;
    let datagram = vec![0; bytes - HEADERS];
    let gap = bytes as f64 * 8e3 / rate;
    let packets = (seconds * 1e9 / gap) as u64;
    loop {
        let Some(Arrival { from, .. }) = receive(&socket, &mut [0; 8])? else { continue };
        let start = now();
        for number in 0..packets {
            // A missed deadline does not move the next: the rate is kept.
            let due = start + (number as f64 * gap) as u64;
            sleep_until(due);
            // A full queue on the path drops packets, which is not an error here.
            let _ = socket.send_to(&datagram, from);
        }
    }
}

/// Requests such packets and prints, for each that arrives within `seconds` of the first, its
/// arrival times at the kernel and at this program.
pub fn count(to: (&str, u16), seconds: f64) -> io::Result<()> {
    let socket = open(0)?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(&[0; 8])?;
    let mut buffer = vec![0; 65_536];
    let mut arrivals: Vec<Arrival> = Vec::new();
    while let Some(arrival) = receive(&socket, &mut buffer)? {
        arrivals.push(arrival);
        if arrival.read - arrivals[0].read > (seconds * 1e9) as u64 {
            break;
        }
    }
    let lines: String = arrivals.iter().map(|arrival| format!("{} {}\n", arrival.kernel, arrival.read)).collect();
    print!("{lines}");
    Ok(())
}
