//! Propagation delay: constant, or drawn for each packet from a [`Distribution`].

pub mod distribution;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;

use airpath_core::{Instant, Packet, RandomStream, Seed, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Departure;
use distribution::Table;
pub use distribution::{Distribution, DistributionError};

/// The propagation delay of a link. Written as a time, `"110 ms"`, or as a table:
///
/// ```toml
/// delay = { distribution = "normal", mean = "50 ms", deviation = "5 ms", reorder = false }
/// ```
///
/// [`Distribution`] has the distributions and their keys. The draws are independent. A random delay
/// keeps the order of the packets unless `reorder` is set: a packet that would overtake another
/// arrives together with it. Where packets follow each other closely, the mean delay is therefore
/// somewhat larger than the distribution's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// The delay of each packet.
    pub distribution: Distribution,
    /// Whether packets may overtake each other.
    pub reorder: bool,
}

impl Delay {
    /// The delay, if it is constant.
    pub const fn fixed(&self) -> Option<Span> {
        match self.distribution {
            Distribution::Fixed(delay) => Some(delay),
            _ => None,
        }
    }
}

impl Default for Delay {
    /// No delay.
    fn default() -> Self {
        Span::ZERO.into()
    }
}

impl From<Span> for Delay {
    fn from(delay: Span) -> Self {
        Distribution::Fixed(delay).into()
    }
}

impl From<Distribution> for Delay {
    /// A delay that keeps the order of packets.
    fn from(distribution: Distribution) -> Self {
        Self { distribution, reorder: false }
    }
}

impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match Table::new(*self) {
            Ok(table) => table.serialize(serializer),
            Err(delay) => delay.serialize(serializer),
        }
    }
}

/// The forms of a [`Delay`] in a scenario.
const FORMS: &str = "a length of time such as \"110 ms\", or a table with a `distribution`";

impl JsonSchema for Delay {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Delay".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": ["string", "object"], "title": FORMS })
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeOrTable;
        impl<'de> Visitor<'de> for TimeOrTable {
            type Value = Delay;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(FORMS)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Delay, E> {
                text.parse::<Span>().map(Delay::from).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Delay, A::Error> {
                Table::deserialize(MapAccessDeserializer::new(map))?.try_into().map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(TimeOrTable)
    }
}

/// The packets in flight, each with its arrival time.
///
/// The fields of the common kind, a constant delay that keeps the order, are adjacent; the others
/// are boxed, so that more delay lines fit into the cache.
#[derive(Clone, Debug)]
pub struct DelayLine {
    /// Packets in the order of their arrivals, which is that of their entries.
    in_order: VecDeque<Departure>,
    /// The delay, if it is constant.
    fixed: Span,
    is_fixed: bool,
    /// Whether packets may overtake each other. They are then in the heap of [`Rest`] instead.
    reorder: bool,
    rest: Box<Rest>,
}

#[derive(Clone, Debug)]
struct Rest {
    delay: Delay,
    stream: RandomStream,
    /// Packets that may overtake each other, the next arrival on top.
    any: BinaryHeap<Reverse<Arrival>>,
    /// Number of packets that ever entered the heap: ties are first in, first out.
    entered: u64,
}

impl DelayLine {
    /// A delay line that draws from the stream `path` of `seed`.
    pub fn new(delay: Delay, seed: Seed, path: &str) -> Self {
        let rest = Rest { delay, stream: seed.stream(path), any: BinaryHeap::new(), entered: 0 };
        let (fixed, is_fixed) = (delay.fixed().unwrap_or_default(), delay.fixed().is_some());
        Self { in_order: VecDeque::new(), fixed, is_fixed, reorder: delay.reorder, rest: Box::new(rest) }
    }

    /// Adds `packet`, sent at `sent`; calls are in the order of that time. Returns its arrival
    /// time.
    #[inline]
    pub fn enter(&mut self, sent: Instant, packet: Packet) -> Instant {
        let due = sent + self.draw();
        if self.reorder {
            let Rest { any, entered, .. } = &mut *self.rest;
            any.push(Reverse(Arrival { departure: Departure { due, packet }, entry: *entered }));
            *entered += 1;
            return due;
        }
        // Packets that have left do not matter: they arrived no later than `sent`.
        let due = self.in_order.back().map_or(due, |ahead| due.max(ahead.due));
        self.in_order.push_back(Departure { due, packet });
        due
    }

    /// Draws the delay of a lost packet, so that the draws of others do not depend on losses.
    #[inline]
    pub fn skip(&mut self) {
        self.draw();
    }

    #[inline]
    fn draw(&mut self) -> Span {
        if self.is_fixed { self.fixed } else { self.rest.delay.distribution.draw(&mut self.rest.stream) }
    }

    /// Sets the delay of packets that enter from now on; the stream of draws continues.
    pub fn set(&mut self, delay: Delay) {
        let Rest { any, entered, .. } = &mut *self.rest;
        match (self.reorder, delay.reorder) {
            (false, true) => {
                let arrivals = (*entered..).zip(self.in_order.drain(..));
                any.extend(arrivals.map(|(entry, departure)| Reverse(Arrival { departure, entry })));
                *entered += any.len() as u64;
            }
            (true, false) => {
                // The heap's maximum is the first arrival.
                let arrivals = std::mem::take(any).into_sorted_vec().into_iter().rev();
                self.in_order.extend(arrivals.map(|Reverse(arrival)| arrival.departure));
            }
            _ => {}
        }
        self.rest.delay = delay;
        (self.fixed, self.is_fixed) = (delay.fixed().unwrap_or_default(), delay.fixed().is_some());
        self.reorder = delay.reorder;
    }

    /// Removes the `packets` that entered last, and returns them in their order.
    pub fn take_last(&mut self, packets: usize) -> Vec<Packet> {
        if !self.reorder {
            let kept = self.in_order.len() - packets;
            return self.in_order.drain(kept..).map(|departure| departure.packet).collect();
        }
        let mut arrivals = std::mem::take(&mut self.rest.any).into_vec();
        arrivals.sort_unstable_by_key(|Reverse(arrival)| arrival.entry);
        let last = arrivals.split_off(arrivals.len() - packets);
        self.rest.any = arrivals.into();
        last.into_iter().map(|Reverse(arrival)| arrival.departure.packet).collect()
    }

    /// Arrival time of the next packet.
    #[inline]
    pub fn next_due(&self) -> Option<Instant> {
        if self.reorder {
            return self.rest.any.peek().map(|Reverse(arrival)| arrival.departure.due);
        }
        self.in_order.front().map(|departure| departure.due)
    }

    /// Removes the next packet that arrives.
    #[inline]
    pub fn leave(&mut self) -> Option<Departure> {
        if self.reorder {
            return self.rest.any.pop().map(|Reverse(arrival)| arrival.departure);
        }
        self.in_order.pop_front()
    }
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    departure: Departure,
    entry: u64,
}

impl Arrival {
    const fn key(&self) -> (Instant, u64) {
        (self.departure.due, self.entry)
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
