//! The IR-CR packet (RFC 6846 §7.2): a new context as what differs from that of another flow, the
//! base context (RFC 4164).
//!
//! RFC 4164 leaves the choice of the base context to the compressor. Here it has the same
//! addresses, and the decompressor has acknowledged it; so without feedback, nothing is replicated.
//! A context is not its own base. After a negative acknowledgement the compressor sends IR packets.

use super::compressor::{Base, Context};
use super::emit::push_changed;
use super::formats::Lsb;
use super::options::List;
use super::reset_syn_fin_index;
use crate::crc::Crc;
use crate::framework::{Config, IR};
use crate::header::Header;
use crate::ip_id::IdBehavior;
use crate::lsb::{Width, low};

/// Eight bits of a port (port_replicate).
pub(super) const PORT: Lsb = Lsb::new(8, 64, Width::Sixteen);

/// What the replicate chain has of a port (port_replicate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortPresence {
    /// Nothing: it is that of the base context.
    Static,
    /// Its eight lowest bits.
    Lowest,
    /// All of it.
    Whole,
}

impl PortPresence {
    /// What these two bits mean.
    pub(super) const fn of(bits: u8) -> Option<Self> {
        match bits & 0x03 {
            0 => Some(Self::Static),
            1 => Some(Self::Lowest),
            2 => Some(Self::Whole),
            _ => None,
        }
    }
}

impl Context {
    /// Whether the replicate chain can carry what differs between this context and `header`, the
    /// next packet of `new`.
    pub(super) fn can_replicate(&self, new: &Self, header: &Header) -> bool {
        // It has no hop limit of IPv6, and without ECN in use none of the flags next to the data
        // offset.
        let has_hop_limit = header.is_v4() || self.references.ttl.is_constant(u32::from(header.ttl()));
        let has_flags = new.ecn_used
            || self.references.ecn_used.is_constant(0)
                && (self.header.tcp_ecn(), self.header.tcp_reserved()) == (header.tcp_ecn(), header.tcp_reserved());
        has_hop_limit && has_flags && reset_syn_fin_index(header.reset_syn_fin()).is_some()
    }

    /// An IR-CR packet (RFC 6846 §7.2).
    pub(super) fn push_ir_cr(
        &self,
        config: &Config,
        cid: u16,
        base: Base<'_>,
        header: &Header,
        list: &List,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        config.begin(out, cid, IR);
        out.push(header.profile.octet());
        let crc = out.len();
        out.push(0);
        // B: the identifier of the base context follows.
        out.push(0x80 | header.crc(Crc::Seven));
        config.push_base(out, base.cid);
        self.push_replicate(base.context, header, list, out);
        out[crc] = Crc::Eight.of(&out[start..]);
    }

    /// The replicate chain: `ipv4_innermost_replicate` or `ipv6_replicate`, and `tcp_replicate`.
    fn push_replicate(&self, base: &Self, header: &Header, list: &List, out: &mut Vec<u8>) {
        let references = &base.references;
        if header.is_v4() {
            let behavior = self.id.behavior;
            let has_ttl = !references.ttl.is_constant(u32::from(header.ttl()));
            let id = behavior.number(header);
            out.push(id << 2 | u8::from(has_ttl) << 1 | u8::from(header.dont_fragment()));
            out.push(header.tos());
            if behavior != IdBehavior::Constant {
                out.extend_from_slice(&header.id().to_be_bytes());
            }
            if has_ttl {
                out.push(header.ttl());
            }
        } else {
            out.push(header.tos());
            match header.flow_label() {
                [0, 0, 0] => out.push(0),
                [high, middle, low] => out.extend_from_slice(&[0x10 | high, middle, low]),
            }
        }
        let mut fields = Vec::with_capacity(24);
        fields.extend_from_slice(&(self.msn as u16).to_be_bytes());
        fields.extend_from_slice(&header.tcp_sequence().to_be_bytes());
        let [source, destination] = [0, 2].map(|at| push_port(&base.header, header, at, &mut fields) as u8);
        let window = push_changed(&references.window, header.tcp_window(), &mut fields);
        let urgent_pointer = push_changed(&references.urgent_pointer, header.urgent_pointer(), &mut fields);
        let has_acknowledgment = !references.acknowledgment.is_constant(header.acknowledgment());
        if has_acknowledgment {
            fields.extend_from_slice(&header.acknowledgment().to_be_bytes());
        }
        if self.ecn_used {
            fields.push(header.tcp_reserved() << 2 | header.tcp_ecn());
        }
        fields.extend_from_slice(&header.tcp_checksum().to_be_bytes());
        let stride = push_changed(&references.stride, self.stride.value, &mut fields);
        let reset_syn_fin = reset_syn_fin_index(header.reset_syn_fin()).expect("the base context was chosen for it");
        out.extend_from_slice(&[
            // A list always follows: few flows have that of their base context.
            u8::from(window) << 6 | 0x20 | source << 3 | destination << 1 | u8::from(stride),
            u8::from(has_acknowledgment) << 7
                | u8::from(urgent_pointer) << 6
                | u8::from(header.urgent()) << 5
                | u8::from(header.has_acknowledgment()) << 4
                | u8::from(header.push()) << 3
                | reset_syn_fin << 1
                | u8::from(self.ecn_used),
        ]);
        out.append(&mut fields);
        // All items, as in the dynamic chain: rohc 2.4 refuses those of the base context.
        self.options.push_all(list, header.tcp_options(), header.acknowledgment(), out);
    }
}

/// The port at `at`, as far as it differs from that of the base context.
fn push_port(base: &Header, header: &Header, at: usize, out: &mut Vec<u8>) -> PortPresence {
    let port = |header: &Header| u16::from_be_bytes([header.ports()[at], header.ports()[at + 1]]);
    let (old, new) = (port(base), port(header));
    let Lsb { bits, shift, width } = PORT;
    if new == old {
        return PortPresence::Static;
    }
    let decoded = crate::lsb::decode(old.into(), low(new.into(), bits), bits, shift, width);
    // rohc 2.4 completes it by the high octet of the base context: both are to be right.
    if decoded == u32::from(new) && new >> 8 == old >> 8 {
        out.push(new as u8);
        return PortPresence::Lowest;
    }
    out.extend_from_slice(&new.to_be_bytes());
    PortPresence::Whole
}
