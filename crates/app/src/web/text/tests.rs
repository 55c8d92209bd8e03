use std::io::{Read as _, Write as _};

use airpath_core::{Bytes, Instant, Span};
use proptest::prelude::*;

use super::content::content;
use super::*;
use crate::web::page::{Caching, Entry, ObjectKind, Page, PageFile};
use crate::web::settings::{Protocol, Settings};
use crate::web::view::Source;
use crate::web::{Action, Browser};

fn entry(name: &str, kind: ObjectKind, size: u64, at: Option<u64>) -> Entry {
    Entry {
        name: name.to_owned(),
        kind,
        origin: "a".to_owned(),
        size: Bytes::new(size),
        compressed: None,
        referrer: None,
        at: at.map(Bytes::new),
        wait: Span::ZERO,
        process: Span::ZERO,
        cache: Caching::Revalidate,
        urgency: None,
        incremental: None,
    }
}

fn page(objects: Vec<Entry>) -> Page {
    let file = PageFile { name: "p".to_owned(), title: String::new(), source: String::new(), objects };
    Page::new(&file).expect("it is valid")
}

/// A document with a style and an image, by the byte at which they are found.
fn small_page(compressed: Option<u64>) -> Page {
    let document = Entry { compressed: compressed.map(Bytes::new), ..entry("/", ObjectKind::Document, 10_000, None) };
    page(vec![
        document,
        entry("a b.css", ObjectKind::Style, 0, Some(500)),
        entry("c.gif", ObjectKind::Image, 3_000, Some(9_000)),
    ])
}

/// Loads the pages of `session` over one connection at a time, with `between` between server and
/// browser; returns the browser.
fn load(session: Session, mut between: impl FnMut(Vec<u8>) -> Vec<u8>) -> (Browser, Vec<String>) {
    let session = Arc::new(session);
    let urls = Arc::new(Urls::of(&session).expect("it is clear text"));
    let mut browser = Browser::new(session, Instant::ZERO);
    let (mut now, mut ends, mut heads) = (Instant::ZERO, Vec::new(), Vec::new());
    for _ in 0..1000 {
        let mut acted = false;
        while let Some(action) = browser.poll(now) {
            let Action::Open(number) = action else { panic!("there are no look-ups") };
            let mut client = ClientText::new(Arc::clone(&urls), number);
            client.establish();
            ends.push((client, ServerText::new(Arc::clone(&urls))));
        }
        for (client, server) in &mut ends {
            let (mut up, mut down) = (Vec::new(), Vec::new());
            acted |= client.step(now, &mut browser, &mut up);
            let text = String::from_utf8(up.clone()).expect("heads are text");
            heads.extend(text.split_inclusive("\r\n\r\n").map(str::to_owned));
            // Single bytes, so that everything arrives in parts.
            up.chunks(1).for_each(|byte| server.receive(byte));
            let ends = server.step(now, &mut down);
            for byte in between(down).chunks(1) {
                client.receive(byte).expect("it is a response");
            }
            if ends {
                client.end().expect("it is complete");
            }
            acted |= !up.is_empty();
        }
        ends.retain(|(client, _)| !client.is_closed());
        if browser.is_over() {
            return (browser, heads);
        }
        if !acted {
            now = browser.next_wakeup().expect("the page loads");
        }
    }
    panic!("the page does not load");
}

#[test]
fn a_page_loads_with_heads_of_the_stated_size() {
    for (protocol, connections) in [(Protocol::Http10, 3), (Protocol::Http11, 2)] {
        let settings = Settings { protocol, connections: 2, ..Settings::default() };
        let (browser, heads) = load(Session::new(settings, vec![small_page(None)]), |bytes| bytes);
        let received: Vec<u64> = browser.views()[0].fetches.iter().map(|fetch| fetch.received).collect();
        assert_eq!(received, [10_000, 0, 3_000]);
        assert_eq!(browser.views()[0].complete_objects(), 3);
        assert_eq!(browser.opened(), connections);
        assert_eq!(heads.iter().map(String::len).collect::<Vec<_>>(), [400, 400, 400]);
        assert!(heads[1].starts_with("GET /p/a%20b.css HTTP/1."), "{}", heads[1]);
    }
}

#[test]
fn least_heads_have_their_sizes() {
    for proxy in [false, true] {
        let settings = Settings { proxy, views: 2, reading: Span::ZERO, request: Bytes::ZERO, ..Settings::default() };
        let urls = Urls::of(&Arc::new(Session::new(settings.clone(), vec![small_page(None)])));
        let (request, _) = urls.expect("it is clear text").least_heads();
        for (request, all) in [(request, true), (request - 1, false)] {
            let settings = Settings { request: Bytes::new(request), ..settings.clone() };
            let (_, heads) = load(Session::new(settings, vec![small_page(None)]), |bytes| bytes);
            assert_eq!(heads.len(), 6);
            assert_eq!(heads.iter().all(|head| head.len() as u64 == request), all, "{heads:?}");
        }
    }
}

#[test]
fn later_views_validate() {
    let settings = Settings { views: 2, reading: Span::from_secs(1), proxy: true, ..Settings::default() };
    let (browser, heads) = load(Session::new(settings, vec![small_page(None)]), |bytes| bytes);
    assert!(browser.views()[1].fetches.iter().all(|fetch| fetch.source == Source::Revalidated));
    assert!(heads[0].starts_with("GET http://a/p// HTTP/1.1\r\nHost: a\r\n"), "{}", heads[0]);
    assert!(heads[3].contains("\r\nIf-None-Match: \"0-0\"\r\n"), "{}", heads[3]);
}

#[test]
fn content_that_a_server_compresses_has_the_stated_size() {
    let session = || Session::new(Settings::default(), vec![small_page(Some(2_500))]);
    let (browser, _) = load(session(), |bytes| bytes);
    assert_eq!(browser.views()[0].fetches[0].received, 2_500);
}

#[test]
fn content_that_a_proxy_compresses_is_decompressed() {
    let settings = Settings { compression: false, ..Settings::default() };
    let session = Session::new(settings, vec![small_page(Some(2_500))]);
    let (browser, _) = load(session, |bytes| {
        let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n").filter(|at| bytes.len() > at + 4) else {
            return bytes;
        };
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(&bytes[at + 4..]).expect("memory can be written");
        let packed = encoder.finish().expect("memory can be written");
        let mut text = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for part in packed.chunks(1_000) {
            write!(text, "{:x}\r\n", part.len()).expect("memory can be written");
            text.extend([part, b"\r\n"].concat());
        }
        text.extend(b"0\r\n\r\n");
        text
    });
    let view = &browser.views()[0];
    // References are found by their bytes in the decompressed content.
    assert!(view.fetches.iter().all(|fetch| fetch.finished.is_some()));
    assert!(view.fetches[0].received.abs_diff(2_500) < 250, "{}", view.fetches[0].received);
}

#[test]
fn made_up_content_compresses_as_stated() {
    for (size, compressed) in [(45_000, 10_000), (100_000, 20_000), (5_000, 2_000), (80_000, 60_000)] {
        let entry = Entry { compressed: Some(Bytes::new(compressed)), ..entry("x", ObjectKind::Script, size, None) };
        let bytes = content(&page(vec![entry]).objects[0], "a/x", &[], false);
        assert_eq!(bytes.len() as u64, size);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(&bytes).expect("memory can be written");
        let packed = encoder.finish().expect("memory can be written").len() as u64;
        assert!(packed.abs_diff(compressed) * 20 < compressed, "{size}: {packed} instead of {compressed}");
    }
}

/// The names that a reader of HTML would find, by the byte at which each tag ends.
fn named(bytes: &[u8]) -> Vec<(usize, String)> {
    let starts = (0..bytes.len()).filter(|at| bytes[*at] == b'<' && bytes[at + 1] != b'/');
    let tag = |at: usize| {
        let rest = &bytes[at..];
        let end = rest.iter().position(|byte| *byte == b'>').expect("a tag ends");
        let tag = String::from_utf8(rest[..end].to_vec()).expect("it is text");
        (at + end + 1, tag.split('"').nth(1).expect("it has a link").to_owned())
    };
    starts.map(tag).collect()
}

/// A document with objects of all kinds, found at these bytes.
fn document(size: u64, compressed: Option<u64>, at: &[u64]) -> Session {
    let kinds = [ObjectKind::Style, ObjectKind::Image, ObjectKind::Font, ObjectKind::Data];
    let objects = at.iter().enumerate().map(|(number, at)| entry(&number.to_string(), kinds[number % 4], 9, Some(*at)));
    let document = Entry { compressed: compressed.map(Bytes::new), ..entry("/", ObjectKind::Document, size, None) };
    let foreign = Entry { origin: "b".to_owned(), ..entry("f&g", ObjectKind::Image, 9, Some(size)) };
    let script = entry("late", ObjectKind::Data, 9, None);
    let all = [document].into_iter().chain(objects).chain([foreign, script]).collect();
    Session::new(Settings::default(), vec![page(all)])
}

#[test]
fn documents_name_the_objects_that_are_found_in_them() {
    let session = document(10_000, Some(2_500), &[1_000, 1_010, 2_000, 9_000]);
    let tags = tags(&session, 0, 0);
    let object = &session.pages[0].objects[0];
    let names = ["/p/0", "/p/1", "/p/2", "/p/3", "//b/p/f&amp;g"].map(str::to_owned);
    let plain = content(object, "a/p//", &tags, false);
    assert_eq!(plain.len(), 10_000);
    // The second follows the first: there is no room before its byte.
    let ends = [1_000, 1_000 + "<img src=\"/p/1\">".len(), 2_000, 9_000, 10_000];
    assert_eq!(named(&plain), ends.into_iter().zip(names.clone()).collect::<Vec<_>>());

    let coded = content(object, "a/p//", &tags, true);
    assert_eq!(coded.len(), 2_500);
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&coded[..]).read_to_end(&mut text).expect("it is a gzip file");
    assert_eq!(named(&text).into_iter().map(|(_, name)| name).collect::<Vec<_>>(), names);
    assert!(super::tags(&session, 0, 1).is_empty(), "a style names nothing");
}

#[test]
fn compressed_documents_have_the_stated_size() {
    for size in [1, 23, 24, 100, 65_535, 65_540, 65_553, 65_558, 65_559, 131_080, 131_098, 200_000] {
        let session = document(2 * size, Some(size), &[0]);
        let object = &session.pages[0].objects[0];
        let coded = content(object, "a/p//", &tags(&session, 0, 0), true);
        assert_eq!(coded.len() as u64, size);
        if size >= 24 {
            let read = flate2::read::GzDecoder::new(&coded[..]).read_to_end(&mut Vec::new());
            assert!(read.is_ok(), "{size}: {read:?}");
        }
    }
}

#[test]
fn what_does_not_fit_is_not_named() {
    let session = document(40, None, &[30, 30, 30]);
    let object = &session.pages[0].objects[0];
    let plain = content(object, "a/p//", &tags(&session, 0, 0), false);
    let names: Vec<String> = named(&plain).into_iter().map(|(_, name)| name).collect();
    assert_eq!((plain.len(), names), (40, vec!["/p/0".to_owned()]));
}

#[test]
fn names_change_the_compressed_size_little() {
    let at: Vec<u64> = (1..=40).map(|number| number * 1_000).collect();
    let session = document(45_000, Some(10_000), &at);
    let object = &session.pages[0].objects[0];
    let plain = content(object, "a/p//", &tags(&session, 0, 0), false);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(&plain).expect("memory can be written");
    let packed = encoder.finish().expect("memory can be written").len() as u64;
    assert!(packed.abs_diff(10_000) < 1_000, "{packed}");
}

#[test]
fn what_is_not_a_response_is_reported() {
    let urls = || {
        let session = Arc::new(Session::new(Settings::default(), vec![small_page(None)]));
        Arc::new(Urls::of(&session).expect("it is clear text"))
    };
    let answer = |text: &[u8]| {
        let urls = urls();
        let mut browser = Browser::new(Arc::clone(&urls.session), Instant::ZERO);
        assert_eq!(browser.poll(Instant::ZERO), Some(Action::Open(0)));
        let mut client = ClientText::new(Arc::clone(&urls), 0);
        client.establish();
        client.step(Instant::ZERO, &mut browser, &mut Vec::new());
        while browser.poll(Instant::ZERO).is_some() {}
        client.step(Instant::ZERO, &mut browser, &mut Vec::new());
        client.receive(text).and_then(|()| client.end())
    };
    assert_eq!(answer(b"HTTP/1.1 504 Gateway Timeout\r\n\r\n"), Err(Unexpected::Status(504)));
    assert_eq!(answer(b"220 smtp\r\n"), Err(Unexpected::Malformed));
    assert_eq!(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\nx"), Err(Unexpected::CutOff));
    let wrong =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhello hello hello\r\n";
    assert_eq!(answer(wrong), Err(Unexpected::Malformed));
    let mut server = ServerText::new(urls());
    server.receive(b"GET /unknown HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut text = Vec::new();
    assert!(server.step(Instant::ZERO, &mut text));
    assert!(text.starts_with(b"HTTP/1.1 400 "));
}

#[test]
fn the_longest_head_does_not_depend_on_how_it_arrives() {
    let urls = || Arc::new(Urls::of(&Arc::new(document(100, None, &[]))).expect("it is clear text"));
    for (length, status) in [(LONGEST_HEAD, "200"), (LONGEST_HEAD + 1, "400")] {
        let mut head = "GET /p// HTTP/1.1\r\nHost: a\r\n".to_owned();
        end_head(&mut head, "User-Agent", length as u64);
        assert_eq!(head.len(), length);
        for part in [1, 1000, length] {
            let (mut server, mut answer) = (ServerText::new(urls()), Vec::new());
            for bytes in head.as_bytes().chunks(part) {
                server.receive(bytes);
                server.step(Instant::ZERO, &mut answer);
            }
            let answer = String::from_utf8_lossy(&answer);
            assert_eq!(answer.split(' ').nth(1), Some(status), "{length} bytes in parts of {part}");
        }
    }
}

#[test]
fn requests_before_a_malformed_one_are_answered_first() {
    let urls = Arc::new(Urls::of(&Arc::new(document(100, None, &[]))).expect("it is clear text"));
    let (mut server, mut answer) = (ServerText::new(urls), Vec::new());
    server.receive(b"GET /p// HTTP/1.1\r\nHost: a\r\n\r\nGET /unknown HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(server.step(Instant::ZERO, &mut answer));
    let answer = String::from_utf8_lossy(&answer);
    let statuses: Vec<&str> = answer.split("HTTP/1.1 ").skip(1).map(|part| &part[..3]).collect();
    assert_eq!(statuses, ["200", "400"]);
}

#[test]
fn a_head_without_end_is_malformed() {
    let urls = Arc::new(Urls::of(&Arc::new(document(100, None, &[]))).expect("it is clear text"));
    let mut server = ServerText::new(urls);
    server.receive(b"GET / HTTP/1.1\r\nHost: ");
    let mut answer = Vec::new();
    for _ in 0..LONGEST_HEAD / 1000 {
        assert!(!server.step(Instant::ZERO, &mut answer));
        server.receive(&[b'a'; 1000]);
    }
    server.receive(&[b'a'; 1000]);
    assert!(server.step(Instant::ZERO, &mut answer) && answer.starts_with(b"HTTP/1.1 400 "));
    // Once.
    answer.clear();
    assert!(server.step(Instant::ZERO, &mut answer) && answer.is_empty());
}

/// What a server sends until it closes or waits for nothing but the client, if `parts` arrive one
/// after the other; and whether it closes.
fn answers<'a>(urls: &Arc<Urls>, parts: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, bool) {
    let mut server = ServerText::new(Arc::clone(urls));
    let (mut text, mut closes, mut now) = (Vec::new(), false, Instant::ZERO);
    for part in parts {
        server.receive(part);
        closes |= server.step(now, &mut text);
    }
    while let Some(next) = server.next_wakeup(now) {
        now = next;
        closes |= server.step(now, &mut text);
    }
    (text, closes)
}

/// Requests for objects, for what the server does not have, and bytes that are none.
fn sent_by_clients() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        Just("Host: a".to_owned()),
        Just("Host: b".to_owned()),
        Just("If-None-Match: \"0-0\", \"0-2\"".to_owned()),
        "[A-Za-z-]{1,12}: [ -~]{0,40}",
    ];
    let target = prop_oneof![Just("/p//"), Just("/p/late"), Just("http://a/p/late"), Just("http://b/p/f&g"), Just("*")];
    let fields = proptest::collection::vec(field, 0..4);
    let request = (target, fields).prop_map(|(target, fields)| {
        format!(
            "GET {target} HTTP/1.1\r\nHost: a\r\n{}\r\n",
            fields.iter().map(|each| format!("{each}\r\n")).collect::<String>()
        )
    });
    let garbage = proptest::collection::vec(any::<u8>(), 0..30);
    let one = prop_oneof![9 => request.prop_map(String::into_bytes), 1 => garbage];
    proptest::collection::vec(one, 0..6).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn answers_do_not_depend_on_how_requests_arrive(
        text in sent_by_clients(),
        cuts in proptest::collection::vec(0_usize..300, 1..40),
        is_http_1_0 in any::<bool>(),
        wait in 0_u64..3_000,
    ) {
        let mut session = document(100, None, &[50]);
        session.settings.protocol = if is_http_1_0 { Protocol::Http10 } else { Protocol::Http11 };
        session.pages[0].objects[0].wait = Span::from_millis(wait);
        let urls = Arc::new(Urls::of(&Arc::new(session)).expect("it is clear text"));
        let mut rest = &text[..];
        let parts = cuts.iter().map(|cut| {
            let (part, left) = rest.split_at(rest.len().min(*cut));
            rest = left;
            part
        });
        let mut parts: Vec<&[u8]> = parts.collect();
        parts.push(rest);
        prop_assert_eq!(answers(&urls, parts.into_iter()), answers(&urls, [&text[..]].into_iter()));
    }
}
