//! The context of one flow at the compressor: what the decompressor may have, and what it must be
//! sent again.

use super::updates::{Sent, Updates};
use crate::framework::Config;
use crate::header::Header;
use crate::ip_id::{Change, IdBehavior, IdTracker};
use crate::lsb::Window;
use crate::profile::Profile;
use crate::refresh::{Due, Refresh};
use crate::scaling::common_divisor;

/// Steps of the timestamp after which a longer stride is chosen, if all are multiples of it.
const GROWTH_STEPS: u32 = 32;
/// The longest stride that a packet carries (29 bits).
const LONGEST_STRIDE: u32 = 1 << 29;

/// The context.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) header: Header,
    pub(super) refresh: Refresh,
    /// The sequence number, counted on over its wraps.
    pub(super) sequence: u32,
    /// How much the timestamp grows with the sequence number; 0 while it is constant.
    pub(super) stride: u32,
    /// Timestamps that were no multiple of the stride from the last one.
    misfits: u8,
    /// Steps of the timestamp since the last review of the stride, and their common divisor.
    steps: u32,
    divisor: u32,
    pub(super) id: IdTracker,
    /// Of the packets sent last: sequence number, timestamp by stride, what the timestamp is more
    /// than strides for each packet, and offset of the IP-ID.
    pub(super) sequences: Window,
    pub(super) scaled: Window,
    pub(super) excess: Window,
    pub(super) offsets: Window,
    /// In reliable mode, the packets to which these belong.
    pub(super) updates: Updates,
    is_new: bool,
}

impl Context {
    /// One for the flow of this packet.
    pub(super) fn new(header: &Header) -> Self {
        let sequence = if header.profile == Profile::Rtp { u32::from(header.sequence()) } else { 0 };
        Self {
            header: *header,
            refresh: Refresh::new(sequence),
            sequence,
            stride: 0,
            misfits: 0,
            steps: 0,
            divisor: 0,
            id: IdTracker::default(),
            sequences: Window::default(),
            scaled: Window::default(),
            excess: Window::default(),
            offsets: Window::default(),
            updates: Updates::default(),
            is_new: true,
        }
    }

    pub(super) fn matches(&self, header: &Header) -> bool {
        self.header.is_same_flow(header)
    }

    /// Appends the ROHC header of the next packet.
    pub(super) fn send(&mut self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) {
        self.advance(header);
        let mut parts = self.refresh.next();
        let waits = self.refresh.waits();
        let mut sent = Some(Sent::Update { has_mode: self.has_mode() });
        match parts {
            Due::Static => self.push_ir(config, cid, header, out),
            Due::Dynamic => self.push_ir_dyn(config, cid, header, out),
            Due::Changes => {
                sent = if waits {
                    self.push_reliable(config, cid, header, out)
                } else {
                    self.push_compressed(config, cid, header, out).then_some(Sent::Other)
                };
                if sent.is_none() {
                    self.push_ir_dyn(config, cid, header, out);
                    parts = Due::Dynamic;
                }
            }
        }
        self.refresh.sent(parts);
        if waits {
            self.note(parts, sent.unwrap_or(Sent::Update { has_mode: self.has_mode() }), header);
        } else {
            self.remember(header);
        }
        self.header = *header;
        self.is_new = false;
    }

    /// Adds the values of a packet to the windows.
    fn remember(&mut self, header: &Header) {
        self.sequences.push(self.sequence & 0xffff);
        if header.profile == Profile::Rtp {
            self.scaled.push(self.scaled_timestamp(header));
            self.excess.push(self.excess(header));
        }
        self.offsets.push(self.id_offset(header));
    }

    /// Takes up sequence number, stride and behaviour of the IP-ID of the next packet, and notes
    /// what compressed packets cannot carry.
    fn advance(&mut self, header: &Header) {
        if self.is_new {
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
        let mut is_changed = self.update_id(&last, header);
        if header.profile == Profile::Rtp {
            is_changed |= self.update_stride(last.timestamp(), header.timestamp());
            is_changed |= header.rtp_flags() != last.rtp_flags() || header.payload_type() != last.payload_type();
        }
        is_changed |= (header.tos(), header.ttl(), header.dont_fragment())
            != (last.tos(), last.ttl(), last.dont_fragment())
            || (header.udp_checksum() == 0) != (last.udp_checksum() == 0)
            || header.protocol() != last.protocol();
        if is_changed {
            self.refresh.change(self.sequence);
        }
    }

    /// Whether the behaviour of the IP-ID has changed, or a compressed packet cannot carry it.
    fn update_id(&mut self, last: &Header, header: &Header) -> bool {
        // The first packets carry the whole context anyway.
        match self.id.update(last, header, self.refresh.is_static_due()) {
            Change::Behavior => {
                self.offsets.clear();
                true
            }
            // A compressed packet does not carry the IP-ID that should not change.
            Change::Exception => self.id.behavior == IdBehavior::Constant,
            Change::None => false,
        }
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
        if self.has_sequential_id(header) {
            u32::from(self.id.behavior.offset(header.id(), self.sequence as u16))
        } else {
            0
        }
    }

    /// Whether the IP-ID is derived from the sequence number.
    pub(super) fn has_sequential_id(&self, header: &Header) -> bool {
        header.is_v4() && matches!(self.id.behavior, IdBehavior::Sequential | IdBehavior::Swapped)
    }
}
