//! The `[middlebox]` table: the middlebox at the border of fixed network and radio access.

use airpath_core::{Bytes, Span};
use airpath_path::{AckFilter, ClearEcn, DelayedDupAcks, Eln, MTcp, Middlebox, Snoop};
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Span>,
    /// Bytes of packets that it stores at most for each flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Bytes>,
    /// After which silence of the mobile it stops the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeze_after: Option<Span>,
}

/// What a middlebox does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiddleboxKind {
    /// Absorbs superseded acknowledgements on the uplink: [`AckFilter`].
    AckFilter,
    /// Clears the ECN field: [`ClearEcn`].
    ClearEcn,
    /// Retransmits on the radio link: [`Snoop`].
    Snoop,
    /// Retransmits on the radio link and hides the time: [W-TCP](airpath_path::w_tcp).
    WTcp,
    /// Holds duplicate acknowledgements: [`DelayedDupAcks`].
    DelayedDupAcks,
    /// Stops the sender while the mobile is disconnected: [`MTcp`].
    MTcp,
    /// Marks losses of the radio link in acknowledgements: [`Eln`].
    Eln,
}

/// The longest time for which an acknowledgement is held: the least retransmission time-out (RFC
/// 6298 §2.4).
const LONGEST_HOLD: Span = Span::from_secs(1);

/// As many bytes as a window without scaling, and the headers.
const CACHE: Bytes = Bytes::new(100_000);

/// One packet of 1,500 bytes.
const LEAST_CACHE: Bytes = Bytes::new(1500);

impl MiddleboxConfig {
    pub(crate) fn read(node: Node) -> Result<Self, ScenarioError> {
        let config: Self = node.read("middlebox")?;
        let wrong = |key: &str, message: &str, help: &str| {
            let origin = node.origin_of(key).clone();
            Err(ScenarioError::new(message, origin, format!("middlebox.{key}")).help(help))
        };
        let holds = matches!(config.kind, MiddleboxKind::AckFilter | MiddleboxKind::DelayedDupAcks);
        match config.hold {
            Some(_) if !holds => return wrong("hold", "this kind holds no acknowledgements", "remove the key"),
            None if holds => return wrong("hold", "this kind needs a time", "for a start, write `hold = \"50 ms\"`"),
            Some(hold) if hold == Span::ZERO || hold > LONGEST_HOLD => {
                let help = "for a start, write `hold = \"50 ms\"`, or remove the table";
                return wrong("hold", "this must be longer than 0 s and at most 1 s", help);
            }
            _ => {}
        }
        match (config.freeze_after, config.kind) {
            (None, MiddleboxKind::MTcp) => {
                return wrong("freeze_after", "this kind needs a time", "for a start, write `freeze_after = \"5 s\"`");
            }
            (Some(Span::ZERO), MiddleboxKind::MTcp) => {
                return wrong("freeze_after", "this would stop every sender at once", "for a start, write \"5 s\"");
            }
            (None, _) | (_, MiddleboxKind::MTcp) => {}
            _ => return wrong("freeze_after", "this kind stops no sender", "remove the key"),
        }
        match config.cache {
            Some(_) if !matches!(config.kind, MiddleboxKind::Snoop | MiddleboxKind::WTcp) => {
                wrong("cache", "this kind stores no packets", "remove the key")
            }
            Some(cache) if cache < LEAST_CACHE => {
                wrong("cache", "this must be at least 1500 B, one packet", "the default is 100 kB")
            }
            _ => Ok(config),
        }
    }

    /// Builds the middlebox.
    pub fn build(&self) -> Box<dyn Middlebox> {
        let hold = self.hold.unwrap_or(Span::ZERO);
        let freeze_after = self.freeze_after.unwrap_or(Span::ZERO);
        let cache = self.cache.unwrap_or(CACHE);
        match self.kind {
            MiddleboxKind::AckFilter => Box::new(AckFilter::new(hold)),
            MiddleboxKind::ClearEcn => Box::<ClearEcn>::default(),
            MiddleboxKind::Snoop => Box::new(Snoop::new(cache)),
            MiddleboxKind::WTcp => Box::new(Snoop::w_tcp(cache)),
            MiddleboxKind::DelayedDupAcks => Box::new(DelayedDupAcks::new(hold)),
            MiddleboxKind::MTcp => Box::new(MTcp::new(freeze_after)),
            MiddleboxKind::Eln => Box::<Eln>::default(),
        }
    }
}
