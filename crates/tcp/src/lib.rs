//! A TCP end point without I/O (first slice).
pub mod config;
pub mod congestion;
pub mod connection;
pub mod profile;
pub mod reassembly;
pub mod rtt;
pub mod scoreboard;
pub mod segment;
pub use config::Config;
pub use connection::{Connection, Identity, Outcome, State, Statistics};
pub use profile::Profile;
pub use segment::Segment;
