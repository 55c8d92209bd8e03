//! Times in which nothing arrived, though something was on its way: gaps, in which packets were lost, and delay periods, in which none
//! was (the study "umts-live", its point 3); and the burst that follows when the path is back.

use airpath_core::{Instant, Span};

use super::passage::{Fate, Passage};
use super::quantiles::Quantiles;

/// A time without arrivals, though packets were on their way that should have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The last arrival before.
    pub begin: Instant,
    /// When the next packet should have arrived: after the shortest delay of the direction, and no closer to the one before than
    /// packets that wait for each other usually are.
    pub due: Instant,
    /// The first arrival after.
    pub end: Instant,
    /// Packets that should have arrived in between, and were lost: with some it is a gap, without a delay period.
    pub lost: u64,
    /// When the last of them should have arrived.
    pub last_lost: Option<Instant>,
    /// How long the packet that ended it had been due.
    pub held: Span,
    /// The packet before and the one after, by their frames at the sender.
    pub frames: (u64, u64),
    /// What arrived when the path was back.
    pub burst: Burst,
}

/// Packets that had waited for the path, and arrived when it was back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// Packets.
    pub packets: u64,
    /// Their payload.
    pub bytes: u64,
    /// From the first arrival to the last.
    pub time: Span,
}

impl Silence {
    /// Whether packets were lost in it.
    pub const fn is_gap(&self) -> bool {
        self.lost > 0
    }

    /// From the last arrival before it to the first after it.
    pub const fn length(&self) -> Span {
        self.end.since(self.begin)
    }
}

/// The silences of at least `least` from when a packet was due.
pub(super) fn silences(passages: &[Passage], least: Span) -> Vec<Silence> {
    let shortest = passages.iter().filter_map(Passage::delay).min().unwrap_or_default();
    let mut arrived: Vec<(Instant, usize)> =
        passages.iter().enumerate().filter_map(|(at, passage)| Some((passage.arrival()?, at))).collect();
    arrived.sort_unstable();
    let usual = usual_distance(passages, &arrived, shortest);
    let mut silences = Vec::new();
    // The latest sent of those that arrived so far: what was sent up to it is not waited for any more.
    let mut latest = 0;
    for (number, pair) in arrived.windows(2).enumerate() {
        let [(begin, before), (end, after)] = *pair else { continue };
        latest = latest.max(before);
        let Some(next) = passages.get(latest + 1) else { break };
        let due = later(begin, usual).max(later(next.packet.time, shortest));
        if end.since(due) < least {
            continue;
        }
        // They follow the latest that arrived, in the order in which they were sent.
        let meanwhile = passages[latest + 1..].iter().take_while(|passage| later(passage.packet.time, shortest) <= end);
        let lost = || meanwhile.clone().filter(|passage| passage.fate == Fate::Lost);
        silences.push(Silence {
            begin,
            due,
            end,
            lost: lost().count() as u64,
            last_lost: lost().last().map(|passage| later(passage.packet.time, shortest)),
            held: end.since(due.max(later(passages[after].packet.time, shortest))),
            frames: (passages[before].packet.frame, passages[after].packet.frame),
            burst: burst(passages, &arrived[number + 1..], end, shortest),
        });
    }
    silences
}

/// The distance that 95 of 100 arrivals keep which had been waiting when the one before arrived: the time that the path takes for a
/// packet. On a slow link that alone may be a second.
fn usual_distance(passages: &[Passage], arrived: &[(Instant, usize)], shortest: Span) -> Span {
    let distances = arrived.windows(2).filter_map(|pair| {
        let [(before, _), (time, at)] = *pair else { return None };
        (later(passages[at].packet.time, shortest) <= before).then(|| time.since(before))
    });
    Quantiles::of(distances.collect()).map_or(Span::ZERO, |distances| distances.percentile_95)
}

/// What arrived from `end` on and had been due by then.
fn burst(passages: &[Passage], arrived: &[(Instant, usize)], end: Instant, shortest: Span) -> Burst {
    let waited = arrived.iter().take_while(|(_, at)| later(passages[*at].packet.time, shortest) <= end);
    waited.fold(Burst::default(), |burst, (time, at)| Burst {
        packets: burst.packets + 1,
        bytes: burst.bytes + u64::from(passages[*at].packet.length),
        time: time.since(end),
    })
}

/// An instant that much later, or the last there is: the times of a damaged capture are anything.
const fn later(time: Instant, by: Span) -> Instant {
    Instant::from_nanos(time.as_nanos().saturating_add(by.as_nanos()))
}
