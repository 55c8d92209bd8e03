//! Delayed duplicate acknowledgements: time for the link layer to repair a loss.
//!
//! Source: Vaidya, Mehta, Perkins and Montenegro, "Delayed duplicate acknowledgements: a
//! TCP-unaware approach to improve performance of TCP over wireless", Texas A&M TR 99-003, 1999. A
//! link layer that retransmits out of order makes the receiver send duplicates. The third and each
//! further duplicate wait for a time `d`. If new data are acknowledged before, they are absorbed,
//! and the sender does not see a loss; otherwise they are forwarded.
//!
//! The report's text was not found; this follows its title and the description in the study
//! `gprs-proxy`.
//!
//! In the paper the receiver waits. Here a middlebox at the border does, with the same effect on
//! the sender. The link-layer retransmission is the bearer's; without one only the repair is later.

use std::collections::{BTreeMap, VecDeque};

use airpath_core::{Direction, FlowId, Instant, Packet, Span};
use airpath_link::Departure;
use airpath_wire::tcp::Flags;

use crate::departures::Departures;
use crate::middlebox::{Middlebox, MiddleboxContext};

/// Duplicates that pass at once: one less than a fast retransmit needs (RFC 5681 §3.2).
const PASSING: u32 = 2;

/// A middlebox that holds duplicate acknowledgements.
#[derive(Debug)]
pub struct DelayedDupAcks {
    hold: Span,
    flows: BTreeMap<FlowId, Last>,
    /// Held duplicates in the order of their deadlines.
    held: VecDeque<(Instant, Packet)>,
    left: Departures,
}

/// The last acknowledgement of a flow.
#[derive(Clone, Copy, Debug)]
struct Last {
    ack: i64,
    window: u32,
    duplicates: u32,
}

impl DelayedDupAcks {
    /// A middlebox that holds the third and each further duplicate for `hold`.
    pub const fn new(hold: Span) -> Self {
        Self { hold, flows: BTreeMap::new(), held: VecDeque::new(), left: Departures::new() }
    }

    /// Releases the duplicates whose deadline has come.
    fn release_due(&mut self, now: Instant) {
        while let Some(&(deadline, packet)) = self.held.front()
            && deadline <= now
        {
            self.held.pop_front();
            self.left.push(deadline, Direction::Up, packet);
        }
    }

    /// Whether a packet of the uplink is a duplicate that has to wait.
    fn waits(&mut self, now: Instant, packet: Packet, cx: &mut MiddleboxContext<'_>) -> bool {
        let Some(segment) = cx.segment(packet.slot) else { return false };
        let Some(ack) = segment.ack.get() else { return false };
        if segment.flags & (Flags::SYN.0 | Flags::RST.0 | Flags::FIN.0) != 0 {
            self.flows.remove(&packet.flow);
            return false;
        }
        let window = segment.window;
        let last = self.flows.entry(packet.flow).or_insert(Last { ack: i64::MIN, window, duplicates: 0 });
        if ack > last.ack {
            *last = Last { ack, window, duplicates: 0 };
            self.held.retain(|(_, held)| {
                let superseded = held.flow == packet.flow;
                if superseded {
                    cx.absorb(now, Direction::Up, *held);
                }
                !superseded
            });
            return false;
        }
        if ack < last.ack || window != last.window || cx.pure_ack(packet.slot).is_none() {
            last.window = window;
            return false;
        }
        last.duplicates += 1;
        last.duplicates > PASSING
    }
}

impl Middlebox for DelayedDupAcks {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut MiddleboxContext<'_>) {
        self.release_due(now);
        if direction == Direction::Up && self.waits(now, packet, cx) {
            return self.held.push_back((now + self.hold, packet));
        }
        self.left.push(now, direction, packet);
    }

    fn pop(&mut self, now: Instant, _: &mut MiddleboxContext<'_>) -> Option<(Direction, Departure)> {
        self.release_due(now);
        self.left.pop()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.left.next().or_else(|| self.held.front().map(|(deadline, _)| *deadline))
    }
}
