//! Round trips of small datagrams, by direction.

use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use crate::socket::{Arrival, now, open, receive, sleep_until};

/// Length of a datagram's payload; with the headers of UDP and IPv4 it is 28 bytes more.
const BYTES: usize = 172;

/// Number of times in a datagram, 8 bytes each: sent, and arrival at the other end's kernel and
/// program.
const TIMES: usize = 3;

/// Number of first datagrams to ignore: the kernel resolves routes and neighbours, and starts to
/// stamp arrivals.
const WARM_UP: u64 = 20;

/// Pause between two datagrams, in nanoseconds, plus a random time of up to [`PHASE`].
const PAUSE: u64 = 5_000_000;
const PHASE: u64 = 1_000_000;

/// Wait after the last datagram, and the longest time without one before.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers forever.
pub fn answer(port: u16) -> io::Result<()> {
    let socket = open(port)?;
    let mut buffer = [0; BYTES];
    loop {
        let Some(Arrival { length, from, kernel, read }) = receive(&socket, &mut buffer)? else { continue };
        buffer[8..16].copy_from_slice(&kernel.to_le_bytes());
        buffer[16..24].copy_from_slice(&read.to_le_bytes());
        // The client may be gone.
        let _ = socket.send_to(&buffer[..length], from);
    }
}

/// Sends `count` datagrams and prints for each that returns: send time, arrival at the server's
/// kernel and program, and arrival of the answer at this kernel and program.
pub fn ping(to: (&str, u16), count: u64) -> io::Result<()> {
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
    // A multiplicative generator (Park and Miller): any that covers all phases of a timer suffices.
    let mut phase = 1_u64;
    for _ in 0..count {
        datagram[..8].copy_from_slice(&now().to_le_bytes());
        socket.send(&datagram)?;
        phase = phase * 48_271 % 0x7fff_ffff;
        sleep_until(now() + PAUSE + phase % PHASE);
    }
    Ok(())
}
