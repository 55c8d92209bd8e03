//! The time of a connection in slices: settled slices leave at the front, pending ones wait for
//! evidence.

use std::collections::VecDeque;

use airpath_core::Instant;

use super::link_load::Load;
use super::{Cause, Confidence, Piece, Stamp};
use airpath_observe::End;

/// Pending slices, at most; beyond that the oldest are settled with the evidence so far.
const PENDING: usize = 256;

/// The label of a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// The cause is final.
    Known(Cause, Confidence),
    /// The limit of the sender in a round, unless the link turns out to be full.
    Limited(Limit, u32),
    /// The radio log has a gap in the direction of the acknowledgements; data may get through.
    AcknowledgementGap,
    /// A suspected gap of the link; and its load otherwise, once that is known.
    SuspectedGap(Option<Load>),
    /// The last flight so far of the data of a view was in transit. If the same end sends next, its
    /// application had no data meanwhile.
    Latency(View, Confidence),
}

impl Label {
    /// Whether evidence about the link can still change the cause.
    pub(super) const fn is_open(self) -> bool {
        !matches!(self, Self::Known(..) | Self::Latency(..))
    }

    /// Whether no data was sent, as far as is known.
    pub(super) const fn is_idle(self) -> bool {
        matches!(self, Self::Known(Cause::Application | Cause::Latency, _) | Self::Latency(..))
    }
}

/// What limits a sender that has data outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// The application.
    Application,
    /// All data so far is sent, and the last flight is in transit: whether the application has no
    /// data, or waits for the other end, is not decided yet.
    LastFlight,
    /// The last flight was in transit before the other end sent data.
    Latency,
    /// The receive window, with data outstanding that may fill the link.
    ReceiveWindow,
    /// The receive window, with nothing outstanding.
    ClosedWindow,
    /// The sender's own window; slow start or congestion window is not decided yet.
    OwnWindowUndecided,
    /// The sender's own window, in slow start.
    SlowStart,
    /// The sender's own window, after slow start.
    CongestionWindow,
    /// Loss recovery.
    Recovery,
    /// The sender of a QUIC flow: what limits it is encrypted.
    Sender,
}

impl Limit {
    /// The sender's own window, in slow start or after it.
    pub(super) const fn own_window(slow_start_over: bool) -> Self {
        if slow_start_over { Self::CongestionWindow } else { Self::SlowStart }
    }

    pub(super) const fn cause(self) -> (Cause, Confidence) {
        match self {
            Self::Application => (Cause::Application, Confidence::Medium),
            Self::LastFlight | Self::Latency => (Cause::Latency, Confidence::Medium),
            Self::ReceiveWindow => (Cause::ReceiveWindow, Confidence::Medium),
            Self::ClosedWindow => (Cause::ReceiveWindow, Confidence::High),
            Self::OwnWindowUndecided | Self::CongestionWindow => (Cause::CongestionWindow, Confidence::Medium),
            Self::SlowStart => (Cause::SlowStart, Confidence::Medium),
            Self::Sender => (Cause::Sender, Confidence::Medium),
            // That the link was not full meanwhile is inferred.
            Self::Recovery => (Cause::Recovery, Confidence::Medium),
        }
    }
}

/// The packets that waited behind those of other connections, or for the radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waiting {
    /// Acknowledgements only: a sender that waits for them is delayed.
    Acknowledgement,
    /// Data, with the acknowledgement in it: so is an application that waits for a response.
    Data,
}

impl Waiting {
    /// Whether this wait is the cause, and not the limit of the sender.
    const fn delays(self, limit: Cause) -> bool {
        is_clocked(limit) || matches!((self, limit), (Self::Data, Cause::Application | Cause::Latency))
    }
}

/// The view that labels a slice. Rounds of the sender's view have even numbers, and those of the
/// receiver's view odd ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Sender,
    Receiver,
}

impl View {
    pub(super) const fn of(round: u32) -> Self {
        if round.is_multiple_of(2) { Self::Sender } else { Self::Receiver }
    }

    const fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }

    /// The end that sends the data of this view, in a capture at `near`.
    const fn sender(self, near: End) -> End {
        match self {
            Self::Sender => near,
            Self::Receiver => near.other(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    begin: Stamp,
    end: Stamp,
    label: Label,
    /// Whether the path carried packets of other connections meanwhile, by the direction of the
    /// data of each view.
    shared: [bool; 2],
    /// The load of the link in front of the acknowledgements by data of the connection.
    reverse: Load,
    /// The view whose packets fill the link, where that is the cause.
    filled: Option<View>,
    /// The packets of the far end that waited behind other connections.
    behind: Option<Waiting>,
    /// The packets of either end that a state of the radio delayed.
    delayed: Option<Waiting>,
    /// The highest confidence that its cause can have: less where the capture lacks packets that
    /// could show another.
    most: Confidence,
    /// Bytes that were delivered meanwhile, by the end that sent them; at most 4 GiB.
    delivered: [u32; 2],
}

impl Slice {
    /// The part from `begin` to `end` with a label.
    fn part(self, begin: Stamp, end: Stamp, label: Label) -> Self {
        let length = self.end.time.since(self.begin.time).as_nanos();
        let until = |bytes: u32, at: Stamp| match at.time.since(self.begin.time).as_nanos() {
            _ if bytes == 0 || length == 0 => 0,
            // A short time needs no division of 128 bits.
            short @ 0..=0xffff_ffff => (u64::from(bytes) * short / length) as u32,
            long => (u128::from(bytes) * u128::from(long) / u128::from(length)) as u32,
        };
        let delivered = self.delivered.map(|bytes| until(bytes, end) - until(bytes, begin));
        Self { begin, end, label, delivered, ..self }
    }

    /// The slice with a label; `filled` is the view whose link is full, if that is the cause.
    fn with_label(self, label: Label, filled: Option<View>) -> Self {
        let is_full = matches!(label, Label::Known(cause, _) if cause.is_full_link());
        Self { label, filled: filled.filter(|_| is_full), ..self }
    }

    /// The view that has labelled it.
    const fn view(self) -> Option<View> {
        match self.label {
            Label::Limited(_, round) => Some(View::of(round)),
            Label::Latency(view, _) => Some(view),
            Label::AcknowledgementGap | Label::SuspectedGap(_) => Some(View::Sender),
            Label::Known(..) => self.filled,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    /// The end of the capture; the server until it is known.
    near: Option<End>,
    pending: VecDeque<Slice>,
    /// The times in which acknowledgements of the far end waited in a queue, that are not settled.
    return_queues: VecDeque<(Instant, Instant)>,
    /// The last settled piece, which the next may extend.
    open: Option<Piece>,
    /// Until when the receiver's view has reported the load of its link.
    reverse_until: Instant,
    /// Whether the capture lacks the begin of the connection.
    incomplete: bool,
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
        if self.near.replace(near).unwrap_or(End::Server) != near {
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
                    && last.delayed.is_none()
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
                delayed: None,
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
        match self.return_queues.back_mut() {
            Some((_, until)) if begin <= *until => *until = end.max(*until),
            _ => self.return_queues.push_back((begin, end)),
        }
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
    /// be full, that is the cause.
    pub(super) fn delayed(&mut self, begin: Instant, end: Instant, what: Waiting) {
        self.change(begin, end, |slice| Some(Slice { delayed: slice.delayed.max(Some(what)), ..slice }));
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
        self.incomplete = true;
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
                Label::AcknowledgementGap | Label::SuspectedGap(_) | Label::Latency(..) => false,
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
                    if view == View::Receiver && load != Load::Free && slice.reverse != load {
                        self.split_at(index, until);
                        self.pending[index].reverse = load;
                        index -= usize::from(self.joins_previous(index));
                    }
                    index += 1;
                    continue;
                }
                // Data of the other end delayed the acknowledgements.
                Label::Known(cause, _) if view == View::Receiver && is_clocked(cause) => {
                    let Some((cause, confidence)) = link else {
                        index += 1;
                        continue;
                    };
                    (cause, confidence)
                }
                // The sender's view decides gaps.
                Label::AcknowledgementGap | Label::SuspectedGap(_) if view == View::Receiver => {
                    index += 1;
                    continue;
                }
                Label::Known(..) | Label::Latency(..) => {
                    index += 1;
                    continue;
                }
                Label::Limited(limit, round) => {
                    let own = if limit == Limit::OwnWindowUndecided { window_kind } else { limit }.cause();
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
                Label::AcknowledgementGap => link.unwrap_or((Cause::Radio, Confidence::High)),
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

    /// Resolves suspected gaps: they were the radio's, or the load of the link is the cause.
    pub(super) fn resolve_gap(&mut self, radio: bool) {
        let limit = self.limit_in_gap.unwrap_or(Limit::CongestionWindow);
        for slice in &mut self.pending {
            let Label::SuspectedGap(load) = slice.label else { continue };
            let label = match load {
                _ if radio => Label::Known(Cause::Radio, Confidence::Medium),
                Some(_) if slice.shared[View::Sender as usize] => Label::Known(Cause::Sharing, Confidence::Medium),
                Some(Load::Queueing) => Label::Known(Cause::Queueing, Confidence::Medium),
                Some(Load::Full | Load::Free) => Label::Known(Cause::PathRate, Confidence::Medium),
                // The load is not known yet.
                None => Label::Limited(limit, 0),
            };
            *slice = slice.with_label(label, Some(View::Sender));
        }
    }

    /// Decides what is pending by the evidence so far.
    pub(super) fn decide_pending(&mut self) {
        for slice in &mut self.pending {
            let (cause, confidence) = assumed(slice.label);
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
                label if full => assumed(label),
                _ => return,
            };
            // The last slice may still be relabelled: it ends now.
            if self.pending.len() == 1 {
                return;
            }
            let slice = self.pending.pop_front().expect("there is a front");
            self.emit(slice, cause, confidence, settled);
        }
    }

    /// Returns all unused memory.
    pub(super) fn shrink_to_fit(&mut self) {
        self.pending.shrink_to_fit();
        self.return_queues.shrink_to_fit();
    }

    /// Emits all pieces.
    pub(super) fn finish(&mut self, settled: &mut impl FnMut(&Piece)) {
        while let Some(slice) = self.pending.pop_front() {
            let (cause, confidence) = match slice.label {
                Label::Known(cause, confidence) => (cause, confidence),
                label => assumed(label),
            };
            self.emit(slice, cause, confidence, settled);
        }
        if let Some(piece) = self.open.take() {
            settled(&piece);
        }
    }

    /// Emits a slice. Where the acknowledgements of its data queued, their link was full.
    fn emit(&mut self, mut slice: Slice, cause: Cause, confidence: Confidence, settled: &mut impl FnMut(&Piece)) {
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
                self.emit_part(slice.part(slice.begin, before, slice.label), cause, confidence, settled);
            }
            let queued = Slice { filled: Some(View::Receiver), ..slice.part(before, after, slice.label) };
            self.emit_part(queued, cause, confidence, settled);
            if after.time >= slice.end.time {
                return;
            }
            slice = slice.part(Stamp { frame: slice.begin.frame, ..after }, slice.end, slice.label);
            next += 1;
        }
        self.emit_part(slice, cause, confidence, settled);
    }

    fn emit_part(&mut self, slice: Slice, cause: Cause, confidence: Confidence, settled: &mut impl FnMut(&Piece)) {
        let (cause, confidence) = match slice.delayed {
            Some(what) if what.delays(cause) => (Cause::Radio, Confidence::High),
            _ => (cause, confidence),
        };
        let full_by =
            slice.filled.filter(|_| cause.is_full_link()).map(|view| view.sender(self.near.unwrap_or(End::Server)));
        let confidence = if self.incomplete { Confidence::Low } else { confidence.min(slice.most) };
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
}

/// Adds bytes to sums, by the end that sent them.
fn add(sums: &mut [u32; 2], bytes: [u32; 2]) {
    sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(bytes));
}

/// Whether a sender that is limited so waits for acknowledgements.
const fn is_clocked(cause: Cause) -> bool {
    matches!(cause, Cause::SlowStart | Cause::CongestionWindow | Cause::Recovery | Cause::Sender)
}

/// The cause of a slice for which no evidence came.
fn assumed(label: Label) -> (Cause, Confidence) {
    let cause = match label {
        Label::Known(cause, confidence) => return (cause, confidence),
        Label::Latency(_, confidence) => return (Cause::Latency, confidence),
        Label::Limited(limit, _) => limit.cause().0,
        Label::AcknowledgementGap | Label::SuspectedGap(_) => Cause::Radio,
    };
    (cause, Confidence::Low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Stamp {
        Stamp { time: Instant::from_nanos(millis * 1_000_000), frame: millis }
    }

    /// With captures of both ends the link of the data is known to be free.
    #[test]
    fn data_of_the_other_end_in_front_of_the_acknowledgements_fills_the_link() {
        let causes = |limit: Limit, is_decided: bool| {
            let mut timeline = Timeline::default();
            timeline.push(at(0), at(300), Label::Limited(limit, 2), [0; 2]);
            timeline.push(at(300), at(310), Label::Known(Cause::Application, Confidence::High), [0; 2]);
            let free = |timeline: &mut Timeline| {
                timeline.set_load(at(300).time, Load::Free, Limit::SlowStart, View::Sender);
            };
            if is_decided {
                free(&mut timeline);
            }
            timeline.set_load(at(100).time, Load::Free, Limit::SlowStart, View::Receiver);
            for until in [150, 200] {
                timeline.set_load(at(until).time, Load::Queueing, Limit::SlowStart, View::Receiver);
            }
            free(&mut timeline);
            let mut pieces = Vec::new();
            timeline.finish(&mut |piece| pieces.push((piece.cause, piece.end.as_nanos() / 1_000_000)));
            pieces
        };
        let application = (Cause::Application, 310);
        let own = causes(Limit::OwnWindowUndecided, false);
        assert_eq!(own, [(Cause::SlowStart, 100), (Cause::Queueing, 200), (Cause::SlowStart, 300), application]);
        assert_eq!(causes(Limit::OwnWindowUndecided, true), own);
        // Acknowledgements do not open a window that the receiver closes.
        assert_eq!(causes(Limit::ReceiveWindow, false), [(Cause::ReceiveWindow, 300), application]);
    }

    fn cause_behind_others(label: Label, what: Waiting) -> Cause {
        let mut timeline = Timeline::default();
        timeline.push(at(0), at(100), label, [0; 2]);
        timeline.behind_others(at(0).time, at(100).time, what);
        timeline.set_load(at(100).time, Load::Free, Limit::SlowStart, View::Sender);
        let mut causes = Vec::new();
        timeline.finish(&mut |piece| causes.push(piece.cause));
        let [cause] = causes[..] else { panic!("{causes:?}") };
        cause
    }

    #[test]
    fn only_a_sender_that_waits_for_packets_waits_behind_others() {
        use Waiting::{Acknowledgement, Data};
        for what in [Acknowledgement, Data] {
            for limit in [Limit::OwnWindowUndecided, Limit::SlowStart, Limit::CongestionWindow, Limit::Recovery] {
                assert_eq!(cause_behind_others(Label::Limited(limit, 2), what), Cause::Sharing);
            }
            for limit in [Limit::ReceiveWindow, Limit::ClosedWindow] {
                assert_eq!(cause_behind_others(Label::Limited(limit, 2), what), Cause::ReceiveWindow);
            }
        }
        let application = Label::Limited(Limit::Application, 2);
        assert_eq!(cause_behind_others(application, Acknowledgement), Cause::Application);
        assert_eq!(cause_behind_others(application, Data), Cause::Sharing);
    }

    #[test]
    fn no_packet_waits_behind_others_in_a_gap_of_the_radio() {
        for what in [Waiting::Acknowledgement, Waiting::Data] {
            assert_eq!(cause_behind_others(Label::AcknowledgementGap, what), Cause::Radio);
        }
    }
}
