//! The event log of a run as what captures at both ends of its path would have of it.
//!
//! The log tells of each packet when it was sent and when it was received, and its TCP header in stream offsets (`packets` in
//! `docs/result-folder.md`). Out of these come the segments of a capture, at the end that sends most of a flow's data or at the other. What the
//! log does not tell, they do not have: there are no timestamps and there is no payload. Selective acknowledgements follow from what had arrived.
//!
//! | module | what |
//! | --- | --- |
//! | `numbering` | which connection of a flow a segment belongs to |
//! | `selective` | the blocks that a segment had room for |

mod numbering;
mod selective;

use airpath_core::{Direction, Ecn, Instant, SegmentInfo};
use airpath_wire::tcp::{Flags, Options, SackBlocks};

use airpath_wire::segment::{Endpoint, Route, Segment, Tunnel};
use numbering::Numbering;

/// The greatest shift of a window (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;

/// The first of the ports that hosts take for connections of their own (RFC 6335 §6).
const DYNAMIC_PORTS: u16 = 49_152;

/// Hops that a packet may still make, which a log does not tell: as many as most hosts allow.
const TIME_TO_LIVE: u8 = 64;

/// The ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedFlow {
    /// Address and port at the mobile. Of several connections of one flow, which one port cannot have, each has the port after the last one's.
    pub mobile: Endpoint,
    /// Address and port at the server.
    pub server: Endpoint,
    /// What its ends agreed on when they opened it; `None` where that is not known.
    pub agreed: Option<Agreed>,
}

/// What the ends of a connection agreed on by the options of their SYNs, which the log does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Whether acknowledgements may be selective (RFC 2018 §2).
    pub selective: bool,
    /// How far the windows in segments that go down and up are shifted (RFC 7323 §2); both 0 where they are not scaled.
    pub shifts: [u8; 2],
}

/// A TCP segment of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logged {
    /// The number of its packet, which is its frame in what is told of it.
    pub packet: u64,
    /// Its flow, counted from 0 in the order in which the log has them.
    pub flow: u32,
    /// Which way it went.
    pub direction: Direction,
    /// Bytes of its IP packet.
    pub size: u32,
    /// Its TCP header.
    pub header: SegmentInfo,
    /// When it was sent.
    pub sent: Event,
    /// When it was received; `None` if it was lost, or on its way when the run ended.
    pub received: Option<Event>,
}

/// When a packet passed an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time: Instant,
    /// Its row in the log, in which what happened at one end at one time stands in its order.
    pub row: u64,
    /// The ECN field of its IP header then.
    pub ecn: Ecn,
}

/// From where a log is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vantage {
    /// Of each flow the end that sends most data.
    Sender,
    /// The other.
    Receiver,
}

/// An event log, ready to be told from either end.
#[derive(Clone, Debug)]
pub struct EventLog {
    name: String,
    flows: Vec<Described>,
    segments: Vec<Told>,
}

/// A flow, and what is the same for all its segments.
#[derive(Clone, Debug)]
struct Described {
    ends: LoggedFlow,
    /// The direction in which most of its data goes.
    main: Direction,
    /// How far the windows of either direction are shifted.
    shifts: [u8; 2],
    /// Whether there are selective acknowledgements.
    selective: bool,
}

/// A segment, and what was found out about it.
#[derive(Clone, Debug)]
struct Told {
    logged: Logged,
    /// The number of its connection in its flow, from 0.
    connection: u32,
    blocks: SackBlocks,
}

impl EventLog {
    /// The log called `name`, with the segments of `flows` in any order.
    ///
    /// # Panics
    /// If a segment belongs to a flow that is not there.
    pub fn new(name: String, flows: &[LoggedFlow], mut segments: Vec<Logged>) -> Self {
        segments.sort_by_key(|segment| (segment.sent.time, segment.sent.row));
        let mut numbering = Numbering::new(flows.len());
        let connections: Vec<_> = segments.iter().map(|segment| numbering.connection(segment)).collect();
        let blocks = selective::blocks(flows, &segments, &connections);
        let told = segments.into_iter().zip(connections).zip(blocks);
        let segments: Vec<_> = told.map(|((logged, connection), blocks)| Told { logged, connection, blocks }).collect();
        Self { name, flows: described(flows, &segments), segments }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives `consume` the segments that pass at one end of each flow, in the order in which they do, until that says `false`.
    pub fn segments(&self, vantage: Vantage, mut consume: impl FnMut(Segment<'static>) -> bool) {
        let mut passing: Vec<(Instant, u64, usize, Ecn)> = Vec::with_capacity(self.segments.len());
        for (index, Told { logged, .. }) in self.segments.iter().enumerate() {
            let leaves = (logged.direction == self.flows[logged.flow as usize].main) == (vantage == Vantage::Sender);
            let event = if leaves { Some(logged.sent) } else { logged.received };
            passing.extend(event.map(|event| (event.time, event.row, index, event.ecn)));
        }
        passing.sort_by_key(|(time, row, ..)| (*time, *row));
        for (time, _, index, ecn) in passing {
            if !consume(self.segment(&self.segments[index], time, ecn)) {
                return;
            }
        }
    }

    /// A segment as a capture has it that sees it at `time`.
    fn segment(&self, told: &Told, time: Instant, ecn: Ecn) -> Segment<'static> {
        let Told { logged, connection, blocks } = told;
        let header = &logged.header;
        let flow = &self.flows[logged.flow as usize];
        let flags = Flags(header.flags);
        let is_syn = flags.contains(Flags::SYN);
        let scaled = flow.shifts != [0, 0];
        let shift = flow.shifts[logged.direction as usize];
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        let window = if is_syn { header.window } else { header.window >> shift };
        Segment {
            frame: logged.packet,
            time,
            route: flow.ends.route(*connection, logged.direction),
            identification: None,
            time_to_live: TIME_TO_LIVE,
            ecn,
            sequence: sequence(header.offset),
            acknowledgment: header.ack.map_or(0, sequence),
            flags,
            window: u16::try_from(window).unwrap_or(u16::MAX),
            urgent: 0,
            options: Options {
                window_scale: (is_syn && scaled).then_some(shift),
                sack_permitted: is_syn && flow.selective,
                sack: *blocks,
                ..Options::default()
            },
            options_cut: false,
            length: header.length,
            captured: 0,
            payload: &[],
            checksum: None,
        }
    }
}

impl LoggedFlow {
    /// The way of a segment of its connection of that number.
    fn route(&self, connection: u32, direction: Direction) -> Route {
        let Endpoint { port, .. } = self.mobile;
        let port = match port.checked_sub(DYNAMIC_PORTS) {
            Some(above) => {
                DYNAMIC_PORTS + ((u32::from(above) + connection) % u32::from(u16::MAX - DYNAMIC_PORTS + 1)) as u16
            }
            None => port.wrapping_add(connection as u16),
        };
        let up = Route { source: Endpoint { port, ..self.mobile }, destination: self.server, tunnel: Tunnel::None };
        if direction == Direction::Up { up } else { up.reversed() }
    }
}

/// What is the same for all segments of each flow.
fn described(flows: &[LoggedFlow], segments: &[Told]) -> Vec<Described> {
    let mut sums = vec![([0_u64; 2], [0_u64; 2], false); flows.len()];
    for Told { logged, blocks, .. } in segments {
        let (bytes, windows, selective) = &mut sums[logged.flow as usize];
        let way = logged.direction as usize;
        bytes[way] += u64::from(logged.header.length);
        windows[way] = windows[way].max(logged.header.window);
        *selective |= !blocks.is_empty();
    }
    let described = flows.iter().zip(sums).map(|(&ends, ([down, up], windows, selective))| {
        let least = windows.map(shift_for);
        let shifts = ends.agreed.map_or([0, 0], |agreed| agreed.shifts);
        Described {
            ends,
            main: if down >= up { Direction::Down } else { Direction::Up },
            // Those that were agreed on, unless windows do not fit: then the log tells of other connections, too.
            shifts: [0, 1].map(|way| least[way].max(shifts[way].min(MAX_SHIFT))),
            selective: selective || ends.agreed.is_some_and(|agreed| agreed.selective),
        }
    });
    described.collect()
}

/// The smallest shift with which a window fits into 16 bits. Windows were told after scaling by at least as much, so that none is rounded.
fn shift_for(window: u64) -> u8 {
    (0..MAX_SHIFT).find(|shift| window >> shift <= u64::from(u16::MAX)).unwrap_or(MAX_SHIFT)
}

/// The sequence number of a stream offset: the SYN, at -1, has 0. Modulo 2³², as sequence numbers are.
const fn sequence(offset: i64) -> u32 {
    offset.wrapping_add(1) as u32
}

#[cfg(test)]
mod tests;
