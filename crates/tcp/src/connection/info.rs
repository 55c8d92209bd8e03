//! The state of a connection, as `TCP_INFO` of Linux has it.

use airpath_core::Span;
use serde::Serialize;

use super::Connection;
use crate::congestion::CongestionControl;
use crate::sender::Phase;

/// State of loss repair, as in Linux (`tcpi_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionState {
    /// Nothing unusual.
    Open,
    /// Selective or duplicate acknowledgements arrived, and no loss was detected yet.
    Disorder,
    /// The window shrinks after an ECN echo (CWR).
    WindowReduced,
    /// A fast recovery.
    Recovery,
    /// The retransmission timer has expired.
    Loss,
}

/// The sending half of a connection. Windows and counts are in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionInfo {
    /// State of loss repair.
    pub congestion_state: CongestionState,
    /// The congestion window in force.
    pub congestion_window: u64,
    /// The slow-start threshold; `None` while it is unlimited.
    pub slow_start_threshold: Option<u64>,
    /// Segments sent and not cumulatively acknowledged.
    pub outstanding: u64,
    /// Selectively acknowledged segments of these.
    pub sacked: u64,
    /// Segments of these that are considered lost, retransmitted or not.
    pub lost: u64,
    /// Retransmissions in flight.
    pub retransmitted: u64,
    /// Duplicate acknowledgements that indicate a loss.
    pub duplicate_threshold: u32,
    /// Whether reordering was observed.
    pub reordering_seen: bool,
    /// Expirations of the retransmission timer since the last progress.
    pub retries: u32,
    /// Unanswered probes of a closed window.
    pub window_probes: u32,
    /// Smoothed round trip.
    pub smoothed_round_trip: Option<Span>,
    /// Least round trip of the last minutes.
    pub least_round_trip: Option<Span>,
    /// The retransmission timeout, with back-off.
    pub retransmission_timeout: Span,
    /// Packets with CE marks that the peer has reported, with accurate ECN feedback.
    pub marks_delivered: u64,
    /// Packets with CE marks that arrived, with accurate ECN feedback.
    pub marks_received: u64,
    /// Payload bytes that the peer has reported as received with ECT(1), CE and ECT(0), by AccECN
    /// options.
    pub ecn_bytes_delivered: [u64; 3],
    /// Payload bytes that arrived with ECT(1), CE and ECT(0), with accurate ECN feedback.
    pub ecn_bytes_received: [u64; 3],
    /// Bytes written and not sent.
    pub unsent: u64,
}

impl Connection {
    /// The state of the sending half.
    pub fn info(&self) -> ConnectionInfo {
        let sender = &self.sender;
        let counts = sender.scoreboard.counts();
        let segment = u64::from(sender.segment_size);
        // Without SACK, each duplicate acknowledgement counts as an arrived segment, as in Linux.
        let sacked = if sender.selective { counts.sacked } else { sender.duplicates().min(counts.outstanding) };
        ConnectionInfo {
            congestion_state: match sender.phase {
                Phase::Loss => CongestionState::Loss,
                Phase::FastRecovery => CongestionState::Recovery,
                Phase::Open if sender.is_reducing() => CongestionState::WindowReduced,
                Phase::Open if sacked > 0 => CongestionState::Disorder,
                Phase::Open => CongestionState::Open,
            },
            congestion_window: sender.congestion_window() / segment,
            slow_start_threshold: sender.controller.slow_start_threshold().map(|bytes| bytes / segment),
            outstanding: counts.outstanding,
            sacked,
            lost: counts.lost,
            retransmitted: counts.repeating,
            duplicate_threshold: sender.threshold(),
            reordering_seen: sender.has_seen_reordering(),
            retries: sender.retries,
            window_probes: sender.unanswered_probes(),
            smoothed_round_trip: sender.rtt.smoothed(),
            least_round_trip: sender.rtt.least(),
            retransmission_timeout: sender.rtt.timeout(&self.config.retransmission_timeout),
            marks_delivered: sender.marks.peer.total(),
            marks_received: self.options.marks.total(),
            ecn_bytes_delivered: sender.marks.peer_bytes.totals(),
            ecn_bytes_received: self.options.bytes.totals(),
            unsent: sender.unsent(),
        }
    }
}
