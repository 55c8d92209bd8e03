//! One direction of the path: a chain of hops, then impairments.

use std::collections::VecDeque;

use airpath_core::{Bitrate, Bytes, Instant, Probability, RandomStream, Seed, Span};

/// A hop: a drop-tail queue before a rate, then a delay.
#[derive(Clone, Debug)]
pub struct Hop {
    rate: Option<Bitrate>,
    delay: Span,
    /// Packets that may wait, beside the one in transmission.
    queue: usize,
    /// Departure times of the packets that wait or are in transmission.
    leaving: VecDeque<Instant>,
}

impl Hop {
    /// A hop with a queue for `queue` packets.
    pub const fn new(rate: Option<Bitrate>, delay: Span, queue: usize) -> Self {
        Self { rate, delay, queue, leaving: VecDeque::new() }
    }

    /// Arrival time at the other end of a packet of `size` bytes that enters at `now`; `None` if
    /// the queue is full.
    fn pass(&mut self, now: Instant, size: u32) -> Option<Instant> {
        let Some(rate) = self.rate else { return Some(now + self.delay) };
        while self.leaving.front().is_some_and(|left| *left <= now) {
            self.leaving.pop_front();
        }
        if self.leaving.len() > self.queue {
            return None;
        }
        let start = self.leaving.back().copied().unwrap_or(now).max(now);
        let left = start + rate.time_for(Bytes::new(u64::from(size)));
        self.leaving.push_back(left);
        Some(left + self.delay)
    }
}

/// One direction of a path. Random impairments have their own stream.
#[derive(Clone, Debug)]
pub struct Pipe {
    hops: Vec<Hop>,
    loss: Probability,
    duplication: Probability,
    reordering: Probability,
    /// Upper bound of the extra delay of a reordered or duplicated packet.
    lateness: Span,
    /// Numbers of the packets that are lost before the first hop, from zero in the order of
    /// sending.
    lost: Vec<u64>,
    /// Packets sent between these times are lost.
    outages: Vec<(Instant, Instant)>,
    /// Packets sent between these times have this extra delay, and all that follow wait for them.
    spikes: Vec<(Instant, Instant, Span)>,
    /// Every packet with a multiple of this number is CE marked; none if zero.
    mark_every: u64,
    count: u64,
    last: Instant,
    chance: RandomStream,
}

impl Pipe {
    /// A pipe that only delays.
    pub fn new(delay: Span) -> Self {
        Self::of(vec![Hop::new(None, delay, usize::MAX)])
    }

    /// A chain of hops.
    pub fn of(hops: Vec<Hop>) -> Self {
        Self {
            hops,
            loss: Probability::NEVER,
            duplication: Probability::NEVER,
            reordering: Probability::NEVER,
            lateness: Span::ZERO,
            lost: Vec::new(),
            outages: Vec::new(),
            spikes: Vec::new(),
            mark_every: 0,
            count: 0,
            last: Instant::ZERO,
            chance: Seed::new(0).stream("pipe"),
        }
    }

    /// With a rate at the first hop, and no limit on its queue.
    #[must_use]
    pub fn rate(mut self, rate: Bitrate) -> Self {
        self.hops[0].rate = Some(rate);
        self.hops[0].queue = usize::MAX;
        self
    }

    /// With a limit on the queue of the first hop.
    #[must_use]
    pub fn queue(mut self, packets: usize) -> Self {
        self.hops[0].queue = packets;
        self
    }

    /// Adds a random stream with these probabilities of loss, duplication and reordering; a
    /// duplicated or reordered packet has up to `lateness` of extra delay.
    #[must_use]
    pub fn chance(mut self, seed: u64, loss: f64, duplication: f64, reordering: f64, lateness: Span) -> Self {
        let probability = |p| Probability::new(p).expect("a probability from 0 to 1");
        self.loss = probability(loss);
        self.duplication = probability(duplication);
        self.reordering = probability(reordering);
        self.lateness = lateness;
        self.chance = Seed::new(seed).stream("pipe");
        self
    }

    /// Drops the packets with these numbers, counted from zero, before the first hop.
    #[must_use]
    pub fn lose(mut self, numbers: &[u64]) -> Self {
        self.lost.extend_from_slice(numbers);
        self
    }

    /// Drops everything sent from `from` until `until`.
    #[must_use]
    pub fn outage(mut self, from: Instant, until: Instant) -> Self {
        self.outages.push((from, until));
        self
    }

    /// Delays everything sent from `from` until `until` by `extra`.
    #[must_use]
    pub fn spike(mut self, from: Instant, until: Instant, extra: Span) -> Self {
        self.spikes.push((from, until, extra));
        self
    }

    /// Marks every `every`th packet.
    #[must_use]
    pub const fn mark(mut self, every: u64) -> Self {
        self.mark_every = every;
        self
    }

    /// Sends a packet of `size` bytes; calls `arrive` with arrival time and mark of each copy.
    pub(super) fn send(&mut self, now: Instant, size: u32, mut arrive: impl FnMut(Instant, bool)) {
        let number = self.count;
        self.count += 1;
        let chance = self.loss != Probability::NEVER && self.chance.chance(self.loss);
        if chance || self.lost.contains(&number) {
            return;
        }
        let mut at = now;
        for hop in &mut self.hops {
            match hop.pass(at, size) {
                Some(passed) => at = passed,
                None => return,
            }
        }
        for (_, _, extra) in self.spikes.iter().filter(|(from, until, _)| *from <= now && now < *until) {
            at += *extra;
        }
        // The order is preserved, except by random reordering.
        at = at.max(self.last);
        self.last = at;
        let lost = self.outages.iter().any(|(from, until)| *from <= now && now < *until);
        if lost {
            return;
        }
        let marked = self.mark_every > 0 && number % self.mark_every == self.mark_every - 1;
        if self.duplication != Probability::NEVER && self.chance.chance(self.duplication) {
            let late = self.late();
            arrive(at + late, marked);
        }
        if self.reordering != Probability::NEVER && self.chance.chance(self.reordering) {
            at += self.late();
        }
        arrive(at, marked);
    }

    fn late(&mut self) -> Span {
        Span::from_nanos(self.chance.below(self.lateness.as_nanos().max(1)))
    }
}
