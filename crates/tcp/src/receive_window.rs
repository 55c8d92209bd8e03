//! The window that a receiver offers. It avoids silly windows (RFC 9293 §3.8.6.2.2) and adapts to
//! the application's speed (dynamic right-sizing, Fisk and Feng 2001, as in Linux): the buffer
//! follows the bytes read in a round trip, and the window follows the arrivals.

use airpath_core::{Bytes, Instant, Span};
use serde::{Deserialize, Serialize};

use crate::config::ReceiveBuffer;
use crate::sequence::{FIRST_BYTE, Sequence};

/// The receive window.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReceiveWindow {
    /// Bytes that may wait to be read.
    capacity: u64,
    maximum: u64,
    /// The largest window to offer now; approaches `capacity` segment by segment (`rcv_ssthresh` in
    /// Linux).
    threshold: u64,
    /// Upper bound of the window offered, whatever space there is.
    bound: u64,
    /// One past the highest byte that the peer was ever allowed to send.
    edge: Sequence,
    /// Round trip as measured by the receiver.
    round_trip: Option<Span>,
    /// The last timestamp that was echoed.
    echo: Option<u32>,
    round: Round,
}

/// One round trip of reading by the application.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Round {
    start: Instant,
    /// Position of the reader at the start.
    read: Sequence,
    /// The edge offered at the start: when the data before it has arrived, at least one round trip
    /// has passed.
    edge: Sequence,
    /// The most that was read in an earlier round, for which the window is sufficient
    /// (`rcvq_space.space`).
    most: u64,
}

/// Linux starts as if this many segments had been read in a round trip: a sender's initial window
/// (`TCP_INIT_CWND` in `tcp_init_buffer_space`).
const FIRST_ROUND: u64 = 10;

impl ReceiveWindow {
    pub fn new(config: &ReceiveBuffer, segment_size: u32) -> Self {
        // A sender would never use a window of less than a segment.
        let capacity = config.initial.get().max(u64::from(segment_size));
        let most = capacity.min(FIRST_ROUND * u64::from(segment_size));
        let threshold = capacity.min(config.first_offer.bytes(segment_size));
        let clamp = config.clamp.get().map_or(u64::MAX, Bytes::get);
        Self {
            capacity,
            maximum: config.maximum.get().max(capacity),
            threshold,
            bound: clamp,
            edge: FIRST_BYTE + threshold.min(clamp),
            round_trip: None,
            echo: None,
            round: Round { start: Instant::ZERO, read: FIRST_BYTE, edge: FIRST_BYTE + threshold.min(clamp), most },
        }
    }

    /// One past the highest byte that the peer may send.
    #[inline]
    pub const fn edge(&self) -> Sequence {
        self.edge
    }

    /// The largest window that may be offered during the connection.
    pub const fn maximum(&self) -> u64 {
        self.maximum
    }

    /// The window that is offered before data arrive.
    pub const fn first(&self) -> u64 {
        self.round.edge - FIRST_BYTE
    }

    /// Limits the window to `most`, the largest that a header can announce.
    pub fn limit(&mut self, most: u64) {
        self.capacity = self.capacity.min(most);
        self.threshold = self.threshold.min(most);
        self.maximum = self.maximum.min(most);
        self.edge = self.edge.min(FIRST_BYTE + self.capacity);
        self.round.edge = self.edge;
    }

    /// Bounds the windows that are offered from now on. The offered edge never moves back, so a
    /// smaller bound takes effect as data arrives.
    pub const fn set_bound(&mut self, bound: u64) {
        self.bound = bound;
    }

    /// Bounds the first offer, before the handshake.
    pub fn set_first_bound(&mut self, bound: u64) {
        self.bound = bound;
        self.edge = self.edge.min(FIRST_BYTE.saturating_add(bound));
        self.round.edge = self.edge;
    }

    /// The window to offer with `next` expected and data from `read` on unread. It never shrinks,
    /// and moves by a segment or half the buffer at least. A segment is the largest seen, without
    /// options (`Eff.snd.MSS`, RFC 9293 §3.8.6.2.2): otherwise reading one would not free space for
    /// another.
    #[inline]
    pub fn offer(&mut self, next: Sequence, read: Sequence, segment_size: u32) -> u64 {
        let candidate = self.candidate(next, read);
        if candidate >= self.edge + self.least_step(segment_size) {
            self.edge = candidate;
        }
        self.edge.saturating_sub(next)
    }

    /// Whether reading has opened the window enough for an update: to twice what the peer may still
    /// send, as in Linux.
    #[inline]
    pub fn is_worth_an_update(&self, next: Sequence, read: Sequence, segment_size: u32) -> bool {
        let candidate = self.candidate(next, read);
        candidate >= self.edge + self.least_step(segment_size) && candidate - next >= 2 * self.edge.saturating_sub(next)
    }

    /// Records the round trip of a segment that echoes the timestamp `echo` of this end. As in
    /// Linux (`tcp_rcv_rtt_update`), the first segment with an echo counts, and a lower round trip
    /// counts at once.
    #[inline]
    pub fn measure(&mut self, sample: Span, echo: u32) {
        if self.echo.replace(echo) == Some(echo) {
            return;
        }
        self.round_trip = Some(match self.round_trip {
            Some(smoothed) if sample > smoothed => (smoothed * 7 + sample) / 8,
            _ => sample,
        });
    }

    /// Segments of `bytes` bytes in all arrived in order: the window grows towards the buffer's
    /// size by two segments for each, so that it does not limit a sender in slow start
    /// (`tcp_grow_window` in Linux). Returns whether it has grown.
    #[inline]
    pub fn on_arrival(&mut self, bytes: u32) -> bool {
        let grows = self.threshold < self.capacity;
        if grows {
            self.threshold = (self.threshold + 2 * u64::from(bytes)).min(self.capacity);
        }
        grows
    }

    /// The application has read up to `read`. Grows the buffer if more was read in this round trip
    /// than in any before (`tcp_rcv_space_adjust` in Linux). `beyond` are the bytes from `next` to
    /// the end of what has arrived out of order.
    #[inline]
    pub fn on_read(&mut self, now: Instant, next: Sequence, read: Sequence, beyond: u64) {
        if self.capacity == self.maximum {
            return;
        }
        let over = match self.round_trip {
            Some(round_trip) => now.since(self.round.start) >= round_trip,
            None => next >= self.round.edge,
        };
        if !over {
            return;
        }
        let copied = (read - self.round.read).saturating_sub(next - read);
        if copied > self.round.most {
            // A round trip passes until the sender has the window, and in slow start it grows.
            let window = 2 * copied;
            let growth = window.saturating_mul(copied - self.round.most) / self.round.most.max(1);
            self.round.most = copied;
            self.grow_buffer(window.saturating_add(2 * growth).saturating_add(beyond));
        }
        self.round = Round { start: now, read, edge: self.edge, most: self.round.most };
    }

    /// Data arrived out of order, up to `beyond` bytes above what is expected: the buffer has room
    /// for it beside the data of a round trip (`tcp_data_queue_ofo` in Linux).
    pub fn on_gap(&mut self, beyond: u64) {
        self.grow_buffer((2 * self.round.most).saturating_add(beyond));
    }

    fn grow_buffer(&mut self, bytes: u64) {
        self.capacity = bytes.clamp(self.capacity, self.maximum);
    }

    /// The largest window that may be offered now.
    const fn most(&self) -> u64 {
        if self.threshold < self.bound { self.threshold } else { self.bound }
    }

    const fn candidate(&self, next: Sequence, read: Sequence) -> Sequence {
        let free = self.capacity.saturating_sub(next - read);
        let most = self.most();
        next + if free < most { free } else { most }
    }

    /// Half of what may be offered, which may be less than the buffer: a step that is never free
    /// would leave the window closed.
    fn least_step(&self, segment_size: u32) -> u64 {
        u64::from(segment_size).min(self.capacity.min(self.most()) / 2).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limit, WindowClamp};
    use airpath_core::Bytes;

    fn window(initial: u64, maximum: u64) -> ReceiveWindow {
        offering(Limit::UNLIMITED, initial, maximum)
    }

    fn offering(first_offer: Limit, initial: u64, maximum: u64) -> ReceiveWindow {
        let (initial, maximum) = (Bytes::new(initial), Bytes::new(maximum));
        ReceiveWindow::new(&ReceiveBuffer { initial, first_offer, maximum, clamp: WindowClamp::UNLIMITED }, 1000)
    }

    #[test]
    fn the_first_offer_may_be_less_than_the_buffer() {
        let mut window = offering(Limit::at_most(4), 64_000, 64_000);
        assert_eq!(window.offer(1, 1, 1000), 4000);
        assert!(window.on_arrival(1000));
        assert_eq!(window.offer(1001, 1001, 1000), 6000);
        assert_eq!((0..1000).filter(|_| window.on_arrival(1000)).count(), 29, "58,000 bytes are left");
        assert_eq!(offering(Limit::at_most(4), 3000, 3000).offer(1, 1, 1000), 3000, "the buffer is smaller");
    }

    #[test]
    fn without_scaling_the_window_stays_within_the_header() {
        let mut window = window(100_000, 1_000_000);
        window.limit(65_535);
        assert_eq!((window.edge(), window.maximum()), (FIRST_BYTE + 65_535, 65_535));
        assert_eq!(window.offer(FIRST_BYTE, FIRST_BYTE, 1000), 65_535);
        assert!(!window.on_arrival(1000), "it is as large as it may be");
        window.measure(Span::from_millis(100), 0);
        let read = FIRST_BYTE + 65_535;
        window.on_read(Instant::ZERO + Span::from_millis(100), read, read, 0);
        assert_eq!(window.offer(read, read, 1000), 65_535, "a fast reader gets no more");
    }

    #[test]
    fn a_bound_takes_effect_as_data_arrives() {
        let mut window = window(10_000, 10_000);
        assert_eq!(window.offer(1, 1, 1000), 10_000);
        window.set_bound(3000);
        assert_eq!(window.offer(2001, 1, 1000), 8000, "the edge does not move back");
        assert_eq!(window.offer(9001, 9001, 1000), 3000);
        window.set_bound(u64::MAX);
        assert_eq!(window.offer(9001, 9001, 1000), 10_000);
        let mut window = offering(Limit::UNLIMITED, 10_000, 10_000);
        window.set_first_bound(3000);
        assert_eq!((window.edge(), window.offer(1, 1, 1000)), (FIRST_BYTE + 3000, 3000));
    }

    #[test]
    fn a_clamp_bounds_the_window_from_the_start() {
        let (initial, maximum) = (Bytes::new(64_000), Bytes::new(1_000_000));
        let clamp = WindowClamp::at(Bytes::new(10_000));
        let buffer = ReceiveBuffer { initial, first_offer: Limit::UNLIMITED, maximum, clamp };
        let mut window = ReceiveWindow::new(&buffer, 1000);
        assert_eq!((window.edge(), window.maximum()), (FIRST_BYTE + 10_000, 1_000_000));
        assert_eq!(window.offer(1, 1, 1000), 10_000);
        assert_eq!(window.offer(5001, 5001, 1000), 10_000);
    }

    #[test]
    fn silly_windows_are_not_offered() {
        let mut window = window(4000, 4000);
        assert_eq!(window.offer(1, 1, 1000), 4000);
        assert_eq!(window.offer(4001, 1, 1000), 0, "all of it waits to be read");
        assert_eq!(window.offer(4001, 1000, 1000), 0, "999 bytes are too few");
        assert!(!window.is_worth_an_update(4001, 1000, 1000));
        assert!(window.is_worth_an_update(4001, 1001, 1000));
        assert_eq!(window.offer(4001, 1001, 1000), 1000);
    }

    #[test]
    fn the_window_follows_the_buffer_by_two_segments_for_each_that_arrives() {
        let mut window = window(64_000, 1_000_000);
        window.measure(Span::from_millis(100), 0);
        let read = FIRST_BYTE + 20_000;
        window.on_read(Instant::ZERO + Span::from_millis(100), read, read, 0);
        assert_eq!(window.offer(read, read, 1000), 64_000, "nothing has arrived since");
        assert!(window.on_arrival(1000));
        assert_eq!(window.offer(read, read, 1000), 66_000);
        assert_eq!((0..1000).filter(|_| window.on_arrival(1000)).count(), 27, "54,000 bytes are left");
        // 2 × 20, and twice the growth of that: 40 × (20 - 10) / 10.
        assert_eq!(window.offer(read, read, 1000), 120_000);
        window.on_gap(90_000);
        while window.on_arrival(1000) {}
        assert_eq!(window.offer(read, read, 1000), 130_000, "2 × 20, and what has arrived beyond a gap");
    }

    #[test]
    fn a_fast_reader_gets_a_larger_window() {
        let mut window = window(64_000, 1_000_000);
        window.measure(Span::from_millis(100), 0);
        let (mut now, mut read) = (Instant::ZERO, FIRST_BYTE);
        for _ in 0..8 {
            now += Span::from_millis(100);
            read += window.offer(read, read, 1000);
            window.on_read(now, read, read, 0);
            while window.on_arrival(1000) {}
        }
        assert_eq!(window.offer(read, read, 1000), 1_000_000);
    }

    #[test]
    fn only_more_than_in_any_round_before_enlarges_the_buffer() {
        // tcp_rcv_space_adjust of Linux. It starts as if ten segments had been read in a round.
        let after = |first: u64, second: u64| {
            let mut window = window(20_000, 1_000_000);
            window.measure(Span::from_millis(100), 0);
            let mut read = FIRST_BYTE;
            for (round, bytes) in (1..).zip([first, second]) {
                read += bytes;
                window.on_read(Instant::ZERO + Span::from_millis(100 * round), read, read, 0);
            }
            while window.on_arrival(1000) {}
            window.offer(read, read, 1000)
        };
        assert_eq!(after(10_000, 0), 20_000);
        // 2 × 12, and twice the growth of that: 24 × (12 - 10) / 10.
        assert_eq!(after(12_000, 0), 33_600);
        assert_eq!(after(12_000, 12_000), 33_600, "not more than before");
        // 2 × 18, and 36 × (18 - 12) / 12.
        assert_eq!(after(12_000, 18_000), 72_000);
    }

    #[test]
    fn a_round_lasts_a_round_trip() {
        let read_at = |round_trip: Option<u64>, millis: u64, next: u64| {
            let mut window = window(20_000, 1_000_000);
            round_trip.into_iter().for_each(|millis| window.measure(Span::from_millis(millis), 0));
            window.on_read(Instant::ZERO + Span::from_millis(millis), next, next, 0);
            while window.on_arrival(1000) {}
            window.offer(next, next, 1000) > 20_000
        };
        let next = FIRST_BYTE + 12_000;
        assert_eq!([99, 100].map(|millis| read_at(Some(100), millis, next)), [false, true]);
        // Unknown: until the data allowed at the start of the round has arrived.
        let edge = FIRST_BYTE + 20_000;
        assert_eq!([edge - 1, edge].map(|next| read_at(None, 1000, next)), [false, true]);
    }

    #[test]
    fn the_round_trip_follows_lower_samples_at_once() {
        // tcp_rcv_rtt_update of Linux; a second segment with the same echo waited in a queue.
        let mut window = window(20_000, 1_000_000);
        let round_trips: Vec<u64> = [(80, 1), (90, 1), (160, 2), (70, 3), (78, 4)]
            .into_iter()
            .map(|(millis, echo)| {
                window.measure(Span::from_millis(millis), echo);
                window.round_trip.expect("it was measured").as_nanos() / 1_000_000
            })
            .collect();
        assert_eq!(round_trips, [80, 80, 90, 70, 71]);
    }
}
