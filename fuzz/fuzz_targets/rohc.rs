//! Arbitrary bytes as packets of a ROHC channel: neither end panics, and what a compressor sends is
//! restored.

#![no_main]

use std::time::Duration;

use airpath_rohc::{Compressor, Config, Decompressor, ReorderRatio, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|packets: (bool, Option<u8>, Vec<Vec<u8>>)| {
    // With a number, version 2 of the profiles.
    let (large_cids, ratio, packets) = packets;
    let version = if ratio.is_some() { Version::Two } else { Version::One };
    let ratios = [ReorderRatio::None, ReorderRatio::Quarter, ReorderRatio::Half, ReorderRatio::ThreeQuarters];
    let reorder_ratio = ratios[usize::from(ratio.unwrap_or_default() % 4)];
    let config = Config { large_cids, version, reorder_ratio, ..Config::default() };
    let ends = || (Compressor::new(&config).expect("valid"), Decompressor::new(&config).expect("valid"));
    let (mut compressor, mut decompressor) = ends();
    // These two meet bytes that no peer has sent.
    let (mut misled, mut attacked) = ends();
    for packet in &packets {
        let mut out = Vec::new();
        if let Ok(read) = attacked.decompress(Duration::ZERO, packet, packet.len(), &mut out) {
            assert!(read <= packet.len());
        }
        let _ = misled.receive_feedback(packet);
        misled.compress(packet, packet.len(), &mut out);
        if packet.is_empty() {
            continue;
        }
        let (mut compressed, mut restored) = (Vec::new(), Vec::new());
        let replaced = compressor.compress(packet, packet.len(), &mut compressed);
        compressed.extend_from_slice(&packet[replaced..]);
        let read = decompressor
            .decompress(Duration::ZERO, &compressed, compressed.len(), &mut restored)
            .expect("nothing is lost");
        restored.extend_from_slice(&compressed[read..]);
        assert_eq!(&restored, packet);
    }
});
