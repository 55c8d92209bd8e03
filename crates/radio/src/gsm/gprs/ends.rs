//! Where packets come out, both ways.

use std::collections::VecDeque;

use airpath_core::{Context, Direction, DropCause, Instant, Packet, PacketCounters, PacketStep, Span, earliest};
use airpath_link::Departure;

/// What has left the radio, and the count of all packets.
#[derive(Debug)]
pub struct Ends {
    /// Packets in flight from the radio to the far end, in the order of `due`; down, up.
    departures: [VecDeque<Departure>; 2],
    delays: [Span; 2],
    counters: [PacketCounters; 2],
}

impl Ends {
    /// Nothing yet. `delays` are from the radio to the far end, down and up.
    pub fn new(delays: [Span; 2]) -> Self {
        Self { departures: [VecDeque::new(), VecDeque::new()], delays, counters: [PacketCounters::default(); 2] }
    }

    /// Counts a packet in.
    pub fn offer(&mut self, direction: Direction, packet: &Packet) {
        self.counters[direction as usize].offer(packet);
    }

    /// Lets a packet go that came over the radio by `at`; never before what left earlier, though
    /// the delay be shorter now.
    #[inline]
    pub fn deliver(&mut self, direction: Direction, at: Instant, packet: Packet) {
        let departures = &mut self.departures[direction as usize];
        let due = at + self.delays[direction as usize];
        let due = departures.back().map_or(due, |last| due.max(last.due));
        departures.push_back(Departure { due, packet });
    }

    /// Gives a packet up.
    pub fn lose(&mut self, direction: Direction, at: Instant, packet: Packet, cause: DropCause, cx: &mut Context<'_>) {
        self.counters[direction as usize].lose(&packet, cause);
        cx.direction = direction;
        cx.drop_packet(at, packet, cause);
    }

    /// When the next packet leaves, and which way.
    #[inline]
    pub fn next(&self) -> Option<(Instant, Direction)> {
        let due = |direction: Direction| self.departures[direction as usize].front().map(|it| (it.due, direction));
        earliest([due(Direction::Down), due(Direction::Up)])
    }

    /// The next packet that left by `now`.
    #[inline]
    pub fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        let (_, direction) = self.next().filter(|(due, _)| *due <= now)?;
        let departure = self.departures[direction as usize].pop_front()?;
        self.counters[direction as usize].deliver(&departure.packet);
        cx.direction = direction;
        cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
        Some((direction, departure))
    }

    /// Another delay for what leaves the radio from now on.
    pub const fn set_delay(&mut self, direction: Direction, delay: Span) {
        self.delays[direction as usize] = delay;
    }

    /// What went in, came out, was lost and is inside.
    pub const fn counters(&self, direction: Direction) -> PacketCounters {
        self.counters[direction as usize]
    }
}
