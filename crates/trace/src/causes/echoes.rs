//! Round trips at the receiver: from an acknowledgement to the data that it released.

use std::collections::VecDeque;

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Timestamps;

/// Acknowledgements of one round trip that are stored.
const STORED: usize = 256;

/// Round trips in a round, at least, for a judgement: a sender that pauses answers one
/// acknowledgement late, not several.
const LEAST_SAMPLES: u32 = 2;

/// The echoes of this end's timestamps (RFC 7323 §3) in the other end's data.
#[derive(Clone, Debug, Default)]
pub(super) struct Echoes {
    /// This end's clock and the time, of each acknowledgement that has not been echoed.
    sent: VecDeque<(u32, Instant)>,
    /// The shortest round trip of the present round, and their number.
    shortest: Option<Span>,
    samples: u32,
}

impl Echoes {
    /// This end sent a segment.
    pub(super) fn sent(&mut self, timestamps: Option<Timestamps>, now: Instant) {
        let Some(Timestamps { value, .. }) = timestamps else { return };
        if self.sent.back().is_none_or(|(last, _)| *last != value) {
            if self.sent.len() == STORED {
                self.sent.pop_front();
            }
            self.sent.push_back((value, now));
        }
    }

    /// Data of the other end arrived. Only the first segment after an acknowledgement measures.
    pub(super) fn arrived(&mut self, timestamps: Option<Timestamps>, now: Instant) {
        let Some(Timestamps { echo, .. }) = timestamps else { return };
        // Most segments echo an acknowledgement that others have echoed before.
        if self.sent.front().is_some_and(|(first, _)| (echo.wrapping_sub(*first) as i32) < 0) {
            return;
        }
        let Some(at) = self.sent.iter().position(|(value, _)| *value == echo) else { return };
        let (_, sent) = self.sent[at];
        self.sent.drain(..=at);
        let sample = now.since(sent);
        self.shortest = Some(self.shortest.map_or(sample, |shortest| shortest.min(sample)));
        self.samples += 1;
    }

    /// Ends the round: its shortest round trip, where it is sure.
    pub(super) fn next_round(&mut self) -> Option<Span> {
        let shortest = self.shortest.take();
        let samples = std::mem::take(&mut self.samples);
        shortest.filter(|_| samples >= LEAST_SAMPLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_after_the_clock_wrapped_is_no_earlier_one() {
        let mut echoes = Echoes::default();
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let stamps = |value, echo| Some(Timestamps { value, echo });
        echoes.sent(stamps(u32::MAX, 0), at(0));
        echoes.sent(stamps(4, 0), at(5));
        // Each is echoed by two segments.
        for (echo, now) in [(u32::MAX, 100), (u32::MAX, 101), (4, 125), (4, 126)] {
            echoes.arrived(stamps(0, echo), at(now));
        }
        assert_eq!(echoes.samples, 2);
        assert_eq!(echoes.next_round(), Some(Span::from_millis(100)));
    }
}
