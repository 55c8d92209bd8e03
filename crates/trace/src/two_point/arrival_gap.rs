//! Times without an arrival though packets were in flight: gaps, in which packets were lost, and
//! delay periods without loss (the study "umts-live", its point 3); and the burst that follows.

use airpath_core::{Instant, Span};

use super::quantiles::Quantiles;
use super::transit::{Fate, Transit};

/// A time without arrivals although packets were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalGap {
    /// The last arrival before.
    pub begin: Instant,
    /// When the next packet was due: after the shortest delay of the direction, and after the usual
    /// spacing of packets that queue behind each other.
    pub due: Instant,
    /// The first arrival after.
    pub end: Instant,
    /// Packets that were due in between and were lost: with some it is a gap, without a delay
    /// period.
    pub lost: u64,
    /// When the last of them was due.
    pub last_lost: Option<Instant>,
    /// How late the packet was that ended it.
    pub held: Span,
    /// The packets before and after, by their frames at the sender.
    pub frames: (u64, u64),
    /// The burst after it.
    pub burst: Burst,
}

/// Packets that were delayed by a gap, and arrived after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// Packets.
    pub packets: u64,
    /// Their payload.
    pub bytes: u64,
    /// From the first arrival to the last.
    pub time: Span,
}

impl ArrivalGap {
    /// Whether packets were lost: a gap, and not a delay period.
    pub const fn has_loss(&self) -> bool {
        self.lost > 0
    }

    /// From the last arrival before it to the first after it.
    pub const fn length(&self) -> Span {
        self.end.since(self.begin)
    }
}

/// The gaps that last at least `least` from when a packet was due.
pub(super) fn gaps(transits: &[Transit], least: Span) -> Vec<ArrivalGap> {
    let shortest = transits.iter().filter_map(Transit::delay).min().unwrap_or_default();
    let mut arrived: Vec<(Instant, usize)> =
        transits.iter().enumerate().filter_map(|(at, transit)| Some((transit.arrival()?, at))).collect();
    arrived.sort_unstable();
    let usual = usual_distance(transits, &arrived, shortest);
    let mut gaps = Vec::new();
    // The latest sent of the packets that arrived so far: those sent before it are not due any
    // more.
    let mut latest = 0;
    for (number, pair) in arrived.windows(2).enumerate() {
        let [(begin, before), (end, after)] = *pair else { continue };
        latest = latest.max(before);
        let Some(next) = transits.get(latest + 1) else { break };
        let due = later(begin, usual).max(later(next.packet.time, shortest));
        if end.since(due) < least {
            continue;
        }
        // The packets sent after the latest that arrived.
        let meanwhile = transits[latest + 1..].iter().take_while(|transit| later(transit.packet.time, shortest) <= end);
        let lost = || meanwhile.clone().filter(|transit| transit.fate == Fate::Lost);
        gaps.push(ArrivalGap {
            begin,
            due,
            end,
            lost: lost().count() as u64,
            last_lost: lost().last().map(|transit| later(transit.packet.time, shortest)),
            held: end.since(due.max(later(transits[after].packet.time, shortest))),
            frames: (transits[before].packet.frame, transits[after].packet.frame),
            burst: burst(transits, &arrived[number + 1..], end, shortest),
        });
    }
    gaps
}

/// The 95th percentile of the spacing of arrivals that had queued when the one before arrived: the
/// service time of a packet. On a slow link that alone may be a second.
fn usual_distance(transits: &[Transit], arrived: &[(Instant, usize)], shortest: Span) -> Span {
    let distances = arrived.windows(2).filter_map(|pair| {
        let [(before, _), (time, at)] = *pair else { return None };
        (later(transits[at].packet.time, shortest) <= before).then(|| time.since(before))
    });
    Quantiles::of(distances.collect()).map_or(Span::ZERO, |distances| distances.percentile_95)
}

/// The packets that arrived from `end` on and had been due by then.
fn burst(transits: &[Transit], arrived: &[(Instant, usize)], end: Instant, shortest: Span) -> Burst {
    let waited = arrived.iter().take_while(|(_, at)| later(transits[*at].packet.time, shortest) <= end);
    waited.fold(Burst::default(), |burst, (time, at)| Burst {
        packets: burst.packets + 1,
        bytes: burst.bytes + u64::from(transits[*at].packet.length),
        time: time.since(end),
    })
}

/// An instant later by `by`, saturating: the times of a damaged capture may be arbitrary.
const fn later(time: Instant, by: Span) -> Instant {
    Instant::from_nanos(time.as_nanos().saturating_add(by.as_nanos()))
}
