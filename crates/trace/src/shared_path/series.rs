//! The packets of one direction of a host, by intervals of time.

use std::collections::VecDeque;
use std::iter;

use airpath_core::Instant;

use super::{INTERVAL, LONGEST_QUERY};

/// Bytes of the intervals of a chunk: a chunk has 128 bytes, two cache lines.
const BYTES: usize = 115;

/// Intervals that a chunk covers, at most: as many as the longest steps.
const COVERED: u64 = 1 << 14;

/// The most packets of a kind that an interval counts.
const MOST: u16 = (1 << 12) - 1;

/// What a packet takes of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Almost nothing, see [`super::takes_share`].
    None,
    Acknowledgement,
    Data,
}

/// Packets with a share of the path: those with data, and those without. [`MOST`] may be more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Packets {
    data: u16,
    others: u16,
}

/// The packets of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    number: u64,
    packets: Packets,
}

/// Successive intervals with packets; none at first.
///
/// Each is stored as its step from the one before and its counts, in the least number of bytes:
/// most have only few packets, all of one kind.
#[derive(Debug)]
struct Chunk {
    /// The number of its first interval.
    first: u64,
    /// The last interval, from the first.
    last: u32,
    /// Bytes in use.
    length: u8,
    bytes: [u8; BYTES],
}

impl Chunk {
    const EMPTY: Self = Self { first: 0, last: 0, length: 0, bytes: [0; BYTES] };

    const fn last(&self) -> u64 {
        self.first + self.last as u64
    }

    /// Adds a later interval, if there is room.
    fn push(&mut self, interval: Interval) -> bool {
        if self.length == 0 {
            self.first = interval.number;
        }
        let step = interval.number - self.last();
        let (code, length) = encode(step, interval.packets);
        let begin = usize::from(self.length);
        if interval.number - self.first >= COVERED || begin + length > BYTES {
            return false;
        }
        self.bytes[begin..begin + length].copy_from_slice(&code[..length]);
        self.length += length as u8;
        self.last = (interval.number - self.first) as u32;
        true
    }

    fn intervals(&self) -> impl Iterator<Item = Interval> {
        let (mut number, mut rest) = (self.first, &self.bytes[..usize::from(self.length)]);
        iter::from_fn(move || {
            let (step, packets);
            (step, packets, rest) = decode(rest)?;
            number += step;
            Some(Interval { number, packets })
        })
    }
}

/// The bytes of an interval, and their number. The first bits are those of the form:
///
/// | bits | form |
/// | --- | --- |
/// | `0`, 2 step, 1 kind, 4 count | packets of one kind |
/// | `10`, 2 step, 1 kind, 11 count | packets of one kind |
/// | `11`, 14 step, 12 data, 12 others | packets of both kinds |
fn encode(step: u64, packets: Packets) -> ([u8; 5], usize) {
    let [data, others] = [packets.data, packets.others].map(u32::from);
    let (step, kind, count) = (step as u32, u32::from(data > 0), data + others);
    let is_one_kind = step < 4 && (data == 0 || others == 0);
    if is_one_kind && count < 1 << 4 {
        ([(step << 5 | kind << 4 | count) as u8, 0, 0, 0, 0], 1)
    } else if is_one_kind && count < 1 << 11 {
        let [high, low] = ((0b10 << 14 | step << 12 | kind << 11 | count) as u16).to_be_bytes();
        ([high, low, 0, 0, 0], 2)
    } else {
        let [a, b, c, d] = (step << 24 | data << 12 | others).to_be_bytes();
        ([(0b11 << 6 | step >> 8) as u8, a, b, c, d], 5)
    }
}

/// Step and packets of the first interval in `bytes`, and the bytes after it; `None` without any.
fn decode(bytes: &[u8]) -> Option<(u64, Packets, &[u8])> {
    let of_kind = |step: u32, kind: u32, count: u32| {
        let count = count as u16;
        (step, if kind == 1 { Packets { data: count, others: 0 } } else { Packets { data: 0, others: count } })
    };
    let (&first, rest) = bytes.split_first()?;
    let first = u32::from(first);
    let ((step, packets), rest) = if first >> 7 == 0 {
        (of_kind(first >> 5, first >> 4 & 1, first & 0xf), rest)
    } else if first >> 6 == 0b10 {
        let (&low, rest) = rest.split_first()?;
        (of_kind(first >> 4 & 3, first >> 3 & 1, (first & 7) << 8 | u32::from(low)), rest)
    } else {
        let (cell, rest) = rest.split_first_chunk::<4>()?;
        let cell = u32::from_be_bytes(*cell);
        let [data, others] = [cell >> 12, cell].map(|count| count as u16 & MOST);
        (((first & 0x3f) << 8 | cell >> 24, Packets { data, others }), rest)
    };
    Some((u64::from(step), packets, rest))
}

/// The intervals with packets.
#[derive(Debug)]
pub(super) struct Series {
    /// The chunk that receives intervals. It is in place: with thousands of hosts, each pointer to
    /// follow is a cache miss.
    last: Chunk,
    /// The chunks before it.
    full: VecDeque<Box<Chunk>>,
}

impl Default for Series {
    fn default() -> Self {
        Self { last: Chunk::EMPTY, full: VecDeque::new() }
    }
}

impl Packets {
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
    /// Adds the packets of the interval `number`, which is over, and forgets what is before the
    /// interval `oldest`.
    pub(super) fn push(&mut self, number: u64, packets: Packets, oldest: u64) {
        let interval = Interval { number, packets };
        if self.last.push(interval) {
            return;
        }
        while self.full.front().is_some_and(|chunk| chunk.last() < oldest) {
            self.full.pop_front();
        }
        let full = std::mem::replace(&mut self.last, Chunk::EMPTY);
        self.full.push_back(Box::new(full));
        self.last.push(interval);
    }

    /// Packets with data, and without, from `begin` to `end`, in whole intervals.
    pub(super) fn between(&self, begin: Instant, end: Instant) -> (u64, u64) {
        self.within(number(begin), number(end))
            .map(|each| [each.packets.data, each.packets.others].map(u64::from))
            .fold((0, 0), |(data, others), each| (data + each[0], others + each[1]))
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

    /// The begin of the first interval with a packet between `begin` and `end`.
    pub(super) fn first(&self, begin: Instant, end: Instant) -> Option<Instant> {
        self.within(number(begin), number(end)).next().map(|each| start(each.number).max(begin))
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
        /// Counts and steps of every form, next to each other.
        #[test]
        fn intervals_are_read_as_they_were_written(
            intervals in prop::collection::vec(
                (1..10_u64, 0..3_u8, 0..20_u16, 0..20_u16, 0..=MOST).prop_map(|(step, kind, few, others, many)| {
                    let (data, others) = [(few, 0), (0, many), (many, others)][usize::from(kind)];
                    (if few == 3 { step * 3_000 } else { step }, data, others)
                }),
                1..300,
            ),
        ) {
            let (mut series, mut number, mut written) = (Series::default(), 1_u64 << 40, Vec::new());
            for (step, data, others) in intervals {
                number += step;
                let packets = Packets { data, others };
                series.push(number, packets, 0);
                written.push(Interval { number, packets });
            }
            let chunks = series.full.iter().map(|chunk| &**chunk).chain([&series.last]);
            prop_assert_eq!(chunks.flat_map(Chunk::intervals).collect::<Vec<_>>(), written);
        }

        /// Against a list of all packets: sparse and dense ones.
        #[test]
        fn a_series_equals_a_list_of_packets(
            packets in prop::collection::vec((prop_oneof![0..3_u64, 0..300_u64], 0..3_u8), 1..200),
            queries in prop::collection::vec((0..20_000_u64, 0..6_000_u64), 20),
        ) {
            let (mut series, mut list, mut now) = (Series::default(), Vec::new(), 1000_u64);
            let mut interval: Option<(u64, Packets)> = None;
            for (step, load) in packets {
                now += step;
                let load = [Load::None, Load::Acknowledgement, Load::Data][usize::from(load)];
                if let Some((number, packets)) = interval.take_if(|(number, _)| now > *number) {
                    series.push(number, packets, 0);
                }
                interval.get_or_insert((now, Packets::default())).1.add(load);
                list.push((now, load));
            }
            interval.into_iter().for_each(|(number, packets)| series.push(number, packets, 0));
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
            let mut packets = Packets::default();
            packets.add(Load::Data);
            series.push(number, packets, u64::saturating_sub(number, 100));
        }
        assert!(series.full.len() <= 100 / BYTES + 1, "{}", series.full.len());
        assert_eq!(series.between(at(9_900), at(10_000)), (100, 0));
    }

    #[test]
    fn an_interval_counts_up_to_its_limit() {
        let (mut series, mut packets) = (Series::default(), Packets::default());
        (0..2 * MOST).for_each(|_| packets.add(Load::Acknowledgement));
        series.push(7, packets, 0);
        assert_eq!(series.between(at(7), at(8)), (0, MOST.into()));
    }
}
