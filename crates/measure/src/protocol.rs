//! The protocol between a measurement and its responder, version 3.
//!
//! Everything uses one port, by default [`PORT`], over TCP and UDP.
//!
//! # TCP
//!
//! The first 16 bytes of a connection identify its type.
//!
//! - `airpath-measure ` (with the space) begins a **control connection**. The remaining part of the
//!   line is the version, a decimal number. The responder answers with the same line and its own
//!   version, whichever the client's is. Each further line is a JSON value, of at most
//!   [`LINE_LIMIT`](crate::work::LINE_LIMIT) bytes from the client: a [`ControlRequest`], and for
//!   each the responder's [`ControlResponse`]. The first request is the test request; its session
//!   lasts until the connection ends.
//! - A [`SessionToken`](crate::token::SessionToken) begins a **connection of a flow** of its
//!   session. In the flow of a terminal it precedes the client's data: the terminal sends it when
//!   the connection opens, and its requests have their full sizes. In all other flows it takes
//!   the place of the first 16 bytes of the client's data, and counts as part of them.
//! - A flow in which the client does not send first has no token. The client announces the port of
//!   such a flow ([`TestRequest::ports`]), and the responder identifies it by address and port.
//!   Address translation prevents that, so the client compares the address that the responder sees
//!   ([`Ready::peer`]) with its own.
//! - `GET ` begins a **connection with HTTP/1.x**, on which the responder serves the objects of web
//!   pages. The field [`SESSION_FIELD`](crate::token::SESSION_FIELD) of the first request has the
//!   session. While a session with pages is open, connections of its client may be silent at first,
//!   as those are that a browser opens ahead.
//!
//! A connection above a limit of the responder is refused: a control connection by
//! [`ControlResponse::Refused`] at once after the responder's first line, one with HTTP by status
//! 503.
//!
//! Any other connection is closed without an answer.
//!
//! # UDP
//!
//! Each datagram begins with the header of [`crate::probe`]. The responder processes only datagrams
//! of an open session from the address of its control connection, so that it cannot be made to send
//! to others. It answers no datagram with a longer one.
//!
//! # RTP
//!
//! A call and a video have UDP ports of their own at the responder ([`ControlResponse::Started`]):
//! see `rtp.rs`. They receive only from the address of the control connection.
//!
//! # QUIC
//!
//! Each flow over QUIC has a UDP port of its own at the responder ([`Ready::quic_ports`]), which is
//! open while the session lasts and receives only from the address of the control connection.

use std::net::{IpAddr, SocketAddr};

use airpath_app::datagrams::{HEADERS, IPV6_HEADERS};
use airpath_app::streaming::Sent;
use serde::{Deserialize, Serialize};

use crate::tcp_info::TcpInfo;
use crate::work::Work;

/// The version described here.
pub const VERSION: u32 = 3;

/// The default port of a responder.
pub const PORT: u16 = 7474;

/// The start of a control connection, before the version.
pub const GREETING: &[u8; 16] = b"airpath-measure ";

/// The start of a connection with HTTP.
pub const HTTP: &[u8; 4] = b"GET ";

/// Longest line that the client reads: a report has a few hundred bytes per flow.
pub const REPORT_LIMIT: usize = 1 << 20;

/// A request of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlRequest {
    /// Starts a session.
    Test(Box<TestRequest>),
    /// Requests the responder's observations. The answer comes when the flows are over at its end,
    /// or soon after.
    Report,
    /// Requests the arrivals of a datagram stream or a call, after a report; of a video the times
    /// at which its packets were sent first.
    Arrivals,
    /// Starts the call or the video of the session, at this time of the responder's clock, in
    /// nanoseconds.
    Start(u64),
}

/// The request for a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestRequest {
    /// The workload.
    pub work: Work,
    /// The ports from which the client will connect, one per flow, where it does not send first.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// The version of IP at the client. Address translation may change it on the path, and both
    /// ends must compute the same number of datagrams.
    #[serde(default, skip_serializing_if = "IpVersion::is_v4")]
    pub ip: IpVersion,
}

/// A version of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl IpVersion {
    /// The version of the packets to `peer`.
    pub const fn of(peer: IpAddr) -> Self {
        match peer.to_canonical() {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Length of the headers of IP, without options, and UDP.
    pub const fn udp_headers(self) -> u32 {
        match self {
            Self::V4 => HEADERS,
            Self::V6 => IPV6_HEADERS,
        }
    }

    const fn is_v4(&self) -> bool {
        matches!(self, Self::V4)
    }
}

/// A response of the responder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlResponse {
    /// The session is open.
    Ready(Ready),
    /// The request is refused, with the reason.
    Refused(String),
    /// The responder's observations.
    Report(Report),
    /// Number of datagrams that arrived, each once. After this line follow as many records of
    /// [`ARRIVAL`] bytes in the order of arrival, in network byte order: number (4 bytes), send
    /// time by the sender's clock and arrival time by the responder's (8 bytes each, nanoseconds).
    /// Of a video both are the time by the responder's clock at which the packet was sent first.
    Arrivals(u32),
    /// The responder's UDP ports of the call (one) or of the video (packets, reports, repair). It
    /// sends to the address from which the first datagram of the client arrives at each.
    Started(Vec<u16>),
}

/// Bytes of an arrival record.
pub const ARRIVAL: usize = 20;

/// An open session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// Number of the session, in hexadecimal digits.
    pub session: String,
    /// Address of the control connection, as the responder sees it.
    pub peer: SocketAddr,
    /// Identity of the responder's clock ([`crate::clock::identity`]).
    pub clock: Option<String>,
    /// The responder's version of airpath.
    pub airpath: String,
    /// Its kernel.
    pub kernel: String,
    /// Its UDP port of each flow over QUIC; no other flows have one.
    #[serde(default)]
    pub quic_ports: Vec<u16>,
}

/// The responder's observations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// One for each flow that connected, with its number.
    pub flows: Vec<FlowReport>,
    /// Datagrams sent by the responder so far.
    #[serde(default)]
    pub sent: u32,
    /// Datagrams that have arrived at the responder so far, each counted once.
    #[serde(default)]
    pub received: u32,
    /// Duplicates that arrived at the responder.
    #[serde(default)]
    pub duplicates: u64,
    /// What it has sent so far of a video. The time is nanoseconds of its clock.
    #[serde(default)]
    pub video: Option<Sent>,
}

/// The responder's observations of a flow. Times are nanoseconds of its clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Number of the flow.
    pub flow: u32,
    /// When it had the whole request.
    #[serde(default)]
    pub requested: Option<u64>,
    /// When the first byte of an upload arrived.
    #[serde(default)]
    pub first_byte: Option<u64>,
    /// When the last byte arrived.
    #[serde(default)]
    pub finished: Option<u64>,
    /// Bytes of an upload that arrived.
    #[serde(default)]
    pub delivered: u64,
    /// The responder's end of the connection, as reported by its kernel.
    #[serde(default)]
    pub tcp: Option<TcpInfo>,
    /// The responder's end of a connection of QUIC.
    #[serde(default)]
    pub quic: Option<airpath_quic::Statistics>,
    /// Error that ended the connection, if any.
    #[serde(default)]
    pub cause: Option<String>,
}

/// The first line of a control connection.
pub fn greeting() -> String {
    format!("airpath-measure {VERSION}\n")
}

/// The version after [`GREETING`] on its line; `None` if it is not a number.
pub fn version(rest: &[u8]) -> Option<u32> {
    std::str::from_utf8(rest).ok()?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::SessionToken;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn garbage_is_not_a_request(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = serde_json::from_slice::<ControlRequest>(&line);
            let _ = version(&line);
        }
    }

    #[test]
    fn a_greeting_is_as_long_as_a_token() {
        assert_eq!(GREETING.len(), SessionToken::LENGTH);
        assert!(greeting().as_bytes().starts_with(GREETING));
        assert_eq!(SessionToken::from_bytes(*GREETING), None);
        assert_eq!(version(&greeting().as_bytes()[16..]), Some(VERSION));
    }
}
