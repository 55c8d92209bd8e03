//! The vocabulary of airpath. No input or output, no clock, no global state: everything that the
//! other crates exchange is defined here, once.
//!
//! | module | what |
//! | --- | --- |
//! | [`time`] | [`Instant`] and [`Span`], integer nanoseconds, in virtual and real time alike |
//! | [`units`] | [`Bitrate`], [`Bytes`], [`Probability`], [`Decibel`], [`Length`], [`Speed`], [`Frequency`]: they parse, print and refuse nonsense |
//! | [`rng`] | generator streams, one a component, by name |
//! | [`range_set`] | [`RangeSet`](range_set::RangeSet): numbers as ranges |
//! | [`packet`] | the [`Packet`] that links and bearers carry |
//! | [`headers`] | what header compression has to know of a packet |
//! | [`event`] | what is logged |
//! | [`sink`] | who takes the log, and the context of each call |
//! | [`counters`] | what went through, so that nothing can vanish |
//!
//! ```
//! use airpath_core::{Bitrate, Bytes, Span};
//! let rate: Bitrate = "384 kbit/s".parse()?;
//! assert_eq!(rate.time_for(Bytes::new(1500)), "31.25 ms".parse::<Span>()?);
//! # Ok::<(), airpath_core::UnitError>(())
//! ```

pub mod counters;
pub mod event;
pub mod headers;
pub mod packet;
pub mod range_set;
pub mod rng;
pub mod sink;
pub mod time;
pub mod units;

pub use counters::{Count, PacketCounters, RadioTotals};
pub use event::{
    AppEvent, AppStep, Aspect, ChangeEvent, ChangeKind, ComponentId, DropCause, Event, PacketEvent, PacketStep,
    RadioEvent, SegmentInfo, StateEvent, StateValue, TcpEvent, TcpTrigger,
};
pub use headers::{Headers, Succession};
pub use packet::{Direction, Ecn, FlowId, Packet, Slot, UserId};
pub use rng::{RandomStream, Seed};
pub use sink::{Classes, Context, Dropped, Memory, Sink};
pub use time::{Instant, Span};
pub use units::{Bitrate, Bytes, Decibel, Frequency, Length, Probability, Speed, UnitError};
