//! The headers of the packets that entered a network, in their order.
//!
//! The event log has TCP headers only, in terms of stream offsets and without options. A proxy, and
//! a bearer that reads headers, need more. So a run with one of them writes this file for its
//! replay: the first bytes of each packet, in pcapng.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use airpath_core::Instant;
use airpath_wire::ip::IpHeader;
use airpath_wire::tcp::TcpHeader;

use crate::decode::tcp_header;
use crate::read::Reader;
use crate::simulated::ORIGIN;
use crate::write::{CapturedPacket, Interface, InterfaceId, Writer};

/// Writes the headers.
#[derive(Debug)]
pub struct HeaderRecorder {
    writer: Writer<File>,
    interface: InterfaceId,
    scratch: Vec<u8>,
    failure: Option<io::Error>,
}

impl HeaderRecorder {
    /// Begins the file of repetition `number` in `folder`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(folder: &Path, number: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let file = File::create(folder.join(file_name(number)))?;
        let mut writer = Writer::new(file, "headers of the packets that entered, for a replay")?;
        let interface = Interface { name: "entry", description: "where packets enter the network" };
        let interface = writer.add_interface(interface)?;
        Ok(Self { writer, interface, scratch: Vec::new(), failure: None })
    }

    /// Adds a packet of `size` bytes that enters at `time`; `write` appends its headers. After an
    /// error nothing more is written; [`Self::finish`] returns the error.
    pub fn add(&mut self, time: Instant, size: u32, write: impl FnOnce(&mut Vec<u8>)) {
        if self.failure.is_some() {
            return;
        }
        self.scratch.clear();
        write(&mut self.scratch);
        let (timestamp, original_length) = ((time + ORIGIN).as_nanos(), size.max(self.scratch.len() as u32));
        let packet = CapturedPacket { timestamp, bytes: &self.scratch, original_length, comment: "" };
        self.failure = self.writer.packet(self.interface, packet).err();
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(self) -> io::Result<()> {
        self.failure.map_or(Ok(()), Err)?;
        self.writer.finish()
    }
}

/// The name of the file of repetition `number` in its folder.
pub fn file_name(number: u64) -> String {
    format!("{number:04}.pcapng")
}

/// The headers of a file, by the number of the packet, from 0 in the order in which they entered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedHeaders {
    bytes: Vec<u8>,
    /// Where the headers of each packet end in `bytes`, and the size of the packet.
    packets: Vec<(usize, u32)>,
}

/// A recorded TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedSegment {
    /// Whether its packet has an IPv6 header.
    pub is_ipv6: bool,
    /// Its header.
    pub header: TcpHeader,
    /// Bytes of its payload.
    pub length: u32,
}

impl RecordedHeaders {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub fn read(path: &Path) -> io::Result<Self> {
        let damaged = |error: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        let mut reader = Reader::new(File::open(path)?).map_err(|error| damaged(&error))?;
        let mut headers = Self::default();
        while let Some(record) = reader.next_record() {
            IpHeader::parse(record.bytes).map_err(|error| damaged(&error))?;
            headers.bytes.extend_from_slice(record.bytes);
            headers.packets.push((headers.bytes.len(), record.original_length));
        }
        Ok(headers)
    }

    /// The number of packets.
    pub const fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The first bytes of a packet, from the IP header on; empty if there is no such packet.
    pub fn get(&self, packet: usize) -> &[u8] {
        let Some(&(end, _)) = self.packets.get(packet) else { return &[] };
        let start = packet.checked_sub(1).map_or(0, |before| self.packets[before].0);
        &self.bytes[start..end]
    }

    /// The TCP segment of a packet, if it is one.
    pub fn segment(&self, packet: usize) -> Option<RecordedSegment> {
        let (bytes, size) = (self.get(packet), self.packets.get(packet)?.1);
        let (header, length) = tcp_header(bytes, size)?;
        Some(RecordedSegment { is_ipv6: bytes[0] >> 4 == 6, header, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Envelope, Headers, Ports};
    use airpath_core::Ecn;
    use airpath_wire::tcp::{Flags, Options, Timestamps};
    use std::net::Ipv4Addr;

    #[test]
    fn what_is_written_is_read() {
        let folder = std::env::temp_dir().join(format!("airpath-headers-{}", std::process::id()));
        let options = Options {
            maximum_segment_size: Some(1460),
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ..Options::default()
        };
        let syn = TcpHeader { flags: Flags::SYN, sequence: 7, options, ..TcpHeader::default() };
        let envelope = Envelope {
            time: Instant::ZERO,
            source: Ipv4Addr::new(192, 0, 2, 1),
            destination: Ipv4Addr::new(192, 0, 2, 2),
            ecn: Ecn::Ect0,
            identification: 0,
        };
        let segment = Headers::tcp(envelope, &syn, 100).expect("it has room");
        let datagram = Headers::udp(envelope, Ports { source: 1, destination: 2 }, b"head", 50).expect("it has room");
        // IPv6 with a header of destination options.
        let mut v6 = vec![0; 48];
        (v6[0], v6[5], v6[6], v6[40]) = (0x60, 28 + 30, 60, 6);
        let plain = TcpHeader { sequence: 9, ..TcpHeader::default() };
        let start = v6.len();
        v6.resize(start + plain.wire_length(), 0);
        plain.emit(&mut v6[start..], airpath_wire::checksum::Sum::default());
        v6.extend_from_slice(b"some");
        let mut recorder = HeaderRecorder::create(&folder, 3).expect("there is space");
        for (size, bytes) in [(156, segment.as_bytes()), (82, datagram.as_bytes()), (98, &v6)] {
            recorder.add(Instant::ZERO, size, |out| out.extend_from_slice(bytes));
        }
        recorder.finish().expect("there is space");
        let read = RecordedHeaders::read(&folder.join(file_name(3)));
        fs::remove_dir_all(&folder).expect("it was created");
        let read = read.expect("it was written");
        assert_eq!((read.len(), read.is_empty()), (3, false));
        assert_eq!(
            (0..4).map(|packet| read.get(packet)).collect::<Vec<_>>(),
            [segment.as_bytes(), datagram.as_bytes(), &v6, &[]]
        );
        assert_eq!(read.segment(0), Some(RecordedSegment { is_ipv6: false, header: syn, length: 100 }));
        assert_eq!((read.segment(1), read.segment(3)), (None, None));
        assert_eq!(read.segment(2), Some(RecordedSegment { is_ipv6: true, header: plain, length: 30 }));
    }
}
