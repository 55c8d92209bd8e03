//! Random and hostile packets through a whole link, without the kernel. Each is rejected with a
//! cause, lost with a cause, or delivered; the others remain in the link at the end.

use std::collections::BTreeMap;

use airpath_core::{
    Bitrate, Context, Direction, Dropped, Ecn, Instant, Packet, Probability, RandomStream, Seed, Span, UserId,
};
use airpath_emu::observe::{Observer, Passage};
use airpath_emu::offload::{EntryDropCause, Frame, MAX_HEADER, VirtioHeader, complete_checksum};
use airpath_emu::packet_buffer::{BufferedPacket, PacketBuffer};
use airpath_link::loss::Loss;
use airpath_link::queue::Queue;
use airpath_link::{Config, Link, Pipe};
use airpath_result::summary::TrafficRow;
use airpath_wire::checksum::Sum;

/// Length of most generated packets; a few have any length.
const USUAL: u64 = 3000;

/// Generates packets: some are noise, most have a damaged or unusual header, and some are valid.
struct Maker {
    chance: RandomStream,
    bytes: Vec<u8>,
}

impl Maker {
    fn below(&mut self, limit: u64) -> u64 {
        self.chance.below(limit)
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn byte(&mut self) -> u8 {
        self.chance.bits() as u8
    }

    /// Generates a packet in `bytes`; returns its offload header.
    fn make(&mut self) -> VirtioHeader {
        let length = if self.one_in(50) { self.below(65_600) } else { self.below(USUAL) } as usize;
        self.bytes.clear();
        // The payload may be anything, and the space of the headers is noise at first.
        self.bytes.resize(length, 0);
        for at in 0..length.min(160) {
            self.bytes[at] = self.byte();
        }
        let version = self.below(10);
        let (header, gso_type) = match version {
            0 => (0, 0),
            1..=5 => (self.ipv4(), VirtioHeader::TCP_OVER_IPV4),
            _ => (self.ipv6(), VirtioHeader::TCP_OVER_IPV6),
        };
        // Valid offload headers, and below invalid ones.
        let mut virtio = match self.below(3) {
            0 => VirtioHeader::default(),
            1 => VirtioHeader {
                flags: VirtioHeader::NEEDS_CHECKSUM,
                checksum_start: header,
                checksum_offset: 16,
                ..VirtioHeader::default()
            },
            _ => VirtioHeader { gso_type, segment_size: 1 + self.below(1460) as u16, ..VirtioHeader::default() },
        };
        if self.one_in(8) {
            let mut bytes = virtio.to_bytes();
            let at = self.below(bytes.len() as u64) as usize;
            bytes[at] = self.byte();
            virtio = VirtioHeader::from_bytes(&bytes);
        }
        virtio
    }

    fn ipv4(&mut self) -> u16 {
        if self.bytes.len() < 40 {
            return 20;
        }
        let length = self.bytes.len().min(65_535) as u16;
        self.bytes[0] = if self.one_in(10) { 0x40 | self.byte() & 0x0F } else { 0x45 };
        let total = if self.one_in(20) { self.chance.bits() as u16 } else { length };
        self.bytes[2..4].copy_from_slice(&total.to_be_bytes());
        if !self.one_in(10) {
            self.bytes[6..8].copy_from_slice(&[0x40, 0]);
        }
        self.bytes[9] = [6, 6, 6, 17, 1, 2, 47, 6][self.below(8) as usize];
        if !self.one_in(10) {
            self.bytes[12..20].copy_from_slice(&[10, 0, 0, 2, 192, 0, 2, 1]);
        }
        self.transport(20);
        let header = usize::from(self.bytes[0] & 0x0F) * 4;
        if !self.one_in(30) && header >= 20 && header <= self.bytes.len() {
            self.bytes[10..12].fill(0);
            let checksum = Sum::of(&self.bytes[..header]).checksum();
            self.bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        20
    }

    fn ipv6(&mut self) -> u16 {
        if self.bytes.len() < 60 {
            return 40;
        }
        self.bytes[0] = 0x60 | self.byte() & 0x0F;
        let payload = (self.bytes.len() - 40).min(65_535) as u16;
        let payload = if self.one_in(20) { self.chance.bits() as u16 } else { payload };
        self.bytes[4..6].copy_from_slice(&payload.to_be_bytes());
        self.bytes[6] = [6, 6, 6, 17, 58, 0, 43, 44, 51, 60][self.below(10) as usize];
        if !self.one_in(10) {
            self.bytes[8..40].fill(0);
            self.bytes[8..11].copy_from_slice(&[0x20, 0x01, 0x0D]);
            self.bytes[24..27].copy_from_slice(&[0x20, 0x01, 0x0E]);
        }
        self.transport(40);
        if self.bytes[6] == 58 {
            // An echo request, a report, a solicitation, or an unassigned type.
            self.bytes[40] = [128, 143, 135, 255][self.below(4) as usize];
        }
        40
    }

    /// Few ports, so that packets share flows, and a header length that may be right.
    fn transport(&mut self, at: usize) {
        let ports = [0, 80, 0, self.byte() & 0x0F];
        self.bytes[at..at + 4].copy_from_slice(&ports);
        if !self.one_in(5) {
            self.bytes[at + 12] = 0x50;
        }
    }
}

/// Outcome of the generated packets.
#[derive(Debug, Default)]
struct Books {
    refused: BTreeMap<EntryDropCause, u64>,
    accepted: u64,
    offered: [u64; 2],
    delivered: [u64; 2],
    lost: [u64; 2],
}

struct Soak {
    path: Pipe,
    buffer: PacketBuffer,
    observer: Observer,
    dropped: Vec<Dropped>,
    books: Books,
}

impl Soak {
    fn take_in(&mut self, now: Instant, virtio: &VirtioHeader, bytes: &[u8]) {
        let frame = match Frame::inspect(virtio, bytes) {
            Ok(frame) => frame,
            Err(refused) => return *self.books.refused.entry(refused).or_default() += 1,
        };
        self.books.accepted += 1;
        let Self { path, buffer, observer, dropped, books } = self;
        let super_segment = buffer.insert_copy(frame, bytes, frame.segments());
        for segment in 0..frame.segments() {
            let size = frame.segment_bytes(segment);
            let sighting = observer.enters(now, Direction::Up, &frame, bytes, segment);
            let packet = BufferedPacket::entering(super_segment, segment, 1, Direction::Up, now);
            let slot = buffer.add(packet);
            buffer.set_sighting(slot, sighting);
            let id = books.offered[0];
            let packet = Packet { id, size, flow: sighting.flow, user: UserId::new(0), ecn: frame.ecn(), slot };
            count(&mut books.offered, size);
            path.push(now, packet, &mut Context::new(None, dropped, Default::default()));
        }
        self.forget();
    }

    fn hand_over(&mut self, now: Instant) {
        let mut buffer = [0; MAX_HEADER];
        while let Some(departure) = self.path.pop(now, &mut Context::new(None, &mut self.dropped, Default::default())) {
            let Packet { slot, size, flow, .. } = departure.packet;
            let BufferedPacket { super_segment, segment, entered, number, .. } = self.buffer.packet(slot);
            let read = self.buffer.super_segment(super_segment);
            let (frame, bytes) = (read.frame, &read.bytes);
            let written = frame.write_segments(bytes, segment..=segment, Ecn::Ce, &mut buffer);
            let mut packet = [written.bytes, &bytes[written.payload]].concat();
            assert_eq!(packet.len(), size as usize);
            complete_checksum(&written.header, &mut packet);
            let again = Frame::inspect(&VirtioHeader::default(), &packet).expect("what leaves is a packet");
            assert_eq!((again.bytes(), again.ecn(), again.segments()), (size, Ecn::Ce, 1));
            let sent = (flow, departure.packet.ecn);
            let passage = Passage { entered, number, due: departure.due, now: departure.due };
            self.observer.leaves(passage, Direction::Up, sent, &frame, bytes, segment);
            count(&mut self.books.delivered, size);
            self.buffer.release(slot);
        }
        self.forget();
    }

    fn forget(&mut self) {
        for Dropped { packet, .. } in std::mem::take(&mut self.dropped) {
            self.observer.is_lost(Direction::Up, packet.flow, packet.size);
            count(&mut self.books.lost, packet.size);
            self.buffer.release(packet.slot);
        }
    }
}

/// Counts a packet and its bytes.
fn count(books: &mut [u64; 2], size: u32) {
    books[0] += 1;
    books[1] += u64::from(size);
}

#[test]
fn a_million_packets_of_all_kinds_are_accounted_for() {
    let packets = 1_000_000;
    let config = Config {
        rate: Some(Bitrate::from_bps(100_000_000)),
        queue: Some(Queue::of_packets(200)),
        loss: Loss::Bernoulli(Probability::new(0.01).expect("it is one")),
        delay: Span::from_millis(10).into(),
        ..Config::default()
    };
    let mut maker = Maker { chance: Seed::new(1).stream("packets"), bytes: Vec::new() };
    let mut soak = Soak {
        path: Pipe::new(&config, Seed::new(1), "soak").expect("the link is a sensible one"),
        buffer: PacketBuffer::default(),
        observer: Observer::new(),
        dropped: Vec::new(),
        books: Books::default(),
    };
    let mut now = Instant::ZERO;
    for _ in 0..packets {
        now += Span::from_nanos(maker.below(200_000));
        let virtio = maker.make();
        soak.take_in(now, &virtio, &maker.bytes);
        soak.hand_over(now);
    }

    let Soak { path, buffer, observer, books, .. } = &soak;
    assert_eq!(books.accepted + books.refused.values().sum::<u64>(), packets, "each is accepted or refused");
    assert_eq!(books.refused.keys().copied().collect::<Vec<_>>(), EntryDropCause::ALL, "for each cause there is");
    let counters = path.counters();
    let books_of = |count: airpath_core::Count| [count.packets, count.bytes];
    assert_eq!(books.offered, books_of(counters.offered));
    assert_eq!(books.delivered, books_of(counters.delivered));
    assert_eq!(books.lost, books_of(counters.dropped_total()));
    assert!(books.lost[0] > 0 && books.accepted > packets / 10, "{books:?}");
    for unit in [0, 1] {
        let inside = books_of(counters.queued)[unit];
        assert_eq!(books.offered[unit], books.delivered[unit] + books.lost[unit] + inside);
    }
    assert_eq!(buffer.len() as u64, counters.queued.packets, "the packets in the buffer are those in the link");
    let up: Vec<_> =
        observer.rows(0, "mobile").into_iter().filter_map(|row| row.observed.map(|seen| seen.up)).collect();
    let sum = |what: fn(&TrafficRow) -> u64| up.iter().map(what).sum::<u64>();
    assert_eq!([sum(|row| row.offered_packets), sum(|row| row.offered_bytes)], books.offered);
    assert_eq!([sum(|row| row.delivered_packets), sum(|row| row.delivered_bytes)], books.delivered);
    assert_eq!([sum(|row| row.lost_packets), sum(|row| row.lost_bytes)], books.lost);

    // The link drains completely.
    soak.hand_over(now + Span::from_secs(60));
    assert_eq!((soak.buffer.len(), soak.path.counters().queued.packets), (0, 0));
}
