//! HyStart (Ha and Rhee, "Taming the elephants: new TCP slow start", 2011), as in
//! `net/ipv4/tcp_cubic.c` of Linux: slow start ends when round trips rise, or when an ACK train
//! (the closely spaced acknowledgements of a round) lasts half a round trip.
//!
//! Differences from HyStart++ (RFC 9406, [`super::hystart_plus_plus`]): slow start ends at once,
//! without conservative rounds. A round's least round trip is compared with the connection's least,
//! not with the last round's. An ACK train also ends slow start. The detector is inactive below
//! `LOW_WINDOW`, and it restarts after a timeout.

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::Acknowledged;

/// `hystart_low_window`: HyStart is inactive below this window, in segments.
const LOW_WINDOW: f64 = 16.0;
/// `HYSTART_MIN_SAMPLES`: the first round trips of a round are not evaluated.
const MIN_SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`: bounds of the rise that indicates a queue, which is an
/// eighth of the round trip.
const DELAY_MIN: Span = Span::from_millis(4);
const DELAY_MAX: Span = Span::from_millis(16);
const DELAY_DIVISOR: u64 = 8;
/// `hystart_ack_delta_us`: acknowledgements further apart do not form a train.
const ACK_DELTA: Span = Span::from_millis(2);

/// Detector of the end of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HyStart {
    /// Whether segments are paced.
    paced: bool,
    /// Whether the end was detected (`found`).
    found: bool,
    /// The least round trip (`delay_min`).
    least: Span,
    /// The round ends when more than this is acknowledged (`end_seq`).
    round_end: u64,
    /// Start of the round (`round_start`).
    round_start: Instant,
    /// Time of the last acknowledgement of the round's train (`last_ack`).
    train: Instant,
    /// The round's least round trip (`curr_rtt`).
    current: Span,
    /// Round-trip samples in this round (`sample_cnt`), up to the number needed.
    samples: u32,
}

impl HyStart {
    /// For a new connection, or a restart after a timeout.
    pub const fn new(paced: bool) -> Self {
        Self {
            paced,
            found: false,
            least: Span::MAX,
            round_end: 0,
            round_start: Instant::ZERO,
            train: Instant::ZERO,
            current: Span::MAX,
            samples: 0,
        }
    }

    /// The detector reset after a timeout.
    pub const fn restarted(&self) -> Self {
        Self::new(self.paced)
    }

    /// Records the round trip of an acknowledgement, at a window of `window` segments. Returns
    /// whether it ends slow start, if that is active.
    pub fn on_ack(&mut self, ack: &Acknowledged, window: f64, slow_start: bool, size: u32) -> bool {
        let Some(round_trip) = ack.round_trip else { return false };
        self.least = self.least.min(round_trip);
        if self.found || !slow_start {
            return false;
        }
        if ack.acknowledged > self.round_end {
            self.begin_round(ack);
        }
        if window < LOW_WINDOW {
            return false;
        }
        let train = self.is_train_long(ack, window * f64::from(size));
        let delay = self.has_delay_grown(round_trip);
        self.found = train || delay;
        self.found
    }

    const fn begin_round(&mut self, ack: &Acknowledged) {
        self.round_end = ack.sent;
        self.round_start = ack.now;
        self.train = ack.now;
        self.current = Span::MAX;
        self.samples = 0;
    }

    fn is_train_long(&mut self, ack: &Acknowledged, window: f64) -> bool {
        if ack.now.since(self.train) > ACK_DELTA {
            return false;
        }
        self.train = ack.now;
        let long = self.least + offload_delay(ack.smoothed_round_trip, window);
        // With pacing the segments themselves are spread over up to half a round trip.
        let long = if self.paced { long } else { long / 2 };
        ack.now.since(self.round_start) > long
    }

    fn has_delay_grown(&mut self, round_trip: Span) -> bool {
        self.current = self.current.min(round_trip);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.current > self.least + (self.least / DELAY_DIVISOR).clamp(DELAY_MIN, DELAY_MAX)
    }
}

/// Delay of acknowledgements by segmentation offload (`hystart_ack_delay`): the time of four of the
/// largest aggregates at the rate of slow start, twice the window per round trip, at most 1 ms.
fn offload_delay(smoothed: Option<Span>, window: f64) -> Span {
    const MOST: Span = Span::from_millis(1);
    const FOUR_BUNCHES: f64 = 4.0 * 65_536.0;
    smoothed.map_or(Span::ZERO, |smoothed| {
        let seconds = FOUR_BUNCHES * smoothed.as_secs_f64() / (2.0 * window);
        Span::from_nanos((seconds * 1e9) as u64).min(MOST)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u32 = 1000;

    /// An acknowledgement at `micros` after the start, with a sample of `round_trip` milliseconds.
    fn ack(micros: u64, acknowledged: u64, sent: u64, round_trip: u64) -> Acknowledged {
        Acknowledged {
            now: Instant::ZERO + Span::from_micros(micros),
            bytes: 1,
            round_trip: Some(Span::from_millis(round_trip)),
            smoothed_round_trip: Some(Span::from_millis(40)),
            acknowledged,
            sent,
            limited: true,
        }
    }

    /// A round of `round_trips`, acknowledgements 3 ms apart (no train). Returns the index of the
    /// one that ends slow start.
    fn round(hystart: &mut HyStart, number: u64, window: f64, round_trips: &[u64]) -> Option<usize> {
        round_trips.iter().enumerate().position(|(n, &round_trip)| {
            let now = number * 100_000 + 3_000 * n as u64;
            let ack = ack(now, number * 1000 + n as u64 + 1, (number + 1) * 1000, round_trip);
            hystart.on_ack(&ack, window, true, SIZE)
        })
    }

    #[test]
    fn round_trips_longer_by_an_eighth_end_slow_start() {
        let mut hystart = HyStart::new(false);
        assert_eq!(round(&mut hystart, 0, 20.0, &[40; 12]), None);
        // An eighth of 40 ms is 5 ms; the rise must exceed it.
        assert_eq!(round(&mut hystart, 1, 20.0, &[45; 12]), None);
        // Eight samples are not evaluated; the ninth is.
        assert_eq!(round(&mut hystart, 2, 20.0, &[46; 12]), Some(8));
        assert_eq!(round(&mut hystart, 3, 20.0, &[90; 12]), None, "detected once only");
        let mut restarted = hystart.restarted();
        assert_eq!(round(&mut restarted, 0, 20.0, &[90; 12]), None, "the least round trip is 90 ms now");
    }

    #[test]
    fn the_threshold_is_an_eighth_of_the_least_round_trip_within_bounds() {
        // 8 ms: an eighth is 1 ms, the bound 4 ms.
        let mut short = HyStart::new(false);
        assert_eq!(round(&mut short, 0, 20.0, &[8; 9]), None);
        assert_eq!(round(&mut short, 1, 20.0, &[12; 12]), None);
        assert_eq!(round(&mut short, 2, 20.0, &[13; 12]), Some(8));
        // 400 ms: an eighth is 50 ms, the bound 16 ms.
        let mut long = HyStart::new(false);
        assert_eq!(round(&mut long, 0, 20.0, &[400; 9]), None);
        assert_eq!(round(&mut long, 1, 20.0, &[416; 12]), None);
        assert_eq!(round(&mut long, 2, 20.0, &[417; 12]), Some(8));
        // One short round trip in the round shows that there is no queue.
        let mut passing = HyStart::new(false);
        assert_eq!(round(&mut passing, 0, 20.0, &[40; 9]), None);
        assert_eq!(round(&mut passing, 1, 20.0, &[60, 60, 41, 60, 60, 60, 60, 60, 60, 60, 60]), None);
    }

    #[test]
    fn hystart_is_inactive_below_the_low_window() {
        let mut hystart = HyStart::new(false);
        assert_eq!(round(&mut hystart, 0, 15.9, &[40; 9]), None);
        assert_eq!(round(&mut hystart, 1, 15.9, &[80; 20]), None);
        assert_eq!(round(&mut hystart, 2, 16.0, &[80; 20]), Some(8));
    }

    /// When a train of acknowledgements, one each `gap` microseconds, ends slow start, in
    /// microseconds.
    fn train(hystart: &mut HyStart, gap: u64) -> Option<u64> {
        (0..60_000 / gap)
            .map(|n| n * gap)
            .find(|&now| hystart.on_ack(&ack(now, 1 + now / gap, 100_000, 40), 64.0, true, SIZE))
    }

    #[test]
    fn an_ack_train_of_half_a_round_trip_ends_slow_start() {
        // Half of 40 ms and of the 1 ms for offloading: later than 20.5 ms.
        assert_eq!(train(&mut HyStart::new(false), 500), Some(21_000));
        assert_eq!(train(&mut HyStart::new(false), 2_000), Some(22_000));
        assert_eq!(train(&mut HyStart::new(false), 2_001), None, "too far apart");
        assert_eq!(train(&mut HyStart::new(true), 500), Some(41_500), "all of it with pacing");
    }

    #[test]
    fn the_allowance_for_offloading_is_less_at_high_rates() {
        let smoothed = Some(Span::from_millis(40));
        assert_eq!(offload_delay(smoothed, 64_000.0), Span::from_millis(1));
        // Twice 26,214,400 bytes in 40 ms are 1.31 GB/s: 262,144 bytes take 0.2 ms.
        assert_eq!(offload_delay(smoothed, 26_214_400.0), Span::from_micros(200));
        assert_eq!(offload_delay(None, 64_000.0), Span::ZERO);
    }
}
