//! What to send next.

use airpath_core::Instant;

use super::{Phase, Sender, Shared, TailProbe, Underuse, WindowUsage};
use crate::config::{IdleRestart, Nagle, Samples};
use crate::congestion::CongestionControl;
use crate::frto::ForwardRto;
use crate::scoreboard::Sent;
use crate::sequence::Sequence;
use crate::timers::{Timer, after};

/// A segment of the stream that must be sent now, and is counted as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Its first sequence number.
    pub start: Sequence,
    /// Payload bytes.
    pub payload: u32,
    /// Whether a FIN follows the payload.
    pub fin: bool,
    /// Whether it is a retransmission.
    pub repeated: bool,
    /// Whether it ends the data written so far.
    pub push: bool,
    /// Whether it is the first new data after a window reduction by ECN (RFC 3168 §6.1.2).
    pub reduced: bool,
    /// Reason of the transmission.
    pub cause: Cause,
}

/// Reason of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The windows allow it, or it repairs a loss.
    Stream,
    /// Probes for the loss of the last segments (RFC 8985 §7).
    TailProbe,
    /// Probes whether the peer's window is still closed: an old sequence number without payload,
    /// which the peer answers.
    WindowProbe,
}

/// Reason why nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    /// No data to send.
    Idle,
    /// The congestion window is full.
    Congestion,
    /// The peer's window is closed, or too small (silly window avoidance).
    Window,
    /// A sub-MSS segment waits for an acknowledgement (Nagle), or F-RTO or the burst limit does.
    Deferred,
    /// The pacing time of the next segment has not come.
    Pace,
}

impl Sender {
    /// The next segment to send. Call it until it returns `None`.
    #[inline]
    pub fn poll(&mut self, now: Instant, shared: &mut Shared<'_>) -> Option<Transmission> {
        if !self.has_work() && self.scoreboard.is_empty() {
            return None;
        }
        let sent = match self.choose(now, shared) {
            Ok(transmission) => transmission,
            Err(blocked) => {
                self.on_blocked(now, blocked, shared);
                return None;
            }
        };
        self.settled = false;
        if sent.cause == Cause::WindowProbe {
            return Some(sent);
        }
        self.last_sent = now;
        if self.paces {
            let end = sent.start + u64::from(sent.payload) + u64::from(sent.fin);
            self.set_pace(now, (sent.start, end), sent.payload, shared);
        }
        Some(sent)
    }

    fn choose(&mut self, now: Instant, shared: &mut Shared<'_>) -> Result<Transmission, Blocked> {
        if self.probe_window {
            self.probe_window = false;
            shared.statistics.window_probes += 1;
            return Ok(self.window_probe());
        }
        if self.frozen {
            return Err(Blocked::Window);
        }
        if self.probe == TailProbe::Due {
            return self.tail_probe(now, shared);
        }
        if self.scoreboard.needs_repair() {
            match self.frto.forward() {
                Some(0) => return Err(Blocked::Deferred),
                Some(left) => match self.new_data(now, shared) {
                    Ok(sent) => {
                        self.frto.on_sent();
                        return Ok(sent);
                    }
                    Err(Blocked::Pace) => return Err(Blocked::Pace),
                    // RFC 5682 §2.1 step 2b: without new data F-RTO cannot decide.
                    Err(_) if left == 2 => self.frto = ForwardRto::Off,
                    Err(_) => return Err(Blocked::Deferred),
                },
                None => {}
            }
            return self.repair(now, shared);
        }
        self.urgent = false;
        match self.new_data(now, shared) {
            Err(Blocked::Idle | Blocked::Window) if self.phase == Phase::FastRecovery => self.speculate(now, shared),
            result => result,
        }
    }

    /// The next lost segment (RFC 6675 §4, `NextSeg` rule 1).
    fn repair(&mut self, now: Instant, shared: &mut Shared<'_>) -> Result<Transmission, Blocked> {
        let index = self.scoreboard.next_lost().ok_or(Blocked::Idle)?;
        let Sent { start, length, .. } = *self.scoreboard.get(index);
        // As in Linux, the retransmission of the timer does not wait for the pacer
        // (`tcp_retransmit_timer`).
        let is_due = self.urgent && self.phase == Phase::Loss && self.retries > 0;
        if !is_due {
            self.keep_pace(now, start)?;
        }
        // Nor does it wait for the window, and without a controller that takes over, the first
        // retransmission of a recovery and that of a partial acknowledgement do not either.
        if !std::mem::take(&mut self.urgent) || self.controller.takes_over() && !is_due {
            self.fits(length, shared)?;
            self.spend_burst(shared)?;
        }
        Ok(self.send_again(now, index, Cause::Stream, shared))
    }

    /// In a recovery by counting, with nothing else to send: segments that are probably lost (rule
    /// 3), then the rescue retransmission (rule 4).
    fn speculate(&mut self, now: Instant, shared: &mut Shared<'_>) -> Result<Transmission, Blocked> {
        if !self.selective || self.rack.is_some() {
            return Err(Blocked::Idle);
        }
        let suspect = self.scoreboard.next_suspect();
        if suspect.is_none() && self.rescued {
            return Err(Blocked::Idle);
        }
        let index = suspect.or_else(|| self.scoreboard.last_unacknowledged()).ok_or(Blocked::Idle)?;
        let Sent { start, length, .. } = *self.scoreboard.get(index);
        self.keep_pace(now, start)?;
        self.fits(length, shared)?;
        self.rescued |= suspect.is_none();
        Ok(self.send_again(now, index, Cause::Stream, shared))
    }

    /// Unsent data, as far as the windows and the rules for sub-MSS segments allow (RFC 9293
    /// §3.8.6.2.1, §3.7.4).
    #[inline]
    fn new_data(&mut self, now: Instant, shared: &mut Shared<'_>) -> Result<Transmission, Blocked> {
        let available = self.written.saturating_sub(self.next);
        let fin_waits = self.closing && self.next <= self.written;
        if available == 0 && !fin_waits {
            return Err(Blocked::Idle);
        }
        self.keep_pace(now, self.next)?;
        let right = self.acknowledged + self.window_limit(shared.config);
        let usable = right.saturating_sub(self.next);
        let payload = u64::from(self.segment_size).min(available).min(usable) as u32;
        let all = u64::from(payload) == available;
        let fin = fin_waits && all && u64::from(payload) < usable;
        if payload == 0 && !fin {
            return Err(Blocked::Window);
        }
        if payload < self.segment_size && !fin {
            let silly = !all && u64::from(payload) < self.largest_window / 2 && !self.override_silly;
            if silly {
                return Err(Blocked::Window);
            }
            if self.must_wait_small(shared.config.nagle) && !self.override_silly {
                return Err(Blocked::Deferred);
            }
        }
        if self.outstanding() == 0 {
            self.restart_after_idle(now, shared);
        }
        if self.frto.forward().is_none() {
            self.fits(payload, shared)?;
            self.spend_burst(shared)?;
        }
        self.override_silly = false;
        Ok(self.send_new(now, payload, fin, Cause::Stream, shared))
    }

    /// Whether a sub-MSS segment must wait for an acknowledgement.
    fn must_wait_small(&self, nagle: Nagle) -> bool {
        match nagle {
            Nagle::Off => false,
            Nagle::Rfc896 => self.outstanding() > 0,
            Nagle::Minshall => self.small_end > self.acknowledged,
        }
    }

    #[inline]
    fn send_new(
        &mut self,
        now: Instant,
        payload: u32,
        fin: bool,
        cause: Cause,
        shared: &mut Shared<'_>,
    ) -> Transmission {
        let length = payload + u32::from(fin);
        let first = self.scoreboard.is_empty();
        self.start_transmission(now);
        let start = self.next;
        self.sent_new = true;
        self.probed = 0;
        self.scoreboard.send(now, start, length, fin);
        self.next += u64::from(length);
        if payload < self.segment_size {
            self.small_end = self.next;
        }
        if shared.config.retransmission_timeout.samples == Samples::OneAtATime && self.timed.is_none() {
            self.timed = Some((self.next, now));
        }
        if first {
            self.last_progress = now;
            self.restart_timer(now, shared);
        }
        if cause == Cause::Stream {
            self.schedule_probe(now, shared);
        }
        if let Some(prr) = &mut self.prr {
            prr.on_sent(u64::from(length));
        }
        let reduced = std::mem::take(&mut self.marks.reduced);
        let push = self.next >= self.written;
        Transmission { start, payload, fin, repeated: false, push, reduced, cause }
    }

    fn send_again(&mut self, now: Instant, index: usize, cause: Cause, shared: &mut Shared<'_>) -> Transmission {
        let segment = *self.scoreboard.get(index);
        self.start_transmission(now);
        self.scoreboard.send_again(now, index);
        self.timed = None;
        if cause != Cause::TailProbe {
            self.first_repeat.get_or_insert(now);
        }
        if let Some(episode) = &mut self.episode {
            episode.on_repeat();
        }
        if let Some(prr) = &mut self.prr {
            prr.on_sent(u64::from(segment.length));
        }
        if !shared.timers.is_set(Timer::Retransmission) {
            self.restart_timer(now, shared);
        }
        let fin = segment.has_fin();
        let payload = segment.length - u32::from(fin);
        let push = segment.end() >= self.written;
        Transmission { start: segment.start, payload, fin, repeated: true, push, reduced: false, cause }
    }

    /// RFC 8985 §7.3: new data if there is any and the peer's window allows it, else the last
    /// segment.
    fn tail_probe(&mut self, now: Instant, shared: &mut Shared<'_>) -> Result<Transmission, Blocked> {
        self.probe = TailProbe::Idle;
        let available = self.written.saturating_sub(self.next);
        let usable = (self.acknowledged + self.window_limit(shared.config)).saturating_sub(self.next);
        let payload = u64::from(self.segment_size).min(available);
        let sent = if payload > 0 && payload <= usable {
            self.send_new(now, payload as u32, false, Cause::TailProbe, shared)
        } else {
            let last = self.scoreboard.last_unacknowledged().ok_or(Blocked::Idle)?;
            self.send_again(now, last, Cause::TailProbe, shared)
        };
        self.probe = TailProbe::Sent { end: self.next, repeated: sent.repeated };
        shared.statistics.tail_probes += 1;
        Ok(sent)
    }

    const fn window_probe(&self) -> Transmission {
        Transmission {
            start: self.acknowledged - 1,
            payload: 0,
            fin: false,
            repeated: false,
            push: false,
            reduced: false,
            cause: Cause::WindowProbe,
        }
    }

    /// Whether the congestion window allows `length` more bytes. One segment may always be in
    /// flight.
    #[inline]
    fn fits(&self, length: u32, shared: &Shared<'_>) -> Result<(), Blocked> {
        let in_flight = self.in_flight(shared.config);
        if in_flight == 0 || in_flight + u64::from(length) <= self.congestion_window() {
            Ok(())
        } else {
            Err(Blocked::Congestion)
        }
    }

    #[inline]
    fn spend_burst(&mut self, shared: &Shared<'_>) -> Result<(), Blocked> {
        if shared.config.recovery.burst.get().is_some() && self.phase == Phase::FastRecovery && !self.selective {
            self.burst = self.burst.checked_sub(1).ok_or(Blocked::Deferred)?;
        }
        Ok(())
    }

    /// Whether the pacing time of the data from `start` has come.
    #[inline]
    fn keep_pace(&self, now: Instant, start: Sequence) -> Result<(), Blocked> {
        if !self.paces || self.pacer.allows(now, start) { Ok(()) } else { Err(Blocked::Pace) }
    }

    /// A segment is about to be sent: reports the start of a flight to the controller.
    #[inline]
    fn start_transmission(&mut self, now: Instant) {
        if self.scoreboard.pipe() == 0 {
            let app_limited = self.scoreboard.rate.as_ref().is_some_and(|rate| rate.is_app_limited());
            self.controller.on_transmission_start(now, now.since(self.last_sent), app_limited);
        }
    }

    /// Whether the window changes while it is not used, and how.
    fn idle_restart(&self, shared: &Shared<'_>) -> IdleRestart {
        if self.controller.takes_over() { IdleRestart::Off } else { shared.config.idle_restart }
    }

    /// Nothing is outstanding: reduces the window if that has been so for a retransmission timeout.
    fn restart_after_idle(&mut self, now: Instant, shared: &Shared<'_>) {
        let timeout = self.rtt.timeout(&shared.config.retransmission_timeout);
        let idle = now.since(self.last_sent);
        if idle <= timeout {
            return;
        }
        let initial = shared.config.initial_window.bytes(self.segment_size);
        match self.idle_restart(shared) {
            IdleRestart::Off => {}
            // Linux looks when the application writes (`tcp_slow_start_after_idle_check`), not when
            // the peer opens its window.
            IdleRestart::Rfc2861 if self.probed > 0 => {}
            IdleRestart::Rfc5681 => self.controller.on_idle(now, initial, 0),
            IdleRestart::Rfc2861 => {
                let window = self.controller.congestion_window();
                let timeouts = (idle.as_nanos() - 1) / timeout.as_nanos().max(1);
                let size = u64::from(self.segment_size);
                let halved = ((window / size) >> timeouts.min(63)) * size;
                self.controller.on_idle(now, halved.max(initial), self.threshold_to_keep());
                self.underuse = Underuse { most: 0, since: now };
            }
        }
    }

    /// The slow-start threshold while the window is reduced for lack of use (`tcp_current_ssthresh`
    /// of Linux): three quarters of it, outside of a recovery.
    fn threshold_to_keep(&self) -> u64 {
        let segments = self.controller.congestion_window() / u64::from(self.segment_size);
        let kept = (segments / 2 + segments / 4) * u64::from(self.segment_size);
        if self.phase == Phase::FastRecovery { 0 } else { kept }
    }

    /// Segments were sent, or could not be: reduces the window if the application has not used all
    /// of it for a retransmission timeout (`tcp_cwnd_application_limited` of Linux).
    fn note_underuse(&mut self, now: Instant, shared: &Shared<'_>) {
        if self.idle_restart(shared) != IdleRestart::Rfc2861 {
            return;
        }
        if self.is_window_used() {
            self.underuse = Underuse { most: 0, since: now };
            return;
        }
        self.underuse.most = self.underuse.most.max(self.scoreboard.len() as u64);
        if now.since(self.underuse.since) < self.rtt.timeout(&shared.config.retransmission_timeout) {
            return;
        }
        let size = u64::from(self.segment_size);
        let used = (self.underuse.most * size).max(shared.config.initial_window.bytes(self.segment_size));
        let window = self.controller.congestion_window();
        // Data that waits to be sent show that the receive window is the limit, not the
        // application.
        if self.phase == Phase::Open && self.written <= self.next && used < window {
            let mean = (window + used) / size / 2 * size;
            self.controller.on_idle(now, mean, self.threshold_to_keep());
        }
        self.underuse = Underuse { most: 0, since: now };
    }

    /// Nothing more is sent for now.
    #[inline]
    fn on_blocked(&mut self, now: Instant, blocked: Blocked, shared: &mut Shared<'_>) {
        self.validate_window(now, blocked, shared);
        if blocked == Blocked::Pace {
            shared.timers.set(Timer::Pacing, self.pacer.release);
        }
        if blocked == Blocked::Window && self.outstanding() == 0 && !shared.timers.is_set(Timer::Persist) {
            self.schedule_window_probe(now, shared);
        }
    }

    /// Records how much of the congestion window is used.
    #[inline]
    fn validate_window(&mut self, now: Instant, blocked: Blocked, shared: &Shared<'_>) {
        let full = self.in_flight(shared.config) + u64::from(self.segment_size) > self.congestion_window();
        let limited = full || matches!(blocked, Blocked::Congestion | Blocked::Pace);
        let sent = std::mem::take(&mut self.sent_new);
        if !sent && (!limited || blocked == Blocked::Idle) {
            return;
        }
        let outstanding = self.scoreboard.len() as u64;
        let usage = &mut self.usage;
        if limited || self.acknowledged >= usage.end || (!usage.limited && outstanding > usage.most) {
            *usage = WindowUsage { limited, most: outstanding, end: self.next };
        }
        self.note_underuse(now, shared);
    }

    /// Whether the congestion window may grow, because it is used (RFC 7661 §4.2). In slow start it
    /// grows to twice what was outstanding (`tcp_is_cwnd_limited` of Linux).
    #[inline]
    pub(super) fn is_window_used(&self) -> bool {
        let window = self.controller.congestion_window();
        let slow_start = self.controller.slow_start_threshold().is_none_or(|threshold| window < threshold);
        self.usage.limited || (slow_start && window / u64::from(self.segment_size) < 2 * self.usage.most)
    }

    /// RFC 9293 §3.8.6.1: the first probe after a retransmission timeout, then at doubled
    /// intervals, also if they are answered.
    pub(super) fn schedule_window_probe(&self, now: Instant, shared: &mut Shared<'_>) {
        let config = &shared.config.retransmission_timeout;
        let interval = self.rtt.timeout(config).saturating_mul(1 << self.probed.min(30)).min(config.maximum);
        shared.timers.set(Timer::Persist, after(now, interval));
    }

    /// The persist timer expired.
    pub fn on_persist_timeout(&mut self, now: Instant, shared: &mut Shared<'_>) {
        let right = self.acknowledged + self.window_limit(shared.config);
        if right > self.next {
            self.override_silly = true;
        } else {
            self.probe_window = true;
            self.probes += 1;
            self.probed = self.probed.saturating_add(1);
            self.schedule_window_probe(now, shared);
        }
    }

    /// Number of unanswered probes of the closed window.
    pub const fn unanswered_probes(&self) -> u32 {
        self.probes
    }

    /// A tail loss probe is due; the retransmission timer is restarted for its answer (RFC 8985
    /// §7.3).
    pub fn on_probe_timeout(&mut self, now: Instant, shared: &mut Shared<'_>) {
        self.probe = TailProbe::Due;
        self.restart_timer(now, shared);
    }
}
