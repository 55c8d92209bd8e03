//! A TCP end point without I/O.

mod config;
mod congestion;
mod connection;
mod delayed_ack;
mod frto;
mod profile;
mod prr;
mod rack;
mod ranges;
mod receive_window;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod sequence;
mod state;
mod statistics;
mod timers;
mod undo;

#[cfg(feature = "testing")]
pub mod testing;

pub use config::{
    Algorithm, Config, ConfigError, Congestion, Counting, DelayedAck, Floor, Halving, InitialWindow, Limit,
    PartialAcks, ReceiveBuffer, Recovery, RetransmissionTimeout, Samples,
};
pub use congestion::{Acknowledged, Congested, CongestionControl, Cubic, Fixed, NewReno, Signal};
pub use connection::{Connection, Identity, Negotiated};
pub use profile::{Profile, UnknownProfile};
pub use segment::Segment;
pub use state::{Outcome, State, TimedOut};
pub use statistics::Statistics;
