//! The end point: state machine, sender and receiver.

use airpath_core::{Cx, Direction, Ecn, FlowId, Instant, SegmentInfo, Span, TcpEvent, TcpTrigger};
use airpath_wire::tcp::{Flags, Options, TcpHeader, Timestamps};

use crate::config::Config;
use crate::congestion::{Acked, Window};
use crate::reassembly::Reassembly;
use crate::rtt::RoundTrip;
use crate::scoreboard::Scoreboard;
use crate::segment::{Numbering, Position, Segment};

/// Whose end this is.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The flow.
    pub flow: FlowId,
    /// Direction of what this end sends.
    pub direction: Direction,
    /// Own port.
    pub local_port: u16,
    /// The peer's.
    pub remote_port: u16,
    /// Initial sequence number.
    pub initial_sequence: u32,
}

/// State of a connection (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Both sides closed.
    Closed,
    /// Reset.
    Reset,
    /// Given up.
    TimedOut,
}

impl Outcome {
    /// Whether nothing was lost by it.
    pub const fn is_orderly(self) -> bool {
        matches!(self, Self::Closed)
    }
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::TimedOut => "timed out",
        }
    }
}

/// Counters.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Statistics {
    pub data_segments: u64,
    pub data_bytes: u64,
    pub unique_bytes: u64,
    pub retransmitted_segments: u64,
    pub retransmitted_bytes: u64,
    pub pure_acks: u64,
    pub timeouts: u64,
    pub fast_retransmits: u64,
    pub undos: u64,
    pub rtt_min: Option<Span>,
    pub rtt_max: Option<Span>,
    pub rtt_samples: u64,
    rtt_sum: u128,
}

impl Statistics {
    /// Mean round trip in seconds.
    pub fn rtt_mean_s(&self) -> Option<f64> {
        (self.rtt_samples > 0).then(|| self.rtt_sum as f64 / self.rtt_samples as f64 / 1e9)
    }
    fn round_trip(&mut self, sample: Span) {
        self.rtt_samples += 1;
        self.rtt_sum += u128::from(sample.as_nanos());
        self.rtt_min = Some(self.rtt_min.map_or(sample, |least| least.min(sample)));
        self.rtt_max = Some(self.rtt_max.map_or(sample, |most| most.max(sample)));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Recovery { point: Position, partial: bool },
    Loss { point: Position },
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    id: Identity,
    state: State,
    outcome: Option<Outcome>,
    numbering: Numbering,
    peer: Numbering,
    // sender
    una: Position,
    nxt: Position,
    end: Position,
    fin: bool,
    fin_sent: bool,
    board: Scoreboard,
    window: Window,
    peer_right: Position,
    peer_window: u64,
    segment: u64,
    phase: Phase,
    dup_acks: u32,
    inflation: i64,
    rtt: RoundTrip,
    rto: Option<Instant>,
    retries: u32,
    syn_sent: bool,
    syn_acked: bool,
    // receiver
    assembly: Reassembly,
    read: Position,
    fin_at: Option<Position>,
    ack_now: bool,
    unacked: u32,
    ack_due: Option<Instant>,
    ts_recent: u32,
    scale_out: u8,
    scale_in: u8,
    use_sack: bool,
    use_ts: bool,
    time_wait: Option<Instant>,
    pub_stats: Statistics,
}

impl Connection {
    /// Active open.
    pub fn connect(config: &Config, id: Identity, _now: Instant) -> Self {
        Self::new(config, id, State::SynSent)
    }
    /// Passive open.
    pub fn listen(config: &Config, id: Identity) -> Self {
        Self::new(config, id, State::Listen)
    }

    fn new(config: &Config, id: Identity, state: State) -> Self {
        let open = !config.handshake;
        let first = u64::from(open);
        Self {
            state: if open { State::Established } else { state },
            outcome: None,
            numbering: Numbering::new(id.initial_sequence),
            peer: Numbering::new(0),
            una: first,
            nxt: first,
            end: 1,
            fin: false,
            fin_sent: false,
            board: Scoreboard::default(),
            window: Window::new(config),
            peer_right: if open { 1 + config.receive_buffer.get() } else { 1 },
            peer_window: if open { config.receive_buffer.get() } else { 0 },
            segment: config.maximum_segment_size.get(),
            phase: Phase::Open,
            dup_acks: 0,
            inflation: 0,
            rtt: RoundTrip::new(config),
            rto: None,
            retries: 0,
            syn_sent: open,
            syn_acked: open,
            assembly: Reassembly::new(1),
            read: 1,
            fin_at: None,
            ack_now: false,
            unacked: 0,
            ack_due: None,
            ts_recent: 0,
            scale_out: 0,
            scale_in: 0,
            use_sack: open && config.sack,
            use_ts: open && config.timestamps,
            time_wait: None,
            pub_stats: Statistics::default(),
            config: config.clone(),
            id,
        }
    }

    /// Appends to the stream.
    pub fn write(&mut self, bytes: u64) {
        self.end += bytes;
        if self.config.whole_segments {
            self.end = 1 + (self.end - 1).next_multiple_of(self.segment);
        }
    }
    /// Ends the stream.
    pub fn close(&mut self) {
        self.fin = self.config.handshake;
    }
    /// Bytes to read.
    pub fn readable(&self) -> u64 {
        self.data_end() - self.read
    }
    /// Reads.
    pub fn read(&mut self, bytes: u64) {
        self.read += bytes;
    }
    /// Received in order.
    pub fn received(&self) -> u64 {
        self.data_end() - 1
    }
    /// Acknowledged of our stream.
    pub fn acknowledged(&self) -> u64 {
        self.una.saturating_sub(1).min(self.end - 1)
    }
    /// Whether data may flow.
    pub fn is_established(&self) -> bool {
        !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }
    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }
    /// How it ended.
    pub const fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }
    /// Counters.
    pub const fn statistics(&self) -> &Statistics {
        &self.pub_stats
    }

    fn data_end(&self) -> Position {
        let next = self.assembly.next();
        self.fin_at.map_or(next, |fin| next.min(fin))
    }

    /// The earliest timer.
    pub fn next_wakeup(&self) -> Option<Instant> {
        [self.rto, self.ack_due, self.time_wait].into_iter().flatten().min()
    }

    /// Fires timers.
    pub fn handle_timeout(&mut self, now: Instant, cx: &mut Cx<'_>) {
        if self.ack_due.is_some_and(|due| due <= now) {
            self.ack_now = true;
            self.ack_due = None;
        }
        if self.time_wait.is_some_and(|due| due <= now) {
            self.time_wait = None;
            self.state = State::Closed;
            self.outcome.get_or_insert(Outcome::Closed);
        }
        if self.rto.is_some_and(|due| due <= now) {
            self.on_rto(now, cx);
        }
    }

    fn on_rto(&mut self, now: Instant, cx: &mut Cx<'_>) {
        self.retries += 1;
        if self.retries > self.config.maximum_retransmissions {
            self.state = State::Closed;
            self.outcome = Some(Outcome::TimedOut);
            self.rto = None;
            self.report(now, TcpTrigger::Closed, None, cx);
            return;
        }
        self.rtt.back_off();
        if !self.syn_acked {
            self.syn_sent = false;
            self.rto = None;
            return;
        }
        self.pub_stats.timeouts += 1;
        if self.board.is_empty() && self.nxt == self.una {
            // A closed window: probe it.
            self.peer_right = self.peer_right.max(self.una + 1);
        } else {
            if !matches!(self.phase, Phase::Loss { .. }) {
                self.window.on_congestion(self.nxt - self.una, self.segment);
            }
            self.window.on_timeout(self.segment);
            self.phase = Phase::Loss { point: self.nxt };
            self.board.lose_all();
            self.inflation = 0;
            self.dup_acks = 0;
        }
        self.rto = Some(now + self.rtt.timeout(&self.config));
        self.report(now, TcpTrigger::Timeout, None, cx);
    }

    /// A segment has come.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment, cx: &mut Cx<'_>) {
        let header = &segment.header;
        if header.flags.contains(Flags::RST) {
            self.state = State::Closed;
            self.outcome.get_or_insert(Outcome::Reset);
            self.rto = None;
            return;
        }
        if header.flags.contains(Flags::SYN) {
            self.on_syn(now, header);
        }
        if !matches!(self.state, State::Closed | State::Listen | State::SynSent) {
            if header.flags.contains(Flags::ACK) {
                self.on_ack(now, segment, cx);
            }
            self.on_data(now, segment);
        }
    }

    fn on_syn(&mut self, now: Instant, header: &TcpHeader) {
        if matches!(self.state, State::Listen | State::SynSent) {
            self.peer = Numbering::new(header.sequence);
            let options = &header.options;
            self.use_sack = self.config.sack && options.sack_permitted;
            self.use_ts = self.config.timestamps && options.timestamps.is_some();
            if let (true, Some(scale)) = (self.config.window_scaling, options.window_scale) {
                self.scale_in = scale;
                self.scale_out = scale_for(self.config.receive_buffer.get());
            }
            if let Some(size) = options.maximum_segment_size {
                self.segment = self.segment.min(u64::from(size));
            }
            if self.use_ts {
                self.segment -= 12;
            }
            if let Some(ts) = options.timestamps {
                self.ts_recent = ts.value;
            }
            self.peer_window = u64::from(header.window);
            self.peer_right = 1 + self.peer_window;
            self.state = match self.state {
                State::Listen => State::SynReceived,
                _ => State::SynReceived,
            };
            if self.state == State::SynReceived && !self.syn_sent {
                self.ack_now = false;
            }
        }
        if self.syn_acked || self.syn_sent {
            self.ack_now = true;
        }
        let _ = now;
    }

    fn on_ack(&mut self, now: Instant, segment: &Segment, cx: &mut Cx<'_>) {
        let header = &segment.header;
        let Some(ack) = self.peer_ack(header.acknowledgment) else { return };
        if ack > self.nxt.max(u64::from(self.syn_sent)) {
            return;
        }
        if !self.syn_acked && ack >= 1 {
            self.syn_acked = true;
            self.una = 1;
            self.nxt = self.nxt.max(1);
            self.retries = 0;
            self.rtt.reset_backoff();
            self.rto = None;
            self.state = State::Established;
            self.window.size = u64::from(self.config.initial_window) * self.segment;
            self.report(now, TcpTrigger::Established, None, cx);
        }
        let window = u64::from(header.window) << if header.flags.contains(Flags::SYN) { 0 } else { self.scale_in };
        let right = ack + window;
        let window_changed = window != self.peer_window;
        if ack >= self.una {
            self.peer_window = window;
            self.peer_right = self.peer_right.max(right);
        }
        // Selective acknowledgements.
        let mut newly_sacked = 0;
        if self.use_sack {
            for (start, end) in header.options.sack.as_slice() {
                let (Some(start), Some(end)) =
                    (self.numbering.position(*start, self.una), self.numbering.position(*end, self.una))
                else {
                    continue;
                };
                self.board.sack(start, end, |sent| newly_sacked += sent.end - sent.start);
            }
        }
        if ack > self.una {
            self.on_new_ack(now, ack, cx);
        } else if ack == self.una
            && segment.length == 0
            && !window_changed
            && !header.flags.contains(Flags::FIN)
            && !self.board.is_empty()
        {
            self.on_dup_ack(now, cx);
        }
        if self.use_sack && newly_sacked > 0 {
            let lost = self.board.judge(self.segment);
            if lost && self.phase == Phase::Open {
                self.enter_recovery(now, cx);
            }
        }
        self.report(now, TcpTrigger::Ack, None, cx);
        self.advance_close(now);
    }

    fn peer_ack(&self, number: u32) -> Option<Position> {
        self.numbering.position(number, self.una)
    }

    fn on_new_ack(&mut self, now: Instant, ack: Position, cx: &mut Cx<'_>) {
        let bytes = ack - self.una;
        let mut sample = None;
        self.board.acknowledge(ack, |sent| {
            if sent.transmissions == 1 && !sent.sacked {
                sample = Some(now.since(sent.time));
            }
        });
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        self.retries = 0;
        if let Some(sample) = sample {
            self.rtt.sample(sample, &self.config);
            self.pub_stats.round_trip(sample);
        } else {
            self.rtt.reset_backoff();
        }
        self.dup_acks = 0;
        let limited = true;
        let mut restart = true;
        match self.phase {
            Phase::Open => self.grow(now, bytes, limited),
            Phase::Recovery { point, partial } => {
                if ack >= point {
                    self.phase = Phase::Open;
                    self.inflation = 0;
                    let flight = self.nxt - self.una;
                    if !self.use_sack {
                        self.window.size =
                            self.window.threshold.min(flight.max(self.segment) + self.segment).max(2 * self.segment);
                        self.window.size = self.window.threshold;
                    }
                    self.report(now, TcpTrigger::RecoveryEnd, None, cx);
                } else {
                    restart = !(self.config.impatient && partial);
                    self.phase = Phase::Recovery { point, partial: true };
                    if !self.use_sack {
                        self.inflation = (self.inflation - bytes as i64 + self.segment as i64).max(0);
                        self.board.lose_first();
                    } else if self.board.first().is_some_and(|first| !first.lost) {
                        self.board.lose_first();
                    }
                }
            }
            Phase::Loss { point } => {
                if ack >= point {
                    self.phase = Phase::Open;
                    self.report(now, TcpTrigger::RecoveryEnd, None, cx);
                }
                self.grow(now, bytes, limited);
            }
        }
        if self.una == self.nxt {
            self.rto = None;
        } else if restart {
            self.rto = Some(now + self.rtt.timeout(&self.config));
        }
    }

    fn grow(&mut self, now: Instant, bytes: u64, limited: bool) {
        let round_trip = self.rtt.smoothed().unwrap_or(Span::ZERO);
        self.window.on_ack(Acked { now, bytes, round_trip, segment: self.segment, limited });
    }

    fn on_dup_ack(&mut self, now: Instant, cx: &mut Cx<'_>) {
        self.dup_acks += 1;
        match self.phase {
            Phase::Open if self.dup_acks >= 3 => self.enter_recovery(now, cx),
            Phase::Recovery { .. } if !self.use_sack => self.inflation += self.segment as i64,
            _ => {}
        }
    }

    fn enter_recovery(&mut self, now: Instant, cx: &mut Cx<'_>) {
        self.window.on_congestion(self.nxt - self.una, self.segment);
        self.phase = Phase::Recovery { point: self.nxt, partial: false };
        self.pub_stats.fast_retransmits += 1;
        self.inflation = if self.use_sack { 0 } else { 3 * self.segment as i64 };
        self.board.lose_first();
        self.report(now, TcpTrigger::FastRetransmit, None, cx);
    }

    fn on_data(&mut self, now: Instant, segment: &Segment) {
        let header = &segment.header;
        let fin = header.flags.contains(Flags::FIN);
        if let (true, Some(ts)) = (self.use_ts, header.options.timestamps) {
            self.ts_recent = ts.value;
        }
        if segment.length == 0 && !fin {
            return;
        }
        let Some(start) = self.peer.position(header.sequence, self.assembly.next()) else { return };
        let start = start + u64::from(header.flags.contains(Flags::SYN));
        let end = start + u64::from(segment.length);
        if fin {
            self.fin_at = Some(end);
        }
        let arrival = self.assembly.insert(start, end + u64::from(fin));
        if arrival.in_order && !arrival.filled && arrival.duplicate.is_none() && !fin {
            self.unacked += 1;
            if self.config.delayed_ack.is_zero() || self.unacked >= self.config.ack_every {
                self.ack_now = true;
            } else if self.ack_due.is_none() {
                self.ack_due = Some(now + self.config.delayed_ack);
            }
        } else {
            self.ack_now = true;
        }
        if self.fin_at.is_some_and(|fin| self.assembly.next() > fin) {
            self.state = match self.state {
                State::Established => State::CloseWait,
                State::FinWait1 => State::Closing,
                State::FinWait2 => State::TimeWait,
                other => other,
            };
            self.advance_close(now);
        }
    }

    fn advance_close(&mut self, now: Instant) {
        let fin_acked = self.fin_sent && self.una > self.end;
        if fin_acked {
            self.state = match self.state {
                State::FinWait1 => State::FinWait2,
                State::Closing => State::TimeWait,
                State::LastAck => State::Closed,
                other => other,
            };
        }
        if self.state == State::Closed {
            self.outcome.get_or_insert(Outcome::Closed);
            self.rto = None;
        }
        if self.state == State::TimeWait && self.time_wait.is_none() && self.outcome.is_none() {
            self.time_wait = Some(now + Span::from_secs(60));
            self.outcome = Some(Outcome::Closed);
        }
    }

    /// The next segment to send.
    pub fn poll_transmit(&mut self, now: Instant, cx: &mut Cx<'_>) -> Option<Segment> {
        let _ = &cx;
        match self.state {
            State::Closed | State::Listen => return None,
            State::SynSent | State::SynReceived if !self.syn_sent => {
                self.syn_sent = true;
                self.nxt = 1;
                self.rto = Some(now + self.rtt.timeout(&self.config));
                return Some(self.syn(now));
            }
            State::SynSent => return None,
            _ => {}
        }
        if self.syn_acked
            && let Some(segment) = self.data(now)
        {
            return Some(segment);
        }
        if self.ack_now {
            self.pub_stats.pure_acks += 1;
            return Some(self.make(now, self.nxt, 0, false));
        }
        None
    }

    fn data(&mut self, now: Instant) -> Option<Segment> {
        let inflated = self.window.size as i64 + self.inflation;
        let extra = if self.config.limited_transmit && self.phase == Phase::Open && !self.use_sack {
            u64::from(self.dup_acks.min(2)) * self.segment
        } else {
            0
        };
        let window = (inflated.max(0) as u64).saturating_add(extra);
        let pipe = self.board.pipe();
        if self.board.has_lost() && (pipe + self.segment <= window || pipe == 0) {
            if let Some(sent) = self.board.resend(now) {
                if self.rto.is_none() || sent.start == self.una {
                    self.rto = Some(now + self.rtt.timeout(&self.config));
                }
                let is_fin = sent.end > self.end;
                let length = sent.end - sent.start - u64::from(is_fin);
                self.pub_stats.retransmitted_segments += 1;
                self.pub_stats.retransmitted_bytes += length;
                let mut segment = self.make(now, sent.start, length as u32, true);
                if is_fin {
                    segment.header.flags |= Flags::FIN;
                    segment.info.flags = segment.header.flags.0;
                }
                return Some(segment);
            }
        }
        let limit = self.config.maximum_window.map_or(u64::MAX, |bytes| bytes.get());
        let right = self.peer_right.min(self.una.saturating_add(limit));
        let available = self.end.saturating_sub(self.nxt);
        let length = available.min(self.segment).min(right.saturating_sub(self.nxt));
        let fin = self.fin && !self.fin_sent && self.nxt + length == self.end && length == available;
        if length == 0 && !fin {
            if available > 0 && self.rto.is_none() {
                self.rto = Some(now + self.rtt.timeout(&self.config));
            }
            return None;
        }
        if length > 0 && pipe + length > window {
            return None;
        }
        if self.config.nagle && length < self.segment && length == available && !self.board.is_empty() && !fin {
            return None;
        }
        let start = self.nxt;
        let end = start + length + u64::from(fin);
        self.board.push(start, end, now);
        self.nxt = end;
        self.pub_stats.unique_bytes += length;
        if self.rto.is_none() {
            self.rto = Some(now + self.rtt.timeout(&self.config));
        }
        let mut segment = self.make(now, start, length as u32, false);
        if fin {
            self.fin_sent = true;
            segment.header.flags |= Flags::FIN;
            segment.info.flags = segment.header.flags.0;
            self.state = match self.state {
                State::Established | State::SynReceived => State::FinWait1,
                State::CloseWait => State::LastAck,
                other => other,
            };
        }
        Some(segment)
    }

    fn syn(&mut self, now: Instant) -> Segment {
        let mut segment = self.make(now, 0, 0, false);
        segment.header.flags = if self.state == State::SynReceived { Flags::SYN | Flags::ACK } else { Flags::SYN };
        segment.header.window = self.config.receive_buffer.get().min(65_535) as u16;
        segment.header.options = Options {
            maximum_segment_size: Some(self.config.maximum_segment_size.get() as u16),
            window_scale: self.config.window_scaling.then(|| scale_for(self.config.receive_buffer.get())),
            sack_permitted: self.config.sack,
            timestamps: self.config.timestamps.then(|| self.stamp(now)),
            ..Options::default()
        };
        segment.info.flags = segment.header.flags.0;
        segment
    }

    fn stamp(&self, now: Instant) -> Timestamps {
        Timestamps { value: (now.as_nanos() / 1_000_000) as u32, echo: self.ts_recent }
    }

    fn make(&mut self, now: Instant, start: Position, length: u32, retransmission: bool) -> Segment {
        let next = self.assembly.next();
        let window = self.config.receive_buffer.get().saturating_sub(self.data_end() - self.read);
        let field = (window >> self.scale_out).min(65_535) as u16;
        let mut options = Options { timestamps: self.use_ts.then(|| self.stamp(now)), ..Options::default() };
        if self.use_sack && self.assembly.has_gap() {
            let most = if self.use_ts { 3 } else { 4 };
            for (start, end) in self.assembly.blocks().take(most) {
                options.sack.push(self.peer.number(start), self.peer.number(end));
            }
        }
        if length > 0 {
            self.pub_stats.data_segments += 1;
            self.pub_stats.data_bytes += u64::from(length);
        }
        self.ack_now = false;
        self.unacked = 0;
        self.ack_due = None;
        let header = TcpHeader {
            source_port: self.id.local_port,
            destination_port: self.id.remote_port,
            sequence: self.numbering.number(start),
            acknowledgment: self.peer.number(next),
            flags: Flags::ACK,
            window: field,
            options,
        };
        let info = SegmentInfo {
            offset: start as i64 - 1,
            length,
            ack: Some(next as i64 - 1),
            window: u64::from(field) << self.scale_out,
            flags: header.flags.0,
            retransmission,
        };
        Segment { header, length, ecn: Ecn::NotEct, info }
    }

    fn report(&self, now: Instant, trigger: TcpTrigger, round_trip: Option<Span>, cx: &mut Cx<'_>) {
        cx.tcp(now, || TcpEvent {
            flow: self.id.flow,
            direction: self.id.direction,
            trigger,
            congestion_window: self.window.size,
            slow_start_threshold: (self.window.threshold < u64::MAX).then_some(self.window.threshold),
            in_flight: self.board.pipe(),
            outstanding: self.nxt - self.una,
            peer_window: self.peer_window,
            acknowledged: self.una as i64 - 1,
            round_trip,
            smoothed_round_trip: self.rtt.smoothed(),
            retransmission_timeout: self.rtt.timeout(&self.config),
        });
    }
}

fn scale_for(buffer: u64) -> u8 {
    (0..14).find(|shift| buffer >> shift <= 65_535).unwrap_or(14)
}
