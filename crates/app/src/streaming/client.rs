//! The client: receives packets, measures their reception, and sends receiver reports and NACKs.

use std::sync::Arc;

use airpath_core::{Bytes, Instant, RandomStream, Span, earliest};
use airpath_wire::rtcp::{self, Compound, NextDataUnit, Packet};
use airpath_wire::rtp::RtpHeader;

use super::losses::Losses;
use super::player::{Arrival, Player};
use super::reception::Reception;
use super::reports::ReportTimer;
use super::{Channel, Datagram, HEADERS, LowerTransport, PAYLOAD_TYPE, PROBES, RETRANSMISSION_TYPE, Repair, Session};

/// Name of the client in its reports (RFC 3550 §6.5.1).
const NAME: &str = "client@airpath";

/// Most pairs of a number and a mask in a NACK: with a report and a name it has less than 200
/// bytes.
const NACK_PAIRS: usize = 24;

/// The client.
#[derive(Clone, Debug)]
pub struct Client {
    session: Arc<Session>,
    player: Player,
    reception: Reception,
    received: Received,
    losses: Losses,
    probes: Probes,
    timer: ReportTimer,
    /// Whether frames were displayed, in the last report of the buffer.
    reported_playing: bool,
    /// When the client gives up unless a packet arrives before.
    inactivity_timeout: Option<Instant>,
    first: Option<Instant>,
    timed_out: bool,
    left: Option<Instant>,
    /// The bytes of the last datagram.
    bytes: Vec<u8>,
}

/// What a client has received and sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets of the video, each once.
    pub packets: u64,
    /// Bytes of media in them.
    pub bytes: u64,
    /// Those that came after their frame was due.
    pub late: u64,
    /// Those that came only as a retransmission.
    pub repaired: u64,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Packets that came when the buffer was full, and were discarded.
    pub discarded: u64,
    /// Datagrams that were no packets of this session.
    pub foreign: u64,
    /// RTCP packets sent.
    pub reports: u64,
}

/// Arrivals of the probes.
#[derive(Clone, Copy, Debug, Default)]
struct Probes {
    /// How many arrived.
    count: u16,
    /// When the first did.
    first: Option<Instant>,
    /// The rate at which they arrived, in bits per second, to be reported.
    rate: Option<u64>,
}

impl Client {
    /// A client that waits for packets from `start` on.
    pub fn new(session: Arc<Session>, start: Instant, random: RandomStream) -> Self {
        Self {
            player: Player::new(Arc::clone(&session), start),
            reception: Reception::default(),
            received: Received::default(),
            losses: Losses::default(),
            probes: Probes::default(),
            timer: ReportTimer::new(&session, start, random),
            reported_playing: false,
            inactivity_timeout: Some(start + session.settings.timeout),
            first: None,
            timed_out: false,
            left: None,
            bytes: Vec::new(),
            session,
        }
    }

    /// Receives a datagram; `bytes` are those with which it begins, at least its headers. Returns
    /// the number of a packet of the video, counted from zero, that had not come before. A client
    /// that gave up receives nothing.
    pub fn receive(&mut self, now: Instant, channel: Channel, bytes: &[u8]) -> Option<u32> {
        if self.timed_out {
            return None;
        }
        self.inactivity_timeout = Some(now + self.session.settings.timeout);
        match channel {
            Channel::Media | Channel::Repair => self.receive_media(now, channel, bytes),
            Channel::Reports => {
                self.receive_report(now, bytes);
                None
            }
        }
    }

    fn receive_media(&mut self, now: Instant, channel: Channel, bytes: &[u8]) -> Option<u32> {
        let near = self.reception.highest().unwrap_or_default();
        let parsed = RtpHeader::parse(bytes).ok();
        if channel == Channel::Repair && parsed.is_some_and(|(header, _)| header.ssrc == self.session.probe_ssrc) {
            self.receive_probe(now);
            return None;
        }
        let packet = parsed.and_then(|(header, payload)| {
            let sequence = match (channel, header.payload_type) {
                (_, PAYLOAD_TYPE) => header.sequence,
                // The payload begins with the original number (RFC 4588 §4).
                (Channel::Repair, RETRANSMISSION_TYPE) => u16::from_be_bytes(*payload.first_chunk()?),
                _ => return None,
            };
            let number = self.session.number_at(sequence, header.timestamp, near)?;
            (header.ssrc == self.session.server_ssrc).then_some((number, header.timestamp))
        });
        let Some((number, timestamp)) = packet else {
            self.received.foreign += 1;
            return None;
        };
        self.first.get_or_insert(now);
        if channel == Channel::Media {
            if self.session.settings.repair != Repair::None {
                self.losses.detect(now, self.reception.highest(), number);
            }
            // Retransmissions are no packets of the stream that reports describe.
            self.reception.add(now, number, timestamp);
        }
        self.losses.arrived(now, number, channel == Channel::Repair);
        // A client of TCP does not read instead.
        if self.session.settings.transport == LowerTransport::Udp && self.has_no_room_for(now, number) {
            self.received.discarded += 1;
            return None;
        }
        match self.player.receive(now, number) {
            Arrival::Duplicate => {
                self.received.duplicates += 1;
                return None;
            }
            Arrival::Late => self.received.late += 1,
            Arrival::InTime => {}
        }
        self.received.packets += 1;
        self.received.repaired += u64::from(channel == Channel::Repair);
        self.received.bytes += u64::from(self.session.media_bytes(number, self.session.place_of(number)));
        Some(number)
    }

    /// Whether the buffer has the most media that the client stores.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.player.advance(now);
        self.session.settings.max_buffer.is_some_and(|most| self.player.level(now) >= most)
    }

    /// Whether packet `number` is beyond the most media that the client stores. A client that waits
    /// for media discards none before the buffer is full.
    fn has_no_room_for(&mut self, now: Instant, number: u32) -> bool {
        let is_full = self.is_full(now);
        let Some(most) = self.session.settings.max_buffer else { return false };
        let (position, is_playing) = self.player.position(now);
        let time = self.session.frame_at(self.session.place_of(number)).time;
        (is_playing || is_full) && time > position + most
    }

    /// After the last probe, the rate of those after the first is reported.
    fn receive_probe(&mut self, now: Instant) {
        let first = *self.probes.first.get_or_insert(now);
        self.probes.count += 1;
        if self.probes.count == PROBES && now > first {
            let bytes = u64::from(PROBES - 1) * (self.session.settings.packet.get() + u64::from(HEADERS));
            self.probes.rate = Bytes::new(bytes).rate_over(now.since(first)).map(|rate| rate as u64);
        }
    }

    fn receive_report(&mut self, now: Instant, bytes: &[u8]) {
        for packet in rtcp::packets(bytes).map_while(Result::ok) {
            match packet {
                Packet::SenderReport(info) => self.reception.sender_report(now, info.ntp),
                Packet::Bye => self.player.end(now),
                _ => {}
            }
        }
    }

    /// Acts as the application does now, and returns a report if one is due. Call it until it
    /// returns `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Datagram<'_>> {
        if self.left.is_some() {
            return None;
        }
        self.player.advance(now);
        if self.player.finished().is_none() && self.inactivity_timeout.is_some_and(|due| due <= now) {
            // After the time of the video, only its end can be missing.
            let video_is_over = self.first.is_some_and(|first| first + self.session.video.duration() <= now);
            if video_is_over {
                self.player.end(now);
            } else {
                self.timed_out = true;
            }
            self.inactivity_timeout = None;
        }
        self.left = (self.player.finished().is_some() || self.timed_out).then_some(now);
        self.losses.forget(self.player.displayed().len(), |number| self.player.is_due(number));
        if self.left.is_some() || self.timer.next() <= now {
            return Some(self.report(now, true));
        }
        self.feedback_due().is_some_and(|due| due <= now).then(|| self.report(now, false))
    }

    /// When feedback is due before the next report.
    fn feedback_due(&self) -> Option<Instant> {
        let losses = match self.session.settings.repair {
            Repair::None | Repair::Once => None,
            Repair::Nack => self.losses.due(),
        };
        let probes = self.probes.rate.map(|_| Instant::ZERO);
        losses.into_iter().chain(probes).chain(self.buffer_report_due()).min().map(|due| due.max(self.timer.feedback()))
    }

    /// The server of a client with a limited buffer must learn when playback begins or stalls.
    fn buffer_report_due(&self) -> Option<Instant> {
        let is_limited = self.session.settings.max_buffer.is_some() && self.first.is_some();
        (is_limited && self.player.next_wakeup().is_some() != self.reported_playing).then_some(Instant::ZERO)
    }

    /// When to call [`Self::poll`] next, if nothing arrives before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        if self.left.is_some() {
            return None;
        }
        let own = [self.inactivity_timeout, self.player.next_wakeup(), self.feedback_due(), Some(self.timer.next())];
        earliest(own)
    }

    /// Whether playback has ended, or the client has given up.
    pub const fn is_over(&self) -> bool {
        self.left.is_some()
    }

    /// When the client left the session.
    pub const fn left(&self) -> Option<Instant> {
        self.left
    }

    /// Whether the client gave up: no packet came for the time-out.
    pub const fn timed_out(&self) -> bool {
        self.timed_out
    }

    /// Why the client gave up, if it did.
    pub fn cause(&self) -> Option<String> {
        self.timed_out.then(|| format!("no packet arrived for {}", self.session.settings.timeout))
    }

    /// Playback.
    pub const fn player(&self) -> &Player {
        &self.player
    }

    /// What was received and sent.
    pub const fn received(&self) -> Received {
        self.received
    }

    /// Inter-arrival jitter (RFC 3550 §6.4.1).
    pub fn jitter(&self) -> Span {
        self.reception.jitter()
    }

    /// A receiver report with the feedback that is due, and BYE when the client leaves.
    fn report(&mut self, now: Instant, regular: bool) -> Datagram<'_> {
        let Self { session, losses, .. } = self;
        let ssrc = session.client_ssrc;
        let block = self.reception.block(now, session.server_ssrc, session.sequence);
        let unit = self.player.next_packet().filter(|_| self.first.is_some());
        let unit = session.settings.max_buffer.zip(unit).map(|(most, next)| {
            let level = self.player.level(now);
            let is_playing = self.player.position(now).1;
            self.reported_playing = is_playing;
            // Zero is a wait for media. Rounded up, so that the server does not send too early.
            let due = self.player.next_wakeup().map_or(Span::ZERO, |due| due.since(now).max(Span::from_millis(1)));
            let free = session.video.rate().as_bps() as f64 * most.saturating_sub(level).as_secs_f64() / 8.0;
            NextDataUnit {
                ssrc: session.server_ssrc,
                playout_delay_ms: (is_playing || level > Span::ZERO)
                    .then(|| due.as_nanos().div_ceil(1_000_000).min(0xFFFE) as u16),
                sequence: session.sequence.wrapping_add(next as u16),
                free_blocks: (free / 64.0) as u16,
            }
        });
        let mut compound = Compound::new(&mut self.bytes);
        compound.receiver_report(ssrc, block.as_ref());
        compound.canonical_name(ssrc, NAME);
        if let Some(unit) = unit {
            compound.next_data_unit(ssrc, &unit);
        }
        if losses.due().is_some_and(|due| due <= now) && self.left.is_none() {
            let sequences = losses.pending(now).map(|number| session.sequence.wrapping_add(number as u16));
            let reported = compound.nack(ssrc, session.server_ssrc, sequences, NACK_PAIRS);
            losses.reported(now, reported, session.settings.repair == Repair::Nack);
        }
        if let Some(rate) = self.probes.rate.take() {
            compound.rate_limit(ssrc, session.server_ssrc, rate, HEADERS as u16);
        }
        if self.left.is_some() {
            compound.bye(ssrc);
        }
        self.received.reports += 1;
        self.timer.sent(now, self.bytes.len(), regular);
        Datagram { channel: Channel::Reports, head: &self.bytes, media: 0 }
    }
}
