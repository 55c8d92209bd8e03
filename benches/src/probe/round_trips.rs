//! Round trips of small datagrams, each way apart.

use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use crate::socket::{Arrival, now, open, receive, sleep_until};

/// Length of a datagram's payload; with the headers of UDP and IPv4 it is 28 bytes more.
const BYTES: usize = 172;

/// So many times stand in a datagram, 8 bytes each: sent, and come to the other end by kernel and
/// program.
const TIMES: usize = 3;

/// The first ones are left out: the kernel learns of routes and neighbours, and begins to stamp
/// arrivals.
const WARM_UP: u64 = 20;

/// Between two datagrams, in nanoseconds, beside up to as much as [`PHASE`].
const PAUSE: u64 = 5_000_000;
const PHASE: u64 = 1_000_000;

/// An end after the last datagram, and the longest silence before it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers for ever.
pub fn answer(port: u16) -> io::Result<()> {
    let socket = open(port)?;
    let mut buffer = [0; BYTES];
    loop {
        let Some(Arrival { length, from, kernel, read }) = receive(&socket, &mut buffer)? else { continue };
        buffer[8..16].copy_from_slice(&kernel.to_le_bytes());
        buffer[16..24].copy_from_slice(&read.to_le_bytes());
        // An asker that is gone needs no answer.
        let _ = socket.send_to(&buffer[..length], from);
    }
}

/// Sends `count` datagrams and prints for each that comes back: sent, at the answerer by its kernel
/// and by its program, answer by our kernel and by our program.
pub fn ask(to: (&str, u16), count: u64) -> io::Result<()> {
    let socket = open(0)?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let sender = socket.try_clone()?;
    let sending = thread::spawn(move || send(&sender, WARM_UP + count));
    let mut buffer = [0; BYTES];
    let mut lines = String::new();
    for number in 0..WARM_UP + count {
        let Some(Arrival { kernel, read, .. }) = receive(&socket, &mut buffer)? else { break };
        if number >= WARM_UP {
            let times: [u64; TIMES] = std::array::from_fn(|place| {
                let bytes = &buffer[8 * place..8 * place + 8];
                u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
            });
            let [sent, at_kernel, at_program] = times;
            lines.push_str(&format!("{sent} {at_kernel} {at_program} {kernel} {read}\n"));
        }
    }
    sending.join().expect("sending does not panic")?;
    print!("{lines}");
    Ok(())
}

fn send(socket: &UdpSocket, count: u64) -> io::Result<()> {
    let mut datagram = [0; BYTES];
    // A multiplicative generator (Park and Miller): any will do that meets all phases of a timer.
    let mut phase = 1_u64;
    for _ in 0..count {
        datagram[..8].copy_from_slice(&now().to_le_bytes());
        socket.send(&datagram)?;
        phase = phase * 48_271 % 0x7fff_ffff;
        sleep_until(now() + PAUSE + phase % PHASE);
    }
    Ok(())
}
