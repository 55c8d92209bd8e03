//! CUBIC (RFC 9438).
//!
//! After a reduction the window is a cubic function of time: fast back to near the window of the
//! last loss, flat around it, then ever faster. As in the RFC, windows are in segments and times in
//! seconds.

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::hystart::HyStart;
use super::hystart_plus_plus::HyStartPlusPlus;
use super::{Acknowledged, Congested, CongestionControl, Signal};
use crate::config::{Config, Counting, CubicGrowth, Halving, HyStartVariant};

/// Segments per cubed second (RFC 9438 §5.1).
const C: f64 = 0.4;
/// The multiplicative decrease factor (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// NewReno's growth per round trip that matches that reduction (RFC 9438 §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Of Linux: the same factor, 0.70.
const BETA_OF_LINUX: f64 = 717.0 / 1024.0;
/// Of Linux: acknowledged segments for one of NewReno's window, in eighths of the window
/// (`beta_scale`: 8 / [`ALPHA`] in whole numbers).
const RENO_SCALE: f64 = 15.0;
/// Of Linux: windows that are acknowledged for one segment on the curve, or above it.
const SLOWEST: f64 = 100.0;
/// Of Linux: the least number of acknowledged segments for one of growth.
const FASTEST: f64 = 2.0;
/// Of Linux: after the begin of congestion avoidance, round trips are not used for this time
/// (`cubictcp_acked`).
const UNSETTLED: Span = Span::from_secs(1);

/// CUBIC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cubic {
    segment_size: u32,
    counting: Counting,
    slow_start_limit: u64,
    halving: Halving,
    fast_convergence: bool,
    reno_friendly: bool,
    reno_catch_up: bool,
    rule: CubicGrowth,
    update_interval: Span,
    whole: bool,
    /// The least growth per acknowledged segment, before the first loss.
    growth_before_loss: f64,
    hystart: SlowStartExit,
    /// The congestion window, in segments.
    window: f64,
    /// In segments; infinite while unlimited.
    threshold: f64,
    /// The window before the last reduction.
    prior: f64,
    /// The same, or less by fast convergence: the plateau of the next curve (`W_max`).
    peak: f64,
    /// The least round trip since the start, or since the last timeout (`delay_min`).
    least_round_trip: Option<Span>,
    /// Of Linux: acknowledged segments that have not yet grown the window (`snd_cwnd_cnt`).
    counted: f64,
    epoch: Option<Epoch>,
    before: Option<Windows>,
}

/// Detector of an early end of slow start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum SlowStartExit {
    None,
    Rfc9406(HyStartPlusPlus),
    Linux(HyStart),
}

impl SlowStartExit {
    const fn new(config: &Config) -> Self {
        match config.congestion.hystart {
            HyStartVariant::Off => Self::None,
            HyStartVariant::Rfc9406 => Self::Rfc9406(HyStartPlusPlus::new()),
            HyStartVariant::Linux => Self::Linux(HyStart::new(config.pacing)),
        }
    }
}

/// What an undo restores, in segments.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Windows {
    window: f64,
    threshold: f64,
}

/// An uninterrupted period of congestion avoidance.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Epoch {
    start: Instant,
    /// The plateau of the curve.
    peak: f64,
    /// Seconds from the start to the plateau (`K`).
    time_to_peak: f64,
    /// NewReno's window estimate (`W_est`).
    reno: f64,
    /// Segments acknowledged since that estimate.
    uncounted: f64,
    /// The growth rate computed last.
    pace: Option<Pace>,
}

/// A growth rate, valid until the next computation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pace {
    computed: Instant,
    /// The window at that computation, in whole segments.
    window: f64,
    /// Growth per acknowledged segment.
    growth: f64,
}

impl Cubic {
    /// The configured controller, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        let segments = |bytes: u64| if bytes == u64::MAX { f64::INFINITY } else { bytes as f64 / f64::from(size) };
        let congestion = &config.congestion;
        Self {
            segment_size: size,
            counting: congestion.counting,
            slow_start_limit: congestion.slow_start_limit.bytes(size),
            halving: congestion.halving,
            fast_convergence: congestion.fast_convergence,
            reno_friendly: congestion.reno_friendly,
            reno_catch_up: congestion.reno_catch_up,
            rule: congestion.cubic_growth,
            update_interval: congestion.update_interval,
            whole: congestion.halve_to_whole_segments,
            growth_before_loss: congestion.growth_before_loss.get().map_or(0.0, |segments| 1.0 / f64::from(segments)),
            hystart: SlowStartExit::new(config),
            window: segments(config.initial_window.bytes(size)),
            threshold: segments(config.initial_slow_start_threshold.bytes(size)),
            prior: 0.0,
            peak: 0.0,
            least_round_trip: None,
            counted: 0.0,
            epoch: None,
            before: None,
        }
    }

    fn slow_start(&mut self, ack: &Acknowledged) {
        let growth = match self.counting {
            Counting::Bytes => ack.bytes.min(self.slow_start_limit) as f64 / f64::from(self.segment_size),
            Counting::Acknowledgements => 1.0,
        };
        // One acknowledgement of many bytes, as after a timeout, does not pass the threshold.
        let window = |growth: f64| (self.window + growth).min(self.threshold);
        match &mut self.hystart {
            SlowStartExit::None | SlowStartExit::Linux(_) => self.window = window(growth),
            SlowStartExit::Rfc9406(hystart) => {
                self.window = window(growth / hystart.on_ack(ack) as f64);
                if hystart.is_over() {
                    self.threshold = self.window;
                }
            }
        }
    }

    fn avoidance(&mut self, ack: &Acknowledged) {
        let acknowledged = match self.counting {
            Counting::Bytes => ack.bytes as f64 / f64::from(self.segment_size),
            Counting::Acknowledgements => 1.0,
        };
        if self.rule == CubicGrowth::Linux {
            self.avoidance_of_linux(ack.now, acknowledged);
            return;
        }
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(ack.now, self.window, self.peak));
        let whole = libm::floor(self.window);
        if let Some(growth) = epoch.computed(ack.now, whole, self.update_interval) {
            epoch.uncounted += acknowledged;
            self.window += growth * acknowledged;
            return;
        }
        let mut pace = Pace { computed: ack.now, window: whole, growth: 0.0 };
        let least = if self.peak == 0.0 { self.growth_before_loss } else { 0.0 };
        let elapsed = ack.now.since(epoch.start).as_secs_f64();
        if self.reno_friendly {
            // RFC 9438 §4.3: once back at the window before the reduction, as fast as NewReno
            // itself.
            let alpha = if self.reno_catch_up && epoch.reno >= self.prior { 1.0 } else { ALPHA };
            epoch.reno += alpha * (acknowledged + std::mem::take(&mut epoch.uncounted)) / self.window;
            if epoch.window_at(elapsed) < epoch.reno {
                if self.window < epoch.reno {
                    self.window = epoch.reno;
                } else {
                    pace.growth = least;
                    self.window += least * acknowledged;
                }
                epoch.pace = Some(pace);
                return;
            }
        }
        // RFC 9438 §4.2: towards the curve one round trip from now, by at most half the window.
        let round_trip = ack.smoothed_round_trip.map_or(0.0, Span::as_secs_f64);
        let target = epoch.window_at(elapsed + round_trip).clamp(self.window, 1.5 * self.window);
        pace.growth = ((target - self.window) / self.window).max(least);
        self.window += pace.growth * acknowledged;
        epoch.pace = Some(pace);
    }

    /// Congestion avoidance as in Linux (`bictcp_update`): all numbers are whole.
    fn avoidance_of_linux(&mut self, now: Instant, acknowledged: f64) {
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(now, self.window, self.peak));
        epoch.uncounted += acknowledged;
        let whole = libm::floor(self.window);
        let growth = epoch.computed(now, whole, self.update_interval).unwrap_or_else(|| {
            let ahead = self.least_round_trip.map_or(0.0, Span::as_secs_f64);
            let reno = if self.reno_friendly { epoch.reno_of_linux(whole) } else { 0.0 };
            let distance = epoch.window_at(now.since(epoch.start).as_secs_f64() + ahead) - epoch.peak;
            let least = if self.peak == 0.0 { self.growth_before_loss } else { 0.0 };
            let growth = growth_of_linux(whole, epoch.peak + libm::trunc(distance), reno, least);
            epoch.pace = Some(Pace { computed: now, window: whole, growth });
            growth
        });
        self.count(growth, acknowledged);
    }

    /// Linux adds a segment to the window for each `1 / growth` acknowledged ones. Those that were
    /// counted at a slower growth add one at most (`tcp_cong_avoid_ai`).
    fn count(&mut self, growth: f64, acknowledged: f64) {
        let for_one = libm::round(1.0 / growth);
        if self.counted >= for_one {
            self.counted = 0.0;
            self.window += 1.0;
        }
        self.counted += acknowledged;
        let grown = libm::floor(self.counted / for_one);
        self.counted -= grown * for_one;
        self.window += grown;
    }
}

impl Epoch {
    /// Starts congestion avoidance with `window` (RFC 9438 §4.2, §4.8).
    fn begin(start: Instant, window: f64, peak: f64) -> Self {
        let (peak, time_to_peak) = if window < peak { (peak, libm::cbrt((peak - window) / C)) } else { (window, 0.0) };
        Self { start, peak, time_to_peak, reno: window, uncounted: 0.0, pace: None }
    }

    /// The growth computed last, if it is still used at a window of `whole` segments.
    #[inline]
    fn computed(&self, now: Instant, whole: f64, interval: Span) -> Option<f64> {
        let pace = self.pace.filter(|pace| pace.window == whole && now.since(pace.computed) < interval)?;
        Some(pace.growth)
    }

    /// NewReno's window (`tcp_cwnd`), of the segments acknowledged so far.
    fn reno_of_linux(&mut self, window: f64) -> f64 {
        let for_one = libm::floor(window * RENO_SCALE / 8.0).max(1.0);
        let grown = (libm::ceil(self.uncounted / for_one) - 1.0).max(0.0);
        self.uncounted -= grown * for_one;
        self.reno += grown;
        self.reno
    }

    /// The curve, `elapsed` seconds after the start (RFC 9438 §4.2 equation 1).
    #[inline]
    fn window_at(&self, elapsed: f64) -> f64 {
        let distance = elapsed - self.time_to_peak;
        C * distance * distance * distance + self.peak
    }
}

/// Growth per acknowledged segment at a window of whole segments, towards that of the curve or of
/// NewReno. All numbers are whole, as in `bictcp_update`.
fn growth_of_linux(window: f64, curve: f64, reno: f64, least: f64) -> f64 {
    let towards = |target: f64| (target > window).then(|| libm::floor(window / (target - window)));
    let for_one = towards(curve).unwrap_or(SLOWEST * window);
    let for_one = towards(reno).map_or(for_one, |count| count.min(for_one));
    (1.0 / for_one.max(FASTEST)).max(least)
}

impl CongestionControl for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    #[inline]
    fn on_ack(&mut self, ack: &Acknowledged) {
        if let SlowStartExit::Linux(hystart) = &mut self.hystart
            && hystart.on_ack(ack, self.window, self.window < self.threshold, self.segment_size)
        {
            self.threshold = self.window;
        }
        if let Some(round_trip) = ack.round_trip
            && self.epoch.is_none_or(|epoch| ack.now.since(epoch.start) >= UNSETTLED)
        {
            self.least_round_trip = Some(self.least_round_trip.map_or(round_trip, |least| least.min(round_trip)));
        }
        if !ack.limited {
            return;
        }
        if self.window < self.threshold {
            self.slow_start(ack);
        } else {
            self.avoidance(ack);
        }
    }

    fn on_congestion(&mut self, congested: &Congested) {
        if !congested.again {
            self.before = Some(Windows { window: self.window, threshold: self.threshold });
            let segments = |bytes: u64| bytes as f64 / f64::from(self.segment_size);
            let window = self.window.min(segments(congested.window_limit));
            self.prior = window;
            let (window, beta) = match self.rule {
                CubicGrowth::Rfc9438 => (window, BETA),
                CubicGrowth::Linux => (libm::floor(window), BETA_OF_LINUX),
            };
            // RFC 9438 §4.7.
            self.peak = if self.fast_convergence && window < self.peak { window * (1.0 + beta) / 2.0 } else { window };
            // RFC 9438 §4.6.
            let reduced = match self.halving {
                Halving::FlightSize => segments(congested.flight_size),
                Halving::Window => window,
            };
            let reduced = if self.whole { libm::floor(reduced * beta) } else { reduced * beta };
            self.threshold = reduced.max(2.0);
            if self.rule == CubicGrowth::Linux {
                self.peak = libm::floor(self.peak);
            }
        }
        match congested.signal {
            Signal::Loss | Signal::Mark => self.window = self.threshold,
            Signal::Timeout => {
                self.window = 1.0;
                // RFC 9438 §4.8: the next curve begins at its plateau, where slow start ends.
                self.peak = 0.0;
                self.least_round_trip = None;
            }
        }
        self.epoch = None;
        self.counted = 0.0;
        match (&mut self.hystart, congested.signal) {
            // bictcp_reset, and bictcp_hystart_reset.
            (SlowStartExit::Linux(hystart), Signal::Timeout) => *hystart = hystart.restarted(),
            // RFC 9406 §4.2: for the initial slow start only.
            (hystart @ SlowStartExit::Rfc9406(_), _) => *hystart = SlowStartExit::None,
            _ => {}
        }
    }

    fn undo(&mut self, _: Instant) {
        // As in Linux (tcp_undo_cwnd_reduction), and unlike RFC 9438 §4.9.1, the curve is not
        // restored: after an outage, time would have carried it far above the window.
        if let Some(before) = self.before.take() {
            self.window = self.window.max(before.window);
            self.threshold = self.threshold.max(before.threshold);
        }
    }

    fn on_idle(&mut self, _: Instant, window: u64, threshold: u64) {
        let segments = |bytes: u64| bytes as f64 / f64::from(self.segment_size);
        self.window = self.window.min(segments(window));
        self.threshold = self.threshold.max(segments(threshold));
        if self.rule == CubicGrowth::Rfc9438 {
            self.epoch = None;
        }
    }

    /// RFC 9438 §4.2: idle time does not count as congestion avoidance.
    fn on_transmission_start(&mut self, now: Instant, idle: Span, _: bool) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + idle).min(now);
        }
    }

    #[inline]
    fn congestion_window(&self) -> u64 {
        (self.window * f64::from(self.segment_size)) as u64
    }

    #[inline]
    fn slow_start_threshold(&self) -> Option<u64> {
        let bytes = self.threshold * f64::from(self.segment_size);
        bytes.is_finite().then_some(bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    const SIZE: u32 = 1000;
    const ROUND_TRIP: Span = Span::from_millis(100);

    fn cubic(change: impl FnOnce(&mut Config)) -> Cubic {
        let mut config = Profile::Linux6.config();
        config.congestion.hystart = HyStartVariant::Off;
        config.congestion.growth_before_loss = crate::Limit::UNLIMITED;
        config.congestion.reno_friendly = false;
        change(&mut config);
        Cubic::new(&config, SIZE)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    fn segments(cubic: &Cubic) -> f64 {
        cubic.congestion_window() as f64 / f64::from(SIZE)
    }

    fn acknowledge(cubic: &mut Cubic, millis: u64, bytes: u64) {
        cubic.on_ack(&Acknowledged {
            now: at(millis),
            bytes,
            round_trip: Some(ROUND_TRIP),
            smoothed_round_trip: Some(ROUND_TRIP),
            acknowledged: 0,
            sent: 0,
            limited: true,
        });
    }

    fn lose(cubic: &mut Cubic, millis: u64, signal: Signal) {
        let window = cubic.congestion_window();
        let congested =
            Congested { now: at(millis), signal, again: false, flight_size: window, window_limit: u64::MAX };
        cubic.on_congestion(&congested);
    }

    /// One acknowledgement per segment for one window, each 100 ms.
    fn round(cubic: &mut Cubic, millis: u64) {
        for n in 0..segments(cubic) as u64 {
            acknowledge(cubic, millis + n * 100 / segments(cubic) as u64, u64::from(SIZE));
        }
    }

    #[test]
    fn the_window_follows_the_curve() {
        // RFC 9438 §4.2: W(t) = C (t - K)³ + W_max with K = ((W_max - 0.7 W_max) / C)^(1/3).
        let mut cubic = cubic(|config| config.initial_window = crate::InitialWindow::Segments(400));
        lose(&mut cubic, 0, Signal::Loss);
        assert_eq!(segments(&cubic), 280.0);
        let k = libm::cbrt(0.3 * 400.0 / C);
        for n in 0..120 {
            round(&mut cubic, n * 100);
            // At the end of the round, the window matches the curve at the present time.
            let elapsed = (n + 1) as f64 / 10.0;
            let curve = C * (elapsed - k) * (elapsed - k) * (elapsed - k) + 400.0;
            let found = segments(&cubic);
            assert!((found / curve - 1.0).abs() < 0.02, "after {elapsed} s: {found}, the curve is at {curve}");
        }
    }

    #[test]
    fn fast_convergence_lowers_the_peak_at_a_second_reduction() {
        let run = |fast: bool| {
            let mut cubic = cubic(|config| {
                config.initial_window = crate::InitialWindow::Segments(100);
                config.congestion.fast_convergence = fast;
            });
            lose(&mut cubic, 0, Signal::Loss);
            lose(&mut cubic, 0, Signal::Loss);
            cubic.peak
        };
        assert_eq!(run(false), 70.0);
        // RFC 9438 §4.7: (1 + 0.7) / 2 of it, in whole segments.
        assert_eq!(run(true), 59.0);
    }

    #[test]
    fn a_timeout_reduces_to_one_segment_and_can_be_undone() {
        let mut cubic = cubic(|config| config.initial_window = crate::InitialWindow::Segments(100));
        lose(&mut cubic, 0, Signal::Timeout);
        assert_eq!((segments(&cubic), cubic.slow_start_threshold()), (1.0, Some(70_000)));
        cubic.undo(at(1));
        assert_eq!((segments(&cubic), cubic.slow_start_threshold()), (100.0, None));
    }

    #[test]
    fn the_curve_before_an_undone_timeout_does_not_continue() {
        let mut cubic = cubic(|config| config.initial_window = crate::InitialWindow::Segments(100));
        lose(&mut cubic, 0, Signal::Loss);
        round(&mut cubic, 0);
        let before = segments(&cubic);
        // From a curve since 0 s the window would grow by half.
        lose(&mut cubic, 100, Signal::Timeout);
        cubic.undo(at(20_000));
        round(&mut cubic, 20_000);
        let growth = segments(&cubic) - before;
        assert!((0.0..1.0).contains(&growth), "{growth}");
    }

    #[test]
    fn before_a_loss_the_window_grows_by_a_twentieth_a_round() {
        let run = |least: crate::Limit, lost: bool| {
            let mut cubic = cubic(|config| {
                config.initial_window = crate::InitialWindow::Segments(100);
                config.initial_slow_start_threshold = crate::Limit::at_most(100);
                config.congestion.growth_before_loss = least;
            });
            if lost {
                lose(&mut cubic, 0, Signal::Loss);
            }
            let before = segments(&cubic);
            round(&mut cubic, 0);
            segments(&cubic) - before
        };
        let twentieth = crate::Limit::at_most(20);
        assert!((run(twentieth, false) - 5.0).abs() < 0.01, "one segment per twenty acknowledged, of a hundred");
        // At the plateau Linux adds a segment in a hundred windows.
        assert_eq!(run(crate::Limit::UNLIMITED, false), 0.0);
        assert_eq!(run(twentieth, true), run(crate::Limit::UNLIMITED, true));
    }

    /// The growth 1 s after a loss at a window of 100 segments, which is 4.217 s before the
    /// plateau; `least` and `smoothed` are round trips in milliseconds.
    fn growth_after_a_loss(growth: CubicGrowth, least: u64, smoothed: u64) -> f64 {
        let mut cubic = cubic(|config| {
            config.initial_window = crate::InitialWindow::Segments(100);
            config.congestion.cubic_growth = growth;
        });
        let acknowledge = |cubic: &mut Cubic, millis: u64, round_trip: u64| {
            cubic.on_ack(&Acknowledged {
                now: at(millis),
                bytes: u64::from(SIZE),
                round_trip: Some(Span::from_millis(round_trip)),
                smoothed_round_trip: Some(Span::from_millis(smoothed)),
                acknowledged: 0,
                sent: 0,
                limited: millis > 0,
            });
        };
        acknowledge(&mut cubic, 0, least);
        lose(&mut cubic, 1, Signal::Loss);
        acknowledge(&mut cubic, 1, smoothed);
        acknowledge(&mut cubic, 1001, smoothed);
        cubic.epoch.and_then(|epoch| epoch.pace).expect("it was computed").growth
    }

    #[test]
    fn linux_looks_a_least_round_trip_ahead() {
        // 100 - 0.4 (4.217 - 1.1)³ is 88 in whole segments, 18 above the window of 70.
        // After a least round trip of 2 s, 100.
        for (least, growth) in [(100, 1.0 / 3.0), (2000, 1.0 / 2.0)] {
            assert!((growth_after_a_loss(CubicGrowth::Linux, least, 2000) - growth).abs() < 1e-9, "{least} ms");
        }
        // The smoothed round trip counts in the RFC. 86.8 are aimed at after 10 ms, 99.3 after 2 s.
        for (smoothed, target) in [(10, 86.81), (2000, 99.28)] {
            let growth = growth_after_a_loss(CubicGrowth::Rfc9438, 10, smoothed);
            assert!((growth - (target - 70.0) / 70.0).abs() < 0.01, "{smoothed} ms: {growth}");
        }
    }

    #[test]
    fn linux_counts_in_whole_segments() {
        // Towards the curve: 100 / 13 is 7; towards NewReno's window: 100 / 20 is 5.
        assert_eq!(growth_of_linux(100.0, 113.0, 0.0, 0.0), 1.0 / 7.0);
        assert_eq!(growth_of_linux(100.0, 113.0, 120.0, 0.0), 1.0 / 5.0);
        assert_eq!(growth_of_linux(100.0, 113.0, 105.0, 0.0), 1.0 / 7.0);
        assert_eq!(growth_of_linux(100.0, 400.0, 0.0, 0.0), 0.5, "one for two at most");
        assert_eq!(growth_of_linux(100.0, 90.0, 0.0, 0.0), 1.0 / 10_000.0);
        assert_eq!(growth_of_linux(100.0, 90.0, 0.0, 0.05), 0.05, "before a loss");
        // 90 · 0.7 is 63, and 62.99… in floating point.
        let mut cubic = cubic(|config| config.initial_window = crate::InitialWindow::Segments(90));
        lose(&mut cubic, 0, Signal::Loss);
        assert_eq!(segments(&cubic), 63.0);
    }

    #[test]
    fn what_was_counted_at_a_slower_growth_adds_one_segment_at_most() {
        let mut cubic = cubic(|config| config.initial_window = crate::InitialWindow::Segments(7));
        (0..15).for_each(|_| cubic.count(1.0 / 20.0, 1.0));
        assert_eq!(segments(&cubic), 7.0);
        cubic.count(1.0 / 7.0, 1.0);
        assert_eq!((segments(&cubic), cubic.counted), (8.0, 1.0), "not by two, and the rest is forgotten");
        cubic.count(1.0 / 2.0, 3.0);
        assert_eq!((segments(&cubic), cubic.counted), (10.0, 0.0));
    }

    #[test]
    fn newreno_grows_by_one_for_fifteen_eighths_of_the_window() {
        let mut epoch = Epoch::begin(at(0), 8.0, 0.0);
        let mut after = |acknowledged: f64| {
            epoch.uncounted += acknowledged;
            epoch.reno_of_linux(8.0)
        };
        // More than 15 acknowledged segments are needed for each.
        assert_eq!((after(15.0), after(1.0), after(14.0), after(1.0), after(45.0)), (8.0, 9.0, 9.0, 10.0, 13.0));
    }

    #[test]
    fn idle_time_shifts_the_curve() {
        let mut cubic = cubic(|config| config.initial_window = crate::InitialWindow::Segments(100));
        lose(&mut cubic, 0, Signal::Loss);
        acknowledge(&mut cubic, 100, 1000);
        let start = |cubic: &Cubic| cubic.epoch.map(|epoch| epoch.start);
        assert_eq!(start(&cubic), Some(at(100)));
        cubic.on_transmission_start(at(2000), Span::from_millis(1500), false);
        assert_eq!(start(&cubic), Some(at(1600)));
        cubic.on_transmission_start(at(2100), Span::from_secs(9), false);
        assert_eq!(start(&cubic), Some(at(2100)), "not into the future");
        cubic.on_idle(at(3000), 35_000, 75_000);
        assert_eq!((segments(&cubic), cubic.slow_start_threshold()), (35.0, Some(75_000)));
        assert_eq!(start(&cubic), Some(at(2100)));
    }

    #[test]
    fn hystart_ends_slow_start_where_the_window_is() {
        let run = |exit| {
            let mut cubic = cubic(|config| {
                config.initial_window = crate::InitialWindow::Segments(20);
                config.congestion.hystart = exit;
            });
            for n in 0..10u64 {
                // 3 ms apart, so no ACK train. Each round trip after the first is 10 ms longer.
                cubic.on_ack(&Acknowledged {
                    now: at(3 * n),
                    bytes: u64::from(SIZE),
                    round_trip: Some(Span::from_millis(if n == 0 { 40 } else { 50 })),
                    smoothed_round_trip: Some(ROUND_TRIP),
                    acknowledged: if n == 0 { 1 } else { 2 + n },
                    sent: if n == 0 { 2 } else { 100 },
                    limited: true,
                });
            }
            cubic
        };
        // The second acknowledgement begins a round; its ninth is the first to be evaluated, at a
        // window of 20 + 9.
        assert_eq!(run(HyStartVariant::Off).slow_start_threshold(), None);
        assert_eq!(run(HyStartVariant::Linux).slow_start_threshold(), Some(29_000));
        let mut cubic = run(HyStartVariant::Linux);
        lose(&mut cubic, 100, Signal::Timeout);
        assert!(
            matches!(cubic.hystart, SlowStartExit::Linux(hystart) if hystart == HyStart::new(false)),
            "detection restarts"
        );
    }

    #[test]
    fn slow_start_ends_at_the_threshold() {
        let mut cubic = cubic(|config| {
            config.initial_window = crate::InitialWindow::Segments(10);
            config.initial_slow_start_threshold = crate::Limit::at_most(40);
        });
        round(&mut cubic, 0);
        assert_eq!(segments(&cubic), 20.0);
        acknowledge(&mut cubic, 100, 1_000_000);
        assert_eq!(segments(&cubic), 40.0);
    }
}
