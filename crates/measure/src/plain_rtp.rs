//! Plain RTP with media, without a responder: a video file to a player of another program, or a
//! stream of another program.

mod connection;
mod receive;
mod send;

use std::path::{Path, PathBuf};

use airpath_app::streaming::{self, LowerTransport, VideoError};
use airpath_core::{Bytes, RandomStream, Seed, Span};
use serde::{Deserialize, Serialize};

pub use receive::{Received, receive};
pub use send::{Streamed, send};

/// Port of RTP unless another is given (RFC 3551 §8). Over UDP, RTCP has the next one.
pub const PORT: u16 = 5004;

/// A video file that is sent to a player of another program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sending {
    /// The file: H.264 in a byte stream.
    pub video: PathBuf,
    /// The file to which the description of the session is written.
    #[serde(default)]
    pub description: Option<PathBuf>,
    /// Frames per second, instead of the rate in the file.
    #[serde(default)]
    pub frame_rate: Option<f64>,
    /// The protocol below RTP.
    #[serde(default)]
    pub transport: LowerTransport,
    /// From the description to the first packet, in which the player starts. Over TCP the player
    /// listens at its end at the latest, and the first packet follows the connection.
    #[serde(default)]
    pub lead: Span,
    /// Most bytes of a payload.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// Highest rate, as a multiple of the video's rate.
    #[serde(default = "real_time")]
    pub speed: f64,
    /// Most media that are sent ahead of real time.
    #[serde(default)]
    pub ahead: Span,
    /// Seed of first numbers and of the times of reports.
    #[serde(default)]
    pub seed: u64,
}

/// A stream of another program that is received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receiving {
    /// Address with or without a port; by default the loopback address.
    #[serde(default)]
    pub listen: Option<String>,
    /// The file with the description of the session.
    #[serde(default)]
    pub description: Option<PathBuf>,
    /// The protocol below RTP; by default that of the description, or UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<LowerTransport>,
    /// Media that the player waits for.
    pub buffer: Span,
    /// The stream is over after this time without a packet.
    pub timeout: Span,
    /// Seed of the source of the reports, and of their times.
    #[serde(default)]
    pub seed: u64,
}

fn packet() -> Bytes {
    streaming::Settings::default().packet
}

const fn real_time() -> f64 {
    1.0
}

impl Sending {
    /// The settings of the server.
    fn settings(&self) -> streaming::Settings {
        let Self { packet, speed, ahead, .. } = *self;
        streaming::Settings { packet, speed, ahead, ..streaming::Settings::default() }
    }

    fn random(&self, part: &'static str) -> RandomStream {
        Seed::new(self.seed).stream(part)
    }
}

/// The message of a setting that is wrong.
fn setting(error: &VideoError) -> String {
    format!("{}: {}", error.field, error.message)
}

/// The message of a file that cannot be used.
fn of_file(path: &Path, why: impl std::fmt::Display) -> String {
    format!("{}: {why}", path.display())
}
