//! Why a packet or a configuration is rejected.

/// Parameters that make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Too few or too many contexts.
    #[error("{contexts} contexts: 1 to 16 with small context identifiers, up to 16384 with large ones")]
    Contexts {
        /// The number given.
        contexts: u16,
    },
}

/// Why a packet cannot be decompressed. The packet is to be discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecompressError {
    /// It ends inside the compressed header.
    #[error("the packet ends inside its ROHC header")]
    Truncated,
    /// A segment of the framework (RFC 5795 §5.2.5).
    #[error("a ROHC segment: segmentation is not supported; the peer must use an MRRU of 0")]
    Segment,
    /// Only feedback and padding.
    #[error("only feedback or padding, no packet")]
    NoPacket,
    /// No context, or none whose static part is known.
    #[error("no context for context identifier {cid}: an IR packet must come first")]
    NoContext {
        /// The context identifier.
        cid: u16,
    },
    /// A context identifier beyond those that were agreed on.
    #[error("context identifier {cid} is beyond the last one, {last}")]
    TooLargeCid {
        /// The context identifier.
        cid: u16,
        /// The largest.
        last: u16,
    },
    /// The profile of an IR packet.
    #[error(
        "profile {profile:#06x} is not supported: 0x0000, 0x0001, 0x0002, 0x0004 and 0x0006 are, and of version 2 0x0101, 0x0102 and 0x0104"
    )]
    Profile {
        /// Its number; only the low octet is sent.
        profile: u16,
    },
    /// A type that the profile does not define, or reserved bits.
    #[error("octet {octet:#04x} begins no packet of this profile")]
    Type {
        /// The first octet.
        octet: u8,
    },
    /// Bits that have to be zero.
    #[error("reserved bits are set in {field}")]
    Reserved {
        /// Where.
        field: &'static str,
    },
    /// An index of a TCP option that no packet has brought.
    #[error("the list of TCP options has item {index}, which no packet has brought")]
    Item {
        /// The index in the item table.
        index: u8,
    },
    /// Options of TCP that no header can have.
    #[error("the TCP options fit in no header")]
    Options,
    /// Something of the RFC that is left out.
    #[error("{feature} is not supported")]
    Unsupported {
        /// What.
        feature: &'static str,
    },
    /// Only packets with a CRC of 7 or 8 bits are used after a failure (RFC 3095 §5.3.2.2.3).
    #[error("the dynamic part of the context is not valid, and this packet cannot repair it")]
    Repair,
    /// A repaired context is not yet confirmed (RFC 3095 §5.3.2.2.5).
    #[error("the context was repaired by an earlier reference, which this packet confirms")]
    Unconfirmed,
    /// Later packets have come before, and the header does not fit behind them.
    #[error("the packet is late")]
    Late,
    /// The CRC does not match the header.
    #[error("the CRC does not match the decompressed header")]
    Crc,
}

/// Why feedback is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedbackError {
    /// It ends too early.
    #[error("the feedback ends too early")]
    Truncated,
    /// No context with this identifier.
    #[error("no context has identifier {cid}")]
    NoContext {
        /// The context identifier.
        cid: u16,
    },
    /// A reserved acknowledgement type or mode, or options that exclude each other.
    #[error("reserved acknowledgement type or mode, or contradictory options")]
    Reserved,
    /// Its CRC does not match.
    #[error("the CRC of the feedback does not match")]
    Crc,
}
