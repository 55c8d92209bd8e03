//! The player of segments: its buffer, when playback starts, stalls and ends.

use airpath_core::{Instant, Span};

use crate::samples::Samples;
use crate::streaming::player::{LEVEL_INTERVAL, Level};

/// The player. A segment is played only after its last byte has arrived.
#[derive(Clone, Debug)]
pub struct Player {
    start: Instant,
    /// Media that it waits for.
    startup: Span,
    /// Media that have not arrived.
    missing: Span,
    state: State,
    /// Media that had arrived and were not played when the state was entered.
    buffer: Span,
    first_frame: Option<Instant>,
    stalls: Samples,
    levels: Vec<Level>,
    /// The time up to which it has played.
    now: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for media since this time.
    Buffering(Instant),
    /// It plays.
    Playing,
    /// Playback ended at this time.
    Finished(Instant),
}

impl Player {
    /// A player of a video of this `duration`, which waits since `start`.
    pub fn new(startup: Span, duration: Span, start: Instant) -> Self {
        Self {
            start,
            startup,
            missing: duration,
            state: State::Buffering(start),
            buffer: Span::ZERO,
            first_frame: None,
            stalls: Samples::default(),
            levels: Vec::new(),
            now: start,
        }
    }

    /// Plays until `now`.
    pub fn advance(&mut self, now: Instant) {
        if let Some(empty) = self.empty()
            && empty <= now
        {
            self.record_levels(empty);
            self.buffer = Span::ZERO;
            self.now = empty;
            self.state = if self.missing.is_zero() { State::Finished(empty) } else { State::Buffering(empty) };
        }
        self.record_levels(now);
        if self.state == State::Playing {
            self.buffer = self.buffer.saturating_sub(now.since(self.now));
        }
        self.now = now;
    }

    /// A segment of this much media is complete.
    pub fn receive(&mut self, now: Instant, media: Span) {
        self.advance(now);
        self.buffer += media;
        self.missing = self.missing.saturating_sub(media);
        if let State::Buffering(since) = self.state
            && (self.buffer >= self.startup || self.missing.is_zero())
        {
            match self.first_frame {
                Some(_) => self.stalls.add(now.since(since)),
                None => self.first_frame = Some(now),
            }
            self.state = State::Playing;
        }
    }

    /// When the buffer becomes empty; `None` while the player waits.
    fn empty(&self) -> Option<Instant> {
        (self.state == State::Playing).then(|| self.now + self.buffer)
    }

    /// When playback stalls or ends, if no segment arrives before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.empty()
    }

    /// Media that have arrived and were not played, at the last call of [`Self::advance`].
    pub const fn buffer(&self) -> Span {
        self.buffer
    }

    /// When playback began.
    pub const fn first_frame(&self) -> Option<Instant> {
        self.first_frame
    }

    /// When playback ended.
    pub const fn finished(&self) -> Option<Instant> {
        match self.state {
            State::Finished(at) => Some(at),
            _ => None,
        }
    }

    /// Stalls that are over.
    pub const fn stalls(&self) -> &Samples {
        &self.stalls
    }

    /// A stall that is not over, by `now`.
    pub fn stalled(&self, now: Instant) -> Option<Span> {
        match self.state {
            State::Buffering(since) if self.first_frame.is_some() => Some(now.since(since)),
            _ => None,
        }
    }

    /// The buffer at every [`LEVEL_INTERVAL`] from the start until playback ended.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Records the levels up to `until`. The state has not changed since the last one.
    fn record_levels(&mut self, until: Instant) {
        let playing = match self.state {
            State::Finished(_) => return,
            State::Buffering(_) => false,
            State::Playing => true,
        };
        let reached = until.since(self.start).as_nanos() / LEVEL_INTERVAL.as_nanos();
        while (self.levels.len() as u64) <= reached {
            let at = self.start + LEVEL_INTERVAL * self.levels.len() as u64;
            let played = if playing { at.since(self.now) } else { Span::ZERO };
            self.levels.push(Level { media: self.buffer.saturating_sub(played), playing });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn playback_starts_stalls_and_ends() {
        let secs = Span::from_secs;
        let mut player = Player::new(secs(4), secs(10), at(0));
        player.receive(at(1500), secs(2));
        assert_eq!((player.first_frame(), player.next_wakeup()), (None, None));
        player.receive(at(2500), secs(2));
        assert_eq!((player.first_frame(), player.next_wakeup()), (Some(at(2500)), Some(at(6500))));
        player.receive(at(4500), secs(2));
        assert_eq!(player.buffer(), secs(4));
        // Empty at 8.5 s; two seconds do not suffice at 10 s, the end of the video does at 11 s.
        player.receive(at(10_000), secs(2));
        assert_eq!(player.stalled(at(10_000)), Some(Span::from_millis(1500)));
        player.receive(at(11_000), secs(2));
        assert_eq!(player.stalls().iter().collect::<Vec<_>>(), [Span::from_millis(2500)]);
        player.advance(at(20_000));
        assert_eq!(player.finished(), Some(at(15_000)));
        let levels: Vec<(u64, bool)> =
            player.levels().iter().map(|level| (level.media.as_nanos() / 1_000_000, level.playing)).collect();
        let waits = [0, 0, 2000].map(|media| (media, false));
        let plays = [3500, 2500, 3500, 2500, 1500, 500].map(|media| (media, true));
        let stall = [(0, false), (0, false)];
        let last = [4000, 3000, 2000, 1000, 0].map(|media| (media, true));
        assert_eq!(levels[..3], waits);
        assert_eq!(levels[3..9], plays);
        assert_eq!(levels[9..11], stall);
        assert_eq!(levels[11..], [vec![(2000, false)], last[1..].to_vec()].concat()[..]);
    }
}
