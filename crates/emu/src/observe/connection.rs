//! A TCP connection: its two streams, and what the summary says of them.

use airpath_core::{Bytes, Direction, Instant, SegmentInfo, Span};
use airpath_result::summary::TransferRow;
use airpath_wire::tcp::Flags;
use serde_json::{Value, json};

use super::headers::TcpSegment;
use super::stream::Stream;

/// Bytes that the timestamps option takes from the payload of each segment (RFC 7323 appendix A).
const TIMESTAMPS: u16 = 12;
/// The greatest shift that is in use, whatever a SYN says (RFC 7323 §2.3).
const MAX_WINDOW_SCALE: u8 = 14;

#[derive(Clone, Debug, Default)]
pub(super) struct Connection {
    down: Stream,
    up: Stream,
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub outcome: &'static str,
    /// Why it was aborted.
    pub cause: Option<&'static str>,
}

impl Connection {
    /// A segment enters the link.
    pub fn enters(&mut self, now: Instant, direction: Direction, header: &TcpSegment) -> SegmentInfo {
        let mut info = self.stream_mut(direction).sends(now, header);
        if header.has(Flags::ACK) {
            info.ack = Some(self.stream_mut(opposite(direction)).offset_of(header.acknowledgment));
        }
        info.window = u64::from(header.window) << self.window_scale(direction, header);
        info
    }

    /// A segment leaves the link.
    pub fn leaves(&mut self, due: Instant, direction: Direction, header: &TcpSegment) {
        self.stream_mut(direction).arrives(due, header);
        if header.has(Flags::ACK) && !header.has(Flags::RST) {
            let other = self.stream_mut(opposite(direction));
            let offset = other.offset_of(header.acknowledgment);
            other.is_acknowledged(due, offset);
        }
    }

    /// Whether this header begins another connection between the same ports.
    pub fn is_succeeded_by(&self, direction: Direction, header: &TcpSegment) -> bool {
        self.stream(direction).is_succeeded_by(header)
    }

    /// The direction in which more data went.
    pub fn main_direction(&self) -> Direction {
        if self.up.unique_bytes > self.down.unique_bytes { Direction::Up } else { Direction::Down }
    }

    pub fn ending(&self) -> Ending {
        let main = self.main_direction();
        if self.stream(main).is_complete() {
            return Ending { outcome: "finished", cause: None };
        }
        let was_open = self.down.syn_arrived.is_some() && self.up.syn_arrived.is_some();
        let cause = match (self.down.reset_arrived, self.up.reset_arrived) {
            (None, None) => return Ending { outcome: "unfinished", cause: None },
            (Some(_), None) if !was_open => "refused by the server",
            (None, Some(_)) if !was_open => "refused by the mobile",
            (Some(down), Some(up)) if up < down => "reset by the mobile",
            (Some(_), _) => "reset by the server",
            (None, Some(_)) => "reset by the mobile",
        };
        Ending { outcome: "aborted", cause: Some(cause) }
    }

    /// What is known of the transfer in the main direction of a connection that began at `start`, opened by a packet of
    /// direction `opened`. What only its end points know is `None`.
    pub fn row(&self, start: Instant, opened: Direction) -> TransferRow {
        let (data, acks) = (self.stream(self.main_direction()), self.stream(opposite(self.main_direction())));
        let since_start = |time: Option<Instant>| time.map(|time| time.since(start));
        let seconds = |time: Option<Instant>| since_start(time).map(Span::as_secs_f64);
        let delivered = Bytes::new(data.delivered().unsigned_abs());
        let is_heard = data.end > 0 && data.acknowledged >= data.end;
        TransferRow {
            tcp: self.negotiated(),
            bytes: data.end.unsigned_abs(),
            delivered_bytes: delivered.get(),
            connect_s: seconds(self.stream(opposite(opened)).syn_arrived),
            first_byte_s: seconds(data.first_arrived),
            duration_s: seconds(data.last_arrived.filter(|_| data.is_complete())),
            acknowledged_s: seconds(data.acknowledged_at.filter(|_| is_heard)),
            throughput_bps: since_start(data.last_arrived).and_then(|span| delivered.rate_over(span)),
            data_packets: Some(data.data_packets),
            data_bytes: Some(data.data_bytes),
            unique_bytes: Some(data.unique_bytes),
            retransmitted_packets: Some(data.repeated_packets),
            retransmitted_bytes: Some(data.data_bytes - data.unique_bytes),
            ack_packets: Some(acks.pure_acks),
            timeouts: None,
            fast_retransmits: None,
            undone: None,
            rtt_min_s: data.round_trips.least.map(Span::as_secs_f64),
            rtt_mean_s: data.round_trips.mean_s(),
            rtt_max_s: data.round_trips.greatest.map(Span::as_secs_f64),
            rtt_samples: Some(data.round_trips.count),
        }
    }

    /// What both ends agreed on, as their SYNs say; nothing if one was not seen.
    fn negotiated(&self) -> Value {
        let main = self.main_direction();
        let (Some(ours), Some(theirs)) = (self.stream(main).syn, self.stream(opposite(main)).syn) else {
            return json!({ "profile": "as seen" });
        };
        let timestamps = ours.timestamps.is_some() && theirs.timestamps.is_some();
        let scales = ours.window_scale.zip(theirs.window_scale).unwrap_or((0, 0));
        let sizes = ours.maximum_segment_size.zip(theirs.maximum_segment_size);
        let options = if timestamps { TIMESTAMPS } else { 0 };
        json!({
            "profile": "as seen",
            "negotiated": {
                "segment_size": sizes.map(|(ours, theirs)| ours.min(theirs).saturating_sub(options)),
                "selective_acknowledgement": ours.sack_permitted && theirs.sack_permitted,
                "timestamps": timestamps,
                "window_scale": scales.0,
                "peer_window_scale": scales.1,
                "ecn": self.down.wants_ecn && self.up.wants_ecn,
            },
        })
    }

    /// By how many bits the window in `header` is shifted. That of a SYN never is, and no other unless both SYNs said so
    /// (RFC 7323 §2.2).
    fn window_scale(&self, direction: Direction, header: &TcpSegment) -> u8 {
        let scale = |stream: &Stream| stream.syn.and_then(|options| options.window_scale);
        match (scale(self.stream(direction)), scale(self.stream(opposite(direction)))) {
            (Some(own), Some(_)) if !header.has(Flags::SYN) => own.min(MAX_WINDOW_SCALE),
            _ => 0,
        }
    }

    const fn stream(&self, direction: Direction) -> &Stream {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    const fn stream_mut(&mut self, direction: Direction) -> &mut Stream {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}

const fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Down => Direction::Up,
        Direction::Up => Direction::Down,
    }
}
