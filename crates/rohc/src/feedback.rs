//! Feedback from the decompressor to the compressor (RFC 3095 §5.7.6).

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
    /// The mode that the decompressor requests; `None` in FEEDBACK-1, which has none.
    pub(crate) mode: Option<Mode>,
    /// The lowest bits of the sequence number, and how many; `None` if the decompressor has none.
    pub(crate) sequence: Option<(u32, u32)>,
}

impl Feedback {
    /// Appends it as FEEDBACK-2 with a CRC.
    pub(crate) fn emit(&self, config: &Config, out: &mut Vec<u8>) {
        let element = out.len();
        out.push(FEEDBACK);
        let data = out.len();
        let (sequence, _) = self.sequence.unwrap_or_default();
        let kind = match self.acknowledgement {
            Acknowledgement::Ack => 0,
            Acknowledgement::Nack => 1,
            Acknowledgement::StaticNack => 2,
        };
        let mode = self.mode.map_or(0, Mode::number);
        let first = kind << 6 | mode << 4 | (sequence >> 8 & 0x0f) as u8;
        // The identifier is first in either size: an octet of its own, or that of ADD-CID.
        if config.large_cids {
            crate::lsb::push_sdvl(out, u32::from(self.cid), if self.cid < 128 { 7 } else { 14 });
            out.push(first);
        } else {
            config.begin(out, self.cid, first);
        }
        out.push(sequence as u8);
        if self.sequence.is_none() {
            out.push(OPTION_SN_NOT_VALID);
        }
        out.extend_from_slice(&[OPTION_CRC, 0]);
        let crc = Crc::Eight.of(&out[data..]);
        *out.last_mut().expect("the CRC was appended") = crc;
        out[element] |= (out.len() - data) as u8;
    }

    /// Reads the data of an element.
    pub(crate) fn parse(config: &Config, data: &[u8]) -> Result<Self, FeedbackError> {
        Self::read(config, data).unwrap_or(Err(FeedbackError::Truncated))
    }

    fn read(config: &Config, data: &[u8]) -> Result<Result<Self, FeedbackError>, DecompressError> {
        let mut reader = Reader::new(data);
        let cid = if config.large_cids {
            read_large_cid(&mut reader)?
        } else if let Some(cid) = reader.peek().and_then(added_cid) {
            reader.octet()?;
            cid
        } else {
            0
        };
        let first = reader.octet()?;
        if reader.peek().is_none() {
            let sequence = Some((u32::from(first), 8));
            return Ok(Ok(Self { cid, acknowledgement: Acknowledgement::Ack, mode: None, sequence }));
        }
        let acknowledgement = match first >> 6 {
            0 => Acknowledgement::Ack,
            1 => Acknowledgement::Nack,
            2 => Acknowledgement::StaticNack,
            _ => return Ok(Err(FeedbackError::Reserved)),
        };
        let mode = match first >> 4 & 0x03 {
            1 => Mode::Unidirectional,
            // A decompressor that requests reliable mode stays in optimistic mode (RFC 3095
            // §5.6: a transition ends only when the compressor takes part).
            2 | 3 => Mode::Optimistic,
            _ => return Ok(Err(FeedbackError::Reserved)),
        };
        let mut sequence = Some((u32::from(first & 0x0f) << 8 | u32::from(reader.octet()?), 12));
        while reader.peek().is_some() {
            let option = reader.octet()?;
            let at = reader.position();
            let value = reader.take(usize::from(option & 0x0f))?;
            match (option, value) {
                (OPTION_CRC, [crc]) => {
                    let (before, after) = (&data[..at], &data[at + 1..]);
                    let computed = [before, &[0], after]
                        .iter()
                        .fold(Crc::Eight.initial(), |value, bytes| Crc::Eight.update(value, bytes));
                    if computed != *crc {
                        return Ok(Err(FeedbackError::Crc));
                    }
                }
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
        Ok(Ok(Self { cid, acknowledgement, mode: Some(mode), sequence }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(Feedback::parse(&config, &[]), Err(FeedbackError::Truncated));
        assert_eq!(Feedback::parse(&config, &[0xc0, 0]), Err(FeedbackError::Reserved));
    }
}
