//! The application level (AL-E): HTTP/1.x in clear text.

mod body;
mod channel;
mod compression;
mod config;
mod message;
mod relay;
mod session;
mod statistics;

pub use config::Config;
pub use relay::{HttpRelay, NewServer};
pub use session::{End, Session};
pub use statistics::{Bypass, Statistics};
