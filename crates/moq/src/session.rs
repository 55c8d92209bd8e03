//! What both ends of a session do: settings of QUIC, control streams, errors.

use std::sync::Arc;

use airpath_core::{Direction, FlowId, Instant, RandomStream, Span};
use airpath_quic::Identity;
use airpath_quic::null_crypto::NullCrypto;
use quinn::{ConnectionError, ReadError, RecvStream, SendStream, TransportConfig, VarInt, WriteError};

use crate::message::{Message, SETUP};
use crate::settings::Settings;
use crate::wire::{Pair, Reader, Value, WireError};

/// UDP port of the publisher.
pub const PORT: u16 = 4433;

/// Largest UDP payload that an end point accepts: the default of quinn.
pub const LARGEST_DATAGRAM: u32 = 1472;

/// Streams that may be open at once: more groups than that do not wait for delivery.
const MOST_STREAMS: u32 = 10_000;

/// The time at which clocks of virtual time start: 2026-01-01 in UTC. So times of capture have as
/// many bytes as those of real time.
pub const VIRTUAL_START: Instant = Instant::from_nanos(1_767_225_600 * 1_000_000_000);

/// Codes with which a session ends (draft-ietf-moq-transport-19 §3.5).
pub mod termination {
    use quinn::VarInt;

    /// No error.
    pub const NO_ERROR: VarInt = VarInt::from_u32(0x0);
    /// The peer did what the draft forbids.
    pub const PROTOCOL_VIOLATION: VarInt = VarInt::from_u32(0x3);
}

/// Code with which a stream is reset whose delivery timeout is over (§3.3.4).
pub const DELIVERY_TIMEOUT: VarInt = VarInt::from_u32(0x2);

/// Priority of control and request streams in quinn: above all media (§7.2).
pub const CONTROL_PRIORITY: i32 = i32::MAX;

/// Why a session ended, or a stream of it.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The connection ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The peer reset a stream with this code.
    #[error("the peer reset a stream with code {0}")]
    Reset(VarInt),
    /// The peer no longer reads a stream.
    #[error("the peer stopped a stream with code {0}")]
    Stopped(VarInt),
    /// Bytes of the peer do not follow the format.
    #[error("the peer violates the protocol: {0}")]
    Violation(&'static str),
    /// The publisher refused a subscription.
    #[error("the publisher refuses the track `{track}` with code {code:#x}: {reason}")]
    Refused {
        /// The track.
        track: &'static str,
        /// The code of REQUEST_ERROR.
        code: u64,
        /// The reason in it.
        reason: String,
    },
}

impl From<ReadError> for SessionError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => Self::Reset(code),
            ReadError::ConnectionLost(error) => Self::Connection(error),
            ReadError::ClosedStream | ReadError::IllegalOrderedRead | ReadError::ZeroRttRejected => {
                unreachable!("a stream is read in order, until its end, and without 0-RTT")
            }
        }
    }
}

impl From<WriteError> for SessionError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::Stopped(code),
            WriteError::ConnectionLost(error) => Self::Connection(error),
            WriteError::ClosedStream | WriteError::ZeroRttRejected => {
                unreachable!("nothing is written after the end of a stream, and without 0-RTT")
            }
        }
    }
}

/// The settings of QUIC of both ends.
pub fn transport(settings: &Settings) -> Arc<TransportConfig> {
    let mut transport = settings.quic.transport_config();
    transport.max_concurrent_uni_streams(VarInt::from_u32(MOST_STREAMS));
    Arc::new(transport)
}

/// The settings of a publisher.
pub fn server_config(settings: &Settings, identity: &mut Identity) -> quinn::ServerConfig {
    let mut config = identity.server_config(Arc::new(NullCrypto::new(&settings.quic)));
    config.transport_config(transport(settings));
    config
}

/// The settings of a subscriber.
pub fn client_config(settings: &Settings, identity: &mut Identity) -> quinn::ClientConfig {
    let mut config = identity.client_config(Arc::new(NullCrypto::new(&settings.quic)));
    config.transport_config(transport(settings));
    config
}

/// An identity with random streams of its own.
pub fn identity(direction: Direction, random: impl FnMut(&str) -> RandomStream) -> Identity {
    Identity::new(FlowId(0), direction, random)
}

/// The control stream of this end, with SETUP. The stream must stay open.
///
/// # Errors
/// If the connection ends.
pub async fn open_control(connection: &quinn::Connection, options: Vec<Pair>) -> Result<SendStream, SessionError> {
    let mut control = connection.open_uni().await?;
    // It is new.
    let _ = control.set_priority(CONTROL_PRIORITY);
    control.write_all(&Message::Setup { options }.to_bytes()).await?;
    Ok(control)
}

/// The options of SETUP of a subscriber: PATH and AUTHORITY of `moqt://host/live` (§10.3.1).
pub fn client_options(host: &str) -> Vec<Pair> {
    [(0x01, "/live"), (0x05, host)]
        .into_iter()
        .map(|(kind, text)| Pair { kind, value: Value::Bytes(text.as_bytes().to_vec()) })
        .collect()
}

/// Reads the fields of a stream of the peer as they arrive.
#[derive(Debug)]
pub struct Incoming {
    stream: RecvStream,
    /// Bytes that were received and not read.
    bytes: Vec<u8>,
}

impl Incoming {
    /// Most bytes of a chunk.
    const CHUNK: usize = 1 << 16;

    /// Reads `stream`.
    pub const fn new(stream: RecvStream) -> Self {
        Self { stream, bytes: Vec::new() }
    }

    /// The next field, by `read`; `None` at the end of the stream.
    ///
    /// # Errors
    /// If the peer resets the stream or violates the format, or the connection ends.
    pub async fn next<T>(
        &mut self,
        mut read: impl FnMut(&mut Reader<'_>) -> crate::wire::Result<T>,
    ) -> Result<Option<T>, SessionError> {
        loop {
            let mut reader = Reader::new(&self.bytes);
            match read(&mut reader) {
                Ok(field) => {
                    let left = reader.rest().len();
                    self.bytes.drain(..self.bytes.len() - left);
                    return Ok(Some(field));
                }
                Err(WireError::Violation(message)) => return Err(SessionError::Violation(message)),
                Err(WireError::Incomplete) => {}
            }
            match self.stream.read_chunk(Self::CHUNK, true).await? {
                Some(chunk) => self.bytes.extend_from_slice(&chunk.bytes),
                None if self.bytes.is_empty() => return Ok(None),
                None => return Err(SessionError::Violation("a stream ends within a field")),
            }
        }
    }

    /// The type of a stream of one direction, which is not taken from it; `None` if it has none.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn kind(&mut self) -> Result<Option<u64>, SessionError> {
        let mut kind = None;
        let peek = |reader: &mut Reader<'_>| {
            kind = Some(reader.clone().integer()?);
            Ok(())
        };
        self.next(peek).await?;
        Ok(kind)
    }

    /// Reads a control stream until the connection ends. Only SETUP is expected.
    ///
    /// # Errors
    /// As [`Self::next`], and if the peer ends the stream or sends anything else.
    pub async fn read_control(&mut self) -> Result<(), SessionError> {
        match self.next(Message::read).await? {
            Some(Message::Setup { .. }) => {}
            _ => return Err(SessionError::Violation("a control stream does not begin with SETUP")),
        }
        match self.next(Message::read).await? {
            Some(_) => Err(SessionError::Violation("a control stream has a message that is not supported here")),
            None => Err(SessionError::Violation("a control stream was closed")),
        }
    }
}

/// Whether a stream with this type is a control stream.
pub const fn is_control(kind: u64) -> bool {
    kind == SETUP
}

/// Closes the connection if the peer violated the protocol.
pub fn close_on_violation(connection: &quinn::Connection, error: &SessionError) {
    if let SessionError::Violation(message) = error {
        connection.close(termination::PROTOCOL_VIOLATION, message.as_bytes());
    }
}

/// Milliseconds of a delivery timeout.
pub const fn milliseconds(span: Span) -> u64 {
    span.as_nanos() / 1_000_000
}
