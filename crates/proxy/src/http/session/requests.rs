//! The requests of a session's client.

use airpath_core::Instant;

use crate::http::body::Framing;
use crate::http::compression::Coding;
use crate::http::exchange::{End, Exchange};
use crate::http::message::{Method, RequestHead};
use crate::http::page::Page;
use crate::http::recode::Recoding;
use crate::http::refusal::Refusal;
use crate::http::server::ServerState;
use crate::http::session::Session;
use crate::http::statistics::Bypass;

/// The first byte of a TLS record with a handshake (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 0x16;

impl Session {
    /// Reads bytes of the client's stream. Returns how many were used; 0 if more are needed, or the
    /// next request has to wait.
    pub(super) fn read_request(&mut self, now: Instant, bytes: &[u8]) -> usize {
        if let Some(server) = self.tunnel {
            return self.servers[server].send(bytes);
        }
        if let Some(last) = self.exchanges.back() {
            if last.is_complete && last.end.is_some() {
                return 0;
            }
            if !last.body.is_complete() {
                return self.read_content(bytes);
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
                self.begin_exchange(now, &head, &bytes[..head.length]);
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

    /// Passes content of the last request on to its server.
    fn read_content(&mut self, bytes: &[u8]) -> usize {
        let Some(last) = self.exchanges.back_mut() else { return 0 };
        let Some(server) = last.server else { return 0 };
        let room = self.servers[server].room().min(bytes.len());
        if let Ok(count) = last.body.advance(&bytes[..room], |_| {}) {
            return self.servers[server].send(&bytes[..count]);
        }
        if self.explicit.is_some() && !last.has_response {
            self.servers[server].state = ServerState::Ended;
            self.refuse_first(server, Refusal::Malformed);
            return 0;
        }
        if self.explicit.is_some() || last.encoder.is_some() {
            // What follows belongs to no server, or cannot be appended to compressed content.
            last.cut_content(&[]);
            self.abort_response(server, self.exchanges.len() - 1);
            return 0;
        }
        // Its head has been sent: what follows is passed on to the same server.
        self.begin_tunnel(server, Bypass::MalformedRequest);
        self.servers[server].send(bytes)
    }

    /// A request with this head has arrived.
    fn begin_exchange(&mut self, now: Instant, head: &RequestHead, request: &[u8]) {
        self.statistics.requests += 1;
        let target = self.explicit.as_ref().map(|proxy| proxy.forward(head, request)).transpose();
        let (origin, request, refusal) = match target {
            Ok(None) => (None, request.to_vec(), None),
            Ok(Some((origin, request))) => (Some(origin), request, None),
            Err(refusal) => (None, Vec::new(), Some(refusal)),
        };
        let mut exchange = Exchange::new(head.method, request, head.framing);
        exchange.origin = origin;
        exchange.is_barrier |= head.upgrades || !exchange.body.is_complete();
        // A proxy keeps no connection of HTTP/1.0 (RFC 9112 §9.3).
        let start = exchange.head.split(|byte| *byte == b'\r').next();
        let is_1_0 = self.explicit.is_some() && start.is_some_and(|start| start.ends_with(b" HTTP/1.0"));
        exchange.end = (head.closes || is_1_0).then_some(End::Close);
        if let Some(refusal) = refusal {
            self.exchanges.push_back(exchange);
            return self.refuse(self.exchanges.len() - 1, refusal);
        }
        if self.compresses {
            exchange.coding = Coding::of_request(&exchange.head);
        }
        exchange.recoding = self.image_quality.and_then(|quality| Recoding::of_request(&exchange.head, quality));
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
    }
}
