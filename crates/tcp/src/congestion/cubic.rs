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
use crate::config::{Config, Counting, Halving, HyStartVariant};

/// Segments per cubed second (RFC 9438 §5.1).
const C: f64 = 0.4;
/// The multiplicative decrease factor (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// NewReno's growth per round trip that matches that reduction (RFC 9438 §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

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
            update_interval: congestion.update_interval,
            whole: congestion.halve_to_whole_segments,
            growth_before_loss: congestion.growth_before_loss.get().map_or(0.0, |segments| 1.0 / f64::from(segments)),
            hystart: SlowStartExit::new(config),
            window: segments(config.initial_window.bytes(size)),
            threshold: segments(config.initial_slow_start_threshold.bytes(size)),
            prior: 0.0,
            peak: 0.0,
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
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(ack.now, self.window, self.peak));
        let whole = libm::floor(self.window);
        if let Some(pace) = epoch.pace
            && pace.window == whole
            && ack.now.since(pace.computed) < self.update_interval
        {
            epoch.uncounted += acknowledged;
            self.window += pace.growth * acknowledged;
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
}

impl Epoch {
    /// Starts congestion avoidance with `window` (RFC 9438 §4.2, §4.8).
    fn begin(start: Instant, window: f64, peak: f64) -> Self {
        let (peak, time_to_peak) = if window < peak { (peak, libm::cbrt((peak - window) / C)) } else { (window, 0.0) };
        Self { start, peak, time_to_peak, reno: window, uncounted: 0.0, pace: None }
    }

    /// The curve, `elapsed` seconds after the start (RFC 9438 §4.2 equation 1).
    #[inline]
    fn window_at(&self, elapsed: f64) -> f64 {
        let distance = elapsed - self.time_to_peak;
        C * distance * distance * distance + self.peak
    }
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
            // RFC 9438 §4.7.
            self.peak = if self.fast_convergence && window < self.peak { window * (1.0 + BETA) / 2.0 } else { window };
            // RFC 9438 §4.6.
            let reduced = match self.halving {
                Halving::FlightSize => segments(congested.flight_size),
                Halving::Window => window,
            };
            let reduced = if self.whole { libm::floor(reduced * BETA) } else { reduced * BETA };
            self.threshold = reduced.max(2.0);
        }
        match congested.signal {
            Signal::Loss | Signal::Mark => self.window = self.threshold,
            Signal::Timeout => {
                self.window = 1.0;
                // RFC 9438 §4.8: the next curve begins at its plateau, where slow start ends.
                self.peak = 0.0;
            }
        }
        self.epoch = None;
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

    fn on_idle(&mut self, _: Instant, restart: u64) {
        self.window = self.window.min(restart as f64 / f64::from(self.segment_size));
        // RFC 9438 §4.2: idle time does not count as congestion avoidance.
        self.epoch = None;
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
        // RFC 9438 §4.7: (1 + 0.7) / 2 of it.
        assert!((run(true) - 59.5).abs() < 1e-9);
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
        // The curve alone: 0.4 (0.1 + 0.1)³ segments after a round.
        assert!(run(crate::Limit::UNLIMITED, false) < 0.01);
        assert_eq!(run(twentieth, true), run(crate::Limit::UNLIMITED, true));
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
