//! Flows with several connections: their access link, a proxy, and their ends.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::{Instant, Seed, Span};
use airpath_scenario::Scenario;
use airpath_sim::flow::Flow;
use airpath_sim::{Ended, Setup, Simulation};

/// 40 ms of round trip, and 40 ms more to the proxy.
const WIRED: &str = "format = 1\nduration = \"600 s\"\n[fixed]\ndelay = \"20 ms\"\n[bearer]\nmodel = \"wired\"\n\
                     downlink = { rate = \"8 Mbit/s\", delay = \"20 ms\" }\n\
                     uplink = { rate = \"8 Mbit/s\", delay = \"20 ms\" }\n";

/// Runs a scenario on these links to its end, and looks at its flows.
fn finished<T>(more: &str, look: impl FnOnce(&Simulation<'_>) -> T) -> T {
    let scenario = Scenario::read(&format!("{WIRED}{more}"), "test.toml", Path::new(""), &[]).expect("it is valid");
    let mut simulation = Setup::new(&scenario, Seed::new(1)).expect("it can be built").start(None, None);
    assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished, "{more}");
    look(&simulation)
}

#[test]
fn all_connections_of_a_flow_cross_its_access_link() {
    let ftp = "[access]\nrate = \"100 kbit/s\"\n[[flow]]\nkind = \"ftp\"\nfile = \"100 kB\"\n";
    for number in ["", "[[flow]]\nkind = \"ping\"\nrequests = 1\n"] {
        let time = finished(&format!("{ftp}{number}"), |simulation| {
            let Flow::Ftp(flow) = &simulation.flows()[0] else { panic!("it is a session of FTP") };
            flow.client.transfer_time()
        });
        // 100 kB take 8 s without headers.
        assert!((Span::from_secs(8)..Span::from_secs(9)).contains(&time), "{time}");
    }
}

#[test]
fn a_connection_begins_while_a_proxy_closes_the_one_before() {
    let flow = "[[flow]]\nkind = \"transactions\"\nresponse = \"500 B\"\nconnections = \"each\"\ntransactions = 5\n";
    let longest = |proxy: &str| {
        finished(&format!("{proxy}{flow}"), |simulation| {
            let Flow::Transactions(flow) = &simulation.flows()[0] else { panic!("they are transactions") };
            assert_eq!(flow.client.latencies().count(), 5);
            flow.client.latencies().iter().max().expect("there are five")
        })
    };
    let (plain, split) = (longest(""), longest("[proxy]\n"));
    // Two round trips; the first of them ends at the proxy.
    assert!(plain < Span::from_millis(170), "{plain}");
    assert!(split < Span::from_millis(130), "{split}");
}

#[test]
fn transactions_end_whose_time_is_over_before_their_connection_is_open() {
    for transport in ["tcp", "quic-quinn"] {
        for duration in ["0 s", "10 ms"] {
            let flow = format!(
                "[[flow]]\nkind = \"transactions\"\nresponse = \"500 B\"\nduration = \"{duration}\"\n\
                 transport = \"{transport}\"\n"
            );
            finished(&flow, |simulation| {
                let cause = match &simulation.flows()[0] {
                    Flow::Transactions(flow) => flow.cause(),
                    Flow::QuicTransactions(flow) => flow.cause(),
                    _ => panic!("they are transactions"),
                };
                assert_eq!(cause, None, "{flow}");
                assert!(simulation.now() < Instant::ZERO + Span::from_secs(1), "{flow}: {}", simulation.now());
            });
        }
    }
}

#[test]
fn a_connection_that_is_lost_while_it_closes_aborts_no_transactions() {
    // Nothing arrives after the response.
    let away = "[[change]]\nat = \"170 ms\"\nto = \"fixed\"\nloss = 1.0\n";
    for connections in ["one", "each"] {
        let flow = format!(
            "{away}[[flow]]\nkind = \"transactions\"\nresponse = \"500 B\"\ntransactions = 1\n\
             connections = \"{connections}\"\ntcp = {{ retransmission_timeout = {{ retries = 5 }} }}\n"
        );
        finished(&flow, |simulation| {
            let Flow::Transactions(flow) = &simulation.flows()[0] else { panic!("they are transactions") };
            assert_eq!((flow.client.latencies().count(), flow.cause()), (1, None), "{connections}");
            assert!(simulation.now() > Instant::ZERO + Span::from_secs(5), "{connections}: {}", simulation.now());
        });
    }
}
