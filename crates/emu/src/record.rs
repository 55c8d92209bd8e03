//! Writes the deliveries of a link as a recorded link that can be played back.

use airpath_core::{Direction, Instant};
use airpath_link::recorded::OPPORTUNITY;
use airpath_link::{Recording, RecordingError};

/// Records when a link delivered each 1,500 bytes, in each direction.
///
/// Unused capacity is not visible: the recording shows the capacity of the link only as far as the
/// traffic used it.
#[derive(Debug, Default)]
pub struct Recorder {
    down: Opportunities,
    up: Opportunities,
}

#[derive(Debug, Default)]
struct Opportunities {
    millis: Vec<u64>,
    /// Bytes delivered since the last recorded opportunity.
    bytes: u64,
}

impl Recorder {
    /// The link delivered a packet of `size` bytes at `due`.
    #[inline]
    pub fn delivered(&mut self, due: Instant, direction: Direction, size: u32) {
        let opportunities = match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        };
        opportunities.bytes += u64::from(size);
        while opportunities.bytes >= OPPORTUNITY.get() {
            opportunities.bytes -= OPPORTUNITY.get();
            // Rounded up, so that no opportunity is too early; zero is not a valid time in the
            // format.
            opportunities.millis.push(due.as_nanos().div_ceil(1_000_000).max(1));
        }
    }

    /// The recorded link in one direction; `None` if less than one opportunity was used.
    ///
    /// # Errors
    /// None in practice: packets leave in the order of time.
    pub fn recording(&self, direction: Direction) -> Result<Option<Recording>, RecordingError> {
        let millis = match direction {
            Direction::Down => &self.down.millis,
            Direction::Up => &self.up.millis,
        };
        if millis.is_empty() { Ok(None) } else { Recording::new(millis).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Span;

    use super::*;

    #[test]
    fn each_1500_bytes_are_an_opportunity() {
        let mut recorder = Recorder::default();
        for millis in 1..=4 {
            recorder.delivered(Instant::ZERO + Span::from_micros(millis * 1000 - 500), Direction::Down, 750);
        }
        let recording = recorder.recording(Direction::Down).unwrap().unwrap();
        assert_eq!(recording.millis(), [2, 4]);
        assert!(recorder.recording(Direction::Up).unwrap().is_none());
    }
}
