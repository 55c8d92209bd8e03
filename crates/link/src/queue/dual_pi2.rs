//! DualPI2, the coupled AQM of two queues (RFC 9332 appendix A): scalable traffic waits in the L
//! queue, all other in the C queue, and one controller sets the probabilities of both.

use airpath_core::{Ecn, Instant, Packet, Span};

use super::fifo::Fifo;
use super::{Limits, MTU, Updates};

/// The parameters of DualPI2.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The queueing delay of the C queue to which the controller controls. `None`: 15 ms, or two
    /// TTIs of the bearer if they are longer.
    pub target: Option<Span>,
    /// The time between updates of the controller. Default: 16 ms.
    pub update: Span,
    /// The sojourn time above which all packets of the L queue are marked. `None`: 1 ms, or two
    /// TTIs of the bearer if they are longer.
    pub step: Option<Span>,
    /// The ratio of the L queue's probability to the square root of the C queue's (`k`, RFC 9332
    /// §2.1). Default: 2.
    pub coupling: f64,
    /// The share of the rate that the C queue has while both are backlogged, 0 to 1 (RFC 9332
    /// §4.2.2). Default: 0.1.
    pub classic_share: f64,
}

impl Default for Settings {
    // `tc-dualpi2` of iproute2.
    fn default() -> Self {
        Self { target: None, update: UPDATE, step: None, coupling: 2.0, classic_share: 0.1 }
    }
}

/// RFC 9332 appendix A.1.
const TARGET: Span = Span::from_millis(15);

/// `Tupdate` of the gains below.
const UPDATE: Span = Span::from_millis(16);

/// The step threshold of `tc-dualpi2`.
const STEP: Span = Span::from_millis(1);

/// Gains of the controller at an update period of 16 ms, in Hz (`tc-dualpi2`).
const ALPHA: f64 = 0.16;
const BETA: f64 = 3.2;

/// The two queues and their controller.
#[derive(Clone, Debug)]
pub(super) struct DualPi2 {
    /// Seconds.
    target: f64,
    step: Span,
    coupling: f64,
    /// Bytes of the L queue in the share of the C queue, and the opposite: the weights of the
    /// scheduler.
    weights: [f64; 2],
    limits: Limits,
    scalable: Branch,
    classic: Branch,
    updates: Updates,
    /// Gains in Hz.
    alpha: f64,
    beta: f64,
    /// The base probability p' of the controller.
    probability: f64,
    /// Delay in seconds at the last update.
    old_delay: f64,
    /// The C queue sends next if it is positive, as `c_protection_credit` in Linux.
    credit: f64,
    /// When the packet arrived that was dequeued last.
    last_entered: Instant,
}

/// One of the queues, and the sum of its probabilities since the last signal.
#[derive(Clone, Debug, Default)]
struct Branch {
    fifo: Fifo,
    count: f64,
}

impl Branch {
    /// Whether to signal with this packet: with even spacing instead of at random (`recur()` in RFC
    /// 9332 appendix A.1).
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let signals = self.count > 1.0;
        if signals {
            self.count -= 1.0;
        }
        signals
    }
}

impl DualPi2 {
    pub fn new(settings: &Settings, limits: Limits, floor: Span) -> Self {
        let Settings { target, update, step, coupling, classic_share } = *settings;
        let weights = [classic_share, 1.0 - classic_share];
        Self {
            target: target.unwrap_or(TARGET.max(floor)).as_secs_f64(),
            step: step.unwrap_or(STEP.max(floor)),
            coupling,
            weights,
            limits,
            scalable: Branch::default(),
            classic: Branch::default(),
            updates: Updates::new(update),
            alpha: ALPHA * (update.as_secs_f64() / UPDATE.as_secs_f64()),
            beta: BETA,
            probability: 0.0,
            old_delay: 0.0,
            credit: initial_credit(weights),
            last_entered: Instant::ZERO,
        }
    }

    fn packets(&self) -> usize {
        self.scalable.fifo.len() + self.classic.fifo.len()
    }

    fn bytes(&self) -> u64 {
        self.scalable.fifo.bytes() + self.classic.fifo.bytes()
    }

    pub fn backlog(&self) -> (u32, u64) {
        (self.packets() as u32, self.bytes())
    }

    /// Makes the updates up to `now`.
    fn advance(&mut self, now: Instant) {
        while let Some(at) = self.updates.next(now) {
            // As in Linux, the longer delay of the two queues.
            let delay = self.classic.fifo.delay(at).max(self.scalable.fifo.delay(at)).as_secs_f64();
            self.update(delay);
            if self.packets() == 0 && self.probability == 0.0 && self.old_delay == 0.0 {
                self.updates.skip(now);
            }
        }
    }

    /// `dualpi2_update()` of RFC 9332 appendix A.1.
    fn update(&mut self, delay: f64) {
        let change = self.alpha * (delay - self.target) + self.beta * (delay - self.old_delay);
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        self.old_delay = delay;
    }

    /// Enqueues a packet by its ECN field: ECT(1) and CE into the L queue (RFC 9331 §5.1). Returns
    /// false if there is no room; an `is_admitted` packet always enters.
    pub fn enqueue(&mut self, now: Instant, packet: Packet, is_admitted: bool) -> bool {
        self.advance(now);
        if !is_admitted && !self.limits.admit(self.packets(), self.bytes(), packet.size) {
            return false;
        }
        let branch = match packet.ecn {
            Ecn::Ect1 | Ecn::Ce => &mut self.scalable,
            Ecn::NotEct | Ecn::Ect0 => &mut self.classic,
        };
        branch.fifo.push(now, packet);
        true
    }

    /// The packet to send at `now`, possibly marked (RFC 9332 appendix A.2).
    pub fn dequeue(&mut self, now: Instant, mut dropped: impl FnMut(Packet)) -> Option<Packet> {
        self.advance(now);
        loop {
            let is_scalable = self.serves_scalable();
            let entry = if is_scalable { self.scalable.fifo.pop()? } else { self.classic.fifo.pop()? };
            self.last_entered = entry.entered;
            // As in Linux: less than two packets behind this one are no standing queue.
            let is_short = self.bytes() < 2 * u64::from(MTU);
            let base = if is_short { 0.0 } else { self.probability };
            let coupled = base * self.coupling;
            let squared = base * base;
            // Where the L queue's probability would exceed 1, both queues drop.
            let is_overloaded = coupled > 1.0;
            if is_scalable {
                if is_overloaded && self.scalable.recur(squared) {
                    dropped(entry.packet);
                    continue;
                }
                let is_above = now.since(entry.entered) > self.step;
                let marks = is_overloaded || is_above || self.scalable.recur(coupled);
                self.sent(entry.packet.size, true);
                return Some(if marks { super::marked(entry.packet) } else { entry.packet });
            }
            let packet = entry.packet;
            let signals = self.classic.recur(squared);
            if signals && (is_overloaded || !packet.ecn.is_capable()) {
                dropped(packet);
                continue;
            }
            self.sent(packet.size, false);
            return Some(if signals { super::marked(packet) } else { packet });
        }
    }

    /// Whether the L queue is next: it has priority, except for the share of the C queue.
    fn serves_scalable(&self) -> bool {
        self.scalable.fifo.len() > 0 && (self.classic.fifo.len() == 0 || self.credit <= 0.0)
    }

    /// Updates the credit of the C queue, as Linux: it is kept while one queue is empty, and is set
    /// to its initial value when both are.
    fn sent(&mut self, bytes: u32, is_scalable: bool) {
        let [classic_share, scalable_share] = self.weights;
        self.credit = match (is_scalable, self.scalable.fifo.len() > 0, self.classic.fifo.len() > 0) {
            (_, false, false) => initial_credit(self.weights),
            (true, _, true) => self.credit + f64::from(bytes) * classic_share,
            (false, true, _) => self.credit - f64::from(bytes) * scalable_share,
            _ => self.credit,
        };
    }

    /// The branch whose head has waited longest.
    fn oldest(&mut self) -> &mut Branch {
        match (self.scalable.fifo.head_entered(), self.classic.fifo.head_entered()) {
            (Some(scalable), Some(classic)) if classic < scalable => &mut self.classic,
            (None, _) => &mut self.classic,
            _ => &mut self.scalable,
        }
    }

    pub const fn last_entered(&self) -> Instant {
        self.last_entered
    }

    pub fn head_entered(&self) -> Option<Instant> {
        [&self.scalable, &self.classic].into_iter().filter_map(|branch| branch.fifo.head_entered()).min()
    }

    pub fn drop_head(&mut self, now: Instant) -> Option<Packet> {
        self.advance(now);
        self.oldest().fifo.pop().map(|entry| entry.packet)
    }

    pub fn clear(&mut self, now: Instant, mut lost: impl FnMut(Packet)) {
        self.advance(now);
        self.scalable.fifo.clear(&mut lost);
        self.classic.fifo.clear(lost);
        self.credit = initial_credit(self.weights);
    }
}

/// The credit of the C queue after both queues were empty: as in Linux, a packet in the difference
/// of the weights, so that the queue with the larger share begins.
fn initial_credit([classic_share, scalable_share]: [f64; 2]) -> f64 {
    f64::from(MTU) * (classic_share - scalable_share)
}

#[cfg(test)]
mod tests {
    use airpath_core::{FlowId, Slot, UserId};

    use super::*;
    use crate::queue::Queue;

    fn queue(probability: f64) -> DualPi2 {
        let mut queue = DualPi2::new(&Settings::default(), Limits::of(&Queue::default()), Span::ZERO);
        queue.probability = probability;
        for id in 0..20_000 {
            let ecn = [Ecn::Ect1, Ecn::Ect0, Ecn::Ect1, Ecn::NotEct][id as usize % 4];
            let packet = Packet { id, size: 1000, flow: FlowId(0), user: UserId::new(0), ecn, slot: Slot(0) };
            assert!(queue.enqueue(Instant::ZERO, packet, false));
        }
        queue
    }

    /// Signals by kind: marks of the L queue, marks of the C queue, drops of ECN-capable packets,
    /// and of others. All packets are dequeued before the first update of the controller.
    fn signals(probability: f64) -> [usize; 4] {
        let mut queue = queue(probability);
        let mut counts = [0; 4];
        let mut dropped = Vec::new();
        while let Some(packet) = queue.dequeue(Instant::ZERO, |packet| dropped.push(packet.ecn)) {
            if packet.ecn == Ecn::Ce {
                counts[packet.id as usize % 2] += 1;
            }
        }
        counts[2] = dropped.iter().filter(|ecn| ecn.is_capable()).count();
        counts[3] = dropped.len() - counts[2];
        counts
    }

    #[test]
    fn the_probabilities_are_coupled_by_the_square() {
        // RFC 9332 §2.1: p_C = p'^2 and p_CL = k p', here of 10,000 packets in each queue. Those of
        // the C queue without ECN are dropped.
        let [scalable, marked, capable, other] = signals(0.3);
        assert!(scalable.abs_diff(6_000) <= 2, "{scalable}");
        assert!((marked + other).abs_diff(900) <= 2 && capable == 0, "{marked} + {other}, {capable}");
        assert_eq!(signals(0.0), [0; 4]);
    }

    #[test]
    fn both_queues_drop_in_overload() {
        // RFC 9332 appendix A.2: with k p' above 1 all packets of the L queue are marked, and p'^2
        // of both queues are dropped, whether they are ECN-capable or not.
        let [scalable, marked, capable, other] = signals(0.8);
        assert_eq!(marked, 0);
        assert!(scalable.abs_diff(3_600) <= 2, "{scalable}");
        assert!((capable + other).abs_diff(12_800) <= 4, "{capable} + {other}");
    }

    #[test]
    fn the_controller_is_that_of_the_pseudocode() {
        // p' += alpha (delay - target) + beta (delay - old delay), with the gains of `tc-dualpi2`.
        let mut queue = queue(0.1);
        queue.old_delay = 0.02;
        queue.update(0.025);
        assert!((queue.probability - (0.1 + 0.16 * 0.010 + 3.2 * 0.005)).abs() < 1e-12, "{}", queue.probability);
    }
}
