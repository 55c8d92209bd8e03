//! Checks what this host supports, with the next step for what it does not.
//!
//! A check that would change the process runs in a child process.

mod attempt;
mod congestion;
mod explicit;
mod namespaces;
mod outside;
mod ports;
mod programs;
mod router;
mod timing;

use airpath_scenario::LiveConfig;
use serde::Serialize;

use crate::namespace;

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It works.
    Ok,
    /// It works in part, or not well.
    Limited,
    /// It does not work.
    Missing,
}

/// The check of one requirement of links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The requirement.
    pub name: &'static str,
    /// The outcome.
    pub status: Status,
    /// The result of the check.
    pub finding: String,
    /// The consequence for links.
    pub meaning: String,
    /// The next step; none if it works.
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

/// Checks what a live proxy needs on this host.
pub fn examine_router(config: &LiveConfig) -> Vec<Check> {
    router::examine(config)
}

/// All findings about a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Whether links with a server in the testbed work.
    pub testbed: bool,
    /// Whether links to the host's network work, as far as checks on the host can show.
    pub outside: bool,
    /// The checks.
    pub checks: Vec<Check>,
}

/// Checks this host, which takes about half a second.
///
/// # Panics
/// If the process has more than one thread.
pub fn examine() -> Findings {
    let privileged = namespace::is_privileged();
    let network = namespaces::network();
    let processes = namespaces::processes();
    let has_networks = network.works();
    let ports = ports::both(has_networks);
    let testbed = has_networks && processes.works() && ports.iter().any(Check::works);
    let translation = outside::translation(has_networks);
    let forwarding = outside::forwarding();
    let outside = testbed && privileged && [&translation, &forwarding].into_iter().all(Check::works);
    let mut checks = vec![namespaces::privileges(privileged), namespaces::user(privileged), network, processes];
    checks.push(namespaces::names());
    checks.push(namespaces::parameters(has_networks));
    checks.extend(ports);
    checks.extend([translation, forwarding, outside::firewall()]);
    checks.extend([congestion::controls(), timing::cores(), timing::wakeups(), programs::found()]);
    Findings { testbed, outside, checks }
}
