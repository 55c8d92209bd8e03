//! How packets are put into PDUs, by technology and mode: the headers that they cost.

/// How packets are put into PDUs, and the bytes of headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framing {
    /// A PDU carries several packets.
    pub concatenates: bool,
    /// The header of a PDU that is no segment.
    pub whole: u32,
    /// The header of a segment that begins a unit.
    pub first_segment: u32,
    /// That of another segment.
    pub later_segment: u32,
    /// A subheader of the MAC with a length.
    pub mac_subheader: u32,
    /// The subheader of a new PDU.
    pub new_mac_subheader: u32,
}

impl Framing {
    /// LTE with sequence numbers of 10 bits (TS 36.322 §6.2.1.3 to §6.2.1.5). A subheader of the
    /// MAC has a length of 15 bits (TS 36.321 §6.1.2). The length is 7 bits below 128 bytes, and
    /// the last subheader has none; these savings are left out except for the new PDU, which fills
    /// the block.
    pub const LTE: Self = Self {
        concatenates: true,
        whole: 2,
        first_segment: 4,
        later_segment: 4,
        mac_subheader: 3,
        new_mac_subheader: 1,
    };

    /// NR in the acknowledged mode, with sequence numbers of 12 or 18 bits (TS 38.322 §6.2.2.4).
    /// The length in a subheader of the MAC has 16 bits (TS 38.321 §6.1.2); that it has 8 below 256
    /// bytes is left out.
    pub const fn nr_acknowledged(bits: u8) -> Self {
        let whole = if bits <= 12 { 2 } else { 3 };
        Self { first_segment: whole, later_segment: whole + 2, whole, ..Self::NR }
    }

    /// NR in the unacknowledged mode, with sequence numbers of 6 or 12 bits (TS 38.322 §6.2.2.3). A
    /// packet in one PDU has none.
    pub const fn nr_unacknowledged(bits: u8) -> Self {
        let first_segment = if bits <= 6 { 1 } else { 2 };
        Self { first_segment, later_segment: first_segment + 2, ..Self::NR }
    }

    const NR: Self = Self {
        concatenates: false,
        whole: 1,
        first_segment: 1,
        later_segment: 3,
        mac_subheader: 3,
        new_mac_subheader: 3,
    };

    /// The header of a segment.
    pub const fn segment(&self, is_first: bool) -> u32 {
        if is_first { self.first_segment } else { self.later_segment }
    }

    /// Bytes of headers of a waiting packet: a length indicator, or the headers of a PDU.
    pub(super) const fn per_packet(&self) -> u64 {
        (if self.concatenates { 2 } else { self.whole + self.mac_subheader }) as u64
    }

    /// Bytes of headers of all that waits once: of a PDU, or of the rest of a packet.
    pub(super) const fn once(&self) -> u64 {
        (if self.concatenates { self.whole } else { self.later_segment + self.mac_subheader }) as u64
    }
}
