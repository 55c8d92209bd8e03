//! Scheduling requests of a mobile without a grant (TS 36.321 and TS 38.321 §5.4.4), and random
//! access in their place (§5.1.5).

use airpath_core::{Instant, Span};

use super::config;
use super::plan::Plan;

/// The requests of one mobile.
#[derive(Clone, Debug)]
pub struct SchedulingRequest {
    period: Span,
    /// Where in the period the mobile's occasion is.
    offset: Span,
    max_transmissions: u8,
    random_access: config::RandomAccess,
    /// The next occasion, while a request is pending.
    next: Option<Instant>,
    transmissions: u8,
    /// When the first message of random access is sent.
    message_at: Option<Instant>,
    /// One was sent, and no grant has come.
    is_awaited: bool,
}

/// What a mobile sends at an occasion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A scheduling request, on the PUCCH.
    Scheduling,
    /// A preamble; the first message, with a buffer status report, follows then.
    Preamble(Instant),
}

impl SchedulingRequest {
    /// None is pending.
    pub fn new(config: &config::Uplink, offset: Span) -> Self {
        Self {
            period: config.sr_period,
            offset,
            max_transmissions: config.sr_max_transmissions,
            random_access: config.random_access.clone(),
            next: None,
            transmissions: 0,
            message_at: None,
            is_awaited: false,
        }
    }

    /// Whether one is pending.
    pub const fn is_pending(&self) -> bool {
        self.next.is_some() || self.message_at.is_some()
    }

    /// A request becomes pending at `now`: it is sent at a later occasion.
    pub fn trigger(&mut self, now: Instant) {
        if !self.is_pending() {
            self.transmissions = 0;
            self.next = Some(self.occasion(now));
        }
    }

    /// The first occasion after `now`.
    fn occasion(&self, now: Instant) -> Instant {
        self.occasion_from(Instant::from_nanos(now.as_nanos() + 1))
    }

    /// The first occasion from `from` on.
    fn occasion_from(&self, from: Instant) -> Instant {
        let period = self.period.as_nanos();
        let phase = (from.as_nanos() + period - self.offset.as_nanos() % period) % period;
        from + Span::from_nanos((period - phase) % period)
    }

    /// When something is sent next.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    /// When the first message of random access is sent.
    #[inline]
    pub fn message_at(&self) -> Option<Instant> {
        self.message_at
    }

    /// What is to be sent at `now` is sent later: a request at the next occasion, the message of
    /// random access at `later`.
    pub fn postpone(&mut self, now: Instant, later: Instant) {
        if self.next.is_some_and(|at| at <= now) {
            self.next = Some(self.occasion(now));
        }
        if self.message_at.is_some_and(|at| at <= now) {
            self.message_at = Some(later);
        }
    }

    /// What is sent at `now`. The next occasion follows if there is no grant until then. An
    /// occasion that was missed is replaced by the next one.
    pub fn send(&mut self, now: Instant, plan: &Plan) -> Option<Request> {
        let at = self.next.filter(|at| *at <= now)?;
        if at < now {
            self.next = Some(self.occasion_from(now));
            self.next.filter(|at| *at <= now)?;
        }
        if self.transmissions < self.max_transmissions {
            self.transmissions += 1;
            self.is_awaited = true;
            self.next = Some(self.occasion(now));
            return Some(Request::Scheduling);
        }
        self.next = None;
        let preamble = plan.uplink_from(now.round_up_to(self.random_access.period));
        let message = plan.uplink_from(preamble + self.random_access.message);
        self.message_at = Some(message);
        Some(Request::Preamble(message))
    }

    /// Whether the mobile waits for the answer to one that it has sent.
    #[inline]
    pub const fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// A grant has come.
    pub const fn granted(&mut self) {
        self.is_awaited = false;
    }

    /// The first message of random access was sent; a grant is to answer it (TS 36.321 §5.1.5).
    pub const fn message_sent(&mut self) {
        self.cancel();
        self.is_awaited = true;
    }

    /// A buffer status report has gone: none is pending.
    pub const fn cancel(&mut self) {
        (self.next, self.message_at, self.transmissions, self.is_awaited) = (None, None, 0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ofdma::plan::tests::plan;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn request() -> SchedulingRequest {
        let text = r#"
            below_downlink = "0 dB"
            modulation = "16qam"
            sr_period = "10 ms"
            sr_max_transmissions = 4
            first_grant = "100 B"
            periodic_bsr = "20 ms"
            retx_bsr = "320 ms"
            random_access = { period = "10 ms", message = "10 ms" }
        "#;
        SchedulingRequest::new(&toml::from_str(text).expect("a configuration"), Span::from_millis(3))
    }

    #[test]
    fn requests_go_at_their_occasions_and_then_by_random_access() {
        let (mut request, plan) = (request(), plan(""));
        request.trigger(at(13));
        for occasion in [23, 33, 43, 53] {
            assert_eq!(request.next(), Some(at(occasion)), "what comes with the occasion waits for the next");
            assert_eq!(request.send(at(occasion), &plan), Some(Request::Scheduling));
        }
        assert_eq!(request.send(at(63), &plan), Some(Request::Preamble(at(80))));
        assert_eq!((request.next(), request.message_at()), (None, Some(at(80))));
        assert!(request.is_awaited());
        request.message_sent();
        assert!(request.is_awaited() && !request.is_pending(), "a grant answers the message");
        request.granted();
        assert!(!request.is_awaited());
        request.trigger(at(82));
        assert_eq!(request.next(), Some(at(83)));
    }
}
