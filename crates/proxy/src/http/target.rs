//! Messages that an explicit proxy forwards: the origin that a request names, and the heads
//! towards the origin and towards the client (RFC 9110 §7, RFC 9112 §3.2).

use std::net::{IpAddr, SocketAddr};

use crate::http::fields::{Field, OF_CONNECTION, has_token, is, lines, list, values};
use crate::http::message::{Method, RequestHead};
use crate::http::refusal::Refusal;

/// Longest name of a host (RFC 1035 §2.3.4).
const MOST_NAME: usize = 253;

/// The server that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub host: Host,
    pub port: u16,
}

/// A host by its address or its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    Address(IpAddr),
    /// In lower case.
    Name(String),
}

/// The settings of an explicit proxy.
#[derive(Clone, Debug)]
pub struct ExplicitProxy {
    /// Its own address, with which `Via` names it.
    pub address: SocketAddr,
    /// Ports to which it permits `CONNECT`.
    pub connect_ports: Vec<u16>,
}

/// Fields that `Connection` cannot remove: the message would be read in another way.
const KEPT: [&str; 3] = ["content-length", "transfer-encoding", "host"];

impl ExplicitProxy {
    /// The origin of a request, and the head that is sent to it; no head for `CONNECT`.
    ///
    /// # Errors
    /// If it is not forwarded.
    pub fn forward(&self, request: &RequestHead, bytes: &[u8]) -> Result<(Origin, Vec<u8>), Refusal> {
        let (start, fields) = lines(bytes).ok_or(Refusal::Malformed)?;
        let mut parts = start.splitn(3, |byte| *byte == b' ');
        let mut part = || parts.next().ok_or(Refusal::Malformed);
        let (method, target, version) = (part()?, part()?, part()?);
        if version == b"HTTP/1.1" && values(bytes, "host").count() != 1 {
            return Err(Refusal::Malformed);
        }
        if self.has_passed(bytes) {
            return Err(Refusal::Loop);
        }
        if request.method == Method::Connect {
            let origin = origin(target, None)?;
            let is_permitted = self.connect_ports.contains(&origin.port);
            return if is_permitted { Ok((origin, Vec::new())) } else { Err(Refusal::Port) };
        }
        let (authority, path) = absolute(target)?;
        let origin = origin(authority, Some(80))?;
        // RFC 9112 §3.2.4 for the last.
        let path = match (path.first(), method) {
            (Some(b'/'), _) => path.to_vec(),
            (None, b"OPTIONS") => b"*".to_vec(),
            _ => [b"/", path].concat(),
        };
        let mut head = [method, b" ", &path, b" ", version, b"\r\nHost: ", authority, b"\r\n"].concat();
        let forwards_left = matches!(method, b"OPTIONS" | b"TRACE");
        for (name, value) in forwarded(fields, bytes).filter(|(name, _)| !is(name, "host")) {
            // RFC 9110 §7.6.2.
            if forwards_left && is(name, "max-forwards") {
                let left: u64 = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()).unwrap_or(1);
                let left = left.checked_sub(1).ok_or(Refusal::Trace)?;
                head.extend_from_slice(format!("Max-Forwards: {left}\r\n").as_bytes());
            } else {
                head.extend([name, b": ", value, b"\r\n"].concat());
            }
        }
        self.end(&mut head);
        Ok((origin, head))
    }

    /// The head of a response towards the client. With `closes`, it is the last.
    pub fn answer(&self, response: &[u8], closes: bool) -> Vec<u8> {
        let Some((start, fields)) = lines(response) else { return response.to_vec() };
        // The version is the proxy's own (RFC 9112 §2.3).
        let status = start.get(b"HTTP/1.1".len()..).unwrap_or_default();
        let mut head = [b"HTTP/1.1", status, b"\r\n"].concat();
        for (name, value) in forwarded(fields, response) {
            head.extend([name, b": ", value, b"\r\n"].concat());
        }
        if closes {
            head.extend_from_slice(b"Connection: close\r\n");
        }
        self.end(&mut head);
        head
    }

    fn end(&self, head: &mut Vec<u8>) {
        head.extend_from_slice(format!("Via: 1.1 {}\r\n\r\n", self.address).as_bytes());
    }

    /// Whether `Via` names this proxy (RFC 9110 §7.6.3).
    fn has_passed(&self, request: &[u8]) -> bool {
        let own = self.address.to_string().into_bytes();
        let passed = list(request, "via").unwrap_or_default();
        passed.split(|byte| *byte == b',').any(|hop| {
            let mut parts = hop.trim_ascii().split(|byte| *byte == b' ').skip(1);
            parts.next() == Some(&own)
        })
    }

    /// Whether the proxy connects to this address: not to itself, nor to those that a mobile cannot
    /// mean.
    pub fn permits(&self, address: IpAddr) -> bool {
        address != self.address.ip() && is_unicast(address)
    }
}

/// Whether an address may be that of a server: not loopback, link-local, multicast or reserved.
pub fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let first = address.octets()[0];
            !address.is_loopback() && !address.is_link_local() && (1..224).contains(&first)
        }
        IpAddr::V6(address) => {
            let is_mapped = address.to_ipv4_mapped().is_some();
            !address.is_loopback()
                && !address.is_unspecified()
                && !address.is_multicast()
                && !address.is_unicast_link_local()
                && !is_mapped
        }
    }
}

/// The fields of a message that are forwarded.
fn forwarded<'a>(fields: impl Iterator<Item = Field<'a>>, message: &[u8]) -> impl Iterator<Item = Field<'a>> {
    let named = list(message, "connection").unwrap_or_default();
    fields.filter(move |(name, _)| {
        let is_named = std::str::from_utf8(name).is_ok_and(|name| has_token(&named, name));
        let is_kept = KEPT.iter().any(|known| is(name, known));
        is_kept || !is_named && !OF_CONNECTION.iter().any(|known| is(name, known))
    })
}

/// Authority and path of an absolute URI.
fn absolute(target: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    const SCHEME: &[u8] = b"http://";
    let Some((scheme, rest)) = target.split_at_checked(SCHEME.len()) else { return Err(Refusal::NotAbsolute) };
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        let has_scheme = target.windows(3).any(|part| part == b"://") && !target.starts_with(b"/");
        return Err(if has_scheme { Refusal::Scheme } else { Refusal::NotAbsolute });
    }
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if path.contains(&b'#') { Err(Refusal::Malformed) } else { Ok((authority, path)) }
}

/// The origin that an authority names. User information is an error (RFC 9110 §4.2.4).
fn origin(authority: &[u8], default_port: Option<u16>) -> Result<Origin, Refusal> {
    let text = std::str::from_utf8(authority).map_err(|_| Refusal::Malformed)?;
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(Refusal::Malformed)?;
            let address: std::net::Ipv6Addr = host.parse().map_err(|_| Refusal::Malformed)?;
            (Host::Address(address.into()), port)
        }
        None => {
            let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            (name_or_address(host)?, port)
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default_port,
        Some("") => default_port,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    };
    let port = port.filter(|port| *port > 0).ok_or(Refusal::Malformed)?;
    Ok(Origin { host, port })
}

fn name_or_address(text: &str) -> Result<Host, Refusal> {
    if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
        return Ok(Host::Address(address.into()));
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..64).contains(&label.len()) && label.bytes().all(is_known)
    };
    let is_name = name.len() <= MOST_NAME && name.split('.').all(is_label);
    if is_name { Ok(Host::Name(name.to_ascii_lowercase())) } else { Err(Refusal::Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy() -> ExplicitProxy {
        ExplicitProxy { address: SocketAddr::from(([10, 0, 0, 9], 8080)), connect_ports: vec![443] }
    }

    fn forward(request: &str) -> Result<(Origin, String), Refusal> {
        let head = RequestHead::parse(request.as_bytes(), 10_000).expect("it is HTTP").expect("it is complete");
        let (origin, head) = proxy().forward(&head, request.as_bytes())?;
        Ok((origin, String::from_utf8(head).expect("it is text")))
    }

    fn named(name: &str, port: u16) -> Origin {
        Origin { host: Host::Name(name.to_owned()), port }
    }

    #[test]
    fn a_request_is_forwarded_in_origin_form() {
        let request = "GET http://Example.com:8000/a?b HTTP/1.1\r\nHost: other\r\nProxy-Connection: keep-alive\r\n\
                       Connection: X-Hop, Content-Length\r\nX-Hop: 1\r\nTE: trailers\r\nContent-Length: 0\r\n\
                       Proxy-Authorization: Basic eA==\r\nVia: 1.1 a\r\nAccept: */*\r\n\r\n";
        let expected = "GET /a?b HTTP/1.1\r\nHost: Example.com:8000\r\nContent-Length: 0\r\nVia: 1.1 a\r\n\
                        Accept: */*\r\nVia: 1.1 10.0.0.9:8080\r\n\r\n";
        assert_eq!(forward(request), Ok((named("example.com", 8000), expected.to_owned())));
    }

    #[test]
    fn the_forms_of_targets() {
        let of = |start: &str| forward(&format!("{start} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let path = |start: &str| of(start).map(|(_, head)| head.split(' ').nth(1).expect("a path").to_owned());
        assert_eq!(path("GET http://a"), Ok("/".to_owned()));
        assert_eq!(path("GET HTTP://a?q"), Ok("/?q".to_owned()));
        assert_eq!(path("OPTIONS http://a"), Ok("*".to_owned()));
        let v6 = Origin { host: Host::Address("2001:db8::1".parse().expect("an address")), port: 80 };
        assert_eq!(of("GET http://[2001:db8::1]/").map(|(origin, _)| origin), Ok(v6));
        assert_eq!(of("CONNECT example.com:443"), Ok((named("example.com", 443), String::new())));
        for (start, refusal) in [
            ("GET /", Refusal::NotAbsolute),
            ("OPTIONS *", Refusal::NotAbsolute),
            ("GET a", Refusal::NotAbsolute),
            ("GET https://a/", Refusal::Scheme),
            ("GET http://u:p@a/", Refusal::Malformed),
            ("GET http:///", Refusal::Malformed),
            ("GET http://a:b/", Refusal::Malformed),
            ("GET http://a:0/", Refusal::Malformed),
            ("GET http://a:65536/", Refusal::Malformed),
            ("GET http://a..b/", Refusal::Malformed),
            ("GET http://[::1/", Refusal::Malformed),
            ("GET http://[::1]x/", Refusal::Malformed),
            ("GET http://a/#b", Refusal::Malformed),
            ("CONNECT a", Refusal::Malformed),
            ("CONNECT a:22", Refusal::Port),
        ] {
            assert_eq!(of(start), Err(refusal), "{start}");
        }
    }

    #[test]
    fn loops_and_ambiguous_hosts_are_refused() {
        let with = |fields: &str| forward(&format!("GET http://a/ HTTP/1.1\r\n{fields}\r\n")).err();
        assert_eq!(with("Host: a\r\nVia: 1.0 x, 1.1 10.0.0.9:8080 (c)\r\n"), Some(Refusal::Loop));
        assert_eq!(with("Host: a\r\nVia: 1.1 10.0.0.9:8081\r\n"), None);
        assert_eq!(with(""), Some(Refusal::Malformed));
        assert_eq!(with("Host: a\r\nHost: a\r\n"), Some(Refusal::Malformed));
    }

    #[test]
    fn forwards_are_counted_for_trace() {
        let trace = |left| forward(&format!("TRACE http://a/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: {left}\r\n\r\n"));
        assert!(trace(3).expect("it is forwarded").1.contains("\r\nMax-Forwards: 2\r\n"));
        assert_eq!(trace(0), Err(Refusal::Trace));
    }

    #[test]
    fn a_response_loses_the_fields_of_its_connection() {
        let response = "HTTP/1.0 200 OK\r\nConnection: close, X\r\nKeep-Alive: 5\r\nX: y\r\nProxy-Authenticate: Basic\r\n\
                        Proxy-Authentication-Info: a\r\nContent-Length: 3\r\n\r\n";
        let head = String::from_utf8(proxy().answer(response.as_bytes(), true)).expect("it is text");
        let expected = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\nVia: 1.1 10.0.0.9:8080\r\n\r\n";
        assert_eq!(head, expected);
    }

    #[test]
    fn addresses_that_are_not_servers() {
        let permits = |text: &str| proxy().permits(text.parse().expect("an address"));
        for address in ["192.0.2.1", "10.0.0.8", "2001:db8::1"] {
            assert!(permits(address), "{address}");
        }
        for address in [
            "10.0.0.9",
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
        ] {
            assert!(!permits(address), "{address}");
        }
    }
}
