//! Reliable mode at the compressor (RFC 3095 §5.5.1), and transitions between the modes (§5.6):
//! packets refer to the last update that was acknowledged, or to those since.

use super::context::Context;
use super::packets::RtpFields;
use super::updates::{Sent, UPDATE_INTERVAL, Update, Updates};
use crate::crc::Crc;
use crate::feedback::{Acknowledgement, Feedback};
use crate::framework::{Config, Mode};
use crate::header::Header;
use crate::lsb::{Shift, low};
use crate::profile::Profile;
use crate::refresh::Due;

/// Updates without an acknowledgment after which the whole context is sent.
const MOST_UPDATES: usize = 128;

impl Context {
    /// Receives feedback.
    pub(super) fn receive(&mut self, feedback: &Feedback) {
        if !self.refresh.waits() {
            self.refresh.receive(feedback, self.sequence);
        }
        let is_free = !self.refresh.is_pending;
        if let Some(mode) = feedback.mode.filter(|mode| is_free && *mode != self.refresh.mode) {
            if (self.refresh.mode, mode) == (Mode::Unidirectional, Mode::Optimistic) {
                // The only transition without a handshake (RFC 3095 §5.6.2).
                self.refresh.mode = mode;
            } else {
                self.begin_transition(mode);
            }
        }
        if self.refresh.waits() {
            self.receive_reliably(feedback);
        }
    }

    /// Begins a transition: the dynamic part is sent until a packet with the mode is acknowledged.
    fn begin_transition(&mut self, mode: Mode) {
        (self.refresh.mode, self.refresh.is_pending) = (mode, true);
        self.refresh.change(self.sequence.wrapping_add(1));
        self.forget_references();
    }

    fn forget_references(&mut self) {
        self.updates = Updates::default();
        for window in [&mut self.sequences, &mut self.scaled, &mut self.excess, &mut self.offsets] {
            window.clear();
        }
    }

    fn receive_reliably(&mut self, feedback: &Feedback) {
        match feedback.acknowledgement {
            Acknowledgement::Ack => {}
            Acknowledgement::Nack => return self.refresh.change(self.sequence.wrapping_add(1)),
            Acknowledgement::StaticNack => return self.restart(),
        }
        let Some((value, bits)) = feedback.sequence else { return };
        let is_acknowledged = |update: &Update| low(update.sequence, bits) == value;
        let Some(index) = self.updates.updates.iter().rposition(is_acknowledged) else { return };
        let Update { sequence, parts, has_mode } = self.updates.updates[index];
        self.refresh.acknowledge(sequence, parts);
        self.refresh.is_pending &= !has_mode;
        self.updates.updates.drain(..index);
        let count = self.updates.updates.len();
        for window in [&mut self.sequences, &mut self.scaled, &mut self.excess, &mut self.offsets] {
            window.keep_latest(count);
        }
    }

    /// Sends the whole context again. Without RTP an IR packet has no mode, so that the
    /// decompressor begins in unidirectional mode: the transition is repeated.
    fn restart(&mut self) {
        self.refresh.is_pending |= !self.has_mode();
        self.refresh.change_all(self.sequence.wrapping_add(1));
        self.forget_references();
    }

    /// Whether an IR or IR-DYN packet carries the mode.
    pub(super) fn has_mode(&self) -> bool {
        self.header.profile == Profile::Rtp
    }

    /// Notes a packet that was sent while acknowledgments are waited for.
    pub(super) fn note(&mut self, parts: Due, sent: Sent, header: &Header) {
        let Sent::Update { has_mode } = sent else {
            self.updates.since += 1;
            return;
        };
        self.updates.since = 0;
        self.updates.updates.push(Update { sequence: self.sequence, parts, has_mode });
        self.sequences.push_unacknowledged(self.sequence & 0xffff);
        if header.profile == Profile::Rtp {
            self.scaled.push_unacknowledged(self.scaled_timestamp(header));
            self.excess.push_unacknowledged(self.excess(header));
        }
        self.offsets.push_unacknowledged(self.id_offset(header));
        if self.updates.updates.len() >= MOST_UPDATES {
            self.restart();
        }
    }

    /// Appends the smallest header that every reference of the decompressor restores; `None` if
    /// none does.
    pub(super) fn push_reliable(&self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) -> Option<Sent> {
        let start = out.len();
        let sent = if header.profile == Profile::Rtp {
            self.push_reliable_rtp(config, cid, header, out)
        } else if self.refresh.is_pending {
            self.push_mode(config, cid, header, out)
        } else {
            self.push_reliable_counted(config, cid, header, out)
        };
        if sent.is_some() {
            self.push_tail(header, out);
        } else {
            out.truncate(start);
        }
        sent
    }

    /// R-0 or R-0-CRC, which carry nothing but the sequence number.
    fn push_type_0(&self, config: &Config, cid: u16, header: &Header, shift: Shift, out: &mut Vec<u8>) -> Option<Sent> {
        let (is_due, sequence) = (self.updates.is_due(self.sequence), self.sequence);
        if !is_due && self.fits_sequence(6, shift) {
            config.begin(out, cid, low(sequence, 6) as u8);
            return Some(Sent::Other);
        }
        if !self.fits_sequence(7, shift) {
            return None;
        }
        config.begin(out, cid, 0x40 | low(sequence >> 1, 6) as u8);
        out.push((low(sequence, 1) as u8) << 7 | header.crc(Crc::Seven));
        Some(Sent::Update { has_mode: false })
    }

    /// Packets of RTP.
    fn push_reliable_rtp(&self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) -> Option<Sent> {
        let fields = &self.rtp_fields(header);
        let RtpFields { offset, has_id, is_id_constant, is_timestamp_inferred, scaled, marker } = *fields;
        let excess = self.excess(header);
        let marked = u8::from(marker) << 7;
        if is_id_constant
            && is_timestamp_inferred
            && !marker
            && let Some(sent) = self.push_type_0(config, cid, header, Shift::RtpSequence, out)
        {
            return Some(sent);
        }
        // While an update with the same pattern waits for its acknowledgment, smaller packets do.
        let is_known = self.excess.latest() == Some(excess) && (!has_id || self.offsets.latest() == Some(offset));
        let is_update_due = !is_known && !marker || self.updates.since + 1 >= UPDATE_INTERVAL;
        if !is_update_due && self.fits_sequence(6, Shift::RtpSequence) {
            let first = 0x80 | low(self.sequence, 6) as u8;
            // R-1, R-1-TS or R-1-ID.
            let second = if !has_id && self.fits_time(scaled, 6) {
                Some(low(scaled, 6))
            } else if has_id && is_id_constant && self.fits_time(scaled, 5) {
                Some(0x20 | low(scaled, 5))
            } else if has_id && is_timestamp_inferred && self.fits_id(offset, 5) {
                Some(low(offset, 5))
            } else {
                None
            };
            if let Some(second) = second {
                config.begin(out, cid, first);
                out.push(marked | second as u8);
                return Some(Sent::Other);
            }
        }
        self.push_rtp_2(config, cid, header, fields, out).then_some(Sent::Update { has_mode: false })
    }

    /// Packets of profiles whose sequence numbers the compressor counts.
    fn push_reliable_counted(&self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) -> Option<Sent> {
        let offset = self.id_offset(header);
        if (!self.has_sequential_id(header) || self.offsets.is_constant(offset))
            && let Some(sent) = self.push_type_0(config, cid, header, Shift::Counted, out)
        {
            return Some(sent);
        }
        let is_update_due = self.offsets.latest() != Some(offset) || self.updates.since + 1 >= UPDATE_INTERVAL;
        let fits = self.fits_sequence(6, Shift::Counted) && self.fits_id(offset, 7);
        if !is_update_due && self.has_sequential_id(header) && fits {
            //
            config.begin(out, cid, 0x80 | low(self.sequence, 6) as u8);
            out.push(low(offset, 7) as u8);
            return Some(Sent::Other);
        }
        self.push_counted_2(config, cid, header, out).then_some(Sent::Update { has_mode: false })
    }

    /// UOR-2 with extension 3, which carries the mode: 13 bits of the sequence number, and the
    /// offset of the IP-ID.
    fn push_mode(&self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) -> Option<Sent> {
        self.fits_sequence(13, Shift::Counted).then_some(())?;
        let has_id = self.has_sequential_id(header);
        config.begin(out, cid, 0xc0 | low(self.sequence >> 8, 5) as u8);
        out.push(0x80 | header.crc(Crc::Seven));
        out.push(0xc0 | 0x20 | self.refresh.mode.number() << 3 | u8::from(has_id) << 2);
        out.push(self.sequence as u8);
        if has_id {
            out.extend_from_slice(&(self.id_offset(header) as u16).to_be_bytes());
        }
        Some(Sent::Update { has_mode: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends the next packet of a voice flow; returns the first octet.
    fn send(context: &mut Context) -> u8 {
        let mut packet = vec![0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend_from_slice(&[0x40, 0, 0x0f, 0xa0, 0, 40, 0, 0, 0x80, 96]);
        let sequence = context.sequence as u16 + 1;
        packet.extend_from_slice(&sequence.to_be_bytes());
        packet.extend_from_slice(&(u32::from(sequence) * 160).to_be_bytes());
        packet.extend_from_slice(&[1, 2, 3, 4]);
        packet.resize(60, 0);
        packet[4..6].copy_from_slice(&sequence.to_be_bytes());
        let checksum = airpath_wire::checksum::Sum::of(&packet[..20]).checksum();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        let header = Header::parse(Profile::Rtp, &packet, packet.len()).expect("RTP");
        let mut out = Vec::new();
        context.send(&Config::default(), 0, &header, &mut out);
        out[0]
    }

    fn acknowledge(context: &mut Context, mode: Mode, age: u32) {
        let sequence = Some(((context.sequence - age) & 0xfff, 12));
        let feedback = Feedback { cid: 0, acknowledgement: Acknowledgement::Ack, mode: Some(mode), sequence };
        context.receive(&feedback);
    }

    /// RFC 3095 §5.6.3 and §5.6.5: neither type 0 nor type 1 until a packet with the mode is
    /// acknowledged.
    #[test]
    fn transitions_wait_for_an_acknowledgment() {
        let packet =
            [0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x40, 0, 0x0f, 0xa0, 0, 40, 0, 0];
        let mut packet = [&packet[..], &[0x80, 96, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]].concat();
        packet.resize(60, 0);
        let checksum = airpath_wire::checksum::Sum::of(&packet[..20]).checksum();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        let mut context = Context::new(&Header::parse(Profile::Rtp, &packet, packet.len()).expect("RTP"));
        // IR packets, then UO-0.
        let firsts: Vec<_> = (0..8).map(|_| send(&mut context)).collect();
        assert!(firsts[0] == 0xfd && firsts[7] < 0x80, "{firsts:02x?}");

        acknowledge(&mut context, Mode::Reliable, 0);
        // Requests during a transition are ignored.
        acknowledge(&mut context, Mode::Optimistic, 0);
        assert!((0..30).all(|_| send(&mut context) == 0xf8), "IR-DYN until one is acknowledged");
        acknowledge(&mut context, Mode::Reliable, 10);
        // R-0 with six bits of the sequence number.
        assert_eq!(send(&mut context), context.sequence as u8 & 0x3f);
        // After half of the interval updates come, but no acknowledgment.
        let firsts: Vec<_> = (0..60).map(|_| send(&mut context)).collect();
        assert!(firsts[50..].iter().all(|first| first & 0xc0 == 0x40), "{firsts:02x?}");
        // An acknowledgment of a packet that was no update is invalid.
        acknowledge(&mut context, Mode::Reliable, 59);
        assert_eq!(send(&mut context) & 0xc0, 0x40);
        acknowledge(&mut context, Mode::Reliable, 0);
        assert_eq!(send(&mut context) & 0xc0, 0);

        acknowledge(&mut context, Mode::Optimistic, 0);
        assert_eq!((context.refresh.mode, context.refresh.is_pending), (Mode::Optimistic, true));
        assert!((0..10).all(|_| send(&mut context) == 0xf8));
        acknowledge(&mut context, Mode::Optimistic, 3);
        assert!(send(&mut context) < 0x80 && !context.refresh.waits());
    }
}
