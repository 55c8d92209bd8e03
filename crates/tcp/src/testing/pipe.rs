//! One direction of the path: hops in a row, then misfortune.

use std::collections::VecDeque;

use airpath_core::{Bitrate, Bytes, Instant, Probability, RandomStream, Seed, Span};

/// A hop: a drop-tail queue before a rate, then a delay.
#[derive(Clone, Debug)]
pub struct Hop {
    rate: Option<Bitrate>,
    delay: Span,
    /// Packets that may wait, besides the one in transmission.
    queue: usize,
    /// When each packet that waits or is in transmission will have left.
    leaving: VecDeque<Instant>,
}

impl Hop {
    /// A hop with a queue for `queue` packets.
    pub const fn new(rate: Option<Bitrate>, delay: Span, queue: usize) -> Self {
        Self { rate, delay, queue, leaving: VecDeque::new() }
    }

    /// When a packet of `size` bytes that comes at `now` is at the other end; `None` if the queue
    /// is full.
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

/// One direction of a path. What happens to a packet by chance comes from a stream of its own.
#[derive(Clone, Debug)]
pub struct Pipe {
    hops: Vec<Hop>,
    loss: Probability,
    duplication: Probability,
    reordering: Probability,
    /// The most that a packet that is overtaken, or comes twice, is late.
    lateness: Span,
    /// Packets with these numbers, counted from zero in the order of sending, are lost before the
    /// first hop.
    lost: Vec<u64>,
    /// No packet arrives that is sent between these times.
    outages: Vec<(Instant, Instant)>,
    /// A packet that is sent between these times takes so much longer, and all that follow wait for
    /// it.
    spikes: Vec<(Instant, Instant, Span)>,
    /// Packets of which every so many bears a mark; none if zero.
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

    /// Hops in a row.
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

    /// With its own stream, and these chances of loss, duplication and reordering; a packet that is
    /// duplicated or overtaken is late by up to `lateness`.
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

    /// Loses the packets with these numbers, counted from zero, before the first hop.
    #[must_use]
    pub fn lose(mut self, numbers: &[u64]) -> Self {
        self.lost.extend_from_slice(numbers);
        self
    }

    /// Loses all that is sent from `from` until `until`.
    #[must_use]
    pub fn outage(mut self, from: Instant, until: Instant) -> Self {
        self.outages.push((from, until));
        self
    }

    /// What is sent from `from` until `until` takes `extra` longer.
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

    /// Puts in a packet of `size` bytes; calls `arrive` with when it arrives and whether it is
    /// marked, for each copy.
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
        // The order is kept, except by chance.
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
