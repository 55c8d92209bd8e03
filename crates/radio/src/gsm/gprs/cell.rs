//! The packet data channels of a cell: who sends in which block of which timeslot.
//!
//! Up, a block goes to whom it was reserved for, or else to the next of those that have a flow on the timeslot. Down,
//! what controls the mobiles goes first, then what they wait for, then mere repetitions; among equals the turn goes
//! round, block by block and timeslot by timeslot. Calls take the last timeslots first.

use airpath_core::{Context, Direction, Instant};

use super::downlink::Want;
use super::ends::Ends;
use super::mobile::{Mobile, Reply, Timing};
use super::multiframe::{POLL_TO_REPLY, block_after, start_of};
use super::voice::Calls;

/// For how many blocks ahead uplink blocks can be reserved, and then some.
const HORIZON: usize = 8;

/// A timeslot.
#[derive(Clone, Debug, Default)]
struct Slot {
    /// Who was last, by direction.
    last: [u16; 2],
    /// Uplink blocks that are reserved, by block number modulo their number.
    reserved: [Option<(u16, Reply)>; HORIZON],
    /// Mobiles that have it assigned.
    load: u32,
}

/// A cell: its timeslots and mobiles.
#[derive(Debug)]
pub struct Cell {
    pub timing: Timing,
    pub mobiles: Vec<Mobile>,
    pub ends: Ends,
    slots: Vec<Slot>,
    /// Timeslots of a mobile: down, up, and up while it receives nothing.
    slots_of_mobile: [u8; 3],
    /// What takes timeslots away.
    calls: Option<Calls>,
    /// The mobiles that have something to do, by number.
    active: Vec<u16>,
    /// The first block that is still to come.
    next_block: u64,
}

impl Cell {
    /// An idle cell.
    pub fn new(timing: Timing, mobiles: Vec<Mobile>, ends: Ends, slots: (u8, [u8; 3]), calls: Option<Calls>) -> Self {
        let (slots, slots_of_mobile) = slots;
        let slots = vec![Slot::default(); slots.into()];
        Self { timing, mobiles, ends, slots, slots_of_mobile, calls, active: Vec::new(), next_block: 0 }
    }

    /// When it has something to do next by itself.
    #[inline]
    pub fn next_step(&self) -> Option<Instant> {
        (!self.active.is_empty()).then(|| start_of(self.next_block))
    }

    /// Works off the blocks that begin up to and including `now`.
    pub fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        while !self.active.is_empty() && start_of(self.next_block) <= now {
            self.step(self.next_block, cx);
            self.next_block += 1;
        }
    }

    /// Lets a mobile take part from the next block on.
    pub fn activate(&mut self, index: usize, now: Instant) {
        if std::mem::replace(&mut self.mobiles[index].is_active, true) {
            return;
        }
        if self.active.is_empty() {
            self.next_block = self.next_block.max(block_after(now));
        }
        let (down, all) = (usize::from(self.slots_of_mobile[0]), self.slots.len());
        let load = |first: &usize| self.slots[*first..first + down].iter().map(|slot| slot.load).sum::<u32>();
        let first = (0..=all - down).min_by_key(load).expect("a mobile has no more timeslots than the cell");
        self.mobiles[index].slot = first as u8;
        self.slots[first..first + down].iter_mut().for_each(|slot| slot.load += 1);
        let place = self.active.partition_point(|other| usize::from(*other) < index);
        self.active.insert(place, index as u16);
    }

    fn step(&mut self, block: u64, cx: &mut Context<'_>) {
        let Self { active, mobiles, timing, ends, .. } = self;
        for index in active.iter() {
            mobiles[usize::from(*index)].begin(block, timing, ends, cx);
        }
        let all = self.slots.len() as u8;
        let left = self.calls.as_mut().map_or(all, |calls| calls.left(start_of(block), all));
        for slot in 0..all {
            self.uplink(block, slot.into(), slot < left, cx);
        }
        for slot in 0..left {
            self.downlink(block, slot.into(), cx);
        }
        let Self { active, mobiles, slots, slots_of_mobile, .. } = self;
        active.retain(|index| {
            let mobile = &mut mobiles[usize::from(*index)];
            mobile.end(block, *slots_of_mobile, left, cx);
            mobile.is_active = !mobile.is_idle();
            if !mobile.is_active {
                let first = usize::from(mobile.slot);
                slots[first..first + usize::from(slots_of_mobile[0])].iter_mut().for_each(|slot| slot.load -= 1);
            }
            mobile.is_active
        });
    }

    /// One uplink block of a timeslot, which is there for data or not.
    fn uplink(&mut self, block: u64, slot: usize, is_there: bool, cx: &mut Context<'_>) {
        let Self { mobiles, timing, ends, .. } = self;
        if let Some((index, reply)) = self.slots[slot].reserved[block as usize % HORIZON].take() {
            return mobiles[usize::from(index)].reply(block, reply, is_there, timing);
        }
        if !is_there {
            return;
        }
        let last = self.slots[slot].last[Direction::Up as usize];
        for index in in_turn(&self.active, last) {
            let mobile = &mut mobiles[usize::from(index)];
            let count = self.slots_of_mobile[if mobile.receives() { 1 } else { 2 }];
            if !has_slot(mobile.slot, slot, count) {
                continue;
            }
            if usize::from(mobile.slot) == slot && mobile.needs_single_block(block) {
                return mobile.reply(block, Reply::Resources, true, timing);
            }
            if mobile.up.wants(block, timing) && !mobile.is_silent(Direction::Up, block) {
                self.slots[slot].last[Direction::Up as usize] = index;
                let Mobile { up, air, bursts, .. } = mobile;
                return up.send(block, timing, air, (ends, &mut bursts[Direction::Up as usize]), cx);
            }
        }
    }

    /// One downlink block of a timeslot.
    fn downlink(&mut self, block: u64, slot: usize, cx: &mut Context<'_>) {
        let Self { mobiles, timing, ends, .. } = self;
        let last = self.slots[slot].last[Direction::Down as usize];
        let mut best = (Want::Nothing, 0);
        for index in in_turn(&self.active, last) {
            let mobile = &mut mobiles[usize::from(index)];
            if !has_slot(mobile.slot, slot, self.slots_of_mobile[0]) || mobile.is_silent(Direction::Down, block) {
                continue;
            }
            let is_control = usize::from(mobile.slot) == slot;
            if is_control && let Some(reply) = mobile.send_control(block, timing) {
                if let Some(reply) = reply {
                    self.slots[slot].reserve(block, index, reply);
                }
                return;
            }
            if best.0 < Want::Data {
                let want = mobile.down.wants(block, is_control, timing, ends, cx);
                if want > best.0 {
                    best = (want, index);
                }
            }
        }
        let (want, index) = best;
        if want == Want::Nothing {
            return;
        }
        self.slots[slot].last[Direction::Down as usize] = index;
        let mobile = &mut mobiles[usize::from(index)];
        let is_control = usize::from(mobile.slot) == slot;
        let Mobile { down, air, bursts, .. } = mobile;
        let burst = &mut bursts[Direction::Down as usize];
        if down.send(block, is_control, timing, air, (ends, burst), cx) {
            self.slots[slot].reserve(block, index, Reply::Bitmap);
        }
    }
}

impl Slot {
    /// Reserves the uplink block for the answer to a poll in `block`.
    fn reserve(&mut self, block: u64, index: u16, reply: Reply) {
        self.reserved[(block + POLL_TO_REPLY) as usize % HORIZON] = Some((index, reply));
    }
}

/// All of `active`, from the one after `last` on.
fn in_turn(active: &[u16], last: u16) -> impl Iterator<Item = u16> + '_ {
    let next = active.partition_point(|index| *index <= last);
    active[next..].iter().chain(&active[..next]).copied()
}

/// Whether a mobile has that timeslot, as one of `count` from `first` on.
fn has_slot(first: u8, slot: usize, count: u8) -> bool {
    (usize::from(first)..usize::from(first) + usize::from(count)).contains(&slot)
}
