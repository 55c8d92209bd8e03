//! A column chunk: the pages of one column in one part.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::ColumnDescPtr;

use super::{Presence, RowGroup};
use crate::encoding::{hybrid, page};

/// Rows of a batch that have a value: Parquet's definition levels. Columns with values in the same
/// rows share them.
#[derive(Debug, Default)]
pub struct Levels {
    rows: usize,
    levels: Vec<u16>,
    // The page format, after the length.
    encoded: Vec<u8>,
}

impl Levels {
    /// Sets the rows of a batch.
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

/// The encoded pages of a column, in file order. The memory is reused for the next part.
#[derive(Debug)]
pub struct Chunk {
    presence: Presence,
    rows: usize,
    // The encoding of the levels, and those of the pages.
    encodings: Vec<Encoding>,
    pages: Vec<u8>,
    page: Vec<u8>,
}

impl Chunk {
    /// No pages.
    pub fn new(presence: Presence) -> Self {
        Self { presence, rows: 0, encodings: vec![Encoding::RLE], pages: Vec::new(), page: Vec::new() }
    }

    /// Whether all rows have a value.
    pub const fn presence(&self) -> Presence {
        self.presence
    }

    /// Adds a page with `values` values, which `encode` appends to it. They belong to the rows
    /// present in `levels`, which an optional column must have, or to all rows.
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
        self.page.clear();
        if let Some(levels) = levels {
            self.page.extend_from_slice(&levels.encoded);
        }
        encode(&mut self.page);
        self.rows += rows;
        page::data_header(self.page.len(), rows, encoding, &mut self.pages);
        self.pages.extend_from_slice(&self.page);
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
    }

    /// Writes the pages as the next column, after a dictionary if they need one: its encoded
    /// entries and their number. Clears the pages.
    pub fn write(
        &mut self,
        dictionary: Option<(&[u8], usize)>,
        row_group: &mut RowGroup<'_, '_>,
        descriptor: &ColumnDescPtr,
    ) -> Result<(), ParquetError> {
        let mut encodings = self.encodings.clone();
        self.encodings.truncate(1);
        self.page.clear();
        if let Some((entries, length)) = dictionary {
            page::dictionary_header(entries.len(), length, &mut self.page);
            self.page.extend_from_slice(entries);
            encodings.push(Encoding::PLAIN);
        }
        let data_offset = self.page.len();
        self.pages.splice(..0, self.page.drain(..));
        let (rows, length) = (std::mem::take(&mut self.rows), self.pages.len());
        let metadata = ColumnChunkMetaData::builder(descriptor.clone())
            .set_compression(Compression::UNCOMPRESSED)
            .set_encodings(encodings)
            .set_num_values(rows as i64)
            .set_total_compressed_size(length as i64)
            .set_total_uncompressed_size(length as i64)
            .set_dictionary_page_offset(dictionary.map(|_| 0))
            .set_data_page_offset(data_offset as i64)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: length as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        // The library reads from shared bytes only. Afterwards they have no other owner, and become
        // a vector again.
        let pages = Bytes::from(std::mem::take(&mut self.pages));
        let written = row_group.append_column(&pages, close);
        self.pages = pages.into();
        self.pages.clear();
        written
    }
}

/// Appends codes, indices into a dictionary of `length` entries, after their bit width.
pub fn encode_codes<T: hybrid::Code>(codes: &[T], length: usize, out: &mut Vec<u8>) {
    let width = length.saturating_sub(1).max(1).ilog2() + 1;
    out.push(width as u8);
    hybrid::encode(codes, width, out);
}
