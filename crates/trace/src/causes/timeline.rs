//! The time of a connection in slices: settled slices leave at the front, pending ones wait for
//! evidence.

mod label;
mod pieces;
mod slice;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use airpath_core::Instant;
use airpath_observe::End;

use super::link_load::Load;
use super::{Cause, Confidence, Piece, Stamp};
use label::KnownWait;
use label::is_clocked;
pub(super) use label::{Label, Limit, View, Waiting};
use pieces::Pieces;
use slice::{Slice, add};

/// Pending slices, at most; beyond that the oldest are settled with the evidence so far.
const PENDING: usize = 256;

#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    pending: VecDeque<Slice>,
    pieces: Pieces,
    /// Until when the receiver's view has reported the load of its link.
    reverse_until: Instant,
    /// Whether a last flight may be pending.
    has_last_flight: bool,
    /// The limit of the sender in a gap that was none, if the load of the link is not known.
    limit_in_gap: Option<Limit>,
}

impl Timeline {
    /// The timeline of a QUIC flow: the limits of its senders are not known.
    pub(super) fn of_quic() -> Self {
        Self { limit_in_gap: Some(Limit::Sender), ..Self::default() }
    }

    /// Sets the end of the capture: the sender's view has the data that it sends.
    pub(super) fn set_near(&mut self, near: End) {
        if self.pieces.set_near(near) {
            self.pending.iter_mut().for_each(|slice| slice.filled = slice.filled.map(View::other));
        }
    }

    /// Adds the time between two frames, with the bytes delivered in it.
    pub(super) fn push(&mut self, begin: Stamp, end: Stamp, label: Label, delivered: [u64; 2]) {
        let delivered = delivered.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        self.has_last_flight |= matches!(label, Label::Limited(Limit::LastFlight, _));
        match self.pending.back_mut() {
            Some(last)
                if last.label == label
                    && last.shared == [false; 2]
                    && last.reverse == Load::Free
                    && last.behind.is_none()
                    && last.most == Confidence::High
                    && last.end.time == begin.time =>
            {
                last.end = end;
                add(&mut last.delivered, delivered);
            }
            _ => self.pending.push_back(Slice {
                begin,
                end,
                label,
                shared: [false; 2],
                reverse: Load::Free,
                filled: None,
                behind: None,
                most: Confidence::High,
                delivered,
            }),
        }
    }

    /// Relabels the pending time from `begin` to `end` where `which` accepts the present label.
    pub(super) fn relabel(&mut self, begin: Instant, end: Instant, label: Label, which: impl Fn(Label) -> bool) {
        self.has_last_flight |= matches!(label, Label::Limited(Limit::LastFlight, _));
        self.change(begin, end, |slice| which(slice.label).then(|| slice.with_label(label, slice.view())));
    }

    /// Acknowledgements of the far end waited in a queue from `begin` to `end`.
    /// They are then as even as those of data from a full link.
    pub(super) fn return_queued(&mut self, begin: Instant, end: Instant) {
        self.pieces.return_queued(begin, end);
    }

    /// The path carried packets of other connections from `begin` to `end`, in the direction of the
    /// data of `view`.
    pub(super) fn share(&mut self, begin: Instant, end: Instant, view: View) {
        self.change(begin, end, |mut slice| {
            slice.shared[view as usize] = true;
            slice.label.is_open().then_some(slice)
        });
    }

    /// Packets of the far end waited behind other connections from `begin` to `end`.
    pub(super) fn behind_others(&mut self, begin: Instant, end: Instant, what: Waiting) {
        self.change(begin, end, |slice| {
            slice.label.is_open().then_some(Slice { behind: slice.behind.max(Some(what)), ..slice })
        });
    }

    /// A state of the radio delayed packets from `begin` to `end`. Where the link turns out not to
    /// be full, that is the cause. It divides no slice: a state of milliseconds comes many times
    /// while a long queue leaves the load of the link undecided.
    pub(super) fn delayed(&mut self, begin: Instant, end: Instant, what: Waiting) {
        self.pieces.waited(begin, end, KnownWait::of_radio(what));
    }

    /// Acknowledgements of the far end queued in front of their link from `begin` to `end`, by
    /// captures of both ends. Where the link of the data turns out not to be full, that is the
    /// cause.
    pub(super) fn acknowledgements_queued(&mut self, begin: Instant, end: Instant) {
        self.pieces.waited(begin, end, KnownWait::ReturnQueue);
    }

    /// Until when the load of the link in front of the acknowledgements is known.
    pub(super) const fn reverse_until(&self) -> Instant {
        self.reverse_until
    }

    /// The capture lacks packets: what is pending gets low confidence.
    pub(super) fn doubt(&mut self) {
        self.pending.iter_mut().for_each(|slice| slice.most = Confidence::Low);
    }

    /// The capture ends: what is not decided gets low confidence.
    pub(super) fn doubt_undecided(&mut self) {
        let open = self.pending.iter_mut().filter(|slice| !matches!(slice.label, Label::Known(..)));
        open.for_each(|slice| slice.most = Confidence::Low);
    }

    /// The capture lacks the handshake, and with it the round trip of the empty path, the MSS and
    /// the window scale: all gets low confidence.
    pub(super) fn doubt_all(&mut self) {
        self.pieces.is_incomplete = true;
    }

    /// Changes the pending time from `begin` to `end`; `changed` leaves what it returns none for.
    fn change(&mut self, begin: Instant, end: Instant, changed: impl Fn(Slice) -> Option<Slice>) {
        if begin >= end {
            return;
        }
        let first = self.pending.partition_point(|slice| slice.end.time <= begin);
        let mut index = first;
        while index < self.pending.len() && self.pending[index].begin.time < end {
            let slice = self.pending[index];
            let Some(other) = changed(slice) else {
                index += 1;
                continue;
            };
            self.pending.remove(index);
            let from = slice.begin.time.max(begin);
            let to = slice.end.time.min(end);
            let parts = [
                slice.part(slice.begin, Stamp { time: from, frame: slice.end.frame }, slice.label),
                other.part(
                    if from == slice.begin.time { slice.begin } else { Stamp { time: from, frame: slice.begin.frame } },
                    if to == slice.end.time { slice.end } else { Stamp { time: to, frame: slice.end.frame } },
                    other.label,
                ),
                slice.part(Stamp { time: to, frame: slice.begin.frame }, slice.end, slice.label),
            ];
            for part in parts.into_iter().filter(|part| part.begin.time < part.end.time) {
                self.pending.insert(index, part);
                index += 1;
            }
        }
    }

    /// Decides the slices of a round, by their labels and by whether the path was shared.
    pub(super) fn resolve(&mut self, round: u32, decide: impl Fn(Label, bool) -> (Cause, Confidence)) {
        for slice in &mut self.pending {
            if matches!(slice.label, Label::Limited(_, of) if of == round) {
                let (cause, confidence) = decide(slice.label, slice.shared[View::of(round) as usize]);
                *slice = slice.with_label(Label::Known(cause, confidence), Some(View::of(round)));
            }
        }
    }

    /// New data was sent in the direction of `view`. During the last flight of that direction its
    /// application had no more data; the last flight of the other direction ended its data.
    pub(super) fn data_sent(&mut self, view: View) {
        if !std::mem::take(&mut self.has_last_flight) {
            return;
        }
        for slice in &mut self.pending {
            slice.label = match slice.label {
                Label::Latency(of, confidence) if of == view => Label::Known(Cause::Application, confidence),
                Label::Latency(_, confidence) => Label::Known(Cause::Latency, confidence),
                Label::Limited(Limit::LastFlight, round) if View::of(round) == view => {
                    Label::Limited(Limit::Application, round)
                }
                Label::Limited(Limit::LastFlight, round) => Label::Limited(Limit::Latency, round),
                label => label,
            };
        }
    }

    /// Sets the kind of the sender's own window in a round.
    pub(super) fn set_window_kind(&mut self, round: u32, limit: Limit) {
        for slice in self.pending.iter_mut().rev() {
            if slice.label == Label::Limited(Limit::OwnWindowUndecided, round) {
                slice.label = Label::Limited(limit, round);
            }
        }
    }

    /// Sets the load of the link until an instant, in the slices of `view`. A full link is the
    /// cause; else the sender's limit is. `window_kind` stands for the kind of the sender's own
    /// window where that has not been judged.
    pub(super) fn set_load(&mut self, until: Instant, load: Load, window_kind: Limit, view: View) {
        let mut since = Instant::ZERO;
        if view == View::Receiver {
            let end = self.pending.back().map_or(Instant::ZERO, |last| last.end.time);
            since = self.reverse_until;
            self.reverse_until = since.max(until.min(end));
        }
        let mut index = 0;
        while let Some(slice) = self.pending.get(index).copied().filter(|slice| slice.begin.time < until) {
            let link = load.cause(slice.shared[view as usize]);
            let is_others = match slice.label {
                Label::Limited(_, round) => View::of(round) != view,
                Label::Known(cause, _) => is_clocked(cause),
                Label::AcknowledgementGap(_) | Label::SuspectedGap(_) | Label::Latency(..) => false,
            };
            if view == View::Receiver && is_others && slice.begin.time < since {
                // Reported before.
                self.split_at(index, since);
                index += 1;
                continue;
            }
            let mut filled = view;
            let (cause, confidence) = match slice.label {
                Label::Limited(_, round) if View::of(round) != view => {
                    let is_full = !matches!(load, Load::Free | Load::FullOfOthers);
                    if view == View::Receiver && is_full && slice.reverse != load {
                        self.split_at(index, until);
                        self.pending[index].reverse = load;
                        index -= usize::from(self.joins_previous(index));
                    }
                    index += 1;
                    continue;
                }
                // Data of the other end delayed the acknowledgements.
                Label::Known(cause, _) if view == View::Receiver && is_clocked(cause) => {
                    let Some((cause, confidence)) = link.filter(|_| load != Load::FullOfOthers) else {
                        index += 1;
                        continue;
                    };
                    (cause, confidence)
                }
                // The sender's view decides gaps.
                Label::AcknowledgementGap(_) | Label::SuspectedGap(_) if view == View::Receiver => {
                    index += 1;
                    continue;
                }
                Label::Known(..) | Label::Latency(..) => {
                    index += 1;
                    continue;
                }
                Label::Limited(limit, round) => {
                    let own = if limit == Limit::OwnWindowUndecided { window_kind } else { limit }.cause();
                    // The queue of the link keeps the congestion window small, but no other limit.
                    let link = link.filter(|_| load != Load::FullOfOthers || is_clocked(own.0));
                    let behind = slice.behind.filter(|behind| view == View::Sender && behind.delays(own.0));
                    let behind = behind.map(|_| (Cause::Sharing, Confidence::Medium));
                    let reverse =
                        slice.reverse.cause(slice.shared[View::Receiver as usize]).filter(|_| is_clocked(own.0));
                    let decided = link.or(behind).or(reverse);
                    if decided.is_none() && limit == Limit::LastFlight {
                        self.label_until(index, until, Label::Latency(View::of(round), own.1), None);
                        index += 1;
                        continue;
                    }
                    if link.is_none() {
                        // Only packets of the far end wait behind others, or behind its data.
                        filled = View::Receiver;
                    }
                    decided.unwrap_or(own)
                }
                Label::AcknowledgementGap(confidence) => link.unwrap_or((Cause::Radio, confidence)),
                Label::SuspectedGap(_) => {
                    let label = Label::SuspectedGap(Some(load));
                    self.label_until(index, until, label, None);
                    index += 1;
                    continue;
                }
            };
            self.label_until(index, until, Label::Known(cause, confidence), Some(filled));
            index += 1;
        }
    }

    /// Relabels a slice, or its part before `until`.
    fn label_until(&mut self, index: usize, until: Instant, label: Label, filled: Option<View>) {
        self.split_at(index, until);
        self.pending[index] = self.pending[index].with_label(label, filled);
    }

    /// Joins a slice with the one before, if they differ in their times only.
    fn joins_previous(&mut self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1).map(|before| self.pending[before]) else { return false };
        let slice = self.pending[index];
        let delivered = before.delivered;
        let joins = Slice { begin: before.begin, delivered, ..slice } == Slice { end: slice.end, ..before };
        if joins {
            self.pending[index - 1].end = slice.end;
            add(&mut self.pending[index - 1].delivered, slice.delivered);
            self.pending.remove(index);
        }
        joins
    }

    /// Divides a slice in which `until` lies.
    fn split_at(&mut self, index: usize, until: Instant) {
        let slice = self.pending[index];
        if until < slice.end.time {
            let begin = Stamp { time: until, frame: slice.begin.frame };
            self.pending.insert(index + 1, slice.part(begin, slice.end, slice.label));
            self.pending[index] = slice.part(slice.begin, Stamp { time: until, frame: slice.end.frame }, slice.label);
        }
    }

    /// Resolves suspected gaps: they were the radio's, with this confidence, or the load of the
    /// link is the cause.
    pub(super) fn resolve_gap(&mut self, radio: Option<Confidence>) {
        let limit = self.limit_in_gap.unwrap_or(Limit::CongestionWindow);
        for slice in &mut self.pending {
            let Label::SuspectedGap(load) = slice.label else { continue };
            if let Some(confidence) = radio {
                *slice = slice.with_label(Label::Known(Cause::Radio, confidence), Some(View::Sender));
                continue;
            }
            let label = match load {
                Some(_) if slice.shared[View::Sender as usize] => Label::Known(Cause::Sharing, Confidence::Medium),
                Some(Load::Queueing) => Label::Known(Cause::Queueing, Confidence::Medium),
                Some(Load::Full | Load::FullOfOthers | Load::Free) => Label::Known(Cause::PathRate, Confidence::Medium),
                // The load is not known yet.
                None => Label::Limited(limit, 0),
            };
            *slice = slice.with_label(label, Some(View::Sender));
        }
    }

    /// Decides what is pending by the evidence so far.
    pub(super) fn decide_pending(&mut self) {
        for slice in &mut self.pending {
            let (cause, confidence) = slice.label.assumed();
            slice.label = Label::Known(cause, confidence);
        }
    }

    /// Emits the settled pieces that end by `until`.
    pub(super) fn settle(&mut self, until: Instant, settled: &mut impl FnMut(&Piece)) {
        loop {
            let full = self.pending.len() > PENDING;
            let Some(front) = self.pending.front() else { return };
            let (cause, confidence) = match front.label {
                Label::Known(cause, confidence) if full || front.end.time <= until => (cause, confidence),
                label if full => label.assumed(),
                _ => return,
            };
            // The last slice may still be relabelled: it ends now.
            if self.pending.len() == 1 {
                return;
            }
            let slice = self.pending.pop_front().expect("there is a front");
            self.pieces.add(slice, cause, confidence, settled);
        }
    }

    /// Returns all unused memory.
    pub(super) fn shrink_to_fit(&mut self) {
        self.pending.shrink_to_fit();
        self.pieces.shrink_to_fit();
    }

    /// Emits all pieces.
    pub(super) fn finish(&mut self, settled: &mut impl FnMut(&Piece)) {
        while let Some(slice) = self.pending.pop_front() {
            let (cause, confidence) = slice.label.assumed();
            self.pieces.add(slice, cause, confidence, settled);
        }
        self.pieces.finish(settled);
    }
}
