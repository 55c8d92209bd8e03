//! Window-based encoding of least significant bits (W-LSB, RFC 3095 §4.5.1 and §4.5.2), and numbers
//! of self-describing variable length (SDVL, §4.5.6).

/// The offset of the interpretation interval: `k` bits mean a value from `reference − p(k)` to
/// `reference − p(k) + 2^k − 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    /// RTP sequence numbers (§5.7).
    RtpSequence,
    /// RTP timestamps (§5.7).
    Timestamp,
    /// Sequence numbers that the compressor counts itself (§5.11.1).
    Counted,
    /// Offsets of the IP-ID (§4.5.5).
    IpId,
    /// A number that the format of a packet gives (`lsb` of RFC 4997); −1 is [`u32::MAX`].
    Fixed(u32),
}

impl Shift {
    /// p(k), modulo 2³².
    const fn offset(self, bits: u32) -> u32 {
        match self {
            Self::RtpSequence if bits <= 4 => 1,
            Self::RtpSequence => (1 << (bits - 5)) - 1,
            Self::Timestamp if bits <= 2 => 0,
            Self::Timestamp if bits > 32 => (1 << 30) - 1,
            Self::Timestamp => (1 << (bits - 2)) - 1,
            Self::Counted => u32::MAX,
            Self::IpId => 0,
            Self::Fixed(offset) => offset,
        }
    }
}

/// A field of 8, 16 or 32 bits: what it wraps around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// 8 bits.
    Eight,
    /// 16 bits.
    Sixteen,
    /// 32 bits.
    ThirtyTwo,
}

impl Width {
    const fn mask(self) -> u32 {
        match self {
            Self::Eight => 0xff,
            Self::Sixteen => 0xffff,
            Self::ThirtyTwo => u32::MAX,
        }
    }

    const fn bits(self) -> u32 {
        match self {
            Self::Eight => 8,
            Self::Sixteen => 16,
            Self::ThirtyTwo => 32,
        }
    }
}

/// The `bits` lowest bits of `value`.
pub(crate) const fn low(value: u32, bits: u32) -> u32 {
    if bits >= 32 { value } else { value & ((1 << bits) - 1) }
}

/// The value whose lowest bits are `received`, by the last value.
pub(crate) const fn decode(reference: u32, received: u32, bits: u32, shift: Shift, width: Width) -> u32 {
    if bits >= width.bits() {
        return low(received, width.bits());
    }
    let start = reference.wrapping_sub(shift.offset(bits));
    start.wrapping_add(low(received.wrapping_sub(start), bits)) & width.mask()
}

/// The values that the decompressor may have as its reference, the latest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    values: Vec<u32>,
}

impl Window {
    /// Values that it keeps without acknowledgments. Each change is sent in as many packets, so
    /// that afterwards the decompressor's reference is one of them unless all were lost.
    pub(crate) const SIZE: usize = 4;

    /// Adds a value that was sent; older ones than [`Window::SIZE`] leave.
    pub(crate) fn push(&mut self, value: u32) {
        let leaving = (self.values.len() + 1).saturating_sub(Self::SIZE);
        self.values.drain(..leaving);
        self.values.push(value);
    }

    /// Adds a value that was sent; the others stay until one is acknowledged.
    pub(crate) fn push_unacknowledged(&mut self, value: u32) {
        self.values.push(value);
    }

    /// Forgets all but the latest `count`: the decompressor has received one of these.
    pub(crate) fn keep_latest(&mut self, count: usize) {
        self.values.drain(..self.values.len().saturating_sub(count));
    }

    /// The latest value.
    pub(crate) fn latest(&self) -> Option<u32> {
        self.values.last().copied()
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
    }

    pub(crate) fn values(&self) -> &[u32] {
        &self.values
    }

    /// Whether the decompressor derives `value` without any bits: all references are equal to it.
    pub(crate) fn is_constant(&self, value: u32) -> bool {
        !self.values.is_empty() && self.values.iter().all(|reference| *reference == value)
    }

    /// Whether `bits` bits of `value` are decoded correctly with every reference.
    pub(crate) fn fits(&self, value: u32, bits: u32, shift: Shift, width: Width) -> bool {
        !self.values.is_empty()
            && self
                .values
                .iter()
                .all(|reference| decode(*reference, low(value, bits), bits, shift, width) == value & width.mask())
    }
}

/// Lengths of an SDVL number, in bits of value.
pub(crate) const SDVL_BITS: [u32; 4] = [7, 14, 21, 29];

/// Appends `value` in the shortest form of at least `bits` bits.
pub(crate) fn push_sdvl(out: &mut Vec<u8>, value: u32, bits: u32) {
    debug_assert!(value < 1 << 29 && low(value, bits) == value);
    match bits {
        0..=7 => out.push(value as u8),
        8..=14 => out.extend_from_slice(&(0x8000 | value as u16).to_be_bytes()),
        15..=21 => out.extend_from_slice(&(0xc0_0000 | value).to_be_bytes()[1..]),
        _ => out.extend_from_slice(&(0xe000_0000 | value).to_be_bytes()),
    }
}

/// The bits that `value` needs as SDVL.
pub(crate) fn sdvl_bits(value: u32) -> Option<u32> {
    SDVL_BITS.into_iter().find(|bits| low(value, *bits) == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        // RFC 3095 §4.5.1: with p = 0 and k = 4, reference 151 covers 151 to 166.
        let of = |value| decode(151, low(value, 4), 4, Shift::IpId, Width::Sixteen);
        assert_eq!((of(151), of(166), of(167), of(150)), (151, 166, 151, 166));
        // The RTP sequence number tolerates one step back with four bits.
        assert_eq!(decode(10, 9, 4, Shift::RtpSequence, Width::Sixteen), 9);
        assert_eq!(decode(10, low(24, 4), 4, Shift::RtpSequence, Width::Sixteen), 24);
        assert_eq!(decode(0xffff, 2, 4, Shift::RtpSequence, Width::Sixteen), 2, "wraps");
        assert_eq!(decode(10, low(26, 4), 4, Shift::Counted, Width::Sixteen), 26);
    }

    #[test]
    fn a_window_admits_what_every_reference_decodes() {
        let mut window = Window::default();
        assert!(!window.fits(5, 16, Shift::IpId, Width::Sixteen), "no reference yet");
        [151, 152, 163].into_iter().for_each(|value| window.push(value));
        // RFC 3095 §4.5.2: 167 needs five bits, though four would do for the last reference.
        assert!(!window.fits(167, 4, Shift::IpId, Width::Sixteen));
        assert!(window.fits(167, 5, Shift::IpId, Width::Sixteen));
    }

    #[test]
    fn variable_lengths() {
        for (value, bits) in [(0, 7), (127, 7), (128, 14), (0x3fff, 14), (0x4000, 21), (1 << 21, 29)] {
            assert_eq!(sdvl_bits(value), Some(bits));
            let mut out = Vec::new();
            push_sdvl(&mut out, value, bits);
            assert_eq!(crate::reader::Reader::new(&out).sdvl(), Ok((value, bits)));
        }
        assert_eq!(sdvl_bits(1 << 29), None);
    }
}
