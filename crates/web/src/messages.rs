//! The messages of one direction: begin and end of each.
//!
//! The [`Side`] interprets a message, and decides on the framing of its body, which for a response
//! depends on the request.

use crate::chunked::{Chunked, Step};
use crate::head::{self, Beginning, MAX_HEAD};
use crate::stream::{Content, Mark, Reader, Run};

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// No body.
    Empty,
    /// A length in bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// The body extends to the end of the stream.
    UntilClose,
    /// The last message: the rest of the stream belongs to another protocol.
    Tunnel,
}

/// The head of a message, as far as it was captured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    /// Its bytes; none for a response of HTTP/0.9.
    pub bytes: &'a [u8],
    /// When its first byte had passed.
    pub first: Mark,
    /// When its last byte had.
    pub last: Mark,
    /// Offset of its first byte.
    pub offset: i64,
    /// Offset up to which its sender had received the other stream when it sent the first byte.
    pub acknowledged: Option<i64>,
    /// Whether the capture missed messages before it.
    pub after_loss: bool,
}

/// The end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// When its last byte had passed.
    pub last: Mark,
    /// Offset after it.
    pub end: i64,
    /// Bytes of its head.
    pub head: u64,
    /// Bytes of its body as sent.
    pub body: u64,
    /// Bytes of its content: the body without chunk framing.
    pub content: u64,
    /// Whether the message is complete by its framing; a body to the end of the stream is when the
    /// stream is closed.
    pub complete: bool,
    /// Whether its end is exact; else it extends to the next recognised message.
    pub exact: bool,
}

/// One of the two directions: recognises and interprets its messages.
pub(super) trait Side {
    /// Classifies the first bytes of a message.
    fn beginning(&self, bytes: &[u8]) -> Beginning;
    /// Whether `bytes` surely begin a message.
    fn surely_begins(&self, bytes: &[u8]) -> bool;
    /// Whether a message without a head may come now (HTTP/0.9).
    fn may_be_bare(&self) -> bool;
    /// A head ended; returns the framing of the body.
    fn head(&mut self, head: &Head<'_>) -> Framing;
    /// The message of the last head ended.
    fn tail(&mut self, tail: &Tail);
    /// Whether the body may be absent: the server refused `Expect: 100-continue` (RFC 9110
    /// §10.1.1).
    fn body_may_be_absent(&self) -> bool;
}

/// The position in the messages of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Between,
    Head,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    /// Out of synchronization; no message begins before this offset.
    Lost(i64),
    /// No more messages.
    Foreign,
}

/// An incomplete message.
#[derive(Clone, Copy, Debug)]
struct Open {
    first: Mark,
    last: Mark,
    offset: i64,
    acknowledged: Option<i64>,
    head: u64,
    body: u64,
    content: u64,
}

/// Reads one direction's messages.
#[derive(Debug)]
pub(super) struct Messages {
    state: State,
    /// The bytes of an incomplete head.
    head: Vec<u8>,
    /// The incomplete message.
    open: Option<Open>,
    after_loss: bool,
    /// Recognised messages.
    count: u64,
}

impl Messages {
    /// For a stream that was captured from its beginning, or not.
    pub(super) const fn new(from_its_beginning: bool) -> Self {
        Self { state: State::Between, head: Vec::new(), open: None, after_loss: !from_its_beginning, count: 0 }
    }

    /// Whether the stream is not HTTP, or no message can follow.
    pub(super) const fn is_foreign(&self) -> bool {
        matches!(self.state, State::Foreign) || self.count == 0 && matches!(self.state, State::Lost(_))
    }

    /// The rest of the stream belongs to another protocol.
    pub(super) fn become_foreign(&mut self) {
        self.state = State::Foreign;
        self.open = None;
        self.head = Vec::new();
    }

    /// Ends the stream: it was closed, or, with `closed` false, the capture ended or a RST came.
    pub(super) fn end(&mut self, closed: bool, side: &mut impl Side) {
        if self.state == State::Head
            && let Some(open) = self.open
        {
            self.head_is_over(open, true, side);
        }
        if self.open.is_some() {
            let complete = closed && self.state == State::UntilClose;
            self.close(complete, complete, side);
        }
        self.state = State::Foreign;
    }

    /// Reads a run.
    pub(super) fn read(&mut self, run: Run<'_>, side: &mut impl Side) {
        match run.content {
            Content::Missing(missing) => self.skip_missing(missing, &run, side),
            Content::Bytes(mut bytes) => {
                let mut offset = run.offset;
                while !bytes.is_empty() {
                    let taken = self.take(bytes, offset, &run, side);
                    offset = offset.saturating_add_unsigned(taken as u64);
                    bytes = &bytes[taken..];
                }
            }
        }
    }

    /// The offset from which on the bytes are needed, for a stream that is read up to `offset`.
    pub(super) fn wants_from(&self, offset: i64) -> i64 {
        match self.state {
            State::Length(left) => offset.saturating_add_unsigned(left),
            State::Chunked(chunked) => offset.saturating_add_unsigned(chunked.ahead()),
            State::UntilClose | State::Foreign => i64::MAX,
            State::Lost(not_before) => not_before,
            State::Between | State::Head => offset,
        }
    }

    /// Consumes some of `bytes`, at least one; returns the number.
    fn take(&mut self, bytes: &[u8], offset: i64, run: &Run<'_>, side: &mut impl Side) -> usize {
        match self.state {
            State::Between => {
                // RFC 9112 §2.2: empty lines before a message are skipped.
                let empty = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                if empty == 0 {
                    let Run { mark, acknowledged, .. } = *run;
                    self.open =
                        Some(Open { first: mark, last: mark, offset, acknowledged, head: 0, body: 0, content: 0 });
                    self.head.clear();
                    self.state = State::Head;
                    return self.take(bytes, offset, run, side);
                }
                empty
            }
            State::Head => self.take_head(bytes, run, side),
            State::Length(left) => {
                let nothing_yet = self.open.is_some_and(|open| open.body == 0);
                if nothing_yet && run.begins_segment && side.body_may_be_absent() && side.surely_begins(bytes) {
                    self.close(true, true, side);
                    return self.take(bytes, offset, run, side);
                }
                let taken = (bytes.len() as u64).min(left);
                self.count_body(taken, taken, run.mark);
                self.state = State::Length(left - taken);
                if left == taken {
                    self.close(true, true, side);
                }
                // No more than the length of a slice.
                taken as usize
            }
            State::Chunked(mut chunked) => match chunked.step(bytes) {
                Step::Took { bytes, content } => {
                    self.count_body(bytes as u64, content, run.mark);
                    self.state = State::Chunked(chunked);
                    bytes
                }
                Step::Over(bytes) => {
                    self.count_body(bytes as u64, 0, run.mark);
                    self.close(true, true, side);
                    bytes
                }
                Step::Broken => {
                    self.lose(offset);
                    bytes.len()
                }
            },
            State::UntilClose => {
                self.count_body(bytes.len() as u64, bytes.len() as u64, run.mark);
                bytes.len()
            }
            State::Lost(not_before) => {
                let at_boundary = run.begins_segment && offset == run.offset && offset >= not_before;
                if at_boundary && side.surely_begins(bytes) {
                    self.close(false, false, side);
                    return self.take(bytes, offset, run, side);
                }
                self.count_body(bytes.len() as u64, bytes.len() as u64, run.mark);
                bytes.len()
            }
            State::Foreign => bytes.len(),
        }
    }

    fn take_head(&mut self, bytes: &[u8], run: &Run<'_>, side: &mut impl Side) -> usize {
        let before = self.head.len();
        let room = bytes.len().min((MAX_HEAD + 1).saturating_sub(before));
        self.head.extend_from_slice(&bytes[..room]);
        let mut open = self.open.expect("a message is open from its first byte on");
        let end = match side.beginning(&self.head) {
            Beginning::Open => None,
            Beginning::Line(length) => Some(length),
            Beginning::Head => head::end_of_head(&self.head, before),
            Beginning::Foreign if side.may_be_bare() => {
                // The bytes that looked like a head belong to the body.
                open.last = run.mark;
                open.body = before as u64;
                open.content = open.body;
                self.head.clear();
                self.head_is_over(open, false, side);
                self.state = State::UntilClose;
                self.count_body(bytes.len() as u64, bytes.len() as u64, run.mark);
                return bytes.len();
            }
            Beginning::Foreign => {
                self.open = None;
                self.head.clear();
                self.lose(run.offset);
                return bytes.len();
            }
        };
        open.last = run.mark;
        open.head = self.head.len() as u64;
        self.open = Some(open);
        match end {
            Some(end) => {
                open.head = end as u64;
                self.head.truncate(end);
                self.head_is_over(open, false, side);
                end - before
            }
            None if self.head.len() > MAX_HEAD => {
                self.head_is_over(open, true, side);
                bytes.len()
            }
            None => room,
        }
    }

    /// Interprets the head in `self.head`, and enters the next state.
    fn head_is_over(&mut self, open: Open, cut: bool, side: &mut impl Side) {
        let Open { first, last, offset, acknowledged, .. } = open;
        let head = Head { bytes: &self.head, first, last, offset, acknowledged, after_loss: self.after_loss };
        let framing = side.head(&head);
        self.open = Some(open);
        self.count += 1;
        self.after_loss = false;
        let end = offset.saturating_add_unsigned(open.head);
        self.head.clear();
        match framing {
            _ if cut => {
                // The rest of the head has an unknown length; the body ends after its own length,
                // at least.
                let body = if let Framing::Length(length) = framing { length } else { 0 };
                self.lose(end.saturating_add_unsigned(body));
            }
            Framing::Empty | Framing::Length(0) => self.close(true, true, side),
            Framing::Length(length) => self.state = State::Length(length),
            Framing::Chunked => self.state = State::Chunked(Chunked::START),
            Framing::UntilClose => self.state = State::UntilClose,
            Framing::Tunnel => {
                self.close(true, true, side);
                self.become_foreign();
            }
        }
    }

    /// Skips bytes that were not captured.
    fn skip_missing(&mut self, missing: u64, run: &Run<'_>, side: &mut impl Side) {
        let end = run.offset.saturating_add_unsigned(missing);
        match self.state {
            State::Foreign => {}
            State::Between => self.lose(run.offset),
            State::Head => {
                if let Some(open) = self.open {
                    self.begin_of_cut_head(open, side);
                }
                self.count_body(missing, missing, run.mark);
            }
            State::Length(left) if missing <= left => {
                self.count_body(missing, missing, run.mark);
                self.state = State::Length(left - missing);
                if left == missing {
                    self.close(true, true, side);
                }
            }
            State::Length(left) => {
                // The message ends within the missing bytes, and others may have begun there.
                self.count_body(left, left, run.mark);
                self.close(true, true, side);
                self.lose(end);
            }
            State::Chunked(mut chunked) if missing <= chunked.ahead() => {
                self.count_body(missing, missing, run.mark);
                chunked.skip(missing);
                self.state = State::Chunked(chunked);
            }
            State::Chunked(_) => {
                self.count_body(missing, missing, run.mark);
                self.lose(end);
            }
            State::UntilClose | State::Lost(_) => self.count_body(missing, missing, run.mark),
        }
    }

    /// The head is cut: it counts if its first bytes identify it.
    fn begin_of_cut_head(&mut self, open: Open, side: &mut impl Side) {
        if side.surely_begins(&self.head) {
            self.head_is_over(open, true, side);
        } else {
            self.open = None;
            self.head.clear();
            self.lose(open.offset);
        }
    }

    fn count_body(&mut self, bytes: u64, content: u64, mark: Mark) {
        if let Some(open) = &mut self.open {
            open.body = open.body.saturating_add(bytes);
            open.content = open.content.saturating_add(content);
            open.last = mark;
        }
    }

    fn lose(&mut self, not_before: i64) {
        self.state = State::Lost(not_before);
        self.after_loss = true;
    }

    /// Ends the open message; the next may begin.
    fn close(&mut self, complete: bool, exact: bool, side: &mut impl Side) {
        if let Some(Open { last, offset, head, body, content, .. }) = self.open.take() {
            let end = offset.saturating_add_unsigned(head).saturating_add_unsigned(body);
            side.tail(&Tail { last, end, head, body, content, complete, exact });
        }
        self.state = State::Between;
    }
}

/// The messages of a direction with their side, as the reader of a stream.
pub(super) struct Reading<'a, S> {
    pub messages: &'a mut Messages,
    pub side: S,
    /// Offset up to which the stream is read.
    pub read_up_to: &'a mut i64,
}

impl<S: Side> Reader for Reading<'_, S> {
    fn read(&mut self, run: Run<'_>) {
        let length = match run.content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Missing(missing) => missing,
        };
        self.messages.read(run, &mut self.side);
        *self.read_up_to = run.offset.saturating_add_unsigned(length);
    }

    fn wants_from(&self) -> i64 {
        self.messages.wants_from(*self.read_up_to)
    }
}
