//! Numbers for the TCP connections of a live proxy. They are freed when the proxy has ended a
//! connection, so there may be any number of connections in the course of time.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use airpath_core::{Direction, FlowId};
use airpath_wire::ip::Protocol;
use airpath_wire::segment::{Endpoint, Route};
use airpath_wire::tcp::Flags;

use super::headers::{Key, transport};
use crate::offload::Frame;

/// The flow of packets without a known connection.
const NO_CONNECTION: FlowId = FlowId(u32::MAX);

/// Where the flags are in a TCP header.
const FLAGS: usize = 13;

/// The numbers of connections.
#[derive(Debug, Default)]
pub struct ConnectionNumbers {
    /// The first number; lower ones belong to observed flows.
    first: u32,
    keys: Vec<Option<Key>>,
    free: Vec<u32>,
    flows: BTreeMap<Key, FlowId>,
    /// Whether packets without a known connection are separated by flow.
    pub separates_others: bool,
}

/// The flow of packets without a known connection, above the numbers of connections. Flows with the
/// same hash are one (RFC 8290 §4.1.1).
fn hashed(key: &Key) -> FlowId {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    FlowId(1 << 31 | (hasher.finish() >> 33) as u32)
}

impl ConnectionNumbers {
    /// Numbers from `first` on.
    pub fn new(first: u32) -> Self {
        Self { first, ..Self::default() }
    }

    /// The connection of a packet. A SYN without ACK begins one.
    pub fn flow(&mut self, direction: Direction, frame: &Frame, bytes: &[u8]) -> FlowId {
        let is_tcp = frame.protocol() == Protocol::TCP;
        if !is_tcp && !self.separates_others {
            return NO_CONNECTION;
        }
        let key = Key::of(direction, frame, bytes);
        if !is_tcp {
            return hashed(&key);
        }
        if let Some(flow) = self.flows.get(&key) {
            return *flow;
        }
        let flags = transport(frame, bytes).and_then(|header| header.get(FLAGS)).map(|flags| Flags(*flags));
        let opens = flags.is_some_and(|flags| flags.contains(Flags::SYN) && !flags.contains(Flags::ACK));
        if !opens || key.tcp_ends().is_none() {
            return if self.separates_others { hashed(&key) } else { NO_CONNECTION };
        }
        self.begin(key)
    }

    /// The number of a connection that another process has begun; `route` is that of the mobile's
    /// packets.
    pub fn adopt(&mut self, route: &Route) -> FlowId {
        self.begin(Key::of_segment(Direction::Up, route.source, route.destination))
    }

    /// Begins a connection between these ends; `None` if that has begun already.
    pub fn begin_between(&mut self, mobile: Endpoint, server: Endpoint) -> Option<FlowId> {
        let key = Key::of_segment(Direction::Up, mobile, server);
        (!self.flows.contains_key(&key)).then(|| self.begin(key))
    }

    fn begin(&mut self, key: Key) -> FlowId {
        let index = match self.free.pop() {
            Some(index) => {
                self.keys[index as usize] = Some(key);
                index
            }
            None => {
                self.keys.push(Some(key));
                self.keys.len() as u32 - 1
            }
        };
        let flow = FlowId(self.first + index);
        self.flows.insert(key, flow);
        flow
    }

    /// The connection of a segment of this direction.
    pub fn flow_of_segment(&self, direction: Direction, source: Endpoint, destination: Endpoint) -> Option<FlowId> {
        self.flows.get(&Key::of_segment(direction, source, destination)).copied()
    }

    /// Source and destination of packets of `direction` of a connection.
    pub fn route(&self, flow: FlowId, direction: Direction) -> Option<Route> {
        let index = flow.0.checked_sub(self.first)?;
        self.keys.get(index as usize)?.as_ref()?.route(direction)
    }

    /// Frees the number of a connection.
    pub fn end(&mut self, flow: FlowId) {
        let Some(index) = flow.0.checked_sub(self.first) else { return };
        if let Some(key) = self.keys.get_mut(index as usize).and_then(Option::take) {
            self.flows.remove(&key);
            self.free.push(index);
        }
    }
}
