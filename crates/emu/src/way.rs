//! The way of a packet between the two ends: the bearers that it crosses one after the other, each with its name in the
//! log.

use std::collections::VecDeque;

use airpath_core::{
    AppEvent, ComponentId, Context, Direction, Dropped, Instant, Packet, PacketStep, SegmentInfo, Sink,
};
use airpath_link::command::{BearerCommand, CommandError};
use airpath_link::{Bearer, Departure};

/// A bearer and its name in the log.
pub type Hop = (String, Box<dyn Bearer>);

/// The hops between server and mobile.
///
/// What happens in one hop happens at its exact time, whenever the way is called: all hops are taken through time together,
/// and among those that wake up at the same time the one nearest to the server goes first.
pub struct Way<'a> {
    /// From the server to the mobile. A hop's place is its [`ComponentId`]; those of the server and the mobile follow.
    hops: Vec<Hop>,
    /// Changes of conditions that are still to come, in the order of time: when, in which hop, what.
    changes: VecDeque<(Instant, usize, BearerCommand)>,
    arrived: VecDeque<(Direction, Departure)>,
    dropped: Vec<Dropped>,
    sink: Option<&'a mut (dyn Sink + 'a)>,
}

impl<'a> Way<'a> {
    /// A way over these hops, from the server to the mobile, which change as planned: when, in which hop, what, in the order
    /// of time. A change comes before all that happens at the same time. What happens on the way goes to `sink`.
    ///
    /// # Panics
    /// If there are no hops.
    pub fn new(
        hops: Vec<Hop>,
        changes: Vec<(Instant, usize, BearerCommand)>,
        sink: Option<&'a mut (dyn Sink + 'a)>,
    ) -> Self {
        assert!(!hops.is_empty(), "a way has at least one hop");
        Self { hops, changes: changes.into(), arrived: VecDeque::new(), dropped: Vec::new(), sink }
    }

    /// A packet comes in at one end. `headers` are those of its TCP segment, if it is one and somebody wants to know.
    pub fn push(&mut self, now: Instant, direction: Direction, packet: Packet, headers: Option<SegmentInfo>) {
        self.advance(now);
        let (sender, first) = match direction {
            Direction::Down => (self.server(), 0),
            Direction::Up => (self.mobile(), self.hops.len() - 1),
        };
        let (_, mut cx) = self.hop_and_cx(first);
        cx.at = sender;
        cx.direction = direction;
        cx.packet(now, packet, || PacketStep::Sent(headers));
        self.push_into(now, first, direction, packet);
    }

    /// The next packet that has come out at or before `now`, and which way it went.
    pub fn pop(&mut self, now: Instant) -> Option<(Direction, Departure)> {
        self.advance(now);
        self.arrived.pop_front()
    }

    /// An application got on, as far as can be told from packets.
    pub fn report(&mut self, time: Instant, event: AppEvent) {
        let (_, mut cx) = self.hop_and_cx(0);
        cx.app(time, || event);
    }

    /// Changes the conditions of a hop.
    ///
    /// # Errors
    /// Where it cannot do that; then nothing has changed.
    pub fn command(&mut self, now: Instant, hop: usize, command: &BearerCommand) -> Result<(), CommandError> {
        self.advance(now);
        let (bearer, mut cx) = self.hop_and_cx(hop);
        bearer.command(now, command, &mut cx)
    }

    /// The next packet that was lost.
    pub fn pop_lost(&mut self) -> Option<Dropped> {
        self.dropped.pop()
    }

    /// When to call [`Self::pop`] next.
    pub fn next_wakeup(&self) -> Option<Instant> {
        match self.arrived.front() {
            Some((_, departure)) => Some(departure.due),
            None => {
                let hops = self.hops.iter().filter_map(|(_, hop)| hop.next_wakeup());
                hops.chain(self.changes.front().map(|(at, ..)| *at)).min()
            }
        }
    }

    /// The hops with their names, from the server to the mobile.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// Whether what happens can no longer be recorded.
    pub fn has_failed(&self) -> bool {
        self.sink.as_ref().is_some_and(|sink| sink.has_failed())
    }

    /// Takes all hops to `now`.
    fn advance(&mut self, now: Instant) {
        loop {
            let next = self.next_hop().filter(|(wakeup, _)| *wakeup <= now);
            if self.changes.front().is_some_and(|(at, ..)| *at <= next.map_or(now, |(wakeup, _)| wakeup)) {
                self.change();
                continue;
            }
            let Some((wakeup, hop)) = next else { return };
            loop {
                let (bearer, mut cx) = self.hop_and_cx(hop);
                let Some((direction, departure)) = bearer.pop(wakeup, &mut cx) else { break };
                self.forward(hop, direction, departure);
            }
        }
    }

    /// Carries out the next change.
    #[cold]
    fn change(&mut self) {
        let Some((at, hop, command)) = self.changes.pop_front() else { return };
        let (bearer, mut cx) = self.hop_and_cx(hop);
        bearer.command(at, &command, &mut cx).expect("what a scenario's bearers cannot do is refused when it is read");
    }

    /// The hop that wakes up next, and when.
    fn next_hop(&self) -> Option<(Instant, usize)> {
        let wakeups = self.hops.iter().enumerate();
        wakeups.filter_map(|(index, (_, hop))| hop.next_wakeup().map(|wakeup| (wakeup, index))).min()
    }

    fn forward(&mut self, hop: usize, direction: Direction, departure: Departure) {
        let next = match direction {
            Direction::Down => Some(hop + 1).filter(|next| *next < self.hops.len()),
            Direction::Up => hop.checked_sub(1),
        };
        let Departure { due, packet } = departure;
        if let Some(next) = next {
            return self.push_into(due, next, direction, packet);
        }
        let receiver = match direction {
            Direction::Down => self.mobile(),
            Direction::Up => self.server(),
        };
        let (_, mut cx) = self.hop_and_cx(hop);
        cx.at = receiver;
        cx.direction = direction;
        cx.packet(due, packet, || PacketStep::Received);
        self.arrived.push_back((direction, departure));
    }

    fn push_into(&mut self, now: Instant, hop: usize, direction: Direction, packet: Packet) {
        let (bearer, mut cx) = self.hop_and_cx(hop);
        cx.direction = direction;
        bearer.push(now, direction, packet, &mut cx);
    }

    fn hop_and_cx(&mut self, hop: usize) -> (&mut dyn Bearer, Context<'_>) {
        // The explicit match shortens the sink's lifetime to that of the borrow.
        let sink: Option<&mut dyn Sink> = match &mut self.sink {
            Some(sink) => Some(&mut **sink),
            None => None,
        };
        (&mut *self.hops[hop].1, Context::new(sink, &mut self.dropped, ComponentId(hop as u16)))
    }

    fn server(&self) -> ComponentId {
        ComponentId(self.hops.len() as u16)
    }

    fn mobile(&self) -> ComponentId {
        ComponentId(self.hops.len() as u16 + 1)
    }
}
