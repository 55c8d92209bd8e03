//! The real clock: real packets of real programs through the bearers that the simulator steps in virtual time.
//!
//! | module | what |
//! | --- | --- |
//! | [`link`] | a link from its scenario to its result |
//! | [`laboratory`] | the two ends: network namespaces, interfaces, addresses |
//! | [`namespace`], [`netlink`], [`nat`] | what the kernel has for that |
//! | [`port`] | where packets come out of the kernel, and are put back |
//! | [`offload`] | what the kernel hands out is cut for the bearer and joined again |
//! | [`pump`] | from one end into the bearers, and out at the other end when due |
//! | [`way`], [`store`] | the bearers in series; the bytes of the packets in them |
//! | [`clock`], [`lateness`] | the time, and how well it was kept |
//! | [`watch`], [`record`] | captures, and what was delivered as a recorded link |
//! | [`observe`] | flows, as they are seen by looking at packets |
//! | [`household`] | the programs of a link, which end with it |
//! | [`session`] | all that happens while the command runs |
//! | [`doctor`] | what this host allows |
//! | [`control`] | wishes from outside |
//! | [`status`], [`radio_state`] | the line on the terminal, and what it says of the radio |

pub mod clock;
pub mod control;
pub mod doctor;
pub mod error;
pub mod household;
pub mod laboratory;
pub mod lateness;
pub mod link;
pub mod namespace;
pub mod nat;
pub mod netlink;
pub mod observe;
pub mod offload;
pub mod port;
pub mod pump;
pub mod radio_state;
pub mod record;
pub mod session;
pub mod status;
pub mod store;
mod sys;
pub mod watch;
pub mod way;

pub use error::LinkError;
pub use link::{Options, Outcome, run};
