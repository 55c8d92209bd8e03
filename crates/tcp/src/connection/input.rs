//! Processing of arriving segments (RFC 9293 §3.10.7).

use airpath_core::{Classes, Context, Ecn, Instant, Span, TcpTrigger};
use airpath_wire::tcp::{Flags, TcpHeader};

use super::Connection;
use crate::accurate_ecn::{self, EcnMode};
use crate::delayed_ack::Estimate;
use crate::receiver::{Arrival, Data};
use crate::segment::Segment;
use crate::sender::{Acknowledgment, Changes};
use crate::sequence::{FIRST_BYTE, Sequence, from_wire};
use crate::state::{Outcome, State};
use crate::timers::{Timer, after};

/// Least interval between answers to segments outside of the window, so that two ends that disagree
/// do not answer each other forever (RFC 5961 §7; the interval is that of Linux).
const CHALLENGE_INTERVAL: Span = Span::from_millis(500);

/// Age from which a timestamp no longer orders segments (RFC 7323 §5.5).
const OUTDATED: Span = Span::from_secs(24 * 24 * 60 * 60);

impl Connection {
    /// Processes a segment from the peer.
    #[inline]
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment, cx: &mut Context<'_>) {
        self.now = now;
        self.statistics.received_segments += 1;
        self.receiver.accepted = None;
        match self.state {
            State::Closed => self.refuse(&segment.header, segment.length),
            State::Listen => self.on_segment_in_listen(segment),
            State::SynSent => self.on_segment_in_syn_sent(now, segment, cx),
            _ => self.on_segment_in_window(now, segment, cx),
        }
    }

    /// RFC 9293 §3.10.7.2.
    fn on_segment_in_listen(&mut self, segment: &Segment) {
        let header = &segment.header;
        if header.flags.contains(Flags::ACK) {
            self.refuse(header, 0);
        } else if header.flags.contains(Flags::SYN) && !header.flags.contains(Flags::RST) {
            self.take_syn(segment);
            self.state = State::SynReceived;
            self.opening.begin();
        }
    }

    /// RFC 9293 §3.10.7.3.
    fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &Segment, cx: &mut Context<'_>) {
        let header = &segment.header;
        let answers = header.flags.contains(Flags::ACK);
        let expected = self.id.initial_sequence.wrapping_add(1);
        if answers && (header.acknowledgment != expected || self.sender.next == 0) {
            return self.refuse(header, 0);
        }
        if header.flags.contains(Flags::RST) {
            if answers {
                self.end(now, Outcome::Refused, cx);
            }
            return;
        }
        if !header.flags.contains(Flags::SYN) {
            return;
        }
        self.take_syn(segment);
        if answers {
            self.receiver.acks.demand();
            self.establish(now, header, cx);
        } else {
            // Simultaneous open: the SYN is sent again, with an acknowledgement.
            self.state = State::SynReceived;
            self.opening.repeat();
        }
    }

    /// RFC 9293 §3.10.7.4.
    fn on_segment_in_window(&mut self, now: Instant, segment: &Segment, cx: &mut Context<'_>) {
        let header = &segment.header;
        if header.flags.contains(Flags::SYN) && !self.config.handshake {
            // The opening segment of a one-way agent carries no information.
            self.receiver.acks.demand();
            return;
        }
        let length = segment.length + u32::from(header.flags.contains(Flags::FIN));
        let Some(sequence) = from_wire(self.receiver.initial, self.receiver.next, header.sequence) else {
            return self.on_unacceptable(now, header, length);
        };
        if !self.is_fresh(now, header, length) {
            return;
        }
        let again = self.state == State::SynReceived && sequence == 0 && header.flags.contains(Flags::SYN);
        if again && !self.on_syn_again(segment) {
            return;
        }
        if !again && sequence == 0 && header.flags.contains(Flags::SYN | Flags::ACK) {
            // RFC 9768 §3.1.5: the answer reports the latest SYN-ACK.
            self.options.handshake_field = Some(segment.ecn);
        }
        if !again && !self.is_acceptable(sequence, length) {
            // As in Linux (`tcp_sequence`), a copy of what the last acknowledgement was for counts.
            if length > 0 && sequence + u64::from(length) == self.receiver.last_ack {
                self.count_mark(segment);
            }
            return self.on_unacceptable(now, header, length);
        }
        if header.flags.contains(Flags::RST) {
            return self.on_reset(now, sequence, cx);
        }
        if header.flags.contains(Flags::SYN) && !again {
            // RFC 5961 §4: it may be forged, or the peer has restarted and will answer with a
            // reset.
            return self.challenge(now);
        }
        if !header.flags.contains(Flags::ACK) {
            return;
        }
        if !self.on_acknowledgment(now, segment, sequence, length, cx) {
            return;
        }
        self.count_mark(segment);
        self.keep_timestamp(header, sequence);
        if length > 0 && self.state.is_synchronised() {
            self.on_payload(now, segment, sequence, length);
        }
        self.advance_state(now, cx);
    }

    /// Processes the acknowledgment number. Returns whether to continue with the segment.
    #[inline]
    fn on_acknowledgment(
        &mut self,
        now: Instant,
        segment: &Segment,
        sequence: Sequence,
        length: u32,
        cx: &mut Context<'_>,
    ) -> bool {
        let header = &segment.header;
        let Some(number) = from_wire(self.id.initial_sequence, self.sender.acknowledged, header.acknowledgment) else {
            return true;
        };
        if number > self.sender.next {
            if self.state == State::SynReceived {
                self.refuse(header, length);
            } else {
                // RFC 5961 §5: it acknowledges data that was never sent.
                self.challenge(now);
            }
            return false;
        }
        let mut reports_handshake = false;
        if !self.opening.is_over() {
            if number < FIRST_BYTE || !self.opening.is_sent() {
                // Without a handshake, the peer may send before this end has sent anything.
                return !self.config.handshake;
            }
            self.establish(now, header, cx);
            reports_handshake = self.on_handshake_feedback(header, length);
        } else if self.options.awaits_feedback {
            self.options.awaits_feedback = false;
            // RFC 9768 §3.2.2.4: it was cleared on the path.
            self.sender.marks.capable &= accurate_ecn::field(header) != 0;
        }
        let accurate = self.sender.marks.mode == EcnMode::Accurate;
        let (_, shift) = self.options.scaling.unwrap_or((0, 0));
        let acknowledgment = Acknowledgment {
            number,
            sequence,
            window: u64::from(header.window) << shift,
            blocks: &header.options.sack,
            initial: self.id.initial_sequence,
            bare: length == 0,
            // In a SYN-ACK the flag is an offer.
            marked: !accurate && header.flags.contains(Flags::ECE) && !header.flags.contains(Flags::SYN),
            mark_counter: (accurate && !reports_handshake).then(|| accurate_ecn::field(header)),
            byte_counters: header.options.accurate_ecn.as_ref().filter(|_| accurate),
            newer: accurate && self.is_newer(header),
            loss_notification: header.loss_notification,
            echo: self.echoed(now, header),
            timestamp: header.options.timestamps.map(|timestamps| timestamps.value),
        };
        let (sender, mut shared) = self.sending();
        let changes = sender.on_ack(now, &acknowledgment, &mut shared);
        self.report_changes(now, changes, cx);
        true
    }

    /// The server's end of the handshake: the client's acknowledgement reports the SYN-ACK, if it
    /// has no payload (RFC 9768 §3.2.2.1). Returns whether the field is no counter.
    fn on_handshake_feedback(&mut self, header: &TcpHeader, length: u32) -> bool {
        if header.flags.contains(Flags::SYN) {
            // Simultaneous open: the field is that of our SYN, and the next one a counter.
            self.options.awaits_feedback = true;
            return true;
        }
        self.options.handshake_field = None;
        let marks = &mut self.sender.marks;
        let reports = marks.mode == EcnMode::Accurate && length == 0 && header.options.sack.is_empty();
        let field = accurate_ecn::field(header);
        if reports {
            marks.capable &= marks.peer.on_handshake(field);
        } else if marks.mode == EcnMode::Accurate {
            // RFC 9768 §3.2.2.4.
            marks.capable &= field != 0;
        }
        reports
    }

    /// Counts the marks of packets that arrive, with accurate feedback.
    fn count_mark(&mut self, segment: &Segment) {
        if self.sender.marks.mode != EcnMode::Accurate {
            return;
        }
        let marked = segment.ecn == Ecn::Ce;
        self.statistics.marked_segments += u64::from(marked && segment.length > 0);
        // Acknowledgements alone are not answered, whatever their marks: the RFC requires an answer
        // to the third, but two ends could answer each other.
        let mut at_once = self.options.marks.on_packet(segment.ecn);
        if segment.length > 0 {
            at_once |= self.options.bytes.on_packet(segment.ecn, segment.length) && self.has_ecn_option();
            if at_once {
                self.receiver.acks.demand();
            }
        }
    }

    /// Processes payload and FIN.
    #[inline]
    fn on_payload(&mut self, now: Instant, segment: &Segment, sequence: Sequence, length: u32) {
        if self.sender.marks.mode == EcnMode::Classic {
            // RFC 3168 §6.1.3: echoed until the sender sets CWR.
            if segment.header.flags.contains(Flags::CWR) {
                self.options.echo_marks = false;
            }
            if segment.ecn == Ecn::Ce {
                self.options.echo_marks = true;
                self.statistics.marked_segments += 1;
            }
        }
        let rtt = &self.sender.rtt;
        let timeout = rtt.timeout(&self.config.retransmission_timeout);
        let estimate = Estimate { timeout, smoothed: rtt.smoothed() };
        let flags = segment.header.flags;
        let (fin, push) = (flags.contains(Flags::FIN), flags.contains(Flags::PSH));
        let awaits_close = self.state == State::Established;
        let data = Data { start: sequence, length, fin, push, awaits_close };
        match self.receiver.on_segment(now, data, estimate, &self.config) {
            Arrival::Now => {}
            Arrival::Duplicate => {
                self.statistics.duplicate_segments += 1;
                self.options.bytes.on_duplicate(sequence);
            }
            Arrival::After(wait) => self.delay_ack(now, wait),
        }
        if length >= self.receiver.full_size()
            && let Some(timestamps) = segment.header.options.timestamps
            && let Some((sent, _)) = self.echoed(now, &segment.header)
        {
            self.receiver.window.measure(now.since(sent), timestamps.echo);
        }
    }

    /// Schedules an acknowledgement. An earlier time that was set before stays. As in Linux
    /// (`tcp_send_delayed_ack`), it is sent now if little of an adaptive delay is left.
    #[inline]
    fn delay_ack(&mut self, now: Instant, wait: Span) {
        let set = self.timers.at(Timer::DelayedAck);
        if self.timers.is_set(Timer::DelayedAck) && self.config.delayed_ack.is_adaptive() && set <= after(now, wait / 4)
        {
            self.receiver.acks.demand();
        } else {
            self.timers.set(Timer::DelayedAck, set.min(after(now, wait)));
        }
    }

    /// RFC 9293 §3.10.7.4, first check, but more tolerant for segments without payload: an old
    /// acknowledgement that was overtaken is not answered.
    #[inline]
    fn is_acceptable(&self, sequence: Sequence, length: u32) -> bool {
        let edge = self.receiver.window.edge().max(self.receiver.next);
        if length == 0 {
            return self.receiver.last_ack <= sequence && sequence <= edge;
        }
        // A FIN takes no buffer space.
        self.receiver.next < sequence + u64::from(length) && sequence <= edge
    }

    /// The peer retransmits its SYN before this end's is acknowledged. Returns whether to continue.
    fn on_syn_again(&mut self, segment: &Segment) -> bool {
        let header = &segment.header;
        if self.opening.uses_accurate_ecn() {
            // RFC 9768 §3.1.5: the latest is reported, and one without ECN ends it here.
            self.options.handshake_field = Some(segment.ecn);
            self.opening.on_field(accurate_ecn::field(header));
            self.keep_first_option(header);
        }
        if header.flags.contains(Flags::ACK) {
            // Simultaneous open, and this acknowledges our SYN (RFC 9293 §3.5 figure 7).
            self.receiver.acks.demand();
            return true;
        }
        // The SYN-ACK was lost.
        self.opening.repeat();
        false
    }

    /// Answers an unacceptable segment with the expected number, unless it is a reset.
    fn on_unacceptable(&mut self, now: Instant, header: &TcpHeader, length: u32) {
        if header.flags.contains(Flags::RST) {
            return;
        }
        if length == 0 {
            return self.challenge(now);
        }
        self.receiver.acks.demand();
        if let Some(start) = from_wire(self.receiver.initial, self.receiver.next, header.sequence)
            && start + u64::from(length) <= self.receiver.next
        {
            self.statistics.duplicate_segments += 1;
            self.options.bytes.on_duplicate(start);
            self.receiver.on_old(start, length, &self.config);
        }
        if self.state == State::TimeWait {
            self.begin_time_wait(now);
        }
    }

    /// RFC 5961 §3: a reset is valid only with exactly the expected number.
    fn on_reset(&mut self, now: Instant, sequence: Sequence, cx: &mut Context<'_>) {
        if sequence == self.receiver.next {
            // A peer without the connection, after both streams were delivered, has seen it
            // complete.
            let complete = self.receiver.is_complete() && self.sender.has_delivered_all();
            self.end(now, if complete { Outcome::Closed } else { Outcome::Reset }, cx);
        } else {
            self.challenge(now);
        }
    }

    /// Sends a challenge ACK, with limited frequency.
    fn challenge(&mut self, now: Instant) {
        if now >= self.next_challenge {
            self.next_challenge = after(now, CHALLENGE_INTERVAL);
            self.receiver.acks.demand();
        }
    }

    /// Protection against wrapped sequence numbers (PAWS, RFC 7323 §5): whether the timestamp is
    /// not older than the last, unless that is outdated (§5.5).
    #[inline]
    fn is_fresh(&mut self, now: Instant, header: &TcpHeader, length: u32) -> bool {
        let Some(timestamps) = header.options.timestamps.filter(|_| self.options.timestamps) else {
            return true;
        };
        let stale = timestamps.value.wrapping_sub(self.options.recent).cast_signed() < 0;
        if !stale || header.flags.contains(Flags::RST) || now.since(self.options.recent_at) > OUTDATED {
            return true;
        }
        if length > 0 {
            self.on_unacceptable(now, header, length);
        }
        false
    }

    /// Whether the timestamp is later than all before.
    #[inline]
    fn is_newer(&self, header: &TcpHeader) -> bool {
        header.options.timestamps.is_some_and(|stamps| {
            self.options.timestamps && stamps.value.wrapping_sub(self.options.recent).cast_signed() > 0
        })
    }

    /// RFC 7323 §4.3: the timestamp to echo is that of the segment that triggers the
    /// acknowledgement. A segment that acknowledges what was never sent sets none, as in Linux
    /// (`tcp_ack`).
    #[inline]
    fn keep_timestamp(&mut self, header: &TcpHeader, sequence: Sequence) {
        if let Some(timestamps) = header.options.timestamps
            && self.options.timestamps
            && sequence <= self.receiver.last_ack
        {
            self.options.recent = timestamps.value;
            self.options.recent_at = self.now;
        }
    }

    /// Start and end of the clock tick in which the echoed segment was sent.
    #[inline]
    pub(super) fn echoed(&self, now: Instant, header: &TcpHeader) -> Option<(Instant, Instant)> {
        let timestamps = header.options.timestamps.filter(|_| self.options.timestamps)?;
        let tick = self.config.timestamp_tick.as_nanos();
        let ticks = now.as_nanos() / tick;
        let age = u64::from((ticks as u32).wrapping_sub(timestamps.echo));
        let begin = ticks.checked_sub(age)? * tick;
        Some((Instant::from_nanos(begin), Instant::from_nanos(begin + tick)))
    }

    #[inline]
    fn report_changes(&self, now: Instant, changes: Changes, cx: &mut Context<'_>) {
        if !cx.wants(Classes::TCP) {
            return;
        }
        self.report(now, TcpTrigger::Ack, changes.round_trip, cx);
        let triggers = [
            (changes.marked, TcpTrigger::CongestionExperienced),
            (changes.undone, TcpTrigger::Undo),
            (changes.recovery_ended, TcpTrigger::RecoveryEnd),
            (changes.recovery_began, TcpTrigger::FastRetransmit),
        ];
        for (_, trigger) in triggers.into_iter().filter(|(happened, _)| *happened) {
            self.report(now, trigger, None, cx);
        }
    }
}
