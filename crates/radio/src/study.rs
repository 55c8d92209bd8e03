//! The simple models of the study `hsdpa-sim`; extensions are marked as such.

pub mod dch_simple;
pub mod dedicated_channel;
mod error;
pub mod hs_dsch_simple;
pub mod uplink;

pub use error::ConfigError;

/// The default of `in_sequence`: packets are delivered in the order in which they were offered.
pub(crate) const fn in_sequence() -> bool {
    true
}
