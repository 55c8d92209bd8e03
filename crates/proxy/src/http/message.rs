//! Heads of HTTP/1.x messages, and how their content is framed (RFC 9112).
//!
//! Parsing is strict: two recipients must not disagree on where a message ends (request smuggling,
//! RFC 9112 §11.2). A message that could be read in two ways is [`Malformed`], and its connection
//! is then relayed without being interpreted.

use httparse::{EMPTY_HEADER, Error, Header, Status};

use crate::http::body::{Framing, Malformed};
use crate::http::fields::{has_token, values};

/// Most header fields of a message.
const MOST_FIELDS: usize = 128;

/// Methods that the proxy distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET` and `OPTIONS`: safe (RFC 9110 §9.2.1), so the order in which requests are carried out
    /// does not matter.
    Safe,
    /// `HEAD`: safe, and its response has no content.
    Head,
    /// `CONNECT`: a success is followed by a tunnel.
    Connect,
    /// Every other method.
    Other,
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Bytes of the head.
    pub length: usize,
    /// Its method.
    pub method: Method,
    /// How its content is framed.
    pub framing: Framing,
    /// Whether the client does not expect to use the connection again.
    pub closes: bool,
    /// Whether it requests another protocol on this connection.
    pub upgrades: bool,
}

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Bytes of the head.
    pub length: usize,
    /// Its status code.
    pub status: u16,
    /// How its content is framed.
    pub framing: Framing,
    /// Whether the server closes the connection afterwards.
    pub closes: bool,
}

impl RequestHead {
    /// The head at the start of `bytes`; `None` if it is not complete.
    ///
    /// # Errors
    /// If it is not the head of a request, may be read in two ways, or has not ended after
    /// `most` bytes.
    pub fn parse(bytes: &[u8], most: usize) -> Result<Option<Self>, Malformed> {
        let mut fields = [EMPTY_HEADER; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let Some(length) = complete(request.parse(bytes), bytes, most)? else { return Ok(None) };
        let method = match request.method {
            Some("GET" | "OPTIONS") => Method::Safe,
            Some("HEAD") => Method::Head,
            Some("CONNECT") => Method::Connect,
            _ => Method::Other,
        };
        let fields = Fields::read(request.headers, request.version)?;
        let framing = fields.framing.unwrap_or(Framing::Length(0));
        Ok(Some(Self { length, method, framing, closes: fields.closes, upgrades: fields.upgrades }))
    }
}

impl ResponseHead {
    /// The head at the start of `bytes`, of a response to a request with `method`; `None` if it is
    /// not complete.
    ///
    /// # Errors
    /// If it is not the head of a response, may be read in two ways, or has not ended after `most`
    /// bytes.
    pub fn parse(bytes: &[u8], method: Method, most: usize) -> Result<Option<Self>, Malformed> {
        let mut fields = [EMPTY_HEADER; MOST_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let Some(length) = complete(response.parse(bytes), bytes, most)? else { return Ok(None) };
        let status = response.code.ok_or(Malformed)?;
        let fields = Fields::read(response.headers, response.version)?;
        // RFC 9112 §6.3.
        let without_content = method == Method::Head || matches!(status, 100..=199 | 204 | 304);
        let framing = match fields.framing {
            _ if without_content => Framing::Length(0),
            framing => framing.unwrap_or(Framing::UntilClose),
        };
        let closes = fields.closes || framing == Framing::UntilClose;
        Ok(Some(Self { length, status, framing, closes }))
    }

    /// Whether another response to the same request follows (RFC 9110 §15.2).
    pub const fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// Whether what follows is not HTTP any more.
    pub fn begins_tunnel(&self, method: Method) -> bool {
        self.status == 101 || method == Method::Connect && matches!(self.status, 200..=299)
    }
}

/// The length of a head, if it is complete.
fn complete(parsed: Result<Status<usize>, Error>, bytes: &[u8], most: usize) -> Result<Option<usize>, Malformed> {
    match parsed.map_err(|_| Malformed)? {
        Status::Partial if bytes.len() >= most => Err(Malformed),
        Status::Partial => Ok(None),
        Status::Complete(length) => {
            let head = &bytes[..length];
            let ends_lines = |at: usize| head[at] != b'\n' || at > 0 && head[at - 1] == b'\r';
            if (0..length).all(ends_lines) { Ok(Some(length)) } else { Err(Malformed) }
        }
    }
}

/// What the header fields state about a message and its connection.
#[derive(Debug, Default)]
struct Fields {
    framing: Option<Framing>,
    closes: bool,
    upgrades: bool,
}

impl Fields {
    fn read(fields: &[Header<'_>], version: Option<u8>) -> Result<Self, Malformed> {
        let is_1_0 = version == Some(0);
        let (mut closes, mut keeps, mut upgrades, mut framing) = (false, false, false, None);
        for field in fields {
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            if is("connection") {
                closes |= has_token(field.value, "close");
                keeps |= has_token(field.value, "keep-alive");
                upgrades |= has_token(field.value, "upgrade");
            } else if is("upgrade") {
                upgrades = true;
            } else if is("content-length") || is("transfer-encoding") {
                // A second field is ambiguous, also if it has the same value.
                let read = if is("content-length") { length(field.value) } else { chunked(field.value, is_1_0) };
                if framing.replace(read.ok_or(Malformed)?).is_some() {
                    return Err(Malformed);
                }
            }
        }
        Ok(Self { framing, closes: closes || is_1_0 && !keeps, upgrades })
    }
}

/// Whether a head has credentials, or a challenge for such, that hold for the whole connection:
/// those of a scheme that is not known to hold for single requests. Those of NTLM and Negotiate
/// hold for the connection (RFC 4559 §6).
pub fn binds_connection(head: &[u8]) -> bool {
    const OF_REQUESTS: [&[u8]; 3] = [b"basic", b"bearer", b"digest"];
    let scheme = |value: &[u8]| value.split(|byte| *byte == b' ').next().unwrap_or_default().to_ascii_lowercase();
    let names = ["authorization", "proxy-authorization", "www-authenticate", "proxy-authenticate"];
    let mut schemes = names.iter().flat_map(|name| values(head, name)).map(scheme);
    schemes.any(|scheme| !OF_REQUESTS.contains(&&scheme[..]))
}

fn length(value: &[u8]) -> Option<Framing> {
    let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok().map(Framing::Length)
}

/// Only `chunked` alone: other transfer codings are not in use.
fn chunked(value: &[u8], is_1_0: bool) -> Option<Framing> {
    (!is_1_0 && value.eq_ignore_ascii_case(b"chunked")).then_some(Framing::Chunked)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1000;

    fn request(text: &str) -> Result<Option<RequestHead>, Malformed> {
        RequestHead::parse(text.as_bytes(), MOST)
    }

    fn response(text: &str, method: Method) -> ResponseHead {
        ResponseHead::parse(text.as_bytes(), method, MOST).expect("it is HTTP").expect("it is complete")
    }

    #[test]
    fn the_framing_of_requests() {
        let framing = |fields: &str| {
            let head = request(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
            head.map(|head| head.expect("it is complete").framing)
        };
        assert_eq!(framing(""), Ok(Framing::Length(0)));
        assert_eq!(framing("Content-Length: 5\r\n"), Ok(Framing::Length(5)));
        assert_eq!(framing("Transfer-Encoding: Chunked\r\n"), Ok(Framing::Chunked));
        let ambiguous = [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Content-Length: 5, 6\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: \r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding : chunked\r\n",
            "Transfer-Encoding: chunked\r\n folded\r\n",
            "Content-Length: 5\nX: y\r\n",
        ];
        for fields in ambiguous {
            assert_eq!(framing(fields), Err(Malformed), "{fields:?}");
        }
        assert_eq!(request("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(Malformed));
    }

    #[test]
    fn what_is_not_http_is_malformed() {
        for bytes in ["\x16\x03\x01\x02\x00", "SSH-2.0-OpenSSH\r\n", "GET /\r\n\r\n", "GET / HTTP/2.0\r\n\r\n"] {
            assert_eq!(request(bytes), Err(Malformed), "{bytes:?}");
        }
        assert_eq!(request("GET / HTTP/1.1\r\nHos"), Ok(None));
        let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(MOST));
        assert_eq!(request(&long), Err(Malformed), "too long");
    }

    #[test]
    fn the_framing_of_responses() {
        let of = |text: &str, method| response(text, method).framing;
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(of(ok, Method::Safe), Framing::Length(5));
        assert_eq!(of(ok, Method::Head), Framing::Length(0));
        assert_eq!(of("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", Method::Safe), Framing::Length(0));
        assert_eq!(of("HTTP/1.1 200 OK\r\n\r\n", Method::Safe), Framing::UntilClose);
        assert!(response("HTTP/1.1 100 Continue\r\n\r\n", Method::Other).is_interim());
        assert!(response("HTTP/1.1 101 Switching Protocols\r\n\r\n", Method::Safe).begins_tunnel(Method::Safe));
        assert!(response("HTTP/1.1 200 OK\r\n\r\n", Method::Connect).begins_tunnel(Method::Connect));
    }

    #[test]
    fn persistence_depends_on_the_version() {
        let closes = |version: &str, fields: &str| {
            response(&format!("HTTP/{version} 204 No Content\r\n{fields}\r\n"), Method::Safe).closes
        };
        assert!(!closes("1.1", ""));
        assert!(closes("1.1", "Connection: TE, Close\r\n"));
        assert!(closes("1.0", ""));
        assert!(!closes("1.0", "Connection: keep-alive\r\n"));
    }
}
