//! The queue in front of the RLC: packets without any PDU sent yet.

use std::collections::VecDeque;

use airpath_core::{Instant, Packet};
use airpath_link::queue::codel::CoDel;
use airpath_link::queue::{Discipline, Limits, Queue};

/// A bounded queue that holds the packets until the RLC cuts them.
#[derive(Clone, Debug)]
pub enum RlcQueue {
    /// First in, first out; what finds no room is dropped.
    DropTail(DropTail),
    /// Controlled by the time that packets wait.
    CoDel(CoDel),
}

/// The packets, and how many may wait.
#[derive(Clone, Debug)]
pub struct DropTail {
    limits: Limits,
    /// Packets with the times of their arrival.
    waiting: VecDeque<(Instant, Packet)>,
    bytes: u64,
}

impl RlcQueue {
    /// An empty queue.
    pub fn new(queue: &Queue) -> Self {
        let limits = Limits::of(queue);
        match &queue.discipline {
            Discipline::DropTail => Self::DropTail(DropTail { limits, waiting: VecDeque::new(), bytes: 0 }),
            Discipline::CoDel(settings) => Self::CoDel(CoDel::new(settings.clone(), limits)),
        }
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::DropTail(queue) => queue.waiting.is_empty(),
            Self::CoDel(queue) => queue.head_entered().is_none(),
        }
    }

    /// Packets and bytes that wait.
    #[inline]
    pub fn backlog(&self, now: Instant) -> (u32, u64) {
        match self {
            Self::DropTail(queue) => (queue.waiting.len() as u32, queue.bytes),
            Self::CoDel(queue) => queue.backlog(now),
        }
    }

    /// Takes `packet`, if there is room for it.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, packet: Packet) -> bool {
        match self {
            Self::DropTail(queue) => {
                let room = queue.limits.admit(queue.waiting.len(), queue.bytes, packet.size);
                if room {
                    queue.bytes += u64::from(packet.size);
                    queue.waiting.push_back((now, packet));
                }
                room
            }
            Self::CoDel(queue) => {
                let room = queue.has_room(packet.size);
                if room {
                    queue.enter(now, packet);
                }
                room
            }
        }
    }

    /// The packet to send next; `dropped` is called for those that the discipline drops instead.
    #[inline]
    pub fn dequeue(&mut self, now: Instant, dropped: impl FnMut(Packet)) -> Option<Packet> {
        match self {
            Self::DropTail(queue) => queue.pop(),
            Self::CoDel(queue) => queue.dequeue(now, dropped),
        }
    }

    /// When the packet came that has waited longest.
    #[inline]
    pub fn head_entered(&self) -> Option<Instant> {
        match self {
            Self::DropTail(queue) => queue.waiting.front().map(|(entered, _)| *entered),
            Self::CoDel(queue) => queue.head_entered(),
        }
    }

    /// Takes out the packet that has waited longest, without the control of the discipline.
    pub fn drop_head(&mut self) -> Option<Packet> {
        match self {
            Self::DropTail(queue) => queue.pop(),
            Self::CoDel(queue) => queue.drop_head(),
        }
    }

    /// Takes out all that waits.
    pub fn clear(&mut self, lost: impl FnMut(Packet)) {
        match self {
            Self::DropTail(queue) => {
                queue.bytes = 0;
                queue.waiting.drain(..).map(|(_, packet)| packet).for_each(lost);
            }
            Self::CoDel(queue) => queue.clear().for_each(lost),
        }
    }
}

impl DropTail {
    fn pop(&mut self) -> Option<Packet> {
        let (_, packet) = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }
}
