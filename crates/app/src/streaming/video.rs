//! A video as a series of frames: type, size, time.

use airpath_core::{Bitrate, Bytes, Span};
use serde::{Deserialize, Serialize};

/// Type of a frame, by its references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Intra-coded: no reference.
    I,
    /// Predicted from the I or P frame before it.
    P,
    /// Predicted from the I or P frames before and after it.
    B,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: FrameKind,
    /// Its coded bytes.
    pub size: u32,
    /// When it is displayed, from the first frame on.
    pub time: Span,
}

/// Why frames are no video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoError {
    /// Number of the frame; `None` for the video as a whole.
    pub frame: Option<usize>,
    /// The field: `size`, `time`, or a key of [`Generated`].
    pub field: &'static str,
    /// What is wrong.
    pub message: &'static str,
}

/// A video: its frames in the order of display and in that of sending.
#[derive(Clone, Debug)]
pub struct Video {
    frames: Vec<Frame>,
    /// Numbers of the frames in the order of sending.
    order: Vec<u32>,
    duration: Span,
    bytes: Bytes,
}

impl Video {
    /// A video of `frames` in the order of display. Times count from that of the first frame. The
    /// last frame has the mean duration of the others.
    ///
    /// # Errors
    /// If there are fewer than two frames, one has no bytes, or the times do not rise.
    pub fn new(frames: Vec<Frame>) -> Result<Self, VideoError> {
        let order = sending_order(&frames);
        Self::with_order(frames, order)
    }

    /// The same with the numbers of the frames in the order of sending, each once.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_order(mut frames: Vec<Frame>, order: Vec<u32>) -> Result<Self, VideoError> {
        let wrong = |frame, field, message| Err(VideoError { frame, field, message });
        if frames.len() < 2 || u32::try_from(frames.len()).is_err() {
            return wrong(None, "frames", "a video has at least two frames, and fewer than 2³²");
        }
        if let Some(frame) = frames.iter().position(|frame| frame.size == 0) {
            return wrong(Some(frame), "size", "a frame has at least one byte");
        }
        if let Some(frame) = frames.windows(2).position(|pair| pair[1].time <= pair[0].time) {
            return wrong(Some(frame + 1), "time", "a frame is displayed after the one before");
        }
        let origin = frames[0].time;
        frames.iter_mut().for_each(|frame| frame.time = frame.time.saturating_sub(origin));
        let last = frames[frames.len() - 1].time;
        let frame_count = frames.len() as u128;
        let nanos = (u128::from(last.as_nanos()) * frame_count + (frame_count - 1) / 2) / (frame_count - 1);
        let duration = Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let bytes = Bytes::new(frames.iter().map(|frame| u64::from(frame.size)).sum());
        Ok(Self { order, frames, duration, bytes })
    }

    /// The frames, in the order of display.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Numbers of the frames in the order of sending: a B frame is sent after both its references.
    pub fn sending_order(&self) -> &[u32] {
        &self.order
    }

    /// When the frame at `place` in the order of sending is due, from the start on. One frame is
    /// sent for each that is displayed.
    pub fn send_time(&self, place: usize) -> Span {
        self.frames[place].time
    }

    /// From the display of the first frame to the end of the last.
    pub const fn duration(&self) -> Span {
        self.duration
    }

    /// Bytes of all frames.
    pub const fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Mean rate of the frames, in bits per second, at least 1.
    pub fn rate(&self) -> Bitrate {
        let bits = self.bytes.rate_over(self.duration).unwrap_or_default();
        Bitrate::from_bps((bits as u64).max(1))
    }

    /// The frames that can be decoded when `complete` has those that are complete: their references
    /// must be decodable, too. B frames after the last I or P frame need only the one before them.
    pub fn decodable(&self, complete: &[bool]) -> Vec<bool> {
        let mut decodable = vec![false; self.frames.len()];
        let mut references = [false; 2];
        let mut last_reference = 0;
        for frame in self.order.iter().map(|frame| *frame as usize) {
            let kind = self.frames[frame].kind;
            decodable[frame] = complete.get(frame).is_some_and(|complete| *complete)
                && match kind {
                    FrameKind::I => true,
                    FrameKind::P => references[1],
                    FrameKind::B if frame > last_reference => references[1],
                    FrameKind::B => references == [true; 2],
                };
            if kind != FrameKind::B {
                references = [references[1], decodable[frame]];
                last_reference = frame;
            }
        }
        decodable
    }
}

/// Every I or P frame comes before the B frames that precede it in the order of display. B frames
/// at the end of a video have only the reference before them.
fn sending_order(frames: &[Frame]) -> Vec<u32> {
    let mut order = Vec::with_capacity(frames.len());
    let mut waiting = 0;
    for (number, frame) in frames.iter().enumerate() {
        if frame.kind != FrameKind::B {
            order.push(number as u32);
            order.extend(waiting..number as u32);
            waiting = number as u32 + 1;
        }
    }
    order.extend(waiting..frames.len() as u32);
    order
}

/// Parameters of a video that is generated. All groups of pictures are alike: the first frame is an
/// I frame, and all others of the same type have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Generated {
    /// Mean rate of the coded video.
    pub rate: Bitrate,
    /// Frames per second.
    pub frame_rate: f64,
    /// Frames of a group of pictures (GOP): from an I frame to the next.
    pub gop: u32,
    /// B frames between two frames of other types.
    pub b_frames: u32,
    /// Size of an I frame, relative to the mean of all frames.
    pub peak_to_mean: f64,
    /// Duration of the video.
    pub duration: Span,
}

/// The video of the study of a live UMTS network has 148 kbit/s and is for the small display of a
/// smartphone. Only the rate is published. The other values are assumptions: 15 frames per second,
/// as QCIF has in level 10 of H.263 (ITU-T H.263 annex X), an I frame every 4 s, of ten times the
/// mean size, and no B frames.
impl Default for Generated {
    fn default() -> Self {
        Self {
            rate: Bitrate::from_bps(148_000),
            frame_rate: 15.0,
            gop: 60,
            b_frames: 0,
            peak_to_mean: 10.0,
            duration: Span::from_secs(60),
        }
    }
}

impl Generated {
    /// Most frames of a generated video: a day at 60 frames per second has 5.2 million.
    const MOST_FRAMES: f64 = 1e7;
    /// Size of a B frame relative to a P frame.
    const B_TO_P: f64 = 0.5;

    /// The video.
    ///
    /// # Errors
    /// If a parameter is out of range.
    pub fn video(&self) -> Result<Video, VideoError> {
        let wrong = |field, message| Err(VideoError { frame: None, field, message });
        if !(0.1..=1000.0).contains(&self.frame_rate) {
            return wrong("frame_rate", "there are 0.1 to 1000 frames per second");
        }
        let count = (self.duration.as_secs_f64() * self.frame_rate).round();
        if !(2.0..=Self::MOST_FRAMES).contains(&count) {
            return wrong("duration", "a video has two to 10 million frames");
        }
        if self.gop == 0 || f64::from(self.gop) > Self::MOST_FRAMES {
            return wrong("gop", "a group has one to 10 million frames");
        }
        let gop = f64::from(self.gop);
        if !(1.0..=gop).contains(&self.peak_to_mean) {
            return wrong("peak_to_mean", "it is at least 1, and at most the frames of a group");
        }
        let count = count as usize;
        let kinds: Vec<FrameKind> = (0..count).map(|frame| self.kind(frame, count)).collect();
        let mean = self.rate.as_bps() as f64 / 8.0 / self.frame_rate;
        let b_share = (0..self.gop as usize).filter(|frame| self.kind(*frame, usize::MAX) == FrameKind::B).count();
        let weights = gop - 1.0 - b_share as f64 * (1.0 - Self::B_TO_P);
        let predicted = if weights > 0.0 { mean * (gop - self.peak_to_mean) / weights } else { 0.0 };
        let size = |kind| match kind {
            FrameKind::I => mean * self.peak_to_mean,
            FrameKind::P => predicted,
            FrameKind::B => predicted * Self::B_TO_P,
        };
        let mut total = 0.0;
        let mut before = 0;
        let frames = kinds.into_iter().enumerate().map(|(number, kind)| {
            // Rounded from the start on, so that the rate is exact.
            total += size(kind);
            let until = total.round() as u64;
            let size = u32::try_from(until - before).unwrap_or(u32::MAX);
            before = until;
            Frame { kind, size, time: Span::from_secs_f64(number as f64 / self.frame_rate) }
        });
        Video::new(frames.collect()).map_err(|error| VideoError {
            frame: None,
            field: "rate",
            message: match error.field {
                "size" => "the rate is too low: a frame has at least one byte",
                _ => error.message,
            },
        })
    }

    /// The type of frame number `frame` of `count`. The last frame of a video is no B frame.
    fn kind(&self, frame: usize, count: usize) -> FrameKind {
        let place = frame % self.gop as usize;
        match place {
            0 => FrameKind::I,
            _ if place.is_multiple_of(self.b_frames as usize + 1) || frame + 1 == count => FrameKind::P,
            _ => FrameKind::B,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FrameKind::{B, I, P};

    fn of(kinds: &[FrameKind]) -> Video {
        let frame = |(number, kind): (usize, &FrameKind)| Frame {
            kind: *kind,
            size: 100,
            time: Span::from_millis(40 * number as u64 + 7),
        };
        Video::new(kinds.iter().enumerate().map(frame).collect()).expect("a video")
    }

    #[test]
    fn b_frames_are_sent_after_their_references() {
        let video = of(&[I, B, B, P, B, I, P, B]);
        assert_eq!(video.sending_order(), [0, 3, 1, 2, 5, 4, 6, 7]);
        assert_eq!(video.frames()[1].time, Span::from_millis(40));
        assert_eq!(video.duration(), Span::from_millis(320));
        assert_eq!(video.bytes().get(), 800);
    }

    #[test]
    fn a_lost_reference_is_felt_until_the_next_i_frame() {
        let video = of(&[I, B, P, B, P, B, I, P]);
        let without = |lost: usize| {
            let complete: Vec<bool> = (0..8).map(|frame| frame != lost).collect();
            let decodable = video.decodable(&complete);
            decodable.iter().enumerate().filter(|(_, decodable)| !**decodable).map(|(frame, _)| frame).collect()
        };
        let lost: [Vec<usize>; 4] = [without(2), without(1), without(0), without(7)];
        assert_eq!(lost, [vec![1, 2, 3, 4, 5], vec![1], vec![0, 1, 2, 3, 4, 5], vec![7]]);
    }

    #[test]
    fn a_trailing_b_frame_needs_only_the_reference_before_it() {
        let video = of(&[I, B, P, B]);
        assert_eq!(video.decodable(&[true; 4]), [true; 4]);
        assert_eq!(video.decodable(&[false, true, true, true]), [false; 4]);
        let video = of(&[I, P, I, B]);
        assert_eq!(video.decodable(&[true, false, true, true]), [true, false, true, true]);
    }

    #[test]
    fn the_video_of_the_study_has_its_rate_and_peak() {
        let video = Generated::default().video().expect("valid");
        assert_eq!(video.rate(), Bitrate::from_bps(148_000));
        assert_eq!((video.frames().len(), video.duration()), (900, Span::from_secs(60)));
        let mean = 148_000.0 / 8.0 / 15.0;
        let largest = video.frames().iter().map(|frame| frame.size).max().expect("frames");
        assert!((f64::from(largest) / mean - 10.0).abs() < 0.01, "{largest}");
    }

    #[test]
    fn b_frames_keep_the_rate() {
        let video = Generated { b_frames: 2, gop: 12, peak_to_mean: 4.0, ..Generated::default() }.video();
        let video = video.expect("valid");
        let rate = video.rate().as_bps();
        assert!((148_000..148_150).contains(&rate), "the last frame is a P frame: {rate}");
        let kinds: Vec<FrameKind> = video.frames()[..7].iter().map(|frame| frame.kind).collect();
        assert_eq!(kinds, [I, B, B, P, B, B, P]);
        assert_eq!(video.frames()[899].kind, P, "the last one has no reference after it");
        assert!(video.frames()[1].size.abs_diff(video.frames()[3].size / 2) <= 1);
    }

    #[test]
    fn parameters_out_of_range_are_rejected() {
        let of = |change: fn(&mut Generated)| {
            let mut generated = Generated::default();
            change(&mut generated);
            generated.video().expect_err("out of range").field
        };
        assert_eq!(of(|video| video.frame_rate = f64::NAN), "frame_rate");
        assert_eq!(of(|video| video.gop = 0), "gop");
        assert_eq!(of(|video| video.peak_to_mean = 61.0), "peak_to_mean");
        assert_eq!(of(|video| video.peak_to_mean = 60.0), "rate");
        assert_eq!(of(|video| video.duration = Span::ZERO), "duration");
        assert_eq!(of(|video| video.rate = Bitrate::from_bps(100)), "rate");
        assert_eq!(of(|video| video.gop = 0), "gop");
        assert_eq!(of(|video| video.gop = u32::MAX), "gop");
    }
}
