//! A middlebox that absorbs superseded acknowledgements on the uplink.
//!
//! On an asymmetric path pure acknowledgements of a download queue on the uplink. A cumulative
//! acknowledgement replaces all earlier ones of its flow (RFC 3449 §5.2.1, ACK filtering). This
//! filter holds each pure acknowledgement for a fixed time at the border of the networks and
//! forwards only the latest of them. Duplicate acknowledgements are signals of loss and pass, as
//! does everything else; the order within a flow is kept.

use std::collections::VecDeque;

use airpath_core::{Direction, Instant, Packet, Span};
use airpath_link::Departure;

use crate::departures::Departures;
use crate::middlebox::{Middlebox, MiddleboxContext};

/// A filter for pure acknowledgements on the uplink.
#[derive(Debug)]
pub struct AckFilter {
    hold: Span,
    /// Held acknowledgements in the order of their deadlines, at most one for each flow.
    held: VecDeque<Held>,
    left: Departures,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    deadline: Instant,
    ack: i64,
    packet: Packet,
}

impl AckFilter {
    /// A filter that holds each acknowledgement for `hold`.
    pub const fn new(hold: Span) -> Self {
        Self { hold, held: VecDeque::new(), left: Departures::new() }
    }

    /// Releases the acknowledgements whose deadline has come.
    fn release_due(&mut self, now: Instant) {
        while let Some(&Held { deadline, packet, .. }) = self.held.front()
            && deadline <= now
        {
            self.held.pop_front();
            self.left.push(deadline, Direction::Up, packet);
        }
    }
}

impl Middlebox for AckFilter {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut MiddleboxContext<'_>) {
        self.release_due(now);
        if direction == Direction::Down {
            return self.left.push(now, direction, packet);
        }
        let ack = cx.pure_ack(packet.slot);
        let held = self.held.iter().position(|held| held.packet.flow == packet.flow);
        match (ack, held) {
            (Some(ack), None) => self.held.push_back(Held { deadline: now + self.hold, ack, packet }),
            (Some(ack), Some(index)) if ack > self.held[index].ack => {
                let held = &mut self.held[index];
                let superseded = std::mem::replace(&mut held.packet, packet);
                held.ack = ack;
                cx.absorb(now, direction, superseded);
            }
            (_, held) => {
                if let Some(held) = held.and_then(|index| self.held.remove(index)) {
                    self.left.push(now, direction, held.packet);
                }
                self.left.push(now, direction, packet);
            }
        }
    }

    fn pop(&mut self, now: Instant, _: &mut MiddleboxContext<'_>) -> Option<(Direction, Departure)> {
        self.release_due(now);
        self.left.pop()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.left.next().or_else(|| self.held.front().map(|held| held.deadline))
    }
}
