//! HTTP requests and their responses.

use crate::head::Version;
use crate::stream::Mark;

/// A request and its response, as far as either was captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The request; `None` where it was not captured.
    pub request: Option<Request>,
    /// The response; `None` where none came, or it was not captured.
    pub response: Option<Response>,
    /// Interim responses (1xx) before it, `100 Continue` among them.
    pub interim_responses: u32,
    /// Whether the capture missed the bytes of the response.
    pub response_missed: bool,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When its first byte had passed.
    pub first: Mark,
    /// When its last byte had.
    pub last: Mark,
    /// Offset of its first byte in the client's stream.
    pub offset: i64,
    /// Offset in the server's stream up to which the client had received when it sent the request.
    pub received: Option<i64>,
    /// Method.
    pub method: Box<str>,
    /// Target of the request line.
    pub target: Box<str>,
    /// Version.
    pub version: Version,
    /// Header fields: those of [`KEPT_FIELDS`], or all where requested.
    pub fields: Box<[Field]>,
    /// Its size.
    pub size: Size,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// When its first byte had passed, without interim responses.
    pub first: Mark,
    /// When its last byte had.
    pub last: Mark,
    /// When the client's acknowledgement of its last byte passed; `None` where none did.
    pub acknowledged: Option<Mark>,
    /// Offset of its first byte in the server's stream.
    pub offset: i64,
    /// Offset in the client's stream up to which the server had received when it sent the first
    /// byte.
    pub received: Option<i64>,
    /// Status code; `None` in HTTP/0.9, and where the capture cut it.
    pub status: Option<u16>,
    /// Version.
    pub version: Version,
    /// Header fields: those of [`KEPT_FIELDS`], or all where requested.
    pub fields: Box<[Field]>,
    /// Its size.
    pub size: Size,
}

/// The size of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of the head.
    pub head: u64,
    /// Bytes of the body as sent.
    pub body: u64,
    /// Bytes of the body without the framing of chunks.
    pub content: u64,
    /// Whether all of it passed.
    pub complete: bool,
    /// Whether its end is exact. It is not where the capture missed the head or the chunk framing:
    /// then the message extends to the next recognised one.
    pub exact: bool,
}

/// A header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: Box<str>,
    /// Value. Bytes outside UTF-8 are replaced.
    pub value: Box<str>,
}

/// Header fields that are always kept.
pub const KEPT_FIELDS: [&str; 6] = ["host", "content-type", "content-length", "content-range", "location", "range"];

impl Exchange {
    /// The first mark of the exchange.
    pub fn first(&self) -> Option<Mark> {
        self.request.as_ref().map(|request| request.first).or(self.response.as_ref().map(|response| response.first))
    }

    /// The last mark of the exchange.
    pub fn last(&self) -> Option<Mark> {
        let response = self.response.as_ref().map(|response| response.last);
        response.max(self.request.as_ref().map(|request| request.last))
    }
}

impl Request {
    /// The value of a field, by its name in any case.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.fields, name)
    }

    /// The URL: an absolute target, or the target at the host of the request.
    pub fn url(&self) -> String {
        let absolute = self.target.contains("://") || &*self.method == "CONNECT";
        match self.field("host") {
            Some(host) if !absolute => format!("http://{host}{}", self.target),
            _ => self.target.to_string(),
        }
    }
}

impl Response {
    /// The value of a field, by its name in any case.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.fields, name)
    }

    /// The type of its content, without parameters.
    pub fn content_type(&self) -> Option<&str> {
        self.field("content-type").map(|value| value.split(';').next().unwrap_or_default().trim())
    }
}

fn field<'a>(fields: &'a [Field], name: &str) -> Option<&'a str> {
    fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| &*field.value)
}
