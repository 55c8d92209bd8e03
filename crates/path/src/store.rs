//! The packet buffer of the simulator or the emulator, as the path uses it.

use airpath_core::{Direction, Dropped, Instant, Packet, SegmentLookup, Slot};

/// Contents of a packet that a middlebox creates.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Contents<'a> {
    /// Headers and payload of the packet at this slot.
    CopyOf(Slot),
    /// A whole IP packet.
    Bytes(&'a [u8]),
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
}
