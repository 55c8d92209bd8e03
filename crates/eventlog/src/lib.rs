//! The event log as columnar files, written as the run goes.
//!
//! [`EventLog`] is a [`Sink`]. It collects the events of one repetition in columns, one table for
//! each class of events, and writes a Parquet file whenever a table has [`ROWS_PER_PART`] rows:
//! `<folder>/<table>/<repetition>-<part>.parquet`, both numbers with at least four digits. A file
//! is complete when it gets that name, so a run that is killed leaves all parts but the last, and
//! any reader can read them while the run goes on.
//!
//! The run itself only copies each event into a batch. A thread of the log encodes full batches
//! into pages of columns, and writes these to files, while the run continues. The content of the
//! files does not depend on the speed of either. Memory is bounded: a run that is faster than the
//! disk waits.
//!
//! # Tables, schema 1
//!
//! [`TABLES`] has the columns of each table with their units and meanings, which are those of
//! [`airpath_core::event`]. `time` is in nanoseconds from the origin of the run, as are all
//! durations; sizes, windows and stream offsets are in bytes. Rows of one component are in the
//! order of their times, those of different components may not be. `packet` is unique within a
//! repetition and joins the rows of one packet. `cause` is set on `dropped` rows, the backlog on
//! `queued` rows, and the transport header (the columns from `offset` on) on `sent` rows of TCP
//! packets; `ack` only with the ACK flag. A row of `quic` is one packet of QUIC; several may share
//! a datagram, which is a row of `packets`. A row of `states` has a `name` or a `number`.
//!
//! The key-value metadata of each file have its schema (`airpath.schema`), its writer
//! (`airpath.version`), and unit and description of its columns as JSON (`airpath.columns`).
//! Readers support all schemas: a table or a column may be added under the same number, any other
//! change has a new one.
//!
//! ```
//! use airpath_core::{AppEvent, AppStep, Bytes, Classes, ComponentId, Event, FlowId, Instant, Sink};
//! use airpath_eventlog::EventLog;
//!
//! let folder = std::env::temp_dir().join("airpath-eventlog-example");
//! let mut log = EventLog::create(&folder, 0, vec!["server".into()], Classes::ALL)?;
//! let event = AppEvent { flow: FlowId(0), step: AppStep::Started, delivered: Bytes::ZERO };
//! log.record(Instant::ZERO, ComponentId(0), &Event::App(event));
//! let summary = log.finish()?;
//! assert_eq!(summary.app, 1);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod batch;
mod column;
mod encoding;
mod feed;
mod fields;
mod table;
mod tables;

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use airpath_core::{
    AppEvent, ChangeEvent, Classes, ComponentId, Event, Instant, QuicEvent, RadioEvent, Sink, StateEvent, TcpEvent,
};

use crate::batch::{PacketBatch, Row};
use crate::feed::{BATCHES_AHEAD, BatchReceiver, BatchSender, Message, Writer, batch_channel};
pub use crate::fields::Field;
use crate::table::{PartFiles, Table};
pub use crate::tables::TABLES;
use crate::tables::{AppRows, ChangeRows, PacketRows, QuicRows, RadioRows, StateRows, TcpRows};

/// Number of the schema described above.
pub const SCHEMA: u32 = 1;

/// Rows of a complete part. Until then they are buffered, encoded: at most about 1 MB for those of
/// `packets` and `tcp`, plus a few MB at most that are not encoded yet.
pub const ROWS_PER_PART: usize = 1 << 16;

/// Writes the events of one repetition.
///
/// The first write error ends the log: the parts written stay, later events are discarded, and
/// [`EventLog::finish`] returns the error. A run detects it by [`Sink::has_failed`].
///
/// A log that is dropped without [`EventLog::finish`] leaves the complete parts.
#[derive(Debug)]
pub struct EventLog {
    packets: Option<BatchSender<PacketBatch>>,
    tcp: Option<BatchSender<Vec<Row<TcpEvent>>>>,
    quic: Option<BatchSender<Vec<Row<QuicEvent>>>>,
    radio: Option<BatchSender<Vec<Row<RadioEvent>>>>,
    states: Option<BatchSender<Vec<Row<StateEvent>>>>,
    app: Option<BatchSender<Vec<Row<AppEvent>>>>,
    changes: Option<BatchSender<Vec<Row<ChangeEvent>>>>,
    messages: SyncSender<Message>,
    wants: Classes,
    components: usize,
    // Dropped last: the thread ends when all its senders are dropped.
    writer: Writer,
}

/// Numbers of a complete log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows of `packets`.
    pub packets: u64,
    /// Rows of `tcp`.
    pub tcp: u64,
    /// Rows of `quic`.
    pub quic: u64,
    /// Rows of `radio`.
    pub radio: u64,
    /// Rows of `states`.
    pub states: u64,
    /// Rows of `app`.
    pub app: u64,
    /// Rows of `changes`.
    pub changes: u64,
    /// Size of all files, in bytes.
    pub bytes: u64,
}

impl EventLog {
    /// Begins the log of a repetition in `folder`, with tables for `classes`. `components` are the
    /// names by [`ComponentId`].
    ///
    /// # Errors
    /// A folder cannot be created, or the thread cannot start.
    pub fn create(folder: &Path, repetition: u32, components: Vec<String>, classes: Classes) -> io::Result<Self> {
        let (messages, received) = sync_channel(BATCHES_AHEAD);
        macro_rules! table {
            ($class:ident, $name:literal, $message:ident, $rows:expr) => {
                match classes.intersects(Classes::$class) {
                    true => {
                        let table = Table::new(PartFiles::create(folder.join($name), repetition)?, $rows);
                        Some(batch_channel(table, Message::$message, messages.clone()))
                    }
                    false => None,
                }
                .unzip()
            };
        }
        let (packets, packet_rows) = table!(PACKET, "packets", Packets, PacketRows::new(repetition, &components));
        let (tcp, tcp_rows) = table!(TCP, "tcp", Tcp, TcpRows::new(repetition, &components));
        let (quic, quic_rows) = table!(QUIC, "quic", Quic, QuicRows::new(repetition, &components));
        let (radio, radio_rows) = table!(RADIO, "radio", Radio, RadioRows::new(repetition, &components));
        let (states, state_rows) = table!(STATE, "states", States, StateRows::new(repetition, &components));
        let (app, app_rows) = table!(APP, "app", App, AppRows::new(repetition));
        let (changes, change_rows) = table!(CHANGE, "changes", Changes, ChangeRows::new(repetition, &components));
        let tables = Tables {
            packets: packet_rows,
            tcp: tcp_rows,
            quic: quic_rows,
            radio: radio_rows,
            states: state_rows,
            app: app_rows,
            changes: change_rows,
        };
        let (answer, answers) = channel();
        let write = move || tables.write(received, &answer);
        let thread = thread::Builder::new().name("event-log".into()).spawn(write)?;
        let (components, writer) = (components.len(), Writer::new(thread, answers));
        Ok(Self { packets, tcp, quic, radio, states, app, changes, messages, wants: classes, components, writer })
    }

    /// Writes the buffered rows, and returns the summary.
    ///
    /// # Errors
    /// The first write error. The parts that were complete by then stay.
    pub fn finish(self) -> io::Result<Summary> {
        self.complete().map(|(summary, _)| summary)
    }

    /// The same, and returns the resources for the log of another repetition.
    ///
    /// # Errors
    /// Those of [`Self::finish`].
    pub fn complete(mut self) -> io::Result<(Summary, Spare)> {
        self.packets.iter_mut().for_each(BatchSender::send);
        self.tcp.iter_mut().for_each(BatchSender::send);
        self.quic.iter_mut().for_each(BatchSender::send);
        self.radio.iter_mut().for_each(BatchSender::send);
        self.states.iter_mut().for_each(BatchSender::send);
        self.app.iter_mut().for_each(BatchSender::send);
        self.changes.iter_mut().for_each(BatchSender::send);
        // A thread that has ended has failed: its error is returned next.
        let _ = self.messages.send(Message::End);
        let summary = self.writer.summary()?;
        Ok((summary, Spare(self)))
    }
}

/// The thread of a complete log, and its memory, for reuse: for a short run they are expensive.
#[derive(Debug)]
pub struct Spare(EventLog);

impl Spare {
    /// The log of another repetition, in the same folder, with the same components and tables.
    pub fn log(self, repetition: u32) -> EventLog {
        // The thread is waiting: nothing has failed since.
        let _ = self.0.messages.send(Message::Begin(repetition));
        self.0
    }
}

/// State of the log's thread.
struct Tables {
    packets: Option<BatchReceiver<PacketRows>>,
    tcp: Option<BatchReceiver<TcpRows>>,
    quic: Option<BatchReceiver<QuicRows>>,
    radio: Option<BatchReceiver<RadioRows>>,
    states: Option<BatchReceiver<StateRows>>,
    app: Option<BatchReceiver<AppRows>>,
    changes: Option<BatchReceiver<ChangeRows>>,
}

impl Tables {
    /// Processes all messages, until the log is dropped.
    fn write(mut self, messages: Receiver<Message>, answer: &Sender<Summary>) -> io::Result<()> {
        for message in messages {
            let Self { packets, tcp, quic, radio, states, app, changes } = &mut self;
            match message {
                Message::Packets(rows) => packets.as_mut().map_or(Ok(()), |receiver| receiver.add(rows))?,
                Message::Tcp(rows) => tcp.as_mut().map_or(Ok(()), |receiver| receiver.add(rows))?,
                Message::Quic(rows) => quic.as_mut().map_or(Ok(()), |receiver| receiver.add(rows))?,
                Message::Radio(rows) => radio.as_mut().map_or(Ok(()), |receiver| receiver.add(rows))?,
                Message::States(rows) => states.as_mut().map_or(Ok(()), |receiver| receiver.add(rows))?,
                Message::App(rows) => app.as_mut().map_or(Ok(()), |receiver| receiver.add(rows))?,
                Message::Changes(rows) => changes.as_mut().map_or(Ok(()), |receiver| receiver.add(rows))?,
                Message::End => {
                    let summary = self.finish()?;
                    // The log may have been dropped.
                    let _ = answer.send(summary);
                }
                Message::Begin(repetition) => self.begin(repetition),
            }
        }
        Ok(())
    }

    fn begin(&mut self, repetition: u32) {
        self.packets.iter_mut().for_each(|receiver| receiver.begin(repetition));
        self.tcp.iter_mut().for_each(|receiver| receiver.begin(repetition));
        self.quic.iter_mut().for_each(|receiver| receiver.begin(repetition));
        self.radio.iter_mut().for_each(|receiver| receiver.begin(repetition));
        self.states.iter_mut().for_each(|receiver| receiver.begin(repetition));
        self.app.iter_mut().for_each(|receiver| receiver.begin(repetition));
        self.changes.iter_mut().for_each(|receiver| receiver.begin(repetition));
    }

    fn finish(&mut self) -> io::Result<Summary> {
        let mut summary = Summary::default();
        let Self { packets, tcp, quic, radio, states, app, changes } = self;
        // The error of one table does not prevent the others from being written.
        let written = [
            packets.as_mut().map_or(Ok(()), |receiver| receiver.finish(&mut summary.packets, &mut summary.bytes)),
            tcp.as_mut().map_or(Ok(()), |receiver| receiver.finish(&mut summary.tcp, &mut summary.bytes)),
            quic.as_mut().map_or(Ok(()), |receiver| receiver.finish(&mut summary.quic, &mut summary.bytes)),
            radio.as_mut().map_or(Ok(()), |receiver| receiver.finish(&mut summary.radio, &mut summary.bytes)),
            states.as_mut().map_or(Ok(()), |receiver| receiver.finish(&mut summary.states, &mut summary.bytes)),
            app.as_mut().map_or(Ok(()), |receiver| receiver.finish(&mut summary.app, &mut summary.bytes)),
            changes.as_mut().map_or(Ok(()), |receiver| receiver.finish(&mut summary.changes, &mut summary.bytes)),
        ];
        written.into_iter().collect::<io::Result<()>>().map(|()| summary)
    }
}

impl Sink for EventLog {
    fn wants(&self) -> Classes {
        self.wants
    }

    /// # Panics
    /// If `at` is a component without a name.
    fn record(&mut self, time: Instant, at: ComponentId, event: &Event) {
        let named = || assert!((at.0 as usize) < self.components, "{at:?} has no name");
        match event {
            Event::Packet(event) => {
                named();
                self.packets.iter_mut().for_each(|sender| sender.add(time, at, event));
            }
            Event::Tcp(event) => self.tcp.iter_mut().for_each(|sender| sender.add(time, at, event)),
            Event::Quic(event) => {
                named();
                self.quic.iter_mut().for_each(|sender| sender.add(time, at, event));
            }
            Event::Radio(event) => {
                named();
                self.radio.iter_mut().for_each(|sender| sender.add(time, at, event));
            }
            Event::App(event) => self.app.iter_mut().for_each(|sender| sender.add(time, at, event)),
            Event::Change(event) => {
                named();
                self.changes.iter_mut().for_each(|sender| sender.add(time, at, event));
            }
            Event::State(event) => {
                named();
                self.states.iter_mut().for_each(|sender| sender.add(time, at, event));
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.writer.has_ended()
    }
}
