//! A queue with any of the disciplines that manage it.

use airpath_core::{Bitrate, DropCause, Instant, Packet, RandomStream, Span};

use super::cake::Cake;
use super::codel::CoDel;
use super::dual_pi2::DualPi2;
use super::fq_codel::FqCoDel;
use super::pie::{Entrance, Pie};
use super::{Discipline, Limits, Queue};

/// A queue from which the next packet is chosen when it is sent.
#[derive(Clone, Debug)]
pub struct Managed(Kind);

#[derive(Clone, Debug)]
enum Kind {
    CoDel(CoDel),
    FqCoDel(Box<FqCoDel>),
    Pie(Box<Pie>),
    DualPi2(Box<DualPi2>),
    Cake(Box<Cake>),
}

impl Managed {
    /// The queue; `None` for drop-tail. A bearer cannot keep sojourn times below `floor`: default
    /// targets are not shorter. CAKE has further rules for a link with a constant `rate`. PIE and
    /// CAKE draw from `stream`.
    pub fn new(queue: &Queue, floor: Span, rate: Option<Bitrate>, stream: RandomStream) -> Option<Self> {
        let limits = Limits::of(queue);
        Some(Self(match &queue.discipline {
            Discipline::DropTail => return None,
            Discipline::CoDel(settings) => Kind::CoDel(CoDel::with_floor(settings, limits, floor)),
            Discipline::FqCoDel(settings) => Kind::FqCoDel(Box::new(FqCoDel::new(settings, limits, floor))),
            Discipline::Pie(settings) => Kind::Pie(Box::new(Pie::new(settings, limits, floor, stream))),
            Discipline::DualPi2(settings) => Kind::DualPi2(Box::new(DualPi2::new(settings, limits, floor))),
            Discipline::Cake(settings) => Kind::Cake(Box::new(Cake::new(settings, limits, floor, rate, stream))),
        }))
    }

    /// The link sends at this rate from now on.
    pub fn set_rate(&mut self, rate: Bitrate) {
        if let Kind::Cake(queue) = &mut self.0 {
            queue.set_rate(rate);
        }
    }

    /// Enqueues a packet. `is_admitted`: it enters although the queue is full, as at an idle
    /// transmitter. `lost` is called for packets that waited and give way to it.
    ///
    /// # Errors
    /// Why the packet is dropped instead.
    #[inline]
    pub fn enqueue(
        &mut self,
        now: Instant,
        packet: Packet,
        is_admitted: bool,
        lost: impl FnMut(Packet),
    ) -> Result<(), DropCause> {
        let is_enqueued = match &mut self.0 {
            Kind::CoDel(queue) => {
                let has_room = is_admitted || queue.has_room(packet.size);
                if has_room {
                    queue.enter(now, packet);
                }
                has_room
            }
            Kind::FqCoDel(queue) => queue.enqueue(now, packet, is_admitted, lost),
            Kind::Pie(queue) => match queue.enqueue(now, packet, is_admitted) {
                Entrance::Enqueued => true,
                Entrance::Full => false,
                Entrance::Dropped => return Err(DropCause::QueueManagement),
            },
            Kind::DualPi2(queue) => queue.enqueue(now, packet, is_admitted),
            Kind::Cake(queue) => queue.enqueue(now, packet, is_admitted, lost),
        };
        if is_enqueued { Ok(()) } else { Err(DropCause::QueueFull) }
    }

    /// The packet to send at `now`, possibly marked; `dropped` is called for packets that the
    /// discipline drops instead. `None` only if nothing waits.
    #[inline]
    pub fn dequeue(&mut self, now: Instant, dropped: impl FnMut(Packet)) -> Option<Packet> {
        match &mut self.0 {
            Kind::CoDel(queue) => queue.dequeue(now, dropped),
            Kind::FqCoDel(queue) => queue.dequeue(now, dropped),
            Kind::Pie(queue) => queue.dequeue(now),
            Kind::DualPi2(queue) => queue.dequeue(now, dropped),
            Kind::Cake(queue) => queue.dequeue(now, dropped),
        }
    }

    /// Packets and bytes that wait.
    #[inline]
    pub fn backlog(&self) -> (u32, u64) {
        match &self.0 {
            Kind::CoDel(queue) => queue.backlog(),
            Kind::FqCoDel(queue) => queue.backlog(),
            Kind::Pie(queue) => queue.backlog(),
            Kind::DualPi2(queue) => queue.backlog(),
            Kind::Cake(queue) => queue.backlog(),
        }
    }

    /// Entry time of the packet that has waited longest.
    #[inline]
    pub fn head_entered(&self) -> Option<Instant> {
        match &self.0 {
            Kind::CoDel(queue) => queue.head_entered(),
            Kind::FqCoDel(queue) => queue.head_entered(),
            Kind::Pie(queue) => queue.head_entered(),
            Kind::DualPi2(queue) => queue.head_entered(),
            Kind::Cake(queue) => queue.head_entered(),
        }
    }

    /// Entry time of the packet that [`dequeue`](Self::dequeue) returned last.
    #[inline]
    pub const fn last_entered(&self) -> Instant {
        match &self.0 {
            Kind::CoDel(queue) => queue.last_entered(),
            Kind::FqCoDel(queue) => queue.last_entered(),
            Kind::Pie(queue) => queue.last_entered(),
            Kind::DualPi2(queue) => queue.last_entered(),
            Kind::Cake(queue) => queue.last_entered(),
        }
    }

    /// Removes the packet that has waited longest, without control of the discipline.
    pub fn drop_head(&mut self, now: Instant) -> Option<Packet> {
        match &mut self.0 {
            Kind::CoDel(queue) => queue.drop_head(),
            Kind::FqCoDel(queue) => queue.drop_head(),
            Kind::Pie(queue) => queue.drop_head(now),
            Kind::DualPi2(queue) => queue.drop_head(now),
            Kind::Cake(queue) => queue.drop_head(now),
        }
    }

    /// Removes all waiting packets.
    pub fn clear(&mut self, now: Instant, lost: impl FnMut(Packet)) {
        match &mut self.0 {
            Kind::CoDel(queue) => queue.clear(lost),
            Kind::FqCoDel(queue) => queue.clear(lost),
            Kind::Pie(queue) => queue.clear(now, lost),
            Kind::DualPi2(queue) => queue.clear(now, lost),
            Kind::Cake(queue) => queue.clear(now, lost),
        }
    }
}
