//! The chunked transfer coding (RFC 9112 §7.1): finds the end of the body.

/// The position in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunked {
    /// In the line with the size of a chunk: its value so far, the digits, and whether they are
    /// over.
    Size { value: u64, digits: u8, over: bool },
    /// In the data of a chunk: bytes left.
    Data(u64),
    /// In the line break after the data of a chunk.
    Break,
    /// In the trailer section: whether the present line is empty so far.
    Trailer { empty: bool },
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The step consumed `bytes`, with `content` bytes of content.
    Took { bytes: usize, content: u64 },
    /// The step consumed this number of bytes, and the body is over.
    Over(usize),
    /// The bytes are no chunked body.
    Broken,
}

impl Chunked {
    /// Before the first chunk.
    pub(super) const START: Self = Self::Size { value: 0, digits: 0, over: false };

    /// Consumes some of `bytes`, which must not be empty.
    pub(super) fn step(&mut self, bytes: &[u8]) -> Step {
        let byte = bytes[0];
        let one = Step::Took { bytes: 1, content: 0 };
        match self {
            Self::Size { value, digits, over } => match (byte, hexadecimal(byte)) {
                (b'\n', _) if *digits == 0 => Step::Broken,
                (b'\n', _) => {
                    *self = if *value == 0 { Self::Trailer { empty: true } } else { Self::Data(*value) };
                    one
                }
                (_, Some(digit)) if !*over => {
                    if *digits == 15 {
                        return Step::Broken;
                    }
                    *value = *value << 4 | u64::from(digit);
                    *digits += 1;
                    one
                }
                // Spaces before the line break and extensions (RFC 9112 §7.1.1) are skipped.
                (b'\r' | b';' | b' ' | b'\t', _) if *digits > 0 => {
                    *over = true;
                    one
                }
                _ if *over => one,
                _ => Step::Broken,
            },
            Self::Data(left) => {
                let content = (bytes.len() as u64).min(*left);
                self.skip(content);
                // No more than the length of a slice.
                Step::Took { bytes: content as usize, content }
            }
            Self::Break => match byte {
                b'\r' => one,
                b'\n' => {
                    *self = Self::START;
                    one
                }
                _ => Step::Broken,
            },
            Self::Trailer { empty } => match byte {
                b'\n' if *empty => Step::Over(1),
                b'\n' => {
                    *empty = true;
                    one
                }
                b'\r' => one,
                _ => {
                    *empty = false;
                    one
                }
            },
        }
    }

    /// Bytes of content that surely come next.
    pub(super) const fn ahead(self) -> u64 {
        match self {
            Self::Data(left) => left,
            Self::Size { .. } | Self::Break | Self::Trailer { .. } => 0,
        }
    }

    /// Skips `bytes` of those that are [`ahead`](Self::ahead).
    pub(super) fn skip(&mut self, bytes: u64) {
        let left = self.ahead().saturating_sub(bytes);
        *self = if left == 0 { Self::Break } else { Self::Data(left) };
    }
}

fn hexadecimal(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of content, and bytes that were taken, when the body is over.
    fn decode(mut bytes: &[u8], at_a_time: usize) -> Option<(u64, usize)> {
        let (mut chunked, mut content, mut taken) = (Chunked::START, 0, 0);
        while !bytes.is_empty() {
            match chunked.step(&bytes[..at_a_time.min(bytes.len())]) {
                Step::Took { bytes: took, content: more } => {
                    content += more;
                    taken += took;
                    bytes = &bytes[took..];
                }
                Step::Over(took) => return Some((content, taken + took)),
                Step::Broken => return None,
            }
        }
        None
    }

    #[test]
    fn bodies_end_behind_their_trailers_however_they_are_split() {
        let bodies: [(&[u8], u64); 4] = [
            (b"4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n", 9),
            (b"A ; name=\"value\"\r\n0123456789\r\n0\r\nDigest: x\r\nB: y\r\n\r\n", 10),
            (b"00a\n0123456789\n000\n\n", 10),
            (b"0\r\n\r\n", 0),
        ];
        for (body, content) in bodies {
            let with_more = [body, b"HTTP/1.1"].concat();
            for at_a_time in 1..body.len() {
                assert_eq!(decode(&with_more, at_a_time), Some((content, body.len())));
            }
        }
    }

    #[test]
    fn invalid_sizes_are_rejected() {
        for body in [&b"\r\n"[..], b"x\r\n", b"4\r\nWikipedia", b"fffffffffffffffff\r\n", b" 4\r\n"] {
            assert_eq!(decode(body, 100), None, "{body:?}");
        }
    }
}
