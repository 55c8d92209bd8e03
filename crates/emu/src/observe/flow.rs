//! A flow: packets of each direction, and the state of its protocol.

use airpath_core::{AppStep, Bytes, Direction, Instant, SegmentInfo};
use airpath_result::summary::{FlowRow, ObservedRow, TrafficRow};
use airpath_wire::segment::Segment;

use super::Passage;
use super::connection::{Connection, Ending};
use super::datagrams::Arrivals;
use super::echo::Echoes;
use super::headers::{Key, Sight, echo, segment};
use crate::offload::Frame;

/// Bytes of the header of an echo request or reply.
const ECHO_HEADER: u32 = 8;

#[derive(Debug)]
pub(super) struct Flow {
    /// `None` for the common flow of all further flows.
    key: Option<Key>,
    /// The direction of its first packet.
    opened: Direction,
    first: Instant,
    last: Instant,
    down: TrafficRow,
    up: TrafficRow,
    protocol: State,
}

/// The state of a protocol.
#[derive(Debug)]
enum State {
    Tcp(Box<Connection>),
    Ping(Box<Echoes>),
    /// Datagrams, by direction.
    Other(Box<[Arrivals; 2]>),
}

impl Flow {
    /// The flow of a first packet; `reused` where an earlier one had the same key.
    pub fn begin(now: Instant, opened: Direction, key: Key, reused: bool) -> Self {
        let protocol = if let Some((mobile, _)) = key.tcp_ends() {
            State::Tcp(Box::new(Connection::new(mobile, reused)))
        } else if key.is_echo() {
            State::Ping(Box::default())
        } else {
            State::Other(Box::default())
        };
        Self { protocol, key: Some(key), ..Self::beyond_most(now, opened) }
    }

    /// The common flow of all flows beyond the maximum.
    pub fn beyond_most(now: Instant, opened: Direction) -> Self {
        let (down, up) = (TrafficRow::default(), TrafficRow::default());
        Self { key: None, opened, first: now, last: now, down, up, protocol: State::Other(Box::default()) }
    }

    /// Its key; `None` for the common flow of all further flows.
    pub const fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// The TCP connection, if it is one.
    pub fn connection(&self) -> Option<&Connection> {
        match &self.protocol {
            State::Tcp(connection) => Some(connection),
            State::Ping(_) | State::Other(_) => None,
        }
    }

    /// Whether this segment belongs to another, later flow.
    pub fn is_succeeded_by(&self, direction: Direction, segment: &Segment<'_>) -> bool {
        match &self.protocol {
            State::Tcp(connection) => connection.is_succeeded_by(direction, segment),
            State::Ping(_) | State::Other(_) => false,
        }
    }

    /// Adds a packet of `size` bytes that enters the link, with `segment` if it is TCP. Returns its
    /// header in terms of stream offsets.
    pub fn enters(
        &mut self,
        now: Instant,
        direction: Direction,
        size: u32,
        frame: &Frame,
        bytes: &[u8],
        segment: Option<&Segment<'_>>,
    ) -> Option<SegmentInfo> {
        self.last = now;
        let traffic = self.traffic_mut(direction);
        traffic.offered_packets += 1;
        traffic.offered_bytes += u64::from(size);
        match &mut self.protocol {
            State::Tcp(connection) => segment.map(|segment| connection.enters(direction, segment)),
            State::Ping(echoes) => {
                let request = echo(frame, bytes).filter(|echo| !echo.reply && direction == self.opened);
                request.into_iter().for_each(|echo| echoes.request_enters(now, echo));
                None
            }
            State::Other(_) => None,
        }
    }

    /// Adds a packet that leaves the link: segment `index` of `frame`, at `sight`. Returns the
    /// event of an echo reply.
    pub fn leaves(
        &mut self,
        passage: Passage,
        sight: Sight,
        direction: Direction,
        frame: &Frame,
        bytes: &[u8],
        index: u32,
    ) -> Option<AppStep> {
        let (size, due) = (frame.segment_bytes(index), passage.due);
        self.last = self.last.max(due);
        let traffic = self.traffic_mut(direction);
        traffic.delivered_packets += 1;
        traffic.delivered_bytes += u64::from(size);
        match &mut self.protocol {
            State::Tcp(connection) => {
                let route = self.key.and_then(|key| key.route(direction))?;
                connection.leaves(due, direction, &segment(frame, bytes, index, route, sight)?);
                None
            }
            State::Ping(echoes) => {
                let answer = echo(frame, bytes).filter(|echo| echo.reply && direction != self.opened)?;
                let payload = size.saturating_sub(frame.transport()? as u32 + ECHO_HEADER);
                echoes.is_answered(due, answer, payload)
            }
            State::Other(arrivals) => {
                arrivals[direction as usize].add(passage);
                None
            }
        }
    }

    /// Adds a packet of `size` bytes that the link lost.
    pub fn is_lost(&mut self, direction: Direction, size: u32) {
        let traffic = self.traffic_mut(direction);
        traffic.lost_packets += 1;
        traffic.lost_bytes += u64::from(size);
    }

    /// Payload bytes of the echo replies that arrived.
    pub fn answered_bytes(&self) -> Bytes {
        match &self.protocol {
            State::Ping(echoes) => Bytes::new(echoes.bytes),
            State::Tcp(_) | State::Other(_) => Bytes::ZERO,
        }
    }

    /// Its row of the summary.
    pub fn row(&self, repetition: u64, number: u32, mobile: &str) -> FlowRow {
        let direction = self.main_direction();
        let (ending, transfer, probes, stream) = match &self.protocol {
            State::Tcp(connection) => (connection.ending(), Some(connection.row(self.first, self.opened)), None, None),
            State::Ping(echoes) => (self.arrival(), None, Some(echoes.row()), None),
            State::Other(arrivals) => {
                let (probes, stream) = arrivals[direction as usize].rows(self.traffic(direction));
                (self.arrival(), None, Some(probes), Some(stream))
            }
        };
        let kind = self.key.map_or("ip", |key| key.kind());
        FlowRow {
            repetition,
            outcome: ending.outcome,
            cause: ending.cause.map(str::to_owned),
            transfer,
            probes,
            stream,
            observed: Some(ObservedRow {
                local: self.key.map(|key| key.local()),
                remote: self.key.map(|key| key.remote()),
                direction: direction.name(),
                end_s: self.last.as_secs_f64(),
                down: self.down,
                up: self.up,
            }),
            ..FlowRow::unfinished(number, self.name(), kind, mobile.to_owned(), self.first.as_secs_f64())
        }
    }

    /// Both ends, the initiator first.
    fn name(&self) -> String {
        let Some(key) = self.key else { return format!("flows beyond the first {}", super::MOST_FLOWS) };
        let arrow = match self.opened {
            Direction::Up => '→',
            Direction::Down => '←',
        };
        format!("{} {arrow} {}{key}", key.local(), key.remote())
    }

    /// The direction with more data.
    fn main_direction(&self) -> Direction {
        match &self.protocol {
            State::Tcp(connection) => connection.main_direction(),
            State::Ping(_) => self.opened,
            State::Other(_) if self.up.offered_packets > self.down.offered_packets => Direction::Up,
            State::Other(_) => Direction::Down,
        }
    }

    /// A flow without an end of its own is complete when none of its packets is in flight.
    fn arrival(&self) -> Ending {
        let is_over = [self.down, self.up]
            .iter()
            .all(|traffic| traffic.offered_packets == traffic.delivered_packets + traffic.lost_packets);
        Ending { outcome: if is_over { "finished" } else { "unfinished" }, cause: None }
    }

    /// Number of packets of this direction that have entered.
    pub const fn offered_packets(&self, direction: Direction) -> u64 {
        self.traffic(direction).offered_packets
    }

    const fn traffic(&self, direction: Direction) -> &TrafficRow {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    const fn traffic_mut(&mut self, direction: Direction) -> &mut TrafficRow {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}
