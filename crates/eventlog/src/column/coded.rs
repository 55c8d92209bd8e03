//! Columns of values from a predefined dictionary. They are added and written as codes: no value is
//! compared or hashed.

use parquet::basic::{Encoding, LogicalType, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescPtr, Type};

use super::chunk::{Chunk, Levels, encode_codes};
use super::{Column, Presence, RowGroup, primitive};
use crate::encoding::hybrid::Code;

/// The values of a column; the code of each is its index.
#[derive(Debug)]
pub struct Dictionary {
    // The file format: numbers in little-endian order, texts after their length.
    entries: Vec<u8>,
    length: usize,
    physical: PhysicalType,
    logical: Option<LogicalType>,
}

impl Dictionary {
    /// Texts.
    pub fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut entries, mut length) = (Vec::new(), 0);
        for text in texts {
            let bytes = u32::try_from(text.len()).expect("a name has less than 4 GiB");
            entries.extend_from_slice(&bytes.to_le_bytes());
            entries.extend_from_slice(text.as_bytes());
            length += 1;
        }
        Self { entries, length, physical: PhysicalType::BYTE_ARRAY, logical: Some(LogicalType::String) }
    }

    /// Numbers of `bits` bits, at most 32.
    pub fn numbers(numbers: impl IntoIterator<Item = i32>, bits: i8) -> Self {
        let entries: Vec<u8> = numbers.into_iter().flat_map(i32::to_le_bytes).collect();
        let length = entries.len() / size_of::<i32>();
        Self { entries, length, physical: PhysicalType::INT32, logical: Some(LogicalType::integer(bits, true)) }
    }
}

/// A column of codes.
#[derive(Debug)]
pub struct Coded<C = u16> {
    dictionary: Dictionary,
    chunk: Chunk,
    codes: Vec<C>,
}

impl<C: Code> Coded<C> {
    /// An empty column in which all rows have a value.
    pub fn required(dictionary: Dictionary) -> Self {
        Self { dictionary, chunk: Chunk::new(Presence::Required), codes: Vec::new() }
    }

    /// An empty column in which some are null.
    pub fn optional(dictionary: Dictionary) -> Self {
        Self { dictionary, chunk: Chunk::new(Presence::Optional), codes: Vec::new() }
    }

    /// Replaces the dictionary, while there are no pages.
    pub fn set_dictionary(&mut self, dictionary: Dictionary) {
        self.dictionary = dictionary;
    }

    /// Adds the codes of a batch.
    ///
    /// # Panics
    /// If a code is not in the dictionary.
    pub fn add(&mut self, codes: impl Iterator<Item = C>) {
        self.add_page(None, codes);
    }

    /// Adds the codes of a batch, for the rows present in `levels`.
    ///
    /// # Panics
    /// If a code is not in the dictionary.
    pub fn add_some(&mut self, levels: &Levels, codes: impl Iterator<Item = C>) {
        self.add_page(Some(levels), codes);
    }

    /// Adds a batch of rows with the same code.
    ///
    /// # Panics
    /// If the code is not in the dictionary.
    pub fn add_same(&mut self, code: C, rows: usize) {
        self.codes.clear();
        self.codes.resize(rows, code);
        self.add_codes(None);
    }

    fn add_page(&mut self, levels: Option<&Levels>, codes: impl Iterator<Item = C>) {
        self.codes.clear();
        self.codes.extend(codes);
        self.add_codes(levels);
    }

    fn add_codes(&mut self, levels: Option<&Levels>) {
        let (codes, length) = (&self.codes, self.dictionary.length);
        let largest = codes.iter().map(|code| (*code).into()).max();
        assert!(largest.is_none_or(|code: u32| (code as usize) < length), "each code is in the dictionary");
        self.chunk.add(codes.len(), levels, Encoding::RLE_DICTIONARY, |out| encode_codes(codes, length, out));
    }
}

impl<C: Code> Column for Coded<C> {
    fn schema(&self, name: &str) -> Type {
        let Dictionary { physical, logical, .. } = &self.dictionary;
        primitive(name, *physical, logical.clone(), self.chunk.presence())
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError> {
        let Dictionary { entries, length, .. } = &self.dictionary;
        self.chunk.write(Some((entries, *length)), row_group, descriptor)
    }
}
