//! The compressed packets, as the decompressor reads them (RFC 3095 §5.7.1 to §5.7.5, §5.11.2).

use crate::crc::Crc;
use crate::error::DecompressError;
use crate::framework::Mode;
use crate::header::Header;
use crate::ip_id::IdBehavior;
use crate::profile::Profile;
use crate::reader::Reader;

/// The lowest bits of a field, and how many.
type Bits = (u32, u32);

/// What a packet carries of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    /// `None` for packets that update nothing.
    pub(super) crc: Option<(Crc, u8)>,
    pub(super) sequence: Bits,
    pub(super) timestamp: Option<Bits>,
    pub(super) is_scaled: bool,
    /// Of the IP-ID less the sequence number.
    pub(super) id: Option<Bits>,
    pub(super) marker: bool,
    pub(super) tos: Option<u8>,
    pub(super) ttl: Option<u8>,
    pub(super) dont_fragment: Option<bool>,
    /// Padding flag and payload type of RTP.
    pub(super) payload_type: Option<(bool, u8)>,
    /// Extension flag of RTP.
    pub(super) extension: Option<bool>,
    pub(super) stride: Option<u32>,
    pub(super) id_behavior: Option<IdBehavior>,
    pub(super) mode: Option<Mode>,
}

impl Fields {
    const fn new(crc: Crc, value: u8, sequence: Bits) -> Self {
        Self {
            crc: Some((crc, value)),
            sequence,
            timestamp: None,
            is_scaled: true,
            id: None,
            marker: false,
            tos: None,
            ttl: None,
            dont_fragment: None,
            payload_type: None,
            extension: None,
            stride: None,
            id_behavior: None,
            mode: None,
        }
    }

    /// Fields of a packet without a CRC.
    const fn unchecked(sequence: Bits) -> Self {
        Self { crc: None, ..Self::new(Crc::Three, 0, sequence) }
    }

    /// Reads a compressed packet whose first octet is `first`.
    pub(super) fn read(
        header: &Header,
        id: IdBehavior,
        mode: Mode,
        first: u8,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecompressError> {
        let has_id = header.is_v4() && id != IdBehavior::Random;
        let is_rtp = header.profile == Profile::Rtp;
        if mode == Mode::Reliable && first & 0xc0 != 0xc0 {
            return Self::read_reliable(has_id, is_rtp, first, reader);
        }
        if first & 0x80 == 0 {
            return Ok(Self::new(Crc::Three, first & 0x07, (u32::from(first >> 3), 4)));
        }
        match (first >> 6, is_rtp) {
            (0b10, true) => Self::read_rtp_1(has_id, first, reader),
            (0b10, false) => Self::read_counted_1(has_id, first, reader),
            _ if first & 0xe0 != 0xc0 => Err(DecompressError::Type { octet: first }),
            (_, true) => Self::read_rtp_2(header.is_v4(), has_id, first, reader),
            (_, false) => Self::read_counted_2(first, reader),
        }
    }

    /// R-0, R-0-CRC and R-1 (RFC 3095 §5.7.1, §5.7.2, §5.11.3).
    fn read_reliable(has_id: bool, is_rtp: bool, first: u8, reader: &mut Reader<'_>) -> Result<Self, DecompressError> {
        let bits = u32::from(first & 0x3f);
        if first & 0xc0 == 0 {
            return Ok(Self::unchecked((bits, 6)));
        }
        let second = reader.octet()?;
        if first & 0xc0 == 0x40 {
            return Ok(Self::new(Crc::Seven, second & 0x7f, (bits << 1 | u32::from(second >> 7), 7)));
        }
        let mut fields = Self::unchecked((bits, 6));
        if !is_rtp {
            fields.id = Some((u32::from(second & 0x7f), 7));
            if second & 0x80 != 0 {
                fields.read_extension(Kind::Counted, reader)?;
            }
            return Ok(fields);
        }
        fields.marker = second & 0x80 != 0;
        let kind = match (has_id, second & 0x20 != 0) {
            (false, _) => {
                fields.timestamp = Some((u32::from(second & 0x3f), 6));
                Kind::Plain
            }
            (true, true) => {
                fields.timestamp = Some((u32::from(second & 0x1f), 5));
                Kind::Timestamp
            }
            (true, false) => {
                fields.id = Some((u32::from(second & 0x1f), 5));
                Kind::Id
            }
        };
        if second & 0x40 != 0 {
            fields.read_extension(kind, reader)?;
        }
        Ok(fields)
    }

    /// UO-1, UO-1-ID and UO-1-TS.
    fn read_rtp_1(has_id: bool, first: u8, reader: &mut Reader<'_>) -> Result<Self, DecompressError> {
        let second = reader.octet()?;
        let mut fields = Self::new(Crc::Three, second & 0x07, (u32::from(second >> 3 & 0x0f), 4));
        let is_set = second & 0x80 != 0;
        if !has_id {
            fields.timestamp = Some((u32::from(first & 0x3f), 6));
            fields.marker = is_set;
        } else if first & 0x20 != 0 {
            fields.timestamp = Some((u32::from(first & 0x1f), 5));
            fields.marker = is_set;
        } else {
            fields.id = Some((u32::from(first & 0x1f), 5));
            if is_set {
                fields.read_extension(Kind::Id, reader)?;
            }
        }
        Ok(fields)
    }

    /// UOR-2, UOR-2-ID and UOR-2-TS.
    fn read_rtp_2(is_v4: bool, has_id: bool, first: u8, reader: &mut Reader<'_>) -> Result<Self, DecompressError> {
        let (second, third) = (reader.octet()?, reader.octet()?);
        // An extension may change whether the IP-ID is random, and with that the base header.
        let changed = if third & 0x80 != 0 && is_v4 { changed_behavior(*reader) } else { None };
        let has_id = changed.map_or(has_id, |id| id != IdBehavior::Random);
        let mut fields = Self::new(Crc::Seven, third & 0x7f, (u32::from(second & 0x3f), 6));
        fields.marker = second & 0x40 != 0;
        let (bits, flag) = (u32::from(first & 0x1f), u32::from(second >> 7));
        let kind = match (has_id, flag) {
            (false, _) => {
                fields.timestamp = Some((bits << 1 | flag, 6));
                Kind::Plain
            }
            (true, 0) => {
                fields.id = Some((bits, 5));
                Kind::Id
            }
            (true, _) => {
                fields.timestamp = Some((bits, 5));
                Kind::Timestamp
            }
        };
        if third & 0x80 != 0 {
            fields.read_extension(kind, reader)?;
        }
        Ok(fields)
    }

    /// UO-1 of profiles whose sequence numbers the compressor counts.
    fn read_counted_1(has_id: bool, first: u8, reader: &mut Reader<'_>) -> Result<Self, DecompressError> {
        if !has_id {
            return Err(DecompressError::Type { octet: first });
        }
        let second = reader.octet()?;
        let mut fields = Self::new(Crc::Three, second & 0x07, (u32::from(second >> 3), 5));
        fields.id = Some((u32::from(first & 0x3f), 6));
        Ok(fields)
    }

    /// UOR-2 of those profiles.
    fn read_counted_2(first: u8, reader: &mut Reader<'_>) -> Result<Self, DecompressError> {
        let second = reader.octet()?;
        let mut fields = Self::new(Crc::Seven, second & 0x7f, (u32::from(first & 0x1f), 5));
        if second & 0x80 != 0 {
            fields.read_extension(Kind::Counted, reader)?;
        }
        Ok(fields)
    }

    /// Adds lower bits to the sequence number.
    fn extend_sequence(&mut self, bits: u32, count: u32) {
        extend(&mut self.sequence, bits, count);
    }

    fn read_extension(&mut self, kind: Kind, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let first = reader.octet()?;
        if first >> 6 == 0b11 {
            return if kind == Kind::Counted {
                self.read_counted_extension(first, reader)
            } else {
                self.read_rtp_extension(first, reader)
            };
        }
        // Extensions 0 to 2: the field of the base header goes on (+T), and may be followed by the
        // other one (−T).
        self.extend_sequence(u32::from(first >> 3 & 0x07), 3);
        let mut plus = (u32::from(first & 0x07), 3);
        if first >> 6 == 0b10 {
            extend(&mut plus, u32::from(reader.octet()?), 8);
        }
        let minus = if first >> 6 == 0 { None } else { Some((u32::from(reader.octet()?), 8)) };
        match kind {
            Kind::Timestamp | Kind::Plain => {
                extend_option(&mut self.timestamp, plus);
                if kind == Kind::Timestamp {
                    self.id = minus;
                } else if minus.is_some() {
                    return Err(DecompressError::Unsupported { feature: "an IP-ID in a packet without one" });
                }
            }
            Kind::Id => {
                extend_option(&mut self.id, plus);
                self.timestamp = minus;
            }
            Kind::Counted => {
                // With one IP header all bits belong to its IP-ID.
                self.id = Some(plus);
                if let Some((bits, count)) = minus {
                    extend_option(&mut self.id, (bits, count));
                }
            }
        }
        Ok(())
    }

    /// Extension 3 of RTP.
    fn read_rtp_extension(&mut self, first: u8, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let has = |bit: u8| first & bit != 0;
        let inner = if has(0x02) { Some(read_ip_flags(reader)?) } else { None };
        if has(0x20) {
            let bits = u32::from(reader.octet()?);
            self.extend_sequence(bits, 8);
        }
        self.is_scaled = has(0x08);
        if has(0x10) {
            extend_option(&mut self.timestamp, reader.sdvl()?);
        }
        self.read_ip_fields(inner, has(0x04), reader)?;
        if !has(0x01) {
            return Ok(());
        }
        let flags = reader.octet()?;
        if flags & 0x04 != 0 {
            return Err(DecompressError::Unsupported { feature: "a list of contributing sources" });
        }
        self.mode = Mode::of(flags >> 6);
        self.marker = flags & 0x10 != 0;
        self.extension = Some(flags & 0x08 != 0);
        if flags & 0x20 != 0 {
            let octet = reader.octet()?;
            self.payload_type = Some((octet & 0x80 != 0, octet & 0x7f));
        }
        if flags & 0x02 != 0 {
            self.stride = Some(reader.sdvl()?.0);
        }
        if flags & 0x01 != 0 {
            // TIME_STRIDE matters only to a decompressor that has offered a clock.
            reader.sdvl()?;
        }
        Ok(())
    }

    /// Extension 3 of the other profiles.
    fn read_counted_extension(&mut self, first: u8, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let has = |bit: u8| first & bit != 0;
        let inner = if has(0x02) { Some(read_ip_flags(reader)?) } else { None };
        if has(0x01) {
            return Err(DecompressError::Unsupported { feature: "a second IP header" });
        }
        self.mode = Mode::of(first >> 3 & 0x03);
        if has(0x20) {
            let bits = u32::from(reader.octet()?);
            self.extend_sequence(bits, 8);
        }
        self.read_ip_fields(inner, has(0x04), reader)
    }

    /// The fields of the IP header that its flags announce.
    fn read_ip_fields(
        &mut self,
        flags: Option<u8>,
        has_id: bool,
        reader: &mut Reader<'_>,
    ) -> Result<(), DecompressError> {
        let has = |bit: u8| flags.is_some_and(|flags| flags & bit != 0);
        if has(0x80) {
            self.tos = Some(reader.octet()?);
        }
        if has(0x40) {
            self.ttl = Some(reader.octet()?);
        }
        if let Some(flags) = flags {
            self.dont_fragment = Some(flags & 0x20 != 0);
            self.id_behavior = Some(behavior(flags));
        }
        if has_id {
            self.id = Some((u32::from(reader.word()?), 16));
        }
        Ok(())
    }
}

/// The field of a base header that an extension continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The timestamp, in a packet that has no IP-ID.
    Plain,
    /// The timestamp.
    Timestamp,
    /// The IP-ID.
    Id,
    /// The IP-ID, of a profile without timestamps.
    Counted,
}

/// The flags of the IP header in extension 3.
fn read_ip_flags(reader: &mut Reader<'_>) -> Result<u8, DecompressError> {
    let flags = reader.octet()?;
    let feature = match flags {
        _ if flags & 0x01 != 0 => "a second IP header",
        _ if flags & 0x18 != 0 => "another protocol or extension headers in extension 3",
        _ => return Ok(flags),
    };
    Err(DecompressError::Unsupported { feature })
}

/// How the IP-ID behaves by flags NBO and RND of extension 3.
const fn behavior(flags: u8) -> IdBehavior {
    match flags {
        _ if flags & 0x02 != 0 => IdBehavior::Random,
        _ if flags & 0x04 != 0 => IdBehavior::Sequential,
        _ => IdBehavior::Swapped,
    }
}

/// The behaviour of the IP-ID in the extension 3 that comes next, if it has one.
fn changed_behavior(mut reader: Reader<'_>) -> Option<IdBehavior> {
    let first = reader.octet().ok()?;
    // Extension 3 with flags of the IP header.
    let has_flags = first & 0xc2 == 0xc2;
    has_flags.then(|| reader.octet().ok().map(behavior)).flatten()
}

fn extend(field: &mut Bits, bits: u32, count: u32) {
    *field = (field.0 << count | bits, field.1 + count);
}

fn extend_option(field: &mut Option<Bits>, (bits, count): Bits) {
    let mut extended = field.unwrap_or_default();
    extend(&mut extended, bits, count);
    *field = Some(extended);
}
