//! Repetitions of mobiles with reduced bandwidth and in enhanced coverage (LTE-M, TS 36.211
//! §5.3.4, §6.4.1, §6.8B.1): the slots that each step of a transfer takes, and the resource blocks
//! of the narrowband that are promised.
//!
//! A transfer is planned as a whole when its control channel begins: MPDCCH, data and feedback are
//! each repeated in consecutive slots.

use std::collections::VecDeque;

use airpath_core::Span;
use airpath_core::range_set::Range;

/// From the last slot of an assignment to the first of its data (TS 36.213 §7.1.11).
const ASSIGNMENT_TO_DATA: u64 = 2;
/// From the last slot of data to the first of its feedback (TS 36.213 §10.2).
const DATA_TO_FEEDBACK: u64 = 4;
/// From the last slot of a grant to the first of its data (TS 36.213 §8.0).
const GRANT_TO_DATA: u64 = 4;

/// Slots, from the first to below the end.
pub type Slots = Range<u64>;

/// The repetitions of a coverage mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mode {
    /// The SINR downwards, in decibels, from which on a mobile uses it when it connects.
    pub lowest: f64,
    /// Repetitions of MPDCCH.
    pub control: u64,
    /// Repetitions of PDSCH.
    pub downlink: u64,
    /// Repetitions of PUSCH.
    pub uplink: u64,
    /// Repetitions of PUCCH: feedback and scheduling requests.
    pub feedback: u64,
    /// By how many decibels the repetitions raise the SINR: downlink, uplink.
    pub gain: [f64; 2],
    /// Processes of hybrid ARQ in each direction.
    pub processes: u8,
    /// Whether the modulation is QPSK only.
    pub is_qpsk_only: bool,
    /// From idle to connected.
    pub promotion: Span,
}

/// The parameters of a narrowband.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameters {
    /// The coverage modes, from the one with the fewest repetitions on.
    pub modes: Vec<Mode>,
    /// Resource blocks of an MPDCCH.
    pub control_blocks: u32,
    /// From the last slot of what the base station received to the first that depends on it.
    pub reaction: u64,
}

/// The slots of a downlink transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownlinkSlots {
    pub control: Slots,
    pub data: Slots,
    pub feedback: Slots,
    /// The first slot of the next attempt.
    pub next_attempt: u64,
}

/// The slots of an uplink transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkSlots {
    pub control: Slots,
    pub data: Slots,
    /// The first slot of a grant that depends on it.
    pub next_grant: u64,
}

/// Resource blocks that are promised, by slot.
#[derive(Clone, Debug, Default)]
struct Promised {
    from: u64,
    blocks: VecDeque<u8>,
}

impl Promised {
    fn forget_before(&mut self, slot: u64) {
        while self.from < slot && self.blocks.pop_front().is_some() {
            self.from += 1;
        }
        self.from = self.from.max(slot);
    }

    /// The most that is promised in a slot of these.
    fn most(&self, slots: Slots) -> u32 {
        let index = |slot: u64| (slot.saturating_sub(self.from) as usize).min(self.blocks.len());
        self.blocks.range(index(slots.start)..index(slots.end)).copied().max().unwrap_or(0).into()
    }

    fn take(&mut self, slots: Slots, blocks: u32) {
        let end = slots.end.saturating_sub(self.from) as usize;
        if self.blocks.len() < end {
            self.blocks.resize(end, 0);
        }
        let start = slots.start.saturating_sub(self.from) as usize;
        self.blocks.range_mut(start..end).for_each(|promised| *promised += blocks as u8);
    }
}

/// A narrowband: its coverage modes and its resource blocks.
#[derive(Clone, Debug)]
pub struct Narrowband {
    parameters: Parameters,
    /// Resource blocks of each direction: downlink, uplink.
    totals: [u32; 2],
    promised: [Promised; 2],
}

impl Narrowband {
    /// A narrowband that is free.
    pub fn new(parameters: &Parameters, totals: [u32; 2]) -> Self {
        Self { parameters: parameters.clone(), totals, promised: Default::default() }
    }

    /// The number of the coverage mode of a mobile with this SINR downwards.
    pub fn mode_at(&self, sinr: f64) -> usize {
        let modes = &self.parameters.modes;
        modes.iter().position(|mode| mode.lowest <= sinr).unwrap_or(modes.len() - 1)
    }

    /// A coverage mode.
    pub(crate) fn mode(&self, mode: usize) -> &Mode {
        &self.parameters.modes[mode]
    }

    /// The slots of a downlink transfer whose MPDCCH begins in slot `slot`.
    pub fn downlink(&self, slot: u64, mode: usize) -> DownlinkSlots {
        let mode = self.mode(mode);
        let control = Slots::new(slot, slot + mode.control);
        let data = after(control, ASSIGNMENT_TO_DATA, mode.downlink);
        let feedback = after(data, DATA_TO_FEEDBACK, mode.feedback);
        DownlinkSlots { control, data, feedback, next_attempt: feedback.end - 1 + self.parameters.reaction }
    }

    /// The slots of an uplink transfer whose MPDCCH begins in slot `slot`.
    pub fn uplink(&self, slot: u64, mode: usize) -> UplinkSlots {
        let mode = self.mode(mode);
        let control = Slots::new(slot, slot + mode.control);
        let data = after(control, GRANT_TO_DATA, mode.uplink);
        UplinkSlots { control, data, next_grant: self.next_grant(data) }
    }

    /// The first slot of a grant that depends on data in these slots.
    pub const fn next_grant(&self, data: Slots) -> u64 {
        data.end - 1 + self.parameters.reaction
    }

    /// Resource blocks that a block of the downlink can have in these slots; none if its MPDCCH
    /// has no room.
    pub fn left_down(&self, slots: &DownlinkSlots) -> u32 {
        if self.has_control(slots.control) { self.totals[0] - self.promised[0].most(slots.data) } else { 0 }
    }

    /// The same in the uplink.
    pub fn left_up(&self, slots: &UplinkSlots) -> u32 {
        if self.has_control(slots.control) { self.totals[1] - self.promised[1].most(slots.data) } else { 0 }
    }

    fn has_control(&self, control: Slots) -> bool {
        self.promised[0].most(control) + self.parameters.control_blocks <= self.totals[0]
    }

    /// Promises the resource blocks of a downlink transfer.
    pub fn take_down(&mut self, slots: &DownlinkSlots, blocks: u32) {
        self.promised[0].take(slots.control, self.parameters.control_blocks);
        self.promised[0].take(slots.data, blocks);
    }

    /// Promises the resource blocks of an uplink transfer.
    pub fn take_up(&mut self, slots: &UplinkSlots, blocks: u32) {
        self.promised[0].take(slots.control, self.parameters.control_blocks);
        self.promised[1].take(slots.data, blocks);
    }

    /// Forgets what was promised before slot `slot`.
    pub fn forget_before(&mut self, slot: u64) {
        self.promised.iter_mut().for_each(|promised| promised.forget_before(slot));
    }
}

/// The `count` slots whose first is `distance` after the last of `before`.
fn after(before: Slots, distance: u64, count: u64) -> Slots {
    let first = before.end - 1 + distance;
    Slots::new(first, first + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODE: Mode = Mode {
        lowest: 0.0,
        control: 1,
        downlink: 1,
        uplink: 1,
        feedback: 1,
        gain: [0.0; 2],
        processes: 8,
        is_qpsk_only: false,
        promotion: Span::ZERO,
    };

    fn narrowband(modes: Vec<Mode>) -> Narrowband {
        let parameters = Parameters { modes, control_blocks: 2, reaction: 4 };
        Narrowband::new(&parameters, [6, 6])
    }

    const fn slots(start: u64, end: u64) -> Slots {
        Slots::new(start, end)
    }

    #[test]
    fn steps_of_a_transfer_follow_the_last_repetition_of_the_one_before() {
        let narrowband =
            narrowband(vec![MODE, Mode { control: 16, downlink: 32, uplink: 8, feedback: 4, lowest: -20.0, ..MODE }]);
        let down = narrowband.downlink(100, 0);
        assert_eq!((down.control, down.data, down.feedback), (slots(100, 101), slots(102, 103), slots(106, 107)));
        assert_eq!(down.next_attempt, 110);
        let up = narrowband.uplink(100, 0);
        assert_eq!((up.data, up.next_grant), (slots(104, 105), 108));
        let down = narrowband.downlink(100, 1);
        assert_eq!((down.control, down.data, down.feedback), (slots(100, 116), slots(117, 149), slots(152, 156)));
        assert_eq!(narrowband.uplink(100, 1).data, slots(119, 127));
        assert_eq!([3.0, -1.0, -30.0].map(|sinr| narrowband.mode_at(sinr)), [0, 1, 1]);
    }

    #[test]
    fn resource_blocks_are_promised_for_all_repetitions() {
        let mut narrowband = narrowband(vec![Mode { downlink: 4, ..MODE }]);
        let transfer = narrowband.downlink(10, 0);
        narrowband.take_down(&transfer, 5);
        assert_eq!(narrowband.left_down(&narrowband.downlink(9, 0)), 1, "data in 11 to 14, taken from 12 on");
        assert_eq!(narrowband.left_down(&narrowband.downlink(14, 0)), 0, "no room for MPDCCH in slot 14");
        assert_eq!(narrowband.left_down(&narrowband.downlink(16, 0)), 6);
        narrowband.forget_before(15);
        assert_eq!(narrowband.left_up(&narrowband.uplink(15, 0)), 0, "no room for MPDCCH in the last slot of data");
        assert_eq!(narrowband.left_up(&narrowband.uplink(16, 0)), 6);
    }
}
