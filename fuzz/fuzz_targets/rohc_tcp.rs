//! TCP headers with arbitrary fields and options over a ROHC channel: each is restored while
//! nothing is lost, and arbitrary compressed packets and feedback of their context cause no panic.

#![no_main]

use std::time::Duration;

use airpath_rohc::{Compressor, Config, Decompressor};
use airpath_wire::checksum::Sum;
use libfuzzer_sys::fuzz_target;

/// A packet: the TCP header, its options, TTL and IP-ID, the payload, and whether it has IPv6.
type Packet = ([u8; 20], Vec<u8>, [u8; 4], u8, bool);

fuzz_target!(|input: (bool, Vec<(Packet, Vec<u8>)>)| {
    let (large_cids, packets) = input;
    let config = Config { large_cids, ..Config::default() };
    let ends = || (Compressor::new(&config).expect("valid"), Decompressor::new(&config).expect("valid"));
    let (mut compressor, mut decompressor) = ends();
    // These two meet bytes that no peer has sent.
    let (mut misled, mut attacked) = ends();
    for (packet, attack) in &packets {
        let packet = wire(packet);
        let (mut compressed, mut restored) = (Vec::new(), Vec::new());
        let replaced = compressor.compress(&packet, packet.len(), &mut compressed);
        compressed.extend_from_slice(&packet[replaced..]);
        let read = decompressor
            .decompress(Duration::ZERO, &compressed, compressed.len(), &mut restored)
            .expect("nothing is lost");
        restored.extend_from_slice(&compressed[read..]);
        assert_eq!(restored, packet);
        // A context that is acknowledged is the base of the next one.
        compressor.receive_feedback(decompressor.feedback()).expect("feedback about a packet that has arrived");
        decompressor.clear_feedback();

        let mut out = Vec::new();
        let _ = attacked.decompress(Duration::ZERO, &compressed, compressed.len(), &mut out);
        out.clear();
        if let Ok(read) = attacked.decompress(Duration::ZERO, attack, attack.len(), &mut out) {
            assert!(read <= attack.len());
        } else {
            assert!(out.is_empty());
        }
        out.clear();
        misled.compress(&packet, packet.len(), &mut out);
        let _ = misled.receive_feedback(attack);
    }
});

/// The bytes of a packet, with the lengths and the checksum of IPv4 that the profile infers.
fn wire((tcp, options, ip, payload, is_v6): &Packet) -> Vec<u8> {
    let options = &options[..options.len().min(40) / 4 * 4];
    let mut tcp = tcp.to_vec();
    // Few flows, so that contexts go on.
    let port = tcp[0] & 7;
    tcp[..4].copy_from_slice(&[0x12, port, 0x01, 0xbb]);
    tcp[12] = tcp[12] & 0x0f | (5 + options.len() as u8 / 4) << 4;
    tcp.extend_from_slice(options);
    tcp.resize(tcp.len() + usize::from(*payload), 0x55);
    let [tos, ttl, high, low] = *ip;
    let mut packet = if *is_v6 {
        let mut header = vec![0x60 | tos >> 4, tos << 4, 0, 7, 0, tcp.len() as u8, 6, ttl];
        header[4..6].copy_from_slice(&(tcp.len() as u16).to_be_bytes());
        header.extend_from_slice(&[9; 32]);
        header
    } else {
        let length = (20 + tcp.len() as u16).to_be_bytes();
        let mut header =
            vec![0x45, tos, length[0], length[1], high, low, 0x40, 0, ttl, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let checksum = Sum::of(&header).checksum().to_be_bytes();
        header[10..12].copy_from_slice(&checksum);
        header
    };
    packet.extend_from_slice(&tcp);
    packet
}
