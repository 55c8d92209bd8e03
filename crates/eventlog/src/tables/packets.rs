//! The table `packets`.

use airpath_core::{DropCause, PacketEvent, PacketStep, SegmentInfo};

use super::{Origin, components, counts, direction, directions, short, signed, steady};
use crate::column::{Booleans, Coded, Column, Dictionary, Encoding, Levels, Numbers, Presence};
use crate::feed::Row;
use crate::table::Rows;

const STEPS: [PacketStep; 5] = [
    PacketStep::Sent(None),
    PacketStep::Queued { backlog_packets: 0, backlog_bytes: 0 },
    PacketStep::Delivered,
    PacketStep::Dropped(DropCause::QueueFull),
    PacketStep::Received,
];

/// Rows of `packets`.
#[derive(Debug)]
pub struct PacketRows {
    origin: Origin,
    component: Coded,
    step: Coded,
    direction: Coded,
    packet: Numbers,
    flow: Numbers,
    user: Numbers,
    size: Numbers,
    ecn: Coded,
    cause: Coded,
    backlog_packets: Numbers,
    backlog_bytes: Numbers,
    offset: Numbers,
    length: Numbers,
    ack: Numbers,
    window: Numbers,
    flags: Numbers,
    retransmission: Booleans,
    // Which rows of the batch have a cause, a backlog, a header, and a header with the ACK flag; and the headers.
    with_cause: Levels,
    with_backlog: Levels,
    with_header: Levels,
    with_ack: Levels,
    headers: Vec<SegmentInfo>,
}

impl PacketRows {
    /// No rows.
    pub fn new(repetition: u32, names: &[String]) -> Self {
        Self {
            origin: Origin::new(repetition),
            component: components(names),
            step: Coded::required(Dictionary::texts(STEPS.map(PacketStep::name))),
            direction: directions(),
            packet: steady(),
            flow: Numbers::short(Presence::Required, Encoding::Dictionary),
            user: counts(),
            size: Numbers::short(Presence::Required, Encoding::Dictionary),
            ecn: Coded::required(Dictionary::numbers([0, 1, 2, 3], 8)),
            cause: Coded::optional(Dictionary::texts(DropCause::ALL.map(DropCause::name))),
            backlog_packets: Numbers::short(Presence::Optional, Encoding::Differences),
            backlog_bytes: Numbers::long(Presence::Optional, Encoding::Differences),
            offset: Numbers::long(Presence::Optional, Encoding::Differences),
            length: Numbers::short(Presence::Optional, Encoding::Dictionary),
            ack: Numbers::long(Presence::Optional, Encoding::Differences),
            window: Numbers::long(Presence::Optional, Encoding::Differences),
            flags: Numbers::short(Presence::Optional, Encoding::Dictionary).with_bits(16),
            retransmission: Booleans::optional(),
            with_cause: Levels::default(),
            with_backlog: Levels::default(),
            with_header: Levels::default(),
            with_ack: Levels::default(),
            headers: Vec::new(),
        }
    }

    fn add_causes(&mut self, rows: &[Row<PacketEvent>]) {
        self.with_cause.set(rows.iter().map(|row| cause(row).is_some()));
        self.cause.add_some(&self.with_cause, rows.iter().filter_map(cause));
    }

    fn add_backlogs(&mut self, rows: &[Row<PacketEvent>]) {
        self.with_backlog.set(rows.iter().map(|row| backlog(row).is_some()));
        let backlogs = || rows.iter().filter_map(backlog);
        self.backlog_packets.add_some(&self.with_backlog, backlogs().map(|(packets, _)| packets));
        self.backlog_bytes.add_some(&self.with_backlog, backlogs().map(|(_, bytes)| bytes));
    }

    fn add_headers(&mut self, rows: &[Row<PacketEvent>]) {
        self.with_header.set(rows.iter().map(|row| header(row).is_some()));
        self.with_ack.set(rows.iter().map(|row| header(row).is_some_and(|header| header.ack.is_some())));
        self.headers.clear();
        self.headers.extend(rows.iter().filter_map(header));
        let (headers, present) = (|| self.headers.iter(), &self.with_header);
        self.offset.add_some(present, headers().map(|header| header.offset));
        self.length.add_some(present, headers().map(|header| short(header.length)));
        self.ack.add_some(&self.with_ack, headers().filter_map(|header| header.ack));
        self.window.add_some(present, headers().map(|header| signed(header.window)));
        self.flags.add_some(present, headers().map(|header| header.flags.into()));
        self.retransmission.add_some(present, headers().map(|header| header.retransmission));
    }
}

/// Index of a step in [`STEPS`].
const fn code(step: &PacketStep) -> u16 {
    match step {
        PacketStep::Sent(_) => 0,
        PacketStep::Queued { .. } => 1,
        PacketStep::Delivered => 2,
        PacketStep::Dropped(_) => 3,
        PacketStep::Received => 4,
    }
}

/// What of a row is there on `dropped` rows only.
const fn cause(row: &Row<PacketEvent>) -> Option<u16> {
    match row.event.step {
        PacketStep::Dropped(cause) => Some(cause as u16),
        _ => None,
    }
}

/// What of a row is there on `queued` rows only: packets and bytes.
fn backlog(row: &Row<PacketEvent>) -> Option<(i64, i64)> {
    match row.event.step {
        PacketStep::Queued { backlog_packets, backlog_bytes } => Some((short(backlog_packets), signed(backlog_bytes))),
        _ => None,
    }
}

/// What of a row is there on `sent` rows of TCP packets only.
const fn header(row: &Row<PacketEvent>) -> Option<SegmentInfo> {
    match row.event.step {
        PacketStep::Sent(header) => header,
        _ => None,
    }
}

impl Rows for PacketRows {
    type Event = PacketEvent;

    fn add(&mut self, rows: &[Row<PacketEvent>]) {
        self.origin.add(rows);
        self.component.add(rows.iter().map(|row| row.at.0));
        self.step.add(rows.iter().map(|row| code(&row.event.step)));
        self.direction.add(rows.iter().map(|row| direction(row.event.direction)));
        let packets = || rows.iter().map(|row| &row.event.packet);
        self.packet.add(packets().map(|packet| signed(packet.id)));
        self.flow.add(packets().map(|packet| short(packet.flow.0)));
        self.user.add(packets().map(|packet| packet.user.0.into()));
        self.size.add(packets().map(|packet| short(packet.size)));
        self.ecn.add(packets().map(|packet| packet.ecn.bits().into()));
        self.add_causes(rows);
        self.add_backlogs(rows);
        self.add_headers(rows);
    }

    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)> {
        vec![
            ("time", &mut self.origin.time),
            ("repetition", &mut self.origin.repetition),
            ("component", &mut self.component),
            ("step", &mut self.step),
            ("direction", &mut self.direction),
            ("packet", &mut self.packet),
            ("flow", &mut self.flow),
            ("user", &mut self.user),
            ("size", &mut self.size),
            ("ecn", &mut self.ecn),
            ("cause", &mut self.cause),
            ("backlog_packets", &mut self.backlog_packets),
            ("backlog_bytes", &mut self.backlog_bytes),
            ("offset", &mut self.offset),
            ("length", &mut self.length),
            ("ack", &mut self.ack),
            ("window", &mut self.window),
            ("flags", &mut self.flags),
            ("retransmission", &mut self.retransmission),
        ]
    }
}
