//! Why a call cannot be made from its parameters.

use airpath_core::Span;

use crate::conditions;
use crate::error::{ModelError, ValueError};

/// Parameters of a call that make no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A single value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// In the radio conditions.
    #[error(transparent)]
    Conditions(#[from] conditions::ConfigError),
    /// A call over no link.
    #[error("a call goes over a radio link, a fixed link or both: give it `radio`, `modem` or both")]
    NoLink,
    /// Frame errors without a cause, or with two.
    #[error("frames are in error by `radio.frame_errors`, or by `conditions`: give one of the two")]
    FrameErrors,
    /// A timer that expires before an answer can arrive.
    #[error("this must be longer than {round_trip}, the time that an answer takes")]
    TimerTooShort {
        /// The key, dotted, below the bearer's.
        key: String,
        /// How long an answer takes.
        round_trip: Span,
    },
}

impl ModelError for ConfigError {
    fn field(&self) -> String {
        match self {
            Self::Value(error) => error.field(),
            Self::Conditions(error) => error.field(),
            Self::NoLink => "radio".to_owned(),
            Self::FrameErrors => "radio.frame_errors".to_owned(),
            Self::TimerTooShort { key, .. } => key.clone(),
        }
    }
}
