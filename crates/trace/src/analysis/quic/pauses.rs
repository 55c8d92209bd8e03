//! The pauses of a QUIC flow, which are no part of a round trip.

use airpath_core::{Instant, Span};
use airpath_web::{Spin, SpinSample};

use crate::causes::{Cause, IDLE_PART, Piece};

/// Pauses that are kept: the spin bit has no more samples.
const MOST: usize = 10_000;

/// The times in which nothing of a flow was outstanding.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    times: Vec<(Instant, Instant)>,
}

impl Pauses {
    /// Takes the pieces of the flow in their order.
    pub(super) fn add(&mut self, piece: &Piece) {
        if piece.cause != Cause::Application {
            return;
        }
        let is_full = self.times.len() >= MOST;
        match self.times.last_mut() {
            Some((_, end)) if *end == piece.begin => *end = piece.end,
            _ if is_full => {}
            _ => self.times.push((piece.begin, piece.end)),
        }
    }

    /// Leaves out the samples of the spin bit in which the ends paused.
    pub(super) fn leave_out_of(&self, spin: &mut Spin) {
        if let Spin::Spinning(samples) = spin {
            samples.retain(|sample| self.within(sample) <= sample.round_trip / IDLE_PART);
        }
    }

    /// The pauses within a sample.
    fn within(&self, sample: &SpinSample) -> Span {
        let (begin, end) = (sample.time - sample.round_trip, sample.time);
        let first = self.times.partition_point(|(_, until)| *until <= begin);
        let parts = self.times[first..].iter().take_while(|(from, _)| *from < end);
        parts.fold(Span::ZERO, |sum, (from, until)| sum + (*until).min(end).since((*from).max(begin)))
    }
}

#[cfg(test)]
mod tests {
    use airpath_observe::End;

    use super::*;
    use crate::causes::Confidence;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn samples_with_a_pause_are_left_out() {
        let mut pauses = Pauses::default();
        for (cause, begin, end) in
            [(Cause::Latency, 0, 100), (Cause::Application, 100, 5000), (Cause::Latency, 5000, 6000)]
        {
            pauses.add(&Piece {
                cause,
                confidence: Confidence::Medium,
                full_by: None,
                begin: at(begin),
                end: at(end),
                first_frame: 1,
                last_frame: 2,
                delivered: [0; 2],
            });
        }
        let sample =
            |time, millis| SpinSample { time: at(time), from: End::Client, round_trip: Span::from_millis(millis) };
        let mut spin = Spin::Spinning(vec![sample(105, 80), sample(200, 100), sample(5080, 5000), sample(5090, 95)]);
        pauses.leave_out_of(&mut spin);
        assert_eq!(spin, Spin::Spinning(vec![sample(105, 80), sample(5090, 95)]));
    }
}
