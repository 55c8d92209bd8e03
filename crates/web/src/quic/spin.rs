//! The spin bit (RFC 9000 §17.4): it turns over once a round trip, for those who watch from outside.

use airpath_core::{Instant, Span};

use airpath_observe::End;

/// What the spin bit shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Spin {
    /// It never turned over, or no more than once each way: not in use, or too short a connection.
    #[default]
    Still,
    /// It turns over faster than packets can go round: set at random, as RFC 9000 recommends where it is not in use.
    Random,
    /// Round trips, in the order in which they were measured; at most [`MAX_SAMPLES`].
    Spinning(Vec<SpinSample>),
}

/// A round trip: the time between two turns of the bit in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinSample {
    /// When it ended.
    pub time: Instant,
    /// The direction.
    pub from: End,
    /// How long it was.
    pub round_trip: Span,
}

/// Samples that are kept; later ones are left out.
pub(super) const MAX_SAMPLES: usize = 10_000;

/// Watches the bit.
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

    /// What was seen, on a connection whose first round trip took so long.
    pub(super) fn outcome(&self, handshake: Option<Span>) -> Spin {
        if self.samples.is_empty() {
            return Spin::Still;
        }
        // A bit that is drawn for each packet turns over within a flight of them. Half of the first round trip leaves room for a path
        // that got shorter.
        let least = handshake.unwrap_or_default() / 2;
        let fast = self.samples.iter().filter(|sample| sample.round_trip < least).count();
        if fast * 2 > self.samples.len() { Spin::Random } else { Spin::Spinning(self.samples.clone()) }
    }
}
