//! Changes of conditions: the `[[change]]` tables of a scenario, and the same commands given while
//! a link runs.

use airpath_core::{Instant, Span, UserId};
use airpath_link::BearerCommand;
use serde::{Deserialize, Serialize};

use crate::bearer::Which;
use crate::document::{Node, join};
use crate::error::{Origin, ScenarioError, did_you_mean};
use crate::{Mobile, Scenario};

/// A `[[change]]`: what changes, where, and when.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedChange {
    /// When, from the beginning of the run. What happens at the same time happens after it.
    pub at: Span,
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    command: BearerCommand,
}

/// Where a change takes place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Place {
    /// In the radio access.
    #[default]
    Bearer,
    /// In the second bearer of the mobiles.
    SecondBearer,
    /// In the network between servers and cell.
    Fixed,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Common {
    to: Place,
    /// Name of the mobile or of a group of them; every mobile if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    mobile: Option<String>,
}

/// A bearer of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// The fixed network.
    Fixed,
    /// One of [`Cells::bearers`](crate::Cells::bearers).
    Cell(usize),
}

/// A command to one bearer.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The bearer.
    pub hop: Hop,
    /// What it is to do.
    pub command: BearerCommand,
}

/// An [`Order`] with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedOrder {
    /// When. What happens at the same time happens after it.
    pub at: Instant,
    /// What.
    pub order: Order,
}

const COMMON: [&str; 2] = ["to", "mobile"];
const COMMANDS: [&str; 13] = [
    "outage",
    "handover",
    "buffer",
    "rate",
    "loss",
    "delay",
    "bler",
    "channels",
    "level",
    "class",
    "ci",
    "environment",
    "direction",
];

impl PlannedChange {
    /// Reads a `[[change]]` table at the path `at`.
    pub(crate) fn read(mut node: Node, at: &str) -> Result<Self, ScenarioError> {
        check_keys(&node, at, &["at"])?;
        let time = node.take("at").ok_or_else(|| {
            ScenarioError::new("this key is missing", node.origin().clone(), join(at, "at"))
                .help("give its time, as in `at = \"10 s\"`")
        })?;
        let time: Span = time.read(&join(at, "at"))?;
        let common = node.split(&COMMON).read(at)?;
        Ok(Self { at: time, common, command: node.read(at)? })
    }

    /// The key that changes.
    pub(crate) const fn key(&self) -> &'static str {
        self.command.change.kind().name()
    }

    /// When, where and what: of two changes with the same target, the first would have no effect.
    pub(crate) fn target(&self) -> impl Ord {
        (self.at, self.common.to, self.common.mobile.as_deref(), self.command.direction, self.key())
    }

    /// The orders that carry it out, in the order of the mobiles.
    pub(crate) fn orders(&self, scenario: &Scenario, mobiles: &[Mobile]) -> Result<Vec<Order>, ScenarioError> {
        orders(&self.common, &self.command, scenario, mobiles)
    }
}

/// Reads one change from a JSON object, without a time: it is to happen now.
pub(crate) fn read_now(json: &str, scenario: &Scenario, mobiles: &[Mobile]) -> Result<Vec<Order>, ScenarioError> {
    let origin = Origin::Argument(json.trim().to_owned());
    let value: toml::Value = serde_json::from_str(json).map_err(|error| {
        ScenarioError::new(format!("this is not a change: {error}"), origin.clone(), "")
            .help("write a JSON object such as {\"outage\": \"3 s\"}")
    })?;
    if !value.is_table() {
        return Err(ScenarioError::new("this is not a change", origin, "")
            .help("write a JSON object such as {\"outage\": \"3 s\"}"));
    }
    let mut node = Node::from_value(value, &origin);
    check_keys(&node, "", &[])?;
    let common: Common = node.split(&COMMON).read("")?;
    let command: BearerCommand = node.read("")?;
    orders(&common, &command, scenario, mobiles)
}

/// Finds keys that are not known, before the parts of the table are read one by one.
fn check_keys(node: &Node, at: &str, more: &[&str]) -> Result<(), ScenarioError> {
    let known: Vec<&str> = more.iter().chain(&COMMON).chain(&COMMANDS).copied().collect();
    match node.keys().find(|key| !known.contains(key)) {
        Some(key) => Err(node.unknown_key(at, key, &known)),
        None => Ok(()),
    }
}

/// The orders that carry out a command; errors have no origin yet.
fn orders(
    common: &Common,
    command: &BearerCommand,
    scenario: &Scenario,
    mobiles: &[Mobile],
) -> Result<Vec<Order>, ScenarioError> {
    let order = |hop, user| Order { hop, command: BearerCommand { user, ..command.clone() } };
    let named = match &common.mobile {
        None => None,
        Some(_) if common.to == Place::Fixed => {
            return Err(ScenarioError::new("the fixed network is not one mobile's", Origin::Default, "mobile")
                .help("remove `mobile`, or `to = \"fixed\"`"));
        }
        Some(name) => {
            let users: Vec<usize> = (0..mobiles.len()).filter(|user| mobiles[*user].answers_to(name)).collect();
            if users.is_empty() {
                let known: Vec<&str> = mobiles.iter().map(|mobile| mobile.name.as_str()).collect();
                return Err(ScenarioError::new(format!("there is no mobile `{name}`"), Origin::Default, "mobile")
                    .help(did_you_mean(name, &known)));
            }
            Some(users)
        }
    };
    let bearer = match common.to {
        Place::Fixed => return Ok(vec![order(Hop::Fixed, None)]),
        Place::Bearer => &scenario.bearer,
        Place::SecondBearer => scenario.second_bearer.as_ref().ok_or_else(|| {
            ScenarioError::new("the mobiles have one bearer", Origin::Default, "to")
                .help("add the table [second_bearer], or use `to = \"bearer\"`")
        })?,
    };
    // Cells and users of the second bearer come after those of the first.
    let (first_cell, first_user) = match bearer.which() {
        Which::First => (0, 0),
        Which::Second => (scenario.bearer.cells(mobiles.len()), mobiles.len()),
    };
    Ok(match named {
        None if bearer.is_shared() => vec![order(Hop::Cell(first_cell), None)],
        Some(users) if bearer.is_shared() => users
            .into_iter()
            .map(|user| order(Hop::Cell(first_cell), Some(UserId::new((first_user + user) as u32))))
            .collect(),
        named => {
            let users = named.unwrap_or_else(|| (0..mobiles.len()).collect());
            users.into_iter().map(|user| order(Hop::Cell(first_cell + user), None)).collect()
        }
    })
}
