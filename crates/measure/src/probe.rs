//! The header with which each of our datagrams begins, [`HEADER`] bytes in network byte order:
//!
//! | bytes | what |
//! | --- | --- |
//! | 0–3 | `apm1` |
//! | 4–7 | [`Kind`] |
//! | 8–15 | number of the order |
//! | 16–19 | number of the flow |
//! | 20–23 | sequence number, from zero |
//! | 24–31 | when it was sent: nanoseconds of the sender's clock |
//!
//! In an echo reply all is as in the request but the kind, and so is the rest of the datagram. A
//! reply about the clock is as long as its request, which has [`CLOCK_LENGTH`] bytes: the header
//! has the time of the request, and behind it stand when that arrived and when the reply was sent,
//! both by the responder's clock.

/// Bytes of the header.
pub const HEADER: usize = 32;

/// Bytes of a datagram about the clock.
pub const CLOCK_LENGTH: usize = HEADER + 16;

const MARK: [u8; 4] = *b"apm1";

/// What a datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A ping.
    Echo,
    /// Its reply.
    EchoReply,
    /// What time is it there?
    Clock,
    /// It is this.
    ClockReply,
    /// One of a stream.
    Datagram,
    /// The client is ready for a stream from the responder, and shows where it is.
    Open,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Echo, Self::EchoReply, Self::Clock, Self::ClockReply, Self::Datagram, Self::Open];
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What it is for.
    pub kind: Kind,
    /// Number of the order.
    pub order: u64,
    /// Number of the flow.
    pub flow: u32,
    /// Its number.
    pub sequence: u32,
    /// When it was sent, by the sender's clock.
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
        header[8..16].copy_from_slice(&self.order.to_be_bytes());
        header[16..20].copy_from_slice(&self.flow.to_be_bytes());
        header[20..24].copy_from_slice(&self.sequence.to_be_bytes());
        header[24..].copy_from_slice(&self.sent.to_be_bytes());
    }

    /// Reads it from the start of `datagram`; `None` for what is none of ours.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let (mark, rest) = datagram.split_first_chunk::<4>()?;
        if *mark != MARK {
            return None;
        }
        let (kind, rest) = rest.split_first_chunk::<4>()?;
        let (order, rest) = rest.split_first_chunk::<8>()?;
        let (flow, rest) = rest.split_first_chunk::<4>()?;
        let (sequence, rest) = rest.split_first_chunk::<4>()?;
        let sent = rest.first_chunk::<8>()?;
        Some(Self {
            kind: *Kind::ALL.get(u32::from_be_bytes(*kind) as usize)?,
            order: u64::from_be_bytes(*order),
            flow: u32::from_be_bytes(*flow),
            sequence: u32::from_be_bytes(*sequence),
            sent: u64::from_be_bytes(*sent),
        })
    }
}

/// Writes the two times of a reply about the clock behind its header.
///
/// # Panics
/// If `datagram` is shorter than [`CLOCK_LENGTH`].
pub fn emit_times(datagram: &mut [u8], received: u64, sent: u64) {
    datagram[HEADER..HEADER + 8].copy_from_slice(&received.to_be_bytes());
    datagram[HEADER + 8..CLOCK_LENGTH].copy_from_slice(&sent.to_be_bytes());
}

/// Reads the two times of a reply about the clock; `None` if it is too short.
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
        fn headers_come_back(kind in 0..6usize, order: u64, flow: u32, sequence: u32, sent: u64) {
            let probe = Probe { kind: Kind::ALL[kind], order, flow, sequence, sent };
            let mut datagram = [0; CLOCK_LENGTH];
            probe.emit(&mut datagram);
            prop_assert_eq!(Probe::parse(&datagram), Some(probe));
            emit_times(&mut datagram, order, sent);
            prop_assert_eq!(parse_times(&datagram), Some((order, sent)));
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
