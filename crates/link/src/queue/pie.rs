//! PIE (RFC 8033): a controller drops, or marks, packets on entry with a probability that it
//! updates from the queueing delay.

use airpath_core::{Instant, Packet, RandomStream, Span};

use super::fifo::Fifo;
use super::{Limits, MTU, Updates};

/// The parameters of PIE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The queueing delay to which it controls (`QDELAY_REF`, RFC 8033 §4). `None`: 15 ms, or two
    /// TTIs of the bearer if they are longer.
    pub target: Option<Span>,
    /// The time between updates (`T_UPDATE`, RFC 8033 §4.2). Default: 15 ms. The gains of the
    /// controller follow it: alpha in proportion, and beta grows for shorter times. For longer ones
    /// the RFC has no rule, and beta is kept.
    pub update: Span,
    /// For how long a burst is not dropped (`MAX_BURST`, RFC 8033 §4.4). Default: 150 ms.
    pub burst: Span,
    /// Whether packets of ECN-capable flows are marked instead of dropped while the probability is
    /// at most 10 % (RFC 8033 §5.1). Default: `false`.
    pub ecn: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { target: None, update: UPDATE, burst: Span::from_millis(150), ecn: false }
    }
}

/// `QDELAY_REF`, RFC 8033 §4.
const TARGET: Span = Span::from_millis(15);

/// `T_UPDATE`, RFC 8033 §4.2.
const UPDATE: Span = Span::from_millis(15);

/// Gains of the controller at `T_UPDATE` of 15 ms, in 1/s (RFC 8033 §4.2).
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;

/// Above this probability packets are dropped also if they are ECN-capable (RFC 8033 §5.1).
const MARK_LIMIT: f64 = 0.1;

/// A queue with PIE; its state is named as in RFC 8033 §4.
#[derive(Clone, Debug)]
pub(super) struct Pie {
    /// Seconds.
    target: f64,
    burst: Span,
    ecn: bool,
    limits: Limits,
    fifo: Fifo,
    updates: Updates,
    controller: Controller,
    /// The sojourn time of the packet sent last, in seconds; zero if the queue was empty then.
    delay: f64,
    burst_allowance: Span,
    /// Sum of the probabilities since the last drop (RFC 8033 §5.4).
    accumulated: f64,
    stream: RandomStream,
}

/// The probability, and the delay at the last update.
#[derive(Clone, Copy, Debug, Default)]
struct Controller {
    alpha: f64,
    beta: f64,
    probability: f64,
    old_delay: f64,
}

impl Controller {
    /// An update (RFC 8033 §4.2, with the limit of §5.5).
    fn update(&mut self, delay: f64, target: f64) {
        let change = self.alpha * (delay - target) + self.beta * (delay - self.old_delay);
        let mut change = change / scale(self.probability);
        if self.probability >= 0.1 {
            change = change.min(0.02);
        }
        self.probability += change;
        if delay == 0.0 && self.old_delay == 0.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.old_delay = delay;
    }
}

/// Alpha and beta at this time between updates. RFC 8033 §4.2: half the time, half of alpha, and
/// beta grows by alpha / 4. It has no rule for more than 15 ms: beta is kept then.
fn gains(update: Span) -> (f64, f64) {
    let alpha = ALPHA * (update.as_secs_f64() / UPDATE.as_secs_f64());
    (alpha, BETA + (ALPHA - alpha).max(0.0) / 2.0)
}

/// The divisor of the gains at a probability (RFC 8033 §4.2).
const fn scale(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

/// What happens to a packet on entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entrance {
    /// It is enqueued, possibly marked.
    Enqueued,
    /// The queue is full.
    Full,
    /// The controller drops it.
    Dropped,
}

impl Pie {
    pub fn new(settings: &Settings, limits: Limits, floor: Span, stream: RandomStream) -> Self {
        let Settings { target, update, burst, ecn } = *settings;
        let (alpha, beta) = gains(update);
        Self {
            target: target.unwrap_or(TARGET.max(floor)).as_secs_f64(),
            burst,
            ecn,
            limits,
            fifo: Fifo::default(),
            updates: Updates::new(update),
            controller: Controller { alpha, beta, ..Controller::default() },
            delay: 0.0,
            burst_allowance: burst,
            accumulated: 0.0,
            stream,
        }
    }

    pub fn backlog(&self) -> (u32, u64) {
        (self.fifo.len() as u32, self.fifo.bytes())
    }

    /// Makes the updates up to `now`.
    fn advance(&mut self, now: Instant) {
        while self.updates.next(now).is_some() {
            self.update();
            if self.is_at_rest() {
                self.updates.skip(now);
            }
        }
    }

    fn update(&mut self) {
        let old = self.controller.old_delay;
        self.controller.update(self.delay, self.target);
        self.burst_allowance = self.burst_allowance.saturating_sub(self.updates.period());
        // RFC 8033 §4.4.
        if self.controller.probability == 0.0 && self.delay < self.target / 2.0 && old < self.target / 2.0 {
            self.burst_allowance = self.burst;
        }
    }

    /// Whether updates change nothing until a packet comes.
    fn is_at_rest(&self) -> bool {
        self.controller.probability == 0.0
            && self.delay == 0.0
            && self.controller.old_delay == 0.0
            && self.burst_allowance == self.burst
    }

    /// Enqueues a packet, or not (RFC 8033 §4.1). An `is_admitted` packet finds room.
    pub fn enqueue(&mut self, now: Instant, mut packet: Packet, is_admitted: bool) -> Entrance {
        self.advance(now);
        if !is_admitted && !self.limits.admit(self.fifo.len(), self.fifo.bytes(), packet.size) {
            return Entrance::Full;
        }
        if self.drops_early() {
            if !(self.ecn && packet.ecn.is_capable() && self.controller.probability <= MARK_LIMIT) {
                return Entrance::Dropped;
            }
            packet = super::marked(packet);
        }
        self.fifo.push(now, packet);
        Entrance::Enqueued
    }

    /// `drop_early()` of RFC 8033 §4.1, with the de-randomisation of §5.4.
    fn drops_early(&mut self) -> bool {
        let probability = self.controller.probability;
        let is_short = self.controller.old_delay < self.target / 2.0 && probability < 0.2;
        if !self.burst_allowance.is_zero() || is_short || self.fifo.bytes() <= 2 * u64::from(MTU) {
            return false;
        }
        self.accumulated = if probability == 0.0 { 0.0 } else { self.accumulated + probability };
        let drops = match self.accumulated {
            sum if sum < 0.85 => false,
            sum if sum >= 8.5 => true,
            _ => self.stream.uniform() < probability,
        };
        if drops {
            self.accumulated = 0.0;
        }
        drops
    }

    /// The packet to send at `now`.
    pub fn dequeue(&mut self, now: Instant) -> Option<Packet> {
        self.advance(now);
        let entry = self.fifo.pop();
        let waited = entry.map_or(Span::ZERO, |entry| now.since(entry.entered));
        self.delay = if self.fifo.len() == 0 { 0.0 } else { waited.as_secs_f64() };
        entry.map(|entry| entry.packet)
    }

    pub const fn last_entered(&self) -> Instant {
        self.fifo.last_entered()
    }

    pub fn head_entered(&self) -> Option<Instant> {
        self.fifo.head_entered()
    }

    pub fn drop_head(&mut self, now: Instant) -> Option<Packet> {
        self.advance(now);
        let entry = self.fifo.pop();
        if self.fifo.len() == 0 {
            self.delay = 0.0;
        }
        entry.map(|entry| entry.packet)
    }

    pub fn clear(&mut self, now: Instant, lost: impl FnMut(Packet)) {
        self.advance(now);
        self.delay = 0.0;
        self.fifo.clear(lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_is_that_of_the_pseudocode() {
        // RFC 8033 §4.2: probability, delay and old delay in milliseconds, and the new probability.
        let after = |probability, delay: f64, old: f64| {
            let mut controller = Controller { alpha: ALPHA, beta: BETA, probability, old_delay: old / 1e3 };
            controller.update(delay / 1e3, 0.015);
            controller.probability
        };
        let change = 0.125 * 0.010 + 1.25 * 0.005;
        for (probability, divisor) in [
            (0.0, 2048.0),
            (0.000_005, 512.0),
            (0.000_05, 128.0),
            (0.000_5, 32.0),
            (0.005, 8.0),
            (0.05, 2.0),
            (0.5, 1.0),
        ] {
            let expected = probability + change / divisor;
            assert!((after(probability, 25.0, 20.0) - expected).abs() < 1e-12, "{probability}");
        }
        assert!((after(0.5, 100.0, 20.0) - 0.52).abs() < 1e-12, "RFC 8033 §5.5: at most 2 % at once");
        assert!((after(0.5, 400.0, 20.0) - 0.52).abs() < 1e-12, "nor at a long delay");
        assert!((after(0.5, 0.0, 0.0) - (0.5 - 0.125 * 0.015) * 0.98).abs() < 1e-12, "it decays");
        assert!(after(0.000_01, 0.0, 20.0) == 0.0 && (after(0.99, 400.0, 400.0) - 1.0).abs() < 1e-12, "limits");
    }

    #[test]
    fn the_gains_follow_the_update_period() {
        // RFC 8033 §4.2: at half the period alpha is halved and beta grows by a quarter of alpha.
        let (alpha, beta) = gains(Span::from_micros(7_500));
        assert!((alpha - ALPHA / 2.0).abs() < 1e-12);
        assert!((beta - (BETA + ALPHA / 4.0)).abs() < 1e-12);
    }

    proptest::proptest! {
        #[test]
        fn a_longer_delay_raises_the_probability_at_every_period(
            micros in 1_000u64..=1_000_000,
            delay in 0.02f64..10.0,
            change in 0.001f64..0.02,
        ) {
            let (alpha, beta) = gains(Span::from_micros(micros));
            let mut controller = Controller { alpha, beta, probability: 0.05, old_delay: delay - change };
            controller.update(delay, 0.015 + alpha);
            let mut slower = Controller { alpha, beta, probability: 0.05, old_delay: delay };
            slower.update(delay, 0.015 + alpha);
            proptest::prop_assert!(controller.probability >= slower.probability, "{alpha}, {beta}");
            proptest::prop_assert!(beta >= BETA);
        }
    }

    #[test]
    fn a_queue_that_is_cleared_has_made_its_updates_before() {
        let packet = |id| {
            let (flow, user, slot) = (airpath_core::FlowId(0), airpath_core::UserId::new(0), airpath_core::Slot(0));
            Packet { id, size: 1_000, flow, user, ecn: airpath_core::Ecn::NotEct, slot }
        };
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        // After 100 ms the delay of the packet sent last is 10 ms. Calling the queue between then
        // and the end must not matter.
        let probability = |polls: &[u64], clears: bool| {
            let limits = Limits::of(&super::super::Queue::default());
            let mut pie =
                Pie::new(&Settings::default(), limits, Span::ZERO, airpath_core::Seed::new(1).stream("queue"));
            (0..10).for_each(|id| assert_eq!(pie.enqueue(at(0), packet(id), false), Entrance::Enqueued));
            pie.dequeue(at(40));
            polls.iter().for_each(|millis| pie.advance(at(*millis)));
            if clears {
                pie.clear(at(100), |_| {});
            } else {
                (0..9).for_each(|_| assert!(pie.drop_head(at(100)).is_some()));
            }
            pie.advance(at(200));
            pie.controller.probability
        };
        for clears in [false, true] {
            assert!((probability(&[], clears) - probability(&[50, 70, 99], clears)).abs() < 1e-15);
        }
    }
}
