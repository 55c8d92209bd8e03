//! The packet buffer of the simulator or the emulator, as the path uses it.
//!
//! A middlebox that ends TCP connections ([`airpath_tcp::Connection`]) reads and creates segments.
//! Headers are exact under both clocks. Payload has two forms: the emulator has the bytes, and the
//! simulator only their number ([`Payload`]). A middlebox decides by headers alone and passes
//! payload on in the form in which it came. So it makes the same decisions under both clocks, and
//! also when a log of headers is replayed in the simulator.

use std::net::SocketAddr;
use std::ops::Range;

use airpath_core::{Direction, Dropped, FlowId, Instant, Packet, SegmentLookup, Slot};
use airpath_tcp::Segment;
use airpath_wire::icmp::IcmpError;

use crate::payload::Payload;
use crate::stream_buffer::StreamBuffer;

/// Contents of a packet that a middlebox creates.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Contents<'a> {
    /// Headers and payload of the packet at this slot.
    CopyOf(Slot),
    /// A whole IP packet.
    Bytes(&'a [u8]),
}

/// A TCP segment that a middlebox creates.
#[derive(Clone, Copy, Debug)]
pub struct NewSegment<'a> {
    /// Its connection.
    pub flow: FlowId,
    /// Its header. A segment that is longer than `segment_size` stands for consecutive ones.
    pub segment: &'a Segment,
    /// Payload bytes of a full segment.
    pub segment_size: u32,
    /// Its payload.
    pub payload: Payload<'a>,
    /// The buffer that has the payload, if the packet may share its memory.
    pub buffer: Option<&'a StreamBuffer>,
}

/// The owner of what packets carry. It gives out a slot for each packet and takes the slot back
/// when the packet leaves the network.
pub trait PacketStore: SegmentLookup {
    /// Takes back the slot of a packet that a hop dropped.
    fn take_dropped(&mut self, dropped: &Dropped);

    /// Takes back the slot of a packet that a middlebox absorbed.
    fn take_absorbed(&mut self, packet: &Packet);

    /// Stores the contents of a packet that a middlebox creates at `now`; `None` where this store
    /// cannot hold such contents.
    fn create(&mut self, now: Instant, direction: Direction, contents: Contents<'_>) -> Option<Slot>;

    /// The TCP segment at `slot` with its whole header; `None` if the packet is not TCP, or this
    /// store does not have its header.
    fn tcp_segment(&self, slot: Slot) -> Option<Segment> {
        let _ = slot;
        None
    }

    /// Number of packets on the wire for which the one at `slot` stands: a super-segment of the
    /// kernel may cross the network as one packet.
    fn packets(&self, slot: Slot) -> u32 {
        let _ = slot;
        1
    }

    /// Most payload bytes of a created segment that stands for several; `None` where each segment
    /// is a packet.
    fn most_payload(&self) -> Option<u32> {
        None
    }

    /// The payload of the TCP segment at `slot`.
    fn tcp_payload(&self, slot: Slot) -> Payload<'_> {
        let _ = slot;
        Payload::Counted
    }

    /// Takes out the memory with the payload of the TCP segment at `slot`, and where it is, if the
    /// memory belongs to this segment alone. The segment is then without payload.
    fn take_tcp_payload(&mut self, slot: Slot) -> Option<(Vec<u8>, Range<usize>)> {
        let _ = slot;
        None
    }

    /// Takes back memory that [`Self::take_tcp_payload`] has given out.
    fn give_back(&mut self, memory: Vec<u8>) {
        drop(memory);
    }

    /// The ICMP error at `slot` about a TCP segment of a flow, with a valid checksum; `None` if the
    /// packet is anything else.
    fn icmp_error(&self, slot: Slot) -> Option<(FlowId, IcmpError)> {
        let _ = slot;
        None
    }

    /// Stores a TCP segment that a middlebox creates at `now`. Returns its slot and the size of its
    /// IP packet; `None` where this store does not have the addresses of the flow.
    fn create_segment(&mut self, now: Instant, direction: Direction, new: NewSegment<'_>) -> Option<(Slot, u32)> {
        let _ = (now, direction, new);
        None
    }

    /// Begins a TCP flow of a middlebox: between the addresses of `flow` and with the port of its
    /// server, but with `port` at the mobile's address. `None` where this store has no addresses,
    /// or the mobile has used the port with this server.
    fn open_flow(&mut self, now: Instant, flow: FlowId, port: u16) -> Option<FlowId> {
        let _ = (now, flow, port);
        None
    }

    /// Begins a TCP flow of a middlebox from the mobile's address of `flow` and `port` to `server`.
    /// `None` where this store has no addresses, the mobile has used the port with this server, or
    /// the addresses have different IP versions.
    fn open_flow_to(&mut self, now: Instant, flow: FlowId, port: u16, server: SocketAddr) -> Option<FlowId> {
        let _ = (now, flow, port, server);
        None
    }

    /// The address and port of the server of a TCP flow; `None` where this store has no addresses.
    fn server_address(&self, flow: FlowId) -> Option<SocketAddr> {
        let _ = flow;
        None
    }

    /// A middlebox has ended the connection `flow` and will create no more segments of it.
    fn end_flow(&mut self, flow: FlowId) {
        let _ = flow;
    }
}
