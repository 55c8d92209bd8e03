//! The cell as a cell group of mobiles with dual connectivity.

use airpath_core::{Context, Direction, DropCause, Instant, Packet};

use super::Cell;
use crate::conditions::Sample;

impl Cell {
    /// Calls `each` for the mobiles whose layers below PDCP have started again since the last call,
    /// and why.
    pub(crate) fn re_established(&mut self, mut each: impl FnMut(usize, DropCause)) {
        if !std::mem::take(&mut self.has_re_established) {
            return;
        }
        for (index, user) in self.users.iter_mut().enumerate() {
            if let Some(cause) = user.take_re_establishment() {
                each(index, cause);
            }
        }
    }

    /// The radio of a mobile.
    pub(crate) fn measure(&mut self, index: usize, now: Instant, cx: &mut Context<'_>) -> Sample {
        self.advance(now, cx);
        let sample = self.users[index].measure(now, &self.plan, cx);
        self.update(index, now);
        sample
    }

    /// The connection of a mobile ends, without anything inside.
    pub(crate) fn release_connection(&mut self, index: usize, now: Instant, cx: &mut Context<'_>) {
        self.advance(now, cx);
        self.users[index].release_inactive(now, cx);
        self.update_from_outside(index, now);
    }

    /// Begins to serve a mobile.
    pub(crate) fn begin_group(&mut self, index: usize, now: Instant, cx: &mut Context<'_>) {
        self.advance(now, cx);
        self.users[index].begin_group(now, cx);
        self.update_from_outside(index, now);
    }

    /// Ends to serve a mobile: returns the packets of each direction that did not arrive.
    pub(crate) fn end_group(&mut self, index: usize, now: Instant, cx: &mut Context<'_>) -> [Vec<Packet>; 2] {
        self.advance(now, cx);
        let packets = self.users[index].end_group(now, cx);
        self.update_from_outside(index, now);
        packets
    }

    /// The packets of a mobile that no PDU carries yet: they leave this cell.
    pub(crate) fn take_waiting(
        &mut self,
        index: usize,
        now: Instant,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Vec<Packet> {
        self.advance(now, cx);
        let packets = self.users[index].take_waiting(now, direction);
        self.update_from_outside(index, now);
        packets
    }

    /// Takes the first packets of the uplink out that no PDU carries yet.
    pub(crate) fn take_first_up(
        &mut self,
        index: usize,
        now: Instant,
        bytes: u64,
        cx: &mut Context<'_>,
    ) -> Vec<Packet> {
        self.advance(now, cx);
        let packets = self.users[index].take_first_up(now, bytes, cx);
        self.update_from_outside(index, now);
        packets
    }

    /// Takes packets of the uplink from the other cell, where `waiting` bytes remain.
    pub(crate) fn share_up(
        &mut self,
        index: usize,
        now: Instant,
        packets: Vec<Packet>,
        waiting: u64,
        cx: &mut Context<'_>,
    ) {
        self.advance(now, cx);
        self.users[index].share_up(now, packets, waiting, &mut self.plan, cx);
        self.update_from_outside(index, now);
    }

    /// Takes over packets of a mobile from another cell.
    pub(crate) fn take_over(
        &mut self,
        index: usize,
        now: Instant,
        direction: Direction,
        packets: Vec<Packet>,
        cx: &mut Context<'_>,
    ) {
        self.advance(now, cx);
        self.users[index].take_over(now, direction, packets, &mut self.plan, cx);
        self.update_from_outside(index, now);
    }
}
