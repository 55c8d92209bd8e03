//! A stream of another program: its receiver, without I/O.
//!
//! The video is not known before. So the [`Receiver`] stores the header of each packet, and sends
//! receiver reports. After the stream, [`Receiver::watch`] makes the video of these headers, and
//! repeats the arrivals at a [`Client`], so that all figures come from the same code.

mod frames;

use std::sync::Arc;

use airpath_core::{Bytes, Instant, RandomStream, Span};
use airpath_wire::rtcp::{self, Compound, Packet};
use airpath_wire::rtp::RtpHeader;

use super::h264::parameter_sets::SequenceParameters;
use super::h264::payload::Contents;
use super::reception::Reception;
use super::reports::ReportTimer;
use super::video::{FrameKind, VideoError};
use super::{CLOCK, Channel, Client, FirstNumbers, HEADERS, PAYLOAD_TYPE, Sent, Session, Settings};

/// Name of the receiver in its reports (RFC 3550 §6.5.1).
const NAME: &str = "receiver@airpath";
/// Time after the BYE of the sender in which packets can still arrive.
const AFTER_BYE: Span = Span::from_millis(500);
/// Most packets of a stream, and of those that arrive.
const MOST_PACKETS: u32 = 5_000_000;
/// Longest distance of a timestamp from the time of arrival, relative to the first packet, in units
/// of the clock: an hour.
const LONGEST_DISTANCE: u64 = 3600 * CLOCK;
/// The payload types of encodings that have no fixed one (RFC 3551 §6).
const DYNAMIC: std::ops::RangeInclusive<u8> = 96..=127;
/// Rate of a session before packets have arrived, in bits per second.
const FIRST_RATE: f64 = 64_000.0;

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The sender sent BYE.
    Bye,
    /// No packet came for the time-out.
    Silence,
    /// It had the most packets that are stored.
    Limit,
    /// The connection that carried it was closed or lost.
    Closed,
}

/// The receiver of a stream.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The payload type of a description.
    payload_type: Option<u8>,
    timeout: Span,
    stream: Option<Stream>,
    /// The source of the receiver's reports.
    ssrc: u32,
    /// Whether reports wait for the first one of the sender.
    replies: bool,
    timer: ReportTimer,
    reception: Reception,
    arrivals: Vec<Arrival>,
    counts: Counts,
    /// When the stream ends unless a packet arrives before.
    until: Instant,
    ended: Option<Ended>,
    left: bool,
    bytes: Vec<u8>,
}

/// The stream that is received, from its first packet.
#[derive(Clone, Copy, Debug)]
struct Stream {
    ssrc: u32,
    payload_type: u8,
    sequence: u16,
    timestamp: u32,
    start: Instant,
}

/// What a receiver has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that were no packets of the stream.
    pub foreign: u64,
    /// The payload type of the last one with RTP.
    pub foreign_type: Option<u8>,
    /// RTCP datagrams received.
    pub reports_received: u64,
    /// RTCP datagrams sent.
    pub reports_sent: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Whether parameter sets of sequence and picture have arrived.
    pub parameters: [bool; 2],
    /// The first sequence parameters that arrived.
    pub sequence: Option<SequenceParameters>,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    time: Instant,
    /// Its number, counted from the first packet.
    number: u32,
    timestamp: u32,
    /// When its frame is displayed, relative to that of the first packet, in units of the clock.
    position: i64,
    /// Bytes of its payload.
    size: u32,
    marker: bool,
    /// Whether a frame begins in it.
    begins: bool,
    kind: Option<FrameKind>,
}

/// A stream as a player had it.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The video and its packets.
    pub session: Arc<Session>,
    /// The client that displayed it.
    pub client: Client,
    /// What the sender has sent, by the numbers of the packets that arrived.
    pub sent: Sent,
    /// When the first packet arrived.
    pub start: Instant,
    /// Arrivals of packets, each once.
    pub arrivals: Vec<Watching>,
}

/// The arrival of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watching {
    /// When it arrived.
    pub time: Instant,
    /// Its number, counted from zero.
    pub number: u32,
    /// Delay in addition to that of the fastest packet.
    pub delay: Span,
    /// Bytes of media by then.
    pub delivered: u64,
}

impl Receiver {
    /// A receiver that waits from `start` on, at most `timeout` for the next packet. Without a
    /// payload type, packets of any dynamic type can begin the stream.
    pub fn new(
        payload_type: Option<u8>,
        timeout: Span,
        report_interval: Span,
        start: Instant,
        mut random: RandomStream,
    ) -> Self {
        Self {
            payload_type,
            timeout,
            stream: None,
            ssrc: random.bits() as u32,
            replies: false,
            timer: ReportTimer::with_rate(report_interval, FIRST_RATE, start, random),
            reception: Reception::default(),
            arrivals: Vec::new(),
            counts: Counts::default(),
            until: start + timeout,
            ended: None,
            left: false,
            bytes: Vec::new(),
        }
    }

    /// Sends reports only to a sender that sends reports itself. Over TCP a sender that does not
    /// read would reset the connection at its end, and lose the packets that are in flight.
    pub fn replying(mut self) -> Self {
        self.replies = true;
        self
    }

    /// Receives a datagram on the port of RTP. Returns the packets so far if it is a packet of the
    /// stream; the first one begins it.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) -> Option<u64> {
        if self.ended.is_some_and(|ended| ended != Ended::Bye) || self.left {
            return None;
        }
        if self.stream.is_some() && Channel::of_packet(bytes) == Channel::Reports {
            self.receive_report(now, bytes);
            return None;
        }
        let Some(arrival) = self.arrival(now, bytes) else {
            self.counts.foreign += 1;
            return None;
        };
        if arrival.number >= MOST_PACKETS || self.arrivals.len() >= MOST_PACKETS as usize {
            self.end(now, Ended::Limit);
            return None;
        }
        self.reception.add(now, arrival.number, arrival.timestamp);
        self.counts.bytes += u64::from(arrival.size);
        self.arrivals.push(arrival);
        if self.ended.is_none() {
            self.until = now + self.timeout;
        }
        Some(self.arrivals.len() as u64)
    }

    /// Reads a packet of the stream.
    fn arrival(&mut self, now: Instant, bytes: &[u8]) -> Option<Arrival> {
        let (header, payload) = RtpHeader::parse_all(bytes).ok()?;
        let stream = self.stream.unwrap_or(Stream {
            ssrc: header.ssrc,
            payload_type: self.payload_type.unwrap_or(header.payload_type),
            sequence: header.sequence,
            timestamp: header.timestamp,
            start: now,
        });
        if header.payload_type != stream.payload_type
            || self.payload_type.is_none() && !DYNAMIC.contains(&header.payload_type)
        {
            self.counts.foreign_type = Some(header.payload_type);
            return None;
        }
        let contents = Contents::parse(payload)?;
        if header.ssrc != stream.ssrc {
            return None;
        }
        let near = self.reception.highest().unwrap_or_default();
        let relative = header.sequence.wrapping_sub(stream.sequence);
        let number = near.checked_add_signed(i32::from(relative.wrapping_sub(near as u16) as i16))?;
        // Timestamps have 32 bits, which repeat after 13 hours.
        let elapsed = ticks_between(stream.start, now);
        let ahead = header.timestamp.wrapping_sub(stream.timestamp).wrapping_sub(elapsed as u32) as i32;
        if u64::from(ahead.unsigned_abs()) > LONGEST_DISTANCE {
            return None;
        }
        self.stream = Some(stream);
        for (known, new) in self.counts.parameters.iter_mut().zip(contents.parameters) {
            *known |= new;
        }
        self.counts.sequence = self.counts.sequence.or(contents.sequence);
        Some(Arrival {
            time: now,
            number,
            timestamp: header.timestamp,
            position: elapsed + i64::from(ahead),
            size: payload.len() as u32,
            marker: header.marker,
            begins: contents.begins,
            kind: contents.kind,
        })
    }

    /// Receives a datagram on the port of RTCP. What is no RTCP is ignored.
    pub fn receive_report(&mut self, now: Instant, bytes: &[u8]) {
        let mut packets = rtcp::packets(bytes).map_while(Result::ok).peekable();
        self.counts.reports_received += u64::from(packets.peek().is_some());
        for packet in packets {
            match packet {
                Packet::SenderReport(info) => self.reception.sender_report(now, info.ntp),
                Packet::Bye if self.stream.is_some() => self.end(now, Ended::Bye),
                _ => {}
            }
        }
    }

    /// The connection that carries the stream was closed or lost: no more packets can arrive.
    pub fn close(&mut self, now: Instant) {
        self.end(now, Ended::Closed);
        self.until = now;
    }

    fn end(&mut self, now: Instant, why: Ended) {
        if self.ended.is_none() {
            self.ended = Some(why);
            self.until = if why == Ended::Bye { now + AFTER_BYE } else { now };
        }
    }

    /// The next report, if one is due. Call it until it returns `None`.
    pub fn poll(&mut self, now: Instant) -> Option<&[u8]> {
        if self.left {
            return None;
        }
        let stream = self.reported();
        if self.until <= now {
            self.ended.get_or_insert(Ended::Silence);
            self.left = true;
        }
        let stream = stream.filter(|_| self.left || self.timer.next() <= now)?;
        let elapsed = now.since(stream.start);
        let bytes = self.counts.bytes + self.arrivals.len() as u64 * u64::from(HEADERS);
        let rate = Bytes::new(bytes).rate_over(elapsed).unwrap_or_default();
        self.timer.set_rate(rate.max(FIRST_RATE));
        let block = self.reception.block(now, stream.ssrc, stream.sequence);
        // The sources of a session differ (RFC 3550 §8).
        let ssrc = if self.ssrc == stream.ssrc { !self.ssrc } else { self.ssrc };
        let mut compound = Compound::new(&mut self.bytes);
        compound.receiver_report(ssrc, block.as_ref());
        compound.canonical_name(ssrc, NAME);
        if self.left {
            compound.bye(ssrc);
        }
        self.counts.reports_sent += 1;
        self.timer.sent(now, self.bytes.len(), true);
        Some(&self.bytes)
    }

    /// The stream, if reports on it are sent.
    fn reported(&self) -> Option<Stream> {
        self.stream.filter(|_| !self.replies || self.counts.reports_received > 0)
    }

    /// When to call [`Self::poll`] next, if nothing arrives before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        let report = self.reported().map(|_| self.timer.next());
        (!self.left).then(|| report.map_or(self.until, |report| report.min(self.until)))
    }

    /// Whether the stream is over, and the last report was returned.
    pub const fn is_over(&self) -> bool {
        self.left
    }

    /// Why the stream ended, if it did.
    pub const fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Whether a packet of the stream has arrived.
    pub const fn has_begun(&self) -> bool {
        self.stream.is_some()
    }

    /// What was counted.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The stream as a player with a buffer of `buffer` has it, until `until` if it was stopped
    /// then.
    ///
    /// # Errors
    /// If fewer than two frames have arrived.
    pub fn watch(&self, buffer: Span, until: Option<Instant>) -> Result<Watched, VideoError> {
        let nothing = VideoError { frame: None, field: "frames", message: "no packet has arrived" };
        let stream = self.stream.ok_or(nothing)?;
        let frames::Made { video, sizes, first } = frames::make(&self.arrivals)?;
        // The receiver has decided when the stream is over.
        let timeout = Settings::LONGEST;
        let settings = Settings { buffer, timeout, report_interval: timeout, ..Settings::default() };
        settings.check(&video)?;
        let numbers = FirstNumbers {
            ssrc: stream.ssrc,
            sequence: stream.sequence,
            timestamp: stream.timestamp.wrapping_add(first as u32),
            offset: 0,
        };
        let total = sizes.iter().flatten().map(|size| u64::from(*size)).sum();
        let session = Arc::new(Session::of_packets(settings, Arc::new(video), sizes, numbers));
        let random = airpath_core::Seed::new(0).stream("client");
        let mut client = Client::new(Arc::clone(&session), stream.start, random);
        let mut arrivals = Vec::with_capacity(self.arrivals.len());
        let transit = |arrival: &Arrival| ticks_between(stream.start, arrival.time) - arrival.position;
        let least = self.arrivals.iter().map(transit).min().unwrap_or_default();
        for arrival in &self.arrivals {
            advance(&mut client, arrival.time);
            let header = RtpHeader {
                marker: arrival.marker,
                payload_type: PAYLOAD_TYPE,
                sequence: stream.sequence.wrapping_add(arrival.number as u16),
                timestamp: arrival.timestamp,
                ssrc: stream.ssrc,
            };
            if let Some(number) = client.receive(arrival.time, Channel::Media, &header.to_bytes()) {
                let delay = Span::from_nanos((transit(arrival) - least) as u64 * 1_000_000_000 / CLOCK);
                arrivals.push(Watching { time: arrival.time, number, delay, delivered: client.received().bytes });
            }
        }
        advance(&mut client, until.unwrap_or(Instant::FAR_FUTURE));
        let sent = Sent {
            packets: session.packets().into(),
            bytes: total,
            reports: self.counts.reports_received,
            last_media: self.arrivals.last().map(|last| last.time),
            ..Sent::default()
        };
        Ok(Watched { session, client, sent, start: stream.start, arrivals })
    }
}

/// Lets the client act until `until`. Its reports are not sent.
fn advance(client: &mut Client, until: Instant) {
    while let Some(due) = client.next_wakeup().filter(|due| *due <= until) {
        while client.poll(due).is_some() {}
    }
}

/// The time from one instant to another in units of the RTP clock.
fn ticks_between(from: Instant, to: Instant) -> i64 {
    (u128::from(to.since(from).as_nanos()) * u128::from(CLOCK) / 1_000_000_000) as i64
}

#[cfg(test)]
mod tests;
