//! The unprotected header fields of QUIC packets (RFC 8999, RFC 9000 §17, RFC 9369 §3.2).

/// A kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    VersionNegotiation,
    Short,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub kind: Kind,
    /// 0 in a short header.
    pub version: u32,
    pub destination_id: &'a [u8],
    pub source_id: &'a [u8],
    /// The spin bit of a short header.
    pub spin: bool,
    /// Bytes of the packet, if the header has a length: another packet may follow in the datagram.
    pub length: Option<usize>,
}

const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;

const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;
/// The drafts that were deployed, numbered from here.
const DRAFTS: u32 = 0xff00_0000;

/// Whether the fixed bit may be zero: after the transport parameters of its peer, an end may send
/// it so (RFC 9287 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FixedBit {
    Required,
    Greased,
}

/// The longest connection ID (RFC 9000 §17.2).
pub(super) const LONGEST_ID: usize = 20;

/// Whether the first byte is that of a short header, apart from a greased fixed bit.
pub(super) const fn is_short(first: u8) -> bool {
    first & LONG == 0
}

/// Reads the packet that `bytes` begin with; the ids of short headers have `id_length` bytes.
/// `None` for what is not QUIC.
pub(super) fn parse(bytes: &[u8], id_length: usize, fixed: FixedBit) -> Option<Packet<'_>> {
    let first = *bytes.first()?;
    let is_fixed = first & FIXED != 0 || fixed == FixedBit::Greased;
    if first & LONG == 0 {
        let destination_id = bytes.get(1..=id_length)?;
        let spin = first & SPIN != 0;
        let short = Packet { kind: Kind::Short, version: 0, destination_id, source_id: &[], spin, length: None };
        return is_fixed.then_some(short);
    }
    let version = u32::from_be_bytes(*bytes.get(1..)?.first_chunk()?);
    let mut at = 5;
    let destination_id = id(bytes, &mut at)?;
    let source_id = id(bytes, &mut at)?;
    let kind = kind(first, version).filter(|kind| is_fixed || *kind == Kind::VersionNegotiation)?;
    let length = match kind {
        Kind::Initial => {
            let token = number(bytes, &mut at)?;
            at = at.checked_add(token)?;
            Some(number(bytes, &mut at)?.checked_add(at)?)
        }
        Kind::ZeroRtt | Kind::Handshake => Some(number(bytes, &mut at)?.checked_add(at)?),
        Kind::Retry | Kind::VersionNegotiation | Kind::Short => None,
    };
    Some(Packet { kind, version, destination_id, source_id, spin: false, length })
}

fn kind(first: u8, version: u32) -> Option<Kind> {
    if version == 0 {
        return Some(Kind::VersionNegotiation);
    }
    let code = first >> 4 & 3;
    match version {
        // RFC 9369 §3.2: version 2 moves the codes on by one.
        VERSION_2 => Some([Kind::Retry, Kind::Initial, Kind::ZeroRtt, Kind::Handshake][usize::from(code)]),
        VERSION_1 | DRAFTS..=0xff00_00ff => {
            Some([Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry][usize::from(code)])
        }
        _ => None,
    }
}

/// A connection id with its length before it.
fn id<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let length = usize::from(*bytes.get(*at)?);
    let id = bytes.get(*at + 1..*at + 1 + length)?;
    *at += 1 + length;
    (length <= LONGEST_ID).then_some(id)
}

/// A number of variable length (RFC 9000 §16).
fn number(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let first = *bytes.get(*at)?;
    let length = 1_usize << (first >> 6);
    let rest = bytes.get(*at + 1..*at + length)?;
    *at += length;
    let number = rest.iter().fold(u64::from(first & 0x3f), |number, byte| number << 8 | u64::from(*byte));
    number.try_into().ok()
}
