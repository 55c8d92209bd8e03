//! The event log as columnar files, written as the run goes.
//!
//! [`EventLog`] is a [`Sink`]. It collects the events of one repetition in columns, one table for
//! each class of events, and writes a Parquet file whenever a table has [`ROWS_PER_PART`] rows:
//! `<folder>/<table>/<repetition>-<part>.parquet`, both numbers with at least four digits. A file
//! is complete when it gets that name, so a run that is killed leaves all parts but the last, and
//! any reader can read them while the run goes on.
//!
//! What the run itself does is to copy each event into a batch. A thread of the log turns full
//! batches into pages of encoded columns, and these into files, while the run goes on; what is in
//! the files does not depend on which of the two is faster. Memory is bounded: a run that is faster
//! than the disk waits for it.
//!
//! # Tables, schema 1
//!
//! `time` is in nanoseconds from the origin of the run, as are all lengths of time; sizes, windows
//! and stream offsets are in bytes. Rows of one component are in the order of their times, those of
//! different components need not be. Columns marked `?` may be null.
//!
//! | table | columns |
//! | --- | --- |
//! | all | `time` int64, `repetition` int32 |
//! | `packets` | `component` string, `step` string, `direction` string, `packet` int64, `flow` int32, `user` int32, `size` int32, `ecn` int8, `cause` string?, `backlog_packets` int32?, `backlog_bytes` int64?, `offset` int64?, `length` int32?, `ack` int64?, `window` int64?, `flags` int16?, `retransmission` bool? |
//! | `tcp` | `flow` int32, `direction` string, `trigger` string, `congestion_window` int64, `slow_start_threshold` int64?, `in_flight` int64, `outstanding` int64, `peer_window` int64, `acknowledged` int64, `round_trip` int64?, `smoothed_round_trip` int64?, `retransmission_timeout` int64 |
//! | `radio` | `component` string, `direction` string, `user` int32, `duration` int64, `pdus` int32, `repeated` int32, `errored` int32, `bytes` int64, `level` int32 |
//! | `states` | `component` string, `direction` string?, `user` int32, `aspect` string, `name` string?, `number` double? |
//! | `app` | `flow` int32, `step` string, `delivered` int64, `sequence` int64?, `delay` int64? |
//! | `changes` | `component` string, `kind` string, `direction` string?, `user` int32?, `duration` int64?, `change` string |
//!
//! What the columns mean is said at [`airpath_core::event`], whose names they bear. `packet` is
//! unique within a repetition and joins the rows of one packet. `cause` is there on `dropped` rows,
//! the backlog on `queued` rows, and the columns from `offset` on, which are those of the transport
//! header, on `sent` rows of TCP packets; `ack` only with the ACK flag. A row of `states` has a
//! `name` or a `number`.
//!
//! Each file says in its key-value metadata which schema it has (`airpath.schema`) and what wrote
//! it (`airpath.version`). Readers keep reading all schemas that there ever were: a column may be
//! added under the same number, any other change gets a new one.
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
mod table;
mod tables;

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use airpath_core::{
    AppEvent, ChangeEvent, Classes, ComponentId, Event, Instant, RadioEvent, Sink, StateEvent, TcpEvent,
};

use crate::batch::{PacketBatch, Row};
use crate::feed::{BATCHES_AHEAD, Inlet, Lane, Message, Writer, lane};
use crate::table::{Place, Table};
use crate::tables::{AppRows, ChangeRows, PacketRows, RadioRows, StateRows, TcpRows};

/// The number of the schema that is described above.
pub const SCHEMA: u32 = 1;

/// Rows of a complete part. Until then they wait in memory, encoded: 1 MB for those of `packets`
/// and `tcp`, if not less. Before that they wait for the thread that encodes them, a few MB at
/// most.
pub const ROWS_PER_PART: usize = 1 << 16;

/// Writes the events of one repetition.
///
/// The first error of the disk ends the log: what was written is kept, later events are not, and
/// [`EventLog::finish`] returns the error. A run sees that from [`Sink::has_failed`].
///
/// A log that is dropped without [`EventLog::finish`] leaves the parts that are complete.
#[derive(Debug)]
pub struct EventLog {
    packets: Option<Lane<PacketBatch>>,
    tcp: Option<Lane<Vec<Row<TcpEvent>>>>,
    radio: Option<Lane<Vec<Row<RadioEvent>>>>,
    states: Option<Lane<Vec<Row<StateEvent>>>>,
    app: Option<Lane<Vec<Row<AppEvent>>>>,
    changes: Option<Lane<Vec<Row<ChangeEvent>>>>,
    messages: SyncSender<Message>,
    wants: Classes,
    components: usize,
    // Dropped last: it ends when all that can send to it is gone.
    writer: Writer,
}

/// What a log has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows of `packets`.
    pub packets: u64,
    /// Rows of `tcp`.
    pub tcp: u64,
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
    /// Begins the log of a repetition in `folder`, with tables for `classes`. The name of each
    /// component stands at the index of its [`ComponentId`].
    ///
    /// # Errors
    /// Where a folder cannot be made, or no thread begun.
    pub fn create(folder: &Path, repetition: u32, components: Vec<String>, classes: Classes) -> io::Result<Self> {
        let place = |name| Place::create(folder.join(name), repetition);
        let wants = |class| classes.intersects(class);
        let (messages, received) = sync_channel(BATCHES_AHEAD);
        let full = || messages.clone();
        let (packets, packet_rows) = match wants(Classes::PACKET) {
            true => Some(Table::new(place("packets")?, PacketRows::new(repetition, &components))),
            false => None,
        }
        .map(|table| lane(table, Message::Packets, full()))
        .unzip();
        let (tcp, tcp_rows) = match wants(Classes::TCP) {
            true => Some(Table::new(place("tcp")?, TcpRows::new(repetition))),
            false => None,
        }
        .map(|table| lane(table, Message::Tcp, full()))
        .unzip();
        let (radio, radio_rows) = match wants(Classes::RADIO) {
            true => Some(Table::new(place("radio")?, RadioRows::new(repetition, &components))),
            false => None,
        }
        .map(|table| lane(table, Message::Radio, full()))
        .unzip();
        let (states, state_rows) = match wants(Classes::STATE) {
            true => Some(Table::new(place("states")?, StateRows::new(repetition, &components))),
            false => None,
        }
        .map(|table| lane(table, Message::States, full()))
        .unzip();
        let (app, app_rows) = match wants(Classes::APP) {
            true => Some(Table::new(place("app")?, AppRows::new(repetition))),
            false => None,
        }
        .map(|table| lane(table, Message::App, full()))
        .unzip();
        let (changes, change_rows) = match wants(Classes::CHANGE) {
            true => Some(Table::new(place("changes")?, ChangeRows::new(repetition, &components))),
            false => None,
        }
        .map(|table| lane(table, Message::Changes, full()))
        .unzip();
        let tables = Tables {
            packets: packet_rows,
            tcp: tcp_rows,
            radio: radio_rows,
            states: state_rows,
            app: app_rows,
            changes: change_rows,
        };
        let (answer, answers) = channel();
        let write = move || tables.write(received, &answer);
        let thread = thread::Builder::new().name("event-log".into()).spawn(write)?;
        let (components, writer) = (components.len(), Writer::new(thread, answers));
        Ok(Self { packets, tcp, radio, states, app, changes, messages, wants: classes, components, writer })
    }

    /// Writes what is left, and says what there is.
    ///
    /// # Errors
    /// The first error of the disk, whenever it was. The parts that were complete by then are kept.
    pub fn finish(self) -> io::Result<Summary> {
        self.complete().map(|(summary, _)| summary)
    }

    /// The same, and keeps what the log of another repetition can use.
    ///
    /// # Errors
    /// Those of [`Self::finish`].
    pub fn complete(mut self) -> io::Result<(Summary, Spare)> {
        self.packets.iter_mut().for_each(Lane::hand_over);
        self.tcp.iter_mut().for_each(Lane::hand_over);
        self.radio.iter_mut().for_each(Lane::hand_over);
        self.states.iter_mut().for_each(Lane::hand_over);
        self.app.iter_mut().for_each(Lane::hand_over);
        self.changes.iter_mut().for_each(Lane::hand_over);
        // A writer that is gone has failed: it says so now.
        let _ = self.messages.send(Message::End);
        let summary = self.writer.summary()?;
        Ok((summary, Spare(self)))
    }
}

/// The thread of a log that is complete, and its memory: a short run takes less time than to get
/// both anew.
#[derive(Debug)]
pub struct Spare(EventLog);

impl Spare {
    /// The log of another repetition, in the same folder, with the same components and tables.
    pub fn log(self, repetition: u32) -> EventLog {
        // The thread waits for it: nothing has failed since.
        let _ = self.0.messages.send(Message::Begin(repetition));
        self.0
    }
}

/// What the thread has.
struct Tables {
    packets: Option<Inlet<PacketRows>>,
    tcp: Option<Inlet<TcpRows>>,
    radio: Option<Inlet<RadioRows>>,
    states: Option<Inlet<StateRows>>,
    app: Option<Inlet<AppRows>>,
    changes: Option<Inlet<ChangeRows>>,
}

impl Tables {
    /// Writes all rows that come, until the log is dropped.
    fn write(mut self, messages: Receiver<Message>, answer: &Sender<Summary>) -> io::Result<()> {
        for message in messages {
            let Self { packets, tcp, radio, states, app, changes } = &mut self;
            match message {
                Message::Packets(rows) => packets.as_mut().map_or(Ok(()), |inlet| inlet.add(rows))?,
                Message::Tcp(rows) => tcp.as_mut().map_or(Ok(()), |inlet| inlet.add(rows))?,
                Message::Radio(rows) => radio.as_mut().map_or(Ok(()), |inlet| inlet.add(rows))?,
                Message::States(rows) => states.as_mut().map_or(Ok(()), |inlet| inlet.add(rows))?,
                Message::App(rows) => app.as_mut().map_or(Ok(()), |inlet| inlet.add(rows))?,
                Message::Changes(rows) => changes.as_mut().map_or(Ok(()), |inlet| inlet.add(rows))?,
                Message::End => {
                    let summary = self.finish()?;
                    // Who does not wait for it has gone.
                    let _ = answer.send(summary);
                }
                Message::Begin(repetition) => self.begin(repetition),
            }
        }
        Ok(())
    }

    fn begin(&mut self, repetition: u32) {
        self.packets.iter_mut().for_each(|inlet| inlet.begin(repetition));
        self.tcp.iter_mut().for_each(|inlet| inlet.begin(repetition));
        self.radio.iter_mut().for_each(|inlet| inlet.begin(repetition));
        self.states.iter_mut().for_each(|inlet| inlet.begin(repetition));
        self.app.iter_mut().for_each(|inlet| inlet.begin(repetition));
        self.changes.iter_mut().for_each(|inlet| inlet.begin(repetition));
    }

    fn finish(&mut self) -> io::Result<Summary> {
        let mut summary = Summary::default();
        let Self { packets, tcp, radio, states, app, changes } = self;
        // A table that cannot be written does not keep the others from it.
        let written = [
            packets.as_mut().map_or(Ok(()), |inlet| inlet.finish(&mut summary.packets, &mut summary.bytes)),
            tcp.as_mut().map_or(Ok(()), |inlet| inlet.finish(&mut summary.tcp, &mut summary.bytes)),
            radio.as_mut().map_or(Ok(()), |inlet| inlet.finish(&mut summary.radio, &mut summary.bytes)),
            states.as_mut().map_or(Ok(()), |inlet| inlet.finish(&mut summary.states, &mut summary.bytes)),
            app.as_mut().map_or(Ok(()), |inlet| inlet.finish(&mut summary.app, &mut summary.bytes)),
            changes.as_mut().map_or(Ok(()), |inlet| inlet.finish(&mut summary.changes, &mut summary.bytes)),
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
        let named = || assert!(usize::from(at.0) < self.components, "{at:?} has no name");
        match event {
            Event::Packet(event) => {
                named();
                self.packets.iter_mut().for_each(|lane| lane.add(time, at, event));
            }
            Event::Tcp(event) => self.tcp.iter_mut().for_each(|lane| lane.add(time, at, event)),
            Event::Radio(event) => {
                named();
                self.radio.iter_mut().for_each(|lane| lane.add(time, at, event));
            }
            Event::App(event) => self.app.iter_mut().for_each(|lane| lane.add(time, at, event)),
            Event::Change(event) => {
                named();
                self.changes.iter_mut().for_each(|lane| lane.add(time, at, event));
            }
            Event::State(event) => {
                named();
                self.states.iter_mut().for_each(|lane| lane.add(time, at, event));
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.writer.has_ended()
    }
}
