//! The browser's end of a connection: requests out, responses in.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use airpath_core::Instant;
use flate2::write::GzDecoder;
use httparse::{EMPTY_HEADER, Status};

use super::server::etag;
use super::{Urls, end_head, url};
use crate::transport::StreamEnd;
use crate::web::browser::Browser;
use crate::web::messages::Messages;
use crate::web::settings::{Downward, Protocol, Request, Upward, share_of};

/// Most fields of a response.
const MOST_FIELDS: usize = 64;

/// Why a browser cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexpected {
    /// Bytes that are not the response to a request.
    #[error("the browser received what is not a response to its request")]
    Malformed,
    /// A status that no server of a page sends.
    #[error("the browser received status {0}")]
    Status(u16),
    /// A response that ends before its content is complete.
    #[error("a connection ended before the response of the browser's request was complete")]
    CutOff,
}

/// The browser's end of a connection.
#[derive(Debug)]
pub struct ClientText {
    urls: Arc<Urls>,
    number: u32,
    up: Messages<Upward>,
    down: Messages<Downward>,
    stream: StreamEnd,
    /// Requests whose responses are not complete.
    outstanding: VecDeque<Request>,
    /// Bytes that were not interpreted yet.
    unread: Vec<u8>,
    state: State,
}

/// What arrives next.
#[derive(Debug)]
enum State {
    Head,
    Body { framing: Framing, coding: Coding },
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    /// Bytes left.
    Length(u64),
    /// At the size of a chunk.
    ChunkSize,
    /// Bytes of the chunk that are left.
    Chunk(u64),
    /// Before the end of line of the last chunk.
    LastChunk,
    UntilClose,
}

/// How much content arrived bytes stand for.
#[derive(Debug)]
enum Coding {
    Identity,
    /// By the server, with the stated size: bytes so far, of all, and of the content.
    Stated {
        received: u64,
        encoded: u64,
        size: u64,
    },
    /// By a proxy.
    Gzip(Box<GzDecoder<Counter>>),
}

/// Counts what is written.
#[derive(Debug, Default)]
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Coding {
    /// Bytes of content that `bytes` stand for.
    fn decode(&mut self, bytes: &[u8]) -> Result<u64, Unexpected> {
        let length = bytes.len() as u64;
        Ok(match self {
            Self::Identity => length,
            Self::Stated { received, encoded, size } => {
                let before = share_of(*size, *received, *encoded);
                *received += length;
                share_of(*size, *received, *encoded) - before
            }
            Self::Gzip(decoder) => {
                let before = decoder.get_ref().0;
                decoder.write_all(bytes).and_then(|()| decoder.flush()).map_err(|_| Unexpected::Malformed)?;
                decoder.get_ref().0 - before
            }
        })
    }
}

impl ClientText {
    /// The end of the browser's connection `number`.
    pub fn new(urls: Arc<Urls>, number: u32) -> Self {
        Self {
            urls,
            number,
            up: Messages::default(),
            down: Messages::default(),
            stream: StreamEnd::default(),
            outstanding: VecDeque::new(),
            unread: Vec::new(),
            state: State::Head,
        }
    }

    /// Data may flow from now on.
    pub const fn establish(&mut self) {
        self.stream.establish();
    }

    /// Whether the browser has closed the connection.
    pub const fn is_closed(&self) -> bool {
        self.stream.is_closed()
    }

    /// Bytes of the server have arrived.
    ///
    /// # Errors
    /// If they are not the responses to the requests.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Unexpected> {
        let mut unread = std::mem::take(&mut self.unread);
        unread.extend(bytes);
        let mut used = 0;
        while used < unread.len() {
            match self.advance(&unread[used..])? {
                0 => break,
                count => used += count,
            }
        }
        unread.drain(..used);
        self.unread = unread;
        Ok(())
    }

    /// The server's stream has ended.
    ///
    /// # Errors
    /// If a response is not complete.
    pub fn end(&mut self) -> Result<(), Unexpected> {
        self.stream.end();
        if let State::Body { framing: Framing::UntilClose, .. } = self.state {
            self.finish(0);
        }
        if self.outstanding.is_empty() { Ok(()) } else { Err(Unexpected::CutOff) }
    }

    /// Acts as the browser does now on this connection. Appends what it sends to `text`; returns
    /// whether [`Browser::poll`] has something to do.
    pub fn step(&mut self, now: Instant, browser: &mut Browser, text: &mut Vec<u8>) -> bool {
        let acted = browser.step(now, self.number, &mut self.up, &mut self.down, &mut self.stream);
        self.stream.take(self.stream.unsent());
        while let Some(message) = self.up.pop(self.stream.taken()) {
            if let Upward::Request(request) = message {
                self.outstanding.push_back(request);
                let mut head = request_head(&self.urls, request);
                end_head(&mut head, REQUEST_PADDING, self.urls.session.settings.request.get());
                text.extend(head.into_bytes());
            }
        }
        acted
    }

    /// Interprets the start of `bytes`; returns how many.
    fn advance(&mut self, bytes: &[u8]) -> Result<usize, Unexpected> {
        let State::Body { framing, coding } = &mut self.state else { return self.head(bytes) };
        let left = match *framing {
            Framing::Length(left) | Framing::Chunk(left) => left,
            Framing::UntilClose => u64::MAX,
            Framing::ChunkSize => {
                return match httparse::parse_chunk_size(bytes).map_err(|_| Unexpected::Malformed)? {
                    Status::Partial => Ok(0),
                    Status::Complete((length, size)) => {
                        *framing = if size == 0 { Framing::LastChunk } else { Framing::Chunk(size) };
                        self.part(length as u64, (0, 0), false);
                        Ok(length)
                    }
                };
            }
            Framing::LastChunk => {
                if bytes.len() < 2 {
                    return Ok(0);
                }
                self.finish(2);
                return Ok(2);
            }
        };
        if left == 0 {
            // The end of line after a chunk.
            if bytes.len() < 2 {
                return Ok(0);
            }
            *framing = Framing::ChunkSize;
            self.part(2, (0, 0), false);
            return Ok(2);
        }
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let content = coding.decode(&bytes[..count])?;
        let is_last = match framing {
            Framing::Length(left) => {
                *left -= count as u64;
                *left == 0
            }
            Framing::Chunk(left) => {
                *left -= count as u64;
                false
            }
            _ => false,
        };
        self.part(0, (count as u64, content), is_last);
        Ok(count)
    }

    fn head(&mut self, bytes: &[u8]) -> Result<usize, Unexpected> {
        let request = *self.outstanding.front().ok_or(Unexpected::Malformed)?;
        let mut fields = [EMPTY_HEADER; MOST_FIELDS];
        let mut head = httparse::Response::new(&mut fields);
        let parsed = head.parse(bytes).map_err(|_| Unexpected::Malformed)?;
        let Status::Complete(length) = parsed else { return Ok(0) };
        let field = |name: &str| {
            let found = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
            found.and_then(|field| std::str::from_utf8(field.value).ok())
        };
        let framing = match (field("transfer-encoding"), field("content-length")) {
            (Some(_), _) => Framing::ChunkSize,
            (None, Some(bytes)) => Framing::Length(bytes.parse().map_err(|_| Unexpected::Malformed)?),
            (None, None) => Framing::UntilClose,
        };
        let session = &self.urls.session;
        let object = session.object(request);
        let coding = match (field("content-encoding"), framing) {
            (None, _) => Coding::Identity,
            (Some(_), Framing::Length(encoded)) => Coding::Stated { received: 0, encoded, size: object.size },
            (Some(_), _) => Coding::Gzip(Box::new(GzDecoder::new(Counter::default()))),
        };
        let is_empty = match head.code {
            Some(304) => true,
            Some(200) => matches!(framing, Framing::Length(0)),
            status => return Err(Unexpected::Status(status.unwrap_or_default())),
        };
        self.state = State::Body { framing, coding };
        self.part(length as u64, (0, 0), false);
        if is_empty {
            self.finish(0);
        }
        Ok(length)
    }

    /// Framing and bytes of the body have arrived, which stand for `content` bytes.
    fn part(&mut self, framing: u64, (body, content): (u64, u64), last: bool) {
        let Some(request) = self.outstanding.front().copied() else { return };
        self.down.push(framing + body, Downward::Part { request, body, content, framing, readable: true, last });
        self.stream.receive(framing + body);
        if last {
            self.outstanding.pop_front();
            self.state = State::Head;
        }
    }

    /// The response ends with its next `bytes`.
    fn finish(&mut self, bytes: u64) {
        self.part(bytes, (0, 0), true);
    }
}

/// The field that brings the head of a request to its size.
pub(super) const REQUEST_PADDING: &str = "User-Agent";

/// The head of a request without its end.
pub(super) fn request_head(urls: &Urls, request: Request) -> String {
    let settings = &urls.session.settings;
    let (host, path) = url(&urls.session, request.page, request.object);
    let version = if settings.protocol == Protocol::Http10 { "1.0" } else { "1.1" };
    // RFC 9112 §3.2.2: a proxy is given the whole URL.
    let prefix = if settings.proxy { format!("http://{host}") } else { String::new() };
    let mut head =
        format!("GET {prefix}{path} HTTP/{version}\r\nHost: {host}\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n");
    if request.conditional {
        head.push_str(&format!("If-None-Match: {}\r\n", etag(request.page, request.object)));
    }
    head.push_str(&urls.request_fields);
    head
}
