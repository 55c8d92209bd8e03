//! The hops between the two ends of a network, under either clock.
//!
//! ```text
//! server → [access] → fixed → [middleboxes] → cell → mobile
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`path`] | the [`Path`]: hops, forwarding, packet events, component numbers |
//! | [`polled`] | the [`PolledPath`]: a path that a caller under the real clock polls |
//! | [`route`] | the order of the hops for each flow and user, as data |
//! | [`hop`] | a hop: a bearer or a middlebox |
//! | [`middlebox`] | middleboxes: hops that may absorb, hold, rewrite and create packets |
//! | [`ack_filter`] | a middlebox that absorbs superseded acknowledgements |
//! | [`clear_ecn`] | a middlebox that clears the ECN field |
//! | [`snoop`] | a middlebox that retransmits on the radio link |
//! | [`w_tcp`] | a variant of it that hides the time of retransmissions from the sender |
//! | [`m_tcp`] | a middlebox that stops the sender while the mobile is disconnected |
//! | [`eln`] | a middlebox that marks losses of the radio link in acknowledgements |
//! | [`delayed_dup_acks`] | a middlebox that holds duplicate acknowledgements |
//! | [`departures`] | the packets that have left a middlebox |
//! | [`deadlines`] | the timers of a middlebox, in the order of time |
//! | [`stream_buffer`] | payload of a stream from its arrival until its acknowledgement |
//! | [`streams`] | the payload of both streams of a TCP end |
//! | [`store`] | the packet buffer of the simulator or the emulator, as the path uses it |
//! | `testing` | checks of the contracts of middleboxes (feature `testing`) |
//!
//! The simulator keeps its own event queue with one entry per hop and calls [`Path::pop`] and
//! [`Path::forward`] at the times of [`Path::next_wakeup`]. The emulator polls a [`PolledPath`]
//! whenever the real clock lets it. Both give the same departures and drops at the same times.

pub mod ack_filter;
pub mod clear_ecn;
pub mod deadlines;
pub mod delayed_dup_acks;
pub mod departures;
pub mod eln;
pub mod hop;
pub mod m_tcp;
pub mod middlebox;
pub mod path;
pub mod payload;
pub mod polled;
pub mod route;
pub mod snoop;
pub mod store;
pub mod stream_buffer;
pub mod streams;
#[cfg(feature = "testing")]
pub mod testing;
pub mod w_tcp;

pub use ack_filter::AckFilter;
pub use clear_ecn::ClearEcn;
pub use deadlines::DeadlineSet;
pub use delayed_dup_acks::DelayedDupAcks;
pub use departures::Departures;
pub use eln::Eln;
pub use hop::Hop;
pub use m_tcp::MTcp;
pub use middlebox::{Middlebox, MiddleboxContext, NewPacket};
pub use path::{Path, Topology};
pub use payload::{Payload, SharedPayload};
pub use polled::{Change, PolledPath};
pub use route::{Route, Side};
pub use snoop::Snoop;
pub use store::{Contents, NewSegment, PacketStore};
pub use stream_buffer::StreamBuffer;
pub use streams::Streams;
