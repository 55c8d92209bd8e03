//! The coding schemes as data: coding, and the position of each bit on the air (TS 45.003).

use crate::coding::{Coding, USF_12, USF_36};
use crate::convolutional::Code;
use crate::puncturing::{self, Puncturing};

/// Modulation of bits into symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// GMSK as a coherent receiver sees it: one antipodal value per bit.
    Gmsk,
    /// 8-PSK with the Gray mapping of TS 45.004 §3.2: three bits per symbol.
    Psk8,
}

/// Position of a coded bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Burst, from 0.
    pub burst: u8,
    /// Symbol, over all bursts. A GMSK symbol is one bit.
    pub symbol: u16,
    /// Position in the symbol.
    pub bit: u8,
}

/// A separately coded part: a block of data, a header, a flag.
#[derive(Clone, Debug)]
pub struct Part {
    /// The coding.
    pub coding: Coding,
    /// Bits before coding, with parity, without tail.
    pub bits: usize,
    /// Number of these, from the first, that must be correct.
    pub checked: usize,
    /// For each transmission the bits of the mother code that it sends. After the last one they
    /// repeat.
    sent: Vec<Vec<usize>>,
    /// Positions, in the order of sending.
    pub places: Vec<Place>,
}

/// A coding scheme.
#[derive(Clone, Debug)]
pub struct Scheme {
    /// The name in TS 45.003, in lower case.
    pub name: &'static str,
    /// The modulation.
    pub modulation: Modulation,
    /// TDMA frame of each burst, relative to the first.
    pub frames: Vec<u32>,
    /// The header that identifies the block, without which the block is useless. None where it is
    /// coded with the data.
    pub header: Option<Part>,
    /// The parts that must all be correct.
    pub data: Vec<Part>,
    /// Number of transmissions that a receiver combines; 1: none.
    pub attempts: usize,
}

/// Maximum number of EGPRS transmissions in the tables.
const COMBINED: usize = 4;

/// All schemes, in the order of the tables.
pub fn all() -> Vec<Scheme> {
    let mut schemes = vec![
        // Bits: TS 45.003 §5.1.1 (184 + 40 of the fire code), §5.1.2 (268 + 6 of the USF + 16),
        // §5.1.3 (312 + 6 + 16).
        general_packet("cs-1", Coding::Terminated(Code::Half), 224, Puncturing::NONE),
        general_packet("cs-2", Coding::Terminated(Code::Half), 290, puncturing::CS_2),
        general_packet("cs-3", Coding::Terminated(Code::Half), 334, puncturing::CS_3),
        general_packet("cs-4", Coding::Uncoded, 456, Puncturing::NONE),
        circuit("tch-f9.6", 240, puncturing::TCH_F9_6, 1),
        circuit("tch-f14.4", 290, puncturing::TCH_F14_4, 2),
    ];
    // Mother code: bits of the block, its parity and tail, three times (§5.1.5 to §5.1.13).
    schemes.push(enhanced_gmsk("mcs-1", 588, &puncturing::MCS_1));
    schemes.push(enhanced_gmsk("mcs-2", 732, &puncturing::MCS_2));
    schemes.push(enhanced_gmsk("mcs-3", 948, &puncturing::MCS_3));
    schemes.push(enhanced_gmsk("mcs-4", 1116, &puncturing::ONE_IN_THREE));
    schemes.push(enhanced_psk("mcs-5", 1404, &puncturing::MCS_5, HEADER_ONE_BLOCK, one_block));
    schemes.push(enhanced_psk("mcs-6", 1836, &puncturing::MCS_6, HEADER_ONE_BLOCK, one_block));
    schemes.push(enhanced_psk("mcs-7", 1404, &puncturing::MCS_7, HEADER_TWO_BLOCKS, over_four));
    schemes.push(enhanced_psk("mcs-8", 1692, &puncturing::MCS_8, HEADER_TWO_BLOCKS, over_two));
    schemes.push(enhanced_psk("mcs-9", 1836, &puncturing::ONE_IN_THREE, HEADER_TWO_BLOCKS, over_two));
    schemes.push(flag_of_cs_1());
    schemes.push(flag("usf-gmsk", Modulation::Gmsk, Coding::Words(&USF_12, 12), |k| binary(k, k % 4)));
    schemes.push(flag("usf-8-psk", Modulation::Psk8, Coding::Words(&USF_36, 36), safer_bits));
    schemes
}

/// The scheme with this name.
pub fn named(name: &str) -> Option<Scheme> {
    all().into_iter().find(|scheme| scheme.name == name)
}

impl Part {
    fn new(coding: Coding, bits: usize, patterns: &[Puncturing], place: impl Fn(usize) -> Place) -> Self {
        let sent: Vec<_> = patterns.iter().map(|pattern| pattern.sent(coding.length(bits))).collect();
        let places = (0..sent[0].len()).map(place).collect();
        Self { coding, bits, checked: bits, sent, places }
    }

    /// The bits of the mother code that transmission `attempt`, from 0, sends.
    pub fn sent(&self, attempt: usize) -> &[usize] {
        &self.sent[attempt % self.sent.len()]
    }

    fn header(bits: usize, pattern: Puncturing, place: impl Fn(usize) -> Place) -> Self {
        Self::new(Coding::Circular(Code::Third), bits, &[pattern], place)
    }
}

/// A binary symbol: with a constant gain per burst, only the burst matters.
fn binary(k: usize, burst: usize) -> Place {
    Place { burst: burst as u8, symbol: k as u16, bit: 0 }
}

/// CS-1 to CS-4: over four bursts, bit by bit in turn (§5.1.1.3, §4.1.4).
fn general_packet(name: &'static str, coding: Coding, bits: usize, puncturing: Puncturing) -> Scheme {
    let data = Part::new(coding, bits, &[puncturing], |k| binary(k, k % 4));
    Scheme { name, modulation: Modulation::Gmsk, frames: (0..4).collect(), header: None, data: vec![data], attempts: 1 }
}

/// TCH for data: each block of 20 ms over 22 bursts (§3.3.4), the next one four bursts later. A
/// frame of the radio link protocol is one block at 9.6 kbit/s, two at 14.4 kbit/s.
fn circuit(name: &'static str, bits: usize, puncturing: Puncturing, blocks: usize) -> Scheme {
    let data = (0..blocks).map(|block| {
        Part::new(Coding::Terminated(Code::Half), bits, &[puncturing], move |k| {
            binary(456 * block + k, 4 * block + k % 19 + k / 114)
        })
    });
    // One of 13 TDMA frames does not carry traffic: the 26-multiframe has the SACCH and an idle
    // frame (TS 45.002 §7).
    let frames = (0..22 + 4 * (blocks as u32 - 1)).map(|burst| burst + burst / 12).collect();
    Scheme { name, modulation: Modulation::Gmsk, frames, header: None, data: data.collect(), attempts: 1 }
}

/// MCS-1 to MCS-4: USF (12 bits), header (68) and data (372) in sequence, with four extra stealing
/// bits between them, over four bursts in turn (§5.1.5.1.5).
fn enhanced_gmsk(name: &'static str, mother: usize, patterns: &[Puncturing]) -> Scheme {
    let place = |k: usize| {
        let stealing_bits = [25, 82, 139, 424];
        let position = stealing_bits.iter().fold(k, |position, extra| position + usize::from(position >= *extra));
        binary(k, position % 4)
    };
    Scheme {
        name,
        modulation: Modulation::Gmsk,
        frames: (0..4).collect(),
        header: Some(Part::header(36, puncturing::HEADER_MCS_1, |k| place(12 + k))),
        data: vec![Part::new(Coding::Terminated(Code::Third), mother / 3 - 6, patterns, |k| place(80 + k))],
        attempts: COMBINED,
    }
}

/// MCS-5 to MCS-9: one data block (the other one of MCS-7 to MCS-9 is its mirror image). The header
/// uses the two safer bits of its symbols, as after the swaps of §5.1.9.1.6.
fn enhanced_psk(
    name: &'static str,
    mother: usize,
    patterns: &[Puncturing],
    header: (usize, Puncturing),
    data: fn(usize) -> Place,
) -> Scheme {
    Scheme {
        name,
        modulation: Modulation::Psk8,
        frames: (0..4).collect(),
        header: Some(Part::header(header.0, header.1, safer_bits)),
        data: vec![Part::new(Coding::Terminated(Code::Third), mother / 3 - 6, patterns, data)],
        attempts: COMBINED,
    }
}

/// The uplink state flag of CS-1 (§5.1.1.2): the first three bits of the block, coded with it.
fn flag_of_cs_1() -> Scheme {
    let mut scheme = general_packet("usf-cs-1", Coding::Terminated(Code::Half), 224, Puncturing::NONE);
    scheme.data[0].checked = 3;
    scheme
}

/// The uplink state flag with a code of its own.
fn flag(name: &'static str, modulation: Modulation, coding: Coding, place: fn(usize) -> Place) -> Scheme {
    let data = vec![Part::new(coding, 3, &[Puncturing::NONE], place)];
    Scheme { name, modulation, frames: (0..4).collect(), header: None, data, attempts: 1 }
}

/// Bit k of a header or flag on 8-PSK: over four bursts in turn, on the first two bits of its
/// symbols.
fn safer_bits(k: usize) -> Place {
    let symbol = DATA_SYMBOLS + k / 8 * 4 + k % 4;
    Place { burst: (k % 4) as u8, symbol: symbol as u16, bit: (k / 4 % 2) as u8 }
}

/// The header of MCS-5 and MCS-6 (§5.1.9.1.3) and of MCS-7 to MCS-9 (§5.1.11.1.3), in the downlink:
/// bits with parity.
const HEADER_ONE_BLOCK: (usize, Puncturing) = (33, Puncturing::NONE);
const HEADER_TWO_BLOCKS: (usize, Puncturing) = (45, puncturing::HEADER_MCS_7);

/// Maximum number of data symbols in four bursts; symbols of the header are counted from here.
const DATA_SYMBOLS: usize = 416;

fn eight_phase(burst: usize, symbol: usize, bit: usize, symbols: usize) -> Place {
    Place { burst: burst as u8, symbol: (burst * symbols + symbol) as u16, bit: bit as u8 }
}

/// MCS-5 and MCS-6: 1248 bits over four bursts of 104 symbols. The standard has a table
/// (§5.1.9.1.5); this mapping is evenly spread, too: bursts in turn, and bits of one symbol far
/// apart in the code word.
fn one_block(k: usize) -> Place {
    let (burst, m) = (k % 4, k / 4);
    eight_phase(burst, (47 * (m / 3) + 35 * (m % 3)) % 104, m % 3, 104)
}

/// MCS-7 (§5.1.11.1.5): each of two blocks of 612 bits over four bursts of 102 symbols.
fn over_four(k: usize) -> Place {
    eight_phase(k % 4, (44 * k % 102 + k / 4 % 2) % 102, (k + 2 - k / 408) % 3, 102)
}

/// MCS-8 and MCS-9 (§5.1.12.1.5): each of two blocks of 612 bits over two bursts of 102 symbols.
fn over_two(k: usize) -> Place {
    eight_phase(2 * (k / 612) + k % 2, (74 * k % 102 + k / 2 % 2) % 102, (k + 2 - k / 204) % 3, 102)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_has_a_place_of_its_own() {
        for scheme in all() {
            let mut places: Vec<_> = scheme.data.iter().chain(&scheme.header).flat_map(|part| &part.places).collect();
            let count = places.len();
            places.sort_by_key(|place| (place.symbol, place.bit));
            places.dedup_by_key(|place| (place.symbol, place.bit));
            assert_eq!(places.len(), count, "{}", scheme.name);
            assert!(places.iter().all(|place| usize::from(place.burst) < scheme.frames.len()), "{}", scheme.name);
        }
    }

    #[test]
    fn a_block_is_spread_evenly_over_its_bursts() {
        for (name, bursts) in [("cs-1", 4), ("mcs-1", 4), ("mcs-5", 4), ("mcs-7", 4), ("mcs-9", 2)] {
            let data = &named(name).expect("a scheme").data[0];
            let mut counts = vec![0usize; bursts];
            data.places.iter().for_each(|place| counts[usize::from(place.burst)] += 1);
            let mean = data.places.len() / bursts;
            assert!(counts.iter().all(|count| count.abs_diff(mean) <= 1), "{name}: {counts:?}");
        }
    }

    #[test]
    fn each_way_of_sending_fills_its_places() {
        for scheme in all() {
            for part in scheme.data.iter().chain(&scheme.header) {
                assert!(part.sent.iter().all(|sent| sent.len() == part.places.len()), "{}", scheme.name);
            }
        }
    }
}
