//! The offset and skew of two clocks, from packets of both directions.
//!
//! The measured delay of a packet is its true delay plus the offset of the clocks. No packet is
//! faster than the path: the lower bound of the delays of one direction rises with the skew of the
//! clocks, and that of the other falls. The skew is the slope that brings both bounds nearest to
//! their points. The sum of the mean distances is convex in the slope, and least at an edge of the
//! lower convex hulls (Moon, Skelly and Towsley, INFOCOM 1999, for one direction; Paxson,
//! SIGMETRICS 1998, on the need for both).

use airpath_core::{Instant, Span};

use super::pairing::Paired;
use airpath_observe::End;

/// The second capture's clock: at time t of the first it shows t + offset + skew (t - origin).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// The time of the offset, by the first clock.
    pub origin: Instant,
    /// Nanoseconds by which the second clock is ahead.
    pub offset: i64,
    /// Seconds that it gains in each second of the first.
    pub skew: f64,
}

impl Clock {
    /// One clock stamped both captures.
    pub const SAME: Self = Self { origin: Instant::ZERO, offset: 0, skew: 0.0 };

    /// A time of the second clock, by the first.
    pub fn by_first(&self, time: Instant) -> Instant {
        let since = signed(time, self.origin).saturating_sub(self.offset);
        // Exact without skew; with skew as exact as its estimate.
        let gained = since as f64 * (self.skew / (1.0 + self.skew));
        shifted(self.origin, since.saturating_sub(gained as i64))
    }
}

/// The fit of a clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The clock.
    pub clock: Clock,
    /// The error of the offset, at most, in either direction. The fit assumes equal shortest delays
    /// in both directions, which captures cannot verify.
    pub uncertainty: Span,
    /// Whether a skew was found: both directions must show it. Else the skew is 0.
    pub skewed: bool,
    /// Packets compared, by direction: from the first capture to the second, and back.
    pub packets: [usize; 2],
}

/// The largest plausible skew: crystals keep within 100 ppm, bad ones within a few hundred.
const GREATEST_SKEW: f64 = 1e-3;

/// Fits the second capture's clock; `None` with packets of one direction only.
pub(super) fn fit(connections: &[Paired]) -> Option<Fit> {
    let origin =
        connections.iter().flat_map(|paired| &paired.first.directions).filter_map(|it| it.first_time()).min()?;
    // By direction, from the first capture to the second and back: the receiver's clock less the
    // sender's, over the first clock's time.
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
    // The second clock's gain raises the delay there and lowers that back: hence the negated slope.
    let (there, back) = (Support::of(there)?, Support::of(back)?);
    let skew = common_slope(&there, &back);
    let skew = skew.filter(|skew| skew.abs() <= GREATEST_SKEW && both_show(&there, &back, *skew));
    let slope = skew.unwrap_or(0.0);
    let (least_there, least_back) = (there.intercept(slope), back.intercept(-slope));
    let clock = Clock { origin, offset: ((least_there - least_back) / 2.0) as i64, skew: slope };
    let uncertainty = Span::from_nanos(((least_there + least_back) / 2.0).max(0.0) as u64);
    Some(Fit { clock, uncertainty, skewed: skew.is_some(), packets })
}

/// A packet: time, and delay by the two clocks, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: f64,
    delay: f64,
}

/// The lower bound of the points of one direction.
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

    /// The intercept of the highest line with this slope below all points.
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

    /// The slope of the line below all points that is nearest to them.
    fn own_slope(&self) -> f64 {
        self.slopes().min_by(|one, other| self.distance(*one).total_cmp(&self.distance(*other))).unwrap_or(0.0)
    }
}

fn slope(one: Point, other: Point) -> f64 {
    (other.delay - one.delay) / (other.at - one.at)
}

/// The slope that brings the lines of both directions nearest to their points, with opposite signs.
fn common_slope(there: &Support, back: &Support) -> Option<f64> {
    let distance = |slope: f64| there.distance(slope) + back.distance(-slope);
    let slopes = there.slopes().chain(back.slopes().map(|slope| -slope));
    slopes.min_by(|one, other| distance(*one).total_cmp(&distance(*other)))
}

/// Whether each direction alone shows about this skew. Queues bend one direction, or both with the
/// same sign; only clocks bend both with opposite signs and equally.
fn both_show(there: &Support, back: &Support, skew: f64) -> bool {
    let about = |own: f64| (own - skew).abs() <= skew.abs() / 2.0;
    about(there.own_slope()) && about(-back.own_slope())
}

/// `time` less `origin`, in nanoseconds; saturates at 292 years.
fn signed(time: Instant, origin: Instant) -> i64 {
    let (time, origin) = (i128::from(time.as_nanos()), i128::from(origin.as_nanos()));
    (time - origin).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The instant `nanoseconds` after `origin`, saturating.
fn shifted(origin: Instant, nanoseconds: i64) -> Instant {
    Instant::from_nanos(origin.as_nanos().saturating_add_signed(nanoseconds))
}
