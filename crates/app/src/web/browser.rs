//! A browser: finds the objects of a page, and requests them over its connections.
//!
//! Preload scanners of browsers find references while scripts and styles still load, so references
//! do not wait for anything but the bytes of their referrer, and, if they are made by a script, for
//! its processing. Processing is one task at a time, in the order of completion.

mod streams;

use std::mem;
use std::sync::Arc;

use airpath_core::{Instant, Span};

use super::messages::Messages;
use super::page::Caching;
use super::settings::{Downward, Protocol, Request, Session, Settings, Tls, Upward, share_of};
use super::tls::{Handshake, protected};
use super::view::{LookUp, Source, View};
use crate::transport::Transport;

/// Time after which a name look-up is repeated: RES_TIMEOUT of resolv.conf(5).
const LOOK_UP_TIMEOUT: Span = Span::from_secs(5);

/// Bytes of the head of a request with HTTP/2 or HTTP/3 after the first on its connection, whose
/// fields are indexed (RFC 7541 §2.3.2, RFC 9204 §3.2), with its frame.
const INDEXED_HEAD: u64 = 60;

/// Requests without a complete response on a connection of HTTP/2 or HTTP/3: the number of streams
/// that a server allows should be no smaller (RFC 9113 §6.5.2, RFC 9114 §6.1).
const MOST_STREAMS: u32 = 100;

/// What the browser requests from its carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a query for the name of this origin.
    Resolve(u32),
    /// Open the connection with this number.
    Open(u32),
}

/// A browser in a session.
#[derive(Clone, Debug)]
pub struct Browser {
    session: Arc<Session>,
    views: Vec<View>,
    /// Objects of the current view that are found and not requested, by urgency and then in the
    /// order in which they were found.
    waiting: Vec<u32>,
    connections: Vec<Connection>,
    opened: u32,
    names: Vec<Name>,
    /// By page and object, whether the cache has it.
    cached: Vec<Vec<bool>>,
    /// By origin, whether there is a ticket of its server.
    tickets: Vec<bool>,
    next_view: Option<Instant>,
    /// Something has changed since requests were last assigned.
    changed: bool,
    found: Vec<u32>,
}

/// A name look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Unknown,
    Queried(Instant),
    Known,
}

/// A connection as the browser sees it.
#[derive(Clone, Debug)]
struct Connection {
    number: u32,
    origin: u32,
    state: State,
    handshake: Handshake,
    /// Requests that are still to be written.
    assigned: Vec<Request>,
    /// Requests without a complete response.
    outstanding: u32,
    requests: u32,
    responses: u32,
    /// Whether requests may be pipelined on it.
    pipelines: bool,
    /// Since when it has no request.
    idle: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Opening,
    /// Waits for the server's part of this round trip.
    Handshake(u8),
    Ready,
    Closed,
}

impl Connection {
    const fn is_free(&self, protocol: Protocol) -> bool {
        matches!(self.state, State::Ready)
            && match protocol {
                Protocol::Http10 => self.requests == 0,
                Protocol::Http11 => self.outstanding == 0,
                Protocol::Http2 | Protocol::Http3 => self.outstanding < MOST_STREAMS,
            }
    }

    const fn is_idle(&self) -> bool {
        matches!(self.state, State::Ready) && self.outstanding == 0
    }

    fn assign(&mut self, request: Request) {
        self.assigned.push(request);
        self.outstanding += 1;
        self.requests += 1;
    }
}

impl Browser {
    /// A browser whose first view begins at `start`.
    pub fn new(session: Arc<Session>, start: Instant) -> Self {
        Self {
            views: Vec::new(),
            waiting: Vec::new(),
            connections: Vec::new(),
            opened: 0,
            names: vec![if looks_up(&session) { Name::Unknown } else { Name::Known }; session.origins.len()],
            cached: session.pages.iter().map(|page| vec![false; page.objects.len()]).collect(),
            tickets: vec![false; session.origins.len()],
            next_view: Some(start),
            changed: false,
            found: Vec::new(),
            session,
        }
    }

    /// The views so far; all but the last are loaded.
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// The current view, to which arriving bytes belong.
    pub fn view(&mut self) -> Option<&mut View> {
        self.views.last_mut()
    }

    /// Whether all pages are loaded and all connections closed.
    pub fn is_over(&self) -> bool {
        self.is_loaded() && self.connections.is_empty()
    }

    fn is_loaded(&self) -> bool {
        self.next_view.is_none() && self.views.last().is_some_and(|view| view.loaded.is_some())
    }

    /// Number of connections so far.
    pub const fn opened(&self) -> u32 {
        self.opened
    }

    /// The number of the origin, and the handshake, of a connection that is open or being opened.
    pub fn connection(&self, number: u32) -> Option<(u32, Handshake)> {
        let found = self.connections.iter().find(|connection| connection.number == number)?;
        Some((found.origin, found.handshake))
    }

    /// When to call [`Self::poll`] next, if nothing changes before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        let keep_alive = self.session.settings.keep_alive;
        let idle = self.connections.iter().filter(|connection| connection.is_idle());
        let queried = self.names.iter().filter_map(|name| match name {
            Name::Queried(since) => Some(*since + LOOK_UP_TIMEOUT),
            Name::Unknown | Name::Known => None,
        });
        let processing = self.views.last().and_then(View::next_wakeup);
        let idle = idle.map(|connection| connection.idle + keep_alive);
        queried.chain(idle).chain(processing).chain(self.next_view).min()
    }

    /// The name of `origin` is known.
    pub fn resolved(&mut self, now: Instant, origin: u32) {
        self.names[origin as usize] = Name::Known;
        // A later answer is that to a repeated query.
        let look_ups = self.views.last_mut().map_or(&mut [][..], |view| &mut view.look_ups);
        if let Some(look_up) = look_ups.iter_mut().find(|look_up| look_up.origin == origin) {
            look_up.resolved.get_or_insert(now);
        }
        self.changed = true;
    }

    /// Returns what is to be done now. Call it until it returns `None`, then call [`Self::step`]
    /// for each connection.
    pub fn poll(&mut self, now: Instant) -> Option<Action> {
        self.begin_view(now);
        self.process(now);
        self.close_idle(now);
        let late = (0..self.names.len())
            .find(|origin| matches!(self.names[*origin], Name::Queried(since) if now >= since + LOOK_UP_TIMEOUT));
        if let Some(origin) = late {
            self.names[origin] = Name::Queried(now);
            return Some(Action::Resolve(origin as u32));
        }
        if mem::take(&mut self.changed) {
            let action = self.assign(now);
            self.changed = action.is_some();
            return action;
        }
        None
    }

    fn begin_view(&mut self, now: Instant) {
        if self.next_view.is_none_or(|next| next > now) {
            return;
        }
        self.next_view = None;
        let page = self.session.page_of(self.views.len() as u32);
        self.views.push(View::new(page, &self.session.pages[page], now));
        self.found.push(0);
        self.take_found(now);
    }

    fn process(&mut self, now: Instant) {
        let Some(view) = self.views.last_mut().filter(|view| view.loaded.is_none()) else { return };
        if view.next_wakeup().is_none_or(|end| end > now) {
            return;
        }
        view.process(now, &self.session.pages[view.page], &mut self.found);
        let loaded = view.loaded.is_some();
        self.take_found(now);
        if loaded && (self.views.len() as u32) < self.session.settings.views {
            self.next_view = Some(now + self.session.settings.reading);
        }
    }

    /// Requests the objects that were found, or takes them from the cache.
    fn take_found(&mut self, now: Instant) {
        while let Some(object) = self.found.pop() {
            let Some(view) = self.views.last_mut() else { return };
            let page = &self.session.pages[view.page];
            view.fetches[object as usize].found = Some(now);
            if self.cached[view.page][object as usize] && page.objects[object as usize].cache == Caching::Fresh {
                view.fetches[object as usize].source = Source::Cache;
                view.complete(now, page, object, &mut self.found);
            } else {
                self.wait_for(object);
            }
        }
        self.process(now);
    }

    /// An object of the current view is to be requested.
    fn wait_for(&mut self, object: u32) {
        let Some(view) = self.views.last() else { return };
        let page = &self.session.pages[view.page];
        let urgency = |object: u32| page.objects[object as usize].urgency;
        // An object is found after all that have a smaller number and come from the same
        // referrer: the number settles what is found at the same time.
        let key = |other: u32| (urgency(other), view.fetches[other as usize].found, other);
        let at = self.waiting.partition_point(|other| key(*other) < key(object));
        self.waiting.insert(at, object);
        self.changed = true;
    }

    fn close_idle(&mut self, now: Instant) {
        let over = self.is_loaded();
        let keep_alive = self.session.settings.keep_alive;
        for connection in &mut self.connections {
            if connection.is_idle() && (over || now >= connection.idle + keep_alive) {
                connection.state = State::Closed;
            }
        }
    }

    /// Assigns waiting requests to connections; returns what must be done first.
    fn assign(&mut self, now: Instant) -> Option<Action> {
        let session = Arc::clone(&self.session);
        let settings = &session.settings;
        let view = self.views.len().checked_sub(1)?;
        let page = self.views[view].page;
        // Connections that are being opened, each for one of the waiting requests.
        let mut taken: Vec<u32> = Vec::new();
        let mut at = 0;
        while at < self.waiting.len() {
            let object = self.waiting[at];
            let origin = session.origin_of(page, object);
            match self.names[origin as usize] {
                Name::Known => {}
                Name::Queried(_) => {
                    at += 1;
                    continue;
                }
                Name::Unknown => {
                    self.names[origin as usize] = Name::Queried(now);
                    self.views[view].look_ups.push(LookUp { origin, queried: now, resolved: None });
                    return Some(Action::Resolve(origin));
                }
            }
            if let Some(index) = self.connection_for(origin, &taken) {
                let cached = self.cached[page][object as usize];
                let conditional = cached && session.pages[page].objects[object as usize].cache == Caching::Revalidate;
                let (view, page) = (view as u32, page as u32);
                self.connections[index].assign(Request { view, page, object, conditional });
                self.waiting.remove(at);
                continue;
            }
            let opening = self.pool(origin).find(|connection| {
                matches!(connection.state, State::Opening | State::Handshake(_)) && !taken.contains(&connection.number)
            });
            if let Some(connection) = opening {
                // Streams share one connection.
                if !settings.protocol.has_streams() {
                    taken.push(connection.number);
                }
            } else if self.may_open(origin) {
                return Some(self.open(now, origin));
            }
            at += 1;
        }
        self.speculate(now)
    }

    /// Opens a speculative connection, if the document of the view waits for its own.
    fn speculate(&mut self, now: Instant) -> Option<Action> {
        let settings = &self.session.settings;
        let may = |view: &&View| view.fetches[0].first_byte.is_none() && view.speculative < settings.speculative;
        let origin = self.session.origin_of(self.views.last().filter(may)?.page, 0);
        let open = self.pool(origin).count() as u32;
        if open == 0 || open > settings.speculative {
            return None;
        }
        self.views.last_mut()?.speculative += 1;
        Some(self.open(now, origin))
    }

    /// The connections that can carry a request to `origin`. A proxy takes requests in clear text
    /// to all origins.
    fn pool(&self, origin: u32) -> impl Iterator<Item = &Connection> {
        let shared = self.shares_connections();
        let serves = move |connection: &&Connection| shared || connection.origin == origin;
        self.connections.iter().filter(serves).filter(|connection| connection.state != State::Closed)
    }

    fn shares_connections(&self) -> bool {
        self.session.settings.proxy && self.session.settings.tls == Tls::None
    }

    fn may_open(&self, origin: u32) -> bool {
        let settings = &self.session.settings;
        let limit = if settings.protocol.has_streams() { 1 } else { settings.connections };
        (self.pool(origin).count() as u32) < limit
    }

    /// The connection on which a request to `origin` can be sent now.
    fn connection_for(&self, origin: u32, taken: &[u32]) -> Option<usize> {
        let settings = &self.session.settings;
        let number = |connection: &Connection| {
            self.connections.iter().position(|other| other.number == connection.number).expect("it is one of them")
        };
        let free = || self.pool(origin).filter(|connection| connection.is_free(settings.protocol));
        // Streams share the connection that has some: a speculative one may be ready later.
        let shared = || free().find(|connection| connection.requests > 0);
        let streams = settings.protocol.has_streams();
        if let Some(free) = streams.then(shared).flatten().or_else(|| free().next()) {
            return Some(number(free));
        }
        let pipeline = settings.pipeline;
        // A new connection comes before pipelining.
        let opens = self.may_open(origin)
            || self
                .pool(origin)
                .any(|connection| !matches!(connection.state, State::Ready) && !taken.contains(&connection.number));
        if pipeline.depth <= 1 || settings.protocol != Protocol::Http11 || opens {
            return None;
        }
        let pipelined = self.pool(origin).filter(|connection| {
            connection.pipelines
                && connection.state == State::Ready
                && connection.responses >= pipeline.after
                && connection.outstanding < pipeline.depth
        });
        pipelined.min_by_key(|connection| connection.outstanding).map(number)
    }

    fn open(&mut self, now: Instant, origin: u32) -> Action {
        let settings = &self.session.settings;
        let number = self.opened;
        self.opened += 1;
        let pipelines = (self.pool(origin).filter(|connection| connection.pipelines).count() as u32)
            < settings.pipeline.connections;
        self.connections.push(Connection {
            number,
            origin,
            state: State::Opening,
            handshake: Handshake::of(settings, self.tickets[origin as usize]),
            assigned: Vec::new(),
            outstanding: 0,
            requests: 0,
            responses: 0,
            pipelines,
            idle: now,
        });
        Action::Open(number)
    }

    /// Acts on connection `number` as the application does now. Call it when the connection has
    /// changed, and after [`Self::poll`]. Returns whether [`Self::poll`] has something to do.
    pub fn step(
        &mut self,
        now: Instant,
        number: u32,
        requests: &mut Messages<Upward>,
        responses: &mut Messages<Downward>,
        transport: &mut impl Transport,
    ) -> bool {
        let Some(index) = self.connections.iter().position(|connection| connection.number == number) else {
            return false;
        };
        let mut acted = false;
        if self.connections[index].state == State::Opening {
            if !transport.is_established() {
                return false;
            }
            acted = true;
            self.shake(now, index, 0, requests, transport);
        }
        transport.read(transport.readable());
        let received = transport.received();
        while let Some(message) = responses.pop(received) {
            acted = true;
            match message {
                Downward::Handshake(trip) => self.shake(now, index, trip + 1, requests, transport),
                Downward::Tickets => self.tickets[self.connections[index].origin as usize] = true,
                Downward::Part { request, body, content, last, .. } => {
                    self.take_part(now, index, request, (body, content), last);
                }
            }
        }
        if let Some((&Downward::Part { request, framing, readable, body, content, .. }, arrived)) =
            responses.partial(received)
        {
            let arrived = if readable { arrived.saturating_sub(framing).min(body) } else { 0 };
            self.receive(now, request, (arrived, share_of(content, arrived, body)));
            acted |= !self.found.is_empty();
        }
        self.take_found(now);
        self.write_requests(now, index, requests, transport);
        if self.connections[index].state == State::Closed {
            transport.close();
            self.connections.remove(index);
            acted = true;
        }
        acted || self.changed
    }

    /// Begins round trip `trip` of the handshake, or is ready after the last.
    fn shake(
        &mut self,
        now: Instant,
        index: usize,
        trip: u8,
        requests: &mut Messages<Upward>,
        transport: &mut impl Transport,
    ) {
        let connection = &mut self.connections[index];
        let handshake = connection.handshake;
        let was_ready = connection.state == State::Ready;
        if trip < handshake.count {
            let (bytes, _) = handshake.round_trips[usize::from(trip)];
            transport.write(bytes);
            requests.push(bytes, Upward::Handshake(trip));
            connection.state = State::Handshake(trip);
        }
        if trip >= handshake.waits() && !was_ready {
            connection.state = State::Ready;
            connection.idle = now;
            self.changed = true;
        }
        if trip == handshake.count {
            if handshake.last > 0 {
                transport.write(handshake.last);
                requests.push(handshake.last, Upward::Finished);
            }
            // The server's part of TLS 1.2 had the ticket (RFC 5077 §3.1).
            self.tickets[connection.origin as usize] |= handshake.tickets == 0;
        }
    }

    /// `body` bytes of the body of the front part have arrived, which stand for `content` bytes.
    fn receive(&mut self, now: Instant, request: Request, (body, content): (u64, u64)) {
        let view = &mut self.views[request.view as usize];
        let page = &self.session.pages[request.page as usize];
        let before = view.fetches[request.object as usize].complete_parts;
        view.receive(now, page, request.object, (before.0 + body, before.1 + content), &mut self.found);
    }

    fn take_part(&mut self, now: Instant, index: usize, request: Request, (body, content): (u64, u64), last: bool) {
        self.receive(now, request, (body, content));
        let view = &mut self.views[request.view as usize];
        let fetch = &mut view.fetches[request.object as usize];
        fetch.complete_parts.0 += body;
        fetch.complete_parts.1 += content;
        if !last {
            return;
        }
        if request.conditional {
            fetch.source = Source::Revalidated;
        }
        let page = &self.session.pages[request.page as usize];
        view.complete(now, page, request.object, &mut self.found);
        let caches = self.session.settings.cache && page.objects[request.object as usize].cache != Caching::Never;
        self.cached[request.page as usize][request.object as usize] |= caches;
        let connection = &mut self.connections[index];
        connection.outstanding -= 1;
        connection.responses += 1;
        connection.idle = now;
        if self.session.settings.protocol == Protocol::Http10 {
            connection.state = State::Closed;
        }
        self.changed = true;
    }

    fn write_requests(
        &mut self,
        now: Instant,
        index: usize,
        requests: &mut Messages<Upward>,
        transport: &mut impl Transport,
    ) {
        let settings = &self.session.settings;
        let connection = &mut self.connections[index];
        let first = connection.requests - connection.assigned.len() as u32;
        for (nth, request) in connection.assigned.drain(..).enumerate() {
            let again = settings.protocol == Protocol::Http2 && first + nth as u32 > 0;
            let head = if again { indexed_head(settings) } else { settings.request.get() };
            let bytes = protected(settings.tls, head);
            transport.write(bytes);
            requests.push(bytes, Upward::Request(request));
            let fetch = &mut self.views[request.view as usize].fetches[request.object as usize];
            fetch.requested = Some(now);
            fetch.connection = Some(connection.number);
        }
    }
}

/// Bytes of the head of a request after the first on its connection, with its frame.
fn indexed_head(settings: &Settings) -> u64 {
    INDEXED_HEAD.min(settings.request.get())
}

/// Names are looked up by the browser, or by its proxy.
fn looks_up(session: &Session) -> bool {
    session.settings.dns && !session.settings.proxy
}
