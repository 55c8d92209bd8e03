//! The columns of transfers.

use std::sync::Arc;

use airpath_app::bulk::{Milestones, Transfer};
use airpath_core::{Bytes, Instant, Span};
use serde::Serialize;

/// The columns of transfers in a flow's row.
#[derive(Clone, Debug, Serialize)]
pub struct TransferRow {
    /// TCP settings in force, as far as available: the configured ones, and under `negotiated`
    /// those agreed with the peer. Flows with the same settings share them.
    pub tcp: Arc<serde_json::Value>,
    /// Application bytes to transfer.
    pub bytes: u64,
    /// Application bytes that arrived.
    pub delivered_bytes: u64,
    /// From the start until the connection was open at the connecting end.
    pub connect_s: Option<f64>,
    /// From the start to the first byte at the receiving application.
    pub first_byte_s: Option<f64>,
    /// From the start to the last byte at the receiving application.
    pub duration_s: Option<f64>,
    /// From the start to the acknowledgement of the last byte at the sender.
    pub acknowledged_s: Option<f64>,
    /// Delivered bytes over the duration, in bits per second.
    pub throughput_bps: Option<f64>,
    // Counters of the sender's and the receiver's TCP. A measurement has those that the kernel
    // reports with the same meaning.
    /// Segments with payload sent by the sender.
    pub data_packets: Option<u64>,
    /// Payload bytes in them.
    pub data_bytes: Option<u64>,
    /// Payload bytes, each counted once.
    pub unique_bytes: Option<u64>,
    /// Segments with retransmitted payload.
    pub retransmitted_packets: Option<u64>,
    /// Retransmitted payload bytes.
    pub retransmitted_bytes: Option<u64>,
    /// Segments without payload sent by the receiver.
    pub ack_packets: Option<u64>,
    /// Expiries of the retransmission timer, if reported by the sender.
    pub timeouts: Option<u64>,
    /// Fast recoveries, if reported by the sender.
    pub fast_retransmits: Option<u64>,
    /// Window reductions detected as spurious and undone, if reported by the sender.
    pub undone: Option<u64>,
    /// Packets that arrived at the receiver with a mark of congestion (CE, RFC 3168), as far as
    /// known; of TCP those with payload.
    pub marked_packets: Option<u64>,
    /// Reductions of the congestion window because of ECN, if reported by the sender.
    pub ecn_reductions: Option<u64>,
    /// Least round trip measured by the sender.
    pub rtt_min_s: Option<f64>,
    /// Their mean.
    pub rtt_mean_s: Option<f64>,
    /// The greatest.
    pub rtt_max_s: Option<f64>,
    /// Number of measurements.
    pub rtt_samples: Option<u64>,
    /// With a proxy: the mean round trip between it and the receiver, as the proxy measured it. The
    /// other round trips are those between the sender and the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_rtt_mean_s: Option<f64>,
}

impl TransferRow {
    /// The row of a transfer that started at `start`, in its state at `now`, as the applications
    /// observed it. The caller adds the columns of TCP.
    pub fn of(
        transfer: &Transfer,
        milestones: &Milestones,
        start: Instant,
        now: Instant,
        tcp: Arc<serde_json::Value>,
    ) -> Self {
        let since_start = |mark: Option<Instant>| mark.map(|mark| mark.since(start).as_secs_f64());
        Self {
            tcp,
            bytes: transfer.bytes.get(),
            delivered_bytes: milestones.delivered,
            connect_s: since_start(milestones.connected),
            first_byte_s: since_start(milestones.first_byte),
            duration_s: since_start(milestones.finished),
            acknowledged_s: since_start(milestones.acknowledged),
            throughput_bps: Bytes::new(milestones.delivered).rate_over(milestones.duration(start, now)),
            data_packets: None,
            data_bytes: None,
            unique_bytes: None,
            retransmitted_packets: None,
            retransmitted_bytes: None,
            ack_packets: None,
            timeouts: None,
            fast_retransmits: None,
            undone: None,
            marked_packets: None,
            ecn_reductions: None,
            rtt_min_s: None,
            rtt_mean_s: None,
            rtt_max_s: None,
            rtt_samples: None,
            proxy_rtt_mean_s: None,
        }
    }

    /// The same row with the counters of the sender's and the receiver's QUIC. `docs/quic.md` has
    /// their meanings.
    #[must_use]
    pub fn with_quic(self, sent: &airpath_quic::Statistics, received: &airpath_quic::Statistics) -> Self {
        Self {
            data_packets: Some(sent.stream_frames),
            retransmitted_packets: Some(sent.lost_packets),
            retransmitted_bytes: Some(sent.lost_bytes),
            ack_packets: Some(received.ack_frames),
            timeouts: Some(sent.persistent_congestion),
            fast_retransmits: Some(sent.congestion_events.saturating_sub(sent.persistent_congestion + sent.marks)),
            marked_packets: Some(received.marked_datagrams),
            ecn_reductions: Some(sent.marks),
            rtt_min_s: sent.rtt_min.map(Span::as_secs_f64),
            rtt_mean_s: sent.rtt_mean_s(),
            rtt_max_s: sent.rtt_max.map(Span::as_secs_f64),
            rtt_samples: Some(sent.rtt_samples),
            ..self
        }
    }
}

/// The settings of QUIC in the place of those of TCP ([`TransferRow::tcp`]): the transport is the
/// profile. Keys of both have different names, because equal ones have different types.
pub fn quic_settings(config: &airpath_quic::Config) -> serde_json::Value {
    serde_json::json!({
        "profile": airpath_quic::NAME,
        "congestion": { "algorithm": config.congestion.name() },
        "quic": config,
    })
}
