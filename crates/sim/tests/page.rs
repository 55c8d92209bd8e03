//! Pages over a path whose only cost is a round trip: page times are round trips, as the
//! specifications of the protocols give them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_app::web::{Figures, View};
use airpath_core::Seed;
use airpath_result::summary::Ended;
use airpath_scenario::Scenario;
use airpath_sim::Setup;
use airpath_sim::flow::{Flow, PageFlow};

/// Half of the round trip of 200 ms in each direction; a document and five small objects, which it
/// names at its end.
fn read(keys: &str, sets: &[(String, String)]) -> Scenario {
    let objects =
        (0..5).map(|index| format!("[[flow.page.object]]\nname = \"{index}\"\ntype = \"image\"\nsize = \"1 kB\"\n"));
    let text = format!(
        "format = 1\n[bearer]\npreset = \"wired\"\n[fixed]\ndelay = \"100 ms\"\n[tcp]\nprofile = \"linux-6\"\n\
         [[flow]]\nkind = \"page\"\n{keys}\n[flow.page]\nname = \"p\"\n\
         [[flow.page.object]]\nname = \"index\"\ntype = \"document\"\nsize = \"5 kB\"\n{}",
        objects.collect::<String>()
    );
    Scenario::read(&text, "page.toml", Path::new(""), sets).expect("it is valid")
}

fn load<T>(keys: &str, figure: impl FnOnce(&PageFlow) -> T) -> T {
    let scenario = read(keys, &[]);
    let setup = Setup::new(&scenario, Seed::new(1)).expect("it can be built");
    let mut simulation = setup.start(None, None);
    assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished, "{keys}");
    assert_eq!(simulation.packets_inside(), 0, "{keys}: nothing is left behind");
    let [Flow::Page(flow)] = simulation.flows() else { unreachable!("there is one flow") };
    assert!(flow.cause().is_none());
    figure(flow)
}

/// Page times of all views in round trips, rounded; transmission times are far below one.
fn round_trips(keys: &str) -> Vec<u64> {
    let times = |view: &View| {
        let round_trips = view.time().expect("it is loaded").as_secs_f64() / 0.2;
        assert!((round_trips - round_trips.round()).abs() < 0.05, "{keys}: {round_trips}");
        round_trips.round() as u64
    };
    load(keys, |flow| flow.browser.views().iter().map(times).collect())
}

fn figures(keys: &str) -> Figures {
    load(keys, |flow| Figures::of(&flow.browser.views()[0]))
}

#[test]
fn page_times_are_round_trips() {
    // A connection and an exchange each: the document, then five objects over two or five.
    assert_eq!(round_trips("protocol = \"http/1.0\"\nconnections = 2"), [2 + 3 * 2]);
    assert_eq!(round_trips("protocol = \"http/1.0\"\nconnections = 5"), [2 + 2]);
    // One connection for all; with a second one three exchanges follow the document.
    assert_eq!(round_trips("connections = 1"), [2 + 5]);
    assert_eq!(round_trips("connections = 2"), [2 + 3]);
    // All requests at once.
    assert_eq!(round_trips("connections = 1\npipeline = { depth = 8 }"), [2 + 1]);
    assert_eq!(round_trips("connections = 1\npipeline = { depth = 2 }"), [2 + 3]);
    assert_eq!(round_trips("protocol = \"h2\""), [2 + 1]);
    // A name look-up, and handshakes.
    assert_eq!(round_trips("protocol = \"h2\"\ndns = true"), [1 + 2 + 1]);
    assert_eq!(round_trips("protocol = \"h2\"\ntls = \"TLSv1.3\""), [3 + 1]);
    assert_eq!(round_trips("protocol = \"h2\"\ntls = \"TLSv1.2\""), [4 + 1]);
    assert_eq!(round_trips("protocol = \"h2\"\ntls = \"TLSv1.3\"\nproxy = true"), [4 + 1]);
}

#[test]
fn an_http2_server_writes_as_the_window_permits() {
    // The document of 50 kB fits into an initial window of 40 segments.
    let sets = [("flow.0.page.object.0.size", "\"50 kB\""), ("tcp.initial_window", "40")];
    let scenario = read("protocol = \"h2\"", &sets.map(|(key, value)| (key.to_owned(), value.to_owned())));
    let mut simulation = Setup::new(&scenario, Seed::new(1)).expect("it can be built").start(None, None);
    simulation.run(&AtomicBool::new(false));
    let [Flow::Page(flow)] = simulation.flows() else { unreachable!("there is one flow") };
    let time = flow.browser.views()[0].time().expect("it is loaded").as_secs_f64();
    assert!((0.6..0.61).contains(&time), "three round trips of 0.2 s: {time}");
}

#[test]
fn speculative_connections_are_open_before_their_requests() {
    // The first object after the document needs no handshake: the last of five ends one earlier.
    assert_eq!(round_trips("protocol = \"http/1.0\"\nconnections = 2\nspeculative = 1"), [2 + 5]);
    // Streams share the connection of the document.
    let spare = "protocol = \"h2\"\ntls = \"TLSv1.3\"\nspeculative = 1";
    assert_eq!(round_trips(spare), [3 + 1]);
    assert_eq!(load(spare, |flow| flow.browser.opened()), 2);
    assert_eq!(figures(spare).connections, 1);
}

#[test]
fn later_views_use_what_is_known() {
    let session = "views = 2\nreading = \"5 s\"\nprotocol = \"h2\"\n";
    assert_eq!(round_trips(session), [3, 2], "the connection is still open");
    let idle = format!("{session}keep_alive = \"1 s\"\n");
    assert_eq!(round_trips(&idle), [3, 3]);
    assert_eq!(round_trips(&format!("{idle}dns = true")), [4, 3], "the name is known");
    assert_eq!(round_trips(&format!("{idle}tls = \"TLSv1.2\"\nresumption = \"ticket\"")), [5, 4]);
    assert_eq!(round_trips(&format!("{idle}tls = \"TLSv1.3\"\nresumption = \"ticket\"")), [4, 4]);
    assert_eq!(round_trips(&format!("{idle}tls = \"TLSv1.3\"\nresumption = \"0-rtt\"")), [4, 3]);
}

/// RFC 8446 §4.6.1: a server sends its tickets after the client's Finished, so they arrive a round
/// trip after the handshake, and need no response.
#[test]
fn tickets_are_used_when_they_have_arrived() {
    // Two objects of another host: the first has a response after ten round trips, the second is
    // found this long after the object that refers to it.
    let took = |process: &str| {
        let sets = [
            ("flow.0.page.object.1.origin", "b"),
            ("flow.0.page.object.1.wait", "2 s"),
            ("flow.0.page.object.2.origin", "b"),
            ("flow.0.page.object.2.referrer", "2"),
            ("flow.0.page.object.3.process", process),
        ];
        let sets = sets.map(|(key, value)| (key.to_owned(), format!("\"{value}\"")));
        let scenario = read("tls = \"TLSv1.3\"\nresumption = \"0-rtt\"", &sets);
        let mut simulation = Setup::new(&scenario, Seed::new(1)).expect("it can be built").start(None, None);
        assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished);
        let [Flow::Page(flow)] = simulation.flows() else { unreachable!("there is one flow") };
        let fetch = &flow.browser.views()[0].fetches[2];
        let took = fetch.finished.expect("it is complete").since(fetch.found.expect("it is found"));
        (took.as_secs_f64() / 0.2).round() as u64
    };
    // The handshake of the first connection to the host ends two round trips after the document,
    // the object that refers to the second is complete after one.
    assert_eq!(took("300 ms"), 3, "connection, full handshake, request");
    assert_eq!(took("500 ms"), 2, "connection, request");
}

/// A page that is listed twice is viewed twice.
#[test]
fn a_list_with_a_page_twice_has_later_views_of_it() {
    let requests = |keys: &str| -> Vec<u64> {
        let object = |name: &str, more: &str| {
            format!("[[flow.page.object]]\nname = \"{name}\"\ntype = \"image\"\nsize = \"1 kB\"\n{more}\n")
        };
        let page = |name: &str| {
            let fresh = object("b", "cache = \"fresh\"") + &object("c", "cache = \"fresh\"");
            format!("[[flow.page]]\nname = \"{name}\"\n{}{fresh}", object("a", ""))
        };
        let text = format!(
            "format = 1\n[bearer]\npreset = \"wired\"\n[[flow]]\nkind = \"page\"\nreading = \"1 s\"\n{keys}\n{}{}{}",
            page("p"),
            page("q"),
            page("p")
        );
        let scenario = Scenario::read(&text, "page.toml", Path::new(""), &[]).expect("it is valid");
        let mut simulation = Setup::new(&scenario, Seed::new(1)).expect("it can be built").start(None, None);
        assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished);
        let [Flow::Page(flow)] = simulation.flows() else { unreachable!("there is one flow") };
        assert_eq!(flow.cause(), None);
        flow.browser.views().iter().map(|view| Figures::of(view).requests).collect()
    };
    assert_eq!(requests(""), [3, 3, 1]);
    assert_eq!(requests("views = 6"), [3, 3, 1, 1, 1, 1]);
    assert_eq!(requests("cache = false"), [3, 3, 3]);
}

/// A query is repeated after 5 s; that is the same look-up.
#[test]
fn a_repeated_query_is_one_look_up() {
    let sets = [("fixed.delay".to_owned(), "\"3 s\"".to_owned())];
    let scenario = read("dns = true", &sets);
    let mut simulation = Setup::new(&scenario, Seed::new(1)).expect("it can be built").start(None, None);
    assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished);
    let [Flow::Page(flow)] = simulation.flows() else { unreachable!("there is one flow") };
    let [look_up] = flow.browser.views()[0].look_ups[..] else { panic!("there is one name") };
    // The answer to the first query arrives after 6 s.
    let took = look_up.resolved.expect("it is answered").since(look_up.queried).as_secs_f64();
    assert!((6.0..6.1).contains(&took), "{took}");
}

#[test]
fn pipelining_is_counted_as_in_captures() {
    let serial = figures("connections = 1");
    assert_eq!((serial.connections, serial.requests, serial.pipeline_factor), (1, 6, Some(1.0)));
    // β of the document is 1, of the objects 1 to 5: Φ = 16 / 6, of at most 21 / 6.
    let pipelined = figures("connections = 1\npipeline = { depth = 8 }");
    assert_eq!(pipelined.pipeline_factor, Some(16.0 / 6.0));
    assert!((pipelined.efficiency.expect("there are requests") - 16.0 / 21.0).abs() < 1e-12);
    let separate = figures("protocol = \"http/1.0\"");
    assert_eq!((separate.connections, separate.requests, separate.bytes), (6, 6, 10_000));
    // Weak pipelining: only on one of two connections, after a response.
    let weak = figures("connections = 2\npipeline = { depth = 8, connections = 1, after = 1 }");
    assert!(weak.pipeline_factor < pipelined.pipeline_factor && weak.pipeline_factor > Some(1.0), "{weak:?}");
}

/// A transport-level proxy terminates each connection of the page on its own.
#[test]
fn a_proxy_relays_parallel_connections() {
    for protocol in ["http/1.0", "http/1.1"] {
        let keys = format!("protocol = \"{protocol}\"\nconnections = 5");
        let scenario = read(&keys, &[("proxy.budget".to_owned(), "10 kB".to_owned())]);
        let mut simulation = Setup::new(&scenario, Seed::new(1)).expect("it can be built").start(None, None);
        assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished);
        let [Flow::Page(flow)] = simulation.flows() else { unreachable!("there is one flow") };
        assert_eq!((flow.cause(), flow.browser.views()[0].time().is_some()), (None, true), "{protocol}");
    }
}
