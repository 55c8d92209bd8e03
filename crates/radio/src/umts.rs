//! UMTS: packet bearers over dedicated channels (Release 99), and HSDPA (Release 5).

mod error;
pub mod hsdpa;
pub mod r99;

pub use error::ConfigError;
