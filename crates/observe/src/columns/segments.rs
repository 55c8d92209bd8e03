//! The columns of the table of segments, and tshark's names for them.

/// A column of the table of segments.
#[derive(Clone, Copy, Debug)]
pub struct SegmentColumn {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty for numbers of things and words.
    pub unit: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// The equivalent field of tshark; empty where there is none.
    pub tshark: &'static str,
}

const fn column(name: &'static str, unit: &'static str, tshark: &'static str, meaning: &'static str) -> SegmentColumn {
    SegmentColumn { name, unit, meaning, tshark }
}

/// The columns of the table `observations`, in their order.
pub const SEGMENT_COLUMNS: &[SegmentColumn] = &[
    column("connection", "", "", "number of its connection, from 1"),
    column("frame", "", "frame.number", "its frame"),
    column("time", "ns since 1970", "frame.time_epoch", "when it passed"),
    column("from", "", "", "which end sent it: `client` or `server`"),
    column("flags", "", "tcp.flags.str", "control bits, in the notation of tcpdump"),
    column(
        "offset",
        "bytes",
        "tcp.seq",
        "its position in the stream of its sender: the first byte of data is 0, the SYN -1",
    ),
    column("length_bytes", "bytes", "tcp.len", "bytes of data"),
    column("acknowledged", "bytes", "tcp.ack", "the offset up to which it acknowledges the stream of the other end"),
    column("window_bytes", "bytes", "tcp.window_size", "the receive window that it offers, scaled"),
    column(
        "outstanding_bytes",
        "bytes",
        "tcp.analysis.bytes_in_flight",
        "data of its sender that is sent and not acknowledged, this segment included",
    ),
    column(
        "round_trip_ns",
        "ns",
        "tcp.analysis.ack_rtt",
        "the round trip that it measures, of data sent once (Karn's rule)",
    ),
    column("round_trip_of", "", "tcp.analysis.acks_frame", "the frame whose round trip that is"),
    column(
        "echo_round_trip_ns",
        "ns",
        "",
        "the round trip that the echo of a timestamp measures, of the copy that arrived (RFC 7323)",
    ),
    column("echo_round_trip_of", "", "", "the frame whose round trip that is"),
    column("retransmission", "", "", "the trigger of a retransmission: `timeout`, `fast`, `tail_probe` or `unknown`"),
    column("retransmission_of", "", "tcp.analysis.rto_frame", "the frame that carried it before"),
    column("retransmission_after_ns", "ns", "tcp.analysis.rto", "time since that frame"),
    column(
        "duplicate",
        "",
        "tcp.analysis.duplicate_ack_num",
        "which duplicate acknowledgement in a row it is, from 1 (RFC 5681)",
    ),
    column("duplicate_of", "", "tcp.analysis.duplicate_ack_frame", "the first frame with the same acknowledgement"),
    column(
        "since_push_bytes",
        "bytes",
        "tcp.analysis.push_bytes_sent",
        "data of its sender since the last segment with PSH, this one included; 0 without data",
    ),
    column("spurious", "", "", "the frame of a retransmission that it shows to be spurious, or its own"),
    column("spurious_by", "", "", "the detector that shows it: one of those above, without `spurious_`"),
    column("events", "", "tcp.analysis.flags", "its events: the names below, separated by spaces"),
];
