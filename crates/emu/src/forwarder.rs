//! Forwards packets: from one end into the path, and out at the other end when they are due.

use std::collections::BTreeMap;
use std::io;

use airpath_core::{Direction, Dropped, Ecn, FlowId, Instant, Packet, SegmentInfo, SegmentLookup, Slot, Span, UserId};
use airpath_link::{BearerCommand, CommandError, Departure};
use airpath_path::{Contents, PacketStore, Path, PolledPath};

use crate::clock::Clock;
use crate::lateness::Lateness;
use crate::offload::{Frame, MAX_HEADER, Refused, VirtioHeader};
use crate::packet_buffer::{BufferedPacket, PacketBuffer};
use crate::port::{MAX_READ, Port, Sent};
use crate::taps::{Taps, View};

/// Largest number of consecutive reads at one end before due packets are delivered.
const READS_IN_A_ROW: usize = 64;

/// Forwards packets between two ports.
pub struct Forwarder<'a> {
    /// The clock of the link.
    pub clock: Clock,
    /// How late packets left.
    pub lateness: Lateness,
    /// Transit time of the last packet, in the order of [`Direction::BOTH`].
    pub transit: [Span; 2],
    /// Packets that the link did not carry.
    pub dropped: DropCounters,
    /// All packets due by then have been delivered.
    pub delivered_until: Instant,
    path: PolledPath<'a>,
    inside: Inside,
    server: &'a Port,
    mobile: &'a Port,
    buffer: Box<[u8; MAX_READ]>,
    leaving: Leaving,
    packets: u64,
}

/// The packets in the network, and their observers.
#[derive(Debug)]
struct Inside {
    buffer: PacketBuffer,
    taps: Taps,
}

/// Packets that were dropped outside of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounters {
    /// At the entry, by cause, in the order of [`Refused::ALL`].
    pub at_entry: [u64; Refused::ALL.len()],
    /// At the exit, because the kernel rejected them.
    pub at_exit: u64,
}

impl DropCounters {
    /// Counts by name of the cause; causes that did not occur are left out.
    pub fn by_cause(&self) -> BTreeMap<&'static str, u64> {
        let at_entry = Refused::ALL.iter().map(|cause| cause.name()).zip(self.at_entry);
        at_entry.chain([("not-taken", self.at_exit)]).filter(|(_, count)| *count > 0).collect()
    }
}

/// Consecutive packets of one super-segment that leave together.
#[derive(Debug, Default)]
struct Leaving {
    head: Option<Head>,
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    direction: Direction,
    super_segment: u32,
    first: u32,
    ecn: Ecn,
}

impl<'a> Forwarder<'a> {
    /// Forwards between the port at the server and the port at the mobile, over `path`.
    pub fn new(path: PolledPath<'a>, clock: Clock, taps: Taps, server: &'a Port, mobile: &'a Port) -> Self {
        Self {
            clock,
            lateness: Lateness::new(),
            transit: [Span::ZERO; 2],
            dropped: DropCounters::default(),
            delivered_until: Instant::ZERO,
            path,
            inside: Inside { buffer: PacketBuffer::default(), taps },
            server,
            mobile,
            buffer: Box::new([0; MAX_READ]),
            leaving: Leaving::default(),
            packets: 0,
        }
    }

    /// Packets that have entered.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// The path.
    pub const fn path(&self) -> &Path<'a> {
        self.path.path()
    }

    /// The packet observers.
    pub const fn taps(&self) -> &Taps {
        &self.inside.taps
    }

    /// The packet observers, when the link has ended.
    pub fn into_taps(self) -> Taps {
        self.inside.taps
    }

    /// Changes the conditions of a hop at `now`.
    ///
    /// # Errors
    /// If the hop cannot carry out the command; then nothing has changed.
    pub fn command(&mut self, now: Instant, hop: usize, command: &BearerCommand) -> Result<(), CommandError> {
        self.path.command(now, hop, command, &mut self.inside)
    }

    /// Reads packets of `direction` at the end where they enter. Returns whether there were any.
    ///
    /// # Errors
    /// Those of the port.
    pub fn read(&mut self, direction: Direction) -> io::Result<bool> {
        let port = match direction {
            Direction::Down => self.server,
            Direction::Up => self.mobile,
        };
        for reads in 0..READS_IN_A_ROW {
            let Some(received) = port.receive(&mut self.buffer[..])? else { return Ok(reads > 0) };
            let now = self.clock.now();
            let bytes = &self.buffer[received.packet];
            let virtio = VirtioHeader::from_bytes(&received.virtio);
            match Frame::inspect(&virtio, bytes) {
                Ok(frame) => {
                    let (path, packets) = (&mut self.path, &mut self.packets);
                    self.inside.enter(now, direction, frame, bytes, path, packets);
                }
                Err(cause) => self.dropped.at_entry[cause as usize] += 1,
            }
        }
        Ok(true)
    }

    /// Delivers all packets that are due. Returns whether there were any, in the order of
    /// [`Direction::BOTH`].
    ///
    /// # Errors
    /// Those of the ports.
    pub fn deliver(&mut self) -> io::Result<[bool; 2]> {
        let mut any = [false; 2];
        let mut now = self.clock.now();
        while let Some((direction, Departure { due, packet })) = self.path.pop(now, &mut self.inside) {
            any[direction as usize] = true;
            now = self.clock.now();
            self.lateness.record(now.since(due));
            let BufferedPacket { super_segment, segment, entered, .. } = self.inside.buffer.packet(packet.slot);
            self.transit[direction as usize] = due.since(entered);
            let leaving = &mut self.leaving;
            let joins = leaving.head.is_some_and(|head| {
                (head.direction, head.super_segment, head.ecn) == (direction, super_segment, packet.ecn)
                    && head.first + leaving.slots.len() as u32 == segment
            });
            if !joins {
                self.send_leaving()?;
                self.leaving.head = Some(Head { direction, super_segment, first: segment, ecn: packet.ecn });
            }
            self.leaving.slots.push(packet.slot);
            let Inside { buffer, taps } = &mut self.inside;
            let read = buffer.super_segment(super_segment);
            let view = View { frame: &read.frame, bytes: &read.bytes, segment };
            let progress = taps.leaves(due, now, direction, &packet, view);
            progress.into_iter().for_each(|event| self.path.report(due, event));
        }
        self.delivered_until = now;
        self.send_leaving()?;
        Ok(any)
    }

    /// Sends the packets that leave together.
    fn send_leaving(&mut self) -> io::Result<()> {
        let Some(Head { direction, super_segment, first, ecn }) = self.leaving.head.take() else { return Ok(()) };
        let count = self.leaving.slots.len() as u32;
        let read = self.inside.buffer.super_segment(super_segment);
        let mut buffer = [0; MAX_HEADER];
        let written = read.frame.write_segments(&read.bytes, first..=first + (count - 1), ecn, &mut buffer);
        let port = match direction {
            Direction::Down => self.mobile,
            Direction::Up => self.server,
        };
        let payload = &read.bytes[written.payload];
        if port.send(&written.header.to_bytes(), written.bytes, payload)? == Sent::Refused {
            self.dropped.at_exit += u64::from(count);
        }
        for slot in self.leaving.slots.drain(..) {
            self.inside.buffer.release(slot);
        }
        Ok(())
    }

    /// When to call [`Self::deliver`] next if no packet enters; `None` if nothing is in the
    /// network.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.path.next_wakeup()
    }

    /// The ports at the server and at the mobile.
    pub const fn ports(&self) -> (&'a Port, &'a Port) {
        (self.server, self.mobile)
    }
}

impl Inside {
    /// The packets of a super-segment enter the path.
    fn enter(
        &mut self,
        now: Instant,
        direction: Direction,
        frame: Frame,
        bytes: &[u8],
        path: &mut PolledPath<'_>,
        packets: &mut u64,
    ) {
        let super_segment = self.buffer.insert(frame, bytes);
        for segment in 0..frame.segments() {
            let slot =
                self.buffer.add(BufferedPacket { super_segment, segment, direction, entered: now, header: None });
            let mut packet = Packet {
                id: *packets,
                size: frame.segment_bytes(segment),
                flow: FlowId(0),
                user: UserId(0),
                ecn: frame.ecn(),
                slot,
            };
            *packets += 1;
            let header = self.taps.enters(now, direction, &mut packet, View { frame: &frame, bytes, segment });
            self.buffer.set_header(slot, header);
            path.push(now, direction, packet, self);
        }
    }
}

impl SegmentLookup for Inside {
    fn segment(&self, slot: Slot) -> Option<SegmentInfo> {
        self.buffer.segment(slot)
    }
}

impl PacketStore for Inside {
    fn take_dropped(&mut self, dropped: &Dropped) {
        let slot = dropped.packet.slot;
        self.taps.is_lost(self.buffer.packet(slot).direction, &dropped.packet);
        self.buffer.release(slot);
    }

    fn take_absorbed(&mut self, packet: &Packet) {
        self.buffer.release(packet.slot);
    }

    fn create(&mut self, now: Instant, direction: Direction, contents: Contents<'_>) -> Option<Slot> {
        match contents {
            Contents::CopyOf(slot) => Some(self.buffer.copy(slot)),
            Contents::Bytes(bytes) => {
                let frame = Frame::inspect(&VirtioHeader::default(), bytes).ok()?;
                let super_segment = self.buffer.insert(frame, bytes);
                let packet = BufferedPacket { super_segment, segment: 0, direction, entered: now, header: None };
                Some(self.buffer.add(packet))
            }
            _ => None,
        }
    }
}
