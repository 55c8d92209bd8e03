//! Technology-free links: rate, delay, loss, policers, queues, recorded links, and compositions.
//!
//! | module | what |
//! | --- | --- |
//! | [`config`] | the configuration of one direction of a link, and its errors |
//! | [`pipe`] | a link from a configuration: policer, queue, transmitter, loss and delay in one |
//! | [`duplex`](mod@duplex) | a bearer of two links |
//! | [`chain`] | links in series |
//! | [`command`] | changes of conditions while a link runs |
//! | [`policer`], [`queue`], [`loss`], [`delay`], [`recorded`] | the mechanisms, each with its parameters |
//! | `testing` | checks of the contracts below (feature `testing`) |
//!
//! ```
//! use airpath_core::{Bitrate, Context, Instant, Packet, Seed, Span};
//! use airpath_link::{Config, Link, Pipe, queue::Queue};
//!
//! let config = Config {
//!     rate: Some(Bitrate::from_bps(10_000_000)),
//!     queue: Some(Queue::of_packets(100)),
//!     delay: Span::from_millis(110).into(),
//!     ..Config::default()
//! };
//! let mut pipe = Pipe::new(&config, Seed::new(1), "fixed/down")?;
//!
//! let mut lost = Vec::new();
//! let mut cx = Context::new(None, &mut lost, Default::default());
//! # use airpath_core::{Ecn, FlowId, Slot, UserId};
//! # let packet = Packet { id: 0, size: 1500, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) };
//! pipe.push(Instant::ZERO, packet, &mut cx);
//! let due = Instant::ZERO + Span::from_micros(1_200 + 110_000);
//! assert_eq!(pipe.next_wakeup(), Some(due));
//! assert_eq!(pipe.pop(due, &mut cx).map(|departure| departure.due), Some(due));
//! # Ok::<(), airpath_link::ConfigError>(())
//! ```
//!
//! Two contracts, for every link and bearer under both clocks. [`Link`] is one direction;
//! [`Bearer`] is both directions with one radio state. Their rules:
//!
//! - `now` is a parameter, and calls are monotone in it.
//! - A call first processes everything inside up to and including `now`, in time order, whether or
//!   not the caller polled at those times. A link that is polled late thus yields the same
//!   departures, in the same order, with the same `due`, as one polled on time.
//! - `pop` is repeated until `None`; departures are in the order of their `due`, never after `now`.
//! - `next_wakeup` is never later than the next departure that happens without further calls. It
//!   may be earlier, and is `None` when nothing can happen. Once `pop(now)` has returned `None`, it
//!   is after that `now`.
//! - Lost packets go to [`Context::drop_packet`], with the exact time of the loss. That includes a
//!   packet for which `push` returns [`Admission::Dropped`].
//! - `command` changes conditions for what is sent from `now` on, or changes nothing and returns
//!   why.

pub mod chain;
pub mod command;
pub mod config;
pub mod delay;
pub mod duplex;
pub mod loss;
pub mod pipe;
pub mod policer;
pub mod queue;
mod rate;
pub mod recorded;
#[cfg(feature = "testing")]
pub mod testing;
mod transmitter;

use airpath_core::{
    ConnectionTotals, Context, Direction, DropCause, Instant, Packet, PacketCounters, RadioTotals, UserId,
};

pub use chain::Chain;
pub use command::{BearerCommand, Change, CommandError};
pub use config::{Config, ConfigError, Plan};
pub use duplex::{Duplex, duplex};
pub use pipe::Pipe;
pub use recorded::{Recording, RecordingError};

/// Result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The packet was accepted.
    Queued,
    /// The packet was dropped immediately.
    Dropped(DropCause),
}

/// A packet that left a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The exact time of departure.
    pub due: Instant,
    /// The packet.
    pub packet: Packet,
}

/// A link in one direction.
pub trait Link {
    /// Pushes a packet into the link.
    fn push(&mut self, now: Instant, packet: Packet, cx: &mut Context<'_>) -> Admission;
    /// The next packet that left at or before `now`.
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<Departure>;
    /// Time of the next call of `pop`.
    fn next_wakeup(&self) -> Option<Instant>;
    /// Counters of packets offered, delivered, dropped and inside.
    fn counters(&self) -> PacketCounters;
    /// Whether the link supports this change.
    fn check(&self, change: &Change) -> Result<(), CommandError>;
    /// Changes its conditions.
    ///
    /// # Errors
    /// Those of [`Link::check`]; then nothing has changed.
    fn command(&mut self, now: Instant, change: &Change, cx: &mut Context<'_>) -> Result<(), CommandError>;
}

/// A link in both directions with one state: the bearers of `airpath-radio`, or two links.
pub trait Bearer {
    /// Pushes a packet of the user [`Packet::user`] into the bearer.
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission;
    /// The next packet that left at or before `now`, in either direction.
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)>;
    /// Time of the next call of `pop`.
    fn next_wakeup(&self) -> Option<Instant>;
    /// Counters of packets offered, delivered, dropped and inside, in one direction.
    fn counters(&self, direction: Direction) -> PacketCounters;
    /// Transmissions of `user` on the air in one direction; `None` without radio, or without such a
    /// user. Users are numbered from 0: `None` for one means `None` for all after it.
    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        let _ = (direction, user);
        None
    }
    /// What happened to the radio connection of `user`; `None` as of [`Bearer::radio_totals`].
    fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        let _ = user;
        None
    }
    /// Whether it calls [`Context::segment`]: real packets are parsed only if some hop does.
    fn inspects_segments(&self) -> bool {
        false
    }
    /// Whether it calls [`Context::headers`].
    fn inspects_headers(&self) -> bool {
        false
    }
    /// Counters beside those of packets, by name.
    fn statistics(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    /// The run ends at `now`: reports states of the radio log that have ended by themselves.
    fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        let _ = (now, cx);
    }
    /// Whether the bearer supports this command.
    fn check(&self, command: &BearerCommand) -> Result<(), CommandError>;
    /// Changes its conditions, and reports that as an event.
    ///
    /// # Errors
    /// Those of [`Bearer::check`]; then nothing has changed.
    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError>;
}

impl<L: Link + ?Sized> Link for Box<L> {
    fn push(&mut self, now: Instant, packet: Packet, cx: &mut Context<'_>) -> Admission {
        (**self).push(now, packet, cx)
    }
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<Departure> {
        (**self).pop(now, cx)
    }
    fn next_wakeup(&self) -> Option<Instant> {
        (**self).next_wakeup()
    }
    fn counters(&self) -> PacketCounters {
        (**self).counters()
    }
    fn check(&self, change: &Change) -> Result<(), CommandError> {
        (**self).check(change)
    }
    fn command(&mut self, now: Instant, change: &Change, cx: &mut Context<'_>) -> Result<(), CommandError> {
        (**self).command(now, change, cx)
    }
}

impl<B: Bearer + ?Sized> Bearer for Box<B> {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        (**self).push(now, direction, packet, cx)
    }
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        (**self).pop(now, cx)
    }
    fn next_wakeup(&self) -> Option<Instant> {
        (**self).next_wakeup()
    }
    fn counters(&self, direction: Direction) -> PacketCounters {
        (**self).counters(direction)
    }
    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        (**self).radio_totals(direction, user)
    }
    fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        (**self).connection_totals(user)
    }
    fn inspects_segments(&self) -> bool {
        (**self).inspects_segments()
    }
    fn inspects_headers(&self) -> bool {
        (**self).inspects_headers()
    }
    fn statistics(&self) -> Vec<(&'static str, u64)> {
        (**self).statistics()
    }
    fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        (**self).end(now, cx);
    }
    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        (**self).check(command)
    }
    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        (**self).command(now, command, cx)
    }
}
