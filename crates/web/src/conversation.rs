//! The HTTP of one connection: requests and responses, paired.
//!
//! Responses come in the order of their requests (RFC 9112 §9.3). So messages are paired by order,
//! and a response never belongs to a request that its sender had not received. Where the capture
//! missed messages, the acknowledgements, which show the received data, restore the pairs.

use std::collections::{BTreeMap, VecDeque};

use crate::exchange::{Exchange, Field, KEPT_FIELDS, Request, Response, Size};
use crate::head::{self, Beginning, Version};
use crate::messages::{Framing, Head, Messages, Reading, Side, Tail};
use crate::stream::{Mark, Piece, Stream};
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
    /// Offset after the last byte, once its sender has closed.
    closed_at: Option<i64>,
}

impl Conversation {
    /// A conversation that was captured from its beginning, or not. Keeps all header fields, or
    /// only [`KEPT_FIELDS`].
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

    /// The client has acknowledged the server's stream up to an offset.
    pub fn acknowledged(&mut self, up_to: i64, mark: Mark) {
        self.ledger.acknowledged(up_to, mark);
    }

    /// An end has closed its stream, whose bytes end at `offset`.
    pub fn close(&mut self, from: End, offset: i64) {
        let direction = match from {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        };
        direction.closed_at.get_or_insert(offset);
    }

    /// Whether neither direction is HTTP, or HTTP is over: further segments need not be pushed. One
    /// direction does not decide: a server may answer a malformed request.
    pub const fn is_foreign(&self) -> bool {
        self.client.messages.is_foreign() && self.server.messages.is_foreign()
    }

    /// Whether HTTP messages were recognised.
    pub fn is_http(&self) -> bool {
        !self.ledger.exchanges.is_empty()
    }

    /// Ends the conversation; returns the exchanges in order.
    pub fn finish(mut self) -> Vec<Exchange> {
        let Self { client, server, ledger } = &mut self;
        client.finish(Requests(ledger));
        server.finish(Responses(ledger));
        let acknowledgements: BTreeMap<i64, Mark> = self.ledger.acknowledgements.iter().copied().collect();
        let mut exchanges = std::mem::take(&mut self.ledger.exchanges);
        for response in exchanges.iter_mut().filter_map(|exchange| exchange.response.as_mut()) {
            response.acknowledged = acknowledgements.get(&response.offset).copied();
        }
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

/// The exchanges, and the state of their pairing.
#[derive(Debug, Default)]
struct Ledger {
    exchanges: Vec<Exchange>,
    /// Exchanges before this one have their response, or will have none.
    answered: usize,
    /// The exchange whose request is being read.
    open_request: Option<usize>,
    /// The exchange whose response is being read.
    open_response: Option<usize>,
    /// Offset after the last response with an exact end.
    responded: i64,
    /// The first and the last offset of the responses that are not acknowledged, in order.
    unacknowledged: VecDeque<(i64, i64)>,
    /// When the responses with these first offsets were acknowledged.
    acknowledgements: Vec<(i64, Mark)>,
    keep_fields: bool,
    /// The body of the open request comes only after `100 Continue`.
    expects_continue: bool,
    /// The connection is a tunnel: after CONNECT, or 101.
    tunnel: bool,
}

impl Ledger {
    /// Adds a request; returns the index of its exchange. Its response may have been read before,
    /// where the capture has segments out of order.
    fn add_request(&mut self, request: Request) -> usize {
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

    /// Returns the index of the exchange of a final response.
    fn responded_to(&mut self, head: &Head<'_>) -> usize {
        if head.after_loss {
            self.skip_missed(head);
        }
        let sent_before = |exchange: &Exchange| {
            let request = exchange.request.as_ref();
            request.is_some_and(|request| head.acknowledged.is_none_or(|received| received > request.offset))
        };
        if self.exchanges.get(self.answered).is_some_and(sent_before) {
            self.answered += 1;
            return self.answered - 1;
        }
        // Its request was not captured, or not yet.
        self.exchanges.insert(self.answered, Exchange::default());
        self.open_request = self.open_request.map(|open| if open >= self.answered { open + 1 } else { open });
        self.answered += 1;
        self.answered - 1
    }

    /// The capture missed responses before this one. If the client had received more at its next
    /// request than at the one before, and no known response has those bytes, then they are the
    /// missed response.
    fn skip_missed(&mut self, head: &Head<'_>) {
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

    /// The client has acknowledged the server's stream up to an offset.
    fn acknowledged(&mut self, up_to: i64, mark: Mark) {
        while let Some((offset, _)) = self.unacknowledged.front().copied().filter(|(_, end)| *end <= up_to) {
            self.unacknowledged.pop_front();
            self.acknowledgements.push((offset, mark));
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

/// The client's direction.
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
        self.0.open_request = Some(self.0.add_request(request));
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
        let open = self.0.open_request.take().and_then(|at| self.0.exchanges.get_mut(at));
        if let Some(request) = open.and_then(|exchange| exchange.request.as_mut()) {
            request.last = tail.last;
            request.size = size_of(tail);
        }
    }

    fn body_may_be_absent(&self) -> bool {
        let at = self.0.open_request.and_then(|at| self.0.exchanges.get(at));
        self.0.expects_continue && at.is_some_and(|exchange| exchange.response.is_some())
    }
}

/// The server's direction.
struct Responses<'a>(&'a mut Ledger);

impl Side for Responses<'_> {
    fn beginning(&self, bytes: &[u8]) -> Beginning {
        head::response_beginning(bytes)
    }

    fn surely_begins(&self, bytes: &[u8]) -> bool {
        head::surely_response(bytes)
    }

    fn may_be_bare(&self) -> bool {
        let next = self.0.exchanges.get(self.0.answered).and_then(|exchange| exchange.request.as_ref());
        next.is_some_and(|request| request.version == Version::Http09)
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
        self.0.open_response = Some(at);
        let response = Response {
            first: head.first,
            last: head.last,
            acknowledged: None,
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
        let open = self.0.open_response.take().and_then(|at| self.0.exchanges.get_mut(at));
        if let Some(response) = open.and_then(|exchange| exchange.response.as_mut()) {
            response.last = tail.last;
            response.size = size_of(tail);
            self.0.unacknowledged.push_back((response.offset, tail.end));
        }
        if tail.exact {
            self.0.responded = tail.end;
        }
    }

    fn body_may_be_absent(&self) -> bool {
        false
    }
}

/// The framing of a final response (RFC 9112 §6.3).
fn response_framing(method: &str, status: Option<u16>, extent: head::Extent) -> Framing {
    match (method, status, extent) {
        (_, Some(101), _) | ("CONNECT", Some(200..=299), _) => Framing::Tunnel,
        ("HEAD", ..) | (_, Some(204 | 304), _) => Framing::Empty,
        (_, _, head::Extent { chunked: true, .. }) => Framing::Chunked,
        (_, _, head::Extent { length: Some(length), coded: false, .. }) => Framing::Length(length),
        _ => Framing::UntilClose,
    }
}
