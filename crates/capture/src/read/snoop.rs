//! The format of Solaris' snoop, version 2 (RFC 1761). All numbers are in network byte order.

use airpath_core::Instant;

use super::input::Input;
use super::{Interface, LinkType, OpenError, Progress, Record};
use crate::skipped::Cause;

/// The first four of the eight magic bytes; `REST_OF_MAGIC` follows.
pub(super) const MAGIC: [u8; 4] = *b"snoo";
const REST_OF_MAGIC: [u8; 4] = *b"p\0\0\0";

const FILE_HEADER: usize = 16;
const RECORD_HEADER: usize = 24;
/// Longer than any packet of a snoop medium.
const LONGEST: usize = 1 << 19;

/// A file, after its header.
#[derive(Debug)]
pub(super) struct File;

impl File {
    pub fn open(input: &mut Input<'_>, progress: &mut Progress) -> Result<Self, OpenError> {
        let Some(header) = input.peek::<FILE_HEADER>() else {
            return Err(OpenError::CutShort { needed: FILE_HEADER, available: input.available().len() });
        };
        if header[4..8] != REST_OF_MAGIC {
            return Err(OpenError::UnknownFormat(MAGIC));
        }
        let _ = input.take(FILE_HEADER);
        let version = word(&header, 8);
        if version != 2 {
            return Err(OpenError::UnknownVersion { format: "snoop", major: version, minor: 0 });
        }
        // RFC 1761's own registry of data links.
        let link_type = match word(&header, 12) {
            0 | 4 => LinkType::ETHERNET,
            8 => LinkType::FDDI,
            other => return Err(OpenError::UnknownDataLink(other)),
        };
        progress.interfaces.push(Interface { link_type, ..Interface::default() });
        Ok(Self)
    }

    pub fn next_record<'i>(&mut self, input: &'i mut Input<'_>, progress: &mut Progress) -> Option<Record<'i>> {
        let Some(header) = input.peek::<RECORD_HEADER>() else {
            if !input.available().is_empty() {
                progress.skipped.add(Cause::CutRecord);
            }
            return None;
        };
        let (original, captured) = (word(&header, 0), word(&header, 4) as usize);
        // Header, data and padding.
        let length = word(&header, 8) as usize;
        let [seconds, micros] = [word(&header, 16), word(&header, 20)].map(u64::from);
        progress.frames += 1;
        if length > LONGEST || length < RECORD_HEADER + captured {
            progress.skipped.add(Cause::CorruptRecord);
            return None;
        }
        if !input.fill(length) {
            progress.skipped.add(Cause::CutRecord);
            return None;
        }
        let interface = &mut progress.interfaces[0];
        interface.dropped = interface.dropped.max(word(&header, 12).into());
        Some(Record {
            frame: progress.frames,
            time: Instant::from_nanos(seconds * 1_000_000_000 + micros * 1_000),
            link_type: interface.link_type,
            interface: 0,
            bytes: &input.take(length)[RECORD_HEADER..RECORD_HEADER + captured],
            original_length: original.max(captured as u32),
        })
    }
}

fn word(header: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}
