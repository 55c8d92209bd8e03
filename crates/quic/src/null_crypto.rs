//! A handshake with the messages, sizes and steps of TLS 1.3, without encryption.
//!
//! Packets have the sizes of real ones: a tag of 16 bytes and a header sample of 16 bytes (RFC 9001
//! §5.3, §5.4.2). Keys appear in the steps of TLS (RFC 9001 §4.1): the handshake keys of the server
//! with its ServerHello, its 1-RTT keys with its Finished, those of the client when it has read
//! them. The client's Finished crosses in a Handshake packet.
//!
//! Nothing is encrypted or authenticated: use it in simulations and test networks only. A
//! decoder that expects TLS (Wireshark) reads the headers of long packets, and cannot decrypt
//! their payload.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// Bytes of the tag of an AEAD of TLS 1.3 (RFC 9001 §5.3).
pub(crate) const TAG: usize = 16;
/// Bytes of the sample for header protection (RFC 9001 §5.4.2).
const SAMPLE: usize = 16;
/// Bytes of a ServerHello with an X25519 key share and no session identifier (RFC 8446 §4.1.3).
const SERVER_HELLO: usize = 90;
/// Bytes of a Finished message with SHA-256 (RFC 8446 §4.4.4).
const FINISHED: usize = 36;
/// Bytes of the header of a handshake message: type and length (RFC 8446 §4).
const HEADER: usize = 4;

/// Handshake types (RFC 8446 §4).
mod kind {
    pub const CLIENT_HELLO: u8 = 1;
    pub const SERVER_HELLO: u8 = 2;
    pub const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub const CERTIFICATE: u8 = 11;
    pub const FINISHED: u8 = 20;
}

/// Sizes of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullCrypto {
    /// Bytes of the ClientHello without transport parameters.
    pub client_hello: usize,
    /// Bytes of Certificate and CertificateVerify.
    pub certificates: usize,
}

/// The sizes of [`Config::default`](crate::Config).
impl Default for NullCrypto {
    fn default() -> Self {
        Self::new(&crate::Config::default())
    }
}

impl NullCrypto {
    /// The sizes of `config`.
    ///
    /// # Panics
    /// If a size does not fit into memory, which [`Config::check`](crate::Config::check) excludes.
    pub fn new(config: &crate::Config) -> Self {
        let size = |bytes: airpath_core::Bytes| usize::try_from(bytes.get()).expect("`Config::check` limits the size");
        Self { client_hello: size(config.client_hello), certificates: size(config.certificates) }
    }
}

impl ClientConfig for NullCrypto {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(NullSession::new(*self, Side::Client, params)))
    }
}

impl ServerConfig for NullCrypto {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; TAG]
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(NullSession::new(*self, Side::Server, params))
    }
}

/// What an end writes or expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The client writes its hello; the server expects it.
    ClientHello,
    /// The server writes its hello; the client expects it.
    ServerHello,
    /// The server writes the rest of its flight; the client expects it.
    ServerFlight,
    /// The client writes its Finished; the server expects it.
    ClientFinished,
    /// The handshake is complete.
    Done,
}

struct NullSession {
    sizes: NullCrypto,
    side: Side,
    step: Step,
    /// Transport parameters of this end, encoded.
    parameters: Vec<u8>,
    /// Transport parameters of the peer, as far as they have arrived.
    peer: Option<TransportParameters>,
    /// Bytes that arrived and are not a whole message yet.
    input: Vec<u8>,
    /// Whether the client has read the ServerHello, and has not taken the keys for it.
    hello_read: bool,
    /// Whether the client has the server's Finished.
    flight_read: bool,
}

impl NullSession {
    fn new(sizes: NullCrypto, side: Side, params: &TransportParameters) -> Self {
        let mut parameters = Vec::new();
        params.write(&mut parameters);
        let (input, step) = (Vec::new(), Step::ClientHello);
        Self { sizes, side, step, parameters, peer: None, input, hello_read: false, flight_read: false }
    }

    /// Reads the message `body` of type `kind`.
    fn read_message(&mut self, kind: u8, body: &[u8]) -> Result<(), TransportError> {
        match (self.side, self.step, kind) {
            (Side::Server, Step::ClientHello, kind::CLIENT_HELLO) => {
                self.peer = Some(self.read_parameters(body)?);
                self.step = Step::ServerHello;
            }
            (Side::Client, Step::ServerHello, kind::SERVER_HELLO) => {
                self.hello_read = true;
                self.step = Step::ServerFlight;
            }
            (Side::Client, Step::ServerFlight, kind::ENCRYPTED_EXTENSIONS) => {
                self.peer = Some(self.read_parameters(body)?);
            }
            (Side::Client, Step::ServerFlight, kind::CERTIFICATE) => {}
            (Side::Client, Step::ServerFlight, kind::FINISHED) => self.flight_read = true,
            (Side::Server, Step::ClientFinished, kind::FINISHED) => self.step = Step::Done,
            _ => return Err(violation("a message of the handshake out of order")),
        }
        Ok(())
    }

    /// The transport parameters of the peer, which begin with their length.
    fn read_parameters(&self, body: &[u8]) -> Result<TransportParameters, TransportError> {
        let malformed = || violation("transport parameters that cannot be read");
        let (length, rest) = body.split_first_chunk().ok_or_else(malformed)?;
        let mut parameters = rest.get(..usize::from(u16::from_be_bytes(*length))).ok_or_else(malformed)?;
        Ok(TransportParameters::read(self.side, &mut parameters)?)
    }
}

impl Session for NullSession {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.input.extend_from_slice(buf);
        while let Some(&[kind, high, middle, low]) = self.input.first_chunk() {
            let end = HEADER + u32::from_be_bytes([0, high, middle, low]) as usize;
            if self.input.len() < end {
                break;
            }
            let message: Vec<u8> = self.input.drain(..end).collect();
            self.read_message(kind, &message[HEADER..])?;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.step) {
            (Side::Client, Step::ClientHello) => {
                let size = self.sizes.client_hello + self.parameters.len();
                write_message(buf, kind::CLIENT_HELLO, &self.parameters, size);
                self.step = Step::ServerHello;
                None
            }
            (Side::Server, Step::ServerHello) => {
                write_message(buf, kind::SERVER_HELLO, &[], SERVER_HELLO);
                self.step = Step::ServerFlight;
                Some(keys())
            }
            (Side::Client, Step::ServerFlight) if self.hello_read => {
                self.hello_read = false;
                Some(keys())
            }
            (Side::Server, Step::ServerFlight) => {
                write_message(buf, kind::ENCRYPTED_EXTENSIONS, &self.parameters, 0);
                write_message(buf, kind::CERTIFICATE, &[], self.sizes.certificates);
                write_message(buf, kind::FINISHED, &[], FINISHED);
                self.step = Step::ClientFinished;
                Some(keys())
            }
            (Side::Client, Step::ServerFlight) if self.flight_read => {
                write_message(buf, kind::FINISHED, &[], FINISHED);
                self.step = Step::Done;
                Some(keys())
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys().packet)
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn export_keying_material(&self, output: &mut [u8], _: &[u8], _: &[u8]) -> Result<(), ExportKeyingMaterialError> {
        output.fill(0);
        Ok(())
    }
}

/// Writes a message with `contents` behind their length, filled up to `size` bytes in all.
fn write_message(buf: &mut Vec<u8>, kind: u8, contents: &[u8], size: usize) {
    let body = size.saturating_sub(HEADER).max(if contents.is_empty() { 0 } else { 2 + contents.len() });
    let [_, high, middle, low] = (body as u32).to_be_bytes();
    buf.extend_from_slice(&[kind, high, middle, low]);
    let end = buf.len() + body;
    if !contents.is_empty() {
        buf.extend_from_slice(&(contents.len() as u16).to_be_bytes());
        buf.extend_from_slice(contents);
    }
    buf.resize(end, 0);
}

fn violation(reason: &str) -> TransportError {
    TransportError { code: TransportErrorCode::PROTOCOL_VIOLATION, frame: None, reason: reason.to_owned() }
}

fn keys() -> Keys {
    let header = || -> Box<dyn HeaderKey> { Box::new(NullKey) };
    let packet = || -> Box<dyn PacketKey> { Box::new(NullKey) };
    Keys {
        header: KeyPair { local: header(), remote: header() },
        packet: KeyPair { local: packet(), remote: packet() },
    }
}

struct NullKey;

impl HeaderKey for NullKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        SAMPLE
    }
}

/// The tag of a packet. It authenticates the packet number, as an AEAD does (RFC 9001 §5.3). The
/// number of a packet that was delayed for long decodes to another one (RFC 9000 §A.3), so the
/// packet is dropped.
fn tag(packet: u64) -> [u8; TAG] {
    u128::from(packet).to_be_bytes()
}

impl PacketKey for NullKey {
    fn encrypt(&self, packet: u64, buf: &mut [u8], _: usize) {
        let length = buf.len() - TAG;
        buf[length..].copy_from_slice(&tag(packet));
    }

    fn decrypt(&self, packet: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload[length..] != tag(packet) {
            return Err(CryptoError);
        }
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_with_another_number_is_dropped() {
        let mut packet = [7; 40];
        PacketKey::encrypt(&NullKey, 70_000, &mut packet, 8);
        let decrypt = |number| PacketKey::decrypt(&NullKey, number, &[], &mut BytesMut::from(&packet[8..]));
        assert!(decrypt(70_000).is_ok());
        assert!(decrypt(70_000 + 65_536).is_err());
    }
}
