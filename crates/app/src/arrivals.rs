//! Figures of a datagram stream besides delay and loss: inter-arrival times, gaps, and delay
//! periods.

use airpath_core::{Instant, Span};

use crate::samples::Samples;

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Sequence number, from zero.
    pub sequence: u32,
    /// Send time.
    pub sent: Instant,
    /// Arrival time.
    pub arrived: Instant,
}

impl Arrival {
    /// One-way delay; zero if a clock offset makes the arrival earlier than the send time.
    pub const fn delay(&self) -> Span {
        self.arrived.since(self.sent)
    }
}

/// Figures of the arrivals of a stream.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// From each arrival to the next, in the order of arrival.
    pub inter_arrival: Samples,
    /// Datagrams that arrived after one with a higher number (RFC 4737 §3).
    pub reordered: u64,
    /// Gaps: from the arrival of the last datagram before a burst of losses to that of the first
    /// after it. A burst at the beginning or end of the stream has no such duration, and is not a
    /// gap.
    pub gaps: Samples,
    /// Datagrams lost in the longest burst that is a gap.
    pub longest_burst: u64,
    /// Datagrams with a delay above the threshold.
    pub late: u64,
    /// Delay periods: consecutive datagrams without a loss, each late. From the arrival of the last
    /// datagram in time before them to that of the first in time after them.
    pub delay_periods: Samples,
}

impl Analysis {
    /// Analyses `arrivals`, each datagram once, in the order of arrival; delays above `late` are
    /// late.
    pub fn of(arrivals: &[Arrival], late: Span) -> Self {
        let mut analysis = Self::default();
        let mut highest = None;
        for arrival in arrivals {
            analysis.reordered += u64::from(highest.is_some_and(|highest| arrival.sequence < highest));
            highest = highest.max(Some(arrival.sequence));
        }
        for pair in arrivals.windows(2) {
            analysis.inter_arrival.add(pair[1].arrived.since(pair[0].arrived));
        }
        let mut by_number = arrivals.to_vec();
        by_number.sort_unstable_by_key(|arrival| arrival.sequence);
        // The last datagram in time, unless one was lost since.
        let mut in_time: Option<Arrival> = None;
        let mut before: Option<Arrival> = None;
        for arrival in by_number {
            let lost = before.map_or(0, |before| u64::from(arrival.sequence - before.sequence - 1));
            if let Some(before) = before.filter(|_| lost > 0) {
                analysis.gaps.add(arrival.arrived.since(before.arrived));
                analysis.longest_burst = analysis.longest_burst.max(lost);
                in_time = None;
            }
            let is_late = arrival.delay() > late;
            analysis.late += u64::from(is_late);
            if !is_late {
                if let Some(start) = in_time.filter(|start| start.sequence + 1 < arrival.sequence) {
                    analysis.delay_periods.add(arrival.arrived.since(start.arrived));
                }
                in_time = Some(arrival);
            }
            before = Some(arrival);
        }
        analysis
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sent every 10 ms; `delays` are in milliseconds, `None` is lost.
    fn stream(delays: &[Option<u64>]) -> Vec<Arrival> {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut arrivals: Vec<Arrival> = (0..)
            .zip(delays)
            .filter_map(|(sequence, delay)| {
                let sent = u64::from(sequence) * 10;
                delay.map(|delay| Arrival { sequence, sent: at(sent), arrived: at(sent + delay) })
            })
            .collect();
        arrivals.sort_by_key(|arrival| arrival.arrived);
        arrivals
    }

    fn ms(samples: &Samples) -> Vec<u64> {
        (1..=samples.count())
            .filter_map(|rank| samples.quantile(rank as f64 / samples.count() as f64))
            .map(|span| span.as_nanos() / 1_000_000)
            .collect()
    }

    #[test]
    fn gaps_reach_from_the_last_before_to_the_first_after() {
        let analysis =
            Analysis::of(&stream(&[None, Some(5), None, None, Some(7), Some(5), None]), Span::from_millis(50));
        assert_eq!(ms(&analysis.gaps), [32], "from 15 ms to 47 ms; losses at the ends are in no gap");
        assert_eq!((analysis.longest_burst, analysis.late, analysis.delay_periods.count()), (2, 0, 0));
    }

    #[test]
    fn delay_periods_are_late_without_loss() {
        let delays = [Some(5), Some(60), Some(55), Some(5), Some(60), None, Some(60), Some(5), Some(70)];
        let analysis = Analysis::of(&stream(&delays), Span::from_millis(50));
        assert_eq!(
            ms(&analysis.delay_periods),
            [30],
            "from 5 ms to 35 ms; the second has a loss in it, the third no end"
        );
        assert_eq!((analysis.late, analysis.gaps.count()), (5, 1));
    }

    #[test]
    fn order_and_evenness() {
        let analysis = Analysis::of(&stream(&[Some(30), Some(5), Some(5)]), Span::from_millis(50));
        assert_eq!(analysis.reordered, 1);
        assert_eq!(ms(&analysis.inter_arrival), [5, 10]);
        assert_eq!(Analysis::of(&[], Span::ZERO).inter_arrival.count(), 0);
    }

    proptest! {
        #[test]
        fn counts_fit(delays in proptest::collection::vec(proptest::option::of(0..200u64), 0..60)) {
            let arrivals = stream(&delays);
            let analysis = Analysis::of(&arrivals, Span::from_millis(100));
            prop_assert_eq!(analysis.inter_arrival.count(), arrivals.len().saturating_sub(1) as u64);
            prop_assert_eq!(analysis.late, delays.iter().flatten().filter(|delay| **delay > 100).count() as u64);
            prop_assert!(analysis.gaps.count() + analysis.delay_periods.count() <= arrivals.len() as u64);
            prop_assert!(analysis.longest_burst <= (delays.len() - arrivals.len()) as u64);
        }
    }
}
