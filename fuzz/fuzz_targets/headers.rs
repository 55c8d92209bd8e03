//! Arbitrary bytes as a packet: no parser panics, and a parsed header is parsed again from the
//! output of `emit`.

#![no_main]

use airpath_wire::checksum::Sum;
use airpath_wire::icmp::{EchoTypes, IcmpEcho};
use airpath_wire::ip::{IpHeader, Protocol};
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::ipv6::Ipv6Header;
use airpath_wire::tcp::{Options, TcpHeader};
use airpath_wire::udp::UdpHeader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|packet: &[u8]| {
    if let Ok((header, payload)) = IpHeader::parse(packet) {
        let mut bytes = [0; Ipv6Header::LENGTH];
        match &header {
            IpHeader::V4(header) => {
                header.emit(&mut bytes);
                // Options are not kept, so a header that had some may now be shorter, but never
                // longer.
                let again = Ipv4Header::parse(&bytes[..Ipv4Header::LENGTH]).map(|(header, _)| header);
                assert_eq!(again, Ok(*header));
                assert!(Sum::of(&bytes[..Ipv4Header::LENGTH]).holds());
            }
            IpHeader::V6(header) => {
                header.emit(&mut bytes);
                assert_eq!(Ipv6Header::parse(&bytes).map(|(header, _)| header), Ok(*header));
            }
        }
        transport(header.protocol(), payload);
    }
    for protocol in [Protocol::TCP, Protocol::UDP, Protocol::ICMP, Protocol::ICMPV6] {
        transport(protocol, packet);
    }
});

fn transport(protocol: Protocol, bytes: &[u8]) {
    match protocol {
        Protocol::TCP => tcp(bytes),
        Protocol::UDP => udp(bytes),
        Protocol::ICMP => echo(EchoTypes::V4, bytes),
        Protocol::ICMPV6 => echo(EchoTypes::V6, bytes),
        _ => {}
    }
}

fn tcp(bytes: &[u8]) {
    let Ok((header, payload)) = TcpHeader::parse(bytes) else { return };
    // Options without padding may not fit with it.
    if header.options.wire_length() > Options::MAX_LENGTH {
        return;
    }
    let mut emitted = [0; TcpHeader::MAX_LENGTH];
    header.emit(&mut emitted, Sum::of(payload));
    let emitted = &emitted[..header.wire_length()];
    assert_eq!(TcpHeader::parse(emitted), Ok((header, &[][..])));
    assert!(Sum::of(emitted).and(payload).holds());
}

fn udp(bytes: &[u8]) {
    let Ok((header, payload)) = UdpHeader::parse(bytes) else { return };
    let mut emitted = [0; UdpHeader::LENGTH];
    header.emit(&mut emitted, Sum::of(payload));
    assert_eq!(UdpHeader::parse(&emitted), Ok((header, &[][..])));
    assert!(Sum::of(&emitted).and(payload).holds());
}

fn echo(types: EchoTypes, bytes: &[u8]) {
    let Ok((header, payload)) = IcmpEcho::parse(types, bytes) else { return };
    let mut emitted = [0; IcmpEcho::LENGTH];
    header.emit(types, &mut emitted, Sum::of(payload));
    assert_eq!(IcmpEcho::parse(types, &emitted), Ok((header, &[][..])));
    assert!(Sum::of(&emitted).and(payload).holds());
}
