//! Mechanisms that the technologies share, one a file.

pub mod acknowledged;
pub mod channel;
pub mod harq;
pub mod path_bearer;
pub mod scheduler;
pub mod uplink;

pub(crate) mod arq;
pub(crate) mod carrier;
pub(crate) mod due;
pub(crate) mod lanes;
pub(crate) mod members;
pub(crate) mod paths;
pub(crate) mod rlc;
pub(crate) mod rlc_am;
pub(crate) mod rlc_queue;
pub(crate) mod tournament;
