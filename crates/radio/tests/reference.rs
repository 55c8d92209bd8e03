//! The pages of `docs/bearers`: the list of models, and the keys of every model with type, default
//! and meaning, from its types and their comments.
//!
//! `AIRPATH_BLESS=1 cargo test -p airpath-radio --test all reference::` writes them again.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use airpath_radio::{Models, conditions};
use schemars::generate::SchemaSettings;
use serde_json::Value;

const WIDTH: usize = 120;

#[test]
fn the_pages_of_all_models_are_up_to_date() {
    let mut pages: Vec<(String, String)> = Models::shipped()
        .iter()
        .map(|entry| {
            let head = format!("# `model = \"{}\"`: {}", entry.name, entry.title);
            let short = match entry.shorthand {
                Some(table) => format!(
                    "Keys of `{table}` may stand right below `[bearer]`: `bearer.KEY` is short for `bearer.{table}.KEY`.\n\n"
                ),
                None => String::new(),
            };
            (entry.name.to_owned(), page(&head, &short, entry.schema().as_value()))
        })
        .collect();
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<conditions::Config>();
    pages.push((CONDITIONS.to_owned(), page("# `[bearer.conditions]`: radio conditions", "", schema.as_value())));

    pages.push((INDEX.to_owned(), index()));

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bearers");
    let bless = std::env::var_os("AIRPATH_BLESS").is_some();
    for (name, text) in &pages {
        let file = folder.join(format!("{name}.md"));
        if bless {
            std::fs::write(&file, text).expect("the folder is there");
        }
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(written == *text, "docs/bearers/{name}.md differs from the types: {BLESS}");
    }
    let mut expected: Vec<PathBuf> = pages.iter().map(|(name, _)| folder.join(format!("{name}.md"))).collect();
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "each page belongs to a model");
}

#[test]
fn every_key_has_a_meaning() {
    for entry in Models::shipped().iter() {
        for key in keys(entry.schema().as_value()) {
            assert!(!key.meaning.is_empty(), "{}: `{}` has no comment", entry.name, key.path);
        }
    }
}

const BLESS: &str = "run `AIRPATH_BLESS=1 cargo test -p airpath-radio --test all reference::`";
const CONDITIONS: &str = "conditions";
const INDEX: &str = "README";

/// The list of models.
fn index() -> String {
    let mut text = format!(
        "# Bearer models\n\nThis page is made from the types of the models: to change it, change those and\n{BLESS}.\n\n\
         | `model` | what |\n| --- | --- |\n"
    );
    for entry in Models::shipped().iter() {
        let name = entry.name;
        writeln!(text, "| [`{name}`]({name}.md) | {} |", entry.title).expect("a string");
    }
    text.push_str("\n[`[bearer.conditions]`](conditions.md) has the keys of radio conditions.\n");
    text
}

/// One key of a model.
struct Key {
    path: String,
    kind: String,
    meaning: String,
}

fn page(head: &str, more: &str, schema: &Value) -> String {
    let mut text = format!(
        "{head}\n\nThis page is made from the types of the model and their comments: to change it, change those and\n{BLESS}.\n\n{more}"
    );
    for Key { path, kind, meaning } in keys(schema) {
        let item = format!("- `{path}` ({kind}): {meaning}");
        text.push_str(&wrapped(&item));
    }
    text
}

fn keys(schema: &Value) -> Vec<Key> {
    let mut keys = Vec::new();
    table(schema, "", &mut keys);
    keys
}

fn table(schema: &Value, at: &str, keys: &mut Vec<Key>) {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    // A feature of serde_json, which another crate of the build may select, sets their order.
    let properties: BTreeMap<&String, &Value> = schema["properties"].as_object().into_iter().flatten().collect();
    for (name, value) in properties {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        key(value, &path, required.contains(&name.as_str()), keys);
    }
}

fn key(schema: &Value, path: &str, required: bool, keys: &mut Vec<Key>) {
    let inner = without_null(schema);
    let comment = |schema: &Value| schema["description"].as_str().unwrap_or_default().to_owned();
    let meaning = Some(comment(schema)).filter(|text| !text.is_empty()).unwrap_or_else(|| comment(inner));
    let presence = match (required, schema.get("default").filter(|value| !value.is_null() && !value.is_object())) {
        (true, _) => ", required".to_owned(),
        (false, Some(default)) => format!(", default `{}`", default.to_string().replace('"', "")),
        (false, None) => ", optional".to_owned(),
    };
    let own = |kind: &str, keys: &mut Vec<Key>| {
        let meaning = plain(&meaning);
        keys.push(Key { path: path.to_owned(), kind: format!("{kind}{presence}"), meaning });
    };
    let map = inner.get("additionalProperties").filter(|value| value.is_object());
    let forms = inner["oneOf"].as_array().filter(|forms| forms.iter().any(|form| form.get("properties").is_some()));
    if path == CONDITIONS {
        keys.push(Key {
            path: path.to_owned(),
            kind: format!("table{presence}"),
            meaning: format!("{} Its keys: see [{CONDITIONS}.md]({CONDITIONS}.md).", plain(&meaning)),
        });
    } else if inner.get("properties").is_some() {
        own("table", keys);
        table(inner, path, keys);
    } else if let Some(values) = map {
        if values.get("properties").is_some() {
            own("table", keys);
            table(values, &format!("{path}.NAME"), keys);
        } else {
            own(&format!("table of: {}", kind(values)), keys);
        }
    } else if let Some(forms) = forms {
        own("one of the tables that follow", keys);
        forms.iter().for_each(|form| table(form, path, keys));
    } else if inner["type"] == "array" && inner["items"].get("properties").is_some() {
        own("list of tables", keys);
        table(&inner["items"], &format!("{path}[]"), keys);
    } else {
        own(&kind(inner), keys);
    }
}

/// The schema of a value that may be left out.
fn without_null(schema: &Value) -> &Value {
    let forms = schema["anyOf"].as_array().into_iter().flatten();
    let mut present = forms.filter(|form| form["type"] != "null");
    present.next().filter(|_| schema["anyOf"].as_array().is_some_and(|it| it.len() == 2)).unwrap_or(schema)
}

fn kind(schema: &Value) -> String {
    if let Some(title) = schema["title"].as_str() {
        return title.trim_start_matches("a ").to_owned();
    }
    let names = |names: Vec<&str>| format!("one of `{}`", names.join("`, `"));
    if let Some(values) = schema["enum"].as_array() {
        return names(values.iter().filter_map(Value::as_str).collect());
    }
    if let Some(forms) = schema["oneOf"].as_array() {
        let constant = |form: &'_ Value| -> Vec<String> {
            let several = form["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
            form["const"].as_str().into_iter().chain(several).map(str::to_owned).collect()
        };
        let all: Vec<String> = forms.iter().flat_map(constant).collect();
        return names(all.iter().map(String::as_str).collect());
    }
    if let Some(forms) = schema["anyOf"].as_array() {
        return forms.iter().map(kind).collect::<Vec<_>>().join(", or ");
    }
    let of_type = |name: &str| match name {
        "integer" => "whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "string" => "text".to_owned(),
        "array" => format!("list of: {}", kind(&schema["items"])),
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => of_type(name),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.map(of_type).collect::<Vec<_>>().join(" or ")
        }
        _ => panic!("an unknown type: {schema}"),
    }
}

/// A comment without links of Rust, on one line.
fn plain(comment: &str) -> String {
    comment.replace("[`", "`").replace("`]", "`").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn wrapped(item: &str) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for word in item.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(text, "{line}").expect("a string takes all");
            line = format!("  {word}");
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    writeln!(text, "{line}").expect("a string takes all");
    text
}
