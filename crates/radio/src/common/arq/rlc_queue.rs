//! The queue in front of the RLC: packets without any PDU sent yet.

use std::collections::VecDeque;

use airpath_core::{DropCause, Instant, Packet, Seed, Span};
use airpath_link::queue::{Limits, Managed, Queue};

/// A bounded queue that holds the packets until the RLC cuts them.
#[derive(Clone, Debug)]
pub enum RlcQueue {
    /// First in, first out; what finds no room is dropped.
    DropTail(DropTail),
    /// Managed by a discipline.
    Managed(Managed),
}

/// The packets, and how many may wait.
#[derive(Clone, Debug)]
pub struct DropTail {
    limits: Limits,
    /// Packets with the times of their arrival.
    waiting: VecDeque<(Instant, Packet)>,
    bytes: u64,
}

/// TTIs that a packet may wait without a standing queue: the one that begins after its arrival, and
/// one of scheduling. Default targets of disciplines are not shorter.
const LEAST_TARGET_TTIS: u64 = 2;

impl RlcQueue {
    /// An empty queue of a bearer with this TTI. A discipline that draws random numbers has the
    /// stream `path/queue`.
    pub fn new(queue: &Queue, tti: Span, seed: Seed, path: &str) -> Self {
        let floor = tti.saturating_mul(LEAST_TARGET_TTIS);
        match Managed::new(queue, floor, None, seed.stream(&format!("{path}/queue"))) {
            Some(managed) => Self::Managed(managed),
            None => Self::DropTail(DropTail { limits: Limits::of(queue), waiting: VecDeque::new(), bytes: 0 }),
        }
    }

    /// An empty queue without limits or management.
    pub fn unlimited() -> Self {
        Self::DropTail(DropTail { limits: Limits::of(&Queue::default()), waiting: VecDeque::new(), bytes: 0 })
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::DropTail(queue) => queue.waiting.is_empty(),
            Self::Managed(queue) => queue.backlog().0 == 0,
        }
    }

    /// Packets and bytes that wait.
    #[inline]
    pub fn backlog(&self) -> (u32, u64) {
        match self {
            Self::DropTail(queue) => (queue.waiting.len() as u32, queue.bytes),
            Self::Managed(queue) => queue.backlog(),
        }
    }

    /// Enqueues `packet`. `lost` is called for packets that give way to it in a full queue.
    ///
    /// # Errors
    /// Why the packet is dropped instead.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, packet: Packet, lost: impl FnMut(Packet)) -> Result<(), DropCause> {
        match self {
            Self::DropTail(queue) => {
                if !queue.limits.admit(queue.waiting.len(), queue.bytes, packet.size) {
                    return Err(DropCause::QueueFull);
                }
                queue.bytes += u64::from(packet.size);
                queue.waiting.push_back((now, packet));
                Ok(())
            }
            Self::Managed(queue) => queue.enqueue(now, packet, false, lost),
        }
    }

    /// The packet to send next; `dropped` is called for those that the discipline drops instead.
    #[inline]
    pub fn dequeue(&mut self, now: Instant, dropped: impl FnMut(Packet)) -> Option<Packet> {
        self.dequeue_entered(now, dropped).map(|(_, packet)| packet)
    }

    /// The same packet, and when it came.
    #[inline]
    pub fn dequeue_entered(&mut self, now: Instant, dropped: impl FnMut(Packet)) -> Option<(Instant, Packet)> {
        match self {
            Self::DropTail(queue) => queue.pop(),
            Self::Managed(queue) => queue.dequeue(now, dropped).map(|packet| (queue.last_entered(), packet)),
        }
    }

    /// The packets that wait. A queue with a discipline, which may drop some of them, returns none.
    pub fn undisciplined(&self) -> impl Iterator<Item = &Packet> {
        let waiting = match self {
            Self::DropTail(queue) => Some(&queue.waiting),
            Self::Managed(_) => None,
        };
        waiting.into_iter().flatten().map(|(_, packet)| packet)
    }

    /// When the packet came that has waited longest.
    #[inline]
    pub fn head_entered(&self) -> Option<Instant> {
        match self {
            Self::DropTail(queue) => queue.waiting.front().map(|(entered, _)| *entered),
            Self::Managed(queue) => queue.head_entered(),
        }
    }

    /// Takes out the packet that has waited longest, without the control of the discipline.
    pub fn drop_head(&mut self, now: Instant) -> Option<Packet> {
        match self {
            Self::DropTail(queue) => queue.pop().map(|(_, packet)| packet),
            Self::Managed(queue) => queue.drop_head(now),
        }
    }

    /// Takes out all that waits.
    pub fn clear(&mut self, now: Instant, lost: impl FnMut(Packet)) {
        match self {
            Self::DropTail(queue) => {
                queue.bytes = 0;
                queue.waiting.drain(..).map(|(_, packet)| packet).for_each(lost);
            }
            Self::Managed(queue) => queue.clear(now, lost),
        }
    }
}

impl DropTail {
    fn pop(&mut self) -> Option<(Instant, Packet)> {
        let (entered, packet) = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some((entered, packet))
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Ecn, FlowId, Slot, UserId};

    use super::*;

    /// Marks of 40 packets, one sent in each TTI.
    fn marks(queue: &str, tti: Span) -> usize {
        let queue: Queue = toml::from_str(queue).expect("a queue");
        let mut queue = RlcQueue::new(&queue, tti, Seed::new(1), "user-0/down");
        let sent = (0..40).filter_map(|id| {
            let now = Instant::ZERO + tti.saturating_mul(id);
            let packet = Packet { id, size: 40, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::Ect1, slot: Slot(0) };
            // One more than is sent, at first: each packet waits for one TTI.
            for _ in 0..if id == 0 { 2 } else { 1 } {
                queue.enqueue(now, packet, |_| {}).expect("room");
            }
            queue.dequeue(now, |_| {})
        });
        sent.filter(|packet| packet.ecn == Ecn::Ce).count()
    }

    #[test]
    fn a_packet_has_the_time_of_its_own_arrival() {
        // Where flows take turns, the new flow comes before the one whose packets wait.
        for (discipline, is_first) in [
            ("drop-tail", false),
            ("codel", false),
            ("pie", false),
            ("fq-codel", true),
            ("dualpi2", true),
            ("cake", true),
        ] {
            let queue: Queue = toml::from_str(&format!("discipline = \"{discipline}\"")).expect("a queue");
            let mut queue = RlcQueue::new(&queue, Span::from_millis(10), Seed::new(1), "user-0/down");
            let at = |millis| Instant::ZERO + Span::from_millis(millis);
            let packet =
                |flow, ecn| Packet { id: 0, size: 1500, flow: FlowId(flow), user: UserId::new(0), ecn, slot: Slot(0) };
            (0..5).for_each(|_| queue.enqueue(at(0), packet(1, Ecn::NotEct), |_| {}).expect("room"));
            queue.dequeue(at(0), |_| {}).expect("a packet");
            queue.dequeue(at(0), |_| {}).expect("a packet");
            queue.enqueue(at(1), packet(2, Ecn::Ect1), |_| {}).expect("room");
            let (entered, packet) = queue.dequeue_entered(at(2), |_| {}).expect("a packet");
            assert_eq!((entered, packet.flow.0), if is_first { (at(1), 2) } else { (at(0), 1) }, "{discipline}");
        }
    }

    #[test]
    fn default_targets_are_at_least_two_ttis() {
        let tti = Span::from_millis(20);
        assert_eq!(marks("discipline = \"dualpi2\"", tti), 0, "a wait of one TTI is below the step");
        assert_eq!(marks("discipline = \"dualpi2\"\nstep = \"1 ms\"", tti), 39, "a given step is kept");
    }
}
