//! Why a bearer cannot be made from its parameters.

use airpath_core::{Bytes, Span};
use airpath_link::queue::{Queue, QueueError};

use crate::conditions::SeriesError;

/// Parameters of a bearer that make no sense by themselves or together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
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
        /// What it may be.
        max: u64,
    },
    /// A time that does not fit into a run.
    #[error("this must be at most an hour")]
    TooLong {
        /// The key, dotted, below the bearer's.
        key: String,
    },
    /// In the queue of a radio channel.
    #[error("{source}")]
    Queue {
        /// The key, dotted, below the bearer's.
        key: String,
        /// What is wrong.
        source: QueueError,
    },
    /// In an uplink that is a plain link.
    #[error(transparent)]
    UplinkLink(airpath_link::ConfigError),
    /// No rate, or two.
    #[error("the channel carries `pdus_per_tti`, or what the `levels` say: give one of the two")]
    Rate,
    /// No level, or too many.
    #[error("there are {given} levels: give 1 to 255 rates")]
    LevelCount {
        /// How many there are.
        given: usize,
    },
    /// Not even one PDU fits into a TTI.
    #[error(
        "a TTI at level {level} carries {bytes} B, less than a PDU of {pdu} B: give a higher rate or a smaller `pdu`"
    )]
    LevelTooSlow {
        /// The level, from 1.
        level: usize,
        /// What a TTI carries.
        bytes: u64,
        /// The size of a PDU in bytes.
        pdu: u32,
    },
    /// More PDUs than can be counted.
    #[error("a TTI at level {level} carries more than 65535 PDUs: give a lower rate or a larger `pdu`")]
    LevelTooFast {
        /// The level, from 1.
        level: usize,
    },
    /// How often the levels come.
    #[error(
        "class `{class}` must say how often each of the {levels} levels comes: {levels} numbers, none negative, not all zero"
    )]
    Weights {
        /// The class.
        class: String,
        /// The number of levels.
        levels: usize,
    },
    /// A user without a class in a cell with classes.
    #[error("each mobile needs a class in this cell: one of {known}")]
    NoClass {
        /// The classes there are.
        known: String,
    },
    /// A class that is not there.
    #[error("there is no class `{class}` in this cell: its classes are {known}")]
    UnknownClass {
        /// The class.
        class: String,
        /// The classes there are.
        known: String,
    },
    /// A user with a class in a cell without classes.
    #[error(
        "a mobile has the class `{class}`, but there are no classes in this cell: remove it, or give the cell `downlink.levels`"
    )]
    NoLevels {
        /// The class.
        class: String,
    },
    /// A parameter that means nothing with the others.
    #[error("this only has a meaning with `{needs}`: remove one or add the other")]
    Foreign {
        /// The key, dotted, below the bearer's.
        key: String,
        /// What it belongs to.
        needs: &'static str,
    },
    /// Bursts of errors that are shorter than those that chance makes.
    #[error(
        "bursts are at least {shortest:.3} TTIs long on average at this `bler`: leave it out for errors by themselves"
    )]
    Burst {
        /// The key, dotted, below the bearer's.
        key: String,
        /// How long they are when each error is by itself.
        shortest: f64,
    },
    /// Polls that can leave both ends of the RLC waiting for each other.
    #[error(
        "what is lost last would never be noticed: set `poll_last`, `poll_last_repeat` and `timer_poll`, or `timer_poll_periodic`"
    )]
    Polls {
        /// The table, dotted, below the bearer's.
        key: String,
    },
    /// Conditions that are made in no way, or in two.
    #[error("radio conditions are made in one way: give one of `ci`, `table`, `recorded` and `cells`")]
    Conditions,
    /// Shadowing that changes over nothing, or over two things.
    #[error("shadowing changes over distance or over time: give `correlation_distance` or `correlation_time`")]
    Correlation,
    /// A value that is not in its range.
    #[error("this must be {expected}")]
    Range {
        /// The key, dotted, below the bearer's.
        key: String,
        /// What it may be.
        expected: &'static str,
    },
    /// How often the values of a table of conditions come.
    #[error("say how often each of the {values} values comes: {values} numbers, none negative, not all zero")]
    TableWeights {
        /// The number of values.
        values: usize,
    },
    /// A recorded series of conditions.
    #[error(transparent)]
    Series(SeriesError),
    /// A call that goes nowhere.
    #[error("a call has a leg: give it `radio`, `modem` or both")]
    NoLeg,
    /// Frame errors without a cause, or with two.
    #[error("frames are in error by `radio.frame_errors`, or by `conditions`: give one of the two")]
    FrameErrors,
    /// A timer that runs out before an answer can come.
    #[error("this must be longer than {round_trip}, the time that an answer takes")]
    TimerTooShort {
        /// The key, dotted, below the bearer's.
        key: String,
        /// How long an answer takes.
        round_trip: Span,
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
    /// A multislot class that is not modelled.
    #[error("there is no such multislot class here: give one of {known}")]
    MultislotClass {
        /// Those that there are.
        known: &'static str,
    },
    /// More timeslots up than a class allows, or none.
    #[error("a mobile of multislot class {class} sends in 1 to {max} timeslots")]
    UplinkSlots {
        /// The class.
        class: u8,
        /// What it allows.
        max: u8,
    },
    /// Link adaptation that makes no sense.
    #[error("{what}")]
    Adaptation {
        /// The key, dotted, below the bearer's.
        key: String,
        /// What to do.
        what: &'static str,
    },
    /// GPRS one way and EGPRS the other.
    #[error("both directions have schemes of one kind: `cs-…` for GPRS, `mcs-…` for EGPRS")]
    SchemesOfTwoKinds,
    /// An averaging time that no average fits in.
    #[error("this must be longer than a TTI")]
    AveragingTime {
        /// The key, dotted, below the bearer's.
        key: String,
    },
}

impl ConfigError {
    /// The key that is to blame, dotted, below the bearer's; empty where that is a mobile's class.
    pub fn field(&self) -> String {
        match self {
            Self::Zero { key }
            | Self::Range { key, .. }
            | Self::TooLarge { key, .. }
            | Self::TooLong { key }
            | Self::OutOfRange { key, .. }
            | Self::Adaptation { key, .. }
            | Self::Queue { key, .. }
            | Self::Foreign { key, .. }
            | Self::TimerTooShort { key, .. }
            | Self::AveragingTime { key }
            | Self::Burst { key, .. }
            | Self::Polls { key } => key.clone(),
            Self::UplinkLink(error) => format!("uplink.link.{}", error.field()),
            Self::NoLeg => "radio".to_owned(),
            Self::FrameErrors => "radio.frame_errors".to_owned(),
            Self::Rate => "downlink.pdus_per_tti".to_owned(),
            Self::LevelCount { .. } | Self::LevelTooSlow { .. } | Self::LevelTooFast { .. } => {
                "downlink.levels.rates".to_owned()
            }
            Self::Weights { class, .. } => format!("downlink.levels.classes.{class}"),
            Self::Correlation => "conditions.shadowing".to_owned(),
            Self::Conditions => "conditions".to_owned(),
            Self::TableWeights { .. } => "conditions.table.weights".to_owned(),
            Self::Series(_) => "conditions.recorded".to_owned(),
            Self::MultislotClass { .. } => "mobile.multislot_class".to_owned(),
            Self::UplinkSlots { .. } => "mobile.uplink_slots".to_owned(),
            Self::SchemesOfTwoKinds => "uplink.scheme".to_owned(),
            Self::NoClass { .. } | Self::UnknownClass { .. } | Self::NoLevels { .. } => String::new(),
        }
    }
}

/// Refuses nothing where something is needed.
pub(crate) fn above_zero(is: bool, table: &str, key: &str) -> Result<(), ConfigError> {
    if is { Ok(()) } else { Err(ConfigError::Zero { key: format!("{table}.{key}") }) }
}

/// Refuses times of which a few do not fit into what an [`Instant`](airpath_core::Instant) can be.
pub(crate) fn within_an_hour(span: Span, table: &str, key: &str) -> Result<(), ConfigError> {
    if span <= Span::from_secs(3600) { Ok(()) } else { Err(ConfigError::TooLong { key: format!("{table}.{key}") }) }
}

/// Refuses too much.
pub(crate) fn at_most(number: u64, max: u64, table: &str, key: &str) -> Result<(), ConfigError> {
    if number <= max { Ok(()) } else { Err(ConfigError::TooLarge { key: format!("{table}.{key}"), max }) }
}

/// The size of a PDU as the RLC wants it.
pub(crate) fn pdu_size(pdu: Bytes, table: &str) -> Result<u32, ConfigError> {
    above_zero(pdu > Bytes::ZERO, table, "pdu")?;
    let max = u64::from(u16::MAX);
    // No IP packet is larger.
    if pdu.get() > max { Err(ConfigError::TooLarge { key: format!("{table}.pdu"), max }) } else { Ok(pdu.get() as u32) }
}

/// The queue, which may be left out.
pub(crate) fn check_queue(queue: Option<&Queue>, table: &str) -> Result<Queue, ConfigError> {
    let queue = queue.cloned().unwrap_or_default();
    queue.check().map_err(|source| ConfigError::Queue { key: format!("{table}.queue"), source })?;
    Ok(queue)
}
