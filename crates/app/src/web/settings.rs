//! Settings of a browser and its servers, and the session that they serve.

use std::collections::BTreeMap;
use std::fmt;

use airpath_core::{Bytes, Span};
use serde::{Deserialize, Serialize};

use super::page::{MOST_BYTES, Object, Page};

/// Settings of a browser and its servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Protocol.
    pub protocol: Protocol,
    /// Maximum number of connections to an origin, or in clear text to the proxy. HTTP/2 and HTTP/3
    /// use one.
    pub connections: u32,
    /// Connections to the origin of a document that are opened beside its own, before there are
    /// requests for them.
    pub speculative: u32,
    /// Pipelining, with HTTP/1.1.
    pub pipeline: Pipeline,
    /// TLS.
    pub tls: Tls,
    /// How TLS connections to a known origin resume its session.
    pub resumption: Resumption,
    /// Bytes of the browser's first message of TLS, without a ticket.
    pub client_hello: Bytes,
    /// Bytes of a server's certificates.
    pub certificates: Bytes,
    /// Whether the browser looks up names, by UDP beyond the path.
    pub dns: bool,
    /// Whether the servers are reached through a proxy that the browser has in its settings.
    pub proxy: bool,
    /// Whether servers compress.
    pub compression: bool,
    /// Bytes of the head of a request.
    pub request: Bytes,
    /// Bytes of the head of a response.
    pub response: Bytes,
    /// Time after which the browser closes an idle connection.
    pub keep_alive: Span,
    /// Unsent bytes up to which an HTTP/2 server writes: it can change the order only of those
    /// that it has not written.
    pub unsent: Bytes,
    /// Number of views of the page, or of the pages in turn.
    pub views: u32,
    /// Time from a loaded page to the next view.
    pub reading: Span,
    /// Whether later views use a cache.
    pub cache: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            protocol: Protocol::Http11,
            // Chromium, Firefox and Safari.
            connections: 6,
            speculative: 0,
            pipeline: Pipeline::default(),
            tls: Tls::None,
            resumption: Resumption::None,
            // Chromium 156 in captures: 1,943 to 2,019 bytes. Its key share of X25519MLKEM768 has
            // 1,216 (draft-ietf-tls-ecdhe-mlkem §4.1).
            client_hello: Bytes::new(1_950),
            certificates: Bytes::new(3_000),
            dns: false,
            proxy: false,
            compression: true,
            request: Bytes::new(400),
            response: Bytes::new(300),
            keep_alive: Span::from_secs(60),
            unsent: Bytes::new(16_384),
            views: 1,
            reading: Span::from_secs(10),
            cache: true,
        }
    }
}

/// A setting that is out of range, or that has no effect beside the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The key.
    pub key: &'static str,
    /// What is wrong.
    pub message: &'static str,
    /// What to do.
    pub help: &'static str,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.key, self.message, self.help)
    }
}

impl std::error::Error for Contradiction {}

impl Settings {
    /// The name of the TLS that is in force: QUIC has TLS 1.3 (RFC 9001).
    pub const fn tls_name(&self) -> &'static str {
        match self.protocol {
            Protocol::Http3 => Tls::V13.name(),
            _ => self.tls.name(),
        }
    }

    /// Checks that each value is within its range and has an effect.
    ///
    /// # Errors
    /// The first value that is not.
    pub fn check(&self) -> Result<(), Contradiction> {
        let usual = Self::default();
        let (http2, http3) = (self.protocol == Protocol::Http2, self.protocol == Protocol::Http3);
        let streams = self.protocol.has_streams();
        let clear = self.tls == Tls::None;
        let pipelines = self.pipeline != usual.pipeline;
        let is_size = |bytes: Bytes| (1..=MOST_BYTES).contains(&bytes.get());
        let range = ("it is outside 1 B to 1 GiB", "set a size in this range");
        let checks = [
            (!is_size(self.request), "request", range.0, range.1),
            (!is_size(self.response), "response", range.0, range.1),
            (!is_size(self.client_hello), "client_hello", range.0, range.1),
            (!is_size(self.certificates), "certificates", range.0, range.1),
            (
                self.unsent == Bytes::ZERO,
                "unsent",
                "the server would never write",
                "a server with the least buffer has \"1 B\"",
            ),
            (self.connections == 0, "connections", "there must be at least one", "browsers have 6"),
            (self.views == 0, "views", "there must be at least one", "leave the key out for one view of each page"),
            (
                self.keep_alive.is_zero(),
                "keep_alive",
                "a connection would be closed before its first request",
                "HTTP/1.0 has a connection for each request",
            ),
            (self.pipeline.depth == 0, "pipeline", "the depth must be at least 1", "1 is no pipelining"),
            (
                pipelines && self.protocol != Protocol::Http11,
                "pipeline",
                "only HTTP/1.1 pipelines requests",
                "remove the key, or set protocol to \"http/1.1\"",
            ),
            (
                pipelines && self.pipeline.depth == 1,
                "pipeline",
                "a depth of 1 is no pipelining",
                "set depth to at least 2, or remove the key",
            ),
            (
                streams && self.connections != usual.connections,
                "connections",
                "HTTP/2 and HTTP/3 have one connection to each origin",
                "remove the key",
            ),
            (
                !streams && self.speculative >= self.connections,
                "speculative",
                "the document has one of `connections` itself",
                "set it to less than connections",
            ),
            (http2 && self.speculative > 1, "speculative", "HTTP/2 browsers open one more at most", "set it to 0 or 1"),
            (
                http3 && self.speculative > 0,
                "speculative",
                "HTTP/3 has one connection to each origin",
                "remove the key",
            ),
            (http3 && !clear, "tls", "QUIC has TLS 1.3 itself", "remove the key; `quic` has the settings of QUIC"),
            (
                http3 && self.proxy,
                "proxy",
                "a proxy in the browser's settings has no HTTP/3",
                "remove the key, or set protocol to \"h2\"",
            ),
            (
                http3 && self.resumption != Resumption::None,
                "resumption",
                "QUIC has no session tickets in the simulator",
                "remove the key, or set protocol to \"h2\"",
            ),
            (!http2 && self.unsent != usual.unsent, "unsent", "only HTTP/2 servers have it", "remove the key"),
            (
                clear && self.resumption != Resumption::None,
                "resumption",
                "there is no TLS session to resume",
                "set tls to \"TLSv1.2\" or \"TLSv1.3\"",
            ),
            (
                self.resumption == Resumption::ZeroRtt && self.tls == Tls::V12,
                "resumption",
                "TLS 1.2 has no early data",
                "set tls to \"TLSv1.3\", or resumption to \"ticket\"",
            ),
            (
                http3 && self.client_hello != usual.client_hello,
                "client_hello",
                "QUIC has its own",
                "set it in the table `quic`",
            ),
            (
                http3 && self.certificates != usual.certificates,
                "certificates",
                "QUIC has its own",
                "set it in the table `quic`",
            ),
            (clear && self.client_hello != usual.client_hello, "client_hello", "there is no TLS", "set tls"),
            (clear && self.certificates != usual.certificates, "certificates", "there is no TLS", "set tls"),
            (self.dns && self.proxy, "dns", "the proxy looks up the names", "remove one of dns and proxy"),
            (
                self.protocol == Protocol::Http10 && self.speculative == 0 && self.keep_alive != usual.keep_alive,
                "keep_alive",
                "without `speculative`, a connection of HTTP/1.0 is never idle",
                "remove the key, or set speculative",
            ),
            (self.views == 1 && !self.cache, "cache", "there is no view after the first", "set views to at least 2"),
            (
                self.views == 1 && self.reading != usual.reading,
                "reading",
                "there is no view after the first",
                "set views to at least 2",
            ),
        ];
        match checks.into_iter().find(|(wrong, ..)| *wrong) {
            Some((_, key, message, help)) => Err(Contradiction { key, message, help }),
            None => Ok(()),
        }
    }
}

/// Versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// One request for each connection, which the server closes.
    #[serde(rename = "http/1.0")]
    Http10,
    /// Persistent connections.
    #[serde(rename = "http/1.1")]
    Http11,
    /// Streams on one connection to each origin.
    #[serde(rename = "h2")]
    Http2,
    /// The same over QUIC.
    #[serde(rename = "h3")]
    Http3,
}

impl Protocol {
    /// The name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "http/1.0",
            Self::Http11 => "http/1.1",
            Self::Http2 => "h2",
            Self::Http3 => "h3",
        }
    }

    /// The protocol that has this other `name`.
    pub fn by_other_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().replace('/', "").as_str() {
            "http2" | "http2.0" => Some(Self::Http2),
            "http3" | "http3.0" => Some(Self::Http3),
            _ => None,
        }
    }

    /// Whether all requests to an origin share one connection, in streams.
    pub const fn has_streams(self) -> bool {
        matches!(self, Self::Http2 | Self::Http3)
    }
}

/// Pipelining: requests before the response to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pipeline {
    /// Maximum number of requests without response on a connection; 1 is no pipelining.
    pub depth: u32,
    /// Number of connections of an origin on which requests are pipelined; the others have one at
    /// a time.
    pub connections: u32,
    /// Number of responses on a connection before requests are pipelined on it.
    pub after: u32,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self { depth: 1, connections: u32::MAX, after: 0 }
    }
}

/// Versions of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tls {
    /// Clear text.
    #[serde(rename = "none")]
    None,
    /// TLS 1.2 (RFC 5246).
    #[serde(rename = "TLSv1.2")]
    V12,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "TLSv1.3")]
    V13,
}

impl Tls {
    /// The name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::V12 => "TLSv1.2",
            Self::V13 => "TLSv1.3",
        }
    }
}

/// How TLS resumes the session of an earlier connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resumption {
    /// It does not: each handshake is full.
    #[serde(rename = "none")]
    None,
    /// By a ticket.
    #[serde(rename = "ticket")]
    Ticket,
    /// By a ticket, and TLS 1.3 sends requests with the first flight (RFC 8446 §2.3).
    #[serde(rename = "0-rtt")]
    ZeroRtt,
}

/// What a browser does: its settings and the pages.
#[derive(Clone, Debug)]
pub struct Session {
    /// The settings.
    pub settings: Settings,
    /// The pages that differ.
    pub pages: Vec<Page>,
    /// The numbers of the pages that are viewed in turn.
    order: Vec<usize>,
    /// The hosts of all objects.
    pub origins: Vec<String>,
    /// The number of each object's host in `origins`, by page.
    origin_of: Vec<Vec<u32>>,
}

impl Session {
    /// A session in which the pages of `list` are viewed in turn. One that is there twice is the
    /// same page.
    ///
    /// # Panics
    /// Without a page.
    pub fn new(settings: Settings, list: Vec<Page>) -> Self {
        assert!(!list.is_empty(), "a session has at least one page");
        let (mut pages, mut order): (Vec<Page>, _) = (Vec::new(), Vec::new());
        for page in list {
            let known = pages.iter().position(|other| *other == page);
            order.push(known.unwrap_or(pages.len()));
            if known.is_none() {
                pages.push(page);
            }
        }
        let (mut origins, mut numbers) = (Vec::new(), BTreeMap::new());
        let mut number = |object: &Object| {
            if let Some(known) = numbers.get(&object.origin) {
                return *known;
            }
            let new = origins.len() as u32;
            numbers.insert(object.origin.clone(), new);
            origins.push(object.origin.clone());
            new
        };
        let origin_of = pages.iter().map(|page| page.objects.iter().map(&mut number).collect()).collect();
        Self { settings, pages, order, origins, origin_of }
    }

    /// The views of page number `page`.
    pub fn views_of(&self, page: usize) -> impl Iterator<Item = u32> {
        (0..self.settings.views).filter(move |view| self.page_of(*view) == page)
    }

    /// The page of view number `view`.
    pub fn page_of(&self, view: u32) -> usize {
        self.order[view as usize % self.order.len()]
    }

    /// The object of a request.
    pub fn object(&self, request: Request) -> &Object {
        &self.pages[request.page as usize].objects[request.object as usize]
    }

    /// Bytes of content for which the next `part` bytes of the body of a response stand, if `left`
    /// bytes of it are left.
    pub fn content_of_part(&self, request: Request, left: u64, part: u64) -> u64 {
        if request.conditional {
            return 0;
        }
        let object = self.object(request);
        let encoded = object.encoded(self.settings.compression);
        let until = |bytes: u64| share_of(object.size, bytes, encoded);
        match encoded {
            0 => object.size,
            _ => until(encoded - left + part) - until(encoded - left),
        }
    }

    /// The number of the origin of object `object` of page `page`.
    pub fn origin_of(&self, page: usize, object: u32) -> u32 {
        self.origin_of[page][object as usize]
    }
}

/// The bytes of `whole` for which `part` of `of` bytes stand: a compressed byte stands for as much
/// content everywhere.
pub(super) fn share_of(whole: u64, part: u64, of: u64) -> u64 {
    match of {
        0 => whole,
        _ => (u128::from(part) * u128::from(whole) / u128::from(of)) as u64,
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the view.
    pub view: u32,
    /// Number of the page.
    pub page: u32,
    /// Number of the object in its page.
    pub object: u32,
    /// Whether the browser has the object, and requests only changes.
    pub conditional: bool,
}

/// A message of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upward {
    /// The client's part of a round trip of the handshake, with this number.
    Handshake(u8),
    /// The end of the handshake, if it is a message of the client.
    Finished,
    /// A request.
    Request(Request),
}

/// A message of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downward {
    /// The server's part of a round trip of the handshake, with this number.
    Handshake(u8),
    /// Tickets of TLS 1.3.
    Tickets,
    /// A part of a response.
    Part {
        /// The request that it answers.
        request: Request,
        /// Bytes of the body in it, at its end.
        body: u64,
        /// Bytes of the object's content for which they stand.
        content: u64,
        /// Bytes before them: head and framing.
        framing: u64,
        /// Whether it can be read before all of it has arrived.
        readable: bool,
        /// Whether the response ends with it.
        last: bool,
    },
}
