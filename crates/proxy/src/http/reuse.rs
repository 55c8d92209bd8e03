//! What the cache does for a request: it answers, validates, stores, or forgets.

use std::net::SocketAddr;

use airpath_core::Instant;

use crate::http::body::Framing;
use crate::http::cache::{Key, Reuse, SharedCache, Stored};
use crate::http::exchange::Exchange;
use crate::http::fields::{is, lines};
use crate::http::freshness::{Directives, is_private};
use crate::http::message::{Method, ResponseHead};
use crate::http::statistics::Statistics;

/// The answer to a request that must not be forwarded (RFC 9111 §5.2.1.7).
const NOT_CACHED: &[u8] = b"HTTP/1.1 504 Gateway Timeout\r\nVia: 1.1 airpath\r\nContent-Length: 0\r\n\r\n";

/// The cache, and the server whose responses a session finds there.
#[derive(Clone, Debug)]
pub struct CacheOfServer {
    pub cache: SharedCache,
    pub server: Option<SocketAddr>,
}

impl CacheOfServer {
    /// A request has arrived, and was not sent yet.
    pub fn look_up(&self, now: Instant, exchange: &mut Exchange, statistics: &mut Statistics) {
        let Some(key) = Key::of(&exchange.head, self.server) else { return };
        if exchange.method == Method::Other {
            exchange.reuse = Reuse::Forgets(key);
            return;
        }
        let requested = Directives::of(&exchange.head);
        let is_usual = exchange.head.starts_with(b"GET ") && !exchange.is_barrier && !is_partial(&exchange.head);
        if !is_usual || requested.no_store || is_private(&exchange.head) {
            return;
        }
        let stored = self.cache.find(&key, &exchange.head);
        if let Some(stored) = stored.as_ref().filter(|stored| stored.satisfies(&requested, now)) {
            statistics.cache_hits += 1;
            statistics.prefetched_used += u64::from(stored.begin_use());
            return match stored.is_not_modified(&exchange.head) {
                Some(true) => exchange.answer(&stored.not_modified(now)),
                _ => exchange.serve(&stored.head(now), &stored.content, statistics),
            };
        }
        if requested.only_if_cached {
            return exchange.answer(NOT_CACHED);
        }
        let request = exchange.head.clone();
        let stale = stored.filter(|stored| stored.is_not_modified(&request).is_none()).and_then(|stored| {
            exchange.head = stored.validation(&request)?;
            Some(stored)
        });
        exchange.reuse = Reuse::Stores { key, request, requested: now, stale };
    }

    /// How the response to a request for prefetching is stored; `None` if a stored one can be used
    /// or validated when a client requests it.
    pub fn prepare_prefetch(&self, now: Instant, request: &[u8]) -> Option<(Key, Reuse)> {
        let key = Key::of(request, self.server)?;
        let requested = Directives::of(request);
        let is_useful = |stored: &Stored| stored.satisfies(&requested, now) || stored.validation(request).is_some();
        if self.cache.find(&key, request).is_some_and(|stored| is_useful(&stored)) {
            return None;
        }
        let reuse = Reuse::Stores { key: key.clone(), request: request.to_vec(), requested: now, stale: None };
        Some((key, reuse))
    }

    /// The final head of the response has arrived. Returns whether it is a validation, and the
    /// stored response is served.
    pub fn on_response(
        &self,
        now: Instant,
        exchange: &mut Exchange,
        (head, bytes): (&ResponseHead, &[u8]),
        statistics: &mut Statistics,
    ) -> bool {
        match std::mem::take(&mut exchange.reuse) {
            Reuse::Stores { key, request, requested, stale: Some(stored) } if head.status == 304 => {
                statistics.cache_validations += 1;
                let new = self.cache.freshen((&key, &request), &stored, bytes, (requested, now));
                exchange.serve(&new.head(now), &new.content, statistics);
                return true;
            }
            Reuse::Stores { key, request, requested, .. } => {
                let length = match head.framing {
                    Framing::Length(bytes) => Some(bytes),
                    Framing::Chunked => None,
                    // It may have been cut off.
                    Framing::UntilClose => return false,
                };
                exchange.arriving = self.cache.begin(key, (&request, bytes), (head.status, length), (requested, now));
            }
            Reuse::Forgets(key) if matches!(head.status, 200..=399) => self.cache.invalidate(&key),
            Reuse::Forgets(_) | Reuse::None => {}
        }
        false
    }
}

/// Whether a request is for a part, or has conditions that only the server can decide.
fn is_partial(request: &[u8]) -> bool {
    let names = ["range", "if-range", "if-match", "if-unmodified-since"];
    lines(request).is_none_or(|(_, mut fields)| fields.any(|(name, _)| names.iter().any(|known| is(name, known))))
}
