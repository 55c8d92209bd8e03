//! A proxy whose state is saved and restored between any two packets continues as if nothing had
//! happened.

use airpath_core::{Bytes, Direction, Instant, Packet, RandomStream, Seed};
use airpath_link::Departure;
use airpath_path::testing::contracts;
use airpath_path::{Middlebox, MiddleboxContext, Side};
use airpath_proxy::{Config, HttpConfig, Proxy};
use airpath_tcp::Outcome;
use proptest::prelude::*;

use std::num::NonZeroU8;

use crate::conversations::{at, config, lines, proxy, talk, unreliable};
use crate::http::network_through;
use crate::support::{Network, Talk};

/// A proxy that is replaced by its restored state when no packet is left in it.
struct Replaced {
    proxy: Proxy,
    config: Config,
    chance: RandomStream,
    probability: f64,
    from: Instant,
}

impl Replaced {
    fn new(config: Config, probability: f64, from: Instant) -> Self {
        let chance = Seed::new(5).stream("moments");
        Self { proxy: proxy(config.clone()), config, chance, probability, from }
    }
}

impl Middlebox for Replaced {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut MiddleboxContext<'_>) {
        self.proxy.push(now, direction, packet, cx);
    }

    fn pop(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) -> Option<(Direction, Departure)> {
        let departure = self.proxy.pop(now, cx);
        if departure.is_none() && now >= self.from && self.chance.uniform() < self.probability {
            // Each connection has taken one number, so the next one is that of the original.
            let mut sequences = Seed::new(1).stream("proxy");
            for _ in 0..self.proxy.totals().opened {
                sequences.bits();
            }
            let restored = Proxy::restore(self.config.clone(), sequences, now, &self.proxy.save(), Some);
            let restored = restored.expect("the state is that of this version");
            if self.config.http.is_none() {
                assert_eq!(restored.mobile_states(), self.proxy.mobile_states());
            }
            assert_eq!(restored.totals(), self.proxy.totals());
            assert_eq!(restored.connections(), self.proxy.connections());
            self.proxy = restored;
        }
        departure
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.proxy.next_wakeup()
    }
}

proptest! {
    #[test]
    fn a_proxy_continues_from_its_saved_state(
        talks in proptest::collection::vec(talk(), 1..5),
        config in config(),
        loss in prop_oneof![Just(0.0), 0.0..0.1],
        probability in prop_oneof![Just(0.1), Just(1.0)],
        seed in any::<u64>(),
    ) {
        // Packets that wait in a queue are not part of the state: they leave before it is saved.
        let config = Config { queue: None, ..config };
        let line = |name| unreliable(loss, 20, seed, name);
        let (wired, radio) = ([line("wired/down"), line("wired/up")], [line("radio/down"), line("radio/up")]);
        let replaced = Replaced::new(config.clone(), probability, Instant::ZERO);
        let mut network = Network::new(Some(Box::new(replaced)), talks, wired, radio, None);
        let end = at(1_000_000);
        network.run(end);
        network.check_bytes();
        let undisturbed = contracts(|| proxy(config.clone()), &network.arrivals, end);
        let left = undisturbed.departures.iter().map(|(direction, left)| (*direction, left.due, left.packet.size));
        prop_assert_eq!(left.collect::<Vec<_>>(), network.departures);
    }
}

#[test]
fn connections_of_the_application_level_are_reset() {
    let http = HttpConfig { ports: vec![80], ..HttpConfig::default() };
    for (http, expected) in [(None, Outcome::Closed), (Some(http), Outcome::Reset)] {
        let config = Config { http, ..Config::new(Bytes::new(20_000)) };
        let replaced = Replaced::new(config, 1.0, at(1000));
        let mut radio = lines(50);
        radio[0].rate = Some(airpath_core::Bitrate::from_bps(100_000));
        let mut network =
            Network::new(Some(Box::new(replaced)), vec![Talk::download(at(0), 50_000)], lines(10), radio, None);
        network.run(at(100_000));
        assert_eq!(network.outcomes(0), [Some(expected); 2]);
        let received = network.ends[0][Side::Mobile as usize].connection.received();
        assert_eq!(received == 50_000, expected == Outcome::Closed, "{received} bytes");
    }
}

#[test]
fn all_server_connections_of_the_application_level_are_reset() {
    for server_pool in [0, 2] {
        let pipelining = NonZeroU8::new(3).expect("it is not zero");
        let http = HttpConfig { pipelining, server_pool, ..HttpConfig::default() };
        let config = Config { http: Some(http), ..Config::new(Bytes::new(20_000)) };
        let replaced = Replaced::new(config, 1.0, at(1000));
        let mut radio = lines(50);
        radio[0].rate = Some(airpath_core::Bitrate::from_bps(100_000));
        let mut network = network_through(Box::new(replaced), &[50_000; 3], usize::MAX, lines(10), radio);
        network.run(at(100_000));
        assert_eq!(network.outcomes(0)[Side::Mobile as usize], Some(Outcome::Reset));
        let of_client = if server_pool > 0 { 1 } else { 0 };
        let opened = network.ends.len();
        assert_eq!(opened, of_client + 3);
        for flow in of_client..opened {
            assert_eq!(network.outcomes(flow)[Side::Server as usize], Some(Outcome::Reset), "server {flow}");
        }
        assert_eq!(network.packets_inside(), 0);
    }
}

#[test]
fn a_state_that_is_damaged_is_an_error() {
    let config = Config::new(Bytes::new(20_000));
    let sequences = || Seed::new(1).stream("proxy");
    let state = proxy(config.clone()).save();
    for cut in 0..state.len() {
        assert!(Proxy::restore(config.clone(), sequences(), at(0), &state[..cut], Some).is_err(), "{cut}");
    }
}
