//! Pacing by departure times, as in Linux (`tcp_pacing_check`, `tcp_update_skb_after_send`,
//! `tcp_tso_autosize`).
//!
//! Segments leave in aggregates, and the gap after an aggregate is its length at the pacing rate.
//! If an aggregate leaves late, the next gap is shorter by that time, at most by half. A controller
//! can require full gaps ([`CongestionControl::paces_strictly`]).

use airpath_core::{Bitrate, Bytes, Instant, Span};
use serde::{Deserialize, Serialize};

use super::{Sender, Shared};
use crate::congestion::CongestionControl;
use crate::sequence::Sequence;

/// The first segments of a connection are not paced (`TCP_INIT_CWND`).
const UNPACED: u64 = 10;
/// An aggregate holds the data of this share of a second at the pacing rate (`sk_pacing_shift`).
const PER_SECOND: u64 = 1 << 10;
/// Largest aggregate, in bytes (`sk_gso_max_size`). It is added to the above, halved for each
/// `HALVING` of the least round trip.
const LARGEST: u64 = 65_536;
/// `tcp_tso_rtt_log` is 9.
const HALVING: Span = Span::from_micros(1 << 9);

/// The gap after an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    /// Its length at the pacing rate.
    Full,
    /// That, less the time by which the aggregate is late, at most half.
    Shortened,
    None,
}

/// The departure times of one direction.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Pacer {
    /// Earliest departure of the next aggregate.
    pub release: Instant,
    /// Departure of the current aggregate.
    departed: Instant,
    /// How late that was.
    late: Span,
    /// Duration of the current aggregate at the pacing rate.
    length: Span,
    /// The sequence number that continues the current aggregate.
    next: Sequence,
    /// Segments by which it may grow.
    left: u32,
}

impl Pacer {
    pub const fn new() -> Self {
        Self { release: Instant::ZERO, departed: Instant::ZERO, late: Span::ZERO, length: Span::ZERO, next: 0, left: 0 }
    }

    /// Whether the segment that starts with `start` may leave.
    #[inline]
    pub fn allows(&self, now: Instant, start: Sequence) -> bool {
        now >= self.release || self.continues(now, start)
    }

    fn continues(&self, now: Instant, start: Sequence) -> bool {
        self.left > 0 && now == self.departed && start == self.next
    }

    /// A segment from `start` to `end` leaves, which takes `duration` at the pacing rate. A new
    /// aggregate holds up to `quantum` segments.
    fn on_sent(&mut self, now: Instant, range: (Sequence, Sequence), duration: Span, quantum: u32, gap: Gap) {
        let (start, end) = range;
        if self.continues(now, start) {
            self.left -= 1;
            self.length += duration;
        } else {
            self.late = now.since(self.release.min(now));
            self.departed = now.max(self.release);
            self.length = duration;
            self.left = quantum.saturating_sub(1);
        }
        self.next = end;
        let gap = match gap {
            Gap::Full => self.length,
            Gap::Shortened => self.length - self.late.min(self.length / 2),
            Gap::None => Span::ZERO,
        };
        self.release = self.departed + gap;
    }
}

impl Sender {
    /// A segment of `payload` bytes from `start` to `end` leaves.
    pub(super) fn set_pace(&mut self, now: Instant, range: (Sequence, Sequence), payload: u32, shared: &Shared<'_>) {
        let Some(rate) = self.pacing_rate() else { return };
        let duration = rate.time_for(Bytes::new(u64::from(payload)));
        let half_window = self.congestion_window() / u64::from(self.segment_size) / 2;
        let quantum = u64::from(self.aggregate(rate)).min(half_window).max(1) as u32;
        // This segment is not counted yet.
        let gap = if self.controller.paces_strictly() {
            Gap::Full
        } else if shared.statistics.data_segments + 1 >= UNPACED {
            Gap::Shortened
        } else {
            Gap::None
        };
        self.pacer.on_sent(now, range, duration, quantum, gap);
    }

    /// Segments of an aggregate at `rate`.
    fn aggregate(&self, rate: Bitrate) -> u32 {
        let rate = rate.as_bps();
        let estimate = self.scoreboard.rate.as_ref().and_then(|rate| rate.least_round_trip());
        let least = estimate.or_else(|| self.rtt.least()).unwrap_or(Span::ZERO);
        let halvings = least.as_nanos() / HALVING.as_nanos();
        let added = if halvings < 32 { LARGEST >> halvings } else { 0 };
        let bytes = (rate / 8 / PER_SECOND + added).min(LARGEST);
        self.controller.pacing_aggregate((bytes / u64::from(self.segment_size)) as u32, rate)
    }

    /// The controller's rate, or twice the window per round trip in slow start and 1.2 times after,
    /// as in Linux (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
    fn pacing_rate(&self) -> Option<Bitrate> {
        self.controller.pacing_rate().or_else(|| {
            let smoothed = self.rtt.smoothed().filter(|smoothed| *smoothed > Span::ZERO)?;
            let window = self.controller.congestion_window();
            // Linux doubles up to half the threshold, not all of it.
            let slow_start = self.controller.slow_start_threshold().is_none_or(|threshold| window < threshold / 2);
            let percent = if slow_start { 200 } else { 120 };
            let bits = u128::from(window) * 8 * percent * 10_000_000 / u128::from(smoothed.as_nanos());
            Some(Bitrate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX).max(1)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Span::from_micros(micros)
    }

    /// Sends segments of 10 bytes and 100 µs in aggregates of two.
    fn send(pacer: &mut Pacer, micros: u64, start: Sequence) {
        assert!(pacer.allows(at(micros), start), "{pacer:?}");
        pacer.on_sent(at(micros), (start, start + 10), Span::from_micros(100), 2, Gap::Shortened);
    }

    #[test]
    fn an_aggregate_leaves_at_once_and_is_followed_by_its_length() {
        let mut pacer = Pacer { release: at(1000), ..Pacer::new() };
        assert!(!pacer.allows(at(999), 0));
        send(&mut pacer, 1000, 0);
        send(&mut pacer, 1000, 10);
        assert!(!pacer.allows(at(1000), 20), "an aggregate has two segments");
        assert_eq!(pacer.release, at(1200));
    }

    #[test]
    fn data_that_is_not_contiguous_begins_an_aggregate() {
        let mut pacer = Pacer { release: at(1000), ..Pacer::new() };
        send(&mut pacer, 1000, 0);
        assert!(!pacer.allows(at(1000), 50));
        assert_eq!(pacer.release, at(1100));
        assert!(!pacer.allows(at(1050), 10), "the aggregate has left without it");
    }

    #[test]
    fn a_late_departure_shortens_the_next_gap_by_half_at_most() {
        let mut pacer = Pacer { release: at(1000), ..Pacer::new() };
        send(&mut pacer, 1030, 0);
        send(&mut pacer, 1030, 10);
        assert_eq!(pacer.release, at(1200));
        send(&mut pacer, 1900, 20);
        assert_eq!(pacer.release, at(1950));
    }

    #[test]
    fn a_full_gap_follows_a_late_departure() {
        let mut pacer = Pacer { release: at(1000), ..Pacer::new() };
        pacer.on_sent(at(1030), (0, 10), Span::from_micros(100), 1, Gap::Full);
        assert_eq!(pacer.release, at(1130));
    }

    #[test]
    fn without_pacing_there_is_no_gap() {
        let mut pacer = Pacer::new();
        pacer.on_sent(at(1000), (0, 10), Span::from_micros(100), 1, Gap::None);
        assert!(pacer.allows(at(1000), 10));
    }
}
