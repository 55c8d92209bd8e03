//! Answers of an explicit proxy to requests that it does not forward (RFC 9110 §15, RFC 9209).

/// Why a request is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is malformed, or could be read in two ways.
    Malformed,
    /// Its target is not an absolute URI (RFC 9112 §3.2.2).
    NotAbsolute,
    /// The scheme of its target is not `http`.
    Scheme,
    /// `CONNECT` to a port that is not listed.
    Port,
    /// The address belongs to the proxy, or is a loopback, link-local, multicast or reserved one.
    Address,
    /// The request has passed this proxy before.
    Loop,
    /// A `TRACE` with `Max-Forwards: 0`.
    Trace,
    /// No resolver is configured.
    NoResolver,
    /// The name does not exist, or has no address of the IP version of the proxy's own.
    NameNotFound,
    /// The resolver has answered with an error, or has closed the connection.
    Resolver,
    /// The resolver has not answered.
    ResolverTimeout,
    /// The server has refused the connection.
    ConnectionRefused,
    /// The server cannot be reached, or no port is free.
    Unreachable,
    /// The server has not answered the SYN.
    ConnectionTimeout,
    /// The server has closed the connection without a response.
    NoResponse,
    /// The response is malformed, or is a `101` that was not requested.
    MalformedResponse,
}

impl Refusal {
    /// Status and reason, the error type of RFC 9209 §2.3, and a text for a user.
    const fn parts(self) -> (&'static str, &'static str, &'static str) {
        const BAD: &str = "400 Bad Request";
        const FORBIDDEN: &str = "403 Forbidden";
        const GATEWAY: &str = "502 Bad Gateway";
        const TIMEOUT: &str = "504 Gateway Timeout";
        match self {
            Self::Malformed => (BAD, "http_request_error", "the request is malformed"),
            Self::NotAbsolute => (BAD, "http_request_error", "this is a proxy: the target must be an absolute URI"),
            Self::Scheme => ("501 Not Implemented", "http_request_error", "only http is fetched; use CONNECT for TLS"),
            Self::Port => (FORBIDDEN, "http_request_denied", "CONNECT is not permitted to this port"),
            Self::Address => (FORBIDDEN, "destination_ip_prohibited", "the proxy does not connect to this address"),
            Self::Loop => (GATEWAY, "proxy_loop_detected", "the request has passed this proxy before"),
            Self::Trace => ("501 Not Implemented", "http_request_denied", "TRACE is not answered by the proxy"),
            Self::NoResolver => (GATEWAY, "dns_error", "the proxy has no resolver; use an address"),
            Self::NameNotFound => (GATEWAY, "dns_error", "the name of the server has no address"),
            Self::Resolver => (GATEWAY, "dns_error", "the resolver does not answer the query"),
            Self::ResolverTimeout => (TIMEOUT, "dns_timeout", "the resolver has not answered in time"),
            Self::ConnectionRefused => (GATEWAY, "connection_refused", "the server refuses the connection"),
            Self::Unreachable => (GATEWAY, "destination_ip_unroutable", "the server cannot be reached"),
            Self::ConnectionTimeout => (TIMEOUT, "connection_timeout", "the server does not answer"),
            Self::NoResponse => (GATEWAY, "connection_terminated", "the server has closed without a response"),
            Self::MalformedResponse => (GATEWAY, "http_protocol_error", "the response of the server is malformed"),
        }
    }

    /// The response. With `closes`, no other follows on the connection.
    pub fn response(self, closes: bool) -> Vec<u8> {
        let (status, error, text) = self.parts();
        let connection = if closes { "Connection: close\r\n" } else { "" };
        let length = text.len() + 1;
        format!(
            "HTTP/1.1 {status}\r\nProxy-Status: airpath; error={error}\r\nContent-Type: text/plain\r\n\
             Content-Length: {length}\r\n{connection}\r\n{text}\n"
        )
        .into_bytes()
    }
}
