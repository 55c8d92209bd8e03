//! The states of a radio log in the time of a connection: when they delayed its packets, and which
//! states the time had that is the radio's.

use std::sync::Arc;

use airpath_core::{Direction, Instant};
use airpath_observe::End;

use super::timeline::{Timeline, Waiting};
use super::{Cause, Piece};
use crate::radio::RadioLog;
use crate::two_point::JoinedConnection;
use airpath_capture::read::LATEST;

/// A part of the time of a connection in which the radio log has a state that carried nothing or
/// delayed data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioState {
    /// The name of the state.
    pub name: Arc<str>,
    /// The cause of the time: [`Cause::Radio`], or [`Cause::SetUp`] during the handshake.
    pub cause: Cause,
    /// Begin.
    pub begin: Instant,
    /// End.
    pub end: Instant,
}

/// A time in which a state of the radio delayed packets.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    pub begin: Instant,
    pub end: Instant,
    /// The direction; `None` for both.
    pub direction: Option<Direction>,
    /// The packets of the connection that were in transit, if captures of both ends show them.
    pub packets: Option<Waiting>,
    name: Arc<str>,
}

/// The states of a log, and what is found of them in the time of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct RadioStates {
    log: Arc<RadioLog>,
    delays: Vec<Delay>,
    /// The delays before this one are over.
    next: usize,
    /// The gaps and the delays before these have been named.
    named: [usize; 2],
    /// In the order of time.
    pub found: Vec<RadioState>,
}

impl RadioStates {
    /// Of a log. Which packets a state delayed is inferred from its direction.
    pub(super) fn new(log: Arc<RadioLog>) -> Self {
        let delays = log.delays().iter().map(|delay| Delay {
            begin: delay.begin,
            end: delay.end,
            direction: delay.direction,
            packets: None,
            name: Arc::clone(&delay.name),
        });
        Self { delays: delays.collect(), log, ..Self::default() }
    }

    /// The same with the packets that were in transit during the delays.
    pub(super) fn with_packets(self, joined: &JoinedConnection, mobile: End) -> Self {
        let mut delays = Vec::new();
        for from in End::BOTH {
            let direction = if from == mobile { Direction::Up } else { Direction::Down };
            for (packets, is_data) in [(Waiting::Acknowledgement, false), (Waiting::Data, true)] {
                let mut in_transit = in_transit(joined, from, is_data).into_iter().peekable();
                let of_direction =
                    self.delays.iter().filter(|delay| delay.direction.is_none_or(|each| each == direction));
                for delay in of_direction {
                    while in_transit.next_if(|(_, arrived)| *arrived <= delay.begin).is_some() {}
                    let overlapping = in_transit.clone().take_while(|(sent, _)| *sent < delay.end);
                    delays.extend(overlapping.map(|(sent, arrived)| Delay {
                        begin: sent.max(delay.begin),
                        end: arrived.min(delay.end),
                        packets: Some(packets),
                        ..delay.clone()
                    }));
                }
            }
        }
        delays.sort_by_key(|delay| (delay.begin, delay.end));
        Self { delays, ..self }
    }

    /// The delays between two instants. Neither decreases from call to call.
    fn between(&mut self, begin: Instant, end: Instant) -> impl Iterator<Item = &Delay> {
        while self.delays.get(self.next).is_some_and(|delay| delay.end <= begin) {
            self.next += 1;
        }
        self.delays[self.next..]
            .iter()
            .take_while(move |delay| delay.begin < end)
            .filter(move |delay| delay.end > begin)
    }

    /// Marks the time between two instants in which states of the radio delayed packets, while the
    /// near end was `sending` data in `data_direction`, or receiving it.
    pub(super) fn mark(
        &mut self,
        begin: Instant,
        end: Instant,
        [sending, receiving]: [bool; 2],
        data_direction: Direction,
        timeline: &mut Timeline,
    ) {
        for delay in self.between(begin, end) {
            let is_reverse = delay.direction.is_some_and(|direction| direction != data_direction);
            let inferred = match (sending, is_reverse) {
                (true, true) => Some(Waiting::Acknowledgement),
                (true, false) => Some(Waiting::Data),
                (false, false) if receiving => Some(Waiting::Data),
                // Without captures of both ends, other connections may be those that waited.
                (false, _) => None,
            };
            if let Some(what) = delay.packets.or(inferred) {
                timeline.delayed(delay.begin.max(begin), delay.end.min(end), what);
            }
        }
    }

    /// Finds the states of a piece of time that is the radio's, or of the handshake. Pieces follow
    /// each other in time.
    pub(super) fn name(&mut self, piece: &Piece) {
        if !matches!(piece.cause, Cause::Radio | Cause::SetUp) {
            return;
        }
        let Self { log, delays, named: [gap, delay], found, .. } = self;
        while log.gaps().get(*gap).is_some_and(|gap| gap.end <= piece.begin) {
            *gap += 1;
        }
        while delays.get(*delay).is_some_and(|delay| delay.end <= piece.begin) {
            *delay += 1;
        }
        // A state that carries nothing comes before one that delays some data.
        let gaps = log.gaps()[*gap..].iter().map(|gap| (gap.begin, gap.end, &gap.name));
        let delays = delays[*delay..].iter().map(|delay| (delay.begin, delay.end, &delay.name));
        let before = |(begin, ..): &(Instant, Instant, &Arc<str>)| *begin < piece.end;
        let mut unnamed = vec![(piece.begin, piece.end)];
        let first = found.len();
        for (begin, end, name) in gaps.take_while(before).chain(delays.take_while(before)) {
            let mut left = Vec::new();
            for (from, to) in unnamed {
                let (inside_from, inside_to) = (begin.max(from), end.min(to));
                if inside_from >= inside_to {
                    left.push((from, to));
                    continue;
                }
                let (name, cause) = (Arc::clone(name), piece.cause);
                found.push(RadioState { name, cause, begin: inside_from, end: inside_to });
                left.extend([(from, inside_from), (inside_to, to)].into_iter().filter(|(from, to)| from < to));
            }
            unnamed = left;
        }
        found[first..].sort_by_key(|state| state.begin);
    }
}

/// When packets of an end were in transit: times without overlap, sorted. Those that had not
/// arrived when the captures ended were in transit until then.
fn in_transit(joined: &JoinedConnection, from: End, is_data: bool) -> Vec<(Instant, Instant)> {
    let transits = &joined.sent_by(from).transits;
    let arrived = transits.iter().rposition(|transit| transit.arrival().is_some());
    let mut times: Vec<(Instant, Instant)> = Vec::new();
    for (at, transit) in transits.iter().enumerate().filter(|(_, transit)| (transit.packet.length > 0) == is_data) {
        let is_under_way = arrived.is_some_and(|arrived| at > arrived);
        let Some(end) = transit.arrival().or(is_under_way.then_some(LATEST)) else { continue };
        match times.last_mut() {
            Some((_, last)) if transit.packet.time <= *last => *last = end.max(*last),
            _ => times.push((transit.packet.time, end)),
        }
    }
    times
}
