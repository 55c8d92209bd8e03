//! Conversations between mobiles and servers through a proxy, under a virtual clock.
//!
//! ```text
//! server ⇄ wired lines ⇄ path with the proxy ⇄ radio lines ⇄ mobile
//! ```
//!
//! Payload is real: each end compares what it receives with what the other end has sent.

mod byte_store;
mod line;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};

use airpath_core::{ComponentId, Context, Direction, FlowId, Instant, Memory, Packet, Seed, Sink, UserId};
use airpath_path::route::Plan;
use airpath_path::testing::Arrival;
use airpath_path::{Hop, Middlebox, PacketStore, Path, PolledPath, Route, Side, Topology};
use airpath_tcp::{Connection, Identity, Outcome, Profile, Segment, State};
use airpath_wire::icmp::{IcmpError, IcmpErrorKind};
use airpath_wire::segment::Endpoint;

use byte_store::{ByteStore, merge, split};
pub use line::Line;

/// Bytes of an IPv4 header.
const IP_HEADER: u32 = 20;

/// What one end does.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// Bytes that it sends.
    pub sends: u64,
    /// Bytes that it receives before it sends.
    pub after: u64,
    /// Whether it closes only after the other end has.
    pub closes_last: bool,
    /// It aborts after it has received this many bytes.
    pub aborts_at: Option<u64>,
    /// It reads only from this time on.
    pub reads_from: Instant,
}

impl Script {
    pub const fn sends(sends: u64, after: u64) -> Self {
        Self { sends, after, closes_last: false, aborts_at: None, reads_from: Instant::ZERO }
    }
}

/// A conversation.
#[derive(Clone, Copy, Debug)]
pub struct Talk {
    pub start: Instant,
    pub client: Side,
    pub mobile: Script,
    pub server: Script,
    /// Whether the server refuses the connection.
    pub refused: bool,
    /// Whether both ends offer ECN.
    pub ecn: bool,
    /// Whether the other side opens the connection, too, at the same time.
    pub simultaneous: bool,
}

impl Talk {
    /// A download of `bytes` after a request of 100 bytes.
    pub const fn download(start: Instant, bytes: u64) -> Self {
        Self {
            start,
            client: Side::Mobile,
            mobile: Script { closes_last: true, ..Script::sends(100, 0) },
            server: Script::sends(bytes, 100),
            refused: false,
            ecn: false,
            simultaneous: false,
        }
    }
}

/// What an end sends instead of its script: it is given all that has arrived in order, and returns
/// what it sends now and whether it closes then.
pub type Speaker = Box<dyn FnMut(&[u8]) -> (Vec<u8>, bool)>;

/// One end of a conversation.
pub struct End {
    pub connection: Connection,
    /// With it, the script has no effect.
    pub speaker: Option<Speaker>,
    /// What the speaker has sent.
    spoken: Vec<u8>,
    script: Script,
    written: bool,
    /// Whether it has closed its stream, after everything that it sends.
    pub closed: bool,
    /// What has arrived, by offset.
    pub received: Vec<u8>,
    /// When all of the other end's bytes had arrived.
    pub complete: Option<Instant>,
}

/// The byte at `offset` of the stream that `side` of `flow` sends.
fn pattern(flow: u32, side: Side, offset: u64) -> u8 {
    (offset.wrapping_mul(31) ^ (offset >> 8) ^ u64::from(flow) << 3 ^ side as u64) as u8
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Start(usize),
    Timer(usize, u8),
    /// A packet enters the path, by its index in `transit`.
    Enters(usize),
    /// A packet reaches an end.
    Arrives(usize),
}

/// All conversations, the lines and the path between them.
pub struct Network<'a> {
    pub ends: Vec<[End; 2]>,
    pub talks: Vec<Talk>,
    pub path: PolledPath<'a>,
    store: ByteStore,
    pub now: Instant,
    /// What entered the path, for a run of the contracts.
    pub arrivals: Vec<Arrival>,
    /// What left the path: direction, time, size.
    pub departures: Vec<(Direction, Instant, u32)>,
    /// Between servers and path, and between path and mobiles; by direction.
    pub wired: [Line; 2],
    radio: [Line; 2],
    /// ICMP errors that have reached an end.
    pub errors: u32,
    /// The servers of flows that the middlebox begins.
    pub servers: Option<Box<dyn Fn() -> Speaker>>,
    queue: BinaryHeap<Reverse<(Instant, u64, Happening)>>,
    transit: Vec<(Direction, Packet)>,
    order: u64,
    packets: u64,
    /// Packets that stood for several segments when they left the path.
    pub divided: u64,
}

impl<'a> Network<'a> {
    /// A packet may stand for consecutive segments of a connection.
    pub fn offloads(mut self) -> Self {
        self.store.offloads = true;
        self
    }

    /// All conversations belong to one mobile. `wired` and `radio` are down and up.
    pub fn new(
        middlebox: Option<Box<dyn Middlebox>>,
        talks: Vec<Talk>,
        wired: [Line; 2],
        radio: [Line; 2],
        log: Option<&'a mut Memory>,
    ) -> Self {
        let link = || {
            let config = airpath_link::Config::default();
            let link = airpath_link::duplex(&config, &config, Seed::new(1), "link").expect("a link without limits");
            Hop::Bearer(Box::new(link))
        };
        let mut hops = vec![("fixed".to_owned(), link())];
        hops.extend(middlebox.map(|middlebox| ("middlebox".to_owned(), Hop::middlebox(middlebox))));
        let first_cell = hops.len();
        hops.push(("cell".to_owned(), link()));
        let plan =
            Plan { middleboxes: (1..first_cell).collect(), first_cell, cell_of: vec![first_cell], ..Plan::default() };
        let topology = Topology { route: Route::new(hops.len(), plan), hops, mobiles: vec!["mobile".to_owned()] };
        let mut network = Self {
            ends: talks.iter().enumerate().map(|(flow, talk)| ends(flow as u32, talk)).collect(),
            path: PolledPath::new(Path::new(topology, log.map(|log| log as &mut dyn Sink)), Vec::new()),
            store: ByteStore::new(talks.len() as u32),
            errors: 0,
            servers: None,
            now: Instant::ZERO,
            arrivals: Vec::new(),
            departures: Vec::new(),
            wired,
            radio,
            queue: BinaryHeap::new(),
            transit: Vec::new(),
            order: 0,
            packets: 0,
            divided: 0,
            talks,
        };
        for (index, talk) in network.talks.clone().iter().enumerate() {
            network.schedule(talk.start, Happening::Start(index));
        }
        network
    }

    fn schedule(&mut self, at: Instant, happening: Happening) {
        self.order += 1;
        self.queue.push(Reverse((at, self.order, happening)));
    }

    /// Servers to which the middlebox has begun flows by their address.
    pub fn opened(&self) -> &[SocketAddr] {
        &self.store.opened
    }

    /// The mobile begins a connection with the addresses and ports of a flow that has one.
    pub fn open_again(&mut self, flow: usize, client: Speaker) {
        let talk = Talk { client: Side::Mobile, ..Talk::download(self.now, 0) };
        let [_, mobile] = ends(flow as u32, &talk);
        self.ends[flow][Side::Mobile as usize] = End { speaker: Some(client), ..mobile };
        self.touch(flow, Side::Mobile);
    }

    /// Number of packets between the ends.
    pub fn packets_inside(&self) -> usize {
        self.store.len()
    }

    /// Runs until nothing happens any more, at the latest until `end`.
    pub fn run(&mut self, end: Instant) {
        loop {
            let next = self.queue.peek().map(|Reverse((at, ..))| *at);
            let wakeup = self.path.next_wakeup();
            let Some(now) = next.into_iter().chain(wakeup).min().filter(|now| *now <= end) else { break };
            self.now = now;
            self.drain_path();
            if next == Some(now)
                && let Some(Reverse((_, _, happening))) = self.queue.pop()
            {
                self.happen(happening);
                self.drain_path();
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        let now = self.now;
        match happening {
            Happening::Start(flow) => {
                self.touch(flow, Side::Mobile);
                self.touch(flow, Side::Server);
            }
            Happening::Timer(flow, side) => {
                let side = if side == 0 { Side::Server } else { Side::Mobile };
                let mut dropped = Vec::new();
                let mut cx = Context::new(None, &mut dropped, ComponentId(0));
                self.ends[flow][side as usize].connection.handle_timeout(now, &mut cx);
                self.touch(flow, side);
            }
            Happening::Enters(index) => {
                let (direction, packet) = self.transit[index];
                let segment = self.store.tcp_segment(packet.slot);
                self.arrivals.push(Arrival { at: now, direction, packet, segment });
                self.path.push(now, direction, packet, &mut self.store);
            }
            Happening::Arrives(index) => {
                let (direction, packet) = self.transit[index];
                let is_error = self.store.errors.contains_key(&packet.slot.0);
                let (segment, payload) = self.store.take(packet.slot);
                if is_error {
                    self.errors += 1;
                    return;
                }
                let (flow, side) = (packet.flow.0 as usize, Side::at_end_of(direction));
                while flow >= self.ends.len()
                    && let Some(speaker) = self.servers.as_ref().map(|servers| servers())
                {
                    let talk = Talk { client: Side::Mobile, ..Talk::download(now, 0) };
                    let mut both = ends(self.ends.len() as u32, &talk);
                    both[Side::Server as usize].speaker = Some(speaker);
                    self.ends.push(both);
                    self.talks.push(talk);
                }
                let mut dropped = Vec::new();
                let mut cx = Context::new(None, &mut dropped, ComponentId(0));
                let end = &mut self.ends[flow][side as usize];
                end.connection.handle_segment(now, &segment, &mut cx);
                if let Some(part) = end.connection.accepted_payload() {
                    let bytes = &payload[part.skip as usize..(part.skip + part.length) as usize];
                    let (start, stop) = (part.offset as usize, part.offset as usize + bytes.len());
                    if end.received.len() < stop {
                        end.received.resize(stop, 0);
                    }
                    end.received[start..stop].copy_from_slice(bytes);
                }
                self.touch(flow, side);
            }
        }
    }

    /// Passes on what has left the path.
    fn drain_path(&mut self) {
        while let Some((direction, departure)) = self.path.pop(self.now, &mut self.store) {
            self.departures.push((direction, departure.due, departure.packet.size));
            let packet = departure.packet;
            let (segment, payload) = self.store.get(packet.slot);
            let size = self.store.segment_sizes.get(&packet.slot.0).copied().unwrap_or(u32::MAX);
            if segment.length <= size {
                self.leave(direction, packet);
                continue;
            }
            let parts = split(segment, payload, size);
            self.divided += 1;
            self.store.take(packet.slot);
            for (segment, payload) in parts {
                let slot = self.store.insert(segment, payload);
                self.leave(direction, Packet { size: segment.wire_size(IP_HEADER), slot, ..packet });
            }
        }
        let counters = self.path.path().hops().map(|(_, hop)| Direction::BOTH.map(|direction| hop.counters(direction)));
        for counters in counters.flatten() {
            assert!(counters.is_conserved(), "packets are not conserved: {counters:?}");
        }
    }

    /// A packet enters the line behind the path.
    fn leave(&mut self, direction: Direction, packet: Packet) {
        let line = match direction {
            Direction::Down => &mut self.radio[0],
            Direction::Up => &mut self.wired[1],
        };
        if let Some(kind) = line.error(packet.size) {
            let at = self.now + line.delay;
            let error = self.error(kind, packet);
            self.transmit(at, direction.opposite(), error, Happening::Enters);
            return;
        }
        match line.send(self.now, packet.size) {
            Some(at) => {
                let again = line.send_again(at);
                if line.marks() {
                    self.store.mark(packet.slot);
                }
                if let Some(again) = again {
                    let copy = self.copy(packet);
                    self.transmit(again, direction, copy, Happening::Arrives);
                }
                self.transmit(at, direction, packet, Happening::Arrives);
            }
            None => drop(self.store.take(packet.slot)),
        }
    }

    /// A packet is on a line until `at`.
    fn transmit(&mut self, at: Instant, direction: Direction, packet: Packet, then: fn(usize) -> Happening) {
        self.transit.push((direction, packet));
        self.schedule(at, then(self.transit.len() - 1));
    }

    /// An ICMP error that takes the place of the segment that it is about.
    fn error(&mut self, kind: IcmpErrorKind, packet: Packet) -> Packet {
        let header = self.store.get(packet.slot).0.header;
        let end = |port| Endpoint { address: Ipv4Addr::LOCALHOST.into(), port };
        let (source, destination) = (end(header.source_port), end(header.destination_port));
        let error = IcmpError { kind, source, destination, sequence: header.sequence, ip_header: IP_HEADER };
        self.store.errors.insert(packet.slot.0, (packet.flow, error));
        self.packets += 1;
        Packet { id: self.packets - 1, size: 56, flow: FlowId(u32::MAX), ..packet }
    }

    /// A duplicate of a packet.
    fn copy(&mut self, packet: Packet) -> Packet {
        let (segment, payload) = self.store.get(packet.slot).clone();
        let slot = self.store.insert(segment, payload);
        self.packets += 1;
        Packet { id: self.packets - 1, slot, ..packet }
    }

    /// The application of an end acts, and the end sends.
    fn touch(&mut self, flow: usize, side: Side) {
        let now = self.now;
        let talk = self.talks[flow];
        if now < talk.start {
            return;
        }
        let mut dropped = Vec::new();
        let mut cx = Context::new(None, &mut dropped, ComponentId(0));
        let other = if side == Side::Mobile { Side::Server } else { Side::Mobile };
        let expected = self.ends[flow][other as usize].script.sends;
        let end = &mut self.ends[flow][side as usize];
        let Script { sends, after, closes_last, aborts_at, reads_from } = end.script;
        let connection = &mut end.connection;
        if connection.state() == State::SynReceived && talk.refused && side != talk.client {
            connection.abort(now, &mut cx);
        }
        if connection.received() >= expected && end.complete.is_none() {
            end.complete = Some(now);
        }
        if let Some(speaker) = &mut end.speaker
            && connection.outcome().is_none()
            && connection.state().is_synchronised()
        {
            connection.read(connection.readable());
            let (bytes, closes) = speaker(&end.received[..connection.received() as usize]);
            end.spoken.extend_from_slice(&bytes);
            if !bytes.is_empty() {
                connection.write(bytes.len() as u64);
            }
            if closes || connection.peer_closed() {
                connection.close();
            }
        }
        let has_ended = connection.outcome().is_some() || end.speaker.is_some();
        if !has_ended && aborts_at.is_some_and(|limit| connection.received() >= limit) {
            connection.abort(now, &mut cx);
        } else if !has_ended {
            if now >= reads_from {
                connection.read(connection.readable());
            }
            if !end.written && connection.received() >= after && connection.state().is_synchronised() {
                end.written = true;
                connection.write(sends);
            }
            if end.written && (!closes_last || connection.peer_closed()) {
                end.closed = true;
                connection.close();
            }
        }
        let mut wakeup = connection.next_wakeup();
        let mut segments = Vec::new();
        while let Some(segment) = connection.poll_transmit(now, &mut cx) {
            segments.push(segment);
        }
        wakeup = connection.next_wakeup().or(wakeup.take());
        if now < reads_from {
            wakeup = Some(wakeup.map_or(reads_from, |wakeup| wakeup.min(reads_from)));
        }
        if let Some(at) = wakeup.filter(|_| end.connection.state() != State::TimeWait) {
            self.schedule(at.max(now), Happening::Timer(flow, side as u8));
        }
        let segments = if self.store.offloads { merge(segments) } else { segments };
        for segment in segments {
            self.send(flow as u32, side, segment);
        }
    }

    fn send(&mut self, flow: u32, side: Side, segment: Segment) {
        let offset = segment.info.offset;
        let end = &self.ends[flow as usize][side as usize];
        let payload: Vec<u8> = (offset.cast_unsigned()..)
            .take(segment.length as usize)
            .map(|at| if end.speaker.is_some() { end.spoken[at as usize] } else { pattern(flow, side, at) })
            .collect();
        let size = segment.wire_size(IP_HEADER);
        let direction = side.sends();
        let line = match direction {
            Direction::Down => &mut self.wired[0],
            Direction::Up => &mut self.radio[1],
        };
        let Some(at) = line.send(self.now, size) else { return };
        let again = line.send_again(at);
        let slot = self.store.insert(segment, payload);
        let packet =
            Packet { id: self.packets, size, flow: FlowId(flow), user: UserId::new(0), ecn: segment.ecn, slot };
        self.packets += 1;
        self.transmit(at, direction, packet, Happening::Enters);
        if let Some(again) = again {
            let copy = self.copy(packet);
            self.transmit(again, direction, copy, Happening::Enters);
        }
    }

    /// How long a conversation took until the mobile had all bytes of the server.
    pub fn download_time(&self, flow: usize) -> f64 {
        let complete = self.ends[flow][Side::Mobile as usize].complete;
        complete.expect("it is complete").since(self.talks[flow].start).as_secs_f64()
    }

    /// How both ends of a conversation have ended: the server first.
    pub fn outcomes(&self, flow: usize) -> [Option<Outcome>; 2] {
        self.ends[flow].each_ref().map(|end| match end.connection.state() {
            State::TimeWait => Some(Outcome::Closed),
            _ => end.connection.outcome(),
        })
    }

    /// Whether each end has received what the other has sent, byte for byte, as far as it has
    /// received it in order. An end that sees the end of a stream has all of it: a truncated
    /// transfer never ends clean.
    pub fn check_bytes(&self) {
        for (flow, ends) in self.ends.iter().enumerate() {
            for (end, sender) in ends.iter().zip([Side::Mobile, Side::Server]) {
                let has_ended = end.connection.peer_closed() || end.connection.outcome() == Some(Outcome::Closed);
                if has_ended && end.speaker.is_none() {
                    let other = &ends[sender as usize];
                    assert!(other.closed, "flow {flow}: {sender:?} has not closed, but the other end saw its end");
                    assert_eq!(end.connection.received(), other.script.sends, "flow {flow}: cut short by {sender:?}");
                }
                let in_order = end.connection.received() as usize;
                let wrong = (0..in_order).find(|at| end.received[*at] != pattern(flow as u32, sender, *at as u64));
                assert_eq!(wrong, None, "byte of flow {flow} that {sender:?} has sent, of {in_order}");
            }
        }
    }
}

fn ends(flow: u32, talk: &Talk) -> [End; 2] {
    let config = airpath_tcp::Config { ecn: talk.ecn, ..Profile::Linux6.config() };
    let identity = |side: Side, local_port, remote_port| Identity {
        flow: FlowId(flow),
        direction: side.sends(),
        local_port,
        remote_port,
        initial_sequence: 1_000_000_000_u32.wrapping_mul(flow + 1).wrapping_add(side as u32),
    };
    [(Side::Server, talk.server, 80, 50_000), (Side::Mobile, talk.mobile, 50_000, 80)].map(
        |(side, script, local, remote)| {
            let identity = identity(side, local, remote);
            let connection = if side == talk.client || talk.simultaneous {
                Connection::connect(&config, identity, talk.start)
            } else {
                Connection::listen(&config, identity)
            };
            End {
                connection,
                speaker: None,
                spoken: Vec::new(),
                script,
                written: false,
                closed: false,
                received: Vec::new(),
                complete: None,
            }
        },
    )
}
