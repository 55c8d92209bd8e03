//! The payload of RTP packets with H.264 (RFC 6184): a NAL unit, several units, or a fragment.

use super::parameter_sets::SequenceParameters;
use super::slice::Slice;
use super::{PICTURE_PARAMETERS, SEQUENCE_PARAMETERS, is_preface, is_slice, unit_type};
use crate::streaming::video::FrameKind;

/// Types of payload: several units of one time (STAP-A), and a fragment (FU-A). The other types
/// are those of the interleaved mode.
const AGGREGATION: u8 = 24;
const FRAGMENT: u8 = 28;
/// Bits of the header of a fragment: the first and the last of its unit.
const START: u8 = 0x80;
const END: u8 = 0x40;
/// Bytes before the contents of a fragment.
const FRAGMENT_HEADER: usize = 2;
/// The bits of a unit's first byte beside its type.
const NOT_TYPE: u8 = 0xE0;

/// Fewest bytes of a packet's payload: a fragment with contents.
pub const LEAST: usize = FRAGMENT_HEADER + 1;

/// Calls `packet` with the payloads of a NAL unit, of at most `most` bytes each: the unit itself,
/// or its fragments (§5.6, §5.8). `most` is at least [`LEAST`], and an empty unit has no payload.
pub fn packetize(unit: &[u8], most: usize, mut packet: impl FnMut(Vec<u8>)) {
    assert!(most >= LEAST, "a fragment has contents");
    let Some((&first, contents)) = unit.split_first() else { return };
    if unit.len() <= most {
        return packet(unit.to_vec());
    }
    let mut fragments = contents.chunks(most - FRAGMENT_HEADER).peekable();
    let mut start = START;
    while let Some(fragment) = fragments.next() {
        let end = if fragments.peek().is_none() { END } else { 0 };
        packet([&[first & NOT_TYPE | FRAGMENT, start | end | unit_type(unit)], fragment].concat());
        start = 0;
    }
}

/// What a payload shows of its frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Whether a frame begins in it.
    pub begins: bool,
    /// The references of its slices that begin in it; `None` if none does.
    pub kind: Option<FrameKind>,
    /// Whether it has a set of parameters of the sequence, or of the picture.
    pub parameters: [bool; 2],
    /// The sequence parameters in it.
    pub sequence: Option<SequenceParameters>,
}

impl Contents {
    /// Reads a payload of the non-interleaved mode. `None` if it is none.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut contents = Self::default();
        match unit_type(payload) {
            1..AGGREGATION => contents.add(payload),
            AGGREGATION => {
                let mut rest = &payload[1..];
                while !rest.is_empty() {
                    let (size, units) = rest.split_first_chunk()?;
                    let (unit, after) = units.split_at_checked(u16::from_be_bytes(*size).into())?;
                    // A unit of an aggregation is no aggregation itself (§5.7).
                    (1..AGGREGATION).contains(&unit_type(unit)).then(|| contents.add(unit))?;
                    rest = after;
                }
            }
            FRAGMENT => {
                let (header, fragment) = payload.split_first_chunk::<FRAGMENT_HEADER>()?;
                if !(1..AGGREGATION).contains(&unit_type(&header[1..])) {
                    return None;
                }
                if header[1] & START > 0 {
                    // The fields that are read are in the first bytes.
                    let first = header[0] & NOT_TYPE | unit_type(&header[1..]);
                    let begin = &fragment[..fragment.len().min(BEGIN)];
                    contents.add(&[&[first], begin].concat());
                }
            }
            _ => return None,
        }
        Some(contents)
    }

    fn add(&mut self, unit: &[u8]) {
        if is_slice(unit) {
            let Some(slice) = Slice::parse(unit) else { return };
            self.begins |= slice.is_first;
            self.kind = self.kind.into_iter().chain([slice.kind]).max_by_key(|kind| rank(*kind));
            return;
        }
        self.begins |= is_preface(unit);
        match unit_type(unit) {
            SEQUENCE_PARAMETERS => {
                self.parameters[0] = true;
                self.sequence = SequenceParameters::parse(unit).or(self.sequence);
            }
            PICTURE_PARAMETERS => self.parameters[1] = true,
            _ => {}
        }
    }
}

/// Bytes of a unit's begin that are read: parameter sets are shorter, but for scaling lists.
const BEGIN: usize = 1024;

/// A frame has the type of its slices with the most references.
pub const fn rank(kind: FrameKind) -> u8 {
    match kind {
        FrameKind::I => 0,
        FrameKind::P => 1,
        FrameKind::B => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The unit whose payloads these are.
    fn reassembled(payloads: &[Vec<u8>]) -> Vec<u8> {
        let [first, ..] = payloads else { return Vec::new() };
        if unit_type(first) != FRAGMENT {
            return first.clone();
        }
        let mut unit = vec![first[0] & NOT_TYPE | unit_type(&first[1..])];
        unit.extend(payloads.iter().flat_map(|payload| &payload[FRAGMENT_HEADER..]));
        unit
    }

    #[test]
    fn a_fragment_shows_its_frame_only_at_the_start() {
        // The first macroblock, type 7 (all slices are I slices), picture parameters 0.
        let unit = [&[0x65, 0b1000_1000, 0b1000_0000][..], &[9; 50]].concat();
        let mut payloads = Vec::new();
        packetize(&unit, 20, |payload| payloads.push(payload));
        let shown: Vec<_> = payloads.iter().map(|payload| Contents::parse(payload).expect("valid")).collect();
        assert_eq!(shown[0], Contents { begins: true, kind: Some(FrameKind::I), ..Contents::default() });
        assert_eq!(shown[1..], [Contents::default(); 2]);
        assert_eq!(payloads.iter().map(|payload| payload[1]).collect::<Vec<_>>(), [0x85, 0x05, 0x45]);
    }

    #[test]
    fn aggregations_have_all_their_units() {
        let units: [&[u8]; 3] = [&[0x09, 0xF0], &[0x68, 0xEB], &[0x41, 0b1110_0000]];
        let mut payload = vec![0x78];
        for unit in units {
            payload.extend((unit.len() as u16).to_be_bytes());
            payload.extend(unit);
        }
        let contents = Contents::parse(&payload).expect("valid");
        assert_eq!(
            contents,
            Contents { begins: true, kind: Some(FrameKind::P), parameters: [false, true], sequence: None }
        );
        payload.pop();
        assert_eq!(Contents::parse(&payload), None, "the last unit is cut short");
        assert_eq!([&[][..], &[0x60], &[0x79, 0], &[0x7C, 0x9C, 1]].map(Contents::parse), [None; 4]);
    }

    proptest! {
        #[test]
        fn units_are_reassembled(unit in proptest::collection::vec(any::<u8>(), 1..300), most in LEAST..120_usize) {
            let unit = [&[unit[0] & NOT_TYPE | 5], &unit[1..]].concat();
            let mut payloads = Vec::new();
            packetize(&unit, most, |payload| payloads.push(payload));
            prop_assert!(payloads.iter().all(|payload| payload.len() <= most && Contents::parse(payload).is_some()));
            prop_assert_eq!(reassembled(&payloads), unit);
        }

        #[test]
        fn no_payload_makes_it_panic(payload in proptest::collection::vec(any::<u8>(), 0..80), kind in 0..32_u8) {
            let _ = Contents::parse(&payload);
            let mut payload = payload;
            if let Some(first) = payload.first_mut() {
                *first = *first & NOT_TYPE | kind;
            }
            let _ = Contents::parse(&payload);
        }
    }
}
