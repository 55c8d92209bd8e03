//! The contracts of ARCHITECTURE.md, held by whole runs of scenarios drawn at random.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::{Direction, Event, Memory, PacketEvent, Seed, Sink, StateEvent};
use airpath_scenario::Scenario;
use airpath_sim::{Ended, Setup};
use proptest::prelude::*;

/// A run's log, how it ended, and what each hop counted.
struct Run {
    log: Memory,
    ended: Ended,
    packets_inside: u64,
    counters: Vec<airpath_core::PacketCounters>,
}

fn run(text: &str, repetition: u64) -> Run {
    let scenario = Scenario::read(text, "test", Path::new(""), &[]).expect("a valid scenario");
    let mut log = Memory::default();
    let setup = Setup::new(&scenario, Seed { seed: scenario.seed, repetition }).expect("a scenario that can be built");
    let mut simulation = setup.start(Some(&mut log as &mut dyn Sink), None);
    let ended = simulation.run(&AtomicBool::new(false));
    let packets_inside = simulation.packets_inside();
    let counters =
        simulation.hops().flat_map(|(_, hop)| Direction::BOTH.map(|direction| hop.counters(direction))).collect();
    drop(simulation);
    Run { log, ended, packets_inside, counters }
}

prop_compose! {
    fn scenario()(
        preset in prop::sample::select(vec!["umts-dch-384", "umts-dch-64", "hs-dsch-384", "hs-dsch-360", "hs-dsch-classes-abc"]),
        profile in prop::sample::select(vec!["ns2-newreno", "windows-nt4", "windows-xp", "linux-2.0", "linux-2.4", "linux-6"]),
        bler in prop::sample::select(vec![0.0, 0.01, 0.1, 0.3]),
        loss in prop::sample::select(vec![0.0, 0.01, 0.05]),
        queue in 3u32..60,
        kilobytes in 1u64..200,
        mobiles in 1u16..4,
        seed in 0u64..1_000_000,
        upload: bool,
        probes: bool,
        video: bool,
    ) -> String {
        let class = if preset == "hs-dsch-classes-abc" { "class = \"b\"" } else { "" };
        let mut text = format!(
            "format = 1\nseed = {seed}\nduration = \"300 s\"\n\
             [fixed]\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\nloss = {loss}\nqueue = {{ packets = {queue} }}\n\
             [bearer]\npreset = \"{preset}\"\nbler = {bler}\n\
             [tcp]\nprofile = \"{profile}\"\n\
             [[mobile]]\nname = \"m\"\ncount = {mobiles}\n{class}\n\
             [[flow]]\nkind = \"download\"\nbytes = \"{kilobytes} kB\"\nrequest = \"300 B\"\nstagger = \"30 ms\"\n",
        );
        if upload {
            text += "[[flow]]\nkind = \"upload\"\nbytes = \"20 kB\"\n";
        }
        if video {
            text += "[[flow]]\nkind = \"stream\"\nvideo = { rate = \"40 kbit/s\", duration = \"8 s\" }\n\
                     repair = \"nack\"\nspeed = 2\nahead = \"3 s\"\nprobes = true\n";
        }
        if probes {
            text += "[[flow]]\nkind = \"ping\"\ninterval = \"200 ms\"\nrequests = 20\n\
                     [[flow]]\nkind = \"datagrams\"\ndirection = \"down\"\nrate = \"50 kbit/s\"\nsize = 200\nduration = \"5 s\"\n";
        }
        text
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 5))]

    #[test]
    fn packets_are_conserved_and_every_flow_ends(text in scenario()) {
        let run = run(&text, 0);
        prop_assert_eq!(run.ended, Ended::Finished);
        for counters in &run.counters {
            prop_assert!(counters.is_conserved(), "{:?}", counters);
        }
        let inside: u64 = run.counters.iter().map(|counters| counters.queued.packets).sum();
        prop_assert_eq!(inside, run.packets_inside, "what hops hold is what was sent and has not ended");
    }

    #[test]
    fn the_same_scenario_and_seed_give_the_same_log(text in scenario()) {
        let (first, again, other) = (run(&text, 0), run(&text, 0), run(&text, 1));
        prop_assert_eq!(&first.log, &again.log);
        let chance = text.contains("loss = 0.05") && text.contains("bler = 0.3");
        prop_assert!(!chance || first.log != other.log, "another repetition has other random numbers");
    }

    #[test]
    fn the_resolved_scenario_gives_the_same_run(text in scenario()) {
        let resolved = Scenario::read(&text, "test", Path::new(""), &[]).expect("valid").to_toml();
        prop_assert_eq!(&run(&text, 0).log, &run(&resolved, 0).log, "{}", resolved);
    }

    #[test]
    fn the_events_of_a_user_are_in_order(text in scenario()) {
        let mut last = std::collections::BTreeMap::new();
        for (time, at, event) in run(&text, 0).log.events {
            let source = match event {
                Event::Packet(PacketEvent { step, direction, packet }) => {
                    (at, 0, direction as u32, packet.user.number(), step.name())
                }
                Event::Radio(radio) => (at, 1, radio.direction as u32, radio.user.number(), ""),
                Event::Tcp(tcp) => (at, 2, tcp.direction as u32, tcp.flow.0, ""),
                Event::App(app) => (at, 3, 0, app.flow.0, ""),
                Event::Quic(quic) => (at, 6, quic.direction as u32, quic.flow.0, quic.step.name()),
                Event::Change(_) => (at, 4, 0, 0, ""),
                Event::State(StateEvent { user, direction, aspect, .. }) => {
                    (at, 5, direction.map_or(2, |direction| direction as u32), user.number(), aspect.name())
                }
            };
            let before = last.insert(source, time);
            prop_assert!(before.is_none_or(|before| before <= time), "{:?} at {} after {:?}", source, time, before);
        }
    }
}

/// Chance elsewhere is not disturbed when a component is added: contract 5.
#[test]
fn another_mobile_does_not_change_the_draws_of_the_first() {
    let text = |more: &str| {
        format!(
            "format = 1\nseed = 3\n[bearer]\npreset = \"umts-dch-384\"\nbler = 0.2\n[tcp]\nprofile = \"linux-6\"\n\
             [fixed]\ndelay = \"20 ms\"\n[[mobile]]\nname = \"first\"\n{more}\
             [[flow]]\nkind = \"download\"\nbytes = \"200 kB\"\nmobile = \"first\"\n"
        )
    };
    let radio = |text: &str| -> Vec<_> {
        let events = run(text, 0).log.events;
        events
            .into_iter()
            .filter(|(.., event)| matches!(event, Event::Radio(_)))
            .map(|(time, _, event)| (time, event))
            .collect()
    };
    let alone = radio(&text(""));
    let together = radio(&text("[[mobile]]\nname = \"second\"\ncount = 2\n"));
    assert!(alone.len() > 100);
    assert_eq!(alone, together);
}
