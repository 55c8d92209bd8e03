//! A page: the responses to one client over all its connections, and their use of the downlink.

use std::collections::BTreeMap;
use std::net::IpAddr;

use airpath_core::{Instant, Span};

use crate::timeline::{Pipelining, Timeline, efficiency};

/// Figures of the page of one client.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The client.
    pub client: IpAddr,
    /// When the first used connection was opened, or the first request sent.
    pub begin: Instant,
    /// When the last byte of the last response had passed. Idle open connections do not extend the
    /// page.
    pub end: Instant,
    /// Connections with at least one request.
    pub connections: u64,
    /// Requests.
    pub requests: u64,
    /// Responses.
    pub responses: u64,
    /// Bytes of the responses, heads and bodies.
    pub bytes: u64,
    /// η over all connections.
    pub efficiency: Option<f64>,
    /// η over the connections with at least two requests: a single request counts as perfect.
    pub efficiency_of_reused: Option<f64>,
    /// Time in which no response was in transit on any connection.
    pub without_response: Span,
    /// Idle time of the downlink; `None` in a capture that was not taken at the client.
    pub idle_downlink: Option<IdleDownlink>,
}

/// The idle time of the downlink within a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdleDownlink {
    /// The time of the page, less the transmission time of the payload at the rate.
    pub time: Span,
    /// The rate in bits of payload per second: the highest over [`RATE_SEGMENTS`] successive
    /// segments.
    pub bits_per_second: f64,
}

impl Page {
    /// The duration.
    pub const fn time(&self) -> Span {
        self.end.since(self.begin)
    }
}

/// The pages of all clients with HTTP requests, sorted by address. `downlinks` are the meters by
/// client.
pub fn pages<'a>(
    timelines: impl IntoIterator<Item = &'a Timeline>,
    downlinks: &BTreeMap<IpAddr, Downlink>,
) -> Vec<Page> {
    let mut by_client: BTreeMap<IpAddr, Vec<&Timeline>> = BTreeMap::new();
    for timeline in timelines.into_iter().filter(|timeline| timeline.pipelining().is_some()) {
        by_client.entry(timeline.client.address).or_default().push(timeline);
    }
    by_client
        .into_iter()
        .filter_map(|(client, connections)| page(client, &connections, downlinks.get(&client)))
        .collect()
}

fn page(client: IpAddr, connections: &[&Timeline], downlink: Option<&Downlink>) -> Option<Page> {
    let exchanges = || connections.iter().flat_map(|timeline| timeline.exchanges());
    let opened = connections.iter().filter_map(|timeline| timeline.opened.map(|mark| mark.time)).min();
    let requested = exchanges().filter_map(|exchange| exchange.first().map(|mark| mark.time)).min()?;
    let begin = opened.map_or(requested, |opened| opened.min(requested));
    let end = exchanges().filter_map(|exchange| exchange.last().map(|mark| mark.time)).max()?;
    let pipelining: Vec<Pipelining> = connections.iter().filter_map(|timeline| timeline.pipelining()).collect();
    let responses = || exchanges().filter_map(|exchange| exchange.response.as_ref());
    let (at_client, elsewhere): (Vec<_>, Vec<_>) =
        connections.iter().filter_map(|timeline| timeline.is_at_client()).partition(|at_client| *at_client);
    // In front of the path, segments pass as the server sends them.
    let downlink = downlink.filter(|_| at_client.len() >= elsewhere.len());
    let mut busy: Vec<(Instant, Instant)> =
        responses().map(|response| (response.first.time, response.last.time)).collect();
    Some(Page {
        client,
        begin,
        end,
        connections: connections.len() as u64,
        requests: pipelining.iter().map(|connection| connection.requests).sum(),
        responses: responses().count() as u64,
        bytes: responses().map(|response| response.size.head + response.size.body).sum(),
        efficiency: efficiency(pipelining.iter().copied(), 1),
        efficiency_of_reused: efficiency(pipelining.iter().copied(), 2),
        without_response: end.since(begin).saturating_sub(covered_time(&mut busy)),
        idle_downlink: downlink.and_then(|downlink| downlink.idle(end.since(begin))),
    })
}

/// The length of the union of intervals.
pub fn covered_time(intervals: &mut [(Instant, Instant)]) -> Span {
    intervals.sort_unstable();
    let (mut covered, mut until) = (Span::ZERO, Instant::ZERO);
    for (begin, end) in intervals.iter().copied() {
        covered += end.since(begin.max(until));
        until = until.max(end);
    }
    covered
}

/// Segments over which the rate is measured, as in the study "gprs-proxy".
pub const RATE_SEGMENTS: usize = 10;

/// Measures the downlink of a client, over all its connections.
#[derive(Clone, Debug, Default)]
pub struct Downlink {
    bytes: u64,
    /// The last segments: time, and the sum of bytes including the segment's.
    recent: [(Instant, u64); RATE_SEGMENTS],
    segments: u64,
    /// The highest rate so far.
    bits_per_second: f64,
}

impl Downlink {
    /// Adds a segment with `length` bytes of payload, in order of time.
    pub fn segment(&mut self, time: Instant, length: u32) {
        if length == 0 {
            return;
        }
        self.bytes += u64::from(length);
        // The remainder is a position within the array.
        let at = (self.segments % RATE_SEGMENTS as u64) as usize;
        self.recent[at] = (time, self.bytes);
        self.segments += 1;
        if self.segments >= RATE_SEGMENTS as u64 {
            let (oldest, before) = self.recent[(at + 1) % RATE_SEGMENTS];
            let elapsed = time.since(oldest);
            if !elapsed.is_zero() {
                let rate = (self.bytes - before) as f64 * 8.0 / elapsed.as_secs_f64();
                self.bits_per_second = self.bits_per_second.max(rate);
            }
        }
    }

    /// The idle time within `time`; `None` with too few segments for a rate.
    ///
    /// The rate is the path's where the capture was taken behind it, at the client: elsewhere
    /// segments pass faster than they arrive.
    pub fn idle(&self, time: Span) -> Option<IdleDownlink> {
        let bits_per_second = self.bits_per_second;
        (bits_per_second > 0.0).then(|| {
            let busy = Span::from_secs_f64(self.bytes as f64 * 8.0 / bits_per_second);
            IdleDownlink { time: time.saturating_sub(busy), bits_per_second }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_overlap_count_once() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mut intervals = [(at(5), at(9)), (at(1), at(3)), (at(6), at(7)), (at(9), at(10)), (at(2), at(4))];
        assert_eq!(covered_time(&mut intervals), Span::from_secs(8));
    }

    #[test]
    fn the_downlink_is_idle_below_its_rate() {
        let mut downlink = Downlink::default();
        // 10 segments of 1000 bytes, 0.2 s apart, then 4 s of nothing, then 10 more.
        for burst in [0, 6_000] {
            for segment in 0..10 {
                downlink.segment(Instant::from_nanos((burst + segment * 200) * 1_000_000), 1_000);
            }
        }
        let idle = downlink.idle(Span::from_secs(8)).unwrap();
        assert!((idle.bits_per_second - 40_000.0).abs() < 1e-6);
        assert_eq!(idle.time, Span::from_secs(4));
    }
}
