//! Flow control between the RLC in the RNC and the buffer of the base station (TS 25.435 §5.8, TS
//! 25.877).
//!
//! The RNC keeps what waits, and sends what the base station allows. An RNC that has something and
//! no credit left requests capacity (capacity request, or the buffer size in each frame); the base
//! station answers with as many credits as there is room for beyond what is in its buffer, in
//! flight, and allowed already, but not more often than each interval.

use std::collections::VecDeque;

use airpath_core::{Instant, Span, earliest};

use super::buffer::{Buffer, Packing};
use super::unit::Unit;
use crate::common::multiplexing::due::pop_due;

/// The Iub of one mobile.
#[derive(Debug)]
pub struct Iub {
    delay: Span,
    interval: Span,
    packing: Packing,
    /// The largest PDU, in credits: PDUs, or octets of them where their size is flexible (TS 25.435
    /// §6.2.7.8, allocation of type 2: the credits times the largest length; recalled).
    largest: u32,
    /// Credits of what the base station has room for.
    room: u32,
    /// What the RNC may send.
    credits: u32,
    /// When credits come to the RNC, and how many.
    allocation: Option<(Instant, u32)>,
    /// When the base station allocates next.
    allocates_at: Option<Instant>,
    /// It does not before.
    earliest: Instant,
    /// It has had no room at the last interval, and nothing has left the buffer since.
    is_full: bool,
    /// When frames arrive, and how many PDUs they have.
    frames: VecDeque<(Instant, u32)>,
    in_flight: VecDeque<Unit>,
    /// The credits that these have taken.
    credits_in_flight: u32,
    /// What the base station has to send.
    pub buffer: Buffer,
    /// When it got something while it had nothing.
    filled_at: Instant,
}

impl Iub {
    /// No request and no credit.
    pub const fn new(delay: Span, interval: Span, packing: Packing, largest: u32, room: u32) -> Self {
        Self {
            delay,
            interval,
            packing,
            largest,
            room,
            credits: 0,
            allocation: None,
            allocates_at: None,
            earliest: Instant::ZERO,
            is_full: false,
            frames: VecDeque::new(),
            in_flight: VecDeque::new(),
            credits_in_flight: 0,
            buffer: Buffer::new(packing),
            filled_at: Instant::ZERO,
        }
    }

    /// How many PDUs the RNC may send at once: where their size is flexible, one after the other as
    /// long as there are credits for the largest.
    #[inline]
    pub fn may_send(&self) -> u32 {
        match self.packing {
            Packing::WholePdus => self.credits,
            Packing::Segments => u32::from(self.credits >= self.largest),
        }
    }

    /// When something happens next.
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        let frame = self.frames.front().map(|(at, _)| *at);
        earliest([frame, self.allocates_at, self.allocation.map(|(at, _)| at)])
    }

    /// Does what is due at `now`.
    pub fn work(&mut self, now: Instant) {
        while let Some(units) = pop_due(&mut self.frames, now) {
            if self.buffer.is_empty() {
                self.filled_at = now;
            }
            let arrived = self.in_flight.drain(..units as usize);
            self.buffer.extend(arrived.inspect(|unit| self.credits_in_flight -= self.packing.credits(unit)));
        }
        if self.allocates_at.take_if(|at| *at <= now).is_some() {
            let taken = self.buffer.credits() + self.credits_in_flight + self.credits;
            self.earliest = now + self.interval;
            match self.room.saturating_sub(taken) {
                0 => self.is_full = true,
                credits => self.allocation = Some((now + self.delay, credits)),
            }
        }
        if let Some((_, credits)) = self.allocation.take_if(|(at, _)| *at <= now) {
            self.credits += credits;
        }
    }

    /// The RNC sends these, which it has credits for.
    pub fn send(&mut self, now: Instant, units: impl Iterator<Item = Unit>) {
        let before = self.in_flight.len();
        self.in_flight.extend(units);
        let count = (self.in_flight.len() - before) as u32;
        let taken = self.in_flight.range(before..).map(|unit| self.packing.credits(unit)).sum::<u32>();
        self.credits -= taken;
        self.credits_in_flight += taken;
        if count > 0 {
            self.frames.push_back((now + self.delay, count));
        }
    }

    /// What the base station has had since before `at` is lost at `now`.
    pub fn lose_before(&mut self, now: Instant, at: Instant) {
        if self.filled_at <= at {
            self.buffer.clear();
            self.drained(now);
        }
    }

    /// Something has left the buffer at `now`: if it was full, the base station allocates at the
    /// next interval.
    pub fn drained(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_full) {
            if self.earliest <= now {
                let passed = now.since(self.earliest).as_nanos() / self.interval.as_nanos();
                self.earliest += self.interval * (passed + 1);
            }
            self.allocates_at = Some(self.earliest);
        }
    }

    /// The RNC has something, and no credit.
    pub fn request_capacity(&mut self, now: Instant) {
        if !self.is_full && self.allocation.is_none() && self.allocates_at.is_none() {
            self.allocates_at = Some((now + self.delay).max(self.earliest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_never_exceed_the_room() {
        let ms = |millis: u64| Instant::ZERO + Span::from_millis(millis);
        let mut iub = Iub::new(Span::from_millis(5), Span::from_millis(20), Packing::WholePdus, 1, 10);
        iub.request_capacity(ms(0));
        iub.request_capacity(ms(1));
        assert_eq!(iub.next_event(), Some(ms(5)), "the base station hears of it");
        iub.work(ms(5));
        iub.work(ms(10));
        assert_eq!(iub.credits, 10);
        iub.send(ms(10), std::iter::repeat_n(Unit::default(), 10));
        assert_eq!((iub.credits, iub.next_event()), (0, Some(ms(15))));
        iub.request_capacity(ms(10));
        iub.work(ms(15));
        assert_eq!((iub.buffer.waiting(), iub.next_event()), (10, Some(ms(25))), "no sooner than each interval");
        iub.work(ms(25));
        iub.request_capacity(ms(30));
        assert_eq!(iub.next_event(), None, "the buffer is full");
        iub.buffer.take(4, &mut Vec::new());
        iub.drained(ms(31));
        assert_eq!(iub.next_event(), Some(ms(45)), "at the next interval");
        iub.work(ms(45));
        iub.work(ms(50));
        assert_eq!(iub.credits, 4);
    }
    #[test]
    fn credits_of_pdus_of_flexible_size_are_octets() {
        let ms = |millis: u64| Instant::ZERO + Span::from_millis(millis);
        let mut iub = Iub::new(Span::from_millis(5), Span::from_millis(20), Packing::Segments, 1000, 2500);
        iub.request_capacity(ms(0));
        iub.work(ms(5));
        iub.work(ms(10));
        let mut sent = 0;
        while iub.may_send() > 0 {
            iub.send(ms(10), std::iter::once(Unit { octets: 600, ..Unit::default() }));
            sent += 1;
        }
        assert_eq!((sent, iub.credits), (3, 700), "no credits for the largest");
        iub.work(ms(15));
        assert_eq!((iub.buffer.credits(), iub.credits_in_flight), (1800, 0));
        iub.request_capacity(ms(15));
        iub.work(ms(25));
        assert_eq!(iub.next_event(), None, "1800 in the buffer and 700 allowed are all that there is room for");
    }
}
