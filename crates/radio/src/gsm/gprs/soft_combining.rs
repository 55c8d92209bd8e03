//! Incremental redundancy: which transmissions of an RLC block the receiver combines.
//!
//! A receiver of EGPRS keeps what it could not decode, and decodes the next transmission together
//! with it (TS 44.060 §9.3.2.1, recalled). Transmissions have the same convolutional code if they
//! have the same scheme. MCS-9 and MCS-6 share one, and so do MCS-7 and MCS-5: their payloads are
//! equal, and the puncturing scheme after a change between them continues (table 9.3.2.1.1,
//! recalled). All others are decoded alone: an RLC block of MCS-8 that is padded for MCS-6, and the
//! halves of a block, which are blocks of their own to the decoder.

use std::collections::VecDeque;

use super::coding_scheme::CodingScheme::{self, Mcs5, Mcs6, Mcs8};
use crate::common::arq::acknowledged::Pdu;

/// What a radio block carries of an RLC block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Whole,
    First,
    Second { first_received: bool },
}

/// The transmissions of each RLC block from the oldest that is not acknowledged on.
#[derive(Clone, Debug, Default)]
pub struct SoftCombining {
    /// The sequence number of the first.
    first: u64,
    blocks: VecDeque<Transmissions>,
}

/// Coded bits of one RLC block that were sent, in units of [`coded_bits`].
#[derive(Clone, Copy, Debug, Default)]
struct Transmissions {
    whole: u32,
    /// Those of MCS-8 with padding.
    padded: u32,
    halves: [u32; 2],
}

impl SoftCombining {
    /// Counts a transmission of an RLC block that was first sent in `original`. Returns its number
    /// among those that the receiver combines, from 1, as the block error table of `scheme` counts
    /// them.
    pub fn count(&mut self, pdu: &Pdu, original: CodingScheme, scheme: CodingScheme, part: Part) -> u32 {
        let place = pdu.sequence.saturating_sub(self.first) as usize;
        if self.blocks.len() <= place {
            self.blocks.resize(place + 1, Transmissions::default());
        }
        let block = &mut self.blocks[place];
        let counter = match part {
            Part::First => &mut block.halves[0],
            Part::Second { .. } => &mut block.halves[1],
            Part::Whole if original == Mcs8 && scheme != Mcs8 => &mut block.padded,
            Part::Whole => &mut block.whole,
        };
        let bits = coded_bits(scheme);
        let attempt = *counter / bits + 1;
        *counter += bits;
        attempt
    }

    /// Forgets the RLC blocks before `sequence`.
    pub fn forget_below(&mut self, sequence: u64) {
        let gone = (sequence.saturating_sub(self.first) as usize).min(self.blocks.len());
        self.blocks.drain(..gone);
        self.first = self.first.max(sequence);
    }
}

/// The coded bits that a scheme sends of an RLC block, in units of those of MCS-7 and MCS-9: these
/// have two RLC blocks in a radio block (612 bits each), MCS-5 and MCS-6 one of the same payload
/// (1248 bits; TS 45.003 §5.1.9 to §5.1.13). Schemes that are combined with no other have one unit.
const fn coded_bits(scheme: CodingScheme) -> u32 {
    match scheme {
        Mcs5 | Mcs6 => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::CodingScheme::{Mcs1, Mcs3, Mcs4, Mcs7, Mcs9};
    use super::*;

    /// The attempts that a series of transmissions of one RLC block is.
    fn attempts(original: CodingScheme, sent: &[(CodingScheme, Part)]) -> Vec<u32> {
        let mut combining = SoftCombining::default();
        let pdu = Pdu { sequence: 3, offset: 0, length: 10, attempt: 1, tag: original as u8, transmission: 0 };
        sent.iter().map(|(scheme, part)| combining.count(&pdu, original, *scheme, *part)).collect()
    }

    #[test]
    fn only_transmissions_of_one_code_are_combined() {
        let whole = |schemes: &[CodingScheme]| schemes.iter().map(|scheme| (*scheme, Part::Whole)).collect::<Vec<_>>();
        assert_eq!(attempts(Mcs9, &whole(&[Mcs9, Mcs9, Mcs9])), [1, 2, 3]);
        assert_eq!(attempts(Mcs4, &whole(&[Mcs4, Mcs4])), [1, 2]);
        // One of MCS-6 has the bits of two of MCS-9; a single one of MCS-9 is half of one.
        assert_eq!(attempts(Mcs9, &whole(&[Mcs9, Mcs6, Mcs6, Mcs9])), [1, 1, 2, 6]);
        assert_eq!(attempts(Mcs6, &whole(&[Mcs6, Mcs9])), [1, 3]);
        assert_eq!(attempts(Mcs7, &whole(&[Mcs7, Mcs7, Mcs5])), [1, 2, 2]);
        // Padding makes another block of it, and the two kinds are counted apart.
        assert_eq!(attempts(Mcs8, &whole(&[Mcs8, Mcs6, Mcs6, Mcs8])), [1, 1, 2, 2]);
    }

    #[test]
    fn halves_are_combined_with_the_same_half() {
        let second = Part::Second { first_received: true };
        let sent = [(Mcs6, Part::Whole), (Mcs3, Part::First), (Mcs3, second), (Mcs3, Part::First), (Mcs3, second)];
        assert_eq!(attempts(Mcs6, &sent), [1, 1, 1, 2, 2]);
        assert_eq!(attempts(Mcs4, &[(Mcs4, Part::Whole), (Mcs1, Part::First), (Mcs4, Part::Whole)]), [1, 1, 2]);
    }

    #[test]
    fn acknowledged_blocks_are_forgotten() {
        let mut combining = SoftCombining::default();
        let mut count = |sequence, below| {
            combining.forget_below(below);
            let pdu = Pdu { sequence, offset: 0, length: 10, attempt: 1, tag: 0, transmission: 0 };
            (combining.count(&pdu, Mcs9, Mcs9, Part::Whole), combining.blocks.len())
        };
        assert_eq!(
            [count(5, 0), count(5, 5), count(6, 5), count(6, 6), count(90, 90)],
            [(1, 6), (2, 1), (1, 2), (2, 1), (1, 1)]
        );
    }
}
