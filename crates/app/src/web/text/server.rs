//! The server's end of a connection: requests in, responses out.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use airpath_core::Instant;
use httparse::{EMPTY_HEADER, Status};

use super::content::content;
use super::{Urls, end_head, tags};
use crate::transport::StreamEnd;
use crate::web::messages::Messages;
use crate::web::page::{Caching, Object, ObjectKind};
use crate::web::server::Server;
use crate::web::settings::{Downward, Protocol, Request, Upward};
use crate::web::tls::Handshake;

/// Most fields of a request.
const MOST_FIELDS: usize = 64;

/// Longest head of a request, in bytes; a longer one is malformed.
pub const LONGEST_HEAD: usize = 1 << 14;

/// The server's end of a connection.
#[derive(Debug)]
pub struct ServerText {
    urls: Arc<Urls>,
    server: Server,
    up: Messages<Upward>,
    down: Messages<Downward>,
    stream: StreamEnd,
    /// The part of a head that has arrived.
    unread: Vec<u8>,
    /// Whether a head was malformed: nothing more is read.
    is_malformed: bool,
    /// Whether the answer to it was sent.
    has_refused: bool,
}

impl ServerText {
    /// A server that has no request yet.
    pub fn new(urls: Arc<Urls>) -> Self {
        let handshake = Handshake::of(&urls.session.settings, false);
        let mut stream = StreamEnd::default();
        stream.establish();
        Self {
            server: Server::new(Arc::clone(&urls.session), handshake),
            urls,
            up: Messages::default(),
            down: Messages::default(),
            stream,
            unread: Vec::new(),
            is_malformed: false,
            has_refused: false,
        }
    }

    /// Bytes of the client have arrived.
    pub fn receive(&mut self, bytes: &[u8]) {
        if self.is_malformed {
            return;
        }
        self.unread.extend(bytes);
        let mut used = 0;
        loop {
            match self.parse(&self.unread[used..]) {
                Ok(Some((length, request))) => {
                    used += length;
                    self.up.push(length as u64, Upward::Request(request));
                    self.stream.receive(length as u64);
                }
                Ok(None) => break,
                Err(()) => {
                    self.is_malformed = true;
                    break;
                }
            }
        }
        self.unread.drain(..used);
        // A head without end must not fill the memory.
        self.is_malformed |= self.unread.len() > LONGEST_HEAD;
    }

    /// The client's stream has ended.
    pub const fn end(&mut self) {
        self.stream.end();
    }

    /// Acts as the server does now. Appends what it sends to `text`; returns whether the stream
    /// ends after it.
    pub fn step(&mut self, now: Instant, text: &mut Vec<u8>) -> bool {
        if self.is_malformed {
            if std::mem::replace(&mut self.has_refused, true) {
                return true;
            }
            text.extend(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            return true;
        }
        self.server.step(now, &mut self.up, &mut self.down, &mut self.stream);
        self.stream.take(self.stream.unsent());
        while let Some(message) = self.down.pop(self.stream.taken()) {
            if let Downward::Part { request, .. } = message {
                self.respond(now, request, text);
            }
        }
        self.stream.is_closed()
    }

    /// Number of requests that have arrived and are not answered.
    pub fn outstanding(&self) -> usize {
        self.up.len() + self.server.outstanding()
    }

    /// When to call [`Self::step`] next, if nothing arrives before.
    pub fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        self.server.next_wakeup(now)
    }

    /// The request at the start of `bytes`, with its length; `None` if it is not complete.
    fn parse(&self, bytes: &[u8]) -> Result<Option<(usize, Request)>, ()> {
        let mut fields = [EMPTY_HEADER; MOST_FIELDS];
        let mut head = httparse::Request::new(&mut fields);
        let Status::Complete(length) = head.parse(bytes).map_err(|_| ())? else { return Ok(None) };
        let target = head.path.ok_or(())?;
        let (host, path) = match target.strip_prefix("http://").map(|url| url.split_at(url.find('/').unwrap_or(0))) {
            Some(parts) => parts,
            None => {
                let host = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case("host")).ok_or(())?;
                (std::str::from_utf8(host.value).map_err(|_| ())?, target)
            }
        };
        let (page, object) = self.urls.find(host, path).ok_or(())?;
        let tag = etag(page, object);
        let conditional = head.headers.iter().any(|field| {
            let value = std::str::from_utf8(field.value).unwrap_or_default();
            field.name.eq_ignore_ascii_case("if-none-match") && value.contains(&tag)
        });
        Ok(Some((length, Request { view: 0, page, object, conditional })))
    }

    fn respond(&self, now: Instant, request: Request, text: &mut Vec<u8>) {
        let settings = &self.urls.session.settings;
        let object = self.urls.session.object(request);
        let is_compressed = settings.compression && object.compressed.is_some();
        let status = if request.conditional { "304 Not Modified" } else { "200 OK" };
        let time = UNIX_EPOCH + Duration::from_nanos(now.since(Instant::ZERO).as_nanos());
        let mut head = format!("HTTP/1.1 {status}\r\nDate: {}\r\n", httpdate::fmt_http_date(time));
        let mut field = |name: &str, value: &str| {
            write!(head, "{name}: {value}\r\n").expect("a string can be written");
        };
        field("ETag", &etag(request.page, request.object));
        field("Cache-Control", cache_control(object));
        if settings.protocol == Protocol::Http10 {
            field("Connection", "close");
        }
        if !request.conditional {
            field("Content-Type", media_type(object.kind));
            field("Content-Length", &object.encoded(settings.compression).to_string());
            if is_compressed {
                field("Content-Encoding", "gzip");
            }
        }
        end_head(&mut head, "Server", settings.response.get());
        text.extend(head.into_bytes());
        if !request.conditional {
            let (host, path) = super::url(&self.urls.session, request.page, request.object);
            let tags = tags(&self.urls.session, request.page, request.object);
            text.extend(content(object, &format!("{host}{path}"), &tags, is_compressed));
        }
    }
}

/// The entity tag of an object. Objects do not change.
pub(super) fn etag(page: u32, object: u32) -> String {
    format!("\"{page}-{object}\"")
}

const fn cache_control(object: &Object) -> &'static str {
    match object.cache {
        Caching::Fresh => "max-age=31536000",
        Caching::Revalidate => "no-cache",
        Caching::Never => "no-store",
    }
}

const fn media_type(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Document => "text/html",
        ObjectKind::Style => "text/css",
        ObjectKind::Script => "text/javascript",
        ObjectKind::Font => "font/woff2",
        ObjectKind::Image => "image/gif",
        ObjectKind::Media => "video/mp4",
        ObjectKind::Data => "application/json",
    }
}
