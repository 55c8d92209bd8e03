//! Which packet of one capture is which of the other.
//!
//! A packet that was sent twice is two packets: the identification of IP or the timestamp tells them apart. Where neither does, a path
//! that keeps the order does: what arrives was sent after what arrived before it.

use std::collections::BTreeMap;

use airpath_wire::tcp::Flags;

use airpath_observe::End;

use super::tap::{Packet, Tapped, TappedDirection};

/// A connection of both captures, with its packets paired.
#[derive(Debug)]
pub(super) struct Paired {
    pub first: Tapped,
    pub second: Tapped,
    /// The end that the first capture was taken nearer to.
    pub near: End,
    /// For each direction, by the end that sends: which packet at the receiver is which of the sender's.
    pub arrivals: [Vec<Arrival>; 2],
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Its place among the packets in the sender's capture.
    pub sent: usize,
    /// Its place among the packets in the receiver's.
    pub received: usize,
}

impl Paired {
    /// The packets that `from` sent: in the capture at its end, and in the one at the other.
    pub(super) const fn packets(&self, from: End) -> (&TappedDirection, &TappedDirection) {
        let (first, second) = (self.first.sent_by(from), self.second.sent_by(from));
        if from as usize == self.near as usize { (first, second) } else { (second, first) }
    }
}

/// Pairs the packets of a connection; `None` where no packet is in both captures.
pub(super) fn pair(first: Tapped, second: Tapped) -> Option<Paired> {
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

/// Counts the second capture's offsets as the first does. They differ where one of the two missed the beginning.
fn align(first: &TappedDirection, second: &mut TappedDirection) {
    if first.has_syn && second.has_syn {
        return;
    }
    // Modulo 2^32, and then the nearer way round.
    let shift = i64::from(second.base.wrapping_sub(first.base) as i32);
    for packet in &mut second.packets {
        packet.offset = packet.offset.saturating_add(shift);
    }
    second.base = first.base;
}

/// The end that the first capture is nearer to. The time that it has for the client's packets, less that of the second capture, is how
/// far its clock is ahead, less the way there; for the server's packets the way is added. So the two tell, whatever the clocks.
fn nearer(first: &Tapped, second: &Tapped) -> Option<End> {
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
        // With one direction alone nothing tells: the first capture is then taken for the sender's.
        [None, Some(_)] => Some(End::Server),
        _ => Some(End::Client),
    }
}

/// What must be the same in both captures. A translator may change addresses, ports and identification.
type Content = (i64, u32, u32, u8, u16, Option<u32>);

fn content(packet: &Packet) -> Content {
    let control = packet.flags.0 & (Flags::SYN | Flags::FIN | Flags::RST).0;
    (packet.offset, packet.length, packet.acknowledgment, control, packet.window, packet.timestamp)
}

/// Pairs what was sent with what was received, each in the order of its capture. The result is in the order of arrival.
fn arrivals(sent: &[Packet], received: &[Packet]) -> Vec<Arrival> {
    let mut pairing =
        Pairing { taken: vec![false; sent.len()], arrivals: Vec::new(), left: (0..received.len()).collect() };
    pairing.exactly(sent, received, |packet| (content(packet), packet.identification));
    // Where identifications are the same in both captures, one that is not says that the packet is another one.
    let identified = |packet: &Packet| packet.identification.is_some();
    let confirmed = pairing.arrivals.iter().filter(|pair| identified(&received[pair.received])).count();
    let doubtful = pairing.left.iter().filter(|at| identified(&received[**at])).count();
    if confirmed <= doubtful {
        pairing.exactly(sent, received, content);
    }
    pairing.by_bytes(sent, received);
    pairing.arrivals.sort_unstable_by_key(|pair| (pair.received, pair.sent));
    pairing.arrivals
}

struct Pairing {
    /// By place among what was sent.
    taken: Vec<bool>,
    arrivals: Vec<Arrival>,
    /// Places among what was received that have no partner.
    left: Vec<usize>,
}

impl Pairing {
    /// Pairs those with the same key. Of several that were sent, the first after the one that arrived before is taken.
    fn exactly<Key: Ord>(&mut self, sent: &[Packet], received: &[Packet], key: impl Fn(&Packet) -> Key) {
        let mut places: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        for (at, packet) in sent.iter().enumerate().filter(|(at, _)| !self.taken[*at]) {
            places.entry(key(packet)).or_default().push(at);
        }
        let mut before = 0;
        let left = std::mem::take(&mut self.left);
        for at in left {
            let candidates = places.get_mut(&key(&received[at])).filter(|places| !places.is_empty());
            match candidates {
                Some(candidates) => {
                    let in_order = candidates.partition_point(|place| *place < before);
                    let place = candidates.remove(if in_order < candidates.len() { in_order } else { 0 });
                    before = place;
                    self.taken[place] = true;
                    self.arrivals.push(Arrival { sent: place, received: at });
                }
                None => self.left.push(at),
            }
        }
    }

    /// Pairs what was cut or put together on the way, or by the interface of a host that captures before or after it: by the bytes.
    fn by_bytes(&mut self, sent: &[Packet], received: &[Packet]) {
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

/// Packets that a super-segment is cut into at most: 64 KiB, of 536 bytes each.
const PACKETS_OF_SUPER_SEGMENT: u16 = 122;

/// Whether `piece` may be a part of `sent`, or the other way round: the packets that a super-segment is cut into are
/// numbered on from its own identification.
fn may_be(sent: &Packet, piece: &Packet) -> bool {
    let numbered_on = match (sent.identification, piece.identification) {
        (Some(of), Some(piece)) => {
            piece.wrapping_sub(of) < PACKETS_OF_SUPER_SEGMENT || of.wrapping_sub(piece) < PACKETS_OF_SUPER_SEGMENT
        }
        _ => true,
    };
    numbered_on && sent.length != piece.length && sent.timestamp == piece.timestamp
}
