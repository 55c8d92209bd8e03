//! Profiles: which headers are compressed.

/// The version of the profiles for RTP, UDP and IP. A channel uses one of them, because IR packets
/// carry only the low octet of the profile (RFC 5795 §5.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// RFC 3095 and RFC 3843.
    #[default]
    One,
    /// RFC 5225, ROHCv2: packets may arrive late.
    Two,
}

/// A profile of RFC 3095, RFC 3843, RFC 5225 and RFC 6846.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// 0x0000: packets as they are (RFC 3095 §5.10).
    #[default]
    Uncompressed,
    /// 0x0001 or 0x0101: RTP, UDP and IP (RFC 3095 §5.7, RFC 5225).
    Rtp,
    /// 0x0002 or 0x0102: UDP and IP (RFC 3095 §5.11, RFC 5225).
    Udp,
    /// 0x0004 or 0x0104: IP (RFC 3843, RFC 5225).
    Ip,
    /// 0x0006: TCP and IP (RFC 6846).
    Tcp,
}

impl Profile {
    /// Those that compress, the one with most headers first.
    pub(crate) const COMPRESSING: [Self; 4] = [Self::Rtp, Self::Udp, Self::Tcp, Self::Ip];

    /// The number that an IR packet has.
    pub(crate) const fn octet(self) -> u8 {
        match self {
            Self::Uncompressed => 0,
            Self::Rtp => 1,
            Self::Udp => 2,
            Self::Ip => 4,
            Self::Tcp => 6,
        }
    }

    /// The profile of this number.
    pub(crate) const fn of(octet: u8) -> Option<Self> {
        match octet {
            0 => Some(Self::Uncompressed),
            1 => Some(Self::Rtp),
            2 => Some(Self::Udp),
            4 => Some(Self::Ip),
            6 => Some(Self::Tcp),
            _ => None,
        }
    }

    /// Bytes of the headers behind IP, without options of TCP.
    pub(crate) const fn transport_length(self) -> usize {
        match self {
            Self::Uncompressed | Self::Ip => 0,
            Self::Udp => 8,
            Self::Rtp | Self::Tcp => 20,
        }
    }
}

/// Profiles that a channel uses (PROFILES of RFC 5795 §5.1.2). 0x0000 always belongs to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profiles(u8);

impl Profiles {
    /// 0x0000 alone.
    pub const NONE: Self = Self(1 << Profile::Uncompressed.octet());
    /// All that this crate has.
    pub const ALL: Self = Self::NONE.with(Profile::Rtp).with(Profile::Udp).with(Profile::Ip).with(Profile::Tcp);

    /// These and one more.
    #[must_use]
    pub const fn with(self, profile: Profile) -> Self {
        Self(self.0 | 1 << profile.octet())
    }

    /// Whether `profile` is one of them.
    pub const fn contains(self, profile: Profile) -> bool {
        self.0 & 1 << profile.octet() != 0
    }
}
