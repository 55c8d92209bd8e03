//! How two clocks differ, from packets that went both ways.
//!
//! The delay of a packet, as the difference of two clocks has it, is its true delay and how far one clock is ahead. No packet is faster than
//! the path: so a line under all points of one direction, and one under those of the other, drift apart in opposite ways as the clocks
//! do. The drift is the slope that keeps both lines as near to their points as can be: the sum of the mean distances is
//! convex in the slope, and least at one of the edges of the lower convex hulls (Moon, Skelly and Towsley, INFOCOM 1999, for
//! one direction; Paxson, SIGMETRICS 1998, for why both are to be asked).

use airpath_core::{Instant, Span};

use super::pairing::Paired;
use airpath_observe::End;

/// How the second capture's clock relates to the first's: when that shows t, it shows t + offset + skew (t - origin).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// When the offset holds, by the first clock.
    pub origin: Instant,
    /// Nanoseconds by which the second clock is ahead.
    pub offset: i64,
    /// Seconds that it gains in each second of the first.
    pub skew: f64,
}

impl Clock {
    /// One clock made both captures.
    pub const SAME: Self = Self { origin: Instant::ZERO, offset: 0, skew: 0.0 };

    /// A time of the second clock, by the first.
    pub fn by_first(&self, time: Instant) -> Instant {
        let since = signed(time, self.origin).saturating_sub(self.offset);
        // Exact without skew; and with it as exact as the skew is known.
        let gained = since as f64 * (self.skew / (1.0 + self.skew));
        shifted(self.origin, since.saturating_sub(gained as i64))
    }
}

/// How a clock was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The clock.
    pub clock: Clock,
    /// The offset may be wrong by so much either way: it is taken for granted that the shortest ways there and back are of one
    /// length, and nothing can tell.
    pub uncertainty: Span,
    /// Whether a skew was found: both directions must show it. Without, it is taken to be 0.
    pub skewed: bool,
    /// Packets that were compared, by the way that they went: from the first capture to the second, and back.
    pub packets: [usize; 2],
}

/// The largest skew that is believed: crystals keep within 100 parts in a million, bad ones within a few hundred.
const GREATEST_SKEW: f64 = 1e-3;

/// Finds the second capture's clock; `None` where packets went one way only.
pub(super) fn fit(connections: &[Paired]) -> Option<Fit> {
    let origin =
        connections.iter().flat_map(|paired| &paired.first.directions).filter_map(|it| it.first_time()).min()?;
    // By the way that the packets went: from the first capture to the second, and back. Against the first clock's time, how much
    // longer the receiver's clock shows than the sender's.
    let mut points: [Vec<Point>; 2] = [Vec::new(), Vec::new()];
    for paired in connections {
        for from in End::BOTH {
            let back = from != paired.near;
            let (sent, received) = paired.packets(from);
            points[usize::from(back)].extend(paired.arrivals[from as usize].iter().map(|pair| {
                let (sent, received) = (sent.packets[pair.sent].time, received.packets[pair.received].time);
                let by_first = if back { received } else { sent };
                Point { at: signed(by_first, origin) as f64, delay: signed(received, sent) as f64 }
            }));
        }
    }
    let [there, back] = &mut points;
    let packets = [there.len(), back.len()];
    // The second clock's gain makes the delay there longer and that back shorter: turned about, both grow with it.
    let (there, back) = (Support::of(there)?, Support::of(back)?);
    let skew = common_slope(&there, &back);
    let skew = skew.filter(|skew| skew.abs() <= GREATEST_SKEW && both_show(&there, &back, *skew));
    let slope = skew.unwrap_or(0.0);
    let (least_there, least_back) = (there.intercept(slope), back.intercept(-slope));
    let clock = Clock { origin, offset: ((least_there - least_back) / 2.0) as i64, skew: slope };
    let uncertainty = Span::from_nanos(((least_there + least_back) / 2.0).max(0.0) as u64);
    Some(Fit { clock, uncertainty, skewed: skew.is_some(), packets })
}

/// A packet: when, and how long it took as the two clocks have it, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: f64,
    delay: f64,
}

/// The points of one direction as seen from below.
#[derive(Debug)]
struct Support {
    mean: Point,
    /// The lower convex hull, from left to right.
    hull: Vec<Point>,
}

impl Support {
    fn of(points: &mut [Point]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / count;
        let mean = Point { at: mean(|point| point.at), delay: mean(|point| point.delay) };
        points.sort_by(|one, other| one.at.total_cmp(&other.at).then(one.delay.total_cmp(&other.delay)));
        let mut hull: Vec<Point> = Vec::new();
        for point in points.iter().copied() {
            while let [.., before, last] = hull[..]
                && slope(before, point) <= slope(before, last)
            {
                hull.pop();
            }
            if hull.last().is_none_or(|last| last.at < point.at) {
                hull.push(point);
            }
        }
        (!hull.is_empty()).then_some(Self { mean, hull })
    }

    /// Where the line with this slope that lies under all points meets the axis.
    fn intercept(&self, slope: f64) -> f64 {
        self.hull.iter().map(|point| point.delay - slope * point.at).fold(f64::INFINITY, f64::min)
    }

    /// The mean distance of the points from that line.
    fn distance(&self, slope: f64) -> f64 {
        self.mean.delay - slope * self.mean.at - self.intercept(slope)
    }

    fn slopes(&self) -> impl Iterator<Item = f64> + '_ {
        self.hull.windows(2).map(|edge| slope(edge[0], edge[1]))
    }

    /// The slope of the line under all points that is nearest to them.
    fn own_slope(&self) -> f64 {
        self.slopes().min_by(|one, other| self.distance(*one).total_cmp(&self.distance(*other))).unwrap_or(0.0)
    }
}

fn slope(one: Point, other: Point) -> f64 {
    (other.delay - one.delay) / (other.at - one.at)
}

/// The slope that brings the lines of both directions nearest to their points, the one rising as the other falls.
fn common_slope(there: &Support, back: &Support) -> Option<f64> {
    let distance = |slope: f64| there.distance(slope) + back.distance(-slope);
    let slopes = there.slopes().chain(back.slopes().map(|slope| -slope));
    slopes.min_by(|one, other| distance(*one).total_cmp(&distance(*other)))
}

/// Whether each direction alone shows about this skew. Queues that grow or shrink bend one of them, or both the same way; only
/// clocks bend them in opposite ways by as much.
fn both_show(there: &Support, back: &Support, skew: f64) -> bool {
    let about = |own: f64| (own - skew).abs() <= skew.abs() / 2.0;
    about(there.own_slope()) && about(-back.own_slope())
}

/// `time` less `origin`, in nanoseconds; at most 292 years either way.
fn signed(time: Instant, origin: Instant) -> i64 {
    let (time, origin) = (i128::from(time.as_nanos()), i128::from(origin.as_nanos()));
    (time - origin).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The instant `nanoseconds` after `origin`; the first there is where that would lie before it.
fn shifted(origin: Instant, nanoseconds: i64) -> Instant {
    Instant::from_nanos(origin.as_nanos().saturating_add_signed(nanoseconds))
}
