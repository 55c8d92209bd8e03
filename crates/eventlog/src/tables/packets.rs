//! The table `packets`.

use airpath_core::{ComponentId, DropCause, Instant, PacketEvent, PacketStep, SegmentInfo};

use super::{Origin, components, direction, directions, short, signed};
use crate::column::{Coded, Column, Counts, Dictionary, Encoding, Numbers, OptionalCoded, OptionalNumbers};
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
    packet: Numbers<i64>,
    flow: Numbers<i32>,
    user: Counts,
    size: Numbers<i32>,
    ecn: Coded,
    cause: OptionalCoded,
    backlog_packets: OptionalNumbers<i32>,
    backlog_bytes: OptionalNumbers<i64>,
    offset: OptionalNumbers<i64>,
    length: OptionalNumbers<i32>,
    ack: OptionalNumbers<i64>,
    window: OptionalNumbers<i64>,
    flags: OptionalNumbers<i32>,
    retransmission: OptionalNumbers<bool>,
}

impl PacketRows {
    /// No rows.
    pub fn new(repetition: u32, names: &[String]) -> Self {
        Self {
            origin: Origin::new(repetition),
            component: components(names),
            step: Coded::new(Dictionary::texts(STEPS.map(PacketStep::name))),
            direction: directions(),
            packet: Numbers::new(Encoding::Differences),
            flow: Numbers::new(Encoding::Dictionary),
            user: Counts::new(),
            size: Numbers::new(Encoding::Dictionary),
            ecn: Coded::new(Dictionary::numbers([0, 1, 2, 3], 8)),
            cause: OptionalCoded::new(Dictionary::texts(DropCause::ALL.map(DropCause::name))),
            backlog_packets: OptionalNumbers::new(Encoding::Differences),
            backlog_bytes: OptionalNumbers::new(Encoding::Differences),
            offset: OptionalNumbers::new(Encoding::Differences),
            length: OptionalNumbers::new(Encoding::Dictionary),
            ack: OptionalNumbers::new(Encoding::Differences),
            window: OptionalNumbers::new(Encoding::Differences),
            flags: OptionalNumbers::new(Encoding::Dictionary).with_bits(16),
            retransmission: OptionalNumbers::new(Encoding::Plain),
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, time: Instant, at: ComponentId, event: &PacketEvent) {
        let PacketEvent { step, direction: way, packet } = event;
        self.origin.push(time);
        self.component.push(at.0);
        self.direction.push(direction(*way));
        self.packet.push(signed(packet.id));
        self.flow.push(short(packet.flow.0));
        self.user.push(packet.user.0);
        self.size.push(short(packet.size));
        self.ecn.push(packet.ecn.bits().into());
        let (mut cause, mut backlog, mut header) = (None, None, None);
        self.step.push(match *step {
            PacketStep::Sent(segment) => {
                header = segment;
                0
            }
            PacketStep::Queued { backlog_packets, backlog_bytes } => {
                backlog = Some((short(backlog_packets), signed(backlog_bytes)));
                1
            }
            PacketStep::Delivered => 2,
            PacketStep::Dropped(why) => {
                cause = Some(why as u16);
                3
            }
            PacketStep::Received => 4,
        });
        self.cause.push(cause);
        self.backlog_packets.push(backlog.map(|(packets, _)| packets));
        self.backlog_bytes.push(backlog.map(|(_, bytes)| bytes));
        self.push_header(header.as_ref());
    }

    #[inline]
    fn push_header(&mut self, header: Option<&SegmentInfo>) {
        self.offset.push(header.map(|header| header.offset));
        self.length.push(header.map(|header| short(header.length)));
        self.ack.push(header.and_then(|header| header.ack));
        self.window.push(header.map(|header| signed(header.window)));
        self.flags.push(header.map(|header| header.flags.into()));
        self.retransmission.push(header.map(|header| header.retransmission));
    }
}

impl Rows for PacketRows {
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
