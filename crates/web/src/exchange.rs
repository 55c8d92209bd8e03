//! A request, its response, and the order in which they came.

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
    /// Whether there was a response that is not here: it lay in bytes which the capture does not have.
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
    /// Offset in the server's stream up to which the client had received when it made the request.
    pub received: Option<i64>,
    /// Method.
    pub method: Box<str>,
    /// Target, as it stands in the request line.
    pub target: Box<str>,
    /// Version.
    pub version: Version,
    /// Header fields; those of [`KEPT_FIELDS`] alone unless all were asked for.
    pub fields: Box<[Field]>,
    /// How long it is.
    pub size: Size,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// When its first byte had passed. Interim responses do not count.
    pub first: Mark,
    /// When its last byte had.
    pub last: Mark,
    /// Offset of its first byte in the server's stream.
    pub offset: i64,
    /// Offset in the client's stream up to which the server had received when it sent the first byte.
    pub received: Option<i64>,
    /// Status code; `None` in HTTP/0.9, and where it was cut off.
    pub status: Option<u16>,
    /// Version.
    pub version: Version,
    /// Header fields; those of [`KEPT_FIELDS`] alone unless all were asked for.
    pub fields: Box<[Field]>,
    /// How long it is.
    pub size: Size,
}

/// How long a message is.
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
    /// Whether its end is known for sure: not where the head or the framing of chunks lies in what was not captured. Then the
    /// message is taken to go on until the next one that was recognised.
    pub exact: bool,
}

/// A header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: Box<str>,
    /// Value. Bytes that are no UTF-8 are replaced.
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

    /// The URL: the target where it is one already, and else with the host that the request names.
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
