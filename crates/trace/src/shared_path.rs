//! The packets of all connections of a host, by time: what the path carried while one connection
//! waited.
//!
//! The connections of a mobile share its path. [`SharedPaths`] records the times of the packets
//! that each address sends and receives, in intervals of [`INTERVAL`]. The thread that reads a
//! capture records; the analysis of a connection queries only intervals that are complete at its
//! own last packet, so that its result does not depend on how far the reader is ahead.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airpath_capture::decode::Decoded;
use airpath_core::{Instant, Span};
use airpath_wire::segment::{Route, Segment};
use airpath_wire::tcp::Flags;

/// The resolution of times.
pub const INTERVAL: Span = Span::from_millis(20);

/// Packets that a reader is at most ahead of the analysis.
const MOST_AHEAD: u64 = 1 << 16;

/// The longest time that is searched, in intervals. Older ones are forgotten.
const LONGEST_QUERY: u64 = 1 << 12;

/// A host is forgotten if none of this number of last packets is its own. It is twice what a reader
/// can be ahead of the analysis, which thus finds every host that it looks up.
const FORGOTTEN_AFTER: u64 = 2 * MOST_AHEAD;

/// Handshakes of a host that are followed at a time.
const HANDSHAKES: usize = 64;

/// The hosts of a capture.
#[derive(Debug, Default)]
pub struct SharedPaths {
    hosts: Mutex<BTreeMap<IpAddr, Arc<HostLog>>>,
}

/// Records packets.
#[derive(Debug)]
pub struct Recorder {
    paths: Arc<SharedPaths>,
    /// The hosts of `paths`, for a search without a lock.
    hosts: BTreeMap<IpAddr, Arc<HostLog>>,
    /// Number of packets so far.
    packets: u64,
    /// The intervals that had begun at the last two multiples of [`MOST_AHEAD`] packets: the
    /// analysis is past the earlier one.
    begun: [u64; 2],
}

/// The packets of a host.
#[derive(Debug, Default)]
pub struct HostLog {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Packets that the host received, and those that it sent.
    series: [Series; 2],
    /// The handshakes that the host has begun.
    handshakes: VecDeque<Handshake>,
    /// The shortest round trips of handshakes so far, by the other end: each with its time.
    round_trips: Vec<(IpAddr, Instant, Span)>,
    /// The number of the host's last packet in the capture.
    last_packet: u64,
}

/// A handshake in progress.
#[derive(Debug)]
struct Handshake {
    port: u16,
    other: IpAddr,
    syn: Instant,
    syn_ack: Option<Instant>,
}

/// Whether packets go to a host, or come from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// To the host.
    Received,
    /// From the host.
    Sent,
}

/// The intervals with packets.
#[derive(Debug, Default)]
struct Series {
    /// The number of the first one so far.
    first: u64,
    intervals: VecDeque<Interval>,
}

/// Packets with a share of the path in an interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    /// Its number, from [`Series::first`] on.
    number: u32,
    /// Packets with data. 65,535 may be more.
    data: u16,
    /// Packets without data. 65,535 may be more.
    others: u16,
}

/// What a packet takes of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// Almost nothing, see [`takes_share`].
    None,
    Acknowledgement,
    Data,
}

/// Whether a segment takes a share of the path: a bare SYN, FIN or RST takes almost nothing, but
/// shows that the path carries packets.
pub fn takes_share(flags: Flags, length: u32) -> bool {
    length > 0 || flags.0 & (Flags::SYN | Flags::FIN | Flags::RST).0 == 0
}

impl SharedPaths {
    /// The log of a host; `None` before its first packet.
    pub fn host(&self, address: IpAddr) -> Option<Arc<HostLog>> {
        self.lock().get(&address).map(Arc::clone)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Arc<HostLog>>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a host with this last packet is forgotten before the packet of number `now`.
const fn is_forgotten(last_packet: u64, now: u64) -> bool {
    last_packet < (now / FORGOTTEN_AFTER).saturating_sub(1) * FORGOTTEN_AFTER
}

impl Recorder {
    /// Records into `paths`.
    pub fn new(paths: Arc<SharedPaths>) -> Self {
        Self { paths, hosts: BTreeMap::new(), packets: 0, begun: [0; 2] }
    }

    /// Records a packet.
    pub fn packet(&mut self, packet: &Decoded<'_>) {
        match packet {
            Decoded::Segment(segment) => self.segment(segment),
            Decoded::Datagram(datagram) => self.passed(&datagram.route, datagram.time, Load::Data, None),
            Decoded::Skipped(_) => {}
        }
    }

    /// Records a TCP segment.
    pub fn segment(&mut self, segment: &Segment<'_>) {
        let load = match () {
            () if segment.length > 0 => Load::Data,
            () if takes_share(segment.flags, segment.length) => Load::Acknowledgement,
            () => Load::None,
        };
        self.passed(&segment.route, segment.time, load, Some(segment));
    }

    fn passed(&mut self, route: &Route, time: Instant, load: Load, segment: Option<&Segment<'_>>) {
        self.packets += 1;
        if self.packets.is_multiple_of(MOST_AHEAD) {
            self.begun = [self.begun[1], interval(time)];
        }
        if self.packets.is_multiple_of(FORGOTTEN_AFTER) {
            self.forget_hosts();
        }
        let oldest = self.begun[0].saturating_sub(LONGEST_QUERY);
        let ends = [(route.destination.address, Passage::Received), (route.source.address, Passage::Sent)];
        for (address, passage) in ends {
            let host = self.hosts.entry(address).or_insert_with(|| {
                let new = Arc::default();
                self.paths.lock().insert(address, Arc::clone(&new));
                new
            });
            let mut state = host.lock();
            if is_forgotten(state.last_packet, self.packets) {
                // An open connection may have kept the log.
                *state = State::default();
            }
            state.last_packet = self.packets;
            state.series[passage as usize].add(time, load, oldest);
            if let Some(segment) = segment
                && (segment.flags.contains(Flags::SYN) || !state.handshakes.is_empty())
            {
                state.handshake(segment, passage);
            }
        }
    }

    /// Forgets the hosts without recent packets. Hosts with open connections stay: a new log would
    /// lack the packets that such a connection waits for.
    fn forget_hosts(&mut self) {
        let (now, mut hosts) = (self.packets, self.paths.lock());
        // The maps have one reference each.
        let is_kept = |host: &Arc<HostLog>| Arc::strong_count(host) > 2 || !is_forgotten(host.lock().last_packet, now);
        self.hosts.retain(|address, host| {
            let is_kept = is_kept(host);
            if !is_kept {
                hosts.remove(address);
            }
            is_kept
        });
    }
}

impl HostLog {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Packets with a share of the path that passed from `begin` to `end`, in whole intervals.
    pub fn packets(&self, passage: Passage, begin: Instant, end: Instant) -> u64 {
        let (with, without) = self.lock().series[passage as usize].between(begin, end);
        with + without
    }

    /// The same, of the packets with `data`, or of those without.
    pub fn packets_with(&self, passage: Passage, data: bool, begin: Instant, end: Instant) -> u64 {
        let (with, without) = self.lock().series[passage as usize].between(begin, end);
        if data { with } else { without }
    }

    /// The longest time between `begin` and `end` without a packet.
    pub fn longest_silence(&self, passage: Passage, begin: Instant, end: Instant) -> (Instant, Instant) {
        let state = self.lock();
        let (mut longest, mut from) = ((begin, begin), begin);
        for each in state.series[passage as usize].range(interval(begin), interval(end)) {
            let at = start(each).clamp(begin, end);
            if at.since(from) > longest.1.since(longest.0) {
                longest = (from, at);
            }
            from = (start(each) + INTERVAL).clamp(begin, end);
        }
        if end.since(from) > longest.1.since(longest.0) { (from, end) } else { longest }
    }

    /// The shortest round trip of the host's handshakes with `other` until `now`.
    pub fn round_trip(&self, other: IpAddr, now: Instant) -> Option<Span> {
        let state = self.lock();
        state.round_trips.iter().filter(|(end, at, _)| *end == other && *at <= now).map(|(.., sample)| *sample).min()
    }
}

impl State {
    /// Follows the handshakes of the host: the longer half of one is a round trip.
    fn handshake(&mut self, segment: &Segment<'_>, passage: Passage) {
        let (own, other) = match passage {
            Passage::Received => (segment.route.destination, segment.route.source),
            Passage::Sent => (segment.route.source, segment.route.destination),
        };
        let (syn, ack) = (segment.flags.contains(Flags::SYN), segment.flags.contains(Flags::ACK));
        let known = self.handshakes.iter().position(|each| each.port == own.port && each.other == other.address);
        let now = segment.time;
        match (syn, ack, known) {
            (true, false, None) if passage == Passage::Sent => {
                if self.handshakes.len() == HANDSHAKES {
                    self.handshakes.pop_front();
                }
                self.handshakes.push_back(Handshake { port: own.port, other: other.address, syn: now, syn_ack: None });
            }
            (true, true, Some(at)) if self.handshakes[at].syn_ack.is_none() => {
                self.handshakes[at].syn_ack = Some(now);
            }
            // A SYN or a SYN-ACK that is sent again has no unambiguous answer.
            (true, _, Some(at)) => drop(self.handshakes.remove(at)),
            (false, true, Some(at)) if passage == Passage::Sent => {
                if let Some(Handshake { syn, syn_ack: Some(syn_ack), other, .. }) = self.handshakes.remove(at) {
                    let halves = [syn_ack.since(syn.min(syn_ack)), now.since(syn_ack.min(now))];
                    self.add_round_trip(other, now, halves[0].max(halves[1]));
                }
            }
            _ => {}
        }
    }

    fn add_round_trip(&mut self, other: IpAddr, now: Instant, sample: Span) {
        let shortest = self.round_trips.iter().filter(|(end, ..)| *end == other).map(|(.., sample)| *sample).min();
        if shortest.is_none_or(|shortest| sample < shortest) {
            self.round_trips.push((other, now, sample));
        }
    }
}

impl Series {
    /// Counts a packet, and forgets what is before the interval `oldest`.
    fn add(&mut self, time: Instant, load: Load, oldest: u64) {
        let at = interval(time);
        if self.intervals.is_empty() {
            self.first = at;
        }
        let number = u32::try_from(at.saturating_sub(self.first)).unwrap_or(u32::MAX);
        // Times that step back count as standing still.
        if self.intervals.back().is_none_or(|last| last.number < number) {
            while self.intervals.front().is_some_and(|front| self.first + u64::from(front.number) < oldest) {
                self.intervals.pop_front();
            }
            self.intervals.push_back(Interval { number, data: 0, others: 0 });
        }
        if let Some(Interval { data, others, .. }) = self.intervals.back_mut() {
            match load {
                Load::None => {}
                Load::Acknowledgement => *others = others.saturating_add(1),
                Load::Data => *data = data.saturating_add(1),
            }
        }
    }

    /// Packets with data, and without, from `begin` to `end`, in whole intervals.
    fn between(&self, begin: Instant, end: Instant) -> (u64, u64) {
        self.within(interval(begin), interval(end))
            .fold((0, 0), |(data, others), each| (data + u64::from(each.data), others + u64::from(each.others)))
    }

    /// The intervals with packets from `begin` to before `end`.
    fn range(&self, begin: u64, end: u64) -> impl Iterator<Item = u64> {
        self.within(begin, end).map(|each| self.first + u64::from(each.number))
    }

    /// The same, with their packets.
    fn within(&self, begin: u64, end: u64) -> impl Iterator<Item = &Interval> {
        // Older intervals may be gone, depending on how far a reader is ahead.
        let begin = begin.max(end.saturating_sub(LONGEST_QUERY));
        let until = |at: u64| self.intervals.partition_point(|each| self.first + u64::from(each.number) < at);
        let (from, to) = (until(begin), until(end));
        self.intervals.range(from..to.max(from))
    }
}

const fn interval(time: Instant) -> u64 {
    time.as_nanos() / INTERVAL.as_nanos()
}

const fn start(interval: u64) -> Instant {
    Instant::from_nanos(interval.saturating_mul(INTERVAL.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_observe::testing::segment;

    fn log(lines: &[&str]) -> Arc<HostLog> {
        let paths = Arc::new(SharedPaths::default());
        let mut recorder = Recorder::new(Arc::clone(&paths));
        let segments: Vec<_> = lines.iter().map(|line| segment(line, 1).0).collect();
        segments.iter().for_each(|segment| recorder.segment(segment));
        paths.host(segment("0 > ack 0", 1).0.route.source.address).unwrap()
    }

    fn at(millis: u64) -> Instant {
        segment(&format!("{millis} > ack 0"), 1).0.time
    }

    #[test]
    fn silences_are_between_the_packets_of_a_direction() {
        let log = log(&["0 > ack 0", "100 < ack 0", "1000 > ack 0", "1200 < ack 0"]);
        let (from, to) = log.longest_silence(Passage::Received, at(100), at(1300));
        assert_eq!((from, to), (at(120), at(1200)));
        assert_eq!(log.packets(Passage::Received, at(0), at(1300)), 2);
        assert_eq!(log.packets(Passage::Received, at(0), at(1200)), 1);
    }

    /// A capture in which a host that opens a connection is followed by another host.
    struct Hosts {
        paths: Arc<SharedPaths>,
        recorder: Recorder,
    }

    impl Hosts {
        const HOST: &str = "192.0.2.7";

        fn new() -> Self {
            let paths = Arc::new(SharedPaths::default());
            let mut hosts = Self { recorder: Recorder::new(Arc::clone(&paths)), paths };
            ["0 > syn", "100 < syn ack 0", "101 > ack 0"].iter().for_each(|line| hosts.host_passes(line));
            hosts
        }

        fn host_passes(&mut self, line: &str) {
            let (mut packet, host) = (segment(line, 1).0, Self::HOST.parse().unwrap());
            let is_sent = line.contains('>');
            if is_sent {
                packet.route.source.address = host
            } else {
                packet.route.destination.address = host
            }
            self.recorder.segment(&packet);
        }

        fn others_pass(&mut self, packets: u64) {
            let packet = segment("200 > ack 0", 1).0;
            (0..packets).for_each(|_| self.recorder.segment(&packet));
        }

        fn host(&self) -> Option<Arc<HostLog>> {
            self.paths.host(Self::HOST.parse().unwrap())
        }
    }

    #[test]
    fn hosts_without_packets_are_forgotten() {
        let mut hosts = Hosts::new();
        hosts.others_pass(FORGOTTEN_AFTER);
        assert!(hosts.host().is_some());
        hosts.others_pass(FORGOTTEN_AFTER);
        assert!(hosts.host().is_none());
        assert!(hosts.paths.host(segment("0 > ack 0", 1).0.route.source.address).is_some());
    }

    #[test]
    fn the_log_of_an_open_connection_is_not_replaced() {
        let mut hosts = Hosts::new();
        let held = hosts.host().unwrap();
        hosts.others_pass(2 * FORGOTTEN_AFTER);
        hosts.host_passes("300 > ack 0");
        assert!(hosts.host().is_some_and(|log| Arc::ptr_eq(&log, &held)));
        // The connection is over.
        drop(held);
        hosts.others_pass(2 * FORGOTTEN_AFTER);
        assert!(hosts.host().is_none());
    }

    /// A connection that ends by idling drops its log earlier or later, depending on how far the
    /// analysis is.
    #[test]
    fn what_is_known_of_a_host_does_not_depend_on_who_holds_its_log() {
        let server = segment("0 < ack 0", 1).0.route.source.address;
        let known = |is_held: bool| {
            let mut hosts = Hosts::new();
            let held = hosts.host().filter(|_| is_held);
            hosts.others_pass(2 * FORGOTTEN_AFTER);
            hosts.host_passes("300 > ack 0");
            assert_eq!(held.is_some(), is_held);
            let log = hosts.host().unwrap();
            (log.round_trip(server, at(400)), log.packets(Passage::Sent, at(0), at(400)))
        };
        assert_eq!(known(true), known(false));
    }

    #[test]
    fn the_shortest_handshake_is_the_round_trip() {
        let log =
            log(&["0 > syn", "100 < syn ack 0", "101 > ack 0", "500 > syn at -1", "550 < syn ack 0", "550 > ack 0"]);
        let server = segment("0 < ack 0", 1).0.route.source.address;
        assert_eq!(log.round_trip(server, at(50)), None);
        assert_eq!(log.round_trip(server, at(200)), Some(Span::from_millis(100)));
        assert_eq!(log.round_trip(server, at(600)), Some(Span::from_millis(50)));
    }
}
