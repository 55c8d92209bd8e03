//! The format of libpcap (the IETF draft *PCAP Capture File Format*, draft-ietf-opsawg-pcap) and
//! two old dialects: versions with swapped lengths, and that of A. Kuznetsov's patch of 1999.

use airpath_core::Instant;

use super::input::Input;
use super::{ByteOrder, Interface, LinkType, OpenError, Progress, Record};
use crate::skipped::Cause;

const FILE_HEADER: usize = 24;

/// Twice libpcap's own limit of a record (`MAXIMUM_SNAPLEN`): offloading hosts store 512 KiB at
/// once.
const LONGEST: u32 = 1 << 19;
/// Maximum length of a record if the file header announces more: libpcap's limit for mass-storage
/// buses.
const LARGEST: u32 = 128 << 20;

/// Layout of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    order: ByteOrder,
    /// Nanoseconds in one unit of the fraction of a second.
    fraction: u64,
    /// Bytes of a record's header.
    record_header: usize,
}

/// Order of the two lengths in a record's header: it changed with version 2.3, but not all programs
/// followed (libpcap, `sf-pcap.c`).
#[derive(Clone, Copy, Debug)]
enum Lengths {
    /// The captured length, then that of the packet. Some drivers captured more than the packet.
    CapturedFirst,
    /// The reverse, before version 2.3.
    CapturedLast,
    /// Version 2.3: different programs wrote either; the captured length is the smaller one.
    Either,
}

/// A file, after its header.
#[derive(Debug)]
pub(super) struct File {
    layout: Layout,
    lengths: Lengths,
    link_type: LinkType,
    /// Maximum length of a record.
    longest: u32,
    /// Seconds of the previous record.
    last: Option<u32>,
}

impl Layout {
    /// Layout of a file that begins with `magic`.
    pub fn of(magic: [u8; 4]) -> Option<Self> {
        [ByteOrder::Little, ByteOrder::Big].into_iter().find_map(|order| {
            let (fraction, record_header) = match order.u32(magic) {
                0xA1B2_C3D4 => (1_000, 16),
                0xA1B2_3C4D => (1, 16),
                // Kuznetsov's header also has the interface, the protocol and the direction.
                0xA1B2_CD34 => (1_000, 24),
                _ => return None,
            };
            Some(Self { order, fraction, record_header })
        })
    }
}

impl File {
    pub fn open(layout: Layout, input: &mut Input<'_>, progress: &mut Progress) -> Result<Self, OpenError> {
        let Some(header) = input.peek::<FILE_HEADER>() else {
            return Err(OpenError::CutShort { needed: FILE_HEADER, available: input.available().len() });
        };
        let _ = input.take(FILE_HEADER);
        let word = |at: usize| layout.order.u32([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let major = layout.order.u16([header[4], header[5]]);
        let minor = layout.order.u16([header[6], header[7]]);
        if major != 2 {
            return Err(OpenError::UnknownVersion { format: "pcap", major: major.into(), minor: minor.into() });
        }
        // The upper half describes a frame check sequence; the length of the IP packet excludes it
        // anyway.
        let link_type = LinkType(word(20) as u16);
        progress.interfaces.push(Interface { link_type, snap_length: word(16), ..Interface::default() });
        let lengths = match minor {
            0..=2 => Lengths::CapturedLast,
            3 => Lengths::Either,
            _ => Lengths::CapturedFirst,
        };
        Ok(Self { layout, lengths, link_type, longest: word(16).clamp(LONGEST, LARGEST), last: None })
    }

    #[inline(always)]
    pub fn next_record<'i>(&mut self, input: &'i mut Input<'_>, progress: &mut Progress) -> Option<Record<'i>> {
        let record_header = self.layout.record_header;
        let header = match self.header(input) {
            Some(header) => header,
            None => self.header_after_damage(input, progress)?,
        };
        let length = record_header + header.captured as usize;
        if !input.fill(length) {
            progress.skipped.add(Cause::CutRecord);
            return None;
        }
        progress.frames += 1;
        self.last = Some(header.seconds);
        Some(Record {
            frame: progress.frames,
            // 2³² s and as many µs are 137 years: less than the latest supported time.
            time: Instant::from_nanos(
                u64::from(header.seconds) * 1_000_000_000 + u64::from(header.part) * self.layout.fraction,
            ),
            link_type: self.link_type,
            interface: 0,
            bytes: &input.take(length)[record_header..],
            original_length: header.original,
        })
    }

    /// The next header, which stays in the window; `None` at the end or if it is not plausible.
    #[inline(always)]
    fn header(&self, input: &mut Input<'_>) -> Option<Header> {
        if !input.fill(self.layout.record_header) {
            return None;
        }
        let header = self.parse(input.available());
        // File systems leave zeros where nothing was written.
        (header.captured <= self.longest && (header.captured, header.seconds) != (0, 0)).then_some(header)
    }

    /// Finds the next plausible header.
    #[cold]
    fn header_after_damage(&self, input: &mut Input<'_>, progress: &mut Progress) -> Option<Header> {
        if !input.fill(self.layout.record_header) {
            if !input.available().is_empty() {
                progress.skipped.add(Cause::CutRecord);
            }
            return None;
        }
        progress.skipped.add(Cause::CorruptRecord);
        self.search(input, progress)?;
        self.header(input)
    }

    /// Advances to the next plausible record: its length and time are possible, and so are those of
    /// the next one.
    fn search(&self, input: &mut Input<'_>, progress: &mut Progress) -> Option<()> {
        let size = self.layout.record_header;
        loop {
            let _ = input.take(1);
            progress.lost_bytes += 1;
            if !input.fill(size) {
                progress.lost_bytes += input.available().len() as u64;
                let _ = input.take(input.available().len());
                return None;
            }
            let header = self.parse(input.available());
            if !self.is_plausible(&header, self.last) {
                continue;
            }
            let next = size + header.captured as usize;
            let _ = input.fill(next + size);
            let after = input.available().get(next..);
            // The last record of the file has no successor.
            if after
                .is_some_and(|bytes| bytes.len() < size || self.is_plausible(&self.parse(bytes), Some(header.seconds)))
            {
                return Some(());
            }
        }
    }

    /// Parses the header at the start of `bytes`, which must be long enough.
    #[inline(always)]
    fn parse(&self, bytes: &[u8]) -> Header {
        let bytes: &[u8; 16] = bytes.first_chunk().expect("a record's header has 16 bytes at least");
        let word = |at: usize| self.layout.order.u32([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (first, second) = (word(8), word(12));
        let captured = match self.lengths {
            Lengths::CapturedFirst => first,
            Lengths::CapturedLast => second,
            Lengths::Either => first.min(second),
        };
        Header { seconds: word(0), part: word(4), captured, original: first.max(second) }
    }

    /// Whether a header is plausible for a record; `last` is the time of the previous one.
    fn is_plausible(&self, header: &Header, last: Option<u32>) -> bool {
        /// Maximum time between two successive records.
        const NEAR: u32 = 86_400;
        (1..=self.longest).contains(&header.captured)
            && header.original <= self.longest
            && u64::from(header.part) * self.layout.fraction < 1_000_000_000
            && last.is_none_or(|last| last.abs_diff(header.seconds) <= NEAR)
    }
}

/// A record's header.
struct Header {
    seconds: u32,
    /// The fraction of a second.
    part: u32,
    captured: u32,
    /// Of the packet, or of what was captured if that is more.
    original: u32,
}
