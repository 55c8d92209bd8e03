//! RTCP packets (RFC 3550 §6), generic NACK (RFC 4585 §6.2.1), the limit of the rate of a stream
//! (TMMBR, RFC 5104 §4.2.1) and the state of a player's buffer (NADU, TS 26.234 §6.2.3.2).
//!
//! A datagram is a compound: the packets follow one another. The functions of [`Compound`] add
//! packets to one, and [`packets`] reads them.

use crate::error::{ParseError, leading};

const NAME: &str = "RTCP";
/// Bytes of the header that all packets have.
const HEADER: usize = 4;
/// Bytes of a report block.
const BLOCK: usize = 24;

/// The P bit of the first octet.
const PADDING: u8 = 0x20;

const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const SOURCE_DESCRIPTION: u8 = 202;
const BYE: u8 = 203;
const APPLICATION: u8 = 204;
/// Name and subtype of the packets with the state of a buffer (TS 26.234 §6.2.3.2).
const NADU: (u8, [u8; 4]) = (0, *b"PSS0");
/// Transport-layer feedback (RFC 4585 §6.2).
const TRANSPORT_FEEDBACK: u8 = 205;
const NACK: u8 = 1;
const TMMBR: u8 = 3;

/// What a sender reports of its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderInfo {
    /// The time of the report, as an NTP time stamp.
    pub ntp: u64,
    /// The same time in units of the RTP clock.
    pub timestamp: u32,
    /// Packets sent.
    pub packets: u32,
    /// Bytes of payload in them.
    pub bytes: u32,
}

/// What a receiver reports of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportBlock {
    /// The stream.
    pub ssrc: u32,
    /// Share of the packets lost since the report before, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost in all, 24 bits; negative with duplicates.
    pub lost: i32,
    /// Highest sequence number, with its cycles in the upper 16 bits.
    pub highest: u32,
    /// Inter-arrival jitter in units of the RTP clock.
    pub jitter: u32,
    /// The middle 32 bits of the time of the last sender report.
    pub last_report: u32,
    /// Time since that report arrived, in 1/65536 s.
    pub delay: u32,
}

/// The state of a player's buffer: its next application data unit (NADU, TS 26.234 §6.2.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextDataUnit {
    /// The stream.
    pub ssrc: u32,
    /// Milliseconds until the next unit is displayed; `None` with an empty buffer. Zero while the
    /// player waits for media.
    pub playout_delay_ms: Option<u16>,
    /// Sequence number of the packet with the next unit.
    pub sequence: u16,
    /// Free bytes of the buffer, in units of 64.
    pub free_blocks: u16,
}

/// A packet of a compound, as far as airpath uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A report of a sender.
    SenderReport(SenderInfo),
    /// What a sender or a receiver reports of the first stream that it receives.
    Block(ReportBlock),
    /// A participant leaves.
    Bye,
    /// Lost packets: pairs of a sequence number and a mask of those that follow it.
    Nack(Nacks<'a>),
    /// The highest rate that the receiver wants, in bits per second of packets with `overhead`
    /// bytes of headers.
    RateLimit {
        /// Bits per second.
        rate: u64,
        /// Bytes of the headers of a packet.
        overhead: u16,
    },
    /// The state of a player's buffer, for the first stream that the packet has.
    NextDataUnit(NextDataUnit),
    /// Another packet.
    Other(u8),
}

/// The lost packets of a generic NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nacks<'a>(&'a [u8]);

impl Nacks<'_> {
    /// The sequence numbers, in the order of the packet.
    pub fn sequences(self) -> impl Iterator<Item = u16> {
        self.0.chunks_exact(4).flat_map(|pair| {
            let first = u16::from_be_bytes([pair[0], pair[1]]);
            let mask = u16::from_be_bytes([pair[2], pair[3]]);
            let following = (0..16).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| first.wrapping_add(bit + 1));
            std::iter::once(first).chain(following)
        })
    }
}

/// A compound that is being written.
#[derive(Debug)]
pub struct Compound<'a>(&'a mut Vec<u8>);

impl<'a> Compound<'a> {
    /// Begins a compound in `buffer`, whose bytes are removed.
    pub fn new(buffer: &'a mut Vec<u8>) -> Self {
        buffer.clear();
        Self(buffer)
    }

    /// Adds a sender report of `ssrc` without report blocks.
    pub fn sender_report(&mut self, ssrc: u32, info: &SenderInfo) {
        self.packet(0, SENDER_REPORT, |bytes| {
            bytes.extend(ssrc.to_be_bytes());
            bytes.extend(info.ntp.to_be_bytes());
            [info.timestamp, info.packets, info.bytes].iter().for_each(|word| bytes.extend(word.to_be_bytes()));
        });
    }

    /// Adds a receiver report of `ssrc`, empty before a packet has arrived.
    pub fn receiver_report(&mut self, ssrc: u32, block: Option<&ReportBlock>) {
        self.packet(u8::from(block.is_some()), RECEIVER_REPORT, |bytes| {
            bytes.extend(ssrc.to_be_bytes());
            let Some(block) = block else { return };
            bytes.extend(block.ssrc.to_be_bytes());
            let lost = block.lost.clamp(-0x80_0000, 0x7F_FFFF) as u32 & 0xFF_FFFF;
            bytes.extend((u32::from(block.fraction_lost) << 24 | lost).to_be_bytes());
            let words = [block.highest, block.jitter, block.last_report, block.delay];
            words.iter().for_each(|word| bytes.extend(word.to_be_bytes()));
        });
    }

    /// Adds a source description with the canonical name of `ssrc`, of at most 255 bytes.
    pub fn canonical_name(&mut self, ssrc: u32, name: &str) {
        let name = &name.as_bytes()[..name.len().min(255)];
        self.packet(1, SOURCE_DESCRIPTION, |bytes| {
            bytes.extend(ssrc.to_be_bytes());
            bytes.extend([1, name.len() as u8]);
            bytes.extend(name);
            // The list ends with one to four zeros, up to the next word.
            bytes.extend([0; 4].iter().take(4 - (2 + name.len()) % 4));
        });
    }

    /// Adds a BYE of `ssrc`.
    pub fn bye(&mut self, ssrc: u32) {
        self.packet(1, BYE, |bytes| bytes.extend(ssrc.to_be_bytes()));
    }

    /// Adds a generic NACK of `ssrc` for packets of `media`, in rising order. Returns how many
    /// there was room for: it has at most `pairs` pairs of a number and a mask.
    pub fn nack(&mut self, ssrc: u32, media: u32, sequences: impl Iterator<Item = u16>, pairs: usize) -> usize {
        let mut count = 0;
        self.packet(NACK, TRANSPORT_FEEDBACK, |bytes| {
            bytes.extend(ssrc.to_be_bytes());
            bytes.extend(media.to_be_bytes());
            let mut open: Option<(u16, u16)> = None;
            let mut left = pairs;
            for sequence in sequences {
                if let Some((first, mask)) = &mut open {
                    let bit = sequence.wrapping_sub(*first).wrapping_sub(1);
                    if bit < 16 {
                        *mask |= 1 << bit;
                        count += 1;
                        continue;
                    }
                    bytes.extend(first.to_be_bytes());
                    bytes.extend(mask.to_be_bytes());
                    open = None;
                }
                if left == 0 {
                    break;
                }
                left -= 1;
                open = Some((sequence, 0));
                count += 1;
            }
            if let Some((first, mask)) = open {
                bytes.extend(first.to_be_bytes());
                bytes.extend(mask.to_be_bytes());
            }
        });
        count
    }

    /// Adds the highest rate that `ssrc` wants of `media`: at most 17 significant bits of `rate`,
    /// rounded down, and `overhead` below 512.
    pub fn rate_limit(&mut self, ssrc: u32, media: u32, rate: u64, overhead: u16) {
        let exponent = (64 - rate.leading_zeros()).saturating_sub(17);
        let mantissa = (rate >> exponent) as u32;
        self.packet(TMMBR, TRANSPORT_FEEDBACK, |bytes| {
            // The media source of the header is not used (RFC 5104 §4.2.1.2).
            [ssrc, 0, media, exponent << 26 | mantissa << 9 | u32::from(overhead & 0x1FF)]
                .iter()
                .for_each(|word| bytes.extend(word.to_be_bytes()));
        });
    }

    /// Adds the state of the buffer of `ssrc`. It follows the receiver report of the same time.
    pub fn next_data_unit(&mut self, ssrc: u32, unit: &NextDataUnit) {
        let (subtype, name) = NADU;
        self.packet(subtype, APPLICATION, |bytes| {
            bytes.extend(ssrc.to_be_bytes());
            bytes.extend(name);
            bytes.extend(unit.ssrc.to_be_bytes());
            // 16 bits are reserved or the number of the unit within the packet.
            [unit.playout_delay_ms.unwrap_or(u16::MAX), unit.sequence, 0, unit.free_blocks]
                .iter()
                .for_each(|field| bytes.extend(field.to_be_bytes()));
        });
    }

    /// Adds a packet with this count or format; `write` appends what follows its header.
    fn packet(&mut self, count: u8, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        let at = self.0.len();
        self.0.extend([2 << 6 | count, kind, 0, 0]);
        write(self.0);
        let words = ((self.0.len() - at) / 4 - 1) as u16;
        self.0[at + 2..at + 4].copy_from_slice(&words.to_be_bytes());
    }
}

/// The packets of a compound. After an error there is none.
pub fn packets(mut compound: &[u8]) -> impl Iterator<Item = Result<Packet<'_>, ParseError>> {
    let mut block = None;
    std::iter::from_fn(move || {
        if let Some(block) = block.take() {
            return Some(Ok(Packet::Block(block)));
        }
        if compound.is_empty() {
            return None;
        }
        let packet = split(compound).and_then(|(raw, rest)| {
            compound = rest;
            read(&raw, &mut block)
        });
        if packet.is_err() {
            compound = &[];
        }
        Some(packet)
    })
}

/// A packet of any type.
struct RawPacket<'a> {
    count: u8,
    kind: u8,
    /// What follows the header.
    body: &'a [u8],
}

/// The first packet of a compound without its padding, and what follows it.
fn split(compound: &[u8]) -> Result<(RawPacket<'_>, &[u8]), ParseError> {
    let [first, kind, length @ ..] = *leading::<HEADER>(NAME, compound)?;
    if first >> 6 != 2 {
        return Err(ParseError::Malformed { header: NAME, field: "version", value: (first >> 6).into() });
    }
    let needed = HEADER + 4 * usize::from(u16::from_be_bytes(length));
    match compound.split_at_checked(needed) {
        Some((packet, rest)) => {
            let body = unpadded(first & PADDING > 0, &packet[HEADER..])?;
            Ok((RawPacket { count: first & 0x1F, kind, body }, rest))
        }
        None => Err(ParseError::Truncated { header: NAME, needed, available: compound.len() }),
    }
}

/// The body without its padding, whose last octet is its length (RFC 3550 §6.4.1).
fn unpadded(is_padded: bool, body: &[u8]) -> Result<&[u8], ParseError> {
    let padding = if is_padded { body.last().copied().unwrap_or_default() } else { return Ok(body) };
    let rest = body.len().checked_sub(padding.into()).filter(|_| padding > 0);
    let malformed = ParseError::Malformed { header: NAME, field: "padding", value: padding.into() };
    rest.map(|length| &body[..length]).ok_or(malformed)
}

/// Reads a packet; its report block, if it has one beside what is returned, goes to `block`.
fn read<'a>(packet: &RawPacket<'a>, block: &mut Option<ReportBlock>) -> Result<Packet<'a>, ParseError> {
    let RawPacket { count, kind, body } = *packet;
    let word = |at: usize| body.get(at..at + 4).and_then(|bytes| bytes.first_chunk()).copied().map(u32::from_be_bytes);
    let needs = |length: usize| match body.len() < length {
        true => Err(ParseError::Truncated { header: NAME, needed: HEADER + length, available: HEADER + body.len() }),
        false => Ok(()),
    };
    let at = |at: usize| word(at).unwrap_or_default();
    let block_at = |from: usize| ReportBlock {
        ssrc: at(from),
        fraction_lost: (at(from + 4) >> 24) as u8,
        // The sign of a number of 24 bits.
        lost: (at(from + 4) << 8) as i32 >> 8,
        highest: at(from + 8),
        jitter: at(from + 12),
        last_report: at(from + 16),
        delay: at(from + 20),
    };
    match (kind, count) {
        (SENDER_REPORT, _) => {
            needs(24 + BLOCK * usize::from(count))?;
            *block = (count > 0).then(|| block_at(24));
            let ntp = u64::from(at(4)) << 32 | u64::from(at(8));
            Ok(Packet::SenderReport(SenderInfo { ntp, timestamp: at(12), packets: at(16), bytes: at(20) }))
        }
        (RECEIVER_REPORT, 0) => Ok(Packet::Other(kind)),
        (RECEIVER_REPORT, _) => {
            needs(4 + BLOCK * usize::from(count))?;
            Ok(Packet::Block(block_at(4)))
        }
        (BYE, _) => Ok(Packet::Bye),
        (APPLICATION, subtype) if subtype == NADU.0 && body.get(4..8) == Some(&NADU.1[..]) => {
            needs(20)?;
            Ok(Packet::NextDataUnit(NextDataUnit {
                ssrc: at(8),
                playout_delay_ms: Some((at(12) >> 16) as u16).filter(|delay| *delay != u16::MAX),
                sequence: at(12) as u16,
                free_blocks: at(16) as u16,
            }))
        }
        (TRANSPORT_FEEDBACK, NACK) => {
            needs(8)?;
            Ok(Packet::Nack(Nacks(&body[8..])))
        }
        (TRANSPORT_FEEDBACK, TMMBR) => {
            needs(16)?;
            let word = at(12);
            let (exponent, mantissa) = (word >> 26, u64::from(word >> 9 & 0x1_FFFF));
            // An exponent of 63 with a mantissa of 17 bits exceeds 64 bits.
            let rate = mantissa.saturating_mul(1_u64 << exponent);
            Ok(Packet::RateLimit { rate, overhead: (word & 0x1FF) as u16 })
        }
        _ => Ok(Packet::Other(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(bytes: &[u8]) -> Vec<Packet<'_>> {
        packets(bytes).collect::<Result<_, _>>().expect("a valid compound")
    }

    #[test]
    fn a_compound_reads_as_it_was_written() {
        let info = SenderInfo { ntp: 0x0102_0304_0506_0708, timestamp: 9, packets: 10, bytes: 11 };
        let block = ReportBlock {
            ssrc: 1,
            fraction_lost: 64,
            lost: -3,
            highest: 0x1_0002,
            jitter: 7,
            last_report: 0x0304_0506,
            delay: 65_536,
        };
        let mut bytes = Vec::new();
        let mut compound = Compound::new(&mut bytes);
        compound.sender_report(1, &info);
        compound.receiver_report(2, Some(&block));
        compound.canonical_name(2, "mobile@10.0.0.2");
        compound.bye(2);
        assert_eq!(bytes.len(), 28 + 32 + 28 + 8);
        let other = Packet::Other(SOURCE_DESCRIPTION);
        assert_eq!(read_all(&bytes), [Packet::SenderReport(info), Packet::Block(block), other, Packet::Bye]);
        bytes.pop();
        assert!(packets(&bytes).last().is_some_and(|last| last.is_err()));
    }

    #[test]
    fn the_state_of_a_buffer_has_the_octets_of_ts_26_234() {
        let unit = NextDataUnit { ssrc: 0x0102_0304, playout_delay_ms: Some(40), sequence: 0x0506, free_blocks: 7 };
        let mut bytes = Vec::new();
        Compound::new(&mut bytes).next_data_unit(9, &unit);
        // One source: 24 octets. The length field counts the five words after the first.
        let head = [0x80, 204, 0, 5, 0, 0, 0, 9, b'P', b'S', b'S', b'0'];
        assert_eq!(bytes[..12], head);
        assert_eq!(bytes[12..], [1, 2, 3, 4, 0, 40, 5, 6, 0, 0, 0, 7]);
        assert_eq!(read_all(&bytes), [Packet::NextDataUnit(unit)]);
        let empty = NextDataUnit { playout_delay_ms: None, ..unit };
        Compound::new(&mut bytes).next_data_unit(9, &empty);
        assert_eq!((read_all(&bytes), &bytes[16..18]), (vec![Packet::NextDataUnit(empty)], &[0xFF; 2][..]));
        bytes[8] = b'Q';
        assert_eq!(read_all(&bytes), [Packet::Other(204)], "of another application");
        (bytes[8], bytes[3]) = (b'P', 4);
        bytes.truncate(20);
        assert!(packets(&bytes).all(|packet| packet.is_err()));
    }

    #[test]
    fn padding_is_no_content() {
        let mut bytes = Vec::new();
        Compound::new(&mut bytes).nack(1, 2, [7].into_iter(), 1);
        bytes.extend([0, 0, 0, 4]);
        (bytes[0], bytes[3]) = (bytes[0] | PADDING, bytes[3] + 1);
        let [Packet::Nack(nacks)] = read_all(&bytes)[..] else { panic!("no NACK: {bytes:?}") };
        assert_eq!(nacks.sequences().collect::<Vec<_>>(), [7]);
        for padding in [0, 17] {
            *bytes.last_mut().expect("padding") = padding;
            assert!(packets(&bytes).all(|packet| packet.is_err()));
        }
    }

    #[test]
    fn rates_keep_17_bits() {
        for rate in [0, 1, 0x1_FFFF, 384_000, 10_000_000_000, u64::MAX] {
            let mut bytes = Vec::new();
            Compound::new(&mut bytes).rate_limit(1, 2, rate, 40);
            let [Packet::RateLimit { rate: read, overhead: 40 }] = read_all(&bytes)[..] else {
                panic!("no limit: {bytes:?}")
            };
            assert!(read <= rate && rate - read <= rate >> 16, "{rate} as {read}");
        }
    }

    proptest! {
        #[test]
        fn nacks_name_the_packets_that_fit(
            numbers in proptest::collection::btree_set(0..400_u16, 1..60), base: u16, pairs in 1..8_usize,
        ) {
            let sequences: Vec<u16> = numbers.iter().map(|number| base.wrapping_add(*number)).collect();
            let mut bytes = Vec::new();
            let count = Compound::new(&mut bytes).nack(1, 2, sequences.iter().copied(), pairs);
            let [Packet::Nack(nacks)] = read_all(&bytes)[..] else { panic!("no NACK: {bytes:?}") };
            prop_assert_eq!(nacks.sequences().collect::<Vec<_>>(), &sequences[..count]);
            prop_assert!(bytes.len() <= 12 + 4 * pairs && (count == sequences.len() || bytes.len() == 12 + 4 * pairs));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), head in 200..206_u8) {
            let mut bytes = bytes;
            if let [first, kind, ..] = &mut bytes[..] {
                (*first, *kind) = (*first & 0x3F | 0x80, head);
            }
            for packet in packets(&bytes) {
                if let Ok(Packet::Nack(nacks)) = packet {
                    prop_assert!(nacks.sequences().count() <= 17 * bytes.len() / 4);
                }
            }
        }
    }
}
