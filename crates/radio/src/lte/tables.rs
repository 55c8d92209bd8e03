//! Tables of LTE: resource blocks, CQI, modulation and coding, transport block sizes, buffer sizes.
//! Their data are in `crates/radio/data/3gpp`, where a README has the source of each.

use std::sync::LazyLock;

use airpath_core::{Bytes, Frequency, Span};

use crate::common::buffer_sizes::BufferSizes;
use crate::common::csv::{rows, value};
use crate::common::link_adaptation::{Format, Modulation};

/// A TTI is one subframe (TS 36.211 §4).
pub const TTI: Span = Span::from_millis(1);

/// The resource blocks of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its bandwidth.
    pub bandwidth: Frequency,
    /// Resource blocks of a subframe, N_RB (TS 36.101 §5.6).
    pub resource_blocks: u32,
    /// Resource blocks of a group, P: the unit of allocations of type 0 (TS 36.213 Table
    /// 7.1.6.1-1).
    pub group: u32,
}

/// The channel with this bandwidth; [`channels`] lists all.
pub fn channel(bandwidth: Frequency) -> Option<Channel> {
    CHANNELS.iter().copied().find(|channel| channel.bandwidth == bandwidth)
}

/// All channels, by bandwidth: 1.4, 3, 5, 10, 15 and 20 MHz.
pub fn channels() -> &'static [Channel] {
    &CHANNELS
}

static CHANNELS: LazyLock<Vec<Channel>> = LazyLock::new(|| {
    let row = |[megahertz, resource_blocks, group]: [&str; 3]| Channel {
        bandwidth: value(&format!("{megahertz} MHz")),
        resource_blocks: value(resource_blocks),
        group: value(group),
    };
    rows(include_str!("../../data/3gpp/lte_prb.csv")).map(row).collect()
});

/// Which CQIs a mobile reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CqiTable {
    /// Up to 64QAM (TS 36.213 Table 7.2.3-1).
    Qam64,
    /// Up to 256QAM (TS 36.213 Table 7.2.3-2).
    Qam256,
}

/// The formats of CQI 1 to 15, in this order. CQI 0 is "out of range" and has none.
pub fn cqis(table: CqiTable) -> &'static [Format] {
    &CQIS[table as usize]
}

static CQIS: LazyLock<[Vec<Format>; 2]> = LazyLock::new(|| {
    ["7.2.3-1", "7.2.3-2"].map(|table| {
        let row = |[_, _, _, bits, rate, _]: [&str; 6]| Format::new(value(bits), value(rate));
        let all = rows(include_str!("../../data/3gpp/lte_cqi.csv"));
        all.filter(|row| row[0] == table).map(row).collect()
    })
});

/// Which modulation and coding schemes a channel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McsTable {
    /// Downlink up to 64QAM (TS 36.213 Table 7.1.7.1-1).
    PdschQam64,
    /// Downlink up to 256QAM (TS 36.213 Table 7.1.7.1-1A).
    PdschQam256,
    /// Uplink (TS 36.213 Table 8.6.1-1), for mobiles that send 64QAM.
    Pusch,
}

/// A modulation and coding scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mcs {
    /// The modulation.
    pub modulation: Modulation,
    /// I_TBS, the row of the table of transport block sizes.
    pub i_tbs: u8,
}

/// The schemes by I_MCS, from zero: 29 of them, 28 with 256QAM. The further indices mark
/// retransmissions with another modulation and have no size.
pub fn schemes(table: McsTable) -> &'static [Mcs] {
    &SCHEMES[table as usize]
}

static SCHEMES: LazyLock<[Vec<Mcs>; 3]> = LazyLock::new(|| {
    ["pdsch-64qam", "pdsch-256qam", "pusch"].map(|table| {
        let row = |[_, _, bits, i_tbs]: [&str; 4]| Mcs { modulation: value(bits), i_tbs: value(i_tbs) };
        let all = rows(include_str!("../../data/3gpp/lte_mcs.csv"));
        all.filter(|row| row[0] == table).map(row).collect()
    })
});

/// The largest I_TBS.
pub const MAX_I_TBS: u8 = 33;
/// The largest number of resource blocks for which the standard has sizes.
pub const MAX_RESOURCE_BLOCKS: u32 = 110;

/// The bits of a transport block on one layer, without its CRC (TS 36.213 §7.1.7.2.1).
///
/// With two antennas, two layers carry two transport blocks, one on each layer, each with this
/// size: at most 2 · 75,376 bits, the 150,752 bits a TTI of category 4 (TS 36.306 Table 4.1-1).
///
/// # Panics
/// If `i_tbs` is above 33, or `resource_blocks` is not 1 to 110.
pub fn transport_block_bits(i_tbs: u8, resource_blocks: u32) -> u32 {
    assert!((1..=MAX_RESOURCE_BLOCKS).contains(&resource_blocks), "1 to 110 resource blocks, not {resource_blocks}");
    TRANSPORT_BLOCKS[usize::from(i_tbs)][resource_blocks as usize - 1]
}

static TRANSPORT_BLOCKS: LazyLock<Vec<[u32; MAX_RESOURCE_BLOCKS as usize]>> = LazyLock::new(|| {
    let row = |fields: [&str; 111]| std::array::from_fn(|i| value(fields[i + 1]));
    rows(include_str!("../../data/3gpp/lte_tbs.csv")).map(row).collect()
});

/// The index of the buffer size level that reports `waiting` bytes (TS 36.321 §6.1.3.1): the lowest
/// whose limit is not below it, 63 above 150,000 bytes.
pub fn buffer_size_index(waiting: Bytes) -> u8 {
    BUFFER_SIZES.index(waiting)
}

/// The most bytes that a buffer size level can stand for; `None` for level 63, which has no limit.
///
/// # Panics
/// If `index` is above 63.
pub fn buffer_size_limit(index: u8) -> Option<Bytes> {
    BUFFER_SIZES.limit(index)
}

/// The levels of a buffer status report.
pub(crate) fn buffer_sizes() -> &'static BufferSizes {
    &BUFFER_SIZES
}

static BUFFER_SIZES: LazyLock<BufferSizes> =
    LazyLock::new(|| BufferSizes::parse(include_str!("../../data/3gpp/lte_bsr.csv")));

#[cfg(test)]
mod tests {
    use super::*;

    fn megahertz(bandwidth: &str) -> Frequency {
        format!("{bandwidth} MHz").parse().expect("a frequency")
    }

    #[test]
    fn bandwidths_have_their_resource_blocks() {
        let expected = [("1.4", 6, 1), ("3", 15, 2), ("5", 25, 2), ("10", 50, 3), ("15", 75, 4), ("20", 100, 4)];
        for (bandwidth, resource_blocks, group) in expected {
            let channel = channel(megahertz(bandwidth)).expect("a channel");
            assert_eq!((channel.resource_blocks, channel.group), (resource_blocks, group));
        }
        assert_eq!((channels().len(), channel(megahertz("7"))), (6, None));
    }

    /// The efficiency that the standard prints follows from its modulation and code rate.
    #[test]
    fn formats_of_cqis_have_the_printed_efficiency() {
        let printed = rows(include_str!("../../data/3gpp/lte_cqi.csv")).map(|[.., efficiency]: [&str; 6]| efficiency);
        let formats = [CqiTable::Qam64, CqiTable::Qam256].into_iter().flat_map(cqis);
        let pairs: Vec<(f64, &Format)> = printed.map(value).zip(formats).collect();
        assert_eq!(pairs.len(), 30);
        for (printed, format) in pairs {
            assert!((format.efficiency() - printed).abs() < 6e-4, "{format:?} {printed}");
        }
        for table in [CqiTable::Qam64, CqiTable::Qam256] {
            assert!(cqis(table).windows(2).all(|pair| pair[0].efficiency() < pair[1].efficiency()));
        }
    }

    #[test]
    fn schemes_rise_and_use_every_size_index_once_a_modulation() {
        for (table, count, first, last) in
            [(McsTable::PdschQam64, 29, 0, 26), (McsTable::PdschQam256, 28, 0, 33), (McsTable::Pusch, 29, 0, 26)]
        {
            let schemes = schemes(table);
            assert_eq!((schemes.len(), schemes[0].i_tbs, schemes[count - 1].i_tbs), (count, first, last));
            let rise = |pair: &[Mcs]| {
                (pair[0].modulation, pair[0].i_tbs) < (pair[1].modulation, pair[1].i_tbs)
                    && pair[0].i_tbs <= pair[1].i_tbs
            };
            assert!(schemes.windows(2).all(rise), "{table:?}");
        }
    }

    /// Row I1: the largest transport block of category 3 and 4 in 20 MHz, each millisecond.
    #[test]
    fn the_rate_of_20_megahertz_on_one_layer_is_75_376_kilobits() {
        let bits = transport_block_bits(26, channel(megahertz("20")).expect("a channel").resource_blocks);
        assert_eq!(bits, 75_376);
        let rate = Bytes::new(u64::from(bits) / 8).rate_over(TTI);
        assert_eq!(rate, Some(75_376_000.0));
        assert_eq!(transport_block_bits(6, 1), 328);
    }

    #[test]
    fn transport_blocks_are_whole_bytes_and_grow_with_resource_blocks() {
        assert_eq!(TRANSPORT_BLOCKS.len(), usize::from(MAX_I_TBS) + 1);
        for i_tbs in 0..=MAX_I_TBS {
            let sizes: Vec<u32> = (1..=MAX_RESOURCE_BLOCKS).map(|blocks| transport_block_bits(i_tbs, blocks)).collect();
            assert!(sizes.iter().all(|bits| bits % 8 == 0 && *bits >= 16), "{i_tbs}");
            let falls = sizes.windows(2).filter(|pair| pair[0] > pair[1]).count();
            // One resource block with I_TBS 6 has 328 bits, more than two and three have.
            assert_eq!(falls, usize::from(i_tbs == 6), "{i_tbs}");
        }
    }

    #[test]
    fn transport_blocks_grow_with_their_index() {
        let grows = |i_tbs: u8| {
            (2..=MAX_RESOURCE_BLOCKS)
                .all(|blocks| transport_block_bits(i_tbs, blocks) <= transport_block_bits(i_tbs + 1, blocks))
        };
        let exceptions: Vec<u8> = (0..MAX_I_TBS).filter(|i_tbs| !grows(*i_tbs)).collect();
        // I_TBS 26 is for a control region of one symbol; 27 was added for 256QAM, below it.
        assert_eq!(exceptions, [26]);
    }

    #[test]
    fn a_buffer_size_is_reported_by_the_lowest_level_that_covers_it() {
        let index = |bytes| buffer_size_index(Bytes::new(bytes));
        assert_eq!([0, 1, 10, 11, 150_000, 150_001, u64::MAX].map(index), [0, 1, 1, 2, 62, 63, 63]);
        for level in 0..=62 {
            let limit = buffer_size_limit(level).expect("a limit").get();
            assert_eq!((index(limit), index(limit + 1)), (level, level + 1));
        }
        assert_eq!(buffer_size_limit(63), None);
        let limits: Vec<f64> = (1..=62).map(|level| buffer_size_limit(level).expect("a limit").get() as f64).collect();
        assert!(limits.windows(2).all(|pair| (1.1..1.23).contains(&(pair[1] / pair[0]))));
    }
}
