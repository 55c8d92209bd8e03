//! What upper layers make of a packet before it is cut into PDUs.

/// How upper layers frame a packet: in one piece, or in segments that each have a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bytes of a packet that the first segment has room for.
    pub first_room: u32,
    /// Bytes put on it.
    pub first_overhead: u32,
    /// Bytes of a packet that each other segment has room for, at least one.
    pub next_room: u32,
    /// Bytes put on each of these.
    pub next_overhead: u32,
}

impl Framing {
    /// In one piece, with this number of bytes added.
    pub const fn whole(overhead: u32) -> Self {
        Self { first_room: u32::MAX, first_overhead: overhead, next_room: u32::MAX, next_overhead: 0 }
    }

    /// The bytes of a packet with all that is put on it.
    #[inline]
    pub const fn bytes(&self, size: u32) -> u32 {
        let more = size.saturating_sub(self.first_room).div_ceil(self.next_room);
        size.saturating_add(self.first_overhead).saturating_add(more.saturating_mul(self.next_overhead))
    }
}
