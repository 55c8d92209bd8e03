//! Frames of every link layer, by hand.

use super::*;

/// `header` and the packet that all of these carry.
fn framed(header: &[u8]) -> Vec<u8> {
    [header, &packet(b"hello")].concat()
}

/// An Ethernet header's addresses, and what follows them.
fn ethernet(rest: &[u8]) -> Vec<u8> {
    framed(&[&[0xAA; 12], rest].concat())
}

#[test]
fn ethernet_and_what_it_is_tagged_with() {
    let holds = |rest: &[u8]| assert_holds(LinkType::ETHERNET, &ethernet(rest), b"hello");
    holds(&[0x08, 0x00]);
    holds(&[0x81, 0x00, 0x00, 0x05, 0x08, 0x00]);
    holds(&[0x88, 0xA8, 0x00, 0x05, 0x81, 0x00, 0x00, 0x06, 0x08, 0x00]);
    // One label, then two.
    holds(&[0x88, 0x47, 0x00, 0x01, 0x01, 0x40]);
    holds(&[0x81, 0x00, 0x00, 0x05, 0x88, 0x47, 0x00, 0x01, 0x00, 0x40, 0x00, 0x02, 0x01, 0x40]);
    // A pseudowire with its control word.
    let inner = [&[0xBB; 12][..], &[0x08, 0x00]].concat();
    holds(&[&[0x88, 0x48, 0x00, 0x01, 0x01, 0x40, 0, 0, 0, 0][..], &inner].concat());
    // A session of PPP over Ethernet.
    let length = (packet(b"hello").len() + 2) as u8;
    holds(&[0x88, 0x64, 0x11, 0x00, 0x00, 0x01, 0x00, length, 0x00, 0x21]);
    // IEEE 802.3 with SNAP.
    let length = (packet(b"hello").len() + 8) as u8;
    holds(&[0x00, length, 0xAA, 0xAA, 0x03, 0, 0, 0, 0x08, 0x00]);
}

#[test]
fn padding_of_ethernet_is_no_payload() {
    let mut frame = [&[0xAA; 12][..], &[0x08, 0x00], &packet(b"")].concat();
    frame.resize(80, 0xEE);
    assert_holds(LinkType::ETHERNET, &frame, b"");
}

#[test]
fn what_else_ethernet_carries() {
    let cause = |rest: &[u8]| decode(LinkType::ETHERNET, &ethernet(rest)).expect_err("it is no segment");
    assert_eq!(cause(&[0x08, 0x06]), Cause::NotIp, "ARP");
    assert_eq!(cause(&[0x00, 0x26, 0x42, 0x42, 0x03]), Cause::NotIp, "spanning tree");
    assert_eq!(cause(&[0x00, 0x03, 0x42, 0x42, 0x03]), Cause::NotIp, "shorter than SNAP's header");
    assert_eq!(cause(&[0x88, 0x64, 0x11, 0x09, 0, 0, 0, 4]), Cause::NotIp, "PPP over Ethernet, discovery");
    assert_eq!(cause(&[0x88, 0x47, 0, 1, 1, 64, 0x50]), Cause::NotIp, "MPLS of something else");
    assert_eq!(decode(LinkType::ETHERNET, &[0; 13]), Err(Cause::Malformed));
    let frame = ethernet(&[0x81, 0x00, 0, 5, 0x08, 0x00]);
    let cut = decode_cut(&mut Decoder::default(), Instant::ZERO, LinkType::ETHERNET, &frame[..17], frame.len());
    assert_eq!(cut, Err(Cause::CutShort), "within the tag");
}

#[test]
fn linux_cooked() {
    let header = [0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0x08, 0x00];
    assert_holds(LinkType::LINUX_COOKED, &framed(&header), b"hello");
    let tagged = [&header[..14], &[0x81, 0x00, 0, 5, 0x08, 0x00]].concat();
    assert_holds(LinkType::LINUX_COOKED, &framed(&tagged), b"hello");
    let logical_link = [&header[..14], &[0, 4, 0xAA, 0xAA, 3, 0, 0, 0, 0x08, 0x00]].concat();
    assert_holds(LinkType::LINUX_COOKED, &framed(&logical_link), b"hello");
    let novell = [&header[..14], &[0, 1]].concat();
    assert_eq!(decode(LinkType::LINUX_COOKED, &framed(&novell)), Err(Cause::NotIp));
    let header_2 = [0x08, 0x00, 0, 0, 0, 0, 0, 7, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0];
    assert_holds(LinkType::LINUX_COOKED_2, &framed(&header_2), b"hello");
}

#[test]
fn ppp_in_all_its_forms() {
    for link_type in [LinkType::PPP, LinkType::PPP_HDLC] {
        assert_holds(link_type, &framed(&[0xFF, 0x03, 0x00, 0x21]), b"hello");
        assert_holds(link_type, &framed(&[0xFF, 0x03, 0x21]), b"hello");
        assert_holds(link_type, &framed(&[0x00, 0x21]), b"hello");
        assert_holds(link_type, &framed(&[0x21]), b"hello");
        assert_holds(link_type, &framed(&[0x02, 0x81, 0, 1, 1, 64]), b"hello");
        assert_eq!(decode(link_type, &framed(&[0xC0, 0x21])), Err(Cause::NotIp), "LCP");
        assert_eq!(decode(link_type, &framed(&[0x00, 0x2D])), Err(Cause::CompressedHeaders));
        assert_eq!(decode(link_type, &framed(&[0x2D])), Err(Cause::CompressedHeaders));
    }
    assert_holds(LinkType::PPP_HDLC, &framed(&[0x0F, 0x00, 0x08, 0x00]), b"hello");
    assert_holds(LinkType::CISCO_HDLC, &framed(&[0x8F, 0x00, 0x08, 0x00]), b"hello");
    assert_holds(LinkType::PPP_WITH_DIRECTION, &framed(&[0x01, 0xFF, 0x03, 0x00, 0x21]), b"hello");
    let length = (packet(b"hello").len() + 2) as u8;
    assert_holds(LinkType::PPP_ETHER, &framed(&[0x11, 0, 0, 1, 0, length, 0x00, 0x21]), b"hello");
}

#[test]
fn fddi() {
    let header = [&[0x50], &[0xAA; 12][..], &[0xAA, 0xAA, 3, 0, 0, 0, 0x08, 0x00]].concat();
    assert_holds(LinkType::FDDI, &framed(&header), b"hello");
    let station_management = [&[0x41], &header[1..]].concat();
    assert_eq!(decode(LinkType::FDDI, &framed(&station_management)), Err(Cause::NotIp));
}

#[test]
fn loopback_in_both_byte_orders() {
    for link_type in [LinkType::NULL, LinkType::LOOP] {
        assert_holds(link_type, &framed(&[2, 0, 0, 0]), b"hello");
        assert_holds(link_type, &framed(&[0, 0, 0, 2]), b"hello");
        assert_holds(link_type, &[&[30, 0, 0, 0], &ipv6(Protocol::TCP, &segment_6(b"hello"))[..]].concat(), b"hello");
        assert_eq!(decode(link_type, &framed(&[7, 0, 0, 0])), Err(Cause::NotIp));
    }
}

#[test]
fn netfilter_log_in_both_byte_orders() {
    let length = (packet(b"hello").len() + 4) as u8;
    let little = [&[2, 0, 0, 1][..], &[5, 0, 10, 0, b'x', 0, 0, 0], &[length, 0, 9, 0]].concat();
    assert_holds(LinkType::NETFILTER_LOG, &framed(&little), b"hello");
    let big = [&[2, 0, 0, 1][..], &[0, 5, 0, 10, b'x', 0, 0, 0], &[0, length, 0, 9]].concat();
    assert_holds(LinkType::NETFILTER_LOG, &framed(&big), b"hello");
    let cut = decode(LinkType::NETFILTER_LOG, &framed(&big)[..14]);
    assert_eq!(cut, Err(Cause::Malformed), "the attribute goes on beyond the frame");
}

#[test]
fn raw_ip_by_all_its_numbers() {
    for link_type in [LinkType::RAW, LinkType::RAW_BSD, LinkType::RAW_OPENBSD, LinkType::IPV4] {
        assert_holds(link_type, &packet(b"hello"), b"hello");
    }
}
