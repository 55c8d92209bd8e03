//! What both ends agree on, and the parts of a packet that belong to no profile (RFC 5795 §5.2).

use crate::error::{ConfigError, DecompressError};
use crate::lsb::push_sdvl;
use crate::profile::{Profiles, Version};
use crate::reader::Reader;
use crate::v2::ReorderRatio;

/// The first octet of a feedback element, without its length.
pub(crate) const FEEDBACK: u8 = 0xf0;
/// The first octet of an IR packet, without its flag.
pub(crate) const IR: u8 = 0xfc;
/// The first octet of an IR-DYN packet.
pub(crate) const IR_DYN: u8 = 0xf8;
/// An octet that carries a small context identifier; 0 is padding.
const ADD_CID: u8 = 0xe0;
/// The first octet of a segment, without its flag.
const SEGMENT: u8 = 0xfe;

/// How the context is kept valid (RFC 3095 §4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// No feedback: the compressor repeats the context from time to time.
    Unidirectional,
    /// Feedback reports a damaged context.
    #[default]
    Optimistic,
    /// Only what the decompressor has acknowledged is referred to, so that losses damage no
    /// context. TCP (RFC 6846) and version 2 of the profiles (RFC 5225) do not have it: their
    /// contexts are in optimistic mode instead.
    Reliable,
}

impl Mode {
    /// The number that packets and feedback have.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Unidirectional => 1,
            Self::Optimistic => 2,
            Self::Reliable => 3,
        }
    }

    /// The mode of this number.
    pub(crate) const fn of(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Unidirectional),
            2 => Some(Self::Optimistic),
            3 => Some(Self::Reliable),
            _ => None,
        }
    }
}

/// What both ends of a channel agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The mode that the decompressor requests. Every context begins as unidirectional.
    pub mode: Mode,
    /// Flows that are remembered at once: 1 to 16, or up to 16384 with large identifiers. With one
    /// more, the flow that was quiet for longest is forgotten.
    pub contexts: u16,
    /// Whether context identifiers have one or two octets of their own, instead of one octet where
    /// they are not 0.
    pub large_cids: bool,
    /// The profiles that the compressor uses. The decompressor restores packets of all profiles.
    pub profiles: Profiles,
    /// The version of the profiles for RTP, UDP and IP at both ends.
    pub version: Version,
    /// How late packets may be. Version 1 of the profiles has no such field.
    pub reorder_ratio: ReorderRatio,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            contexts: 16,
            large_cids: false,
            profiles: Profiles::ALL,
            version: Version::One,
            reorder_ratio: ReorderRatio::None,
        }
    }
}

impl Config {
    /// Rejects a number of contexts for which there are no identifiers.
    ///
    /// # Errors
    /// If there are too few or too many.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let most = if self.large_cids { 1 << 14 } else { 16 };
        if (1..=most).contains(&self.contexts) {
            Ok(())
        } else {
            Err(ConfigError::Contexts { contexts: self.contexts })
        }
    }

    /// Appends the first octet of a packet and its context identifier, in the order that the size
    /// of the identifiers requires.
    pub(crate) fn begin(&self, out: &mut Vec<u8>, cid: u16, first: u8) {
        if self.large_cids {
            out.push(first);
        } else if cid > 0 {
            out.push(ADD_CID | cid as u8);
        }
        if self.large_cids {
            push_sdvl(out, u32::from(cid), if cid < 128 { 7 } else { 14 });
        } else {
            out.push(first);
        }
    }

    /// Reads what [`Config::begin`] appends, and feedback and padding before it: the context
    /// identifier and the first octet.
    pub(crate) fn read_start(&self, reader: &mut Reader<'_>) -> Result<(u16, u8), DecompressError> {
        skip_feedback(reader)?;
        let mut first = reader.octet().map_err(|_| DecompressError::NoPacket)?;
        if first & SEGMENT == SEGMENT {
            return Err(DecompressError::Segment);
        }
        let mut cid = 0;
        if self.large_cids {
            cid = read_large_cid(reader)?;
        } else if first & 0xf0 == ADD_CID {
            cid = u16::from(first & 0x0f);
            first = reader.octet()?;
        }
        if cid >= self.contexts {
            return Err(DecompressError::TooLargeCid { cid, last: self.contexts - 1 });
        }
        Ok((cid, first))
    }

    /// Appends the identifier of the base context of an IR-CR packet (RFC 6846 §7.2).
    pub(crate) fn push_base(&self, out: &mut Vec<u8>, cid: u16) {
        if self.large_cids {
            push_sdvl(out, u32::from(cid), if cid < 128 { 7 } else { 14 });
        } else {
            out.push(cid as u8);
        }
    }

    /// Reads what [`Config::push_base`] appends.
    pub(crate) fn read_base(&self, reader: &mut Reader<'_>) -> Result<u16, DecompressError> {
        if self.large_cids {
            return read_large_cid(reader);
        }
        match reader.octet()? {
            cid @ 0..=15 => Ok(u16::from(cid)),
            _ => Err(DecompressError::Reserved { field: "the base context of an IR-CR packet" }),
        }
    }
}

/// A context identifier of one or two octets (RFC 5795 §5.1.1).
pub(crate) fn read_large_cid(reader: &mut Reader<'_>) -> Result<u16, DecompressError> {
    match reader.sdvl()? {
        (cid, 7 | 14) => Ok(cid as u16),
        _ => Err(DecompressError::Unsupported { feature: "a context identifier of more than two octets" }),
    }
}

/// The small context identifier in `octet`, if it carries one.
pub(crate) const fn added_cid(octet: u8) -> Option<u16> {
    if octet & 0xf0 == ADD_CID { Some((octet & 0x0f) as u16) } else { None }
}

/// The data of the feedback element at the front, which begins with a [`FEEDBACK`] octet.
pub(crate) fn read_feedback<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecompressError> {
    let length = match reader.octet()? & 0x07 {
        0 => reader.octet()?,
        length => length,
    };
    reader.take(usize::from(length))
}

/// Whether feedback begins with `octet`.
pub(crate) const fn is_feedback(octet: u8) -> bool {
    octet & 0xf8 == FEEDBACK
}

fn skip_feedback(reader: &mut Reader<'_>) -> Result<(), DecompressError> {
    while let Some(octet) = reader.peek() {
        if octet == ADD_CID {
            reader.octet()?;
        } else if is_feedback(octet) {
            read_feedback(reader)?;
        } else {
            break;
        }
    }
    Ok(())
}

/// The feedback with which a packet begins, for [`Compressor::receive_feedback`], and the rest.
///
/// # Errors
/// If the packet ends inside the feedback.
///
/// [`Compressor::receive_feedback`]: crate::Compressor::receive_feedback
pub fn split_feedback(packet: &[u8]) -> Result<(&[u8], &[u8]), DecompressError> {
    let mut reader = Reader::new(packet);
    skip_feedback(&mut reader)?;
    Ok(packet.split_at(reader.position()))
}
