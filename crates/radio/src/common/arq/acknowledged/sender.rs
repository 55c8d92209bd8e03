//! The sending end: what waits, what is on the air, what is to be sent again.

use std::collections::VecDeque;

use airpath_core::{DropCause, Instant, Packet};

use super::bits::{Bits, mask};
use super::{Framing, Pdu, Status};
use crate::common::arq::rlc_queue::RlcQueue;

/// What a sender keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many PDUs may be between the oldest that is not acknowledged, this one included, and the
    /// next new one.
    pub window: u64,
    /// Bytes that upper layers put on each packet before it is cut: PDCP, or SNDCP and LLC.
    pub packet_overhead: u32,
    /// Bytes of a PDU that the end of a packet in it takes: its length indicator.
    pub end_overhead: u32,
}

/// The sender of one direction, with the queue in front of it.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    framing: Framing,
    /// Whether a PDU in which a packet ends carries the beginning of the next.
    concatenates: bool,
    queue: RlcQueue,
    /// Packets that were cut before a restart: they are cut again before those in the queue.
    again: VecDeque<Packet>,
    /// Packets that are cut at least in part and not yet handed over.
    cut_packets: VecDeque<CutPacket>,
    /// Bytes of the last of them that are not cut yet.
    uncut: u64,
    /// How far the stream is cut.
    cut: u64,
    /// Bytes that the next new PDU spends on the end of a packet that filled the one before it to
    /// the last byte.
    owed: u32,
    /// The oldest PDU that is not acknowledged, and the next new one.
    first: u64,
    next: u64,
    /// PDUs from `first` to `next`.
    flights: VecDeque<Flight>,
    acknowledged: Bits,
    /// PDUs that are to be sent again.
    negative: Bits,
    /// None of these has a lower number.
    first_negative: u64,
    transmissions: u64,
    /// Packets that were cut to their ends.
    ended: u64,
    /// PDUs from this one on were discarded, and the receiver has not been informed yet: the window
    /// stays here.
    given_up: Option<u64>,
}

/// A packet that is cut at least in part.
#[derive(Clone, Copy, Debug)]
struct CutPacket {
    /// Its end in the stream.
    end: u64,
    /// When it came; of a packet that is cut again, when that began.
    entered: Instant,
    packet: Packet,
}

/// A PDU that was sent.
#[derive(Clone, Copy, Debug)]
struct Flight {
    offset: u64,
    /// The number of its last transmission.
    transmission: u64,
    length: u32,
    attempts: u32,
    tag: u8,
}

impl Sender {
    /// A sender with nothing to send.
    pub fn new(settings: Settings, queue: RlcQueue) -> Self {
        Self {
            settings,
            framing: Framing::whole(settings.packet_overhead),
            concatenates: true,
            queue,
            again: VecDeque::new(),
            cut_packets: VecDeque::new(),
            uncut: 0,
            cut: 0,
            owed: 0,
            first: 0,
            next: 0,
            flights: VecDeque::new(),
            acknowledged: Bits::default(),
            negative: Bits::default(),
            first_negative: 0,
            transmissions: 0,
            ended: 0,
            given_up: None,
        }
    }

    /// The same sender, below upper layers that cut packets into segments and put headers on each,
    /// instead of a constant `packet_overhead`.
    #[must_use]
    pub const fn framed(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// The same sender, which begins each packet in a PDU of its own: what the one before leaves of
    /// its last is padding.
    #[must_use]
    pub const fn without_concatenation(mut self) -> Self {
        self.concatenates = false;
        self
    }

    /// Takes a packet to send; `lost` is called for packets that give way to it in a full queue.
    ///
    /// # Errors
    /// Why the queue drops the packet instead.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, packet: Packet, lost: impl FnMut(Packet)) -> Result<(), DropCause> {
        self.queue.enqueue(now, packet, lost)
    }

    /// Packets that are not sent completely, and their bytes. A packet that is sent in part
    /// counts in full.
    #[inline]
    pub fn backlog(&self) -> (u32, u64) {
        let (mut packets, mut bytes) = self.queue.backlog();
        let cut_partly = self.cut_packets.back().filter(|_| self.uncut > 0).map(|cut| &cut.packet);
        for packet in self.again.iter().chain(cut_partly) {
            packets += 1;
            bytes += u64::from(packet.size);
        }
        (packets, bytes)
    }

    /// Bytes of PDUs that all new data takes: what was never sent, with the end of each packet. The
    /// queue of the sender has no discipline.
    pub fn unsent_bytes(&self) -> u64 {
        let end = u64::from(self.settings.end_overhead);
        let waiting = self.again.iter().chain(self.queue.undisciplined());
        let cut_partly = if self.uncut > 0 { self.uncut + end } else { 0 };
        cut_partly + waiting.map(|packet| self.stream_bytes(packet) + end).sum::<u64>()
    }

    /// Sends the PDU with the lowest number of those that were reported missing; `None` if there is
    /// none.
    #[inline]
    pub fn next_repeat(&mut self) -> Option<Pdu> {
        let sequence = self.first_repeat()?;
        self.negative.remove(sequence);
        self.first_negative = sequence + 1;
        Some(self.send(sequence))
    }

    /// What [`Self::next_repeat`] would send, without sending it: its length and tag bind the
    /// coding, its attempt (that next transmission counted) may be one too many.
    #[inline]
    pub fn peek_repeat(&self) -> Option<Pdu> {
        let sequence = self.first_repeat()?;
        let Flight { offset, length, attempts, tag, .. } = self.flights[(sequence - self.first) as usize];
        Some(Pdu { sequence, offset, length, attempt: attempts + 1, tag, transmission: self.transmissions })
    }

    /// Sends what was never sent, up to `payload` bytes; `None` if there is nothing, or no room in
    /// the window. `dropped` is called for packets that the queue drops instead of sending them.
    /// `tag` stays with the PDU.
    ///
    /// A packet that fills a PDU to its last byte leaves no room for its length indicator, which
    /// the next PDU has then (TS 25.322 §9.2.2.8, TS 44.060 §10.4.14). The receiver still has all
    /// the same.
    ///
    /// # Panics
    /// If the payload has no room for more than a length indicator.
    pub fn next_new(&mut self, now: Instant, payload: u32, tag: u8, mut dropped: impl FnMut(Packet)) -> Option<Pdu> {
        assert!(payload > self.settings.end_overhead, "a PDU has room for more than a length indicator");
        if !self.is_open() {
            return None;
        }
        let offset = self.cut;
        let mut room = u64::from(payload - self.owed);
        let end_overhead = u64::from(self.settings.end_overhead);
        while room > 0 {
            if self.uncut == 0 && !self.begin_packet(now, &mut dropped) {
                break;
            }
            if self.cut == offset {
                self.owed = 0;
            }
            let part = self.uncut.min(room);
            self.cut += part;
            self.uncut -= part;
            room -= part;
            if self.uncut == 0 {
                self.ended += 1;
                if room < end_overhead {
                    self.owed = self.settings.end_overhead;
                }
                room = if self.concatenates { room.saturating_sub(end_overhead) } else { 0 };
            }
        }
        if self.cut == offset {
            return None;
        }
        let length = (self.cut - offset) as u32;
        self.flights.push_back(Flight { offset, transmission: 0, length, attempts: 0, tag });
        self.next += 1;
        Some(self.send(self.next - 1))
    }

    /// Sends the first PDU at or after number `from` that is not acknowledged, reported missing or
    /// not: what a stalled sender repeats to get an answer. `None` if there is none.
    pub fn repeat_from(&mut self, from: u64) -> Option<Pdu> {
        let sequence = self.acknowledged.first_gap_from(from.max(self.first));
        (sequence < self.next).then(|| {
            self.negative.remove(sequence);
            self.send(sequence)
        })
    }

    /// Handles a status report: what it has is acknowledged, what it lacks is to be sent
    /// again. Only PDUs whose last transmission has a number below `judged` are taken as missing: a
    /// report cannot include what was still in flight. [`u64::MAX`] applies it to all PDUs.
    pub fn handle(&mut self, status: &Status, judged: u64) {
        let next_expected = status.next_expected.min(self.next);
        for index in status.indexes() {
            let covered = status.mask(index) & mask(index, self.first, self.next);
            let received = status.word(index) & covered;
            if received != 0 {
                self.acknowledged.add(index, received);
                self.negative.subtract(index, received);
            }
            let mut missing = covered & !received & !self.acknowledged.word(index) & !self.negative.word(index);
            while missing != 0 {
                let sequence = index * 64 + u64::from(missing.trailing_zeros());
                missing &= missing - 1;
                let is_judged = self.flights[(sequence - self.first) as usize].transmission < judged;
                if is_judged && sequence >= next_expected {
                    self.negative.insert(sequence);
                    self.first_negative = self.first_negative.min(sequence);
                }
            }
        }
        self.move_on(self.first.max(next_expected));
    }

    /// Discards all packets with data in a PDU up to number `sequence`, from the oldest PDU that is
    /// not acknowledged on: those that were not handed over are `lost`. Their PDUs are not sent
    /// again, but stay in the window until the receiver has [skipped](super::Receiver::skip) them
    /// and [`Self::skipped`] is called. Returns the message for the receiver: the first PDU that is
    /// still to come, and where in the stream the given up packets end.
    pub fn give_up(&mut self, sequence: u64, mut lost: impl FnMut(Packet)) -> (u64, u64) {
        let flight = self.flights[(sequence - self.first) as usize];
        let reach = flight.offset + u64::from(flight.length);
        let mut end = reach;
        while let Some(front) = self.cut_packets.front().copied() {
            if front.end - self.stream_bytes(&front.packet) >= reach {
                break;
            }
            end = self.give_up_first(&mut lost);
        }
        self.skip_to(sequence + 1, end)
    }

    /// Discards the packets that are cut at least in part and came at a time for which
    /// `is_too_late`. Otherwise as [`Self::give_up`]; `None` if no PDU has only data of these.
    pub fn give_up_late(
        &mut self,
        is_too_late: impl Fn(Instant) -> bool,
        mut lost: impl FnMut(Packet),
    ) -> Option<(u64, u64)> {
        let mut end = 0;
        while self.cut_packets.front().is_some_and(|front| is_too_late(front.entered)) {
            end = self.give_up_first(&mut lost);
        }
        let first = self.flights.front()?;
        // The message names the first PDU that is still to come: none is skipped without one.
        (first.offset + u64::from(first.length) <= end).then(|| self.skip_to(self.first, end))
    }

    /// Takes out the packet that waits for its first PDU for the longest time, if `is_too_late` for
    /// the time at which it came.
    pub fn drop_late(&mut self, now: Instant, is_too_late: impl Fn(Instant) -> bool) -> Option<Packet> {
        self.queue.head_entered().filter(|entered| is_too_late(*entered))?;
        self.queue.drop_head(now)
    }

    /// When the oldest packet came that is cut at least in part, and the oldest that is not.
    #[inline]
    pub fn oldest(&self) -> [Option<Instant>; 2] {
        [self.cut_packets.front().map(|front| front.entered), self.queue.head_entered()]
    }

    /// Discards the oldest packet that was not handed over. Returns where it ends in the stream.
    fn give_up_first(&mut self, lost: &mut impl FnMut(Packet)) -> u64 {
        let CutPacket { end, packet, .. } = self.cut_packets.pop_front().expect("the caller has seen it");
        lost(packet);
        if self.cut_packets.is_empty() {
            // Of the last one a part may not be cut: it never will be.
            self.uncut = 0;
            self.owed = 0;
        }
        end.min(self.cut)
    }

    /// Neither sends nor waits for the PDUs before `edge`, nor those after it that end in the
    /// stream up to `end`. Returns the first PDU that is still to come, and `end`.
    fn skip_to(&mut self, mut edge: u64, end: u64) -> (u64, u64) {
        while self
            .flights
            .get((edge - self.first) as usize)
            .is_some_and(|next| next.offset + u64::from(next.length) <= end)
        {
            edge += 1;
        }
        for gone in self.first..edge {
            self.acknowledged.insert(gone);
            self.negative.remove(gone);
        }
        self.given_up = Some(self.first);
        (edge, end)
    }

    /// The receiver has skipped what was given up: the window moves on.
    pub fn skipped(&mut self) {
        self.given_up = None;
        self.move_on(self.first);
    }

    /// Moves the window's beginning to the first PDU at or after `from` that is not acknowledged.
    fn move_on(&mut self, from: u64) {
        let first = self.acknowledged.first_gap_from(from).min(self.next).min(self.given_up.unwrap_or(u64::MAX));
        self.flights.drain(..(first - self.first) as usize);
        self.first = first;
        self.first_negative = self.first_negative.max(first);
        self.acknowledged.forget_below(first);
        self.negative.forget_below(first);
    }

    /// Delivers the packets that end in the stream up to `complete`, which is the
    /// [receiver's](super::Receiver::complete).
    #[inline]
    pub fn hand_over(&mut self, complete: u64, mut deliver: impl FnMut(Packet)) {
        while let Some(front) = self.cut_packets.front().copied().filter(|front| front.end <= complete) {
            self.cut_packets.pop_front();
            deliver(front.packet);
        }
    }

    /// Gives up what was sent, wholly or in part, and not handed over. What was never sent still
    /// waits. The receiver is to [restart](super::Receiver::restart), too.
    pub fn reset(&mut self, mut lost: impl FnMut(Packet)) {
        self.cut_packets.drain(..).for_each(|cut| lost(cut.packet));
        self.reset_state();
    }

    /// Cuts packets that were sent, wholly or in part, and not handed over again, before all other
    /// packets: the upper layer kept it. The receiver is to [restart](super::Receiver::restart),
    /// too.
    pub fn restart(&mut self) {
        while let Some(cut) = self.cut_packets.pop_back() {
            self.again.push_front(cut.packet);
        }
        self.reset_state();
    }

    /// Discards the packets that were never sent, except the rest of a packet that was sent in
    /// part.
    pub fn clear_queue(&mut self, now: Instant, mut lost: impl FnMut(Packet)) {
        self.again.drain(..).for_each(&mut lost);
        self.queue.clear(now, lost);
    }

    /// Whether anything was never sent.
    #[inline]
    pub fn has_new(&self) -> bool {
        self.uncut > 0 || !self.again.is_empty() || !self.queue.is_empty()
    }

    /// Whether a PDU was reported missing and not sent again since.
    #[inline]
    pub fn has_repeats(&self) -> bool {
        self.first_repeat().is_some()
    }

    /// Whether a PDU was sent and neither acknowledged nor given up.
    #[inline]
    pub fn has_unacknowledged(&self) -> bool {
        match self.given_up {
            None => self.first < self.next,
            Some(_) => self.acknowledged.first_gap_from(self.first) < self.next,
        }
    }

    /// Whether the window has room for a new PDU.
    #[inline]
    pub const fn is_open(&self) -> bool {
        self.next - self.first < self.settings.window
    }

    /// Whether there is something new that the window does not let go.
    #[inline]
    pub fn is_stalled(&self) -> bool {
        !self.is_open() && self.has_new()
    }

    /// The oldest PDU that is not acknowledged: V(A), VT(A).
    #[inline]
    pub const fn first_unacknowledged(&self) -> u64 {
        self.first
    }

    /// The number of the next new PDU: V(S), VT(S).
    #[inline]
    pub const fn next_sequence(&self) -> u64 {
        self.next
    }

    /// How far the stream is cut into PDUs.
    #[inline]
    pub const fn cut(&self) -> u64 {
        self.cut
    }

    /// How many transmissions there were: the number of the next one.
    #[inline]
    pub const fn transmissions(&self) -> u64 {
        self.transmissions
    }

    /// How many packets were cut to their ends.
    #[inline]
    pub const fn ended(&self) -> u64 {
        self.ended
    }

    /// Widens the window. It never shrinks.
    pub fn grow(&mut self, window: u64) {
        self.settings.window = self.settings.window.max(window);
    }

    #[inline]
    fn first_repeat(&self) -> Option<u64> {
        self.negative.first_from(self.first_negative).filter(|sequence| *sequence < self.next)
    }

    #[inline]
    fn send(&mut self, sequence: u64) -> Pdu {
        let transmission = self.transmissions;
        self.transmissions += 1;
        let flight = &mut self.flights[(sequence - self.first) as usize];
        flight.attempts += 1;
        flight.transmission = transmission;
        let Flight { offset, length, attempts, tag, .. } = *flight;
        Pdu { sequence, offset, length, attempt: attempts, tag, transmission }
    }

    /// Appends the next packet to the stream, if there is one.
    #[inline]
    fn begin_packet(&mut self, now: Instant, dropped: impl FnMut(Packet)) -> bool {
        let again = self.again.pop_front().map(|packet| (now, packet));
        let Some((entered, packet)) = again.or_else(|| self.queue.dequeue_entered(now, dropped)) else { return false };
        self.uncut = self.stream_bytes(&packet);
        self.cut_packets.push_back(CutPacket { end: self.cut + self.uncut, entered, packet });
        true
    }

    /// What a packet takes in the stream. One of no bytes would have no end in any PDU.
    #[inline]
    fn stream_bytes(&self, packet: &Packet) -> u64 {
        u64::from(self.framing.bytes(packet.size)).max(1)
    }

    fn reset_state(&mut self) {
        self.given_up = None;
        self.uncut = 0;
        self.owed = 0;
        self.first = self.next;
        self.first_negative = self.next;
        self.flights.clear();
        self.acknowledged.restart(self.next);
        self.negative.restart(self.next);
    }
}
