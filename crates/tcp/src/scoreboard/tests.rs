//! Compares the scoreboard with a plain model of RFC 6675.

use airpath_core::{Instant, Span};
use proptest::prelude::*;

use super::{Delivery, Range, Scoreboard, Sent};
use crate::sequence::Sequence;

const SIZE: u32 = 1000;

/// An operation.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Send a number of bytes.
    Send(u32),
    /// The receiver has this range, in fractions of the outstanding data.
    Sack(f64, f64),
    /// Cumulative acknowledgement, as a fraction of the outstanding data.
    Acknowledge(f64),
    FindByCount(u32),
    FindByDistance(u32),
    Repair,
    LoseAll,
    LoseFirst,
    LoseNothing,
    Forget,
    /// The path carries at most this many bytes of payload.
    Split(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => prop_oneof![Just(SIZE), 1..SIZE].prop_map(Step::Send),
        10 => (0.0..1.0, 0.0..1.0).prop_map(|(a, b)| Step::Sack(a, b)),
        4 => (0.0..0.6).prop_map(Step::Acknowledge),
        6 => (1u32..5).prop_map(Step::FindByCount),
        1 => (1u32..5).prop_map(Step::FindByDistance),
        8 => Just(Step::Repair),
        1 => Just(Step::LoseAll),
        1 => Just(Step::LoseFirst),
        1 => Just(Step::LoseNothing),
        1 => Just(Step::Forget),
        1 => (1..SIZE).prop_map(Step::Split),
    ]
}

/// The scoreboard and the state it must match.
struct Model {
    board: Scoreboard,
    acknowledged: Sequence,
    next: Sequence,
    now: Instant,
}

impl Model {
    fn at(&self, part: f64) -> Sequence {
        self.acknowledged + ((self.next - self.acknowledged) as f64 * part) as u64
    }

    fn apply(&mut self, step: Step) {
        self.now += Span::from_millis(1);
        let mut delivery = Delivery::new(self.now, None, None);
        match step {
            Step::Send(length) => {
                self.board.send(self.now, self.next, length, false);
                self.next += u64::from(length);
            }
            Step::Sack(a, b) => {
                let (a, b) = (self.at(a).max(self.acknowledged + 1), self.at(b).max(self.acknowledged + 1));
                let before = self.board.sacked_bytes();
                if a < b && b <= self.next {
                    self.board.acknowledge_selectively(Range::new(a, b), &mut delivery);
                    assert_eq!(self.board.sacked_bytes() - before, delivery.bytes);
                }
            }
            Step::Acknowledge(part) => {
                let edge = self.at(part);
                // A receiver that has the data after the edge would have acknowledged it, too.
                let edge = self.board.sacked.containing(Range::new(edge, edge)).map_or(edge, |range| range.end);
                if edge > self.acknowledged {
                    self.board.acknowledge(edge, &mut delivery);
                    self.acknowledged = edge;
                }
            }
            Step::FindByCount(threshold) => {
                let lost: Vec<bool> = (0..self.board.segments.len()).map(|n| self.is_lost(n, threshold)).collect();
                self.board.find_losses_by_count(threshold, SIZE);
                for (segment, lost) in self.board.segments.iter().zip(lost) {
                    assert!(!lost || segment.is(Sent::LOST | Sent::SACKED), "{segment:?} of {:?}", self.board);
                }
            }
            Step::FindByDistance(threshold) => {
                self.board.find_losses_by_distance(threshold, SIZE);
            }
            Step::Repair => {
                let lowest = self.board.segments.iter().position(Sent::needs_repair);
                let found = self.board.next_lost();
                assert_eq!(found.is_some(), lowest.is_some(), "{:?}", self.board);
                if let Some(index) = found {
                    self.board.send_again(self.now, index);
                }
            }
            Step::LoseAll => self.board.lose_all(),
            Step::LoseFirst => self.board.lose_first(),
            Step::LoseNothing => self.board.lose_nothing(),
            Step::Forget => self.board.forget_sacked(),
            Step::Split(size) => {
                let large = |segment: &Sent| !segment.is_sacked() && segment.length > size;
                let any = self.board.segments.iter().any(large);
                assert_eq!(self.board.split(size), any);
                assert!(!self.board.segments.iter().any(large), "{:?}", self.board);
            }
        }
        self.board.verify(self.acknowledged);
    }

    /// RFC 6675 §4, `IsLost`, literally: `DupThresh` discontiguous sequences have arrived above it,
    /// or more than (`DupThresh` - 1) * SMSS bytes.
    fn is_lost(&self, index: usize, threshold: u32) -> bool {
        let segment = self.board.segments[index];
        let above = self.board.sacked.iter().rev().take_while(|range| range.start >= segment.end());
        let (count, bytes) = above.fold((0, 0), |(count, bytes), range| (count + 1, bytes + range.end - range.start));
        !segment.is_sacked() && (count >= threshold || bytes > u64::from(threshold - 1) * u64::from(SIZE))
    }
}

proptest! {
    #[test]
    fn every_count_is_what_a_recount_gives(steps in prop::collection::vec(step(), 1..200)) {
        let mut model = Model {
            board: Scoreboard::default(),
            acknowledged: 1,
            next: 1,
            now: Instant::ZERO,
        };
        steps.into_iter().for_each(|step| model.apply(step));
    }
}

/// `count` segments, sent a millisecond apart.
fn board(count: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for n in 0..count {
        board.send(Instant::ZERO + Span::from_millis(n), 1 + n * u64::from(SIZE), SIZE, false);
    }
    board
}

fn delivery() -> Delivery {
    Delivery::new(Instant::ZERO + Span::from_secs(1), None, None)
}

#[test]
fn a_segment_is_found_whatever_the_sizes() {
    let mut board = Scoreboard::default();
    let mut start = 1;
    for n in 0..1000_u32 {
        let length = if n < 500 { 1 } else { 1 + n % 7 * 300 };
        board.send(Instant::ZERO, start, length, false);
        start += u64::from(length);
    }
    for (index, segment) in board.segments.iter().enumerate() {
        assert_eq!(board.index_of(segment.start), index);
        assert_eq!(board.index_of(segment.end() - 1), index);
    }
    assert_eq!(board.index_of(start), 1000);
    assert_eq!(board.index_of(0), 0);
}

#[test]
fn the_pipe_counts_a_retransmission_beside_the_original() {
    let mut board = board(3);
    assert_eq!(board.pipe(), 3000);
    board.send_again(Instant::ZERO, 0);
    assert_eq!(board.pipe(), 4000, "RFC 6675 §4: not marked as lost, and retransmitted");
    board.lose_all();
    assert_eq!(board.pipe(), 0);
    board.send_again(Instant::ZERO, 0);
    assert_eq!(board.pipe(), 1000);
}

#[test]
fn delivered_bytes_are_reported_once() {
    let mut board = board(4);
    let mut delivery = delivery();
    board.acknowledge_selectively(Range::new(2001, 3001), &mut delivery);
    assert_eq!((delivery.bytes, delivery.lowest_original), (1000, Some(2001)));
    let mut delivery = self::delivery();
    board.acknowledge(3001, &mut delivery);
    assert_eq!((delivery.bytes, delivery.lowest_original), (2000, Some(1)), "the third was reported before");
    assert_eq!(delivery.last_acknowledged, Some(Instant::ZERO + Span::from_millis(2)));
    assert!(!delivery.repeated);
}

#[test]
fn an_acknowledgement_within_a_segment() {
    let mut board = board(2);
    let mut delivery = delivery();
    board.acknowledge(501, &mut delivery);
    assert_eq!((delivery.bytes, board.pipe(), delivery.last_acknowledged), (500, 1500, None));
    board.verify(501);
}

#[test]
fn a_fin_stays_with_the_last_payload() {
    let mut board = Scoreboard::default();
    board.send(Instant::ZERO, 1, 2001, true);
    assert!(board.split(1000) && board.needs_repair() && board.pipe() == 0);
    let pieces: Vec<_> = board.segments.iter().map(|segment| (segment.length, segment.has_fin())).collect();
    assert_eq!(pieces, [(1000, false), (1001, true)]);
    assert!(!board.split(1000), "a FIN is no payload");
}

#[test]
fn the_sequence_number_of_a_fin_does_not_make_two_segments_three() {
    for (fin, sacked) in [(true, vec![2, 4]), (true, vec![3, 4]), (false, vec![2, 4])] {
        let mut board = Scoreboard::default();
        let mut delivery = Delivery::new(Instant::ZERO, None, None);
        let start = |number: u64| 1 + number * u64::from(SIZE);
        for number in 0..5 {
            let last = fin && number == 4;
            board.send(Instant::ZERO, start(number), SIZE + u32::from(last), last);
        }
        for number in sacked {
            let last = fin && number == 4;
            let range = Range::new(start(number), start(number + 1) + u64::from(last));
            board.acknowledge_selectively(range, &mut delivery);
        }
        assert!(!board.find_losses_by_count(3, SIZE), "{board:?}");
        // A third segment does.
        board.acknowledge_selectively(Range::new(start(1), start(2)), &mut delivery);
        assert!(board.find_losses_by_count(3, SIZE), "{board:?}");
    }
}
