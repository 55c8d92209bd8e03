//! WTCP: a rate that follows the separation of packets at the receiver.
//!
//! Source: Sinha, Venkitaraman, Sivakumar and Bharghavan, "WTCP: a reliable transport protocol for
//! wireless wide-area networks", ACM MobiCom 1999. The sender has a rate instead of a window. The
//! separation of packets at the receiver is compared with that at the sender. While both are equal
//! the rate rises; where the receiver's is larger, a queue grows, and the rate falls below what
//! arrives. A loss does not reduce the rate, but lost packets make arrivals sparser. The first rate
//! comes from packets sent back to back, so there is no slow start. After a time without
//! acknowledgements (a blackout) the sender probes, and then continues at its rate.
//!
//! The paper's text could not be read, only its abstract and the description in the study
//! `gprs-proxy`. The constants below are choices. In the paper the receiver computes the rate and
//! the protocol is not TCP. Here the sender computes it from the timestamps of both ends (RFC
//! 7323), so jitter of the uplink does not matter, and retransmission is that of TCP. The receiver
//! must have the sender's timestamp tick. The paper's statistics of losses are left out.
//!
//! It needs `pacing` and timestamps.

use airpath_core::{Bitrate, Instant, Span};
use serde::{Deserialize, Serialize};

use super::{Acknowledged, Congested, CongestionControl, Delivered, Signal};
use crate::config::Config;

/// An interval of measurement is at least a round trip and this many segments.
const LEAST_SEGMENTS: u64 = 4;

/// With this ratio of separations, receiver to sender, the rate falls; in sixteenths.
const FALLING: u128 = 18;
/// Below this ratio it rises.
const RISING: u128 = 17;

const SECOND: u128 = 1_000_000_000;

/// The window does not limit the sender: the greatest one of TCP (RFC 7323 §2.3).
const WINDOW: u64 = 1 << 30;

/// WTCP.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wtcp {
    segment_size: u64,
    initial_window: u64,
    tick: Span,
    /// Bytes per second.
    rate: Option<u64>,
    interval: Option<Interval>,
    round_trip: Option<Span>,
    /// Whether a timeout waits for an acknowledgement.
    blackout: bool,
}

/// The start of the current interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Interval {
    /// When its first segment was sent.
    sent: Instant,
    /// When it arrived, in ticks of the receiver.
    arrived: u32,
    /// Bytes acknowledged since.
    bytes: u64,
}

impl Wtcp {
    /// The configured controller, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        Self {
            segment_size: u64::from(size),
            initial_window: config.initial_window.bytes(size),
            tick: config.timestamp_tick,
            rate: None,
            interval: None,
            round_trip: None,
            blackout: false,
        }
    }

    /// Ends an interval: packets with `bytes` were sent in `sending` and arrived in `arriving`.
    fn adapt(&mut self, bytes: u64, sending: Span, arriving: Span, round_trip: Span) {
        let (sending, arriving) = (u128::from(sending.as_nanos()), u128::from(arriving.as_nanos()));
        let Some(rate) = self.rate.map(u128::from) else {
            self.rate = u64::try_from(u128::from(bytes) * SECOND / arriving).ok().map(|rate| rate.max(1));
            return;
        };
        let is_used = u128::from(bytes) * SECOND * 8 >= rate * sending * 7;
        let rate = if arriving * 16 > sending * FALLING {
            // What arrives, if the sender has sent at its rate.
            rate * sending / arriving * 3 / 4
        } else if arriving * 16 < sending * RISING && is_used {
            // A quarter of a segment per round trip.
            rate + u128::from(self.segment_size) * SECOND / (4 * u128::from(round_trip.as_nanos()))
        } else {
            rate
        };
        self.rate = Some(u64::try_from(rate).unwrap_or(u64::MAX).max(1));
    }
}

impl CongestionControl for Wtcp {
    fn name(&self) -> &'static str {
        "wtcp"
    }

    fn on_ack(&mut self, _: &Acknowledged) {}

    fn on_delivered(&mut self, delivered: &Delivered) {
        self.round_trip = delivered.round_trip.or(self.round_trip);
        // A duplicate echoes an old segment.
        if delivered.duplicate || delivered.bytes == 0 {
            return;
        }
        let (Some((sent, arrived)), Some(round_trip)) = (delivered.timestamps, self.round_trip) else { return };
        let blackout = std::mem::take(&mut self.blackout);
        let Some(interval) = self.interval.as_mut().filter(|_| !blackout) else {
            self.interval = Some(Interval { sent, arrived, bytes: 0 });
            return;
        };
        interval.bytes += delivered.bytes;
        let Interval { sent: began, arrived: first, bytes } = *interval;
        let (sending, arriving) = (sent.since(began), self.tick * u64::from(arrived.wrapping_sub(first)));
        // The first packets were sent back to back: two arrivals are enough.
        let is_over = match self.rate {
            None => arriving > Span::ZERO,
            Some(_) => sending >= round_trip && bytes >= LEAST_SEGMENTS * self.segment_size,
        };
        if is_over && round_trip > Span::ZERO {
            self.adapt(bytes, sending, arriving, round_trip);
            self.interval = Some(Interval { sent, arrived, bytes: 0 });
        }
    }

    fn on_congestion(&mut self, congested: &Congested) {
        self.blackout |= congested.signal == Signal::Timeout;
    }

    fn undo(&mut self, _: Instant) {
        self.blackout = false;
    }

    /// Its rate follows the separation of single segments.
    fn pacing_aggregate(&self, _: u32, _: u64) -> u32 {
        1
    }

    /// A shortened gap would be measured as a queue.
    fn paces_strictly(&self) -> bool {
        true
    }

    fn on_idle(&mut self, _: Instant, _: u64, _: u64) {
        self.interval = None;
    }

    fn congestion_window(&self) -> u64 {
        match self.rate {
            _ if self.blackout => self.segment_size,
            None => self.initial_window,
            Some(_) => WINDOW,
        }
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        // Before the first measurement, packets are sent back to back.
        Some(Bitrate::from_bps(self.rate.map_or(u64::MAX, |rate| rate.saturating_mul(8))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    const SIZE: u64 = 1000;

    /// A controller and the times of its last segment. Times are in milliseconds, as the receiver's
    /// ticks.
    struct Ends {
        wtcp: Wtcp,
        sent: u32,
        arrived: u32,
    }

    impl Ends {
        /// Two segments were sent back to back and arrived 10 ms after each other.
        fn start() -> Self {
            let mut ends = Self { wtcp: Wtcp::new(&Profile::Linux6.config(), SIZE as u32), sent: 0, arrived: 100 };
            ends.pass(2, 0, 10);
            ends
        }

        /// `count` segments are sent and arrive with these separations.
        fn pass(&mut self, count: u32, sending: u32, arriving: u32) {
            for _ in 0..count {
                self.sent += sending;
                self.arrived += arriving;
                self.wtcp.on_delivered(&Delivered {
                    now: Instant::ZERO,
                    bytes: SIZE,
                    duplicate: false,
                    round_trip: Some(Span::from_millis(200)),
                    timestamps: Some((Instant::ZERO + Span::from_millis(u64::from(self.sent)), self.arrived)),
                });
            }
        }

        fn signal(&mut self, signal: Signal) {
            let (now, again) = (Instant::ZERO, false);
            self.wtcp.on_congestion(&Congested { now, signal, again, flight_size: 9000, window_limit: u64::MAX });
        }
    }

    #[test]
    fn the_first_rate_is_that_of_two_packets() {
        let new = Wtcp::new(&Profile::Linux6.config(), SIZE as u32);
        assert_eq!((new.rate, new.congestion_window()), (None, 10_000));
        let Ends { wtcp, .. } = Ends::start();
        assert_eq!((wtcp.rate, wtcp.congestion_window()), (Some(100_000), WINDOW));
        assert_eq!(wtcp.pacing_rate(), Some(Bitrate::from_bps(800_000)));
    }

    #[test]
    fn the_rate_rises_while_packets_arrive_as_sent() {
        let mut ends = Ends::start();
        // A quarter of a segment per round trip, each 200 ms: 1,250 B/s.
        ends.pass(20, 10, 10);
        assert_eq!(ends.wtcp.rate, Some(101_250));
        ends.pass(40, 10, 10);
        assert_eq!(ends.wtcp.rate, Some(103_750));
    }

    #[test]
    fn an_unused_rate_does_not_rise() {
        let mut ends = Ends::start();
        ends.pass(40, 20, 20);
        assert_eq!(ends.wtcp.rate, Some(100_000));
    }

    #[test]
    fn the_rate_falls_below_what_arrives() {
        let mut ends = Ends::start();
        // 100 kB/s are sent, 50 kB/s arrive.
        ends.pass(20, 10, 20);
        assert_eq!(ends.wtcp.rate, Some(37_500));
    }

    #[test]
    fn a_blackout_keeps_the_rate() {
        let mut ends = Ends::start();
        ends.signal(Signal::Loss);
        assert_eq!(ends.wtcp.congestion_window(), WINDOW);
        ends.signal(Signal::Timeout);
        assert_eq!(ends.wtcp.congestion_window(), SIZE);
        (ends.sent, ends.arrived) = (9000, 20_000);
        ends.pass(2, 10, 10);
        assert_eq!((ends.wtcp.congestion_window(), ends.wtcp.rate), (WINDOW, Some(100_000)));
    }
}
