//! One connection, and the interpretation of each of its segments.

mod acknowledgement;
mod arrivals;
mod direction;
mod full_segment;
mod numbering;
mod segment;

use std::net::Ipv4Addr;

use airpath_core::{Instant, Span};
use airpath_wire::segment::{Endpoint, Route, Segment, Tunnel};
use airpath_wire::tcp::Flags;

use crate::events::Events;
use crate::figures::Figures;
use crate::observation::{End, Observation};
use crate::spurious::Spurious;
use direction::Direction;

/// A connection: both directions, as far as they are captured.
#[derive(Clone, Debug)]
pub struct Connection {
    route: Route,
    first: Instant,
    last: Instant,
    segments: u64,
    /// An earlier connection had the same addresses and ports.
    reused: bool,
    /// The data of the client, and the data of the server.
    directions: [Direction; 2],
}

impl Connection {
    /// A connection that begins with `segment`; `reused` where an earlier one had the same
    /// addresses and ports.
    pub fn new(segment: &Segment<'_>, reused: bool) -> Self {
        // If the capture lacks the SYN, the SYN-ACK still shows which end opened.
        let opens = segment.flags.contains(Flags::SYN);
        let from_server = if opens { segment.flags.contains(Flags::ACK) } else { server_by_port(&segment.route) };
        let route = if from_server { segment.route.reversed() } else { segment.route };
        Self {
            route,
            first: segment.time,
            last: segment.time,
            segments: 0,
            reused,
            directions: [Direction::default(), Direction::default()],
        }
    }

    /// A connection without segments: its figures are the defaults.
    pub fn without_segments() -> Self {
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

    /// Time of its first captured segment.
    pub const fn first(&self) -> Instant {
        self.first
    }

    /// Time of its last captured segment.
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

    /// Figures of the data that `end` sent.
    pub const fn figures(&self, end: End) -> &Figures {
        &self.directions[end as usize].figures
    }

    /// Whether both ends requested window scaling, so that it applies (RFC 7323 §2.2).
    pub fn scaled(&self) -> bool {
        End::BOTH.iter().all(|end| self.figures(*end).window_scale.is_some())
    }

    /// Whether the SYNs and the FINs of both ends were seen.
    pub fn complete(&self) -> bool {
        End::BOTH.iter().all(|end| self.figures(*end).syns > 0 && self.figures(*end).fins > 0)
    }

    /// Throughput in bytes/s: unique bytes of `figures` over the elapsed time.
    pub(crate) fn throughput(&self, figures: &Figures) -> Option<f64> {
        let seconds = self.elapsed().as_secs_f64();
        (seconds > 0.0).then(|| figures.unique_bytes as f64 / seconds)
    }

    /// Acknowledged unique bytes of `figures` over the elapsed time, in bytes/s.
    pub(crate) fn goodput(&self, figures: &Figures) -> Option<f64> {
        let delivered = figures.unique_bytes.saturating_sub(figures.outstanding.now());
        self.throughput(figures).map(|_| delivered as f64 / self.elapsed().as_secs_f64())
    }

    /// Processes the next segment, sent by `from`, and returns its interpretation.
    pub fn segment(&mut self, segment: &Segment<'_>, from: End) -> Observation {
        self.last = self.last.max(segment.time);
        self.segments += 1;
        let [client, server] = &mut self.directions;
        let (sent, answered) = match from {
            End::Client => (client, server),
            End::Server => (server, client),
        };
        let mut observation = segment::observe(segment, from, sent, answered);
        observation.events.set(Events::REUSED_PORTS, self.reused && self.segments == 1);
        self.directions[from as usize].figures.events(observation.events);
        observation
    }

    /// The spurious ones of the latest 256 retransmissions of `end`. One acknowledgement may show
    /// several; its [`Observation`] has the last of them.
    pub fn spurious(&self, end: End) -> impl Iterator<Item = Spurious> {
        self.directions[end as usize].retransmissions.spurious()
    }

    /// Whether both ends have closed and acknowledged it, or one has reset it.
    pub fn closed(&self) -> bool {
        self.directions.iter().any(Direction::reset) || self.finished()
    }

    /// Whether both ends have closed it, and each has acknowledged the FIN of the other.
    pub fn finished(&self) -> bool {
        self.directions.iter().all(Direction::finished)
    }

    /// Returns the memory that it does not use: a closed connection receives few segments.
    pub(crate) fn shrink_to_fit(&mut self) {
        for direction in &mut self.directions {
            direction.outstanding.shrink_to_fit();
            direction.retransmissions.shrink_to_fit();
        }
    }

    /// Whether a SYN with this sequence number from `from` begins a new connection on the same
    /// addresses and ports.
    pub fn superseded_by(&self, segment: &Segment<'_>, from: End) -> bool {
        let [client, server] = &self.directions;
        let (sent, answered) = match from {
            End::Client => (client, server),
            End::Server => (server, client),
        };
        segment.flags.contains(Flags::SYN) && sent.restarts_with(segment, answered)
    }
}

/// Whether the ports show the source as the server, where the capture lacks the handshake: servers
/// use system ports, then registered ports (RFC 6335 §6), and clients those above. Between ports of
/// the same kind, the end whose segment is first counts as the client.
fn server_by_port(route: &Route) -> bool {
    let kind = |port: u16| match port {
        0..=1023 => 0,
        // Linux gives clients ports from 32768 (net.ipv4.ip_local_port_range).
        1024..=32767 => 1,
        _ => 2,
    };
    kind(route.source.port) < kind(route.destination.port)
}

#[cfg(test)]
mod tests;
