//! Packet headers and capture files.

pub mod tcp;
