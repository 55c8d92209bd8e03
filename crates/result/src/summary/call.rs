//! The columns of calls.

use airpath_app::voice::codec::Scale;
use airpath_app::voice::{Codec, End, Quality, Session};
use airpath_core::{Direction, Span};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The columns of a call in a flow's row.
#[derive(Clone, Debug, Serialize)]
pub struct CallRow {
    /// `amr` or `amr-wb`.
    pub codec: &'static str,
    /// Scale of `r` and `mos`: `narrowband` (G.107) or `wideband` (G.107.1).
    pub mos_scale: &'static str,
    /// Rating R of the direction that is rated lower; `None` without speech frames.
    pub r: Option<f64>,
    /// Its mean opinion score.
    pub mos: Option<f64>,
    /// Mean time from mouth to ear, of the direction in which it is longer.
    pub mouth_to_ear_s: Option<f64>,
    /// Share of speech frames that were not played out, of the direction in which it is higher.
    pub frame_loss: Option<f64>,
    /// Towards the mobile.
    pub down: CallDirectionRow,
    /// From the mobile; an empty table if the arrivals at the other end are not known.
    #[serde(serialize_with = "serialize_or_empty")]
    pub up: Option<CallDirectionRow>,
}

fn serialize_or_empty<S: Serializer>(row: &Option<CallDirectionRow>, serializer: S) -> Result<S::Ok, S::Error> {
    match row {
        Some(row) => row.serialize(serializer),
        None => serializer.serialize_map(Some(0))?.end(),
    }
}

/// One direction of a call.
#[derive(Clone, Debug, Serialize)]
pub struct CallDirectionRow {
    /// RTP packets sent.
    pub sent: u64,
    /// Those that arrived, each once.
    pub received: u64,
    /// Those that did not arrive.
    pub lost: u64,
    /// Bytes of RTP payload that were sent.
    pub payload_bytes: u64,
    /// Mean one-way delay of the packets.
    pub delay_mean_s: Option<f64>,
    /// Its 95th percentile.
    pub delay_p95_s: Option<f64>,
    /// The longest.
    pub delay_max_s: Option<f64>,
    /// Inter-arrival jitter at the end (RFC 3550 §6.4.1).
    pub jitter_s: f64,
    /// Talk spurts.
    pub talk_spurts: u64,
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
    /// Frames that were not played out in the longest burst.
    pub longest_burst: u64,
    /// Share of frames that were not played out.
    pub frame_loss: Option<f64>,
    /// Mean length of bursts of such frames, relative to that of random losses.
    pub burst_ratio: f64,
    /// Mean time of a frame in the jitter buffer.
    pub buffer_mean_s: Option<f64>,
    /// Mean time from mouth to ear.
    pub mouth_to_ear_s: Option<f64>,
    /// The longest.
    pub mouth_to_ear_max_s: Option<f64>,
    /// Impairment by delay and echo, Id.
    pub delay_impairment: Option<f64>,
    /// Impairment by codec and loss, Ie-eff.
    pub equipment_impairment: Option<f64>,
    /// Rating R; zero if nothing was played out, `None` without speech frames.
    pub r: Option<f64>,
    /// Mean opinion score; 1 if nothing was played out, `None` without speech frames.
    pub mos: Option<f64>,
}

impl CallRow {
    /// The row of a call with these ends, by the direction in which they send.
    pub fn of(session: &Session, ends: [&End; 2]) -> Self {
        let [server, mobile] = ends;
        let quality = [Quality::of(server, mobile), Quality::of(mobile, server)];
        let row = |direction: Direction| {
            let (sender, receiver) = (ends[direction as usize], ends[direction.opposite() as usize]);
            let reverse = &quality[direction.opposite() as usize];
            CallDirectionRow::of(session, &quality[direction as usize], reverse, sender, receiver)
        };
        let (down, up) = (row(Direction::Down), row(Direction::Up));
        let codec: Codec = session.settings.codec;
        let least = |pair: [Option<f64>; 2]| pair.into_iter().flatten().reduce(f64::min);
        let most = |pair: [Option<f64>; 2]| pair.into_iter().flatten().reduce(f64::max);
        Self {
            codec: codec.name(),
            mos_scale: match codec.impairment().scale {
                Scale::Narrowband => "narrowband",
                Scale::Wideband => "wideband",
            },
            r: least([down.r, up.r]),
            mos: least([down.mos, up.mos]),
            mouth_to_ear_s: most([down.mouth_to_ear_s, up.mouth_to_ear_s]),
            frame_loss: most([down.frame_loss, up.frame_loss]),
            down,
            up: Some(up),
        }
    }

    /// The row of a call whose arrivals at the other end of the uplink are not known, so that no
    /// direction is the worse one.
    #[must_use]
    pub fn without_uplink(self) -> Self {
        Self { r: None, mos: None, mouth_to_ear_s: None, frame_loss: None, up: None, ..self }
    }
}

impl CallDirectionRow {
    fn of(session: &Session, quality: &Quality, reverse: &Quality, sender: &End, receiver: &End) -> Self {
        let (sent, received) = (sender.sent(), receiver.received());
        let rating = quality.rating(reverse, session);
        let [delay_p95, delay_max] = received.delays.quantiles([0.95, 1.0]);
        let silent = |value: f64| quality.is_silent().then_some(value);
        Self {
            sent: sent.packets.into(),
            received: received.packets.into(),
            lost: u64::from(sent.packets.saturating_sub(received.packets)),
            payload_bytes: sent.bytes,
            delay_mean_s: received.delays.mean_s(),
            delay_p95_s: delay_p95.map(Span::as_secs_f64),
            delay_max_s: delay_max.map(Span::as_secs_f64),
            jitter_s: received.jitter_s,
            talk_spurts: quality.spurts,
            frames: quality.frames,
            lost_frames: quality.lost_frames,
            late_frames: quality.late_frames,
            concealed_frames: quality.concealed_frames,
            muted_frames: quality.muted_frames,
            longest_burst: quality.longest_burst,
            frame_loss: quality.loss(),
            burst_ratio: quality.burst_ratio(),
            buffer_mean_s: received.waits.mean_s(),
            mouth_to_ear_s: quality.mouth_to_ear.map(Span::as_secs_f64),
            mouth_to_ear_max_s: quality.mouth_to_ear_max.map(Span::as_secs_f64),
            delay_impairment: rating.map(|rating| rating.delay),
            equipment_impairment: rating.map(|rating| rating.equipment),
            r: rating.map(|rating| rating.r).or(silent(0.0)),
            mos: rating.map(|rating| rating.mos).or(silent(1.0)),
        }
    }
}
