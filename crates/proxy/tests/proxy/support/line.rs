//! The lines between the ends and the path.

use airpath_core::{Bitrate, Bytes, Instant, RandomStream, Seed, Span};
use airpath_wire::icmp::IcmpErrorKind;

/// One direction of a line: a rate with a queue before it, a delay, losses and reordering.
#[derive(Clone, Debug)]
pub struct Line {
    pub rate: Option<Bitrate>,
    /// Another rate from a time on.
    pub later_rate: Option<(Instant, Bitrate)>,
    pub delay: Span,
    /// Bytes that may wait.
    pub queue: u64,
    /// Each packet with a number that is a multiple of this is lost; none if zero.
    pub lose_every: u64,
    pub loss: f64,
    /// Upper bound of an extra delay of every fourth packet, which reorders.
    pub jitter: Span,
    /// Each ECN-capable packet with a number that is a multiple of this is marked; none if zero.
    pub mark_every: u64,
    /// What the router before it reports of packets that it does not send: those that are too big,
    /// or all.
    pub reports: Option<IcmpErrorKind>,
    /// Probability that a packet that arrives does so twice.
    pub duplication: f64,
    pub stream: RandomStream,
    count: u64,
    free_at: Instant,
}

impl Line {
    pub fn new(delay: Span) -> Self {
        Self {
            rate: None,
            later_rate: None,
            delay,
            queue: u64::MAX,
            lose_every: 0,
            loss: 0.0,
            jitter: Span::ZERO,
            mark_every: 0,
            reports: None,
            duplication: 0.0,
            stream: Seed::new(1).stream("line"),
            count: 0,
            free_at: Instant::ZERO,
        }
    }

    /// What the router before it reports of a packet of `size` bytes.
    pub fn error(&self, size: u32) -> Option<IcmpErrorKind> {
        let fits = |kind: &IcmpErrorKind| matches!(kind, IcmpErrorKind::TooBig { mtu } if size <= *mtu);
        self.reports.filter(|kind| !fits(kind))
    }

    /// When a packet of `size` bytes arrives; `None` if it is lost.
    pub fn send(&mut self, now: Instant, size: u32) -> Option<Instant> {
        self.count += 1;
        if let Some((time, rate)) = self.later_rate
            && now >= time
        {
            self.rate = Some(rate);
        }
        let size = Bytes::new(size.into());
        let mut at = now;
        if let Some(rate) = self.rate {
            let waiting = self.free_at.max(now).since(now);
            if rate.bytes_in(waiting).get() + size.get() > self.queue {
                return None;
            }
            self.free_at = self.free_at.max(now) + rate.time_for(size);
            at = self.free_at;
        }
        if self.lose_every > 0 && self.count.is_multiple_of(self.lose_every) || self.stream.uniform() < self.loss {
            return None;
        }
        let late = !self.jitter.is_zero() && self.stream.below(4) == 0;
        Some(at + self.delay + if late { self.extra() } else { Span::ZERO })
    }

    /// Whether the packet that was sent last is marked, if it is ECN-capable.
    pub const fn marks(&self) -> bool {
        self.mark_every > 0 && self.count.is_multiple_of(self.mark_every)
    }

    /// When a packet that arrives at `at` arrives once more, if it is duplicated.
    pub fn send_again(&mut self, at: Instant) -> Option<Instant> {
        let is_duplicated = self.duplication > 0.0 && self.stream.uniform() < self.duplication;
        is_duplicated.then(|| at + self.extra())
    }

    fn extra(&mut self) -> Span {
        Span::from_nanos(self.stream.below(self.jitter.as_nanos().max(1)))
    }
}
