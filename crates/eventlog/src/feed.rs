//! The way from the run to the thread that writes: rows are collected in batches, handed over when
//! full, and come back empty. The run is kept waiting only while [`BATCHES_AHEAD`] batches wait for
//! the writer.

use std::io;
use std::mem;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread::JoinHandle;

use airpath_core::{AppEvent, ChangeEvent, ComponentId, Instant, RadioEvent, StateEvent, TcpEvent};

use crate::Summary;
use crate::batch::{Batch, PacketBatch, Row};
use crate::table::{Rows, Table};

/// Full batches that wait for the writer, at most: what evens out a short pause of the disk. An
/// eighth to a quarter of a megabyte each.
pub const BATCHES_AHEAD: usize = 4;

/// What the writer gets.
#[derive(Debug)]
pub enum Message {
    /// Rows of `packets`.
    Packets(PacketBatch),
    /// Rows of `tcp`.
    Tcp(Vec<Row<TcpEvent>>),
    /// Rows of `radio`.
    Radio(Vec<Row<RadioEvent>>),
    /// Rows of `states`.
    States(Vec<Row<StateEvent>>),
    /// Rows of `app`.
    App(Vec<Row<AppEvent>>),
    /// Rows of `changes`.
    Changes(Vec<Row<ChangeEvent>>),
    /// The log is complete, and is answered with what there is. Without it, what does not fill a
    /// part is not written.
    End,
    /// Another repetition begins, with this number.
    Begin(u32),
}

/// The end of the run, for one table.
#[derive(Debug)]
pub struct Lane<B> {
    batch: B,
    message: fn(B) -> Message,
    full: SyncSender<Message>,
    empty: Receiver<B>,
}

/// The end of the writer.
#[derive(Debug)]
pub struct Inlet<R: Rows> {
    table: Table<R>,
    empty: Sender<R::Batch>,
}

/// Both ends of the way to `table`, on which rows travel as a `message` through `full`.
pub fn lane<R: Rows>(
    table: Table<R>,
    message: fn(R::Batch) -> Message,
    full: SyncSender<Message>,
) -> (Lane<R::Batch>, Inlet<R>) {
    let (back, empty) = channel();
    (Lane { batch: R::Batch::default(), message, full, empty }, Inlet { table, empty: back })
}

impl<B: Batch> Lane<B> {
    /// Adds a row.
    #[inline]
    pub fn add(&mut self, time: Instant, at: ComponentId, event: &B::Event) {
        self.batch.add(time, at, event);
        if self.batch.rows() == B::FULL {
            self.hand_over();
        }
    }

    /// Hands over the rows that there are, if any.
    #[cold]
    pub fn hand_over(&mut self) {
        if self.batch.rows() == 0 {
            return;
        }
        let full = mem::replace(&mut self.batch, self.empty.try_recv().unwrap_or_default());
        // A writer that is gone has failed, which it says when it is joined; nothing can be done
        // with the rows.
        let _ = self.full.send((self.message)(full));
    }
}

impl<R: Rows> Inlet<R> {
    /// Adds the rows to the table, and gives back their room.
    pub fn add(&mut self, mut rows: R::Batch) -> io::Result<()> {
        self.table.add(&rows)?;
        rows.clear();
        // The run may be over: then nobody needs it.
        let _ = self.empty.send(rows);
        Ok(())
    }

    /// Begins another repetition.
    pub fn begin(&mut self, repetition: u32) {
        self.table.begin(repetition);
    }

    /// Writes what waits, and adds to the counts of rows and bytes.
    pub fn finish(&mut self, rows: &mut u64, bytes: &mut u64) -> io::Result<()> {
        self.table.finish(rows, bytes)
    }
}

/// The thread that writes. It does not outlive its log.
#[derive(Debug)]
pub struct Writer {
    thread: Option<JoinHandle<io::Result<()>>>,
    answers: Receiver<Summary>,
}

impl Writer {
    /// That with this handle, which answers so when a log is complete.
    pub const fn new(thread: JoinHandle<io::Result<()>>, answers: Receiver<Summary>) -> Self {
        Self { thread: Some(thread), answers }
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the log is written.
    ///
    /// # Errors
    /// Why it could not be. Then it has ended.
    pub fn summary(&mut self) -> io::Result<Summary> {
        if let Ok(summary) = self.answers.recv() {
            return Ok(summary);
        }
        let thread = self.thread.take().expect("one that has failed is not asked again");
        let ended = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        Err(ended.expect_err("it ends without an answer only where it fails"))
    }
}

impl Drop for Writer {
    /// Waits for it to write the parts that are full. It ends because its log, and with it the way
    /// to it, is gone.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // Nobody asked whether it succeeded.
            let _ = thread.join();
        }
    }
}
