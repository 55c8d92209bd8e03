//! Opening of a connection: the SYN and its options (RFC 9293 §3.5).

use airpath_core::{Context, Instant, TcpTrigger};
use airpath_wire::tcp::{EcnCounters, Flags, TcpHeader, Timestamps};
use serde::{Deserialize, Serialize};

use super::Connection;
use crate::accurate_ecn::option::EcnOption;
use crate::accurate_ecn::{self, EcnMode};
use crate::config::{Config, Samples};
use crate::congestion::CongestionControl;
use crate::segment::Segment;
use crate::sequence::FIRST_BYTE;
use crate::state::{Outcome, State, TimedOut};
use crate::timers::Timer;

/// State of the handshake.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Opening {
    step: Step,
    /// SYNs sent.
    attempts: u32,
    /// Expirations of the timer. A SYN that answers a repeated SYN of the peer needs none.
    timeouts: u32,
    /// Time of the first SYN.
    first: Instant,
    /// Time of the last SYN.
    last: Instant,
    /// The feedback of ECN that both ends have.
    ecn: EcnMode,
    /// SYN-ACKs sent.
    answers: u32,
    /// A SYN or SYN-ACK without ECN was sent or has arrived, although there is accurate feedback.
    bare: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Step {
    /// No SYN is due.
    Idle,
    /// A SYN is due now.
    Due,
    /// The SYN was sent, and is unacknowledged.
    Sent,
    /// The SYN was acknowledged, or there is no handshake.
    Done,
}

/// The largest window without scaling.
const UNSCALED: u64 = 65_535;
/// SYNs that offer accurate ECN.
const MOST_OFFERS: u32 = 2;
/// RFC 7323 §2.3.
const MAX_SHIFT: u8 = 14;
/// Length of an AccECN option with all counters, including padding.
const OPTION_LENGTH: u8 = 12;
/// Length of the timestamps option in each segment, including padding (RFC 7323 appendix A).
pub(super) const TIMESTAMPS_LENGTH: u32 = 12;

impl Opening {
    pub const fn new() -> Self {
        Self {
            step: Step::Idle,
            attempts: 0,
            timeouts: 0,
            first: Instant::ZERO,
            last: Instant::ZERO,
            ecn: EcnMode::Off,
            answers: 0,
            bare: false,
        }
    }

    /// Whether both ends have accurate feedback of ECN.
    pub fn uses_accurate_ecn(&self) -> bool {
        self.ecn == EcnMode::Accurate
    }

    /// The peer's SYN arrived again, with this field of accurate feedback.
    pub const fn on_field(&mut self, field: u8) {
        self.bare |= field == 0;
    }

    /// Schedules the SYN.
    pub const fn begin(&mut self) {
        if matches!(self.step, Step::Idle) {
            self.step = Step::Due;
        }
    }

    /// Schedules a retransmission of the SYN.
    pub const fn repeat(&mut self) {
        if matches!(self.step, Step::Sent) {
            self.step = Step::Due;
        }
    }

    /// Whether the SYN was sent and is unacknowledged.
    pub const fn is_sent(&self) -> bool {
        // A SYN that is due for retransmission was sent before.
        matches!(self.step, Step::Sent) || (matches!(self.step, Step::Due) && self.attempts > 0)
    }

    pub const fn is_over(&self) -> bool {
        matches!(self.step, Step::Done)
    }
}

/// The smallest shift with which a window of `maximum` fits into 16 bits. A larger unit than the
/// `first` window would announce that as zero, for ever.
fn shift_for(maximum: u64, first: u64) -> u8 {
    let shift = (0..MAX_SHIFT).find(|shift| maximum >> shift <= UNSCALED);
    let most = first.checked_ilog2().unwrap_or(0) as u8;
    shift.unwrap_or(MAX_SHIFT).min(most)
}

impl Connection {
    /// The shift of the windows that this end offers.
    fn shift(&self) -> u8 {
        shift_for(self.receiver.window.maximum(), self.receiver.window.first())
    }

    /// Both ends are established from the start.
    pub(super) fn open_without_handshake(&mut self) {
        self.state = State::Established;
        self.receiver.open(self.id.initial_sequence);
        self.receiver.last_ack = FIRST_BYTE;
        let shift = self.shift();
        self.options.scaling = self.config.window_scaling.then_some((shift, shift));
        self.options.timestamps = self.config.timestamps;
        // The peer has the same settings.
        let first_window = self.config.receive_buffer.initial.get().max(u64::from(self.config.maximum_segment_size));
        self.sender.set_initial_peer_window(first_window);
        if self.config.opening_segment {
            // In force from the start: an end that only receives never sends an opening segment.
            self.sender.selective = self.config.selective_acknowledgement;
            self.sender.marks.mode = self.config.ecn_mode();
            self.sender.marks.capable = self.config.ecn;
            self.sender.next = FIRST_BYTE;
            self.opening.step = Step::Idle;
        } else {
            self.opening.step = Step::Done;
            let config = &self.config;
            let size = segment_size(config, config.maximum_segment_size, config.timestamps);
            self.sender.open(self.now, config, size, config.selective_acknowledgement, config.ecn_mode());
        }
    }

    /// The SYN, if it is due now.
    pub(super) fn poll_opening(&mut self, now: Instant) -> Option<Segment> {
        // Without a handshake, an end opens when it has data to send.
        if self.opening.step == Step::Idle && !self.config.handshake && self.sender.has_written() {
            self.opening.step = Step::Due;
        }
        if self.opening.step != Step::Due {
            return None;
        }
        self.opening.step = Step::Sent;
        self.opening.attempts += 1;
        self.opening.last = now;
        if self.opening.attempts == 1 {
            self.opening.first = now;
        }
        self.sender.next = self.sender.next.max(FIRST_BYTE);
        self.timers.set(Timer::Retransmission, self.sender.rtt.deadline(now, &self.config.retransmission_timeout));
        Some(self.syn(now))
    }

    /// Handles the timer of the SYN. Returns whether it had expired.
    pub(super) fn on_opening_timeout(&mut self, now: Instant, cx: &mut Context<'_>) -> bool {
        if self.opening.step != Step::Sent {
            return false;
        }
        let attempts = self.opening.attempts;
        let linear = if self.state == State::SynSent { self.config.opening_linear_timeouts } else { 0 };
        self.opening.timeouts += 1;
        if self.opening.timeouts > self.config.opening_retries.saturating_add(linear) {
            let after = now.since(self.opening.first);
            self.end(now, Outcome::TimedOut(TimedOut::Opening { attempts, after }), cx);
        } else {
            if self.opening.timeouts > linear {
                self.sender.rtt.back_off();
            }
            self.opening.step = Step::Due;
            self.statistics.timeouts += 1;
            self.report(now, TcpTrigger::Timeout, None, cx);
        }
        true
    }

    /// The peer's SYN arrived: stores the options that it offers.
    pub(super) fn take_syn(&mut self, segment: &Segment) {
        let header = &segment.header;
        /// MSS for a peer without the option (RFC 9293 §3.7.1).
        const DEFAULT_SIZE: u16 = 536;
        let config = &self.config;
        let offer = &header.options;
        self.receiver.open(header.sequence);
        self.options.timestamps = config.timestamps && offer.timestamps.is_some();
        self.options.recent = offer.timestamps.map_or(0, |timestamps| timestamps.value);
        self.options.recent_at = self.now;
        let ours = self.shift();
        self.options.scaling =
            offer.window_scale.filter(|_| config.window_scaling).map(|theirs| (ours, theirs.min(MAX_SHIFT)));
        if self.options.scaling.is_none() {
            self.receiver.window.limit(UNSCALED);
        }
        self.sender.selective = config.selective_acknowledgement && offer.sack_permitted;
        let size = offer.maximum_segment_size.unwrap_or(DEFAULT_SIZE).min(config.maximum_segment_size);
        self.sender.segment_size = segment_size(config, size, self.options.timestamps);
        let field = accurate_ecn::field(header);
        let answers = header.flags.contains(Flags::ACK);
        let negotiate = if answers { accurate_ecn::answered } else { accurate_ecn::answer };
        self.opening.ecn = negotiate(config.ecn_mode(), field);
        if self.opening.ecn == EcnMode::Accurate {
            self.options.handshake_field = Some(segment.ecn);
            self.options.bytes.begin(segment.ecn);
            if answers {
                self.keep_first_option(header);
                self.options.awaits_feedback = true;
                // RFC 9768 §3.2.2.2: a marked SYN-ACK counts, a marked SYN does not.
                self.options.marks.on_packet(segment.ecn);
            }
        }
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        self.sender.set_initial_peer_window(u64::from(header.window));
    }

    /// Stores whether the path passes the AccECN option of the handshake.
    pub(super) fn keep_first_option(&mut self, header: &TcpHeader) {
        // RFC 9768 §3.2.3.2.1: a SYN has none.
        if let Some(option) = header.options.accurate_ecn.filter(|_| header.flags.contains(Flags::ACK)) {
            self.sender.marks.peer_bytes.on_first(&option);
        }
    }

    /// This end's SYN was acknowledged by a segment with this header: the connection is open.
    pub(super) fn establish(&mut self, now: Instant, header: &TcpHeader, cx: &mut Context<'_>) {
        let echo = self.echoed(now, header);
        if self.opening.uses_accurate_ecn() {
            self.keep_first_option(header);
        }
        let config = &self.config;
        self.opening.step = Step::Done;
        self.timers.stop(Timer::Retransmission);
        let (size, selective, ecn) = if config.handshake {
            (self.sender.segment_size, self.sender.selective, self.opening.ecn)
        } else {
            let size = segment_size(config, config.maximum_segment_size, config.timestamps);
            (size, config.selective_acknowledgement, config.ecn_mode())
        };
        // A full segment leaves room for the option.
        let has_option = ecn == EcnMode::Accurate
            && config.ecn_option != EcnOption::Never
            && self.sender.marks.peer_bytes.is_seen()
            && size > u32::from(OPTION_LENGTH);
        self.options.reserved = if has_option { OPTION_LENGTH } else { 0 };
        let size = size - u32::from(self.options.reserved);
        self.sender.open(now, config, size, selective, ecn);
        // RFC 9768 §3.1.5: a server that has sent or received one without ECN sends no ECT.
        self.sender.marks.capable &= !self.opening.bare;
        if self.opening.attempts == 1 {
            self.sender.record_round_trip(self.opening.last, now, &config.retransmission_timeout);
            if config.handshake {
                self.statistics.round_trip(now.since(self.opening.last));
            }
        } else if self.opening.attempts > 1 {
            // RFC 5681 §3.1: after a lost SYN, the initial window is one segment. The echo of the
            // first one shows that it was not lost (RFC 3522 §3.2), as in Linux since 5.3
            // (tcp_try_undo_spurious_syn).
            let first = self.opening.first;
            let is_reduced = self.opening.attempts - 1 > config.initial_window_retries;
            if is_reduced && echo.is_none_or(|(begin, end)| first < begin || end <= first) {
                self.sender.controller.on_idle(now, u64::from(size), 0);
            }
            // RFC 6298 §3: a timestamp identifies the transmission.
            match echo.filter(|_| config.retransmission_timeout.samples != Samples::OneAtATime) {
                Some((sent, _)) => self.sender.record_round_trip(sent, now, &config.retransmission_timeout),
                None => self.sender.rtt.fall_back(),
            }
        }
        self.sender.controller.on_established(now, self.sender.rtt.smoothed(), self.seed);
        if config.handshake {
            self.state = if self.sender.is_closing() { State::FinWait1 } else { State::Established };
        }
        self.report(now, TcpTrigger::Established, None, cx);
    }

    /// This end's SYN, or its SYN-ACK once the peer's SYN has arrived.
    fn syn(&mut self, now: Instant) -> Segment {
        let mut segment = super::bare(&self.id);
        let one_way = !self.config.handshake;
        let answer = self.receiver.next > 0 && !one_way;
        let header = &mut segment.header;
        header.sequence = self.id.initial_sequence;
        header.flags = Flags::SYN;
        let window = self.receiver.offer(u32::from(self.config.maximum_segment_size)).min(UNSCALED);
        header.window = window as u16;
        // A SYN-ACK accepts only what was offered.
        header.options.maximum_segment_size = (!one_way).then_some(self.config.maximum_segment_size);
        let scaling = if answer { self.options.scaling.is_some() } else { self.config.window_scaling };
        header.options.window_scale = (scaling && !one_way).then(|| self.shift());
        header.options.sack_permitted =
            !one_way && if answer { self.sender.selective } else { self.config.selective_acknowledgement };
        let timestamps = if answer { self.options.timestamps } else { self.config.timestamps };
        header.options.timestamps = (timestamps && !one_way)
            .then(|| Timestamps { value: self.timestamp(now), echo: if answer { self.options.recent } else { 0 } });
        if answer {
            header.flags |= Flags::ACK;
            self.opening.answers += 1;
            match self.opening.ecn {
                EcnMode::Off => {}
                EcnMode::Classic => header.flags |= Flags::ECE,
                // RFC 9768 §3.2.3.2.2: the second retransmission is without ECN.
                EcnMode::Accurate if self.opening.answers > MOST_OFFERS => self.opening.bare = true,
                EcnMode::Accurate => {
                    let arrived = self.options.handshake_field.unwrap_or_default();
                    accurate_ecn::set_field(header, accurate_ecn::handshake_field(arrived));
                    // RFC 9768 §3.2.3.2.2: a retransmission has no option, which may be blocked.
                    if self.opening.answers == 1 && self.config.ecn_option != EcnOption::Never {
                        header.options.accurate_ecn = Some(self.options.bytes.option(EcnCounters::MAX));
                    }
                }
            }
            self.receiver.acks.on_sent();
            self.receiver.last_ack = self.receiver.next;
        } else if !one_way {
            match self.config.ecn_mode() {
                EcnMode::Off => {}
                EcnMode::Classic => header.flags |= Flags::ECE | Flags::CWR,
                // RFC 9768 §3.1.4.1: the first retransmission offers it again, others do not.
                EcnMode::Accurate if self.opening.attempts > MOST_OFFERS => {}
                EcnMode::Accurate => accurate_ecn::set_field(header, accurate_ecn::OFFER),
            }
        }
        self.stamp(&mut segment, -1, window as u32, self.opening.attempts > 1);
        segment
    }
}

/// Payload of a full segment for a peer that accepts `size` bytes.
fn segment_size(config: &Config, size: u16, timestamps: bool) -> u32 {
    let size = u32::from(size.min(config.maximum_segment_size));
    // A peer may announce any size, but a segment carries at least one byte.
    size.saturating_sub(if timestamps { TIMESTAMPS_LENGTH } else { 0 }).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_fit_the_window() {
        assert_eq!(shift_for(65_535, 65_535), 0);
        assert_eq!(shift_for(65_536, 65_535), 1);
        assert_eq!(shift_for(6 << 20, 64_240), 7);
        assert_eq!(shift_for(u64::MAX, 64_240), 14);
        assert_eq!(shift_for(u64::MAX, 10_000), 13, "10,000 bytes are a unit of 8,192");
    }
}
