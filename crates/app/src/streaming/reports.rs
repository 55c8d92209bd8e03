//! When the next RTCP report of an end is due (RFC 3550 §6.3).

use airpath_core::{Instant, RandomStream, Span};

use super::Session;

/// The timer of the reports of one end.
#[derive(Clone, Debug)]
pub struct ReportTimer {
    /// Least interval.
    least: Span,
    /// Rate of all reports, in bits per second.
    rate: f64,
    /// Mean size of the reports, in bytes.
    mean_size: f64,
    random: RandomStream,
    next: Instant,
    /// When feedback may be sent between two reports.
    feedback: Instant,
}

impl ReportTimer {
    /// Share of the session's rate for reports (RFC 3550 §6.2).
    const SHARE: f64 = 0.05;
    /// Both ends of a session. With one sender among two members, all share the rate (§6.3.1).
    const MEMBERS: f64 = 2.0;
    /// Longest calculated interval, in seconds: a day.
    const LONGEST: f64 = 86_400.0;
    /// Expected size of the first report: with headers, block and name.
    const FIRST_SIZE: f64 = 100.0;

    /// A timer that starts at `start`.
    pub fn new(session: &Session, start: Instant, random: RandomStream) -> Self {
        Self::with_rate(session.settings.report_interval, session.rate(), start, random)
    }

    /// A timer with the `least` interval of a session of `rate` bits per second.
    pub fn with_rate(least: Span, rate: f64, start: Instant, random: RandomStream) -> Self {
        let mut timer =
            Self { least, rate: rate * Self::SHARE, mean_size: Self::FIRST_SIZE, random, next: start, feedback: start };
        // The first interval has half the minimum (§6.2).
        timer.next = start + timer.interval(0.5);
        timer
    }

    /// The session has `rate` bits per second from now on.
    pub const fn set_rate(&mut self, rate: f64) {
        self.rate = rate * Self::SHARE;
    }

    /// When the next report is due.
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// When feedback may be sent at the earliest. Feedback has no least interval, and keeps the
    /// share of the rate (RFC 4585 §3.4, §3.5).
    pub const fn feedback(&self) -> Instant {
        self.feedback
    }

    /// Records that a compound with `payload` bytes after the UDP header was sent, as a `regular`
    /// report or as feedback before it.
    pub fn sent(&mut self, now: Instant, payload: usize, regular: bool) {
        self.mean_size += (payload as f64 + 28.0 - self.mean_size) / 16.0;
        self.feedback = now + self.interval(0.0);
        if regular {
            self.next = now + self.interval(1.0);
        }
    }

    /// The calculated interval, at random within half of it to either side. The divisor e − 3/2 of
    /// §6.3.1 compensates for timer reconsideration, which a session of two members does not need.
    fn interval(&mut self, share_of_least: f64) -> Span {
        let calculated = Self::MEMBERS * self.mean_size * 8.0 / self.rate;
        let interval = calculated.max(self.least.as_secs_f64() * share_of_least);
        Span::from_secs_f64(interval.min(Self::LONGEST) * (0.5 + self.random.uniform()))
    }
}
