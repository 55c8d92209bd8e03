//! The context of one flow at the decompressor.

use std::time::Duration;

use super::packets::Fields;
use crate::crc::Crc;
use crate::error::DecompressError;
use crate::framework::Mode;
use crate::header::Header;
use crate::ip_id::IdBehavior;
use crate::lsb::{Shift, Width, decode};
use crate::profile::Profile;
use crate::reader::Reader;
use crate::validity::Validity;

/// Headers that have to be decompressed after a repair until it counts as successful; only the last
/// of them is delivered (RFC 3095 §5.3.2.2.5).
const CONFIRMATIONS: u32 = 3;

/// The context.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// What the last packet has established: ref 0.
    last: Reference,
    /// What the one before it has: ref −1.
    before: Option<Reference>,
    pub(super) validity: Validity,
    /// Updates in a row, the last packet included; 0 if it was none.
    updates: u32,
    /// Headers that still have to confirm a repair.
    unconfirmed: u32,
    clock: Clock,
}

/// When packets come (RFC 3095 §5.3.2.2.4).
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// The arrival of the last packet that was restored.
    arrival: Option<Duration>,
    /// Mean time from one packet of the flow to the next; zero if it is unknown.
    spacing: Duration,
}

impl Clock {
    /// A packet was restored, `step` sequence numbers after the last one.
    fn observe(&mut self, now: Duration, step: u16) {
        if let Some(arrival) = self.arrival
            && (1..u16::MAX / 2).contains(&step)
        {
            let spacing = now.saturating_sub(arrival) / u32::from(step);
            self.spacing = if self.spacing.is_zero() { spacing } else { (7 * self.spacing + spacing) / 8 };
        }
        self.arrival = Some(now);
    }

    /// The packets that the sender may have sent since the last one that was restored.
    fn packets_until(&self, now: Duration) -> u32 {
        let Some(arrival) = self.arrival.filter(|_| !self.spacing.is_zero()) else { return 0 };
        let interval = now.saturating_sub(arrival).as_nanos() + self.spacing.as_nanos() / 2;
        u32::try_from(interval / self.spacing.as_nanos()).unwrap_or(u32::MAX)
    }
}

/// A header that was decompressed, and what packets after it refer to.
#[derive(Clone, Copy, Debug)]
struct Reference {
    header: Header,
    sequence: u16,
    stride: u32,
    id: IdBehavior,
    id_offset: u16,
    /// Whether packets carry a UDP checksum.
    has_checksum: bool,
    /// The mode of the packets that come (D_MODE of RFC 3095 §5.6.1).
    mode: Mode,
}

/// A packet that was restored.
enum Restored {
    /// It has a CRC, and becomes the reference.
    Update(Reference),
    /// It updates nothing.
    Other(Header),
}

impl Context {
    pub(super) fn new(profile: Profile) -> Self {
        let last = Reference {
            header: Header::empty(profile, 4),
            sequence: 0,
            stride: 0,
            id: IdBehavior::Sequential,
            id_offset: 0,
            has_checksum: false,
            mode: Mode::Unidirectional,
        };
        Self { last, before: None, validity: Validity::default(), updates: 0, unconfirmed: 0, clock: Clock::default() }
    }

    pub(super) const fn profile(&self) -> Profile {
        self.last.header.profile
    }

    /// The sequence number of the last update.
    pub(super) const fn sequence(&self) -> u16 {
        self.last.sequence
    }

    /// Whether a decompressor in reliable mode acknowledges the last packet (RFC 3095 §5.5.2.2):
    /// the first two updates in a row, and then one in four, as "Sparse ACK" allows. Until the
    /// transition to this mode has ended, it acknowledges each packet (§5.6.1).
    pub(super) const fn is_acknowledged(&self) -> bool {
        !matches!(self.last.mode, Mode::Reliable)
            || matches!(self.updates, 1 | 2)
            || self.updates > 0 && self.updates.is_multiple_of(4)
    }

    /// The static chain.
    pub(super) fn read_static(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        self.last.read_static(reader)?;
        self.validity.receive_static();
        self.clock = Clock::default();
        Ok(())
    }

    /// The dynamic chain.
    pub(super) fn read_dynamic(&mut self, now: Duration, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let last = self.last.sequence;
        self.last.read_dynamic(reader)?;
        self.clock.observe(now, self.last.sequence.wrapping_sub(last));
        self.validity.receive_dynamic();
        (self.before, self.unconfirmed) = (None, 0);
        self.updates += 1;
        Ok(())
    }

    /// Completes the header of an IR or IR-DYN packet, and appends it.
    pub(super) fn finish(&mut self, payload: usize, out: &mut Vec<u8>) -> Result<(), DecompressError> {
        self.last.complete(payload)?;
        out.extend_from_slice(self.last.header.as_bytes());
        Ok(())
    }

    /// A compressed packet.
    pub(super) fn receive(
        &mut self,
        now: Duration,
        length: usize,
        cid: u16,
        first: u8,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        self.validity.require_static(cid)?;
        let start = *reader;
        let packet = Packet { has_dynamic: self.validity.has_dynamic, length, first };
        let restored = match self.last.decompress(packet, Wraps::None, reader) {
            Err(DecompressError::Crc) if self.last.mode != Mode::Reliable && self.unconfirmed == 0 => {
                *reader = start;
                self.repair(now, packet, reader)
            }
            result => result.inspect(|_| self.unconfirmed = self.unconfirmed.saturating_sub(1)),
        };
        match restored {
            Ok(Restored::Other(header)) => {
                self.updates = 0;
                out.extend_from_slice(header.as_bytes());
                return Ok(reader.position());
            }
            Ok(Restored::Update(next)) => {
                self.validity.count(false);
                self.validity.has_dynamic = true;
                self.clock.observe(now, next.sequence.wrapping_sub(self.last.sequence));
                self.updates += 1;
                if self.unconfirmed < CONFIRMATIONS {
                    self.before = Some(self.last);
                }
                self.last = next;
            }
            Err(error) => {
                if error != DecompressError::Repair {
                    self.validity.count(true);
                    self.unconfirmed = 0;
                }
                return Err(error);
            }
        }
        if self.unconfirmed > 1 {
            return Err(DecompressError::Unconfirmed);
        }
        self.unconfirmed = 0;
        out.extend_from_slice(self.last.header.as_bytes());
        Ok(reader.position())
    }

    /// The CRC does not match: more packets may have been lost than the sequence number covers
    /// (RFC 3095 §5.3.2.2.4), or an earlier packet with a matching CRC may have been restored
    /// wrongly (§5.3.2.2.5).
    fn repair(&mut self, now: Duration, packet: Packet, reader: &mut Reader<'_>) -> Result<Restored, DecompressError> {
        let start = *reader;
        let wrapped = self.last.decompress(packet, Wraps::Until(self.clock.packets_until(now)), reader);
        if wrapped.is_ok() {
            self.unconfirmed = CONFIRMATIONS;
            return wrapped;
        }
        *reader = start;
        let before = self.before.ok_or(DecompressError::Crc)?;
        let restored = before.decompress(packet, Wraps::None, reader)?;
        if let Restored::Update(next) = &restored {
            // With the same number the attempt is the same. One between the references belongs to
            // a packet that was overtaken: there is nothing to repair.
            let (step, known) = (next.sequence.wrapping_sub(before.sequence), self.last.sequence);
            if step <= known.wrapping_sub(before.sequence) {
                return Err(if next.sequence == known { DecompressError::Crc } else { DecompressError::Late });
            }
        }
        self.unconfirmed = CONFIRMATIONS;
        Ok(restored)
    }
}

/// A compressed packet.
#[derive(Clone, Copy)]
struct Packet {
    /// Whether the dynamic part of the context is valid.
    has_dynamic: bool,
    length: usize,
    first: u8,
}

/// How often the bits of the sequence number have wrapped since the reference.
#[derive(Clone, Copy)]
enum Wraps {
    /// As often as their interval has it.
    None,
    /// So that the step is nearest to this number of packets; at least once more.
    Until(u32),
}

impl Reference {
    /// The static chain.
    fn read_static(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let profile = self.header.profile;
        let first = reader.octet()?;
        self.header = Header::empty(profile, first >> 4);
        match first >> 4 {
            4 => {
                self.header.set_protocol(reader.octet()?);
                self.header.set_addresses(reader.take(8)?);
            }
            6 => {
                let label = reader.take(2)?;
                self.header.set_flow_label(&[first & 0x0f, label[0], label[1]]);
                self.header.set_protocol(reader.octet()?);
                self.header.set_addresses(reader.take(32)?);
            }
            _ => return Err(DecompressError::Unsupported { feature: "a version of IP other than 4 and 6" }),
        }
        if !self.header.ends_chain() {
            return Err(DecompressError::Unsupported { feature: "a chain of IP or extension headers" });
        }
        if profile != Profile::Ip {
            self.header.set_ports(reader.take(4)?);
        }
        if profile == Profile::Rtp {
            self.header.set_ssrc(reader.take(4)?);
        }
        // Without RTP an IR packet has no mode: both ends begin again.
        (self.stride, self.mode) = (0, Mode::Unidirectional);
        Ok(())
    }

    /// The dynamic chain.
    fn read_dynamic(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        self.header.set_tos(reader.octet()?);
        self.header.set_ttl(reader.octet()?);
        if self.header.is_v4() {
            self.header.set_id(reader.word()?);
            let flags = reader.octet()?;
            self.header.set_dont_fragment(flags & 0x80 != 0);
            self.id = IdBehavior::from_flags(flags);
        }
        read_empty_list(reader, "a list of extension headers")?;
        let profile = self.header.profile;
        if profile != Profile::Ip {
            let checksum = reader.word()?;
            self.header.set_udp_checksum(checksum);
            self.has_checksum = checksum != 0;
        }
        if profile == Profile::Rtp {
            self.read_rtp(reader)?;
            self.sequence = self.header.sequence();
        } else {
            self.sequence = reader.word()?;
        }
        self.id_offset = self.id.offset(self.header.id(), self.sequence);
        Ok(())
    }

    fn read_rtp(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let flags = reader.octet()?;
        let marked = reader.octet()?;
        self.header.set_sequence(reader.word()?);
        let timestamp = reader.take(4)?.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
        self.header.set_timestamp(timestamp);
        self.header.set_payload_type(marked & 0x7f);
        self.header.set_marker(marked & 0x80 != 0);
        if flags & 0x0f != 0 {
            return Err(DecompressError::Unsupported { feature: "a list of contributing sources" });
        }
        read_empty_list(reader, "a list of contributing sources")?;
        let mut extension = self.header.rtp_flags() & 0x10;
        if flags & 0x10 != 0 {
            let more = reader.octet()?;
            extension = more & 0x10;
            self.mode = Mode::of(more >> 2 & 0x03).unwrap_or(self.mode);
            if more & 0x01 != 0 {
                self.stride = reader.sdvl()?.0;
            }
            if more & 0x02 != 0 {
                // TIME_STRIDE matters only to a decompressor that has offered a clock.
                reader.sdvl()?;
            }
        }
        self.header.set_rtp_flags(flags & 0xe0 | extension);
        Ok(())
    }

    /// Completes the header by the length of the payload.
    fn complete(&mut self, payload: usize) -> Result<(), DecompressError> {
        let length = self.header.length() + payload;
        if length > usize::from(u16::MAX) {
            return Err(DecompressError::Unsupported { feature: "a packet of more than 65535 bytes" });
        }
        self.header.infer(length);
        Ok(())
    }

    /// Restores the header of a compressed packet that refers to this one.
    fn decompress(&self, packet: Packet, wraps: Wraps, reader: &mut Reader<'_>) -> Result<Restored, DecompressError> {
        let Packet { has_dynamic, length, first } = packet;
        let fields = Fields::read(&self.header, self.id, self.mode, first, reader)?;
        if !has_dynamic && fields.crc.is_none_or(|(crc, _)| crc == Crc::Three) {
            return Err(DecompressError::Repair);
        }
        let mut next = *self;
        let sequence = self.sequence(&fields, wraps).ok_or(DecompressError::Crc)?;
        next.apply(&fields, sequence);
        if next.header.is_v4() && next.id == IdBehavior::Random {
            next.header.set_id(reader.word()?);
        }
        if next.has_checksum {
            next.header.set_udp_checksum(reader.word()?);
        }
        next.complete(length - reader.position())?;
        let Some((crc, value)) = fields.crc else { return Ok(Restored::Other(next.header)) };
        if next.header.crc(crc) != value {
            return Err(DecompressError::Crc);
        }
        next.mode = fields.mode.unwrap_or(self.mode);
        Ok(Restored::Update(next))
    }

    /// The sequence number of a packet; `None` if it has not wrapped once more.
    fn sequence(&self, fields: &Fields, wraps: Wraps) -> Option<u16> {
        let shift = if self.header.profile == Profile::Rtp { Shift::RtpSequence } else { Shift::Counted };
        let (bits, count) = fields.sequence;
        let sequence = decode(u32::from(self.sequence), bits, count, shift, Width::Sixteen) as u16;
        let Wraps::Until(packets) = wraps else { return Some(sequence) };
        let step = u32::from(sequence.wrapping_sub(self.sequence));
        let wraps = (packets.checked_sub(step)? + (1 << count >> 1)) >> count;
        (1..1 << 16 >> count).contains(&wraps).then(|| sequence.wrapping_add((wraps << count) as u16))
    }

    /// Derives the header from what was received of it.
    fn apply(&mut self, fields: &Fields, sequence: u16) {
        let is_rtp = self.header.profile == Profile::Rtp;
        let last_sequence = std::mem::replace(&mut self.sequence, sequence);
        let step = sequence.wrapping_sub(last_sequence) as i16;
        if is_rtp {
            if let Some(stride) = fields.stride {
                self.stride = stride;
            }
            let last = self.header.timestamp();
            let stride = self.stride;
            let timestamp = match fields.timestamp {
                None => last.wrapping_add((i32::from(step) as u32).wrapping_mul(stride)),
                Some((bits, count)) if fields.is_scaled && stride > 0 => {
                    let scaled = decode(last / stride, bits, count, Shift::Timestamp, Width::ThirtyTwo);
                    scaled.wrapping_mul(stride).wrapping_add(last % stride)
                }
                Some((bits, count)) => decode(last, bits, count, Shift::Timestamp, Width::ThirtyTwo),
            };
            self.header.set_timestamp(timestamp);
            self.header.set_sequence(sequence);
            self.header.set_marker(fields.marker);
            let flags = self.header.rtp_flags();
            if let Some(extension) = fields.extension {
                self.header.set_rtp_flags(flags & !0x10 | u8::from(extension) << 4);
            }
            if let Some((padding, payload_type)) = fields.payload_type {
                let flags = self.header.rtp_flags();
                self.header.set_rtp_flags(flags & !0x20 | u8::from(padding) << 5);
                self.header.set_payload_type(payload_type);
            }
        }
        if let Some(tos) = fields.tos {
            self.header.set_tos(tos);
        }
        if let Some(ttl) = fields.ttl {
            self.header.set_ttl(ttl);
        }
        if let Some(is_set) = fields.dont_fragment {
            self.header.set_dont_fragment(is_set);
        }
        // Extension 3 has no flag for a constant IP-ID: it stays so unless it becomes random.
        let stays = |id| id == self.id || (self.id == IdBehavior::Constant && id != IdBehavior::Random);
        if let Some(id) = fields.id_behavior.filter(|id| !stays(*id)) {
            self.id = id;
            self.id_offset = id.offset(self.header.id(), last_sequence);
        }
        if self.header.is_v4() && matches!(self.id, IdBehavior::Sequential | IdBehavior::Swapped) {
            if let Some((bits, count)) = fields.id {
                self.id_offset = decode(u32::from(self.id_offset), bits, count, Shift::IpId, Width::Sixteen) as u16;
            }
            self.header.set_id(self.id.id(self.id_offset, sequence));
        }
    }
}

/// A list without elements, in the form that lists all of them (type 0, RFC 3095 §5.8.6.1).
fn read_empty_list(reader: &mut Reader<'_>, feature: &'static str) -> Result<(), DecompressError> {
    match reader.octet()? {
        0 => Ok(()),
        // The number of the list, for later references to it.
        0x20 => reader.octet().map(drop),
        _ => Err(DecompressError::Unsupported { feature }),
    }
}
