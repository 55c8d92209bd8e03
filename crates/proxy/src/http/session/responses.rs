//! What the servers of a session send, and how their streams end.

use airpath_core::Instant;

use crate::http::body::{Body, Framing};
use crate::http::exchange::{End, Exchange};
use crate::http::message::{ResponseHead, binds_connection};
use crate::http::refusal::Refusal;
use crate::http::server::{Server, ServerState};
use crate::http::session::Session;
use crate::http::statistics::Bypass;

impl Session {
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
        if self.servers[from].prefetch.is_some() {
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
    pub(super) fn front(&self, server: usize) -> Option<usize> {
        self.servers[server].assigned.front().map(|number| (number - self.first) as usize)
    }

    /// The end of a response cannot be found: all that the server sends belongs to it.
    pub(super) fn take_unframed(&mut self, from: usize) {
        let Some(index) = self.front(from) else { return };
        self.exchanges[index].release_content();
        if self.exchanges[index].encoder.take().is_some() {
            // What follows cannot be appended to compressed content.
            return self.abort_response(from, index);
        }
        if self.explicit.is_some() {
            // The client's next requests may be for other servers: this one must not receive them.
            if self.exchanges[index].has_response {
                return self.abort_response(from, index);
            }
            self.statistics.truncated += 1;
            self.servers[from].state = ServerState::Ended;
            return self.refuse_first(from, Refusal::MalformedResponse);
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

    /// The rest of the response to the exchange at `index` cannot be passed on.
    pub(super) fn abort_response(&mut self, server: usize, index: usize) {
        self.statistics.truncated += 1;
        self.servers[server].state = ServerState::Ended;
        self.servers[server].assigned.clear();
        self.cut_off(index, End::Abort);
    }

    /// The exchange at `index` is the last, and its response is not complete.
    fn cut_off(&mut self, index: usize, end: End) {
        let exchange = &mut self.exchanges[index];
        (exchange.is_complete, exchange.end) = (true, Some(end));
        self.forget_after(index);
    }

    /// The only exchange becomes a tunnel.
    pub(super) fn begin_tunnel(&mut self, server: usize, reason: Bypass) {
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
    pub(super) fn forget_after(&mut self, index: usize) {
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
        if self.servers[server].prefetch.is_some() {
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
}
