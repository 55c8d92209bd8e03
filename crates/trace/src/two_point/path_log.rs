//! The gaps of the radio between two captures, inferred from arrivals. They stand in for a radio
//! log.

use airpath_core::{Direction as LinkDirection, Instant, Span};

use super::JoinedConnection;
use super::arrival_gap::ArrivalGap;
use crate::radio::{self, RadioLog};
use airpath_observe::End;

/// Packets lost in a gap, at least, to attribute it to the radio: any router may drop a single one.
const LOST: u64 = 2;

/// A delay counts only if it is longer than this multiple of the shortest delay.
const SHORTEST_DELAYS: u64 = 3;

impl JoinedConnection {
    /// The gaps of the path, by the first capture's clock; `mobile` is the end on the radio. Of the
    /// data that the far end sends, all gaps in which packets were due; of the data that the near
    /// end sends, those that lost several packets.
    ///
    /// A gap lasts from when a delayed packet was due until it arrived, or from the first to the
    /// last of several lost packets while nothing arrived. The wait for the sender's timer is no
    /// part of it.
    pub fn path_log(&self, mobile: End) -> RadioLog {
        let of = |from: End| {
            let direction = self.sent_by(from);
            let (link, before) = if from == mobile {
                // The radio is the first hop of the uplink: a late packet was late there already.
                (LinkDirection::Up, direction.delay.map_or(Span::ZERO, |delay| delay.minimum))
            } else {
                (LinkDirection::Down, Span::ZERO)
            };
            let near = from == self.near;
            let least = direction.delay.map_or(Span::ZERO, |delay| delay.minimum);
            direction.gaps.iter().flat_map(move |gap| path_gaps(gap, near, least)).map(move |(begin, end, name)| {
                radio::RadioGap {
                    begin: earlier(begin, before),
                    end: earlier(end, before),
                    direction: Some(link),
                    name: name.into(),
                    wanted: !near,
                }
            })
        };
        RadioLog::new(End::BOTH.into_iter().flat_map(of).collect())
    }
}

/// An instant earlier by `by`; the earliest instant where that would be before it.
const fn earlier(time: Instant, by: Span) -> Instant {
    Instant::from_nanos(time.as_nanos().saturating_sub(by.as_nanos()))
}

/// The parts of a gap that the path surely caused. Delays of the data that the near end sent are
/// left out: its arrivals show them exactly.
fn path_gaps(
    arrival_gap: &ArrivalGap,
    near: bool,
    least: Span,
) -> impl Iterator<Item = (Instant, Instant, &'static str)> + use<> {
    let gap = arrival_gap.last_lost.filter(|_| arrival_gap.lost >= LOST);
    let gap = gap.map(|last| (arrival_gap.due, last, "gap"));
    let ArrivalGap { held, end, .. } = *arrival_gap;
    let delay = (!near && held > least.saturating_mul(SHORTEST_DELAYS)).then(|| (end - held, end, "delay period"));
    gap.into_iter().chain(delay).filter(|(begin, end, _)| begin < end)
}
