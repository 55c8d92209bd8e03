//! Server connections that outlive the client connections that they served, for the next
//! connection of the same mobile to the same server.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::net::SocketAddr;

use airpath_core::{FlowId, Instant, Slot, Span, UserId};
use airpath_path::{Departures, MiddleboxContext, Side};
use airpath_tcp::{Connection, Segment};

use crate::http::channel::Channel;

/// An unused connection is closed after this time: most servers keep one for 5 to 75 s.
const MOST_IDLE: Span = Span::from_secs(60);

/// The unused server connections.
#[derive(Debug, Default)]
pub struct Pool {
    idle: BTreeMap<FlowId, Idle>,
    by_server: BTreeMap<(UserId, SocketAddr), Vec<FlowId>>,
    /// Number of connections of each mobile, also of those that close.
    users: BTreeMap<UserId, usize>,
    wakeups: BTreeSet<(Instant, FlowId)>,
}

#[derive(Debug)]
struct Idle {
    channel: Channel,
    user: UserId,
    since: Instant,
    /// Its time in `wakeups`.
    wakeup: Option<Instant>,
    is_aborted: bool,
}

impl Idle {
    fn owner(&self) -> Option<(UserId, SocketAddr)> {
        self.channel.server.map(|server| (self.user, server))
    }

    fn wake_at(&mut self, time: Option<Instant>, wakeups: &mut BTreeSet<(Instant, FlowId)>) {
        let flow = self.channel.flow;
        if let Some(old) = std::mem::replace(&mut self.wakeup, time) {
            wakeups.remove(&(old, flow));
        }
        wakeups.extend(time.map(|time| (time, flow)));
    }
}

/// The mobile of a connection that is gone, and the port if the proxy has chosen it.
type Ended = (UserId, Option<u16>);

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
        self.insert(Idle { channel, user: owner.0, since: now, wakeup: None, is_aborted: false });
    }

    fn insert(&mut self, idle: Idle) {
        *self.users.entry(idle.user).or_default() += 1;
        self.idle.insert(idle.channel.flow, idle);
    }

    /// Takes a connection that can be used.
    pub fn take(&mut self, owner: (UserId, SocketAddr)) -> Option<Channel> {
        let flow = *self.by_server.get(&owner)?.last()?;
        self.remove(flow).map(|idle| idle.channel)
    }

    fn remove(&mut self, flow: FlowId) -> Option<Idle> {
        let mut idle = self.idle.remove(&flow)?;
        if let Entry::Occupied(mut count) = self.users.entry(idle.user) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.withdraw(idle.owner(), flow);
        idle.wake_at(None, &mut self.wakeups);
        Some(idle)
    }

    /// A connection is not to be used any more.
    fn withdraw(&mut self, owner: Option<(UserId, SocketAddr)>, flow: FlowId) {
        let Some(owner) = owner else { return };
        let Some(others) = self.by_server.get_mut(&owner) else { return };
        others.retain(|other| *other != flow);
        if others.is_empty() {
            self.by_server.remove(&owner);
        }
    }

    /// Whether it has a connection of a mobile, if only one that closes.
    pub fn has_user(&self, user: UserId) -> bool {
        self.users.contains_key(&user)
    }

    /// Its connections.
    pub fn connections(&self) -> impl Iterator<Item = (FlowId, UserId, &Connection)> {
        self.idle.iter().map(|(flow, idle)| (*flow, idle.user, &idle.channel.connection))
    }

    /// Resets all its connections, from `now` on.
    pub fn abort_all(&mut self, now: Instant) {
        for idle in self.idle.values_mut() {
            idle.is_aborted = true;
            idle.wake_at(Some(now), &mut self.wakeups);
        }
    }

    /// Resets a connection to a server from `now` on, until which it is one of these.
    pub fn abort(&mut self, now: Instant, (flow, user): (FlowId, UserId), connection: Connection) {
        let channel = Channel::new(flow, None, connection, Side::Server);
        let mut idle = Idle { channel, user, since: now, wakeup: None, is_aborted: true };
        idle.wake_at(Some(now), &mut self.wakeups);
        self.insert(idle);
    }

    /// Whether a flow is one of its connections.
    pub fn has(&self, flow: FlowId) -> bool {
        self.idle.contains_key(&flow)
    }

    /// One of its connections. The caller continues with [`Self::proceed`].
    pub fn connection_mut(&mut self, flow: FlowId) -> Option<&mut Connection> {
        self.idle.get_mut(&flow).map(|idle| &mut idle.channel.connection)
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

    /// When to call [`Self::proceed`] next, and for which connection.
    pub fn next_wakeup(&self) -> Option<(Instant, FlowId)> {
        self.wakeups.first().copied()
    }

    /// Resets a connection, which is then gone.
    pub fn reset(
        &mut self,
        now: Instant,
        flow: FlowId,
        left: &mut Departures,
        cx: &mut MiddleboxContext<'_>,
    ) -> Option<Ended> {
        let Idle { mut channel, user, .. } = self.remove(flow)?;
        channel.connection.abort(now, cx.context());
        channel.transmit(now, user, left, cx);
        Some((user, channel.port))
    }

    /// Handles what is due, closes what cannot be used any more, and sends. Returns a connection
    /// that has ended.
    pub fn proceed(
        &mut self,
        now: Instant,
        flow: FlowId,
        left: &mut Departures,
        cx: &mut MiddleboxContext<'_>,
    ) -> Option<Ended> {
        let idle = self.idle.get_mut(&flow)?;
        let Idle { channel, user, since, is_aborted, .. } = idle;
        let end = *since + MOST_IDLE;
        // A server that does not end its side is not waited for longer.
        if *is_aborted || end + MOST_IDLE <= now {
            return self.reset(now, flow, left, cx);
        }
        channel.connection.handle_timeout(now, cx.context());
        channel.free_acknowledged();
        let unread = channel.unread().len();
        channel.consume(unread);
        if channel.is_writable() && (end <= now || unread > 0 || channel.connection.peer_closed()) {
            channel.close();
        }
        channel.transmit(now, *user, left, cx);
        if channel.connection.outcome().is_some() {
            return self.remove(flow).map(|idle| (idle.user, idle.channel.port));
        }
        let is_closing = !channel.is_writable();
        let limit = if is_closing { end + MOST_IDLE } else { end };
        let next = channel.connection.next_wakeup().into_iter().chain([limit]).min();
        idle.wake_at(next, &mut self.wakeups);
        if is_closing {
            let owner = idle.owner();
            self.withdraw(owner, flow);
        }
        None
    }
}
