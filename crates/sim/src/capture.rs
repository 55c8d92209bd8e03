//! Packet captures at both ends: at the servers and at the mobiles.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use airpath_app::datagrams::HEADERS;
use airpath_app::streaming::Channel;
use airpath_capture::simulated::{Capture, Envelope, Headers, MOST_HEAD, Ports};
use airpath_capture::write::Interface;
use airpath_core::{Direction, FlowId, Instant, Packet, UserId};
use airpath_path::Side;
use airpath_wire::icmp::IcmpEcho;
use airpath_wire::ipv4::Ipv4Header;

use crate::packet_buffer::{Payload, SERVER};

/// Port of the servers of streams, for RTP: an even one. Further connections have the next ones
/// (RFC 3550 §11, RFC 3551 §8).
const RTP_PORT: u16 = 5004;

/// Port of the servers of QUIC (RFC 9114 §3.1).
const QUIC_PORT: u16 = 443;

/// Most captured bytes of a QUIC packet with a short header: its header, and some bytes behind it.
const SHORT_HEAD: usize = 32;

/// Streams of a mobile whose ports differ. Each has four ports of the dynamic ones.
pub const STREAM_PORTS: u32 = 4096;

/// The capture files of one repetition.
#[derive(Debug)]
pub struct Captures {
    server: Capture<File>,
    mobile: Capture<File>,
    failure: Option<io::Error>,
}

impl Captures {
    /// Begins both files of repetition `number` in `folder`.
    pub fn create(folder: &Path, number: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let begin = |end: &str, what: &str| {
            let file = File::create(folder.join(format!("{number:04}-{end}.pcapng")))?;
            let interface = Interface { name: end, description: what };
            Capture::create(file, "simulated by airpath; headers only, payload is not kept", interface)
        };
        Ok(Self {
            server: begin("server", "at the servers, behind the fixed network")?,
            mobile: begin("mobile", "at the mobiles, above the radio")?,
            failure: None,
        })
    }

    /// Adds a packet that `side` sends or receives; `head` are the bytes with which its payload
    /// begins, if it is a datagram of a stream. After an error nothing more is written;
    /// [`Self::finish`] returns the error.
    pub fn record(
        &mut self,
        side: Side,
        now: Instant,
        direction: Direction,
        packet: &Packet,
        payload: &Payload,
        head: &[u8],
    ) {
        if self.failure.is_some() {
            return;
        }
        let capture = match side {
            Side::Server => &mut self.server,
            Side::Mobile => &mut self.mobile,
        };
        // Nothing of a recorded packet is available but its TCP header.
        let Some(headers) = headers(now, direction, packet, payload, head) else { return };
        self.failure = headers.and_then(|headers| capture.packet(&headers)).err();
    }

    /// Whether writing has failed, for instance because the disk is full.
    pub const fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Ends both files.
    pub fn finish(self) -> io::Result<()> {
        self.failure.map_or(Ok(()), Err)?;
        self.server.finish()?;
        self.mobile.finish()
    }
}

/// The headers of a packet that is captured at `time`; `None` for one that is replayed.
///
/// `head` is as in [`Captures::record`].
pub fn headers(
    time: Instant,
    direction: Direction,
    packet: &Packet,
    payload: &Payload,
    head: &[u8],
) -> Option<io::Result<Headers>> {
    let (source, destination) = match direction {
        Direction::Down => (SERVER, address(packet.user)),
        Direction::Up => (address(packet.user), SERVER),
    };
    let identification = match payload {
        Payload::Stream { channel: Channel::Media | Channel::Repair, .. } => identification_of_rtp(head),
        _ => 0,
    };
    let envelope = Envelope { time, source, destination, ecn: packet.ecn, identification };
    let port = |index: u32| 49_152 + (index % 16_384) as u16;
    Some(match payload {
        Payload::Segment(segment) => Headers::tcp(envelope, &segment.header, segment.length),
        Payload::Datagram { .. } => {
            let ports = Ports { source: port(packet.flow.0), destination: port(packet.flow.0) };
            Headers::udp(envelope, ports, &[], packet.size - HEADERS)
        }
        Payload::Stream { channel, .. } => {
            let (server, mobile) = (RTP_PORT + *channel as u16, stream_port(packet.flow, *channel));
            let ports = match direction {
                Direction::Down => Ports { source: server, destination: mobile },
                Direction::Up => Ports { source: mobile, destination: server },
            };
            Headers::udp(envelope, ports, head, packet.size - HEADERS - head.len() as u32)
        }
        Payload::Quic { port } => {
            let ports = match direction {
                Direction::Down => Ports { source: QUIC_PORT, destination: *port },
                Direction::Up => Ports { source: *port, destination: QUIC_PORT },
            };
            // RFC 9000 §17: the highest bit marks a long header.
            let is_long = head.first().is_some_and(|byte| byte & 0x80 != 0);
            let captured = &head[..head.len().min(if is_long { MOST_HEAD } else { SHORT_HEAD })];
            Headers::udp(envelope, ports, captured, packet.size - HEADERS - captured.len() as u32)
        }
        Payload::Recorded(_) => return None,
        Payload::Echo { sequence, reply, .. } => {
            let echo = IcmpEcho { reply: *reply, identifier: packet.flow.0 as u16, sequence: *sequence as u16 };
            Headers::icmp_echo(envelope, echo, packet.size - (Ipv4Header::LENGTH + IcmpEcho::LENGTH) as u32)
        }
    })
}

/// The identification of a packet of RTP: its sequence number. Servers and mobiles are taken to
/// have connected sockets, whose packets Linux numbers in sequence; header compression need not
/// send such identifications (RFC 3095 §4.5.5). Those of an unconnected socket jump, which takes
/// two octets more.
fn identification_of_rtp(head: &[u8]) -> u16 {
    match head {
        [_, _, high, low, ..] => u16::from_be_bytes([*high, *low]),
        _ => 0,
    }
}

/// Port of the mobile for a connection of a stream: an even one for RTP, and the next ones. The
/// connections of a stream differ by a multiple of [`STREAM_PORTS`].
fn stream_port(flow: FlowId, channel: Channel) -> u16 {
    49_152 + 4 * (flow.0 % STREAM_PORTS) as u16 + channel as u16
}

/// A mobile's address, from a block for private use (RFC 1918).
fn address(user: UserId) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 2).to_bits() + user.number())
}
