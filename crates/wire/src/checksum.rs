//! The Internet checksum: the one's complement of the one's complement sum of 16-bit words (RFC
//! 1071).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::protocol::Protocol;

/// A partial sum. Parts are added in any order; all but the last have an even number of bytes.
///
/// Zero bytes do not change the sum, so an all-zero payload need not be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The sum of `bytes`; an odd last byte counts as if a zero followed.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::default().and(bytes)
    }

    /// This sum and that of `bytes`.
    #[must_use]
    pub fn and(self, bytes: &[u8]) -> Self {
        // 64 bits hold 2⁴⁸ words before the carries must be folded: more than any memory contains.
        let (words, odd) = bytes.as_chunks::<2>();
        let words: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
        let odd = odd.first().map_or(0, |byte| u64::from(*byte) << 8);
        Self(self.0 + words + odd)
    }

    /// The pseudo header over IPv4 (RFC 9293 §3.1); `length` is that of the transport header and
    /// its payload.
    #[must_use]
    pub fn pseudo_v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: Protocol, length: u32) -> Self {
        Self::of(&source.octets()).and(&destination.octets()).and_words(protocol, length)
    }

    /// The pseudo header over IPv6 (RFC 8200 §8.1); `length` is that of the transport header and
    /// its payload.
    #[must_use]
    pub fn pseudo_v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: Protocol, length: u32) -> Self {
        Self::of(&source.octets()).and(&destination.octets()).and_words(protocol, length)
    }

    const fn and_words(self, protocol: Protocol, length: u32) -> Self {
        Self(self.0 + protocol.0 as u64 + (length >> 16) as u64 + (length & 0xFFFF) as u64)
    }

    /// The checksum of the summed bytes; its own field must have been summed as zero.
    #[must_use]
    pub const fn checksum(self) -> u16 {
        !self.folded()
    }

    /// Whether the checksum is correct for all summed bytes, its own field included.
    #[must_use]
    pub const fn holds(self) -> bool {
        self.folded() == 0xFFFF
    }

    const fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xFFFF {
            sum = (sum >> 16) + (sum & 0xFFFF);
        }
        sum as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 1071 §3: the bytes 00 01 f2 03 f4 f5 f6 f7 sum to ddf2.
        let sum = Sum::of(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]);
        assert_eq!(sum.checksum(), !0xDDF2);
    }

    proptest! {
        #[test]
        fn what_is_summed_with_its_checksum_holds(mut bytes in prop::collection::vec(any::<u8>(), 2..80), flip: u16) {
            bytes[..2].fill(0);
            let checksum = Sum::of(&bytes).checksum();
            bytes[..2].copy_from_slice(&checksum.to_be_bytes());
            prop_assert!(Sum::of(&bytes).holds());
            if flip != 0 && flip != 0xFFFF {
                bytes[..2].copy_from_slice(&(checksum ^ flip).to_be_bytes());
                prop_assert!(!Sum::of(&bytes).holds());
            }
        }
    }
}
