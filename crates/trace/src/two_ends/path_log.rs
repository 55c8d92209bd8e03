//! What two captures tell of the radio between them: when it carried nothing. It serves as a radio log where there is none.

use airpath_core::{Direction as Way, Instant, Span};

use super::Joined;
use super::silence::Silence;
use crate::radio::{self, RadioLog};
use airpath_observe::End;

/// Packets that must be lost, for a gap to be the radio's: a single one may have been dropped by anybody.
const LOST: u64 = 2;

/// A wait is silence only if it is so many times longer than the quickest packet takes.
const USUAL: u64 = 3;

impl Joined {
    /// The times in which the path of what the far end sends carried nothing though packets were due, and those in which it lost several of what the
    /// near end sends, by the first capture's clock, for causes to be told with; `mobile` is the end on the radio.
    ///
    /// A time is that of a packet that was held back, from when it was due until it arrived, or from the first to the last of several
    /// packets that were lost while nothing else arrived. What then goes by until the sender's timer expires is not among it.
    pub fn path_log(&self, mobile: End) -> RadioLog {
        let of = |from: End| {
            let direction = self.sent_by(from);
            let (way, before) = if from == mobile {
                // The radio comes first on the way up: what arrives late was late there already.
                (Way::Up, direction.delay.map_or(Span::ZERO, |delay| delay.minimum))
            } else {
                (Way::Down, Span::ZERO)
            };
            let near = from == self.near;
            let least = direction.delay.map_or(Span::ZERO, |delay| delay.minimum);
            direction.silences.iter().flat_map(move |silence| stretches(silence, near, least)).map(
                move |(begin, end, name)| radio::Silence {
                    begin: earlier(begin, before),
                    end: earlier(end, before),
                    direction: Some(way),
                    name: name.to_owned(),
                    wanted: !near,
                },
            )
        };
        RadioLog::new(End::BOTH.into_iter().flat_map(of).collect())
    }
}

/// An instant that much earlier, or the first there is.
const fn earlier(time: Instant, by: Span) -> Instant {
    Instant::from_nanos(time.as_nanos().saturating_sub(by.as_nanos()))
}

/// The times within a silence that are the path's for sure. When what the near end sent was held back its arrivals tell more exactly.
fn stretches(
    silence: &Silence,
    near: bool,
    least: Span,
) -> impl Iterator<Item = (Instant, Instant, &'static str)> + use<> {
    let gap = silence.last_lost.filter(|_| silence.lost >= LOST).map(|last| (silence.due, last, "gap"));
    let delay = (!near && silence.held > least.saturating_mul(USUAL))
        .then(|| (silence.end - silence.held, silence.end, "delay period"));
    gap.into_iter().chain(delay).filter(|(begin, end, _)| begin < end)
}
