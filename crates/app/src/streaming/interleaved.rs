//! RTP and RTCP packets within a TCP connection (RFC 7826 §14).
//!
//! Each packet follows a dollar sign, the number of its channel and its length. Contents of the
//! connection are counted, so the packets of a direction are kept here until their last byte was
//! read at the other end.

use std::collections::VecDeque;

use airpath_core::Instant;

use super::{Channel, Datagram};
use crate::transport::Transport;

/// Bytes before each packet.
pub const FRAMING: u64 = 4;

/// The packets of one direction that are in the connection.
#[derive(Clone, Debug, Default)]
pub struct Interleaved {
    packets: VecDeque<Packet>,
    /// Bytes written so far.
    written: u64,
    /// Bytes read so far.
    read: u64,
}

/// A packet in the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its channel.
    pub channel: Channel,
    /// The bytes with which it begins.
    pub head: Vec<u8>,
    /// When it was written.
    pub written: Instant,
    /// Offset of the first byte after it.
    end: u64,
}

impl Interleaved {
    /// Writes `datagram`. The connection stores what it cannot send yet, without a limit.
    pub fn write(&mut self, now: Instant, datagram: &Datagram<'_>, transport: &mut impl Transport) {
        let bytes = FRAMING + datagram.head.len() as u64 + u64::from(datagram.media);
        transport.write(bytes);
        self.written += bytes;
        let Datagram { channel, head, .. } = *datagram;
        self.packets.push_back(Packet { channel, head: head.to_vec(), written: now, end: self.written });
    }

    /// Reads the next packet at the other end, if all of it has arrived, and nothing after it.
    pub fn read(&mut self, transport: &mut impl Transport) -> Option<Packet> {
        let end = self.packets.front()?.end;
        let rest = transport.readable().min(end - self.read);
        transport.read(rest);
        self.read += rest;
        if self.read == end { self.packets.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::StreamEnd;

    #[test]
    fn a_packet_is_read_when_its_last_byte_has_arrived() {
        let mut packets = Interleaved::default();
        let (mut near, mut far) = (StreamEnd::opened(0), StreamEnd::opened(0));
        for (channel, media) in [(Channel::Media, 100), (Channel::Reports, 0)] {
            packets.write(Instant::ZERO, &Datagram { channel, head: &[1; 12], media }, &mut near);
        }
        assert_eq!(near.unsent(), 116 + 16);
        far.receive(115);
        assert_eq!(packets.read(&mut far), None);
        far.receive(16);
        let first = packets.read(&mut far).expect("it is complete");
        assert_eq!((first.channel, first.head.len()), (Channel::Media, 12));
        assert_eq!(packets.read(&mut far), None);
        far.receive(1);
        assert_eq!(packets.read(&mut far).map(|packet| packet.channel), Some(Channel::Reports));
        assert_eq!((packets.read(&mut far), far.readable()), (None, 0));
    }

    #[test]
    fn bytes_after_a_packet_stay_in_the_connection() {
        let mut packets = Interleaved::default();
        let (mut near, mut far) = (StreamEnd::opened(0), StreamEnd::opened(0));
        for _ in 0..2 {
            packets.write(Instant::ZERO, &Datagram { channel: Channel::Media, head: &[1; 12], media: 100 }, &mut near);
        }
        far.receive(232);
        assert!(packets.read(&mut far).is_some());
        assert_eq!(far.readable(), 116, "TCP offers less window for them");
    }
}
