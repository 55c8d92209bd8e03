//! Two-point analysis: captures of the same connections at both ends, joined packet by packet.
//!
//! ```text
//! capture A ─► digest ─┐
//!                      ├─► match connections ─► pair packets ─► fit clocks ─► fate of each packet
//! capture B ─► digest ─┘
//! ```
//!
//! The times of a [`JoinedConnection`] use the first capture's clock. Unlike the rest of the
//! crate, this keeps every packet of the connections: 80 bytes for each packet and capture.

mod arrival_gap;
mod clock;
mod compression;
mod connections;
mod digest;
mod direction;
mod pairing;
mod path_log;
mod quantiles;
pub(crate) mod round_trip;
pub(crate) mod silence;
mod transit;

use std::collections::BTreeMap;
use std::sync::Arc;

use airpath_core::{Instant, Span};

use airpath_observe::End;
use airpath_observe::flows::FlowNumber;
use airpath_wire::segment::Route;

pub use arrival_gap::{ArrivalGap, Burst};
pub use clock::{Clock, Fit};
pub use compression::Compression;
pub use digest::{CaptureDigest, PacketDigest};
pub use direction::Direction;
pub use quantiles::Quantiles;
pub use silence::Silences;
pub use transit::{Fate, Transit};

/// A connection in both captures.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinedConnection {
    /// Its number in the first capture.
    pub flow: FlowNumber,
    /// Its number in the second.
    pub peer_flow: FlowNumber,
    /// From client to server in the first capture; address translation may change it between the
    /// two.
    pub route: Route,
    /// The route in the second capture.
    pub peer_route: Route,
    /// The end nearer to the first capture.
    pub near: End,
    /// The packets of client and server.
    pub directions: [Direction; 2],
}

impl JoinedConnection {
    /// The packets that `end` sent.
    pub const fn sent_by(&self, end: End) -> &Direction {
        &self.directions[end as usize]
    }
}

/// Two captures joined.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinedCaptures {
    /// The second capture's clock relative to the first's.
    pub clock: Clock,
    /// The fit of the clock; `None` where the clock was given.
    pub fit: Option<Fit>,
    /// The connections in both captures, in the order of their numbers in the first.
    pub connections: Vec<JoinedConnection>,
}

impl JoinedCaptures {
    /// The connection with that number in the first capture.
    pub fn connection(&self, flow: FlowNumber) -> Option<&JoinedConnection> {
        let at = self.connections.binary_search_by_key(&flow, |joined| joined.flow).ok()?;
        self.connections.get(at)
    }
}

/// Options of a join.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JoinOptions {
    /// The second capture's clock; [`Clock::SAME`] for captures of one machine, `None` to fit it.
    pub clock: Option<Clock>,
    /// The shortest gap in arrivals to report.
    pub least_gap: Span,
}

impl Default for JoinOptions {
    fn default() -> Self {
        Self { clock: None, least_gap: Span::from_millis(300) }
    }
}

/// Why captures cannot be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The captures share no connection.
    #[error("the captures share no connection: of {first} and {second} none have the same sequence numbers")]
    NothingShared {
        /// Connections in the first capture.
        first: usize,
        /// Connections in the second.
        second: usize,
    },
    /// Only packets of one direction are in both captures.
    #[error("the clocks cannot be compared: only packets of one direction are in both captures")]
    OneWay,
}

impl JoinError {
    /// What to do about it.
    pub const fn next_step(self) -> &'static str {
        match self {
            Self::NothingShared { .. } => "were they taken at the same time, and is a proxy between them?",
            Self::OneWay => "give the difference of the clocks, or capture both directions",
        }
    }
}

/// Joins two captures.
///
/// # Errors
/// If the captures share no connection, or the clocks cannot be compared.
pub fn join(first: CaptureDigest, second: CaptureDigest, options: &JoinOptions) -> Result<JoinedCaptures, JoinError> {
    let (first, second) = (first.finish(), second.finish());
    let nothing = JoinError::NothingShared { first: first.len(), second: second.len() };
    let paired: Vec<pairing::Paired> =
        connections::matched(first, second).into_iter().filter_map(|(one, other)| pairing::pair(one, other)).collect();
    if paired.is_empty() {
        return Err(nothing);
    }
    let (clock, fit) = match options.clock {
        Some(clock) => (clock, None),
        None => {
            let fit = clock::fit(&paired).ok_or(JoinError::OneWay)?;
            (fit.clock, Some(fit))
        }
    };
    let mut connections: Vec<_> = paired.into_iter().map(|paired| direction::joined(paired, &clock, options)).collect();
    compare_delays(&mut connections);
    mark_others(&mut connections);
    Ok(JoinedCaptures { clock, fit, connections })
}

/// Gives each direction the shortest delay and the shortest round trip of the connections of the
/// same client: the packets of one may all have waited behind others.
fn compare_delays(connections: &mut [JoinedConnection]) {
    let client = |joined: &JoinedConnection| joined.route.source.address;
    let least = |known: &mut Option<Span>, own: Option<Span>| *known = known.iter().copied().chain(own).min();
    let mut shortest: BTreeMap<_, ([Option<Span>; 2], Option<Span>)> = BTreeMap::new();
    for joined in connections.iter() {
        let (delays, round_trip) = shortest.entry(client(joined)).or_default();
        for from in End::BOTH {
            least(&mut delays[from as usize], joined.sent_by(from).shortest_full());
        }
        least(round_trip, round_trip::shortest(joined.sent_by(joined.near), joined.sent_by(joined.near.other())));
    }
    for joined in connections {
        let (delays, round_trip) = shortest.get(&client(joined)).copied().unwrap_or_default();
        for from in End::BOTH {
            joined.directions[from as usize].shortest_full_of_client = delays[from as usize];
        }
        joined.directions[joined.near as usize].round_trip_of_client = round_trip;
    }
}

/// The resolution of [`Direction::path_queue`]: each connection of a client goes through the part
/// of its own time.
const QUEUE_RESOLUTION: Span = Span::from_millis(5);

/// The latest arrival of the packets sent until each time, from when packets were sent and arrived.
fn path_queue(mut packets: Vec<(Instant, Instant)>) -> Vec<(Instant, Instant)> {
    packets.sort_unstable();
    let mut queue: Vec<(Instant, Instant)> = Vec::new();
    for (sent, arrival) in packets {
        match queue.last_mut() {
            Some((_, latest)) if arrival <= *latest => {}
            Some((since, latest)) if sent < *since + QUEUE_RESOLUTION => *latest = arrival,
            _ => queue.push((sent, arrival)),
        }
    }
    queue
}

/// Marks the packets that arrived right after a packet of another connection of the same client.
/// Packets of their own connection without data may lie between: they hardly use the link.
fn mark_others(connections: &mut [JoinedConnection]) {
    let mut by_client: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, joined) in connections.iter().enumerate() {
        by_client.entry(joined.route.source.address).or_default().push(index);
    }
    for (members, from) in by_client.values().flat_map(|members| End::BOTH.map(|from| (members, from))) {
        if members.len() < 2 {
            continue;
        }
        // The frame in the receiver's capture orders the packets that arrived at one time.
        let mut arrivals: Vec<(Instant, u64, usize, usize)> = Vec::new();
        for &index in members {
            let transits = connections[index].sent_by(from).transits.iter().enumerate();
            arrivals.extend(transits.filter_map(|(at, transit)| match transit.fate {
                Fate::Arrived { time, frame } => Some((time, frame, index, at)),
                Fate::Lost | Fate::Unknown => None,
            }));
        }
        arrivals.sort_unstable();
        let mut others = LastOfOthers::default();
        for &(arrival, _, index, at) in &arrivals {
            let transit = &mut connections[index].directions[from as usize].transits[at];
            transit.others_until = others.before(index, arrival, transit.packet.length > 0);
        }
        let packet = |&(arrived, _, index, at): &(Instant, u64, usize, usize)| {
            let PacketDigest { time: sent, length, .. } = connections[index].sent_by(from).transits[at].packet;
            silence::Packet { arrived, sent, length }
        };
        let packets: Vec<_> = arrivals.iter().map(packet).collect();
        let queue: Arc<[_]> = path_queue(packets.iter().map(|packet| (packet.sent, packet.arrived)).collect()).into();
        let silences = Arc::new(Silences::of(&packets));
        for &index in members {
            let direction = &mut connections[index].directions[from as usize];
            direction.path_queue = Arc::clone(&queue);
            direction.silences = Arc::clone(&silences);
        }
    }
}

/// The last packets of a client, in the order of their arrivals.
#[derive(Default)]
struct LastOfOthers {
    packets: u64,
    /// The last packet: its connection, its arrival and its number.
    last: Option<(usize, Instant, u64)>,
    /// The last packet of another connection than that of `last`.
    other: Option<(usize, Instant, u64)>,
    /// The number of the last packet with data of each connection.
    data: BTreeMap<usize, u64>,
}

impl LastOfOthers {
    /// The arrival of the last packet of another connection before this packet, if it came after
    /// the last data of its own connection.
    fn before(&mut self, connection: usize, arrival: Instant, is_data: bool) -> Option<Instant> {
        self.packets += 1;
        let is_others = |&(of, ..): &(usize, Instant, u64)| of != connection;
        let others = self.last.filter(is_others).or(self.other.filter(is_others));
        let own = self.data.get(&connection).copied().unwrap_or(0);
        if self.last.is_some_and(|last| is_others(&last)) {
            self.other = self.last;
        }
        self.last = Some((connection, arrival, self.packets));
        if is_data {
            self.data.insert(connection, self.packets);
        }
        others.filter(|(_, _, number)| *number > own).map(|(_, before, _)| before)
    }
}

#[cfg(test)]
mod tests;
