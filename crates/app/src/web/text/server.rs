//! The server's end of a connection: requests in, responses out.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use airpath_core::Instant;

use super::content::content;
use super::head::{Malformed, RequestHead};
use super::{Urls, end_head, tags};
use crate::transport::{StreamEnd, Transport};
use crate::web::messages::Messages;
use crate::web::page::{Caching, Object, ObjectKind};
use crate::web::server::Server;
use crate::web::settings::{Downward, Protocol, Request, Upward};
use crate::web::tls::Handshake;

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
                Err(Malformed) => {
                    self.is_malformed = true;
                    break;
                }
            }
        }
        self.unread.drain(..used);
    }

    /// The client's stream has ended.
    pub const fn end(&mut self) {
        self.stream.end();
    }

    /// Acts as the server does now. Appends what it sends to `text`; returns whether the stream
    /// ends after it.
    pub fn step(&mut self, now: Instant, text: &mut Vec<u8>) -> bool {
        self.server.step(now, &mut self.up, &mut self.down, &mut self.stream);
        self.stream.take(self.stream.unsent());
        while let Some(message) = self.down.pop(self.stream.taken()) {
            if let Downward::Part { request, .. } = message {
                self.respond(now, request, text);
            }
        }
        if self.stream.is_closed() {
            return true;
        }
        // Responses have the order of the requests (RFC 9112 §9.3.2).
        if !self.is_malformed || self.outstanding() > 0 {
            return false;
        }
        text.extend(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        self.stream.close();
        true
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
    fn parse(&self, bytes: &[u8]) -> Result<Option<(usize, Request)>, Malformed> {
        let Some(head) = RequestHead::parse(bytes)? else { return Ok(None) };
        let (host, path) = match head.target.strip_prefix("http://") {
            Some(url) => url.split_at(url.find('/').unwrap_or(0)),
            None => (head.field("host").ok_or(Malformed)?, head.target),
        };
        let (page, object) = self.urls.find(host, path).ok_or(Malformed)?;
        let tag = etag(page, object);
        let conditional = head.field("if-none-match").is_some_and(|value| value.contains(&tag));
        Ok(Some((head.length, Request { view: 0, page, object, conditional })))
    }

    fn respond(&self, now: Instant, request: Request, text: &mut Vec<u8>) {
        let settings = &self.urls.session.settings;
        let mut head = response_head(&self.urls, now, request);
        end_head(&mut head, RESPONSE_PADDING, settings.response.get());
        text.extend(head.into_bytes());
        if !request.conditional {
            let object = self.urls.session.object(request);
            let is_compressed = settings.compression && object.compressed.is_some();
            let (host, path) = super::url(&self.urls.session, request.page, request.object);
            let tags = tags(&self.urls.session, request.page, request.object);
            text.extend(content(object, &format!("{host}{path}"), &tags, is_compressed));
        }
    }
}

/// The field that brings the head of a response to its size.
pub(super) const RESPONSE_PADDING: &str = "Server";

/// The head of the response to `request` without its end.
pub(super) fn response_head(urls: &Urls, now: Instant, request: Request) -> String {
    let settings = &urls.session.settings;
    let object = urls.session.object(request);
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
        if settings.compression && object.compressed.is_some() {
            field("Content-Encoding", "gzip");
        }
    }
    head
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
