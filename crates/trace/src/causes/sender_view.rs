//! What limits the sender, from a capture at the sender.
//!
//! The growth of the congestion window is judged by rounds. A round starts with the first new data
//! after the end of the round before. It ends when that data is acknowledged.

mod timeouts;

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Flags;

use super::bottleneck::{Bottleneck, CopyCarried};
use super::stall::{Fate, Stall};
use super::timeline::{Label, Limit, Timeline};
use super::{Cause, Confidence, EndOfData, Stamp};
use airpath_observe::{Events, Observation};
use timeouts::{Duplicates, Timeouts};

/// Data sent within this time of an acknowledgement was waiting for that acknowledgement.
const ACK_CLOCKED_WITHIN: Span = Span::from_millis(10);

/// A sender is application-limited only if it sent nothing while this many segments were
/// acknowledged. A delayed acknowledgement covers two segments; the third is a margin.
const MIN_ACKNOWLEDGED_SEGMENTS: u64 = 3;

/// After a pause as long as the retransmission time-out a sender restarts with its initial window
/// (RFC 5681 §4.1). Few time-outs are shorter than this.
const PAUSE: Span = Span::from_millis(200);

/// A window update is the reason for the data that follows it within this time.
const AFTER_UPDATE: Span = Span::from_millis(200);

/// An acknowledgement that is later than this is a delayed one (RFC 9293 §3.8.6.3). Linux delays
/// for 40 ms or more.
const ACK_DELAY: Span = Span::from_millis(30);

/// A time in which the receive window allowed no full segment, with nothing outstanding.
#[derive(Clone, Copy, Debug)]
struct Closed {
    since: Stamp,
    /// When the window opened again.
    opened: Option<Stamp>,
    /// Probes of the window: the sender has data.
    probes: u32,
}

/// A stall after which the path delivered data that was delayed. Retransmissions show which part of
/// it was lost.
#[derive(Clone, Copy, Debug)]
struct HeldStall {
    stall: Stall,
    /// The highest offset sent before the stall ended.
    highest: i64,
}

/// Time-outs whose first acknowledgement does not decide whether they were spurious.
#[derive(Clone, Debug)]
struct Undecided {
    timeouts: Timeouts,
    first_ack: Observation,
    /// When the acknowledgement had arrived without others in front of it.
    arrived: Instant,
}

/// A round trip of data.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Rounds of `SenderView` are even and those of `ReceiverView` odd, because both label one
    /// timeline; hence the steps of 2.
    number: u32,
    /// The round ends when an acknowledgement passes this offset.
    ends_beyond: i64,
    /// The highest offset sent when the round began.
    highest_at_start: i64,
    /// The largest flight in this round and in the one before. The sender's window was at least
    /// this large.
    flight: u64,
    flight_before: u64,
    /// Acknowledgements of new data.
    acknowledgements: u64,
    /// Whether the sender was application-limited.
    application_limited: bool,
}

/// What one end sends, from a capture at that end.
#[derive(Clone, Debug, Default)]
pub(super) struct SenderView {
    /// The last acknowledgement covered all data, and no segment has been observed since. The round
    /// is closed at the next segment, after the test for data that Nagle's algorithm held.
    round_close_pending: bool,
    highest: i64,
    acknowledged: i64,
    /// Cumulatively and selectively acknowledged bytes.
    delivered: u64,
    /// The right edge of the receive window: one past the last byte that it allows.
    window_edge: Option<i64>,
    /// The payload of a full-sized segment.
    full_segment: u32,
    end_of_data: EndOfData,
    bottleneck: Bottleneck,
    round: Round,
    /// The largest flight since the window was last restarted or reduced.
    largest_flight: u64,
    /// The last acknowledgement of new data, or the last data sent with nothing outstanding.
    progress: Stamp,
    /// The last new data from the other end: the radio carried packets then.
    received: Stamp,
    last_send: Instant,
    last_sent_frame: u64,
    /// Whether the last acknowledgement covered a single segment, and was delayed by the receiver.
    delayed_acknowledgement: bool,
    /// The first acknowledgement of new data after the last data sent.
    first_ack_after_send: Option<Instant>,
    /// Bytes acknowledged since data was last sent.
    acknowledged_since_send: u64,
    application_limited: bool,
    /// The present or last time with a closed window.
    closed: Option<Closed>,
    /// The last stall, while data from before its end is outstanding.
    held: Option<HeldStall>,
    /// The recovery point (RFC 6675 §5): the highest offset sent when a loss was detected.
    recovery_point: Option<i64>,
    timeouts: Option<Timeouts>,
    /// New data that a tail loss probe may have sent (RFC 8985 §7.3): the next acknowledgement of
    /// new data decides.
    new_data_probe: Option<Timeouts>,
    duplicates: Duplicates,
    /// Time-outs followed by one acknowledgement, of the original or of the retransmission: the
    /// next acknowledgement decides (F-RTO, RFC 5682).
    undecided: Option<Box<Undecided>>,
    /// The end of the last radio gap, in which the radio carried nothing.
    radio_gap_end: Instant,
    /// Whether slow start is over.
    slow_start_over: bool,
    /// The slow-start threshold that the last loss has set, in bytes of flight.
    threshold: Option<u64>,
}

impl SenderView {
    /// The bottleneck of the path that its data takes.
    pub(super) fn bottleneck(&mut self) -> &mut Bottleneck {
        &mut self.bottleneck
    }

    /// Whether the arrivals of its data are exact.
    pub(super) fn has_arrivals(&self) -> bool {
        self.bottleneck.has_arrivals()
    }

    /// Processes the packets that arrived until `now`, where a capture of the other end shows them.
    pub(super) fn arrivals_until(&mut self, now: Instant, timeline: &mut Timeline) {
        let window_kind = Limit::own_window(self.slow_start_over);
        while let Some(arrival) = self.bottleneck.next_arrival(now) {
            if let Some(timeouts) = &mut self.timeouts {
                // Data from before the first time-out still arrives: the time-out was spurious.
                timeouts.spurious |= arrival.sent < timeouts.first;
            }
            self.bottleneck.arrived(&arrival, self.full_segment, self.received.time, window_kind, timeline);
        }
    }

    /// Whether all data is acknowledged.
    pub(super) fn idle(&self) -> bool {
        self.highest <= self.acknowledged
    }

    /// Whether more than a segment is outstanding: the request of a dialogue is not.
    pub(super) fn is_stream(&self) -> bool {
        self.outstanding() > u64::from(self.full_segment)
    }

    /// Whether more than a segment is outstanding after an acknowledgement up to `acknowledged`:
    /// the request of a dialogue is not.
    pub(super) fn is_stream_after(&self, acknowledged: Option<i64>) -> bool {
        let acknowledged = acknowledged.unwrap_or(self.acknowledged).max(self.acknowledged);
        self.highest > acknowledged + i64::from(self.full_segment)
    }

    /// The last progress while data is outstanding; else the far future.
    pub(super) fn progress_with_data_outstanding(&self) -> Instant {
        match &self.undecided {
            Some(undecided) => undecided.timeouts.since.time,
            None if self.idle() => Instant::FAR_FUTURE,
            None => self.progress.time,
        }
    }

    /// The label of the time from now on.
    pub(super) fn label(&self) -> Label {
        let recovery = self.recovery_point.is_some() || self.timeouts.is_some();
        Label::Limited(if recovery { Limit::Recovery } else { self.limit() }, self.round.number)
    }

    /// What limits the sender apart from a loss.
    fn limit(&self) -> Limit {
        if self.is_closed() {
            Limit::ClosedWindow
        } else if self.application_limited {
            Limit::LastFlight
        } else if !self.has_room() {
            Limit::ReceiveWindow
        } else {
            Limit::OwnWindowUndecided
        }
    }

    /// Whether the receive window allows a full segment.
    fn has_room(&self) -> bool {
        self.window_edge.is_none_or(|edge| edge - self.highest >= i64::from(self.full_segment))
    }

    /// Whether nothing is outstanding, and the receive window does not allow the sender's data.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_some_and(|closed| closed.opened.is_none())
    }

    /// A probe of the closed window: the sender has data.
    fn probe(&mut self, observation: &Observation, timeline: &mut Timeline) {
        let closed = self.closed.get_or_insert(Closed { since: self.progress, opened: None, probes: 0 });
        closed.probes += 1;
        let since = closed.since.time;
        timeline.relabel(since, observation.time, Label::Limited(Limit::ClosedWindow, self.round.number), is_idle);
    }

    /// All data is acknowledged, or the window moved: the window closed or opened.
    fn follow_window(&mut self, now: Stamp, stalls: &mut Vec<Stall>) {
        let has_room = self.has_room();
        let closes = !has_room && self.idle() && !self.application_limited;
        match &mut self.closed {
            Some(closed) if closed.opened.is_none() && has_room => {
                closed.opened = Some(now);
                stalls.push(Stall {
                    begin: closed.since.time,
                    end: now.time,
                    first_frame: closed.since.frame,
                    last_frame: now.frame,
                    outstanding: 0,
                    timeouts: closed.probes,
                    tail_probes: 0,
                    fate: Fate::WindowClosed,
                    path_gap: Span::ZERO,
                });
            }
            None if closes => {
                self.closed = Some(Closed { since: now, opened: None, probes: 0 });
            }
            _ => {}
        }
    }

    /// Data is sent after a time with a closed window: without a probe, and long after the window
    /// opened, the application had no data meanwhile.
    fn after_closed_window(&mut self, now: Instant, timeline: &mut Timeline) {
        let Some(Closed { since, opened: Some(opened), probes: 0 }) = self.closed.take() else { return };
        if now.since(opened.time) > AFTER_UPDATE {
            let label = Label::Known(Cause::Application, Confidence::Medium);
            timeline.relabel(since.time, opened.time, label, is_limited);
        }
    }

    /// This end sent a segment.
    pub(super) fn sent(&mut self, observation: &Observation, timeline: &mut Timeline, stalls: &mut Vec<Stall>) {
        let events = observation.events;
        let is_byte_beyond = observation.length == 1 && self.window_edge.is_some_and(|edge| observation.offset >= edge);
        if is_byte_beyond && events.contains(Events::ZERO_WINDOW_PROBE)
            || self.is_closed() && events.contains(Events::KEEP_ALIVE)
        {
            self.probe(observation, timeline);
            return;
        }
        if observation.length == 0 {
            return;
        }
        let now = observation.time;
        self.after_closed_window(now, timeline);
        let ends_data = self.end_of_data.at(observation);
        let is_sub_mss_after_all_acked = self.round_close_pending && ends_data;
        // Data of the other end since the last segment may have made the application send this.
        let held_by_nagle = is_sub_mss_after_all_acked
            && now.since(self.progress.time) < ACK_CLOCKED_WITHIN
            && self.received.time <= self.last_send;
        let held_since = if self.slow_start_over {
            // After slow start the window is assumed to have had room since the last send.
            Some(self.last_send)
        } else {
            // In slow start the congestion window may have been exactly full until an ACK arrived.
            self.first_ack_after_send
        };
        if held_by_nagle && let Some(since) = held_since {
            // Nagle's algorithm held the segment until all data was acknowledged (RFC 9293 §3.7.4).
            timeline.relabel(since, now, Label::Limited(Limit::Application, self.round.number), is_window);
        }
        if held_by_nagle && self.delayed_acknowledgement {
            stalls.push(Stall {
                begin: self.last_send,
                end: now,
                first_frame: self.last_sent_frame,
                last_frame: observation.frame,
                outstanding: 0,
                timeouts: 0,
                tail_probes: 0,
                fate: Fate::Nagle,
                path_gap: Span::ZERO,
            });
        }
        self.close_pending_round(timeline);
        let end = observation.offset + i64::from(observation.length);
        let new = end > self.highest;
        if new {
            if self.idle() {
                self.start_busy_period(observation);
            } else if self.may_be_new_data_probe(observation) {
                self.new_data_probe = Some(self.first_timeout(observation));
            }
            self.full_segment = observation.full_segment;
            self.highest = end;
            self.round.flight = self.round.flight.max(self.outstanding());
            self.largest_flight = self.largest_flight.max(self.outstanding());
            self.last_send = now;
            self.last_sent_frame = observation.frame;
            self.first_ack_after_send = None;
            self.acknowledged_since_send = 0;
            // A sub-MSS segment that fills the receive window does not end the data.
            self.application_limited = ends_data && self.window_edge.is_none_or(|edge| end < edge);
            self.round.application_limited |= self.application_limited;
        }
        if let Some(again) = observation.retransmission {
            self.retransmitted(observation, again.trigger);
        }
    }

    /// The other end sent a segment; processes its acknowledgement, which had `arrived` without
    /// others in front of it.
    pub(super) fn acknowledgement(
        &mut self,
        observation: &Observation,
        arrived: Instant,
        timeline: &mut Timeline,
        stalls: &mut Vec<Stall>,
    ) {
        let Some(acknowledged) = observation.acknowledged else { return };
        let now = observation.time;
        self.window_edge =
            self.window_edge.max(Some(acknowledged.saturating_add_unsigned(observation.most_receivable())));
        self.close_pending_round(timeline);
        if self.idle() {
            // The receiver accepted a probe, or the capture lacks data of this end.
            if acknowledged > self.acknowledged {
                self.acknowledged = acknowledged;
                self.highest = self.highest.max(acknowledged);
                self.delivered = self.delivered.max(observation.delivered);
            }
            self.follow_window(Stamp::of(observation), stalls);
            return;
        }
        if let Some(Undecided { timeouts, first_ack, arrived }) = self.undecided.take().map(|undecided| *undecided) {
            // F-RTO (RFC 5682 §2.1): if the second acknowledgement covers data that was sent once,
            // before the time-out, then the originals were delayed and not lost.
            let originals_arrived = observation.newly_acknowledged.is_some_and(|sending| sending.last < timeouts.first);
            self.end_of_timeouts(&timeouts, originals_arrived, (&first_ack, arrived), timeline, stalls);
        }
        let newly_delivered = observation.delivered.saturating_sub(self.delivered);
        // A segment can itself be the spurious retransmission. Then the other end sent it, and it
        // shows nothing about the retransmissions of this end.
        if observation.spurious.is_some_and(|spurious| spurious.frame != observation.frame) {
            self.spurious(now, timeline);
        }
        if newly_delivered == 0 && acknowledged <= self.acknowledged {
            self.duplicate_acknowledgement(observation);
            return;
        }
        self.duplicates.progress(acknowledged);
        if let Some((sample, _)) = observation.echo_round_trip.or(observation.round_trip) {
            let full_segments = newly_delivered / u64::from(self.full_segment.max(1));
            let base = self.bottleneck.path.base();
            self.delayed_acknowledgement =
                full_segments == 0 && base.is_some_and(|base| sample.saturating_sub(base) >= ACK_DELAY);
            self.bottleneck.path.round_trip(sample, full_segments);
        }
        let probe = self.new_data_probe.take().filter(|probe| self.shows_loss(probe, observation));
        if let Some(timeouts) = self.timeouts.take() {
            match self.originals_arrived(&timeouts, observation) {
                Some(originals) => {
                    self.end_of_timeouts(&timeouts, originals, (observation, arrived), timeline, stalls);
                }
                None => {
                    let first_ack = observation.clone();
                    self.undecided = Some(Box::new(Undecided { timeouts, first_ack, arrived }));
                }
            }
        } else if let Some(probe) = probe {
            let originals_arrived = false;
            self.end_of_timeouts(&probe, originals_arrived, (observation, arrived), timeline, stalls);
        } else {
            let copy = CopyCarried::Last;
            let carried = self.bottleneck.carried_by(observation, arrived, self.delivered, self.full_segment, copy);
            self.check_lateness(carried, observation, timeline, stalls);
            self.bottleneck.acknowledged(carried, Limit::own_window(self.slow_start_over), timeline);
        }
        self.delivered = self.delivered.max(observation.delivered);
        self.acknowledged = self.acknowledged.max(acknowledged);
        self.highest = self.highest.max(self.acknowledged);
        if self.held.as_ref().is_some_and(|held| self.acknowledged >= held.highest) {
            stalls.extend(self.held.take().map(|held| held.stall));
        }
        self.bottleneck.path.progress(now);
        self.progress = Stamp::of(observation);
        if self.recovery_point.is_some_and(|point| self.acknowledged >= point) {
            self.recovery_point = None;
        }
        self.first_ack_after_send = self.first_ack_after_send.or(Some(now));
        self.detect_application_limit(newly_delivered, timeline);
        if self.idle() {
            self.round_close_pending = true;
            self.follow_window(Stamp::of(observation), stalls);
        } else if self.acknowledged > self.round.ends_beyond {
            self.next_round(timeline);
        } else {
            self.round.acknowledgements += 1;
        }
    }

    /// New data of the other end arrived.
    pub(super) fn data_received(&mut self, observation: &Observation) {
        self.received = Stamp::of(observation);
    }

    /// The radio carried nothing in the direction of the data from `begin` to `end`.
    pub(super) fn data_gap(&mut self, begin: Instant, end: Instant, timeline: &mut Timeline) {
        timeline.relabel(begin, end, Label::Known(Cause::Radio, Confidence::High), Label::is_open);
        self.radio_gap_end = end;
    }

    /// The radio carried no acknowledgements from `begin` to `end`.
    pub(super) fn acknowledgement_gap(&mut self, begin: Instant, end: Instant, timeline: &mut Timeline) {
        timeline.relabel(begin, end, Label::AcknowledgementGap(Confidence::High), Label::is_open);
        self.radio_gap_end = end;
    }

    /// The connection ended.
    pub(super) fn end(&mut self, timeline: &mut Timeline, stalls: &mut Vec<Stall>) {
        // What was sent before the end may arrive after it, and was in the link until then.
        self.arrivals_until(Instant::FAR_FUTURE, timeline);
        if let Some(Undecided { timeouts, first_ack, arrived }) = self.undecided.take().map(|undecided| *undecided) {
            let originals_arrived = false;
            self.end_of_timeouts(&timeouts, originals_arrived, (&first_ack, arrived), timeline, stalls);
        }
        stalls.extend(self.held.take().map(|held| held.stall));
        if let Some(timeouts) = self.timeouts.take() {
            stalls.push(Stall {
                begin: timeouts.since.time,
                end: timeouts.last,
                first_frame: timeouts.since.frame,
                last_frame: timeouts.last_frame,
                outstanding: timeouts.outstanding,
                timeouts: timeouts.count - timeouts.tail_probes,
                tail_probes: timeouts.tail_probes,
                fate: Fate::Unknown,
                path_gap: timeouts.last.since(timeouts.since.time),
            });
        }
        self.end_busy_period(timeline);
    }

    /// New data is sent with nothing outstanding: a busy period starts.
    fn start_busy_period(&mut self, observation: &Observation) {
        // After an idle period the window restarts (RFC 5681 §4.1).
        let pause = observation.time.since(self.progress.time.max(self.last_send));
        let restart = pause > PAUSE.max(self.bottleneck.path.latest_round_trip.unwrap_or(Span::ZERO));
        // Before the first loss a restart enters slow start again. After a loss only a time-out
        // does (see `reduce`).
        if restart && self.threshold.is_none() {
            self.slow_start_over = false;
        }
        self.progress = Stamp::of(observation);
        self.bottleneck.path.pause();
        self.bottleneck.compare_round_trip(observation.time);
        if restart {
            self.largest_flight = 0;
        }
        self.round = Round {
            number: self.round.number + 2,
            // With nothing outstanding the first acknowledgement ends the round.
            ends_beyond: self.acknowledged,
            highest_at_start: self.highest,
            ..Round::default()
        };
    }

    /// Ends the round, and starts the next.
    fn next_round(&mut self, timeline: &mut Timeline) {
        self.judge_growth();
        let window_kind = Limit::own_window(self.slow_start_over);
        timeline.set_window_kind(self.round.number, window_kind);
        self.round = Round {
            number: self.round.number + 2,
            // The next new data starts at the highest offset.
            ends_beyond: self.highest,
            highest_at_start: self.highest,
            flight: self.outstanding(),
            flight_before: self.round.flight,
            // The acknowledgement that ended the round before counts in this one.
            acknowledgements: 1,
            application_limited: self.application_limited,
        };
    }

    /// Ends the round if the last acknowledgement covered all data. Called at the next segment,
    /// after the test for data that Nagle's algorithm held.
    fn close_pending_round(&mut self, timeline: &mut Timeline) {
        if std::mem::take(&mut self.round_close_pending) {
            self.end_busy_period(timeline);
        }
    }

    /// All data is delivered, or the connection ended: ends the last round of the busy period.
    fn end_busy_period(&mut self, timeline: &mut Timeline) {
        self.next_round(timeline);
        self.bottleneck.run_empty(Limit::own_window(self.slow_start_over), timeline);
        (self.timeouts, self.new_data_probe) = (None, None);
        self.recovery_point = None;
    }

    /// A sender that has room in its windows and sends nothing is application-limited.
    /// `newly_delivered` bytes were acknowledged.
    fn detect_application_limit(&mut self, newly_delivered: u64, timeline: &mut Timeline) {
        self.acknowledged_since_send += newly_delivered;
        // A sender that halves its window sends nothing until half of the flight is acknowledged.
        // Then the acknowledged bytes equal those still outstanding. 3/2 adds a margin.
        let outstanding = self.outstanding();
        let enough = (MIN_ACKNOWLEDGED_SEGMENTS * u64::from(self.full_segment)).max(outstanding * 3 / 2);
        let sends_nothing = self.acknowledged_since_send >= enough;
        if self.application_limited || self.recovery_point.is_some() || !self.has_room() || !sends_nothing {
            return;
        }
        self.application_limited = true;
        self.round.application_limited = true;
        let last_flight = Label::Limited(Limit::LastFlight, self.round.number);
        timeline.relabel(self.last_send, Instant::FAR_FUTURE, last_flight, is_window);
    }

    /// Judges whether slow start is over. After a loss it lasts up to the threshold; before, as
    /// long as the window grows by about a segment with each acknowledgement (RFC 5681 §3.1).
    fn judge_growth(&mut self) {
        let Round { flight, flight_before, acknowledgements, application_limited, highest_at_start, .. } = self.round;
        let segment = u64::from(self.full_segment);
        if let Some(threshold) = self.threshold {
            // After a loss slow start does not return before the next time-out. Before the first
            // loss each round decides again.
            self.slow_start_over |= flight.max(flight_before) >= threshold;
        } else if !application_limited
            && flight_before > 0
            && self.highest - highest_at_start >= i64::from(self.full_segment)
        {
            // Slow start adds a segment for each acknowledgement; half of that separates it from
            // congestion avoidance, also with delayed acknowledgements.
            self.slow_start_over = flight.saturating_sub(flight_before) * 2 < acknowledgements * segment;
        }
    }

    /// Bytes sent and not acknowledged.
    fn outstanding(&self) -> u64 {
        u64::try_from(self.highest - self.acknowledged).unwrap_or(0)
    }

    /// Sets the threshold at a loss: the window shrinks to it, or to one segment after a time-out.
    fn reduce(&mut self, outstanding: u64, to_one_segment: bool) {
        // RFC 5681 §3.1 halves the flight. Most systems halve the window, which is larger than the
        // flight of an application-limited sender.
        let window = if self.application_limited { outstanding.max(self.largest_flight) } else { outstanding };
        self.threshold = Some((window / 2).max(2 * u64::from(self.full_segment)));
        self.largest_flight = 0;
        self.slow_start_over = !to_one_segment;
    }
}

/// The sequence numbers of a segment: its data, and its FIN.
fn numbers(observation: &Observation) -> u64 {
    u64::from(observation.length) + u64::from(observation.flags.contains(Flags::FIN))
}

/// Whether the label attributes the time to the sender's own window.
fn is_window(label: Label) -> bool {
    matches!(label, Label::Limited(Limit::OwnWindowUndecided | Limit::SlowStart | Limit::CongestionWindow, _))
}

/// Whether the label attributes the time to the sender's limit, or to an application without data.
fn is_idle(label: Label) -> bool {
    is_limited(label) || label.is_idle()
}

/// Whether the label attributes the time to the sender's limit, which a gap of the link overrides.
fn is_limited(label: Label) -> bool {
    matches!(label, Label::Limited(..))
}
