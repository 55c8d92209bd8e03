//! The `[steering]` table: which of the two bearers of a mobile carries a flow.

use airpath_core::Span;
use serde::{Deserialize, Serialize};

use crate::bearer::Which;
use crate::document::Node;
use crate::error::ScenarioError;

/// Steering in front of the two bearers of each mobile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteeringConfig {
    /// How a bearer is chosen.
    pub mode: Mode,
    /// Whether a flow keeps its addresses when it changes its bearer.
    #[serde(default)]
    pub addresses: Addresses,
    /// `active-standby`: the active bearer; `priority-based`: that of high priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<Which>,
    /// `load-balancing`: share of the flows that the first bearer carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// `priority-based`: the round trip above which the preferred bearer is congested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_round_trip: Option<Span>,
    /// Time from one probe of a bearer to the next.
    #[serde(default = "interval")]
    pub probe_interval: Span,
    /// How long a probe is unanswered when its bearer is taken as unavailable.
    #[serde(default = "timeout")]
    pub probe_timeout: Span,
}

/// Steering modes of ATSSS (TS 23.501 §5.32.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// All flows are on the preferred bearer while that is available, and else on the other one.
    ActiveStandby,
    /// A new flow is on the bearer with the smaller round trip.
    SmallestDelay,
    /// New flows are divided between the bearers.
    LoadBalancing,
    /// A new flow is on the preferred bearer, unless that is congested.
    PriorityBased,
}

/// The addresses of a mobile with two bearers, as its flows see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Addresses {
    /// One address on both bearers, as with ATSSS-LL: every flow can change its bearer.
    #[default]
    One,
    /// One on each bearer: a flow over QUIC migrates, and all others stay where they began.
    Two,
}

const fn interval() -> Span {
    Span::from_millis(100)
}

const fn timeout() -> Span {
    Span::from_millis(500)
}

/// Probes of a bearer in a run.
const MOST_PROBES: u64 = 10_000_000;

impl SteeringConfig {
    /// Reads the table, of a scenario of this `duration`.
    pub(crate) fn read(node: &Node, duration: Span) -> Result<Self, ScenarioError> {
        let config: Self = node.read("steering")?;
        let wrong = |key: &str, message: String, help: &str| {
            let origin = node.origin_of(key).clone();
            Err(ScenarioError::new(message, origin, format!("steering.{key}")).help(help))
        };
        let has_preferred = matches!(config.mode, Mode::ActiveStandby | Mode::PriorityBased);
        let belongs = [
            ("preferred", config.preferred.is_some(), has_preferred),
            ("share", config.share.is_some(), config.mode == Mode::LoadBalancing),
            ("max_round_trip", config.max_round_trip.is_some(), config.mode == Mode::PriorityBased),
        ];
        if let Some((key, ..)) = belongs.into_iter().find(|(_, is_given, is_known)| *is_given && !is_known) {
            return wrong(key, "this mode has no such key".to_owned(), "remove it, or change `mode`");
        }
        if config.mode == Mode::PriorityBased && config.max_round_trip.is_none() {
            let help = "for a start, write `max_round_trip = \"100 ms\"`";
            return wrong("max_round_trip", "this mode needs the round trip of congestion".to_owned(), help);
        }
        if config.share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return wrong("share", "this must be 0 to 1".to_owned(), "without the key, both bearers get the same");
        }
        if config.probe_interval.is_zero() || duration.as_nanos() / config.probe_interval.as_nanos() > MOST_PROBES {
            let message = format!("this must be above zero, and at most {MOST_PROBES} times in `duration`");
            return wrong("probe_interval", message, "the default is 100 ms");
        }
        if config.probe_timeout < config.probe_interval || config.probe_timeout > Span::from_secs(3600) {
            let message = "this must be at least `probe_interval`, and at most an hour".to_owned();
            return wrong("probe_timeout", message, "the default is 500 ms");
        }
        Ok(config)
    }

    /// The bearer that the mode prefers.
    pub fn preferred(&self) -> Which {
        self.preferred.unwrap_or_default()
    }
}
