//! Keeps what is needed of each packet.

use std::collections::BTreeMap;

use airpath_core::Instant;
use airpath_wire::tcp::Flags;

use airpath_observe::flows::{FlowNumber, Listener};
use airpath_observe::{Connection, End, Observation};
use airpath_wire::segment::{Route, Segment};

/// A packet as one capture has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it passed, by that capture's clock.
    pub time: Instant,
    /// Its frame there.
    pub frame: u64,
    /// Stream offset of its first byte; the SYN lies at -1.
    pub offset: i64,
    /// Bytes of payload.
    pub length: u32,
    /// What it acknowledges, as in its header.
    pub acknowledgment: u32,
    /// Value of its timestamp.
    pub timestamp: Option<u32>,
    /// Identification of the IP packet; `None` in IPv6, and where it is 0 as in packets that are not to be fragmented (RFC 6864).
    pub identification: Option<u16>,
    /// Window, before scaling.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// Whether it repeats bytes that had passed there before.
    pub resent: bool,
}

impl Packet {
    /// Offset behind its last byte.
    pub const fn end(&self) -> i64 {
        self.offset.saturating_add(self.length as i64)
    }

    /// Whether it takes room in the sequence: data, SYN or FIN.
    pub const fn is_counted(&self) -> bool {
        self.length > 0 || self.flags.contains(Flags::SYN) || self.flags.contains(Flags::FIN)
    }
}

/// Listens to a capture, and keeps the packets of its connections.
#[derive(Debug, Default)]
pub struct Tap {
    pub(super) connections: BTreeMap<FlowNumber, Tapped>,
}

/// A connection as one capture has it.
#[derive(Debug)]
pub(super) struct Tapped {
    pub flow: FlowNumber,
    /// From client to server.
    pub route: Route,
    /// By who sent it.
    pub directions: [TappedDirection; 2],
}

#[derive(Debug, Default)]
pub(super) struct TappedDirection {
    pub packets: Vec<Packet>,
    /// Sequence number of offset 0.
    pub base: u32,
    /// Whether the SYN is among the packets, so that offset 0 is the first byte for sure.
    pub has_syn: bool,
}

impl Tap {
    /// The connections, in the order of their numbers.
    pub(super) fn finish(self) -> Vec<Tapped> {
        self.connections.into_values().collect()
    }
}

impl Listener for Tap {
    fn observed(&mut self, flow: FlowNumber, seen: &Observation, segment: &Segment<'_>, connection: &Connection) {
        let tapped = self.connections.entry(flow).or_insert_with(|| Tapped {
            flow,
            route: *connection.route(),
            directions: [TappedDirection::default(), TappedDirection::default()],
        });
        let direction = &mut tapped.directions[seen.from as usize];
        let is_syn = seen.flags.contains(Flags::SYN);
        if direction.packets.is_empty() || is_syn {
            // Modulo 2^32, as sequence numbers are.
            direction.base = segment.sequence.wrapping_sub(seen.offset as u32);
            direction.has_syn |= is_syn;
        }
        direction.packets.push(Packet {
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
        });
    }
}

impl TappedDirection {
    /// The packets that an end near this capture sent are in the order of their sending; those that it received, of their arrival.
    pub(super) fn first_time(&self) -> Option<Instant> {
        self.packets.first().map(|packet| packet.time)
    }
}

impl Tapped {
    pub(super) const fn sent_by(&self, end: End) -> &TappedDirection {
        &self.directions[end as usize]
    }
}
