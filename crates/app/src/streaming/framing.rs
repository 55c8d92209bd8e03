//! RTP and RTCP packets within a TCP connection without RTSP (RFC 4571): each follows its length in
//! two bytes. Packets of both protocols share the connection (RFC 5761).

/// Bytes before each packet.
const LENGTH: usize = 2;
/// Bytes of the shortest packet: an empty receiver report. The header of RTP has more.
const SHORTEST: usize = 8;

/// Why the bytes of a connection are no packets. Nothing marks the begin of the next packet, so
/// none can be read after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the frame at byte {at} of the connection has a length of {length} and is no packet of RTP or RTCP")]
pub struct FramingError {
    /// Where the frame begins.
    pub at: u64,
    /// Its length field.
    pub length: u16,
}

/// Appends a packet with its length.
///
/// # Panics
/// If it has more than 65,535 bytes.
pub fn write(packet: &[u8], bytes: &mut Vec<u8>) {
    let length = u16::try_from(packet.len()).expect("a packet fits a datagram");
    bytes.extend(length.to_be_bytes());
    bytes.extend(packet);
}

/// Finds the packets in the bytes of a connection.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where the next frame begins in `bytes`.
    next: usize,
    /// Offset of `bytes` in the connection.
    offset: u64,
}

impl Frames {
    /// Adds bytes of the connection.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.next);
        self.offset += self.next as u64;
        self.next = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next packet, if all of it has arrived.
    ///
    /// # Errors
    /// If the next frame is no packet of RTP or RTCP. Later calls return the same error.
    pub fn next_packet(&mut self) -> Result<Option<&[u8]>, FramingError> {
        loop {
            let Some((head, packet)) = self.bytes[self.next..].split_first_chunk::<LENGTH>() else { return Ok(None) };
            let length = u16::from_be_bytes(*head);
            // A null packet (RFC 4571 §2).
            if length == 0 {
                self.next += LENGTH;
                continue;
            }
            // The first two bits are the version, which is checked before the packet is complete:
            // of other bytes the length has no meaning.
            let has_version = packet.first().is_none_or(|first| first >> 6 == 2);
            if usize::from(length) < SHORTEST || !has_version {
                return Err(FramingError { at: self.offset + self.next as u64, length });
            }
            let end = self.next + LENGTH + usize::from(length);
            if self.bytes.len() < end {
                return Ok(None);
            }
            let start = std::mem::replace(&mut self.next, end) + LENGTH;
            return Ok(Some(&self.bytes[start..end]));
        }
    }

    /// Bytes of a frame that has not arrived in full; zero between packets.
    pub fn partial(&self) -> usize {
        self.bytes.len() - self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(kind: u8, length: usize) -> Vec<u8> {
        let mut packet = vec![7; length];
        packet[..2].copy_from_slice(&[0x80, kind]);
        packet
    }

    #[test]
    fn a_frame_that_is_no_packet_is_named_before_all_of_it_has_arrived() {
        for (head, length) in [(&[0xFF, 0xFF, 0x16][..], 0xFFFF), (&[0, 7], 7), (&[1, 0, 0x40, 1], 256)] {
            let mut frames = Frames::default();
            let (first, mut bytes) = (packet(96, 20), Vec::new());
            write(&first, &mut bytes);
            bytes.extend(head);
            frames.push(&bytes);
            assert_eq!(frames.next_packet(), Ok(Some(&first[..])));
            assert_eq!(frames.next_packet(), Err(FramingError { at: 22, length }));
            frames.push(&[0; 50]);
            assert_eq!(frames.next_packet(), Err(FramingError { at: 22, length }), "for good");
        }
    }

    #[test]
    fn null_packets_are_skipped_and_partial_frames_are_counted() {
        let mut frames = Frames::default();
        for (bytes, partial) in [(&[0, 0, 0, 0][..], 0), (&[0], 1), (&[12, 0x80, 200], 4)] {
            frames.push(bytes);
            assert_eq!(frames.next_packet(), Ok(None));
            assert_eq!(frames.partial(), partial);
        }
        frames.push(&[7; 10]);
        assert_eq!(frames.next_packet(), Ok(Some(&packet(200, 12)[..])));
        assert_eq!(frames.partial(), 0);
    }

    proptest! {
        #[test]
        fn packets_are_read_as_they_were_written(
            lengths in proptest::collection::vec(8_usize..3000, 1..20), step in 1_usize..4000,
        ) {
            let packets: Vec<Vec<u8>> = lengths.iter().map(|length| packet(96, *length)).collect();
            let mut bytes = Vec::new();
            packets.iter().for_each(|packet| write(packet, &mut bytes));
            let (mut frames, mut read) = (Frames::default(), Vec::new());
            for part in bytes.chunks(step) {
                frames.push(part);
                while let Some(packet) = frames.next_packet().expect("frames of packets") {
                    read.push(packet.to_vec());
                }
            }
            prop_assert_eq!(read, packets);
            prop_assert_eq!(frames.partial(), 0);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), step in 1_usize..50) {
            let mut frames = Frames::default();
            for part in bytes.chunks(step) {
                frames.push(part);
                while let Ok(Some(packet)) = frames.next_packet() {
                    prop_assert!(packet.len() >= SHORTEST);
                }
            }
            prop_assert!(frames.partial() <= bytes.len());
        }
    }
}
