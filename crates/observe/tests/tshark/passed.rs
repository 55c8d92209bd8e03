//! The state of a connection before a frame, in the simplest form: reference for the conditions of
//! the differences.

use airpath_core::Instant;
use airpath_observe::{End, Observation};
use airpath_wire::tcp::Flags;

/// State so far.
#[derive(Clone, Debug, Default)]
pub struct Passed([Direction; 2]);

/// Data of one end, and its acknowledgements by the other end.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    /// Every segment with sequence numbers: frame, time, where it begins and ends.
    pub sent: Vec<(u64, Instant, i64, i64)>,
    /// One past the highest number sent, or acknowledged.
    pub highest: i64,
    pub acknowledged: Option<i64>,
    /// Selectively acknowledged bytes.
    pub selective: i64,
    /// The last window that this end offered.
    pub window: Option<u64>,
    /// Bytes sent since the last PSH.
    since_push: i64,
    pushed: bool,
    /// Whether the last segment went into a closed window.
    probed: bool,
    /// The first frame with the current acknowledgement.
    pub acknowledged_in: u64,
    /// Start of the lowest data that was sent although it was acknowledged, since the last advance
    /// of the acknowledgement.
    pub late_from: Option<i64>,
    /// Duplicate acknowledgements of the current series that only tshark reports.
    pub more_duplicates: i64,
}

/// Start and end of a segment, with the SYN and the FIN.
pub fn range(seen: &Observation) -> (i64, i64) {
    let control = [Flags::SYN, Flags::FIN].iter().filter(|flag| seen.flags.contains(**flag)).count();
    (seen.offset, seen.offset + i64::from(seen.length) + control as i64)
}

impl Passed {
    /// State of the data that `end` sent.
    pub fn by(&self, end: End) -> &Direction {
        &self.0[end as usize]
    }

    /// Adds a segment; `more_duplicate` if only tshark reports a duplicate acknowledgement.
    pub fn pass(&mut self, seen: &Observation, more_duplicate: bool) {
        let (start, end) = range(seen);
        let closed = self.by(seen.from.other()).window == Some(0);
        let own = &mut self.0[seen.from as usize];
        if seen.length > 0 {
            own.since_push = own.since_push(seen);
            own.pushed = seen.flags.contains(Flags::PSH);
        }
        if !seen.flags.contains(Flags::RST) {
            own.window = Some(seen.window);
            own.probed = end > start && closed;
        }
        if end > start && !seen.flags.contains(Flags::RST) {
            own.late_from = own.late_from(start);
            own.sent.push((seen.frame, seen.time, start, end));
            own.highest = own.highest.max(end);
        }
        let other = &mut self.0[seen.from.other() as usize];
        if let Some(acknowledged) = seen.acknowledged {
            let repeats = other.acknowledged == Some(acknowledged);
            other.more_duplicates = i64::from(more_duplicate) + if repeats { other.more_duplicates } else { 0 };
            if other.acknowledged < Some(acknowledged) {
                other.acknowledged_in = seen.frame;
                other.late_from = None;
            }
            other.acknowledged = other.acknowledged.max(Some(acknowledged));
            other.highest = other.highest.max(acknowledged);
            other.selective = seen.delivered as i64 - other.acknowledged.unwrap_or(0).max(0);
        }
    }
}

impl Direction {
    /// Bytes since the last PSH, with those of the next segment `seen`.
    pub fn since_push(&self, seen: &Observation) -> i64 {
        i64::from(seen.length) + if self.pushed { 0 } else { self.since_push }
    }

    /// Whether the last segment went into a closed window.
    pub const fn probed(&self) -> bool {
        self.probed
    }

    /// Whether any number of `start` to before `end` was sent.
    pub fn has_any(&self, start: i64, end: i64) -> bool {
        self.sent.iter().any(|&(.., from, to)| from < end && start < to)
    }

    /// How many numbers of `start` to before `end` were sent.
    pub fn count(&self, start: i64, end: i64) -> i64 {
        let mut parts: Vec<(i64, i64)> = self
            .sent
            .iter()
            .map(|&(.., from, to)| (from.max(start), to.min(end)))
            .filter(|(from, to)| from < to)
            .collect();
        parts.sort_unstable();
        let (mut at, mut count) = (start, 0);
        for (from, to) in parts {
            count += (to - from.max(at)).max(0);
            at = at.max(to);
        }
        count
    }

    /// The same after a segment that begins at `start`.
    pub fn late_from(&self, start: i64) -> Option<i64> {
        let late = self.acknowledged.is_some_and(|acknowledged| acknowledged > start).then_some(start);
        self.late_from.into_iter().chain(late).min()
    }

    /// How often a SYN, with offset -1, was sent.
    pub fn count_syns(&self) -> usize {
        self.sent.iter().filter(|(_, _, start, _)| *start == -1).count()
    }

    /// When the segment of a frame was sent.
    pub fn time(&self, frame: u64) -> Option<Instant> {
        self.sent.iter().find(|(number, ..)| *number == frame).map(|(_, time, ..)| *time)
    }

    /// Whether the segment of a frame has a single byte.
    pub fn is_byte(&self, frame: u64) -> bool {
        self.sent.iter().any(|&(number, _, start, end)| number == frame && end - start == 1)
    }

    /// Whether the segment of a frame, or data below its end, was retransmitted, before or after:
    /// then its acknowledgement measures no round trip (Karn).
    pub fn is_ambiguous(&self, frame: u64) -> bool {
        let of = self.sent.iter().find(|(number, ..)| *number == frame);
        of.is_some_and(|&(_, _, start, end)| {
            let others = || self.sent.iter().filter(|(number, ..)| *number != frame);
            others().any(|&(number, _, from, to)| (start < to || number > frame) && from < end)
        })
    }
}
