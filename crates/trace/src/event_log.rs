//! The event log of a run as captures at both ends of its path.
//!
//! The log has the times at which each packet was sent and received, and its TCP header in stream
//! offsets (`packets` in `docs/result-folder.md`). From these the segments of a capture are built,
//! at the end that sends most of a flow's data or at the other. They have neither timestamps nor
//! payload. SACK blocks are derived from the arrivals.
//!
//! | module | what |
//! | --- | --- |
//! | `connection_number` | the connection of a segment |
//! | `selective` | the SACK blocks of a segment |

mod connection_number;
mod selective;

use airpath_core::{Direction, Ecn, Instant, SegmentInfo};
use airpath_wire::tcp::{Flags, Options, SackBlocks};

use airpath_wire::segment::{Endpoint, Route, Segment, Tunnel};
use connection_number::ConnectionNumbers;

/// The greatest shift of a window (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;

/// The first dynamic port (RFC 6335 §6).
const DYNAMIC_PORTS: u16 = 49_152;

/// The TTL of packets, which the log does not record: the default of most hosts.
const TIME_TO_LIVE: u8 = 64;

/// The ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedFlow {
    /// Address and port at the mobile. Of several connections of one flow each has the next port.
    pub mobile: Endpoint,
    /// Address and port at the server.
    pub server: Endpoint,
    /// The options agreed on in the handshake; `None` where they are not recorded.
    pub agreed: Option<Agreed>,
}

/// The options agreed on in the handshake of a connection; the log does not have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Whether SACK is permitted (RFC 2018 §2).
    pub selective: bool,
    /// The window shifts of downlink and uplink segments (RFC 7323 §2); both 0 without scaling.
    pub shifts: [u8; 2],
}

/// A TCP segment of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logged {
    /// The number of its packet, which becomes its frame number.
    pub packet: u64,
    /// Its flow, counted from 0 in the order of the log.
    pub flow: u32,
    /// Its direction.
    pub direction: Direction,
    /// Bytes of its IP packet.
    pub size: u32,
    /// Its TCP header.
    pub header: SegmentInfo,
    /// When it was sent.
    pub sent: Event,
    /// When it was received; `None` if it was lost, or in flight when the run ended.
    pub received: Option<Event>,
}

/// When a packet passed an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time.
    pub time: Instant,
    /// Its row in the log, which orders simultaneous events at one end.
    pub row: u64,
    /// The ECN field of its IP header at that time.
    pub ecn: Ecn,
}

/// The end at which a capture of the log is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturePoint {
    /// The end of each flow that sends most data.
    Sender,
    /// The other end.
    Receiver,
}

/// An event log that can be read as a capture at either end.
#[derive(Clone, Debug)]
pub struct EventLog {
    name: String,
    flows: Vec<Described>,
    segments: Vec<CapturedSegment>,
}

/// A flow, and the properties that all its segments share.
#[derive(Clone, Debug)]
struct Described {
    ends: LoggedFlow,
    /// The direction in which most of its data goes.
    main: Direction,
    /// The window shifts of both directions.
    shifts: [u8; 2],
    /// Whether segments have SACK blocks.
    selective: bool,
}

/// A segment, with its connection and its SACK blocks.
#[derive(Clone, Debug)]
struct CapturedSegment {
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
        let mut numbering = ConnectionNumbers::new(flows.len());
        let connections: Vec<_> = segments.iter().map(|segment| numbering.connection(segment)).collect();
        let blocks = selective::blocks(flows, &segments, &connections);
        let rows = segments.into_iter().zip(connections).zip(blocks);
        let segments: Vec<_> =
            rows.map(|((logged, connection), blocks)| CapturedSegment { logged, connection, blocks }).collect();
        Self { name, flows: described(flows, &segments), segments }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Passes the segments at one end of each flow, in order, to `consume`, until that returns
    /// `false`.
    pub fn segments(&self, point: CapturePoint, mut consume: impl FnMut(Segment<'static>) -> bool) {
        let mut passing: Vec<(Instant, u64, usize, Ecn)> = Vec::with_capacity(self.segments.len());
        for (index, CapturedSegment { logged, .. }) in self.segments.iter().enumerate() {
            let leaves = (logged.direction == self.flows[logged.flow as usize].main) == (point == CapturePoint::Sender);
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

    /// A segment in a capture at `time`.
    fn segment(&self, segment: &CapturedSegment, time: Instant, ecn: Ecn) -> Segment<'static> {
        let CapturedSegment { logged, connection, blocks } = segment;
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
            acknowledgment: header.ack.get().map_or(0, sequence),
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
    /// The route of a segment of the connection with that number.
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

/// Derives the properties that the segments of each flow share.
fn described(flows: &[LoggedFlow], segments: &[CapturedSegment]) -> Vec<Described> {
    let mut sums = vec![([0_u64; 2], [0_u32; 2], false); flows.len()];
    for CapturedSegment { logged, blocks, .. } in segments {
        let (bytes, windows, selective) = &mut sums[logged.flow as usize];
        let index = logged.direction as usize;
        bytes[index] += u64::from(logged.header.length);
        windows[index] = windows[index].max(logged.header.window);
        *selective |= !blocks.is_empty();
    }
    let described = flows.iter().zip(sums).map(|(&ends, ([down, up], windows, selective))| {
        let least = windows.map(shift_for);
        let shifts = ends.agreed.map_or([0, 0], |agreed| agreed.shifts);
        Described {
            ends,
            main: if down >= up { Direction::Down } else { Direction::Up },
            // The agreed shifts, unless windows do not fit: then the flow has connections with
            // others.
            shifts: [0, 1].map(|index| least[index].max(shifts[index].min(MAX_SHIFT))),
            selective: selective || ends.agreed.is_some_and(|agreed| agreed.selective),
        }
    });
    described.collect()
}

/// The smallest shift with which a window fits into 16 bits. The sender scaled by at least as much:
/// no window is rounded.
fn shift_for(window: u32) -> u8 {
    (0..MAX_SHIFT).find(|shift| window >> shift <= u32::from(u16::MAX)).unwrap_or(MAX_SHIFT)
}

/// The sequence number of a stream offset, modulo 2³²; the SYN, at -1, has 0.
const fn sequence(offset: i64) -> u32 {
    offset.wrapping_add(1) as u32
}

#[cfg(test)]
mod tests;
