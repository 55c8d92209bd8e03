//! Headers of slices (H.264 §7.3.3), as far as frames and their order need them.

use super::bits::Bits;
use super::parameter_sets::{Order, SequenceParameters};
use super::{REFERENCE, unit_type};
use crate::streaming::video::FrameKind;

/// The begin of a slice, which is readable without parameter sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Whether it has the first macroblock of its picture.
    pub is_first: bool,
    /// The references that it may use.
    pub kind: FrameKind,
    /// Number of its picture parameter set.
    pub parameters: u32,
}

impl Slice {
    /// Reads the begin of a NAL unit of type 1, 2 or 5. `None` if it is no slice.
    pub fn parse(unit: &[u8]) -> Option<Self> {
        Self::begin(unit).map(|(slice, _)| slice)
    }

    fn begin(unit: &[u8]) -> Option<(Self, Bits<'_>)> {
        let mut bits = Bits::new(unit.get(1..)?);
        let is_first = bits.golomb()? == 0;
        // Types 5 to 9 state the type of all slices of the picture.
        let kind = match bits.golomb()? {
            kind @ 0..=9 => match kind % 5 {
                0 | 3 => FrameKind::P,
                1 => FrameKind::B,
                _ => FrameKind::I,
            },
            _ => return None,
        };
        let parameters = bits.golomb().filter(|id| *id < super::parameter_sets::MOST_PICTURE_SETS)?;
        Some((Self { is_first, kind, parameters }, bits))
    }
}

/// The order of display of a slice's picture, as its header has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceOrder {
    /// Whether the picture is a field.
    pub is_field: bool,
    /// The lowest bits of the picture's order count; zero if it is coded otherwise.
    pub count: u32,
}

impl SliceOrder {
    /// Reads it from the NAL unit of a slice that uses `parameters`.
    pub fn parse(unit: &[u8], parameters: &SequenceParameters) -> Option<Self> {
        let (_, mut bits) = Slice::begin(unit)?;
        if parameters.separate_planes {
            bits.skip(2)?;
        }
        bits.skip(parameters.frame_number_bits)?;
        let is_field = !parameters.frames_only && bits.bit()?;
        if is_field {
            bits.skip(1)?;
        }
        if unit_type(unit) == super::IDR {
            bits.golomb()?;
        }
        let count = match parameters.order {
            Order::Count { bits: count } => bits.unsigned(count)?,
            Order::Cycle | Order::Decoding => 0,
        };
        Some(Self { is_field, count })
    }
}

/// Order counts of the pictures of a video, from the lowest bits in their slices (§8.2.1.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderCounter {
    /// Those of the last reference picture: the multiple of the range of the bits, and the bits.
    multiple: i64,
    low: u32,
}

impl OrderCounter {
    /// The order count of the next picture; `unit` is its first slice, and `low` are the lowest
    /// `bits` bits. An instantaneous decoding refresh starts again.
    pub fn next(&mut self, unit: &[u8], low: u32, bits: u32) -> i64 {
        let range = 1_i64 << bits;
        if unit_type(unit) == super::IDR {
            *self = Self::default();
        }
        let multiple = match i64::from(low) - i64::from(self.low) {
            change if change <= -range / 2 => self.multiple + range,
            change if change > range / 2 => self.multiple - range,
            _ => self.multiple,
        };
        if unit.first().is_some_and(|first| first & REFERENCE > 0) {
            *self = Self { multiple, low };
        }
        multiple + i64::from(low)
    }
}
