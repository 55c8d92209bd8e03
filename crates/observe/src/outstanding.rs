//! Unacknowledged data of one end, as seen at the capture point.

use std::collections::VecDeque;

use airpath_core::Instant;
use airpath_core::range_set::{Range, RangeSet};

/// Maximum number of separately stored segments of each direction. Beyond it (for example in a
/// capture without acknowledgements) the oldest are stored as seen, without their times.
const MAXIMUM_TRACKED: usize = 16_384;

/// Maximum number of stored holes below the acknowledged offset; beyond it, the oldest count as
/// seen.
const MAXIMUM_HOLES: usize = 64;

/// Maximum number of ranges of selectively acknowledged numbers; beyond it, the lowest are removed.
const MAXIMUM_RANGES: usize = 256;

/// Lower than any offset: 2^61 bytes before the first seen.
const BEFORE_ALL: i64 = -(1 << 61);

/// A transmission of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub(crate) time: Instant,
    pub(crate) frame: u64,
    /// The sender's clock in the timestamps option; 0 without the option.
    pub(crate) stamp: u32,
}

/// A run of sequence numbers that was sent together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: i64,
    /// One past the last.
    pub(crate) end: i64,
    pub(crate) first: Transmission,
    pub(crate) last: Transmission,
    pub(crate) transmissions: u16,
    /// Selectively acknowledged.
    pub(crate) selectively: bool,
    /// Some of it has been acknowledged, so that the rest measures no round trip.
    pub(crate) partly: bool,
}

/// The sequence numbers of a segment, compared with those seen before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placed {
    /// Sequence numbers never seen before.
    pub(crate) new: i64,
    /// Sequence numbers seen before.
    pub(crate) again: i64,
    /// The first earlier run with numbers that it repeats, before this segment. `None` also if that
    /// is acknowledged, and so no longer stored.
    pub(crate) before: Option<Sent>,
    /// Some of it had been acknowledged, or is no longer stored.
    pub(crate) below: bool,
    /// Numbers of it that had been acknowledged or skipped without being seen.
    pub(crate) late: i64,
    /// It starts after the highest number seen: something is missing.
    pub(crate) after_gap: bool,
    /// It has new numbers below others that were seen, and ends before them.
    pub(crate) out_of_order: bool,
    /// First transmission of the data after the new numbers, if they lie below unacknowledged data
    /// that was seen.
    pub(crate) overtaken_by: Option<Transmission>,
}

impl Placed {
    /// Adds the next part of the same segment.
    fn add(&mut self, next: Self) {
        self.new += next.new;
        self.again += next.again;
        self.late += next.late;
        self.before = self.before.or(next.before);
        self.overtaken_by = self.overtaken_by.or(next.overtaken_by);
        self.below |= next.below;
        self.after_gap |= next.after_gap;
        self.out_of_order |= next.out_of_order;
    }
}

/// The data that an acknowledgement covers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Covered {
    /// Sequence numbers newly acknowledged.
    pub(crate) advance: i64,
    /// The first run that it covers: the one whose arrival the timestamp echo reports.
    pub(crate) front: Option<Sent>,
    /// The last run, if the acknowledgement ends exactly there and no part of it was acknowledged
    /// earlier.
    pub(crate) exact: Option<Sent>,
    /// Whether something below `exact` was sent after it.
    pub(crate) overtaken: bool,
    /// Runs that were acknowledged together with a later one, or in part.
    pub(crate) cumulatively: u32,
    /// Numbers among them that were never seen.
    pub(crate) unseen: i64,
    /// When the data that no earlier acknowledgement covered was sent.
    pub(crate) newly_acknowledged: Option<Sending>,
}

/// Transmission times of several segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The earliest first copy.
    pub original: Instant,
    /// The earliest last copy.
    pub first: Instant,
    /// The latest last copy.
    pub last: Instant,
}

impl Sending {
    /// Adds a newly acknowledged run.
    pub(crate) fn count(sending: &mut Option<Self>, run: &Sent) {
        let (original, time) = (run.first.time, run.last.time);
        let known = sending.get_or_insert(Self { original, first: time, last: time });
        *known =
            Self { original: known.original.min(original), first: known.first.min(time), last: known.last.max(time) };
    }
}

/// The sent data of one end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outstanding {
    /// In order, without overlap.
    runs: VecDeque<Sent>,
    /// All data below is acknowledged, or no longer stored.
    floor: i64,
    /// One past the highest number seen or acknowledged.
    highest: i64,
    /// Ranges below the floor that were never seen, in order.
    holes: Vec<(i64, i64)>,
    /// Selectively acknowledged ranges.
    selective: RangeSet<i64>,
    /// The latest transmission of any data below the floor.
    newest_below: Instant,
    started: bool,
}

impl Outstanding {
    /// Sets the beginning of the stream. If the capture lacks it (`middle`), the data below was
    /// never seen.
    pub(crate) fn start(&mut self, offset: i64, middle: bool) {
        if !self.started {
            self.started = true;
            self.floor = offset;
            self.highest = offset;
            if middle {
                self.holes.push((BEFORE_ALL, offset));
            }
        }
    }

    /// Removes everything: the sender restarted with another SYN.
    pub(crate) fn restart(&mut self) {
        self.runs.clear();
        self.holes.clear();
        self.selective = RangeSet::default();
        self.started = false;
    }

    /// One past the highest number seen or acknowledged.
    pub(crate) const fn highest(&self) -> i64 {
        self.highest
    }

    /// When the oldest stored unacknowledged run was last sent.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.runs.front().map(|run| run.last.time)
    }

    /// The lowest number that is neither acknowledged nor removed.
    pub(crate) const fn floor(&self) -> i64 {
        self.floor
    }

    /// Adds numbers from `start` to before `end`, which were sent now.
    pub(crate) fn insert(&mut self, start: i64, end: i64, now: Transmission) -> Placed {
        let mut placed = Placed::default();
        if start >= self.highest {
            placed.after_gap = start > self.highest;
            placed.new = end - start;
            self.push(Sent::new(start, end, now));
            self.highest = end;
            if self.runs.len() > MAXIMUM_TRACKED {
                self.forget_oldest();
            }
            return placed;
        }
        self.insert_again(start, end, now, &mut placed);
        placed
    }

    /// Adds a super-segment as the segments of `full` bytes that the path carries, so that each of
    /// them is acknowledged for itself.
    pub(crate) fn insert_super(&mut self, start: i64, end: i64, full: u32, now: Transmission) -> Placed {
        let full = i64::from(full.max(1));
        let mut placed = Placed::default();
        let mut at = start;
        while at < end {
            // A FIN belongs to the last of them.
            let until = if end - at <= full + 1 { end } else { at + full };
            placed.add(self.insert(at, until, now));
            at = until;
        }
        placed
    }

    /// The rare case: some of it lies below the highest number seen.
    fn insert_again(&mut self, start: i64, end: i64, now: Transmission, placed: &mut Placed) {
        let mut at = start;
        if at < self.floor {
            let below = end.min(self.floor);
            let new = self.fill_holes(at, below);
            placed.below = true;
            // Data before the beginning of a capture was not acknowledged in it.
            placed.late = if at >= 0 { new } else { 0 };
            placed.new += new;
            placed.again += below - at - new;
            placed.out_of_order = new > 0 && end <= self.floor;
            self.newest_below = self.newest_below.max(now.time);
            at = below;
        }
        let mut index = self.runs.partition_point(|run| run.end <= at);
        while at < end {
            let Some(run) = self.runs.get_mut(index) else {
                placed.new += end - at;
                self.push(Sent::new(at, end, now));
                break;
            };
            if at < run.start {
                let until = end.min(run.start);
                placed.out_of_order |= end < run.end;
                placed.overtaken_by.get_or_insert(run.first);
                placed.new += until - at;
                self.runs.insert(index, Sent::new(at, until, now));
                at = until;
            } else {
                // Only the retransmitted part has another history from now on; the remainder is
                // unchanged.
                if at > run.start {
                    let right = run.split_off(at);
                    self.runs.insert(index + 1, right);
                    index += 1;
                    continue;
                }
                if end < run.end {
                    let right = run.split_off(end);
                    self.runs.insert(index + 1, right);
                }
                let run = &mut self.runs[index];
                placed.before.get_or_insert(*run);
                placed.again += run.end - at;
                run.transmissions = run.transmissions.saturating_add(1);
                run.last = now;
                at = run.end;
            }
            index += 1;
        }
        self.highest = self.highest.max(end);
        while self.runs.len() > MAXIMUM_TRACKED {
            self.forget_oldest();
        }
    }

    /// All data below `acknowledged` has arrived at the other end. Calls `repeated` for each run
    /// that was sent more than once.
    pub(crate) fn acknowledge(&mut self, acknowledged: i64, mut repeated: impl FnMut(&Sent)) -> Covered {
        let mut covered = Covered::default();
        if acknowledged <= self.floor {
            return covered;
        }
        covered.advance = acknowledged - self.floor;
        let mut at = self.floor;
        while let Some(run) = self.runs.front_mut() {
            if run.start >= acknowledged {
                break;
            }
            if run.start > at {
                covered.unseen += run.start - at;
                remember_hole(&mut self.holes, at, run.start);
            }
            self.newest_below = self.newest_below.max(run.last.time);
            covered.front.get_or_insert(*run);
            if run.transmissions > 1 {
                repeated(run);
            }
            if !run.selectively {
                Sending::count(&mut covered.newly_acknowledged, run);
            }
            if run.end > acknowledged {
                covered.cumulatively += u32::from(!run.partly);
                run.partly = true;
                at = acknowledged;
                break;
            }
            at = run.end;
            if run.end == acknowledged && !run.partly {
                covered.overtaken = self.newest_below > run.last.time;
                covered.exact = Some(*run);
            } else {
                covered.cumulatively += u32::from(!run.partly);
            }
            self.runs.pop_front();
        }
        if at < acknowledged {
            covered.unseen += acknowledged - at;
            remember_hole(&mut self.holes, at, acknowledged);
        }
        self.floor = acknowledged;
        self.highest = self.highest.max(acknowledged);
        self.selective.remove_below(acknowledged);
        self.shrink();
        covered
    }

    /// The other end has `start` to before `end`, with a hole below. Returns the count of newly
    /// acknowledged numbers; adds their transmission times to `sending`.
    pub(crate) fn acknowledge_selectively(&mut self, start: i64, end: i64, sending: &mut Option<Sending>) -> i64 {
        let Self { runs, selective, floor, highest, .. } = self;
        let (start, end) = (start.max(*floor), end.min(*highest));
        let mut newly_sacked = 0;
        if start >= end {
            return 0;
        }
        selective.insert(Range::new(start, end), |Range { start: from, end: to }| {
            newly_sacked += to - from;
            // A run may be longer than a segment on the path, and arrive in parts.
            let first = first_from(runs, from);
            let first = first - usize::from(first > 0 && runs[first - 1].end > from);
            for run in runs.range_mut(first..).take_while(|run| run.start < to) {
                if !run.selectively {
                    run.selectively = run.start >= from && run.end <= to;
                    Sending::count(sending, run);
                }
            }
        });
        if selective.len() > MAXIMUM_RANGES {
            selective.pop_first();
        }
        newly_sacked
    }

    /// Unacknowledged runs, and their first transmissions.
    pub(crate) fn first_transmissions(&self) -> impl Iterator<Item = (i64, i64, Transmission)> {
        self.runs.iter().map(|run| (run.start, run.end, run.first))
    }

    /// Whether all unacknowledged data of `start` to before `end` is selectively acknowledged.
    pub(crate) fn selectively_acknowledged(&self, start: i64, end: i64) -> bool {
        self.selective.containing(Range::new(start.max(self.floor), end)).is_some()
    }

    /// One past the highest number that is selectively acknowledged above [`Self::floor`].
    pub(crate) fn highest_selective(&self) -> Option<i64> {
        self.selective.last().map(|range| range.end)
    }

    /// The count of selectively acknowledged numbers.
    #[inline]
    pub(crate) fn selective_total(&self) -> i64 {
        if self.selective.is_empty() {
            return 0;
        }
        self.selective.iter().map(|range| range.end - range.start).sum()
    }

    /// Marks holes between `start` and `end` as seen; returns their total length.
    fn fill_holes(&mut self, start: i64, end: i64) -> i64 {
        let mut filled = 0;
        let mut index = 0;
        while let Some(&(from, to)) = self.holes.get(index) {
            let (low, high) = (from.max(start), to.min(end));
            if low >= high {
                index += 1;
                continue;
            }
            filled += high - low;
            let rest = [(from, low), (high, to)].into_iter().filter(|(from, to)| from < to);
            let count = rest.clone().count();
            self.holes.splice(index..=index, rest);
            index += count;
        }
        self.holes.truncate(MAXIMUM_HOLES);
        filled
    }

    /// Adds a run above all others.
    fn push(&mut self, run: Sent) {
        if self.runs.len() == self.runs.capacity() {
            self.runs.reserve_exact(room(self.runs.len()));
        }
        self.runs.push_back(run);
    }

    /// Returns memory if less than half of it is used: windows are largest at the end of slow
    /// start.
    fn shrink(&mut self) {
        let length = self.runs.len();
        if self.runs.capacity() > 2 * (length + room(length)) {
            self.runs.shrink_to(length + room(length));
        }
    }

    /// Returns all unused memory.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.runs.shrink_to_fit();
        self.holes.shrink_to_fit();
        if self.selective.is_empty() {
            self.selective = RangeSet::default();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.runs.pop_front() {
            if oldest.start > self.floor {
                remember_hole(&mut self.holes, self.floor, oldest.start);
            }
            self.floor = oldest.end;
            self.newest_below = self.newest_below.max(oldest.last.time);
        }
    }
}

/// Unused room beside this number of runs.
fn room(runs: usize) -> usize {
    (runs / 4).max(4)
}

/// The first run that starts at `offset` or later.
///
/// Segments mostly have one size, so a proportional guess is close; a binary search would touch
/// many uncached lines.
fn first_from(runs: &VecDeque<Sent>, offset: i64) -> usize {
    const STEPS: usize = 16;
    let (Some(first), Some(last)) = (runs.front(), runs.back()) else { return 0 };
    let span = last.end.abs_diff(first.start).max(1);
    let into = u64::try_from(offset - first.start).unwrap_or(0).min(span);
    let mut index = (u128::from(into) * runs.len() as u128 / u128::from(span)) as usize;
    for _ in 0..STEPS {
        if index > 0 && runs[index - 1].start >= offset {
            index -= 1;
        } else if runs.get(index).is_some_and(|run| run.start < offset) {
            index += 1;
        } else {
            return index;
        }
    }
    runs.partition_point(|run| run.start < offset)
}

fn remember_hole(holes: &mut Vec<(i64, i64)>, start: i64, end: i64) {
    if holes.len() == MAXIMUM_HOLES {
        holes.remove(0);
    }
    holes.push((start, end));
}

impl Sent {
    const fn new(start: i64, end: i64, now: Transmission) -> Self {
        Self { start, end, first: now, last: now, transmissions: 1, selectively: false, partly: false }
    }

    /// Splits off the part from `at` on.
    const fn split_off(&mut self, at: i64) -> Self {
        let right = Self { start: at, partly: false, ..*self };
        self.end = at;
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_part_of_a_super_segment_is_acknowledged_selectively_when_it_arrives() {
        let mut outstanding = Outstanding::default();
        outstanding.start(0, false);
        let at =
            |millis: u64| Transmission { time: Instant::from_nanos(millis * 1_000_000), ..Transmission::default() };
        outstanding.insert(0, 30, at(1));
        outstanding.insert(30, 60, at(2));
        let arrived = |outstanding: &mut Outstanding, start, end| {
            let mut sending = None;
            let newly = outstanding.acknowledge_selectively(start, end, &mut sending);
            (newly, sending.map(|sending| sending.last))
        };
        assert_eq!(arrived(&mut outstanding, 10, 20), (10, Some(at(1).time)));
        assert_eq!(arrived(&mut outstanding, 10, 20), (0, None));
        assert_eq!(arrived(&mut outstanding, 40, 60), (20, Some(at(2).time)));
        assert_eq!(arrived(&mut outstanding, 20, 60), (20, Some(at(2).time)));
        let covered = outstanding.acknowledge(60, |_| {});
        assert_eq!(covered.newly_acknowledged.unwrap().first, at(1).time);
    }

    #[test]
    fn the_oldest_segments_beyond_the_limit_count_as_seen() {
        let mut outstanding = Outstanding::default();
        outstanding.start(0, false);
        for number in 0..=MAXIMUM_TRACKED as i64 {
            outstanding.insert(number * 10, number * 10 + 10, Transmission::default());
        }
        assert_eq!((outstanding.runs.len(), outstanding.floor()), (MAXIMUM_TRACKED, 10));
        let again = outstanding.insert(0, 20, Transmission { frame: 7, ..Transmission::default() });
        assert_eq!((again.new, again.again, again.below), (0, 20, true));
        assert_eq!(again.before.map(|before| before.start), Some(10));
        // Between two tracked ones there is no gap to fill: the limit holds here, too.
        outstanding.insert(25, 35, Transmission::default());
        assert_eq!(outstanding.runs.len(), MAXIMUM_TRACKED);
    }

    #[test]
    fn the_oldest_holes_beyond_the_limit_count_as_seen() {
        let mut outstanding = Outstanding::default();
        outstanding.start(0, false);
        for number in 0..=MAXIMUM_HOLES as i64 {
            let start = number * 20 + 10;
            assert!(outstanding.insert(start, start + 10, Transmission::default()).after_gap);
            let covered = outstanding.acknowledge(start + 10, |_| panic!("nothing was sent twice"));
            assert_eq!((covered.advance, covered.unseen), (20, 10));
        }
        let late = |outstanding: &mut Outstanding, start| {
            let placed = outstanding.insert(start, start + 10, Transmission::default());
            (placed.new, placed.again, placed.late, placed.out_of_order)
        };
        assert_eq!(late(&mut outstanding, 0), (0, 10, 0, false));
        assert_eq!(late(&mut outstanding, 20), (10, 0, 10, true));
        assert_eq!(late(&mut outstanding, 20), (0, 10, 0, false), "it was filled");
        assert_eq!(late(&mut outstanding, 35), (5, 5, 5, true), "the second half of it is a hole");
        assert_eq!(late(&mut outstanding, 62), (8, 2, 8, true));
        assert_eq!(late(&mut outstanding, 60), (2, 8, 2, true), "two numbers were left");
    }

    #[test]
    fn data_below_other_data_is_out_of_order() {
        let placed = |segments: &[(i64, i64)]| {
            let mut outstanding = Outstanding::default();
            outstanding.start(0, false);
            let insert = |(start, end): &(i64, i64)| outstanding.insert(*start, *end, Transmission::default());
            let placed = segments.iter().map(insert).last().expect("some");
            (placed.new, placed.again, placed.out_of_order)
        };
        assert_eq!(placed(&[(0, 10), (20, 30)]), (10, 0, false));
        assert_eq!(placed(&[(0, 10), (20, 30), (12, 18)]), (6, 0, true));
        assert_eq!(placed(&[(0, 10), (20, 30), (5, 15)]), (5, 5, true), "a part of it was seen");
        assert_eq!(placed(&[(0, 10), (20, 30), (10, 30)]), (10, 10, false), "it ends with the other");
        assert_eq!(placed(&[(0, 10), (20, 30), (10, 40)]), (20, 10, false));
        assert_eq!(placed(&[(0, 10), (20, 30), (40, 50), (5, 35)]), (15, 15, true), "it ends before the last");
    }

    #[test]
    fn selective_acknowledgements_count_once() {
        let mut outstanding = Outstanding::default();
        outstanding.start(0, false);
        for number in 0..10_u64 {
            let now = Transmission { time: Instant::from_nanos(number), frame: number, stamp: 0 };
            outstanding.insert(number as i64 * 10, number as i64 * 10 + 10, now);
        }
        let mut sending = None;
        assert_eq!(outstanding.acknowledge_selectively(20, 40, &mut sending), 20);
        let times = |nanos: [u64; 3]| {
            let [original, first, last] = nanos.map(Instant::from_nanos);
            Some(Sending { original, first, last })
        };
        assert_eq!(sending, times([2, 2, 3]));
        assert_eq!(outstanding.acknowledge_selectively(30, 60, &mut sending), 20, "of 40 to 60");
        assert_eq!(sending, times([2, 2, 5]));
        assert_eq!(outstanding.acknowledge_selectively(90, 200, &mut sending), 10, "nothing above was sent");
        assert_eq!((outstanding.selective_total(), outstanding.highest_selective()), (50, Some(100)));
        assert!(outstanding.selectively_acknowledged(20, 60) && !outstanding.selectively_acknowledged(20, 61));
        let covered = outstanding.acknowledge(30, |_| {});
        assert_eq!(covered.newly_acknowledged, times([0, 0, 1]), "the third segment was known");
        assert_eq!(outstanding.selective_total(), 40);
        assert_eq!(outstanding.acknowledge_selectively(0, 30, &mut None), 0, "it is below");
    }

    #[test]
    fn the_lowest_selective_ranges_beyond_the_limit_are_removed() {
        let mut outstanding = Outstanding::default();
        outstanding.start(0, false);
        let end = MAXIMUM_RANGES as i64 * 20 + 20;
        outstanding.insert(0, end, Transmission::default());
        for number in 0..=MAXIMUM_RANGES as i64 {
            assert_eq!(outstanding.acknowledge_selectively(number * 20 + 5, number * 20 + 15, &mut None), 10);
        }
        assert_eq!(outstanding.selective_total(), MAXIMUM_RANGES as i64 * 10);
        assert!(!outstanding.selectively_acknowledged(5, 15) && outstanding.selectively_acknowledged(25, 35));
    }

    #[test]
    fn the_memory_follows_the_window() {
        let mut outstanding = Outstanding::default();
        outstanding.start(0, false);
        let send = |outstanding: &mut Outstanding, runs: i64| {
            for _ in 0..runs {
                let from = outstanding.highest();
                outstanding.insert(from, from + 10, Transmission::default());
            }
        };
        send(&mut outstanding, 1000);
        assert!(outstanding.runs.capacity() <= 1000 + room(1000), "{}", outstanding.runs.capacity());
        outstanding.acknowledge(9_000, |_| {});
        assert!(outstanding.runs.capacity() <= 2 * (100 + room(100)), "{}", outstanding.runs.capacity());
        send(&mut outstanding, 100);
        assert_eq!(outstanding.runs.len(), 200);
    }

    proptest! {
        /// Compared with a plain list of seen numbers: each number is new once, and repeated from
        /// then on.
        #[test]
        fn every_number_is_new_once(steps in prop::collection::vec((0..300_i64, 0..40_i64, any::<bool>()), 1..60)) {
            let mut outstanding = Outstanding::default();
            outstanding.start(0, false);
            let mut seen = std::collections::BTreeSet::new();
            let mut highest = 0;
            for (at, length, acknowledges) in steps {
                if acknowledges {
                    let covered = outstanding.acknowledge(at, |_| {});
                    prop_assert!(covered.unseen <= covered.advance);
                    highest = highest.max(at);
                } else if length > 0 {
                    let placed = outstanding.insert(at, at + length, Transmission::default());
                    let fresh = (at..at + length).filter(|&number| seen.insert(number)).count() as i64;
                    prop_assert_eq!((placed.new, placed.again), (fresh, length - fresh));
                    highest = highest.max(at + length);
                }
                prop_assert_eq!(outstanding.highest(), highest);
                prop_assert!(outstanding.runs.iter().zip(outstanding.runs.iter().skip(1)).all(|(a, b)| a.end <= b.start));
                for offset in 0..340 {
                    prop_assert_eq!(first_from(&outstanding.runs, offset), outstanding.runs.partition_point(|run| run.start < offset));
                }
            }
        }
    }
}
