//! Who an end of a connection is: its flow, its addresses, and its random numbers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use airpath_core::{Direction, FlowId, RandomStream};
use quinn_proto::crypto::{self, AeadKey, CryptoError, HandshakeTokenKey, HmacKey};
use quinn_proto::{ClientConfig, ConnectionId, ConnectionIdGenerator, EndpointConfig, ServerConfig, TimeSource};

/// Bytes of a connection identifier: as of quinn's own generator.
pub const IDENTIFIER: usize = 8;
/// Bytes of the first destination identifier of a client (RFC 9000 §7.2: at least 8).
const FIRST_DESTINATION: usize = 20;

/// Identity of one end of a connection.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The flow, for the log.
    pub flow: FlowId,
    /// Direction of the data that this end sends, for the log.
    pub direction: Direction,
    /// Address of the peer at the beginning.
    pub remote: SocketAddr,
    /// Number of the connection in its flow, for the log.
    pub connection: u32,
    /// Whether a server accepts that its client migrates (RFC 9000 §9); off by default.
    pub migration: bool,
    /// Whether the packets that it sends and loses are reported; off by default.
    pub logs_packets: bool,
    /// Seed of quinn's generator and keys.
    seed: RandomStream,
    /// Connection identifiers.
    identifiers: RandomStream,
}

impl Identity {
    /// An identity with the random streams `seed` and `identifiers`, which `random` makes.
    pub fn new(flow: FlowId, direction: Direction, mut random: impl FnMut(&str) -> RandomStream) -> Self {
        // An address for documentation (RFC 5737). Who sends the datagrams has the real one.
        let remote = (Ipv4Addr::new(192, 0, 2, 1), 443).into();
        let (seed, identifiers) = (random("seed"), random("identifiers"));
        Self { flow, direction, remote, connection: 0, migration: false, logs_packets: false, seed, identifiers }
    }

    /// The settings of quinn's end point, for UDP payloads of up to `datagram_size` bytes.
    ///
    /// # Panics
    /// If the size is above 65,527 bytes, the largest of UDP.
    pub fn endpoint_config(&mut self, datagram_size: u32) -> EndpointConfig {
        let mut config = EndpointConfig::new(Arc::new(Key(self.seed.bits())));
        let generator = Generator(self.identifiers.clone());
        config.rng_seed(Some(bytes(&mut self.seed))).cid_generator(move || Box::new(generator.clone()));
        let largest = u16::try_from(datagram_size.max(1472)).expect("a UDP datagram has at most 65,527 bytes");
        config.max_udp_payload_size(largest).expect("at least 1200 bytes are allowed");
        config
    }

    /// The settings of quinn's client with this cryptography, and the default transport.
    pub fn client_config(&mut self, crypto: Arc<dyn crypto::ClientConfig>) -> ClientConfig {
        let mut config = ClientConfig::new(crypto);
        // Each connection has a destination identifier of its own.
        let destinations = Mutex::new(self.seed.clone());
        config.initial_dst_cid_provider(Arc::new(move || {
            let mut destinations = destinations.lock().unwrap_or_else(PoisonError::into_inner);
            ConnectionId::new(&bytes::<FIRST_DESTINATION>(&mut destinations))
        }));
        config
    }

    /// The settings of quinn's server with this cryptography, and the default transport.
    pub fn server_config(&mut self, crypto: Arc<dyn crypto::ServerConfig>) -> ServerConfig {
        let mut config = ServerConfig::new(crypto, Arc::new(Key(self.seed.bits())));
        config.migration(self.migration).time_source(Arc::new(NoTime));
        config.validation_token.sent(0);
        config
    }
}

fn bytes<const LENGTH: usize>(stream: &mut RandomStream) -> [u8; LENGTH] {
    std::array::from_fn(|_| stream.bits() as u8)
}

/// Makes connection identifiers from a random stream.
#[derive(Clone)]
struct Generator(RandomStream);

impl ConnectionIdGenerator for Generator {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&bytes::<IDENTIFIER>(&mut self.0))
    }

    fn cid_len(&self) -> usize {
        IDENTIFIER
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// A key of a keyed hash that is no protection: a simulation has no attacker.
#[derive(Clone, Copy)]
struct Key(u64);

/// Bytes of the hash: those of SHA-256.
const HASH: usize = 32;

impl Key {
    fn hash(self, data: &[u8]) -> [u8; HASH] {
        // FNV-1a and the finaliser of SplitMix64.
        let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let mut state = data.iter().fold(0xcbf2_9ce4_8422_2325 ^ self.0, fold);
        let mut hash = [0; HASH];
        for chunk in hash.chunks_exact_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            chunk.copy_from_slice(&(mixed ^ (mixed >> 27)).to_le_bytes());
        }
        hash
    }
}

impl HmacKey for Key {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        signature_out.copy_from_slice(&self.hash(data));
    }

    fn signature_len(&self) -> usize {
        HASH
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        if self.hash(data) == *signature { Ok(()) } else { Err(CryptoError) }
    }
}

impl HandshakeTokenKey for Key {
    fn aead_from_hkdf(&self, random_bytes: &[u8]) -> Box<dyn AeadKey> {
        let hash = self.hash(random_bytes);
        Box::new(TokenKey(hash[..TAG].try_into().expect("the hash is longer")))
    }
}

/// Bytes of the tag of a token.
const TAG: usize = 16;

/// Marks tokens with a tag and does not encrypt them.
struct TokenKey([u8; TAG]);

impl AeadKey for TokenKey {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.extend_from_slice(&self.0);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        let (token, tag) = data.split_at_mut(length);
        if *tag == self.0 { Ok(token) } else { Err(CryptoError) }
    }
}

/// The time of tokens: constant, because no token expires in a run.
struct NoTime;

impl TimeSource for NoTime {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH
    }
}
