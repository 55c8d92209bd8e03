//! Forwards packets: from one end into the path, and out at the other end when they are due.

use std::collections::BTreeMap;
use std::io;

use airpath_core::{Direction, FlowId, Instant, Packet, Span, UserId};
use airpath_link::{BearerCommand, CommandError, Departure};
use airpath_path::{Hop, Path, PolledPath};
use airpath_proxy::Proxy;
use airpath_wire::segment::Route;
use serde::{Deserialize, Serialize};

use crate::acknowledgements::{self, HeldAcknowledgements};
use crate::clock::Clock;
use crate::join;
use crate::lateness::Lateness;
use crate::live::router::{Router, Verdict};
use crate::observe::Passage;
use crate::observed_packets::ObservedPackets;
use crate::offload::{EntryDropCause, Frame, MAX_HEADER, VirtioHeader};
use crate::packet_buffer::{BufferedPacket, PacketBuffer};
use crate::port::{MAX_READ, Port, Sent};
use crate::run::{Run, SegmentKey};
use crate::second_interface::SecondInterface;
use crate::taps::{Captures, Taps, View};
use crate::writer::{LEAST_PAYLOAD, MOST_UNWRITTEN, WriteRequest, Writer, WrittenPayload};

/// Largest number of consecutive reads at one end before due packets are delivered.
const READS_IN_A_ROW: usize = 64;

/// The same in bytes: what is read is still in the cache when it is written, and there is more than
/// one super-segment of each of several connections, whose acknowledgements leave as one.
const BYTES_IN_A_ROW: usize = 512 << 10;

/// The users of the path: the interfaces of the mobile.
const FIRST: UserId = UserId::new(0);
const SECOND: UserId = UserId::new(1);

/// What a run writes while it goes on.
const OUTPUTS: [&str; 2] = ["event log", "captures"];

/// Forwards packets between two ports.
pub struct Forwarder<'a> {
    /// The clock of the link.
    pub clock: Clock,
    /// How late packets left.
    pub lateness: Lateness,
    /// Transit time of the last packet, in the order of [`Direction::BOTH`].
    pub transit: [Span; 2],
    /// Packets dropped before the entry of the path or after its exit.
    pub dropped: DropCounters,
    /// All packets due by then have been delivered.
    pub delivered_until: Instant,
    path: PolledPath<'a>,
    observed: ObservedPackets,
    server: &'a Port,
    mobile: &'a Port,
    /// Of a mobile with two bearers; user 1 of the path.
    second: Option<&'a SecondInterface>,
    /// Of [`MAX_READ`] bytes.
    read_buffer: Vec<u8>,
    /// Packets that leave with one write, by direction.
    runs: [Run; 2],
    /// Acknowledgements that leave after them, by direction.
    acknowledgements: [HeldAcknowledgements; 2],
    /// Writes large packets, if this thread does not.
    writer: Option<Writer>,
    /// What the last round of reading has left.
    backlog: Backlog,
    /// Acknowledgements that were not sent because a later one left at once with them.
    pub merged_acknowledgements: u64,
    /// The next packet when an output failed, in the order of [`OUTPUTS`].
    failed_outputs: [Option<u64>; 2],
    /// Identifier of the next packet. It equals the number of packets that have entered.
    next_id: u64,
    /// Packets that have entered, in the order of [`Direction::BOTH`].
    pub entered: [u64; 2],
}

/// What a round of reading has left at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backlog {
    /// Nothing.
    None,
    /// Packets, after many small ones.
    Small,
    /// Packets, after many bytes.
    Large,
}

/// Packets dropped before the entry of the path or after its exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropCounters {
    /// At the entry, by cause, in the order of [`EntryDropCause::ALL`].
    pub at_entry: [u64; EntryDropCause::ALL.len()],
    /// At the exit, because the kernel rejected them.
    pub at_exit: u64,
}

impl DropCounters {
    /// Counts by name of the cause; causes that did not occur are left out.
    pub fn by_cause(&self) -> BTreeMap<&'static str, u64> {
        let at_entry = EntryDropCause::ALL.iter().map(|cause| cause.name()).zip(self.at_entry);
        at_entry.chain([("not-taken", self.at_exit)]).filter(|(_, count)| *count > 0).collect()
    }
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
            observed: ObservedPackets { packets: PacketBuffer::default(), taps, router: None },
            server,
            mobile,
            second: None,
            read_buffer: vec![0; MAX_READ],
            runs: Default::default(),
            acknowledgements: Default::default(),
            writer: None,
            backlog: Backlog::None,
            merged_acknowledgements: 0,
            failed_outputs: [None; 2],
            next_id: 0,
            entered: [0; 2],
        }
    }

    /// Forwards packets that a router routes through the interface of `port`. Their addresses
    /// determine their directions.
    pub fn of_router(path: PolledPath<'a>, clock: Clock, taps: Taps, port: &'a Port, router: Router) -> Self {
        let mut forwarder = Self::new(path, clock, taps, port, port);
        forwarder.observed.router = Some(router);
        forwarder
    }

    /// Forwards between the server and a second interface of the mobile as well.
    pub const fn set_second(&mut self, second: Option<&'a SecondInterface>) {
        self.second = second;
    }

    /// Lets another thread write large packets while this one does not read as fast as they arrive.
    /// There are none if observers need single packets.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start_writer(&mut self) -> io::Result<()> {
        if self.observed.carries_super_segments() {
            self.writer = Some(Writer::start(self.mobile)?);
        }
        Ok(())
    }

    /// The mobiles of a router.
    pub const fn router(&self) -> Option<&Router> {
        self.observed.router.as_ref()
    }

    /// The mobiles of a router, to change its settings.
    pub const fn router_mut(&mut self) -> Option<&mut Router> {
        self.observed.router.as_mut()
    }

    /// The proxy that is the first hop, brought to `now`.
    pub fn proxy_mut(&mut self, now: Instant) -> Option<&mut Proxy> {
        let Hop::Middlebox(hop) = self.hop_mut(now, 0)? else { return None };
        hop.downcast_mut()
    }

    /// Finds mobiles without connections, whose numbers others may have.
    fn find_idle_mobiles(&mut self, now: Instant) {
        let mut idle = self.router().map(|router| router.silent_mobiles(now)).unwrap_or_default();
        match self.proxy_mut(now) {
            Some(proxy) => idle.retain(|user| proxy.forget(*user)),
            None => idle.clear(),
        }
        if let Some(router) = &mut self.observed.router {
            router.set_idle(now, idle);
        }
    }

    /// Checks whether the event log and the captures can still be written. Returns the name of one
    /// that has failed since the last call.
    pub fn check_outputs(&mut self) -> Option<&'static str> {
        let has_failed =
            [self.path.path().has_failed(), self.taps().captures.as_ref().is_some_and(Captures::has_failed)];
        let outputs = OUTPUTS.into_iter().zip(has_failed).zip(&mut self.failed_outputs);
        let mut failed = outputs.filter(|((_, has_failed), since)| *has_failed && since.is_none());
        let ((name, _), since) = failed.next()?;
        *since = Some(self.next_id);
        Some(name)
    }

    /// Packets that entered since an output has failed and are missing there, by its name.
    pub fn unwritten_packets(&self) -> BTreeMap<&'static str, u64> {
        let counted = |(name, since): (_, Option<u64>)| since.map(|since| (name, self.next_id - since));
        OUTPUTS.into_iter().zip(self.failed_outputs).filter_map(counted).collect()
    }

    /// The hop with this index at `now`, to change its settings.
    pub fn hop_mut(&mut self, now: Instant, index: usize) -> Option<&mut Hop> {
        self.path.hop_mut(now, index, &mut self.observed)
    }

    /// Source and destination of packets of `direction` of a connection.
    pub fn route(&self, flow: FlowId, direction: Direction) -> Option<Route> {
        self.observed.route(flow, direction)
    }

    /// The time of day when the clock was zero, for the hops that need it.
    pub fn set_time_of_day(&mut self, start: Span) {
        for index in 0..self.path().hops().count() {
            if let Some(Hop::Middlebox(hop)) = self.hop_mut(Instant::ZERO, index)
                && let Some(proxy) = hop.downcast_mut::<Proxy>()
            {
                proxy.set_time_of_day(start);
            }
        }
    }

    /// Packets that have entered.
    pub const fn packets(&self) -> u64 {
        self.next_id
    }

    /// Packets on the path.
    #[inline]
    pub fn packets_on_path(&self) -> usize {
        self.observed.packets.len()
    }

    /// The path.
    pub const fn path(&self) -> &Path<'a> {
        self.path.path()
    }

    /// The packet observers.
    pub const fn taps(&self) -> &Taps {
        &self.observed.taps
    }

    /// The packet observers, when the link has ended.
    pub fn into_taps(self) -> Taps {
        self.observed.taps
    }

    /// Changes the conditions of a hop at `now`.
    ///
    /// # Errors
    /// If the hop cannot carry out the command; then nothing has changed.
    pub fn command(&mut self, now: Instant, hop: usize, command: &BearerCommand) -> Result<(), CommandError> {
        self.path.command(now, hop, command, &mut self.observed)
    }

    /// The link ends with what has been delivered.
    pub fn end(&mut self) {
        self.path.end(self.delivered_until);
    }

    /// Reads packets of `direction` at the end where they enter. Returns whether there were any.
    ///
    /// # Errors
    /// Those of the port.
    pub fn read(&mut self, direction: Direction) -> io::Result<bool> {
        if direction == Direction::Down {
            return self.read_port(direction, self.server, FIRST);
        }
        let any = self.read_port(direction, self.mobile, FIRST)?;
        match self.second {
            Some(second) => Ok(self.read_port(direction, &second.port, SECOND)? || any),
            None => Ok(any),
        }
    }

    /// Reads packets from `port`; those from a mobile belong to `user`.
    fn read_port(&mut self, direction: Direction, port: &Port, user: UserId) -> io::Result<bool> {
        let mut bytes_read = 0;
        for reads in 0..READS_IN_A_ROW {
            if bytes_read >= BYTES_IN_A_ROW {
                break;
            }
            let Some(received) = port.receive(&mut self.read_buffer[..])? else {
                self.backlog = Backlog::None;
                return Ok(reads > 0);
            };
            bytes_read += received.length;
            let now = self.clock.now();
            let bytes = &self.read_buffer[..received.length];
            let virtio = VirtioHeader::from_bytes(&received.virtio);
            let frame = match Frame::inspect(&virtio, bytes) {
                Ok(frame) => frame,
                Err(cause) => {
                    self.dropped.at_entry[cause as usize] += 1;
                    continue;
                }
            };
            if self.observed.router.as_ref().is_some_and(|router| router.searches(now)) {
                self.find_idle_mobiles(now);
            }
            let bytes = &self.read_buffer[..received.length];
            let verdict = match &mut self.observed.router {
                Some(router) => router.classify(now, &virtio, &frame, bytes),
                None => match self.second {
                    Some(second) if direction == Direction::Down && second.is_destination(&frame, bytes) => {
                        Verdict::Enter(direction, SECOND)
                    }
                    _ => Verdict::Enter(direction, user),
                },
            };
            match verdict {
                Verdict::Enter(direction, user) => {
                    self.entered[direction as usize] += u64::from(frame.segments());
                    let entering = (frame, &mut self.read_buffer);
                    self.observed.enter(now, (direction, user), entering, &mut self.path, &mut self.next_id);
                }
                Verdict::Bypass(_) => {
                    let bytes = &bytes[..frame.bytes() as usize];
                    if port.send(&received.virtio, bytes, [&[]; 2])? == Sent::Rejected {
                        self.dropped.at_exit += u64::from(frame.segments());
                    }
                }
                Verdict::Refuse(_) => {}
            }
        }
        self.backlog = if bytes_read < BYTES_IN_A_ROW { Backlog::Small } else { Backlog::Large };
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
        while let Some((direction, Departure { due, packet })) = self.path.pop(now, &mut self.observed) {
            any[direction as usize] = true;
            // The next `pop` uses this reading: packets that fell due meanwhile leave as well.
            now = self.clock.now();
            self.lateness.record(now.since(due));
            let buffered = self.observed.packets.packet(packet.slot);
            let BufferedPacket { super_segment, segment, segments, entered, number, .. } = buffered;
            self.transit[direction as usize] = due.since(entered);
            let next =
                SegmentKey { flow: packet.flow, user: packet.user, direction, super_segment, segment, ecn: packet.ecn };
            // What passes unchanged is not joined or merged.
            let is_own = self.observed.router.is_some() && buffered.is_created_segment();
            if self.observed.router.is_none() {
                // The packets of both directions leave in their order.
                self.send_run(direction.opposite())?;
            }
            if is_own && join::is_acknowledgement(self.observed.packets.super_segment(super_segment)) {
                self.hold_acknowledgement(direction, packet)?;
            } else {
                self.settle_acknowledgement(direction, packet)?;
                let run = &mut self.runs[direction as usize];
                let joins = if is_own { run.joins(next, &self.observed.packets) } else { None };
                if joins.is_none() && !run.continues(next) {
                    self.send_run(direction)?;
                    self.runs[direction as usize].first = Some(next);
                }
                let run = &mut self.runs[direction as usize];
                run.slots.push(packet.slot);
                run.segments += joins.unwrap_or(segments);
            }
            let ObservedPackets { packets, taps, .. } = &mut self.observed;
            let super_segment = packets.super_segment(super_segment);
            let view = View { frame: &super_segment.frame, bytes: &super_segment.bytes, segment };
            let passage = Passage { entered, number, due, now };
            let app_event = taps.leaves(passage, direction, &packet, view);
            // The path has the event log.
            app_event.into_iter().for_each(|event| self.path.report(due, event));
        }
        self.delivered_until = now;
        for direction in Direction::BOTH {
            self.send_run(direction)?;
            if self.backlog == Backlog::Small && any.contains(&true) {
                // They may leave with data of the next rounds, which follow at once.
                while let Some(held) = self.acknowledgements[direction as usize].pop_late(now) {
                    self.send_acknowledgement(direction, held)?;
                }
            } else {
                self.send_acknowledgements(direction)?;
            }
        }
        Ok(any)
    }

    /// Holds an acknowledgement until all packets that are due were delivered.
    fn hold_acknowledgement(&mut self, direction: Direction, packet: Packet) -> io::Result<()> {
        self.send_run(direction)?;
        let held = &mut self.acknowledgements[direction as usize];
        if let Some(earlier) = held.replace(packet, &self.observed.packets) {
            self.observed.packets.release(earlier);
            self.merged_acknowledgements += 1;
            return Ok(());
        }
        if held.must_leave_before(packet) {
            self.send_acknowledgements(direction)?;
        }
        self.acknowledgements[direction as usize].push(self.clock.now(), packet);
        Ok(())
    }

    /// Drops the acknowledgement that is held for the connection of `packet`, which leaves now, if
    /// that carries it, or sends it before.
    fn settle_acknowledgement(&mut self, direction: Direction, packet: Packet) -> io::Result<()> {
        let Some(held) = self.acknowledgements[direction as usize].take(packet.flow) else { return Ok(()) };
        let packets = &mut self.observed.packets;
        let [data, acknowledgement] = [packet, held].map(|packet| packets.packet(packet.slot).header);
        if data.zip(acknowledgement).is_some_and(|(data, earlier)| acknowledgements::carries(data, earlier)) {
            packets.release(held.slot);
            self.merged_acknowledgements += 1;
            return Ok(());
        }
        self.send_run(direction)?;
        self.send_acknowledgement(direction, held)
    }

    /// Sends the acknowledgements that were held.
    fn send_acknowledgements(&mut self, direction: Direction) -> io::Result<()> {
        while let Some(held) = self.acknowledgements[direction as usize].pop() {
            self.send_acknowledgement(direction, held)?;
        }
        Ok(())
    }

    /// Sends an acknowledgement by itself.
    fn send_acknowledgement(&mut self, direction: Direction, held: Packet) -> io::Result<()> {
        let Packet { flow, user, ecn, slot, .. } = held;
        let BufferedPacket { super_segment, segment, segments, .. } = self.observed.packets.packet(slot);
        let run = &mut self.runs[direction as usize];
        (run.first, run.segments) = (Some(SegmentKey { flow, user, direction, super_segment, segment, ecn }), segments);
        run.slots.push(slot);
        self.send_run(direction)
    }

    /// Sends the packets of the run of `direction`, and empties it.
    fn send_run(&mut self, direction: Direction) -> io::Result<()> {
        self.take_written(MOST_UNWRITTEN)?;
        let run = &mut self.runs[direction as usize];
        let Some(SegmentKey { flow, user, super_segment: index, segment: first, ecn, .. }) = run.first.take() else {
            return Ok(());
        };
        let count = std::mem::take(&mut run.segments);
        let joined_bytes = std::mem::take(&mut run.joined_bytes);
        let packets = &mut self.observed.packets;
        let super_segment = packets.super_segment(index);
        let (mut frame, mut bytes) = (super_segment.frame, &super_segment.bytes);
        if joined_bytes > 0 {
            let parts = run.slots.iter().map(|slot| packets.super_segment(packets.packet(*slot).super_segment));
            frame = join::join(parts, &mut run.joined).expect("the packets of a proxy continue each other");
            bytes = &run.joined;
        }
        let mut header = [0; MAX_HEADER];
        let written = frame.write_segments(bytes, first..=first + (count - 1), ecn, &mut header);
        let (virtio, header_bytes, payload) = (written.header.to_bytes(), written.bytes.len(), written.payload);
        let flow = (flow, direction);
        let is_large = payload.len() >= LEAST_PAYLOAD;
        if let Some(writer) = &mut self.writer
            && ((self.backlog != Backlog::None && is_large) || writer.is_writing(flow))
        {
            let payload = if joined_bytes > 0 {
                WrittenPayload::Own(std::mem::replace(&mut run.joined, packets.memory(MAX_READ)), payload)
            } else {
                let leaving = run.slots.len() as u32;
                match packets.take_shared(index, leaving) {
                    Some(shared) => WrittenPayload::Shared(shared),
                    None => WrittenPayload::Own(packets.take_bytes(index, leaving), payload),
                }
            };
            writer.write(WriteRequest { flow, virtio, header, header_bytes, payload, segments: count })?;
        } else {
            let port = match (direction, self.second) {
                (Direction::Up, _) => self.server,
                (Direction::Down, Some(second)) if user == SECOND => &second.port,
                (Direction::Down, _) => self.mobile,
            };
            let payload = match &super_segment.shared {
                Some(shared) => shared.parts(),
                None => [&bytes[payload], &[]],
            };
            if port.send(&virtio, &header[..header_bytes], payload)? == Sent::Rejected {
                self.dropped.at_exit += u64::from(count);
            }
        }
        for slot in run.slots.drain(..) {
            self.observed.packets.release(slot);
        }
        Ok(())
    }

    /// Waits until everything that was delivered is written.
    ///
    /// # Errors
    /// Those of the ports.
    pub fn flush(&mut self) -> io::Result<()> {
        for direction in Direction::BOTH {
            self.send_acknowledgements(direction)?;
        }
        self.take_written(0)
    }

    /// Takes back the memory of what the other thread has written, and waits while it has more than
    /// this number of packets.
    fn take_written(&mut self, most_unwritten: usize) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        while let Some(written) = writer.next_written(most_unwritten)? {
            self.dropped.at_exit += u64::from(written.rejected);
            match written.payload {
                WrittenPayload::Own(memory, _) => self.observed.packets.free_memory(memory),
                WrittenPayload::Shared(shared) => self.observed.packets.free_shares(Some(shared)),
            }
        }
        Ok(())
    }

    /// When to call [`Self::deliver`] next if no packet enters. `None` if no packet has arrived, no
    /// hop has a wake-up and no planned change of conditions remains.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        if self.acknowledgements.iter().all(HeldAcknowledgements::is_empty) {
            return self.path.next_wakeup();
        }
        Some(self.delivered_until)
    }

    /// The ports at the server and at the mobile.
    pub const fn ports(&self) -> (&'a Port, &'a Port) {
        (self.server, self.mobile)
    }

    /// The second interface of the mobile.
    pub const fn second(&self) -> Option<&'a SecondInterface> {
        self.second
    }
}
