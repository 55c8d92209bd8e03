//! The table `packets`.

use airpath_core::{DropCause, PacketStep};

use super::{Components, Origin, columns, components, counts, directions, short, steady};
use crate::batch::{PacketBatch, Step, signed};
use crate::column::{Booleans, Coded, Column, Dictionary, Encoding, Levels, Numbers, Presence};
use crate::fields::{self, Field};
use crate::table::Rows;

/// The steps in the order of [`Step`].
const STEPS: [PacketStep; 7] = [
    PacketStep::Sent(None),
    PacketStep::Queued { backlog_packets: 0, backlog_bytes: 0 },
    PacketStep::Delivered,
    PacketStep::Dropped(DropCause::QueueFull),
    PacketStep::Received,
    PacketStep::Created(None),
    PacketStep::Absorbed,
];

/// Rows of `packets`.
#[derive(Debug)]
pub struct PacketRows {
    origin: Origin,
    component: Components,
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
    // Which rows of the batch have a cause, a backlog, a header, and a header with the ACK flag.
    with_cause: Levels,
    with_backlog: Levels,
    with_header: Levels,
    with_ack: Levels,
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
        }
    }

    fn add_causes(&mut self, batch: &PacketBatch) {
        self.with_cause.set(batch.flags().iter().map(|flags| flags.step == Step::Dropped));
        self.cause.add_some(&self.with_cause, batch.causes.iter().map(|cause| *cause as u16));
    }

    fn add_backlogs(&mut self, batch: &PacketBatch) {
        self.with_backlog.set(batch.flags().iter().map(|flags| flags.step == Step::Queued));
        let backlogs = || batch.backlogs.iter();
        self.backlog_packets.add_some(&self.with_backlog, backlogs().map(|backlog| short(backlog.packets)));
        self.backlog_bytes.add_some(&self.with_backlog, backlogs().map(|backlog| signed(backlog.bytes)));
    }

    fn add_headers(&mut self, batch: &PacketBatch) {
        self.with_header.set(batch.flags().iter().map(|flags| flags.has_header));
        let headers = || batch.headers.iter();
        let mut acks = headers().map(|header| header.ack.get().is_some());
        self.with_ack.set(batch.flags().iter().map(|flags| flags.has_header && acks.next().unwrap_or(false)));
        let present = &self.with_header;
        self.offset.add_some(present, headers().map(|header| header.offset));
        self.length.add_some(present, headers().map(|header| short(header.length)));
        self.ack.add_some(&self.with_ack, headers().filter_map(|header| header.ack.get()));
        self.window.add_some(present, headers().map(|header| i64::from(header.window)));
        self.flags.add_some(present, headers().map(|header| header.flags.into()));
        self.retransmission.add_some(present, headers().map(|header| header.retransmission));
    }
}

impl Rows for PacketRows {
    type Batch = PacketBatch;
    const FIELDS: &'static [Field] = fields::PACKETS;

    fn begin(&mut self, repetition: u32) {
        self.origin.begin(repetition);
    }

    fn add(&mut self, batch: &PacketBatch) {
        self.origin.add_times(batch.times());
        self.component.add(batch.places().iter().copied());
        self.step.add(batch.flags().iter().map(|flags| flags.step as u16));
        self.direction.add(batch.flags().iter().map(|flags| flags.direction.into()));
        self.packet.add_slice(batch.packets());
        self.flow.add(batch.flows().iter().map(|flow| short(*flow)));
        self.user.add(batch.users().iter().map(|user| (*user).into()));
        self.size.add(batch.sizes().iter().map(|size| short(*size)));
        self.ecn.add(batch.flags().iter().map(|flags| flags.ecn.into()));
        self.add_causes(batch);
        self.add_backlogs(batch);
        self.add_headers(batch);
    }

    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)> {
        columns![self: component, step, direction, packet, flow, user, size, ecn, cause, backlog_packets, backlog_bytes, offset, length, ack, window, flags, retransmission]
    }
}
