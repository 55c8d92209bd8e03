//! The time of a connection, in slices: those that are settled leave in front, those that wait for evidence are kept.

use std::collections::VecDeque;

use airpath_core::Instant;

use super::{Cause, Confidence, Piece};

/// Slices that may be pending; of more, the oldest are settled with what is known.
const PENDING: usize = 256;

/// What a slice of time goes by with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// It is clear.
    Known(Cause, Confidence),
    /// What the sender is held by, unless the link turns out to be full in this round trip.
    Limited(Limit, u32),
    /// The radio's log says that acknowledgements cannot get through; the data may.
    Unanswered(u32),
    /// Silence, if what follows does not show that answers always take so long.
    Silence(u32),
}

/// What holds a sender that has data outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Its application: all that it has is sent.
    Application,
    /// The receiver's window.
    Receiver,
    /// Its own window.
    Window,
    /// A loss that it repairs.
    Recovery,
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    begin: (Instant, u64),
    end: (Instant, u64),
    label: Label,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    pending: VecDeque<Slice>,
    /// The last settled piece, which the next may prolong.
    open: Option<Piece>,
}

impl Timeline {
    /// Adds the time between two frames.
    pub(super) fn push(&mut self, begin: (Instant, u64), end: (Instant, u64), label: Label) {
        match self.pending.back_mut() {
            Some(last) if last.label == label && last.end.0 == begin.0 => last.end = end,
            _ => self.pending.push_back(Slice { begin, end, label }),
        }
    }

    /// Gives the pending time from `begin` to `end` another label, where `which` accepts the one that it has.
    pub(super) fn paint(&mut self, begin: Instant, end: Instant, label: Label, which: impl Fn(Label) -> bool) {
        if begin >= end {
            return;
        }
        let first = self.pending.partition_point(|slice| slice.end.0 <= begin);
        let mut index = first;
        while index < self.pending.len() && self.pending[index].begin.0 < end {
            let slice = self.pending[index];
            if !which(slice.label) {
                index += 1;
                continue;
            }
            self.pending.remove(index);
            let from = slice.begin.0.max(begin);
            let to = slice.end.0.min(end);
            let parts = [
                Slice { end: (from, slice.end.1), ..slice },
                Slice {
                    begin: if from == slice.begin.0 { slice.begin } else { (from, slice.begin.1) },
                    end: if to == slice.end.0 { slice.end } else { (to, slice.end.1) },
                    label,
                },
                Slice { begin: (to, slice.begin.1), ..slice },
            ];
            for part in parts.into_iter().filter(|part| part.begin.0 < part.end.0) {
                self.pending.insert(index, part);
                index += 1;
            }
        }
    }

    /// Decides the slices of a round.
    pub(super) fn resolve(&mut self, round: u32, decide: impl Fn(Label) -> (Cause, Confidence)) {
        for slice in &mut self.pending {
            let (Label::Limited(_, of) | Label::Silence(of) | Label::Unanswered(of)) = slice.label else { continue };
            if of == round {
                let (cause, confidence) = decide(slice.label);
                slice.label = Label::Known(cause, confidence);
            }
        }
    }

    /// Gives out what is settled.
    pub(super) fn settle(&mut self, settled: &mut impl FnMut(&Piece)) {
        loop {
            let full = self.pending.len() > PENDING;
            let Some(front) = self.pending.front() else { return };
            let (cause, confidence) = match front.label {
                Label::Known(cause, confidence) => (cause, confidence),
                label if full => assumed(label),
                _ => return,
            };
            // The last slice may still be painted over: it ends now.
            if self.pending.len() == 1 {
                return;
            }
            let slice = self.pending.pop_front().expect("there is a front");
            self.give(slice, cause, confidence, settled);
        }
    }

    /// Gives out everything.
    pub(super) fn finish(&mut self, settled: &mut impl FnMut(&Piece)) {
        while let Some(slice) = self.pending.pop_front() {
            let (cause, confidence) = match slice.label {
                Label::Known(cause, confidence) => (cause, confidence),
                label => assumed(label),
            };
            self.give(slice, cause, confidence, settled);
        }
        if let Some(piece) = self.open.take() {
            settled(&piece);
        }
    }

    fn give(&mut self, slice: Slice, cause: Cause, confidence: Confidence, settled: &mut impl FnMut(&Piece)) {
        match &mut self.open {
            Some(open) if open.cause == cause && open.confidence == confidence => {
                (open.end, open.last_frame) = slice.end;
            }
            open => {
                let piece = Piece {
                    cause,
                    confidence,
                    begin: slice.begin.0,
                    end: slice.end.0,
                    first_frame: slice.begin.1,
                    last_frame: slice.end.1,
                };
                if let Some(before) = open.replace(piece) {
                    settled(&before);
                }
            }
        }
    }
}

/// The cause of a slice for which no evidence came.
fn assumed(label: Label) -> (Cause, Confidence) {
    let cause = match label {
        Label::Known(cause, confidence) => return (cause, confidence),
        Label::Limited(Limit::Application, _) => Cause::Application,
        Label::Limited(Limit::Receiver, _) => Cause::ReceiveWindow,
        Label::Limited(Limit::Window, _) => Cause::SlowStart,
        Label::Limited(Limit::Recovery, _) => Cause::Recovery,
        Label::Silence(_) | Label::Unanswered(_) => Cause::Radio,
    };
    (cause, Confidence::Low)
}
