//! The jitter buffer: it delays the frames of a talk spurt, so that later packets of the spurt are
//! in time, too.

use airpath_core::Span;
use serde::{Deserialize, Serialize};

use super::Settings;
use super::codec::FRAME;

/// How a jitter buffer selects its depth at the begin of a talk spurt. Within a talk spurt it
/// never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Playout {
    /// The first frame waits for this time.
    Fixed,
    /// From mean and variation of the delay so far: algorithm 1 of Ramjee, Kurose, Towsley and
    /// Schulzrinne, "Adaptive playout mechanisms for packetized audio applications in wide-area
    /// networks", INFOCOM 1994.
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
    estimate: Option<Estimate>,
    /// Least delay of a packet so far.
    least: Span,
    spurts: Vec<Spurt>,
}

/// Mean and variation of the delay, in seconds.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    mean: f64,
    variation: f64,
}

impl Estimate {
    /// Weight of the past (Ramjee et al. §3.1).
    const MEMORY: f64 = 0.998_002;
    /// Depth in units of the variation.
    const MARGIN: f64 = 4.0;

    /// The estimate after the first packet: it selects this `depth`.
    fn first(delay: Span, depth: Span) -> Self {
        Self { mean: delay.as_secs_f64(), variation: depth.as_secs_f64() / Self::MARGIN }
    }

    fn add(&mut self, delay: Span) {
        let delay = delay.as_secs_f64();
        self.mean = Self::MEMORY * self.mean + (1.0 - Self::MEMORY) * delay;
        self.variation = Self::MEMORY * self.variation + (1.0 - Self::MEMORY) * (self.mean - delay).abs();
    }

    fn playout_delay(&self) -> Span {
        Span::from_secs_f64(self.mean + Self::MARGIN * self.variation)
    }
}

impl JitterBuffer {
    /// An empty buffer.
    pub fn new(settings: &Settings) -> Self {
        Self {
            playout: settings.jitter_buffer,
            depth: settings.depth,
            max_depth: settings.max_depth,
            estimate: None,
            least: Span::ZERO,
            spurts: Vec::new(),
        }
    }

    /// A packet has arrived whose first frame, number `frame`, was captured this `delay` ago;
    /// `begins` if a talk spurt begins with it.
    pub fn packet(&mut self, frame: u32, delay: Span, begins: bool) {
        match &mut self.estimate {
            Some(estimate) => {
                estimate.add(delay);
                self.least = self.least.min(delay);
            }
            None => {
                self.estimate = Some(Estimate::first(delay, self.depth));
                self.least = delay;
            }
        }
        // A packet of an earlier talk spurt is not the begin of a new one.
        let newer = self.spurts.last().is_none_or(|last| frame >= last.end);
        if self.spurts.is_empty() || begins && newer {
            self.begin(frame, delay);
        }
    }

    fn begin(&mut self, frame: u32, delay: Span) {
        let wanted = match (self.playout, &self.estimate) {
            (Playout::Adaptive, Some(estimate)) => estimate.playout_delay().min(self.least + self.max_depth),
            _ => delay + self.depth,
        };
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
        JitterBuffer::new(&Settings { jitter_buffer, depth: ms(40), max_depth: ms(100), ..Settings::default() })
    }

    #[test]
    fn a_fixed_buffer_delays_the_first_frame_of_each_talk_spurt_by_its_depth() {
        let mut buffer = buffer(Playout::Fixed);
        buffer.packet(0, ms(50), true);
        assert_eq!(buffer.frame(0, ms(50)), Some(ms(40)));
        buffer.packet(1, ms(85), false);
        assert_eq!(buffer.frame(1, ms(85)), Some(ms(5)));
        assert_eq!(buffer.frame(2, ms(91)), None, "too late");
        buffer.packet(100, ms(70), true);
        assert_eq!(buffer.frame(100, ms(70)), Some(ms(40)));
        let spurts: Vec<_> = buffer.spurts().iter().map(|spurt| (spurt.first, spurt.delay)).collect();
        assert_eq!(spurts, [(0, ms(90)), (100, ms(110))]);
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
        assert!(buffer.frame(5000, ms(50)).is_some_and(|wait| wait < ms(1)), "without jitter no depth");
        for frame in 5001..10_000 {
            buffer.packet(frame, ms(50 + u64::from(frame % 2) * 40), false);
        }
        buffer.packet(10_000, ms(50), true);
        // The mean is 70 ms, the mean deviation 20 ms.
        assert!(buffer.frame(10_000, ms(50)).is_some_and(|wait| wait.abs_diff(ms(100)) < ms(2)));
        for frame in 10_001..15_000 {
            buffer.packet(frame, ms(50 + u64::from(frame % 2) * 400), false);
        }
        buffer.packet(15_000, ms(50), true);
        assert_eq!(buffer.frame(15_000, ms(50)), Some(ms(100)), "the limit");
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
