//! FQ-CoDel (RFC 8290): flows take turns, and each has a queue with CoDel.

use airpath_core::{Instant, Packet, Span};

use super::codel::{self, Control, Law};
use super::flow_queues::{FlowQueues, Shares, hash};
use super::{Limits, MTU};

/// The parameters of FQ-CoDel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// CoDel of each flow. ECN is on by default, as in Linux (RFC 8290 §5.2).
    pub codel: codel::Settings,
    /// Number of queues (RFC 8290 §5.2.2). Default: 1,024. A flow has the queue of a hash of its
    /// number in the run, so a few flows may share a queue, as in RFC 8290 §4.1.
    pub flows: u32,
    /// Bytes that a flow may send in a turn (RFC 8290 §5.2.1). Default: 1,514, an Ethernet frame.
    pub quantum: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { codel: codel::Settings { ecn: true, ..codel::Settings::default() }, flows: 1_024, quantum: MTU }
    }
}

/// Packets dropped at most at once when the queue is full (RFC 8290 §4.1; `drop_batch` in Linux).
const DROP_BATCH: u32 = 64;

/// The queues of all flows.
#[derive(Clone, Debug)]
pub(super) struct FqCoDel {
    law: Law,
    flows: u32,
    limits: Limits,
    /// By hash of the flow: one more than the index of its queue, or zero. Empty before the first
    /// packet.
    indices: Vec<u32>,
    queues: FlowQueues<Control>,
}

impl FqCoDel {
    pub fn new(settings: &Settings, limits: Limits, floor: Span) -> Self {
        Self {
            law: settings.codel.law(floor),
            flows: settings.flows,
            limits,
            indices: Vec::new(),
            queues: FlowQueues::new(settings.quantum),
        }
    }

    pub const fn backlog(&self) -> (u32, u64) {
        self.queues.backlog()
    }

    /// Enqueues a packet. If the queue is too long then, the longest flow loses packets from its
    /// head (RFC 8290 §4.1). Returns false if the packet is among them, or larger than the limit;
    /// `is_admitted` packets always enter.
    pub fn enqueue(&mut self, now: Instant, packet: Packet, is_admitted: bool, lost: impl FnMut(Packet)) -> bool {
        if !is_admitted && !self.limits.admit(0, 0, packet.size) {
            return false;
        }
        let index = self.index_of(packet);
        self.queues.push(now, index, packet, 1);
        is_admitted || self.queues.enforce(self.limits, packet, shorten, lost)
    }

    /// The index of the packet's queue, which is created with its first packet.
    fn index_of(&mut self, packet: Packet) -> u32 {
        if self.indices.is_empty() {
            self.indices = vec![0; self.flows as usize];
        }
        let index = &mut self.indices[hash(packet.flow.0, self.flows) as usize];
        if *index == 0 {
            *index = self.queues.add() + 1;
        }
        *index - 1
    }

    /// The packet to send at `now` (RFC 8290 §4.2).
    pub fn dequeue(&mut self, now: Instant, mut dropped: impl FnMut(Packet)) -> Option<Packet> {
        let law = self.law;
        self.queues.dequeue(&mut Equal, |control, fifo| control.dequeue(law, fifo, now, &mut dropped))
    }

    pub const fn last_entered(&self) -> Instant {
        self.queues.last_entered()
    }

    pub fn head_entered(&self) -> Option<Instant> {
        self.queues.oldest().map(|(entered, _)| entered)
    }

    pub fn drop_head(&mut self) -> Option<Packet> {
        self.queues.drop_oldest()
    }

    pub fn clear(&mut self, lost: impl FnMut(Packet)) {
        self.queues.clear(&mut Equal, lost);
    }
}

/// All flows have the same share.
struct Equal;

impl Shares<Control> for Equal {
    fn divisor(&mut self, _index: u32, _has_packets: bool) -> u32 {
        1
    }

    fn left(&mut self, _index: u32, control: &mut Control) {
        control.restart();
    }
}

/// Drops half of the longest queue, at most a batch.
fn shorten(queues: &mut FlowQueues<Control>, longest: u32, lost: &mut dyn FnMut(Packet)) {
    let half = queues.bytes_of(longest) / 2;
    let mut dropped = 0;
    for _ in 0..DROP_BATCH {
        let Some(packet) = queues.drop_from(longest) else { break };
        dropped += u64::from(packet.size);
        lost(packet);
        if dropped >= half {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_queues_with_packets_are_created() {
        let settings = Settings { flows: 65_536, ..Settings::default() };
        let mut queue = FqCoDel::new(&settings, Limits::of(&super::super::Queue::default()), Span::ZERO);
        assert_eq!(queue.indices.capacity(), 0);
        for id in 0..10 {
            let (flow, user) = (airpath_core::FlowId(u32::MAX - id % 2), airpath_core::UserId::new(0));
            let (ecn, slot) = (airpath_core::Ecn::NotEct, airpath_core::Slot(id));
            let packet = Packet { id: id.into(), size: 1_000, flow, user, ecn, slot };
            assert!(queue.enqueue(Instant::ZERO, packet, false, |_| {}));
        }
        assert_eq!((queue.queues.len(), queue.backlog()), (2, (10, 10_000)));
    }
}
