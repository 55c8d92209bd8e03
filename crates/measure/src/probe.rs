//! The header of each datagram, [`HEADER`] bytes in network byte order:
//!
//! | bytes | what |
//! | --- | --- |
//! | 0–3 | `apm1` |
//! | 4–7 | [`Kind`] |
//! | 8–15 | number of the session |
//! | 16–19 | number of the flow |
//! | 20–23 | sequence number, from zero |
//! | 24–31 | send time: nanoseconds of the sender's clock |
//!
//! An echo reply equals the request except for the kind. A clock reply is as long as its request,
//! which has [`CLOCK_LENGTH`] bytes: after the header with the send time of the request follow its
//! arrival time and the send time of the reply, both by the responder's clock.

/// Bytes of the header.
pub const HEADER: usize = 32;

/// Bytes of a clock request or reply.
pub const CLOCK_LENGTH: usize = HEADER + 16;

const MARK: [u8; 4] = *b"apm1";

/// Purpose of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An echo request.
    Echo,
    /// An echo reply.
    EchoReply,
    /// A clock request.
    Clock,
    /// A clock reply.
    ClockReply,
    /// A datagram of a stream.
    Datagram,
    /// The client is ready for a stream from the responder, and shows its address.
    Open,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Echo, Self::EchoReply, Self::Clock, Self::ClockReply, Self::Datagram, Self::Open];
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Purpose.
    pub kind: Kind,
    /// Number of the session.
    pub session: u64,
    /// Number of the flow.
    pub flow: u32,
    /// Sequence number.
    pub sequence: u32,
    /// Send time, by the sender's clock.
    pub sent: u64,
}

impl Probe {
    /// Writes it to the start of `datagram`.
    ///
    /// # Panics
    /// If that is shorter than [`HEADER`].
    pub fn emit(&self, datagram: &mut [u8]) {
        let header = datagram.first_chunk_mut::<HEADER>().expect("a datagram has room for its header");
        header[..4].copy_from_slice(&MARK);
        header[4..8].copy_from_slice(&(self.kind as u32).to_be_bytes());
        header[8..16].copy_from_slice(&self.session.to_be_bytes());
        header[16..20].copy_from_slice(&self.flow.to_be_bytes());
        header[20..24].copy_from_slice(&self.sequence.to_be_bytes());
        header[24..].copy_from_slice(&self.sent.to_be_bytes());
    }

    /// Parses the start of `datagram`; `None` for other datagrams.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let (mark, rest) = datagram.split_first_chunk::<4>()?;
        if *mark != MARK {
            return None;
        }
        let (kind, rest) = rest.split_first_chunk::<4>()?;
        let (session, rest) = rest.split_first_chunk::<8>()?;
        let (flow, rest) = rest.split_first_chunk::<4>()?;
        let (sequence, rest) = rest.split_first_chunk::<4>()?;
        let sent = rest.first_chunk::<8>()?;
        Some(Self {
            kind: *Kind::ALL.get(u32::from_be_bytes(*kind) as usize)?,
            session: u64::from_be_bytes(*session),
            flow: u32::from_be_bytes(*flow),
            sequence: u32::from_be_bytes(*sequence),
            sent: u64::from_be_bytes(*sent),
        })
    }
}

/// Writes the two times of a clock reply after its header.
///
/// # Panics
/// If `datagram` is shorter than [`CLOCK_LENGTH`].
pub fn emit_times(datagram: &mut [u8], received: u64, sent: u64) {
    datagram[HEADER..HEADER + 8].copy_from_slice(&received.to_be_bytes());
    datagram[HEADER + 8..CLOCK_LENGTH].copy_from_slice(&sent.to_be_bytes());
}

/// Parses the two times of a clock reply; `None` if it is too short.
pub fn parse_times(datagram: &[u8]) -> Option<(u64, u64)> {
    let (received, rest) = datagram.get(HEADER..)?.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*received), u64::from_be_bytes(*rest.first_chunk::<8>()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_come_back(kind in 0..6usize, session: u64, flow: u32, sequence: u32, sent: u64) {
            let probe = Probe { kind: Kind::ALL[kind], session, flow, sequence, sent };
            let mut datagram = [0; CLOCK_LENGTH];
            probe.emit(&mut datagram);
            prop_assert_eq!(Probe::parse(&datagram), Some(probe));
            emit_times(&mut datagram, session, sent);
            prop_assert_eq!(parse_times(&datagram), Some((session, sent)));
            prop_assert_eq!(Probe::parse(&datagram[..HEADER - 1]), None);
        }

        #[test]
        fn garbage_is_read_without_harm(mut datagram in proptest::collection::vec(any::<u8>(), 0..100), marked: bool) {
            if marked && datagram.len() >= 4 {
                datagram[..4].copy_from_slice(&MARK);
            }
            let _ = (Probe::parse(&datagram), parse_times(&datagram));
        }
    }
}
