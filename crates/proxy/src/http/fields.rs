//! Fields of heads that were parsed before: each line ends with CR and LF, and none is folded.

use std::time::{SystemTime, UNIX_EPOCH};

/// Fields that concern one connection (RFC 9110 §7.6.1, §11.7).
pub const OF_CONNECTION: [&str; 8] = [
    "connection",
    "proxy-connection",
    "keep-alive",
    "te",
    "upgrade",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
];

/// The name and the value of a header field.
pub type Field<'a> = (&'a [u8], &'a [u8]);

/// The first line of a head, and its fields.
pub fn lines(head: &[u8]) -> Option<(&[u8], impl Iterator<Item = Field<'_>> + Clone)> {
    let text = head.trim_ascii_start().strip_suffix(b"\r\n\r\n")?;
    let mut lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let start = lines.next()?;
    let fields = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    });
    Some((start, fields))
}

/// Whether the name of a field is `known`.
pub fn is(name: &[u8], known: &str) -> bool {
    name.eq_ignore_ascii_case(known.as_bytes())
}

/// The values of all fields with this name.
pub fn values<'a>(head: &'a [u8], known: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let fields = lines(head).into_iter().flat_map(|(_, fields)| fields);
    fields.filter(move |(name, _)| is(name, known)).map(|(_, value)| value)
}

/// The values of all fields with this name, as one list (RFC 9110 §5.3); `None` without any.
pub fn list(head: &[u8], name: &str) -> Option<Vec<u8>> {
    let values: Vec<&[u8]> = values(head, name).collect();
    (!values.is_empty()).then(|| values.join(&b", "[..]))
}

/// Whether a list contains a token, in any case.
pub fn has_token(list: &[u8], token: &str) -> bool {
    list.split(|byte| *byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// The time of a date (RFC 9110 §5.6.7), in seconds since 1970.
pub fn date(value: &[u8]) -> Option<u64> {
    let time: SystemTime = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}
