//! Counters and measurements of each direction of a connection.

use airpath_core::{Instant, Span};
use airpath_wire::segment::Segment;
use airpath_wire::tcp::Flags;

use crate::events::Events;
use crate::phase::Phases;
use crate::round_trip::Spread;
use crate::spurious::SpuriousCounts;
use crate::trigger::Trigger;

/// The largest shift of a window (RFC 7323 §2.3).
pub(crate) const MAXIMUM_SHIFT: u8 = 14;

/// Figures of the data of one end, and of its acknowledgements by the other end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Segments.
    pub segments: u64,
    /// Segments with RST.
    pub resets: u64,
    /// Segments with SYN.
    pub syns: u32,
    /// Segments with FIN.
    pub fins: u32,
    /// Segments with an acknowledgement.
    pub acknowledgements: u64,
    /// Of them, those with nothing else.
    pub pure_acknowledgements: u64,
    /// Segments with selective acknowledgements.
    pub selective_acknowledgements: u64,
    /// Segments that report duplicate bytes (DSACK, RFC 2883).
    pub dsacks: u64,
    /// The most blocks in one segment.
    pub most_blocks: u8,
    /// Segments with data.
    pub data_segments: u64,
    /// Their bytes.
    pub data_bytes: u64,
    /// Bytes of the stream that were seen, each counted once.
    pub unique_bytes: u64,
    /// Segments with PSH and data.
    pub pushed_segments: u64,
    /// Segments with URG and data.
    pub urgent_segments: u64,
    /// The sum of their urgent pointers.
    pub urgent_bytes: u64,
    /// Bytes of data that were not captured.
    pub truncated_bytes: u64,
    /// Segments with data that was not captured.
    pub truncated_segments: u64,
    /// Bytes that were acknowledged but never captured before or after.
    pub unseen_bytes: u64,
    /// Bytes of the largest segment.
    pub largest_segment: u32,
    /// Bytes of the smallest segment with data.
    pub smallest_segment: u32,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Sequence numbers in them that were seen before, SYN and FIN included.
    pub retransmitted_bytes: u64,
    /// Retransmissions by trigger, in the order of [`Trigger::ALL`].
    pub triggers: [u64; Trigger::ALL.len()],
    /// Spurious retransmissions.
    pub spurious: SpuriousCounts,
    /// The largest number of retransmissions of one range of bytes.
    pub most_retransmissions: u16,
    /// Time from a transmission to the next of the same bytes.
    pub retransmission_time: Spread,
    /// Segments sent into a closed window.
    pub window_probes: u64,
    /// Their bytes.
    pub window_probe_bytes: u64,
    /// How often each event was seen, in the order of [`Events::NAMES`].
    pub events: [u32; Events::NAMES.len()],
    /// Maximum segment size that it announced.
    pub maximum_segment_size: Option<u16>,
    /// Window scale shift that it requested.
    pub window_scale: Option<u8>,
    /// Whether there were timestamps.
    pub timestamps: bool,
    /// Whether selective acknowledgements were permitted.
    pub selective_permitted: bool,
    /// The receive window that it offered.
    pub window: Windows,
    /// Bytes sent and not acknowledged.
    pub outstanding: OutstandingBytes,
    /// Bytes sent before the other end acknowledged any.
    pub initial_bytes: u64,
    /// Segments sent before that.
    pub initial_segments: u64,
    /// Bytes of the stream, where its beginning and its end were seen.
    pub stream_length: Option<u64>,
    /// Round trips of what was sent once (Karn's rule).
    pub round_trip: Spread,
    /// Round trips of the largest segments alone.
    pub full_size_round_trip: Spread,
    /// Bytes of these.
    pub full_size: u32,
    /// The round trip of the handshake.
    pub handshake: Option<Span>,
    /// Round trips by the echo of timestamps.
    pub echo_round_trip: Spread,
    /// From the last transmission of what was sent more than once to its acknowledgement.
    pub ambiguous_round_trip: Spread,
    /// Acknowledgements delayed by the retransmission of earlier data.
    pub after_loss: u64,
    /// Segments acknowledged together with a later one.
    pub cumulatively_acknowledged: u64,
    /// Duplicate acknowledgements of its data (RFC 5681 §2).
    pub duplicate_acknowledgements: u64,
    /// Times that there were three in a row.
    pub triple_duplicates: u64,
    /// Time in each phase of congestion control.
    pub phases: Phases,
    /// Acknowledgements that follow another one, each for one segment sent once, a millisecond or
    /// more after the one before.
    pub paired_acknowledgements: u64,
    /// Paired acknowledgements within a quarter of the time between their segments.
    pub bunched_acknowledgements: u64,
    /// First and last segment with data.
    pub data_time: Option<(Instant, Instant)>,
    /// The last segment.
    pub last: Option<Instant>,
    /// The longest time between two segments.
    pub longest_idle: Span,
}

/// The receive windows that an end offered, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// The largest.
    pub largest: u64,
    /// The smallest that was open; 0 where none was.
    pub smallest: u64,
    /// Segments that closed it.
    pub closed: u64,
    /// Whether it has another scale than is known: the capture lacks its SYN, and the other end
    /// sent more than the window allows.
    pub scale_is_unknown: bool,
    sum: u64,
    count: u64,
    scaled: bool,
}

/// Bytes that an end had sent and that were not acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OutstandingBytes {
    /// The most.
    pub largest: u64,
    /// The smallest amount above zero; 0 where there was none.
    pub smallest: u64,
    sum: u64,
    count: u64,
    /// Bytes times nanoseconds.
    area: u128,
    now: u64,
    since: Option<Instant>,
}

impl OutstandingBytes {
    /// The present amount.
    pub const fn now(&self) -> u64 {
        self.now
    }
}

impl Figures {
    /// Counts the properties of a segment that do not depend on its interpretation.
    pub(crate) fn segment(&mut self, segment: &Segment<'_>) {
        let flags = segment.flags;
        let has = |flag| flags.contains(flag);
        self.segments += 1;
        self.resets += u64::from(has(Flags::RST));
        self.syns += u32::from(has(Flags::SYN));
        self.fins += u32::from(has(Flags::FIN));
        let bare = !has(Flags::SYN) && !has(Flags::FIN) && !has(Flags::RST) && segment.length == 0;
        self.acknowledgements += u64::from(has(Flags::ACK));
        self.pure_acknowledgements += u64::from(has(Flags::ACK) && bare);
        let blocks = segment.options.sack.as_slice().len() as u8;
        self.selective_acknowledgements += u64::from(blocks > 0);
        self.most_blocks = self.most_blocks.max(blocks);
        self.maximum_segment_size = segment.options.maximum_segment_size.or(self.maximum_segment_size);
        self.window_scale = segment.options.window_scale.or(self.window_scale);
        self.timestamps |= segment.options.timestamps.is_some();
        self.selective_permitted |= segment.options.sack_permitted;
        if let Some(last) = self.last.replace(segment.time) {
            self.longest_idle = self.longest_idle.max(segment.time.since(last));
        }
        if segment.length > 0 {
            self.data(segment);
        }
    }

    fn data(&mut self, segment: &Segment<'_>) {
        self.data_segments += 1;
        self.data_bytes += u64::from(segment.length);
        self.pushed_segments += u64::from(segment.flags.contains(Flags::PSH));
        if segment.flags.contains(Flags::URG) {
            self.urgent_segments += 1;
            self.urgent_bytes += u64::from(segment.urgent);
        }
        self.largest_segment = self.largest_segment.max(segment.length);
        let smallest = if self.smallest_segment == 0 { u32::MAX } else { self.smallest_segment };
        self.smallest_segment = smallest.min(segment.length);
        let missing = u64::from(segment.length).saturating_sub(segment.captured.into());
        self.truncated_bytes += missing;
        self.truncated_segments += u64::from(missing > 0);
        let first = self.data_time.map_or(segment.time, |(first, _)| first);
        self.data_time = Some((first, segment.time));
    }

    /// Counts the events of a segment.
    pub(crate) fn events(&mut self, events: Events) {
        let mut bits = events.0;
        while bits != 0 {
            let bit = bits.trailing_zeros() as usize;
            self.events[bit] += 1;
            bits &= bits - 1;
        }
    }

    /// Number of segments with an event.
    pub fn event(&self, event: Events) -> u32 {
        self.events.get(event.0.trailing_zeros() as usize).copied().unwrap_or(0)
    }

    /// Adds a round trip of data sent once. `size` is that of the segment.
    pub(crate) fn round_trip(&mut self, span: Span, size: u32) {
        self.round_trip.sample(span);
        if size > self.full_size {
            self.full_size = size;
            self.full_size_round_trip = Spread::default();
        }
        if size == self.full_size && size > 0 {
            self.full_size_round_trip.sample(span);
        }
    }

    /// Mean queueing delay: mean minus shortest round trip, in seconds.
    pub fn mean_queueing(&self) -> Option<f64> {
        Some(self.round_trip.mean()? - self.round_trip.minimum()?.as_secs_f64())
    }

    /// Bytes of the stream that were never seen, if its beginning and its end were.
    pub fn missed_bytes(&self) -> Option<i64> {
        Some(self.stream_length? as i64 - self.unique_bytes as i64)
    }

    /// Mean bytes of a segment with data.
    pub fn mean_segment(&self) -> Option<f64> {
        (self.data_segments > 0).then(|| self.data_bytes as f64 / self.data_segments as f64)
    }

    /// The window scale shift that applies: at most 14, whatever was requested (RFC 7323 §2.3).
    pub fn applied_scale(&self) -> Option<u8> {
        self.window_scale.map(|shift| shift.min(MAXIMUM_SHIFT))
    }

    /// Number of spurious retransmissions.
    pub fn spurious_retransmissions(&self) -> u64 {
        self.spurious.by_detector.iter().sum()
    }
}

impl Windows {
    /// Adds an offered window; `scaled` once a shift applies to it. From then on the windows of the
    /// handshake, which are never scaled, no longer count.
    pub(crate) fn offered(&mut self, window: u64, scaled: bool) {
        if scaled && !self.scaled && window > 0 {
            *self = Self { closed: self.closed, scaled, ..Self::default() };
        }
        self.largest = self.largest.max(window);
        if window > 0 {
            let smallest = if self.smallest == 0 { u64::MAX } else { self.smallest };
            self.smallest = smallest.min(window);
        }
        self.sum += window;
        self.count += 1;
    }

    /// The mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

impl OutstandingBytes {
    /// Adds the outstanding bytes after a new segment.
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.largest = self.largest.max(bytes);
        if bytes > 0 {
            let smallest = if self.smallest == 0 { u64::MAX } else { self.smallest };
            self.smallest = smallest.min(bytes);
        }
        self.sum += bytes;
        self.count += 1;
    }

    /// Sets the outstanding bytes from `time` on.
    pub(crate) fn changed(&mut self, bytes: u64, time: Instant) {
        if let Some(since) = self.since {
            self.area += u128::from(self.now) * u128::from(time.since(since).as_nanos());
        }
        self.since = Some(self.since.map_or(time, |since| since.max(time)));
        self.now = bytes;
    }

    /// The mean over the segments that were new.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The mean over `elapsed`, each amount weighted with the time for which it was outstanding.
    pub fn mean_over(&self, elapsed: Span) -> Option<f64> {
        (!elapsed.is_zero()).then(|| self.area as f64 / elapsed.as_nanos() as f64)
    }
}
