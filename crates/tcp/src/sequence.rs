//! Sequence numbers that do not wrap.
//!
//! On the wire they are 32 bits and start anywhere. Inside, each direction counts from its SYN,
//! which is 0: the first byte of the stream is 1, and the FIN takes the number after the last byte.

/// A sequence number, or the point between two of them, counted from the SYN.
pub type Sequence = u64;

/// The sequence number of the first byte of the stream.
pub const FIRST_BYTE: Sequence = 1;

/// The wire format, where the SYN has the number `initial`.
#[inline]
pub const fn to_wire(initial: u32, sequence: Sequence) -> u32 {
    // Truncation is the wrapping of RFC 9293 §3.4.
    initial.wrapping_add(sequence as u32)
}

/// The number nearest to `near` whose wire format is `wire`; `None` if it lies before the SYN.
#[inline]
pub const fn from_wire(initial: u32, near: Sequence, wire: u32) -> Option<Sequence> {
    let distance = wire.wrapping_sub(to_wire(initial, near)).cast_signed();
    near.checked_add_signed(distance as i64)
}

/// The offset in the stream: the SYN lies at -1.
#[inline]
pub const fn to_offset(sequence: Sequence) -> i64 {
    sequence.cast_signed() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_wire() {
        for initial in [0, 1, 0x7fff_ffff, u32::MAX] {
            for sequence in [0_u64, 1, 1 << 31, (1 << 32) - 1, 1 << 32, 5_000_000_000] {
                for near in [sequence, sequence + 0x7fff_ffff, sequence.saturating_sub(0x7fff_ffff)] {
                    assert_eq!(from_wire(initial, near, to_wire(initial, sequence)), Some(sequence));
                }
            }
        }
        assert_eq!(from_wire(10, 0, 9), None);
    }
}
