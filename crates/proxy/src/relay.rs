//! A relayed connection: one TCP end towards the server, one towards the mobile, and the payload
//! between them.

use airpath_core::{Direction, FlowId, Instant, Slot, UserId};
use airpath_link::Departure;
use airpath_path::{MiddleboxContext, NewSegment, Payload, Side};
use airpath_tcp::{Connection, Outcome, Segment, State};
use airpath_wire::tcp::Flags;

use crate::config::Config;
use crate::stream_buffer::StreamBuffer;

/// A connection on which a mobile has sent more bytes is an upload: an initial window of ten
/// segments (RFC 6928). Less is a request.
const MOST_REQUEST: u64 = 14_600;

/// Packets that leave the proxy, in the order of time.
pub type Departures = std::collections::VecDeque<(Direction, Departure)>;

/// A relayed connection.
#[derive(Debug)]
pub struct Relay {
    /// Its flow.
    pub flow: FlowId,
    /// Its mobile.
    pub user: UserId,
    /// The ends towards the server and towards the mobile, in the order of [`Side`].
    ends: [Connection; 2],
    /// In the order of [`Direction`].
    streams: [Stream; 2],
    /// The side that opened the connection.
    client: Side,
    /// The SYN of the client, until the server has accepted.
    held_syn: Option<Segment>,
    opened: Instant,
    /// When the last segment arrived.
    active: Instant,
}

/// One direction of a relayed connection.
#[derive(Debug, Default)]
struct Stream {
    buffer: StreamBuffer,
    /// Bytes written into the end towards the receiver.
    forwarded: u64,
    /// Bytes that the receiver has acknowledged, and that were then read from the sender's end.
    acknowledged: u64,
}

impl Relay {
    /// A relay for the connection that `syn` of `client` opens, between a `listening` end towards
    /// the client and a `connecting` end. With `defers`, the client waits for the server.
    pub fn new(
        (flow, user): (FlowId, UserId),
        client: Side,
        syn: Segment,
        (listening, connecting): (Connection, Connection),
        defers: bool,
        now: Instant,
    ) -> Self {
        let ends = match client {
            Side::Mobile => [connecting, listening],
            Side::Server => [listening, connecting],
        };
        let held_syn = defers.then_some(syn);
        Self { flow, user, ends, streams: Default::default(), client, held_syn, opened: now, active: now }
    }

    /// The end towards the mobile.
    pub const fn mobile(&self) -> &Connection {
        &self.ends[Side::Mobile as usize]
    }

    /// Whether the mobile uploads: it has sent more than a request, and has not ended its stream.
    pub fn is_upload(&self) -> bool {
        let mobile = self.mobile();
        mobile.received() > MOST_REQUEST && !mobile.peer_closed() && mobile.outcome().is_none()
    }

    /// Bounds the window that the mobile is offered.
    pub fn bound_upload(&mut self, bytes: u64) {
        self.ends[Side::Mobile as usize].bound_receive_window(bytes);
    }

    /// A segment from `side` arrives, with its payload at `slot`.
    pub fn receive(&mut self, now: Instant, side: Side, segment: &Segment, slot: Slot, cx: &mut MiddleboxContext<'_>) {
        self.active = now;
        if side == self.client && self.held_syn.is_some() {
            return self.receive_held(now, segment, cx);
        }
        let end = &mut self.ends[side as usize];
        end.handle_segment(now, segment, cx.context());
        if let Some(part) = end.accepted_payload() {
            let payload = cx.tcp_payload(slot).part(part.skip as usize, part.length as usize);
            self.streams[side.sends() as usize].buffer.write(part.offset, payload);
        }
    }

    /// A segment from the client arrives while its SYN is held.
    fn receive_held(&mut self, now: Instant, segment: &Segment, cx: &mut MiddleboxContext<'_>) {
        let flags = segment.header.flags;
        if flags.contains(Flags::RST) {
            self.held_syn = None;
            self.abort(now, cx);
        } else if flags.contains(Flags::SYN) {
            self.held_syn = Some(*segment);
        }
    }

    /// Handles timers and time-outs that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant, config: &Config, cx: &mut MiddleboxContext<'_>) {
        for end in &mut self.ends {
            end.handle_timeout(now, cx.context());
        }
        if self.deadline(config).is_some_and(|deadline| deadline <= now) {
            self.abort(now, cx);
        }
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn next_wakeup(&self, config: &Config) -> Option<Instant> {
        let timers = self.ends.iter().filter_map(Connection::next_wakeup);
        timers.chain(self.deadline(config)).min()
    }

    /// When the connection is aborted if nothing arrives.
    fn deadline(&self, config: &Config) -> Option<Instant> {
        if self.is_finished() {
            return None;
        }
        Some(if self.was_opened() { self.active + config.idle_timeout } else { self.opened + config.open_timeout })
    }

    /// Whether both ends have delivered everything, and at most wait for late segments.
    pub fn is_finished(&self) -> bool {
        self.ends.iter().all(|end| matches!(end.state(), State::Closed | State::TimeWait))
    }

    /// Whether both ends are or were open.
    pub fn was_opened(&self) -> bool {
        // An end that has closed was open, and the other may still deliver what is stored.
        self.ends.iter().all(|end| end.state().is_synchronised() || end.outcome().is_some())
    }

    /// Whether both ends have ended.
    pub fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.outcome().is_some())
    }

    /// Passes on what has arrived or ended at one end to the other, except data towards the mobile,
    /// which waits for [`Self::grant`].
    pub fn exchange(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        self.release_held_syn(now, cx);
        for direction in Direction::BOTH {
            self.free_acknowledged(direction);
        }
        self.forward(Direction::Up, self.backlog(Direction::Up));
        for side in [Side::Server, Side::Mobile] {
            let other = side.opposite();
            if self.ends[side as usize].outcome().is_some_and(|outcome| !outcome.is_orderly()) {
                self.ends[other as usize].abort(now, cx.context());
            }
        }
        for direction in Direction::BOTH {
            self.close_if_complete(direction);
        }
    }

    /// When the server has accepted or refused, the client receives the same answer. If the server
    /// does not answer, neither does the proxy.
    fn release_held_syn(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        let Some(syn) = self.held_syn else { return };
        let server = &self.ends[self.client.opposite() as usize];
        let (accepted, outcome) = (server.state().is_synchronised(), server.outcome());
        if !accepted && outcome.is_none() {
            return;
        }
        self.held_syn = None;
        let end = &mut self.ends[self.client as usize];
        if outcome.is_some() {
            end.abort(now, cx.context());
        }
        if accepted || outcome == Some(Outcome::Refused) {
            // An aborted end answers with a reset (RFC 9293 §3.10.7.1).
            end.handle_segment(now, &syn, cx.context());
        }
    }

    /// Frees the space of what the receiver has acknowledged, which opens the window towards the
    /// sender.
    fn free_acknowledged(&mut self, direction: Direction) {
        let acknowledged = self.ends[Side::at_end_of(direction) as usize].acknowledged();
        let stream = &mut self.streams[direction as usize];
        if acknowledged > stream.acknowledged {
            let freed = acknowledged - std::mem::replace(&mut stream.acknowledged, acknowledged);
            stream.buffer.discard_below(acknowledged);
            self.ends[Side::at_start_of(direction) as usize].read(freed);
        }
    }

    /// Bytes that have arrived in order and were not forwarded.
    pub fn backlog(&self, direction: Direction) -> u64 {
        self.ends[Side::at_start_of(direction) as usize].received() - self.streams[direction as usize].forwarded
    }

    fn forward(&mut self, direction: Direction, bytes: u64) {
        let receiver = &mut self.ends[Side::at_end_of(direction) as usize];
        if bytes > 0 && receiver.outcome().is_none() {
            receiver.write(bytes);
            self.streams[direction as usize].forwarded += bytes;
        }
    }

    /// The end of a stream is passed on when all of it was forwarded.
    fn close_if_complete(&mut self, direction: Direction) {
        if self.ends[Side::at_start_of(direction) as usize].peer_closed() && self.backlog(direction) == 0 {
            self.ends[Side::at_end_of(direction) as usize].close();
        }
    }

    /// Payload bytes of the next segment towards the mobile; `None` if there are no data, or the
    /// mobile cannot take them now. With nothing outstanding a segment may exceed the mobile's
    /// window: the end then probes the window.
    pub fn next_segment(&self) -> Option<u32> {
        let mobile = self.mobile();
        let length = self.backlog(Direction::Down).min(u64::from(mobile.segment_size())) as u32;
        let fits = mobile.usable_window() >= u64::from(length) || mobile.unacknowledged() == 0;
        let is_open = mobile.state().is_synchronised() && mobile.outcome().is_none();
        (length > 0 && is_open && mobile.unsent() == 0 && fits).then_some(length)
    }

    /// Forwards `bytes` to the mobile.
    pub fn grant(&mut self, bytes: u32) {
        self.forward(Direction::Down, bytes.into());
        self.close_if_complete(Direction::Down);
    }

    /// Sends the segments that are due at both ends.
    pub fn transmit(&mut self, now: Instant, left: &mut Departures, cx: &mut MiddleboxContext<'_>) {
        for side in [Side::Server, Side::Mobile] {
            let direction = side.opposite().sends();
            while let Some(segment) = self.ends[side as usize].poll_transmit(now, cx.context()) {
                let payload = match segment.length {
                    0 => Payload::Counted,
                    length => {
                        self.streams[direction as usize].buffer.range(segment.info.offset.cast_unsigned(), length)
                    }
                };
                let new = NewSegment { flow: self.flow, segment: &segment, payload };
                if let Some(packet) = cx.create_segment(now, direction, self.user, new) {
                    left.push_back((direction, Departure { due: now, packet }));
                }
            }
        }
    }

    fn abort(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        for end in &mut self.ends {
            end.abort(now, cx.context());
        }
    }
}
