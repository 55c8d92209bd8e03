//! Which responses a shared cache may store, and for how long they are fresh (RFC 9111 §3, §4.2).
//!
//! Where the RFC leaves a choice, this is the cautious one: requests with `Authorization` and
//! responses with `Set-Cookie` do not use the cache, and `no-cache` and `private` with field names
//! count as without.

use crate::http::fields::{date, is, lines, values};

/// The largest number of seconds (RFC 9111 §1.2.2).
const MOST_SECONDS: u64 = 1 << 31;

/// A heuristic lifetime is this part of the time since the last change (RFC 9111 §4.2.2), and at
/// most a day.
const HEURISTIC_PART: u64 = 10;
const MOST_HEURISTIC: u64 = 24 * 3600;

/// Directives of `Cache-Control` (RFC 9111 §5.2), in seconds where they have a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    pub no_store: bool,
    pub no_cache: bool,
    pub only_if_cached: bool,
    pub max_age: Option<u64>,
    pub min_fresh: Option<u64>,
    pub private: bool,
    public: bool,
    s_maxage: Option<u64>,
}

impl Directives {
    /// The directives of a request or a response.
    pub fn of(head: &[u8]) -> Self {
        let mut found = Self::default();
        let mut any = false;
        for value in values(head, "cache-control") {
            any = true;
            split(value).for_each(|(name, argument)| found.add(name, argument));
        }
        // RFC 9111 §5.4.
        found.no_cache |=
            !any && values(head, "pragma").any(|value| split(value).any(|(name, _)| is(name, "no-cache")));
        found
    }

    fn add(&mut self, name: &[u8], argument: &[u8]) {
        // What is not a number makes a response stale (RFC 9111 §4.2.1).
        let seconds = || {
            let digits =
                std::str::from_utf8(argument).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let number = digits.filter(|text| !text.is_empty()).map(|text| text.parse().unwrap_or(MOST_SECONDS));
            number.unwrap_or(0).min(MOST_SECONDS)
        };
        // Of several values the least is cautious.
        let least = |old: Option<u64>| Some(old.unwrap_or(u64::MAX).min(seconds()));
        match &name.to_ascii_lowercase()[..] {
            b"no-store" => self.no_store = true,
            b"no-cache" => self.no_cache = true,
            b"private" => self.private = true,
            b"public" => self.public = true,
            b"only-if-cached" => self.only_if_cached = true,
            b"max-age" => self.max_age = least(self.max_age),
            b"s-maxage" => self.s_maxage = least(self.s_maxage),
            b"min-fresh" => self.min_fresh = Some(seconds()),
            _ => {}
        }
    }
}

/// The directives of a field value with their arguments, without quotes.
fn split(value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut is_quoted = false;
    let parts = value.split(move |byte| {
        is_quoted ^= *byte == b'"';
        *byte == b',' && !is_quoted
    });
    parts.map(|part| {
        let at = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
        let argument = part.get(at + 1..).unwrap_or_default().trim_ascii();
        let unquoted = argument.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(argument);
        (part[..at].trim_ascii(), unquoted)
    })
}

/// How long a stored response is fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// Seconds of the freshness lifetime.
    pub lifetime: u64,
    /// Seconds of age when it arrived.
    pub initial_age: u64,
    /// Whether each use needs a validation.
    pub no_cache: bool,
}

/// When a response was requested and when it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Seconds from the request to the response.
    pub delay: u64,
    /// When it arrived, in seconds since 1970; `None` if the time of day is not known.
    pub arrival: Option<u64>,
}

impl Freshness {
    /// The freshness of a response to a `GET` with these heads; `None` if a shared cache must not
    /// store it.
    pub fn of(request: &[u8], response: &[u8], status: u16, times: Times) -> Option<Self> {
        let (requested, allowed) = (Directives::of(request), Directives::of(response));
        let has = |name: &str| values(response, name).next().is_some();
        let is_forbidden = requested.no_store || allowed.no_store || allowed.private || is_private(request);
        // The status codes of RFC 9110 §15.1 that this cache understands.
        let by_default = matches!(status, 200 | 203 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501);
        let is_explicit = allowed.max_age.is_some() || allowed.s_maxage.is_some() || has("expires");
        let is_known = by_default || matches!(status, 302 | 303 | 307) && (is_explicit || allowed.public);
        if is_forbidden || !is_known || ["set-cookie", "content-range", "trailer"].into_iter().any(has) {
            return None;
        }
        let first_date = |name: &str| values(response, name).next().and_then(date);
        let date = first_date("date").or(times.arrival);
        let expires = || {
            // A date that is not valid, such as 0, is in the past (RFC 9111 §5.3).
            has("expires").then(|| first_date("expires").zip(date).map_or(0, |(end, start)| end.saturating_sub(start)))
        };
        let heuristic = || {
            let unchanged = date?.saturating_sub(first_date("last-modified")?);
            Some((unchanged / HEURISTIC_PART).min(MOST_HEURISTIC))
        };
        let lifetime = allowed.s_maxage.or(allowed.max_age).or_else(expires).or_else(heuristic).unwrap_or(0);
        let has_validator = has("etag") || has("last-modified");
        let reported = values(response, "age").next().map_or(0, |value| {
            std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(MOST_SECONDS)
        });
        // RFC 9111 §4.2.3.
        let apparent = times.arrival.zip(date).map_or(0, |(arrival, date)| arrival.saturating_sub(date));
        let initial_age = apparent.max(reported.saturating_add(times.delay)).min(MOST_SECONDS);
        let no_cache = allowed.no_cache;
        let is_useful = has_validator || lifetime > initial_age && !no_cache;
        is_useful.then_some(Self { lifetime: lifetime.min(MOST_SECONDS), initial_age, no_cache })
    }

    /// Whether the response satisfies a request with these directives, `resident` seconds after its
    /// arrival.
    pub fn satisfies(&self, requested: &Directives, resident: u64) -> bool {
        let age = self.age(resident);
        !self.no_cache
            && !requested.no_cache
            && self.lifetime > age
            && requested.max_age.is_none_or(|most| age <= most)
            && requested.min_fresh.is_none_or(|least| self.lifetime - age >= least)
    }

    /// The age of the response, `resident` seconds after its arrival.
    pub fn age(&self, resident: u64) -> u64 {
        self.initial_age.saturating_add(resident).min(MOST_SECONDS)
    }
}

/// Whether the response may be meant for one client.
pub fn is_private(request: &[u8]) -> bool {
    let Some((_, mut fields)) = lines(request) else { return true };
    fields.any(|(name, _)| is(name, "authorization") || is(name, "proxy-authorization"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    const ARRIVAL: u64 = 784_111_777;

    fn freshness(request: &str, status: u16, fields: &str) -> Option<Freshness> {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{request}\r\n");
        let response = format!("HTTP/1.1 {status} X\r\n{DATE}{fields}\r\n");
        let times = Times { delay: 0, arrival: Some(ARRIVAL) };
        Freshness::of(request.as_bytes(), response.as_bytes(), status, times)
    }

    fn lifetime(fields: &str) -> Option<u64> {
        freshness("", 200, fields).map(|freshness| freshness.lifetime)
    }

    #[test]
    fn the_lifetime_is_that_of_the_first_rule() {
        assert_eq!(lifetime("Cache-Control: max-age=60\r\n"), Some(60));
        assert_eq!(lifetime("Cache-Control: MAX-AGE=\"60\" , S-maxage=9\r\n"), Some(9));
        assert_eq!(lifetime("Expires: Sun, 06 Nov 1994 08:50:37 GMT\r\n"), Some(60));
        assert_eq!(lifetime("Expires: 0\r\nCache-Control: max-age=5\r\n"), Some(5));
        assert_eq!(lifetime("Expires: 0\r\n"), None, "it is stale and cannot be validated");
        assert_eq!(lifetime("Expires: 0\r\nETag: \"a\"\r\n"), Some(0));
        assert_eq!(lifetime("Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT\r\n"), Some(100));
        assert_eq!(lifetime("Last-Modified: Tue, 06 Nov 1984 08:32:57 GMT\r\n"), Some(MOST_HEURISTIC));
        assert_eq!(lifetime(""), None);
        assert_eq!(lifetime("Cache-Control: max-age=x\r\nETag: \"a\"\r\n"), Some(0));
        assert_eq!(lifetime("Cache-Control: max-age=99999999999999999999\r\n"), Some(MOST_SECONDS));
        assert_eq!(lifetime("Cache-Control: max-age=60, max-age=30\r\n"), Some(30));
    }

    #[test]
    fn what_must_not_be_stored_is_not() {
        let fresh = "Cache-Control: max-age=60\r\n";
        assert!(freshness("", 404, fresh).is_some());
        assert!(freshness("", 302, fresh).is_some());
        for status in [206, 302, 303, 500, 503, 204, 401] {
            assert_eq!(freshness("", status, "Last-Modified: Tue, 06 Nov 1984 08:32:57 GMT\r\n"), None, "{status}");
        }
        for field in [
            "Cache-Control: No-Store",
            "Cache-Control: PRIVATE",
            "Cache-Control: x=\"a,b\", private=\"x\"",
            "Set-Cookie: a=b",
            "Content-Range: bytes 0-1/2",
            "Trailer: X",
        ] {
            assert_eq!(freshness("", 200, &format!("{fresh}{field}\r\n")), None, "{field}");
        }
        assert_eq!(freshness("Authorization: Basic x\r\n", 200, fresh), None);
        assert_eq!(freshness("Cache-Control: no-store\r\n", 200, fresh), None);
        assert!(freshness("", 200, "Cache-Control: max-age=60, x=\"private, no-store\"\r\n").is_some());
    }

    #[test]
    fn the_age_contains_that_of_other_caches() {
        let with = |fields: &str| freshness("", 200, &format!("Cache-Control: max-age=60\r\nETag: a\r\n{fields}"));
        let age = |fields: &str| with(fields).expect("it can be stored").initial_age;
        assert_eq!((age(""), age("Age: 20\r\n"), age("Age: x\r\n")), (0, 20, MOST_SECONDS));
        assert_eq!(age("Age: 18446744073709551615\r\n"), MOST_SECONDS, "and no overflow");
        let request = b"GET / HTTP/1.1\r\n\r\n";
        let response = format!("HTTP/1.1 200 OK\r\n{DATE}Cache-Control: max-age=60\r\nAge: 3\r\n\r\n");
        let times = Times { delay: 2, arrival: Some(ARRIVAL + 30) };
        let found = Freshness::of(request, response.as_bytes(), 200, times).expect("it can be stored");
        assert_eq!(found.initial_age, 30);
        let requested = |field: &str| Directives::of(format!("GET / HTTP/1.1\r\n{field}\r\n\r\n").as_bytes());
        assert!(found.satisfies(&requested("X: y"), 29));
        assert!(!found.satisfies(&requested("X: y"), 30));
        for field in
            ["Cache-Control: no-cache", "Pragma: no-cache", "Cache-Control: max-age=29", "Cache-Control: min-fresh=31"]
        {
            assert!(!found.satisfies(&requested(field), 0), "{field}");
        }
        assert!(found.satisfies(&requested("Cache-Control: max-age=30, min-fresh=30"), 0));
    }
}
