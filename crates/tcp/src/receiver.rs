//! The receiving half: reassembly, what to acknowledge and when, and the window.

use airpath_core::range_set::{Range, RangeSet};
use airpath_core::{Instant, Span};
use airpath_wire::tcp::SackBlocks;

use crate::config::Config;
use crate::delayed_ack::{AckSchedule, Schedule};
use crate::receive_window::ReceiveWindow;
use crate::sequence::{FIRST_BYTE, Sequence, to_wire};

/// The receiving half of a connection.
#[derive(Debug)]
pub struct Receiver {
    /// The peer's initial sequence number.
    pub initial: u32,
    /// The next sequence number expected.
    pub next: Sequence,
    /// Everything before was read.
    read: Sequence,
    /// The number of the FIN, once it is known.
    fin: Option<Sequence>,
    /// What arrived out of order.
    gaps: RangeSet<Sequence>,
    /// The ranges of `gaps` that changed last, the newest first (RFC 2018 §4).
    recent: [Range<Sequence>; SackBlocks::MAX],
    /// What arrived twice, to be reported once (RFC 2883).
    duplicate: Option<Range<Sequence>>,
    pub window: ReceiveWindow,
    pub acks: AckSchedule,
    /// The largest payload that has arrived: a full-sized segment.
    full_size: u32,
    /// The next sequence number expected when the last acknowledgement was sent.
    pub last_ack: Sequence,
}

/// What came of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is to be acknowledged at once.
    Now,
    /// It is to be acknowledged after at most this time.
    After(Span),
    /// All of it was there before; it is to be acknowledged at once.
    Duplicate,
}

const NOTHING: Range<Sequence> = Range::new(0, 0);

impl Receiver {
    /// Nothing has arrived yet.
    pub fn new(config: &Config) -> Self {
        let segment_size = u32::from(config.maximum_segment_size);
        Self {
            initial: 0,
            next: 0,
            read: FIRST_BYTE,
            fin: None,
            gaps: RangeSet::default(),
            recent: [NOTHING; SackBlocks::MAX],
            duplicate: None,
            window: ReceiveWindow::new(&config.receive_buffer, segment_size),
            acks: AckSchedule::new(&config.delayed_ack),
            full_size: 0,
            last_ack: 0,
        }
    }

    /// The peer's SYN, with the number `initial`, arrived.
    pub const fn open(&mut self, initial: u32) {
        self.initial = initial;
        self.next = FIRST_BYTE;
    }

    /// Bytes that arrived in order.
    #[inline]
    pub fn received(&self) -> u64 {
        self.data_end().saturating_sub(FIRST_BYTE)
    }

    /// Bytes that arrived in order and were not read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.data_end().saturating_sub(self.read)
    }

    /// Whether everything up to the FIN has arrived.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// The application takes `bytes`. Says whether the window has opened so far that the peer should hear of it. A segment has
    /// `segment_size` bytes, as was `announced` less the options that each carries.
    #[inline]
    pub fn read(&mut self, now: Instant, bytes: u64, announced: u32, segment_size: u32) -> bool {
        self.read += bytes.min(self.readable());
        if self.is_complete() {
            return false;
        }
        self.window.on_read(now, self.next, self.read, announced);
        self.window.is_worth_an_update(self.next, self.read, segment_size)
    }

    /// A segment with payload or FIN arrived: `length` sequence numbers from `start` on, the FIN the last of them. It lies
    /// at least partly within the window; the rest is cut off. `timeout` is the retransmission time-out of this end.
    #[inline]
    pub fn on_segment(
        &mut self,
        now: Instant,
        start: Sequence,
        length: u32,
        fin: bool,
        timeout: Span,
        config: &Config,
    ) -> Arrival {
        let end = start + u64::from(length);
        if end <= self.next {
            self.report_duplicate(Range::new(start, end), config);
            return Arrival::Duplicate;
        }
        self.full_size = self.full_size.max(length - u32::from(fin));
        if fin && self.fin.is_none() {
            self.fin = Some(end - 1);
        }
        let part = Range::new(start.max(self.next), end.min(self.limit()));
        if start < self.next {
            self.report_duplicate(Range::new(start, self.next), config);
        }
        if part.is_empty() {
            self.acks.demand();
            return Arrival::Now;
        }
        if part.start > self.next {
            return self.on_gap(part, config);
        }
        let filled = self.advance(part.end);
        let grows = self.window.on_arrival(u32::from(config.maximum_segment_size));
        if filled || self.is_complete() || part.start > start {
            self.acks.demand();
            return Arrival::Now;
        }
        if grows && config.delayed_ack.quick_growth {
            self.acks.on_growth();
        }
        match self.acks.on_arrival(now, length >= self.full_size, timeout, &config.delayed_ack) {
            Schedule::Now => Arrival::Now,
            Schedule::After(wait) => Arrival::After(wait),
        }
    }

    /// A segment arrived all of which was there before.
    pub fn on_old(&mut self, start: Sequence, length: u32, config: &Config) {
        self.report_duplicate(Range::new(start, start + u64::from(length)), config);
    }

    /// The blocks of a selective acknowledgement, at most `room` of them, for the peer that counts from `initial`.
    pub fn sack_blocks(&mut self, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let mut put = |range: Range<Sequence>| {
            let (start, end) = (to_wire(self.initial, range.start), to_wire(self.initial, range.end));
            blocks.as_slice().len() < room && blocks.push(start, end)
        };
        if let Some(duplicate) = self.duplicate.take() {
            put(duplicate);
        }
        if !self.gaps.is_empty() {
            for range in self.recent {
                if range.start > self.next && !put(range) {
                    break;
                }
            }
        }
        blocks
    }

    /// Whether there is something for a selective acknowledgement.
    #[inline]
    pub fn has_blocks(&self) -> bool {
        !self.gaps.is_empty() || self.duplicate.is_some()
    }

    /// The window to offer now, to a peer whose segments have `segment_size` bytes.
    #[inline]
    pub fn offer(&mut self, segment_size: u32) -> u64 {
        // Before the peer's SYN, what is offered begins with its first byte.
        let next = self.next.max(FIRST_BYTE);
        self.window.offer(next, self.read.min(next), segment_size)
    }

    /// Nothing is accepted from here on. The FIN needs no room, and nothing comes after it.
    #[inline]
    fn limit(&self) -> Sequence {
        let edge = self.window.edge().max(self.next);
        self.fin.map_or(edge, |fin| if fin <= edge { fin + 1 } else { edge })
    }

    /// One past the last byte of data that arrived in order: the FIN is none.
    #[inline]
    fn data_end(&self) -> Sequence {
        self.fin.map_or(self.next, |fin| self.next.min(fin))
    }

    /// Everything up to `end` arrived in order. Says whether that touches what arrived before out of order.
    #[inline]
    fn advance(&mut self, end: Sequence) -> bool {
        self.next = end;
        if self.gaps.is_empty() {
            return false;
        }
        while let Some(range) = self.gaps.first().filter(|range| range.start <= self.next) {
            self.next = self.next.max(range.end);
            self.gaps.remove_below(self.next);
        }
        true
    }

    fn on_gap(&mut self, part: Range<Sequence>, config: &Config) -> Arrival {
        self.acks.demand();
        let mut fresh = false;
        let merged = self.gaps.insert(part, |_| fresh = true);
        if !fresh {
            self.report_duplicate(part, config);
        }
        // The newest first; what it swallowed goes.
        let mut kept = [NOTHING; SackBlocks::MAX];
        kept[0] = merged;
        let others = self.recent.iter().filter(|range| range.start > self.next && !merged.contains(**range));
        kept[1..].iter_mut().zip(others).for_each(|(slot, range)| *slot = *range);
        self.recent = kept;
        if fresh { Arrival::Now } else { Arrival::Duplicate }
    }

    fn report_duplicate(&mut self, range: Range<Sequence>, config: &Config) {
        self.acks.demand();
        if config.duplicate_reports {
            self.duplicate = Some(range);
        }
    }
}
