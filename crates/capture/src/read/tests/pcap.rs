//! Files of libpcap, by hand.

use super::*;

/// A file in little-endian order, with microseconds, of packets: seconds, microseconds, bytes,
/// original length.
pub(super) fn file(packets: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
    let mut file = file_header(0xA1B2_C3D4, u32::to_le_bytes, u16::to_le_bytes);
    for packet in packets {
        file.extend(record(*packet, u32::to_le_bytes));
    }
    file
}

fn file_header(magic: u32, word: fn(u32) -> [u8; 4], short: fn(u16) -> [u8; 2]) -> Vec<u8> {
    // Two words for the unused time zone and accuracy, the snap length, Ethernet.
    let numbers = [0, 0, 65_535, 1].map(word).concat();
    [word(magic).to_vec(), short(2).to_vec(), short(4).to_vec(), numbers].concat()
}

fn record((seconds, part, bytes, original): (u32, u32, &[u8], u32), word: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let numbers = [seconds, part, bytes.len() as u32, original].map(word).concat();
    [numbers, bytes.to_vec()].concat()
}

#[test]
fn both_byte_orders_and_both_resolutions() {
    for (magic, nanoseconds) in [(0xA1B2_C3D4, 4_000), (0xA1B2_3C4D, 4)] {
        let packets = [(3, 4, &b"abc"[..], 3), (4_000_000_000, 999_999, b"", 60)];
        let little: Vec<u8> = packets.iter().flat_map(|packet| record(*packet, u32::to_le_bytes)).collect();
        let big: Vec<u8> = packets.iter().flat_map(|packet| record(*packet, u32::to_be_bytes)).collect();
        let little = [file_header(magic, u32::to_le_bytes, u16::to_le_bytes), little].concat();
        let big = [file_header(magic, u32::to_be_bytes, u16::to_be_bytes), big].concat();
        let found = read(&little);
        assert_eq!(found, read(&big));
        assert_eq!(found[0], (1, 3_000_000_000 + nanoseconds, 0, b"abc".to_vec(), 3));
        assert_eq!((found[1].1 / 1_000_000_000, found[1].4), (4_000_000_000, 60));
    }
}

#[test]
fn kuznetsov_s_longer_headers() {
    let mut file = file_header(0xA1B2_CD34, u32::to_le_bytes, u16::to_le_bytes);
    file.extend([3u32, 4, 3, 9].map(u32::to_le_bytes).concat());
    file.extend(*b"\x01\0\0\0\x08\0\0\0abc");
    assert_eq!(read(&file), [(1, 3_000_004_000, 0, b"abc".to_vec(), 9)]);
}

#[test]
fn the_order_of_the_two_lengths_depends_on_the_version() {
    let found = |minor: u8, lengths: [u32; 2]| {
        let mut file = file_header(0xA1B2_C3D4, u32::to_le_bytes, u16::to_le_bytes);
        file[6] = minor;
        file.extend([3u32, 4, lengths[0], lengths[1]].map(u32::to_le_bytes).concat());
        file.extend(*b"abc");
        read(&file).into_iter().map(|record| (record.3, record.4)).collect::<Vec<_>>()
    };
    for (minor, lengths) in [(2, [9, 3]), (3, [9, 3]), (3, [3, 9]), (4, [3, 9])] {
        assert_eq!(found(minor, lengths), [(b"abc".to_vec(), 9)], "2.{minor}: {lengths:?}");
    }
    // As some FDDI drivers captured: a byte more than the packet has.
    assert_eq!(found(4, [3, 2]), [(b"abc".to_vec(), 3)]);
    assert_eq!(found(2, [2, 3]), [(b"abc".to_vec(), 3)]);
}

#[test]
fn another_version_is_refused() {
    let mut file = file(&[]);
    file[4] = 3;
    assert_eq!(refused(&file), "pcap of version 3.4 is not known");
    assert_eq!(
        refused(&file[..20]),
        "the file header is cut short: 24 bytes are needed, 20 are there; copy the file again"
    );
}

#[test]
fn what_comes_after_damage_is_found_again() {
    let packet = |second: u32| record((second, 7, &[0x5A; 60], 1500), u32::to_le_bytes);
    let (before, after) = (file(&[(1000, 7, &[0x5A; 60], 1500)]), [packet(1002), packet(1003)].concat());
    // An impossible length; zeros, as after a crash; text.
    let claims = record((1001, 7, &[], 1500), u32::to_le_bytes);
    let claims = [&claims[..8], &[0xFF; 8], &[1; 60]].concat();
    for damage in [claims, vec![0; 4096], b"hello, this is not a packet at all".to_vec()] {
        let file = [&before[..], &damage, &after].concat();
        let mut reader = Reader::new(&file[..]).expect("it is a capture");
        let found = records(&mut reader);
        assert_eq!(found.iter().map(|record| record.1 / 1_000_000_000).collect::<Vec<_>>(), [1000, 1002, 1003]);
        assert_eq!((reader.skipped().of(Cause::CorruptRecord), reader.lost_bytes()), (1, damage.len() as u64));
        assert!(matches!(reader.ending(), Ending::Whole));
    }
}

#[test]
fn a_length_of_four_gigabytes_costs_no_memory() {
    let mut file = file(&[(1, 2, b"abc", 3)]);
    // The maximum that the format allows in a file header.
    file[16..20].fill(0xFF);
    file.extend([3u32, 4, 100 << 20, 100 << 20].map(u32::to_le_bytes).concat());
    let mut reader = Reader::new(&file[..]).expect("it is a capture");
    assert_eq!(records(&mut reader).len(), 1);
    assert_eq!(reader.skipped().of(Cause::CutRecord), 1);
    assert!(reader.input.window() <= 2 << 20, "{} bytes", reader.input.window());
}
