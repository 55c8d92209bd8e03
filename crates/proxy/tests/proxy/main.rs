//! The proxy between real connections, under a virtual clock.

mod conversations;
mod http;
mod icmp;
mod link;
mod support;
mod takeover;
