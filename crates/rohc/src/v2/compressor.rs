//! The context of one flow at the compressor (RFC 5225 §5.2.1).

use super::chains::{push_dynamic, push_irregular, push_static};
use super::formats::{Format, formats};
use super::reference::{DEFAULT_STRIDE, Fields, Reference};
use super::{CO_COMMON, CO_REPAIR, LATE, ReorderRatio, common, is_before};
use crate::crc::Crc;
use crate::feedback::Feedback;
use crate::framework::{Config, IR, Mode};
use crate::header::Header;
use crate::ip_id::{Constants, IdBehavior, IdTracker};
use crate::lsb::low;
use crate::profile::Profile;
use crate::refresh::{Due, Refresh};
use crate::stride::Stride;

/// The context.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    header: Header,
    refresh: Refresh,
    /// The master sequence number, counted on over its wraps.
    msn: u32,
    ratio: ReorderRatio,
    id: IdTracker,
    stride: Stride,
    /// What the packets sent last have established, the latest last. The decompressor has one of
    /// them.
    references: Vec<Reference>,
    is_new: bool,
}

/// The header of a compressed packet.
enum Compressed {
    Format(&'static Format, Fields),
    Common(Fields),
}

impl Context {
    /// One for the flow of this packet. Without RTP, `msn` is its master sequence number.
    pub(crate) fn new(header: &Header, ratio: ReorderRatio, msn: u16) -> Self {
        let mut id = IdTracker::default();
        if header.is_v4() && header.id() == 0 {
            id.set(IdBehavior::Constant);
        }
        let msn = u32::from(if header.profile == Profile::Rtp { header.sequence() } else { msn });
        Self {
            header: *header,
            refresh: Refresh::new(msn, ratio.repeats()),
            msn,
            ratio,
            id,
            stride: Stride::default(),
            references: Vec::new(),
            is_new: true,
        }
    }

    pub(crate) fn matches(&self, header: &Header) -> bool {
        self.header.is_same_flow(header)
    }

    /// Appends the ROHC header of the next packet, which has `payload` bytes behind its headers.
    pub(crate) fn send(&mut self, config: &Config, cid: u16, header: &Header, payload: usize, out: &mut Vec<u8>) {
        self.advance(header);
        let target = self.target(header);
        let mut parts = self.refresh.next();
        // Packets of RTP that come out of order are not compressed: the decompressor refers to that
        // with the highest sequence number, or to any before this one.
        let latest = self.latest().filter(|latest| is_before(target.msn, latest.msn));
        if parts == Due::Changes && latest.is_some() {
            parts = Due::Dynamic;
        }
        match parts {
            Due::Static => push_ir(config, cid, &target, out),
            Due::Dynamic => push_repair(config, cid, &target, out),
            Due::Changes => match self.compressed(&target, payload) {
                Some(compressed) => compressed.push(config, cid, &target, out),
                None => {
                    push_repair(config, cid, &target, out);
                    parts = Due::Dynamic;
                }
            },
        }
        self.refresh.sent(parts);
        if let Some(latest) = latest {
            self.references.retain(|other| other.msn != latest.msn);
        }
        let leaving = (self.references.len() + 1).saturating_sub(self.ratio.repeats() as usize);
        self.references.drain(..leaving);
        self.references.push(target);
        // The highest sequence number stays, as if it had been sent last.
        self.references.extend(latest.filter(|latest| latest.msn.wrapping_sub(target.msn) <= LATE));
        self.header = *header;
        self.is_new = false;
    }

    /// What the packet with the highest sequence number has established.
    fn latest(&self) -> Option<Reference> {
        let latest =
            |latest: Reference, other: Reference| if is_before(latest.msn, other.msn) { other } else { latest };
        self.references.iter().copied().reduce(latest)
    }

    /// Takes up sequence number, stride and behaviour of the IP-ID of the next packet.
    fn advance(&mut self, header: &Header) {
        if self.is_new {
            return;
        }
        let step = if header.profile == Profile::Rtp {
            i32::from(header.sequence().wrapping_sub(self.msn as u16) as i16)
        } else {
            1
        };
        self.msn = self.msn.wrapping_add_signed(step);
        // An IP-ID that is always zero is never sent.
        let is_immediate = self.refresh.is_static_due() || self.id.behavior == IdBehavior::Constant;
        self.id.update(Constants::Zero, &self.header, header, is_immediate);
        if header.profile == Profile::Rtp {
            self.stride.update(self.header.timestamp(), header.timestamp());
        }
    }

    /// What the packet with this header establishes.
    fn target(&self, header: &Header) -> Reference {
        let mut target = Reference::new(*header);
        target.msn = self.msn as u16;
        target.ratio = self.ratio;
        target.has_checksum = header.udp_checksum() != 0;
        if header.is_v4() {
            target.id = self.id.behavior;
        }
        if header.profile == Profile::Rtp && self.stride.value != 0 {
            target.stride = self.stride.value;
        }
        debug_assert!(header.profile == Profile::Rtp || target.stride == DEFAULT_STRIDE);
        target
    }

    /// The smallest header that each reference restores; `None` if none does.
    fn compressed(&self, target: &Reference, payload: usize) -> Option<Compressed> {
        let is_same = |reference: &Reference, fields: &Fields| {
            let msn = reference.msn_of(fields);
            let restored = reference.restore(fields, msn, target.irregular(), payload);
            restored.is_ok_and(|restored| restored == *target)
        };
        let restores =
            |fields: &Fields| !self.references.is_empty() && self.references.iter().all(|last| is_same(last, fields));
        let formats = formats(target.header.profile, target.id.has_offset(&target.header));
        let fitting = formats.iter().find_map(|format| {
            let fields = format.fields(target).filter(&restores)?;
            Some(Compressed::Format(format, fields))
        });
        fitting.or_else(|| common::fields(target, &self.references, restores).map(Compressed::Common))
    }

    /// Receives feedback.
    pub(crate) fn receive(&mut self, feedback: &Feedback) {
        // With a feedback channel the context is not repeated (§5.2.1).
        if feedback.mode.is_some() {
            self.refresh.mode = Mode::Optimistic;
        }
        let acknowledged = self.refresh.receive(feedback, self.msn);
        if let (Some(_), Some((value, bits))) = (acknowledged, feedback.sequence) {
            let is_acknowledged = |reference: &Reference| low(u32::from(reference.msn), bits) == low(value, 16);
            // Later packets may have been lost, or come before.
            if let Some(index) = self.references.iter().rposition(is_acknowledged) {
                self.references.drain(..index);
            }
        }
    }
}

impl Compressed {
    fn push(&self, config: &Config, cid: u16, target: &Reference, out: &mut Vec<u8>) {
        match self {
            Self::Format(format, fields) => format.push(fields, config, cid, out),
            Self::Common(fields) => {
                config.begin(out, cid, CO_COMMON);
                common::push(target, fields, out);
            }
        }
        push_irregular(target, out);
    }
}

/// Appends an IR packet (§6.8.2.1).
fn push_ir(config: &Config, cid: u16, target: &Reference, out: &mut Vec<u8>) {
    let start = out.len();
    config.begin(out, cid, IR | 1);
    out.extend_from_slice(&[target.header.profile.octet(), 0]);
    let crc_at = out.len() - 1;
    push_static(&target.header, out);
    push_dynamic(target, out);
    out[crc_at] = Crc::Eight.of(&out[start..]);
}

/// Appends a `co_repair` packet (§6.8.2.2): the dynamic chain.
fn push_repair(config: &Config, cid: u16, target: &Reference, out: &mut Vec<u8>) {
    config.begin(out, cid, CO_REPAIR);
    out.extend_from_slice(&[target.crc(Crc::Seven), target.control_crc()]);
    push_dynamic(target, out);
}
