//! Columns of which the values come from a dictionary that is known beforehand. They wait as codes, and are written as
//! such: no value is ever compared or hashed.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type};

use super::{Column, RowGroup, primitive};
use crate::{ROWS_PER_PART, hybrid};

/// The values of a column; the code of each is its index.
#[derive(Debug)]
pub struct Dictionary {
    // As the file has them: numbers in little-endian order, texts behind their length.
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

    /// Bits of a code.
    fn width(&self) -> u32 {
        self.length.saturating_sub(1).max(1).ilog2() + 1
    }

    fn schema(&self, name: &str, repetition: Repetition) -> Type {
        primitive(name, self.physical, self.logical.clone(), repetition)
    }

    /// Writes a column with one value for each code, in the rows where the level is 1, or in all rows.
    fn write(
        &self,
        row_group: &mut RowGroup<'_, '_>,
        descriptor: &ColumnDescPtr,
        codes: &[u16],
        levels: Option<&[u16]>,
    ) -> Result<(), ParquetError> {
        // A page holds the levels behind their length, then the width of the codes and the codes.
        let mut page = Vec::new();
        if let Some(levels) = levels {
            page.extend_from_slice(&[0; 4]);
            hybrid::encode(levels, 1, &mut page);
            let length = (page.len() - 4) as u32;
            page[..4].copy_from_slice(&length.to_le_bytes());
        }
        page.push(self.width() as u8);
        hybrid::encode(codes, self.width(), &mut page);

        let rows = levels.map_or(codes.len(), <[u16]>::len);
        let dictionary = Page::DictionaryPage {
            buf: Bytes::copy_from_slice(&self.entries),
            num_values: self.length as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let data = Page::DataPage {
            buf: page.into(),
            num_values: rows as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let mut chunk = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut chunk);
        let mut data_offset = 0;
        for page in [dictionary, data] {
            let length = page.buffer().len();
            data_offset = pages.write_page(CompressedPage::new(page, length))?.offset;
        }
        pages.close()?;
        let chunk = chunk.into_inner()?;
        let metadata = ColumnChunkMetaData::builder(descriptor.clone())
            .set_compression(Compression::UNCOMPRESSED)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_num_values(rows as i64)
            .set_total_compressed_size(chunk.len() as i64)
            .set_total_uncompressed_size(chunk.len() as i64)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(data_offset as i64)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: chunk.len() as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        row_group.append_column(&Bytes::from(chunk), close)
    }
}

/// A column of codes.
#[derive(Debug)]
pub struct Coded {
    dictionary: Dictionary,
    codes: Vec<u16>,
}

impl Coded {
    /// An empty column.
    pub fn new(dictionary: Dictionary) -> Self {
        Self { dictionary, codes: Vec::with_capacity(ROWS_PER_PART) }
    }

    /// Adds the value with this code.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn push(&mut self, code: u16) {
        assert!(usize::from(code) < self.dictionary.length, "each code stands in its dictionary");
        self.codes.push(code);
    }
}

impl Column for Coded {
    fn schema(&self, name: &str) -> Type {
        self.dictionary.schema(name, Repetition::REQUIRED)
    }

    fn configure(&self, properties: WriterPropertiesBuilder, _: ColumnPath) -> WriterPropertiesBuilder {
        properties
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError> {
        self.dictionary.write(row_group, descriptor, &self.codes, None)?;
        self.codes.clear();
        Ok(())
    }
}

/// A column of codes of which some are null.
#[derive(Debug)]
pub struct OptionalCoded {
    present: Coded,
    // For each row whether it has a value: Parquet's definition level.
    levels: Vec<u16>,
}

impl OptionalCoded {
    /// An empty column.
    pub fn new(dictionary: Dictionary) -> Self {
        Self { present: Coded::new(dictionary), levels: Vec::with_capacity(ROWS_PER_PART) }
    }

    /// Adds the value with this code, or none.
    ///
    /// # Panics
    /// If no value has this code.
    #[inline]
    pub fn push(&mut self, code: Option<u16>) {
        self.levels.push(u16::from(code.is_some()));
        if let Some(code) = code {
            self.present.push(code);
        }
    }
}

impl Column for OptionalCoded {
    fn schema(&self, name: &str) -> Type {
        self.present.dictionary.schema(name, Repetition::OPTIONAL)
    }

    fn configure(&self, properties: WriterPropertiesBuilder, _: ColumnPath) -> WriterPropertiesBuilder {
        properties
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError> {
        let Coded { dictionary, codes } = &mut self.present;
        dictionary.write(row_group, descriptor, codes, Some(&self.levels))?;
        codes.clear();
        self.levels.clear();
        Ok(())
    }
}

/// A column of numbers from 0 on of which the largest is not very large: each is its own code, in a dictionary that
/// reaches up to the largest.
#[derive(Debug)]
pub struct Counts {
    values: Vec<u16>,
}

impl Counts {
    /// An empty column.
    pub fn new() -> Self {
        Self { values: Vec::with_capacity(ROWS_PER_PART) }
    }

    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: u16) {
        self.values.push(value);
    }

    fn dictionary(&self) -> Dictionary {
        let largest = self.values.iter().copied().max().unwrap_or(0);
        Dictionary::numbers(0..=i32::from(largest), 32)
    }
}

impl Column for Counts {
    fn schema(&self, name: &str) -> Type {
        self.dictionary().schema(name, Repetition::REQUIRED)
    }

    fn configure(&self, properties: WriterPropertiesBuilder, _: ColumnPath) -> WriterPropertiesBuilder {
        properties
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError> {
        self.dictionary().write(row_group, descriptor, &self.values, None)?;
        self.values.clear();
        Ok(())
    }
}
