//! Transactions: a request, its response, and so on, over one connection for all (RR) or one for
//! each (CRR).
//!
//! The latency of a transaction is the time from its request to the last byte of its response, both
//! as observed by the client's application. With a connection for each it starts with the
//! connection, so that it includes the handshake; a single connection is opened before the first
//! transaction starts. A transaction starts after the response of the one before.

use airpath_core::{Bytes, Instant, Span};
use serde::{Deserialize, Serialize};

use crate::samples::Samples;
use crate::transport::Transport;

/// A series of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transactions {
    /// Bytes of a request.
    pub request: Bytes,
    /// Bytes of a response.
    pub response: Bytes,
    /// Maximum number of transactions.
    pub transactions: u32,
    /// Period in which new ones start; without it, until the number is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Time from a response to the next request.
    pub think: Span,
    /// Number of connections.
    pub connections: Connections,
}

/// Number of connections of the transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Connections {
    /// One for all (RR).
    #[default]
    One,
    /// One for each, which the server closes after its response (CRR).
    Each,
}

impl Connections {
    /// The keyword.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Each => "each",
        }
    }
}

/// The client.
#[derive(Clone, Debug)]
pub struct Client {
    work: Transactions,
    started: Instant,
    state: ClientState,
    /// Earliest start of the next transaction.
    due: Instant,
    requests: u32,
    latencies: Samples,
    connects: Samples,
    last: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientState {
    /// Nothing is pending.
    Idle,
    /// The connection is being opened, since this time.
    Opening(Instant),
    /// A response is pending, since this time.
    Awaiting(Instant),
}

/// Result of a step of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStep {
    /// Nothing visible to the application.
    Nothing,
    /// The connection opened.
    Connected,
    /// A request was sent.
    Request,
    /// The response to this transaction is complete, with this latency.
    Response(u32, Span),
}

impl Client {
    /// A client whose first connection opens at `start`.
    pub fn new(work: Transactions, start: Instant) -> Self {
        Self {
            work,
            started: start,
            state: ClientState::Idle,
            due: start,
            requests: 0,
            latencies: Samples::default(),
            connects: Samples::default(),
            last: None,
        }
    }

    /// Whether a new connection must be opened now; if so, records that it is.
    pub fn opens(&mut self, now: Instant) -> bool {
        let wanted = self.state == ClientState::Idle
            && self.due <= now
            && !self.is_over(now)
            && (self.work.connections == Connections::Each || (self.requests == 0 && self.connects.count() == 0));
        if wanted {
            self.state = ClientState::Opening(now);
            self.requests += u32::from(self.work.connections == Connections::Each);
        }
        wanted
    }

    /// Acts as the application does now. Call it until it returns [`ClientStep::Nothing`], whenever
    /// the latest connection has changed or [`Self::next_wakeup`] has come.
    pub fn step(&mut self, now: Instant, transport: &mut impl Transport) -> ClientStep {
        match self.state {
            ClientState::Opening(since) if transport.is_established() => {
                self.connects.add(now.since(since));
                match self.work.connections {
                    Connections::One => {
                        self.state = ClientState::Idle;
                        if self.is_over(now) {
                            // The time was over before the connection was open.
                            transport.close();
                        }
                    }
                    Connections::Each => {
                        transport.write(self.work.request.get());
                        self.state = ClientState::Awaiting(since);
                    }
                }
                self.due = now;
                ClientStep::Connected
            }
            ClientState::Idle if self.work.connections == Connections::One && self.connects.count() > 0 => {
                if self.is_over(now) || now < self.due {
                    return ClientStep::Nothing;
                }
                self.requests += 1;
                self.state = ClientState::Awaiting(now);
                transport.write(self.work.request.get());
                ClientStep::Request
            }
            ClientState::Awaiting(since) => {
                transport.read(transport.readable());
                let before = match self.work.connections {
                    Connections::One => self.latencies.count(),
                    Connections::Each => 0,
                };
                if transport.received() < (before + 1) * self.work.response.get() {
                    return ClientStep::Nothing;
                }
                let latency = now.since(since);
                self.latencies.add(latency);
                self.last = Some(now);
                self.state = ClientState::Idle;
                self.due = now + self.work.think;
                if self.work.connections == Connections::Each || self.is_over(self.due) {
                    transport.close();
                }
                ClientStep::Response(self.requests - 1, latency)
            }
            ClientState::Idle | ClientState::Opening(_) => ClientStep::Nothing,
        }
    }

    /// When to call [`Self::opens`] and [`Self::step`] next, if nothing changes before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        (self.state == ClientState::Idle && !self.is_over(self.due)).then_some(self.due)
    }

    /// Whether no transaction will start, and none is pending.
    pub fn is_over(&self, now: Instant) -> bool {
        // The next would start when it is due.
        let late = self.work.duration.is_some_and(|duration| now.max(self.due) >= self.started + duration);
        self.state == ClientState::Idle && (self.requests == self.work.transactions || late)
    }

    /// Whether the connection is not needed any more: no transaction on it is pending or is to
    /// start.
    pub fn is_done(&self, now: Instant) -> bool {
        match self.work.connections {
            Connections::One => self.is_over(now),
            Connections::Each => self.state == ClientState::Idle,
        }
    }

    /// Number of transactions started.
    pub const fn requests(&self) -> u32 {
        self.requests
    }

    /// Latencies.
    pub const fn latencies(&self) -> &Samples {
        &self.latencies
    }

    /// Durations of the connection set-ups.
    pub const fn connects(&self) -> &Samples {
        &self.connects
    }

    /// When the last response was complete.
    pub const fn last(&self) -> Option<Instant> {
        self.last
    }
}

/// The server's end of one connection.
#[derive(Clone, Debug)]
pub struct Server {
    work: Transactions,
    answered: u64,
    closed: bool,
}

impl Server {
    /// A server that has not answered yet.
    pub const fn new(work: Transactions) -> Self {
        Self { work, answered: 0, closed: false }
    }

    /// Acts as the application does now; call it whenever the connection has changed. Returns
    /// whether it has acted.
    pub fn step(&mut self, transport: &mut impl Transport) -> bool {
        if self.closed || !transport.is_established() {
            return false;
        }
        let waiting = transport.readable();
        transport.read(waiting);
        let mut acted = waiting > 0;
        while !self.closed && transport.received() >= (self.answered + 1) * self.work.request.get() {
            transport.write(self.work.response.get());
            self.answered += 1;
            acted = true;
            if self.work.connections == Connections::Each {
                self.closed = true;
            }
        }
        self.closed |= transport.peer_closed();
        if self.closed {
            transport.close();
        }
        acted || self.closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::StreamEnd;

    fn work(connections: Connections) -> Transactions {
        Transactions {
            request: Bytes::new(100),
            response: Bytes::new(1000),
            transactions: 2,
            duration: None,
            think: Span::from_millis(10),
            connections,
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn one_connection_for_all_is_open_before_the_first() {
        let mut client = Client::new(work(Connections::One), at(0));
        let mut near = StreamEnd::default();
        assert!(client.opens(at(0)) && !client.opens(at(0)));
        assert_eq!(client.step(at(1), &mut near), ClientStep::Nothing);
        near.establish();
        assert_eq!(client.step(at(5), &mut near), ClientStep::Connected);
        assert_eq!((client.step(at(5), &mut near), near.unsent()), (ClientStep::Request, 100));
        near.receive(999);
        assert_eq!(client.step(at(20), &mut near), ClientStep::Nothing);
        near.receive(1);
        assert_eq!(client.step(at(25), &mut near), ClientStep::Response(0, Span::from_millis(20)));
        assert_eq!((client.next_wakeup(), client.step(at(34), &mut near)), (Some(at(35)), ClientStep::Nothing));
        assert!(!client.opens(at(35)), "there is one connection");
        assert_eq!(client.step(at(35), &mut near), ClientStep::Request);
        near.receive(1000);
        assert_eq!(client.step(at(40), &mut near), ClientStep::Response(1, Span::from_millis(5)));
        assert!(near.is_closed() && client.is_over(at(40)) && client.next_wakeup().is_none());
    }

    #[test]
    fn a_connection_for_each_is_part_of_it() {
        let mut client = Client::new(work(Connections::Each), at(0));
        for index in 0..2 {
            let start = u64::from(index) * 30;
            assert!(client.opens(at(start)));
            let mut near = StreamEnd::opened(0);
            assert_eq!(client.step(at(start + 5), &mut near), ClientStep::Connected);
            near.receive(1000);
            assert_eq!(client.step(at(start + 20), &mut near), ClientStep::Response(index, Span::from_millis(20)));
            assert!(near.is_closed());
        }
        assert!(!client.opens(at(100)) && client.is_over(at(100)));
        assert_eq!((client.requests(), client.connects().count()), (2, 2));
    }

    #[test]
    fn time_ends_it_too() {
        let mut client =
            Client::new(Transactions { duration: Some(Span::from_millis(10)), ..work(Connections::One) }, at(0));
        assert!(!client.opens(at(10)) && client.is_over(at(10)));
        let mut slow =
            Client::new(Transactions { duration: Some(Span::from_millis(10)), ..work(Connections::One) }, at(0));
        let mut near = StreamEnd::opened(0);
        assert!(slow.opens(at(0)));
        assert_eq!(slow.step(at(12), &mut near), ClientStep::Connected);
        assert_eq!(slow.step(at(12), &mut near), ClientStep::Nothing);
        assert!(near.is_closed() && slow.is_over(at(12)), "it closes a connection that came too late");
    }

    #[test]
    fn it_is_over_with_the_last_response_before_the_end_of_the_time() {
        let mut client =
            Client::new(Transactions { duration: Some(Span::from_millis(30)), ..work(Connections::Each) }, at(0));
        let mut near = StreamEnd::opened(0);
        assert!(client.opens(at(0)));
        assert_eq!(client.step(at(5), &mut near), ClientStep::Connected);
        near.receive(1000);
        assert_eq!(client.step(at(20), &mut near), ClientStep::Response(0, Span::from_millis(20)));
        assert!(client.is_over(at(20)) && client.next_wakeup().is_none(), "the next would be due at 30 ms");
    }

    #[test]
    fn the_other_end_answers_each_whole_request() {
        let mut far = StreamEnd::opened(250);
        let mut server = Server::new(work(Connections::One));
        assert!(server.step(&mut far));
        assert_eq!((far.unsent(), far.is_closed()), (2000, false));
        far.end();
        server.step(&mut far);
        assert!(far.is_closed());
        let mut far = StreamEnd::opened(100);
        Server::new(work(Connections::Each)).step(&mut far);
        assert!(far.is_closed(), "a connection for each ends with its response");
    }
}
