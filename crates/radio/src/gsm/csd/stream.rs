//! One direction of one link: the octets that wait to be sent over it, and those in flight.

use airpath_core::Direction;

use super::compression::Compression;
use super::octets::{Octets, Run};

/// The octets of one direction of a link. With compression, those that the link carries.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    waiting: Octets,
    under_way: Octets,
    compression: Option<Compression>,
    /// The receiver has no room: what waits is not sent.
    is_held: bool,
}

/// The fate of octets on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They are at its end, in sequence.
    Delivered,
    /// They will never come.
    Lost,
}

/// Octets that have left a link, delivered or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The direction in which they went.
    pub direction: Direction,
    /// What became of them.
    pub fate: Fate,
    /// Which.
    pub run: Run,
}

impl Stream {
    /// An empty one; with compression by this ratio.
    pub fn new(ratio: Option<f64>) -> Self {
        Self { compression: ratio.map(Compression::new), ..Self::default() }
    }

    /// How many wait.
    pub const fn waiting(&self) -> u64 {
        self.waiting.count()
    }

    /// How many may be sent.
    pub const fn ready(&self) -> u64 {
        if self.is_held { 0 } else { self.waiting.count() }
    }

    /// Holds what waits, or lets it go again. Returns whether it is let go now.
    pub fn hold(&mut self, is_held: bool) -> bool {
        std::mem::replace(&mut self.is_held, is_held) && !is_held
    }

    /// The position of the next that is cut.
    pub const fn position(&self) -> u64 {
        self.under_way.entered()
    }

    /// Puts octets behind those that wait.
    pub fn offer(&mut self, run: Run) {
        self.waiting.push(match &mut self.compression {
            Some(compression) => compression.compress(run),
            None => run,
        });
    }

    /// Sends the first of those that wait.
    pub fn cut(&mut self, octets: u64) {
        let Self { waiting, under_way, .. } = self;
        waiting.take(octets, |run| under_way.push(run));
    }

    /// The first of those under way have arrived.
    pub fn deliver(&mut self, octets: u64, direction: Direction, outcomes: &mut Vec<Outcome>) {
        let Self { under_way, compression, .. } = self;
        under_way.take(octets, leave(compression, direction, Fate::Delivered, outcomes));
    }

    /// The first of those under way are lost.
    pub fn lose(&mut self, octets: u64, direction: Direction, outcomes: &mut Vec<Outcome>) {
        let Self { under_way, compression, .. } = self;
        under_way.take(octets, leave(compression, direction, Fate::Lost, outcomes));
    }

    /// Those under way before this position are lost.
    pub fn lose_before(&mut self, position: u64, direction: Direction, outcomes: &mut Vec<Outcome>) {
        let Self { under_way, compression, .. } = self;
        under_way.take_before(position, leave(compression, direction, Fate::Lost, outcomes));
    }

    /// All is lost, waiting or under way.
    pub fn lose_all(&mut self, direction: Direction, outcomes: &mut Vec<Outcome>) {
        let Self { waiting, under_way, compression, is_held } = self;
        *is_held = false;
        for octets in [under_way, waiting] {
            octets.take(u64::MAX, leave(compression, direction, Fate::Lost, outcomes));
        }
    }
}

/// Returns what reports octets that leave the link, as many as there were before compression.
fn leave(
    compression: &mut Option<Compression>,
    direction: Direction,
    fate: Fate,
    outcomes: &mut Vec<Outcome>,
) -> impl FnMut(Run) {
    move |run| {
        let run = match compression {
            Some(compression) => compression.expand(run),
            None => run,
        };
        outcomes.push(Outcome { direction, fate, run });
    }
}
