//! What one end sends, and how the other end acknowledges it.

use airpath_core::Ecn;
use airpath_wire::tcp::Flags;

use super::needless::{Resent, Retransmissions};
use super::numbering::{Anchor, Numbering};
use super::outstanding::{Covered, Outstanding, Placed, Transmission};
use super::round_trip::Estimate;
use super::trigger::{Recovery, Trigger};
use super::{Detector, End, Events, Needless, Observation, Retransmission};
use crate::decode::Segment;

/// The largest shift of a window (RFC 7323 §2.3).
const MAXIMUM_SHIFT: u8 = 14;

/// Packets in which a duplicate by the capture or a link is looked for.
const DUPLICATES_WITHIN: usize = 8;

/// What one end sends, and how the other acknowledges it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Direction {
    numbering: Numbering,
    outstanding: Outstanding,
    /// What the other end has acknowledged, cumulatively.
    acknowledged: Option<i64>,
    recovery: Recovery,
    estimate: Estimate,
    retransmissions: Retransmissions,
    /// The window that this end offers, as scaled in its last segment.
    window: Option<u64>,
    /// One past the last byte of the other end that this one's window ever allowed.
    allowed: Option<i64>,
    /// The shift that its SYN asked for.
    shift: Option<u8>,
    selective_permitted: bool,
    syns: u32,
    reset: bool,
    /// Offset of its FIN.
    fin: Option<i64>,
    /// Sequence number and identification of its last packets; 0 where there is none.
    packets: [u64; DUPLICATES_WITHIN],
    next_packet: u8,
    previous: Previous,
}

/// What the other end's next segment may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Previous {
    #[default]
    Other,
    KeepAlive,
    ZeroWindowProbe,
    /// A SYN with data.
    FastOpen,
}

impl Direction {
    pub(crate) const fn reset(&self) -> bool {
        self.reset
    }

    /// Whether its FIN was acknowledged.
    pub(crate) fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.acknowledged > Some(fin))
    }

    /// Whether a SYN in this direction begins another connection: it has another sequence number, and this connection is over
    /// or has its own SYN.
    pub(crate) fn restarts_with(&self, syn: &Segment<'_>, answered: &Self) -> bool {
        if self.numbering.anchor() == Anchor::None || self.numbering.offset(syn.sequence) == -1 {
            return false;
        }
        let over = self.fin.is_some() || answered.fin.is_some() || self.reset || answered.reset;
        over || (self.numbering.anchor() == Anchor::Syn && self.outstanding.highest() > 0)
    }

    /// Highest offset less what is acknowledged.
    fn unacknowledged(&self) -> u64 {
        let from = self.acknowledged.unwrap_or(self.outstanding.floor());
        u64::try_from(self.outstanding.highest() - from).unwrap_or(0)
    }

    /// Bytes of it that the other end has told to have.
    fn delivered(&self) -> u64 {
        let selective = self.outstanding.selective().total();
        u64::try_from(self.acknowledged.unwrap_or(0) + selective).unwrap_or(0)
    }

    /// Fixes where its stream begins, as far as this segment of it tells.
    fn locate(&mut self, segment: &Segment<'_>) {
        if segment.flags.contains(Flags::SYN) {
            self.syns += 1;
            // A SYN with another number replaces an earlier one that went unanswered.
            let fresh =
                self.outstanding.highest() <= 0 && self.acknowledged.is_none_or(|acknowledged| acknowledged <= 0);
            if self.numbering.anchor() != Anchor::Syn || (fresh && self.numbering.offset(segment.sequence) != -1) {
                let unknown = self.numbering.anchor() == Anchor::None;
                if unknown || fresh {
                    self.numbering.anchor_at_syn(segment.sequence);
                    self.outstanding.restart();
                    self.acknowledged = None;
                }
            }
            self.outstanding.start(-1, false);
        } else if !segment.flags.contains(Flags::RST) {
            self.numbering.anchor_in_middle(segment.sequence);
            self.outstanding.start(0, true);
        }
    }

    /// Whether the same packet was among the last ones. Packets without identification are never the same.
    fn same_packet(&mut self, segment: &Segment<'_>) -> bool {
        let Some(identification @ 1..) = segment.identification else { return false };
        let key = u64::from(identification) << 32 | u64::from(segment.sequence);
        let seen = self.packets.contains(&key);
        if !seen {
            self.packets[usize::from(self.next_packet)] = key;
            self.next_packet = (self.next_packet + 1) % DUPLICATES_WITHIN as u8;
        }
        seen
    }
}

/// Takes a segment in the direction `sent`; what it acknowledges went in the direction `answered`.
pub(crate) fn observe(segment: &Segment<'_>, from: End, sent: &mut Direction, answered: &mut Direction) -> Observation {
    let flags = segment.flags;
    let (syn, fin, rst) = (flags.contains(Flags::SYN), flags.contains(Flags::FIN), flags.contains(Flags::RST));
    let mut events = Events::default();
    sent.locate(segment);
    let offset = sent.numbering.offset(segment.sequence);
    let length = i64::from(segment.length) + i64::from(syn) + i64::from(fin);
    let end = offset + length;
    let duplicate = sent.same_packet(segment);
    events.set(Events::HARDWARE_DUPLICATE, duplicate);
    events.set(Events::BAD_CHECKSUM, segment.checksum == Some(false));
    events.set(Events::CONGESTION_EXPERIENCED, segment.ecn == Ecn::Ce);

    let window = scaled_window(segment, sent, answered);
    let expected = sent.outstanding.highest();
    let closed = answered.window == Some(0) && !syn;
    let probing = closed && length > 0 && !rst;
    let keeping = !probing
        && !syn
        && !fin
        && !rst
        && segment.length <= 1
        && offset == expected - 1
        && sent.syns < 2 + u32::from(expected > 0);
    let keeping = keeping && (expected > 0 || segment.length == 1);
    events.set(Events::ZERO_WINDOW_PROBE, probing);
    events.set(Events::KEEP_ALIVE, keeping);

    let mut retransmission = None;
    let mut needless = None;
    if length > 0 && !rst && !duplicate {
        if probing || keeping {
            // A probe is no retransmission; but the byte that it carries may be accepted.
            sent.outstanding.insert(
                offset,
                end,
                Transmission { time: segment.time, frame: segment.frame, stamp: stamp(segment) },
            );
        } else {
            let now = Transmission { time: segment.time, frame: segment.frame, stamp: stamp(segment) };
            let placed = sent.outstanding.insert(offset, end, now);
            (retransmission, needless) = judge(segment, offset, end, &placed, sent, answered, &mut events);
        }
        sent.numbering.advance(end);
        if fin {
            sent.fin = Some(end - 1);
        }
    }
    events.set(Events::WINDOW_FULL, segment.length > 0 && answered.allowed == Some(end) && !syn && !fin && !rst);
    events.set(Events::LOST_SEGMENT, length == 0 && offset > expected && !rst);
    sent.reset |= rst;
    let fast_open = syn && segment.length > 0;
    events.set(Events::TFO_SYN, fast_open);

    let mut observation = Observation {
        frame: segment.frame,
        time: segment.time,
        from,
        offset,
        length: segment.length,
        flags,
        acknowledged: None,
        window,
        events,
        retransmission,
        outstanding: sent.unacknowledged(),
        round_trip: None,
        echo_round_trip: None,
        delivered: answered.delivered(),
        needless,
    };
    if flags.contains(Flags::ACK) {
        acknowledge(segment, offset == expected, sent, answered, &mut observation);
        observation
            .events
            .set(Events::SHOWS_NEEDLESS, observation.needless.is_some_and(|needless| needless.frame != segment.frame));
    }
    if !rst {
        sent.window = Some(window);
    }
    sent.previous = match () {
        () if fast_open => Previous::FastOpen,
        () if keeping => Previous::KeepAlive,
        () if probing => Previous::ZeroWindowProbe,
        () => Previous::Other,
    };
    observation
}

fn stamp(segment: &Segment<'_>) -> u32 {
    segment.options.timestamps.map_or(0, |timestamps| timestamps.value)
}

/// The window in bytes. A shift counts once both SYNs asked for one, and not in a SYN (RFC 7323 §2.2).
fn scaled_window(segment: &Segment<'_>, sent: &mut Direction, answered: &Direction) -> u64 {
    if segment.flags.contains(Flags::SYN) {
        sent.shift = segment.options.window_scale.map(|shift| shift.min(MAXIMUM_SHIFT));
        sent.selective_permitted = segment.options.sack_permitted;
        return u64::from(segment.window);
    }
    match (sent.shift, answered.shift) {
        (Some(shift), Some(_)) => u64::from(segment.window) << shift,
        _ => u64::from(segment.window),
    }
}

/// What it means that a segment carries `placed`.
fn judge(
    segment: &Segment<'_>,
    offset: i64,
    end: i64,
    placed: &Placed,
    sent: &mut Direction,
    answered: &Direction,
    events: &mut Events,
) -> (Option<Retransmission>, Option<Needless>) {
    events.set(Events::LOST_SEGMENT, placed.after_gap);
    if placed.again == 0 {
        if placed.new > 0 && end < sent.outstanding.highest() || placed.out_of_order {
            events.set(Events::OUT_OF_ORDER, true);
        }
        return (None, None);
    }
    events.set(Events::OUT_OF_ORDER, placed.out_of_order);
    *events |= Events::RETRANSMISSION;
    let estimate = sent.estimate.both_sides(&answered.estimate);
    let selective = sent.selective_permitted && answered.selective_permitted;
    let trigger = match &placed.before {
        _ if segment.flags.contains(Flags::SYN) => Trigger::Timeout,
        Some(before) => sent.recovery.retransmitted(before, segment.time, &sent.outstanding, &estimate, selective),
        None => sent.recovery.episode().map_or(Trigger::Unknown, |episode| episode.trigger),
    };
    events.set(Events::FAST_RETRANSMISSION, trigger == Trigger::Fast);
    let known = sent.acknowledged.is_some_and(|acknowledged| end <= acknowledged)
        || placed.before.is_some_and(|before| before.selectively && sent.outstanding.selective().contains(offset, end));
    events.set(Events::SPURIOUS_RETRANSMISSION, known);
    let verdict = known.then_some(Detector::Acknowledged);
    sent.retransmissions.push(Resent { start: offset, end, frame: segment.frame, time: segment.time, verdict });
    let retransmission = Retransmission {
        of_frame: placed.before.map(|before| before.last.frame),
        of_time: placed.before.map(|before| before.last.time),
        trigger,
    };
    (Some(retransmission), verdict.map(|detector| Needless { frame: segment.frame, detector }))
}

/// What the acknowledgement in a segment says about the other direction.
fn acknowledge(
    segment: &Segment<'_>,
    in_place: bool,
    sent: &mut Direction,
    answered: &mut Direction,
    observation: &mut Observation,
) {
    let flags = segment.flags;
    let bare = segment.length == 0
        && !flags.contains(Flags::SYN)
        && !flags.contains(Flags::FIN)
        && !flags.contains(Flags::RST);
    answered.numbering.anchor_in_middle(segment.acknowledgment);
    answered.outstanding.start(0, true);
    let acknowledged = answered.numbering.offset(segment.acknowledgment);
    observation.acknowledged = Some(acknowledged);
    let events = &mut observation.events;
    events.set(Events::ACK_LOST_SEGMENT, acknowledged > answered.outstanding.highest());
    if answered.previous == Previous::FastOpen && flags.contains(Flags::SYN) {
        events.set(Events::TFO_ACK, acknowledged > 0);
        events.set(Events::TFO_IGNORED, acknowledged == 0);
    }
    if flags.contains(Flags::RST) {
        // What a reset acknowledges was not necessarily received (RFC 9293 §3.10.7.1).
        return;
    }
    let before = answered.acknowledged;
    let outstanding = answered.outstanding.highest() > before.unwrap_or(0);
    let shortest = sent.estimate.both_sides(&answered.estimate).minimum();
    let retransmissions = &mut answered.retransmissions;
    let covered = answered.outstanding.acknowledge(acknowledged, |run| {
        if segment.time.since(run.last.time) < shortest / 2 {
            observation.needless = retransmissions.verdict(run.start, run.end, run.last.time, Detector::TooSoon);
        }
    });
    let events = &mut observation.events;
    answered.numbering.advance(acknowledged);
    answered.acknowledged = before.max(Some(acknowledged));
    let blocks = segment.options.sack.as_slice();
    let mut news = 0;
    for (index, &(left, right)) in blocks.iter().enumerate() {
        let (left, right) = (answered.numbering.offset(left), answered.numbering.offset(right));
        if index == 0 && duplicate_block(left, right, acknowledged, blocks, answered) {
            events.set(Events::DUPLICATE_SACK, true);
            observation.needless = answered.retransmissions.undecided(left, right).next().map(|resent| {
                resent.verdict = Some(Detector::DuplicateReport);
                Needless { frame: resent.frame, detector: Detector::DuplicateReport }
            });
        } else if right <= answered.outstanding.highest() {
            news += answered.outstanding.acknowledge_selectively(left, right);
        }
    }
    observation.delivered = answered.delivered();

    let repeated = before == Some(acknowledged);
    let same_window = sent.window == Some(observation.window);
    if covered.advance > 0 {
        forward(&covered, answered, observation);
        answered.recovery.advanced(acknowledged, segment.time);
        measure(segment, &covered, answered, observation);
    } else if repeated && bare && outstanding && (same_window && observation.window > 0 || news > 0) {
        answered.recovery.duplicate(segment.time);
    }
    let events = &mut observation.events;
    if repeated && bare && in_place {
        match answered.previous {
            Previous::KeepAlive if same_window && observation.window > 0 => *events |= Events::KEEP_ALIVE_ACK,
            Previous::ZeroWindowProbe if observation.window == 0 => *events |= Events::ZERO_WINDOW_PROBE_ACK,
            _ if observation.window > 0 && !same_window => *events |= Events::WINDOW_UPDATE,
            _ => events.set(
                Events::DUPLICATE_ACK,
                outstanding && observation.window > 0 && !events.contains(Events::KEEP_ALIVE),
            ),
        }
    }
    events.set(
        Events::ZERO_WINDOW,
        observation.window == 0 && !flags.contains(Flags::SYN) && !flags.contains(Flags::FIN),
    );
    let allowed = acknowledged.saturating_add_unsigned(observation.window);
    sent.allowed = sent.allowed.max(Some(allowed));
}

/// Whether the first block reports bytes that arrived twice (RFC 2883 §4): below what is acknowledged, or inside the second block.
fn duplicate_block(left: i64, right: i64, acknowledged: i64, blocks: &[(u32, u32)], answered: &Direction) -> bool {
    let inside = blocks.get(1).is_some_and(|&(outer_left, outer_right)| {
        answered.numbering.offset(outer_left) <= left && right <= answered.numbering.offset(outer_right)
    });
    left < right && (right <= acknowledged || inside)
}

/// The round trips that an acknowledgement measures, and whether it shows a retransmission to have been needless.
fn measure(segment: &Segment<'_>, covered: &Covered, answered: &mut Direction, observation: &mut Observation) {
    let now = segment.time;
    if let Some(exact) = covered.exact.filter(|exact| exact.transmissions == 1 && !covered.overtaken) {
        let sample = now.since(exact.first.time);
        observation.round_trip = Some((sample, exact.first.frame));
        answered.estimate.sample(sample);
    }
    let (Some(front), Some(timestamps)) = (covered.front, segment.options.timestamps) else { return };
    let echo = timestamps.echo;
    let told_apart = front.transmissions == 1 || front.first.stamp != front.last.stamp;
    let copy = match echo {
        0 => None,
        _ if !told_apart || front.partly => None,
        _ if echo == front.first.stamp => Some(front.first),
        _ if echo == front.last.stamp => Some(front.last),
        _ => None,
    };
    observation.echo_round_trip = copy.map(|copy| (now.since(copy.time), copy.frame));
    if copy == Some(front.first) && front.transmissions > 1 {
        // RFC 3522 §3.2: the echo is that of the first copy, so the first copy arrived.
        let verdict = answered.retransmissions.verdict(front.start, front.end, front.first.time, Detector::Timestamp);
        observation.needless = verdict.or(observation.needless);
    }
}

/// F-RTO (RFC 5682 §2.1): two acknowledgements in a row after a timeout get on, and the second is for what was sent once, before the
/// timeout. Then what was sent again had only been late.
fn forward(covered: &Covered, answered: &mut Direction, observation: &mut Observation) {
    let Some(episode) = answered.recovery.episode() else { return };
    let Some(front) = covered.front else { return };
    let late = front.transmissions == 1 && front.first.time < episode.begun;
    if episode.trigger == Trigger::Timeout && episode.advances == 1 && late {
        let verdict =
            answered.retransmissions.verdict(i64::MIN, front.start, episode.begun, Detector::ForwardAcknowledgement);
        observation.needless = verdict.or(observation.needless);
    }
}
