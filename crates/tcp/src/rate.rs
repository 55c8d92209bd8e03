//! Delivery rate estimation (draft-cheng-iccrg-delivery-rate-estimation-02).
//!
//! Each segment carries the state of the connection at its transmission. An acknowledgement gives
//! one sample: the segments delivered since the most recently sent of those that it reports was
//! sent, over the longer of the time in which they were sent and the time in which they were
//! acknowledged. As in Linux (`tcp_rate.c`), segments are counted, not bytes.

use std::collections::VecDeque;

use airpath_core::{Bitrate, Instant, Span};
use serde::{Deserialize, Serialize};

use crate::congestion::{LostSegment, RateSample};
use crate::rtt::Minimum;
use crate::scoreboard::Sent;
use crate::sequence::Sequence;

/// State of the connection when a segment was last sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Stamp {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    /// Segments lost so far.
    lost: u64,
    /// Bytes in flight, with the segment.
    in_flight: u64,
    app_limited: bool,
    /// The segment was delivered. If the receiver has reneged it is delivered again, without a
    /// sample, unless it was sent again.
    used: bool,
}

/// The segment that gives the sample of an acknowledgement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Prior {
    stamp: Stamp,
    end: Sequence,
    send_phase: Span,
}

/// The last valid sample.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Last {
    delivered: u64,
    interval: Span,
}

/// The estimator of one direction.
#[derive(Debug, Serialize, Deserialize)]
pub struct RateEstimator {
    /// Segments delivered so far, each once; twice if the receiver has reneged, as in Linux.
    pub delivered: u64,
    /// Time of the last delivery; at the start of a flight, of its first transmission.
    delivered_at: Instant,
    /// Send time of the most recently sent segment that was delivered; at the start of a flight, of
    /// its first segment.
    first_sent: Instant,
    /// The data sent up to this number of delivered segments is application-limited; zero if none
    /// is.
    app_limited: u64,
    /// Segments that duplicate acknowledgements without SACK have counted as delivered, and no
    /// acknowledgement has covered yet.
    presumed: u64,
    /// The stamps of the outstanding segments, in their order.
    stamps: VecDeque<Stamp>,
    /// The sample of the current acknowledgement.
    prior: Option<Prior>,
    last: Option<Last>,
    /// Segments that were marked as lost since the last acknowledgement: their stamps, the segments
    /// lost then with them, and the segments delivered then.
    losses: Vec<(Stamp, u64, u64)>,
    /// The least round trip of the last segment of each acknowledgement.
    least: Minimum,
}

/// Counts of an acknowledgement for its sample, in segments.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub now: Instant,
    /// Newly delivered.
    pub acknowledged: u64,
    /// Newly lost.
    pub losses: u64,
    /// Lost so far.
    pub lost: u64,
    pub in_flight: u64,
    /// In flight before the acknowledgement.
    pub prior_in_flight: u64,
    /// Round trip of the last delivered segment that was sent once.
    pub round_trip: Option<Span>,
    /// The acknowledgement reports one sub-MSS segment only.
    pub lone: bool,
    /// The least round trip of the connection by other measurements.
    pub least_round_trip: Option<Span>,
    /// Payload of a full segment.
    pub segment_size: u64,
}

impl RateEstimator {
    /// An estimator with `outstanding` segments in flight. The SYN counts as delivered, and the
    /// first flight as application-limited: it starts when the application writes.
    pub fn new(now: Instant, outstanding: usize) -> Self {
        let stamp = Stamp {
            delivered: 1,
            delivered_at: now,
            first_sent: now,
            lost: 0,
            in_flight: 0,
            app_limited: true,
            used: false,
        };
        Self {
            delivered: 1,
            delivered_at: now,
            first_sent: now,
            app_limited: 1,
            presumed: 0,
            stamps: std::iter::repeat_n(stamp, outstanding).collect(),
            prior: None,
            last: None,
            losses: Vec::new(),
            least: Minimum::NONE,
        }
    }

    /// Whether what is sent now is application-limited.
    pub const fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// What is in flight, and what is sent until it is delivered, is application-limited.
    pub fn limit_by_application(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// The rate of the last sample that was not application-limited, or of a later one that was
    /// higher (`tcpi_delivery_rate` of Linux), for segments of `size` payload bytes.
    pub fn rate(&self, size: u32) -> Option<Bitrate> {
        let last = self.last.filter(|last| !last.interval.is_zero())?;
        let bits = u128::from(last.delivered) * u128::from(size) * 8_000_000_000;
        u64::try_from(bits / u128::from(last.interval.as_nanos())).ok().map(Bitrate::from_bps)
    }

    /// The least round trip.
    pub fn least_round_trip(&self) -> Option<Span> {
        self.least.get()
    }

    /// A segment is sent for the first time; `first` if nothing is outstanding. With it `in_flight`
    /// bytes are in flight, and `lost` segments were lost so far.
    pub fn on_sent(&mut self, now: Instant, first: bool, in_flight: u64, lost: u64) {
        if first {
            self.first_sent = now;
            self.delivered_at = now;
        }
        let stamp = self.stamp(in_flight, lost);
        self.stamps.push_back(stamp);
    }

    /// The outstanding segment `index` is sent again.
    pub fn on_sent_again(&mut self, index: usize, in_flight: u64, lost: u64) {
        self.stamps[index] = self.stamp(in_flight, lost);
    }

    /// The outstanding segment `index` is marked as lost; with it `lost` segments so far.
    pub fn on_lost(&mut self, index: usize, lost: u64) {
        let stamp = self.stamps[index];
        if !stamp.used {
            self.losses.push((stamp, lost, self.delivered));
        }
    }

    /// Takes the segments that were marked as lost since the last call, for full segments of `size`
    /// payload bytes.
    pub fn take_losses(&mut self, size: u64) -> impl Iterator<Item = LostSegment> + '_ {
        self.losses.drain(..).map(move |(stamp, lost, delivered)| LostSegment {
            in_flight: stamp.in_flight.div_ceil(size),
            lost: lost - stamp.lost,
            delivered,
            app_limited: stamp.app_limited,
        })
    }

    /// The oldest segment is acknowledged; `arrived` if it was not selectively before.
    pub fn on_acknowledged(&mut self, segment: &Sent, arrived: bool) {
        if let Some(stamp) = self.stamps.pop_front()
            && arrived
        {
            self.on_delivered(stamp, segment);
        }
    }

    /// The outstanding segment `index` is selectively acknowledged.
    pub fn on_sacked(&mut self, index: usize, segment: &Sent) {
        let stamp = self.stamps[index];
        self.stamps[index].used = true;
        self.on_delivered(stamp, segment);
    }

    /// The outstanding segments were divided: `parents` has the former index of each.
    pub fn split(&mut self, parents: impl Iterator<Item = usize>) {
        self.stamps = parents.map(|index| self.stamps[index]).collect();
    }

    /// Without SACK, `duplicate` acknowledgements count as a delivered segment each, and later
    /// acknowledgements, which cover `segments`, as the rest, as in Linux (`tcp_add_reno_sack`,
    /// `tcp_remove_reno_sacks`). The `lost` of the outstanding segments, or one, were not delivered
    /// (`tcp_limit_reno_sacked`). Returns the newly delivered segments.
    pub fn presume(&mut self, segments: u64, duplicate: bool, lost: u64) -> u64 {
        let most = (self.stamps.len() as u64).saturating_sub(lost.max(1));
        if segments > 0 {
            let new = segments.saturating_sub(self.presumed).max(1);
            self.presumed = self.presumed.saturating_sub(segments - 1).min(most);
            self.delivered -= segments - new;
            return new;
        }
        let new = u64::from(duplicate && self.presumed < most);
        self.presumed = (self.presumed + new).min(most);
        self.delivered += new;
        new
    }

    /// The duplicate acknowledgements so far count no more (`tcp_reset_reno_sack`).
    pub const fn forget_presumed(&mut self) {
        self.presumed = 0;
    }

    /// Number of outstanding segments.
    #[cfg(any(test, feature = "testing"))]
    pub fn outstanding(&self) -> usize {
        self.stamps.len()
    }

    /// Ends an acknowledgement: its sample.
    pub fn sample(&mut self, counts: &Counts) -> RateSample {
        let now = counts.now;
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if counts.acknowledged > 0 {
            self.delivered_at = now;
        }
        if let Some(round_trip) = counts.round_trip {
            self.least.update(now, round_trip);
        }
        let least = self.least.get().into_iter().chain(counts.least_round_trip).min();
        let mut sample = RateSample {
            now,
            total_delivered: self.delivered,
            total_lost: counts.lost,
            delivered_at: self.delivered_at,
            delivered: None,
            interval: None,
            prior_delivered: 0,
            lost: 0,
            sent_in_flight: 0,
            app_limited: false,
            round_trip: counts.round_trip,
            ack_delayed: false,
            acknowledged: counts.acknowledged,
            marked: 0,
            losses: counts.losses,
            in_flight: counts.in_flight,
            prior_in_flight: counts.prior_in_flight,
            least_round_trip: least,
            smoothed_round_trip: None,
            departure: now,
            recovery: false,
            timed_out: false,
        };
        let Some(Prior { stamp, send_phase, .. }) = self.prior.take() else { return sample };
        let delivered = self.delivered - stamp.delivered;
        let interval = send_phase.max(now.since(stamp.delivered_at));
        sample.delivered = Some(delivered);
        sample.prior_delivered = stamp.delivered;
        sample.lost = counts.lost - stamp.lost;
        sample.sent_in_flight = stamp.in_flight.div_ceil(counts.segment_size.max(1));
        sample.app_limited = stamp.app_limited;
        sample.ack_delayed = counts.lone && delivered == 1;
        // A shorter interval than a round trip comes from a spurious retransmission.
        if least.is_some_and(|least| interval < least) {
            return sample;
        }
        sample.interval = Some(interval);
        let is_higher = self.last.is_none_or(|last| {
            u128::from(delivered) * u128::from(last.interval.as_nanos())
                >= u128::from(last.delivered) * u128::from(interval.as_nanos())
        });
        if !stamp.app_limited || is_higher {
            self.last = Some(Last { delivered, interval });
        }
        sample
    }

    const fn stamp(&self, in_flight: u64, lost: u64) -> Stamp {
        Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost,
            in_flight,
            app_limited: self.app_limited > 0,
            used: false,
        }
    }

    fn on_delivered(&mut self, stamp: Stamp, segment: &Sent) {
        self.delivered += 1;
        if stamp.used {
            return;
        }
        let end = segment.end();
        if self.prior.is_none_or(|prior| (segment.at, end) > (self.first_sent, prior.end)) {
            self.prior = Some(Prior { stamp, end, send_phase: segment.at.since(stamp.first_sent) });
            self.first_sent = segment.at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Instant = Instant::from_nanos(1_000_000_000);

    fn segment(number: u64) -> Sent {
        Sent::new(1 + 1000 * number, Instant::ZERO, 1000, false)
    }

    fn with_sent(count: u64) -> RateEstimator {
        let mut rate = RateEstimator::new(Instant::ZERO, 0);
        for number in 0..count {
            rate.on_sent(Instant::ZERO, number == 0, 1000 * (number + 1), 0);
        }
        rate
    }

    /// `count` segments are cumulatively acknowledged.
    fn acknowledge(rate: &mut RateEstimator, count: u64) -> u64 {
        for number in 0..count {
            rate.on_acknowledged(&segment(number), true);
        }
        rate.presume(count, false, 0)
    }

    #[test]
    fn duplicates_count_for_the_outstanding_segments_at_most() {
        let mut rate = with_sent(4);
        let counted: Vec<u64> = (0..6).map(|_| rate.presume(0, true, 0)).collect();
        assert_eq!(counted, [1, 1, 1, 0, 0, 0], "one of four segments is missing");
        assert_eq!(acknowledge(&mut rate, 4), 1);
        assert_eq!(rate.delivered, 1 + 4);
    }

    #[test]
    fn lost_segments_are_not_presumed_to_be_delivered() {
        let mut rate = with_sent(4);
        let counted: u64 = (0..6).map(|_| rate.presume(0, true, 3)).sum();
        assert_eq!(counted, 1);
    }

    #[test]
    fn a_segment_that_the_receiver_has_reneged_gives_no_second_sample() {
        let mut rate = with_sent(2);
        rate.on_sacked(1, &segment(1));
        let counts = Counts {
            now: SECOND,
            acknowledged: 1,
            losses: 0,
            lost: 0,
            in_flight: 1,
            prior_in_flight: 2,
            round_trip: None,
            lone: false,
            least_round_trip: None,
            segment_size: 1000,
        };
        assert_eq!(rate.sample(&counts).delivered, Some(1));
        // The first is sent again; the report of the second is discarded.
        rate.on_sent_again(0, 2000, 0);
        rate.on_acknowledged(&Sent::new(1, SECOND, 1000, false), true);
        assert!(rate.sample(&counts).delivered.is_some());
        rate.on_acknowledged(&segment(1), true);
        assert_eq!(rate.sample(&counts).delivered, None);
    }

    #[test]
    fn forgotten_duplicates_do_not_lower_later_deliveries() {
        let mut rate = with_sent(6);
        assert_eq!((0..3).map(|_| rate.presume(0, true, 0)).sum::<u64>(), 3);
        assert_eq!(acknowledge(&mut rate, 2), 1, "two acknowledged, three presumed");
        rate.forget_presumed();
        assert_eq!(acknowledge(&mut rate, 2), 2);
    }

    #[test]
    fn lost_segments_report_the_flight_in_which_they_were_sent() {
        let mut rate = with_sent(4);
        rate.on_sacked(3, &segment(3));
        rate.on_lost(0, 1);
        rate.on_lost(1, 2);
        rate.on_lost(3, 3);
        let losses: Vec<LostSegment> = rate.take_losses(1000).collect();
        let numbers = losses.iter().map(|lost| (lost.in_flight, lost.lost, lost.delivered));
        assert_eq!(numbers.collect::<Vec<_>>(), [(1, 1, 2), (2, 2, 2)], "a delivered segment is not reported");
        assert_eq!(rate.take_losses(1000).count(), 0);
    }
}
