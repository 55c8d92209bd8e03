//! Connection states, and outcomes.

use std::fmt;

use airpath_core::Span;
use serde::{Deserialize, Serialize};

/// The states of RFC 9293 §3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// No connection.
    Closed,
    /// Waits for a peer to open.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has received a SYN and answered it.
    SynReceived,
    /// Data flows both ways.
    Established,
    /// Has sent a FIN.
    FinWait1,
    /// Its FIN was acknowledged.
    FinWait2,
    /// Its peer has sent a FIN.
    CloseWait,
    /// Both have sent a FIN; its own is unacknowledged.
    Closing,
    /// Has received a FIN, then sent its own.
    LastAck,
    /// Closed; waits for old segments to leave the network.
    TimeWait,
}

impl State {
    /// Whether both ends have agreed on sequence numbers.
    pub const fn is_synchronised(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived)
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Both streams were delivered and closed.
    Closed,
    /// The peer sent a reset.
    Reset,
    /// The peer refused to open the connection.
    Refused,
    /// An ICMP error reported that the peer cannot be reached, before the connection was open.
    Unreachable,
    /// The application aborted the connection.
    Aborted,
    /// The peer did not answer.
    TimedOut(TimedOut),
}

impl Outcome {
    /// Whether both streams were delivered completely.
    pub const fn is_orderly(self) -> bool {
        matches!(self, Self::Closed)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Reset => f.write_str("reset by the peer"),
            Self::Refused => f.write_str("refused by the peer"),
            Self::Unreachable => f.write_str("the peer is unreachable"),
            Self::Aborted => f.write_str("aborted by the application"),
            Self::TimedOut(cause) => cause.fmt(f),
        }
    }
}

/// What the peer did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimedOut {
    /// The SYN.
    Opening {
        /// Number of transmissions.
        attempts: u32,
        /// Time since the first.
        after: Span,
    },
    /// Data or the FIN.
    Data {
        /// Number of transmissions.
        attempts: u32,
        /// Time since the last progress.
        after: Span,
    },
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, attempts, after) = match self {
            Self::Opening { attempts, after } => ("the SYN", attempts, after),
            Self::Data { attempts, after } => ("data", attempts, after),
        };
        write!(f, "timed out: no answer to {what}, sent {attempts} times in {after}")
    }
}
