//! Counters of a proxy, and the state of its mobiles.

use airpath_core::UserId;
use serde::{Deserialize, Serialize};

/// Why a packet passes unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassCause {
    /// It is not TCP.
    NotTcp,
    /// The proxy has not received the SYN of its connection.
    Unknown,
    /// The mobile has too many half-open connections.
    HalfOpen,
    /// There are too many connections.
    Connections,
}

impl PassCause {
    /// All causes, in the order of their declaration.
    pub const ALL: [Self; 4] = [Self::NotTcp, Self::Unknown, Self::HalfOpen, Self::Connections];

    /// The name under which it is counted.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotTcp => "not-tcp",
            Self::Unknown => "mid-connection",
            Self::HalfOpen => "half-open-limit",
            Self::Connections => "connection-limit",
        }
    }
}

/// What a proxy has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Connections that were opened.
    pub opened: u64,
    /// Payload bytes that arrived on relayed connections, retransmissions included, in the order of
    /// [`Direction::BOTH`](airpath_core::Direction::BOTH).
    pub relayed_bytes: [u64; 2],
    /// Segments of relayed connections with urgent data. These pass in-line, and the urgent pointer
    /// is not set (RFC 6093).
    pub urgent: u64,
    /// Path MTUs that were learned from ICMP errors about segments of the proxy.
    pub path_mtus: u64,
    /// Connections that ended while they were opened, by ICMP errors about SYNs of the proxy.
    pub unreachable: u64,
    /// Packets that passed unchanged, in the order of [`PassCause::ALL`].
    pub passed: [u64; PassCause::ALL.len()],
}

/// The state of a mobile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MobileState {
    /// Its number.
    pub user: UserId,
    /// Its connections.
    pub connections: u32,
    /// Its connections that are open on one side only.
    pub half_open: u32,
    /// Bytes that may be unacknowledged.
    pub budget: u64,
    /// Bytes that are unacknowledged.
    pub unacknowledged: u64,
    /// Bytes that wait in the proxy, those of packets in the queue included.
    pub queued: u64,
}
