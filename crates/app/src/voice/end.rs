//! One end of a call.

use std::sync::Arc;

use airpath_core::{Direction, Instant, Span};
use airpath_wire::rtp::RtpHeader;

use super::codec::{Encoder, FRAME, FrameKind};
use super::conversation::Conversation;
use super::jitter_buffer::{JitterBuffer, Spurt};
use super::payload;
use super::{Session, Settings};
use crate::samples::Samples;

/// Dynamic payload type of AMR and AMR-WB (RFC 4867 §8).
const PAYLOAD_TYPE: u8 = 97;

/// An RTP packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The bytes with which it begins: RTP header, and the entries of the payload.
    pub head: &'a [u8],
    /// Bytes of speech that follow, without contents.
    pub media: u32,
}

/// One end of a call.
#[derive(Clone, Debug)]
pub struct End {
    session: Arc<Session>,
    start: Instant,
    sender: Sender,
    receiver: Receiver,
}

/// The part that sends.
#[derive(Clone, Debug)]
struct Sender {
    direction: Direction,
    conversation: Conversation,
    encoder: Encoder,
    /// What became of each frame that was encoded.
    frames: Vec<FrameKind>,
    /// The next packet.
    next: Option<Outgoing>,
    /// Its frames.
    bundle: Vec<FrameKind>,
    sent: Sent,
    /// The bytes of the last datagram.
    bytes: Vec<u8>,
}

/// A packet that will be sent.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    /// When its last frame is complete.
    due: Instant,
    /// Number of its first frame.
    first: u32,
    /// Whether a talk spurt begins with it.
    begins: bool,
}

/// What an end has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// RTP packets.
    pub packets: u32,
    /// Bytes of their payloads.
    pub bytes: u64,
}

/// The part that receives.
#[derive(Clone, Debug)]
struct Receiver {
    direction: Direction,
    buffer: JitterBuffer,
    /// By number, what became of each frame.
    statuses: Vec<PlayoutStatus>,
    /// The highest number of a frame that arrived, and whether the talk spurt had ended with it.
    highest: Option<(u32, bool)>,
    /// The highest number of a packet.
    highest_packet: u32,
    received: Received,
    /// Frames of the last packet.
    frames: Vec<FrameKind>,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlayoutStatus {
    /// It did not arrive.
    #[default]
    Missing,
    /// It arrived in time.
    InTime,
    /// It arrived after its playout.
    Late,
    /// It arrived, and is comfort noise.
    Noise,
}

/// A packet that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its number, counted from zero.
    pub number: u32,
    /// Its one-way delay.
    pub delay: Span,
    /// The talk spurt that begins to be played out with it.
    pub spurt: Option<Spurt>,
}

/// What an end has received.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// RTP packets, each once.
    pub packets: u32,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Datagrams that were no packets of this call.
    pub not_of_call: u64,
    /// One-way delays of the packets.
    pub delays: Samples,
    /// Time that frames waited in the jitter buffer.
    pub waits: Samples,
    /// Inter-arrival jitter, in seconds (RFC 3550 §6.4.1).
    pub jitter_s: f64,
    /// Capture and arrival of the last packet.
    last: Option<(Instant, Instant)>,
}

impl End {
    /// The end of a call that starts at `start`, which sends in `direction`.
    pub fn new(session: Arc<Session>, direction: Direction, start: Instant) -> Self {
        let settings = &session.settings;
        let mut sender = Sender {
            direction,
            conversation: session.conversation.clone(),
            encoder: Encoder::new(settings.dtx),
            frames: Vec::new(),
            next: None,
            bundle: Vec::with_capacity(settings.frames_per_packet as usize + 1),
            sent: Sent::default(),
            bytes: Vec::new(),
        };
        sender.encode(&session, start);
        let receiver = Receiver {
            direction: direction.opposite(),
            buffer: JitterBuffer::new(settings),
            statuses: Vec::new(),
            highest: None,
            highest_packet: 0,
            received: Received::default(),
            frames: Vec::new(),
        };
        Self { session, start, sender, receiver }
    }

    /// Returns a packet if one is due. Call it until it returns `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Datagram<'_>> {
        let next = self.sender.next.filter(|next| next.due <= now)?;
        let media = self.sender.packet(&self.session, next);
        self.sender.encode(&self.session, self.start);
        Some(Datagram { head: &self.sender.bytes, media })
    }

    /// Receives a packet; `bytes` are those with which it begins, at least the headers. Returns
    /// `None` if it is no packet of the call, had come before, or the call is over.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) -> Option<Arrival> {
        if now >= self.deadline() {
            return None;
        }
        self.receiver.receive(now, &self.session, self.start, bytes)
    }

    /// When to call [`Self::poll`] next; `None` when the call is over.
    pub fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        self.sender.next.map(|next| next.due).or_else(|| (!self.is_over(now)).then(|| self.deadline()))
    }

    /// Whether all packets were sent, and the time to wait for those of the other end has passed.
    pub fn is_over(&self, now: Instant) -> bool {
        self.sender.next.is_none() && now >= self.deadline()
    }

    /// The last frame of either end is complete within a frame after the duration.
    fn deadline(&self) -> Instant {
        self.start + self.session.settings.duration + FRAME + self.session.settings.timeout
    }

    /// The frames up to the last packet that it has sent.
    pub fn frames(&self) -> &[FrameKind] {
        let sent = self.sender.next.map_or(self.sender.frames.len(), |next| next.first as usize);
        &self.sender.frames[..sent]
    }

    /// Speech frames in a packet.
    pub fn frames_per_packet(&self) -> u32 {
        self.session.settings.frames_per_packet
    }

    /// What it has sent.
    pub const fn sent(&self) -> Sent {
        self.sender.sent
    }

    /// What became of the frames of the other end, by number; frames after the last are missing.
    pub fn statuses(&self) -> &[PlayoutStatus] {
        &self.receiver.statuses
    }

    /// What it has received.
    pub const fn received(&self) -> &Received {
        &self.receiver.received
    }

    /// The jitter buffer.
    pub const fn buffer(&self) -> &JitterBuffer {
        &self.receiver.buffer
    }
}

impl Session {
    /// When a frame of `direction` begins, in a call that starts at `start`.
    fn capture(&self, direction: Direction, start: Instant, frame: u32) -> Instant {
        start + self.source(direction).phase + FRAME * u64::from(frame)
    }

    /// From the start of the call to the capture of a frame.
    pub fn capture_time(&self, direction: Direction, frame: u32) -> Span {
        self.capture(direction, Instant::ZERO, frame).since(Instant::ZERO)
    }
}

impl Sender {
    /// Encodes frames until a packet is complete.
    fn encode(&mut self, session: &Session, start: Instant) {
        self.next = None;
        self.bundle.clear();
        let all = session.settings.frames();
        let mut first = None;
        while (self.frames.len() as u32) < all {
            let frame = self.frames.len() as u32;
            let talks = self.conversation.talks(self.direction, FRAME * u64::from(frame));
            let kind = self.encoder.next(talks);
            let follows = self.frames.last() == Some(&FrameKind::Speech);
            self.frames.push(kind);
            if kind == FrameKind::NoData {
                continue;
            }
            self.bundle.push(kind);
            let (first, begins) = *first.get_or_insert((frame, kind == FrameKind::Speech && !follows));
            // Comfort noise ends a talk spurt, and its packet.
            let full = self.bundle.len() as u32 == session.settings.frames_per_packet;
            if full || kind == FrameKind::Sid || frame + 1 == all {
                let due = session.capture(self.direction, start, frame + 1);
                self.next = Some(Outgoing { due, first, begins });
                return;
            }
        }
    }

    /// Makes the packet `next`, and returns the bytes of speech that follow its first ones.
    fn packet(&mut self, session: &Session, next: Outgoing) -> u32 {
        let (codec, source) = (session.settings.codec, session.source(self.direction));
        let header = RtpHeader {
            marker: next.begins,
            payload_type: PAYLOAD_TYPE,
            sequence: source.sequence.wrapping_add(self.sent.packets as u16),
            timestamp: source.timestamp.wrapping_add(next.first.wrapping_mul(codec.ticks())),
            ssrc: source.ssrc,
        };
        let length = payload::length(codec, &self.bundle);
        self.sent.packets += 1;
        self.sent.bytes += u64::from(length);
        self.bytes.clear();
        self.bytes.extend(header.to_bytes());
        payload::write(codec, &self.bundle, &mut self.bytes);
        length - (self.bytes.len() - RtpHeader::LENGTH) as u32
    }
}

impl Receiver {
    fn receive(&mut self, now: Instant, session: &Session, start: Instant, bytes: &[u8]) -> Option<Arrival> {
        // Each packet has a frame at least: its number is at most that of its first frame.
        let parsed = self.parse(session, bytes);
        let parsed = parsed.map(|(header, first)| (header, first, self.number(session, header.sequence)));
        let Some((header, first, number)) = parsed.filter(|(_, first, number)| number <= first) else {
            self.received.not_of_call += 1;
            return None;
        };
        let last = first + self.frames.len() as u32 - 1;
        if self.statuses.len() <= last as usize {
            self.statuses.resize(last as usize + 1, PlayoutStatus::Missing);
        }
        // All frames of a copy have a status.
        if self.statuses[first as usize] != PlayoutStatus::Missing {
            self.received.duplicates += 1;
            return None;
        }
        let capture = session.capture(self.direction, start, first);
        let silent = self.highest.is_none_or(|(highest, ended)| {
            // The packets between them were lost. They had fewer frames than the time has: a pause.
            let packets = number.saturating_sub(self.highest_packet + 1);
            let lost = u64::from(packets) * u64::from(session.settings.frames_per_packet);
            ended || u64::from(first) > u64::from(highest) + 1 + lost
        });
        self.highest_packet = self.highest_packet.max(number);
        let begins = self.frames[0] == FrameKind::Speech && (header.marker || silent);
        let spurts = self.buffer.spurts().len();
        if self.frames[0] == FrameKind::Speech {
            self.buffer.packet(first, now.since(capture), begins);
        }
        for (frame, kind) in (first..).zip(&self.frames) {
            if *kind != FrameKind::Speech {
                self.statuses[frame as usize] = PlayoutStatus::Noise;
                continue;
            }
            let delay = now.since(session.capture(self.direction, start, frame));
            self.statuses[frame as usize] = match self.buffer.frame(frame, delay) {
                Some(wait) => {
                    self.received.waits.add(wait);
                    PlayoutStatus::InTime
                }
                None => PlayoutStatus::Late,
            };
        }
        if self.highest.is_none_or(|(highest, _)| last > highest) {
            self.highest = Some((last, self.frames.last() != Some(&FrameKind::Speech)));
        }
        let due = session.capture(self.direction, start, last + 1);
        self.received.add(now, capture, due);
        let spurt = self.buffer.spurts().get(spurts).copied();
        Some(Arrival { number, delay: now.since(due), spurt })
    }

    /// The number of a packet from its sequence number: the one that is closest to the highest.
    fn number(&self, session: &Session, sequence: u16) -> u32 {
        let relative = sequence.wrapping_sub(session.source(self.direction).sequence);
        let distance = relative.wrapping_sub(self.highest_packet as u16) as i16;
        self.highest_packet.saturating_add_signed(distance.into())
    }

    /// The header and the number of the first frame of a packet of this call, whose frames are then
    /// in `self.frames`.
    fn parse(&mut self, session: &Session, bytes: &[u8]) -> Option<(RtpHeader, u32)> {
        let (codec, source) = (session.settings.codec, session.source(self.direction));
        let (header, payload) = RtpHeader::parse(bytes).ok()?;
        if header.ssrc != source.ssrc || header.payload_type != PAYLOAD_TYPE {
            return None;
        }
        if !payload::read(codec, payload, Settings::MOST_FRAMES as usize + 1, &mut self.frames) {
            return None;
        }
        // The timestamp relative to that of the highest frame, so that it may wrap around.
        let near = self.highest.map_or(0, |(highest, _)| highest);
        let expected = source.timestamp.wrapping_add(near.wrapping_mul(codec.ticks()));
        let distance = header.timestamp.wrapping_sub(expected) as i32;
        let ticks = codec.ticks() as i32;
        let first = near.checked_add_signed(distance / ticks).filter(|_| distance % ticks == 0)?;
        let end = u64::from(first) + self.frames.len() as u64;
        (end <= u64::from(session.settings.frames())).then_some((header, first))
    }
}

impl Received {
    /// Adds a packet whose first frame was captured at `capture`, and that was complete at `due`.
    fn add(&mut self, now: Instant, capture: Instant, due: Instant) {
        self.packets += 1;
        self.delays.add(now.since(due));
        if let Some((before, arrived)) = self.last.replace((capture, now)) {
            let change = (now.since(arrived).as_secs_f64() - arrived.since(now).as_secs_f64())
                - (capture.since(before).as_secs_f64() - before.since(capture).as_secs_f64());
            self.jitter_s += (change.abs() - self.jitter_s) / 16.0;
        }
    }
}
