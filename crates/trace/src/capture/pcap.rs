//! The format of libpcap (the IETF draft *PCAP Capture File Format*, draft-ietf-opsawg-pcap), and the two dialects
//! that are still met: old versions with their lengths swapped, and that of A. Kuznetsov's patch of 1999.

use airpath_core::Instant;

use super::input::Input;
use super::{ByteOrder, LinkType, OpenError, Progress, Record};
use crate::passed_over::Cause;

const FILE_HEADER: usize = 24;

/// libpcap's own limit of what a record holds (`MAXIMUM_SNAPLEN`), twice: offloading hosts keep 512 KiB at once.
const LONGEST: u32 = 1 << 19;

/// How numbers are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    order: ByteOrder,
    /// Nanoseconds in one unit of the fraction of a second.
    fraction: u64,
    /// Bytes of a record's header.
    record_header: usize,
}

/// A file, behind its header.
#[derive(Debug)]
pub(super) struct File {
    layout: Layout,
    link_type: LinkType,
    /// What a record may hold.
    longest: u32,
}

impl Layout {
    /// That of a file that begins with `magic`.
    pub fn of(magic: [u8; 4]) -> Option<Self> {
        [ByteOrder::Little, ByteOrder::Big].into_iter().find_map(|order| {
            let (fraction, record_header) = match order.u32(magic) {
                0xA1B2_C3D4 => (1_000, 16),
                0xA1B2_3C4D => (1, 16),
                // Kuznetsov's has the interface, the protocol and the direction besides.
                0xA1B2_CD34 => (1_000, 24),
                _ => return None,
            };
            Some(Self { order, fraction, record_header })
        })
    }
}

impl File {
    pub fn open(layout: Layout, input: &mut Input<'_>) -> Result<Self, OpenError> {
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
        // The upper half tells of a frame check sequence, which the length of the IP packet leaves out anyway.
        let link_type = LinkType(word(20) as u16);
        Ok(Self { layout, link_type, longest: word(16).clamp(LONGEST, 128 << 20) })
    }

    #[inline]
    pub fn next_record<'i>(&mut self, input: &'i mut Input<'_>, progress: &mut Progress) -> Option<Record<'i>> {
        let Layout { order, fraction, record_header } = self.layout;
        if !input.fill(record_header) {
            if !input.available().is_empty() {
                progress.passed_over.add(Cause::CutRecord);
            }
            return None;
        }
        let header: &[u8; 16] = input.available().first_chunk().expect("a record's header has 16 bytes at least");
        let word = |at: usize| order.u32([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (seconds, part) = (word(0), word(4));
        // Before version 2.4 some programs wrote the two lengths in the other order; the smaller is what was kept.
        let (captured, original) = (word(8).min(word(12)), word(8).max(word(12)));
        progress.frames += 1;
        if captured > self.longest {
            progress.passed_over.add(Cause::CorruptRecord);
            return None;
        }
        let length = record_header + captured as usize;
        if !input.fill(length) {
            progress.passed_over.add(Cause::CutRecord);
            return None;
        }
        Some(Record {
            frame: progress.frames,
            // 2³² s and as many µs are 293 years at most.
            time: Instant::from_nanos(u64::from(seconds) * 1_000_000_000 + u64::from(part) * fraction),
            link_type: self.link_type,
            interface: 0,
            bytes: &input.take(length)[record_header..],
            original_length: original,
        })
    }
}
