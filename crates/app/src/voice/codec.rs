//! Speech codecs: frames, impairment factors, and discontinuous transmission.

use airpath_core::Span;
use serde::{Deserialize, Serialize};

/// Duration of a frame of AMR and AMR-WB.
pub const FRAME: Span = Span::from_millis(20);

/// Speech after a frame that its encoder needs (TS 26.090 §4.2, TS 26.190 §4.2).
pub const LOOK_AHEAD: Span = Span::from_millis(5);

/// A speech codec in one of its modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Codec {
    /// AMR at 12.2 kbit/s.
    #[default]
    #[serde(rename = "amr")]
    Amr,
    /// AMR-WB at 12.65 kbit/s.
    #[serde(rename = "amr-wb")]
    AmrWb,
}

/// The scale of an E-model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// ITU-T G.107: R is 93.2 at best.
    Narrowband,
    /// ITU-T G.107.1: R is 129 at best.
    Wideband,
}

/// Impairment of a codec in the E-model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairment {
    /// Which model they are for.
    pub scale: Scale,
    /// Equipment impairment factor Ie without loss.
    pub equipment: f64,
    /// Packet-loss robustness factor Bpl.
    pub robustness: f64,
}

impl Codec {
    /// The name under which it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amr => "amr",
            Self::AmrWb => "amr-wb",
        }
    }

    /// Rate of the RTP clock (RFC 4867 §4.1).
    pub const fn clock(self) -> u32 {
        match self {
            Self::Amr => 8_000,
            Self::AmrWb => 16_000,
        }
    }

    /// Units of the RTP clock in a frame.
    pub const fn ticks(self) -> u32 {
        self.clock() / 50
    }

    /// Bits of a frame (TS 26.101 §4.4 and TS 26.201 §4.4; RFC 4867 §3.6).
    pub const fn bits(self, frame: FrameKind) -> u32 {
        match (self, frame) {
            (_, FrameKind::NoData) => 0,
            (Self::Amr, FrameKind::Speech) => 244,
            (Self::AmrWb, FrameKind::Speech) => 253,
            (Self::Amr, FrameKind::Sid) => 39,
            (Self::AmrWb, FrameKind::Sid) => 40,
        }
    }

    /// Frame type index of a frame (TS 26.101 table 1a, TS 26.201 table 1a).
    pub const fn frame_type(self, frame: FrameKind) -> u8 {
        match (self, frame) {
            (_, FrameKind::NoData) => 15,
            (Self::Amr, FrameKind::Speech) => 7,
            (Self::AmrWb, FrameKind::Speech) => 2,
            (Self::Amr, FrameKind::Sid) => 8,
            (Self::AmrWb, FrameKind::Sid) => 9,
        }
    }

    /// The impairment of G.113 (09/2024). AMR has no values of its own there. Its mode of
    /// 12.2 kbit/s is the codec GSM EFR (TS 26.071 §4), whose values are in tables I.1 and I.4.
    /// Those of AMR-WB are in tables IV.3 and IV.4, both for two ears: there is no Bpl for one.
    pub const fn impairment(self) -> Impairment {
        match self {
            Self::Amr => Impairment { scale: Scale::Narrowband, equipment: 5.0, robustness: 10.0 },
            Self::AmrWb => Impairment { scale: Scale::Wideband, equipment: 20.0, robustness: 4.3 },
        }
    }
}

/// What an encoder has made of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameKind {
    /// Speech.
    Speech,
    /// Comfort noise parameters: SID_FIRST or SID_UPDATE.
    Sid,
    /// Nothing is transmitted.
    #[default]
    NoData,
}

/// The encoder's discontinuous transmission (TS 26.093 §5.1, TS 26.193 §5.1). The counters are
/// those of the reference code (TS 26.073), so that hangover and SID frames come at its times.
#[derive(Clone, Copy, Debug)]
pub struct Encoder {
    dtx: bool,
    /// Frames since comfort noise was last computed.
    elapsed: u32,
    /// Frames of hangover that are left.
    hangover: u32,
    /// Frames until the next SID_UPDATE.
    until_update: u32,
    /// Whether the last frame was speech.
    speech: bool,
}

impl Encoder {
    /// Frames after a talk spurt that are still coded as speech (TS 26.093 §5.1.2).
    const HANGOVER: u32 = 7;
    /// Shorter talk spurts after comfort noise have no hangover.
    const LEAST_ELAPSED: u32 = 24 + Self::HANGOVER - 1;
    /// Frames from SID_FIRST to the first SID_UPDATE (TS 26.093 §5.1.2).
    const FIRST_UPDATE: u32 = 3;
    /// Frames from one SID_UPDATE to the next.
    const UPDATE: u32 = 8;

    /// An encoder at the start of a call.
    pub const fn new(dtx: bool) -> Self {
        // The start of the reference code: as after long speech.
        Self { dtx, elapsed: Self::LEAST_ELAPSED, hangover: Self::HANGOVER, until_update: Self::UPDATE, speech: true }
    }

    /// Encodes the next frame, in which the party talks or not.
    pub fn next(&mut self, talks: bool) -> FrameKind {
        self.elapsed = self.elapsed.saturating_add(1);
        let speech = if talks || !self.dtx {
            self.hangover = Self::HANGOVER;
            true
        } else if self.hangover == 0 {
            self.elapsed = 0;
            false
        } else {
            self.hangover -= 1;
            self.elapsed + self.hangover >= Self::LEAST_ELAPSED
        };
        let before = std::mem::replace(&mut self.speech, speech);
        if speech {
            self.until_update = Self::UPDATE;
            return FrameKind::Speech;
        }
        if before {
            self.until_update = Self::FIRST_UPDATE;
            return FrameKind::Sid;
        }
        self.until_update -= 1;
        if self.until_update == 0 {
            self.until_update = Self::UPDATE;
            return FrameKind::Sid;
        }
        FrameKind::NoData
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(spurts: &[(bool, usize)]) -> String {
        let mut encoder = Encoder::new(true);
        let sign = |frame| match frame {
            FrameKind::Speech => 'S',
            FrameKind::Sid => 'D',
            FrameKind::NoData => '-',
        };
        let talks = spurts.iter().flat_map(|(talks, count)| std::iter::repeat_n(*talks, *count));
        talks.map(|talks| sign(encoder.next(talks))).collect()
    }

    #[test]
    fn a_pause_has_hangover_then_sid_first_and_updates() {
        // TS 26.093 §5.1.2: seven frames of hangover, SID_FIRST, the third frame after it is a
        // SID_UPDATE, then every eighth.
        let made = frames(&[(true, 40), (false, 30)]);
        assert_eq!(&made[40..], "SSSSSSSD--D-------D-------D---");
    }

    #[test]
    fn a_short_talk_spurt_after_comfort_noise_has_no_hangover() {
        let made = frames(&[(true, 40), (false, 30), (true, 10), (false, 10)]);
        assert_eq!(&made[70..], "SSSSSSSSSSD--D------");
        let made = frames(&[(true, 40), (false, 30), (true, 24), (false, 10)]);
        assert_eq!(&made[94..], "SSSSSSSD--", "24 frames have it again");
    }

    #[test]
    fn without_dtx_every_frame_is_speech() {
        let mut encoder = Encoder::new(false);
        assert!((0..100).all(|_| encoder.next(false) == FrameKind::Speech));
    }
}
