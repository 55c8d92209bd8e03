//! What a mobile sends and receives when: it has one block at a time in each direction, and with
//! half duplex it does not receive while it sends (TS 36.211 §6.2.5, TS 38.213 §17.2).

use std::collections::VecDeque;

use super::repetition::{DownlinkSlots, Slots, UplinkSlots};

/// What a mobile sends and receives.
#[derive(Clone, Debug)]
pub struct Occupancy {
    /// With half duplex, slots before and after what is sent in which nothing is received.
    guard: Option<u64>,
    received: VecDeque<Busy>,
    sent: VecDeque<Busy>,
    /// Occasions of scheduling requests: period, offset, and repetitions.
    requests: [u64; 3],
}

#[derive(Clone, Copy, Debug)]
struct Busy {
    slots: Slots,
    is_data: bool,
}

impl Busy {
    const fn meets(&self, slots: Slots, guard: u64) -> bool {
        self.slots.start < slots.end + guard && slots.start < self.slots.end + guard
    }
}

/// The guard subframe before and after a transmission of a mobile with half duplex of type B, which
/// those of a narrowband have. Those of type A skip symbols of a slot at most.
pub const GUARD_OF_TYPE_B: u64 = 1;

impl Occupancy {
    /// Nothing is planned, with this guard of half duplex, or full duplex. Scheduling requests have
    /// occasions every `period` slots from `offset` on.
    pub fn new(guard: Option<u64>, period: u64, offset: u64) -> Self {
        Self { guard, received: VecDeque::new(), sent: VecDeque::new(), requests: [period, offset, 1] }
    }

    /// A scheduling request takes this number of slots.
    pub const fn set_request(&mut self, repetitions: u64) {
        self.requests[2] = repetitions;
    }

    /// Whether the mobile can receive in these slots: `data`, or a control channel.
    pub fn can_receive(&self, slots: Slots, is_data: bool) -> bool {
        let is_free = !is_data || !self.received.iter().any(|busy| busy.is_data && busy.meets(slots, 0));
        let is_silent = |guard| !self.sent.iter().any(|busy| busy.meets(slots, guard));
        is_free && self.guard.is_none_or(is_silent)
    }

    /// The first slot in which the mobile can receive again after an occasion of scheduling
    /// requests that lies in these slots. The base station leaves occasions free if a transfer fits
    /// between two: none otherwise.
    pub fn after_request_in(&self, slots: Slots) -> Option<u64> {
        let guard = self.guard?;
        let [period, offset, length] = self.requests;
        if slots.end - slots.start + length + 2 * guard > period {
            return None;
        }
        let from = (slots.start + 1).saturating_sub(length + guard);
        let occasion = offset + from.saturating_sub(offset).next_multiple_of(period);
        (occasion < slots.end + guard).then_some(occasion + length + guard)
    }

    /// Whether the mobile can send in these slots: `data`, or feedback.
    pub fn can_send(&self, slots: Slots, is_data: bool) -> bool {
        let is_free = !is_data || !self.sent.iter().any(|busy| busy.is_data && busy.meets(slots, 0));
        is_free && self.guard.is_none_or(|guard| !self.received.iter().any(|busy| busy.meets(slots, guard)))
    }

    /// Whether the mobile can do what a downlink transfer demands.
    pub fn fits_down(&self, slots: &DownlinkSlots) -> bool {
        self.can_receive(slots.control, false)
            && self.can_receive(slots.data, true)
            && self.can_send(slots.feedback, false)
    }

    /// Whether the mobile can do what an uplink transfer demands.
    pub fn fits_up(&self, slots: &UplinkSlots) -> bool {
        self.can_receive(slots.control, false) && self.can_send(slots.data, true)
    }

    /// A downlink transfer was planned.
    pub fn take_down(&mut self, slots: &DownlinkSlots) {
        self.received.push_back(Busy { slots: slots.control, is_data: false });
        self.received.push_back(Busy { slots: slots.data, is_data: true });
        self.send(slots.feedback, false);
    }

    /// An uplink transfer was planned.
    pub fn take_up(&mut self, slots: &UplinkSlots) {
        self.received.push_back(Busy { slots: slots.control, is_data: false });
        self.send(slots.data, true);
    }

    /// The mobile sends in these slots.
    pub fn send(&mut self, slots: Slots, is_data: bool) {
        self.sent.push_back(Busy { slots, is_data });
    }

    /// The first slot from `slot` on in which the mobile can receive a control channel of one slot,
    /// as far as what it sends is concerned.
    pub fn receives_from(&self, slot: u64) -> u64 {
        let Some(guard) = self.guard else { return slot };
        let mut slot = slot;
        while let Some(busy) = self.sent.iter().find(|busy| busy.meets(Slots::new(slot, slot + 1), guard)) {
            slot = busy.slots.end + guard;
        }
        slot
    }

    /// Forgets what has ended before slot `slot`.
    pub fn forget_before(&mut self, slot: u64) {
        for list in [&mut self.received, &mut self.sent] {
            list.retain(|busy| busy.slots.end + GUARD_OF_TYPE_B >= slot);
        }
    }

    /// The connection is new.
    pub fn clear(&mut self) {
        self.received.clear();
        self.sent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn slots(start: u64, end: u64) -> Slots {
        Slots::new(start, end)
    }

    #[test]
    fn with_half_duplex_a_slot_lies_between_sending_and_receiving() {
        let mut occupancy = Occupancy::new(Some(GUARD_OF_TYPE_B), 80, 40);
        occupancy.send(slots(10, 12), true);
        let receives = |slot| occupancy.can_receive(slots(slot, slot + 1), false);
        assert_eq!([8, 9, 11, 12, 13].map(receives), [true, false, false, false, true]);
        assert_eq!([8, 9, 13].map(|slot| occupancy.receives_from(slot)), [8, 13, 13]);
        let after = |slot| occupancy.after_request_in(slots(slot, slot + 1));
        assert_eq!([38, 39, 41, 42].map(after), [None, Some(42), Some(42), None], "an occasion in slot 40");
        assert_eq!(occupancy.after_request_in(slots(0, 78)), None, "too long to lie between two");
        assert!(!occupancy.can_send(slots(11, 13), true) && occupancy.can_send(slots(11, 13), false));
        let full = Occupancy { guard: None, ..occupancy };
        assert!(full.can_receive(slots(10, 12), false) && full.after_request_in(slots(39, 41)).is_none());
    }
}
