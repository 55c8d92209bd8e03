//! Retransmissions, and whether those of the timer were spurious.

use airpath_core::{Instant, Span};
use airpath_observe::{Events, Observation, Trigger};

use super::super::bottleneck::{Carried, CopyCarried};
use super::super::neighbours::Meanwhile;
use super::super::stall::{Fate, Stall};
use super::super::timeline::{Label, Limit, Timeline};
use super::super::{Cause, Confidence, Stamp};
use super::{HeldStall, SenderView, is_idle, numbers};

/// Time-outs without an acknowledgement of new data between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// The first time-out.
    pub(super) first: Instant,
    /// The last time-out but one.
    pub(super) last_but_one: Option<Instant>,
    /// The last time-out, and the frame of its retransmission.
    pub(super) last: Instant,
    pub(super) last_frame: u64,
    /// Their number, and how many of them were probe time-outs (RFC 8985 §7.2).
    pub(super) count: u32,
    pub(super) tail_probes: u32,
    /// The last progress before the first time-out.
    pub(super) since: Stamp,
    /// `outstanding()`, `highest` and `delivered` of the sender at the first time-out.
    pub(super) outstanding: u64,
    pub(super) highest: i64,
    pub(super) delivered: u64,
    /// Bytes beyond a hole that duplicate acknowledgements showed to have arrived before it, and
    /// the last of these acknowledgements.
    pub(super) held: Option<(u64, Stamp)>,
    /// Bytes retransmitted.
    pub(super) resent: u64,
    /// Whether the time-outs are known to be spurious.
    pub(super) spurious: bool,
    /// Length of the last retransmission.
    pub(super) length: u32,
}

/// Duplicate acknowledgements without selective ones since the last progress. Each shows that the
/// receiver holds a segment beyond a hole, or that a copy of received data arrived (RFC 5681 §4.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Duplicates {
    count: u32,
    last: Stamp,
    /// Retransmissions whose copies may still cause duplicates, and the highest offset sent before
    /// the last of them.
    copies: u32,
    highest: i64,
}

impl Duplicates {
    /// New data was acknowledged, cumulatively up to `acknowledged`.
    pub(super) fn progress(&mut self, acknowledged: i64) {
        self.count = 0;
        if acknowledged > self.highest {
            // Data that was sent after the copies has arrived: they have arrived, or are lost.
            self.copies = 0;
        }
    }

    /// Data was sent again; `highest` is the highest offset sent.
    fn sent_again(&mut self, highest: i64) {
        self.copies += 1;
        self.highest = highest;
    }

    /// Segments that the receiver holds, at most; none if copies may have caused all duplicates.
    fn held(&self) -> u64 {
        if self.count > self.copies { self.count.into() } else { 0 }
    }
}

impl Timeouts {
    /// The timer went off again and sent `observation`.
    pub(super) fn again(&mut self, observation: &Observation) {
        self.last_but_one = Some(self.last);
        (self.last, self.last_frame) = (observation.time, observation.frame);
        self.count += 1;
        self.tail_probes += tail_probes(observation);
        self.resent += numbers(observation);
        self.length = observation.length;
    }
}

impl SenderView {
    pub(super) fn retransmitted(&mut self, observation: &Observation, trigger: Trigger) {
        let now = observation.time;
        // What the receiver held is judged without this copy.
        let held = self.held_by_receiver();
        self.duplicates.sent_again(self.highest);
        self.lost_in_stall(observation);
        let is_front = observation.offset <= self.acknowledged;
        // A tail loss probe may send the last segment again (RFC 8985 §7.3).
        let is_last = observation.offset + i64::from(observation.length) >= self.highest;
        let by_rto_or_probe = match trigger {
            // At the front or the end, a round trip after the last progress, only a timer
            // retransmits.
            // `Unknown`: the timer expired earlier than the observer's estimate of the RTO.
            Trigger::Timeout | Trigger::Unknown => {
                (is_front || is_last)
                    && now.since(self.progress.time) >= self.bottleneck.path.latest_round_trip.unwrap_or(Span::ZERO)
            }
            // The probe time-out of TLP (RFC 8985 §7.2).
            Trigger::TailProbe => true,
            Trigger::Fast => false,
        };
        if !by_rto_or_probe {
            if self.timeouts.is_none() && self.recovery_point.is_none() {
                self.recovery_point = Some(self.highest);
                let to_one_segment = false;
                self.reduce(self.outstanding(), to_one_segment);
            }
            if let Some(timeouts) = &mut self.timeouts {
                timeouts.resent += numbers(observation);
                if timeouts.last == now {
                    timeouts.length = timeouts.length.saturating_add(observation.length);
                }
            }
            return;
        }
        self.new_data_probe = None;
        match &mut self.timeouts {
            Some(timeouts) => timeouts.again(observation),
            None => self.timeouts = Some(Timeouts { held, ..self.first_timeout(observation) }),
        }
    }

    /// Whether new data may be a tail loss probe (RFC 8985 §7.3): data is outstanding, and for a
    /// round trip neither end has sent or acknowledged anything new.
    pub(super) fn may_be_new_data_probe(&self, observation: &Observation) -> bool {
        let since = self.progress.max(self.received).time.max(self.last_send);
        let is_in_recovery = self.timeouts.is_some() || self.undecided.is_some() || self.recovery_point.is_some();
        let round_trip = self.bottleneck.path.latest_round_trip;
        !is_in_recovery && round_trip.is_some_and(|round_trip| observation.time.since(since) >= round_trip)
    }

    /// Whether the first acknowledgement of new data after a probe covers nothing that was sent
    /// before the probe: that was lost.
    pub(super) fn shows_loss(&self, probe: &Timeouts, observation: &Observation) -> bool {
        observation.acknowledged <= Some(self.acknowledged)
            && observation.newly_acknowledged.is_some_and(|sending| sending.original >= probe.first)
    }

    /// An acknowledgement of nothing new arrived. A duplicate shows that a segment beyond a hole
    /// arrived, unless it reports a copy (RFC 2883).
    pub(super) fn duplicate_acknowledgement(&mut self, observation: &Observation) {
        let repeats_data = observation.events.contains(Events::DSACK);
        if observation.duplicate.is_some() && !repeats_data {
            self.duplicates.count += 1;
            self.duplicates.last = Stamp::of(observation);
        }
    }

    /// Bytes beyond a hole that the receiver holds, as far as duplicate acknowledgements without
    /// selective ones show them, and the last of these acknowledgements (RFC 5681 §4.2).
    fn held_by_receiver(&self) -> Option<(u64, Stamp)> {
        let segment = u64::from(self.full_segment);
        // The segment of the hole itself has not arrived.
        let beyond = self.outstanding().saturating_sub(segment);
        let bytes = self.duplicates.held().saturating_mul(segment).min(beyond);
        (bytes > 0).then_some((bytes, self.duplicates.last))
    }

    /// The state at the first time-out, whose segment is `observation`.
    pub(super) fn first_timeout(&self, observation: &Observation) -> Timeouts {
        Timeouts {
            first: observation.time,
            last_but_one: None,
            last: observation.time,
            last_frame: observation.frame,
            count: 1,
            tail_probes: tail_probes(observation),
            since: self.progress.max(self.received),
            outstanding: self.outstanding(),
            highest: self.highest,
            delivered: self.delivered,
            held: None,
            resent: numbers(observation),
            spurious: false,
            length: observation.length,
        }
    }

    /// An acknowledgement of new data came; checks whether it was late without a time-out.
    pub(super) fn check_lateness(
        &mut self,
        carried: Option<Carried>,
        observation: &Observation,
        timeline: &mut Timeline,
        stalls: &mut Vec<Stall>,
    ) {
        let received = self.received.time;
        let Some((begin, end)) = carried.and_then(|carried| self.bottleneck.gap(carried, received)) else { return };
        let outstanding = self.outstanding();
        let one_segment_outstanding = outstanding <= u64::from(self.full_segment);
        let is_long = self.bottleneck.is_long(begin, end, one_segment_outstanding);
        let others = matches!(self.bottleneck.meanwhile(begin, end), Meanwhile::Others(..));
        if !is_long || !others && self.bottleneck.is_usual(begin, end) {
            return;
        }
        // With a capture of the other end, `arrivals_until` has marked the gap.
        let mut silent = Some((begin, end));
        if !self.bottleneck.has_arrivals() {
            silent = self.bottleneck.silent_part((begin, end), timeline);
            if let Some((begin, end)) = silent {
                self.bottleneck.suspect_gap(begin, end, timeline);
            }
        } else if let Meanwhile::Others(..) = self.bottleneck.meanwhile(begin, end) {
            silent = None;
        }
        // No stall: the last progress, or the last data of the other end, is recent.
        let since = self.progress.max(self.received);
        if !self.bottleneck.is_long(since.time, observation.time, one_segment_outstanding) {
            return;
        }
        stalls.extend(self.held.take().map(|held| held.stall));
        let stall = Stall {
            begin: since.time,
            end: observation.time,
            first_frame: since.frame,
            last_frame: observation.frame,
            outstanding,
            timeouts: 0,
            tail_probes: 0,
            fate: if silent.is_some() { Fate::Held } else { Fate::Behind },
            path_gap: end.since(begin),
        };
        self.held = Some(HeldStall { stall, highest: self.highest });
    }

    /// Data is retransmitted: if it was outstanding in the last stall, the path lost it there.
    pub(super) fn lost_in_stall(&mut self, observation: &Observation) {
        if let Some(HeldStall { stall, highest }) = &mut self.held
            && observation.offset < *highest
            && observation.spurious.is_none()
        {
            stall.fate = Fate::PartlyLost;
        }
    }

    /// Whether the data outstanding at a time-out was delayed and not lost; `None` where the first
    /// acknowledgement after the time-out does not decide that.
    pub(super) fn originals_arrived(&self, timeouts: &Timeouts, observation: &Observation) -> Option<bool> {
        let now = observation.time;
        let link = self.bottleneck.path.link_estimate();
        let transmission =
            link.service.saturating_mul(u64::from(timeouts.length)) / u64::from(self.full_segment.max(1));
        // An acknowledgement sooner than a round trip after the retransmission is for the original
        // (Eifel, RFC 3522). The shortest round trip of a full segment contains its transmission,
        // and no queue. A fifth is left for the error of the estimate.
        let full = self.bottleneck.path.base_full().unwrap_or(Span::ZERO);
        let soonest = (link.base + transmission).min(full) * 4 / 5;
        if timeouts.spurious || now.since(timeouts.last) < soonest {
            return Some(true);
        }
        if let Some((sample, _)) = observation.echo_round_trip {
            // If the echo is older than the first time-out, it echoes the original.
            return Some(sample > now.since(timeouts.first));
        }
        // The receiver held what arrived beyond a hole: with the retransmission it acknowledges
        // both.
        let held = timeouts.held.map_or(0, |(bytes, _)| bytes);
        if observation.delivered.saturating_sub(timeouts.delivered) > timeouts.resent + held {
            return Some(true);
        }
        // All data is acknowledged, or a hole was seen: no later acknowledgement has to decide.
        (observation.acknowledged >= Some(self.highest) || held > 0).then_some(false)
    }

    /// The first acknowledgement of new data after time-outs came, which had `arrived` if nothing
    /// had held it. The outstanding data had been delayed (`originals_arrived`) or lost.
    pub(super) fn end_of_timeouts(
        &mut self,
        timeouts: &Timeouts,
        originals_arrived: bool,
        (observation, arrived): (&Observation, Instant),
        timeline: &mut Timeline,
        stalls: &mut Vec<Stall>,
    ) {
        let now = observation.time;
        let copy = if originals_arrived { CopyCarried::Original } else { CopyCarried::Last };
        let carried = self.bottleneck.carried_by(observation, arrived, timeouts.delivered, self.full_segment, copy);
        // The link was empty from when the last packet left it.
        let link_empty_since = self.bottleneck.busy_until().unwrap_or(timeouts.since.time);
        if originals_arrived {
            // No loss: the time is limited by what limited the sender before.
            let label = Label::Limited(self.limit(), self.round.number);
            timeline.relabel(timeouts.first, now, label, |label| matches!(label, Label::Limited(Limit::Recovery, _)));
        }
        let attribute = |timeline: &mut Timeline, from, to, cause, confidence| {
            timeline.relabel(from, to, Label::Known(cause, confidence), is_idle);
        };
        let mut held = Fate::Held;
        let path_gap;
        // The end of the radio gap is known. From then on the sender waited for its timer.
        if !originals_arrived && self.radio_gap_end > timeouts.since.time && self.radio_gap_end < timeouts.last {
            attribute(timeline, self.radio_gap_end, timeouts.last, Cause::Timer, Confidence::High);
            path_gap = self.radio_gap_end.since(link_empty_since);
        } else if originals_arrived {
            let received = self.received.time;
            let gap = carried
                .and_then(|carried| self.bottleneck.gap(Carried { first: link_empty_since, ..carried }, received));
            path_gap = gap.map_or(Span::ZERO, |(begin, end)| end.since(begin));
            if !self.bottleneck.has_arrivals()
                && let Some(gap) = gap
            {
                match self.bottleneck.silent_part(gap, timeline) {
                    Some((begin, end)) => {
                        let radio = Label::Known(Cause::Radio, Confidence::Medium);
                        timeline.relabel(begin, end, radio, is_idle);
                    }
                    None => held = Fate::Behind,
                }
            }
        } else if let Some(before) = timeouts.last_but_one {
            // The last retransmission but one was lost, too: the path came back between the two.
            let back = before + timeouts.last.since(before) / 2;
            attribute(timeline, link_empty_since, back, Cause::Radio, Confidence::Low);
            attribute(timeline, back, timeouts.last, Cause::Timer, Confidence::Low);
            path_gap = back.since(link_empty_since);
        } else {
            // Until the last duplicate acknowledgement packets were in flight.
            let since = timeouts.held.map_or(timeouts.since, |(_, last)| last.max(timeouts.since)).time;
            attribute(timeline, since, timeouts.first, Cause::Timer, Confidence::Medium);
            path_gap = Span::ZERO;
        }
        self.bottleneck.acknowledged(carried, Limit::own_window(self.slow_start_over), timeline);
        if !originals_arrived {
            self.recovery_point = Some(timeouts.highest).filter(|point| self.acknowledged < *point);
        }
        // A sender without timestamps does not detect that the time-out was spurious: it shrinks
        // its window (RFC 3522).
        if !originals_arrived || observation.echo_round_trip.is_none() {
            // What a tail loss probe shows is repaired by fast recovery (RFC 8985 §7.1).
            let to_one_segment = timeouts.count > timeouts.tail_probes;
            self.reduce(timeouts.outstanding, to_one_segment);
        }
        let since = timeouts.since.max(self.received);
        stalls.push(Stall {
            begin: since.time,
            end: now,
            first_frame: since.frame,
            last_frame: observation.frame,
            outstanding: timeouts.outstanding,
            timeouts: timeouts.count - timeouts.tail_probes,
            tail_probes: timeouts.tail_probes,
            fate: if originals_arrived { held } else { Fate::Lost },
            path_gap,
        });
    }

    /// A spurious retransmission arrived: the link carried it for the service time of a segment.
    pub(super) fn spurious(&mut self, now: Instant, timeline: &mut Timeline) {
        if let Some(timeouts) = &mut self.timeouts {
            timeouts.spurious = true;
        }
        self.bottleneck.spurious(now, timeline);
    }
}

/// 1 for a tail loss probe, which retransmits or sends new data, else 0.
fn tail_probes(observation: &Observation) -> u32 {
    u32::from(observation.retransmission.is_none_or(|again| again.trigger == Trigger::TailProbe))
}
