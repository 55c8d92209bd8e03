//! The real clock: packets of real programs on the path that the simulator runs in virtual time.
//!
//! | module | contents |
//! | --- | --- |
//! | [`link`] | a link from its scenario to its result |
//! | [`live`] | a live proxy on a router |
//! | [`testbed`] | the two ends: network namespaces, interfaces, addresses |
//! | [`second_interface`] | the second interface of a mobile with two bearers |
//! | [`namespace`], [`netlink`], [`nat`] | interfaces to the kernel's networking |
//! | [`port`] | reads packets from the kernel and sends them back |
//! | [`offload`] | splits super-segments into packets and joins them again |
//! | [`forwarder`] | from one end into the path, and out at the other end when due |
//! | [`packet_buffer`] | bytes of the packets in the network |
//! | `writer` | a thread that writes large packets |
//! | `acknowledgements` | those of a proxy that later ones replace |
//! | `join` | TCP packets of a proxy as a super-segment |
//! | `tcp_packet` | TCP packets as a middlebox reads and creates them |
//! | [`clock`], [`lateness`] | the clock, and how late packets left |
//! | [`taps`], [`record`] | packet observers: captures, deliveries as a recorded link |
//! | [`observe`] | flows, identified from packets |
//! | `observed_packets` | the packets on the path, with the taps that observe them |
//! | [`supervisor`] | the programs of a link, in a PID namespace |
//! | [`session`] | the event loop while the command runs |
//! | [`doctor`] | what this host supports |
//! | [`control`] | the control socket |
//! | [`status`], [`radio_state`] | the status line |
//! | `message` | messages on standard error |

#![deny(clippy::print_stderr)]

mod acknowledgements;
pub mod clock;
pub mod control;
pub mod doctor;
pub mod error;
pub mod forwarder;
pub mod host_ports;
mod join;
pub mod lateness;
pub mod link;
pub mod live;
mod message;
pub mod namespace;
pub mod nat;
pub mod netlink;
pub mod observe;
mod observed_packets;
pub mod offload;
pub mod packet_buffer;
pub mod port;
pub mod radio_state;
pub mod record;
mod run;
pub mod second_interface;
pub mod session;
pub mod status;
pub mod supervisor;
mod sys;
pub mod taps;
mod tcp_packet;
pub mod testbed;
mod writer;

pub use error::LinkError;
pub use link::{Options, Outcome, run};
