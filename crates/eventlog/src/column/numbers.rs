//! Columns of integers.

use std::mem;

use parquet::basic::{Encoding as ParquetEncoding, LogicalType, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescPtr, Type};

use super::chunk::{Chunk, Levels, encode_codes};
use super::{Column, Presence, RowGroup, primitive};
use crate::encoding::differences;

/// Encoding of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Delta encoding: small for steadily rising numbers.
    Differences,
    /// Dictionary indices: small for few distinct values. A page that exceeds [`MOST_DISTINCT`] in
    /// total has delta encoding.
    Dictionary,
}

/// Maximum number of entries of a dictionary that is built from the values.
const MOST_DISTINCT: usize = 256;

/// A column of numbers.
#[derive(Debug)]
pub struct Numbers {
    physical: PhysicalType,
    logical: Option<LogicalType>,
    encoding: Encoding,
    chunk: Chunk,
    values: Vec<i64>,
    codes: Vec<u16>,
    distinct: Distinct,
}

impl Numbers {
    /// An empty column of signed 64-bit numbers.
    pub fn long(presence: Presence, encoding: Encoding) -> Self {
        Self::new(PhysicalType::INT64, presence, encoding)
    }

    /// An empty column of numbers from 0 to 2³¹ - 1, which readers see as signed 32-bit numbers.
    pub fn short(presence: Presence, encoding: Encoding) -> Self {
        Self::new(PhysicalType::INT32, presence, encoding)
    }

    fn new(physical: PhysicalType, presence: Presence, encoding: Encoding) -> Self {
        Self {
            physical,
            logical: None,
            encoding,
            chunk: Chunk::new(presence),
            values: Vec::new(),
            codes: Vec::new(),
            distinct: Distinct::new(),
        }
    }

    /// The same column, declared as numbers of `bits` bits.
    pub fn with_bits(mut self, bits: i8) -> Self {
        self.logical = Some(LogicalType::integer(bits, true));
        self
    }

    /// Adds the values of a batch.
    pub fn add(&mut self, values: impl Iterator<Item = i64>) {
        self.add_page(None, values);
    }

    /// Adds the values of a batch, for the rows present in `levels`.
    pub fn add_some(&mut self, levels: &Levels, values: impl Iterator<Item = i64>) {
        self.add_page(Some(levels), values);
    }

    /// Adds the values of a batch that are contiguous in memory.
    pub fn add_slice(&mut self, values: &[i64]) {
        self.add_values(None, values);
    }

    fn add_page(&mut self, levels: Option<&Levels>, values: impl Iterator<Item = i64>) {
        let mut collected = mem::take(&mut self.values);
        collected.clear();
        collected.extend(values);
        self.add_values(levels, &collected);
        self.values = collected;
    }

    fn add_values(&mut self, levels: Option<&Levels>, values: &[i64]) {
        let (chunk, codes) = (&mut self.chunk, &mut self.codes);
        if self.encoding == Encoding::Dictionary && self.distinct.codes(values, codes) {
            let length = self.distinct.values.len();
            chunk.add(codes.len(), levels, ParquetEncoding::RLE_DICTIONARY, |out| encode_codes(codes, length, out));
        } else {
            let encode = |out: &mut _| differences::encode(values, out);
            chunk.add(values.len(), levels, ParquetEncoding::DELTA_BINARY_PACKED, encode);
        }
    }
}

impl Column for Numbers {
    fn schema(&self, name: &str) -> Type {
        primitive(name, self.physical, self.logical.clone(), self.chunk.presence())
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError> {
        let values = mem::take(&mut self.distinct.values);
        let bytes = if self.physical == PhysicalType::INT32 { 4 } else { 8 };
        let entries: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(bytes)).collect();
        let dictionary = (self.encoding == Encoding::Dictionary).then_some((&entries[..], values.len()));
        self.chunk.write(dictionary, row_group, descriptor)
    }
}

/// The distinct values of a column, in the order of their first occurrence.
#[derive(Debug)]
struct Distinct {
    values: Vec<i64>,
    // The code of the last value of this hash slot. If it belongs to another value, all values are
    // searched.
    slots: [u8; 256],
}

impl Distinct {
    const fn new() -> Self {
        Self { values: Vec::new(), slots: [0; 256] }
    }

    /// Sets `codes` to those of `values`; false if there are too many distinct values.
    fn codes(&mut self, values: &[i64], codes: &mut Vec<u16>) -> bool {
        codes.clear();
        codes.resize(values.len(), 0);
        let Some(&first) = values.first() else { return true };
        // Most columns hardly ever change: this test is cheaper than a look-up of each value.
        if values.iter().fold(0, |difference, value| difference | (value ^ first)) == 0 {
            return self.code(first).map(|code| codes.fill(code)).is_some();
        }
        codes.iter_mut().zip(values).all(|(code, value)| self.code(*value).map(|found| *code = found).is_some())
    }

    #[inline]
    fn code(&mut self, value: i64) -> Option<u16> {
        // Fibonacci hashing: values at equal distances have different slots.
        let slot = usize::from((value.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8);
        let code = self.slots[slot];
        if self.values.get(usize::from(code)) == Some(&value) { Some(code.into()) } else { self.find(slot, value) }
    }

    #[cold]
    fn find(&mut self, slot: usize, value: i64) -> Option<u16> {
        let code = self.values.iter().position(|other| *other == value).unwrap_or(self.values.len());
        if code == self.values.len() {
            if code == MOST_DISTINCT {
                return None;
            }
            self.values.push(value);
        }
        self.slots[slot] = code as u8;
        Some(code as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_follow_the_order_of_first_occurrence() {
        let (mut distinct, mut codes) = (Distinct::new(), Vec::new());
        assert!(distinct.codes(&[7, -1, 7, 1 << 40, -1], &mut codes));
        assert_eq!(codes, [0, 1, 0, 2, 1]);
        assert_eq!(distinct.values, [7, -1, 1 << 40]);
    }

    #[test]
    fn a_dictionary_takes_no_more_than_it_may() {
        let (mut distinct, mut codes) = (Distinct::new(), Vec::new());
        let values: Vec<i64> = (0..MOST_DISTINCT as i64).map(|value| value * 1_000_003).collect();
        assert!(distinct.codes(&values, &mut codes));
        assert_eq!(codes, (0..256).collect::<Vec<_>>());
        assert!(!distinct.codes(&[0, -1], &mut codes));
        assert!(distinct.codes(&values, &mut codes), "earlier entries stay");
        assert_eq!(codes, (0..256).collect::<Vec<_>>());
    }
}
