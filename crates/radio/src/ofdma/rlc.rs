//! Radio link control of one direction of a bearer, both ends of it, and the reordering of PDCP
//! above it: LTE (TS 36.322) concatenates packets into PDUs of whatever size a transport block has
//! room for, NR (TS 38.322) has a PDU for each packet, or for a segment of one.
//!
//! The PDCP PDUs of a direction are a stream of bytes here, and a PDU is a range of it. The bytes
//! themselves are nowhere. Sequence numbers are absolute; on the air they are taken modulo twice
//! the window, which is unambiguous.

mod framing;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use airpath_core::range_set::{Range, RangeSet};
use airpath_core::{Context, Direction, DropCause, Instant, Packet, PacketCounters, Span, earliest};
use airpath_link::Departure;

use super::buffer_status::BufferStatus;
use super::pdcp::Pdcp;
use super::reordering::{self, Reordering};
use super::rlc_am::{self, Am, Status};
pub(crate) use framing::Framing;
pub use stream::{Cut, Stream};

/// The parameters of a bearer.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    /// Headers.
    pub framing: Framing,
    /// The mode.
    pub mode: ModeParameters,
}

/// The parameters of a mode.
#[derive(Clone, Debug)]
pub(crate) enum ModeParameters {
    /// What is lost is sent again.
    Acknowledged(rlc_am::Parameters),
    /// What is lost stays lost.
    Unacknowledged(reordering::Parameters),
}

/// Whether something is missing from the unit `from` to below the unit `end`. If units come in
/// segments, `first` is the range of unit `from`: alone, it has a gap only if something after the
/// gap was received (TS 38.322 §5.2.2.2.3, §5.2.3.2.3).
pub fn has_gap(from: u64, end: u64, first: Option<Range<u64>>, received: &RangeSet<u64>) -> bool {
    match first {
        Some(first) if end == from + 1 => {
            next_hole(received, first.start, first.end).is_some_and(|hole| hole.end < first.end)
        }
        _ => end > from,
    }
}

/// The first range within `from`..`end` that was not received.
pub fn next_hole(received: &RangeSet<u64>, from: u64, end: u64) -> Option<Range<u64>> {
    let mut start = from;
    for range in received.iter() {
        if range.end <= start {
            continue;
        }
        if range.start > start {
            return Some(Range::new(start, range.start.min(end))).filter(|hole| !hole.is_empty());
        }
        start = range.end;
        if start >= end {
            return None;
        }
    }
    Some(Range::new(start, end))
}

/// A data PDU as it is sent, or a segment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// The sequence number of its unit, counted from zero.
    pub sequence: u64,
    /// What it carries of the stream.
    pub range: Range<u64>,
    /// Its unit, whole.
    pub unit: Range<u64>,
    /// It was sent before, at least in part.
    pub again: bool,
    /// It polls: a status report is to follow.
    pub polls: bool,
}

/// What a transport block carries.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Data PDUs of its direction.
    pub pdus: Vec<Pdu>,
    /// Those of the voice bearer.
    pub voice: Vec<Pdu>,
    /// A status report about the opposite direction.
    pub status: Option<Status>,
    /// A buffer status report (uplink only).
    pub buffer_status: Option<BufferStatus>,
}

impl Block {
    /// The number of its PDUs.
    pub const fn count(&self) -> usize {
        self.pdus.len() + self.voice.len()
    }
}

/// The RLC of one direction.
#[derive(Clone, Debug)]
pub struct Rlc {
    direction: Direction,
    pdcp: Pdcp,
    stream: Stream,
    framing: Framing,
    mode: Mode,
    /// Of PDCP, for packets that the RLC delivers out of sequence.
    reordering: Option<Reordering>,
    /// From the RLC at the far end to where the bearer ends.
    pub delay: Span,
    /// What came in, went out, was lost and is inside.
    pub counters: PacketCounters,
    /// Packets that have arrived.
    pub departures: VecDeque<Departure>,
    /// Packets that are being dropped; kept for its memory.
    lost: Vec<Packet>,
}

#[derive(Clone, Debug)]
enum Mode {
    Acknowledged(Box<Am>),
    Unacknowledged(Box<Reordering>),
}

/// A packet of the acknowledged mode was sent too often: the radio link has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxRetransmissions;

impl Rlc {
    /// Nothing to send.
    pub fn new(config: &Parameters, pdcp: Pdcp, direction: Direction, delay: Span) -> Self {
        let framing = config.framing;
        let mode = match &config.mode {
            ModeParameters::Acknowledged(config) => Mode::Acknowledged(Box::new(Am::new(config, framing))),
            ModeParameters::Unacknowledged(config) => Mode::Unacknowledged(Box::new(Reordering::new(config))),
        };
        // In the acknowledged mode, a window of the RLC has at most half of the numbers of PDCP,
        // which the parameters are checked for.
        let reordering = pdcp
            .reordering()
            .map(|wait| Reordering::new(&reordering::Parameters { wait, window: u64::MAX, has_segments: false }));
        Self {
            direction,
            pdcp,
            stream: Stream::default(),
            framing,
            mode,
            reordering,
            delay,
            counters: PacketCounters::default(),
            departures: VecDeque::new(),
            lost: Vec::new(),
        }
    }

    /// There is a connection from `now` on, or none.
    pub const fn set_connected(&mut self, at: Option<Instant>) {
        match at {
            Some(now) => self.pdcp.connected(now),
            None => self.pdcp.disconnected(),
        }
    }

    /// Takes a packet to send. Packets that give way to it in a full queue are dropped.
    ///
    /// # Errors
    /// Why the queue drops the packet instead.
    pub fn enqueue(&mut self, now: Instant, packet: Packet, cx: &mut Context<'_>) -> Result<(), DropCause> {
        let Self { pdcp, counters, .. } = self;
        pdcp.enqueue(now, packet, |packet| {
            counters.lose(&packet, DropCause::QueueFull);
            cx.drop_packet(now, packet, DropCause::QueueFull);
        })
    }

    /// Packets and bytes that were not sent completely for the first time.
    pub fn backlog(&self) -> (u32, u64) {
        let (packets, bytes) = self.pdcp.backlog();
        match self.stream.uncut_packet() {
            Some(packet) => (packets + 1, bytes + u64::from(packet.size)),
            None => (packets, bytes),
        }
    }

    /// Whether packets wait in a queue that drops none of them for another.
    #[inline]
    pub fn has_queue(&self) -> bool {
        self.pdcp.has_queue()
    }

    /// Whether all packets have come to the far end.
    pub fn is_empty(&self) -> bool {
        self.counters.queued.packets == self.departures.len() as u64
    }

    /// Bytes that could be sent now, headers included. A buffer status report has those of packets
    /// only (TS 36.321 and TS 38.321 §6.1.3.1), and the base station adds what it expects of
    /// headers; here the report has them.
    #[inline]
    pub fn waiting(&self) -> u64 {
        let (packets, bytes) = self.pdcp.backlog();
        let per_packet = self.pdcp.header + self.framing.per_packet();
        let fresh = self.stream.uncut() + bytes + u64::from(packets) * per_packet;
        let fresh = if fresh > 0 { fresh + self.framing.once() } else { 0 };
        match &self.mode {
            Mode::Acknowledged(am) => am.pending_bytes() + if am.can_send(&self.stream) { fresh } else { 0 },
            Mode::Unacknowledged(_) => fresh,
        }
    }

    /// Whether the transmission window is why nothing new is sent.
    pub fn is_stalled(&self) -> bool {
        match &self.mode {
            Mode::Acknowledged(am) => !am.can_send(&self.stream) && self.backlog().0 > 0,
            Mode::Unacknowledged(_) => false,
        }
    }

    /// Bytes of the status report that the receiver wants to send back now; 0 if there is none.
    #[inline]
    pub fn status_bytes(&self, now: Instant) -> u64 {
        match &self.mode {
            Mode::Acknowledged(am) => am.status_bytes(now),
            Mode::Unacknowledged(_) => 0,
        }
    }

    /// Fills `room` bytes of a transport block. `opposite` is the other direction, whose receiver
    /// sits at the sender of this one. Returns the bytes used.
    pub fn fill(
        &mut self,
        now: Instant,
        room: u32,
        opposite: &mut Self,
        block: &mut Block,
        cx: &mut Context<'_>,
    ) -> u32 {
        let framing = self.framing;
        let mut left = room;
        if let Mode::Acknowledged(am) = &mut opposite.mode
            && let Some((status, bytes)) = left.checked_sub(framing.mac_subheader).and_then(|room| am.report(now, room))
        {
            block.status = Some(status);
            left -= bytes + framing.mac_subheader;
        }
        let Self { pdcp, stream, mode, reordering, lost, .. } = self;
        let first = block.pdus.len();
        if let Mode::Acknowledged(am) = mode {
            while let Some(inner) = left.checked_sub(framing.mac_subheader)
                && let Some((pdu, bytes)) = am.next_repeat(inner, stream)
            {
                block.pdus.push(pdu);
                left -= bytes + framing.mac_subheader;
            }
        }
        while match mode {
            Mode::Acknowledged(am) => am.can_send(stream),
            Mode::Unacknowledged(_) => true,
        } && let Some(inner) = left.checked_sub(framing.new_mac_subheader)
            && let Some(cut) = stream.cut(now, inner, &framing, pdcp, |packet| lost.push(packet))
        {
            block.pdus.push(match mode {
                Mode::Acknowledged(am) => am.send_new(cut),
                Mode::Unacknowledged(sender) => sender.send_new(cut),
            });
            if let Some(reordering) = reordering {
                reordering.send_new(cut);
            }
            // A PDU that leaves room has a length in its subheader, which the padding pays.
            let bytes = (cut.range.end - cut.range.start) as u32 + cut.header + framing.new_mac_subheader;
            left -= bytes.min(left);
            if framing.concatenates {
                break;
            }
        }
        if let Mode::Acknowledged(am) = mode
            && let sent = &mut block.pdus[first..]
            && !sent.is_empty()
        {
            let has_new = stream.uncut() > 0 || pdcp.backlog().0 > 0;
            am.poll(now, sent, has_new);
        }
        self.report_lost(now, DropCause::QueueManagement, cx);
        room - left
    }

    /// The far end gets the PDUs of a block.
    pub fn receive(&mut self, now: Instant, pdus: &[Pdu], cx: &mut Context<'_>) {
        for pdu in pdus {
            let received = match &mut self.mode {
                Mode::Acknowledged(am) => {
                    am.receive(now, pdu);
                    am.delivered().1
                }
                Mode::Unacknowledged(receiver) => {
                    receiver.receive(now, pdu);
                    receiver.received()
                }
            };
            // PDCP gets a packet as soon as it is complete.
            if let Some(reordering) = &mut self.reordering
                && received.containing(pdu.unit).is_some()
            {
                reordering.receive(now, &Pdu { range: pdu.unit, ..*pdu });
            }
        }
        self.release(now, cx);
    }

    /// The sender gets a status report.
    ///
    /// # Errors
    /// If a PDU was sent too often.
    pub fn acknowledge(&mut self, status: &Status) -> Result<(), MaxRetransmissions> {
        match &mut self.mode {
            Mode::Acknowledged(am) => {
                let result = am.acknowledge(status, &self.stream);
                self.stream.forget_ends(am.first_unacknowledged().unwrap_or(self.stream.mapped()));
                result
            }
            Mode::Unacknowledged(_) => Ok(()),
        }
    }

    /// A block was given up by HARQ. Without acknowledgements its packets are lost.
    pub fn give_up(&mut self, now: Instant, pdus: &[Pdu], cx: &mut Context<'_>) {
        if let Mode::Unacknowledged(_) = &self.mode {
            for pdu in pdus {
                self.stream.lose(pdu.range, |packet| self.lost.push(packet));
            }
            self.report_lost(now, DropCause::AttemptsExhausted, cx);
        }
    }

    /// When a timer expires next.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        let discard = self.pdcp.next_timer();
        let mode = match &self.mode {
            Mode::Acknowledged(am) => am.next_timer(),
            Mode::Unacknowledged(um) => um.next_timer(),
        };
        let reordering = self.reordering.as_ref().and_then(Reordering::next_timer);
        earliest([discard, mode, reordering])
    }

    /// Does what the timers demand that have expired by `now`.
    ///
    /// # Errors
    /// If a PDU was sent too often.
    pub fn expire(&mut self, now: Instant, cx: &mut Context<'_>) -> Result<(), MaxRetransmissions> {
        cx.direction = self.direction;
        while let Some(packet) = self.pdcp.expire(now) {
            self.counters.lose(&packet, DropCause::Discarded);
            cx.drop_packet(now, packet, DropCause::Discarded);
        }
        let has_new = self.stream.uncut() > 0 || self.pdcp.backlog().0 > 0;
        let (moved, result) = match &mut self.mode {
            Mode::Acknowledged(am) => (false, am.expire(now, has_new, &self.stream)),
            Mode::Unacknowledged(um) => (um.expire(now), Ok(())),
        };
        let has_reordered = self.reordering.as_mut().is_some_and(|reordering| reordering.expire(now));
        if moved || has_reordered {
            self.release(now, cx);
        }
        result
    }

    /// Delivers what can be delivered.
    fn release(&mut self, now: Instant, cx: &mut Context<'_>) {
        let Self { mode, stream, reordering, departures, lost, delay, .. } = self;
        let due = now + *delay;
        let due = departures.back().map_or(due, |last| last.due.max(due));
        if let Mode::Unacknowledged(um) = mode {
            while let Some(unit) = um.take_given_up() {
                stream.lose(unit, |packet| lost.push(packet));
            }
        }
        let (edge, received) = match (reordering.as_ref(), &*mode) {
            (Some(reordering), _) => reordering.delivered(stream.mapped()),
            (None, Mode::Acknowledged(am)) => am.delivered(),
            (None, Mode::Unacknowledged(um)) => um.delivered(stream.mapped()),
        };
        stream.release(edge, received, |packet, is_complete| {
            if is_complete { departures.push_back(Departure { due, packet }) } else { lost.push(packet) }
        });
        if let Some(reordering) = reordering {
            reordering.forget_below(stream.first());
        }
        if let Mode::Unacknowledged(um) = mode {
            um.forget_below(stream.first());
            stream.forget_ends(stream.mapped());
        }
        self.report_lost(now, DropCause::AttemptsExhausted, cx);
    }

    fn report_lost(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        cx.direction = self.direction;
        for packet in self.lost.drain(..) {
            self.counters.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
        }
    }

    /// The connection was released: the RLC is too (TS 36.331 §5.3.12). All packets have left.
    pub fn release_connection(&mut self) {
        self.stream = Stream::default();
        if let Some(reordering) = &mut self.reordering {
            reordering.reset();
        }
        match &mut self.mode {
            Mode::Acknowledged(am) => am.reset(),
            Mode::Unacknowledged(um) => um.reset(),
        }
    }

    /// Establishes the RLC again. In the acknowledged mode, PDCP sends again what was not
    /// delivered, in its order (TS 36.323 §5.2); in the unacknowledged mode, packets that were cut
    /// are lost.
    pub fn establish_again(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        let Self { mode, stream, reordering, departures, lost, pdcp, delay, .. } = self;
        if let Some(reordering) = reordering {
            reordering.reset();
        }
        let due = now + *delay;
        let due = departures.back().map_or(due, |last| last.due.max(due));
        match mode {
            Mode::Acknowledged(am) => {
                // What the far end has beyond a gap is sent again, too: PDCP reports no status.
                let mut again = Vec::new();
                stream.clear(&RangeSet::default(), |_| {}, |packet| again.push(packet));
                again.into_iter().rev().for_each(|packet| pdcp.put_back(packet));
                am.reset();
            }
            Mode::Unacknowledged(um) => {
                stream.clear(
                    um.received(),
                    |packet| departures.push_back(Departure { due, packet }),
                    |packet| lost.push(packet),
                );
                um.reset();
            }
        }
        self.report_lost(now, cause, cx);
    }

    /// Takes out the packets that no PDU carries yet, in their order.
    pub fn take_waiting(&mut self, now: Instant) -> Vec<Packet> {
        let Self { pdcp, counters, .. } = self;
        let mut packets = Vec::new();
        pdcp.clear(now, |packet| {
            counters.absorb(&packet);
            packets.push(packet);
        });
        packets
    }

    /// Takes out the first packets that no PDU carries yet, of at least this number of bytes.
    pub fn take_first(&mut self, now: Instant, bytes: u64, cx: &mut Context<'_>) -> Vec<Packet> {
        let Self { pdcp, counters, lost, .. } = self;
        let (mut packets, mut taken) = (Vec::new(), 0);
        while taken < bytes
            && let Some(packet) = pdcp.dequeue(now, |packet| lost.push(packet))
        {
            taken += u64::from(packet.size);
            counters.absorb(&packet);
            packets.push(packet);
        }
        self.report_lost(now, DropCause::QueueManagement, cx);
        packets
    }

    /// Takes packets to send behind those that are sent again.
    pub fn append(&mut self, packets: Vec<Packet>) {
        for packet in packets {
            self.counters.offer(&packet);
            self.pdcp.append(packet);
        }
    }

    /// Takes packets to send before all that waits, past the bound of the queue.
    pub fn take_over(&mut self, packets: Vec<Packet>) {
        for packet in packets.into_iter().rev() {
            self.counters.offer(&packet);
            self.pdcp.put_back(packet);
        }
    }

    /// Drops all packets that were not delivered. In the acknowledged mode these include packets
    /// that the far end has beyond a gap.
    pub fn discard(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.establish_again(now, cause, cx);
        self.pdcp.clear(now, |packet| self.lost.push(packet));
        self.report_lost(now, cause, cx);
    }
}
