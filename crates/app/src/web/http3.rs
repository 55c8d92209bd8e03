//! HTTP/3 (RFC 9114): a QUIC stream for each request and its response. Bytes are counted.
//!
//! The unidirectional streams are left out: at the start of a connection they have about 30 bytes
//! of each end (RFC 9114 §6.2, §7.2.4), and QPACK adds what its dynamic table inserts.

use std::sync::Arc;

use airpath_core::Instant;
use airpath_quic::Connection;

use super::settings::{Request, Session};

/// The requests of a connection, by the number of their stream. The browser adds a request, the
/// server its response.
#[derive(Clone, Debug, Default)]
pub struct Exchanges {
    list: Vec<Exchange>,
    /// The first stream whose response may be incomplete.
    first: usize,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    request: Request,
    response: Option<Response>,
    complete: bool,
}

/// A response as the server has written it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Response {
    /// Bytes before the body: the head and the frames.
    pub framing: u64,
    /// Bytes of the body.
    pub body: u64,
    /// Bytes of the object's content for which it stands.
    pub content: u64,
}

impl Exchanges {
    pub(super) fn push(&mut self, request: Request) {
        self.list.push(Exchange { request, response: None, complete: false });
    }

    /// The streams with a response that is not complete at the browser.
    pub(super) fn awaited(&self) -> Vec<usize> {
        let written = |stream: &usize| self.list[*stream].response.is_some() && !self.list[*stream].complete;
        (self.first..self.list.len()).filter(written).collect()
    }

    /// The streams whose responses are not complete at the browser, with their requests.
    pub(super) fn open(&self) -> impl Iterator<Item = (usize, Request)> {
        let open = self.list.iter().enumerate().skip(self.first).filter(|(_, exchange)| !exchange.complete);
        open.map(|(stream, exchange)| (stream, exchange.request))
    }

    /// The request of a stream, and its response, which is written.
    pub(super) fn response(&self, stream: usize) -> (Request, Response) {
        let exchange = self.list[stream];
        (exchange.request, exchange.response.expect("bytes of it have arrived"))
    }

    /// The response of `stream` has arrived.
    pub(super) fn complete(&mut self, stream: usize) {
        self.list[stream].complete = true;
        while self.list.get(self.first).is_some_and(|exchange| exchange.complete) {
            self.first += 1;
        }
    }
}

/// The server's end of a connection.
#[derive(Clone, Debug)]
pub struct Server {
    session: Arc<Session>,
    /// Streams of the client so far.
    streams: usize,
    /// Streams whose request has not arrived.
    incomplete: Vec<usize>,
    /// Requests in processing: their stream, and when the response is ready.
    waiting: Vec<(usize, Instant)>,
}

impl Server {
    /// A server that has no request yet.
    pub const fn new(session: Arc<Session>) -> Self {
        Self { session, streams: 0, incomplete: Vec::new(), waiting: Vec::new() }
    }

    /// Acts as the application does now; call it whenever the connection has changed or
    /// [`Self::next_wakeup`] has come.
    pub fn step(&mut self, now: Instant, exchanges: &mut Exchanges, connection: &mut Connection) {
        self.incomplete.extend(self.streams..connection.stream_count());
        self.streams = connection.stream_count();
        let Self { session, incomplete, waiting, .. } = self;
        incomplete.retain(|stream| {
            let mut end = connection.stream(*stream);
            end.read(end.readable());
            let complete = end.peer_closed();
            if complete {
                let request = exchanges.list[*stream].request;
                waiting.push((*stream, now + session.object(request).wait));
            }
            !complete
        });
        waiting.retain(|(stream, ready)| {
            if *ready <= now {
                respond(session, *stream, exchanges, connection);
            }
            *ready > now
        });
    }

    /// When to call [`Self::step`] next, if nothing changes before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.waiting.iter().map(|(_, ready)| *ready).min()
    }
}

/// Writes the whole response: QUIC sends by priority what it has not sent yet.
fn respond(session: &Session, stream: usize, exchanges: &mut Exchanges, connection: &mut Connection) {
    let settings = &session.settings;
    let request = exchanges.list[stream].request;
    let object = session.object(request);
    let body = if request.conditional { 0 } else { object.encoded(settings.compression) };
    let framing = framed(settings.response.get()) + if body > 0 { framed(body) - body } else { 0 };
    let content = session.content_of_part(request, body, body);
    exchanges.list[stream].response = Some(Response { framing, body, content });
    let mut end = connection.stream(stream);
    end.set_priority(priority(object.urgency, object.incremental, stream));
    end.write(framing + body);
    end.close();
}

/// Bytes of a frame with a payload of `bytes`: type and length are variable-length integers (RFC
/// 9114 §7.1, RFC 9000 §16).
pub(super) const fn framed(bytes: u64) -> u64 {
    let length = match bytes {
        0..64 => 1,
        64..16_384 => 2,
        16_384..1_073_741_824 => 4,
        _ => 8,
    };
    1 + length + bytes
}

/// Priority of a stream in QUIC, which sends the highest first, and equal ones in turn. The order
/// is that of RFC 9218 §10: by urgency; of these the ones that are not incremental, one after the
/// other; then the others in turn.
fn priority(urgency: u8, incremental: bool, stream: usize) -> i32 {
    const SPAN: i32 = 1 << 24;
    let place = if incremental { SPAN - 1 } else { (stream as i32).min(SPAN - 2) };
    -i32::from(urgency) * SPAN - place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_a_type_and_a_length() {
        assert_eq!([framed(0), framed(63), framed(64), framed(16_384)], [2, 65, 67, 16_389]);
    }

    #[test]
    fn priorities_follow_urgency_then_order_then_turns() {
        let order = [
            priority(1, false, 9),
            priority(1, false, 10),
            priority(1, true, 0),
            priority(3, false, 1),
            priority(3, true, 7),
        ];
        assert!(order.is_sorted_by(|a, b| a > b), "{order:?}");
        assert_eq!(priority(3, true, 7), priority(3, true, 8), "in turn");
    }
}
