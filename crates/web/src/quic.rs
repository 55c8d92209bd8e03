//! Passive observation of QUIC (RFC 9000, RFC 9369): flows, handshake time, and round trips by the
//! spin bit.
//!
//! Nothing is decrypted: it reads the version-independent header fields (RFC 8999), the lengths of
//! long headers, and the spin bit.

mod header;
mod spin;

use std::collections::BTreeMap;

use airpath_core::{Instant, Span};

use crate::stream::Mark;
use airpath_observe::End;
use airpath_wire::segment::Endpoint;
use header::{FixedBit, Kind, Packet};
use spin::Observer;

pub use spin::{Spin, SpinSample};

/// The observable figures of a QUIC connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Quic {
    /// Its number, from 1 in the order of first datagrams.
    pub number: u64,
    /// The sender of the first packet.
    pub client: Endpoint,
    /// The other end.
    pub server: Endpoint,
    /// The version of the last long header.
    pub version: u32,
    /// The connection id that the client chose for the server's first packets.
    pub original_connection_id: Box<[u8]>,
    /// The first datagram.
    pub first: Mark,
    /// The last one.
    pub last: Mark,
    /// The server's first Initial packet.
    pub answered: Option<Mark>,
    /// The client's first packet with a short header, which it can send when the handshake is over.
    pub established: Option<Mark>,
    /// Whether the server sent Retry or Version Negotiation.
    pub retried: bool,
    /// How often the client had another address or port: with the same connection ID, as after a
    /// change of its NAT.
    pub address_changes: u64,
    /// Datagrams by client and server.
    pub datagrams: [u64; 2],
    /// Bytes of UDP payload by client and server.
    pub bytes: [u64; 2],
    /// The spin bit.
    pub spin: Spin,
}

impl Quic {
    /// The time from the client's first packet to its first one after the handshake.
    pub fn handshake_time(&self) -> Option<Span> {
        Some(self.established?.time.since(self.first.time))
    }
}

/// A datagram of a QUIC flow, as far as the headers of its packets show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicDatagram {
    /// The number of its flow.
    pub flow: u64,
    /// Its time and its frame.
    pub mark: Mark,
    /// The end that sent it.
    pub from: End,
    /// Bytes of UDP payload.
    pub length: u32,
    /// Whether it has an Initial packet.
    pub has_initial: bool,
    /// The spin bit of its packet with a short header.
    pub spin: Option<bool>,
    /// Whether the client has sent a packet with a short header after an answer of the server.
    pub is_established: bool,
}

/// The idle time after which a flow is over. RFC 9000 §10.1 leaves the time-out to the ends; half a
/// minute is usual.
const IDLE: Span = Span::from_secs(120);

/// Datagrams between two searches for flows that are over.
const SWEEP: u64 = 4096;

/// A connection ID of at least this length identifies a connection to its server: IDs are random
/// (RFC 9000 §5.1), and 64 bits of one are seldom those of another.
const IDENTIFYING: usize = 8;

/// The client and the server of a flow, as they were at its begin.
type Ends = (Endpoint, Endpoint);

/// The QUIC flows of a capture.
#[derive(Debug, Default)]
pub struct QuicFlows {
    open: BTreeMap<Ends, Flow>,
    /// The flows of clients with an address or port that they did not have at the begin.
    moved: BTreeMap<Ends, Ends>,
    ids: ServerIds,
    ended: Vec<Quic>,
    begun: u64,
    datagrams: u64,
}

#[derive(Debug)]
struct Flow {
    quic: Quic,
    spin: Observer,
    /// Lengths of the connection IDs in short headers of packets to client and server.
    id_lengths: [usize; 2],
    /// The connection ID of the last packet with a short header to the server; whether it is new.
    server_id: Box<[u8]>,
    has_new_id: bool,
}

/// The connection IDs in packets to servers that identify a flow.
#[derive(Debug, Default)]
struct ServerIds {
    flows: BTreeMap<Box<[u8]>, Ends>,
    /// Their lengths, as bits.
    lengths: u32,
}

impl ServerIds {
    fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Takes a datagram of a flow, and stores its connection ID.
    fn take(
        &mut self,
        flow: &mut Flow,
        ends: Ends,
        from: End,
        mark: Mark,
        length: u32,
        captured: &[u8],
    ) -> QuicDatagram {
        let datagram = flow.datagram(from, mark, length, captured);
        if std::mem::take(&mut flow.has_new_id) && flow.server_id.len() >= IDENTIFYING {
            self.lengths |= 1 << flow.server_id.len();
            self.flows.insert(flow.server_id.clone(), ends);
        }
        datagram
    }

    /// The flow to a server whose connection ID a datagram has.
    fn find(&self, server: Endpoint, captured: &[u8]) -> Option<Ends> {
        let lengths = (IDENTIFYING..=header::LONGEST_ID).filter(|length| self.lengths & 1 << length != 0);
        let found = lengths.filter_map(|length| self.flows.get(captured.get(1..=length)?));
        found.copied().find(|(_, end)| *end == server)
    }
}

impl QuicFlows {
    /// Takes a UDP datagram with `length` bytes of payload, the first of them in `captured`. `None`
    /// for one that neither begins a QUIC flow nor belongs to one.
    pub fn datagram(
        &mut self,
        mark: Mark,
        source: Endpoint,
        destination: Endpoint,
        length: u32,
        captured: &[u8],
    ) -> Option<QuicDatagram> {
        self.datagrams += 1;
        if self.datagrams.is_multiple_of(SWEEP) {
            self.sweep(mark.time);
        }
        for (ends, from) in [((source, destination), End::Client), ((destination, source), End::Server)] {
            if let Some(flow) = self.open.get_mut(&ends) {
                return Some(self.ids.take(flow, ends, from, mark, length, captured));
            }
        }
        if let Some((ends, from)) = self.find_moved(source, destination, captured) {
            let flow = self.open.get_mut(&ends)?;
            return Some(self.ids.take(flow, ends, from, mark, length, captured));
        }
        let mut flow = Flow::begin(self.begun + 1, mark, source, destination, length, captured)?;
        self.begun += 1;
        let datagram = flow.datagram(End::Client, mark, length, captured);
        self.open.insert((source, destination), flow);
        Some(datagram)
    }

    /// The flow of a client that has another address or port than at its begin, and the end that
    /// sent the datagram.
    fn find_moved(&mut self, source: Endpoint, destination: Endpoint, captured: &[u8]) -> Option<(Ends, End)> {
        // A long header begins another flow.
        if self.ids.is_empty() || !captured.first().is_some_and(|first| header::is_short(*first)) {
            return None;
        }
        let (to_server, to_client) = ((source, destination), (destination, source));
        if let Some(ends) = self.moved.get(&to_client) {
            return Some((*ends, End::Server));
        }
        if let Some(ends) = self.moved.get(&to_server) {
            return Some((*ends, End::Client));
        }
        let ends = self.ids.find(destination, captured)?;
        self.open.get_mut(&ends)?.quic.address_changes += 1;
        self.moved.insert(to_server, ends);
        Some((ends, End::Client))
    }

    /// Takes the flows that are over since the last call: nothing was captured of them for two
    /// minutes.
    pub fn take_ended(&mut self) -> Vec<Quic> {
        std::mem::take(&mut self.ended)
    }

    /// Ends the capture; returns all flows in the order in which they began.
    pub fn finish(mut self) -> Vec<Quic> {
        self.sweep(Instant::FAR_FUTURE);
        self.ended.sort_by_key(|quic| quic.number);
        self.ended
    }

    fn sweep(&mut self, now: Instant) {
        let ended = &mut self.ended;
        self.open.retain(|_, flow| {
            let over = now.since(flow.quic.last.time) > IDLE;
            if over {
                ended.push(flow.outcome());
            }
            !over
        });
        let open = &self.open;
        self.ids.flows.retain(|_, ends| open.contains_key(ends));
        self.moved.retain(|_, ends| open.contains_key(ends));
    }
}

impl Flow {
    /// A new flow, if the datagram has an Initial packet and the size that RFC 9000 §14.1 requires.
    fn begin(
        number: u64,
        mark: Mark,
        source: Endpoint,
        destination: Endpoint,
        length: u32,
        captured: &[u8],
    ) -> Option<Self> {
        let packet = header::parse(captured, 0, FixedBit::Required)?;
        if packet.kind != Kind::Initial || length < 1200 {
            return None;
        }
        let quic = Quic {
            number,
            client: source,
            server: destination,
            version: packet.version,
            original_connection_id: packet.destination_id.into(),
            first: mark,
            last: mark,
            answered: None,
            established: None,
            retried: false,
            address_changes: 0,
            datagrams: [0; 2],
            bytes: [0; 2],
            spin: Spin::default(),
        };
        let id_lengths = [packet.source_id.len(), 0];
        Some(Self { quic, spin: Observer::default(), id_lengths, server_id: Box::default(), has_new_id: false })
    }

    fn datagram(&mut self, from: End, mark: Mark, length: u32, mut captured: &[u8]) -> QuicDatagram {
        self.quic.last = mark;
        self.quic.datagrams[from as usize] += 1;
        self.quic.bytes[from as usize] += u64::from(length);
        // Packets with long headers may share a datagram; one with a short header is the last (RFC
        // 9000 §12.2).
        let id_length = self.id_lengths[from.other() as usize];
        let (mut has_initial, mut spin) = (false, None);
        while let Some(packet) = header::parse(captured, id_length, FixedBit::Greased) {
            self.packet(from, mark, &packet);
            has_initial |= packet.kind == Kind::Initial;
            spin = spin.or((packet.kind == Kind::Short).then_some(packet.spin));
            captured = match packet.length.and_then(|length| captured.get(length..)) {
                // Zeros behind the last packet are padding.
                Some(rest) if rest.first().is_some_and(|first| *first != 0) => rest,
                _ => break,
            };
        }
        let (flow, is_established) = (self.quic.number, self.quic.established.is_some());
        QuicDatagram { flow, mark, from, length, has_initial, spin, is_established }
    }

    fn packet(&mut self, from: End, mark: Mark, packet: &Packet<'_>) {
        if packet.kind != Kind::Short {
            self.id_lengths[from as usize] = packet.source_id.len();
        }
        match (packet.kind, from) {
            (Kind::Initial | Kind::Handshake | Kind::ZeroRtt, _) => self.quic.version = packet.version,
            (Kind::Retry | Kind::VersionNegotiation, _) => self.quic.retried = true,
            (Kind::Short, _) => {}
        }
        match (packet.kind, from) {
            (Kind::Initial, End::Server) => {
                self.quic.answered.get_or_insert(mark);
            }
            (Kind::Short, _) => {
                if from == End::Client && self.quic.answered.is_some() {
                    self.quic.established.get_or_insert(mark);
                    if *self.server_id != *packet.destination_id {
                        (self.server_id, self.has_new_id) = (packet.destination_id.into(), true);
                    }
                }
                self.spin.packet(from, mark.time, packet.spin);
            }
            _ => {}
        }
    }

    fn outcome(&self) -> Quic {
        let handshake = self.quic.answered.map(|mark| mark.time.since(self.quic.first.time));
        Quic { spin: self.spin.outcome(handshake), ..self.quic.clone() }
    }
}

#[cfg(test)]
mod tests;
