//! What this host allows, and what to do about what it does not.
//!
//! Whatever would change the process is tried in a child that ends right after it.

mod attempt;
mod congestion;
mod namespaces;
mod outside;
mod ports;
mod programs;
mod timing;

use serde::Serialize;

use crate::namespace;

/// How it stands with one thing that links need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All is well.
    Ok,
    /// Something works less well, or only a part of it.
    Limited,
    /// It does not work.
    Missing,
}

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The thing.
    pub name: &'static str,
    /// How it stands.
    pub status: Status,
    /// What was found.
    pub finding: String,
    /// What that means for links.
    pub meaning: String,
    /// What to do about it; nothing if all is well.
    pub next_step: Option<String>,
}

impl Check {
    fn ok(name: &'static str, finding: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, finding: finding.into(), meaning: meaning.into(), next_step: None }
    }

    fn limited(
        name: &'static str,
        finding: impl Into<String>,
        meaning: impl Into<String>,
        next_step: impl Into<String>,
    ) -> Self {
        let next_step = Some(next_step.into());
        Self { name, status: Status::Limited, finding: finding.into(), meaning: meaning.into(), next_step }
    }

    fn missing(
        name: &'static str,
        finding: impl Into<String>,
        meaning: impl Into<String>,
        next_step: impl Into<String>,
    ) -> Self {
        Self { status: Status::Missing, ..Self::limited(name, finding, meaning, next_step) }
    }

    fn works(&self) -> bool {
        self.status != Status::Missing
    }
}

/// What was found about a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Whether links with both ends inside work.
    pub laboratory: bool,
    /// Whether links to the outside work, as far as the host itself can tell.
    pub outside: bool,
    /// One by one.
    pub checks: Vec<Check>,
}

/// Looks at this host, which takes about half a second.
///
/// # Panics
/// If the process has more than one thread.
pub fn examine() -> Findings {
    let privileged = namespace::is_privileged();
    let network = namespaces::network();
    let processes = namespaces::processes();
    let has_networks = network.works();
    let ports = ports::both(has_networks);
    let laboratory = has_networks && processes.works() && ports.iter().any(Check::works);
    let translation = outside::translation(has_networks);
    let forwarding = outside::forwarding();
    let outside = laboratory && privileged && [&translation, &forwarding].into_iter().all(Check::works);
    let mut checks = vec![namespaces::privileges(privileged), namespaces::user(privileged), network, processes];
    checks.push(namespaces::names());
    checks.push(namespaces::parameters(has_networks));
    checks.extend(ports);
    checks.extend([translation, forwarding, outside::firewall()]);
    checks.extend([congestion::controls(), timing::cores(), timing::wakeups(), programs::found()]);
    Findings { laboratory, outside, checks }
}
