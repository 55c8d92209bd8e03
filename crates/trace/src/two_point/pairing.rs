//! Pairs the packets of two captures.
//!
//! A packet sent twice is two packets: the IP identification or the timestamp distinguishes them.
//! Else a path without reordering is assumed: a packet was sent after the packets that arrived
//! before it.

use std::collections::BTreeMap;

use airpath_wire::tcp::Flags;

use airpath_observe::End;

use super::digest::{ConnectionDigest, DirectionDigest, PacketDigest};

/// A connection in both captures, with its packets paired.
#[derive(Debug)]
pub(super) struct Paired {
    pub first: ConnectionDigest,
    pub second: ConnectionDigest,
    /// The end nearer to the first capture.
    pub near: End,
    /// The pairs of each direction, by the sending end.
    pub arrivals: [Vec<Arrival>; 2],
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Index of the packet in the sender's capture.
    pub sent: usize,
    /// Index of the packet in the receiver's capture.
    pub received: usize,
}

impl Paired {
    /// The packets that `from` sent: in the capture at its end, and in the other.
    pub(super) const fn packets(&self, from: End) -> (&DirectionDigest, &DirectionDigest) {
        let (first, second) = (self.first.sent_by(from), self.second.sent_by(from));
        if from as usize == self.near as usize { (first, second) } else { (second, first) }
    }
}

/// Pairs the packets of a connection; `None` where no packet is in both captures.
pub(super) fn pair(first: ConnectionDigest, second: ConnectionDigest) -> Option<Paired> {
    let mut second = second;
    for from in End::BOTH {
        align(first.sent_by(from), &mut second.directions[from as usize]);
    }
    let near = nearer(&first, &second)?;
    let mut paired = Paired { first, second, near, arrivals: [Vec::new(), Vec::new()] };
    paired.arrivals = End::BOTH.map(|from| {
        let (sent, received) = paired.packets(from);
        arrivals(&sent.packets, &received.packets)
    });
    paired.arrivals.iter().any(|arrivals| !arrivals.is_empty()).then_some(paired)
}

/// Aligns the second capture's offsets with the first's. They differ where one missed the
/// beginning.
fn align(first: &DirectionDigest, second: &mut DirectionDigest) {
    if first.has_syn && second.has_syn {
        return;
    }
    // The signed difference modulo 2^32.
    let shift = i64::from(second.base.wrapping_sub(first.base) as i32);
    for packet in &mut second.packets {
        packet.offset = packet.offset.saturating_add(shift);
    }
    second.base = first.base;
}

/// Finds the end nearer to the first capture. The first clock less the second is, for packets of
/// that end, the clock offset less the delay; for packets of the other end, the offset plus the
/// delay. So comparing the two directions decides, whatever the clocks.
fn nearer(first: &ConnectionDigest, second: &ConnectionDigest) -> Option<End> {
    let differences = End::BOTH.map(|from| {
        let (here, there) = (&first.sent_by(from).packets, &second.sent_by(from).packets);
        let mut differences: Vec<i128> = arrivals(here, there)
            .iter()
            .map(|pair| i128::from(here[pair.sent].time.as_nanos()) - i128::from(there[pair.received].time.as_nanos()))
            .collect();
        differences.sort_unstable();
        differences.get(differences.len() / 2).copied()
    });
    match differences {
        [Some(client), Some(server)] if server < client => Some(End::Server),
        [None, None] => None,
        // One direction alone does not decide: the first capture counts as the sender's.
        [None, Some(_)] => Some(End::Server),
        _ => Some(End::Client),
    }
}

/// The fields that must be equal in both captures. Address translation may change the others.
type Content = (i64, u32, u32, u8, u16, Option<u32>);

fn content(packet: &PacketDigest) -> Content {
    let control = packet.flags.0 & (Flags::SYN | Flags::FIN | Flags::RST).0;
    (packet.offset, packet.length, packet.acknowledgment, control, packet.window, packet.timestamp)
}

/// Pairs sent with received packets, each in the order of its capture. Returns them in order of
/// arrival.
fn arrivals(sent: &[PacketDigest], received: &[PacketDigest]) -> Vec<Arrival> {
    let mut pairing =
        Pairing { taken: vec![false; sent.len()], arrivals: Vec::new(), left: (0..received.len()).collect() };
    pairing.exactly(sent, received, |packet| (content(packet), packet.identification));
    // Where the path keeps identifications, a different one means a different packet.
    let identified = |packet: &PacketDigest| packet.identification.is_some();
    let confirmed = pairing.arrivals.iter().filter(|pair| identified(&received[pair.received])).count();
    let doubtful = pairing.left.iter().filter(|at| identified(&received[**at])).count();
    if confirmed <= doubtful {
        pairing.exactly(sent, received, content);
    }
    pairing.by_bytes(sent, received);
    pairing.arrivals.sort_unstable_by_key(|pair| (pair.received, pair.sent));
    pairing.arrivals
}

/// The receiver's clock when a packet arrived, less the sender's when it was sent.
fn elapsed(sent: &PacketDigest, received: &PacketDigest) -> i128 {
    i128::from(received.time.as_nanos()) - i128::from(sent.time.as_nanos())
}

struct Pairing {
    /// Whether each sent packet is paired.
    taken: Vec<bool>,
    arrivals: Vec<Arrival>,
    /// Indices of the received packets without a pair.
    left: Vec<usize>,
}

impl Pairing {
    /// Pairs packets with equal keys. Of several sent, takes the first after the packet that
    /// arrived before, if all of them may arrive.
    ///
    /// If fewer arrived than were sent, some were lost. Then the last ones arrived, as far as the
    /// order of arrivals and the shortest delay allow it: a packet that comes as soon as any after
    /// its retransmission is the retransmission.
    fn exactly<Key: Ord>(
        &mut self,
        sent: &[PacketDigest],
        received: &[PacketDigest],
        key: impl Fn(&PacketDigest) -> Key,
    ) {
        let mut places: BTreeMap<Key, (Vec<usize>, usize)> = BTreeMap::new();
        for (at, packet) in sent.iter().enumerate().filter(|(at, _)| !self.taken[*at]) {
            places.entry(key(packet)).or_default().0.push(at);
        }
        for at in &self.left {
            if let Some((_, arriving)) = places.get_mut(&key(&received[*at])) {
                *arriving += 1;
            }
        }
        let mut before = 0;
        let mut least: Option<i128> = None;
        let left = std::mem::take(&mut self.left);
        for (number, &at) in left.iter().enumerate() {
            let next = left.get(number + 1).and_then(|next| places.get(&key(&received[*next])));
            let until = next.and_then(|(candidates, _)| candidates.iter().find(|place| **place >= before).copied());
            let Some((candidates, arriving)) =
                places.get_mut(&key(&received[at])).filter(|(places, _)| !places.is_empty())
            else {
                self.left.push(at);
                continue;
            };
            let in_order = candidates.partition_point(|place| *place < before);
            let possible = &candidates[in_order..];
            let lost = possible.len().saturating_sub(*arriving);
            let took = |place: usize| elapsed(&sent[place], &received[at]);
            let is_possible = |place: usize| {
                until.is_none_or(|until| place < until) && least.is_none_or(|least| took(place) >= least)
            };
            let skipped = (1..=lost).rev().find(|skipped| is_possible(possible[*skipped])).unwrap_or(0);
            let place = candidates.remove(if possible.is_empty() { 0 } else { in_order + skipped });
            *arriving -= 1;
            least = least.into_iter().chain([took(place)]).min();
            before = place;
            self.taken[place] = true;
            self.arrivals.push(Arrival { sent: place, received: at });
        }
    }

    /// Pairs by bytes the packets that were split or merged on the path, or by an interface's
    /// offload (TSO, GRO).
    fn by_bytes(&mut self, sent: &[PacketDigest], received: &[PacketDigest]) {
        let mut by_offset: Vec<usize> = (0..sent.len()).filter(|at| !self.taken[*at] && sent[*at].length > 0).collect();
        by_offset.sort_by_key(|at| (sent[*at].offset, *at));
        if by_offset.is_empty() {
            return;
        }
        let longest = by_offset.iter().map(|at| sent[*at].length).max().unwrap_or(0);
        for at in std::mem::take(&mut self.left) {
            let piece = &received[at];
            let from = by_offset.partition_point(|place| sent[*place].offset <= piece.offset - i64::from(longest));
            let overlapping = by_offset[from..].iter().copied().take_while(|place| sent[*place].offset < piece.end());
            let overlapping =
                overlapping.filter(|place| sent[*place].end() > piece.offset && may_be(&sent[*place], piece));
            let arrived = overlapping.map(|place| Arrival { sent: place, received: at });
            let before = self.arrivals.len();
            self.arrivals.extend(arrived.filter(|_| piece.length > 0));
            if self.arrivals.len() == before {
                self.left.push(at);
            }
        }
    }
}

/// Packets of a super-segment, at most: 64 KiB in packets of 536 bytes.
const PACKETS_OF_SUPER_SEGMENT: u16 = 122;

/// Whether one packet may be a part of the other: the packets of a super-segment have successive
/// identifications from its own.
fn may_be(sent: &PacketDigest, piece: &PacketDigest) -> bool {
    let numbered_on = match (sent.identification, piece.identification) {
        (Some(of), Some(piece)) => {
            piece.wrapping_sub(of) < PACKETS_OF_SUPER_SEGMENT || of.wrapping_sub(piece) < PACKETS_OF_SUPER_SEGMENT
        }
        _ => true,
    };
    numbered_on && sent.length != piece.length && sent.timestamp == piece.timestamp
}
