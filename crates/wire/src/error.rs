//! Errors of header parsers.

/// Why a header could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A header with fewer bytes than needed: a damaged packet, or a capture that cut it off.
    #[error("{header} header is cut short: {needed} bytes are needed, {available} are there")]
    Truncated {
        /// The header.
        header: &'static str,
        /// Number of bytes needed.
        needed: usize,
        /// Number of available bytes.
        available: usize,
    },
    /// A field has a value that the specification does not allow.
    #[error("{header} header is malformed: its {field} is {value}")]
    Malformed {
        /// Which header.
        header: &'static str,
        /// Which field.
        field: &'static str,
        /// The invalid value.
        value: u32,
    },
    /// A TCP option is truncated or has a wrong length.
    #[error("TCP option {kind} at byte {at} of the options is malformed: its length is {length}")]
    Option {
        /// The option's kind.
        kind: u8,
        /// Offset of the option, in bytes.
        at: usize,
        /// Its length field; 0 where the header ends before the length.
        length: u8,
    },
    /// A well-formed ICMP message that is neither an echo request nor an echo reply.
    #[error("ICMP message of type {kind} is not an echo request or reply")]
    NotAnEcho {
        /// The message's type.
        kind: u8,
    },
}

/// The first `N` bytes, or an error with the number of bytes needed.
pub(crate) fn leading<'a, const N: usize>(header: &'static str, bytes: &'a [u8]) -> Result<&'a [u8; N], ParseError> {
    bytes.first_chunk().ok_or(ParseError::Truncated { header, needed: N, available: bytes.len() })
}

/// The bytes after the first `length`, or an error with the number of bytes needed.
pub(crate) fn after<'a>(header: &'static str, bytes: &'a [u8], length: usize) -> Result<&'a [u8], ParseError> {
    bytes.get(length..).ok_or(ParseError::Truncated { header, needed: length, available: bytes.len() })
}
