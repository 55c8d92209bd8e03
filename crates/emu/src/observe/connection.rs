//! A TCP connection in captures at both ends of the link, and its row of the summary.

use airpath_core::{Bytes, Direction, Instant, SegmentInfo, Span};
use airpath_observe::{Connection as Observed, End, Events, Figures, Observation};
use airpath_result::summary::TransferRow;
use airpath_wire::segment::{Endpoint, Segment};
use airpath_wire::tcp::Flags;
use serde_json::{Value, json};

/// Bytes that the timestamps option takes from the payload of each segment (RFC 7323 appendix A).
const TIMESTAMPS: u16 = 12;

/// A connection at both ends of the link.
///
/// Packets of a direction enter at one end and leave at the other: the arrays have one element per
/// direction, for the end where its packets enter or for its data, in the order of
/// [`Direction::BOTH`].
#[derive(Clone, Debug)]
pub(super) struct Connection {
    mobile: Endpoint,
    /// An earlier connection had the same addresses and ports.
    reused: bool,
    /// The observed connection at each end, once a packet has passed there.
    observed: [Option<Observed>; 2],
    deliveries: [Delivery; 2],
}

/// Delivery times of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Delivery {
    /// Whether the SYN requested ECN (RFC 3168 §6.1.1), or agreed to it.
    wants_ecn: bool,
    syn: Option<Instant>,
    reset: Option<Instant>,
    first_data: Option<Instant>,
    /// The last segment with bytes that had not arrived before.
    last_new_data: Option<Instant>,
    /// The offset up to which acknowledgements have arrived, and when they last acknowledged data.
    acknowledged: i64,
    acknowledged_at: Option<Instant>,
}

/// The end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub outcome: &'static str,
    /// Why it was aborted.
    pub cause: Option<&'static str>,
}

impl Connection {
    /// A connection of the mobile's port `mobile`, without segments; `reused` where an earlier one
    /// had the same ports.
    pub fn new(mobile: Endpoint, reused: bool) -> Self {
        Self { mobile, reused, observed: [None, None], deliveries: Default::default() }
    }

    /// The connection at the end of the link where packets of `direction` enter.
    pub const fn at_entry(&self, direction: Direction) -> Option<&Observed> {
        self.observed[direction as usize].as_ref()
    }

    /// Adds a segment that enters the link.
    pub fn enters(&mut self, direction: Direction, segment: &Segment<'_>) -> SegmentInfo {
        let (observation, _) = self.observe(direction, direction, segment);
        if segment.flags.contains(Flags::SYN) {
            self.deliveries[direction as usize].wants_ecn = segment.flags.contains(Flags::ECE);
        }
        SegmentInfo {
            offset: observation.offset,
            length: segment.length,
            ack: observation.acknowledged.into(),
            window: observation.window as u32,
            flags: segment.flags.0,
            retransmission: observation.retransmission.is_some(),
        }
    }

    /// Adds a segment that leaves the link, where it was due at `due`.
    pub fn leaves(&mut self, due: Instant, direction: Direction, segment: &Segment<'_>) {
        let flags = segment.flags;
        let (observation, is_new) = self.observe(direction.opposite(), direction, segment);
        let delivery = &mut self.deliveries[direction as usize];
        if flags.contains(Flags::RST) {
            delivery.reset.get_or_insert(due);
            return;
        }
        if flags.contains(Flags::SYN) {
            delivery.syn.get_or_insert(due);
        }
        if segment.length > 0 {
            delivery.first_data.get_or_insert(due);
        }
        if is_new {
            delivery.last_new_data = Some(due);
        }
        if let Some(acknowledged) = observation.acknowledged {
            self.is_acknowledged(due, direction.opposite(), acknowledged);
        }
    }

    /// Whether this segment, which is about to enter, begins another connection between the same
    /// ports.
    pub fn is_succeeded_by(&self, direction: Direction, segment: &Segment<'_>) -> bool {
        self.at_entry(direction)
            .is_some_and(|observed| observed.superseded_by(segment, end(observed, self.mobile, direction)))
    }

    /// The direction with more data.
    pub fn main_direction(&self) -> Direction {
        let bytes = |direction| self.sent(direction).map_or(0, |figures| figures.unique_bytes);
        if bytes(Direction::Up) > bytes(Direction::Down) { Direction::Up } else { Direction::Down }
    }

    pub fn ending(&self) -> Ending {
        if self.is_complete(self.main_direction()) {
            return Ending { outcome: "finished", cause: None };
        }
        let [down, up] = [Direction::Down, Direction::Up].map(|direction| &self.deliveries[direction as usize]);
        let was_open = down.syn.is_some() && up.syn.is_some();
        let cause = match (down.reset, up.reset) {
            (None, None) => return Ending { outcome: "unfinished", cause: None },
            (Some(_), None) if !was_open => "refused by the server",
            (None, Some(_)) if !was_open => "refused by the mobile",
            (Some(down), Some(up)) if up < down => "reset by the mobile",
            (Some(_), _) => "reset by the server",
            (None, Some(_)) => "reset by the mobile",
        };
        Ending { outcome: "aborted", cause: Some(cause) }
    }

    /// The transfer in the main direction of a connection that began at `start`, opened by a packet
    /// of direction `opened`. Figures that only its end points have are `None`.
    ///
    /// Sent data and round trips are figures of the capture at the sender; delivered data is a
    /// figure of the capture at the receiver.
    pub fn row(&self, start: Instant, opened: Direction) -> TransferRow {
        let main = self.main_direction();
        let none = Figures::default();
        let sent = self.sent(main).unwrap_or(&none);
        let bytes = sent.stream_length.unwrap_or(sent.unique_bytes);
        let arrived = self.arrived(main);
        let delivered = Bytes::new(arrived.map_or(0, |figures| figures.unique_bytes));
        let delivery = &self.deliveries[main as usize];
        let since_start = |time: Option<Instant>| time.map(|time| time.since(start));
        let seconds = |time: Option<Instant>| since_start(time).map(Span::as_secs_f64);
        let is_acknowledged = bytes > 0 && delivery.acknowledged >= bytes.cast_signed();
        TransferRow {
            tcp: self.negotiated().into(),
            bytes,
            delivered_bytes: delivered.get(),
            connect_s: seconds(self.deliveries[opened.opposite() as usize].syn),
            first_byte_s: seconds(delivery.first_data),
            duration_s: seconds(delivery.last_new_data.filter(|_| self.is_complete(main))),
            acknowledged_s: seconds(delivery.acknowledged_at.filter(|_| is_acknowledged)),
            throughput_bps: since_start(delivery.last_new_data).and_then(|span| delivered.rate_over(span)),
            data_packets: Some(sent.data_segments),
            data_bytes: Some(sent.data_bytes),
            unique_bytes: Some(sent.unique_bytes),
            retransmitted_packets: Some(sent.retransmissions),
            retransmitted_bytes: Some(sent.retransmitted_bytes),
            ack_packets: Some(self.sent(main.opposite()).map_or(0, |figures| figures.pure_acknowledgements)),
            timeouts: None,
            fast_retransmits: None,
            undone: None,
            marked_packets: arrived.map(|figures| figures.event(Events::CONGESTION_EXPERIENCED).into()),
            ecn_reductions: None,
            rtt_min_s: sent.round_trip.minimum().map(Span::as_secs_f64),
            rtt_mean_s: sent.round_trip.mean(),
            rtt_max_s: sent.round_trip.maximum().map(Span::as_secs_f64),
            rtt_samples: Some(sent.round_trip.count),
            proxy_rtt_mean_s: None,
        }
    }

    /// Adds a segment of `direction` at the end where packets of `entry` enter. Returns its
    /// interpretation there, and whether it has data that had not passed there before.
    fn observe(&mut self, entry: Direction, direction: Direction, segment: &Segment<'_>) -> (Observation, bool) {
        let (mobile, reused) = (self.mobile, self.reused);
        let observed = self.observed[entry as usize].get_or_insert_with(|| Observed::new(segment, reused));
        let from = end(observed, mobile, direction);
        let before = observed.figures(from).unique_bytes;
        let observation = observed.segment(segment, from);
        (observation, observed.figures(from).unique_bytes > before)
    }

    /// Adds an acknowledgement of `direction` up to `acknowledged` that has arrived at the sender.
    fn is_acknowledged(&mut self, due: Instant, direction: Direction, acknowledged: i64) {
        let sent = self.sent(direction).map_or(0, |figures| figures.unique_bytes);
        let delivery = &mut self.deliveries[direction as usize];
        if acknowledged > delivery.acknowledged {
            // An acknowledgement beyond the data covers the FIN.
            if delivery.acknowledged < sent.cast_signed() {
                delivery.acknowledged_at = Some(due);
            }
            delivery.acknowledged = acknowledged;
        }
    }

    /// Data that entered the link in `direction`: figures of the capture at the sender.
    fn sent(&self, direction: Direction) -> Option<&Figures> {
        self.figures(direction, direction)
    }

    /// Data that left the link in `direction`: figures of the capture at the receiver.
    fn arrived(&self, direction: Direction) -> Option<&Figures> {
        self.figures(direction.opposite(), direction)
    }

    /// Figures of `direction` at the end where packets of `entry` enter.
    fn figures(&self, entry: Direction, direction: Direction) -> Option<&Figures> {
        let observed = self.at_entry(entry)?;
        Some(observed.figures(end(observed, self.mobile, direction)))
    }

    /// Whether all data of a direction arrived, and the captures show that it was all.
    fn is_complete(&self, direction: Direction) -> bool {
        self.arrived(direction).and_then(Figures::missed_bytes).is_some_and(|missed| missed <= 0)
    }

    /// The options in both SYNs; null if one SYN was not seen.
    fn negotiated(&self) -> Value {
        let main = self.main_direction();
        let [ours, theirs] = [main, main.opposite()].map(|end| self.sent(end).filter(|figures| figures.syns > 0));
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            return json!({ "profile": "as seen" });
        };
        let timestamps = ours.timestamps && theirs.timestamps;
        let scales = ours.window_scale.zip(theirs.window_scale).unwrap_or((0, 0));
        let sizes = ours.maximum_segment_size.zip(theirs.maximum_segment_size);
        let options = if timestamps { TIMESTAMPS } else { 0 };
        json!({
            "profile": "as seen",
            "negotiated": {
                "segment_size": sizes.map(|(ours, theirs)| ours.min(theirs).saturating_sub(options)),
                "selective_acknowledgement": ours.selective_permitted && theirs.selective_permitted,
                "timestamps": timestamps,
                "window_scale": scales.0,
                "peer_window_scale": scales.1,
                "ecn": self.deliveries.iter().all(|delivery| delivery.wants_ecn),
            },
        })
    }
}

/// The end of an observed connection that sends in `direction`.
fn end(observed: &Observed, mobile: Endpoint, direction: Direction) -> End {
    let is_mobile = direction == Direction::Up;
    if (observed.route().source == mobile) == is_mobile { End::Client } else { End::Server }
}
