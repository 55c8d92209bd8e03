//! FQ-CoDel (RFC 8290): flows take turns, and each has a queue with CoDel.

use airpath_core::{Instant, Packet, Span};

use super::codel::{self, Control, Law};
use super::fifo::Fifo;
use super::round_robin::DeficitRoundRobin;
use super::{Limits, MTU};

/// The parameters of FQ-CoDel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// CoDel of each flow. ECN is on by default, as in Linux (RFC 8290 §5.2).
    pub codel: codel::Settings,
    /// Number of queues (RFC 8290 §5.2.2). Default: 1,024. A flow has the queue of its number in
    /// the run, modulo this: unlike with a hash, flows share a queue only if there are more of
    /// them.
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
    /// The queues seen so far, by number.
    queues: Vec<FlowQueue>,
    turns: DeficitRoundRobin,
    packets: usize,
    bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct FlowQueue {
    fifo: Fifo,
    control: Control,
}

impl FqCoDel {
    pub fn new(settings: &Settings, limits: Limits, floor: Span) -> Self {
        Self {
            law: settings.codel.law(floor),
            flows: settings.flows,
            limits,
            queues: Vec::new(),
            turns: DeficitRoundRobin::new(settings.quantum, settings.quantum),
            packets: 0,
            bytes: 0,
        }
    }

    pub const fn backlog(&self) -> (u32, u64) {
        (self.packets as u32, self.bytes)
    }

    /// Enqueues a packet. If there is no room, the longest queue loses packets from its head (RFC
    /// 8290 §4.1). Returns false if there cannot be room; `is_admitted` packets always enter.
    pub fn enqueue(&mut self, now: Instant, packet: Packet, is_admitted: bool, mut lost: impl FnMut(Packet)) -> bool {
        if !is_admitted {
            if !self.limits.admit(0, 0, packet.size) {
                return false;
            }
            while !self.limits.admit(self.packets, self.bytes, packet.size) {
                self.shorten(&mut lost);
            }
        }
        let index = packet.flow.0 % self.flows;
        if self.queues.len() <= index as usize {
            self.queues.resize_with(index as usize + 1, FlowQueue::default);
        }
        let queue = &mut self.queues[index as usize].fifo;
        let was_empty = queue.len() == 0;
        queue.push(now, packet);
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        if was_empty {
            self.turns.add(index);
        }
        true
    }

    /// Drops half of the longest queue, at most a batch.
    fn shorten(&mut self, mut lost: impl FnMut(Packet)) {
        let bytes_of = |index: &u32| self.queues[*index as usize].fifo.bytes();
        let Some(longest) = self.turns.backlogged().max_by_key(|index| (bytes_of(index), *index)) else { return };
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
        let queue = &mut self.queues[index as usize].fifo;
        let packet = queue.pop()?.packet;
        if queue.len() == 0 {
            self.turns.emptied(index);
        }
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// The packet to send at `now` (RFC 8290 §4.2).
    pub fn dequeue(&mut self, now: Instant, mut dropped: impl FnMut(Packet)) -> Option<Packet> {
        while let Some(index) = self.turns.next_flow() {
            let FlowQueue { fifo, control } = &mut self.queues[index as usize];
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

    /// The queue whose head has waited longest, and since when.
    fn oldest(&self) -> Option<(Instant, u32)> {
        let entered = |index: u32| self.queues[index as usize].fifo.head_entered();
        self.turns.backlogged().filter_map(|index| Some((entered(index)?, index))).min()
    }

    pub fn head_entered(&self) -> Option<Instant> {
        self.oldest().map(|(entered, _)| entered)
    }

    pub fn drop_head(&mut self) -> Option<Packet> {
        let (_, index) = self.oldest()?;
        self.drop_from(index)
    }

    pub fn clear(&mut self, mut lost: impl FnMut(Packet)) {
        for FlowQueue { fifo, control } in &mut self.queues {
            control.restart();
            fifo.clear(&mut lost);
        }
        self.turns.clear();
        (self.packets, self.bytes) = (0, 0);
    }
}
