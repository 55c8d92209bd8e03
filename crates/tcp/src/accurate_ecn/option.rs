//! The AccECN option (RFC 9768 §3.2.3): counters of payload bytes by the ECN field of their
//! packets. Choices that the RFC leaves are those of Linux (`tcp_ecn.h`). One is a departure of
//! both: an end that has received no option sends none, where §3.2.3.2.3 recommends to continue.

use airpath_core::{Ecn, Instant, Span};
use airpath_wire::tcp::EcnCounters;
use serde::{Deserialize, Serialize};

use crate::sequence::Sequence;

/// When a receiver sends the AccECN option, as `tcp_ecn_option` of Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EcnOption {
    /// Never: 0 in Linux.
    Never,
    /// After a change of the ECN field and after marks, and as often as
    /// [`Config::ecn_option_beacon`](crate::Config::ecn_option_beacon) sets: 1.
    Minimum,
    /// In each segment with room for it, until a path seems to drop segments with it: 2.
    #[default]
    Full,
    /// In each segment with room for it: 3.
    Persist,
}

/// Number of counters.
const COUNTERS: usize = EcnCounters::MAX;
/// Initial values of the counters in the order of [`EcnCounters`] with ECT(1) first: those of
/// ECT(1) and ECT(0) are not zero, so that a middlebox that clears them is detected (§3.2.1).
const INITIAL: [u64; COUNTERS] = [1, 0, 1];
/// The counter of CE.
const CE: usize = 1;
/// Counters in the option have 24 bits.
const MASK: u64 = 0xff_ffff;
/// A counter that has grown by this many bytes since the last option is reported (§3.2.3.3).
const LONGEST_GROWTH: u64 = 1 << 22;
/// Bytes sent without an option of the peer, after which its counters may have wrapped.
const TOO_LATE: u64 = (1 << 23) - 1;
/// Segments with the option after a change (`accecn_opt_demand` of Linux): one could be lost.
const DEMAND: u8 = 2;

/// The counter of an ECN field, in an option with ECT(1) first.
const fn index(ecn: Ecn) -> Option<usize> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect1 => Some(0),
        Ecn::Ce => Some(CE),
        Ecn::Ect0 => Some(2),
    }
}

/// The receiver's counters, and when to send them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ByteCounters {
    /// Payload bytes that arrived.
    bytes: [u64; COUNTERS],
    /// The counters up to this number have changed since the last option.
    changed: u8,
    /// Segments that shall have the option.
    demand: u8,
    /// The ECN field of the last packet.
    last: Ecn,
    /// Time of the last option.
    sent: Instant,
    /// Start of the duplicate that the last acknowledgement with an option reported.
    duplicate: Option<Sequence>,
    /// The path seems to drop segments with the option.
    blocked: bool,
}

impl Default for ByteCounters {
    fn default() -> Self {
        Self {
            bytes: [0; COUNTERS],
            changed: 0,
            demand: 0,
            last: Ecn::NotEct,
            sent: Instant::ZERO,
            duplicate: None,
            blocked: false,
        }
    }
}

impl ByteCounters {
    /// The peer's SYN arrived with this ECN field.
    pub const fn begin(&mut self, ecn: Ecn) {
        self.last = ecn;
        self.demand = DEMAND;
    }

    /// A packet with payload arrived. Returns whether its counter is another one than that of the
    /// packet before: then an acknowledgement is sent at once, as in Linux. §3.2.3.3 requires the
    /// option in the next scheduled one only.
    pub fn on_packet(&mut self, ecn: Ecn, length: u32) -> bool {
        let changes = ecn != self.last;
        self.last = ecn;
        if changes || ecn == Ecn::Ce {
            self.demand = DEMAND;
        }
        if let Some(field) = index(ecn) {
            let before = self.bytes[field];
            self.bytes[field] += u64::from(length);
            self.changed = self.changed.max(field as u8 + 1);
            if before / LONGEST_GROWTH != self.bytes[field] / LONGEST_GROWTH {
                self.demand = self.demand.max(1);
            }
        }
        changes
    }

    /// A segment with nothing new arrived again, from `start` on: where the acknowledgement that
    /// reported it had the option, the path may have dropped it for that (§3.2.3.2.2).
    pub fn on_duplicate(&mut self, start: Sequence) {
        self.blocked |= self.duplicate == Some(start);
    }

    /// The bytes that arrived with ECT(1), CE and ECT(0).
    pub const fn totals(&self) -> [u64; COUNTERS] {
        self.bytes
    }

    /// Whether a segment that is sent now shall have the option. Fewer than `beacon` options in a
    /// round trip are too few.
    pub fn is_due(&self, now: Instant, policy: EcnOption, beacon: u32, round_trip: Option<Span>) -> bool {
        let rare =
            || beacon > 0 && round_trip.is_none_or(|round_trip| now.since(self.sent) * u64::from(beacon) >= round_trip);
        match policy {
            EcnOption::Never => false,
            EcnOption::Minimum => !self.blocked && (self.demand > 0 || rare()),
            EcnOption::Full => !self.blocked,
            EcnOption::Persist => true,
        }
    }

    /// The counters that an option must have: those up to the last that has changed (§3.2.3.3).
    pub const fn required(&self) -> usize {
        self.changed as usize
    }

    /// The option with the first `fields` counters.
    pub fn option(&self, fields: usize) -> EcnCounters {
        let mut counters = EcnCounters::new(true);
        for (bytes, initial) in self.bytes.iter().zip(INITIAL).take(fields) {
            counters.push(((bytes + initial) & MASK) as u32);
        }
        counters
    }

    /// A segment with the option is sent; its acknowledgement reports a duplicate from `duplicate`
    /// on.
    pub const fn on_sent(&mut self, now: Instant, duplicate: Option<Sequence>) {
        self.changed = 0;
        self.demand = self.demand.saturating_sub(1);
        self.sent = now;
        self.duplicate = duplicate;
    }

    /// A segment without the option is sent.
    pub const fn on_omitted(&mut self) {
        self.duplicate = None;
    }
}

/// Whether the peer's options arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Seen {
    /// None has arrived yet.
    #[default]
    No,
    /// One without counters has.
    Empty,
    /// One with counters has.
    Counters,
    /// Options are not used: the first was cleared on the path, or came too late.
    Unusable,
}

/// The sender's copy of its peer's counters.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PeerBytes {
    /// Payload bytes that the peer has received.
    bytes: [u64; COUNTERS],
    seen: Seen,
    /// The only counter that has grown lately: acknowledgements without an option add to it.
    growing: Option<u8>,
}

impl PeerBytes {
    /// Whether an option has arrived. As in Linux, an end that has seen none sends none.
    pub fn is_seen(&self) -> bool {
        self.seen != Seen::No
    }

    /// The bytes that arrived with ECT(1), CE and ECT(0), as the peer has reported.
    pub const fn totals(&self) -> [u64; COUNTERS] {
        self.bytes
    }

    /// The first options: initial values of zero were cleared on the path (§3.2.3.2.4).
    pub fn on_first(&mut self, option: &EcnCounters) {
        if matches!(self.seen, Seen::Counters | Seen::Unusable) {
            return;
        }
        let cleared = |at: usize| option.iter().nth(at) == Some(0);
        self.seen = if option.iter().len() == 0 {
            Seen::Empty
        } else if cleared(0) || cleared(2) {
            Seen::Unusable
        } else {
            Seen::Counters
        };
    }

    /// An acknowledgement that delivers `bytes`, after `sent` bytes were sent. Returns the newly
    /// marked bytes, if the counters show them without doubt.
    pub fn on_ack(&mut self, option: Option<&EcnCounters>, bytes: u64, sent: u64) -> Option<u64> {
        let Some(option) = option else { return self.without_option(bytes, sent) };
        self.on_first(option);
        if self.seen == Seen::Unusable {
            return None;
        }
        let marked = self.bytes[CE];
        let (mut certain, mut ambiguous) = (self.growing.is_some(), false);
        let (known, mut grown) = (self.growing, None);
        for (at, value) in option.iter().enumerate() {
            let field = if option.ect1_first() { at } else { COUNTERS - 1 - at };
            let growth = difference(value, self.bytes[field] + INITIAL[field]);
            self.bytes[field] = self.bytes[field].saturating_add_signed(growth);
            if growth == 0 {
                continue;
            }
            let other = known != Some(field as u8);
            if growth < 0 || other && grown.is_some() {
                (certain, ambiguous) = (false, true);
            } else if other {
                grown = Some(field as u8);
            }
        }
        self.growing = if ambiguous { None } else { grown.or(self.growing) };
        certain.then(|| self.bytes[CE].saturating_sub(marked))
    }

    /// An acknowledgement has no option: there was no room, or the path has removed it.
    const fn without_option(&mut self, bytes: u64, sent: u64) -> Option<u64> {
        match (self.seen, self.growing) {
            (Seen::No, _) => {
                if sent >= TOO_LATE {
                    self.seen = Seen::Unusable;
                }
                None
            }
            (Seen::Unusable, _) | (_, None) => None,
            (_, Some(field)) => {
                self.bytes[field as usize] += bytes;
                Some(if field as usize == CE { bytes } else { 0 })
            }
        }
    }
}

/// How much a counter of 24 bits, now `value`, is above `before`; negative where it is below.
const fn difference(value: u32, before: u64) -> i64 {
    let modulo = (value as u64).wrapping_sub(before) & MASK;
    if modulo > MASK / 2 { modulo as i64 - (MASK as i64 + 1) } else { modulo as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(ect1_first: bool, values: &[u32]) -> EcnCounters {
        let mut counters = EcnCounters::new(ect1_first);
        values.iter().for_each(|value| counters.push(*value));
        counters
    }

    #[test]
    fn both_orders_have_the_same_counters() {
        let mut peer = PeerBytes::default();
        peer.on_ack(Some(&option(true, &[1001, 30, 2])), 1031, 0);
        assert_eq!(peer.totals(), [1000, 30, 1]);
        peer.on_ack(Some(&option(false, &[5, 40, 1001])), 14, 0);
        assert_eq!(peer.totals(), [1000, 40, 4]);
        // A shorter option has the first counters of its order.
        peer.on_ack(Some(&option(false, &[10])), 5, 0);
        assert_eq!(peer.totals(), [1000, 40, 9]);
        peer.on_ack(Some(&option(true, &[])), 5, 0);
        assert_eq!(peer.totals(), [1000, 40, 9]);
    }

    #[test]
    fn counters_wrap_and_go_back() {
        assert_eq!(difference(3, 0xff_fffe), 5);
        assert_eq!(difference(0xff_fffe, 0x100_0003), -5);
        let mut peer = PeerBytes::default();
        for step in 1..=100 {
            peer.on_ack(Some(&option(true, &[(1 + step * 1_000_000) & 0xff_ffff])), 1_000_000, 0);
        }
        assert_eq!(peer.totals()[0], 100_000_000);
    }

    #[test]
    fn cleared_counters_are_not_used() {
        for (values, used) in [(&[0, 0, 1][..], false), (&[1, 0, 0], false), (&[0], false), (&[1], true)] {
            let mut peer = PeerBytes::default();
            peer.on_first(&option(false, values));
            assert!(peer.is_seen());
            peer.on_ack(Some(&option(false, &[501])), 500, 0);
            assert_eq!(peer.totals()[2] > 0, used, "{values:?}");
        }
        // Later a counter may wrap to zero.
        let mut peer = PeerBytes::default();
        peer.on_first(&option(true, &[1, 0, 1]));
        peer.on_ack(Some(&option(true, &[1, 0, 0])), 0, 0);
        assert_eq!(peer.seen, Seen::Counters);
    }

    #[test]
    fn marked_bytes_are_certain_while_one_counter_grows() {
        let mut peer = PeerBytes::default();
        assert_eq!(peer.on_ack(Some(&option(true, &[1001, 0, 1])), 1000, 0), None, "the first to grow");
        assert_eq!(peer.on_ack(Some(&option(true, &[2001, 0, 1])), 1000, 0), Some(0));
        assert_eq!(peer.on_ack(None, 1000, 0), Some(0), "it is taken to grow");
        assert_eq!(peer.on_ack(Some(&option(true, &[4001, 500, 1])), 1500, 0), Some(500));
        assert_eq!(peer.totals(), [4000, 500, 0]);
        // Two counters beside the one that is known.
        assert_eq!(peer.on_ack(Some(&option(true, &[5001, 900, 50])), 1449, 0), None);
        assert_eq!(peer.on_ack(None, 1000, 0), None);
    }

    #[test]
    fn options_that_come_too_late_are_not_used() {
        let mut peer = PeerBytes::default();
        peer.on_ack(None, 1000, TOO_LATE);
        peer.on_ack(Some(&option(true, &[1001, 0, 1])), 1000, TOO_LATE);
        assert_eq!(peer.totals(), [0; 3]);
    }

    #[test]
    fn an_option_has_the_counters_that_changed() {
        let mut counters = ByteCounters::default();
        counters.begin(Ecn::Ect1);
        let option = |counters: &ByteCounters, fields| counters.option(fields).iter().collect::<Vec<_>>();
        assert_eq!((counters.required(), option(&counters, 3)), (0, vec![1, 0, 1]));
        assert!(!counters.on_packet(Ecn::Ect1, 1000));
        assert_eq!(counters.required(), 1);
        assert!(counters.on_packet(Ecn::Ce, 500) && counters.on_packet(Ecn::Ect0, 30));
        assert_eq!((counters.required(), option(&counters, 3)), (3, vec![1001, 500, 31]));
        assert_eq!(option(&counters, 2), [1001, 500]);
        counters.on_sent(Instant::ZERO, None);
        assert_eq!(counters.required(), 0);
    }

    #[test]
    fn the_least_number_of_options_is_sent_after_changes_and_three_times_a_round_trip() {
        let (round_trip, later) = (Some(Span::from_millis(30)), |ms| Instant::ZERO + Span::from_millis(ms));
        let mut counters = ByteCounters::default();
        let due = |counters: &ByteCounters, ms| counters.is_due(later(ms), EcnOption::Minimum, 3, round_trip);
        counters.begin(Ecn::Ect1);
        for _ in 0..DEMAND {
            assert!(due(&counters, 0));
            counters.on_sent(later(0), None);
        }
        counters.on_packet(Ecn::Ect1, 1000);
        assert!(!due(&counters, 9) && due(&counters, 10));
        counters.on_packet(Ecn::Ce, 1000);
        assert!(due(&counters, 1));
        assert!(!counters.is_due(later(99), EcnOption::Never, 3, round_trip));
        // Without the frequency, only changes and each 4 MiB.
        let mut counters = ByteCounters::default();
        counters.on_packet(Ecn::NotEct, 1);
        assert!(!counters.is_due(later(99), EcnOption::Minimum, 0, round_trip));
        counters.on_packet(Ecn::Ect0, 1);
        (0..DEMAND).for_each(|_| counters.on_sent(later(0), None));
        counters.on_packet(Ecn::Ect0, 1 << 22);
        assert!(counters.is_due(later(99), EcnOption::Minimum, 0, round_trip));
    }

    #[test]
    fn a_duplicate_after_its_report_with_an_option_ends_options() {
        let mut counters = ByteCounters::default();
        let due = |counters: &ByteCounters, policy| counters.is_due(Instant::ZERO, policy, 3, None);
        counters.on_duplicate(1);
        counters.on_sent(Instant::ZERO, Some(1));
        counters.on_duplicate(1001);
        assert!(due(&counters, EcnOption::Full));
        counters.on_duplicate(1);
        assert!(!due(&counters, EcnOption::Full) && !due(&counters, EcnOption::Minimum));
        assert!(due(&counters, EcnOption::Persist));
    }
}
