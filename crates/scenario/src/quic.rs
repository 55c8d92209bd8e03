//! The transport of a flow, and the settings of QUIC.

use std::sync::Arc;

use airpath_quic::{Config, Controller};
use serde::Serialize;

use crate::document::{Node, join};
use crate::error::{Origin, ScenarioError, did_you_mean};

/// QUIC by quinn-proto.
pub const QUINN: &str = airpath_quic::NAME;

/// TCP of this project.
pub(crate) const TCP: &str = "tcp";

/// The transports of a flow.
const TRANSPORTS: [&str; 2] = [TCP, QUINN];

/// All settings of QUIC of a flow.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Settings {
    /// Every setting that is in force; shared by the connections.
    pub config: Arc<Config>,
}

impl Settings {
    /// Reads a `quic` table over the scenario's `defaults`.
    pub(crate) fn read(own: Option<Node>, at: &str, defaults: &Node) -> Result<Self, ScenarioError> {
        let field = if own.is_some() { at } else { "quic" };
        let settings = toml::Value::try_from(Config::default()).expect("settings of QUIC are a table");
        let mut base = Node::from_value(settings, &Origin::Default);
        base.overlay(defaults.clone());
        if let Some(own) = own {
            base.overlay(own);
        }
        if let Some(name) = base.get("congestion").and_then(Node::as_str)
            && let Err(error) = name.parse::<Controller>()
        {
            let origin = base.origin_of("congestion").clone();
            let help = did_you_mean(name, &Controller::ALL.map(Controller::name));
            return Err(ScenarioError::new(error.to_string(), origin, join(field, "congestion")).help(help));
        }
        let config: Config = base.read(field)?;
        config.check().map_err(|error| {
            let origin = base.origin_of(error.field).clone();
            ScenarioError::new(error.to_string(), origin, join(field, error.field))
        })?;
        Ok(Self { config: Arc::new(config) })
    }
}

/// Takes `transport` and `quic` out of the flow at the path `at`. Returns the settings of QUIC,
/// over the scenario's `defaults`; `None` for TCP. `usual` is the transport of flows without the
/// key.
pub(crate) fn take(
    node: &mut Node,
    at: &str,
    defaults: &Node,
    usual: &'static str,
) -> Result<Option<Settings>, ScenarioError> {
    let own = node.take("quic");
    let transport = node.take("transport");
    let name = transport.as_ref().map(|node| node.read::<String>(&join(at, "transport"))).transpose()?;
    match (name.as_deref().unwrap_or(usual), transport) {
        (TCP, _) => match own {
            None => Ok(None),
            Some(own) => {
                let message = "the flow does not use QUIC";
                let error = ScenarioError::new(message, own.origin().clone(), join(at, "quic"));
                Err(error.help(format!("add `transport = \"{QUINN}\"`, or remove the table")))
            }
        },
        (QUINN, _) => {
            for key in ["tcp", "freeze"] {
                if let Some(given) = node.get(key) {
                    let message = format!("a flow with `transport = \"{QUINN}\"` has no TCP");
                    let error = ScenarioError::new(message, given.origin().clone(), join(at, key));
                    return Err(error.help("remove the key; `quic` has the settings of QUIC"));
                }
            }
            Settings::read(own, &join(at, "quic"), defaults).map(Some)
        }
        (name, transport) => {
            let origin = transport.map_or(Origin::Default, |node| node.origin().clone());
            let error = ScenarioError::new(format!("there is no transport `{name}`"), origin, join(at, "transport"));
            Err(error.help(did_you_mean(name, &TRANSPORTS)))
        }
    }
}
