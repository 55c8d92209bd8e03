//! ICMP errors about segments of the proxy.

use airpath_core::{Bytes, Direction};
use airpath_path::{Hop, Side};
use airpath_proxy::{Accept, Config, HttpConfig, Proxy, Totals};
use airpath_tcp::Outcome;
use airpath_wire::icmp::IcmpErrorKind;

use crate::conversations::{at, lines, proxy};
use crate::http::{network_through, network_with};
use crate::support::{Network, Script, Talk};

fn totals(network: &Network<'_>) -> Totals {
    let Some((_, Hop::Middlebox(hop))) = network.path.path().hops().nth(1) else { panic!("there is a proxy") };
    let proxy: &Proxy = hop.downcast_ref().expect("it is the proxy");
    *proxy.totals()
}

/// A path that carries 1,000 bytes: the proxy learns it once, sends again what was lost, and waits
/// for no time-out.
#[test]
fn segments_become_as_small_as_the_path_requires() {
    for direction in Direction::BOTH {
        let (mut wired, mut radio) = (lines(20), lines(20));
        let mut talk = Talk::download(at(0), 300_000);
        let line = match direction {
            Direction::Down => &mut radio[0],
            Direction::Up => {
                (talk.mobile, talk.server) = (Script::sends(300_000, 0), Script::sends(10, 300_000));
                &mut wired[1]
            }
        };
        line.reports = Some(IcmpErrorKind::TooBig { mtu: 1000 });
        let config = Config::new(Bytes::new(40_000));
        let mut network = Network::new(Some(Box::new(proxy(config))), vec![talk], wired, radio, None);
        network.run(at(10_000));
        network.check_bytes();
        let receiver = &network.ends[0][Side::at_end_of(direction) as usize];
        assert_eq!(receiver.connection.received(), 300_000, "{direction:?}");
        let time = receiver.complete.expect("it is complete");
        assert!(time < at(1500), "{direction:?}: {time:?}");
        // The segments of one burst may each cause an error.
        assert!((1..=30).contains(&totals(&network).path_mtus), "{:?}", totals(&network));
        assert_eq!(network.errors, 0, "the errors concern the proxy alone");
        let large =
            network.departures.iter().filter(|(towards, _, size)| *towards == direction && *size > 1000).count();
        assert_eq!(large as u64, totals(&network).path_mtus, "no large segment follows the first error");
    }
}

/// A router before the server reports that it cannot be reached: the attempt ends at once, as
/// without a proxy.
#[test]
fn an_unreachable_server_ends_the_attempt_and_the_client_learns_it() {
    for (accept, outcome) in [(Accept::Early, Some(Outcome::Reset)), (Accept::Deferred, None)] {
        let mut wired = lines(10);
        wired[1].reports = Some(IcmpErrorKind::Unreachable);
        let config = Config { accept, ..Config::new(Bytes::new(20_000)) };
        let talks = vec![Talk::download(at(0), 8000)];
        let mut network = Network::new(Some(Box::new(proxy(config))), talks, wired, lines(50), None);
        network.run(at(800));
        assert_eq!(totals(&network).unreachable, 1, "{accept:?}");
        // With an open connection the mobile may have sent data, which pass after the reset.
        assert!(network.errors == 1 || accept == Accept::Early && network.errors > 1, "{}", network.errors);
        assert_eq!(network.outcomes(0)[Side::Mobile as usize], outcome, "{accept:?}");
    }
}

/// An open connection survives such an error (RFC 1122 §4.2.3.9), and goes on after it.
#[test]
fn an_open_connection_survives_an_unreachable_server() {
    let config = Config::new(Bytes::new(20_000));
    let talk =
        Talk { mobile: Script::sends(200_000, 0), server: Script::sends(10, 200_000), ..Talk::download(at(0), 0) };
    let mut network = Network::new(Some(Box::new(proxy(config))), vec![talk], lines(10), lines(50), None);
    network.run(at(250));
    network.wired[1].reports = Some(IcmpErrorKind::Unreachable);
    network.run(at(450));
    network.wired[1].reports = None;
    network.run(at(60_000));
    network.check_bytes();
    assert!(network.errors > 0 && totals(&network).unreachable == 0);
    assert_eq!(network.outcomes(0), [Some(Outcome::Closed); 2]);
}

/// The mobile does not have the port of a server connection that the proxy has opened. It learns of
/// no error about it while the connection is kept and ends.
#[test]
fn errors_about_kept_server_connections_end_at_the_proxy() {
    let http = HttpConfig { server_pool: 1, ..HttpConfig::default() };
    let mut network = network_with(&[3000], http, usize::MAX, lines(20), lines(100));
    network.run(at(20_000));
    assert_eq!((network.ends.len(), network.outcomes(1)[Side::Server as usize]), (2, None), "it is kept");
    network.wired[1].reports = Some(IcmpErrorKind::Unreachable);
    // It is closed after a minute.
    network.run(at(65_000));
    assert_eq!((network.errors, totals(&network).unreachable), (0, 0));
    network.wired[1].reports = None;
    network.run(at(1_000_000));
    assert_eq!(network.outcomes(1)[Side::Server as usize], Some(Outcome::Closed));
    assert_eq!(network.packets_inside(), 0);
}

/// The mobile learns of no error about a server connection of the proxy while it is opened either.
#[test]
fn errors_about_server_connections_of_the_proxy_end_at_the_proxy() {
    for accept in [Accept::Early, Accept::Deferred] {
        let http = HttpConfig { server_pool: 1, ..HttpConfig::default() };
        let config = Config { accept, http: Some(http), ..Config::new(Bytes::new(20_000)) };
        let mut wired = lines(10);
        wired[1].reports = Some(IcmpErrorKind::Unreachable);
        let mut network = network_through(Box::new(proxy(config)), &[3000], usize::MAX, wired, lines(50));
        network.run(at(800));
        // The data of an open connection pass after its reset, and cause an error for the mobile.
        let errors = u32::from(accept == Accept::Early);
        assert_eq!((network.errors, totals(&network).unreachable), (errors, 1), "{accept:?}");
        network.run(at(1_000_000));
        assert!(network.outcomes(0)[Side::Mobile as usize].is_some(), "{accept:?}: the client does not hang");
        assert_eq!(network.packets_inside(), 0, "{accept:?}");
    }
}
