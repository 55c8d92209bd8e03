//! What became of each packet of a direction.

use std::collections::BTreeMap;

use airpath_core::{Instant, Span};

use super::compression::{self, Compression};
use super::pairing::{Arrival, Paired};
use super::quantiles::Quantiles;
use super::silence::{self, Silence};
use super::tap::{Packet, TappedDirection};
use super::{Clock, JoinOptions, Joined};
use airpath_observe::End;

/// A packet from one end to the other, by the first capture's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The packet as the capture at the sender has it, its time by the first capture's clock.
    pub packet: Packet,
    /// What became of it.
    pub fate: Fate,
    /// Bytes of its payload that arrived: not all where it was cut into several packets and some were lost.
    pub arrived_bytes: u32,
    /// Whether it was a retransmission of bytes that all had arrived, or were still to arrive, in an earlier copy.
    pub spurious: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived.
    Arrived {
        /// When, by the first capture's clock.
        time: Instant,
        /// In which frame of the receiver's capture.
        frame: u64,
    },
    /// It did not arrive, and a packet that was sent later did.
    Lost,
    /// It did not arrive before the captures ended, nor did any that was sent later; or it was sent before the other capture began.
    Unknown,
}

impl Passage {
    /// When it arrived.
    pub const fn arrival(&self) -> Option<Instant> {
        match self.fate {
            Fate::Arrived { time, .. } => Some(time),
            Fate::Lost | Fate::Unknown => None,
        }
    }

    /// How long it took. By clocks that were fitted the fastest packets may seem to have taken no time.
    pub fn delay(&self) -> Option<Span> {
        self.arrival().map(|arrival| arrival.since(self.packet.time))
    }
}

/// What one end sent, and what became of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Direction {
    /// The packets in the order in which they were sent: their frames in the sender's capture rise.
    pub passages: Vec<Passage>,
    /// One-way delays of all packets.
    pub delay: Option<Quantiles>,
    /// Times between arrivals of packets with data.
    pub inter_arrival: Option<Quantiles>,
    /// How much the delay changed from one arrival of data to the next.
    pub jitter: Option<Quantiles>,
    /// Packets with data.
    pub data_packets: u64,
    /// Those of them that were lost.
    pub lost: u64,
    /// Those of them of which it is not known.
    pub unknown: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Those of them that were spurious.
    pub spurious: u64,
    /// Packets with data that arrived after one that was sent later.
    pub reordered: u64,
    /// Times without an arrival, though packets were on their way.
    pub silences: Vec<Silence>,
    /// How acknowledgements were bunched on the way.
    pub compression: Compression,
}

impl Direction {
    /// The packet of a frame of the sender's capture.
    pub fn passage(&self, frame: u64) -> Option<&Passage> {
        let at = self.passages.binary_search_by_key(&frame, |passage| passage.packet.frame).ok()?;
        self.passages.get(at)
    }
}

/// A connection, once the clocks are known.
pub(super) fn joined(paired: Paired, clock: &Clock, options: &JoinOptions) -> Joined {
    let directions = End::BOTH.map(|from| {
        let (sent, received) = paired.packets(from);
        let (by_sender, by_receiver) = if from == paired.near { (None, Some(clock)) } else { (Some(clock), None) };
        direction(sent, received, &paired.arrivals[from as usize], [by_sender, by_receiver], options)
    });
    Joined {
        flow: paired.first.flow,
        peer_flow: paired.second.flow,
        route: paired.first.route,
        peer_route: paired.second.route,
        near: paired.near,
        directions,
    }
}

/// What was sent with what became of it. Of the clocks of sender and receiver, one is the first capture's own.
fn direction(
    sent: &TappedDirection,
    received: &TappedDirection,
    arrivals: &[Arrival],
    clocks: [Option<&Clock>; 2],
    options: &JoinOptions,
) -> Direction {
    let [by_sender, by_receiver] = clocks.map(|clock| move |time| clock.map_or(time, |clock| clock.by_first(time)));
    let first = arrivals.iter().map(|pair| pair.sent).min().filter(|_| !received.has_syn);
    let last = arrivals.iter().map(|pair| pair.sent).max();
    let mut passages: Vec<Passage> = sent
        .packets
        .iter()
        .enumerate()
        .map(|(at, packet)| {
            let overtaken = last.is_some_and(|last| at < last) && first.is_none_or(|first| at > first);
            Passage {
                packet: Packet { time: by_sender(packet.time), ..*packet },
                fate: if overtaken { Fate::Lost } else { Fate::Unknown },
                arrived_bytes: 0,
                spurious: false,
            }
        })
        .collect();
    for pair in arrivals {
        let (passage, piece) = (&mut passages[pair.sent], &received.packets[pair.received]);
        // The first part of it that arrives counts.
        if passage.arrival().is_none() {
            passage.fate = Fate::Arrived { time: by_receiver(piece.time), frame: piece.frame };
        }
        let from = piece.offset.max(passage.packet.offset);
        let bytes = piece.end().min(passage.packet.end()).saturating_sub(from).max(0);
        // A part of the packet is no longer than it.
        passage.arrived_bytes = passage.arrived_bytes.saturating_add(bytes as u32).min(passage.packet.length);
    }
    mark_spurious(&mut passages);
    summed_up(passages, options)
}

/// Marks the retransmissions of what had got through: every byte is in earlier copies that arrived.
fn mark_spurious(passages: &mut [Passage]) {
    let mut through = Through::default();
    for passage in passages {
        let packet = &passage.packet;
        passage.spurious = packet.resent && packet.length > 0 && through.contains(packet.offset, packet.end());
        if passage.arrival().is_some() && passage.arrived_bytes == packet.length {
            through.insert(packet.offset, packet.end());
        }
    }
}

/// Offsets that got through, as ranges that neither overlap nor touch: end by start.
#[derive(Debug, Default)]
struct Through(BTreeMap<i64, i64>);

impl Through {
    fn contains(&self, from: i64, to: i64) -> bool {
        self.0.range(..=from).next_back().is_some_and(|(_, end)| *end >= to)
    }

    fn insert(&mut self, mut from: i64, mut to: i64) {
        while let Some((start, end)) = self.0.range(..=to).next_back().map(|(start, end)| (*start, *end))
            && end >= from
        {
            self.0.remove(&start);
            from = from.min(start);
            to = to.max(end);
        }
        self.0.insert(from, to);
    }
}

fn summed_up(passages: Vec<Passage>, options: &JoinOptions) -> Direction {
    let data = || passages.iter().filter(|passage| passage.packet.length > 0);
    let count = |of: fn(&Passage) -> bool| data().filter(|passage| of(passage)).count() as u64;
    let mut in_order_of_arrival: Vec<&Passage> = data().filter(|passage| passage.arrival().is_some()).collect();
    in_order_of_arrival.sort_by_key(|passage| (passage.arrival(), passage.packet.frame));
    let neighbours = || in_order_of_arrival.windows(2).map(|pair| (pair[0], pair[1]));
    let between = |(one, other): (&Passage, &Passage)| Some(other.arrival()?.since(one.arrival()?));
    let change = |(one, other): (&Passage, &Passage)| Some(other.delay()?.abs_diff(one.delay()?));
    let mut latest = 0;
    let mut reordered = 0;
    for passage in &in_order_of_arrival {
        reordered += u64::from(passage.packet.frame < latest);
        latest = latest.max(passage.packet.frame);
    }
    Direction {
        delay: Quantiles::of(passages.iter().filter_map(Passage::delay).collect()),
        inter_arrival: Quantiles::of(neighbours().filter_map(between).collect()),
        jitter: Quantiles::of(neighbours().filter_map(change).collect()),
        data_packets: count(|_| true),
        lost: count(|passage| passage.fate == Fate::Lost),
        unknown: count(|passage| passage.fate == Fate::Unknown),
        retransmissions: count(|passage| passage.packet.resent),
        spurious: count(|passage| passage.spurious),
        reordered,
        silences: silence::silences(&passages, options.silence),
        compression: compression::of(&passages),
        passages,
    }
}
