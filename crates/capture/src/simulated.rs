//! Writes simulated packets to a capture file: IPv4 and transport headers, without the payload.
//!
//! The simulator has headers and lengths but no payload. Checksums are computed for a payload of
//! zeros, which is left out of the file: each packet is captured up to the end of its transport
//! header, with its full length.

use std::io::{self, Write};
use std::net::Ipv4Addr;

use airpath_core::{Ecn, Instant, Span};

use crate::write::{CapturedPacket, Interface, InterfaceId, Writer};
use airpath_wire::checksum::Sum;
use airpath_wire::icmp::{EchoTypes, IcmpEcho};
use airpath_wire::ip::Protocol;
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::tcp::TcpHeader;
use airpath_wire::udp::UdpHeader;

/// Time of the run's origin in captures, since 1 January 1970, UTC: a time in the file is the time
/// of the run after a leading 1. It is not zero because some tools (tcptrace) treat a time of zero
/// as missing.
pub const ORIGIN: Span = Span::from_secs(1_000_000_000);

/// Initial time to live: that of most systems.
const TIME_TO_LIVE: u8 = 64;

/// Most bytes of a datagram's payload that are captured.
pub const MOST_HEAD: usize = 256;

/// A capture file with one interface.
#[derive(Debug)]
pub struct Capture<W: Write> {
    writer: Writer<W>,
    interface: InterfaceId,
}

/// Fields of packets of every kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// When the packet is captured; see [`ORIGIN`].
    pub time: Instant,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Its ECN field at the capture point.
    pub ecn: Ecn,
    /// Its identification. A packet that is never fragmented needs none: 0 (RFC 6864 §4.1).
    pub identification: u16,
}

impl<W: Write> Capture<W> {
    /// Begins a capture; `comment` describes it.
    ///
    /// # Errors
    /// I/O errors of `out`; a text of 64 KiB or more is invalid input.
    pub fn create(out: W, comment: &str, interface: Interface<'_>) -> io::Result<Self> {
        let mut writer = Writer::new(out, comment)?;
        let interface = writer.add_interface(interface)?;
        Ok(Self { writer, interface })
    }

    /// Adds a TCP segment with `payload_length` bytes of payload.
    ///
    /// # Errors
    /// I/O errors of the output; a packet that is too large for IPv4 is invalid input.
    ///
    /// # Panics
    /// If the header's options take more than 40 bytes.
    pub fn tcp(&mut self, envelope: Envelope, header: &TcpHeader, payload_length: u32) -> io::Result<()> {
        self.packet(&Headers::tcp(envelope, header, payload_length)?)
    }

    /// Adds a UDP datagram whose payload begins with `head`, which is captured, and has
    /// `payload_length` further bytes.
    ///
    /// # Errors
    /// I/O errors of the output; a packet that is too large for IPv4 is invalid input.
    ///
    /// # Panics
    /// If `head` is longer than [`MOST_HEAD`].
    pub fn udp(&mut self, envelope: Envelope, ports: Ports, head: &[u8], payload_length: u32) -> io::Result<()> {
        self.packet(&Headers::udp(envelope, ports, head, payload_length)?)
    }

    /// Adds an ICMP echo request or reply with `payload_length` bytes of payload.
    ///
    /// # Errors
    /// I/O errors of the output; a packet that is too large for IPv4 is invalid input.
    pub fn icmp_echo(&mut self, envelope: Envelope, echo: IcmpEcho, payload_length: u32) -> io::Result<()> {
        self.packet(&Headers::icmp_echo(envelope, echo, payload_length)?)
    }

    /// Adds a packet with these headers.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn packet(&mut self, headers: &Headers) -> io::Result<()> {
        let timestamp = (headers.time + ORIGIN).as_nanos();
        let (bytes, original_length) = (headers.as_bytes(), headers.total_length.into());
        self.writer.packet(self.interface, CapturedPacket { timestamp, bytes, original_length, comment: "" })
    }

    /// Writes what has been collected.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Ends the file.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn finish(self) -> io::Result<()> {
        self.writer.finish()
    }
}

/// IPv4 and transport header of a packet, and the bytes with which its payload begins, if they are
/// known.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    time: Instant,
    bytes: [u8; Ipv4Header::LENGTH + UdpHeader::LENGTH + MOST_HEAD],
    length: usize,
    /// Bytes of the packet.
    total_length: u16,
}

impl Headers {
    /// Those of a TCP segment with `payload_length` bytes of payload.
    ///
    /// # Errors
    /// A packet that is too large for IPv4 is invalid input.
    ///
    /// # Panics
    /// If the header's options take more than 40 bytes.
    pub fn tcp(envelope: Envelope, header: &TcpHeader, payload_length: u32) -> io::Result<Self> {
        Self::new(envelope, Protocol::TCP, header.wire_length(), payload_length, |buffer, pseudo, _| {
            header.emit(buffer, pseudo);
        })
    }

    /// Those of a UDP datagram whose payload begins with `head` and has `payload_length` further
    /// bytes.
    ///
    /// # Errors
    /// A packet that is too large for IPv4 is invalid input.
    ///
    /// # Panics
    /// If `head` is longer than [`MOST_HEAD`].
    pub fn udp(envelope: Envelope, ports: Ports, head: &[u8], payload_length: u32) -> io::Result<Self> {
        let captured = UdpHeader::LENGTH + head.len();
        Self::new(envelope, Protocol::UDP, captured, payload_length, |buffer, pseudo, length| {
            buffer[UdpHeader::LENGTH..captured].copy_from_slice(head);
            let header = UdpHeader { source_port: ports.source, destination_port: ports.destination, length };
            header.emit(buffer, pseudo.and(head));
        })
    }

    /// Those of an ICMP echo request or reply with `payload_length` bytes of payload.
    ///
    /// # Errors
    /// A packet that is too large for IPv4 is invalid input.
    pub fn icmp_echo(envelope: Envelope, echo: IcmpEcho, payload_length: u32) -> io::Result<Self> {
        Self::new(envelope, Protocol::ICMP, IcmpEcho::LENGTH, payload_length, |buffer, _, _| {
            echo.emit(EchoTypes::V4, buffer, Sum::default());
        })
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Those of a packet whose transport header, of `header_length` bytes, `emit` writes, given the
    /// pseudo header's sum and the length of header and payload.
    fn new(
        envelope: Envelope,
        protocol: Protocol,
        header_length: usize,
        payload_length: u32,
        emit: impl FnOnce(&mut [u8], Sum, u16),
    ) -> io::Result<Self> {
        let Envelope { time, source, destination, ecn, identification } = envelope;
        let captured = Ipv4Header::LENGTH + header_length;
        let total_length = u32::try_from(captured)
            .ok()
            .and_then(|headers| headers.checked_add(payload_length))
            .and_then(|total| u16::try_from(total).ok())
            .ok_or_else(|| {
                let text = format!("an IPv4 packet has at most 65535 bytes, not {captured} + {payload_length}");
                io::Error::new(io::ErrorKind::InvalidInput, text)
            })?;
        let length = total_length - Ipv4Header::LENGTH as u16;
        let mut headers = [0; Ipv4Header::LENGTH + UdpHeader::LENGTH + MOST_HEAD];
        Ipv4Header {
            dscp: 0,
            ecn,
            total_length,
            identification,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            time_to_live: TIME_TO_LIVE,
            protocol,
            source,
            destination,
        }
        .emit(&mut headers);
        let pseudo = Sum::pseudo_v4(source, destination, protocol, length.into());
        emit(&mut headers[Ipv4Header::LENGTH..], pseudo, length);
        Ok(Self { time, bytes: headers, length: captured, total_length })
    }
}

/// The ports of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// Port of the sender.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
}
