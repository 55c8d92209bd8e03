//! Datagrams on the path of a scenario.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use airpath_core::{Direction, Dropped, FlowId, Instant, Packet, SegmentInfo, SegmentLookup, Slot, UserId};
use airpath_path::{Contents, PacketStore, Path, PolledPath, Side};
use airpath_scenario::PlannedPath;
use airpath_wire::checksum::Sum;
use airpath_wire::ip::Protocol;
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::udp::UdpHeader;

use crate::sockets::{Datagram, address_of};

/// Bytes of the headers of a datagram.
const HEADERS: usize = Ipv4Header::LENGTH + UdpHeader::LENGTH;
/// Largest IP packet of the path, that of Ethernet and of the interfaces of `airpath link`.
const MTU: usize = 1500;
/// Time to live of new packets: the default of Linux.
const TIME_TO_LIVE: u8 = 64;

/// The path between the hosts, and the datagrams on it.
pub struct Network {
    path: PolledPath<'static>,
    store: DatagramStore,
    /// Number of each flow, by the addresses of mobile and server.
    flows: BTreeMap<[SocketAddrV4; 2], FlowId>,
    packets: u64,
}

impl Network {
    pub fn new(planned: PlannedPath) -> Self {
        let path = PolledPath::new(Path::new(planned.topology, None), planned.changes);
        Self { path, store: DatagramStore::default(), flows: BTreeMap::new(), packets: 0 }
    }

    /// Sends a datagram. It is lost if it is larger than the MTU or not for the other host, as with
    /// real sockets, whose errors quinn ignores.
    pub fn send(&mut self, now: Instant, datagram: Datagram) {
        let size = HEADERS + datagram.payload.len();
        let (source, destination) = (datagram.source, datagram.destination);
        let is_from = |side: Side| *source.ip() == address_of(side) && *destination.ip() == address_of(side.opposite());
        let direction = Direction::BOTH.into_iter().find(|direction| is_from(Side::at_start_of(*direction)));
        let Some(direction) = direction.filter(|_| size <= MTU) else { return };
        let key = if direction == Direction::Up { [source, destination] } else { [destination, source] };
        let next = FlowId(self.flows.len() as u32);
        let flow = *self.flows.entry(key).or_insert(next);
        let ecn = datagram.ecn;
        let slot = self.store.insert(datagram);
        let packet = Packet { id: self.packets, size: size as u32, flow, user: UserId::new(0), ecn, slot };
        self.packets += 1;
        self.path.push(now, direction, packet, &mut self.store);
    }

    /// The next datagram that has arrived by `now`.
    pub fn receive(&mut self, now: Instant) -> Option<Datagram> {
        let (_, departure) = self.path.pop(now, &mut self.store)?;
        let datagram = self.store.take(departure.packet.slot);
        // A queue may have marked the packet as CE (RFC 3168 §5).
        Some(Datagram { ecn: departure.packet.ecn, ..datagram })
    }

    /// When to call [`Self::receive`] next.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.path.next_wakeup()
    }

    /// Packets that were sent, and those of them that the path dropped.
    pub const fn counts(&self) -> (u64, u64) {
        (self.packets, self.store.dropped)
    }
}

/// The datagrams on the path. Slots are reused.
#[derive(Default)]
struct DatagramStore {
    datagrams: Vec<Option<Datagram>>,
    free: Vec<Slot>,
    dropped: u64,
}

impl DatagramStore {
    fn insert(&mut self, datagram: Datagram) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.datagrams.push(None);
            Slot(self.datagrams.len() as u32 - 1)
        });
        self.datagrams[slot.0 as usize] = Some(datagram);
        slot
    }

    fn take(&mut self, slot: Slot) -> Datagram {
        self.free.push(slot);
        self.datagrams[slot.0 as usize].take().expect("a packet on the path has a datagram")
    }
}

impl SegmentLookup for DatagramStore {
    fn segment(&self, _: Slot) -> Option<SegmentInfo> {
        None
    }

    fn headers(&self, _: Direction, packet: &Packet, out: &mut Vec<u8>) -> bool {
        let Some(Datagram { source, destination, payload, .. }) = &self.datagrams[packet.slot.0 as usize] else {
            return false;
        };
        let length = UdpHeader::LENGTH + payload.len();
        let ip = Ipv4Header {
            dscp: 0,
            ecn: packet.ecn,
            total_length: packet.size as u16,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            time_to_live: TIME_TO_LIVE,
            protocol: Protocol::UDP,
            source: *source.ip(),
            destination: *destination.ip(),
        };
        let udp = UdpHeader { source_port: source.port(), destination_port: destination.port(), length: length as u16 };
        let mut headers = [0; HEADERS];
        ip.emit(&mut headers);
        let sum = Sum::pseudo_v4(ip.source, ip.destination, Protocol::UDP, length as u32).and(payload);
        udp.emit(&mut headers[Ipv4Header::LENGTH..], sum);
        out.extend_from_slice(&headers);
        true
    }
}

impl PacketStore for DatagramStore {
    fn take_dropped(&mut self, dropped: &Dropped) {
        self.take(dropped.packet.slot);
        self.dropped += 1;
    }

    fn take_absorbed(&mut self, packet: &Packet) {
        self.take(packet.slot);
    }

    /// Only copies: middleboxes create segments of TCP and errors of ICMP, which no socket of a
    /// host receives.
    fn create(&mut self, _: Instant, _: Direction, contents: Contents<'_>) -> Option<Slot> {
        match contents {
            Contents::CopyOf(slot) => {
                let copy = self.datagrams[slot.0 as usize].clone()?;
                Some(self.insert(copy))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Ecn;

    use super::*;

    #[test]
    fn headers_are_those_of_ipv4_and_udp() {
        let [source, destination] = [Side::Mobile, Side::Server].map(|side| SocketAddrV4::new(address_of(side), 443));
        let payload = vec![7; 100];
        let mut store = DatagramStore::default();
        let slot = store.insert(Datagram { source, destination, ecn: Ecn::Ect0, payload: payload.clone() });
        let packet = Packet { id: 0, size: 128, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::Ce, slot };
        let mut bytes = Vec::new();
        assert!(store.headers(Direction::Up, &packet, &mut bytes));
        bytes.extend_from_slice(&payload);
        let (ip, rest) = Ipv4Header::parse(&bytes).expect("the header is valid");
        assert_eq!((ip.ecn, ip.source, ip.destination), (Ecn::Ce, *source.ip(), *destination.ip()));
        let (udp, rest) = UdpHeader::parse(rest).expect("the header is valid");
        assert_eq!((udp.destination_port, rest), (443, &payload[..]));
        let sum = Sum::pseudo_v4(ip.source, ip.destination, Protocol::UDP, 108).and(&bytes[Ipv4Header::LENGTH..]);
        assert!(sum.holds());
    }
}
