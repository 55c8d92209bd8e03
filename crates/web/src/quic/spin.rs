//! The spin bit (RFC 9000 §17.4), which turns over once a round trip, for passive observers.

use airpath_core::{Instant, Span};

use airpath_observe::End;

/// The result of observing the spin bit.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Spin {
    /// It turned over at most once in each direction: not in use, or too short a connection.
    #[default]
    Still,
    /// It turns over faster than a round trip: random, as RFC 9000 §17.4 recommends where it is not
    /// in use.
    Random,
    /// Round trips in order; at most [`MAX_SAMPLES`].
    Spinning(Vec<SpinSample>),
}

/// A round trip: the time between two turns of the bit in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinSample {
    /// When it ended.
    pub time: Instant,
    /// The direction.
    pub from: End,
    /// Length.
    pub round_trip: Span,
}

/// Samples that are kept; later ones are left out.
pub(super) const MAX_SAMPLES: usize = 10_000;

/// Observes the bit.
#[derive(Clone, Debug, Default)]
pub(super) struct Observer {
    /// By direction: the bit, and when it last turned over.
    last: [Option<(bool, Option<Instant>)>; 2],
    samples: Vec<SpinSample>,
}

impl Observer {
    pub(super) fn packet(&mut self, from: End, time: Instant, spin: bool) {
        let last = &mut self.last[from as usize];
        match last {
            None => *last = Some((spin, None)),
            Some((before, _)) if *before == spin => {}
            Some((before, turned)) => {
                *before = spin;
                if let Some(turned) = turned.replace(time)
                    && self.samples.len() < MAX_SAMPLES
                {
                    self.samples.push(SpinSample { time, from, round_trip: time.since(turned) });
                }
            }
        }
    }

    /// The result, for a connection whose first round trip was `handshake`.
    pub(super) fn outcome(&self, handshake: Option<Span>) -> Spin {
        if self.samples.is_empty() {
            return Spin::Still;
        }
        // A random bit turns over within a flight. Half of the first round trip leaves room for a
        // path that became shorter.
        let least = handshake.unwrap_or_default() / 2;
        let fast = self.samples.iter().filter(|sample| sample.round_trip < least).count();
        if fast * 2 > self.samples.len() { Spin::Random } else { Spin::Spinning(self.samples.clone()) }
    }
}
