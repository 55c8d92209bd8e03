//! Pages, and the requests for the objects that they name on their own server.

use std::io::Read;

use html5gum::{DefaultEmitter, Token, Tokenizer};

use crate::http::cache::{Reservation, SharedCache};
use crate::http::fields::{is, lines, values};
use crate::http::freshness::is_private;

/// Most bytes of a page, as it comes and decoded: objects that are named later are not fetched.
const MOST_CODED: u64 = 256 << 10;
const MOST_BYTES: u64 = 1 << 20;

/// The longest link that is resolved: every recipient supports this length (RFC 9110 §4.1).
const MOST_LINK: usize = 8000;

/// Buffer of the decoder of Brotli.
const BROTLI_BUFFER: usize = 4096;

/// Fields of the page's request that the requests for its objects have, too: responses are often
/// selected by them.
const COPIED: [&str; 4] = ["host", "user-agent", "accept-encoding", "accept-language"];

/// A page, while it arrives.
#[derive(Debug)]
pub struct Page {
    most: usize,
    /// The path of the page, and the copied fields.
    path: Vec<u8>,
    host: Vec<u8>,
    fields: Vec<u8>,
    coding: Vec<u8>,
    is_page: bool,
    content: Vec<u8>,
    /// Whether a part of the content did not fit.
    is_cut: bool,
    /// The content counts as bytes of the cache.
    reservation: Reservation,
}

impl Page {
    /// The page that a request may fetch, with at most `most` objects for `cache`.
    pub fn of_request(request: &[u8], most: usize, cache: &SharedCache) -> Option<Self> {
        let (start, all) = lines(request)?;
        let target = start.strip_prefix(b"GET ")?.strip_suffix(b" HTTP/1.1")?;
        let path = target.split(|byte| *byte == b'?').next()?.to_vec();
        let mut hosts = values(request, "host");
        let host = hosts.next()?.to_ascii_lowercase();
        if is_private(request) || !path.starts_with(b"/") || hosts.next().is_some() {
            return None;
        }
        let mut fields = Vec::new();
        for (name, value) in all.filter(|(name, _)| COPIED.iter().any(|known| is(name, known))) {
            fields.extend([name, b": ", value, b"\r\n"].concat());
        }
        let (coding, content, reservation) = (Vec::new(), Vec::new(), cache.reserve(MOST_CODED));
        Some(Self { most, path, host, fields, coding, is_page: false, content, is_cut: false, reservation })
    }

    /// The head of the response has arrived.
    pub fn begin(&mut self, head: &[u8]) {
        let is_success = lines(head).is_some_and(|(start, _)| start.starts_with(b"HTTP/1.1 200"));
        let kind = |value: &[u8]| value.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"text/html"));
        self.is_page = is_success && values(head, "content-type").any(kind);
        self.coding = values(head, "content-encoding").next().unwrap_or_default().to_ascii_lowercase();
    }

    /// Content arrives. What does not fit into the cache, and what follows it, is not used.
    pub fn append(&mut self, data: &[u8]) {
        let part = &data[..data.len().min(self.reservation.room())];
        if self.is_page && !self.is_cut && self.reservation.extend(part.len()) {
            self.content.extend_from_slice(part);
        } else {
            self.is_cut = true;
        }
    }

    /// The content, as far as it can be decoded.
    fn text(&self) -> Vec<u8> {
        let content = &self.content[..];
        let decoder: Box<dyn Read + '_> = match &self.coding[..] {
            b"" | b"identity" => Box::new(content),
            b"gzip" => Box::new(flate2::read::GzDecoder::new(content)),
            b"br" => Box::new(brotli::Decompressor::new(content, BROTLI_BUFFER)),
            b"zstd" => match zstd::stream::read::Decoder::new(content) {
                Ok(decoder) => Box::new(decoder),
                Err(_) => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        let mut text = Vec::new();
        // What came before an error, or before the content was cut, is used.
        let _ = decoder.take(MOST_BYTES).read_to_end(&mut text);
        text
    }

    /// The requests for the objects that the page names.
    pub fn requests(&self) -> Vec<Vec<u8>> {
        if !self.is_page {
            return Vec::new();
        }
        let mut paths: Vec<Vec<u8>> = Vec::new();
        for link in links(&self.text()) {
            let Some(path) = self.resolve(&link).filter(|path| !paths.contains(path)) else { continue };
            paths.push(path);
            if paths.len() == self.most {
                break;
            }
        }
        let request = |path: Vec<u8>| [b"GET ", &path[..], b" HTTP/1.1\r\n", &self.fields[..], b"\r\n"].concat();
        paths.into_iter().map(request).collect()
    }

    /// The path of an object on the same server (RFC 3986 §5.2); `None` for other servers.
    fn resolve(&self, link: &[u8]) -> Option<Vec<u8>> {
        let link = link.trim_ascii().split(|byte| *byte == b'#').next()?;
        let is_valid = |byte: &u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(byte);
        if link.is_empty() || link.len() > MOST_LINK || !link.iter().all(is_valid) {
            return None;
        }
        let rest = match link.get(..5) {
            Some(scheme) if scheme.eq_ignore_ascii_case(b"http:") => &link[5..],
            _ => link,
        };
        if let Some(rest) = rest.strip_prefix(b"//") {
            let end = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let is_same = authority.to_ascii_lowercase() == self.host;
            return is_same.then(|| if path.starts_with(b"/") { normal(path) } else { [b"/", path].concat() });
        }
        let before_path = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
        if rest.len() < link.len() || rest[..before_path].contains(&b':') {
            return None;
        }
        Some(match rest.first() {
            Some(b'/') => normal(rest),
            Some(b'?') => [&self.path[..], rest].concat(),
            _ => {
                let folder = self.path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                normal(&[&self.path[..=folder], rest].concat())
            }
        })
    }
}

/// A path without its segments `.` and `..` (RFC 3986 §5.2.4), and its query.
fn normal(path: &[u8]) -> Vec<u8> {
    let (path, query) = path.split_at(path.iter().position(|byte| *byte == b'?').unwrap_or(path.len()));
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut ends_in_folder = false;
    for segment in path.split(|byte| *byte == b'/').skip(1) {
        ends_in_folder = matches!(segment, b"." | b"..");
        match segment {
            b"." => {}
            b".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let mut whole = Vec::with_capacity(path.len() + 1 + query.len());
    for segment in segments {
        whole.push(b'/');
        whole.extend_from_slice(segment);
    }
    if ends_in_folder || whole.is_empty() {
        whole.push(b'/');
    }
    whole.extend_from_slice(query);
    whole
}

/// The objects that a page needs to be shown, in its order; none if it has another base.
fn links(text: &[u8]) -> Vec<Vec<u8>> {
    let mut emitter = DefaultEmitter::<()>::default();
    // The content of scripts has no tags.
    emitter.naively_switch_states(true);
    let mut links = Vec::new();
    for Ok(token) in Tokenizer::new_with_emitter(text, emitter) {
        let Token::StartTag(tag) = token else { continue };
        let value = |name: &[u8]| tag.attributes.get(name).map(|value| value.value.0.clone());
        links.extend(match &tag.name[..] {
            b"base" => return Vec::new(),
            b"script" | b"img" => value(b"src"),
            b"link" => {
                let kinds = value(b"rel").unwrap_or_default().to_ascii_lowercase();
                let needed: [&[u8]; 3] = [b"stylesheet", b"icon", b"preload"];
                let is_needed = kinds.split(u8::is_ascii_whitespace).any(|kind| needed.contains(&kind));
                value(b"href").filter(|_| is_needed)
            }
            _ => None,
        });
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(coding: &str, content: &[u8]) -> Page {
        page_with(&SharedCache::new(1_000_000), coding, content)
    }

    fn page_with(cache: &SharedCache, coding: &str, content: &[u8]) -> Page {
        let request =
            "GET /a/b/page.html?x HTTP/1.1\r\nHost: Example.com\r\nCookie: a\r\nAccept-Encoding: gzip\r\n\r\n";
        let mut page = Page::of_request(request.as_bytes(), 4, cache).expect("it is usual");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=utf-8\r\n{coding}\r\n");
        page.begin(head.as_bytes());
        content.chunks(7).for_each(|part| page.append(part));
        page
    }

    fn paths(content: &str) -> Vec<String> {
        let paths = page("", content.as_bytes()).requests().into_iter().map(|request| {
            let request = String::from_utf8(request).expect("it is text");
            request.split(' ').nth(1).expect("there is a path").to_owned()
        });
        paths.collect()
    }

    #[test]
    fn a_page_names_its_objects() {
        let text = "<LINK rel='icon Stylesheet' href=s.css><link rel=next href=n.html><a href=a.html>\
                    <script src='/x.js?a&amp;b'></script><script>'<img src=no.png>'</script><!-- <img src=c.png> -->\
                    <img src=../i.png><img src=../i.png><img src=//example.com/j.png#f><img src=/five.png>";
        assert_eq!(paths(text), ["/a/b/s.css", "/x.js?a&b", "/a/i.png", "/j.png"]);
        let requests = page("", text.as_bytes()).requests();
        let expected = "GET /a/b/s.css HTTP/1.1\r\nHost: Example.com\r\nAccept-Encoding: gzip\r\n\r\n";
        assert_eq!(String::from_utf8(requests[0].clone()).as_deref(), Ok(expected));
        assert_eq!(paths(&format!("<base href=/other/>{text}")), [""; 0]);
    }

    #[test]
    fn references_are_resolved_as_in_rfc_3986() {
        for (link, path) in [
            ("g", Some("/a/b/g")),
            ("./g/", Some("/a/b/g/")),
            ("?y", Some("/a/b/page.html?y")),
            ("g?y/../x", Some("/a/b/g?y/../x")),
            ("..", Some("/a/")),
            ("../../../g", Some("/g")),
            ("/./g", Some("/g")),
            ("http://EXAMPLE.com", Some("/")),
            ("http://example.com/../x", Some("/x")),
            ("#s", None),
            ("http:g", None),
            ("https://example.com/", None),
            ("//example.com:81/", None),
            ("data:image/png;base64,AA==", None),
            ("a b", None),
            ("x\r\nHost: y", None),
        ] {
            let found = page("", b"").resolve(link.as_bytes());
            assert_eq!(found.map(|found| String::from_utf8(found).expect("it is text")).as_deref(), path, "{link}");
        }
    }

    #[test]
    fn long_links_are_not_used() {
        let link = |length| "/a".repeat(length / 2);
        assert_eq!(page("", b"").resolve(link(MOST_LINK).as_bytes()), Some(link(MOST_LINK).into_bytes()));
        assert_eq!(page("", b"").resolve(link(MOST_LINK + 2).as_bytes()), None);
    }

    #[test]
    fn a_page_may_be_compressed() {
        use std::io::Write;
        let text = format!("<img src=x.png>{}", "text ".repeat(1000));
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).expect("memory can be written");
        let coded = encoder.finish().expect("memory can be written");
        for length in [coded.len(), coded.len() - 9] {
            assert_eq!(page("Content-Encoding: gzip\r\n", &coded[..length]).requests().len(), 1);
        }
        assert!(page("Content-Encoding: x\r\n", text.as_bytes()).requests().is_empty());
        assert!(page("Content-Type: text/plain\r\n", b"").requests().is_empty());
    }

    #[test]
    fn pages_that_arrive_count_as_bytes_of_the_cache() {
        let cache = SharedCache::new(8000);
        let text = format!("<img src=x.png>{}<img src=y.png>", "text ".repeat(300));
        let pages: Vec<Page> = (0..8).map(|_| page_with(&cache, "", text.as_bytes())).collect();
        assert!(cache.used() > 7000 && cache.used() <= 8000, "{}", cache.used());
        assert!(pages.iter().all(|page| page.requests().len() == 1), "an eighth of the capacity is read");
        drop(pages);
        page_with(&cache, "Content-Type: text/plain\r\n", text.as_bytes());
        assert_eq!(cache.used(), 0);
    }

    #[test]
    fn what_is_private_has_no_page() {
        let cache = SharedCache::new(1_000_000);
        for request in ["POST / HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic x"] {
            assert!(Page::of_request(format!("{request}\r\n\r\n").as_bytes(), 4, &cache).is_none(), "{request}");
        }
    }
}
