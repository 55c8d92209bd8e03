//! Capture files in the pcapng format, with nanoseconds, written during a run.
//!
//! Source: the IETF draft *pcapng Capture File Format*, draft-ietf-opsawg-pcapng, its clauses on
//! the section header, interface description and enhanced packet blocks. The file has one section,
//! in little-endian byte order.

use std::io::{self, Write};

use crate::pcapng::{
    BYTE_ORDER_MAGIC, ENHANCED_PACKET, IF_DESCRIPTION, IF_NAME, IF_TSRESOL, INTERFACE_DESCRIPTION, OPTION_COMMENT,
    OPTION_END, SECTION_HEADER, SHB_USERAPPL, VERSION,
};
use crate::read::LinkType;

/// Timestamps count units of 10⁻⁹ s.
const NANOSECONDS: u8 = 9;

/// Blocks are collected up to this size, and written together.
const BUFFER: usize = 64 << 10;

/// Writes a capture file.
///
/// Only whole blocks are passed to `W`, in calls of about 64 KiB. So a killed run leaves a readable
/// file that lacks at most the packets of the last call. Dropping the writer writes the remaining
/// blocks but cannot report errors: call [`Writer::finish`].
///
/// No packet causes an allocation.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    blocks: Vec<u8>,
    interfaces: u32,
    failed: Option<io::ErrorKind>,
}

/// An interface of the file, as returned by [`Writer::add_interface`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Name and description of an interface. Empty texts are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface<'a> {
    /// A short name, such as `server`.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
}

/// A packet as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// Its time: nanoseconds since 1 January 1970, UTC.
    pub timestamp: u64,
    /// Its first bytes, from the IP header on.
    pub bytes: &'a [u8],
    /// Its original length in bytes, not less than that of `bytes`.
    pub original_length: u32,
    /// A comment on the packet; none if empty.
    pub comment: &'a str,
}

impl<W: Write> Writer<W> {
    /// Begins a file with a comment on its contents, if that is not empty.
    ///
    /// # Errors
    /// I/O errors of `out`; a comment of 64 KiB or more is invalid input.
    pub fn new(out: W, comment: &str) -> io::Result<Self> {
        let blocks = Vec::with_capacity(BUFFER + (4 << 10));
        let mut writer = Self { out, blocks, interfaces: 0, failed: None };
        writer.block(SECTION_HEADER, |block| {
            block.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
            VERSION.iter().for_each(|part| block.extend_from_slice(&part.to_le_bytes()));
            // The length of the section is not yet determined, so -1 is written.
            block.extend_from_slice(&u64::MAX.to_le_bytes());
            text_option(block, OPTION_COMMENT, comment)?;
            text_option(block, SHB_USERAPPL, concat!("airpath ", env!("CARGO_PKG_VERSION")))?;
            end_of_options(block);
            Ok(())
        })?;
        writer.flush()?;
        Ok(writer)
    }

    /// Adds an interface; packets refer to it.
    ///
    /// # Errors
    /// I/O errors of the output; a text of 64 KiB or more is invalid input.
    pub fn add_interface(&mut self, interface: Interface<'_>) -> io::Result<InterfaceId> {
        self.block(INTERFACE_DESCRIPTION, |block| {
            block.extend_from_slice(&LinkType::RAW.0.to_le_bytes());
            block.extend_from_slice(&[0; 2]);
            // Packets may be of any size.
            block.extend_from_slice(&0u32.to_le_bytes());
            text_option(block, IF_NAME, interface.name)?;
            text_option(block, IF_DESCRIPTION, interface.description)?;
            option(block, IF_TSRESOL, &[NANOSECONDS])?;
            end_of_options(block);
            Ok(())
        })?;
        self.flush()?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// I/O errors of the output; a comment of 64 KiB or more is invalid input. After an error of
    /// the output nothing more is written, because the file may end within a block, and each call
    /// returns an error of the same kind.
    pub fn packet(&mut self, interface: InterfaceId, packet: CapturedPacket<'_>) -> io::Result<()> {
        let captured = u32::try_from(packet.bytes.len()).map_err(|_| invalid("a packet has less than 4 GiB"))?;
        self.block(ENHANCED_PACKET, |block| {
            // The timestamp is two words, the high one first.
            let words = [
                interface.0,
                (packet.timestamp >> 32) as u32,
                packet.timestamp as u32,
                captured,
                packet.original_length,
            ];
            words.iter().for_each(|word| block.extend_from_slice(&word.to_le_bytes()));
            block.extend_from_slice(packet.bytes);
            pad(block);
            if !packet.comment.is_empty() {
                text_option(block, OPTION_COMMENT, packet.comment)?;
                end_of_options(block);
            }
            Ok(())
        })?;
        if self.blocks.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Writes what has been collected.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        if let Some(kind) = self.failed {
            return Err(kind.into());
        }
        let written = self.out.write_all(&self.blocks).and_then(|()| self.out.flush());
        self.blocks.clear();
        self.failed = written.as_ref().err().map(io::Error::kind);
        written
    }

    /// Ends the file.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()
    }

    /// Adds a block with the contents that `body` appends; leaves the buffer unchanged if that
    /// fails.
    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        if let Some(kind) = self.failed {
            return Err(kind.into());
        }
        let start = self.blocks.len();
        self.blocks.extend_from_slice(&kind.to_le_bytes());
        self.blocks.extend_from_slice(&[0; 4]);
        if let Err(error) = body(&mut self.blocks) {
            self.blocks.truncate(start);
            return Err(error);
        }
        // The length is at both ends, so that the file can be read backwards.
        let length =
            u32::try_from(self.blocks.len() + 4 - start).map_err(|_| invalid("a block has less than 4 GiB"))?;
        self.blocks[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
        self.blocks.extend_from_slice(&length.to_le_bytes());
        Ok(())
    }
}

impl<W: Write> Drop for Writer<W> {
    fn drop(&mut self) {
        // Errors are reported by `finish`.
        let _ = self.flush();
    }
}

fn invalid(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

fn text_option(block: &mut Vec<u8>, code: u16, text: &str) -> io::Result<()> {
    if text.is_empty() { Ok(()) } else { option(block, code, text.as_bytes()) }
}

fn option(block: &mut Vec<u8>, code: u16, value: &[u8]) -> io::Result<()> {
    let length =
        u16::try_from(value.len()).map_err(|_| invalid("a name, description or comment has less than 64 KiB"))?;
    block.extend_from_slice(&code.to_le_bytes());
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(value);
    pad(block);
    Ok(())
}

fn end_of_options(block: &mut Vec<u8>) {
    block.extend_from_slice(&OPTION_END.to_le_bytes());
    block.extend_from_slice(&[0; 2]);
}

/// Pads to a multiple of four bytes, on which all blocks begin.
fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts the first `room` bytes, like a disk that becomes full.
    struct Disk {
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            self.room -= taken;
            if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn packet(bytes: &[u8]) -> CapturedPacket<'_> {
        CapturedPacket { timestamp: (5 << 32) + 7, bytes, original_length: 1500, comment: "" }
    }

    #[test]
    fn blocks_are_laid_out_as_specified() {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, "").expect("a vector takes all");
        let interface =
            writer.add_interface(Interface { name: "server", description: "" }).expect("a vector takes all");
        writer.packet(interface, packet(&[1, 2, 3, 4, 5])).expect("a vector takes all");
        writer.finish().expect("a vector takes all");

        let words: Vec<u32> = file.as_chunks::<4>().0.iter().map(|chunk| u32::from_le_bytes(*chunk)).collect();
        assert_eq!(file.len() % 4, 0);
        assert_eq!(words[..6], [SECTION_HEADER, file[4].into(), BYTE_ORDER_MAGIC, 1, u32::MAX, u32::MAX]);
        let interface = &words[file[4] as usize / 4..];
        assert_eq!(interface[..4], [INTERFACE_DESCRIPTION, interface[1], 101, 0]);
        let enhanced = &interface[interface[1] as usize / 4..];
        assert_eq!(enhanced[..7], [ENHANCED_PACKET, 40, 0, 5, 7, 5, 1500]);
        assert_eq!(enhanced[7..], [0x0403_0201, 5, 40]);
    }

    #[test]
    fn a_full_disk_is_reported_once_and_for_all() {
        let mut writer = Writer::new(Disk { room: 1000 }, "").expect("there is room");
        let interface = writer.add_interface(Interface::default()).expect("there is room");
        writer.packet(interface, packet(&[0; 1500])).expect("it is only collected");
        assert_eq!(writer.flush().expect_err("there is no room").kind(), io::ErrorKind::StorageFull);
        let again = writer.packet(interface, packet(&[0; 4])).expect_err("the file has ended within a block");
        assert_eq!(again.kind(), io::ErrorKind::StorageFull);
        assert_eq!(writer.finish().expect_err("the same").kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_text_that_does_not_fit_leaves_the_file_as_it_was() {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, "").expect("a vector takes all");
        let long = "x".repeat(1 << 16);
        let refused = writer.add_interface(Interface { name: &long, description: "" }).expect_err("too long");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        writer.finish().expect("a vector takes all");
        assert_eq!(file.len(), usize::from(file[4]), "the section header and nothing else");
    }

    #[test]
    fn memory_stays_bounded_and_blocks_whole() {
        #[derive(Default)]
        struct Calls(Vec<usize>);
        impl Write for &mut Calls {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.push(bytes.len());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut calls = Calls::default();
        let mut writer = Writer::new(&mut calls, "").expect("it takes all");
        let interface = writer.add_interface(Interface::default()).expect("it takes all");
        let capacity = writer.blocks.capacity();
        for _ in 0..10_000 {
            writer.packet(interface, packet(&[0; 68])).expect("it takes all");
        }
        assert_eq!(writer.blocks.capacity(), capacity, "nothing was allocated");
        writer.finish().expect("it takes all");
        assert!(calls.0[2..].iter().all(|length| length % 100 == 0), "each call writes whole blocks of 100 bytes");
        assert_eq!(calls.0[2..].iter().sum::<usize>(), 1_000_000);
    }
}
