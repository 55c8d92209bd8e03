//! One queue for all packets to a mobile: FQ-CoDel (RFC 8290), behind a rate.
//!
//! Packets that the proxy does not relay, such as those of QUIC, have no budget. They wait here
//! only if they arrive faster than they may leave, so the queue needs a rate, which should be a
//! little below that of the bearer. Flows take turns, and each is managed by CoDel (RFC 8289).
//!
//! Unlike the discipline `fq-codel` of `airpath_link::queue`, flows have a queue each instead of
//! that of a hash, a flow without packets loses the state of CoDel, and a full queue loses single
//! packets of the flow with the most bytes, not half of its bytes at once.
//!
//! The proxy's own segments take part in the turns. With a budget CoDel does not drop them: the
//! budget bounds them, and a sender that keeps its window on loss would not slow down.

use std::collections::BTreeMap;

use airpath_core::{Bitrate, Bytes, Direction, DropCause, Instant, Packet, Span};
use airpath_link::queue::codel::{CoDel, Settings};
use airpath_link::queue::{Limits, Queue};
use airpath_path::{Departures, MiddleboxContext};
use serde::{Deserialize, Serialize};

use crate::scheduler::Scheduler;

/// The settings of the queue: the keys of the scenario table `[proxy.queue]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The rate at which the packets to a mobile leave.
    pub rate: Bitrate,
    /// The acceptable queueing delay of a flow (RFC 8289 §4).
    #[serde(default = "target")]
    pub target: Span,
    /// How long the delay of a flow may exceed the target before packets are dropped (RFC 8289 §4).
    #[serde(default = "interval")]
    pub interval: Span,
    /// Whether packets of ECN-capable flows are marked instead of dropped.
    #[serde(default = "ecn")]
    pub ecn: bool,
    /// Bytes of a mobile that may wait.
    #[serde(default = "bytes")]
    pub bytes: Bytes,
}

const fn target() -> Span {
    Settings::TARGET
}

fn interval() -> Span {
    Settings::default().interval
}

/// RFC 8290 §5.2.
const fn ecn() -> bool {
    true
}

/// 1000 packets of 1500 bytes.
const fn bytes() -> Bytes {
    Bytes::new(1_500_000)
}

impl Config {
    /// A queue with this rate, and defaults.
    pub fn new(rate: Bitrate) -> Self {
        Self { rate, target: target(), interval: interval(), ecn: ecn(), bytes: bytes() }
    }

    /// CoDel for a flow of the proxy (`is_own`) or another.
    fn codel(&self, is_own: bool) -> CoDel {
        let target = if is_own { Span::from_nanos(u64::MAX) } else { self.target };
        let settings = Settings { target: Some(target), interval: self.interval, ecn: self.ecn };
        CoDel::new(&settings, Limits::of(&Queue::default()))
    }
}

/// The packets that wait for one mobile.
#[derive(Debug)]
pub struct FairQueue {
    /// The flows with packets, by number.
    flows: BTreeMap<u32, CoDel>,
    turns: Scheduler,
    bytes: u64,
    /// When the packet that left last has been sent at the rate.
    free_at: Instant,
}

impl Default for FairQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl FairQueue {
    pub const fn new() -> Self {
        Self { flows: BTreeMap::new(), turns: Scheduler::fair_queue(), bytes: 0, free_at: Instant::ZERO }
    }

    /// Bytes that wait.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A packet enters. `is_unmanaged` if CoDel is not to drop it. If there are too many bytes, the
    /// flow with the most of them loses its first packets (RFC 8290 §4.1).
    pub fn enter(
        &mut self,
        now: Instant,
        packet: Packet,
        is_unmanaged: bool,
        config: &Config,
        cx: &mut MiddleboxContext<'_>,
    ) {
        let (flow, size) = (packet.flow.0, u64::from(packet.size));
        let codel = self.flows.entry(flow).or_insert_with(|| config.codel(is_unmanaged));
        codel.enter(now, packet);
        self.turns.add(flow, codel.bytes());
        self.bytes += size;
        while self.bytes > config.bytes.get()
            && let Some((flow, codel)) = self.flows.iter_mut().max_by_key(|(_, codel)| codel.bytes())
            && let Some(packet) = codel.drop_head()
        {
            self.bytes -= u64::from(packet.size);
            cx.drop_packet(now, Direction::Down, packet, DropCause::QueueFull);
            if codel.bytes() == 0 {
                let flow = *flow;
                self.flows.remove(&flow);
                self.turns.remove(flow);
            }
        }
    }

    /// Takes out a packet, whether or not it may leave.
    pub fn release(&mut self) -> Option<Packet> {
        let (flow, codel) = self.flows.iter_mut().next()?;
        let (flow, packet) = (*flow, codel.drop_head());
        if codel.bytes() == 0 {
            self.flows.remove(&flow);
            self.turns.remove(flow);
        }
        self.bytes -= packet.as_ref().map_or(0, |packet| packet.size.into());
        packet
    }

    /// Sends what may leave up to `now`, at this rate, if there is one. Returns when the next
    /// packet may leave, if one waits.
    pub fn send(
        &mut self,
        now: Instant,
        rate: Option<Bitrate>,
        left: &mut Departures,
        cx: &mut MiddleboxContext<'_>,
    ) -> Option<Instant> {
        while self.free_at <= now {
            let flow = self.turns.next()?;
            let Some(codel) = self.flows.get_mut(&flow) else {
                self.turns.sent(flow, 0, false);
                continue;
            };
            let mut dropped = 0;
            let packet = codel.dequeue(now, |packet| {
                dropped += u64::from(packet.size);
                cx.drop_packet(now, Direction::Down, packet, DropCause::QueueManagement);
            });
            let size = packet.map_or(0, |packet| packet.size);
            self.bytes -= dropped + u64::from(size);
            let is_backlogged = codel.bytes() > 0;
            if !is_backlogged {
                self.flows.remove(&flow);
            }
            self.turns.sent(flow, size, is_backlogged);
            if let Some(packet) = packet {
                let size = Bytes::new(packet.size.into());
                self.free_at = rate.map_or(now, |rate| now + rate.time_for(size));
                left.push(now, Direction::Down, packet);
            }
        }
        (self.bytes > 0).then_some(self.free_at)
    }
}
