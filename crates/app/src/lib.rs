//! Work to put on a path: what an application does with its connection or its datagrams.
//!
//! Each file is one workload, without I/O and without a clock of its own, so that the simulator, the
//! emulator and real sockets can all run it and mean the same by its figures.
//!
//! | module | workload |
//! | --- | --- |
//! | [`bulk`] | a transfer over one connection, down or up, with or without a request before it |
//! | [`ping`] | echo requests at an interval, and their round trips |
//! | [`datagrams`], [`arrivals`] | datagrams at a constant rate: delay, loss, gaps, delay periods |
//! | [`transactions`] | requests and responses, over one connection or one for each |

pub mod arrivals;
pub mod bulk;
pub mod datagrams;
pub mod ping;
pub mod samples;
pub mod transactions;

pub use bulk::{Transfer, Transport};
pub use datagrams::Datagrams;
pub use ping::Ping;
pub use samples::Samples;
pub use transactions::Transactions;
