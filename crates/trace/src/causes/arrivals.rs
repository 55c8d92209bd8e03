//! What both ends' captures tell of the link, exactly: when each packet with data was sent, and when it arrived.

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Flags;

use crate::two_ends::{Direction, Packet, Passage};
use airpath_capture::read::LATEST;

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub sent: Instant,
    pub arrived: Instant,
    pub length: u32,
    /// An earlier copy of it arrived, too.
    pub spurious: bool,
}

/// The arrivals of what one end sent, in the order of their time.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    arrivals: Vec<Arrival>,
    next: usize,
    /// The shortest way of a full segment.
    shortest: Span,
    /// The usual time between two of them that were on their way together.
    service: Option<Span>,
    /// The shortest round trip: from when data was sent, or a SYN or FIN, to the arrival of what the far end sent next after that had arrived.
    round_trip: Option<Span>,
}

impl Arrivals {
    /// Of what both captures have of a direction, and of the other.
    pub(super) fn of(direction: &Direction, back: &Direction) -> Self {
        let arrival = |passage: &Passage| {
            (passage.packet.length > 0).then_some(())?;
            Some(Arrival {
                sent: passage.packet.time.min(LATEST),
                arrived: passage.arrival()?.min(LATEST),
                length: passage.packet.length,
                spurious: passage.spurious,
            })
        };
        let mut arrivals: Vec<Arrival> = direction.passages.iter().filter_map(arrival).collect();
        arrivals.sort_by_key(|arrival| arrival.arrived);
        let full = arrivals.iter().map(|arrival| arrival.length).max().unwrap_or(0);
        let ways = arrivals.iter().filter(|arrival| arrival.length == full);
        let shortest = ways.map(|arrival| arrival.arrived.since(arrival.sent)).min().unwrap_or_default();
        let neighbours = arrivals.windows(2).filter(|pair| pair.iter().all(|arrival| arrival.length == full));
        let mut spacings: Vec<Span> = neighbours
            .filter(|pair| pair[1].sent + shortest < pair[0].arrived)
            .map(|pair| pair[1].arrived.since(pair[0].arrived))
            .collect();
        spacings.sort_unstable();
        let service = spacings.get(spacings.len() / 2).copied();
        let round_trip = shortest_round_trip(direction, back);
        Self { arrivals, next: 0, shortest, service, round_trip }
    }

    /// The shortest round trip; `None` where nothing came back.
    pub(super) const fn round_trip(&self) -> Option<Span> {
        self.round_trip
    }

    /// The time that the link usually takes for a full segment; `None` where no two of them followed on one another.
    pub(super) const fn service(&self) -> Option<Span> {
        self.service
    }

    /// The shortest way of a full segment.
    pub(super) const fn shortest(&self) -> Span {
        self.shortest
    }

    /// The next, if it has arrived by `now`.
    pub(super) fn until(&mut self, now: Instant) -> Option<Arrival> {
        let arrival = *self.arrivals.get(self.next).filter(|arrival| arrival.arrived <= now)?;
        self.next += 1;
        Some(arrival)
    }
}

/// Of all answers to what asks for one, data and the opening and closing of the connection, the quickest, as both ends see it.
fn shortest_round_trip(asking: &Direction, answering: &Direction) -> Option<Span> {
    let asks = |packet: &Packet| packet.length > 0 || packet.flags.0 & (Flags::SYN | Flags::FIN).0 != 0;
    let asked = asking.passages.iter().filter(|passage| asks(&passage.packet));
    let mut asked: Vec<(Instant, Instant)> =
        asked.filter_map(|passage| Some((passage.arrival()?, passage.packet.time))).collect();
    asked.sort_unstable();
    let mut asked = asked.into_iter().peekable();
    let mut latest: Option<Instant> = None;
    let mut shortest: Option<Span> = None;
    for answer in &answering.passages {
        while let Some((_, sent)) = asked.next_if(|(arrived, _)| *arrived <= answer.packet.time) {
            latest = Some(sent);
        }
        let sample = latest.zip(answer.arrival()).map(|(sent, here)| here.since(sent));
        shortest = sample.into_iter().chain(shortest).min();
    }
    shortest
}
