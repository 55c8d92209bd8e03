//! Reads the records of capture files.
//!
//! ```
//! use airpath_capture::read::Reader;
//! # let file = [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
//!
//! let mut reader = Reader::new(&file[..])?;
//! while let Some(record) = reader.next_record() {
//!     println!("{}: {} bytes at {}", record.frame, record.original_length, record.time);
//! }
//! assert_eq!(reader.skipped().total(), 0);
//! # Ok::<(), airpath_capture::read::OpenError>(())
//! ```
//!
//! A damaged or truncated file is read as far as possible; [`Reader::ending`] and
//! [`Reader::skipped`] report what was left out. A record is neither allocated nor copied: it
//! borrows the last block of the file that was read, until the next record is requested.

mod compressed;
mod input;
mod interface;
mod pcap;
mod pcapng;
mod snoop;

use std::io::{self, Read};

use airpath_core::Instant;

use crate::skipped::{Cause, Counts};
use input::Input;

pub use interface::{Interface, LATEST};

/// A frame as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number in the file, from 1 as Wireshark counts.
    pub frame: u64,
    /// When, in nanoseconds since 1 January 1970, UTC.
    pub time: Instant,
    /// The type of its first header.
    pub link_type: LinkType,
    /// The interface, in the order in which the file describes them; 0 where the format has no
    /// interfaces.
    pub interface: u32,
    /// Its first bytes, as many as were kept.
    pub bytes: &'a [u8],
    /// Original length in bytes, not less than the captured length.
    pub original_length: u32,
}

/// The first header of a frame: a number of the registry of link types (the LINKTYPE values of
/// tcpdump.org and of the pcapng draft).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD's loopback: the address family, in the byte order of the host.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without the address and control bytes of HDLC.
    pub const PPP: Self = Self(9);
    /// FDDI.
    pub const FDDI: Self = Self(10);
    /// IPv4 or IPv6, by the version field: the number of some BSDs.
    pub const RAW_BSD: Self = Self(12);
    /// The same: the number of OpenBSD.
    pub const RAW_OPENBSD: Self = Self(14);
    /// PPP in frames of HDLC, or Cisco's HDLC.
    pub const PPP_HDLC: Self = Self(50);
    /// PPP over Ethernet, without the Ethernet header.
    pub const PPP_ETHER: Self = Self(51);
    /// IPv4 or IPv6, by the version field.
    pub const RAW: Self = Self(101);
    /// Cisco's HDLC.
    pub const CISCO_HDLC: Self = Self(104);
    /// OpenBSD's loopback: the address family, in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux cooked, version 1: from the interface "any".
    pub const LINUX_COOKED: Self = Self(113);
    /// PPP after a byte for the direction.
    pub const PPP_WITH_DIRECTION: Self = Self(204);
    /// IPv4.
    pub const IPV4: Self = Self(228);
    /// IPv6.
    pub const IPV6: Self = Self(229);
    /// Linux' netfilter log.
    pub const NETFILTER_LOG: Self = Self(239);
    /// Linux cooked, version 2.
    pub const LINUX_COOKED_2: Self = Self(276);
}

/// Reads the records of a capture.
pub struct Reader<'a> {
    input: Input<'a>,
    format: Format,
    progress: Progress,
}

enum Format {
    Pcap(pcap::File),
    Pcapng(pcapng::File),
    Snoop(snoop::File),
}

/// Counters of the records read so far.
#[derive(Debug, Default)]
struct Progress {
    /// Packets, including those that could not be read.
    frames: u64,
    skipped: Counts,
    /// Bytes that were skipped in search of the next record.
    lost_bytes: u64,
    /// Packets without a time of their own.
    untimed: u64,
    interfaces: Vec<Interface>,
}

/// What a file is that begins with these bytes, and what to do.
fn begins_with(bytes: [u8; 4]) -> (String, &'static str) {
    let archive = |name| (format!("it is {name}"), "unpack it, and name the capture in it");
    let converted = |name| (format!("it is {name}"), "convert it to pcapng with Wireshark's `editcap`");
    let known = "known are pcap, pcapng and snoop, plain or compressed by gzip or zstd";
    match &bytes {
        b"PK\x03\x04" => archive("a ZIP archive"),
        b"7z\xBC\xAF" => archive("a 7-Zip archive"),
        b"Rar!" => archive("a RAR archive"),
        b"BZh1" | b"BZh2" | b"BZh3" | b"BZh4" | b"BZh5" | b"BZh6" | b"BZh7" | b"BZh8" | b"BZh9" => {
            archive("compressed by bzip2")
        }
        b"\xFD7zX" => archive("compressed by xz"),
        b"XCP\0" | b"TRSN" => converted("a capture of Sniffer"),
        b"RTSS" | b"GMBU" => converted("a capture of Microsoft Network Monitor"),
        b"\x89PNG" => ("it is a PNG image".to_owned(), known),
        b"%PDF" => ("it is a PDF document".to_owned(), known),
        b"PAR1" => ("it is a Parquet file".to_owned(), known),
        b"<!do" | b"<!DO" | b"<htm" | b"<HTM" => ("it is an HTML page".to_owned(), known),
        text if text.iter().all(|byte| byte.is_ascii_graphic() || b" \t\r\n".contains(byte)) => {
            (format!("it is a text file, which begins with '{}'", text.escape_ascii()), known)
        }
        other => {
            let bytes = other.map(|byte| format!("{byte:02x}")).join(" ");
            (format!("it begins with the bytes {bytes}"), known)
        }
    }
}

/// Why a capture could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// It begins like no supported format.
    #[error("not a capture: {}", begins_with(*.0).0)]
    UnknownFormat([u8; 4]),
    /// The file header is cut off.
    #[error("the file header is cut short: {needed} bytes are needed, {available} are there")]
    CutShort {
        /// Bytes that it needs.
        needed: usize,
        /// Number of available bytes.
        available: usize,
    },
    /// An unsupported data link of snoop.
    #[error("the snoop file has data link {0}, which is not supported")]
    UnknownDataLink(u32),
    /// An unsupported version of the format.
    #[error("{format} of version {major}.{minor} is not known")]
    UnknownVersion {
        /// Which format.
        format: &'static str,
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
    },
    /// It is compressed, and ends before the first bytes of the capture.
    #[error("the compressed file is cut short")]
    CutCompressed,
    /// The first bytes could not be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
}

impl OpenError {
    /// What to do about it, where that is known.
    pub fn next_step(&self) -> Option<&'static str> {
        match self {
            Self::Empty => Some("copy it again, or check the program that captured"),
            Self::UnknownFormat(bytes) => Some(begins_with(*bytes).1),
            Self::CutShort { .. } => Some("copy the file again"),
            Self::CutCompressed => Some("copy it again"),
            Self::UnknownDataLink(_) => Some("Ethernet (4) and FDDI (8) are supported"),
            Self::UnknownVersion { .. } | Self::Unreadable(_) => None,
        }
    }

    /// Whether the file is only the beginning of a header.
    pub const fn is_beginning(&self) -> bool {
        matches!(self, Self::Empty | Self::CutShort { .. } | Self::CutCompressed)
    }
}

/// How a capture ended.
#[derive(Debug)]
pub enum Ending<'a> {
    /// After its last whole record, or not yet.
    Whole,
    /// Within a record.
    CutShort,
    /// It could not be read further: the medium failed, or compressed data is damaged.
    Unreadable(&'a io::Error),
}

impl<'a> Reader<'a> {
    /// Begins to read a capture, whatever its format.
    ///
    /// Any [`Read`] works without a buffer of its own. It is read in blocks of 1 MiB; data that has
    /// arrived is used before the reader waits for more.
    ///
    /// # Errors
    /// Where the first bytes cannot be read or belong to no supported format.
    pub fn new(source: impl Read + Send + 'a) -> Result<Self, OpenError> {
        let mut input = compressed::unpacked(Input::new(Box::new(source)));
        let Some(magic) = input.peek::<4>() else {
            return Err(match input.take_error() {
                Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => OpenError::CutCompressed,
                Some(error) => error.into(),
                None if input.available().is_empty() => OpenError::Empty,
                None => OpenError::CutShort { needed: 4, available: input.available().len() },
            });
        };
        let mut progress = Progress::default();
        let format = match (magic, pcap::Layout::of(magic)) {
            (_, Some(layout)) => Format::Pcap(pcap::File::open(layout, &mut input, &mut progress)?),
            (pcapng::SECTION_BEGINS, None) => Format::Pcapng(pcapng::File::open(&mut input)?),
            (snoop::MAGIC, None) => Format::Snoop(snoop::File::open(&mut input, &mut progress)?),
            _ => return Err(OpenError::UnknownFormat(magic)),
        };
        Ok(Self { input, format, progress })
    }

    /// The next record; `None` at the end.
    // In line, the record stays in registers: through memory it costs as much again.
    #[inline(always)]
    pub fn next_record(&mut self) -> Option<Record<'_>> {
        let other = match &mut self.format {
            Format::Pcap(file) => return file.next_record(&mut self.input, &mut self.progress),
            Format::Pcapng(file) => file.next_record(&mut self.input, &mut self.progress),
            Format::Snoop(file) => file.next_record(&mut self.input, &mut self.progress),
        };
        // Copied by field, so that only these fields pass through memory.
        let Record { frame, time, link_type, interface, bytes, original_length } = other?;
        Some(Record { frame, time, link_type, interface, bytes, original_length })
    }

    /// What was skipped so far.
    pub const fn skipped(&self) -> &Counts {
        &self.progress.skipped
    }

    /// Packets so far, including those that could not be read.
    pub const fn frames(&self) -> u64 {
        self.progress.frames
    }

    /// Bytes skipped so far because they contain no plausible record.
    pub const fn lost_bytes(&self) -> u64 {
        self.progress.lost_bytes
    }

    /// Packets so far without a time of their own (simple packet blocks of pcapng): each has the
    /// time of the previous one.
    pub const fn untimed(&self) -> u64 {
        self.progress.untimed
    }

    /// The interfaces so far; [`Record::interface`] is an index into them.
    pub fn interfaces(&self) -> &[Interface] {
        &self.progress.interfaces
    }

    /// How the capture ended, once there are no more records.
    pub fn ending(&self) -> Ending<'_> {
        match self.input.error() {
            Some(error) => Ending::Unreadable(error),
            None if self.skipped().of(Cause::CutRecord) > 0 => Ending::CutShort,
            None => Ending::Whole,
        }
    }
}

/// The byte order of numbers in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    #[inline]
    const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    const fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}

#[cfg(test)]
mod tests;
