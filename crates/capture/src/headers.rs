//! The TCP headers of the packets that entered a network, in their order.
//!
//! The event log has headers in terms of stream offsets, without options. A proxy needs whole
//! headers, so a run with a proxy writes this file for its replay: packets in pcapng, without
//! payload, between addresses that stand for the server and the mobile.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use airpath_core::{Direction, Ecn, Instant};
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::tcp::TcpHeader;

use crate::read::Reader;
use crate::simulated::{Capture, Envelope};
use crate::write::Interface;

/// Addresses from the block for documentation (RFC 5737).
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const MOBILE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Writes the headers.
#[derive(Debug)]
pub struct HeaderRecorder {
    capture: Capture<File>,
    failure: Option<io::Error>,
}

impl HeaderRecorder {
    /// Begins the file of repetition `number` in `folder`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(folder: &Path, number: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let interface = Interface { name: "entry", description: "where packets enter the network" };
        let file = File::create(folder.join(file_name(number)))?;
        let capture = Capture::create(file, "TCP headers of the packets that entered, for a replay", interface)?;
        Ok(Self { capture, failure: None })
    }

    /// Adds a segment with `length` bytes of payload that enters at `time`. After an error nothing
    /// more is written; [`Self::finish`] returns the error.
    pub fn add(&mut self, time: Instant, direction: Direction, ecn: Ecn, header: &TcpHeader, length: u32) {
        if self.failure.is_some() {
            return;
        }
        let (source, destination) = match direction {
            Direction::Down => (SERVER, MOBILE),
            Direction::Up => (MOBILE, SERVER),
        };
        self.failure = self.capture.tcp(Envelope { time, source, destination, ecn }, header, length).err();
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(self) -> io::Result<()> {
        self.failure.map_or(Ok(()), Err)?;
        self.capture.finish()
    }
}

/// The name of the file of repetition `number` in its folder.
pub fn file_name(number: u64) -> String {
    format!("{number:04}.pcapng")
}

/// Reads the headers of a file, each with the bytes of payload.
///
/// # Errors
/// If it cannot be read, or is damaged.
pub fn read_headers(path: &Path) -> io::Result<Vec<(TcpHeader, u32)>> {
    let damaged = |error: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let mut reader = Reader::new(File::open(path)?).map_err(|error| damaged(&error))?;
    let mut headers = Vec::new();
    while let Some(record) = reader.next_record() {
        let (ip, transport) = Ipv4Header::parse(record.bytes).map_err(|error| damaged(&error))?;
        let (header, _) = TcpHeader::parse(transport).map_err(|error| damaged(&error))?;
        let bytes = u32::from(ip.total_length).checked_sub((Ipv4Header::LENGTH + header.wire_length()) as u32);
        headers.push((header, bytes.ok_or_else(|| damaged(&"a length is too small"))?));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_wire::tcp::{Flags, Options, Timestamps};

    #[test]
    fn what_is_written_is_read() {
        let folder = std::env::temp_dir().join(format!("airpath-headers-{}", std::process::id()));
        let mut recorder = HeaderRecorder::create(&folder, 3).expect("there is space");
        let options = Options {
            maximum_segment_size: Some(1460),
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ..Options::default()
        };
        let syn = TcpHeader { flags: Flags::SYN, sequence: 7, options, ..TcpHeader::default() };
        let data = TcpHeader { flags: Flags::ACK, sequence: 8, ..TcpHeader::default() };
        recorder.add(Instant::ZERO, Direction::Up, Ecn::NotEct, &syn, 0);
        recorder.add(Instant::from_nanos(1), Direction::Down, Ecn::Ect0, &data, 1448);
        recorder.finish().expect("there is space");
        let read = read_headers(&folder.join(file_name(3)));
        fs::remove_dir_all(&folder).expect("it was created");
        assert_eq!(read.expect("it was written"), [(syn, 0), (data, 1448)]);
    }
}
