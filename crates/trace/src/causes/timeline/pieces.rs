//! Settled slices joined to pieces.

use std::collections::VecDeque;

use airpath_core::Instant;
use airpath_observe::End;

use super::label::{KnownWait, View};
use super::slice::Slice;
use crate::causes::{Cause, Confidence, Piece, Stamp};

/// Joins settled slices of one cause, and names the end that fills a full link.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    /// The last piece, which the next slice may extend.
    open: Option<Piece>,
    /// The end of the capture; the server until it is known.
    near: Option<End>,
    /// The times in which acknowledgements of the far end waited in a queue, that are not settled.
    return_queues: VecDeque<(Instant, Instant)>,
    /// The times of each kind of wait that are not settled, sorted and without overlap.
    waits: [VecDeque<(Instant, Instant)>; KnownWait::COUNT],
    /// Whether the capture lacks the begin of the connection: all has low confidence.
    pub is_incomplete: bool,
}

impl Pieces {
    /// Sets the end of the capture. Returns whether it is another one than before.
    pub fn set_near(&mut self, near: End) -> bool {
        self.near.replace(near).unwrap_or(End::Server) != near
    }

    /// Acknowledgements of the far end waited in a queue from `begin` to `end`.
    /// They are then as even as those of data from a full link.
    pub fn return_queued(&mut self, begin: Instant, end: Instant) {
        join(&mut self.return_queues, begin, end);
    }

    /// Packets waited from `begin` to `end`. `begin` does not decrease from call to call.
    pub fn waited(&mut self, begin: Instant, end: Instant, kind: KnownWait) {
        if begin < end {
            join(&mut self.waits[kind as usize], begin, end);
        }
    }

    /// Adds a settled slice. Where the acknowledgements of its data queued, their link was full.
    pub fn add(&mut self, mut slice: Slice, cause: Cause, confidence: Confidence, settled: &mut impl FnMut(&Piece)) {
        while self.return_queues.front().is_some_and(|(_, until)| *until <= slice.begin.time) {
            self.return_queues.pop_front();
        }
        let mut next = 0;
        while slice.filled == Some(View::Sender)
            && let Some(&(begin, end)) = self.return_queues.get(next)
            && begin < slice.end.time
        {
            let before = Stamp { time: begin.max(slice.begin.time), frame: slice.begin.frame };
            let after = Stamp { time: end.min(slice.end.time), frame: slice.end.frame };
            if slice.begin.time < before.time {
                self.add_part(slice.part(slice.begin, before, slice.label), cause, confidence, settled);
            }
            let queued = Slice { filled: Some(View::Receiver), ..slice.part(before, after, slice.label) };
            self.add_part(queued, cause, confidence, settled);
            if after.time >= slice.end.time {
                return;
            }
            slice = slice.part(Stamp { frame: slice.begin.frame, ..after }, slice.end, slice.label);
            next += 1;
        }
        self.add_part(slice, cause, confidence, settled);
    }

    fn add_part(&mut self, slice: Slice, cause: Cause, confidence: Confidence, settled: &mut impl FnMut(&Piece)) {
        for times in &mut self.waits {
            while times.front().is_some_and(|(_, until)| *until <= slice.begin.time) {
                times.pop_front();
            }
        }
        self.add_waiting(slice, &KnownWait::ALL, (cause, confidence), settled);
    }

    /// Adds a part of a slice with a cause, unless one of the `kinds` of waits is the cause.
    fn add_waiting(
        &mut self,
        slice: Slice,
        kinds: &[KnownWait],
        limit: (Cause, Confidence),
        settled: &mut impl FnMut(&Piece),
    ) {
        let Some((kind, others)) = kinds.split_first() else { return self.join_part(slice, limit, settled) };
        let Some(cause) = kind.cause(limit.0) else { return self.add_waiting(slice, others, limit, settled) };
        let filled = if *kind == KnownWait::ReturnQueue { Some(View::Receiver) } else { slice.filled };
        let mut rest = Some(slice);
        while let Some((part, is_inside)) = take_part(&mut rest, &self.waits[*kind as usize]) {
            match is_inside {
                true => self.join_part(Slice { filled, ..part }, cause, settled),
                false => self.add_waiting(part, others, limit, settled),
            }
        }
    }

    /// Joins a part of a slice with the open piece, or begins another.
    fn join_part(&mut self, slice: Slice, (cause, confidence): (Cause, Confidence), settled: &mut impl FnMut(&Piece)) {
        let full_by =
            slice.filled.filter(|_| cause.is_full_link()).map(|view| view.sender(self.near.unwrap_or(End::Server)));
        let confidence = if self.is_incomplete { Confidence::Low } else { confidence.min(slice.most) };
        match &mut self.open {
            Some(open) if open.cause == cause && open.confidence == confidence && open.full_by == full_by => {
                (open.end, open.last_frame) = (slice.end.time, slice.end.frame);
                open.delivered.iter_mut().zip(slice.delivered).for_each(|(sum, bytes)| *sum += u64::from(bytes));
            }
            open => {
                let piece = Piece {
                    cause,
                    confidence,
                    full_by,
                    begin: slice.begin.time,
                    end: slice.end.time,
                    first_frame: slice.begin.frame,
                    last_frame: slice.end.frame,
                    delivered: slice.delivered.map(u64::from),
                };
                if let Some(before) = open.replace(piece) {
                    settled(&before);
                }
            }
        }
    }

    /// Ends the last piece.
    pub fn finish(&mut self, settled: &mut impl FnMut(&Piece)) {
        if let Some(piece) = self.open.take() {
            settled(&piece);
        }
    }

    /// Returns all unused memory.
    pub fn shrink_to_fit(&mut self) {
        self.return_queues.shrink_to_fit();
        self.waits.iter_mut().for_each(VecDeque::shrink_to_fit);
    }
}

/// Adds a time to a list of times without overlap; `begin` is no earlier than that of the last.
fn join(times: &mut VecDeque<(Instant, Instant)>, begin: Instant, end: Instant) {
    match times.back_mut() {
        Some((_, until)) if begin <= *until => *until = end.max(*until),
        _ => times.push_back((begin, end)),
    }
}

/// Takes the first part of a slice that is wholly inside or wholly outside of `times`; returns
/// whether it is inside.
fn take_part(rest: &mut Option<Slice>, times: &VecDeque<(Instant, Instant)>) -> Option<(Slice, bool)> {
    let slice = rest.take()?;
    let (until, is_inside) = match times.iter().find(|(_, end)| *end > slice.begin.time) {
        Some((begin, _)) if *begin > slice.begin.time => (*begin, false),
        Some((_, end)) => (*end, true),
        None => (slice.end.time, false),
    };
    if until >= slice.end.time {
        return Some((slice, is_inside));
    }
    let first = slice.part(slice.begin, Stamp { time: until, frame: slice.end.frame }, slice.label);
    *rest = Some(slice.part(Stamp { time: until, frame: slice.begin.frame }, slice.end, slice.label));
    Some((first, is_inside))
}
