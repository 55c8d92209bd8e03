//! The streams of a connection: bytes are counted, and sent as zeros.

use bytes::Bytes;
use quinn_proto::{Connection as QuinnConnection, Dir, StreamEvent, StreamId, WriteError};

/// What is written at once.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The streams of one end, in the order in which they were opened or accepted.
#[derive(Debug, Default)]
pub struct Streams {
    list: Vec<State>,
    /// Written bytes that quinn has not taken yet, of all streams.
    waiting: u64,
}

#[derive(Debug)]
pub struct State {
    id: StreamId,
    /// Written bytes that quinn has not taken yet.
    waiting: u64,
    received: u64,
    read: u64,
    /// The application has closed the stream.
    closed: bool,
    /// Quinn has closed it, too.
    finished: bool,
    /// The peer has acknowledged everything, with the end of the stream.
    acknowledged: bool,
    peer_closed: bool,
    /// Priority that quinn does not have yet.
    priority: Option<i32>,
}

impl State {
    const fn new(id: StreamId) -> Self {
        let (closed, finished, acknowledged, peer_closed) = (false, false, false, false);
        Self { id, waiting: 0, received: 0, read: 0, closed, finished, acknowledged, peer_closed, priority: None }
    }
}

impl State {
    pub const fn unsent(&self) -> u64 {
        self.waiting
    }

    pub const fn readable(&self) -> u64 {
        self.received - self.read
    }

    pub const fn received(&self) -> u64 {
        self.received
    }

    pub const fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    pub const fn is_acknowledged(&self) -> bool {
        self.acknowledged
    }
}

impl Streams {
    pub fn first(&self) -> Option<&State> {
        self.list.first()
    }

    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Opens a bidirectional stream. `None` while the peer allows no more streams.
    pub fn open(&mut self, quinn: &mut QuinnConnection) -> Option<usize> {
        let id = quinn.streams().open(Dir::Bi)?;
        self.list.push(State::new(id));
        Some(self.list.len() - 1)
    }

    pub fn handle_event(&mut self, quinn: &mut QuinnConnection, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir: Dir::Bi } => {
                while let Some(id) = quinn.streams().accept(Dir::Bi) {
                    self.list.push(State::new(id));
                    self.receive(quinn, id);
                }
            }
            StreamEvent::Readable { id } => self.receive(quinn, id),
            StreamEvent::Finished { id } => {
                if let Some(state) = self.list.iter_mut().find(|state| state.id == id) {
                    state.acknowledged = true;
                }
            }
            // The caller flushes all streams after each event.
            StreamEvent::Writable { .. } | StreamEvent::Available { .. } | StreamEvent::Opened { dir: Dir::Uni } => {}
            StreamEvent::Stopped { .. } => {}
        }
    }

    /// Reads what has arrived. The application reads all of it at the same time, so the window
    /// opens when data arrive.
    fn receive(&mut self, quinn: &mut QuinnConnection, id: StreamId) {
        let Some(state) = self.list.iter_mut().rev().find(|state| state.id == id) else { return };
        let mut stream = quinn.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => state.received += chunk.bytes.len() as u64,
                Ok(None) => {
                    state.peer_closed = true;
                    break;
                }
                // Blocked, or reset by the peer: the connection reports why it ended.
                Err(_) => break,
            }
        }
        // Whether credit is to be sent: the caller polls for datagrams anyway.
        let _ = chunks.finalize();
    }

    /// Gives written bytes to quinn, as far as it takes them, and the ends of closed streams.
    /// Returns whether quinn took anything.
    pub fn flush(&mut self, quinn: &mut QuinnConnection) -> bool {
        let mut taken = false;
        for state in &mut self.list {
            if let Some(priority) = state.priority.take() {
                // It fails only where the stream has ended.
                let _ = quinn.send_stream(state.id).set_priority(priority);
            }
            while state.waiting > 0 {
                let length = state.waiting.min(ZEROS.len() as u64) as usize;
                let mut chunks = [Bytes::from_static(&ZEROS[..length])];
                match quinn.send_stream(state.id).write_chunks(&mut chunks) {
                    Ok(written) => {
                        taken = true;
                        state.waiting -= written.bytes as u64;
                        self.waiting -= written.bytes as u64;
                    }
                    // Quinn reports `Writable`, or the end of the connection.
                    Err(WriteError::Blocked | WriteError::Stopped(_) | WriteError::ClosedStream) => break,
                }
            }
            if state.closed && !state.finished && state.waiting == 0 {
                state.finished = true;
                taken = true;
                // It fails only where the peer has refused the stream or the connection is lost.
                let _ = quinn.send_stream(state.id).finish();
            }
        }
        taken
    }

    /// Whether [`Self::flush`] has nothing to do.
    pub fn is_flushed(&self) -> bool {
        self.waiting == 0 && self.list.iter().all(|state| state.finished || !state.closed)
    }

    /// Whether there are streams, and each has ended in both directions.
    pub fn are_done(&self) -> bool {
        !self.list.is_empty() && self.list.iter().all(|state| state.acknowledged && state.peer_closed)
    }

    pub fn stream(&mut self, index: usize) -> Stream<'_> {
        Stream { state: &mut self.list[index], waiting: &mut self.waiting }
    }
}

/// One stream of a connection, as an application uses it.
#[derive(Debug)]
pub struct Stream<'a> {
    state: &'a mut State,
    waiting: &'a mut u64,
}

impl Stream<'_> {
    /// Queues bytes to send.
    pub const fn write(&mut self, bytes: u64) {
        self.state.waiting += bytes;
        *self.waiting += bytes;
    }

    /// Sets the priority of what is written from now on, before the first write: the highest is
    /// sent first, equal ones in turn. It is 0 at the start.
    pub const fn set_priority(&mut self, priority: i32) {
        self.state.priority = Some(priority);
    }

    /// Ends the stream after the written data.
    pub const fn close(&mut self) {
        self.state.closed = true;
    }

    /// Bytes that were written, and for which the connection has had no room in its send window.
    pub const fn unsent(&self) -> u64 {
        self.state.unsent()
    }

    /// Bytes that arrived in order and are unread.
    pub const fn readable(&self) -> u64 {
        self.state.readable()
    }

    /// Reads bytes that arrived.
    ///
    /// # Panics
    /// If fewer bytes are readable.
    pub fn read(&mut self, bytes: u64) {
        assert!(bytes <= self.readable(), "more is read than has arrived");
        self.state.read += bytes;
    }

    /// All bytes that arrived in order so far.
    pub const fn received(&self) -> u64 {
        self.state.received()
    }

    /// Whether the peer has ended its stream.
    pub const fn peer_closed(&self) -> bool {
        self.state.peer_closed()
    }

    /// Whether the peer has acknowledged all bytes and the end of the stream.
    pub const fn is_acknowledged(&self) -> bool {
        self.state.is_acknowledged()
    }
}
