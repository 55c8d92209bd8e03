//! Repetitions of mobiles with reduced bandwidth and in enhanced coverage (LTE-M, TS 36.211
//! §5.3.4, §6.4.1, §6.8B.1): the slots that each step of a transfer takes, and the resource blocks
//! of the narrowband that are promised.
//!
//! A transfer is planned as a whole when its control channel begins: MPDCCH, data and feedback are
//! each repeated in consecutive slots.
//!
//! RRC configures the most repetitions of MPDCCH, and those of PUCCH, for a connection. The DCI has
//! the repetitions of each transfer within these limits (TS 36.212 §5.3.3.1.10 to §5.3.3.1.13, TS
//! 36.213 §7.1.11, §8.0, §9.1.5), so the base station follows the coverage when it gets better.

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

/// The coverage mode of a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mode {
    /// The SINR downwards, in decibels, from which on a mobile uses it when it connects.
    pub lowest: f64,
    /// The repetitions of a transfer in its connections for the coverage of each mode up to this.
    pub transfers: Vec<Repetitions>,
    /// Repetitions of PUCCH: feedback and scheduling requests.
    pub feedback: u64,
    /// Processes of hybrid ARQ in each direction.
    pub processes: u8,
    /// Whether the modulation is QPSK only.
    pub is_qpsk_only: bool,
    /// From idle to connected.
    pub promotion: Span,
}

/// The repetitions of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Repetitions {
    /// Of MPDCCH.
    pub control: u64,
    /// Of PDSCH.
    pub downlink: u64,
    /// Of PUSCH.
    pub uplink: u64,
    /// By how many decibels they raise the SINR: downlink, uplink.
    pub gain: [f64; 2],
}

/// Repetitions of a control channel where `wanted` are enough and RRC has configured `most`, both
/// powers of two: an eighth of the most at least (TS 36.213 Tables 9.1.5-3, 16.6-1).
pub(crate) fn control_repetitions(wanted: u64, most: u64) -> u64 {
    wanted.clamp(most.div_ceil(8), most)
}

/// The coverage mode of a connection, and that of a transfer in it, which is not worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    pub connection: u8,
    pub transfer: u8,
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
    pub fn mode_at(&self, sinr: f64) -> u8 {
        let modes = &self.parameters.modes;
        modes.iter().position(|mode| mode.lowest <= sinr).unwrap_or(modes.len() - 1) as u8
    }

    /// The coverage mode of a connection.
    pub(crate) fn mode(&self, connection: u8) -> &Mode {
        &self.parameters.modes[usize::from(connection)]
    }

    /// The repetitions of a transfer.
    pub(crate) fn repetitions(&self, coverage: Coverage) -> &Repetitions {
        &self.mode(coverage.connection).transfers[usize::from(coverage.transfer)]
    }

    /// The slots of a downlink transfer whose MPDCCH begins in slot `slot`.
    pub fn downlink(&self, slot: u64, coverage: Coverage) -> DownlinkSlots {
        let repetitions = self.repetitions(coverage);
        let control = Slots::new(slot, slot + repetitions.control);
        let data = after(control, ASSIGNMENT_TO_DATA, repetitions.downlink);
        let feedback = after(data, DATA_TO_FEEDBACK, self.mode(coverage.connection).feedback);
        DownlinkSlots { control, data, feedback, next_attempt: feedback.end - 1 + self.parameters.reaction }
    }

    /// The slots of an uplink transfer whose MPDCCH begins in slot `slot`.
    pub fn uplink(&self, slot: u64, coverage: Coverage) -> UplinkSlots {
        let repetitions = self.repetitions(coverage);
        let control = Slots::new(slot, slot + repetitions.control);
        let data = after(control, GRANT_TO_DATA, repetitions.uplink);
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

    const ONCE: Repetitions = Repetitions { control: 1, downlink: 1, uplink: 1, gain: [0.0; 2] };

    fn mode(lowest: f64, feedback: u64, transfers: Vec<Repetitions>) -> Mode {
        Mode { lowest, transfers, feedback, processes: 8, is_qpsk_only: false, promotion: Span::ZERO }
    }

    const fn coverage(connection: u8, transfer: u8) -> Coverage {
        Coverage { connection, transfer }
    }

    fn narrowband(modes: Vec<Mode>) -> Narrowband {
        let parameters = Parameters { modes, control_blocks: 2, reaction: 4 };
        Narrowband::new(&parameters, [6, 6])
    }

    const fn slots(start: u64, end: u64) -> Slots {
        Slots::new(start, end)
    }

    #[test]
    fn steps_of_a_transfer_follow_the_last_repetition_of_the_one_before() {
        let many = Repetitions { control: 16, downlink: 32, uplink: 8, ..ONCE };
        let fewer = Repetitions { control: control_repetitions(1, 16), ..ONCE };
        let narrowband = narrowband(vec![mode(0.0, 1, vec![ONCE]), mode(-20.0, 4, vec![fewer, many])]);
        let down = narrowband.downlink(100, coverage(0, 0));
        assert_eq!((down.control, down.data, down.feedback), (slots(100, 101), slots(102, 103), slots(106, 107)));
        assert_eq!(down.next_attempt, 110);
        let up = narrowband.uplink(100, coverage(0, 0));
        assert_eq!((up.data, up.next_grant), (slots(104, 105), 108));
        let down = narrowband.downlink(100, coverage(1, 1));
        assert_eq!((down.control, down.data, down.feedback), (slots(100, 116), slots(117, 149), slots(152, 156)));
        assert_eq!(narrowband.uplink(100, coverage(1, 1)).data, slots(119, 127));
        // In better coverage feedback stays as it was configured.
        let down = narrowband.downlink(100, coverage(1, 0));
        assert_eq!((down.control, down.data, down.feedback), (slots(100, 102), slots(103, 104), slots(107, 111)));
        assert_eq!(narrowband.uplink(100, coverage(1, 0)).data, slots(105, 106));
        assert_eq!([3.0, -1.0, -30.0].map(|sinr| narrowband.mode_at(sinr)), [0, 1, 1]);
    }

    #[test]
    fn a_control_channel_has_an_eighth_of_its_repetitions_at_least() {
        let cases = [(1, 1, 1), (1, 2, 1), (1, 4, 1), (1, 8, 1), (1, 256, 32), (16, 256, 32), (64, 256, 64)];
        for (wanted, most, expected) in cases {
            assert_eq!(control_repetitions(wanted, most), expected, "{wanted} of {most}");
        }
        assert_eq!(control_repetitions(256, 256), 256);
    }

    #[test]
    fn resource_blocks_are_promised_for_all_repetitions() {
        let mut narrowband = narrowband(vec![mode(0.0, 1, vec![Repetitions { downlink: 4, ..ONCE }])]);
        let only = coverage(0, 0);
        let transfer = narrowband.downlink(10, only);
        narrowband.take_down(&transfer, 5);
        assert_eq!(narrowband.left_down(&narrowband.downlink(9, only)), 1, "data in 11 to 14, taken from 12 on");
        assert_eq!(narrowband.left_down(&narrowband.downlink(14, only)), 0, "no room for MPDCCH in slot 14");
        assert_eq!(narrowband.left_down(&narrowband.downlink(16, only)), 6);
        narrowband.forget_before(15);
        assert_eq!(narrowband.left_up(&narrowband.uplink(15, only)), 0, "no room for MPDCCH in the last slot of data");
        assert_eq!(narrowband.left_up(&narrowband.uplink(16, only)), 6);
    }
}
