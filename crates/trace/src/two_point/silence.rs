//! Times in which no packet of a client arrived in a direction: packets that wait meanwhile wait
//! for the link, and not behind each other.

use airpath_core::{Instant, Span};

/// A delivery that is late by less than this is no sign of a gap in the radio.
pub(crate) const PATIENCE: Span = Span::from_millis(150);

/// A wait is a gap only if it is longer than this multiple of the service time of a segment.
pub(crate) const GAP_SERVICE_TIMES: u64 = 3;

/// A packet of any connection of the client that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub arrived: Instant,
    pub sent: Instant,
    pub length: u32,
}

/// The silent times of a direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Silences {
    /// No shorter time is silent.
    least: Span,
    /// From an arrival until the link transmits the next packet that arrives.
    times: Vec<(Instant, Instant)>,
}

impl Silences {
    /// From all packets of the client's connections, in the order of their arrivals.
    pub(super) fn of(packets: &[Packet]) -> Self {
        let service = service(packets);
        let least = PATIENCE.max(service.saturating_mul(GAP_SERVICE_TIMES));
        let times = packets.windows(2).map(|pair| (pair[0].arrived, pair[1].arrived));
        let long = times.filter(|(begin, end)| end.since(*begin) > least);
        Self { least, times: long.map(|(begin, end)| (begin, end - service)).collect() }
    }

    /// The silent times between two instants at the receiver.
    pub(crate) fn within(&self, begin: Instant, end: Instant) -> impl Iterator<Item = (Instant, Instant)> + '_ {
        let first = self.times.partition_point(|(_, until)| *until <= begin);
        let inside = self.times[first..].iter().take_while(move |(from, _)| *from < end);
        let clipped = inside.map(move |(from, until)| ((*from).max(begin), (*until).min(end)));
        clipped.filter(|(from, until)| until.since(*from) > self.least)
    }
}

/// The service time of the packets with most data: the median of their distances to the packets
/// before, behind which they waited. Zero if none waited.
fn service(packets: &[Packet]) -> Span {
    let full = packets.iter().map(|packet| packet.length).max().unwrap_or(0);
    let of_full = packets.iter().filter(|packet| packet.length == full);
    let shortest = of_full.map(|packet| packet.arrived.since(packet.sent)).min().unwrap_or_default();
    let waited = |before: &Packet, packet: &Packet| {
        packet.length == full && before.arrived.since(packet.sent.min(before.arrived)) > shortest
    };
    let pairs = packets.windows(2).filter(|pair| waited(&pair[0], &pair[1]));
    let mut distances: Vec<Span> = pairs.map(|pair| pair[1].arrived.since(pair[0].arrived)).collect();
    distances.sort_unstable();
    distances.get(distances.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Packets that are all sent at the begin.
    fn silences(arrivals: &[(u64, u32)]) -> Silences {
        let packet = |&(arrived, length)| Packet { arrived: at(arrived), sent: at(0), length };
        Silences::of(&arrivals.iter().map(packet).collect::<Vec<_>>())
    }

    #[test]
    fn a_silence_ends_when_the_next_packet_is_transmitted() {
        let found = silences(&[(50, 1460), (70, 1460), (90, 1460), (790, 1460), (810, 1460)]);
        let within = |begin, end| found.within(at(begin), at(end)).collect::<Vec<_>>();
        assert_eq!(within(0, 1000), [(at(90), at(770))]);
        assert_eq!(within(300, 500), [(at(300), at(500))]);
        // Too short to be a sign of the radio.
        assert_eq!(within(300, 450), []);
    }

    #[test]
    fn a_slow_link_is_not_silent_between_two_packets() {
        assert_eq!(silences(&[(400, 1460), (700, 1460), (1000, 1460), (1600, 1460)]).times, []);
        // Acknowledgements do not show how long a segment takes.
        let mixed = silences(&[(400, 1460), (410, 0), (420, 0), (720, 1460), (730, 0), (1030, 1460)]);
        assert_eq!(mixed.times, []);
    }
}
