//! A client and its servers that send anything: no panic, and without HTTP every byte passes.
//!
//! The input is two bytes of settings and a list of steps: kind and server, length, bytes.

#![no_main]

use airpath_core::{Bytes, Instant, Span};
use airpath_proxy::{Dictionaries, ExplicitProxy, HttpConfig, Refusal, Session, SharedCache};
use libfuzzer_sys::fuzz_target;

/// Most server connections for requests of the client.
const SERVERS: u8 = 3;

/// The capacity of the cache, and that of the dictionaries.
const CAPACITY: Bytes = Bytes::new(20_000);

fuzz_target!(|input: &[u8]| {
    let [settings, more, input @ ..] = input else { return };
    let config = HttpConfig {
        pipelining: (1 + settings % SERVERS).try_into().expect("at least one"),
        compression: settings & 64 != 0,
        server_pool: settings & 8,
        image_quality: (settings & 4).try_into().ok(),
        prefetch: more & 7,
        ..HttpConfig::default()
    };
    let (has_cache, has_dictionaries, is_explicit) = (settings & 32 != 0, more & 8 != 0, more & 16 != 0);
    let cache = SharedCache::new(CAPACITY.get());
    let dictionaries = Dictionaries::new(CAPACITY.get());
    let proxy = ExplicitProxy { address: ([192, 0, 2, 1], 3128).into(), connect_ports: vec![443] };
    let begin = || {
        let mut session = Session::new(&config, 4000);
        if has_cache {
            session = session.with_cache(cache.clone(), None);
        }
        if has_dictionaries {
            session = session.with_dictionaries(dictionaries.clone());
        }
        if is_explicit { session.with_explicit(proxy.clone()) } else { session }
    };
    let (mut session, mut now) = (begin(), Instant::ZERO);
    let count = session.servers_count();
    let mut client = Vec::new();
    let mut servers = vec![Vec::new(); count];
    let mut counted = 0;
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    let mut rest = input;
    while let [kind, length, content @ ..] = rest {
        let (bytes, left) = content.split_at(content.len().min(usize::from(*length)));
        rest = left;
        now = now + Span::from_millis(u64::from(*length) * 50);
        if session.next_wakeup().is_some_and(|wakeup| wakeup <= now) {
            session.handle_timeout(now);
            assert!(session.next_wakeup().is_none_or(|wakeup| wakeup > now));
        }
        let server = usize::from(kind >> 4) % count;
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
                servers.iter_mut().for_each(Vec::clear);
            }
        }
        // Addresses that were queried.
        for number in session.resolving() {
            match length % 4 {
                0 => {}
                1 => session.fail(number, Refusal::NameNotFound),
                _ => session.set_wanted(number),
            }
        }
        while let Some(wanted) = session.wanted_server() {
            if is_explicit && length % 8 == 0 {
                session.set_resolving(wanted);
            } else if is_explicit && length % 3 == 0 {
                session.fail(wanted, Refusal::Unreachable);
            } else if length % 4 == 0 && session.may_reuse(wanted) {
                session.reuse_server(wanted);
            } else {
                session.set_server(wanted, length % 3 > 0);
            }
        }
        for number in 0..count {
            session.take_request_bytes(number, 1000, |bytes| sent.extend_from_slice(bytes));
            if session.has_abandoned(number) {
                // As their owner does.
                let is_released = (is_explicit || number > 0) && length % 2 == 0;
                if is_released && session.tunnel_server() != Some(number) {
                    session.release_server(number);
                    servers[number].clear();
                }
            } else if length % 5 > 0 && !session.is_wanted(number) {
                session.connected(number);
            }
        }
        session.take_response_bytes(session.available().min(1000), |bytes| received.extend_from_slice(bytes));
        if session.is_stalled() && length % 5 == 0 {
            session.use_one_server();
        }
        assert!(cache.used() <= CAPACITY.get());
    }
    assert_eq!(counted + total(&session), received.len() as u64);
});

/// Bytes for the client that were counted.
fn total(session: &Session) -> u64 {
    session.statistics.response_bytes + session.statistics.bypassed_bytes.iter().sum::<u64>()
}
