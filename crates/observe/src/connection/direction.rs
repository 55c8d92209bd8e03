//! What one end sends, and how the other end acknowledges it.

use airpath_core::{Ecn, Instant, Span};
use airpath_wire::segment::Segment;
use airpath_wire::tcp::Flags;

use super::acknowledgement::acknowledge;
use super::arrivals::Arrivals;
use super::numbering::{Anchor, Numbering};
use crate::events::Events;
use crate::figures::{Figures, MAXIMUM_SHIFT};
use crate::observation::{End, Observation, Retransmission};
use crate::outstanding::{Outstanding, Placed, Transmission};
use crate::round_trip::Estimate;
use crate::spurious::{Detector, Resent, Retransmissions, Spurious};
use crate::trigger::{Recovery, Trigger};

/// Reordering that is not taken for a retransmission, where round trips are shorter: Wireshark's bound.
const MOST_REORDERING: Span = Span::from_millis(3);

/// A longer payload than any network carries in one piece: the largest frames of common interfaces have 9,216 bytes. It tells
/// super-segments of connections whose SYNs were not seen.
const LONGEST_PAYLOAD: u32 = 9_216;

/// The longest segment that fits a frame of Ethernet, and is surely one packet: RFC 9293 §3.7.1 with an MTU of 1500.
const LONGEST_IN_ETHERNET: u32 = 1_460;

/// No sender's timer is shorter: a thousandth of what RFC 6298 §2.4 asks for.
const SHORTEST_TIMER: Span = Span::from_millis(1);

/// Packets in which a duplicate by the capture or a link is looked for.
const DUPLICATES_WITHIN: usize = 8;

/// What one end sends, and how the other acknowledges it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Direction {
    pub(super) numbering: Numbering,
    pub(super) outstanding: Outstanding,
    /// What the other end has acknowledged, cumulatively.
    pub(super) acknowledged: Option<i64>,
    pub(super) recovery: Recovery,
    pub(super) estimate: Estimate,
    pub(super) retransmissions: Retransmissions,
    /// What acknowledgements answer, while that can show retransmissions to have been spurious.
    pub(super) arrivals: Option<Box<Arrivals>>,
    /// They cannot be counted: a segment may be several packets, the capture has holes, or the path does not keep the order.
    pub(super) is_uncountable: bool,
    /// The window that this end offers, as scaled in its last segment.
    pub(super) window: Option<u64>,
    /// One past the last byte of the other end that this one's window ever allowed.
    pub(super) allowed: Option<i64>,
    /// The shift that its SYN asked for.
    shift: Option<u8>,
    selective_permitted: bool,
    pub(super) syns: u32,
    reset: bool,
    /// Offset of its FIN.
    fin: Option<i64>,
    /// Marks of its last packets, of identification and TCP's numbers; 0 where there is none.
    packets: [u64; DUPLICATES_WITHIN],
    next_packet: u8,
    /// The last segment with sequence numbers, if nothing of the other end followed it: its mark, and when it passed.
    unanswered: Option<(u64, Instant)>,
    pub(super) previous: Previous,
    /// Whether any of its data was acknowledged.
    pub(super) data_acknowledged: bool,
    /// Duplicate acknowledgements for it, one after the other.
    pub(super) duplicates_in_row: u32,
    /// The frame that acknowledged as much first.
    pub(super) acknowledged_in: u64,
    /// Bytes sent since the last PSH, and whether the last segment with data had it.
    since_push: u64,
    pushed: bool,
    /// When the last segment that measured a round trip was sent, and when acknowledged.
    pub(super) last_pair: Option<(Instant, Instant)>,
    /// Hops that the first packet could still make.
    time_to_live: Option<u8>,
    pub(super) figures: Figures,
}

/// What the other end's next segment may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Previous {
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
        // Who opens anew chooses another number (RFC 6528); one who only answers may do so for other reasons, such as SYN cookies.
        over || (self.numbering.anchor() == Anchor::Syn && !syn.flags.contains(Flags::ACK))
    }

    /// Highest offset less what is acknowledged.
    pub(super) fn unacknowledged(&self) -> u64 {
        let from = self.acknowledged.unwrap_or(self.outstanding.floor());
        u64::try_from(self.outstanding.highest() - from).unwrap_or(0)
    }

    /// Bytes of it that the other end has told to have.
    pub(super) fn delivered(&self) -> u64 {
        let selective = self.outstanding.selective_total();
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
                    self.fin = None;
                }
            }
            self.outstanding.start(-1, false);
        } else if !segment.flags.contains(Flags::RST) {
            self.numbering.anchor_in_middle(segment.sequence);
            self.outstanding.start(0, true);
        }
    }

    /// Whether the capture was taken at the end that sends this direction: its packets have made no hop yet, and what the other end
    /// sends (`received`) is acknowledged in a tenth of the time that its own data takes, or less.
    fn captured_here(&self, received: &Self) -> bool {
        let (own, other) = (self.estimate.minimum(), received.estimate.minimum());
        matches!(self.time_to_live, Some(64 | 128 | 255)) && !other.is_zero() && other < own / 10
    }

    /// Bytes sent since the last PSH, those of this segment included.
    fn since_push(&mut self, segment: &Segment<'_>) -> u64 {
        if segment.length == 0 {
            return 0;
        }
        let before = if self.pushed { 0 } else { self.since_push };
        self.since_push = before + u64::from(segment.length);
        self.pushed = segment.flags.contains(Flags::PSH);
        self.since_push
    }

    /// Gives up counting what acknowledgements answer.
    pub(super) fn give_up_counting(&mut self) {
        self.is_uncountable = true;
        self.arrivals = None;
    }

    /// Notes for [`Arrivals`] what was sent.
    fn follow_arrivals(
        &mut self,
        segment: &Segment<'_>,
        (start, end): (i64, i64),
        placed: &Placed,
        again: bool,
        events: Events,
    ) {
        if segment.length > LONGEST_IN_ETHERNET || events.contains(Events::OUT_OF_ORDER) {
            self.give_up_counting();
        }
        let resent = if again { self.retransmissions.latest() } else { None };
        match (&mut self.arrivals, resent) {
            (Some(arrivals), Some(resent)) => arrivals.again(resent, stamp(segment)),
            (Some(arrivals), None) => {
                arrivals.other((start, end), segment.frame, stamp(segment), placed.new > 0);
            }
            // Where the receiver reports what it got twice, nothing need be counted.
            (None, Some(resent)) if !self.is_uncountable && !self.selective_permitted => {
                let duplicates = self.duplicates_in_row;
                let arrivals = Arrivals::begin(&self.outstanding, resent, stamp(segment), duplicates);
                self.arrivals = Some(Box::new(arrivals));
            }
            _ => {}
        }
    }

    /// Whether the same packet was among the last ones. Of packets without identification (RFC 6864 §4.1) only one with
    /// sequence numbers is, which follows its like so closely, with nothing heard in between, that no sender can have sent it again.
    fn same_packet(&mut self, segment: &Segment<'_>) -> bool {
        let identification = segment.identification.unwrap_or(0);
        // All that a packet of TCP has which differs from one to the next; odd multipliers keep the parts apart.
        let place = u64::from(segment.sequence) << 32 | u64::from(segment.acknowledgment);
        let kind = u64::from(identification) << 40 | u64::from(segment.flags.0) << 32 | u64::from(segment.length);
        let mark = (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ kind.wrapping_mul(0xd6e8_feb8_6659_fd93)).max(1);
        if identification == 0 {
            let numbers = segment.length > 0 || segment.flags.0 & (Flags::SYN | Flags::FIN).0 != 0;
            let before = if numbers { self.unanswered.replace((mark, segment.time)) } else { None };
            return before.is_some_and(|(before, time)| {
                before == mark && segment.time.since(time) < SHORTEST_TIMER && segment.time >= time
            });
        }
        let seen = self.packets.contains(&mark);
        if !seen {
            self.packets[usize::from(self.next_packet)] = mark;
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
    answered.unanswered = None;
    events.set(Events::HARDWARE_DUPLICATE, duplicate);
    events.set(Events::BAD_CHECKSUM, segment.checksum == Some(false));
    events.set(Events::CONGESTION_EXPERIENCED, segment.ecn == Ecn::Ce);
    events.set(Events::OPTIONS_CUT, segment.options_cut);
    let longest = answered.figures.maximum_segment_size.map_or(LONGEST_PAYLOAD, u32::from);
    events.set(Events::SUPER_SEGMENT, segment.length > longest);

    let window = scaled_window(segment, sent, answered);
    let expected = sent.outstanding.highest();
    let closed = answered.window == Some(0) && !syn;
    let probing = closed && length > 0 && !rst;
    // RFC 9293 §3.8.4: one below what is expected, while nothing is outstanding; so it cannot be a retransmission that is needed.
    let idle = sent.acknowledged >= Some(expected);
    let keeping = idle && !probing && !syn && !fin && !rst && segment.length <= 1 && offset == expected - 1;
    events.set(Events::ZERO_WINDOW_PROBE, probing);
    events.set(Events::KEEP_ALIVE, keeping);

    sent.figures.segment(segment);
    sent.time_to_live.get_or_insert(segment.time_to_live);
    let mut retransmission = None;
    let mut spurious = None;
    let mut again = duplicate;
    if length > 0 && !rst && !duplicate {
        let now = Transmission { time: segment.time, frame: segment.frame, stamp: stamp(segment) };
        let placed = sent.outstanding.insert(offset, end, now);
        let fresh_fin = fin && sent.fin.replace(end - 1) != Some(end - 1);
        // What is new, less the SYN and the FIN.
        let unique = placed.new - i64::from(syn && placed.again == 0) - i64::from(fresh_fin);
        sent.figures.unique_bytes += u64::try_from(unique).unwrap_or(0);
        sent.figures.unseen_bytes = sent.figures.unseen_bytes.saturating_sub(placed.late as u64);
        if probing {
            // A probe is no retransmission; but the byte that it carries may be accepted.
            sent.figures.window_probes += 1;
            sent.figures.window_probe_bytes += u64::from(segment.length);
        } else if !keeping {
            (retransmission, spurious) = judge(segment, offset, end, &placed, sent, answered, &mut events);
            again = placed.again > 0;
        }
        sent.follow_arrivals(segment, (offset, end), &placed, retransmission.is_some(), events);
        sent.numbering.advance(end);
        if sent.numbering.anchor() == Anchor::Syn {
            sent.figures.stream_length = sent.fin.and_then(|fin| u64::try_from(fin).ok());
        }
    }
    if length == 0 && !rst && offset < expected {
        // The receiver answers what it does not expect (RFC 9293 §3.10.7.4).
        if let Some(arrivals) = &mut sent.arrivals {
            arrivals.other((offset, end), segment.frame, stamp(segment), false);
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
        news: None,
        unacknowledged_since: None,
        round_trip: None,
        echo_round_trip: None,
        delivered: answered.delivered(),
        duplicate: None,
        since_push: sent.since_push(segment),
        spurious,
    };
    if flags.contains(Flags::ACK) && !duplicate {
        acknowledge(segment, offset == expected, sent, answered, &mut observation);
        observation
            .events
            .set(Events::SHOWS_SPURIOUS, observation.spurious.is_some_and(|spurious| spurious.frame != segment.frame));
    }
    if !rst {
        sent.window = Some(window);
        count_windows(segment, &observation, again, sent, answered);
    }
    sent.previous = match () {
        () if fast_open => Previous::FastOpen,
        () if keeping => Previous::KeepAlive,
        () if probing => Previous::ZeroWindowProbe,
        () => Previous::Other,
    };
    observation
}

/// Counts the window that a segment offers, and what it leaves outstanding.
fn count_windows(
    segment: &Segment<'_>,
    observation: &Observation,
    again: bool,
    sent: &mut Direction,
    answered: &Direction,
) {
    let syn = segment.flags.contains(Flags::SYN);
    let acknowledges = segment.flags.contains(Flags::ACK);
    if acknowledges || syn {
        let scaled = !syn && sent.shift.is_some() && answered.shift.is_some();
        sent.figures.window.offered(observation.window, scaled);
        sent.figures.window.closed += u64::from(acknowledges && observation.window == 0);
    }
    if segment.length > 0 && !sent.data_acknowledged && !again {
        sent.figures.initial_bytes += u64::from(segment.length);
        sent.figures.initial_segments += 1;
    }
    if !syn && !again && !observation.events.contains(Events::OUT_OF_ORDER) {
        let end = observation.offset + i64::from(segment.length);
        let from = sent.acknowledged.unwrap_or(sent.outstanding.floor());
        sent.figures.outstanding.sent(u64::try_from(end - from).unwrap_or(0));
    }
    let outstanding = sent.unacknowledged();
    sent.figures.outstanding.changed(outstanding, segment.time);
    if segment.length > 0 {
        sent.figures.phases.sent(segment.time, outstanding, &sent.recovery);
    }
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

/// Whether a segment was sent after `other`, which it should have come before: then it is not late, but sent again. The sender's own
/// clock tells; without it, no reordering takes as long as a round trip.
fn sent_after(segment: &Segment<'_>, other: &Transmission, round_trip: Span) -> bool {
    let own = stamp(segment);
    if own != 0 && other.stamp != 0 && own != other.stamp {
        return (own.wrapping_sub(other.stamp) as i32) > 0;
    }
    segment.time.since(other.time) > round_trip.max(MOST_REORDERING)
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
) -> (Option<Retransmission>, Option<Spurious>) {
    events.set(Events::LOST_SEGMENT, placed.after_gap);
    if placed.again == 0 {
        if placed.new > 0 && end < sent.outstanding.highest() || placed.out_of_order {
            events.set(Events::OUT_OF_ORDER, true);
        }
        let estimate = sent.estimate.both_sides(&answered.estimate);
        let lost = placed.overtaken_by.is_some_and(|later| sent_after(segment, &later, estimate.minimum()));
        events.set(Events::LOST_BEFORE_CAPTURE, lost);
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
    sent.figures.retransmissions += 1;
    sent.figures.retransmitted_bytes += placed.again as u64;
    sent.figures.triggers[trigger as usize] += 1;
    if let Some(before) = placed.before {
        sent.figures.most_retransmissions = sent.figures.most_retransmissions.max(before.transmissions);
        sent.figures.retransmission_time.sample(segment.time.since(before.last.time));
    }
    let known = sent.acknowledged.is_some_and(|acknowledged| end <= acknowledged)
        || placed
            .before
            .is_some_and(|before| before.selectively && sent.outstanding.selectively_acknowledged(offset, end));
    events.set(Events::ACKNOWLEDGED_RETRANSMISSION, known);
    let verdict = match () {
        () if known => Some(Detector::Acknowledged),
        () if placed.new == 0 && answered.captured_here(sent) => Some(Detector::OtherEnd),
        () => None,
    };
    if let Some(detector) = verdict {
        sent.figures.spurious[detector as usize] += 1;
    }
    sent.retransmissions.push(Resent { start: offset, end, frame: segment.frame, time: segment.time, verdict });
    let retransmission = Retransmission {
        of_frame: placed.before.map(|before| before.last.frame),
        of_time: placed.before.map(|before| before.last.time),
        trigger,
    };
    (Some(retransmission), verdict.map(|detector| Spurious { frame: segment.frame, detector }))
}
