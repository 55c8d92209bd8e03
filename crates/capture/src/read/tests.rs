use std::io::{self, Read, Write};

use proptest::prelude::*;

use super::*;

mod pcap;
mod pcapng;

/// Frame, nanoseconds, interface, bytes and original length of a record.
type Found = (u64, u64, u32, Vec<u8>, u32);

fn records(reader: &mut Reader<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    while let Some(record) = reader.next_record() {
        found.push((
            record.frame,
            record.time.as_nanos(),
            record.interface,
            record.bytes.to_vec(),
            record.original_length,
        ));
    }
    found
}

fn read(file: &[u8]) -> Vec<Found> {
    records(&mut Reader::new(file).expect("it is a capture"))
}

/// The error of opening `file`, with its next step.
fn refused(file: &[u8]) -> String {
    let error = Reader::new(file).err().expect("it is no capture");
    error.next_step().map_or_else(|| error.to_string(), |step| format!("{error}; {step}"))
}

#[test]
fn what_is_no_capture_is_refused_with_a_reason() {
    assert_eq!(refused(b""), "the file is empty; copy it again, or check the program that captured");
    assert_eq!(refused(b"abc"), "the file header is cut short: 4 bytes are needed, 3 are there; copy the file again");
    for (file, words) in [
        (b"hello, world".as_slice(), "it is a text file, which begins with 'hell'; known are pcap,"),
        (b"PK\x03\x04\x14\0", "it is a ZIP archive; unpack it"),
        (b"\x89PNG\r\n", "it is a PNG image; known are"),
        (b"\x01\x02\xAB\xFF", "it begins with the bytes 01 02 ab ff; known are pcap,"),
    ] {
        let text = refused(file);
        assert!(text.starts_with(&format!("not a capture: {words}")), "{text}");
    }
    assert_eq!(
        refused(b"snoop\0\0"),
        "the file header is cut short: 16 bytes are needed, 7 are there; copy the file again"
    );
    assert_eq!(refused(b"snoop\0\0\0\0\0\0\x01\0\0\0\x04"), "snoop of version 1.0 is not known");
    let text = refused(b"snoop\0\0\0\0\0\0\x02\0\0\0\x09");
    assert_eq!(text, "the snoop file has data link 9, which is not supported; Ethernet (4) and FDDI (8) are supported");
}

#[test]
fn snoop() {
    let mut file = b"snoop\0\0\0\0\0\0\x02\0\0\0\x08".to_vec();
    // Original length, captured, record's length with padding, dropped so far, seconds,
    // microseconds.
    for word in [9u32, 3, 28, 5, 7, 8] {
        file.extend_from_slice(&word.to_be_bytes());
    }
    file.extend_from_slice(b"abc\0");
    let mut reader = Reader::new(&file[..]).expect("it is a capture");
    assert_eq!(records(&mut reader), [(1, 7_000_008_000, 0, b"abc".to_vec(), 9)]);
    assert_eq!((reader.interfaces()[0].link_type, reader.interfaces()[0].dropped), (LinkType::FDDI, 5));
    let mut reader = Reader::new(&file[..file.len() - 1]).expect("it is a capture");
    assert_eq!(records(&mut reader), []);
    assert!(matches!(reader.ending(), Ending::CutShort));
}

#[test]
fn gzip_of_several_members() {
    let whole = pcap::file(&[(1, 2, b"abc", 3), (3, 4, b"defg", 9)]);
    let packed: Vec<u8> = [&whole[..30], &whole[30..]].into_iter().flat_map(gzip).collect();
    assert_eq!(read(&packed), read(&whole));
    let mut reader = Reader::new(&packed[..packed.len() - 12]).expect("the beginning is there");
    assert!(!records(&mut reader).is_empty(), "what is there of a cut file is read");
    assert!(matches!(reader.ending(), Ending::Unreadable(_)));
}

#[test]
fn of_a_damaged_gzip_file_what_comes_before_is_read() {
    let packets: Vec<_> = (1..2000).map(|second| (second, second % 7, &b"abcdefghijklmnop"[..], 60 + second)).collect();
    let mut packed = gzip(&pcap::file(&packets));
    let at = packed.len() - 200;
    packed[at..at + 100].fill(0xFF);
    let mut reader = Reader::new(&packed[..]).expect("the beginning is there");
    let found = records(&mut reader).len();
    assert!(found > 1000, "{found} records");
    assert!(matches!(reader.ending(), Ending::Unreadable(_)));
}

#[test]
fn zstd_of_several_frames() {
    let whole = pcap::file(&[(1, 2, b"abc", 3), (3, 4, b"defg", 9)]);
    let frames: Vec<u8> = [&whole[..30], &whole[30..]].into_iter().flat_map(zstd).collect();
    assert_eq!(read(&frames), read(&whole));
    // A skippable frame (RFC 8878 §3.1.2).
    let skippable = [0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let frames = [zstd(&whole[..30]), skippable.to_vec(), zstd(&whole[30..])].concat();
    assert_eq!(read(&frames), read(&whole));
    let mut reader = Reader::new(&frames[..frames.len() - 4]).expect("the beginning is there");
    records(&mut reader);
    assert!(matches!(reader.ending(), Ending::Unreadable(_)));
}

#[test]
fn a_compressed_file_that_is_cut_short_is_named_so() {
    let packets: Vec<_> = (1..9000).map(|second| (second, second % 7, &b"abcdefghijklmnop"[..], 60 + second)).collect();
    // Longer than a block of zstd.
    let whole = pcap::file(&packets);
    for packed in [gzip(&whole), zstd(&whole)] {
        for length in [5, 12] {
            assert_eq!(refused(&packed[..length]), "the compressed file is cut short; copy it again");
        }
        let mut reader = Reader::new(&packed[..packed.len() - 12]).expect("the beginning is there");
        records(&mut reader);
        let Ending::Unreadable(error) = reader.ending() else { panic!("it was cut") };
        assert_eq!(error.to_string(), "the compressed data is cut short");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).expect("a vector takes all");
    writer.finish().expect("a vector takes all")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn an_error_of_the_medium_ends_the_capture_and_is_reported() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk has failed"))
        }
    }
    let whole = pcap::file(&[(1, 2, b"abc", 3)]);
    let mut reader = Reader::new(whole.chain(Broken)).expect("the beginning is there");
    assert_eq!(records(&mut reader).len(), 1);
    assert!(matches!(reader.ending(), Ending::Unreadable(error) if error.to_string() == "the disk has failed"));
    assert_eq!(Reader::new(Broken).err().expect("nothing is there").to_string(), "the disk has failed");
}

/// A source that returns a few bytes at a time.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(self.0.len()).min(buffer.len());
        let (now, later) = self.0.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

#[test]
fn the_size_of_reads_does_not_matter() {
    // Together more than two blocks, and each record at another place in its block.
    let payload = vec![0xA5; 100_003];
    let packets: Vec<_> = (0..25).map(|second| (second + 1, 0, &payload[second as usize..], 200_000)).collect();
    let whole = pcap::file(&packets);
    let expected = read(&whole);
    assert_eq!(expected.len(), 25);
    for step in [997, 65_536, 1 << 20] {
        assert!(records(&mut Reader::new(Trickle(&whole, step)).expect("it is a capture")) == expected);
    }
}

/// A file of each format, whole.
fn wholes() -> [Vec<u8>; 4] {
    let pcap = pcap::file(&[(1, 2, b"abc", 3), (3, 4, b"defg", 9), (5, 6, &[0xEE; 90], 90)]);
    [pcapng::example(), gzip(&pcap), zstd(&pcap), pcap]
}

proptest! {
    #[test]
    fn random_bytes_never_panic(magic in 0usize..4, mut bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        // Bytes without the start of a file would hardly get beyond it.
        let whole = wholes()[magic][..28].to_vec();
        for file in [bytes.clone(), { let mut file = whole; file.append(&mut bytes); file }] {
            if let Ok(mut reader) = Reader::new(&file[..]) {
                records(&mut reader);
            }
        }
    }

    #[test]
    fn damaged_and_cut_files_never_panic(
        which in 0usize..4, kept in 0.0..=1.0, damage in prop::collection::vec((0.0..1.0, any::<u8>()), 0..4),
    ) {
        let mut file = wholes()[which].clone();
        for (place, value) in damage {
            let at = (place * file.len() as f64) as usize;
            file[at] ^= value;
        }
        file.truncate((kept * file.len() as f64) as usize);
        if let Ok(mut reader) = Reader::new(&file[..]) {
            let found = records(&mut reader);
            prop_assert!(found.len() as u64 <= reader.frames());
            prop_assert!(found.iter().all(|(.., bytes, original)| bytes.len() <= *original as usize));
        }
    }

    #[test]
    fn a_cut_file_is_read_up_to_its_last_whole_record(kept in 24usize..170) {
        let whole = wholes()[3].clone();
        let kept = kept.min(whole.len());
        let mut reader = Reader::new(&whole[..kept]).expect("the file header is there");
        let ends = [43, 63, 169];
        prop_assert_eq!(records(&mut reader).len(), ends.iter().filter(|end| **end <= kept).count());
        let is_whole = kept == 24 || ends.contains(&kept);
        prop_assert_eq!(matches!(reader.ending(), Ending::Whole), is_whole);
    }
}
