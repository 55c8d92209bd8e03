//! Reassembly of one direction of a connection: segments in, the stream's bytes out in order, each
//! once.
//!
//! The time of a [`Run`] is when its first byte and all bytes before it had passed the capture
//! point. Bytes that the capture missed, or that the snap length cut, are emitted as
//! [`Content::Missing`], so that a reader keeps its count.

use airpath_core::Instant;

/// Time and frame of an event. Marks are ordered by time, then by frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Time.
    pub time: Instant,
    /// The frame's number.
    pub frame: u64,
}

/// The payload of a segment, in the offsets of its stream.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// When it passed.
    pub mark: Mark,
    /// Offset of its first byte.
    pub offset: i64,
    /// Offset of the other direction's stream up to which its sender had received.
    pub acknowledged: Option<i64>,
    /// Bytes of payload.
    pub length: u32,
    /// The captured bytes, from its beginning.
    pub captured: &'a [u8],
}

/// A part of the stream, in order.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// When its first byte and all before it had passed.
    pub mark: Mark,
    /// Offset of its first byte.
    pub offset: i64,
    /// Up to where its sender had received the other direction's stream.
    pub acknowledged: Option<i64>,
    /// Whether a segment begins with its first byte, as messages usually do.
    pub begins_segment: bool,
    /// Its content.
    pub content: Content<'a>,
}

/// The content of a part of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Captured bytes.
    Bytes(&'a [u8]),
    /// The number of bytes that were not captured.
    Missing(u64),
}

/// Reads a stream.
pub trait Reader {
    /// Takes the next part of the stream.
    fn read(&mut self, run: Run<'_>);

    /// The offset from which on the reader needs the bytes themselves; of earlier bytes it needs
    /// the count.
    fn wants_from(&self) -> i64;
}

/// Out-of-order bytes that are buffered, at most.
const HELD_BYTES: usize = 1 << 20;

/// Out-of-order segments that are buffered, at most.
const HELD_PIECES: usize = 2048;

/// Reassembles one direction.
#[derive(Debug, Default)]
pub struct Stream {
    /// The next offset; `None` before the first segment of a stream captured without its beginning.
    next: Option<i64>,
    /// The mark of the last byte that was read.
    latest: Option<Mark>,
    /// Out-of-order pieces by offset, without overlaps.
    held: Vec<Held>,
    /// Bytes in `held`.
    held_bytes: usize,
}

/// An out-of-order piece.
#[derive(Debug)]
struct Held {
    mark: Mark,
    offset: i64,
    acknowledged: Option<i64>,
    begins_segment: bool,
    length: u32,
    captured: Vec<u8>,
}

impl Held {
    fn end(&self) -> i64 {
        self.offset.saturating_add(self.length.into())
    }
}

impl Stream {
    /// A stream captured from its beginning: the first byte has offset 0.
    pub fn from_its_beginning() -> Self {
        Self { next: Some(0), ..Self::default() }
    }

    /// Takes the payload of a segment, and passes the bytes that are now in order to `reader`. Of
    /// retransmitted bytes the first copy counts.
    pub fn push(&mut self, piece: Piece<'_>, reader: &mut impl Reader) {
        if piece.length == 0 {
            return;
        }
        let next = *self.next.get_or_insert(piece.offset);
        let end = piece.offset.saturating_add(piece.length.into());
        if end <= next {
            return;
        }
        if self.held.is_empty() && piece.offset <= next {
            let (part, begins_segment) = (cut(&piece, next, end), piece.offset == next);
            self.emit(part, begins_segment, reader);
            return;
        }
        self.hold(&piece, piece.offset.max(next), end, reader.wants_from());
        self.release(reader);
        while self.held_bytes > HELD_BYTES || self.held.len() > HELD_PIECES {
            self.skip_hole(reader);
            self.release(reader);
        }
    }

    /// Ends the stream: skips missing bytes, and reads the buffered pieces.
    pub fn finish(&mut self, reader: &mut impl Reader) {
        while !self.held.is_empty() {
            self.skip_hole(reader);
            self.release(reader);
        }
    }

    /// Buffers the parts of `piece` between `from` and `end` that are not buffered yet.
    fn hold(&mut self, piece: &Piece<'_>, mut from: i64, end: i64, wants_from: i64) {
        let mut at = self.held.partition_point(|held| held.end() <= from);
        while from < end {
            let occupied = self.held.get(at).map(|held| (held.offset, held.end()));
            if let Some((_, until)) = occupied.filter(|(offset, _)| *offset <= from) {
                from = until;
            } else {
                let until = occupied.map_or(end, |(offset, _)| offset.min(end));
                let part = cut(piece, from, until);
                let captured = if until <= wants_from { Vec::new() } else { part.captured.to_vec() };
                self.held_bytes += captured.len();
                self.held.insert(
                    at,
                    Held {
                        mark: part.mark,
                        offset: from,
                        acknowledged: part.acknowledged,
                        begins_segment: from == piece.offset,
                        length: part.length,
                        captured,
                    },
                );
                from = until;
            }
            at += 1;
        }
    }

    /// Reads the buffered pieces that are in order.
    fn release(&mut self, reader: &mut impl Reader) {
        let mut next = self.next.unwrap_or_default();
        let mut ready = 0;
        for held in &self.held {
            if held.offset != next {
                break;
            }
            next = held.end();
            ready += 1;
        }
        if ready == 0 {
            return;
        }
        let rest = self.held.split_off(ready);
        for held in std::mem::replace(&mut self.held, rest) {
            self.held_bytes -= held.captured.len();
            let piece = Piece {
                mark: held.mark,
                offset: held.offset,
                acknowledged: held.acknowledged,
                length: held.length,
                captured: &held.captured,
            };
            self.emit(piece, held.begins_segment, reader);
        }
    }

    /// Skips the bytes before the first buffered piece.
    fn skip_hole(&mut self, reader: &mut impl Reader) {
        let Some(first) = self.held.first() else { return };
        let from = self.next.unwrap_or(first.offset);
        self.next = Some(first.offset);
        let mark = self.latest.unwrap_or(first.mark);
        let content = Content::Missing(first.offset.saturating_sub(from).unsigned_abs());
        reader.read(Run { mark, offset: from, acknowledged: None, begins_segment: false, content });
    }

    /// Reads a piece that is in order: its captured bytes, then the missing ones.
    fn emit(&mut self, piece: Piece<'_>, begins_segment: bool, reader: &mut impl Reader) {
        let mark = self.latest.map_or(piece.mark, |latest| latest.max(piece.mark));
        self.latest = Some(mark);
        let Piece { offset, acknowledged, length, captured, .. } = piece;
        self.next = Some(offset.saturating_add(length.into()));
        if !captured.is_empty() {
            reader.read(Run { mark, offset, acknowledged, begins_segment, content: Content::Bytes(captured) });
        }
        let missing = u64::from(length) - captured.len() as u64;
        if missing > 0 {
            let offset = offset.saturating_add_unsigned(captured.len() as u64);
            let begins_segment = begins_segment && captured.is_empty();
            reader.read(Run { mark, offset, acknowledged, begins_segment, content: Content::Missing(missing) });
        }
    }
}

/// The part of `piece` from `from` to `end`, which lie within it.
fn cut<'a>(piece: &Piece<'a>, from: i64, end: i64) -> Piece<'a> {
    // Both differences lie within the piece's length, a `u32`.
    let skipped = from.saturating_sub(piece.offset).unsigned_abs() as usize;
    let length = end.saturating_sub(from).unsigned_abs().min(piece.length.into()) as u32;
    // A capture may hold more than the length: padding does not belong to the stream.
    let captured = &piece.captured[..piece.captured.len().min(piece.length as usize)];
    let captured = captured.get(skipped..).unwrap_or_default();
    let captured = &captured[..captured.len().min(length as usize)];
    Piece { mark: piece.mark, offset: from, acknowledged: piece.acknowledged, length, captured }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Transcript {
        bytes: Vec<u8>,
        runs: Vec<(u64, i64, Option<usize>)>,
    }

    impl Reader for Transcript {
        fn read(&mut self, run: Run<'_>) {
            match run.content {
                Content::Bytes(bytes) => {
                    self.bytes.extend(bytes);
                    self.runs.push((run.mark.frame, run.offset, None));
                }
                Content::Missing(missing) => {
                    self.bytes.extend(std::iter::repeat_n(b'?', missing as usize));
                    self.runs.push((run.mark.frame, run.offset, Some(missing as usize)));
                }
            }
        }

        fn wants_from(&self) -> i64 {
            i64::MIN
        }
    }

    fn piece(frame: u64, offset: i64, text: &str) -> Piece<'_> {
        let mark = Mark { time: Instant::from_nanos(frame), frame };
        Piece { mark, offset, acknowledged: None, length: text.len() as u32, captured: text.as_bytes() }
    }

    fn read(pieces: &[Piece<'_>]) -> Transcript {
        let mut transcript = Transcript::default();
        let mut stream = Stream::from_its_beginning();
        for piece in pieces {
            stream.push(*piece, &mut transcript);
        }
        stream.finish(&mut transcript);
        transcript
    }

    #[test]
    fn bytes_have_the_time_at_which_all_before_them_had_passed() {
        let transcript = read(&[piece(1, 0, "ab"), piece(2, 4, "ef"), piece(3, 6, "gh"), piece(4, 2, "cd")]);
        assert_eq!(transcript.bytes, b"abcdefgh");
        assert_eq!(transcript.runs, [(1, 0, None), (4, 2, None), (4, 4, None), (4, 6, None)]);
    }

    #[test]
    fn overlapping_copies_give_each_byte_once_and_the_first_copy_counts() {
        let pieces = [piece(1, 4, "efgh"), piece(2, 8, "ij"), piece(3, 2, "CDEFGHIJKL"), piece(4, 0, "abcd")];
        assert_eq!(read(&pieces).bytes, b"abCDefghijKL");
    }

    #[test]
    fn missing_bytes_do_not_delay_later_ones() {
        let transcript = read(&[piece(1, 0, "ab"), piece(2, 4, "ef"), piece(3, 6, "gh")]);
        assert_eq!(transcript.bytes, b"ab??efgh");
        assert_eq!(transcript.runs, [(1, 0, None), (1, 2, Some(2)), (2, 4, None), (3, 6, None)]);
    }

    #[test]
    fn bytes_beyond_the_snap_length_are_missing() {
        let mut cut_off = piece(1, 0, "abc");
        cut_off.length = 5;
        assert_eq!(read(&[cut_off, piece(2, 5, "fg")]).bytes, b"abc??fg");
    }

    #[test]
    fn the_buffer_is_bounded() {
        let text = "x".repeat(1000);
        let mut transcript = Transcript::default();
        let mut stream = Stream::from_its_beginning();
        for number in 1..3000 {
            stream.push(piece(number, number as i64 * 1000, &text), &mut transcript);
            assert!(stream.held_bytes <= HELD_BYTES, "after segment {number}");
        }
        assert_eq!(transcript.runs[0], (1, 0, Some(1000)), "the hole was skipped when the buffer was full");
    }
}
