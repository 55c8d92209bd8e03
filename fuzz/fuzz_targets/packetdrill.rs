//! Scripts of packetdrill: reading them, and running those that can run in virtual time.

#![no_main]

use airpath_packetdrill::{Outcome, run_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let lines = text.lines().count() as u32 + 1;
    match run_text(text, None) {
        Outcome::Passed => {}
        Outcome::Failed(finding) | Outcome::NotApplicable(finding) => assert!((1..=lines).contains(&finding.line)),
        Outcome::Invalid(error) => assert!((1..=lines).contains(&error.at.line)),
    }
});
