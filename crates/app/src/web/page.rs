//! A page: its objects, and which refers to which.

use std::collections::BTreeMap;
use std::fmt;

use airpath_core::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// Most bytes of an object, a head or a message of TLS.
pub(super) const MOST_BYTES: u64 = 1 << 30;

/// A page as its file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageFile {
    /// Its name.
    pub name: String,
    /// One line on what it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Where its numbers come from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Its objects; the first is the document that the user opens.
    #[serde(rename = "object")]
    pub objects: Vec<Entry>,
}

/// An object as the file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name, the path of its URL.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ObjectKind,
    /// Host from which it is fetched.
    #[serde(default = "default_origin")]
    pub origin: String,
    /// Bytes of its content.
    pub size: Bytes,
    /// Bytes of its content as a server sends it compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed: Option<Bytes>,
    /// The object that refers to it; the first object, if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub referrer: Option<String>,
    /// The byte of the referrer's content at which it is found. Without it, it is found when the
    /// referrer is complete and processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Bytes>,
    /// Time from the request at the server to the response.
    #[serde(default)]
    pub wait: Span,
    /// Time in which the browser parses or runs it, once it is complete.
    #[serde(default)]
    pub process: Span,
    /// How it is cached.
    #[serde(default)]
    pub cache: Caching,
    /// Urgency of its request (RFC 9218 §4.1); by its type, if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urgency: Option<u8>,
    /// Whether parts of it are useful (RFC 9218 §4.2); by its type, if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incremental: Option<bool>,
}

fn default_origin() -> String {
    "www.example.com".to_owned()
}

/// Types of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// HTML.
    Document,
    /// CSS.
    Style,
    /// JavaScript.
    Script,
    /// A font.
    Font,
    /// An image.
    Image,
    /// Audio or video.
    Media,
    /// Other data.
    Data,
}

impl ObjectKind {
    /// The name in page files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Style => "style",
            Self::Script => "script",
            Self::Font => "font",
            Self::Image => "image",
            Self::Media => "media",
            Self::Data => "data",
        }
    }

    /// Urgency: 3 is the default of RFC 9218 §4.1. What delays the first rendering is more urgent
    /// (§4.1 suggests that clients do so), and media less.
    const fn urgency(self) -> u8 {
        match self {
            Self::Document | Self::Style => 1,
            Self::Script | Self::Font => 2,
            Self::Image | Self::Data => 3,
            Self::Media => 4,
        }
    }

    /// Documents and images can be used in parts (RFC 9218 §4.2).
    const fn is_incremental(self) -> bool {
        matches!(self, Self::Document | Self::Image | Self::Media)
    }
}

/// How an object is cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Caching {
    /// Used from the cache without a request.
    Fresh,
    /// Used after a conditional request, answered by 304.
    Revalidate,
    /// Fetched at each view.
    #[default]
    Never,
}

/// A page with its references resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its name.
    pub name: String,
    /// Its objects; the first is the document.
    pub objects: Vec<Object>,
}

/// An object of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ObjectKind,
    /// Host from which it is fetched.
    pub origin: String,
    /// Bytes of its content.
    pub size: u64,
    /// Bytes of its content compressed, if a server can compress it.
    pub compressed: Option<u64>,
    /// Objects to which it refers at a byte of its content, in the order of these bytes.
    pub at_byte: Vec<(u64, u32)>,
    /// Objects to which it refers when it is complete and processed.
    pub at_end: Vec<u32>,
    /// Time from the request at the server to the response.
    pub wait: Span,
    /// Time to parse or run it.
    pub process: Span,
    /// How it is cached.
    pub cache: Caching,
    /// Urgency (RFC 9218): 0 is the highest, 7 the lowest.
    pub urgency: u8,
    /// Whether parts of it are useful.
    pub incremental: bool,
}

/// Why a page is not valid, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageError {
    /// Number of the object; `None` for the page.
    pub object: Option<usize>,
    /// The key.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.object {
            Some(object) => write!(f, "object {object}: {}: {}; {}", self.key, self.message, self.help),
            None => write!(f, "{}: {}; {}", self.key, self.message, self.help),
        }
    }
}

impl std::error::Error for PageError {}

impl Page {
    /// Resolves the references of `file`.
    ///
    /// # Errors
    /// Without objects, with two objects of the same name and origin, with a reference to an
    /// object that is missing, in a cycle of references, or with a value outside its range.
    pub fn new(file: &PageFile) -> Result<Self, PageError> {
        let wrong = |object, key, message: String, help: &str| {
            Err(PageError { object: Some(object), key, message, help: help.to_owned() })
        };
        if file.objects.is_empty() {
            let (message, help) = ("a page has at least one object", "begin with its document");
            let error = PageError { object: None, key: "object", message: message.to_owned(), help: help.to_owned() };
            return Err(error);
        }
        let mut objects: Vec<Object> = file.objects.iter().map(Object::new).collect();
        let mut numbers = BTreeMap::new();
        for (index, entry) in file.objects.iter().enumerate() {
            if numbers.insert(entry.name.as_str(), index).is_some() {
                return wrong(index, "name", format!("`{}` is there twice", entry.name), "give each its own name");
            }
        }
        for (index, entry) in file.objects.iter().enumerate() {
            if entry.urgency.is_some_and(|urgency| urgency > 7) {
                return wrong(index, "urgency", "it is above 7".to_owned(), "0 is the highest, 7 the lowest");
            }
            let sizes = [("size", Some(entry.size)), ("compressed", entry.compressed)];
            let is_too_large = |size: &Option<Bytes>| size.is_some_and(|size| size.get() > MOST_BYTES);
            if let Some((key, _)) = sizes.iter().find(|(_, size)| is_too_large(size)) {
                return wrong(index, key, "it is above 1 GiB".to_owned(), "set a smaller size");
            }
            if entry.compressed.is_some_and(|compressed| compressed == Bytes::ZERO) {
                return wrong(
                    index,
                    "compressed",
                    "it is zero".to_owned(),
                    "leave the key out, if it is not compressed",
                );
            }
            if index == 0 {
                if entry.referrer.is_some() {
                    let message = "the first object is what the user opens".to_owned();
                    return wrong(index, "referrer", message, "remove the key, or put the document first");
                }
                if entry.at.is_some() {
                    let message = "the first object is not found in another".to_owned();
                    return wrong(index, "at", message, "remove the key");
                }
                continue;
            }
            let referrer = match &entry.referrer {
                None => 0,
                Some(name) => match numbers.get(name.as_str()) {
                    Some(referrer) => *referrer,
                    None => return wrong(index, "referrer", format!("there is no object `{name}`"), "add it"),
                },
            };
            match entry.at {
                None => objects[referrer].at_end.push(index as u32),
                Some(at) if at.get() > objects[referrer].size => {
                    let message = format!("`{}` has only {}", objects[referrer].name, file.objects[referrer].size);
                    return wrong(index, "at", message, "it is a byte of the referrer's content");
                }
                Some(at) => objects[referrer].at_byte.push((at.get(), index as u32)),
            }
        }
        if let Some(index) = not_found(&objects) {
            let message = format!("`{}` is found only from itself", file.objects[index].name);
            return wrong(index, "referrer", message, "let the references begin at the first object");
        }
        objects.iter_mut().for_each(|object| object.at_byte.sort_unstable());
        Ok(Self { name: file.name.clone(), objects })
    }

    /// Bytes of all contents, compressed where a server can do so if `compression`.
    pub fn bytes(&self, compression: bool) -> u64 {
        self.objects.iter().map(|object| object.encoded(compression)).sum()
    }
}

/// The first object that no chain of references from the first object reaches: its own chain of
/// referrers is a cycle.
fn not_found(objects: &[Object]) -> Option<usize> {
    let mut is_found = vec![false; objects.len()];
    let mut found = vec![0];
    while let Some(index) = found.pop() {
        is_found[index] = true;
        let object = &objects[index];
        let references = object.at_byte.iter().map(|(_, next)| next).chain(&object.at_end);
        found.extend(references.map(|next| *next as usize));
    }
    is_found.iter().position(|is_found| !is_found)
}

impl Object {
    fn new(entry: &Entry) -> Self {
        Self {
            name: entry.name.clone(),
            kind: entry.kind,
            origin: entry.origin.clone(),
            size: entry.size.get(),
            compressed: entry.compressed.map(Bytes::get),
            at_byte: Vec::new(),
            at_end: Vec::new(),
            wait: entry.wait,
            process: entry.process,
            cache: entry.cache,
            urgency: entry.urgency.unwrap_or_else(|| entry.kind.urgency()),
            incremental: entry.incremental.unwrap_or_else(|| entry.kind.is_incremental()),
        }
    }

    /// Bytes of its content on the wire.
    pub fn encoded(&self, compression: bool) -> u64 {
        self.compressed.filter(|_| compression).unwrap_or(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, referrer: Option<&str>) -> Entry {
        Entry {
            name: name.to_owned(),
            kind: ObjectKind::Image,
            origin: default_origin(),
            size: Bytes::new(1_000),
            compressed: None,
            referrer: referrer.map(str::to_owned),
            at: None,
            wait: Span::ZERO,
            process: Span::ZERO,
            cache: Caching::Never,
            urgency: None,
            incremental: None,
        }
    }

    fn error(objects: Vec<Entry>) -> (Option<usize>, &'static str) {
        let file = PageFile { name: "p".to_owned(), title: String::new(), source: String::new(), objects };
        let error = Page::new(&file).expect_err("it is wrong");
        (error.object, error.key)
    }

    #[test]
    fn references_begin_at_the_first_object() {
        assert_eq!(error(vec![]), (None, "object"));
        assert_eq!(error(vec![entry("a", None), entry("a", None)]), (Some(1), "name"));
        assert_eq!(error(vec![entry("a", None), entry("b", Some("c"))]), (Some(1), "referrer"));
        assert_eq!(error(vec![entry("a", Some("b")), entry("b", None)]), (Some(0), "referrer"));
        let cycle = vec![entry("a", None), entry("b", Some("c")), entry("c", Some("b"))];
        assert_eq!(error(cycle), (Some(1), "referrer"));
        assert_eq!(error(vec![entry("a", None), entry("b", Some("b"))]), (Some(1), "referrer"));
        let late = Entry { at: Some(Bytes::new(1_001)), ..entry("b", None) };
        assert_eq!(error(vec![entry("a", None), late]), (Some(1), "at"));
        let first = Entry { at: Some(Bytes::ZERO), ..entry("a", None) };
        assert_eq!(error(vec![first, entry("b", None)]), (Some(0), "at"));
    }

    #[test]
    fn sizes_are_at_most_1_gib() {
        let sized = |size: u64, compressed: Option<u64>| {
            vec![Entry { size: Bytes::new(size), compressed: compressed.map(Bytes::new), ..entry("a", None) }]
        };
        assert_eq!(error(sized(MOST_BYTES + 1, None)), (Some(0), "size"));
        assert_eq!(error(sized(1, Some(u64::MAX))), (Some(0), "compressed"));
        let file = |objects| PageFile { name: String::new(), title: String::new(), source: String::new(), objects };
        assert!(Page::new(&file(sized(MOST_BYTES, Some(MOST_BYTES)))).is_ok());
    }

    /// The time is linear in the number of objects, for chains and for lists.
    #[test]
    fn a_page_may_have_many_objects() {
        for is_chain in [true, false] {
            let name = |index: usize| format!("{index:07}");
            let objects = (0..100_000).map(|index: usize| {
                let referrer = (is_chain && index > 0).then(|| name(index - 1));
                entry(&name(index), referrer.as_deref())
            });
            let objects = objects.collect();
            let file = PageFile { name: String::new(), title: String::new(), source: String::new(), objects };
            assert_eq!(Page::new(&file).expect("it is valid").objects.len(), 100_000);
        }
    }

    #[test]
    fn objects_are_found_in_the_order_of_their_bytes() {
        let at = |name, byte| Entry { at: Some(Bytes::new(byte)), ..entry(name, None) };
        let objects = vec![entry("a", None), at("b", 900), at("c", 10), entry("d", Some("c"))];
        let file = PageFile { name: "p".to_owned(), title: String::new(), source: String::new(), objects };
        let page = Page::new(&file).expect("it is valid");
        assert_eq!(page.objects[0].at_byte, [(10, 2), (900, 1)]);
        assert_eq!((page.objects[2].at_end.as_slice(), page.bytes(true)), ([3].as_slice(), 4_000));
    }
}
