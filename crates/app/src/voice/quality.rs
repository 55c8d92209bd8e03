//! Figures of one direction of a call, from both ends.

use airpath_core::{Direction, Span};

use super::codec::{FrameKind, LOOK_AHEAD};
use super::emodel::{Path, Rating, rate};
use super::end::{End, Fate};
use super::{Session, codec};

/// Frames in a row that concealment bridges with fading speech: the output is silent after 320 ms
/// at most (TS 46.011 §3, recalled). Later frames of the row are muted.
pub const CONCEALED: u32 = 16;

/// Figures of one direction of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// Speech frames that the sender encoded.
    pub frames: u64,
    /// Those that did not arrive.
    pub lost_frames: u64,
    /// Those that arrived after their playout.
    pub late_frames: u64,
    /// Frames that were not played out and that concealment bridged.
    pub concealed_frames: u64,
    /// Frames that were not played out and were beyond concealment.
    pub muted_frames: u64,
    /// Bursts: frames in a row, of one talk spurt, that were not played out.
    pub bursts: u64,
    /// Frames in the longest.
    pub longest_burst: u64,
    /// Talk spurts that the sender encoded.
    pub spurts: u64,
    /// Mean time from mouth to ear of the frames that were played out.
    pub mouth_to_ear: Option<Span>,
    /// The longest.
    pub mouth_to_ear_max: Option<Span>,
}

impl Quality {
    /// The figures of the direction from `sender` to `receiver`. Frames whose playout is still to
    /// come at the end count as lost.
    pub fn of(sender: &End, receiver: &End) -> Self {
        let mut quality = Self::default();
        let mut row = 0;
        let mut before = FrameKind::NoData;
        for (frame, kind) in sender.frames().iter().enumerate() {
            let follows = std::mem::replace(&mut before, *kind) == FrameKind::Speech;
            if *kind != FrameKind::Speech {
                row = 0;
                continue;
            }
            quality.frames += 1;
            quality.spurts += u64::from(!follows);
            match receiver.fates().get(frame).copied().unwrap_or_default() {
                Fate::InTime => {
                    row = 0;
                    continue;
                }
                Fate::Late => quality.late_frames += 1,
                Fate::Missing => quality.lost_frames += 1,
            }
            row += 1;
            quality.bursts += u64::from(row == 1);
            quality.longest_burst = quality.longest_burst.max(row.into());
            if row <= CONCEALED {
                quality.concealed_frames += 1;
            } else {
                quality.muted_frames += 1;
            }
        }
        let spurts = || receiver.buffer().spurts().iter().filter(|spurt| spurt.in_time > 0);
        let played: u64 = spurts().map(|spurt| u64::from(spurt.in_time)).sum();
        let sum: u128 = spurts().map(|spurt| u128::from(spurt.delay.as_nanos()) * u128::from(spurt.in_time)).sum();
        // The encoder needs speech after the frame, which is thus captured later than it ends.
        quality.mouth_to_ear = (played > 0).then(|| Span::from_nanos((sum / u128::from(played)) as u64) + LOOK_AHEAD);
        quality.mouth_to_ear_max = spurts().map(|spurt| spurt.delay + LOOK_AHEAD).max();
        quality
    }

    /// Speech frames that were not played out.
    pub const fn not_played(&self) -> u64 {
        self.lost_frames + self.late_frames
    }

    /// Share of frames that were not played out; `None` without frames.
    pub fn loss(&self) -> Option<f64> {
        (self.frames > 0).then(|| self.not_played() as f64 / self.frames as f64)
    }

    /// BurstR (G.107 §7.5): the mean length of bursts, relative to that of random losses with the
    /// same share, 1 / (1 − loss). At least 1.
    pub fn burst_ratio(&self) -> f64 {
        let (Some(loss), true) = (self.loss(), self.bursts > 0) else { return 1.0 };
        (self.not_played() as f64 / self.bursts as f64 * (1.0 - loss)).max(1.0)
    }

    /// The rating of this direction, where `reverse` are the figures of the other one. `None` if
    /// nothing was played out in a direction.
    pub fn rating(&self, reverse: &Self, session: &Session) -> Option<Rating> {
        let milliseconds = |delay: Span| delay.as_secs_f64() * 1e3;
        let (delay, back) = (milliseconds(self.mouth_to_ear?), milliseconds(reverse.mouth_to_ear?));
        let path = Path {
            delay_ms: delay,
            loop_ms: delay + back,
            loss: self.loss()?,
            burst_ratio: self.burst_ratio(),
            advantage: session.settings.advantage,
        };
        Some(rate(&path, &session.settings.codec.impairment()))
    }
}

/// A talk spurt of a direction, as its receiver played it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpurtFigures {
    /// From the start of the call to the capture of its first frame that arrived.
    pub start: Span,
    /// From mouth to ear.
    pub mouth_to_ear: Span,
    /// Speech frames from its first up to the next talk spurt.
    pub frames: u32,
    /// Those that did not arrive.
    pub lost_frames: u32,
    /// Those that arrived after their playout.
    pub late_frames: u32,
}

/// The talk spurts of `direction`, in which `sender` sends to `receiver`.
pub fn spurts<'a>(
    session: &'a Session,
    direction: Direction,
    sender: &'a End,
    receiver: &'a End,
) -> impl Iterator<Item = SpurtFigures> + 'a {
    let all = receiver.buffer().spurts();
    all.iter().enumerate().map(move |(index, spurt)| {
        let end = all.get(index + 1).map_or(sender.frames().len(), |next| next.first as usize);
        let frames = sender.frames().get(spurt.first as usize..end).unwrap_or_default();
        let frames = frames.iter().filter(|kind| **kind == FrameKind::Speech).count() as u32;
        SpurtFigures {
            start: session.capture_time(direction, spurt.first),
            mouth_to_ear: spurt.delay + codec::LOOK_AHEAD,
            frames,
            lost_frames: frames.saturating_sub(spurt.in_time + spurt.late),
            late_frames: spurt.late,
        }
    })
}
