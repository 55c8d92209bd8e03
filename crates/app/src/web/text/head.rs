//! Heads of requests with HTTP/1.x.

use httparse::{EMPTY_HEADER, Header, Status};

/// Longest head of a request, in bytes; a longer one is malformed.
pub const LONGEST_HEAD: usize = 1 << 14;

/// Most fields of a request.
const MOST_FIELDS: usize = 64;

/// Bytes that are not a request with HTTP/1.x (RFC 9112 §3), or have a head above
/// [`LONGEST_HEAD`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client sent what is not a request with HTTP/1.x of at most {LONGEST_HEAD} bytes")]
pub struct Malformed;

/// The head of a request.
#[derive(Debug)]
pub struct RequestHead<'a> {
    /// Its bytes, with the empty line.
    pub length: usize,
    /// The request target (RFC 9112 §3.2).
    pub target: &'a str,
    /// Its fields, and empty ones after them.
    fields: [Header<'a>; MOST_FIELDS],
}

impl<'a> RequestHead<'a> {
    /// The head at the start of `bytes`; `None` if it is not complete. The result does not depend
    /// on the number of bytes after it.
    ///
    /// # Errors
    /// It cannot become one.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let bytes = &bytes[..bytes.len().min(LONGEST_HEAD)];
        let mut fields = [EMPTY_HEADER; MOST_FIELDS];
        let mut head = httparse::Request::new(&mut fields);
        match head.parse(bytes).map_err(|_| Malformed)? {
            // It must not fill the memory.
            Status::Partial if bytes.len() == LONGEST_HEAD => Err(Malformed),
            Status::Partial => Ok(None),
            Status::Complete(length) => {
                let target = head.path.ok_or(Malformed)?;
                Ok(Some(Self { length, target, fields }))
            }
        }
    }

    /// The value of the first field with this name, if it is text.
    pub fn field(&self, name: &str) -> Option<&'a str> {
        let found = self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    }
}
