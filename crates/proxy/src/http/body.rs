//! The content of a message as it arrives: where it ends, and which bytes are data.

/// Most bytes of the extensions of a chunk, or of a trailer section.
const MOST_EXTRA: u32 = 16 << 10;

/// The bytes are not an HTTP/1.x message, or its end is ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// How the content of a message is framed (RFC 9112 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// By its length.
    Length(u64),
    /// By the chunked transfer coding.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// The content that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body(State);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

/// A position in the chunked transfer coding (RFC 9112 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunked {
    /// In the size of a chunk: its value and digits so far.
    Size {
        value: u64,
        digits: u32,
    },
    /// In the extensions of a chunk of this size.
    Extension {
        value: u64,
        bytes: u32,
    },
    /// Before the LF that ends the line of a chunk of this size.
    SizeEnd(u64),
    /// In the data of a chunk: bytes left.
    Data(u64),
    /// Before the CR and the LF after the data.
    DataCr,
    DataLf,
    /// In the trailer section; `bytes` since its start, `line` since the start of the line.
    Trailer {
        bytes: u32,
        line: u32,
    },
    /// Before the LF of a line; the last line is empty.
    TrailerLf {
        bytes: u32,
        is_last: bool,
    },
    Complete,
}

impl Body {
    /// The content of a message with this framing.
    pub const fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::Length(bytes) => State::Length(bytes),
            Framing::Chunked => State::Chunked(Chunked::Size { value: 0, digits: 0 }),
            Framing::UntilClose => State::UntilClose,
        })
    }

    /// Whether nothing is left.
    pub const fn is_complete(&self) -> bool {
        matches!(self.0, State::Length(0) | State::Chunked(Chunked::Complete))
    }

    /// Whether the end of the connection completes it.
    pub fn ends_with_connection(&self) -> bool {
        self.0 == State::UntilClose
    }

    /// Continues with `bytes`. Returns how many of them belong to the message, and passes those
    /// that are data to `data`.
    ///
    /// # Errors
    /// If the framing is wrong. Then the bytes before it were data.
    pub fn advance(&mut self, bytes: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize, Malformed> {
        match &mut self.0 {
            State::UntilClose => {
                data(bytes);
                Ok(bytes.len())
            }
            State::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= count as u64;
                data(&bytes[..count]);
                Ok(count)
            }
            State::Chunked(state) => {
                let mut at = 0;
                while at < bytes.len() && *state != Chunked::Complete {
                    if let Chunked::Data(left) = state {
                        let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - at);
                        data(&bytes[at..at + count]);
                        at += count;
                        *left -= count as u64;
                        if *left == 0 {
                            *state = Chunked::DataCr;
                        }
                    } else {
                        *state = state.after(bytes[at]).ok_or(Malformed)?;
                        at += 1;
                    }
                }
                Ok(at)
            }
        }
    }
}

impl Chunked {
    /// The position after a byte of the framing; `None` if it is wrong there.
    fn after(self, byte: u8) -> Option<Self> {
        let is_text = |byte: u8| byte == b'\t' || byte >= b' ' && byte != 0x7F;
        Some(match (self, byte) {
            (Self::Size { value, digits }, byte) if byte.is_ascii_hexdigit() && digits < 15 => {
                let digit = char::from(byte).to_digit(16)?;
                Self::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Self::Size { value, digits: 1.. }, b'\r') => Self::SizeEnd(value),
            (Self::Size { value, digits: 1.. }, b';') => Self::Extension { value, bytes: 0 },
            (Self::Extension { value, .. }, b'\r') => Self::SizeEnd(value),
            (Self::Extension { value, bytes }, byte) if is_text(byte) && bytes < MOST_EXTRA => {
                Self::Extension { value, bytes: bytes + 1 }
            }
            (Self::SizeEnd(0), b'\n') => Self::Trailer { bytes: 0, line: 0 },
            (Self::SizeEnd(value), b'\n') => Self::Data(value),
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::Size { value: 0, digits: 0 },
            (Self::Trailer { bytes, line }, b'\r') => Self::TrailerLf { bytes, is_last: line == 0 },
            (Self::Trailer { bytes, line }, byte) if is_text(byte) && bytes < MOST_EXTRA => {
                Self::Trailer { bytes: bytes + 1, line: line + 1 }
            }
            (Self::TrailerLf { is_last: true, .. }, b'\n') => Self::Complete,
            (Self::TrailerLf { bytes, .. }, b'\n') => Self::Trailer { bytes, line: 0 },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes of the message, and its data, when `bytes` come in pieces of `step`.
    fn read(framing: Framing, bytes: &[u8], step: usize) -> Result<(usize, Vec<u8>, bool), Malformed> {
        let (mut body, mut data, mut taken) = (Body::new(framing), Vec::new(), 0);
        for piece in bytes.chunks(step) {
            let count = body.advance(piece, |part| data.extend_from_slice(part))?;
            taken += count;
            if count < piece.len() {
                break;
            }
        }
        Ok((taken, data, body.is_complete()))
    }

    #[test]
    fn chunks_extensions_and_trailers() {
        let message = b"5;a=\"b\"\r\nhello\r\n00A\r\n0123456789\r\n0\r\nX: y\r\n\r\n";
        let followed = [&message[..], b"GET"].concat();
        for step in 1..=followed.len() {
            let (taken, data, complete) = read(Framing::Chunked, &followed, step).expect("it is valid");
            assert_eq!((taken, &data[..], complete), (message.len(), &b"hello0123456789"[..], true), "{step}");
        }
        let wrong =
            ["\r\n", ";\r\n", "5\nhello", "5\r\nhello!", "5 \r\n", "-1\r\n", "0x5\r\n", "fffffffffffffffff\r\n"];
        for bytes in wrong {
            assert_eq!(read(Framing::Chunked, bytes.as_bytes(), 1), Err(Malformed), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_chunked_is_read_again(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..8),
            rest in proptest::collection::vec(any::<u8>(), 0..20),
            step in 1_usize..60,
        ) {
            let mut bytes = Vec::new();
            for piece in &pieces {
                bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            let length = bytes.len();
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(read(Framing::Chunked, &bytes, step), Ok((length, pieces.concat(), true)));
            let data = pieces.concat();
            let followed = [&data[..], &rest].concat();
            let by_length = Framing::Length(data.len() as u64);
            prop_assert_eq!(read(by_length, &followed, step), Ok((data.len(), data.clone(), true)));
            let (taken, all, complete) = read(Framing::UntilClose, &followed, step).expect("anything is valid");
            prop_assert_eq!((taken, all, complete), (followed.len(), followed, false));
        }
    }
}
