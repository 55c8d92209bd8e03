//! UMTS: packet bearers over dedicated channels (Release 99), and HSDPA (Release 5).

pub mod hsdpa;
pub mod r99;
