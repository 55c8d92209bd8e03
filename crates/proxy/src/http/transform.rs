//! What a proxy may change in a message, and the head of what it has changed (RFC 9110 §7.7).

use crate::http::fields::{has_token, is, lines};

/// Whether nothing in a head forbids to change the content, and nothing in it would become wrong:
/// `no-transform` (RFC 9111 §5.2), a content coding, a digest, a range, or trailers.
pub fn permits(head: &[u8]) -> bool {
    const FORBIDDEN: [&str; 7] =
        ["content-encoding", "content-range", "trailer", "content-md5", "digest", "content-digest", "repr-digest"];
    lines(head).is_some_and(|(_, mut fields)| {
        !fields.any(|(name, value)| {
            FORBIDDEN.iter().any(|known| is(name, known))
                || is(name, "cache-control") && has_token(value, "no-transform")
        })
    })
}

/// Whether the response to a request with this head may be changed: a `GET` of HTTP/1.1 for the
/// whole resource.
pub fn client_permits(head: &[u8]) -> bool {
    lines(head).is_some_and(|(start, mut fields)| {
        let is_usual = start.starts_with(b"GET ") && start.ends_with(b" HTTP/1.1");
        is_usual && permits(head) && !fields.any(|(name, _)| is(name, "range"))
    })
}

/// The head of a response whose content was changed, without its end: the fields but those in
/// `dropped`, a weak entity tag (RFC 9110 §8.8.1), and `Vary` with the fields of the request that
/// the content depends on.
pub fn transformed(head: &[u8], start: &[u8], dropped: &[&str], depends_on: &[&str]) -> Option<Vec<u8>> {
    let (_, fields) = lines(head)?;
    let mut changed = [start, b"\r\n"].concat();
    let mut missing = depends_on.to_vec();
    for (name, value) in fields {
        // Ranges would be those of the origin's bytes.
        if is(name, "accept-ranges") || dropped.iter().any(|known| is(name, known)) {
            continue;
        }
        if is(name, "vary") {
            missing.retain(|known| !has_token(value, known) && !has_token(value, "*"));
        }
        let weak: &[u8] = if is(name, "etag") && !value.starts_with(b"W/") { b"W/" } else { b"" };
        changed.extend([name, b": ", weak, value, b"\r\n"].concat());
    }
    if !missing.is_empty() {
        changed.extend(format!("Vary: {}\r\n", missing.join(", ")).into_bytes());
    }
    Some(changed)
}
