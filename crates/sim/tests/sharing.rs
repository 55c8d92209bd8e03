//! How two downloads share a wired bottleneck, by their congestion controls.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::Seed;
use airpath_scenario::Scenario;
use airpath_sim::Setup;
use airpath_sim::flow::Flow;

/// 10 Mbit/s and 40 ms: a product of 50 kB.
const PRODUCT: u32 = 50_000;

/// The parts of the delivered bytes in the last 50 of 60 s. The second download starts after 5 s.
fn shares(first: &str, second: &str, queue: u32) -> [f64; 2] {
    let text = format!(
        "format = 1\nduration = \"60 s\"\n[bearer]\nmodel = \"wired\"\n\
         downlink = {{ rate = \"10 Mbit/s\", delay = \"20 ms\", queue = {{ bytes = \"{queue} B\" }} }}\n\
         uplink = {{ rate = \"10 Mbit/s\", delay = \"20 ms\" }}\n\
         [[flow]]\nkind = \"download\"\nname = \"first\"\nbytes = \"1 GB\"\n\
         tcp = {{ congestion = {{ algorithm = \"{first}\" }} }}\n\
         [[flow]]\nkind = \"download\"\nname = \"second\"\nbytes = \"1 GB\"\nstart = \"5 s\"\n\
         tcp = {{ congestion = {{ algorithm = \"{second}\" }} }}\n"
    );
    let received = |duration: &str| {
        let sets = [("duration".to_owned(), duration.to_owned())];
        let scenario = Scenario::read(&text, "sharing.toml", Path::new(""), &sets).expect("it is valid");
        let mut simulation = Setup::new(&scenario, Seed::new(1)).expect("it can be built").start(None, None);
        simulation.run(&AtomicBool::new(false));
        [0, 1].map(|index| {
            let Flow::Transfer(flow) = &simulation.flows()[index] else { panic!("it is a download") };
            flow.receiver().received() as f64
        })
    };
    let (before, after) = (received("10 s"), received("60 s"));
    let bytes = [after[0] - before[0], after[1] - before[1]];
    let whole = bytes[0] + bytes[1];
    let used = whole * 8.0 / 50.0 / (10_000_000.0 * 1448.0 / 1500.0);
    let parts = bytes.map(|part| part / whole);
    println!("{first} and {second}, queue of {queue} B: {:.2} and {:.2}, {used:.2} used", parts[0], parts[1]);
    assert!(used > 0.85, "{first} and {second}: {used}");
    parts
}

#[test]
fn flows_of_the_same_kind_share_the_link() {
    for algorithm in ["new-reno", "cubic", "westwood+", "bbr", "bbr3", "copa", "ledbat++"] {
        let parts = shares(algorithm, algorithm, 4 * PRODUCT);
        assert!(parts.iter().all(|part| *part > 0.3), "{algorithm}: {parts:?}");
    }
    // The queue of the first is a part of the least round trip that the second measures (Mo, La,
    // Anantharam and Walrand, Infocom 1999, section IV).
    let [first, second] = shares("vegas", "vegas", 4 * PRODUCT);
    assert!(first < second, "Vegas: {first}, {second}");
}

#[test]
fn controls_share_the_link_with_cubic() {
    for queue in [1, 4, 16] {
        let beside_cubic = |algorithm| shares("cubic", algorithm, queue * PRODUCT)[1];
        let [westwood, vegas, bbr, copa] = ["westwood+", "vegas", "bbr", "copa"].map(beside_cubic);
        // Mo, La, Anantharam and Walrand, Infocom 1999: the more the queue holds, the less it has.
        assert!(vegas < 0.3, "Vegas, {queue}: {vegas}");
        match queue {
            // Copa has a mode for this (Arun and Balakrishnan, NSDI 2018, section 2.2). Westwood+
            // halves as NewReno does if the queue holds the product.
            1 => {
                assert!((0.2..0.8).contains(&copa), "Copa: {copa}");
                assert!((0.2..0.8).contains(&westwood), "Westwood+: {westwood}");
                // Hock, Bless and Zitterbart, ICNP 2017: more of a short queue, less of a deep one.
                assert!(bbr > 0.5, "BBR: {bbr}");
            }
            16 => assert!(bbr < 0.5, "BBR: {bbr}"),
            _ => {}
        }
    }
}

#[test]
fn background_traffic_yields() {
    // A queue of 160 ms is more than the target of 60 ms.
    let [background, cubic] = shares("ledbat++", "cubic", 4 * PRODUCT);
    assert!(background < 0.15 && cubic > 0.85, "{background}");
}

#[test]
fn bbr_neither_starves_beside_cubic_nor_starves_it() {
    for queue in [1, 4, 16] {
        let parts = shares("cubic", "bbr3", queue * PRODUCT);
        assert!(parts.iter().all(|part| *part > 0.1), "{queue}: {parts:?}");
    }
}

#[test]
fn a_clamp_of_the_receive_window_keeps_a_deep_queue_short() {
    // 50 kB are the product of the link; the queue holds 800 ms.
    let round_trip = |clamp: &str| {
        let text = format!(
            "format = 1\nduration = \"20 s\"\n[bearer]\nmodel = \"wired\"\n\
             downlink = {{ rate = \"10 Mbit/s\", delay = \"20 ms\", queue = {{ bytes = \"1 MB\" }} }}\n\
             uplink = {{ rate = \"10 Mbit/s\", delay = \"20 ms\" }}\n\
             [tcp]\nreceive_buffer.clamp = \"{clamp}\"\n\
             [[flow]]\nkind = \"download\"\nbytes = \"1 GB\"\n"
        );
        let scenario = Scenario::read(&text, "clamp.toml", Path::new(""), &[]).expect("it is valid");
        let mut simulation = Setup::new(&scenario, Seed::new(1)).expect("it can be built").start(None, None);
        simulation.run(&AtomicBool::new(false));
        let Flow::Transfer(flow) = &simulation.flows()[0] else { panic!("it is a download") };
        let goodput = flow.receiver().received() as f64 * 8.0 / 20.0 / 1e6;
        (flow.sender().smoothed_round_trip().expect("it is measured").as_secs_f64(), goodput)
    };
    let (free, clamped, small) = (round_trip("unlimited"), round_trip("60 kB"), round_trip("25 kB"));
    assert!(free.0 > 0.2 && free.1 > 9.0, "{free:?}");
    assert!(clamped.0 < 0.06 && clamped.1 > 9.0, "{clamped:?}");
    assert!(small.0 < 0.05 && small.1 < 6.0, "half of the product: {small:?}");
}
