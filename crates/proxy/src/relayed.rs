//! A connection at one of the two levels.

use airpath_core::{FlowId, Instant, Slot, UserId};
use airpath_path::{Departures, MiddleboxContext, Side};
use airpath_tcp::{Connection, Segment};

use crate::config::Config;
use crate::http::HttpRelay;
use crate::relay::{MOST_REQUEST, Relay};

/// A relayed connection.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most are relays, which need no allocation of their own")]
pub enum Relayed {
    /// Bytes are forwarded.
    Transport(Relay),
    /// HTTP messages are forwarded.
    Application(Box<HttpRelay>),
}

/// Calls the same method at each level.
macro_rules! each {
    ($relayed:expr, $relay:ident => $call:expr) => {
        match $relayed {
            Relayed::Transport($relay) => $call,
            Relayed::Application($relay) => $call,
        }
    };
}

impl Relayed {
    /// Its flow and its mobile.
    pub const fn identity(&self) -> (FlowId, UserId) {
        match self {
            Self::Transport(relay) => (relay.flow, relay.user),
            Self::Application(relay) => relay.identity(),
        }
    }

    /// Its mobile.
    pub const fn user(&self) -> UserId {
        self.identity().1
    }

    /// The end towards the mobile.
    pub const fn mobile(&self) -> &Connection {
        each!(self, relay => relay.mobile())
    }

    /// The application level, if it has one.
    pub const fn http_mut(&mut self) -> Option<&mut HttpRelay> {
        match self {
            Self::Transport(_) => None,
            Self::Application(relay) => Some(relay),
        }
    }

    /// The same, to read.
    pub const fn http(&self) -> Option<&HttpRelay> {
        match self {
            Self::Transport(_) => None,
            Self::Application(relay) => Some(relay),
        }
    }

    /// Whether the mobile uploads: it has sent more than a request, and has not ended its stream.
    pub fn is_upload(&self) -> bool {
        let mobile = self.mobile();
        mobile.received() > MOST_REQUEST && !mobile.peer_closed() && mobile.outcome().is_none()
    }

    /// Bounds the window that the mobile is offered.
    pub fn bound_upload(&mut self, bytes: u64) {
        each!(self, relay => relay.bound_upload(bytes));
    }

    /// A segment of `flow` from `side` arrives, with its payload at `slot`.
    pub fn receive(
        &mut self,
        now: Instant,
        (flow, side): (FlowId, Side),
        segment: &Segment,
        slot: Slot,
        cx: &mut MiddleboxContext<'_>,
    ) {
        match self {
            Self::Transport(relay) => relay.receive(now, side, segment, slot, cx),
            Self::Application(relay) => relay.receive(now, (flow, side), segment, slot, cx),
        }
    }

    /// The end of `flow` towards `side`.
    pub fn end_mut(&mut self, flow: FlowId, side: Side) -> Option<&mut Connection> {
        match self {
            Self::Transport(relay) => Some(&mut relay.ends[side as usize]),
            Self::Application(relay) => relay.end_mut(flow, side),
        }
    }

    /// Mean round trips to the server and to the mobile, in seconds and in the order of [`Side`];
    /// not measured at the application level.
    pub fn round_trips(&self) -> [Option<f64>; 2] {
        match self {
            Self::Transport(relay) => relay.ends.each_ref().map(|end| end.statistics().rtt_mean_s()),
            Self::Application(_) => [None; 2],
        }
    }

    /// The connection at transport level; nothing was read yet at the other.
    pub fn into_transport(self) -> Self {
        match self {
            Self::Transport(_) => self,
            Self::Application(relay) => Self::Transport(relay.into_transport()),
        }
    }

    /// Handles timers and time-outs that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant, config: &Config, cx: &mut MiddleboxContext<'_>) {
        each!(self, relay => relay.handle_timeout(now, config, cx));
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn next_wakeup(&self, config: &Config) -> Option<Instant> {
        each!(self, relay => relay.next_wakeup(config))
    }

    /// Whether all ends have delivered everything, and at most wait for late segments.
    pub fn is_finished(&self) -> bool {
        each!(self, relay => relay.is_finished())
    }

    /// Whether the mobile's end and the server's are or were open.
    pub fn was_opened(&self) -> bool {
        each!(self, relay => relay.was_opened())
    }

    /// Whether all ends have ended.
    pub fn is_over(&self) -> bool {
        each!(self, relay => relay.is_over())
    }

    /// Passes on what has arrived or ended, except data towards the mobile, which waits for
    /// [`Self::grant`].
    pub fn exchange(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        each!(self, relay => relay.exchange(now, cx));
    }

    /// Bytes that wait for the mobile.
    pub fn backlog(&self) -> u64 {
        each!(self, relay => relay.backlog())
    }

    /// Payload bytes of the next segment towards the mobile ([`crate::relay::next_segment`]).
    pub fn next_segment(&self) -> Option<u32> {
        each!(self, relay => relay.next_segment())
    }

    /// Forwards `bytes` to the mobile.
    pub fn grant(&mut self, now: Instant, bytes: u32, cx: &mut MiddleboxContext<'_>) {
        match self {
            Self::Transport(relay) => relay.grant(bytes),
            Self::Application(relay) => relay.grant(now, bytes, cx),
        }
    }

    /// Ends all its connections with resets.
    pub fn abort(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        each!(self, relay => relay.abort(now, cx));
    }

    /// Sends the segments that are due at all ends.
    pub fn transmit(&mut self, now: Instant, left: &mut Departures, cx: &mut MiddleboxContext<'_>) {
        each!(self, relay => relay.transmit(now, left, cx));
    }
}
