//! When a sender of the acknowledged mode polls for a status report, and when a receiver sends one
//! (TS 25.322 §9.7.1, §9.7.2, timers in §9.5).

use airpath_core::{Instant, Span, earliest};

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
    /// VT(PDU): PDUs sent, modulo Poll_PDU.
    pdus: u32,
    /// Packets whose last PDU had been sent when VT(SDU) returned to zero.
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
        // TS 25.322 §9.4 (recalled): VT(PDU) returns to zero when it reaches Poll_PDU, and VT(SDU)
        // when it reaches Poll_SDU. No other trigger resets them.
        let by_pdus = self.every_pdus.is_some_and(|every| {
            let count = self.pdus + sent.pdus;
            self.pdus = count % every;
            count >= every
        });
        let by_packets = self.every_packets.is_some_and(|every| {
            let count = sent.ended - self.polled_packets;
            self.polled_packets = sent.ended - count % u64::from(every);
            count >= u64::from(every)
        });
        self.is_triggered |= by_pdus
            || by_packets
            || (self.last && sent.last)
            || (self.last_repeat && sent.last_repeat)
            || self.window_percent.is_some_and(|percent| sent.window_percent >= u64::from(percent));
        if let Some(period) = self.periodic {
            self.periodic_at.get_or_insert(now + period);
        }
        if !self.is_due(now) {
            return false;
        }
        self.is_triggered = false;
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
        earliest([self.waiting.map(|poll| poll.expires), self.periodic_at, allowed])
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An RLC that never polls, but for these settings.
    fn rlc(more: &str) -> Rlc {
        let text = "window = 100\nmax_dat = 4\ntimer_rst = \"1 s\"\nmax_rst = 4\n";
        let mut table: toml::Table = text.parse().expect("toml");
        for key in ["poll_last", "poll_last_repeat", "status_missing"] {
            table.insert(key.to_owned(), false.into());
        }
        table.extend(more.parse::<toml::Table>().expect(more));
        table.try_into().expect(more)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// One PDU of a full buffer, none of a packet's last, after this number of transmissions.
    const fn sent(transmissions: u64) -> Sent {
        let (last, last_repeat, window_percent, ended) = (false, false, 0, 0);
        Sent { pdus: 1, last, last_repeat, window_percent, ended, next_sequence: transmissions, transmissions }
    }

    #[test]
    fn the_last_pdu_polls_if_configured() {
        // TS 25.322 §9.7.1: "last PDU in buffer", "last PDU in retransmission buffer".
        let polls = |more: &str, sent| Polling::new(&rlc(more)).sent(at(0), sent);
        let (last, last_repeat) = (Sent { last: true, ..sent(1) }, Sent { last_repeat: true, ..sent(1) });
        for (more, expected) in [
            ("", [false, false, false]),
            ("poll_last = true", [false, true, false]),
            ("poll_last_repeat = true", [false, false, true]),
        ] {
            assert_eq!([sent(1), last, last_repeat].map(|sent| polls(more, sent)), expected, "{more}");
        }
    }

    #[test]
    fn one_in_several_pdus_packets_or_a_part_of_the_window_polls() {
        let mut pdus = Polling::new(&rlc("poll_pdus = 3"));
        assert_eq!([1, 2, 3, 4, 5, 6].map(|n| pdus.sent(at(n), sent(n))), [false, false, true, false, false, true]);
        assert!(pdus.sent(at(7), Sent { pdus: 4, ..sent(10) }), "several in a TTI count, too");
        let mut packets = Polling::new(&rlc("poll_packets = 2"));
        let mut of = |n, ended| packets.sent(at(n), Sent { ended, ..sent(n) });
        assert_eq!([of(1, 1), of(2, 2), of(3, 3), of(4, 4)], [false, true, false, true]);
        let mut window = Polling::new(&rlc("poll_window = 50"));
        let mut of = |n, window_percent| window.sent(at(n), Sent { window_percent, ..sent(n) });
        assert_eq!([of(1, 49), of(2, 50), of(3, 51), of(4, 0)], [false, true, true, false]);
    }

    #[test]
    fn other_polls_do_not_restart_the_counters() {
        // TS 25.322 §9.4: VT(PDU) and VT(SDU) return to zero at Poll_PDU and Poll_SDU only.
        let mut pdus = Polling::new(&rlc("poll_pdus = 3\npoll_last = true"));
        let mut of = |n, last| pdus.sent(at(n), Sent { last, ..sent(n) });
        let polls = [of(1, false), of(2, true), of(3, false), of(4, true), of(5, false), of(6, false)];
        assert_eq!(polls, [false, true, true, true, false, true]);
        let mut packets = Polling::new(&rlc("poll_packets = 2\npoll_last = true"));
        let mut of = |n, last| packets.sent(at(n), Sent { last, ended: n, ..sent(n) });
        assert_eq!([of(1, true), of(2, false), of(3, true), of(4, false)], [true, true, true, true]);
    }

    #[test]
    fn polls_keep_their_distance() {
        // Timer_Poll_Prohibit: the poll is delayed until it expires.
        let mut polling = Polling::new(&rlc("poll_pdus = 1\ntimer_poll_prohibit = \"100 ms\""));
        assert!(polling.sent(at(10), sent(1)));
        assert!(!polling.is_due(at(50)) && !polling.sent(at(50), sent(2)));
        assert_eq!((polling.is_due(at(109)), polling.is_due(at(110))), (false, true));
        assert_eq!((polling.next_timer(at(50)), polling.next_timer(at(110))), (Some(at(110)), None));
        assert!(polling.sent(at(110), sent(3)));
        assert!(!polling.is_due(at(500)), "nothing has been sent since");
    }

    #[test]
    fn an_unanswered_poll_is_repeated() {
        let mut polling = Polling::new(&rlc("poll_last = true\ntimer_poll = \"200 ms\""));
        let poll = Sent { last: true, ..sent(5) };
        assert!(polling.sent(at(10), poll));
        assert_eq!(polling.next_timer(at(10)), Some(at(210)));
        polling.expire(at(209));
        assert!(!polling.is_due(at(209)));
        polling.expire(at(210));
        assert!(polling.is_due(at(210)));
        assert!(polling.sent(at(220), sent(6)), "with the next PDU");
        // TS 25.322 §9.5 a: an answer stops the timer if it covers all PDUs up to the poll.
        for (reported, judged) in [(5, 6), (6, 5)] {
            polling.answered(reported, judged, true);
            assert_eq!(polling.next_timer(at(220)), Some(at(420)), "{reported}, {judged}");
        }
        polling.answered(6, 6, true);
        assert_eq!(polling.next_timer(at(220)), None);
    }

    #[test]
    fn polls_are_periodic_while_there_is_something_to_acknowledge() {
        let mut polling = Polling::new(&rlc("timer_poll_periodic = \"300 ms\""));
        assert_eq!(polling.next_timer(at(0)), None);
        assert!(!polling.sent(at(10), sent(1)) && !polling.sent(at(20), sent(2)));
        assert_eq!(polling.next_timer(at(20)), Some(at(310)), "since the first");
        polling.expire(at(310));
        assert!(polling.is_due(at(310)) && polling.sent(at(310), sent(3)));
        assert_eq!(polling.next_timer(at(310)), Some(at(610)));
        polling.answered(3, 3, false);
        assert_eq!(polling.next_timer(at(320)), None, "all is acknowledged");
    }

    #[test]
    fn a_reset_forgets_polls() {
        let more = "poll_pdus = 2\ntimer_poll = \"1 s\"\ntimer_poll_prohibit = \"1 s\"\ntimer_poll_periodic = \"1 s\"";
        let mut polling = Polling::new(&rlc(more));
        polling.sent(at(0), sent(1));
        assert!(polling.sent(at(1), sent(2)));
        polling.sent(at(2), sent(3));
        polling.reset();
        assert_eq!(polling.next_timer(at(2)), None);
        assert_eq!([3, 4].map(|n| polling.sent(at(n), sent(n))), [false, true], "neither counted nor prohibited");
    }

    #[test]
    fn reports_keep_their_distance() {
        let mut reporting = Reporting::new(&rlc("timer_status_prohibit = \"100 ms\""));
        assert!(!reporting.is_due(at(10)));
        reporting.trigger();
        assert!(reporting.is_due(at(10)));
        assert_eq!(reporting.next_timer(at(10)), None, "it is allowed now");
        reporting.sent(at(10));
        assert!(!reporting.is_due(at(200)));
        reporting.trigger();
        assert_eq!(reporting.next_timer(at(20)), Some(at(110)));
        assert_eq!((reporting.is_due(at(109)), reporting.is_due(at(110))), (false, true));
    }
}
