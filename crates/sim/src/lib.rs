//! The virtual clock: a scenario run as fast as the processor can, event by event.
//!
//! | module | what |
//! | --- | --- |
//! | [`agenda`] | the event queue |
//! | [`route`] | where everything lies |
//! | [`world`] | the hops of the topology and the packets on their way |
//! | [`store`] | what packets carry |
//! | [`flow`] | the two ends of each flow |
//! | [`simulation`] | one run: topology from a scenario, the loop |
//! | [`capture`] | packet captures at both ends |
//! | [`rows`] | what is said of a run |
//! | [`replay`](mod@replay) | what entered the network once, put on it again |
//! | [`runner`] | repetitions over the cores, and the result folder |

pub mod agenda;
pub mod capture;
pub mod flow;
pub mod replay;
pub mod route;
pub mod rows;
pub mod runner;
pub mod simulation;
pub mod store;
pub mod world;

pub use airpath_result::Summary;
pub use airpath_result::summary::Ended;
pub use replay::replay;
pub use runner::{Options, RunError, run};
pub use simulation::{Setup, Simulation};
