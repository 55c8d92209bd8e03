//! Offset of the responder's clock.

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

/// Number of exchanges for the estimate.
const EXCHANGES: u32 = 8;
/// Time limit of a reply. A slow radio needs a second to leave its idle state.
const RESPONSE_TIMEOUT: Span = Span::from_secs(3);

/// The value to add to a time of this clock to get the responder's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offset {
    /// Zero: both ends read the same clock.
    Shared,
    /// Estimated as in NTP (RFC 5905 §8), from the exchange with the shortest round trip of
    /// several: half of the difference of the two one-way times by the two clocks. It is exact if
    /// both directions take equal time; otherwise its error is half of their difference, at most
    /// half of that round trip.
    Estimated {
        /// Nanoseconds to add.
        nanos: i128,
        /// The round trip, without the processing time of the responder.
        round_trip: Span,
        /// Number of replies.
        exchanges: u32,
        /// Nanoseconds of `nanos` that [`Offset::corrected`] has added to the estimate.
        correction: i128,
    },
}

impl Offset {
    /// Determines the offset, over a non-blocking socket connected to the responder.
    ///
    /// # Errors
    /// No reply arrived.
    pub fn find(socket: &UdpSocket, session: u64, ready: &Ready) -> io::Result<Self> {
        match identity() {
            Some(own) if ready.clock.as_ref() == Some(&own) => Ok(Self::Shared),
            _ => Self::estimate(socket, session),
        }
    }

    /// Estimates the offset from exchanges.
    ///
    /// # Errors
    /// No reply arrived.
    pub fn estimate(socket: &UdpSocket, session: u64) -> io::Result<Self> {
        let mut best: Option<(Span, i128)> = None;
        let mut exchanges = 0;
        for sequence in 0..EXCHANGES {
            let Some([sent, received, answered, back]) = exchange(socket, session, sequence)? else { continue };
            let round_trip = Span::from_nanos((back - sent).saturating_sub(answered.saturating_sub(received)));
            let (there, here) = (i128::from(received) - i128::from(sent), i128::from(answered) - i128::from(back));
            exchanges += 1;
            if best.is_none_or(|(least, _)| round_trip < least) {
                best = Some((round_trip, (there + here) / 2));
            }
        }
        let (round_trip, nanos) = best.ok_or_else(|| {
            io::Error::new(io::ErrorKind::TimedOut, "no datagram came back; UDP may be blocked on the path")
        })?;
        Ok(Self::Estimated { nanos, round_trip, exchanges, correction: 0 })
    }

    /// The offset with which no one-way delay is negative, by the least [delay](Self::delay) with
    /// this one to the client (`down`) and to the responder (`up`). A constant changes, so that
    /// differences between the delays of a direction, and sums over both directions, stay the same.
    ///
    /// A true delay is not negative, so the corrected offset is closer to the true one. If the
    /// clocks drift by more than the round trip, no offset fits; the result is then in the middle.
    #[must_use]
    pub fn corrected(self, down: Option<i128>, up: Option<i128>) -> Self {
        let Self::Estimated { nanos, round_trip, exchanges, correction } = self else { return self };
        let (least, most) = (down.map_or(i128::MIN, |delay| -delay), up.unwrap_or(i128::MAX));
        let change = if least <= most { 0_i128.clamp(least, most) } else { (least + most) / 2 };
        Self::Estimated { nanos: nanos + change, round_trip, exchanges, correction: correction + change }
    }

    /// Nanoseconds from `sent` to `arrived`, which an error of the offset can make negative.
    pub fn delay(sent: Instant, arrived: Instant) -> i128 {
        i128::from(arrived.as_nanos()) - i128::from(sent.as_nanos())
    }

    /// Converts a time of the responder's clock to this one.
    pub fn to_ours(self, theirs: u64) -> Instant {
        match self {
            Self::Shared => Instant::from_nanos(theirs),
            Self::Estimated { nanos, .. } => {
                let ours = (i128::from(theirs) - nanos).clamp(0, i128::from(u64::MAX));
                Instant::from_nanos(u64::try_from(ours).expect("it was brought within range"))
            }
        }
    }

    /// Converts a time of this clock to the responder's.
    pub fn to_theirs(self, ours: Instant) -> u64 {
        match self {
            Self::Shared => ours.as_nanos(),
            Self::Estimated { nanos, .. } => {
                let theirs = (i128::from(ours.as_nanos()) + nanos).clamp(0, i128::from(u64::MAX));
                u64::try_from(theirs).expect("it was brought within range")
            }
        }
    }

    /// The form in the summary.
    pub fn to_json(self) -> Value {
        match self {
            Self::Shared => json!({ "clock": "shared", "offset_s": 0.0, "uncertainty_s": 0.0 }),
            Self::Estimated { nanos, round_trip, exchanges, correction } => json!({
                "clock": "estimated",
                "offset_s": nanos as f64 / 1e9,
                "correction_s": correction as f64 / 1e9,
                "uncertainty_s": round_trip.as_secs_f64() / 2.0,
                "exchanges": exchanges,
            }),
        }
    }
}

/// One exchange: request time by this clock, arrival and reply times by the responder's, and
/// arrival of the reply by this.
fn exchange(socket: &UdpSocket, session: u64, sequence: u32) -> io::Result<Option<[u64; 4]>> {
    let mut datagram = [0; CLOCK_LENGTH];
    let sent = now();
    Probe { kind: Kind::Clock, session, flow: 0, sequence, sent: sent.as_nanos() }.emit(&mut datagram);
    match socket.send(&datagram) {
        Err(error) if !is_loss(&error) => return Err(error),
        _ => {}
    }
    while now() < sent + RESPONSE_TIMEOUT {
        match socket.recv(&mut datagram) {
            Ok(length) => {
                let back = now().as_nanos();
                let reply = Probe::parse(&datagram[..length]);
                let is_ours = reply.is_some_and(|each| {
                    each.kind == Kind::ClockReply && each.session == session && each.sent == sent.as_nanos()
                });
                if let Some((received, answered)) = parse_times(&datagram[..length]).filter(|_| is_ours) {
                    return Ok(Some([sent.as_nanos(), received, answered, back]));
                }
            }
            Err(error) if is_loss(&error) => wait(socket.as_fd(), PollFlags::POLLIN, Some(sent + RESPONSE_TIMEOUT)),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ESTIMATE: Offset =
        Offset::Estimated { nanos: 1_000, round_trip: Span::from_nanos(100), exchanges: 8, correction: 0 };

    fn correction(down: Option<i128>, up: Option<i128>) -> i128 {
        let Offset::Estimated { nanos, correction, .. } = ESTIMATE.corrected(down, up) else { unreachable!() };
        assert_eq!(nanos, 1_000 + correction);
        correction
    }

    #[test]
    fn a_correction_makes_the_least_delay_zero() {
        assert_eq!(correction(Some(-30), None), 30);
        assert_eq!(correction(None, Some(-30)), -30);
        assert_eq!(correction(Some(-30), Some(70)), 30);
        assert_eq!(correction(Some(70), Some(-30)), -30);
        // Both directions change by the same time, in opposite senses.
        let offset = ESTIMATE.corrected(Some(-30), None);
        assert_eq!(Offset::delay(offset.to_ours(5_000), Instant::from_nanos(3_970)), 0);
        assert_eq!(Offset::delay(Instant::from_nanos(3_900), offset.to_ours(5_000)), 70);
    }

    #[test]
    fn an_offset_without_negative_delays_stays() {
        assert_eq!(correction(Some(0), Some(0)), 0);
        assert_eq!(correction(Some(5), Some(5)), 0);
        assert_eq!(correction(None, None), 0);
        assert_eq!(Offset::Shared.corrected(Some(-30), None), Offset::Shared);
    }

    #[test]
    fn a_drift_above_the_round_trip_is_divided() {
        assert_eq!(correction(Some(-30), Some(10)), 20);
    }
}
