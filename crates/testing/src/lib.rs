//! For tests only: what a test needs of the machine, captures to test with, and TLS.
//!
//! A test that lacks what it needs calls [`skip`] and returns. The line is printed to the terminal
//! although the test passes. It is appended to the file that `AIRPATH_SKIPPED` names, from which
//! the run's closing list is made. With `CI=true` the test fails unless `docs/testing.md` lists the
//! feature as optional.

#[cfg(feature = "tls")]
mod tls;

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[cfg(feature = "tls")]
pub use tls::tls;

/// Reports that the calling test is not run because the machine lacks `feature`, a name of the
/// table in `docs/testing.md`.
///
/// # Panics
///
/// If the table does not list the feature; or with `CI=true`, if it does not list it as optional.
#[track_caller]
pub fn skip(feature: &str, problem: &str) {
    let page = fs::read_to_string(root().join("docs/testing.md")).expect("docs/testing.md can be read");
    let state = state_of(feature, &page);
    assert!(state.is_some(), "docs/testing.md does not list {feature:?}");
    let is_optional = state == Some("optional");
    let strict = env::var("CI").is_ok_and(|value| value.eq_ignore_ascii_case("true") || value == "1");
    assert!(is_optional || !strict, "needs {feature}, which is required with CI=true: {problem}");
    let thread = std::thread::current();
    let caller = std::panic::Location::caller();
    let test = thread.name().filter(|name| *name != "main").unwrap_or_else(|| caller.file());
    let line = format!("{test}: needs {feature}: {problem}\n");
    // Not `eprint!`: the test harness captures what a passing test prints by that.
    io::stderr().write_all(format!("SKIPPED {line}").as_bytes()).expect("standard error is open");
    if let Some(path) = env::var_os("AIRPATH_SKIPPED") {
        let mut list = OpenOptions::new().create(true).append(true).open(path).expect("the list can be written");
        list.write_all(line.as_bytes()).expect("the list can be written");
    }
}

/// The last cell of the feature's row in the table.
fn state_of<'a>(feature: &str, page: &'a str) -> Option<&'a str> {
    let row = page.lines().find(|line| line.starts_with(&format!("| `{feature}` |")))?;
    row.trim_end_matches(['|', ' ']).rsplit('|').next().map(str::trim)
}

/// The captures that are part of the repository: `tests/captures`.
pub fn captures() -> PathBuf {
    root().join("tests/captures")
}

/// The captures of others, or `None` after a [`skip`]: `data/captures` below `AIRPATH_SHARED`, or
/// below `shared` beside the repository.
#[track_caller]
pub fn shared_captures() -> Option<PathBuf> {
    shared("shared-captures", "data/captures")
}

/// The recorded links of others, or `None` after a [`skip`]: `data/links` of the same folder.
#[track_caller]
pub fn shared_links() -> Option<PathBuf> {
    shared("shared-links", "data/links")
}

#[track_caller]
fn shared(feature: &str, folder: &str) -> Option<PathBuf> {
    let shared = env::var_os("AIRPATH_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let path = shared.join(folder);
    if path.is_dir() {
        return Some(path);
    }
    skip(feature, &format!("there is no {}; AIRPATH_SHARED names the folder that has {folder}", path.display()));
    None
}

/// The repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "| feature | what | with |\n| `one` | a \\| b | required |\n| `two` | c | optional |\n";

    #[test]
    fn the_table_names_features_and_their_state() {
        assert_eq!(state_of("one", PAGE), Some("required"));
        assert_eq!(state_of("two", PAGE), Some("optional"));
        assert_eq!(state_of("three", PAGE), None);
    }

    #[test]
    #[should_panic(expected = "does not list \"magic\"")]
    fn a_feature_that_is_not_listed_is_no_reason() {
        skip("magic", "there is none");
    }
}
