//! What waits for a gap in its sequence numbers, for a time: the receiver of the unacknowledged
//! mode of the RLC (TS 36.322 §5.1.2, t-Reordering; TS 38.322 §5.2.2, t-Reassembly), and that of
//! the PDCP of NR (TS 38.323 §5.2.2.2, t-Reordering).
//!
//! A unit with a sequence number is a PDU in the RLC of LTE, a packet in NR.

use std::collections::VecDeque;

use airpath_core::range_set::{Range, RangeSet};
use airpath_core::{Instant, Span};

use super::rlc::{Cut, Pdu, has_gap};

/// The parameters.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// How long a gap is waited for.
    pub wait: Span,
    /// Sequence numbers that can be waited for.
    pub window: u64,
    /// Units come in segments, and those that come whole have no sequence number (TS 38.322
    /// §6.2.2.3).
    pub has_segments: bool,
}

/// Both ends of one direction.
#[derive(Clone, Debug)]
pub struct Reordering {
    parameters: Parameters,
    /// The units from `next` on.
    sent: VecDeque<Range<u64>>,
    /// The end of the last of all units.
    sent_to: u64,
    /// Units in segments that are not waited for any more.
    given_up: Vec<Range<u64>>,
    received: RangeSet<u64>,
    /// VR(UR), RX_Next_Reassembly, RX_DELIV: the first unit that is still waited for.
    next: u64,
    /// VR(UH), RX_Next_Highest, RX_NEXT: after the highest that was received.
    highest: u64,
    /// VR(UX), RX_Timer_Trigger, RX_REORD: after the one that started the timer.
    reordering_from: u64,
    /// When the timer expires.
    reordering_at: Option<Instant>,
}

impl Reordering {
    /// Nothing sent.
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            parameters: parameters.clone(),
            sent: VecDeque::new(),
            sent_to: 0,
            given_up: Vec::new(),
            received: RangeSet::default(),
            next: 0,
            highest: 0,
            reordering_from: 0,
            reordering_at: None,
        }
    }

    /// Both ends start again, with an empty stream.
    pub fn reset(&mut self) {
        *self = Self::new(&self.parameters.clone());
    }

    /// Sends a new PDU.
    pub fn send_new(&mut self, cut: Cut) -> Pdu {
        let Cut { range, unit, .. } = cut;
        let is_numbered = !self.parameters.has_segments || range != unit;
        if is_numbered && unit.start >= self.sent_to {
            self.sent.push_back(unit);
            self.sent_to = unit.end;
        }
        let sequence = (self.next + self.sent.len() as u64).saturating_sub(1);
        Pdu { sequence, range, unit, again: false, polls: false }
    }

    /// A unit in segments that is not waited for any more, though it is not complete; called until
    /// there is none.
    pub fn take_given_up(&mut self) -> Option<Range<u64>> {
        self.given_up.pop()
    }

    /// All that was received, and is not forgotten.
    pub const fn received(&self) -> &RangeSet<u64> {
        &self.received
    }

    /// The receiver gets a unit, or a segment of one.
    pub fn receive(&mut self, now: Instant, pdu: &Pdu) {
        let is_whole = pdu.range == pdu.unit;
        if self.parameters.has_segments && is_whole {
            self.received.insert(pdu.range, |_| {});
            return;
        }
        let index = self.sent.partition_point(|unit| unit.end <= pdu.unit.start);
        if self.sent.get(index).is_none_or(|unit| *unit != pdu.unit) {
            // It is not waited for any more.
            return;
        }
        self.received.insert(pdu.range, |_| {});
        self.highest = self.highest.max(self.next + index as u64 + 1);
        self.advance_to(self.highest.saturating_sub(self.parameters.window));
        self.settle(now);
    }

    /// A unit is not sent: it has no sequence number any more.
    pub fn withdraw(&mut self, now: Instant, unit: Range<u64>) {
        let index = self.sent.partition_point(|sent| sent.end <= unit.start);
        if self.sent.get(index) != Some(&unit) {
            return;
        }
        self.sent.remove(index);
        for edge in [&mut self.highest, &mut self.reordering_from] {
            *edge -= u64::from(*edge > self.next + index as u64);
        }
        self.settle(now);
    }

    /// Moves on behind what was received. The timer runs while there is a gap.
    fn settle(&mut self, now: Instant) {
        self.advance_to(self.next);
        if self.reordering_at.is_some() && !self.has_gap(self.reordering_from) {
            self.reordering_at = None;
        }
        self.start_reordering(now);
    }

    /// Waits for no unit below `sequence` any more, nor for those after it that were received.
    fn advance_to(&mut self, sequence: u64) {
        while self.next < sequence || self.sent.front().is_some_and(|range| self.received.containing(*range).is_some())
        {
            let unit = self.sent.pop_front();
            self.next += 1;
            if self.parameters.has_segments
                && let Some(unit) = unit
                && self.received.containing(unit).is_none()
            {
                self.given_up.push(unit);
            }
        }
    }

    /// Whether something is missing below `end` that is waited for.
    fn has_gap(&self, end: u64) -> bool {
        let first = self.sent.front().filter(|_| self.parameters.has_segments);
        has_gap(self.next, end, first.copied(), &self.received)
    }

    fn start_reordering(&mut self, now: Instant) {
        if self.reordering_at.is_none() && self.has_gap(self.highest) {
            self.reordering_at = Some(now + self.parameters.wait);
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

    /// When the timer expires.
    pub const fn next_timer(&self) -> Option<Instant> {
        self.reordering_at
    }

    /// Gives up what the timer waited for. Returns whether that was done.
    pub fn expire(&mut self, now: Instant) -> bool {
        if self.reordering_at.take_if(|at| *at <= now).is_none() {
            return false;
        }
        self.advance_to(self.reordering_from);
        self.start_reordering(now);
        true
    }
}
