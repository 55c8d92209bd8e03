//! What an end of a QUIC flow sends, by the sizes and times of its datagrams.

use airpath_core::{Instant, Span};
use airpath_web::QuicDatagram;

use crate::causes::Stamp;

/// A receiver acknowledges within this time: the default of `max_ack_delay` (RFC 9000 §18.2).
pub(super) const ACK_DELAY: Span = Span::from_millis(25);

/// A datagram is full up to this fraction below the usual size of full ones: frames do not always
/// fill it to the byte.
const FULL: u32 = 16;

/// No usual path has a smaller full datagram (RFC 9000 §14).
const LEAST_FULL: u32 = 1200;

/// A datagram with this number of bytes more than the smallest has more than an acknowledgement.
const ACKNOWLEDGEMENT: u32 = 16;

/// The longest datagram with an acknowledgement of one range: its header has up to 25 bytes, the
/// frame up to 11 (RFC 9000 §19.3), and the tag 16.
const LONGEST_ACKNOWLEDGEMENT: u32 = 52;

/// An end as a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sending {
    /// The size of full datagrams: that of the last two that followed each other and were about
    /// equal.
    full: u32,
    before: u32,
    /// The smallest datagram with a short header.
    smallest: Option<u32>,
    /// Whether its last datagram with data was full: more data follows.
    pub more: bool,
    /// The same before the last datagram.
    pub had_more: bool,
    /// When it sent its last datagram.
    last: Instant,
    /// Full datagrams since the last one that was not full, and those before that.
    flight: u32,
    pub last_flight: u32,
    /// Of the end at the capture: what it sent, and had no answer so far.
    pub unanswered: Option<Unanswered>,
}

impl Sending {
    /// Whether a datagram is longer than an acknowledgement, or a probe without data.
    pub(super) fn is_longer_than_acknowledgement(&self, length: u32) -> bool {
        length > self.smallest.unwrap_or(length).min(LONGEST_ACKNOWLEDGEMENT) + ACKNOWLEDGEMENT
    }

    /// Takes a datagram of this end. Returns whether it has data or else requires an answer, as far
    /// as its size shows that. `acknowledges` is whether the other end's stream is in progress, and
    /// `may_probe` whether there is nothing to acknowledge, which only the own end shows.
    pub(super) fn sent(&mut self, datagram: &QuicDatagram, now: Stamp, acknowledges: bool, may_probe: bool) -> bool {
        let length = datagram.length;
        let before = std::mem::replace(&mut self.before, length);
        let pause = now.time.since(std::mem::replace(&mut self.last, now.time));
        if before >= LEAST_FULL && length >= LEAST_FULL && length.abs_diff(before) <= length / FULL {
            self.full = length.max(before);
        }
        if datagram.spin.is_some() {
            self.smallest = Some(self.smallest.map_or(length, |smallest| smallest.min(length)));
        }
        let full = self.full.max(LEAST_FULL);
        // The interface of the capturing host cuts or joins datagrams (UDP GSO, GRO).
        let is_joined = length >= full * 2;
        let has_data = match () {
            () if is_joined => true,
            // It searches for a larger MTU (RFC 8899).
            () if length > full + full / FULL => false,
            () if length >= full / 2 => true,
            // Acknowledgements of a stream can be long, with a range for each loss.
            () if acknowledges => false,
            () if self.is_longer_than_acknowledgement(length) => true,
            // A probe, or a short request.
            () => may_probe && pause > ACK_DELAY,
        };
        self.had_more = self.more;
        if has_data {
            let last = if is_joined && !length.is_multiple_of(full) { length % full } else { length };
            // A datagram that is not full ends a flight.
            self.more = last >= full - full / FULL;
            if self.more {
                self.flight = self.flight.saturating_add(1);
            } else {
                self.last_flight = std::mem::take(&mut self.flight);
            }
        }
        has_data
    }
}

/// Datagrams that had no answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unanswered {
    /// The first of them.
    pub first: Stamp,
    /// The last one.
    pub last: Stamp,
    pub bytes: u64,
    /// Datagrams that were sent after a pause without an answer, as by a probe timer (RFC 9002
    /// §6.2).
    pub probes: u32,
    /// The last probe, and the datagrams before it.
    pub last_probe: Instant,
    pub probe_before: Instant,
}

impl Unanswered {
    pub(super) fn new(length: u32, now: Stamp) -> Self {
        let time = now.time;
        Self { first: now, last: now, bytes: length.into(), probes: 0, last_probe: time, probe_before: time }
    }

    /// A datagram follows; after `pause` it is a probe.
    pub(super) fn sent(&mut self, length: u32, now: Stamp, pause: Span) {
        if now.time.since(self.last.time) > pause {
            self.probes += 1;
            (self.probe_before, self.last_probe) = (self.last.time, now.time);
        }
        self.last = now;
        self.bytes += u64::from(length);
    }

    /// What remains if all that was sent until an instant has an answer.
    pub(super) fn after(self, until: Instant) -> Option<Self> {
        (self.last.time > until).then(|| {
            let first = Stamp { time: self.first.time.max(until), ..self.first };
            Self { first, bytes: 0, ..Self::new(0, first) }.with_last(self.last)
        })
    }

    const fn with_last(self, last: Stamp) -> Self {
        Self { last, ..self }
    }
}
