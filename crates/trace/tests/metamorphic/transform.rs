//! Changes to a capture that leave the causes of its connections as they are.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airpath_capture::decode::Decoded;
use airpath_core::rng::RandomStream;
use airpath_core::{Instant, Span};
use airpath_wire::segment::{Endpoint, Route, Segment};
use airpath_wire::tcp::Flags;

/// Packets as they were captured, without payload.
pub type Packets = Vec<Decoded<'static>>;

/// The longest super-segment: that of an IP packet.
const LONGEST: u32 = 65_000;

/// Changes a port without its kind: without a handshake, a system port (below 1024), a registered
/// port (below 32768) and an ephemeral port show which end is the server.
const OTHER_PORT: u16 = 0x0111;

/// The same for a port of another connection of the client.
const NEIGHBOUR_PORT: u16 = 0x0222;

/// A change of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adjacent segments within a millisecond become one, as by TSO and GRO.
    Offload,
    /// One pair of full segments becomes one, whatever the time between them.
    MergeOne,
    /// One in twenty segments with data becomes two, at the same time. If all did, the capture
    /// would be that of a sender with half the MSS.
    Split,
    /// One in fifty segments with data that is acknowledged later is not in the capture.
    DropAcknowledged,
    /// Ten successive segments with data that is acknowledged later are not in the capture.
    DropRun,
    /// One in fifty acknowledgements without data is not in the capture.
    DropPureAcknowledgements,
    /// All times are later.
    ShiftClock,
    /// Other addresses, and other ports of the same kind.
    RewriteAddresses,
    /// A further connection between other hosts, at the same time.
    AddStranger,
    /// A further connection of the same hosts, with a short exchange at the begin of the first.
    AddNeighbour,
    /// The packets of the clients one after the other, in the reverse order of their begin.
    SwapClients,
    /// The capture ends in its middle.
    CutEnd,
    /// The capture begins later.
    CutBegin,
}

impl Change {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Offload,
        Self::MergeOne,
        Self::Split,
        Self::DropAcknowledged,
        Self::DropRun,
        Self::DropPureAcknowledgements,
        Self::ShiftClock,
        Self::RewriteAddresses,
        Self::AddStranger,
        Self::AddNeighbour,
        Self::SwapClients,
        Self::CutEnd,
        Self::CutBegin,
    ];

    /// The time by which a connection of the changed capture is later than before.
    pub const fn shift(self) -> Span {
        match self {
            // No multiple of any interval of the analysis.
            Self::ShiftClock => Span::from_micros(3_601_234_567),
            _ => Span::ZERO,
        }
    }

    /// The route of a connection before the change.
    pub fn original(self, route: &Route) -> Route {
        if self == Self::RewriteAddresses { rewritten(route) } else { *route }
    }

    /// The changed capture.
    pub fn apply(self, packets: &[Decoded<'static>], random: &mut RandomStream) -> Packets {
        let mut changed = match self {
            Self::Offload => merged(packets, |one, other| other.time.since(one.time) <= Span::from_millis(1)),
            Self::MergeOne => merge_one(packets, random),
            Self::Split => {
                // By the sequence number: two captures of one segment are cut in the same way.
                let chosen = random.bits() as u32;
                split(packets, |segment| (segment.sequence ^ chosen).wrapping_mul(0x9E37_79B1) < u32::MAX / 20)
            }
            Self::DropAcknowledged => drop_acknowledged(packets, |_| random.below(50) == 0),
            Self::DropRun => {
                let first = random.below(packets.len().max(1) as u64) as usize;
                let mut left = 10;
                drop_acknowledged(packets, |index| {
                    let drops = index >= first && left > 0;
                    left -= usize::from(drops);
                    drops
                })
            }
            Self::DropPureAcknowledgements => filtered(packets, |segment| {
                let control = Flags::SYN | Flags::FIN | Flags::RST;
                segment.length > 0 || segment.flags.0 & control.0 != 0 || random.below(50) > 0
            }),
            Self::ShiftClock => each(packets, |_, time| *time += self.shift()),
            Self::RewriteAddresses => each(packets, |route, _| *route = rewritten(route)),
            Self::AddStranger => with_stranger(packets),
            Self::AddNeighbour => with_neighbour(packets),
            Self::SwapClients => by_client(packets),
            Self::CutEnd => packets[..packets.len() / 2 + random.below(packets.len() as u64 / 2 + 1) as usize].to_vec(),
            Self::CutBegin => packets[random.below(packets.len() as u64 / 2 + 1) as usize..].to_vec(),
        };
        for (packet, number) in changed.iter_mut().zip(1..) {
            match packet {
                Decoded::Segment(segment) => segment.frame = number,
                Decoded::Datagram(datagram) => datagram.frame = number,
                Decoded::Skipped(_) => {}
            }
        }
        changed
    }
}

/// Changes the route and the time of each packet.
fn each(packets: &[Decoded<'static>], change: impl Fn(&mut Route, &mut Instant)) -> Packets {
    let mut changed = packets.to_vec();
    for packet in &mut changed {
        match packet {
            Decoded::Segment(segment) => change(&mut segment.route, &mut segment.time),
            Decoded::Datagram(datagram) => change(&mut datagram.route, &mut datagram.time),
            Decoded::Skipped(_) => {}
        }
    }
    changed
}

/// The packets without the segments that `keep` refuses.
fn filtered(packets: &[Decoded<'static>], mut keep: impl FnMut(&Segment<'static>) -> bool) -> Packets {
    let kept = packets.iter().filter(|packet| match packet {
        Decoded::Segment(segment) => keep(segment),
        _ => true,
    });
    kept.copied().collect()
}

/// Whether an interface may join two segments: data in sequence, and all else equal.
fn adjacent(one: &Segment<'_>, other: &Segment<'_>) -> bool {
    one.route == other.route
        && one.length > 0
        && other.length > 0
        && other.sequence == one.sequence.wrapping_add(one.length)
        && one.acknowledgment == other.acknowledgment
        && one.window == other.window
        && one.flags == Flags::ACK
        && other.flags.0 & !Flags::PSH.0 == Flags::ACK.0
        && one.options.sack.as_slice().is_empty()
        && other.options.sack.as_slice().is_empty()
        && one.length + other.length <= LONGEST
}

fn join(one: &mut Segment<'_>, other: &Segment<'_>) {
    one.length += other.length;
    one.captured += other.captured;
    one.flags |= other.flags;
}

/// Joins segments that follow each other directly, where `joins` allows that.
fn merged(packets: &[Decoded<'static>], joins: impl Fn(&Segment<'_>, &Segment<'_>) -> bool) -> Packets {
    let mut changed: Packets = Vec::with_capacity(packets.len());
    for packet in packets {
        if let Decoded::Segment(other) = packet
            && let Some(Decoded::Segment(one)) = changed.last_mut()
            && adjacent(one, other)
            && joins(one, other)
        {
            join(one, other);
        } else {
            changed.push(*packet);
        }
    }
    changed
}

fn merge_one(packets: &[Decoded<'static>], random: &mut RandomStream) -> Packets {
    let pairs: Vec<usize> = (1..packets.len())
        .filter(|&index| match (&packets[index - 1], &packets[index]) {
            (Decoded::Segment(one), Decoded::Segment(other)) => adjacent(one, other) && one.length == other.length,
            _ => false,
        })
        .collect();
    let mut changed = packets.to_vec();
    if let Some(&index) = pairs.get(random.below(pairs.len().max(1) as u64) as usize)
        && let Decoded::Segment(other) = changed.remove(index)
        && let Decoded::Segment(one) = &mut changed[index - 1]
    {
        join(one, &other);
    }
    changed
}

/// Cuts segments with data in two.
fn split(packets: &[Decoded<'static>], mut which: impl FnMut(&Segment<'_>) -> bool) -> Packets {
    let mut changed = Vec::with_capacity(packets.len());
    for packet in packets {
        match packet {
            Decoded::Segment(segment) if segment.length > 1 && !has_syn(segment) && which(segment) => {
                let length = segment.length.div_ceil(2);
                let captured = segment.captured.min(length);
                let ends = Flags::FIN | Flags::RST | Flags::PSH;
                let flags = Flags(segment.flags.0 & !ends.0);
                changed.push(Decoded::Segment(Segment { length, captured, flags, ..*segment }));
                changed.push(Decoded::Segment(Segment {
                    sequence: segment.sequence.wrapping_add(length),
                    length: segment.length - length,
                    captured: segment.captured - captured,
                    // A packet of its own.
                    identification: segment.identification.map(|number| number.wrapping_add(0x8000)),
                    ..*segment
                }));
            }
            other => changed.push(*other),
        }
    }
    changed
}

fn has_syn(segment: &Segment<'_>) -> bool {
    segment.flags.contains(Flags::SYN)
}

/// Leaves out segments with data whose last byte a later segment of the other end acknowledges, and
/// that no other segment carries. `which` gets the index of the packet.
fn drop_acknowledged(packets: &[Decoded<'static>], mut which: impl FnMut(usize) -> bool) -> Packets {
    // The highest acknowledgement from each end until the capture's end, from behind.
    let mut acknowledged: BTreeMap<Route, u32> = BTreeMap::new();
    let mut droppable = vec![false; packets.len()];
    for (index, packet) in packets.iter().enumerate().rev() {
        let Decoded::Segment(segment) = packet else { continue };
        let end = segment.sequence.wrapping_add(segment.length);
        let control = Flags::SYN | Flags::FIN | Flags::RST;
        droppable[index] = segment.length > 0
            && segment.flags.0 & control.0 == 0
            && acknowledged.get(&segment.route.reversed()).is_some_and(|&number| number.wrapping_sub(end) < 1 << 31);
        if segment.flags.contains(Flags::ACK) && !segment.flags.contains(Flags::RST) {
            acknowledged.entry(segment.route).or_insert(segment.acknowledgment);
        }
    }
    let kept = packets.iter().enumerate().filter(|(index, _)| !(droppable[*index] && which(*index)));
    kept.map(|(_, packet)| *packet).collect()
}

/// The same route with other addresses and ports; the change reverses itself.
fn rewritten(route: &Route) -> Route {
    let end = |Endpoint { address, port }: Endpoint| {
        let address = match address {
            IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() ^ 0x0102_0304)),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() ^ 0x0102_0304)),
        };
        Endpoint { address, port: port ^ OTHER_PORT }
    };
    Route { source: end(route.source), destination: end(route.destination), tunnel: route.tunnel }
}

/// The same packets a second time, between other hosts.
fn with_stranger(packets: &[Decoded<'static>]) -> Packets {
    let mut changed = Vec::with_capacity(2 * packets.len());
    for packet in packets {
        changed.push(*packet);
        if let Decoded::Segment(segment) = packet {
            changed.push(Decoded::Segment(Segment { route: rewritten(&segment.route), ..*segment }));
        }
    }
    changed
}

/// The handshake of the first connection, a second time on another port.
fn with_neighbour(packets: &[Decoded<'static>]) -> Packets {
    let Some(first) = packets.iter().find_map(|packet| match packet {
        Decoded::Segment(segment) if has_syn(segment) => Some(segment.route),
        _ => None,
    }) else {
        return packets.to_vec();
    };
    let port = first.source.port ^ NEIGHBOUR_PORT;
    let mut left = 3;
    let mut changed = Vec::with_capacity(packets.len() + left);
    for packet in packets {
        changed.push(*packet);
        if let Decoded::Segment(segment) = packet
            && left > 0
            && segment.length == 0
            && (segment.route == first || segment.route == first.reversed())
        {
            left -= 1;
            let mut copy = *segment;
            let client = if copy.route == first { &mut copy.route.source } else { &mut copy.route.destination };
            client.port = port;
            changed.push(Decoded::Segment(copy));
        }
    }
    changed
}

/// The packets of each client, the last client first.
fn by_client(packets: &[Decoded<'static>]) -> Packets {
    // The client of a pair of hosts is the source of its first packet.
    let mut clients: BTreeMap<(IpAddr, IpAddr), IpAddr> = BTreeMap::new();
    let mut order: Vec<IpAddr> = Vec::new();
    let mut own: BTreeMap<IpAddr, Packets> = BTreeMap::new();
    for packet in packets {
        let route = match packet {
            Decoded::Segment(segment) => segment.route,
            Decoded::Datagram(datagram) => datagram.route,
            Decoded::Skipped(_) => continue,
        };
        let (one, other) = (route.source.address, route.destination.address);
        let client = *clients.entry((one.min(other), one.max(other))).or_insert(one);
        if !order.contains(&client) {
            order.push(client);
        }
        own.entry(client).or_default().push(*packet);
    }
    order.iter().rev().flat_map(|client| own.remove(client).unwrap_or_default()).collect()
}
