//! Ping over real sockets: UDP to a responder, or ICMP to any host.

mod icmp;
mod udp;

use std::io;

use airpath_app::ping::Pinger;
use airpath_app::{Phase, Ping};
use airpath_core::{AppStep, Instant};

use crate::clock::now;
use crate::record::Record;

pub use icmp::{Carrier, IcmpEcho};
pub use udp::UdpEcho;

/// A carrier of echo requests and replies.
pub trait Echo {
    /// Sends request `sequence` at time `sent`.
    fn send(&mut self, sequence: u32, sent: Instant) -> io::Result<()>;
    /// The number of the next reply that has arrived.
    fn receive(&mut self) -> io::Result<Option<u32>>;
    /// Waits for a reply until `until`, for a bounded time.
    fn wait(&self, until: Option<Instant>);
}

/// Pings until all replies have arrived or timed out, or `stop` is true.
///
/// # Errors
/// The socket fails. A request that cannot be sent or is refused on the path is lost, not an error.
pub fn ping(ping: &Ping, echo: &mut dyn Echo, record: &mut Record<'_>) -> io::Result<Pinger> {
    let start = now();
    let mut pinger = Pinger::new(*ping, start, Phase::ZERO);
    let mut sent = Vec::with_capacity(ping.count as usize);
    record.note(start, AppStep::Started, 0);
    while !pinger.is_over(now()) && !record.is_stopped() {
        while let Some(sequence) = pinger.poll(now()) {
            let time = now();
            sent.push(time);
            if let Err(error) = echo.send(sequence, time)
                && !is_loss(&error)
            {
                return Err(error);
            }
        }
        loop {
            match echo.receive() {
                Ok(Some(sequence)) => {
                    let time = now();
                    let Some(at) = sent.get(sequence as usize).copied() else { continue };
                    if let Some(delay) = pinger.reply(time, sequence, at) {
                        let answered = pinger.round_trips().count();
                        record.note(time, AppStep::Arrived { sequence, delay }, answered * u64::from(ping.size));
                        record.progress(answered, ping.count.into());
                    }
                }
                Ok(None) => break,
                Err(error) if is_loss(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if !pinger.is_over(now()) {
            echo.wait(pinger.next_wakeup());
        }
    }
    Ok(pinger)
}

/// Whether this error is an effect of the network, not a fault of the socket: a full queue, or an
/// unreachable host or port.
pub fn is_loss(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable, WouldBlock};
    matches!(error.kind(), WouldBlock | ConnectionRefused | HostUnreachable | NetworkUnreachable | NetworkDown)
        || error.raw_os_error() == Some(libc::ENOBUFS)
}
