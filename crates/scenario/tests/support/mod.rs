//! What the tests share: reading a scenario, and the error after a change of a valid one.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::Path;

use airpath_core::Seed;
use airpath_scenario::{Scenario, ScenarioError, Users};

/// Reads a scenario as the file `s.toml`.
pub fn read(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::read(text, "s.toml", Path::new("."), &[])
}

/// The hops of the path of a scenario, from the server on.
pub fn component_names(scenario: &Scenario, users: Users) -> Vec<String> {
    scenario.build_path(Seed::new(1), users).expect("it can be built").topology.component_names()
}

/// The scenario that a resolved one, with every default written out, is read as.
pub fn resolved(scenario: &Scenario) -> Scenario {
    read(&scenario.to_toml()).expect("the resolved scenario is valid")
}

/// The error after `from` was replaced by `to` in the valid scenario `good`.
pub fn error_in(good: &str, from: &str, to: &str) -> String {
    assert!(good.contains(from), "{from}");
    read(&good.replace(from, to)).expect_err("it is wrong").to_string()
}

/// Checks the error of each change of `good`: what is replaced, by what, and two parts of the
/// error.
#[track_caller]
pub fn assert_errors(good: &str, cases: &[(&str, &str, &str, &str)]) {
    for (from, to, place, text) in cases {
        let error = error_in(good, from, to);
        assert!(error.contains(place) && error.contains(text), "{error}");
    }
}
