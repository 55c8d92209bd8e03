//! The logical channels of a mobile in one direction: data, and voice if there is a bearer for it.
//! Voice has priority (TS 36.321 §5.4.3.1), and the unacknowledged mode of the RLC.

use airpath_core::{Context, DropCause, Instant, PacketCounters, Span, earliest};
use airpath_link::Departure;

use super::rlc::{Block, MaxRetransmissions, Rlc};
use super::rlc_am::Status;

/// The channels of one direction.
#[derive(Clone, Debug)]
pub struct Channels {
    pub data: Rlc,
    voice: Option<Box<Rlc>>,
}

/// A channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    Data,
    Voice,
}

impl Channels {
    /// Nothing to send.
    pub fn new(data: Rlc, voice: Option<Rlc>) -> Self {
        Self { data, voice: voice.map(Box::new) }
    }

    /// A channel; that of data if there is none for voice.
    pub fn channel(&mut self, channel: Channel) -> &mut Rlc {
        match (channel, &mut self.voice) {
            (Channel::Voice, Some(voice)) => voice,
            _ => &mut self.data,
        }
    }

    /// Packets that wait in the queues, and their bytes.
    pub fn backlog(&self) -> (u32, u64) {
        let (packets, bytes) = self.data.backlog();
        let (voice_packets, voice_bytes) = self.voice.as_ref().map_or((0, 0), |voice| voice.backlog());
        (packets + voice_packets, bytes + voice_bytes)
    }

    fn for_each(&mut self, mut act: impl FnMut(&mut Rlc)) {
        if let Some(voice) = &mut self.voice {
            act(voice);
        }
        act(&mut self.data);
    }

    /// What went in, came out, was lost and is inside.
    pub fn counters(&self) -> PacketCounters {
        let Some(voice) = &self.voice else { return self.data.counters };
        let mut sum = voice.counters;
        sum += self.data.counters;
        sum
    }

    /// Whether all packets have come to the far end.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty() && self.voice.as_ref().is_none_or(|voice| voice.is_empty())
    }

    /// Whether a packet of data that comes now only lengthens a queue.
    #[inline]
    pub fn only_lengthens(&self) -> bool {
        self.voice.is_none() && self.data.has_queue()
    }

    /// Bytes that could be sent now.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.data.waiting() + self.waiting_voice()
    }

    /// Those of voice.
    #[inline]
    pub fn waiting_voice(&self) -> u64 {
        self.voice.as_ref().map_or(0, |voice| voice.waiting())
    }

    /// Fills `room` bytes of a transport block, voice first. Returns the bytes used.
    pub fn fill(
        &mut self,
        now: Instant,
        room: u32,
        opposite: &mut Self,
        block: &mut Block,
        cx: &mut Context<'_>,
    ) -> u32 {
        let mut used = 0;
        if let Some((voice, opposite)) = self.voice.as_mut().zip(opposite.voice.as_mut())
            && voice.waiting() > 0
        {
            std::mem::swap(&mut block.pdus, &mut block.voice);
            used = voice.fill(now, room, opposite, block, cx);
            std::mem::swap(&mut block.pdus, &mut block.voice);
        }
        used + self.data.fill(now, room - used, &mut opposite.data, block, cx)
    }

    /// The far end gets a block.
    pub fn receive(&mut self, now: Instant, block: &Block, cx: &mut Context<'_>) {
        if let Some(voice) = self.voice.as_mut().filter(|_| !block.voice.is_empty()) {
            voice.receive(now, &block.voice, cx);
        }
        self.data.receive(now, &block.pdus, cx);
    }

    /// The sender gets a status report.
    ///
    /// # Errors
    /// If a PDU was sent too often.
    pub fn acknowledge(&mut self, status: &Status) -> Result<(), MaxRetransmissions> {
        self.data.acknowledge(status)
    }

    /// A block was given up by HARQ.
    pub fn give_up(&mut self, now: Instant, block: &Block, cx: &mut Context<'_>) {
        if let Some(voice) = &mut self.voice {
            voice.give_up(now, &block.voice, cx);
        }
        self.data.give_up(now, &block.pdus, cx);
    }

    /// When a timer expires next.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        let voice = self.voice.as_ref().and_then(|voice| voice.next_timer());
        earliest([voice, self.data.next_timer()])
    }

    /// Does what the timers demand that have expired by `now`.
    ///
    /// # Errors
    /// If a PDU was sent too often.
    pub fn expire(&mut self, now: Instant, cx: &mut Context<'_>) -> Result<(), MaxRetransmissions> {
        if let Some(voice) = &mut self.voice {
            voice.expire(now, cx)?;
        }
        self.data.expire(now, cx)
    }

    /// There is a connection from `at` on, or none.
    pub fn set_connected(&mut self, at: Option<Instant>) {
        self.for_each(|rlc| rlc.set_connected(at));
    }

    /// The connection was released.
    pub fn release_connection(&mut self) {
        self.for_each(Rlc::release_connection);
    }

    /// Establishes both again.
    pub fn establish_again(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.for_each(|rlc| rlc.establish_again(now, cause, cx));
    }

    /// Drops all packets that were not delivered.
    pub fn discard(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.for_each(|rlc| rlc.discard(now, cause, cx));
    }

    /// From the RLC at the far end to where the bearer ends.
    pub fn set_delay(&mut self, delay: Span) {
        self.for_each(|rlc| rlc.delay = delay);
    }

    /// When the next packet leaves.
    #[inline]
    pub fn next_departure(&self) -> Option<Instant> {
        let due = |rlc: &Rlc| rlc.departures.front().map(|departure| departure.due);
        match &self.voice {
            None => due(&self.data),
            Some(voice) => earliest([due(voice), due(&self.data)]),
        }
    }

    /// The next packet, which has left; of two at the same time that of voice.
    pub fn pop(&mut self) -> Option<Departure> {
        let due = |rlc: &Rlc| rlc.departures.front().map_or(Instant::FAR_FUTURE, |departure| departure.due);
        let at = due(&self.data);
        let rlc = match &mut self.voice {
            Some(voice) if due(voice) <= at && due(voice) < Instant::FAR_FUTURE => &mut **voice,
            _ => &mut self.data,
        };
        let departure = rlc.departures.pop_front()?;
        rlc.counters.deliver(&departure.packet);
        Some(departure)
    }
}

/// Which packets use the voice bearer, as a traffic flow template has it (TS 24.008 §10.5.6.12).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Template {
    /// Values of the DSCP.
    pub dscp: Vec<u8>,
    /// UDP ports at either end, first and last.
    pub ports: Vec<[u16; 2]>,
}

impl Template {
    /// The channel of a packet with these headers.
    pub fn channel(&self, headers: &[u8]) -> Channel {
        let is_voice = match headers.first().map(|first| first >> 4) {
            Some(4) if headers.len() >= 20 => {
                let length = usize::from(headers[0] & 0xf) * 4;
                self.matches(headers[1] >> 2, headers[9], headers.get(length..))
            }
            Some(6) if headers.len() >= 40 => {
                self.matches((headers[0] << 4 | headers[1] >> 4) >> 2, headers[6], headers.get(40..))
            }
            _ => false,
        };
        if is_voice { Channel::Voice } else { Channel::Data }
    }

    fn matches(&self, dscp: u8, protocol: u8, transport: Option<&[u8]>) -> bool {
        let is_within = |port: u16| self.ports.iter().any(|[first, last]| (*first..=*last).contains(&port));
        let has_port = match transport {
            Some([a, b, c, d, ..]) if protocol == UDP => {
                is_within(u16::from_be_bytes([*a, *b])) || is_within(u16::from_be_bytes([*c, *d]))
            }
            _ => false,
        };
        has_port || self.dscp.contains(&dscp)
    }
}

/// The protocol number of UDP.
const UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_classified_by_their_headers() {
        let template = Template { dscp: vec![46], ports: vec![[5004, 5005]] };
        let v4 = |tos: u8, protocol: u8, port: u16| {
            let mut bytes = [0u8; 28];
            (bytes[0], bytes[1], bytes[9]) = (0x45, tos, protocol);
            bytes[22..24].copy_from_slice(&port.to_be_bytes());
            template.channel(&bytes)
        };
        assert_eq!(v4(46 << 2 | 1, 6, 80), Channel::Voice, "any protocol with the DSCP");
        assert_eq!((v4(0, 17, 5005), v4(0, 17, 5006)), (Channel::Voice, Channel::Data));
        assert_eq!(v4(0, 6, 5004), Channel::Data, "a port of TCP");
        let v6 = |traffic_class: u8, port: u16| {
            let mut bytes = [0u8; 48];
            (bytes[0], bytes[1], bytes[6]) = (0x60 | traffic_class >> 4, traffic_class << 4, 17);
            bytes[40..42].copy_from_slice(&port.to_be_bytes());
            template.channel(&bytes)
        };
        assert_eq!((v6(46 << 2, 1), v6(0, 5004), v6(0, 1)), (Channel::Voice, Channel::Voice, Channel::Data));
        assert_eq!(template.channel(&[]), Channel::Data);
    }
}
