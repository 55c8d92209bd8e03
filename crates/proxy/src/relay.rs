//! A relayed connection: one TCP end towards the server, one towards the mobile, and the payload
//! between them.

use airpath_core::{Direction, FlowId, Instant, Slot, UserId};
use airpath_path::stream_buffer::LEAST_TAKEN;
use airpath_path::{Departures, MiddleboxContext, Side, StreamBuffer};
use airpath_tcp::{Connection, Outcome, Segment, State};
use airpath_wire::tcp::Flags;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::transmit::transmit;

/// A connection on which a mobile has sent more bytes is an upload: an initial window of ten
/// segments (RFC 6928). Less is a request.
pub const MOST_REQUEST: u64 = 14_600;

/// A relayed connection.
#[derive(Debug)]
pub struct Relay {
    /// Its flow.
    pub flow: FlowId,
    /// Its mobile.
    pub user: UserId,
    /// The ends towards the server and towards the mobile, in the order of [`Side`].
    pub ends: [Connection; 2],
    /// In the order of [`Direction`].
    pub streams: [Stream; 2],
    /// The side that opened the connection.
    pub client: Side,
    pub held_syn: HeldSyn,
    pub opened: Instant,
    /// When the last segment arrived.
    pub active: Instant,
}

/// The SYN of a client that waits for the answer of the server.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct HeldSyn(Option<Segment>);

/// One direction of a relayed connection.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Stream {
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
        let held_syn = HeldSyn(defers.then_some(syn));
        Self { flow, user, ends, streams: Default::default(), client, held_syn, opened: now, active: now }
    }

    /// The end towards the mobile.
    pub const fn mobile(&self) -> &Connection {
        &self.ends[Side::Mobile as usize]
    }

    /// Bounds the window that the mobile is offered.
    pub fn bound_upload(&mut self, bytes: u64) {
        self.ends[Side::Mobile as usize].bound_receive_window(bytes);
    }

    /// A segment from `side` arrives, with its payload at `slot`.
    pub fn receive(&mut self, now: Instant, side: Side, segment: &Segment, slot: Slot, cx: &mut MiddleboxContext<'_>) {
        self.active = now;
        if side == self.client && self.held_syn.is_held() {
            if self.held_syn.receive(segment) {
                self.abort(now, cx);
            }
            return;
        }
        // A segment of the other end is in at most two chunks of the buffer.
        let most_segment = self.ends[side.opposite() as usize].segment_size();
        let end = &mut self.ends[side as usize];
        end.handle_segment(now, segment, cx.context());
        if let Some(part) = end.accepted_payload() {
            let buffer = &mut self.streams[side.sends() as usize].buffer;
            let (skip, length) = (part.skip as usize, part.length as usize);
            if most_segment <= LEAST_TAKEN as u32
                && buffer.takes(part.offset, part.length)
                && let Some((memory, payload)) = cx.take_tcp_payload(slot)
            {
                let start = payload.start + skip;
                buffer.take(memory, start..start + length);
            } else {
                buffer.write(part.offset, cx.tcp_payload(slot).part(skip, length));
            }
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

    fn deadline(&self, config: &Config) -> Option<Instant> {
        deadline(self.ends.iter(), (self.opened, self.active), config)
    }

    /// Whether both ends have delivered everything, and at most wait for late segments.
    pub fn is_finished(&self) -> bool {
        are_finished(self.ends.iter())
    }

    /// Whether both ends are or were open.
    pub fn was_opened(&self) -> bool {
        were_opened(self.ends.iter())
    }

    /// Whether both ends have ended.
    pub fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.outcome().is_some())
    }

    /// Passes on what has arrived or ended at one end to the other, except data towards the mobile,
    /// which waits for [`Self::grant`].
    pub fn exchange(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        // A restored connection that is reset has no streams (`proxy/saved`).
        if self.is_over() {
            return;
        }
        let [first, second] = &mut self.ends;
        let (client, server) = if self.client == Side::Server { (first, second) } else { (second, first) };
        self.held_syn.release(now, client, server, cx);
        for direction in Direction::BOTH {
            self.free_acknowledged(direction, cx);
        }
        self.forward(Direction::Up, self.unforwarded(Direction::Up));
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

    /// Frees the space of what the receiver has acknowledged, which opens the window towards the
    /// sender.
    fn free_acknowledged(&mut self, direction: Direction, cx: &mut MiddleboxContext<'_>) {
        let acknowledged = self.ends[Side::at_end_of(direction) as usize].acknowledged();
        let stream = &mut self.streams[direction as usize];
        if acknowledged > stream.acknowledged {
            let freed = acknowledged - std::mem::replace(&mut stream.acknowledged, acknowledged);
            stream.buffer.discard_below(acknowledged, |memory| cx.give_back(memory));
            self.ends[Side::at_start_of(direction) as usize].read(freed);
        }
    }

    /// Bytes for the mobile that have arrived in order and were not forwarded.
    pub fn backlog(&self) -> u64 {
        self.unforwarded(Direction::Down)
    }

    fn unforwarded(&self, direction: Direction) -> u64 {
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
        if self.ends[Side::at_start_of(direction) as usize].peer_closed() && self.unforwarded(direction) == 0 {
            self.ends[Side::at_end_of(direction) as usize].close();
        }
    }

    pub fn next_segment(&self) -> Option<u32> {
        next_segment(self.mobile(), self.backlog())
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
            let (end, stream) = (&mut self.ends[side as usize], &self.streams[direction as usize].buffer);
            transmit(now, end, stream, (self.flow, self.user, direction), left, cx);
        }
    }

    /// Ends both connections with a reset.
    pub fn abort(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        for end in &mut self.ends {
            end.abort(now, cx.context());
        }
    }
}

impl HeldSyn {
    pub const fn is_held(&self) -> bool {
        self.0.is_some()
    }

    /// A segment from the client arrives while its SYN is held. Returns whether the client has
    /// given up.
    pub fn receive(&mut self, segment: &Segment) -> bool {
        let flags = segment.header.flags;
        if flags.contains(Flags::RST) {
            self.0 = None;
            return true;
        }
        if flags.contains(Flags::SYN) {
            self.0 = Some(*segment);
        }
        false
    }

    /// When the server has accepted or refused, the client receives the same answer. If the server
    /// does not answer, neither does the proxy.
    pub fn release(
        &mut self,
        now: Instant,
        client: &mut Connection,
        server: &Connection,
        cx: &mut MiddleboxContext<'_>,
    ) {
        let Some(syn) = self.0 else { return };
        let (accepted, outcome) = (server.state().is_synchronised(), server.outcome());
        if !accepted && outcome.is_none() {
            return;
        }
        self.0 = None;
        if outcome.is_some() {
            client.abort(now, cx.context());
        }
        if accepted || outcome == Some(Outcome::Refused) {
            // An aborted end answers with a reset (RFC 9293 §3.10.7.1).
            client.handle_segment(now, &syn, cx.context());
        }
    }
}

/// Whether all these ends have delivered everything, and at most wait for late segments.
pub fn are_finished<'a>(mut ends: impl Iterator<Item = &'a Connection>) -> bool {
    ends.all(|end| matches!(end.state(), State::Closed | State::TimeWait))
}

/// Whether all these ends are or were open. An end that has closed was open, and the other may
/// still deliver what is stored.
pub fn were_opened<'a>(mut ends: impl Iterator<Item = &'a Connection>) -> bool {
    ends.all(|end| end.state().is_synchronised() || end.outcome().is_some())
}

/// When a connection with these ends, which was opened and had its last segment at these times, is
/// aborted if nothing arrives.
pub fn deadline<'a>(
    ends: impl Iterator<Item = &'a Connection> + Clone,
    (opened, active): (Instant, Instant),
    config: &Config,
) -> Option<Instant> {
    if are_finished(ends.clone()) {
        return None;
    }
    let is_open = were_opened(ends);
    Some(if is_open { active + config.idle_timeout } else { opened + config.open_timeout })
}

/// Payload bytes of the next segment towards the mobile, for which `backlog` bytes wait; `None` if
/// there are no data, or the mobile cannot take them now. With nothing outstanding a segment may
/// exceed the mobile's window: the end then probes the window.
pub fn next_segment(mobile: &Connection, backlog: u64) -> Option<u32> {
    let length = backlog.min(u64::from(mobile.segment_size())) as u32;
    let fits = mobile.usable_window() >= u64::from(length) || mobile.unacknowledged() == 0;
    let is_open = mobile.state().is_synchronised() && mobile.outcome().is_none();
    (length > 0 && is_open && mobile.unsent() == 0 && fits).then_some(length)
}
