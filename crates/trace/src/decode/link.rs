//! Link layers: where in a frame the IP packet begins.

use super::part::Part;
use crate::capture::LinkType;
use crate::passed_over::Cause;

// EtherTypes, as IEEE's registry has them.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;

/// The IP packet in a frame.
#[inline]
pub(super) fn content(link_type: LinkType, frame: Part<'_>) -> Result<Part<'_>, Cause> {
    match link_type {
        LinkType::ETHERNET => ethernet(frame),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => Ok(frame),
        _ => Err(Cause::UnknownLinkType),
    }
}

#[inline]
fn ethernet(frame: Part<'_>) -> Result<Part<'_>, Cause> {
    let header: &[u8; 14] = frame.leading()?;
    let kind = u16::from_be_bytes([header[12], header[13]]);
    typed(kind, frame.after(14)?)
}

/// What an EtherType says that follows.
#[inline]
fn typed(kind: u16, content: Part<'_>) -> Result<Part<'_>, Cause> {
    match kind {
        IPV4 | IPV6 => Ok(content),
        _ => Err(Cause::NotIp),
    }
}
