//! RTP payloads of AMR and AMR-WB in bandwidth-efficient mode (RFC 4867 §4.3).
//!
//! A payload is a codec mode request of four bits, an entry of six bits for each frame (F: another
//! entry follows, FT: the frame type, Q: the frame is undamaged), and the frames' bits. Speech bits
//! have no contents, so only the first bytes, up to the last entry, are made and read.

use super::codec::{Codec, FrameKind};

/// No mode is requested.
const NO_REQUEST: u8 = 15;
const REQUEST_BITS: u32 = 4;
const ENTRY_BITS: u32 = 6;

/// Length in bytes of a payload with these `frames`.
pub fn length(codec: Codec, frames: &[FrameKind]) -> u32 {
    let bits: u32 = frames.iter().map(|frame| ENTRY_BITS + codec.bits(*frame)).sum();
    (REQUEST_BITS + bits).div_ceil(8)
}

/// Appends the first bytes of a payload with these `frames`: mode request and entries. The bits of
/// speech that share the last byte are zero.
pub fn write(codec: Codec, frames: &[FrameKind], out: &mut Vec<u8>) {
    let start = out.len();
    let mut bit = 0;
    let mut put = |value: u8, bits: u32| {
        for shift in (0..bits).rev() {
            if bit % 8 == 0 {
                out.push(0);
            }
            out[start + bit / 8] |= (value >> shift & 1) << (7 - bit % 8);
            bit += 1;
        }
    };
    put(NO_REQUEST, REQUEST_BITS);
    for (index, frame) in frames.iter().enumerate() {
        let follows = u8::from(index + 1 < frames.len());
        put(follows << 5 | codec.frame_type(*frame) << 1 | 1, ENTRY_BITS);
    }
}

/// Reads the entries at the start of a payload, at most `most` of them, into `frames`. Returns
/// whether they are complete and of this codec's mode.
pub fn read(codec: Codec, payload: &[u8], most: usize, frames: &mut Vec<FrameKind>) -> bool {
    frames.clear();
    let mut bit = REQUEST_BITS as usize;
    let mut take = |bits: u32| {
        let mut value = 0;
        for _ in 0..bits {
            value = value << 1 | (payload.get(bit / 8)? >> (7 - bit % 8) & 1);
            bit += 1;
        }
        Some(value)
    };
    loop {
        let Some(entry) = take(ENTRY_BITS) else { return false };
        let kind = [FrameKind::Speech, FrameKind::Sid, FrameKind::NoData]
            .into_iter()
            .find(|kind| codec.frame_type(*kind) == entry >> 1 & 15);
        let Some(kind) = kind.filter(|_| frames.len() < most) else { return false };
        frames.push(kind);
        if entry & 1 << 5 == 0 {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FrameKind::{NoData, Sid, Speech};

    #[test]
    fn sizes_are_those_of_rfc_4867() {
        // TS 26.114 and common practice: 32 bytes of AMR 12.2, 7 of SID, 33 of AMR-WB 12.65.
        assert_eq!(length(Codec::Amr, &[Speech]), 32);
        assert_eq!(length(Codec::Amr, &[Sid]), 7);
        assert_eq!(length(Codec::AmrWb, &[Speech]), 33);
        assert_eq!(length(Codec::AmrWb, &[Sid]), 7);
        assert_eq!(length(Codec::Amr, &[Speech; 2]), 63);
    }

    #[test]
    fn bits_of_one_frame() {
        let mut bytes = Vec::new();
        write(Codec::Amr, &[Speech], &mut bytes);
        // CMR 1111, F 0, FT 0111, Q 1.
        assert_eq!(bytes, [0b1111_0011, 0b1100_0000]);
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read(kinds in proptest::collection::vec(0..3_usize, 1..13), wide: bool) {
            let codec = if wide { Codec::AmrWb } else { Codec::Amr };
            let frames: Vec<FrameKind> = kinds.iter().map(|kind| [Speech, Sid, NoData][*kind]).collect();
            let (mut bytes, mut read_back) = (Vec::new(), Vec::new());
            write(codec, &frames, &mut bytes);
            proptest::prop_assert!(read(codec, &bytes, 12, &mut read_back));
            proptest::prop_assert_eq!(&read_back, &frames);
            proptest::prop_assert!(!read(codec, &bytes[..bytes.len() - 1], 12, &mut read_back) || bytes.len() == 1);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            read(Codec::Amr, &bytes, 12, &mut Vec::new());
        }
    }
}
