//! Processing of acknowledgements.

use airpath_core::range_set::Range;
use airpath_core::{Instant, Span};
use airpath_wire::tcp::{EcnCounters, SackBlocks};

use super::{Phase, Sender, Shared, TailProbe};
use crate::accurate_ecn::{DeliveredMarks, EcnMode};
use crate::config::{PartialAcks, RetransmissionTimeout, Samples};
use crate::congestion::{Acknowledged, CongestionControl, Delivered, Signal};
use crate::frto::{Evidence, ForwardRto, Verdict};
use crate::rate::Counts;
use crate::scoreboard::Delivery;
use crate::sequence::{Sequence, from_wire};
use crate::timers::Timer;
use crate::undo::is_answer_to_original;

/// The acknowledgement information of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgment<'a> {
    /// Cumulative acknowledgement; at most what was sent.
    pub number: Sequence,
    /// Sequence number of the segment that carries it.
    pub sequence: Sequence,
    /// The offered window, in bytes.
    pub window: u64,
    /// SACK blocks, relative to `initial`.
    pub blocks: &'a SackBlocks,
    /// This end's initial sequence number.
    pub initial: u32,
    /// Whether the segment carries nothing else.
    pub bare: bool,
    /// Whether the receiver echoes CE marks (ECE, RFC 3168 §6.1.3).
    pub marked: bool,
    /// The field of accurate ECN feedback, where it is in use.
    pub mark_counter: Option<u8>,
    /// The AccECN option, with that feedback.
    pub byte_counters: Option<&'a EcnCounters>,
    /// Whether its timestamp is later than all before; only with that feedback.
    pub newer: bool,
    /// Whether the loss that it reports was not congestion (ELN).
    pub loss_notification: bool,
    /// Start and end of the timestamp-clock tick in which the echoed segment was sent.
    pub echo: Option<(Instant, Instant)>,
    /// The receiver's timestamp.
    pub timestamp: Option<u32>,
}

/// Effects of an acknowledgement, for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub advanced: bool,
    pub recovery_began: bool,
    pub recovery_ended: bool,
    pub undone: bool,
    pub marked: bool,
    /// The measured round trip.
    pub round_trip: Option<Span>,
}

/// State before an acknowledgement, and the marks that it reports.
#[derive(Clone, Copy)]
struct Before {
    /// Segments with marks.
    marked: u64,
    /// Bytes in flight.
    in_flight: u64,
    /// Segments lost so far.
    lost: u64,
}

impl Sender {
    /// Processes an acknowledgement.
    #[inline]
    pub fn on_ack(&mut self, now: Instant, ack: &Acknowledgment<'_>, shared: &mut Shared<'_>) -> Changes {
        let mut changes = Changes::default();
        // One that was overtaken still reports what arrived (`old_ack` of Linux).
        let overtaken = ack.number < self.acknowledged;
        if overtaken && (!self.selective || ack.blocks.is_empty()) {
            return changes;
        }
        let advanced = ack.number > self.acknowledged;
        if self.settled && !advanced && ack.blocks.is_empty() && !ack.marked {
            debug_assert!(self.outstanding() == 0 && self.is_settled());
            self.take_window(now, ack, shared);
            self.begin_acknowledgment(ack, shared);
            return changes;
        }
        let before = Before { in_flight: self.in_flight(shared.config), lost: self.scoreboard.lost(), marked: 0 };
        let window_moved = !overtaken && self.take_window(now, ack, shared);
        self.begin_acknowledgment(ack, shared);
        let mut delivery = Delivery::new(now, self.rtt.least(), ack.echo.map(|(_, end)| end));
        let highest = self.scoreboard.highest_sacked();
        let duplicate_report =
            if self.selective && !ack.blocks.is_empty() { self.take_blocks(ack, &mut delivery) } else { None };
        if !advanced
            && shared.config.retransmission_timeout.samples == Samples::EverySack
            && let Some(sent) = delivery.first_original
        {
            self.measure_selectively(now, sent, shared);
        }
        if advanced {
            self.scoreboard.acknowledge(ack.number, &mut delivery);
            self.acknowledged = ack.number;
            self.last_progress = now;
            self.retries = 0;
            changes.advanced = true;
            changes.round_trip = self.measure(now, ack, &delivery, shared);
        }
        let duplicate = !advanced
            && self.outstanding() > 0
            && if self.selective { delivery.bytes > 0 } else { ack.bare && !window_moved };
        shared.statistics.duplicate_acks += u64::from(duplicate);
        if self.controller.estimates_rate() {
            self.controller.on_delivered(&Delivered {
                now,
                bytes: delivery.bytes,
                duplicate: duplicate && !self.selective,
                round_trip: changes.round_trip,
                timestamps: ack.echo.map(|(begin, _)| begin).zip(ack.timestamp),
            });
        }
        self.note_reordering(&delivery, highest, shared);
        if let Some(rack) = &mut self.rack {
            rack.on_delivery(&delivery, self.acknowledged, self.scoreboard.highest_sacked());
            if duplicate_report.is_some() {
                rack.on_duplicate_report(self.acknowledged, self.next);
            }
        }
        if self.marks.reducing && ack.number > self.marks.until {
            self.marks.reducing = false;
            self.prr = None;
        }
        let marked = if overtaken { 0 } else { self.take_counters(ack, &delivery, advanced) };
        let reductions = self.controller.mark_reductions();
        let responds = self.marks.capable && (ack.marked && !overtaken || marked > 0);
        if responds {
            self.restorable = false;
            // The echo for the last segment of a reduced window is still of that window: the
            // receiver sees CWR with the next one.
            if reductions.is_none() && ack.number > self.marks.until && self.phase == Phase::Open {
                self.on_mark(now, shared);
                changes.marked = true;
            }
        }
        self.end_probe(now, ack, duplicate_report, shared);
        self.look_for_undo(now, ack, duplicate_report, shared, &mut changes);
        self.proceed(now, advanced, duplicate, &delivery, shared, &mut changes);
        if advanced {
            self.restart_timer_after(now, changes.recovery_began, shared);
        }
        if advanced || duplicate {
            self.schedule_probe(now, shared);
        }
        if self.phase == Phase::Open && self.first_repeat.is_some() {
            self.forget_first_repeat();
        }
        if self.scoreboard.rate.is_some() {
            let marked = if self.marks.capable { marked } else { 0 };
            self.sample_rate(now, Before { marked, ..before }, ack, (&delivery, duplicate), shared);
            if let (Some(before), Some(after)) = (reductions, self.controller.mark_reductions())
                && after > before
            {
                shared.statistics.ecn_reductions += after - before;
                changes.marked = true;
            }
        }
        self.settled = self.outstanding() == 0 && self.is_settled();
        changes
    }

    /// Takes the counters of accurate ECN feedback. Returns the newly marked segments. Without
    /// progress, the acknowledgement may be older than the last, and is skipped (RFC 9768
    /// §3.2.2.2, appendix A.1).
    #[inline]
    fn take_counters(&mut self, ack: &Acknowledgment<'_>, delivery: &Delivery, advanced: bool) -> u64 {
        let progresses = advanced || delivery.bytes > 0 || ack.newer;
        if self.marks.mode != EcnMode::Accurate || !progresses {
            return 0;
        }
        let sent = self.next;
        let marked_bytes = self.marks.peer_bytes.on_ack(ack.byte_counters, delivery.bytes, sent);
        let Some(counter) = ack.mark_counter else { return 0 };
        let delivered = DeliveredMarks {
            segments: delivery.segments,
            bytes: delivery.bytes,
            marked_bytes,
            segment_size: u64::from(self.segment_size),
            counts_exactly: self.selective || self.phase == Phase::Open,
        };
        self.marks.peer.on_ack(counter, &delivered)
    }

    /// What every acknowledgement sets.
    #[inline]
    fn begin_acknowledgment(&mut self, ack: &Acknowledgment<'_>, shared: &Shared<'_>) {
        self.notified = ack.loss_notification && shared.config.recovery.loss_notification;
        self.probes = 0;
        self.burst = shared.config.recovery.burst.get().unwrap_or(u32::MAX);
    }

    /// Whether an acknowledgement without anything new would change nothing else, while nothing is
    /// outstanding.
    fn is_settled(&self) -> bool {
        self.phase == Phase::Open
            && self.scoreboard.is_empty()
            && self.scoreboard.rate.is_none()
            && self.probe == TailProbe::Idle
            && self.prr.is_none()
            && self.first_repeat.is_none()
            && !self.marks.reducing
            && !self.frozen
            && !self.controller.estimates_rate()
    }

    /// Passes the rate sample of the acknowledgement to the controller.
    fn sample_rate(
        &mut self,
        now: Instant,
        before: Before,
        ack: &Acknowledgment<'_>,
        (delivery, duplicate): (&Delivery, bool),
        shared: &Shared<'_>,
    ) {
        let size = u64::from(self.segment_size);
        let (in_flight, lost) = (self.in_flight(shared.config), self.scoreboard.lost());
        let presumed_lost = if self.selective { 0 } else { self.scoreboard.first_lost() };
        let Some(rate) = &mut self.scoreboard.rate else { return };
        // As `tcp_ack_update_rtt` of Linux: selectively acknowledged data, then data acknowledged
        // by Karn's rule, then the timestamp.
        let original = delivery.last_original.filter(|_| !delivery.repeated);
        let echo = ack.echo.map(|(begin, _)| begin).filter(|_| delivery.repeated);
        let sent = delivery.last_sacked.or(original).or(echo);
        let segments = delivery.segments;
        let acknowledged = if self.selective {
            segments
        } else {
            // After a timeout, only duplicates of new data show deliveries (`tcp_process_loss`).
            let counts = duplicate && (self.phase != Phase::Loss || self.next > self.recover);
            let acknowledged = rate.presume(segments, counts, presumed_lost);
            // Duplicates count until data is acknowledged, in a recovery until it ends.
            if delivery.bytes > 0 && self.phase != Phase::FastRecovery {
                rate.forget_presumed();
            }
            acknowledged
        };
        for lost in rate.take_losses(size) {
            self.controller.on_segment_lost(now, &lost);
        }
        let mut sample = rate.sample(&Counts {
            now,
            acknowledged,
            losses: lost - before.lost,
            lost,
            in_flight: in_flight.div_ceil(size),
            prior_in_flight: before.in_flight.div_ceil(size),
            round_trip: sent.map(|sent| now.since(sent)),
            lone: delivery.segments == 1 && delivery.bytes < size && delivery.last_original.is_some(),
            least_round_trip: self.rtt.least(),
            segment_size: size,
        });
        sample.marked = before.marked;
        sample.smoothed_round_trip = self.rtt.smoothed();
        sample.departure = self.pacer.release.max(now);
        sample.recovery = self.phase == Phase::FastRecovery;
        sample.timed_out = self.phase == Phase::Loss;
        self.controller.on_rate_sample(&sample);
        if self.controller.limits_itself() {
            rate.limit_by_application(sample.in_flight);
        }
    }

    /// New data was acknowledged: restarts the retransmission timer (RFC 6298 §5.3). An impatient
    /// recovery restarts it on the first partial acknowledgement only (RFC 6582 §4).
    #[inline]
    fn restart_timer_after(&mut self, now: Instant, recovery_began: bool, shared: &mut Shared<'_>) {
        let partial = self.phase == Phase::FastRecovery && !self.selective && !recovery_began;
        let impatient = shared.config.recovery.partial_acks == PartialAcks::Impatient;
        if !(partial && self.partial && impatient) || self.scoreboard.is_empty() {
            self.restart_timer(now, shared);
        }
        self.partial |= partial;
    }

    /// Advances the phase: detects losses, starts and ends recoveries, and grows the window.
    #[inline]
    fn proceed(
        &mut self,
        now: Instant,
        advanced: bool,
        duplicate: bool,
        delivery: &Delivery,
        shared: &mut Shared<'_>,
        changes: &mut Changes,
    ) {
        match self.phase {
            Phase::Open => {
                let duplicates = self.duplicate_acks;
                self.duplicate_acks = if advanced { 0 } else { self.duplicate_acks + u32::from(duplicate) };
                let lost = self.find_losses(now, shared);
                if lost || self.has_enough_duplicates(duplicate) {
                    self.begin_recovery(now, delivery, shared);
                    changes.recovery_began = true;
                } else if self.prr.is_some() {
                    let pipe = self.in_flight(shared.config);
                    self.reduce_in_proportion(delivery, pipe, advanced);
                } else if advanced {
                    // Duplicates have reported their segments before (`tcp_remove_reno_sacks`).
                    let segment = u64::from(self.segment_size);
                    let reported = if self.selective { 0 } else { u64::from(duplicates) * segment };
                    let bytes = delivery.bytes.saturating_sub(reported).max(delivery.bytes.min(segment));
                    self.grow(now, bytes, changes.round_trip, shared);
                }
            }
            Phase::FastRecovery => {
                if self.acknowledged >= self.recover {
                    self.end_recovery();
                    changes.recovery_ended = true;
                    if self.begin_next_recovery(now, delivery, shared) {
                        changes.recovery_began = true;
                        return;
                    }
                    // The acknowledgement that ends a recovery grows the window, as in Linux, BSD
                    // and ns-2, but by one segment only: the other data that it covers had arrived
                    // before.
                    let bytes = delivery.bytes.min(u64::from(self.segment_size));
                    return self.grow(now, bytes, changes.round_trip, shared);
                }
                if duplicate && self.unreduced && !self.notified {
                    // The network has lost a segment too.
                    self.reduce_for_loss(now, shared);
                }
                let lost = self.find_losses(now, shared);
                if !self.selective {
                    self.on_partial_or_duplicate(advanced, duplicate, delivery);
                }
                self.reduce_in_proportion(delivery, self.scoreboard.pipe(), advanced && !lost);
            }
            Phase::Loss => {
                if self.judge_timeout(advanced, delivery) == Verdict::Spurious {
                    self.undo(now, shared);
                    changes.undone = true;
                } else if self.acknowledged >= self.recover {
                    self.phase = Phase::Open;
                    changes.recovery_ended = true;
                    if let Some(rack) = &mut self.rack {
                        // RFC 8985 §6.2 step 4: a recovery by the timer counts, too.
                        rack.on_recovery_end();
                    }
                    if self.begin_next_recovery(now, delivery, shared) {
                        changes.recovery_began = true;
                        return;
                    }
                } else {
                    self.find_losses(now, shared);
                }
                self.duplicate_acks = if advanced { 0 } else { self.duplicate_acks + u32::from(duplicate) };
                if advanced {
                    self.grow(now, delivery.bytes, changes.round_trip, shared);
                }
            }
        }
    }

    /// Proportional rate reduction, where it is in progress, with `pipe` bytes in flight.
    #[inline]
    pub(super) fn reduce_in_proportion(&mut self, delivery: &Delivery, pipe: u64, progress: bool) {
        if let Some(prr) = &mut self.prr {
            prr.on_ack(delivery.bytes, pipe, progress, u64::from(self.segment_size));
        }
    }

    /// Without SACK: each duplicate indicates that a segment has left the network, and a partial
    /// acknowledgement that the next segment is lost too (RFC 6582 §3.2 steps 3 and 5).
    fn on_partial_or_duplicate(&mut self, advanced: bool, duplicate: bool, delivery: &Delivery) {
        let segment = u64::from(self.segment_size);
        if advanced {
            // The acknowledged data leaves the network; the duplicates had already subtracted all
            // of it but the retransmission.
            self.inflation = self.inflation.saturating_sub(delivery.bytes.saturating_sub(segment));
            self.scoreboard.lose_first();
            self.urgent = true;
        } else if duplicate {
            self.inflation += segment;
        }
    }

    /// Grows the window (RFC 5681 §3.1).
    #[inline]
    fn grow(&mut self, now: Instant, bytes: u64, round_trip: Option<Span>, shared: &Shared<'_>) {
        self.controller.on_ack(&Acknowledged {
            now,
            bytes,
            round_trip,
            smoothed_round_trip: self.rtt.smoothed(),
            acknowledged: self.acknowledged,
            sent: self.next,
            limited: self.is_window_used() || !shared.config.window_validation,
        });
    }

    /// Updates the peer's window from the newest segment. Returns whether the window differs from
    /// the last. A segment is newer if it acknowledges more, or has a higher sequence number (RFC
    /// 9293 §3.10.7.4, with the order of the two as in Linux: a retransmission has a lower number,
    /// and may acknowledge more). If both are equal, the larger window is newer: windows do not
    /// shrink.
    #[inline]
    fn take_window(&mut self, now: Instant, ack: &Acknowledgment<'_>, shared: &mut Shared<'_>) -> bool {
        let edge = ack.number + ack.window;
        let newer = ack.number > self.acknowledged
            || ack.sequence > self.window_from
            || (ack.sequence == self.window_from && edge > self.edge);
        let moved = edge != self.edge;
        if !newer {
            return moved;
        }
        self.window_from = ack.sequence;
        self.edge = edge;
        self.largest_window = self.largest_window.max(ack.window);
        if moved && ack.window > 0 {
            shared.timers.stop(Timer::Persist);
        }
        if shared.config.recovery.zero_window_freezes && (self.frozen || self.outstanding() > 0) {
            self.freeze(now, ack.window == 0, shared);
        }
        moved
    }

    /// The peer has closed its window, or has opened it again: what was outstanding is sent again.
    fn freeze(&mut self, now: Instant, closed: bool, shared: &mut Shared<'_>) {
        if closed == std::mem::replace(&mut self.frozen, closed) {
            return;
        }
        if closed {
            self.schedule_window_probe(now, shared);
        } else {
            self.probed = 0;
            self.end_recovery();
            self.scoreboard.lose_all();
            self.phase = Phase::Loss;
            self.recover = self.next;
            self.frto = ForwardRto::Off;
        }
        self.restart_timer(now, shared);
    }

    /// Processes the SACK blocks. Returns the start of the duplicate, if the first block is a DSACK
    /// (RFC 2883 §4).
    fn take_blocks(&mut self, ack: &Acknowledgment<'_>, delivery: &mut Delivery) -> Option<Sequence> {
        let mut report = None;
        let blocks = ack.blocks.as_slice();
        let read = |index: usize| -> Option<Range<Sequence>> {
            let (start, end) = *blocks.get(index)?;
            let start = from_wire(ack.initial, ack.number, start)?;
            let end = from_wire(ack.initial, ack.number, end)?;
            (start < end && end <= self.next).then_some(Range::new(start, end))
        };
        let ranges: [Option<Range<Sequence>>; SackBlocks::MAX] = std::array::from_fn(read);
        if let Some(first) = ranges[0] {
            let within_second = ranges[1].is_some_and(|second| second.contains(first));
            if first.end <= ack.number || within_second {
                report = Some(first.start);
            }
        }
        let floor = ack.number.max(self.acknowledged);
        for range in ranges.into_iter().flatten() {
            let part = Range::new(range.start.max(floor), range.end);
            if !part.is_empty() && part.start > floor {
                self.scoreboard.acknowledge_selectively(part, delivery);
            }
        }
        report
    }

    /// Measures the round trip for the timer, and that for the statistics, which it returns.
    #[inline]
    fn measure(
        &mut self,
        now: Instant,
        ack: &Acknowledgment<'_>,
        delivery: &Delivery,
        shared: &mut Shared<'_>,
    ) -> Option<Span> {
        let config = &shared.config.retransmission_timeout;
        let sent = match config.samples {
            // Karn's rule (RFC 6298 §3): no sample from a retransmitted segment, unless a timestamp
            // identifies the transmission.
            Samples::EveryAck | Samples::EverySack if !delivery.repeated => delivery.first_acknowledged,
            Samples::EveryAck | Samples::EverySack => ack.echo.map(|(begin, _)| begin),
            Samples::OneAtATime => self.timed.filter(|(end, _)| *end <= ack.number).map(|(_, sent)| {
                self.timed = None;
                sent
            }),
        };
        if let Some(sent) = sent {
            self.record_round_trip(sent, now, config);
        }
        let round_trip = delivery.last_acknowledged.map(|sent| now.since(sent));
        if let Some(round_trip) = round_trip {
            shared.statistics.round_trip(round_trip);
        }
        round_trip
    }

    /// A segment sent at `sent` was acknowledged `now`.
    #[inline]
    pub fn record_round_trip(&mut self, sent: Instant, now: Instant, config: &RetransmissionTimeout) {
        self.rtt.measure(sent, now, Range::new(self.acknowledged, self.next), config);
    }

    /// A segment sent at `sent`, and once only, arrived out of order, which is a round-trip sample
    /// too. If it was sent before the oldest segment, that one may still be in flight, and the
    /// timer restarts.
    fn measure_selectively(&mut self, now: Instant, sent: Instant, shared: &mut Shared<'_>) {
        self.record_round_trip(sent, now, &shared.config.retransmission_timeout);
        if self.scoreboard.first().is_some_and(|first| sent < first.at) {
            self.restart_timer(now, shared);
        }
    }

    /// Reordering was observed: raises the duplicate threshold. After a timeout the order is
    /// unknown, as in Linux.
    fn note_reordering(&mut self, delivery: &Delivery, highest: Option<Sequence>, shared: &Shared<'_>) {
        /// `TCP_MAX_REORDERING` of Linux 2.4; 300 in Linux 6, where RACK replaces the threshold.
        const MAX: u64 = 127;
        if !shared.config.recovery.adaptive_threshold || self.phase == Phase::Loss {
            return;
        }
        if let (Some(original), Some(highest)) = (delivery.lowest_original, highest)
            && original < highest
        {
            let distance = (highest - original).div_ceil(u64::from(self.segment_size)).min(MAX);
            self.threshold = self.threshold.max(distance as u32);
            self.forward = false;
        }
    }

    /// RFC 3168 §6.1.2: reduces the window as for a loss, without a retransmission. As in Linux
    /// (`tcp_enter_cwr`), the reduction is proportional if that of a recovery is.
    fn on_mark(&mut self, now: Instant, shared: &mut Shared<'_>) {
        let window = self.congestion_window();
        let before = self.controller.congestion_window();
        self.reduce(now, Signal::Mark, false, shared);
        // BBR does not react to marks.
        shared.statistics.ecn_reductions += u64::from(self.controller.congestion_window() < before);
        self.marks.reducing = true;
        self.prr = self.proportional_reduction(window, shared);
        self.probe = TailProbe::Idle;
        self.episode = None;
    }

    /// RFC 8985 §7.4.2: if the probe retransmitted a segment that was lost, a loss was repaired and
    /// the window is reduced. It was not lost if the receiver reports a duplicate, or acknowledges
    /// the same number twice.
    fn end_probe(&mut self, now: Instant, ack: &Acknowledgment<'_>, report: Option<Sequence>, shared: &mut Shared<'_>) {
        let TailProbe::Sent { end, repeated } = self.probe else { return };
        let spurious = report.is_some_and(|start| start < end)
            || (self.acknowledged == end && ack.bare && ack.blocks.is_empty() && self.last_progress != now);
        if self.acknowledged > end && repeated && !spurious && self.phase == Phase::Open && !self.marks.reducing {
            self.reduce(now, Signal::Loss, false, shared);
            self.episode = None;
        }
        if self.acknowledged > end || (self.acknowledged == end && (spurious || !repeated)) {
            self.probe = TailProbe::Idle;
        }
    }

    fn look_for_undo(
        &mut self,
        now: Instant,
        ack: &Acknowledgment<'_>,
        duplicate_report: Option<Sequence>,
        shared: &mut Shared<'_>,
        changes: &mut Changes,
    ) {
        let Some(episode) = &mut self.episode else { return };
        let recovery = &shared.config.recovery;
        let eifel = recovery.eifel
            && changes.advanced
            && self.phase != Phase::Open
            && is_answer_to_original(self.first_repeat, ack.echo.map(|(_, end)| end));
        let reported =
            duplicate_report.is_some_and(|start| episode.on_duplicate_report(start)) && recovery.duplicate_undo;
        if eifel || reported {
            self.undo(now, shared);
            changes.undone = true;
        }
    }

    fn judge_timeout(&mut self, advanced: bool, delivery: &Delivery) -> Verdict {
        let recover = self.recover;
        self.frto.on_ack(Evidence {
            advanced,
            complete: self.acknowledged >= recover,
            original_arrived: self.selective.then(|| delivery.lowest_original.is_some_and(|start| start < recover)),
        })
    }
}
