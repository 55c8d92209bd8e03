//! The proxy between real connections, under a virtual clock.

mod conversations;
mod link;
mod support;
