//! What the base station has to send to a mobile, and the blocks that MAC-hs or MAC-ehs make of it.
//!
//! MAC-hs puts whole PDUs of one size into a block (TS 25.321 §9.2.2). MAC-ehs fills a block with
//! PDUs of any size, and cuts the last one: the next block begins with the rest (§11.6.4.6).

use std::collections::VecDeque;

use airpath_core::Bytes;

use super::transport_block::TransportBlock;
use super::unit::{Block, RLC_HEADER, Unit};

/// How blocks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// MAC-hs: amounts are numbers of PDUs.
    WholePdus,
    /// MAC-ehs: amounts are octets.
    Segments,
}

/// TSN and segmentation indication of a reordering PDU: 6 and 2 bits (TS 25.321 §9.2.2a).
const REORDERING_HEADER: u32 = 1;

/// LCH-ID, length and flag of each part: 4, 11 and 1 bit.
const PART_HEADER: u32 = 2;

impl Packing {
    /// What a block holds with PDUs of `pdu` bytes: PDUs, or octets with the headers of MAC-ehs. No
    /// block is so small that these alone fill it.
    pub const fn amount(self, block: TransportBlock, pdu: u32) -> u32 {
        match self {
            Self::WholePdus => block.pdus(pdu),
            Self::Segments => block.octets(),
        }
    }

    /// The bits of an amount of 1, with PDUs of this payload.
    pub const fn unit(self, pdu: Bytes) -> u64 {
        match self {
            Self::WholePdus => 8 * pdu.get(),
            Self::Segments => 8,
        }
    }

    /// The largest PDU with this payload, in credits.
    pub const fn largest(self, pdu: u32) -> u32 {
        match self {
            Self::WholePdus => 1,
            Self::Segments => RLC_HEADER + pdu,
        }
    }

    /// What a PDU takes of credits.
    pub const fn credits(self, unit: &Unit) -> u32 {
        match self {
            Self::WholePdus => 1,
            Self::Segments => unit.octets,
        }
    }
}

/// The buffer for one mobile.
#[derive(Debug)]
pub struct Buffer {
    packing: Packing,
    units: VecDeque<Unit>,
    /// Octets of the first that were sent.
    sent: u32,
    /// Credits that all of it takes, what was sent not counted.
    credits: u32,
}

impl Buffer {
    /// An empty one.
    pub const fn new(packing: Packing) -> Self {
        Self { packing, units: VecDeque::new(), sent: 0, credits: 0 }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// What a block must hold for all of it: PDUs, or octets with the headers of MAC-ehs.
    pub fn waiting(&self) -> u32 {
        match self.packing {
            Packing::WholePdus => self.credits,
            Packing::Segments => REORDERING_HEADER + self.credits + PART_HEADER * self.units.len() as u32,
        }
    }

    /// The credits that its content takes.
    pub const fn credits(&self) -> u32 {
        self.credits
    }

    /// Adds what has come from the RNC.
    pub fn extend(&mut self, units: impl Iterator<Item = Unit>) {
        for unit in units {
            self.credits += self.packing.credits(&unit);
            self.units.push_back(unit);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.units.clear();
        (self.sent, self.credits) = (0, 0);
    }

    /// Moves a block's worth into `units`: PDUs, or octets with the headers of MAC-ehs.
    pub fn take(&mut self, amount: u32, units: &mut Vec<Unit>) {
        match self.packing {
            Packing::WholePdus => {
                self.credits -= amount;
                let whole = |unit| Unit { starts: true, ends: true, ..unit };
                units.extend(self.units.drain(..amount as usize).map(whole));
            }
            Packing::Segments => self.fill(amount.saturating_sub(REORDERING_HEADER), units),
        }
    }

    fn fill(&mut self, mut room: u32, units: &mut Vec<Unit>) {
        while room > PART_HEADER
            && let Some(first) = self.units.front().copied()
        {
            room -= PART_HEADER;
            let part = room.min(first.octets - self.sent);
            let (starts, ends) = (self.sent == 0, self.sent + part == first.octets);
            units.push(Unit { octets: part, starts, ends, ..first });
            room -= part;
            self.credits -= part;
            if ends {
                self.units.pop_front();
                self.sent = 0;
            } else {
                self.sent += part;
            }
        }
    }
}

/// The mobile's end: puts parts together. Blocks come in the order of their numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reassembly {
    /// The last block, if it ended with a part that the next one continues.
    open: Option<u64>,
}

impl Reassembly {
    /// A block has come. What waited for another one is lost.
    pub fn begin(&mut self, block: &Block) {
        self.open = self.open.filter(|last| last + 1 == block.number);
    }

    /// Whether a PDU is complete with this part of block `number`.
    pub const fn take(&mut self, number: u64, unit: &Unit) -> bool {
        let has_begun = unit.starts || self.open.is_some();
        self.open = if has_begun && !unit.ends { Some(number) } else { None };
        has_begun && unit.ends
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit(octets: u32) -> Unit {
        Unit { octets, ..Unit::default() }
    }

    #[test]
    fn a_block_has_parts_with_headers() {
        let mut buffer = Buffer::new(Packing::Segments);
        buffer.extend([unit(100), unit(50)].into_iter());
        assert_eq!((buffer.waiting(), buffer.credits()), (1 + 2 * 2 + 150, 150));
        let mut take = |amount| {
            let mut units = Vec::new();
            buffer.take(amount, &mut units);
            let parts = units.iter().map(|unit| (unit.octets, unit.starts, unit.ends)).collect::<Vec<_>>();
            (parts, buffer.waiting())
        };
        assert_eq!(take(63), (vec![(60, true, false)], 1 + 2 * 2 + 90));
        assert_eq!(take(60), (vec![(40, false, true), (15, true, false)], 1 + 2 + 35));
        assert_eq!(take(500), (vec![(35, false, true)], 1));
        assert!(buffer.is_empty());
    }

    #[test]
    fn a_lost_block_loses_the_pdus_it_has_parts_of() {
        let mut buffer = Buffer::new(Packing::Segments);
        buffer.extend([unit(100), unit(10), unit(100), unit(10)].into_iter());
        let blocks: Vec<Block> = (0..4)
            .map(|number| {
                let mut units = Vec::new();
                buffer.take(70, &mut units);
                Block { number, units }
            })
            .collect();
        let complete = |lost: u64| {
            let mut reassembly = Reassembly::default();
            let mut complete = Vec::new();
            for block in blocks.iter().filter(|block| block.number != lost) {
                reassembly.begin(block);
                complete.extend(block.units.iter().map(|unit| reassembly.take(block.number, unit)));
            }
            complete.iter().filter(|is| **is).count()
        };
        assert_eq!(complete(9), 4, "none is lost");
        assert_eq!(complete(0), 3);
        assert_eq!(complete(1), 1, "the first, the second and the third have a part in it");
        assert_eq!(complete(3), 2);
    }

    proptest! {
        #[test]
        fn all_octets_go_once(sizes in prop::collection::vec(1u32..3000, 1..30), blocks in prop::collection::vec(4u32..5000, 1..20)) {
            let mut buffer = Buffer::new(Packing::Segments);
            buffer.extend(sizes.iter().map(|size| unit(*size)));
            let (mut octets, mut ends, mut reassembly) = (0, 0, Reassembly::default());
            for (number, room) in blocks.iter().cycle().enumerate() {
                if buffer.is_empty() {
                    break;
                }
                let mut units = Vec::new();
                buffer.take(*room, &mut units);
                let used: u32 = units.iter().map(|unit| unit.octets + PART_HEADER).sum();
                prop_assert!(used + REORDERING_HEADER <= *room);
                let block = Block { number: number as u64, units };
                reassembly.begin(&block);
                octets += block.units.iter().map(|unit| unit.octets).sum::<u32>();
                ends += block.units.iter().filter(|unit| reassembly.take(block.number, unit)).count();
            }
            prop_assert_eq!((octets, ends, buffer.credits()), (sizes.iter().sum(), sizes.len(), 0));
        }
    }
}
