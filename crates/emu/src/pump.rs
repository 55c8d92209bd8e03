//! The loop that carries packets: from one end into the bearers, and out at the other end when they are due.

use std::collections::BTreeMap;
use std::io;

use airpath_core::{Direction, Dropped, Ecn, FlowId, Headers, Instant, Packet, Slot, Span, UserId};
use airpath_link::Departure;

use crate::clock::Clock;
use crate::lateness::Lateness;
use crate::offload::{Frame, MAX_HEADER, Refused, VirtioHeader};
use crate::port::{MAX_READ, Port, Sent};
use crate::store::{Part, Store};
use crate::watch::Watch;
use crate::way::Way;

/// So many reads of one end may follow each other before what is due is delivered.
const READS_IN_A_ROW: usize = 64;

/// Carries packets between two ports.
pub struct Pump<'a> {
    /// What lies between them.
    pub way: Way<'a>,
    /// The time.
    pub clock: Clock,
    /// How late packets left.
    pub lateness: Lateness,
    /// How long the last packet was on its way, in the order of [`Direction::BOTH`].
    pub transit: [Span; 2],
    /// What did not get onto the way, or not off it.
    pub refused: Refusals,
    /// Who looks at the packets.
    pub watch: Watch,
    /// All that was due by then has been handed over.
    pub carried_until: Instant,
    server: &'a Port,
    mobile: &'a Port,
    store: Store,
    buffer: Box<[u8; MAX_READ]>,
    leaving: Leaving,
    packets: u64,
}

/// Packets that the link itself never carried, or could not hand over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// At the entry, by cause, in the order of [`Refused::ALL`].
    pub at_entry: [u64; Refused::ALL.len()],
    /// At the exit: the kernel did not take it.
    pub at_exit: u64,
}

impl Refusals {
    /// Their names and numbers; causes that did not occur are left out.
    pub fn by_cause(&self) -> BTreeMap<&'static str, u64> {
        let at_entry = Refused::ALL.iter().map(|cause| cause.name()).zip(self.at_entry);
        at_entry.chain([("not-taken", self.at_exit)]).filter(|(_, count)| *count > 0).collect()
    }
}

/// Consecutive packets of one large segment that leave together.
#[derive(Debug, Default)]
struct Leaving {
    head: Option<Head>,
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    direction: Direction,
    whole: u32,
    first: u32,
    ecn: Ecn,
}

impl<'a> Pump<'a> {
    /// A pump between the port at the server and the one at the mobile.
    pub fn new(way: Way<'a>, clock: Clock, watch: Watch, server: &'a Port, mobile: &'a Port) -> Self {
        Self {
            way,
            clock,
            lateness: Lateness::new(),
            transit: [Span::ZERO; 2],
            refused: Refusals::default(),
            watch,
            carried_until: Instant::ZERO,
            server,
            mobile,
            store: Store::default(),
            buffer: Box::new([0; MAX_READ]),
            leaving: Leaving::default(),
            packets: 0,
        }
    }

    /// Packets that came in so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Takes in what has come at the end where packets of `direction` enter. Whether there was anything.
    ///
    /// # Errors
    /// Those of the port.
    pub fn take_in(&mut self, direction: Direction) -> io::Result<bool> {
        let port = match direction {
            Direction::Down => self.server,
            Direction::Up => self.mobile,
        };
        for reads in 0..READS_IN_A_ROW {
            let Some(received) = port.receive(&mut self.buffer[..])? else { return Ok(reads > 0) };
            let now = self.clock.now();
            let bytes = &self.buffer[received.packet];
            let virtio = VirtioHeader::from_bytes(&received.virtio);
            let frame = match Frame::inspect(&virtio, bytes) {
                Ok(frame) => frame,
                Err(refused) => {
                    self.refused.at_entry[refused as usize] += 1;
                    continue;
                }
            };
            let (way, watch, packets) = (&mut self.way, &mut self.watch, &mut self.packets);
            self.store.put(now, direction, frame, bytes, |segment, slot| {
                let mut packet = Packet {
                    id: *packets,
                    size: frame.segment_bytes(segment),
                    flow: FlowId(0),
                    user: UserId(0),
                    ecn: frame.ecn(),
                    headers: Headers::Other,
                    slot,
                };
                *packets += 1;
                let headers = watch.enters(now, direction, &mut packet, &frame, bytes, segment);
                way.push(now, direction, packet, headers);
            });
            self.forget_lost();
        }
        Ok(true)
    }

    /// Hands over all that is due. Whether there was anything, in the order of [`Direction::BOTH`].
    ///
    /// # Errors
    /// Those of the ports.
    pub fn hand_over(&mut self) -> io::Result<[bool; 2]> {
        let mut any = [false; 2];
        let mut now = self.clock.now();
        while let Some((direction, Departure { due, packet })) = self.way.pop(now) {
            any[direction as usize] = true;
            now = self.clock.now();
            self.lateness.record(now.since(due));
            let Part { whole, segment, entered, .. } = self.store.part(packet.slot);
            self.transit[direction as usize] = due.since(entered);
            let leaving = &mut self.leaving;
            let joins = leaving.head.is_some_and(|head| {
                (head.direction, head.whole, head.ecn) == (direction, whole, packet.ecn)
                    && head.first + leaving.slots.len() as u32 == segment
            });
            if !joins {
                self.send_leaving()?;
                self.leaving.head = Some(Head { direction, whole, first: segment, ecn: packet.ecn });
            }
            self.leaving.slots.push(packet.slot);
            let whole = self.store.whole(whole);
            let news = self.watch.leaves(due, now, direction, &packet, &whole.frame, &whole.bytes, segment);
            news.into_iter().for_each(|news| self.way.report(due, news));
        }
        self.carried_until = now;
        self.send_leaving()?;
        self.forget_lost();
        Ok(any)
    }

    /// Sends the packets that have been put together.
    fn send_leaving(&mut self) -> io::Result<()> {
        let Some(Head { direction, whole, first, ecn }) = self.leaving.head.take() else { return Ok(()) };
        let count = self.leaving.slots.len() as u32;
        let whole = self.store.whole(whole);
        let mut buffer = [0; MAX_HEADER];
        let written = whole.frame.write_segments(&whole.bytes, first..=first + (count - 1), ecn, &mut buffer);
        let port = match direction {
            Direction::Down => self.mobile,
            Direction::Up => self.server,
        };
        let payload = &whole.bytes[written.payload];
        if port.send(&written.header.to_bytes(), written.bytes, payload)? == Sent::Refused {
            self.refused.at_exit += u64::from(count);
        }
        for slot in self.leaving.slots.drain(..) {
            self.store.release(slot);
        }
        Ok(())
    }

    fn forget_lost(&mut self) {
        while let Some(Dropped { packet, .. }) = self.way.pop_lost() {
            self.watch.is_lost(self.store.part(packet.slot).direction, &packet);
            self.store.release(packet.slot);
        }
    }

    /// When there is something to do, if nothing comes in; `None` if there is not.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.way.next_wakeup()
    }

    /// The ports at the server and at the mobile.
    pub fn ports(&self) -> (&'a Port, &'a Port) {
        (self.server, self.mobile)
    }

    /// Packets that are on their way.
    pub fn under_way(&self) -> usize {
        self.store.kept()
    }
}
