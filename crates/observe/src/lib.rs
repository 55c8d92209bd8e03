//! A passive TCP observer: it receives segments at a capture point and reports the behaviour of
//! each connection.
//!
//! | module | contents |
//! | --- | --- |
//! | [`flows`] | assigns each segment to its connection, and notifies a [`flows::Listener`] |
//! | [`connection`] | one connection: [`Observation`]s of its segments, and [`Figures`] of its two directions |
//! | [`copies`] | packets that the capture has twice |
//! | [`columns`] | the names of the figures, their units and their meaning |
//!
//! Nothing here reads a clock: the time of a segment is a field of it.

#![forbid(unsafe_code)]

pub mod columns;
pub mod connection;
pub mod copies;
mod events;
pub mod figures;
pub mod flows;
mod observation;
mod outstanding;
mod phase;
mod round_trip;
mod spurious;
mod trigger;

pub use connection::Connection;
pub use events::Events;
pub use figures::Figures;
pub use observation::{Duplicate, End, Observation, Retransmission};
pub use outstanding::Sending;
pub use phase::{Phase, Phases};
pub use round_trip::Spread;
pub use spurious::{Confidence, Detector, Spurious, SpuriousCounts};
pub use trigger::Trigger;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
