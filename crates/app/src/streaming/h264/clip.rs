//! A file of a byte stream (H.264 annex B), as `ffmpeg -f h264` writes it: its frames, and the
//! packets that carry them.

use std::collections::BTreeMap;
use std::ops::Range;

use airpath_core::Span;

use super::parameter_sets::{Order, PictureParameters, SequenceParameters};
use super::payload::{LEAST, packetize, rank};
use super::slice::{OrderCounter, Slice, SliceOrder};
use super::{IDR, PICTURE_PARAMETERS, SEQUENCE_PARAMETERS, is_preface, is_slice, unit_type};
use crate::streaming::video::{Frame, FrameKind, Video, VideoError};

/// A video that was read.
#[derive(Clone, Debug)]
pub struct Clip {
    bytes: Vec<u8>,
    units: Vec<Range<usize>>,
    /// The frames in the order of decoding.
    pictures: Vec<Picture>,
    /// The first sequence parameters.
    sequence: SequenceParameters,
    /// Place in the file of the first parameter sets of sequence and picture.
    first_sets: [usize; 2],
}

/// Why bytes are no video that can be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}; {help}", at.map(|at| format!(" (at byte {at})")).unwrap_or_default())]
pub struct ClipError {
    /// Where.
    pub at: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: &'static str,
}

/// A frame.
#[derive(Clone, Debug)]
struct Picture {
    kind: FrameKind,
    /// Its NAL units, from the delimiter or the first parameters on.
    units: Range<usize>,
    /// Its place in the order of display: after each IDR it starts again.
    order: (u32, i64),
}

/// The packets of a clip.
#[derive(Clone, Debug)]
pub struct Packets {
    /// The video that they carry; sizes are those of the payloads.
    pub video: Video,
    /// The payloads of each frame, in the order of sending.
    pub payloads: Vec<Vec<Vec<u8>>>,
}

const CONVERT: &str = "write it with `ffmpeg -i VIDEO -c:v libx264 -f h264 CLIP.h264`";

impl Clip {
    /// Most frames of a clip: an hour at 60 a second.
    const MOST_FRAMES: usize = 216_000;

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// If they are no byte stream of H.264, a parameter set is missing, or pictures are coded in a
    /// way that is not supported.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ClipError> {
        let wrong = |at: usize, message: String| ClipError { at: Some(at), message, help: CONVERT };
        let whole = |message: &str| ClipError { at: None, message: message.to_owned(), help: CONVERT };
        if let Some(container) = container(&bytes) {
            let message = format!("this is {container}, not a byte stream of H.264 (annex B)");
            return Err(ClipError {
                at: None,
                message,
                help: "extract it with `ffmpeg -i VIDEO -c:v copy -f h264 CLIP.h264`",
            });
        }
        let units = split(&bytes);
        let mut reader = Reader::default();
        let mut pictures: Vec<Picture> = Vec::new();
        // The first unit of the next picture, and whether the last one can have another slice.
        let (mut begin, mut is_open) = (0, false);
        for (number, range) in units.iter().enumerate() {
            let unit = &bytes[range.clone()];
            if is_preface(unit) && is_open {
                (begin, is_open) = (number, false);
            }
            reader.parameters(unit, range.start);
            if !is_slice(unit) {
                if let Some(last) = pictures.last_mut().filter(|_| is_open) {
                    last.units.end = number + 1;
                }
                continue;
            }
            let slice =
                Slice::parse(unit).ok_or_else(|| wrong(range.start, "a slice has no valid header".to_owned()))?;
            match pictures.last_mut().filter(|_| is_open && !slice.is_first) {
                Some(last) => {
                    last.units.end = number + 1;
                    last.kind = std::cmp::max_by_key(last.kind, slice.kind, |kind| rank(*kind));
                }
                None => {
                    let order = reader.order(unit, &slice).map_err(|message| wrong(range.start, message))?;
                    let first = if is_open { number } else { begin };
                    pictures.push(Picture { kind: slice.kind, units: first..number + 1, order });
                    is_open = true;
                }
            }
            if pictures.len() > Self::MOST_FRAMES {
                return Err(wrong(range.start, format!("the video has more than {} frames", Self::MOST_FRAMES)));
            }
        }
        let [Some(first_sequence), Some(first_picture)] = reader.first else {
            return Err(whole("there are no parameter sets of H.264"));
        };
        if pictures.len() < 2 {
            return Err(whole("there are fewer than two frames"));
        }
        let sequence = &units.iter().find(|unit| unit.start == first_sequence).expect("it is a unit");
        let sequence = SequenceParameters::parse(&bytes[(*sequence).clone()]).expect("it was read before");
        Ok(Self { units, pictures, sequence, first_sets: [first_sequence, first_picture], bytes })
    }

    /// The sequence parameters.
    pub const fn sequence(&self) -> &SequenceParameters {
        &self.sequence
    }

    /// The first sets of parameters, of the sequence and of a picture, as NAL units.
    pub fn parameter_sets(&self) -> [&[u8]; 2] {
        self.first_sets.map(|start| {
            let unit = self.units.iter().find(|unit| unit.start == start).expect("it is a unit");
            &self.bytes[unit.clone()]
        })
    }

    /// The packets at `frame_rate` frames per second, with payloads of at most `most` bytes.
    ///
    /// # Errors
    /// If a payload cannot have so few bytes, or the rate is out of range.
    pub fn packets(&self, frame_rate: f64, most: usize) -> Result<Packets, VideoError> {
        let wrong = |field, message| Err(VideoError { frame: None, field, message });
        if !(0.1..=1000.0).contains(&frame_rate) {
            return wrong("frame_rate", "there are 0.1 to 1000 frames per second");
        }
        if most < LEAST {
            return wrong("packet", "a packet has at least 3 bytes of H.264: two of them are the header of a fragment");
        }
        let mut payloads: Vec<Vec<Vec<u8>>> = Vec::with_capacity(self.pictures.len());
        for picture in &self.pictures {
            let mut of_frame = Vec::new();
            for unit in &self.units[picture.units.clone()] {
                packetize(&self.bytes[unit.clone()], most, |payload| of_frame.push(payload));
            }
            payloads.push(of_frame);
        }
        // Places in the order of decoding, in the order of display.
        let mut displayed: Vec<usize> = (0..self.pictures.len()).collect();
        displayed.sort_by_key(|place| self.pictures[*place].order);
        let mut order = vec![0; displayed.len()];
        let frame = |(number, place): (usize, &usize)| {
            order[*place] = number as u32;
            let size: usize = payloads[*place].iter().map(Vec::len).sum();
            Frame {
                kind: self.pictures[*place].kind,
                size: u32::try_from(size).unwrap_or(u32::MAX),
                time: Span::from_secs_f64(number as f64 / frame_rate),
            }
        };
        let frames = displayed.iter().enumerate().map(frame).collect();
        Ok(Packets { video: Video::with_order(frames, order)?, payloads })
    }
}

/// The parameter sets so far, and the order of the pictures.
#[derive(Default)]
struct Reader {
    sequences: BTreeMap<u32, SequenceParameters>,
    pictures: BTreeMap<u32, PictureParameters>,
    /// Where the first sets of sequence and picture are.
    first: [Option<usize>; 2],
    counter: OrderCounter,
    /// IDR pictures, and all pictures.
    refreshes: u32,
    count: i64,
}

impl Reader {
    fn parameters(&mut self, unit: &[u8], at: usize) {
        match unit_type(unit) {
            SEQUENCE_PARAMETERS => {
                let Some(set) = SequenceParameters::parse(unit) else { return };
                self.sequences.insert(set.id, set);
                self.first[0].get_or_insert(at);
            }
            PICTURE_PARAMETERS => {
                let Some(set) = PictureParameters::parse(unit) else { return };
                self.pictures.insert(set.id, set);
                self.first[1].get_or_insert(at);
            }
            _ => {}
        }
    }

    /// The place in the order of display of the picture whose first slice is `unit`.
    fn order(&mut self, unit: &[u8], slice: &Slice) -> Result<(u32, i64), String> {
        let set = self.pictures.get(&slice.parameters).and_then(|set| self.sequences.get(&set.sequence));
        let set = set.ok_or_else(|| {
            format!(
                "a slice uses picture parameters {}, which are missing: the file is cut, or not H.264",
                slice.parameters
            )
        })?;
        let order = SliceOrder::parse(unit, set).ok_or("the header of a slice is cut short")?;
        if order.is_field {
            return Err("the video is interlaced: its pictures are fields".to_owned());
        }
        self.refreshes += u32::from(unit_type(unit) == IDR);
        self.count += 1;
        let place = match set.order {
            Order::Count { bits } => self.counter.next(unit, order.count, bits),
            Order::Decoding => self.count,
            Order::Cycle => return Err("the order of display has type 1, which is not supported".to_owned()),
        };
        Ok((self.refreshes, place))
    }
}

/// The NAL units between start codes (annex B), without the zeros after them.
fn split(bytes: &[u8]) -> Vec<Range<usize>> {
    let starts: Vec<usize> =
        bytes.windows(3).enumerate().filter(|(_, code)| code == &[0, 0, 1]).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let unit = |(start, end): (&usize, usize)| {
        let start = start + 3;
        let end = bytes[start..end].iter().rposition(|byte| *byte != 0).map_or(start, |last| start + last + 1);
        start..end
    };
    starts.iter().zip(ends).map(unit).filter(|unit| !unit.is_empty()).collect()
}

/// The container that a file is, if it is one of those that are common.
fn container(bytes: &[u8]) -> Option<&'static str> {
    const TRANSPORT_PACKET: usize = 188;
    match bytes {
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some("an MP4 file"),
        [0x1A, 0x45, 0xDF, 0xA3, ..] => Some("a Matroska or WebM file"),
        [b'R', b'I', b'F', b'F', ..] => Some("an AVI file"),
        [0x47, ..] if bytes.get(TRANSPORT_PACKET).is_none_or(|byte| *byte == 0x47) => Some("an MPEG transport stream"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streaming::h264::payload::Contents;
    use FrameKind::{B, I, P};
    use proptest::prelude::*;

    /// The bits of a NAL unit.
    #[derive(Default)]
    struct Written {
        bytes: Vec<u8>,
        bits: u32,
    }

    impl Written {
        fn of(first: u8) -> Self {
            Self { bytes: vec![first], bits: 0 }
        }

        fn bits(mut self, value: u32, count: u32) -> Self {
            for bit in (0..count).rev() {
                if self.bits.is_multiple_of(8) {
                    self.bytes.push(0);
                }
                let last = self.bytes.len() - 1;
                self.bytes[last] |= ((value >> bit & 1) as u8) << (7 - self.bits % 8);
                self.bits += 1;
            }
            self
        }

        fn golomb(self, value: u32) -> Self {
            let length = 32 - (value + 1).leading_zeros();
            self.bits(0, length - 1).bits(value + 1, length)
        }

        /// The unit after a start code, with emulation prevention.
        fn unit(self) -> Vec<u8> {
            let mut stream = vec![0, 0, 0, 1];
            let mut zeros = 0;
            for byte in self.bits(1, 1).bytes {
                if zeros == 2 && byte <= 3 {
                    stream.push(3);
                    zeros = 0;
                }
                zeros = if byte == 0 { zeros + 1 } else { 0 };
                stream.push(byte);
            }
            stream
        }
    }

    /// Sequence parameters of the baseline profile: 176 × 144, 25 frames per second.
    fn sequence(order: u32, frames_only: u32) -> Vec<u8> {
        let set = Written::of(0x67).bits(66, 8).bits(0, 8).bits(11, 8).golomb(0).golomb(0).golomb(order);
        let set = match order {
            0 => set.golomb(2),
            1 => set.bits(0, 1).golomb(0).golomb(0).golomb(0),
            _ => set,
        };
        // References, gaps, blocks of a row and rows.
        let rows = if frames_only == 1 { 8 } else { 4 };
        let set = set.golomb(1).bits(0, 1).golomb(10).golomb(rows).bits(frames_only, 1);
        let set = if frames_only == 1 { set } else { set.bits(0, 1) };
        // No cropping; of the usability information the rate only.
        let set = set.bits(0, 1).bits(0, 1).bits(1, 1).bits(0, 4).bits(1, 1);
        set.bits(1, 32).bits(50, 32).bits(1, 1).bits(0, 5).unit()
    }

    fn picture_parameters() -> Vec<u8> {
        Written::of(0x68).golomb(0).golomb(0).bits(0, 2).unit()
    }

    /// A slice: whether the unit is an IDR, its type, the order count in frames.
    fn slice(idr: bool, kind: FrameKind, count: u32, first_block: u32) -> Written {
        let (first, number) = match (idr, kind) {
            (true, _) => (0x65, 7),
            (_, I) => (0x61, 7),
            (_, P) => (0x61, 5),
            (_, B) => (0x01, 6),
        };
        let slice = Written::of(first).golomb(first_block).golomb(number).golomb(0).bits(0, 4);
        if idr { slice.golomb(0) } else { slice }.bits(2 * count % 64, 6)
    }

    fn file(slices: impl IntoIterator<Item = Written>) -> Vec<u8> {
        let mut bytes = [sequence(0, 1), picture_parameters()].concat();
        slices.into_iter().for_each(|slice| bytes.extend(slice.bits(0xABCD, 16).unit()));
        bytes
    }

    /// Two groups of pictures with B frames: the order of display starts again with the second.
    fn groups() -> Vec<u8> {
        let group = [(true, I, 0), (false, P, 3), (false, B, 1), (false, B, 2)];
        file(group.iter().chain(&group).map(|(idr, kind, count)| slice(*idr, *kind, *count, 0)))
    }

    #[test]
    fn frames_have_their_type_and_order() {
        let clip = Clip::parse(groups()).expect("valid");
        assert_eq!((clip.sequence().size, clip.sequence().frame_rate()), ([176, 144], Some(25.0)));
        assert_eq!(clip.parameter_sets().map(|set| set[0]), [0x67, 0x68]);
        let Packets { video, payloads } = clip.packets(25.0, 1400).expect("valid");
        assert_eq!(video.sending_order(), [0, 3, 1, 2, 4, 7, 5, 6]);
        let kinds: Vec<_> = video.frames().iter().map(|frame| frame.kind).collect();
        assert_eq!(kinds, [I, B, B, P, I, B, B, P]);
        assert_eq!(video.frames()[5].time, Span::from_millis(200));
        // The parameters are in the first frame.
        assert_eq!(payloads.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1, 1, 1, 1, 1, 1, 1]);
        assert!(payloads.iter().all(|frame| Contents::parse(&frame[0]).is_some_and(|contents| contents.begins)));
    }

    #[test]
    fn order_counts_wrap() {
        // 64 counts of 2 have 6 bits.
        let frames = (0..100).map(|frame| slice(frame == 0, if frame == 0 { I } else { P }, frame, 0));
        let video = Clip::parse(file(frames)).expect("valid").packets(25.0, 1400).expect("valid").video;
        assert_eq!(video.sending_order(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn slices_of_a_picture_are_one_frame() {
        let slices = [slice(true, I, 0, 0), slice(true, I, 0, 50), slice(false, P, 1, 0), slice(false, I, 1, 50)];
        let Packets { video, payloads } = Clip::parse(file(slices)).expect("valid").packets(25.0, 1400).expect("valid");
        assert_eq!(video.frames().iter().map(|frame| frame.kind).collect::<Vec<_>>(), [I, P]);
        assert_eq!(payloads.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2]);
    }

    #[test]
    fn what_cannot_be_sent_is_named() {
        let error = |bytes: &[u8]| Clip::parse(bytes.to_vec()).expect_err("wrong").to_string();
        assert!(error(b"\0\0\0\x20ftypisom").starts_with("this is an MP4 file"), "{}", error(b"\0\0\0\x20ftypisom"));
        assert!(error(&[0x1A, 0x45, 0xDF, 0xA3]).contains("Matroska"));
        assert!(error(&[0x47; 400]).contains("transport stream"));
        assert!(error(b"no video").contains("no parameter sets") && error(b"").contains("ffmpeg"));
        let sets = [sequence(0, 1), picture_parameters()].concat();
        assert!(error(&sets).contains("fewer than two frames"));
        let missing = groups().split_off(sequence(0, 1).len() + picture_parameters().len());
        assert!(
            error(&missing)
                .contains("picture parameters 0, which are missing: the file is cut, or not H.264 (at byte 4)"),
            "{}",
            error(&missing)
        );
        let with = |set: Vec<u8>| [set, picture_parameters(), slice(true, I, 0, 0).bits(0xABCD, 16).unit()].concat();
        assert!(error(&with(sequence(1, 1))).contains("type 1"));
        let fields = Written::of(0x65).golomb(0).golomb(7).golomb(0).bits(0, 4).bits(2, 2).golomb(0).bits(0, 6);
        assert!(error(&[sequence(0, 0), picture_parameters(), fields.unit()].concat()).contains("interlaced"));
        let clip = Clip::parse(groups()).expect("valid");
        assert_eq!(clip.packets(0.0, 1400).expect_err("wrong").field, "frame_rate");
        assert_eq!(clip.packets(25.0, 2).expect_err("wrong").field, "packet");
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(changes in proptest::collection::vec((0..200_usize, any::<u8>()), 0..8), most in 3..40_usize) {
            let mut bytes = groups();
            let length = bytes.len();
            changes.into_iter().for_each(|(at, byte)| bytes[at % length] = byte);
            if let Ok(clip) = Clip::parse(bytes)
                && let Ok(packets) = clip.packets(25.0, most)
            {
                let size: usize = packets.payloads.iter().flatten().map(Vec::len).sum();
                prop_assert_eq!(packets.video.bytes().get(), size as u64);
            }
        }
    }
}
