//! Transactions: a request, its response, and so on, over one connection for all (RR) or one for
//! each (CRR).
//!
//! The latency of a transaction is from its request to the last byte of its response, both as the
//! asking application sees them. With a connection for each it begins when that is opened, so that
//! the handshake is part of it; the one connection for all is opened before the first begins. No
//! transaction begins before the one before has its response.

use airpath_core::{Bytes, Instant, Span};
use serde::{Deserialize, Serialize};

use crate::samples::Samples;
use crate::transport::Transport;

/// What to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transactions {
    /// Bytes of a request.
    pub request: Bytes,
    /// Bytes of a response.
    pub response: Bytes,
    /// How many transactions there are at most.
    pub transactions: u32,
    /// For how long new ones begin; without it until there were all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// From a response to the next request.
    pub think: Span,
    /// How many connections they have.
    pub connections: Connections,
}

/// How many connections transactions have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Connections {
    /// One for all (RR).
    #[default]
    One,
    /// One for each, which the answering end closes behind its response (CRR).
    Each,
}

impl Connections {
    /// The name under which it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Each => "each",
        }
    }
}

/// The end that asks.
#[derive(Clone, Debug)]
pub struct Client {
    work: Transactions,
    started: Instant,
    state: Asking,
    /// When the next transaction may begin.
    due: Instant,
    asked: u32,
    latencies: Samples,
    connects: Samples,
    last: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    /// There is nothing on its way.
    Idle,
    /// A connection is being opened, since then.
    Opening(Instant),
    /// A response is awaited, since then.
    Asked(Instant),
}

/// What a step of the asking end achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing that anyone would notice.
    Nothing,
    /// The connection opened.
    Connected,
    /// A request went out.
    Request,
    /// The response to this transaction has come in whole, after this time.
    Response(u32, Span),
}

impl Client {
    /// An end whose first connection is to be opened at `start`.
    pub fn new(work: Transactions, start: Instant) -> Self {
        Self {
            work,
            started: start,
            state: Asking::Idle,
            due: start,
            asked: 0,
            latencies: Samples::default(),
            connects: Samples::default(),
            last: None,
        }
    }

    /// Whether a new connection is to be opened now, and if so takes note that it is.
    pub fn opens(&mut self, now: Instant) -> bool {
        let wanted = self.state == Asking::Idle
            && self.due <= now
            && !self.is_over(now)
            && (self.work.connections == Connections::Each || (self.asked == 0 && self.connects.count() == 0));
        if wanted {
            self.state = Asking::Opening(now);
            self.asked += u32::from(self.work.connections == Connections::Each);
        }
        wanted
    }

    /// Does what the application would do now; call it until it returns [`Asked::Nothing`] whenever
    /// the connection, the latest one, has changed or [`Self::next_wakeup`] has come.
    pub fn step(&mut self, now: Instant, transport: &mut impl Transport) -> Asked {
        match self.state {
            Asking::Opening(since) if transport.is_established() => {
                self.connects.add(now.since(since));
                self.state = match self.work.connections {
                    Connections::One => Asking::Idle,
                    Connections::Each => {
                        transport.write(self.work.request.get());
                        Asking::Asked(since)
                    }
                };
                self.due = now;
                Asked::Connected
            }
            Asking::Idle if self.work.connections == Connections::One && self.connects.count() > 0 => {
                if self.is_over(now) || now < self.due {
                    return Asked::Nothing;
                }
                self.asked += 1;
                self.state = Asking::Asked(now);
                transport.write(self.work.request.get());
                Asked::Request
            }
            Asking::Asked(since) => {
                transport.read(transport.readable());
                let before = match self.work.connections {
                    Connections::One => self.latencies.count(),
                    Connections::Each => 0,
                };
                if transport.received() < (before + 1) * self.work.response.get() {
                    return Asked::Nothing;
                }
                let latency = now.since(since);
                self.latencies.add(latency);
                self.last = Some(now);
                self.state = Asking::Idle;
                self.due = now + self.work.think;
                if self.work.connections == Connections::Each || self.is_over(self.due) {
                    transport.close();
                }
                Asked::Response(self.asked - 1, latency)
            }
            Asking::Idle | Asking::Opening(_) => Asked::Nothing,
        }
    }

    /// When to call [`Self::opens`] and [`Self::step`] next, if nothing changes before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        (self.state == Asking::Idle && !self.is_over(self.due)).then_some(self.due)
    }

    /// Whether no more will be asked, and nothing is on its way.
    pub fn is_over(&self, now: Instant) -> bool {
        let late = self.work.duration.is_some_and(|duration| now >= self.started + duration);
        self.state == Asking::Idle && (self.asked == self.work.transactions || late)
    }

    /// Transactions begun.
    pub const fn asked(&self) -> u32 {
        self.asked
    }

    /// How long each took.
    pub const fn latencies(&self) -> &Samples {
        &self.latencies
    }

    /// How long each connection took to open.
    pub const fn connects(&self) -> &Samples {
        &self.connects
    }

    /// When the last response was whole.
    pub const fn last(&self) -> Option<Instant> {
        self.last
    }
}

/// The end that answers, on one connection.
#[derive(Clone, Debug)]
pub struct Server {
    work: Transactions,
    answered: u64,
    closed: bool,
}

impl Server {
    /// An end that has answered nothing yet.
    pub const fn new(work: Transactions) -> Self {
        Self { work, answered: 0, closed: false }
    }

    /// Does what the application would do now; call it whenever the connection has changed. Whether
    /// it did anything.
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
        assert_eq!(client.step(at(1), &mut near), Asked::Nothing);
        near.establish();
        assert_eq!(client.step(at(5), &mut near), Asked::Connected);
        assert_eq!((client.step(at(5), &mut near), near.unsent()), (Asked::Request, 100));
        near.receive(999);
        assert_eq!(client.step(at(20), &mut near), Asked::Nothing);
        near.receive(1);
        assert_eq!(client.step(at(25), &mut near), Asked::Response(0, Span::from_millis(20)));
        assert_eq!((client.next_wakeup(), client.step(at(34), &mut near)), (Some(at(35)), Asked::Nothing));
        assert!(!client.opens(at(35)), "there is one connection");
        assert_eq!(client.step(at(35), &mut near), Asked::Request);
        near.receive(1000);
        assert_eq!(client.step(at(40), &mut near), Asked::Response(1, Span::from_millis(5)));
        assert!(near.is_closed() && client.is_over(at(40)) && client.next_wakeup().is_none());
    }

    #[test]
    fn a_connection_for_each_is_part_of_it() {
        let mut client = Client::new(work(Connections::Each), at(0));
        for index in 0..2 {
            let start = u64::from(index) * 30;
            assert!(client.opens(at(start)));
            let mut near = StreamEnd::opened(0);
            assert_eq!(client.step(at(start + 5), &mut near), Asked::Connected);
            near.receive(1000);
            assert_eq!(client.step(at(start + 20), &mut near), Asked::Response(index, Span::from_millis(20)));
            assert!(near.is_closed());
        }
        assert!(!client.opens(at(100)) && client.is_over(at(100)));
        assert_eq!((client.asked(), client.connects().count()), (2, 2));
    }

    #[test]
    fn time_ends_it_too() {
        let mut client =
            Client::new(Transactions { duration: Some(Span::from_millis(10)), ..work(Connections::One) }, at(0));
        assert!(!client.opens(at(10)) && client.is_over(at(10)));
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
