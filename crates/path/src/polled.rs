//! A path under the real clock: polled when the caller can, exact all the same.

use std::collections::VecDeque;

use airpath_core::{AppEvent, Direction, Instant, Packet};
use airpath_link::{BearerCommand, CommandError, Departure};

use crate::hop::Hop;
use crate::path::Path;
use crate::store::PacketStore;

/// A planned change of conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Instant,
    /// The index of the hop.
    pub hop: usize,
    /// What changes.
    pub command: BearerCommand,
}

/// A path that is polled: each call first brings all hops to `now`, event by event.
///
/// Among events at the same time, planned changes come first, then the hops in the order of their
/// indices. So the outcome does not depend on when the path is polled, and equals that of a run
/// under the virtual clock.
pub struct PolledPath<'a> {
    path: Path<'a>,
    /// Changes that are still to come, in the order of time.
    changes: VecDeque<Change>,
    arrived: VecDeque<(Direction, Departure)>,
}

impl<'a> PolledPath<'a> {
    /// Polls `path`, with planned `changes` in the order of their times.
    pub fn new(path: Path<'a>, changes: Vec<Change>) -> Self {
        Self { path, changes: changes.into(), arrived: VecDeque::new() }
    }

    /// A packet enters at one end.
    pub fn push<S: PacketStore>(&mut self, now: Instant, direction: Direction, packet: Packet, store: &mut S) {
        self.advance(now, store);
        self.path.enter(now, direction, packet, store);
    }

    /// The next packet that has arrived at or before `now`, and its direction.
    pub fn pop<S: PacketStore>(&mut self, now: Instant, store: &mut S) -> Option<(Direction, Departure)> {
        self.advance(now, store);
        self.arrived.pop_front()
    }

    /// When to call [`Self::pop`] next.
    pub fn next_wakeup(&self) -> Option<Instant> {
        match self.arrived.front() {
            Some((_, departure)) => Some(departure.due),
            None => {
                let hops = self.path.hops().filter_map(|(_, hop)| hop.next_wakeup());
                hops.chain(self.changes.front().map(|change| change.at)).min()
            }
        }
    }

    /// Changes the conditions of a hop.
    ///
    /// # Errors
    /// If the hop cannot carry out the command; then nothing has changed.
    pub fn command<S: PacketStore>(
        &mut self,
        now: Instant,
        hop: usize,
        command: &BearerCommand,
        store: &mut S,
    ) -> Result<(), CommandError> {
        self.advance(now, store);
        self.path.command(now, hop, command, store)
    }

    /// The run ends at `now`.
    pub fn end(&mut self, now: Instant) {
        self.path.end(now);
    }

    /// Reports progress of an application, inferred from its packets.
    pub fn report(&mut self, time: Instant, event: AppEvent) {
        self.path.context(Default::default()).app(time, || event);
    }

    /// The hop with this index, brought to `now`, to change its settings.
    pub fn hop_mut<S: PacketStore>(&mut self, now: Instant, index: usize, store: &mut S) -> Option<&mut Hop> {
        self.advance(now, store);
        self.path.hop_mut(index)
    }

    /// The path.
    pub const fn path(&self) -> &Path<'a> {
        &self.path
    }

    /// Brings all hops to `now`.
    fn advance<S: PacketStore>(&mut self, now: Instant, store: &mut S) {
        loop {
            let next = self.next_hop().filter(|(wakeup, _)| *wakeup <= now);
            let horizon = next.map_or(now, |(wakeup, _)| wakeup);
            if self.changes.front().is_some_and(|change| change.at <= horizon)
                && let Some(change) = self.changes.pop_front()
            {
                let done = self.path.command(change.at, change.hop, &change.command, store);
                done.expect("a scenario whose bearers cannot carry out a change is rejected when it is read");
                continue;
            }
            let Some((wakeup, hop)) = next else { return };
            while let Some((direction, departure)) = self.path.pop(wakeup, hop, store) {
                if self.path.forward(departure.due, hop, direction, &departure.packet, store).is_none() {
                    self.arrived.push_back((direction, departure));
                }
            }
        }
    }

    /// The hop with the earliest wake-up, and its time.
    fn next_hop(&self) -> Option<(Instant, usize)> {
        let hops = self.path.hops().enumerate();
        hops.filter_map(|(index, (_, hop))| hop.next_wakeup().map(|wakeup| (wakeup, index))).min()
    }
}
