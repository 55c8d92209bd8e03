//! The event log as columnar files, written as the run goes.
//!
//! [`EventLog`] is a [`Sink`]. It collects the events of one repetition in columns, one table for each class of
//! events, and writes a Parquet file whenever a table has [`ROWS_PER_PART`] rows:
//! `<folder>/<table>/<repetition>-<part>.parquet`, both numbers with at least four digits. A file is complete when it
//! gets that name, so a run that is killed leaves all parts but the last, and any reader can read them while the run
//! goes on.
//!
//! # Tables, schema 1
//!
//! `time` is in nanoseconds from the origin of the run, as are all lengths of time; sizes, windows and stream offsets
//! are in bytes. Rows of one component are in the order of their times, those of different components need not be.
//! Columns marked `?` may be null.
//!
//! | table | columns |
//! | --- | --- |
//! | all | `time` int64, `repetition` int32 |
//! | `packets` | `component` string, `step` string, `direction` string, `packet` int64, `flow` int32, `user` int32, `size` int32, `ecn` int8, `cause` string?, `backlog_packets` int32?, `backlog_bytes` int64?, `offset` int64?, `length` int32?, `ack` int64?, `window` int64?, `flags` int16?, `retransmission` bool? |
//! | `tcp` | `flow` int32, `direction` string, `trigger` string, `congestion_window` int64, `slow_start_threshold` int64?, `in_flight` int64, `outstanding` int64, `peer_window` int64, `acknowledged` int64, `round_trip` int64?, `smoothed_round_trip` int64?, `retransmission_timeout` int64 |
//! | `radio` | `component` string, `direction` string, `user` int32, `duration` int64, `pdus` int32, `repeated` int32, `errored` int32, `bytes` int64, `level` int32 |
//! | `app` | `flow` int32, `step` string, `delivered` int64, `sequence` int64?, `delay` int64? |
//!
//! What the columns mean is said at [`airpath_core::event`], whose names they bear. `packet` is unique within a
//! repetition and joins the rows of one packet. `cause` is there on `dropped` rows, the backlog on `queued` rows, and the
//! columns from `offset` on, which are those of the transport header, on `sent` rows of TCP packets; `ack` only with the
//! ACK flag.
//!
//! Each file says in its key-value metadata which schema it has (`airpath.schema`) and what wrote it
//! (`airpath.version`). Readers keep reading all schemas that there ever were: a column may be added under the same
//! number, any other change gets a new one.
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

mod column;
mod hybrid;
mod table;
mod tables;

use std::io;
use std::path::Path;

use airpath_core::{Classes, ComponentId, Event, Instant, Sink};

use crate::table::{Place, Table};
use crate::tables::{AppRows, PacketRows, RadioRows, TcpRows};

/// The number of the schema that is described above.
pub const SCHEMA: u32 = 1;

/// Rows of a complete part. They wait in memory until then: at most 7 MB each for `packets` and `tcp`, 3 MB each for
/// `radio` and `app`, and only as much as there are rows.
pub const ROWS_PER_PART: usize = 1 << 16;

/// Writes the events of one repetition.
///
/// The first error of the disk ends the log: what was written is kept, later events are not recorded, and
/// [`EventLog::finish`] returns the error. A long run looks at [`EventLog::error`] from time to time.
#[derive(Debug)]
pub struct EventLog {
    packets: Option<Table<PacketRows>>,
    tcp: Option<Table<TcpRows>>,
    radio: Option<Table<RadioRows>>,
    app: Option<Table<AppRows>>,
    wants: Classes,
    error: Option<io::Error>,
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
    /// Rows of `app`.
    pub app: u64,
    /// Size of all files, in bytes.
    pub bytes: u64,
}

impl EventLog {
    /// Begins the log of a repetition in `folder`, with tables for `classes`. The name of each component stands at the
    /// index of its [`ComponentId`].
    ///
    /// # Errors
    /// Where a folder cannot be made.
    pub fn create(folder: &Path, repetition: u32, components: Vec<String>, classes: Classes) -> io::Result<Self> {
        let place = |name| Place::create(folder.join(name), repetition);
        let wants = |class| classes.intersects(class);
        Ok(Self {
            packets: match wants(Classes::PACKET) {
                true => Some(Table::new(place("packets")?, PacketRows::new(repetition, &components))),
                false => None,
            },
            tcp: match wants(Classes::TCP) {
                true => Some(Table::new(place("tcp")?, TcpRows::new(repetition))),
                false => None,
            },
            radio: match wants(Classes::RADIO) {
                true => Some(Table::new(place("radio")?, RadioRows::new(repetition, &components))),
                false => None,
            },
            app: match wants(Classes::APP) {
                true => Some(Table::new(place("app")?, AppRows::new(repetition))),
                false => None,
            },
            wants: classes,
            error: None,
        })
    }

    /// The error that ended the log, if there was one.
    pub const fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Writes what is left, and says what there is.
    ///
    /// # Errors
    /// The first error of the disk, whenever it was. The parts that were complete by then are kept.
    pub fn finish(mut self) -> io::Result<Summary> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut summary = Summary::default();
        let Self { packets, tcp, radio, app, .. } = &mut self;
        // A table that cannot be written does not keep the others from it.
        let written = [
            packets.as_mut().map_or(Ok(()), |table| table.finish(&mut summary.packets, &mut summary.bytes)),
            tcp.as_mut().map_or(Ok(()), |table| table.finish(&mut summary.tcp, &mut summary.bytes)),
            radio.as_mut().map_or(Ok(()), |table| table.finish(&mut summary.radio, &mut summary.bytes)),
            app.as_mut().map_or(Ok(()), |table| table.finish(&mut summary.app, &mut summary.bytes)),
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
        if self.error.is_some() {
            return;
        }
        let written = match event {
            Event::Packet(event) => self.packets.as_mut().map(|table| table.add(|rows| rows.push(time, at, event))),
            Event::Tcp(event) => self.tcp.as_mut().map(|table| table.add(|rows| rows.push(time, event))),
            Event::Radio(event) => self.radio.as_mut().map(|table| table.add(|rows| rows.push(time, at, event))),
            Event::App(event) => self.app.as_mut().map(|table| table.add(|rows| rows.push(time, event))),
        };
        if let Some(Err(error)) = written {
            self.error = Some(error);
        }
    }
}
