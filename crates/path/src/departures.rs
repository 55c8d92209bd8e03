//! The packets that have left a middlebox.

use std::collections::VecDeque;

use airpath_core::{Direction, Instant, Packet};
use airpath_link::Departure;

/// The packets that have left a middlebox and were not popped, in the order of `due`.
#[derive(Debug, Default)]
pub struct Departures(VecDeque<(Direction, Departure)>);

impl Departures {
    /// No packets.
    pub const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// A packet leaves at `due`, which is not before that of earlier ones.
    pub fn push(&mut self, due: Instant, direction: Direction, packet: Packet) {
        self.0.push_back((direction, Departure { due, packet }));
    }

    /// The first packet.
    pub fn pop(&mut self) -> Option<(Direction, Departure)> {
        self.0.pop_front()
    }

    /// When the first packet has left.
    pub fn next(&self) -> Option<Instant> {
        self.0.front().map(|(_, departure)| departure.due)
    }
}
