//! The rate of a bearer, and the window that keeps it busy, measured on bearers of their own in
//! virtual time.

use std::collections::BTreeMap;

use airpath_core::{
    Bitrate, Bytes, ComponentId, Context, Direction, Dropped, Ecn, FlowId, Instant, Packet, Slot, Span, UserId,
};
use airpath_link::{Admission, Bearer};

/// The size of a full packet.
const FULL: u32 = 1500;
/// The size of an acknowledgement with timestamps.
const ACKNOWLEDGEMENT: u32 = 52;
/// A receiver acknowledges every second full packet (RFC 5681 §4.2).
const ACKNOWLEDGED: u64 = 2;
/// More packets than any window that is considered.
const MOST_WINDOW: u64 = 4096;
/// A rate is the greatest over this time, of this time in all or this number of packets.
const WINDOW: Span = Span::from_secs(10);
const MEASURED: Span = Span::from_secs(60);
const MOST_PACKETS: usize = 20_000;
/// A window that carries this share of the greatest rate keeps the bearer busy.
const BUSY: f64 = 0.95;
/// The study's margin (Chakravorty and Pratt, "Performance Issues with GPRS": 10 to 15 %).
const MARGIN: f64 = 1.15;

/// The least window to the first mobile that keeps the bearer busy, and 15 % more: the greatest
/// rate times the round trip that data and acknowledgements have at that rate. `make` builds the
/// bearer. `None` if it carries nothing.
pub fn budget<E>(mut make: impl FnMut() -> Result<Box<dyn Bearer>, E>) -> Result<Option<Bytes>, E> {
    let mut rate = |window| make().map(|bearer| Trial::new(bearer, window).rate());
    let greatest = rate(MOST_WINDOW)?;
    if greatest == 0.0 {
        return Ok(None);
    }
    // `enough` is a window that suffices, `few` is one that does not.
    let (mut few, mut enough) = (ACKNOWLEDGED - 1, ACKNOWLEDGED);
    while enough < MOST_WINDOW && rate(enough)? < BUSY * greatest {
        (few, enough) = (enough, 2 * enough);
    }
    while enough - few > 1 {
        let middle = u64::midpoint(few, enough);
        if rate(middle)? < BUSY * greatest {
            few = middle;
        } else {
            enough = middle;
        }
    }
    Ok(Some(Bytes::new((MARGIN * (enough * u64::from(FULL)) as f64) as u64)))
}

/// 95 % of the greatest rate to the first mobile. `make` builds the bearer. `None` if it carries
/// nothing.
pub fn rate<E>(make: impl FnOnce() -> Result<Box<dyn Bearer>, E>) -> Result<Option<Bitrate>, E> {
    let bits_per_second = (BUSY * 8.0 * Trial::new(make()?, MOST_WINDOW).rate()) as u64;
    Ok((bits_per_second > 0).then(|| Bitrate::from_bps(bits_per_second)))
}

/// A transfer with a constant window to the first mobile, over a bearer of its own.
struct Trial {
    bearer: Box<dyn Bearer>,
    /// In packets.
    window: u64,
    now: Instant,
    /// Packets in both directions.
    packets: u64,
    dropped: Vec<Dropped>,
    /// Data packets sent, without those that were dropped: these are sent again.
    sent: u64,
    /// Data packets that have arrived.
    arrived: u64,
    /// The value of `arrived` that the sender has received.
    acknowledged: u64,
    /// Acknowledgements in flight by identifier: `arrived` when it was sent.
    acknowledgements: BTreeMap<u64, u64>,
    arrivals: Vec<Instant>,
}

impl Trial {
    const fn new(bearer: Box<dyn Bearer>, window: u64) -> Self {
        Self {
            bearer,
            window,
            now: Instant::ZERO,
            packets: 0,
            dropped: Vec::new(),
            sent: 0,
            arrived: 0,
            acknowledged: 0,
            acknowledgements: BTreeMap::new(),
            arrivals: Vec::new(),
        }
    }

    /// The greatest rate, in bytes per second.
    fn rate(mut self) -> f64 {
        let end = Instant::ZERO + MEASURED;
        while self.arrivals.len() < MOST_PACKETS {
            // A queue is full from the first drop to the next arrival: also one that takes a packet
            // and drops another, which a discipline does.
            while self.sent < self.acknowledged + self.window && self.dropped.is_empty() {
                if !self.send(Direction::Down, FULL) {
                    break;
                }
                self.sent += 1;
            }
            self.forget_dropped();
            let Some(next) = self.bearer.next_wakeup().filter(|next| *next <= end) else { break };
            self.now = next.max(self.now);
            self.receive();
        }
        greatest_rate(&self.arrivals)
    }

    /// Sends a packet; false if it was dropped at once.
    fn send(&mut self, direction: Direction, size: u32) -> bool {
        let packet = Packet {
            id: self.packets,
            size,
            flow: FlowId(0),
            user: UserId::new(0),
            ecn: Ecn::NotEct,
            slot: Slot::default(),
        };
        self.packets += 1;
        let mut cx = Context::new(None, &mut self.dropped, ComponentId::default());
        let is_queued = self.bearer.push(self.now, direction, packet, &mut cx) == Admission::Queued;
        if !is_queued {
            self.dropped.retain(|dropped| dropped.packet.id != packet.id);
        }
        is_queued
    }

    /// Takes what has left the bearer.
    fn receive(&mut self) {
        loop {
            let mut cx = Context::new(None, &mut self.dropped, ComponentId::default());
            let Some((direction, departure)) = self.bearer.pop(self.now, &mut cx) else { break };
            match direction {
                Direction::Down => self.arrive(),
                Direction::Up => {
                    if let Some(arrived) = self.acknowledgements.remove(&departure.packet.id) {
                        self.acknowledged = self.acknowledged.max(arrived);
                    }
                }
            }
        }
        self.forget_dropped();
    }

    /// A data packet arrives; the receiver acknowledges every second one.
    fn arrive(&mut self) {
        self.arrivals.push(self.now);
        self.arrived += 1;
        if self.arrived.is_multiple_of(ACKNOWLEDGED) {
            let id = self.packets;
            if self.send(Direction::Up, ACKNOWLEDGEMENT) {
                self.acknowledgements.insert(id, self.arrived);
            }
        }
    }

    /// Takes back what was dropped inside.
    fn forget_dropped(&mut self) {
        for Dropped { packet, .. } in self.dropped.drain(..) {
            if packet.size == FULL {
                self.sent -= 1;
            } else {
                self.acknowledgements.remove(&packet.id);
            }
        }
    }
}

/// The greatest rate over [`WINDOW`], or over all if the arrivals take less time, in bytes per
/// second.
fn greatest_rate(arrivals: &[Instant]) -> f64 {
    let mut greatest = 0.0_f64;
    let mut first = 0;
    for (last, arrival) in arrivals.iter().enumerate() {
        while arrival.since(arrivals[first]) > WINDOW {
            first += 1;
        }
        let elapsed = arrival.since(arrivals[first]);
        let is_whole = elapsed.saturating_mul(2) > WINDOW || last + 1 == arrivals.len();
        if is_whole && !elapsed.is_zero() {
            // Without the first: it began before.
            greatest = greatest.max((last - first) as f64 * f64::from(FULL) / elapsed.as_secs_f64());
        }
    }
    greatest
}
