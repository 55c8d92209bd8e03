//! What a connection sends and takes: headers and a payload length, without the payload.

use airpath_core::{Ecn, SegmentInfo};
use airpath_wire::tcp::TcpHeader;

/// One TCP segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// Its header.
    pub header: TcpHeader,
    /// Payload bytes.
    pub length: u32,
    /// ECN field of the packet that carries it.
    pub ecn: Ecn,
    /// The header in stream offsets, for the log.
    pub info: SegmentInfo,
}

impl Segment {
    /// Size of its packet, with an IP header of `ip_header` bytes.
    pub fn wire_size(&self, ip_header: u32) -> u32 {
        ip_header + self.header.wire_length() as u32 + self.length
    }
}

/// A place in the sequence space, counted from the SYN at 0 without wrapping: data byte `n` of the
/// stream lies at `n + 1`, the FIN behind the last.
pub type Position = u64;

/// Translates between positions and the sequence numbers of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbering {
    initial: u32,
}

impl Numbering {
    /// With `initial` as the number of the SYN.
    pub const fn new(initial: u32) -> Self {
        Self { initial }
    }

    /// The sequence number of `position`.
    pub const fn number(self, position: Position) -> u32 {
        self.initial.wrapping_add(position as u32)
    }

    /// The position of `number` that is nearest to `near`; `None` if it lies before the SYN.
    pub const fn position(self, number: u32, near: Position) -> Option<Position> {
        let distance = number.wrapping_sub(self.number(near)) as i32;
        near.checked_add_signed(distance as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive_the_wrap() {
        let numbering = Numbering::new(u32::MAX - 5);
        for position in [0, 3, 6, 7, 1 << 32, (1 << 33) + 17] {
            assert_eq!(numbering.position(numbering.number(position), position.saturating_sub(1000)), Some(position));
            assert_eq!(numbering.position(numbering.number(position), position + 1000), Some(position));
        }
        assert_eq!(numbering.position(u32::MAX - 6, 0), None);
    }
}
