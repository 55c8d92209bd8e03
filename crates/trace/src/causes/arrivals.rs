//! Exact times of a link from captures at both ends: when each data packet was sent and arrived.

use std::sync::Arc;

use airpath_core::{Instant, Span};

use super::timeline::Waiting;
use crate::two_point::silence::PATIENCE;
use crate::two_point::{Direction, Fate, PacketDigest, Silences, Transit, round_trip};
use airpath_capture::read::LATEST;

/// No packet of Ethernet has more payload.
const LONGEST_PACKET: u32 = 1460;

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub sent: Instant,
    pub arrived: Instant,
    pub length: u32,
    /// Whether an earlier copy arrived, too.
    pub spurious: bool,
    /// The path carried packets of other connections until then, if one arrived right before.
    pub others_until: Option<Instant>,
}

/// The arrivals of the packets of one end, sorted by arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    arrivals: Vec<Arrival>,
    next: usize,
    /// The shortest delay of a full segment.
    shortest: Span,
    /// The median spacing of full segments that were in flight together.
    service: Option<Span>,
    /// The shortest round trip: from sending data, a SYN or a FIN to the arrival of the first
    /// packet that the far end sent after it arrived.
    round_trip: Option<Span>,
    /// What the path held of all connections, and the number of its entries that are over.
    path_queue: Arc<[(Instant, Instant)]>,
    queued: usize,
    silences: Arc<Silences>,
    /// When the first packet was sent whose arrival the other capture does not show, as it ends
    /// before.
    unknown_from: Option<Instant>,
}

impl Arrivals {
    /// From a joined direction and its reverse.
    pub(super) fn of(direction: &Direction, back: &Direction) -> Self {
        let arrival = |transit: &Transit| {
            (transit.packet.length > 0).then_some(())?;
            Some(Arrival {
                sent: transit.packet.time.min(LATEST),
                arrived: transit.arrival()?.min(LATEST),
                length: transit.packet.length,
                spurious: transit.spurious,
                others_until: transit.others_until,
            })
        };
        let mut arrivals: Vec<Arrival> = direction.transits.iter().filter_map(arrival).collect();
        arrivals.sort_by_key(|arrival| arrival.arrived);
        // A super-segment takes longer than the packets in which the path carries it.
        let lengths = || arrivals.iter().map(|arrival| arrival.length);
        let full = lengths().filter(|length| *length <= LONGEST_PACKET).max().or(lengths().max()).unwrap_or(0);
        let delays = arrivals.iter().filter(|arrival| arrival.length == full);
        let own = delays.map(|arrival| arrival.arrived.since(arrival.sent)).min();
        let shortest = own.into_iter().chain(direction.shortest_full_of_client).min().unwrap_or_default();
        let neighbours = arrivals.windows(2).filter(|pair| pair.iter().all(|arrival| arrival.length >= full));
        let mut spacings: Vec<Span> = neighbours
            .filter(|pair| pair[1].sent + shortest < pair[0].arrived)
            .map(|pair| pair[1].arrived.since(pair[0].arrived).saturating_mul(full.into()) / u64::from(pair[1].length))
            .collect();
        spacings.sort_unstable();
        let service = spacings.get(spacings.len() / 2).copied();
        let own = round_trip::shortest(direction, back);
        let round_trip = own.into_iter().chain(direction.round_trip_of_client).min();
        let path_queue = Arc::clone(&direction.path_queue);
        // What arrived before the first packet was sent is not in front of one.
        let first = arrivals.iter().map(|arrival| arrival.sent).min().unwrap_or(LATEST);
        let queued = path_queue.partition_point(|(_, arrived)| *arrived <= first);
        let silences = Arc::clone(&direction.silences);
        let of_end = direction.transits.iter().rev().take_while(|transit| transit.fate == Fate::Unknown);
        let unknown_from = of_end.last().map(|transit| transit.packet.time.min(LATEST));
        Self { arrivals, next: 0, shortest, service, round_trip, path_queue, queued, silences, unknown_from }
    }

    /// Whether the arrival of a packet that was sent then is unknown: the capture ends before.
    pub(super) fn lack(&self, sent: Instant) -> bool {
        self.unknown_from.is_some_and(|from| from <= sent)
    }

    /// The shortest round trip; `None` without one.
    pub(super) const fn round_trip(&self) -> Option<Span> {
        self.round_trip
    }

    /// The usual service time of a full segment; `None` where no two were in flight together.
    pub(super) const fn service(&self) -> Option<Span> {
        self.service
    }

    /// The shortest delay of a full segment.
    pub(super) const fn shortest(&self) -> Span {
        self.shortest
    }

    /// Takes the next entry of the queue that was sent until `time`: its sending time, and
    /// when the last of them arrived.
    pub(super) fn queued_until(&mut self, time: Instant) -> Option<(Instant, Instant)> {
        let entry = *self.path_queue.get(self.queued).filter(|(sent, _)| *sent <= time)?;
        self.queued += 1;
        Some(entry)
    }

    /// When no packet of any connection of the client arrived between two instants at the receiver.
    pub(super) fn silences(&self, begin: Instant, end: Instant) -> impl Iterator<Item = (Instant, Instant)> + '_ {
        self.silences.within(begin, end)
    }

    /// Takes the next arrival until `now`.
    pub(super) fn until(&mut self, now: Instant) -> Option<Arrival> {
        let arrival = *self.arrivals.get(self.next).filter(|arrival| arrival.arrived <= now)?;
        self.next += 1;
        Some(arrival)
    }
}

/// A time in which packets of a direction waited behind others of the same client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub begin: Instant,
    pub end: Instant,
    /// Whether data waited.
    pub behind: Waiting,
}

/// When packets of a direction waited behind others of the same client for at least `window`, with
/// pauses of a tenth of it, sorted by begin. The link is `before` after the sender of the
/// direction. Where no packet of the client arrived, none waited behind another.
pub(super) fn waits_behind_others(direction: &Direction, window: Span, before: Span) -> Vec<Wait> {
    let after = direction.delay.map_or(Span::ZERO, |delay| delay.minimum.saturating_sub(before));
    let at_link = |arrival: Instant| arrival - after.min(arrival.since(Instant::ZERO));
    let arrived = |transit: &Transit| {
        let PacketDigest { time, length, .. } = transit.packet;
        Some((transit.arrival()?.min(LATEST), time, transit.others_until, length > 0))
    };
    let mut packets: Vec<_> = direction.transits.iter().filter_map(arrived).collect();
    packets.sort_unstable();
    let (mut waits, mut period) = (Vec::new(), None::<(Instant, Instant)>);
    // The waits of the present period, which count if it is long enough.
    let mut behind: Vec<Wait> = Vec::new();
    // When the last packet left, and when the last one with data did.
    let (mut last, mut last_data) = (Instant::ZERO, Instant::ZERO);
    for (arrival, sent, others_until, is_data) in packets {
        let left = at_link(arrival);
        let entered = (sent + before).min(left);
        match &mut period {
            Some((_, end)) if entered <= *end + window / 10 => *end = left.max(*end),
            _ => {
                if period.is_some_and(|(begin, end)| end.since(begin) >= window) {
                    waits.append(&mut behind);
                }
                behind.clear();
                period = Some((entered, left));
            }
        }
        if let Some(until) = others_until {
            let (kind, free) = if is_data { (Waiting::Data, last_data) } else { (Waiting::Acknowledgement, last) };
            let (mut begin, end) = (entered.max(free), at_link(until).min(left));
            let mut add = |begin, end| behind.extend((begin < end).then_some(Wait { begin, end, behind: kind }));
            for (silent, over) in direction.silences.within(begin + after, end + after) {
                add(begin, at_link(silent));
                begin = at_link(over);
            }
            add(begin, end);
        }
        last = left;
        if is_data {
            last_data = left;
        }
    }
    if period.is_some_and(|(begin, end)| end.since(begin) >= window) {
        waits.append(&mut behind);
    }
    waits.sort_unstable_by_key(|wait| (wait.begin, wait.end));
    waits
}

/// When acknowledgements of a direction queued in front of their link: each waited for longer than
/// `window`, and the queue lasted for that time. The link is `before` after the sender of the
/// direction. A link that has a queue carries packets, so a long time without an arrival is no
/// queue.
pub(super) fn acknowledgement_queues(direction: &Direction, window: Span, before: Span) -> Vec<(Instant, Instant)> {
    let shortest = direction.delay.map_or(Span::ZERO, |delay| delay.minimum);
    let after = shortest.saturating_sub(before);
    let arrived =
        |transit: &Transit| Some((transit.arrival()?.min(LATEST), transit.packet.time, transit.packet.length));
    let mut packets: Vec<_> = direction.transits.iter().filter_map(arrived).collect();
    packets.sort_unstable();
    let mut queues: Vec<(Instant, Instant)> = Vec::new();
    let (mut last, mut silent_until) = (Instant::ZERO, Instant::ZERO);
    for (arrival, sent, length) in packets {
        let left = arrival - after.min(arrival.since(Instant::ZERO));
        if left.since(last) > PATIENCE {
            silent_until = left;
        }
        last = left;
        let since = (sent + before).max(silent_until);
        if length > 0 || arrival.since(sent) <= shortest + window || since >= left {
            continue;
        }
        match queues.last_mut() {
            Some((_, end)) if since <= *end => *end = left.max(*end),
            _ => queues.push((since, left)),
        }
    }
    queues.retain(|(begin, end)| end.since(*begin) >= window);
    queues
}
