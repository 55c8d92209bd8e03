//! The timeline of a connection, and its degree of pipelining.

use airpath_core::Span;

use crate::exchange::Exchange;
use crate::stream::Mark;
use crate::tls::Tls;
use airpath_wire::segment::Endpoint;

/// The use of a connection over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The end that opened it.
    pub client: Endpoint,
    /// The other end.
    pub server: Endpoint,
    /// The first captured segment.
    pub first: Mark,
    /// The client's first SYN.
    pub opened: Option<Mark>,
    /// The server's first SYN.
    pub accepted: Option<Mark>,
    /// The client's first segment that acknowledges it.
    pub established: Option<Mark>,
    /// The first FIN or RST.
    pub closed: Option<Mark>,
    /// Whether a RST was among the segments.
    pub reset: bool,
    /// The application data.
    pub application: Application,
}

/// The application data of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Application {
    /// No data.
    Silent,
    /// HTTP exchanges, in the order of the requests.
    Http(Vec<Exchange>),
    /// TLS.
    Tls(Tls),
    /// Another protocol.
    Other,
}

impl Timeline {
    /// The HTTP exchanges.
    pub fn exchanges(&self) -> &[Exchange] {
        match &self.application {
            Application::Http(exchanges) => exchanges,
            Application::Silent | Application::Tls(_) | Application::Other => &[],
        }
    }

    /// The time from the client's SYN until the connection was established.
    pub fn connect_time(&self) -> Option<Span> {
        Some(self.established?.time.since(self.opened?.time))
    }

    /// Whether the capture was taken behind the path, at the client: the half of the handshake on
    /// the side of the server takes longer there. In the middle of the path the halves are equal.
    /// `None` without a handshake.
    pub fn is_at_client(&self) -> Option<bool> {
        let (opened, accepted, established) = (self.opened?.time, self.accepted?.time, self.established?.time);
        Some(accepted.since(opened.min(accepted)) >= established.since(accepted.min(established)) * 5 / 4)
    }

    /// The degree of pipelining; `None` without requests.
    pub fn pipelining(&self) -> Option<Pipelining> {
        Pipelining::of(self.exchanges())
    }
}

/// The degree of pipelining of a connection: the pipeline factor of the study "gprs-proxy" (its
/// point 9).
///
/// For each of n requests, in order, β is the number of requests up to and including it, less the
/// responses received before it. Φ = Σβ / n is 1 without pipelining, and (n+1)/2 where all requests
/// precede the first response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipelining {
    /// Requests, at least one.
    pub requests: u64,
    /// Σβ.
    pub outstanding: u64,
}

impl Pipelining {
    /// From the exchanges of one connection; `None` without requests.
    ///
    /// A response counts as received with its last byte. A missed response counts, too, where its
    /// request was surely answered before the next request.
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let mut made: Vec<Mark> = Vec::new();
        let mut received: Vec<Mark> = Vec::new();
        let requests_made =
            exchanges.iter().filter_map(|exchange| exchange.request.as_ref().map(|request| (exchange, request.first)));
        let mut requests_made = requests_made.peekable();
        while let Some((exchange, first)) = requests_made.next() {
            made.push(first);
            let missed = || requests_made.peek().filter(|_| exchange.response_missed).map(|(_, next)| *next);
            // Received before the next request, so no later than its mark.
            received.extend(exchange.response.as_ref().map(|response| response.last).or_else(missed));
        }
        made.sort_unstable();
        received.sort_unstable();
        Self::count(&made, &received)
    }

    /// From the sorted points in time of the requests `made` on a connection and of the responses
    /// `received`; `None` without requests.
    pub fn count<T: Ord>(made: &[T], received: &[T]) -> Option<Self> {
        let mut outstanding = 0;
        for (at, first) in made.iter().enumerate() {
            let before = received.partition_point(|last| last <= first);
            // A response before its request is an error of the capture; β is at least 1.
            outstanding += (at + 1).saturating_sub(before).max(1) as u64;
        }
        let requests = made.len() as u64;
        (requests > 0).then_some(Self { requests, outstanding })
    }

    /// Φ.
    pub fn factor(self) -> f64 {
        self.outstanding as f64 / self.requests as f64
    }

    /// Φ_max, the factor of the same number of simultaneous requests: (1 + 2 + … + n) / n.
    pub fn maximum(self) -> f64 {
        (self.requests + 1) as f64 / 2.0
    }
}

/// η, the pipelining efficiency of several connections: ΣΦ / ΣΦ_max. `None` without any.
///
/// A connection with one request has Φ = Φ_max: connections without reuse count as perfect. Compare
/// with the efficiency over connections with at least two requests.
pub fn efficiency(connections: impl IntoIterator<Item = Pipelining>, least_requests: u64) -> Option<f64> {
    let (mut factors, mut maxima) = (0.0, 0.0);
    for connection in connections.into_iter().filter(|connection| connection.requests >= least_requests) {
        factors += connection.factor();
        maxima += connection.maximum();
    }
    (maxima > 0.0).then(|| factors / maxima)
}
