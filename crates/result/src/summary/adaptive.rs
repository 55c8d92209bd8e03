//! The rows of videos over HTTP.

use std::sync::Arc;

use airpath_app::adaptive::{Client, Segment};
use airpath_app::exchanges::Application;
use airpath_app::streaming::player::LEVEL_INTERVAL;
use airpath_core::{Instant, Span};
use serde::Serialize;

use super::playback::{StallRow, buffer_mean_and_least};

/// The columns of a video over HTTP in a flow's row. Times are from the start of the flow.
#[derive(Clone, Debug, Serialize)]
pub struct AdaptiveRow {
    /// TCP settings, as for a transfer.
    pub tcp: Arc<serde_json::Value>,
    /// Name of the algorithm that chose the quality.
    pub adaptation: &'static str,
    /// Until the connection was open.
    pub connect_s: Option<f64>,
    /// Segments of the video.
    pub segments: u64,
    /// Segments that arrived.
    pub segments_received: u64,
    /// Bytes of these segments.
    pub delivered_bytes: u64,
    /// Mean rate of the media that arrived; `None` without any.
    pub quality_bps: Option<f64>,
    /// Segments that have another quality than the one before.
    pub switches: u64,
    /// Start-up time and stalls.
    #[serde(flatten)]
    pub stalls: StallRow,
    /// Mean of the buffer during playback; once all segments have arrived, up to the last one.
    pub buffer_mean_s: Option<f64>,
    /// Least buffer during playback; once all segments have arrived, up to the last one.
    pub buffer_min_s: Option<f64>,
    /// Until playback ended.
    pub duration_s: Option<f64>,
}

/// A segment of a video over HTTP.
#[derive(Clone, Debug, Serialize)]
pub struct SegmentRow {
    /// The repetition.
    pub repetition: u64,
    /// Number of the flow.
    pub flow: u32,
    /// Number of the segment.
    pub segment: u64,
    /// Number of its quality, from zero.
    pub quality: u64,
    /// Rate of its quality.
    pub rate_bps: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The buffer when it was requested.
    pub buffer_s: f64,
    /// From the start of the flow to its request.
    pub requested_s: f64,
    /// From the start of the flow to its last byte.
    pub finished_s: f64,
}

impl AdaptiveRow {
    /// The row of `client`, which started at `start`, in its state at `now`: when the
    /// connection was lost, or the run ended.
    pub fn of(client: &Client, start: Instant, now: Instant, tcp: Arc<serde_json::Value>) -> Self {
        let player = client.player_at(now);
        let settings = client.settings();
        let received: Vec<(u64, &Segment)> = arrived(client).collect();
        let media: f64 = received.iter().map(|(number, _)| settings.media(*number).as_secs_f64()).sum();
        let delivered_bytes = received.iter().map(|(_, segment)| segment.bytes).sum();
        let end = player.finished().unwrap_or(now);
        // After the last segment of the video the buffer only falls.
        let last = received.last().and_then(|(_, segment)| segment.arrived);
        let last = last.filter(|_| received.len() as u64 == settings.segments()).map_or(end, |(last, _)| last);
        let levels = last.since(start).as_nanos() / LEVEL_INTERVAL.as_nanos() + 1;
        let [buffer_mean_s, buffer_min_s] = buffer_mean_and_least(player.levels().iter().take(levels as usize));
        Self {
            tcp,
            adaptation: settings.adaptation.name(),
            connect_s: client.exchanges().connect().map(Span::as_secs_f64),
            segments: settings.segments(),
            segments_received: received.len() as u64,
            delivered_bytes,
            quality_bps: (media > 0.0).then(|| delivered_bytes as f64 * 8.0 / media),
            switches: received.windows(2).filter(|pair| pair[0].1.quality != pair[1].1.quality).count() as u64,
            stalls: StallRow::of(start, player.first_frame(), end, player.stalls(), player.stalled(end)),
            buffer_mean_s,
            buffer_min_s,
            duration_s: player.finished().map(|finished| finished.since(start).as_secs_f64()),
        }
    }
}

impl SegmentRow {
    /// The rows of the segments of `client` that have arrived, in flow `flow`.
    pub fn of(client: &Client, start: Instant, flow: u32, repetition: u64) -> Vec<Self> {
        let row = |(number, segment): (u64, &Segment)| {
            let (at, latency) = segment.arrived?;
            let finished = at.since(start);
            Some(Self {
                repetition,
                flow,
                segment: number,
                quality: segment.quality as u64,
                rate_bps: client.settings().qualities[segment.quality].as_bps(),
                bytes: segment.bytes,
                buffer_s: segment.buffer.as_secs_f64(),
                requested_s: finished.saturating_sub(latency).as_secs_f64(),
                finished_s: finished.as_secs_f64(),
            })
        };
        arrived(client).filter_map(row).collect()
    }
}

fn arrived(client: &Client) -> impl Iterator<Item = (u64, &Segment)> {
    (0..).zip(client.segments()).filter(|(_, segment)| segment.arrived.is_some())
}
