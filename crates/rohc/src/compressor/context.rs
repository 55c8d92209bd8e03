//! The context of one flow at the compressor: what the decompressor may have, and what it must be
//! sent again.

use super::updates::{Sent, Updates};
use crate::framework::Config;
use crate::header::Header;
use crate::ip_id::{Change, Constants, IdBehavior, IdTracker};
use crate::lsb::Window;
use crate::profile::Profile;
use crate::refresh::{Due, REPEATS, Refresh};
use crate::stride::{Stride, StrideChange};

/// The context.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) header: Header,
    pub(super) refresh: Refresh,
    /// The sequence number, counted on over its wraps.
    pub(super) sequence: u32,
    pub(super) stride: Stride,
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
            refresh: Refresh::new(sequence, REPEATS),
            sequence,
            stride: Stride::default(),
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
        let constants = if header.profile == Profile::Ip { Constants::All } else { Constants::None };
        match self.id.update(constants, last, header, self.refresh.is_static_due()) {
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
        let change = self.stride.update(last, timestamp);
        if change == StrideChange::Stride {
            self.scaled.clear();
            self.excess.clear();
        }
        change != StrideChange::None
    }

    /// The timestamp in strides.
    pub(super) fn scaled_timestamp(&self, header: &Header) -> u32 {
        header.timestamp() / self.stride.value.max(1)
    }

    /// What the timestamp is more than a stride for each packet.
    pub(super) fn excess(&self, header: &Header) -> u32 {
        header.timestamp().wrapping_sub(self.sequence.wrapping_mul(self.stride.value))
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
        self.id.behavior.has_offset(header)
    }
}
