//! The tests of the crate's public interface, in one program: it links once.

mod bbr;
mod config;
mod continuation;
mod delay_based;
mod delivery;
mod ns2;
mod oracles;
mod streams;
mod vegas;
