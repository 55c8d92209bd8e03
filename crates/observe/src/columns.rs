//! The names of the figures, their units and meanings, and tcptrace's names for them.

mod segments;
mod value;

use airpath_core::Span;

use crate::connection::Connection;
use crate::events::Events;
use crate::figures::Figures;
use crate::observation::End;
use crate::phase::Phase;
use crate::spurious::Detector;
use crate::trigger::Trigger;

pub use segments::{SEGMENT_COLUMNS, SegmentColumn};
pub use value::{Figure, Kind, Value};

/// A figure of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionColumn {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty for counts and words.
    pub unit: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// The equivalent column of tcptrace; empty where there is none.
    pub tcptrace: &'static str,
    /// Its value.
    pub value: fn(&Connection) -> Value,
}

/// A figure of one direction of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty for counts and words.
    pub unit: &'static str,
    /// Its meaning, for the direction from one end to the other.
    pub meaning: &'static str,
    /// The equivalent column of tcptrace, without the direction. A number after a colon is the part
    /// of a column with several parts. Two names where tcptrace has two such columns, empty where
    /// there is none.
    pub tcptrace: &'static str,
    /// Its value.
    pub value: fn(&Connection, End) -> Value,
}

macro_rules! columns {
    ($($name:literal, $unit:literal, $tcptrace:literal, $meaning:literal, $value:expr;)+) => {
        &[$(Column {
            name: $name,
            unit: $unit,
            meaning: $meaning,
            tcptrace: $tcptrace,
            value: |connection, end| {
                let value: fn(&Figures, &Connection) -> Value = $value;
                value(connection.figures(end), connection)
            },
        },)+]
    };
}

macro_rules! connection_columns {
    ($($name:literal, $unit:literal, $tcptrace:literal, $meaning:literal, $value:expr;)+) => {
        &[$(ConnectionColumn { name: $name, unit: $unit, meaning: $meaning, tcptrace: $tcptrace, value: $value },)+]
    };
}

fn seconds(number: Option<f64>) -> Value {
    number.map_or(Value::None(Kind::Real), Value::Seconds)
}

/// Figures of a connection.
pub const CONNECTION_COLUMNS: &[ConnectionColumn] = connection_columns! {
    "client", "", "host_a", "address and port of the end that opened it, or is the client by the ports",
        |connection| Value::Text(connection.route().source.address.to_string());
    "server", "", "host_b", "address of the other end",
        |connection| Value::Text(connection.route().destination.address.to_string());
    "client_port", "", "port_a", "port of the client",
        |connection| u64::from(connection.route().source.port).into();
    "server_port", "", "port_b", "port of the server",
        |connection| u64::from(connection.route().destination.port).into();
    "first_segment", "s since 1970", "first_packet", "when its first segment was captured", |connection| connection.first().into();
    "last_segment", "s since 1970", "last_packet", "when its last segment was captured", |connection| connection.last().into();
    "elapsed_s", "s", "", "time from the first segment to the last", |connection| connection.elapsed().into();
    "segments", "", "", "segments of both directions", |connection| connection.segments().into();
    "complete", "", "", "whether both SYNs and both FINs were seen", |connection| connection.complete().into();
    "reset", "", "", "whether one end reset it",
        |connection| End::BOTH.iter().any(|end| connection.figures(*end).resets > 0).into();
};

/// Figures of each direction.
pub const COLUMNS: &[Column] = columns! {
    "segments", "", "total_packets", "segments sent", |figures, _| figures.segments.into();
    "resets", "", "resets_sent", "segments with RST", |figures, _| figures.resets.into();
    "acknowledgements", "", "ack_pkts_sent", "segments with an acknowledgement", |figures, _| figures.acknowledgements.into();
    "pure_acknowledgements", "", "pure_acks_sent", "segments with an acknowledgement and nothing else",
        |figures, _| figures.pure_acknowledgements.into();
    "selective_acknowledgements", "", "sack_pkts_sent sacks_sent", "segments with selective acknowledgements",
        |figures, _| figures.selective_acknowledgements.into();
    "dsacks", "", "dsack_pkts_sent", "segments with a DSACK: their first selective block reports bytes that arrived twice (RFC 2883)",
        |figures, _| figures.dsacks.into();
    "most_blocks", "", "max_sack_blks/ack", "the most selective blocks in a segment",
        |figures, _| u64::from(figures.most_blocks).into();
    "unique_bytes", "bytes", "unique_bytes_sent", "bytes of the stream that were seen, each counted once",
        |figures, _| figures.unique_bytes.into();
    "data_segments", "", "actual_data_pkts", "segments with data, retransmissions included", |figures, _| figures.data_segments.into();
    "data_bytes", "bytes", "actual_data_bytes", "their bytes", |figures, _| figures.data_bytes.into();
    "retransmissions", "", "rexmt_data_pkts", "segments that carry data seen before, SYN and FIN included",
        |figures, _| figures.retransmissions.into();
    "retransmitted_bytes", "bytes", "rexmt_data_bytes", "sequence numbers in them that were seen before",
        |figures, _| figures.retransmitted_bytes.into();
    "window_probes", "", "zwnd_probe_pkts", "segments sent into a closed window", |figures, _| figures.window_probes.into();
    "window_probe_bytes", "bytes", "zwnd_probe_bytes", "their bytes", |figures, _| figures.window_probe_bytes.into();
    "out_of_order", "", "outoforder_pkts", "segments that fill a hole below data seen before",
        |figures, _| figures.event(Events::OUT_OF_ORDER).into();
    "pushed_segments", "", "pushed_data_pkts", "segments with data and PSH", |figures, _| figures.pushed_segments.into();
    "syns", "", "SYN/FIN_pkts_sent:1", "segments with SYN", |figures, _| figures.syns.into();
    "fins", "", "SYN/FIN_pkts_sent:2", "segments with FIN", |figures, _| figures.fins.into();
    "requests_window_scale", "", "req_1323_ws/ts:1", "whether it requested window scaling (RFC 7323)",
        |figures, _| figures.window_scale.is_some().into();
    "timestamps", "", "req_1323_ws/ts:2", "whether it sent timestamps (RFC 7323)", |figures, _| figures.timestamps.into();
    "window_scale", "", "adv_wind_scale", "the shift of its window, if both ends requested one; more than 14 counts as 14 (RFC 7323)",
        |figures, connection| connection.scaled().then_some(figures.applied_scale().map(u64::from)).flatten().into();
    "selective_permitted", "", "req_sack", "whether it permits selective acknowledgements (RFC 2018)",
        |figures, _| figures.selective_permitted.into();
    "urgent_segments", "", "urgent_data_pkts", "segments with data and URG", |figures, _| figures.urgent_segments.into();
    "urgent_bytes", "bytes", "urgent_data_bytes", "the sum of their urgent pointers", |figures, _| figures.urgent_bytes.into();
    "maximum_segment_size_bytes", "bytes", "mss_requested", "the maximum segment size that it announced",
        |figures, _| figures.maximum_segment_size.map(u64::from).into();
    "largest_segment_bytes", "bytes", "max_segm_size", "the largest segment", |figures, _| figures.largest_segment.into();
    "smallest_segment_bytes", "bytes", "min_segm_size", "the smallest segment with data", |figures, _| figures.smallest_segment.into();
    "mean_segment_bytes", "bytes", "avg_segm_size", "the mean segment with data", |figures, _| figures.mean_segment().into();
    "largest_window_bytes", "bytes", "max_win_adv", "the largest receive window that it offered", |figures, _| figures.window.largest.into();
    "smallest_window_bytes", "bytes", "min_win_adv", "the smallest open window that it offered", |figures, _| figures.window.smallest.into();
    "closed_windows", "", "zero_win_adv", "segments that offered a window of 0", |figures, _| figures.window.closed.into();
    "window_scale_unknown", "", "", "whether the scale of its window is unknown: the capture lacks its SYN or the options of a SYN, and the other end sent more than the window allows",
        |figures, _| figures.window.scale_is_unknown.into();
    "mean_window_bytes", "bytes", "avg_win_adv", "the mean window that it offered", |figures, _| figures.window.mean().into();
    "largest_outstanding_bytes", "bytes", "max_owin", "the largest amount of sent and unacknowledged data",
        |figures, _| figures.outstanding.largest.into();
    "smallest_outstanding_bytes", "bytes", "min_non-zero_owin", "the smallest amount above zero",
        |figures, _| figures.outstanding.smallest.into();
    "mean_outstanding_bytes", "bytes", "avg_owin", "the mean over the segments sent, retransmissions left out",
        |figures, _| figures.outstanding.mean().into();
    "mean_outstanding_over_time_bytes", "bytes", "wavg_owin", "the mean over time",
        |figures, connection| figures.outstanding.mean_over(connection.elapsed()).into();
    "initial_window_bytes", "bytes", "initial_window_bytes", "bytes sent before the first was acknowledged",
        |figures, _| figures.initial_bytes.into();
    "initial_window_segments", "", "initial_window_pkts", "segments sent before the first was acknowledged",
        |figures, _| figures.initial_segments.into();
    "stream_length_bytes", "bytes", "ttl_stream_length", "length of the stream, where SYN and FIN were seen",
        |figures, _| figures.stream_length.into();
    "missed_bytes", "bytes", "missed_data", "bytes of the stream that were not seen", |figures, _| figures.missed_bytes().into();
    "truncated_bytes", "bytes", "truncated_data", "bytes of data that the capture cut off", |figures, _| figures.truncated_bytes.into();
    "truncated_segments", "", "truncated_packets", "segments with data that the capture cut off", |figures, _| figures.truncated_segments.into();
    "data_time_s", "s", "data_xmit_time", "time from the first segment with data to the last",
        |figures, _| figures.data_time.map_or(Span::ZERO, |(first, last)| last.since(first)).into();
    "longest_idle_s", "s", "idletime_max", "the longest time between two segments", |figures, _| figures.longest_idle.into();
    "hardware_duplicates", "", "hardware_dups", "packets seen twice: equal in all numbers, with the same identification, a lower time to live, or too close to be sent twice",
        |figures, _| figures.event(Events::HARDWARE_DUPLICATE).into();
    "throughput_bps", "bit/s", "throughput", "bits of unique bytes over the elapsed time of the connection",
        |figures, connection| connection.throughput(figures).map(|rate| 8.0 * rate).into();
    "goodput_bps", "bit/s", "", "those of unique bytes that were acknowledged, over the same time",
        |figures, connection| connection.goodput(figures).map(|rate| 8.0 * rate).into();
    "round_trips", "", "RTT_samples", "round trips measured of data sent once (Karn's rule)",
        |figures, _| figures.round_trip.count.into();
    "shortest_round_trip_s", "s", "RTT_min", "the shortest of them", |figures, _| figures.round_trip.minimum().into();
    "longest_round_trip_s", "s", "RTT_max", "the longest", |figures, _| figures.round_trip.maximum().into();
    "mean_round_trip_s", "s", "RTT_avg", "their mean", |figures, _| seconds(figures.round_trip.mean());
    "round_trip_deviation_s", "s", "RTT_stdev", "their standard deviation", |figures, _| seconds(figures.round_trip.deviation());
    "handshake_round_trip_s", "s", "RTT_from_3WHS", "the round trip of the SYN", |figures, _| figures.handshake.into();
    "full_size_round_trips", "", "RTT_full_sz_smpls", "round trips of the largest segments", |figures, _| figures.full_size_round_trip.count.into();
    "shortest_full_size_round_trip_s", "s", "RTT_full_sz_min", "the shortest of them",
        |figures, _| figures.full_size_round_trip.minimum().into();
    "longest_full_size_round_trip_s", "s", "RTT_full_sz_max", "the longest", |figures, _| figures.full_size_round_trip.maximum().into();
    "mean_full_size_round_trip_s", "s", "RTT_full_sz_avg", "their mean", |figures, _| seconds(figures.full_size_round_trip.mean());
    "full_size_round_trip_deviation_s", "s", "RTT_full_sz_stdev", "their standard deviation",
        |figures, _| seconds(figures.full_size_round_trip.deviation());
    "acknowledgements_after_loss", "", "post-loss_acks", "acknowledgements delayed by the retransmission of earlier data",
        |figures, _| figures.after_loss.into();
    "ambiguous_acknowledgements", "", "ambiguous_acks", "acknowledgements of data sent more than once",
        |figures, _| figures.ambiguous_round_trip.count.into();
    "shortest_ambiguous_round_trip_s", "s", "RTT_min_(last)", "the shortest time from the last transmission to these",
        |figures, _| figures.ambiguous_round_trip.minimum().into();
    "longest_ambiguous_round_trip_s", "s", "RTT_max_(last)", "the longest", |figures, _| figures.ambiguous_round_trip.maximum().into();
    "mean_ambiguous_round_trip_s", "s", "RTT_avg_(last)", "their mean", |figures, _| seconds(figures.ambiguous_round_trip.mean());
    "ambiguous_round_trip_deviation_s", "s", "RTT_sdv_(last)", "their standard deviation",
        |figures, _| seconds(figures.ambiguous_round_trip.deviation());
    "cumulatively_acknowledged", "", "segs_cum_acked", "segments acknowledged together with a later one",
        |figures, _| figures.cumulatively_acknowledged.into();
    "duplicate_acknowledgements", "", "duplicate_acks", "duplicate acknowledgements that came back (RFC 5681)",
        |figures, _| figures.duplicate_acknowledgements.into();
    "triple_duplicates", "", "triple_dupacks", "times that there were three in a row", |figures, _| figures.triple_duplicates.into();
    "most_retransmissions", "", "max_#_retrans", "the largest number of retransmissions of one segment",
        |figures, _| u64::from(figures.most_retransmissions).into();
    "shortest_retransmission_time_s", "s", "min_retr_time", "the shortest time from a transmission to the next of the same bytes",
        |figures, _| figures.retransmission_time.minimum().into();
    "longest_retransmission_time_s", "s", "max_retr_time", "the longest", |figures, _| figures.retransmission_time.maximum().into();
    "mean_retransmission_time_s", "s", "avg_retr_time", "their mean", |figures, _| seconds(figures.retransmission_time.mean());
    "retransmission_time_deviation_s", "s", "sdv_retr_time", "their standard deviation",
        |figures, _| seconds(figures.retransmission_time.deviation());
    "timeouts", "", "", "retransmissions by the timer, and all later ones until the data sent before it is acknowledged",
        |figures, _| figures.triggers[Trigger::Timeout as usize].into();
    "fast_retransmissions", "", "", "retransmissions requested by acknowledgements",
        |figures, _| figures.triggers[Trigger::Fast as usize].into();
    "tail_probes", "", "", "retransmissions that probe the tail (RFC 8985)",
        |figures, _| figures.triggers[Trigger::TailProbe as usize].into();
    "unexplained_retransmissions", "", "", "retransmissions without a visible trigger",
        |figures, _| figures.triggers[Trigger::Unknown as usize].into();
    "early_timer_retransmissions", "", "", "of these, spurious ones that no acknowledgement requested: a timer of the sender expired while the data or its acknowledgement was in transit",
        |figures, _| figures.spurious.by_early_timer.into();
    "spurious", "", "", "retransmissions that were spurious, as far as the capture shows",
        |figures, _| figures.spurious_retransmissions().into();
    "spurious_acknowledged", "", "", "of these, those of data already acknowledged",
        |figures, _| figures.spurious.by_detector[Detector::Acknowledged as usize].into();
    "spurious_dsack", "", "", "those that a DSACK shows (RFC 2883, RFC 3708)",
        |figures, _| figures.spurious.by_detector[Detector::Dsack as usize].into();
    "spurious_timestamp", "", "", "those that a timestamp shows (Eifel, RFC 3522)",
        |figures, _| figures.spurious.by_detector[Detector::Timestamp as usize].into();
    "spurious_forward_acknowledgement", "", "", "those that the order of acknowledgements shows (F-RTO, RFC 5682)",
        |figures, _| figures.spurious.by_detector[Detector::ForwardAcknowledgement as usize].into();
    "spurious_too_soon", "", "", "those acknowledged sooner than half the shortest round trip between the capture and the receiver",
        |figures, _| figures.spurious.by_detector[Detector::TooSoon as usize].into();
    "spurious_extra_acknowledgement", "", "", "those that the number of acknowledgements shows",
        |figures, _| figures.spurious.by_detector[Detector::ExtraAcknowledgement as usize].into();
    "spurious_other_end", "", "", "retransmissions with both copies seen at the receiver",
        |figures, _| figures.spurious.by_detector[Detector::OtherEnd as usize].into();
    "slow_start_s", "s", "", "time in which the outstanding data grows by a quarter or more per round",
        |figures, _| figures.phases.spent(Phase::SlowStart).into();
    "avoidance_s", "s", "", "time in which it grows more slowly, or not", |figures, _| figures.phases.spent(Phase::Avoidance).into();
    "recovery_s", "s", "", "time in which lost segments are retransmitted, as acknowledgements request",
        |figures, _| figures.phases.spent(Phase::Recovery).into();
    "after_timeout_s", "s", "", "time from a timeout until the data sent before it is acknowledged",
        |figures, _| figures.phases.spent(Phase::AfterTimeout).into();
    "start_up_s", "s", "", "time from the first data until slow start was left for the first time",
        |figures, _| figures.phases.start_up().into();
    "mean_queueing_s", "s", "", "how much longer the mean round trip is than the shortest", |figures, _| seconds(figures.mean_queueing());
    "bunched_acknowledgements", "", "", "acknowledgements closer to the one before than a quarter of the time between their segments",
        |figures, _| figures.bunched_acknowledgements.into();
    "paired_acknowledgements", "", "", "acknowledgements for which this can be determined",
        |figures, _| figures.paired_acknowledgements.into();
    "echo_round_trips", "", "", "round trips by the echo of timestamps, outages included",
        |figures, _| figures.echo_round_trip.count.into();
    "shortest_echo_round_trip_s", "s", "", "the shortest of them", |figures, _| figures.echo_round_trip.minimum().into();
    "longest_echo_round_trip_s", "s", "", "the longest", |figures, _| figures.echo_round_trip.maximum().into();
    "mean_echo_round_trip_s", "s", "", "their mean", |figures, _| seconds(figures.echo_round_trip.mean());
    "echo_round_trip_deviation_s", "s", "", "their standard deviation", |figures, _| seconds(figures.echo_round_trip.deviation());
    "lost_before_capture", "", "", "segments that fill a hole, but were sent after the data beyond it: lost before the capture point, and retransmitted",
        |figures, _| figures.event(Events::LOST_BEFORE_CAPTURE).into();
    "acknowledged_retransmission", "", "", "retransmissions of acknowledged data",
        |figures, _| figures.event(Events::ACKNOWLEDGED_RETRANSMISSION).into();
    "lost_segment", "", "", "segments after a hole",
        |figures, _| figures.event(Events::LOST_SEGMENT).into();
    "ack_lost_segment", "", "", "acknowledgements of bytes that were not seen",
        |figures, _| figures.event(Events::ACK_LOST_SEGMENT).into();
    "keep_alive", "", "", "keep-alives",
        |figures, _| figures.event(Events::KEEP_ALIVE).into();
    "keep_alive_ack", "", "", "answers to keep-alives",
        |figures, _| figures.event(Events::KEEP_ALIVE_ACK).into();
    "window_update", "", "", "segments that change the window and nothing else",
        |figures, _| figures.event(Events::WINDOW_UPDATE).into();
    "window_full", "", "", "segments that reach the end of the other end's window",
        |figures, _| figures.event(Events::WINDOW_FULL).into();
    "zero_windows", "", "", "segments that close the window",
        |figures, _| figures.event(Events::ZERO_WINDOW).into();
    "zero_window_probe_ack", "", "", "answers to probes: still closed",
        |figures, _| figures.event(Events::ZERO_WINDOW_PROBE_ACK).into();
    "reused_ports", "", "", "SYNs on the addresses and ports of an earlier connection",
        |figures, _| figures.event(Events::REUSED_PORTS).into();
    "tfo_syn", "", "", "SYNs with data (RFC 7413)",
        |figures, _| figures.event(Events::TFO_SYN).into();
    "tfo_ack", "", "", "SYN-ACKs that accept them",
        |figures, _| figures.event(Events::TFO_ACK).into();
    "tfo_ignored", "", "", "SYN-ACKs that do not",
        |figures, _| figures.event(Events::TFO_IGNORED).into();
    "bad_checksum", "", "", "segments whose checksum is wrong",
        |figures, _| figures.event(Events::BAD_CHECKSUM).into();
    "congestion_experienced", "", "", "segments that a router marked (RFC 3168)",
        |figures, _| figures.event(Events::CONGESTION_EXPERIENCED).into();
    "shows_spurious", "", "", "acknowledgements that show that a retransmission was spurious",
        |figures, _| figures.event(Events::SHOWS_SPURIOUS).into();
    "options_cut", "", "", "segments whose options the snap length cut off, or that are malformed",
        |figures, _| figures.event(Events::OPTIONS_CUT).into();
    "super_segments", "", "", "segments longer than the MSS of the other end: the interface of the capturing host cuts or joined them",
        |figures, _| figures.event(Events::SUPER_SEGMENT).into();
    "unseen_bytes", "bytes", "", "bytes that were acknowledged and never captured: the capturing host dropped them, or they took another path",
        |figures, _| figures.unseen_bytes.into();
};
