//! A server connection as a session uses it: its state, and the bytes for it.

use std::collections::VecDeque;

use crate::http::body::Body;

/// Bytes of requests that wait for a server connection.
const MOST_OUTGOING: usize = 64 << 10;

/// A server connection.
#[derive(Debug)]
pub struct Server {
    pub state: ServerState,
    /// Exchanges whose responses it has not completed, in their order.
    pub assigned: VecDeque<u64>,
    pub has_answered: bool,
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
    Open,
    /// The server will send nothing more, or it is not to be used any more.
    Ended,
}

impl Server {
    pub const fn new(state: ServerState) -> Self {
        Self { state, assigned: VecDeque::new(), has_answered: false, body: None, outgoing: VecDeque::new() }
    }

    pub fn is_usable(&self) -> bool {
        self.state != ServerState::Ended
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
