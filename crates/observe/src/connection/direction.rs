//! The data of one end, and its acknowledgements by the other end.

use airpath_core::Instant;
use airpath_wire::segment::Segment;
use airpath_wire::tcp::Flags;

use super::arrivals::Arrivals;
use super::full_segment::FullSegment;
use super::numbering::{Anchor, Numbering};
use crate::copies::{LastPackets, Packet, takes_numbers};
use crate::events::Events;
use crate::figures::Figures;
use crate::outstanding::{Outstanding, Placed, Transmission};
use crate::round_trip::Estimate;
use crate::spurious::Retransmissions;
use crate::trigger::Recovery;

/// The longest segment that is certainly one packet, because it fits an Ethernet frame: RFC 9293
/// §3.7.1 with an MTU of 1500.
const LONGEST_IN_ETHERNET: u32 = 1_460;

/// The data of one end, and its acknowledgements by the other end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Direction {
    pub(super) numbering: Numbering,
    pub(super) outstanding: Outstanding,
    /// Cumulatively acknowledged by the other end.
    pub(super) acknowledged: Option<i64>,
    pub(super) recovery: Recovery,
    pub(super) estimate: Estimate,
    pub(super) retransmissions: Retransmissions,
    /// State for detecting spurious retransmissions by counting acknowledgements, while that is
    /// possible.
    pub(super) arrivals: Option<Box<Arrivals>>,
    /// Whether acknowledgements cannot be counted: a segment may be several packets, the capture
    /// has holes, or the path reorders packets.
    pub(super) is_uncountable: bool,
    /// The window that this end offers, scaled, from its last segment.
    pub(super) window: Option<u64>,
    /// One past the last byte of the other end that this end's window ever allowed.
    pub(super) allowed: Option<i64>,
    /// The shift that its SYN requested.
    pub(super) shift: Option<u8>,
    /// Whether its SYN may have requested one in options that the capture has not.
    pub(super) shift_cut: bool,
    pub(super) selective_permitted: bool,
    pub(super) syns: u32,
    pub(super) reset: bool,
    /// Offset of its FIN.
    pub(super) fin: Option<i64>,
    /// The payload of its full segments.
    pub(super) full_segment: FullSegment,
    /// Its data that the other end's closed window refused, from the first byte to one past the
    /// last.
    pub(super) refused: Option<(i64, i64)>,
    /// The last probe of the closed window, from its first byte to one past its last. The other end
    /// may accept it.
    pub(super) probe: Option<(i64, i64, Transmission)>,
    /// Its last packets, which a copy repeats.
    pub(super) packets: LastPackets,
    /// Digest and time of the last segment with sequence numbers, if no segment of the other end
    /// followed it.
    pub(super) unanswered: Option<(u64, Instant)>,
    pub(super) previous: Previous,
    /// Whether any of its data was acknowledged.
    pub(super) data_acknowledged: bool,
    /// Successive duplicate acknowledgements of its data.
    pub(super) duplicates_in_row: u32,
    /// The frame that first acknowledged the current offset.
    pub(super) acknowledged_in: u64,
    /// Bytes sent since the last PSH, and whether the last segment with data had it.
    pub(super) since_push: u64,
    pub(super) pushed: bool,
    /// When the last segment that measured a round trip was sent, and when acknowledged.
    pub(super) last_pair: Option<(Instant, Instant)>,
    /// Time to live of the first packet.
    pub(super) time_to_live: Option<u8>,
    pub(super) figures: Figures,
}

/// Segments that the other end's next segment may answer.
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

    /// Whether a SYN in this direction begins another connection: it has another sequence number,
    /// and this connection is over or has its own SYN.
    pub(crate) fn restarts_with(&self, syn: &Segment<'_>, answered: &Self) -> bool {
        if self.numbering.anchor() == Anchor::None || self.numbering.offset(syn.sequence) == -1 {
            return false;
        }
        if self.is_first_answer(syn, answered) {
            return false;
        }
        let over = self.fin.is_some() || answered.fin.is_some() || self.reset || answered.reset;
        // A new connection has another initial sequence number (RFC 6528). A SYN-ACK may have
        // another one for other reasons, such as SYN cookies.
        over || (self.numbering.anchor() == Anchor::Syn && !syn.flags.contains(Flags::ACK))
    }

    /// Whether a SYN-ACK in this direction is the first answer to the SYN of this connection.
    ///
    /// Earlier segments of this direction then belong to an earlier connection, which the server
    /// still has. It acknowledges the SYN without accepting it, and the client resets the earlier
    /// connection (RFC 9293 §3.5.1, figure 9).
    pub(super) fn is_first_answer(&self, syn: &Segment<'_>, answered: &Self) -> bool {
        self.numbering.anchor() != Anchor::Syn
            && answered.numbering.anchor() == Anchor::Syn
            && syn.flags.contains(Flags::SYN | Flags::ACK)
            && answered.numbering.offset(syn.acknowledgment) == 0
    }

    /// Highest offset minus the acknowledged offset.
    pub(super) fn unacknowledged(&self) -> u64 {
        let from = self.acknowledged.unwrap_or(self.outstanding.floor());
        u64::try_from(self.outstanding.highest() - from).unwrap_or(0)
    }

    /// Bytes of it that the other end has reported as received.
    pub(super) fn delivered(&self) -> u64 {
        let selective = self.outstanding.selective_total();
        u64::try_from(self.acknowledged.unwrap_or(0) + selective).unwrap_or(0)
    }

    /// Sets the origin of its stream, if this segment determines it.
    pub(super) fn locate(&mut self, segment: &Segment<'_>) {
        if segment.flags.contains(Flags::SYN) {
            self.syns += 1;
            // A SYN with another number replaces an earlier unanswered one.
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

    /// Whether the capture was taken at the sender of this direction: its packets have made no hop,
    /// and the other end's data (`received`) is acknowledged in a tenth of the time of its own
    /// data, or less.
    pub(super) fn captured_here(&self, received: &Self) -> bool {
        let (own, other) = (self.estimate.minimum(), received.estimate.minimum());
        matches!(self.time_to_live, Some(64 | 128 | 255)) && !other.is_zero() && other < own / 10
    }

    /// Bytes sent since the last PSH, those of this segment included.
    pub(super) fn since_push(&mut self, segment: &Segment<'_>) -> u64 {
        if segment.length == 0 {
            return 0;
        }
        let before = if self.pushed { 0 } else { self.since_push };
        self.since_push = before + u64::from(segment.length);
        self.pushed = segment.flags.contains(Flags::PSH);
        self.since_push
    }

    /// The other end has closed its window after the data below `acknowledged`: it refuses the data
    /// beyond.
    pub(super) fn refuse(&mut self, acknowledged: i64) {
        let highest = self.outstanding.highest();
        if highest > acknowledged {
            self.refused = Some((acknowledged, highest));
        }
    }

    /// Whether a retransmission from `start` to before `end` repeats refused data; then this data
    /// no longer counts as refused.
    pub(super) fn was_refused(&mut self, start: i64, end: i64) -> bool {
        let Some((from, to)) = self.refused.filter(|(from, to)| start < *to && *from < end) else { return false };
        self.refused = Some((from.max(end), to)).filter(|(from, to)| from < to);
        true
    }

    /// Stops counting acknowledgements.
    pub(super) fn give_up_counting(&mut self) {
        self.is_uncountable = true;
        self.arrivals = None;
    }

    /// Adds a sent segment to [`Arrivals`].
    pub(super) fn follow_arrivals(
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
            // Counting is not needed if the receiver reports duplicates (DSACK).
            (None, Some(resent)) if !self.is_uncountable && !self.selective_permitted => {
                let duplicates = self.duplicates_in_row;
                let arrivals = Arrivals::begin(&self.outstanding, resent, stamp(segment), duplicates);
                self.arrivals = Some(Box::new(arrivals));
            }
            _ => {}
        }
    }

    /// Whether the same packet was among the last ones.
    ///
    /// Packets without identification (RFC 6864 §4.1) may be equal and yet others. They are the
    /// same if routers between two capture points have decreased the time to live: a sender's
    /// packets all have the same at one point. Otherwise only segments with sequence numbers match,
    /// and only if the copy follows so closely, with no segment of the other end between, that no
    /// sender can have retransmitted it.
    pub(super) fn same_packet(&mut self, segment: &Segment<'_>) -> bool {
        let packet = Packet::of(segment);
        let seen = self.packets.is_copy(&packet);
        if packet.is_identified() || seen {
            return seen;
        }
        let before = if takes_numbers(segment) { self.unanswered.replace(packet.seen()) } else { None };
        before.is_some_and(|before| packet.follows_at_once(before))
    }
}

/// The sender's clock in the timestamps option; 0 without the option.
pub(super) fn stamp(segment: &Segment<'_>) -> u32 {
    segment.options.timestamps.map_or(0, |timestamps| timestamps.value)
}
