//! Clients and origins with known bytes, in pieces of any size and in any order.

use std::num::NonZeroU8;

use airpath_core::Seed;
use proptest::prelude::*;

use super::*;
use crate::http::target::Host;

/// A request and its response.
#[derive(Clone, Debug)]
struct Pair {
    request: Vec<u8>,
    is_safe: bool,
    response: Vec<u8>,
    /// Whether the end of the connection ends it.
    closes: bool,
}

/// What an origin does to one response.
#[derive(Clone, Copy, Debug)]
struct Cut {
    index: usize,
    /// Bytes that it sends.
    at: usize,
    in_order: bool,
}

fn chunked(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in data.chunks(7) {
        bytes.extend(format!("{:X};x\r\n", piece.len()).bytes());
        bytes.extend_from_slice(piece);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\nX-Trailer: yes\r\n\r\n");
    bytes
}

/// A message with a body of kind 0 to 3: none, by length, chunked, until the connection ends.
fn message(start: &str, kind: u8, data: &[u8]) -> Vec<u8> {
    let (field, body) = match kind {
        1 => (format!("Content-Length: {}\r\n", data.len()), data.to_vec()),
        2 => ("Transfer-Encoding: chunked\r\n".to_owned(), chunked(data)),
        3 => (String::new(), data.to_vec()),
        _ => (String::new(), Vec::new()),
    };
    [format!("{start}\r\n{field}\r\n").into_bytes(), body].concat()
}

fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    let data = || proptest::collection::vec(any::<u8>(), 0..60);
    let each = (0_u8..6, data(), 0_u8..6, data());
    proptest::collection::vec(each, 1..8).prop_map(|all| {
        let count = all.len();
        let pair = |(index, (request, sent, response, received)): (usize, (u8, Vec<u8>, u8, Vec<u8>))| {
            let (method, kind) = match request {
                0..=2 => ("GET", 0),
                3 => ("HEAD", 0),
                4 => ("POST", 1),
                _ => ("PUT", 2),
            };
            let kind_of_response = match response {
                _ if method == "HEAD" => 4,
                // Only the last response may end with its connection.
                3 if index + 1 < count => 1,
                4 => 2,
                kind => kind,
            };
            let response = match kind_of_response {
                0 => message("HTTP/1.1 204 No Content", 0, &[]),
                // The length that a GET would have.
                4 => b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n".to_vec(),
                5 => [
                    message("HTTP/1.1 103 Early Hints\r\nLink: </a>", 0, &[]),
                    message("HTTP/1.1 200 OK", 1, &received),
                ]
                .concat(),
                kind => message("HTTP/1.1 200 OK", kind, &received),
            };
            Pair {
                request: message(&format!("{method} /{index} HTTP/1.1\r\nHost: a"), kind, &sent),
                is_safe: matches!(method, "GET" | "HEAD"),
                response,
                closes: kind_of_response == 3,
            }
        };
        all.into_iter().enumerate().map(pair).collect()
    })
}

/// An origin's end of a server connection.
#[derive(Clone, Debug, Default)]
struct Origin {
    received: Vec<u8>,
    sends: Vec<u8>,
    /// Bytes of these that have arrived at the session, and those that it has read.
    arrived: usize,
    sent: usize,
    ends: Option<bool>,
    reported: bool,
}

/// Runs a session until nothing happens any more. Returns what the client has received, how its
/// stream has ended, and the session.
fn run(pairs: &[Pair], pipelining: u8, cut: Option<Cut>, seed: u64) -> (Vec<u8>, Option<End>, Session) {
    let pipelining = NonZeroU8::new(pipelining).expect("at least one");
    let mut session = Session::new(&Config { pipelining, ..Config::default() }, 2000);
    let stream: Vec<u8> = pairs.iter().flat_map(|pair| pair.request.clone()).collect();
    let (mut arrived, mut read, mut received) = (0, 0, Vec::new());
    let mut origins = vec![Origin::default(); usize::from(pipelining.get())];
    let mut answered = vec![false; pairs.len()];
    let mut choices = Seed::new(seed).stream("session");
    let mut idle = 0;
    while idle < 200 {
        let (kind, size) = (choices.below(6) as usize, choices.below(50) as usize + 1);
        let before =
            (arrived, read, received.len(), origins.iter().map(|origin| origin.arrived + origin.sent).sum::<usize>());
        match kind % 3 {
            0 => {
                arrived = (arrived + size).min(stream.len());
                read += session.read_client(Instant::ZERO, &stream[read..arrived]);
            }
            1 => session.take_response_bytes((size as u64).min(session.available()), |bytes| received.extend(bytes)),
            _ => {}
        }
        while let Some(wanted) = session.wanted_server() {
            session.set_server(wanted, size % 5 > 0);
        }
        for (number, origin) in origins.iter_mut().enumerate() {
            session.take_request_bytes(number, size, |bytes| origin.received.extend(bytes));
            // The origin answers each complete request.
            if let Some(index) = pairs.iter().position(|pair| origin.received.starts_with(&pair.request)) {
                origin.received.drain(..pairs[index].request.len());
                let before_it = answered[..index].iter().all(|answered| *answered);
                assert!(pairs[index].is_safe || before_it, "{index} was sent before all earlier ones were answered");
                answered[index] = true;
                if origin.ends.is_some() {
                    continue;
                }
                let cut = cut.filter(|cut| cut.index == index);
                let length = cut.map_or(usize::MAX, |cut| cut.at).min(pairs[index].response.len());
                origin.sends.extend_from_slice(&pairs[index].response[..length]);
                origin.ends = cut.map(|cut| cut.in_order).or(pairs[index].closes.then_some(true));
            }
            if (kind + number) % 2 == 0 && origin.sent < origin.sends.len() {
                origin.arrived = (origin.arrived + size).min(origin.sends.len());
                origin.sent += session.read_server(Instant::ZERO, number, &origin.sends[origin.sent..origin.arrived]);
            }
            if let Some(in_order) = origin.ends
                && !origin.reported
            {
                let unread = origin.sends[origin.sent..].to_vec();
                if unread.len() < 50 {
                    origin.arrived = origin.sends.len();
                    let used = session.read_server(Instant::ZERO, number, &unread);
                    origin.sent += used;
                    session.server_ended(number, in_order, &unread[used..]);
                    origin.reported = used == unread.len() || session.has_abandoned(number);
                }
            }
        }
        let after =
            (arrived, read, received.len(), origins.iter().map(|origin| origin.arrived + origin.sent).sum::<usize>());
        idle = if after == before { idle + 1 } else { 0 };
    }
    let end = session.end();
    (received, end, session)
}

proptest! {
    #[test]
    fn responses_leave_in_order_and_byte_for_byte(
        pairs in pairs(),
        pipelining in 1_u8..5,
        seed in any::<u64>(),
    ) {
        let (received, end, session) = run(&pairs, pipelining, None, seed);
        let expected: Vec<u8> = pairs.iter().flat_map(|pair| pair.response.clone()).collect();
        prop_assert_eq!(received, expected);
        prop_assert_eq!(end, pairs.last().filter(|pair| pair.closes).map(|_| End::Close));
        prop_assert_eq!(session.statistics.requests, pairs.len() as u64);
        prop_assert_eq!(session.statistics.bypassed_bytes.iter().sum::<u64>(), 0);
    }

    #[test]
    fn a_response_that_is_cut_off_is_the_last(
        pairs in pairs(),
        pipelining in 1_u8..5,
        seed in any::<u64>(),
        (index, at, in_order) in (0_usize..8, 1_usize..60, any::<bool>()),
    ) {
        let index = index % pairs.len();
        let cut = Cut { index, at: at.min(pairs[index].response.len() - 1), in_order };
        let (received, end, session) = run(&pairs, pipelining, Some(cut), seed);
        let before: Vec<u8> = pairs[..index].iter().flat_map(|pair| pair.response.clone()).collect();
        let expected = [&before[..], &pairs[index].response[..cut.at]].concat();
        prop_assert!(expected.starts_with(&received) || received == expected, "nothing else is added");
        prop_assert_eq!(&received, &expected);
        prop_assert_eq!(end, Some(if in_order { End::Close } else { End::Abort }));
        let ends_with_connection = pairs[index].closes && in_order;
        let head = pairs[index].response.windows(4).position(|end| end == b"\r\n\r\n").map_or(0, |at| at + 4);
        prop_assert_eq!(session.statistics.truncated, u64::from(!(ends_with_connection && cut.at >= head)));
    }
}

/// A session of the given depth that has read `bytes`.
fn begun(pipelining: u8, bytes: &[u8]) -> Session {
    let pipelining = NonZeroU8::new(pipelining).expect("at least one");
    let mut session = Session::new(&Config { pipelining, ..Config::default() }, 2000);
    session.read_client(Instant::ZERO, bytes);
    session
}

fn outgoing(session: &mut Session, server: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    session.take_request_bytes(server, usize::MAX, |part| bytes.extend_from_slice(part));
    bytes
}

fn ready(session: &mut Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    session.take_response_bytes(session.available(), |part| bytes.extend_from_slice(part));
    bytes
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn what_is_not_http_passes_both_ways() {
    for (first, reason) in [(&b"\x16\x03\x01\0\x05hello"[..], Bypass::Tls), (b"SSH-2.0-x\r\n", Bypass::NotHttp)] {
        let mut session = begun(4, first);
        assert_eq!(outgoing(&mut session, 0), first);
        assert_eq!(session.read_server(Instant::ZERO, 0, b"answer"), 6);
        assert_eq!(ready(&mut session), b"answer");
        assert_eq!(session.statistics.bypassed_bytes[reason as usize], 6);
        session.server_ended(0, true, &[]);
        assert_eq!(session.end(), Some(End::Close));
        assert_eq!(session.read_client(Instant::ZERO, b"still sent"), 10);
        assert_eq!(outgoing(&mut session, 0), b"still sent");
        session.client_ended(0);
        assert!(session.ends_stream(0));
    }
}

#[test]
fn a_request_in_a_smuggled_body_is_not_interpreted() {
    let smuggled =
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n";
    let mut session = begun(4, smuggled);
    assert_eq!(outgoing(&mut session, 0), smuggled, "all of it goes to one server, as it came");
    assert_eq!(session.wanted_server(), None);
    assert_eq!(session.statistics.requests, 0);
}

#[test]
fn a_tunnel_waits_for_the_responses_before_it() {
    let mut session = begun(4, &[GET, b"\0\0"].concat());
    assert_eq!(outgoing(&mut session, 0), GET);
    session.read_server(Instant::ZERO, 0, b"HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(ready(&mut session).len(), 27);
    session.read_client(Instant::ZERO, b"\0\0");
    assert_eq!(outgoing(&mut session, 0), b"\0\0");
}

#[test]
fn after_an_upgrade_bytes_pass_both_ways() {
    let upgrade = b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let mut session = begun(4, &[&upgrade[..], b"\x81\x05early"].concat());
    assert_eq!(outgoing(&mut session, 0), upgrade);
    session.read_server(Instant::ZERO, 0, b"HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x02hi");
    assert!(ready(&mut session).ends_with(b"\x81\x02hi"));
    session.read_client(Instant::ZERO, b"\x81\x05early");
    assert_eq!(outgoing(&mut session, 0), b"\x81\x05early");
}

#[test]
fn a_server_that_speaks_first_is_heard() {
    let mut session = begun(4, b"");
    session.read_server(Instant::ZERO, 0, b"220 mail ready\r\n");
    assert_eq!(ready(&mut session), b"220 mail ready\r\n");
    assert_eq!(session.read_client(Instant::ZERO, b"EHLO a\r\n"), 8);
    assert_eq!(outgoing(&mut session, 0), b"EHLO a\r\n");
}

#[test]
fn more_than_was_requested_is_not_the_next_response() {
    let mut session = begun(4, &[GET, GET].concat());
    session.set_server(1, true);
    session.read_server(Instant::ZERO, 1, b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\nextra");
    session.read_server(Instant::ZERO, 0, b"HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(ready(&mut session).len(), 2 * 27);
    assert!(session.has_abandoned(1));
    assert_eq!(session.statistics.discarded_bytes, 24);
}

#[test]
fn a_request_without_an_answer_is_sent_once_more() {
    let mut session = begun(2, &[GET, GET].concat());
    session.set_server(1, true);
    assert_eq!(outgoing(&mut session, 1), GET);
    session.server_ended(1, true, &[]);
    session.read_server(Instant::ZERO, 0, b"HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(outgoing(&mut session, 0), [GET, GET].concat());
    session.read_server(Instant::ZERO, 0, b"HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!((ready(&mut session).len(), session.statistics.retries, session.end()), (2 * 27, 1, None));
}

#[test]
fn a_request_that_is_cut_off_is_aborted() {
    let mut session = begun(2, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    session.client_ended(0);
    assert_eq!(session.end(), Some(End::Abort));
}

const ACCEPTS_GZIP: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";

/// A session that compresses and has read `bytes`.
fn compressing(bytes: &[u8]) -> Session {
    let mut session = Session::new(&Config { compression: true, ..Config::default() }, 20_000);
    session.read_client(Instant::ZERO, bytes);
    session
}

#[test]
fn a_response_is_compressed_and_complete() {
    let text = "plain text ".repeat(1000);
    let mut session = compressing(&[ACCEPTS_GZIP, GET].concat());
    let response = message("HTTP/1.1 200 OK\r\nContent-Type: text/plain", 2, text.as_bytes());
    let both = [&response[..], &response].concat();
    let (mut read, mut received) = (0, Vec::new());
    while read < both.len() {
        let end = (read + 1000).min(both.len());
        read += session.read_server(Instant::ZERO, 0, &both[read..end]);
        received.extend(ready(&mut session));
    }
    let head = received.windows(4).position(|end| end == b"\r\n\r\n").expect("there is a head") + 4;
    let (mut body, mut compressed) = (Body::new(Framing::Chunked), Vec::new());
    let count = body.advance(&received[head..], |data| compressed.extend_from_slice(data)).expect("valid chunks");
    let mut decoded = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&compressed[..]), &mut decoded).expect("gzip");
    assert_eq!(decoded, text);
    assert!(count < text.len() / 5);
    assert_eq!(received[head + count..], response, "the second client does not accept it");
    let origin = response.windows(4).position(|end| end == b"\r\n\r\n").expect("there is a head") + 4;
    assert_eq!(session.statistics.uncompressed_bytes as usize, response.len() - origin);
}

#[test]
fn a_compressed_response_that_is_cut_off_does_not_look_complete() {
    for in_order in [true, false] {
        let mut session = compressing(ACCEPTS_GZIP);
        let response = message("HTTP/1.1 200 OK\r\nContent-Type: text/plain", 1, &[b'x'; 1000]);
        session.read_server(Instant::ZERO, 0, &response[..500]);
        session.server_ended(0, in_order, &[]);
        let received = ready(&mut session);
        assert!(received.len() > 100, "what has arrived is passed on");
        assert!(!received.ends_with(b"0\r\n\r\n"));
        assert_eq!(session.end(), Some(if in_order { End::Close } else { End::Abort }));
        assert_eq!(session.statistics.truncated, 1);
    }
    // Wrong framing in the middle: nothing can be appended.
    let mut session = compressing(ACCEPTS_GZIP);
    session.read_server(
        Instant::ZERO,
        0,
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!",
    );
    assert!(!ready(&mut session).ends_with(b"hello!"));
    assert_eq!(session.end(), Some(End::Abort));
}

#[test]
fn a_server_that_serves_one_connection_at_a_time_is_used_so() {
    let mut session = begun(4, &[GET, GET, GET].concat());
    session.set_server(1, true);
    session.set_server(2, true);
    assert!(!session.is_stalled());
    session.read_server(Instant::ZERO, 0, b"HTTP/1.1 204 No Content\r\n\r\n");
    assert!(session.is_stalled());
    session.use_one_server();
    assert_eq!(outgoing(&mut session, 0), [GET, GET, GET].concat());
    assert!(session.has_abandoned(1) && session.has_abandoned(2) && !session.is_stalled());
    session.release_server(1);
    assert_eq!(session.read_client(Instant::ZERO, GET), GET.len());
    assert_eq!(session.wanted_server(), None);
}

#[test]
fn a_server_that_refuses_or_resets_is_not_a_clean_end() {
    for pipelining in [1, 2] {
        let mut session = begun(pipelining, GET);
        session.server_ended(0, false, &[]);
        if pipelining > 1 {
            assert_eq!(session.wanted_server(), Some(1), "it is tried once more");
            session.set_server(1, true);
            session.server_ended(1, false, &[]);
        }
        assert_eq!(session.end(), Some(End::Abort));
    }
}

/// A session of another client that shares `cache`, and has read `bytes`.
fn sharing(cache: &SharedCache, now: Instant, bytes: &[u8]) -> Session {
    let mut session = Session::new(&Config::default(), 2000).with_cache(cache.clone(), None);
    session.read_client(now, bytes);
    session
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + airpath_core::Span::from_secs(seconds)
}

/// A response of 5,000 bytes that is fresh for a minute.
fn fresh() -> Vec<u8> {
    let start = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v\"\r\nContent-Type: text/plain";
    message(start, 2, &[b'x'; 5000])
}

/// Passes a response to a session, and what it returns to the client.
fn answered(session: &mut Session, now: Instant, response: &[u8]) -> Vec<u8> {
    let (mut read, mut received) = (0, Vec::new());
    loop {
        read += session.read_server(now, 0, &response[read..]);
        let part = ready(session);
        received.extend_from_slice(&part);
        if part.is_empty() {
            return received;
        }
    }
}

#[test]
fn a_stored_response_is_sent_again_and_validated_when_it_is_stale() {
    let cache = SharedCache::new(100_000);
    let mut first = sharing(&cache, at(0), GET);
    assert_eq!(answered(&mut first, at(0), &fresh()), fresh(), "it passes byte for byte");
    assert_eq!(first.statistics.cache_stored, 1);

    let mut second = sharing(&cache, at(10), &[GET, GET].concat());
    let received = String::from_utf8(answered(&mut second, at(10), b"")).expect("it is text");
    assert_eq!(received.matches("Age: 10\r\n").count(), 2);
    assert_eq!(received.matches('x').count(), 2 * 5000 + 2 * "text/x".matches('x').count());
    assert_eq!(outgoing(&mut second, 0), b"");
    assert_eq!((second.statistics.cache_hits, second.statistics.cached_bytes), (2, 10_000));

    // The next request waits until the server has confirmed the first.
    let mut third = sharing(&cache, at(100), &[GET, b"POST /other HTTP/1.1\r\nHost: a\r\n\r\n"].concat());
    let validates = [&GET[..GET.len() - 2], b"If-None-Match: \"v\"\r\n\r\n"].concat();
    assert_eq!(outgoing(&mut third, 0), validates);
    let confirmed = b"HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"v\"\r\n\r\n";
    let received = String::from_utf8(answered(&mut third, at(100), confirmed)).expect("it is text");
    assert!(received.starts_with("HTTP/1.1 200 OK\r\n") && received.contains("Content-Length: 5000\r\n"), "{received}");
    assert!(outgoing(&mut third, 0).starts_with(b"POST"));
    assert_eq!((third.statistics.cache_validations, third.end()), (1, None));

    let mut fourth = sharing(&cache, at(150), GET);
    assert!(answered(&mut fourth, at(150), b"").starts_with(b"HTTP/1.1 200 OK\r\n"));
}

#[test]
fn a_client_that_has_the_response_receives_a_304() {
    let cache = SharedCache::new(100_000);
    answered(&mut sharing(&cache, at(0), GET), at(0), &fresh());
    let conditional = b"GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"v\"\r\n\r\n";
    let received = answered(&mut sharing(&cache, at(1), conditional), at(1), b"");
    assert!(received.starts_with(b"HTTP/1.1 304 Not Modified\r\nAge: 1\r\n"));
    // When it is stale, the server answers the client itself.
    let mut session = sharing(&cache, at(61), conditional);
    assert_eq!(outgoing(&mut session, 0), conditional);
    let response = b"HTTP/1.1 304 Not Modified\r\n\r\n";
    assert_eq!(answered(&mut session, at(61), response), response);
    let only = b"GET / HTTP/1.1\r\nHost: a\r\nCache-Control: only-if-cached\r\n\r\n";
    assert!(answered(&mut sharing(&cache, at(61), only), at(61), b"").starts_with(b"HTTP/1.1 504 "));
}

#[test]
fn what_is_not_to_be_stored_is_fetched_again() {
    let cache = SharedCache::new(100_000);
    let cut = &fresh()[..4000];
    let mut session = sharing(&cache, at(0), GET);
    answered(&mut session, at(0), cut);
    session.server_ended(0, true, &[]);
    assert_eq!(cache.used(), 0, "it was cut off");
    for field in ["Range: bytes=0-1", "Authorization: x", "Cache-Control: no-store", "If-Match: \"v\""] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n");
        answered(&mut sharing(&cache, at(0), request.as_bytes()), at(0), &fresh());
        assert_eq!(cache.used(), 0, "{field}");
        answered(&mut sharing(&cache, at(0), GET), at(0), &fresh());
        let mut session = sharing(&cache, at(1), request.as_bytes());
        assert_eq!(outgoing(&mut session, 0), request.as_bytes(), "{field}");
        // An unsafe request that succeeds changes the resource.
        let delete = b"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n";
        answered(&mut sharing(&cache, at(1), delete), at(1), b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        assert!(cache.used() > 0);
        answered(&mut sharing(&cache, at(1), delete), at(1), b"HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(cache.used(), 0);
    }
}

#[test]
fn a_stored_response_is_compressed_for_clients_that_accept_it() {
    let cache = SharedCache::new(100_000);
    let config = Config { compression: true, ..Config::default() };
    let mut first = Session::new(&config, 2000).with_cache(cache.clone(), None);
    first.read_client(at(0), ACCEPTS_GZIP);
    answered(&mut first, at(0), &fresh());
    let mut second = Session::new(&config, 2000).with_cache(cache, None);
    second.read_client(at(1), &[ACCEPTS_GZIP, GET].concat());
    let received = answered(&mut second, at(1), b"");
    let text = String::from_utf8_lossy(&received);
    assert_eq!(text.matches("Content-Encoding: gzip").count(), 1);
    assert!(text.ends_with("xxx"), "the second client does not accept it");
    assert_eq!(second.statistics.cache_hits, 2);
}

#[test]
fn an_image_that_is_cut_off_or_cannot_be_recoded_passes_as_it_came() {
    let config = Config { image_quality: NonZeroU8::new(50), ..Config::default() };
    let image = message("HTTP/1.1 200 OK\r\nContent-Type: image/jpeg", 1, &[b'x'; 5000]);
    let mut session = Session::new(&config, 2000);
    session.read_client(at(0), &[GET, GET].concat());
    assert_eq!(answered(&mut session, at(0), &image), image);
    assert_eq!(session.statistics.recoded_images, 0);
    assert_eq!(answered(&mut session, at(0), &image[..3000]), b"", "it is held back");
    session.server_ended(0, true, b"");
    assert_eq!((ready(&mut session), session.end()), (image[..3000].to_vec(), Some(End::Close)));
}

#[test]
fn an_image_is_not_held_back_when_its_connection_becomes_a_tunnel() {
    let config = Config { image_quality: NonZeroU8::new(50), ..Config::default() };
    let image = message("HTTP/1.1 200 OK\r\nContent-Type: image/jpeg", 1, &[b'x'; 5000]);
    let mut session = Session::new(&config, 20_000);
    session.read_client(at(0), b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    assert_eq!(answered(&mut session, at(0), &image[..3000]), b"", "it is held back");
    session.read_client(at(0), b"no length\r\n");
    assert_eq!([ready(&mut session), answered(&mut session, at(0), &image[3000..])].concat(), image);
    assert_eq!(answered(&mut session, at(0), b"anything"), b"anything");
}

#[test]
fn compressed_content_does_not_become_a_tunnel() {
    let config = Config { compression: true, ..Config::default() };
    let mut session = Session::new(&config, 20_000);
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
    session.read_client(at(0), &[&head[..], b"2\r\nab\r\n"].concat());
    let response = message("HTTP/1.1 200 OK\r\nContent-Type: text/plain", 1, &[b'x'; 5000]);
    assert!(String::from_utf8_lossy(&answered(&mut session, at(0), &response[..3000])).contains("gzip"));
    session.read_client(at(0), b"no length\r\n");
    let received = answered(&mut session, at(0), &response[3000..]);
    assert!(!received.ends_with(b"0\r\n\r\n") && !received.ends_with(b"xx"), "the rest is neither coded nor framed");
    assert_eq!((session.end(), session.tunnel_server()), (Some(End::Abort), None));
}

/// A session whose server connection 0 was open before, and which has read `bytes`.
fn reusing(bytes: &[u8]) -> Session {
    let mut session = Session::new(&Config { server_pool: 1, ..Config::default() }, 2000);
    assert_eq!(session.wanted_server(), Some(0));
    session.reuse_server(0);
    session.read_client(at(0), bytes);
    session
}

#[test]
fn a_kept_server_connection_that_has_ended_is_replaced() {
    // Before and after the request, which is safe.
    for is_sent in [false, true] {
        let mut session = reusing(if is_sent { GET } else { b"" });
        assert_eq!(outgoing(&mut session, 0), if is_sent { GET } else { b"" });
        session.server_ended(0, true, b"");
        assert_eq!((session.wanted_server(), session.end()), (Some(0), None));
        assert!(!session.may_reuse(0));
        session.set_server(0, true);
        session.read_client(at(0), if is_sent { b"" } else { GET });
        assert_eq!(outgoing(&mut session, 0), GET);
        let response = message("HTTP/1.1 200 OK", 1, b"content");
        assert_eq!(answered(&mut session, at(0), &response), response);
        assert!(session.may_keep(0));
    }
    // What has begun is passed on.
    let mut session = reusing(GET);
    session.server_ended(0, true, b"HTTP/1.1 2");
    assert_eq!((ready(&mut session), session.end()), (b"HTTP/1.1 2".to_vec(), Some(End::Close)));
}

#[test]
fn what_cannot_be_repeated_uses_a_kept_connection_only_after_an_answer() {
    const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    for bytes in [POST, b"\x16\x03\x01"] {
        let mut session = reusing(bytes);
        assert_eq!(session.wanted_server(), Some(0), "another connection");
        assert!(!session.may_reuse(0));
        session.set_server(0, true);
        assert_eq!(outgoing(&mut session, 0), bytes);
    }
    let mut session = reusing(&[GET, POST].concat());
    answered(&mut session, at(0), &message("HTTP/1.1 200 OK", 1, b"content"));
    assert_eq!(session.wanted_server(), None);
    assert_eq!(outgoing(&mut session, 0), [GET, POST].concat());
}

#[test]
fn a_connection_with_credentials_of_its_own_is_not_kept() {
    let response = message("HTTP/1.1 200 OK", 1, b"content");
    let challenge = |scheme: &str| message(&format!("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: {scheme}"), 1, b"");
    for (field, response, is_kept) in [
        ("X: y", response.clone(), true),
        ("Authorization: Basic YQ==", response.clone(), true),
        ("Authorization: NTLM YQ==", response.clone(), false),
        ("authorization: negotiate YQ==", response.clone(), false),
        ("X: y", challenge("Basic realm=\"a\""), true),
        ("X: y", challenge("NTLM"), false),
        ("X: y", message("HTTP/1.1 200 OK\r\nConnection: close", 1, b""), false),
        ("X: y", message("HTTP/1.1 200 OK", 3, b""), false),
    ] {
        let mut session = begun(1, format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n").as_bytes());
        outgoing(&mut session, 0);
        assert!(!session.may_keep(0), "the response is missing");
        answered(&mut session, at(0), &response);
        assert_eq!(session.may_keep(0), is_kept, "{field} {}", String::from_utf8_lossy(&response));
    }
}

/// The session of an explicit proxy that has sent `request` over server connection 0.
fn explicit(request: &[u8]) -> Session {
    let address = "192.0.2.99:8080".parse().expect("it is an address");
    let config = Config { pipelining: NonZeroU8::new(4).expect("at least one"), ..Config::default() };
    let proxy = ExplicitProxy { address, connect_ports: vec![443] };
    let mut session = Session::new(&config, 2000).with_explicit(proxy);
    assert_eq!(session.read_client(Instant::ZERO, request), request.len());
    assert_eq!(session.wanted_server(), Some(0));
    session.set_server(0, true);
    session.connected(0);
    outgoing(&mut session, 0);
    session
}

const GET_OF_PROXY: &[u8] = b"GET http://192.0.2.1/ HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n";

#[test]
fn a_server_cannot_take_the_connection_of_an_explicit_proxy() {
    let chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nx\r\n";
    let upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
    for (response, has_head) in [(&b"nonsense\r\n\r\n"[..], false), (upgrade, false), (chunk, true)] {
        let mut session = explicit(GET_OF_PROXY);
        session.read_server(Instant::ZERO, 0, response);
        assert_eq!((session.tunnel_server(), session.has_abandoned(0)), (None, true));
        assert_eq!(session.statistics.truncated, 1);
        let received = String::from_utf8(ready(&mut session)).expect("it is text");
        assert_eq!(received.starts_with("HTTP/1.1 200 OK"), has_head, "{received}");
        assert_eq!(received.starts_with("HTTP/1.1 502 "), !has_head, "{received}");
        assert_eq!(session.end(), has_head.then_some(End::Abort));
        session.release_server(0);
        let next = b"GET http://192.0.2.2/secret HTTP/1.1\r\nHost: 192.0.2.2\r\n\r\n";
        session.read_client(Instant::ZERO, next);
        let origin = (!has_head).then(|| session.origin(0).expect("it is wanted").host.clone());
        assert!(origin.is_none_or(|host| matches!(host, Host::Address(address) if address.to_string() == "192.0.2.2")));
    }
}

#[test]
fn nothing_is_appended_to_a_response_that_has_begun() {
    let post = b"POST http://192.0.2.1/ HTTP/1.1\r\nHost: 192.0.2.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for has_begun in [false, true] {
        let mut session = explicit(post);
        if has_begun {
            session.read_server(Instant::ZERO, 0, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
        }
        session.read_client(Instant::ZERO, b"nonsense\r\n");
        let received = String::from_utf8(ready(&mut session)).expect("it is text");
        assert_eq!(received.contains("HTTP/1.1 400 "), !has_begun, "{received}");
        assert_eq!(session.end(), Some(if has_begun { End::Abort } else { End::Close }));
        assert!(session.has_abandoned(0));
    }
}

#[test]
fn a_response_after_an_interim_one_is_coded_with_a_dictionary() {
    let content = b"0123456789".repeat(100);
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n";
    let mut session = Session::new(&Config::default(), 2000).with_dictionaries(Dictionaries::new(100_000));
    session.read_client(Instant::ZERO, GET);
    session.read_server(Instant::ZERO, 0, &[&head[..], &content].concat());
    assert_eq!(session.statistics.stored_dictionaries, 1);
    ready(&mut session);
    let hash = "q2xfMjf1UdII/CylIlpMyiCz/WOHlKgE8O1VSdUEFzQ=";
    let fields = format!("Accept-Encoding: dcz\r\nAvailable-Dictionary: :{hash}:\r\n");
    session.read_client(Instant::ZERO, format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes());
    let interim = b"HTTP/1.1 103 Early Hints\r\n\r\n";
    session.read_server(Instant::ZERO, 0, &[&interim[..], head, &content].concat());
    assert_eq!(session.statistics.delta_responses, 1);
}
