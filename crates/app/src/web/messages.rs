//! The contents of a stream whose bytes are counted.

use std::collections::VecDeque;

/// Messages of one direction of a connection, in order, each with the number of its bytes.
///
/// The writer adds a message when it writes its bytes, the reader takes it when these have arrived.
#[derive(Clone, Debug)]
pub struct Messages<M> {
    queue: VecDeque<(u64, M)>,
    /// Offset of the first message in the queue.
    begin: u64,
    /// Offset of the end of the last one.
    end: u64,
}

impl<M> Default for Messages<M> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), begin: 0, end: 0 }
    }
}

impl<M> Messages<M> {
    /// Adds a message of this number of bytes.
    pub fn push(&mut self, bytes: u64, message: M) {
        self.end += bytes;
        self.queue.push_back((self.end, message));
    }

    /// Number of messages that were not taken.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Takes the next message, if all of it is within the first `received` bytes of the stream.
    pub fn pop(&mut self, received: u64) -> Option<M> {
        let (end, _) = self.queue.front()?;
        if *end > received {
            return None;
        }
        self.begin = *end;
        self.queue.pop_front().map(|(_, message)| message)
    }

    /// The next message with the number of its bytes within the first `received` bytes of the
    /// stream, if there are any.
    pub fn partial(&self, received: u64) -> Option<(&M, u64)> {
        let (_, message) = self.queue.front()?;
        (received > self.begin).then(|| (message, received - self.begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_or_in_part() {
        let mut messages = Messages::default();
        messages.push(10, 'a');
        messages.push(5, 'b');
        assert_eq!((messages.pop(9), messages.partial(9)), (None, Some((&'a', 9))));
        assert_eq!((messages.pop(12), messages.pop(12)), (Some('a'), None));
        assert_eq!((messages.partial(10), messages.partial(12)), (None, Some((&'b', 2))));
        assert_eq!((messages.pop(15), messages.pop(15)), (Some('b'), None));
    }
}
