//! Lists of TCP options at the decompressor (RFC 6846 §6.3).

use super::options::{
    EOL, GENERIC, ITEMS, KIND_MSS, KIND_NOP, KIND_SACK, KIND_SACK_PERMITTED, KIND_TIMESTAMPS, KIND_WINDOW_SCALE, MOST,
    MSS, NOP, SACK, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE, number,
};
use crate::error::DecompressError;
use crate::lsb::{Shift, Width, decode};
use crate::reader::Reader;

/// The most bytes of an option, and of all options of a header.
const LONGEST: usize = 40;

/// The item table, and the list of the last header.
#[derive(Clone, Copy, Debug)]
pub(super) struct OptionReader {
    items: [Item; ITEMS],
    list: [u8; MOST],
    length: usize,
}

/// An option of the table, as the header has it; unknown if it is empty.
#[derive(Clone, Copy, Debug)]
struct Item {
    option: [u8; LONGEST],
    length: usize,
    /// Of a generic option: packets carry nothing of it.
    is_static: bool,
}

impl Default for OptionReader {
    fn default() -> Self {
        let unknown = Item { option: [0; LONGEST], length: 0, is_static: false };
        Self { items: [unknown; ITEMS], list: [0; MOST], length: 0 }
    }
}

/// The options of a list that it carries itself: the first one is the lowest bit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Present(u16);

impl OptionReader {
    /// Reads a compressed list (§6.3.3). Returns the options that it carries itself.
    pub(super) fn read_list(
        &mut self,
        acknowledgment: u32,
        reader: &mut Reader<'_>,
    ) -> Result<Present, DecompressError> {
        let first = reader.octet()?;
        if first & 0xe0 != 0 {
            return Err(DecompressError::Reserved { field: "a list of TCP options" });
        }
        self.length = usize::from(first & 0x0f);
        let is_wide = first & 0x10 != 0;
        let octets = reader.take(if is_wide { self.length } else { self.length.div_ceil(2) })?;
        let mut present = 0;
        for position in 0..self.length {
            let (is_present, index) = if is_wide {
                let octet = octets[position];
                if octet & 0x70 != 0 {
                    return Err(DecompressError::Reserved { field: "an index of a TCP option" });
                }
                (octet & 0x80 != 0, octet & 0x0f)
            } else {
                let bits = octets[position / 2] >> if position % 2 == 0 { 4 } else { 0 };
                (bits & 0x08 != 0, bits & 0x07)
            };
            self.list[position] = index;
            present |= u16::from(is_present) << position;
        }
        if !is_wide && self.length % 2 == 1 && octets[self.length / 2] & 0x0f != 0 {
            return Err(DecompressError::Reserved { field: "the padding of a list of TCP options" });
        }
        for position in (0..self.length).filter(|position| present >> position & 1 != 0) {
            self.read_item(self.list[position], acknowledgment, reader)?;
        }
        Ok(Present(present))
    }

    /// Reads the irregular chain of the options that the list did not carry (§6.3.6).
    pub(super) fn read_irregular(
        &mut self,
        present: Present,
        acknowledgment: u32,
        reader: &mut Reader<'_>,
    ) -> Result<(), DecompressError> {
        for position in (0..self.length).filter(|position| present.0 >> position & 1 == 0) {
            let index = self.list[position];
            let item = &mut self.items[usize::from(index)];
            if item.length == 0 {
                return Err(DecompressError::Item { index });
            }
            match index {
                TIMESTAMPS => {
                    for at in [2, 6] {
                        let timestamp = read_timestamp(number(&item.option, at), reader)?;
                        item.option[at..at + 4].copy_from_slice(&timestamp.to_be_bytes());
                    }
                }
                SACK => {
                    let blocks = reader.octet()?;
                    // Zero: unchanged.
                    if blocks > 0 {
                        item.read_blocks(blocks, acknowledgment, reader)?;
                    }
                }
                GENERIC.. if !item.is_static => match reader.octet()? {
                    0xff => {}
                    0 => {
                        let contents = reader.take(item.length - 2)?;
                        item.option[2..2 + contents.len()].copy_from_slice(contents);
                    }
                    octet => return Err(DecompressError::Type { octet }),
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the list of the replicate chain: options that it does not carry are those of the base
    /// context (§6.3.7).
    pub(super) fn read_replicated(
        &mut self,
        acknowledgment: u32,
        reader: &mut Reader<'_>,
    ) -> Result<(), DecompressError> {
        self.read_list(acknowledgment, reader)?;
        let is_unknown = |index: &&u8| self.items[usize::from(**index)].length == 0;
        match self.list[..self.length].iter().find(is_unknown) {
            Some(index) => Err(DecompressError::Item { index: *index }),
            None => Ok(()),
        }
    }

    /// The options of the header, as bytes.
    pub(super) fn write(&self, out: &mut [u8; LONGEST]) -> Result<usize, DecompressError> {
        let mut length = 0;
        for index in &self.list[..self.length] {
            let item = &self.items[usize::from(*index)];
            let place = out.get_mut(length..length + item.length);
            place.ok_or(DecompressError::Options)?.copy_from_slice(&item.option[..item.length]);
            length += item.length;
        }
        Ok(length)
    }

    /// The format of an option whose name ends with `_list_item`.
    fn read_item(&mut self, index: u8, acknowledgment: u32, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let item = &mut self.items[usize::from(index)];
        match index {
            NOP => item.set(KIND_NOP, &[]),
            EOL => {
                let bits = reader.octet()?;
                if bits % 8 != 0 {
                    return Err(DecompressError::Reserved { field: "the padding of TCP options" });
                }
                item.option = [0; LONGEST];
                item.length = 1 + usize::from(bits / 8);
            }
            MSS => item.set(KIND_MSS, reader.take(2)?),
            WINDOW_SCALE => item.set(KIND_WINDOW_SCALE, reader.take(1)?),
            TIMESTAMPS => item.set(KIND_TIMESTAMPS, reader.take(8)?),
            SACK_PERMITTED => {
                item.option[..2].copy_from_slice(&[KIND_SACK_PERMITTED, 2]);
                item.length = 2;
            }
            SACK => {
                let blocks = reader.octet()?;
                item.read_blocks(blocks, acknowledgment, reader)?;
            }
            _ => {
                let (kind, length) = (reader.octet()?, reader.octet()?);
                let octets = usize::from(length & 0x7f);
                if !(2..=LONGEST).contains(&octets) {
                    return Err(DecompressError::Options);
                }
                item.set(kind, reader.take(octets - 2)?);
                item.is_static = length & 0x80 != 0;
            }
        }
        Ok(())
    }
}

impl Item {
    /// Sets kind and contents; NOP has no length of its own.
    fn set(&mut self, kind: u8, contents: &[u8]) {
        self.option[0] = kind;
        if kind == KIND_NOP {
            self.length = 1;
            return;
        }
        self.length = 2 + contents.len();
        self.option[1] = self.length as u8;
        self.option[2..self.length].copy_from_slice(contents);
    }

    /// Blocks of SACK, each relative to the end of the last one, the first to the acknowledgment
    /// number.
    fn read_blocks(&mut self, blocks: u8, acknowledgment: u32, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        if !(1..=4).contains(&blocks) {
            return Err(DecompressError::Type { octet: blocks });
        }
        let mut contents = [0; 32];
        let mut reference = acknowledgment;
        let octets = 8 * usize::from(blocks);
        for edge in contents[..octets].chunks_exact_mut(4) {
            reference = reference.wrapping_add(read_edge(reader)?);
            edge.copy_from_slice(&reference.to_be_bytes());
        }
        self.set(KIND_SACK, &contents[..octets]);
        Ok(())
    }
}

/// A timestamp by its lowest bits (ts_lsb).
fn read_timestamp(reference: u32, reader: &mut Reader<'_>) -> Result<u32, DecompressError> {
    let (value, bits) = reader.sdvl()?;
    let offset = match bits {
        7 | 14 => u32::MAX,
        21 => 0x0004_0000,
        _ => 0x0400_0000,
    };
    Ok(decode(reference, value, bits, Shift::Fixed(offset), Width::ThirtyTwo))
}

/// An edge of a block (sack_pure_lsb).
fn read_edge(reader: &mut Reader<'_>) -> Result<u32, DecompressError> {
    let first = reader.octet()?;
    let (octets, high) = match first {
        0..=0x7f => (1, first),
        0x80..=0xbf => (2, first & 0x3f),
        0xc0..=0xdf => (3, first & 0x1f),
        0xff => (4, 0),
        octet => return Err(DecompressError::Type { octet }),
    };
    Ok(reader.take(octets)?.iter().fold(u32::from(high), |value, octet| value << 8 | u32::from(*octet)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(octets: &[u8]) -> Result<Vec<u8>, DecompressError> {
        let (mut reader, mut options) = (OptionReader::default(), [0; LONGEST]);
        reader.read_list(1000, &mut Reader::new(octets))?;
        let length = reader.write(&mut options)?;
        Ok(options[..length].to_vec())
    }

    #[test]
    fn a_list_of_a_syn() {
        // MSS, SACK permitted, timestamps, NOP and window scale, all with X, then their items.
        let octets = [5, 0xad, 0xc8, 0xb0, 5, 180, 0, 0, 0, 1, 0, 0, 0, 0, 7];
        let syn = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(list(&octets), Ok(syn.to_vec()));
    }

    #[test]
    fn blocks_are_relative_to_the_last_edge() {
        // NOP, NOP and SACK with one block: 1000 + 24 to 1024 + 0x8000.
        let octets = [3, 0x88, 0xe0, 1, 0, 24, 0x80, 0x80, 0];
        let option = [1, 1, 5, 10, 0, 0, 4, 0, 0, 0, 0x84, 0];
        assert_eq!(list(&octets), Ok(option.to_vec()));
    }

    #[test]
    fn reserved_bits_and_malformed_items_are_refused() {
        let padding = DecompressError::Reserved { field: "the padding of a list of TCP options" };
        assert_eq!(list(&[1, 0x81]), Err(padding));
        assert!(matches!(list(&[0x20]), Err(DecompressError::Reserved { .. })));
        assert!(matches!(list(&[0x11, 0xc0]), Err(DecompressError::Reserved { .. })));
        assert_eq!(list(&[1, 0xe0, 5]), Err(DecompressError::Type { octet: 5 }));
        assert_eq!(list(&[0x11, 0x87, 30, 1]), Err(DecompressError::Options));
        assert_eq!(list(&[2, 0xa0]), Err(DecompressError::Truncated));
    }
}
