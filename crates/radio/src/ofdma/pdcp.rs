//! The packet data convergence protocol in front of the RLC: the queue of a bearer with its
//! discard timer (TS 36.323 §5.4, TS 38.323 §5.3).

use std::collections::VecDeque;

use airpath_core::{DropCause, Instant, Packet, Span};
use airpath_link::queue::Queue;

use crate::common::arq::rlc_queue::RlcQueue;

/// The parameters of a bearer.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    /// Bytes of the header of a data PDU.
    pub header: u64,
    /// discardTimer.
    pub discard: Option<Span>,
    /// Bound and discipline.
    pub queue: Queue,
    /// t-Reordering of the receiver. Without it, the RLC delivers in sequence.
    pub reordering: Option<Span>,
}

/// Packets of one direction that no RLC PDU carries yet.
///
/// The discard timer of a packet runs from its arrival. At its expiry the packet is dropped, unless
/// a part of it was already given to an RLC PDU (TS 36.322 §5.3, TS 38.322 §5.4).
#[derive(Clone, Debug)]
pub struct Pdcp {
    /// Bytes of the header of a data PDU.
    pub header: u64,
    queue: RlcQueue,
    discard: Option<Span>,
    /// t-Reordering of the receiver.
    reordering: Option<Span>,
    /// When the connection was set up: no timer runs before.
    connected_at: Instant,
    /// Packets that are sent once more after a re-establishment, before those of the queue; their
    /// timers have stopped.
    again: VecDeque<Packet>,
    again_bytes: u64,
}

impl Pdcp {
    /// Nothing waits. Packets wait in `queue`.
    pub fn new(parameters: &Parameters, queue: RlcQueue) -> Self {
        Self {
            header: parameters.header,
            queue,
            discard: parameters.discard,
            reordering: parameters.reordering,
            connected_at: Instant::ZERO,
            again: VecDeque::new(),
            again_bytes: 0,
        }
    }

    /// t-Reordering of the receiver. Without it, the RLC delivers in sequence.
    pub const fn reordering(&self) -> Option<Span> {
        self.reordering
    }

    /// Takes a packet to send; `lost` is called for packets that give way to it in a full queue.
    ///
    /// # Errors
    /// Why the queue drops the packet instead.
    pub fn enqueue(&mut self, now: Instant, packet: Packet, lost: impl FnMut(Packet)) -> Result<(), DropCause> {
        self.queue.enqueue(now, packet, lost)
    }

    /// The packet to send next; `dropped` is called for those that the discipline of the queue
    /// drops instead.
    pub fn dequeue(&mut self, now: Instant, dropped: impl FnMut(Packet)) -> Option<Packet> {
        let again = self.again.pop_front();
        self.again_bytes -= again.map_or(0, |packet| packet.size.into());
        again.or_else(|| self.queue.dequeue(now, dropped))
    }

    /// Packets and bytes that wait, without headers.
    pub fn backlog(&self) -> (u32, u64) {
        let (packets, bytes) = self.queue.backlog();
        (packets + self.again.len() as u32, bytes + self.again_bytes)
    }

    /// Whether packets wait in a queue that drops none of them for another.
    #[inline]
    pub fn has_queue(&self) -> bool {
        matches!(&self.queue, RlcQueue::DropTail(_)) && !self.queue.is_empty()
    }

    /// The connection was set up: the timers of what waits for it begin, because PDCP is only
    /// established then.
    pub const fn connected(&mut self, now: Instant) {
        self.connected_at = now;
    }

    /// Until the connection is set up, no timer runs.
    pub const fn disconnected(&mut self) {
        self.connected_at = Instant::FAR_FUTURE;
    }

    /// When the discard timer of the oldest packet expires.
    pub fn next_timer(&self) -> Option<Instant> {
        let begins = self.queue.head_entered()?.max(self.connected_at);
        (begins < Instant::FAR_FUTURE).then_some(begins).zip(self.discard).map(|(begins, discard)| begins + discard)
    }

    /// Drops a packet whose timer has expired by `now`; called until there is none.
    pub fn expire(&mut self, now: Instant) -> Option<Packet> {
        self.next_timer().filter(|at| *at <= now)?;
        self.queue.drop_head(now)
    }

    /// Puts packets in front of all that waits, the last one first.
    pub fn put_back(&mut self, packet: Packet) {
        self.again_bytes += u64::from(packet.size);
        self.again.push_front(packet);
    }

    /// Puts a packet behind those that are sent once more, in front of the queue.
    pub fn append(&mut self, packet: Packet) {
        self.again_bytes += u64::from(packet.size);
        self.again.push_back(packet);
    }

    /// Takes out all that waits.
    pub fn clear(&mut self, now: Instant, mut lost: impl FnMut(Packet)) {
        self.again.drain(..).for_each(&mut lost);
        self.again_bytes = 0;
        self.queue.clear(now, lost);
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Ecn, FlowId, Slot, UserId};

    use super::*;

    fn packet(id: u64) -> Packet {
        Packet { id, size: 100, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) }
    }

    #[test]
    fn a_packet_is_discarded_when_its_timer_expires() {
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        let parameters =
            Parameters { header: 2, discard: Some(Span::from_millis(150)), queue: Queue::default(), reordering: None };
        let mut pdcp = Pdcp::new(&parameters, RlcQueue::unlimited());
        for (millis, id) in [(0, 0), (10, 1), (10, 2)] {
            assert_eq!(pdcp.enqueue(at(millis), packet(id), |_| {}), Ok(()));
        }
        assert_eq!(pdcp.dequeue(at(20), |_| {}).map(|packet| packet.id), Some(0));
        assert_eq!((pdcp.next_timer(), pdcp.expire(at(159))), (Some(at(160)), None));
        assert_eq!(pdcp.expire(at(160)).map(|packet| packet.id), Some(1));
        pdcp.put_back(packet(0));
        assert_eq!(pdcp.backlog(), (2, 200));
        assert_eq!(pdcp.dequeue(at(160), |_| {}).map(|packet| packet.id), Some(0));
        assert_eq!(pdcp.backlog(), (1, 100));
        pdcp.put_back(packet(0));
        pdcp.clear(at(170), |_| {});
        assert_eq!(pdcp.backlog(), (0, 0));
    }
}
