//! The shortest round trip between two captures.

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Flags;

use super::digest::PacketDigest;
use super::direction::Direction;

/// The shortest time between a packet that elicits an acknowledgement (data, SYN, FIN) and the
/// answer.
pub(crate) fn shortest(sent: &Direction, returned: &Direction) -> Option<Span> {
    let elicits = |packet: &PacketDigest| packet.length > 0 || packet.flags.0 & (Flags::SYN | Flags::FIN).0 != 0;
    let eliciting = sent.transits.iter().filter(|transit| elicits(&transit.packet));
    let mut eliciting: Vec<(Instant, Instant)> =
        eliciting.filter_map(|transit| Some((transit.arrival()?, transit.packet.time))).collect();
    eliciting.sort_unstable();
    let mut eliciting = eliciting.into_iter().peekable();
    let mut latest: Option<Instant> = None;
    let mut shortest: Option<Span> = None;
    for answer in &returned.transits {
        while let Some((_, sent)) = eliciting.next_if(|(arrived, _)| *arrived <= answer.packet.time) {
            latest = Some(sent);
        }
        let sample = latest.zip(answer.arrival()).map(|(sent, here)| here.since(sent));
        shortest = sample.into_iter().chain(shortest).min();
    }
    shortest
}
