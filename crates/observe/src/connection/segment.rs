//! Segments of a connection: position in the stream, retransmissions, offered window.

use airpath_core::{Ecn, Span};
use airpath_wire::segment::Segment;
use airpath_wire::tcp::Flags;

use super::acknowledgement::acknowledge;
use super::direction::{Direction, Previous, stamp};
use super::full_segment::LONGEST_IN_ETHERNET;
use super::numbering::Anchor;
use crate::events::Events;
use crate::figures::MAXIMUM_SHIFT;
use crate::observation::{End, Observation, Retransmission};
use crate::outstanding::{Placed, Transmission};
use crate::spurious::{Detector, Resent, Spurious};
use crate::trigger::Trigger;

/// Maximum delay of reordering, if the round trip is shorter: Wireshark's bound.
const MOST_REORDERING: Span = Span::from_millis(3);

/// Longer than any payload in one frame: the largest frames of common interfaces have 9,216 bytes.
/// It identifies super-segments of connections without captured SYNs.
const LONGEST_PAYLOAD: u32 = 9_216;

/// Properties of a segment before it is added.
struct Arrival {
    /// Stream offsets of its first sequence number and one past its last, SYN and FIN included.
    offset: i64,
    end: i64,
    /// The highest offset of this direction before it.
    expected: i64,
    /// Whether the capture has the same packet twice.
    is_duplicate: bool,
    is_keep_alive: bool,
    is_window_probe: bool,
    /// Whether it is a byte beyond the window that the other end has allowed: only a probe may be.
    is_beyond_window: bool,
}

impl Arrival {
    const fn length(&self) -> i64 {
        self.end - self.offset
    }
}

/// Processes a segment in the direction `sent`; it acknowledges data of the direction `answered`.
pub(crate) fn observe(segment: &Segment<'_>, from: End, sent: &mut Direction, answered: &mut Direction) -> Observation {
    let flags = segment.flags;
    let (syn, fin, rst) = (flags.contains(Flags::SYN), flags.contains(Flags::FIN), flags.contains(Flags::RST));
    if sent.is_first_answer(segment, answered) {
        // A reset before it ended an earlier connection.
        (sent.reset, answered.reset) = (false, false);
    }
    sent.locate(segment);
    let arrival = classify(segment, sent, answered);
    answered.unanswered = None;
    let mut events = packet_events(segment, &arrival, answered);
    let window = scaled_window(segment, sent, answered);

    sent.figures.segment(segment);
    sent.time_to_live.get_or_insert(segment.time_to_live);
    let full_segment = sent.full_segment.observe(segment, answered.figures.maximum_segment_size);
    let entered = enter(segment, &arrival, full_segment, sent, answered, &mut events);
    events
        .set(Events::WINDOW_FULL, segment.length > 0 && answered.allowed == Some(arrival.end) && !syn && !fin && !rst);
    events.set(Events::LOST_SEGMENT, arrival.length() == 0 && arrival.offset > arrival.expected && !rst);
    let exceeds = segment.length > 0 && !rst && !arrival.is_window_probe && Some(arrival.end) > answered.allowed;
    // A shift applies if both SYNs have the option.
    let is_unknown = answered.syns == 0 || answered.shift_cut || sent.shift_cut;
    answered.figures.window.scale_is_unknown |= exceeds && is_unknown && answered.allowed.is_some();
    sent.reset |= rst;
    let fast_open = syn && segment.length > 0;
    events.set(Events::TFO_SYN, fast_open);

    let mut observation = Observation {
        frame: segment.frame,
        time: segment.time,
        from,
        offset: arrival.offset,
        length: segment.length,
        full_segment,
        flags,
        acknowledged: None,
        window,
        scale_is_unknown: sent.figures.window.scale_is_unknown,
        events,
        retransmission: entered.retransmission,
        outstanding: sent.unacknowledged() + u64::from(arrival.is_beyond_window),
        newly_acknowledged: None,
        unacknowledged_since: None,
        timestamps: segment.options.timestamps,
        round_trip: None,
        echo_round_trip: None,
        delivered: answered.delivered(),
        duplicate: None,
        since_push: sent.since_push(segment),
        spurious: entered.spurious,
    };
    if flags.contains(Flags::ACK) && !arrival.is_duplicate {
        acknowledge(segment, arrival.offset == arrival.expected, sent, answered, &mut observation);
        observation
            .events
            .set(Events::SHOWS_SPURIOUS, observation.spurious.is_some_and(|spurious| spurious.frame != segment.frame));
    }
    if !rst {
        sent.window = Some(window);
        count_windows(segment, &observation, entered.again, sent, answered);
    }
    sent.previous = match () {
        () if fast_open => Previous::FastOpen,
        () if arrival.is_keep_alive => Previous::KeepAlive,
        () if arrival.is_window_probe => Previous::ZeroWindowProbe,
        () => Previous::Other,
    };
    observation
}

/// Position of a segment in its stream; whether it is a duplicate packet, a keep-alive or a window
/// probe.
fn classify(segment: &Segment<'_>, sent: &mut Direction, answered: &Direction) -> Arrival {
    let has = |flag| segment.flags.contains(flag);
    let (syn, fin, rst) = (has(Flags::SYN), has(Flags::FIN), has(Flags::RST));
    let offset = sent.numbering.offset(segment.sequence);
    let length = i64::from(segment.length) + i64::from(syn) + i64::from(fin);
    let expected = sent.outstanding.highest();
    let is_window_probe = answered.window == Some(0) && !syn && length > 0 && !rst;
    // RFC 9293 §3.8.4: one below the next number, while nothing is outstanding. A retransmission
    // would have no cause.
    let idle = sent.acknowledged >= Some(expected);
    let bare = !is_window_probe && !syn && !fin && !rst;
    let is_keep_alive = idle && bare && segment.length <= 1 && offset == expected - 1;
    let is_duplicate = sent.same_packet(segment);
    let is_beyond_window = is_window_probe
        && segment.length == 1
        && !fin
        && offset >= expected
        && answered.allowed.is_some_and(|allowed| offset >= allowed);
    Arrival { offset, end: offset + length, expected, is_duplicate, is_keep_alive, is_window_probe, is_beyond_window }
}

/// Events that depend on the packet alone.
fn packet_events(segment: &Segment<'_>, arrival: &Arrival, answered: &Direction) -> Events {
    let longest = answered.figures.maximum_segment_size.map_or(LONGEST_PAYLOAD, u32::from);
    let mut events = Events::default();
    events.set(Events::HARDWARE_DUPLICATE, arrival.is_duplicate);
    events.set(Events::BAD_CHECKSUM, segment.checksum == Some(false));
    events.set(Events::CONGESTION_EXPERIENCED, segment.ecn == Ecn::Ce);
    events.set(Events::OPTIONS_CUT, segment.options_cut);
    events.set(Events::SUPER_SEGMENT, segment.length > longest);
    events.set(Events::ZERO_WINDOW_PROBE, arrival.is_window_probe);
    events.set(Events::KEEP_ALIVE, arrival.is_keep_alive);
    events
}

/// Result of adding the sequence numbers of a segment.
struct Entered {
    retransmission: Option<Retransmission>,
    /// It is itself a spurious retransmission.
    spurious: Option<Spurious>,
    /// It carries numbers that were seen before, or is a duplicate packet.
    again: bool,
}

/// Adds the sequence numbers of a segment to the sent data of its end.
fn enter(
    segment: &Segment<'_>,
    arrival: &Arrival,
    full_segment: u32,
    sent: &mut Direction,
    answered: &Direction,
    events: &mut Events,
) -> Entered {
    let has = |flag| segment.flags.contains(flag);
    let (syn, fin, rst) = (has(Flags::SYN), has(Flags::FIN), has(Flags::RST));
    let &Arrival { offset, end, .. } = arrival;
    let mut entered = Entered { retransmission: None, spurious: None, again: arrival.is_duplicate };
    if arrival.length() > 0 && !rst && !arrival.is_duplicate {
        let now = Transmission { time: segment.time, frame: segment.frame, stamp: stamp(segment) };
        // The data of a probe counts as sent once it is acknowledged (RFC 9293 §3.8.6.1).
        let placed = if arrival.is_beyond_window {
            sent.probe = Some((offset, end, now));
            Placed::default()
        } else {
            sent.probe = sent.probe.filter(|(start, ..)| *start >= end);
            let is_super = events.contains(Events::SUPER_SEGMENT) || segment.length > LONGEST_IN_ETHERNET;
            if is_super && !syn && segment.length > full_segment {
                sent.outstanding.insert_super(offset, end, full_segment, now)
            } else {
                sent.outstanding.insert(offset, end, now)
            }
        };
        let fresh_fin = fin && sent.fin.replace(end - 1) != Some(end - 1);
        // New numbers, without the SYN and the FIN.
        let unique = placed.new - i64::from(syn && placed.again == 0) - i64::from(fresh_fin);
        sent.figures.unique_bytes += u64::try_from(unique).unwrap_or(0);
        sent.figures.unseen_bytes = sent.figures.unseen_bytes.saturating_sub(placed.late as u64);
        if arrival.is_window_probe {
            // A probe is no retransmission; but the receiver may accept its byte.
            sent.figures.window_probes += 1;
            sent.figures.window_probe_bytes += u64::from(segment.length);
        } else if !arrival.is_keep_alive {
            (entered.retransmission, entered.spurious) = judge(segment, offset, end, &placed, sent, answered, events);
            entered.again = placed.again > 0;
        }
        sent.follow_arrivals(segment, (offset, end), &placed, entered.retransmission.is_some(), *events);
        if !arrival.is_beyond_window {
            sent.numbering.advance(end);
        }
        if sent.numbering.anchor() == Anchor::Syn {
            sent.figures.stream_length = sent.fin.and_then(|fin| u64::try_from(fin).ok());
        }
    }
    if arrival.length() == 0 && !rst && offset < arrival.expected {
        // The receiver answers unexpected segments (RFC 9293 §3.10.7.4).
        if let Some(arrivals) = &mut sent.arrivals {
            arrivals.other((offset, end), segment.frame, stamp(segment), false);
        }
    }
    entered
}

/// Counts the window that a segment offers, and the outstanding data after it.
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

/// The window in bytes. A shift applies once both SYNs requested one, and not in a SYN (RFC 7323
/// §2.2).
fn scaled_window(segment: &Segment<'_>, sent: &mut Direction, answered: &Direction) -> u64 {
    if segment.flags.contains(Flags::SYN) {
        sent.shift = segment.options.window_scale.map(|shift| shift.min(MAXIMUM_SHIFT));
        sent.shift_cut = segment.options_cut && sent.shift.is_none();
        sent.selective_permitted = segment.options.sack_permitted;
        return u64::from(segment.window);
    }
    match (sent.shift, answered.shift) {
        (Some(shift), Some(_)) => u64::from(segment.window) << shift,
        _ => u64::from(segment.window),
    }
}

/// Whether a segment that should precede `other` was sent after it: then it is retransmitted, not
/// late. The sender's timestamps show this; without them, the bound is a round trip, because no
/// reordering lasts that long.
fn sent_after(segment: &Segment<'_>, other: &Transmission, round_trip: Span) -> bool {
    let own = stamp(segment);
    if own != 0 && other.stamp != 0 && own != other.stamp {
        return (own.wrapping_sub(other.stamp) as i32) > 0;
    }
    segment.time.since(other.time) > round_trip.max(MOST_REORDERING)
}

/// Classifies a segment by the sequence numbers `placed`.
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
    events.set(Events::OUT_OF_ORDER, placed.out_of_order);
    let estimate = sent.estimate.both_sides(&answered.estimate);
    if placed.again == 0 {
        let lost = placed.overtaken_by.is_some_and(|later| sent_after(segment, &later, estimate.minimum()));
        events.set(Events::LOST_BEFORE_CAPTURE, lost);
        return (None, None);
    }
    *events |= Events::RETRANSMISSION;
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
    // A closed window refused the earlier copy, also if that was captured at the receiver.
    let refused = sent.was_refused(offset, end);
    let verdict = match () {
        () if known => Some(Detector::Acknowledged),
        () if placed.new == 0 && !refused && answered.captured_here(sent) => Some(Detector::OtherEnd),
        () => None,
    };
    let unrequested = trigger == Trigger::Unknown && sent.recovery.duplicates == 0;
    if let Some(detector) = verdict {
        sent.figures.spurious.add(detector, unrequested);
    }
    let resent = Resent { start: offset, end, frame: segment.frame, time: segment.time, verdict, unrequested, refused };
    sent.retransmissions.push(resent);
    let retransmission = Retransmission {
        of_frame: placed.before.map(|before| before.last.frame),
        of_time: placed.before.map(|before| before.last.time),
        trigger,
    };
    (Some(retransmission), verdict.map(|detector| Spurious { frame: segment.frame, detector }))
}
