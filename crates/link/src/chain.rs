//! Links in series.

use airpath_core::{Context, Dropped, Instant, Packet, PacketCounters};

use crate::{Admission, Change, CommandError, Departure, Link};

/// Links in series, as one link.
///
/// It reports as one link: a packet is queued when the first link accepts it, with that link's
/// backlog, and delivered when it leaves the last. A loss is reported wherever it happens.
#[derive(Clone, Debug)]
pub struct Chain<L> {
    links: Vec<L>,
    /// Packets lost between the first and the last link in this call.
    lost: Vec<Dropped>,
}

impl<L: Link> Chain<L> {
    /// A chain of these links, first to last.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(links: Vec<L>) -> Self {
        assert!(!links.is_empty(), "a chain has at least one link");
        Self { links, lost: Vec::new() }
    }

    /// Changes the conditions of one link, by index.
    ///
    /// # Errors
    /// The command is not applicable to that link; then nothing has changed.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn command_link(
        &mut self,
        index: usize,
        now: Instant,
        change: &Change,
        cx: &mut Context<'_>,
    ) -> Result<(), CommandError> {
        self.advance(now, cx);
        self.call_inner(cx, |links, cx| links[index].command(now, change, cx))
    }

    /// Moves packets from link to link up to and including `now`, in the order of time.
    fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        while let Some((wakeup, index)) = self.next_transfer()
            && wakeup <= now
        {
            self.call_inner(cx, |links, cx| {
                while let Some(Departure { due, packet }) = links[index].pop(wakeup, cx) {
                    links[index + 1].push(due, packet, cx);
                }
            });
        }
    }

    /// The link but the last that wakes up next, and when; the last is popped by the caller. At the
    /// same time the later link comes first: it does not depend on the one before.
    fn next_transfer(&self) -> Option<(Instant, usize)> {
        let inner = &self.links[..self.links.len() - 1];
        let wakeups = inner.iter().enumerate().rev();
        wakeups.filter_map(|(index, link)| link.next_wakeup().map(|wakeup| (wakeup, index))).min_by_key(|(at, _)| *at)
    }

    /// Calls inner links: only their losses are reported outside.
    fn call_inner<R>(&mut self, cx: &mut Context<'_>, call: impl FnOnce(&mut [L], &mut Context<'_>) -> R) -> R {
        let mut quiet = cx.without_events(&mut self.lost);
        let answer = call(&mut self.links, &mut quiet);
        for Dropped { time, packet, cause } in self.lost.drain(..) {
            cx.drop_packet(time, packet, cause);
        }
        answer
    }
}

impl<L: Link> Link for Chain<L> {
    fn push(&mut self, now: Instant, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.advance(now, cx);
        self.links[0].push(now, packet, cx)
    }

    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<Departure> {
        self.advance(now, cx);
        self.links.last_mut().and_then(|last| last.pop(now, cx))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.links.iter().filter_map(Link::next_wakeup).min()
    }

    fn counters(&self) -> PacketCounters {
        let mut chain = PacketCounters::default();
        self.links.iter().for_each(|link| chain += link.counters());
        // Transfers between links are not deliveries of the chain.
        if let (Some(first), Some(last)) = (self.links.first(), self.links.last()) {
            chain.offered = first.counters().offered;
            chain.delivered = last.counters().delivered;
        }
        chain
    }

    /// A chain is interrupted as a whole; other conditions belong to one link: see
    /// [`Chain::command_link`].
    fn check(&self, change: &Change) -> Result<(), CommandError> {
        if change.interruption().is_none() {
            return Err(CommandError::Foreign {
                key: change.kind().name(),
                what: "a chain of links as a whole",
                help: "give the command to one of its links",
            });
        }
        self.links.iter().try_for_each(|link| link.check(change))
    }

    fn command(&mut self, now: Instant, change: &Change, cx: &mut Context<'_>) -> Result<(), CommandError> {
        self.check(change)?;
        self.advance(now, cx);
        self.call_inner(cx, |links, cx| links.iter_mut().try_for_each(|link| link.command(now, change, cx)))
    }
}
