//! What one end sends, and how the other end acknowledges it.

use airpath_core::{Instant, Span};
use airpath_wire::segment::Segment;
use airpath_wire::tcp::Flags;

use super::arrivals::Arrivals;
use super::numbering::{Anchor, Numbering};
use crate::events::Events;
use crate::figures::Figures;
use crate::outstanding::{Outstanding, Placed};
use crate::round_trip::Estimate;
use crate::spurious::Retransmissions;
use crate::trigger::Recovery;

/// The longest segment that fits a frame of Ethernet, and is surely one packet: RFC 9293 §3.7.1
/// with an MTU of 1500.
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
    /// They cannot be counted: a segment may be several packets, the capture has holes, or the path
    /// does not keep the order.
    pub(super) is_uncountable: bool,
    /// The window that this end offers, as scaled in its last segment.
    pub(super) window: Option<u64>,
    /// One past the last byte of the other end that this one's window ever allowed.
    pub(super) allowed: Option<i64>,
    /// The shift that its SYN asked for.
    pub(super) shift: Option<u8>,
    pub(super) selective_permitted: bool,
    pub(super) syns: u32,
    pub(super) reset: bool,
    /// Offset of its FIN.
    pub(super) fin: Option<i64>,
    /// Marks of its last packets, of identification and TCP's numbers; 0 where there is none.
    pub(super) packets: [u64; DUPLICATES_WITHIN],
    pub(super) next_packet: u8,
    /// The last segment with sequence numbers, if nothing of the other end followed it: its mark,
    /// and when it passed.
    pub(super) unanswered: Option<(u64, Instant)>,
    pub(super) previous: Previous,
    /// Whether any of its data was acknowledged.
    pub(super) data_acknowledged: bool,
    /// Duplicate acknowledgements for it, one after the other.
    pub(super) duplicates_in_row: u32,
    /// The frame that acknowledged as much first.
    pub(super) acknowledged_in: u64,
    /// Bytes sent since the last PSH, and whether the last segment with data had it.
    pub(super) since_push: u64,
    pub(super) pushed: bool,
    /// When the last segment that measured a round trip was sent, and when acknowledged.
    pub(super) last_pair: Option<(Instant, Instant)>,
    /// Hops that the first packet could still make.
    pub(super) time_to_live: Option<u8>,
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

    /// Whether a SYN in this direction begins another connection: it has another sequence number,
    /// and this connection is over or has its own SYN.
    pub(crate) fn restarts_with(&self, syn: &Segment<'_>, answered: &Self) -> bool {
        if self.numbering.anchor() == Anchor::None || self.numbering.offset(syn.sequence) == -1 {
            return false;
        }
        let over = self.fin.is_some() || answered.fin.is_some() || self.reset || answered.reset;
        // Who opens anew chooses another number (RFC 6528); one who only answers may do so for
        // other reasons, such as SYN cookies.
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
    pub(super) fn locate(&mut self, segment: &Segment<'_>) {
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

    /// Whether the capture was taken at the end that sends this direction: its packets have made no
    /// hop yet, and what the other end sends (`received`) is acknowledged in a tenth of the time
    /// that its own data takes, or less.
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

    /// Gives up counting what acknowledgements answer.
    pub(super) fn give_up_counting(&mut self) {
        self.is_uncountable = true;
        self.arrivals = None;
    }

    /// Notes for [`Arrivals`] what was sent.
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
            // Where the receiver reports what it got twice, nothing need be counted.
            (None, Some(resent)) if !self.is_uncountable && !self.selective_permitted => {
                let duplicates = self.duplicates_in_row;
                let arrivals = Arrivals::begin(&self.outstanding, resent, stamp(segment), duplicates);
                self.arrivals = Some(Box::new(arrivals));
            }
            _ => {}
        }
    }

    /// Whether the same packet was among the last ones. Of packets without identification (RFC 6864
    /// §4.1) only one with sequence numbers is, which follows its like so closely, with nothing
    /// heard in between, that no sender can have sent it again.
    pub(super) fn same_packet(&mut self, segment: &Segment<'_>) -> bool {
        let identification = segment.identification.unwrap_or(0);
        // All that a packet of TCP has which differs from one to the next; odd multipliers keep the
        // parts apart.
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

/// The sender's clock in the timestamps option; 0 without the option.
pub(super) fn stamp(segment: &Segment<'_>) -> u32 {
    segment.options.timestamps.map_or(0, |timestamps| timestamps.value)
}
