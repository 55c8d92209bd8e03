//! Ping: echo requests at an interval, and the round trips of the replies.

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use crate::phase::Phase;
use crate::samples::Samples;

/// A series of echo requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// Data bytes of an echo request, after the ICMP header; 56 is the default of Unix.
    pub size: u32,
    /// Time from one request to the next.
    pub interval: Span,
    /// Requests to send.
    pub count: u32,
    /// Time to wait for the last replies.
    pub timeout: Span,
}

impl Default for Ping {
    fn default() -> Self {
        Self { size: 56, interval: Span::from_secs(1), count: 10, timeout: Span::from_secs(10) }
    }
}

/// The requesting end.
#[derive(Clone, Debug)]
pub struct Pinger {
    ping: Ping,
    started: Instant,
    phase: Phase,
    due: Instant,
    sent: u32,
    answered: Vec<bool>,
    round_trips: Samples,
}

impl Pinger {
    /// A pinger whose request n is due n intervals after `start`, plus its offset by `phase`.
    pub fn new(ping: Ping, start: Instant, mut phase: Phase) -> Self {
        Self {
            ping,
            started: start,
            due: start + phase.draw(ping.interval),
            phase,
            sent: 0,
            answered: vec![false; ping.count as usize],
            round_trips: Samples::default(),
        }
    }

    /// The number of the next echo request, if it is due.
    pub fn poll(&mut self, now: Instant) -> Option<u32> {
        if self.sent == self.ping.count || self.due > now {
            return None;
        }
        self.sent += 1;
        if self.sent < self.ping.count {
            let Ping { interval, .. } = self.ping;
            self.due = self.started + interval * u64::from(self.sent) + self.phase.draw(interval);
        }
        Some(self.sent - 1)
    }

    /// Records the reply to request `sequence`, sent at `sent`: its round trip, or `None` for a
    /// duplicate or an invalid number.
    pub fn reply(&mut self, now: Instant, sequence: u32, sent: Instant) -> Option<Span> {
        let answered = self.answered.get_mut(sequence as usize)?;
        if std::mem::replace(answered, true) {
            return None;
        }
        let round_trip = now.since(sent);
        self.round_trips.add(round_trip);
        Some(round_trip)
    }

    /// When to call [`Self::poll`] next, or when the wait for missing replies ends.
    pub fn next_wakeup(&self) -> Option<Instant> {
        match self.is_over(Instant::ZERO) {
            true => None,
            false if self.sent < self.ping.count => Some(self.due),
            false => Some(self.deadline()),
        }
    }

    /// Whether all replies arrived, or the wait for them has ended.
    pub fn is_over(&self, now: Instant) -> bool {
        self.sent == self.ping.count && (self.round_trips.count() == u64::from(self.sent) || now >= self.deadline())
    }

    /// Requests sent.
    pub const fn sent(&self) -> u32 {
        self.sent
    }

    /// The round trips of the replies.
    pub const fn round_trips(&self) -> &Samples {
        &self.round_trips
    }

    /// When the wait for missing replies ends; valid once all requests are sent.
    fn deadline(&self) -> Instant {
        self.due + self.ping.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn sends_requests_at_each_interval_and_counts_each_reply_once() {
        let ping = Ping { interval: Span::from_millis(100), count: 2, ..Ping::default() };
        let mut pinger = Pinger::new(ping, at(50), Phase::ZERO);
        assert_eq!((pinger.next_wakeup(), pinger.poll(at(49))), (Some(at(50)), None));
        assert_eq!((pinger.poll(at(50)), pinger.poll(at(50))), (Some(0), None));
        assert_eq!(pinger.reply(at(80), 0, at(50)), Some(Span::from_millis(30)));
        assert_eq!(pinger.reply(at(81), 0, at(50)), None, "a duplicate");
        assert_eq!(pinger.reply(at(81), 9, at(50)), None, "never sent");
        assert_eq!(pinger.poll(at(150)), Some(1));
        assert!(!pinger.is_over(at(160)));
        assert_eq!(pinger.next_wakeup(), Some(at(10_150)));
        assert!(pinger.is_over(at(10_150)), "the second timed out");
        pinger.reply(at(10_200), 1, at(150));
        assert!(pinger.next_wakeup().is_none() && pinger.round_trips().count() == 2);
    }
}
