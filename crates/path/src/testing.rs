//! Checks of the contracts of [`Middlebox`], for the tests of this and other crates (feature
//! `testing`).
//!
//! [`contracts`] puts arrivals on a path whose only hop is the middlebox and checks with every call
//! that packets are conserved, that each slot is given back once, and that departures come in the
//! order of their times, not after the time of the call. The outcome must not depend on when the
//! path is polled.

use std::collections::BTreeMap;

use airpath_core::{
    Direction, Dropped, Instant, Memory, Packet, PacketCounters, Seed, SegmentInfo, SegmentLookup, Sink, Slot,
};
use airpath_link::Departure;
use airpath_link::testing::{PollClock, Polling, Polls};
use airpath_tcp::Segment;

use crate::route::Plan;
use crate::{Contents, Hop, Middlebox, NewSegment, PacketStore, Path, PolledPath, Route, Topology};

/// Bytes of an IPv4 header.
const IP_HEADER: u32 = 20;

/// A packet that enters, with its TCP header.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// Its direction.
    pub direction: Direction,
    /// The packet. Its slot is set by the check.
    pub packet: Packet,
    /// Its TCP header, if it is TCP.
    pub segment: Option<Segment>,
}

/// What became of the packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Packets that came out, in their order. Slots are zero.
    pub departures: Vec<(Direction, Departure)>,
    /// Dropped packets, in the order of their identifiers. Slots are zero.
    pub dropped: Vec<Dropped>,
    /// Identifiers of absorbed packets, in ascending order.
    pub absorbed: Vec<u64>,
    /// Counters at the end, by direction.
    pub counters: [PacketCounters; 2],
}

/// A packet buffer that finds slots which are given back twice or not at all.
#[derive(Debug, Default)]
struct CheckedStore {
    next: u32,
    used: BTreeMap<u32, Option<Segment>>,
    dropped: Vec<Dropped>,
    absorbed: Vec<u64>,
}

impl CheckedStore {
    fn insert(&mut self, segment: Option<Segment>) -> Slot {
        let slot = Slot(self.next);
        self.next += 1;
        self.used.insert(slot.0, segment);
        slot
    }

    fn release(&mut self, packet: &Packet) {
        assert!(self.used.remove(&packet.slot.0).is_some(), "the slot of {packet:?} is given back, but is not in use");
    }
}

impl SegmentLookup for CheckedStore {
    fn segment(&self, slot: Slot) -> Option<SegmentInfo> {
        self.tcp_segment(slot).map(|segment| segment.info)
    }
}

impl PacketStore for CheckedStore {
    fn take_dropped(&mut self, dropped: &Dropped) {
        self.release(&dropped.packet);
        self.dropped.push(Dropped { packet: Packet { slot: Slot(0), ..dropped.packet }, ..*dropped });
    }

    fn take_absorbed(&mut self, packet: &Packet) {
        self.release(packet);
        self.absorbed.push(packet.id);
    }

    fn create(&mut self, _: Instant, _: Direction, contents: Contents<'_>) -> Option<Slot> {
        match contents {
            Contents::CopyOf(slot) => {
                let segment = self.tcp_segment(slot);
                Some(self.insert(segment))
            }
            Contents::Bytes(_) => Some(self.insert(None)),
        }
    }

    fn tcp_segment(&self, slot: Slot) -> Option<Segment> {
        *self.used.get(&slot.0).expect("a lookup of a slot that is not in use")
    }

    fn create_segment(&mut self, _: Instant, _: Direction, new: NewSegment<'_>) -> Option<(Slot, u32)> {
        Some((self.insert(Some(*new.segment)), new.segment.wire_size(IP_HEADER)))
    }
}

/// Runs all checks with these arrivals, which are in the order of time, until `horizon`. Returns
/// the outcome of a run that is polled on time.
///
/// # Panics
/// If a contract is broken.
pub fn contracts<M: Middlebox + 'static>(make: impl Fn() -> M, arrivals: &[Arrival], horizon: Instant) -> Outcome {
    let on_time = run(make(), arrivals, Polling::OnTime, horizon);
    for polling in [Polling::OnTime, Polling::Early(1), Polling::Late(1), Polling::Late(2), Polling::AtEnd] {
        let outcome = run(make(), arrivals, polling, horizon);
        assert_eq!(on_time, outcome, "the outcome differs when the path is polled {polling:?}");
    }
    on_time
}

fn run<M: Middlebox + 'static>(middlebox: M, arrivals: &[Arrival], polling: Polling, horizon: Instant) -> Outcome {
    let users = arrivals.iter().map(|arrival| arrival.packet.user.index() + 1).max().unwrap_or(1);
    // Before and behind the middlebox are links without delay.
    let link = || {
        let config = airpath_link::Config::default();
        let link = airpath_link::duplex(&config, &config, Seed::new(1), "link").expect("a link without limits");
        Hop::Bearer(Box::new(link))
    };
    let hops = vec![
        ("fixed".to_owned(), link()),
        ("middlebox".to_owned(), Hop::middlebox(Box::new(middlebox))),
        ("cell".to_owned(), link()),
    ];
    let plan = Plan { middleboxes: vec![1], first_cell: 2, cell_of: vec![2; users], ..Plan::default() };
    let mobiles = (0..users).map(|user| format!("mobile-{user}")).collect();
    let topology = Topology { route: Route::new(hops.len(), plan), hops, mobiles };
    let mut log = Memory::default();
    let mut runner = Runner {
        path: PolledPath::new(Path::new(topology, Some(&mut log as &mut dyn Sink)), Vec::new()),
        store: CheckedStore::default(),
        clock: PollClock::new(polling),
        departures: Vec::new(),
    };
    for arrival in arrivals {
        runner.run_until(arrival.at);
        let slot = runner.store.insert(arrival.segment);
        let packet = Packet { slot, ..arrival.packet };
        runner.path.push(arrival.at, arrival.direction, packet, &mut runner.store);
        runner.check();
    }
    runner.run_until(horizon);
    runner.poll(horizon);
    let Runner { path, store, departures, .. } = runner;
    let counters = counters(&path);
    let CheckedStore { mut dropped, mut absorbed, used, .. } = store;
    let queued = |(_, hop): (&str, &Hop)| Direction::BOTH.map(|direction| hop.counters(direction).queued.packets);
    let inside: u64 = path.path().hops().flat_map(queued).sum();
    assert_eq!(used.len() as u64, inside, "slots in use are those of the packets inside");
    dropped.sort_by_key(|dropped| dropped.packet.id);
    absorbed.sort_unstable();
    Outcome { departures, dropped, absorbed, counters }
}

fn counters(path: &PolledPath<'_>) -> [PacketCounters; 2] {
    let (_, hop) = path.path().hops().nth(1).expect("the middlebox");
    Direction::BOTH.map(|direction| hop.counters(direction))
}

struct Runner<'a> {
    path: PolledPath<'a>,
    store: CheckedStore,
    clock: PollClock,
    departures: Vec<(Direction, Departure)>,
}

impl Polls for Runner<'_> {
    fn clock(&mut self) -> &mut PollClock {
        &mut self.clock
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.path.next_wakeup()
    }

    fn departures(&self) -> &[(Direction, Departure)] {
        &self.departures
    }

    fn poll(&mut self, now: Instant) {
        while let Some((direction, departure)) = self.path.pop(now, &mut self.store) {
            assert!(departure.due <= now, "{departure:?} comes out at {now}");
            let last = self.departures.last().map(|(_, last)| last.due);
            assert!(last <= Some(departure.due), "{departure:?} comes after one due at {last:?}");
            self.store.release(&departure.packet);
            let packet = Packet { slot: Slot(0), ..departure.packet };
            self.departures.push((direction, Departure { packet, ..departure }));
            self.check();
        }
        let wakeup = self.path.next_wakeup();
        assert!(wakeup.is_none_or(|wakeup| wakeup > now), "polled at {now}, and wakes up at {wakeup:?}");
    }
}

impl Runner<'_> {
    fn check(&self) {
        for counters in counters(&self.path) {
            assert!(counters.is_conserved(), "packets are not conserved: {counters:?}");
        }
    }
}
