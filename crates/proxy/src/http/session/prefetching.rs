//! The objects of pages that a session fetches into the cache.

use airpath_core::Instant;

use super::Session;
use crate::http::body::{Body, Framing};
use crate::http::cache::{Key, Reuse};
use crate::http::exchange::Exchange;
use crate::http::message::{Method, ResponseHead};
use crate::http::prefetch::{MOST_PAUSE, Prefetch};
use crate::http::server::{Server, ServerState};
use crate::http::statistics::Statistics;

impl Session {
    /// Requests the objects of pages that are complete, as far as there are server connections.
    pub(super) fn prefetch(&mut self) {
        let Some((prefetcher, cache)) = self.prefetcher.as_mut().zip(self.cache.as_ref()) else { return };
        for exchange in self.exchanges.iter_mut().filter(|exchange| exchange.is_complete) {
            if let Some(page) = exchange.page.take() {
                prefetcher.add(&page, exchange.origin.as_ref());
            }
        }
        if self.end.is_some() || self.tunnel.is_some() {
            prefetcher.waiting.clear();
        }
        while let Some((origin, _)) = prefetcher.waiting.front() {
            let Some((number, is_open)) = self.servers.choose_for_prefetching(origin) else { return };
            let Some((origin, head)) = prefetcher.waiting.pop_front() else { return };
            let Some((key, reuse)) = cache.prepare_prefetch(self.now, &head) else { continue };
            let mut exchange = Exchange::new(Method::Safe, head, Framing::Length(0));
            exchange.reuse = reuse;
            if !is_open {
                self.servers[number] = Server::new(ServerState::Wanted);
            }
            let server = &mut self.servers[number];
            server.outgoing.extend(&exchange.head);
            server.origin = origin;
            server.prefetch = Some(Prefetch { key, exchange, active: self.now });
        }
    }

    /// Whether the response to a request is being prefetched.
    pub(super) fn is_prefetching(&self, exchange: &Exchange) -> bool {
        let Reuse::Stores { key, .. } = &exchange.reuse else { return false };
        self.arriving().any(|(_, prefetch)| prefetch.key == *key)
    }

    /// Objects whose content arrives, with their server connections.
    fn arriving(&self) -> impl Iterator<Item = (usize, &Prefetch)> {
        let with_content = self.servers.for_prefetching().filter(|(_, server)| server.body.is_some());
        with_content.filter_map(|(number, server)| Some((number, server.prefetch.as_ref()?)))
    }

    /// Until when requests wait for objects that arrive, with the server connections.
    fn limits(&self) -> impl Iterator<Item = (Instant, usize)> {
        let awaits = |key: &Key| {
            let waiting = self.exchanges.iter().filter(|exchange| is_waiting(exchange));
            waiting.map(|exchange| &exchange.reuse).any(|reuse| reuse.stores(key))
        };
        let awaited = self.arriving().filter(move |(_, prefetch)| awaits(&prefetch.key));
        // A request may come after the limit.
        awaited.map(|(number, prefetch)| ((prefetch.active + MOST_PAUSE).max(self.now), number))
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.limits().map(|(limit, _)| limit).min()
    }

    /// Gives up the objects that do not arrive while a request waits for them.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        let late: Vec<usize> = self.limits().filter(|(limit, _)| *limit <= now).map(|(_, number)| number).collect();
        for number in &late {
            self.servers[*number].state = ServerState::Ended;
            self.end_prefetch(*number, false);
        }
        if !late.is_empty() {
            self.settle();
        }
    }

    /// Reads a response that no client has requested.
    pub(super) fn read_prefetched(&mut self, now: Instant, from: usize, bytes: &[u8]) -> usize {
        let (server, statistics) = (&mut self.servers[from], &mut self.statistics);
        let Some((prefetch, cache)) = server.prefetch.as_mut().zip(self.cache.as_ref()) else { return 0 };
        prefetch.active = now;
        let exchange = &mut prefetch.exchange;
        let read = match &mut server.body {
            Some(body) => exchange.append_content(body, bytes, statistics).ok().inspect(|count| {
                statistics.prefetched_bytes += *count as u64;
                exchange.response.clear();
            }),
            None => match ResponseHead::parse(bytes, Method::Safe, self.most_head) {
                Ok(None) => return 0,
                Ok(Some(head)) if head.is_interim() => return head.length,
                Ok(Some(head)) => {
                    cache.on_response(now, exchange, (&head, &bytes[..head.length]), statistics);
                    exchange.arriving.iter_mut().for_each(|arriving| arriving.is_prefetched = true);
                    (server.body, server.closes) = (Some(Body::new(head.framing)), head.closes);
                    server.has_answered = true;
                    Some(head.length)
                }
                Err(_) => None,
            },
        };
        // What cannot be stored is not read.
        let read = read.filter(|_| exchange.arriving.is_some());
        let is_complete = server.body.is_some_and(|body| body.is_complete());
        if read.is_none() || is_complete && server.closes {
            server.state = ServerState::Ended;
        }
        if read.is_none() || is_complete {
            self.end_prefetch(from, read.is_some());
        }
        read.unwrap_or(bytes.len())
    }

    /// A server connection has stopped to fetch an object, which is stored if it is complete. The
    /// requests that have waited for it go on.
    pub(super) fn end_prefetch(&mut self, number: usize, is_complete: bool) {
        let server = &mut self.servers[number];
        let Some((Prefetch { key, mut exchange, .. }, cache)) = server.prefetch.take().zip(self.cache.as_ref()) else {
            return;
        };
        server.body = None;
        if is_complete {
            let mut statistics = Statistics::default();
            exchange.finish_content(&mut statistics);
            self.statistics.prefetched += statistics.cache_stored;
        } else {
            self.statistics.prefetches_failed += 1;
        }
        for waiting in self.exchanges.iter_mut().filter(|exchange| is_waiting(exchange)) {
            if waiting.reuse.stores(&key)
                && let Reuse::Stores { request, .. } = std::mem::take(&mut waiting.reuse)
            {
                waiting.head = request;
                cache.look_up(self.now, waiting, &mut self.statistics);
            }
        }
    }
}

/// Whether a request was neither sent nor answered.
fn is_waiting(exchange: &Exchange) -> bool {
    exchange.server.is_none() && !exchange.has_response
}

#[cfg(test)]
mod tests {
    use airpath_core::{Bytes, Span};

    use super::*;
    use crate::http::cache::SharedCache;
    use crate::http::config::Config;

    const NOW: Instant = Instant::ZERO;

    fn session() -> Session {
        let config = Config { prefetch: 4, cache: Some(Bytes::new(1_000_000)), ..Config::default() };
        let mut session = Session::new(&config, 100_000).with_cache(SharedCache::new(1_000_000), None);
        request(&mut session, "/");
        let page = b"<img src=a.png><img src=b.png><img src=c.png>";
        assert!(sent(&mut session, 0).starts_with("GET / "));
        respond(&mut session, 0, "Content-Type: text/html\r\n", page);
        for server in 1..=2 {
            assert_eq!(session.wanted_server(), Some(server));
            session.set_server(server, true);
        }
        assert_eq!(session.wanted_server(), None, "two at most");
        received(&mut session);
        session
    }

    fn request(session: &mut Session, path: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nCookie: c\r\n\r\n");
        assert_eq!(session.read_client(NOW, request.as_bytes()), request.len());
    }

    fn message(fields: &str, content: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", content.len());
        [head.as_bytes(), content].concat()
    }

    fn respond(session: &mut Session, server: usize, fields: &str, content: &[u8]) {
        let message = message(fields, content);
        assert_eq!(session.read_server(NOW, server, &message), message.len());
    }

    fn sent(session: &mut Session, server: usize) -> String {
        let mut bytes = Vec::new();
        session.take_request_bytes(server, usize::MAX, |part| bytes.extend_from_slice(part));
        String::from_utf8(bytes).expect("it is text")
    }

    fn received(session: &mut Session) -> String {
        let mut bytes = Vec::new();
        session.take_response_bytes(u64::MAX, |part| bytes.extend_from_slice(part));
        String::from_utf8(bytes).expect("it is text")
    }

    const FRESH: &str = "Cache-Control: max-age=60\r\n";

    #[test]
    fn a_request_waits_for_an_object_that_arrives() {
        let mut session = session();
        assert_eq!(sent(&mut session, 1), "GET /a.png HTTP/1.1\r\nHost: a\r\n\r\n");
        let whole = message(FRESH, &[b'x'; 1000]);
        session.read_server(NOW, 1, &whole[..500]);
        request(&mut session, "/a.png");
        assert_eq!((sent(&mut session, 0), session.available()), (String::new(), 0));
        assert_eq!(session.read_server(NOW, 1, &whole[500..]), whole.len() - 500);
        assert!(received(&mut session).ends_with(&"x".repeat(1000)));
        let Statistics { prefetched, prefetched_used, prefetched_bytes, .. } = session.statistics;
        assert_eq!((prefetched, prefetched_used, prefetched_bytes), (1, 1, 1000));
        assert!(sent(&mut session, 1).starts_with("GET /c.png "), "the connection is used again");
    }

    #[test]
    fn a_page_that_names_a_stored_object_does_not_use_it() {
        let mut session = session();
        for (server, name) in [(1, "a"), (2, "b"), (1, "c")] {
            assert!(sent(&mut session, server).starts_with(&format!("GET /{name}.png ")));
            respond(&mut session, server, FRESH, b"x");
        }
        request(&mut session, "/");
        sent(&mut session, 0);
        respond(&mut session, 0, "Content-Type: text/html\r\n", b"<img src=a.png>");
        assert_eq!((sent(&mut session, 1), sent(&mut session, 2)), (String::new(), String::new()));
        let used = |session: &Session| session.statistics.prefetched_used;
        assert_eq!(used(&session), 0);
        request(&mut session, "/a.png");
        request(&mut session, "/a.png");
        assert_eq!((used(&session), session.statistics.cache_hits), (1, 2));
    }

    #[test]
    fn a_request_goes_on_if_the_object_cannot_be_had() {
        let mut session = session();
        let whole = message(FRESH, &[b'x'; 1000]);
        session.read_server(NOW, 1, &whole[..500]);
        request(&mut session, "/a.png");
        session.server_ended(1, true, &[]);
        assert!(session.has_abandoned(1));
        assert_eq!(sent(&mut session, 0), "GET /a.png HTTP/1.1\r\nHost: a\r\nCookie: c\r\n\r\n");
        respond(&mut session, 0, FRESH, b"own");
        assert!(received(&mut session).ends_with("own"));
        // What must not be stored is not read.
        let secret = message("Cache-Control: private\r\n", &[b'x'; 1000]);
        session.read_server(NOW, 2, &secret);
        assert!(session.has_abandoned(2));
        assert_eq!((session.statistics.prefetches_failed, session.statistics.prefetched), (2, 0));
        // One that has not begun to arrive is not waited for.
        session.release_server(1);
        session.set_server(1, true);
        request(&mut session, "/c.png");
        assert!(sent(&mut session, 0).starts_with("GET /c.png "));
    }

    #[test]
    fn a_request_does_not_wait_for_an_object_that_stalls() {
        let after = |seconds| NOW + Span::from_secs(seconds);
        let mut session = session();
        let whole = message(FRESH, &[b'x'; 1000]);
        session.read_server(NOW, 1, &whole[..300]);
        assert_eq!(session.next_wakeup(), None, "nothing waits for it");
        request(&mut session, "/a.png");
        session.read_server(after(3), 1, &whole[300..500]);
        assert_eq!(session.next_wakeup(), Some(after(8)));
        session.handle_timeout(after(7));
        assert_eq!(sent(&mut session, 0), "");
        session.handle_timeout(after(8));
        assert!(session.has_abandoned(1));
        assert!(sent(&mut session, 0).starts_with("GET /a.png "));
        assert_eq!((session.next_wakeup(), session.statistics.prefetches_failed), (None, 1));
        respond(&mut session, 0, FRESH, b"own");
        assert!(received(&mut session).ends_with("own"));
    }

    #[test]
    fn a_request_after_a_stall_does_not_wait() {
        let after = |seconds| NOW + Span::from_secs(seconds);
        let mut session = session();
        session.read_server(after(3), 1, &message(FRESH, &[b'x'; 1000])[..300]);
        let get = b"GET /a.png HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(session.read_client(after(20), get), get.len());
        assert_eq!(session.next_wakeup(), Some(after(20)), "not in the past");
        session.handle_timeout(after(20));
        assert!(sent(&mut session, 0).starts_with("GET /a.png "));
    }

    #[test]
    fn an_idle_connection_is_only_kept_if_nothing_is_under_way() {
        let mut session = session();
        assert!(!session.may_keep(1), "a request was sent");
        assert!(sent(&mut session, 2).contains("GET /b.png "));
        respond(&mut session, 2, FRESH, b"x");
        assert!(sent(&mut session, 2).contains("GET /c.png "));
        assert!(!session.may_keep(2), "the next request was sent");
        respond(&mut session, 2, FRESH, b"x");
        assert!(session.may_keep(2));
    }
}
