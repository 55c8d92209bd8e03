//! The options of a TCP header and their layout.

use serde::{Deserialize, Serialize};

use crate::error::ParseError;

// Kinds, as IANA's registry has them.
const END_OF_LIST: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// AccECN with the counter of ECT(0) first, and with that of ECT(1) (RFC 9768 §3.2.3).
const ACCURATE_ECN_0: u8 = 172;
const ACCURATE_ECN_1: u8 = 174;

/// TCP options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct Options {
    /// Timestamps (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// Maximum segment size (RFC 9293 §3.7.1), on a SYN.
    pub maximum_segment_size: Option<u16>,
    /// Window scale shift (RFC 7323 §2), on a SYN.
    pub window_scale: Option<u8>,
    /// Selective acknowledgement is permitted (RFC 2018 §2), on a SYN.
    pub sack_permitted: bool,
    /// Selective acknowledgement (RFC 2018 §3): first and one past the last sequence number of each
    /// block.
    pub sack: SackBlocks,
    /// Accurate ECN feedback (RFC 9768 §3.2.3).
    pub accurate_ecn: Option<EcnCounters>,
}

/// The counters of an AccECN option (RFC 9768 §3.2.3): payload bytes, modulo 2²⁴, that arrived with
/// ECT(0), CE and ECT(1), or in the opposite order. An option may have the first of them only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcnCounters {
    ect1_first: bool,
    count: u8,
    /// As in the header: in network byte order.
    values: [[u8; Self::WIDTH]; Self::MAX],
}

impl EcnCounters {
    /// The most counters of an option.
    pub const MAX: usize = 3;
    /// Bytes of a counter.
    const WIDTH: usize = 3;

    /// No counters, in the order of kind 174 (ECT(1) first) or of kind 172.
    pub const fn new(ect1_first: bool) -> Self {
        Self { ect1_first, count: 0, values: [[0; Self::WIDTH]; Self::MAX] }
    }

    /// Adds a counter: its lowest 24 bits.
    ///
    /// # Panics
    /// If there are three already.
    pub const fn push(&mut self, value: u32) {
        let [_, bytes @ ..] = value.to_be_bytes();
        self.values[self.count as usize] = bytes;
        self.count += 1;
    }

    /// Whether the order is ECT(1), CE, ECT(0).
    pub const fn ect1_first(&self) -> bool {
        self.ect1_first
    }

    /// The counters in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> {
        self.values[..usize::from(self.count)]
            .iter()
            .map(|&[high, middle, low]| u32::from_be_bytes([0, high, middle, low]))
    }

    /// Bytes of the option without padding.
    const fn length(&self) -> usize {
        2 + Self::WIDTH * self.count as usize
    }

    /// The whole counters of a value; what is left is padding (§3.2.3).
    fn parse(ect1_first: bool, value: &[u8]) -> Self {
        let mut counters = Self::new(ect1_first);
        for (counter, bytes) in counters.values.iter_mut().zip(value.as_chunks().0) {
            *counter = *bytes;
            counters.count += 1;
        }
        counters
    }
}

/// The timestamps option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the clock that is echoed.
    pub echo: u32,
}

/// Up to four blocks of a selective acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct SackBlocks {
    count: u8,
    blocks: [(u32, u32); 4],
}

impl SackBlocks {
    /// The most that fit into a header without other options.
    pub const MAX: usize = 4;

    /// Adds a block; a fifth is refused with `false`.
    pub fn push(&mut self, start: u32, end: u32) -> bool {
        let free = usize::from(self.count) < Self::MAX;
        if free {
            self.blocks[usize::from(self.count)] = (start, end);
            self.count += 1;
        }
        free
    }

    /// The blocks, in the order in which they stand in the header.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes the last block, if there is one.
    pub const fn pop(&mut self) {
        self.count = self.count.saturating_sub(1);
    }
}

impl From<Option<Timestamps>> for Options {
    /// No other options.
    #[inline(always)]
    fn from(timestamps: Option<Timestamps>) -> Self {
        Self { timestamps, ..Self::default() }
    }
}

impl Options {
    /// Bytes of options that fit into a header.
    pub const MAX_LENGTH: usize = 40;

    /// Bytes that these options take in a header, padded to a multiple of four.
    ///
    /// Timestamps and blocks are preceded by padding, as most stacks do (RFC 7323 appendix A), so
    /// that their words are aligned. Before blocks it also pads the AccECN option.
    pub fn wire_length(&self) -> usize {
        let mut length = 0;
        if self.maximum_segment_size.is_some() {
            length += 4;
        }
        if self.sack_permitted {
            // Without timestamps to share a word with, two bytes of padding precede it.
            length += if self.timestamps.is_some() { 2 } else { 4 };
        }
        if self.timestamps.is_some() {
            length += if self.sack_permitted { 10 } else { 12 };
        }
        if self.window_scale.is_some() {
            length += 4;
        }
        if let Some(counters) = &self.accurate_ecn {
            length += counters.length();
        }
        if !self.sack.is_empty() {
            // Its two bytes are followed by aligned words.
            length = (length + 2).next_multiple_of(4) + 8 * self.sack.as_slice().len();
        }
        length.next_multiple_of(4)
    }

    /// Writes the options into `buffer`, which has exactly [`Self::wire_length`] bytes.
    pub(super) fn emit(&self, buffer: &mut [u8]) {
        let mut out = Output { buffer, at: 0 };
        if let Some(size) = self.maximum_segment_size {
            out.put(&[MAXIMUM_SEGMENT_SIZE, 4]);
            out.put(&size.to_be_bytes());
        }
        if self.sack_permitted {
            if self.timestamps.is_none() {
                out.put(&[NO_OPERATION; 2]);
            }
            out.put(&[SACK_PERMITTED, 2]);
        }
        if let Some(timestamps) = self.timestamps {
            if !self.sack_permitted {
                out.put(&[NO_OPERATION; 2]);
            }
            out.put(&[TIMESTAMPS, 10]);
            out.put(&timestamps.value.to_be_bytes());
            out.put(&timestamps.echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            out.put(&[NO_OPERATION, WINDOW_SCALE, 3, shift]);
        }
        if let Some(counters) = &self.accurate_ecn {
            let kind = if counters.ect1_first { ACCURATE_ECN_1 } else { ACCURATE_ECN_0 };
            out.put(&[kind, counters.length() as u8]);
            out.put(counters.values[..usize::from(counters.count)].as_flattened());
        }
        if !self.sack.is_empty() {
            out.pad((out.at + 2).next_multiple_of(4) - 2);
            out.put(&[SACK, 2 + 8 * self.sack.count]);
            for (start, end) in self.sack.as_slice() {
                out.put(&start.to_be_bytes());
                out.put(&end.to_be_bytes());
            }
        }
        out.pad(out.at.next_multiple_of(4));
    }

    /// Reads the options of a header. If an option is repeated, the last one counts; but all blocks
    /// of selective acknowledgements are returned.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        match Self::parse_leading(bytes) {
            (options, None) => Ok(options),
            (_, Some(error)) => Err(error),
        }
    }

    /// Reads the options of a header as [`TcpHeader::parse`](super::TcpHeader::parse) does, but
    /// keeps those that stand before a malformed one: a capture may have cut the header off.
    pub fn parse_leading(bytes: &[u8]) -> (Self, Option<ParseError>) {
        let mut options = Self::default();
        let error = options.take_all(bytes).err();
        (options, error)
    }

    /// Reads the options of nearly every segment: none, or timestamps alone, padded as RFC 7323
    /// appendix A shows. `None` where it is anything else.
    ///
    /// The caller makes [`Options`] of them where it stores them, by `into`: a copy of options just
    /// made would be read in other widths than they were written, which stalls the processor.
    #[inline(always)]
    pub fn parse_usual(bytes: &[u8]) -> Option<Option<Timestamps>> {
        match bytes {
            [] => Some(None),
            [NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10, value @ ..] => {
                let (value, echo) = pair(value.try_into().ok()?);
                Some(Some(Timestamps { value, echo }))
            }
            _ => None,
        }
    }

    fn take_all(&mut self, bytes: &[u8]) -> Result<(), ParseError> {
        let mut at = 0;
        while let Some(&kind) = bytes.get(at) {
            match kind {
                END_OF_LIST => break,
                NO_OPERATION => at += 1,
                _ => {
                    let length = bytes.get(at + 1).copied().unwrap_or(0);
                    let malformed = ParseError::Option { kind, at, length };
                    // A length below two would not even cover itself, and `get` refuses it.
                    let value = bytes.get(at + 2..at + usize::from(length)).ok_or(malformed)?;
                    self.take(kind, value).ok_or(malformed)?;
                    at += usize::from(length);
                }
            }
        }
        Ok(())
    }

    /// Keeps the option if it is one of ours; `None` where its value has a length that it cannot
    /// have.
    fn take(&mut self, kind: u8, value: &[u8]) -> Option<()> {
        match kind {
            MAXIMUM_SEGMENT_SIZE => self.maximum_segment_size = Some(u16::from_be_bytes(value.try_into().ok()?)),
            WINDOW_SCALE => self.window_scale = Some(u8::from_be_bytes(value.try_into().ok()?)),
            SACK_PERMITTED if value.is_empty() => self.sack_permitted = true,
            SACK_PERMITTED => return None,
            TIMESTAMPS => {
                let (value, echo) = pair(value.try_into().ok()?);
                self.timestamps = Some(Timestamps { value, echo });
            }
            SACK => {
                let (blocks, rest) = value.as_chunks();
                if blocks.is_empty() || !rest.is_empty() {
                    return None;
                }
                for block in blocks {
                    let (start, end) = pair(block);
                    // Five blocks do not fit into 40 bytes, in however many options.
                    self.sack.push(start, end);
                }
            }
            ACCURATE_ECN_0 | ACCURATE_ECN_1 => {
                self.accurate_ecn = Some(EcnCounters::parse(kind == ACCURATE_ECN_1, value));
            }
            _ => {}
        }
        Some(())
    }
}

/// Two words in network byte order.
fn pair(bytes: &[u8; 8]) -> (u32, u32) {
    let words = u64::from_be_bytes(*bytes);
    ((words >> 32) as u32, words as u32)
}

/// Where the options are written one after the other.
struct Output<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl Output<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.buffer[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Fills up to `at` with options of one byte that mean nothing.
    fn pad(&mut self, at: usize) {
        self.buffer[self.at..at].fill(NO_OPERATION);
        self.at = at;
    }
}
