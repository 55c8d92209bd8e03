//! Conversations by script, and the same ones segmented and reordered.

use std::net::{IpAddr, Ipv4Addr};

use airpath_core::Instant;
use airpath_wire::tcp::Flags;
use proptest::prelude::*;

use super::*;
use airpath_observe::End::{self, Client, Server};
use airpath_observe::flows::FlowNumber;
use airpath_wire::segment::Endpoint;

/// A conversation of segments, a millisecond apart.
#[derive(Clone, Debug, Default)]
struct Script {
    segments: Vec<Sent>,
    /// Bytes that client and server have sent.
    sent: [usize; 2],
}

#[derive(Clone, Debug)]
struct Sent {
    from: End,
    frame: u64,
    offset: i64,
    acknowledged: i64,
    bytes: Vec<u8>,
    /// Bytes captured.
    captured: usize,
    flags: Flags,
}

impl Script {
    fn sends(mut self, from: End, text: impl AsRef<[u8]>) -> Self {
        self.segment(from, text.as_ref(), Flags::ACK);
        self
    }

    fn closes(mut self, from: End) -> Self {
        self.segment(from, b"", Flags::ACK | Flags::FIN);
        self
    }

    fn segment(&mut self, from: End, bytes: &[u8], flags: Flags) {
        let [client, server] = self.sent;
        let (offset, acknowledged) = if from == Client { (client, server) } else { (server, client) };
        self.segments.push(Sent {
            from,
            frame: self.segments.len() as u64 + 1,
            offset: offset as i64,
            acknowledged: acknowledged as i64,
            bytes: bytes.to_vec(),
            captured: bytes.len(),
            flags,
        });
        self.sent[from as usize] += bytes.len();
    }

    /// The capture missed the last segment.
    fn missed(mut self) -> Self {
        self.segments.pop();
        self
    }

    /// The capture kept `captured` bytes of the last segment.
    fn snapped(mut self, captured: usize) -> Self {
        self.segments.last_mut().unwrap().captured = captured;
        self
    }

    fn watch(&self) -> Timeline {
        watch(&self.segments)
    }

    fn exchanges(&self) -> Vec<Exchange> {
        self.watch().exchanges().to_vec()
    }
}

fn endpoint(last: u8, port: u16) -> Endpoint {
    Endpoint { address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), port }
}

fn watch(segments: &[Sent]) -> Timeline {
    let mark = |frame: u64| Mark { time: Instant::from_nanos(frame * 1_000_000), frame };
    let mut watch = Watch::new(endpoint(1, 40_000), endpoint(2, 80), mark(0), true);
    let syn = Piece { mark: mark(0), offset: -1, acknowledged: None, length: 0, captured: b"" };
    watch.segment(Client, Flags::SYN, syn);
    for sent in segments {
        watch.segment(
            sent.from,
            sent.flags,
            Piece {
                mark: mark(sent.frame),
                offset: sent.offset,
                acknowledged: Some(sent.acknowledged),
                length: sent.bytes.len() as u32,
                captured: &sent.bytes[..sent.captured],
            },
        );
    }
    watch.finish()
}

/// Request target, status, bytes of content, whether complete: one word an exchange.
fn in_words(exchanges: &[Exchange]) -> Vec<String> {
    exchanges
        .iter()
        .map(|exchange| {
            let request = exchange
                .request
                .as_ref()
                .map_or("?".to_owned(), |request| format!("{} {}", request.method, request.target));
            let answered = exchange.response.as_ref().map_or("nothing".to_owned(), |response| {
                let status = response.status.map_or("-".to_owned(), |status| status.to_string());
                let whole = if response.size.complete { "" } else { " cut" };
                format!("{status} {}{whole}", response.size.content)
            });
            format!("{request}: {answered}")
        })
        .collect()
}

#[test]
fn a_response_is_acknowledged_when_its_last_byte_is() {
    let script = Script::default()
        .sends(Client, get("/a"))
        .sends(Server, ok("first"))
        .sends(Client, get("/b"))
        .sends(Server, ok("second"))
        .sends(Client, get("/c"))
        .sends(Server, ok("third"));
    let exchanges = script.exchanges();
    let marks: Vec<_> = exchanges.iter().map(|exchange| exchange.response.as_ref().unwrap().acknowledged).collect();
    let sent = |exchange: &Exchange| exchange.request.as_ref().map(|request| request.first);
    // The next request acknowledges the response before.
    assert_eq!(marks, [sent(&exchanges[1]), sent(&exchanges[2]), None]);
}

#[test]
fn an_archive_has_an_entry_for_each_request_and_its_times_add_up() {
    let script = Script::default()
        .sends(Client, get("/a?x=1&y"))
        .sends(Server, ok("first"))
        .sends(Client, get("/b"))
        .sends(Client, get("/c"))
        .sends(Server, ok("second"));
    let timeline = script.watch();
    let pages = crate::page::pages([&timeline], &std::collections::BTreeMap::new());
    let exchanges = Exchanges { timelines: vec![(FlowNumber(7), timeline)], pages };
    let har = serde_json::to_value(Har::new(&exchanges)).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 3);
    for entry in entries {
        let timings = entry["timings"].as_object().unwrap();
        let sum: f64 = timings.values().map(|part| part.as_f64().unwrap().max(0.0)).sum();
        assert!((entry["time"].as_f64().unwrap() - sum).abs() < 1e-9, "{entry}");
        assert_eq!((&entry["connection"], &entry["pageref"]), (&"7".into(), &har["log"]["pages"][0]["id"]));
    }
    assert_eq!(entries[0]["request"]["url"], "http://example.org/a?x=1&y");
    assert_eq!(entries[0]["request"]["queryString"][1]["name"], "y");
    assert_eq!(entries[1]["timings"]["wait"], 2.0);
    assert_eq!(entries[2]["response"]["status"], 0, "it was not answered");
    assert_eq!(har["log"]["pages"][0]["pageTimings"]["onLoad"], 5.0);
}

#[test]
fn only_a_capture_at_the_client_shows_the_rate_of_the_downlink() {
    let script = Script::default().sends(Client, get("/a")).sends(Server, ok("first"));
    let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
    let mut downlink = crate::page::Downlink::default();
    (0..20).for_each(|segment| downlink.segment(at(segment), 1000));
    let downlinks = std::collections::BTreeMap::from([(endpoint(1, 0).address, downlink)]);
    // The SYN, the SYN-ACK and the ACK of a path with a round trip of 100 ms.
    let idle = |handshake: [u64; 3]| {
        let [opened, accepted, established] = handshake.map(|millis| Some(Mark { time: at(millis), frame: 0 }));
        let timeline = Timeline { opened, accepted, established, ..script.watch() };
        crate::page::pages([&timeline], &downlinks)[0].idle_downlink.is_some()
    };
    assert!(idle([0, 100, 100]), "at the client");
    assert!(!idle([0, 0, 100]), "at the server");
    assert!(!idle([0, 50, 100]), "in the middle");
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: example.org\r\n\r\n")
}

fn ok(content: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}", content.len())
}

#[test]
fn requests_and_responses_pair_under_pipelining() {
    let script = Script::default()
        .sends(Client, get("/a"))
        .sends(Server, ok("first"))
        .sends(Client, get("/b") + &get("/c") + &get("/d")[..10])
        .sends(Client, &get("/d")[10..])
        .sends(Server, ok("2") + &ok("33")[..30])
        .sends(Server, ok("33")[30..].to_owned() + &ok("444"));
    let timeline = script.watch();
    assert_eq!(in_words(timeline.exchanges()), ["GET /a: 200 5", "GET /b: 200 1", "GET /c: 200 2", "GET /d: 200 3"]);
    let frames = |exchange: &Exchange| {
        let (request, response) = (exchange.request.as_ref().unwrap(), exchange.response.as_ref().unwrap());
        [request.first.frame, request.last.frame, response.first.frame, response.last.frame]
    };
    let frames: Vec<_> = timeline.exchanges().iter().map(frames).collect();
    assert_eq!(frames, [[1, 1, 2, 2], [3, 3, 5, 5], [3, 3, 5, 6], [3, 4, 6, 6]]);
    // β is 1, 1, 2, 3.
    let pipelining = timeline.pipelining().unwrap();
    assert_eq!((pipelining.requests, pipelining.outstanding), (4, 7));
    assert!((pipelining.maximum() - 2.5).abs() < 1e-12);
}

#[test]
fn the_studys_worked_example() {
    // Five requests whose β, 1, 2, 2, 2 and 2, sum to 9: Φ = 1.8 of 3.
    let script = Script::default()
        .sends(Client, get("/1"))
        .sends(Client, get("/2"))
        .sends(Server, ok("1"))
        .sends(Client, get("/3"))
        .sends(Server, ok("2"))
        .sends(Client, get("/4"))
        .sends(Server, ok("3"))
        .sends(Client, get("/5"))
        .sends(Server, ok("4") + &ok("5"));
    let pipelining = script.watch().pipelining().unwrap();
    assert_eq!((pipelining.factor(), pipelining.maximum()), (1.8, 3.0));
    let alone = Pipelining { requests: 1, outstanding: 1 };
    assert_eq!(efficiency([pipelining, alone], 1), Some(2.8 / 4.0));
    assert_eq!(efficiency([pipelining, alone], 2), Some(1.8 / 3.0));
    assert_eq!(efficiency([alone], 2), None);
}

#[test]
fn bodies_end_as_the_standard_specifies() {
    let script = Script::default()
        .sends(Client, "HEAD /head HTTP/1.1\r\n\r\n")
        .sends(Server, "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n")
        .sends(Client, get("/same"))
        .sends(Server, "HTTP/1.1 304 Not Modified\r\nContent-Length: 999\r\n\r\n")
        .sends(Client, "DELETE /x HTTP/1.1\r\n\r\n")
        .sends(Server, "HTTP/1.1 204 No Content\r\n\r\n")
        .sends(Client, get("/chunks"))
        .sends(
            Server,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n4\r\nWiki\r\n0\r\nA: b\r\n\r\n",
        )
        .sends(Client, "GET /part HTTP/1.1\r\nRange: bytes=2-4\r\n\r\n")
        .sends(Server, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-4/9\r\nContent-Length: 3\r\n\r\nabc")
        .sends(Client, "GET /open HTTP/1.0\r\n\r\n")
        .sends(Server, "HTTP/1.0 200 OK\r\n\r\nuntil ")
        .sends(Server, "the end")
        .closes(Server);
    assert_eq!(
        in_words(&script.exchanges()),
        [
            "HEAD /head: 200 0",
            "GET /same: 304 0",
            "DELETE /x: 204 0",
            "GET /chunks: 200 4",
            "GET /part: 206 3",
            "GET /open: 200 13",
        ]
    );
    let last = script.exchanges().pop().unwrap().response.unwrap();
    assert_eq!(last.last.frame, 13, "the last byte, not the FIN");
    assert_eq!(script.exchanges()[4].response.as_ref().unwrap().field("content-range"), Some("bytes 2-4/9"));
}

#[test]
fn a_body_that_the_stream_should_end_is_whole_only_when_it_has() {
    let script = Script::default().sends(Client, "GET / HTTP/1.0\r\n\r\n").sends(Server, "HTTP/1.0 200 OK\r\n\r\nhalf");
    assert_eq!(in_words(&script.exchanges()), ["GET /: 200 4 cut"]);
    let length = Script::default().sends(Client, get("/")).sends(Server, &ok("abcdef")[..40]).closes(Server);
    assert_eq!(in_words(&length.exchanges()), ["GET /: 200 2 cut"]);
}

#[test]
fn http_0_9() {
    let script = Script::default()
        .sends(Client, "GET /old\r\n")
        .sends(Server, "<html>HTTP")
        .sends(Server, "/0.9</html>")
        .closes(Server);
    assert_eq!(in_words(&script.exchanges()), ["GET /old: - 21"]);
    assert_eq!(script.exchanges()[0].response.as_ref().unwrap().version, Version::Http09);
    // The body may look like the beginning of a head for a while.
    let misleading =
        Script::default().sends(Client, "GET /old\r\n").sends(Server, "HTT").sends(Server, "Xabc").closes(Server);
    assert_eq!(in_words(&misleading.exchanges()), ["GET /old: - 7"]);
    // A server of later days answers with a head all the same.
    let modern = Script::default()
        .sends(Client, "GET /old\r\n")
        .sends(Server, "HTTP/1.1 400 Bad Request\r\n\r\nno")
        .closes(Server);
    assert_eq!(in_words(&modern.exchanges()), ["GET /old: 400 2"]);
}

#[test]
fn interim_responses_belong_to_the_request_and_are_not_its_response() {
    let put = "PUT /x HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    let script = Script::default()
        .sends(Client, put)
        .sends(Server, "HTTP/1.1 100 Continue\r\n\r\n")
        .sends(Client, "body")
        .sends(Server, ok("thanks"));
    let exchange = &script.exchanges()[0];
    assert_eq!(in_words(&script.exchanges()), ["PUT /x: 200 6"]);
    assert_eq!((exchange.interim_responses, exchange.response.as_ref().unwrap().first.frame), (1, 4));
    assert_eq!(exchange.request.as_ref().unwrap().size.body, 4);
    // Refused: the body does not come, and the next request takes its place.
    let refused = Script::default()
        .sends(Client, put)
        .sends(Server, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
        .sends(Client, get("/y"))
        .sends(Server, ok("y"));
    assert_eq!(in_words(&refused.exchanges()), ["PUT /x: 417 0", "GET /y: 200 1"]);
}

#[test]
fn what_follows_connect_or_an_upgrade_is_none_of_ours() {
    let connect = Script::default()
        .sends(Client, "CONNECT example.org:443 HTTP/1.1\r\n\r\n")
        .sends(Server, "HTTP/1.1 200 Connection established\r\n\r\n")
        .sends(Client, get("/hidden"))
        .sends(Server, ok("hidden"));
    assert_eq!(in_words(&connect.exchanges()), ["CONNECT example.org:443: 200 0"]);
    let upgrade = Script::default()
        .sends(Client, "GET /chat HTTP/1.1\r\nUpgrade: websocket\r\n\r\n")
        .sends(Server, "HTTP/1.1 101 Switching Protocols\r\n\r\n\x01\x02")
        .sends(Client, get("/hidden"));
    assert_eq!(in_words(&upgrade.exchanges()), ["GET /chat: 101 0"]);
    let refused = Script::default()
        .sends(Client, "CONNECT example.org:443 HTTP/1.1\r\n\r\n")
        .sends(Server, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno")
        .sends(Client, get("/next"))
        .sends(Server, ok("next"));
    assert_eq!(in_words(&refused.exchanges()), ["CONNECT example.org:443: 407 2", "GET /next: 200 4"]);
}

#[test]
fn a_response_that_the_capture_missed_leaves_the_others_with_their_requests() {
    let script = Script::default()
        .sends(Client, get("/a"))
        .sends(Server, ok("a"))
        .sends(Client, get("/b"))
        .sends(Server, ok("missed"))
        .missed()
        .sends(Client, get("/c"))
        .sends(Server, ok("cc"))
        .sends(Client, get("/d"))
        .sends(Server, ok("ddd"));
    let exchanges = script.exchanges();
    assert_eq!(in_words(&exchanges), ["GET /a: 200 1", "GET /b: nothing", "GET /c: 200 2", "GET /d: 200 3"]);
    assert!(exchanges[1].response_missed);
    let pipelining = script.watch().pipelining().unwrap();
    assert_eq!(pipelining.outstanding, 4, "the missed response had come before the next request");
}

#[test]
fn a_request_that_the_capture_missed_leaves_the_others_with_their_responses() {
    let script = Script::default()
        .sends(Client, get("/a"))
        .sends(Server, ok("a"))
        .sends(Client, get("/missed"))
        .missed()
        .sends(Server, ok("for missed"))
        .sends(Client, get("/c"))
        .sends(Server, ok("cc"));
    assert_eq!(in_words(&script.exchanges()), ["GET /a: 200 1", "?: 200 10", "GET /c: 200 2"]);
}

#[test]
fn a_hole_in_a_body_of_known_length_is_counted_over() {
    let body = "x".repeat(90);
    let (head, tail) = (&ok(&body)[..60], &ok(&body)[90..]);
    let script = Script::default()
        .sends(Client, get("/a") + &get("/b"))
        .sends(Server, head)
        .sends(Server, "y".repeat(30))
        .missed()
        .sends(Server, tail)
        .sends(Server, ok("b"));
    assert_eq!(in_words(&script.exchanges()), ["GET /a: 200 90", "GET /b: 200 1"]);
}

#[test]
fn a_snap_length_that_cuts_heads_leaves_what_segments_begin_with() {
    let script = Script::default()
        .sends(Client, get("/a"))
        .snapped(20)
        .sends(Server, ok(&"x".repeat(100)))
        .snapped(20)
        .sends(Server, "more of the body")
        .snapped(12)
        .sends(Client, get("/b"))
        .snapped(20)
        .sends(Server, ok("b"))
        .snapped(20);
    let exchanges = script.exchanges();
    assert_eq!(in_words(&exchanges), ["GET /a: 200 136 cut", "GET /b: 200 19 cut"]);
    let response = exchanges[0].response.as_ref().unwrap();
    assert!(!response.size.exact);
    assert_eq!((response.first.frame, response.last.frame), (2, 3));
}

#[test]
fn requests_that_were_captured_after_their_responses_are_found() {
    let mut script = Script::default()
        .sends(Client, get("/a"))
        .sends(Server, ok("a"))
        .sends(Client, get("/b"))
        .sends(Server, ok("b"));
    script.segments.swap(0, 1);
    script.segments.swap(2, 3);
    assert_eq!(in_words(&script.exchanges()), ["GET /a: 200 1", "GET /b: 200 1"]);
}

#[test]
fn other_protocols_are_recognised() {
    let mail = Script::default().sends(Server, "220 mail.example.org ESMTP\r\n").sends(Client, "EHLO a\r\n");
    let files = Script::default().sends(Server, "220 ready\r\n").sends(Client, "USER anonymous\r\n");
    let shell = Script::default().sends(Client, "SSH-2.0-OpenSSH\r\n").sends(Server, "SSH-2.0-OpenSSH\r\n");
    let bulk = Script::default().sends(Client, [0; 1000]).sends(Client, [1; 1000]);
    for script in [mail, files, shell, bulk] {
        assert_eq!(script.watch().application, Application::Other);
    }
    assert_eq!(Script::default().watch().application, Application::Silent);
}

#[test]
fn a_response_to_what_is_no_proper_request_is_seen() {
    let script = Script::default()
        .sends(Client, "GET/HTTP/1.1\nHost: example.org\n\n")
        .sends(Server, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        .sends(Client, get("/b"))
        .sends(Server, ok("b"));
    assert_eq!(in_words(&script.exchanges()), ["?: 400 0", "GET /b: 200 1"]);
}

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, 3, 3];
    bytes.extend((body.len() as u16).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// A hello: `kind` 1 of the client, with a name and protocols, or 2 of the server, with the version
/// 1.3.
fn hello(kind: u8) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.push(0);
    let extensions: &[u8] = if kind == 1 {
        body.extend([0, 2, 0x13, 0x01, 1, 0]);
        b"\0\0\0\x10\0\x0e\0\0\x0bexample.org\0\x10\0\x0e\0\x0c\x02h2\x08http/1.1"
    } else {
        body.extend([0x13, 0x01, 0]);
        b"\0\x2b\0\x02\x03\x04"
    };
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    let mut message = vec![kind, 0];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend(body);
    record(22, &message)
}

fn tls_script() -> Script {
    let client_hello = hello(1);
    Script::default()
        .sends(Client, &client_hello[..50])
        .sends(Client, &client_hello[50..])
        .sends(Server, [hello(2), record(20, &[1]), record(23, &[0; 900])].concat())
        .sends(Client, [record(20, &[1]), record(23, &[0; 53])].concat())
        .sends(Client, record(23, &[0; 200]))
        .sends(Server, record(23, &[0; 1000]))
        .sends(Server, record(23, &[0; 500]))
}

fn tls_of(script: &Script) -> Tls {
    let Application::Tls(tls) = script.watch().application else { panic!("it is TLS") };
    tls
}

#[test]
fn tls_handshakes_and_bursts() {
    let tls = tls_of(&tls_script());
    assert_eq!(tls.server_name.as_deref(), Some("example.org"));
    assert_eq!(tls.protocols, ["h2".into(), "http/1.1".into()]);
    assert_eq!(tls.version, Some(0x0304));
    let frames = [tls.client_hello, tls.server_hello, tls.established].map(|mark| mark.unwrap().frame);
    assert_eq!(frames, [2, 3, 4]);
    let bursts: Vec<_> =
        tls.bursts.iter().map(|burst| (burst.from, burst.first.frame, burst.last.frame, burst.bytes)).collect();
    assert_eq!(bursts, [(Client, 5, 5, 200), (Server, 6, 7, 1500)]);
}

/// RFC 8446 §2.1: the messages of a handshake with a HelloRetryRequest, in the order of OpenSSL.
#[test]
fn a_hello_retry_request_is_no_server_hello() {
    let mut retry = hello(2);
    let random = b"\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91\
                   \xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c";
    retry[11..43].copy_from_slice(random);
    let script = Script::default()
        .sends(Client, hello(1))
        .sends(Server, [retry, record(20, &[1])].concat())
        .sends(Client, [record(20, &[1]), hello(1)].concat())
        .sends(Server, [hello(2), record(23, &[0; 900])].concat())
        .sends(Client, record(23, &[0; 53]))
        .sends(Server, record(23, &[0; 100]));
    let tls = tls_of(&script);
    let frames = [tls.client_hello, tls.server_hello, tls.established].map(|mark| mark.unwrap().frame);
    assert_eq!((frames, tls.version, tls.bursts.len()), ([1, 4, 5], Some(0x0304), 1));
}

#[test]
fn tls_records_are_found_again_after_what_was_missed() {
    let script = tls_script().sends(Server, record(23, &[0; 700])).missed().sends(Server, record(23, &[0; 40]));
    assert_eq!(tls_of(&script).bursts.last().unwrap().bytes, 1540);
}

#[test]
fn an_older_handshake_ends_with_the_later_of_the_two_finished() {
    let mut server_hello = hello(2);
    // Without its extension it is version 1.2.
    server_hello.truncate(server_hello.len() - 8);
    server_hello[4] -= 8;
    server_hello[8] -= 8;
    let finished = [record(20, &[1]), record(22, &[9; 40])].concat();
    let script = Script::default()
        .sends(Client, hello(1))
        .sends(Server, server_hello)
        .sends(Client, &finished)
        .sends(Server, &finished);
    let tls = tls_of(&script);
    assert_eq!((tls.version, tls.established.unwrap().frame), (Some(0x0303), 4));
}

/// A long conversation with everything in it.
fn long_script() -> Script {
    let body = "0123456789".repeat(30);
    Script::default()
        .sends(Client, get("/a"))
        .sends(Server, ok(&body))
        .sends(
            Client,
            get("/b") + &get("/c") + "POST /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        )
        .sends(Server, ok("b"))
        .sends(Server, format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n12c\r\n{body}\r\n0\r\n\r\n"))
        .sends(Server, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        .sends(Client, "HEAD /e HTTP/1.1\r\n\r\nGET /f HTTP/1.0\r\n\r\n")
        .sends(Server, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nHTTP/1.1 200 OK\r\n\r\nto the end")
        .closes(Server)
        .closes(Client)
}

/// What must not depend on how the streams were cut into segments: all but the times.
fn timeless(exchanges: &[Exchange]) -> Vec<String> {
    let mut words = in_words(exchanges);
    for (word, exchange) in words.iter_mut().zip(exchanges) {
        let sizes = (
            exchange.request.as_ref().map(|request| request.size),
            exchange.response.as_ref().map(|response| response.size),
        );
        *word += &format!(" {sizes:?} {}", exchange.interim_responses);
    }
    words
}

proptest! {
    /// However the streams are cut, and whichever copies come twice or late, the exchanges are the
    /// same.
    #[test]
    fn the_exchanges_do_not_depend_on_the_segments(
        cuts in prop::collection::vec(1_usize..40, 1..60),
        copies in prop::collection::vec((0_usize..500, 0_usize..60), 0..30),
        late in prop::collection::vec((0_usize..500, 1_usize..12), 0..30),
    ) {
        let script = long_script();
        let mut cut = Script::default();
        let mut widths = cuts.iter().copied().cycle();
        for sent in &script.segments {
            let mut rest = &sent.bytes[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(widths.next().unwrap()));
                cut.segment(sent.from, now, Flags::ACK);
                rest = later;
            }
            if sent.bytes.is_empty() {
                cut.segment(sent.from, b"", sent.flags);
            }
        }
        let mut segments = cut.segments;
        for (which, later) in copies {
            let (from, to) = (which % segments.len(), (which % segments.len() + later).min(segments.len()));
            let copy = segments[from].clone();
            segments.insert(to, copy);
        }
        for (which, later) in late {
            let from = which % segments.len();
            // Only what the other end has not acted upon can be late: it stays before the other's
            // next segment.
            let side = segments[from].from;
            let room = segments[from + 1..].iter().take_while(|sent| sent.from == side).count().min(later);
            segments[from..=from + room].rotate_left(1);
        }
        prop_assert_eq!(timeless(watch(&segments).exchanges()), timeless(&script.exchanges()));
    }

    /// Whatever comes, nothing panics, and what is counted stays within what passed.
    #[test]
    fn nothing_panics(
        segments in prop::collection::vec(
            (any::<bool>(), 0_i64..4000, 0_usize..700, 0_usize..600, any::<u8>(), prop::option::of(0_i64..2000)), 0..80),
        garble in prop::collection::vec((0_usize..2000, any::<u8>()), 0..6),
    ) {
        let script = long_script();
        let mut streams = [Vec::new(), Vec::new()];
        for sent in &script.segments {
            streams[sent.from as usize].extend_from_slice(&sent.bytes);
        }
        for (at, byte) in garble {
            let stream = &mut streams[at % 2];
            let length = stream.len();
            stream[at % length] = byte;
        }
        let mark = |frame: usize| Mark { time: Instant::from_nanos(frame as u64), frame: frame as u64 };
        let mut watch = Watch::new(endpoint(1, 1), endpoint(2, 80), mark(0), false);
        for (number, (client, offset, length, captured, flags, acknowledged)) in segments.into_iter().enumerate() {
            let from = if client { Client } else { Server };
            let stream = &streams[from as usize];
            let begin = (offset as usize).min(stream.len());
            let captured = &stream[begin..(begin + captured.min(length)).min(stream.len())];
            let piece = Piece { mark: mark(number), offset, acknowledged, length: length as u32, captured };
            watch.segment(from, Flags(flags), piece);
        }
        let timeline = watch.finish();
        for exchange in timeline.exchanges() {
            let sizes = [exchange.request.as_ref().map(|request| request.size), exchange.response.as_ref().map(|response| response.size)];
            for size in sizes.into_iter().flatten() {
                prop_assert!(size.head + size.body <= 4700 && size.content <= size.body);
            }
        }
    }
}
