//! Why a bearer cannot be made from its parameters: what the errors of all models have in common.

use std::error::Error;

use airpath_core::{Bytes, Span};
use airpath_link::queue::{Queue, QueueError};

use crate::enumeration::Enumeration;

/// Why a bearer of some model cannot be made. Each model has a type of its own for it.
pub trait ModelError: Error + Send + Sync + 'static {
    /// The offending key, dotted, below the bearer's; empty where that is a mobile's class.
    fn field(&self) -> String;
}

/// A value that no bearer can have.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// A length or size of nothing.
    #[error("this must be above zero")]
    Zero {
        /// The key, dotted, below the bearer's.
        key: String,
    },
    /// A size that does not fit.
    #[error("this must be at most {max}")]
    TooLarge {
        /// The key, dotted, below the bearer's.
        key: String,
        /// The largest that fits.
        max: u64,
    },
    /// A time that does not fit into a run.
    #[error("this must be at most an hour")]
    TooLong {
        /// The key, dotted, below the bearer's.
        key: String,
    },
    /// A number outside its range.
    #[error("this must be {min} to {max}")]
    OutOfRange {
        /// The key, dotted, below the bearer's.
        key: String,
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A number outside the range that a standard gives.
    #[error("this must be {min} to {max} ({clause})")]
    OutsideStandard {
        /// The key, dotted, below the bearer's.
        key: String,
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// The clause, and what else the range follows from.
        clause: String,
    },
    /// A value that an enumeration of a standard does not have.
    #[error("this must be {values}")]
    NotEnumerated {
        /// The key, dotted, below the bearer's.
        key: String,
        /// The values that are accepted.
        values: &'static Enumeration,
    },
    /// A value that is not what is expected.
    #[error("this must be {expected}")]
    Range {
        /// The key, dotted, below the bearer's.
        key: String,
        /// The values that are accepted.
        expected: &'static str,
    },
    /// A key that has no meaning without another.
    #[error("this only has a meaning with `{needs}`: remove one or add the other")]
    Needs {
        /// The key, dotted, below the bearer's.
        key: String,
        /// The other.
        needs: &'static str,
    },
    /// In the queue of a radio channel.
    #[error("{source}")]
    Queue {
        /// The key, dotted, below the bearer's.
        key: String,
        /// What is wrong.
        source: QueueError,
    },
}

impl ModelError for ValueError {
    fn field(&self) -> String {
        match self {
            Self::Zero { key }
            | Self::TooLarge { key, .. }
            | Self::TooLong { key }
            | Self::OutOfRange { key, .. }
            | Self::OutsideStandard { key, .. }
            | Self::NotEnumerated { key, .. }
            | Self::Range { key, .. }
            | Self::Needs { key, .. }
            | Self::Queue { key, .. } => key.clone(),
        }
    }
}

/// Refuses a number of `table.key` outside a range that is given by the clause `source`.
pub(crate) fn between(
    number: u64,
    [min, max]: [u64; 2],
    table: &str,
    key: &str,
    source: impl Into<String>,
) -> Result<(), ValueError> {
    if (min..=max).contains(&number) {
        return Ok(());
    }
    Err(ValueError::OutsideStandard { key: format!("{table}.{key}"), min, max, clause: source.into() })
}

impl Enumeration {
    /// Refuses a number of `table.key` that it does not have.
    pub(crate) fn check(&'static self, number: u64, table: &str, key: &str) -> Result<(), ValueError> {
        self.refuse(self.has(number), table, key)
    }

    /// Refuses a time that it does not have.
    pub(crate) fn check_span(&'static self, span: Span, table: &str, key: &str) -> Result<(), ValueError> {
        self.refuse(self.has_span(span), table, key)
    }

    /// Refuses a size that it does not have.
    pub(crate) fn check_bytes(&'static self, bytes: Bytes, table: &str, key: &str) -> Result<(), ValueError> {
        self.refuse(self.has_bytes(bytes), table, key)
    }

    fn refuse(&'static self, has: bool, table: &str, key: &str) -> Result<(), ValueError> {
        if has { Ok(()) } else { Err(ValueError::NotEnumerated { key: format!("{table}.{key}"), values: self }) }
    }
}

/// A value of `table.key` that is not one of those `expected`.
pub(crate) fn range(table: &str, key: &str, expected: &'static str) -> ValueError {
    ValueError::Range { key: format!("{table}.{key}"), expected }
}

/// Refuses zero: `is` is true if the value of `table.key` is above it.
pub(crate) fn above_zero(is: bool, table: &str, key: &str) -> Result<(), ValueError> {
    if is { Ok(()) } else { Err(ValueError::Zero { key: format!("{table}.{key}") }) }
}

/// Refuses times whose sum could exceed the range of an [`Instant`](airpath_core::Instant) can be.
pub(crate) fn within_an_hour(span: Span, table: &str, key: &str) -> Result<(), ValueError> {
    if span <= Span::from_secs(3600) { Ok(()) } else { Err(ValueError::TooLong { key: format!("{table}.{key}") }) }
}

/// Refuses a number above `max`.
pub(crate) fn at_most(number: u64, max: u64, table: &str, key: &str) -> Result<(), ValueError> {
    if number <= max { Ok(()) } else { Err(ValueError::TooLarge { key: format!("{table}.{key}"), max }) }
}

/// The size of a PDU in bytes, as the RLC has it. No IP packet is larger than its limit.
pub(crate) fn pdu_size(pdu: Bytes, table: &str) -> Result<u32, ValueError> {
    above_zero(pdu > Bytes::ZERO, table, "pdu")?;
    at_most(pdu.get(), u16::MAX.into(), table, "pdu").map(|()| pdu.get() as u32)
}

/// The queue of `table`; one without limits if it is left out.
pub(crate) fn check_queue(queue: Option<&Queue>, table: &str) -> Result<Queue, ValueError> {
    let queue = queue.cloned().unwrap_or_default();
    queue.check().map_err(|source| ValueError::Queue { key: format!("{table}.queue"), source })?;
    Ok(queue)
}
