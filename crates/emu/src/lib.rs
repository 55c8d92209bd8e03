//! The real clock: real packets of real programs through the bearers that the simulator steps in virtual time.

pub mod offload;
