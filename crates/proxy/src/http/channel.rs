//! A TCP end of the proxy with the payload of both its streams.

use std::net::SocketAddr;

use airpath_core::{FlowId, Instant, Slot, UserId};
use airpath_path::{Departures, MiddleboxContext, Side, Streams};
use airpath_tcp::{Connection, Segment, State};

use crate::transmit::transmit;

/// A TCP end with its payload.
#[derive(Debug)]
pub struct Channel {
    pub flow: FlowId,
    /// The port that the proxy has chosen for it.
    pub port: Option<u16>,
    /// The address of the server, if it is one that packets have.
    pub server: Option<SocketAddr>,
    pub connection: Connection,
    /// The side of its peer.
    peer: Side,
    streams: Streams,
    is_closing: bool,
}

impl Channel {
    /// A connection with `peer`.
    pub fn new(flow: FlowId, port: Option<u16>, connection: Connection, peer: Side) -> Self {
        let (streams, server) = (Streams::default(), None);
        Self { flow, port, server, connection, peer, streams, is_closing: false }
    }

    /// The same connection with the address of its server.
    pub fn to(self, server: Option<SocketAddr>) -> Self {
        Self { server, ..self }
    }

    /// A segment of the peer arrives. Returns whether its payload is bytes.
    pub fn receive(&mut self, now: Instant, segment: &Segment, slot: Slot, cx: &mut MiddleboxContext<'_>) -> bool {
        self.connection.handle_segment(now, segment, cx.context());
        self.streams.accept(&self.connection, cx.tcp_payload(slot))
    }

    /// The bytes that have arrived in order and were not consumed.
    pub fn unread(&mut self) -> &[u8] {
        self.streams.unread(&self.connection)
    }

    /// The first `count` unread bytes are not needed any more, which opens the window.
    pub fn consume(&mut self, count: usize) {
        self.streams.consume(&mut self.connection, count);
    }

    /// Appends bytes to the stream towards the peer. The caller has checked [`Self::is_writable`].
    pub fn write(&mut self, bytes: &[u8]) {
        self.streams.write(&mut self.connection, bytes);
    }

    /// Whether the stream towards the peer has not ended.
    pub fn is_writable(&self) -> bool {
        !self.is_closing && self.connection.outcome().is_none()
    }

    /// Whether the connection is open, and nothing is under way on it.
    pub fn is_quiet(&mut self) -> bool {
        let is_open = self.connection.state() == State::Established && self.connection.outcome().is_none();
        self.port.is_some() && is_open && self.is_writable() && self.stored() == 0 && self.unread().is_empty()
    }

    /// Bytes that were written and are not acknowledged.
    pub fn stored(&self) -> u64 {
        self.streams.stored(&self.connection)
    }

    /// Ends the stream towards the peer after what was written.
    pub fn close(&mut self) {
        self.is_closing = true;
        self.connection.close();
    }

    /// Frees what the peer has acknowledged.
    pub fn free_acknowledged(&mut self) {
        self.streams.free_acknowledged(&self.connection);
    }

    /// Sends the segments that are due.
    pub fn transmit(&mut self, now: Instant, user: UserId, left: &mut Departures, cx: &mut MiddleboxContext<'_>) {
        let direction = self.peer.opposite().sends();
        transmit(now, &mut self.connection, self.streams.written(), (self.flow, user, direction), left, cx);
    }
}
