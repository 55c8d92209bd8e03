//! The packets of one direction of a host, by intervals of time.

use std::collections::VecDeque;

use airpath_core::Instant;

use super::{INTERVAL, LONGEST_QUERY};

/// Intervals of a chunk with packets, at most: a chunk has 128 bytes, two cache lines.
const CELLS: usize = 29;

/// Intervals that a chunk covers: as many as the bits of [`Cell`] for the offset distinguish.
const COVERED: u64 = 1 << 8;

/// The most packets of a kind that an interval counts.
const MOST: u32 = (1 << 12) - 1;

/// What a packet takes of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Almost nothing, see [`super::takes_share`].
    None,
    Acknowledgement,
    Data,
}

/// Packets with a share of the path in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) number: u64,
    /// Packets with data, and those without. [`MOST`] may be more.
    data: u32,
    others: u32,
}

/// An interval in a chunk: 8 bits for the offset from its begin, 12 for each of the two counts.
#[derive(Clone, Copy, Debug, Default)]
struct Cell(u32);

/// Successive intervals with packets; none at first.
#[derive(Debug, Default)]
struct Chunk {
    /// The number of its first interval.
    first: u64,
    length: u32,
    cells: [Cell; CELLS],
}

/// The intervals with packets.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// The chunk that receives intervals. It is in place: with thousands of hosts, each pointer to
    /// follow is a cache miss.
    last: Chunk,
    /// The chunks before it.
    full: VecDeque<Box<Chunk>>,
}

impl Cell {
    const fn new(offset: u64, interval: Interval) -> Self {
        Self((offset as u32) << 24 | interval.data << 12 | interval.others)
    }

    const fn interval(self, first: u64) -> Interval {
        Interval { number: first + (self.0 >> 24) as u64, data: self.0 >> 12 & MOST, others: self.0 & MOST }
    }
}

impl Chunk {
    fn intervals(&self) -> impl Iterator<Item = Interval> {
        self.cells[..self.length as usize].iter().map(|cell| cell.interval(self.first))
    }

    fn last(&self) -> u64 {
        self.intervals().last().map_or(self.first, |last| last.number)
    }
}

impl Interval {
    /// Without packets so far.
    pub(super) const fn new(number: u64) -> Self {
        Self { number, data: 0, others: 0 }
    }

    /// Counts a packet.
    pub(super) fn add(&mut self, load: Load) {
        match load {
            Load::None => {}
            Load::Acknowledgement => self.others = (self.others + 1).min(MOST),
            Load::Data => self.data = (self.data + 1).min(MOST),
        }
    }
}

impl Series {
    /// Adds an interval that is over, and forgets what is before the interval `oldest`.
    pub(super) fn push(&mut self, interval: Interval, oldest: u64) {
        let last = &mut self.last;
        if last.length == 0 {
            last.first = interval.number;
        } else if last.length as usize == CELLS || interval.number >= last.first + COVERED {
            while self.full.front().is_some_and(|chunk| chunk.last() < oldest) {
                self.full.pop_front();
            }
            let full = std::mem::replace(last, Chunk { first: interval.number, ..Chunk::default() });
            self.full.push_back(Box::new(full));
        }
        last.cells[last.length as usize] = Cell::new(interval.number - last.first, interval);
        last.length += 1;
    }

    /// Packets with data, and without, from `begin` to `end`, in whole intervals.
    pub(super) fn between(&self, begin: Instant, end: Instant) -> (u64, u64) {
        self.within(number(begin), number(end))
            .fold((0, 0), |(data, others), each| (data + u64::from(each.data), others + u64::from(each.others)))
    }

    /// The longest time between `begin` and `end` without a packet.
    pub(super) fn longest_silence(&self, begin: Instant, end: Instant) -> (Instant, Instant) {
        let (mut longest, mut from) = ((begin, begin), begin);
        for each in self.within(number(begin), number(end)) {
            let at = start(each.number).clamp(begin, end);
            if at.since(from) > longest.1.since(longest.0) {
                longest = (from, at);
            }
            from = (start(each.number) + INTERVAL).clamp(begin, end);
        }
        if end.since(from) > longest.1.since(longest.0) { (from, end) } else { longest }
    }

    /// The intervals with packets from `begin` to before `end`.
    fn within(&self, begin: u64, end: u64) -> impl Iterator<Item = Interval> {
        // Older intervals may be gone, depending on how far a reader is ahead.
        let begin = begin.max(end.saturating_sub(LONGEST_QUERY));
        // Most queries concern the last intervals.
        let first = if self.last.first <= begin {
            self.full.len()
        } else {
            self.full.iter().rposition(|chunk| chunk.first <= begin).unwrap_or(0)
        };
        let chunks = self.full.range(first..).map(|chunk| &**chunk).chain([&self.last]);
        let stored = chunks.take_while(move |chunk| chunk.first < end);
        stored.flat_map(|chunk| chunk.intervals()).filter(move |each| (begin..end).contains(&each.number))
    }
}

/// The number of the interval of a time.
pub(super) const fn number(time: Instant) -> u64 {
    time.as_nanos() / INTERVAL.as_nanos()
}

const fn start(interval: u64) -> Instant {
    Instant::from_nanos(interval.saturating_mul(INTERVAL.as_nanos()))
}

const _: () = assert!(size_of::<Chunk>() == 128, "two cache lines");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(number: u64) -> Instant {
        start(number)
    }

    proptest! {
        /// Against a list of all packets: sparse and dense ones.
        #[test]
        fn a_series_equals_a_list_of_packets(
            packets in prop::collection::vec((prop_oneof![0..3_u64, 0..300_u64], 0..3_u8), 1..200),
            queries in prop::collection::vec((0..20_000_u64, 0..6_000_u64), 20),
        ) {
            let (mut series, mut list, mut now) = (Series::default(), Vec::new(), 1000_u64);
            let mut interval: Option<Interval> = None;
            for (step, load) in packets {
                now += step;
                let load = [Load::None, Load::Acknowledgement, Load::Data][usize::from(load)];
                if let Some(over) = interval.take_if(|interval| now > interval.number) {
                    series.push(over, 0);
                }
                interval.get_or_insert(Interval::new(now)).add(load);
                list.push((now, load));
            }
            interval.into_iter().for_each(|over| series.push(over, 0));
            for (begin, length) in queries {
                let (begin, end) = (begin, begin + length);
                let from = begin.max(end.saturating_sub(LONGEST_QUERY));
                let inside: Vec<_> = list.iter().filter(|(at, _)| (from..end).contains(at)).collect();
                let count = |kind| inside.iter().filter(|(_, load)| *load == kind).count() as u64;
                prop_assert_eq!(series.between(at(begin), at(end)), (count(Load::Data), count(Load::Acknowledgement)));
                let mut edges = vec![begin];
                edges.extend(inside.iter().flat_map(|(at, _)| [*at, *at + 1]));
                edges.push(end);
                let longest = edges.chunks(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or(0);
                let (silent, over) = series.longest_silence(at(begin), at(end));
                prop_assert_eq!(over.since(silent), INTERVAL * longest);
            }
        }
    }

    #[test]
    fn old_intervals_are_forgotten() {
        let mut series = Series::default();
        for number in 0..10_000 {
            let mut interval = Interval::new(number);
            interval.add(Load::Data);
            series.push(interval, u64::saturating_sub(number, 100));
        }
        assert!(series.full.len() <= 100 / CELLS + 1, "{}", series.full.len());
        assert_eq!(series.between(at(9_900), at(10_000)), (100, 0));
    }

    #[test]
    fn an_interval_counts_up_to_its_limit() {
        let (mut series, mut interval) = (Series::default(), Interval::new(7));
        (0..2 * MOST).for_each(|_| interval.add(Load::Acknowledgement));
        series.push(interval, 0);
        assert_eq!(series.between(at(7), at(8)), (0, MOST.into()));
    }
}
