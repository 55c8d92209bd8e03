//! The head of a message (RFC 9112 §2 to §5), as far as it was captured.
//!
//! The crate `httparse` is no replacement: a passive observer must read messages that a server may
//! refuse. httparse 1.10 returns an error for a request line of HTTP/0.9 (`GET /a`), for a minor
//! version above 1 (RFC 9110 §2.5 has it read as 1.1), for spaces in a target or after the version,
//! and for more fields than its array holds; it returns no target for a request line that a snap
//! length cut, and it drops `Content-Length : 7` of a request. Each of these needs the code below.

/// Bytes of a head, at most; a longer one is not HTTP.
pub(super) const MAX_HEAD: usize = 64 << 10;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/0.9: a request is one line, a response has no head.
    Http09,
    /// HTTP/1.0 (RFC 1945).
    Http10,
    /// HTTP/1.1 (RFC 9112).
    Http11,
}

impl Version {
    /// Its text in a head.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http09 => "HTTP/0.9",
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        match text.strip_prefix(b"HTTP/1.")? {
            b"0" => Some(Self::Http10),
            // RFC 9110 §2.5: an unknown minor version is processed as the highest known one.
            // Servers accept a missing minor version, too.
            minor => minor.iter().all(u8::is_ascii_digit).then_some(Self::Http11),
        }
    }
}

/// The classification of the first bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// Too few bytes to decide.
    Open,
    /// Not a head.
    Foreign,
    /// A head, which extends to an empty line.
    Head,
    /// A head of one line (HTTP/0.9), with its length in bytes.
    Line(usize),
}

/// A request line (RFC 9112 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestLine<'a> {
    pub method: &'a [u8],
    pub target: &'a [u8],
    pub version: Version,
}

/// Classifies the first bytes of a client's message.
pub(super) fn request_beginning(bytes: &[u8]) -> Beginning {
    let method = bytes.iter().take_while(|byte| is_method(**byte)).count();
    if method > 24 {
        return Beginning::Foreign;
    }
    match bytes.get(method) {
        None => return Beginning::Open,
        Some(b' ') if method >= 3 => {}
        Some(_) => return Beginning::Foreign,
    }
    // A target has no control characters: this rejects binary data that looks like a method.
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        let text = bytes.iter().all(|byte| *byte >= b' ' || *byte == b'\t' || *byte == b'\r');
        return if text { Beginning::Open } else { Beginning::Foreign };
    };
    match request_line(&bytes[..end]) {
        Some(RequestLine { version: Version::Http09, .. }) => Beginning::Line(end + 1),
        Some(_) => Beginning::Head,
        None => Beginning::Foreign,
    }
}

/// Classifies the first bytes of a server's message.
pub(super) fn response_beginning(bytes: &[u8]) -> Beginning {
    let pattern = b"HTTP/1.";
    let common = bytes.len().min(pattern.len());
    if bytes[..common] != pattern[..common] {
        Beginning::Foreign
    } else if common < pattern.len() {
        Beginning::Open
    } else {
        Beginning::Head
    }
}

/// Whether `bytes`, which begin a segment, begin a request. Strict: for resynchronization.
pub(super) fn surely_request(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match request_line(line) {
        Some(line) => line.version != Version::Http09,
        None => {
            // A cut line: a standard method, and a plausible target.
            const METHODS: [&[u8]; 7] = [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH "];
            line.len() == bytes.len()
                && METHODS.iter().any(|method| {
                    bytes.strip_prefix(*method).is_some_and(|target| matches!(target.first(), Some(b'/' | b'h' | b'*')))
                })
        }
    }
}

/// Whether `bytes`, which begin a segment, begin a response. Strict: for resynchronization.
pub(super) fn surely_response(bytes: &[u8]) -> bool {
    bytes.len() >= 12 && bytes.starts_with(b"HTTP/1.") && status(bytes).is_some()
}

/// Parses a request line, with or without its line break.
pub(super) fn request_line(head: &[u8]) -> Option<RequestLine<'_>> {
    let line = first_line(head);
    let (method, rest) = line.split_at(line.iter().position(|byte| *byte == b' ')?);
    if method.is_empty() || !method.iter().all(|byte| is_method(*byte)) {
        return None;
    }
    let rest = rest.trim_ascii();
    if let Some(space) = rest.iter().rposition(|byte| *byte == b' ')
        && let Some(version) = Version::parse(&rest[space + 1..])
    {
        return Some(RequestLine { method, target: rest[..space].trim_ascii_end(), version });
    }
    // HTTP/0.9 has one method only (RFC 1945 §4.1).
    let simple = method == b"GET" && !rest.is_empty() && !rest.contains(&b' ');
    simple.then_some(RequestLine { method, target: rest, version: Version::Http09 })
}

/// Method and target of a cut request line.
pub(super) fn cut_request_line(head: &[u8]) -> (&[u8], &[u8]) {
    let mut words = first_line(head).split(|byte| *byte == b' ');
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

/// The version of a response's head.
pub(super) fn response_version(head: &[u8]) -> Version {
    head.get(..8).and_then(Version::parse).unwrap_or(Version::Http11)
}

/// The status code of a response's head (RFC 9112 §4).
pub(super) fn status(head: &[u8]) -> Option<u16> {
    let line = first_line(head);
    let code = line.get(line.iter().position(|byte| *byte == b' ')?..)?.trim_ascii_start().get(..3)?;
    code.iter().try_fold(0_u16, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u16::from(digit - b'0')))
}

/// The header fields (RFC 9112 §5): name and value. Obsolete line folding (§5.2) is left out, and
/// so is an unterminated last line, whose value may be cut.
pub(super) fn fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.split_inclusive(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        let line = line.strip_suffix(b"\n")?;
        if line.first().is_none_or(|byte| *byte == b' ' || *byte == b'\t') {
            return None;
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((line[..colon].trim_ascii_end(), line[colon + 1..].trim_ascii()))
    })
}

/// The header fields of a message that determine the length of its body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// The last transfer coding is `chunked`.
    pub chunked: bool,
    /// There is a transfer coding of another kind.
    pub coded: bool,
    /// `Content-Length`, if it is one number.
    pub length: Option<u64>,
    /// `Expect: 100-continue`.
    pub expects_continue: bool,
}

/// Parses the fields that determine the length of the body (RFC 9112 §6).
pub(super) fn extent(head: &[u8]) -> Extent {
    let mut extent = Extent::default();
    let mut contradicted = false;
    for (name, value) in fields(head) {
        if name.eq_ignore_ascii_case(b"content-length") {
            // RFC 9112 §6.3: a list of the same value is that value.
            for number in value.split(|byte| *byte == b',') {
                let number = number_of(number.trim_ascii());
                contradicted |= number.is_none() || extent.length.is_some_and(|length| Some(length) != number);
                extent.length = number;
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let last = value.split(|byte| *byte == b',').next_back().unwrap_or_default().trim_ascii();
            extent.chunked = last.eq_ignore_ascii_case(b"chunked");
            // RFC 7230 removed `identity`; old servers send it.
            extent.coded |= !extent.chunked && !last.eq_ignore_ascii_case(b"identity");
        } else if name.eq_ignore_ascii_case(b"expect") {
            extent.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
        }
    }
    if contradicted {
        extent.length = None;
    }
    extent
}

/// The end of a head, after its empty line. The first `from` bytes were searched before.
pub(super) fn end_of_head(head: &[u8], from: usize) -> Option<usize> {
    // An empty line may have begun up to two bytes before.
    let from = from.saturating_sub(2);
    head[from..].iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| from + at).find_map(|at| {
        match head.get(at + 1..)? {
            [b'\n', ..] => Some(at + 2),
            [b'\r', b'\n', ..] => Some(at + 3),
            _ => None,
        }
    })
}

fn first_line(head: &[u8]) -> &[u8] {
    head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end()
}

/// A method is a token (RFC 9110 §9.1); those in use have capital letters, and some `-` or `_`.
fn is_method(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte == b'-' || byte == b'_'
}

fn number_of(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_requests() {
        assert_eq!(request_beginning(b"GE"), Beginning::Open);
        assert_eq!(request_beginning(b"GET /a HTTP/1.1\r\n"), Beginning::Head);
        assert_eq!(request_beginning(b"GET /a\r\n"), Beginning::Line(8));
        assert_eq!(request_beginning(b"BASELINE-CONTROL / HTTP/1.1\n"), Beginning::Head);
        for foreign in [&b"USER anonymous\r\n"[..], b"\x16\x03\x01", b"SSH-2.0-x", b"GET \x00\x01", b"EHLO a\r\n"] {
            assert_eq!(request_beginning(foreign), Beginning::Foreign, "{foreign:?}");
        }
    }

    #[test]
    fn heads_end_after_an_empty_line_in_any_segmentation() {
        for head in
            [&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"GET / HTTP/1.1\nHost: a\n\n", b"HTTP/1.1 200\r\nA: b\n\r\n"]
        {
            let with_more = [head, b"body"].concat();
            assert_eq!(end_of_head(&with_more, 0), Some(head.len()));
            for split in 0..head.len() {
                assert_eq!(end_of_head(&head[..split], 0), None);
                assert_eq!(end_of_head(head, split), Some(head.len()), "split at {split}");
            }
        }
    }

    #[test]
    fn contradictory_lengths_are_none() {
        let of = |fields: &str| extent(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").as_bytes());
        assert_eq!(of("Content-Length: 12").length, Some(12));
        assert_eq!(of("content-length : 7, 7").length, Some(7));
        assert_eq!(of("Content-Length: 7\r\nContent-Length: 8").length, None);
        assert_eq!(of("Content-Length: 8, 7, 8").length, None);
        assert_eq!(of("Content-Length: -1").length, None);
        assert!(of("Transfer-Encoding: gzip, Chunked").chunked);
        assert!(of("Transfer-Encoding: gzip").coded);
    }

    #[test]
    fn a_cut_field_is_not_read() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 12";
        assert_eq!(fields(head).count(), 1);
        assert_eq!(extent(head).length, None);
    }
}
