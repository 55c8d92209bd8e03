//! Web pages: those that are shipped, and page files.

use std::path::Path;

use airpath_app::web::settings::{Contradiction, Protocol};
use airpath_app::web::{Page, PageError, PageFile, Session, Settings};
use include_dir::{Dir, include_dir};

use crate::document::{Node, join};
use crate::error::{Origin, ScenarioError, nearest};
use crate::{Format, quic, tcp};

static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../pages");

/// What carries the pages of a flow, with the settings of both ends.
#[derive(Clone, Debug)]
pub enum Transport {
    /// TCP.
    Tcp(Box<tcp::Settings>),
    /// QUIC: the pages use HTTP/3.
    Quic(quic::Settings),
}

/// A page, checked.
#[derive(Clone, Debug)]
pub struct ReadPage {
    /// As its file has it.
    pub file: PageFile,
    /// With its references resolved.
    pub page: Page,
}

impl ReadPage {
    /// The page called `name`: one that is shipped, or a user's own file in `folder`.
    ///
    /// # Errors
    /// If there is none of this name, or the file is not a valid page. The error has the place in
    /// the file.
    pub fn load(name: &str, folder: &Path, origin: &Origin) -> Result<Self, ScenarioError> {
        if let Some(text) = text_of(name) {
            return Self::parse(text, &format!("page {name}"));
        }
        let wrong = |message: String| ScenarioError::new(message, origin.clone(), "");
        if !name.contains(['/', '\\', '.']) {
            let names = names();
            let meant = nearest(name, names.iter().map(String::as_str));
            let meant = meant.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
            let help = format!("{meant}shipped are {}; the path of a file works, too", names.join(", "));
            return Err(wrong(format!("there is no page `{name}`")).help(help));
        }
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            wrong(format!("the page file `{}` cannot be read: {error}", path.display()))
                .help("check the path and its permissions")
        })?;
        Self::parse(&text, name)
    }

    /// Reads a page from the `text` of a file; `file` is what errors call it.
    ///
    /// # Errors
    /// If it is not a valid page.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let mut node = Node::parse(text, file)?;
        Format::check(&mut node, "page", file)?;
        Self::read(&node, "")
    }

    /// Reads a page from a table at the path `at`.
    pub(crate) fn read(node: &Node, at: &str) -> Result<Self, ScenarioError> {
        let file: PageFile = node.read(at)?;
        let page = Page::new(&file).map_err(|error| located(error, node, at))?;
        Ok(Self { file, page })
    }
}

/// The names of the pages that are shipped, sorted.
pub fn names() -> Vec<String> {
    let name = |path: &Path| Some(path.to_str()?.strip_suffix(".page")?.to_owned());
    let mut names: Vec<String> = SHIPPED.files().filter_map(|file| name(file.path())).collect();
    names.sort();
    names
}

/// The text of the page called `name`, if it is shipped.
pub fn text_of(name: &str) -> Option<&'static str> {
    let file = SHIPPED.get_file(format!("{name}.page"))?;
    Some(file.contents_utf8().expect("shipped pages are text"))
}

/// The error with its place in the file.
fn located(error: PageError, node: &Node, at: &str) -> ScenarioError {
    let objects = node.get("object");
    let (origin, field) = match error.object {
        None => (node.origin_of("object"), join(at, error.key)),
        Some(object) => {
            let entry = objects.and_then(|objects| objects.element(object));
            let origin = entry.map_or(node.origin(), |entry| entry.origin_of(error.key));
            (origin, join(at, &format!("object.{object}.{}", error.key)))
        }
    };
    ScenarioError::new(error.message, origin.clone(), field).help(error.help)
}

/// Takes `transport` and `quic` out of a flow of kind `page`. Returns the settings of QUIC, if the
/// flow uses HTTP/3.
pub(crate) fn take_quic(node: &mut Node, at: &str, defaults: &Node) -> Result<Option<quic::Settings>, ScenarioError> {
    let is_http3 = node.get("protocol").and_then(Node::as_str) == Some(Protocol::Http3.name());
    let transport = node.get("transport").map(|node| node.origin().clone());
    let taken = quic::take(node, at, defaults, if is_http3 { quic::QUINN } else { quic::TCP })?;
    let (message, help) = match (is_http3, taken.is_some()) {
        (true, false) => ("HTTP/3 does not run over TCP", "remove the key, or set protocol to \"h2\""),
        (false, true) => ("a page over QUIC uses HTTP/3", "set protocol to \"h3\", or remove the key"),
        _ => return Ok(taken),
    };
    let origin = transport.unwrap_or(Origin::Default);
    Err(ScenarioError::new(message, origin, join(at, "transport")).help(help))
}

/// The `error` of a flow, with help if the protocol has another name.
fn with_protocol(error: ScenarioError, node: &Node, at: &str) -> ScenarioError {
    let given = node.get("protocol").and_then(Node::as_str);
    let meant = given.and_then(Protocol::by_other_name).filter(|_| error.field == Some(join(at, "protocol")));
    match meant {
        Some(protocol) => error.help(format!("did you mean `{}`?", protocol.name())),
        None => error,
    }
}

/// Reads the keys of a flow of kind `page`; returns the session and the keys as they are resolved.
pub(crate) fn read_flow(mut node: Node, folder: &Path, at: &str) -> Result<(Session, toml::Table), ScenarioError> {
    let place = join(at, "page");
    let origin = node.origin().clone();
    let page = node.take("page").ok_or_else(|| {
        ScenarioError::new("this key is missing", origin, &place)
            .help(format!("the path of a page file, or one of {}", names().join(", ")))
    })?;
    let origin = page.origin().clone();
    let (is_list, pages) = match page.clone().into_array() {
        Some(pages) => (true, pages),
        None => (false, vec![page]),
    };
    if pages.is_empty() {
        return Err(ScenarioError::new("there must be at least one page", origin, place));
    }
    let read = |(index, page): (usize, Node)| {
        let place = if is_list { join(&place, &index.to_string()) } else { place.clone() };
        if page.is_table() {
            return ReadPage::read(&page, &place);
        }
        let Some(name) = page.as_str() else {
            let message = "this is not a page";
            return Err(ScenarioError::new(message, page.origin().clone(), place)
                .help("write the name of a page, the path of a page file, or a list of them"));
        };
        ReadPage::load(name, folder, page.origin()).map_err(|mut error| {
            if error.field.is_none() {
                error.field = Some(place);
            }
            error
        })
    };
    let pages: Vec<ReadPage> = pages.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let mut settings: Settings = node.read(at).map_err(|error| with_protocol(error, &node, at))?;
    if node.get("views").is_none() {
        settings.views = pages.len() as u32;
    }
    settings.check().map_err(|Contradiction { key, message, help }| {
        ScenarioError::new(message, node.origin_of(key).clone(), join(at, key)).help(help)
    })?;
    let mut table = toml::Table::try_from(&settings).expect("settings are a table");
    let (files, pages): (Vec<PageFile>, Vec<Page>) = pages.into_iter().map(|page| (page.file, page.page)).unzip();
    let files = files.iter().map(|file| toml::Value::try_from(file).expect("a page is a table")).collect();
    table.insert("page".to_owned(), toml::Value::Array(files));
    Ok((Session::new(settings, pages), table))
}
