//! When to acknowledge (RFC 9293 §3.8.6.3, RFC 5681 §4.2).

use airpath_core::{Instant, Span};

use crate::config::DelayedAck;

/// State of delayed acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct AckSchedule {
    /// An acknowledgement is due now.
    due: bool,
    /// Segments, or full-sized segments, that arrived since the last acknowledgement.
    segments: u32,
    /// Segments that will still be acknowledged immediately.
    quick: u32,
    /// Current delay, where it adapts to the arrivals; zero before the first.
    wait: Span,
    last_arrival: Instant,
    /// Whether data flows in both directions alternately: acknowledgements then wait for data to
    /// piggyback on, even in quick mode.
    interactive: bool,
}

/// When to acknowledge an arrival in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Immediately.
    Now,
    /// Delayed by at most this time.
    After(Span),
}

impl AckSchedule {
    pub const fn new(config: &DelayedAck) -> Self {
        Self {
            due: false,
            segments: 0,
            quick: config.quick,
            wait: Span::ZERO,
            last_arrival: Instant::ZERO,
            interactive: false,
        }
    }

    /// Whether an acknowledgement must be sent now.
    #[inline]
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// An acknowledgement must be sent now.
    #[inline]
    pub const fn demand(&mut self) {
        self.due = true;
    }

    /// The delay has expired without data to piggyback on: the two ends do not alternate.
    pub const fn on_timeout(&mut self) {
        self.due = true;
        self.interactive = false;
    }

    /// An acknowledgement was sent, alone or with data.
    #[inline]
    pub const fn on_sent(&mut self) {
        self.due = false;
        self.segments = 0;
    }

    /// The window grows with the arriving segment: acknowledge it immediately.
    #[inline]
    pub const fn on_growth(&mut self) {
        self.quick |= 1;
    }

    /// Data was sent. If it answers the last arrival, the two ends alternate.
    #[inline]
    pub fn on_data_sent(&mut self, now: Instant) {
        if !self.wait.is_zero() && now.since(self.last_arrival) < self.wait {
            self.interactive = true;
        }
    }

    /// A segment arrived in order, full-sized or not. `timeout` is the retransmission timeout of
    /// this end.
    #[inline]
    pub fn on_arrival(&mut self, now: Instant, full: bool, timeout: Span, config: &DelayedAck) -> Schedule {
        let adaptive = config.minimum < config.timeout;
        if adaptive {
            self.adapt(now, timeout, config);
        }
        if full || !config.full_sized {
            self.segments += 1;
        }
        let quick = self.quick > 0 && !self.interactive;
        if quick {
            self.quick -= 1;
        }
        if quick || self.segments >= config.every {
            self.due = true;
            return Schedule::Now;
        }
        Schedule::After(if adaptive { self.wait.clamp(config.minimum, config.timeout) } else { config.timeout })
    }

    /// Adapts the delay to the inter-arrival times, as `tcp_event_data_recv` in Linux does.
    fn adapt(&mut self, now: Instant, timeout: Span, config: &DelayedAck) {
        let gap = now.since(self.last_arrival);
        let floor = config.minimum;
        if self.wait.is_zero() {
            self.wait = floor;
        } else if gap <= floor / 2 {
            self.wait = self.wait / 2 + floor / 2;
        } else if gap < self.wait {
            self.wait = (self.wait / 2 + gap).min(timeout);
        } else if gap > timeout {
            // After a pause the sender is in slow start again.
            self.quick = config.quick;
        }
        self.last_arrival = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLIS: fn(u64) -> Span = Span::from_millis;
    const CONFIG: DelayedAck = DelayedAck {
        timeout: MILLIS_200,
        minimum: MILLIS_200,
        every: 2,
        full_sized: false,
        quick: 0,
        quick_growth: false,
    };
    const MILLIS_200: Span = Span::from_millis(200);

    #[test]
    fn every_second_segment() {
        let mut acks = AckSchedule::new(&CONFIG);
        for _ in 0..3 {
            assert_eq!(acks.on_arrival(Instant::ZERO, true, MILLIS(1000), &CONFIG), Schedule::After(MILLIS_200));
            assert_eq!(acks.on_arrival(Instant::ZERO, true, MILLIS(1000), &CONFIG), Schedule::Now);
            acks.on_sent();
        }
    }

    #[test]
    fn small_segments_need_not_count() {
        let config = DelayedAck { full_sized: true, ..CONFIG };
        let mut acks = AckSchedule::new(&config);
        for _ in 0..9 {
            assert_ne!(acks.on_arrival(Instant::ZERO, false, MILLIS(1000), &config), Schedule::Now);
        }
    }

    #[test]
    fn quick_while_the_window_grows() {
        let mut acks = AckSchedule::new(&CONFIG);
        for _ in 0..3 {
            acks.on_growth();
            assert_eq!(acks.on_arrival(Instant::ZERO, true, MILLIS(1000), &CONFIG), Schedule::Now);
            acks.on_sent();
        }
        assert_eq!(acks.on_arrival(Instant::ZERO, true, MILLIS(1000), &CONFIG), Schedule::After(MILLIS_200));
    }

    #[test]
    fn quick_at_the_start() {
        let config = DelayedAck { quick: 3, minimum: MILLIS(40), ..CONFIG };
        let mut acks = AckSchedule::new(&config);
        let mut now = Instant::ZERO;
        let mut arrive = |gap| {
            now += MILLIS(gap);
            let schedule = acks.on_arrival(now, true, MILLIS(300), &config);
            if schedule == Schedule::Now {
                acks.on_sent();
            }
            schedule
        };
        assert_eq!([arrive(1), arrive(1), arrive(1)], [Schedule::Now; 3]);
        assert_eq!([arrive(1), arrive(1)], [Schedule::After(MILLIS(40)), Schedule::Now]);
        assert_eq!(arrive(400), Schedule::Now, "quick again after a pause");
    }
}
