//! The connection between the run and the log's thread: rows are collected in batches, sent when
//! full, and the batches return empty. The run waits only while [`BATCHES_AHEAD`] batches are
//! unprocessed.

use std::io;
use std::mem;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread::JoinHandle;

use airpath_core::{AppEvent, ChangeEvent, ComponentId, Instant, QuicEvent, RadioEvent, StateEvent, TcpEvent};

use crate::Summary;
use crate::batch::{Batch, PacketBatch, Row};
use crate::table::{Rows, Table};

/// Maximum number of unprocessed batches, which evens out short pauses of the disk. Each has an
/// eighth to a quarter of a megabyte.
pub const BATCHES_AHEAD: usize = 4;

/// A message to the log's thread.
#[derive(Debug)]
pub enum Message {
    /// Rows of `packets`.
    Packets(PacketBatch),
    /// Rows of `tcp`.
    Tcp(Vec<Row<TcpEvent>>),
    /// Rows of `quic`.
    Quic(Vec<Row<QuicEvent>>),
    /// Rows of `radio`.
    Radio(Vec<Row<RadioEvent>>),
    /// Rows of `states`.
    States(Vec<Row<StateEvent>>),
    /// Rows of `app`.
    App(Vec<Row<AppEvent>>),
    /// Rows of `changes`.
    Changes(Vec<Row<ChangeEvent>>),
    /// The log is complete; the reply is its summary. Without it, an incomplete part is not
    /// written.
    End,
    /// Another repetition begins.
    Begin(u32),
}

/// The run's end, for one table.
#[derive(Debug)]
pub struct BatchSender<B> {
    batch: B,
    message: fn(B) -> Message,
    full: SyncSender<Message>,
    empty: Receiver<B>,
}

/// The thread's end, for one table.
#[derive(Debug)]
pub struct BatchReceiver<R: Rows> {
    table: Table<R>,
    empty: Sender<R::Batch>,
}

/// Both ends of the connection to `table`; rows are sent as `message` through `full`.
pub fn batch_channel<R: Rows>(
    table: Table<R>,
    message: fn(R::Batch) -> Message,
    full: SyncSender<Message>,
) -> (BatchSender<R::Batch>, BatchReceiver<R>) {
    let (back, empty) = channel();
    (BatchSender { batch: R::Batch::default(), message, full, empty }, BatchReceiver { table, empty: back })
}

impl<B: Batch> BatchSender<B> {
    /// Adds a row.
    #[inline]
    pub fn add(&mut self, time: Instant, at: ComponentId, event: &B::Event) {
        self.batch.add(time, at, event);
        if self.batch.rows() == B::FULL {
            self.send();
        }
    }

    /// Sends the collected rows, if any.
    #[cold]
    pub fn send(&mut self) {
        if self.batch.rows() == 0 {
            return;
        }
        let full = mem::replace(&mut self.batch, self.empty.try_recv().unwrap_or_default());
        // A thread that has ended has failed, which is reported when it is joined; the rows are
        // lost.
        let _ = self.full.send((self.message)(full));
    }
}

impl<R: Rows> BatchReceiver<R> {
    /// Adds the rows to the table, and returns the memory.
    pub fn add(&mut self, mut rows: R::Batch) -> io::Result<()> {
        self.table.add(&rows)?;
        rows.clear();
        // The run may be over, and the memory unused.
        let _ = self.empty.send(rows);
        Ok(())
    }

    /// Begins another repetition.
    pub fn begin(&mut self, repetition: u32) {
        self.table.begin(repetition);
    }

    /// Writes the buffered rows, and adds to the counts of rows and bytes.
    pub fn finish(&mut self, rows: &mut u64, bytes: &mut u64) -> io::Result<()> {
        self.table.finish(rows, bytes)
    }
}

/// The log's thread. It ends with its log.
#[derive(Debug)]
pub struct Writer {
    thread: Option<JoinHandle<io::Result<()>>>,
    answers: Receiver<Summary>,
}

impl Writer {
    /// A thread with this handle, which sends summaries of complete logs to `answers`.
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
    /// The error that ended the thread.
    pub fn summary(&mut self) -> io::Result<Summary> {
        if let Ok(summary) = self.answers.recv() {
            return Ok(summary);
        }
        let thread = self.thread.take().expect("a failed thread is joined once");
        let ended = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        Err(ended.expect_err("it ends without an answer only where it fails"))
    }
}

impl Drop for Writer {
    /// Waits until the full parts are written. The thread ends because the senders to it are
    /// dropped.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // The log was dropped: its result is unused.
            let _ = thread.join();
        }
    }
}
