//! Protocol numbers.

/// The payload of an IP header: a number of IANA's protocol registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocol(pub u8);

impl Protocol {
    /// ICMP for IPv4.
    pub const ICMP: Self = Self(1);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// ICMP for IPv6.
    pub const ICMPV6: Self = Self(58);
}
