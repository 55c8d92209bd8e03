//! TCP/IP header compression (Van Jacobson, RFC 1144): both ends keep the last header of each
//! connection, and the link carries the differences of the next one.
//!
//! After a lost frame the receiver adds differences to the wrong header, and the TCP checksums fail
//! there until a segment comes uncompressed. The compressor sends one uncompressed when TCP
//! retransmits or repeats an acknowledgement.

use airpath_core::{FlowId, Packet, SegmentInfo};

/// Connections that the compressor remembers (RFC 1144 §3.2.2: 16 by default).
const CONNECTIONS: usize = 16;

/// Bytes of IPv4 and TCP headers without options (RFC 791 §3.1, RFC 9293 §3.1).
pub const PLAIN_HEADERS: u32 = 40;

const SYN: u8 = 0x02;
const FIN_SYN_RST: u8 = 0x07;

/// Packet types of RFC 1144 §3.2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// TYPE_IP: sent as it is; neither end remembers the headers.
    Plain,
    /// UNCOMPRESSED_TCP: sent as it is; both ends remember the headers.
    Whole,
    /// COMPRESSED_TCP: the headers are sent as differences.
    Difference,
}

/// The headers that one connection sent last, in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct HeaderContext {
    last: Option<SegmentInfo>,
}

impl HeaderContext {
    /// Whether this segment in a packet of `size` bytes can be sent as the difference from the last
    /// one, which it replaces.
    fn is_difference(&mut self, size: u32, segment: &SegmentInfo) -> bool {
        let last = self.last.replace(*segment);
        // Options change with each segment (timestamps, SACK), and IPv6 is not compressed at all.
        let is_plain = size == PLAIN_HEADERS + segment.length;
        let Some(last) = last.filter(|_| is_plain) else { return false };
        // Differences are unsigned and have 16 bits.
        let fits = |from: i64, to: i64| (0..=0xffff).contains(&(to - from));
        let (ack, last_ack) = (segment.ack.get().unwrap_or(0), last.ack.get().unwrap_or(0));
        if !fits(last.offset, segment.offset) || !fits(last_ack, ack) {
            return false;
        }
        // Unchanged headers are a retransmission or a duplicate acknowledgement, except for data
        // after a pure acknowledgement (RFC 1144 §3.2.4).
        let is_same = (last.offset, last_ack, last.window) == (segment.offset, ack, segment.window);
        !is_same || (segment.length > 0 && last.length == 0)
    }
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Compressor {
    /// Bytes of a difference, instead of the 40 of IP and TCP header.
    compressed: u32,
    /// The connections that it remembers, the latest first.
    connections: Vec<(FlowId, HeaderContext)>,
}

impl Compressor {
    /// One that has sent nothing.
    pub const fn new(compressed: u32) -> Self {
        Self { compressed, connections: Vec::new() }
    }

    /// Forgets all connections.
    pub fn restart(&mut self) {
        self.connections.clear();
    }

    /// The form in which it sends `packet` with this TCP header, and the packet's size in that
    /// form.
    pub fn compress(&mut self, packet: &Packet, segment: Option<&SegmentInfo>) -> (Form, u32) {
        let known = self.connections.iter().position(|(flow, _)| *flow == packet.flow);
        let compressible = segment.filter(|segment| segment.flags & FIN_SYN_RST == 0 && segment.ack.get().is_some());
        let Some(segment) = compressible else {
            // A segment that opens a connection has no predecessor, and neither has the one that
            // follows it.
            if let Some(index) = known
                && segment.is_some_and(|segment| segment.flags & SYN != 0)
            {
                self.connections[index].1 = HeaderContext::default();
            }
            return (Form::Plain, packet.size);
        };
        let mut context = known.map(|index| self.connections.remove(index).1).unwrap_or_default();
        let is_difference = context.is_difference(packet.size, segment);
        self.connections.insert(0, (packet.flow, context));
        self.connections.truncate(CONNECTIONS);
        if is_difference {
            (Form::Difference, (packet.size + self.compressed).saturating_sub(PLAIN_HEADERS))
        } else {
            (Form::Whole, packet.size)
        }
    }
}

/// The receiving end.
#[derive(Clone, Debug, Default)]
pub struct Decompressor {
    /// Connections that lost a packet and have received none uncompressed since.
    out_of_step: Vec<FlowId>,
}

impl Decompressor {
    /// Receives a packet; returns whether its headers are decoded correctly.
    pub fn receive(&mut self, flow: FlowId, form: Form) -> bool {
        match form {
            Form::Plain => true,
            Form::Whole => {
                self.out_of_step.retain(|other| *other != flow);
                true
            }
            Form::Difference => !self.out_of_step.contains(&flow),
        }
    }

    /// A packet was lost.
    pub fn lose(&mut self, flow: FlowId, form: Form) {
        if form != Form::Plain && !self.out_of_step.contains(&flow) {
            self.out_of_step.push(flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Ecn, Slot, UserId};

    use super::*;

    /// A compressor, and the stream offset of each flow's next segment.
    struct Sender(Compressor);

    impl Sender {
        fn send(&mut self, flow: u32, size: u32, segment: Option<SegmentInfo>) -> (Form, u32) {
            let flow = FlowId(flow);
            let packet = Packet { id: 0, size, flow, user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) };
            self.0.compress(&packet, segment.as_ref())
        }

        fn segment(&mut self, flow: u32, offset: i64, length: u32, ack: Option<i64>, flags: u8) -> Form {
            let segment = SegmentInfo { offset, length, ack: ack.into(), window: 8192, flags, retransmission: false };
            self.send(flow, PLAIN_HEADERS + length, Some(segment)).0
        }
    }

    #[test]
    fn a_connection_step_by_step() {
        let mut sender = Sender(Compressor::new(5));
        let mut next = |offset, length, ack, flags| sender.segment(1, offset, length, ack, flags);
        assert_eq!(next(-1, 0, None, 0x02), Form::Plain, "SYN");
        assert_eq!(next(0, 0, Some(0), 0x10), Form::Whole, "nothing precedes it");
        assert_eq!(next(0, 500, Some(0), 0x18), Form::Difference, "data after a pure acknowledgement");
        assert_eq!(next(500, 500, Some(0), 0x18), Form::Difference);
        assert_eq!(next(500, 500, Some(0), 0x18), Form::Whole, "a retransmission");
        assert_eq!(next(0, 500, Some(0), 0x18), Form::Whole, "a negative difference");
        assert_eq!(next(1000, 500, Some(70_000), 0x18), Form::Whole, "a difference of more than 16 bits");
        assert_eq!(next(1500, 0, Some(70_100), 0x10), Form::Difference);
        assert_eq!(next(1500, 0, Some(70_100), 0x10), Form::Whole, "a duplicate acknowledgement");
        assert_eq!(next(1500, 0, Some(70_100), 0x11), Form::Plain, "FIN");
        assert_eq!(next(-1, 0, None, 0x02), Form::Plain, "another connection with the same ports");
        assert_eq!(next(0, 0, Some(0), 0x10), Form::Whole, "nothing of it precedes it");
        let with_options = SegmentInfo { offset: 0, length: 10, ack: 0.into(), ..SegmentInfo::default() };
        assert_eq!(sender.send(1, 12 + PLAIN_HEADERS + 10, Some(with_options)).0, Form::Whole);
    }

    #[test]
    fn the_compressor_remembers_sixteen_connections() {
        let mut sender = Sender(Compressor::new(5));
        assert_eq!(sender.send(1, 808, None), (Form::Plain, 808), "not TCP");
        let data = |offset| Some(SegmentInfo { offset, length: 768, ack: 0.into(), ..SegmentInfo::default() });
        assert_eq!(sender.send(1, 808, data(0)), (Form::Whole, 808), "the first of its connection");
        assert_eq!(sender.send(1, 808, data(768)), (Form::Difference, 773));
        (2..18).for_each(|flow| assert_eq!(sender.segment(flow, 0, 1, Some(0), 0x10), Form::Whole));
        assert_eq!(sender.send(1, 808, data(1536)).0, Form::Whole, "16 others followed");
    }

    #[test]
    fn after_a_loss_only_uncompressed_packets_are_decoded() {
        let mut decompressor = Decompressor::default();
        let flow = FlowId(3);
        assert!(decompressor.receive(flow, Form::Difference));
        decompressor.lose(flow, Form::Difference);
        assert!(!decompressor.receive(flow, Form::Difference));
        assert!(decompressor.receive(FlowId(4), Form::Difference), "another connection");
        assert!(decompressor.receive(flow, Form::Plain));
        assert!(!decompressor.receive(flow, Form::Difference));
        assert!(decompressor.receive(flow, Form::Whole));
        assert!(decompressor.receive(flow, Form::Difference));
    }
}
