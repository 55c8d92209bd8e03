//! What the path carried of other connections of the same host while this one waited.

use std::collections::VecDeque;
use std::sync::Arc;

use airpath_core::{Instant, Span};

use super::link_load::LinkEstimate;
use crate::shared_path::{HostLog, INTERVAL, Passage};

/// Intervals with own packets that are stored: more than a second of acknowledgements without
/// progress.
const STORED: usize = 64;

/// The least number of intervals over which the shares of the connections are compared.
const WINDOW: u64 = 3;

/// Other connections count from this fraction of the own packets.
const LEAST_SHARE: u64 = 8;

/// The other connections of the host.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    log: Arc<HostLog>,
    passage: Passage,
    /// Whether packets with data are compared, or those without.
    data: bool,
    /// The last intervals with own packets from the far end before the present one: the lower half
    /// of the interval's number, and the packets in it.
    own: VecDeque<(u32, u32)>,
    /// The time of the last packet of this connection: later intervals are not complete.
    now: Instant,
    /// The begin of the present window, and own packets in it before the present interval.
    since: Option<Instant>,
    count: u64,
    /// The present interval, own packets in it, and those of them that are compared.
    interval: u64,
    in_interval: u32,
    compared: u32,
    /// The last own packet that counts.
    last: Instant,
    /// When the last window was over in which others passed.
    shared: Option<Instant>,
}

/// Packets of all connections take this part of the time of a full link, at least.
const FILLED: (u64, u64) = (9, 10);

/// They count over this number of round trips: a queue that changes by less than half of one
/// changes the result by about the tenth.
const FILLED_FOR: u64 = 4;

/// The same for the resolution of the intervals.
const FILLED_INTERVALS: u64 = 10;

/// A silence is compared with the time before it that is this multiple of it.
const USUAL_WITHIN: u64 = 8;

/// What passed in a time in which nothing of this connection did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meanwhile {
    /// Nothing.
    Nothing,
    /// Packets of this connection; the longest time without one.
    Own(Instant, Instant),
    /// Packets of other connections; the longest time without one.
    Others(Instant, Instant),
}

impl Neighbours {
    /// From the log of the host; packets from the far end are `passage`. The shares of the
    /// connections are those of the packets with `data`, or of those without.
    pub(super) fn new(log: Arc<HostLog>, passage: Passage, data: bool) -> Self {
        Self {
            log,
            passage,
            data,
            own: VecDeque::new(),
            now: Instant::ZERO,
            since: None,
            count: 0,
            interval: 0,
            in_interval: 0,
            compared: 0,
            last: Instant::ZERO,
            shared: None,
        }
    }

    /// The round trip of the empty path so far, from a capture at the servers to the host. It is
    /// the same for all servers.
    pub(super) fn round_trip(&self, now: Instant) -> Option<Span> {
        (self.passage == Passage::Sent).then(|| self.log.answer_time(now)).flatten()
    }

    /// The time is `now`.
    pub(super) const fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    /// A packet of this connection came from the far end. Returns the time before it in which the
    /// path carried others, if a window is over.
    pub(super) fn passed(&mut self, now: Instant, is_data: bool) -> Option<(Instant, Instant)> {
        if number(now) != self.interval {
            self.end_interval();
            self.interval = number(now);
        }
        let counts = is_data == self.data;
        let result = if counts { self.end_window(now) } else { None };
        self.in_interval += 1;
        if counts {
            self.compared += 1;
            self.last = now;
        }
        result
    }

    fn end_interval(&mut self) {
        self.count += u64::from(std::mem::take(&mut self.compared));
        let packets = std::mem::take(&mut self.in_interval);
        if packets > 0 {
            if self.own.len() == STORED {
                self.own.pop_front();
            }
            self.own.push_back((self.interval as u32, packets));
        }
    }

    fn end_window(&mut self, now: Instant) -> Option<(Instant, Instant)> {
        let since = *self.since.get_or_insert(now);
        if number(now) < number(since) + WINDOW {
            return None;
        }
        let own = std::mem::take(&mut self.count);
        self.since = Some(now);
        if !self.log.is_shared() {
            return None;
        }
        let others = self.log.packets_with(self.passage, self.data, since, now).saturating_sub(own);
        if others == 0 || others * LEAST_SHARE < own {
            return None;
        }
        self.shared = Some(now);
        // The others passed after the last own packet, or also before, where the time is too short.
        let length = now.since(since).as_nanos() as u128 * u128::from(others) / u128::from(others + own);
        let length = Span::from_nanos(length as u64);
        let begin = self.last.max(since).min(now - length);
        Some((begin, begin + length))
    }

    /// Whether silences about as long as that from `begin` to `end` are usual between packets with
    /// data of the host's connections.
    pub(super) fn is_usual(&self, begin: Instant, end: Instant) -> bool {
        let (begin, end) = (begin.min(self.now), end.min(self.now));
        let length = end.since(begin);
        let from = begin - length.saturating_mul(USUAL_WITHIN).min(begin.since(Instant::ZERO));
        let before = self.log.longest_silence_after_packet(self.passage, from, begin);
        before.is_some_and(|(silent, over)| over.since(silent) * 3 >= length * 2)
            && self.log.packets_with(self.passage, true, from, begin) >= USUAL_WITHIN / 2
    }

    /// Whether the packets with data of all connections took nearly all time of the link before
    /// `end`, at the service time of a full one: those from the far end, or those to it. They
    /// count over some round trips, and at least over `time`. Others have passed meanwhile.
    pub(super) fn fill(&self, is_from_far: bool, estimate: LinkEstimate, time: Span, end: Instant) -> bool {
        let passage = if is_from_far { self.passage } else { self.passage.other() };
        let last = number(end.min(self.now));
        let time = time.max(estimate.window().saturating_mul(FILLED_FOR));
        let intervals = time.as_nanos().div_ceil(INTERVAL.as_nanos()).max(FILLED_INTERVALS).min(last);
        let [from, to] = [last - intervals, last].map(|number| Instant::from_nanos(number * INTERVAL.as_nanos()));
        self.shared.is_some_and(|shared| shared >= from) && {
            let busy = estimate.service.saturating_mul(self.log.packets_with(passage, true, from, to));
            busy.saturating_mul(FILLED.1) >= to.since(from).saturating_mul(FILLED.0)
        }
    }

    /// What passed from `begin` to `end`, when nothing of this connection made progress.
    pub(super) fn meanwhile(&self, begin: Instant, end: Instant) -> Meanwhile {
        let (begin, end) = (begin.min(self.now), end.min(self.now));
        let (first, last) = (number(begin), number(end));
        // All stored intervals are within years of the present one.
        let whole = |at: u32| self.interval - u64::from((self.interval as u32).wrapping_sub(at));
        let stored = self.own.iter().map(|(at, packets)| (whole(*at), *packets));
        let intervals = stored.chain([(self.interval, self.in_interval)]);
        let own = intervals.filter(|(at, _)| (first..last).contains(at)).map(|(_, packets)| u64::from(packets)).sum();
        // Own packets from before the oldest stored interval may have passed, too.
        let is_stored = self.own.len() < STORED || self.own.front().is_some_and(|(oldest, _)| whole(*oldest) <= first);
        let packets = self.log.packets(self.passage, begin, end);
        let (from, to) = self.log.longest_silence(self.passage, begin, end);
        match packets {
            0 => Meanwhile::Nothing,
            _ if packets <= own || !is_stored => Meanwhile::Own(from, to),
            _ => Meanwhile::Others(from, to),
        }
    }
}

/// The number of the interval of a time.
const fn number(time: Instant) -> u64 {
    time.as_nanos() / INTERVAL.as_nanos()
}
