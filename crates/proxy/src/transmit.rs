//! Sends the segments of a TCP end.
//!
//! Where the packet store takes super-segments, consecutive segments of new data leave as one, as
//! with the segmentation offload of the kernel (TSO). The connection still sends, and repeats,
//! segments of its own size.

use airpath_core::{Direction, FlowId, Instant, UserId};
use airpath_path::{Departures, MiddleboxContext, NewSegment, StreamBuffer};
use airpath_tcp::{Connection, Segment};
use airpath_wire::tcp::{Flags, TcpHeader};

/// Sends the segments that are due at `end` in `direction`, with the payload of `stream`.
pub fn transmit(
    now: Instant,
    end: &mut Connection,
    stream: &StreamBuffer,
    (flow, user, direction): (FlowId, UserId, Direction),
    left: &mut Departures,
    cx: &mut MiddleboxContext<'_>,
) {
    let segment_size = end.segment_size();
    let send = |segment: &Segment, left: &mut Departures, cx: &mut MiddleboxContext<'_>| {
        let payload = stream.payload_of(segment);
        let new = NewSegment { flow, segment, segment_size, payload, buffer: Some(stream) };
        if let Some(packet) = cx.create_segment(now, direction, user, new) {
            left.push(now, direction, packet);
        }
    };
    let most = cx.most_payload();
    // With the most payload that it may have.
    let mut waiting: Option<(Segment, u32)> = None;
    while let Some(segment) = end.poll_transmit(now, cx.context()) {
        let Some(most) = most else {
            send(&segment, left, cx);
            continue;
        };
        if let Some((earlier, most_bytes)) = &mut waiting
            && continues(earlier, &segment, segment_size, *most_bytes)
        {
            earlier.length += segment.length;
            earlier.info.length += segment.length;
            earlier.header.flags |= segment.header.flags;
            earlier.info.flags = earlier.header.flags.0;
        } else {
            let most_bytes = most.min(stream.most_in_range(segment.info.offset.cast_unsigned()));
            if let Some((earlier, _)) = waiting.replace((segment, most_bytes)) {
                send(&earlier, left, cx);
            }
        }
    }
    waiting.iter().for_each(|(last, _)| send(last, left, cx));
}

/// Whether `next` can leave with the segments of `earlier`, whose headers would then differ in
/// sequence number, PSH and FIN only.
fn continues(earlier: &Segment, next: &Segment, segment_size: u32, most: u32) -> bool {
    let without = |flags: Flags, ignored: Flags| Flags(flags.0 & !ignored.0);
    let fixed = |header: &TcpHeader| TcpHeader { sequence: 0, flags: Flags::ACK, ..*header };
    earlier.length > 0
        && earlier.length.is_multiple_of(segment_size)
        && (1..=segment_size).contains(&next.length)
        && earlier.length + next.length <= most
        && next.header.sequence == earlier.header.sequence.wrapping_add(earlier.length)
        && without(earlier.header.flags, Flags::PSH) == Flags::ACK
        && without(next.header.flags, Flags::PSH | Flags::FIN) == Flags::ACK
        && fixed(&earlier.header) == fixed(&next.header)
        && earlier.ecn == next.ecn
        && earlier.info.retransmission == next.info.retransmission
}
