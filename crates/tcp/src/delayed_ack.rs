//! When to acknowledge (RFC 9293 §3.8.6.3, RFC 5681 §4.2).

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use crate::config::DelayedAck;

/// State of delayed acknowledgement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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
    /// Sub-MSS segments that arrived since the last acknowledgement, where the delay adapts.
    small: u32,
}

/// This end's estimate of the round trip.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// The retransmission timeout.
    pub timeout: Span,
    /// The smoothed round trip; none before the first measurement.
    pub smoothed: Option<Span>,
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
            small: 0,
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

    /// The delay has expired: the two ends do not alternate, or the next segment comes later. An
    /// adaptive delay is then twice as long (`tcp_delack_timer_handler` of Linux). `timeout` is the
    /// retransmission timeout of this end.
    pub fn on_timeout(&mut self, timeout: Span, config: &DelayedAck) {
        self.due = true;
        let alternates = std::mem::take(&mut self.interactive);
        if config.is_adaptive() {
            self.wait = if alternates { config.minimum } else { self.wait.saturating_mul(2).min(timeout) };
        }
    }

    /// A segment arrived again: the sender may be in slow start. As in Linux
    /// (`tcp_enter_quickack_mode`), an adaptive delay starts again.
    pub fn on_duplicate(&mut self, config: &DelayedAck) {
        if config.is_adaptive() {
            self.quick = self.quick.max(config.quick);
            self.interactive = false;
            self.wait = config.minimum;
        }
    }

    /// The application has read everything. As in Linux (`tcp_cleanup_rbuf`), a sub-MSS segment is
    /// then acknowledged, unless the two ends alternate; a second one always is.
    #[inline]
    pub const fn on_read(&mut self) {
        self.due |= self.small > self.interactive as u32;
    }

    /// The peer's FIN arrived in order, before this end has closed its stream. As in Linux
    /// (`tcp_fin`), its acknowledgement waits for this end's own FIN, unless more than a full
    /// segment is unacknowledged (`more`).
    pub const fn on_fin(&mut self, more: bool) {
        self.interactive = true;
        self.due |= more;
    }

    /// An acknowledgement was sent, alone or with data.
    #[inline]
    pub const fn on_sent(&mut self) {
        self.due = false;
        self.segments = 0;
        self.small = 0;
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

    /// Consecutive segments arrived in order at once, full-sized or not.
    #[inline]
    pub fn on_arrival(
        &mut self,
        now: Instant,
        segments: u32,
        full: bool,
        estimate: Estimate,
        config: &DelayedAck,
    ) -> Schedule {
        let adaptive = config.is_adaptive();
        if adaptive {
            self.adapt(now, estimate.timeout, config);
            self.small += u32::from(!full);
        }
        if full || !config.full_sized {
            self.segments += segments;
        }
        let quick = self.quick > 0 && !self.interactive;
        if quick {
            self.quick = self.quick.saturating_sub(segments);
        }
        if quick || self.segments >= config.every {
            self.due = true;
            return Schedule::Now;
        }
        Schedule::After(if adaptive { self.delay(estimate.smoothed, config) } else { config.timeout })
    }

    /// When to acknowledge a FIN without payload, if the delay adapts: immediately before the first
    /// payload.
    pub fn schedule_fin(&mut self, estimate: Estimate, config: &DelayedAck) -> Schedule {
        self.due |= self.wait.is_zero();
        if self.due { Schedule::Now } else { Schedule::After(self.delay(estimate.smoothed, config)) }
    }

    /// The adaptive delay: at most a round trip, as in Linux (`tcp_send_delayed_ack`).
    fn delay(&self, round_trip: Option<Span>, config: &DelayedAck) -> Span {
        let most = round_trip.map_or(config.timeout, |it| it.clamp(config.minimum, config.timeout));
        self.wait.clamp(config.minimum, most)
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
    /// A retransmission timeout of 300 ms, and no measured round trip.
    const ESTIMATE: Estimate = Estimate { timeout: Span::from_millis(300), smoothed: None };

    #[test]
    fn every_second_segment() {
        let mut acks = AckSchedule::new(&CONFIG);
        for _ in 0..3 {
            assert_eq!(acks.on_arrival(Instant::ZERO, 1, true, ESTIMATE, &CONFIG), Schedule::After(MILLIS_200));
            assert_eq!(acks.on_arrival(Instant::ZERO, 1, true, ESTIMATE, &CONFIG), Schedule::Now);
            acks.on_sent();
        }
    }

    #[test]
    fn merged_segments_count_one_by_one() {
        let mut acks = AckSchedule::new(&CONFIG);
        assert_eq!(acks.on_arrival(Instant::ZERO, 2, true, ESTIMATE, &CONFIG), Schedule::Now);
        let mut acks = AckSchedule::new(&DelayedAck { quick: 3, ..CONFIG });
        assert_eq!(acks.on_arrival(Instant::ZERO, 45, true, ESTIMATE, &CONFIG), Schedule::Now);
        acks.on_sent();
        let wait = acks.on_arrival(Instant::ZERO, 1, true, ESTIMATE, &CONFIG);
        assert_eq!(wait, Schedule::After(MILLIS_200), "no quick acknowledgement is left");
    }

    #[test]
    fn small_segments_need_not_count() {
        let config = DelayedAck { full_sized: true, ..CONFIG };
        let mut acks = AckSchedule::new(&config);
        for _ in 0..9 {
            assert_ne!(acks.on_arrival(Instant::ZERO, 1, false, ESTIMATE, &config), Schedule::Now);
        }
    }

    #[test]
    fn quick_while_the_window_grows() {
        let mut acks = AckSchedule::new(&CONFIG);
        for _ in 0..3 {
            acks.on_growth();
            assert_eq!(acks.on_arrival(Instant::ZERO, 1, true, ESTIMATE, &CONFIG), Schedule::Now);
            acks.on_sent();
        }
        assert_eq!(acks.on_arrival(Instant::ZERO, 1, true, ESTIMATE, &CONFIG), Schedule::After(MILLIS_200));
    }

    #[test]
    fn quick_at_the_start() {
        let config = DelayedAck { quick: 3, minimum: MILLIS(40), ..CONFIG };
        let mut acks = AckSchedule::new(&config);
        let mut now = Instant::ZERO;
        let mut arrive = |gap| {
            now += MILLIS(gap);
            let schedule = acks.on_arrival(now, 1, true, ESTIMATE, &config);
            if schedule == Schedule::Now {
                acks.on_sent();
            }
            schedule
        };
        assert_eq!([arrive(1), arrive(1), arrive(1)], [Schedule::Now; 3]);
        assert_eq!([arrive(1), arrive(1)], [Schedule::After(MILLIS(40)), Schedule::Now]);
        assert_eq!(arrive(400), Schedule::Now, "quick again after a pause");
    }

    #[test]
    fn the_delay_follows_the_arrivals() {
        // tcp_event_data_recv of Linux, with a minimum of 40 ms and a retransmission timeout of 300
        // ms. Each delay is that after the arrivals with these gaps, in milliseconds.
        let config = DelayedAck { minimum: MILLIS(40), every: 100, ..CONFIG };
        let delays = |gaps: &[u64]| {
            let mut acks = AckSchedule::new(&config);
            let mut now = Instant::ZERO + MILLIS(10);
            let mut delay = |gap: &u64| {
                now += MILLIS(*gap);
                match acks.on_arrival(now, 1, true, ESTIMATE, &config) {
                    Schedule::After(delay) => delay,
                    Schedule::Now => panic!("an acknowledgement is due"),
                }
            };
            gaps.iter().map(|gap| delay(gap).as_nanos() / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!(delays(&[0, 30, 30]), [40, 50, 55], "half of the last, and the gap");
        // A gap of half the minimum or less counts as that.
        assert_eq!(delays(&[0, 30, 20, 0]), [40, 50, 45, 42]);
        assert_eq!(delays(&[0, 30, 21]), [40, 50, 46]);
        // A gap as long as the delay, or longer, changes nothing.
        assert_eq!(delays(&[0, 30, 50, 300]), [40, 50, 50, 50]);
    }

    #[test]
    fn the_delay_stays_within_its_bounds() {
        let config = DelayedAck { minimum: MILLIS(40), timeout: MILLIS(45), every: 100, ..CONFIG };
        let mut acks = AckSchedule::new(&config);
        let mut now = Instant::ZERO;
        let mut arrive = |gap| {
            now += MILLIS(gap);
            acks.on_arrival(now, 1, true, ESTIMATE, &config)
        };
        assert_eq!([arrive(0), arrive(39), arrive(50)], [40, 45, 45].map(|delay| Schedule::After(MILLIS(delay))));
    }

    #[test]
    fn who_answers_waits_for_data_even_if_quick() {
        let config = DelayedAck { quick: 100, minimum: MILLIS(40), every: 100, ..CONFIG };
        let start = Instant::ZERO + MILLIS(100);
        let second = |answered_after: Option<u64>| {
            let mut acks = AckSchedule::new(&config);
            assert_eq!(acks.on_arrival(start, 1, true, ESTIMATE, &config), Schedule::Now);
            acks.on_sent();
            if let Some(after) = answered_after {
                acks.on_data_sent(start + MILLIS(after));
            }
            acks
        };
        let arrive = |acks: &mut AckSchedule| acks.on_arrival(start + MILLIS(60), 1, true, ESTIMATE, &config);
        assert_eq!(arrive(&mut second(None)), Schedule::Now);
        assert_eq!(arrive(&mut second(Some(39))), Schedule::After(MILLIS(40)));
        assert_eq!(arrive(&mut second(Some(40))), Schedule::Now, "that was no answer");
        let mut ended = second(Some(1));
        ended.on_timeout(MILLIS(300), &config);
        assert!(ended.is_due());
        assert_eq!(arrive(&mut ended), Schedule::Now, "no data came in time");
        // Before the first arrival there is nothing to answer.
        let mut first = AckSchedule::new(&config);
        first.on_data_sent(Instant::ZERO);
        assert_eq!(arrive(&mut first), Schedule::Now);
    }

    #[test]
    fn a_delay_that_expires_doubles() {
        // tcp_delack_timer_handler of Linux, with a retransmission timeout of 300 ms.
        let config = DelayedAck { minimum: MILLIS(40), timeout: MILLIS(1000), every: 100, ..CONFIG };
        let mut acks = AckSchedule::new(&config);
        let mut now = Instant::ZERO;
        let mut arrive = |acks: &mut AckSchedule, round_trip| {
            now += MILLIS(500);
            acks.on_arrival(now, 1, true, Estimate { smoothed: round_trip, ..ESTIMATE }, &config)
        };
        for delay in [40, 80, 160, 300, 300] {
            assert_eq!(arrive(&mut acks, None), Schedule::After(MILLIS(delay)));
            acks.on_timeout(MILLIS(300), &config);
            acks.on_sent();
            // The gap above is a pause: the sender may be in slow start.
            acks.quick = 0;
        }
        // tcp_send_delayed_ack: at most a round trip, and not less than the minimum.
        assert_eq!(arrive(&mut acks, Some(MILLIS(90))), Schedule::After(MILLIS(90)));
        assert_eq!(arrive(&mut acks, Some(MILLIS(9))), Schedule::After(MILLIS(40)));
        acks.interactive = true;
        acks.on_timeout(MILLIS(300), &config);
        assert_eq!(arrive(&mut acks, None), Schedule::After(MILLIS(40)), "they alternated: it starts again");
    }

    #[test]
    fn a_duplicate_starts_again() {
        let config = DelayedAck { quick: 2, minimum: MILLIS(40), every: 100, ..CONFIG };
        let mut acks = AckSchedule::new(&config);
        let mut arrive = |duplicate: bool| {
            if duplicate {
                acks.wait = MILLIS(160);
                acks.interactive = true;
                acks.on_duplicate(&config);
            }
            acks.on_arrival(Instant::ZERO, 1, true, ESTIMATE, &config)
        };
        let quick = [Schedule::Now, Schedule::Now, Schedule::After(MILLIS(40))];
        assert_eq!([false; 3].map(&mut arrive), quick);
        assert_eq!([true, false, false].map(&mut arrive), quick);
    }

    #[test]
    fn small_segments_are_acknowledged_when_they_are_read() {
        // tcp_cleanup_rbuf of Linux.
        let config = DelayedAck { minimum: MILLIS(40), full_sized: true, ..CONFIG };
        let due_after = |acks: &mut AckSchedule, full| {
            acks.on_arrival(Instant::ZERO, 1, full, ESTIMATE, &config);
            acks.on_read();
            std::mem::take(&mut acks.due)
        };
        let mut acks = AckSchedule::new(&config);
        assert!(!due_after(&mut acks, true), "a full-sized segment waits for a second one");
        assert!(due_after(&mut acks, false));
        acks.on_sent();
        acks.interactive = true;
        assert!(!due_after(&mut acks, false), "the answer will carry the acknowledgement");
        assert!(due_after(&mut acks, false), "a second one does not wait");
        acks.on_sent();
        acks.on_read();
        assert!(!acks.due, "nothing has arrived since");
    }
}
