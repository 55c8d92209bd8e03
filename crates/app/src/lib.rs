//! Workloads: what an application does with its connection or its datagrams.
//!
//! Each file is one workload, without I/O and without a clock. The simulator, the emulator and real
//! sockets all run it, and its figures have the same meaning.
//!
//! | module | workload |
//! | --- | --- |
//! | [`bulk`] | a transfer over one connection, down or up, with or without a request before it |
//! | [`ping`] | echo requests at an interval, and their round trips |
//! | [`datagrams`], [`arrivals`] | datagrams at a constant rate: delay, loss, gaps, delay periods |
//! | [`transactions`] | requests and responses, over one connection or one for each |
//! | [`exchanges`] | scripts of requests and responses: a remote terminal, mail |
//! | [`ftp`] | FTP: a control connection, and a data connection for each file |
//! | [`streaming`] | a video over RTP: a server, a client and its playout buffer |
//! | [`adaptive`] | a video over HTTP in segments of several qualities (HLS, DASH) |
//! | [`voice`] | a call over RTP: codec, jitter buffer, rating by the E-model |
//! | [`web`] | web pages: a browser and its servers |
//!
//! [`transport`] is the connection as the workloads see it, [`phase`] the offset of periodic
//! packets, and [`samples`] holds measured delays.

pub mod adaptive;
pub mod arrivals;
pub mod bulk;
pub mod datagrams;
pub mod exchanges;
pub mod ftp;
pub mod phase;
pub mod ping;
pub mod samples;
pub mod streaming;
pub mod transactions;
pub mod transport;
pub mod voice;
pub mod web;

pub use bulk::Transfer;
pub use datagrams::Datagrams;
pub use phase::Phase;
pub use ping::Ping;
pub use samples::Samples;
pub use transactions::Transactions;
pub use transport::{StreamEnd, Transport};
