//! A TOML document with the origin of every value, so that values from a preset, a
//! file and the command line can be laid over each other and an error still names the right place.

use std::ops::Range;

use airpath_core::units::examples;
use airpath_radio::model::{self, ReadError};
use serde::de::{DeserializeOwned, Unexpected};
use serde_path_to_error::{Path, Segment};
use toml::de::{DeTable, DeValue};

pub use crate::error::join;
use crate::error::{Origin, ScenarioError, did_you_mean};

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Node {
    value: Value,
    origin: Origin,
    /// Further keys of the table, which its reader takes out of it: errors list them, too.
    read_apart: Vec<&'static str>,
}

#[derive(Clone, Debug)]
enum Value {
    Table(Vec<(String, Node)>),
    Array(Vec<Node>),
    Scalar(toml::Value),
}

impl Node {
    const fn new(value: Value, origin: Origin) -> Self {
        Self { value, origin, read_apart: Vec::new() }
    }

    /// An empty table.
    pub fn table(origin: Origin) -> Self {
        Self::new(Value::Table(Vec::new()), origin)
    }

    /// Reads a document; `file` is what errors call it.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let line_ends: Vec<usize> = text.match_indices('\n').map(|(offset, _)| offset).collect();
        let line = |span: Range<usize>| Origin::Line {
            file: file.to_owned(),
            line: 1 + line_ends.partition_point(|end| *end < span.start),
        };
        let table = DeTable::parse(text).map_err(|error| {
            let origin = error.span().map_or_else(|| Origin::File(file.to_owned()), line);
            ScenarioError::new(error.message(), origin, "").help("this is not valid TOML")
        })?;
        Ok(Self::new(from_table(table.get_ref(), &line), Origin::File(file.to_owned())))
    }

    /// A value that did not come from a document, such as a profile's settings.
    pub fn from_value(value: toml::Value, origin: &Origin) -> Self {
        let value = match value {
            toml::Value::Table(table) => {
                Value::Table(table.into_iter().map(|(key, value)| (key, Self::from_value(value, origin))).collect())
            }
            toml::Value::Array(array) => {
                Value::Array(array.into_iter().map(|value| Self::from_value(value, origin)).collect())
            }
            scalar => Value::Scalar(scalar),
        };
        Self::new(value, origin.clone())
    }

    /// Where it was written.
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Whether it is a table.
    pub const fn is_table(&self) -> bool {
        matches!(self.value, Value::Table(_))
    }

    /// The text of a string value.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(toml::Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn into_array(self) -> Option<Vec<Self>> {
        match self.value {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The value at `key` of a table.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// The tables of a table, each with its key.
    pub fn tables_mut(&mut self) -> impl Iterator<Item = (&str, &mut Self)> {
        let entries = match &mut self.value {
            Value::Table(entries) => entries.as_mut_slice(),
            _ => &mut [],
        };
        entries.iter_mut().map(|(key, node)| (key.as_str(), node)).filter(|(_, node)| node.is_table())
    }

    /// Whether it is `false`.
    pub const fn is_false(&self) -> bool {
        matches!(self.value, Value::Scalar(toml::Value::Boolean(false)))
    }

    /// The value at the dotted `path`.
    pub fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |node, key| node.get(key))
    }

    /// Puts the value that `from` has at the dotted `path` in place of the one here, if both have
    /// one.
    pub fn copy(&mut self, path: &str, from: &Self) {
        let old = path.split('.').try_fold(self, |node, key| node.get_mut(key));
        if let (Some(old), Some(new)) = (old, from.at(path)) {
            *old = new.clone();
        }
    }

    /// Where the value at the dotted `path` was written, or else the nearest table around it.
    pub fn origin_of(&self, path: &str) -> &Origin {
        let mut node = self;
        for key in path.split('.') {
            match node.get(key) {
                Some(next) => node = next,
                None => break,
            }
        }
        &node.origin
    }

    /// The keys of a table.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries().iter().map(|(key, _)| key.as_str())
    }

    /// Takes the value at `key` out of a table.
    pub fn take(&mut self, key: &str) -> Option<Self> {
        let Value::Table(entries) = &mut self.value else { return None };
        let index = entries.iter().position(|(name, _)| name == key)?;
        Some(entries.remove(index).1)
    }

    /// Names further keys of the table, which its reader takes out of it.
    pub fn set_read_apart(&mut self, keys: impl IntoIterator<Item = &'static str>) {
        self.read_apart.extend(keys);
    }

    /// The short form of a table: a text becomes a table in which it is the value of `key`. Any
    /// other node is returned unchanged.
    #[must_use]
    pub fn or_table_with(self, key: &str) -> Self {
        if self.as_str().is_none() {
            return self;
        }
        let mut table = Self::table(self.origin.clone());
        table.insert(key, self);
        table
    }

    /// Takes those of `keys` that are there into a table of their own.
    pub fn split(&mut self, keys: &[&str]) -> Self {
        let mut part = Self::table(self.origin.clone());
        for key in keys {
            if let Some(node) = self.take(key) {
                part.insert(key, node);
            }
        }
        part
    }

    /// Puts a value into a table, in place of what was at `key`.
    pub fn insert(&mut self, key: &str, node: Self) {
        let Value::Table(entries) = &mut self.value else { return };
        match entries.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = node,
            None => entries.push((key.to_owned(), node)),
        }
    }

    /// Lays `over` on top: tables key by key, all else as a whole.
    pub fn overlay(&mut self, over: Self) {
        match (&mut self.value, over.value) {
            (Value::Table(_), Value::Table(entries)) => {
                for (key, node) in entries {
                    match self.get_mut(&key) {
                        Some(old) => old.overlay(node),
                        None => self.insert(&key, node),
                    }
                }
                self.origin = over.origin;
            }
            (_, value) => *self = Self::new(value, over.origin),
        }
    }

    /// Sets the value at the dotted `path` to `text`: a TOML value, or else a string. A
    /// number in the path picks an element of an array, a text the elements with that `name`;
    /// without either, every element is meant.
    pub fn set(&mut self, path: &str, text: &str) -> Result<(), ScenarioError> {
        let origin = Origin::Argument(format!("override {path}={text}"));
        let value = parse_value(text);
        let keys: Vec<&str> = path.split('.').map(str::trim).collect();
        if keys.iter().any(|key| key.is_empty()) {
            return Err(ScenarioError::new("this is not the path of a key", origin, "")
                .help("write it with dots between the keys, as in `--set bearer.bler=0.1`"));
        }
        self.set_at(&keys, &Self::from_value(value, &origin), &origin)
    }

    fn set_at(&mut self, keys: &[&str], node: &Self, origin: &Origin) -> Result<(), ScenarioError> {
        let Some((key, rest)) = keys.split_first() else {
            *self = node.clone();
            return Ok(());
        };
        match &mut self.value {
            Value::Array(elements) => match key.parse::<usize>() {
                Ok(index) => match elements.get_mut(index) {
                    Some(element) => element.set_at(rest, node, origin),
                    None => {
                        let message = format!("there is no element {index} in a list of {}", elements.len());
                        Err(ScenarioError::new(message, origin.clone(), "").help("elements count from 0"))
                    }
                },
                Err(_) => {
                    let has_name = !rest.is_empty() && elements.iter().any(|element| element.is_named(key));
                    let keys = if has_name { rest } else { keys };
                    let mut chosen = elements.iter_mut().filter(|element| !has_name || element.is_named(key));
                    chosen.try_for_each(|element| element.set_at(keys, node, origin))
                }
            },
            Value::Table(_) => {
                if self.get(key).is_none() {
                    self.insert(key, Self::table(origin.clone()));
                }
                self.get_mut(key).expect("it was just put there").set_at(rest, node, origin)
            }
            // A table may take the place of a scalar: `fixed.delay.mean` over `delay = "110 ms"`.
            Value::Scalar(_) => {
                *self = Self::table(origin.clone());
                self.set_at(keys, node, origin)
            }
        }
    }

    /// Whether it is a table with this `name`.
    fn is_named(&self, name: &str) -> bool {
        self.get("name")
            .is_some_and(|node| matches!(&node.value, Value::Scalar(toml::Value::String(text)) if text == name))
    }

    /// What of it was given on the command line; `None` if nothing was.
    pub fn given_as_arguments(&self) -> Option<Self> {
        match &self.value {
            Value::Table(entries) => {
                let given = entries.iter().filter_map(|(key, node)| Some((key.clone(), node.given_as_arguments()?)));
                let given: Vec<_> = given.collect();
                (!given.is_empty()).then(|| Self::new(Value::Table(given), self.origin.clone()))
            }
            Value::Array(_) | Value::Scalar(_) => matches!(self.origin, Origin::Argument(_)).then(|| self.clone()),
        }
    }

    /// The first value in it that was given on the command line: its dotted path, and where it was
    /// given. `at` is the path of this node.
    pub fn first_argument(&self, at: &str) -> Option<(String, Origin)> {
        match &self.value {
            Value::Table(entries) => entries.iter().find_map(|(key, node)| node.first_argument(&join(at, key))),
            Value::Array(_) | Value::Scalar(_) => {
                matches!(self.origin, Origin::Argument(_)).then(|| (at.to_owned(), self.origin.clone()))
            }
        }
    }

    /// Reads the value as a `T`. Errors name the place of the offending value; `at` is the dotted
    /// path of this node.
    pub fn read<T: DeserializeOwned>(&self, at: &str) -> Result<T, ScenarioError> {
        self.read_with(at, model::read)
    }

    /// The same with a function that reads the plain value.
    pub fn read_with<T>(
        &self,
        at: &str,
        read: impl Fn(toml::Value) -> Result<T, ReadError>,
    ) -> Result<T, ScenarioError> {
        read(self.to_value()).map_err(|error| {
            // serde names the keys of a table and the variants of an enumeration in the error of an
            // unknown one alone.
            let known = |unknown: toml::Value, message: &str| {
                let mut value = self.to_value();
                *at_path(&mut value, &error.path)? = unknown;
                let error = read(value).err()?;
                let known = quoted(error.message.strip_prefix(message)?).skip(1);
                Some(known.map(str::to_owned).collect())
            };
            self.explain(at, &error.path, &error.message, known)
        })
    }

    /// The plain value.
    pub fn to_value(&self) -> toml::Value {
        match &self.value {
            Value::Table(entries) => {
                toml::Value::Table(entries.iter().map(|(key, node)| (key.clone(), node.to_value())).collect())
            }
            Value::Array(elements) => toml::Value::Array(elements.iter().map(Self::to_value).collect()),
            Value::Scalar(value) => value.clone(),
        }
    }

    /// The error for an unknown `key` of this table.
    pub fn unknown_key(&self, at: &str, key: &str, known: &[&str]) -> ScenarioError {
        let origin = self.get(key).map_or(&self.origin, Self::origin).clone();
        ScenarioError::unknown_key(at, key, known, origin)
    }

    /// The error with this `message` at a `path` below `at`. `known` returns the names in the error
    /// that begins with a text, if an unknown one takes the place of the value.
    fn explain(
        &self,
        at: &str,
        path: &Path,
        message: &str,
        known: impl FnOnce(toml::Value, &str) -> Option<Vec<String>>,
    ) -> ScenarioError {
        let (mut node, mut field) = (self, at.to_owned());
        let mut table = self;
        for segment in path.iter() {
            let (key, next) = match segment {
                // The variant of an enumeration is a key of a table, or a text.
                Segment::Map { key } | Segment::Enum { variant: key } => (key.clone(), node.get(key)),
                Segment::Seq { index } => (index.to_string(), node.element(*index)),
                Segment::Unknown => break,
            };
            let Some(next) = next else { break };
            field = join(&field, &key);
            table = node;
            node = next;
        }
        if message.starts_with("unknown field") {
            let names: Vec<&str> = quoted(message).collect();
            if let Some((key, known)) = names.split_first() {
                // The deserialiser may already have stepped to the key itself.
                let stepped = field.strip_suffix(&format!(".{key}"));
                let (parent, table) = stepped.map_or((field.as_str(), node), |parent| (parent, table));
                let origin = node.get(key).unwrap_or(node).origin.clone();
                let known: Vec<&str> = table.read_apart.iter().chain(known).copied().collect();
                return ScenarioError::unknown_key(parent, key, &known, origin);
            }
        }
        if message.starts_with("missing field")
            && let Some(key) = quoted(message).next()
        {
            return ScenarioError::new("this key is missing", node.origin.clone(), join(&field, key));
        }
        if message.starts_with("unknown variant")
            && let Some((wrong, known)) = quoted(message).collect::<Vec<_>>().split_first()
        {
            return ScenarioError::new(format!("`{wrong}` is not known"), node.origin.clone(), field)
                .help(did_you_mean(wrong, known));
        }
        // serde names the Rust type that a table is read into.
        if let Some((found, _)) = message.split_once(", expected struct ") {
            let unknown = toml::Table::from_iter([("?".to_owned(), true.into())]);
            let keys = known(unknown.into(), "unknown field");
            let keys = keys.map_or_else(String::new, |keys| format!(": {}", keys.join(", ")));
            let help = format!("set its keys, as in `{field}.KEY = VALUE`{keys}");
            return ScenarioError::new(format!("{found}, expected a table"), node.origin.clone(), field).help(help);
        }
        // An enumeration, whose value is no text.
        if message == NO_NAME || message.starts_with(NO_SINGLE_KEY) {
            let error = ScenarioError::new(
                format!("invalid type: {}, expected a name", node.kind()),
                node.origin.clone(),
                field,
            );
            let names = known("?".into(), "unknown variant");
            return ScenarioError { help: names.map(|names| format!("one of {}", names.join(", "))), ..error };
        }
        if let Some((found, expected)) = message.split_once(", expected ") {
            let (expected, help) = plain_expectation(found, expected);
            let error = ScenarioError::new(format!("{found}, expected {expected}"), node.origin.clone(), field);
            return ScenarioError { help, ..error };
        }
        ScenarioError::new(message, node.origin.clone(), field)
    }

    /// What it is, in the words of serde.
    fn kind(&self) -> String {
        let found = match &self.value {
            Value::Table(_) => Unexpected::Map,
            Value::Array(_) => Unexpected::Seq,
            Value::Scalar(toml::Value::Integer(number)) => Unexpected::Signed(*number),
            Value::Scalar(toml::Value::Float(number)) => Unexpected::Float(*number),
            Value::Scalar(toml::Value::Boolean(truth)) => Unexpected::Bool(*truth),
            Value::Scalar(_) => Unexpected::Other("date"),
        };
        found.to_string()
    }

    /// The element number `index` of an array.
    pub fn element(&self, index: usize) -> Option<&Self> {
        match &self.value {
            Value::Array(elements) => elements.get(index),
            _ => None,
        }
    }

    fn entries(&self) -> &[(String, Self)] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match &mut self.value {
            Value::Table(entries) => entries.iter_mut().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }
}

/// The error of `toml` for an enumeration whose value is no text and no table.
const NO_NAME: &str = "invalid type: unit variant, expected string only";

/// The begin of its error for one whose value is a table with several keys, or none.
const NO_SINGLE_KEY: &str = "wanted exactly 1 element";

/// The names in backticks in a message of serde.
fn quoted(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2)
}

/// The value at a path.
fn at_path<'a>(value: &'a mut toml::Value, path: &Path) -> Option<&'a mut toml::Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Map { key } | Segment::Enum { variant: key } => value.get_mut(key),
        Segment::Seq { index } => value.get_mut(index),
        Segment::Unknown => None,
    })
}

/// What serde `expected` in place of the value that it `found`, without names of Rust types, and
/// what to do next.
fn plain_expectation(found: &str, expected: &str) -> (String, Option<String>) {
    let whole = |range: &str| (format!("a whole number{range}"), None);
    match expected {
        "a boolean" => {
            let text = found.split('"').nth(1).unwrap_or_default().to_ascii_lowercase();
            let meant = match text.as_str() {
                "yes" | "on" | "1" => "write `true`",
                "no" | "off" | "0" => "write `false`",
                _ => "write `true` or `false`",
            };
            ("`true` or `false`".to_owned(), Some(meant.to_owned()))
        }
        "u8" => whole(" from 0 to 255"),
        "u16" => whole(" from 0 to 65535"),
        "u32" => whole(" from 0 to 4294967295"),
        "u64" | "usize" => whole(", 0 or more"),
        "i8" | "i16" | "i32" | "i64" => whole(""),
        "f32" | "f64" => ("a number".to_owned(), None),
        // An example of a quantity follows; a bare number lacks its unit.
        _ => {
            let is_number = found.contains("integer") || found.contains("floating point");
            let number = is_number.then(|| quoted(found).next()).flatten();
            let unit = expected.split('"').nth(1).and_then(|example| example.split(' ').nth(1));
            let help =
                number.zip(unit).map(|(number, unit)| format!("add a unit, as in {}", examples(number, unit, '"')));
            (expected.to_owned(), help)
        }
    }
}

fn parse_value(text: &str) -> toml::Value {
    toml::from_str::<toml::Table>(&format!("value = {text}"))
        .ok()
        .filter(|table| table.len() == 1)
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

fn from_table(table: &DeTable<'_>, line: &impl Fn(Range<usize>) -> Origin) -> Value {
    Value::Table(
        table
            .iter()
            .map(|(key, value)| {
                // A key is where people look for a setting; its value may stand lines below.
                (key.get_ref().to_string(), Node::new(from_value(value.get_ref(), line), line(key.span())))
            })
            .collect(),
    )
}

fn from_value(value: &DeValue<'_>, line: &impl Fn(Range<usize>) -> Origin) -> Value {
    match value {
        DeValue::Table(table) => from_table(table, line),
        DeValue::Array(array) => Value::Array(
            array.iter().map(|item| Node::new(from_value(item.get_ref(), line), line(item.span()))).collect(),
        ),
        DeValue::String(text) => Value::Scalar(toml::Value::String(text.to_string())),
        DeValue::Boolean(truth) => Value::Scalar(toml::Value::Boolean(*truth)),
        DeValue::Datetime(datetime) => Value::Scalar(toml::Value::Datetime(*datetime)),
        // Numbers out of range are kept as text, so that the type's own error speaks of them.
        DeValue::Integer(integer) => Value::Scalar(
            i64::from_str_radix(integer.as_str(), integer.radix())
                .map_or_else(|_| toml::Value::String(integer.as_str().to_owned()), toml::Value::Integer),
        ),
        DeValue::Float(float) => Value::Scalar(
            float.as_str().parse().map_or_else(|_| toml::Value::String(float.as_str().to_owned()), toml::Value::Float),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::{Bitrate, Span};

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Link {
        rate: Bitrate,
        #[serde(default)]
        delay: Span,
        queue: Option<Queue>,
    }

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Queue {
        packets: u32,
    }

    fn error(text: &str) -> String {
        let node = Node::parse(text, "a.toml").expect("valid TOML");
        node.get("link").expect("a link").read::<Link>("link").expect_err("wrong").to_string()
    }

    #[test]
    fn errors_name_file_line_and_field() {
        assert_eq!(
            error("[link]\nrate = \"1 kbit/s\"\ndelai = \"1 ms\""),
            "a.toml:3: link.delai: unknown key; did you mean `delay`? known here: rate, delay, queue"
        );
        assert!(error("[link]\nrate = \"1 ms\"").starts_with("a.toml:2: link.rate: `ms` is not a unit of a bit rate"));
        assert!(error("[link]\nrate = \"-1 bit/s\"").contains("a.toml:2: link.rate: `-1 bit/s` is negative"));
        assert!(error("[link]\nrate = 5").contains("a.toml:2: link.rate: invalid type: integer `5`"));
        assert_eq!(error("# here\n[link]"), "a.toml:2: link.rate: this key is missing");
        assert!(
            error("[link]\nrate = \"1 bit/s\"\n\nqueue = { packets = 1, bites = 2 }")
                .starts_with("a.toml:4: link.queue.bites: unknown key; did you mean")
                || error("[link]\nrate = \"1 bit/s\"\n\nqueue = { packets = 1, bites = 2 }")
                    .contains("known here: packets")
        );
    }

    #[test]
    fn invalid_toml_is_reported_with_its_line() {
        let error = Node::parse("a = 1\nb = = 2\n", "a.toml").expect_err("no TOML");
        assert_eq!((error.file(), error.line()), (Some("a.toml"), Some(2)));
    }

    #[test]
    fn layers_keep_their_origins() {
        let mut base = Node::parse("rate = \"1 kbit/s\"\nqueue = { packets = 3 }", "preset").expect("valid");
        base.overlay(Node::parse("\n\n\ndelay = \"x\"", "user").expect("valid"));
        let error = base.read::<Link>("link").expect_err("a delay without a number");
        assert_eq!((error.file(), error.line()), (Some("user"), Some(4)));
        base.set("delay", "2 ms").expect("a path");
        base.set("queue.packets", "many").expect("a path");
        let error = base.read::<Link>("").expect_err("no number").to_string();
        assert!(error.starts_with("override queue.packets=many: queue.packets: invalid type"), "{error}");
        base.set("queue.packets", "7").expect("a path");
        let link = base.read::<Link>("").expect("all well");
        assert_eq!((link.delay, link.queue.map(|q| q.packets)), (Span::from_millis(2), Some(7)));
    }

    #[test]
    fn set_reaches_into_arrays() {
        let mut node = Node::parse("[[flow]]\na = 1\n[[flow]]\na = 2", "f").expect("valid");
        node.set("flow.1.a", "5").expect("there is one");
        node.set("flow.b", "true").expect("all of them");
        assert_eq!(node.to_value().to_string().replace(' ', ""), "{flow=[{a=1,b=true},{a=5,b=true}]}");
        assert!(node.set("flow.2.a", "5").expect_err("only two").to_string().contains("in a list of 2"));
        let mut node =
            Node::parse("[[flow]]\nname = \"page\"\na = 1\n[[flow]]\nname = \"a\"\na = 2", "f").expect("valid");
        node.set("flow.page.a", "5").expect("one has that name");
        node.set("flow.a.b", "true").expect("a name goes before a key");
        node.set("flow.a", "7").expect("a path ends with a key");
        let expected = "{flow=[{a=7,name=\"page\"},{a=7,b=true,name=\"a\"}]}";
        assert_eq!(node.to_value().to_string().replace(' ', ""), expected);
        assert!(node.set("a..b", "5").is_err());
    }
}
