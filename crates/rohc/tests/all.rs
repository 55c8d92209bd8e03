//! The tests of the crate's public interface, in one program: it links once.

mod channel;
mod common;
mod peer;
mod sizes;
mod tcp;
mod version2;
