//! The video of the packets that arrived.
//!
//! A frame are the packets of one timestamp. Numbers and timestamps show which packets and frames
//! are missing. Where it is not certain to which frame a lost packet belongs, the rules are those
//! of [`Gap`].

use std::collections::{BTreeMap, BTreeSet};

use airpath_core::Span;

use super::Arrival;
use crate::streaming::CLOCK;
use crate::streaming::h264::payload::rank;
use crate::streaming::video::{Frame, FrameKind, Video, VideoError};

/// A video that was made.
pub(super) struct Made {
    pub video: Video,
    /// Bytes of the packets of each frame, in the order of sending.
    pub sizes: Vec<Vec<u32>>,
    /// Position of the frame that is displayed first.
    pub first: i64,
}

/// The packets of a frame that arrived.
struct Run {
    position: i64,
    /// Numbers of the first and the last packet.
    numbers: [u32; 2],
    /// Numbers and bytes of the packets.
    packets: Vec<(u32, u32)>,
    /// Whether the frame begins in the first packet, and ends in the last one.
    is_begun: bool,
    is_ended: bool,
    kind: Option<FrameKind>,
}

/// Lost packets between two frames that have packets.
///
/// The frame before has one of them if its last packet is missing, and the frame after if its first
/// one is. The frames that are missing there by their time have the others, in equal parts. If
/// there is none, the frame before or after has them, whichever misses a packet.
struct Gap {
    /// Place of the frame after it.
    after: usize,
    /// Packets of the frames before and after.
    sides: [u32; 2],
    /// Packets left for missing frames.
    room: u32,
    /// Positions of missing frames.
    missing: Vec<i64>,
}

/// Frames between the place of a gap and that of a missing frame in the order of display, at most:
/// B frames are sent out of order.
const REORDERING: usize = 16;

/// Makes the video of `arrivals`, whose first one has number zero.
///
/// # Errors
/// If they have fewer than two frames.
pub(super) fn make(arrivals: &[Arrival]) -> Result<Made, VideoError> {
    let mut sorted: Vec<&Arrival> = arrivals.iter().collect();
    sorted.sort_by_key(|arrival| arrival.number);
    sorted.dedup_by_key(|arrival| arrival.number);
    let runs = runs(&sorted);
    let mut gaps = gaps(&runs);
    let known: BTreeMap<i64, usize> = runs.iter().enumerate().map(|(place, run)| (run.position, place)).collect();
    place_missing(&known, &mut gaps);
    let bytes: u64 = sorted.iter().map(|arrival| u64::from(arrival.size)).sum();
    let mean = bytes.checked_div(sorted.len() as u64).unwrap_or_default().max(1) as u32;
    let mut frames: Vec<(i64, FrameKind, Vec<u32>)> = Vec::with_capacity(runs.len());
    let mut gaps = gaps.into_iter().peekable();
    for (place, run) in runs.iter().enumerate() {
        let mut before = 0;
        if let Some(gap) = gaps.next_if(|gap| gap.after == place) {
            let Gap { sides, mut room, missing, .. } = gap;
            before = sides[1];
            if let Some((_, _, sizes)) = frames.last_mut() {
                sizes.extend(std::iter::repeat_n(mean, sides[0] as usize));
            }
            for (left, position) in (1..=missing.len() as u32).rev().zip(missing) {
                let count = room.div_ceil(left);
                room -= count;
                frames.push((position, FrameKind::P, vec![mean; count as usize]));
            }
        }
        let mut sizes = vec![mean; (before + run.numbers[1] - run.numbers[0] + 1) as usize];
        for (number, size) in &run.packets {
            sizes[(before + number - run.numbers[0]) as usize] = *size;
        }
        frames.push((run.position, run.kind.unwrap_or(FrameKind::P), sizes));
    }
    let mut displayed: Vec<usize> = (0..frames.len()).collect();
    displayed.sort_by_key(|place| frames[*place].0);
    let first = displayed.first().map_or(0, |place| frames[*place].0);
    let mut order = vec![0; frames.len()];
    let frame = |(number, place): (usize, &usize)| {
        let (position, kind, sizes) = &frames[*place];
        order[*place] = number as u32;
        let size: u64 = sizes.iter().map(|size| u64::from(*size)).sum();
        let nanos = (u128::from((position - first) as u64) * 1_000_000_000).div_ceil(CLOCK.into());
        Frame { kind: *kind, size: u32::try_from(size).unwrap_or(u32::MAX), time: Span::from_nanos(nanos as u64) }
    };
    let video = Video::with_order(displayed.iter().enumerate().map(frame).collect(), order)?;
    Ok(Made { video, sizes: frames.into_iter().map(|(_, _, sizes)| sizes).collect(), first })
}

/// The frames of `sorted` packets. A packet whose timestamp is that of another frame is none of the
/// video.
fn runs(sorted: &[&Arrival]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut positions = BTreeSet::new();
    for arrival in sorted {
        let Arrival { number, position, size, .. } = **arrival;
        match runs.last_mut().filter(|run| run.position == position) {
            Some(run) => {
                run.numbers[1] = number;
                run.packets.push((number, size));
                run.is_ended = arrival.marker;
                run.kind = run.kind.into_iter().chain(arrival.kind).max_by_key(|kind| rank(*kind));
            }
            None if positions.insert(position) => runs.push(Run {
                position,
                numbers: [number; 2],
                packets: vec![(number, size)],
                is_begun: arrival.begins,
                is_ended: arrival.marker,
                kind: arrival.kind,
            }),
            None => {}
        }
    }
    runs
}

fn gaps(runs: &[Run]) -> Vec<Gap> {
    let gap = |(before, pair): (usize, &[Run])| {
        let lost = pair[1].numbers[0] - pair[0].numbers[1] - 1;
        let last = u32::from(!pair[0].is_ended).min(lost);
        let first = u32::from(!pair[1].is_begun).min(lost - last);
        let gap = Gap { after: before + 1, sides: [last, first], room: lost - last - first, missing: Vec::new() };
        (lost > 0).then_some(gap)
    };
    runs.windows(2).enumerate().filter_map(gap).collect()
}

/// Finds the positions of missing frames, `known` being the others with their places, and gives
/// each gap its packets.
fn place_missing(known: &BTreeMap<i64, usize>, gaps: &mut [Gap]) {
    let pairs = || known.iter().zip(known.iter().skip(1)).map(|((from, _), (to, place))| (*from, *to, *place));
    let mut steps: Vec<i64> = pairs().map(|(from, to, _)| to - from).collect();
    steps.sort_unstable();
    let interval = steps.get(steps.len() / 2).copied().unwrap_or(1);
    let mut room: i64 = gaps.iter().map(|gap| i64::from(gap.room)).sum();
    for (from, to, place) in pairs() {
        let count = ((to - from + interval / 2) / interval - 1).min(room);
        for number in 1..=count {
            let Some(gap) = nearest(gaps, place) else { break };
            gap.missing.push(from + (to - from) * number / (count + 1));
            room -= 1;
        }
    }
    for gap in gaps {
        gap.missing.sort_unstable();
        if gap.missing.is_empty() {
            let side = gap.sides.iter().position(|packets| *packets > 0).unwrap_or(1);
            gap.sides[side] += std::mem::take(&mut gap.room);
        }
    }
}

/// The gap with room that is nearest to the frame at `place`.
fn nearest(gaps: &mut [Gap], place: usize) -> Option<&mut Gap> {
    let from = gaps.partition_point(|gap| gap.after + REORDERING < place);
    let near = gaps[from..].iter_mut().take_while(|gap| gap.after <= place + REORDERING);
    let free = near.filter(|gap| gap.room as usize > gap.missing.len());
    free.min_by_key(|gap| gap.after.abs_diff(place))
}
