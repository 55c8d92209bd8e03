//! Sequence and picture parameter sets (H.264 §7.3.2.1, §7.3.2.2), as far as the headers of slices
//! and the description of a stream need them.

use super::bits::Bits;

/// A sequence parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceParameters {
    /// Its number.
    pub id: u32,
    /// Profile, constraint flags and level.
    pub profile: [u8; 3],
    /// Width and height of a picture, in pixels.
    pub size: [u32; 2],
    /// Pictures per second, as two numbers to divide, if the video has a rate.
    pub rate: Option<[u32; 2]>,
    /// Whether all pictures are frames, none is a field.
    pub frames_only: bool,
    /// How the order of display is coded.
    pub order: Order,
    /// Bits of the number of a frame.
    pub(super) frame_number_bits: u32,
    /// Whether slices name their colour plane.
    pub(super) separate_planes: bool,
}

/// How the order of display is coded (§8.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Type 0: each slice has the lowest bits of the picture's order count.
    Count {
        /// The number of these bits.
        bits: u32,
    },
    /// Type 1: by a cycle of expected differences.
    Cycle,
    /// Type 2: pictures are displayed in the order of decoding.
    Decoding,
}

/// A picture parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureParameters {
    /// Its number.
    pub id: u32,
    /// Number of its sequence parameter set.
    pub sequence: u32,
}

/// Most numbers of parameter sets (§7.4.2.1, §7.4.2.2).
pub const MOST_SEQUENCE_SETS: u32 = 32;
/// Most numbers of picture parameter sets.
pub const MOST_PICTURE_SETS: u32 = 256;

/// Profiles whose sequence parameter sets name the format of colours (§7.3.2.1.1).
const WITH_COLOUR_FORMAT: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

impl SequenceParameters {
    /// Reads a NAL unit of type 7. `None` if it is no such set.
    pub fn parse(unit: &[u8]) -> Option<Self> {
        let profile = *unit.get(1..4)?.first_chunk()?;
        let bits = &mut Bits::new(&unit[4..]);
        let id = bits.golomb().filter(|id| *id < MOST_SEQUENCE_SETS)?;
        let mut colour_format = 1;
        let mut separate_planes = false;
        if WITH_COLOUR_FORMAT.contains(&u32::from(profile[0])) {
            colour_format = bits.golomb().filter(|format| *format <= 3)?;
            separate_planes = colour_format == 3 && bits.bit()?;
            // Depths of luma and chroma, and the bypass of the transform.
            bits.golomb()?;
            bits.golomb()?;
            bits.skip(1)?;
            if bits.bit()? {
                let lists = if colour_format == 3 { 12 } else { 8 };
                (0..lists).try_for_each(|list| scaling_list(bits, if list < 6 { 16 } else { 64 }))?;
            }
        }
        let log_bits = |code: u32| (code <= 12).then_some(code + 4);
        let frame_number_bits = bits.golomb().and_then(log_bits)?;
        let order = match bits.golomb()? {
            0 => Order::Count { bits: bits.golomb().and_then(log_bits)? },
            1 => {
                bits.skip(1)?;
                bits.signed_golomb()?;
                bits.signed_golomb()?;
                let cycle = bits.golomb().filter(|frames| *frames <= 255)?;
                (0..cycle).try_for_each(|_| bits.signed_golomb().map(drop))?;
                Order::Cycle
            }
            2 => Order::Decoding,
            _ => return None,
        };
        // Reference frames, and whether numbers of frames may be missing.
        bits.golomb()?;
        bits.skip(1)?;
        let mut side = || bits.golomb().filter(|blocks| *blocks < MOST_BLOCKS).map(|blocks| (blocks + 1) * 16);
        let (width, height) = (side()?, side()?);
        let frames_only = bits.bit()?;
        if !frames_only {
            bits.skip(1)?;
        }
        bits.skip(1)?;
        let height = height * if frames_only { 1 } else { 2 };
        let mut crop = [0; 4];
        if bits.bit()? {
            for side in &mut crop {
                *side = bits.golomb()?;
            }
        }
        // The units of cropping (§7.4.2.1.1).
        let chroma = if separate_planes { 0 } else { colour_format };
        let unit = [
            if matches!(chroma, 1 | 2) { 2 } else { 1 },
            if chroma == 1 { 2 } else { 1 } * if frames_only { 1 } else { 2 },
        ];
        let cropped = |side: u32, unit: u64, crops: [u32; 2]| {
            let crop = unit * (u64::from(crops[0]) + u64::from(crops[1]));
            u64::from(side).checked_sub(crop).filter(|left| *left > 0).map(|left| left as u32)
        };
        let size = [cropped(width, unit[0], [crop[0], crop[1]])?, cropped(height, unit[1], [crop[2], crop[3]])?];
        let rate = if bits.bit()? { usability_rate(bits) } else { None };
        Some(Self { id, profile, size, rate, frames_only, order, frame_number_bits, separate_planes })
    }

    /// Pictures per second, if the set has a rate: between one in ten seconds and 1,000 a second.
    pub fn frame_rate(&self) -> Option<f64> {
        let [ticks, unit] = self.rate?;
        // A frame has two ticks, one for each field (§E.2.1).
        let rate = f64::from(ticks) / (2.0 * f64::from(unit));
        (0.1..=1000.0).contains(&rate).then_some(rate)
    }
}

/// Most macroblocks of a side: level 6.2 has 139,264 in all, and the longer side √8 times the root
/// (§A.3.1).
const MOST_BLOCKS: u32 = 1055;

/// Skips a scaling list (§7.3.2.1.1.1), if it is there.
fn scaling_list(bits: &mut Bits<'_>, size: u32) -> Option<()> {
    if !bits.bit()? {
        return Some(());
    }
    let (mut last, mut next) = (8_i32, 8_i32);
    for _ in 0..size {
        if next != 0 {
            next = last.wrapping_add(bits.signed_golomb()?) & 0xFF;
        }
        last = if next == 0 { last } else { next };
    }
    Some(())
}

/// The time scale and the units in a tick of the video usability information (§E.1.1).
fn usability_rate(bits: &mut Bits<'_>) -> Option<[u32; 2]> {
    const EXTENDED_ASPECT: u32 = 255;
    if bits.bit()? && bits.unsigned(8)? == EXTENDED_ASPECT {
        bits.skip(32)?;
    }
    if bits.bit()? {
        bits.skip(1)?;
    }
    // Format, range and, perhaps, the colours of the signal.
    if bits.bit()? {
        bits.skip(4)?;
        if bits.bit()? {
            bits.skip(24)?;
        }
    }
    if bits.bit()? {
        bits.golomb()?;
        bits.golomb()?;
    }
    if !bits.bit()? {
        return None;
    }
    let (unit, ticks) = (bits.unsigned(32)?, bits.unsigned(32)?);
    (unit > 0 && ticks > 0).then_some([ticks, unit])
}

impl PictureParameters {
    /// Reads a NAL unit of type 8. `None` if it is no such set.
    pub fn parse(unit: &[u8]) -> Option<Self> {
        let mut bits = Bits::new(unit.get(1..)?);
        let id = bits.golomb().filter(|id| *id < MOST_PICTURE_SETS)?;
        let sequence = bits.golomb().filter(|id| *id < MOST_SEQUENCE_SETS)?;
        Some(Self { id, sequence })
    }
}
