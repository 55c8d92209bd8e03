//! The limits of a responder, on the loopback interface.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use airpath_app::web::Settings;
use airpath_measure::Responder;
use airpath_measure::protocol::{ControlRequest, TestRequest, VERSION};
use airpath_measure::work::{PageLoad, TcpSettings, Work};

/// Time for what a responder does at once; far above it on a busy machine.
const PATIENCE: Duration = Duration::from_secs(100);

/// Runs `test` with the address of a responder.
fn with_responder(test: impl FnOnce(SocketAddr)) {
    let responder = Responder::bind(Some("127.0.0.1:0")).expect("a free port");
    let stop = AtomicBool::new(false);
    /// Stops the responder also when the test fails.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    thread::scope(|scope| {
        scope.spawn(|| responder.run(&stop));
        let _stop = Stop(&stop);
        test(responder.addresses()[0]);
    });
}

fn connect(responder: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(responder).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time above zero");
    stream
}

/// Opens a control connection, sends `test` as its test request, and returns it with the response.
fn request(responder: SocketAddr, test: &str) -> (TcpStream, String) {
    let mut stream = connect(responder);
    write!(stream, "airpath-measure {VERSION}\n{test}").expect("it reads");
    let mut lines = BufReader::new(stream.try_clone().expect("a descriptor")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), format!("airpath-measure {VERSION}"));
    let response = lines.next().expect("a line").expect("text");
    (stream, response)
}

/// Tries until the response to an invalid test request has `text`.
#[expect(clippy::disallowed_methods, reason = "another thread accepts and ends connections")]
fn wait_for_response(responder: SocketAddr, text: &str) {
    for _ in 0..1000 {
        if request(responder, "{}\n").1.contains(text) {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{text}: {}", request(responder, "{}\n").1);
}

#[test]
fn a_client_without_a_test_request_is_refused() {
    // The second one stops within its request.
    for begun in ["", "{\"test\":"] {
        with_responder(|responder| {
            let (mut stream, response) = request(responder, begun);
            assert!(response.contains("refused") && response.contains("without a pause of 10 s"), "{response}");
            assert_eq!(stream.read(&mut [0; 10]).expect("it closes"), 0);
        });
    }
}

#[test]
fn connections_of_one_address_are_limited() {
    let page = r#"{"name": "p", "object": [{"name": "a", "type": "document", "size": "10 kB"}]}"#;
    let page = serde_json::from_str(page).expect("a page");
    let load = PageLoad { pages: vec![page], settings: Settings::default(), tcp: TcpSettings::default() };
    let test = ControlRequest::Test(Box::new(TestRequest {
        work: Work::Page(load),
        ports: Vec::new(),
        ip: Default::default(),
    }));
    let test = format!("{}\n", serde_json::to_string(&test).expect("JSON"));
    with_responder(|responder| {
        // Connections of a browser may be silent while its session is open.
        let (control, response) = request(responder, &test);
        assert!(response.contains("ready"), "{response}");
        let ahead: Vec<TcpStream> = (1..288).map(|_| connect(responder)).collect();
        wait_for_response(responder, "it already has 288 connections of 127.0.0.1; wait for some to end");
        let mut http = connect(responder);
        http.write_all(b"GET /p/a HTTP/1.1\r\nHost: www.example.com\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        http.read_to_string(&mut answer).expect("it closes");
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("288 connections"), "{answer}");
        drop((control, ahead));
        wait_for_response(responder, "invalid test request");
    });
}
