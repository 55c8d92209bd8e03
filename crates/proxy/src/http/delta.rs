//! Content codings that refer to a dictionary (RFC 9842 §4, §5).

use crate::http::compression::{Encoder, weight};

/// A content coding with a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaCoding {
    /// `dcz`: Zstandard (RFC 8878).
    Zstandard,
    /// `dcb`: Brotli with a prefix dictionary (RFC 9841).
    Brotli,
}

impl DeltaCoding {
    /// In the order of preference between equal weights.
    const ALL: [Self; 2] = [Self::Zstandard, Self::Brotli];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstandard => "dcz",
            Self::Brotli => "dcb",
        }
    }

    /// What the content begins with, before the hash of the dictionary.
    pub const fn magic(self) -> &'static [u8] {
        match self {
            // A skippable frame of Zstandard.
            Self::Zstandard => &[0x5E, 0x2A, 0x4D, 0x18, 0x20, 0, 0, 0],
            Self::Brotli => &[0xFF, 0x44, 0x43, 0x42],
        }
    }

    /// The coding that the client of a request prefers; `None` if it accepts none.
    pub fn of_request(head: &[u8]) -> Option<Self> {
        let weights = Self::ALL.map(|coding| (weight(head, coding.name()), coding));
        let best = weights.into_iter().reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.filter(|(weight, _)| *weight > 0.0).map(|(_, coding)| coding)
    }

    /// An encoder that refers to `dictionary`; `None` for want of memory.
    pub fn encoder(self, dictionary: &[u8], hash: &[u8]) -> Option<Encoder> {
        let before = [self.magic(), hash].concat();
        match self {
            Self::Zstandard => Encoder::with_dictionary(before, dictionary),
            Self::Brotli => Some(Encoder::with_prefix(before, dictionary)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::http::body::{Body, Framing};

    const HASH: [u8; 32] = [7; 32];

    fn request(accepted: &str) -> Option<DeltaCoding> {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accepted}\r\n\r\n");
        DeltaCoding::of_request(head.as_bytes())
    }

    #[test]
    fn the_client_decides_on_the_coding() {
        assert_eq!(request("gzip, br, dcb, dcz"), Some(DeltaCoding::Zstandard));
        assert_eq!(request("gzip, dcb"), Some(DeltaCoding::Brotli));
        assert_eq!(request("dcb;q=0.9, dcz;q=0.5"), Some(DeltaCoding::Brotli));
        assert_eq!(request("dcb;q=0, dcz;q=0"), None);
        assert_eq!(request("gzip, br"), None);
    }

    fn text(from: u32, count: u32) -> Vec<u8> {
        (from..from + count).flat_map(|n| n.wrapping_mul(n).to_string().into_bytes()).collect()
    }

    /// What a client decodes.
    fn decoded(coding: DeltaCoding, coded: &[u8], dictionary: &[u8]) -> Vec<u8> {
        let start = [coding.magic(), &HASH].concat();
        assert!(coded.starts_with(&start));
        let mut read = Vec::new();
        match coding {
            // The magic number is a frame that the decoder skips.
            DeltaCoding::Zstandard => {
                let decoder = zstd::stream::read::Decoder::with_dictionary(coded, dictionary);
                decoder.expect("there is memory").read_to_end(&mut read)
            }
            DeltaCoding::Brotli => {
                let mut decoder = brotli::Decompressor::new(&coded[start.len()..], 4096);
                assert!(decoder.attach_dictionary(dictionary.to_vec().into()));
                decoder.read_to_end(&mut read)
            }
        }
        .expect("it is valid");
        read
    }

    #[test]
    fn only_what_differs_is_sent() {
        for coding in DeltaCoding::ALL {
            let (old, new) = (text(1000, 3000), [text(1000, 3000), b"and more".to_vec()].concat());
            let mut encoder = coding.encoder(&old, &HASH).expect("there is memory");
            encoder.write(&new);
            let (mut coded, mut body) = (Vec::new(), Body::new(Framing::Chunked));
            body.advance(&encoder.finish(), |data| coded.extend_from_slice(data)).expect("valid chunks");
            assert!(coded.len() < 200, "{coding:?}: {} bytes for {}", coded.len(), new.len());
            assert!(decoded(coding, &coded, &old) == new, "{coding:?}");
        }
    }

    #[test]
    fn content_may_be_longer_than_the_window() {
        // A dictionary from 256 bytes to more than a window, and content that refers to all of it.
        for (length, repeats) in [(256, 2000), (40_000, 20), (2 << 20, 2)] {
            let mut old = text(1000, length / 4);
            old.truncate(length as usize);
            let new: Vec<u8> = (0..repeats).flat_map(|turn| [&text(turn, 50), &old[..]].concat()).collect();
            for coding in DeltaCoding::ALL {
                let mut encoder = coding.encoder(&old, &HASH).expect("there is memory");
                let mut chunks = Vec::new();
                for part in new.chunks(new.len() / 7 + 1) {
                    encoder.write(part);
                    encoder.flush();
                    chunks.extend(encoder.take_chunk());
                }
                chunks.extend(encoder.finish());
                let (mut coded, mut body) = (Vec::new(), Body::new(Framing::Chunked));
                body.advance(&chunks, |data| coded.extend_from_slice(data)).expect("valid chunks");
                assert!(decoded(coding, &coded, &old) == new, "{coding:?} {length}");
            }
        }
    }
}
