//! A middlebox that clears the ECN field of IP packets, as some routers and tunnels do.
//!
//! ECN-capable packets leave as packets that are not, so a queue with management behind it drops
//! where it would mark. The TCP header is not changed: both ends still have negotiated ECN. With
//! accurate ECN they detect it by the fields that SYN and SYN-ACK report back (RFC 9768 §3.2.2.3).

use airpath_core::{Direction, Ecn, Instant, Packet};
use airpath_link::Departure;

use crate::departures::Departures;
use crate::middlebox::{Middlebox, MiddleboxContext};

/// Clears the ECN field in both directions.
#[derive(Debug, Default)]
pub struct ClearEcn {
    left: Departures,
    /// Packets whose field was not clear.
    cleared: u64,
}

impl Middlebox for ClearEcn {
    fn push(&mut self, now: Instant, direction: Direction, mut packet: Packet, _: &mut MiddleboxContext<'_>) {
        self.cleared += u64::from(packet.ecn != Ecn::NotEct);
        packet.ecn = Ecn::NotEct;
        self.left.push(now, direction, packet);
    }

    fn pop(&mut self, _: Instant, _: &mut MiddleboxContext<'_>) -> Option<(Direction, Departure)> {
        self.left.pop()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.left.next()
    }

    fn statistics(&self) -> Vec<(&'static str, u64)> {
        vec![("cleared", self.cleared)]
    }

    fn inspects_segments(&self) -> bool {
        false
    }
}
