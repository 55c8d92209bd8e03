//! A batch of packet events. There are more of them than of all others: what only some steps have lies beside the rows, which
//! are a quarter of an event in size, so that less has to go from one core's cache to another's.

use airpath_core::{
    ComponentId, Direction, DropCause, Ecn, FlowId, Instant, PacketEvent, PacketStep, SegmentInfo, UserId,
};

use super::Batch;

/// What all packet events have.
#[derive(Clone, Copy, Debug)]
pub struct PacketRow {
    /// When.
    pub time: Instant,
    /// The number of the packet.
    pub packet: u64,
    /// Its size in bytes.
    pub size: u32,
    /// Its flow.
    pub flow: FlowId,
    /// Whose it is.
    pub user: UserId,
    /// Where.
    pub at: ComponentId,
    /// The step.
    pub step: Step,
    /// Which way it went.
    pub direction: Direction,
    /// Its ECN field.
    pub ecn: Ecn,
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
}

/// What waits where a packet was queued.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
}

/// Rows, and what some of them have: each list is in the order of the rows that have an entry there.
#[derive(Debug, Default)]
pub struct PacketBatch {
    /// The rows.
    pub rows: Vec<PacketRow>,
    /// Of those sent, the TCP headers.
    pub headers: Vec<SegmentInfo>,
    /// Of those queued, the backlogs.
    pub backlogs: Vec<Backlog>,
    /// Of those dropped, the causes.
    pub causes: Vec<DropCause>,
}

impl Batch for PacketBatch {
    type Event = PacketEvent;
    const FULL: usize = 1 << 12;

    #[inline]
    fn add(&mut self, time: Instant, at: ComponentId, event: &PacketEvent) {
        let PacketEvent { step, direction, packet } = event;
        let mut has_header = false;
        let step = match *step {
            PacketStep::Sent(header) => {
                has_header = header.is_some();
                self.headers.extend(header);
                Step::Sent
            }
            PacketStep::Queued { backlog_packets, backlog_bytes } => {
                self.backlogs.push(Backlog { packets: backlog_packets, bytes: backlog_bytes });
                Step::Queued
            }
            PacketStep::Delivered => Step::Delivered,
            PacketStep::Dropped(cause) => {
                self.causes.push(cause);
                Step::Dropped
            }
            PacketStep::Received => Step::Received,
        };
        self.rows.push(PacketRow {
            time,
            packet: packet.id,
            size: packet.size,
            flow: packet.flow,
            user: packet.user,
            at,
            step,
            direction: *direction,
            ecn: packet.ecn,
            has_header,
        });
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.headers.clear();
        self.backlogs.clear();
        self.causes.clear();
    }
}
