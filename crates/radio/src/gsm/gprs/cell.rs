//! The packet data channels of a cell: the scheduler of blocks on timeslots.
//!
//! Uplink: a block goes to the mobile for which it is reserved, or to the next mobile with a TBF on
//! the timeslot. Downlink: control messages come first, then data, then repetitions of blocks that
//! are not acknowledged yet. Mobiles of the same priority are served in turn (round robin), on each
//! timeslot. Calls take the last timeslots first. A mobile that would lose timeslots to a call
//! moves to others, if there are any: the network reconfigures its TBFs while the call is set up
//! (TS 44.060 §8.1.1.3.6, §8.1.2.7, recalled).

use airpath_core::{Context, Direction, Instant};

use super::downlink::Demand;
use super::ends::Ends;
use super::mobile::{DownlinkControl, Mobile, UplinkControl};
use super::multiframe::{POLL_TO_REPLY, block_after, start_of};
use super::multislot::Timeslots;
use super::parameters::Parameters;
use super::voice::Calls;

/// Blocks for which reservations are stored: more than [`POLL_TO_REPLY`].
const RESERVATIONS: usize = 8;

/// A timeslot.
#[derive(Clone, Debug, Default)]
struct Slot {
    /// The mobile that was served last, by direction.
    last: [u16; 2],
    /// Reserved uplink blocks: the mobile and its message, by block number modulo the length.
    reserved: [Option<(u16, UplinkControl)>; RESERVATIONS],
    /// The number of mobiles to which it is assigned.
    load: u32,
}

/// A cell: its timeslots and mobiles.
#[derive(Debug)]
pub struct Cell {
    pub parameters: Parameters,
    pub mobiles: Vec<Mobile>,
    pub ends: Ends,
    slots: Vec<Slot>,
    /// Timeslots of a mobile.
    slots_of_mobile: Timeslots,
    /// Calls that take timeslots away.
    calls: Option<Calls>,
    /// The timeslots that they left in the last block.
    free_of_calls: u8,
    /// The mobiles with a TBF or data, by number.
    active: Vec<u16>,
    /// The next block to process.
    next_block: u64,
}

impl Cell {
    /// An idle cell with `slots` timeslots.
    pub fn new(
        parameters: Parameters,
        mobiles: Vec<Mobile>,
        ends: Ends,
        slots: u8,
        slots_of_mobile: Timeslots,
        calls: Option<Calls>,
    ) -> Self {
        let free_of_calls = slots;
        let slots = vec![Slot::default(); slots.into()];
        let active = Vec::new();
        Self { parameters, mobiles, ends, slots, slots_of_mobile, calls, free_of_calls, active, next_block: 0 }
    }

    /// When its next block begins, if any mobile is active.
    #[inline]
    pub fn next_step(&self) -> Option<Instant> {
        (!self.active.is_empty()).then(|| start_of(self.next_block))
    }

    /// Processes the blocks that begin up to and including `now`.
    pub fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        while !self.active.is_empty() && start_of(self.next_block) <= now {
            self.step(self.next_block, cx);
            self.next_block += 1;
        }
    }

    /// Makes a mobile active from the next block on, and assigns it the timeslots with the fewest
    /// mobiles.
    pub fn activate(&mut self, index: usize, now: Instant) {
        if std::mem::replace(&mut self.mobiles[index].in_active_list, true) {
            return;
        }
        if self.active.is_empty() {
            self.next_block = self.next_block.max(block_after(now));
        }
        self.count_calls(self.next_block);
        self.assign(index);
        let place = self.active.partition_point(|other| usize::from(*other) < index);
        self.active.insert(place, index as u16);
    }

    /// Assigns the timeslots with the fewest mobiles among those that calls leave.
    fn assign(&mut self, index: usize) {
        let span = self.slots_of_mobile.span();
        let load = |first: &usize| self.slots[*first..first + span].iter().map(|slot| slot.load).sum::<u32>();
        let last = usize::from(self.free_of_calls).saturating_sub(span);
        let first = (0..=last).min_by_key(load).expect("the first is one of them");
        self.mobiles[index].slot = first as u8;
        self.slots[first..first + span].iter_mut().for_each(|slot| slot.load += 1);
    }

    /// Takes back the timeslots of a mobile.
    fn withdraw(&mut self, index: usize) {
        let first = usize::from(self.mobiles[index].slot);
        self.slots[first..first + self.slots_of_mobile.span()].iter_mut().for_each(|slot| slot.load -= 1);
    }

    /// Finds out how many timeslots calls leave in `block`. Mobiles leave those that are gone.
    fn count_calls(&mut self, block: u64) {
        let Some(calls) = &mut self.calls else { return };
        let free = calls.left(start_of(block), self.slots.len() as u8);
        let before = std::mem::replace(&mut self.free_of_calls, free);
        if free >= before {
            return;
        }
        for place in 0..self.active.len() {
            let index = usize::from(self.active[place]);
            let first = usize::from(self.mobiles[index].slot);
            if first > 0 && first + self.slots_of_mobile.span() > usize::from(free) {
                self.cancel_reservations(first, block, Some(index));
                self.withdraw(index);
                self.assign(index);
            }
        }
        for slot in usize::from(free)..usize::from(before) {
            self.cancel_reservations(slot, block, None);
        }
    }

    /// Withdraws the reservations of a timeslot: those of a mobile, or all.
    fn cancel_reservations(&mut self, slot: usize, block: u64, only: Option<usize>) {
        for reservation in &mut self.slots[slot].reserved {
            let is_meant = |(index, _): &mut (u16, UplinkControl)| only.is_none_or(|only| usize::from(*index) == only);
            if let Some((index, message)) = reservation.take_if(is_meant) {
                self.mobiles[usize::from(index)].cancel_response(block, message);
            }
        }
    }

    fn step(&mut self, block: u64, cx: &mut Context<'_>) {
        self.count_calls(block);
        let slots_free_of_calls = self.free_of_calls;
        let Self { active, mobiles, parameters, ends, .. } = self;
        for index in active.iter() {
            mobiles[usize::from(*index)].start_of_block(block, parameters, ends, cx);
        }
        for slot in 0..slots_free_of_calls {
            self.uplink(block, slot.into(), cx);
        }
        for slot in 0..slots_free_of_calls {
            self.downlink(block, slot.into(), cx);
        }
        let Self { active, mobiles, slots, slots_of_mobile, .. } = self;
        active.retain(|index| {
            let mobile = &mut mobiles[usize::from(*index)];
            mobile.end_of_block(block, *slots_of_mobile, slots_free_of_calls, cx);
            mobile.in_active_list = !mobile.is_idle();
            if !mobile.in_active_list {
                let first = usize::from(mobile.slot);
                slots[first..first + slots_of_mobile.span()].iter_mut().for_each(|slot| slot.load -= 1);
            }
            mobile.in_active_list
        });
    }

    /// One uplink block of a timeslot.
    fn uplink(&mut self, block: u64, slot: usize, cx: &mut Context<'_>) {
        let Self { mobiles, parameters, ends, .. } = self;
        if let Some((index, message)) = self.slots[slot].reserved[block as usize % RESERVATIONS].take() {
            return mobiles[usize::from(index)].respond(block, message, parameters);
        }
        let last = self.slots[slot].last[Direction::Up as usize];
        for index in in_turn(&self.active, last) {
            let mobile = &mut mobiles[usize::from(index)];
            let count = self.slots_of_mobile.up_while(mobile.has_or_expects_downlink_tbf());
            if !has_slot(mobile.slot, slot, count) {
                continue;
            }
            if usize::from(mobile.slot) == slot && mobile.needs_single_block(block) {
                return mobile.respond(block, UplinkControl::ResourceRequest, parameters);
            }
            if mobile.up.has_demand(block, parameters) && !mobile.is_silent(Direction::Up, block) {
                self.slots[slot].last[Direction::Up as usize] = index;
                let slots = count.min(self.free_of_calls.saturating_sub(mobile.slot));
                let Mobile { up, air, counts, .. } = mobile;
                return up.send((block, slots), parameters, air, (ends, &mut counts[Direction::Up as usize]), cx);
            }
        }
    }

    /// One downlink block of a timeslot.
    fn downlink(&mut self, block: u64, slot: usize, cx: &mut Context<'_>) {
        let Self { mobiles, parameters, ends, .. } = self;
        let last = self.slots[slot].last[Direction::Down as usize];
        let mut best = (Demand::None, 0);
        for index in in_turn(&self.active, last) {
            let mobile = &mut mobiles[usize::from(index)];
            if !has_slot(mobile.slot, slot, self.slots_of_mobile.down) || mobile.is_silent(Direction::Down, block) {
                continue;
            }
            let is_control = usize::from(mobile.slot) == slot;
            if is_control {
                let control = mobile.send_control(block, parameters);
                if !matches!(control, DownlinkControl::None) {
                    mobile.counts[Direction::Down as usize].control += 1;
                }
                match control {
                    DownlinkControl::None => {}
                    DownlinkControl::Sent => return,
                    DownlinkControl::Polled(response) => return self.slots[slot].reserve(block, index, response),
                }
            }
            if best.0 < Demand::Data {
                let demand = mobile.down.demand(block, is_control, parameters, ends, cx);
                if demand > best.0 {
                    best = (demand, index);
                }
            }
        }
        let (demand, index) = best;
        if demand == Demand::None {
            return;
        }
        self.slots[slot].last[Direction::Down as usize] = index;
        let mobile = &mut mobiles[usize::from(index)];
        let is_control = usize::from(mobile.slot) == slot;
        let Mobile { down, air, counts, .. } = mobile;
        let counts = &mut counts[Direction::Down as usize];
        if down.send(block, is_control, parameters, air, (ends, counts), cx) {
            self.slots[slot].reserve(block, index, UplinkControl::DownlinkAckNack);
        }
    }
}

impl Slot {
    /// Reserves the uplink block for the response to a poll in `block`.
    fn reserve(&mut self, block: u64, index: u16, message: UplinkControl) {
        self.reserved[(block + POLL_TO_REPLY) as usize % RESERVATIONS] = Some((index, message));
    }
}

/// All of `active`, beginning with the one after `last`.
fn in_turn(active: &[u16], last: u16) -> impl Iterator<Item = u16> + '_ {
    let next = active.partition_point(|index| *index <= last);
    active[next..].iter().chain(&active[..next]).copied()
}

/// Whether `slot` is one of `count` timeslots from `first` on.
fn has_slot(first: u8, slot: usize, count: u8) -> bool {
    (usize::from(first)..usize::from(first) + usize::from(count)).contains(&slot)
}
