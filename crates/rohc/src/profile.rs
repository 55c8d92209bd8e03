//! Profiles: which headers are compressed.

/// A profile of RFC 3095 and RFC 3843.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// 0x0000: packets as they are (RFC 3095 §5.10).
    #[default]
    Uncompressed,
    /// 0x0001: RTP, UDP and IP (RFC 3095 §5.7).
    Rtp,
    /// 0x0002: UDP and IP (RFC 3095 §5.11).
    Udp,
    /// 0x0004: IP (RFC 3843).
    Ip,
}

impl Profile {
    /// Those that compress, the one with most headers first.
    pub(crate) const COMPRESSING: [Self; 3] = [Self::Rtp, Self::Udp, Self::Ip];

    /// The number that an IR packet has.
    pub(crate) const fn octet(self) -> u8 {
        match self {
            Self::Uncompressed => 0,
            Self::Rtp => 1,
            Self::Udp => 2,
            Self::Ip => 4,
        }
    }

    /// The profile of this number.
    pub(crate) const fn of(octet: u8) -> Option<Self> {
        match octet {
            0 => Some(Self::Uncompressed),
            1 => Some(Self::Rtp),
            2 => Some(Self::Udp),
            4 => Some(Self::Ip),
            _ => None,
        }
    }

    /// Bytes of the headers behind IP.
    pub(crate) const fn transport_length(self) -> usize {
        match self {
            Self::Uncompressed | Self::Ip => 0,
            Self::Udp => 8,
            Self::Rtp => 20,
        }
    }
}
