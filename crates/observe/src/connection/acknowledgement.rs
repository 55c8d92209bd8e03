//! Acknowledgements: newly acknowledged data, round trips and spurious retransmissions.

use airpath_core::Span;
use airpath_wire::segment::Segment;
use airpath_wire::tcp::Flags;

use super::direction::{Direction, Previous};
use super::numbering::Anchor;
use crate::events::Events;
use crate::observation::{Duplicate, Observation};
use crate::outstanding::Covered;
use crate::spurious::{Detector, Spurious};
use crate::trigger::Trigger;

/// Segments closer than this cannot show bunched acknowledgements: hosts send several at once.
const SHORTEST_PAIR: Span = Span::from_millis(1);

/// An acknowledgement that is more windows than this beyond the data in the capture is damaged.
const WINDOWS_BEYOND: u64 = 16;

/// Applies the acknowledgement in a segment to the direction that it acknowledges.
pub(super) fn acknowledge(
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
    if flags.contains(Flags::RST) && acknowledged > answered.outstanding.highest() {
        // Anyone may send a reset, with any number (RFC 5961 §3).
        return;
    }
    let highest = answered.outstanding.highest();
    let window = observation.window.max(sent.window.unwrap_or(0)).max(u16::MAX.into());
    if answered.acknowledged.is_some() && acknowledged.saturating_sub(highest) > (WINDOWS_BEYOND * window) as i64 {
        // A damaged number. If the capture lacks so much, the next data shows it.
        observation.acknowledged = None;
        return;
    }
    if let Some((start, end, sending)) = answered.probe.take_if(|(start, ..)| acknowledged > *start) {
        // The other end accepted the data of a probe.
        let placed = answered.outstanding.insert(start, end.min(acknowledged), sending);
        answered.figures.unique_bytes += placed.new as u64;
    }
    let before = answered.acknowledged;
    let outstanding = answered.outstanding.highest() > before.unwrap_or(0);
    // From the capture to the other end and back: a capture close to it sees prompt answers.
    let shortest = answered.estimate.minimum();
    let (retransmissions, counts) = (&mut answered.retransmissions, &mut answered.figures.spurious);
    let mut covered = answered.outstanding.acknowledge(acknowledged, |run| {
        if segment.time.since(run.last.time) < shortest / 2 {
            observation.spurious =
                retransmissions.verdict(run.start, run.end, run.last.time, Detector::TooSoon, counts);
        }
    });
    if acknowledged == 1 && covered.unseen == 1 && answered.numbering.anchor() == Anchor::Middle {
        // The capture begins with a keep-alive, one byte below the next number.
        covered.unseen = 0;
    }
    let events = &mut observation.events;
    events.set(Events::ACK_LOST_SEGMENT, covered.unseen > 0);
    answered.figures.unseen_bytes += covered.unseen as u64;
    answered.numbering.advance(acknowledged);
    answered.acknowledged = before.max(Some(acknowledged));
    let blocks = segment.options.sack.as_slice();
    let mut newly_sacked = 0;
    let mut sending = covered.newly_acknowledged;
    for (index, &(left, right)) in blocks.iter().enumerate() {
        let (left, right) = (answered.numbering.offset(left), answered.numbering.offset(right));
        if index == 0 && is_dsack(left, right, acknowledged, blocks, answered) {
            events.set(Events::DSACK, true);
            sent.figures.dsacks += 1;
            let counts = &mut answered.figures.spurious;
            observation.spurious = answered.retransmissions.undecided(left, right).next().map(|resent| {
                resent.verdict = Some(Detector::Dsack);
                counts.add(Detector::Dsack, resent.unrequested);
                Spurious { frame: resent.frame, detector: Detector::Dsack }
            });
        } else if right <= answered.outstanding.highest() {
            newly_sacked += answered.outstanding.acknowledge_selectively(left, right, &mut sending);
        }
    }
    observation.delivered = answered.delivered();
    observation.newly_acknowledged = sending;
    observation.unacknowledged_since = answered.outstanding.oldest();

    let repeated = before == Some(acknowledged);
    // A newer acknowledgement arrived before an older one, or a missing segment arrived without
    // retransmission: packets were reordered.
    let unaided = answered.arrivals.is_none() && covered.front.is_some_and(|front| front.transmissions == 1);
    if before > Some(acknowledged) || answered.duplicates_in_row > 0 && covered.advance > 0 && unaided {
        answered.give_up_counting();
    }
    if before < Some(acknowledged) {
        // A series of duplicates ends only when SND.UNA moves (RFC 5681 §3.2).
        answered.acknowledged_in = segment.frame;
        answered.duplicates_in_row = 0;
    }
    let same_window = sent.window == Some(observation.window);
    if covered.advance > 0 {
        forward(&covered, answered, observation);
        answered.recovery.advanced(acknowledged, segment.time);
        measure(segment, &covered, answered, observation);
    } else if repeated && bare && outstanding && (same_window && observation.window > 0 || newly_sacked > 0) {
        answered.recovery.duplicate(segment.time);
    }
    let repeats = repeated && bare && in_place && same_window && observation.window > 0;
    let spurious =
        if covered.advance > 0 || repeats { count_arrivals(segment, &covered, acknowledged, answered) } else { None };
    observation.spurious = spurious.or(observation.spurious);
    let (highest, recovery) = (answered.outstanding.highest(), &answered.recovery);
    answered.figures.phases.acknowledged(segment.time, acknowledged, highest, recovery);
    answered.data_acknowledged |= acknowledged != 0 || answered.numbering.anchor() != Anchor::Syn;
    answered.figures.outstanding.changed(answered.unacknowledged(), segment.time);
    let events = &mut observation.events;
    if repeated && bare && in_place {
        match answered.previous {
            Previous::KeepAlive if same_window && observation.window > 0 => *events |= Events::KEEP_ALIVE_ACK,
            Previous::ZeroWindowProbe if observation.window == 0 => *events |= Events::ZERO_WINDOW_PROBE_ACK,
            _ if observation.window > 0 && !same_window => *events |= Events::WINDOW_UPDATE,
            _ if outstanding && observation.window > 0 && !events.contains(Events::KEEP_ALIVE) => {
                *events |= Events::DUPLICATE_ACK;
            }
            _ => {}
        }
    }
    if events.contains(Events::DUPLICATE_ACK) {
        answered.duplicates_in_row += 1;
        observation.duplicate =
            Some(Duplicate { number: answered.duplicates_in_row, of_frame: answered.acknowledged_in });
        answered.figures.duplicate_acknowledgements += 1;
        answered.figures.triple_duplicates += u64::from(answered.duplicates_in_row == 3);
    }
    events.set(
        Events::ZERO_WINDOW,
        observation.window == 0 && ![Flags::SYN, Flags::FIN, Flags::RST].iter().any(|flag| flags.contains(*flag)),
    );
    if observation.window == 0 && answered.acknowledged == Some(acknowledged) && !flags.contains(Flags::RST) {
        answered.refuse(acknowledged);
    }
    let allowed = acknowledged.saturating_add_unsigned(observation.window);
    sent.allowed = sent.allowed.max(Some(allowed));
}

/// Whether the first block reports bytes that arrived twice (RFC 2883 §4): below what is
/// acknowledged, or inside the second block.
fn is_dsack(left: i64, right: i64, acknowledged: i64, blocks: &[(u32, u32)], answered: &Direction) -> bool {
    let inside = blocks.get(1).is_some_and(|&(outer_left, outer_right)| {
        answered.numbering.offset(outer_left) <= left && right <= answered.numbering.offset(outer_right)
    });
    left < right && (right <= acknowledged || inside)
}

/// Measures the round trips of an acknowledgement, and detects whether it shows a spurious
/// retransmission.
fn measure(segment: &Segment<'_>, covered: &Covered, answered: &mut Direction, observation: &mut Observation) {
    let now = segment.time;
    let figures = &mut answered.figures;
    figures.cumulatively_acknowledged += u64::from(covered.cumulatively);
    match covered.exact {
        Some(_) if covered.overtaken => figures.after_loss += 1,
        Some(exact) if exact.transmissions > 1 => figures.ambiguous_round_trip.sample(now.since(exact.last.time)),
        Some(exact) => {
            let sample = now.since(exact.first.time);
            observation.round_trip = Some((sample, exact.first.frame));
            answered.estimate.sample(sample);
            if let Some((sent, acknowledged)) = answered.last_pair.replace((exact.first.time, now)) {
                let apart = exact.first.time.since(sent);
                figures.paired_acknowledgements += u64::from(apart >= SHORTEST_PAIR);
                figures.bunched_acknowledgements +=
                    u64::from(apart >= SHORTEST_PAIR && now.since(acknowledged) < apart / 4);
            }
            figures.round_trip(sample, (exact.end - exact.start) as u32);
        }
        None => {}
    }
    let Some(front) = covered.front else { return };
    // A SYN may carry data, which may be acknowledged with it or not (RFC 7413 §3).
    let opens = front.start == -1 && front.transmissions == 1 && answered.syns == 1;
    if opens && observation.acknowledged.is_some_and(|acknowledged| acknowledged <= front.end) {
        figures.handshake = Some(now.since(front.first.time));
    }
    let Some(timestamps) = segment.options.timestamps else { return };
    let echo = timestamps.echo;
    let distinguishable = front.transmissions == 1 || front.first.stamp != front.last.stamp;
    let copy = match echo {
        0 => None,
        _ if !distinguishable || front.partly => None,
        _ if echo == front.first.stamp => Some(front.first),
        _ if echo == front.last.stamp => Some(front.last),
        _ => None,
    };
    if let Some(copy) = copy {
        let sample = now.since(copy.time);
        observation.echo_round_trip = Some((sample, copy.frame));
        figures.echo_round_trip.sample(sample);
    }
    if copy == Some(front.first) && front.transmissions > 1 {
        let only = covered.exact.is_some_and(|exact| exact.start == front.start);
        if let Some(sending) = &mut observation.newly_acknowledged {
            sending.first = sending.original;
            sending.last = if only { sending.original } else { sending.last };
        }
        // RFC 3522 §3.2: the echo is that of the first copy, so the first copy arrived.
        let counts = &mut answered.figures.spurious;
        let since = front.first.time;
        let verdict = answered.retransmissions.verdict(front.start, front.end, since, Detector::Timestamp, counts);
        observation.spurious = verdict.or(observation.spurious);
    }
}

/// Detects spurious retransmissions by the number of acknowledgements.
fn count_arrivals(
    segment: &Segment<'_>,
    covered: &Covered,
    acknowledged: i64,
    answered: &mut Direction,
) -> Option<Spurious> {
    if covered.unseen > 0 {
        // Segments that the capture lacks may have been answered, too.
        answered.give_up_counting();
    }
    let arrivals = answered.arrivals.as_mut()?;
    let (retransmissions, counts) = (&mut answered.retransmissions, &mut answered.figures.spurious);
    let echo = segment.options.timestamps.map_or(0, |timestamps| timestamps.echo);
    let span = (acknowledged - covered.advance, acknowledged);
    let spurious = arrivals.answered(span, echo, retransmissions, counts);
    if arrivals.is_over(acknowledged) {
        answered.arrivals = None;
    }
    spurious
}

/// F-RTO (RFC 5682 §2.1): two successive acknowledgements after a timeout advance, and the second
/// one covers data that was sent once, before the timeout. Then the retransmitted data was only
/// late.
fn forward(covered: &Covered, answered: &mut Direction, observation: &mut Observation) {
    let Some(episode) = answered.recovery.episode() else { return };
    let Some(front) = covered.front else { return };
    let late = front.transmissions == 1 && front.first.time < episode.begun;
    if episode.trigger == Trigger::Timeout && episode.advances == 1 && late {
        let (begun, counts) = (episode.begun, &mut answered.figures.spurious);
        let detector = Detector::ForwardAcknowledgement;
        let verdict = answered.retransmissions.verdict(i64::MIN, front.start, begun, detector, counts);
        observation.spurious = verdict.or(observation.spurious);
    }
}
