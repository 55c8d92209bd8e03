//! Packets of TCP connections, one direction of each.

use std::net::{Ipv4Addr, Ipv6Addr};

use airpath_wire::checksum::Sum;

use super::{Ids, Random};

/// What a direction of a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Full segments with timestamps, with short ones and retransmissions.
    Download,
    /// The acknowledgments of a download, with SACK after losses.
    Acks,
    /// Short segments in both directions, with changes of the window.
    Terminal,
    /// A connection of a few packets after another.
    Short,
    /// ECN in use, urgent data, unknown options, resets, changes of DSCP and time to live.
    Odd,
}

/// One direction of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    pub role: Role,
    pub is_v6: bool,
    pub ids: Ids,
    pub has_timestamps: bool,
    /// With [`Role::Odd`], options that have no format of their own.
    pub has_generic: bool,
    /// Nothing but what each packet of a long transfer changes.
    pub is_calm: bool,
    pub number: u8,
    pub packets: u32,
    pub sequence: u32,
    pub acknowledgment: u32,
    pub window: u16,
    pub id: u16,
    pub timestamp: u32,
    pub echo: u32,
    pub ttl: u8,
    pub tos: u8,
    pub port: u16,
    /// Blocks that are selectively acknowledged.
    pub blocks: Vec<[u32; 2]>,
    /// A generic option, if one is in use.
    pub generic: Option<Vec<u8>>,
}

pub const SEGMENT: u32 = 1448;

impl Connection {
    pub fn new(role: Role, is_v6: bool, ids: Ids, number: u8) -> Self {
        Self {
            role,
            is_v6,
            ids,
            has_timestamps: true,
            has_generic: true,
            is_calm: false,
            number,
            packets: 0,
            sequence: 0xffff_0000,
            acknowledgment: 0xfffe_8000,
            window: 64_000,
            id: 65_000,
            timestamp: 0xffff_ff00,
            echo: 0x7fff_fff0,
            ttl: 64,
            tos: if role == Role::Odd { 0x02 } else { 0 },
            port: 40_000,
            blocks: Vec::new(),
            generic: None,
        }
    }

    /// The next packet.
    pub fn next(&mut self, random: &mut Random) -> Vec<u8> {
        self.packets += 1;
        self.id = match self.ids {
            Ids::Sequential | Ids::Swapped if !self.is_calm && random.one_in(30) => {
                self.id.wrapping_add(random.below(300) as u16)
            }
            Ids::Sequential | Ids::Swapped => self.id.wrapping_add(1),
            Ids::Random => random.below(1 << 16) as u16,
            Ids::Zero => 0,
        };
        if self.packets == 1 {
            return self.packet(0x02, &self.syn_options(), 0);
        }
        match self.role {
            Role::Download => self.download(random),
            Role::Acks => self.acknowledge(random),
            Role::Terminal => self.terminal(random),
            Role::Short => self.short(random),
            Role::Odd => self.odd(random),
        }
    }

    fn download(&mut self, random: &mut Random) -> Vec<u8> {
        self.timestamp = self.timestamp.wrapping_add(if self.is_calm { 8 } else { random.below(30) });
        if random.one_in(2) {
            self.echo = self.echo.wrapping_add(random.below(20));
        }
        let is_retransmission = !self.is_calm && random.one_in(60);
        if is_retransmission {
            let sequence = self.sequence;
            self.sequence = sequence.wrapping_sub(SEGMENT * (1 + random.below(20)));
            let packet = self.packet(0x10, &self.options(), SEGMENT);
            self.sequence = sequence;
            return packet;
        }
        let length = if !self.is_calm && random.one_in(20) { 1 + random.below(SEGMENT) } else { SEGMENT };
        let flags = if length < SEGMENT { 0x18 } else { 0x10 };
        let packet = self.packet(flags, &self.options(), length);
        self.sequence = self.sequence.wrapping_add(length);
        packet
    }

    fn acknowledge(&mut self, random: &mut Random) -> Vec<u8> {
        self.timestamp = self.timestamp.wrapping_add(if self.is_calm { 16 } else { random.below(40) });
        self.echo = self.echo.wrapping_add(if self.is_calm { 16 } else { random.below(40) });
        if !self.is_calm && random.one_in(40) {
            self.window = 20_000 + random.below(40_000) as u16;
        }
        if !self.is_calm && self.blocks.is_empty() && random.one_in(80) {
            let start = self.acknowledgment.wrapping_add(SEGMENT);
            self.blocks.push([start, start.wrapping_add(SEGMENT)]);
        } else if let Some(first) = self.blocks.first_mut() {
            first[1] = first[1].wrapping_add(SEGMENT);
            if random.one_in(6) && self.blocks.len() < 3 {
                let start = self.blocks[0][1].wrapping_add(SEGMENT);
                self.blocks.insert(0, [start, start.wrapping_add(SEGMENT)]);
            }
            if random.one_in(20) {
                let end =
                    self.blocks.iter().map(|block| block[1]).max_by_key(|end| end.wrapping_sub(self.acknowledgment));
                self.acknowledgment = end.expect("a block");
                self.blocks.clear();
            }
        }
        if self.blocks.is_empty() {
            let segments = if self.is_calm || !random.one_in(10) { 2 } else { 1 };
            self.acknowledgment = self.acknowledgment.wrapping_add(segments * SEGMENT);
        }
        self.packet(0x10, &self.options(), 0)
    }

    fn terminal(&mut self, random: &mut Random) -> Vec<u8> {
        self.timestamp = self.timestamp.wrapping_add(random.below(5000));
        self.echo = self.echo.wrapping_add(random.below(5000));
        self.acknowledgment = self.acknowledgment.wrapping_add(random.below(200));
        if random.one_in(8) {
            self.window = self.window.wrapping_sub(random.below(2000) as u16);
        }
        let length = random.below(60);
        let packet = self.packet(if length > 0 { 0x18 } else { 0x10 }, &self.options(), length);
        self.sequence = self.sequence.wrapping_add(length);
        packet
    }

    /// Six packets: SYN, ACK, request, two acknowledgments, FIN.
    fn short(&mut self, random: &mut Random) -> Vec<u8> {
        self.timestamp = self.timestamp.wrapping_add(random.below(100));
        match self.packets % 6 {
            1 => {
                self.port = self.port.wrapping_add(1);
                self.sequence = random.below(u32::MAX);
                self.packet(0x02, &self.syn_options(), 0)
            }
            2 => {
                self.sequence = self.sequence.wrapping_add(1);
                self.acknowledgment = random.below(u32::MAX);
                self.packet(0x10, &self.options(), 0)
            }
            3 => {
                let packet = self.packet(0x18, &self.options(), 300);
                self.sequence = self.sequence.wrapping_add(300);
                packet
            }
            0 => self.packet(0x11, &self.options(), 0),
            _ => {
                self.acknowledgment = self.acknowledgment.wrapping_add(2 * SEGMENT);
                self.packet(0x10, &self.options(), 0)
            }
        }
    }

    fn odd(&mut self, random: &mut Random) -> Vec<u8> {
        self.timestamp = self.timestamp.wrapping_add(random.below(50));
        if random.one_in(50) {
            self.ttl = 60 + random.below(5) as u8;
        }
        if random.one_in(100) {
            self.tos ^= 0xb8;
        }
        if random.one_in(10) {
            self.tos ^= 0x01;
        }
        if random.one_in(50) {
            let length = 3 + random.below(6) as usize;
            let mut option = vec![0x41 + random.below(12) as u8, length as u8];
            option.resize(length, random.below(256) as u8);
            self.generic = Some(option);
        } else if random.one_in(30) {
            self.generic = None;
        } else if random.one_in(3) {
            // One that changes in each packet.
            if let Some(last) = self.generic.as_mut().and_then(|option| option.last_mut()) {
                *last = random.below(256) as u8;
            }
        }
        if random.one_in(300) {
            self.has_timestamps = !self.has_timestamps;
        }
        let mut flags = 0x10 | [0, 0, 0x40, 0x80, 0xc0][random.below(5) as usize];
        match random.below(60) {
            0 => flags |= 0x20,
            1 => flags = 0x04,
            2 => flags |= 0x03,
            3 => flags = 0,
            4 => flags |= 0x01,
            _ => {}
        }
        let length = random.below(100);
        let mut options = self.options();
        if let Some(generic) = self.generic.as_ref().filter(|_| self.has_generic) {
            options.extend_from_slice(generic);
        }
        // Padding with EOL.
        while !options.len().is_multiple_of(4) {
            options.push(0);
        }
        let packet = self.packet(flags, &options, length);
        self.sequence = self.sequence.wrapping_add(length);
        packet
    }

    fn syn_options(&self) -> Vec<u8> {
        let mut options = vec![2, 4, 5, 180];
        if self.has_timestamps {
            options.extend_from_slice(&[4, 2, 8, 10]);
            options.extend_from_slice(&self.timestamp.to_be_bytes());
            options.extend_from_slice(&[0; 4]);
        } else {
            options.extend_from_slice(&[1, 1, 4, 2]);
        }
        options.extend_from_slice(&[1, 3, 3, 7]);
        options
    }

    /// As Linux orders them.
    fn options(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if self.has_timestamps {
            options.extend_from_slice(&[1, 1, 8, 10]);
            options.extend_from_slice(&self.timestamp.to_be_bytes());
            options.extend_from_slice(&self.echo.to_be_bytes());
        }
        if !self.blocks.is_empty() {
            options.extend_from_slice(&[1, 1, 5, 2 + 8 * self.blocks.len() as u8]);
            for edge in self.blocks.iter().flatten() {
                options.extend_from_slice(&edge.to_be_bytes());
            }
        }
        options
    }

    fn packet(&self, flags: u8, options: &[u8], length: u32) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend_from_slice(&self.port.to_be_bytes());
        tcp.extend_from_slice(&443_u16.to_be_bytes());
        tcp.extend_from_slice(&self.sequence.to_be_bytes());
        let acknowledgment = if flags & 0x10 == 0 { 0 } else { self.acknowledgment };
        tcp.extend_from_slice(&acknowledgment.to_be_bytes());
        tcp.extend_from_slice(&[((20 + options.len()) as u8 / 4) << 4, flags]);
        tcp.extend_from_slice(&self.window.to_be_bytes());
        let urgent = if flags & 0x20 == 0 { 0 } else { length as u16 };
        tcp.extend_from_slice(&[0, 0]);
        tcp.extend_from_slice(&urgent.to_be_bytes());
        tcp.extend_from_slice(options);
        tcp.resize(tcp.len() + length as usize, 0x55);
        let checksum = Sum::of(&tcp).checksum();
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        let mut packet = Vec::new();
        if self.is_v6 {
            packet.extend_from_slice(&[0x60 | self.tos >> 4, self.tos << 4, 0, self.number]);
            packet.extend_from_slice(&(tcp.len() as u16).to_be_bytes());
            packet.extend_from_slice(&[6, self.ttl]);
            packet.extend_from_slice(&Ipv6Addr::LOCALHOST.octets());
            packet.extend_from_slice(&Ipv6Addr::UNSPECIFIED.octets());
        } else {
            packet.extend_from_slice(&[0x45, self.tos]);
            packet.extend_from_slice(&(20 + tcp.len() as u16).to_be_bytes());
            let id = if self.ids == Ids::Swapped { self.id.swap_bytes() } else { self.id };
            packet.extend_from_slice(&id.to_be_bytes());
            packet.extend_from_slice(&[0x40, 0, self.ttl, 6, 0, 0]);
            packet.extend_from_slice(&Ipv4Addr::new(10, 0, 0, self.number).octets());
            packet.extend_from_slice(&Ipv4Addr::new(10, 1, 0, 1).octets());
            let checksum = Sum::of(&packet).checksum();
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        packet.extend_from_slice(&tcp);
        packet
    }
}

/// Connections of all roles, with each behaviour of the IP-ID, and IPv6.
pub fn connections() -> Vec<Connection> {
    let roles = [Role::Download, Role::Acks, Role::Terminal, Role::Short, Role::Odd];
    let ids = [Ids::Sequential, Ids::Swapped, Ids::Random, Ids::Zero];
    let mut connections = Vec::new();
    for (index, role) in roles.into_iter().enumerate() {
        connections.push(Connection::new(role, true, Ids::Zero, index as u8));
        for (number, ids) in ids.into_iter().enumerate() {
            connections.push(Connection::new(role, false, ids, (index * 4 + number) as u8));
        }
        connections.push(Connection {
            has_timestamps: false,
            ..Connection::new(role, false, Ids::Sequential, 40 + index as u8)
        });
    }
    connections
}
