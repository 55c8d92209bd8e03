//! The context of one flow at the compressor: what the decompressor may have, and what it must be
//! sent again.

use crate::feedback::{Acknowledgement, Feedback};
use crate::framework::{Config, Mode};
use crate::header::Header;
use crate::ip_id::IdBehavior;
use crate::lsb::{Window, low};
use crate::profile::Profile;

/// Packets that carry each change, without feedback (optimistic approach, RFC 3095 §5.3.1.1.1).
pub(super) const REPEATS: u32 = Window::SIZE as u32;
/// Packets between two IR packets, without feedback.
pub(super) const IR_INTERVAL: u32 = 1024;
/// Packets between two that repeat the dynamic part, without feedback.
const DYNAMIC_INTERVAL: u32 = 256;
/// Packets whose IP-ID behaves otherwise, until the behaviour counts as changed.
const ID_CHANGES: u8 = 3;
/// Steps of the timestamp after which a longer stride is chosen, if all are multiples of it.
const GROWTH_STEPS: u32 = 32;
/// The longest stride that a packet carries (29 bits).
const LONGEST_STRIDE: u32 = 1 << 29;

/// The context.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) header: Header,
    pub(super) mode: Mode,
    /// The sequence number, counted on over its wraps.
    pub(super) sequence: u32,
    /// How much the timestamp grows with the sequence number; 0 while it is constant.
    pub(super) stride: u32,
    /// Timestamps that were no multiple of the stride from the last one.
    misfits: u8,
    /// Steps of the timestamp since the last review of the stride, and their common divisor.
    steps: u32,
    divisor: u32,
    pub(super) id: IdBehavior,
    id_changes: u8,
    /// Of the packets sent last: sequence number, timestamp by stride, what the timestamp is more
    /// than strides for each packet, and offset of the IP-ID.
    pub(super) sequences: Window,
    pub(super) scaled: Window,
    pub(super) excess: Window,
    pub(super) offsets: Window,
    /// Packets that still have to carry the static part, and the dynamic part.
    static_due: u32,
    dynamic_due: u32,
    /// Sequence numbers of the first packets with the current static and dynamic part.
    static_since: u32,
    dynamic_since: u32,
    /// Packets since the last one with the static part, and with the dynamic part.
    since_ir: u32,
    since_dynamic: u32,
    is_new: bool,
}

impl Context {
    /// One for the flow of this packet.
    pub(super) fn new(header: &Header) -> Self {
        Self {
            header: *header,
            mode: Mode::Unidirectional,
            sequence: if header.profile == Profile::Rtp { u32::from(header.sequence()) } else { 0 },
            stride: 0,
            misfits: 0,
            steps: 0,
            divisor: 0,
            id: IdBehavior::default(),
            id_changes: 0,
            sequences: Window::default(),
            scaled: Window::default(),
            excess: Window::default(),
            offsets: Window::default(),
            static_due: REPEATS,
            dynamic_due: REPEATS,
            static_since: 0,
            dynamic_since: 0,
            since_ir: 0,
            since_dynamic: 0,
            is_new: true,
        }
    }

    pub(super) fn matches(&self, header: &Header) -> bool {
        self.header.is_same_flow(header)
    }

    /// Appends the ROHC header of the next packet.
    pub(super) fn send(&mut self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) {
        self.advance(header);
        self.refresh();
        if self.static_due > 0 {
            self.push_ir(config, cid, header, out);
            self.static_due -= 1;
            self.dynamic_due = self.dynamic_due.saturating_sub(1);
            (self.since_ir, self.since_dynamic) = (0, 0);
        } else if self.dynamic_due > 0 || !self.push_compressed(config, cid, header, out) {
            self.push_ir_dyn(config, cid, header, out);
            self.dynamic_due = self.dynamic_due.saturating_sub(1);
            self.since_dynamic = 0;
        }
        self.sequences.push(self.sequence & 0xffff);
        if header.profile == Profile::Rtp {
            self.scaled.push(self.scaled_timestamp(header));
            self.excess.push(self.excess(header));
        }
        self.offsets.push(self.id_offset(header));
        self.header = *header;
        self.is_new = false;
    }

    /// Takes up sequence number, stride and behaviour of the IP-ID of the next packet, and notes
    /// what compressed packets cannot carry.
    fn advance(&mut self, header: &Header) {
        if self.is_new {
            (self.static_since, self.dynamic_since) = (self.sequence, self.sequence);
            return;
        }
        let last = self.header;
        self.sequence = match header.profile {
            Profile::Rtp => {
                let step = header.sequence().wrapping_sub(self.sequence as u16) as i16;
                self.sequence.wrapping_add_signed(i32::from(step))
            }
            _ => self.sequence.wrapping_add(1),
        };
        let mut is_changed = self.update_id(last.id(), header);
        if header.profile == Profile::Rtp {
            is_changed |= self.update_stride(last.timestamp(), header.timestamp());
            is_changed |= header.rtp_flags() != last.rtp_flags() || header.payload_type() != last.payload_type();
        }
        is_changed |= (header.tos(), header.ttl(), header.dont_fragment())
            != (last.tos(), last.ttl(), last.dont_fragment())
            || (header.udp_checksum() == 0) != (last.udp_checksum() == 0)
            || header.protocol() != last.protocol();
        if is_changed {
            self.dynamic_due = REPEATS;
            self.dynamic_since = self.sequence;
        }
    }

    /// Whether the behaviour of the IP-ID has changed.
    fn update_id(&mut self, last: u16, header: &Header) -> bool {
        if !header.is_v4() {
            return false;
        }
        let seen = IdBehavior::of(header.profile, last, header.id());
        if seen == self.id {
            self.id_changes = 0;
            return false;
        }
        self.id_changes += 1;
        // The first packets carry the whole context anyway.
        if self.id_changes < ID_CHANGES && self.static_due == 0 {
            // A compressed packet does not carry the IP-ID that should not change.
            return self.id == IdBehavior::Constant;
        }
        self.id_changes = 0;
        self.id = seen;
        self.offsets.clear();
        true
    }

    /// Whether the stride has changed, or the timestamp is no multiple of it from the last one.
    fn update_stride(&mut self, last: u32, timestamp: u32) -> bool {
        let step = (timestamp.wrapping_sub(last) as i32).unsigned_abs();
        if step == 0 {
            return false;
        }
        if self.stride > 0 && timestamp % self.stride == last % self.stride {
            return self.review_stride(step);
        }
        (self.steps, self.divisor) = (0, 0);
        if self.stride == 0 {
            self.set_stride(step);
            return true;
        }
        self.misfits = self.misfits.saturating_add(1);
        // The first one may be a wrap of the timestamp.
        if self.misfits > 1 {
            self.set_stride(common_divisor(self.stride, step));
        }
        true
    }

    /// Whether the stride grows: the last steps have a larger common divisor.
    fn review_stride(&mut self, step: u32) -> bool {
        self.steps += 1;
        self.divisor = common_divisor(self.divisor, step);
        if self.steps < GROWTH_STEPS {
            return false;
        }
        let divisor = self.divisor;
        (self.steps, self.divisor, self.misfits) = (0, 0, 0);
        let grows = divisor > self.stride && divisor < LONGEST_STRIDE;
        if grows {
            self.set_stride(divisor);
        }
        grows
    }

    fn set_stride(&mut self, stride: u32) {
        // A stride of 1 fits every timestamp.
        self.stride = if stride < LONGEST_STRIDE { stride } else { 1 };
        self.scaled.clear();
        self.excess.clear();
    }

    /// Without feedback the context is repeated from time to time (RFC 3095 §5.3.1.1.2).
    fn refresh(&mut self) {
        self.since_ir += 1;
        self.since_dynamic += 1;
        if self.mode == Mode::Unidirectional {
            self.static_due = self.static_due.max(u32::from(self.since_ir >= IR_INTERVAL));
            self.dynamic_due = self.dynamic_due.max(u32::from(self.since_dynamic >= DYNAMIC_INTERVAL));
        }
    }

    /// The timestamp in strides.
    pub(super) fn scaled_timestamp(&self, header: &Header) -> u32 {
        header.timestamp() / self.stride.max(1)
    }

    /// What the timestamp is more than a stride for each packet.
    pub(super) fn excess(&self, header: &Header) -> u32 {
        header.timestamp().wrapping_sub(self.sequence.wrapping_mul(self.stride))
    }

    /// The offset of the IP-ID that is to be compressed; 0 for others.
    pub(super) fn id_offset(&self, header: &Header) -> u32 {
        if self.has_sequential_id(header) { u32::from(self.id.offset(header.id(), self.sequence as u16)) } else { 0 }
    }

    /// Whether the IP-ID is derived from the sequence number.
    pub(super) fn has_sequential_id(&self, header: &Header) -> bool {
        header.is_v4() && matches!(self.id, IdBehavior::Sequential | IdBehavior::Swapped)
    }

    /// Receives feedback.
    pub(super) fn receive(&mut self, feedback: &Feedback) {
        if let Some(mode) = feedback.mode {
            self.mode = mode;
        }
        match feedback.acknowledgement {
            Acknowledgement::StaticNack => self.repeat_all(),
            Acknowledgement::Nack => {
                self.dynamic_due = REPEATS;
                self.dynamic_since = self.sequence.wrapping_add(1);
            }
            Acknowledgement::Ack => {
                let Some((value, bits)) = feedback.sequence else { return };
                // The packet acknowledged is the latest with these bits.
                let age = low(self.sequence.wrapping_sub(value), bits);
                let has = |since: u32| age <= self.sequence.wrapping_sub(since) && since <= self.sequence;
                let (has_static, has_dynamic) = (has(self.static_since), has(self.dynamic_since));
                if has_static {
                    self.static_due = 0;
                    if has_dynamic {
                        self.dynamic_due = 0;
                    }
                }
            }
        }
    }

    /// Sends the whole context again.
    fn repeat_all(&mut self) {
        (self.static_due, self.dynamic_due) = (REPEATS, REPEATS);
        let next = self.sequence.wrapping_add(1);
        (self.static_since, self.dynamic_since) = (next, next);
    }
}

/// The greatest common divisor.
const fn common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
