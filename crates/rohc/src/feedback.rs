//! Feedback from the decompressor to the compressor: RFC 3095 §5.7.6, and for the profiles in
//! formal notation RFC 5225 §6.9 and RFC 6846 §8.3, which have the same elements.

use crate::crc::Crc;
use crate::error::{DecompressError, FeedbackError};
use crate::framework::{Config, FEEDBACK, Mode, added_cid, read_large_cid};
use crate::reader::Reader;

/// Options of FEEDBACK-2: type and length in one octet.
const OPTION_CRC: u8 = 0x11;
const OPTION_SN_NOT_VALID: u8 = 0x30;
/// Type of the option with more bits of the sequence number.
const OPTION_SN: u8 = 4;

/// What is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledgement {
    /// The header was decompressed.
    Ack,
    /// The dynamic part of the context is damaged.
    Nack,
    /// The static part is unknown.
    StaticNack,
}

/// One feedback element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feedback {
    pub(crate) cid: u16,
    pub(crate) acknowledgement: Acknowledgement,
    /// The mode that the decompressor requests; `None` without a CRC, which a transition needs
    /// (RFC 3095 §5.6.1).
    pub(crate) mode: Option<Mode>,
    /// The lowest bits of the sequence number, and how many; `None` if the decompressor has none.
    pub(crate) sequence: Option<(u32, u32)>,
}

impl Feedback {
    /// Appends it as FEEDBACK-2 of RFC 3095 with a CRC.
    pub(crate) fn emit(&self, config: &Config, out: &mut Vec<u8>) {
        let (sequence, _) = self.sequence.unwrap_or_default();
        let mode = self.mode.map_or(0, Mode::number);
        let element = out.len();
        self.begin(config, mode << 4 | (sequence >> 8 & 0x0f) as u8, out);
        out.push(sequence as u8);
        if self.sequence.is_none() {
            out.push(OPTION_SN_NOT_VALID);
        }
        out.extend_from_slice(&[OPTION_CRC, 0]);
        let crc = Crc::Eight.of(&out[element + 1..]);
        *out.last_mut().expect("the CRC was appended") = crc;
        end(element, out);
    }

    /// Appends it as FEEDBACK-2 of RFC 5225 and RFC 6846.
    pub(crate) fn emit_formal(&self, config: &Config, out: &mut Vec<u8>) {
        let (msn, _) = self.sequence.unwrap_or_default();
        let element = out.len();
        self.begin(config, (msn >> 8 & 0x3f) as u8, out);
        out.extend_from_slice(&[msn as u8, 0]);
        let crc_at = out.len() - 1;
        if self.sequence.is_none() {
            out.push(OPTION_SN_NOT_VALID);
        }
        out[crc_at] = Crc::Eight.of(&out[element + 1..]);
        end(element, out);
    }

    /// Appends the type, the context identifier, and the first octet, whose low bits are `low`.
    fn begin(&self, config: &Config, low: u8, out: &mut Vec<u8>) {
        let kind = match self.acknowledgement {
            Acknowledgement::Ack => 0,
            Acknowledgement::Nack => 1,
            Acknowledgement::StaticNack => 2,
        };
        let first = kind << 6 | low;
        out.push(FEEDBACK);
        // The identifier is first in either size: an octet of its own, or that of ADD-CID.
        if config.large_cids {
            crate::lsb::push_sdvl(out, u32::from(self.cid), if self.cid < 128 { 7 } else { 14 });
            out.push(first);
        } else {
            config.begin(out, self.cid, first);
        }
    }

    /// The context that the data of an element is about.
    pub(crate) fn cid(config: &Config, data: &[u8]) -> Result<u16, FeedbackError> {
        read_cid(config, &mut Reader::new(data)).map_err(|_| FeedbackError::Truncated)
    }

    /// Reads the data of an element of RFC 3095.
    pub(crate) fn parse(config: &Config, data: &[u8]) -> Result<Self, FeedbackError> {
        Self::read(config, data).unwrap_or(Err(FeedbackError::Truncated))
    }

    /// Reads the data of an element of RFC 5225 or RFC 6846. A decompressor of version 1 without
    /// the context has no profile for it, and requests it in the format of RFC 3095.
    pub(crate) fn parse_formal(config: &Config, data: &[u8]) -> Result<Self, FeedbackError> {
        let feedback = Self::read_formal(config, data).unwrap_or(Err(FeedbackError::Truncated));
        feedback.or_else(|error| match Self::parse(config, data) {
            Ok(other) if other.acknowledgement == Acknowledgement::StaticNack && other.sequence.is_none() => Ok(other),
            _ => Err(error),
        })
    }

    fn read_formal(config: &Config, data: &[u8]) -> Result<Result<Self, FeedbackError>, DecompressError> {
        let mut reader = Reader::new(data);
        let cid = read_cid(config, &mut reader)?;
        // Feedback of any kind establishes the feedback channel (RFC 6846 §5.3.2).
        let mode = Some(Mode::Optimistic);
        let first = reader.octet()?;
        if reader.peek().is_none() {
            let sequence = Some((u32::from(first), 8));
            return Ok(Ok(Self { cid, acknowledgement: Acknowledgement::Ack, mode, sequence }));
        }
        let mut sequence = Some((u32::from(first & 0x3f) << 8 | u32::from(reader.octet()?), 14));
        let crc_at = reader.position();
        let crc = reader.octet()?;
        if crc_without(data, crc_at) != crc {
            return Ok(Err(FeedbackError::Crc));
        }
        let Some(mut acknowledgement) = acknowledgement(first) else { return Ok(Err(FeedbackError::Reserved)) };
        let mut seen = 0_u16;
        while reader.peek().is_some() {
            let option = reader.octet()?;
            let value = reader.take(usize::from(option & 0x0f))?;
            let bit = 1 << (option >> 4);
            // No option may come twice, nor the number and that it is not valid (§8.3.2).
            if seen & bit != 0 {
                return Ok(Err(FeedbackError::Reserved));
            }
            seen |= bit;
            match (option >> 4, value) {
                (OPTION_SN, [more]) => {
                    sequence = sequence.map(|(msn, bits)| (msn << 2 | u32::from(*more) >> 6, bits + 2));
                }
                (3, []) => sequence = None,
                // REJECT and CONTEXT_MEMORY request nothing that this compressor does.
                _ => {}
            }
        }
        if seen & 0x18 == 0x18 {
            return Ok(Err(FeedbackError::Reserved));
        }
        // Without a valid number, each negative acknowledgement is about the whole context.
        if sequence.is_none() && acknowledgement == Acknowledgement::Nack {
            acknowledgement = Acknowledgement::StaticNack;
        }
        Ok(Ok(Self { cid, acknowledgement, mode, sequence }))
    }

    fn read(config: &Config, data: &[u8]) -> Result<Result<Self, FeedbackError>, DecompressError> {
        let mut reader = Reader::new(data);
        let cid = read_cid(config, &mut reader)?;
        let first = reader.octet()?;
        if reader.peek().is_none() {
            let sequence = Some((u32::from(first), 8));
            return Ok(Ok(Self { cid, acknowledgement: Acknowledgement::Ack, mode: None, sequence }));
        }
        let Some(acknowledgement) = acknowledgement(first) else { return Ok(Err(FeedbackError::Reserved)) };
        let Some(mode) = Mode::of(first >> 4 & 0x03) else { return Ok(Err(FeedbackError::Reserved)) };
        let mut has_crc = false;
        let mut sequence = Some((u32::from(first & 0x0f) << 8 | u32::from(reader.octet()?), 12));
        while reader.peek().is_some() {
            let option = reader.octet()?;
            let at = reader.position();
            let value = reader.take(usize::from(option & 0x0f))?;
            match (option, value) {
                (OPTION_CRC, [crc]) if crc_without(data, at) != *crc => return Ok(Err(FeedbackError::Crc)),
                (OPTION_CRC, [_]) => has_crc = true,
                (OPTION_SN_NOT_VALID, _) => sequence = None,
                (option, [more]) if option >> 4 == OPTION_SN => {
                    sequence = sequence
                        .filter(|(_, bits)| *bits <= 24)
                        .map(|(value, bits)| (value << 8 | u32::from(*more), bits + 8));
                }
                // REJECT, CLOCK, JITTER and LOSS, and those to come, request nothing that this
                // compressor does.
                _ => {}
            }
        }
        Ok(Ok(Self { cid, acknowledgement, mode: has_crc.then_some(mode), sequence }))
    }
}

/// Completes the length of the element that begins at `element`.
fn end(element: usize, out: &mut [u8]) {
    out[element] |= (out.len() - element - 1) as u8;
}

fn read_cid(config: &Config, reader: &mut Reader<'_>) -> Result<u16, DecompressError> {
    if config.large_cids {
        return read_large_cid(reader);
    }
    // A single octet is FEEDBACK-1 of context 0, whatever it looks like (RFC 3095 §5.2.2).
    if reader.remaining() == 1 {
        return Ok(0);
    }
    let Some(cid) = reader.peek().and_then(added_cid) else { return Ok(0) };
    reader.octet()?;
    Ok(cid)
}

const fn acknowledgement(first: u8) -> Option<Acknowledgement> {
    match first >> 6 {
        0 => Some(Acknowledgement::Ack),
        1 => Some(Acknowledgement::Nack),
        2 => Some(Acknowledgement::StaticNack),
        _ => None,
    }
}

/// The CRC of `data`, with a zero in the octet of the CRC.
fn crc_without(data: &[u8], crc_at: usize) -> u8 {
    let parts = [&data[..crc_at], &[0], &data[crc_at + 1..]];
    parts.iter().fold(Crc::Eight.initial(), |value, bytes| Crc::Eight.update(value, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_emitted_about_tcp_is_read() {
        for large_cids in [false, true] {
            let config = Config { large_cids, ..Config::default() };
            for (cid, sequence) in [(0, Some((0x2abc, 14))), (9, Some((1, 14)))] {
                let acknowledgement = Acknowledgement::Nack;
                let feedback = Feedback { cid, acknowledgement, mode: Some(Mode::Optimistic), sequence };
                let mut out = Vec::new();
                feedback.emit_formal(&config, &mut out);
                assert_eq!(usize::from(out[0] & 7), out.len() - 1);
                assert_eq!(Feedback::parse_formal(&config, &out[1..]), Ok(feedback));
                let last = out.len() - 1;
                out[last] ^= 1;
                assert_eq!(Feedback::parse_formal(&config, &out[1..]), Err(FeedbackError::Crc));
            }
        }
    }

    #[test]
    fn options_about_tcp() {
        let config = Config::default();
        let parse = |octets: &[u8]| {
            let mut data = octets.to_vec();
            data[2] = Crc::Eight.of(&data);
            Feedback::parse_formal(&config, &data)
        };
        // Two more bits of the number; an unknown option is skipped.
        let feedback = parse(&[0x01, 0x02, 0, 0x41, 0x80, 0xf2, 1, 2]).expect("an acknowledgement");
        assert_eq!(feedback.sequence, Some((0x102 << 2 | 2, 16)));
        // A number that is not valid makes it an acknowledgement of nothing.
        let feedback = parse(&[0x40, 0, 0, 0x30]).expect("a negative acknowledgement");
        assert_eq!((feedback.acknowledgement, feedback.sequence), (Acknowledgement::StaticNack, None));
        assert_eq!(parse(&[0x40, 0, 0, 0x30, 0x41, 0]), Err(FeedbackError::Reserved));
        assert_eq!(parse(&[0x40, 0, 0, 0x30, 0x30]), Err(FeedbackError::Reserved));
        assert_eq!(parse(&[0xc0, 0, 0]), Err(FeedbackError::Reserved));
    }

    #[test]
    fn a_decompressor_without_context_is_understood() {
        let config = Config::default();
        let acknowledgement = Acknowledgement::StaticNack;
        let feedback = Feedback { cid: 3, acknowledgement, mode: Some(Mode::Optimistic), sequence: None };
        let mut out = Vec::new();
        feedback.emit(&config, &mut out);
        assert_eq!(Feedback::parse_formal(&config, &out[1..]), Ok(feedback));
    }

    #[test]
    fn what_is_emitted_is_read() {
        for large_cids in [false, true] {
            let config = Config { contexts: 16, large_cids, ..Config::default() };
            for (cid, sequence) in [(0, None), (0, Some((0xabc, 12))), (9, Some((1, 12)))] {
                let acknowledgement = Acknowledgement::Nack;
                let feedback = Feedback { cid, acknowledgement, mode: Some(Mode::Optimistic), sequence };
                let mut out = Vec::new();
                feedback.emit(&config, &mut out);
                assert_eq!(usize::from(out[0] & 7), out.len() - 1);
                assert_eq!(Feedback::parse(&config, &out[1..]), Ok(feedback));
                let last = out.len() - 1;
                out[last] ^= 1;
                assert_eq!(Feedback::parse(&config, &out[1..]), Err(FeedbackError::Crc));
            }
        }
    }

    #[test]
    fn one_octet_is_an_acknowledgement() {
        let config = Config::default();
        let feedback = Feedback::parse(&config, &[0xe3, 0x42]).expect("FEEDBACK-1");
        assert_eq!((feedback.cid, feedback.sequence, feedback.mode), (3, Some((0x42, 8)), None));
        // Alone, what looks like a context identifier is a sequence number.
        let feedback = Feedback::parse(&config, &[0xe3]).expect("FEEDBACK-1");
        assert_eq!((feedback.cid, feedback.sequence), (0, Some((0xe3, 8))));
        assert_eq!(Feedback::parse(&config, &[]), Err(FeedbackError::Truncated));
        assert_eq!(Feedback::parse(&config, &[0xc0, 0]), Err(FeedbackError::Reserved));
    }
}
