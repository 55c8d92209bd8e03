//! Downloads over a virtual link: determinism, early polls, TLS, and a deep queue.

mod support;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use airpath_core::{Bytes, Direction, Instant, QuicEvent, QuicPacketType, QuicStep};
use airpath_quic::{Config, Connection, Controller};
use support::{Done, Run, download, drive, identities};

#[test]
fn a_download_fills_the_link() {
    for congestion in [Controller::Cubic, Controller::NewReno] {
        let base = Run::default();
        let done = download(&Run { config: Config { congestion, ..base.config.clone() }, ..base.clone() });
        let seconds = done.finished.expect("it finishes").as_secs_f64();
        // At least the time of the bytes at the rate, and most of it in use.
        let least = 8.0 * base.bytes as f64 / base.rate as f64;
        assert!((least..1.25 * least).contains(&seconds), "{congestion:?}: {seconds} s of {least} s");
        assert!(done.dropped > 0, "slow start fills the queue");
    }
}

/// The run whose digest two processes compare.
fn reference() -> Done {
    download(&Run { bytes: 4 << 20, ..Run::default() })
}

/// Prints the digest for [`two_processes_send_the_same_bytes_at_the_same_times`].
#[test]
fn the_reference_run_finishes() {
    let done = reference();
    println!("digest {:016x}", done.digest);
    assert!(done.finished.is_some(), "{done:?}");
}

#[test]
fn two_processes_send_the_same_bytes_at_the_same_times() {
    let digest = || {
        let program = std::env::current_exe().expect("this test has a path");
        let arguments = ["--exact", "the_reference_run_finishes", "--nocapture"];
        let output = Command::new(program).args(arguments).output().expect("it can be run");
        let text = String::from_utf8(output.stdout).expect("it prints text");
        let at = text.find("digest ").expect("it prints the digest");
        text[at + 7..at + 23].to_owned()
    };
    let first = digest();
    assert_eq!(first, digest());
    assert_eq!(first, format!("{:016x}", reference().digest));
}

#[test]
fn a_seed_changes_the_bytes_and_hardly_the_times() {
    let base = Run { bytes: 4 << 20, ..Run::default() };
    let (one, two) = (download(&base), download(&Run { seed: 2, ..base }));
    assert_ne!(one.digest, two.digest);
    let seconds = |done: &Done| done.finished.expect("it finishes").as_secs_f64();
    assert!((seconds(&one) / seconds(&two) - 1.0).abs() < 0.02, "{one:?} {two:?}");
}

#[test]
fn early_calls_change_nothing() {
    for congestion in Controller::ALL {
        let config = Config { congestion, ..Config::default() };
        let base = Run { bytes: 2 << 20, config, ..Run::default() };
        assert_eq!(download(&base), download(&Run { early_polls: true, ..base.clone() }), "{congestion:?}");
    }
}

/// A download with TLS 1.3, and the size of its certificate.
fn download_with_tls(run: &Run) -> Done {
    let (server, client) = airpath_testing::tls();
    let client = quinn_proto::crypto::rustls::QuicClientConfig::try_from(client).expect("it has an initial suite");
    let server = quinn_proto::crypto::rustls::QuicServerConfig::try_from(server).expect("it has an initial suite");
    let config = Arc::new(run.config.clone());
    let [client_id, server_id] = identities(run);
    let config_of_client = Arc::clone(&config);
    let client = Connection::connect_with(config_of_client, client_id, Instant::ZERO, Arc::new(client), "server.test");
    drive(run, client, Connection::listen_with(config, server_id, Arc::new(server)))
}

#[test]
fn null_crypto_takes_the_time_of_tls() {
    // A self-signed Ed25519 certificate in its message, and the signature.
    let config = Config { certificates: Bytes::new(400), ..Run::default().config };
    let run = Run { bytes: 64 << 20, config, ..Run::default() };
    let (null, tls) = (download(&run), download_with_tls(&run));
    let seconds = |done: &Done| done.finished.expect("it finishes").as_secs_f64();
    println!("null {:.6} s, {} drops; TLS {:.6} s, {} drops", seconds(&null), null.dropped, seconds(&tls), tls.dropped);
    assert!((seconds(&null) / seconds(&tls) - 1.0).abs() < 0.001, "{null:?} {tls:?}");
    assert!((null.dropped as f64 / tls.dropped as f64 - 1.0).abs() < 0.01, "{null:?} {tls:?}");
}

/// Numbers by direction and type, and the frames of the packets, checked against the statistics of
/// quinn and the sizes of the datagrams.
fn logged_packets(done: &Done) -> BTreeMap<(Direction, QuicPacketType), Vec<Option<String>>> {
    let mut sent = BTreeMap::<_, Vec<Option<String>>>::new();
    let mut sizes = vec![0; done.datagrams.len()];
    let mut lost = BTreeMap::<_, Vec<u64>>::new();
    for QuicEvent { direction, step, packet_type, number, .. } in &done.log {
        let sent = sent.entry((*direction, *packet_type)).or_default();
        match step {
            QuicStep::Sent { packet, size, frames } => {
                // quinn skips numbers of 1-RTT packets (RFC 9000 §21.4).
                assert!(*number >= sent.len() as u64);
                sent.resize(*number as usize, None);
                sent.push(Some(frames.clone().unwrap_or_default()));
                sizes[*packet as usize] += *size as usize;
            }
            QuicStep::Lost => {
                assert!(sent[*number as usize].is_some(), "{packet_type:?} {number} was not sent");
                lost.entry(*direction).or_default().push(*number);
            }
        }
    }
    assert_eq!(sizes, done.datagrams);
    let count = |direction| lost.get(&direction).map_or(0, Vec::len) as u64;
    assert_eq!((count(Direction::Down), count(Direction::Up)), (done.lost_packets, done.lost_by_client));
    sent
}

#[test]
fn logged_packets_have_the_numbers_of_quinn() {
    for congestion in Controller::ALL {
        for run in [
            Run { bytes: 8 << 20, ..Run::default() },
            // Small queues, so that losses are many, and probes of the path MTU.
            Run { bytes: 4 << 20, queue: 20_000, config: Config::default(), ..Run::default() },
        ] {
            let run = Run { config: Config { congestion, ..run.config }, logs_packets: true, ..run };
            let done = download(&run);
            assert!(done.finished.is_some() && done.lost_packets > 20, "{congestion:?}: {}", done.lost_packets);
            let sent = logged_packets(&done);
            // Each frame can be read, and each acknowledged packet was sent.
            for ((direction, packet_type), packets) in &sent {
                let acknowledged = &sent[&(direction.opposite(), *packet_type)];
                for frame in packets.iter().flatten().flat_map(|frames| frames.split("; ")) {
                    for range in frame.strip_prefix("ack ").into_iter().flat_map(|ranges| ranges.split(' ')) {
                        let (first, last) = range.split_once('-').expect("a range has both ends");
                        let [first, last] = [first, last].map(|number| number.parse::<usize>().expect("a number"));
                        assert!(acknowledged[first..=last].iter().all(Option::is_some), "{frame}");
                    }
                }
                assert!(packets.iter().flatten().all(|frames| !frames.is_empty()), "{direction:?} {packet_type:?}");
            }
            let down = &sent[&(Direction::Down, QuicPacketType::OneRtt)];
            let streams = down.iter().flatten().flat_map(|frames| frames.split("; "));
            let bytes = streams.filter_map(|frame| {
                let [offset, length] =
                    frame.strip_prefix("stream 0 ")?.trim_end_matches(" fin").split_once(' ')?.into();
                Some(offset.parse::<u64>().ok()? + length.parse::<u64>().ok()?)
            });
            assert_eq!(bytes.max(), Some(run.bytes));
            let without = download(&Run { logs_packets: false, ..run });
            let (log, datagrams) = (Vec::new(), Vec::new());
            assert_eq!(without, Done { log, datagrams, ..done }, "the log changes nothing");
        }
    }
}

#[test]
fn encrypted_packets_have_numbers_and_no_frames() {
    let run = Run { bytes: 8 << 20, logs_packets: true, ..Run::default() };
    let (null, tls) = (download(&run), download_with_tls(&run));
    let frameless = |event: &QuicEvent| !matches!(event.step, QuicStep::Sent { frames: Some(_), .. });
    assert!(tls.log.iter().all(frameless) && !null.log.iter().all(frameless));
    assert!(tls.lost_packets > 20);
    let sent = logged_packets(&tls);
    let types = |sent: &BTreeMap<(Direction, QuicPacketType), _>| sent.keys().copied().collect::<Vec<_>>();
    assert_eq!(types(&sent), types(&logged_packets(&null)), "initial, handshake and 1-RTT packets of both");
    assert_eq!(sent.len(), 6);
}

/// CUBIC over a queue of 4 MB, in which slow start loses every second packet of its tail.
fn deep_queue(receive_window: u64) -> Run {
    let config = Config {
        receive_window: Bytes::new(receive_window),
        send_window: Bytes::new(2 * receive_window.max(10_000_000)),
        ..Run::default().config
    };
    Run { config, bytes: 64 << 20, queue: 4_000_000, ..Run::default() }
}

#[test]
fn a_deep_queue_ends_a_connection_with_a_large_window() {
    let run = deep_queue(64_000_000);
    let with_null_crypto = (1..=3).map(|seed| download(&Run { seed, ..run.clone() }));
    for done in with_null_crypto.chain([download_with_tls(&run)]) {
        assert_eq!(done.finished, None);
        let outcome = done.outcome.expect("it ends");
        println!("{} after {}, {} dropped", outcome, done.ended, done.dropped);
        assert!(!outcome.is_orderly());
        assert!(outcome.to_string().contains("too many gaps in stream buffer"), "{outcome}");
    }
}

#[test]
fn the_default_window_survives_a_deep_queue() {
    let window = Config::default().receive_window.get();
    for queue in [1_000_000, 2_000_000, 4_000_000, 16_000_000] {
        let done = download(&Run { queue, ..deep_queue(window) });
        assert_eq!(done.outcome, None, "queue of {queue} bytes");
        assert!(done.finished.is_some(), "queue of {queue} bytes");
    }
}
