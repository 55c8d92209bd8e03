//! The player of a client: its playout buffer, when it starts and stalls, and which frames it
//! displays.

use std::sync::Arc;

use airpath_core::{Instant, Span};

use super::Session;
use crate::samples::Samples;

/// The player.
#[derive(Clone, Debug)]
pub struct Player {
    session: Arc<Session>,
    start: Instant,
    state: State,
    /// Whether each packet has arrived.
    arrived: Vec<bool>,
    /// Packets of each frame that are still to come.
    missing: Vec<u32>,
    /// Whether each frame was complete when it was to be displayed.
    complete: Vec<bool>,
    /// The packet with the highest number that has arrived.
    highest: Option<u32>,
    /// The time of display of the latest frame that is complete.
    newest: Span,
    /// Number of the next frame, in the order of display.
    next: usize,
    /// No further packet is expected.
    ended: bool,
    first_frame: Option<Instant>,
    stalls: Samples,
    levels: Vec<Level>,
}

/// What the player does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for media since this time.
    Buffering(Instant),
    /// It displays frames: at this instant the position in the video was this.
    Playing(Instant, Span),
    /// Playback ended at this time.
    Finished(Instant),
}

/// The buffer at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Media from the position of playback to the latest complete frame.
    pub media: Span,
    /// Whether frames are displayed.
    pub playing: bool,
}

/// What a packet was to the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It came before its frame was due.
    InTime,
    /// Its frame was to be displayed before.
    Late,
    /// It had come before.
    Duplicate,
}

/// Time from one level of the buffer that is recorded to the next.
pub const LEVEL_INTERVAL: Span = Span::from_secs(1);

impl Player {
    /// A player that waits for its first frame since `start`.
    pub fn new(session: Arc<Session>, start: Instant) -> Self {
        let frames = session.video.frames().len();
        let mut missing = vec![0; frames];
        for (pair, frame) in session.first_packets.windows(2).zip(session.video.sending_order()) {
            missing[*frame as usize] = pair[1] - pair[0];
        }
        Self {
            start,
            state: State::Buffering(start),
            arrived: vec![false; session.packets() as usize],
            missing,
            complete: vec![false; frames],
            highest: None,
            newest: Span::ZERO,
            next: 0,
            ended: false,
            first_frame: None,
            stalls: Samples::default(),
            levels: Vec::new(),
            session,
        }
    }

    /// Packet `number` arrives.
    pub fn receive(&mut self, now: Instant, number: u32) -> Arrival {
        self.advance(now);
        if std::mem::replace(&mut self.arrived[number as usize], true) {
            return Arrival::Duplicate;
        }
        self.highest = self.highest.max(Some(number));
        let frame = self.session.video.sending_order()[self.session.place_of(number)] as usize;
        self.missing[frame] -= 1;
        if frame < self.next {
            // A later packet may pass the frame that is waited for.
            self.resume(now);
            return Arrival::Late;
        }
        if self.missing[frame] == 0 {
            self.newest = self.newest.max(self.session.video.frames()[frame].time);
        }
        self.resume(now);
        Arrival::InTime
    }

    /// No further packet will come: what has arrived is displayed.
    pub fn end(&mut self, now: Instant) {
        self.advance(now);
        self.ended = true;
        self.resume(now);
    }

    /// Displays the frames that are due.
    pub fn advance(&mut self, now: Instant) {
        while let Some(due) = self.next_wakeup().filter(|due| *due <= now) {
            self.record_levels(due);
            if self.next == self.complete.len() {
                self.state = State::Finished(due);
                return;
            }
            let complete = self.missing[self.next] == 0;
            if !complete && !self.is_passed(self.next) {
                self.state = State::Buffering(due);
                break;
            }
            if complete {
                self.first_frame.get_or_insert(due);
            }
            self.complete[self.next] = complete;
            self.next += 1;
        }
        self.record_levels(now);
    }

    /// When the next frame is due, or playback ends; `None` while the player waits for media.
    pub fn next_wakeup(&self) -> Option<Instant> {
        let State::Playing(since, position) = self.state else { return None };
        let video = &self.session.video;
        let time = video.frames().get(self.next).map_or(video.duration(), |frame| frame.time);
        Some(since + time.saturating_sub(position))
    }

    /// The position in the video at `now`, and whether it advances.
    pub fn position(&self, now: Instant) -> (Span, bool) {
        match self.state {
            State::Playing(since, position) => (position + now.since(since), true),
            _ => (self.session.video.frames().get(self.next).map_or(self.newest, |frame| frame.time), false),
        }
    }

    /// Media in the buffer at `now`: from the position to the latest complete frame.
    pub fn level(&self, now: Instant) -> Span {
        self.newest.saturating_sub(self.position(now).0)
    }

    /// Number of the first packet of the next frame; `None` at the end of the video.
    pub fn next_packet(&self) -> Option<u32> {
        let place = self.session.places.get(self.next)?;
        Some(self.session.first_packets[*place as usize])
    }

    /// Whether the frame of packet `number` was displayed or skipped.
    pub fn is_due(&self, number: u32) -> bool {
        self.session.video.sending_order()[self.session.place_of(number)] < self.next as u32
    }

    /// When playback ended.
    pub const fn finished(&self) -> Option<Instant> {
        match self.state {
            State::Finished(at) => Some(at),
            _ => None,
        }
    }

    /// When the first complete frame was displayed.
    pub const fn first_frame(&self) -> Option<Instant> {
        self.first_frame
    }

    /// Stalls that are over: from the time at which a frame was due to the time at which it was
    /// displayed or skipped.
    pub const fn stalls(&self) -> &Samples {
        &self.stalls
    }

    /// A stall that is not over, by `now`.
    pub fn stalled(&self, now: Instant) -> Option<Span> {
        match self.state {
            State::Buffering(since) if self.next > 0 => Some(now.since(since)),
            _ => None,
        }
    }

    /// Frames that were due so far, in the order of display: whether each was complete.
    pub fn displayed(&self) -> &[bool] {
        &self.complete[..self.next]
    }

    /// Whether each packet has arrived, by its number.
    pub fn arrived(&self) -> &[bool] {
        &self.arrived
    }

    /// The buffer at every [`LEVEL_INTERVAL`] from the start until playback ended.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Whether a packet that is sent after all of `frame` has arrived, or none will come. Its
    /// missing packets are then lost, and are not waited for.
    fn is_passed(&self, frame: usize) -> bool {
        let Session { first_packets, places, .. } = &*self.session;
        let after = first_packets[places[frame] as usize + 1];
        self.ended || self.highest.is_some_and(|highest| highest >= after)
    }

    /// Ends a wait if enough media are there, or none will come, and the next frame is complete or
    /// passed: otherwise playback would stall again at once.
    fn resume(&mut self, now: Instant) {
        let State::Buffering(since) = self.state else { return };
        if self.missing.get(self.next).is_some_and(|missing| *missing > 0) && !self.is_passed(self.next) {
            return;
        }
        let Self { session, next, newest, .. } = self;
        let position = session.video.frames()[*next].time;
        let all = self.ended || self.highest.is_some_and(|highest| highest + 1 == session.packets());
        if !all && newest.saturating_sub(position) < session.settings.buffer {
            return;
        }
        if *next > 0 {
            self.stalls.add(now.since(since));
        }
        self.state = State::Playing(now, position);
    }

    /// Records the levels up to `now`. The state has not changed since the last one.
    fn record_levels(&mut self, now: Instant) {
        let reached = match self.state {
            State::Finished(_) => return,
            _ => now.since(self.start).as_nanos() / LEVEL_INTERVAL.as_nanos(),
        };
        while (self.levels.len() as u64) <= reached {
            let at = self.start + LEVEL_INTERVAL * self.levels.len() as u64;
            let (position, playing) = self.position(at);
            self.levels.push(Level { media: self.newest.saturating_sub(position), playing });
        }
    }
}
