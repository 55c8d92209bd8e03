//! The ladder of grants: the block that each allows, and what it costs of the noise rise.

use airpath_core::{Decibel, Span};

/// Chips a second (TS 25.213).
const CHIP_RATE: f64 = 3.84e6;

/// Headers of MAC-es and MAC-e with one flow of PDUs: TSN, DDI and N of 6 bits each, and scheduling
/// information of 18 bits (TS 25.321 §9.2.4.2, §9.3.1.2, recalled).
const HEADER: u32 = 36;

/// Rates from the first grant to the largest block, each a step above the one before.
#[derive(Clone, Debug)]
pub struct Ladder {
    tti: Span,
    eb_n0: f64,
    /// Of the power received in the cell that grants may be, at most.
    limit: f64,
    /// Bits of a block, and share of the power received in the cell, by step.
    steps: Vec<(u32, f64)>,
}

/// What a ladder follows from.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// Length of a TTI.
    pub tti: Span,
    /// Energy of a bit over noise and interference that a block needs.
    pub eb_n0: Decibel,
    /// Noise rise that all granted mobiles of the cell may cause together.
    pub noise_rise: Decibel,
    /// Bits of a block of the first grant, at most the largest block. It has room for a PDU.
    pub first: u64,
    /// Bytes of a PDU.
    pub pdu: u32,
    /// From a grant to the next, above zero.
    pub step: Decibel,
    /// Bits of the largest block.
    pub largest: u32,
}

impl Ladder {
    /// The ladder of a range of grants. A step allows a whole number of PDUs: what no PDU fills
    /// causes no noise.
    pub fn new(range: Range) -> Self {
        let limit = 1.0 - libm::exp10(-range.noise_rise.get() / 10.0);
        let mut ladder = Self { tti: range.tti, eb_n0: range.eb_n0.get(), limit, steps: Vec::new() };
        for step in 0..=u8::MAX {
            let bits = (range.first as f64 * libm::exp10(range.step.get() * f64::from(step) / 10.0)) as u32;
            let pdus = Self::pdus(bits.min(range.largest), range.pdu).max(1);
            let filled = Self::bits_of(pdus, range.pdu);
            let ratio = libm::exp10(ladder.needs(filled) / 10.0);
            if ladder.steps.last().is_none_or(|(last, _)| *last < filled) {
                ladder.steps.push((filled, ratio / (1.0 + ratio)));
            }
            if bits >= range.largest {
                break;
            }
        }
        ladder
    }

    /// How many PDUs of `pdu` bytes a block of this number of bits holds: each has a header of 16
    /// bits (TS 25.322 §9.2.1.4).
    pub const fn pdus(bits: u32, pdu: u32) -> u32 {
        bits.saturating_sub(HEADER) / (8 * pdu + 16)
    }

    /// The bits of a block with this number of PDUs.
    pub const fn bits_of(pdus: u32, pdu: u32) -> u32 {
        HEADER + pdus * (8 * pdu + 16)
    }

    /// C/I in decibels that a block of this number of bits needs.
    pub fn needs(&self, bits: u32) -> f64 {
        let rate = f64::from(bits) / self.tti.as_secs_f64();
        self.eb_n0 + 10.0 * libm::log10(rate / CHIP_RATE)
    }

    /// The bits of the largest block that a C/I in decibels is enough for.
    pub fn bits_at(&self, ci: f64) -> u32 {
        // Beyond the range there is no limit, or nothing.
        (CHIP_RATE * self.tti.as_secs_f64() * libm::exp10((ci - self.eb_n0) / 10.0)) as u32
    }

    /// The last step.
    pub fn top(&self) -> u8 {
        self.steps.len() as u8 - 1
    }

    /// The bits of a block that a step allows.
    pub fn bits(&self, step: u8) -> u32 {
        self.steps[usize::from(step)].0
    }

    /// The time that a step takes to carry this number of bytes.
    pub fn time_for(&self, step: u8, bytes: u64) -> Span {
        Span::from_secs_f64(8.0 * bytes as f64 / f64::from(self.bits(step)) * self.tti.as_secs_f64())
    }

    /// The share of the power received in the cell that a mobile with a step causes: with a noise
    /// rise of r all of them are 1 − 1/r.
    pub fn load(&self, step: u8) -> f64 {
        self.steps[usize::from(step)].1
    }

    /// Whether there is room for all of this load.
    pub fn has_room(&self, load: f64) -> bool {
        load <= self.limit
    }

    /// Whether one mobile can have the first grant.
    pub fn admits_first(&self) -> bool {
        self.has_room(self.load(0))
    }
}
