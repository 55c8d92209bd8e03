//! The causes of a QUIC flow's time, from the times and sizes of its datagrams (RFC 9000).
//!
//! Acknowledgements, offsets and losses are encrypted. What remains visible is the handshake, who
//! sends, whether datagrams are full, whether something comes back, and, where the ends turn the
//! spin bit, round trips. Full links, gaps and the states of a radio log are those of TCP: the same
//! [`Bottleneck`], [`Timeline`] and [`RadioStates`]. The time in which a sender does not send
//! although the path could carry has one cause, [`Cause::Sender`].

mod kept_rate;
mod sending;
mod spin;

use std::sync::Arc;

use airpath_capture::read::LATEST;
use airpath_core::{Instant, Span};
use airpath_observe::End;
use airpath_web::QuicDatagram;

use super::bottleneck::{Bottleneck, Carried};
use super::handshake::wait_behind_others;
use super::neighbours::Neighbours;
use super::radio_states::RadioStates;
use super::stall::{Fate, Stall};
use super::timeline::{Label, Limit, Timeline, View};
use super::{Account, Cause, Confidence, Phase, Piece, Radio, Stamp, from_far};
use crate::radio::RadioLog;
use crate::shared_path::HostLog;
use crate::two_point::silence::PATIENCE;
use kept_rate::KeptRate;
use sending::{Sending, Unanswered};
use spin::SpinRoundTrips;

/// The round of all labels: the view of the sender of the data.
const ROUND: u32 = 2;

/// A round trip shows a queue if it is longer than the shortest by this fraction. A shorter one
/// does if the data has the rate of the path.
const QUEUED: u64 = 4;

/// A turn of the spin bit shows no round trip if for more than this part of it nothing was
/// outstanding.
pub(crate) const IDLE_PART: u64 = 8;

/// Data that follows an acknowledgement within this time was waiting for it.
const CLOCKED_WITHIN: Span = Span::from_millis(10);

/// Data of a short flight that follows an acknowledgement within this time was waiting for it.
const CLOCKED_AT_ONCE: Span = Span::from_millis(1);

/// A request or a short reply has fewer full datagrams than this.
const LONG_FLIGHT: u32 = 3;

/// A sender with data in flight sends a probe within three round trips, and this time (RFC 9002
/// §6.2.1: the variation of round trips is mostly less than a half).
const PROBED_WITHIN: Span = Span::from_millis(200);

/// A silence is compared with the time before it that is this multiple of it.
const USUAL_WITHIN: u64 = 8;

/// Stands for the round trip of a flow that does not show it.
const UNKNOWN_ROUND_TRIP: Span = Span::from_secs(1);

/// The handshake.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    /// The last datagram with an Initial packet of the client before an answer, and the number of
    /// those before.
    initial: Option<(Stamp, u32)>,
    /// The first such datagram.
    first: Option<Stamp>,
    /// The first datagram of the server.
    answered: Option<Instant>,
    /// The next datagram of the client.
    confirmed: Option<Instant>,
}

/// A time without data of the far end, although its last datagram was full.
#[derive(Clone, Copy, Debug)]
struct Pause {
    since: Instant,
    /// Whether the near end's next datagram was a request, as far as its size shows that.
    is_request: bool,
}

/// The causes of one QUIC flow.
#[derive(Clone, Debug)]
pub struct QuicCauses {
    phase: Phase,
    /// The end at which the capture was taken; the server until the handshake shows it.
    near: End,
    last: Option<Stamp>,
    handshake: Handshake,
    /// What each end sends.
    ends: [Sending; 2],
    /// The end whose data the link carries, or carried last.
    data_from: End,
    /// When the last datagram of the far end came.
    received: Stamp,
    /// When the last of these without data came.
    acknowledged: Instant,
    /// When the near end last sent data.
    last_sent: Instant,
    /// Since when no data of the far end came, although its last datagram was full: until the near
    /// end gets an answer to what it sent since.
    pause: Option<Pause>,
    /// The last silence of the far end while datagrams waited for an answer.
    silence: Option<(Instant, Instant)>,
    /// The last round trip before the present datagram.
    round_trip_before: Option<Span>,
    spin: SpinRoundTrips,
    rate: KeptRate,
    bottleneck: Bottleneck,
    timeline: Timeline,
    account: Account,
    radio: Option<Radio>,
    radio_states: RadioStates,
    host: Option<Arc<HostLog>>,
    host_round_trip: Option<Span>,
}

impl QuicCauses {
    /// Of a flow without a radio log.
    pub fn new() -> Self {
        Self {
            phase: Phase::SetUp,
            near: End::Server,
            last: None,
            handshake: Handshake::default(),
            ends: [Sending::default(); 2],
            data_from: End::Server,
            received: Stamp::default(),
            acknowledged: Instant::ZERO,
            last_sent: Instant::ZERO,
            pause: None,
            silence: None,
            round_trip_before: None,
            spin: SpinRoundTrips::default(),
            rate: KeptRate::default(),
            bottleneck: Bottleneck::default(),
            timeline: Timeline::of_quic(),
            account: Account::default(),
            radio: None,
            radio_states: RadioStates::default(),
            host: None,
            host_round_trip: None,
        }
    }

    /// Uses the packets of all connections of the client, and the shortest round trip of its TCP
    /// handshakes with the same server.
    #[must_use]
    pub fn with_host(self, host: Arc<HostLog>, round_trip: Option<Span>) -> Self {
        Self { host: Some(host), host_round_trip: round_trip, ..self }
    }

    /// Uses the gaps of a radio log; `mobile` is the end on the radio.
    #[must_use]
    pub fn with_radio(self, log: Arc<RadioLog>, mobile: End) -> Self {
        let radio_states = RadioStates::new(Arc::clone(&log));
        Self { radio: Some(Radio::new(log, mobile)), radio_states, ..self }
    }

    /// Takes the next datagram. `settled` receives the pieces that no later one can change. Where
    /// the time of a capture steps back, it counts as standing still.
    pub fn observe(&mut self, datagram: &QuicDatagram, settled: &mut impl FnMut(&Piece)) {
        let time = datagram.mark.time.min(LATEST).max(self.last.map_or(Instant::ZERO, |last| last.time));
        let now = Stamp { time, frame: datagram.mark.frame };
        self.bottleneck.set_now(now.time);
        if let Some(before) = self.last.replace(now)
            && now.time > before.time
        {
            let label = self.label();
            let (wait, base) = (now.time.since(before.time), self.base());
            match label.is_idle() {
                true if wait > base => self.spin.restart(),
                true if wait > base / IDLE_PART => self.spin.skip_turn(),
                _ => {}
            }
            if label.is_idle() && wait > base / IDLE_PART {
                self.rate.skip_turn();
            }
            let mut delivered = [0; 2];
            delivered[datagram.from as usize] = u64::from(datagram.length);
            self.timeline.push(before, now, label, delivered);
            if self.phase == Phase::Open {
                self.apply_radio(before.time, now.time);
            }
        }
        match self.phase {
            Phase::SetUp => self.set_up(datagram, now),
            Phase::Open | Phase::Closing => self.open(datagram, now),
        }
        let is_spinning = self.spin.is_known();
        let (account, states) = (&mut self.account, &mut self.radio_states);
        let until = self.ends[self.near as usize].unanswered.map_or(Instant::FAR_FUTURE, |since| since.first.time);
        self.timeline.settle(until, &mut |piece| account.add(&limited(piece, is_spinning), states, settled));
    }

    /// Ends the flow: settles the pending time, and returns the sum.
    pub fn finish(mut self, settled: &mut impl FnMut(&Piece)) -> Account {
        if self.phase == Phase::Open {
            self.timeline.doubt_undecided();
            self.end_unanswered();
            self.bottleneck.run_empty(Limit::Sender, &mut self.timeline);
        }
        let is_spinning = self.spin.is_known();
        let Self { mut timeline, mut account, radio_states: mut states, .. } = self;
        timeline.finish(&mut |piece| account.add(&limited(piece, is_spinning), &mut states, settled));
        account.radio_states = states.found;
        account
    }

    fn near_sending(&mut self) -> &mut Sending {
        &mut self.ends[self.near as usize]
    }

    /// The label of the time from now on, by the evidence so far.
    fn label(&self) -> Label {
        let [near, far] = [self.near, self.near.other()].map(|end| &self.ends[end as usize]);
        match (self.phase, near.unanswered) {
            (Phase::SetUp, _) => Label::Known(Cause::SetUp, Confidence::High),
            (Phase::Open | Phase::Closing, Some(_)) if near.more => Label::Limited(Limit::Sender, ROUND),
            (Phase::Open | Phase::Closing, Some(_)) => Label::Limited(Limit::LastFlight, ROUND),
            (Phase::Open | Phase::Closing, None) if far.more => Label::Limited(Limit::Sender, ROUND),
            // All that was sent may have an answer. A full datagram may be the end of the data.
            (Phase::Open | Phase::Closing, None) if near.more => Label::Known(Cause::Application, Confidence::Low),
            (Phase::Open | Phase::Closing, None) => Label::Known(Cause::Application, Confidence::Medium),
        }
    }

    fn set_up(&mut self, datagram: &QuicDatagram, now: Stamp) {
        let handshake = &mut self.handshake;
        match datagram.from {
            End::Client if handshake.answered.is_some() => {
                handshake.confirmed.get_or_insert(now.time);
            }
            End::Client if datagram.has_initial => {
                let before = handshake.initial.map_or(0, |(_, before)| before + 1);
                handshake.initial = Some((now, before));
                handshake.first.get_or_insert(now);
            }
            End::Client => {}
            End::Server => {
                let is_first = handshake.answered.is_none();
                handshake.answered.get_or_insert(now.time);
                if let (true, Some(first), Some((_, again @ 1..))) = (is_first, handshake.first, handshake.initial) {
                    self.add_unanswered(first, now, again, 0);
                }
            }
        }
        if datagram.is_established {
            self.established(now.time);
            self.phase = Phase::Open;
            self.open(datagram, now);
        }
    }

    /// The handshake is over: it shows the end of the capture, and a round trip.
    fn established(&mut self, now: Instant) {
        let Handshake { initial: Some((initial, again)), answered: Some(answered), confirmed, .. } = self.handshake
        else {
            // The capture lacks a half of it.
            return self.timeline.doubt_all();
        };
        let confirmed = confirmed.unwrap_or(now);
        let halves = [answered.since(initial.time), confirmed.since(answered)];
        // As for TCP: the half on the capture's own side takes almost no time.
        self.near = if halves[0] < halves[1].saturating_mul(5) / 4 { End::Server } else { End::Client };
        if let Some(host) = &self.host {
            let neighbours = || Neighbours::new(Arc::clone(host), from_far(self.near), true);
            if again == 0 {
                let (begin, end) =
                    if self.near == End::Client { (initial.time, answered) } else { (answered, confirmed) };
                wait_behind_others(begin, end, neighbours(), self.host_round_trip, &mut self.timeline);
            }
            self.bottleneck.set_neighbours(neighbours());
        }
        self.bottleneck.path.round_trip(halves[0].max(halves[1]), 0);
        if let Some(round_trip) = self.host_round_trip {
            self.bottleneck.path.round_trip(round_trip, 0);
        }
        self.set_data_from(self.data_from, true);
    }

    /// The link carries data of an end from now on.
    fn set_data_from(&mut self, end: End, is_new: bool) {
        if std::mem::replace(&mut self.data_from, end) == end && !is_new {
            return;
        }
        self.rate.restart();
        let mobile = self.radio.as_ref().map_or(End::Client, |radio| radio.mobile);
        self.timeline.set_near(end);
        self.bottleneck.set_on_radio(end == mobile);
        self.bottleneck.set_at_receiver(end != self.near);
    }

    fn open(&mut self, datagram: &QuicDatagram, now: Stamp) {
        let from = datagram.from;
        let is_client = from == End::Client;
        self.round_trip_before = self.spin.last_sample();
        match datagram.spin {
            Some(bit) if from == self.near => self.spin.sent(bit, is_client, now.time),
            Some(bit) => {
                let sample = self.spin.arrived(bit, is_client, now.time);
                if let Some(sample) = sample.filter(|_| self.spin.is_known()) {
                    self.bottleneck.path.round_trip(sample, 0);
                    self.rate.turn(sample, self.data_from == self.near);
                }
            }
            None => {}
        }
        let other = self.ends[from.other() as usize];
        let acknowledges = if from == self.near {
            other.more && now.time.since(self.received.time) <= sending::ACK_DELAY.max(self.base())
        } else {
            other.more && other.unanswered.is_some()
        };
        let may_probe = from == self.near && now.time.since(self.received.time) > sending::ACK_DELAY;
        let carries_data = self.ends[from as usize].sent(datagram, now, acknowledges, may_probe);
        if from == self.near {
            self.sent(datagram, carries_data, now);
        } else {
            self.arrived(datagram, carries_data, now);
        }
        if carries_data && from == self.data_from {
            self.rate.carried(datagram.length);
        }
    }

    /// The near end sent a datagram.
    fn sent(&mut self, datagram: &QuicDatagram, carries_data: bool, now: Stamp) {
        if !carries_data {
            return;
        }
        let base = self.base();
        let (near, far) = (self.near, self.near.other());
        let is_last_flight = self.near_sending().unanswered.is_some() && !self.ends[near as usize].had_more;
        if self.ends[far as usize].more && self.near_sending().unanswered.is_none() {
            // A request after all data of the far end, or a probe while its data is held up: the
            // time until the answer decides.
            self.ends[far as usize].more = false;
            let since = self.received.time;
            self.timeline.relabel(since, now.time, Label::SuspectedGap(None), Label::is_open);
            self.run_empty();
            let is_request = self.ends[near as usize].is_longer_than_acknowledgement(datagram.length);
            self.pause = Some(Pause { since, is_request });
        }
        if !self.ends[near as usize].had_more {
            self.clocked(now.time);
        }
        self.last_sent = now.time;
        match &mut self.ends[near as usize].unanswered {
            Some(unanswered) => unanswered.sent(datagram.length, now, base.max(sending::ACK_DELAY)),
            None => {
                self.run_empty();
                self.ends[near as usize].unanswered = Some(Unanswered::new(datagram.length, now));
                self.set_data_from(near, false);
            }
        }
        if !is_last_flight {
            self.timeline.data_sent(View::Sender);
        }
    }

    /// Data follows a datagram that was not full, which a window may have cut. If it comes right
    /// after an acknowledgement, the sender had waited for that, and its application had data.
    /// After a short flight it must come at once: an application sends replies at any time.
    fn clocked(&mut self, now: Instant) {
        let within = match self.near_sending().last_flight {
            0 => return,
            1..LONG_FLIGHT => CLOCKED_AT_ONCE,
            LONG_FLIGHT.. => CLOCKED_WITHIN,
        };
        if now.since(self.acknowledged) <= within && self.acknowledged == self.received.time {
            let sender = Label::Known(Cause::Sender, Confidence::Medium);
            self.timeline.relabel(self.last_sent, now, sender, |label| {
                label.is_idle() || matches!(label, Label::Limited(Limit::LastFlight, _))
            });
        }
    }

    /// A datagram came from the far end.
    fn arrived(&mut self, datagram: &QuicDatagram, carries_data: bool, now: Stamp) {
        let far = datagram.from;
        if let Some(others) = self.bottleneck.others_before(now.time) {
            self.timeline.share(others.0, others.1, View::Sender);
        }
        if let Some(unanswered) = self.near_sending().unanswered {
            self.answered(unanswered, now);
        } else if carries_data && self.ends[far as usize].had_more {
            self.carried_to_here(now);
        } else if !carries_data
            && self.data_from == self.near
            && self.last_sent <= self.received.time
            && now.time.since(self.received.time) <= self.probed_within(0)
        {
            self.acknowledged_late(now);
        }
        if carries_data && self.near_sending().unanswered.is_none() {
            if self.data_from != far {
                self.run_empty();
                self.timeline.data_sent(View::Receiver);
                self.set_data_from(far, false);
            }
            if !self.ends[far as usize].more {
                self.run_empty();
            }
        }
        self.received = now;
        if !carries_data {
            self.acknowledged = now.time;
        }
    }

    /// The shortest round trip.
    fn base(&self) -> Span {
        self.bottleneck.path.base().unwrap_or(Span::ZERO)
    }

    /// The time within which a sender with data in flight sends a probe, after `probes` before: the
    /// timer backs off (RFC 9002 §6.2.1). If it may have had no more data, the turn of the spin bit
    /// that the present datagram ends may contain that pause.
    fn probed_within(&self, probes: u32) -> Span {
        let has_more = self.ends[self.near as usize].more;
        let usual = if has_more { self.spin.last_sample() } else { self.round_trip_before };
        let usual = usual.unwrap_or(UNKNOWN_ROUND_TRIP).max(self.base());
        (usual * 3 + PROBED_WITHIN).saturating_mul(1 << probes.min(16))
    }

    /// How long a packet of a full link that left it at `left`, as a datagram shows `now`, waited
    /// before; `None` where round trips and rates show that it is not full.
    fn queued(&self, left: Instant, now: Instant) -> Option<Span> {
        let base = self.base();
        match self.spin.latest(now) {
            // Between two acknowledgements the queue does not end.
            Some(round_trip) if round_trip <= base + base / QUEUED => {
                let wait = round_trip.saturating_sub(base);
                let is_full = self.rate.has_path_rate() || self.bottleneck.is_filled(wait, Span::ZERO, left, left);
                is_full.then_some(base / QUEUED)
            }
            Some(round_trip) => Some(round_trip - base),
            None => Some(Span::ZERO),
        }
    }

    /// The link carried a packet until `left`, which entered no earlier than `entered`, as a
    /// datagram shows `now`.
    fn carry(&mut self, entered: Instant, left: Instant, now: Instant) {
        let Some(queued) = self.queued(left, now) else {
            self.bottleneck.free_until(left, Limit::Sender, &mut self.timeline);
            return;
        };
        let first = (left - queued.min(left.since(Instant::ZERO))).max(entered.min(left));
        let carried = Carried { segments: 1, full: true, part: None, first, last: first, left };
        self.bottleneck.busy(carried, Limit::Sender, &mut self.timeline);
    }

    /// Something came back while datagrams of the near end had no answer.
    fn answered(&mut self, unanswered: Unanswered, now: Stamp) {
        let base = self.base();
        self.end_pause(unanswered, now);
        let silent_since = unanswered.last.time.max(self.received.time);
        if now.time.since(silent_since) > self.probed_within(unanswered.probes) {
            // The near end sent no probe: all had an answer.
            self.near_sending().unanswered = None;
            let idle = Label::Known(Cause::Application, Confidence::Medium);
            let open = |label: Label| label.is_open() || label.is_idle();
            self.timeline.relabel(silent_since, now.time, idle, open);
            return self.run_empty();
        }
        let round_trip = self.spin.latest(now.time).unwrap_or(base).max(base);
        let left = now.time - self.bottleneck.return_delay().min(now.time.since(unanswered.first.time));
        let first = (unanswered.first.time + self.bottleneck.delay_to_link(base)).min(left);
        let carried = Carried { segments: 1, full: true, part: None, first, last: first, left };
        if let Some((begin, end)) = self.bottleneck.gap(carried, self.received.time)
            && self.bottleneck.is_long(begin, end, false)
        {
            self.silent(begin, end, unanswered, now);
        }
        self.carry(first, left, now.time);
        // What was sent less than a round trip ago has no answer yet.
        let answered = now.time - (round_trip - round_trip / 4).min(now.time.since(Instant::ZERO));
        self.near_sending().unanswered = unanswered.after(answered);
    }

    /// An answer to what was sent after a pause in the data of the far end.
    fn end_pause(&mut self, unanswered: Unanswered, now: Stamp) {
        let Some(Pause { since, is_request }) = self.pause.take() else { return };
        let is_late = now.time.since(unanswered.first.time) > self.base() + PATIENCE;
        let (silent_since, confidence) = match unanswered.probes {
            // It may have waited for an idle radio after a pause.
            0 if is_request => (unanswered.first.time, Confidence::Low),
            0 => (since, Confidence::Low),
            _ => (since, Confidence::Medium),
        };
        let pause = Label::Known(Cause::Application, Confidence::Low);
        let gap = Label::Known(Cause::Radio, confidence);
        if is_late {
            self.timeline.relabel(silent_since, now.time, gap, Label::is_open);
        }
        self.timeline.relabel(since, unanswered.first.time, pause, Label::is_open);
    }

    /// An acknowledgement came although all may have been answered: some data still was on the
    /// path.
    fn acknowledged_late(&mut self, now: Stamp) {
        let limit = if self.near_sending().more { Limit::Sender } else { Limit::LastFlight };
        let label = Label::Limited(limit, ROUND);
        self.timeline
            .relabel(self.received.time, now.time, label, |label| matches!(label, Label::Known(Cause::Application, _)));
        let left = now.time - self.bottleneck.return_delay().min(now.time.since(Instant::ZERO));
        self.carry(Instant::ZERO, left, now.time);
    }

    /// Data came from the far end, which had more to send.
    fn carried_to_here(&mut self, now: Stamp) {
        let begin = self.bottleneck.busy_until().unwrap_or(self.received.time).max(self.received.time);
        if self.bottleneck.is_long(begin, now.time, false) && now.time.since(begin) > self.base() + PATIENCE {
            if let Some((from, to)) = self.bottleneck.silent_part((begin, now.time), &mut self.timeline) {
                // It may have been the sender's timer, too.
                self.timeline.relabel(from, to, Label::Known(Cause::Radio, Confidence::Low), Label::is_open);
                self.add_unanswered(self.received, now, 0, 0);
            }
            self.run_empty();
        }
        self.carry(Instant::ZERO, now.time, now.time);
    }

    /// Nothing came back from `begin` to `end` although datagrams waited for an answer.
    fn silent(&mut self, begin: Instant, end: Instant, unanswered: Unanswered, now: Stamp) {
        let Some((begin, end)) = self.bottleneck.silent_part((begin, end), &mut self.timeline) else { return };
        let since = if self.received > unanswered.first { self.received } else { unanswered.first };
        if self.is_usual_silence(begin, end) {
            return self.add_unanswered(since, now, unanswered.probes, unanswered.bytes);
        }
        let base = self.base();
        let since_probe = now.time.since(unanswered.last_probe);
        // An answer earlier than a round trip after the probe is one to an earlier datagram.
        let answers_probe = unanswered.probes > 0 && since_probe >= base - base / 4 && since_probe <= base + PATIENCE;
        if answers_probe {
            // What was sent before got no answer, the last probe did: the path came back before it.
            // After the middle of the last two datagrams, only the timer was waited for.
            let back = if unanswered.probes == 1 {
                begin
            } else {
                let before = unanswered.probe_before;
                before + unanswered.last_probe.since(before) / 2
            };
            let back = back.clamp(begin, end);
            let probe = unanswered.last_probe.clamp(back, end);
            let open = |label: Label| label.is_open() || label.is_idle();
            self.timeline.relabel(begin, back, Label::Known(Cause::Radio, Confidence::Low), open);
            self.timeline.relabel(back, probe, Label::Known(Cause::Timer, Confidence::Low), open);
        } else {
            self.bottleneck.suspect_gap(begin, end, &mut self.timeline);
        }
        self.add_unanswered(since, now, unanswered.probes, unanswered.bytes);
    }

    /// Whether a silence is usual: the last long one and the last round trip took at least half of
    /// its time, as slow start doubles the data of a round trip. A half-duplex mobile holds its
    /// acknowledgements back while it receives.
    fn is_usual_silence(&mut self, begin: Instant, end: Instant) -> bool {
        let length = end.since(begin);
        let before = self.silence.map(|(since, until)| (until.since(since), begin.since(until)));
        let is_recent = |before: &(Span, Span)| before.1 <= before.0.max(length).saturating_mul(USUAL_WITHIN);
        let before = before.filter(is_recent).map(|(before, _)| before);
        if before.is_none_or(|before| length * 2 >= before) {
            self.silence = Some((begin, end));
        }
        let is_half = |time: Span| time * 2 >= length;
        before.is_some_and(is_half) && self.round_trip_before.is_none_or(is_half)
    }

    fn add_unanswered(&mut self, since: Stamp, now: Stamp, probes: u32, bytes: u64) {
        self.account.add_stall(Stall {
            begin: since.time,
            end: now.time,
            first_frame: since.frame,
            last_frame: now.frame,
            outstanding: bytes,
            timeouts: 0,
            tail_probes: probes,
            fate: Fate::Unanswered,
            path_gap: Span::ZERO,
        });
    }

    /// The flow ends, and its last datagrams had no answer.
    fn end_unanswered(&mut self) {
        let (Some(unanswered), Some(now)) = (self.near_sending().unanswered, self.last) else { return };
        let begin = unanswered.first.time.max(self.received.time);
        if unanswered.probes > 0 && now.time.since(begin) > self.base() + PATIENCE {
            self.timeline.relabel(begin, now.time, Label::Known(Cause::Radio, Confidence::Low), Label::is_open);
            self.add_unanswered(unanswered.first, now, unanswered.probes, unanswered.bytes);
        } else if let Some(Pause { since, .. }) = self.pause {
            // A close needs no answer (RFC 9000 §10.2).
            let pause = Label::Known(Cause::Application, Confidence::Low);
            self.timeline.relabel(since, unanswered.first.time, pause, Label::is_open);
        }
    }

    /// No data is expected: the link runs empty.
    fn run_empty(&mut self) {
        self.bottleneck.run_empty(Limit::Sender, &mut self.timeline);
        self.bottleneck.path.pause();
    }

    /// Attributes the time between two datagrams to the states of the radio log.
    fn apply_radio(&mut self, begin: Instant, end: Instant) {
        let near = self.near;
        let Some(radio) = &mut self.radio else { return };
        let sending = self.ends[near as usize].unanswered.is_some();
        let receiving = !sending && self.ends[near.other() as usize].more;
        let data_direction = radio.data_direction(near, sending);
        for gap in radio.gaps_from(begin).iter().take_while(|gap| gap.begin < end) {
            let (from, to) = (gap.begin.max(begin), gap.end.min(end));
            let is_reverse = gap.direction.is_some_and(|direction| direction != data_direction);
            let known = Label::Known(Cause::Radio, Confidence::High);
            match (sending, receiving) {
                _ if from >= to => {}
                (false, false) if !gap.wanted => {}
                (true, _) if is_reverse => {
                    self.timeline.relabel(from, to, Label::AcknowledgementGap(Confidence::High), Label::is_open)
                }
                (true, _) => {
                    self.timeline.relabel(from, to, known, Label::is_open);
                    self.bottleneck.set_known_gap_end(to);
                }
                (false, _) if is_reverse && receiving => {}
                (false, _) => self.timeline.relabel(from, to, known, |_| true),
            }
        }
        self.radio_states.mark(begin, end, [sending, receiving], data_direction, &mut self.timeline);
    }
}

impl Default for QuicCauses {
    fn default() -> Self {
        Self::new()
    }
}

/// A piece with the confidence that a QUIC flow allows: without round trips, even arrivals are
/// those of a full link or of a sender that paces.
fn limited(piece: &Piece, is_spinning: bool) -> Piece {
    let is_rate = piece.cause.is_full_link() || piece.cause == Cause::Sender;
    let most = if is_rate && !is_spinning { Confidence::Low } else { Confidence::High };
    Piece { confidence: piece.confidence.min(most), ..*piece }
}

#[cfg(test)]
mod tests;
