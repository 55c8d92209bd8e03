//! A cache of responses that all mobiles share (RFC 9111), bounded in bytes.
//!
//! The key of a response contains the address of the server that sent it. Otherwise a mobile with a
//! server of its own could store a response under the name of another host, because a transparent
//! proxy forwards to the address that the client has chosen (CVE-2009-0801).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airpath_core::Instant;

use crate::http::fields::{OF_CONNECTION, date, has_token, is, lines, list, values};
use crate::http::freshness::{Directives, Freshness, Times};

/// Stored responses of one key, which differ in the fields that `Vary` names.
const MOST_VARIANTS: usize = 8;

/// An object has at most this part of the capacity.
const MOST_PART: u64 = 8;

/// Memory of an entry besides head and content, about.
const OVERHEAD: u64 = 512;

/// The resource that a request of a client of this server names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    server: Option<SocketAddr>,
    host: Vec<u8>,
    target: Vec<u8>,
}

impl Key {
    /// The resource of a request with this head; `None` if it is not one of HTTP/1.1 with a path
    /// and one host.
    pub fn of(request: &[u8], server: Option<SocketAddr>) -> Option<Self> {
        let (start, _) = lines(request)?;
        let mut parts = start.split(|byte| *byte == b' ');
        let (_, target, version) = (parts.next()?, parts.next()?, parts.next()?);
        let mut hosts = values(request, "host");
        let host = hosts.next().filter(|host| !host.is_empty())?.to_ascii_lowercase();
        let is_usual = target.starts_with(b"/") && version == b"HTTP/1.1" && hosts.next().is_none();
        is_usual.then(|| Self { server, host, target: target.to_vec() })
    }
}

/// A stored response.
#[derive(Debug)]
pub struct Stored {
    /// Status line and fields, without those that are made for each use.
    head: Vec<u8>,
    pub content: Arc<[u8]>,
    /// The fields of the request that `Vary` names, with their values then.
    selecting: Vec<(String, Option<Vec<u8>>)>,
    freshness: Freshness,
    arrived: Instant,
    /// Whether it was prefetched, and no client has requested it since.
    is_unused: AtomicBool,
}

/// Fields besides [`OF_CONNECTION`] that are not stored: they are made for each use.
const NOT_STORED: [&str; 3] = ["transfer-encoding", "content-length", "age"];

/// Fields that a validation does not change, because they describe the content.
const OF_CONTENT: [&str; 4] = ["content-encoding", "content-type", "content-range", "etag"];

impl Stored {
    /// The answer to a request that validates, for which `response` is a 304: its fields replace
    /// those that are stored (RFC 9111 §3.2).
    fn freshened(&self, request: &[u8], response: &[u8], (now, times): (Instant, Times)) -> Option<Self> {
        let (_, new) = lines(response)?;
        let stored_head = [&self.head[..], b"\r\n"].concat();
        let (start, old) = lines(&stored_head)?;
        let mut head = [start, b"\r\n"].concat();
        let is_kept = |name: &[u8]| OF_CONTENT.iter().any(|known| is(name, known));
        for (name, value) in old {
            if is_kept(name) || !new.clone().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                head.extend([name, b": ", value, b"\r\n"].concat());
            }
        }
        append_fields(&mut head, new.clone().filter(|(name, _)| !is_kept(name)), response);
        let mut whole = [&head[..], b"\r\n"].concat();
        let age: Vec<u8> = values(response, "age").flat_map(|value| [b"Age: ", value, b"\r\n"].concat()).collect();
        whole.splice(head.len()..head.len(), age);
        let freshness = Freshness::of(request, &whole, self.status(), times)?;
        let (content, selecting) = (Arc::clone(&self.content), self.selecting.clone());
        let is_unused = AtomicBool::new(false);
        Some(Self { head, content, selecting, freshness, arrived: now, is_unused })
    }

    fn status(&self) -> u16 {
        let digits = self.head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(200)
    }

    /// Whether the response may be used for a request without a validation.
    pub fn satisfies(&self, requested: &Directives, now: Instant) -> bool {
        self.freshness.satisfies(requested, self.resident(now))
    }

    /// A client requests it. Returns whether it is the first one after it was prefetched.
    pub fn begin_use(&self) -> bool {
        self.is_unused.swap(false, Ordering::Relaxed)
    }

    /// Seconds since it arrived.
    fn resident(&self, now: Instant) -> u64 {
        now.since(self.arrived).as_nanos() / 1_000_000_000
    }

    fn value(&self, name: &str) -> Option<&[u8]> {
        let fields = self.head.split(|byte| *byte == b'\n').skip(1);
        fields
            .filter_map(|line| line.split_at_checked(name.len()))
            .find_map(|(found, rest)| (is(found, name) && rest.starts_with(b":")).then(|| rest[1..].trim_ascii()))
    }

    /// The head of the response at `now`.
    pub fn head(&self, now: Instant) -> Vec<u8> {
        let (age, length) = (self.freshness.age(self.resident(now)), self.content.len());
        let made = format!("Age: {age}\r\nVia: 1.1 airpath\r\nContent-Length: {length}\r\n\r\n");
        [&self.head[..], made.as_bytes()].concat()
    }

    /// The head of a 304 at `now`: the client has what is stored.
    pub fn not_modified(&self, now: Instant) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 304 Not Modified\r\nAge: {}\r\n", self.freshness.age(self.resident(now)));
        // RFC 9110 §15.4.5.
        for name in ["Cache-Control", "Content-Location", "Date", "ETag", "Expires", "Last-Modified", "Vary"] {
            if let Some(value) = self.value(name) {
                head.push_str(&format!("{name}: {}\r\n", String::from_utf8_lossy(value)));
            }
        }
        head.push_str("Via: 1.1 airpath\r\n\r\n");
        head.into_bytes()
    }

    /// Whether a conditional request for it is answered with a 304 (RFC 9110 §13.2.2); `None` if
    /// the request is not conditional.
    pub fn is_not_modified(&self, request: &[u8]) -> Option<bool> {
        let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
        if let Some(tags) = list(request, "if-none-match") {
            let own = self.value("etag").filter(|_| self.status() == 200).map(opaque);
            let matches = |tag: &[u8]| tag == b"*" || own.as_ref().is_some_and(|own| *own == opaque(tag));
            return Some(tags.split(|byte| *byte == b',').any(|tag| matches(tag.trim_ascii())));
        }
        let since = values(request, "if-modified-since").next()?;
        let changed = self.value("last-modified").filter(|_| self.status() == 200);
        Some(changed.and_then(date).zip(date(since)).is_some_and(|(changed, since)| changed <= since))
    }

    /// The request with the validators of the response (RFC 9111 §4.3.1); `None` without any.
    pub fn validation(&self, request: &[u8]) -> Option<Vec<u8>> {
        let field = |name: &str, validator: &str| {
            let value = self.value(validator)?;
            Some([name.as_bytes(), b": ", value, b"\r\n"].concat())
        };
        let fields = [field("If-None-Match", "etag"), field("If-Modified-Since", "last-modified")];
        let fields: Vec<u8> = fields.into_iter().flatten().flatten().collect();
        let without_end = request.strip_suffix(b"\r\n")?;
        (!fields.is_empty()).then(|| [without_end, &fields, b"\r\n"].concat())
    }

    fn is_selected_by(&self, request: &[u8]) -> bool {
        self.selecting.iter().all(|(name, value)| list(request, name) == *value)
    }

    fn size(&self) -> u64 {
        (self.head.len() + self.content.len()) as u64 + OVERHEAD
    }
}

/// Appends the fields of a message that are stored.
fn append_fields<'a>(head: &mut Vec<u8>, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>, message: &[u8]) {
    let of_connection = list(message, "connection").unwrap_or_default();
    for (name, value) in fields {
        let is_named = std::str::from_utf8(name).is_ok_and(|name| has_token(&of_connection, name));
        if !is_named && !OF_CONNECTION.iter().chain(&NOT_STORED).any(|known| is(name, known)) {
            head.extend([name, b": ", value, b"\r\n"].concat());
        }
    }
}

/// What the cache does for a request.
#[derive(Debug, Default)]
pub enum Reuse {
    #[default]
    None,
    /// It stores the response.
    Stores {
        key: Key,
        /// The head that the client has sent.
        request: Vec<u8>,
        requested: Instant,
        /// A stored response that the server is to validate.
        stale: Option<Arc<Stored>>,
    },
    /// A success changes the resource.
    Forgets(Key),
}

impl Reuse {
    /// Whether it stores the response of this resource.
    pub fn stores(&self, resource: &Key) -> bool {
        matches!(self, Self::Stores { key, .. } if key == resource)
    }
}

/// The cache, as all sessions share it.
#[derive(Clone, Debug)]
pub struct SharedCache(Arc<Mutex<Cache>>);

#[derive(Debug, Default)]
struct Cache {
    capacity: u64,
    /// Bytes of entries, and reserved ones.
    used: u64,
    /// The time of day when the clock was zero, in seconds since 1970.
    epoch: Option<u64>,
    entries: BTreeMap<Key, Vec<Entry>>,
    /// The keys, by the number of their last use.
    uses: BTreeMap<u64, Key>,
    next_use: u64,
}

#[derive(Debug)]
struct Entry {
    stored: Arc<Stored>,
    last_use: u64,
}

impl SharedCache {
    /// An empty cache for at most `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Self(Arc::new(Mutex::new(Cache { capacity, ..Cache::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the capacity. What exceeds it is removed.
    pub fn set_capacity(&self, bytes: u64) {
        let mut cache = self.lock();
        cache.capacity = bytes;
        cache.make_room(0);
    }

    /// The time of day when the clock was zero, in seconds since 1970.
    pub fn set_epoch(&self, seconds: u64) {
        self.lock().epoch = Some(seconds);
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.lock().used
    }

    /// For what arrives: at most `most` bytes, and at most as many as one object may have.
    pub fn reserve(&self, most: u64) -> Reservation {
        Reservation { cache: self.clone(), most: most.min(self.lock().capacity / MOST_PART), bytes: 0 }
    }

    /// The stored response that a request selects.
    pub fn find(&self, key: &Key, request: &[u8]) -> Option<Arc<Stored>> {
        let mut cache = self.lock();
        let Cache { entries, uses, next_use, .. } = &mut *cache;
        let entry = entries.get_mut(key)?.iter_mut().find(|entry| entry.stored.is_selected_by(request))?;
        if let Some(key) = uses.remove(&entry.last_use) {
            entry.last_use = *next_use;
            uses.insert(*next_use, key);
            *next_use += 1;
        }
        Some(Arc::clone(&entry.stored))
    }

    /// Stores a response, in the place of others that the request would select.
    fn insert(&self, key: Key, request: &[u8], stored: Arc<Stored>) {
        let mut cache = self.lock();
        let size = stored.size();
        cache.remove_if(&key, |other| other.is_selected_by(request));
        while cache.entries.get(&key).is_some_and(|entries| entries.len() >= MOST_VARIANTS) {
            let oldest = cache.entries[&key].iter().map(|entry| entry.last_use).min();
            cache.remove_use(oldest.unwrap_or_default());
        }
        if cache.make_room(size) {
            let last_use = cache.next_use;
            cache.next_use += 1;
            cache.used += size;
            cache.uses.insert(last_use, key.clone());
            cache.entries.entry(key).or_default().push(Entry { stored, last_use });
        }
    }

    /// Removes a resource that an unsafe request has changed (RFC 9111 §4.4).
    pub fn invalidate(&self, key: &Key) {
        self.lock().remove_if(key, |_| true);
    }

    /// A 304 has confirmed `stored`. Returns what is stored now.
    pub fn freshen(
        &self,
        (key, request): (&Key, &[u8]),
        stored: &Arc<Stored>,
        response: &[u8],
        (requested, now): (Instant, Instant),
    ) -> Arc<Stored> {
        let times = self.times(requested, now);
        let Some(new) = stored.freshened(request, response, (now, times)) else {
            self.lock().remove_if(key, |other| other.is_selected_by(request));
            return Arc::clone(stored);
        };
        let new = Arc::new(new);
        self.insert(key.clone(), request, Arc::clone(&new));
        new
    }

    fn times(&self, requested: Instant, now: Instant) -> Times {
        let seconds = |nanoseconds: u64| nanoseconds / 1_000_000_000;
        let arrival = self.lock().epoch.map(|epoch| epoch + seconds(now.as_nanos()));
        Times { delay: seconds(now.since(requested).as_nanos()), arrival }
    }

    /// Begins to store a response of `length` bytes, if that is known; `None` if it must not be
    /// stored, or is too large.
    pub fn begin(
        &self,
        key: Key,
        (request, response): (&[u8], &[u8]),
        (status, length): (u16, Option<u64>),
        (requested, now): (Instant, Instant),
    ) -> Option<Arriving> {
        let reservation = self.reserve(u64::MAX);
        if length.is_some_and(|length| length > reservation.most) || !response.starts_with(b"HTTP/1.1 ") {
            return None;
        }
        let freshness = Freshness::of(request, response, status, self.times(requested, now))?;
        let varies = list(response, "vary").unwrap_or_default();
        let names = varies.split(|byte| *byte == b',').map(|name| name.trim_ascii().to_ascii_lowercase());
        let names = names.filter(|name| !name.is_empty());
        let mut selecting = Vec::new();
        for name in names {
            let name = String::from_utf8(name).ok().filter(|name| name != "*")?;
            let value = list(request, &name);
            selecting.push((name, value));
        }
        let (start, fields) = lines(response)?;
        let mut head = [start, b"\r\n"].concat();
        append_fields(&mut head, fields, response);
        let request = request.to_vec();
        Some(Arriving {
            key,
            request,
            head,
            selecting,
            freshness,
            arrived: now,
            content: Vec::new(),
            reservation,
            is_prefetched: false,
        })
    }
}

impl Cache {
    /// Removes what was not used for longest until `bytes` more fit. Returns whether they do.
    fn make_room(&mut self, bytes: u64) -> bool {
        while self.used + bytes > self.capacity {
            let Some(oldest) = self.uses.keys().next().copied() else { return false };
            self.remove_use(oldest);
        }
        true
    }

    fn remove_use(&mut self, last_use: u64) {
        if let Some(key) = self.uses.get(&last_use).cloned() {
            self.remove_entries(&key, |entry| entry.last_use == last_use);
        }
    }

    fn remove_if(&mut self, key: &Key, is_removed: impl Fn(&Stored) -> bool) {
        self.remove_entries(key, |entry| is_removed(&entry.stored));
    }

    fn remove_entries(&mut self, key: &Key, is_removed: impl Fn(&Entry) -> bool) {
        let Some(entries) = self.entries.get_mut(key) else { return };
        for entry in entries.extract_if(.., |entry| is_removed(entry)) {
            self.uses.remove(&entry.last_use);
            self.used -= entry.stored.size();
        }
        if entries.is_empty() {
            self.entries.remove(key);
        }
    }
}

/// Bytes of the capacity that something uses which is not stored.
#[derive(Debug)]
pub struct Reservation {
    cache: SharedCache,
    most: u64,
    bytes: u64,
}

impl Reservation {
    /// Bytes that it may reserve besides.
    pub fn room(&self) -> usize {
        usize::try_from(self.most - self.bytes).unwrap_or(usize::MAX)
    }

    /// Reserves bytes more. Returns whether there was room for all of them.
    pub fn extend(&mut self, bytes: usize) -> bool {
        let (fits, bytes) = (bytes <= self.room(), bytes as u64);
        let mut cache = self.cache.lock();
        let fits = fits && cache.make_room(bytes);
        if fits {
            cache.used += bytes;
            self.bytes += bytes;
        }
        fits
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.cache.lock().used -= self.bytes;
    }
}

/// A response that is arriving and will be stored. Its bytes count as used.
#[derive(Debug)]
pub struct Arriving {
    key: Key,
    request: Vec<u8>,
    head: Vec<u8>,
    selecting: Vec<(String, Option<Vec<u8>>)>,
    freshness: Freshness,
    arrived: Instant,
    content: Vec<u8>,
    reservation: Reservation,
    /// Whether no client has requested it.
    pub is_prefetched: bool,
}

impl Arriving {
    /// Appends content. Returns whether it can be stored.
    pub fn append(&mut self, data: &[u8]) -> bool {
        let fits = self.reservation.extend(data.len());
        if fits {
            self.content.extend_from_slice(data);
        }
        fits
    }

    /// The response is complete.
    pub fn store(self) -> Arc<Stored> {
        let Self { key, request, head, selecting, freshness, arrived, content, reservation, is_prefetched } = self;
        let is_unused = AtomicBool::new(is_prefetched);
        let stored = Arc::new(Stored { head, content: content.into(), selecting, freshness, arrived, is_unused });
        let cache = reservation.cache.clone();
        drop(reservation);
        cache.insert(key, &request, Arc::clone(&stored));
        stored
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Span;

    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    fn request(path: &str, fields: &str) -> Vec<u8> {
        format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes()
    }

    fn key(request: &[u8]) -> Key {
        Key::of(request, None).expect("it is usual")
    }

    fn store(cache: &SharedCache, request: &[u8], fields: &str, content: &[u8]) -> bool {
        let response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let begun = cache.begin(key(request), (request, response.as_bytes()), (200, None), (at(0), at(0)));
        let Some(mut arriving) = begun else { return false };
        let fits = content.chunks(100).all(|part| arriving.append(part));
        if fits {
            arriving.store();
        }
        fits
    }

    const FRESH: &str = "Cache-Control: max-age=60\r\nConnection: close, X-Hop\r\nX-Hop: a\r\nETag: \"v\"\r\n";

    #[test]
    fn a_stored_response_states_its_age_and_has_no_fields_of_the_connection() {
        let (cache, request) = (SharedCache::new(100_000), request("/", ""));
        assert!(store(&cache, &request, FRESH, b"content"));
        let stored = cache.find(&key(&request), &request).expect("it is stored");
        let expected = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v\"\r\nAge: 59\r\nVia: 1.1 airpath\r\n\
                        Content-Length: 7\r\n\r\n";
        assert_eq!(String::from_utf8(stored.head(at(59))).as_deref(), Ok(expected));
        assert!(stored.satisfies(&Directives::default(), at(59)));
        assert!(!stored.satisfies(&Directives::default(), at(60)));
        let validates = b"GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"v\"\r\n\r\n";
        assert_eq!(stored.validation(&request).as_deref(), Some(&validates[..]));
        let answer = |field: &str| stored.is_not_modified(format!("GET / HTTP/1.1\r\n{field}\r\n\r\n").as_bytes());
        assert_eq!(answer("X: y"), None);
        assert_eq!(answer("If-None-Match: \"x\", W/\"v\""), Some(true));
        assert_eq!(answer("If-None-Match: \"x\""), Some(false));
        assert_eq!(answer("If-None-Match: *"), Some(true));
    }

    #[test]
    fn a_304_replaces_fields_and_begins_another_lifetime() {
        let (cache, request) = (SharedCache::new(100_000), request("/", ""));
        store(&cache, &request, FRESH, b"content");
        let stored = cache.find(&key(&request), &request).expect("it is stored");
        let response = b"HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=10\r\nX-New: b\r\nETag: \"v\"\r\n\r\n";
        let new = cache.freshen((&key(&request), &request), &stored, response, (at(100), at(100)));
        let head = String::from_utf8(new.head(at(103))).expect("it is text");
        assert!(
            head.contains("Age: 3\r\n") && head.contains("X-New: b\r\n") && head.contains("max-age=10\r\n"),
            "{head}"
        );
        assert_eq!((head.matches("ETag").count(), head.matches("max-age").count()), (1, 1), "{head}");
        assert!(Arc::ptr_eq(&new, &cache.find(&key(&request), &request).expect("it is stored")));
        let forbids = b"HTTP/1.1 304 Not Modified\r\nCache-Control: no-store\r\n\r\n";
        cache.freshen((&key(&request), &request), &new, forbids, (at(120), at(120)));
        assert!(cache.find(&key(&request), &request).is_none());
        assert_eq!(cache.used(), 0);
    }

    #[test]
    fn vary_selects_among_variants() {
        let cache = SharedCache::new(100_000);
        let varies = format!("{FRESH}Vary: Accept-Language\r\n");
        let (german, french) = (request("/", "Accept-Language: de\r\n"), request("/", "accept-language: fr\r\n"));
        store(&cache, &german, &varies, b"de");
        assert!(cache.find(&key(&french), &french).is_none());
        store(&cache, &french, &varies, b"fr");
        let found = |request: &[u8]| cache.find(&key(request), request).map(|stored| stored.content.to_vec());
        assert_eq!(found(&german).as_deref(), Some(&b"de"[..]));
        assert_eq!(found(&french).as_deref(), Some(&b"fr"[..]));
        assert_eq!(found(&request("/", "")), None);
        assert!(!store(&cache, &german, &format!("{FRESH}Vary: *\r\n"), b"x"));
        for number in 0..20 {
            store(&cache, &request("/", &format!("Accept-Language: {number}\r\n")), &varies, b"x");
        }
        assert_eq!(cache.lock().entries.values().map(Vec::len).sum::<usize>(), MOST_VARIANTS);
    }

    #[test]
    fn the_capacity_is_kept_and_the_last_used_stays() {
        let cache = SharedCache::new(20_000);
        let path = |number: u32| request(&format!("/{number}"), "");
        assert!(!store(&cache, &path(0), FRESH, &[0; 2501]), "an eighth at most");
        assert_eq!(cache.used(), 0);
        for number in 0..100 {
            assert!(store(&cache, &path(number), FRESH, &[0; 2000]));
            assert!(cache.used() <= 20_000);
            cache.find(&key(&path(0)), &path(0)).expect("it was used last");
        }
        assert!(cache.find(&key(&path(1)), &path(1)).is_none());
        assert!(cache.find(&key(&path(99)), &path(99)).is_some());
        let response = format!("HTTP/1.1 200 OK\r\n{FRESH}\r\n");
        let request = path(7);
        let begin = || cache.begin(key(&request), (&request, response.as_bytes()), (200, None), (at(0), at(0)));
        let mut arriving: Vec<_> = (0..20).filter_map(|_| begin()).collect();
        let count = arriving.iter_mut().filter_map(|each| each.append(&[0; 2000]).then_some(())).count();
        assert_eq!((count, cache.used()), (10, 20_000), "what arrives counts");
        arriving.clear();
        assert_eq!(cache.used(), 0);
        store(&cache, &request, FRESH, b"x");
        cache.invalidate(&key(&request));
        assert_eq!((cache.used(), cache.lock().uses.len()), (0, 0));
    }

    #[test]
    fn another_server_has_other_objects() {
        let (cache, request) = (SharedCache::new(100_000), request("/", ""));
        let key = |server: &str| Key::of(&request, server.parse().ok()).expect("it is usual");
        let response = format!("HTTP/1.1 200 OK\r\n{FRESH}\r\n");
        let begun = cache.begin(key("192.0.2.1:80"), (&request, response.as_bytes()), (200, None), (at(0), at(0)));
        begun.expect("it may be stored").store();
        assert!(cache.find(&key("192.0.2.1:80"), &request).is_some());
        assert!(cache.find(&key("192.0.2.2:80"), &request).is_none());
    }
}
