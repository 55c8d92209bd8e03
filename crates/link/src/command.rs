//! Commands to a running link: outages, handovers and new conditions, from a script or an operator.
//!
//! A [`BearerCommand`] reads and prints as one flat table, the same in a scenario and on the
//! control socket of a running link:
//!
//! ```
//! use airpath_core::Span;
//! use airpath_link::command::{BearerCommand, Buffer, Change};
//!
//! let command: BearerCommand = toml::from_str(r#"handover = "350 ms"
//! buffer = "discard""#)?;
//! assert_eq!(command.change, Change::Handover { gap: Span::from_millis(350), buffer: Buffer::Discard });
//! let wrong = toml::from_str::<BearerCommand>(r#"loss = 0.02
//! outage = "3 s""#);
//! assert!(wrong.is_err(), "one thing at a time");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The effect on packets inside is documented at each [`Change`].

use airpath_core::{Bitrate, ChangeEvent, ChangeKind, Context, Decibel, Direction, Instant, Probability, Span, UserId};
use serde::{Deserialize, Serialize};

use crate::delay::{Delay, DistributionError};
use crate::loss::{Loss, LossError};

/// The longest outage. The bound keeps times within their range.
pub const LONGEST_OUTAGE: Span = Span::from_secs(24 * 3600);

/// A change of a bearer: what, in which direction, for which user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Table", into = "Table")]
pub struct BearerCommand {
    /// The change.
    pub change: Change,
    /// The direction. `None`: both, or, for conditions of a radio channel, those with a radio
    /// channel.
    pub direction: Option<Direction>,
    /// The user. `None`: all. Not part of the written form, which identifies mobiles by name.
    pub user: Option<UserId>,
}

impl From<Change> for BearerCommand {
    /// The change for all users, in all directions.
    fn from(change: Change) -> Self {
        Self { change, direction: None, user: None }
    }
}

/// A change of conditions. New conditions apply to data sent from then on.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// `outage`: nothing is sent for this time. Waiting packets stay, and the queue keeps its
    /// limits. The transmission in progress is suspended and resumes afterwards; on a recorded link
    /// it restarts. A TTI of a radio channel that has begun is completed. Data sent before arrives.
    /// An outage within another ends with the later of the two.
    Outage(Span),
    /// `handover`: an outage, after which the buffer is kept or discarded.
    Handover {
        /// Duration of the interruption.
        gap: Span,
        /// Treatment of the unsent packets.
        buffer: Buffer,
    },
    /// `rate`: a new rate, also for the remainder of the packet in transmission. On a radio channel
    /// it is the rate of the RLC's payload, rounded down to whole PDUs per TTI.
    Rate(Bitrate),
    /// `loss`: a new loss process, for all packets that are not completely sent.
    Loss(Loss),
    /// `delay`: a new propagation delay, for all packets that are not completely sent. Without
    /// reordering, none overtakes packets sent with the old one.
    Delay(Delay),
    /// `bler`: a new block error probability of the first attempt, on a radio channel.
    Bler(Probability),
    /// `channels`: the number of PDUs per TTI, on a radio channel without C/I levels.
    Channels(u32),
    /// `level`: constantly this C/I level, from 1, on a radio channel with levels.
    Level(u8),
    /// `class`: the C/I levels of this class of users, on a radio channel with levels.
    Class(String),
    /// `ci`: constantly this carrier-to-interference ratio of the serving cell, on a bearer with
    /// radio conditions.
    CarrierToInterference(Decibel),
    /// `environment`: from now on the radio conditions of this environment, from its beginning,
    /// where a bearer has radio conditions.
    Environment(String),
}

/// Treatment of unsent packets at a handover, including the one in transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Buffer {
    /// The new cell sends them.
    #[default]
    Keep,
    /// They are dropped.
    Discard,
}

impl Change {
    /// The kind of the change.
    pub const fn kind(&self) -> ChangeKind {
        match self {
            Self::Outage(_) => ChangeKind::Outage,
            Self::Handover { .. } => ChangeKind::Handover,
            Self::Rate(_) => ChangeKind::Rate,
            Self::Loss(_) => ChangeKind::Loss,
            Self::Delay(_) => ChangeKind::Delay,
            Self::Bler(_) => ChangeKind::Bler,
            Self::Channels(_) => ChangeKind::Channels,
            Self::Level(_) => ChangeKind::Level,
            Self::Class(_) => ChangeKind::Class,
            Self::CarrierToInterference(_) => ChangeKind::CarrierToInterference,
            Self::Environment(_) => ChangeKind::Environment,
        }
    }

    /// Duration of the interruption, and the treatment of the buffer; `None` for other changes.
    pub const fn interruption(&self) -> Option<(Span, Buffer)> {
        match self {
            Self::Outage(span) => Some((*span, Buffer::Keep)),
            Self::Handover { gap, buffer } => Some((*gap, *buffer)),
            _ => None,
        }
    }

    /// Whether only a radio channel supports it.
    pub const fn needs_radio_channel(&self) -> bool {
        matches!(self, Self::Bler(_) | Self::Channels(_) | Self::Level(_) | Self::Class(_))
            || self.needs_radio_conditions()
    }

    /// Whether only a bearer with radio conditions supports it. They apply to both directions.
    pub const fn needs_radio_conditions(&self) -> bool {
        matches!(self, Self::CarrierToInterference(_) | Self::Environment(_))
    }

    /// Checks the parameters by themselves.
    pub fn check(&self) -> Result<(), CommandError> {
        match self {
            Self::Loss(loss) => loss.check()?,
            Self::Delay(delay) => delay.distribution.check()?,
            Self::Channels(0) => return Err(CommandError::Zero { key: "channels" }),
            _ => {}
        }
        match self.interruption() {
            Some((span, _)) if span > LONGEST_OUTAGE => Err(CommandError::TooLong { key: self.kind().name() }),
            _ => Ok(()),
        }
    }
}

impl BearerCommand {
    /// The directions of the command, given those that `can` apply it; an error if there is none,
    /// or if a named or implied direction cannot.
    pub fn directions(
        &self,
        can: impl Fn(Direction) -> Result<(), CommandError>,
    ) -> Result<Vec<Direction>, CommandError> {
        match self.direction {
            Some(direction) => can(direction).map(|()| vec![direction]),
            None if self.change.needs_radio_channel() => {
                let able: Vec<_> = Direction::BOTH.into_iter().filter(|direction| can(*direction).is_ok()).collect();
                if able.is_empty() { can(Direction::Down).map(|()| able) } else { Ok(able) }
            }
            None => Direction::BOTH.into_iter().map(|direction| can(direction).map(|()| direction)).collect(),
        }
    }

    /// Reports that the component of `cx` has applied it.
    pub fn report(&self, now: Instant, cx: &mut Context<'_>) {
        cx.change(now, || ChangeEvent {
            kind: self.change.kind(),
            direction: self.direction,
            user: self.user,
            duration: self.change.interruption().map(|(span, _)| span),
            change: self.to_json(),
        });
    }

    /// The written form, as a JSON object on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a command is text and numbers")
    }
}

/// Why a command is refused. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The bearer lacks what the command changes.
    #[error("{what} has no `{key}` to change: {help}")]
    Foreign {
        /// Key of the change.
        key: &'static str,
        /// The link or bearer.
        what: &'static str,
        /// What to do instead.
        help: &'static str,
    },
    /// A value of zero.
    #[error("`{key}` must be above zero")]
    Zero {
        /// Key of the value.
        key: &'static str,
    },
    /// An outage or gap above the limit.
    #[error("`{key}` must be at most 24 hours")]
    TooLong {
        /// Key of the value.
        key: &'static str,
    },
    /// Outside the capacity of a TTI.
    #[error("`{key}` must give 1 to {max} PDUs of {pdu} B in a TTI, not {pdus}")]
    Capacity {
        /// Key of the value.
        key: &'static str,
        /// Number of PDUs that it gives.
        pdus: u64,
        /// Maximum number of PDUs.
        max: u32,
        /// Size of a PDU in bytes.
        pdu: u32,
    },
    /// An invalid loss process.
    #[error(transparent)]
    Loss(#[from] LossError),
    /// An invalid delay.
    #[error(transparent)]
    Delay(#[from] DistributionError),
    /// An unknown user.
    #[error("there is no user {user}: the bearer has {users}")]
    NoSuchUser {
        /// The number of the user, from 0.
        user: u32,
        /// Number of users.
        users: usize,
    },
    /// An unknown level.
    #[error("there is no `level` {level}: the levels are 1 to {levels}")]
    NoSuchLevel {
        /// The level.
        level: u8,
        /// Number of levels.
        levels: usize,
    },
    /// An environment that is not there.
    #[error("there is no `environment` \"{environment}\": the environments are {known}")]
    NoSuchEnvironment {
        /// The environment.
        environment: String,
        /// Those that there are.
        known: String,
    },
    /// An environment that the bearer cannot have.
    #[error("this bearer cannot have the `environment` \"{environment}\": {error}")]
    Environment {
        /// The environment.
        environment: String,
        /// What is wrong.
        error: String,
    },
    /// An unknown class.
    #[error("there is no `class` \"{class}\": the classes are {known}")]
    NoSuchClass {
        /// The class.
        class: String,
        /// The known classes.
        known: String,
    },
}

impl CommandError {
    /// Key of the written form that causes the error.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Foreign { key, .. } | Self::Zero { key } | Self::TooLong { key } | Self::Capacity { key, .. } => key,
            Self::Loss(_) => "loss",
            Self::Delay(_) => "delay",
            Self::NoSuchUser { .. } => "mobile",
            Self::NoSuchLevel { .. } => "level",
            Self::NoSuchClass { .. } => "class",
            Self::NoSuchEnvironment { .. } | Self::Environment { .. } => "environment",
        }
    }
}

/// The written form of a command.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    #[serde(skip_serializing_if = "Option::is_none")]
    outage: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handover: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer: Option<Buffer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Bitrate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<Loss>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Delay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bler: Option<Probability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ci: Option<Decibel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<Direction>,
}

/// Why a table is not a command.
#[derive(Debug, thiserror::Error)]
enum TableError {
    #[error("no change given: use one of {KINDS}")]
    Nothing,
    #[error("`{0}` and `{1}` are two changes: give each a table of its own")]
    Two(&'static str, &'static str),
    #[error("`buffer` belongs to `handover`: remove it, or use `handover`")]
    Buffer,
    #[error(transparent)]
    Command(#[from] CommandError),
}

const KINDS: &str =
    "`outage`, `handover`, `rate`, `loss`, `delay`, `bler`, `channels`, `level`, `class`, `ci`, `environment`";

impl TryFrom<Table> for BearerCommand {
    type Error = TableError;

    fn try_from(table: Table) -> Result<Self, TableError> {
        let Table {
            outage,
            handover,
            buffer,
            rate,
            loss,
            delay,
            bler,
            channels,
            level,
            class,
            ci,
            environment,
            direction,
        } = table;
        let gap = |gap| Change::Handover { gap, buffer: buffer.unwrap_or_default() };
        let changes = [
            outage.map(Change::Outage),
            handover.map(gap),
            rate.map(Change::Rate),
            loss.map(Change::Loss),
            delay.map(Change::Delay),
            bler.map(Change::Bler),
            channels.map(Change::Channels),
            level.map(Change::Level),
            class.map(Change::Class),
            ci.map(Change::CarrierToInterference),
            environment.map(Change::Environment),
        ];
        let mut changes = changes.into_iter().flatten();
        let change = changes.next().ok_or(TableError::Nothing)?;
        if let Some(other) = changes.next() {
            return Err(TableError::Two(change.kind().name(), other.kind().name()));
        }
        if buffer.is_some() && handover.is_none() {
            return Err(TableError::Buffer);
        }
        change.check()?;
        Ok(Self { change, direction, user: None })
    }
}

impl From<BearerCommand> for Table {
    fn from(command: BearerCommand) -> Self {
        let mut table = Self { direction: command.direction, ..Self::default() };
        match command.change {
            Change::Outage(span) => table.outage = Some(span),
            Change::Handover { gap, buffer } => (table.handover, table.buffer) = (Some(gap), Some(buffer)),
            Change::Rate(rate) => table.rate = Some(rate),
            Change::Loss(loss) => table.loss = Some(loss),
            Change::Delay(delay) => table.delay = Some(delay),
            Change::Bler(bler) => table.bler = Some(bler),
            Change::Channels(channels) => table.channels = Some(channels),
            Change::Level(level) => table.level = Some(level),
            Change::Class(class) => table.class = Some(class),
            Change::CarrierToInterference(ci) => table.ci = Some(ci),
            Change::Environment(environment) => table.environment = Some(environment),
        }
        table
    }
}
