//! The segments that a connection sends.

use airpath_core::{Context, Ecn, Instant, TcpTrigger};
use airpath_wire::tcp::{EcnCounters, Flags, Options, SackBlocks, Timestamps};

use super::Connection;
use crate::accurate_ecn::{self, EcnMode};
use crate::config::Config;
use crate::segment::Segment;
use crate::sender::{Cause, Transmission};
use crate::sequence::{FIRST_BYTE, from_wire, to_offset, to_wire};
use crate::state::State;
use crate::timers::Timer;

/// SACK blocks that give way to no other option.
const LEAST_BLOCKS: usize = 2;

impl Connection {
    /// The next segment to send; call it until it returns `None`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<Segment> {
        self.now = now;
        if self.state == State::Closed {
            return self.poll_reset(now);
        }
        if !self.opening.is_over() {
            if let Some(segment) = self.poll_unopened(now) {
                return Some(segment);
            }
        } else {
            // SACK blocks are sent without delay; a data segment has no space for them.
            if self.receiver.acks.is_due() && self.receiver.has_blocks() {
                return Some(self.acknowledgement(now));
            }
            let (sender, mut shared) = self.sending();
            if let Some(sent) = sender.poll(now, &mut shared) {
                return Some(self.data(now, sent, cx));
            }
        }
        if !self.receiver.acks.is_due() && self.announcements == 0 || !self.state.is_synchronised() {
            return None;
        }
        self.announcements = self.announcements.saturating_sub(1);
        Some(self.acknowledgement(now))
    }

    /// Before this end's SYN is acknowledged.
    fn poll_unopened(&mut self, now: Instant) -> Option<Segment> {
        if self.reset.is_some() {
            return self.poll_reset(now);
        }
        let segment = self.poll_opening(now);
        self.statistics.segments += u64::from(segment.is_some());
        segment
    }

    /// A segment of the stream.
    #[inline]
    fn data(&mut self, now: Instant, sent: Transmission, cx: &mut Context<'_>) -> Segment {
        let mut segment = super::bare(&self.id);
        let header = &mut segment.header;
        header.sequence = to_wire(self.id.initial_sequence, sent.start);
        header.flags = Flags::ACK;
        if sent.push {
            header.flags |= Flags::PSH;
        }
        if sent.fin {
            header.flags |= Flags::FIN;
        }
        if sent.reduced {
            header.flags |= Flags::CWR;
        }
        if self.sender.marks.mode == EcnMode::Classic && !sent.repeated && sent.payload > 0 {
            // RFC 3168 §6.1.5: retransmissions are not ECN-capable.
            segment.ecn = Ecn::Ect0;
        }
        segment.length = sent.payload;
        let room = self.sender.segment_size - sent.payload;
        if room >= 12 && self.sender.selective && self.receiver.has_blocks() {
            header.options.sack = self.receiver.sack_blocks(((room - 4) / 8).min(self.most_blocks()) as usize);
        }
        self.count(&sent);
        // RFC 9768 §3.2.3.2.2: until the first data is acknowledged, the option may be the reason
        // of its loss.
        let is_first = sent.repeated
            && self.sender.acknowledged == FIRST_BYTE
            && self.sender.scoreboard.highest_sacked().is_none();
        let space = if is_first { 0 } else { room + u32::from(self.options.reserved) };
        self.acknowledge_with(now, &mut segment, to_offset(sent.start), sent.repeated, space);
        self.receiver.acks.on_data_sent(now);
        match sent.cause {
            Cause::Stream => {}
            Cause::TailProbe => self.report(now, TcpTrigger::TailProbe, None, cx),
            Cause::WindowProbe => self.report(now, TcpTrigger::WindowProbe, None, cx),
        }
        segment
    }

    /// An acknowledgement without data.
    #[inline]
    fn acknowledgement(&mut self, now: Instant) -> Segment {
        let mut segment = super::bare(&self.id);
        segment.header.sequence = to_wire(self.id.initial_sequence, self.sender.next);
        segment.header.flags = Flags::ACK;
        if self.sender.selective && self.receiver.has_blocks() {
            segment.header.options.sack = self.receiver.sack_blocks(self.most_blocks() as usize);
        }
        self.statistics.segments += 1;
        self.statistics.pure_acks += 1;
        let offset = to_offset(self.sender.next);
        self.acknowledge_with(now, &mut segment, offset, false, u32::MAX);
        segment
    }

    /// Adds the acknowledgement of everything received to `segment`, which has `space` bytes for
    /// SACK and AccECN options.
    #[inline]
    fn acknowledge_with(&mut self, now: Instant, segment: &mut Segment, offset: i64, repeated: bool, space: u32) {
        let offered = self.receiver.offer(self.sender.segment_size);
        let window = if self.window_closed { 0 } else { offered };
        let (shift, _) = self.options.scaling.unwrap_or((0, 0));
        let header = &mut segment.header;
        // A window that does not fit is clamped to the largest that does.
        header.window = (window >> shift).min(u64::from(u16::MAX)) as u16;
        let window = u32::from(header.window) << shift;
        if self.options.echo_marks {
            header.flags |= Flags::ECE;
        }
        if self.sender.marks.mode == EcnMode::Accurate {
            // RFC 9768 §3.2.2.1: the client's first acknowledgement reports the SYN-ACK.
            let handshake = self.options.handshake_field.take();
            let is_first = segment.length == 0 && self.sender.next == FIRST_BYTE;
            let counter = self.options.marks.report();
            let reported = handshake.filter(|_| is_first).map_or(counter, accurate_ecn::handshake_field);
            accurate_ecn::set_field(header, reported);
            // As in Linux, all segments are ECN-capable (RFC 8311 §4.3 permits it for experiments).
            segment.ecn = self.capable_field();
        }
        if self.options.timestamps {
            header.options.timestamps = Some(Timestamps { value: self.timestamp(now), echo: self.options.recent });
        }
        if self.has_ecn_option() {
            self.add_ecn_option(now, &mut segment.header.options, space);
        }
        self.receiver.acks.on_sent();
        self.receiver.last_ack = self.receiver.next;
        self.timers.stop(Timer::DelayedAck);
        self.stamp(segment, offset, window, repeated);
    }

    /// Adds the AccECN option, if it is due and fits beside the others into `space` bytes without
    /// timestamps. As in Linux, the third and fourth SACK blocks give way to counters that have
    /// changed; the option gives way to others (RFC 9768 §3.2.3.3).
    fn add_ecn_option(&mut self, now: Instant, options: &mut Options, space: u32) {
        let Config { ecn_option, ecn_option_beacon, .. } = *self.config;
        let bytes = &mut self.options.bytes;
        if bytes.is_due(now, ecn_option, ecn_option_beacon, self.sender.rtt.smoothed()) {
            let timestamps = if options.timestamps.is_some() { super::opening::TIMESTAMPS_LENGTH } else { 0 };
            let most = space.saturating_add(timestamps).min(Options::MAX_LENGTH as u32) as usize;
            let (required, blocks) = (bytes.required(), options.sack);
            loop {
                for fields in (required..=EcnCounters::MAX).rev() {
                    options.accurate_ecn = Some(bytes.option(fields));
                    if options.wire_length() <= most {
                        let has_duplicate = self.receiver.reported_duplicate().filter(|_| !options.sack.is_empty());
                        return bytes.on_sent(now, has_duplicate);
                    }
                }
                if required == 0 || options.sack.as_slice().len() <= LEAST_BLOCKS {
                    break;
                }
                options.sack.pop();
            }
            (options.accurate_ecn, options.sack) = (None, blocks);
        }
        bytes.on_omitted();
    }

    /// The ECN field of segments with accurate feedback.
    const fn capable_field(&self) -> Ecn {
        match (self.sender.marks.capable, self.sender.controller.is_scalable()) {
            (false, _) => Ecn::NotEct,
            (true, false) => Ecn::Ect0,
            (true, true) => Ecn::Ect1,
        }
    }

    /// Sets the acknowledgment number, and the fields of the log.
    #[inline]
    pub(super) fn stamp(&self, segment: &mut Segment, offset: i64, window: u32, repeated: bool) {
        let header = &mut segment.header;
        let info = &mut segment.info;
        if header.flags.contains(Flags::ACK) {
            header.acknowledgment = to_wire(self.receiver.initial, self.receiver.next);
            info.ack = to_offset(self.receiver.next).into();
        }
        info.offset = offset;
        info.length = segment.length;
        info.window = window;
        info.flags = header.flags.0;
        info.retransmission = repeated;
    }

    /// The pending reset, if any.
    fn poll_reset(&mut self, now: Instant) -> Option<Segment> {
        let reset = self.reset.take()?;
        let mut segment = super::bare(&self.id);
        segment.header.sequence = reset.sequence;
        segment.header.flags = Flags::RST;
        if let Some(number) = reset.acknowledgment {
            segment.header.acknowledgment = number;
            segment.header.flags |= Flags::ACK;
            if self.options.timestamps && reset.ends {
                // RFC 7323 §3.2.
                let timestamps = Timestamps { value: self.timestamp(now), echo: self.options.recent };
                segment.header.options.timestamps = Some(timestamps);
            }
            segment.info.ack = from_wire(self.receiver.initial, self.receiver.next, number).map(to_offset).into();
        }
        segment.info.flags = segment.header.flags.0;
        segment.info.offset =
            from_wire(self.id.initial_sequence, self.sender.next, reset.sequence).map_or(-1, to_offset);
        self.statistics.segments += 1;
        Some(segment)
    }

    /// The timestamp clock.
    #[inline]
    pub(super) fn timestamp(&self, now: Instant) -> u32 {
        // It wraps (RFC 7323 §4.1).
        (now.as_nanos() / self.config.timestamp_tick.as_nanos()) as u32
    }

    /// Number of SACK blocks that fit into a header.
    #[inline]
    const fn most_blocks(&self) -> u32 {
        let most = SackBlocks::MAX as u32;
        if self.options.timestamps { most - 1 } else { most }
    }

    #[inline]
    fn count(&mut self, sent: &Transmission) {
        let statistics = &mut self.statistics;
        let bytes = u64::from(sent.payload);
        statistics.segments += 1;
        if sent.payload == 0 {
            statistics.pure_acks += u64::from(sent.cause == Cause::WindowProbe);
            return;
        }
        statistics.data_segments += 1;
        statistics.data_bytes += bytes;
        if sent.repeated {
            statistics.retransmitted_segments += 1;
            statistics.retransmitted_bytes += bytes;
        } else {
            statistics.unique_bytes += bytes;
        }
    }
}
