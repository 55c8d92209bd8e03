//! The jitter buffer: it delays the frames of a talk spurt, so that later packets of the spurt are
//! in time, too.

use std::collections::VecDeque;

use airpath_core::Span;
use serde::{Deserialize, Serialize};

use super::Settings;
use super::codec::FRAME;

/// How a jitter buffer selects its depth at the begin of a talk spurt. Within a talk spurt it
/// never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Playout {
    /// A frame is played out this time after the least delay of the last packets.
    Fixed,
    /// So that 99.5 % of the last packets would have been in time, as algorithm 3 of Moon, Kurose
    /// and Towsley, "Packet audio playout delay adjustment", Multimedia Systems 6, 1998 (recalled).
    #[default]
    Adaptive,
}

/// A talk spurt as it is played out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spurt {
    /// The first frame that arrived.
    pub first: u32,
    /// The frame after the last one that arrived.
    end: u32,
    /// From the capture of a frame to its playout.
    pub delay: Span,
    /// Speech frames that were in time.
    pub in_time: u32,
    /// Speech frames that were too late.
    pub late: u32,
}

/// A jitter buffer.
#[derive(Clone, Debug)]
pub struct JitterBuffer {
    playout: Playout,
    depth: Span,
    max_depth: Span,
    /// Delays of the last packets.
    delays: VecDeque<Span>,
    /// The same in order, to select a depth.
    sorted: Vec<Span>,
    spurts: Vec<Spurt>,
}

/// Packets whose delays select the depth: ten seconds of speech.
const WINDOW: usize = 500;
/// Share of these packets that are to be in time. TS 26.114 §8.2.3 demands less than 1 % of frames
/// that the jitter buffer makes conceal.
const IN_TIME: f64 = 0.995;
/// Packets from which that share is known.
const LEAST_PACKETS: usize = 100;

impl JitterBuffer {
    /// An empty buffer.
    pub fn new(settings: &Settings) -> Self {
        Self {
            playout: settings.jitter_buffer,
            depth: settings.depth,
            max_depth: settings.greatest_depth(),
            delays: VecDeque::with_capacity(WINDOW),
            sorted: Vec::with_capacity(WINDOW),
            spurts: Vec::new(),
        }
    }

    /// A packet has arrived whose first frame, number `frame`, was captured this `delay` ago;
    /// `begins` if a talk spurt begins with it.
    pub fn packet(&mut self, frame: u32, delay: Span, begins: bool) {
        if self.delays.len() == WINDOW {
            self.delays.pop_front();
        }
        self.delays.push_back(delay);
        // A packet of an earlier talk spurt is not the begin of a new one.
        let newer = self.spurts.last().is_none_or(|last| frame >= last.end);
        if self.spurts.is_empty() || begins && newer {
            self.begin(frame);
        }
    }

    /// From capture to playout, as selected after at least one packet.
    fn select(&mut self) -> Span {
        self.sorted.clear();
        self.sorted.extend(&self.delays);
        self.sorted.sort_unstable();
        let (least, packets) = (self.sorted[0], self.sorted.len());
        if self.playout == Playout::Fixed {
            return least + self.depth;
        }
        let in_time = self.sorted[(IN_TIME * packets as f64).ceil() as usize - 1];
        let known = if packets < LEAST_PACKETS { in_time.max(least + self.depth) } else { in_time };
        known.min(least + self.max_depth)
    }

    fn begin(&mut self, frame: u32) {
        let wanted = self.select();
        // It does not begin before the one before it has ended.
        let least = self
            .spurts
            .last()
            .map_or(Span::ZERO, |last| last.delay.saturating_sub(FRAME * u64::from(frame.saturating_sub(last.end))));
        self.spurts.push(Spurt { first: frame, end: frame, delay: wanted.max(least), ..Spurt::default() });
    }

    /// A speech frame, number `frame`, has arrived with this `delay` since its capture. Returns how
    /// long it waits for its playout; `None` if it is too late for that.
    pub fn frame(&mut self, frame: u32, delay: Span) -> Option<Span> {
        // Nearly always the last one.
        let index = self.spurts.iter().rposition(|spurt| spurt.first <= frame).unwrap_or_default();
        let spurt = self.spurts.get_mut(index)?;
        spurt.end = spurt.end.max(frame + 1);
        if delay > spurt.delay {
            spurt.late += 1;
            return None;
        }
        spurt.in_time += 1;
        Some(spurt.delay - delay)
    }

    /// The talk spurts so far.
    pub fn spurts(&self) -> &[Spurt] {
        &self.spurts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    fn buffer(jitter_buffer: Playout) -> JitterBuffer {
        JitterBuffer::new(&Settings {
            jitter_buffer,
            depth: ms(40),
            max_depth: (jitter_buffer == Playout::Adaptive).then_some(ms(100)),
            ..Settings::default()
        })
    }

    #[test]
    fn a_fixed_buffer_adds_its_depth_to_the_least_delay() {
        let mut buffer = buffer(Playout::Fixed);
        buffer.packet(0, ms(50), true);
        assert_eq!(buffer.frame(0, ms(50)), Some(ms(40)));
        buffer.packet(1, ms(85), false);
        assert_eq!(buffer.frame(1, ms(85)), Some(ms(5)));
        assert_eq!(buffer.frame(2, ms(91)), None, "too late");
        buffer.packet(100, ms(70), true);
        assert_eq!(buffer.frame(100, ms(70)), Some(ms(20)), "not after the first packet of its own");
        let spurts: Vec<_> = buffer.spurts().iter().map(|spurt| (spurt.first, spurt.delay)).collect();
        assert_eq!(spurts, [(0, ms(90)), (100, ms(90))]);
        for frame in 200..700 {
            buffer.packet(frame, ms(60), false);
        }
        buffer.packet(1_000, ms(200), true);
        assert_eq!(buffer.frame(1_000, ms(60)), Some(ms(40)), "a path that became longer");
    }

    #[test]
    fn talk_spurts_do_not_overlap() {
        let mut buffer = buffer(Playout::Fixed);
        buffer.packet(0, ms(500), true);
        buffer.frame(0, ms(500));
        // Frame 0 ends 560 ms after the capture of frame 0; frame 6 was captured 120 ms after it.
        buffer.packet(6, ms(50), true);
        assert_eq!(buffer.frame(6, ms(50)), Some(ms(390)));
    }

    #[test]
    fn an_adaptive_buffer_follows_the_delay_up_to_its_limit() {
        let mut buffer = buffer(Playout::Adaptive);
        buffer.packet(0, ms(50), true);
        assert_eq!(buffer.frame(0, ms(50)), Some(ms(40)), "the depth of the first talk spurt");
        for frame in 1..5000 {
            buffer.packet(frame, ms(50), false);
        }
        buffer.packet(5000, ms(50), true);
        assert_eq!(buffer.frame(5000, ms(50)), Some(ms(0)), "without jitter no depth");
        for frame in 5001..10_000 {
            buffer.packet(frame, ms(50 + u64::from(frame % 2) * 40), false);
        }
        buffer.packet(10_000, ms(50), true);
        assert_eq!(buffer.frame(10_000, ms(50)), Some(ms(40)));
        for frame in 10_001..15_000 {
            buffer.packet(frame, ms(50 + u64::from(frame % 2) * 400), false);
        }
        buffer.packet(15_000, ms(50), true);
        assert_eq!(buffer.frame(15_000, ms(50)), Some(ms(100)), "the limit");
    }

    #[test]
    fn a_slow_first_packet_is_forgotten() {
        let mut buffer = buffer(Playout::Adaptive);
        buffer.packet(0, ms(1_500), true);
        buffer.frame(0, ms(1_500));
        for frame in 200..300 {
            buffer.packet(frame, ms(50), frame == 200);
            buffer.frame(frame, ms(50));
        }
        buffer.packet(400, ms(50), true);
        // At most 1 of 101 packets may be late, but 0.5 % of them is none: the limit of depth.
        assert_eq!(buffer.frame(400, ms(50)), Some(ms(100)));
        for frame in 401..801 {
            buffer.packet(frame, ms(50), false);
        }
        buffer.packet(1_000, ms(50), true);
        assert_eq!(buffer.frame(1_000, ms(50)), Some(ms(0)));
    }

    #[test]
    fn a_packet_of_an_earlier_talk_spurt_keeps_its_playout() {
        let mut buffer = buffer(Playout::Fixed);
        buffer.packet(0, ms(50), true);
        buffer.frame(0, ms(50));
        buffer.packet(100, ms(300), true);
        buffer.frame(100, ms(300));
        buffer.packet(1, ms(80), false);
        assert_eq!(buffer.frame(1, ms(80)), Some(ms(10)));
    }
}
