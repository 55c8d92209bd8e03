//! What the path carried of other connections of the same host while this one waited.

use std::collections::VecDeque;
use std::sync::Arc;

use airpath_core::{Instant, Span};

use crate::shared_path::{HostLog, INTERVAL, Passage};

/// Own packets whose times are stored. More of them pass in no gap.
const STORED: usize = 16;

/// The least number of intervals over which the shares of the connections are compared.
const WINDOW: u64 = 3;

/// Other connections count from this fraction of the own packets.
const LEAST_SHARE: u64 = 8;

/// The other connections of the host.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    log: Arc<HostLog>,
    passage: Passage,
    /// The last own packets from the far end.
    own: VecDeque<Instant>,
    /// The time of the last packet of this connection: later intervals are not complete.
    now: Instant,
    /// The begin of the present window, and own packets in it before the present interval.
    since: Option<Instant>,
    count: u64,
    /// The present interval, and own packets in it.
    interval: u64,
    in_interval: u64,
}

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
    /// From the log of the host; packets from the far end are `passage`.
    pub(super) fn new(log: Arc<HostLog>, passage: Passage) -> Self {
        Self {
            log,
            passage,
            own: VecDeque::with_capacity(STORED),
            now: Instant::ZERO,
            since: None,
            count: 0,
            interval: 0,
            in_interval: 0,
        }
    }

    /// The time is `now`.
    pub(super) const fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    /// A packet of this connection came from the far end. Returns the time before it in which the
    /// path carried others, if a window is over.
    pub(super) fn passed(&mut self, now: Instant) -> Option<(Instant, Instant)> {
        if number(now) != self.interval {
            self.count += std::mem::take(&mut self.in_interval);
            self.interval = number(now);
        }
        let result = self.end_window(now);
        if self.own.len() == STORED {
            self.own.pop_front();
        }
        self.own.push_back(now);
        self.in_interval += 1;
        result
    }

    fn end_window(&mut self, now: Instant) -> Option<(Instant, Instant)> {
        let since = *self.since.get_or_insert(now);
        if number(now) < number(since) + WINDOW {
            return None;
        }
        let own = std::mem::take(&mut self.count);
        self.since = Some(now);
        let others = self.log.packets(self.passage, since, now).saturating_sub(own);
        if others == 0 || others * LEAST_SHARE < own {
            return None;
        }
        // The path carried the others first: this packet came last.
        let length = now.since(since).as_nanos() as u128 * u128::from(others) / u128::from(others + own);
        Some((since, since + Span::from_nanos(length as u64)))
    }

    /// What passed from `begin` to `end`, when nothing of this connection made progress.
    pub(super) fn meanwhile(&self, begin: Instant, end: Instant) -> Meanwhile {
        let (begin, end) = (begin.min(self.now), end.min(self.now));
        let (first, last) = (number(begin), number(end));
        let own = self.own.iter().filter(|time| (first..last).contains(&number(**time))).count() as u64;
        let packets = self.log.packets(self.passage, begin, end);
        let (from, to) = self.log.longest_silence(self.passage, begin, end);
        // Own packets from before the oldest stored one may have passed, too.
        let unknown = self.own.len() == STORED && self.own.front().is_some_and(|time| number(*time) >= first);
        match packets {
            0 => Meanwhile::Nothing,
            _ if packets <= own || unknown => Meanwhile::Own(from, to),
            _ => Meanwhile::Others(from, to),
        }
    }
}

/// The number of the interval of a time.
const fn number(time: Instant) -> u64 {
    time.as_nanos() / INTERVAL.as_nanos()
}
