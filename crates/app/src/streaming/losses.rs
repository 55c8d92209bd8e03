//! The packets that a client misses, and when it requests each again.

use std::collections::VecDeque;

use airpath_core::{Instant, Span};

/// Missing packets, in the order of their numbers.
#[derive(Clone, Debug)]
pub struct Losses {
    missing: VecDeque<Loss>,
    /// The earliest time at which one is due.
    least_due: Instant,
    /// Frames displayed when all of these losses were checked; `None` after a new loss.
    displayed: Option<usize>,
    timer: RepairTimer,
}

/// A missing packet.
#[derive(Clone, Copy, Debug)]
struct Loss {
    number: u32,
    /// When it is to be requested.
    due: Instant,
    /// Requests so far, and the time of the last.
    requests: u32,
    requested: Instant,
}

/// Time to wait for a repair, from the times that repairs have taken; as the retransmission timer
/// of TCP (RFC 6298 §2) with a lower minimum.
#[derive(Clone, Copy, Debug, Default)]
struct RepairTimer {
    /// Smoothed time and its variation, in seconds.
    smoothed: Option<(f64, f64)>,
}

impl RepairTimer {
    /// Before a measurement (§2.1).
    const INITIAL: f64 = 1.0;
    /// Least time between two requests, in seconds: the minimum of Linux' TCP (`TCP_RTO_MIN`).
    const MINIMUM: f64 = 0.2;
    /// Most doublings (§5.5 permits a limit).
    const MOST_DOUBLINGS: u32 = 6;

    fn add(&mut self, sample: Span) {
        let sample = sample.as_secs_f64();
        self.smoothed = Some(match self.smoothed {
            None => (sample, sample / 2.0),
            Some((mean, variation)) => {
                (mean + (sample - mean) / 8.0, variation + ((mean - sample).abs() - variation) / 4.0)
            }
        });
    }

    fn after(&self, requests: u32) -> Span {
        let timeout =
            self.smoothed.map_or(Self::INITIAL, |(mean, variation)| (mean + 4.0 * variation).max(Self::MINIMUM));
        let doublings = (requests - 1).min(Self::MOST_DOUBLINGS);
        Span::from_secs_f64(timeout * f64::from(1_u32 << doublings))
    }
}

impl Default for Losses {
    fn default() -> Self {
        Self {
            missing: VecDeque::new(),
            least_due: Instant::FAR_FUTURE,
            displayed: None,
            timer: RepairTimer::default(),
        }
    }
}

impl Losses {
    /// Packet `number` arrives after those up to `highest`: all between them are missing.
    pub fn detect(&mut self, now: Instant, highest: Option<u32>, number: u32) {
        let loss = |number| Loss { number, due: now, requests: 0, requested: now };
        let new = highest.map_or(0, |highest| highest + 1)..number;
        if !new.is_empty() {
            self.missing.extend(new.map(loss));
            self.least_due = self.least_due.min(now);
            self.displayed = None;
        }
    }

    /// Packet `number` arrives, perhaps as a retransmission.
    pub fn arrived(&mut self, now: Instant, number: u32, retransmission: bool) {
        let Ok(place) = self.missing.binary_search_by_key(&number, |loss| loss.number) else { return };
        let loss = self.missing.remove(place).expect("it was found there");
        if loss.due == self.least_due {
            self.update_least_due();
        }
        // With several requests it is not known which one was answered (Karn's algorithm, §3).
        if retransmission && loss.requests == 1 {
            self.timer.add(now.since(loss.requested));
        }
    }

    /// Removes the packets for which `is_due`: it is too late to repair them. Their frames are
    /// displayed in another order than they are sent, and this changes only with the number of
    /// frames `displayed`.
    pub fn forget(&mut self, displayed: usize, is_due: impl Fn(u32) -> bool) {
        if self.displayed.replace(displayed) == Some(displayed) || self.missing.is_empty() {
            return;
        }
        self.missing.retain(|loss| !is_due(loss.number));
        self.update_least_due();
    }

    fn update_least_due(&mut self) {
        self.least_due = self.missing.iter().map(|loss| loss.due).min().unwrap_or(Instant::FAR_FUTURE);
    }

    /// When the next packet is to be requested.
    pub fn due(&self) -> Option<Instant> {
        (self.least_due < Instant::FAR_FUTURE).then_some(self.least_due)
    }

    /// The packets that are to be requested now.
    pub fn pending(&self, now: Instant) -> impl Iterator<Item = u32> {
        self.missing.iter().filter(move |loss| loss.due <= now).map(|loss| loss.number)
    }

    /// The first `count` of the [pending](Self::pending) packets were requested. They are requested
    /// again later if `again`.
    pub fn reported(&mut self, now: Instant, count: usize, again: bool) {
        let Self { missing, timer, .. } = self;
        for loss in missing.iter_mut().filter(|loss| loss.due <= now).take(count) {
            loss.requests += 1;
            loss.requested = now;
            loss.due = if again { now + timer.after(loss.requests) } else { Instant::FAR_FUTURE };
        }
        self.update_least_due();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_missing_packet_is_requested_until_it_arrives_or_is_due() {
        let mut losses = Losses::default();
        losses.detect(at(0), None, 2);
        losses.detect(at(10), Some(2), 3);
        losses.detect(at(20), Some(3), 6);
        assert_eq!(losses.pending(at(20)).collect::<Vec<_>>(), [0, 1, 4, 5]);
        losses.reported(at(20), 3, true);
        assert_eq!((losses.due(), losses.pending(at(21)).collect::<Vec<_>>()), (Some(at(20)), vec![5]));
        losses.reported(at(21), 1, true);
        // The first measurement is 400 ms: the timer is then 400 + 4 · 200 ms, and doubles.
        losses.arrived(at(420), 1, true);
        assert_eq!(losses.due(), Some(at(1_020)), "the initial time-out of 1 s");
        losses.reported(at(1_021), 3, true);
        assert_eq!(losses.due(), Some(at(1_021 + 2_400)));
        losses.forget(1, |number| number < 5);
        assert_eq!(losses.pending(at(9_000)).collect::<Vec<_>>(), [5]);
        losses.arrived(at(2_000), 5, false);
        assert_eq!(losses.due(), None);
    }

    /// With B frames a later packet may be due before an earlier one.
    #[test]
    fn packets_that_are_due_are_forgotten_in_any_order() {
        let mut losses = Losses::default();
        losses.detect(at(0), None, 4);
        losses.forget(1, |number| number == 2);
        assert_eq!(losses.pending(at(0)).collect::<Vec<_>>(), [0, 1, 3]);
        losses.reported(at(0), 3, false);
        assert_eq!(losses.due(), None, "each is requested once");
    }

    #[test]
    fn requests_are_repeated_after_200_ms_at_the_earliest() {
        let mut losses = Losses::default();
        losses.detect(at(0), None, 2);
        losses.reported(at(0), 2, true);
        losses.arrived(at(10), 0, true);
        losses.detect(at(20), Some(2), 4);
        losses.arrived(at(20), 1, false);
        losses.reported(at(20), 1, true);
        assert_eq!(losses.due(), Some(at(220)));
    }
}
