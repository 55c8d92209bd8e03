//! The frames of a packet that is not encrypted, as text for the event log (RFC 9000 §12.4, §19).

use std::fmt::Write;

/// Reads fields from the front of a slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// An integer of variable length (RFC 9000 §16).
    fn number(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.bytes(1 << (first >> 6))?;
        Some(bytes.iter().skip(1).fold(u64::from(first & 0x3f), |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Bytes with their number in front of them.
    fn counted(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.bytes(count)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }
}

/// The frames of `packet`, which has no header protection. A short header has a connection
/// identifier of `identifier` bytes, and the tag behind the payload has `tag`. `None` if it is no
/// packet of QUIC version 1.
pub fn frames(packet: &[u8], identifier: usize, tag: usize) -> Option<String> {
    let payload = payload(packet, identifier)?;
    let mut reader = Reader(payload.get(..payload.len().checked_sub(tag)?)?);
    let mut text = String::new();
    while !reader.0.is_empty() {
        if !text.is_empty() {
            text.push_str("; ");
        }
        frame(&mut reader, &mut text)?;
    }
    Some(text)
}

/// What follows the packet number (RFC 9000 §17.2, §17.3).
fn payload(packet: &[u8], identifier: usize) -> Option<&[u8]> {
    let mut reader = Reader(packet);
    let first = reader.byte()?;
    if first & 0x80 == 0 {
        reader.bytes(identifier)?;
    } else {
        // Version and both connection identifiers, whose lengths have a byte.
        reader.bytes(4)?;
        for _ in 0..2 {
            let length = reader.byte()?;
            reader.bytes(length.into())?;
        }
        let is_initial = first & 0x30 == 0;
        if is_initial {
            // The token.
            reader.counted()?;
        }
        let length = usize::try_from(reader.number()?).ok()?;
        reader.0 = reader.bytes(length)?;
    }
    reader.bytes(usize::from(first & 3) + 1)?;
    Some(reader.0)
}

/// Reads a frame and appends its name in qlog and its numbers.
fn frame(reader: &mut Reader<'_>, text: &mut String) -> Option<()> {
    let kind = reader.number()?;
    let (name, numbers) = match kind {
        0x00 => return padding(reader, text),
        0x02 | 0x03 => return ack(reader, kind == 0x03, text),
        0x08..=0x0f => return stream(reader, kind, text),
        0x06 => {
            let (offset, length) = (reader.number()?, reader.counted()?.len());
            return write!(text, "crypto {offset} {length}").ok();
        }
        0x01 => ("ping", 0),
        0x04 => ("reset_stream", 3),
        0x05 => ("stop_sending", 2),
        0x07 => ("new_token", 0),
        0x10 => ("max_data", 1),
        0x11 => ("max_stream_data", 2),
        0x12 => ("max_streams bidirectional", 1),
        0x13 => ("max_streams unidirectional", 1),
        0x14 => ("data_blocked", 1),
        0x15 => ("stream_data_blocked", 2),
        0x16 => ("streams_blocked bidirectional", 1),
        0x17 => ("streams_blocked unidirectional", 1),
        0x18 => ("new_connection_id", 2),
        0x19 => ("retire_connection_id", 1),
        0x1a => ("path_challenge", 0),
        0x1b => ("path_response", 0),
        0x1c => ("connection_close transport", 2),
        0x1d => ("connection_close application", 1),
        0x1e => ("handshake_done", 0),
        // draft-ietf-quic-ack-frequency-13: quinn sends it with probes of the path MTU.
        0x1f => ("immediate_ack", 0),
        _ => return None,
    };
    text.push_str(name);
    for _ in 0..numbers {
        write!(text, " {}", reader.number()?).ok()?;
    }
    match kind {
        0x07 | 0x1c | 0x1d => drop(reader.counted()?),
        0x18 => {
            let length = reader.byte()?;
            text.push(' ');
            reader.bytes(length.into())?.iter().try_for_each(|byte| write!(text, "{byte:02x}")).ok()?;
            // The token of a stateless reset.
            reader.bytes(16)?;
        }
        0x1a | 0x1b => drop(reader.bytes(8)?),
        _ => {}
    }
    Some(())
}

/// Appends the length of the padding.
fn padding(reader: &mut Reader<'_>, text: &mut String) -> Option<()> {
    let length = reader.0.iter().take_while(|byte| **byte == 0).count();
    reader.bytes(length)?;
    write!(text, "padding {}", length + 1).ok()
}

/// Appends the acknowledged ranges, the highest first.
fn ack(reader: &mut Reader<'_>, has_counts: bool, text: &mut String) -> Option<()> {
    let mut last = reader.number()?;
    let _delay = reader.number()?;
    let further = reader.number()?;
    let mut first = last.checked_sub(reader.number()?)?;
    write!(text, "ack {first}-{last}").ok()?;
    for _ in 0..further {
        last = first.checked_sub(reader.number()?)?.checked_sub(2)?;
        first = last.checked_sub(reader.number()?)?;
        write!(text, " {first}-{last}").ok()?;
    }
    if has_counts {
        for _ in 0..3 {
            reader.number()?;
        }
    }
    Some(())
}

/// Appends stream, offset, length, and whether the stream ends.
fn stream(reader: &mut Reader<'_>, kind: u64, text: &mut String) -> Option<()> {
    let id = reader.number()?;
    let offset = if kind & 4 == 0 { 0 } else { reader.number()? };
    let length = if kind & 2 == 0 { reader.bytes(reader.0.len())? } else { reader.counted()? }.len();
    let end = if kind & 1 == 0 { "" } else { " fin" };
    write!(text, "stream {id} {offset} {length}{end}").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a packet with a short header, an identifier of one byte and a number of one.
    fn of(payload: &[u8]) -> Option<String> {
        frames(&[&[0x40, 9, 1], payload, &[7; 16]].concat(), 1, 16)
    }

    #[test]
    fn frames_have_their_numbers() {
        let ack = [2, 0x40, 100, 0, 2, 3, 0, 1, 4, 0];
        let stream = [0x0f, 4, 0x44, 0, 2, 1, 2];
        let payload = [&ack[..], &stream, &[0x01, 0x10, 0x80, 1, 0, 0, 0, 0, 0]].concat();
        let expected = "ack 97-100 94-95 88-88; stream 4 1024 2 fin; ping; max_data 65536; padding 3";
        assert_eq!(of(&payload).as_deref(), Some(expected));
        // Of an ACK frame with ECN counts, and of a STREAM frame that ends with the packet.
        assert_eq!(of(&[3, 5, 0, 0, 5, 1, 2, 3, 0x08, 0, 1, 2]).as_deref(), Some("ack 0-5; stream 0 0 2"));
        let lengths = [&[0x18, 1, 0, 4][..], &[0xa9; 20], &[0x1d, 0, 1, 65, 0x1b], &[9; 8], &[0x1e]].concat();
        let expected = "new_connection_id 1 0 a9a9a9a9; connection_close application 0; path_response; handshake_done";
        assert_eq!(of(&lengths).as_deref(), Some(expected));
    }

    #[test]
    fn long_headers_have_identifiers_a_token_and_a_length() {
        let identifiers = [&[0, 0, 0, 1, 2, 8, 8, 1, 9][..]].concat();
        let payload = [&[5, 6][..], &[6, 0, 1, 3], &[7; 16]].concat();
        let handshake = [&[0xe1][..], &identifiers, &[22], &payload, &[1, 2, 3]].concat();
        assert_eq!(frames(&handshake, 8, 16).as_deref(), Some("crypto 0 1"));
        let initial = [&[0xc1][..], &identifiers, &[3, 1, 1, 1, 22], &payload].concat();
        assert_eq!(frames(&initial, 8, 16).as_deref(), Some("crypto 0 1"));
    }

    #[test]
    fn what_is_cut_or_unknown_has_no_frames() {
        assert_eq!(of(&[0x06, 0, 9, 1]), None);
        assert_eq!(of(&[2, 3, 0, 0, 4]), None, "a range below 0");
        assert_eq!(of(&[0x3f]), None);
        assert_eq!(frames(&[], 1, 16), None);
        assert_eq!(frames(&[0x40, 9, 1, 0], 1, 16), None, "shorter than the tag");
    }
}
