//! Prague: a congestion control for L4S, whose rate follows the share of marked segments.
//!
//! Sources: draft-briscoe-iccrg-prague-congestion-control-04, and for what it leaves open the
//! defaults of its reference for Linux (`tcp_prague`, version 0.7). Required are accurate ECN (RFC
//! 9768) and ECT(1) (RFC 9331); without accurate ECN a connection uses NewReno.
//!
//! - The share of marked segments is averaged with a gain of 1/16 once per round trip. Before the
//!   first mark there is no average; that mark halves the window and ends slow start.
//! - A mark reduces the window by half of the average, if a round trip has passed since the last
//!   reduction (§2.4.2 of the draft).
//! - Each segment that is acknowledged without a mark adds 1/window segments, also while the window
//!   is being reduced.
//! - Below a round trip of 25 ms, a flow grows, averages and reduces as one of 25 ms, from the
//!   fourth round trip after slow start on (virtual round trip, §2.4.4 of the draft).
//! - A loss halves the window; it does not grow until the losses are repaired.
//! - As in UDP Prague of the same authors, every mark is considered. The reference for Linux
//!   considers one per round trip, and skips it if 25 ms have not passed: at a round trip of 20 ms
//!   it reduces every 40 ms.
//! - Segments are paced at the window per round trip, in bursts of at most 1/4096 s.
//!
//! Departures: the window is at least two segments. The reference then paces at a lower rate and
//! with smaller segments, and varies the rate by 3 % within a round trip. Its window moves towards
//! its target by one segment for each acknowledgement, here it is the target.

use airpath_core::{Bitrate, Instant, Span};
use serde::{Deserialize, Serialize};

use super::{Acknowledged, Congested, CongestionControl, RateSample, Signal};
use crate::config::Config;

/// Gain of the average (`PRAGUE_SHIFT_G`).
const GAIN: f64 = 1.0 / 16.0;
/// Flows with shorter round trips behave as with this one (`RTT_TARGET`).
const TARGET: Span = Span::from_millis(25);
/// Above this round trip nothing is scaled (`MAX_SCALED_RTT`).
const MOST_SCALED: Span = Span::from_millis(100);
/// Round trips after slow start without scaling (`DEFAULT_RTT_TRANSITION`).
const TRANSITION: u32 = 4;
/// The least window after a reduction, in segments (`MIN_CWND_RTT`).
const LEAST: f64 = 2.0;
/// The least pacing rate (`MINIMUM_RATE`).
const LEAST_RATE: Bitrate = Bitrate::from_bps(100_000);
/// Bursts have the length of this share of a second (`prague_burst_shift`).
const BURSTS_PER_SECOND: u64 = 1 << 12;

/// Prague.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prague {
    segment_size: u64,
    /// In segments.
    window: f64,
    /// In segments.
    threshold: Option<f64>,
    /// The average share of marked segments.
    share: f64,
    marks_seen: bool,
    /// A loss has reduced the window, and is not repaired.
    in_loss: bool,
    /// Whether the congestion window limited the sender at the last acknowledgement.
    limited: bool,
    round: Round,
    /// The last reduction for a mark.
    reduction: Option<Reduction>,
    /// Reductions for marks.
    reductions: u64,
    smoothed: Option<Span>,
    rate: Option<Bitrate>,
    before: Option<Before>,
}

/// A round trip.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Round {
    /// Round trips since slow start.
    count: u32,
    /// It ends with the acknowledgement of a segment that was sent after so much was delivered.
    end: u64,
    began: Instant,
    acknowledged: u64,
    marked: u64,
}

/// A reduction for a mark.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Reduction {
    at: Instant,
    /// Segments delivered until then: the acknowledgement of a segment that was sent later ends the
    /// round trip.
    delivered: u64,
}

/// The state before the last episode of losses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Before {
    window: f64,
    threshold: Option<f64>,
}

impl Prague {
    /// The configured controller, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        let segments = |bytes: u64| bytes as f64 / f64::from(size);
        let threshold = config.initial_slow_start_threshold.get();
        Self {
            segment_size: u64::from(size),
            window: segments(config.initial_window.bytes(size)),
            threshold: threshold.map(f64::from),
            share: 0.0,
            marks_seen: false,
            in_loss: false,
            limited: true,
            round: Round::default(),
            reduction: None,
            reductions: 0,
            smoothed: None,
            rate: None,
            before: None,
        }
    }

    fn is_slow_start(&self) -> bool {
        self.threshold.is_none_or(|threshold| self.window < threshold)
    }

    /// Whether the flow behaves as one with the target round trip.
    fn is_scaled(&self) -> bool {
        self.round.count >= TRANSITION && !self.is_slow_start()
    }

    /// Growth per unmarked window, in segments: one for each target round trip, with the rate of a
    /// flow that has that round trip.
    fn increase(&self) -> f64 {
        match self.smoothed {
            Some(smoothed) if self.round.count >= TRANSITION && smoothed <= MOST_SCALED && smoothed < TARGET => {
                let ratio = smoothed.as_secs_f64() / TARGET.as_secs_f64();
                ratio * ratio
            }
            _ => 1.0,
        }
    }

    /// Grows the window for `segments` that were acknowledged without a mark.
    fn grow(&mut self, mut segments: f64) {
        if self.is_slow_start() {
            let room = self.threshold.map_or(segments, |threshold| threshold - self.window);
            let used = segments.min(room);
            self.window += used;
            segments -= used;
        }
        if segments > 0.0 {
            self.window += segments * self.increase() / self.window;
        }
    }

    /// Whether a mark reduces the window: a round trip has passed since the last reduction, and a
    /// virtual one.
    fn is_due(&self, sample: &RateSample) -> bool {
        let Some(reduction) = self.reduction else { return true };
        let virtual_round_trip = self.smoothed.map_or(TARGET, |smoothed| smoothed.max(TARGET));
        shows_sent_after(sample, reduction.delivered)
            && (!self.is_scaled() || sample.now.since(reduction.at) >= virtual_round_trip)
    }

    /// Reduces the window for a mark: by half for the first one.
    fn reduce(&mut self, sample: &RateSample) {
        let factor = if self.marks_seen { self.share / 2.0 } else { 0.5 };
        self.window = (self.window * (1.0 - factor)).max(LEAST);
        self.threshold = Some(self.window);
        self.reduction = Some(Reduction { at: sample.now, delivered: sample.total_delivered });
        self.reductions += 1;
    }

    /// At the end of a round trip: averages the share of marks.
    fn average(&mut self, sample: &RateSample) {
        let now = sample.now;
        if !shows_sent_after(sample, self.round.end) || (self.is_scaled() && now.since(self.round.began) < TARGET) {
            return;
        }
        if self.marks_seen {
            let share = self.round.marked as f64 / self.round.acknowledged.max(1) as f64;
            self.share = (self.share + (share - self.share) * GAIN).clamp(0.0, 1.0);
        }
        let count = if self.is_slow_start() { self.round.count } else { self.round.count.saturating_add(1) };
        self.round = Round { count, end: sample.total_delivered, began: now, acknowledged: 0, marked: 0 };
    }

    /// Sets the pacing rate.
    fn pace(&mut self, in_flight: u64) {
        let Some(smoothed) = self.smoothed.filter(|smoothed| !smoothed.is_zero()) else { return };
        let segments = (self.window as u64).max(in_flight);
        let bits = (segments * self.segment_size * 8) as f64 / smoothed.as_secs_f64();
        // As with other controllers, twice in slow start, up to half of the threshold.
        let doubles = self.threshold.is_none_or(|threshold| self.window < threshold / 2.0);
        let rate = Bitrate::from_bps((bits * if doubles { 2.0 } else { 1.0 }) as u64);
        self.rate = Some(rate.max(LEAST_RATE));
    }
}

/// Whether the acknowledged segment was sent after `delivered` segments were delivered.
const fn shows_sent_after(sample: &RateSample, delivered: u64) -> bool {
    sample.delivered.is_some() && sample.prior_delivered >= delivered
}

impl CongestionControl for Prague {
    fn name(&self) -> &'static str {
        "prague"
    }

    fn on_ack(&mut self, ack: &Acknowledged) {
        self.limited = ack.limited;
    }

    fn takes_over(&self) -> bool {
        true
    }

    fn on_established(&mut self, now: Instant, round_trip: Option<Span>, _: u64) {
        self.smoothed = round_trip;
        self.round.began = now;
        self.pace(0);
    }

    fn on_rate_sample(&mut self, sample: &RateSample) {
        self.smoothed = sample.smoothed_round_trip;
        self.in_loss &= sample.recovery || sample.timed_out;
        let marked = sample.marked.min(sample.acknowledged);
        self.round.acknowledged += sample.acknowledged;
        self.round.marked += marked;
        if marked > 0 {
            if !self.in_loss && self.is_due(sample) {
                self.reduce(sample);
            }
            self.marks_seen = true;
        }
        let unmarked = sample.acknowledged - marked;
        if unmarked > 0 && !self.in_loss && self.limited {
            self.grow(unmarked as f64);
        }
        self.average(sample);
        self.pace(sample.in_flight);
    }

    fn mark_reductions(&self) -> Option<u64> {
        Some(self.reductions)
    }

    fn on_segment_size(&mut self, size: u32) {
        self.window *= self.segment_size as f64 / f64::from(size);
        self.segment_size = u64::from(size);
    }

    fn pacing_aggregate(&self, _: u32, rate: u64) -> u32 {
        let burst = rate / 8 / BURSTS_PER_SECOND / self.segment_size;
        u32::try_from(burst).unwrap_or(u32::MAX).max(1)
    }

    fn on_congestion(&mut self, congested: &Congested) {
        match congested.signal {
            Signal::Mark => {}
            Signal::Loss | Signal::Timeout => {
                if !congested.again {
                    self.before = Some(Before { window: self.window, threshold: self.threshold });
                    self.threshold = Some((self.window / 2.0).max(LEAST));
                }
                let threshold = self.threshold.unwrap_or(LEAST);
                self.window = if congested.signal == Signal::Timeout { 1.0 } else { self.window.min(threshold) };
                self.in_loss = true;
            }
        }
    }

    fn undo(&mut self, _: Instant) {
        self.in_loss = false;
        if let Some(before) = self.before.take() {
            self.window = self.window.max(before.window);
            self.threshold = before.threshold;
        }
    }

    fn on_idle(&mut self, _: Instant, window: u64, _: u64) {
        self.window = self.window.min(window as f64 / self.segment_size as f64);
    }

    fn congestion_window(&self) -> u64 {
        self.window.ceil() as u64 * self.segment_size
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.threshold.map(|threshold| (threshold * self.segment_size as f64) as u64)
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    /// A controller. Its acknowledgements arrive a round trip after their segments were sent.
    struct Driver {
        prague: Prague,
        now: Instant,
        delivered: u64,
        /// Times of the acknowledgements, and segments delivered until then.
        acks: Vec<(Instant, u64)>,
        round_trip: Span,
    }

    impl Driver {
        fn new(window: f64, millis: u64) -> Self {
            let mut prague = Prague::new(&Profile::Linux6.config(), 1000);
            prague.window = window;
            Self {
                prague,
                now: Instant::ZERO + Span::from_secs(1),
                delivered: 0,
                acks: Vec::new(),
                round_trip: Span::from_millis(millis),
            }
        }

        /// One acknowledgement of `segments`, `marked` of them with CE.
        fn ack(&mut self, segments: u64, marked: u64) {
            self.ack_in(segments, marked, false);
        }

        fn ack_in(&mut self, segments: u64, marked: u64, recovery: bool) {
            let before = self.acks.iter().rev().find(|(at, _)| *at + self.round_trip <= self.now);
            let prior_delivered = before.map_or(0, |(_, delivered)| *delivered);
            self.delivered += segments;
            self.acks.push((self.now, self.delivered));
            self.prague.on_rate_sample(&RateSample {
                now: self.now,
                total_delivered: self.delivered,
                total_lost: 0,
                delivered_at: self.now,
                delivered: Some(segments),
                interval: None,
                prior_delivered,
                lost: 0,
                sent_in_flight: 0,
                app_limited: false,
                round_trip: Some(self.round_trip),
                ack_delayed: false,
                acknowledged: segments,
                marked,
                losses: 0,
                in_flight: 0,
                prior_in_flight: 0,
                least_round_trip: Some(self.round_trip),
                smoothed_round_trip: Some(self.round_trip),
                departure: self.now,
                recovery,
                timed_out: false,
            });
        }

        fn round(&mut self, segments: u64, marked: u64) {
            self.now += self.round_trip;
            self.ack(segments, marked);
        }
    }

    #[test]
    fn the_first_mark_halves_the_window_and_ends_slow_start() {
        let mut driver = Driver::new(10.0, 50);
        driver.round(10, 0);
        assert_eq!(driver.prague.congestion_window(), 20_000);
        driver.round(1, 1);
        assert_eq!((driver.prague.window, driver.prague.slow_start_threshold()), (10.0, Some(10_000)));
    }

    #[test]
    fn the_first_mark_does_not_halve_what_a_loss_has_halved() {
        let mut driver = Driver::new(100.0, 50);
        let signal = Signal::Loss;
        let congested = Congested { now: driver.now, signal, again: false, flight_size: 0, window_limit: u64::MAX };
        driver.prague.on_congestion(&congested);
        driver.ack_in(1, 1, true);
        assert_eq!((driver.prague.window, driver.prague.share), (50.0, 1.0 / 16.0));
        // It was the first: later marks reduce by their share.
        driver.round(1, 1);
        assert!(driver.prague.window > 48.0, "{}", driver.prague.window);
    }

    #[test]
    fn the_share_of_marks_is_averaged_with_a_gain_of_a_sixteenth() {
        let mut driver = Driver::new(20.0, 50);
        driver.round(1, 1);
        assert_eq!(driver.prague.share, 1.0 / 16.0);
        driver.round(10, 5);
        assert_eq!(driver.prague.share, 1.0 / 16.0 + (0.5 - 1.0 / 16.0) / 16.0);
        let share = driver.prague.share;
        driver.round(10, 0);
        assert_eq!(driver.prague.share, share * 15.0 / 16.0);
    }

    #[test]
    fn a_mark_reduces_the_window_by_half_of_the_share() {
        let mut driver = Driver::new(100.0, 50);
        driver.prague.marks_seen = true;
        driver.prague.threshold = Some(50.0);
        driver.prague.share = 0.5;
        driver.round(1, 1);
        assert_eq!(driver.prague.window, 75.0);
    }

    #[test]
    fn unmarked_segments_grow_the_window_by_one_per_round_trip() {
        let mut driver = Driver::new(10.0, 50);
        driver.prague.threshold = Some(10.0);
        driver.round(10, 0);
        assert_eq!(driver.prague.window, 11.0);
        driver.prague.marks_seen = true;
        driver.prague.share = 0.0;
        driver.round(11, 11);
        assert_eq!(driver.prague.window, 11.0, "all are marked");
    }

    #[test]
    fn a_short_round_trip_grows_as_one_of_25_ms_from_the_fifth_round_on() {
        let mut driver = Driver::new(10.0, 5);
        driver.prague.threshold = Some(10.0);
        for _ in 0..4 {
            driver.round(10, 0);
        }
        let before = driver.prague.window;
        assert!(before > 13.0, "{before}");
        driver.round(10, 0);
        // A fifth of the round trip: 1/25 of the growth.
        let grown = driver.prague.window - before;
        assert!((grown - 10.0 / before / 25.0).abs() < 1e-9, "{grown}");
    }

    #[test]
    fn reductions_of_a_short_round_trip_are_25_ms_apart() {
        let mut driver = Driver::new(100.0, 5);
        driver.prague.threshold = Some(50.0);
        driver.prague.marks_seen = true;
        driver.prague.share = 0.5;
        driver.prague.round.count = TRANSITION;
        driver.round(1, 1);
        assert_eq!(driver.prague.window, 75.0);
        for _ in 0..4 {
            driver.round(1, 1);
            assert_eq!(driver.prague.window, 75.0);
        }
        driver.round(1, 1);
        assert!(driver.prague.window < 60.0, "{}", driver.prague.window);
    }

    #[test]
    fn a_reduction_does_not_wait_for_the_end_of_a_round_trip() {
        let times = |millis| {
            let mut driver = Driver::new(100.0, millis);
            driver.prague.threshold = Some(50.0);
            driver.prague.marks_seen = true;
            driver.prague.share = 0.5;
            driver.prague.round.count = TRANSITION;
            let mut times = Vec::new();
            for milli in 0..100 {
                driver.now += Span::from_millis(1);
                let before = driver.prague.mark_reductions();
                driver.ack(1, 1);
                if driver.prague.mark_reductions() > before {
                    times.push(milli);
                }
            }
            times
        };
        // Not every two round trips.
        assert_eq!(times(20), [0, 25, 50, 75]);
        assert_eq!(times(40), [0, 40, 80]);
    }

    #[test]
    fn a_loss_halves_the_window_which_an_undo_restores() {
        let mut driver = Driver::new(100.0, 50);
        let congested =
            |signal, again| Congested { now: Instant::ZERO, signal, again, flight_size: 0, window_limit: u64::MAX };
        driver.prague.on_congestion(&congested(Signal::Loss, false));
        assert_eq!((driver.prague.congestion_window(), driver.prague.slow_start_threshold()), (50_000, Some(50_000)));
        driver.prague.undo(Instant::ZERO);
        assert_eq!((driver.prague.congestion_window(), driver.prague.slow_start_threshold()), (100_000, None));
        driver.prague.on_congestion(&congested(Signal::Timeout, false));
        assert_eq!((driver.prague.congestion_window(), driver.prague.slow_start_threshold()), (1000, Some(50_000)));
        driver.prague.on_congestion(&congested(Signal::Timeout, true));
        assert_eq!(driver.prague.slow_start_threshold(), Some(50_000));
    }

    #[test]
    fn bursts_last_a_quarter_of_a_millisecond() {
        let prague = Prague::new(&Profile::Linux6.config(), 1000);
        assert_eq!(prague.pacing_aggregate(50, 1_000_000), 1);
        // 100 Mbit/s are 12.5 MB/s, and 3,051 bytes in 1/4096 s.
        assert_eq!(prague.pacing_aggregate(50, 100_000_000), 3);
    }
}
