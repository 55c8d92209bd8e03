//! Suggestions for unknown keys of a bearer: only keys that its model has.

use airpath_radio::model::Entry;
use serde_json::Value;

use crate::error::{NAMES_ELSEWHERE, ScenarioError, UnknownKey, join, nearest};

/// The error for an unknown key below `table`, the table of a bearer with the model `entry`, with a
/// suggestion that this model has. Other errors are not changed.
pub fn suggest(table: &str, entry: &Entry, error: ScenarioError) -> ScenarioError {
    let path = error.field.as_deref().and_then(|field| field.strip_prefix(table)?.strip_prefix('.'));
    let path = path.map(str::to_owned);
    let (Some(path), Some(unknown)) = (path, error.unknown_key.clone()) else { return error };
    let UnknownKey { meant, known } = *unknown;
    let below = |meant: &str| meant.strip_prefix(table).and_then(|rest| rest.strip_prefix('.')).map(str::to_owned);
    // A similar key of the same table, or of one below it.
    let first = meant.as_deref().map(|meant| below(meant).unwrap_or_else(|| meant.to_owned()));
    if first.is_some_and(|path| path.split('.').next().is_some_and(|key| known.iter().any(|each| each == key))) {
        return error;
    }
    let paths = paths_of(entry);
    let (parent, key) = path.rsplit_once('.').unwrap_or(("", &path));
    // Environments are no key of a model: those of `[bearer]` have them.
    let is_environment = key == "environment" && paths.iter().any(|path| path == "conditions");
    let own = if is_environment || key == "preset" && parent == "conditions" {
        Some("conditions.environment")
    } else {
        of_model(key, parent, &paths)
    };
    let short = entry.shorthand.map(|table| entry.keys(Some(table))).unwrap_or_default();
    let has = |path: &String| paths.contains(path) || short.contains(path);
    let meant = match meant.as_deref().map(|meant| (meant, below(meant))) {
        Some((meant, Some(path))) if has(&path) => Some(meant.to_owned()),
        // The key of another table, such as `fixed.rate`, if the model has no such key near. A key
        // of a table below that of the bearer is none of those: the bandwidth of a cell is no rate.
        Some((meant, None)) => {
            let near = own.filter(|path| path.split('.').count() <= MOST_KEYS);
            near.map(|path| join(table, path)).or_else(|| parent.is_empty().then(|| meant.to_owned()))
        }
        _ => own.map(|path| join(table, path)),
    };
    error.with_unknown_key(UnknownKey { meant, known })
}

/// The key of the model that is called `key`, or is meant by that name in other tools, or is most
/// similar: below the table `parent` first, then the one with the shortest path.
fn of_model<'a>(key: &str, parent: &str, paths: &'a [String]) -> Option<&'a str> {
    let mut paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    paths.sort_by_key(|path| (!path.starts_with(parent), path.split('.').count(), *path));
    let ends =
        |path: &str, end: &str| path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let called = |end: &str| paths.iter().copied().find(|path| ends(path, end));
    let tails = || NAMES_ELSEWHERE.iter().filter(|(name, _)| *name == key).filter_map(|(_, path)| path.split_once('.'));
    let last = |path: &'a str| path.rsplit('.').next().unwrap_or(path);
    called(key).or_else(|| tails().find_map(|(_, tail)| called(tail))).or_else(|| {
        let similar = nearest(key, paths.iter().copied().map(last)).filter(|_| key.len() > MIN_SIMILAR)?;
        called(similar)
    })
}

/// A path of more keys is less probable than that of another table.
const MOST_KEYS: usize = 2;
/// Shorter keys are similar to too many others.
const MIN_SIMILAR: usize = 5;

/// The dotted paths of all keys of a model, those of tables included.
fn paths_of(entry: &Entry) -> Vec<String> {
    let mut paths = Vec::new();
    collect(entry.schema().as_value(), "", &mut paths);
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn collect(schema: &Value, prefix: &str, paths: &mut Vec<String>) {
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let path = join(prefix, key);
        collect(value, &path, paths);
        paths.push(path);
    }
    for forms in ["anyOf", "oneOf", "allOf"] {
        schema[forms].as_array().into_iter().flatten().for_each(|form| collect(form, prefix, paths));
    }
}
