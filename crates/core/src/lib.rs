//! The vocabulary of airpath. No input or output, no clock, no global state: everything that the
//! other crates exchange is defined here, once.
//!
//! | module | what |
//! | --- | --- |
//! | [`time`] | [`Instant`] and [`Span`], integer nanoseconds, in virtual and real time alike |
//! | [`units`] | [`Bitrate`], [`Bytes`], [`Probability`], [`Decibel`]: they parse, print and refuse nonsense |
//! | [`rng`] | generator streams, one a component, by name |
//! | [`packet`] | the [`Packet`] that links and bearers carry |
//! | [`event`] | what is logged, and the [`Sink`] that takes it |
//!
//! ```
//! use airpath_core::{Bitrate, Bytes, Span};
//! let rate: Bitrate = "384 kbit/s".parse()?;
//! assert_eq!(rate.time_for(Bytes::new(1500)), "31.25 ms".parse::<Span>()?);
//! # Ok::<(), airpath_core::UnitError>(())
//! ```

pub mod event;
pub mod packet;
pub mod rng;
pub mod time;
pub mod units;

pub use event::{
    AppEvent, AppStep, Classes, ComponentId, Count, Cx, DropCause, Dropped, Event, Memory, PacketEvent, PacketStep,
    RadioEvent, RadioTotals, SegmentInfo, Sink, Tally, TcpEvent, TcpTrigger,
};
pub use packet::{Direction, Ecn, FlowId, Packet, Slot, UserId};
pub use rng::{Seed, Stream};
pub use time::{Instant, Span};
pub use units::{Bitrate, Bytes, Decibel, Probability, UnitError};
