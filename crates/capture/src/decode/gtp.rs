//! GTP-U: the tunnels of mobiles between base stations and gateways (TS 29.281).

use super::part::Part;
use crate::skipped::Cause;

/// The UDP port of GTP-U (§4.4.2).
pub(super) const PORT: u16 = 2152;

/// Version 1, and GTP rather than GTP' (§5.1).
const VERSION_AND_TYPE: u8 = 0b0011_0000;
/// Flags of extension headers, a sequence number and an N-PDU number: with any of them, the header
/// has fields for all.
const OPTIONAL: u8 = 0b0000_0111;
const EXTENSION: u8 = 0b0000_0100;
/// A user's packet (§6.1).
const G_PDU: u8 = 255;

/// The user's packet in a datagram; `None` if it is no GTP-U datagram.
pub(super) fn content(datagram: Part<'_>) -> Option<Result<Part<'_>, Cause>> {
    let header: &[u8; 8] = datagram.bytes.first_chunk()?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let is_ours = header[0] & 0b1111_0000 == VERSION_AND_TYPE && length <= datagram.length - 8;
    is_ours.then(|| user_packet(header, datagram.beyond(8).with_length(length)))
}

fn user_packet<'a>(header: &[u8; 8], mut rest: Part<'a>) -> Result<Part<'a>, Cause> {
    if header[1] != G_PDU {
        return Err(Cause::Signalling);
    }
    if header[0] & OPTIONAL != 0 {
        let optional: &[u8; 4] = rest.leading()?;
        rest = rest.after(4)?;
        let mut next = if header[0] & EXTENSION != 0 { optional[3] } else { 0 };
        // Each contains its length in units of four bytes and, at its end, the type of the next
        // (§5.2.1).
        while next != 0 {
            let [units] = *rest.leading()?;
            let length = usize::from(units) * 4;
            if length == 0 {
                return Err(Cause::Malformed);
            }
            let after = rest.after(length)?;
            next = rest.bytes[length - 1];
            rest = after;
        }
    }
    // A user's packet may be PPP or Ethernet; its first four bits show whether it is IP.
    match rest.leading()? {
        [first] if matches!(first >> 4, 4 | 6) => Ok(rest),
        [_] => Err(Cause::NotIp),
    }
}
