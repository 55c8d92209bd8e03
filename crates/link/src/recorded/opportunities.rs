//! A transmitter that sends at recorded delivery opportunities.

use std::sync::Arc;

use airpath_core::{Instant, Span};

use super::{OPPORTUNITY, Recording};

/// Sends by the opportunities of a recording, as mahimahi's `link_queue.cc` does:
///
/// - Each opportunity carries 1500 bytes: of one or several packets, or of a part of one whose
///   remainder uses the next. A packet leaves, whole, at the opportunity of its last byte.
/// - Unused bytes of an opportunity are lost.
/// - A packet that arrives exactly at an opportunity is too late for it.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    recording: Arc<Recording>,
    /// The opportunity used last, and its remaining bytes.
    current: Instant,
    bytes_left: u32,
    /// The next opportunity.
    next: Position,
}

/// An opportunity in a pass through the file.
#[derive(Clone, Copy, Debug)]
struct Position {
    pass: Instant,
    index: usize,
}

impl Opportunities {
    pub fn new(recording: Arc<Recording>) -> Self {
        let next = Position { pass: Instant::ZERO, index: 0 };
        Self { recording, current: Instant::ZERO, bytes_left: 0, next }
    }

    /// Time of the first byte of a packet that is ready since `ready`, if it is next.
    pub fn next_start(&self, ready: Instant) -> Instant {
        if self.bytes_left > 0 && self.current > ready { self.current } else { self.time(self.after(ready)) }
    }

    /// Sends `size` bytes, from `ready` on or at the next opportunities. Returns the times of the
    /// first and of the last byte.
    pub fn send(&mut self, ready: Instant, size: u32) -> (Instant, Instant) {
        if self.bytes_left == 0 || self.current <= ready {
            self.use_opportunity(self.after(ready));
        }
        let start = self.current;
        let mut missing = size;
        loop {
            let sent = missing.min(self.bytes_left);
            self.bytes_left -= sent;
            missing -= sent;
            if missing == 0 {
                return (start, self.current);
            }
            self.use_opportunity(self.next);
        }
    }

    /// Revokes what it was given: only opportunities after `at` are used.
    pub fn restart(&mut self, at: Instant) {
        self.next = Position { pass: Instant::ZERO, index: 0 };
        self.next = self.after(at);
        (self.current, self.bytes_left) = (at, 0);
    }

    fn use_opportunity(&mut self, position: Position) {
        self.current = self.time(position);
        self.bytes_left = OPPORTUNITY.get() as u32;
        self.next = Position { index: position.index + 1, ..position };
        if self.next.index == self.recording.opportunities() {
            self.next = Position { pass: position.pass + self.recording.period(), index: 0 };
        }
    }

    fn time(&self, position: Position) -> Instant {
        position.pass + self.recording.offset(position.index)
    }

    /// The first opportunity, from the next on, after `ready`.
    fn after(&self, ready: Instant) -> Position {
        if self.time(self.next) > ready {
            return self.next;
        }
        let period = self.recording.period().as_nanos();
        let since = ready.since(self.next.pass).as_nanos();
        let pass = self.next.pass + Span::from_nanos(since / period * period);
        let since = Span::from_nanos(since % period);
        // The last opportunity is at the very end of the period, so there is always one.
        let index = self.recording.millis.partition_point(|millis| Span::from_millis(*millis) <= since);
        Position { pass, index }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    fn opportunities(millis: &[u64]) -> Opportunities {
        Opportunities::new(Arc::new(Recording::new(millis).expect("in order")))
    }

    #[test]
    fn small_packets_share_and_large_ones_wait() {
        let mut link = opportunities(&[2, 4, 4, 10]);
        assert_eq!(link.send(ms(0), 1000), (ms(2), ms(2)));
        assert_eq!(link.send(ms(0), 1000), (ms(2), ms(4)), "500 bytes at 2 ms, 500 at 4");
        assert_eq!(link.send(ms(1), 1000), (ms(4), ms(4)));
        assert_eq!(link.send(ms(4), 40), (ms(10), ms(10)), "too late for the opportunities at 4 ms");
        assert_eq!(link.send(ms(9), 1500), (ms(10), ms(12)), "the file repeats from 10 ms on");
        assert_eq!(link.send(ms(1_000_012), 1500), (ms(1_000_014), ms(1_000_014)));
    }

    #[test]
    fn the_end_of_a_pass_is_the_beginning_of_the_next() {
        let mut link = opportunities(&[0, 3]);
        let times: Vec<_> = (0..4).map(|_| link.send(Instant::ZERO, 1500).1).collect();
        assert_eq!(times, [ms(3), ms(3), ms(6), ms(6)], "no packet had arrived at 0 ms");
    }

    /// mahimahi's own algorithm, opportunity by opportunity.
    fn reference(millis: &[u64], packets: &[(Instant, u32)]) -> Vec<Instant> {
        let period = *millis.last().expect("not empty");
        let times = (0..).flat_map(|pass| millis.iter().map(move |at| ms(pass * period + at)));
        let (mut departures, mut head, mut sent) = (Vec::new(), 0, 0);
        for time in times {
            let mut left = 1500;
            while left > 0 && head < packets.len() && packets[head].0 < time {
                let bytes = left.min(packets[head].1 - sent);
                left -= bytes;
                sent += bytes;
                if sent == packets[head].1 {
                    departures.push(time);
                    (head, sent) = (head + 1, 0);
                }
            }
            if head == packets.len() {
                break;
            }
        }
        departures
    }

    proptest! {
        #[test]
        fn agrees_with_mahimahi(
            mut millis in prop::collection::vec(0u64..30, 1..20),
            gaps in prop::collection::vec((prop_oneof![Just(0u64), 0u64..5_000, 0u64..100_000], 1u32..3200), 1..60),
        ) {
            millis.sort_unstable();
            millis.push(30);
            let mut at = Instant::ZERO;
            let packets: Vec<_> = gaps.into_iter().map(|(micros, size)| {
                at += Span::from_micros(micros);
                (at, size)
            }).collect();
            let mut link = opportunities(&millis);
            let ours: Vec<_> = packets.iter().map(|(ready, size)| {
                let next = link.next_start(*ready);
                let (start, end) = link.send(*ready, *size);
                assert_eq!(next, start);
                assert!(start > *ready);
                end
            }).collect();
            prop_assert_eq!(ours, reference(&millis, &packets));
        }
    }
}
