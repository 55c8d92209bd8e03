//! The transmissions of a transport block, as the receiver combines them.

use std::cell::Cell;

use airpath_core::{Decibel, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block_errors::{Block, Decoder, any_of, missing_information};
use super::information::Information;
use super::segmentation::CodeBlocks;

/// What the receiver does with a block that it could not decode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Combining {
    /// It discards the block.
    None,
    /// A retransmission repeats the bits of the first transmission: signal-to-noise ratios add.
    Chase,
    /// A retransmission carries further bits of the code, down to its lowest rate: information
    /// adds. Beyond the lowest rate it repeats bits.
    #[default]
    IncrementalRedundancy,
}

/// The receiver's memory of one transport block.
///
/// Chase combining and incremental redundancy are one rule. The buffer holds a number of distinct
/// symbols: those of the first transmission, or as many as the lowest code rate has. Symbols up to
/// that number add their information. The energy of further ones is spread over all of them.
///
/// The limited buffer of mobiles (TS 36.212 §5.1.4.1.2, TS 38.212 §5.4.2.1) is left out.
#[derive(Clone, Debug)]
pub struct SoftBuffer {
    decoder: Decoder,
    combining: Combining,
    block: Block,
    code_blocks: CodeBlocks,
    /// Distinct symbols that the buffer may hold.
    capacity: f64,
    /// What carried distinct symbols.
    parts: [Part; MAX_PARTS],
    used: usize,
    /// Distinct symbols received.
    distinct: f64,
    /// Symbols that repeat others, times their signal-to-noise ratio.
    repeated_energy: f64,
    /// The probability that all transmissions so far failed.
    failed: f64,
}

/// The distinct symbols of one transmission.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    symbols: f64,
    /// After the implementation gap.
    snr_db: f64,
}

/// Transmissions that can carry distinct symbols. Those of later ones count as repeated.
const MAX_PARTS: usize = 8;

impl SoftBuffer {
    /// An empty buffer for a block. Its symbols are those of the first transmission.
    pub fn new(decoder: Decoder, combining: Combining, block: Block) -> Self {
        let code_blocks = block.code_blocks(decoder.coding);
        let first = f64::from(block.symbols);
        let capacity = match combining {
            Combining::IncrementalRedundancy => {
                let coded = code_blocks.bits * f64::from(code_blocks.count) / code_blocks.mother_rate;
                first.max(coded / f64::from(block.modulation.bits()))
            }
            Combining::None | Combining::Chase => first,
        };
        Self {
            decoder,
            combining,
            block,
            code_blocks,
            capacity,
            parts: [Part::default(); MAX_PARTS],
            used: 0,
            distinct: 0.0,
            repeated_energy: 0.0,
            failed: 1.0,
        }
    }

    /// Adds a transmission in `symbols` symbols. Returns the probability that the block still
    /// cannot be decoded, given that all transmissions before failed.
    ///
    /// The probability of the first is [`Decoder::errors`]. A later one fails only where the
    /// earlier ones did, so the ratio of the two probabilities is returned.
    pub fn receive(&mut self, symbols: u32, snr: Decibel) -> Probability {
        self.receive_with(symbols, snr, |buffer| buffer.errors())
    }

    /// The same, where `known` has what was computed before for first transmissions. All blocks in
    /// it have one decoder and one way of combining.
    #[inline]
    pub fn receive_known(&mut self, symbols: u32, snr: Decibel, known: &FirstErrors) -> Probability {
        let is_first = self.used == 0 && self.repeated_energy == 0.0;
        self.receive_with(symbols, snr, |buffer| match is_first {
            true => known.get(&buffer.block, symbols, snr, || buffer.errors()),
            false => buffer.errors(),
        })
    }

    #[inline]
    fn receive_with(&mut self, symbols: u32, snr: Decibel, errors: impl FnOnce(&Self) -> f64) -> Probability {
        let snr_db = snr.get() - self.decoder.gap.get();
        if self.combining == Combining::None {
            (self.used, self.distinct, self.failed) = (0, 0.0, 1.0);
        }
        self.add(f64::from(symbols), snr_db);
        let fails = errors(self).min(self.failed);
        let given = if self.failed > 0.0 { fails / self.failed } else { 0.0 };
        self.failed = fails;
        Probability::new(given.min(1.0)).expect("a ratio of probabilities, the smaller first")
    }

    fn add(&mut self, symbols: f64, snr_db: f64) {
        let room = if self.used < MAX_PARTS { (self.capacity - self.distinct).max(0.0) } else { 0.0 };
        let distinct = symbols.min(room);
        if distinct > 0.0 {
            self.parts[self.used] = Part { symbols: distinct, snr_db };
            self.used += 1;
            self.distinct += distinct;
        }
        if symbols > distinct {
            self.repeated_energy += (symbols - distinct) * libm::exp10(snr_db / 10.0);
        }
    }

    fn errors(&self) -> f64 {
        let added = self.repeated_energy / self.distinct;
        let (mut mean, mut variance) = (0.0, 0.0);
        for part in &self.parts[..self.used] {
            let snr_db =
                if added > 0.0 { 10.0 * libm::log10(libm::exp10(part.snr_db / 10.0) + added) } else { part.snr_db };
            let information = Information::of(self.block.modulation, snr_db);
            mean += part.symbols * information.mean;
            variance += part.symbols * information.variance;
        }
        let CodeBlocks { count, bits, .. } = self.code_blocks;
        let share = 1.0 / f64::from(count);
        let each = missing_information(mean * share, variance * share, bits, self.distinct * share);
        any_of(each, count).get()
    }
}

/// Error probabilities of first transmissions that were computed before. Where the channel stays
/// as it is, most blocks have one of a few formats.
#[derive(Clone, Debug)]
pub struct FirstErrors {
    /// By a hash of block, symbols and ratio. A new one replaces that of the same hash.
    entries: Box<[Cell<Option<FirstError>>; 64]>,
}

impl Default for FirstErrors {
    fn default() -> Self {
        Self { entries: Box::new([const { Cell::new(None) }; 64]) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct FirstError {
    block: Block,
    symbols: u32,
    snr: Decibel,
    errors: f64,
}

impl FirstErrors {
    #[inline]
    fn get(&self, block: &Block, symbols: u32, snr: Decibel, compute: impl FnOnce() -> f64) -> f64 {
        // Fibonacci hashing.
        let key = u64::from(block.bits) << 32 ^ u64::from(symbols) << 8 ^ snr.get().to_bits();
        let entry = &self.entries[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as usize];
        let known = entry.get().filter(|it| it.block == *block && it.symbols == symbols && it.snr == snr);
        known.map_or_else(
            || {
                let errors = compute();
                entry.set(Some(FirstError { block: *block, symbols, snr, errors }));
                errors
            },
            |known| known.errors,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::link_adaptation::{Coding, Format, Modulation};
    use proptest::prelude::*;

    fn db(db: f64) -> Decibel {
        Decibel::new(db).expect("finite")
    }

    /// The signal-to-noise ratio of each of `attempts` transmissions with which half of the blocks
    /// fail after the last.
    fn point(format: &Format, combining: Combining, attempts: u32) -> f64 {
        let block = Block::of(format, 6000);
        let (mut low, mut high) = (-30.0, 50.0);
        while high - low > 1e-4 {
            let middle = (low + high) / 2.0;
            let mut buffer = SoftBuffer::new(Decoder::new(Coding::Turbo), combining, block);
            let all: f64 = (0..attempts).map(|_| buffer.receive(block.symbols, db(middle)).get()).product();
            *(if all > 0.5 { &mut low } else { &mut high }) = middle;
        }
        low
    }

    #[test]
    fn chase_adds_the_ratios() {
        for format in [Format::new(Modulation::Qpsk, 308.0), Format::new(Modulation::Qam64, 772.0)] {
            let gain = |attempts| point(&format, Combining::Chase, 1) - point(&format, Combining::Chase, attempts);
            assert!((gain(2) - 3.0103).abs() < 0.01, "{}", gain(2));
            assert!((gain(4) - 6.0206).abs() < 0.01, "{}", gain(4));
        }
    }

    #[test]
    fn redundancy_halves_the_rate_and_then_repeats() {
        let redundancy = Combining::IncrementalRedundancy;
        // Rate 0.754 twice is rate 0.377: close to 386/1024, above the lowest of 1/3.
        let twice = point(&Format::new(Modulation::Qam64, 772.0), redundancy, 2);
        let once = point(&Format::new(Modulation::Qam64, 386.0), redundancy, 1);
        assert!((twice - once).abs() < 0.1, "{twice} {once}");
        // Below the lowest rate both are the same.
        let low = Format::new(Modulation::Qpsk, 193.0);
        let (chase, repeats) = (point(&low, Combining::Chase, 2), point(&low, redundancy, 2));
        assert!((chase - repeats).abs() < 1e-3, "{chase} {repeats}");
        let gain = |format: &Format| point(format, Combining::Chase, 2) - point(format, redundancy, 2);
        assert!(gain(&Format::new(Modulation::Qam64, 772.0)) > 1.5);
    }

    #[test]
    fn the_first_transmission_is_that_of_the_decoder() {
        let decoder = Decoder::new(Coding::Ldpc);
        let block = Block::of(&Format::new(Modulation::Qam16, 490.0), 9000);
        for combining in [Combining::None, Combining::Chase, Combining::IncrementalRedundancy] {
            for snr in [4.0, 6.0, 6.2, 9.0] {
                let first = SoftBuffer::new(decoder, combining, block).receive(9000, db(snr)).get();
                assert!((first - decoder.errors(&block, db(snr)).get()).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn without_combining_attempts_are_alike() {
        let block = Block::of(&Format::new(Modulation::Qam16, 490.0), 9000);
        let mut buffer = SoftBuffer::new(Decoder::new(Coding::Turbo), Combining::None, block);
        let errors: Vec<Probability> = (0..10).map(|_| buffer.receive(9000, db(6.5))).collect();
        assert!(errors.iter().all(|each| *each == errors[0]) && errors[0] > Probability::NEVER);
    }

    /// In fading, a second transmission at a good ratio carries the block, after a first without
    /// use.
    #[test]
    fn information_adds_not_the_mean_ratio() {
        let block = Block::of(&Format::new(Modulation::Qpsk, 602.0), 6000);
        let decoder = Decoder::new(Coding::Turbo);
        let mut buffer = SoftBuffer::new(decoder, Combining::IncrementalRedundancy, block);
        assert!(buffer.receive(6000, db(-20.0)).get() > 0.999);
        // 1.0 dB alone is below its 10 % point of about 3 dB, and −20 dB adds 1 %.
        assert!(buffer.receive(6000, db(1.0)).get() > 0.99);
        assert!(buffer.receive(6000, db(1.0)).get() < 1e-6);
    }

    proptest! {
        #[test]
        fn every_transmission_helps_and_any_number_is_accepted(
            ratios in prop::collection::vec((-20.0f64..30.0, 1u32..20_000), 1..20),
            rate in 50.0f64..948.0, modulation in 0usize..4, combining in 1usize..3,
        ) {
            let combining = [Combining::None, Combining::Chase, Combining::IncrementalRedundancy][combining];
            let block = Block::of(&Format::new(Modulation::ALL[modulation], rate), 6000);
            let mut buffer = SoftBuffer::new(Decoder::new(Coding::Turbo), combining, block);
            for (snr, symbols) in ratios {
                let before = buffer.failed;
                let given = buffer.receive(symbols, db(snr)).get();
                prop_assert!((0.0..=1.0).contains(&given) && buffer.failed <= before);
            }
        }
    }

    #[test]
    fn what_is_known_is_what_would_be_computed() {
        let known = FirstErrors::default();
        for round in 0..3 {
            for (bits, snr) in (0..200).map(|index| (1000 + 8 * (index % 90), f64::from(index % 7) - 1.0)) {
                let block = Block { modulation: Modulation::Qpsk, bits, symbols: 900 };
                let combining = Combining::IncrementalRedundancy;
                let mut first = SoftBuffer::new(Decoder::new(Coding::Turbo), combining, block);
                let mut second = first.clone();
                for symbols in [900, 900, 450] {
                    let expected = first.receive(symbols, db(snr));
                    assert_eq!(second.receive_known(symbols, db(snr), &known), expected, "{round} {bits} {snr}");
                }
            }
        }
    }
}
