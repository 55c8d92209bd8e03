//! Delta coding against what the client has: Compression Dictionary Transport (RFC 9842).
//!
//! A client that keeps a response as a dictionary states the hash of it in later requests. The
//! proxy stores the responses that it has passed on by their hash, and codes a response with the
//! dictionary. The field `Use-As-Dictionary` makes a client keep a response for the next version of
//! the same resource; the proxy adds it where the server has not.
//!
//! All mobiles share the dictionaries: a client that states the hash has the content. What a shared
//! cache must not store does not become a dictionary (RFC 9111 §3).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use crate::http::compression::{Encoder, LEAST_LENGTH, begin_coded, is_coded};
use crate::http::delta::DeltaCoding;
use crate::http::fields::{is, lines, values};
use crate::http::freshness::{Directives, is_private};
use crate::http::transform::client_permits;

/// The window of the encoder reaches this far back.
const MOST_LENGTH: u64 = 2 << 20;

/// A dictionary has at most this part of the capacity.
const MOST_PART: u64 = 8;

/// The first bytes of a dictionary in the format of Zstandard, which would not be used as content
/// (RFC 8878 §5).
const FORMATTED: [u8; 4] = [0x37, 0xA4, 0x30, 0xEC];

/// The dictionaries that all mobiles share.
#[derive(Clone, Debug)]
pub struct Dictionaries(Arc<Mutex<Stored>>);

#[derive(Debug, Default)]
struct Stored {
    capacity: u64,
    /// Bytes of the contents, and of responses that arrive.
    used: u64,
    /// By hash, as `Available-Dictionary` has it.
    contents: BTreeMap<String, Dictionary>,
    /// The hashes, the oldest first.
    order: VecDeque<String>,
}

/// A response that clients may have.
#[derive(Clone, Debug)]
struct Dictionary {
    content: Arc<[u8]>,
    hash: [u8; 32],
}

/// A dictionary that the client of a request has, and the coding that it prefers.
#[derive(Clone, Debug)]
pub struct Available {
    dictionary: Dictionary,
    coding: DeltaCoding,
}

/// The response to a request, while it arrives and will be a dictionary. Its bytes are counted from
/// the start.
#[derive(Debug)]
pub struct Learning {
    dictionaries: Dictionaries,
    /// The path of the request.
    path: String,
    content: Vec<u8>,
    most: u64,
    is_used: bool,
}

impl Dictionaries {
    /// None yet, and at most `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Self(Arc::new(Mutex::new(Stored { capacity, ..Stored::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the capacity. What exceeds it is removed.
    pub fn set_capacity(&self, bytes: u64) {
        let mut stored = self.lock();
        stored.capacity = bytes;
        let _ = stored.make_room(0);
    }

    /// The dictionary that a request states, if the client accepts a coding with it.
    pub fn of_request(&self, head: &[u8]) -> Option<Available> {
        let coding = DeltaCoding::of_request(head).filter(|_| client_permits(head))?;
        let mut stated = values(head, "available-dictionary");
        let hash = stated.next()?.strip_prefix(b":")?.strip_suffix(b":")?;
        let dictionary = self.lock().contents.get(std::str::from_utf8(hash).ok()?).cloned()?;
        stated.next().is_none().then_some(Available { dictionary, coding })
    }

    /// Whether and how the response to a request becomes a dictionary.
    pub fn learn(&self, request: &[u8]) -> Option<Learning> {
        let target = lines(request)?.0.split(|byte| *byte == b' ').nth(1)?;
        let path = target.split(|byte| *byte == b'?').next()?;
        let most = (self.lock().capacity / MOST_PART).min(MOST_LENGTH);
        // Other characters have a meaning in patterns (RFC 9842 §2.1.1).
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-~%".contains(byte);
        let is_shared = !is_private(request) && !Directives::of(request).no_store;
        let is_usual = is_shared && client_permits(request) && path.starts_with(b"/") && path.iter().all(is_plain);
        let path = String::from_utf8(path.to_vec()).ok().filter(|_| is_usual)?;
        Some(Learning { dictionaries: self.clone(), path, content: Vec::new(), most, is_used: false })
    }
}

impl Stored {
    /// Removes the oldest until `bytes` fit. Returns whether they do.
    fn make_room(&mut self, bytes: u64) -> bool {
        while self.used + bytes > self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.used -= self.contents.remove(&oldest).map_or(0, |removed| removed.content.len() as u64);
        }
        self.used + bytes <= self.capacity
    }
}

impl Available {
    /// The head of the coded response for that of the origin; `None` if it is not to be coded.
    pub fn rewrite(&self, head: &[u8]) -> Option<Vec<u8>> {
        begin_coded(head, self.coding.name(), &["Accept-Encoding", "Available-Dictionary"])
    }

    /// An encoder that refers to it; `None` for want of memory.
    pub fn encoder(&self) -> Option<Encoder> {
        self.coding.encoder(&self.dictionary.content, &self.dictionary.hash)
    }
}

impl Learning {
    /// The head of the response has arrived. Returns the field that is to be added to it.
    pub fn begin(&mut self, head: &[u8]) -> Option<String> {
        let directives = Directives::of(head);
        let is_shared = !directives.no_store && !directives.private && values(head, "set-cookie").next().is_none();
        self.is_used = is_shared && is_coded(head);
        let has_field = lines(head)?.1.clone().any(|(name, _)| is(name, "use-as-dictionary"));
        (self.is_used && !has_field).then(|| format!("Use-As-Dictionary: match=\"{}\"\r\n", self.path))
    }

    /// Content arrives.
    pub fn append(&mut self, data: &[u8]) {
        if !self.is_used {
            return;
        }
        let bytes = data.len() as u64;
        let mut stored = self.dictionaries.lock();
        self.is_used = self.content.len() as u64 + bytes <= self.most && stored.make_room(bytes);
        if self.is_used {
            stored.used += bytes;
            self.content.extend_from_slice(data);
        } else {
            stored.used -= std::mem::take(&mut self.content).len() as u64;
        }
    }

    /// The response is complete. Returns whether it is stored now, and was not before.
    pub fn store(mut self) -> bool {
        let is_short = (self.content.len() as u64) < LEAST_LENGTH;
        if !self.is_used || is_short || self.content.starts_with(&FORMATTED) {
            return false;
        }
        let hash: [u8; 32] = Sha256::digest(&self.content).into();
        let key = base64(&hash);
        let dictionaries = self.dictionaries.clone();
        let mut stored = dictionaries.lock();
        // The capacity may have become smaller than what arrives.
        if stored.contents.contains_key(&key) || !stored.make_room(0) {
            return false;
        }
        let content = std::mem::take(&mut self.content).into();
        stored.order.push_back(key.clone());
        stored.contents.insert(key, Dictionary { content, hash });
        true
    }
}

impl Drop for Learning {
    fn drop(&mut self) {
        self.dictionaries.lock().used -= self.content.len() as u64;
    }
}

/// Bytes as RFC 4648 §4 writes them.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_usize, |bits, index| bits << 8 | usize::from(group.get(index).copied().unwrap_or(0)));
        for index in 0..4 {
            let digit = char::from(DIGITS[bits >> (18 - 6 * index) & 63]);
            text.push(if index <= group.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"GET /a/b.html?c HTTP/1.1\r\nHost: a\r\n\r\n";
    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";

    /// Stores a dictionary, and returns whether it was new.
    fn learns(dictionaries: &Dictionaries, content: &[u8]) -> bool {
        let mut learning = dictionaries.learn(REQUEST).expect("it is usual");
        let field = learning.begin(RESPONSE);
        assert_eq!(field.as_deref(), Some("Use-As-Dictionary: match=\"/a/b.html\"\r\n"));
        content.chunks(100).for_each(|part| learning.append(part));
        learning.store()
    }

    fn states(dictionaries: &Dictionaries, fields: &str) -> Option<Available> {
        dictionaries.of_request(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes())
    }

    #[test]
    fn the_hash_is_written_as_in_rfc_4648() {
        let examples = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (bytes, text) in examples {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn a_client_states_what_it_has() {
        let dictionaries = Dictionaries::new(100_000);
        let content = b"0123456789".repeat(100);
        assert!(learns(&dictionaries, &content));
        assert!(!learns(&dictionaries, &content), "it is stored once");
        let hash = base64(&Sha256::digest(&content));
        let available = format!("Available-Dictionary: :{hash}:\r\n");
        let found = states(&dictionaries, &format!("{available}Accept-Encoding: gzip, dcz\r\n"));
        let found = found.expect("it is stored");
        assert_eq!(&found.dictionary.content[..], content);
        let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nVary: Accept-Encoding, Available-Dictionary\r\n\
                        Content-Encoding: dcz\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(found.rewrite(RESPONSE).as_deref(), Some(expected.as_bytes()));
        assert!(states(&dictionaries, &format!("{available}Accept-Encoding: gzip, br\r\n")).is_none());
        assert!(states(&dictionaries, &format!("{available}Accept-Encoding: dcz;q=0\r\n")).is_none());
        assert!(states(&dictionaries, "Accept-Encoding: dcz\r\nAvailable-Dictionary: :AAAA:\r\n").is_none());
        assert!(states(&dictionaries, "Accept-Encoding: dcz\r\nAvailable-Dictionary: \"a\"\r\n").is_none());
    }

    #[test]
    fn dictionaries_are_bounded() {
        let dictionaries = Dictionaries::new(8000);
        for number in 0..20_u8 {
            assert!(learns(&dictionaries, &[number; 1000]));
            assert!(dictionaries.lock().used <= 8000);
        }
        assert_eq!(dictionaries.lock().contents.len(), 8);
        assert!(!learns(&dictionaries, &[99; 1001]), "it is too large");
        assert!(!learns(&dictionaries, &[99; 255]), "it is too small");
        assert!(!learns(&dictionaries, &[&FORMATTED[..], &[0; 500]].concat()), "it would be read in another way");
        dictionaries.set_capacity(0);
        let stored = dictionaries.lock();
        assert_eq!((stored.used, stored.contents.len()), (0, 0));
    }

    #[test]
    fn responses_that_arrive_are_counted() {
        let dictionaries = Dictionaries::new(8000);
        let begin = || {
            let mut learning = dictionaries.learn(REQUEST).expect("it is usual");
            learning.begin(RESPONSE);
            learning
        };
        let mut all: Vec<Learning> = (0..9).map(|_| begin()).collect();
        all.iter_mut().enumerate().for_each(|(index, learning)| learning.append(&[index as u8; 1000]));
        assert_eq!(dictionaries.lock().used, 8000);
        assert!(!all.remove(8).store(), "there was no room");
        assert!(all.remove(0).store());
        let all_but_one: Vec<Learning> = all.drain(1..).collect();
        drop(all_but_one);
        assert_eq!(dictionaries.lock().used, 2000);
        dictionaries.set_capacity(999);
        assert!(!all.remove(0).store(), "the capacity is smaller now");
        assert_eq!(dictionaries.lock().used, 0);
    }

    #[test]
    fn what_is_private_is_not_a_dictionary() {
        let dictionaries = Dictionaries::new(100_000);
        for field in ["Authorization: Basic x", "Cache-Control: no-store"] {
            let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n");
            assert!(dictionaries.learn(request.as_bytes()).is_none(), "{field}");
        }
        for field in ["Cache-Control: private", "Cache-Control: a, No-Store", "Set-Cookie: a=b"] {
            let mut learning = dictionaries.learn(REQUEST).expect("it is usual");
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{field}\r\n\r\n");
            assert_eq!(learning.begin(head.as_bytes()), None, "{field}");
            learning.append(&[0; 1000]);
            assert!(!learning.store(), "{field}");
        }
    }

    #[test]
    fn not_every_response_is_a_dictionary() {
        let dictionaries = Dictionaries::new(100_000);
        for request in ["POST / HTTP/1.1", "GET /a(b) HTTP/1.1", "GET /a* HTTP/1.1", "GET * HTTP/1.1"] {
            assert!(dictionaries.learn(format!("{request}\r\nHost: a\r\n\r\n").as_bytes()).is_none(), "{request}");
        }
        for fields in ["Content-Type: image/png\r\n", "Content-Type: text/html\r\nContent-Encoding: gzip\r\n"] {
            let mut learning = dictionaries.learn(REQUEST).expect("it is usual");
            assert_eq!(learning.begin(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes()), None);
            learning.append(&[0; 1000]);
            assert!(!learning.store());
        }
        let mut learning = dictionaries.learn(REQUEST).expect("it is usual");
        let own = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nUse-As-Dictionary: match=\"/*\"\r\n\r\n";
        assert_eq!(learning.begin(own), None, "the server's field stays");
        learning.append(&[0; 1000]);
        assert!(learning.store());
    }
}
