//! Properties of any file that can be opened.

use std::io::{self, Read};

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::{Ending, Reader};

/// Reads a file to its end, at once and in small parts, and decodes its frames.
pub fn check(file: &[u8]) {
    // How much data a decoder returns before it finds damage depends on the size of the reads.
    if matches!(file, [0x1F, 0x8B, ..] | [0x28, 0xB5, ..]) {
        if let Ok(mut reader) = Reader::new(file) {
            while reader.next_record().is_some() {}
        }
        return;
    }
    let Ok(mut reader) = Reader::new(file) else {
        assert!(Reader::new(Bits(file)).is_err());
        return;
    };
    let mut in_bits = Reader::new(Bits(file)).expect("it can be opened at once");
    let mut decoder = Decoder::default();
    let mut segments = 0u64;
    let mut frame = 0;
    while let Some(record) = reader.next_record() {
        assert_eq!(in_bits.next_record(), Some(record), "however it is read");
        assert!(record.frame > frame && record.bytes.len() <= record.original_length as usize);
        frame = record.frame;
        segments += u64::from(!matches!(decoder.decode(&record), Decoded::Skipped(_)));
    }
    assert_eq!(in_bits.next_record(), None);
    assert_eq!(reader.skipped(), in_bits.skipped());
    assert_eq!(reader.lost_bytes(), in_bits.lost_bytes());
    assert!(reader.lost_bytes() <= file.len() as u64);
    assert!(segments <= frame && frame <= reader.frames());
    if matches!(reader.ending(), Ending::Whole) {
        assert!(reader.next_record().is_none(), "the end stays the end");
    }
}

/// A source that returns seven bytes at a time.
struct Bits<'a>(&'a [u8]);

impl Read for Bits<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(7);
        self.0.read(&mut buffer[..count])
    }
}
