//! The sending side of a station: its window, and what is to be sent again.

use std::collections::VecDeque;

use airpath_core::Instant;

use super::{Information, Settings};

/// Frames that are not acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Sending {
    /// V(A): the first that is not acknowledged.
    acknowledged: u64,
    /// That one and those behind it.
    frames: VecDeque<Sent>,
    /// How many of them are to be sent again.
    wanted: u32,
    /// When the acknowledgement timer runs out.
    timer: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    octets: u32,
    is_wanted: bool,
}

impl Sending {
    /// Whether anything is not acknowledged.
    pub fn is_outstanding(&self) -> bool {
        !self.frames.is_empty()
    }

    /// When the acknowledgement timer runs out.
    pub const fn timer(&self) -> Option<Instant> {
        self.timer
    }

    /// The next information frame: one that is wanted again, the first of them, or else a new one.
    pub fn next(&mut self, now: Instant, waiting: u64, settings: &Settings) -> Option<Information> {
        let information = self.repeat().or_else(|| self.cut(waiting, settings))?;
        self.timer = Some(now + settings.acknowledgement_timer);
        Some(information)
    }

    fn repeat(&mut self) -> Option<Information> {
        if self.wanted == 0 {
            return None;
        }
        let index = self.frames.iter().position(|frame| frame.is_wanted)?;
        let frame = &mut self.frames[index];
        frame.is_wanted = false;
        self.wanted -= 1;
        Some(Information { number: self.acknowledged + index as u64, octets: frame.octets, repeated: true })
    }

    fn cut(&mut self, waiting: u64, settings: &Settings) -> Option<Information> {
        if waiting == 0 || self.frames.len() >= settings.window as usize {
            return None;
        }
        let octets = waiting.min(u64::from(settings.payload)) as u32;
        let number = self.acknowledged + self.frames.len() as u64;
        self.frames.push_back(Sent { octets, is_wanted: false });
        Some(Information { number, octets, repeated: false })
    }

    /// All before `next` have arrived.
    pub fn acknowledge(&mut self, next: u64) {
        while self.acknowledged < next
            && let Some(frame) = self.frames.pop_front()
        {
            self.wanted -= u32::from(frame.is_wanted);
            self.acknowledged += 1;
        }
        if self.frames.is_empty() {
            self.timer = None;
        }
    }

    /// All that are not acknowledged are to be sent again.
    pub fn go_back(&mut self) {
        self.frames.iter_mut().for_each(|frame| frame.is_wanted = true);
        self.wanted = self.frames.len() as u32;
        // It runs again from the first that is sent.
        self.timer = None;
    }

    /// This one is to be sent again.
    pub fn want(&mut self, now: Instant, number: u64, settings: &Settings) {
        let index = number.checked_sub(self.acknowledged).map(|index| index as usize);
        if let Some(frame) = index.and_then(|index| self.frames.get_mut(index))
            && !frame.is_wanted
        {
            frame.is_wanted = true;
            self.wanted += 1;
            // The peer is there: its request arrives before the link is doubted.
            self.timer = Some(now + settings.acknowledgement_timer);
        }
    }
}
