//! Files of pcapng, by hand in both byte orders, and as `airpath_wire` writes them.

use crate::write::{CapturedPacket, Interface as Described, Writer};

use super::*;

/// How numbers are laid out.
#[derive(Clone, Copy)]
struct Order {
    word: fn(u32) -> [u8; 4],
    short: fn(u16) -> [u8; 2],
    long: fn(u64) -> [u8; 8],
}

const LITTLE: Order = Order { word: u32::to_le_bytes, short: u16::to_le_bytes, long: u64::to_le_bytes };
const BIG: Order = Order { word: u32::to_be_bytes, short: u16::to_be_bytes, long: u64::to_be_bytes };

impl Order {
    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (self.word)(12 + body.len().next_multiple_of(4) as u32);
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        [&(self.word)(kind), &length, body, &padding, &length].concat()
    }

    fn section(self) -> Vec<u8> {
        let body = [&(self.word)(0x1A2B_3C4D)[..], &(self.short)(1), &(self.short)(0), &[0xFF; 8]].concat();
        self.block(0x0A0D_0D0A, &body)
    }

    fn interface(self, link_type: u16, snap_length: u32, options: &[u8]) -> Vec<u8> {
        let body = [&(self.short)(link_type)[..], &[0; 2], &(self.word)(snap_length), options].concat();
        self.block(1, &body)
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
        [&(self.short)(code)[..], &(self.short)(value.len() as u16), value, &padding].concat()
    }

    fn enhanced(self, interface: u32, units: u64, bytes: &[u8], original: u32, options: &[u8]) -> Vec<u8> {
        let numbers = [interface, (units >> 32) as u32, units as u32, bytes.len() as u32, original];
        let padding = vec![0; bytes.len().next_multiple_of(4) - bytes.len()];
        self.block(6, &[&numbers.map(self.word).concat(), bytes, &padding, options].concat())
    }
}

/// A file of two sections, the second in the other byte order, with blocks of every kind.
pub(super) fn example() -> Vec<u8> {
    [half(LITTLE), half(BIG)].concat()
}

fn half(order: Order) -> Vec<u8> {
    let named = [order.option(2, b"wlan0"), order.option(3, b"the air"), order.option(9, &[9])].concat();
    let offset = [order.option(9, &[0x8A]), order.option(14, &(order.long)(100))].concat();
    [
        order.section(),
        order.interface(1, 0, &named),
        order.interface(101, 4, &offset),
        order.enhanced(0, 7, b"abcde", 90, &[]),
        order.block(4, &[0; 4]),
        order.enhanced(1, 512, b"abc", 3, &[order.option(4, &(order.long)(11)), order.option(0, &[])].concat()),
        order.block(0x0BAD, b"a custom block"),
        order.block(3, &[&(order.word)(9)[..], b"simple packet"].concat()),
        order.block(
            2,
            &[&(order.short)(0)[..], &(order.short)(2), &[0, 8, 2, 20].map(order.word).concat(), b"xy"].concat(),
        ),
        order.block(5, &[&[1, 0, 0].map(order.word).concat()[..], &order.option(5, &(order.long)(15))].concat()),
    ]
    .concat()
}

#[test]
fn two_sections_in_either_byte_order() {
    let file = example();
    let mut reader = Reader::new(&file[..]).expect("it is a capture");
    let found = records(&mut reader);
    let one: [Found; 4] = [
        (1, 7, 0, b"abcde".to_vec(), 90),
        (2, 100_500_000_000, 1, b"abc".to_vec(), 3),
        (3, 100_500_000_000, 0, b"simple pa".to_vec(), 9),
        (4, 8, 0, b"xy".to_vec(), 20),
    ];
    assert_eq!(found[..4], one);
    let two = one.map(|(frame, time, interface, bytes, length)| (frame + 4, time, interface + 2, bytes, length));
    assert_eq!(found[4..], two);
    let skipped: Vec<_> = reader.skipped().iter().collect();
    assert_eq!((skipped, reader.untimed()), (vec![(Cause::OtherBlock, 2)], 2));
    let wlan = Interface {
        link_type: LinkType::ETHERNET,
        snap_length: 0,
        name: "wlan0".into(),
        description: "the air".into(),
        dropped: 2,
    };
    assert_eq!(reader.interfaces()[0], wlan);
    assert_eq!((reader.interfaces()[1].snap_length, reader.interfaces()[1].dropped), (4, 15));
    assert_eq!(reader.interfaces().len(), 4);
}

#[test]
fn simple_packets_use_the_snap_length() {
    let simple = LITTLE.block(3, &[&(LITTLE.word)(90)[..], b"abcdefgh"].concat());
    let file = [LITTLE.section(), LITTLE.interface(1, 5, &[]), simple].concat();
    assert_eq!(read(&file), [(1, 0, 0, b"abcde".to_vec(), 90)]);
}

#[test]
fn blocks_that_cannot_be_are_skipped() {
    let lies = |at: usize, value: u32| {
        let mut packet = LITTLE.enhanced(0, 7, b"abcd", 4, &[]);
        packet[at..at + 4].copy_from_slice(&value.to_le_bytes());
        packet
    };
    let cases = [
        (lies(8, 3), Cause::UnknownInterface),
        (lies(20, 5), Cause::MalformedBlock),
        (lies(12, u32::MAX), Cause::TimeOutOfRange),
        (LITTLE.block(6, &[0; 16]), Cause::MalformedBlock),
        (LITTLE.block(1, &[0; 4]), Cause::MalformedBlock),
        (LITTLE.block(5, &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Cause::MalformedBlock),
        (LITTLE.block(0xABCD, b"of another time"), Cause::OtherBlock),
    ];
    for (block, cause) in cases {
        let file = [
            LITTLE.section(),
            LITTLE.interface(1, 0, &LITTLE.option(9, &[6])),
            block,
            LITTLE.enhanced(0, 9, b"ok", 2, &[]),
        ]
        .concat();
        let mut reader = Reader::new(&file[..]).expect("it is a capture");
        let found = records(&mut reader);
        assert_eq!((found.len(), &found[0].3[..]), (1, &b"ok"[..]), "{cause}");
        assert_eq!(reader.skipped().iter().collect::<Vec<_>>(), [(cause, 1)]);
    }
}

#[test]
fn what_comes_after_damage_is_found_again() {
    let begin = [LITTLE.section(), LITTLE.interface(1, 0, &[]), LITTLE.enhanced(0, 7, b"abcd", 4, &[])].concat();
    let end = LITTLE.enhanced(0, 9, b"ok", 2, &[]);
    let mut ends_differ = LITTLE.enhanced(0, 8, b"abcd", 4, &[]);
    ends_differ[32] ^= 4;
    for damage in [ends_differ, vec![0xFF; 99], vec![0; 64]] {
        let file = [&begin[..], &damage, &end].concat();
        let mut reader = Reader::new(&file[..]).expect("it is a capture");
        assert_eq!(records(&mut reader).len(), 2);
        assert_eq!((reader.skipped().of(Cause::CorruptRecord), reader.lost_bytes()), (1, damage.len() as u64));
    }
}

#[test]
fn another_version_or_byte_order_is_refused() {
    let mut file = LITTLE.section();
    file[12] = 2;
    assert_eq!(refused(&file), "pcapng of version 2.0 is not known");
    file[8] = 0;
    assert!(refused(&file).starts_with("not a capture"));
    assert_eq!(
        refused(&file[..9]),
        "the file header is cut short: 28 bytes are needed, 9 are there; copy the file again"
    );
}

proptest! {
    #[test]
    fn what_wire_writes_is_read_back(
        packets in prop::collection::vec((0u64..1 << 62, prop::collection::vec(any::<u8>(), 0..99), 0u32..9, "[ -~]{0,9}"), 0..9),
    ) {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, "a comment").expect("a vector takes all");
        let interface = Described { name: "server", description: "the fixed end" };
        let interface = writer.add_interface(interface).expect("a vector takes all");
        for (timestamp, bytes, more, comment) in &packets {
            let original_length = bytes.len() as u32 + more;
            let packet = CapturedPacket { timestamp: *timestamp, bytes, original_length, comment };
            writer.packet(interface, packet).expect("a vector takes all");
        }
        writer.finish().expect("a vector takes all");
        let mut reader = Reader::new(&file[..]).expect("it is a capture");
        let expected: Vec<Found> = packets
            .into_iter()
            .enumerate()
            .map(|(at, (time, bytes, more, _))| {
                let original = bytes.len() as u32 + more;
                (at as u64 + 1, time, 0, bytes, original)
            })
            .collect();
        prop_assert_eq!(records(&mut reader), expected);
        prop_assert_eq!(reader.skipped().total(), 0);
        prop_assert_eq!((reader.interfaces().len(), &reader.interfaces()[0].name[..]), (1, "server"));
        prop_assert_eq!(reader.interfaces()[0].link_type, LinkType::RAW);
    }
}
