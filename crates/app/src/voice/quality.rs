//! Figures of one direction of a call, from both ends.

use airpath_core::Span;

use super::Session;
use super::codec::{FrameKind, LOOK_AHEAD};
use super::emodel::{LEAST_BURST_LOSS, MOST_BURST_RATIO, Path, Rating, rate};
use super::end::{End, PlayoutStatus};

/// Consecutive frames that concealment bridges with fading speech: the output is silent after
/// 320 ms at most (TS 46.011 §3, recalled). Later ones are muted.
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
    /// Bursts: consecutive frames, of one talk spurt, that were not played out.
    pub bursts: u64,
    /// Frames in the longest.
    pub longest_burst: u64,
    /// Talk spurts that the sender encoded.
    pub spurts: u64,
    /// Mean time from mouth to ear of the frames that were played out.
    pub mouth_to_ear: Option<Span>,
    /// The longest.
    pub mouth_to_ear_max: Option<Span>,
    /// Frames in a packet, which are lost together.
    pub frames_per_packet: u32,
}

impl Quality {
    /// The figures of the direction from `sender` to `receiver`.
    pub fn of(sender: &End, receiver: &End) -> Self {
        let mut quality = Self { frames_per_packet: sender.frames_per_packet(), ..Self::default() };
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
            match receiver.statuses().get(frame).copied().unwrap_or_default() {
                PlayoutStatus::InTime => {
                    row = 0;
                    continue;
                }
                PlayoutStatus::Late => quality.late_frames += 1,
                PlayoutStatus::Missing | PlayoutStatus::Noise => quality.lost_frames += 1,
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
    /// same share, 1 / (1 − loss). The length is counted in packets, because the frames of a packet
    /// are lost together. At least 1.
    pub fn burst_ratio(&self) -> f64 {
        let (Some(loss), true) = (self.loss(), self.bursts > 0) else { return 1.0 };
        let packets = self.not_played() as f64 / f64::from(self.frames_per_packet);
        (packets / self.bursts as f64 * (1.0 - loss)).max(1.0)
    }

    /// Whether the formula of Ie-eff is valid for loss and burst ratio. If not, the rating is that
    /// of the limits of its range.
    pub fn is_within_g107(&self) -> bool {
        self.loss().is_none_or(|loss| loss < LEAST_BURST_LOSS) || self.burst_ratio() <= MOST_BURST_RATIO
    }

    /// Whether nothing was played out of speech that was encoded. Such a direction has R = 0 and
    /// MOS 1.
    pub const fn is_silent(&self) -> bool {
        self.frames > 0 && self.mouth_to_ear.is_none()
    }

    /// The rating of this direction, where `reverse` are the figures of the other one. `None` if
    /// nothing was played out. If nothing was in the other direction, equal delays are assumed.
    pub fn rating(&self, reverse: &Self, session: &Session) -> Option<Rating> {
        let milliseconds = |delay: Span| delay.as_secs_f64() * 1e3;
        let own = self.mouth_to_ear?;
        let (delay, back) = (milliseconds(own), milliseconds(reverse.mouth_to_ear.unwrap_or(own)));
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
