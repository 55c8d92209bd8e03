//! The fields of each packet of a capture that a join needs.

use std::collections::BTreeMap;

use airpath_core::Instant;
use airpath_wire::tcp::Flags;

use airpath_observe::flows::{FlowNumber, Listener};
use airpath_observe::{Connection, End, Observation};
use airpath_wire::segment::{Route, Segment};

/// The fields of a packet in one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDigest {
    /// Time, by that capture's clock.
    pub time: Instant,
    /// Frame.
    pub frame: u64,
    /// Stream offset of its first byte; the SYN lies at -1.
    pub offset: i64,
    /// Bytes of payload.
    pub length: u32,
    /// Acknowledgment number of its header.
    pub acknowledgment: u32,
    /// Value of its timestamp.
    pub timestamp: Option<u32>,
    /// Identification of the IPv4 packet; `None` in IPv6, and where it is 0 as in atomic packets
    /// (RFC 6864).
    pub identification: Option<u16>,
    /// Window, before scaling.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// Whether it is a retransmission of bytes in this capture.
    pub resent: bool,
    /// Whether the other end has refused it, because its window was closed.
    pub refused: bool,
}

impl PacketDigest {
    /// Offset after its last byte.
    pub const fn end(&self) -> i64 {
        self.offset.saturating_add(self.length as i64)
    }

    /// Whether it occupies sequence space: data, SYN or FIN.
    pub const fn is_counted(&self) -> bool {
        self.length > 0 || self.flags.contains(Flags::SYN) || self.flags.contains(Flags::FIN)
    }
}

/// Listener that keeps the packets of a capture by connection.
#[derive(Debug, Default)]
pub struct CaptureDigest {
    pub(super) connections: BTreeMap<FlowNumber, ConnectionDigest>,
}

/// A connection in one capture.
#[derive(Debug)]
pub(super) struct ConnectionDigest {
    pub flow: FlowNumber,
    /// From client to server.
    pub route: Route,
    /// By sender.
    pub directions: [DirectionDigest; 2],
}

#[derive(Debug, Default)]
pub(super) struct DirectionDigest {
    pub packets: Vec<PacketDigest>,
    /// Sequence number of offset 0.
    pub base: u32,
    /// Whether the SYN is among the packets: then offset 0 is the first byte.
    pub has_syn: bool,
}

impl CaptureDigest {
    /// The connections, in the order of their numbers.
    pub(super) fn finish(self) -> Vec<ConnectionDigest> {
        self.connections.into_values().collect()
    }
}

impl Listener for CaptureDigest {
    fn observed(&mut self, flow: FlowNumber, seen: &Observation, segment: &Segment<'_>, connection: &Connection) {
        let connection_digest = self.connections.entry(flow).or_insert_with(|| ConnectionDigest {
            flow,
            route: *connection.route(),
            directions: [DirectionDigest::default(), DirectionDigest::default()],
        });
        let direction = &mut connection_digest.directions[seen.from as usize];
        let is_syn = seen.flags.contains(Flags::SYN);
        if direction.packets.is_empty() || is_syn {
            // Modulo 2^32, as sequence numbers are.
            direction.base = segment.sequence.wrapping_sub(seen.offset as u32);
            direction.has_syn |= is_syn;
        }
        direction.packets.push(PacketDigest {
            time: seen.time,
            frame: seen.frame,
            offset: seen.offset,
            length: seen.length,
            acknowledgment: if seen.flags.contains(Flags::ACK) { segment.acknowledgment } else { 0 },
            timestamp: segment.options.timestamps.map(|timestamps| timestamps.value),
            identification: segment.identification.filter(|identification| *identification != 0),
            window: segment.window,
            flags: seen.flags,
            resent: seen.retransmission.is_some(),
            refused: false,
        });
        let closes = seen.window == 0 && !seen.flags.contains(Flags::RST);
        if let Some(acknowledged) = seen.acknowledged.filter(|_| closes) {
            connection_digest.directions[seen.from.other() as usize].refuse(acknowledged);
        }
    }
}

impl DirectionDigest {
    /// The other end has closed its window: it refuses the data beyond `acknowledged`.
    fn refuse(&mut self, acknowledged: i64) {
        let beyond = |packet: &&mut PacketDigest| packet.length > 0 && packet.offset >= acknowledged;
        self.packets.iter_mut().rev().take_while(beyond).for_each(|packet| packet.refused = true);
    }

    /// The time of the first packet. Packets that the near end sent are in the order of sending,
    /// those that it received in the order of arrival.
    pub(super) fn first_time(&self) -> Option<Instant> {
        self.packets.first().map(|packet| packet.time)
    }
}

impl ConnectionDigest {
    pub(super) const fn sent_by(&self, end: End) -> &DirectionDigest {
        &self.directions[end as usize]
    }
}
