//! The states of `airpath_core::state` are those that bearers report: none is documented without
//! being used.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use airpath_core::{HarqState, LinkState, LteRrcState, ModeState, RrcState, TbfState, WaitState};

/// The text of all Rust files below `folder`.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).expect("a text"));
        }
    }
}

fn assert_reported(sources: &str, kind: &str, states: &[impl Debug]) {
    for state in states {
        let used = format!("{kind}::{state:?}");
        assert!(sources.contains(&used), "no bearer reports {used}: remove it from `airpath_core::state`");
    }
}

#[test]
fn every_state_is_reported_by_some_bearer() {
    let mut text = String::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
    assert_reported(&text, "ModeState", ModeState::ALL);
    assert_reported(&text, "TbfState", TbfState::ALL);
    assert_reported(&text, "RrcState", RrcState::ALL);
    assert_reported(&text, "LteRrcState", LteRrcState::ALL);
    assert_reported(&text, "WaitState", WaitState::ALL);
    assert_reported(&text, "HarqState", HarqState::ALL);
    assert_reported(&text, "LinkState", LinkState::ALL);
}

#[test]
fn names_of_an_aspect_are_different() {
    let mut all: Vec<_> = airpath_core::state::all().map(|(aspect, name, _)| (aspect, name)).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}
