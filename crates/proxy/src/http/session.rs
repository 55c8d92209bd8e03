//! The requests of one client connection: which server connection fetches each, and in which order
//! the responses leave.
//!
//! A session has no connections, only the bytes that they carry. Its owner passes in what arrives
//! ([`Session::read_client`], [`Session::read_server`]) and takes out what is to be sent
//! ([`Session::take_request_bytes`], [`Session::take_response_bytes`]).
//!
//! Safe requests (RFC 9110 §9.2.1) are fetched at the same time, each over a server connection of
//! its own. Every other request waits until all before it are answered, and all after it wait for
//! its response. Responses leave in the order of the requests. Every byte of a request and of a
//! response is passed on as it came.
//!
//! What is not HTTP becomes a *tunnel*: from there on, all bytes of both sides are passed on
//! between the client and one server.
//!
//! The client of an *explicit proxy* names the server in each request. A server connection then has
//! an origin, and idle ones make room for those of other origins. Heads are rewritten, and what
//! cannot be forwarded is answered with an error.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroU8;

use airpath_core::Instant;

use crate::http::body::{Body, Framing};
use crate::http::cache::SharedCache;
use crate::http::compression::Coding;
use crate::http::config::Config;
use crate::http::dictionary::Dictionaries;
use crate::http::exchange::{End, Exchange};
use crate::http::message::{Method, RequestHead, ResponseHead, binds_connection};
use crate::http::page::Page;
use crate::http::prefetch::{self, Prefetcher};
use crate::http::recode::Recoding;
use crate::http::refusal::Refusal;
use crate::http::reuse::CacheOfServer;
use crate::http::server::{Server, ServerState, take};
use crate::http::statistics::{Bypass, Statistics};
use crate::http::target::{ExplicitProxy, Origin};

/// Requests of a client that are parsed before the first is answered, if they are not fetched at
/// the same time.
const SERIAL_DEPTH: usize = 16;

/// Most bytes of a head.
const MOST_HEAD: usize = 64 << 10;

/// The first byte of a TLS record with a handshake (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 0x16;

/// The requests of a client connection.
#[derive(Debug)]
pub struct Session {
    exchanges: VecDeque<Exchange>,
    /// Number of the first exchange.
    first: u64,
    servers: Vec<Server>,
    /// Server connections for requests of the client; those after them prefetch.
    for_client: usize,
    /// Most server connections for requests of the client, and most exchanges.
    most_servers: usize,
    depth: usize,
    /// Most bytes of a response that wait for the client, and of a head.
    buffer: usize,
    most_head: usize,
    compresses: bool,
    image_quality: Option<NonZeroU8>,
    cache: Option<CacheOfServer>,
    dictionaries: Option<Dictionaries>,
    prefetcher: Option<Prefetcher>,
    /// When the last bytes were read.
    now: Instant,
    /// If the client has named it as its proxy.
    explicit: Option<ExplicitProxy>,
    /// The server of the tunnel.
    tunnel: Option<usize>,
    /// Whether anything was read from the client.
    has_begun: bool,
    client_ended: bool,
    /// How the first server connection has ended, if it has.
    server_end: End,
    end: Option<End>,
    /// Its counters.
    pub statistics: Statistics,
}

impl Session {
    /// A session with one server connection, number 0, which exists already, or with a pool is
    /// wanted. `buffer` is the bytes of a response that may wait for the client.
    pub fn new(config: &Config, buffer: usize) -> Self {
        let pipelining = config.pipelining.get() as usize;
        let first = if config.server_pool > 0 { ServerState::Wanted } else { ServerState::Open };
        let mut servers = vec![Server::new(first)];
        let prefetcher = (config.prefetch > 0).then(|| Prefetcher::new(config.prefetch));
        let for_prefetching = if prefetcher.is_some() { prefetch::SERVERS } else { 0 };
        servers.resize_with(pipelining + for_prefetching, || Server::new(ServerState::Unused));
        Self {
            exchanges: VecDeque::new(),
            first: 0,
            servers,
            for_client: pipelining,
            most_servers: pipelining,
            depth: if pipelining > 1 { pipelining } else { SERIAL_DEPTH },
            buffer,
            // A head that is not complete must not close the window for the rest of it.
            most_head: (buffer / 2).min(MOST_HEAD),
            compresses: config.compression,
            image_quality: config.image_quality,
            cache: None,
            dictionaries: None,
            prefetcher,
            now: Instant::ZERO,
            explicit: None,
            tunnel: None,
            has_begun: false,
            client_ended: false,
            server_end: End::Close,
            end: None,
            statistics: Statistics::default(),
        }
    }

    /// The session with a cache, in which it finds the responses of `server`.
    #[must_use]
    pub fn with_cache(self, cache: SharedCache, server: Option<SocketAddr>) -> Self {
        Self { cache: Some(CacheOfServer { cache, server }), ..self }
    }

    /// The session with dictionaries.
    #[must_use]
    pub fn with_dictionaries(self, dictionaries: Dictionaries) -> Self {
        Self { dictionaries: Some(dictionaries), ..self }
    }

    /// The session of an explicit proxy. It wants server connections for requests only.
    #[must_use]
    pub fn with_explicit(mut self, proxy: ExplicitProxy) -> Self {
        self.servers[0].state = ServerState::Unused;
        Self { explicit: Some(proxy), ..self }
    }

    /// Reads bytes of the client's stream, which follow those read before. Returns how many were
    /// used: the others are passed in again, with those that arrive later.
    pub fn read_client(&mut self, now: Instant, bytes: &[u8]) -> usize {
        self.now = now;
        let mut used = 0;
        while used < bytes.len() && (self.end.is_none() || self.tunnel.is_some()) {
            let count = self.read_request(now, &bytes[used..]);
            if count == 0 {
                break;
            }
            used += count;
        }
        self.settle();
        used
    }

    fn read_request(&mut self, now: Instant, bytes: &[u8]) -> usize {
        if let Some(server) = self.tunnel {
            return self.servers[server].send(bytes);
        }
        if let Some(last) = self.exchanges.back_mut() {
            if last.is_complete && last.end.is_some() {
                return 0;
            }
            if !last.body.is_complete() {
                let Some(server) = last.server else { return 0 };
                let room = self.servers[server].room().min(bytes.len());
                let Ok(count) = last.body.advance(&bytes[..room], |_| {}) else {
                    if self.explicit.is_some() {
                        self.servers[server].state = ServerState::Ended;
                        if last.has_response {
                            last.cut_content(&[]);
                            self.servers[server].assigned.clear();
                            self.cut_off(self.exchanges.len() - 1, End::Abort);
                        } else {
                            self.refuse_first(server, Refusal::Malformed);
                        }
                        return 0;
                    }
                    if last.encoder.is_some() {
                        // What follows cannot be appended to compressed content.
                        self.statistics.truncated += 1;
                        self.servers[server].state = ServerState::Ended;
                        self.servers[server].assigned.clear();
                        self.cut_off(self.exchanges.len() - 1, End::Abort);
                        return 0;
                    }
                    // Its head has been sent: what follows is passed on to the same server.
                    self.begin_tunnel(server, Bypass::MalformedRequest);
                    return self.servers[server].send(bytes);
                };
                return self.servers[server].send(&bytes[..count]);
            }
            // After the last request of a connection, and until it is known what the connection is
            // used for, nothing is read.
            if last.is_barrier && !last.is_complete || last.end.is_some() {
                return 0;
            }
        }
        if self.exchanges.len() >= self.depth {
            return 0;
        }
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        match RequestHead::parse(bytes, self.most_head) {
            Ok(None) => 0,
            Ok(Some(head)) => {
                self.statistics.requests += 1;
                let request = &bytes[..head.length];
                let target = self.explicit.as_ref().map(|proxy| proxy.forward(&head, request)).transpose();
                let (origin, request, refusal) = match target {
                    Ok(None) => (None, request.to_vec(), None),
                    Ok(Some((origin, request))) => (Some(origin), request, None),
                    Err(refusal) => (None, Vec::new(), Some(refusal)),
                };
                let mut exchange = Exchange::new(head.method, request, head.framing);
                exchange.origin = origin;
                exchange.is_barrier |= head.upgrades || !exchange.body.is_complete();
                // A proxy keeps no connection of HTTP/1.0 (RFC 9112 §9.3).
                let is_1_0 = self.explicit.is_some()
                    && exchange
                        .head
                        .split(|byte| *byte == b'\r')
                        .next()
                        .is_some_and(|start| start.ends_with(b" HTTP/1.0"));
                exchange.end = (head.closes || is_1_0).then_some(End::Close);
                if let Some(refusal) = refusal {
                    self.exchanges.push_back(exchange);
                    self.refuse(self.exchanges.len() - 1, refusal);
                    return head.length;
                }
                if self.compresses {
                    exchange.coding = Coding::of_request(&exchange.head);
                }
                exchange.recoding =
                    self.image_quality.and_then(|quality| Recoding::of_request(&exchange.head, quality));
                if let Some(dictionaries) = &self.dictionaries {
                    exchange.dictionary = dictionaries.of_request(&exchange.head);
                    exchange.learning = dictionaries.learn(&exchange.head);
                }
                if let Some(cache) = &self.cache {
                    let most = self.prefetcher.as_ref().map(|prefetcher| prefetcher.most);
                    exchange.page = most.and_then(|most| Page::of_request(&exchange.head, most, &cache.cache));
                    cache.look_up(now, &mut exchange, &mut self.statistics);
                }
                self.exchanges.push_back(exchange);
                head.length
            }
            Err(_) if self.explicit.is_some() => {
                self.exchanges.push_back(Exchange::new(Method::Other, Vec::new(), Framing::UntilClose));
                self.refuse(self.exchanges.len() - 1, Refusal::Malformed);
                bytes.len()
            }
            Err(_) => {
                let reason = match (is_first, bytes[0]) {
                    (true, TLS_HANDSHAKE) => Bypass::Tls,
                    (true, _) => Bypass::NotHttp,
                    (false, _) => Bypass::MalformedRequest,
                };
                self.exchanges.push_back(Exchange::tunnel(reason));
                self.dispatch();
                self.tunnel.map_or(0, |server| self.servers[server].send(bytes))
            }
        }
    }

    /// The client's stream has ended, and all of it that can be used was read; `unread` bytes are
    /// left. May be repeated, with fewer.
    pub fn client_ended(&mut self, unread: usize) {
        self.client_ended = true;
        if self.tunnel.is_some() || self.end.is_some() {
            return;
        }
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        match self.exchanges.back() {
            // The server decides on a stream without a request, or with a part of one.
            None if self.explicit.is_none() && (is_first || unread > 0) => {
                let reason = if is_first { Bypass::NotHttp } else { Bypass::MalformedRequest };
                self.exchanges.push_back(Exchange::tunnel(reason));
            }
            // A request that is cut off must not end in order.
            Some(last) if !last.is_complete && !last.body.is_complete() && unread == 0 => {
                self.end = Some(End::Abort);
            }
            _ => {}
        }
        self.settle();
    }

    /// Whether the stream to this server ends after its outgoing bytes.
    pub fn ends_stream(&self, server: usize) -> bool {
        self.client_ended && self.tunnel == Some(server)
    }

    /// Assigns requests to servers and sends them.
    fn dispatch(&mut self) {
        let mut all_complete = true;
        for index in 0..self.exchanges.len() {
            let exchange = &self.exchanges[index];
            let is_waiting = exchange.server.is_none() && !exchange.is_served() && !exchange.is_complete;
            if is_waiting && self.is_prefetching(exchange) {
                // Its response arrives already.
            } else if is_waiting && self.end.is_none() {
                if exchange.is_barrier && !all_complete {
                    return;
                }
                let is_safe = !exchange.is_barrier;
                let origin = exchange.origin.clone();
                let Some(server) = self.choose(is_safe, &origin) else {
                    let has_none =
                        self.explicit.is_none() && !self.servers[..self.for_client].iter().any(Server::is_usable);
                    if all_complete && has_none {
                        self.give_up(index);
                        self.settle();
                    }
                    return;
                };
                if origin.is_some() && self.exchanges[index].method == Method::Connect {
                    // A tunnel has a connection of its own.
                    self.servers[server] = Server::replacement();
                }
                self.assign(index, server, !all_complete);
            }
            all_complete &= self.exchanges[index].is_complete;
        }
    }

    /// The server connection for the next request. One that is open is preferred.
    fn choose(&mut self, is_safe: bool, origin: &Option<Origin>) -> Option<usize> {
        // What cannot be repeated needs a connection that the server has not closed meanwhile.
        let is_own = |server: &Server| server.origin == *origin;
        let is_replaced = |server: &Server| server.is_untried() && server.is_idle() && is_own(server);
        let untried = self.servers[..self.for_client].iter().position(is_replaced);
        if let Some(number) = untried.filter(|_| !is_safe) {
            self.servers[number] = Server { origin: origin.clone(), ..Server::replacement() };
            return Some(number);
        }
        let is_used = |server: &Server| server.state != ServerState::Unused;
        if self.most_servers == 1 && is_used(&self.servers[0]) && is_own(&self.servers[0]) {
            return self.servers[0].is_usable().then_some(0);
        }
        let servers = &self.servers[..self.most_servers];
        let idle = |state| {
            let fits = |server: &Server| server.state == state && server.assigned.is_empty();
            servers.iter().position(|server| fits(server) && (is_own(server) || state == ServerState::Unused))
        };
        let own = idle(ServerState::Open).or_else(|| idle(ServerState::Wanted));
        let chosen = own.or_else(|| idle(ServerState::Unused));
        let other = servers.iter().position(|server| server.is_idle() && !is_own(server));
        if let Some(number) = other.filter(|_| chosen.is_none()) {
            // One of another origin makes room.
            self.servers[number] = Server::new(ServerState::Wanted);
            return Some(number);
        }
        chosen
    }

    fn assign(&mut self, index: usize, to: usize, is_parallel: bool) {
        let exchange = &mut self.exchanges[index];
        let server = &mut self.servers[to];
        self.statistics.parallel_requests += u64::from(is_parallel);
        exchange.server = Some(to);
        server.outgoing.extend(&exchange.head);
        server.is_bound |= binds_connection(&exchange.head);
        server.origin.clone_from(&exchange.origin);
        if server.state == ServerState::Unused {
            server.state = ServerState::Wanted;
        }
        server.assigned.push_back(self.first + index as u64);
        if exchange.bypass.is_some() {
            self.tunnel = Some(to);
            server.body = Some(Body::new(Framing::UntilClose));
        }
    }

    /// There is no server for the request at `index`: the client's stream ends as the server's.
    fn give_up(&mut self, index: usize) {
        self.exchanges.truncate(index + 1);
        let exchange = &mut self.exchanges[index];
        (exchange.is_complete, exchange.end) = (true, Some(self.server_end));
    }

    /// The server connection that the owner is to open, if there is one.
    pub fn wanted_server(&self) -> Option<usize> {
        self.servers.iter().position(|server| server.state == ServerState::Wanted)
    }

    /// Whether a server connection is to be opened, and what has its number not to be used.
    pub fn is_wanted(&self, server: usize) -> bool {
        let wanted = [ServerState::Wanted, ServerState::Resolving];
        self.servers.get(server).is_some_and(|server| wanted.contains(&server.state))
    }

    /// The server that a connection is to lead to, if the client has named it.
    pub fn origin(&self, server: usize) -> Option<&Origin> {
        self.servers[server].origin.as_ref()
    }

    /// The owner queries the address of a server connection that is wanted.
    pub fn set_resolving(&mut self, server: usize) {
        self.servers[server].state = ServerState::Resolving;
    }

    /// Server connections that it may have at a time.
    pub const fn servers_count(&self) -> usize {
        self.servers.len()
    }

    /// The numbers of server connections whose address the owner queries.
    pub fn resolving(&self) -> Vec<usize> {
        let servers = self.servers.iter().enumerate();
        servers.filter(|(_, server)| server.state == ServerState::Resolving).map(|(number, _)| number).collect()
    }

    /// A server connection is wanted again: its address is known, or another is to be tried.
    pub fn set_wanted(&mut self, server: usize) {
        self.servers[server].state = ServerState::Wanted;
    }

    /// The connection to the server is open.
    pub fn connected(&mut self, server: usize) {
        let is_new = !std::mem::replace(&mut self.servers[server].is_connected, true);
        let Some(index) = self.front(server).filter(|_| is_new && self.explicit.is_some()) else { return };
        let exchange = &mut self.exchanges[index];
        if exchange.method == Method::Connect && !exchange.has_response {
            self.statistics.tunnels += 1;
            exchange.append_head(b"HTTP/1.1 200 OK\r\n\r\n", &mut self.statistics);
            self.begin_tunnel(server, Bypass::Connect);
        }
    }

    /// Whether the connection to the server is or was open.
    pub fn is_connected(&self, server: usize) -> bool {
        self.servers[server].is_connected
    }

    /// A server connection of an explicit proxy cannot be had.
    pub fn fail(&mut self, server: usize, refusal: Refusal) {
        self.servers[server].state = ServerState::Ended;
        self.refuse_first(server, refusal);
        self.settle();
    }

    /// The first request of a server connection is answered with an error, the others need another
    /// connection.
    fn refuse_first(&mut self, server: usize, refusal: Refusal) {
        let index = self.front(server);
        self.servers[server].assigned.pop_front();
        self.reassign(server);
        index.into_iter().for_each(|index| self.refuse(index, refusal));
    }

    /// The request at `index` is answered with an error.
    fn refuse(&mut self, index: usize, refusal: Refusal) {
        self.statistics.refused_requests += 1;
        let exchange = &mut self.exchanges[index];
        // Where the next request begins is not known.
        if !exchange.body.is_complete() {
            exchange.end = Some(End::Close);
        }
        let closes = exchange.end.is_some();
        exchange.server = None;
        exchange.answer(&refusal.response(closes));
        if closes {
            self.forget_after(index);
        }
    }

    /// Whether a server connection that is wanted may be one that was open before.
    pub fn may_reuse(&self, server: usize) -> bool {
        !self.servers[server].needs_new
    }

    /// A server connection that was wanted is one that was open before.
    pub fn reuse_server(&mut self, server: usize) {
        self.statistics.reused_servers += 1;
        self.servers[server].is_reused = true;
        self.set_server(server, true);
    }

    /// Whether another client connection may use a server connection after the end of this one.
    pub fn may_keep(&self, server: usize) -> bool {
        let is_tunnel = self.tunnel == Some(server);
        self.servers.get(server).is_some_and(|server| !is_tunnel && server.is_idle() && !server.is_bound)
    }

    /// A server connection that was wanted exists now, or cannot be had.
    pub fn set_server(&mut self, server: usize, exists: bool) {
        self.servers[server].state = if exists { ServerState::Open } else { ServerState::Ended };
        if !exists {
            self.reassign(server);
            self.settle();
        }
    }

    /// An ended server connection is gone: another may take its number.
    pub fn release_server(&mut self, server: usize) {
        self.end_prefetch(server, false);
        self.servers[server] = Server::new(ServerState::Unused);
        self.settle();
    }

    /// Whether the session does not use a server connection any more.
    pub fn has_abandoned(&self, server: usize) -> bool {
        self.servers[server].state == ServerState::Ended
    }

    /// Takes at most `most` bytes that are to be sent to a server.
    pub fn take_request_bytes(&mut self, server: usize, most: usize, mut sink: impl FnMut(&[u8])) -> usize {
        take(&mut self.servers[server].outgoing, most, &mut sink)
    }

    /// Reads bytes of a server's stream, as [`Self::read_client`] does. Nothing is used while
    /// enough waits for the client.
    pub fn read_server(&mut self, now: Instant, server: usize, bytes: &[u8]) -> usize {
        self.now = now;
        let mut used = 0;
        while used < bytes.len() && self.servers[server].state == ServerState::Open {
            let count = self.read_response(now, server, &bytes[used..]);
            if count == 0 {
                break;
            }
            used += count;
        }
        self.settle();
        used
    }

    fn read_response(&mut self, now: Instant, from: usize, bytes: &[u8]) -> usize {
        if self.servers[from].is_prefetching {
            return self.read_prefetched(now, from, bytes);
        }
        let Some(index) = self.front(from) else { return self.read_unsolicited(now, from, bytes) };
        let exchange = &mut self.exchanges[index];
        let room = self.buffer.saturating_sub(exchange.response.len());
        if room == 0 {
            return 0;
        }
        let server = &mut self.servers[from];
        if let Some(body) = &mut server.body {
            let bytes = &bytes[..room.min(bytes.len())];
            let Ok(count) = exchange.append_content(body, bytes, &mut self.statistics) else {
                self.take_unframed(from);
                return self.read_response(now, from, bytes);
            };
            if body.is_complete() {
                self.complete(from);
            }
            return count;
        }
        match ResponseHead::parse(bytes, exchange.method, self.most_head) {
            Ok(None) => 0,
            // An explicit proxy forwards no `Upgrade`, and answers `CONNECT` itself.
            Ok(Some(head)) if self.explicit.is_none() || !head.begins_tunnel(exchange.method) => {
                server.has_answered = true;
                let origin = &bytes[..head.length];
                server.is_bound |= binds_connection(origin);
                let is_final = !head.is_interim() && !head.begins_tunnel(exchange.method);
                let is_validation = is_final
                    && self
                        .cache
                        .as_ref()
                        .is_some_and(|cache| cache.on_response(now, exchange, (&head, origin), &mut self.statistics));
                let until_close = head.framing == Framing::UntilClose;
                if !is_validation {
                    let closes = until_close || exchange.end.is_some();
                    let answer = self.explicit.as_ref().map(|proxy| proxy.answer(origin, is_final && closes));
                    exchange.append_head(answer.as_deref().unwrap_or(origin), &mut self.statistics);
                }
                if head.begins_tunnel(exchange.method) {
                    self.begin_tunnel(from, Bypass::Upgrade);
                } else if !head.is_interim() {
                    let body = Body::new(head.framing);
                    server.body = Some(body);
                    // An explicit proxy keeps the client's connection.
                    let is_kept = self.explicit.is_some() && !until_close;
                    server.closes = head.closes;
                    if head.closes && !is_kept {
                        exchange.end.get_or_insert(End::Close);
                        self.forget_after(index);
                    }
                    if body.is_complete() {
                        self.complete(from);
                    }
                }
                head.length
            }
            Ok(Some(_)) | Err(_) => {
                self.take_unframed(from);
                self.read_response(now, from, bytes)
            }
        }
    }

    /// A server sends although no request waits for it. If nothing else is under way, the client
    /// receives it, as without a proxy: the protocol may not be HTTP, or it is a 408.
    fn read_unsolicited(&mut self, now: Instant, from: usize, bytes: &[u8]) -> usize {
        let nothing_waits = self.exchanges.iter().all(|exchange| exchange.is_complete && exchange.end.is_none());
        if from == 0 && nothing_waits && self.end.is_none() && self.explicit.is_none() {
            self.has_begun = true;
            self.exchanges.push_back(Exchange::tunnel(Bypass::Unsolicited));
            self.assign(self.exchanges.len() - 1, from, false);
            return self.read_response(now, from, bytes);
        }
        self.statistics.discarded_bytes += bytes.len() as u64;
        self.servers[from].state = ServerState::Ended;
        bytes.len()
    }

    /// The index of the exchange whose response a server sends.
    fn front(&self, server: usize) -> Option<usize> {
        self.servers[server].assigned.front().map(|number| (number - self.first) as usize)
    }

    /// The end of a response cannot be found: all that the server sends belongs to it.
    fn take_unframed(&mut self, from: usize) {
        let Some(index) = self.front(from) else { return };
        self.exchanges[index].release_content();
        if self.exchanges[index].encoder.take().is_some() {
            // What follows cannot be appended to compressed content.
            self.statistics.truncated += 1;
            self.servers[from].state = ServerState::Ended;
            self.servers[from].assigned.clear();
            return self.cut_off(index, End::Abort);
        }
        if self.explicit.is_some() {
            // The client's next requests may be for other servers: this one must not receive them.
            self.statistics.truncated += 1;
            self.servers[from].state = ServerState::Ended;
            if !self.exchanges[index].has_response {
                return self.refuse_first(from, Refusal::MalformedResponse);
            }
            self.servers[from].assigned.clear();
            return self.cut_off(index, End::Abort);
        }
        if self.exchanges.len() == 1 {
            return self.begin_tunnel(from, Bypass::MalformedResponse);
        }
        self.servers[from].body = Some(Body::new(Framing::UntilClose));
        let exchange = &mut self.exchanges[index];
        (exchange.has_response, exchange.bypass) = (true, Some(Bypass::MalformedResponse));
        exchange.end.get_or_insert(End::Close);
        self.forget_after(index);
    }

    /// The exchange at `index` is the last, and its response is not complete.
    fn cut_off(&mut self, index: usize, end: End) {
        let exchange = &mut self.exchanges[index];
        (exchange.is_complete, exchange.end) = (true, Some(end));
        self.forget_after(index);
    }

    /// The only exchange becomes a tunnel.
    fn begin_tunnel(&mut self, server: usize, reason: Bypass) {
        self.tunnel = Some(server);
        self.servers[server].body = Some(Body::new(Framing::UntilClose));
        if let Some(exchange) = self.exchanges.back_mut() {
            (exchange.has_response, exchange.bypass) = (true, Some(reason));
            exchange.release_content();
            // The tunnel ends when the server ends it.
            (exchange.body, exchange.end) = (Body::new(Framing::UntilClose), None);
        }
    }

    /// The response of the first exchange assigned to a server is complete.
    fn complete(&mut self, from: usize) {
        let Some(index) = self.front(from) else { return };
        let server = &mut self.servers[from];
        server.body = None;
        server.assigned.pop_front();
        let exchange = &mut self.exchanges[index];
        if !exchange.is_served() {
            exchange.is_complete = true;
            exchange.finish_content(&mut self.statistics);
        }
        if !exchange.body.is_complete() {
            // It was answered early; where the request ends is not followed any more.
            exchange.end.get_or_insert(End::Close);
        }
        let is_last = exchange.end.is_some();
        if is_last || server.closes {
            server.state = ServerState::Ended;
        }
        if is_last {
            self.forget_after(index);
        } else if server.closes {
            self.reassign(from);
        }
    }

    /// Nothing follows the exchange at `index`.
    fn forget_after(&mut self, index: usize) {
        for exchange in self.exchanges.drain(index + 1..) {
            if let Some(server) = exchange.server.filter(|_| !exchange.is_complete) {
                self.servers[server].state = ServerState::Ended;
                self.servers[server].assigned.clear();
            }
        }
    }

    /// A server's stream has ended, in order or not, and all of it that can be used was read. May
    /// be repeated, with fewer `unread` bytes.
    pub fn server_ended(&mut self, server: usize, in_order: bool, unread: &[u8]) {
        if self.servers[server].state == ServerState::Ended {
            return;
        }
        if self.servers[server].is_prefetching {
            self.servers[server].state = ServerState::Ended;
            self.end_prefetch(server, false);
            return self.settle();
        }
        if self.servers[server].is_untried() && self.servers[server].body.is_none() && unread.is_empty() {
            // An idle connection ends at any time: another takes its place.
            self.statistics.retries += self.servers[server].assigned.len() as u64;
            self.reassign(server);
            let origin = self.servers[server].origin.take();
            self.servers[server] = Server { origin, ..Server::replacement() };
            return self.settle();
        }
        let end = if in_order { End::Close } else { End::Abort };
        if server == 0 && self.explicit.is_none() {
            self.server_end = end;
        }
        let Some(index) = self.front(server) else {
            self.servers[server].state = ServerState::Ended;
            if server == 0 && self.exchanges.is_empty() && self.explicit.is_none() {
                self.end.get_or_insert(end);
            }
            return self.settle();
        };
        let exchange = &mut self.exchanges[index];
        if !unread.is_empty() && exchange.response.len() >= self.buffer {
            return;
        }
        self.servers[server].state = ServerState::Ended;
        let body = self.servers[server].body;
        if in_order && body.is_some_and(|body| body.ends_with_connection()) {
            // Of a tunnel only this direction has ended.
            exchange.end.get_or_insert(End::Close);
            self.complete(server);
        } else if self.explicit.is_some() && !exchange.has_response && unread.is_empty() && !exchange.can_repeat() {
            self.refuse_first(server, Refusal::NoResponse);
        } else if exchange.has_response || !unread.is_empty() || !exchange.can_repeat() {
            // What the origin has sent is passed on, and is not made to look complete.
            self.statistics.truncated += 1;
            exchange.cut_content(unread);
            self.servers[server].assigned.clear();
            self.cut_off(index, end);
        } else {
            self.statistics.retries += self.servers[server].assigned.len() as u64;
            exchange.retried = true;
            self.reassign(server);
        }
        self.settle();
    }

    /// Whether the client waits for a server connection that has never answered, while the first
    /// one answers and is idle: the server may serve one connection at a time.
    pub fn is_stalled(&self) -> bool {
        let first = &self.servers[0];
        let waits_for = self.exchanges.iter().find(|exchange| !exchange.is_complete).and_then(|next| next.server);
        first.state == ServerState::Open
            && first.has_answered
            && first.assigned.is_empty()
            && waits_for.is_some_and(|server| {
                let server = &self.servers[server];
                !server.has_answered && server.origin == first.origin
            })
    }

    /// From now on all requests use the first server connection, also those of connections that
    /// have never answered.
    pub fn use_one_server(&mut self) {
        self.most_servers = 1;
        for number in 1..self.for_client {
            let server = &mut self.servers[number];
            if server.state != ServerState::Unused && !server.has_answered {
                server.state = ServerState::Ended;
                self.statistics.retries += server.assigned.len() as u64;
                self.reassign(number);
            }
        }
        self.settle();
    }

    /// The requests of a server connection need another.
    fn reassign(&mut self, server: usize) {
        for number in std::mem::take(&mut self.servers[server].assigned) {
            self.exchanges[(number - self.first) as usize].server = None;
        }
    }

    /// Bytes for the client that are ready.
    pub fn available(&self) -> u64 {
        let mut bytes = 0;
        for exchange in &self.exchanges {
            bytes += exchange.response.len() as u64;
            if !exchange.is_complete || exchange.end.is_some() {
                break;
            }
        }
        bytes
    }

    /// Takes at most `most` of the bytes that are ready for the client.
    pub fn take_response_bytes(&mut self, most: u64, mut sink: impl FnMut(&[u8])) {
        let mut left = most as usize;
        while let Some(exchange) = self.exchanges.front_mut() {
            let taken = take(&mut exchange.response, left, &mut sink);
            left -= taken;
            match exchange.bypass {
                Some(reason) => self.statistics.bypass(reason, taken as u64),
                None => self.statistics.response_bytes += taken as u64,
            }
            self.settle();
            if left == 0 || taken == 0 {
                return;
            }
        }
    }

    /// Sends the requests that can be sent, and finds out whether the stream to the client ends.
    fn settle(&mut self) {
        self.exchanges.iter_mut().for_each(|exchange| exchange.feed(self.buffer, &mut self.statistics));
        self.prefetch();
        while let Some(exchange) = self.exchanges.front()
            && exchange.is_complete
            && exchange.response.is_empty()
        {
            self.end = self.end.or(exchange.end);
            self.first += 1;
            self.exchanges.pop_front();
        }
        let is_idle = self.exchanges.is_empty() && self.tunnel.is_none();
        let has_server = self.explicit.is_some() || self.servers[0].state != ServerState::Ended;
        if is_idle && (self.client_ended || !has_server) {
            self.end.get_or_insert(self.server_end);
        }
        self.dispatch();
    }

    /// How the stream to the client ends after all that was taken.
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    /// The server of the tunnel, if there is one.
    pub const fn tunnel_server(&self) -> Option<usize> {
        self.tunnel
    }
}

mod prefetching;

#[cfg(test)]
#[path = "session/tests.rs"]
mod tests;
