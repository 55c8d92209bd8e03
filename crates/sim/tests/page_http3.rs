//! Pages by HTTP/3 over QUIC: round trips, priorities, losses beside HTTP/2, the end of idle
//! connections.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_app::web::{Figures, View};
use airpath_core::{Memory, Seed};
use airpath_result::summary::Ended;
use airpath_scenario::Scenario;
use airpath_sim::Setup;
use airpath_sim::flow::{Flow, PageFlow};

const LONG: &str = "[bearer]\npreset = \"wired\"\n[fixed]\ndelay = \"100 ms\"\n";

/// A document of 5 kB that names objects of these types and sizes at its end.
fn page(objects: &[(&str, &str)]) -> String {
    let object = |(index, (kind, size)): (usize, &(&str, &str))| {
        format!("[[flow.page.object]]\nname = \"{index}\"\ntype = \"{kind}\"\nsize = \"{size}\"\n")
    };
    let objects: String = objects.iter().enumerate().map(object).collect();
    format!(
        "[flow.page]\nname = \"p\"\n[[flow.page.object]]\nname = \"index\"\ntype = \"document\"\nsize = \"5 kB\"\n{objects}"
    )
}

fn small() -> String {
    page(&[("image", "1 kB"); 5])
}

fn scenario(path: &str, keys: &str, page: &str) -> Scenario {
    let text = format!("format = 1\n{path}[tcp]\nprofile = \"linux-6\"\n[[flow]]\nkind = \"page\"\n{keys}\n{page}");
    Scenario::read(&text, "page.toml", Path::new(""), &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn load<T>(scenario: &Scenario, figure: impl FnOnce(&PageFlow) -> T) -> T {
    let setup = Setup::new(scenario, Seed::new(scenario.seed)).expect("it can be built");
    let mut simulation = setup.start(None, None);
    assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished);
    let [Flow::Page(flow)] = simulation.flows() else { unreachable!("there is one flow") };
    figure(flow)
}

/// Page times of all views in round trips of 200 ms, rounded.
fn round_trips(keys: &str) -> Vec<u64> {
    let time = |view: &View| {
        let round_trips = view.time().expect("it is loaded").as_secs_f64() / 0.2;
        assert!((round_trips - round_trips.round()).abs() < 0.05, "{keys}: {round_trips}");
        round_trips.round() as u64
    };
    load(&scenario(LONG, keys, &small()), |flow| {
        assert_eq!(flow.cause(), None, "{keys}");
        flow.browser.views().iter().map(time).collect()
    })
}

#[test]
fn the_handshake_takes_a_round_trip_and_streams_share_the_connection() {
    // The handshake, the document, its objects. HTTP/2 has a round trip of TCP and one of TLS.
    assert_eq!(round_trips("protocol = \"h3\""), [3]);
    assert_eq!(round_trips("protocol = \"h2\"\ntls = \"TLSv1.3\""), [4]);
    assert_eq!(round_trips("protocol = \"h3\"\ndns = true"), [4]);
    let figures = load(&scenario(LONG, "protocol = \"h3\"", &small()), |flow| {
        assert_eq!(flow.browser.opened(), 1);
        Figures::of(&flow.browser.views()[0])
    });
    assert_eq!((figures.connections, figures.requests, figures.responses, figures.bytes), (1, 6, 6, 10_000));
    assert!(figures.idle_downlink.is_some());
}

#[test]
fn an_idle_connection_ends_and_the_next_view_opens_another() {
    let views = "protocol = \"h3\"\nviews = 2\n";
    assert_eq!(round_trips(&format!("{views}reading = \"5 s\"")), [3, 2]);
    assert_eq!(round_trips(&format!("{views}reading = \"5 s\"\nkeep_alive = \"1 s\"")), [3, 3]);
    // The idle time-out of QUIC, 30 s, is before that of the browser.
    assert_eq!(round_trips(&format!("{views}reading = \"40 s\"")), [3, 3]);
}

#[test]
fn a_connection_lost_with_a_request_aborts_the_flow() {
    let slow = "[flow.page]\nname = \"p\"\n[[flow.page.object]]\nname = \"index\"\ntype = \"document\"\n\
                size = \"5 kB\"\nwait = \"5 s\"\n";
    let keys = "protocol = \"h3\"\nquic = { idle_timeout = \"2 s\" }";
    let cause = load(&scenario(LONG, keys, slow), |flow| flow.cause().map(str::to_owned));
    assert!(cause.as_deref().is_some_and(|cause| cause.contains("idle time-out")), "{cause:?}");
}

#[test]
fn a_connection_that_is_never_open_aborts_the_flow() {
    let page = format!("{}[[change]]\nat = \"0 s\"\noutage = \"60 s\"\n", small());
    let cause = load(&scenario(LONG, "protocol = \"h3\"", &page), |flow| flow.cause().map(str::to_owned));
    assert_eq!(cause.as_deref(), Some("idle time-out, reported by the mobile"));
}

#[test]
fn requests_on_a_connection_that_the_server_has_left_are_repeated() {
    // The request of a later view waits for a dedicated channel, and comes after the server's idle
    // time-out.
    let path = "[bearer]\npreset = \"umts-r99-states\"\n";
    let keys = "page = \"umts-live-yahoo\"\nprotocol = \"h3\"\nviews = 3\nreading = \"29 s\"";
    load(&scenario(path, keys, ""), |flow| {
        assert_eq!(flow.cause(), None);
        assert!(flow.browser.opened() > 1, "the server has ended the first connection");
        assert!(flow.browser.views().iter().all(|view| view.loaded.is_some()));
    });
}

#[test]
fn streams_are_sent_by_urgency_then_in_order_or_in_turn() {
    let narrow = "[bearer]\nmodel = \"wired\"\ndownlink = { rate = \"1 Mbit/s\", delay = \"20 ms\" }\n\
                  uplink = { rate = \"1 Mbit/s\", delay = \"20 ms\" }\n";
    let objects =
        page(&[("image", "80 kB"), ("image", "80 kB"), ("data", "80 kB"), ("data", "80 kB"), ("style", "80 kB")]);
    let finished: Vec<f64> = load(&scenario(narrow, "protocol = \"h3\"", &objects), |flow| {
        let view = &flow.browser.views()[0];
        view.fetches.iter().map(|fetch| fetch.finished.expect("it is loaded").as_secs_f64()).collect()
    });
    let [_, image, image_too, data, data_too, style] = finished[..] else { unreachable!("there are six objects") };
    // 80 kB take 0.64 s. Data is not incremental, images are.
    assert!(style + 0.5 < data && data + 0.5 < data_too && data_too + 0.5 < image, "{finished:?}");
    assert!((image - image_too).abs() < 0.05, "{finished:?}");
}

#[test]
fn a_lost_packet_delays_its_own_stream_only() {
    let lossy = "[bearer]\nmodel = \"wired\"\n\
                 downlink = { rate = \"2 Mbit/s\", delay = \"100 ms\", loss = 0.03 }\n\
                 uplink = { rate = \"2 Mbit/s\", delay = \"100 ms\" }\n";
    // Data is not incremental: the servers send the objects one after the other.
    let objects = page(&[("data", "10 kB"); 40]);
    let overtakes = |keys: &str, seed: u64| {
        let text = format!("seed = {seed}\n{lossy}");
        load(&scenario(&text, keys, &objects), |flow| {
            let finished = flow.browser.views()[0].fetches.iter().map(|fetch| fetch.finished.expect("it is loaded"));
            let finished: Vec<_> = finished.collect();
            finished.windows(2).filter(|pair| pair[0] > pair[1]).count()
        })
    };
    let count = |keys: &str| (0..5).map(|seed| overtakes(keys, seed)).sum::<usize>();
    assert_eq!(count("protocol = \"h2\"\ntls = \"TLSv1.3\""), 0, "one stream of bytes keeps the order");
    let overtaken = count("protocol = \"h3\"");
    // An object has about 9 packets, and 3 % of them are lost.
    assert!(overtaken > 5, "{overtaken} objects of 200 were overtaken");
}

#[test]
fn equal_seeds_give_equal_events_and_pages_load_over_cellular_bearers() {
    for preset in ["gprs-3+1", "umts-dch-384", "lte-10mhz"] {
        let text = format!("[bearer]\npreset = \"{preset}\"\n");
        let scenario = scenario(&text, "protocol = \"h3\"", &small());
        let events = || {
            let mut memory = Memory::default();
            let setup = Setup::new(&scenario, Seed::new(3)).expect("it can be built");
            let mut simulation = setup.start(Some(&mut memory), None);
            assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished, "{preset}");
            let [Flow::Page(flow)] = simulation.flows() else { unreachable!("there is one flow") };
            assert!(flow.cause().is_none() && flow.browser.views()[0].time().is_some(), "{preset}");
            drop(simulation);
            memory
        };
        assert_eq!(events(), events(), "{preset}");
    }
}
