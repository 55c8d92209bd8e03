//! One connection: what each of its segments meant.

mod acknowledgement;
mod arrivals;
mod direction;
mod events;
mod numbering;
mod outstanding;
mod phase;
mod ranges;
mod round_trip;
mod spurious;
mod trigger;

use std::net::Ipv4Addr;

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Flags;

use crate::decode::{Endpoint, Route, Segment, Tunnel};
use crate::statistics::Figures;
use direction::Direction;

pub use events::Events;
pub use outstanding::Sending;
pub use phase::{Phase, Phases};
pub use round_trip::Spread;
pub use spurious::{Confidence, Detector, Spurious};
pub use trigger::Trigger;

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// The one that opened it: who sent the SYN, or else the sender of the first segment.
    Client,
    /// The other.
    Server,
}

impl End {
    /// Both, the client first.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// The other end.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A segment, and what it meant when it passed.
///
/// Sequence numbers are unwrapped to offsets of a stream of bytes: its first byte of data is 0, the SYN lies at -1.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The frame.
    pub frame: u64,
    /// When it passed.
    pub time: Instant,
    /// Who sent it.
    pub from: End,
    /// Stream offset of its first byte.
    pub offset: i64,
    /// Bytes of payload.
    pub length: u32,
    /// Control bits.
    pub flags: Flags,
    /// Stream offset of the other direction that is acknowledged.
    pub acknowledged: Option<i64>,
    /// Bytes of the other direction that its sender has by now told to have, cumulatively (RFC 9293) and selectively (RFC 2018) together.
    pub delivered: u64,
    /// When what it tells to have arrived, and no earlier acknowledgement had told of, was sent.
    pub news: Option<Sending>,
    /// When the oldest of what remains unacknowledged was sent.
    pub unacknowledged_since: Option<Instant>,
    /// Receive window in bytes, scaled.
    pub window: u64,
    /// What stands out.
    pub events: Events,
    /// How it came to be sent again; `None` for what is new.
    pub retransmission: Option<Retransmission>,
    /// Bytes that its sender has sent and that are not acknowledged, this segment included, as seen where the capture was taken.
    pub outstanding: u64,
    /// The round trip that this acknowledgement measures, of a segment that was sent once (Karn's rule), and its frame.
    pub round_trip: Option<(Span, u64)>,
    /// The round trip that the echo of a timestamp measures (RFC 7323 §4.3), of whichever copy arrived, and its frame. An outage
    /// that held packets back is in it, which Karn's rule throws away.
    pub echo_round_trip: Option<(Span, u64)>,
    /// Which duplicate acknowledgement it is, if it is one.
    pub duplicate: Option<Duplicate>,
    /// Bytes that its sender has sent since the last segment with PSH, this one included; 0 for a segment without data, and what
    /// is sent again counts again.
    pub since_push: u64,
    /// A retransmission that this segment shows to have been spurious: an earlier one of the other end, of several the last, or, if
    /// it repeats what is acknowledged already, itself.
    pub spurious: Option<Spurious>,
}

/// A segment that carries bytes which had been seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// The frame that carried it the time before; `None` where it has been acknowledged since, and is no longer remembered.
    pub of_frame: Option<u64>,
    /// When that was.
    pub of_time: Option<Instant>,
    /// What made the sender send it again.
    pub trigger: Trigger,
}

/// A duplicate acknowledgement (RFC 5681 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Its place in the row of duplicates, from 1: with the third the sender retransmits.
    pub number: u32,
    /// The frame that acknowledged the same first.
    pub of_frame: u64,
}

/// A connection: both directions, as far as the capture goes.
#[derive(Clone, Debug)]
pub struct Connection {
    route: Route,
    first: Instant,
    last: Instant,
    segments: u64,
    /// An earlier connection had the same addresses and ports.
    reused: bool,
    /// What the client sends, and what the server sends.
    directions: [Direction; 2],
}

impl Connection {
    /// A connection that begins with `segment`; `reused` where an earlier one had the same addresses and ports.
    pub fn new(segment: &Segment<'_>, reused: bool) -> Self {
        // Of a handshake whose SYN was not captured, the SYN-ACK still tells who opened.
        let answers = segment.flags.contains(Flags::SYN | Flags::ACK);
        let route = if answers { segment.route.reversed() } else { segment.route };
        Self {
            route,
            first: segment.time,
            last: segment.time,
            segments: 0,
            reused,
            directions: [Direction::default(), Direction::default()],
        }
    }

    /// A connection of which nothing was seen: what its figures are without any.
    pub(crate) fn without_segments() -> Self {
        let nowhere = Endpoint { address: Ipv4Addr::UNSPECIFIED.into(), port: 0 };
        Self {
            route: Route { source: nowhere, destination: nowhere, tunnel: Tunnel::None },
            first: Instant::ZERO,
            last: Instant::ZERO,
            segments: 0,
            reused: false,
            directions: [Direction::default(), Direction::default()],
        }
    }

    /// From the client to the server.
    pub const fn route(&self) -> &Route {
        &self.route
    }

    /// When its first segment was captured.
    pub const fn first(&self) -> Instant {
        self.first
    }

    /// When its last was.
    pub const fn last(&self) -> Instant {
        self.last
    }

    /// Segments of both directions.
    pub const fn segments(&self) -> u64 {
        self.segments
    }

    /// Time from the first segment to the last.
    pub const fn elapsed(&self) -> Span {
        self.last.since(self.first)
    }

    /// What `end` sent.
    pub const fn figures(&self, end: End) -> &Figures {
        &self.directions[end as usize].figures
    }

    /// Whether both ends asked for window scaling, so that it applies (RFC 7323 §2.2).
    pub fn scaled(&self) -> bool {
        End::BOTH.iter().all(|end| self.figures(*end).window_scale.is_some())
    }

    /// Whether the SYNs and the FINs of both ends were seen.
    pub fn complete(&self) -> bool {
        End::BOTH.iter().all(|end| self.figures(*end).syns > 0 && self.figures(*end).fins > 0)
    }

    /// Bytes a second: what `figures` has of the stream, over the elapsed time.
    pub(crate) fn throughput(&self, figures: &Figures) -> Option<f64> {
        let seconds = self.elapsed().as_secs_f64();
        (seconds > 0.0).then(|| figures.unique_bytes as f64 / seconds)
    }

    /// Takes the next segment, which `from` sent, and says what it meant.
    pub fn segment(&mut self, segment: &Segment<'_>, from: End) -> Observation {
        self.last = self.last.max(segment.time);
        self.segments += 1;
        let [client, server] = &mut self.directions;
        let (sent, answered) = match from {
            End::Client => (client, server),
            End::Server => (server, client),
        };
        let mut observation = direction::observe(segment, from, sent, answered);
        observation.events.set(Events::REUSED_PORTS, self.reused && self.segments == 1);
        self.directions[from as usize].figures.events(observation.events);
        observation
    }

    /// Which of the latest 256 retransmissions of `end` were found spurious by now. One acknowledgement may show several, of which its
    /// [`Observation`] names the last.
    pub fn spurious(&self, end: End) -> impl Iterator<Item = Spurious> {
        self.directions[end as usize].retransmissions.spurious()
    }

    /// Whether both ends have closed and acknowledged it, or one has reset it.
    pub fn closed(&self) -> bool {
        self.directions.iter().any(Direction::reset) || self.directions.iter().all(Direction::finished)
    }

    /// Whether a SYN with this sequence number from `from` begins a new connection on the same addresses and ports.
    pub(crate) fn superseded_by(&self, segment: &Segment<'_>, from: End) -> bool {
        let [client, server] = &self.directions;
        let (sent, answered) = match from {
            End::Client => (client, server),
            End::Server => (server, client),
        };
        segment.flags.contains(Flags::SYN) && sent.restarts_with(segment, answered)
    }
}

#[cfg(test)]
pub(crate) mod tests;
