//! The hellos of a TLS handshake (RFC 8446 §4.1): server name, protocols and version.
//!
//! The crate `tls-parser` is no replacement. The record layer must read on over bytes that the
//! capture missed, which that crate does not do, so only this file could go. Its list of extensions
//! ends at the first malformed one: the server name after a cut `supported_groups` is lost, which
//! is read here. Its use also adds 30 crates to the build.

/// Bytes that a hello may have.
pub(super) const MAX_LENGTH: usize = 32 << 10;

/// A message of the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hello {
    Client {
        server_name: Option<Box<str>>,
        protocols: Vec<Box<str>>,
    },
    Server {
        version: u16,
    },
    /// HelloRetryRequest: a ServerHello that requests another ClientHello.
    Retry,
    Other,
}

/// The random of a HelloRetryRequest, SHA-256 of its name (RFC 8446 §4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Types of extensions.
const SERVER_NAME: u16 = 0;
const APPLICATION_LAYER_PROTOCOL_NEGOTIATION: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;

/// Parses the first message of `bytes`; `None` while it is incomplete.
pub(super) fn parse(bytes: &[u8]) -> Option<Hello> {
    let (kind, rest) = (bytes.first()?, bytes.get(4..)?);
    let length = usize::from(bytes[1]) << 16 | usize::from(bytes[2]) << 8 | usize::from(bytes[3]);
    let body = rest.get(..length)?;
    Some(match kind {
        1 => client(body).unwrap_or(Hello::Client { server_name: None, protocols: Vec::new() }),
        2 => server(body).unwrap_or(Hello::Other),
        _ => Hello::Other,
    })
}

/// Version, random, session, cipher suites, compression, extensions.
fn client(body: &[u8]) -> Option<Hello> {
    let mut reader = Fields(body);
    reader.take(34)?;
    reader.vector8()?;
    reader.vector16()?;
    reader.vector8()?;
    let (mut server_name, mut protocols) = (None, Vec::new());
    each_extension(reader, |kind, mut value| {
        match kind {
            SERVER_NAME => {
                // A list of names; the only type is the host name (RFC 6066 §3).
                let mut list = Fields(value.vector16()?);
                if list.take(1)? == [0] {
                    server_name = Some(String::from_utf8_lossy(list.vector16()?).into());
                }
            }
            APPLICATION_LAYER_PROTOCOL_NEGOTIATION => {
                let mut list = Fields(value.vector16()?);
                while let Some(protocol) = list.vector8() {
                    protocols.push(String::from_utf8_lossy(protocol).into());
                }
            }
            _ => {}
        }
        Some(())
    });
    Some(Hello::Client { server_name, protocols })
}

/// Version, random, session, cipher suite, compression, extensions.
fn server(body: &[u8]) -> Option<Hello> {
    let mut reader = Fields(body);
    let mut version = reader.number16()?;
    if reader.take(32)? == RETRY {
        return Some(Hello::Retry);
    }
    reader.vector8()?;
    reader.take(3)?;
    each_extension(reader, |kind, mut value| {
        if kind == SUPPORTED_VERSIONS {
            version = value.number16()?;
        }
        Some(())
    });
    Some(Hello::Server { version })
}

/// Calls `take` with type and value of each extension, up to the end of the list.
fn each_extension<'a>(mut reader: Fields<'a>, mut take: impl FnMut(u16, Fields<'a>) -> Option<()>) {
    let mut extensions = Fields(reader.vector16().unwrap_or_default());
    while let (Some(kind), Some(value)) = (extensions.number16(), extensions.vector16()) {
        // A malformed extension is skipped, and does not end the list.
        let _ = take(kind, Fields(value));
    }
}

/// Reads bytes field by field.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn vector8(&mut self) -> Option<&'a [u8]> {
        let length = self.take(1)?[0];
        self.take(length.into())
    }

    fn vector16(&mut self) -> Option<&'a [u8]> {
        let length = self.number16()?;
        self.take(length.into())
    }
}
