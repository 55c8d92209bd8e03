//! A client and its servers that send anything: no panic, and without HTTP every byte passes.
//!
//! The input is a list of steps: kind and server, length, bytes.

#![no_main]

use airpath_core::{Bytes, Instant, Span};
use airpath_proxy::{HttpConfig, Session, SharedCache};
use libfuzzer_sys::fuzz_target;

/// Most server connections.
const SERVERS: usize = 3;

fuzz_target!(|input: &[u8]| {
    let [settings, input @ ..] = input else { return };
    let pipelining = 1 + settings % SERVERS as u8;
    let pipelining = pipelining.try_into().expect("at least one");
    let config = HttpConfig {
        pipelining,
        compression: settings & 64 != 0,
        server_pool: settings & 8,
        image_quality: (settings & 4).try_into().ok(),
        ..HttpConfig::default()
    };
    let cache = SharedCache::new(Bytes::new(20_000).get());
    let begin = || {
        let session = Session::new(&config, 4000);
        if settings & 32 != 0 { session.with_cache(cache.clone(), None) } else { session }
    };
    let (mut session, mut now) = (begin(), Instant::ZERO);
    let mut client = Vec::new();
    let mut servers: [Vec<u8>; SERVERS] = Default::default();
    let mut counted = 0;
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    let mut rest = input;
    while let [kind, length, content @ ..] = rest {
        let (bytes, left) = content.split_at(content.len().min(usize::from(*length)));
        rest = left;
        now = now + Span::from_millis(u64::from(*length) * 50);
        let server = usize::from(kind >> 4) % usize::from(pipelining.get());
        match kind % 8 {
            0..=2 => {
                client.extend_from_slice(bytes);
                let used = session.read_client(now, &client);
                client.drain(..used);
            }
            3..=5 => {
                servers[server].extend_from_slice(bytes);
                let used = session.read_server(now, server, &servers[server]);
                servers[server].drain(..used);
            }
            6 => session.server_ended(server, *length > 100, &servers[server]),
            _ if settings & 16 == 0 => session.client_ended(client.len()),
            // Another client, which may find what is stored.
            _ => {
                counted += total(&session);
                session = begin();
                client.clear();
                servers = Default::default();
            }
        }
        while let Some(wanted) = session.wanted_server() {
            if length % 4 == 0 && session.may_reuse(wanted) {
                session.reuse_server(wanted);
            } else {
                session.set_server(wanted, length % 3 > 0);
            }
        }
        for server in 0..usize::from(pipelining.get()) {
            session.take_request_bytes(server, 1000, |bytes| sent.extend_from_slice(bytes));
            if server > 0 && session.has_abandoned(server) && length % 2 == 0 {
                session.release_server(server);
            }
        }
        session.take_response_bytes(session.available().min(1000), |bytes| received.extend_from_slice(bytes));
        if session.is_stalled() && length % 5 == 0 {
            session.use_one_server();
        }
    }
    assert_eq!(counted + total(&session), received.len() as u64);
});

/// Bytes for the client that were counted.
fn total(session: &Session) -> u64 {
    session.statistics.response_bytes + session.statistics.bypassed_bytes.iter().sum::<u64>()
}
