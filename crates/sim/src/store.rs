//! What packets carry, kept here while links carry their handles.

use airpath_core::{Instant, SegmentInfo, Slot};
use airpath_tcp::Segment;

/// What a packet carries above IP.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A TCP segment.
    Segment(Segment),
    /// An ICMP echo request or reply.
    Echo {
        /// Number of the request.
        sequence: u32,
        /// When the request was sent.
        sent: Instant,
        /// Whether this is the reply.
        reply: bool,
    },
    /// A UDP datagram.
    Datagram {
        /// Its number.
        sequence: u32,
        /// When it was sent.
        sent: Instant,
    },
    /// What entered the network once and is replayed: nothing of it is known but its TCP header, if it has one.
    Recorded(Option<SegmentInfo>),
}

/// The bodies of all packets under way; places are used again.
#[derive(Debug, Default)]
pub struct Store {
    bodies: Vec<Body>,
    free: Vec<Slot>,
}

impl Store {
    /// Keeps `body`.
    #[inline]
    pub fn put(&mut self, body: Body) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                self.bodies[slot.0 as usize] = body;
                slot
            }
            None => {
                self.bodies.push(body);
                Slot(u32::try_from(self.bodies.len() - 1).expect("fewer than 2³² packets are under way"))
            }
        }
    }

    /// What is at `slot`.
    #[inline]
    pub fn get(&mut self, slot: Slot) -> &mut Body {
        &mut self.bodies[slot.0 as usize]
    }

    /// Frees the place at `slot`: nothing is read there any more.
    #[inline]
    pub fn free(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    /// Bodies that are kept: the packets under way.
    pub fn kept(&self) -> usize {
        self.bodies.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut store = Store::default();
        let body = |sequence| Body::Datagram { sequence, sent: Instant::ZERO };
        let (a, b) = (store.put(body(0)), store.put(body(1)));
        assert!(matches!(store.get(a), Body::Datagram { sequence: 0, .. }));
        store.free(a);
        assert_eq!(store.put(body(2)), a);
        assert!(matches!(store.get(b), Body::Datagram { sequence: 1, .. }));
        store.free(b);
        assert_eq!(store.kept(), 1);
    }
}
