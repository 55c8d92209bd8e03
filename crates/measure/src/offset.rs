//! How the responder's clock differs from ours.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use airpath_core::{Instant, Span};
use nix::poll::PollFlags;
use serde_json::{Value, json};

use crate::clock::{identity, now, wait};
use crate::ping::is_loss;
use crate::probe::{CLOCK_LENGTH, Kind, Probe, parse_times};
use crate::protocol::Ready;

/// Exchanges from which the offset is estimated.
const EXCHANGES: u32 = 8;
/// How long a reply may take. Slow radio needs a second to wake up.
const PATIENCE: Span = Span::from_secs(3);

/// What to add to a time of our clock to get that of the responder's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offset {
    /// Nothing: both ends read the same clock.
    Shared,
    /// As NTP does it (RFC 5905 §8), from the exchange with the shortest round trip of several:
    /// half of what the way there took longer than the way back, by the two clocks. It is right if
    /// both ways take equal time; else it is wrong by half of their difference, which is at most
    /// half of that round trip.
    Estimated {
        /// Nanoseconds to add.
        nanos: i128,
        /// The round trip, without the time that the responder took.
        round_trip: Span,
        /// Replies that came.
        exchanges: u32,
    },
}

impl Offset {
    /// Finds it out, over a socket that is connected to the responder and does not block.
    ///
    /// # Errors
    /// Where no reply comes.
    pub fn find(socket: &UdpSocket, order: u64, ready: &Ready) -> io::Result<Self> {
        match identity() {
            Some(own) if ready.clock.as_ref() == Some(&own) => Ok(Self::Shared),
            _ => Self::estimate(socket, order),
        }
    }

    /// Estimates it from exchanges.
    ///
    /// # Errors
    /// Where no reply comes.
    pub fn estimate(socket: &UdpSocket, order: u64) -> io::Result<Self> {
        let mut best: Option<(Span, i128)> = None;
        let mut exchanges = 0;
        for sequence in 0..EXCHANGES {
            let Some([asked, received, answered, back]) = exchange(socket, order, sequence)? else { continue };
            let round_trip = Span::from_nanos((back - asked).saturating_sub(answered.saturating_sub(received)));
            let (there, here) = (i128::from(received) - i128::from(asked), i128::from(answered) - i128::from(back));
            exchanges += 1;
            if best.is_none_or(|(least, _)| round_trip < least) {
                best = Some((round_trip, (there + here) / 2));
            }
        }
        let (round_trip, nanos) = best.ok_or_else(|| {
            io::Error::new(io::ErrorKind::TimedOut, "no datagram comes back from there; UDP may be blocked on the way")
        })?;
        Ok(Self::Estimated { nanos, round_trip, exchanges })
    }

    /// A time of the responder's clock by ours.
    pub fn to_ours(self, theirs: u64) -> Instant {
        match self {
            Self::Shared => Instant::from_nanos(theirs),
            Self::Estimated { nanos, .. } => {
                let ours = (i128::from(theirs) - nanos).clamp(0, i128::from(u64::MAX));
                Instant::from_nanos(u64::try_from(ours).expect("it was brought within range"))
            }
        }
    }

    /// In the words of the summary.
    pub fn to_json(self) -> Value {
        match self {
            Self::Shared => json!({ "clock": "shared", "offset_s": 0.0, "uncertainty_s": 0.0 }),
            Self::Estimated { nanos, round_trip, exchanges } => json!({
                "clock": "estimated",
                "offset_s": nanos as f64 / 1e9,
                "uncertainty_s": round_trip.as_secs_f64() / 2.0,
                "exchanges": exchanges,
            }),
        }
    }
}

/// One exchange: when it was asked by our clock, received and answered by theirs, and back by ours.
fn exchange(socket: &UdpSocket, order: u64, sequence: u32) -> io::Result<Option<[u64; 4]>> {
    let mut datagram = [0; CLOCK_LENGTH];
    let asked = now();
    Probe { kind: Kind::Clock, order, flow: 0, sequence, sent: asked.as_nanos() }.emit(&mut datagram);
    match socket.send(&datagram) {
        Err(error) if !is_loss(&error) => return Err(error),
        _ => {}
    }
    while now() < asked + PATIENCE {
        match socket.recv(&mut datagram) {
            Ok(length) => {
                let back = now().as_nanos();
                let reply = Probe::parse(&datagram[..length]);
                let is_ours = reply.is_some_and(|each| {
                    each.kind == Kind::ClockReply && each.order == order && each.sent == asked.as_nanos()
                });
                if let Some((received, answered)) = parse_times(&datagram[..length]).filter(|_| is_ours) {
                    return Ok(Some([asked.as_nanos(), received, answered, back]));
                }
            }
            Err(error) if is_loss(&error) => wait(socket.as_fd(), PollFlags::POLLIN, Some(asked + PATIENCE)),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
