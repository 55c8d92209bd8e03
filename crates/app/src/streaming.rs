//! Streaming of a video over RTP (RFC 3550): a server, a client with its playout buffer, and the
//! packets between them.
//!
//! Both ends have the [`Session`]: the video, and the numbers with which its packets begin. A real
//! client learns these from the description and the set-up of the session (RTP-Info, RFC 7826
//! §18.45), which is not modelled. Media have no contents, so a client takes the type of a frame
//! and the number of its packets from the video, where a decoder would read them from the payload.
//!
//! Frames are cut into packets without a payload header, as RFC 6416 §5.1 does for MPEG-4 visual.
//!
//! | module | contents |
//! | --- | --- |
//! | [`video`] | frames, their references, videos that are generated |
//! | [`server`] | sends packets, retransmissions and sender reports |
//! | [`client`] | receives packets, sends receiver reports and NACKs |
//! | [`player`] | playout buffer: start, stalls, frames displayed |
//! | [`interleaved`] | packets within the TCP connection of RTSP |
//! | [`framing`] | packets within a TCP connection of their own |
//! | [`h264`] | H.264: the frames of a file, and the payload of packets |
//! | [`description`] | the description of a session (SDP) |
//! | [`live`] | a stream of another program: its receiver, and the video that it had |
//! | `losses` | packets that the client misses, and when it requests them |
//! | `reception` | how packets arrive, as reports describe it |
//! | `reports` | when the next RTCP report is due |

pub mod client;
pub mod description;
pub mod framing;
pub mod h264;
pub mod interleaved;
pub mod live;
mod losses;
pub mod player;
mod reception;
mod reports;
pub mod server;
pub mod video;

use std::sync::Arc;

use airpath_core::{Bytes, Instant, RandomStream, Span};
use airpath_wire::rtcp::ReportBlock;
use airpath_wire::rtp::RtpHeader;
use serde::{Deserialize, Serialize};

pub use client::Client;
pub use description::Description;
pub use player::Player;
pub use server::{Sent, Server};
pub use video::{Frame, FrameKind, Generated, Video, VideoError};

/// Settings of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Most bytes of a frame in a packet.
    pub packet: Bytes,
    /// Media that the client waits for before it displays the first frame, and after a stall.
    pub buffer: Span,
    /// Most media that the client stores, if that is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_buffer: Option<Span>,
    /// The protocol that carries the packets.
    pub transport: LowerTransport,
    /// Repair of lost packets.
    pub repair: Repair,
    /// Highest rate of the server, as a multiple of the video's rate.
    pub speed: f64,
    /// Most media that the server sends ahead of real time.
    pub ahead: Span,
    /// Whether the server sends three probe packets first: the rate at which they arrive limits
    /// its own.
    pub probes: bool,
    /// Least interval of RTCP reports.
    pub report_interval: Span,
    /// The client leaves the session after this time without a packet.
    pub timeout: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            packet: Bytes::new(1400),
            // The default of the player of the study, Windows Media Player 9.
            buffer: Span::from_secs(5),
            max_buffer: None,
            transport: LowerTransport::Udp,
            repair: Repair::None,
            speed: 1.0,
            ahead: Span::ZERO,
            probes: false,
            // RFC 3550 §6.2.
            report_interval: Span::from_secs(5),
            timeout: Span::from_secs(30),
        }
    }
}

impl Settings {
    /// Longest time of a setting: a day.
    const LONGEST: Span = Span::from_secs(24 * 3600);
    /// Least part of [`Self::max_buffer`] above [`Self::buffer`]: frames within it can be lost, and
    /// playback begins all the same.
    const LEAST_ROOM: Span = Span::from_secs(1);
    /// Longest video: ten years.
    const LONGEST_VIDEO: Span = Span::from_secs(3650 * 24 * 3600);
    /// Most bytes of a frame in a packet, so that it fits IPv4 with all headers.
    pub const MOST_IN_PACKET: u64 = 65_000;

    /// Packets of `video`; those of each frame are at least one. [`Self::packet`] is above zero.
    pub fn packets_of(&self, video: &Video) -> u64 {
        video.frames().iter().map(|frame| u64::from(frame.size).div_ceil(self.packet.get())).sum()
    }

    /// Checks the times of a player, which do not depend on the video.
    ///
    /// # Errors
    /// If one is out of range.
    pub fn check_times(&self) -> Result<(), VideoError> {
        let wrong = |field, message| Err(VideoError { frame: None, field, message });
        if self.buffer > Self::LONGEST {
            return wrong("buffer", "it is too long: at most one day");
        }
        if self.max_buffer.is_some_and(|most| most > Self::LONGEST || most < self.buffer + Self::LEAST_ROOM) {
            return wrong("max_buffer", "it is at least one second more than `buffer`, and at most one day");
        }
        if !(Span::from_millis(1)..=Self::LONGEST).contains(&self.timeout) {
            return wrong("timeout", "it is 1 ms to one day");
        }
        Ok(())
    }

    /// Checks the settings for `video`. The error names the setting.
    ///
    /// # Errors
    /// If a packet has no bytes or too many, the video has 2³¹ packets or more, or the pace of the
    /// server or a time is out of range.
    pub fn check(&self, video: &Video) -> Result<(), VideoError> {
        let wrong = |field, message| Err(VideoError { frame: None, field, message });
        if !(1..=Self::MOST_IN_PACKET).contains(&self.packet.get()) {
            return wrong("packet", "a packet has 1 to 65000 bytes of a frame; 1400 B fit Ethernet with all headers");
        }
        if self.packets_of(video) >= 1 << 31 {
            return wrong("packet", "the video has too many packets: give them more bytes");
        }
        if video.duration() > Self::LONGEST_VIDEO {
            return wrong("video", "it is too long: it lasts at most ten years");
        }
        if self.report_interval > Self::LONGEST {
            return wrong("report_interval", "it is too long: at most one day");
        }
        self.check_times()?;
        if !(1.0..=1000.0).contains(&self.speed) {
            return wrong("speed", "it is 1 to 1000 times the rate of the video");
        }
        if (self.speed > 1.0) == self.ahead.is_zero() {
            return wrong("ahead", "a server that sends ahead of real time needs both `speed` above 1 and `ahead`");
        }
        if self.transport == LowerTransport::Tcp && self.repair != Repair::None {
            return wrong("repair", "TCP retransmits what is lost: remove this key, or set `transport` to \"udp\"");
        }
        if self.transport == LowerTransport::Tcp && self.probes {
            return wrong("probes", "they are datagrams: remove this key, or set `transport` to \"udp\"");
        }
        if self.probes && self.ahead.is_zero() {
            return wrong("probes", "their rate limits only a server with `speed` above 1");
        }
        Ok(())
    }
}

/// The protocol below RTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LowerTransport {
    /// Each packet is a datagram.
    #[default]
    Udp,
    /// The packets of both ends are in one connection ([`interleaved`]).
    Tcp,
}

/// Repair of lost packets. The client reports them in generic NACKs (RFC 4585 §6.2.1), and the
/// server sends them again on a connection of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repair {
    /// Lost packets are not sent again.
    #[default]
    None,
    /// With the next regular report, and once; the packet is the same again. The server of the
    /// study `umts-live` did so.
    Once,
    /// At once, as far as the rate of RTCP permits (RFC 4585 §3.5), and again until the packet
    /// arrives or its frame is due; retransmissions have the format of RFC 4588.
    Nack,
}

/// The connections of a session; each has ports of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// RTP packets of the server.
    Media,
    /// RTCP packets of both ends.
    Reports,
    /// Probes and retransmissions of the server.
    Repair,
}

impl Channel {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Media, Self::Reports, Self::Repair];

    /// The channel of a packet where RTP and RTCP share a port or a connection: an RTP packet has
    /// other second bytes than an RTCP packet (RFC 5761 §4).
    pub fn of_packet(packet: &[u8]) -> Self {
        match packet.get(1) {
            Some(192..=223) => Self::Reports,
            _ => Self::Media,
        }
    }
}

/// A datagram to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its connection.
    pub channel: Channel,
    /// The bytes with which it begins.
    pub head: &'a [u8],
    /// Bytes of media that follow, without contents.
    pub media: u32,
}

/// A stream, as both ends have it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its settings.
    pub settings: Settings,
    /// The video.
    pub video: Arc<Video>,
    /// Number of the first packet of each frame, in the order of sending; at the end the number of
    /// packets.
    first_packets: Vec<u32>,
    /// Bytes of media in each packet; `None` if all but the last of a frame have the most.
    sizes: Option<Vec<u32>>,
    /// Place of each frame in the order of sending.
    places: Vec<u32>,
    /// The server's source.
    server_ssrc: u32,
    /// The client's source.
    client_ssrc: u32,
    /// The source of the probes: another one, as in the study.
    probe_ssrc: u32,
    /// Sequence number of the first packet.
    sequence: u16,
    /// Timestamp of the first frame.
    timestamp: u32,
}

/// The numbers with which the packets of a session begin (RFC 3550 §5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstNumbers {
    /// The server's source.
    ssrc: u32,
    /// Sequence number of the first packet.
    sequence: u16,
    /// Timestamp of the frame that is displayed first.
    timestamp: u32,
    /// Distance of the other sources, below 2³¹.
    offset: u32,
}

impl FirstNumbers {
    /// Random ones.
    pub fn random(random: &mut RandomStream) -> Self {
        let [server, client] = [random.bits(), random.bits()];
        Self {
            ssrc: server as u32,
            sequence: (server >> 32) as u16,
            timestamp: (client >> 32) as u32,
            offset: client as u32 >> 1,
        }
    }
}

/// Rate of the RTP clock of video (RFC 6416 §5.1).
const CLOCK: u64 = 90_000;
/// Dynamic payload type of the video (RFC 3551 §6).
const PAYLOAD_TYPE: u8 = 96;
/// That of retransmissions (RFC 4588).
const RETRANSMISSION_TYPE: u8 = 97;
/// Probe packets at the start, as in the study.
const PROBES: u16 = 3;
/// Bytes of IPv4, UDP and RTP headers.
const HEADERS: u32 = 20 + 8 + RtpHeader::LENGTH as u32;

impl Session {
    /// A session with first numbers from `random` (RFC 3550 §5.1).
    ///
    /// # Panics
    /// If the settings do not fit the video ([`Settings::check`]).
    pub fn new(settings: Settings, video: Arc<Video>, random: &mut RandomStream) -> Self {
        let most = settings.packet.get() as u32;
        let count = |frame: &u32| video.frames()[*frame as usize].size.div_ceil(most);
        let counts: Vec<u32> = video.sending_order().iter().map(count).collect();
        Self::of(settings, video, &counts, None, FirstNumbers::random(random))
    }

    /// A session whose frames have packets with these bytes of media, in the order of sending.
    ///
    /// # Panics
    /// If the settings do not fit the video ([`Settings::check`]).
    pub fn of_packets(
        settings: Settings,
        video: Arc<Video>,
        packets: impl IntoIterator<Item = Vec<u32>>,
        first: FirstNumbers,
    ) -> Self {
        let (mut counts, mut sizes) = (Vec::with_capacity(video.frames().len()), Vec::new());
        for frame in packets {
            counts.push(frame.len() as u32);
            sizes.extend(frame);
        }
        assert_eq!(counts.len(), video.frames().len(), "each frame has its packets");
        Self::of(settings, video, &counts, Some(sizes), first)
    }

    /// `counts` are the packets of each frame in the order of sending.
    fn of(settings: Settings, video: Arc<Video>, counts: &[u32], sizes: Option<Vec<u32>>, first: FirstNumbers) -> Self {
        assert!(settings.check(&video).is_ok(), "the settings were checked");
        let mut first_packets = Vec::with_capacity(video.frames().len() + 1);
        let mut places = vec![0; video.frames().len()];
        let mut total = 0;
        for ((place, frame), count) in (0..).zip(video.sending_order()).zip(counts) {
            places[*frame as usize] = place;
            first_packets.push(total);
            total += count;
        }
        first_packets.push(total);
        let FirstNumbers { ssrc, sequence, timestamp, offset } = first;
        Self {
            settings,
            video,
            first_packets,
            sizes,
            places,
            server_ssrc: ssrc,
            // The sources of a session differ (RFC 3550 §8).
            client_ssrc: ssrc.wrapping_add(1 + offset),
            probe_ssrc: ssrc.wrapping_sub(1 + offset / 2),
            sequence,
            timestamp,
        }
    }

    /// Packets of the video.
    pub fn packets(&self) -> u32 {
        self.first_packets[self.first_packets.len() - 1]
    }

    /// Mean rate of the packets with their headers, in bits per second.
    fn rate(&self) -> f64 {
        let headers = u64::from(self.packets()) * u64::from(HEADERS);
        let bytes = Bytes::new(self.video.bytes().get() + headers);
        bytes.rate_over(self.video.duration()).unwrap_or_default()
    }

    /// Time after the last packet in which a lost packet can still be repaired.
    fn time_to_repair(&self) -> Span {
        match self.settings.repair {
            Repair::None => Span::ZERO,
            Repair::Once | Repair::Nack => self.settings.buffer,
        }
    }

    /// Place in the order of sending of the frame that packet `number` is part of.
    fn place_of(&self, number: u32) -> usize {
        self.first_packets.partition_point(|first| *first <= number) - 1
    }

    /// Bytes of media in packet `number` of the frame at `place` in the order of sending.
    fn media_bytes(&self, number: u32, place: usize) -> u32 {
        if let Some(sizes) = &self.sizes {
            return sizes[number as usize];
        }
        let most = self.settings.packet.get() as u32;
        let before = (number - self.first_packets[place]) * most;
        (self.frame_at(place).size - before).min(most)
    }

    /// The header of packet `number` of the frame at `place` in the order of sending.
    fn header(&self, number: u32, place: usize) -> RtpHeader {
        RtpHeader {
            marker: number + 1 == self.first_packets[place + 1],
            payload_type: PAYLOAD_TYPE,
            sequence: self.sequence.wrapping_add(number as u16),
            timestamp: self.timestamp.wrapping_add(ticks(self.frame_at(place).time)),
            ssrc: self.server_ssrc,
        }
    }

    /// The packet with this sequence number that is closest to packet `near`, if there is one.
    fn number_of(&self, sequence: u16, near: u32) -> Option<u32> {
        let relative = sequence.wrapping_sub(self.sequence);
        let distance = relative.wrapping_sub(near as u16) as i16;
        near.checked_add_signed(distance.into()).filter(|number| *number < self.packets())
    }

    /// The packet with this sequence number and timestamp that is closest to packet `near`, if
    /// there is one. After a gap of 2¹⁵ packets or more, the sequence number alone is ambiguous
    /// (RFC 3550 §A.1), so the timestamp selects the cycle.
    fn number_at(&self, sequence: u16, timestamp: u32, near: u32) -> Option<u32> {
        let fits = |number: &u32| self.header(*number, self.place_of(*number)).timestamp == timestamp;
        self.number_of(sequence, near).filter(fits).or_else(|| {
            let first = u32::from(sequence.wrapping_sub(self.sequence));
            let cycles = (first..self.packets()).step_by(1 << 16);
            cycles.filter(fits).min_by_key(|number| number.abs_diff(near))
        })
    }

    fn frame_at(&self, place: usize) -> &Frame {
        &self.video.frames()[self.video.sending_order()[place] as usize]
    }
}

/// A time in units of the RTP clock, rounded: frames at constant intervals have constant steps.
fn ticks(span: Span) -> u32 {
    ((u128::from(span.as_nanos()) * u128::from(CLOCK) + 500_000_000) / 1_000_000_000) as u32
}

/// A time as an NTP time stamp. Only differences matter, so the run begins in 2001, as in its
/// captures.
fn ntp(now: Instant) -> u64 {
    // From 1900 to 1970, and then to the first of the captures.
    const EPOCH: u64 = 2_208_988_800 + 1_000_000_000;
    let nanos = now.as_nanos();
    let fraction = (u128::from(nanos % 1_000_000_000) << 32) / 1_000_000_000;
    (EPOCH + nanos / 1_000_000_000) << 32 | fraction as u64
}

/// The round trip that a receiver's report shows that arrives `now` (RFC 3550 §6.4.1), if the
/// receiver has had a report of the sender before.
pub fn round_trip(now: Instant, block: &ReportBlock) -> Option<Span> {
    let span = middle(ntp(now)).wrapping_sub(block.last_report).wrapping_sub(block.delay) as i32;
    // In 1/65536 s. Rounding may make a short one negative.
    let nanos = (span.max(0) as u64 * 1_000_000_000) >> 16;
    (block.last_report != 0).then_some(Span::from_nanos(nanos))
}

/// The inter-arrival jitter in a receiver's report.
pub fn jitter(block: &ReportBlock) -> Span {
    Span::from_nanos(u64::from(block.jitter) * 1_000_000_000 / CLOCK)
}

/// The middle 32 bits of an NTP time stamp (RFC 3550 §4).
const fn middle(ntp: u64) -> u32 {
    (ntp >> 16) as u32
}

#[cfg(test)]
mod tests;
