//! A client and its servers that send anything: no panic, and without HTTP every byte passes.
//!
//! The input is a list of steps: kind and server, length, bytes.

#![no_main]

use airpath_proxy::{HttpConfig, Session};
use libfuzzer_sys::fuzz_target;

/// Most server connections.
const SERVERS: usize = 3;

fuzz_target!(|input: &[u8]| {
    let [settings, input @ ..] = input else { return };
    let pipelining = 1 + settings % SERVERS as u8;
    let pipelining = pipelining.try_into().expect("at least one");
    let config = HttpConfig { pipelining, compression: settings & 64 != 0, ..HttpConfig::default() };
    let mut session = Session::new(&config, 4000);
    let mut client = Vec::new();
    let mut servers: [Vec<u8>; SERVERS] = Default::default();
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    let mut rest = input;
    while let [kind, length, content @ ..] = rest {
        let (bytes, left) = content.split_at(content.len().min(usize::from(*length)));
        rest = left;
        let server = usize::from(kind >> 4) % usize::from(pipelining.get());
        match kind % 8 {
            0..=2 => {
                client.extend_from_slice(bytes);
                let used = session.read_client(&client);
                client.drain(..used);
            }
            3..=5 => {
                servers[server].extend_from_slice(bytes);
                let used = session.read_server(server, &servers[server]);
                servers[server].drain(..used);
            }
            6 => session.server_ended(server, *length > 100, &servers[server]),
            _ => session.client_ended(client.len()),
        }
        while let Some(wanted) = session.wanted_server() {
            session.set_server(wanted, length % 3 > 0);
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
    let counted = session.statistics.response_bytes + session.statistics.bypassed_bytes.iter().sum::<u64>();
    assert_eq!(counted, received.len() as u64);
});
