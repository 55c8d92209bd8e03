//! Commands to a running link: outages, handovers and new conditions, from a script or by hand.
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
//! What becomes of packets that are inside is said at each [`Change`].

use airpath_core::{Bitrate, ChangeEvent, ChangeKind, Context, Decibel, Direction, Instant, Probability, Span, UserId};
use serde::{Deserialize, Serialize};

use crate::delay::{Delay, DistributionError};
use crate::loss::{Loss, LossError};

/// The longest outage: a run that stands still for longer has other troubles, and times stay within
/// their range.
pub const LONGEST_OUTAGE: Span = Span::from_secs(24 * 3600);

/// What is to change in a bearer, in which direction, for whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Table", into = "Table")]
pub struct BearerCommand {
    /// What is to change.
    pub change: Change,
    /// In which direction. `None`: in both, or, for what only a radio channel has, in those that
    /// have it.
    pub direction: Option<Direction>,
    /// For which user. `None`: for all. It is no part of the written form, which knows mobiles by
    /// their names.
    pub user: Option<UserId>,
}

impl From<Change> for BearerCommand {
    /// For all users, in all directions.
    fn from(change: Change) -> Self {
        Self { change, direction: None, user: None }
    }
}

/// What is to change. New conditions hold for what is sent from then on.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// `outage`: nothing is sent for so long. What waits goes on waiting, and the queue keeps its
    /// limits. The transmission that is under way stands still and goes on afterwards, but for that
    /// of a recorded link, which begins anew. The TTI of a radio channel that has begun is sent to
    /// its end. What was sent by then arrives. An outage within another ends with whichever ends
    /// later.
    Outage(Span),
    /// `handover`: as an outage, after which the buffer is still there, or was discarded.
    Handover {
        /// How long nothing is sent.
        gap: Span,
        /// What becomes of the packets that were not sent yet.
        buffer: Buffer,
    },
    /// `rate`: a new rate, also for the rest of the packet in transmission. On a radio channel it
    /// is that of the RLC's payload, rounded down to whole PDUs in a TTI.
    Rate(Bitrate),
    /// `loss`: a new loss process, for all packets that are not completely sent.
    Loss(Loss),
    /// `delay`: a new propagation delay, for all packets that are not completely sent. Where
    /// packets keep their order, none overtakes those that were sent with the old one.
    Delay(Delay),
    /// `bler`: a new probability of a block error at the first attempt, on a radio channel.
    Bler(Probability),
    /// `channels`: the number of PDUs that a TTI carries, on a radio channel without C/I levels.
    Channels(u32),
    /// `level`: from now on always this C/I level, from 1, where a radio channel has levels.
    Level(u8),
    /// `class`: from now on the C/I levels of this class of users, where a radio channel has
    /// levels.
    Class(String),
    /// `ci`: from now on always this carrier-to-interference ratio, in the cell that serves, where
    /// a bearer has radio conditions.
    CarrierToInterference(Decibel),
    /// `scene`: from now on the radio conditions of this scene, from its beginning, where a bearer
    /// has radio conditions.
    Scene(String),
}

/// What a handover does to the packets that were not sent yet, the one in transmission among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Buffer {
    /// The new cell sends them.
    #[default]
    Keep,
    /// They are lost.
    Discard,
}

impl Change {
    /// What kind of change it is.
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
            Self::Scene(_) => ChangeKind::Scene,
        }
    }

    /// How long nothing is sent because of it, and what becomes of the buffer; `None` if it is no
    /// interruption.
    pub const fn interruption(&self) -> Option<(Span, Buffer)> {
        match self {
            Self::Outage(span) => Some((*span, Buffer::Keep)),
            Self::Handover { gap, buffer } => Some((*gap, *buffer)),
            _ => None,
        }
    }

    /// Whether only a radio channel can have it.
    pub const fn is_of_radio(&self) -> bool {
        matches!(self, Self::Bler(_) | Self::Channels(_) | Self::Level(_) | Self::Class(_)) || self.is_of_conditions()
    }

    /// Whether only a bearer with radio conditions can have it. They are those of both directions.
    pub const fn is_of_conditions(&self) -> bool {
        matches!(self, Self::CarrierToInterference(_) | Self::Scene(_))
    }

    /// Whether its parameters make sense by themselves.
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
    /// The directions that it is for, given which it `can` be for; an error if that is none, or if
    /// one that it names or means cannot.
    pub fn directions(
        &self,
        can: impl Fn(Direction) -> Result<(), CommandError>,
    ) -> Result<Vec<Direction>, CommandError> {
        match self.direction {
            Some(direction) => can(direction).map(|()| vec![direction]),
            None if self.change.is_of_radio() => {
                let able: Vec<_> = Direction::BOTH.into_iter().filter(|direction| can(*direction).is_ok()).collect();
                if able.is_empty() { can(Direction::Down).map(|()| able) } else { Ok(able) }
            }
            None => Direction::BOTH.into_iter().map(|direction| can(direction).map(|()| direction)).collect(),
        }
    }

    /// Reports that the component of `cx` has done it.
    pub fn report(&self, now: Instant, cx: &mut Context<'_>) {
        cx.change(now, || ChangeEvent {
            kind: self.change.kind(),
            direction: self.direction,
            user: self.user,
            duration: self.change.interruption().map(|(span, _)| span),
            change: self.to_json(),
        });
    }

    /// Its written form, as a JSON object on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a command is text and numbers")
    }
}

/// Why a command cannot be carried out. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// It is about something that is not there.
    #[error("{what} has no `{key}` to change: {help}")]
    Foreign {
        /// What the command changes.
        key: &'static str,
        /// What lacks it.
        what: &'static str,
        /// What to do instead.
        help: &'static str,
    },
    /// Nothing of something that is needed.
    #[error("`{key}` must be above zero")]
    Zero {
        /// What is zero.
        key: &'static str,
    },
    /// An outage or gap without end.
    #[error("`{key}` must be at most 24 hours")]
    TooLong {
        /// What is too long.
        key: &'static str,
    },
    /// More or less than a TTI carries.
    #[error("`{key}` must give 1 to {max} PDUs of {pdu} B in a TTI, not {pdus}")]
    Capacity {
        /// What gives them.
        key: &'static str,
        /// How many it gives.
        pdus: u64,
        /// How many there may be.
        max: u32,
        /// The size of a PDU in bytes.
        pdu: u32,
    },
    /// A loss process that makes no sense.
    #[error(transparent)]
    Loss(#[from] LossError),
    /// A delay that makes no sense.
    #[error(transparent)]
    Delay(#[from] DistributionError),
    /// A user that is not there.
    #[error("there is no user {user}: the bearer has {users}")]
    NoSuchUser {
        /// The number of the user, from 0.
        user: u16,
        /// How many there are.
        users: usize,
    },
    /// A level that is not there.
    #[error("there is no `level` {level}: the levels are 1 to {levels}")]
    NoSuchLevel {
        /// The level.
        level: u8,
        /// How many there are.
        levels: usize,
    },
    /// A scene that is not there.
    #[error("there is no `scene` \"{scene}\": the scenes are {known}")]
    NoSuchScene {
        /// The scene.
        scene: String,
        /// Those that there are.
        known: String,
    },
    /// A scene that the bearer cannot have.
    #[error("this bearer cannot have the `scene` \"{scene}\": {error}")]
    Scene {
        /// The scene.
        scene: String,
        /// What is wrong.
        error: String,
    },
    /// A class that is not there.
    #[error("there is no `class` \"{class}\": the classes are {known}")]
    NoSuchClass {
        /// The class.
        class: String,
        /// Those that there are.
        known: String,
    },
}

impl CommandError {
    /// The key of the written form that is to blame.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Foreign { key, .. } | Self::Zero { key } | Self::TooLong { key } | Self::Capacity { key, .. } => key,
            Self::Loss(_) => "loss",
            Self::Delay(_) => "delay",
            Self::NoSuchUser { .. } => "mobile",
            Self::NoSuchLevel { .. } => "level",
            Self::NoSuchClass { .. } => "class",
            Self::NoSuchScene { .. } | Self::Scene { .. } => "scene",
        }
    }
}

/// A command as it is written.
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
    scene: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<Direction>,
}

/// Why a table is no command.
#[derive(Debug, thiserror::Error)]
enum TableError {
    #[error("nothing changes here: give one of {KINDS}")]
    Nothing,
    #[error("`{0}` and `{1}` are two changes: give each a table of its own")]
    Two(&'static str, &'static str),
    #[error("only a `handover` says what becomes of the `buffer`: remove it, or write `handover` instead")]
    Buffer,
    #[error(transparent)]
    Command(#[from] CommandError),
}

const KINDS: &str =
    "`outage`, `handover`, `rate`, `loss`, `delay`, `bler`, `channels`, `level`, `class`, `ci`, `scene`";

impl TryFrom<Table> for BearerCommand {
    type Error = TableError;

    fn try_from(table: Table) -> Result<Self, TableError> {
        let Table { outage, handover, buffer, rate, loss, delay, bler, channels, level, class, ci, scene, direction } =
            table;
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
            scene.map(Change::Scene),
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
            Change::Scene(scene) => table.scene = Some(scene),
        }
        table
    }
}
