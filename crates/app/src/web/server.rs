//! The server's end of a connection.

use std::sync::Arc;

use airpath_core::Instant;

use super::messages::Messages;
use super::settings::{Downward, Protocol, Request, Session, Tls, Upward};
use super::tls::{Handshake, RECORD, protected};
use crate::transport::Transport;

/// Head of an HTTP/2 frame (RFC 9113 §4.1).
const FRAME_HEAD: u64 = 9;
/// Payload of an HTTP/2 frame: SETTINGS_MAX_FRAME_SIZE at its initial value (RFC 9113 §6.5.2).
const FRAME: u64 = 16_384;

/// The server's end of a connection. Pipelined requests, and those of streams, are processed at
/// the same time.
#[derive(Clone, Debug)]
pub struct Server {
    session: Arc<Session>,
    handshake: Handshake,
    /// Responses that are not completely written, in the order of their requests.
    responses: Vec<Response>,
    closed: bool,
}

/// A response.
#[derive(Clone, Copy, Debug)]
struct Response {
    request: Request,
    ready: Instant,
    /// Bytes of the head; zero once it is written.
    head: u64,
    /// Bytes of the body that are not written.
    body: u64,
    urgency: u8,
    incremental: bool,
    /// Number of the last write, for taking turns.
    turn: u64,
}

impl Server {
    /// A server that has no request yet, on a connection with this handshake.
    pub const fn new(session: Arc<Session>, handshake: Handshake) -> Self {
        Self { session, handshake, responses: Vec::new(), closed: false }
    }

    /// Acts as the application does now; call it whenever the connection has changed or
    /// [`Self::next_wakeup`] has come. Returns whether it has written: when the transport has sent
    /// that, there may be room for more.
    pub fn step(
        &mut self,
        now: Instant,
        requests: &mut Messages<Upward>,
        responses: &mut Messages<Downward>,
        transport: &mut impl Transport,
    ) -> bool {
        if self.closed || !transport.is_established() {
            return false;
        }
        let before = transport.unsent();
        transport.read(transport.readable());
        while let Some(message) = requests.pop(transport.received()) {
            match message {
                Upward::Handshake(number) => {
                    let (_, bytes) = self.handshake.round_trips[usize::from(number)];
                    write(transport, responses, bytes, Downward::Handshake(number));
                }
                // RFC 8446 §4.6.1: any time after the client's Finished; OpenSSL: immediately.
                Upward::Finished if self.handshake.tickets > 0 => {
                    write(transport, responses, self.handshake.tickets, Downward::Tickets);
                }
                Upward::Finished => {}
                Upward::Request(request) => self.accept(now, request),
            }
        }
        match self.session.settings.protocol {
            Protocol::Http2 => self.write_frames(now, responses, transport),
            Protocol::Http10 | Protocol::Http11 => self.write_in_order(now, responses, transport),
            Protocol::Http3 => unreachable!("HTTP/3 has the server of `http3`"),
        }
        if transport.peer_closed() && !self.closed {
            self.closed = true;
            transport.close();
        }
        transport.unsent() > before
    }

    /// Number of requests whose responses are not completely written.
    pub const fn outstanding(&self) -> usize {
        self.responses.len()
    }

    /// When to call [`Self::step`] next, if nothing changes before: when the next response that was
    /// not ready at `now` is.
    pub fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        self.responses.iter().map(|response| response.ready).filter(|ready| *ready > now).min()
    }

    fn accept(&mut self, now: Instant, request: Request) {
        let settings = &self.session.settings;
        let object = self.session.object(request);
        let body = if request.conditional { 0 } else { object.encoded(settings.compression) };
        self.responses.push(Response {
            request,
            ready: now + object.wait,
            head: settings.response.get(),
            body,
            urgency: object.urgency,
            incremental: object.incremental,
            turn: 0,
        });
    }

    /// HTTP/1: one response after the other, in the order of the requests (RFC 9112 §9.3.2).
    fn write_in_order(&mut self, now: Instant, messages: &mut Messages<Downward>, transport: &mut impl Transport) {
        let ready = self.responses.iter().take_while(|response| response.ready <= now).count();
        let tls = self.session.settings.tls;
        for response in self.responses.drain(..ready) {
            let mut head = response.head;
            let mut body = response.body;
            loop {
                // A reader of TLS has whole records only.
                let part = if tls == Tls::None { body } else { body.min(RECORD) };
                let content = self.session.content_of_part(response.request, body, part);
                body -= part;
                let bytes = protected(tls, head + part);
                let framing = bytes - part;
                let (readable, last) = (tls == Tls::None, body == 0);
                let message =
                    Downward::Part { request: response.request, body: part, content, framing, readable, last };
                write(transport, messages, bytes, message);
                head = 0;
                if last {
                    break;
                }
            }
            if self.session.settings.protocol == Protocol::Http10 {
                self.closed = true;
                transport.close();
                return;
            }
        }
    }

    /// HTTP/2: frames of all streams, in the order of RFC 9218 §10.
    fn write_frames(&mut self, now: Instant, messages: &mut Messages<Downward>, transport: &mut impl Transport) {
        let settings = &self.session.settings;
        while transport.unsent() < settings.unsent.get() {
            // The most urgent; of these the ones that are not incremental, by the order of their
            // requests; then the others in turn.
            let ready = self.responses.iter().enumerate().filter(|(_, response)| response.ready <= now);
            let next = ready.min_by_key(|(index, response)| {
                let turn = if response.incremental { response.turn } else { 0 };
                (response.urgency, response.incremental, turn, *index)
            });
            let Some((index, _)) = next else { return };
            let turn = self.responses.iter().map(|response| response.turn).max().unwrap_or(0) + 1;
            let response = &mut self.responses[index];
            response.turn = turn;
            let head = match std::mem::take(&mut response.head) {
                0 => 0,
                head => head + FRAME_HEAD,
            };
            let part = response.body.min(FRAME);
            let content = self.session.content_of_part(response.request, response.body, part);
            response.body -= part;
            let frame = if part > 0 { part + FRAME_HEAD } else { 0 };
            let bytes = protected(settings.tls, head + frame);
            let request = response.request;
            let (framing, last) = (bytes - part, response.body == 0);
            let readable = settings.tls == Tls::None;
            if last {
                self.responses.remove(index);
            }
            write(transport, messages, bytes, Downward::Part { request, body: part, content, framing, readable, last });
        }
    }
}

fn write(transport: &mut impl Transport, messages: &mut Messages<Downward>, bytes: u64, message: Downward) {
    transport.write(bytes);
    messages.push(bytes, message);
}

#[cfg(test)]
mod tests {
    use airpath_core::{Bytes, Span};

    use super::super::page::{Caching, Entry, ObjectKind, Page, PageFile};
    use super::super::settings::Settings;
    use super::*;
    use crate::transport::StreamEnd;

    fn entry(name: &str, kind: ObjectKind, wait: u64) -> Entry {
        Entry {
            name: name.to_owned(),
            kind,
            origin: "a".to_owned(),
            size: Bytes::new(40_000),
            compressed: None,
            referrer: None,
            at: None,
            wait: Span::from_millis(wait),
            process: Span::ZERO,
            cache: Caching::Never,
            urgency: None,
            incremental: None,
        }
    }

    /// The objects whose parts a server writes for requests in this order, until all are complete.
    fn parts(protocol: Protocol, requested: &[(ObjectKind, u64)]) -> Vec<u32> {
        let objects = requested.iter().enumerate();
        let objects = objects.map(|(index, (kind, wait))| entry(&index.to_string(), *kind, *wait)).collect();
        let file = PageFile { name: String::new(), title: String::new(), source: String::new(), objects };
        let settings = Settings { protocol, ..Settings::default() };
        let page = Page::new(&file).expect("it is valid");
        let handshake = Handshake::of(&settings, false);
        let mut server = Server::new(Arc::new(Session::new(settings, vec![page])), handshake);
        let (mut up, mut down, mut far) = (Messages::default(), Messages::default(), StreamEnd::opened(0));
        for object in 0..requested.len() as u32 {
            up.push(100, Upward::Request(Request { view: 0, page: 0, object, conditional: false }));
            far.receive(100);
        }
        let (mut now, mut written) = (Instant::ZERO, Vec::new());
        loop {
            server.step(now, &mut up, &mut down, &mut far);
            if far.unsent() == 0 {
                let Some(next) = server.next_wakeup(now) else { return written };
                now = next;
                continue;
            }
            far.take(far.unsent());
            while let Some(Downward::Part { request, .. }) = down.pop(far.taken()) {
                written.push(request.object);
            }
        }
    }

    #[test]
    fn streams_take_turns_by_urgency() {
        use ObjectKind::{Data, Image, Style};
        // 40,000 bytes are three frames.
        assert_eq!(parts(Protocol::Http2, &[(Image, 0), (Image, 0), (Style, 0)]), [2, 2, 2, 0, 1, 0, 1, 0, 1]);
        // Data is as urgent as images and not incremental: it comes as a whole.
        assert_eq!(parts(Protocol::Http2, &[(Image, 0), (Data, 0)]), [1, 1, 1, 0, 0, 0]);
        // What is not ready does not hold up the others.
        assert_eq!(parts(Protocol::Http2, &[(Style, 10), (Image, 0)]), [1, 1, 1, 0, 0, 0]);
    }

    #[test]
    fn pipelined_responses_keep_the_order_of_their_requests() {
        use ObjectKind::{Image, Style};
        assert_eq!(parts(Protocol::Http11, &[(Image, 10), (Style, 0)]), [0, 1]);
    }
}
