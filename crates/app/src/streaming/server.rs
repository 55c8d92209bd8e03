//! The server: sends the packets of a video, retransmissions, and sender reports.

use std::collections::VecDeque;
use std::sync::Arc;

use airpath_core::{Instant, RandomStream, Span};
use airpath_wire::rtcp::{self, Compound, NextDataUnit, Packet, ReportBlock, SenderInfo};
use airpath_wire::rtp::RtpHeader;
use serde::{Deserialize, Serialize};

use super::reports::ReportTimer;
use super::{Channel, Datagram, HEADERS, PAYLOAD_TYPE, PROBES, RETRANSMISSION_TYPE, Repair, Session, ntp, ticks};

/// Name of the server in its reports (RFC 3550 §6.5.1).
const NAME: &str = "server@airpath";

/// The server.
#[derive(Clone, Debug)]
pub struct Server {
    session: Arc<Session>,
    start: Instant,
    /// Number of the next packet.
    next: u32,
    /// Place of its frame in the order of sending.
    place: usize,
    /// Probes sent.
    probes: u16,
    pace: Option<Pace>,
    /// Playback of a client whose buffer is limited.
    playback: Option<Playback>,
    /// Packets to retransmit, in the order of the requests.
    repairs: VecDeque<u32>,
    /// When the next of them is due.
    next_repair: Instant,
    /// Whether each packet was requested; with [`Repair::Nack`] since it was sent again.
    requested: Vec<bool>,
    /// Sequence number of the next retransmission.
    sequence: u16,
    sent: Sent,
    timer: ReportTimer,
    /// When the session ends; after the last packet.
    end: Option<Instant>,
    left: bool,
    /// The bytes of the last datagram.
    bytes: Vec<u8>,
}

/// What a server has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Packets of the video, each once.
    pub packets: u64,
    /// Bytes of media in them.
    pub bytes: u64,
    /// Packets sent again.
    pub retransmitted_packets: u64,
    /// Bytes of media in them.
    pub retransmitted_bytes: u64,
    /// RTCP packets.
    pub reports: u64,
    /// When the last packet of the video so far was sent, without retransmissions.
    pub last_media: Option<Instant>,
}

/// The pace of a server that sends ahead of real time.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Rate of the packets with their headers, in bits per second.
    rate: f64,
    /// Its limits: that of the video, and the highest.
    limits: [f64; 2],
    /// When the next packet is due at this rate.
    next: Instant,
    /// Highest sequence number that was reported.
    highest: Option<u32>,
}

impl Pace {
    /// Lower and upper share of lost packets between which the rate is kept, in 1/256
    /// (draft-ietf-rmcat-gcc-02 §6: 2 and 10 %).
    const LOSS: [u8; 2] = [5, 25];
    /// Increase with a report of less loss (the same section).
    const INCREASE: f64 = 1.05;

    fn of(session: &Session, start: Instant) -> Option<Self> {
        let settings = &session.settings;
        let rate = session.rate();
        // Until their rate is reported, a server that has sent probes keeps to real time.
        let first = if settings.probes { 1.0 } else { settings.speed };
        (settings.speed > 1.0).then_some(Self {
            rate: rate * first,
            limits: [rate, rate * settings.speed],
            next: start,
            highest: None,
        })
    }

    /// A report of the share of packets that were lost. Without a new packet since the report
    /// before, it has no information.
    fn report(&mut self, block: &ReportBlock) {
        if self.highest.is_some_and(|highest| block.highest.wrapping_sub(highest) as i32 <= 0) {
            return;
        }
        self.highest = Some(block.highest);
        let lost = block.fraction_lost;
        if lost < Self::LOSS[0] {
            self.set(self.rate * Self::INCREASE);
        } else if lost > Self::LOSS[1] {
            self.set(self.rate * (1.0 - 0.5 * f64::from(lost) / 256.0));
        }
    }

    fn set(&mut self, rate: f64) {
        self.rate = rate.clamp(self.limits[0], self.limits[1]);
    }
}

/// Playback as the client has reported it, and the limit of its buffer.
#[derive(Clone, Copy, Debug)]
struct Playback {
    /// Most media that the client stores.
    most: Span,
    /// Position in the video by the last report.
    position: Span,
    /// Since when it advances; `None` while the client waits for media.
    since: Option<Instant>,
    /// Media beyond the limit that are sent because playback still waits. Frames within the limit
    /// may be lost, and without a later one the client would wait forever.
    beyond: Span,
}

impl Playback {
    fn of(session: &Session) -> Option<Self> {
        let most = session.settings.max_buffer?;
        Some(Self { most, position: Span::ZERO, since: None, beyond: Span::ZERO })
    }

    /// A report, which arrives `now`, with the time of its next frame. `held` is the time
    /// of the frame that waits for room until a report, if one does.
    fn report(&mut self, now: Instant, next: Span, unit: &NextDataUnit, held: Option<Span>) {
        let is_again = next == self.position && self.since.is_none();
        if !is_again {
            self.beyond = Span::ZERO;
        } else if let Some(held) = held {
            self.beyond = held.saturating_sub(self.position + self.most);
        }
        self.since = None;
        self.position = next;
        // The client waits for media if the delay does not pass (TS 26.234 §6.2.3.2).
        if let Some(delay) = unit.playout_delay_ms.filter(|delay| *delay > 0) {
            self.since = Some(now + Span::from_millis(delay.into()));
            self.beyond = Span::ZERO;
        }
    }

    /// When the frame that is displayed at `time` of the video fits the buffer. Between reports
    /// playback goes on.
    fn room_for(&self, time: Span) -> Instant {
        let end = self.position + self.most + self.beyond;
        match self.since {
            // The position is reached at `since`, and may be in the future.
            Some(since) => Instant::from_nanos((since + time).as_nanos().saturating_sub(end.as_nanos())),
            None if time <= end => Instant::ZERO,
            None => Instant::FAR_FUTURE,
        }
    }
}

impl Server {
    /// Highest rate of retransmissions, as a multiple of the session's rate.
    const REPAIR_RATE: f64 = 2.0;

    /// A server whose first packet is due at `start`.
    pub fn new(session: Arc<Session>, start: Instant, mut random: RandomStream) -> Self {
        let sequence = random.bits() as u16;
        Self {
            start,
            next: 0,
            place: 0,
            probes: 0,
            pace: Pace::of(&session, start),
            playback: Playback::of(&session),
            repairs: VecDeque::new(),
            next_repair: start,
            requested: vec![false; session.packets() as usize],
            sequence,
            sent: Sent::default(),
            timer: ReportTimer::new(&session, start, random),
            end: None,
            left: false,
            bytes: Vec::new(),
            session,
        }
    }

    /// Receives a datagram of the client. What is no RTCP is ignored.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        for packet in rtcp::packets(bytes).map_while(Result::ok) {
            match (packet, &mut self.pace) {
                (Packet::Bye, _) => self.left = true,
                (Packet::Nack(nacks), _) => nacks.sequences().for_each(|sequence| self.repair(sequence)),
                (Packet::NextDataUnit(unit), _) => self.playback_reported(now, &unit),
                (Packet::Block(block), Some(pace)) => pace.report(&block),
                // The rate of the probes is a limit from now on.
                (Packet::RateLimit { rate, .. }, Some(pace)) => {
                    pace.limits[1] = pace.limits[1].min(rate as f64).max(pace.limits[0]);
                    pace.set(pace.limits[1]);
                }
                _ => {}
            }
        }
    }

    /// The client has reported its next frame.
    fn playback_reported(&mut self, now: Instant, unit: &NextDataUnit) {
        let Some(number) = self.session.number_of(unit.sequence, self.next) else { return };
        let time = self.session.frame_at(self.session.place_of(number)).time;
        let is_held = self.next < self.session.packets() && self.next_packet() == Instant::FAR_FUTURE;
        let held = is_held.then(|| self.session.frame_at(self.place).time);
        if let Some(playback) = &mut self.playback {
            playback.report(now, time, unit, held);
        }
    }

    /// The packet with this sequence number was reported as lost.
    fn repair(&mut self, sequence: u16) {
        let number = self.session.number_of(sequence, self.next).filter(|number| *number < self.next);
        let Some(number) = number else { return };
        let again = std::mem::replace(&mut self.requested[number as usize], true);
        let wanted = match self.session.settings.repair {
            Repair::None => false,
            Repair::Once | Repair::Nack => !again,
        };
        if wanted {
            self.repairs.push_back(number);
        }
    }

    /// The next datagram, if one is due. Call it until it returns `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Datagram<'_>> {
        if self.left {
            return None;
        }
        if self.session.settings.probes && self.probes < PROBES {
            return Some(self.probe());
        }
        if self.next_repair <= now
            && let Some(number) = self.repairs.pop_front()
        {
            return Some(self.retransmission(now, number));
        }
        if self.next < self.session.packets() {
            if self.next_packet() <= now {
                return Some(self.packet(now));
            }
        } else if *self.end.get_or_insert_with(|| now + self.session.time_to_repair()) <= now {
            self.left = true;
            return Some(self.report(now));
        }
        (self.timer.next() <= now).then(|| self.report(now))
    }

    /// When the next datagram is due; `None` after the last.
    pub fn next_wakeup(&self) -> Option<Instant> {
        if self.left {
            return None;
        }
        let media = self.end.unwrap_or_else(|| self.next_packet());
        let repair = (!self.repairs.is_empty()).then_some(self.next_repair);
        [media, self.timer.next()].into_iter().chain(repair).min()
    }

    /// Whether everything was sent, or the client has left.
    pub const fn is_over(&self) -> bool {
        self.left
    }

    /// What was sent.
    pub const fn sent(&self) -> Sent {
        self.sent
    }

    /// When the next packet is due; after the last one, at once.
    fn next_packet(&self) -> Instant {
        let Self { session, start, place, .. } = self;
        if *place == session.video.frames().len() {
            return *start;
        }
        let time = session.video.send_time(*place);
        let ahead = *start + time.saturating_sub(session.settings.ahead);
        let due = self.pace.map_or(*start + time, |pace| pace.next.max(ahead).min(*start + time));
        self.playback.map_or(due, |playback| due.max(playback.room_for(session.frame_at(*place).time)))
    }

    fn packet(&mut self, now: Instant) -> Datagram<'_> {
        let media = self.session.media_bytes(self.next, self.place);
        let header = self.session.header(self.next, self.place);
        self.next += 1;
        self.sent.last_media = Some(now);
        self.place += usize::from(header.marker);
        self.sent.packets += 1;
        self.sent.bytes += u64::from(media);
        if let Some(pace) = &mut self.pace {
            pace.next = now + Span::from_secs_f64(f64::from(media + HEADERS) * 8.0 / pace.rate);
        }
        self.bytes.clear();
        self.bytes.extend(header.to_bytes());
        Datagram { channel: Channel::Media, head: &self.bytes, media }
    }

    fn retransmission(&mut self, now: Instant, number: u32) -> Datagram<'_> {
        let place = self.session.place_of(number);
        let media = self.session.media_bytes(number, place);
        let original = self.session.header(number, place);
        let rate = self.session.rate() * Self::REPAIR_RATE;
        self.next_repair = now + Span::from_secs_f64(f64::from(media + HEADERS) * 8.0 / rate);
        self.sent.retransmitted_packets += 1;
        self.sent.retransmitted_bytes += u64::from(media);
        self.bytes.clear();
        match self.session.settings.repair {
            Repair::Nack => {
                self.requested[number as usize] = false;
                // A stream in a session of its own with the same source (RFC 4588 §5.3), whose
                // payload begins with the original number (§4).
                let header = RtpHeader { payload_type: RETRANSMISSION_TYPE, sequence: self.sequence, ..original };
                self.sequence = self.sequence.wrapping_add(1);
                self.bytes.extend(header.to_bytes());
                self.bytes.extend(original.sequence.to_be_bytes());
            }
            Repair::None | Repair::Once => self.bytes.extend(original.to_bytes()),
        }
        Datagram { channel: Channel::Repair, head: &self.bytes, media }
    }

    fn probe(&mut self) -> Datagram<'_> {
        let header = RtpHeader {
            marker: false,
            payload_type: PAYLOAD_TYPE,
            sequence: self.probes,
            timestamp: self.session.timestamp,
            ssrc: self.session.probe_ssrc,
        };
        self.probes += 1;
        self.bytes.clear();
        self.bytes.extend(header.to_bytes());
        Datagram { channel: Channel::Repair, head: &self.bytes, media: self.session.settings.packet.get() as u32 }
    }

    /// A sender report, with BYE at the end.
    fn report(&mut self, now: Instant) -> Datagram<'_> {
        let Self { session, sent, .. } = self;
        // Of the frame that would be sampled now.
        let timestamp = session.timestamp.wrapping_add(ticks(now.since(self.start)));
        let info = SenderInfo { ntp: ntp(now), timestamp, packets: sent.packets as u32, bytes: sent.bytes as u32 };
        let mut compound = Compound::new(&mut self.bytes);
        compound.sender_report(session.server_ssrc, &info);
        compound.canonical_name(session.server_ssrc, NAME);
        if self.left {
            compound.bye(session.server_ssrc);
        }
        self.sent.reports += 1;
        self.timer.sent(now, self.bytes.len(), true);
        Datagram { channel: Channel::Reports, head: &self.bytes, media: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_without_a_new_packet_does_not_change_the_rate() {
        let mut pace = Pace { rate: 100.0, limits: [100.0, 400.0], next: Instant::ZERO, highest: None };
        let mut after = |highest| {
            pace.report(&ReportBlock { highest, ..ReportBlock::default() });
            pace.rate
        };
        assert_eq!([after(7), after(7), after(6)], [105.0; 3]);
        assert!(after(8) > 110.0);
    }
}
