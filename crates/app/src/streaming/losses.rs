//! The packets that a client misses, and when it requests each again.

use std::collections::VecDeque;

use airpath_core::{Instant, Span};

/// Missing packets, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    missing: VecDeque<Loss>,
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
/// of TCP without its minimum (RFC 6298 §2).
#[derive(Clone, Copy, Debug, Default)]
struct RepairTimer {
    /// Smoothed time and its variation, in seconds.
    smoothed: Option<(f64, f64)>,
}

impl RepairTimer {
    /// Before a measurement (§2.1).
    const INITIAL: f64 = 1.0;
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
        let timeout = self.smoothed.map_or(Self::INITIAL, |(mean, variation)| mean + 4.0 * variation);
        let doublings = (requests - 1).min(Self::MOST_DOUBLINGS);
        Span::from_secs_f64(timeout * f64::from(1_u32 << doublings))
    }
}

impl Losses {
    /// Packet `number` arrives after those up to `highest`: all between them are missing.
    pub fn detect(&mut self, now: Instant, highest: Option<u32>, number: u32) {
        let loss = |number| Loss { number, due: now, requests: 0, requested: now };
        self.missing.extend((highest.map_or(0, |highest| highest + 1)..number).map(loss));
    }

    /// Packet `number` arrives, perhaps as a retransmission.
    pub fn arrived(&mut self, now: Instant, number: u32, retransmission: bool) {
        let Ok(place) = self.missing.binary_search_by_key(&number, |loss| loss.number) else { return };
        let loss = self.missing.remove(place).expect("it was found there");
        // With several requests it is not known which one was answered (Karn's algorithm, §3).
        if retransmission && loss.requests == 1 {
            self.timer.add(now.since(loss.requested));
        }
    }

    /// Removes the first packets for which `is_due`: it is too late to repair them.
    pub fn forget(&mut self, is_due: impl Fn(u32) -> bool) {
        while self.missing.front().is_some_and(|loss| is_due(loss.number)) {
            self.missing.pop_front();
        }
    }

    /// When the next packet is to be requested.
    pub fn due(&self) -> Option<Instant> {
        self.missing.iter().map(|loss| loss.due).min()
    }

    /// The packets that are to be requested now.
    pub fn pending(&self, now: Instant) -> impl Iterator<Item = u32> {
        self.missing.iter().filter(move |loss| loss.due <= now).map(|loss| loss.number)
    }

    /// The first `count` of the [pending](Self::pending) packets were requested. They are requested
    /// again later if `again`.
    pub fn reported(&mut self, now: Instant, count: usize, again: bool) {
        let Self { missing, timer } = self;
        for loss in missing.iter_mut().filter(|loss| loss.due <= now).take(count) {
            loss.requests += 1;
            loss.requested = now;
            loss.due = if again { now + timer.after(loss.requests) } else { Instant::FAR_FUTURE };
        }
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
        losses.forget(|number| number < 5);
        assert_eq!(losses.pending(at(9_000)).collect::<Vec<_>>(), [5]);
        losses.arrived(at(2_000), 5, false);
        assert_eq!(losses.due(), None);
    }
}
