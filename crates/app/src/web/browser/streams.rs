//! The browser's part of HTTP/3: a stream for each request.

use airpath_core::Instant;
use airpath_quic::Connection as QuicConnection;

use super::{Browser, Connection, State, indexed_head};
use crate::web::http3::{Exchanges, framed};
use crate::web::settings::{Request, share_of};

impl Browser {
    /// Whether the browser waits for connection `number`: for a response, or for the handshake with
    /// requests that need it.
    pub fn awaits(&self, number: u32) -> bool {
        let mut own = self.connections.iter().filter(|connection| connection.number == number);
        let opens = |connection: &Connection| connection.state == State::Opening && !self.waiting.is_empty();
        own.any(|connection| connection.outstanding > 0 || opens(connection))
    }

    /// Acts on connection `number` over QUIC, as [`Self::step`] does over TCP.
    pub fn step_streams(
        &mut self,
        now: Instant,
        number: u32,
        exchanges: &mut Exchanges,
        quic: &mut QuicConnection,
    ) -> bool {
        let Some(index) = self.connections.iter().position(|connection| connection.number == number) else {
            return false;
        };
        let mut acted = false;
        let connection = &mut self.connections[index];
        if connection.state == State::Opening && quic.is_established() {
            connection.state = State::Ready;
            connection.idle = now;
            self.changed = true;
            acted = true;
        }
        // QUIC has ended a connection without requests, after its idle time-out.
        let is_opening = connection.state == State::Opening && self.waiting.is_empty();
        if (connection.is_idle() || is_opening) && quic.outcome().is_some() {
            connection.state = State::Closed;
        }
        acted |= self.take_responses(now, index, exchanges, quic);
        if quic.outcome().is_some_and(|outcome| !outcome.is_orderly()) {
            self.request_again(index, exchanges, quic);
        }
        self.take_found(now);
        self.open_streams(now, index, exchanges, quic);
        if self.connections[index].state == State::Closed {
            quic.close(now);
            self.connections.remove(index);
            acted = true;
        }
        acted || self.changed
    }

    /// Reads what has arrived. Returns whether something was found or is complete.
    fn take_responses(
        &mut self,
        now: Instant,
        index: usize,
        exchanges: &mut Exchanges,
        quic: &mut QuicConnection,
    ) -> bool {
        let mut acted = false;
        for stream in exchanges.awaited() {
            let mut end = quic.stream(stream);
            let new = end.readable();
            if new == 0 {
                continue;
            }
            end.read(new);
            let (request, response) = exchanges.response(stream);
            let received = end.received();
            let arrived = received.saturating_sub(response.framing);
            if received == response.framing + response.body {
                exchanges.complete(stream);
                self.take_part(now, index, request, (response.body, response.content), true);
                acted = true;
            } else {
                self.receive(now, request, (arrived, share_of(response.content, arrived, response.body)));
                acted |= !self.found.is_empty();
            }
        }
        acted
    }

    /// The connection was lost. If it had responses before, and nothing has arrived of those to its
    /// last requests, these wait for another connection: GET may be repeated (RFC 9110 §9.2.2).
    fn request_again(&mut self, index: usize, exchanges: &Exchanges, quic: &mut QuicConnection) {
        let connection = &mut self.connections[index];
        let is_unanswered = |(stream, _): (usize, Request)| quic.stream(stream).received() == 0;
        let was_used = connection.state == State::Ready && connection.responses > 0;
        if !was_used || !exchanges.open().all(is_unanswered) {
            return;
        }
        let assigned = connection.assigned.drain(..).map(|request| request.object);
        let objects: Vec<u32> = assigned.chain(exchanges.open().map(|(_, request)| request.object)).collect();
        (connection.outstanding, connection.state) = (0, State::Closed);
        objects.into_iter().for_each(|object| self.wait_for(object));
    }

    /// Sends the assigned requests, as far as the server allows further streams.
    fn open_streams(&mut self, now: Instant, index: usize, exchanges: &mut Exchanges, quic: &mut QuicConnection) {
        let settings = &self.session.settings;
        let connection = &mut self.connections[index];
        let mut sent = 0;
        for request in &connection.assigned {
            let Some(stream) = quic.open_stream() else { break };
            let bytes = if stream == 0 { framed(settings.request.get()) } else { indexed_head(settings) };
            let mut end = quic.stream(stream);
            end.write(bytes);
            end.close();
            exchanges.push(*request);
            let fetch = &mut self.views[request.view as usize].fetches[request.object as usize];
            fetch.requested = Some(now);
            fetch.connection = Some(connection.number);
            sent += 1;
        }
        connection.assigned.drain(..sent);
    }
}
