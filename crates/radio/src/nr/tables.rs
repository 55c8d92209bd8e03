//! Tables of NR: resource blocks, CQI, modulation and coding, processing times, and the size of a
//! transport block. Their data are in `crates/radio/data/3gpp`, where a README has the source of
//! each.

use std::sync::LazyLock;

use airpath_core::{Bitrate, Frequency, Span};

use crate::common::buffer_sizes::BufferSizes;
use crate::common::csv::{rows, value};
use crate::common::link_adaptation::{Format, Modulation};

/// A frequency range (TS 38.104 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Range {
    /// 410 MHz to 7.125 GHz.
    Fr1,
    /// 24.25 GHz and above.
    Fr2,
}

/// A numerology: the subcarrier spacing is 15 kHz · 2^µ (TS 38.211 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Numerology(u8);

impl Numerology {
    /// The numerology µ, 0 to 3 (15 to 120 kHz); `None` above.
    pub fn new(mu: u8) -> Option<Self> {
        (mu <= 3).then_some(Self(mu))
    }

    /// The numerology with this subcarrier spacing.
    pub fn of_spacing(spacing: Frequency) -> Option<Self> {
        (0..=3).map(Self).find(|each| each.spacing() == spacing)
    }

    /// µ.
    pub const fn mu(self) -> u8 {
        self.0
    }

    /// The subcarrier spacing.
    pub fn spacing(self) -> Frequency {
        value(&format!("{} kHz", 15 << self.0))
    }

    /// The duration of a slot: 2^−µ ms (TS 38.211 §4.3.2).
    pub const fn slot(self) -> Span {
        Span::from_nanos(1_000_000 >> self.0)
    }

    /// The mean duration of an OFDM symbol with its cyclic prefix: a fourteenth of a slot.
    fn symbol_seconds(self) -> f64 {
        self.slot().as_secs_f64() / f64::from(SYMBOLS_PER_SLOT)
    }
}

/// OFDM symbols of a slot with normal cyclic prefix (TS 38.211 Table 4.3.2-1).
pub const SYMBOLS_PER_SLOT: u32 = 14;
/// Subcarriers of a resource block (TS 38.211 §4.4.4.1).
pub const SUBCARRIERS_PER_BLOCK: u32 = 12;

/// The resource blocks of a channel (TS 38.104 Tables 5.3.2-1 and 5.3.2-2); [`bandwidths`] lists
/// the bandwidths that have a number.
pub fn resource_blocks(range: Range, bandwidth: Frequency, spacing: Frequency) -> Option<u32> {
    let found = CHANNELS.iter().find(|each| (each.range, each.bandwidth, each.spacing) == (range, bandwidth, spacing));
    found.map(|each| each.resource_blocks)
}

/// The bandwidths that a range has with a subcarrier spacing, in rising order.
pub fn bandwidths(range: Range, spacing: Frequency) -> impl Iterator<Item = Frequency> {
    let matching = CHANNELS.iter().filter(move |each| (each.range, each.spacing) == (range, spacing));
    matching.map(|each| each.bandwidth)
}

struct Channel {
    range: Range,
    bandwidth: Frequency,
    spacing: Frequency,
    resource_blocks: u32,
}

static CHANNELS: LazyLock<Vec<Channel>> = LazyLock::new(|| {
    let row = |[range, megahertz, kilohertz, resource_blocks]: [&str; 4]| Channel {
        range: if range == "FR1" { Range::Fr1 } else { Range::Fr2 },
        bandwidth: value(&format!("{megahertz} MHz")),
        spacing: value(&format!("{kilohertz} kHz")),
        resource_blocks: value(resource_blocks),
    };
    rows(include_str!("../../data/3gpp/nr_prb.csv")).map(row).collect()
});

/// Which formats a mobile uses, for its CQI reports and for modulation and coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatTable {
    /// Up to 64QAM (TS 38.214 Tables 5.2.2.1-2 and 5.1.3.1-1).
    Qam64,
    /// Up to 256QAM (TS 38.214 Tables 5.2.2.1-3 and 5.1.3.1-2).
    Qam256,
    /// Up to 64QAM with low spectral efficiency (TS 38.214 Tables 5.2.2.1-4 and 5.1.3.1-3).
    LowEfficiency,
}

/// The formats of CQI 1 to 15, in this order. CQI 0 is "out of range" and has none.
pub fn cqis(table: FormatTable) -> &'static [Format] {
    &CQIS[table as usize]
}

static CQIS: LazyLock<[Vec<Format>; 3]> = LazyLock::new(|| {
    ["5.2.2.1-2", "5.2.2.1-3", "5.2.2.1-4"].map(|table| formats(include_str!("../../data/3gpp/nr_cqi.csv"), table))
});

/// The formats by I_MCS, from zero: 29 of them, 28 with 256QAM. The further indices mark
/// retransmissions with another modulation and have no code rate.
pub fn schemes(table: FormatTable) -> &'static [Format] {
    &SCHEMES[table as usize]
}

static SCHEMES: LazyLock<[Vec<Format>; 3]> = LazyLock::new(|| {
    ["5.1.3.1-1", "5.1.3.1-2", "5.1.3.1-3"].map(|table| formats(include_str!("../../data/3gpp/nr_mcs.csv"), table))
});

fn formats(csv: &'static str, table: &str) -> Vec<Format> {
    let row = |[_, _, _, bits, rate, _]: [&str; 6]| Format::new(value(bits), value(rate));
    rows(csv).filter(|row| row[0] == table).map(row).collect()
}

/// How fast a mobile processes (TS 38.214 §5.3, §6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessingCapability {
    /// Capability 1, which every mobile has.
    One,
    /// Capability 2, only up to 60 kHz.
    Two,
}

/// N1: the least time from the end of a downlink block to the start of its feedback, with
/// front-loaded DMRS only (TS 38.214 Tables 5.3-1 and 5.3-2). `None` for a numerology for which the
/// capability is not defined.
pub fn feedback_processing(capability: ProcessingCapability, numerology: Numerology) -> Option<Span> {
    processing("N1", capability, numerology)
}

/// N2: the least time from the end of a grant to the start of its uplink block (TS 38.214 Tables
/// 6.4-1 and 6.4-2). `None` for a numerology for which the capability is not defined.
pub fn uplink_processing(capability: ProcessingCapability, numerology: Numerology) -> Option<Span> {
    processing("N2", capability, numerology)
}

fn processing(what: &str, capability: ProcessingCapability, numerology: Numerology) -> Option<Span> {
    let symbols = processing_symbols(what, capability, numerology)?;
    Some(Span::from_secs_f64(symbols * numerology.symbol_seconds()))
}

fn processing_symbols(what: &str, capability: ProcessingCapability, numerology: Numerology) -> Option<f64> {
    let row = PROCESSING.iter().find(|each| (each.0, each.1, each.2) == (what, capability, numerology));
    row.map(|row| row.3)
}

/// Name of the time, capability, numerology, OFDM symbols.
static PROCESSING: LazyLock<Vec<(&'static str, ProcessingCapability, Numerology, f64)>> = LazyLock::new(|| {
    let row = |[what, capability, mu, symbols, ..]: [&'static str; 7]| {
        let capability = if capability == "1" { ProcessingCapability::One } else { ProcessingCapability::Two };
        Some((what, capability, Numerology::new(value(mu))?, value(symbols)))
    };
    rows(include_str!("../../data/3gpp/nr_processing.csv")).filter_map(row).collect()
});

/// The least k1: slots from a downlink block that ends with its slot to a PUCCH in the last two
/// symbols of the slot of its feedback. `None` as for [`feedback_processing`].
pub fn least_feedback_slots(capability: ProcessingCapability, numerology: Numerology) -> Option<u32> {
    least_slots("N1", capability, numerology, 2)
}

/// The least k2: slots from a grant in the first two symbols of a slot to a PUSCH from the first
/// symbol of its slot. `None` as for [`uplink_processing`].
pub fn least_uplink_slots(capability: ProcessingCapability, numerology: Numerology) -> Option<u32> {
    least_slots("N2", capability, numerology, 2)
}

/// Both have all symbols of their slots but `used` for processing.
fn least_slots(what: &str, capability: ProcessingCapability, numerology: Numerology, used: u32) -> Option<u32> {
    let needed = libm::ceil(processing_symbols(what, capability, numerology)?) as u32;
    Some((needed + used).div_ceil(SYMBOLS_PER_SLOT))
}

/// The part of a slot that a data channel has in each of its resource blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// OFDM symbols of the data channel, N_symb^sh.
    pub symbols: u32,
    /// Resource elements of DMRS in a block, N_DMRS^PRB.
    pub dmrs: u32,
    /// Other resource elements of a block without data, N_oh^PRB (`xOverhead`: 0, 6, 12 or 18).
    pub overhead: u32,
}

impl Allocation {
    /// The allocation of a slot with this number of downlink symbols: 2 symbols of PDCCH, the
    /// others of PDSCH with one symbol of DMRS (recalled: a usual configuration, not one that the
    /// standard requires). A full slot has 132 resource elements in a block.
    pub const fn downlink(symbols: u8) -> Self {
        Self { symbols: symbols.saturating_sub(2) as u32, dmrs: SUBCARRIERS_PER_BLOCK, overhead: 0 }
    }

    /// The allocation of a slot with this number of uplink symbols: all of PUSCH with one symbol of
    /// DMRS (recalled, likewise).
    pub const fn uplink(symbols: u8) -> Self {
        Self { symbols: symbols as u32, dmrs: SUBCARRIERS_PER_BLOCK, overhead: 0 }
    }

    /// Resource elements of a block that carry data; at most 156 count (TS 38.214 §5.1.3.2).
    pub fn resource_elements(&self) -> u32 {
        (SUBCARRIERS_PER_BLOCK * self.symbols).saturating_sub(self.dmrs + self.overhead).min(156)
    }
}

/// The bits of a transport block, without its CRC (TS 38.214 §5.1.3.2; §6.1.4.2 for the uplink).
/// Zero if there are no resource elements.
pub fn transport_block_bits(format: &Format, layers: u32, resource_blocks: u32, allocation: Allocation) -> u32 {
    let elements = f64::from(resource_blocks * allocation.resource_elements());
    let information = elements * f64::from(layers) * f64::from(format.modulation.bits()) * format.code_rate;
    if information <= 0.0 {
        0
    } else if information <= LAST_SMALL_SIZE {
        small_block_bits(information as u32)
    } else {
        large_block_bits(information, format.code_rate)
    }
}

/// N_info up to which the size is one of a table.
const LAST_SMALL_SIZE: f64 = 3824.0;

fn small_block_bits(information: u32) -> u32 {
    // Below 24 the logarithm would be below the maximum of 3 anyway.
    let power = (information.max(1).ilog2()).saturating_sub(6).max(3);
    let quantised = ((information >> power) << power).max(24);
    SMALL_SIZES[SMALL_SIZES.partition_point(|size| *size < quantised)]
}

fn large_block_bits(information: f64, code_rate: f64) -> u32 {
    // Above 3824, so the logarithm is at least 11; casts round down.
    let power = ((information - 24.0) as u32).ilog2() - 5;
    let step = f64::from(1u32 << power);
    // "ties in the round function are broken towards the next largest integer"
    let quantised = ((step * libm::floor((information - 24.0) / step + 0.5)) as u32).max(3840);
    let blocks = if code_rate <= 0.25 {
        (quantised + 24).div_ceil(3816)
    } else if quantised > 8424 {
        (quantised + 24).div_ceil(8424)
    } else {
        1
    };
    8 * blocks * (quantised + 24).div_ceil(8 * blocks) - 24
}

static SMALL_SIZES: LazyLock<Vec<u32>> = LazyLock::new(|| {
    rows(include_str!("../../data/3gpp/nr_tbs_small.csv")).map(|[_, bits]: [&str; 2]| value(bits)).collect()
});

/// The levels of a short buffer status report (TS 38.321 Table 6.1.3.1-1): 32, the last above
/// 150,000 bytes. A mobile with one logical channel group sends this report.
pub fn buffer_sizes() -> &'static BufferSizes {
    &BUFFER_SIZES
}

static BUFFER_SIZES: LazyLock<BufferSizes> =
    LazyLock::new(|| BufferSizes::parse(include_str!("../../data/3gpp/nr_bsr.csv")));

/// A direction of a peak rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// To the mobile.
    Down,
    /// From the mobile.
    Up,
}

/// The approximate peak rate of one carrier, with a slot of this direction all the time and scaling
/// factor 1 (TS 38.306 §4.1.2).
pub fn peak_rate(
    range: Range,
    link: Link,
    numerology: Numerology,
    resource_blocks: u32,
    layers: u32,
    modulation: Modulation,
) -> Bitrate {
    let overhead = match (range, link) {
        (Range::Fr1, Link::Down) => 0.14,
        (Range::Fr2, Link::Down) => 0.18,
        (Range::Fr1, Link::Up) => 0.08,
        (Range::Fr2, Link::Up) => 0.10,
    };
    let bits = f64::from(layers * modulation.bits() * resource_blocks * SUBCARRIERS_PER_BLOCK) * MAX_CODE_RATE;
    Bitrate::from_bps((bits * (1.0 - overhead) / numerology.symbol_seconds() + 0.5) as u64)
}

/// R_max, the highest code rate of the tables.
const MAX_CODE_RATE: f64 = 948.0 / 1024.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLES: [FormatTable; 3] = [FormatTable::Qam64, FormatTable::Qam256, FormatTable::LowEfficiency];

    fn frequency(text: &str) -> Frequency {
        text.parse().expect("a frequency")
    }

    #[test]
    fn channels_have_their_resource_blocks() {
        let blocks = |range, bandwidth, spacing| resource_blocks(range, frequency(bandwidth), frequency(spacing));
        assert_eq!(blocks(Range::Fr1, "100 MHz", "30 kHz"), Some(273));
        assert_eq!(blocks(Range::Fr1, "20 MHz", "15 kHz"), Some(106));
        assert_eq!(blocks(Range::Fr2, "100 MHz", "120 kHz"), Some(66));
        assert_eq!(blocks(Range::Fr1, "100 MHz", "15 kHz"), None);
        let all: Vec<String> =
            bandwidths(Range::Fr1, frequency("60 kHz")).map(|bandwidth| bandwidth.to_string()).collect();
        assert_eq!((all.len(), all[0].as_str(), all[13].as_str()), (14, "10 MHz", "100 MHz"));
        // No channel is narrower than its resource blocks.
        for each in CHANNELS.iter() {
            let occupied = f64::from(each.resource_blocks * SUBCARRIERS_PER_BLOCK) * each.spacing.as_megahertz();
            assert!((0.7..0.99).contains(&(occupied / each.bandwidth.as_megahertz())));
        }
        assert_eq!(CHANNELS.len(), 46);
    }

    #[test]
    fn numerologies_have_their_spacing_and_slot() {
        let of = |spacing| Numerology::of_spacing(frequency(spacing)).map(|each| (each.mu(), each.slot().as_nanos()));
        assert_eq!(of("15 kHz"), Some((0, 1_000_000)));
        assert_eq!(of("120 kHz"), Some((3, 125_000)));
        assert_eq!((of("240 kHz"), Numerology::new(4)), (None, None));
    }

    /// The efficiency that the standard prints follows from its modulation and code rate.
    #[test]
    fn formats_have_the_printed_efficiency_and_rise() {
        let check = |csv: &'static str, formats: Vec<&Format>| {
            let printed: Vec<f64> = rows(csv).map(|[.., efficiency]: [&str; 6]| value(efficiency)).collect();
            assert_eq!(printed.len(), formats.len());
            for (printed, format) in printed.iter().zip(formats) {
                assert!((format.efficiency() - printed).abs() < 6e-4, "{format:?} {printed}");
            }
        };
        check(include_str!("../../data/3gpp/nr_cqi.csv"), TABLES.into_iter().flat_map(cqis).collect());
        check(include_str!("../../data/3gpp/nr_mcs.csv"), TABLES.into_iter().flat_map(schemes).collect());
        assert_eq!(TABLES.map(|table| (cqis(table).len(), schemes(table).len())), [(15, 29), (15, 28), (15, 29)]);
        for table in TABLES {
            assert!(cqis(table).windows(2).all(|pair| pair[0].efficiency() < pair[1].efficiency()));
            // 64QAM begins in Table 5.1.3.1-1 with 0.004 bits less than 16QAM ends.
            assert!(schemes(table).windows(2).all(|pair| pair[0].efficiency() < pair[1].efficiency() + 0.004));
        }
    }

    #[test]
    fn processing_takes_the_symbols_of_the_standard() {
        let mu = |mu| Numerology::new(mu).expect("a numerology");
        let one = ProcessingCapability::One;
        // 10 and 12 of 14 symbols of half a millisecond; 8 of a millisecond.
        assert_eq!(feedback_processing(one, mu(1)).map(Span::as_nanos), Some(357_143));
        assert_eq!(uplink_processing(one, mu(1)).map(Span::as_nanos), Some(428_571));
        assert_eq!(feedback_processing(one, mu(0)).map(Span::as_nanos), Some(571_429));
        let two = ProcessingCapability::Two;
        assert_eq!(feedback_processing(two, mu(1)).map(Span::as_nanos), Some(160_714));
        assert_eq!(uplink_processing(two, mu(3)), None);
        // 10 and 12 symbols fit into the 12 that a slot leaves; with 120 kHz, 20 and 36 need 2 and
        // 3.
        let slots = |mu| (least_feedback_slots(one, mu), least_uplink_slots(one, mu));
        assert_eq!((slots(mu(1)), slots(mu(3))), ((Some(1), Some(1)), (Some(2), Some(3))));
        assert_eq!(least_uplink_slots(two, mu(3)), None);
        for mu in (0..=3).map(mu) {
            assert!(feedback_processing(one, mu) <= uplink_processing(one, mu));
        }
    }

    /// Row I2: four blocks with 132 resource elements each.
    #[test]
    fn transport_blocks_have_the_size_of_the_formula() {
        let bits = |blocks, rate, modulation, layers| {
            transport_block_bits(&Format::new(modulation, rate), layers, blocks, Allocation::downlink(14))
        };
        assert_eq!(
            (Allocation::downlink(14).resource_elements(), Allocation::uplink(14).resource_elements()),
            (132, 156)
        );
        assert_eq!(bits(273, 873.0, Modulation::Qam64, 2), 368_872);
        assert_eq!(bits(51, 772.0, Modulation::Qam64, 2), 60_456);
        assert_eq!(bits(10, 308.0, Modulation::Qpsk, 1), 808);
        assert_eq!(bits(106, 616.0, Modulation::Qam16, 1), 33_816);
        assert_eq!(bits(0, 616.0, Modulation::Qam16, 1), 0);
        assert_eq!(bits(1, 30.0, Modulation::Qpsk, 1), 24);
    }

    #[test]
    fn only_156_resource_elements_of_a_block_count() {
        let allocation = Allocation { symbols: 14, dmrs: 6, overhead: 0 };
        assert_eq!(allocation.resource_elements(), 156);
        assert_eq!(Allocation { overhead: 18, ..allocation }.resource_elements(), 144);
        assert_eq!(Allocation { symbols: 1, dmrs: 12, overhead: 6 }.resource_elements(), 0);
    }

    #[test]
    fn small_sizes_are_those_of_the_table() {
        assert_eq!((SMALL_SIZES.len(), SMALL_SIZES[0], SMALL_SIZES[92]), (93, 24, 3824));
        assert!(SMALL_SIZES.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(SMALL_SIZES.iter().all(|size| size % 8 == 0 && small_block_bits(*size) >= *size));
    }

    #[test]
    fn a_short_report_has_32_levels() {
        let index = |bytes| buffer_sizes().index(airpath_core::Bytes::new(bytes));
        assert_eq!([0, 1, 10, 11, 150_000, 150_001].map(index), [0, 1, 1, 2, 30, 31]);
        let limits: Vec<f64> =
            (1..=30).map(|level| buffer_sizes().limit(level).expect("a limit").get() as f64).collect();
        // The levels are a geometric series, rounded.
        assert!(limits.windows(2).all(|pair| (1.35..1.44).contains(&(pair[1] / pair[0]))));
        assert_eq!(buffer_sizes().limit(31), None);
    }

    /// Row I3: 273 resource blocks, four layers of 256QAM, at 30 kHz.
    #[test]
    fn the_peak_rate_of_100_megahertz_is_2337_megabits() {
        let mu = Numerology::new(1).expect("a numerology");
        let rate = peak_rate(Range::Fr1, Link::Down, mu, 273, 4, Modulation::Qam256).as_bps() as f64 / 1e6;
        assert!((rate - 2337.0).abs() < 0.05, "{rate}");
    }

    proptest! {
        #[test]
        fn sizes_are_whole_bytes_near_the_information_and_grow(
            table in 0usize..3, scheme in 0usize..28, layers in 1u32..=4, blocks in 1u32..=272, symbols in 2u32..=14,
        ) {
            let format = &schemes(TABLES[table])[scheme];
            let allocation = Allocation { symbols, dmrs: 12, overhead: 0 };
            let bits = transport_block_bits(format, layers, blocks, allocation);
            prop_assert_eq!(bits % 8, 0);
            let information = format.efficiency() * f64::from(layers * blocks * allocation.resource_elements());
            // A step of the quantisation, then rounding up to the next size or to whole blocks.
            prop_assert!((f64::from(bits) - information).abs() <= (information / 16.0).max(24.0), "{} {}", bits, information);
            prop_assert!(bits <= transport_block_bits(format, layers, blocks + 1, allocation));
        }
    }
}
