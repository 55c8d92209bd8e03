//! The rows of videos.

use std::sync::Arc;

use airpath_app::Samples;
use airpath_app::streaming::player::{LEVEL_INTERVAL, Level};
use airpath_app::streaming::{Client, Sent, Session};
use airpath_core::{Instant, Span};
use serde::Serialize;

/// The columns of a video in a flow's row. Times are from the start of the flow. What only the
/// player measures is `None` where it is another program.
#[derive(Clone, Debug, Serialize)]
pub struct PlaybackRow {
    /// TCP settings, as for a transfer, if TCP carries the packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Arc<serde_json::Value>>,
    /// Mean rate of the video, without headers.
    pub video_bps: u64,
    /// Packets of the video that the server sent.
    pub sent: u64,
    /// Those that arrived, each once.
    pub received: Option<u64>,
    /// Those that did not arrive.
    pub lost: Option<u64>,
    /// Those that arrived when the buffer was full, and were not stored.
    pub discarded: Option<u64>,
    /// Those that arrived after their frame was due.
    pub late: Option<u64>,
    /// Those that arrived only as a retransmission.
    pub repaired: Option<u64>,
    /// Packets that the server sent again.
    pub retransmitted_packets: u64,
    /// Bytes of the video in them.
    pub retransmitted_bytes: u64,
    /// Those bytes, relative to the bytes of the video that were sent once; `None` if none was.
    pub retransmitted_share: Option<f64>,
    /// Arrivals of packets that had arrived before.
    pub duplicates: Option<u64>,
    /// Bytes of the video that arrived.
    pub delivered_bytes: Option<u64>,
    /// Inter-arrival jitter at the end (RFC 3550 §6.4.1).
    pub jitter_s: Option<f64>,
    /// Frames of the video.
    pub frames: u64,
    /// Frames that were complete when they were due.
    pub frames_complete: Option<u64>,
    /// Complete frames whose references could be decoded, too.
    pub frames_decodable: Option<u64>,
    /// Start-up time and stalls.
    #[serde(flatten)]
    pub stalls: StallRow,
    /// Mean of the buffer while frames were displayed, up to the last packet of the server.
    pub buffer_mean_s: Option<f64>,
    /// Least buffer while frames were displayed, up to the last packet of the server.
    pub buffer_min_s: Option<f64>,
    /// Until playback ended.
    pub duration_s: Option<f64>,
    /// RTCP datagrams of both ends.
    pub reports: u64,
}

/// Start-up time and stalls of a video.
#[derive(Clone, Debug, Serialize)]
pub struct StallRow {
    /// Start-up time: until the first complete frame was displayed.
    pub startup_s: Option<f64>,
    /// Stalls, with one that was not over at the end.
    pub stalls: Option<u64>,
    /// Duration of all stalls.
    pub stall_s: Option<f64>,
    /// Duration of the longest.
    pub stall_max_s: Option<f64>,
    /// Share of stalls in the time after the start-up; `None` before it.
    pub stall_share: Option<f64>,
}

impl StallRow {
    /// The row of a playback that started at `start`, displayed its first frame at `first`, and
    /// ended at `end`; `last` is a stall that was not over then.
    pub fn of(start: Instant, first: Option<Instant>, end: Instant, stalls: &Samples, last: Option<Span>) -> Self {
        let mut stalls = stalls.clone();
        if let Some(stall) = last {
            stalls.add(stall);
        }
        let stall_s = stalls.mean_s().unwrap_or_default() * stalls.count() as f64;
        let shown = first.map(|first| end.since(first).as_secs_f64());
        Self {
            startup_s: first.map(|first| first.since(start).as_secs_f64()),
            stalls: Some(stalls.count()),
            stall_s: Some(stall_s),
            stall_max_s: stalls.quantile(1.0).map(Span::as_secs_f64),
            stall_share: shown.filter(|shown| *shown > 0.0).map(|shown| stall_s / shown),
        }
    }
}

/// Mean and least buffer while frames were displayed, in seconds.
pub(super) fn buffer_mean_and_least<'a>(levels: impl Iterator<Item = &'a Level>) -> [Option<f64>; 2] {
    let playing: Vec<f64> = levels.filter(|level| level.playing).map(|level| level.media.as_secs_f64()).collect();
    let mean = (!playing.is_empty()).then(|| playing.iter().sum::<f64>() / playing.len() as f64);
    [mean, playing.into_iter().reduce(f64::min)]
}

/// The playout buffer of a video at a time.
#[derive(Clone, Debug, Serialize)]
pub struct BufferRow {
    /// The repetition.
    pub repetition: u64,
    /// Number of the flow.
    pub flow: u32,
    /// From the start of the flow.
    pub time_s: f64,
    /// Media from the position of playback to the latest complete frame.
    pub buffer_s: f64,
    /// Whether frames are displayed.
    pub playing: bool,
}

impl PlaybackRow {
    /// The row of a stream that started at `start`, in its state at `now`; `sent` is what the
    /// server has sent.
    pub fn of(session: &Session, sent: &Sent, client: &Client, start: Instant, now: Instant) -> Self {
        let player = client.player();
        let received = client.received();
        let count = |frames: &[bool]| frames.iter().filter(|frame| **frame).count() as u64;
        let since_start = |mark: Option<Instant>| mark.map(|mark| mark.since(start).as_secs_f64());
        let end = player.finished().or(client.left()).unwrap_or(now);
        let sending = sent.last_media.map_or(0, |last| last.since(start).as_nanos() / LEVEL_INTERVAL.as_nanos() + 1);
        let [buffer_mean_s, buffer_min_s] = buffer_mean_and_least(player.levels().iter().take(sending as usize));
        Self {
            tcp: None,
            video_bps: session.video.rate().as_bps(),
            sent: sent.packets,
            received: Some(received.packets),
            lost: Some(sent.packets.saturating_sub(received.packets + received.discarded)),
            discarded: Some(received.discarded),
            late: Some(received.late),
            repaired: Some(received.repaired),
            retransmitted_packets: sent.retransmitted_packets,
            retransmitted_bytes: sent.retransmitted_bytes,
            retransmitted_share: retransmitted_share(sent),
            duplicates: Some(received.duplicates),
            delivered_bytes: Some(received.bytes),
            jitter_s: Some(client.jitter().as_secs_f64()),
            frames: session.video.frames().len() as u64,
            frames_complete: Some(count(player.displayed())),
            frames_decodable: Some(count(&session.video.decodable(player.displayed()))),
            stalls: StallRow::of(start, player.first_frame(), end, player.stalls(), player.stalled(end)),
            buffer_mean_s,
            buffer_min_s,
            duration_s: since_start(player.finished()),
            reports: sent.reports + received.reports,
        }
    }

    /// The row of a stream to a player of another program, which reported lost packets and
    /// `jitter`; `duration` is the time until everything was sent.
    pub fn of_sender(
        session: &Session,
        sent: &Sent,
        lost: Option<u64>,
        jitter: Option<Span>,
        duration: Option<Span>,
    ) -> Self {
        Self {
            tcp: None,
            video_bps: session.video.rate().as_bps(),
            sent: sent.packets,
            received: None,
            lost,
            discarded: None,
            late: None,
            repaired: None,
            retransmitted_packets: sent.retransmitted_packets,
            retransmitted_bytes: sent.retransmitted_bytes,
            retransmitted_share: retransmitted_share(sent),
            duplicates: None,
            delivered_bytes: None,
            jitter_s: jitter.map(Span::as_secs_f64),
            frames: session.video.frames().len() as u64,
            frames_complete: None,
            frames_decodable: None,
            stalls: StallRow { startup_s: None, stalls: None, stall_s: None, stall_max_s: None, stall_share: None },
            buffer_mean_s: None,
            buffer_min_s: None,
            duration_s: duration.map(Span::as_secs_f64),
            reports: sent.reports,
        }
    }
}

/// Bytes that were sent again, relative to those that were sent once.
fn retransmitted_share(sent: &Sent) -> Option<f64> {
    (sent.bytes > 0).then(|| sent.retransmitted_bytes as f64 / sent.bytes as f64)
}

impl BufferRow {
    /// The rows of the `levels` of a player in flow `flow`.
    pub fn of(levels: &[Level], flow: u32, repetition: u64) -> Vec<Self> {
        let row = |(number, level): (u64, &Level)| Self {
            repetition,
            flow,
            time_s: (LEVEL_INTERVAL * number).as_secs_f64(),
            buffer_s: level.media.as_secs_f64(),
            playing: level.playing,
        };
        (0..).zip(levels).map(row).collect()
    }
}
