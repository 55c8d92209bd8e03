//! The `[middlebox]` table: the middlebox at the border of fixed network and radio access.

use airpath_core::Span;
use airpath_path::{AckFilter, Middlebox};
use serde::{Deserialize, Serialize};

use crate::document::Node;
use crate::error::ScenarioError;

/// A middlebox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MiddleboxConfig {
    /// What it does.
    pub kind: MiddleboxKind,
    /// How long it holds each acknowledgement.
    pub hold: Span,
}

/// What a middlebox does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiddleboxKind {
    /// Absorbs superseded acknowledgements on the uplink: [`AckFilter`].
    AckFilter,
}

/// The longest time for which an acknowledgement is held: the least retransmission time-out (RFC
/// 6298 §2.4).
const LONGEST_HOLD: Span = Span::from_secs(1);

impl MiddleboxConfig {
    pub(crate) fn read(node: Node) -> Result<Self, ScenarioError> {
        let origin = node.origin_of("hold").clone();
        let config: Self = node.read("middlebox")?;
        if config.hold == Span::ZERO || config.hold > LONGEST_HOLD {
            return Err(ScenarioError::new("this must be longer than 0 s and at most 1 s", origin, "middlebox.hold")
                .help("for a start, write `hold = \"50 ms\"`, or remove the table"));
        }
        Ok(config)
    }

    /// Builds the middlebox.
    pub fn build(&self) -> Box<dyn Middlebox> {
        match self.kind {
            MiddleboxKind::AckFilter => Box::new(AckFilter::new(self.hold)),
        }
    }
}
