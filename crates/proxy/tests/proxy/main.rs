//! The proxy between real connections, under a virtual clock.

mod conversations;
mod http;
mod link;
mod support;
mod takeover;
