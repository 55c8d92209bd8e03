//! Gaps in what arrives: packets that the path held back, or the wait for a retransmission.

use airpath_core::Span;
use airpath_observe::Observation;

use super::super::neighbours::Meanwhile;
use super::super::stall::{Fate, Stall};
use super::super::timeline::{Label, Timeline};
use super::super::{Cause, Confidence, Stamp};
use super::{PATIENCE, ReceiverView};

/// A gap counts only if it is longer than this multiple of the usual interval.
const GAP_INTERVALS: u64 = 3;

impl ReceiverView {
    /// The first segment after all data had arrived waited for long although nothing of this
    /// connection was in front of it: its timestamp shows when it was sent.
    pub(super) fn waited_for_radio(
        &mut self,
        observation: &Observation,
        before: u64,
        timeline: &mut Timeline,
        stalls: &mut Vec<Stall>,
    ) {
        let (Some(sent), now) = (self.entered, observation.time) else { return };
        let service = self.path.link_estimate().service;
        // Its own transmission is no wait. As long as no other segment shows the rate of the link,
        // only that of a small segment is short.
        if service.is_zero() && observation.length > observation.full_segment / 4 {
            return;
        }
        let transmission =
            service.saturating_mul(observation.length.into()) / u64::from(observation.full_segment.max(1));
        let end = now - transmission.min(now.since(sent));
        let longest_usual = PATIENCE.max(service.saturating_mul(GAP_INTERVALS)).max(self.round_trip);
        if end.since(sent) <= longest_usual {
            return;
        }
        let meanwhile = self.neighbours.as_mut().map_or(Meanwhile::Nothing, |neighbours| {
            neighbours.set_now(now);
            neighbours.meanwhile(sent, end)
        });
        let (from, to) = match meanwhile {
            Meanwhile::Nothing => (sent, end),
            Meanwhile::Own(from, to) | Meanwhile::Others(from, to) if to.since(from) > longest_usual => (from, to),
            // It waited behind other packets: the load of the link decides.
            Meanwhile::Own(..) | Meanwhile::Others(..) => return,
        };
        timeline.relabel(from, to, Label::Known(Cause::Radio, Confidence::Medium), |label| {
            matches!(label, Label::Limited(..)) || label.is_idle()
        });
        stalls.push(Stall {
            begin: from,
            end: now,
            first_frame: before,
            last_frame: observation.frame,
            outstanding: 0,
            timeouts: 0,
            tail_probes: 0,
            fate: Fate::Held,
            path_gap: to.since(from),
        });
    }

    /// No data came for long though more was expected: a gap of the path, or the sender's
    /// retransmission time-out. Such a time is also a sample of the usual interval: on a slow link
    /// a segment takes longer than a round trip of the handshake.
    pub(super) fn gap(
        &mut self,
        observation: &Observation,
        filled: bool,
        timeline: &mut Timeline,
        stalls: &mut Vec<Stall>,
    ) {
        let Some(Stamp { time: last, frame }) = self.last else { return };
        let now = observation.time;
        // The first intervals may be those of segments that came together.
        let usual = self.path.interval().max(self.path.link_estimate().service) * GAP_INTERVALS;
        if now.since(last) <= (self.round_trip + PATIENCE).max(usual) {
            return;
        }
        self.path.progress(now);
        // A copy of what had arrived shows that the path held the acknowledgement, or the copy.
        let had_arrived = observation.spurious.is_some_and(|spurious| spurious.frame == observation.frame);
        let lost = filled && observation.retransmission.is_some() && !had_arrived;
        let (cause, mut fate) = if lost { (Cause::Timer, Fate::Lost) } else { (Cause::Radio, Fate::Held) };
        let end = if lost { now - (self.round_trip / 2).min(now.since(last)) } else { now };
        let is_limited = |label: Label| matches!(label, Label::Limited(..));
        let others = self.neighbours.as_mut().map(|neighbours| {
            neighbours.set_now(now);
            neighbours.meanwhile(last, end)
        });
        // Only a time in which no packet of the host passed is the radio's.
        let (mut from, mut to) = (last, end);
        if let Some(Meanwhile::Own(begin, until) | Meanwhile::Others(begin, until)) = others.filter(|_| !lost) {
            let silent = until.since(begin) > (self.round_trip + PATIENCE).max(usual);
            (from, to) = if silent { (begin, until) } else { (end, end) };
            if let Some(Meanwhile::Others(..)) = others {
                fate = if silent { Fate::Held } else { Fate::Behind };
                let sharing = Label::Known(Cause::Sharing, Confidence::Medium);
                timeline.relabel(last, from, sharing, is_limited);
                timeline.relabel(to, end, sharing, is_limited);
            } else if !silent {
                // The path carried acknowledgements of this connection: the sender had nothing to
                // send, or no window for it.
                return;
            }
        }
        timeline.relabel(from, to, Label::Known(cause, Confidence::Low), is_limited);
        stalls.push(Stall {
            begin: last,
            end: now,
            first_frame: frame,
            last_frame: observation.frame,
            outstanding: 0,
            timeouts: u32::from(lost),
            tail_probes: 0,
            fate,
            path_gap: if lost { Span::ZERO } else { to.since(from) },
        });
        self.next_round(now, timeline);
        self.spacing = now.since(last);
    }
}
