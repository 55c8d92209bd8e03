//! The HTTP of one connection: requests and responses, paired.
//!
//! Responses come in the order of their requests (RFC 9112 §9.3), so the pairing is by order, and a response whose sender had not
//! received a request is never that request's. Where the capture lost messages, what the acknowledgements tell about who had
//! received what finds the pairs again.

use crate::exchange::{Exchange, Field, KEPT_FIELDS, Request, Response, Size};
use crate::head::{self, Beginning, Version};
use crate::messages::{Framing, Head, Messages, Reading, Side, Tail};
use crate::stream::{Piece, Stream};
use airpath_observe::End;

/// Reads the HTTP of one connection.
#[derive(Debug)]
pub struct Conversation {
    client: Direction,
    server: Direction,
    ledger: Ledger,
}

#[derive(Debug)]
struct Direction {
    stream: Stream,
    messages: Messages,
    read_up_to: i64,
    /// Offset behind the last byte, once its sender has closed.
    closed_at: Option<i64>,
}

impl Conversation {
    /// A conversation whose beginning is captured or not; all header fields are kept, or only [`KEPT_FIELDS`].
    pub fn new(from_its_beginning: bool, keep_fields: bool) -> Self {
        let direction = || Direction {
            stream: if from_its_beginning { Stream::from_its_beginning() } else { Stream::default() },
            messages: Messages::new(from_its_beginning),
            read_up_to: 0,
            closed_at: None,
        };
        Self { client: direction(), server: direction(), ledger: Ledger { keep_fields, ..Ledger::default() } }
    }

    /// Takes the payload of a segment.
    pub fn push(&mut self, from: End, piece: Piece<'_>) {
        match from {
            End::Client => {
                let Direction { stream, messages, read_up_to, .. } = &mut self.client;
                stream.push(piece, &mut Reading { messages, side: Requests(&mut self.ledger), read_up_to });
            }
            End::Server => {
                let Direction { stream, messages, read_up_to, .. } = &mut self.server;
                stream.push(piece, &mut Reading { messages, side: Responses(&mut self.ledger), read_up_to });
                if self.ledger.tunnel {
                    self.client.messages.become_foreign();
                }
            }
        }
    }

    /// An end has closed its stream, whose bytes end at `offset`.
    pub fn close(&mut self, from: End, offset: i64) {
        let direction = match from {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        };
        direction.closed_at.get_or_insert(offset);
    }

    /// Whether what both ends said is not HTTP, or no more: what comes need not be pushed. One end alone does not tell: a server may
    /// answer to what is no proper request.
    pub const fn is_foreign(&self) -> bool {
        self.client.messages.is_foreign() && self.server.messages.is_foreign()
    }

    /// Whether messages of HTTP were recognised.
    pub fn is_http(&self) -> bool {
        !self.ledger.exchanges.is_empty()
    }

    /// Nothing more will come: the exchanges, in the order in which they were made.
    pub fn finish(mut self) -> Vec<Exchange> {
        let Self { client, server, ledger } = &mut self;
        client.finish(Requests(ledger));
        server.finish(Responses(ledger));
        let mut exchanges = std::mem::take(&mut self.ledger.exchanges);
        exchanges.sort_by_key(Exchange::first);
        exchanges
    }
}

impl Direction {
    fn finish(&mut self, side: impl Side) {
        let Self { stream, messages, read_up_to, closed_at } = self;
        let mut reading = Reading { messages, side, read_up_to };
        stream.finish(&mut reading);
        let closed = closed_at.is_some_and(|end| *reading.read_up_to >= end);
        reading.messages.end(closed, &mut reading.side);
    }
}

/// What has been exchanged.
#[derive(Debug, Default)]
struct Ledger {
    exchanges: Vec<Exchange>,
    /// Exchanges before this one have their response, or will have none.
    answered: usize,
    /// The exchange whose request is being read.
    asking: Option<usize>,
    /// The exchange whose response is being read.
    answering: Option<usize>,
    /// Offset behind the last response that is known to its end.
    responded: i64,
    keep_fields: bool,
    /// The body of the request at hand comes only after `100 Continue`.
    expects_continue: bool,
    /// The connection has become something else: after CONNECT, or 101.
    tunnel: bool,
}

impl Ledger {
    /// Enters a request, and says for which exchange: a response may have been read before, when segments were captured out of order.
    fn ask(&mut self, request: Request) -> usize {
        let orphans = self.exchanges.iter().rev().take_while(|exchange| exchange.request.is_none()).count();
        let trailing = self.exchanges.len() - orphans;
        let orphan = self.exchanges[trailing..].iter().position(|exchange| {
            let response = exchange.response.as_ref();
            response.and_then(|response| response.received).is_some_and(|received| received > request.offset)
        });
        let at = orphan.map_or(self.exchanges.len(), |orphan| trailing + orphan);
        if orphan.is_none() {
            self.exchanges.push(Exchange::default());
        }
        self.exchanges[at].request = Some(request);
        at
    }

    /// The exchange that a final response belongs to, from what its head tells.
    fn responded_to(&mut self, head: &Head<'_>) -> usize {
        if head.after_loss {
            self.pass_over_missed(head);
        }
        let asked_before = |exchange: &Exchange| {
            let request = exchange.request.as_ref();
            request.is_some_and(|request| head.acknowledged.is_none_or(|received| received > request.offset))
        };
        if self.exchanges.get(self.answered).is_some_and(asked_before) {
            self.answered += 1;
            return self.answered - 1;
        }
        // Its request was not captured, or not yet.
        self.exchanges.insert(self.answered, Exchange::default());
        self.asking = self.asking.map(|asking| if asking >= self.answered { asking + 1 } else { asking });
        self.answered += 1;
        self.answered - 1
    }

    /// Responses were missed before this one. When the client made its next request it had received more than when it made the one
    /// before, and none of what it received is of a response that is known: that was the missed response to the one before.
    fn pass_over_missed(&mut self, head: &Head<'_>) {
        while let Some([earlier, later]) = self.exchanges.get_mut(self.answered..self.answered + 2) {
            let (Some(request), Some(next)) = (&earlier.request, &later.request) else { break };
            let (Some(before), Some(then)) = (request.received, next.received) else { break };
            if then <= before.max(self.responded) || then > head.offset {
                break;
            }
            earlier.response_missed = true;
            self.answered += 1;
        }
    }

    fn fields(&self, head: &[u8]) -> Box<[Field]> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned().into_boxed_str();
        head::fields(head)
            .filter(|(name, _)| {
                self.keep_fields || KEPT_FIELDS.iter().any(|kept| kept.as_bytes().eq_ignore_ascii_case(name))
            })
            .map(|(name, value)| Field { name: text(name), value: text(value) })
            .collect()
    }
}

fn size_of(tail: &Tail) -> Size {
    let Tail { head, body, content, complete, exact, .. } = *tail;
    Size { head, body, content, complete, exact }
}

fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

/// The client's side of the ledger.
struct Requests<'a>(&'a mut Ledger);

impl Side for Requests<'_> {
    fn beginning(&self, bytes: &[u8]) -> Beginning {
        head::request_beginning(bytes)
    }

    fn surely_begins(&self, bytes: &[u8]) -> bool {
        head::surely_request(bytes)
    }

    fn may_be_bare(&self) -> bool {
        false
    }

    fn head(&mut self, head: &Head<'_>) -> Framing {
        let line = head::request_line(head.bytes);
        let (method, target) =
            line.map_or_else(|| head::cut_request_line(head.bytes), |line| (line.method, line.target));
        let request = Request {
            first: head.first,
            last: head.last,
            offset: head.offset,
            received: head.acknowledged,
            method: text(method),
            target: text(target),
            version: line.map_or(Version::Http11, |line| line.version),
            fields: self.0.fields(head.bytes),
            size: Size::default(),
        };
        self.0.asking = Some(self.0.ask(request));
        // RFC 9112 §6.3: without either field a request has no body.
        let extent = head::extent(head.bytes);
        self.0.expects_continue = extent.expects_continue;
        match extent {
            head::Extent { chunked: true, .. } => Framing::Chunked,
            head::Extent { length: Some(length), .. } => Framing::Length(length),
            _ => Framing::Empty,
        }
    }

    fn tail(&mut self, tail: &Tail) {
        let asking = self.0.asking.take().and_then(|at| self.0.exchanges.get_mut(at));
        if let Some(request) = asking.and_then(|exchange| exchange.request.as_mut()) {
            request.last = tail.last;
            request.size = size_of(tail);
        }
    }

    fn body_may_be_absent(&self) -> bool {
        let at = self.0.asking.and_then(|at| self.0.exchanges.get(at));
        self.0.expects_continue && at.is_some_and(|exchange| exchange.response.is_some())
    }
}

/// The server's side of the ledger.
struct Responses<'a>(&'a mut Ledger);

impl Side for Responses<'_> {
    fn beginning(&self, bytes: &[u8]) -> Beginning {
        head::response_beginning(bytes)
    }

    fn surely_begins(&self, bytes: &[u8]) -> bool {
        head::surely_response(bytes)
    }

    fn may_be_bare(&self) -> bool {
        let asked = self.0.exchanges.get(self.0.answered).and_then(|exchange| exchange.request.as_ref());
        asked.is_some_and(|request| request.version == Version::Http09)
    }

    fn head(&mut self, head: &Head<'_>) -> Framing {
        let status = head::status(head.bytes);
        let interim = matches!(status, Some(100 | 102..=199));
        if interim {
            if let Some(exchange) = self.0.exchanges.get_mut(self.0.answered) {
                exchange.interim_responses = exchange.interim_responses.saturating_add(1);
            }
            return Framing::Empty;
        }
        let at = self.0.responded_to(head);
        self.0.answering = Some(at);
        let response = Response {
            first: head.first,
            last: head.last,
            offset: head.offset,
            received: head.acknowledged,
            status,
            version: if head.bytes.is_empty() { Version::Http09 } else { head::response_version(head.bytes) },
            fields: self.0.fields(head.bytes),
            size: Size::default(),
        };
        let exchange = &mut self.0.exchanges[at];
        exchange.response = Some(response);
        let method = exchange.request.as_ref().map_or("", |request| &request.method);
        let framing = response_framing(method, status, head::extent(head.bytes));
        self.0.tunnel |= framing == Framing::Tunnel;
        framing
    }

    fn tail(&mut self, tail: &Tail) {
        let answering = self.0.answering.take().and_then(|at| self.0.exchanges.get_mut(at));
        if let Some(response) = answering.and_then(|exchange| exchange.response.as_mut()) {
            response.last = tail.last;
            response.size = size_of(tail);
        }
        if tail.exact {
            self.0.responded = tail.end;
        }
    }

    fn body_may_be_absent(&self) -> bool {
        false
    }
}

/// How long a final response is (RFC 9112 §6.3).
fn response_framing(method: &str, status: Option<u16>, extent: head::Extent) -> Framing {
    match (method, status, extent) {
        (_, Some(101), _) | ("CONNECT", Some(200..=299), _) => Framing::Tunnel,
        ("HEAD", ..) | (_, Some(204 | 304), _) => Framing::Empty,
        (_, _, head::Extent { chunked: true, .. }) => Framing::Chunked,
        (_, _, head::Extent { length: Some(length), coded: false, .. }) => Framing::Length(length),
        _ => Framing::UntilClose,
    }
}
