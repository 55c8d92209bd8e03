//! The context of one flow at the compressor (RFC 6846 §5.2).

use super::item_table::ItemTable;
use super::options::List;
use crate::feedback::{Acknowledgement, Feedback};
use crate::framework::{Config, Mode};
use crate::header::Header;
use crate::ip_id::{Change, Constants, IdBehavior, IdTracker};
use crate::lsb::Window;
use crate::refresh::{Due, REPEATS, Refresh};
use crate::scaling::common_divisor;

/// Steps of the acknowledgment number after which the stride is chosen.
const STRIDE_STEPS: u32 = 8;
/// The longest step in strides: four lost packets with steps of three are within the interval of
/// the scaled number, lsb(4, 3).
const LONGEST_STEP: u32 = 3;

/// The context.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(super) header: Header,
    refresh: Refresh,
    /// The master sequence number, counted on over its wraps.
    pub(super) msn: u32,
    pub(super) id: IdTracker,
    pub(super) stride: Stride,
    /// Whether the irregular chain has bits of ECN.
    pub(super) ecn_used: bool,
    pub(super) references: References,
    pub(super) options: ItemTable,
    is_new: bool,
    /// The first packets are still being sent, and no feedback has rejected them.
    is_replicable: bool,
    /// The decompressor has acknowledged the whole context, and has not reported it as damaged
    /// since.
    is_acknowledged: bool,
}

/// A context that others are replicated from, and its identifier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base<'a> {
    pub(crate) cid: u16,
    pub(crate) context: &'a Context,
}

/// The values of the packets sent last. The decompressor has one of them as its reference.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    pub(super) msn: Window,
    /// The IP-ID less the master sequence number, while the IP-ID is sequential.
    pub(super) offset: Window,
    pub(super) sequence: Window,
    pub(super) payload: Window,
    pub(super) acknowledgment: Window,
    pub(super) stride: Window,
    pub(super) window: Window,
    pub(super) ttl: Window,
    pub(super) dscp: Window,
    pub(super) dont_fragment: Window,
    pub(super) urgent: Window,
    pub(super) urgent_pointer: Window,
    pub(super) ecn_used: Window,
    pub(super) id_behavior: Window,
}

impl References {
    /// The first of the last `count` packets has arrived.
    fn acknowledge(&mut self, count: usize) {
        let Self {
            msn,
            offset,
            sequence,
            payload,
            acknowledgment,
            stride,
            window,
            ttl,
            dscp,
            dont_fragment,
            urgent,
            urgent_pointer,
            ecn_used,
            id_behavior,
        } = self;
        let all = [msn, offset, sequence, payload, acknowledgment, stride, window, ttl, dscp, dont_fragment];
        let others = [urgent, urgent_pointer, ecn_used, id_behavior];
        all.into_iter().chain(others).for_each(|window| window.keep_latest(count));
    }
}

/// The unit of the scaled acknowledgment number: the common divisor of its last steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stride {
    pub(super) value: u16,
    steps: u32,
    divisor: u32,
    longest: u32,
}

impl Stride {
    fn observe(&mut self, step: u32) {
        // A step back is a packet that was overtaken.
        if step == 0 || step > u32::MAX / 2 {
            return;
        }
        self.steps += 1;
        self.divisor = common_divisor(self.divisor, step);
        self.longest = self.longest.max(step);
        if self.steps < STRIDE_STEPS {
            return;
        }
        let Self { divisor, longest, .. } = *self;
        let is_covered = self.value > 0 && divisor % u32::from(self.value) == 0;
        if let Ok(divisor) = u16::try_from(divisor)
            && !is_covered
            && longest <= LONGEST_STEP * u32::from(divisor)
        {
            self.value = divisor;
        }
        *self = Self { value: self.value, ..Self::default() };
    }
}

impl Context {
    /// One for the flow of this packet. `msn` is the master sequence number of the first packet.
    pub(crate) fn new(header: &Header, msn: u32) -> Self {
        let mut id = IdTracker::default();
        if header.is_v4() && header.id() == 0 {
            id.set(IdBehavior::Constant);
        }
        Self {
            header: *header,
            refresh: Refresh::new(msn, REPEATS),
            msn,
            id,
            stride: Stride::default(),
            ecn_used: header.tos() & 0x03 != 0 || header.tcp_ecn() != 0,
            references: References::default(),
            options: ItemTable::default(),
            is_new: true,
            is_replicable: true,
            is_acknowledged: false,
        }
    }

    /// Whether its next packet may be IR-CR.
    pub(crate) const fn is_replicable(&self) -> bool {
        self.is_replicable
    }

    /// How many ports the context has in common with `header`, the next packet of a new context;
    /// `None` if that cannot be replicated from this one.
    pub(crate) fn common_ports(&self, new: &Self, header: &Header) -> Option<usize> {
        let fits = self.is_acknowledged && self.header.is_same_path(header) && self.can_replicate(new, header);
        let common = self.header.ports().chunks(2).zip(header.ports().chunks(2));
        fits.then(|| common.filter(|(one, other)| one == other).count())
    }

    pub(crate) fn matches(&self, header: &Header) -> bool {
        self.header.is_same_flow(header)
    }

    /// The master sequence number of the next packet, which goes on if the context identifier is
    /// used for another flow (RFC 6846 §6.1.1).
    pub(crate) const fn next_msn(&self) -> u32 {
        self.msn.wrapping_add(1)
    }

    /// Appends the ROHC header of the next packet, which has `payload` bytes behind its headers.
    /// The first packets of the context are replicated from `base`, if there is one.
    pub(crate) fn send(
        &mut self,
        config: &Config,
        cid: u16,
        base: Option<Base<'_>>,
        header: &Header,
        payload: usize,
        out: &mut Vec<u8>,
    ) {
        if let Some(base) = base.filter(|_| self.is_new) {
            self.stride.value = base.context.stride.value;
        }
        let list = self.advance(header);
        let mut parts = self.refresh.next();
        self.is_replicable &= parts == Due::Static;
        match parts {
            Due::Static => match base.filter(|_| self.is_replicable) {
                Some(base) => self.push_ir_cr(config, cid, base, header, &list, out),
                None => self.push_ir(config, cid, header, &list, out),
            },
            Due::Dynamic => self.push_ir_dyn(config, cid, header, &list, out),
            Due::Changes => {
                if let Some(encoded) = self.push_compressed(config, cid, header, &list, payload as u32, out) {
                    self.options.sent(&list, header.tcp_options(), &encoded);
                } else {
                    self.push_ir_dyn(config, cid, header, &list, out);
                    parts = Due::Dynamic;
                }
            }
        }
        if parts != Due::Changes {
            self.options.sent_all(&list, header.tcp_options());
        }
        self.refresh.sent(parts);
        self.update_references(header, payload as u32);
        self.header = *header;
        self.is_new = false;
    }

    /// Takes up sequence number, options and behaviours of the next packet.
    fn advance(&mut self, header: &Header) -> List {
        let list = self.options.advance(header.tcp_options());
        if self.is_new {
            return list;
        }
        self.msn = self.msn.wrapping_add(1);
        let last = &self.header;
        // An IP-ID that is always zero is never sent.
        let is_immediate = self.refresh.is_static_due() || self.id.behavior == IdBehavior::Constant;
        if self.id.update(Constants::Zero, last, header, is_immediate) == Change::Behavior {
            self.references.offset.clear();
        }
        let ecn = |header: &Header| (header.tos() & 0x03, header.tcp_ecn(), header.tcp_reserved());
        self.ecn_used |= ecn(last) != ecn(header);
        if header.has_acknowledgment() && last.has_acknowledgment() {
            self.stride.observe(header.acknowledgment().wrapping_sub(last.acknowledgment()));
        }
        list
    }

    fn update_references(&mut self, header: &Header, payload: u32) {
        let offset = self.id.behavior.has_offset(header).then(|| self.id_offset(header));
        let references = &mut self.references;
        references.msn.push(self.msn & 0xffff);
        if let Some(offset) = offset {
            references.offset.push(offset);
        }
        references.sequence.push(header.tcp_sequence());
        references.payload.push(payload);
        references.acknowledgment.push(header.acknowledgment());
        references.stride.push(u32::from(self.stride.value));
        references.window.push(u32::from(header.tcp_window()));
        references.ttl.push(u32::from(header.ttl()));
        references.dscp.push(u32::from(header.tos() >> 2));
        references.dont_fragment.push(u32::from(header.dont_fragment()));
        references.urgent.push(u32::from(header.urgent()));
        references.urgent_pointer.push(u32::from(header.urgent_pointer()));
        references.ecn_used.push(u32::from(self.ecn_used));
        references.id_behavior.push(u32::from(self.id.behavior.number(header)));
    }

    /// The offset of a sequential IP-ID.
    pub(super) fn id_offset(&self, header: &Header) -> u32 {
        u32::from(self.id.behavior.offset(header.id(), self.msn as u16))
    }

    /// Receives feedback.
    pub(crate) fn receive(&mut self, feedback: &Feedback) {
        // With a feedback channel the context is not repeated (RFC 6846 §5.2.1.2).
        if feedback.mode.is_some() {
            self.refresh.mode = Mode::Optimistic;
        }
        if feedback.acknowledgement != Acknowledgement::Ack {
            (self.is_replicable, self.is_acknowledged) = (false, false);
        }
        if let Some(age) = self.refresh.receive(feedback, self.msn) {
            self.is_acknowledged = true;
            // Later packets may have been lost.
            self.references.acknowledge(age as usize + 1);
            self.options.acknowledge(age + 1);
        }
    }
}
