//! The format of Wireshark (the IETF draft *pcapng Capture File Format*, draft-ietf-opsawg-pcapng).
//!
//! A file is a sequence of blocks. Each block has a type, and its length at both ends. A section
//! header block begins a section with its own byte order and interfaces. The draft requires that
//! blocks of unknown types are skipped; only those of packets, interfaces and statistics are used.

use airpath_core::Instant;

use super::input::Input;
use super::interface::Clock;
use super::{ByteOrder, Interface, LinkType, OpenError, Progress, Record};
use crate::pcapng::{
    BYTE_ORDER_MAGIC, DECRYPTION_SECRETS, ENHANCED_PACKET, EPB_DROPCOUNT, IF_DESCRIPTION, IF_NAME, IF_TSOFFSET,
    IF_TSRESOL, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, ISB_IFDROP, ISB_OSDROP, NAME_RESOLUTION, OBSOLETE_PACKET,
    SECTION_HEADER, SIMPLE_PACKET,
};
use crate::skipped::Cause;

/// [`SECTION_HEADER`] as stored in a file, in either byte order.
pub(super) const SECTION_BEGINS: [u8; 4] = SECTION_HEADER.to_be_bytes();

/// Type, and the length at both ends.
const FRAME: usize = 12;
/// Maximum length of a block: the limit of Wireshark.
const LONGEST: usize = 16 << 20;
/// Maximum number of interfaces of a file. Only damaged files have more.
const MOST_INTERFACES: usize = 1 << 16;

/// A file.
#[derive(Debug)]
pub(super) struct File {
    order: ByteOrder,
    /// Clocks, by interface of the file.
    clocks: Vec<Clock>,
    /// The first interface of this section.
    section: usize,
    /// Time of the previous packet.
    last: Instant,
}

/// Fields of a packet's block, and where the packet lies in it.
struct Packet {
    interface: usize,
    time: Option<u64>,
    start: usize,
    captured: usize,
    original: u32,
    dropped: u64,
}

impl File {
    /// Reads the first section header.
    pub fn open(input: &mut Input<'_>) -> Result<Self, OpenError> {
        let Some(header) = input.peek::<16>() else {
            return Err(OpenError::CutShort { needed: 28, available: input.available().len() });
        };
        let order = byte_order([header[8], header[9], header[10], header[11]])
            .ok_or(OpenError::UnknownFormat([header[8], header[9], header[10], header[11]]))?;
        let version = [order.u16([header[12], header[13]]), order.u16([header[14], header[15]])];
        if version[0] != 1 {
            let [major, minor] = version.map(u32::from);
            return Err(OpenError::UnknownVersion { format: "pcapng", major, minor });
        }
        Ok(Self { order, clocks: Vec::new(), section: 0, last: Instant::ZERO })
    }

    pub fn next_record<'i>(&mut self, input: &'i mut Input<'_>, progress: &mut Progress) -> Option<Record<'i>> {
        loop {
            let (kind, length) = self.block(input, progress)?;
            let body = &input.available()[8..length - 4];
            let packet = match kind {
                ENHANCED_PACKET => self.enhanced(body),
                OBSOLETE_PACKET => self.obsolete(body),
                SIMPLE_PACKET => self.simple(body, &progress.interfaces),
                other => {
                    self.remark(other, body, progress);
                    let _ = input.take(length);
                    continue;
                }
            };
            progress.frames += 1;
            match self.place(packet, progress) {
                Ok((packet, time)) => {
                    let block = input.take(length);
                    let start = 8 + packet.start;
                    return Some(Record {
                        frame: progress.frames,
                        time,
                        link_type: progress.interfaces[packet.interface].link_type,
                        interface: packet.interface as u32,
                        bytes: &block[start..start + packet.captured],
                        original_length: packet.original.max(packet.captured as u32),
                    });
                }
                Err(cause) => {
                    progress.skipped.add(cause);
                    let _ = input.take(length);
                }
            }
        }
    }

    /// Type and length of the next block, if the window contains all of it.
    #[inline]
    fn block(&mut self, input: &mut Input<'_>, progress: &mut Progress) -> Option<(u32, usize)> {
        loop {
            if !input.fill(FRAME) {
                if !input.available().is_empty() {
                    progress.skipped.add(Cause::CutRecord);
                }
                return None;
            }
            let header: &[u8; 12] = input.available().first_chunk().expect("the window was filled");
            if header[..4] == SECTION_BEGINS
                && let Some(order) = byte_order([header[8], header[9], header[10], header[11]])
            {
                self.order = order;
            }
            let kind = self.order.u32([header[0], header[1], header[2], header[3]]);
            let length = self.order.u32([header[4], header[5], header[6], header[7]]) as usize;
            if (FRAME..=LONGEST).contains(&length) && length.is_multiple_of(4) {
                if !input.fill(length) {
                    progress.skipped.add(Cause::CutRecord);
                    return None;
                }
                let end: &[u8; 4] = input.available()[length - 4..].first_chunk().expect("the window was filled");
                if self.order.u32(*end) as usize == length {
                    return Some((kind, length));
                }
            }
            progress.skipped.add(Cause::CorruptRecord);
            self.search(input, progress)?;
        }
    }

    /// Advances to the next plausible block: a known type, and the same length at both ends.
    #[cold]
    fn search(&self, input: &mut Input<'_>, progress: &mut Progress) -> Option<()> {
        loop {
            let _ = input.take(1);
            progress.lost_bytes += 1;
            if !input.fill(FRAME) {
                progress.lost_bytes += input.available().len() as u64;
                return None;
            }
            let header: &[u8; 12] = input.available().first_chunk().expect("the window was filled");
            let (mut order, begins) = (self.order, header[..4] == SECTION_BEGINS);
            if begins {
                let Some(detected) = byte_order([header[8], header[9], header[10], header[11]]) else { continue };
                order = detected;
            }
            let kind = order.u32([header[0], header[1], header[2], header[3]]);
            let length = order.u32([header[4], header[5], header[6], header[7]]) as usize;
            let known = (INTERFACE_DESCRIPTION..=ENHANCED_PACKET).contains(&kind) || kind == DECRYPTION_SECRETS;
            if !(begins || known) || !(FRAME..=LONGEST).contains(&length) || !length.is_multiple_of(4) {
                continue;
            }
            if input.fill(length) && input.available()[length - 4..length] == input.available()[4..8] {
                return Some(());
            }
        }
    }

    /// A block that holds no packet.
    #[cold]
    fn remark(&mut self, kind: u32, body: &[u8], progress: &mut Progress) {
        match kind {
            _ if kind == SECTION_HEADER => self.section = self.clocks.len(),
            INTERFACE_DESCRIPTION => match self.interface(body) {
                Some((interface, clock)) if self.clocks.len() < MOST_INTERFACES => {
                    progress.interfaces.push(interface);
                    self.clocks.push(clock);
                }
                _ => progress.skipped.add(Cause::MalformedBlock),
            },
            INTERFACE_STATISTICS => {
                if self.statistics(body, &mut progress.interfaces).is_none() {
                    progress.skipped.add(Cause::MalformedBlock);
                }
            }
            NAME_RESOLUTION => {}
            _ => progress.skipped.add(Cause::OtherBlock),
        }
    }

    fn interface(&self, body: &[u8]) -> Option<(Interface, Clock)> {
        let fields: &[u8; 8] = body.first_chunk()?;
        let mut interface = Interface {
            link_type: LinkType(self.order.u16([fields[0], fields[1]])),
            snap_length: self.order.u32([fields[4], fields[5], fields[6], fields[7]]),
            ..Interface::default()
        };
        let mut clock = Clock::MICROSECONDS;
        for (code, value) in (Options { order: self.order, bytes: &body[8..] }) {
            match (code, value) {
                (IF_NAME, text) => interface.name = String::from_utf8_lossy(text).into_owned(),
                (IF_DESCRIPTION, text) => interface.description = String::from_utf8_lossy(text).into_owned(),
                (IF_TSRESOL, [resolution, ..]) => clock = clock.with_resolution(*resolution),
                (IF_TSOFFSET, value) => {
                    clock = clock.with_offset(self.order.u64(*value.first_chunk()?).cast_signed());
                }
                _ => {}
            }
        }
        Some((interface, clock))
    }

    /// Packets that were dropped since the capture began; the last such block counts.
    fn statistics(&self, body: &[u8], interfaces: &mut [Interface]) -> Option<()> {
        let fields: &[u8; 12] = body.first_chunk()?;
        let number = self.order.u32([fields[0], fields[1], fields[2], fields[3]]) as usize;
        let interface = interfaces.get_mut(self.section + number)?;
        let dropped = (Options { order: self.order, bytes: &body[12..] })
            .filter(|(code, _)| matches!(*code, ISB_IFDROP | ISB_OSDROP))
            .filter_map(|(_, value)| value.first_chunk())
            .fold(0u64, |sum, value| sum.saturating_add(self.order.u64(*value)));
        // The packets' own drop counts may already include these.
        interface.dropped = interface.dropped.max(dropped);
        Some(())
    }

    #[inline]
    fn enhanced(&self, body: &[u8]) -> Option<Packet> {
        let fields: &[u8; 20] = body.first_chunk()?;
        let word = |at: usize| self.order.u32([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]]);
        let captured = word(12) as usize;
        let padded = 20 + captured.next_multiple_of(4);
        // No options, in nearly all files.
        let dropped = if body.len() > padded { self.dropped(&body[padded..]) } else { 0 };
        Some(Packet {
            interface: self.section + word(0) as usize,
            time: Some(u64::from(word(4)) << 32 | u64::from(word(8))),
            start: 20,
            captured,
            original: word(16),
            dropped,
        })
        .filter(|packet| packet.captured <= body.len() - 20)
    }

    /// Packets that were dropped since the one before it on the same interface.
    fn dropped(&self, options: &[u8]) -> u64 {
        (Options { order: self.order, bytes: options })
            .find_map(|(code, value)| value.first_chunk().filter(|_| code == EPB_DROPCOUNT))
            .map_or(0, |value| self.order.u64(*value))
    }

    fn obsolete(&self, body: &[u8]) -> Option<Packet> {
        let fields: &[u8; 20] = body.first_chunk()?;
        let word = |at: usize| self.order.u32([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]]);
        let dropped = match self.order.u16([fields[2], fields[3]]) {
            // Unknown.
            u16::MAX => 0,
            dropped => dropped.into(),
        };
        Some(Packet {
            interface: self.section + usize::from(self.order.u16([fields[0], fields[1]])),
            time: Some(u64::from(word(4)) << 32 | u64::from(word(8))),
            start: 20,
            captured: word(12) as usize,
            original: word(16),
            dropped,
        })
        .filter(|packet| packet.captured <= body.len() - 20)
    }

    /// Belongs to the first interface, whose snap length limits its captured length.
    fn simple(&self, body: &[u8], interfaces: &[Interface]) -> Option<Packet> {
        let original = self.order.u32(*body.first_chunk()?);
        let limit = match interfaces.get(self.section)?.snap_length {
            0 => u32::MAX,
            limit => limit,
        };
        let captured = (original.min(limit) as usize).min(body.len() - 4);
        Some(Packet { interface: self.section, time: None, start: 4, captured, original, dropped: 0 })
    }

    /// The packet's time, once its interface is identified.
    #[inline]
    fn place(&mut self, packet: Option<Packet>, progress: &mut Progress) -> Result<(Packet, Instant), Cause> {
        let packet = packet.ok_or(Cause::MalformedBlock)?;
        let clock = self.clocks.get(packet.interface).ok_or(Cause::UnknownInterface)?;
        if packet.dropped > 0 {
            let dropped = &mut progress.interfaces[packet.interface].dropped;
            *dropped = dropped.saturating_add(packet.dropped);
        }
        match packet.time {
            Some(units) => self.last = clock.time(units).ok_or(Cause::TimeOutOfRange)?,
            None => progress.untimed += 1,
        }
        Ok((packet, self.last))
    }
}

fn byte_order(magic: [u8; 4]) -> Option<ByteOrder> {
    [ByteOrder::Little, ByteOrder::Big].into_iter().find(|order| order.u32(magic) == BYTE_ORDER_MAGIC)
}

/// The well-formed options of a block: code and value.
struct Options<'a> {
    order: ByteOrder,
    bytes: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.bytes.split_first_chunk::<4>()?;
        let code = self.order.u16([header[0], header[1]]);
        let length = usize::from(self.order.u16([header[2], header[3]]));
        let value = rest.get(..length).filter(|_| code != 0)?;
        self.bytes = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((code, value))
    }
}
