//! A connection whose state is serialised and read back at any moment continues as if nothing had
//! happened.

use std::sync::Arc;

use airpath_core::{Bitrate, FlowId, Instant, Seed, Span};
use airpath_tcp::testing::{Hop, Pair, Pipe, Side};
use airpath_tcp::{Algorithm, Config, Connection, Outcome, Profile, Segment};

const BYTES: u64 = 300_000;

fn pair(config: &Config) -> Pair {
    let pipe = |seed| {
        let hop = Hop::new(Some(Bitrate::from_bps(2_000_000)), Span::from_millis(40), 20);
        Pipe::of(vec![hop]).chance(seed, 0.03, 0.01, 0.05, Span::from_millis(30)).mark(31)
    };
    let mut pair = Pair::new(config, pipe(1), pipe(2));
    pair.verifies = true;
    pair.sent = Some(Vec::new());
    for side in [Side::Client, Side::Server] {
        pair.connection(side).write(BYTES);
        pair.connection(side).close();
    }
    pair
}

fn reread(connection: &mut Connection) {
    let config = Arc::clone(connection.config());
    let state = postcard::to_stdvec(connection).expect("a connection can be serialised");
    *connection = postcard::from_bytes(&state).expect("it can be read back");
    connection.restore(config, FlowId(0));
}

/// All segments that both ends send; `moments` of them are followed by a continuation.
fn segments(config: &Config, moments: f64) -> Vec<(Instant, Side, Segment)> {
    let mut chance = Seed { seed: 3, repetition: 0 }.stream("moments");
    let mut pair = pair(config);
    pair.touch(Side::Client);
    pair.touch(Side::Server);
    while pair.step(Instant::FAR_FUTURE) {
        for side in [Side::Client, Side::Server] {
            if chance.uniform() < moments {
                reread(pair.connection(side));
            }
        }
    }
    for side in [Side::Client, Side::Server] {
        assert_eq!(pair.look(side).outcome(), config.handshake.then_some(Outcome::Closed), "{side:?}");
        // A sender that counts packets rounds up.
        assert!(pair.look(side).received() >= BYTES, "{side:?}");
    }
    pair.sent.take().expect("it was recorded")
}

#[test]
fn a_connection_continues_from_its_serialised_state() {
    let mut bbr = Profile::Linux6.config();
    bbr.congestion.algorithm = Algorithm::Bbr;
    let profiles = Profile::ALL.map(|profile| (profile.name(), profile.config()));
    for (profile, config) in profiles.into_iter().chain([("linux-6 with bbr", bbr)]) {
        let undisturbed = segments(&config, 0.0);
        assert!(undisturbed.len() > 400, "{profile}");
        assert_eq!(segments(&config, 0.2), undisturbed, "{profile}");
        assert_eq!(segments(&config, 1.0), undisturbed, "{profile}");
    }
}
