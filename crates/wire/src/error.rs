//! What can be wrong with bytes that should be a header.

/// Why a header could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Fewer bytes than the header has: the packet is damaged, or the capture kept too little of
    /// it.
    #[error("{header} header is cut short: {needed} bytes are needed, {available} are there")]
    Truncated {
        /// Which header.
        header: &'static str,
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that there are.
        available: usize,
    },
    /// A field has a value that the specification does not allow.
    #[error("{header} header is malformed: its {field} is {value}")]
    Malformed {
        /// Which header.
        header: &'static str,
        /// Which field.
        field: &'static str,
        /// What it says.
        value: u32,
    },
    /// A TCP option is cut short or has a wrong length.
    #[error("TCP option {kind} at byte {at} of the options is malformed: its length is {length}")]
    Option {
        /// The option's kind.
        kind: u8,
        /// Where it begins.
        at: usize,
        /// The length that it claims; 0 where the header ends before it.
        length: u8,
    },
    /// Well formed, but not one of the messages that are understood.
    #[error("ICMP message of type {kind} is not an echo request or reply")]
    NotAnEcho {
        /// The message's type.
        kind: u8,
    },
}

/// The first `N` bytes, or the error that says how many are missing.
pub(crate) fn leading<'a, const N: usize>(header: &'static str, bytes: &'a [u8]) -> Result<&'a [u8; N], ParseError> {
    bytes.first_chunk().ok_or(ParseError::Truncated { header, needed: N, available: bytes.len() })
}

/// What follows the first `length` bytes, or the error that says how many are missing.
pub(crate) fn after<'a>(header: &'static str, bytes: &'a [u8], length: usize) -> Result<&'a [u8], ParseError> {
    bytes.get(length..).ok_or(ParseError::Truncated { header, needed: length, available: bytes.len() })
}
