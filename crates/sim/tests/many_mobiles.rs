//! More mobiles than numbers of 16 bits: each has its own flow, packets and row.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::{Event, Memory, Seed, Sink, UserId};
use airpath_scenario::Scenario;
use airpath_sim::{Ended, Setup};

const CELL: &str = r#"
format = 1
duration = "60 s"

[bearer]
preset = "nb-iot-psm"

[[mobile]]
name = "device"
count = 100000

[[flow]]
name = "report"
kind = "ping"
mobile = "device-99999"
requests = 1

[[flow]]
name = "other"
kind = "ping"
mobile = "device-34463"
requests = 1
start = "30 s"
"#;

#[test]
fn a_packet_of_the_last_of_a_hundred_thousand_mobiles_is_its_own() {
    let scenario = Scenario::read(CELL, "test", Path::new(""), &[]).expect("a valid scenario");
    let setup = Setup::new(&scenario, Seed::new(1)).expect("a scenario that can be built");
    let names = setup.names();
    let mut log = Memory::default();
    let mut simulation = setup.start(Some(&mut log as &mut dyn Sink), None);
    assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished);
    assert_eq!(simulation.route().users(), 100_000);
    // In 16 bits, 99,999 would be 34,463.
    let hop = names.iter().position(|name| name == "server").expect("it has a name");
    for (flow, user) in [(0, 99_999), (1, 34_463)] {
        let packets: Vec<_> = log
            .events
            .iter()
            .filter_map(|(_, at, event)| match event {
                Event::Packet(event) if event.packet.flow.0 == flow => Some((at.0 as usize, event.packet.user)),
                _ => None,
            })
            .collect();
        assert!(packets.iter().all(|(_, of)| *of == UserId::new(user)), "{packets:?}");
        let ends = packets.iter().filter(|(at, _)| *at == hop + 1 + user as usize).count();
        assert_eq!((ends, names[hop + 1 + user as usize].as_str()), (2, format!("device-{user}").as_str()));
    }
    let senders: std::collections::BTreeSet<UserId> = log
        .events
        .iter()
        .filter_map(|(_, _, event)| if let Event::Radio(event) = event { Some(event.user) } else { None })
        .collect();
    assert_eq!(Vec::from_iter(senders), [34_463, 99_999].map(UserId::new));
}

#[test]
fn the_limit_of_mobiles_is_named() {
    let sets = [("mobile.0.count".to_owned(), "16000001".to_owned())];
    let error = Scenario::read(CELL, "test", Path::new(""), &sets).expect_err("too many").to_string();
    assert!(error.contains("mobile.0.count: 16000001 mobiles are too many for one run"), "{error}");
    assert!(error.contains("the limit is 16,000,000 mobiles"), "{error}");
}
