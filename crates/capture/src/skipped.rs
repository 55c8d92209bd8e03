//! Parts of a capture that were skipped, counted by cause.

use std::fmt;

/// Why a part of a capture was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A record with impossible lengths: bytes were skipped up to the next plausible record.
    CorruptRecord,
    /// The file ends within a record.
    CutRecord,
    /// A block of pcapng with impossible fields.
    MalformedBlock,
    /// A block of pcapng other than packets, interfaces, statistics or names.
    OtherBlock,
    /// A packet of an interface that the file does not describe.
    UnknownInterface,
    /// A packet from before 1970 or after 2116.
    TimeOutOfRange,
    /// A link layer that is not supported.
    UnknownLinkType,
    /// Headers beyond the snap length.
    CutShort,
    /// A header with an impossible value.
    Malformed,
    /// No IP packet: ARP, spanning tree, PPP negotiation.
    NotIp,
    /// Headers compressed by PPP with a method that is not supported (RFC 1144, RFC 2507, RFC
    /// 3095).
    CompressedHeaders,
    /// A fragment of an incomplete packet: all fragments of a packet count but the last missing
    /// one.
    Fragment,
    /// A packet with missing or overlapping fragments.
    Incomplete,
    /// An IP packet of neither TCP nor UDP.
    OtherTransport,
    /// A tunnel's own messages.
    Signalling,
    /// Tunnels within tunnels, deeper than any network has them.
    TooDeep,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::CorruptRecord,
        Self::CutRecord,
        Self::MalformedBlock,
        Self::OtherBlock,
        Self::UnknownInterface,
        Self::TimeOutOfRange,
        Self::UnknownLinkType,
        Self::CutShort,
        Self::Malformed,
        Self::NotIp,
        Self::CompressedHeaders,
        Self::Fragment,
        Self::Incomplete,
        Self::OtherTransport,
        Self::Signalling,
        Self::TooDeep,
    ];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CorruptRecord => "corrupt_record",
            Self::CutRecord => "cut_record",
            Self::MalformedBlock => "malformed_block",
            Self::OtherBlock => "other_block",
            Self::UnknownInterface => "unknown_interface",
            Self::TimeOutOfRange => "time_out_of_range",
            Self::UnknownLinkType => "unknown_link_type",
            Self::CutShort => "cut_short",
            Self::Malformed => "malformed",
            Self::NotIp => "not_ip",
            Self::CompressedHeaders => "compressed_headers",
            Self::Fragment => "fragment",
            Self::Incomplete => "incomplete",
            Self::OtherTransport => "other_transport",
            Self::Signalling => "signalling",
            Self::TooDeep => "too_deep",
        }
    }
}

impl Cause {
    /// What was skipped, in words that follow a number.
    pub const fn words(self) -> &'static str {
        match self {
            Self::CorruptRecord => "with impossible lengths",
            Self::CutRecord => "cut off at the end of the file",
            Self::MalformedBlock => "blocks with impossible fields",
            Self::OtherBlock => "blocks without packets",
            Self::UnknownInterface => "of an interface that is not described",
            Self::TimeOutOfRange => "with a time before 1970 or after 2116",
            Self::UnknownLinkType => "of an unsupported link layer",
            Self::CutShort => "captured too short",
            Self::Malformed => "with malformed headers",
            Self::NotIp => "without IP",
            Self::CompressedHeaders => "with headers compressed by PPP",
            Self::Fragment => "fragments of incomplete packets",
            Self::Incomplete => "with missing or overlapping fragments",
            Self::OtherTransport => "of other transports",
            Self::Signalling => "messages of tunnels",
            Self::TooDeep => "with too many nested tunnels",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Number of occurrences of each cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Cause::ALL.len()]);

impl Counts {
    /// Counts one more.
    #[inline]
    pub const fn add(&mut self, cause: Cause) {
        self.0[cause as usize] += 1;
    }

    /// Number of occurrences of `cause`.
    pub const fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// How often any was.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The causes that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL.into_iter().map(|cause| (cause, self.of(cause))).filter(|(_, count)| *count > 0)
    }

    /// Adds those of another part of the same analysis.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_own_place_and_name() {
        let mut counts = Counts::default();
        for (place, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, place);
            assert_eq!(Cause::ALL.iter().filter(|other| other.name() == cause.name()).count(), 1);
            counts.add(cause);
        }
        counts.merge(&counts.clone());
        assert_eq!(counts.total(), 2 * Cause::ALL.len() as u64);
        assert!(counts.iter().map(|(cause, _)| cause).eq(Cause::ALL));
    }
}
