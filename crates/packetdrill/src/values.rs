//! Names in code: the fields of `struct tcp_info`, and constants of Linux.

use airpath_core::Span;
use airpath_tcp::{CongestionState, Connection, State};

/// Constants of `include/net/tcp_states.h`, `include/uapi/linux/tcp.h` and `TCP_INFO`.
const CONSTANTS: [(&str, u32); 21] = [
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCPI_OPT_SYN_DATA", 32),
];

/// `TCP_INFINITE_SSTHRESH` of Linux.
const UNLIMITED: u64 = 0x7fff_ffff;

/// Whether `name` has a value here, or is no name of `struct tcp_info`.
pub fn is_known(name: &str) -> bool {
    let mut names = FIELDS.iter().map(|(field, _)| field).chain(CONSTANTS.iter().map(|(constant, _)| constant));
    !name.to_ascii_lowercase().starts_with("tcpi_") || names.any(|known| *known == name)
}

/// The value of `name`, at an end that opened the connection if it `connects`.
pub fn lookup(connection: &Connection, connects: bool, name: &str) -> Option<f64> {
    let constant = CONSTANTS.iter().find(|(constant, _)| *constant == name);
    let field = FIELDS.iter().find(|(field, _)| *field == name);
    constant.map(|(_, value)| f64::from(*value)).or_else(|| field.map(|(_, read)| read(connection, connects) as f64))
}

/// A field, and its value at an end, which may have opened the connection.
type Field = (&'static str, fn(&Connection, bool) -> u64);

/// Fields of `struct tcp_info` that this end point has.
const FIELDS: [Field; 38] = [
    ("tcpi_state", |connection, _| state(connection.state())),
    ("tcpi_ca_state", |connection, _| match connection.info().congestion_state {
        CongestionState::Open => 0,
        CongestionState::Disorder => 1,
        CongestionState::WindowReduced => 2,
        CongestionState::Recovery => 3,
        CongestionState::Loss => 4,
    }),
    ("tcpi_retransmits", |connection, _| connection.info().retries.into()),
    ("tcpi_probes", |connection, _| connection.info().window_probes.into()),
    ("tcpi_backoff", |connection, _| connection.info().retries.max(connection.info().window_probes).into()),
    ("tcpi_options", |connection, _| options(connection)),
    ("tcpi_snd_wscale", |connection, _| connection.negotiated().peer_window_scale.into()),
    ("tcpi_rcv_wscale", |connection, _| connection.negotiated().window_scale.into()),
    ("tcpi_rto", |connection, _| micros(connection.info().retransmission_timeout)),
    ("tcpi_snd_mss", |connection, _| connection.segment_size().into()),
    ("tcpi_advmss", |connection, _| {
        // Less the option of timestamps with its padding (`tcp_rcv_synsent_state_process`).
        let timestamps = if connection.negotiated().timestamps { 12 } else { 0 };
        u64::from(connection.config().maximum_segment_size) - timestamps
    }),
    ("tcpi_unacked", |connection, _| connection.info().outstanding),
    ("tcpi_sacked", |connection, _| connection.info().sacked),
    ("tcpi_lost", |connection, _| connection.info().lost),
    ("tcpi_retrans", |connection, _| connection.info().retransmitted),
    ("tcpi_rtt", |connection, _| micros(connection.info().smoothed_round_trip.unwrap_or(Span::ZERO))),
    ("tcpi_min_rtt", |connection, _| micros(connection.info().least_round_trip.unwrap_or(Span::ZERO))),
    ("tcpi_snd_ssthresh", |connection, _| connection.info().slow_start_threshold.unwrap_or(UNLIMITED)),
    ("tcpi_snd_cwnd", |connection, _| connection.info().congestion_window),
    ("tcpi_reordering", |connection, _| connection.info().duplicate_threshold.into()),
    ("tcpi_reord_seen", |connection, _| connection.info().reordering_seen.into()),
    ("tcpi_total_retrans", |connection, _| connection.statistics().retransmitted_segments),
    ("tcpi_delivered_ce", |connection, _| connection.info().marks_delivered),
    ("tcpi_received_ce", |connection, _| connection.info().marks_received),
    ("tcpi_delivered_e1_bytes", |connection, _| connection.info().ecn_bytes_delivered[0]),
    ("tcpi_delivered_ce_bytes", |connection, _| connection.info().ecn_bytes_delivered[1]),
    ("tcpi_delivered_e0_bytes", |connection, _| connection.info().ecn_bytes_delivered[2]),
    ("tcpi_received_e1_bytes", |connection, _| connection.info().ecn_bytes_received[0]),
    ("tcpi_received_ce_bytes", |connection, _| connection.info().ecn_bytes_received[1]),
    ("tcpi_received_e0_bytes", |connection, _| connection.info().ecn_bytes_received[2]),
    ("tcpi_notsent_bytes", |connection, _| connection.info().unsent),
    ("tcpi_bytes_acked", bytes_acked),
    ("tcpi_bytes_received", |connection, _| connection.received()),
    ("tcpi_bytes_sent", |connection, _| connection.statistics().data_bytes),
    ("tcpi_bytes_retrans", |connection, _| connection.statistics().retransmitted_bytes),
    ("tcpi_segs_out", |connection, _| connection.statistics().segments),
    ("tcpi_segs_in", |connection, _| connection.statistics().received_segments),
    ("tcpi_data_segs_out", |connection, _| connection.statistics().data_segments),
];

/// The kernel counts SYN and FIN, too, but not the SYN-ACK (`tcp_snd_una_update`).
fn bytes_acked(connection: &Connection, connects: bool) -> u64 {
    let opened = connects && connection.state().is_synchronised();
    let closed = matches!(connection.state(), State::FinWait2 | State::TimeWait);
    connection.acknowledged() + u64::from(opened) + u64::from(closed)
}

const fn micros(span: Span) -> u64 {
    span.as_nanos() / 1000
}

fn options(connection: &Connection) -> u64 {
    let negotiated = connection.negotiated();
    let scaling = negotiated.window_scale > 0 || negotiated.peer_window_scale > 0;
    u64::from(negotiated.timestamps)
        | u64::from(negotiated.selective_acknowledgement) << 1
        | u64::from(scaling) << 2
        | u64::from(negotiated.ecn) << 3
}

const fn state(state: State) -> u64 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}
