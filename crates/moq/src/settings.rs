//! Settings of the media and of the session.

use airpath_app::streaming::{self, Generated};
use airpath_core::Span;
use airpath_scenario::ScenarioError;
use airpath_scenario::document::Node;
use airpath_scenario::error::{Origin, join};
use serde::{Deserialize, Serialize};

use crate::media::{Audio, Track};
use crate::message::GroupOrder;

/// Settings, which both ends have. Times without a source are assumptions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The video, without B frames. A group of pictures is a group of MoQ.
    pub video: Generated,
    /// The audio. It has the duration of the video.
    pub audio: Audio,
    /// Which group is sent first.
    pub group_order: GroupOrder,
    /// Age at which an object is no longer passed to QUIC (OBJECT_DELIVERY_TIMEOUT); zero for none.
    pub object_timeout: Span,
    /// Time from the end of a group until it is reset, if it was not acknowledged
    /// (SUBGROUP_DELIVERY_TIMEOUT); zero for none.
    pub subgroup_timeout: Span,
    /// Media that the player waits for at the start and after a pause.
    pub buffer: Span,
    /// Settings of QUIC. While a connection has media to send, its send window follows the
    /// congestion window; `send_window` is its upper bound.
    pub quic: airpath_quic::Config,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            video: Generated::default(),
            audio: Audio::default(),
            group_order: GroupOrder::default(),
            object_timeout: Span::ZERO,
            subgroup_timeout: Span::from_secs(2),
            buffer: Span::from_secs(1),
            quic: airpath_quic::Config::default(),
        }
    }
}

impl Settings {
    /// Longest time of a setting: a day.
    const LONGEST: Span = Span::from_secs(24 * 3600);
    /// Longest frame of audio.
    const LONGEST_FRAME: Span = Span::from_secs(1);

    /// The default settings with these values, each a dotted path and a TOML value.
    ///
    /// ```
    /// use airpath_moq::Settings;
    /// let sets = [("video.gop".to_owned(), "30".to_owned())];
    /// assert_eq!(Settings::read(&sets)?.video.gop, 30);
    /// # Ok::<(), airpath_scenario::ScenarioError>(())
    /// ```
    ///
    /// # Errors
    /// If a key is unknown, or a value is out of range.
    pub fn read(sets: &[(String, String)]) -> Result<Self, ScenarioError> {
        let mut node = Node::table(Origin::Default);
        for (path, value) in sets {
            node.set(path, value)?;
        }
        let settings: Self = node.read("")?;
        match settings.check() {
            Ok(_) => Ok(settings),
            Err((field, message)) => Err(ScenarioError::new(message, node.origin_of(&field).clone(), field)),
        }
    }

    /// The tracks.
    ///
    /// # Panics
    /// If a setting is out of range, which [`Self::read`] does not allow.
    pub fn tracks(&self) -> [Track; 2] {
        self.check().unwrap_or_else(|(field, message)| panic!("{field}: {message}"))
    }

    /// The tracks; or the first value that is out of range, and what is allowed.
    fn check(&self) -> Result<[Track; 2], (String, String)> {
        let wrong = |field: &str, message: &str| Err((field.to_owned(), message.to_owned()));
        if self.video.b_frames > 0 {
            return wrong("video.b_frames", "live video has no B frames here: set it to 0");
        }
        let video = self.video.video().map_err(|error| (join("video", error.field), error.message.to_owned()))?;
        if !(Span::from_millis(1)..=Self::LONGEST_FRAME).contains(&self.audio.frame) {
            return wrong("audio.frame", "a frame of audio lasts 1 ms to 1 s");
        }
        if !(1..=65_535).contains(&self.audio.frame_bytes()) {
            return wrong("audio.rate", "a frame of audio has 1 to 65535 bytes");
        }
        if self.audio.group == 0 {
            return wrong("audio.group", "a group has at least one frame");
        }
        for (field, timeout) in [("object_timeout", self.object_timeout), ("subgroup_timeout", self.subgroup_timeout)] {
            if timeout > Self::LONGEST || !timeout.as_nanos().is_multiple_of(1_000_000) {
                return wrong(
                    field,
                    "a delivery timeout is a whole number of milliseconds, at most a day; 0 s for none",
                );
            }
        }
        let player = streaming::Settings { buffer: self.buffer, ..streaming::Settings::default() };
        player.check_times().map_err(|error| (error.field.to_owned(), error.message.to_owned()))?;
        self.quic.check().map_err(|error| (join("quic", error.field), error.message.to_owned()))?;
        let tracks = [Track::video(video, self.video.gop), Track::audio(&self.audio, self.video.duration)];
        for (field, track) in ["video.gop", "audio.group"].into_iter().zip(&tracks) {
            if track.groups() > Track::MOST_GROUPS {
                return wrong(
                    field,
                    "a track has at most 32767 groups: choose larger ones, or a shorter `video.duration`",
                );
            }
        }
        Ok(tracks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, value: &str) -> Result<Settings, ScenarioError> {
        Settings::read(&[(path.to_owned(), value.to_owned())])
    }

    #[test]
    fn the_tracks_have_the_frames_of_the_settings() {
        let [video, audio] = Settings::default().tracks();
        assert_eq!((video.frames().len(), video.groups()), (900, 15));
        assert_eq!((audio.frames().len(), audio.groups()), (3000, 60));
        assert_eq!(audio.frames()[1].size, 50);
    }

    #[test]
    fn wrong_values_are_errors_with_their_key() {
        let field = |path: &str, value: &str| {
            let error = read(path, value).expect_err("it is wrong");
            assert!(error.to_string().contains(&format!("override {path}={value}")), "{error}");
            error.field.expect("it is known")
        };
        assert_eq!(field("video.b_frames", "2"), "video.b_frames");
        assert_eq!(field("video.gop", "0"), "video.gop");
        assert_eq!(field("audio.frame", "2 s"), "audio.frame");
        assert_eq!(field("audio.rate", "100 bit/s"), "audio.rate");
        assert_eq!(field("audio.group", "0"), "audio.group");
        assert_eq!(field("subgroup_timeout", "1 us"), "subgroup_timeout");
        assert_eq!(field("object_timeout", "25 h"), "object_timeout");
        assert_eq!(field("buffer", "25 h"), "buffer");
        assert_eq!(field("quic.datagram_size", "100"), "quic.datagram_size");
        let error = read("video.duration", "24 h").expect_err("it has too many groups of audio");
        assert_eq!(error.field.as_deref(), Some("audio.group"));
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_the_nearest() {
        let error = read("subgroup_timout", "1 s").expect_err("there is no such key").to_string();
        assert!(error.contains("subgroup_timeout"), "{error}");
        let error = read("group_order", "newest").expect_err("there is no such order").to_string();
        assert!(error.contains("descending"), "{error}");
    }
}
