//! Tracks: frames with their sizes and times, in groups.

use std::sync::Arc;

use airpath_app::streaming::Video;
use airpath_core::{Bitrate, Span};
use serde::{Deserialize, Serialize};

/// The namespace of the tracks.
pub const NAMESPACE: &str = "live";

/// A track. Each frame is an object, and each group is one subgroup.
#[derive(Clone, Debug)]
pub struct Track {
    /// Its name in the namespace.
    pub name: &'static str,
    /// Subscriber priority: lower numbers first.
    pub priority: u8,
    frames: Vec<Frame>,
    /// Frames of a group.
    group: u64,
    video: Option<Arc<Video>>,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When it is captured, from the start of the track on.
    pub time: Span,
    /// Its bytes.
    pub size: u32,
}

/// Audio with frames of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Audio {
    /// Its rate.
    pub rate: Bitrate,
    /// Duration of a frame.
    pub frame: Span,
    /// Frames of a group.
    pub group: u32,
}

/// Opus at a constant rate: wideband speech at 16 to 20 kbit/s in frames of 20 ms (RFC 6716 §2.1.1
/// and §2.1.4). Groups of a second are an assumption.
impl Default for Audio {
    fn default() -> Self {
        Self { rate: Bitrate::from_bps(20_000), frame: Span::from_millis(20), group: 50 }
    }
}

impl Audio {
    /// Bytes of a frame.
    pub const fn frame_bytes(&self) -> u64 {
        self.rate.bytes_in(self.frame).get()
    }
}

impl Track {
    /// Most groups of a track: their order is a part of the priority of a stream.
    pub const MOST_GROUPS: u64 = (1 << 15) - 1;

    /// The track of a video whose groups have `group` frames.
    pub fn video(video: Video, group: u32) -> Self {
        let frames = video.frames().iter().map(|frame| Frame { time: frame.time, size: frame.size }).collect();
        Self { name: "video", priority: 128, frames, group: group.into(), video: Some(Arc::new(video)) }
    }

    /// The track of audio of this duration. It is sent before video.
    pub fn audio(audio: &Audio, duration: Span) -> Self {
        let count = duration.as_nanos().div_ceil(audio.frame.as_nanos());
        let size = audio.frame_bytes() as u32;
        let frames = (0..count).map(|number| Frame { time: audio.frame * number, size }).collect();
        Self { name: "audio", priority: 64, frames, group: audio.group.into(), video: None }
    }

    /// The frames, in the order of capture.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The video, of a track that is one.
    pub const fn as_video(&self) -> Option<&Arc<Video>> {
        self.video.as_ref()
    }

    /// Number of groups.
    pub const fn groups(&self) -> u64 {
        (self.frames.len() as u64).div_ceil(self.group)
    }

    /// The frames of a group.
    pub fn frames_of(&self, group: u64) -> &[Frame] {
        let most = self.frames.len() as u64;
        let [start, end] = [group, group.saturating_add(1)].map(|group| group.saturating_mul(self.group).min(most));
        &self.frames[start as usize..end as usize]
    }

    /// Number of the frame that is object `object` of group `group`, if there is one.
    pub fn frame_number(&self, group: u64, object: u64) -> Option<usize> {
        let frames = self.frames_of(group).len() as u64;
        (object < frames).then(|| (group * self.group + object) as usize)
    }
}
