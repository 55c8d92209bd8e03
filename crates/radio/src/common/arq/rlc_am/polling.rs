//! When a sender of the acknowledged mode polls for a status report, and when a receiver sends one
//! (TS 25.322 §9.7.1, §9.7.2, timers in §9.5).

use airpath_core::{Instant, Span};

use super::Rlc;

/// The polling of one sender.
#[derive(Clone, Debug)]
pub struct Polling {
    every_pdus: Option<u32>,
    every_packets: Option<u32>,
    window_percent: Option<u32>,
    timer: Option<Span>,
    prohibit: Option<Span>,
    periodic: Option<Span>,
    last: bool,
    last_repeat: bool,
    /// A poll is to be sent, with the next PDU or, if there is none, with one that is sent again
    /// for it.
    is_triggered: bool,
    prohibited_until: Instant,
    /// The poll that is not answered.
    waiting: Option<Waiting>,
    /// PDUs since the last poll: VT(PDU).
    pdus: u32,
    /// Packets whose last PDU had been sent at the last poll.
    polled_packets: u64,
    periodic_at: Option<Instant>,
}

/// The PDUs that the answer to a poll must cover (TS 25.322 §9.5 a).
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When Timer_Poll expires.
    expires: Instant,
    /// PDUs with sequence numbers up to here: VT(S) at the poll.
    next_sequence: u64,
    /// All transmissions up to the poll: an answer to the poll before does not stop the timer.
    transmissions: u64,
}

/// What a TTI did to the sender, as far as polling is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// PDUs sent, new or again.
    pub pdus: u32,
    /// Whether the last PDU in the buffer was among them.
    pub last: bool,
    /// Whether the last PDU that was to be sent again was among them.
    pub last_repeat: bool,
    /// How much of the window is in use, in percent.
    pub window_percent: u64,
    /// Packets whose last PDU was sent by now.
    pub ended: u64,
    /// The next new sequence number: VT(S).
    pub next_sequence: u64,
    /// How many transmissions there were.
    pub transmissions: u64,
}

impl Polling {
    /// A sender that has not polled.
    pub fn new(rlc: &Rlc) -> Self {
        Self {
            every_pdus: rlc.poll_pdus,
            every_packets: rlc.poll_packets,
            window_percent: rlc.poll_window,
            timer: rlc.timer_poll,
            prohibit: rlc.timer_poll_prohibit,
            periodic: rlc.timer_poll_periodic,
            last: rlc.poll_last,
            last_repeat: rlc.poll_last_repeat,
            is_triggered: false,
            prohibited_until: Instant::ZERO,
            waiting: None,
            pdus: 0,
            polled_packets: 0,
            periodic_at: None,
        }
    }

    /// Whether a poll is to be sent though there may be no PDU to send.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        self.is_triggered && self.prohibited_until <= now
    }

    /// Whether the last of the PDUs that were sent in a TTI polls.
    pub fn sent(&mut self, now: Instant, sent: Sent) -> bool {
        self.pdus += sent.pdus;
        self.is_triggered |= (self.last && sent.last)
            || (self.last_repeat && sent.last_repeat)
            || self.every_pdus.is_some_and(|every| self.pdus >= every)
            || self.every_packets.is_some_and(|every| sent.ended >= self.polled_packets + u64::from(every))
            || self.window_percent.is_some_and(|percent| sent.window_percent >= u64::from(percent));
        if let Some(period) = self.periodic {
            self.periodic_at.get_or_insert(now + period);
        }
        if !self.is_due(now) {
            return false;
        }
        self.is_triggered = false;
        self.pdus = 0;
        self.polled_packets = sent.ended;
        self.prohibited_until = self.prohibit.map_or(now, |span| now + span);
        let Sent { next_sequence, transmissions, .. } = sent;
        self.waiting = self.timer.map(|span| Waiting { expires: now + span, next_sequence, transmissions });
        true
    }

    /// A status report has arrived that covers the PDUs below `reported`, and the first
    /// `judged` transmissions.
    pub fn answered(&mut self, reported: u64, judged: u64, has_unacknowledged: bool) {
        if self.waiting.is_some_and(|poll| reported >= poll.next_sequence && judged >= poll.transmissions) {
            self.waiting = None;
        }
        if !has_unacknowledged {
            self.is_triggered = false;
            self.periodic_at = None;
        }
    }

    /// When something is to be done next: a timer expires, or polls are allowed again.
    #[inline]
    pub fn next_timer(&self, after: Instant) -> Option<Instant> {
        let allowed = self.is_triggered.then_some(self.prohibited_until).filter(|at| *at > after);
        [self.waiting.map(|poll| poll.expires), self.periodic_at, allowed].into_iter().flatten().min()
    }

    /// Handles the timers that expired by `now`.
    pub fn expire(&mut self, now: Instant) {
        if self.waiting.is_some_and(|poll| poll.expires <= now) {
            self.waiting = None;
            self.is_triggered = true;
        }
        if self.periodic_at.is_some_and(|at| at <= now) {
            self.periodic_at = None;
            self.is_triggered = true;
        }
    }

    /// Forgets all.
    pub fn reset(&mut self) {
        self.is_triggered = false;
        self.waiting = None;
        self.periodic_at = None;
        self.pdus = 0;
        self.prohibited_until = Instant::ZERO;
    }
}

/// The reports of one receiver.
#[derive(Clone, Debug)]
pub struct Reporting {
    prohibit: Option<Span>,
    is_triggered: bool,
    prohibited_until: Instant,
}

impl Reporting {
    /// A receiver that has not reported.
    pub const fn new(rlc: &Rlc) -> Self {
        Self { prohibit: rlc.timer_status_prohibit, is_triggered: false, prohibited_until: Instant::ZERO }
    }

    /// Requests a report, as soon as one is allowed.
    pub const fn trigger(&mut self) {
        self.is_triggered = true;
    }

    /// Whether a report is to be sent.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        self.is_triggered && self.prohibited_until <= now
    }

    /// A report was sent.
    pub fn sent(&mut self, now: Instant) {
        self.is_triggered = false;
        self.prohibited_until = self.prohibit.map_or(now, |span| now + span);
    }

    /// When the requested report is allowed.
    #[inline]
    pub fn next_timer(&self, after: Instant) -> Option<Instant> {
        self.is_triggered.then_some(self.prohibited_until).filter(|at| *at > after)
    }
}
