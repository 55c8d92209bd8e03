//! CAKE (Høiland-Jørgensen, Täht and Morton 2018): each flow has a queue with COBALT, and mobiles
//! get the same share of the rate, whatever the number of their flows.
//!
//! The rules are those of `sch_cake` in Linux with one tin. Not here: the shaper, which is the link
//! itself, the tins of Diffserv, and the ACK filter.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use airpath_core::{Bitrate, FlowId, Instant, Packet, RandomStream, Span, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cobalt::{Cobalt, Law};
use super::flow_queues::{FlowQueues, Shares, hash};
use super::{Limits, MTU};

/// The parameters of CAKE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The acceptable standing sojourn time. `None`: 5 ms, or the time of 1.5 packets of 1,514
    /// bytes at the rate of the link, or two TTIs of the bearer, if they are longer.
    pub target: Option<Span>,
    /// The time for which the target must be exceeded before the first signal. `None`: 100 ms, and
    /// longer by as much as the default target is above 5 ms.
    pub interval: Option<Span>,
    /// Between whom the rate is shared. Default: mobiles.
    pub isolation: Isolation,
    /// Whether packets of ECN-capable flows are marked instead of dropped, except by BLUE. Default:
    /// `true`, as in Linux.
    pub ecn: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { target: None, interval: None, isolation: Isolation::Mobiles, ecn: true }
    }
}

/// Between whom CAKE shares the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Between mobiles, and the share of a mobile between its flows.
    #[default]
    Mobiles,
    /// Between flows.
    Flows,
}

/// Number of queues, and of those that a flow may have (`CAKE_QUEUES` and `CAKE_SET_WAYS` of
/// Linux).
const QUEUES: u32 = 1_024;
const WAYS: u32 = 8;

/// Bytes of a turn: those of 1/4,096 s at the rate of the link, within these bounds.
const LEAST_QUANTUM: u64 = 300;

/// The queues of all flows.
#[derive(Clone, Debug)]
pub(super) struct Cake {
    settings: Settings,
    /// Sojourn times below which the bearer cannot stay.
    floor: Span,
    law: Law,
    limits: Limits,
    /// The flows that have the queues. Empty before the first packet.
    places: Vec<Option<Place>>,
    queues: FlowQueues<Cobalt>,
    loads: Loads,
    /// Time of the last departure.
    served: Instant,
    stream: RandomStream,
}

/// A queue, and the flow that has had it last.
#[derive(Clone, Copy, Debug)]
struct Place {
    flow: FlowId,
    user: UserId,
    index: u32,
}

impl Cake {
    /// The queues of a link with this rate, or of a bearer that cannot keep sojourn times below
    /// `floor`. BLUE draws from `stream`.
    pub fn new(settings: &Settings, limits: Limits, floor: Span, rate: Option<Bitrate>, stream: RandomStream) -> Self {
        Self {
            law: law(settings, floor, rate),
            floor,
            limits,
            places: Vec::new(),
            queues: FlowQueues::new(quantum(rate)),
            loads: Loads { isolation: settings.isolation, queues: Vec::new(), counts: BTreeMap::new() },
            served: Instant::ZERO,
            stream,
            settings: settings.clone(),
        }
    }

    /// The link sends at this rate from now on.
    pub fn set_rate(&mut self, rate: Bitrate) {
        self.law = law(&self.settings, self.floor, Some(rate));
        self.queues.set_quantum(quantum(Some(rate)));
    }

    pub const fn backlog(&self) -> (u32, u64) {
        self.queues.backlog()
    }

    /// Enqueues a packet. If the queue is too long then, the longest flow loses packets from its
    /// head. Returns false if the packet is among them, or larger than the limit; `is_admitted`
    /// packets always enter.
    pub fn enqueue(&mut self, now: Instant, packet: Packet, is_admitted: bool, lost: impl FnMut(Packet)) -> bool {
        if !is_admitted && !self.limits.admit(0, 0, packet.size) {
            return false;
        }
        if self.backlog().0 == 0 {
            self.queues.clear(&mut Turns { loads: &mut self.loads, now: self.served }, |_| {});
        }
        let index = self.index_of(now, packet);
        if !self.queues.is_listed(index) {
            self.queues.control_mut(index).enter(&self.law, now);
            self.loads.queues[index as usize].user = packet.user;
        }
        self.queues.push(now, index, packet, self.loads.of(index));
        let law = self.law;
        let shorten = |queues: &mut FlowQueues<Cobalt>, longest: u32, lost: &mut dyn FnMut(Packet)| {
            queues.drop_from(longest).into_iter().for_each(lost);
            queues.control_mut(longest).overflowed(&law, now);
        };
        is_admitted || self.queues.enforce(self.limits, packet, shorten, lost)
    }

    /// The index of the packet's queue: the one that its flow has, or one that no flow uses, in the
    /// set of eight of its hash. Only if all eight are in use, two flows share a queue.
    fn index_of(&mut self, now: Instant, packet: Packet) -> u32 {
        if self.places.is_empty() {
            self.places = vec![None; QUEUES as usize];
        }
        let own = hash(packet.flow.0, QUEUES);
        let first = own - own % WAYS;
        let ways = || (0..WAYS).map(|step| (first + (own + step) % WAYS) as usize);
        let places = &self.places;
        let has_flow = |place: &Place| (place.flow, place.user) == (packet.flow, packet.user);
        let is_free = |place: &Place| {
            !self.queues.is_listed(place.index) && self.queues.control(place.index).is_at_rest(&self.law, now)
        };
        let chosen = ways()
            .find(|way| places[*way].as_ref().is_some_and(has_flow))
            .or_else(|| ways().find(|way| places[*way].as_ref().is_none_or(is_free)))
            .unwrap_or(own as usize);
        let index = self.places[chosen].map_or_else(
            || {
                self.loads.queues.push(Load { user: packet.user, is_counted: false });
                self.queues.add()
            },
            |place| place.index,
        );
        self.places[chosen] = Some(Place { flow: packet.flow, user: packet.user, index });
        index
    }

    /// The packet to send at `now`.
    pub fn dequeue(&mut self, now: Instant, mut dropped: impl FnMut(Packet)) -> Option<Packet> {
        self.served = now;
        let Self { law, queues, loads, stream, .. } = self;
        queues.dequeue(&mut Turns { loads, now }, |control, fifo| control.dequeue(law, fifo, now, stream, &mut dropped))
    }

    pub const fn last_entered(&self) -> Instant {
        self.queues.last_entered()
    }

    pub fn head_entered(&self) -> Option<Instant> {
        self.queues.oldest().map(|(entered, _)| entered)
    }

    pub fn drop_head(&mut self, now: Instant) -> Option<Packet> {
        self.served = now;
        self.queues.drop_oldest()
    }

    pub fn clear(&mut self, now: Instant, lost: impl FnMut(Packet)) {
        self.served = now;
        self.queues.clear(&mut Turns { loads: &mut self.loads, now }, lost);
    }
}

fn law(settings: &Settings, floor: Span, rate: Option<Bitrate>) -> Law {
    Law::new(settings.target, settings.interval, settings.ecn, floor, rate)
}

fn quantum(rate: Option<Bitrate>) -> u32 {
    let bytes = rate.map_or(u64::MAX, |rate| rate.as_bps() / 8 / 4_096);
    bytes.clamp(LEAST_QUANTUM, MTU.into()) as u32
}

/// The numbers of flows with a standing queue.
#[derive(Clone, Debug)]
struct Loads {
    isolation: Isolation,
    /// By index of the queue.
    queues: Vec<Load>,
    /// By mobile, without those that have none.
    counts: BTreeMap<UserId, u32>,
}

/// The mobile of a queue, and whether the queue counts among those of the mobile.
#[derive(Clone, Copy, Debug)]
struct Load {
    user: UserId,
    is_counted: bool,
}

impl Loads {
    /// The number by which the quantum of queue `index` is divided.
    fn of(&self, index: u32) -> u32 {
        match self.isolation {
            Isolation::Mobiles => self.counts.get(&self.queues[index as usize].user).copied().unwrap_or(1),
            Isolation::Flows => 1,
        }
    }

    /// Queue `index` counts among those of its mobile.
    fn count(&mut self, index: u32) {
        let load = &mut self.queues[index as usize];
        if !load.is_counted {
            load.is_counted = true;
            *self.counts.entry(load.user).or_default() += 1;
        }
    }

    /// It counts no longer.
    fn forget(&mut self, index: u32) {
        let load = &mut self.queues[index as usize];
        if load.is_counted {
            load.is_counted = false;
            if let Entry::Occupied(mut count) = self.counts.entry(load.user) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
    }
}

/// The turns at a time.
struct Turns<'a> {
    loads: &'a mut Loads,
    now: Instant,
}

impl Shares<Cobalt> for Turns<'_> {
    /// A flow that has packets left after its turn has a standing queue.
    fn divisor(&mut self, index: u32, has_packets: bool) -> u32 {
        if has_packets {
            self.loads.count(index);
        }
        self.loads.of(index)
    }

    fn left(&mut self, index: u32, control: &mut Cobalt) {
        control.leave(self.now);
        self.loads.forget(index);
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Bytes, Ecn, Seed, Slot};

    use super::*;
    use crate::queue::Queue;

    fn packet(id: u64, flow: u32, user: u32, size: u32) -> Packet {
        let (flow, user, slot) = (FlowId(flow), UserId::new(user), Slot(0));
        Packet { id, size, flow, user, ecn: Ecn::NotEct, slot }
    }

    fn cake(isolation: Isolation, queue: &Queue, rate: Option<u64>) -> Cake {
        let settings = Settings { isolation, ..Settings::default() };
        let stream = Seed::new(1).stream("queue");
        Cake::new(&settings, Limits::of(queue), Span::ZERO, rate.map(Bitrate::from_bps), stream)
    }

    /// Shares of the bytes that flows get, each of a mobile and with packets of a size, while all
    /// have packets. No packet waits long enough to be dropped.
    fn shares(isolation: Isolation, flows: &[(u32, u32)]) -> Vec<f64> {
        let mut cake = cake(isolation, &Queue::default(), None);
        let mut bytes = vec![0.0; flows.len()];
        let enqueue = |cake: &mut Cake, flow: usize| {
            let (user, size) = flows[flow];
            assert!(cake.enqueue(Instant::ZERO, packet(0, flow as u32, user, size), false, |_| {}));
        };
        for flow in 0..flows.len() {
            (0..20).for_each(|_| enqueue(&mut cake, flow));
        }
        for sent in 0..50_000 {
            let packet = cake.dequeue(Instant::ZERO, |_| panic!("a drop")).expect("a packet");
            // The first turns are those of new flows.
            if sent > 1_000 {
                bytes[packet.flow.0 as usize] += f64::from(packet.size);
            }
            enqueue(&mut cake, packet.flow.0 as usize);
        }
        let all: f64 = bytes.iter().sum();
        bytes.into_iter().map(|bytes| bytes / all).collect()
    }

    #[test]
    fn mobiles_or_flows_have_equal_shares() {
        // A mobile with eight flows beside a mobile with one.
        let flows: Vec<(u32, u32)> = (0..9).map(|flow| (u32::from(flow == 8), 1_500)).collect();
        for (isolation, of_eight, of_one) in
            [(Isolation::Mobiles, 1.0 / 16.0, 1.0 / 2.0), (Isolation::Flows, 1.0 / 9.0, 1.0 / 9.0)]
        {
            let shares = shares(isolation, &flows);
            for (index, share) in shares.iter().enumerate() {
                let expected = if index == 8 { of_one } else { of_eight };
                assert!((share / expected - 1.0).abs() < 0.01, "{isolation:?}: {shares:?}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn shares_do_not_depend_on_sizes_and_numbers(
            flows in proptest::collection::vec((0u32..4, 100u32..1_500), 1..12),
        ) {
            let users: std::collections::BTreeSet<u32> = flows.iter().map(|(user, _)| *user).collect();
            let flows_of = |user: u32| flows.iter().filter(|(of, _)| *of == user).count();
            for (share, (user, _)) in shares(Isolation::Mobiles, &flows).into_iter().zip(&flows) {
                let expected = 1.0 / users.len() as f64 / flows_of(*user) as f64;
                proptest::prop_assert!((share / expected - 1.0).abs() < 0.05, "{share} instead of {expected}");
            }
            for share in shares(Isolation::Flows, &flows) {
                proptest::prop_assert!((share * flows.len() as f64 - 1.0).abs() < 0.05, "{share}");
            }
        }
    }

    #[test]
    fn flows_without_standing_queue_do_not_count() {
        // Beside its long flow, the first mobile sends single packets of flows that end. No packet
        // waits long enough to be dropped.
        let (target, interval) = (Some(Span::from_secs(1_000)), Some(Span::from_millis(100)));
        let settings = Settings { target, interval, ..Settings::default() };
        let limits = Limits::of(&Queue::default());
        let mut cake = Cake::new(&settings, limits, Span::ZERO, None, Seed::new(1).stream("queue"));
        let mut bytes = [0.0; 2];
        for id in 0..10_000 {
            let now = Instant::ZERO + Span::from_millis(id);
            let mut enqueue = |packet| assert!(cake.enqueue(now, packet, false, |_| {}));
            if id % 10 == 0 {
                enqueue(packet(id, 100 + id as u32, 0, 100));
            }
            enqueue(packet(id, 0, 0, 1_500));
            enqueue(packet(id, 1, 1, 1_500));
            let mut dequeue = || cake.dequeue(now, |_| panic!("a drop")).expect("a packet");
            if id % 10 == 0 {
                let first = dequeue();
                assert!(id < 10 || first.size == 100, "a new flow sends first: {first:?}");
            }
            let packet = dequeue();
            bytes[packet.user.index()] += f64::from(packet.size);
        }
        assert!((bytes[0] / bytes[1] - 1.0).abs() < 0.02, "{bytes:?}");
        assert_eq!(cake.loads.counts.len(), 2);
        assert!(cake.loads.counts.values().all(|count| *count == 1), "{:?}", cake.loads.counts);
    }

    #[test]
    fn eight_flows_of_a_set_have_queues_of_their_own() {
        let mut cake = cake(Isolation::Flows, &Queue::default(), None);
        let flows: Vec<u32> = (0..).filter(|flow| hash(*flow, QUEUES) / WAYS == 5).take(9).collect();
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        let send = |cake: &mut Cake, flows: &[u32], millis| {
            for flow in flows {
                assert!(cake.enqueue(at(millis), packet(0, *flow, 0, 1_000), false, |_| {}));
            }
            while cake.dequeue(at(millis), |_| {}).is_some() {}
        };
        let queue_of = |cake: &Cake, flow, millis| cake.clone().index_of(at(millis), packet(0, flow, 0, 1_000));
        let (eight, ninth) = (&flows[..8], flows[8]);
        send(&mut cake, eight, 1);
        let queues: std::collections::BTreeSet<u32> = eight.iter().map(|flow| queue_of(&cake, *flow, 1)).collect();
        assert_eq!((queues.len(), cake.queues.len()), (8, 8));
        let own = queue_of(&cake, ninth, 1);
        assert!(queues.contains(&own), "the ninth shares a queue");
        // All but one send again. The queue of that one is free an interval after its packet.
        let (idle, others): (Vec<u32>, Vec<u32>) = eight.iter().partition(|flow| **flow == eight[0]);
        assert_ne!(queue_of(&cake, idle[0], 1), own);
        send(&mut cake, &others, 90);
        assert_eq!([100, 101].map(|millis| queue_of(&cake, ninth, millis)), [own, queue_of(&cake, idle[0], 90)]);
        // A flow number of another mobile is another flow.
        let other = cake.clone().index_of(at(101), packet(0, others[0], 1, 1_000));
        assert_ne!(other, queue_of(&cake, others[0], 101));
    }

    #[test]
    fn a_full_queue_drops_from_the_head_of_the_longest() {
        let mut cake = cake(Isolation::Mobiles, &Queue { packets: Some(10), ..Queue::default() }, None);
        let mut lost = Vec::new();
        let mut enqueue =
            |id, flow| cake.enqueue(Instant::ZERO, packet(id, flow, 0, 1_000), false, |it| lost.push(it.id));
        assert!((0..8).all(|id| enqueue(id, 0)) && (8..12).all(|id| enqueue(id, 1)));
        assert_eq!(lost, [0, 1], "one at a time");
        assert_eq!(cake.backlog(), (10, 10_000));
        // A packet that is larger than the limit, or that is the head of the longest queue.
        let limit = Queue { bytes: Some(Bytes::new(1_500)), ..Queue::default() };
        let mut small = self::cake(Isolation::Mobiles, &limit, None);
        let mut enqueue = |id, size| small.enqueue(Instant::ZERO, packet(id, id as u32, 0, size), false, |_| panic!());
        assert_eq!([(0, 1_501), (1, 600), (2, 1_000)].map(|(id, size)| enqueue(id, size)), [false, true, false]);
        assert_eq!(small.backlog(), (1, 600));
    }

    #[test]
    fn blue_acts_on_a_flow_that_overflows_the_queue() {
        // 100 packets arrive and 50 leave in each 50 ms.
        let mut cake = cake(Isolation::Mobiles, &Queue::of_packets(50), None);
        let mut drops = 0;
        for id in 0..4_000 {
            let now = Instant::ZERO + Span::from_micros(500 * id);
            cake.enqueue(now, Packet { ecn: Ecn::Ect0, ..packet(id, 0, 0, 1_000) }, false, |_| {});
            if id % 2 == 1 {
                cake.dequeue(now, |_| drops += 1);
            }
        }
        // In 2 s a step is possible in each 5 ms.
        assert!(drops > 100, "{drops} drops of packets that CoDel marks");
    }

    #[test]
    fn the_quantum_follows_the_rate() {
        let quanta = [1_000_000, 20_000_000, 1_000_000_000].map(|bps| quantum(Some(Bitrate::from_bps(bps))));
        assert_eq!((quanta, quantum(None)), ([300, 610, 1_514], 1_514));
        // At a quantum of 300 bytes, three small packets of a flow and one large packet of another.
        let order = |rate, later: Option<u64>| {
            let mut cake = cake(Isolation::Flows, &Queue::default(), rate);
            later.into_iter().for_each(|rate| cake.set_rate(Bitrate::from_bps(rate)));
            for flow in [0, 1] {
                let size = [100, 1_500][flow as usize];
                (0..30).for_each(|id| assert!(cake.enqueue(Instant::ZERO, packet(id, flow, 0, size), false, |_| {})));
            }
            (0..8).filter_map(|_| cake.dequeue(Instant::ZERO, |_| {})).map(|packet| packet.flow.0).collect::<Vec<_>>()
        };
        assert_eq!(order(Some(1_000_000), None), [0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(order(Some(1_000_000_000), None), [0; 8]);
        assert_eq!(order(Some(1_000_000_000), Some(1_000_000)), [0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(order(Some(1_000_000), Some(1_000_000_000)), [0; 8]);
    }

    #[test]
    fn a_queue_that_is_cleared_has_no_turns() {
        let mut cake = cake(Isolation::Mobiles, &Queue::default(), None);
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        for id in 0..10 {
            assert!(cake.enqueue(at(0), packet(id, id as u32 % 2, 0, 1_500), false, |_| {}));
        }
        (0..5).for_each(|_| assert!(cake.dequeue(at(1), |_| {}).is_some()));
        assert_eq!(cake.loads.counts.get(&UserId::new(0)), Some(&2));
        let mut lost = 0;
        cake.clear(at(2), |_| lost += 1);
        assert_eq!((lost, cake.backlog(), cake.loads.counts.len()), (5, (0, 0), 0));
        assert!(cake.dequeue(at(3), |_| {}).is_none());
    }
}
