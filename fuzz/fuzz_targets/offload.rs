//! Arbitrary bytes as an offload header and a packet: an accepted packet is split into packets that
//! are accepted again, and no payload is lost.

#![no_main]

use airpath_core::Ecn;
use airpath_emu::offload::{Frame, MAX_HEADER, VirtioHeader, complete_checksum};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((header, packet)) = bytes.split_first_chunk::<{ VirtioHeader::LENGTH }>() else { return };
    let header = VirtioHeader::from_bytes(header);
    assert_eq!(VirtioHeader::from_bytes(&header.to_bytes()), header);
    let mut packet = packet.to_vec();
    // A fuzzer does not find a correct checksum by chance.
    let words = usize::from(packet.first().map_or(0, |first| first & 0x0F));
    if packet.first().is_some_and(|first| first >> 4 == 4) && (20..=packet.len()).contains(&(words * 4)) {
        packet[10..12].fill(0);
        let checksum = airpath_wire::checksum::Sum::of(&packet[..words * 4]).checksum();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    if let Ok(frame) = Frame::inspect(&header, &packet) {
        cut(&frame, &packet);
    }
    complete_checksum(&header, &mut packet);
});

fn cut(frame: &Frame, packet: &[u8]) {
    let mut buffer = [0; MAX_HEADER];
    let last = frame.segments() - 1;
    let whole = frame.write_segments(packet, 0..=last, Ecn::Ce, &mut buffer);
    let (header, payload) = (whole.header, whole.payload.clone());
    let joined = [whole.bytes, &packet[whole.payload]].concat();
    let again = Frame::inspect(&header, &joined).expect("what is written is accepted");
    assert_eq!((again.segments(), again.bytes(), again.ecn()), (frame.segments(), frame.bytes(), Ecn::Ce));

    let mut end = payload.start;
    for index in 0..=last {
        let written = frame.write_segments(packet, index..=index, Ecn::NotEct, &mut buffer);
        assert_eq!(written.payload.start, end);
        assert_eq!((written.bytes.len() + written.payload.len()) as u32, frame.segment_bytes(index));
        end = written.payload.end;
    }
    assert_eq!(end, payload.end);
}
