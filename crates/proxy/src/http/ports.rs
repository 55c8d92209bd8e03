//! Ports of the connections that the proxy opens with a mobile's address.

use std::collections::BTreeSet;

use airpath_core::{FlowId, UserId};

/// Above the ports that Linux gives to programs (`ip_local_port_range`): few mobiles use them.
const FIRST: u16 = 61_000;

/// Ports that are tried for one connection.
const TRIES: u32 = 16;

/// The ports in use.
#[derive(Debug)]
pub struct Ports {
    used: BTreeSet<(UserId, u16)>,
    next: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self::beginning_with(FIRST)
    }
}

impl Ports {
    /// No port is in use, and `next` is tried first.
    pub fn beginning_with(next: u16) -> Self {
        Self { used: BTreeSet::new(), next: next.max(FIRST) }
    }

    /// The port that is tried next.
    pub const fn next_port(&self) -> u16 {
        self.next
    }

    /// Opens a flow of a mobile with a free port; `None` if `open` refuses all that were tried.
    pub fn open(&mut self, user: UserId, mut open: impl FnMut(u16) -> Option<FlowId>) -> Option<(FlowId, u16)> {
        for _ in 0..TRIES {
            let port = self.next;
            self.next = port.checked_add(1).unwrap_or(FIRST);
            if !self.used.contains(&(user, port))
                && let Some(flow) = open(port)
            {
                self.used.insert((user, port));
                return Some((flow, port));
            }
        }
        None
    }

    /// The connection with this port has ended.
    pub fn free(&mut self, user: UserId, port: u16) {
        self.used.remove(&(user, port));
    }
}
