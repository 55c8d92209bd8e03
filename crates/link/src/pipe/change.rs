//! Changes of a link's conditions while it runs.
//!
//! A link computes in advance when a packet will be sent, and lost or delivered. A change revokes
//! what is not completely sent, and computes it again; random numbers are drawn again for these
//! packets, from the same streams. A link without changes pays nothing for the possibility.

use std::mem;

use airpath_core::{Context, DropCause, Instant, Packet, Span};

use super::{Pipe, Waiting};
use crate::command::{Buffer, Change, CommandError};
use crate::queue::drop_tail::Entry;
use crate::transmitter::Transmitter;

/// A packet that was revoked before it was completely sent.
struct Unsent {
    /// Planned start of its transmission.
    start: Instant,
    /// Planned end.
    end: Instant,
    packet: Packet,
}

impl Pipe {
    /// Whether this link supports the change.
    pub(super) fn check_change(&self, change: &Change) -> Result<(), CommandError> {
        change.check()?;
        let foreign = |what, help| Err(CommandError::Foreign { key: change.kind().name(), what, help });
        match change {
            Change::Rate(_) if matches!(self.transmitter, Transmitter::Recorded(_)) => {
                foreign("a recorded link", "it sends as it was recorded; an `outage` can stop it")
            }
            Change::Bler(_) => foreign("a plain link", "it has a `loss`"),
            Change::Channels(_) => foreign("a plain link", "it has a `rate`"),
            Change::Level(_) | Change::Class(_) => foreign("a plain link", "only a radio channel has C/I levels"),
            Change::CarrierToInterference(_) | Change::Environment(_) => {
                foreign("a plain link", "only a bearer with radio `conditions` has them")
            }
            _ => Ok(()),
        }
    }

    /// Applies a change that was checked before.
    pub(super) fn make_change(&mut self, now: Instant, change: &Change, cx: &mut Context<'_>) {
        self.is_immediate = false;
        self.advance(now, cx);
        let mut unsent = self.take_unsent(now);
        if let Some((span, buffer)) = change.interruption() {
            if buffer == Buffer::Discard {
                self.discard(now, mem::take(&mut unsent), cx);
            }
            self.suspend(now, span, unsent);
        } else {
            match change {
                Change::Rate(rate) => {
                    if let Waiting::Managed(queue) = &mut self.queue {
                        queue.waiting.set_rate(*rate);
                    }
                    let from = self.blocked_until.max(now);
                    let left = sending(&unsent, now).map_or(Span::ZERO, |first| first.end.since(from));
                    let left = self.transmitter.set_rate(*rate, left);
                    self.send_again(now, from, left, unsent);
                }
                Change::Loss(loss) => {
                    self.is_lossy = true;
                    self.losses.process.set(*loss);
                    self.launch_again(now, unsent);
                }
                Change::Delay(delay) => {
                    self.line.set(*delay);
                    self.launch_again(now, unsent);
                }
                _ => unreachable!("`check_change` lets no other pass"),
            }
        }
        // A packet may be sent, or even lost, immediately.
        self.advance(now, cx);
        self.settle();
    }

    /// Revokes what is not completely sent at `now`, except packets in a managed queue. The packet
    /// in transmission comes first.
    fn take_unsent(&mut self, now: Instant) -> Vec<Unsent> {
        let coming = &mut self.losses.coming;
        let mut lost =
            coming.split_off(coming.partition_point(|(time, _)| *time <= now)).into_iter().map(|(_, packet)| packet);
        let entries = match &mut self.queue {
            Waiting::DropTail(queue) => queue.take_unsent(now),
            Waiting::Managed(queue) => {
                let entry = |(end, size)| Entry { start: now, end, size, lost: lost.len() > 0 };
                queue.take_sending(now).map(entry).into_iter().collect()
            }
        };
        let flying = entries.iter().filter(|entry| !entry.lost).count();
        let mut flying = self.line.take_last(flying).into_iter();
        let unsent = |Entry { start, end, lost: is_lost, .. }| {
            let packet = if is_lost { lost.next() } else { flying.next() };
            Unsent { start, end, packet: packet.expect("it was launched when it entered") }
        };
        entries.into_iter().map(unsent).collect()
    }

    /// Drops the unsent packets.
    fn discard(&mut self, now: Instant, unsent: Vec<Unsent>, cx: &mut Context<'_>) {
        let Self { queue, counters, .. } = self;
        let mut lose = |packet| {
            counters.lose(&packet, DropCause::Handover);
            cx.drop_packet(now, packet, DropCause::Handover);
        };
        unsent.into_iter().map(|unsent| unsent.packet).for_each(&mut lose);
        if let Waiting::Managed(queue) = queue {
            queue.waiting.clear(now, lose);
        }
    }

    /// Sends nothing for `span`, or until the end of an earlier interruption.
    fn suspend(&mut self, now: Instant, span: Span, unsent: Vec<Unsent>) {
        let from = self.blocked_until.max(now);
        self.blocked_until = from.max(now + span);
        let left = sending(&unsent, now).map_or(Span::ZERO, |first| first.end.since(from));
        self.send_again(now, self.blocked_until, left, unsent);
    }

    /// Sends the revoked packets from `from` on. The packet in transmission takes `left`, if it can
    /// resume.
    fn send_again(&mut self, now: Instant, from: Instant, left: Span, unsent: Vec<Unsent>) {
        let goes_on = sending(&unsent, now).is_some() && self.transmitter.can_go_on();
        self.transmitter.restart(if goes_on { from + left } else { from });
        for (index, Unsent { start, packet, .. }) in unsent.into_iter().enumerate() {
            let (start, end) =
                if index == 0 && goes_on { (start, from + left) } else { self.transmitter.send(now, packet.size) };
            self.launch_one_again(now, start, end, packet);
        }
    }

    /// Starts the propagation of the revoked packets at their planned times, under new conditions.
    fn launch_again(&mut self, now: Instant, unsent: Vec<Unsent>) {
        for Unsent { start, end, packet } in unsent {
            self.launch_one_again(now, start, end, packet);
        }
    }

    fn launch_one_again(&mut self, now: Instant, start: Instant, end: Instant, packet: Packet) {
        match &mut self.queue {
            Waiting::DropTail(queue) => queue.enter(now, Entry { start, end, size: packet.size, lost: false }),
            Waiting::Managed(queue) => queue.sending = (end, packet.size),
        }
        self.launch(end, packet);
    }
}

/// The packet that is in transmission at `now`.
fn sending(unsent: &[Unsent], now: Instant) -> Option<&Unsent> {
    unsent.first().filter(|first| first.start <= now)
}
