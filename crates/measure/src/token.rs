//! The token that assigns a connection to a session.

/// The field of each HTTP request with the number of its session, in hexadecimal digits.
pub const SESSION_FIELD: &str = "Airpath-Session";

/// The session and flow of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionToken {
    /// Number of the session.
    pub session: u64,
    /// Number of the flow.
    pub flow: u32,
}

impl SessionToken {
    /// Bytes of a token.
    pub const LENGTH: usize = 16;
    const MARK: [u8; 4] = *b"flow";

    /// The wire format: `flow`, the flow and the session, in network byte order.
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..4].copy_from_slice(&Self::MARK);
        bytes[4..8].copy_from_slice(&self.flow.to_be_bytes());
        bytes[8..].copy_from_slice(&self.session.to_be_bytes());
        bytes
    }

    /// Parses the wire format; `None` for anything else.
    pub fn from_bytes(bytes: [u8; Self::LENGTH]) -> Option<Self> {
        let (mark, rest) = bytes.split_first_chunk::<4>()?;
        let (flow, session) = rest.split_first_chunk::<4>()?;
        let session = session.first_chunk::<8>()?;
        (*mark == Self::MARK).then(|| Self { session: u64::from_be_bytes(*session), flow: u32::from_be_bytes(*flow) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tokens_parse_back(session: u64, flow: u32) {
            let token = SessionToken { session, flow };
            prop_assert_eq!(SessionToken::from_bytes(token.to_bytes()), Some(token));
        }
    }
}
