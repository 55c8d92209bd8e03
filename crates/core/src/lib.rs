//! The vocabulary of airpath, defined once for all crates. No I/O, no clock, no global state.
//!
//! | module | what |
//! | --- | --- |
//! | [`time`] | [`Instant`] and [`Span`], integer nanoseconds, in virtual and real time alike |
//! | [`units`] | [`Bitrate`], [`Bytes`], [`Probability`], [`Decibel`], [`Length`], [`Speed`], [`Frequency`]: they parse, print and refuse nonsense |
//! | [`rng`] | generator streams, one a component, by name |
//! | [`range_set`] | [`RangeSet`](range_set::RangeSet): numbers as ranges |
//! | [`packet`] | the [`Packet`] that links and bearers carry |
//! | [`event`] | the events of the log |
//! | [`state`] | the names of the states of a radio connection |
//! | [`sink`] | the receiver of events, and the context of each call |
//! | [`counters`] | packet counters with a conservation law |
//! | [`tagged`] | tables in which one key selects the others |
//!
//! ```
//! use airpath_core::{Bitrate, Bytes, Span};
//! let rate: Bitrate = "384 kbit/s".parse()?;
//! assert_eq!(rate.time_for(Bytes::new(1500)), "31.25 ms".parse::<Span>()?);
//! # Ok::<(), airpath_core::UnitError>(())
//! ```

pub mod counters;
pub mod event;
pub mod packet;
mod quantity;
pub mod range_set;
pub mod rng;
pub mod sink;
pub mod state;
pub mod tagged;
pub mod time;
pub mod units;

pub use counters::{ConnectionTotals, Count, PacketCounters, RadioTotals};
pub use event::{
    AppEvent, AppStep, Aspect, ChangeEvent, ChangeKind, ComponentId, DropCause, Event, OptionalOffset, PacketEvent,
    PacketStep, QuicEvent, QuicPacketType, QuicStep, RadioEvent, SegmentInfo, StateEvent, StateValue, TcpEvent,
    TcpTrigger,
};
pub use packet::{Direction, Ecn, FlowId, Packet, Slot, UserId};
pub use rng::{RandomStream, Seed};
pub use sink::{Classes, Context, Dropped, Memory, Reporter, SegmentLookup, Sink};
pub use state::{
    CellGroupState, DrxState, HarqState, LinkState, LteRrcState, ModeState, RrcState, TbfState, WaitState,
};
pub use time::{Instant, Span, earliest};
pub use units::{Bitrate, Bytes, Decibel, Frequency, Length, Probability, Speed, UnitError};
