//! Arbitrary bytes as frames of any link type: the first two bytes are the link type. Two bytes
//! precede each frame: its length, and in the upper bit whether the original frame was longer.

#![no_main]

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::{LinkType, Record};
use airpath_core::{Instant, Span};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((link_type, mut rest)) = bytes.split_first_chunk() else { return };
    let link_type = LinkType(u16::from_le_bytes(*link_type));
    let mut decoder = Decoder::default();
    let (mut frame, mut found) = (0, 0);
    while let Some((head, after)) = rest.split_first_chunk() {
        let head = u16::from_le_bytes(*head);
        let kept = usize::from(head & 0x7FFF).min(after.len());
        let (bytes, after) = after.split_at(kept);
        rest = after;
        frame += 1;
        let original_length = if head & 0x8000 == 0 { kept as u32 } else { kept as u32 + 1000 };
        // The reassembly timeout uses the clock of the capture.
        let time = Instant::ZERO + Span::from_secs(10).saturating_mul(frame);
        let record = Record { frame, time, link_type, interface: 0, bytes, original_length };
        let (length, payload, now) = match decoder.decode(&record) {
            Decoded::Segment(segment) => (segment.length, segment.payload.len(), segment.time),
            Decoded::Datagram(datagram) => (datagram.length, datagram.payload.len(), datagram.time),
            Decoded::Skipped(_) => continue,
        };
        found += 1;
        assert!(payload <= length as usize && now == time);
    }
    assert!(found + decoder.skipped().total() >= frame, "nothing is left out in silence");
    assert!(decoder.incomplete() as u64 <= frame);
});
