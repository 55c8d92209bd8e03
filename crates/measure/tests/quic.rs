//! Bulk transfers over QUIC between a client and a responder, on the loopback interface.

use std::sync::atomic::{AtomicBool, Ordering};

use airpath_app::Transfer;
use airpath_core::{Bytes, Direction, Span};
use airpath_measure::work::{Bulk, TcpSettings, Work};
use airpath_measure::{Family, Hooks, Request, Responder, measure};
use airpath_quic::Config;

/// Runs `work` against a responder of its own; returns the rows of the flows as JSON.
fn flows_of(work: Work) -> Vec<serde_json::Value> {
    let responder = Responder::bind(Some("127.0.0.1:0")).expect("a free port");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| responder.run(&stop));
        let host = responder.addresses()[0].to_string();
        let request = Request { host, family: Family::Any, work, icmp: false, limit: Span::from_secs(60) };
        let hooks = Hooks { stop: &AtomicBool::new(false), progress: &|_, _| (), ready: &|_| () };
        let summary = measure(&request, None, &hooks);
        stop.store(true, Ordering::Relaxed);
        let summary = serde_json::to_value(summary.expect("a measurement")).expect("JSON");
        summary["flows"].as_array().expect("flows").clone()
    })
}

fn bulk(direction: Direction, request: u64, flows: u32, quic: Config) -> Work {
    let transfer = Transfer { direction, bytes: Bytes::new(1_000_000), request: Bytes::new(request) };
    Work::Bulk(Bulk { transfer, flows, tcp: TcpSettings::default(), quic: Some(quic) })
}

#[test]
fn transfers_over_sockets_finish_in_both_directions() {
    for (direction, request) in [(Direction::Down, 0), (Direction::Down, 100), (Direction::Up, 0)] {
        let flows = flows_of(bulk(direction, request, 2, Config::default()));
        assert_eq!(flows.len(), 2);
        for flow in flows {
            assert_eq!(flow["outcome"], "finished", "{direction:?}: {flow}");
            assert_eq!(flow["delivered_bytes"], 1_000_000, "{direction:?}: {flow}");
            assert_eq!(flow["tcp"]["profile"], "quic-quinn");
            // Both ends report: STREAM frames of the sender, ACK frames of the receiver.
            assert!(flow["data_packets"].as_u64() > Some(600), "{direction:?}: {flow}");
            assert!(flow["ack_packets"].as_u64() > Some(10), "{direction:?}: {flow}");
        }
    }
}

#[test]
fn wrong_settings_are_refused() {
    let check = |work: Work| work.check().expect_err("it is wrong");
    let message = check(bulk(Direction::Down, 0, 1, Config { datagram_size: 9000, ..Config::default() }));
    assert!(message.contains("1200 to 1472"), "{message}");
    let wide = Config { receive_window: Bytes::new(1 << 40), ..Config::default() };
    let message = check(bulk(Direction::Up, 0, 1, wide));
    assert!(message.contains("receive_window") && message.contains("at most 64000000"), "{message}");
    let Work::Bulk(good) = bulk(Direction::Up, 0, 1, Config::default()) else { unreachable!("it is bulk") };
    let tcp = TcpSettings { no_delay: true, ..TcpSettings::default() };
    assert!(check(Work::Bulk(Bulk { tcp, ..good })).contains("no effect on QUIC"));
}
