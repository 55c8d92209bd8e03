//! The clocks of GSM's air interface: the 52-multiframe of packet data channels, and the
//! 51-multiframe of the common control channels.
//!
//! A TDMA frame lasts 120/26 = 60/13 ms (3GPP TS 45.002 §4.3.2). All times are whole frames from
//! the origin of the run, rounded down to nanoseconds, so that they do not drift: 52 frames are 240
//! ms exactly.
//!
//! The timeslots of a frame are taken to begin together; those that a mobile has lie within 5 ms.

use airpath_core::{Instant, Span};

/// Radio blocks in a 52-multiframe.
const BLOCKS: u64 = 12;

/// The first frame of each radio block in the 52-multiframe: four frames each, with frames 12, 25,
/// 38 and 51 left for timing advance and measurements (TS 45.002 §6.3.2.1 and table 6 of clause 7).
const FIRST_FRAMES: [u64; BLOCKS as usize] = [0, 4, 8, 13, 17, 21, 26, 30, 34, 39, 43, 47];

/// The first frames of the CCCH blocks in the 51-multiframe, where the CCCH is not combined with
/// dedicated channels (TS 45.002, table 5 of clause 7).
const CCCH_FRAMES: [u64; 9] = [6, 12, 16, 22, 26, 32, 36, 42, 46];

/// Frames of a radio block, and of a CCCH block.
const FRAMES_PER_BLOCK: u64 = 4;

/// Blocks from a downlink block that polls to the uplink block of the reply, with the shortest of
/// the periods that RRBP can give, 13 frames (TS 44.060, table 10.4.5.1).
pub const POLL_TO_REPLY: u64 = 3;

/// A multiframe of 240 ms has 12 radio blocks (TS 43.064 §6.3).
pub const BLOCK_PERIOD: Span = Span::from_millis(20);

/// When a TDMA frame begins.
const fn frame(number: u64) -> Instant {
    Instant::from_nanos(number * 60_000_000 / 13)
}

/// The first frame of a radio block.
const fn first_frame(block: u64) -> u64 {
    block / BLOCKS * 52 + FIRST_FRAMES[(block % BLOCKS) as usize]
}

/// When radio block number `block`, counted from the origin of the run, begins.
#[inline]
pub const fn start_of(block: u64) -> Instant {
    frame(first_frame(block))
}

/// When it is over.
#[inline]
pub const fn end_of(block: u64) -> Instant {
    frame(first_frame(block) + FRAMES_PER_BLOCK)
}

/// The first radio block that begins at `time` or later.
#[inline]
pub fn block_from(time: Instant) -> u64 {
    let multiframe = time.as_nanos() / 240_000_000;
    // The last block of a multiframe begins before it ends, so that the first of the next is the
    // latest it can be.
    (multiframe * BLOCKS..=(multiframe + 1) * BLOCKS)
        .find(|block| start_of(*block) >= time)
        .expect("the next multiframe begins later")
}

/// The first radio block that begins after `time`.
#[inline]
pub fn block_after(time: Instant) -> u64 {
    block_from(Instant::from_nanos(time.as_nanos() + 1))
}

/// When the first CCCH block ends of those that begin at `time` or later.
pub fn ccch_from(time: Instant) -> Instant {
    ccch_blocks(multiframe_51(time))
        .find(|first| frame(*first) >= time)
        .map(end_of_ccch)
        .expect("the series is endless")
}

/// When the first paging block ends that begins at `time` or later of the paging group that `draw`
/// falls into: with discontinuous reception the mobile monitors one CCCH block in this number of
/// 51-multiframes (BS_PA_MFRMS, TS 45.002 §6.5.2).
pub fn paging_from(time: Instant, draw: u64, paging_multiframes: u64) -> Instant {
    let group = draw % (paging_multiframes * CCCH_FRAMES.len() as u64);
    let (phase, block) = (group / CCCH_FRAMES.len() as u64, CCCH_FRAMES[(group % CCCH_FRAMES.len() as u64) as usize]);
    let mut multiframe = multiframe_51(time);
    loop {
        let first = multiframe * 51 + block;
        if multiframe % paging_multiframes == phase && frame(first) >= time {
            return end_of_ccch(first);
        }
        multiframe += 1;
    }
}

/// The 51-multiframe at `time`.
fn multiframe_51(time: Instant) -> u64 {
    (u128::from(time.as_nanos()) * 13 / 60_000_000 / 51) as u64
}

/// The first frames of the CCCH blocks from that multiframe on.
fn ccch_blocks(multiframe: u64) -> impl Iterator<Item = u64> {
    (multiframe..).flat_map(|multiframe| CCCH_FRAMES.map(|first| multiframe * 51 + first))
}

fn end_of_ccch(first: u64) -> Instant {
    frame(first + FRAMES_PER_BLOCK)
}

#[cfg(test)]
mod tests {
    use airpath_core::Span;

    use super::*;

    #[test]
    fn twelve_blocks_in_240_ms() {
        for block in [0, 1, 5, 12_345] {
            assert_eq!(start_of(block + BLOCKS), start_of(block) + Span::from_millis(240));
        }
        assert_eq!(start_of(3), Instant::from_nanos(60_000_000), "13 frames");
        assert!(end_of(2) < start_of(3), "a frame is left between them");
        assert_eq!(end_of(1), start_of(2));
    }

    #[test]
    fn blocks_are_found_by_time() {
        for block in 0..200 {
            let start = start_of(block);
            assert_eq!(block_from(start), block);
            assert_eq!(block_after(start), block + 1);
            assert_eq!(block_from(start + Span::from_nanos(1)), block + 1);
        }
    }

    #[test]
    fn a_paging_group_comes_round() {
        let period = Span::from_nanos(5 * 51 * 60_000_000 / 13);
        for draw in [0, 7, 44, 45, u64::MAX] {
            let first = paging_from(Instant::ZERO, draw, 5);
            let second = paging_from(first, draw, 5);
            let apart = second.since(first);
            assert!(apart.abs_diff(period) <= Span::from_nanos(1), "{apart}");
            assert!(ccch_from(Instant::ZERO) <= first);
        }
    }

    #[test]
    fn the_first_block_of_the_ccch_begins_in_frame_6() {
        assert_eq!(ccch_from(Instant::ZERO), frame(10));
        assert_eq!(paging_from(Instant::ZERO, 0, 5), frame(10));
        assert_eq!(ccch_from(frame(6)), frame(10));
        assert_eq!(ccch_from(frame(47)), frame(51 + 10));
    }
}
