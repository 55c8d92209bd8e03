//! TLS: the time of the handshake, and the bursts of application data. Nothing is decrypted.

mod hello;

use airpath_core::{Instant, Span};

use crate::stream::{Content, Mark, Piece, Reader, Run, Stream};
use airpath_observe::End;

/// The pause after which application data in the same direction is a new burst.
pub const PAUSE: Span = Span::from_secs(1);

/// Bursts that are kept; later data counts for the last one.
const MAX_BURSTS: usize = 10_000;

/// The observable figures of a TLS connection (RFC 8446, RFC 5246).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// When the last byte of the ClientHello had passed.
    pub client_hello: Option<Mark>,
    /// When the last byte of the ServerHello had passed. A HelloRetryRequest is none.
    pub server_hello: Option<Mark>,
    /// The server name in the ClientHello (RFC 6066 §3).
    pub server_name: Option<Box<str>>,
    /// The ALPN protocols of the ClientHello (RFC 7301), in its order.
    pub protocols: Vec<Box<str>>,
    /// The version that the server chose: `0x0303` is TLS 1.2, `0x0304` TLS 1.3.
    pub version: Option<u16>,
    /// When the handshake ended. In TLS 1.3: the client's first protected record, its Finished.
    /// Before: the later of both ends' first protected handshake records.
    pub established: Option<Mark>,
    /// Application data after that.
    pub bursts: Vec<Burst>,
}

/// Application data in one direction, without data in the other and without a pause of [`PAUSE`]
/// between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Its sender.
    pub from: End,
    /// When its first byte had passed.
    pub first: Mark,
    /// When its last byte had passed.
    pub last: Mark,
    /// Bytes of its records, protection included, without the records' headers.
    pub bytes: u64,
}

impl Tls {
    /// The time from the ClientHello to the end of the handshake.
    pub fn handshake_time(&self) -> Option<Span> {
        Some(self.established?.time.since(self.client_hello?.time))
    }
}

/// Whether a client's stream that begins with `bytes` is TLS: a handshake record (RFC 8446 §5.1).
pub(super) fn begins(bytes: &[u8]) -> bool {
    matches!(bytes, [Record::HANDSHAKE, 3, 0..=4, ..])
}

/// Reads the TLS of one connection.
#[derive(Debug, Default)]
pub struct Session {
    streams: [Stream; 2],
    records: [Records; 2],
    outcome: Tls,
    /// The first handshake record of each end after its ChangeCipherSpec.
    finished: [Option<Mark>; 2],
}

impl Session {
    /// A connection whose beginning is captured.
    pub fn new() -> Self {
        Self { streams: [Stream::from_its_beginning(), Stream::from_its_beginning()], ..Self::default() }
    }

    /// Takes the payload of a segment.
    pub fn push(&mut self, from: End, piece: Piece<'_>) {
        let Self { streams, records, outcome, finished } = self;
        let at = from as usize;
        streams[at].push(piece, &mut Reading { from, records: &mut records[at], outcome, finished });
    }

    /// Ends the connection.
    pub fn finish(mut self) -> Tls {
        let Self { streams, records, outcome, finished } = &mut self;
        for from in End::BOTH {
            let at = from as usize;
            streams[at].finish(&mut Reading { from, records: &mut records[at], outcome, finished });
        }
        self.outcome
    }
}

/// The header of a record (RFC 8446 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    kind: u8,
    length: u16,
}

impl Record {
    const CHANGE_CIPHER_SPEC: u8 = 20;
    const HANDSHAKE: u8 = 22;
    const APPLICATION_DATA: u8 = 23;
    const HEADER: usize = 5;

    fn parse(header: [u8; Self::HEADER]) -> Option<Self> {
        let [kind, major, minor, upper, lower] = header;
        let length = u16::from_be_bytes([upper, lower]);
        // RFC 5246 §6.2.3: protection may add up to 2048 bytes to the 2^14 of a record.
        let plausible = matches!(kind, Self::CHANGE_CIPHER_SPEC..=Self::APPLICATION_DATA)
            && major == 3
            && minor <= 4
            && length <= (1 << 14) + 2048;
        plausible.then_some(Self { kind, length })
    }
}

/// One direction's records.
#[derive(Debug, Default)]
struct Records {
    header: [u8; Record::HEADER],
    /// Bytes of `header` that were read.
    header_length: usize,
    record: Option<Record>,
    /// Bytes left of the present record.
    left: u64,
    /// The hello of the end, until it is complete.
    hello: Vec<u8>,
    hello_done: bool,
    changed_cipher: bool,
    /// Out of synchronization until a segment begins with a record.
    lost: bool,
    read_up_to: i64,
}

struct Reading<'a> {
    from: End,
    records: &'a mut Records,
    outcome: &'a mut Tls,
    finished: &'a mut [Option<Mark>; 2],
}

impl Reader for Reading<'_> {
    fn read(&mut self, run: Run<'_>) {
        match run.content {
            Content::Missing(missing) => {
                self.advance(missing, run.offset);
                let whole = missing.min(self.records.left);
                self.body(None, whole, run.mark);
                if missing > whole {
                    self.records.lost = true;
                }
            }
            Content::Bytes(bytes) => {
                self.advance(bytes.len() as u64, run.offset);
                self.bytes(bytes, &run);
            }
        }
    }

    fn wants_from(&self) -> i64 {
        let hello =
            !self.records.hello_done && self.records.record.is_none_or(|record| record.kind == Record::HANDSHAKE);
        let known = if hello { 0 } else { self.records.left };
        self.records.read_up_to.saturating_add_unsigned(known)
    }
}

impl Reading<'_> {
    fn advance(&mut self, bytes: u64, offset: i64) {
        self.records.read_up_to = offset.saturating_add_unsigned(bytes);
    }

    fn bytes(&mut self, mut bytes: &[u8], run: &Run<'_>) {
        if self.records.lost {
            let header = bytes.first_chunk().filter(|_| run.begins_segment);
            if header.is_none_or(|header| Record::parse(*header).is_none()) {
                return;
            }
            self.records.lost = false;
            self.records.header_length = 0;
            self.records.left = 0;
        }
        while !bytes.is_empty() {
            if self.records.left > 0 {
                // No more than the length of a slice.
                let taken = self.records.left.min(bytes.len() as u64) as usize;
                self.body(Some(&bytes[..taken]), taken as u64, run.mark);
                bytes = &bytes[taken..];
                continue;
            }
            let have = self.records.header_length;
            let taken = (Record::HEADER - have).min(bytes.len());
            self.records.header[have..have + taken].copy_from_slice(&bytes[..taken]);
            self.records.header_length += taken;
            bytes = &bytes[taken..];
            if self.records.header_length == Record::HEADER {
                self.records.header_length = 0;
                let Some(record) = Record::parse(self.records.header) else {
                    self.records.lost = true;
                    return;
                };
                self.records.left = record.length.into();
                self.records.record = Some(record);
            }
        }
    }

    /// Processes `length` bytes of the present record; `None` for bytes that were not captured.
    fn body(&mut self, bytes: Option<&[u8]>, length: u64, mark: Mark) {
        let Some(Record { kind, length: whole }) = self.records.record.filter(|_| length > 0) else { return };
        let is_first = self.records.left == u64::from(whole);
        self.records.left -= length;
        let is_over = self.records.left == 0;
        match kind {
            // Between a HelloRetryRequest and the ServerHello it has no meaning (RFC 8446 §D.4).
            Record::CHANGE_CIPHER_SPEC => self.records.changed_cipher |= self.records.hello_done,
            Record::HANDSHAKE if self.records.changed_cipher && is_over => {
                self.finished[self.from as usize].get_or_insert(mark);
                if let [Some(one), Some(other)] = *self.finished {
                    self.outcome.established.get_or_insert(one.max(other));
                }
            }
            Record::HANDSHAKE if !self.records.hello_done => match bytes {
                Some(bytes) => self.hello(bytes, mark),
                None => self.records.hello_done = true,
            },
            Record::APPLICATION_DATA => self.application_data(length, is_first, is_over, mark),
            _ => {}
        }
    }

    fn hello(&mut self, bytes: &[u8], mark: Mark) {
        self.records.hello.extend_from_slice(bytes);
        let Some(hello) = hello::parse(&self.records.hello) else {
            // No hello is that long.
            self.records.hello_done = self.records.hello.len() > hello::MAX_LENGTH;
            return;
        };
        self.records.hello = Vec::new();
        self.records.hello_done = true;
        match hello {
            hello::Hello::Client { server_name, protocols } => {
                self.outcome.client_hello.get_or_insert(mark);
                self.outcome.server_name = server_name;
                self.outcome.protocols = protocols;
            }
            hello::Hello::Server { version } => {
                self.outcome.server_hello.get_or_insert(mark);
                self.outcome.version = Some(version);
            }
            hello::Hello::Retry => self.records.hello_done = false,
            hello::Hello::Other => {}
        }
    }

    fn application_data(&mut self, length: u64, is_first: bool, is_over: bool, mark: Mark) {
        if self.outcome.established.is_none() {
            // RFC 8446 §2: the client's first protected record after the ServerHello is its
            // Finished.
            let client_finished = self.from == End::Client && is_over && self.outcome.server_hello.is_some();
            if client_finished {
                self.outcome.established = Some(mark);
            }
            return;
        }
        let bursts = &mut self.outcome.bursts;
        let full = bursts.len() >= MAX_BURSTS;
        match bursts.last_mut() {
            Some(last) if full || last.from == self.from && (!is_first || !is_new(last.last.time, mark.time)) => {
                last.last = mark;
                last.bytes += length;
            }
            _ => bursts.push(Burst { from: self.from, first: mark, last: mark, bytes: length }),
        }
    }
}

fn is_new(last: Instant, now: Instant) -> bool {
    now.since(last) >= PAUSE
}
