//! Downloads over a virtual link: determinism, early polls, TLS, and a deep queue.

mod support;

use std::process::Command;
use std::sync::Arc;

use airpath_core::{Bytes, Direction, FlowId, Instant};
use airpath_quic::{Config, Connection, Controller, Identity};
use support::{Done, Run, download, drive, random};

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
    let identity = |direction, name| Identity::new(FlowId(0), direction, random(run.seed, name));
    let id = identity(Direction::Up, "client");
    let client = Connection::connect_with(Arc::clone(&config), id, Instant::ZERO, Arc::new(client), "server.test");
    drive(run, client, Connection::listen_with(config, identity(Direction::Down, "server"), Arc::new(server)))
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
