//! The way from the run to the thread that writes: rows are collected in batches, handed over when full, and come back
//! empty. The run is kept waiting only while [`BATCHES_AHEAD`] batches wait for the writer.

use std::io;
use std::mem;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread::JoinHandle;

use airpath_core::{AppEvent, ChangeEvent, ComponentId, Instant, PacketEvent, RadioEvent, StateEvent, TcpEvent};

use crate::table::{Rows, Table};
use crate::{ROWS_PER_PART, Summary};

/// Rows of a full batch. A part takes a whole number of them, and the cache of a processor core one.
pub const ROWS_PER_BATCH: usize = 1 << 11;
const _: () = assert!(ROWS_PER_PART.is_multiple_of(ROWS_PER_BATCH));

/// Full batches that wait for the writer, at most: what evens out a short pause of the disk. A quarter of a megabyte each.
pub const BATCHES_AHEAD: usize = 4;

/// An event, when and where it was.
#[derive(Clone, Debug)]
pub struct Row<E> {
    /// When.
    pub time: Instant,
    /// Where.
    pub at: ComponentId,
    /// What.
    pub event: E,
}

/// What the writer gets.
#[derive(Debug)]
pub enum Message {
    /// Rows of `packets`.
    Packets(Vec<Row<PacketEvent>>),
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
    /// The log is complete. Without it, what does not fill a part is not written.
    End,
}

/// The end of the run, for one table.
#[derive(Debug)]
pub struct Lane<E> {
    rows: Vec<Row<E>>,
    message: fn(Vec<Row<E>>) -> Message,
    full: SyncSender<Message>,
    empty: Receiver<Vec<Row<E>>>,
}

/// The end of the writer.
#[derive(Debug)]
pub struct Inlet<R: Rows> {
    table: Table<R>,
    empty: Sender<Vec<Row<R::Event>>>,
}

/// Both ends of the way to `table`, on which rows travel as a `message` through `full`.
pub fn lane<R: Rows>(
    table: Table<R>,
    message: fn(Vec<Row<R::Event>>) -> Message,
    full: SyncSender<Message>,
) -> (Lane<R::Event>, Inlet<R>) {
    let (back, empty) = channel();
    let rows = Vec::with_capacity(ROWS_PER_BATCH);
    (Lane { rows, message, full, empty }, Inlet { table, empty: back })
}

impl<E> Lane<E> {
    /// Adds a row.
    #[inline]
    pub fn add(&mut self, time: Instant, at: ComponentId, event: E) {
        self.rows.push(Row { time, at, event });
        if self.rows.len() == ROWS_PER_BATCH {
            self.hand_over();
        }
    }

    /// Hands over the rows that there are, if any.
    #[cold]
    pub fn hand_over(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let empty = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(ROWS_PER_BATCH));
        let full = mem::replace(&mut self.rows, empty);
        // A writer that is gone has failed, which it says when it is joined; nothing can be done with the rows.
        let _ = self.full.send((self.message)(full));
    }
}

impl<R: Rows> Inlet<R> {
    /// Adds the rows to the table, and gives back their room.
    pub fn add(&mut self, mut rows: Vec<Row<R::Event>>) -> io::Result<()> {
        self.table.add(&rows)?;
        rows.clear();
        // The run may be over: then nobody needs it.
        let _ = self.empty.send(rows);
        Ok(())
    }

    /// Writes what waits, and adds to the counts of rows and bytes.
    pub fn finish(&mut self, rows: &mut u64, bytes: &mut u64) -> io::Result<()> {
        self.table.finish(rows, bytes)
    }
}

/// The thread that writes. It does not outlive its log.
#[derive(Debug)]
pub struct Writer(Option<JoinHandle<io::Result<Summary>>>);

impl Writer {
    /// That with this handle.
    pub const fn new(thread: JoinHandle<io::Result<Summary>>) -> Self {
        Self(Some(thread))
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for it to end.
    pub fn join(mut self) -> io::Result<Summary> {
        let thread = self.0.take().expect("it is joined once");
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Drop for Writer {
    /// Waits for it to write the parts that are full. It ends because its log, and with it the way to it, is gone.
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // Nobody asked whether it succeeded.
            let _ = thread.join();
        }
    }
}
