//! Expiry of timers.

use airpath_core::{Context, Instant, TcpTrigger};

use super::Connection;
use crate::state::{Outcome, TimedOut};
use crate::timers::Timer;

impl Connection {
    /// Handles the timers that have expired by `now`, if any. Then call
    /// [`poll_transmit`](Self::poll_transmit).
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.now = now;
        if self.timers.next().is_some_and(|next| next <= now) {
            self.on_due(now, cx);
        }
    }

    fn on_due(&mut self, now: Instant, cx: &mut Context<'_>) {
        if self.timers.take_due(Timer::TimeWait, now) {
            return self.end(now, Outcome::Closed, cx);
        }
        if self.timers.take_due(Timer::DelayedAck, now) {
            let timeout = self.sender.rtt.timeout(&self.config.retransmission_timeout);
            self.receiver.acks.on_timeout(timeout, &self.config.delayed_ack);
        }
        // The paced segment, if due, is the next one of `poll_transmit`.
        self.timers.take_due(Timer::Pacing, now);
        if self.timers.take_due(Timer::Reordering, now) {
            let (sender, mut shared) = self.sending();
            if sender.on_reordering_timeout(now, &mut shared) {
                self.report(now, TcpTrigger::FastRetransmit, None, cx);
            }
        }
        if self.timers.take_due(Timer::TailProbe, now) {
            // The probe restarts the retransmission timer (RFC 8985 §7.3).
            let (sender, mut shared) = self.sending();
            sender.on_probe_timeout(now, &mut shared);
        }
        if self.timers.take_due(Timer::Retransmission, now) && !self.on_opening_timeout(now, cx) {
            self.on_retransmission_timeout(now, cx);
        }
        if self.timers.take_due(Timer::Persist, now) {
            self.on_persist_timeout(now, cx);
        }
    }

    fn on_retransmission_timeout(&mut self, now: Instant, cx: &mut Context<'_>) {
        if self.sender.scoreboard.is_empty() {
            return;
        }
        if self.sender.retries >= self.config.retransmission_timeout.retries {
            return self.abort_after_retries(now, self.sender.retries + 1, cx);
        }
        let (sender, mut shared) = self.sending();
        sender.on_timeout(now, &mut shared);
        self.report(now, TcpTrigger::Timeout, None, cx);
    }

    fn on_persist_timeout(&mut self, now: Instant, cx: &mut Context<'_>) {
        if self.sender.unanswered_probes() >= self.config.retransmission_timeout.retries {
            return self.abort_after_retries(now, self.sender.unanswered_probes(), cx);
        }
        let (sender, mut shared) = self.sending();
        sender.on_persist_timeout(now, &mut shared);
    }

    fn abort_after_retries(&mut self, now: Instant, attempts: u32, cx: &mut Context<'_>) {
        let after = now.since(self.sender.last_progress);
        self.end(now, Outcome::TimedOut(TimedOut::Data { attempts, after }), cx);
    }
}
