//! A server connection as a session uses it: its state, and the bytes for it.

use std::collections::VecDeque;

use crate::http::body::Body;
use crate::http::prefetch::Prefetch;
use crate::http::target::Origin;

/// Bytes of requests that wait for a server connection.
const MOST_OUTGOING: usize = 64 << 10;

/// A server connection.
#[derive(Debug)]
pub struct Server {
    pub state: ServerState,
    /// The server that the client has named to an explicit proxy.
    pub origin: Option<Origin>,
    /// Whether the connection to the server is or was open.
    pub is_connected: bool,
    /// The object that it fetches although no client has requested it.
    pub prefetch: Option<Prefetch>,
    /// Whether the server closes it after its response.
    pub closes: bool,
    /// Exchanges whose responses it has not completed, in their order.
    pub assigned: VecDeque<u64>,
    pub has_answered: bool,
    /// Whether it was open before, for another client.
    pub is_reused: bool,
    /// Whether it must not have been open before.
    pub needs_new: bool,
    /// Whether it carries credentials that hold for the whole connection.
    pub is_bound: bool,
    /// The content of the response that is still to come; `None` before its final head.
    pub body: Option<Body>,
    pub outgoing: VecDeque<u8>,
}

/// The state of a server connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// There is none.
    Unused,
    /// The owner is to open it.
    Wanted,
    /// The owner queries its address.
    Resolving,
    Open,
    /// The server will send nothing more, or it is not to be used any more.
    Ended,
}

impl Server {
    pub const fn new(state: ServerState) -> Self {
        Self {
            state,
            origin: None,
            is_connected: false,
            prefetch: None,
            closes: false,
            assigned: VecDeque::new(),
            has_answered: false,
            is_reused: false,
            needs_new: false,
            is_bound: false,
            body: None,
            outgoing: VecDeque::new(),
        }
    }

    pub fn is_usable(&self) -> bool {
        self.state != ServerState::Ended
    }

    /// A connection in the place of one that was open before and is not to be used.
    pub fn replacement() -> Self {
        Self { needs_new: true, ..Self::new(ServerState::Wanted) }
    }

    /// Whether it was open before and has not answered since: the server may have closed it.
    pub const fn is_untried(&self) -> bool {
        self.is_reused && !self.has_answered
    }

    /// Whether it is open, and no request or response is under way.
    pub fn is_idle(&self) -> bool {
        let is_used = self.prefetch.is_some() || !self.assigned.is_empty();
        self.state == ServerState::Open && !is_used && self.outgoing.is_empty() && self.body.is_none()
    }

    /// The outgoing bytes that can be appended.
    pub fn room(&self) -> usize {
        MOST_OUTGOING.saturating_sub(self.outgoing.len())
    }

    /// Appends what fits to the outgoing bytes.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        let count = self.room().min(bytes.len());
        self.outgoing.extend(&bytes[..count]);
        count
    }
}

/// Takes at most `most` bytes from the front of a queue.
pub fn take(from: &mut VecDeque<u8>, most: usize, sink: &mut impl FnMut(&[u8])) -> usize {
    let count = most.min(from.len());
    let (first, second) = from.as_slices();
    let split = count.min(first.len());
    sink(&first[..split]);
    sink(&second[..count - split]);
    from.drain(..count);
    count
}
