//! Flows of packets, and a channel between a compressor and a decompressor that loses some.
#![allow(dead_code, reason = "each test uses a part")]

pub mod tcp;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use airpath_rohc::{Compressor, Config, DecompressError, Decompressor, FeedbackError};
use airpath_wire::checksum::Sum;

/// Random numbers (xorshift64*).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((high * u64::from(bound)) >> 32) as u32
    }

    pub fn one_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }
}

/// How the IP-ID of a flow goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    Sequential,
    Swapped,
    Random,
    Zero,
}

/// What a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// RTP each 20 ms, with pauses.
    Voice,
    /// RTP with several packets a frame, and frames out of order.
    Video,
    /// UDP that is not RTP.
    Datagrams,
    /// TCP.
    Tcp,
    /// RTP with a source list, fragments and options: profile 0x0000 or a smaller one.
    Odd,
}

/// One flow.
#[derive(Clone, Debug)]
pub struct Flow {
    pub kind: Kind,
    pub is_v6: bool,
    pub ids: Ids,
    pub has_checksum: bool,
    pub number: u8,
    /// No change but of sequence number, timestamp and IP-ID, and no pause.
    pub is_calm: bool,
    pub sequence: u16,
    pub timestamp: u32,
    pub id: u16,
    pub ttl: u8,
    pub tos: u8,
}

impl Flow {
    pub fn new(kind: Kind, is_v6: bool, ids: Ids, number: u8) -> Self {
        let (sequence, timestamp) = (65_500, 0xffff_8000);
        Self {
            kind,
            is_v6,
            ids,
            has_checksum: is_v6,
            number,
            is_calm: false,
            sequence,
            timestamp,
            id: 65_000,
            ttl: 64,
            tos: 0,
        }
    }

    /// The next packet.
    pub fn next(&mut self, random: &mut Random) -> Vec<u8> {
        if !self.is_calm && random.one_in(500) {
            self.ttl = 60 + random.below(4) as u8;
        }
        if !self.is_calm && random.one_in(700) {
            self.tos ^= 0xb8;
        }
        self.id = match self.ids {
            Ids::Sequential | Ids::Swapped if !self.is_calm && random.one_in(20) => {
                self.id.wrapping_add(random.below(100) as u16)
            }
            Ids::Sequential | Ids::Swapped => self.id.wrapping_add(1),
            Ids::Random => random.below(1 << 16) as u16,
            Ids::Zero => 0,
        };
        let transport = match self.kind {
            Kind::Voice => self.voice(random),
            Kind::Video => self.video(random),
            Kind::Datagrams => {
                let payload = 1 + random.below(40) as usize;
                self.udp(5353, &vec![0x11; payload])
            }
            Kind::Tcp => {
                let mut bytes = vec![0x50; 20 + random.below(30) as usize];
                bytes[0..2].copy_from_slice(&[0x12, self.number]);
                bytes[4] = random.below(256) as u8;
                bytes
            }
            Kind::Odd => {
                let mut payload = vec![random.below(256) as u8; 30];
                payload[0] = 0x82;
                self.udp(4000, &payload)
            }
        };
        let mut packet = self.ip(&transport);
        if self.kind == Kind::Odd && !self.is_v6 && random.one_in(2) {
            packet[6] |= 0x20;
        }
        packet
    }

    fn voice(&mut self, random: &mut Random) -> Vec<u8> {
        let pause = if !self.is_calm && random.one_in(100) { 1 + random.below(200) } else { 0 };
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(160 * (1 + pause));
        self.rtp(self.timestamp, pause > 0, 96)
    }

    fn video(&mut self, random: &mut Random) -> Vec<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let is_last = random.one_in(4);
        let frame = self.timestamp;
        if is_last {
            self.timestamp = self.timestamp.wrapping_add(3600);
        }
        // A frame that others refer to comes before them.
        let timestamp = if random.one_in(10) { frame.wrapping_sub(7200) } else { frame };
        self.rtp(timestamp, is_last, 97)
    }

    fn rtp(&self, timestamp: u32, marker: bool, payload_type: u8) -> Vec<u8> {
        let mut rtp = vec![0x80, u8::from(marker) << 7 | payload_type];
        rtp.extend_from_slice(&self.sequence.to_be_bytes());
        rtp.extend_from_slice(&timestamp.to_be_bytes());
        rtp.extend_from_slice(&[1, 2, 3, self.number]);
        rtp.extend_from_slice(&[0xaa; 32]);
        self.udp(4000, &rtp)
    }

    fn udp(&self, port: u16, payload: &[u8]) -> Vec<u8> {
        let mut udp = vec![0x40, self.number];
        udp.extend_from_slice(&port.to_be_bytes());
        udp.extend_from_slice(&(8 + payload.len() as u16).to_be_bytes());
        udp.extend_from_slice(&[0; 2]);
        udp.extend_from_slice(payload);
        if self.has_checksum {
            let checksum = Sum::of(&udp).checksum();
            udp[6..8].copy_from_slice(&checksum.max(1).to_be_bytes());
        }
        udp
    }

    fn ip(&self, transport: &[u8]) -> Vec<u8> {
        let protocol = if self.kind == Kind::Tcp { 6 } else { 17 };
        let mut packet = Vec::new();
        if self.is_v6 {
            packet.extend_from_slice(&[0x60 | self.tos >> 4, self.tos << 4, 0, self.number]);
            packet.extend_from_slice(&(transport.len() as u16).to_be_bytes());
            packet.extend_from_slice(&[protocol, self.ttl]);
            packet.extend_from_slice(&Ipv6Addr::LOCALHOST.octets());
            packet.extend_from_slice(&Ipv6Addr::UNSPECIFIED.octets());
        } else {
            packet.extend_from_slice(&[0x45, self.tos]);
            packet.extend_from_slice(&(20 + transport.len() as u16).to_be_bytes());
            let id = if self.ids == Ids::Swapped { self.id.swap_bytes() } else { self.id };
            packet.extend_from_slice(&id.to_be_bytes());
            packet.extend_from_slice(&[0x40, 0, self.ttl, protocol, 0, 0]);
            packet.extend_from_slice(&Ipv4Addr::new(10, 0, 0, self.number).octets());
            packet.extend_from_slice(&Ipv4Addr::new(10, 1, 0, 1).octets());
            let checksum = Sum::of(&packet).checksum();
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        packet.extend_from_slice(transport);
        packet
    }
}

/// One direction of a channel, and the feedback of the other one.
pub struct Channel {
    pub compressor: Compressor,
    pub decompressor: Decompressor,
    /// Feedback in flight, each with the number of packets after which it arrives.
    feedback: VecDeque<(u64, Vec<u8>)>,
    pub feedback_delay: u64,
    /// One feedback in three is lost.
    pub loses_feedback: bool,
    pub feedback_octets: usize,
    /// The time at which packets arrive.
    pub now: Duration,
    pub sent: u64,
    pub compressed: Vec<u8>,
}

impl Channel {
    pub fn new(config: &Config) -> Self {
        Self {
            compressor: Compressor::new(config).expect("a configuration"),
            decompressor: Decompressor::new(config).expect("a configuration"),
            feedback: VecDeque::new(),
            feedback_delay: 8,
            loses_feedback: false,
            feedback_octets: 0,
            now: Duration::ZERO,
            sent: 0,
            compressed: Vec::new(),
        }
    }

    /// Compresses a packet; returns the bytes of its header.
    pub fn compress(&mut self, packet: &[u8]) -> usize {
        self.sent += 1;
        while self.feedback.front().is_some_and(|(due, _)| *due <= self.sent) {
            let Some((_, feedback)) = self.feedback.pop_front() else { break };
            let result = self.compressor.receive_feedback(&feedback);
            // A damaged packet may have had another identifier, and a context may have become one
            // of another profile in the meantime.
            let is_outdated = matches!(result, Err(FeedbackError::NoContext { .. } | FeedbackError::Crc));
            assert!(result.is_ok() || is_outdated, "{result:?}");
        }
        self.compressed.clear();
        let replaced = self.compressor.compress(packet, packet.len(), &mut self.compressed);
        let header = self.compressed.len();
        self.compressed.extend_from_slice(&packet[replaced..]);
        header
    }

    /// Decompresses what was compressed last, or `other`.
    pub fn decompress(&mut self, bytes: &[u8]) -> Result<Vec<u8>, DecompressError> {
        let mut packet = Vec::new();
        let result = self.decompressor.decompress(self.now, bytes, bytes.len(), &mut packet);
        if !self.decompressor.feedback().is_empty() {
            self.feedback_octets += self.decompressor.feedback().len();
            if !self.loses_feedback || !self.sent.is_multiple_of(3) {
                self.feedback.push_back((self.sent + self.feedback_delay, self.decompressor.feedback().to_vec()));
            }
            self.decompressor.clear_feedback();
        }
        packet.extend_from_slice(&bytes[result?..]);
        Ok(packet)
    }

    /// Sends a packet through; the bytes of its header and what comes out.
    pub fn pass(&mut self, packet: &[u8]) -> (usize, Result<Vec<u8>, DecompressError>) {
        let header = self.compress(packet);
        let compressed = std::mem::take(&mut self.compressed);
        let result = self.decompress(&compressed);
        self.compressed = compressed;
        (header, result)
    }
}

/// Counts of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    pub delivered: u64,
    pub discarded: u64,
    pub wrong: u64,
}

impl Outcome {
    /// Counts what came out for `original`. Returns whether it is that packet.
    pub fn count(&mut self, result: &Result<Vec<u8>, DecompressError>, original: &[u8]) -> bool {
        match result {
            Ok(packet) if packet == original => self.delivered += 1,
            Ok(_) => self.wrong += 1,
            Err(_) => self.discarded += 1,
        }
        result.as_deref() == Ok(original)
    }

    pub fn add(&mut self, other: &Self) {
        self.delivered += other.delivered;
        self.discarded += other.discarded;
        self.wrong += other.wrong;
    }
}

/// Sends a packet of `next` for each of `damages`, an octet and what changes it, and then 60 whole
/// ones. Returns how many of these were restored.
pub fn restored_after(damages: Vec<(usize, u8)>, next: impl FnMut() -> Vec<u8>) -> u32 {
    restored_after_with(&Config::default(), damages, next)
}

/// [`restored_after`] on a channel with this configuration.
pub fn restored_after_with(config: &Config, damages: Vec<(usize, u8)>, mut next: impl FnMut() -> Vec<u8>) -> u32 {
    let mut channel = Channel::new(config);
    for (at, value) in damages {
        channel.compress(&next());
        let mut compressed = channel.compressed.clone();
        if let Some(octet) = compressed.get_mut(at) {
            *octet ^= value;
        }
        let mut out = Vec::new();
        let _ = channel.decompressor.decompress(Duration::ZERO, &compressed, compressed.len(), &mut out);
    }
    let is_restored = |packet: Vec<u8>| channel.pass(&packet).1 == Ok(packet);
    std::iter::repeat_with(next).take(60).map(is_restored).map(u32::from).sum()
}

/// Checks that a decompressor without the first ten packets of a flow requests the static part, and
/// gets it.
pub fn check_request(channel: &mut Channel, mut next: impl FnMut() -> Vec<u8>) {
    for _ in 0..10 {
        channel.compress(&next());
    }
    assert_eq!(channel.pass(&next()).1, Err(DecompressError::NoContext { cid: 0 }));
    let restored = (0..20).filter(|_| {
        let packet = next();
        channel.pass(&packet).1 == Ok(packet)
    });
    assert!(restored.count() >= 10);
}
