//! Accurate ECN feedback (AccECN, RFC 9768): the ACE field of three header bits, and the
//! [option](self::option).
//!
//! The bits AE, CWR and ECE have three meanings: an offer in a SYN, the ECN field of the other
//! end's SYN or SYN-ACK during the handshake, and after it a counter of packets with CE marks.

pub mod option;

use airpath_core::Ecn;
use airpath_wire::tcp::{Flags, TcpHeader};
use serde::{Deserialize, Serialize};

/// Initial value of both counters (§3.2.1).
const INITIAL: u64 = 5;
/// The counter in the header counts modulo this (`DIVACE`).
const MODULUS: u64 = 8;
/// Marked segments may be this much smaller than full ones (`SAFETY_FACTOR`, appendix A.2.2).
const SAFETY: u64 = 2;
/// Marked packets since the last acknowledgement that are acknowledged at once (§3.2.2.5.1).
const UNACKNOWLEDGED_MARKS: u64 = 2;
/// Where acknowledgements deliver more segments than this on average, the receiver or the path
/// thins them, and one with many segments is no sign of lost acknowledgements (`ACK_COMP_THRESH`
/// of Linux).
const THINNED: u64 = 4;

/// Which feedback of ECN a connection has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EcnMode {
    /// None.
    #[default]
    Off,
    /// ECE until CWR (RFC 3168).
    Classic,
    /// A counter (RFC 9768).
    Accurate,
}

/// The three bits of `header` as a number, AE first.
pub const fn field(header: &TcpHeader) -> u8 {
    (header.accurate_ecn as u8) << 2
        | (header.flags.contains(Flags::CWR) as u8) << 1
        | header.flags.contains(Flags::ECE) as u8
}

/// Sets the three bits of `header`.
pub fn set_field(header: &mut TcpHeader, field: u8) {
    header.accurate_ecn = field & 4 != 0;
    if field & 2 != 0 {
        header.flags |= Flags::CWR;
    }
    if field & 1 != 0 {
        header.flags |= Flags::ECE;
    }
}

/// The feedback of the ECN field of a SYN or SYN-ACK (§3.1.2 table 2, §3.2.2.1 table 3).
pub const fn handshake_field(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// The offer of a SYN.
pub const OFFER: u8 = 0b111;
/// A SYN or SYN-ACK of RFC 3168.
const CLASSIC_OFFER: u8 = 0b011;
const CLASSIC_ANSWER: u8 = 0b001;

/// The mode that a server of `own` capability chooses for a SYN (§3.1.2; §3.1.3 for combinations
/// without a meaning yet, RFC 3168 §6.1.1).
pub const fn answer(own: EcnMode, syn: u8) -> EcnMode {
    match (own, syn) {
        (EcnMode::Off, _) | (_, 0b000) => EcnMode::Off,
        (EcnMode::Accurate | EcnMode::Classic, CLASSIC_OFFER) => EcnMode::Classic,
        (EcnMode::Accurate, _) => EcnMode::Accurate,
        (EcnMode::Classic, OFFER) => EcnMode::Classic,
        (EcnMode::Classic, _) => EcnMode::Off,
    }
}

/// The mode of a client of `own` capability after the SYN-ACK (§3.1.2 table 2; §3.1.3 for the
/// combination without a meaning yet). A server that reflects the offer is broken.
pub const fn answered(own: EcnMode, syn_ack: u8) -> EcnMode {
    match (own, syn_ack) {
        (EcnMode::Off, _) | (_, 0b000 | OFFER) => EcnMode::Off,
        (_, CLASSIC_ANSWER) => EcnMode::Classic,
        (EcnMode::Accurate, _) => EcnMode::Accurate,
        (EcnMode::Classic, _) => EcnMode::Off,
    }
}

/// The receiver's counter, and when to report it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MarkCounter {
    /// Packets with CE (`r.cep`).
    packets: u64,
    /// The same in the last segment that was sent.
    reported: u64,
    last: Ecn,
}

impl Default for MarkCounter {
    fn default() -> Self {
        Self { packets: INITIAL, reported: INITIAL, last: Ecn::NotEct }
    }
}

impl MarkCounter {
    /// A packet arrived. Returns whether to acknowledge it at once: it is the first with a mark, or
    /// enough marks are not reported yet (§3.2.2.5.1).
    pub fn on_packet(&mut self, ecn: Ecn) -> bool {
        let begins = ecn == Ecn::Ce && self.last != Ecn::Ce;
        self.last = ecn;
        self.packets += u64::from(ecn == Ecn::Ce);
        begins || self.packets - self.reported >= UNACKNOWLEDGED_MARKS
    }

    /// Packets with marks so far.
    pub const fn total(&self) -> u64 {
        self.packets - INITIAL
    }

    /// The field of a segment that is sent now.
    pub const fn report(&mut self) -> u8 {
        self.reported = self.packets;
        (self.packets % MODULUS) as u8
    }
}

/// What an acknowledgement delivers.
#[derive(Clone, Copy, Debug)]
pub struct DeliveredMarks {
    /// Segments.
    pub segments: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes with marks, where options show them.
    pub marked_bytes: Option<u64>,
    /// Payload of a full segment.
    pub segment_size: u64,
    /// Whether `segments` is exact: selective acknowledgement, or no loss.
    pub counts_exactly: bool,
}

/// The sender's copy of its peer's counter.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PeerMarks {
    /// Packets with CE (`s.cep`).
    packets: u64,
    /// Average of the segments that an acknowledgement delivers, in 64ths; zero before the first.
    average: u64,
}

impl Default for PeerMarks {
    fn default() -> Self {
        Self { packets: INITIAL, average: 0 }
    }
}

impl PeerMarks {
    /// Packets with marks that the peer has reported so far.
    pub const fn total(&self) -> u64 {
        self.packets - INITIAL
    }

    /// The end of the handshake: `field` of the client's acknowledgement reports the SYN-ACK
    /// (§3.2.2.1 table 4). Returns false where it was cleared on the path, so that ECN does not
    /// work.
    pub const fn on_handshake(&mut self, field: u8) -> bool {
        if field == handshake_field(Ecn::Ce) {
            self.packets = INITIAL + 1;
        }
        field != 0
    }

    /// An acknowledgement with `field`. Returns the number of marked ones of its newly delivered
    /// segments. If the counter may have wrapped, the bytes of an option show whether (appendix
    /// A.2.2); without one, the greatest number that fits is taken (appendix A.2.1).
    pub fn on_ack(&mut self, field: u8, delivered: &DeliveredMarks) -> u64 {
        let DeliveredMarks { segments, bytes, marked_bytes, .. } = *delivered;
        let delta = (field as u64 + MODULUS - self.packets % MODULUS) % MODULUS;
        if segments > 0 {
            let sample = segments * 64;
            self.average = if self.average == 0 { sample } else { (self.average * 63 + sample) / 64 };
        }
        let marked = if segments < MODULUS {
            delta
        } else {
            let greatest = segments - (segments - delta) % MODULUS;
            match marked_bytes {
                None if self.average > THINNED * 64 => delta,
                None => greatest,
                Some(0) => delta,
                Some(marked) if segments >= 2 * MODULUS && delivered.counts_exactly => {
                    if bytes <= marked {
                        greatest
                    } else {
                        let estimate = (marked * segments).div_ceil(bytes);
                        greatest.min(delta + estimate / MODULUS * MODULUS)
                    }
                }
                Some(marked) => {
                    let fits = marked <= delta * delivered.segment_size;
                    let wrapped = marked >= greatest * delivered.segment_size / SAFETY;
                    if fits && !wrapped { delta } else { greatest }
                }
            }
        };
        self.packets += marked;
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(segments: u64) -> DeliveredMarks {
        let bytes = segments * 1000;
        DeliveredMarks { segments, bytes, marked_bytes: None, segment_size: 1000, counts_exactly: true }
    }

    #[test]
    fn marked_bytes_show_whether_the_counter_has_wrapped() {
        let marked = |field: u8, segments: u64, bytes: u64, counts_exactly: bool| {
            let option = DeliveredMarks { marked_bytes: Some(bytes), counts_exactly, ..delivered(segments) };
            PeerMarks::default().on_ack(field, &option)
        };
        // Without an option all eight are taken as marked; with one, none.
        let mut marks = PeerMarks::default();
        assert_eq!([1, 8].map(|segments| marks.on_ack(5, &delivered(segments))), [0, 8]);
        assert_eq!([0, 8000].map(|bytes| marked(5, 8, bytes, true)), [0, 8]);
        assert_eq!([1000, 4000, 9000].map(|bytes| marked(6, 9, bytes, true)), [1, 9, 9]);
        // From 16 segments on, by the share of the bytes.
        assert_eq!([2000, 10_000, 18_000, 20_000].map(|bytes| marked(7, 20, bytes, true)), [2, 10, 18, 18]);
        assert_eq!(marked(7, 20, 2000, false), 2);
        assert_eq!(marked(7, 20, 10_000, false), 18);
    }

    #[test]
    fn the_client_takes_the_mode_from_the_syn_ack() {
        // RFC 9768 table 2, for a client that offers AccECN.
        use EcnMode::{Accurate, Classic, Off};
        let modes = [Off, Classic, Accurate, Accurate, Accurate, Accurate, Accurate, Off];
        for (field, mode) in (0..).zip(modes) {
            assert_eq!(answered(Accurate, field), mode, "{field:03b}");
        }
        assert_eq!([0b000, 0b001, 0b011].map(|field| answered(Classic, field)), [Off, Classic, Off]);
        assert_eq!(answered(Off, 0b001), Off);
    }

    #[test]
    fn the_server_chooses_the_best_that_both_have() {
        use EcnMode::{Accurate, Classic, Off};
        assert_eq!([0b000, 0b011, 0b111, 0b100].map(|syn| answer(Accurate, syn)), [Off, Classic, Accurate, Accurate]);
        assert_eq!([0b000, 0b011, 0b111].map(|syn| answer(Classic, syn)), [Off, Classic, Classic]);
        assert_eq!([0b000, 0b011, 0b111].map(|syn| answer(Off, syn)), [Off; 3]);
    }

    #[test]
    fn the_handshake_reports_the_field_that_arrived() {
        // RFC 9768 table 3.
        let fields = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].map(handshake_field);
        assert_eq!(fields, [0b010, 0b011, 0b100, 0b110]);
        let mut marks = PeerMarks::default();
        assert!(marks.on_handshake(0b010) && !PeerMarks::default().on_handshake(0));
        assert_eq!(marks.on_ack(5, &delivered(1)), 0);
        let mut marks = PeerMarks::default();
        assert!(marks.on_handshake(0b110));
        assert_eq!(marks.on_ack(6, &delivered(1)), 0);
    }

    #[test]
    fn the_counter_wraps() {
        let mut marks = PeerMarks::default();
        assert_eq!(marks.on_ack(7, &delivered(2)), 2);
        assert_eq!(marks.on_ack(7, &delivered(2)), 0);
        assert_eq!(marks.on_ack(1, &delivered(2)), 2);
        // Eight segments without a change: none, or all of them; the safe number is all.
        assert_eq!(marks.on_ack(1, &delivered(8)), 8);
        assert_eq!(marks.on_ack(3, &delivered(20)), 18);
        // All acknowledgements cover many segments.
        let mut marks = PeerMarks::default();
        assert_eq!(
            [(5, 10), (6, 10), (4, 16)].map(|(field, segments)| marks.on_ack(field, &delivered(segments))),
            [0, 1, 6]
        );
    }

    #[test]
    fn a_first_mark_and_each_second_one_is_reported_at_once() {
        let mut counter = MarkCounter::default();
        let arrivals = [Ecn::Ect1, Ecn::Ce, Ecn::Ect1, Ecn::Ce, Ecn::Ce];
        assert_eq!(arrivals.map(|ecn| counter.on_packet(ecn)), [false, true, false, true, true]);
        assert_eq!(counter.report(), 0);
        assert!(!counter.on_packet(Ecn::Ce), "it continues a run of marks, and one is not reported");
        assert!(counter.on_packet(Ecn::Ce));
        assert_eq!(counter.report(), 2);
    }

    #[test]
    fn the_field_is_in_three_bits() {
        for number in 0..8 {
            let mut header = TcpHeader::default();
            set_field(&mut header, number);
            assert_eq!(field(&header), number);
        }
    }
}
