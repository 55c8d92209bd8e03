//! Figures of what a subscriber received.

use std::sync::Arc;

use airpath_app::samples::Samples;
use airpath_app::streaming::{self, FirstNumbers, Player, Session, Video};
use airpath_core::{Instant, Span};
use serde::Serialize;

use crate::media::Track;
use crate::settings::Settings;
use crate::subscriber::{Arrival, Reception};

/// Figures of a session. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// The video track.
    pub video: TrackFigures,
    /// The audio track.
    pub audio: TrackFigures,
    /// The player of the video.
    pub playback: Playback,
    /// Streams that the publisher reset.
    pub streams_reset: u64,
    /// From the start of the connection until both subscriptions had ended.
    pub duration_s: f64,
}

/// Figures of a track.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrackFigures {
    /// Objects that the track has.
    pub published: u64,
    /// Objects that were received.
    pub delivered: u64,
    /// Objects that were not.
    pub lost: u64,
    /// Time from the capture of an object until all of it was received: the median of those that
    /// were.
    pub delay_median_s: Option<f64>,
    /// The 95th percentile.
    pub delay_p95_s: Option<f64>,
    /// The 99th percentile.
    pub delay_p99_s: Option<f64>,
    /// The largest.
    pub delay_max_s: Option<f64>,
}

/// Figures of the player. It skips a frame that is missing when it is due, if a later one was
/// received; otherwise it pauses until the buffer is full again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Playback {
    /// From the start of the connection to the first frame on the display.
    pub start_s: Option<f64>,
    /// Number of pauses.
    pub pauses: u64,
    /// Their time together.
    pub paused_s: f64,
    /// Frames that were complete when they were due, and could be decoded.
    pub displayed: u64,
}

impl Figures {
    /// The figures of a reception.
    ///
    /// # Errors
    /// What is wrong with an object that is not of these tracks.
    pub fn new(settings: &Settings, reception: &Reception) -> Result<Self, &'static str> {
        let [video, audio] = settings.tracks();
        let aliases = reception.aliases();
        if aliases[0] == aliases[1] {
            return Err("both tracks have the same alias");
        }
        let is_known = |arrival: &Arrival| aliases.contains(&Some(arrival.track_alias));
        if !reception.arrivals.iter().all(is_known) {
            return Err("a stream has an alias of no track");
        }
        let of = |track: &Track, alias: Option<u64>| {
            let arrivals = reception.arrivals.iter().filter(|arrival| Some(arrival.track_alias) == alias);
            Received::new(track, arrivals)
        };
        let (of_video, of_audio) = (of(&video, aliases[0])?, of(&audio, aliases[1])?);
        let media = video.as_video().expect("the first track is a video");
        Ok(Self {
            playback: Playback::new(settings, media, &of_video, reception),
            video: of_video.figures,
            audio: of_audio.figures,
            streams_reset: reception.streams_reset,
            duration_s: reception.ended.since(reception.started).as_secs_f64(),
        })
    }
}

/// The frames of a track that were received.
struct Received {
    figures: TrackFigures,
    /// Frames in the order of their arrival.
    frames: Vec<(Instant, usize)>,
}

impl Received {
    fn new<'a>(track: &Track, arrivals: impl Iterator<Item = &'a Arrival>) -> Result<Self, &'static str> {
        let mut is_received = vec![false; track.frames().len()];
        let (mut frames, mut delays) = (Vec::new(), Samples::default());
        for arrival in arrivals {
            let frame = track.frame_number(arrival.group, arrival.object).ok_or("an object is not of its track")?;
            if arrival.payload != track.frames()[frame].size as usize {
                return Err("an object does not have the size of its frame");
            }
            if std::mem::replace(&mut is_received[frame], true) {
                return Err("an object was received twice");
            }
            frames.push((arrival.at, frame));
            delays.add(arrival.at.since(arrival.captured));
        }
        let (published, delivered) = (is_received.len() as u64, frames.len() as u64);
        let [median, p95, p99, max] =
            delays.quantiles([0.5, 0.95, 0.99, 1.0]).map(|delay| delay.map(Span::as_secs_f64));
        let figures = TrackFigures {
            published,
            delivered,
            lost: published - delivered,
            delay_median_s: median,
            delay_p95_s: p95,
            delay_p99_s: p99,
            delay_max_s: max,
        };
        Ok(Self { figures, frames })
    }
}

impl Playback {
    fn new(settings: &Settings, video: &Arc<Video>, received: &Received, reception: &Reception) -> Self {
        // A packet of the player is a frame.
        let frames = video.frames().iter().map(|frame| vec![frame.size]);
        let settings = streaming::Settings { buffer: settings.buffer, ..streaming::Settings::default() };
        let session = Session::of_packets(settings, Arc::clone(video), frames, FirstNumbers::default());
        let mut player = Player::new(Arc::new(session), reception.started);
        for (at, frame) in &received.frames {
            player.receive(*at, *frame as u32);
        }
        player.end(reception.ended);
        while let Some(at) = player.next_wakeup() {
            player.advance(at);
        }
        let decodable = video.decodable(player.displayed());
        Self {
            start_s: player.first_frame().map(|at| at.since(reception.started).as_secs_f64()),
            pauses: player.stalls().count(),
            paused_s: player.stalls().iter().fold(Span::ZERO, |sum, stall| sum + stall).as_secs_f64(),
            displayed: decodable.into_iter().filter(|is_decodable| *is_decodable).count() as u64,
        }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |delay: Option<f64>| delay.map_or_else(|| "-".to_owned(), |delay| format!("{:.1}", 1e3 * delay));
        writeln!(f, "track  published  delivered  lost  delay (ms): median     95 %     99 %   largest")?;
        for (name, track) in [("video", &self.video), ("audio", &self.audio)] {
            let TrackFigures { published, delivered, lost, .. } = track;
            let [median, p95, p99, max] =
                [track.delay_median_s, track.delay_p95_s, track.delay_p99_s, track.delay_max_s].map(ms);
            writeln!(f, "{name}  {published:9}  {delivered:9}  {lost:4}  {median:>18} {p95:>8} {p99:>8}  {max:>8}")?;
        }
        let Playback { start_s, pauses, paused_s, displayed } = &self.playback;
        let start = start_s.map_or_else(|| "never".to_owned(), |start| format!("{start:.2} s"));
        writeln!(
            f,
            "playback: starts after {start}, {pauses} pauses of {paused_s:.2} s, {displayed} frames displayed"
        )?;
        write!(f, "{} streams reset, {:.2} s", self.streams_reset, self.duration_s)
    }
}
