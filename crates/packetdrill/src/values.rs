//! Names in code: the fields of `struct tcp_info`, and constants of Linux.

use airpath_core::Span;
use airpath_tcp::{CongestionState, Connection, State};

/// Constants of `include/net/tcp_states.h`, `include/uapi/linux/tcp.h` and `TCP_INFO`.
const CONSTANTS: [(&str, u32); 22] = [
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
    ("TCPI_OPT_ECN_SEEN", 16),
    ("TCPI_OPT_SYN_DATA", 32),
];

/// `TCP_INFINITE_SSTHRESH` of Linux.
const UNLIMITED: u64 = 0x7fff_ffff;

/// Whether `name` has a value here, or is no field of `struct tcp_info`.
pub fn is_known(name: &str) -> bool {
    !name.starts_with("tcpi_") || FIELDS.iter().any(|(field, _)| *field == name)
}

/// The value of `name`.
pub fn lookup(connection: &Connection, name: &str) -> Option<f64> {
    let constant = CONSTANTS.iter().find(|(constant, _)| *constant == name);
    let field = FIELDS.iter().find(|(field, _)| *field == name);
    constant.map(|(_, value)| f64::from(*value)).or_else(|| field.map(|(_, read)| read(connection) as f64))
}

type Field = (&'static str, fn(&Connection) -> u64);

/// Fields of `struct tcp_info` that this end point has.
const FIELDS: [Field; 38] = [
    ("tcpi_state", |connection| state(connection.state())),
    ("tcpi_ca_state", |connection| match connection.info().congestion_state {
        CongestionState::Open => 0,
        CongestionState::Disorder => 1,
        CongestionState::WindowReduced => 2,
        CongestionState::Recovery => 3,
        CongestionState::Loss => 4,
    }),
    ("tcpi_retransmits", |connection| connection.info().retries.into()),
    ("tcpi_probes", |connection| connection.info().window_probes.into()),
    ("tcpi_backoff", |connection| connection.info().retries.max(connection.info().window_probes).into()),
    ("tcpi_options", options),
    ("tcpi_snd_wscale", |connection| connection.negotiated().peer_window_scale.into()),
    ("tcpi_rcv_wscale", |connection| connection.negotiated().window_scale.into()),
    ("tcpi_rto", |connection| micros(connection.info().retransmission_timeout)),
    ("tcpi_snd_mss", |connection| connection.segment_size().into()),
    ("tcpi_advmss", |connection| connection.config().maximum_segment_size.into()),
    ("tcpi_unacked", |connection| connection.info().outstanding),
    ("tcpi_sacked", |connection| connection.info().sacked),
    ("tcpi_lost", |connection| connection.info().lost),
    ("tcpi_retrans", |connection| connection.info().retransmitted),
    ("tcpi_rtt", |connection| micros(connection.info().smoothed_round_trip.unwrap_or(Span::ZERO))),
    ("tcpi_min_rtt", |connection| micros(connection.info().least_round_trip.unwrap_or(Span::ZERO))),
    ("tcpi_snd_ssthresh", |connection| connection.info().slow_start_threshold.unwrap_or(UNLIMITED)),
    ("tcpi_snd_cwnd", |connection| connection.info().congestion_window),
    ("tcpi_reordering", |connection| connection.info().duplicate_threshold.into()),
    ("tcpi_reord_seen", |connection| connection.info().reordering_seen.into()),
    ("tcpi_total_retrans", |connection| connection.statistics().retransmitted_segments),
    ("tcpi_delivered_ce", |connection| connection.info().marks_delivered),
    ("tcpi_received_ce", |connection| connection.info().marks_received),
    ("tcpi_delivered_e1_bytes", |connection| connection.info().ecn_bytes_delivered[0]),
    ("tcpi_delivered_ce_bytes", |connection| connection.info().ecn_bytes_delivered[1]),
    ("tcpi_delivered_e0_bytes", |connection| connection.info().ecn_bytes_delivered[2]),
    ("tcpi_received_e1_bytes", |connection| connection.info().ecn_bytes_received[0]),
    ("tcpi_received_ce_bytes", |connection| connection.info().ecn_bytes_received[1]),
    ("tcpi_received_e0_bytes", |connection| connection.info().ecn_bytes_received[2]),
    ("tcpi_notsent_bytes", |connection| connection.info().unsent),
    ("tcpi_bytes_acked", Connection::acknowledged),
    ("tcpi_bytes_received", Connection::received),
    ("tcpi_bytes_sent", |connection| connection.statistics().data_bytes),
    ("tcpi_bytes_retrans", |connection| connection.statistics().retransmitted_bytes),
    ("tcpi_segs_out", |connection| connection.statistics().segments),
    ("tcpi_segs_in", |connection| connection.statistics().received_segments),
    ("tcpi_data_segs_out", |connection| connection.statistics().data_segments),
];

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
