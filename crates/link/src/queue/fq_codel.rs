//! FQ-CoDel (RFC 8290): flows take turns, and each has a queue with CoDel.

use airpath_core::{Instant, Packet, Span};

use super::codel::{self, Control, Law};
use super::fifo::Fifo;
use super::round_robin::{DeficitRoundRobin, Next};
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
    /// The queues that have had packets.
    queues: Vec<FlowQueue>,
    /// The order of the queues, by index.
    turns: DeficitRoundRobin,
    packets: usize,
    bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct FlowQueue {
    fifo: Fifo,
    control: Control,
    /// Whether it has a turn.
    is_listed: bool,
}

/// The queue of a flow, of this number of queues. A fixed function, so that a run can be repeated:
/// the finaliser of MurmurHash3, which spreads consecutive numbers over all bits; the hash is
/// reduced to the range as in RFC 8290 §4.1, modulo the number.
const fn hash(flow: u32, queues: u32) -> u32 {
    let mut hash = flow;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    (hash ^ (hash >> 16)) % queues
}

impl FqCoDel {
    pub fn new(settings: &Settings, limits: Limits, floor: Span) -> Self {
        Self {
            law: settings.codel.law(floor),
            flows: settings.flows,
            limits,
            indices: Vec::new(),
            queues: Vec::new(),
            turns: DeficitRoundRobin::new(settings.quantum, settings.quantum),
            packets: 0,
            bytes: 0,
        }
    }

    pub const fn backlog(&self) -> (u32, u64) {
        (self.packets as u32, self.bytes)
    }

    /// Enqueues a packet. If the queue is too long then, the longest flow loses packets from its
    /// head (RFC 8290 §4.1). Returns false if the packet is among them, or larger than the limit;
    /// `is_admitted` packets always enter.
    pub fn enqueue(&mut self, now: Instant, packet: Packet, is_admitted: bool, mut lost: impl FnMut(Packet)) -> bool {
        if !is_admitted && !self.limits.admit(0, 0, packet.size) {
            return false;
        }
        let index = self.index_of(packet);
        let queue = &mut self.queues[index as usize];
        queue.fifo.push(now, packet);
        if !queue.is_listed {
            queue.is_listed = true;
            self.turns.begin(index);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        let mut is_enqueued = true;
        while !is_admitted && !self.limits.hold(self.packets, self.bytes) {
            self.shorten(|dropped| {
                if dropped.id == packet.id {
                    is_enqueued = false;
                } else {
                    lost(dropped);
                }
            });
        }
        is_enqueued
    }

    /// The index of the packet's queue, which is created with its first packet.
    fn index_of(&mut self, packet: Packet) -> u32 {
        if self.indices.is_empty() {
            self.indices = vec![0; self.flows as usize];
        }
        let index = &mut self.indices[hash(packet.flow.0, self.flows) as usize];
        if *index == 0 {
            self.queues.push(FlowQueue::default());
            *index = self.queues.len() as u32;
        }
        *index - 1
    }

    /// Drops half of the longest queue, at most a batch.
    fn shorten(&mut self, mut lost: impl FnMut(Packet)) {
        let bytes_of = |index: &u32| self.queues[*index as usize].fifo.bytes();
        let Some(longest) = self.turns.flows().max_by_key(|index| (bytes_of(index), *index)) else { return };
        let half = bytes_of(&longest) / 2;
        let mut dropped = 0;
        for _ in 0..DROP_BATCH {
            let Some(packet) = self.drop_from(longest) else { break };
            dropped += u64::from(packet.size);
            lost(packet);
            if dropped >= half {
                break;
            }
        }
    }

    fn drop_from(&mut self, index: u32) -> Option<Packet> {
        let packet = self.queues[index as usize].fifo.pop()?.packet;
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// The packet to send at `now` (RFC 8290 §4.2).
    pub fn dequeue(&mut self, now: Instant, mut dropped: impl FnMut(Packet)) -> Option<Packet> {
        while let Some(next) = self.turns.next(|index| self.queues[index as usize].fifo.len() > 0) {
            let index = match next {
                Next::Sends(index) => index,
                Next::Left(index) => {
                    self.queues[index as usize].is_listed = false;
                    continue;
                }
            };
            let FlowQueue { fifo, control, .. } = &mut self.queues[index as usize];
            let before = (fifo.len(), fifo.bytes());
            let packet = control.dequeue(self.law, fifo, now, &mut dropped);
            self.packets -= before.0 - fifo.len();
            self.bytes -= before.1 - fifo.bytes();
            self.turns.sent(packet.map_or(0, |packet| packet.size), fifo.len() > 0);
            if packet.is_some() {
                return packet;
            }
        }
        None
    }

    /// The queue whose head has waited longest, and since when. All queues with turns are compared.
    fn oldest(&self) -> Option<(Instant, u32)> {
        let entered = |index: u32| self.queues[index as usize].fifo.head_entered();
        self.turns.flows().filter_map(|index| Some((entered(index)?, index))).min()
    }

    pub fn head_entered(&self) -> Option<Instant> {
        self.oldest().map(|(entered, _)| entered)
    }

    pub fn drop_head(&mut self) -> Option<Packet> {
        let (_, index) = self.oldest()?;
        self.drop_from(index)
    }

    pub fn clear(&mut self, mut lost: impl FnMut(Packet)) {
        for FlowQueue { fifo, control, is_listed } in &mut self.queues {
            control.restart();
            *is_listed = false;
            fifo.clear(&mut lost);
        }
        self.turns.clear();
        (self.packets, self.bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_spread_over_the_queues() {
        // Flow f + c n is connection c of flow f of n in a simulation; live flows count down.
        for numbers in [
            (0..1_000).collect::<Vec<u32>>(),
            (0..1_000).map(|connection| connection * 1_024).collect(),
            (0..1_000).map(|flow| u32::MAX - flow).collect(),
        ] {
            let mut used = vec![false; 1_024];
            numbers.iter().for_each(|flow| used[hash(*flow, 1_024) as usize] = true);
            let used = used.iter().filter(|used| **used).count() as f64;
            // 1,000 balls in 1,024 bins at random occupy 1,024 (1 - (1 - 1/1,024)^1,000) of them,
            // with a standard deviation of about 10.
            let expected = 1_024.0 * (1.0 - libm::pow(1.0 - 1.0 / 1_024.0, 1_000.0));
            assert!((used - expected).abs() < 50.0, "{used} of {expected}");
        }
    }

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
