//! The packet data channels of a cell: the scheduler of blocks on timeslots.
//!
//! Uplink: a block goes to the mobile for which it is reserved, or to the next mobile with a TBF on
//! the timeslot. Downlink: control messages come first, then data, then repetitions of blocks that
//! are not acknowledged yet. Mobiles of the same priority are served in turn (round robin), on each
//! timeslot. Calls take the last timeslots first.

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
        let slots = vec![Slot::default(); slots.into()];
        Self { parameters, mobiles, ends, slots, slots_of_mobile, calls, active: Vec::new(), next_block: 0 }
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
        let (down, all) = (usize::from(self.slots_of_mobile.down), self.slots.len());
        let load = |first: &usize| self.slots[*first..first + down].iter().map(|slot| slot.load).sum::<u32>();
        let first = (0..=all - down).min_by_key(load).expect("a mobile has no more timeslots than the cell");
        self.mobiles[index].slot = first as u8;
        self.slots[first..first + down].iter_mut().for_each(|slot| slot.load += 1);
        let place = self.active.partition_point(|other| usize::from(*other) < index);
        self.active.insert(place, index as u16);
    }

    fn step(&mut self, block: u64, cx: &mut Context<'_>) {
        let Self { active, mobiles, parameters, ends, .. } = self;
        for index in active.iter() {
            mobiles[usize::from(*index)].start_of_block(block, parameters, ends, cx);
        }
        let all = self.slots.len() as u8;
        let slots_free_of_calls = self.calls.as_mut().map_or(all, |calls| calls.left(start_of(block), all));
        for slot in 0..all {
            self.uplink(block, slot.into(), slots_free_of_calls, cx);
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
                slots[first..first + usize::from(slots_of_mobile.down)].iter_mut().for_each(|slot| slot.load -= 1);
            }
            mobile.in_active_list
        });
    }

    /// One uplink block of a timeslot, unless it is not among those free of calls.
    fn uplink(&mut self, block: u64, slot: usize, slots_free_of_calls: u8, cx: &mut Context<'_>) {
        let has_timeslot = slot < usize::from(slots_free_of_calls);
        let Self { mobiles, parameters, ends, .. } = self;
        if let Some((index, message)) = self.slots[slot].reserved[block as usize % RESERVATIONS].take() {
            return mobiles[usize::from(index)].respond(block, message, has_timeslot, parameters);
        }
        if !has_timeslot {
            return;
        }
        let last = self.slots[slot].last[Direction::Up as usize];
        for index in in_turn(&self.active, last) {
            let mobile = &mut mobiles[usize::from(index)];
            let count = self.slots_of_mobile.up_while(mobile.has_or_expects_downlink_tbf());
            if !has_slot(mobile.slot, slot, count) {
                continue;
            }
            if usize::from(mobile.slot) == slot && mobile.needs_single_block(block) {
                return mobile.respond(block, UplinkControl::ResourceRequest, true, parameters);
            }
            if mobile.up.has_demand(block, parameters) && !mobile.is_silent(Direction::Up, block) {
                self.slots[slot].last[Direction::Up as usize] = index;
                let slots = count.min(slots_free_of_calls.saturating_sub(mobile.slot));
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
