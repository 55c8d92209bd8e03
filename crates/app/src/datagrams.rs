//! Datagrams at a constant rate, or in bursts at random times: delivery and delay.

use airpath_core::{Bitrate, Bytes, Direction, Instant, RandomStream, Span};
use serde::{Deserialize, Serialize};

use crate::arrivals::Arrival;
use crate::samples::Samples;

/// A datagram stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Direction.
    pub direction: Direction,
    /// Rate of the IP packets, including headers.
    pub rate: Bitrate,
    /// Payload bytes of a datagram, after the UDP header.
    pub size: u32,
    /// Duration of the stream.
    pub duration: Span,
    /// Time to wait for the last datagrams.
    pub timeout: Span,
    /// Delay threshold of late datagrams.
    pub late: Span,
}

/// Default of the delay threshold: up to here most conversations are not affected (ITU-T G.114 §4).
pub const LATE: Span = Span::from_millis(150);

impl Datagrams {
    /// Time from one datagram to the next.
    pub fn interval(&self) -> Span {
        self.rate.time_for(Bytes::new(u64::from(self.size + HEADERS)))
    }

    /// Number of datagrams in all, with headers of [`HEADERS`].
    pub fn count(&self) -> u64 {
        self.count_with(HEADERS)
    }

    /// Number of datagrams in all, with `headers` bytes of IP and UDP headers in each.
    pub fn count_with(&self, headers: u32) -> u64 {
        let bits = (u64::from(self.size) + u64::from(headers)) * 8;
        let sent = u128::from(self.rate.as_bps()) * u128::from(self.duration.as_nanos());
        u64::try_from(sent.div_ceil(u128::from(bits) * 1_000_000_000)).unwrap_or(u64::MAX)
    }
}

/// Length of IPv4 and UDP headers.
pub const HEADERS: u32 = 28;

/// Length of IPv6 and UDP headers.
pub const IPV6_HEADERS: u32 = 48;

/// Bursts of datagrams at random times, in place of a constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spacing {
    /// The shortest time from one burst to the next; it is uniform up to `to`.
    pub from: Span,
    /// The longest.
    pub to: Span,
    /// Datagrams of a burst, at least one, which are sent at once.
    #[serde(default = "one")]
    pub burst: u32,
}

const fn one() -> u32 {
    1
}

/// When the datagrams of a stream are due.
#[derive(Clone, Debug)]
enum Times {
    /// At the constant rate of the stream.
    Constant,
    /// In bursts. Only the next one is stored.
    Bursts(Bursts),
}

/// The bursts of a stream, drawn one after the other.
#[derive(Clone, Debug)]
struct Bursts {
    spacing: Spacing,
    /// The stream of the times between bursts.
    random: RandomStream,
    /// When the present burst is due, from the start.
    at: Span,
    /// Its datagrams that are not sent yet.
    left: u32,
}

impl Bursts {
    /// A datagram of the present burst was sent; after the last one the next burst is drawn.
    fn sent(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            let range = self.spacing.to.as_nanos() - self.spacing.from.as_nanos();
            let gap = self.spacing.from.as_nanos() + self.random.below(range + 1);
            self.at = Span::from_nanos(self.at.as_nanos().saturating_add(gap));
            self.left = self.spacing.burst;
        }
    }
}

/// The sender.
#[derive(Clone, Debug)]
pub struct Sender {
    datagrams: Datagrams,
    /// Length of the IP and UDP headers of each datagram.
    headers: u32,
    started: Instant,
    times: Times,
    sent: u32,
}

impl Sender {
    /// A sender whose first datagram is due at `start`.
    pub const fn new(datagrams: Datagrams, start: Instant) -> Self {
        Self { datagrams, headers: HEADERS, started: start, times: Times::Constant, sent: 0 }
    }

    /// The same sender, with `headers` bytes of IP and UDP headers in each datagram.
    #[must_use]
    pub fn with_headers(self, headers: u32) -> Self {
        Self { headers, ..self }
    }

    /// A sender of bursts, the first due at `start`; `random` draws the times between them.
    pub const fn in_bursts(datagrams: Datagrams, start: Instant, spacing: Spacing, random: RandomStream) -> Self {
        let bursts = Bursts { spacing, random, at: Span::ZERO, left: spacing.burst };
        Self { datagrams, headers: HEADERS, started: start, times: Times::Bursts(bursts), sent: 0 }
    }

    /// The number of the next datagram, if it is due.
    pub fn poll(&mut self, now: Instant) -> Option<u32> {
        let due = self.next_due()?;
        (due <= now).then(|| {
            if let Times::Bursts(bursts) = &mut self.times {
                bursts.sent();
            }
            self.sent += 1;
            self.sent - 1
        })
    }

    /// When the next datagram is due, or the wait for the last ones ends.
    pub fn next_wakeup(&self) -> Option<Instant> {
        Some(self.next_due().unwrap_or_else(|| self.deadline()))
    }

    /// Whether all were sent and the wait for the last ones has ended.
    pub fn is_over(&self, now: Instant) -> bool {
        self.next_due().is_none() && now >= self.deadline()
    }

    /// Datagrams sent.
    pub const fn sent(&self) -> u32 {
        self.sent
    }

    /// When the next datagram is due; `None` after the last. Computed from the origin, not from the
    /// previous datagram, so that rounding does not accumulate.
    pub fn next_due(&self) -> Option<Instant> {
        let offset = match &self.times {
            Times::Constant => {
                let bytes = (u64::from(self.datagrams.size) + u64::from(self.headers)) * u64::from(self.sent);
                self.datagrams.rate.time_for(Bytes::new(bytes))
            }
            Times::Bursts(bursts) => bursts.at,
        };
        (offset < self.datagrams.duration).then(|| self.started + offset)
    }

    fn deadline(&self) -> Instant {
        self.started + self.datagrams.duration + self.datagrams.timeout
    }
}

/// The receiver.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    arrivals: Vec<Arrival>,
    seen: Vec<bool>,
    duplicates: u64,
}

impl Receiver {
    /// Records datagram `sequence`, sent at `sent`: its one-way delay, or `None` for a duplicate.
    /// Memory grows with the number, so pass only numbers that can have been sent.
    pub fn receive(&mut self, now: Instant, sequence: u32, sent: Instant) -> Option<Span> {
        let index = sequence as usize;
        if index >= self.seen.len() {
            self.seen.resize(index + 1, false);
        }
        if std::mem::replace(&mut self.seen[index], true) {
            self.duplicates += 1;
            return None;
        }
        let arrival = Arrival { sequence, sent, arrived: now };
        self.arrivals.push(arrival);
        Some(arrival.delay())
    }

    /// Datagrams received, each counted once.
    pub const fn received(&self) -> u32 {
        self.arrivals.len() as u32
    }

    /// Duplicates.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Arrivals, in that order.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// One-way delays.
    pub fn delays(&self) -> Samples {
        let mut delays = Samples::default();
        self.arrivals.iter().for_each(|arrival| delays.add(arrival.delay()));
        delays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_rate_without_drift() {
        let datagrams = Datagrams {
            direction: Direction::Down,
            rate: Bitrate::from_bps(7_000_000),
            size: 972,
            duration: Span::from_secs(1),
            timeout: Span::from_secs(1),
            late: LATE,
        };
        let mut sender = Sender::new(datagrams, Instant::ZERO);
        let mut now = Instant::ZERO;
        while !sender.is_over(now) {
            now = sender.next_wakeup().expect("not over");
            while sender.poll(now).is_some() {}
        }
        assert_eq!(datagrams.count(), 875);
        assert_eq!(sender.sent(), 875, "7 Mbit/s are 875 packets of 1000 bytes a second");
        assert_eq!(now, Instant::ZERO + Span::from_secs(2));
    }

    #[test]
    fn the_rate_includes_the_headers() {
        let datagrams = Datagrams {
            direction: Direction::Down,
            rate: Bitrate::from_bps(800_000),
            size: 52,
            duration: Span::from_secs(1),
            timeout: Span::ZERO,
            late: LATE,
        };
        for (headers, packets) in [(HEADERS, 1250), (IPV6_HEADERS, 1000)] {
            let mut sender = Sender::new(datagrams, Instant::ZERO).with_headers(headers);
            let end = Instant::ZERO + Span::from_secs(1);
            while sender.poll(end).is_some() {}
            assert_eq!((datagrams.count_with(headers), sender.sent()), (packets, packets as u32));
        }
    }

    #[test]
    fn bursts_come_at_random_times_within_their_limits() {
        let spacing = Spacing { from: Span::from_secs(5), to: Span::from_secs(10), burst: 3 };
        let datagrams = Datagrams {
            direction: Direction::Down,
            rate: Bitrate::from_bps(1),
            size: 36,
            duration: Span::from_secs(3600),
            timeout: Span::from_secs(1),
            late: LATE,
        };
        let random = airpath_core::Seed::new(1).stream("spacing");
        let mut sender = Sender::in_bursts(datagrams, Instant::ZERO, spacing, random);
        let (mut now, mut bursts) = (Instant::ZERO, Vec::new());
        while !sender.is_over(now) {
            now = sender.next_wakeup().expect("not over");
            let before = sender.sent();
            while sender.poll(now).is_some() {}
            if sender.sent() > before {
                assert_eq!(sender.sent() - before, 3, "a burst is sent at once");
                bursts.push(now);
            }
        }
        assert_eq!(now, Instant::ZERO + Span::from_secs(3601), "the wait follows the stream's duration");
        let between: Vec<f64> = bursts.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
        assert!(between.iter().all(|time| (5.0..=10.0).contains(time)));
        assert!(*bursts.last().expect("bursts") < Instant::ZERO + Span::from_secs(3600));
        // The mean of 480 uniform values is 7.5 s with a deviation of 5 s / √12 / √480 = 66 ms.
        let mean = between.iter().sum::<f64>() / between.len() as f64;
        assert!((mean - 7.5).abs() < 0.33, "{mean}");
    }

    #[test]
    fn many_bursts_take_no_memory_before_they_are_due() {
        // A million bursts of 10,000 datagrams each second for a day.
        let spacing = Spacing { from: Span::from_micros(1), to: Span::from_micros(1), burst: 10_000 };
        let datagrams = Datagrams {
            direction: Direction::Down,
            rate: Bitrate::from_bps(1),
            size: 36,
            duration: Span::from_secs(86_400),
            timeout: Span::ZERO,
            late: LATE,
        };
        let random = airpath_core::Seed::new(1).stream("spacing");
        let mut sender = Sender::in_bursts(datagrams, Instant::ZERO, spacing, random);
        let now = Instant::ZERO + Span::from_micros(2);
        while sender.poll(now).is_some() {}
        assert_eq!(sender.sent(), 30_000);
        assert_eq!(sender.next_due(), Some(now + Span::from_micros(1)));
    }

    #[test]
    fn delays_are_one_way() {
        let mut receiver = Receiver::default();
        let sent = Instant::from_nanos(5);
        assert_eq!(receiver.receive(sent + Span::from_millis(3), 4, sent), Some(Span::from_millis(3)));
        assert_eq!(receiver.receive(sent + Span::from_millis(5), 4, sent), None, "a duplicate");
        assert_eq!((receiver.received(), receiver.duplicates(), receiver.delays().count()), (1, 1, 1));
    }
}
