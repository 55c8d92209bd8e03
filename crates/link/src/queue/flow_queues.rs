//! Flows with a queue each, which take turns: what FQ-CoDel and CAKE have in common.

use airpath_core::{Instant, Packet};

use super::Limits;
use super::fifo::Fifo;
use super::round_robin::{DeficitRoundRobin, Next};

/// The queues of all flows, by index. `C` is the state of the management of one queue.
#[derive(Clone, Debug)]
pub(super) struct FlowQueues<C> {
    /// The queues that have had packets.
    queues: Vec<FlowQueue<C>>,
    /// The order of the queues, by index.
    turns: DeficitRoundRobin,
    packets: usize,
    bytes: u64,
    /// When the packet arrived that was dequeued last.
    last_entered: Instant,
}

#[derive(Clone, Debug, Default)]
struct FlowQueue<C> {
    fifo: Fifo,
    control: C,
    /// Whether it has a turn.
    is_listed: bool,
}

/// The share of a flow, and the end of its turns.
pub(super) trait Shares<C> {
    /// The number by which the quantum of queue `index` is divided, when the queue has used its
    /// bytes and gets more.
    fn divisor(&mut self, index: u32, has_packets: bool) -> u32;

    /// Queue `index` has left the turns, without packets.
    fn left(&mut self, index: u32, control: &mut C);
}

impl<C: Default> FlowQueues<C> {
    /// No queues; a flow may send `quantum` bytes in a turn.
    pub const fn new(quantum: u32) -> Self {
        let turns = DeficitRoundRobin::new(quantum, quantum);
        Self { queues: Vec::new(), turns, packets: 0, bytes: 0, last_entered: Instant::ZERO }
    }

    /// Sets the bytes that a flow may send in a turn.
    pub const fn set_quantum(&mut self, quantum: u32) {
        self.turns.set_quantum(quantum);
    }

    pub const fn backlog(&self) -> (u32, u64) {
        (self.packets as u32, self.bytes)
    }

    /// Number of queues.
    pub const fn len(&self) -> u32 {
        self.queues.len() as u32
    }

    /// Creates a queue, and returns its index.
    pub fn add(&mut self) -> u32 {
        self.queues.push(FlowQueue::default());
        self.len() - 1
    }

    /// Whether queue `index` has a turn.
    pub fn is_listed(&self, index: u32) -> bool {
        self.queues[index as usize].is_listed
    }

    pub fn control(&self, index: u32) -> &C {
        &self.queues[index as usize].control
    }

    pub fn control_mut(&mut self, index: u32) -> &mut C {
        &mut self.queues[index as usize].control
    }

    /// Enqueues a packet into queue `index`. A queue without a turn gets one, with its quantum
    /// divided by `divisor`.
    pub fn push(&mut self, now: Instant, index: u32, packet: Packet, divisor: u32) {
        let queue = &mut self.queues[index as usize];
        queue.fifo.push(now, packet);
        if !queue.is_listed {
            queue.is_listed = true;
            self.turns.begin(index, divisor);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }

    /// Removes packets by `shorten`, which gets the index of the longest queue, until `limits`
    /// hold. Returns false if the `newest` packet is among them; `lost` is called for the others.
    pub fn enforce(
        &mut self,
        limits: Limits,
        newest: Packet,
        mut shorten: impl FnMut(&mut Self, u32, &mut dyn FnMut(Packet)),
        mut lost: impl FnMut(Packet),
    ) -> bool {
        let mut is_enqueued = true;
        let mut drop = |packet: Packet| {
            if packet.id == newest.id {
                is_enqueued = false;
            } else {
                lost(packet);
            }
        };
        while !limits.hold(self.packets, self.bytes)
            && let Some(longest) = self.longest()
        {
            shorten(self, longest, &mut drop);
        }
        is_enqueued
    }

    /// Bytes that wait in queue `index`.
    pub fn bytes_of(&self, index: u32) -> u64 {
        self.queues[index as usize].fifo.bytes()
    }

    /// The queue with the most bytes. All queues with turns are compared.
    fn longest(&self) -> Option<u32> {
        self.turns.flows().max_by_key(|index| (self.bytes_of(*index), *index))
    }

    /// Removes the packet at the head of queue `index`.
    pub fn drop_from(&mut self, index: u32) -> Option<Packet> {
        let packet = self.queues[index as usize].fifo.pop()?.packet;
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// The packet of the flow whose turn it is (RFC 8290 §4.2). `take` removes it from its queue,
    /// and possibly others before it.
    pub fn dequeue(
        &mut self,
        shares: &mut impl Shares<C>,
        mut take: impl FnMut(&mut C, &mut Fifo) -> Option<Packet>,
    ) -> Option<Packet> {
        loop {
            let has_packets = |index: u32| self.queues[index as usize].fifo.len() > 0;
            let next = self.turns.next(has_packets, |index| shares.divisor(index, has_packets(index)))?;
            let index = match next {
                Next::Sends(index) => index,
                Next::Left(index) => {
                    let queue = &mut self.queues[index as usize];
                    queue.is_listed = false;
                    shares.left(index, &mut queue.control);
                    continue;
                }
            };
            let FlowQueue { fifo, control, .. } = &mut self.queues[index as usize];
            let before = (fifo.len(), fifo.bytes());
            let packet = take(control, fifo);
            self.packets -= before.0 - fifo.len();
            self.bytes -= before.1 - fifo.bytes();
            self.turns.sent(packet.map_or(0, |packet| packet.size), fifo.len() > 0);
            if packet.is_some() {
                self.last_entered = fifo.last_entered();
                return packet;
            }
        }
    }

    /// When the packet arrived that was dequeued last.
    pub const fn last_entered(&self) -> Instant {
        self.last_entered
    }

    /// The queue whose head has waited longest, and since when. All queues with turns are compared.
    pub fn oldest(&self) -> Option<(Instant, u32)> {
        let entered = |index: u32| self.queues[index as usize].fifo.head_entered();
        self.turns.flows().filter_map(|index| Some((entered(index)?, index))).min()
    }

    /// Removes the packet that has waited longest.
    pub fn drop_oldest(&mut self) -> Option<Packet> {
        let (_, index) = self.oldest()?;
        self.drop_from(index)
    }

    /// Removes all packets, and ends the turns of all queues.
    pub fn clear(&mut self, shares: &mut impl Shares<C>, mut lost: impl FnMut(Packet)) {
        if self.packets > 0 {
            self.queues.iter_mut().for_each(|queue| queue.fifo.clear(&mut lost));
            (self.packets, self.bytes) = (0, 0);
        }
        for index in self.turns.flows() {
            let queue = &mut self.queues[index as usize];
            queue.is_listed = false;
            shares.left(index, &mut queue.control);
        }
        self.turns.clear();
    }
}

/// The queue of a flow, of this number of queues. A fixed function, so that a run can be repeated:
/// the finaliser of MurmurHash3, which spreads consecutive numbers over all bits; the hash is
/// reduced to the range as in RFC 8290 §4.1, modulo the number.
pub(super) const fn hash(flow: u32, queues: u32) -> u32 {
    let mut hash = flow;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    (hash ^ (hash >> 16)) % queues
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
}
