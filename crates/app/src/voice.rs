//! Voice: a call of two directions over RTP (RFC 3550), and its quality by the E-model.
//!
//! Both ends have the [`Session`]: settings and first numbers, which real ends exchange when the
//! call is set up. That set-up is not modelled. Speech has no contents: the conversation decides
//! when each party talks, and an encoder with discontinuous transmission makes frames of it.
//!
//! | module | contents |
//! | --- | --- |
//! | [`conversation`] | talk spurts and pauses of both parties (ITU-T P.59) |
//! | [`codec`] | frame sizes, impairment factors, the encoder with discontinuous transmission |
//! | [`payload`] | RTP payloads of AMR and AMR-WB (RFC 4867) |
//! | [`jitter_buffer`] | when frames are played out |
//! | [`end`] | one end of a call: sends its frames, receives those of the other |
//! | [`emodel`] | the rating R and the mean opinion score (ITU-T G.107 and G.107.1) |
//! | [`quality`] | figures of a direction |

pub mod codec;
pub mod conversation;
pub mod emodel;
pub mod end;
pub mod jitter_buffer;
pub mod payload;
pub mod quality;

use std::borrow::Cow;

use airpath_core::{Direction, RandomStream, Span};
use serde::{Deserialize, Serialize};

pub use codec::Codec;
pub use end::{Arrival, Datagram, End};
pub use jitter_buffer::Playout;
pub use quality::Quality;

use crate::phase::Phase;

/// Settings of a call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The codec of both parties.
    pub codec: Codec,
    /// Duration of the call.
    pub duration: Span,
    /// Whether only comfort noise is transmitted in pauses (discontinuous transmission).
    pub dtx: bool,
    /// Speech frames in a packet.
    pub frames_per_packet: u32,
    /// How the jitter buffer selects its depth.
    pub jitter_buffer: Playout,
    /// Depth of a fixed jitter buffer; least depth of an adaptive one in the first 100 packets.
    pub depth: Span,
    /// Greatest depth of an adaptive jitter buffer; by default [`Self::MAX_DEPTH`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<Span>,
    /// Advantage factor A of the E-model.
    pub advantage: f64,
    /// Time to wait for the last packets.
    pub timeout: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            codec: Codec::Amr,
            duration: Span::from_secs(120),
            dtx: true,
            frames_per_packet: 1,
            jitter_buffer: Playout::Adaptive,
            depth: Span::from_millis(60),
            max_depth: None,
            advantage: 0.0,
            timeout: Span::from_secs(2),
        }
    }
}

/// A setting that is out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct SettingError {
    /// Name of the setting.
    pub field: &'static str,
    /// What is wrong, and what is allowed.
    pub message: Cow<'static, str>,
}

impl Settings {
    /// Most frames in a packet: 240 ms, the limit of TS 26.114 §7.4.2.
    pub const MOST_FRAMES: u32 = 12;
    /// Longest call: a day. Without DTX its frames and delays take 80 MB at each end.
    const LONGEST: Span = Span::from_secs(24 * 3600);
    /// Deepest jitter buffer, and longest wait for the last packets.
    const LONGEST_WAIT: Span = Span::from_secs(60);

    /// Default of `max_depth`.
    pub const MAX_DEPTH: Span = Span::from_millis(200);

    /// The greatest depth of an adaptive jitter buffer.
    pub fn greatest_depth(&self) -> Span {
        self.max_depth.unwrap_or(Self::MAX_DEPTH)
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |field, message: &'static str| Err(SettingError { field, message: message.into() });
        if !(Span::from_millis(20)..=Self::LONGEST).contains(&self.duration) {
            return wrong("duration", "a call lasts 20 ms to 1 day");
        }
        if !(1..=Self::MOST_FRAMES).contains(&self.frames_per_packet) {
            return wrong("frames_per_packet", "a packet has 1 to 12 frames");
        }
        if self.depth > Self::LONGEST_WAIT {
            return wrong("depth", "it is at most 60 s");
        }
        if self.max_depth > Some(Self::LONGEST_WAIT) {
            return wrong("max_depth", "it is at most 60 s");
        }
        let is_adaptive = self.jitter_buffer == Playout::Adaptive;
        if !is_adaptive && self.max_depth.is_some() {
            return wrong("max_depth", "a fixed jitter buffer has only `depth`; remove the key");
        }
        let (depth, max_depth) = (self.depth, self.greatest_depth());
        if is_adaptive && max_depth < depth {
            // The one that was written.
            return Err(match depth == Self::default().depth {
                true => SettingError {
                    field: "max_depth",
                    message: format!("{max_depth} is less than `depth`, {depth}").into(),
                },
                false => SettingError {
                    field: "depth",
                    message: format!("{depth} is more than `max_depth`, {max_depth}").into(),
                },
            });
        }
        if is_adaptive && !self.dtx {
            return wrong("dtx", "without it `jitter_buffer` is \"fixed\": an adaptive one changes only after a pause");
        }
        // G.107 §7.6: the greatest advantage factor.
        if !(0.0..=20.0).contains(&self.advantage) {
            return wrong("advantage", "it is 0 to 20: 5 for mobility in a building, 10 for a cellular network");
        }
        if self.timeout > Self::LONGEST_WAIT {
            return wrong("timeout", "it is at most 60 s");
        }
        Ok(())
    }

    /// Number of frames of each party.
    pub fn frames(&self) -> u32 {
        (self.duration.as_nanos() / codec::FRAME.as_nanos()) as u32
    }
}

/// A call, as both ends have it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its settings.
    pub settings: Settings,
    /// When each party talks.
    conversation: conversation::Conversation,
    /// The source of the packets of each direction: down, up.
    sources: [Source; 2],
}

/// First numbers of the packets of a direction, which are random (RFC 3550 §5.1).
#[derive(Clone, Copy, Debug)]
struct Source {
    ssrc: u32,
    sequence: u16,
    timestamp: u32,
    /// From the start of the call to the first frame.
    phase: Span,
}

impl Session {
    /// A call with first numbers and phases from `random`, and talk spurts from `speech`.
    ///
    /// # Panics
    /// If the settings are out of range ([`Settings::check`]).
    pub fn new(settings: Settings, mut random: RandomStream, speech: RandomStream) -> Self {
        assert!(settings.check().is_ok(), "the settings were checked");
        let [down, up] = [random.bits(), random.bits()];
        let numbers = random.bits();
        let mut phase = Phase::Random(random);
        let mut source = |ssrc: u32, bits: u64, timestamp: u32| Source {
            ssrc,
            sequence: (bits >> 32) as u16,
            timestamp,
            phase: phase.draw(codec::FRAME),
        };
        let ssrc = down as u32;
        // The sources of a session differ (RFC 3550 §8).
        let other = ssrc.wrapping_add(1 + (up as u32 >> 1));
        let sources = [source(ssrc, down, numbers as u32), source(other, up, (numbers >> 32) as u32)];
        Self { settings, conversation: conversation::Conversation::new(speech), sources }
    }

    const fn source(&self, direction: Direction) -> &Source {
        &self.sources[direction as usize]
    }
}

#[cfg(test)]
mod tests;
