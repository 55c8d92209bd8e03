//! Loss detection, and its effect on window and phase.

use airpath_core::Instant;

use super::{Phase, Sender, Shared, TailProbe};
use crate::accurate_ecn::EcnMode;
use crate::congestion::{Congested, CongestionControl, Signal};
use crate::frto::ForwardRto;
use crate::prr::ProportionalReduction;
use crate::rack::DetectionState;
use crate::scoreboard::{Delivery, Sent};
use crate::timers::Timer;
use crate::undo::Episode;

impl Sender {
    /// Detects losses. Returns whether there are any.
    #[inline]
    pub(super) fn find_losses(&mut self, now: Instant, shared: &mut Shared<'_>) -> bool {
        if !self.selective {
            return false;
        }
        if let Some(rack) = &mut self.rack {
            let enough = u64::from(self.threshold) * u64::from(self.segment_size);
            let state = DetectionState {
                now,
                rtt: &self.rtt,
                loss_evident: self.phase != Phase::Open
                    || self.scoreboard.sacked_bytes() >= enough
                    || self.duplicate_acks >= self.threshold,
            };
            let (found, again) = rack.find_losses(&mut self.scoreboard, &state);
            match again {
                Some(at) => shared.timers.set(Timer::Reordering, at),
                None => shared.timers.stop(Timer::Reordering),
            }
            return found;
        }
        if self.forward {
            self.scoreboard.find_losses_by_distance(self.threshold, self.segment_size)
        } else {
            self.scoreboard.find_losses_by_count(self.threshold, self.segment_size)
        }
    }

    /// Whether duplicate acknowledgements alone indicate a loss (RFC 6582 §3.2 step 2, RFC 6675 §5
    /// step 2).
    #[inline]
    pub(super) const fn has_enough_duplicates(&self, duplicate: bool) -> bool {
        duplicate && self.rack.is_none() && self.duplicate_acks >= self.threshold && self.acknowledged > self.recover
    }

    /// Starts a fast recovery (RFC 6582 §3.2 step 3, RFC 6675 §5 step 4).
    pub(super) fn begin_recovery(&mut self, now: Instant, delivery: &Delivery, shared: &mut Shared<'_>) {
        shared.statistics.fast_retransmits += 1;
        // Lost, and retransmitted in the previous recovery.
        let repairing = self.selective && self.scoreboard.first().is_some_and(Sent::is_lost);
        self.forget_first_repeat();
        self.episode = Some(Episode::new(self.acknowledged, self.scoreboard.repeats_in_flight()));
        if self.is_reducing_for_mark() {
            // As in Linux, losses of data sent after the mark begin the next recovery.
            self.recover = self.marks.until;
        } else {
            if self.notified {
                self.unreduced = true;
                self.restorable = false;
                self.prr = None;
            } else {
                self.reduce_for_loss(now, shared);
            }
            self.recover = self.next;
        }
        self.marks.reducing = false;
        // A probe that has repaired a loss of this recovery reduces the window no more
        // (tcp_init_cwnd_reduction).
        self.probe = TailProbe::Idle;
        self.phase = Phase::FastRecovery;
        self.partial = false;
        self.rescued = false;
        self.urgent = true;
        self.timed = None;
        if !self.scoreboard.needs_repair() && !repairing {
            self.scoreboard.lose_first();
        }
        if self.selective {
            self.reduce_in_proportion(delivery, self.scoreboard.pipe(), false);
        } else {
            self.prr = None;
            self.inflation = u64::from(self.duplicate_acks) * u64::from(self.segment_size);
        }
        self.restart_timer(now, shared);
        shared.timers.stop(Timer::TailProbe);
    }

    /// Reduces the window for a loss.
    pub(super) fn reduce_for_loss(&mut self, now: Instant, shared: &Shared<'_>) {
        let before = self.congestion_window();
        self.reduce(now, Signal::Loss, false, shared);
        self.prr = self.proportional_reduction(before, shared).filter(|_| self.selective);
        self.unreduced = false;
    }

    /// Whether the window was reduced because of a mark, and the oldest outstanding data was sent
    /// before.
    const fn is_reducing_for_mark(&self) -> bool {
        self.marks.reducing && self.acknowledged < self.marks.until
    }

    /// A proportional reduction from `window` to the slow-start threshold, if it is configured.
    pub(super) fn proportional_reduction(&self, window: u64, shared: &Shared<'_>) -> Option<ProportionalReduction> {
        let threshold =
            self.controller.slow_start_threshold().filter(|_| shared.config.recovery.proportional_reduction)?;
        if self.controller.takes_over() {
            return None;
        }
        Some(ProportionalReduction::new(threshold, self.outstanding(), window))
    }

    /// Without an outstanding retransmission, the next is the first again.
    pub(super) fn forget_first_repeat(&mut self) {
        if !self.scoreboard.has_repeats() {
            self.first_repeat = None;
        }
    }

    /// A recovery has ended, but data sent during it is lost too: starts the next one (RFC 6675 §5
    /// step 2, with `IsLost` of the oldest segment), even if that segment was already
    /// retransmitted.
    pub(super) fn begin_next_recovery(&mut self, now: Instant, delivery: &Delivery, shared: &mut Shared<'_>) -> bool {
        let found = self.find_losses(now, shared);
        let goes_on = found || (self.selective && self.scoreboard.first().is_some_and(Sent::is_lost));
        if goes_on {
            self.begin_recovery(now, delivery, shared);
        }
        goes_on
    }

    /// Everything that was outstanding at the start of the recovery is acknowledged.
    pub(super) fn end_recovery(&mut self) {
        self.phase = Phase::Open;
        self.duplicate_acks = 0;
        self.inflation = 0;
        self.prr = None;
        self.unreduced = false;
        if let Some(rack) = &mut self.rack {
            rack.on_recovery_end();
        }
    }

    /// The retransmission timer expired (RFC 6298 §5, RFC 5681 §3.1).
    pub fn on_timeout(&mut self, now: Instant, shared: &mut Shared<'_>) {
        shared.statistics.timeouts += 1;
        self.retries += 1;
        let recovering = self.phase != Phase::Open;
        // The oldest segment was sent again by the timer before, or by a fast recovery.
        let repeated = recovering && (self.phase != Phase::Loss || self.retries > 1);
        if !repeated {
            self.episode = Some(Episode::new(self.acknowledged, self.scoreboard.repeats_in_flight()));
        }
        // RFC 5681 §3.1: the second retransmission by the timer does not lower the threshold again,
        // nor does the first if a mark did. After progress the next one does, as in Linux
        // (`tcp_enter_loss`).
        let again = (repeated || self.is_reducing_for_mark()) && !shared.config.recovery.timeouts_add_up;
        self.reduce(now, Signal::Timeout, again, shared);
        if self.scoreboard.first().is_some_and(|first| first.is_sacked()) {
            // RFC 2018 §8: discards SACK information, since the receiver may have reneged.
            self.scoreboard.forget_sacked();
        }
        self.scoreboard.lose_all();
        self.controller.on_timeout_losses(self.scoreboard.lost());
        if let Some(rack) = &mut self.rack {
            rack.restart_search();
        }
        // RFC 5682 §2.1 step 1: not for data that was already retransmitted.
        let first = shared.config.recovery.forward_rto && !recovering;
        self.frto = if first { ForwardRto::Repeated } else { ForwardRto::Off };
        self.phase = Phase::Loss;
        self.recover = self.next;
        self.duplicate_acks = 0;
        self.inflation = 0;
        self.prr = None;
        self.unreduced = false;
        self.marks.reducing = false;
        self.probe = TailProbe::Idle;
        self.timed = None;
        self.urgent = true;
        self.burst = u32::MAX;
        self.rtt.back_off();
        shared.timers.stop(Timer::Reordering);
        shared.timers.stop(Timer::TailProbe);
        self.restart_timer(now, shared);
    }

    /// Full segments have `size` bytes from now on, because larger ones do not fit the path. Larger
    /// ones in flight are lost, but not by congestion, so the window stays.
    pub fn reduce_segment_size(&mut self, size: u32, shared: &mut Shared<'_>) {
        self.segment_size = size;
        self.controller.on_segment_size(size);
        if !self.scoreboard.split(size) {
            return;
        }
        if let Some(rack) = &mut self.rack {
            rack.restart_search();
        }
        if self.phase == Phase::Open {
            self.phase = Phase::Loss;
            self.recover = self.next;
            self.episode = None;
        }
        self.frto = ForwardRto::Off;
        self.probe = TailProbe::Idle;
        self.timed = None;
        self.urgent = true;
        shared.timers.stop(Timer::TailProbe);
    }

    /// The reordering timer expired. Returns whether a recovery begins.
    pub fn on_reordering_timeout(&mut self, now: Instant, shared: &mut Shared<'_>) -> bool {
        let begins = self.find_losses(now, shared) && self.phase == Phase::Open;
        if begins {
            self.begin_recovery(now, &Delivery::new(now, None, None), shared);
        }
        begins
    }

    /// The last reduction was spurious: restores the state before it (RFC 4015 §3.3).
    pub(super) fn undo(&mut self, now: Instant, shared: &mut Shared<'_>) {
        shared.statistics.undos += 1;
        if self.restorable {
            self.controller.undo(now);
        }
        self.scoreboard.lose_nothing();
        if let Some(rack) = &mut self.rack {
            rack.restart_search();
        }
        self.frto = ForwardRto::Off;
        self.episode = None;
        self.urgent = false;
        if self.phase == Phase::Loss {
            // What was outstanding is not sent again, so that duplicate acknowledgements of it are
            // not answers to repeated segments (RFC 6582 §4).
            self.recover = 0;
        }
        self.end_recovery();
        self.rtt.reset_backoff();
        self.restart_timer(now, shared);
    }

    /// Reduces the window, and sets CWR (RFC 3168 §6.1.2). Marks of the outstanding data do not
    /// reduce it again.
    pub(super) fn reduce(&mut self, now: Instant, signal: Signal, again: bool, shared: &Shared<'_>) {
        self.marks.until = self.next;
        if !again {
            self.restorable = signal != Signal::Mark;
        }
        self.controller.on_congestion(&Congested {
            now,
            signal,
            again,
            flight_size: self.outstanding(),
            // A peer that closes its window has offered as much as is outstanding.
            window_limit: self.window_limit(shared.config).max(self.outstanding()),
        });
        self.marks.reduced = self.marks.mode == EcnMode::Classic;
    }
}
