//! The tests of the crate's public interface, in one program: it links once.

mod archive;
mod errors;
mod middlebox;
mod page;
mod proxy;
mod support;
