//! Compression of responses (RFC 9110 §8.4, §12.5.3), for clients that accept it.
//!
//! A response is compressed only if nothing forbids it ([`transform`](crate::http::transform)), it is
//! a complete 200 of HTTP/1.1, and its type is text-like.

use std::io::Write;

use crate::http::fields::{lines, values};
use crate::http::prefix_brotli::PrefixBrotli;
use crate::http::transform::{client_permits, permits, transformed};

/// Shorter content is not worth it: the head grows by about 70 bytes.
pub const LEAST_LENGTH: u64 = 256;

/// Levels at which one core compresses some 50 MB/s, far above the rate of a bearer.
const GZIP_LEVEL: u32 = 6;
const BROTLI_QUALITY: u32 = 5;
const BROTLI_WINDOW: u32 = 20;
const ZSTD_LEVEL: i32 = 6;

/// Bytes of the encoder of brotli.
const BROTLI_BUFFER: usize = 4096;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `br` (RFC 7932).
    Brotli,
    /// `zstd` (RFC 8878).
    Zstandard,
    /// `gzip` (RFC 1952).
    Gzip,
}

impl Coding {
    /// In the order of preference between equal weights.
    const ALL: [Self; 3] = [Self::Brotli, Self::Zstandard, Self::Gzip];

    const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstandard => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The coding for the response to a request with this head; `None` if the response is not to
    /// be changed.
    pub fn of_request(head: &[u8]) -> Option<Self> {
        if !client_permits(head) {
            return None;
        }
        let weights = Self::ALL.map(|coding| weight(head, coding.name()));
        let best = weights.iter().copied().fold(0.0, f32::max);
        (best > 0.0).then(|| weights.iter().position(|weight| *weight == best).map(|index| Self::ALL[index])).flatten()
    }

    /// The head of the compressed response for that of the origin; `None` if the response is not to
    /// be compressed.
    pub fn rewrite(self, head: &[u8]) -> Option<Vec<u8>> {
        begin_coded(head, self.name(), &["Accept-Encoding"])
    }
}

/// The weight that a client gives to a coding (RFC 9110 §12.5.3); 0 if it does not accept it.
pub fn weight(head: &[u8], coding: &str) -> f32 {
    let mut weight = 0.0;
    for value in values(head, "accept-encoding") {
        for item in std::str::from_utf8(value).unwrap_or_default().split(',') {
            let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
            if name.trim().eq_ignore_ascii_case(coding) {
                let parameters = parameters.trim();
                let given = parameters.strip_prefix("q=").or_else(|| parameters.strip_prefix("Q="));
                weight = given.map_or(1.0, |given| given.parse().unwrap_or(0.0));
            }
        }
    }
    weight
}

/// Whether a response with this head is coded for clients that accept it.
pub fn is_coded(head: &[u8]) -> bool {
    let is_success = lines(head).is_some_and(|(start, _)| start.starts_with(b"HTTP/1.1 200"));
    let length = values(head, "content-length").next();
    let length = length.and_then(|value| std::str::from_utf8(value).ok()?.parse::<u64>().ok());
    let is_text = values(head, "content-type").any(is_compressible);
    is_success && is_text && permits(head) && length.is_none_or(|length| length >= LEAST_LENGTH)
}

/// The head of a response with this content coding, which depends on these fields of the request,
/// for that of the origin; `None` if the response is not to be coded.
pub fn begin_coded(head: &[u8], coding: &str, depends_on: &[&str]) -> Option<Vec<u8>> {
    let (start, _) = lines(head).filter(|_| is_coded(head))?;
    let dropped = ["content-length", "transfer-encoding"];
    let mut rewritten = transformed(head, start, &dropped, depends_on)?;
    let coding = format!("Content-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n");
    rewritten.extend_from_slice(coding.as_bytes());
    Some(rewritten)
}

/// Whether content of this type becomes shorter. Events are to arrive one by one.
fn is_compressible(content_type: &[u8]) -> bool {
    let kind = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    let known: [&[u8]; 5] =
        [b"application/json", b"application/javascript", b"application/xml", b"application/wasm", b"image/bmp"];
    let is_text = kind.starts_with(b"text/") && kind != b"text/event-stream";
    is_text || kind.ends_with(b"+xml") || kind.ends_with(b"+json") || known.contains(&&kind[..])
}

/// Compresses the content of one response, into chunks.
pub struct Encoder(State);

enum State {
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    PrefixBrotli(Box<PrefixBrotli>),
    Zstandard(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
    Gzip(Box<flate2::write::GzEncoder<Vec<u8>>>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}

/// Calls the same methods of each encoder.
macro_rules! each {
    ($encoder:expr, $state:ident => $call:expr) => {
        match &mut $encoder.0 {
            State::Brotli($state) => $call,
            State::PrefixBrotli($state) => $call,
            State::Zstandard($state) => $call,
            State::Gzip($state) => $call,
        }
    };
}

impl Encoder {
    /// `None` if the library refuses, for want of memory.
    pub fn new(coding: Coding) -> Option<Self> {
        Some(Self(match coding {
            Coding::Brotli => State::Brotli(Box::new(brotli::CompressorWriter::new(
                Vec::new(),
                BROTLI_BUFFER,
                BROTLI_QUALITY,
                BROTLI_WINDOW,
            ))),
            Coding::Zstandard => {
                State::Zstandard(Box::new(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL).ok()?))
            }
            Coding::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                State::Gzip(Box::new(flate2::write::GzEncoder::new(Vec::new(), level)))
            }
        }))
    }

    /// An encoder of Zstandard that refers to a dictionary, with bytes before what it writes.
    /// `None` if the library refuses, for want of memory.
    pub fn with_dictionary(before: Vec<u8>, dictionary: &[u8]) -> Option<Self> {
        let encoder = zstd::stream::write::Encoder::with_dictionary(before, ZSTD_LEVEL, dictionary).ok()?;
        Some(Self(State::Zstandard(Box::new(encoder))))
    }

    /// The same of Brotli.
    pub fn with_prefix(before: Vec<u8>, dictionary: &[u8]) -> Self {
        Self(State::PrefixBrotli(Box::new(PrefixBrotli::new(before, dictionary, BROTLI_QUALITY))))
    }

    /// Appends content. Writing into memory does not fail.
    pub fn write(&mut self, data: &[u8]) {
        each!(self, state => state.write_all(data)).expect("memory can be written");
    }

    /// Completes what was written so far, so that the client can decompress it.
    pub fn flush(&mut self) {
        each!(self, state => state.flush()).expect("memory can be written");
    }

    /// Takes what is compressed as a chunk; nothing if there is nothing.
    pub fn take_chunk(&mut self) -> Vec<u8> {
        let bytes = match &mut self.0 {
            State::Brotli(state) => std::mem::take(state.get_mut()),
            State::PrefixBrotli(state) => state.take(),
            State::Zstandard(state) => std::mem::take(state.get_mut()),
            State::Gzip(state) => std::mem::take(state.get_mut()),
        };
        chunk(&bytes)
    }

    /// Ends the content: the last chunks.
    pub fn finish(self) -> Vec<u8> {
        let bytes = match self.0 {
            State::Brotli(state) => state.into_inner(),
            State::PrefixBrotli(state) => state.finish().expect("memory can be written"),
            State::Zstandard(state) => state.finish().expect("memory can be written"),
            State::Gzip(state) => state.finish().expect("memory can be written"),
        };
        [&chunk(&bytes)[..], b"0\r\n\r\n"].concat()
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::http::body::{Body, Framing};

    fn request(fields: &str) -> Option<Coding> {
        Coding::of_request(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes())
    }

    #[test]
    fn the_client_decides_on_the_coding() {
        assert_eq!(request("Accept-Encoding: gzip, deflate\r\n"), Some(Coding::Gzip));
        assert_eq!(request("Accept-Encoding: gzip, br, zstd\r\n"), Some(Coding::Brotli));
        assert_eq!(request("accept-encoding: br;q=0.2, ZSTD;q=0.9, gzip;q=0.9\r\n"), Some(Coding::Zstandard));
        assert_eq!(request("Accept-Encoding: gzip;q=0\r\n"), None);
        assert_eq!(request("Accept-Encoding: gzip;Q=0\r\n"), None);
        assert_eq!(request("Accept-Encoding: identity\r\n"), None);
        assert_eq!(request(""), None);
        assert_eq!(request("Accept-Encoding: gzip\r\nRange: bytes=0-5\r\n"), None);
        assert_eq!(request("Accept-Encoding: gzip\r\nCache-Control: no-transform\r\n"), None);
        assert_eq!(Coding::of_request(b"GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"), None);
        assert_eq!(Coding::of_request(b"HEAD / HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n"), None);
    }

    fn rewritten(fields: &str) -> Option<String> {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        Coding::Gzip.rewrite(head.as_bytes()).map(|head| String::from_utf8(head).expect("it is text"))
    }

    #[test]
    fn the_head_states_what_was_done() {
        let fields = "Content-Type: text/html; charset=utf-8\r\nContent-Length: 1000\r\nETag: \"a\"\r\nX-Y: z\r\n";
        let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nETag: W/\"a\"\r\nX-Y: z\r\n\
                        Vary: Accept-Encoding\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(rewritten(fields).as_deref(), Some(expected));
        let has = rewritten("Content-Type: image/svg+xml\r\nVary: Cookie, Accept-Encoding\r\nETag: W/\"a\"\r\n");
        let has = has.expect("it is compressed");
        assert_eq!((has.matches("Accept-Encoding").count(), has.matches("W/").count()), (1, 1));
    }

    #[test]
    fn what_must_not_be_changed_is_not() {
        let text = "Content-Type: text/plain\r\n";
        assert!(rewritten(text).is_some());
        for field in [
            "Cache-Control: public, no-transform",
            "Content-Encoding: gzip",
            "Content-Range: bytes 0-999/2000",
            "Content-Digest: sha-256=:x:",
            "Repr-Digest: sha-256=:x:",
            "Content-MD5: x",
            "Trailer: X",
            "Content-Length: 255",
        ] {
            assert_eq!(rewritten(&format!("{text}{field}\r\n")), None, "{field}");
        }
        for kind in ["image/png", "application/octet-stream", "text/event-stream", "video/mp4"] {
            assert_eq!(rewritten(&format!("Content-Type: {kind}\r\n")), None, "{kind}");
        }
        assert_eq!(rewritten(""), None, "the type is not known");
        assert_eq!(Coding::Gzip.rewrite(b"HTTP/1.1 206 Partial\r\nContent-Type: text/plain\r\n\r\n"), None);
        assert_eq!(Coding::Gzip.rewrite(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"), None);
    }

    #[test]
    fn what_is_flushed_can_be_decompressed() {
        let text: Vec<u8> = (0..30_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
        for coding in Coding::ALL {
            let mut encoder = Encoder::new(coding).expect("there is memory");
            let mut chunks = Vec::new();
            for part in text.chunks(1460) {
                encoder.write(part);
                encoder.flush();
                chunks.extend(encoder.take_chunk());
            }
            let until_flush = chunks.len();
            chunks.extend(encoder.finish());
            let (mut body, mut compressed) = (Body::new(Framing::Chunked), Vec::new());
            body.advance(&chunks[..until_flush], |data| compressed.extend_from_slice(data)).expect("valid chunks");
            let mut decoder: Box<dyn Read> = match coding {
                Coding::Brotli => Box::new(brotli::Decompressor::new(&compressed[..], 4096)),
                Coding::Zstandard => Box::new(zstd::stream::read::Decoder::new(&compressed[..]).expect("memory")),
                Coding::Gzip => Box::new(flate2::read::GzDecoder::new(&compressed[..])),
            };
            let mut read = vec![0; text.len()];
            decoder.read_exact(&mut read).expect("all of it was flushed");
            assert!(read == text, "{coding:?}");
            assert!(!body.is_complete());
            body.advance(&chunks[until_flush..], |_| {}).expect("valid chunks");
            assert!(body.is_complete());
        }
    }
}
