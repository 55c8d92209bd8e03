//! What a scenario leaves out of its preset or changes as a whole, and which of two keys that
//! contradict each other an error is about.

use serde_json::Value;

use crate::document::Node;
use crate::error::Origin;

/// Removes the tables of `preset` for which `given` has `false`, as in `bearer.drx = false`, and
/// those values. `schema` is that of both.
pub fn leave_out(preset: &mut Node, given: &mut Node, schema: &Value) {
    let keys: Vec<String> = given.keys().map(str::to_owned).collect();
    for key in keys {
        let Some(schema) = property(schema, &key).filter(|schema| !forms(schema).is_empty()) else { continue };
        if given.get(&key).is_some_and(Node::is_false) {
            given.take(&key);
            preset.take(&key);
        }
        for (_, table) in given.tables_mut().filter(|(name, _)| *name == key) {
            let mut none = Node::table(Origin::Default);
            let below = preset.tables_mut().find_map(|(name, table)| (name == key).then_some(table));
            leave_out(below.unwrap_or(&mut none), table, schema);
        }
    }
}

/// Removes those keys of each table of `preset` that its form with the `mode` of `given` does not
/// have: `bearer.rlc.mode = "unacknowledged"` over a preset with the acknowledged mode.
pub fn change_mode(preset: &mut Node, given: &Node, schema: &Value) {
    for (key, table) in preset.tables_mut() {
        let (Some(given), Some(schema)) = (given.get(key), property(schema, key)) else { continue };
        let mode = given.get("mode").and_then(Node::as_str);
        let form = mode.and_then(|mode| forms(schema).into_iter().find(|form| has_mode(form, mode)));
        if let Some(properties) = form.and_then(|form| form["properties"].as_object()) {
            let foreign: Vec<String> =
                table.keys().filter(|key| !properties.contains_key(*key)).map(str::to_owned).collect();
            for key in foreign {
                table.take(&key);
            }
        }
        change_mode(table, given, schema);
    }
}

/// The forms that a table may have by its schema.
fn forms(schema: &Value) -> Vec<&Value> {
    let of_several = ["anyOf", "oneOf"].iter().filter_map(|form| schema[*form].as_array()).flatten();
    let mut found: Vec<&Value> = of_several.flat_map(forms).collect();
    if schema["properties"].is_object() {
        found.push(schema);
    }
    found
}

/// The schema of a key of a table.
fn property<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    forms(schema).into_iter().find_map(|form| form["properties"].get(key))
}

fn has_mode(form: &Value, mode: &str) -> bool {
    form["properties"]["mode"]["const"] == mode
}

/// Where the value at `field` was written, or that of another key that the `message` names: the one
/// on the command line, or else in the scenario and not in its preset. So a value of a preset that
/// contradicts the user's is reported where the user's is.
pub fn origin_of(table: &Node, field: &str, message: &str) -> Origin {
    let rank = |origin: &Origin| match (origin, table.origin()) {
        (Origin::Argument(_), _) => 2,
        (Origin::Line { file, .. }, Origin::Line { file: own, .. } | Origin::File(own)) if file == own => 1,
        _ => 0,
    };
    // A cell of EN-DC names its keys without its table.
    let around = field.split('.').next().unwrap_or_default();
    let named = message.split('`').skip(1).step_by(2).map(|text| text.split([' ', '=']).next().unwrap_or_default());
    let others = named.filter_map(|key| table.at(key).or_else(|| table.at(&format!("{around}.{key}"))));
    let own = table.origin_of(field);
    let best = others.map(Node::origin).fold(own, |best, other| if rank(other) > rank(best) { other } else { best });
    best.clone()
}
