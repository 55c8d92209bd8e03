//! HTTP/1.x as text: the two ends of a connection whose bytes are carried, because a proxy reads
//! them.
//!
//! [`Browser`](super::Browser) and [`Server`](super::Server) exchange messages whose bytes are
//! counted. Here the same messages are heads and contents, and whatever is between the ends may
//! change them. Heads have the sizes of the settings; contents are made up, and documents name the
//! objects that are found in them ([`content`](self::content)).

mod client;
mod content;
mod head;
mod server;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

pub use client::{ClientText, Unexpected};
pub use head::{LONGEST_HEAD, Malformed, RequestHead};
pub use server::ServerText;

use airpath_core::Instant;

use self::client::{REQUEST_PADDING, request_head};
use self::content::Tag;
use self::server::{RESPONSE_PADDING, response_head};
use super::page::{Caching, ObjectKind};
use super::settings::{Request, Session, Tls};

/// The URLs of the objects of a session.
#[derive(Clone, Debug)]
pub struct Urls {
    session: Arc<Session>,
    /// By host and path, the page and its object.
    objects: BTreeMap<(String, String), (u32, u32)>,
    /// Further fields of each request, with their line ends.
    request_fields: String,
}

impl Urls {
    /// The URLs of `session`; `None` if it does not speak HTTP/1.x in clear text.
    pub fn of(session: &Arc<Session>) -> Option<Self> {
        let is_text = session.settings.tls == Tls::None && !session.settings.protocol.has_streams();
        let objects = session.pages.iter().enumerate().flat_map(|(page, description)| {
            let objects = 0..description.objects.len() as u32;
            objects.map(move |object| (url(session, page as u32, object), (page as u32, object)))
        });
        // A page that is viewed again has the same URLs.
        is_text.then(|| Self {
            objects: objects.rev().collect(),
            session: Arc::clone(session),
            request_fields: String::new(),
        })
    }

    /// The same, with a further field in each request. It takes its bytes from the padding.
    #[must_use]
    pub fn with_request_field(mut self, name: &str, value: &str) -> Self {
        write!(self.request_fields, "{name}: {value}\r\n").expect("a string can be written");
        self
    }

    /// The smallest `request` and `response` of the settings with which all heads have the stated
    /// sizes.
    pub fn least_heads(&self) -> (u64, u64) {
        let (session, settings) = (&self.session, &self.session.settings);
        let requests = session.pages.iter().enumerate().flat_map(|(page, description)| {
            let is_viewed_again = settings.cache && session.views_of(page).nth(1).is_some();
            description.objects.iter().enumerate().flat_map(move |(object, kept)| {
                let request = Request { view: 0, page: page as u32, object: object as u32, conditional: false };
                let conditional = Request { conditional: true, ..request };
                let again = (is_viewed_again && kept.cache == Caching::Revalidate).then_some(conditional);
                [Some(request), again].into_iter().flatten()
            })
        });
        let sizes = requests.map(|request| {
            let up = request_head(self, request).len() + padding(REQUEST_PADDING);
            let down = response_head(self, Instant::ZERO, request).len() + padding(RESPONSE_PADDING);
            (up as u64 + 1, down as u64 + 1)
        });
        sizes.fold((0, 0), |most, each| (most.0.max(each.0), most.1.max(each.1)))
    }

    /// The object with this URL, as its page and its number.
    fn find(&self, host: &str, path: &str) -> Option<(u32, u32)> {
        self.objects.get(&(host.to_owned(), path.to_owned())).copied()
    }
}

/// The tags of a document for the objects that are found in it as it arrives: those that are found
/// when it is complete are the work of scripts.
fn tags(session: &Session, page: u32, object: u32) -> Vec<Tag> {
    let objects = &session.pages[page as usize].objects;
    let document = &objects[object as usize];
    if document.kind != ObjectKind::Document {
        return Vec::new();
    }
    let own = session.origin_of(page as usize, object);
    let tag = |(at, named): &(u64, u32)| {
        let (host, path) = url(session, page, *named);
        let prefix = if session.origin_of(page as usize, *named) == own { String::new() } else { format!("//{host}") };
        let link = format!("{prefix}{path}").replace('&', "&amp;");
        let tag = match objects[*named as usize].kind {
            ObjectKind::Style => format!("<link rel=stylesheet href=\"{link}\">"),
            ObjectKind::Script => format!("<script src=\"{link}\"></script>"),
            ObjectKind::Image => format!("<img src=\"{link}\">"),
            ObjectKind::Font | ObjectKind::Data => format!("<link rel=preload href=\"{link}\">"),
            ObjectKind::Media => format!("<video src=\"{link}\"></video>"),
            ObjectKind::Document => format!("<iframe src=\"{link}\"></iframe>"),
        };
        (*at, tag)
    };
    document.at_byte.iter().map(tag).collect()
}

/// Host and path of an object.
fn url(session: &Session, page: u32, object: u32) -> (String, String) {
    let description = &session.pages[page as usize];
    let origin = session.origin_of(page as usize, object);
    let path = format!("/{}/{}", encoded(&description.name), encoded(&description.objects[object as usize].name));
    (encoded(&session.origins[origin as usize]), path)
}

/// `name` with percent-encoding of what a URL cannot have (RFC 3986 §2.1).
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/?&=+,:;@!$%".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("a string can be written");
        }
    }
    text
}

/// Ends `head` with the field `name`, whose value makes it `bytes` long. A head that is longer
/// already only ends.
fn end_head(head: &mut String, name: &str, bytes: u64) {
    let value = bytes.saturating_sub((head.len() + padding(name)) as u64);
    if value > 0 {
        write!(head, "{name}: {}\r\n", "x".repeat(value as usize)).expect("a string can be written");
    }
    head.push_str("\r\n");
}

/// Bytes that the field `name` with an empty value and the end of a head have.
const fn padding(name: &str) -> usize {
    name.len() + ": \r\n\r\n".len()
}

#[cfg(test)]
mod tests;
