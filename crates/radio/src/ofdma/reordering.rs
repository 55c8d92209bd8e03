//! The unacknowledged mode of the RLC of LTE (TS 36.322 §5.1.2): PDUs are put into their order and
//! never repeated.

use std::collections::VecDeque;

use airpath_core::Instant;
use airpath_core::range_set::{Range, RangeSet};

use super::config::Unacknowledged;
use super::rlc::{Cut, Pdu};

/// UM_Window_Size with sequence numbers of 10 bits (TS 36.322 §7.2).
const WINDOW: u64 = 512;

/// Both ends of one direction.
#[derive(Clone, Debug)]
pub struct Um {
    config: Unacknowledged,
    /// The PDUs from `next` on.
    sent: VecDeque<Range<u64>>,
    received: RangeSet<u64>,
    /// VR(UR): the first PDU that is still waited for.
    next: u64,
    /// VR(UH): after the highest that was received.
    highest: u64,
    /// VR(UX): after the one that started t-Reordering.
    reordering_from: u64,
    /// When t-Reordering expires.
    reordering_at: Option<Instant>,
}

impl Um {
    /// Nothing sent.
    pub fn new(config: &Unacknowledged) -> Self {
        Self {
            config: config.clone(),
            sent: VecDeque::new(),
            received: RangeSet::default(),
            next: 0,
            highest: 0,
            reordering_from: 0,
            reordering_at: None,
        }
    }

    /// Both ends start again, with an empty stream.
    pub fn reset(&mut self) {
        *self = Self::new(&self.config);
    }

    /// Sends a new PDU.
    pub fn send_new(&mut self, cut: Cut) -> Pdu {
        let sequence = self.next + self.sent.len() as u64;
        self.sent.push_back(cut.range);
        Pdu { sequence, range: cut.range, again: false, polls: false }
    }

    /// The receiver gets a PDU (TS 36.322 §5.1.2.2).
    pub fn receive(&mut self, now: Instant, pdu: &Pdu) {
        if pdu.sequence < self.next {
            return;
        }
        self.received.insert(pdu.range, |_| {});
        self.highest = self.highest.max(pdu.sequence + 1);
        self.advance_to(self.highest.saturating_sub(WINDOW));
        self.advance_to(self.next);
        if self.reordering_at.is_some() && self.reordering_from <= self.next {
            self.reordering_at = None;
        }
        self.start_reordering(now);
    }

    /// Waits for no PDU below `sequence` any more, nor for those after it that were received.
    fn advance_to(&mut self, sequence: u64) {
        while self.next < sequence || self.sent.front().is_some_and(|range| self.received.containing(*range).is_some())
        {
            self.sent.pop_front();
            self.next += 1;
        }
    }

    fn start_reordering(&mut self, now: Instant) {
        if self.reordering_at.is_none() && self.highest > self.next {
            self.reordering_at = Some(now + self.config.t_reordering);
            self.reordering_from = self.highest;
        }
    }

    /// Up to where nothing is waited for, of a stream that was sent up to `sent`; and all that was
    /// received.
    pub fn delivered(&self, sent: u64) -> (u64, &RangeSet<u64>) {
        (self.sent.front().map_or(sent, |range| range.start), &self.received)
    }

    /// What was received below is not needed any more.
    pub fn forget_below(&mut self, edge: u64) {
        self.received.remove_below(edge);
    }

    /// When t-Reordering expires.
    pub const fn next_timer(&self) -> Option<Instant> {
        self.reordering_at
    }

    /// Gives up what t-Reordering waited for. Returns whether that was done.
    pub fn expire(&mut self, now: Instant) -> bool {
        if self.reordering_at.take_if(|at| *at <= now).is_none() {
            return false;
        }
        self.advance_to(self.reordering_from);
        self.start_reordering(now);
        true
    }
}
