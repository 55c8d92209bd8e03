//! A batch of packet events. There are more of them than of all others: they travel column by
//! column, as the log wants them, and what only some steps have lies beside, so that a quarter of
//! an event in size goes from one core's cache to another's.

use airpath_core::{ComponentId, DropCause, Instant, PacketEvent, PacketStep, SegmentInfo};

use super::{Batch, signed};

/// [`Batch::FULL`].
const FULL: usize = 1 << 12;

/// Rows, and what some of them have. Lists beside the rows are in the order of those that have an
/// entry there.
#[derive(Debug, Default)]
pub struct PacketBatch {
    rows: usize,
    columns: Box<Columns>,
    /// Of those sent, the TCP headers.
    pub headers: Vec<SegmentInfo>,
    /// Of those queued, the backlogs.
    pub backlogs: Vec<Backlog>,
    /// Of those dropped, the causes.
    pub causes: Vec<DropCause>,
}

/// What all packet events have.
#[derive(Debug)]
struct Columns {
    times: [i64; FULL],
    packets: [i64; FULL],
    sizes: [u32; FULL],
    flows: [u32; FULL],
    users: [u16; FULL],
    places: [u16; FULL],
    flags: [Flags; FULL],
}

/// What takes few bits of a packet event.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    /// The step.
    pub step: Step,
    /// Which way it went: a [`Direction`](airpath_core::Direction).
    pub direction: u8,
    /// The bits of its ECN field.
    pub ecn: u8,
    /// Whether it has a header in [`PacketBatch::headers`].
    pub has_header: bool,
}

/// A [`PacketStep`] without what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// [`PacketStep::Sent`].
    Sent,
    /// [`PacketStep::Queued`].
    Queued,
    /// [`PacketStep::Delivered`].
    Delivered,
    /// [`PacketStep::Dropped`].
    Dropped,
    /// [`PacketStep::Received`].
    Received,
    /// [`PacketStep::Created`].
    Created,
    /// [`PacketStep::Absorbed`].
    Absorbed,
}

/// What waits where a packet was queued.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
}

impl PacketBatch {
    /// When, in nanoseconds.
    pub fn times(&self) -> &[i64] {
        &self.columns.times[..self.rows]
    }

    /// The numbers of the packets.
    pub fn packets(&self) -> &[i64] {
        &self.columns.packets[..self.rows]
    }

    /// Their sizes in bytes.
    pub fn sizes(&self) -> &[u32] {
        &self.columns.sizes[..self.rows]
    }

    /// The numbers of their flows.
    pub fn flows(&self) -> &[u32] {
        &self.columns.flows[..self.rows]
    }

    /// The numbers of the mobiles whose they are.
    pub fn users(&self) -> &[u16] {
        &self.columns.users[..self.rows]
    }

    /// The numbers of the components.
    pub fn places(&self) -> &[u16] {
        &self.columns.places[..self.rows]
    }

    /// The rest.
    pub fn flags(&self) -> &[Flags] {
        &self.columns.flags[..self.rows]
    }
}

impl Default for Columns {
    fn default() -> Self {
        let flags = Flags { step: Step::Sent, direction: 0, ecn: 0, has_header: false };
        Self {
            times: [0; FULL],
            packets: [0; FULL],
            sizes: [0; FULL],
            flows: [0; FULL],
            users: [0; FULL],
            places: [0; FULL],
            flags: [flags; FULL],
        }
    }
}

impl Batch for PacketBatch {
    type Event = PacketEvent;
    const FULL: usize = FULL;

    #[inline]
    fn add(&mut self, time: Instant, at: ComponentId, event: &PacketEvent) {
        let PacketEvent { step, direction, packet } = event;
        let mut has_header = false;
        let step = match step {
            PacketStep::Sent(header) => {
                has_header = header.is_some();
                self.headers.extend(header);
                Step::Sent
            }
            &PacketStep::Queued { backlog_packets, backlog_bytes } => {
                self.backlogs.push(Backlog { packets: backlog_packets, bytes: backlog_bytes });
                Step::Queued
            }
            PacketStep::Delivered => Step::Delivered,
            PacketStep::Dropped(cause) => {
                self.causes.push(*cause);
                Step::Dropped
            }
            PacketStep::Received => Step::Received,
            PacketStep::Created(header) => {
                has_header = header.is_some();
                self.headers.extend(header);
                Step::Created
            }
            PacketStep::Absorbed => Step::Absorbed,
        };
        let (row, columns) = (self.rows, &mut *self.columns);
        assert!(row < FULL, "a batch is handed over when it is full");
        columns.times[row] = signed(time.as_nanos());
        columns.packets[row] = signed(packet.id);
        columns.sizes[row] = packet.size;
        columns.flows[row] = packet.flow.0;
        columns.users[row] = packet.user.0;
        columns.places[row] = at.0;
        columns.flags[row] = Flags { step, direction: *direction as u8, ecn: packet.ecn.bits(), has_header };
        self.rows = row + 1;
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn clear(&mut self) {
        self.rows = 0;
        self.headers.clear();
        self.backlogs.clear();
        self.causes.clear();
    }
}
