//! TCP settings: a profile, and what differs from it.

use std::sync::Arc;

use airpath_tcp::{Config, Profile};
use serde::Serialize;

use crate::document::{Node, join};
use crate::error::{Origin, ScenarioError, did_you_mean};

/// The profile of a scenario that names none.
const DEFAULT_PROFILE: Profile = Profile::Linux6;

/// All TCP settings of a flow, and the profile that they began from.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// The profile.
    pub profile: Profile,
    /// Every setting that is in force; shared by the connections.
    #[serde(flatten)]
    pub config: Arc<Config>,
}

impl Settings {
    /// Reads a `tcp` table over the scenario's `defaults`. One that names a profile begins from
    /// that profile afresh.
    pub(crate) fn read(own: Option<Node>, at: &str, defaults: &Node) -> Result<Self, ScenarioError> {
        let mut node = written_out(defaults.clone());
        let mut field = "tcp";
        if let Some(own) = own {
            field = at;
            let own = written_out(own);
            if own.get("profile").is_some() {
                node = own;
            } else {
                node.overlay(own);
            }
        }
        let profile = match node.take("profile") {
            None => DEFAULT_PROFILE,
            Some(named) => {
                let name: String = named.read(&join(field, "profile"))?;
                name.parse().map_err(|_| {
                    let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name()).collect();
                    ScenarioError::new(
                        format!("there is no TCP profile `{name}`"),
                        named.origin().clone(),
                        join(field, "profile"),
                    )
                    .help(did_you_mean(&name, &names))
                })?
            }
        };
        let settings = toml::Value::try_from(profile.config()).expect("settings of TCP are a table");
        let mut base = Node::from_value(settings, &Origin::Default);
        base.overlay(node);
        let config: Config = base.read(field)?;
        config.check().map_err(|error| {
            let origin = base.origin_of(error.field).clone();
            ScenarioError::new(error.to_string(), origin, join(field, error.field))
        })?;
        Ok(Self { profile, config: Arc::new(config) })
    }
}

/// Rejects settings of the command line that no flow has, because each names a profile.
pub(crate) fn refuse_unused(defaults: &Node, flows: &[Node]) -> Result<(), ScenarioError> {
    let names_profile = |flow: &Node| {
        let tcp = flow.get("tcp").map(|tcp| written_out(tcp.clone()));
        tcp.is_some_and(|tcp| tcp.get("profile").is_some())
    };
    if flows.is_empty() || !flows.iter().all(names_profile) {
        return Ok(());
    }
    let Some((path, origin)) = defaults.first_argument("tcp") else { return Ok(()) };
    let message = "no flow has this setting, because each flow has a profile of its own";
    let help = format!("write `flow.{path}`, which sets it for all flows, or `flow.NAME.{path}`");
    Err(ScenarioError::new(message, origin, path).help(help))
}

/// Writes out the short forms `tcp = "linux-6"` (the profile) and `tcp.congestion = "cubic"` (the
/// algorithm), also as `tcp.cc`, the option of iperf3 and of `ss`.
fn written_out(tcp: Node) -> Node {
    let mut tcp = tcp.or_table_with("profile");
    if tcp.get("congestion").is_none()
        && let Some(congestion) = tcp.take("cc")
    {
        tcp.insert("congestion", congestion);
    }
    if let Some(congestion) = tcp.take("congestion") {
        tcp.insert("congestion", congestion.or_table_with("algorithm"));
    }
    tcp
}
