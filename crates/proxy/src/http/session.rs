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

mod prefetching;
mod requests;
mod responses;
mod servers;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroU8;

use airpath_core::Instant;

use crate::http::body::{Body, Framing};
use crate::http::cache::SharedCache;
use crate::http::config::Config;
use crate::http::dictionary::Dictionaries;
use crate::http::exchange::{End, Exchange};
use crate::http::message::{Method, binds_connection};
use crate::http::prefetch::{self, Prefetcher};
use crate::http::refusal::Refusal;
use crate::http::reuse::CacheOfServer;
use crate::http::server::{Server, ServerState, take};
use crate::http::session::servers::Servers;
use crate::http::statistics::{Bypass, Statistics};
use crate::http::target::ExplicitProxy;

/// Requests of a client that are parsed before the first is answered, if they are not fetched at
/// the same time.
const SERIAL_DEPTH: usize = 16;

/// Most bytes of a head.
const MOST_HEAD: usize = 64 << 10;

/// The requests of a client connection.
#[derive(Debug)]
pub struct Session {
    exchanges: VecDeque<Exchange>,
    /// Number of the first exchange.
    first: u64,
    servers: Servers,
    /// Most exchanges.
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
        let prefetcher = (config.prefetch > 0).then(|| Prefetcher::new(config.prefetch));
        let for_prefetching = if prefetcher.is_some() { prefetch::SERVERS } else { 0 };
        Self {
            exchanges: VecDeque::new(),
            first: 0,
            servers: Servers::new(first, pipelining, for_prefetching),
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
                let Some(server) = self.servers.choose(is_safe, &origin) else {
                    if all_complete && self.explicit.is_none() && !self.servers.has_usable() {
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

#[cfg(test)]
#[path = "session/tests.rs"]
mod tests;
