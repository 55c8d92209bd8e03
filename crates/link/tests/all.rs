//! The tests of the crate's public interface, in one program: it links once.

mod command;
mod common;
mod config;
mod contracts;
mod oracles;
mod recorded;
mod testing;
