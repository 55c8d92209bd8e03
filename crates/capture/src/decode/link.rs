//! Link layers: the offset of the IP packet in a frame. The registry of link types at tcpdump.org
//! describes each of them.

use super::part::Part;
use crate::read::LinkType;
use crate::skipped::Cause;

// EtherTypes, as IEEE's registry has them.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;
/// IEEE 802.1Q, and what 802.1ad and others before it took for an outer tag.
const VLAN: [u16; 4] = [0x8100, 0x88A8, 0x9100, 0x9200];
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE_SESSION: u16 = 0x8864;
/// EtherTypes begin here; a smaller value is the length of a frame of IEEE 802.3.
const FIRST_ETHER_TYPE: u16 = 0x0600;

/// LLC of a frame with SNAP (IEEE 802): both service access points, unnumbered information, and no
/// organisation.
const SNAP: [u8; 6] = [0xAA, 0xAA, 0x03, 0, 0, 0];

// Numbers of PPP's protocol registry.
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS: [u16; 2] = [0x0281, 0x0283];
/// Van Jacobson's compression (RFC 1144), RFC 2507's and ROHC, each with all its kinds of packets.
const PPP_COMPRESSED: [u16; 9] = [0x002D, 0x002F, 0x0003, 0x0005, 0x0061, 0x0063, 0x0065, 0x0067, 0x0069];
/// Address and control bytes of PPP in frames of HDLC (RFC 1662 §3.1).
const PPP_ADDRESS_AND_CONTROL: [u8; 2] = [0xFF, 0x03];

/// The IP packet in a frame.
#[inline]
pub(super) fn content(link_type: LinkType, frame: Part<'_>) -> Result<Part<'_>, Cause> {
    match link_type {
        LinkType::ETHERNET => ethernet(frame),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType::RAW_BSD | LinkType::RAW_OPENBSD => Ok(frame),
        other => rare(other, frame),
    }
}

fn rare(link_type: LinkType, frame: Part<'_>) -> Result<Part<'_>, Cause> {
    match link_type {
        LinkType::LINUX_COOKED => {
            let header: &[u8; 16] = frame.leading()?;
            cooked(u16::from_be_bytes([header[14], header[15]]), frame.after(16)?)
        }
        LinkType::LINUX_COOKED_2 => {
            let header: &[u8; 20] = frame.leading()?;
            cooked(u16::from_be_bytes([header[0], header[1]]), frame.after(20)?)
        }
        LinkType::NULL | LinkType::LOOP => loopback(frame),
        LinkType::PPP => ppp(frame),
        LinkType::PPP_WITH_DIRECTION => ppp(frame.after(1)?),
        LinkType::PPP_HDLC => match frame.leading()? {
            // The addresses of Cisco's: to one station, or to all.
            [0x0F | 0x8F, _] => cisco_hdlc(frame),
            [_, _] => ppp(frame),
        },
        LinkType::CISCO_HDLC => cisco_hdlc(frame),
        LinkType::PPP_ETHER => pppoe(frame),
        LinkType::FDDI => fddi(frame),
        LinkType::NETFILTER_LOG => netfilter_log(frame),
        _ => Err(Cause::UnknownLinkType),
    }
}

#[inline]
fn ethernet(frame: Part<'_>) -> Result<Part<'_>, Cause> {
    let header: &[u8; 14] = frame.leading()?;
    let content = frame.after(14)?;
    match u16::from_be_bytes([header[12], header[13]]) {
        IPV4 | IPV6 => Ok(content),
        length if length < FIRST_ETHER_TYPE => logical_link(content.at_most(length.into())),
        other => typed(other, content),
    }
}

/// Decodes the payload that an EtherType identifies.
fn typed(mut kind: u16, mut content: Part<'_>) -> Result<Part<'_>, Cause> {
    // Each round takes four bytes.
    while VLAN.contains(&kind) {
        let tag: &[u8; 4] = content.leading()?;
        kind = u16::from_be_bytes([tag[2], tag[3]]);
        content = content.after(4)?;
    }
    match kind {
        IPV4 | IPV6 => Ok(content),
        PPPOE_SESSION => pppoe(content),
        kind if MPLS.contains(&kind) => mpls(content),
        length if length < FIRST_ETHER_TYPE => logical_link(content.at_most(length.into())),
        _ => Err(Cause::NotIp),
    }
}

/// Logical link control with SNAP (RFC 1042).
fn logical_link(content: Part<'_>) -> Result<Part<'_>, Cause> {
    let header: &[u8; 8] = match content.leading() {
        // Spanning tree and its like are shorter than this.
        Err(Cause::Malformed) => return Err(Cause::NotIp),
        other => other?,
    };
    if header[..6] != SNAP {
        return Err(Cause::NotIp);
    }
    typed(u16::from_be_bytes([header[6], header[7]]), content.after(8)?)
}

/// Labels (RFC 3032), and an IP packet or a pseudowire after the last.
fn mpls(mut content: Part<'_>) -> Result<Part<'_>, Cause> {
    loop {
        let label: &[u8; 4] = content.leading()?;
        content = content.after(4)?;
        if label[2] & 1 != 0 {
            break;
        }
    }
    // Only its first four bits identify the payload (RFC 4928).
    let [first] = content.leading()?;
    match first >> 4 {
        4 | 6 => Ok(content),
        // The control word of a pseudowire (RFC 4385), here taken to be one of Ethernet (RFC 4448).
        0 => ethernet(content.after(4)?),
        _ => Err(Cause::NotIp),
    }
}

/// PPP over Ethernet, in a session (RFC 2516 §4).
fn pppoe(content: Part<'_>) -> Result<Part<'_>, Cause> {
    let header: &[u8; 6] = content.leading()?;
    // Another code than that of data is one of discovery.
    if header[1] != 0 {
        return Err(Cause::NotIp);
    }
    ppp(content.after(6)?.at_most(u16::from_be_bytes([header[4], header[5]]).into()))
}

/// PPP (RFC 1661 §2), its protocol field compressed or not (§6.5).
fn ppp(mut frame: Part<'_>) -> Result<Part<'_>, Cause> {
    if frame.bytes.starts_with(&PPP_ADDRESS_AND_CONTROL) {
        frame = frame.after(2)?;
    }
    let [first] = *frame.leading()?;
    // A first byte that is odd is the whole number.
    let (protocol, content) = if first & 1 != 0 {
        (u16::from(first), frame.after(1)?)
    } else {
        (u16::from_be_bytes(*frame.leading()?), frame.after(2)?)
    };
    match protocol {
        PPP_IPV4 | PPP_IPV6 => Ok(content),
        protocol if PPP_MPLS.contains(&protocol) => mpls(content),
        protocol if PPP_COMPRESSED.contains(&protocol) => Err(Cause::CompressedHeaders),
        _ => Err(Cause::NotIp),
    }
}

/// Address, a zero, an EtherType.
fn cisco_hdlc(frame: Part<'_>) -> Result<Part<'_>, Cause> {
    let header: &[u8; 4] = frame.leading()?;
    typed(u16::from_be_bytes([header[2], header[3]]), frame.after(4)?)
}

/// Frame control, two addresses, LLC. Some hosts swap the bits of the addresses, which are not
/// read.
fn fddi(frame: Part<'_>) -> Result<Part<'_>, Cause> {
    let [control] = frame.leading()?;
    // The format bits of an LLC frame (ANSI X3.139).
    if control & 0x30 != 0x10 {
        return Err(Cause::NotIp);
    }
    logical_link(frame.after(13)?)
}

/// Linux's protocol field of a cooked frame: an EtherType, or one of Linux's own numbers.
fn cooked(protocol: u16, content: Part<'_>) -> Result<Part<'_>, Cause> {
    /// `LINUX_SLL_P_802_2`: LLC follows.
    const LOGICAL_LINK: u16 = 4;
    match protocol {
        LOGICAL_LINK => logical_link(content),
        protocol if protocol < FIRST_ETHER_TYPE => Err(Cause::NotIp),
        protocol => typed(protocol, content),
    }
}

/// The address family, in whichever byte order: 2 is IPv4 everywhere, while each system has a
/// number of its own for IPv6.
fn loopback(frame: Part<'_>) -> Result<Part<'_>, Cause> {
    let family: &[u8; 4] = frame.leading()?;
    match u32::from_le_bytes(*family).min(u32::from_be_bytes(*family)) {
        // Linux; NetBSD and OpenBSD; FreeBSD; macOS.
        2 | 10 | 24 | 28 | 30 => frame.after(4),
        _ => Err(Cause::NotIp),
    }
}

/// A header of four bytes, and attributes in the byte order of the host; one attribute is the
/// packet.
fn netfilter_log(frame: Part<'_>) -> Result<Part<'_>, Cause> {
    /// `NFULA_PAYLOAD`.
    const PAYLOAD: u16 = 9;
    const HEADER: usize = 4;
    let mut rest = frame.after(HEADER)?;
    let first: &[u8; 4] = rest.leading()?;
    // Only one order gives a plausible length of the first attribute: it is short.
    let is_little = u16::from_le_bytes([first[0], first[1]]) < u16::from_be_bytes([first[0], first[1]]);
    loop {
        let [a, b, c, d] = *rest.leading()?;
        let (length, kind) = if is_little {
            (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]))
        } else {
            (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
        };
        let length = usize::from(length);
        if length < HEADER || length > rest.length {
            return Err(Cause::Malformed);
        }
        if kind == PAYLOAD {
            return Ok(rest.with_length(length).beyond(HEADER));
        }
        rest = rest.after(length.next_multiple_of(4))?;
    }
}
