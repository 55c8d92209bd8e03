//! A generated capture with keep-alives and Fast Open, which the collection lacks.

use std::fs::File;
use std::path::PathBuf;

use airpath_capture::write::{CapturedPacket, Interface, InterfaceId, Writer};
use airpath_wire::tcp::Flags;

/// The first sequence number of both ends.
const INITIAL: u32 = 1000;

/// A cookie of Fast Open (RFC 7413 §4.1.1): kind, length, eight bytes; padded to whole words.
const COOKIE: [u8; 12] = [34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1];

const SYN: Flags = Flags::SYN;
const ACK: Flags = Flags::ACK;

/// Writes the capture and returns its path.
pub fn capture() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("made.pcapng");
    let mut writer =
        Writer::new(File::create(&path).expect("the folder is there"), "").expect("the file can be written");
    let interface = Interface { name: "made", description: "" };
    let interface = writer.add_interface(interface).expect("the file can be written");
    let mut made = Made { writer, interface, port: 40_000, identification: 0 };
    made.keep_alives();
    made.fast_open(true);
    made.fast_open(false);
    made.writer.finish().expect("the file can be written");
    path
}

struct Made {
    writer: Writer<File>,
    interface: InterfaceId,
    /// The client's port; each connection has another one.
    port: u16,
    identification: u16,
}

/// Differences between the segments. Positions are stream offsets; the SYN is -1.
#[derive(Clone, Copy)]
struct Segment<'a> {
    millis: u64,
    from_client: bool,
    offset: i32,
    /// Acknowledged offset of the other stream.
    acknowledged: Option<i32>,
    flags: Flags,
    length: usize,
    options: &'a [u8],
}

impl Made {
    fn keep_alives(&mut self) {
        self.port += 1;
        self.handshake(0);
        let client = |millis, offset, length| Segment { offset, length, ..segment(millis, true, ACK, Some(0)) };
        let server = |millis, acknowledged| segment(millis, false, ACK, Some(acknowledged));
        self.segment(client(100, 0, 100));
        self.segment(server(150, 100));
        // With a byte that was sent before, and without (RFC 9293 §3.8.4).
        for (at, length) in [(60_000, 0), (120_000, 1)] {
            self.segment(client(at, 99, length));
            self.segment(server(at + 50, 100));
        }
        self.segment(client(180_000, 99, 0));
        self.segment(client(181_000, 99, 0));
        self.segment(Segment { offset: 100, ..segment(182_000, true, Flags::RST | ACK, Some(0)) });
    }

    fn fast_open(&mut self, accepted: bool) {
        self.port += 1;
        let opening = Segment { offset: -1, options: &COOKIE, length: 100, ..segment(200_000, true, SYN, None) };
        self.segment(opening);
        let acknowledged = if accepted { 100 } else { 0 };
        self.segment(Segment { offset: -1, ..segment(200_050, false, SYN | ACK, Some(acknowledged)) });
        if accepted {
            self.segment(Segment { offset: 100, ..segment(200_051, true, ACK, Some(0)) });
        } else {
            self.segment(Segment { offset: 0, length: 100, ..segment(200_051, true, ACK, Some(0)) });
            self.segment(segment(200_100, false, ACK, Some(100)));
        }
    }

    fn handshake(&mut self, millis: u64) {
        self.segment(Segment { offset: -1, ..segment(millis, true, SYN, None) });
        self.segment(Segment { offset: -1, ..segment(millis + 50, false, SYN | ACK, Some(0)) });
        self.segment(segment(millis + 51, true, ACK, Some(0)));
    }

    /// Writes an IPv4 packet (RFC 791 §3.1) with the segment (RFC 9293 §3.1), without checksums.
    fn segment(&mut self, made: Segment<'_>) {
        let mut hosts = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let mut ports = [self.port, 80];
        if !made.from_client {
            hosts.reverse();
            ports.reverse();
        }
        self.identification += 1;
        let header = 20 + made.options.len();
        let total = (20 + header + made.length) as u16;
        let number = |offset: i32| (INITIAL + 1).wrapping_add_signed(offset);
        let mut bytes = vec![0x45, 0];
        bytes.extend(total.to_be_bytes());
        bytes.extend(self.identification.to_be_bytes());
        bytes.extend([0x40, 0, 64, 6, 0, 0]);
        bytes.extend(hosts.concat());
        bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        bytes.extend(number(made.offset).to_be_bytes());
        bytes.extend(made.acknowledged.map_or(0, number).to_be_bytes());
        bytes.extend([(header as u8 / 4) << 4, made.flags.0, 0x40, 0, 0, 0, 0, 0]);
        bytes.extend(made.options);
        bytes.resize(usize::from(total), 0);
        let timestamp = (1_000_000_000_000 + made.millis) * 1_000_000;
        let packet = CapturedPacket { timestamp, bytes: &bytes, original_length: bytes.len() as u32, comment: "" };
        self.writer.packet(self.interface, packet).expect("the file can be written");
    }
}

/// A segment at the beginning of its stream, without data.
const fn segment(millis: u64, from_client: bool, flags: Flags, acknowledged: Option<i32>) -> Segment<'static> {
    Segment { millis, from_client, offset: 0, acknowledged, flags, length: 0, options: &[] }
}
