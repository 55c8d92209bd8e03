//! Pages through a proxy that reads HTTP. The path costs a round trip of 200 ms between proxy and
//! servers and none between proxy and mobile, so page times are round trips of the proxy.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_app::web::View;
use airpath_core::Seed;
use airpath_result::summary::Ended;
use airpath_scenario::Scenario;
use airpath_sim::flow::Flow;
use airpath_sim::{Setup, Simulation};

/// A document of 8 kB and four images of 1 kB. `proxy` has the keys of `proxy.http`.
fn read(flows: &str, proxy: &str) -> Scenario {
    let page = |cache: &str| {
        let images = (0..4).map(|index| {
            format!(
                "[[flow.page.object]]\nname = \"{index}\"\ntype = \"image\"\nsize = \"1 kB\"\ncache = \"{cache}\"\n"
            )
        });
        format!(
            "[flow.page]\nname = \"p\"\n[[flow.page.object]]\nname = \"index\"\ntype = \"document\"\nsize = \"8 kB\"\n\
             compressed = \"2 kB\"\ncache = \"{cache}\"\n{}",
            images.collect::<String>()
        )
    };
    let flows = flows.replace("FRESH", &page("fresh")).replace("VALIDATED", &page("revalidate"));
    let text = format!(
        "format = 1\nduration = \"600 s\"\n[bearer]\npreset = \"wired\"\n[fixed]\ndelay = \"100 ms\"\n\
         [tcp]\nprofile = \"linux-6\"\n[proxy]\naccept = \"early\"\nprofile = \"linux-6\"\n[proxy.http]\n{proxy}\n\
         {flows}"
    );
    Scenario::read(&text, "page.toml", Path::new(""), &[]).expect("it is valid")
}

fn run<T>(scenario: &Scenario, figure: impl FnOnce(&Simulation<'_>) -> T) -> T {
    let mut simulation = Setup::new(scenario, Seed::new(1)).expect("it can be built").start(None, None);
    assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished);
    figure(&simulation)
}

fn views<T>(flow: &Flow, figure: impl FnMut(&View) -> T) -> Vec<T> {
    let Flow::Page(flow) = flow else { panic!("it is not a page") };
    assert_eq!(flow.cause(), None);
    flow.browser.views().iter().map(figure).collect()
}

/// Page times in round trips, by flow and view.
fn round_trips(flows: &str, proxy: &str) -> Vec<Vec<u64>> {
    let time = |view: &View| {
        let round_trips = view.time().expect("it is loaded").as_secs_f64() / 0.2;
        assert!((round_trips - round_trips.round()).abs() < 0.1, "{proxy}: {round_trips}");
        round_trips.round() as u64
    };
    run(&read(flows, proxy), |simulation| simulation.flows().iter().map(|flow| views(flow, time)).collect())
}

/// A counter of the proxy.
fn counter(simulation: &Simulation<'_>, name: &str) -> u64 {
    let found = simulation.hops().flat_map(|(_, hop)| hop.statistics()).find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("there is no counter {name}")).1
}

#[test]
fn a_proxy_that_only_relays_changes_nothing() {
    // A handshake and the document. Then the second connection needs a handshake for the first of
    // four images, and the first connection has two until that has arrived.
    let page = "[[flow]]\nkind = \"page\"\nconnections = 2\nFRESH";
    assert_eq!(round_trips(page, ""), [[2 + 3]]);
    let serial = "[[flow]]\nkind = \"page\"\nconnections = 1\nFRESH";
    assert_eq!(round_trips(serial, ""), [[2 + 4]]);
}

/// Text and counted bytes take the same time where the proxy changes nothing.
#[test]
fn text_takes_as_long_as_counted_bytes() {
    let text = |http: &str| {
        format!(
            "format = 1\nduration = \"600 s\"\n[bearer]\npreset = \"gprs-3+1\"\n[fixed]\ndelay = \"5 ms\"\n\
             [tcp]\nprofile = \"linux-2.4\"\n[proxy]\nbudget = \"10 kB\"\nprofile = \"linux-2.4\"\n{http}\n\
             [[flow]]\nkind = \"page\"\npage = \"static-site\"\nprotocol = \"http/1.0\"\nconnections = 8\n"
        )
    };
    let times = ["", "[proxy.http]"].map(|http| {
        let scenario = Scenario::read(&text(http), "page.toml", Path::new(""), &[]).expect("it is valid");
        run(&scenario, |simulation| views(&simulation.flows()[0], |view| view.time().expect("it is loaded")))
    });
    assert_eq!(times[0], times[1]);
}

#[test]
fn pipelined_requests_are_fetched_in_parallel() {
    let wait = "FRESH[[flow.page.object]]\nname = \"slow\"\ntype = \"image\"\nsize = \"1 kB\"\nwait = \"200 ms\"\n";
    let page = |pipeline: &str| format!("[[flow]]\nkind = \"page\"\nconnections = 1\n{pipeline}{wait}");
    // Two requests go over the connection, or one over each of five.
    let pipelined = page("pipeline = { depth = 8 }\n");
    assert_eq!(round_trips(&pipelined, "pipelining = 1"), [[2 + 2]]);
    assert_eq!(round_trips(&pipelined, "pipelining = 8"), [[2 + 3]], "a handshake comes first");
    let parallel = run(&read(&pipelined, "pipelining = 8"), |simulation| counter(simulation, "parallel_requests"));
    assert_eq!(parallel, 4);
    assert_eq!(round_trips(&page(""), "pipelining = 8"), [[2 + 4 + 2]], "nothing is pipelined");
}

#[test]
fn mobiles_share_a_cache() {
    let flow = |keys: &str| format!("[[flow]]\nkind = \"page\"\nconnections = 1\n{keys}\n");
    // Neither browser has a cache of its own.
    let fresh = flow("views = 2\ncache = false\nFRESH") + &flow("start = \"100 s\"\nFRESH");
    assert_eq!(round_trips(&fresh, "cache = \"1 MB\""), [vec![2 + 4, 0], vec![0]]);
    let validated = flow("views = 2\ncache = false\nVALIDATED") + &flow("start = \"100 s\"\nVALIDATED");
    let times = round_trips(&validated, "cache = \"1 MB\"");
    assert_eq!(times[0], [2 + 4, 1 + 4], "each object is validated");
    let (stored, validations) = run(&read(&validated, "cache = \"1 MB\""), |simulation| {
        (counter(simulation, "cache_stored"), counter(simulation, "cache_validations"))
    });
    assert_eq!((stored, validations), (5, 10));
}

#[test]
fn kept_server_connections_save_handshakes() {
    let page = "[[flow]]\nkind = \"page\"\nconnections = 1\nkeep_alive = \"1 s\"\nviews = 2\ncache = false\nFRESH";
    assert_eq!(round_trips(page, ""), [[2 + 4, 2 + 4]]);
    assert_eq!(round_trips(page, "server_pool = 2"), [[2 + 4, 1 + 4]]);
}

/// The mobile is 1 s away, so the proxy has the images before it requests them. Only the round trip
/// of the connection and that of the document then reach a server.
#[test]
fn objects_that_a_document_names_are_prefetched() {
    let scenario = |compression: bool, http: &str| {
        let images = (0..4).map(|index| {
            let at = 100 * (index + 1);
            format!(
                "[[flow.page.object]]\nname = \"{index}\"\ntype = \"image\"\nsize = \"1 kB\"\ncache = \"fresh\"\n\
                 at = \"{at} B\"\n"
            )
        });
        let text = format!(
            "format = 1\nduration = \"600 s\"\n[bearer]\npreset = \"wired\"\ndelay = \"500 ms\"\n[fixed]\n\
             delay = \"100 ms\"\n[tcp]\nprofile = \"linux-6\"\n[proxy]\naccept = \"early\"\nprofile = \"linux-6\"\n\
             [proxy.http]\ncache = \"1 MB\"\n{http}\n[[flow]]\nkind = \"page\"\nconnections = 1\n\
             compression = {compression}\n[flow.page]\nname = \"p\"\n[[flow.page.object]]\nname = \"index\"\n\
             type = \"document\"\nsize = \"8 kB\"\ncompressed = \"2 kB\"\n{}\n[[flow.page.object]]\n\
             name = \"secret\"\ntype = \"image\"\nsize = \"1 kB\"\nat = \"600 B\"\n",
            images.collect::<String>()
        );
        Scenario::read(&text, "page.toml", Path::new(""), &[]).expect("it is valid")
    };
    for compression in [false, true] {
        let time = |http: &str| {
            run(&scenario(compression, http), |simulation| {
                let time = views(&simulation.flows()[0], |view| view.time().expect("it is loaded").as_secs_f64())[0];
                let names = ["prefetched", "prefetched_used", "prefetches_failed"];
                (time, names.map(|name| counter(simulation, name)))
            })
        };
        let ((before, none), (after, counters)) = (time(""), time("prefetch = 8"));
        assert_eq!((none, counters), ([0; 3], [4, 4, 1]), "what is not to be stored is not used");
        assert!((before - after - 4.0 * 0.2).abs() < 0.02, "{before} {after}");
    }
}

#[test]
fn text_is_compressed_and_images_are_not() {
    let received = |proxy: &str| {
        let page = "[[flow]]\nkind = \"page\"\ncompression = false\nFRESH";
        run(&read(page, proxy), |simulation| {
            views(&simulation.flows()[0], |view| view.fetches.iter().map(|fetch| fetch.received).collect::<Vec<_>>())
        })
    };
    assert_eq!(received(""), [[8_000, 1_000, 1_000, 1_000, 1_000]]);
    let compressed = &received("compression = true")[0];
    // The proxy completes a block whenever the mobile has nothing to receive.
    assert!((2_000..2_300).contains(&compressed[0]), "{compressed:?}");
    assert_eq!(compressed[1..], [1_000; 4]);
}

#[test]
fn other_flows_pass_at_transport_level() {
    let flows = "[[flow]]\nkind = \"page\"\nFRESH\n[[flow]]\nkind = \"download\"\nbytes = \"50 kB\"\n\
                 [[flow]]\nkind = \"page\"\ntls = \"TLSv1.3\"\nFRESH";
    run(&read(flows, "server_pool = 2\npipelining = 4"), |simulation| {
        assert!(simulation.flows().iter().all(Flow::is_over));
        assert_eq!(counter(simulation, "requests"), 5);
        assert!(counter(simulation, "bypassed_bytes_other_port") > 50_000 + 12_000);
        let Flow::Page(protected) = &simulation.flows()[2] else { panic!("it is a page") };
        assert!(protected.browser.views()[0].time().is_some());
    });
}

#[test]
fn what_has_no_meaning_in_a_simulation_is_refused() {
    let refused = |flows: &str, proxy: &str| match Setup::new(&read(flows, proxy), Seed::new(1)) {
        Ok(_) => panic!("it is accepted"),
        Err(error) => error.to_string(),
    };
    let page = "[[flow]]\nkind = \"page\"\nFRESH";
    for (key, value) in [("image_quality", "50"), ("dictionaries", "\"1 MB\""), ("address", "\"198.51.100.1:8080\"")] {
        let message = refused(page, &format!("{key} = {value}"));
        assert!(message.contains(&format!("proxy.http.{key}")), "{message}");
    }
    let message = refused("[[flow]]\nkind = \"download\"\nbytes = \"1 kB\"", "");
    assert!(message.contains("proxy.http") && message.contains("page"), "{message}");
    let protected = "[[flow]]\nkind = \"page\"\ntls = \"TLSv1.3\"\nFRESH";
    assert!(refused(protected, "").contains("clear text"), "nothing can be read");
    assert!(refused(page, "ports = [8080]").contains("proxy.http.ports"), "the servers have port 80");
}
