//! The stream of bytes of a direction, and its cuts into PDUs.

use std::collections::VecDeque;

use airpath_core::range_set::{Range, RangeSet};
use airpath_core::{Instant, Packet};

use super::super::pdcp::Pdcp;
use super::Framing;

/// The bytes of length indicators of a PDU with parts of this number of packets: 12 bits for each
/// but the last (TS 36.322 §6.2.1.3).
pub const fn length_indicators(packets: u32) -> u32 {
    match packets {
        0 => 0,
        packets => (3 * (packets - 1)).div_ceil(2),
    }
}

/// The stream of a direction: which packet lies where.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Packets that were cut at least in part and did not leave yet, with their ends. `None`: lost.
    packets: VecDeque<(u64, Option<Packet>)>,
    /// The beginning of the first of them.
    from: u64,
    /// The end of the last of them.
    filled: u64,
    /// Where it begins, if it is cut alone.
    unit: u64,
    /// How far the stream was put into PDUs.
    mapped: u64,
    /// The ends of all packets that may be sent again in part, those that have left included.
    ends: VecDeque<u64>,
}

/// A PDU, cut from the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The range.
    pub range: Range<u64>,
    /// Its unit: what has a sequence number.
    pub unit: Range<u64>,
    /// Bytes of its header, length indicators included; of these only, if it is sent again.
    pub header: u32,
}

impl Stream {
    /// How far it was put into PDUs.
    pub const fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Bytes of a packet that was cut in part.
    pub const fn uncut(&self) -> u64 {
        self.filled - self.mapped
    }

    /// The packet that was cut in part.
    pub fn uncut_packet(&self) -> Option<Packet> {
        self.packets.back().and_then(|(_, packet)| *packet).filter(|_| self.uncut() > 0)
    }

    /// Cuts a PDU of at most `room` bytes, its header included.
    pub(super) fn cut(
        &mut self,
        now: Instant,
        room: u32,
        framing: &Framing,
        pdcp: &mut Pdcp,
        dropped: impl FnMut(Packet),
    ) -> Option<Cut> {
        if framing.concatenates {
            self.cut_several(now, room, framing, pdcp, dropped)
        } else {
            self.cut_one(now, room, framing, pdcp, dropped)
        }
    }

    /// Takes a packet from the queue, if all before are cut. Returns whether there is one to cut.
    fn refill(&mut self, now: Instant, pdcp: &mut Pdcp, dropped: impl FnMut(Packet)) -> bool {
        if self.mapped == self.filled {
            let Some(packet) = pdcp.dequeue(now, dropped) else { return false };
            self.filled += u64::from(packet.size) + pdcp.header;
            self.packets.push_back((self.filled, Some(packet)));
            self.ends.push_back(self.filled);
        }
        true
    }

    /// Cuts a packet, or a segment of one.
    fn cut_one(
        &mut self,
        now: Instant,
        room: u32,
        framing: &Framing,
        pdcp: &mut Pdcp,
        dropped: impl FnMut(Packet),
    ) -> Option<Cut> {
        let is_new = self.mapped == self.filled;
        if is_new {
            // Before a packet leaves the queue: something of it must fit.
            room.checked_sub(framing.first_segment.max(framing.whole)).filter(|left| *left > 0)?;
            self.unit = self.filled;
        }
        if !self.refill(now, pdcp, dropped) {
            return None;
        }
        let waiting = self.filled - self.mapped;
        let is_whole = is_new && waiting + u64::from(framing.whole) <= room.into();
        let header = if is_whole { framing.whole } else { framing.segment(is_new) };
        let taken = waiting.min(room.checked_sub(header).filter(|left| *left > 0)?.into());
        let range = Range::new(self.mapped, self.mapped + taken);
        self.mapped = range.end;
        Some(Cut { range, unit: Range::new(self.unit, self.filled), header })
    }

    /// Cuts packets and parts of packets, as they fit.
    fn cut_several(
        &mut self,
        now: Instant,
        room: u32,
        framing: &Framing,
        pdcp: &mut Pdcp,
        mut dropped: impl FnMut(Packet),
    ) -> Option<Cut> {
        let start = self.mapped;
        let room = room.checked_sub(framing.whole)?;
        let (mut packets, mut data) = (0, 0);
        while let Some(left) = room.checked_sub(data + length_indicators(packets + 1)).filter(|left| *left > 0) {
            if !self.refill(now, pdcp, &mut dropped) {
                break;
            }
            let taken = u64::from(left).min(self.filled - self.mapped);
            self.mapped += taken;
            data += taken as u32;
            packets += 1;
        }
        let range = Range::new(start, self.mapped);
        (packets > 0).then_some(Cut { range, unit: range, header: framing.whole + length_indicators(packets) })
    }

    /// The packet ends within `range`, its end left out.
    fn ends_within(&self, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let first = self.ends.partition_point(|end| *end <= range.start);
        self.ends.range(first..).copied().take_while(move |end| *end < range.end)
    }

    /// Bytes of the length indicators of a PDU, or of a segment of one, that carries `range`.
    pub fn indicators(&self, range: Range<u64>) -> u32 {
        length_indicators(self.ends_within(range).count() as u32 + 1)
    }

    /// The longest part from the beginning of `range` on that fits into `room` bytes with its
    /// length indicators.
    pub fn fit(&self, range: Range<u64>, room: u32) -> Option<Cut> {
        let (mut end, mut indicators) = (range.start, 0);
        for (packets, packet_end) in (1..).zip(self.ends_within(range).chain([range.end])) {
            let data = (end - range.start) as u32;
            let Some(left) = room.checked_sub(data + length_indicators(packets)).filter(|left| *left > 0) else {
                break;
            };
            indicators = length_indicators(packets);
            end = packet_end.min(end + u64::from(left));
            if end < packet_end {
                break;
            }
        }
        let cut = Range::new(range.start, end);
        (end > range.start).then_some(Cut { range: cut, unit: range, header: indicators })
    }

    /// Nothing before `edge` is sent again.
    pub(super) fn forget_ends(&mut self, edge: u64) {
        while self.ends.front().is_some_and(|end| *end <= edge) {
            self.ends.pop_front();
        }
    }

    /// Takes out the packets that end at or before `edge`, each with whether `received` has it.
    /// Those that were lost before are left out.
    pub fn release(&mut self, edge: u64, received: &RangeSet<u64>, mut each: impl FnMut(Packet, bool)) {
        while let Some((end, packet)) = self.packets.front().copied().filter(|(end, _)| *end <= edge) {
            if let Some(packet) = packet {
                each(packet, received.containing(Range::new(self.from, end)).is_some());
            }
            self.from = end;
            self.packets.pop_front();
        }
    }

    /// The beginning of the first packet that has not left.
    pub const fn first(&self) -> u64 {
        self.from
    }

    /// Gives up the packets with a part in `range`.
    pub fn lose(&mut self, range: Range<u64>, mut lost: impl FnMut(Packet)) {
        let mut start = self.from;
        for (end, packet) in &mut self.packets {
            if start < range.end
                && range.start < *end
                && let Some(packet) = packet.take()
            {
                lost(packet);
            }
            start = *end;
        }
    }

    /// Empties the stream. `received` are those packets that the far end has, `missing` the others,
    /// each in their order.
    pub(super) fn clear(
        &mut self,
        has: &RangeSet<u64>,
        mut received: impl FnMut(Packet),
        mut missing: impl FnMut(Packet),
    ) {
        let mut start = self.from;
        for (end, packet) in self.packets.drain(..) {
            match packet {
                Some(packet) if has.containing(Range::new(start, end)).is_some() => received(packet),
                Some(packet) => missing(packet),
                None => {}
            }
            start = end;
        }
        *self = Self::default();
    }
}
