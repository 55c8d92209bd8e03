//! Writer of a libpcap file with nanoseconds.

use std::io::{self, Write};
use std::net::Ipv4Addr;

use airpath_core::Instant;
use airpath_tcp::Segment;
use airpath_wire::checksum::Sum;
use airpath_wire::ip::Protocol;
use airpath_wire::ipv4::Ipv4Header;

const NANOSECONDS: u32 = 0xA1B2_3C4D;
const ETHERNET: u32 = 1;
const ETHERNET_HEADER: usize = 14;
const RECORD_HEADER: usize = 16;
/// Start time of the file, in seconds after 1 January 1970.
const ORIGIN: u64 = 1_000_000_000;

/// A capture being written.
pub struct File<W> {
    out: W,
    snap_length: usize,
    packets: u64,
    /// Record header and packet; the payload stays zero.
    record: Vec<u8>,
}

impl<W: Write> File<W> {
    pub fn create(mut out: W, snap_length: u32) -> io::Result<Self> {
        // Version 2.4, and two unused words.
        for word in [NANOSECONDS, 4 << 16 | 2, 0, 0, snap_length, ETHERNET] {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { out, snap_length: snap_length as usize, packets: 0, record: vec![0; 1 << 16] })
    }

    /// Adds a segment with its headers; `[source, destination]` are the addresses.
    pub fn packet(
        &mut self,
        time: Instant,
        [source, destination]: [Ipv4Addr; 2],
        identification: u16,
        segment: &Segment,
    ) -> io::Result<()> {
        let transport = segment.header.wire_length() as u32 + segment.length;
        let original = ETHERNET_HEADER + Ipv4Header::LENGTH + transport as usize;
        let captured = original.min(self.snap_length);
        let (header, frame) = self.record.split_at_mut(RECORD_HEADER);
        let nanoseconds = time.as_nanos() % 1_000_000_000;
        let numbers = [ORIGIN + time.as_nanos() / 1_000_000_000, nanoseconds, captured as u64, original as u64];
        for (place, number) in header.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&(number as u32).to_le_bytes());
        }
        let (ethernet, packet) = frame.split_at_mut(ETHERNET_HEADER);
        ethernet[12..].copy_from_slice(&[0x08, 0x00]);
        Ipv4Header {
            dscp: 0,
            ecn: segment.ecn,
            total_length: (original - ETHERNET_HEADER) as u16,
            identification,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            time_to_live: 64,
            protocol: Protocol::TCP,
            source,
            destination,
        }
        .emit(packet);
        let transport_header = &mut packet[Ipv4Header::LENGTH..];
        segment.header.emit(transport_header, Sum::pseudo_v4(source, destination, Protocol::TCP, transport));
        // Remains of a longer header are not payload.
        transport_header[segment.header.wire_length()..][..40].fill(0);
        self.packets += 1;
        self.out.write_all(&self.record[..RECORD_HEADER + captured])
    }

    /// Ends the file, and returns the number of packets.
    pub fn finish(mut self) -> io::Result<u64> {
        self.out.flush()?;
        Ok(self.packets)
    }
}
