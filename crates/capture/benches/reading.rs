//! Cost of reading and decoding a packet from memory: `cargo bench -p airpath-trace --bench
//! reading`.
//!
//! The packets are those of a download with a snap length of 96 bytes, for 1,000 flows in turn: two
//! data segments with timestamps, then an acknowledgement.

use std::hint::black_box;
use std::net::Ipv4Addr;

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::Reader;
use airpath_capture::write::{CapturedPacket, Interface, Writer};
use airpath_core::Ecn;
use airpath_wire::checksum::Sum;
use airpath_wire::ip::Protocol;
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::tcp::{Flags, TcpHeader, Timestamps};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const PACKETS: u32 = 500_000;
const KEPT: usize = 96;

/// The captured bytes of an IP packet, and its original length.
fn packet(number: u32) -> (Vec<u8>, u32) {
    let flow = number / 3 % 1000;
    let is_data = number % 3 != 2;
    let payload = if is_data { 1448 } else { 0 };
    let (client, server) = (Ipv4Addr::from_bits(0x0A00_0000 + flow), Ipv4Addr::new(192, 0, 2, 1));
    let (source, destination) = if is_data { (server, client) } else { (client, server) };
    let mut header = TcpHeader { source_port: 443, destination_port: 40_000, ..TcpHeader::default() };
    header.sequence = number / 3000 * 2896;
    header.flags = Flags::ACK;
    header.options.timestamps = Some(Timestamps { value: number, echo: number });
    let length = header.wire_length() as u32 + payload;
    let mut bytes = vec![0; Ipv4Header::LENGTH + header.wire_length()];
    Ipv4Header {
        dscp: 0,
        ecn: Ecn::NotEct,
        total_length: (Ipv4Header::LENGTH as u32 + length) as u16,
        identification: number as u16,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        time_to_live: 64,
        protocol: Protocol::TCP,
        source,
        destination,
    }
    .emit(&mut bytes);
    header.emit(&mut bytes[Ipv4Header::LENGTH..], Sum::pseudo_v4(source, destination, Protocol::TCP, length));
    bytes.resize(bytes.len() + payload as usize, 0);
    bytes.truncate(KEPT - 14);
    (bytes, Ipv4Header::LENGTH as u32 + length)
}

/// A file of libpcap, of Ethernet.
fn pcap() -> Vec<u8> {
    let mut file = [0xA1B2_C3D4u32, 4 << 16 | 2, 0, 0, KEPT as u32, 1].map(u32::to_le_bytes).concat();
    for number in 0..PACKETS {
        let (bytes, length) = packet(number);
        let header = [number / 100_000, number % 100_000 * 10, bytes.len() as u32 + 14, length + 14];
        file.extend(header.map(u32::to_le_bytes).concat());
        file.extend([0xAA; 12]);
        file.extend([0x08, 0x00]);
        file.extend(bytes);
    }
    file
}

/// A file of pcapng, of raw IP.
fn pcapng() -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, "").expect("a vector takes all");
    let interface = writer.add_interface(Interface::default()).expect("a vector takes all");
    for number in 0..PACKETS {
        let (bytes, original_length) = packet(number);
        let timestamp = u64::from(number) * 10_000;
        let packet = CapturedPacket { timestamp, bytes: &bytes, original_length, comment: "" };
        writer.packet(interface, packet).expect("a vector takes all");
    }
    writer.finish().expect("a vector takes all");
    file
}

fn read(file: &[u8]) -> u64 {
    let mut reader = Reader::new(file).expect("it is a capture");
    let mut bytes = 0;
    while let Some(record) = reader.next_record() {
        bytes += u64::from(record.original_length);
    }
    bytes
}

fn decode(file: &[u8]) -> u64 {
    let mut reader = Reader::new(file).expect("it is a capture");
    let mut decoder = Decoder::default();
    let mut bytes = 0;
    while let Some(record) = reader.next_record() {
        if let Decoded::Segment(segment) = black_box(decoder.decode(&record)) {
            bytes += u64::from(segment.length);
        }
    }
    bytes
}

fn reading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reading");
    group.throughput(Throughput::Elements(PACKETS.into())).sample_size(20);
    for (format, file) in [("pcap", pcap()), ("pcapng", pcapng())] {
        group.bench_function(format!("{format}/records"), |bencher| bencher.iter(|| black_box(read(&file))));
        group.bench_function(format!("{format}/segments"), |bencher| bencher.iter(|| black_box(decode(&file))));
    }
    group.finish();
}

criterion_group!(benches, reading);
criterion_main!(benches);
