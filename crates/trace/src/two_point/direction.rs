//! The packets of a direction, and its figures.

use std::sync::Arc;

use airpath_core::range_set::{Range, RangeSet};
use airpath_core::{Instant, Span};

use super::arrival_gap::{self, ArrivalGap};
use super::compression::{self, Compression};
use super::digest::{DirectionDigest, PacketDigest};
use super::pairing::{Arrival, Paired};
use super::quantiles::Quantiles;
use super::silence::Silences;
use super::transit::{Fate, Transit};
use super::{Clock, JoinOptions, JoinedConnection};
use airpath_observe::End;

/// The smallest full-sized payload: the MSS that every host accepts (RFC 9293 §3.7.1).
const DEFAULT_MSS: u32 = 536;

/// The packets of one end, and their fates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Direction {
    /// The packets in the order of sending, which is that of their frames in the sender's capture.
    pub transits: Vec<Transit>,
    /// One-way delays of all packets.
    pub delay: Option<Quantiles>,
    /// Times between arrivals of packets with data.
    pub inter_arrival: Option<Quantiles>,
    /// The change of delay from one arrival of data to the next.
    pub jitter: Option<Quantiles>,
    /// Packets with data.
    pub data_packets: u64,
    /// Packets with data that were lost.
    pub lost: u64,
    /// Packets with data whose fate is unknown.
    pub unknown: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Spurious retransmissions.
    pub spurious: u64,
    /// Packets with data that arrived after one sent later.
    pub reordered: u64,
    /// Times without an arrival though packets were in flight.
    pub gaps: Vec<ArrivalGap>,
    /// Compression of acknowledgements.
    pub compression: Compression,
    /// The shortest round trip of any connection of the client, if its sender is at the first
    /// capture: between the two captures they take the same path. `None` before it is known.
    pub round_trip_of_client: Option<Span>,
    /// The shortest delay of a full-sized packet of any connection of the client; `None` before it
    /// is known, or without one.
    pub shortest_full_of_client: Option<Span>,
    /// What the path held of all connections of the client: times of sending, each with the latest
    /// arrival of the packets sent until then. Empty with a single connection.
    pub path_queue: Arc<[(Instant, Instant)]>,
    /// When no packet of any connection of the client arrived. Empty with a single connection.
    pub silences: Arc<Silences>,
}

impl Direction {
    /// The shortest delay of the packets with most data, if these are full-sized.
    pub(super) fn shortest_full(&self) -> Option<Span> {
        let with_data = self.transits.iter().map(|transit| transit.packet.length);
        let full = with_data.max().filter(|length| *length >= DEFAULT_MSS)?;
        let of_full = self.transits.iter().filter(|transit| transit.packet.length == full);
        of_full.filter_map(Transit::delay).min()
    }

    /// The packet with that frame in the sender's capture.
    pub fn transit(&self, frame: u64) -> Option<&Transit> {
        let at = self.transits.binary_search_by_key(&frame, |transit| transit.packet.frame).ok()?;
        self.transits.get(at)
    }
}

/// Joins a connection, by clocks that are fitted or given.
pub(super) fn joined(paired: Paired, clock: &Clock, options: &JoinOptions) -> JoinedConnection {
    let directions = End::BOTH.map(|from| {
        let (sent, received) = paired.packets(from);
        let (by_sender, by_receiver) = if from == paired.near { (None, Some(clock)) } else { (Some(clock), None) };
        direction(sent, received, &paired.arrivals[from as usize], [by_sender, by_receiver], options)
    });
    JoinedConnection {
        flow: paired.first.flow,
        peer_flow: paired.second.flow,
        route: paired.first.route,
        peer_route: paired.second.route,
        near: paired.near,
        directions,
    }
}

/// Joins a direction. Of the clocks of sender and receiver, one is the first capture's: `None`.
fn direction(
    sent: &DirectionDigest,
    received: &DirectionDigest,
    arrivals: &[Arrival],
    clocks: [Option<&Clock>; 2],
    options: &JoinOptions,
) -> Direction {
    let [by_sender, by_receiver] = clocks.map(|clock| move |time| clock.map_or(time, |clock| clock.by_first(time)));
    let first = arrivals.iter().map(|pair| pair.sent).min().filter(|_| !received.has_syn);
    let last = arrivals.iter().map(|pair| pair.sent).max();
    let mut transits: Vec<Transit> = sent
        .packets
        .iter()
        .enumerate()
        .map(|(at, packet)| {
            let overtaken = last.is_some_and(|last| at < last) && first.is_none_or(|first| at > first);
            Transit {
                packet: PacketDigest { time: by_sender(packet.time), ..*packet },
                fate: if overtaken { Fate::Lost } else { Fate::Unknown },
                arrived_bytes: 0,
                spurious: false,
                others_until: None,
            }
        })
        .collect();
    for pair in arrivals {
        let (transit, piece) = (&mut transits[pair.sent], &received.packets[pair.received]);
        // The packet arrives with its first part.
        if transit.arrival().is_none() {
            transit.fate = Fate::Arrived { time: by_receiver(piece.time), frame: piece.frame };
        }
        let from = piece.offset.max(transit.packet.offset);
        let bytes = piece.end().min(transit.packet.end()).saturating_sub(from).max(0);
        // No more arrives than the length of the packet.
        transit.arrived_bytes = transit.arrived_bytes.saturating_add(bytes as u32).min(transit.packet.length);
        // The receiver's capture shows this.
        transit.packet.refused = piece.refused;
    }
    mark_spurious(&mut transits);
    summarize(transits, options)
}

/// Marks spurious retransmissions: earlier copies of every byte arrived, and were not refused.
fn mark_spurious(transits: &mut [Transit]) {
    let mut arrived = RangeSet::default();
    for transit in transits.iter_mut().filter(|transit| transit.packet.length > 0) {
        let bytes = Range::new(transit.packet.offset, transit.packet.end());
        transit.spurious = transit.packet.resent && arrived.containing(bytes).is_some();
        let is_whole = transit.arrived_bytes == transit.packet.length;
        if transit.arrival().is_some() && is_whole && !transit.packet.refused {
            arrived.insert(bytes, |_| ());
        }
    }
}

fn summarize(transits: Vec<Transit>, options: &JoinOptions) -> Direction {
    let data = || transits.iter().filter(|transit| transit.packet.length > 0);
    let count = |of: fn(&Transit) -> bool| data().filter(|transit| of(transit)).count() as u64;
    let mut in_order_of_arrival: Vec<&Transit> = data().filter(|transit| transit.arrival().is_some()).collect();
    in_order_of_arrival.sort_by_key(|transit| (transit.arrival(), transit.packet.frame));
    let neighbours = || in_order_of_arrival.windows(2).map(|pair| (pair[0], pair[1]));
    let between = |(one, other): (&Transit, &Transit)| Some(other.arrival()?.since(one.arrival()?));
    let change = |(one, other): (&Transit, &Transit)| Some(other.delay()?.abs_diff(one.delay()?));
    let mut latest = 0;
    let mut reordered = 0;
    for transit in &in_order_of_arrival {
        reordered += u64::from(transit.packet.frame < latest);
        latest = latest.max(transit.packet.frame);
    }
    Direction {
        delay: Quantiles::of(transits.iter().filter_map(Transit::delay).collect()),
        inter_arrival: Quantiles::of(neighbours().filter_map(between).collect()),
        jitter: Quantiles::of(neighbours().filter_map(change).collect()),
        data_packets: count(|_| true),
        lost: count(|transit| transit.fate == Fate::Lost),
        unknown: count(|transit| transit.fate == Fate::Unknown),
        retransmissions: count(|transit| transit.packet.resent),
        spurious: count(|transit| transit.spurious),
        reordered,
        gaps: arrival_gap::gaps(&transits, options.least_gap),
        compression: compression::of(&transits),
        round_trip_of_client: None,
        shortest_full_of_client: None,
        path_queue: Arc::default(),
        silences: Arc::default(),
        transits,
    }
}
