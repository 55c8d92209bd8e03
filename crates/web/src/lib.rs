//! Application data in TCP segments and UDP datagrams: HTTP requests and responses, TLS handshakes,
//! QUIC flows.
//!
//! ```text
//! segments ─► stream (in order) ─► messages (begin and end) ─► conversation (pairs) ─► timelines ─► page, HAR
//! ```
//!
//! All times are those of the capture point. In a capture at the client they are what the user
//! waited for.

mod chunked;
mod conversation;
mod exchange;
mod har;
mod head;
mod messages;
mod page;
mod quic;
mod stream;
mod timeline;
mod tls;
mod watch;
mod web;

#[cfg(test)]
mod tests;

pub use conversation::Conversation;
pub use exchange::{Exchange, Field, KEPT_FIELDS, Request, Response, Size};
pub use har::Har;
pub use head::Version;
pub use page::{Downlink, IdleDownlink, Page, RATE_SEGMENTS, covered_time, pages};
pub use quic::{Quic, QuicDatagram, QuicFlows, Spin, SpinSample};
pub use stream::{Content, Mark, Piece, Reader, Run, Stream};
pub use timeline::{Application, Pipelining, Timeline, efficiency};
pub use tls::{Burst, PAUSE, Session, Tls};
pub use watch::Watch;
pub use web::{Exchanges, Web};
