//! The phase of periodic packets relative to the TTIs of the bearer.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_app::Samples;
use airpath_app::arrivals::Arrival;
use airpath_core::{Seed, Span};
use airpath_scenario::Scenario;
use airpath_sim::Setup;
use airpath_sim::flow::Flow;

/// The round trips of a ping over `preset`.
fn round_trips(preset: &str, interval: &str, phase: &str) -> Samples {
    let text = format!(
        "format = 1\nduration = \"10 min\"\nbearer.preset = \"{preset}\"\n\
         [[flow]]\nkind = \"ping\"\nrequests = 300\ninterval = \"{interval}\"\n{phase}"
    );
    let scenario = Scenario::read(&text, "test", Path::new(""), &[]).expect("a valid scenario");
    let mut run = Setup::new(&scenario, Seed::new(1)).expect("a runnable scenario").start(None, None);
    run.run(&AtomicBool::new(false));
    let [Flow::Ping(flow)] = run.flows() else { panic!("one ping") };
    flow.pinger.round_trips().clone()
}

fn quantile(times: &Samples, share: f64) -> Span {
    times.quantile(share).expect("there are replies")
}

/// An interval that is no multiple of a TTI samples all phases: the reference.
#[test]
fn an_interval_of_many_ttis_gives_the_same_median_as_another() {
    for preset in ["umts-r99-384", "hsdpa-cat6", "hspa-plus-42", "umts-dch-384", "gprs-3+1"] {
        let median = |interval, phase| quantile(&round_trips(preset, interval, phase), 0.5).as_secs_f64();
        let (locked, reference) = (median("1 s", ""), median("1.0013 s", "phase = \"0 s\""));
        assert!((locked / reference - 1.0).abs() < 0.03, "{preset}: {locked} and {reference} s");
    }
}

#[test]
fn a_fixed_phase_is_the_same_for_each_request() {
    let [late, early] = ["phase = \"3 ms\"", "phase = \"0 s\""].map(|phase| {
        let times = round_trips("umts-dch-384", "1 s", phase);
        let (least, median) = (quantile(&times, 0.0), quantile(&times, 0.5));
        assert_eq!(least, median, "{phase}: all but repeated blocks take the same time");
        median
    });
    assert_eq!(early, late + Span::from_millis(3), "requests wait for the same TTI");
}

/// The arrivals of two tables of datagrams at random times, over links of their own.
fn arrivals(names: [&str; 2]) -> [Vec<Arrival>; 2] {
    let table = |name, mobile| {
        format!(
            "[[mobile]]\nname = \"{mobile}\"\n[[flow]]\nname = \"{name}\"\nkind = \"datagrams\"\nmobile = \"{mobile}\"\n\
             direction = \"up\"\nspacing = {{ from = \"1 s\", to = \"3 s\" }}\nduration = \"20 s\"\n"
        )
    };
    let [one, other] = [table(names[0], "one"), table(names[1], "other")];
    let text = format!("format = 1\nbearer.preset = \"wired\"\naccess.loss = 0.2\n{one}{other}");
    let scenario = Scenario::read(&text, "test", Path::new(""), &[]).expect("a valid scenario");
    let mut run = Setup::new(&scenario, Seed::new(1)).expect("a runnable scenario").start(None, None);
    run.run(&AtomicBool::new(false));
    let [Flow::Datagrams(one), Flow::Datagrams(other)] = run.flows() else { panic!("two streams") };
    [one, other].map(|flow| flow.receiver.arrivals().to_vec())
}

#[test]
fn flows_of_the_same_name_are_independent() {
    let [first, second] = arrivals(["meter", "meter"]);
    assert_ne!(first, second, "they would send, and lose packets, at the same times");
    assert_eq!(first, arrivals(["meter", "other"])[0], "the first has the numbers of a flow with its name alone");
}
