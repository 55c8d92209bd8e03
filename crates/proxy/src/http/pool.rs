//! Server connections that outlive the client connections that they served, for the next
//! connection of the same mobile to the same server.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airpath_core::{FlowId, Instant, Slot, Span, UserId};
use airpath_path::{Departures, MiddleboxContext};
use airpath_tcp::Segment;

use crate::http::channel::Channel;

/// An unused connection is closed after this time: most servers keep one for 5 to 75 s.
const MOST_IDLE: Span = Span::from_secs(60);

/// The unused server connections.
#[derive(Debug, Default)]
pub struct Pool {
    idle: BTreeMap<FlowId, Idle>,
    by_server: BTreeMap<(UserId, SocketAddr), Vec<FlowId>>,
}

#[derive(Debug)]
struct Idle {
    channel: Channel,
    owner: (UserId, SocketAddr),
    since: Instant,
    wakeup: Option<Instant>,
    is_aborted: bool,
}

/// The state of a connection after a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Its wake-up before and now.
    pub wakeups: (Option<Instant>, Option<Instant>),
    /// The mobile and the port of a connection that has ended, and is gone.
    pub ended: Option<(UserId, Option<u16>)>,
}

impl Pool {
    /// Keeps a connection, or closes it if there are `most` already. The caller continues with
    /// [`Self::proceed`].
    pub fn put(&mut self, now: Instant, mut channel: Channel, owner: (UserId, SocketAddr), most: usize) {
        let others = self.by_server.entry(owner).or_default();
        if others.len() >= most {
            channel.close();
        } else {
            others.push(channel.flow);
        }
        self.idle.insert(channel.flow, Idle { channel, owner, since: now, wakeup: None, is_aborted: false });
    }

    /// Takes a connection that can be used, with its wake-up.
    pub fn take(&mut self, owner: (UserId, SocketAddr)) -> Option<(Channel, Option<Instant>)> {
        let flow = *self.by_server.get(&owner)?.last()?;
        self.forget(owner, flow);
        self.idle.remove(&flow).map(|idle| (idle.channel, idle.wakeup))
    }

    /// A connection is not to be used any more.
    fn forget(&mut self, owner: (UserId, SocketAddr), flow: FlowId) {
        let Some(others) = self.by_server.get_mut(&owner) else { return };
        others.retain(|other| *other != flow);
        if others.is_empty() {
            self.by_server.remove(&owner);
        }
    }

    /// Whether it keeps a connection of a mobile.
    pub fn has_user(&self, user: UserId) -> bool {
        let first = SocketAddr::from(([0, 0, 0, 0], 0));
        self.by_server.range((user, first)..).next().is_some_and(|((next, _), _)| *next == user)
    }

    /// All its connections end with resets at their next [`Self::proceed`]. Returns their flows.
    pub fn abort_all(&mut self) -> impl Iterator<Item = FlowId> {
        self.idle.iter_mut().map(|(flow, idle)| {
            idle.is_aborted = true;
            *flow
        })
    }

    /// Whether a flow is one of its connections.
    pub fn has(&self, flow: FlowId) -> bool {
        self.idle.contains_key(&flow)
    }

    /// A segment of the server arrives.
    pub fn receive(
        &mut self,
        now: Instant,
        flow: FlowId,
        (segment, slot): (&Segment, Slot),
        cx: &mut MiddleboxContext<'_>,
    ) {
        if let Some(idle) = self.idle.get_mut(&flow) {
            idle.channel.receive(now, segment, slot, cx);
        }
    }

    /// Handles what is due, closes what cannot be used any more, and sends.
    pub fn proceed(
        &mut self,
        now: Instant,
        flow: FlowId,
        left: &mut Departures,
        cx: &mut MiddleboxContext<'_>,
    ) -> Step {
        let Some(idle) = self.idle.get_mut(&flow) else { return Step::default() };
        let Idle { channel, owner, since, wakeup, is_aborted } = idle;
        channel.connection.handle_timeout(now, cx.context());
        channel.free_acknowledged();
        let end = *since + MOST_IDLE;
        let unread = channel.unread().len();
        channel.consume(unread);
        if channel.is_writable() && (end <= now || unread > 0 || channel.connection.peer_closed()) {
            channel.close();
        }
        let (is_closing, user, owner) = (!channel.is_writable(), owner.0, *owner);
        // A server that does not end its side is not waited for longer.
        if *is_aborted || end + MOST_IDLE <= now {
            channel.connection.abort(now, cx.context());
        }
        channel.transmit(now, user, left, cx);
        let old = *wakeup;
        if channel.connection.outcome().is_some() {
            let ended = Some((user, channel.port));
            self.idle.remove(&flow);
            self.forget(owner, flow);
            return Step { wakeups: (old, None), ended };
        }
        let limit = if is_closing { end + MOST_IDLE } else { end };
        *wakeup = channel.connection.next_wakeup().into_iter().chain([limit]).min();
        let step = Step { wakeups: (old, *wakeup), ended: None };
        if is_closing {
            self.forget(owner, flow);
        }
        step
    }
}
