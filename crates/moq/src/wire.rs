//! Fields of messages and streams (draft-ietf-moq-transport-19 §1.4): integers of variable length
//! and key-value pairs.

/// Why bytes cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A field continues after the last byte.
    #[error("the bytes end within a field")]
    Incomplete,
    /// The bytes do not follow the format. The session closes with `PROTOCOL_VIOLATION`.
    #[error("{0}")]
    Violation(&'static str),
}

/// A result of reading.
pub type Result<T> = std::result::Result<T, WireError>;

/// Most bytes of the value of a key-value pair.
const MOST_VALUE: u64 = (1 << 16) - 1;

/// Appends `value` in its shortest form. The number of leading ones of the first byte is the number
/// of bytes that follow it.
pub fn write_integer(out: &mut Vec<u8>, value: u64) {
    let bits = u64::BITS - value.leading_zeros();
    let length = bits.div_ceil(7).clamp(1, 9) as usize;
    let bytes = value.to_be_bytes();
    if length == 9 {
        out.push(0xff);
        out.extend_from_slice(&bytes);
        return;
    }
    let start = out.len();
    out.extend_from_slice(&bytes[8 - length..]);
    // In a value of this length these bits are zero.
    out[start] |= !(0xff >> (length - 1));
}

/// Appends a length and the bytes.
pub fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_integer(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads fields from the start of bytes.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that were not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`WireError::Incomplete`] if there are fewer.
    pub fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let count = usize::try_from(count).map_err(|_| WireError::Incomplete)?;
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(WireError::Incomplete)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next byte.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// A number of two bytes.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn two_bytes(&mut self) -> Result<u16> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// An integer of variable length; any length is valid.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn integer(&mut self) -> Result<u64> {
        let first = self.byte()?;
        let following = first.leading_ones();
        let start = if following < 8 { u64::from(first & (0x7f >> following)) } else { 0 };
        let rest = self.take(following.into())?;
        Ok(rest.iter().fold(start, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Bytes after their length, which is at most `most`.
    ///
    /// # Errors
    /// As [`Self::take`], and a violation with the text `too_long`.
    pub fn bytes(&mut self, most: u64, too_long: &'static str) -> Result<&'a [u8]> {
        let length = self.integer()?;
        if length > most {
            return Err(WireError::Violation(too_long));
        }
        self.take(length)
    }
}

/// A key-value pair: a property, or an option of SETUP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Its type.
    pub kind: u64,
    /// Its value.
    pub value: Value,
}

/// The value of a key-value pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The value of an even type.
    Integer(u64),
    /// The value of an odd type.
    Bytes(Vec<u8>),
}

/// Appends pairs, whose types rise. The value of an even type is an integer, that of an odd one has
/// bytes.
pub fn write_pairs(out: &mut Vec<u8>, pairs: &[Pair]) {
    let mut before = 0;
    for Pair { kind, value } in pairs {
        debug_assert!(*kind >= before && kind.is_multiple_of(2) == matches!(value, Value::Integer(_)), "{kind}");
        write_integer(out, kind - before);
        match value {
            Value::Integer(value) => write_integer(out, *value),
            Value::Bytes(bytes) => write_bytes(out, bytes),
        }
        before = *kind;
    }
}

/// Reads the pairs that fill `bytes`.
///
/// # Errors
/// A violation if the pairs do not fill the bytes, or one is out of range.
pub fn read_pairs(bytes: &[u8]) -> Result<Vec<Pair>> {
    let mut reader = Reader::new(bytes);
    let (mut pairs, mut kind) = (Vec::new(), 0_u64);
    while !reader.rest().is_empty() {
        let mut read = || {
            let delta = reader.integer()?;
            kind = kind.checked_add(delta).ok_or(WireError::Violation("the type of a key-value pair is above 2^64"))?;
            let value = if kind.is_multiple_of(2) {
                Value::Integer(reader.integer()?)
            } else {
                let too_long = "the value of a key-value pair has more than 65535 bytes";
                Value::Bytes(reader.bytes(MOST_VALUE, too_long)?.to_vec())
            };
            Ok(Pair { kind, value })
        };
        pairs.push(read().map_err(|error| match error {
            WireError::Incomplete => WireError::Violation("key-value pairs do not have the length before them"),
            violation => violation,
        })?);
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<u64> {
        Reader::new(bytes).integer()
    }

    #[test]
    fn integers_are_those_of_the_examples() {
        // draft-ietf-moq-transport-19 §1.4.1, table 2.
        assert_eq!(read(&[0x25]), Ok(37));
        assert_eq!(read(&[0x80, 0x25]), Ok(37));
        assert_eq!(read(&[0xbb, 0xbd]), Ok(15_293));
        assert_eq!(read(&[0xed, 0x7f, 0x3e, 0x7d]), Ok(226_442_877));
        assert_eq!(read(&[0xfa, 0xa1, 0xa0, 0xe4, 0x03, 0xd8]), Ok(2_893_212_287_960));
        assert_eq!(read(&[0xfc, 0x89, 0x98, 0xab, 0xc6, 0x6b, 0xc0]), Ok(151_288_809_941_952));
        assert_eq!(read(&[0xfe, 0xfa, 0x31, 0x8f, 0xa8, 0xe3, 0xca, 0x11]), Ok(70_423_237_261_249_041));
        assert_eq!(read(&[0xff; 9]), Ok(u64::MAX));
    }

    #[test]
    fn integers_have_their_shortest_form() {
        let mut length = 0;
        for (value, bytes) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), ((1 << 56) - 1, 8), (1 << 56, 9)] {
            let mut out = Vec::new();
            write_integer(&mut out, value);
            assert_eq!((out.len(), read(&out)), (bytes, Ok(value)));
            length += out.len();
        }
        assert_eq!(length, 26);
    }

    #[test]
    fn the_pairs_of_the_example_are_read() {
        // §11.6: type 4 with an integer, type 77 with bytes.
        let pairs = [
            Pair { kind: 4, value: Value::Integer(2_186_796_243) },
            Pair { kind: 77, value: Value::Bytes(b"traceID:123456".to_vec()) },
        ];
        let mut out = Vec::new();
        write_pairs(&mut out, &pairs);
        assert_eq!(out[..2], [4, 0xf0]);
        assert_eq!(out[6..8], [73, 14], "types are differences");
        assert_eq!(read_pairs(&out), Ok(pairs.to_vec()));
        let error = read_pairs(&out[..out.len() - 1]).expect_err("a byte is missing");
        assert!(error.to_string().contains("do not have the length"), "{error}");
    }

    proptest! {
        #[test]
        fn any_integer_is_read_as_it_was_written(value: u64, rest: Vec<u8>) {
            let mut out = Vec::new();
            write_integer(&mut out, value);
            for length in 0..out.len() {
                prop_assert_eq!(read(&out[..length]), Err(WireError::Incomplete));
            }
            out.extend_from_slice(&rest);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.integer(), Ok(value));
            prop_assert_eq!(reader.rest(), rest);
        }

        #[test]
        fn pairs_of_any_bytes_are_read_or_are_a_violation(bytes: Vec<u8>) {
            match read_pairs(&bytes) {
                Ok(pairs) => {
                    let mut out = Vec::new();
                    write_pairs(&mut out, &pairs);
                    prop_assert_eq!(read_pairs(&out), Ok(pairs));
                }
                Err(error) => prop_assert!(matches!(error, WireError::Violation(_))),
            }
        }
    }
}
