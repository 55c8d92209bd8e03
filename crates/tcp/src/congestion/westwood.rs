//! TCP Westwood+: after congestion, the window falls back to the estimated bandwidth-delay product.
//!
//! Source: Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and
//! Vegas TCP congestion control", ACM CCR 34(2), 2004. The sender measures one sample of bandwidth
//! in each round trip: the delivered data over the time. A low-pass filter smooths the samples. On
//! congestion the slow-start threshold is bandwidth × least round trip instead of half the window,
//! so a loss on the radio link reduces the window less. Otherwise it is NewReno.
//!
//! Compared with the source of Linux 6 (`tcp_westwood.c`), and equal to it: samples of at least
//! 50 ms, the filter is applied twice with 7/8 of the old value, what duplicates have counted is
//! subtracted from later acknowledgements, the threshold is at least two segments, and a timeout
//! starts a new search for the least round trip. Linux rounds the bandwidth down to bytes per jiffy
//! and the product to segments; here both are exact. In contrast to Linux the window does not grow
//! by a loss, and within a fast recovery it already is the new one.

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::{Acknowledged, Congested, CongestionControl, Delivered, NewReno, Signal};
use crate::config::Config;

/// The shortest time of a sample (`TCP_WESTWOOD_RTT_MIN`).
const SHORTEST_SAMPLE: Span = Span::from_millis(50);

/// Westwood+.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Westwood {
    reno: NewReno,
    bandwidth: Bandwidth,
    /// The last measured round trip.
    round_trip: Option<Span>,
    least_round_trip: Option<Span>,
    /// Whether the next round trip is the least one.
    restart_least: bool,
}

/// The estimate of the bandwidth.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Bandwidth {
    segment_size: u64,
    /// Start of the current sample, and the bytes delivered since.
    start: Option<Instant>,
    bytes: u64,
    /// Bytes that duplicates without SACK have delivered, and no acknowledgement has covered yet.
    counted: u64,
    /// Bytes per second after one filter, and after both.
    filtered: Option<(u64, u64)>,
}

impl Westwood {
    /// The configured controller, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        Self {
            reno: NewReno::new(config, size),
            bandwidth: Bandwidth { segment_size: u64::from(size), start: None, bytes: 0, counted: 0, filtered: None },
            round_trip: None,
            least_round_trip: None,
            restart_least: false,
        }
    }

    /// Bandwidth × least round trip; `None` before the first sample.
    fn product(&self) -> Option<u64> {
        let product = u128::from(self.bandwidth.filtered?.1) * u128::from(self.least_round_trip?.as_nanos());
        u64::try_from(product / 1_000_000_000).ok()
    }
}

impl Bandwidth {
    /// Ends the sample that has lasted for a round trip, then counts what was delivered.
    fn on_delivered(&mut self, delivered: &Delivered, round_trip: Option<Span>) {
        let Some(start) = self.start else {
            self.start = Some(delivered.now);
            return;
        };
        let elapsed = delivered.now.since(start);
        if round_trip.is_some_and(|each| elapsed > each.max(SHORTEST_SAMPLE)) {
            let sample = u128::from(self.bytes) * 1_000_000_000 / u128::from(elapsed.as_nanos());
            self.filter(u64::try_from(sample).unwrap_or(u64::MAX));
            (self.start, self.bytes) = (Some(delivered.now), 0);
        }
        self.bytes += if delivered.duplicate {
            self.counted += self.segment_size;
            self.segment_size
        } else {
            // What duplicates have counted is not counted again (`westwood_acked_count`). If they
            // have counted all of it, only the retransmission is new.
            let again = if delivered.bytes > self.segment_size { self.counted.min(delivered.bytes) } else { 0 };
            self.counted -= again;
            if again > 0 && again == delivered.bytes { self.segment_size } else { delivered.bytes - again }
        };
    }

    fn filter(&mut self, sample: u64) {
        let smooth = |old: u64, new: u64| ((u128::from(old) * 7 + u128::from(new)) / 8) as u64;
        self.filtered = Some(self.filtered.map_or((sample, sample), |(once, twice)| {
            let once = smooth(once, sample);
            (once, smooth(twice, once))
        }));
    }
}

impl CongestionControl for Westwood {
    fn name(&self) -> &'static str {
        "westwood+"
    }

    #[inline]
    fn on_ack(&mut self, ack: &Acknowledged) {
        self.reno.on_ack(ack);
    }

    fn on_delivered(&mut self, delivered: &Delivered) {
        self.bandwidth.on_delivered(delivered, self.round_trip);
        if let Some(sample) = delivered.round_trip {
            self.round_trip = Some(sample);
            let least = self.least_round_trip.filter(|_| !std::mem::take(&mut self.restart_least));
            self.least_round_trip = Some(least.map_or(sample, |least| least.min(sample)));
        }
    }

    fn on_congestion(&mut self, congested: &Congested) {
        match self.product() {
            Some(product) if congested.signal == Signal::Timeout => self.reno.reduce(congested, product),
            Some(product) => self.reno.reduce(congested, product.min(self.congestion_window())),
            None => self.reno.on_congestion(congested),
        }
        self.restart_least |= congested.signal == Signal::Timeout;
    }

    fn undo(&mut self, now: Instant) {
        self.reno.undo(now);
    }

    fn on_idle(&mut self, now: Instant, window: u64, threshold: u64) {
        self.reno.on_idle(now, window, threshold);
    }

    #[inline]
    fn congestion_window(&self) -> u64 {
        self.reno.congestion_window()
    }

    #[inline]
    fn slow_start_threshold(&self) -> Option<u64> {
        self.reno.slow_start_threshold()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InitialWindow, Profile};

    const SIZE: u64 = 1000;

    fn westwood() -> Westwood {
        let mut config = crate::Config::clone(&Profile::Linux6.config());
        config.initial_window = InitialWindow::Segments(100);
        config.congestion.halve_to_whole_segments = false;
        Westwood::new(&config, SIZE as u32)
    }

    /// A segment each `interval` for ten seconds, with this round trip, in milliseconds.
    fn deliver(westwood: &mut Westwood, from: u64, interval: u64, round_trip: u64) {
        for millis in (from..from + 10_000).step_by(interval as usize) {
            westwood.on_delivered(&Delivered {
                now: Instant::ZERO + Span::from_millis(millis),
                bytes: SIZE,
                duplicate: false,
                round_trip: Some(Span::from_millis(round_trip)),
                timestamps: None,
            });
        }
    }

    fn congest(westwood: &mut Westwood, signal: Signal) {
        let congested =
            Congested { now: Instant::ZERO, signal, again: false, flight_size: 100 * SIZE, window_limit: u64::MAX };
        westwood.on_congestion(&congested);
    }

    /// The first sample lacks the acknowledgement that begins it.
    fn assert_near(found: Option<u64>, expected: u64) {
        assert!(found.is_some_and(|found| found.abs_diff(expected) * 100 <= expected), "{found:?}, not {expected}");
    }

    #[test]
    fn a_loss_reduces_the_window_to_the_bandwidth_delay_product() {
        // 200 kB/s × 150 ms = 30 kB; NewReno would halve 100 segments.
        let mut westwood = westwood();
        deliver(&mut westwood, 0, 5, 150);
        congest(&mut westwood, Signal::Loss);
        assert_near(Some(westwood.congestion_window()), 30_000);
        assert_near(westwood.slow_start_threshold(), 30_000);
        westwood.undo(Instant::ZERO);
        assert_eq!(westwood.congestion_window(), 100_000);
    }

    #[test]
    fn a_loss_does_not_raise_the_window() {
        let mut westwood = westwood();
        deliver(&mut westwood, 0, 1, 400);
        congest(&mut westwood, Signal::Loss);
        assert_eq!(westwood.congestion_window(), 100_000, "the product is 400 kB");
        congest(&mut westwood, Signal::Timeout);
        assert_eq!(westwood.congestion_window(), 1000);
        assert_near(westwood.slow_start_threshold(), 400_000);
    }

    #[test]
    fn without_a_sample_it_is_new_reno() {
        let mut westwood = westwood();
        congest(&mut westwood, Signal::Loss);
        assert_eq!(westwood.congestion_window(), 50_000);
    }

    #[test]
    fn a_timeout_restarts_the_search_for_the_least_round_trip() {
        let mut westwood = westwood();
        deliver(&mut westwood, 0, 5, 100);
        congest(&mut westwood, Signal::Timeout);
        assert_near(westwood.slow_start_threshold(), 20_000);
        deliver(&mut westwood, 10_000, 5, 300);
        congest(&mut westwood, Signal::Timeout);
        assert_near(westwood.slow_start_threshold(), 60_000);
    }

    #[test]
    fn the_filter_keeps_seven_eighths_twice() {
        let mut westwood = westwood();
        for sample in [800, 0, 0] {
            westwood.bandwidth.filter(sample);
        }
        // 800; 700 and (7 × 800 + 700) / 8 = 787; 612 and (7 × 787 + 612) / 8 = 765.
        assert_eq!(westwood.bandwidth.filtered, Some((612, 765)));
    }

    #[test]
    fn duplicates_count_once() {
        let mut westwood = westwood();
        let delivered = |millis, bytes, duplicate| Delivered {
            now: Instant::ZERO + Span::from_millis(millis),
            bytes,
            duplicate,
            round_trip: None,
            timestamps: None,
        };
        westwood.on_delivered(&delivered(0, SIZE, false));
        for millis in 1..=5 {
            westwood.on_delivered(&delivered(millis, 0, true));
        }
        assert_eq!(westwood.bandwidth.bytes, 5 * SIZE);
        // The retransmission, and the five segments after it.
        westwood.on_delivered(&delivered(6, 6 * SIZE, false));
        assert_eq!((westwood.bandwidth.bytes, westwood.bandwidth.counted), (6 * SIZE, 0));
    }

    /// The formulas of Linux 6 (`westwood_filter`, `westwood_acked_count`,
    /// `tcp_westwood_bw_rttmin`) in its units: bytes per millisecond, and segments.
    #[derive(Default)]
    struct Kernel {
        once: u64,
        twice: u64,
        bytes: u64,
        accounted: u64,
        start: u64,
        round_trip: u64,
        least: u64,
    }

    impl Kernel {
        fn on_ack(&mut self, now: u64, acknowledged: u64, round_trip: u64) {
            let elapsed = now - self.start;
            if self.round_trip > 0 && elapsed > self.round_trip.max(50) {
                let sample = self.bytes / elapsed;
                (self.once, self.twice) = if (self.once, self.twice) == (0, 0) {
                    (sample, sample)
                } else {
                    let once = (7 * self.once + sample) >> 3;
                    (once, (7 * self.twice + once) >> 3)
                };
                (self.bytes, self.start) = (0, now);
            }
            let mut count = acknowledged;
            if count == 0 {
                self.accounted += SIZE;
                count = SIZE;
            }
            if count > SIZE {
                if self.accounted >= count {
                    self.accounted -= count;
                    count = SIZE;
                } else {
                    count -= std::mem::take(&mut self.accounted);
                }
            }
            self.bytes += count;
            self.round_trip = round_trip;
            self.least = if self.least == 0 { round_trip } else { self.least.min(round_trip) };
        }

        fn segments(&self) -> u64 {
            (self.twice * self.least / SIZE).max(2)
        }
    }

    #[test]
    fn the_threshold_is_that_of_the_formulas_of_linux() {
        let (mut ours, mut kernel) = (westwood(), Kernel::default());
        // Acknowledgements of one and two segments, every 4 ms, then 16 ms, then 2 ms; every 60th
        // comes after five duplicates, and some cover more or less than these.
        let mut now = 0;
        let mut compared = 0;
        for index in 0..6000_u64 {
            let (interval, round_trip) = match index / 2000 {
                0 => (4, 100 + index % 7),
                1 => (16, 140 + index % 11),
                _ => (2, 90 + index % 5),
            };
            now += interval;
            let bytes = match index % 60 {
                55..60 => 0,
                0 => (3 + index / 60 % 5) * SIZE,
                _ => (1 + index % 2) * SIZE,
            };
            let duplicate = bytes == 0;
            ours.on_delivered(&Delivered {
                now: Instant::ZERO + Span::from_millis(now),
                bytes,
                duplicate,
                round_trip: Some(Span::from_millis(round_trip)),
                timestamps: None,
            });
            if index == 0 {
                // The first acknowledgement only begins the sample.
                kernel = Kernel { start: now, round_trip, least: round_trip, ..Kernel::default() };
            } else {
                kernel.on_ack(now, bytes, round_trip);
            }
            if index % 100 == 99
                && let Some(product) = ours.product()
            {
                // The kernel rounds the bandwidth down three times, each by less than 1 byte per ms
                // and 8 times that in the filters, and the product to segments.
                let bound = SIZE + 16 * kernel.least;
                assert!(
                    product.abs_diff(kernel.segments() * SIZE) <= bound,
                    "{index}: {product}, {}",
                    kernel.segments()
                );
                assert_eq!(ours.bandwidth.counted, kernel.accounted, "{index}");
                compared += 1;
            }
        }
        assert!(compared > 50);
    }
}
