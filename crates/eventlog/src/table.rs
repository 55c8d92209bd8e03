//! A table: buffered pages, and the part files.

use std::fs;
use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{SchemaDescriptor, Type};

use crate::batch::Batch;
use crate::column::Column;
use crate::fields::{Field, to_json};
use crate::{ROWS_PER_PART, SCHEMA};

/// The columns of a table, with their buffered pages.
pub trait Rows {
    /// Type of the batches.
    type Batch: Batch;
    /// The columns in the order of the schema.
    const FIELDS: &'static [Field];
    /// Begins another repetition; there are no pages.
    fn begin(&mut self, repetition: u32);
    /// Adds a page of the rows to each column.
    fn add(&mut self, batch: &Self::Batch);
    /// The columns by name, in the order of the schema.
    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)>;
}

/// The files of a table's parts.
#[derive(Debug)]
pub struct PartFiles {
    folder: PathBuf,
    repetition: u32,
    part: u32,
}

impl PartFiles {
    /// The parts of `repetition` in `folder`, which is created.
    pub fn create(folder: PathBuf, repetition: u32) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, repetition, part: 0 })
    }

    /// Writes the next part. The file has its name when it is complete; a failed one is removed.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let name = format!("{:04}-{:04}.parquet", self.repetition, self.part);
        let (path, draft) = (self.folder.join(&name), self.folder.join(name + ".tmp"));
        let written = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, &path));
        if written.is_err() {
            // Frees space for other files, such as the run's summary, if the disk is full. An error
            // here changes nothing.
            let _ = fs::remove_file(&draft);
        }
        self.part += 1;
        written
    }
}

/// A table.
#[derive(Debug)]
pub struct Table<R> {
    rows: R,
    waiting: usize,
    files: PartFiles,
    schema: SchemaDescriptor,
    properties: Arc<WriterProperties>,
    file: Vec<u8>,
    written_rows: u64,
    written_bytes: u64,
}

impl<R: Rows> Table<R> {
    /// An empty table.
    pub fn new(files: PartFiles, mut rows: R) -> Self {
        let columns = rows.columns();
        let fields = columns.iter().map(|(name, column)| Arc::new(column.schema(name))).collect();
        let schema = Type::group_type_builder("schema").with_fields(fields).build();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("airpath ", env!("CARGO_PKG_VERSION")).into())
            .set_key_value_metadata(Some(vec![
                KeyValue::new("airpath.schema".into(), SCHEMA.to_string()),
                KeyValue::new("airpath.version".into(), env!("CARGO_PKG_VERSION").to_string()),
                KeyValue::new("airpath.columns".into(), to_json(R::FIELDS)),
            ]))
            .set_offset_index_disabled(true)
            .set_statistics_enabled(EnabledStatistics::None);
        Self {
            rows,
            waiting: 0,
            files,
            schema: SchemaDescriptor::new(Arc::new(schema.expect("a group of columns is a schema"))),
            properties: Arc::new(properties.build()),
            file: Vec::new(),
            written_rows: 0,
            written_bytes: 0,
        }
    }

    /// Adds rows, at most those that complete the part, which is then written.
    pub fn add(&mut self, batch: &R::Batch) -> io::Result<()> {
        self.rows.add(batch);
        self.waiting += batch.rows();
        if self.waiting >= ROWS_PER_PART { self.write_part() } else { Ok(()) }
    }

    /// Begins another repetition.
    pub fn begin(&mut self, repetition: u32) {
        self.rows.begin(repetition);
        (self.files.repetition, self.files.part) = (repetition, 0);
    }

    /// Writes the buffered rows, and adds to the counts of rows and bytes.
    pub fn finish(&mut self, rows: &mut u64, bytes: &mut u64) -> io::Result<()> {
        if self.waiting > 0 {
            self.write_part()?;
        }
        *rows += mem::take(&mut self.written_rows);
        *bytes += mem::take(&mut self.written_bytes);
        Ok(())
    }

    fn write_part(&mut self) -> io::Result<()> {
        self.file.clear();
        self.encode().expect("rows that are in memory can be encoded into memory");
        self.files.write(&self.file)?;
        self.written_rows += self.waiting as u64;
        self.written_bytes += self.file.len() as u64;
        self.waiting = 0;
        Ok(())
    }

    /// Encodes a file with the buffered rows into `self.file`, and clears the columns.
    fn encode(&mut self) -> Result<(), ParquetError> {
        let Self { file, schema, properties, rows, .. } = self;
        let mut file = SerializedFileWriter::new(file, schema.root_schema_ptr(), properties.clone())?;
        let mut row_group = file.next_row_group()?;
        for ((_, column), descriptor) in rows.columns().into_iter().zip(schema.columns()) {
            column.write(&mut row_group, descriptor)?;
        }
        row_group.close()?;
        file.close().map(drop)
    }
}
