//! Live media in virtual time and on sockets: delays, delivery timeouts, the order of groups,
//! conservation, determinism, and peers that violate the protocol.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;

use airpath_core::{Direction, Seed};
use airpath_moq::clock::SharedClock;
use airpath_moq::figures::TrackFigures;
use airpath_moq::message::{Message, Parameters, Subscribe};
use airpath_moq::session::{
    Incoming, LARGEST_DATAGRAM, PORT, SessionError, VIRTUAL_START, client_config, client_options, identity,
    open_control, server_config,
};
use airpath_moq::simulation::{self, Simulated};
use airpath_moq::wire::Reader;
use airpath_moq::{Figures, Publisher, Settings, Subscriber};
use airpath_quic::Identity;
use airpath_quinn::{Host, simulate};
use airpath_scenario::Scenario;
use quinn::{Connection, ConnectionError, Endpoint, TokioRuntime, VarInt};

/// A link of this rate with a delay of 20 ms and further keys towards the mobile.
fn link(rate: &str, keys: &str) -> Scenario {
    let downlink = format!("{{ rate = \"{rate}\", delay = \"20 ms\", {keys} }}");
    let uplink = "{ rate = \"1 Mbit/s\", delay = \"20 ms\" }";
    scenario(&format!("[bearer]\nmodel = \"wired\"\ndownlink = {downlink}\nuplink = {uplink}"))
}

fn scenario(bearer: &str) -> Scenario {
    let text = format!("format = 1\nduration = \"1000 s\"\n{bearer}");
    Scenario::read(&text, "s.toml", Path::new(""), &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// Media of 20 s, of 168 kbit/s, in groups of a second.
fn settings(sets: &[(&str, &str)]) -> Settings {
    let sets = [("video.duration", "20 s"), ("video.gop", "15")].iter().chain(sets);
    let sets: Vec<_> = sets.map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    Settings::read(&sets).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, sets: &[(&str, &str)]) -> Simulated {
    let simulated = simulation::run(scenario, &settings(sets)).unwrap_or_else(|error| panic!("{error}"));
    assert_conserved(&simulated, &settings(sets));
    simulated
}

/// Each object is delivered once, or belongs to a group whose delivery timeout was over.
fn assert_conserved(simulated: &Simulated, settings: &Settings) {
    let Simulated { figures, reception, sent, .. } = simulated;
    let mut streams = 0;
    for ((track, figures), alias) in
        settings.tracks().iter().zip([&figures.video, &figures.audio]).zip(reception.aliases())
    {
        let (_, sent) = sent.iter().find(|(name, _)| *name == track.name).expect("it was published");
        assert_eq!(sent.objects, track.frames().len() as u64);
        assert_eq!((figures.published, figures.delivered + figures.lost), (sent.objects, sent.objects));
        let arrivals = reception.arrivals.iter().filter(|arrival| Some(arrival.track_alias) == alias);
        let places: Vec<_> = arrivals.map(|arrival| (arrival.group, arrival.object)).collect();
        let delivered: BTreeSet<_> = places.iter().copied().collect();
        assert_eq!(delivered.len(), places.len(), "no object is delivered twice");
        for group in (0..track.groups()).filter(|group| !sent.timed_out.contains(group)) {
            for object in 0..track.frames_of(group).len() as u64 {
                assert!(delivered.contains(&(group, object)), "object {object} of group {group} of {}", track.name);
            }
        }
        assert!(sent.dropped <= figures.lost, "{sent:?} {figures:?}");
        streams += sent.streams;
    }
    assert_eq!(reception.streams, streams, "each stream that was opened ends at the subscriber");
}

#[test]
fn a_fast_link_delivers_all_after_its_delay() {
    let simulated = run(&link("10 Mbit/s", ""), &[]);
    let Figures { video, audio, playback, streams_reset, .. } = simulated.figures;
    assert_eq!((video.lost, audio.lost, streams_reset, simulated.dropped), (0, 0, 0, 0));
    // 20 ms, and about 100 bytes at 10 Mbit/s.
    let median = audio.delay_median_s.expect("it was delivered");
    assert!((0.020..0.021).contains(&median), "{median}");
    // An I frame of 12 kB is up to ten packets, in two flights at most.
    let largest = video.delay_max_s.expect("it was delivered");
    assert!((0.030..0.080).contains(&largest), "{largest}");
    // A round trip for the connection, one for the subscription, and the buffer of a second.
    let start = playback.start_s.expect("it starts");
    assert!((1.06..1.30).contains(&start), "{start}");
    assert_eq!((playback.pauses, playback.displayed), (0, 300));
}

#[test]
fn two_runs_are_equal_and_another_seed_is_not() {
    let run = |seed: u64| {
        let text = format!("seed = {seed}\n[bearer]\nmodel = \"wired\"\n");
        let text = text + "downlink = { rate = \"1 Mbit/s\", delay = \"50 ms\", loss = 0.05 }\n";
        run(&scenario(&(text + "uplink = { rate = \"1 Mbit/s\", delay = \"50 ms\" }")), &[])
    };
    let first = run(1);
    assert!(first.dropped > 0);
    assert_eq!(first, run(1));
    assert_ne!(first.figures, run(2).figures);
}

#[test]
fn a_send_window_limits_the_data_in_flight() {
    let limited = run(&link("10 Mbit/s", ""), &[("quic.send_window", "2 kB")]);
    let largest = limited.figures.video.delay_max_s.expect("it was delivered");
    // An I frame of 12 kB takes six to ten windows of one or two packets, each a round trip of 40
    // ms.
    assert!((0.240..0.400).contains(&largest), "{largest}");
}

#[test]
fn without_a_delivery_timeout_all_is_delivered_late() {
    let without = run(&link("100 kbit/s", "queue = { packets = 10 }"), &[("subgroup_timeout", "0 s")]);
    assert_eq!((without.figures.video.lost, without.figures.audio.lost, without.figures.streams_reset), (0, 0, 0));
    // 420 kB at 100 kbit/s.
    assert!(without.figures.duration_s > 33.0, "{}", without.figures.duration_s);
    for timeout in ["subgroup_timeout", "object_timeout"] {
        let with =
            run(&link("100 kbit/s", "queue = { packets = 10 }"), &[("subgroup_timeout", "0 s"), (timeout, "1 s")]);
        assert!(with.figures.video.lost > 0 && with.figures.streams_reset > 0, "{timeout}: {}", with.figures);
        assert!(with.figures.duration_s < 25.0, "{timeout}: {}", with.figures.duration_s);
        let largest = |simulated: &Simulated| simulated.figures.video.delay_max_s.expect("some are delivered");
        assert!(largest(&with) < largest(&without), "{timeout}");
        // Audio is sent before video.
        let share = |track: &TrackFigures| track.lost as f64 / track.published as f64;
        let Figures { video, audio, .. } = &with.figures;
        assert!(share(audio) < 0.5 * share(video), "{timeout}: {}", with.figures);
    }
}

#[test]
fn an_object_is_not_passed_to_quic_after_its_timeout() {
    let outage = |sets: &[(&str, &str)]| {
        let link = "[bearer]\nmodel = \"wired\"\ndownlink = { rate = \"1 Mbit/s\", delay = \"20 ms\" }\n";
        let change = "[[change]]\nat = \"5 s\"\noutage = \"4 s\"";
        run(&scenario(&format!("{link}uplink = {{ rate = \"1 Mbit/s\", delay = \"20 ms\" }}\n{change}")), sets).figures
    };
    let none = [("subgroup_timeout", "0 s")];
    let (without, with) = (outage(&none), outage(&[none[0], ("object_timeout", "1 s")]));
    assert_eq!(without.video.lost, 0);
    assert!(without.video.delay_max_s > Some(4.0), "{without}");
    // Three of four seconds of the outage are too old at its end, unless the congestion window had
    // room for them: 15 frames and 50 of audio a second.
    assert!((15..60).contains(&with.video.lost), "{with}");
    assert!((50..200).contains(&with.audio.lost), "{with}");
}

#[test]
fn the_subscriber_selects_the_order_of_groups() {
    let slow = link("150 kbit/s", "queue = { packets = 5 }");
    let order = |order: &str| {
        let simulated = run(&slow, &[("group_order", order), ("subgroup_timeout", "0 s")]);
        let video = simulated.reception.aliases()[0];
        let arrivals =
            simulated.reception.arrivals.into_iter().filter(move |arrival| Some(arrival.track_alias) == video);
        let groups: Vec<u64> = arrivals.map(|arrival| arrival.group).collect();
        groups
    };
    assert!(order("ascending").is_sorted(), "the oldest group first");
    let newest_first = order("descending");
    let overtaken = newest_first.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(overtaken > 0, "groups that are late are sent in gaps: {newest_first:?}");
}

#[test]
fn media_longer_than_the_scenario_are_an_error() {
    let mut short = link("1 Mbit/s", "");
    short.duration = airpath_core::Span::from_secs(5);
    let error = simulation::run(&short, &settings(&[])).expect_err("it does not end").to_string();
    assert!(error.contains("the `duration` of the scenario; raise it"), "{error}");
}

/// Runs `client` with a connection to a publisher.
fn with_publisher<T: 'static, F: Future<Output = T>>(client: impl FnOnce(Connection) -> F + 'static) -> T {
    let server = |host: Arc<Host>| async move {
        let settings = settings(&[]);
        let config = server_config(&settings, &mut host.identity());
        let endpoint = host.endpoint(PORT, Some(config)).expect("the port is free");
        let clock = SharedClock::starting_at(VIRTUAL_START, host);
        Publisher::new(&settings, clock).serve(endpoint).await;
    };
    let client = |host: Arc<Host>| async move {
        let config = client_config(&settings(&[]), &mut host.identity());
        let endpoint = host.endpoint(0, None).expect("a port is free");
        let connecting = endpoint.connect_with(config, (host.peer(), PORT).into(), "server").expect("it is valid");
        client(connecting.await.expect("the publisher accepts")).await
    };
    simulate(&link("1 Mbit/s", ""), server, client).expect("it ends").output
}

fn subscribe(namespace: &str, name: &str) -> Vec<u8> {
    let (namespace, name) = (vec![namespace.as_bytes().to_vec()], name.as_bytes().to_vec());
    Message::Subscribe(Subscribe { request: 0, namespace, name, parameters: Parameters::default() }).to_bytes()
}

#[test]
fn a_publisher_refuses_an_unknown_track() {
    for (namespace, name) in [("live", "subtitles"), ("recorded", "video")] {
        let response = with_publisher(move |connection| async move {
            let _control = open_control(&connection, client_options("server")).await.expect("it is open");
            let (mut send, receive) = connection.open_bi().await.expect("it is open");
            send.write_all(&subscribe(namespace, name)).await.expect("it is open");
            Incoming::new(receive).next(Message::read).await.expect("a response")
        });
        let Some(Message::RequestError { code, reason, .. }) = response else { panic!("{response:?}") };
        assert_eq!(code, 0x10);
        assert!(reason.contains("`video` and `audio`"), "{reason}");
    }
}

#[test]
fn a_publisher_closes_on_a_violation() {
    let closed = |bytes: Vec<u8>, is_request: bool| {
        let error = with_publisher(move |connection| async move {
            if is_request {
                let _control = open_control(&connection, Vec::new()).await.expect("it is open");
                let (mut send, _receive) = connection.open_bi().await.expect("it is open");
                send.write_all(&bytes).await.expect("it is open");
                send.finish().expect("it is open");
                connection.closed().await
            } else {
                let mut send = connection.open_uni().await.expect("it is open");
                send.write_all(&bytes).await.expect("it is open");
                send.finish().expect("it is open");
                connection.closed().await
            }
        });
        let ConnectionError::ApplicationClosed(close) = error else { panic!("{error:?}") };
        assert_eq!(close.error_code, VarInt::from_u32(3));
        String::from_utf8_lossy(&close.reason).into_owned()
    };
    assert!(closed(vec![0x7d, 0, 0], true).contains("a type that is not supported"));
    assert!(closed(vec![0x3, 0, 9, 0], true).contains("a stream ends within a field"));
    assert!(closed(Message::Setup { options: Vec::new() }.to_bytes(), true).contains("does not begin with a request"));
    assert!(closed(vec![0x79, 0, 0], false).contains("no control stream"));
    assert!(closed(Message::Setup { options: Vec::new() }.to_bytes(), false).contains("was closed"));
}

/// Runs a subscriber with a publisher that accepts the connection, sends `bytes` on a stream of one
/// direction, and `response` to the first request.
fn with_subscriber(bytes: Vec<u8>, response: Vec<u8>) -> SessionError {
    let server = |host: Arc<Host>| async move {
        let config = server_config(&settings(&[]), &mut host.identity());
        let endpoint = host.endpoint(PORT, Some(config)).expect("the port is free");
        let connection = endpoint.accept().await.expect("it is open").await.expect("a subscriber connects");
        let _control = open_control(&connection, Vec::new()).await.expect("it is open");
        let (mut send, _receive) = connection.accept_bi().await.expect("a request");
        send.write_all(&response).await.expect("it is open");
        let _ = send.finish();
        if !bytes.is_empty() {
            let mut send = connection.open_uni().await.expect("it is open");
            send.write_all(&bytes).await.expect("it is open");
            let _ = send.finish();
        }
        connection.closed().await;
    };
    let client = |host: Arc<Host>| async move {
        let settings = settings(&[]);
        let config = client_config(&settings, &mut host.identity());
        let endpoint = host.endpoint(0, None).expect("a port is free");
        let connecting = endpoint.connect_with(config, (host.peer(), PORT).into(), "server").expect("it is valid");
        let clock = SharedClock::starting_at(VIRTUAL_START, host);
        Subscriber::receive(&settings, clock, connecting, "server").await
    };
    simulate(&link("1 Mbit/s", ""), server, client).expect("it ends").output.expect_err("the publisher is wrong")
}

#[test]
fn a_subscriber_reports_a_violation() {
    let accept = || Message::SubscribeOk { track_alias: 0 }.to_bytes();
    let message = |bytes: Vec<u8>, response: Vec<u8>| match with_subscriber(bytes, response) {
        SessionError::Violation(message) => message,
        other => panic!("{other:?}"),
    };
    assert!(message(vec![0x05, 0], accept()).contains("does not begin with a subgroup header"));
    assert!(message(vec![0x79, 0, 0, 0], accept()).contains("a stream ends within a field"));
    // An object without properties.
    assert!(message(vec![0x78, 0, 0, 0, 1, 0], accept()).contains("no frame with its time of capture"));
    assert!(message(Vec::new(), vec![0xb, 0, 3, 2, 0, 0]).contains("neither SUBSCRIBE_OK nor REQUEST_ERROR"));
    assert!(message(Vec::new(), accept()).contains("without PUBLISH_DONE"));
}

#[test]
fn a_subscriber_reports_a_refusal() {
    let refusal = Message::RequestError { code: 0x10, retry: 0, reason: "no".to_owned() };
    let error = with_subscriber(Vec::new(), refusal.to_bytes()).to_string();
    assert_eq!(error, "the publisher refuses the track `video` with code 0x10: no");
}

#[test]
fn the_program_runs_on_udp_sockets() {
    let settings = settings(&[("video.duration", "400 ms"), ("subgroup_timeout", "0 s"), ("buffer", "0 s")]);
    let identity = |direction| identity(direction, |part| Seed::new(1).stream(&format!("{direction:?}/{part}")));
    let endpoint = |identity: &mut Identity, server| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        let config = identity.endpoint_config(LARGEST_DATAGRAM);
        Endpoint::new(config, server, socket, Arc::new(TokioRuntime)).expect("a runtime runs")
    };
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system allows it");
    let reception = tokio.block_on(async {
        let clock = SharedClock::starting_at(VIRTUAL_START, Arc::new(TokioRuntime));
        let (mut server, mut client) = (identity(Direction::Down), identity(Direction::Up));
        let config = server_config(&settings, &mut server);
        let server = endpoint(&mut server, Some(config));
        let address = server.local_addr().expect("it is bound");
        tokio::spawn(Publisher::new(&settings, clock.clone()).serve(server));
        let config = client_config(&settings, &mut client);
        let connecting = endpoint(&mut client, None).connect_with(config, address, "server").expect("it is valid");
        Subscriber::receive(&settings, clock, connecting, "server").await
    });
    let reception = reception.unwrap_or_else(|error| panic!("{error}"));
    let figures = Figures::new(&settings, &reception).expect("the objects are those of the tracks");
    assert_eq!((figures.video.delivered, figures.audio.delivered), (6, 20));
    assert_eq!((figures.video.lost, figures.audio.lost, figures.playback.displayed), (0, 0, 6));
}

#[test]
fn messages_of_a_publisher_are_those_of_the_draft() {
    // 0x2F00 is 0xAF00 as an integer of two bytes (§10.3).
    assert_eq!(Message::Setup { options: Vec::new() }.to_bytes(), [0xaf, 0, 0, 0]);
    let bytes = Message::Setup { options: client_options("server") }.to_bytes();
    // PATH is type 1, AUTHORITY type 5.
    assert_eq!(bytes, [&[0xaf, 0, 0, 15, 1, 5][..], b"/live", &[4, 6], b"server"].concat());
    assert!(Message::read(&mut Reader::new(&bytes)).is_ok());
}
