//! The packets of all connections of a host, by time: what the path carried while one connection
//! waited.
//!
//! The connections of a mobile share its path. [`SharedPaths`] records the times of the packets
//! that each address sends and receives, in intervals of [`INTERVAL`]. The thread that reads a
//! capture records; the analysis of a connection queries only intervals that are complete at its
//! own last packet, so that its result does not depend on how far the reader is ahead.

mod recorder;
mod series;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airpath_core::{Instant, Span};
use airpath_wire::segment::Segment;
use airpath_wire::tcp::Flags;
use series::Series;

pub use recorder::Recorder;

/// The resolution of times.
pub const INTERVAL: Span = Span::from_millis(20);

/// The longest time that is searched, in intervals. Older ones are forgotten.
const LONGEST_QUERY: u64 = 1 << 12;

/// Handshakes of a host that are followed at a time.
const HANDSHAKES: usize = 64;

/// The hosts of a capture.
#[derive(Debug, Default)]
pub struct SharedPaths {
    hosts: Mutex<BTreeMap<IpAddr, Arc<HostLog>>>,
}

/// The packets of a host.
#[derive(Debug, Default)]
pub struct HostLog {
    /// Whether packets of several connections, or datagrams of other flows, have passed.
    is_shared: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Packets that the host received, and those that it sent.
    series: [Series; 2],
    /// The handshakes that the host has begun.
    handshakes: VecDeque<Handshake>,
    /// The shortest round trips of handshakes so far, by the other end: each with its time.
    round_trips: Vec<(IpAddr, Instant, Span)>,
    /// The shortest times so far in which the host answered a SYN-ACK at the capture: each with the
    /// time of the answer.
    answers: Vec<(Instant, Span)>,
}

/// A handshake in progress.
#[derive(Debug)]
struct Handshake {
    port: u16,
    other: IpAddr,
    syn: Instant,
    syn_ack: Option<Instant>,
}

/// Whether packets go to a host, or come from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// To the host.
    Received,
    /// From the host.
    Sent,
}

impl Passage {
    /// The other direction.
    pub const fn other(self) -> Self {
        match self {
            Self::Received => Self::Sent,
            Self::Sent => Self::Received,
        }
    }
}

/// Whether a segment takes a share of the path: a bare SYN, FIN or RST takes almost nothing, but
/// shows that the path carries packets.
pub fn takes_share(flags: Flags, length: u32) -> bool {
    length > 0 || flags.0 & (Flags::SYN | Flags::FIN | Flags::RST).0 == 0
}

impl SharedPaths {
    /// The log of a host; `None` before its first packet.
    pub fn host(&self, address: IpAddr) -> Option<Arc<HostLog>> {
        self.lock().get(&address).map(Arc::clone)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Arc<HostLog>>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostLog {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether packets of more than one connection have passed. As long as they have not, no packet
    /// of another one is in any interval.
    pub fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    /// Packets with a share of the path that passed from `begin` to `end`, in whole intervals.
    pub fn packets(&self, passage: Passage, begin: Instant, end: Instant) -> u64 {
        let (with, without) = self.lock().series[passage as usize].between(begin, end);
        with + without
    }

    /// The same, of the packets with `data`, or of those without.
    pub fn packets_with(&self, passage: Passage, data: bool, begin: Instant, end: Instant) -> u64 {
        let (with, without) = self.lock().series[passage as usize].between(begin, end);
        if data { with } else { without }
    }

    /// The longest time between `begin` and `end` without a packet.
    pub fn longest_silence(&self, passage: Passage, begin: Instant, end: Instant) -> (Instant, Instant) {
        self.lock().series[passage as usize].longest_silence(begin, end)
    }

    /// The longest time without a packet between two packets from `begin` to `end`, or after the
    /// last of them: before the first one of a capture, nothing is known. `None` without a packet.
    pub fn longest_silence_after_packet(
        &self,
        passage: Passage,
        begin: Instant,
        end: Instant,
    ) -> Option<(Instant, Instant)> {
        let state = self.lock();
        let series = &state.series[passage as usize];
        series.first(begin, end).map(|first| series.longest_silence(first, end))
    }

    /// The shortest round trip of the host's handshakes with `other` until `now`.
    pub fn round_trip(&self, other: IpAddr, now: Instant) -> Option<Span> {
        let state = self.lock();
        state.round_trips.iter().filter(|(end, at, _)| *end == other && *at <= now).map(|(.., sample)| *sample).min()
    }

    /// The shortest time until `now` from a SYN-ACK of any server at the capture to the answer of
    /// the host: the round trip of the empty path between the capture and the host.
    pub fn answer_time(&self, now: Instant) -> Option<Span> {
        self.lock().answers.iter().rev().find(|(at, _)| *at <= now).map(|(_, shortest)| *shortest)
    }
}

impl State {
    fn has_handshakes(&self) -> bool {
        !self.handshakes.is_empty()
    }

    /// Follows the handshakes of the host: the longer half of one is a round trip.
    fn handshake(&mut self, segment: &Segment<'_>, passage: Passage) {
        let (own, other) = match passage {
            Passage::Received => (segment.route.destination, segment.route.source),
            Passage::Sent => (segment.route.source, segment.route.destination),
        };
        let (syn, ack) = (segment.flags.contains(Flags::SYN), segment.flags.contains(Flags::ACK));
        let known = self.handshakes.iter().position(|each| each.port == own.port && each.other == other.address);
        let now = segment.time;
        match (syn, ack, known) {
            (true, false, None) if passage == Passage::Sent => {
                if self.handshakes.len() == HANDSHAKES {
                    self.handshakes.pop_front();
                }
                self.handshakes.push_back(Handshake { port: own.port, other: other.address, syn: now, syn_ack: None });
            }
            (true, true, Some(at)) if self.handshakes[at].syn_ack.is_none() => {
                self.handshakes[at].syn_ack = Some(now);
            }
            // A SYN or a SYN-ACK that is sent again has no unambiguous answer.
            (true, _, Some(at)) => drop(self.handshakes.remove(at)),
            (false, true, Some(at)) if passage == Passage::Sent => {
                let over = self.handshakes.remove(at);
                if self.handshakes.is_empty() {
                    self.handshakes = VecDeque::new();
                }
                if let Some(Handshake { syn, syn_ack: Some(syn_ack), other, .. }) = over {
                    let halves = [syn_ack.since(syn.min(syn_ack)), now.since(syn_ack.min(now))];
                    self.add_round_trip(other, now, halves[0].max(halves[1]));
                    if self.answers.last().is_none_or(|(_, shortest)| halves[1] < *shortest) {
                        // Mostly the only one.
                        self.answers.reserve_exact(1);
                        self.answers.push((now, halves[1]));
                    }
                }
            }
            _ => {}
        }
    }

    fn add_round_trip(&mut self, other: IpAddr, now: Instant, sample: Span) {
        let shortest = self.round_trips.iter().filter(|(end, ..)| *end == other).map(|(.., sample)| *sample).min();
        if shortest.is_none_or(|shortest| sample < shortest) {
            self.round_trips.reserve_exact(1);
            self.round_trips.push((other, now, sample));
        }
    }
}
