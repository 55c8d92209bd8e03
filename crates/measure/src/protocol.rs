//! What a measurement and its responder say to each other, version 1.
//!
//! All goes over one port, by default [`PORT`], over TCP and UDP.
//!
//! # TCP
//!
//! The first 16 bytes of a connection say what it is.
//!
//! - `airpath-measure ` (with the space) begins a **control connection**. The rest of the line is
//!   the version, a decimal number; the responder answers with the same line and its own version,
//!   whichever the client's is. Each further line is a JSON value, of at most [`LINE_LIMIT`] bytes
//!   from the client: a [`Question`], and for each the responder's [`Answer`]. The first question
//!   is the order; the responder works for it until the connection ends.
//! - A [`Ticket`] begins a **connection of a flow** of the order for which it was issued. It is the
//!   first 16 bytes of what the client has to send in that flow, and counts as part of it.
//! - A flow in which the client does not send first has no room for a ticket. The client then says
//!   beforehand from which port it will come ([`Order::ports`]), and the responder knows it by
//!   address and port. Address translation defeats that, so the client compares what the responder
//!   sees ([`Ready::peer`]) with what it sees itself.
//!
//! Whatever else comes is closed without an answer.
//!
//! # UDP
//!
//! Each datagram begins with the header of [`crate::probe`]. The responder heeds those whose ticket
//! it has issued and that come from the address of the control connection, so that it cannot be
//! made to send to others, and answers no datagram with a longer one.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::order::Work;
use crate::tcp_info::TcpInfo;

/// The version that is described here.
pub const VERSION: u32 = 1;

/// The port of a responder unless another is given.
pub const PORT: u16 = 7474;

/// How a control connection begins, before the number of the version.
pub const GREETING: &[u8; 16] = b"airpath-measure ";

/// Longest line that the responder reads, in bytes.
pub const LINE_LIMIT: usize = 4096;

/// Longest line that the client reads: a report has a few hundred bytes for each of its flows.
pub const REPORT_LIMIT: usize = 1 << 20;

/// What the client says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    /// The work for which the responder is wanted.
    Order(Order),
    /// What did the responder's end see? It answers when the flows are over at its end, or soon
    /// after.
    Report,
    /// What arrived of a stream of datagrams? Asked behind a report.
    Arrivals,
}

/// An order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What to do.
    pub work: Work,
    /// The ports from which the client will connect, one a flow, where it does not send first.
    #[serde(default)]
    pub ports: Vec<u16>,
}

/// What the responder says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The order is taken.
    Ready(Ready),
    /// It is not, for this reason.
    Refused(String),
    /// What the responder's end saw.
    Report(Report),
    /// So many datagrams arrived, each once; behind this line stand as many records of [`ARRIVAL`]
    /// bytes in their order, in network byte order: number (4 bytes), when it was sent and when it
    /// arrived, by the sender's and by the responder's clock (8 bytes each, nanoseconds).
    Arrivals(u32),
}

/// Bytes of the record of one arrival.
pub const ARRIVAL: usize = 20;

/// An order that was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// Number of the order, in hexadecimal digits.
    pub ticket: String,
    /// From where the control connection comes, as the responder sees it.
    pub peer: SocketAddr,
    /// The name of the responder's clock ([`crate::clock::identity`]).
    pub clock: Option<String>,
    /// The responder's version of airpath.
    pub airpath: String,
    /// Its kernel.
    pub kernel: String,
}

/// What the responder's end saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// One for each flow that came, with its number.
    pub flows: Vec<FlowReport>,
    /// Datagrams that the responder has sent so far.
    #[serde(default)]
    pub sent: u32,
    /// Datagrams that have arrived there so far, each counted once.
    #[serde(default)]
    pub received: u32,
    /// Datagrams that arrived there again.
    #[serde(default)]
    pub duplicates: u64,
}

/// What the responder's end saw of a flow. Times are nanoseconds of the responder's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Number of the flow.
    pub flow: u32,
    /// It had the whole request.
    #[serde(default)]
    pub requested: Option<u64>,
    /// The first byte of an upload arrived.
    #[serde(default)]
    pub first_byte: Option<u64>,
    /// The last byte did.
    #[serde(default)]
    pub finished: Option<u64>,
    /// Bytes of an upload that arrived.
    #[serde(default)]
    pub delivered: u64,
    /// The responder's end of the connection, as its kernel tells.
    #[serde(default)]
    pub tcp: Option<TcpInfo>,
    /// Why the connection was lost, if it was.
    #[serde(default)]
    pub cause: Option<String>,
}

/// Which order and which of its flows a connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Number of the order.
    pub order: u64,
    /// Number of the flow.
    pub flow: u32,
}

impl Ticket {
    /// Bytes of a ticket.
    pub const LENGTH: usize = 16;
    const MARK: [u8; 4] = *b"flow";

    /// As it is sent: `flow`, the flow and the order, in network byte order.
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..4].copy_from_slice(&Self::MARK);
        bytes[4..8].copy_from_slice(&self.flow.to_be_bytes());
        bytes[8..].copy_from_slice(&self.order.to_be_bytes());
        bytes
    }

    /// Reads it; `None` for what is none.
    pub fn from_bytes(bytes: [u8; Self::LENGTH]) -> Option<Self> {
        let (mark, rest) = bytes.split_first_chunk::<4>()?;
        let (flow, order) = rest.split_first_chunk::<4>()?;
        let order = order.first_chunk::<8>()?;
        (*mark == Self::MARK).then(|| Self { order: u64::from_be_bytes(*order), flow: u32::from_be_bytes(*flow) })
    }
}

/// The first line of a control connection.
pub fn greeting() -> String {
    format!("airpath-measure {VERSION}\n")
}

/// The version in what follows [`GREETING`] on its line; `None` if that is no number.
pub fn version(rest: &[u8]) -> Option<u32> {
    std::str::from_utf8(rest).ok()?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tickets_come_back(order: u64, flow: u32) {
            let ticket = Ticket { order, flow };
            prop_assert_eq!(Ticket::from_bytes(ticket.to_bytes()), Some(ticket));
        }

        #[test]
        fn garbage_is_no_question(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = serde_json::from_slice::<Question>(&line);
            let _ = version(&line);
        }
    }

    #[test]
    fn a_greeting_is_as_long_as_a_ticket() {
        assert_eq!(GREETING.len(), Ticket::LENGTH);
        assert!(greeting().as_bytes().starts_with(GREETING));
        assert_eq!(Ticket::from_bytes(*GREETING), None);
        assert_eq!(version(&greeting().as_bytes()[16..]), Some(VERSION));
    }
}
