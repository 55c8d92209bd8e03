//! Applications of quinn over bearers: times against the simulator's own flow, determinism, TLS,
//! HTTP/3, and applications that do not end.

mod support;

use std::future::{pending, poll_fn};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;
use std::time::Duration;

use airpath_core::{Instant, Seed, Span};
use airpath_quinn::{Finished, Host, SimulationError, simulate};
use airpath_sim::Setup;
use airpath_sim::flow::Flow;
use quinn::{Endpoint, Runtime};
use support::{LOSSY, PORT, WIRED, client_config, download, download_with, scenario, serve, server_config};

async fn sleep(host: &Host, duration: Duration) {
    let mut timer = host.new_timer(host.now() + duration);
    poll_fn(|cx| timer.as_mut().poll(cx)).await;
}

#[test]
fn a_download_takes_the_time_of_the_simulated_flow() {
    const BYTES: usize = 2_000_000;
    let finished = download(&scenario(WIRED), BYTES);
    let flow = "[[flow]]\nkind = \"download\"\ntransport = \"quic-quinn\"\nrequest = \"8 B\"";
    let simulated = scenario(&format!("{WIRED}\n{flow}\nbytes = \"{BYTES} B\""));
    let mut simulation = Setup::new(&simulated, Seed::new(1)).expect("it can be built").start(None, None);
    simulation.run(&AtomicBool::new(false));
    let Flow::QuicTransfer(flow) = &simulation.flows()[0] else { panic!("it is a transfer over QUIC") };
    let ended = flow.milestones.finished.expect("it finishes").as_secs_f64();
    let difference = finished.duration.as_secs_f64() / ended - 1.0;
    println!("application {}, flow {ended:.6} s", finished.duration);
    assert_eq!(finished.dropped, 0, "the queue has room for the window");
    assert!(difference.abs() < 0.002, "{difference}");
}

#[test]
fn two_runs_are_equal_and_another_seed_is_not() {
    let run = |seed: u64| download(&scenario(&format!("seed = {seed}\n{LOSSY}")), 300_000);
    let first = run(1);
    assert!(first.dropped > 0, "{first:?}");
    assert_eq!(first, run(1));
    assert_ne!(first, run(2));
}

#[test]
fn tls_with_ed25519_is_deterministic() {
    let run = || {
        let (server, client) = support::tls();
        download_with(&scenario(LOSSY), 300_000, move |_| server, move |_| client)
    };
    let first = run();
    assert_eq!(first, run());
    // The certificate is smaller than the default of null crypto.
    let null = download(&scenario(LOSSY), 300_000);
    assert!(first.packets.abs_diff(null.packets) < null.packets / 10, "{first:?} {null:?}");
}

#[test]
fn http3_runs_unmodified() {
    let finished = simulate(&scenario(WIRED), support::http3::server, support::http3::client).expect("it ends");
    assert_eq!(finished.output, (200, 50_000));
    // Five round trips of 40 ms at most, and 40 ms for the bytes.
    assert!((Span::from_millis(120)..Span::from_millis(300)).contains(&finished.duration), "{}", finished.duration);
}

#[test]
fn timers_expire_exactly() {
    let client = |host: Arc<Host>| async move {
        let start = host.now();
        sleep(&host, Duration::from_nanos(1_234_567)).await;
        host.now() - start
    };
    let finished = simulate(&scenario(WIRED), |_| async {}, client).expect("it ends");
    assert_eq!(finished.output, Duration::from_nanos(1_234_567));
    let duration = Span::from_nanos(1_234_567);
    assert_eq!(finished, Finished { output: finished.output, duration, packets: 0, dropped: 0 });
}

#[test]
fn a_socket_of_the_standard_library_becomes_a_virtual_one() {
    let server = |host: Arc<Host>| async move {
        let config = server_config(&mut host.identity());
        serve(host.endpoint(PORT, Some(config)).expect("the port is free")).await;
    };
    let client = |host: Arc<Host>| async move {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("one is free");
        let port = socket.local_addr().expect("it is bound").port();
        let mut identity = host.identity();
        let (config, runtime) = (identity.endpoint_config(1472), Arc::clone(&host) as Arc<dyn Runtime>);
        let endpoint = Endpoint::new(config, None, socket, runtime).expect("the port is free on the mobile");
        assert_eq!(endpoint.local_addr().expect("it is bound"), (host.address(), port).into());
        support::fetch(&endpoint, client_config(&mut identity), &host, 1000).await
    };
    assert_eq!(simulate(&scenario(WIRED), server, client).expect("it ends").output, 1000);
}

#[test]
fn an_unreachable_server_is_a_timeout_of_the_connection() {
    let client = |host: Arc<Host>| async move {
        let config = client_config(&mut host.identity());
        let endpoint = host.endpoint(0, None).expect("one is free");
        let connecting = endpoint.connect_with(config, "198.51.100.1:443".parse().expect("it is valid"), "absent");
        connecting.expect("the address is valid").await.expect_err("there is no server").to_string()
    };
    let finished = simulate(&scenario(WIRED), |_| async {}, client).expect("it ends");
    assert_eq!((finished.output.as_str(), finished.packets), ("timed out", 0));
    // The idle time-out of quinn.
    assert_eq!(finished.duration, Span::from_secs(30));
}

#[test]
fn a_second_bearer_is_an_error() {
    let scenario = scenario(&format!("{WIRED}\n[second_bearer]\npreset = \"wifi-n\""));
    let error = simulate(&scenario, |_| async {}, |_| pending::<()>()).expect_err("they have one address each");
    assert!(matches!(error, SimulationError::SecondBearer), "{error}");
}

#[test]
fn tasks_that_wait_for_each_other_are_an_error() {
    let error = simulate(&scenario(WIRED), |_| async {}, |_| pending::<()>()).expect_err("nothing wakes it");
    assert!(matches!(error, SimulationError::Deadlock(Instant::ZERO)), "{error}");
    assert!(error.to_string().contains("no task is ready, no timer runs, and no packet is on the path"), "{error}");
}

#[test]
fn an_application_that_waits_actively_is_an_error() {
    let spin = poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    let error = simulate(&scenario(WIRED), |_| async {}, |_| spin).expect_err("time stands still");
    assert!(matches!(error, SimulationError::Busy(Instant::ZERO)), "{error}");
}

#[test]
fn the_duration_of_the_scenario_is_a_limit() {
    let client = |host: Arc<Host>| async move { sleep(&host, Duration::from_secs(301)).await };
    let error = simulate(&scenario(WIRED), |_| async {}, client).expect_err("the scenario ends before");
    let message = "the application of the mobile has not ended within 300 s, the `duration` of the scenario; raise it";
    assert_eq!(error.to_string(), message);
}

#[test]
#[should_panic(expected = "a task of the application")]
fn the_panic_of_a_task_ends_the_simulation() {
    let server = |host: Arc<Host>| async move {
        let runtime = Arc::clone(&host);
        host.spawn(Box::pin(async move {
            sleep(&runtime, Duration::from_secs(1)).await;
            panic!("a task of the application");
        }));
        pending().await
    };
    let client = |host: Arc<Host>| async move { sleep(&host, Duration::from_secs(10)).await };
    let _ = simulate(&scenario(WIRED), server, client);
}
