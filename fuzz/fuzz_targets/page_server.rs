//! A client that sends anything to the server of a page: no panic, and answers that do not depend
//! on how its bytes arrive.
//!
//! The input is a byte of settings, the sizes of parts up to a zero, and the bytes of the client.

#![no_main]

use std::sync::Arc;

use airpath_app::web::page::{Caching, Entry, ObjectKind};
use airpath_app::web::settings::Protocol;
use airpath_app::web::{LONGEST_HEAD, Page, PageFile, RequestHead, ServerText, Session, Settings, Urls};
use airpath_core::{Bytes, Instant, Span};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [settings, input @ ..] = input else { return };
    let Some(end) = input.iter().position(|size| *size == 0) else { return };
    let (sizes, text) = (&input[..end], &input[end + 1..]);
    if let Ok(Some(head)) = RequestHead::parse(text) {
        assert!(head.length <= LONGEST_HEAD && head.length <= text.len());
    }
    let urls = urls(*settings);
    let mut rest = text;
    let mut parts = Vec::with_capacity(sizes.len() + 1);
    for size in sizes {
        // Large parts, too.
        let length = if size & 128 == 0 { usize::from(*size) } else { usize::from(size & 127) * 256 };
        let (part, left) = rest.split_at(rest.len().min(length));
        parts.push(part);
        rest = left;
    }
    parts.push(rest);
    let ends = settings & 8 != 0;
    assert_eq!(answers(&urls, &parts, ends), answers(&urls, &[text], ends));
});

/// What a server sends until it closes or waits for the client only, and whether it closes.
fn answers(urls: &Arc<Urls>, parts: &[&[u8]], ends: bool) -> (Vec<u8>, bool) {
    let mut server = ServerText::new(Arc::clone(urls));
    let (mut answer, mut closes, mut now) = (Vec::new(), false, Instant::ZERO);
    for part in parts {
        server.receive(part);
        closes |= server.step(now, &mut answer);
    }
    if ends {
        server.end();
        closes |= server.step(now, &mut answer);
        assert!(closes, "a server closes after its client");
    }
    while let Some(next) = server.next_wakeup(now) {
        now = next;
        closes |= server.step(now, &mut answer);
    }
    (answer, closes)
}

/// The URLs of a page with a document and an object that is found in it: `/p//` and `/p/x` of `a`.
fn urls(settings: u8) -> Arc<Urls> {
    let entry = |name: &str, kind, wait| Entry {
        name: name.to_owned(),
        kind,
        origin: "a".to_owned(),
        size: Bytes::new(200),
        compressed: (settings & 4 != 0).then_some(Bytes::new(100)),
        referrer: None,
        at: None,
        wait: Span::from_millis(wait),
        process: Span::ZERO,
        cache: Caching::Revalidate,
        urgency: None,
        incremental: None,
    };
    let objects =
        vec![entry("/", ObjectKind::Document, u64::from(settings & 2) * 700), entry("x", ObjectKind::Image, 0)];
    let file = PageFile { name: "p".to_owned(), title: String::new(), source: String::new(), objects };
    let page = Page::new(&file).expect("it is valid");
    let protocol = if settings & 1 == 0 { Protocol::Http11 } else { Protocol::Http10 };
    let session = Session::new(Settings { protocol, ..Settings::default() }, vec![page]);
    Arc::new(Urls::of(&Arc::new(session)).expect("it is clear text"))
}
