//! H.264 video (ITU-T H.264) as far as a stream needs it: frames with their type and order, and
//! their packets (RFC 6184). No picture is decoded.
//!
//! | module | contents |
//! | --- | --- |
//! | [`clip`] | a file of a byte stream: its frames, and the packets that carry them |
//! | [`payload`] | the payload of packets |
//! | [`parameter_sets`] | sequence and picture parameter sets |
//! | [`slice`] | the headers of slices |
//! | [`bits`] | bits and their codes |

pub mod bits;
pub mod clip;
pub mod parameter_sets;
pub mod payload;
pub mod slice;

/// Types of NAL units (table 7-1): a slice, the first partition of one, a slice of an instantaneous
/// decoding refresh (IDR).
const SLICE: u8 = 1;
const PARTITION: u8 = 2;
const IDR: u8 = 5;
/// Supplemental information, parameter sets of sequence and picture, and the delimiter.
const INFORMATION: u8 = 6;
const SEQUENCE_PARAMETERS: u8 = 7;
const PICTURE_PARAMETERS: u8 = 8;
const DELIMITER: u8 = 9;

/// The bits of the first byte that state whether others refer to this unit.
const REFERENCE: u8 = 0x60;

/// The type of a NAL unit; zero, which is none, for an empty one.
fn unit_type(unit: &[u8]) -> u8 {
    unit.first().map_or(0, |first| first & 0x1F)
}

/// Whether a NAL unit is a slice, or begins with its header.
fn is_slice(unit: &[u8]) -> bool {
    matches!(unit_type(unit), SLICE | PARTITION | IDR)
}

/// Whether a NAL unit before the slices of a picture belongs to that picture, and so is the first
/// of its frame after the slices of another (§7.4.1.2.3).
fn is_preface(unit: &[u8]) -> bool {
    matches!(unit_type(unit), INFORMATION..=DELIMITER | 14..=18)
}
