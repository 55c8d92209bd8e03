//! The times of one transfer of NB-IoT, from its NPDCCH to the next that can be sent (half duplex,
//! one HARQ process).
//!
//! Subframes with other signals (NPSS, NSSS, NPBCH, system information) and the gaps of long
//! transmissions are left out: they add to the times of repeated transmissions.

use airpath_core::{Instant, Span};

use super::tables::Tones;

/// A subframe.
const SUBFRAME: Span = Span::from_millis(1);
/// NPDSCH begins at the earliest in subframe n + 5 after an NPDCCH that ends in n (TS 36.213
/// §16.4.1).
const BEFORE_DOWNLINK: u64 = 4;
/// A mobile need not monitor NPDCCH in three subframes after NPUSCH (TS 36.213 §16.6).
const AFTER_UPLINK: u64 = 3;
/// Slots of a resource unit of NPUSCH format 2, which carries the acknowledgement (TS 36.211 Table
/// 10.1.2.3-1): four of 0.5 ms with 15 kHz.
const ACKNOWLEDGEMENT: u64 = 2;

/// A downlink transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downlink {
    /// Repetitions of NPDCCH, one subframe each.
    pub control_repetitions: u64,
    /// k0 of NPDSCH, in subframes.
    pub delay: u64,
    /// Subframes of the block.
    pub subframes: u64,
    /// Repetitions of NPDSCH.
    pub repetitions: u64,
    /// k0 of the acknowledgement, in subframes: 13 or more.
    pub acknowledgement_delay: u64,
    /// Repetitions of the acknowledgement, with 15 kHz.
    pub acknowledgement_repetitions: u64,
}

/// The times of a downlink transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownlinkTimes {
    /// Begin of NPDSCH.
    pub data_start: Instant,
    /// Its end: the mobile can decode.
    pub data_end: Instant,
    /// Begin of the acknowledgement.
    pub acknowledgement_start: Instant,
    /// Its end: the base station has the answer.
    pub acknowledgement_end: Instant,
    /// The first NPDCCH that the mobile monitors after it. The search space may begin later.
    pub next_control: Instant,
}

impl Downlink {
    /// The times of this transfer if its NPDCCH begins at `control`.
    pub fn times(&self, control: Instant) -> DownlinkTimes {
        let data_start = control + SUBFRAME * (self.control_repetitions + BEFORE_DOWNLINK + self.delay);
        let data_end = data_start + SUBFRAME * (self.subframes * self.repetitions);
        // After the end of subframe n + k0 − 1, where n is the last of NPDSCH (TS 36.213 §16.4.2).
        let acknowledgement_start = data_end + SUBFRAME * (self.acknowledgement_delay - 1);
        let acknowledgement_end =
            acknowledgement_start + SUBFRAME * (ACKNOWLEDGEMENT * self.acknowledgement_repetitions);
        let next_control = acknowledgement_end + SUBFRAME * AFTER_UPLINK;
        DownlinkTimes { data_start, data_end, acknowledgement_start, acknowledgement_end, next_control }
    }
}

/// An uplink transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// Repetitions of NPDCCH, one subframe each.
    pub control_repetitions: u64,
    /// k0 of NPUSCH, in subframes.
    pub delay: u64,
    /// The tones.
    pub tones: Tones,
    /// Resource units of the block.
    pub resource_units: u64,
    /// Repetitions of NPUSCH.
    pub repetitions: u64,
}

/// The times of an uplink transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkTimes {
    /// Begin of NPUSCH.
    pub data_start: Instant,
    /// Its end: the base station can decode.
    pub data_end: Instant,
    /// The first NPDCCH that the mobile monitors after it. Its new-data indicator acknowledges the
    /// block or requests it again. The search space may begin later.
    pub next_control: Instant,
}

impl Uplink {
    /// The times of this transfer if its NPDCCH begins at `control`.
    pub fn times(&self, control: Instant) -> UplinkTimes {
        // At the end of subframe n + k0, where n is the last of NPDCCH (TS 36.213 §16.5.1).
        let data_start = control + SUBFRAME * (self.control_repetitions + self.delay);
        let data_end = data_start + self.tones.resource_unit() * (self.resource_units * self.repetitions);
        UplinkTimes { data_start, data_end, next_control: data_end + SUBFRAME * AFTER_UPLINK }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbiot::tables::{Block, Category, downlink_blocks, uplink_blocks};

    const FASTEST_DOWN: Downlink = Downlink {
        control_repetitions: 1,
        delay: 0,
        subframes: 1,
        repetitions: 1,
        acknowledgement_delay: 13,
        acknowledgement_repetitions: 1,
    };
    const FASTEST_UP: Uplink =
        Uplink { control_repetitions: 1, delay: 8, tones: Tones::Twelve, resource_units: 1, repetitions: 1 };

    fn downlink_rate(block: &Block) -> f64 {
        let transfer = Downlink { subframes: block.units.into(), ..FASTEST_DOWN };
        f64::from(block.bits) / transfer.times(Instant::ZERO).next_control.as_secs_f64()
    }

    fn uplink_rate(block: &Block) -> f64 {
        let transfer = Uplink { resource_units: block.units.into(), ..FASTEST_UP };
        f64::from(block.bits) / transfer.times(Instant::ZERO).next_control.as_secs_f64()
    }

    fn peak(blocks: &[Block], accepted: impl Fn(&Block) -> bool, rate: impl Fn(&Block) -> f64) -> f64 {
        blocks.iter().filter(|block| accepted(block)).map(rate).fold(0.0, f64::max)
    }

    /// Row I4: 680 bits in 26 ms and 1000 bits in 16 ms. The first is the peak in a carrier of LTE,
    /// where I_TBS ends at 10. A carrier of its own sends 680 bits in three subframes: 25 ms.
    #[test]
    fn the_peak_rates_of_release_13_are_26_and_62_kilobits() {
        let first = |block: &Block| block.category == Category::Nb1;
        let in_band = peak(downlink_blocks(), |block| first(block) && block.i_tbs <= 10, downlink_rate);
        assert!((in_band - 680.0 / 0.026).abs() < 1e-6 && (in_band - 26_150.0).abs() < 5.0, "{in_band}");
        let stand_alone = peak(downlink_blocks(), first, downlink_rate);
        assert!((stand_alone - 27_200.0).abs() < 1e-6, "{stand_alone}");
        let up = peak(uplink_blocks(), first, uplink_rate);
        assert!((up - 62_500.0).abs() < 1e-6, "{up}");
    }

    #[test]
    fn the_times_follow_each_other() {
        let millis = |at: Instant| at.as_nanos() / 1_000_000;
        let down = Downlink { subframes: 4, ..FASTEST_DOWN }.times(Instant::ZERO);
        let times = [down.data_start, down.data_end, down.acknowledgement_start, down.acknowledgement_end];
        assert_eq!(times.map(millis), [5, 9, 21, 23]);
        assert_eq!(millis(down.next_control), 26);
        let up = Uplink { resource_units: 4, ..FASTEST_UP }.times(Instant::ZERO);
        assert_eq!([up.data_start, up.data_end, up.next_control].map(millis), [9, 13, 16]);
    }

    /// Poor coverage: each part is repeated, and the smallest block takes seconds.
    #[test]
    fn repetitions_multiply_the_parts_that_are_sent() {
        let poor = Downlink { control_repetitions: 64, repetitions: 128, subframes: 6, delay: 64, ..FASTEST_DOWN };
        let times = poor.times(Instant::ZERO);
        assert_eq!(times.data_end.since(times.data_start), Span::from_millis(768));
        assert_eq!(times.data_start.since(Instant::ZERO), Span::from_millis(64 + 4 + 64));
        let tone = Uplink { tones: Tones::Single3k75, resource_units: 2, repetitions: 32, ..FASTEST_UP };
        let times = tone.times(Instant::ZERO);
        assert_eq!(times.data_end.since(times.data_start), Span::from_millis(2 * 32 * 32));
    }
}
