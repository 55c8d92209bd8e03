//! COBALT, the queue management of CAKE: CoDel (RFC 8289) whose count of signals decays by its own
//! schedule, beside BLUE, which drops at random from a flow that overflows the queue and does not
//! respond to CoDel.
//!
//! Feng, Kandlur, Saha and Shin 1999 (BLUE); Høiland-Jørgensen, Täht and Morton 2018 (CAKE). The
//! rules and constants are those of `sch_cake` in Linux.

use airpath_core::{Bitrate, Bytes, Instant, Packet, RandomStream, Span};

use super::MTU;
use super::codel::{Settings, mark, spacing};
use super::fifo::{Entry, Fifo};

/// BLUE's steps of the probability: up when the queue overflows, down when it is empty. At most one
/// in the time of the target.
const UP: f64 = 1.0 / 256.0;
const DOWN: f64 = 1.0 / 4_096.0;

/// The default interval.
const INTERVAL: Span = Span::from_millis(100);

/// The parameters of the control loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    /// The acceptable standing sojourn time.
    target: Span,
    interval: Span,
    ecn: bool,
    /// Time of four packets at the rate of the link: shorter sojourn times are no standing queue.
    /// Zero without a rate.
    four_packets: Span,
}

impl Law {
    /// The parameters of a link with this rate, or of a bearer that cannot keep sojourn times below
    /// `floor`. Default targets are not shorter than the floor and the time of 1.5 packets; default
    /// intervals grow with them.
    pub fn new(target: Option<Span>, interval: Option<Span>, ecn: bool, floor: Span, rate: Option<Bitrate>) -> Self {
        let time_of =
            |halves: u32| rate.map_or(Span::ZERO, |rate| rate.time_for(Bytes::new((halves * MTU / 2).into())));
        let raised = Settings::TARGET.max(floor).max(time_of(3));
        let raise = if target.is_none() { raised.saturating_sub(Settings::TARGET) } else { Span::ZERO };
        let target = target.unwrap_or(raised);
        let interval = interval.unwrap_or((INTERVAL + raise).max(target.saturating_mul(2)));
        Self { target, interval, ecn, four_packets: time_of(8) }
    }
}

/// The state of one queue.
#[derive(Clone, Debug)]
pub(super) struct Cobalt {
    /// Signals, drops or marks, that have not decayed; their rate grows with the square root.
    count: u32,
    /// Whether the sojourn time is above the target.
    is_above: bool,
    /// Time of the next signal, or of the next decay of `count`. Without signals: when the state is
    /// forgotten.
    next: Instant,
    /// BLUE's probability of a drop.
    probability: f64,
    /// Time of its last change.
    changed: Option<Instant>,
    /// Since when the queue has no turn.
    left: Instant,
}

impl Default for Cobalt {
    fn default() -> Self {
        Self { count: 0, is_above: false, next: Instant::ZERO, probability: 0.0, changed: None, left: Instant::ZERO }
    }
}

impl Cobalt {
    /// The next packet of `fifo` to send at `now`, possibly marked; `dropped` is called for the
    /// packets dropped before it. The last packet of the queue is not dropped.
    pub fn dequeue(
        &mut self,
        law: &Law,
        fifo: &mut Fifo,
        now: Instant,
        stream: &mut RandomStream,
        mut dropped: impl FnMut(Packet),
    ) -> Option<Packet> {
        loop {
            let Entry { entered, packet } = fifo.pop()?;
            let signals = self.signals(law, now, now.since(entered));
            let marked = if signals { mark(law.ecn, packet) } else { None };
            // BLUE drops packets of ECN-capable flows too: a flow that needs it does not respond.
            let drops = self.blue_drops(stream) || (signals && marked.is_none());
            self.settle(law, now, drops);
            if !drops || fifo.len() == 0 {
                return Some(marked.unwrap_or(packet));
            }
            dropped(packet);
        }
    }

    /// Whether a packet that has waited for `sojourn` is a signal to its flow. Without standing
    /// queue, the count decays by the schedule by which it grew.
    fn signals(&mut self, law: &Law, now: Instant, sojourn: Span) -> bool {
        let is_due = self.count > 0 && self.next <= now;
        let is_above = sojourn > law.target && sojourn > law.four_packets;
        if is_above && !self.is_above {
            self.next = now + spacing(law.interval, self.count);
        }
        self.is_above = is_above;
        if is_above {
            self.count = self.count.max(1);
        }
        let signals = is_due && is_above;
        if signals {
            self.count = self.count.saturating_add(1);
            self.next += spacing(law.interval, self.count);
        } else {
            self.decay(law, now);
        }
        signals
    }

    /// Reduces the count as often as it was due up to `now`.
    fn decay(&mut self, law: &Law, now: Instant) {
        while self.count > 0 && self.next <= now {
            self.count -= 1;
            self.next += spacing(law.interval, self.count);
        }
    }

    fn blue_drops(&self, stream: &mut RandomStream) -> bool {
        self.probability > 0.0 && stream.uniform() < self.probability
    }

    /// Ends the decision on one packet.
    fn settle(&mut self, law: &Law, now: Instant, drops: bool) {
        if self.count == 0 {
            self.next = now + law.interval;
        } else if !drops {
            // Marks that are overdue are not made up for.
            self.next = self.next.max(now);
        }
    }

    /// A packet of this queue was dropped at `now`, because the limit was exceeded.
    pub fn overflowed(&mut self, law: &Law, now: Instant) {
        if self.changed.is_none_or(|changed| now.since(changed) > law.target) {
            self.probability = (self.probability + UP).min(1.0);
            self.changed = Some(now);
        }
        self.is_above = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// The queue, which is empty, has lost its turn at `now`.
    pub const fn leave(&mut self, now: Instant) {
        self.is_above = false;
        self.left = now;
    }

    /// The queue gets a turn at `now`. What it was without one has decayed: the count by its
    /// schedule, the probability by a step in each time of the target.
    pub fn enter(&mut self, law: &Law, now: Instant) {
        self.decay(law, now);
        let Some(changed) = self.changed else { return };
        let first = self.left.max(changed + law.target);
        if self.probability == 0.0 || first > now {
            return;
        }
        let periods = now.since(first).as_nanos() / law.target.as_nanos();
        self.probability = (self.probability - DOWN * (periods + 1) as f64).max(0.0);
        self.changed = Some(first + law.target.saturating_mul(periods));
    }

    /// Whether a queue without a turn has forgotten its flow at `now`.
    pub fn is_at_rest(&self, law: &Law, now: Instant) -> bool {
        let mut at_rest = self.clone();
        at_rest.enter(law, now);
        at_rest.count == 0 && at_rest.probability == 0.0 && at_rest.next <= now
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Ecn, FlowId, Seed, Slot, UserId};

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    fn law(ecn: bool) -> Law {
        Law::new(None, None, ecn, Span::ZERO, None)
    }

    /// A queue whose packets have all come at the origin.
    fn waiting(packets: u64, ecn: Ecn) -> Fifo {
        let mut fifo = Fifo::default();
        for id in 0..packets {
            let (flow, user, slot) = (FlowId(0), UserId::new(0), Slot(0));
            fifo.push(Instant::ZERO, Packet { id, size: 1_000, flow, user, ecn, slot });
        }
        fifo
    }

    #[test]
    fn default_times_follow_the_rate_and_the_floor() {
        let times = |target: Option<u64>, interval: Option<u64>, floor: u64, bps: Option<u64>| {
            let [target, interval] = [target, interval].map(|millis| millis.map(Span::from_millis));
            let law = Law::new(target, interval, true, Span::from_millis(floor), bps.map(Bitrate::from_bps));
            [law.target, law.interval, law.four_packets].map(|span| span.as_nanos() / 1_000)
        };
        assert_eq!(times(None, None, 0, None), [5_000, 100_000, 0]);
        assert_eq!(times(None, None, 0, Some(100_000_000)), [5_000, 100_000, 484]);
        // A packet of 1,514 bytes takes 12.112 ms: 1.5 of them, and four.
        assert_eq!(times(None, None, 0, Some(1_000_000)), [18_168, 113_168, 48_448]);
        assert_eq!(times(None, None, 40, None), [40_000, 135_000, 0]);
        assert_eq!(times(None, None, 200, None), [200_000, 400_000, 0], "two targets");
        assert_eq!(times(Some(10), None, 40, Some(1_000_000)), [10_000, 100_000, 48_448], "a given target is kept");
        assert_eq!(times(Some(60), None, 0, None), [60_000, 120_000, 0]);
        assert_eq!(times(Some(60), Some(50), 0, None), [60_000, 50_000, 0], "a given interval is kept");
    }

    #[test]
    fn signals_follow_the_law_and_decay_by_it() {
        let (law, mut stream) = (law(false), Seed::new(1).stream("queue"));
        let (mut cobalt, mut fifo) = (Cobalt::default(), waiting(2_000, Ecn::NotEct));
        let mut drops = Vec::new();
        // One packet in each millisecond; those until 5 ms have not waited too long.
        for millis in 0..600 {
            cobalt.dequeue(&law, &mut fifo, at(millis), &mut stream, |_| drops.push(millis));
        }
        let mut due = 6.0 + 100.0;
        for (index, millis) in drops.iter().enumerate() {
            assert!((due..due + 1.0).contains(&(*millis as f64)), "drop {index} at {millis} ms instead of {due}");
            due += 100.0 / ((index + 2) as f64).sqrt();
        }
        let (count, next) = (cobalt.count, cobalt.next);
        assert_eq!(count as usize, drops.len() + 1);
        // Without standing queue, each step back takes the time that the step took.
        let short = Span::from_millis(1);
        assert!(!cobalt.signals(&law, next, short) && cobalt.count == count - 1);
        let after = next + spacing(law.interval, count - 1);
        assert!(!cobalt.signals(&law, after - Span::from_nanos(1), short) && cobalt.count == count - 1);
        assert!(!cobalt.signals(&law, after, short) && cobalt.count == count - 2);
        assert!(!cobalt.signals(&law, after + Span::from_secs(10), short) && cobalt.count == 0);
    }

    #[test]
    fn a_queue_above_the_target_again_is_signalled_at_the_rate_before() {
        let (law, long) = (law(false), Span::from_millis(20));
        let mut cobalt = Cobalt { count: 16, next: at(1_000), ..Cobalt::default() };
        // 100 ms / 4 after it is above the target, not 100 ms.
        assert!(!cobalt.signals(&law, at(990), long));
        assert!(!cobalt.signals(&law, at(1_014), long));
        assert!(cobalt.signals(&law, at(1_015), long));
    }

    #[test]
    fn the_last_packet_is_marked_but_not_dropped() {
        let sent = |packets, ecn, probability| {
            let (law, mut stream) = (law(true), Seed::new(1).stream("queue"));
            let mut cobalt = Cobalt { count: 1, is_above: true, next: at(10), probability, ..Cobalt::default() };
            let mut dropped = 0;
            let packet = cobalt.dequeue(&law, &mut waiting(packets, ecn), at(10), &mut stream, |_| dropped += 1);
            packet.map(|packet| (packet.id, packet.ecn, dropped))
        };
        assert_eq!(sent(2, Ecn::NotEct, 0.0), Some((1, Ecn::NotEct, 1)));
        assert_eq!(sent(1, Ecn::NotEct, 0.0), Some((0, Ecn::NotEct, 0)));
        assert_eq!(sent(2, Ecn::Ect0, 0.0), Some((0, Ecn::Ce, 0)));
        assert_eq!(sent(1, Ecn::Ect0, 0.0), Some((0, Ecn::Ce, 0)));
        // BLUE drops what CoDel marks.
        assert_eq!(sent(3, Ecn::Ect0, 1.0), Some((2, Ecn::Ect0, 2)));
    }

    #[test]
    fn the_probability_of_blue_grows_when_the_queue_overflows_and_falls_while_it_is_empty() {
        let law = law(true);
        let mut cobalt = Cobalt::default();
        // Ten overflows in 5 ms are one step, and one is more than 5 ms after the first.
        (0..10).for_each(|tenth| cobalt.overflowed(&law, at(100) + Span::from_micros(500 * tenth)));
        assert!((cobalt.probability - 1.0 / 256.0).abs() < 1e-15);
        cobalt.overflowed(&law, at(106));
        assert!((cobalt.probability - 2.0 / 256.0).abs() < 1e-15);
        // 32 steps down of 5 ms each, the first when it is empty.
        cobalt.leave(at(200));
        let after = |millis| {
            let mut cobalt = cobalt.clone();
            cobalt.enter(&law, at(millis));
            cobalt.probability * 4_096.0
        };
        assert_eq!([199, 200, 204, 205, 354, 355, 9_000].map(after), [32.0, 31.0, 31.0, 30.0, 1.0, 0.0, 0.0]);
        assert_eq!([354, 355].map(|millis| cobalt.is_at_rest(&law, at(millis))), [false, true]);
        // It is the same in parts.
        cobalt.enter(&law, at(222));
        cobalt.leave(at(223));
        cobalt.enter(&law, at(231));
        assert!((cobalt.probability * 4_096.0 - 25.0).abs() < 1e-9);
    }

    #[test]
    fn blue_drops_with_its_probability() {
        let mut stream = Seed::new(1).stream("queue");
        let cobalt = Cobalt { probability: 0.25, ..Cobalt::default() };
        let drops = (0..10_000).filter(|_| cobalt.blue_drops(&mut stream)).count();
        // The standard deviation is 43.
        assert!(drops.abs_diff(2_500) < 200, "{drops}");
    }

    #[test]
    fn overdue_marks_are_not_made_up_for() {
        let (law, mut stream) = (law(true), Seed::new(1).stream("queue"));
        let mut cobalt = Cobalt { count: 1, is_above: true, next: at(1_000), ..Cobalt::default() };
        let mut fifo = waiting(10, Ecn::Ect0);
        // After a pause of a second one packet is marked, and the next when its time has come.
        let mut marks = |millis| {
            let packet = cobalt.dequeue(&law, &mut fifo, at(millis), &mut stream, |_| {});
            packet.is_some_and(|packet| packet.ecn == Ecn::Ce)
        };
        assert_eq!([2_000, 2_000, 2_001, 2_050, 2_060].map(&mut marks), [true, true, false, false, true]);
    }
}
