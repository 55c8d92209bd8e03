//! The acknowledged mode of the RLC of LTE (TS 36.322 §5.1.3, §5.2) and NR (TS 38.322 §5.2.3,
//! §5.3): a window, polls, status reports with byte ranges, and retransmission of whole units or of
//! segments of them.
//!
//! A unit with a sequence number is a PDU in LTE, a packet (RLC SDU) in NR. NR sends units in
//! segments the first time, too.

use std::collections::VecDeque;

use airpath_core::range_set::{Range, RangeSet};
use airpath_core::{Bytes, Instant, Span, earliest};

use super::rlc::{Cut, Framing, MaxRetransmissions, Pdu, Stream, has_gap, next_hole};

/// The parameters.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub t_poll_retransmit: Span,
    pub poll_pdu: Option<u32>,
    pub poll_byte: Option<Bytes>,
    pub max_retx: u8,
    /// t-Reordering of LTE, t-Reassembly of NR.
    pub t_reordering: Span,
    pub t_status_prohibit: Span,
    /// AM_Window_Size.
    pub window: u64,
    pub status: StatusFormat,
}

/// Bits of the parts of a status report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusFormat {
    /// D/C, type, ACK_SN and E1.
    pub header: u32,
    /// NACK_SN and its extension bits.
    pub nack: u32,
    /// SOstart and SOend.
    pub offsets: u32,
    /// NACK range, with which a NACK is for units that follow each other.
    pub range: Option<u32>,
}

impl StatusFormat {
    /// LTE with sequence numbers of 10 bits (TS 36.322 §6.2.1.6).
    pub const LTE: Self = Self { header: 15, nack: 12, offsets: 30, range: None };
    /// NR with sequence numbers of 12 bits (TS 38.322 §6.2.2.5).
    pub const NR_12: Self = Self { header: 24, nack: 16, offsets: 32, range: Some(8) };
    /// NR with sequence numbers of 18 bits.
    pub const NR_18: Self = Self { header: 24, nack: 24, offsets: 32, range: Some(8) };
}

/// Units that a NACK range can be for (TS 38.322 §6.2.3.17).
const LONGEST_RANGE: u32 = 255;

/// A status report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// ACK_SN: all PDUs below were received, except those in `missing`.
    pub acknowledged: u64,
    /// Sequence numbers, and the ranges of the stream that are missing of them.
    pub missing: Vec<(u64, Range<u64>)>,
}

/// A PDU that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Flight {
    range: Range<u64>,
    /// RETX_COUNT, once it is to be sent again.
    retransmissions: Option<u8>,
    is_acknowledged: bool,
}

/// Both ends of one direction.
#[derive(Clone, Debug)]
pub struct Am {
    config: Parameters,
    framing: Framing,
    sender: Sender,
    receiver: Receiver,
}

#[derive(Clone, Debug, Default)]
struct Sender {
    /// VT(A), the number of the first of `flights`.
    first: u64,
    flights: VecDeque<Flight>,
    /// What is to be sent again.
    pending: RangeSet<u64>,
    /// Its bytes with headers.
    pending_bytes: u64,
    pdus_without_poll: u32,
    bytes_without_poll: u64,
    /// POLL_SN.
    polled: u64,
    /// When t-PollRetransmit expires.
    poll_retransmit_at: Option<Instant>,
    /// The next PDU polls, because t-PollRetransmit has expired.
    poll_is_due: bool,
}

#[derive(Clone, Debug, Default)]
struct Receiver {
    received: RangeSet<u64>,
    /// VR(R): the first PDU that is not complete.
    next: u64,
    /// VR(H): after the highest PDU that was received at least in part.
    highest: u64,
    /// VR(X): after the one that started t-Reordering.
    reordering_from: u64,
    /// VR(MS): what a status report may acknowledge at most.
    reportable: u64,
    /// When t-Reordering expires.
    reordering_at: Option<Instant>,
    /// The highest number of a PDU whose poll waits until HARQ reordering is settled.
    delayed_poll: Option<u64>,
    is_triggered: bool,
    /// The end of t-StatusProhibit is still an event for the report that was triggered.
    is_held_back: bool,
    /// When t-StatusProhibit expires, or expired.
    prohibited_until: Instant,
}

impl Am {
    /// Nothing sent.
    pub fn new(config: &Parameters, framing: Framing) -> Self {
        Self { config: config.clone(), framing, sender: Sender::default(), receiver: Receiver::default() }
    }

    /// Both ends start again, with an empty stream.
    pub fn reset(&mut self) {
        (self.sender, self.receiver) = (Sender::default(), Receiver::default());
    }

    /// VT(S).
    fn next(&self) -> u64 {
        self.sender.first + self.sender.flights.len() as u64
    }

    /// Whether no new unit may be sent.
    #[inline]
    pub fn is_window_full(&self) -> bool {
        self.sender.flights.len() as u64 >= self.config.window
    }

    /// Whether something may be sent for the first time: a new unit, or more of the last one.
    #[inline]
    pub fn can_send(&self, stream: &Stream) -> bool {
        !self.is_window_full() || (!self.framing.concatenates && stream.uncut() > 0)
    }

    /// Bytes that are to be sent again, with the headers of the RLC and the MAC.
    #[inline]
    pub fn pending_bytes(&self) -> u64 {
        self.sender.pending_bytes
    }

    /// Where the first PDU begins that is not acknowledged.
    pub fn first_unacknowledged(&self) -> Option<u64> {
        self.sender.flights.front().map(|flight| flight.range.start)
    }

    /// Sends what is to be sent again first, a whole PDU or what fits into `room` bytes of it.
    /// Returns also the bytes with headers.
    pub fn next_repeat(&mut self, room: u32, stream: &Stream) -> Option<(Pdu, u32)> {
        let pending = self.sender.pending.first()?;
        let index = self.sender.flights.partition_point(|flight| flight.range.end <= pending.start);
        let flight = self.sender.flights[index];
        let wanted = Range::new(pending.start, pending.end.min(flight.range.end));
        let is_whole = |cut: &Cut| cut.range == flight.range;
        let whole = room.checked_sub(self.framing.whole).and_then(|room| stream.fit(wanted, room)).filter(is_whole);
        let (cut, header) = match whole {
            Some(cut) => (cut, self.framing.whole),
            None => {
                let header = self.framing.segment(wanted.start == flight.range.start);
                (stream.fit(wanted, room.checked_sub(header)?)?, header)
            }
        };
        self.sender.pending.remove_below(cut.range.end);
        self.sender.count_pending(&self.framing, stream);
        let pdu = Pdu {
            sequence: self.sender.first + index as u64,
            range: cut.range,
            unit: flight.range,
            again: true,
            polls: false,
        };
        Some((pdu, header + cut.header + (cut.range.end - cut.range.start) as u32))
    }

    /// Sends a new PDU, which may continue the last unit.
    pub fn send_new(&mut self, cut: Cut) -> Pdu {
        let Cut { range, unit, .. } = cut;
        if self.sender.flights.back().is_none_or(|flight| flight.range != unit) {
            self.sender.flights.push_back(Flight { range: unit, retransmissions: None, is_acknowledged: false });
        }
        let sequence = self.next() - 1;
        self.sender.pdus_without_poll += 1;
        self.sender.bytes_without_poll += range.end - range.start;
        Pdu { sequence, range, unit, again: false, polls: false }
    }

    /// Decides whether the last of the PDUs of a block polls (TS 36.322 §5.2.2.1). `has_new`: more
    /// waits that was never sent.
    pub fn poll(&mut self, now: Instant, sent: &mut [Pdu], has_new: bool) {
        let Some(last) = sent.last_mut() else { return };
        let by_count = self.config.poll_pdu.is_some_and(|pdus| self.sender.pdus_without_poll >= pdus)
            || self.config.poll_byte.is_some_and(|bytes| self.sender.bytes_without_poll >= bytes.get());
        let is_last = self.sender.pending.is_empty() && (!has_new || self.is_window_full());
        if !(by_count || is_last || self.sender.poll_is_due) {
            return;
        }
        last.polls = true;
        let next = self.next();
        let sender = &mut self.sender;
        (sender.pdus_without_poll, sender.bytes_without_poll, sender.poll_is_due) = (0, 0, false);
        sender.polled = next - 1;
        sender.poll_retransmit_at = Some(now + self.config.t_poll_retransmit);
    }

    /// The sender gets a status report (TS 36.322 §5.2.1, §5.2.2.2).
    pub fn acknowledge(&mut self, status: &Status, stream: &Stream) -> Result<(), MaxRetransmissions> {
        let next = self.next();
        let max = self.config.max_retx;
        let framing = self.framing;
        let sender = &mut self.sender;
        if status.acknowledged > next {
            // Of a connection that was established again meanwhile.
            return Ok(());
        }
        if sender.polled < status.acknowledged {
            sender.poll_retransmit_at = None;
        }
        let mut missing = status.missing.iter().peekable();
        let mut result = Ok(());
        let mut has_acknowledged_pending = false;
        for sequence in sender.first..status.acknowledged {
            let index = (sequence - sender.first) as usize;
            while missing.next_if(|(number, _)| *number < sequence).is_some() {}
            if missing.peek().is_none_or(|(number, _)| *number != sequence) {
                let flight = &mut sender.flights[index];
                has_acknowledged_pending |= flight.retransmissions.is_some() && !flight.is_acknowledged;
                flight.is_acknowledged = true;
                continue;
            }
            let mut is_new = false;
            while let Some((_, range)) = missing.next_if(|(number, _)| *number == sequence) {
                // Of the last packet, a report may miss more than was sent.
                let sent = Range::new(range.start, range.end.min(stream.mapped()).max(range.start));
                if !sent.is_empty() {
                    sender.pending.insert(sent, |_| is_new = true);
                }
            }
            if is_new {
                let flight = &mut sender.flights[index];
                let count = flight.retransmissions.map_or(0, |count| count.saturating_add(1));
                flight.retransmissions = Some(count);
                if count >= max {
                    result = Err(MaxRetransmissions);
                }
            }
        }
        if has_acknowledged_pending && !sender.pending.is_empty() {
            sender.forget_acknowledged();
        }
        while sender.flights.front().is_some_and(|flight| flight.is_acknowledged) {
            sender.flights.pop_front();
            sender.first += 1;
        }
        sender.count_pending(&framing, stream);
        result
    }

    /// The receiver gets a PDU (TS 36.322 §5.1.3.2).
    pub fn receive(&mut self, now: Instant, pdu: &Pdu) {
        let receiver = &mut self.receiver;
        if pdu.sequence >= receiver.next {
            receiver.received.insert(pdu.range, |_| {});
            receiver.highest = receiver.highest.max(pdu.sequence + 1);
            let (sender, receiver) = (&self.sender, &mut self.receiver);
            if pdu.sequence == receiver.reportable {
                receiver.reportable = sender.first_incomplete(receiver, receiver.reportable);
            }
            if pdu.sequence == receiver.next {
                receiver.next = sender.first_incomplete(receiver, receiver.next);
                receiver.reportable = receiver.reportable.max(receiver.next);
            }
            if receiver.reordering_at.is_some()
                && !sender.has_gap(&self.framing, receiver, receiver.next, receiver.reordering_from)
            {
                receiver.reordering_at = None;
            }
            if receiver.reordering_at.is_none()
                && sender.has_gap(&self.framing, receiver, receiver.next, receiver.highest)
            {
                receiver.reordering_at = Some(now + self.config.t_reordering);
                receiver.reordering_from = receiver.highest;
            }
        }
        let receiver = &mut self.receiver;
        if pdu.polls {
            receiver.delayed_poll = Some(receiver.delayed_poll.map_or(pdu.sequence, |last| last.max(pdu.sequence)));
        }
        receiver.settle_poll();
    }

    /// What was received in sequence, and all that was received.
    pub fn delivered(&self) -> (u64, &RangeSet<u64>) {
        let received = &self.receiver.received;
        (received.first().filter(|first| first.start == 0).map_or(0, |first| first.end), received)
    }

    /// Bytes of the status report that would be sent now.
    #[inline]
    pub fn status_bytes(&self, now: Instant) -> u64 {
        if !self.receiver.is_triggered || now < self.receiver.prohibited_until {
            return 0;
        }
        let missing = self.receiver.received.len() as u32;
        let StatusFormat { header, nack, offsets, range } = self.config.status;
        u64::from((header + missing * (nack + offsets + range.unwrap_or(0))).div_ceil(8))
    }

    /// Makes a status report of at most `room` bytes, if one is due. Returns also its size.
    pub fn report(&mut self, now: Instant, room: u32) -> Option<(Status, u32)> {
        if !self.receiver.is_triggered || now < self.receiver.prohibited_until || room * 8 < self.config.status.header {
            return None;
        }
        let format = self.config.status;
        let (sender, receiver) = (&self.sender, &mut self.receiver);
        let mut status = Status { acknowledged: receiver.reportable, missing: Vec::new() };
        // The range of the last NACK: where it ends, and for how many units it is.
        let (mut bits, mut last) = (format.header, (u64::MAX, 0));
        'pdus: for sequence in receiver.next..receiver.reportable {
            let whole = sender.flights[(sequence - sender.first) as usize].range;
            let mut from = whole.start;
            while from < whole.end {
                let Some(hole) = next_hole(&receiver.received, from, whole.end) else { break };
                let is_more = format.range.is_some() && last.0 == hole.start && last.1 < LONGEST_RANGE;
                let offsets = if hole == whole { 0 } else { format.offsets };
                let cost = match format.range {
                    Some(range) if is_more => offsets + if last.1 == 1 { range } else { 0 },
                    _ => format.nack + offsets,
                };
                if (bits + cost).div_ceil(8) > room {
                    status.acknowledged = sequence;
                    break 'pdus;
                }
                bits += cost;
                last = (hole.end, if is_more { last.1 + 1 } else { 1 });
                status.missing.push((sequence, hole));
                from = hole.end;
            }
        }
        (receiver.is_triggered, receiver.is_held_back) = (false, false);
        receiver.prohibited_until = now + self.config.t_status_prohibit;
        Some((status, bits.div_ceil(8)))
    }

    /// When a timer expires next.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        let status = self.receiver.is_held_back.then_some(self.receiver.prohibited_until);
        earliest([self.sender.poll_retransmit_at, self.receiver.reordering_at, status])
    }

    /// Does what the timers demand.
    pub fn expire(&mut self, now: Instant, has_new: bool, stream: &Stream) -> Result<(), MaxRetransmissions> {
        if self.receiver.prohibited_until <= now {
            self.receiver.is_held_back = false;
        }
        if self.receiver.reordering_at.is_some_and(|at| at <= now) {
            let (sender, receiver) = (&self.sender, &mut self.receiver);
            receiver.reordering_at = None;
            receiver.reportable = sender.first_incomplete(receiver, receiver.reordering_from);
            if sender.has_gap(&self.framing, receiver, receiver.reportable, receiver.highest) {
                receiver.reordering_at = Some(now + self.config.t_reordering);
                receiver.reordering_from = receiver.highest;
            }
            receiver.trigger();
            receiver.settle_poll();
        }
        if self.sender.poll_retransmit_at.is_some_and(|at| at <= now) {
            return self.repeat_poll(has_new, stream);
        }
        Ok(())
    }

    /// t-PollRetransmit has expired (TS 36.322 §5.2.2.3).
    fn repeat_poll(&mut self, has_new: bool, stream: &Stream) -> Result<(), MaxRetransmissions> {
        let is_full = !self.can_send(stream);
        let framing = self.framing;
        let sender = &mut self.sender;
        (sender.poll_retransmit_at, sender.poll_is_due) = (None, true);
        if !sender.pending.is_empty() || (has_new && !is_full) {
            return Ok(());
        }
        // The last PDU is sent once more, to carry the poll.
        let Some(flight) = sender.flights.iter_mut().rev().find(|flight| !flight.is_acknowledged) else {
            return Ok(());
        };
        let count = flight.retransmissions.map_or(0, |count| count.saturating_add(1));
        flight.retransmissions = Some(count);
        let sent = flight.range.end.min(stream.mapped());
        sender.pending.insert(Range::new(flight.range.start, sent), |_| {});
        sender.count_pending(&framing, stream);
        if count >= self.config.max_retx { Err(MaxRetransmissions) } else { Ok(()) }
    }
}

impl Sender {
    /// The first PDU from `sequence` on that the receiver does not have completely.
    fn first_incomplete(&self, receiver: &Receiver, sequence: u64) -> u64 {
        let complete = |flight: &&Flight| receiver.received.containing(flight.range).is_some();
        let skip = (sequence - self.first) as usize;
        sequence + self.flights.iter().skip(skip).take_while(complete).count() as u64
    }

    /// Whether something is missing from unit `from` to below unit `end`.
    fn has_gap(&self, framing: &Framing, receiver: &Receiver, from: u64, end: u64) -> bool {
        let first = self.flights.get((from - self.first) as usize).filter(|_| !framing.concatenates);
        has_gap(from, end, first.map(|flight| flight.range), &receiver.received)
    }

    /// Counts the bytes of what is to be sent again, with a header and a subheader of the MAC for
    /// each PDU that has a part in it.
    fn count_pending(&mut self, framing: &Framing, stream: &Stream) {
        self.pending_bytes = 0;
        for range in self.pending.iter() {
            let first = self.flights.partition_point(|flight| flight.range.end <= range.start);
            let pdus = self.flights.range(first..).take_while(|flight| flight.range.start < range.end).count() as u64;
            let indicators = if framing.concatenates { stream.indicators(range) } else { 0 };
            let headers = pdus * u64::from(framing.later_segment + framing.mac_subheader) + u64::from(indicators);
            self.pending_bytes += range.end - range.start + headers;
        }
    }

    /// What was acknowledged is not sent again.
    fn forget_acknowledged(&mut self) {
        let mut pending = RangeSet::default();
        for range in self.pending.iter() {
            let first = self.flights.partition_point(|flight| flight.range.end <= range.start);
            for flight in self.flights.iter().skip(first).take_while(|flight| flight.range.start < range.end) {
                let part = Range::new(range.start.max(flight.range.start), range.end.min(flight.range.end));
                if !flight.is_acknowledged && !part.is_empty() {
                    pending.insert(part, |_| {});
                }
            }
        }
        self.pending = pending;
    }
}

impl Receiver {
    /// Triggers the report of a poll whose PDU is below VR(MS): HARQ can bring nothing more that
    /// came before it (TS 36.322 §5.2.3).
    fn settle_poll(&mut self) {
        if self.delayed_poll.take_if(|sequence| *sequence < self.reportable).is_some() {
            self.trigger();
        }
    }

    const fn trigger(&mut self) {
        (self.is_triggered, self.is_held_back) = (true, true);
    }
}
