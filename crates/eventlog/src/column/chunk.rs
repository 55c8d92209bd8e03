//! A column chunk: the pages of one column in one part.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::{Presence, RowGroup};
use crate::encoding::hybrid;

/// Which rows of a batch have a value: Parquet's definition levels. Columns that have their values in the same rows
/// share them.
#[derive(Debug, Default)]
pub struct Levels {
    rows: usize,
    levels: Vec<u16>,
    // As a page has them: behind their length.
    encoded: Vec<u8>,
}

impl Levels {
    /// Takes the rows of a batch.
    pub fn set(&mut self, present: impl Iterator<Item = bool>) {
        self.levels.clear();
        self.levels.extend(present.map(u16::from));
        self.rows = self.levels.len();
        self.encoded.clear();
        self.encoded.extend_from_slice(&[0; 4]);
        hybrid::encode(&self.levels, 1, &mut self.encoded);
        let length = (self.encoded.len() - 4) as u32;
        self.encoded[..4].copy_from_slice(&length.to_le_bytes());
    }
}

/// The pages of a column.
#[derive(Debug)]
pub struct Chunk {
    presence: Presence,
    pages: Vec<Page>,
    rows: usize,
    encoded: Vec<u8>,
}

impl Chunk {
    /// No pages.
    pub fn new(presence: Presence) -> Self {
        Self { presence, pages: Vec::new(), rows: 0, encoded: Vec::new() }
    }

    /// Whether all rows have a value.
    pub const fn presence(&self) -> Presence {
        self.presence
    }

    /// Adds a page with `values` values, which `encode` appends to it. They are those of the rows that `levels` has, or
    /// of all rows if none are given: those of an optional column must be.
    pub fn add(
        &mut self,
        values: usize,
        levels: Option<&Levels>,
        encoding: Encoding,
        encode: impl FnOnce(&mut Vec<u8>),
    ) {
        let presence = if levels.is_some() { Presence::Optional } else { Presence::Required };
        assert_eq!(presence, self.presence, "a page has levels where rows may be null, and only there");
        let rows = levels.map_or(values, |levels| levels.rows);
        self.encoded.clear();
        if let Some(levels) = levels {
            self.encoded.extend_from_slice(&levels.encoded);
        }
        encode(&mut self.encoded);
        self.rows += rows;
        self.pages.push(Page::DataPage {
            buf: Bytes::copy_from_slice(&self.encoded),
            num_values: rows as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        });
    }

    /// Writes the pages as the next column, behind a dictionary if they need one. Then there are none.
    pub fn write(
        &mut self,
        dictionary: Option<Page>,
        row_group: &mut RowGroup<'_, '_>,
        descriptor: &ColumnDescPtr,
    ) -> Result<(), ParquetError> {
        // That of the levels, and those of the pages.
        let mut encodings = vec![Encoding::RLE];
        let has_dictionary = dictionary.is_some();
        let mut data_offset = None;
        // With room for their headers, and for a dictionary, unless it is large.
        let length: usize = self.pages.iter().map(|page| page.buffer().len() + 64).sum();
        let mut chunk = TrackedWrite::new(Vec::with_capacity(length + 1024));
        let mut writer = SerializedPageWriter::new(&mut chunk);
        for page in dictionary.into_iter().chain(self.pages.drain(..)) {
            if !encodings.contains(&page.encoding()) {
                encodings.push(page.encoding());
            }
            let (is_data, length) = (page.is_data_page(), page.buffer().len());
            let offset = writer.write_page(CompressedPage::new(page, length))?.offset;
            if is_data {
                data_offset.get_or_insert(offset);
            }
        }
        writer.close()?;
        let chunk = chunk.into_inner()?;
        let rows = std::mem::take(&mut self.rows);
        let metadata = ColumnChunkMetaData::builder(descriptor.clone())
            .set_compression(Compression::UNCOMPRESSED)
            .set_encodings(encodings)
            .set_num_values(rows as i64)
            .set_total_compressed_size(chunk.len() as i64)
            .set_total_uncompressed_size(chunk.len() as i64)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .set_data_page_offset(data_offset.unwrap_or(0) as i64)
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

/// The page of a dictionary with `length` entries.
pub fn dictionary_page(entries: &[u8], length: usize) -> Page {
    Page::DictionaryPage {
        buf: Bytes::copy_from_slice(entries),
        num_values: length as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    }
}

/// Appends codes, indices into a dictionary of `length` entries, behind the bits of each.
pub fn encode_codes(codes: &[u16], length: usize, out: &mut Vec<u8>) {
    let width = length.saturating_sub(1).max(1).ilog2() + 1;
    out.push(width as u8);
    hybrid::encode(codes, width, out);
}
