//! The virtual clock: a scenario run event by event, as fast as the processor allows.
//!
//! | module | contents |
//! | --- | --- |
//! | [`event_queue`] | the event queue |
//! | [`network`] | the path, event queue and packet buffer that all flows share |
//! | [`packet_buffer`] | payloads of the packets in the network |
//! | [`flow`] | the two ends of each flow |
//! | [`simulation`] | one run: objects from a scenario, the event loop |
//! | [`capture`] | packet captures at both ends |
//! | [`rows`] | the rows of the summary |
//! | [`replay`](mod@replay) | replay of recorded arrivals |
//! | [`runner`] | repetitions on several cores, and the result folder |

pub mod capture;
pub mod event_queue;
pub mod flow;
pub mod network;
pub mod packet_buffer;
pub mod replay;
pub mod rows;
pub mod runner;
pub mod simulation;
mod steering;

pub use airpath_result::Summary;
pub use airpath_result::summary::Ended;
pub use replay::replay;
pub use runner::{Options, RunError, run};
pub use simulation::{Setup, Simulation};
