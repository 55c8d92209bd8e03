//! A batch of packet events, which outnumber all others. It is stored by column, as the log needs
//! it, with optional data in lists beside, so that only a quarter of an event's size moves between
//! the caches of two cores.

use airpath_core::{ComponentId, DropCause, Instant, PacketEvent, PacketStep, SegmentInfo};

use super::{Batch, signed};

/// [`Batch::FULL`].
const FULL: usize = 1 << 12;

/// Rows, and lists of optional data. A list is in the order of the rows that have an entry.
#[derive(Debug, Default)]
pub struct PacketBatch {
    rows: usize,
    columns: Box<Columns>,
    /// TCP headers of sent packets.
    pub headers: Vec<SegmentInfo>,
    /// Backlogs of queued packets.
    pub backlogs: Vec<Backlog>,
    /// Causes of dropped packets.
    pub causes: Vec<DropCause>,
}

/// Data of all packet events.
#[derive(Debug)]
struct Columns {
    times: [i64; FULL],
    packets: [i64; FULL],
    sizes: [u32; FULL],
    flows: [u32; FULL],
    users: [u32; FULL],
    places: [u32; FULL],
    flags: [Flags; FULL],
}

/// Small fields of a packet event.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    /// The step.
    pub step: Step,
    /// The [`Direction`](airpath_core::Direction).
    pub direction: u8,
    /// The ECN field.
    pub ecn: u8,
    /// Whether it has a header in [`PacketBatch::headers`].
    pub has_header: bool,
}

/// A [`PacketStep`] without its data.
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

/// The backlog that a packet found.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// Number of packets.
    pub packets: u32,
    /// Number of bytes.
    pub bytes: u64,
}

impl PacketBatch {
    /// Times, in nanoseconds.
    pub fn times(&self) -> &[i64] {
        &self.columns.times[..self.rows]
    }

    /// Packet numbers.
    pub fn packets(&self) -> &[i64] {
        &self.columns.packets[..self.rows]
    }

    /// Sizes in bytes.
    pub fn sizes(&self) -> &[u32] {
        &self.columns.sizes[..self.rows]
    }

    /// Flow numbers.
    pub fn flows(&self) -> &[u32] {
        &self.columns.flows[..self.rows]
    }

    /// Numbers of the mobiles.
    pub fn users(&self) -> &[u32] {
        &self.columns.users[..self.rows]
    }

    /// Component numbers.
    pub fn places(&self) -> &[u32] {
        &self.columns.places[..self.rows]
    }

    /// The small fields.
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
        assert!(row < FULL, "a full batch is sent");
        columns.times[row] = signed(time.as_nanos());
        columns.packets[row] = signed(packet.id);
        columns.sizes[row] = packet.size;
        columns.flows[row] = packet.flow.0;
        columns.users[row] = packet.user.number();
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
