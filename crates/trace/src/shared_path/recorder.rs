//! Records the packets of a capture by host.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use airpath_capture::decode::Decoded;
use airpath_core::Instant;
use airpath_observe::copies::RecentPackets;
use airpath_observe::flows::hash;
use airpath_wire::segment::{Route, Segment};
use airpath_wire::tcp::Flags;

use super::series::{Load, Packets, number};
use super::{HostLog, LONGEST_QUERY, Passage, SharedPaths, State, takes_share};

/// Packets that a reader is at most ahead of the analysis.
const MOST_AHEAD: u64 = 1 << 16;

/// A host is forgotten if none of this number of last packets is its own. It is twice what a reader
/// can be ahead of the analysis, which thus finds every host that it looks up.
pub(super) const FORGOTTEN_AFTER: u64 = 2 * MOST_AHEAD;

/// Connections whose hosts are found without a search, a power of two.
const RECENT: usize = 1 << 14;

/// Records packets.
#[derive(Debug)]
pub struct Recorder {
    paths: Arc<SharedPaths>,
    hosts: Vec<Host>,
    /// The hosts of `hosts` that are free.
    free: Vec<u32>,
    /// The places of addresses in `hosts`.
    places: BTreeMap<IpAddr, u32>,
    /// The places of the source and the destination of recent packets, by the hash of their route:
    /// a packet of the same connection mostly has the same hosts.
    recent: Vec<[u32; 2]>,
    /// A packet that the capture has twice passed only once.
    recent_packets: RecentPackets,
    /// Number of packets so far.
    packets: u64,
    /// The intervals that had begun at the last two multiples of [`MOST_AHEAD`] packets: the
    /// analysis is past the earlier one.
    begun: [u64; 2],
}

/// A host of the capture: one cache line, as each packet needs two of thousands.
#[derive(Debug)]
#[repr(align(64))]
struct Host {
    /// `None` for a place that is free.
    address: Option<IpAddr>,
    log: Arc<HostLog>,
    /// The number of its last packet in the capture.
    last_packet: u64,
    /// The hash of the route of its packets, as long as they have one.
    route: Option<u32>,
    /// The interval of its last packet, and the packets in it that it received and sent: the log
    /// gets them when the next begins, because the analysis queries earlier ones only.
    interval: u64,
    passed: [Option<Packets>; 2],
    /// Whether its log has handshakes in progress.
    has_handshakes: bool,
}

const _: () = assert!(size_of::<Host>() == 64, "one cache line");

/// Whether a host with this last packet is forgotten before the packet of number `now`.
const fn is_forgotten(last_packet: u64, now: u64) -> bool {
    last_packet < (now / FORGOTTEN_AFTER).saturating_sub(1) * FORGOTTEN_AFTER
}

impl Host {
    fn new(address: IpAddr, route: u32, packet: u64) -> Self {
        Self {
            address: Some(address),
            log: Arc::default(),
            last_packet: packet,
            route: Some(route),
            interval: 0,
            passed: [None; 2],
            has_handshakes: false,
        }
    }

    /// Forgets all packets.
    fn restart(&mut self) {
        *self.log.lock() = State::default();
        (self.passed, self.has_handshakes) = ([None; 2], false);
    }

    /// Begins an interval, and forgets what is before the interval `oldest`.
    fn begin(&mut self, interval: u64, oldest: u64) {
        let over = std::mem::replace(&mut self.interval, interval);
        let mut state = self.log.lock();
        for (series, passed) in state.series.iter_mut().zip(&mut self.passed) {
            if let Some(packets) = passed.take() {
                series.push(over, packets, oldest);
            }
        }
    }
}

impl Recorder {
    /// Records into `paths`.
    pub fn new(paths: Arc<SharedPaths>) -> Self {
        Self {
            paths,
            hosts: Vec::new(),
            free: Vec::new(),
            places: BTreeMap::new(),
            recent: vec![[u32::MAX; 2]; RECENT],
            recent_packets: RecentPackets::default(),
            packets: 0,
            begun: [0; 2],
        }
    }

    /// Records a packet.
    pub fn packet(&mut self, packet: &Decoded<'_>) {
        match packet {
            Decoded::Segment(segment) => self.segment(segment),
            Decoded::Datagram(datagram) => {
                self.passed(&datagram.route, hash(&datagram.route), datagram.time, Load::Data, None);
            }
            Decoded::Skipped(_) => {}
        }
    }

    /// Records a TCP segment.
    pub fn segment(&mut self, segment: &Segment<'_>) {
        let hash = hash(&segment.route);
        let load = match () {
            () if self.recent_packets.is_copy(segment, hash) => Load::None,
            () if segment.length > 0 => Load::Data,
            () if takes_share(segment.flags, segment.length) => Load::Acknowledgement,
            () => Load::None,
        };
        self.passed(&segment.route, hash, segment.time, load, Some(segment));
    }

    fn passed(&mut self, route: &Route, hash: u32, time: Instant, load: Load, segment: Option<&Segment<'_>>) {
        self.packets += 1;
        let now = number(time);
        if self.packets.is_multiple_of(MOST_AHEAD) {
            self.begun = [self.begun[1], now];
        }
        if self.packets.is_multiple_of(FORGOTTEN_AFTER) {
            self.forget_hosts();
        }
        let oldest = self.begun[0].saturating_sub(LONGEST_QUERY);
        let [source, destination] = self.find(route, hash);
        for (place, passage) in [(destination, Passage::Received), (source, Passage::Sent)] {
            let packets = self.packets;
            let host = &mut self.hosts[place as usize];
            if is_forgotten(host.last_packet, packets) {
                // An open connection may have kept the log.
                host.restart();
            }
            host.last_packet = packets;
            if host.route.is_some_and(|only| only != hash) {
                host.log.is_shared.store(true, Ordering::Relaxed);
                host.route = None;
            }
            // Times that step back count as standing still.
            if now > host.interval {
                host.begin(now, oldest);
            }
            host.passed[passage as usize].get_or_insert_default().add(load);
            if let Some(segment) = segment
                && (segment.flags.contains(Flags::SYN) || host.has_handshakes)
            {
                let mut state = host.log.lock();
                state.handshake(segment, passage);
                host.has_handshakes = state.has_handshakes();
            }
        }
    }

    /// The places of the source and of the destination of a route.
    fn find(&mut self, route: &Route, hash: u32) -> [u32; 2] {
        let addresses = [route.source.address, route.destination.address];
        let at = hash as usize % RECENT;
        let [one, other] = self.recent[at];
        let is = |place: u32, address| self.hosts.get(place as usize).is_some_and(|host| host.address == Some(address));
        if is(one, addresses[0]) && is(other, addresses[1]) {
            return [one, other];
        }
        if is(other, addresses[0]) && is(one, addresses[1]) {
            return [other, one];
        }
        let places = addresses.map(|address| self.place(address, hash));
        self.recent[at] = places;
        places
    }

    /// The place of an address.
    fn place(&mut self, address: IpAddr, route: u32) -> u32 {
        if let Some(place) = self.places.get(&address) {
            return *place;
        }
        let host = Host::new(address, route, self.packets);
        self.paths.lock().insert(address, Arc::clone(&host.log));
        let place = match self.free.pop() {
            Some(place) => {
                self.hosts[place as usize] = host;
                place
            }
            None => {
                self.hosts.push(host);
                self.hosts.len() as u32 - 1
            }
        };
        self.places.insert(address, place);
        place
    }

    /// Forgets the hosts without recent packets. Hosts with open connections stay: a new log would
    /// lack the packets that such a connection waits for.
    fn forget_hosts(&mut self) {
        let (now, mut paths) = (self.packets, self.paths.lock());
        self.places.retain(|address, place| {
            let host = &mut self.hosts[*place as usize];
            // `hosts` and `paths` have one reference each.
            let is_kept = Arc::strong_count(&host.log) > 2 || !is_forgotten(host.last_packet, now);
            if !is_kept {
                paths.remove(address);
                (host.address, host.log) = (None, Arc::default());
                self.free.push(*place);
            }
            is_kept
        });
    }
}
