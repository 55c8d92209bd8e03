//! Why a connection took as long as it did: every nanosecond of it is attributed to one [`Cause`].
//!
//! [`Causes`] takes the observations of one connection. The time between two of them gets a label
//! from the evidence so far. Whether the link was full, or a gap was the radio's or a timer's, is
//! decided up to two round trips later; until then the time is pending. Settled time is emitted as
//! [`Piece`]s, in order and without gaps. Memory does not grow with the connection.
//!
//! | module | what |
//! | --- | --- |
//! | `account` | the causes, their confidence, and their sums |
//! | `sender_view`, `receiver_view` | what limits the sender, from a capture at the sender, or at the receiver |
//! | `handshake` | the handshake, and its wait behind other connections |
//! | `bottleneck` | what the bottleneck link carried, and its gaps |
//! | `send_times` | when segments were sent, at the receiver, by their timestamps |
//! | `path_estimate`, `arrivals` | estimates from acknowledgements, and exact arrivals from the other end's capture |
//! | `radio_states` | which states of the radio log delayed packets, and the names of the radio's time |
//! | `link_load` | when the link was full, and when data queued |
//! | `neighbours` | what the path carried of other connections of the host |
//! | [`quic`](QuicCauses) | a QUIC flow: the same, as far as its datagrams show it |
//! | `closed` | what remains when both ends have closed the connection |
//! | `timeline` | the slices of time that wait for evidence |
//! | [`stall`](Stall) | the longest stalls, each in a sentence |
//!
//! `docs/trace-causes.md` has the definitions and their validation.

mod account;
mod arrivals;
mod bottleneck;
mod closed;
mod handshake;
mod link_load;
mod neighbours;
mod path_estimate;
mod quic;
mod radio_states;
mod receiver_view;
mod send_times;
mod sender_view;
mod stall;
mod timeline;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use airpath_core::{Direction, Instant, Span};
use airpath_wire::tcp::{Flags, Timestamps};

use crate::radio::{RadioGap, RadioLog};
use crate::shared_path::{HostLog, Passage, takes_share};
use crate::two_point::{JoinedConnection, Silences};
use airpath_capture::read::LATEST;
use airpath_observe::{End, Events, Observation, Sending};
use arrivals::{Arrivals, Wait};
use neighbours::{Meanwhile, Neighbours};
use radio_states::RadioStates;
use receiver_view::ReceiverView;
use sender_view::SenderView;
use timeline::{Label, Timeline, View, Waiting};

pub use account::{Account, Cause, Confidence, Piece};
pub use closed::{ClosedCauses, ConnectionCauses};
pub(crate) use quic::IDLE_PART;
pub use quic::QuicCauses;
pub use radio_states::RadioState;
pub use stall::{Fate, Stall};

/// Time and frame number of an observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    time: Instant,
    frame: u64,
}

impl Stamp {
    const fn of(observation: &Observation) -> Self {
        Self { time: observation.time, frame: observation.frame }
    }
}

/// Whether the segments of an end show that it has no more data.
#[derive(Clone, Copy, Debug, Default)]
struct EndOfData {
    /// The time and the end of the last segment, and the bytes since the last PSH that came at this
    /// time.
    time: Instant,
    end: i64,
    bytes: u64,
}

impl EndOfData {
    /// Whether the sender has no data after this segment: it is sub-MSS and has PSH, which a sender
    /// sets on the last segment of the data that it has (RFC 9293 §3.9.1.2), or it has FIN.
    fn at(&mut self, segment: &Observation) -> bool {
        let pushed = segment.flags.contains(Flags::PSH);
        if segment.time != self.time || segment.offset != self.end {
            self.bytes = 0;
        }
        self.bytes += u64::from(segment.length);
        // A full segment that was cut on the path is still full.
        let is_sub_mss = !self.bytes.is_multiple_of(segment.full_segment.max(1).into());
        self.time = segment.time;
        self.end = segment.offset + i64::from(segment.length);
        if pushed {
            self.bytes = 0;
        }
        segment.flags.contains(Flags::FIN) || is_sub_mss && pushed
    }
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SetUp,
    Open,
    Closing,
}

/// The passage of the packets that come from the far end: they show what the path carried.
const fn from_far(near: End) -> Passage {
    match near {
        End::Client => Passage::Received,
        End::Server => Passage::Sent,
    }
}

/// A host acknowledges data that has arrived within this time, unless it delays that (RFC 9293
/// §3.8.6.3).
const IMMEDIATE_ACK: Span = Span::from_millis(1);

/// Acknowledgements of one end after which the capture is at the other, if none was immediate.
const MIN_ROUND_TRIPS: u32 = 8;

/// The causes of one connection.
#[derive(Clone, Debug)]
pub struct Causes {
    phase: Phase,
    /// The end at which the capture was taken.
    near: Option<End>,
    /// Acknowledgements of each end that gave a round trip, while `near` is not known although the
    /// connection is open.
    samples: [u32; 2],
    /// The last observation.
    last: Option<Stamp>,
    /// Whether some times were out of order or out of bounds.
    irregular_times: bool,
    /// The first SYN, the last one, and the number of its retransmissions.
    syn: Option<(Stamp, Instant, u32)>,
    /// The first SYN-ACK, and whether it was sent again.
    syn_ack: Option<(Instant, bool)>,
    /// The timestamps of the SYN and of the SYN-ACK, by the end that sent them.
    handshake: [Option<(Timestamps, Instant)>; 2],
    fin: bool,
    /// The last segment with data, and the end that sent it.
    last_data: Option<(End, Instant)>,
    /// Bytes delivered so far by the end that sent them, and those that the timeline has.
    delivered: [u64; 2],
    delivered_before: [u64; 2],
    /// The highest offset that arrived from the far end.
    arrived: i64,
    /// The data that the end of the capture sends, and the data that it receives.
    sender: SenderView,
    receiver: ReceiverView,
    timeline: Timeline,
    account: Account,
    radio: Option<Radio>,
    /// Its states that delayed packets, and the names of its states in the time of the connection.
    radio_states: RadioStates,
    /// When packets of the far end waited behind other connections, by captures of both ends; and
    /// the number of those that are over.
    waits: (Vec<Wait>, usize),
    /// The same of the times in which its acknowledgements queued in front of their link.
    return_queues: (Vec<(Instant, Instant)>, usize),
    /// The packets of all connections of the client.
    host: Option<Arc<HostLog>>,
    /// The shortest round trip of the client's handshakes with the same server.
    host_round_trip: Option<Span>,
}

/// The radio log, and the position in it.
#[derive(Clone, Debug)]
struct Radio {
    log: Arc<RadioLog>,
    /// The end on the radio.
    mobile: End,
    /// The gaps before this one are over.
    next: usize,
    /// Whether the gaps are inferred from both ends' captures: the radio may have more.
    inferred: bool,
    /// When no packet of any connection of the client arrived, of the packets that each end sends;
    /// and by how much a packet leaves the link earlier. `None` where that is not known exactly.
    silences: [Option<(Arc<Silences>, Span)>; 2],
}

impl Radio {
    fn new(log: Arc<RadioLog>, mobile: End) -> Self {
        Self { log, mobile, next: 0, inferred: false, silences: [None, None] }
    }

    /// The gaps that end after `begin`, by begin. `begin` does not decrease from call to
    /// call.
    fn gaps_from(&mut self, begin: Instant) -> &[RadioGap] {
        let gaps = self.log.gaps();
        while gaps.get(self.next).is_some_and(|gap| gap.end <= begin) {
            self.next += 1;
        }
        &gaps[self.next..]
    }

    /// The part from `begin` to `end` of a gap in which no packet of any connection passed; `None`
    /// where that is not known exactly.
    fn silent_part(&self, gap: &RadioGap, begin: Instant, end: Instant) -> Option<(Instant, Instant)> {
        let from = if gap.direction? == Direction::Up { self.mobile } else { self.mobile.other() };
        let (silences, before) = self.silences[from as usize].as_ref()?;
        let earlier = |time: Instant| time - (*before).min(time.since(Instant::ZERO));
        let whole = silences.within(gap.begin + *before, gap.end + *before);
        let parts = whole.map(|(silent, over)| (earlier(silent).max(begin), earlier(over).min(end)));
        let longest = parts.filter(|(silent, over)| silent < over).max_by_key(|(silent, over)| over.since(*silent));
        Some(longest.unwrap_or((end, end)))
    }

    /// The direction of the data in flight from `near` while it is `sending`, or else of the data
    /// that it receives.
    const fn data_direction(&self, near: End, sending: bool) -> Direction {
        let is_uplink = (near as usize == self.mobile as usize) == sending;
        if is_uplink { Direction::Up } else { Direction::Down }
    }
}

impl Causes {
    /// For a capture taken at `near`; without it, the handshake or data shows that end.
    pub fn new(near: Option<End>) -> Self {
        let mut causes = Self {
            phase: Phase::SetUp,
            near: None,
            samples: [0; 2],
            last: None,
            irregular_times: false,
            syn: None,
            syn_ack: None,
            handshake: [None; 2],
            fin: false,
            last_data: None,
            delivered: [0; 2],
            delivered_before: [0; 2],
            arrived: 0,
            sender: SenderView::default(),
            receiver: ReceiverView::new(),
            timeline: Timeline::default(),
            account: Account::default(),
            radio: None,
            radio_states: RadioStates::default(),
            waits: (Vec::new(), 0),
            return_queues: (Vec::new(), 0),
            host: None,
            host_round_trip: None,
        };
        if let Some(near) = near {
            causes.set_near(near);
        }
        causes
    }

    /// Sets the end at which the capture was taken. Without a radio log the client counts as the
    /// mobile.
    fn set_near(&mut self, near: End) {
        self.near = Some(near);
        self.timeline.set_near(near);
        let mobile = self.radio.as_ref().map_or(End::Client, |radio| radio.mobile);
        self.sender.bottleneck().set_on_radio(near == mobile);
        self.receiver.set_from_radio(near != mobile);
        if let Some(host) = &self.host {
            // Acknowledgements show the data of this end that the path carried.
            let [acknowledgements, data] =
                [false, true].map(|data| Neighbours::new(Arc::clone(host), from_far(near), data));
            self.sender.bottleneck().set_neighbours(acknowledgements);
            self.receiver.set_neighbours(data);
        }
    }

    /// Uses the packets of all connections of the client, and the shortest round trip of their
    /// handshakes with the same server.
    pub fn with_host(mut self, host: Arc<HostLog>, round_trip: Option<Span>) -> Self {
        if let Some(round_trip) = round_trip {
            self.sender.bottleneck().path.round_trip(round_trip, 0);
        }
        (self.host, self.host_round_trip) = (Some(host), round_trip);
        if let Some(near) = self.near {
            self.set_near(near);
        }
        self
    }

    /// Uses the gaps of a radio log; `mobile` is the end on the radio.
    pub fn with_radio(self, log: Arc<RadioLog>, mobile: End) -> Self {
        let radio_states = RadioStates::new(Arc::clone(&log));
        let radio = Some(Radio::new(log, mobile));
        let mut causes = Self { radio, radio_states, ..self };
        if let Some(near) = causes.near {
            causes.set_near(near);
        }
        causes
    }

    /// Uses the arrivals in the capture of the other end, and, without a radio log, the gaps in
    /// them; `mobile` is the end on the radio.
    pub fn with_both_ends(mut self, joined: &JoinedConnection, mobile: End) -> Self {
        let arrivals = Arrivals::of(joined.sent_by(joined.near), joined.sent_by(joined.near.other()));
        self.sender.bottleneck().set_arrivals(arrivals);
        let far = joined.sent_by(joined.near.other());
        self.receiver.set_sent(far, !far.path_queue.is_empty());
        let own = joined.path_log(mobile);
        let (log, inferred) = match &self.radio {
            Some(radio) => {
                self.radio_states = std::mem::take(&mut self.radio_states).with_packets(joined, mobile);
                (radio.log.and_waits(&own), false)
            }
            None => (own, true),
        };
        let silences = End::BOTH.map(|from| {
            let direction = joined.sent_by(from);
            // The radio is the first hop of the uplink.
            let before = direction.delay.filter(|_| from == mobile).map_or(Span::ZERO, |delay| delay.minimum);
            (!direction.path_queue.is_empty()).then(|| (Arc::clone(&direction.silences), before))
        });
        self.radio = Some(Radio { log: Arc::new(log), mobile, next: 0, inferred, silences });
        self.set_near(joined.near);
        self.waits = (self.sender.bottleneck().waits_behind_others(far), 0);
        self.return_queues = (self.sender.bottleneck().return_queues(far), 0);
        self
    }

    /// The end at which the capture was taken; `None` before the handshake or data
    /// shows it.
    pub const fn near(&self) -> Option<End> {
        self.near
    }

    /// Takes the next observation. `settled` receives the pieces that no later one can change.
    /// Where the time of a capture steps back, it counts as standing still.
    pub fn observe(&mut self, observation: &Observation, settled: &mut impl FnMut(&Piece)) {
        self.irregular_times |= observation.time > LATEST || self.last.is_some_and(|last| observation.time < last.time);
        if self.irregular_times {
            let bounded = self.bounded(observation);
            self.take_segments(&bounded, settled);
        } else {
            self.take_segments(observation, settled);
        }
    }

    /// Cuts a super-segment (TSO, GRO) into the segments that the path carries.
    fn take_segments(&mut self, observation: &Observation, settled: &mut impl FnMut(&Piece)) {
        if observation.length <= observation.full_segment {
            return self.take(observation, settled);
        }
        let full = observation.full_segment.max(1);
        // The first part has the acknowledgement, and the last the flags that end the data.
        let mut part = Observation { length: full, ..observation.clone() };
        let ends = Flags::FIN | Flags::RST | Flags::PSH;
        part.flags = Flags(part.flags.0 & !ends.0);
        self.take(&part, settled);
        (part.acknowledged, part.newly_acknowledged, part.spurious) = (None, None, None);
        (part.round_trip, part.echo_round_trip) = (None, None);
        let mut left = observation.length - full;
        while left > 0 {
            part.offset += i64::from(part.length);
            part.length = full.min(left);
            left -= part.length;
            if left == 0 {
                part.flags = observation.flags;
            }
            self.take(&part, settled);
        }
    }

    /// The observation with times that neither step back nor are out of bounds.
    fn bounded(&self, observation: &Observation) -> Observation {
        let now = observation.time.min(LATEST).max(self.last.map_or(Instant::ZERO, |last| last.time));
        let earlier = |sent: Instant| sent.min(now);
        let within = |(sample, frame): (Span, u64)| (sample.min(now.since(Instant::ZERO)), frame);
        Observation {
            time: now,
            newly_acknowledged: observation.newly_acknowledged.map(|sent| Sending {
                original: earlier(sent.original),
                first: earlier(sent.first),
                last: earlier(sent.last),
            }),
            unacknowledged_since: observation.unacknowledged_since.map(earlier),
            round_trip: observation.round_trip.map(within),
            echo_round_trip: observation.echo_round_trip.map(within),
            ..observation.clone()
        }
    }

    fn take(&mut self, observation: &Observation, settled: &mut impl FnMut(&Piece)) {
        let now = Stamp::of(observation);
        self.sender.bottleneck().set_now(now.time);
        if let Some(before) = self.last
            && now.time > before.time
        {
            let (label, before_this) = (self.label(), self.delivered_before);
            self.count_delivered(observation);
            self.delivered_before = self.delivered;
            let delivered = [0, 1].map(|end| self.delivered[end] - before_this[end]);
            self.timeline.push(before, now, label, delivered);
            if self.phase == Phase::Open {
                self.apply_radio_gaps(before.time, now.time);
                self.apply_radio_delays(before.time, now.time);
                self.apply_waits(before.time, now.time);
            }
            self.sender.arrivals_until(now.time, &mut self.timeline);
        } else {
            self.count_delivered(observation);
        }
        self.last = Some(now);
        match self.phase {
            // The packet passed only once.
            _ if observation.events.contains(Events::HARDWARE_DUPLICATE) => {}
            Phase::SetUp => self.set_up(observation),
            Phase::Open | Phase::Closing => self.open(observation),
        }
        let (account, states) = (&mut self.account, &mut self.radio_states);
        // With unacknowledged data a time-out may still show that it was lost.
        let mut until = self.sender.progress_with_data_outstanding();
        if self.receiver.is_link_busy() {
            // The load in front of the acknowledgements is reported when later packets enter.
            until = until.min(self.timeline.reverse_until());
        }
        self.timeline.settle(until, &mut |piece| account.add(piece, states, settled));
    }

    /// Ends the connection: settles the pending time, and returns the sum.
    pub fn finish(mut self, settled: &mut impl FnMut(&Piece)) -> Account {
        if self.phase != Phase::Closing {
            // Later packets could have decided otherwise.
            self.timeline.doubt_undecided();
        }
        ClosedCauses::of(&mut self).finish(settled)
    }

    /// Counts what an observation shows to be delivered: acknowledged data of this end, and data of
    /// the far end.
    fn count_delivered(&mut self, observation: &Observation) {
        let near = self.capture_end();
        if observation.from == near {
            return;
        }
        let sum = &mut self.delivered[near as usize];
        *sum = (*sum).max(observation.delivered);
        let end = observation.offset.saturating_add(observation.length.into());
        let new = end.saturating_sub(self.arrived.max(observation.offset));
        self.delivered[near.other() as usize] += u64::try_from(new).unwrap_or(0);
        self.arrived = self.arrived.max(end);
    }

    /// Without a handshake, data that is acknowledged at once shows the end of the capture: it has
    /// arrived there.
    fn infer_near_from_data(&mut self, observation: &Observation, stalls: &mut Vec<Stall>) {
        let Some((sample, _)) = observation.round_trip.filter(|_| self.near.is_none()) else { return };
        let samples = &mut self.samples[observation.from as usize];
        *samples += 1;
        let near = match () {
            () if sample < IMMEDIATE_ACK => observation.from,
            () if *samples == MIN_ROUND_TRIPS => observation.from.other(),
            () => return,
        };
        if near != self.capture_end() {
            self.receiver.end(&mut self.timeline);
            self.sender.end(&mut self.timeline, stalls);
            // The rounds of the new views have the same numbers.
            self.timeline.decide_pending();
            (self.sender, self.receiver) = (SenderView::default(), ReceiverView::new());
            if let Some(round_trip) = self.host_round_trip {
                self.sender.bottleneck().path.round_trip(round_trip, 0);
            }
        }
        self.set_near(near);
        self.sender.bottleneck().set_now(observation.time);
    }

    /// The end at which the capture was taken; the server where the handshake is missing.
    fn capture_end(&self) -> End {
        self.near.unwrap_or(End::Server)
    }

    fn open(&mut self, observation: &Observation) {
        let mut stalls = Vec::new();
        self.infer_near_from_data(observation, &mut stalls);
        if observation.events.contains(Events::ACK_LOST_SEGMENT) {
            self.timeline.doubt();
        }
        if observation.length > 0 {
            self.data_passed(observation);
        }
        if observation.from == self.capture_end() {
            if observation.length > 0 {
                self.receiver.request_sent(observation.time, &mut self.timeline);
            }
            self.sender.sent(observation, &mut self.timeline, &mut stalls);
            self.receiver.acknowledged(observation, &mut self.timeline);
        } else {
            self.receiver.set_both_ways(self.sender.is_stream_after(observation.acknowledged));
            self.receiver.arrived(observation, &mut self.timeline, &mut stalls);
            // Acknowledgements that waited do not show when the data arrived.
            let mut arrived = observation.time;
            if !self.sender.has_arrivals()
                && self.sender.is_stream()
                && observation.acknowledged.is_some()
                && observation.length == 0
            {
                if let Some((sent, is_behind_others)) = self.receiver.wait_behind_packets(arrived) {
                    if is_behind_others {
                        self.sender.bottleneck().waited(sent, arrived, &mut self.timeline);
                    }
                    arrived = sent;
                } else if let Some((sent, silence)) = self.receiver.wait_in_silence(arrived) {
                    self.sender.bottleneck().held(silence, &mut self.timeline);
                    arrived = sent;
                }
            }
            if observation.acknowledged.is_some() && takes_share(observation.flags, observation.length) {
                let (now, is_data) = (observation.time, observation.length > 0);
                self.sender.bottleneck().passed(now, now.since(arrived), is_data, &mut self.timeline);
            }
            let is_unknown = self.receiver.is_send_time_unknown();
            self.sender.bottleneck().set_ack_times_unknown(is_unknown);
            self.note_return_queue(observation);
            self.sender.acknowledgement(observation, arrived, &mut self.timeline, &mut stalls);
            if observation.length > 0 && observation.retransmission.is_none() {
                self.sender.data_received(observation);
            }
        }
        for stall in stalls {
            self.account.add_stall(stall);
        }
        self.fin |= observation.flags.contains(Flags::FIN) || observation.flags.contains(Flags::RST);
        let done = self.fin && self.sender.idle() && self.receiver.idle();
        self.phase = if done { Phase::Closing } else { Phase::Open };
    }

    /// The far end sent an acknowledgement. If it waited for most of the excess of the round trip,
    /// then the queue is in its direction, and not in that of the data.
    fn note_return_queue(&mut self, observation: &Observation) {
        let Some((sample, _)) = observation.echo_round_trip.or(observation.round_trip) else { return };
        if self.sender.has_arrivals() {
            return;
        }
        let now = observation.time;
        if self.receiver.wait_in_silence(now).is_some() {
            // A queue that is served passes packets.
            return;
        }
        if let Some((sent, base)) = self.receiver.wait_in_queue(now)
            && now.since(sent) > sample.saturating_sub(base) / 2
        {
            let begin = sent - (base / 2).min(sent.since(Instant::ZERO));
            self.timeline.return_queued(begin, now);
        }
    }

    /// Data passed. If the far end sends on after a pause, the path may have held this data.
    fn data_passed(&mut self, observation: &Observation) {
        let (from, now) = (observation.from, observation.time);
        let repeats = observation.retransmission.is_some() || observation.events.contains(Events::KEEP_ALIVE);
        if !repeats && !observation.events.contains(Events::ZERO_WINDOW_PROBE) {
            let is_near = from == self.capture_end();
            self.timeline.data_sent(if is_near { View::Sender } else { View::Receiver });
        }
        if let Some((before, since)) = self.last_data.replace((from, now))
            && from != self.capture_end()
            && before == from
            && !self.sender.has_arrivals()
        {
            let [sure, inferred] =
                [Confidence::High, Confidence::Medium].map(|each| Label::Known(Cause::Application, each));
            self.timeline.relabel(since, now, inferred, |label| label == sure);
        }
    }

    /// Whether the application that the connection waits for is known: the one at the capture, or,
    /// with captures of both ends, either.
    fn is_application_known(&self) -> bool {
        let far = self.last_data.is_none_or(|(from, _)| from != self.capture_end());
        far || self.sender.has_arrivals()
    }

    /// Attributes the gaps of the radio log between two observations to the radio.
    fn apply_radio_gaps(&mut self, begin: Instant, end: Instant) {
        let near = self.capture_end();
        let Some(radio) = &mut self.radio else { return };
        let sending = !self.sender.idle();
        let receiving = !sending && !self.receiver.idle();
        let waiting = !sending && !receiving;
        let data_direction = radio.data_direction(near, sending);
        radio.gaps_from(begin);
        for gap in radio.log.gaps()[radio.next..].iter().take_while(|gap| gap.begin < end) {
            let (mut from, mut to) = (gap.begin.max(begin), gap.end.min(end));
            if from >= to || (waiting && !gap.wanted) {
                continue;
            }
            let reverse = gap.direction.is_some_and(|direction| direction != data_direction);
            let bottleneck = self.sender.bottleneck();
            let passed = || match bottleneck.meanwhile(from, to) {
                Meanwhile::Others(silent, over) if bottleneck.is_long(silent, over, false) => Some((silent, over)),
                Meanwhile::Others(..) => Some((to, to)),
                Meanwhile::Nothing | Meanwhile::Own(..) => None,
            };
            if radio.inferred
                && let Some((silent, over)) = radio.silent_part(gap, from, to).or_else(passed)
            {
                for (begin, end) in [(from, silent), (over, to)] {
                    if sending && reverse {
                        self.timeline.behind_others(begin, end, Waiting::Acknowledgement);
                    } else {
                        let sharing = Label::Known(Cause::Sharing, Confidence::Medium);
                        self.timeline.relabel(begin, end, sharing, Label::is_open);
                    }
                }
                (from, to) = (silent, over);
                if from >= to {
                    continue;
                }
            }
            let sender = &mut self.sender;
            if sending && reverse {
                sender.acknowledgement_gap(from, to, &mut self.timeline);
            } else if sending {
                sender.data_gap(from, to, &mut self.timeline);
                if !radio.inferred {
                    sender.bottleneck().set_known_gap_end(to);
                }
            } else if !(receiving && reverse) {
                // Delayed acknowledgements do not stop data in flight: `receiving && reverse` is no
                // gap.
                self.timeline.relabel(from, to, Label::Known(Cause::Radio, Confidence::High), |_| true);
            }
        }
    }

    /// Marks the time between two observations in which states of the radio delayed packets.
    fn apply_radio_delays(&mut self, begin: Instant, end: Instant) {
        let Some(radio) = &self.radio else { return };
        let (sending, receiving) = (!self.sender.idle(), !self.receiver.idle());
        let data_direction = radio.data_direction(self.near.unwrap_or(End::Server), sending);
        self.radio_states.mark(begin, end, [sending, receiving], data_direction, &mut self.timeline);
    }

    /// Marks the waits of the far end's packets between two observations: behind other connections,
    /// and in front of their link.
    fn apply_waits(&mut self, begin: Instant, end: Instant) {
        let (waits, next) = &mut self.waits;
        while waits.get(*next).is_some_and(|wait| wait.end <= begin) {
            *next += 1;
        }
        for wait in waits[*next..].iter().take_while(|wait| wait.begin < end) {
            self.timeline.behind_others(wait.begin.max(begin), wait.end.min(end), wait.behind);
        }
        let (queues, next) = &mut self.return_queues;
        while queues.get(*next).is_some_and(|(_, until)| *until <= begin) {
            *next += 1;
        }
        for (since, until) in queues[*next..].iter().take_while(|(since, _)| *since < end) {
            self.timeline.acknowledgements_queued((*since).max(begin), (*until).min(end));
        }
    }

    /// The label of the time from now on, by the evidence so far.
    fn label(&self) -> Label {
        match self.phase {
            Phase::SetUp => Label::Known(Cause::SetUp, Confidence::High),
            Phase::Closing => Label::Known(Cause::Closing, Confidence::High),
            Phase::Open if !self.sender.idle() => self.sender.label(),
            Phase::Open if !self.receiver.idle() => self.receiver.label(),
            Phase::Open if self.sender.is_closed() => self.sender.label(),
            Phase::Open => {
                let known = self.is_application_known();
                Label::Known(Cause::Application, if known { Confidence::High } else { Confidence::Medium })
            }
        }
    }
}
